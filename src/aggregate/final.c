/*
 * final.c
 *		Groups that are final as a device has returned them.
 *
 * Where one process has a device do all rows, each group comes back once.  So it need not be found among others,
 * and comes out of the node as it came: from memory, or, where they are too many for that, from a temporary file.
 */
#include "postgres.h"

#include "commands/tablespace.h"
#include "storage/buffile.h"
#include "utils/memutils.h"

#include "aggregate/node.h"
#include "engine/pipeline/scan.h"

/* Some records, one behind the other. */
typedef struct Chunk
{
	struct Chunk *next;
	Size		size;
	char		records[FLEXIBLE_ARRAY_MEMBER];
} Chunk;

struct GhFinalGroups
{
	MemoryContext context;		/* of all this */
	Size		memory_limit;	/* bytes of chunks */
	Size		memory;
	uint64		count;			/* of all groups */
	Chunk	   *chunks;			/* the first groups */
	Chunk	  **end;			/* where the next one goes */
	BufFile    *file;			/* the other groups; NULL: there are none */
	uint64		file_bytes;
	/* which come out next */
	const Chunk *chunk;			/* whose turn comes; NULL: the file's */
	GhRecordBuffer buffer;		/* some of the file's */
	const char *records;
	Size		left;			/* bytes */
};

GhFinalGroups *
gh_final_groups_create(MemoryContext parent, Size memory_limit)
{
	MemoryContext context = AllocSetContextCreate(parent, "GpuHashAggregate final groups", ALLOCSET_DEFAULT_SIZES);
	GhFinalGroups *final = MemoryContextAllocZero(context, sizeof(GhFinalGroups));

	final->context = context;
	final->memory_limit = memory_limit;
	final->end = &final->chunks;
	final->buffer.context = context;
	return final;
}

static void
write_records(GhFinalGroups *final, const char *records, Size size)
{
	MemoryContext saved = MemoryContextSwitchTo(final->context);

	if (final->file == NULL)
	{
		PrepareTempTablespaces();
		final->file = BufFileCreateTemp(false);
	}
	BufFileWrite(final->file, unconstify(char *, records), size);
	MemoryContextSwitchTo(saved);
	final->file_bytes += size;
}

/* How many records these are. */
static uint64
count_records(const char *records, Size size)
{
	uint64		count = 0;

	for (Size at = 0; at < size; at += ((const GhScanGroup *) (records + at))->bytes, count++)
		if (size - at < sizeof(GhScanGroup) || ((const GhScanGroup *) (records + at))->bytes < sizeof(GhScanGroup))
			elog(ERROR, "group of a scan has a wrong size");
	return count;
}

/* Keeps whole records, as of a scan's results (engine/pipeline/scan.h).  Not any more once one has come out. */
void
gh_final_groups_put(GhFinalGroups *final, const char *records, Size size)
{
	Chunk	   *chunk;

	final->count += count_records(records, size);
	if (final->file != NULL || size > final->memory_limit - final->memory)
	{
		write_records(final, records, size);
		return;
	}
	if (size == 0)
		return;
	chunk = MemoryContextAllocHuge(final->context, offsetof(Chunk, records) + size);
	chunk->next = NULL;
	chunk->size = size;
	memcpy(chunk->records, records, size);
	final->memory += size;
	*final->end = chunk;
	final->end = &chunk->next;
}

/* Some more records; false: there are none. */
static bool
next_records(GhFinalGroups *final)
{
	if (final->chunk != NULL)
	{
		final->records = final->chunk->records;
		final->left = final->chunk->size;
		final->chunk = final->chunk->next;
		return true;
	}
	if (final->file == NULL)
		return false;
	final->left = gh_records_read(&final->buffer, final->file);
	final->records = final->buffer.data;
	return final->left > 0;
}

/* The next record, with what is left from it on; NULL: there is none. */
const char *
gh_final_groups_next(GhFinalGroups *final, Size *left)
{
	if (final->left == 0 && !next_records(final))
		return NULL;
	*left = final->left;
	return final->records;
}

/* That record, of so many bytes, has come out. */
void
gh_final_groups_pass(GhFinalGroups *final, Size bytes)
{
	Assert(bytes <= final->left);
	final->records += bytes;
	final->left -= bytes;
}

/* Begins anew, or for the first time, with the first record. */
void
gh_final_groups_rewind(GhFinalGroups *final)
{
	final->chunk = final->chunks;
	final->left = 0;
	if (final->file != NULL && BufFileSeek(final->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file of a hash aggregation: %m")));
}

uint64
gh_final_groups_count(const GhFinalGroups *final)
{
	return final->count;
}

/* Bytes in memory. */
Size
gh_final_groups_memory(const GhFinalGroups *final)
{
	return final->memory;
}

/* Bytes in the file. */
uint64
gh_final_groups_disk(const GhFinalGroups *final)
{
	return final->file_bytes;
}

void
gh_final_groups_close(GhFinalGroups *final)
{
	if (final->file != NULL)
		BufFileClose(final->file);
	MemoryContextDelete(final->context);
}
