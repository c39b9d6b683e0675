/*
 * device_copy.c
 *		The table of a join on the device, made of the copy of an index in shared memory (../store/README, "Copies of
 *		indexes"): nothing of the inner side is read but what has changed.
 *
 * The table has all of the copy's entries.  It stays on the device as one that is made of pages does, but for as long as the
 * copy is there: whatever becomes of the relation, it is the copy's (../store/resident_tables.c).  Each query asks the copy for
 * the blocks that it is right for, in the query's snapshot (../index/README, "Copies").  Where there are others, keys are told
 * apart: those of which an entry is on such a block, or a row that the query sees there, are changed.  All of their rows go into
 * a small table of this query, those of entries on right blocks among them, and their keys into another one; probes look
 * there first (GhProbe.changed).  Where that would take longer than to make the table of pages that are on the device
 * (gh_copy_tells_apart), it is made of pages, as ever.
 *
 * No query makes a copy for this: of pages a table is made in less time.  gpuhash_prewarm() of the index
 * does, and queries by the CPU engine do.  One that there is is made again in the background, where it is not
 * right for many blocks.
 *
 * The order is that of the proof: the query's snapshot is held, then the copy is asked.  Serializable
 * transactions do without, since no scan begins that would lock the relation.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/rel.h"

#include "engine/pipeline/record_row.h"
#include "expr/values.h"
#include "fragment/inner_side.h"
#include "gpuhash.h"
#include "hash.h"
#include "service/faults.h"
#include "store/index_copies.h"

/* Bytes of the device for an entry, at most about, beside its texts. */
#define GH_ENTRY_BYTES(ncolumns) (32 + 8 * (ncolumns))
/*
 * Of the host for a changed key, at most about: in the table of them, in arrays by its columns, and one that
 * it is supplied from.
 */
#define GH_CHANGED_BYTES(nkeys) (4 * sizeof(ChangedKey) + 16 * (nkeys) + 16)

/*
 * A changed key, as the copy has it, and its number among them; and an entry of it, that one was found by, or
 * GH_NO_ENTRY.
 */
typedef struct ChangedKey
{
	uint64		key;
	uint64		entry;
	uint32		number;
	char		status;
} ChangedKey;

#define GH_NO_ENTRY UINT64_MAX

/*
 * Places of a table of keys, at least: all outer rows are looked up there.  In one of few places these are
 * the same few, which a device's memory gives one after the other: 280 keys in 330 places took twice as long
 * as 10,000 in 12,000.
 */
#define GH_CHANGED_PLACES 65536.0

#define SH_PREFIX changed_keys
#define SH_ELEMENT_TYPE ChangedKey
#define SH_KEY_TYPE uint64
#define SH_KEY key
#define SH_HASH_KEY(table, key) ((uint32) gh_mix64(key))
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

typedef struct Reader
{
	GhFragment *fragment;
	GhDeviceTable *table;
	const GhInnerSide *side;
	Relation	index;
	GhIndexCopy seen;			/* the copy that there is, which need not be attached: generation and blocks */
	int			place;
	GhCopyHold	hold;
	const GhIndexCopy *copy;	/* attached; NULL: it is not */
	GhCopyBlocks blocks;
	int			sources[GH_PROGRAM_VECTORS_MAX];	/* by column of the side's program: the copy's */
	/* what has changed */
	changed_keys_hash *keys;
	uint64	   *parts[GH_COPY_KEYS_MAX];	/* by column of the key, and number of the key */
	uint32		parts_room;
	uint64		heap_rows;
} Reader;

/* --------------------------------------------------------------- what there is */

/* Whether the join's inner side may be the copy of an index, as far as it does not depend on the copy. */
static bool
may_use(const GhFragment *fragment, const GhDeviceTable *table)
{
	const GhInnerSide *side = table->side;
	const GhLowerJoin *lower = table->level->lower;
	const Snapshot snapshot = fragment->css.ss.ps.state->es_snapshot;

	return OidIsValid(lower->index) && gh_enable_index && gh_enable_resident && side->relation != NULL &&
		side->joined == NULL && table->level->place_vector < 0 && side->nfilters == 0 &&
		side->scan->plan->qual == NIL && !gh_lower_fills_inner(lower) && fragment->device->engine->shares_tables &&
		snapshot->snapshot_type == SNAPSHOT_MVCC && !IsolationIsSerializable();
}

/* Whether the copy tells keys apart as the join does. */
static bool
has_key(const Reader *reader)
{
	const GhKeySide *inner = reader->table->level->lower->keys[GH_INNER];

	if (inner->ncolumns != reader->copy->nkeys)
		return false;
	for (int k = 0; k < inner->ncolumns; k++)
		if (reader->copy->columns[k].attno != gh_relation_attno(reader->side->scan, inner->columns[k].attno) ||
			!gh_key_is_integer(inner->columns[k].encoding))
			return false;
	return true;
}

/* Finds each column that the side's program reads; false: the copy lacks one. */
static bool
map_columns(Reader *reader)
{
	const GhProgram *program = reader->side->program;
	const GhColumn *columns = gh_program_columns(program);

	for (uint32 v = 0; v < program->ncolumns; v++)
	{
		reader->sources[v] = -1;
		for (int c = 0; c < reader->copy->ncolumns; c++)
		{
			const GhCopyColumn *column = &reader->copy->columns[c];

			if (column->attno == columns[v].attribute && column->column.load == columns[v].load &&
				column->column.scale == columns[v].scale)
				reader->sources[v] = c;
		}
		if (reader->sources[v] < 0)
			return false;
	}
	return has_key(reader);
}

/* Blocks of the table that the copy is not right for. */
static BlockNumber
other_blocks(const Reader *reader)
{
	return reader->blocks.nblocks - reader->blocks.right;
}

/* Whether no entry of the copy, and no row that is not in it, is of a block that it is not right for. */
static bool
is_all_right(const Reader *reader)
{
	return other_blocks(reader) == 0 && gh_copy_next_stale(&reader->blocks, 0) == reader->blocks.copied;
}

/* Rows that are about on the blocks that the copy is not right for. */
static double
rows_of_others(const Reader *reader)
{
	return (double) other_blocks(reader) * reader->seen.rows / Max(reader->seen.nblocks, 1);
}

/* Whether so many rows and entries are told apart in less time than the table is made of pages. */
static bool
pays(const Reader *reader, double changed)
{
	return gh_copy_tells_apart(reader->seen.rows, changed,
							   reader->table->level->lower->children[GH_OUTER]->plan->plan_rows);
}

/* Asks the copy that there is for its blocks; false: there is none, or it is right for too few. */
static bool
ask(Reader *reader)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(reader->side->relation);

	if (nblocks < GH_COPY_BLOCKS_MIN || !gh_index_copy_look(reader->index, &reader->seen, &reader->place))
		return false;
	gh_copy_ask_blocks(reader->index, reader->side->relation, &reader->seen, nblocks, &reader->blocks);
	(void) gh_copy_make_again(reader->index, &reader->blocks);
	return pays(reader, rows_of_others(reader));
}

/* Attaches the copy that was asked; false: there is another one by now, or it lacks a column. */
static bool
attach(Reader *reader)
{
	if (!gh_shared_copy_open(GH_COPY_OF_INDEX, reader->index, &reader->hold))
		return false;
	reader->copy = reader->hold.copy;
	return reader->copy->generation == reader->seen.generation && reader->copy->root != 0 && map_columns(reader);
}

/* ------------------------------------------------------------------- the table */

/* Columns of the copy's entries, from one on, in the order of the program's. */
static void
entries_from(const Reader *reader, uint64 first, GhVector *vectors)
{
	for (uint32 v = 0; v < reader->side->program->ncolumns; v++)
	{
		const GhCopyColumn *column = &reader->copy->columns[reader->sources[v]];
		uint64	   *low = gh_copy_address(&reader->hold, column->low);
		uint64	   *high = gh_copy_address(&reader->hold, column->high);
		uint8	   *null = gh_copy_address(&reader->hold, column->null);

		vectors[v] = (GhVector) {low + first, high != NULL ? high + first : NULL, null != NULL ? null + first : NULL};
	}
}

static const char *
texts_of(const Reader *reader)
{
	return gh_copy_address(&reader->hold, reader->copy->texts);
}

/*
 * A supply of columns to a pipeline of these options, in its place; NULL: it has failed, and is the table's.
 */
static GhSupplyRows *
begin_supply(Reader *reader, const GhPipelineOptions *options, GhRef *shared)
{
	GhDeviceRun *device = reader->fragment->device;
	GhSupply   *supply = palloc0(sizeof(GhSupply));

	Assert(CurrentMemoryContext == device->context);
	reader->table->supply = supply;
	gh_device_register_tables(reader->fragment);
	if (!gh_supply_begin(supply, device->engine, options, shared, NULL, device->context))
		return NULL;
	gh_device_refuse_rows(supply);
	supply->timing = reader->fragment->timing;
	return gh_supply_open_rows(supply, reader->side->program);
}

/* All has been supplied, and the table was made of it. */
static void
end_supply(Reader *reader)
{
	GhFragment *fragment = reader->fragment;
	GhSupply   *supply = reader->table->supply;

	gh_device_keep_counts(fragment, supply, &fragment->counts.build_time);
	gh_supply_end(supply);
	reader->table->supply = NULL;
}

/* The copy's entries become a table, which stays if there is room; false: the supply has failed. */
static bool
make_table(Reader *reader, const GhTableSource *source)
{
	GhFragment *fragment = reader->fragment;
	GhDeviceTable *table = reader->table;
	GhVector	vectors[GH_PROGRAM_VECTORS_MAX];
	GhPipelineOptions options;
	GhSupplyRows *rows;

	gh_side_options((GhInnerSide *) reader->side, &options);
	options.sink.table.expected = reader->copy->rows;
	entries_from(reader, 0, vectors);
	rows = begin_supply(reader, &options, &table->root);
	if (rows == NULL || !gh_supply_columns(rows, vectors, texts_of(reader), reader->copy->rows) ||
		!gh_supply_close_rows(rows))
		return false;
	gh_supply_free_buffers(table->supply);
	if (!gh_device_finish_table(fragment, (int) (table - fragment->device->tables), NULL))
		return false;
	table->kept = gh_resident_table_keep(source, table->root, table->rows);
	end_supply(reader);
	return true;
}

/* ------------------------------------------------------------- what has changed */

/* The key is changed; values: by column of it; entry: of the copy, or GH_NO_ENTRY. */
static void
add_key(Reader *reader, uint64 key, const uint64 *values, uint64 entry)
{
	bool		found;
	ChangedKey *changed = changed_keys_insert(reader->keys, key, &found);

	if (found)
		return;
	changed->entry = entry;
	changed->number = reader->keys->members - 1;
	if (changed->number == reader->parts_room)
	{
		reader->parts_room = Max(reader->parts_room * 2, 1024);
		for (int k = 0; k < reader->copy->nkeys; k++)
			reader->parts[k] = reader->parts[k] == NULL ? palloc(sizeof(uint64) * reader->parts_room) :
				repalloc_huge(reader->parts[k], sizeof(uint64) * reader->parts_room);
	}
	for (int k = 0; k < reader->copy->nkeys; k++)
		reader->parts[k][changed->number] = values[k];
}

/* Keys of entries on blocks that the copy is not right for. */
static void
add_stale_keys(Reader *reader)
{
	const uint32 *order = gh_copy_address(&reader->hold, reader->copy->order);
	const uint32 *starts = gh_copy_address(&reader->hold, reader->copy->starts);
	const uint64 *keys = gh_copy_address(&reader->hold, reader->copy->keys);
	const uint64 *columns[GH_COPY_KEYS_MAX];
	uint64		values[GH_COPY_KEYS_MAX];

	for (int k = 0; k < reader->copy->nkeys; k++)
		columns[k] = gh_copy_address(&reader->hold, reader->copy->columns[k].low);
	for (BlockNumber block = gh_copy_next_stale(&reader->blocks, 0); block < reader->blocks.copied;
		 block = gh_copy_next_stale(&reader->blocks, block + 1))
	{
		CHECK_FOR_INTERRUPTS();
		for (uint32 i = starts[block]; i < starts[block + 1]; i++)
		{
			for (int k = 0; k < reader->copy->nkeys; k++)
				values[k] = columns[k][order[i]];
			add_key(reader, keys[order[i]], values, order[i]);
		}
	}
}

/* The key of the row in the slot becomes a changed one; false: it has none. */
static bool
add_key_of_row(Reader *reader, const TupleTableSlot *slot)
{
	uint64		values[GH_COPY_KEYS_MAX];
	uint64		key = 0;

	for (int k = 0; k < reader->copy->nkeys; k++)
	{
		const GhCopyColumn *column = &reader->copy->columns[k];
		uint8		null;
		GhVector	one = {&values[k], NULL, &null};
		int			at = column->attno - 1;

		if (slot->tts_isnull[at] || !gh_store_value(&column->column, slot->tts_values[at], false, NULL, &one, 0))
			return false;
		key = gh_key_part_add(key, &(GhKeyPart) {.bits = column->bits}, values[k]);
	}
	add_key(reader, key, values, GH_NO_ENTRY);
	return true;
}

/* The rows of the page that is pinned; false: the supply has failed. */
static bool
supply_page(Reader *reader, GhPages *pages, GhSupplyRows *rows)
{
	TupleTableSlot *slot = ((ScanState *) reader->side->scan)->ss_ScanTupleSlot;
	const GhProgram *program = reader->side->program;
	const GhColumn *columns = gh_program_columns(program);
	Datum		values[GH_PROGRAM_VECTORS_MAX];
	bool		nulls[GH_PROGRAM_VECTORS_MAX];

	for (int i = 0; i < pages->ntuples; i++)
	{
		gh_pages_store(pages, pages->buffer, pages->block, pages->lines[i], slot);
		slot_getallattrs(slot);
		if (!add_key_of_row(reader, slot))
			continue;
		for (uint32 v = 0; v < program->ncolumns; v++)
		{
			values[v] = slot->tts_values[columns[v].attribute - 1];
			nulls[v] = slot->tts_isnull[columns[v].attribute - 1];
		}
		if (!gh_supply_row(rows, values, nulls))
			return false;
		reader->heap_rows++;
	}
	pgstat_count_index_tuples(pages->relation, pages->ntuples);
	return true;
}

/* Rows of blocks that the copy is not right for, in a scan of its own; false: the supply has failed. */
static bool
supply_heap(Reader *reader, GhSupplyRows *rows)
{
	const EState *estate = reader->fragment->css.ss.ps.state;
	TableScanDesc scan;
	GhPages		pages = {0};
	bool		supplied = true;

	if (other_blocks(reader) == 0)
		return true;
	scan = table_beginscan_strat(reader->side->relation, estate->es_snapshot, 0, NULL, true, false);
	gh_pages_init(&pages, CurrentMemoryContext);
	gh_pages_of_scan(&pages, scan);
	pages.has_blocks = gh_copy_count_right;
	pages.has_blocks_arg = &reader->blocks;
	while (supplied && gh_pages_next(&pages, GH_PAGES_AHEAD_MAX))
	{
		CHECK_FOR_INTERRUPTS();
		if (!pages.elsewhere)
			supplied = supply_page(reader, &pages, rows);
	}
	ExecClearTuple(((ScanState *) reader->side->scan)->ss_ScanTupleSlot);
	gh_pages_park(&pages);
	gh_pages_end(&pages);
	table_endscan(scan);
	return supplied;
}

/* The first of the copy's entries, which ascend, whose key is not less. */
static uint64
first_entry(const Reader *reader, const uint64 *keys, const ChangedKey *changed)
{
	uint64		key = changed->key;
	uint64		first = 0;
	uint64		end = reader->copy->rows;

	/* a look through all takes some cache misses */
	if (changed->entry != GH_NO_ENTRY)
	{
		first = changed->entry;
		while (first > 0 && keys[first - 1] == key)
			first--;
		return first;
	}
	while (first < end)
	{
		uint64		middle = first + (end - first) / 2;

		if ((int64) keys[middle] < (int64) key)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* The entries of changed keys that are on right blocks; false: the supply has failed. */
static bool
supply_right_entries(Reader *reader, GhSupplyRows *rows)
{
	const uint32 *blocks = gh_copy_address(&reader->hold, reader->copy->blocks);
	const uint64 *keys = gh_copy_address(&reader->hold, reader->copy->keys);
	GhVector	vectors[GH_PROGRAM_VECTORS_MAX];
	changed_keys_iterator iterator;
	const ChangedKey *key;

	changed_keys_start_iterate(reader->keys, &iterator);
	while ((key = changed_keys_iterate(reader->keys, &iterator)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		for (uint64 at = first_entry(reader, keys, key); at < reader->copy->rows && keys[at] == key->key; at++)
		{
			if (!gh_copy_is_right(&reader->blocks, blocks[at]))
				continue;
			entries_from(reader, at, vectors);
			if (!gh_supply_columns(rows, vectors, texts_of(reader), 1))
				return false;
		}
	}
	return true;
}

/*
 * Makes a table of this query's own of what was supplied, if there is anything; false: the supply has failed.
 */
static bool
finish_table(Reader *reader, GhSupplyRows *rows, GhTable **table)
{
	const GhPipelineEngine *pipelines = reader->fragment->device->engine->pipelines;
	GhSupply   *supply = reader->table->supply;
	GhMadeTable made = {0};
	GhStatus	status = GH_OK;

	if (!gh_supply_close_rows(rows))
		return false;
	gh_supply_free_buffers(supply);
	if (supply->counts.counted > 0)
		while ((status = pipelines->make_table(supply->pipeline, &made, &supply->error)) == GH_STOPPED)
			gh_serve_interrupt();
	supply->failed = status != GH_OK;
	if (supply->failed)
		return false;
	*table = made.table;
	end_supply(reader);
	return true;
}

/* All rows of changed keys, which these become as they are found. */
static bool
make_instead(Reader *reader)
{
	GhPipelineOptions options;
	GhSupplyRows *rows;

	gh_side_options((GhInnerSide *) reader->side, &options);
	options.sink.table.expected = reader->keys->members;
	rows = begin_supply(reader, &options, NULL);
	return rows != NULL && supply_heap(reader, rows) && supply_right_entries(reader, rows) &&
		finish_table(reader, rows, &reader->table->instead);
}

/* And the keys. */
static bool
make_changed(Reader *reader)
{
	const GhProgram *program = reader->side->program;
	uint64		nkeys = reader->keys->members;
	uint64	   *nothing = palloc0_array(uint64, Max(nkeys, 1));
	uint8	   *none = palloc(Max(nkeys, 1));
	GhVector	vectors[GH_PROGRAM_VECTORS_MAX];
	GhPipelineOptions options;
	GhSupplyRows *rows;

	memset(none, 1, Max(nkeys, 1));
	for (uint32 v = 0; v < program->ncolumns; v++)
	{
		int			source = reader->sources[v];
		bool		is_key = source < reader->copy->nkeys;

		vectors[v] = (GhVector) {is_key ? reader->parts[source] : nothing, nothing, is_key ? NULL : none};
	}
	gh_side_options((GhInnerSide *) reader->side, &options);
	options.sink.table.nkept = 0;
	options.sink.table.matches = GH_MATCHES_ANY;
	options.sink.table.expected = nkeys;
	if (nkeys < GH_CHANGED_PLACES * GH_FILL_MAX_DEFAULT)
	{
		options.sink.table.fill_max = Max(nkeys, 1) / GH_CHANGED_PLACES;
		options.sink.table.fill_min = options.sink.table.fill_max / 4;
	}
	rows = begin_supply(reader, &options, NULL);
	return rows != NULL && gh_supply_columns(rows, vectors, NULL, nkeys) &&
		finish_table(reader, rows, &reader->table->changed);
}

static bool
make_overlay(Reader *reader)
{
	reader->keys = changed_keys_create(CurrentMemoryContext, 1024, NULL);
	add_stale_keys(reader);
	if (!make_instead(reader))
		return false;
	return reader->keys->members == 0 || make_changed(reader);
}

/* ------------------------------------------------------------------ its use */

/* Whether what has changed is known to be little, and can be told apart within work_mem. */
static bool
may_tell_apart(const Reader *reader)
{
	double		changed = rows_of_others(reader) + gh_copy_stale_rows(&reader->hold, &reader->blocks);

	return reader->fragment->member == NULL && reader->copy->ascending && pays(reader, changed) &&
		changed * GH_CHANGED_BYTES(reader->copy->nkeys) <= get_hash_memory_limit();
}

/* Bytes of the device for the table, at most about. */
static uint64
table_bytes(const Reader *reader)
{
	uint64		bytes = reader->copy->rows * GH_ENTRY_BYTES(reader->copy->ncolumns);
	bool		texts = false;

	for (uint32 v = 0; v < reader->side->program->ncolumns; v++)
		texts |= reader->copy->columns[reader->sources[v]].held.value_class == GH_CLASS_TEXT;
	return bytes + (texts ? reader->copy->text_bytes : 0);
}

/* The table that has stayed; false: there is none. */
static bool
borrow(Reader *reader, const GhTableSource *source)
{
	GhFragment *fragment = reader->fragment;
	GhDeviceTable *table = reader->table;
	GhError		error;

	gh_device_register_tables(fragment);
	table->kept = gh_resident_table_borrow(source, &table->root, &table->rows);
	if (table->kept && gh_device_attach(fragment->device, table, table->root, 0) &&
		gh_device_note_table(fragment, (int) (table - fragment->device->tables), NULL, &error))
	{
		fragment->counts.resident_tables++;
		return true;
	}
	gh_device_drop_table(fragment->device, table);
	return false;
}

/* As gh_device_copy_table; the index is open. */
static GhCopyTable
use_copy(Reader *reader)
{
	GhFragment *fragment = reader->fragment;
	GhDeviceTable *table = reader->table;
	int			number = (int) (table - fragment->device->tables);
	uint8		digest[PG_SHA256_DIGEST_LENGTH];
	const GhTableSource *source;
	bool		borrowed;

	if (!ask(reader) || !gh_device_digest(fragment, (GhInnerSide *) reader->side, digest))
		return GH_COPY_NOT_USED;
	source = gh_resident_table_source_of_copy(reader->index, reader->seen.generation, fragment->device->number, digest);
	borrowed = borrow(reader, source);
	if (borrowed && is_all_right(reader))
		return GH_COPY_USED;
	if (!attach(reader) || (!is_all_right(reader) && !may_tell_apart(reader)))
	{
		gh_device_drop_table(fragment->device, table);
		fragment->counts.resident_tables -= borrowed;
		return GH_COPY_NOT_USED;
	}
	/* one that is made of pages, and is right, is there for nothing */
	if (!borrowed && (gh_device_borrow_table(fragment, number, NULL) ||
					  !gh_resident_table_may_stay(source, table_bytes(reader))))
		return table->table != NULL ? GH_COPY_OTHER : GH_COPY_NOT_USED;
	if ((!borrowed && !make_table(reader, source)) || (!is_all_right(reader) && !make_overlay(reader)))
		return GH_COPY_FAILED;
	return GH_COPY_USED;
}

/*
 * Takes the copy of the inner side's index for a table, if there is one that is right for nearly all of the
 * relation, and if what it is not right for can be told apart: not by participants of a parallel query.
 */
GhCopyTable
gh_device_copy_table(GhFragment *fragment, int number)
{
	GhDeviceTable *table = &fragment->device->tables[number];
	GhLowerJoin *lower = table->level->lower;
	MemoryContext saved;
	Reader	   *reader;
	volatile GhCopyTable used = GH_COPY_NOT_USED;

	if (!may_use(fragment, table))
		return GH_COPY_NOT_USED;
	lower->methods->tell_copy(lower, 0, 0, 0);
	if (gh_fault_pass(GH_FAULT_POINT_INDEX_COPY) != GH_FAULT_NONE)
		return GH_COPY_NOT_USED;
	saved = MemoryContextSwitchTo(fragment->device->context);
	reader = palloc0(sizeof(Reader));
	reader->fragment = fragment;
	reader->table = table;
	reader->side = table->side;
	reader->index = index_open(lower->index, AccessShareLock);
	PG_TRY();
	{
		used = use_copy(reader);
	}
	PG_FINALLY();
	{
		gh_shared_copy_close(&reader->hold);
	}
	PG_END_TRY();
	index_close(reader->index, NoLock);
	MemoryContextSwitchTo(saved);
	table->copied = used == GH_COPY_USED || used == GH_COPY_FAILED;
	if (used == GH_COPY_USED)
	{
		gh_shared_copy_count_use(reader->place);
		lower->methods->tell_copy(lower, reader->blocks.right, other_blocks(reader), reader->heap_rows);
	}
	return used;
}
