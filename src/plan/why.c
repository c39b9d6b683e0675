/*
 * why.c
 *		Why scans, joins and aggregates of a query stay with PostgreSQL.
 *
 * While EXPLAIN plans a query, and gpuhash.explain_why is on, whoever considers a scan, a join or a grouping
 * and declines it notes the reason.  When a query level's paths are complete, the cheapest one is walked, and
 * each of its scans of whole tables with conditions, joins and groupings that is PostgreSQL's makes a line;
 * one that nobody declined was just cheaper: then the line has what either would have cost, where EXPLAIN
 * shows costs. EXPLAIN shows the lines after the plan; in formats with structure they are an element of its
 * list beside the plan's.
 */
#include "postgres.h"

#include "executor/instrument.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "tcop/tcopprot.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"

#include "compat.h"
#include "gpuhash.h"
#include "plan/chain.h"
#include "plan/planning.h"
#include "plan/why.h"
#include "plan/why_copy.h"

/* The cheapest of our paths that were made for it. */
typedef struct Offer
{
	const char *node;			/* NULL: there was none */
	Cost		startup;
	Cost		total;
} Offer;

typedef struct Reason
{
	PlannerInfo *root;
	Relids		relids;			/* of a scan or a join; NULL: the grouping; or GH_WHY_DISTINCT */
	const char *why;			/* NULL: nobody declined it */
	const char *copy;			/* of a scan: an index, and why its copy is not used; NULL: there is none, or it is */
	Offer		whole;			/* of paths by themselves, */
	Offer		partial;		/* and as parts of a parallel plan */
} Reason;

/* What is shown. */
typedef struct Line
{
	const PlannerGlobal *run;	/* of the planner, in which it was noted; NULL: its plan came out of that */
	MemoryContext planning;		/* which the run is in */
	char	   *text;
	char	   *costs;			/* behind it, or empty */
	bool		of_copy;		/* it is about the copy of an index */
} Line;

bool		gh_collects_why = false;

static ExplainOneQuery_hook_type previous_explain_hook = NULL;
static create_upper_paths_hook_type previous_paths_hook = NULL;
static MemoryContext context;	/* of what is collected */
static List *reasons;
static List *lines;				/* Lines */

/* ------------------------------------------------------------- collecting */

static Reason *
find_reason(PlannerInfo *root, Relids relids)
{
	ListCell   *lc;

	foreach(lc, reasons)
	{
		Reason	   *reason = lfirst(lc);

		if (reason->root == root && bms_equal(reason->relids, relids))
			return reason;
	}
	return NULL;
}

static Reason *
reason_of(PlannerInfo *root, Relids relids)
{
	Reason	   *reason = find_reason(root, relids);

	if (reason == NULL)
	{
		reason = palloc0(sizeof(Reason));
		reason->root = root;
		reason->relids = bms_copy(relids);
		reasons = lappend(reasons, reason);
	}
	return reason;
}

void
gh_add_reason(PlannerInfo *root, Relids relids, const char *why)
{
	MemoryContext saved = MemoryContextSwitchTo(context);

	/* a join is asked about both ways round: the last answer counts */
	reason_of(root, relids)->why = pstrdup(why);
	MemoryContextSwitchTo(saved);
}

/* Of several indexes the first one's counts. */
void
gh_add_copy_reason(PlannerInfo *root, Relids relids, Oid index, const char *why)
{
	MemoryContext saved = MemoryContextSwitchTo(context);
	Reason	   *reason = reason_of(root, relids);

	if (reason->copy == NULL)
		reason->copy = psprintf("%s: %s", get_rel_name(index), why);
	MemoryContextSwitchTo(saved);
}

/* node: a constant string */
void
gh_add_offer(PlannerInfo *root, Relids relids, const char *node, Cost startup, Cost total, bool partial)
{
	MemoryContext saved = MemoryContextSwitchTo(context);
	Reason	   *reason = reason_of(root, relids);
	Offer	   *offer = partial ? &reason->partial : &reason->whole;

	if (offer->node == NULL || total < offer->total)
	{
		offer->node = node;
		offer->startup = startup;
		offer->total = total;
	}
	MemoryContextSwitchTo(saved);
}

/* ------------------------------------------------------------- expressions */

/*
 * What cannot be shown without a plan: placeholders, and where parameters come from; these are shown as $N.
 */
static Node *
as_shown(Node *node, void *unused)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, PlaceHolderVar))
		return as_shown((Node *) ((PlaceHolderVar *) node)->phexpr, unused);
	if (IsA(node, Param))
	{
		Param	   *shown = copyObject((Param *) node);

		shown->paramkind = PARAM_EXTERN;
		return (Node *) shown;
	}
	return expression_tree_mutator(node, as_shown, unused);
}

/* Names of columns as EXPLAIN has them, at a time when there is no plan. */
const char *
gh_name_expression(PlannerInfo *root, const char *why, Node *expr)
{
	PlannedStmt *statement = makeNode(PlannedStmt);
	int			count = list_length(root->parse->rtable);
	Bitmapset  *all = bms_add_range(NULL, 1, count);
	List	   *columns;

	statement->commandType = CMD_SELECT;
	statement->rtable = root->parse->rtable;
	columns = deparse_context_for_plan_tree(statement, select_rtable_names_for_explain(statement->rtable, all));
	return psprintf("%s: %s", why,
					deparse_expression(as_shown(expr, NULL), columns,
									   bms_membership(root->all_baserels) == BMS_MULTIPLE, false));
}

/* ----------------------------------------------------- what was not offloaded */

static bool
has_line(List *list, const Line *line)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		const Line *other = lfirst(lc);

		if (line->of_copy == other->of_copy && strcmp(line->text, other->text) == 0 && strcmp(line->costs, other->costs) == 0)
			return true;
	}
	return false;
}

/* Why the path, which is PostgreSQL's, was chosen, though nobody declined it. */
static void
compare_costs(const Reason *reason, const Path *path, StringInfo text, StringInfo costs)
{
	const Offer *offer = reason == NULL ? NULL : path->parallel_workers > 0 ? &reason->partial : &reason->whole;
	const char *why = "PostgreSQL's plan costs less";

	appendStringInfo(costs, " (cost=%.2f..%.2f", path->startup_cost, path->total_cost);
	if (offer != NULL && offer->node != NULL)
	{
		/* by itself it would be cheaper, but not what it leads to: its rows have no order, or all come late */
		if (offer->total < path->total_cost)
			why = "PostgreSQL's plan costs less as a whole";
		/* what changes the order of joins has to be cheaper by a margin */
		if (offer->total < path->total_cost && bms_membership(reason->relids) == BMS_MULTIPLE &&
			offer->total > GH_CLEAR_SHARE * path->total_cost)
			why = "it would not cost clearly less";
		appendStringInfo(costs, ", of %s %.2f..%.2f", offer->node, offer->startup, offer->total);
	}
	appendStringInfoString(text, why);
	appendStringInfoChar(costs, ')');
}

static void
append_line(PlannerInfo *root, char *text, char *costs, bool of_copy)
{
	Line	   *line = palloc(sizeof(Line));

	line->run = root->glob;
	line->planning = GetMemoryChunkContext(root->glob);
	line->text = text;
	line->costs = costs;
	line->of_copy = of_copy;
	lines = lappend(lines, line);
}

/* why: an index, and why its copy is not used; NULL: nothing is to be said. */
static void
add_copy_line(PlannerInfo *root, const char *why)
{
	MemoryContext saved = MemoryContextSwitchTo(context);

	if (why != NULL)
		append_line(root, pstrdup(why), "", true);
	MemoryContextSwitchTo(saved);
}

/* Of a path that is PostgreSQL's, for these relations, the grouping, NULL, or GH_WHY_DISTINCT. */
static void
add_line(PlannerInfo *root, const Path *path, Relids relids, const char *what)
{
	MemoryContext saved = MemoryContextSwitchTo(context);
	Reason	   *reason = find_reason(root, relids);
	StringInfoData text;
	StringInfoData costs;
	int			rti = -1;
	const char *separator = " of ";

	initStringInfo(&text);
	initStringInfo(&costs);
	appendStringInfoString(&text, what);
	while ((rti = bms_next_member(relids, rti)) >= 0)
		/* 0 is no relation; 16 counts outer joins among a join's relations */
		if (root->simple_rel_array[rti] != NULL)
		{
			appendStringInfo(&text, "%s%s", separator, root->simple_rte_array[rti]->eref->aliasname);
			separator = ", ";
		}
	appendStringInfoString(&text, ": ");
	/* one way round a join may have been declined, and the other have had a cost */
	if (reason != NULL && reason->why != NULL && reason->whole.node == NULL && reason->partial.node == NULL)
		appendStringInfoString(&text, reason->why);
	else
		compare_costs(reason, path, &text, &costs);
	append_line(root, text.data, costs.data, false);
	MemoryContextSwitchTo(saved);
}

static void walk_path(PlannerInfo *root, Path *path);

/* Without a condition, there is nothing that another scan would do. */
static void
walk_scan(PlannerInfo *root, Path *scan)
{
	const Reason *reason = find_reason(root, scan->parent->relids);

	if (reason != NULL)
		add_copy_line(root, reason->copy);
	if (scan->pathtype == T_SeqScan && scan->parent->baserestrictinfo != NIL)
		add_line(root, scan, scan->parent->relids, "Scan");
}

/* A path that makes groups: of GROUP BY or aggregates, or of SELECT DISTINCT; of UNION it is not told. */
static void
walk_groups(PlannerInfo *root, Path *path, Path *subpath)
{
	bool		aggregates = root->parse->hasAggs || IsA(path, GroupingSetsPath);
	bool		is_partial = IsA(path, AggPath) && ((AggPath *) path)->aggsplit == AGGSPLIT_INITIAL_SERIAL;

	if (IS_UPPER_REL(path->parent) && list_member_ptr(root->upper_rels[UPPERREL_DISTINCT], path->parent))
		add_line(root, path, GH_WHY_DISTINCT, "Distinct");
	else if (aggregates && !is_partial)
		add_line(root, path, NULL, "Aggregate");
	walk_path(root, subpath);
}

/*
 * A node of ours, and what it has below it; scans it reads by itself.  A join returns its rows but to our
 * other nodes.
 */
static void
walk_ours(PlannerInfo *root, CustomPath *path, bool returns_rows)
{
	ListCell   *lc;

	if (!gh_is_join_path(&path->path))
		returns_rows = false;
	else
		add_copy_line(root, gh_why_no_copy_of_ours(root, &path->path, returns_rows));
	foreach(lc, path->custom_paths)
	{
		if (IsA(lfirst(lc), CustomPath))
			walk_ours(root, lfirst(lc), returns_rows);
		else if (!IsA(lfirst(lc), Path))
			walk_path(root, lfirst(lc));
	}
}

static void
walk_paths(PlannerInfo *root, List *paths)
{
	ListCell   *lc;

	foreach(lc, paths)
		walk_path(root, lfirst(lc));
}

static void
walk_join(PlannerInfo *root, JoinPath *join)
{
	add_line(root, &join->path, join->path.parent->relids, "Join");
	add_copy_line(root, gh_why_no_copy(root, join));
	walk_path(root, join->outerjoinpath);
	walk_path(root, join->innerjoinpath);
}

/* The path's scans, joins and groupings, from the top.  Subqueries have been walked by themselves. */
static void
walk_path(PlannerInfo *root, Path *path)
{
	switch (nodeTag(path))
	{
		case T_Path:
		case T_IndexPath:
		case T_BitmapHeapPath:
			walk_scan(root, path);
			break;
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			walk_join(root, (JoinPath *) path);
			break;
		case T_AggPath:
			walk_groups(root, path, ((AggPath *) path)->subpath);
			break;
		case T_GroupingSetsPath:
			walk_groups(root, path, ((GroupingSetsPath *) path)->subpath);
			break;
		case T_GhSortedUniquePath:
			walk_groups(root, path, ((GhSortedUniquePath *) path)->subpath);
			break;
		case T_GroupPath:
			walk_path(root, ((GroupPath *) path)->subpath);
			break;
		case T_CustomPath:
			walk_ours(root, (CustomPath *) path, true);
			break;
		case T_AppendPath:
			walk_paths(root, ((AppendPath *) path)->subpaths);
			break;
		case T_MergeAppendPath:
			walk_paths(root, ((MergeAppendPath *) path)->subpaths);
			break;
		case T_MaterialPath:
			walk_path(root, ((MaterialPath *) path)->subpath);
			break;
		case T_MemoizePath:
			walk_path(root, ((MemoizePath *) path)->subpath);
			break;
		case T_GatherPath:
			walk_path(root, ((GatherPath *) path)->subpath);
			break;
		case T_GatherMergePath:
			walk_path(root, ((GatherMergePath *) path)->subpath);
			break;
		case T_ProjectionPath:
			walk_path(root, ((ProjectionPath *) path)->subpath);
			break;
		case T_ProjectSetPath:
			walk_path(root, ((ProjectSetPath *) path)->subpath);
			break;
		case T_SortPath:
		case T_IncrementalSortPath:
			walk_path(root, ((SortPath *) path)->subpath);
			break;
		case T_WindowAggPath:
			walk_path(root, ((WindowAggPath *) path)->subpath);
			break;
		case T_LockRowsPath:
			walk_path(root, ((LockRowsPath *) path)->subpath);
			break;
		case T_LimitPath:
			walk_path(root, ((LimitPath *) path)->subpath);
			break;
		case T_ModifyTablePath:
			walk_path(root, ((ModifyTablePath *) path)->subpath);
			break;
		default:
			break;
	}
}

static void
upper_paths_hook(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
				 RelOptInfo *output_rel, void *extra)
{
	Path	   *best = NULL;
	ListCell   *lc;

	if (previous_paths_hook)
		previous_paths_hook(root, stage, input_rel, output_rel, extra);
	if (!gh_collects_why || stage != UPPERREL_FINAL)
		return;
	foreach(lc, output_rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (best == NULL || compare_fractional_path_costs(path, best, root->tuple_fraction) < 0)
			best = path;
	}
	if (best != NULL)
		walk_path(root, best);
}

/* The lines so far; those to come are of a query that is planned now. */
List *
gh_why_begin(void)
{
	List	   *before = gh_collects_why ? lines : NIL;

	lines = NIL;
	return before;
}

/*
 * The lines since gh_why_begin, or since the last call, of the plan that came out, which was made in the
 * current context.  For a query of its tables, another extension may run PostgreSQL's planner first over
 * tables that are empty, and then over what other servers will return: its plan is that of the last run, or
 * of none.  Queries that were planned in between are done with, or have failed.
 */
List *
gh_why_take_lines(const PlannedStmt *plan)
{
	MemoryContext caller;
	List	   *taken = NIL;
	ListCell   *lc;

	if (!gh_collects_why)
		return NIL;
	caller = MemoryContextSwitchTo(context);
	foreach(lc, lines)
	{
		Line	   *line = lfirst(lc);

		if ((line->run == NULL || (line->planning == caller && line->run->finalrtable == plan->rtable)) &&
			!has_line(taken, line))
			taken = lappend(taken, line);
	}
	foreach(lc, taken)
		((Line *) lfirst(lc))->run = NULL;
	MemoryContextSwitchTo(caller);
	lines = NIL;
	return taken;
}

/* The plan is the one with these lines. */
void
gh_why_end(List *before, List *taken)
{
	MemoryContext saved;

	if (!gh_collects_why)
		return;
	saved = MemoryContextSwitchTo(context);
	lines = list_concat(before, taken);
	MemoryContextSwitchTo(saved);
}

/* ---------------------------------------------------------------- EXPLAIN */

/* Of text, a line of its own for each; of other formats, what is to be in a list. */
static List *
show_lines_of(const char *label, bool of_copy, ExplainState *es)
{
	List	   *texts = NIL;
	ListCell   *lc;

	foreach(lc, lines)
	{
		const Line *line = lfirst(lc);
		char	   *text = psprintf("%s%s", line->text, es->costs ? line->costs : "");

		if (line->of_copy != of_copy)
			continue;
		if (es->format == EXPLAIN_FORMAT_TEXT)
			ExplainPropertyText(label, text, es);
		else
			texts = lappend(texts, text);
	}
	return texts;
}

static void
show_lines(ExplainState *es)
{
	List	   *texts = show_lines_of("Not Offloaded", false, es);
	List	   *of_copies = show_lines_of("Without Copy", true, es);

	if (texts == NIL && of_copies == NIL)
		return;
	ExplainOpenGroup("gpuhash", NULL, true, es);
	if (texts != NIL)
		ExplainPropertyList("Not Offloaded", texts, es);
	if (of_copies != NIL)
		ExplainPropertyList("Without Copy", of_copies, es);
	ExplainCloseGroup("gpuhash", NULL, true, es);
}

#if GH_HAVE_STANDARD_EXPLAIN
#define explain_one_query standard_ExplainOneQuery
#else

/* What EXPLAIN does where there is no hook. */
static void
explain_one_query(Query *query, int cursorOptions, IntoClause *into, ExplainState *es,
				  const char *queryString, ParamListInfo params, QueryEnvironment *queryEnv)
{
	BufferUsage before = pgBufferUsage;
	BufferUsage used = {0};
	PlannedStmt *plan;
	instr_time	start;
	instr_time	duration;

	INSTR_TIME_SET_CURRENT(start);
	plan = pg_plan_query(query, queryString, cursorOptions, params);
	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, start);
	BufferUsageAccumDiff(&used, &pgBufferUsage, &before);
	ExplainOnePlan(plan, into, es, queryString, params, queryEnv, &duration, es->buffers ? &used : NULL);
}

#endif							/* GH_HAVE_STANDARD_EXPLAIN */

/* What an EXPLAIN has collected. */
typedef struct Collected
{
	bool		collects;
	MemoryContext context;
	List	   *reasons;
	List	   *lines;
} Collected;

static void
restore(const Collected *collected)
{
	gh_collects_why = collected->collects;
	context = collected->context;
	reasons = collected->reasons;
	lines = collected->lines;
}

static void
explain_hook(Query *query, int cursorOptions, IntoClause *into, ExplainState *es,
			 const char *queryString, ParamListInfo params, QueryEnvironment *queryEnv)
{
	const volatile bool collects = gh_enabled && gh_explain_why;
	/* of an EXPLAIN that has this one run: by a function, or for a part of the query on this server */
	const Collected outer = {gh_collects_why, context, reasons, lines};

	if (collects)
		context = AllocSetContextCreate(CurrentMemoryContext, "gpuhash reasons",
										ALLOCSET_SMALL_SIZES);
	reasons = lines = NIL;
	gh_collects_why = collects;
	PG_TRY();
	{
		if (previous_explain_hook)
			previous_explain_hook(query, cursorOptions, into, es, queryString, params, queryEnv);
		else
			explain_one_query(query, cursorOptions, into, es, queryString, params, queryEnv);
	}
	PG_CATCH();
	{
		restore(&outer);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (collects)
	{
		show_lines(es);
		MemoryContextDelete(context);
	}
	restore(&outer);
}

/* Called by _PG_init. */
void
gh_why_init(void)
{
	previous_explain_hook = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_hook;
	previous_paths_hook = create_upper_paths_hook;
	create_upper_paths_hook = upper_paths_hook;
}
