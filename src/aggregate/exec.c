/*
 * exec.c
 *		GpuHashAggregate at run time: set-up, phases, rescans.
 *
 * The first call reads the whole input into groups (../fragment/input.c); the groups then come out one
 * by one (output.c).  Where they outgrow memory they wait in files, by partition (spill.c).  Of the
 * participants of a parallel query the last one to have read its part returns the groups of
 * all (parallel.c).
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "aggregate/first.h"
#include "fragment/device.h"
#include "fragment/parallel.h"
#include "service/service.h"

static Node *create_state(CustomScan *cscan);
static void begin_aggregate(CustomScanState *css, EState *estate, int eflags);
static TupleTableSlot *exec_aggregate(CustomScanState *css);
static void end_aggregate(CustomScanState *css);
static void rescan_aggregate(CustomScanState *css);

static const CustomScanMethods scan_methods = {
	.CustomName = GH_AGGREGATE_NAME,
	.CreateCustomScanState = create_state,
};

static const CustomExecMethods exec_methods = {
	.CustomName = GH_AGGREGATE_NAME,
	.BeginCustomScan = begin_aggregate,
	.ExecCustomScan = exec_aggregate,
	.EndCustomScan = end_aggregate,
	.ReScanCustomScan = rescan_aggregate,
	.EstimateDSMCustomScan = gh_aggregate_estimate_dsm,
	.InitializeDSMCustomScan = gh_aggregate_init_dsm,
	.ReInitializeDSMCustomScan = gh_aggregate_reinit_dsm,
	.InitializeWorkerCustomScan = gh_aggregate_init_worker,
	.ExplainCustomScan = gh_aggregate_explain,
};

/* --------------------------------------------------------------- set-up */

bool
gh_is_aggregate(const PlanState *ps)
{
	return IsA(ps, CustomScanState) && ((const CustomScanState *) ps)->methods == &exec_methods;
}

static Node *
create_state(CustomScan *cscan)
{
	GhAggregateNode *node = palloc0(sizeof(GhAggregateNode));

	NodeSetTag(node, T_CustomScanState);
	node->fragment.css.methods = &exec_methods;
	return (Node *) node;
}

/* A Const that is no more than a place in a list: NULL, or true. */
static bool
is_placeholder(Expr *expr, bool null)
{
	Const	   *constant = (Const *) expr;

	return IsA(expr, Const) && constant->consttype == BOOLOID &&
		(null ? constant->constisnull : !constant->constisnull && DatumGetBool(constant->constvalue));
}

static ExprState **
init_states(GhAggregateNode *node, List *exprs)
{
	ExprState **states = palloc0(sizeof(ExprState *) * Max(list_length(exprs), 1));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, exprs)
		states[n++] = ExecInitExpr(lfirst(lc), &node->fragment.css.ss.ps);
	return states;
}

/* The expressions over the child's columns. */
static void
init_exprs(GhAggregateNode *node, CustomScan *cscan)
{
	node->keys = list_nth(cscan->custom_exprs, GH_AGGREGATE_EXPRS_KEYS);
	node->arguments = list_nth(cscan->custom_exprs, GH_AGGREGATE_EXPRS_ARGUMENTS);
	node->filters = list_nth(cscan->custom_exprs, GH_AGGREGATE_EXPRS_FILTERS);
	node->key_states = init_states(node, node->keys);
	node->argument_states = init_states(node, node->arguments);
	node->filter_states = init_states(node, node->filters);
	for (int a = 0; a < node->nresults; a++)
	{
		if (node->specs[a].aggregate.kind == GH_AGGREGATE_COUNT_ROWS)
			node->argument_states[a] = NULL;
		if (is_placeholder(list_nth(node->filters, a), false))
			node->filter_states[a] = NULL;
	}
}

/* What aggregate_plan.c wrote. */
static void
init_columns(GhAggregateNode *node, CustomScan *cscan)
{
	List	   *private = cscan->custom_private;
	List	   *key_columns = list_nth(private, GH_AGGREGATE_PRIVATE_KEYS);
	List	   *functions = list_nth(private, GH_AGGREGATE_PRIVATE_FUNCTIONS);
	TupleDesc	scan = node->fragment.css.ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	ListCell   *lc;

	node->first = intVal(list_nth(private, GH_AGGREGATE_PRIVATE_FIRST));
	node->expected = intVal(list_nth(private, GH_AGGREGATE_PRIVATE_GROUPS));
	node->fragment.sharers = Max(intVal(list_nth(private, GH_AGGREGATE_PRIVATE_SHARERS)), 0);
	node->key_columns = palloc(sizeof(int) * Max(list_length(key_columns), 1));
	foreach(lc, key_columns)
		node->key_columns[node->nkeys++] = lfirst_int(lc);
	/* the last one is no key of the input's */
	if (list_nth(private, GH_AGGREGATE_PRIVATE_SETS) != NIL)
		node->nkeys--;
	/* each may need another one for its scale */
	node->specs = palloc0(sizeof(GhAggregateSpec) * Max(2 * list_length(functions), 1));
	foreach(lc, functions)
	{
		const GhAggregateFunction *function = gh_find_aggregate(lfirst_oid(lc));
		GhAggregateSpec *spec = &node->specs[node->nresults];

		if (function == NULL)
			elog(ERROR, "aggregate function %u is not known", lfirst_oid(lc));
		spec->aggregate.kind = function->kind;
		spec->final = function->final;
		spec->result.type = TupleDescAttr(scan, node->first + node->nresults)->atttypid;
		node->nresults++;
	}
	gh_distinct_init(node, list_nth(private, GH_AGGREGATE_PRIVATE_DISTINCT));
	gh_sets_init(node, list_nth(private, GH_AGGREGATE_PRIVATE_SETS));
}

/* Which of 0 and -0 a group has would depend on time. */
static const char *
why_not_on_device(const GhFragment *fragment)
{
	const GhAggregateNode *node = (const GhAggregateNode *) fragment;

	for (int k = 0; k < node->nkeys; k++)
		if (gh_class_is_float(node->key_types[k].value_class))
			return "a key is a float";
	for (int a = 0; a < node->nresults; a++)
		if (node->specs[a].final == GH_FINAL_TEXT)
			return "texts are compared";
	return node->nkeys > GH_RECORD_KEYS_MAX ? "there are too many keys" : NULL;
}

/* GhFragmentMethods */
static void
device_sink(GhFragment *fragment, GhSink *sink)
{
	const GhAggregateNode *node = gh_aggregate_of(fragment);

	gh_aggregate_sink(node, sink);
	if (node->nkeys > 0)
		sink->groups.expected = (uint64) gh_aggregate_expected(node);
}

/* GhFragmentMethods */
static void
take_records(GhFragment *fragment, const char *records, Size bytes)
{
	GhAggregateNode *node = gh_aggregate_of(fragment);

	while (node->taken)
		node = node->above;
	if (fragment->device->set != NULL)
		gh_aggregate_add_parts(node, records, bytes);
	else if (node->as_rows != NULL)
		gh_narrow_take(node, records, bytes);
	else
		gh_output_take(node, records, bytes);
}

/* GhFragmentMethods */
static double
expected_groups(const GhFragment *fragment)
{
	return gh_aggregate_expected((const GhAggregateNode *) fragment);
}

static const GhFragmentMethods fragment_methods = {
	.doing = "aggregate on the GPU",
	.left_there = "Groups",
	.translate = gh_aggregate_translate,
	.keep_vectors = gh_aggregate_keep_vectors,
	.forget_program = gh_aggregate_forget_program,
	.stage = gh_aggregate_stage,
	.add_row = gh_aggregate_input_row,
	.enter_waiting = gh_enter_waiting,
	.make_memory = gh_aggregate_spill,
	.keep_within_memory = gh_aggregate_keep_within_memory,
	.end_input = gh_aggregate_end_input,
	.start_anew = gh_aggregate_start_anew,
	.order_matters = gh_aggregate_order_matters,
	.adds_floats = gh_aggregate_adds_floats,
	.expected_groups = expected_groups,
	.why_not_on_device = why_not_on_device,
	.device_sink = device_sink,
	.narrow = gh_aggregate_narrow,
	.take_records = take_records,
};

static void
begin_aggregate(CustomScanState *css, EState *estate, int eflags)
{
	GhAggregateNode *node = (GhAggregateNode *) css;
	CustomScan *cscan = (CustomScan *) css->ss.ps.plan;

	gh_service_count_node(GH_USE_AGGREGATES, eflags);
	gh_fragment_init(&node->fragment, &fragment_methods,
					 intVal(list_nth(cscan->custom_private, GH_AGGREGATE_PRIVATE_COLUMNS)), estate, eflags);
	init_columns(node, cscan);
	init_exprs(node, cscan);
	/* with the number of a grouping set */
	node->key_types = palloc0(sizeof(GhValueType) * (node->nkeys + 1));
	node->key_values = palloc0(sizeof(GhSqlValue) * (node->nkeys + 1));
	node->fragment.memory_limit = gh_aggregate_memory_limit();
	gh_bound_find(&node->bound, estate, &cscan->scan.plan);
	node->phase = GH_AGGREGATE_START;
}

/* --------------------------------------------------------------- groups */

/* Of groups that an engine made, those of which the node has a part of its own, too, become part of these. */
static void
absorb_groups(GhAggregateNode *node)
{
	uint64		nabsorbed = gh_final_groups_absorb(node->final, node->groups);

	if (node->fragment.member == NULL && node->nkeys > 0)
		node->fragment.counts.groups -= nabsorbed;
}

/*
 * Groups of the node's own, of which there are none, are those that the input is read into; regrouped: those
 * that come out of the second level, of DISTINCT or grouping sets.
 */
void
gh_aggregate_show(GhAggregateNode *node, bool regrouped)
{
	const GhShown first = {node->nkeys, node->nresults, node->naggregates, node->specs};

	if (regrouped && node->distinct != NULL)
		gh_distinct_show(node);
	else if (regrouped)
		gh_sets_show(node);
	else
		node->shown = first;
	node->regrouped = regrouped;
	if (node->groups != NULL)
		gh_groups_destroy(node->groups);
	node->groups = gh_groups_create(node->fragment.css.ss.ps.state->es_query_cxt, node->shown.nkeys, node->key_types,
									node->shown.naggregates, node->shown.specs);
}

/* No groups are left on a device. */
void
gh_aggregate_reset_levels(GhAggregateNode *node)
{
	node->made = node->left_there = node->behind = 0;
	node->as_rows = NULL;
	node->taken = false;
}

/* Reads the input into groups.  Whether it is this process that returns them. */
static bool
read_groups(GhAggregateNode *node)
{
	if (node->fragment.member != NULL && !gh_aggregate_attach(node))
		return false;
	gh_aggregate_types(node);
	gh_aggregate_show(node, false);
	node->final = gh_final_groups_create(node->fragment.css.ss.ps.state->es_query_cxt, node->fragment.memory_limit);
	node->ngroups = 0;
	gh_aggregate_reset_levels(node);
	node->back_before = node->fragment.counts.back;
	node->pages_before = node->fragment.counts.pages;
	if (gh_nested_read(node))
		gh_aggregate_end_input(&node->fragment);
	else
		gh_fragment_read_input(&node->fragment);
	node->fragment.ran = true;
	if (node->fragment.member != NULL && !gh_aggregate_hand_over(node))
		return false;
	if (node->files == NULL)
	{
		absorb_groups(node);
		gh_output_rewind(node);
		return true;
	}
	/* all of them are in files then, and come back partition by partition */
	gh_aggregate_put_groups(node, gh_group_files_put, node->files);
	node->fragment.counts.disk += gh_group_files_bytes(node->files);
	gh_aggregate_drop_stage(node);
	gh_output_rewind(node);
	(void) gh_group_files_next(node->files, node->groups);
	return true;
}

/* Makes what comes out of them.  False: nothing does, in this process. */
static bool
make_groups(GhAggregateNode *node)
{
	bool		any = read_groups(node);

	if (any && node->distinct != NULL && !node->regrouped)
		gh_distinct_groups(node);
	if (any && node->sets != NULL && !node->regrouped)
		gh_sets_groups(node);
	/* with what merging and the second level took */
	if (node->fragment.member != NULL)
		gh_aggregate_leave_counts(node);
	return any;
}

/* Reads the input, so that groups can come out. */
void
gh_aggregate_make(GhAggregateNode *node)
{
	Assert(node->phase == GH_AGGREGATE_START);
	node->phase = make_groups(node) && !node->taken ? GH_AGGREGATE_EMIT : GH_AGGREGATE_DONE;
}

static TupleTableSlot *
exec_aggregate(CustomScanState *css)
{
	GhAggregateNode *node = (GhAggregateNode *) css;

	if (node->phase == GH_AGGREGATE_START)
		gh_aggregate_make(node);
	if (node->phase == GH_AGGREGATE_EMIT && gh_output_next(node))
		return css->ss.ps.ps_ProjInfo != NULL ? ExecProject(css->ss.ps.ps_ProjInfo) :
			css->ss.ss_ScanTupleSlot;
	if (node->phase == GH_AGGREGATE_EMIT && node->fragment.member != NULL)
		gh_aggregate_leave_later_counts(node);
	node->phase = GH_AGGREGATE_DONE;
	return NULL;
}

/* -------------------------------------------------------- rescans, the end */

/* Forgets the groups, and what was prepared for the input as it was. */
static void
forget_groups(GhAggregateNode *node)
{
	gh_having_forget(node);
	gh_first_forget(node);
	gh_aggregate_close_files(node);
	if (node->groups != NULL)
		gh_groups_destroy(node->groups);
	node->groups = NULL;
	gh_fragment_forget(&node->fragment);
}

/* Whether what is there can come out once more, where the input cannot have changed. */
static bool
may_keep(const GhAggregateNode *node)
{
	return node->phase != GH_AGGREGATE_START && node->fragment.member == NULL && node->groups != NULL &&
		node->files == NULL && (node->regrouping == NULL || gh_regroup_may_rewind(node)) && !node->taken;
}

static void
rescan_aggregate(CustomScanState *css)
{
	GhAggregateNode *node = (GhAggregateNode *) css;
	bool		changes = gh_fragment_changes(&node->fragment);

	if (changes || !may_keep(node))
	{
		node->stays |= node->taken && !changes;
		forget_groups(node);
		gh_fragment_rescan(&node->fragment);
		node->phase = GH_AGGREGATE_START;
		return;
	}
	gh_output_rewind(node);
	node->phase = GH_AGGREGATE_EMIT;
}

static void
end_aggregate(CustomScanState *css)
{
	GhAggregateNode *node = (GhAggregateNode *) css;

	forget_groups(node);
	gh_fragment_end(&node->fragment);
}

/* Called by _PG_init. */
void
gh_aggregate_register(void)
{
	RegisterCustomScanMethods(&scan_methods);
}
