/*
 * device_apart.c
 *		What the copy of an index on a device is not right for, told apart for a query.
 *
 * Changed keys are those of which an entry is on a block that the copy is not right for, or a row that the query sees
 * there.  Their rows are those that were read on these blocks, and those of their entries on right blocks.  Four pipelines
 * find them on the device:
 *
 *	stale		the blocks that the copy is not right for, into a table
 *	keys		all rows of the copy's table that have one of these blocks, and rows that were read, into groups by the key
 *	changed		these groups, into a table (GhProbe.changed)
 *	instead		these groups, joined with the copy's table, without rows of these blocks, and rows that were read, into
 *				a table (GhProbe.instead)
 *
 * Of a copy without entries on such blocks there is no first one, and keys has the rows that were read alone.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/datum.h"
#include "utils/rel.h"

#include "compat.h"
#include "fragment/device_copy.h"
#include "service/service.h"

#define GH_APART_VARNO 1

typedef GhCopyReader Reader;

/* ------------------------------------------------------------- rows of the host */

/* Reads the rows of the page that is pinned, by the columns of the programs. */
static void
read_page(Reader *reader, GhPages *pages)
{
	TupleTableSlot *slot = ((ScanState *) reader->side->scan)->ss_ScanTupleSlot;
	int			ncolumns = reader->copy.ncolumns;

	for (int i = 0; i < pages->ntuples; i++)
	{
		GhReadRow    *row = palloc(sizeof(GhReadRow));

		gh_pages_store(pages, pages->buffer, pages->block, pages->lines[i], slot);
		slot_getallattrs(slot);
		row->values = palloc0(sizeof(Datum) * (ncolumns + 1));
		row->nulls = palloc(sizeof(bool) * (ncolumns + 1));
		row->nulls[ncolumns] = true;
		for (int c = 0; c < ncolumns; c++)
		{
			int			attno = reader->copy.columns[c].attno;
			Form_pg_attribute attribute = TupleDescAttr(slot->tts_tupleDescriptor, attno - 1);

			row->nulls[c] = slot->tts_isnull[attno - 1];
			if (!row->nulls[c])
				row->values[c] = datumCopy(slot->tts_values[attno - 1], attribute->attbyval, attribute->attlen);
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

	if (gh_copy_other_blocks(reader) == 0)
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

/* The program whose vectors are the columns and the block; false: there is none. */
static bool
make_program(Reader *reader)
{
	int			ncolumns = reader->copy.ncolumns;
	TupleDesc	desc = CreateTemplateTupleDesc(ncolumns + 1);
	GhTranslation *translation;
	GhOperand	nothing = {0};

	for (int c = 0; c < ncolumns; c++)
		TupleDescCopyEntry(desc, c + 1, RelationGetDescr(reader->side->relation), reader->copy.columns[c].attno);
	TupleDescInitEntry(desc, ncolumns + 1, NULL, INT8OID, -1, 0);
	gh_finish_desc(desc);
	translation = gh_translate_begin(desc, GH_APART_VARNO);
	for (int v = 0; v <= ncolumns; v++)
	{
		GhOperand	operand = {0};

		if (!gh_translate_attribute(translation, v + 1, &operand) || operand.vector != v)
			return false;
	}
	if (!gh_add_constant(translation, GH_CLASS_INT, false, 0, 0, &nothing))
		return false;
	reader->program = gh_translate_end(translation);
	if (reader->program == NULL)
		return false;
	for (int k = 0; k < reader->copy.nkeys; k++)
		reader->parts[k] = (GhKeyPart) {.vector = k,.bits = reader->copy.columns[k].bits};
	reader->block = (GhKeyPart) {.vector = ncolumns,.bits = GH_KEY_BITS};
	reader->nothing = (GhKeyPart) {.vector = gh_final_vector(translation, &nothing),.bits = GH_KEY_BITS};
	return true;
}

/* Options of a pipeline whose rows come as columns, or are the changed keys, where these are known. */
static void
begin_options(const Reader *reader, GhPipelineOptions *options, GhTableOptions *table)
{
	gh_stage_options(NULL, reader->program, options);
	gh_device_options(reader->fragment->device->engine, reader->fragment->device->number, options, table);
	options->source.natts = reader->program->ncolumns;
	if (reader->keys != NULL)
	{
		GhGroupColumn *columns = palloc(sizeof(GhGroupColumn) * reader->copy.nkeys);

		for (int k = 0; k < reader->copy.nkeys; k++)
			columns[k] = (GhGroupColumn) {GH_GROUP_KEY, k};
		options->source.kind = GH_SOURCE_GROUPS;
		options->source.natts = reader->copy.nkeys;
		options->source.columns = columns;
		options->source.groups = reader->keys->pipeline;
	}
}

/* Likewise, of one that makes a table by these parts. */
static void
begin_table(const Reader *reader, const GhKeyPart *parts, int nparts, double expected, GhPipelineOptions *options)
{
	GhTableOptions table;

	begin_options(reader, options, &table);
	gh_stage_table_sink(&table, &options->sink);
	options->sink.table.nparts = nparts;
	options->sink.table.parts = parts;
	options->sink.table.matches = GH_MATCHES_ANY;
	options->sink.table.expected = (uint64) Max(expected, 1);
}

/*
 * Of a table of as many different keys, which are looked up for all rows: one of few places has these looked
 * up at the same few all the time, which a device's memory gives one by one.
 */
static void
spread_keys(double nkeys, GhTableSink *table)
{
	if (nkeys >= GH_APART_PLACES * GH_FILL_MAX_DEFAULT)
		return;
	table->fill_max = Max(nkeys, 1) / GH_APART_PLACES;
	table->fill_min = table->fill_max / 4;
}

/* Steps that are these probes and nothing else. */
static void
add_probes(GhPipelineOptions *options, const GhProbe *probes, int nprobes)
{
	GhStep	   *steps = palloc0(sizeof(GhStep) * nprobes);

	for (int p = 0; p < nprobes; p++)
		steps[p] = (GhStep) {.end = options->program->ninstructions,.probe = p + 1};
	options->nsteps = options->nprobes = nprobes;
	options->steps = steps;
	options->probes = probes;
}

/* A probe of the copy's table, that fills columns from one on, and the block. */
static GhProbe
probe_of_copy(const Reader *reader, int first, int end, const GhKeyPart *parts, int nparts)
{
	GhProbeFill *fills = palloc(sizeof(GhProbeFill) * (reader->copy.ncolumns + 1));
	GhProbe		probe = {.kind = GH_PROBE_INNER,.table = reader->table->table,.parts = parts,.nparts = nparts,.fills = fills};

	fills[probe.nfills++] = (GhProbeFill) {.column = reader->block.vector,.kept = GH_DEVICE_COPY_BLOCK};
	for (int c = first; c < end; c++)
		fills[probe.nfills++] = (GhProbeFill) {.column = c,.kept = GH_DEVICE_COPY_COLUMN(c)};
	return probe;
}

/* Whether its row's block is one that the copy is not right for, or none. */
static GhProbe
probe_of_stale(const Reader *reader, GhProbeKind kind)
{
	return (GhProbe) {.kind = kind,.table = reader->stale,.parts = &reader->block,.nparts = 1};
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

/* All has been supplied to it. */
static void
end_supply(Reader *reader)
{
	GhSupply   *supply = reader->table->supply;

	gh_device_keep_counts(reader->fragment, supply, &reader->fragment->counts.build_time);
	gh_supply_end(supply);
	reader->table->supply = NULL;
}

/*
 * Makes a table of this query's own of what was supplied, if there is anything; false: the supply has failed.
 */
static bool
finish_table(Reader *reader, GhTable **table)
{
	const GhPipelineEngine *pipelines = reader->fragment->device->engine->pipelines;
	GhSupply   *supply = reader->table->supply;
	GhMadeTable made = {0};
	GhStatus	status = GH_OK;

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

/* The blocks that the copy is not right for, and has entries on. */
static bool
make_stale(Reader *reader)
{
	int			ncolumns = reader->copy.ncolumns;
	GhPipelineOptions options;
	GhSupplyRows *rows;
	Datum	   *values = palloc0(sizeof(Datum) * (ncolumns + 1));
	bool	   *nulls = palloc(sizeof(bool) * (ncolumns + 1));

	memset(nulls, true, sizeof(bool) * ncolumns);
	nulls[ncolumns] = false;
	begin_table(reader, &reader->block, 1, reader->blocks.copied - reader->blocks.right, &options);
	spread_keys(reader->blocks.copied - reader->blocks.right, &options.sink.table);
	rows = begin_supply(reader, &options);
	if (rows == NULL)
		return false;
	for (BlockNumber block = gh_copy_next_stale(&reader->blocks, 0); block < reader->blocks.copied;
		 block = gh_copy_next_stale(&reader->blocks, block + 1))
	{
		CHECK_FOR_INTERRUPTS();
		values[ncolumns] = Int64GetDatum((int64) block);
		if (!gh_supply_row(rows, values, nulls))
			return false;
	}
	return gh_supply_close_rows(rows) && finish_table(reader, &reader->stale);
}

/* The rows that were read; false: the supply has failed. */
static bool
supply_read_rows(Reader *reader, GhSupplyRows *rows)
{
	for (const GhReadRow *row = reader->rows; rows != NULL && row != NULL; row = row->next)
	{
		CHECK_FOR_INTERRUPTS();
		if (!gh_supply_row(rows, row->values, row->nulls))
			return false;
	}
	return rows != NULL && gh_supply_close_rows(rows);
}

/* The changed keys as groups: of rows that were read, and of entries on blocks that the copy is not right for. */
static bool
find_keys(Reader *reader, double expected)
{
	int			nkeys = reader->copy.nkeys;
	GhRecordKey *keys = palloc0(sizeof(GhRecordKey) * nkeys);
	GhPipelineOptions options;
	GhTableOptions table;
	GhProbe		probes[2];

	begin_options(reader, &options, &table);
	for (int k = 0; k < nkeys; k++)
		keys[k] = (GhRecordKey) {.vector = k,.value_class = GH_CLASS_INT};
	options.sink.kind = GH_SINK_GROUPS;
	options.sink.groups.nkeys = nkeys;
	options.sink.groups.keys = keys;
	options.sink.groups.expected = (uint64) Max(expected, 1);
	options.sink.groups.seed = table.seed;
	if (reader->stale != NULL)
	{
		probes[0] = probe_of_copy(reader, 0, nkeys, &reader->nothing, 1);
		probes[0].marks = reader->marks;
		probes[1] = probe_of_stale(reader, GH_PROBE_SEMI);
		add_probes(&options, probes, 2);
		options.source.natts = 0;
	}
	if (!supply_read_rows(reader, begin_supply(reader, &options)) ||
		(reader->stale != NULL && !gh_supply_unmatched(reader->table->supply, 0, reader->table->rows)))
		return false;
	gh_supply_free_buffers(reader->table->supply);
	reader->keys = reader->table->supply;
	reader->table->supply = NULL;
	return true;
}

/* A table of them. */
static bool
make_changed(Reader *reader, uint64 nkeys)
{
	GhPipelineOptions options;

	begin_table(reader, reader->parts, reader->copy.nkeys, (double) nkeys, &options);
	spread_keys((double) nkeys, &options.sink.table);
	return begin_supply(reader, &options) != NULL && gh_supply_source(reader->table->supply, nkeys) &&
		finish_table(reader, &reader->table->changed);
}

/* The rows of these keys: those that were read, and entries on right blocks. */
static bool
make_instead(Reader *reader, uint64 nkeys)
{
	int			ncolumns = reader->copy.ncolumns;
	GhKept	   *kept = palloc0(sizeof(GhKept) * (ncolumns + 1));
	GhPipelineOptions options;
	GhProbe		probes[2];

	begin_table(reader, reader->parts, reader->copy.nkeys, (double) nkeys, &options);
	kept[GH_DEVICE_COPY_BLOCK] = (GhKept) {reader->block.vector, GH_CLASS_INT, sizeof(uint64)};
	for (int c = 0; c < ncolumns; c++)
	{
		kept[GH_DEVICE_COPY_COLUMN(c)] = reader->copy.columns[c].held;
		kept[GH_DEVICE_COPY_COLUMN(c)].vector = c;
	}
	options.sink.table.nkept = ncolumns + 1;
	options.sink.table.kept = kept;
	options.sink.table.matches = GH_MATCHES_ALL;
	probes[0] = probe_of_copy(reader, reader->copy.nkeys, ncolumns, reader->parts, reader->copy.nkeys);
	if (reader->stale != NULL)
		probes[1] = probe_of_stale(reader, GH_PROBE_ANTI);
	add_probes(&options, probes, reader->stale != NULL ? 2 : 1);
	return supply_read_rows(reader, begin_supply(reader, &options)) &&
		gh_supply_source(reader->table->supply, nkeys) && finish_table(reader, &reader->table->instead);
}

/* Tells keys apart; false: a supply has failed. */
static bool
tell_apart(Reader *reader)
{
	double		entries = (double) reader->table->rows * (reader->blocks.copied - reader->blocks.right) /
		Max(reader->blocks.copied, 1);
	uint64		nkeys;

	read_others(reader);
	if (gh_copy_next_stale(&reader->blocks, 0) < reader->blocks.copied && !make_stale(reader))
		return false;
	if (!find_keys(reader, reader->nrows + entries))
		return false;
	nkeys = gh_supply_groups(reader->keys);
	return nkeys == 0 || (make_changed(reader, nkeys) && make_instead(reader, nkeys));
}

/* Else there is no memory, or a value that the device does not have: then the join's table is made of pages. */
static bool
has_lost_device(const GhSupply *supply)
{
	return supply->failed && supply->error.status == GH_DEVICE_ERROR;
}

/* What is of no use once the tables are made, or cannot be. */
static void
drop_parts(Reader *reader)
{
	const GhEngine *engine = reader->fragment->device->engine;

	if (reader->table->supply != NULL && !has_lost_device(reader->table->supply))
	{
		gh_supply_end(reader->table->supply);
		reader->table->supply = NULL;
	}
	if (reader->keys != NULL)
		gh_supply_end(reader->keys);
	if (reader->stale != NULL)
		engine->table_destroy(reader->stale);
	if (reader->marks != NULL)
		engine->pipelines->marks_destroy(reader->marks);
	reader->keys = NULL;
	reader->stale = NULL;
	reader->marks = NULL;
}

GhCopyTable
gh_device_tell_apart(Reader *reader)
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
	if (told)
		return GH_COPY_USED;
	return reader->table->supply != NULL ? GH_COPY_FAILED : GH_COPY_NOT_USED;
}
