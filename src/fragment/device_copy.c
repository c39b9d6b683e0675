/*
 * device_copy.c
 *		The copy of an index on the device as the table of a join (../index/README, "On a device"): nothing of the
 *		inner side is read but what has changed.
 *
 * The table has all of the index's entries: the block of each one's row, and the columns.  It stays on the device as
 * one that is made of pages does, but for as long as the copy is known: whatever becomes of the relation, it is the
 * copy's (../store/resident_tables.c).  Each query asks for the blocks that it is right for, in the query's snapshot
 * (../index/README, "Copies").  Where there are others, keys are told apart: those of which an entry is on such a
 * block, or a row that the query sees there, are changed.  All of their rows go into a small table of this query,
 * those of entries on right blocks among them, and their keys into another one; probes look there first
 * (GhProbe.changed).  Both are made on the device, of the table's own rows and of the rows that were read on those
 * blocks.  Where that would take longer than to make the table of pages that are on the device
 * (gh_copy_tells_apart), it is made of pages, as ever.
 *
 * No query makes a copy for this: gpuhash_prewarm() of the index does.  One that there is is made again in the
 * background, where it is not right for many blocks.
 *
 * The order is that of the proof: the query's snapshot is held, then the copy is asked.  Serializable
 * transactions do without, since no scan begins that would lock the relation.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/datum.h"
#include "utils/rel.h"

#include "compat.h"
#include "fragment/inner_side.h"
#include "gpuhash.h"
#include "service/faults.h"
#include "service/service.h"
#include "store/index_copies.h"

/*
 * The programs that tell keys apart have a vector of nothing, which rows of the table are not looked up by; then the block, and
 * the columns, as the table keeps them.
 */
#define GH_APART_VARNO 1
#define NOTHING_VECTOR 0
#define VECTOR_OF(kept) ((kept) + 1)

/* Of the host for a row that was read, beside its values, at most about. */
#define GH_ROW_BYTES 64

/* A row of a block that the copy is not right for, by the copy's columns. */
typedef struct ReadRow
{
	struct ReadRow *next;
	Datum	   *values;			/* as the programs that tell keys apart have them */
	bool	   *nulls;
} ReadRow;

typedef struct Reader
{
	GhFragment *fragment;
	GhDeviceTable *table;
	const GhInnerSide *side;
	Relation	index;
	GhIndexCopy copy;			/* the one on the device: its columns, generation, blocks */
	GhCopyBlocks blocks;
	/* what has changed */
	GhProgram  *program;
	GhKeyPart	parts[GH_COPY_KEYS_MAX];
	GhMarks    *marks;			/* none is set: all rows of the table are without a match */
	GhTable    *stale;			/* blocks that the copy is not right for and has entries on; NULL: there are none */
	ReadRow    *rows;
	uint64		nrows;
} Reader;

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
 * A probe of that table: by whole keys, of which the copy has all bits where there is one column, and with what it keeps.
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

/* Whether what has changed is told apart in less time than the table is made of pages, and within work_mem. */
static bool
may_tell_apart(const Reader *reader)
{
	double		rows = (double) reader->table->rows;
	double		changed = (double) other_blocks(reader) * rows / Max(reader->copy.nblocks, 1);

	return reader->fragment->member == NULL && !gh_lower_fills_inner(reader->table->level->lower) &&
		gh_copy_tells_apart(rows, changed, reader->table->level->lower->children[GH_OUTER]->plan->plan_rows) &&
		changed * (GH_ROW_BYTES + 2 * sizeof(Datum) * reader->copy.ncolumns) <= get_hash_memory_limit();
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

/* ------------------------------------------------------------- what has changed */

/* Reads the rows of the page that is pinned, by the columns of the programs. */
static void
read_page(Reader *reader, GhPages *pages)
{
	TupleTableSlot *slot = ((ScanState *) reader->side->scan)->ss_ScanTupleSlot;
	int			nvectors = VECTOR_OF(GH_DEVICE_COPY_COLUMN(reader->copy.ncolumns));

	for (int i = 0; i < pages->ntuples; i++)
	{
		ReadRow    *row = palloc(sizeof(ReadRow));

		gh_pages_store(pages, pages->buffer, pages->block, pages->lines[i], slot);
		slot_getallattrs(slot);
		row->values = palloc0(sizeof(Datum) * nvectors);
		row->nulls = palloc(sizeof(bool) * nvectors);
		row->nulls[NOTHING_VECTOR] = row->nulls[VECTOR_OF(GH_DEVICE_COPY_BLOCK)] = true;
		for (int c = 0; c < reader->copy.ncolumns; c++)
		{
			int			attno = reader->copy.columns[c].attno;
			Form_pg_attribute attribute = TupleDescAttr(slot->tts_tupleDescriptor, attno - 1);
			int			vector = VECTOR_OF(GH_DEVICE_COPY_COLUMN(c));

			row->nulls[vector] = slot->tts_isnull[attno - 1];
			if (!row->nulls[vector])
				row->values[vector] = datumCopy(slot->tts_values[attno - 1], attribute->attbyval, attribute->attlen);
		}
		row->next = reader->rows;
		reader->rows = row;
		reader->nrows++;
	}
	pgstat_count_index_tuples(pages->relation, pages->ntuples);
}

/* Rows of blocks that the copy is not right for, in a scan of its own. */
static void
read_others(Reader *reader)
{
	const EState *estate = reader->fragment->css.ss.ps.state;
	TableScanDesc scan;
	GhPages		pages = {0};

	if (other_blocks(reader) == 0)
		return;
	scan = table_beginscan_strat(reader->side->relation, estate->es_snapshot, 0, NULL, true, false);
	gh_pages_init(&pages, CurrentMemoryContext);
	gh_pages_of_scan(&pages, scan);
	pages.has_blocks = gh_copy_count_right;
	pages.has_blocks_arg = &reader->blocks;
	while (gh_pages_next(&pages, GH_PAGES_AHEAD_MAX))
	{
		CHECK_FOR_INTERRUPTS();
		if (!pages.elsewhere)
			read_page(reader, &pages);
	}
	ExecClearTuple(((ScanState *) reader->side->scan)->ss_ScanTupleSlot);
	gh_pages_park(&pages);
	gh_pages_end(&pages);
	table_endscan(scan);
}

/* The program whose vectors are nothing, the block and the columns; false: there is none. */
static bool
make_program(Reader *reader)
{
	int			nvectors = VECTOR_OF(GH_DEVICE_COPY_COLUMN(reader->copy.ncolumns));
	TupleDesc	desc = CreateTemplateTupleDesc(nvectors);
	GhTranslation *translation;

	TupleDescInitEntry(desc, NOTHING_VECTOR + 1, NULL, INT8OID, -1, 0);
	TupleDescInitEntry(desc, VECTOR_OF(GH_DEVICE_COPY_BLOCK) + 1, NULL, INT8OID, -1, 0);
	for (int c = 0; c < reader->copy.ncolumns; c++)
		TupleDescCopyEntry(desc, VECTOR_OF(GH_DEVICE_COPY_COLUMN(c)) + 1, RelationGetDescr(reader->side->relation),
						   reader->copy.columns[c].attno);
	gh_finish_desc(desc);
	translation = gh_translate_begin(desc, GH_APART_VARNO);
	for (int v = 0; v < nvectors; v++)
	{
		GhOperand	operand = {0};

		if (!gh_translate_attribute(translation, v + 1, &operand) || operand.vector != v)
			return false;
	}
	for (int k = 0; k < reader->copy.nkeys; k++)
		reader->parts[k] = (GhKeyPart) {.vector = VECTOR_OF(GH_DEVICE_COPY_COLUMN(k)),.bits = reader->copy.columns[k].bits};
	reader->program = gh_translate_end(translation);
	return reader->program != NULL;
}

static const GhKeyPart nothing_part = {.vector = NOTHING_VECTOR,.bits = GH_KEY_BITS};
static const GhKeyPart block_part = {.vector = VECTOR_OF(GH_DEVICE_COPY_BLOCK),.bits = GH_KEY_BITS};

/* Options of a pipeline that makes a table by these parts of rows that come as columns. */
static void
make_options(const Reader *reader, const GhKeyPart *parts, int nparts, double expected, GhPipelineOptions *options)
{
	GhTableOptions table;

	gh_stage_options(NULL, reader->program, options);
	options->source.natts = reader->program->ncolumns;
	gh_device_options(reader->fragment->device->engine, reader->fragment->device->number, options, &table);
	gh_stage_table_sink(&table, &options->sink);
	options->sink.table.nparts = nparts;
	options->sink.table.parts = parts;
	options->sink.table.matches = GH_MATCHES_ANY;
	options->sink.table.expected = (uint64) Max(expected, 1);
	/* one of few places has these looked up at the same few all the time, which a device's memory gives one by one */
	if (expected < GH_APART_PLACES * GH_FILL_MAX_DEFAULT)
	{
		options->sink.table.fill_max = Max(expected, 1) / GH_APART_PLACES;
		options->sink.table.fill_min = options->sink.table.fill_max / 4;
	}
}

/* Steps that are probes and nothing else: so many, zeroed, of which the first one fills all vectors but for that of nothing. */
static GhProbe *
add_probes(GhPipelineOptions *options, int nprobes)
{
	GhProbe    *probes = palloc0(sizeof(GhProbe) * nprobes);
	GhStep	   *steps = palloc0(sizeof(GhStep) * nprobes);

	for (int p = 0; p < nprobes; p++)
		steps[p] = (GhStep) {.end = options->program->ninstructions,.probe = p + 1};
	options->source.natts = NOTHING_VECTOR + 1;
	options->nsteps = options->nprobes = nprobes;
	options->steps = steps;
	options->probes = probes;
	return probes;
}

/* The first probe is of the copy's table, whose rows come out of it all. */
static void
probe_all_rows(const Reader *reader, GhProbe *probe)
{
	int			nkept = GH_DEVICE_COPY_COLUMN(reader->copy.ncolumns);
	GhProbeFill *fills = palloc(sizeof(GhProbeFill) * nkept);

	for (int k = 0; k < nkept; k++)
		fills[k] = (GhProbeFill) {.column = VECTOR_OF(k),.kept = k};
	*probe = (GhProbe)
	{
		.table = reader->table->table,.kind = GH_PROBE_INNER,.nparts = 1,.parts = &nothing_part,.nfills = nkept,.fills = fills,
			.marks = reader->marks
	};
}

static GhProbe
probe_of(GhProbeKind kind, GhTable *table, const GhKeyPart *parts, int nparts)
{
	return (GhProbe) {.kind = kind,.table = table,.parts = parts,.nparts = nparts};
}

/*
 * A supply to a pipeline of these options, in the table's place; NULL: it has failed, and is the table's.
 */
static GhSupplyRows *
begin_supply(Reader *reader, const GhPipelineOptions *options)
{
	GhDeviceRun *device = reader->fragment->device;
	GhSupply   *supply = palloc0(sizeof(GhSupply));
	GhSupplyRows *rows;

	Assert(CurrentMemoryContext == device->context);
	reader->table->supply = supply;
	if (!gh_supply_begin(supply, device->engine, options, NULL, NULL, device->context))
		return NULL;
	gh_device_refuse_rows(supply);
	supply->timing = reader->fragment->timing;
	rows = gh_supply_open_rows(supply, reader->program);
	if (rows != NULL)
		gh_supply_rows_enter(rows, options->nsteps);
	return rows;
}

/*
 * Makes a table of this query's own of what was supplied, if there is anything; false: the supply has failed.
 */
static bool
finish_table(Reader *reader, GhTable **table)
{
	GhFragment *fragment = reader->fragment;
	GhSupply   *supply = reader->table->supply;
	GhMadeTable made = {0};
	GhStatus	status = GH_OK;

	gh_supply_free_buffers(supply);
	if (supply->counts.counted > 0)
		while ((status = fragment->device->engine->pipelines->make_table(supply->pipeline, &made, &supply->error)) == GH_STOPPED)
			gh_serve_interrupt();
	supply->failed = status != GH_OK;
	if (supply->failed)
		return false;
	*table = made.table;
	gh_device_keep_counts(fragment, supply, &fragment->counts.build_time);
	gh_supply_end(supply);
	reader->table->supply = NULL;
	return true;
}

/* The blocks that the copy is not right for, and has entries on. */
static bool
make_stale(Reader *reader)
{
	GhPipelineOptions options;
	GhSupplyRows *rows;
	Datum	   *values = palloc0(sizeof(Datum) * reader->program->ncolumns);
	bool	   *nulls = palloc(sizeof(bool) * reader->program->ncolumns);

	memset(nulls, true, sizeof(bool) * reader->program->ncolumns);
	nulls[VECTOR_OF(GH_DEVICE_COPY_BLOCK)] = false;
	make_options(reader, &block_part, 1, reader->blocks.copied - reader->blocks.right, &options);
	rows = begin_supply(reader, &options);
	if (rows == NULL)
		return false;
	for (BlockNumber block = gh_copy_next_stale(&reader->blocks, 0); block < reader->blocks.copied;
		 block = gh_copy_next_stale(&reader->blocks, block + 1))
	{
		CHECK_FOR_INTERRUPTS();
		values[VECTOR_OF(GH_DEVICE_COPY_BLOCK)] = Int64GetDatum((int64) block);
		if (!gh_supply_row(rows, values, nulls))
			return false;
	}
	return gh_supply_close_rows(rows) && finish_table(reader, &reader->stale);
}

/* The rows that were read, and all of the copy's table that pass the probes, into a table. */
static bool
supply_all(Reader *reader, const GhPipelineOptions *options, GhTable **table)
{
	GhSupplyRows *rows = begin_supply(reader, options);

	if (rows == NULL)
		return false;
	for (const ReadRow *row = reader->rows; row != NULL; row = row->next)
	{
		CHECK_FOR_INTERRUPTS();
		if (!gh_supply_row(rows, row->values, row->nulls))
			return false;
	}
	return gh_supply_close_rows(rows) &&
		(options->nprobes == 0 || gh_supply_unmatched(reader->table->supply, 0, reader->table->rows)) &&
		finish_table(reader, table);
}

/* Keys of rows that were read, and of entries on blocks that the copy is not right for. */
static bool
make_changed(Reader *reader, double expected)
{
	GhPipelineOptions options;
	GhProbe    *probes;

	make_options(reader, reader->parts, reader->copy.nkeys, expected, &options);
	if (reader->stale != NULL)
	{
		probes = add_probes(&options, 2);
		probe_all_rows(reader, &probes[0]);
		probes[1] = probe_of(GH_PROBE_SEMI, reader->stale, &block_part, 1);
	}
	return supply_all(reader, &options, &reader->table->changed);
}

/* The rows of these keys: those that were read, and entries on right blocks. */
static bool
make_instead(Reader *reader, double expected)
{
	int			nkept = GH_DEVICE_COPY_COLUMN(reader->copy.ncolumns);
	GhKept	   *kept = palloc0(sizeof(GhKept) * nkept);
	GhPipelineOptions options;
	GhProbe    *probes;

	make_options(reader, reader->parts, reader->copy.nkeys, expected, &options);
	kept[GH_DEVICE_COPY_BLOCK] = (GhKept) {.value_class = GH_CLASS_INT,.bytes = sizeof(uint64)};
	for (int c = 0; c < reader->copy.ncolumns; c++)
		kept[GH_DEVICE_COPY_COLUMN(c)] = reader->copy.columns[c].held;
	for (int k = 0; k < nkept; k++)
		kept[k].vector = VECTOR_OF(k);
	options.sink.table.nkept = nkept;
	options.sink.table.kept = kept;
	options.sink.table.matches = GH_MATCHES_ALL;
	probes = add_probes(&options, reader->stale != NULL ? 3 : 2);
	probe_all_rows(reader, &probes[0]);
	probes[1] = probe_of(GH_PROBE_SEMI, reader->table->changed, reader->parts, reader->copy.nkeys);
	if (reader->stale != NULL)
		probes[2] = probe_of(GH_PROBE_ANTI, reader->stale, &block_part, 1);
	return supply_all(reader, &options, &reader->table->instead);
}

/* Tells keys apart; false: a supply has failed. */
static bool
tell_apart(Reader *reader)
{
	double		rows = (double) reader->table->rows;
	double		expected;

	read_others(reader);
	if (gh_copy_next_stale(&reader->blocks, 0) < reader->blocks.copied && !make_stale(reader))
		return false;
	expected = reader->nrows + rows * (reader->blocks.copied - reader->blocks.right) / Max(reader->blocks.copied, 1);
	return make_changed(reader, expected) && (reader->table->changed == NULL || make_instead(reader, expected));
}

/* What is of no use once the tables are made, or cannot be. */
static void
drop_parts(Reader *reader)
{
	const GhEngine *engine = reader->fragment->device->engine;

	if (reader->table->supply != NULL && !reader->table->supply->failed)
	{
		gh_supply_end(reader->table->supply);
		reader->table->supply = NULL;
	}
	if (reader->stale != NULL)
		engine->table_destroy(reader->stale);
	if (reader->marks != NULL)
		engine->pipelines->marks_destroy(reader->marks);
	reader->stale = NULL;
	reader->marks = NULL;
}

/* As tell_apart; a program that cannot be made leaves the copy unused, as the other tables' keys would. */
static GhCopyTable
make_overlay(Reader *reader)
{
	const GhDeviceRun *device = reader->fragment->device;
	volatile bool told = false;
	GhHost		host;
	GhError		error;

	gh_host_init(&host, device->context);
	if (!make_program(reader) ||
		device->engine->pipelines->marks_create(&host, reader->table->table, &reader->marks, &error) != GH_OK)
		return GH_COPY_NOT_USED;
	PG_TRY();
	{
		told = tell_apart(reader);
	}
	PG_FINALLY();
	{
		drop_parts(reader);
	}
	PG_END_TRY();
	return told ? GH_COPY_USED : GH_COPY_FAILED;
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
		used = make_overlay(reader);
	if (used == GH_COPY_NOT_USED)
	{
		gh_device_drop_table(fragment->device, reader->table);
		fragment->counts.resident_tables--;
	}
	return used;
}

/* Of a table that another participant has borrowed: where its columns are; false: they are not there. */
bool
gh_device_map_copy(GhFragment *fragment, int number)
{
	GhDeviceTable *table = &fragment->device->tables[number];
	MemoryContext saved = MemoryContextSwitchTo(fragment->device->context);
	Reader		reader = {.fragment = fragment,.table = table};
	bool		mapped = gh_device_prepare_tables(fragment);

	if (mapped)
	{
		reader.side = table->side;
		reader.index = index_open(table->level->lower->index, AccessShareLock);
		mapped = map_columns(&reader);
		index_close(reader.index, NoLock);
	}
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
		Oid			oid = device->tables[i].level->lower->index;
		Relation	index;

		if (!OidIsValid(oid))
			continue;
		index = index_open(oid, AccessShareLock);
		has = gh_index_copy_methods()->look_up_on_device(index, device->number, &generation, &nblocks);
		index_close(index, NoLock);
	}
	return has;
}

/*
 * Takes the copy of the inner side's index for a table, if the device has one that is right for nearly all of the
 * relation, and if what it is not right for can be told apart: not by participants of a parallel query.
 */
GhCopyTable
gh_device_copy_table(GhFragment *fragment, int number)
{
	GhDeviceTable *table = &fragment->device->tables[number];
	GhLowerJoin *lower = table->level->lower;
	MemoryContext saved;
	Reader	   *reader;
	GhCopyTable used;

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
	reader->index = index_open(lower->index, AccessShareLock);
	used = use_copy(reader);
	index_close(reader->index, NoLock);
	MemoryContextSwitchTo(saved);
	table->copied = used == GH_COPY_USED || used == GH_COPY_FAILED;
	if (used == GH_COPY_USED)
		lower->methods->tell_copy(lower, reader->blocks.right, other_blocks(reader), reader->nrows);
	return used;
}
