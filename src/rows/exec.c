/*
 * exec.c
 *		GpuHashRows at run time: set-up, the program, rows that come out, rescans.
 *
 * The first call has a device read the whole input (../fragment), and keeps the rows (collect.c); they then
 * come out one by one.  Each participant of a parallel query returns the rows of its own part.  Where no
 * device joins them, the joins return their rows, which are passed on.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "fragment/explain.h"
#include "fragment/joined.h"
#include "fragment/parallel.h"
#include "rows/node.h"
#include "service/service.h"

/* Bytes of rows that are taken out of a pipeline at a time. */
#define GH_ROWS_PIECE (64 * 1024)

static Node *create_state(CustomScan *cscan);
static void begin_rows(CustomScanState *css, EState *estate, int eflags);
static TupleTableSlot *exec_rows(CustomScanState *css);
static void end_rows(CustomScanState *css);
static void rescan_rows(CustomScanState *css);
static Size estimate_dsm(CustomScanState *css, ParallelContext *pcxt);
static void init_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate);
static void reinit_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate);
static void init_worker(CustomScanState *css, shm_toc *toc, void *coordinate);
static void shutdown_rows(CustomScanState *css);
static void explain_rows(CustomScanState *css, List *ancestors, ExplainState *es);

static const CustomScanMethods scan_methods = {
	.CustomName = GH_ROWS_NAME,
	.CreateCustomScanState = create_state,
};

static const CustomExecMethods exec_methods = {
	.CustomName = GH_ROWS_NAME,
	.BeginCustomScan = begin_rows,
	.ExecCustomScan = exec_rows,
	.EndCustomScan = end_rows,
	.ReScanCustomScan = rescan_rows,
	.EstimateDSMCustomScan = estimate_dsm,
	.InitializeDSMCustomScan = init_dsm,
	.ReInitializeDSMCustomScan = reinit_dsm,
	.InitializeWorkerCustomScan = init_worker,
	.ShutdownCustomScan = shutdown_rows,
	.ExplainCustomScan = explain_rows,
};

/* --------------------------------------------------------------- the program */

/* How the engines hold the values, for this run's parameters. */
static void
init_types(GhRowsNode *node)
{
	MemoryContext saved = MemoryContextSwitchTo(node->fragment.program.context);

	for (int i = 0; i < node->nvalues; i++)
		(void) gh_fragment_init_type(&node->fragment, &node->value_types[i], list_nth(node->values, i), true);
	MemoryContextSwitchTo(saved);
}

/* Where tuples are that are fetched when their rows come out. */
static bool
translate_place(GhRowsNode *node, GhTranslation *translation, int level, GhOperand *place)
{
	if (level < 0)
		return gh_add_place(translation, place);
	return gh_translate_attribute(translation, gh_joined_place_attno(node->fragment.joined, level), place);
}

/* GhFragmentMethods */
static bool
translate(GhFragment *fragment, GhTranslation *translation)
{
	GhRowsNode *node = gh_rows_of(fragment);

	node->operands = palloc0(sizeof(GhOperand) * Max(node->nvalues + node->nfetches, 1));
	for (int i = 0; i < node->nvalues; i++)
		if (!gh_fragment_translate(fragment, translation, list_nth(node->values, i), &node->value_types[i], false,
								   &node->operands[i]))
			return false;
	for (int f = 0; f < node->nfetches && !fragment->by_rows; f++)
		if (!translate_place(node, translation, node->fetches[f].level, &node->operands[node->nvalues + f]))
			return false;
	return gh_first_rows_translate(node, translation);
}

/* GhFragmentMethods */
static void
keep_vectors(GhFragment *fragment, const GhTranslation *translation)
{
	GhRowsNode *node = gh_rows_of(fragment);
	int			nvectors = node->nvalues + node->nfetches;

	node->vectors = palloc(sizeof(uint16) * Max(nvectors, 1));
	for (int i = 0; i < nvectors; i++)
		node->vectors[i] = gh_final_vector(translation, &node->operands[i]);
}

/* GhFragmentMethods */
static void
forget_program(GhFragment *fragment)
{
	gh_rows_of(fragment)->operands = NULL;
	gh_rows_of(fragment)->vectors = NULL;
}

/* ------------------------------------------------------------------ the rows */

/* On the CPU rows that a device was to make are passed on. */
static GhStage *
no_stage(GhFragment *fragment)
{
	(void) fragment;
	return NULL;
}

/* A tuplestore sees to its memory by itself. */
static void
no_care(GhFragment *fragment)
{
	(void) fragment;
}

/* GhFragmentMethods */
static void
start_anew(GhFragment *fragment)
{
	gh_collect_clear(fragment);
	gh_first_rows_forget(gh_rows_of(fragment));
}

/* Rows may come in any order. */
static bool
never(const GhFragment *fragment)
{
	(void) fragment;
	return false;
}

static const char *
why_not_on_device(const GhFragment *fragment)
{
	const GhRowsNode *node = (const GhRowsNode *) fragment;
	int			nvalues = node->nvalues + node->nfetches;

	if (nvalues == 0 && fragment->joined == NULL)
		return "no column is read";
	return nvalues > GH_VALUES_MAX ? "there are too many columns" : NULL;
}

/* GhFragmentMethods */
static void
device_sink(GhFragment *fragment, GhSink *sink)
{
	GhRowsNode *node = gh_rows_of(fragment);
	int			nvalues = node->nvalues + node->nfetches;
	GhRecordKey  *values = palloc0(sizeof(GhRecordKey) * Max(nvalues, 1));

	gh_fragment_scan_keys(node->nvalues, node->value_types, node->vectors, values);
	for (int k = 0; k < node->nvalues; k++)
		values[k].padded = 0;
	for (int k = node->nvalues; k < nvalues; k++)
	{
		values[k].vector = node->vectors[k];
		values[k].value_class = GH_CLASS_INT;
	}
	/* there are no rows of no values: a key, which nobody looks at */
	if (nvalues == 0)
		values[nvalues++] = (GhRecordKey) {.vector = fragment->joined->levels[0].key_vectors[0],.value_class = GH_CLASS_INT};
	sink->kind = GH_SINK_ROWS;
	sink->rows.nvalues = nvalues;
	sink->rows.values = values;
}

/* ----------------------------------------------------------- by the CPU engine */

static void
make_stage(GhFragment *fragment)
{
	GhPipelineOptions options;

	gh_fragment_stage_options(fragment, gh_joined_probes(fragment), &options);
	device_sink(fragment, &options.sink);
	options.memory_limit = fragment->memory_limit;
	(void) gh_fragment_create_stage(fragment, &options, "join rows");
}

/* GhFragmentMethods */
static GhStage *
host_stage(GhFragment *fragment)
{
	MemoryContext saved;

	if (!gh_fragment_compile(fragment) || fragment->program.stage != NULL)
		return fragment->program.stage;
	saved = MemoryContextSwitchTo(fragment->program.context);
	make_stage(fragment);
	MemoryContextSwitchTo(saved);
	return fragment->program.stage;
}

/* GhFragmentMethods: the rows that the pipeline has made are kept, and it is empty again. */
static void
take_rows(GhFragment *fragment)
{
	GhStage    *stage = fragment->program.stage;
	GhRecordBuffer *rows = &gh_rows_of(fragment)->buffer;
	GhCursor	cursor = {0};
	Size		room = GH_ROWS_PIECE;

	if (stage == NULL)
		return;
	while (!cursor.finished)
	{
		Size		bytes;
		char	   *records = gh_record_buffer(rows, room);

		if (gh_stage_results(stage, &cursor, rows->size, records, &bytes) == GH_TOO_SMALL)
			room = bytes;
		else
			gh_collect_records(fragment, records, bytes);
	}
	gh_stage_clear(stage);
}

/* GhFragmentMethods */
static void
start_host_anew(GhFragment *fragment)
{
	gh_collect_clear(fragment);
	if (fragment->program.stage != NULL)
		gh_stage_clear(fragment->program.stage);
}

static const char *
planned_for_host(const GhFragment *fragment)
{
	(void) fragment;
	return "the plan has it on the CPU";
}

static const GhFragmentMethods host_methods = {
	.doing = "join",
	.left_there = "Rows",
	.translate = translate,
	.keep_vectors = keep_vectors,
	.forget_program = forget_program,
	.stage = host_stage,
	.add_row = gh_collect_scan_tuple,
	.enter_waiting = no_care,
	.make_memory = take_rows,
	.keep_within_memory = take_rows,
	.end_input = take_rows,
	.start_anew = start_host_anew,
	.order_matters = never,
	.adds_floats = never,
	.put_child_row = gh_collect_child_row,
	.why_not_on_device = planned_for_host,
	.device_sink = device_sink,
};

/* ----------------------------------------------------------------- on a device */

static const GhFragmentMethods fragment_methods = {
	.doing = "join on the GPU",
	.left_there = "Rows",
	.translate = translate,
	.keep_vectors = keep_vectors,
	.forget_program = forget_program,
	.stage = no_stage,
	.add_row = gh_collect_scan_tuple,
	.enter_waiting = no_care,
	.make_memory = no_care,
	.keep_within_memory = no_care,
	.end_input = gh_first_rows_end,
	.start_anew = start_anew,
	.order_matters = never,
	.adds_floats = never,
	.for_device = true,
	.put_child_row = gh_collect_child_row,
	.why_not_on_device = why_not_on_device,
	.device_sink = device_sink,
	.sample = gh_first_rows_sample,
	.take_records = gh_collect_records,
};

/* --------------------------------------------------------------- set-up */

static Node *
create_state(CustomScan *cscan)
{
	GhRowsNode *node = palloc0(sizeof(GhRowsNode));

	(void) cscan;
	NodeSetTag(node, T_CustomScanState);
	node->fragment.css.methods = &exec_methods;
	return (Node *) node;
}

static void
begin_rows(CustomScanState *css, EState *estate, int eflags)
{
	GhRowsNode *node = (GhRowsNode *) css;
	CustomScan *cscan = (CustomScan *) css->ss.ps.plan;
	List	   *columns = list_nth(cscan->custom_private, GH_AGGREGATE_PRIVATE_KEYS);
	bool		on_host = list_length(cscan->custom_private) > GH_ROWS_PRIVATE_ON_HOST;
	ListCell   *lc;

	gh_service_count_node(GH_USE_ROWS, eflags);
	gh_fragment_init(&node->fragment, on_host ? &host_methods : &fragment_methods,
					 intVal(list_nth(cscan->custom_private, GH_AGGREGATE_PRIVATE_COLUMNS)), estate, eflags);
	node->values = list_nth(cscan->custom_exprs, GH_AGGREGATE_EXPRS_KEYS);
	node->value_columns = palloc(sizeof(int) * Max(list_length(columns), 1));
	foreach(lc, columns)
		node->value_columns[node->nvalues++] = lfirst_int(lc);
	node->value_types = palloc0(sizeof(GhValueType) * Max(node->nvalues, 1));
	node->fragment.memory_limit = gh_aggregate_memory_limit();
	node->buffer.context = estate->es_query_cxt;
	node->phase = GH_ROWS_START;
	gh_collect_init(node, estate);
	gh_bound_find(&node->first.bound, estate, &cscan->scan.plan);
}

/* ------------------------------------------------------------ what comes out */

/* All of the input has been read by this process, or it is passed on. */
static void
end_part(GhFragment *fragment)
{
	if (fragment->member == NULL)
		return;
	if (!fragment->passes_on)
		(void) gh_fragment_is_last(fragment, true);
	gh_fragment_leave_counts(fragment);
}

/*
 * Reads the input, where its rows are not passed on; the CPU engine begins with it.  Whether this process has
 * rows to return: there is nothing left for participants that have not begun when all others were done,
 * unless rows are passed on.
 */
static bool
collect_rows(GhRowsNode *node)
{
	GhFragment *fragment = &node->fragment;

	if (fragment->member != NULL && !gh_fragment_attach(fragment))
		return false;
	init_types(node);
	if (fragment->methods->for_device)
		gh_fragment_read_input(fragment);
	else
		node->reading = gh_fragment_begin_input(fragment);
	fragment->ran = true;
	if (!node->reading)
		end_part(fragment);
	return true;
}

/* No more of the input is read. */
static void
stop_reading(GhRowsNode *node)
{
	if (node->reading)
		gh_fragment_end_input(&node->fragment);
	node->reading = false;
}

/*
 * The CPU engine reads on until there are rows, which take the place of those that have come out; false:
 * there are none.  What it has made is never lost, so that it need not keep all.
 */
static bool
read_on(GhRowsNode *node)
{
	GhFragment *fragment = &node->fragment;
	uint64		before = fragment->counts.groups;

	if (!node->reading)
		return false;
	gh_collect_empty(node);
	while (fragment->counts.groups == before)
	{
		if (gh_fragment_read_some(fragment))
			continue;
		take_rows(fragment);
		stop_reading(node);
		end_part(fragment);
		return fragment->counts.groups > before;
	}
	/* who knows when the next row is asked for */
	gh_pages_park(fragment->pages);
	return true;
}

static TupleTableSlot *
exec_rows(CustomScanState *css)
{
	GhRowsNode *node = (GhRowsNode *) css;

	if (node->phase == GH_ROWS_START)
		node->phase = collect_rows(node) ? GH_ROWS_EMIT : GH_ROWS_DONE;
	while (node->phase == GH_ROWS_EMIT && !gh_collect_next(node))
		if (!read_on(node))
			node->phase = GH_ROWS_DONE;
	if (node->phase == GH_ROWS_EMIT)
		return css->ss.ps.ps_ProjInfo != NULL ? ExecProject(css->ss.ps.ps_ProjInfo) :
			css->ss.ss_ScanTupleSlot;
	return NULL;
}

/* -------------------------------------------------------- rescans, the end */

static void
forget_rows(GhRowsNode *node)
{
	stop_reading(node);
	gh_collect_clear(&node->fragment);
	gh_first_rows_forget(node);
	gh_fragment_forget(&node->fragment);
}

static void
rescan_rows(CustomScanState *css)
{
	GhRowsNode *node = (GhRowsNode *) css;
	GhFragment *fragment = &node->fragment;

	if (gh_fragment_changes(fragment) || node->phase == GH_ROWS_START || fragment->member != NULL ||
		fragment->passes_on || !fragment->methods->for_device)
	{
		forget_rows(node);
		gh_fragment_rescan(fragment);
		node->phase = GH_ROWS_START;
		return;
	}
	/* what is there can come out once more */
	gh_collect_rewind(node);
	node->first.unwanted += node->first.left;
	node->phase = GH_ROWS_EMIT;
}

static void
end_rows(CustomScanState *css)
{
	GhRowsNode *node = (GhRowsNode *) css;

	forget_rows(node);
	gh_fragment_end(&node->fragment);
}

/* ------------------------------------------------------------ parallel queries */

static Size
estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	(void) css;
	(void) pcxt;
	return sizeof(GhRowsShared);
}

static GhFragmentMember *
make_member(CustomScanState *css)
{
	return MemoryContextAllocZero(css->ss.ps.state->es_query_cxt, sizeof(GhFragmentMember));
}

/* Without a segment there are no workers. */
static void
init_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	if (pcxt->seg == NULL)
		return;
	gh_fragment_init_dsm((GhFragment *) css, pcxt, coordinate, make_member(css));
	gh_first_rows_share((GhRowsNode *) css, coordinate);
}

static void
reinit_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	(void) pcxt;
	gh_fragment_reinit_dsm(coordinate);
	gh_first_rows_share((GhRowsNode *) css, coordinate);
}

static void
init_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	(void) toc;
	gh_fragment_init_worker((GhFragment *) css, coordinate, make_member(css));
}

/*
 * No more rows are wanted, before all has been read: EXPLAIN shows what was done.  Others may still read.  A
 * cursor's plan, which is shut down after each fetch, has no participants.
 */
static void
shutdown_rows(CustomScanState *css)
{
	GhRowsNode *node = (GhRowsNode *) css;

	if (!node->reading || node->fragment.member == NULL)
		return;
	stop_reading(node);
	gh_fragment_leave_counts(&node->fragment);
	node->phase = GH_ROWS_DONE;
}

/* ------------------------------------------------------------------- EXPLAIN */

/* The tables whose tuples are fetched: those of the columns that a device does not return. */
static void
show_fetched(const GhRowsNode *node, ExplainState *es)
{
	CustomScan *scan = (CustomScan *) node->fragment.css.ss.ps.plan;
	Bitmapset  *values = NULL;
	Bitmapset  *tables = NULL;
	List	   *names = NIL;
	int			varno = -1;

	for (int i = 0; i < node->nvalues; i++)
		values = bms_add_member(values, node->value_columns[i]);
	for (int c = 0; c < node->fragment.ncolumns; c++)
	{
		const TargetEntry *tle = list_nth_node(TargetEntry, scan->custom_scan_tlist, c);

		if (!bms_is_member(c, values))
			tables = bms_add_member(tables, castNode(Var, tle->expr)->varno);
	}
	while ((varno = bms_next_member(tables, varno)) >= 0)
		names = lappend(names, list_nth(es->rtable_names, varno - 1));
	if (names != NIL)
		ExplainPropertyList("Tuples Fetched From", names, es);
}

static void
explain_rows(CustomScanState *css, List *ancestors, ExplainState *es)
{
	const GhRowsNode *node = (const GhRowsNode *) css;
	const GhJoined *joined = node->fragment.joined;
	/* in all runs; or in all processes */
	GhLastSteps steps = {.name = "Collect",.unwanted = Max(node->first.unwanted, node->fragment.counts.groups_left)};

	(void) ancestors;
	if (es->verbose)
		show_fetched(node, es);
	if (!es->analyze || !node->fragment.ran)
		return;
	/* rows of all joins came through the executor: they passed on */
	if (joined != NULL && (int) node->fragment.counts.joins_below == joined->nlevels)
		steps.name = NULL;
	gh_fragment_explain_steps(&node->fragment, &steps, es);
	gh_fragment_explain_input(&node->fragment, es);
	ExplainPropertyUInteger("Rows Collected", NULL, node->fragment.counts.groups, es);
	gh_fragment_explain_device(&node->fragment, es);
	gh_fragment_explain_end(&node->fragment, es);
}

/* Called by _PG_init. */
void
gh_rows_register(void)
{
	RegisterCustomScanMethods(&scan_methods);
}
