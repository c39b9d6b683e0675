/*
 * spill.c
 *		When the inner side outgrows its memory: partitions in temporary files.
 *
 * The join then runs partition by partition, as PostgreSQL's own hash join does:
 *
 *	1. When the inner rows in memory pass the limit, the inner side is split into
 *	   as many partitions as the planner's estimate asks for, two at least; from
 *	   then on the number doubles each time the limit is passed again.  A row
 *	   belongs to the partition that the low bits of its mixed key name; after a
 *	   doubling it is in the same partition or in the one that split off, whose
 *	   number is higher.
 *	2. Rows of the current partition stay in memory.  Others, of either side, go
 *	   to a file each partition and side.  Where no file can have inner rows of
 *	   its partition, an outer row has no match and need not wait.
 *	3. When the outer side is through, the next partition's inner file becomes
 *	   the row store and its outer file the outer side.  Rows found to belong to a
 *	   later partition, because of a doubling since, move on to its file.
 *	4. Where inner rows without a match come out, they do so at the end of their
 *	   partition, and no partition of inner rows is passed by.  Rows with a NULL key,
 *	   which are kept in these joins, are numbered and spread by their numbers.
 *
 * Equal keys are never parted.  When a doubling moves next to nothing, rows of one
 * key, or one huge row, fill the memory: then the next doubling waits until the
 * rows take twice as much.  So memory stays within the limit, or twice what cannot
 * be parted.
 *
 * The files are PostgreSQL's temporary files: temp_tablespaces and
 * temp_file_limit hold, and an error or a cancel removes them.
 */
#include "postgres.h"

#include "commands/tablespace.h"
#include "executor/executor.h"
#include "miscadmin.h"

#include "join/join.h"

/* Whether rows were put into the very file of the partition. */
bool
gh_spill_has_file(const GhSpill *spill, int side, int partition)
{
	return spill->files[side] != NULL && spill->files[side][partition] != NULL;
}

/*
 * Whether a later partition may have rows.  Those written before a doubling lie
 * in the file of a partition that this one split off from, until that is read.
 */
bool
gh_spill_may_have_rows(const GhSpill *spill, int side, int partition)
{
	for (int nparts = spill->nparts; nparts > 1; nparts /= 2)
		if (gh_spill_has_file(spill, side, partition & (nparts - 1)))
			return true;
	return false;
}

/* The file of a later partition, made on first use. */
static BufFile *
partition_file(GhSpill *spill, int side, int partition)
{
	MemoryContext saved = MemoryContextSwitchTo(spill->context);

	if (spill->files[side] == NULL)
	{
		spill->files[side] = palloc0(sizeof(BufFile *) * GH_PARTITIONS_MAX);
		spill->born[side] = palloc0(sizeof(int) * GH_PARTITIONS_MAX);
	}
	if (spill->files[side][partition] == NULL)
	{
		PrepareTempTablespaces();
		spill->files[side][partition] = BufFileCreateTemp(false);
		spill->born[side][partition] = spill->nparts;
	}
	MemoryContextSwitchTo(saved);
	return spill->files[side][partition];
}

static GhRow *
row_buffer(GhSpill *spill, Size size)
{
	if (spill->buffer_size < size)
	{
		if (spill->buffer != NULL)
			pfree(spill->buffer);
		spill->buffer_size = Max(size, 8192);
		spill->buffer = MemoryContextAllocHuge(spill->context, spill->buffer_size);
	}
	return (GhRow *) spill->buffer;
}

/* Appends a row: its size, then its bytes. */
void
gh_spill_write(GhJoinState *js, BufFile *file, GhRow *row, Size size)
{
	MemoryContext saved = MemoryContextSwitchTo(js->spill.context);

	BufFileWrite(file, &size, sizeof(size));
	BufFileWrite(file, row, size);
	MemoryContextSwitchTo(saved);
	js->spill.bytes_written += sizeof(size) + size;
}

static void
write_row(GhJoinState *js, int side, int partition, GhRow *row, Size size)
{
	gh_spill_write(js, partition_file(&js->spill, side, partition), row, size);
}

void
gh_spill_row(GhJoinState *js, int side, int partition, GhRow *row)
{
	write_row(js, side, partition, row, gh_row_size(&js->columns[side], row));
}

/* The row that a slot becomes, good until the next row that is formed or read. */
GhRow *
gh_spill_form(GhJoinState *js, int side, TupleTableSlot *slot, uint64 key, bool has_key,
			  Size *size)
{
	GhRow	   *row;

	*size = gh_row_size_of_slot(&js->columns[side], slot);
	row = row_buffer(&js->spill, *size);
	gh_row_form(&js->columns[side], slot, key, has_key, row);
	return row;
}

void
gh_spill_slot(GhJoinState *js, int side, int partition, TupleTableSlot *slot,
			  uint64 key, bool has_key)
{
	Size		size;
	GhRow	   *row = gh_spill_form(js, side, slot, key, has_key, &size);

	write_row(js, side, partition, row, size);
}

/* The next row of a file, or NULL at its end.  It is good until the next call. */
GhRow *
gh_spill_read_file(GhJoinState *js, BufFile *file)
{
	Size		size;
	GhRow	   *row;

	CHECK_FOR_INTERRUPTS();
	if (!gh_read_temp_file(file, &size, sizeof(size), true))
		return NULL;
	row = row_buffer(&js->spill, size);
	gh_read_temp_file(file, row, size, false);
	return row;
}

/*
 * The next row of the current partition's file, or NULL at its end.  It is good
 * until the next call.  Rows that belong to a later partition by now are moved
 * on.
 */
GhRow *
gh_spill_read(GhJoinState *js, int side)
{
	GhSpill    *spill = &js->spill;
	BufFile    *file;
	GhRow	   *row;

	if (!gh_spill_has_file(spill, side, spill->current))
		return NULL;
	file = spill->files[side][spill->current];
	while ((row = gh_spill_read_file(js, file)) != NULL)
	{
		int			partition = gh_spill_partition(spill, row->key);

		if (partition == spill->current)
			break;
		gh_spill_row(js, side, partition, row);
	}
	return row;
}

/* Puts the current partition's files to their beginning, to be read. */
void
gh_spill_rewind(GhJoinState *js)
{
	for (int side = GH_OUTER; side <= GH_INNER; side++)
		if (gh_spill_has_file(&js->spill, side, js->spill.current) &&
			BufFileSeek(js->spill.files[side][js->spill.current], 0, 0, SEEK_SET) != 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not rewind temporary file of a hash join: %m")));
}

/*
 * Passes by the current partition, whose inner rows no outer row asks for.  Rows in
 * its file that were written before a doubling may be wanted by a later one.
 */
void
gh_spill_skip(GhJoinState *js)
{
	GhSpill    *spill = &js->spill;

	if (!gh_spill_has_file(spill, GH_INNER, spill->current) ||
		spill->born[GH_INNER][spill->current] == spill->nparts)
		return;
	gh_spill_rewind(js);
	while (gh_spill_read(js, GH_INNER) != NULL)
		continue;
}

/* Bytes of rows and of the table that they will need.  Asked for every row. */
static Size
memory_used(const GhJoinState *js)
{
	bool		narrow = js->keys_are_short && gh_entries_fit_narrow(js);

	return gh_row_store_taken(&js->store) + js->store.nkeys * gh_table_bytes_of_row(js, narrow);
}

/* The partitions that the planner's estimate of the inner side asks for. */
static int
estimated_partitions(const GhJoinState *js)
{
	Plan	   *inner = gh_child(js, GH_INNER)->plan;
	double		row = sizeof(GhRow) + inner->plan_width + gh_table_bytes_of_row(js, gh_entries_fit_narrow(js));
	double		wanted = inner->plan_rows * row / js->memory_limit;
	int			nparts = 2;

	while (nparts < wanted && nparts < GH_PARTITIONS_MAX)
		nparts *= 2;
	return nparts;
}

/*
 * Multiplies the partitions and moves the stored inner rows that no longer belong
 * to the current one to their file.
 */
static void
grow_partitions(GhJoinState *js)
{
	GhSpill    *spill = &js->spill;
	GhRowStore	old = js->store;
	GhRowCursor cursor = {0};
	GhRow	   *row;

	spill->nparts = spill->nparts == 1 ? estimated_partitions(js) : spill->nparts * 2;
	js->partitions_peak = Max(js->partitions_peak, spill->nparts);

	gh_row_store_init(&js->store, old.context, old.columns, js->memory_limit);
	js->store.bytes_peak = old.bytes_peak;
	for (uint32 chunk = 0; chunk < old.nchunks; chunk++)
	{
		/* rows that stay are copied; a chunk goes as soon as it is read */
		while (cursor.chunk == chunk && cursor.offset < old.chunks[chunk].used)
		{
			int			partition;

			CHECK_FOR_INTERRUPTS();
			row = gh_row_store_next(&old, &cursor);
			partition = gh_spill_partition(spill, row->key);
			if (partition == spill->current)
				gh_row_store_add_row(&js->store, row);
			else
				gh_spill_row(js, GH_INNER, partition, row);
		}
		gh_row_store_free_chunk(&old, chunk);
		cursor.chunk = chunk + 1;
		cursor.offset = 0;
	}
	if (old.chunks != NULL)
	{
		pfree(old.chunks);
		pfree(old.base);
	}
}

/* Splits off partitions while rows and table-to-be are over the limit. */
void
gh_spill_keep_within_memory(GhJoinState *js)
{
	GhSpill    *spill = &js->spill;
	Size		before = memory_used(js);

	while (before > Max(js->memory_limit, spill->grow_at) &&
		   spill->nparts < GH_PARTITIONS_MAX)
	{
		Size		after;

		/* a table of the join's own takes less beside the rows */
		if (gh_is_probed_above(js))
		{
			gh_probed_do_without(js);
			before = memory_used(js);
			continue;
		}
		grow_partitions(js);
		after = memory_used(js);
		spill->grow_at = after > before / 4 * 3 ? after * 2 : 0;
		before = after;
	}
}

static void
close_file(GhSpill *spill, int side, int partition)
{
	if (!gh_spill_has_file(spill, side, partition))
		return;
	BufFileClose(spill->files[side][partition]);
	spill->files[side][partition] = NULL;
}

/* Gives up the files of the current partition, which is done with. */
void
gh_spill_close_current(GhSpill *spill)
{
	close_file(spill, GH_OUTER, spill->current);
	close_file(spill, GH_INNER, spill->current);
}

/* Closes all files; one partition again. */
void
gh_spill_reset(GhSpill *spill)
{
	for (int side = GH_OUTER; side <= GH_INNER; side++)
	{
		if (spill->files[side] == NULL)
			continue;
		for (int i = 0; i < spill->nparts; i++)
			close_file(spill, side, i);
		pfree(spill->files[side]);
		pfree(spill->born[side]);
		spill->files[side] = NULL;
	}
	spill->nparts = 1;
	spill->current = 0;
	spill->grow_at = 0;
}
