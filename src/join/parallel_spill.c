/*
 * parallel_spill.c
 *		When the rows of a join of all participants outgrow their memory together.
 *
 *	1. While the inner side is read, the participant that finds rows and table-to-be
 *	   over the limit fixes the number of partitions, once.  From then on every
 *	   participant writes inner rows to files of its own, one a partition, its rows in
 *	   memory first.
 *	2. When all inner rows are in files, every participant reads its part of the outer
 *	   side to its end and does likewise.  Rows of a partition without inner rows are
 *	   left out unless they come out anyway.  Nothing has been returned yet.
 *	3. Then participants take partitions, one at a time, and join each by themselves:
 *	   the rows are those of everybody's files of it.  A partition that does not fit
 *	   the memory of one is split further by spill.c, by other bits of the key.
 *
 * The files belong to a SharedFileSet, which goes with the leader's segment.  They are
 * temporary files for temp_tablespaces, and for temp_file_limit while they are written.
 */
#include "postgres.h"

#include <fcntl.h>

#include "executor/executor.h"
#include "miscadmin.h"

#include "gpuhash.h"
#include "join/join.h"
#include "join/parallel.h"

/* --------------------------------------------------------------- memory */

/* The partitions that the estimate, or what was seen, asks for: each to fit one process. */
static uint32
wanted_partitions(const GhJoinState *js, double bytes)
{
	const GhShared *shared = js->parallel->shared;
	Plan	   *inner = gh_child(js, GH_INNER)->plan;
	double		row = sizeof(GhRow) + inner->plan_width + gh_table_bytes_of_row(js, gh_entries_fit_narrow(js));
	double		estimate = inner->plan_rows * shared->nmembers * row;
	double		wanted = Max(2 * Max(bytes, estimate) / js->memory_limit,
							 GH_SHARED_PARTITIONS_EACH * shared->nmembers);
	uint32		nparts = 2;

	while (nparts < wanted && nparts < GH_SHARED_PARTITIONS_MAX)
		nparts *= 2;
	return nparts;
}

/* Bytes of so many bytes of rows, and of the table that they will need. */
static double
memory_needed(const GhJoinState *js, uint64 bytes, uint64 keys)
{
	return (double) bytes + (double) keys * gh_table_bytes_of_row(js, gh_entries_fit_narrow(js));
}

/* Counts rows stored since the last time, and looks whether they are too many. */
void
gh_parallel_count_rows(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;
	GhShared   *shared = parallel->shared;
	uint64		bytes;
	uint64		keys;
	double		limit = (double) js->memory_limit * shared->nmembers;
	double		needed;
	uint32		none = 0;

	/* first: who sees these rows counted is to see that, too */
	if (js->store.has_nulls)
		pg_atomic_write_u32(&shared->has_nulls, 1);
	bytes = pg_atomic_add_fetch_u64(&shared->row_bytes,
									(int64) (js->store.bytes - parallel->bytes_counted));
	keys = pg_atomic_add_fetch_u64(&shared->nkeys,
								   (int64) (parallel->keys - parallel->keys_counted));
	parallel->bytes_counted = js->store.bytes;
	parallel->keys_counted = parallel->keys;
	/* for EXPLAIN: a value that another one overtakes is near enough */
	if (bytes > pg_atomic_read_u64(&shared->row_bytes_peak))
		pg_atomic_write_u64(&shared->row_bytes_peak, bytes);

	if (pg_atomic_read_u32(&shared->unprobed) != 0)
		gh_probed_do_without(js);
	needed = memory_needed(js, bytes, keys);
	/* a table of the join's own takes less beside the rows */
	if (needed > limit && gh_is_probed_above(js))
	{
		pg_atomic_write_u32(&shared->unprobed, 1);
		gh_probed_do_without(js);
		needed = memory_needed(js, bytes, keys);
	}
	if (!parallel->in_files && needed > limit)
		(void) pg_atomic_compare_exchange_u32(&shared->nparts, &none,
											  wanted_partitions(js, needed));
}

/* -------------------------------------------------------------- writing */

static int
partition_of(const GhShared *shared, uint64 key)
{
	/* not the bits that split a partition further: spill.c takes the lowest */
	return (int) ((gh_partition_bits(key) >> 32) &
				  (pg_atomic_read_u32(unconstify(pg_atomic_uint32 *, &shared->nparts)) - 1));
}

static void
file_name(char *name, int side, int member, int part)
{
	snprintf(name, MAXPGPATH, "%c%d.%d", side == GH_OUTER ? 'o' : 'i', member, part);
}

static void
write_row(GhJoinState *js, int side, GhRow *row, Size size)
{
	struct GhParallel *parallel = js->parallel;
	GhShared   *shared = parallel->shared;
	int			part = partition_of(shared, row->key);

	if (parallel->out == NULL)
		parallel->out = MemoryContextAllocZero(js->context,
											   sizeof(BufFile *) * GH_SHARED_PARTITIONS_MAX);
	if (parallel->out[part] == NULL)
	{
		MemoryContext saved = MemoryContextSwitchTo(js->context);
		char		name[MAXPGPATH];

		file_name(name, side, parallel->member, part);
		parallel->out[part] = BufFileCreateFileSet(&shared->files.fs, name);
		MemoryContextSwitchTo(saved);
		shared->has_rows[side][part] = true;
	}
	gh_spill_write(js, parallel->out[part], row, size);
}

/* Ends the files of a side, so that others can open them. */
static void
export_files(struct GhParallel *parallel)
{
	for (int part = 0; parallel->out != NULL && part < GH_SHARED_PARTITIONS_MAX; part++)
		if (parallel->out[part] != NULL)
		{
			BufFileExportFileSet(parallel->out[part]);
			BufFileClose(parallel->out[part]);
			parallel->out[part] = NULL;
		}
}

/* Puts the rows in memory into files. */
static void
write_stored_rows(GhJoinState *js)
{
	GhRowStore *store = &js->store;
	GhRowCursor cursor = {0};

	js->parallel->in_files = true;
	while (cursor.chunk < store->nchunks)
	{
		uint32		chunk = cursor.chunk;

		/* a chunk goes as soon as it is read */
		while (cursor.offset < store->chunks[chunk].used)
		{
			GhRow	   *row = gh_row_store_next(store, &cursor);

			CHECK_FOR_INTERRUPTS();
			write_row(js, GH_INNER, row, gh_row_size(store->columns, row));
		}
		gh_row_store_free_chunk(store, chunk);
		cursor.chunk = chunk + 1;
		cursor.offset = 0;
	}
	gh_parallel_use_private_rows(js);
	gh_parallel_count_rows(js);
}

/* Keeps an inner row, in memory as long as there is enough. */
void
gh_parallel_store_slot(GhJoinState *js, TupleTableSlot *slot, uint64 key, bool has_key)
{
	struct GhParallel *parallel = js->parallel;

	parallel->keys += has_key;
	if (!parallel->in_files && pg_atomic_read_u32(&parallel->shared->nparts) != 0)
		write_stored_rows(js);
	if (parallel->in_files)
	{
		Size		size;
		GhRow	   *row = gh_spill_form(js, GH_INNER, slot, key, has_key, &size);

		write_row(js, GH_INNER, row, size);
		return;
	}
	gh_row_store_add_slot(&js->store, slot, key, has_key);
	/* a look at each new chunk */
	if (js->store.bytes != parallel->bytes_counted)
		gh_parallel_count_rows(js);
}

/* Likewise one that was read before. */
void
gh_parallel_store_row(GhJoinState *js, GhRow *row)
{
	struct GhParallel *parallel = js->parallel;

	parallel->keys += gh_row_has_key(row);
	if (!parallel->in_files && pg_atomic_read_u32(&parallel->shared->nparts) != 0)
		write_stored_rows(js);
	if (parallel->in_files)
	{
		write_row(js, GH_INNER, row, gh_row_size(&js->columns[GH_INNER], row));
		return;
	}
	gh_row_store_add_row(&js->store, row);
	if (js->store.bytes != parallel->bytes_counted)
		gh_parallel_count_rows(js);
}

/* Phase TABLE: rows that were stored before another participant found that they do not fit. */
void
gh_parallel_write_rest(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;
	GhSharedMember *member = &parallel->shared->member[parallel->member];

	if (!parallel->in_files)
		write_stored_rows(js);
	if (member->nchunks > 0)
		dsa_free(parallel->area, member->chunks);
	member->nchunks = 0;
	export_files(parallel);
}

static void
write_outer_slot(GhJoinState *js, TupleTableSlot *slot, uint64 key, bool has_key)
{
	struct GhParallel *parallel = js->parallel;
	const GhShared *shared = parallel->shared;
	Size		size;
	GhRow	   *row;

	if (!js->fill_outer &&
		(!has_key || !shared->has_rows[GH_INNER][partition_of(shared, key)]))
		return;
	/* numbered, to spread */
	if (!has_key)
		key = parallel->keyless_rows++;
	row = gh_spill_form(js, GH_OUTER, slot, key, has_key, &size);
	write_row(js, GH_OUTER, row, size);
}

/* Phase ENTER: this participant's part of the outer side. */
void
gh_parallel_write_outer(GhJoinState *js)
{
	for (;;)
	{
		TupleTableSlot *slot;
		uint64		key;
		bool		has_key;

		CHECK_FOR_INTERRUPTS();
		slot = gh_next_row(js, GH_OUTER, &key, &has_key);
		if (TupIsNull(slot))
			break;
		write_outer_slot(js, slot, key, has_key);
	}
	export_files(js->parallel);
}

/* -------------------------------------------------------------- reading */

/* Ends one file of the present partition, which nobody else reads. */
static void
close_file(struct GhParallel *parallel, int side)
{
	char		name[MAXPGPATH];

	if (parallel->in[side] == NULL)
		return;
	BufFileClose(parallel->in[side]);
	parallel->in[side] = NULL;
	file_name(name, side, parallel->from[side], parallel->part);
	BufFileDeleteFileSet(&parallel->shared->files.fs, name, false);
}

/*
 * The next row of the partition that this process has taken, or NULL after the last
 * one.  It is good until the next call.
 */
GhRow *
gh_parallel_read(GhJoinState *js, int side)
{
	struct GhParallel *parallel = js->parallel;
	GhShared   *shared = parallel->shared;

	for (; parallel->from[side] < shared->nmembers; parallel->from[side]++)
	{
		GhRow	   *row = NULL;

		if (parallel->in[side] == NULL)
		{
			MemoryContext saved = MemoryContextSwitchTo(js->context);
			char		name[MAXPGPATH];

			file_name(name, side, parallel->from[side], parallel->part);
			/* this participant may have written none */
			parallel->in[side] = BufFileOpenFileSet(&shared->files.fs, name, O_RDONLY, true);
			MemoryContextSwitchTo(saved);
		}
		if (parallel->in[side] != NULL)
			row = gh_spill_read_file(js, parallel->in[side]);
		if (row != NULL)
			return row;
		close_file(parallel, side);
	}
	return NULL;
}

/* Takes the next partition that can have a result; false: there is none. */
bool
gh_parallel_next_partition(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;
	GhShared   *shared = parallel->shared;
	uint32		nparts = pg_atomic_read_u32(&shared->nparts);
	uint32		part;

	while ((part = pg_atomic_fetch_add_u32(&shared->next_part, 1)) < nparts)
		if ((js->fill_inner || shared->has_rows[GH_OUTER][part]) &&
			(js->fill_outer || shared->has_rows[GH_INNER][part]))
			break;
	parallel->part = (int) part;
	parallel->from[GH_OUTER] = parallel->from[GH_INNER] = 0;
	return part < nparts;
}

/* Closes what is open, for the end of a run. */
void
gh_parallel_close_files(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;

	for (int side = GH_OUTER; side <= GH_INNER; side++)
	{
		if (parallel->in[side] != NULL)
			BufFileClose(parallel->in[side]);
		parallel->in[side] = NULL;
	}
	export_files(parallel);
	if (parallel->out != NULL)
		pfree(parallel->out);
	parallel->out = NULL;
}
