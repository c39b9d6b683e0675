/*
 * fuzz_leaves.c
 *		What is read of an index with a damaged page: nothing outside of the page, or nothing at all.
 *
 * A page is damaged in its buffer, which is not marked as dirty, for the time of one reading, and put back.  Nobody else may
 * use the index meanwhile.
 */
#include "postgres.h"

#include "access/genam.h"
#include "common/pg_prng.h"
#include "fmgr.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/rel.h"

#include "index/leaves.h"

#include "forge.h"
#include "gpuhash_test.h"

PG_FUNCTION_INFO_V1(gpuhash_test_fuzz_leaves);

typedef struct Seen
{
	TupleDesc	desc;
	uintptr_t	first;			/* where values lie, from the least address to the end of the last one */
	uintptr_t	end;
	uint64		entries;
	uint64		digest;			/* of all their bytes, so that they are read */
} Seen;

/* GhLeafEntry */
static bool
see_entry(void *arg, BlockNumber block, const Datum *values, const bool *nulls)
{
	Seen	   *seen = arg;

	seen->entries++;
	seen->digest += block;
	for (int i = 0; i < seen->desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(seen->desc, i);
		const char *value = DatumGetPointer(values[i]);
		Size		bytes;

		if (nulls[i])
			continue;
		if (attribute->attbyval)
		{
			seen->digest += values[i];
			continue;
		}
		bytes = attribute->attlen == -1 ? VARSIZE_ANY(value) : (Size) attribute->attlen;
		seen->first = Min(seen->first, (uintptr_t) value);
		seen->end = Max(seen->end, (uintptr_t) value + bytes);
		for (Size b = 0; b < bytes; b++)
			seen->digest = seen->digest * 31 + (unsigned char) value[b];
	}
	return true;
}

/* A page as it is, damaged, for one reading of all; true: it came to the end. */
static bool
read_damaged(Relation index, BlockNumber block, pg_prng_state *random, Seen *seen)
{
	Buffer		buffer = ReadBuffer(index, block);
	char	   *saved = palloc(BLCKSZ);
	char	   *damaged = palloc(BLCKSZ);
	volatile bool whole = false;

	memcpy(saved, BufferGetPage(buffer), BLCKSZ);
	memcpy(damaged, saved, BLCKSZ);
	/* what leads to all else is at the begin and at the end */
	switch (pg_prng_uint64_range(random, 0, 3))
	{
		case 0:
			gh_forge_damage(damaged, 256, random);
			break;
		case 1:
			gh_forge_damage(damaged + BLCKSZ - 256, 256, random);
			break;
		default:
			for (uint64 n = pg_prng_uint64_range(random, 1, 100); n > 0; n--)
				gh_forge_damage(damaged, BLCKSZ, random);
	}
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	memcpy(BufferGetPage(buffer), damaged, BLCKSZ);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	PG_TRY();
	{
		whole = gh_leaves_read(index, see_entry, seen);
	}
	PG_FINALLY();
	{
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		memcpy(BufferGetPage(buffer), saved, BLCKSZ);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	PG_END_TRY();
	ReleaseBuffer(buffer);
	pfree(saved);
	pfree(damaged);
	return whole;
}

/*
 * gpuhash_test_fuzz_leaves(index regclass, times int, seed bigint) returns text: how often the reading came to the end, how often
 * it ended before, and how often values lay further apart than those of one page can.
 */
Datum
gpuhash_test_fuzz_leaves(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), AccessShareLock);
	BlockNumber nblocks = RelationGetNumberOfBlocks(index);
	int64		whole = 0;
	int64		ended = 0;
	int64		outside = 0;
	pg_prng_state random;

	gh_test_needs_service();
	pg_prng_seed(&random, (uint64) PG_GETARG_INT64(2));
	for (int32 i = 0; i < PG_GETARG_INT32(1); i++)
	{
		Seen		seen = {RelationGetDescr(index), UINTPTR_MAX, 0};

		if (read_damaged(index, (BlockNumber) pg_prng_uint64_range(&random, 0, nblocks - 1), &random, &seen))
			whole++;
		else
			ended++;
		outside += seen.end > seen.first && seen.end - seen.first > BLCKSZ;
	}
	index_close(index, AccessShareLock);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf(INT64_FORMAT " " INT64_FORMAT " " INT64_FORMAT, whole, ended, outside)));
}
