/*
 * device_copy.c
 *		The copy of an index on the device as the table of a join (../index/README, "On a device"): nothing of the
 *		inner side is read but what has changed.
 *
 * The table has all of the index's entries: the block of each one's row, and the columns.  It stays on the device as
 * one that is made of pages does, but for as long as the copy is known: whatever becomes of the relation, it is the
 * copy's (../store/resident_tables.c).  Each query asks for the blocks that it is right for, in the query's snapshot
 * (../index/README, "Copies").  Where there are others, keys are told apart: those of which an entry is on such a
 * block, or a row that the query sees there, are changed (device_apart.c).  Where that would take longer than to make
 * the table of pages that are on the device (gh_copy_tells_apart), it is made of pages, as ever.
 *
 * No query makes a copy for this: gpuhash_prewarm() of the index does.  One that there is is made again in the
 * background, where it is not right for many blocks.
 *
 * The order is that of the proof: the query's snapshot is held, then the copy is asked.  Serializable
 * transactions do without, since no scan begins that would lock the relation.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/rel.h"

#include "fragment/device_copy.h"
#include "gpuhash.h"
#include "service/faults.h"
#include "service/service.h"
#include "store/index_copies.h"

typedef GhCopyReader Reader;

/* --------------------------------------------------------------- what there is */

/* Whether the join's inner side may be the copy of an index, as far as it does not depend on the copy. */
static bool
may_use(const GhFragment *fragment, const GhDeviceTable *table)
{
	const GhInnerSide *side = table->side;
	const GhLowerJoin *lower = table->level->lower;
	const Snapshot snapshot = fragment->css.ss.ps.state->es_snapshot;

	/* marks that participants share are made with their tables */
	if (gh_lower_fills_inner(lower) && fragment->device->together)
		return false;
	return OidIsValid(lower->index) && gh_enable_index && gh_enable_resident && side->relation != NULL &&
		side->joined == NULL && table->level->place_vector < 0 && side->nfilters == 0 &&
		side->scan->plan->qual == NIL && !lower->is_coded && fragment->device->engine->shares_tables &&
		snapshot->snapshot_type == SNAPSHOT_MVCC && !IsolationIsSerializable();
}

/* Whether the copy tells keys apart as the join does. */
static bool
has_key(const Reader *reader)
{
	const GhLowerJoin *lower = reader->table->level->lower;
	const GhKeySide *inner = lower->keys[GH_INNER];

	if (inner->ncolumns != reader->copy.nkeys)
		return false;
	for (int k = 0; k < inner->ncolumns; k++)
		if (reader->copy.columns[k].attno != gh_relation_attno(reader->side->scan, inner->columns[k].attno) ||
			!gh_key_is_integer(inner->columns[k].encoding) ||
			(inner->ncolumns > 1 && (gh_lower_part_bits(lower, GH_INNER, k) != reader->copy.columns[k].bits ||
									 gh_lower_part_bits(lower, GH_OUTER, k) != reader->copy.columns[k].bits)))
			return false;
	return true;
}

/* What the table keeps of an entry for a column of the level; false: it lacks it. */
static bool
find_column(const Reader *reader, const GhJoinedColumn *column, uint16 *number)
{
	int			resno = reader->table->level->lower->kept_attnos[column->column];
	AttrNumber	attno = gh_relation_attno(reader->side->scan, resno);

	for (int c = 0; c < reader->copy.ncolumns; c++)
	{
		const GhCopyColumn *own = &reader->copy.columns[c];

		if (own->attno == attno && own->column.load == column->load && own->column.scale == column->scale)
		{
			*number = GH_DEVICE_COPY_COLUMN(c);
			return true;
		}
	}
	return false;
}

/* Finds the key and each column that the probe fills; false: the copy lacks one. */
static bool
map_columns(Reader *reader)
{
	const GhJoinLevel *level = reader->table->level;
	uint16	   *numbers = palloc(sizeof(uint16) * Max(level->ncolumns, 1));

	if (!gh_index_copy_methods()->describe(reader->index, &reader->copy) || !has_key(reader))
		return false;
	for (int c = 0; c < level->ncolumns; c++)
		if (!find_column(reader, &level->columns[c], &numbers[c]))
			return false;
	reader->table->numbers = numbers;
	return true;
}

/*
 * A probe of that table: by whole keys, of which the copy has all bits where there is one column, and with
 * what it keeps.
 */
void
gh_device_probe_copy(const GhDeviceTable *table, GhProbe *probe, GhProbeFill *fills)
{
	GhKeyPart  *part;

	if (table->numbers == NULL)
		return;
	if (probe->nparts == 1)
	{
		part = palloc(sizeof(GhKeyPart));
		*part = probe->parts[0];
		part->bits = GH_KEY_BITS;
		probe->parts = part;
	}
	for (uint32 c = 0; c < probe->nfills; c++)
		fills[c].kept = table->numbers[c];
}

/* Whether no entry of the copy, and no row that is not in it, is of a block that it is not right for. */
static bool
is_all_right(const Reader *reader)
{
	return gh_copy_other_blocks(reader) == 0 && gh_copy_next_stale(&reader->blocks, 0) == reader->blocks.copied;
}

/* Whether what has changed is told apart in less time than the table is made of pages, and within work_mem. */
static bool
may_tell_apart(const Reader *reader)
{
	double		rows = (double) reader->table->rows;
	double		changed = (double) gh_copy_other_blocks(reader) * rows / Max(reader->copy.nblocks, 1);

	return reader->fragment->member == NULL && !gh_lower_fills_inner(reader->table->level->lower) &&
		gh_copy_tells_apart(rows, changed, reader->table->level->lower->children[GH_OUTER]->plan->plan_rows) &&
		changed * (GH_READ_ROW_BYTES + 2 * sizeof(Datum) * reader->copy.ncolumns) <= get_hash_memory_limit();
}

/* Finds the copy that the device has, and asks it for its blocks; false: there is none. */
static bool
ask(Reader *reader)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(reader->side->relation);

	if (nblocks < GH_COPY_BLOCKS_MIN ||
		!gh_index_copy_methods()->look_up_on_device(reader->index, reader->fragment->device->number,
													&reader->copy.generation, &reader->copy.nblocks))
		return false;
	gh_copy_ask_blocks(reader->index, reader->side->relation, &reader->copy, nblocks, &reader->blocks);
	gh_copy_make_again_on_device(reader->index, &reader->blocks);
	return true;
}

/* The table that has stayed; false: it has gone. */
static bool
borrow(Reader *reader)
{
	GhFragment *fragment = reader->fragment;
	GhDeviceTable *table = reader->table;
	GhError		error;

	gh_device_register_tables(fragment);
	table->kept = gh_resident_table_borrow(gh_resident_table_source_of_copy(reader->index, reader->copy.generation,
																			 fragment->device->number),
										   &table->root, &table->rows);
	if (table->kept && gh_device_attach(fragment->device, table, table->root, 0) &&
		gh_device_note_table(fragment, (int) (table - fragment->device->tables), NULL, &error))
	{
		fragment->counts.resident_tables++;
		return true;
	}
	gh_device_drop_table(fragment->device, table);
	return false;
}

/* ------------------------------------------------------------------ its use */

/* As gh_device_copy_table; the index is open. */
static GhCopyTable
use_copy(Reader *reader)
{
	GhFragment *fragment = reader->fragment;
	GhCopyTable used = GH_COPY_NOT_USED;

	if (!ask(reader) || !map_columns(reader) || !borrow(reader))
		return GH_COPY_NOT_USED;
	if (is_all_right(reader))
		return GH_COPY_USED;
	if (may_tell_apart(reader))
		used = gh_device_tell_apart(reader);
	if (used == GH_COPY_NOT_USED)
	{
		gh_device_drop_table(fragment->device, reader->table);
		fragment->counts.resident_tables--;
	}
	return used;
}

/* The index that the plan has for a join; NULL: it was dropped, behind a cursor, in this transaction. */
static Relation
open_index(const GhLowerJoin *lower)
{
	return try_relation_open(lower->index, AccessShareLock);
}

/* Of a table that another participant has borrowed: where its columns are; false: they are not there. */
bool
gh_device_map_copy(GhFragment *fragment, int number)
{
	GhDeviceTable *table = &fragment->device->tables[number];
	MemoryContext saved = MemoryContextSwitchTo(fragment->device->context);
	Reader		reader = {.fragment = fragment,.table = table};
	bool		mapped = gh_device_prepare_tables(fragment);

	if (mapped && (reader.index = open_index(table->level->lower)) != NULL)
	{
		reader.side = table->side;
		mapped = map_columns(&reader);
		relation_close(reader.index, NoLock);
	}
	else
		mapped = false;
	MemoryContextSwitchTo(saved);
	return mapped;
}

/* Whether one of the tables can be the copy of an index that the device has: then all are to be where it is. */
bool
gh_device_has_copies(GhFragment *fragment)
{
	GhDeviceRun *device = fragment->device;
	uint64		generation;
	BlockNumber nblocks;
	bool		has = false;

	for (int i = 0; i < device->ntables && !has && gh_enable_index; i++)
	{
		const GhLowerJoin *lower = device->tables[i].level->lower;
		Relation	index = OidIsValid(lower->index) ? open_index(lower) : NULL;

		if (index == NULL)
			continue;
		has = gh_index_copy_methods()->look_up_on_device(index, device->number, &generation, &nblocks);
		relation_close(index, NoLock);
	}
	return has;
}

/*
 * Takes the copy of the inner side's index for a table, if the device has one that is right for nearly all of
 * the relation, and if what it is not right for can be told apart: not by participants of a parallel query.
 */
GhCopyTable
gh_device_copy_table(GhFragment *fragment, int number)
{
	GhDeviceTable *table = &fragment->device->tables[number];
	GhLowerJoin *lower = table->level->lower;
	MemoryContext saved;
	Reader	   *reader;
	GhCopyTable used = GH_COPY_NOT_USED;

	if (fragment->device->executor != GH_DEVICE_COPY_EXECUTOR || !may_use(fragment, table))
		return GH_COPY_NOT_USED;
	lower->methods->tell_copy(lower, 0, 0, 0);
	if (gh_fault_pass(GH_FAULT_POINT_INDEX_COPY) != GH_FAULT_NONE)
		return GH_COPY_NOT_USED;
	saved = MemoryContextSwitchTo(fragment->device->context);
	reader = palloc0(sizeof(Reader));
	reader->fragment = fragment;
	reader->table = table;
	reader->side = table->side;
	reader->index = open_index(lower);
	if (reader->index != NULL)
	{
		used = use_copy(reader);
		relation_close(reader->index, NoLock);
	}
	MemoryContextSwitchTo(saved);
	table->copied = used == GH_COPY_USED || used == GH_COPY_FAILED;
	if (used == GH_COPY_USED)
		lower->methods->tell_copy(lower, reader->blocks.right, gh_copy_other_blocks(reader), reader->nrows);
	return used;
}
