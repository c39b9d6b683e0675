/*
 * probed_pages.c
 *		A table for the node above (probed.c), straight from the pages of the inner side.
 *
 * Where the inner side is a scan that the join reads by itself, and its conditions have a program, its pages
 * enter the pipeline that makes the table, and no row is stored.  Rows that the engine hands back are
 * computed by PostgreSQL's expressions, and enter as columns.  Where the table outgrows memory, or a value is
 * none that the engines hold, the scan is read once more, as ever: nobody but the engine and the scan's
 * conditions has seen a row.
 *
 * All participants of a parallel join do so together, each its part of the scan (parallel_table.c).  Such a
 * table is not begun where it is expected to outgrow their memory.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/rel.h"

#include "expr/fold.h"
#include "expr/translate.h"
#include "expr/values.h"
#include "fragment/joined.h"
#include "fragment/stage.h"
#include "heap/layout.h"
#include "join/join.h"
#include "join/parallel.h"
#include "join/source.h"
#include "service/placement.h"

/* An inner side that is read so. */
typedef struct GhProbedReader
{
	MemoryContext context;		/* of one of several participants */
	GhJoinState *js;
	PlanState  *scan;
	GhPages    *pages;
	GhProgram  *program;
	uint32		nfilters;		/* instructions of the scan's conditions; those behind make the key's code */
	GhOperand  *keys;			/* key columns; of a join that is coded, their code first */
	GhKeyPart *parts;			/* of the key */
	GhKept	   *kept;
	GhStage    *stage;
	GhEnteringRows *row;		/* one that was computed: what the sink reads of it */
	uint64		tuples;			/* visible ones */
	uint64		passed;
	uint64		entered;		/* of them, those that have a key */
	bool		read;			/* to its end, as one of several participants */
} Reader;

/* --------------------------------------------------------------- the program */

/*
 * Key columns and others are columns of the relation: they have vectors of their own, and nothing fills them
 * but the source.
 */
static bool
translate_columns(Reader *reader, GhTranslation *translation)
{
	const GhJoinState *js = reader->js;
	const GhKeySide *keys = &js->keys[GH_INNER];
	const GhColumns *columns = &js->columns[GH_INNER];

	for (int k = 0; k < keys->ncolumns; k++)
		if (!gh_translate_attribute(translation, gh_relation_attno(reader->scan, keys->columns[k].attno), &reader->keys[k]) ||
			(reader->keys[k].value_class != GH_CLASS_INT && !js->is_coded))
			return false;
	for (int c = 0; c < columns->ncolumns; c++)
	{
		GhOperand	operand = {0};

		if (!gh_translate_attribute(translation, gh_relation_attno(reader->scan, columns->attnos[c]), &operand))
			return false;
		reader->kept[c] = js->probed->kept[c];
		reader->kept[c].vector = operand.vector;
	}
	return true;
}

/* Where the program that was made has the key. */
static void
set_parts(Reader *reader, const GhTranslation *translation)
{
	const GhLowerJoin *lower = &reader->js->lower;

	for (int k = 0; k < gh_lower_nparts(lower); k++)
	{
		reader->parts[k].vector = gh_final_vector(translation, &reader->keys[k]);
		reader->parts[k].bits = gh_lower_part_bits(lower, GH_INNER, k);
	}
}

static bool
make_program(Reader *reader)
{
	Relation	relation = ((ScanState *) reader->scan)->ss_currentRelation;
	GhTranslation *translation = gh_translate_begin(RelationGetDescr(relation),
													((Scan *) reader->scan->plan)->scanrelid);
	ParamExecData *awaited = NULL;
	GhError		error;

	if (!gh_translate_conditions(&reader->js->css.ss.ps, translation, reader->scan->plan->qual, NULL, &awaited) ||
		awaited != NULL)
		return false;
	reader->nfilters = translation->ninstructions;
	if (!translate_columns(reader, translation) || !gh_lower_translate_key(&reader->js->lower, translation, reader->keys))
		return false;
	reader->program = gh_translate_end(translation);
	if (reader->program == NULL)
		return false;
	if (gh_program_check(reader->program, reader->program->bytes, &error) != GH_OK)
		elog(ERROR, "%s", error.message);
	set_parts(reader, translation);
	return true;
}

/* ---------------------------------------------------------- the pipeline */

static void
pages_options(const Reader *reader, uint64 limit, GhStep steps[2], GhPipelineOptions *options)
{
	const GhJoinState *js = reader->js;

	gh_stage_options(((ScanState *) reader->scan)->ss_currentRelation, reader->program, options);
	/* rows that were handed back enter behind the first one */
	steps[0] = (GhStep) {.end = reader->nfilters};
	steps[1] = (GhStep) {.end = reader->program->ninstructions};
	options->nsteps = js->is_coded ? 2 : 1;
	options->steps = steps;
	gh_probed_sink(js, (uint64) Max(reader->scan->plan->plan_rows, 1), &options->sink);
	options->sink.table.nparts = gh_lower_nparts(&js->lower);
	options->sink.table.parts = reader->parts;
	options->sink.table.kept = reader->kept;
	options->memory_limit = limit;
}

/* The row in the scan's slot, which has passed its conditions; false: the table cannot have it. */
static bool
enter_row(Reader *reader)
{
	TupleTableSlot *slot = reader->scan->ps_ExprContext->ecxt_scantuple;
	GhPipelineRequest request;

	slot_getallattrs(slot);
	if (!gh_entering_put(reader->row, 0, slot->tts_values, slot->tts_isnull,
						 reader->scan->ps_ExprContext->ecxt_per_tuple_memory))
		return false;
	gh_stage_rows(reader->stage, 1, reader->row, 1, &request);
	reader->passed++;
	reader->entered += request.counted;
	return request.nback == 0;
}

/* A row of a page that was handed back; false: the table cannot have it. */
static bool
enter_line(Reader *reader, Buffer buffer, BlockNumber block, OffsetNumber line)
{
	return !gh_scan_accepts((ScanState *) reader->scan, reader->pages, buffer, block, line, reader->scan->qual) ||
		enter_row(reader);
}

/* The pages that the stage holds. */
static bool
enter_held(Reader *reader)
{
	const GhHeldPages *held = reader->stage->held;
	bool		entered;

	gh_stage_run_held(reader->stage);
	entered = held->request.no_memory == 0;
	reader->tuples += held->ntuples;
	reader->passed += held->request.passed[0];
	reader->entered += held->request.counted;
	for (uint32 i = 0; i < held->nback && entered; i++)
	{
		BlockNumber block;
		OffsetNumber line;
		Buffer		buffer = gh_stage_back_row(reader->stage, reader->pages, &held->back[i], &block, &line);

		entered = enter_line(reader, buffer, block, line);
	}
	if (held->nback > 0)
		ExecClearTuple(((ScanState *) reader->scan)->ss_ScanTupleSlot);
	gh_stage_release(reader->stage);
	return entered;
}

/* Reads pages, as many as enter together; false: there is none, or the table cannot have a row. */
static bool
enter_pages(Reader *reader, bool *entered)
{
	bool		found = gh_stage_begin_reading(reader->stage, reader->pages);

	while (gh_stage_has_room(reader->stage, reader->pages) && gh_pages_next(reader->pages, GH_PAGES_AHEAD_MAX))
	{
		gh_stage_hold(reader->stage, reader->pages);
		found = true;
	}
	gh_stage_end_reading(reader->stage, reader->pages);
	if (found)
		*entered = enter_held(reader);
	return found && *entered;
}

static bool
enter_all_pages(Reader *reader)
{
	bool		entered = true;

	gh_pages_begin(reader->pages, reader->scan);
	/* in an earlier run the join may have read it, and kept its table over rescans */
	if (reader->js->parallel == NULL && gh_pages_have_begun(reader->pages))
		gh_child_rewind(reader->scan);
	while (enter_pages(reader, &entered))
		CHECK_FOR_INTERRUPTS();
	gh_pages_park(reader->pages);
	return entered;
}

/* ------------------------------------------------------------------ the table */

/* The scan's node and the relation's statistics are told what was read of it. */
static void
tell_scan(Reader *reader)
{
	pgstat_count_index_tuples(reader->pages->relation, reader->tuples);
	InstrCountFiltered1(reader->scan, reader->tuples - reader->passed);
	gh_child_start(reader->scan);
	gh_child_stop(reader->scan, (double) reader->passed);
	reader->js->inner_rows = reader->entered;
}

/* What there is to read, and by what program; false: there is none. */
static bool
prepare(Reader *reader, GhJoinState *js)
{
	reader->js = js;
	reader->scan = gh_child(js, GH_INNER);
	reader->pages = &js->source[GH_INNER]->pages;
	reader->keys = palloc0(sizeof(GhOperand) * js->keys[GH_INNER].ncolumns);
	reader->parts = palloc0(sizeof(GhKeyPart) * js->keys[GH_INNER].ncolumns);
	reader->kept = palloc0(sizeof(GhKept) * Max(js->columns[GH_INNER].ncolumns, 1));
	return make_program(reader);
}

/* All pages, or this participant's, into its pipeline. */
static bool
read_pages(Reader *reader, GhStage *stage)
{
	bool		entered;

	reader->stage = stage;
	reader->row = gh_entering_create_before(stage, 1, gh_program_columns(reader->program), 1);
	gh_child_start(reader->scan);
	entered = enter_all_pages(reader);
	gh_child_stop(reader->scan, 0);
	return entered;
}

static GhStatus
read_inner(GhJoinState *js, MemoryContext context)
{
	Reader		reader = {0};
	GhPipelineOptions options;
	GhStep		steps[2];
	GhStage    *stage;
	GhStatus	status = GH_DECLINED;
	GhError		error;

	if (!prepare(&reader, js))
		return GH_DECLINED;
	pages_options(&reader, js->memory_limit, steps, &options);
	/* the table stays when the pipeline is gone */
	gh_host_init(&js->host, js->context);
	stage = gh_stage_create(&options, &js->host, context, &error);
	if (stage == NULL)
		return GH_DECLINED;
	if (read_pages(&reader, stage))
		status = gh_probed_take(js, stage);
	if (status == GH_OK)
		tell_scan(&reader);
	else
		gh_child_rewind(reader.scan);
	gh_stage_destroy(stage);
	return status;
}

static bool
may_read(const GhJoinState *js)
{
	return !js->probed->has_refs && js->source[GH_INNER] != NULL && !js->keys[GH_INNER].has_exprs && gh_layout_is_known();
}

/* Reads the inner side into a table; false: that cannot be, and it is as if nothing had been read. */
bool
gh_probed_read(GhJoinState *js)
{
	if (!may_read(js) || !gh_probed_try(js, read_inner))
		return false;
	/* as of stored rows: no table of none, unless it takes that for an outer row to come out */
	js->probed->of_pages = js->inner_rows > 0 || js->fill_outer;
	if (!js->probed->of_pages)
	{
		gh_probed_drop(js);
		js->engine = NULL;
	}
	return true;
}

/* ------------------------------------------------- by all participants */

static uint64
common_limit(const GhJoinState *js)
{
	return js->memory_limit * (uint64) js->parallel->shared->nmembers;
}

/*
 * More than this many times of the limit are not tried: how many participants the estimated rows are divided
 * among is unknown.
 */
#define GH_HOPELESS 2

/* Whether it is worth trying: of a parallel join, rows and limit are those of one participant. */
bool
gh_probed_may_fit(const GhJoinState *js)
{
	return gh_child(js, GH_INNER)->plan->plan_rows * (double) js->probed->row_bytes <= GH_HOPELESS * (double) js->memory_limit;
}

/* Whether all of the inner side may be read so by the participants; makes what this one reads it by. */
bool
gh_probed_may_read_together(GhJoinState *js)
{
	MemoryContext context;
	MemoryContext saved;
	Reader	   *reader;

	gh_probed_forget_pages(js);
	if (!may_read(js) || !gh_child(js, GH_INNER)->plan->parallel_aware || !gh_probed_may_fit(js))
		return false;
	context = AllocSetContextCreate(js->context, "GpuHashJoin inner pages", ALLOCSET_SMALL_SIZES);
	saved = MemoryContextSwitchTo(context);
	reader = palloc0(sizeof(Reader));
	reader->context = context;
	if (prepare(reader, js))
		js->probed->reader = reader;
	MemoryContextSwitchTo(saved);
	if (js->probed->reader == NULL)
		MemoryContextDelete(context);
	return js->probed->reader != NULL;
}

void
gh_probed_forget_pages(GhJoinState *js)
{
	if (js->probed == NULL || js->probed->reader == NULL)
		return;
	MemoryContextDelete(js->probed->reader->context);
	js->probed->reader = NULL;
}

static bool
enter_together(GhJoinState *js, GhStage *stage, MemoryContext context)
{
	Reader	   *reader = js->probed->reader;

	(void) context;
	if (!read_pages(reader, stage))
		return false;
	reader->read = true;
	(void) pg_atomic_fetch_add_u64(&js->parallel->shared->nkeys, (int64) reader->entered);
	return true;
}

/* Phase TABLE, by one: the sink that all fill.  False: there is none. */
bool
gh_probed_share_pages(GhJoinState *js, GhRef *root)
{
	GhPipelineOptions options;
	GhStep		steps[2];

	if (js->probed->reader == NULL)
		return false;
	pages_options(js->probed->reader, common_limit(js), steps, &options);
	return gh_probed_share_sink(js, &options, root);
}

/* Phase ENTER: this participant's pages.  False: some row cannot be in the table, or there is no memory. */
bool
gh_probed_fill_pages(GhJoinState *js, GhRef root)
{
	GhPipelineOptions options;
	GhStep		steps[2];

	/* one that came late has not been asked yet */
	if (js->probed->reader == NULL && !gh_probed_may_read_together(js))
		return false;
	pages_options(js->probed->reader, common_limit(js), steps, &options);
	options.shared_sink = root;
	return gh_probed_fill_sink(js, &options, enter_together);
}

/* When it is known that the rows are in a table, or are none. */
void
gh_probed_tell_pages(GhJoinState *js)
{
	if (js->probed == NULL || js->probed->reader == NULL)
		return;
	if (js->probed->reader->read)
		tell_scan(js->probed->reader);
	gh_probed_forget_pages(js);
}
