/*
 * carry.c
 *		Inner columns as values of the table, and whether its entries are narrow.
 *
 * Where a join needs no more of an inner row than a few bytes, the table has these in
 * the place of a reference to the row: then a match is complete when its key is found,
 * and the row is never fetched.  That takes keys with one row each, as the planner may
 * expect or not know, and which shows when they are entered; where a key has two, or a value
 * cannot be told from "not there", the rows are entered once more, as references.  Where a
 * join asks just whether there is a row, keys may have any number of them, and the value is 1.
 * The rows are kept in each case: a table that goes with its device is made of them again.
 */
#include "postgres.h"

#include "access/tupmacs.h"
#include "common/pg_prng.h"

#include "gpuhash.h"
#include "join/join.h"

/*
 * Whether the plan allows it, and where the columns are in a value: wide ones first, so
 * that each is aligned.
 */
void
gh_carry_init(GhJoinState *js)
{
	const GhColumns *columns = &js->columns[GH_INNER];
	GhCarry    *carry = &js->carry;
	int			used = 0;

	memset(carry, 0, sizeof(*carry));
	carry->needs_columns = js->looks_at_inner;
	carry->possible = !carry->needs_columns;
	/* rows whose hash clauses are rechecked may share a key that is not theirs */
	if (carry->possible || js->keys_repeat || js->marks_inner || js->recheck != NULL ||
		!columns->all_byval || columns->ncolumns > GH_CARRY_MAX)
		return;
	for (int len = sizeof(uint64); len > 0; len /= 2)
		for (int i = 0; i < columns->ncolumns; i++)
			if (columns->typlens[i] == len)
			{
				carry->offsets[i] = used;
				used += len;
			}
	carry->used = used;
	carry->possible = used <= GH_CARRY_MAX;
}

/*
 * Whether the table of the rows there are so far would have keys and values of 4 bytes: half the memory, more
 * of it in the caches, and half of what goes to a device and back.  Keys of 4 bytes with values of 8 would
 * not do, as the engines keep such values beside the buckets, where each match is one cache miss more.
 *
 * References always fit but with very many chunks.  They have to where the values are columns, too, which may
 * come to nothing when the table is there.  Columns of just 4 bytes fit while none is NULL.
 */
bool
gh_entries_fit_narrow(const GhJoinState *js)
{
	const GhCarry *carry = &js->carry;
	bool		has_nulls = js->store.has_nulls;
	uint32		nchunks = js->store.nchunks;

	if (!js->keys_are_short)
		return false;
	if (js->parallel != NULL)
		gh_parallel_entries(js, &has_nulls, &nchunks);
	return nchunks <= GH_NARROW_CHUNKS_MAX &&
		(!carry->possible || !carry->needs_columns || carry->used <= GH_CARRY_NARROW_NULLS ||
		 (carry->used == GH_CARRY_NARROW_MAX && !has_nulls));
}

/* What the table's entries are. */
void
gh_carry_use(GhJoinState *js, bool in_use, bool narrow, uint64 absent)
{
	GhCarry    *carry = &js->carry;

	carry->refused = false;
	carry->in_use = in_use;
	carry->narrow = narrow;
	carry->has_nulls = carry->used <= (narrow ? GH_CARRY_NARROW_NULLS : GH_CARRY_NULLS);
	carry->absent = absent;
}

/* Before a table of new rows is made. */
void
gh_carry_start(GhJoinState *js)
{
	const GhCarry *carry = &js->carry;
	bool		narrow = gh_entries_fit_narrow(js);
	uint64		absent = 0;

	/* found among the values rarely, whatever they are: in 4 bytes, in one table of 860 with 5 million of them */
	if (carry->possible && carry->needs_columns)
		absent = pg_prng_uint64(&pg_global_prng_state);
	gh_carry_use(js, carry->possible, narrow, narrow ? (uint32) absent : absent);
}

/* The rows are to be entered as references, in the same table or one like it. */
void
gh_carry_stop(GhJoinState *js)
{
	gh_carry_use(js, false, js->carry.narrow, 0);
}

/* The row's value of the table; false: it has none. */
bool
gh_carry_pack(const GhJoinState *js, GhRow *row, uint64 *value)
{
	const GhColumns *columns = &js->columns[GH_INNER];
	const GhCarry *carry = &js->carry;
	const bool *nulls = gh_row_nulls(row);
	const Datum *values = gh_row_values(columns, row);
	GhCarried	carried = {0};

	if (!carry->needs_columns)
	{
		/* not 0: where keys come again, that is slow to exchange among participants */
		*value = 1;
		return true;
	}
	for (int i = 0; i < columns->ncolumns; i++)
	{
		if (!nulls[i])
			store_att_byval(carried.bytes + carry->offsets[i], values[i], columns->typlens[i]);
		else if (carry->has_nulls)
			carried.bytes[carry->narrow ? GH_CARRY_NARROW_NULLS : GH_CARRY_NULLS] |= 1 << i;
		else
			return false;
	}
	*value = carry->narrow ? carried.narrow : carried.value;
	return *value != carry->absent;
}
