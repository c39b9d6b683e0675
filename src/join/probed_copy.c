/*
 * probed_copy.c
 *		The copy of an index as the table for the node above (probed.c): nothing of the inner side is built.
 *
 * Rows of the blocks that the copy is right for, in the query's snapshot, come from the copy
 * (../index/README, "Copies"); those of the other blocks are read from the table.  The copy's table cannot
 * change, and has entries on those blocks, too.  So what is told apart are keys: those of which an entry is
 * on such a block, or a row that was read, are looked up in a small table of this query alone, which has all
 * of their rows, the copy's on right blocks among them; all others in the copy's (GhTableOverlay).  Which
 * keys these are is what a filter says that they were added to: a few others are then among them, and their
 * entries in the small table, too.  Where the copy is right for all blocks there is no such key.
 *
 * The order is that of the proof: the query's snapshot is held; the scan of the inner side begins, which
 * locks the table for serializable transactions; then the copy is asked for its blocks.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "engine/pipeline/key_filter.h"
#include "engine/pipeline/record_row.h"
#include "expr/translate.h"
#include "expr/values.h"
#include "fragment/stage.h"
#include "gpuhash.h"
#include "join/join.h"
#include "join/parallel.h"
#include "join/source.h"
#include "service/faults.h"
#include "service/placement.h"

/* Entries of a copy that are gone through without a look at interrupts. */
#define GH_PASS_ROWS 65536

/* Rows of the table, as columns. */
typedef struct Rows
{
	GhEnteringRows *rows;
	uint32		n;
} Rows;

typedef struct Reader
{
	GhJoinState *js;
	PlanState  *scan;
	GhPages    *pages;
	GhCopyHold *hold;
	const GhIndexCopy *copy;
	Relation	index;
	MemoryContext context;
	Size		memory;			/* that it had at the begin */
	AttrNumber	attnos[GH_PROGRAM_VECTORS_MAX]; /* of the table, by kept column */
	AttrNumber	max_attno;
	uint16		from[GH_PROGRAM_VECTORS_MAX];	/* GhTableOverlay */
	int			sources[GH_PROGRAM_VECTORS_MAX];	/* by kept column: the copy's */
	GhCopyBlocks blocks;		/* for which the copy is right */
	uint64		copy_rows;		/* entries on those */
	uint64		stale_rows;		/* and on the others */
	List	   *heap;			/* of Rows: of the other blocks */
	uint64		heap_rows;
	double		made_ms;		/* that it took to make it */
	const char *why_not;
} Reader;

/* Why the copy is not used; false, for the caller to return. */
static bool
declines(Reader *reader, const char *why_not)
{
	reader->why_not = why_not;
	return false;
}

/* -------------------------------------------------------------------- columns */

/*
 * Whether the copy's key is that of the join.  An oid and an integer, which are one another's without a
 * function, have other bits in the copy, though not in a table of the query's own.
 */
static bool
has_key(const Reader *reader)
{
	const GhKeySide *inner = &reader->js->keys[GH_INNER];
	const GhKeySide *outer = &reader->js->keys[GH_OUTER];

	if (inner->ncolumns != reader->copy->nkeys || inner->has_exprs)
		return false;
	for (int k = 0; k < inner->ncolumns; k++)
	{
		GhKeyEncoding own = inner->columns[k].encoding;
		GhKeyEncoding other = outer->columns[k].encoding;

		if (reader->copy->columns[k].attno != gh_relation_attno(reader->scan, inner->columns[k].attno) ||
			own == GH_KEY_OID || other == GH_KEY_OID ||
			(own != other && !(gh_key_is_integer(own) && gh_key_is_integer(other))) ||
			(inner->ncolumns > 1 && reader->copy->columns[k].bits != inner->columns[k].bits))
			return false;
	}
	return true;
}

/* Which of the copy's columns a kept one is, or -1. */
static int
find_column(const Reader *reader, AttrNumber attno, const GhColumn *wanted)
{
	for (int c = 0; c < reader->copy->ncolumns; c++)
	{
		const GhCopyColumn *column = &reader->copy->columns[c];

		if (column->attno == attno && column->column.load == wanted->load && column->column.scale == wanted->scale)
			return c;
	}
	return -1;
}

static bool
map_columns(Reader *reader)
{
	const GhJoinState *js = reader->js;
	const GhColumns *columns = &js->columns[GH_INNER];

	if (!has_key(reader))
		return false;
	for (int k = 0; k < reader->copy->nkeys; k++)
		reader->max_attno = Max(reader->max_attno, reader->copy->columns[k].attno);
	for (int c = 0; c < columns->ncolumns; c++)
	{
		int			source;

		reader->attnos[c] = gh_relation_attno(reader->scan, columns->attnos[c]);
		reader->max_attno = Max(reader->max_attno, reader->attnos[c]);
		source = find_column(reader, reader->attnos[c], &gh_program_columns(js->probed->program)[c + 1]);
		if (source < 0)
			return false;
		reader->sources[c] = source;
		reader->from[c] = reader->copy->columns[source].is_key ? GH_OVERLAY_KEY + source :
			reader->copy->columns[source].kept;
	}
	return true;
}

/* --------------------------------------------------------------------- blocks */

static void
find_blocks(Reader *reader)
{
	gh_copy_ask_blocks(reader->index, reader->pages->relation, reader->copy, reader->pages->nblocks, &reader->blocks);
}

static bool
open_copy(Reader *reader)
{
	if (!gh_shared_copy_open(GH_COPY_OF_INDEX, reader->index, reader->hold))
		return false;
	reader->copy = reader->hold->copy;
	return true;
}

/* Whether a copy, which is not there yet, would have what the join reads. */
static bool
would_do(Reader *reader)
{
	GhIndexCopy *copy = palloc0(sizeof(GhIndexCopy));
	bool		fits;

	reader->copy = copy;
	fits = gh_index_copy_methods()->describe(reader->index, copy) && map_columns(reader);
	reader->copy = NULL;
	pfree(copy);
	return fits;
}

static bool
make_copy(Reader *reader)
{
	instr_time	start;
	instr_time	end;

	gh_shared_copy_close(reader->hold);
	if (!gh_shared_copy_is_due(GH_COPY_OF_INDEX, reader->index))
		return declines(reader, "there is none, and it is being made, or could not be made before");
	if (!would_do(reader))
		return declines(reader, GH_COPY_LACKS_COLUMNS);
	INSTR_TIME_SET_CURRENT(start);
	if (!gh_index_copy_methods()->make(reader->index, reader->pages->relation, NULL) || !open_copy(reader))
		return declines(reader, "none could be made: too few pages are all-visible, or there is no room");
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	reader->made_ms = INSTR_TIME_GET_MILLISEC(end);
	return true;
}

static uint32
participants(const Reader *reader)
{
	return reader->js->parallel != NULL ? reader->js->parallel->shared->nmembers : 1;
}

/* A copy that is right for most of the table's blocks; false: there is none. */
static bool
find_copy(Reader *reader)
{
	BlockNumber nblocks = reader->pages->nblocks;
	bool		made = !open_copy(reader);

	if (made && !make_copy(reader))
		return false;
	find_blocks(reader);
	if (!made && gh_copy_make_again(reader->index, &reader->blocks))
	{
		/* where that fails, the one before is what it was */
		if (!make_copy(reader) && !open_copy(reader))
			return false;
		find_blocks(reader);
	}
	if (nblocks - reader->blocks.right > GH_COPY_HEAP_MAX(nblocks, participants(reader)))
		return declines(reader, GH_COPY_MUCH_CHANGED);
	return reader->copy->root != 0 || declines(reader, "it is empty");
}

/* The copy's entries on blocks that it is right for, and on others; false: these are too many. */
static bool
count_entries(Reader *reader)
{
	reader->stale_rows = gh_copy_stale_rows(reader->hold, &reader->blocks);
	reader->copy_rows = reader->copy->rows - reader->stale_rows;
	return reader->stale_rows <= GH_COPY_HEAP_MAX(reader->copy->rows, participants(reader)) ||
		declines(reader, GH_COPY_MUCH_CHANGED);
}

/* ------------------------------------------------------------------ heap rows */

static Rows *
room_for_row(Reader *reader)
{
	Rows	   *last = reader->heap == NIL ? NULL : llast(reader->heap);
	GhProgram  *program = reader->js->probed->program;

	if (last != NULL && last->n < GH_VECTOR_ROWS)
		return last;
	last = palloc0(sizeof(Rows));
	last->rows = gh_entering_create(program, program->ncolumns, GH_VECTOR_ROWS);
	reader->heap = lappend(reader->heap, last);
	return last;
}

/* The key of the row in the slot, as the copy has keys; false: there is none. */
static bool
key_of_slot(const Reader *reader, TupleTableSlot *slot, uint64 *key)
{
	*key = 0;
	for (int k = 0; k < reader->copy->nkeys; k++)
	{
		const GhCopyColumn *column = &reader->copy->columns[k];
		uint64		low;
		uint8		null;
		GhVector	one = {&low, NULL, &null};
		int			at = column->attno - 1;

		if (slot->tts_isnull[at] ||
			!gh_store_value(&column->column, slot->tts_values[at], false, NULL, &one, 0))
			return false;
		*key = gh_key_part_add(*key, &(GhKeyPart) {.bits = column->bits}, low);
	}
	return true;
}

/* Keeps the row in the slot; false: a value of it is none that the engines hold. */
static bool
keep_row(Reader *reader, TupleTableSlot *slot)
{
	const GhProbed *probed = reader->js->probed;
	Rows	   *rows;
	uint64		key;

	slot_getsomeattrs(slot, reader->max_attno);
	if (!key_of_slot(reader, slot, &key))
		return true;
	rows = room_for_row(reader);
	rows->rows->vectors[0].low[rows->n] = key;
	rows->rows->vectors[0].null[rows->n] = 0;
	for (int c = 0; c < reader->js->columns[GH_INNER].ncolumns; c++)
	{
		const GhVector *vector = &rows->rows->vectors[c + 1];
		int			at = reader->attnos[c] - 1;

		if (!gh_store_value(&rows->rows->columns[c + 1], slot->tts_values[at], slot->tts_isnull[at], reader->context,
							(GhVector *) vector, rows->n))
			return false;
		/* the page goes */
		if (probed->kept[c].value_class == GH_CLASS_TEXT && !slot->tts_isnull[at])
		{
			Size		bytes = vector->high[rows->n];
			char	   *text = palloc(Max(bytes, 1));

			memcpy(text, (const void *) (uintptr_t) vector->low[rows->n], bytes);
			vector->low[rows->n] = (uint64) (uintptr_t) text;
		}
	}
	rows->n++;
	reader->heap_rows++;
	return true;
}

/* The rows of the page that is pinned. */
static bool
keep_page(Reader *reader)
{
	TupleTableSlot *slot = ((ScanState *) reader->scan)->ss_ScanTupleSlot;
	GhPages    *pages = reader->pages;

	for (int i = 0; i < pages->ntuples; i++)
	{
		gh_pages_store(pages, pages->buffer, pages->block, pages->lines[i], slot);
		if (!keep_row(reader, slot))
			return false;
	}
	pgstat_count_index_tuples(pages->relation, pages->ntuples);
	return true;
}

/* Whether what is not the copy's may be kept: a table of the query's own would go to files. */
static bool
has_memory(const Reader *reader)
{
	const GhKeyFilter *filter = reader->js->probed->filter;

	return MemoryContextMemAllocated(reader->context, true) + (filter != NULL ? gh_key_filter_bytes(filter->shift) : 0) <=
		reader->memory + reader->js->memory_limit;
}

/*
 * All blocks that the copy is not right for; false: a value is none that the engines hold, or they are too
 * many.
 */
static bool
read_heap(Reader *reader)
{
	GhPages    *pages = reader->pages;
	bool		kept = true;

	if (reader->blocks.right == pages->nblocks)
		return true;
	pages->has_blocks = gh_copy_count_right;
	pages->has_blocks_arg = &reader->blocks;
	while (kept && gh_pages_next(pages, GH_PAGES_AHEAD_MAX))
	{
		CHECK_FOR_INTERRUPTS();
		if (!pages->elsewhere)
			kept = keep_page(reader) && has_memory(reader);
	}
	ExecClearTuple(((ScanState *) reader->scan)->ss_ScanTupleSlot);
	gh_pages_park(pages);
	return kept;
}

/* ------------------------------------------------------------ the query's own table */

/* A pipeline into a table by the key that rows have; NULL: there is no memory. */
static GhStage *
create_stage(Reader *reader)
{
	GhJoinState *js = reader->js;
	GhKeyPart *part = palloc0(sizeof(GhKeyPart));
	GhPipelineOptions options;
	GhError		error;

	gh_stage_options(NULL, js->probed->program, &options);
	options.source.natts = js->probed->program->ncolumns;
	part->bits = GH_KEY_BITS;
	gh_probed_sink(js, reader->heap_rows, &options.sink);
	options.sink.table.nparts = 1;
	options.sink.table.parts = part;
	options.memory_limit = js->memory_limit;
	gh_host_init(&js->host, js->context);
	return gh_stage_create(&options, &js->host, reader->context, &error);
}

static bool
enter(GhStage *stage, const GhEnteringRows *rows, uint32 n)
{
	GhPipelineRequest request;

	CHECK_FOR_INTERRUPTS();
	gh_stage_rows(stage, 0, rows, n, &request);
	return request.nback == 0;
}

static bool
take_table(GhStage *stage, GhTable **table)
{
	GhMadeTable made;
	GhError		error;
	GhStatus	status;

	while ((status = stage->pipeline->engine->make_table(stage->pipeline, &made, &error)) == GH_STOPPED)
		gh_serve_interrupt();
	if (status == GH_OK)
		*table = made.table;
	gh_stage_destroy(stage);
	return status == GH_OK;
}

/* The keys of the copy's entries that are not on right blocks, and of rows that were read. */
static bool
make_filter(Reader *reader)
{
	const uint32 *order = gh_copy_address(reader->hold, reader->copy->order);
	const uint32 *starts = gh_copy_address(reader->hold, reader->copy->starts);
	const uint64 *keys = gh_copy_address(reader->hold, reader->copy->keys);
	/* most rows that were read have keys of such entries */
	uint32		shift = gh_key_filter_shift(Max(reader->stale_rows, reader->heap_rows));
	GhKeyFilter *filter = MemoryContextAllocExtended(GetMemoryChunkContext(reader->js->probed), gh_key_filter_bytes(shift),
													 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO | MCXT_ALLOC_NO_OOM);
	ListCell   *lc;

	if (filter == NULL)
		return false;
	reader->js->probed->filter = filter;
	filter->shift = shift;
	for (BlockNumber block = gh_copy_next_stale(&reader->blocks, 0); block < reader->copy->nblocks; block = gh_copy_next_stale(&reader->blocks, block + 1))
	{
		CHECK_FOR_INTERRUPTS();
		for (uint32 i = starts[block]; i < starts[block + 1]; i++)
			gh_key_filter_add(filter, keys[order[i]]);
	}
	foreach(lc, reader->heap)
	{
		const Rows *rows = lfirst(lc);

		for (uint32 row = 0; row < rows->n; row++)
			gh_key_filter_add(filter, rows->rows->vectors[0].low[row]);
	}
	return true;
}

/* A column of entries of the copy, or their key. */
static void
put_column(const Reader *reader, int c, const uint64 *entries, uint32 n, const GhVector *to)
{
	const GhCopyColumn *column = &reader->copy->columns[reader->sources[c]];
	const uint64 *low = gh_copy_address(reader->hold, column->low);
	const uint64 *high = gh_copy_address(reader->hold, column->high);
	const uint8 *null = gh_copy_address(reader->hold, column->null);
	/* texts are where they lie in the copy */
	uint64		base = column->held.value_class != GH_CLASS_TEXT ? 0 :
		(uint64) (uintptr_t) gh_copy_address(reader->hold, reader->copy->texts);

	for (uint32 i = 0; i < n; i++)
	{
		to->low[i] = low[entries[i]] + base;
		to->null[i] = null != NULL && null[entries[i]];
		if (high != NULL)
			to->high[i] = high[entries[i]];
	}
}

/* The copy's entries on right blocks whose keys the filter may have. */
static bool
enter_entries(const Reader *reader, GhStage *stage)
{
	const GhKeyFilter *filter = reader->js->probed->filter;
	const uint32 *blocks = gh_copy_address(reader->hold, reader->copy->blocks);
	const uint64 *keys = gh_copy_address(reader->hold, reader->copy->keys);
	GhProgram  *program = reader->js->probed->program;
	GhEnteringRows *rows = gh_entering_create(program, program->ncolumns, GH_VECTOR_ROWS);
	uint64		entries[GH_VECTOR_ROWS];
	uint64		end;

	for (uint64 at = 0; at < reader->copy->rows;)
	{
		uint32		may_be = 0;
		uint32		n = 0;

		for (end = Min(at + GH_PASS_ROWS, reader->copy->rows); at < end && may_be < GH_VECTOR_ROWS; at++)
		{
			entries[may_be] = at;
			may_be += gh_key_filter_may_have(filter, keys[at]);
		}
		for (uint32 i = 0; i < may_be; i++)
		{
			entries[n] = entries[i];
			n += gh_copy_is_right(&reader->blocks, blocks[entries[i]]);
		}
		for (uint32 i = 0; i < n; i++)
		{
			rows->vectors[0].low[i] = keys[entries[i]];
			rows->vectors[0].null[i] = 0;
		}
		for (int c = 0; c < reader->js->columns[GH_INNER].ncolumns; c++)
			put_column(reader, c, entries, n, &rows->vectors[c + 1]);
		if (n > 0 && !enter(stage, rows, n))
			return false;
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

/* All rows of those keys. */
static bool
make_instead(Reader *reader)
{
	GhStage    *stage = create_stage(reader);
	GhPipelineStats stats;
	ListCell   *lc;

	if (stage == NULL)
		return false;
	foreach(lc, reader->heap)
	{
		const Rows *rows = lfirst(lc);

		if (!enter(stage, rows->rows, rows->n))
			return false;
	}
	if (!enter_entries(reader, stage))
		return false;
	gh_stage_stats(stage, &stats);
	if (stats.entries > 0)
		return take_table(stage, &reader->js->probed->instead);
	gh_stage_destroy(stage);
	return true;
}

/* ----------------------------------------------------------------- the overlay */

static bool
make_tables(Reader *reader)
{
	GhJoinState *js = reader->js;
	GhProbed   *probed = js->probed;
	GhTableOverlay overlay = {0};
	GhMadeTable made;
	GhHost		host;
	GhError		error;

	if (reader->stale_rows + reader->heap_rows > 0)
	{
		if (!make_filter(reader) || !has_memory(reader) || !make_instead(reader))
			return false;
	}
	gh_shared_copy_host(&probed->copy, &host);
	if (gh_cpu_engine()->pipelines->table_attach(&host, reader->copy->root, &made, &error) != GH_OK)
		return false;
	probed->table = made.table;
	overlay.nkept = js->columns[GH_INNER].ncolumns;
	overlay.kept = probed->kept;
	overlay.from = reader->from;
	overlay.filter = probed->filter;
	overlay.instead = probed->instead;
	if (gh_cpu_engine()->pipelines->table_overlay(made.table, &overlay, &error) != GH_OK)
		elog(ERROR, "%s", error.message);
	return true;
}

/* What the scan's node, statistics and EXPLAIN are told. */
static void
tell(Reader *reader)
{
	GhJoinState *js = reader->js;

	gh_shared_copy_count_use(reader->hold->place);
	gh_child_start(reader->scan);
	gh_child_stop(reader->scan, (double) reader->heap_rows);
	js->inner_rows = reader->copy_rows + reader->heap_rows;
	js->engine = gh_cpu_engine();
	js->carried = true;
	js->probed->of_pages = true;
	js->copy_use = (GhCopyUse)
	{
		.used = true,.copy_blocks = reader->blocks.right,.heap_blocks = reader->pages->nblocks - reader->blocks.right,
			.heap_rows = reader->heap_rows,.made_ms = reader->made_ms
	};
}

/* A copy that has what the join reads; false: there is none. */
static bool
find_in_index(Reader *reader)
{
	bool		found;

	/* behind a cursor it may have been dropped in this transaction */
	reader->index = try_relation_open(reader->js->index, AccessShareLock);
	if (reader->index == NULL)
		return declines(reader, GH_COPY_IS_NOT_THERE);
	/* an insert whose place the visibility map does not tell yet looks for it in the index */
	PredicateLockRelation(reader->index, reader->js->css.ss.ps.state->es_snapshot);
	found = (reader->pages->nblocks >= GH_COPY_BLOCKS_MIN || declines(reader, GH_COPY_SMALL_TABLE)) &&
		find_copy(reader) && (map_columns(reader) || declines(reader, GH_COPY_LACKS_COLUMNS));
	relation_close(reader->index, NoLock);
	return found;
}

/*
 * The pages are those of a scan of this process's own, beside the node's, which participants may share: each
 * has its own table of the rows that are not the copy's.
 */
static GhStatus
use_copy(GhJoinState *js, MemoryContext context)
{
	Reader		reader = {.js = js,.context = context};
	TableScanDesc scan;
	GhPages		pages = {0};
	bool		used;

	reader.scan = gh_child(js, GH_INNER);
	reader.pages = &pages;
	reader.hold = &js->probed->copy;
	gh_child_start(reader.scan);
	scan = table_beginscan_strat(((ScanState *) reader.scan)->ss_currentRelation,
								 js->css.ss.ps.state->es_snapshot, 0, NULL, true, false);
	gh_pages_init(&pages, context);
	gh_pages_of_scan(&pages, scan);
	reader.memory = MemoryContextMemAllocated(context, true);
	used = find_in_index(&reader) && count_entries(&reader) && ((read_heap(&reader) && make_tables(&reader)) ||
											  declines(&reader, GH_COPY_ROWS_DO_NOT_FIT));
	gh_pages_end(&pages);
	table_endscan(scan);
	gh_child_stop(reader.scan, 0);
	if (used)
		tell(&reader);
	else
	{
		gh_probed_copy_drop(js);
		js->copy_use.why_not = reader.why_not;
	}
	return used ? GH_OK : GH_DECLINED;
}

/*
 * Takes the copy of the inner side's index; false: that cannot be, and it is as if nothing had been read.  Of
 * several participants each does so for itself (parallel_probed.c).
 */
bool
gh_probed_copy(GhJoinState *js)
{
	if (js->probed->copy.area != NULL)
		return true;
	if (!OidIsValid(js->index) || !gh_enable_index || js->source[GH_INNER] == NULL ||
		js->probed->has_refs || gh_child(js, GH_INNER)->plan->qual != NIL)
		return false;
	return gh_fault_pass(GH_FAULT_POINT_INDEX_COPY) == GH_FAULT_NONE && gh_probed_try(js, use_copy);
}

/* Gives all of it up; also where making it has failed. */
void
gh_probed_copy_drop(GhJoinState *js)
{
	GhProbed   *probed = js->probed;

	if (probed->table != NULL)
		probed->table->engine->table_detach(probed->table);
	probed->table = NULL;
	if (probed->instead != NULL)
		probed->instead->engine->table_destroy(probed->instead);
	probed->instead = NULL;
	if (probed->filter != NULL)
		pfree(probed->filter);
	probed->filter = NULL;
	gh_shared_copy_close(&probed->copy);
}
