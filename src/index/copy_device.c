/*
 * copy_device.c
 *		Makes the copy of an index on a device: a table there of its entries, by the key, with the block of each one's row
 *		and its columns (README, "On a device").
 *
 * The leaf pages go to the device as they are, which finds the entries.  What it cannot read, such as the entries of a key
 * with many rows that share one key, comes back, is kept here, and is sent as columns when all pages are through.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "expr/translate.h"
#include "fragment/stage.h"
#include "fragment/supply.h"
#include "gpuhash.h"
#include "heap/layout.h"
#include "index/copy_maker.h"
#include "index/leaves.h"
#include "service/placement.h"
#include "service/progress.h"
#include "service/service.h"
#include "store/resident_tables.h"

#define GH_COPY_VARNO 1
/* Pages between two looks at whether it is to be given up. */
#define GH_PAGES_CHECKED 1024
/* Entries that come back are kept up to so many bytes, and no more: such an index has no copy on a device. */
#define GH_BACK_BYTES_MAX ((Size) 64 * 1024 * 1024)
/* Of the device, for an entry, beside its columns: its key, its block, what tells which are NULL; and its place by the key. */
#define GH_ENTRY_BYTES 48

/* A row that came back: the program's columns, of which the first one is the block. */
typedef struct BackRow
{
	struct BackRow *next;
	Datum	   *values;
	bool	   *nulls;
} BackRow;

typedef struct DeviceMaker
{
	GhCopyMaker common;
	GhProgram  *program;		/* vector 0 is the block, 1 + c column c */
	GhSupply   *supply;
	GhLeafReader *reader;		/* of lines that came back */
	MemoryContext back;			/* their rows */
	BackRow    *rows;
	uint64		npages;
	bool		pins;			/* pages are read where they are */
	bool		torn;			/* somebody has changed one of these while it was read */
	bool		failed;			/* something came back that cannot be kept */
	GhTableSource *source;		/* what the table is named by */
	GhTable    *table;
	GhRef		root;			/* of the table; 0: there is none */
	bool		kept;			/* it stays */
} DeviceMaker;

/* -------------------------------------------------------------------- pages */

/* Whether it is given up, by what came back or for somebody else. */
static bool
has_to_stop(DeviceMaker *maker)
{
	return maker->failed || (maker->npages++ % GH_PAGES_CHECKED == 0 && maker->common.stop != NULL &&
							 maker->common.stop(maker->common.index, maker->common.heap));
}

/* GhLeafRoom */
static char *
next_room(void *arg)
{
	DeviceMaker *maker = arg;

	return has_to_stop(maker) ? NULL : gh_supply_copy_room(maker->supply);
}

/* GhLeafPinned */
static bool
pin_page(void *arg, Buffer buffer, uint32 lines, XLogRecPtr lsn)
{
	DeviceMaker *maker = arg;

	if (!has_to_stop(maker))
		return gh_supply_pinned_page(maker->supply, buffer, lines, lsn);
	ReleaseBuffer(buffer);
	return false;
}

/* GhLeafPage */
static bool
send_page(void *arg, const char *page)
{
	DeviceMaker *maker = arg;

	return gh_supply_copied_page(maker->supply, PageGetMaxOffsetNumber((Page) page));
}

/* GhLeafEntry: keeps one that came back. */
static bool
keep_entry(void *arg, BlockNumber block, const Datum *values, const bool *nulls)
{
	DeviceMaker *maker = arg;
	const GhCopyMaker *common = &maker->common;
	TupleDesc	desc = RelationGetDescr(common->index);
	MemoryContext saved;
	BackRow    *row;

	if (MemoryContextMemAllocated(maker->back, true) > GH_BACK_BYTES_MAX)
		return false;
	saved = MemoryContextSwitchTo(maker->back);
	row = palloc(sizeof(BackRow));
	row->values = palloc(sizeof(Datum) * (common->ncolumns + 1));
	row->nulls = palloc(sizeof(bool) * (common->ncolumns + 1));
	row->values[0] = Int64GetDatum((int64) block);
	row->nulls[0] = false;
	for (int c = 0; c < common->ncolumns; c++)
	{
		int			source = common->sources[c];
		Form_pg_attribute attribute = TupleDescAttr(desc, source);

		row->nulls[c + 1] = nulls[source];
		row->values[c + 1] = nulls[source] ? (Datum) 0 :
			datumCopy(values[source], attribute->attbyval, attribute->attlen);
	}
	row->next = maker->rows;
	maker->rows = row;
	MemoryContextSwitchTo(saved);
	return true;
}

/* GhLineBack */
static void
take_line(void *arg, const char *page, OffsetNumber line)
{
	DeviceMaker *maker = arg;

	maker->torn |= page == NULL;
	if (!maker->failed)
		maker->failed = line == 0 || !gh_leaf_read_line(maker->reader, page, line);
}

/* All pages, and then what came back of them; false: there is no copy. */
static bool
send_entries(DeviceMaker *maker)
{
	GhSupplyRows *rows;
	bool		sent = maker->pins ? gh_leaves_pin(maker->common.index, pin_page, maker) :
		gh_leaves_copy(maker->common.index, next_room, send_page, maker);

	if (!sent || !gh_supply_flush(maker->supply) || maker->failed)
		return false;
	if (maker->rows == NULL)
		return true;
	rows = gh_supply_open_rows(maker->supply, maker->program);
	for (const BackRow *row = maker->rows; rows != NULL && row != NULL; row = row->next)
	{
		CHECK_FOR_INTERRUPTS();
		if (!gh_supply_row(rows, row->values, row->nulls))
			return false;
	}
	return rows != NULL && gh_supply_close_rows(rows);
}

/* -------------------------------------------------------------------- the table */

/*
 * Leaves out entries on blocks that have come since the copy was begun: what becomes of these is not noted
 * for it, and who uses it reads them.
 */
static bool
add_filter(GhTranslation *translation, const GhOperand *block, BlockNumber nblocks)
{
	GhOperand	args[2] = {*block};
	GhOperand	older = {0};
	GhOperand	none = {0};

	return gh_add_constant(translation, GH_CLASS_INT, false, nblocks, 0, &args[1]) &&
		gh_add_instruction(translation, GH_OP_LT, GH_CLASS_INT, 0, 0, 2, args, &older) &&
		gh_add_instruction(translation, GH_OP_FILTER, GH_CLASS_BOOL, 0, 0, 1, &older, &none);
}

/* The program that loads an entry's block and columns; false: there is none. */
static bool
make_program(DeviceMaker *maker)
{
	const GhCopyMaker *common = &maker->common;
	GhTranslation *translation = gh_translate_begin(RelationGetDescr(common->index), GH_COPY_VARNO);
	GhOperand	operand = {0};

	if (!gh_add_place(translation, &operand) || !add_filter(translation, &operand, common->copied.nblocks))
		return false;
	for (int c = 0; c < common->ncolumns; c++)
		if (!gh_translate_attribute(translation, common->sources[c] + 1, &operand) || operand.vector != c + 1)
			return false;
	maker->program = gh_translate_end(translation);
	return maker->program != NULL;
}

/* The pipeline's options: their arrays are in the current context. */
static void
make_options(const DeviceMaker *maker, GhPipelineOptions *options)
{
	const GhCopyMaker *common = &maker->common;
	GhKeyPart  *parts = palloc0(sizeof(GhKeyPart) * common->nkeys);
	GhKept	   *kept = palloc0(sizeof(GhKept) * (common->ncolumns + 1));
	GhStep	   *step = palloc0(sizeof(GhStep));
	GhTableOptions table;

	gh_stage_options(common->index, maker->program, options);
	options->source.kind = GH_SOURCE_LEAVES;
	gh_device_options(gh_service_engine(), common->where, options, &table);
	gh_stage_table_sink(&table, &options->sink);
	options->nsteps = 1;
	options->steps = step;
	step->end = maker->program->ninstructions;
	for (int c = 0; c < common->nkeys; c++)
		parts[c] = (GhKeyPart) {.vector = c + 1,.bits = common->columns[c].bits};
	kept[GH_DEVICE_COPY_BLOCK] = (GhKept) {.value_class = GH_CLASS_INT,.bytes = sizeof(uint64)};
	for (int c = 0; c < common->ncolumns; c++)
		kept[GH_DEVICE_COPY_COLUMN(c)] = common->columns[c].held;
	options->sink.table.nparts = common->nkeys;
	options->sink.table.parts = parts;
	options->sink.table.nkept = common->ncolumns + 1;
	options->sink.table.kept = kept;
	options->sink.table.matches = GH_MATCHES_ALL;
	options->sink.table.numbered = 1;
	options->sink.table.expected = (uint64) Max(common->index->rd_rel->reltuples, 1);
}

/* What is sent becomes a table of *rows, which this process has a handle on; false: there is none. */
static bool
make_table(DeviceMaker *maker, uint64 *rows)
{
	GhMadeTable made;
	GhStatus	status;
	GhError		error;

	while ((status = maker->supply->engine->pipelines->make_table(maker->supply->pipeline, &made, &error)) == GH_STOPPED)
		gh_serve_interrupt();
	if (status != GH_OK)
		return false;
	maker->table = made.table;
	*rows = made.rows;
	return true;
}

/*
 * The table becomes the index's copy, in the place of the one before, and stays; false: another one has been
 * begun since, which is to come into its place, or there is no room.
 */
static bool
publish(DeviceMaker *maker, uint64 rows)
{
	GhCopyMaker *common = &maker->common;

	gh_copy_leave_out(common->index, &common->copied, common->bits);
	/* in this order: a table that is kept drives out those of other copies */
	maker->kept = gh_copy_publish(common->index, &common->copied) &&
		gh_resident_table_keep(maker->source, maker->root, rows);
	return maker->kept;
}

/* Bytes of the device for the table, at most about. */
static uint64
table_bytes(const GhCopyMaker *common)
{
	return (uint64) Max(common->index->rd_rel->reltuples, 0) * GH_ENTRY_BYTES +
		(uint64) RelationGetNumberOfBlocks(common->index) * BLCKSZ;
}

static bool
begin_supply(DeviceMaker *maker)
{
	GhPipelineOptions options;

	maker->reader = gh_leaf_reader(maker->common.index, keep_entry, maker);
	maker->back = AllocSetContextCreate(maker->common.context, "gpuhash index entries", ALLOCSET_DEFAULT_SIZES);
	maker->supply = palloc0(sizeof(GhSupply));
	make_options(maker, &options);
	if (!gh_supply_begin(maker->supply, gh_service_engine(), &options, &maker->root, NULL, maker->common.context))
		return false;
	maker->supply->line_back = take_line;
	maker->supply->arg = maker;
	maker->pins = !maker->torn && RelationNeedsWAL(maker->common.index) &&
		gh_supply_pins_pages(maker->supply, maker->common.index);
	maker->torn = false;
	return !maker->supply->failed;
}

/* --------------------------------------------------------------------- the whole */

/* False: there is none. */
static bool
fill(DeviceMaker *maker)
{
	GhCopyMaker *common = &maker->common;
	uint64		rows;
	bool		later;

	if (!gh_copy_maker_begin(common, &later) || !make_program(maker))
		return false;
	maker->source = gh_resident_table_source_of_copy(common->index, common->copied.generation, common->where);
	return gh_resident_table_may_stay(maker->source, table_bytes(common)) && begin_supply(maker) &&
		send_entries(maker) && gh_copy_maker_asks_again(common) && make_table(maker, &rows) && publish(maker, rows);
}

/* All handles go; the table does, too, unless it stays. */
static void
end(DeviceMaker *maker)
{
	const GhEngine *engine = gh_service_engine();

	gh_service_use_table_executor(-1);
	if (maker->table != NULL)
		engine->table_detach(maker->table);
	maker->table = NULL;
	if (maker->supply != NULL)
		gh_supply_end(maker->supply);
	maker->supply = NULL;
	if (maker->kept)
		gh_resident_table_return(maker->root);
	else
		gh_service_table_release(maker->root);
	maker->root = 0;
	maker->kept = false;
}

/*
 * When the process ends in the midst of it, the service takes what it has, and the copy's place in the
 * touched map goes with the next one that is begun.
 */
static bool
try_to_make(DeviceMaker *maker)
{
	volatile bool made = false;

	maker->common.copied = maker->common.in_use = (GhCopied) {0};
	maker->failed = false;
	maker->rows = NULL;
	gh_service_use_table_executor(GH_DEVICE_COPY_EXECUTOR);
	PG_TRY();
	{
		made = fill(maker);
	}
	PG_FINALLY();
	{
		if (!made)
			gh_copy_end(&maker->common.copied);
		end(maker);
	}
	PG_END_TRY();
	return made;
}

static bool
make_in_context(DeviceMaker *maker)
{
	if (!gh_layout_is_known() || !gh_copy_maker_may(&maker->common))
		return false;
	gh_progress_begin(maker->common.context, GH_PROGRESS_COPY, RelationGetRelid(maker->common.index),
					  gh_service_device_number(maker->common.where));
	/* of pages that change while they are read where they are, copies are read */
	return try_to_make(maker) || (maker->torn && try_to_make(maker));
}

bool
gh_copy_make_on_device(Relation index, Relation heap, int device, GhCopyStop stop)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuhash index copy", ALLOCSET_DEFAULT_SIZES);
	MemoryContext saved = MemoryContextSwitchTo(context);
	DeviceMaker *maker = palloc0(sizeof(DeviceMaker));
	bool		made;

	maker->common.index = index;
	maker->common.heap = heap;
	maker->common.where = device;
	maker->common.stop = stop;
	maker->common.context = context;
	made = make_in_context(maker);
	MemoryContextSwitchTo(saved);
	MemoryContextDelete(context);
	return made;
}
