/*
 * host_rows.c
 *		Rows of joins that the CPU engine makes as a whole: a GpuHashRows above a chain of GpuHashJoins, in a plan that is
 *		complete.
 *
 * A GpuHashJoin that returns its rows to the executor reads pages, and looks at each row of them.  Where the
 * columns of the chain's scan are in shared memory, a pipeline does all of that in vectors (../rows); but a
 * row of many columns costs more when it comes out of one.  So it is for joins that leave few rows of many.
 * It changes no choice of the planner's: it stands above joins that were chosen, and its cost is theirs.  But
 * where several plans of a query are compared, what it saves counts.
 */
#include "postgres.h"

#include "access/table.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "expr/translate.h"
#include "fragment/costs.h"
#include "gpuhash.h"
#include "plan/aggregate_plan.h"
#include "plan/host_rows.h"
#include "plan/join_plan.h"
#include "plan/note.h"
#include "plan/rows_path.h"
#include "plan/same_groups.h"
#include "service/placement.h"
#include "service/service.h"
#include "store/columns_share.h"

typedef struct Walk
{
	PlannedStmt *stmt;
	GhWantedList *wanted;		/* NULL: nobody asks */
	int			last_id;		/* the largest number of a node; 0: nobody has looked */
	bool		looks_only;		/* whether it would pay, and what that saves */
	bool		is_priced;		/* the plan's cost has that already */
	Cost		saved;
} Walk;

/* ------------------------------------------------------------ whether it pays */

/* The scan at the end of a chain of joins that a pipeline can do; NULL: it is none. */
static SeqScan *
scan_of_chain(Plan *plan)
{
	while (gh_is_node(plan, GH_JOIN_NAME))
	{
		const List *private = ((CustomScan *) plan)->custom_private;
		JoinType	type = (JoinType) intVal(list_nth(private, GH_PRIVATE_JOINTYPE));

		if (intVal(list_nth(private, GH_PRIVATE_PLAIN)) == 0 || type == JOIN_RIGHT || type == JOIN_FULL)
			return NULL;
		plan = outerPlan(plan);
	}
	return plan != NULL && IsA(plan, SeqScan) ? (SeqScan *) plan : NULL;
}

/*
 * The columns of a join's scan tuple that its output is computed of, by their numbers; *others: it is of a
 * whole row, too.
 */
static Bitmapset *
columns_of_output(const CustomScan *join, bool *others)
{
	Bitmapset  *all = NULL;

	pull_varattnos((Node *) join->scan.plan.targetlist, INDEX_VAR, &all);
	return gh_column_numbers(all, others);
}

static const TargetEntry *
scan_column(const CustomScan *join, int column)
{
	return list_nth_node(TargetEntry, join->custom_scan_tlist, column - 1);
}

/* Whether engines hold the column's values, and mostly hand no row back for one. */
static bool
is_held(const Walk *walk, const Expr *expr)
{
	const Var  *var = (const Var *) expr;
	GhClass		class = gh_class_of_type(exprType((const Node *) expr));

	if (class == 0 || gh_is_open_numeric(exprType((const Node *) expr), exprTypmod((const Node *) expr)))
		return false;
	if (class != GH_CLASS_TEXT && class != GH_CLASS_BPCHAR)
		return true;
	return IsA(var, Var) && !IS_SPECIAL_VARNO(var->varno) && rt_fetch(var->varno, walk->stmt->rtable)->rtekind == RTE_RELATION &&
		get_attavgwidth(rt_fetch(var->varno, walk->stmt->rtable)->relid, var->varattno) <= GH_LONG_TEXT;
}

static bool
holds_all_columns(const Walk *walk, const CustomScan *join)
{
	bool		others;
	Bitmapset  *columns = columns_of_output(join, &others);
	int			column = -1;

	if (columns == NULL || others || bms_num_members(columns) > GH_VALUES_MAX)
		return false;
	while ((column = bms_next_member(columns, column)) >= 0)
		if (!is_held(walk, scan_column(join, column)->expr))
			return false;
	return true;
}

/* The columns of its table that a scan reads; NULL: also others than columns, or none. */
static Bitmapset *
columns_of_scan(const SeqScan *scan)
{
	Bitmapset  *all = NULL;
	Bitmapset  *columns;
	bool		others;

	pull_varattnos((Node *) scan->scan.plan.targetlist, scan->scan.scanrelid, &all);
	pull_varattnos((Node *) scan->scan.plan.qual, scan->scan.scanrelid, &all);
	columns = gh_column_numbers(all, &others);
	return others ? NULL : columns;
}

/*
 * Whether these columns of the table are there, with which so much is saved; else they are wanted, if they
 * can be made.
 */
static bool
are_there(Walk *walk, Relation relation, const Bitmapset *columns, Cost saved)
{
	BlockNumber pages = relation->rd_rel->relpages;
	double		share = gh_columns_share(relation, pages, columns);
	uint64		lacking = 0;

	if (share >= GH_COLUMNS_THERE)
	{
		walk->saved += saved * share;
		return true;
	}
	if (walk->wanted != NULL && gh_prewarm_columns && !gh_force_offload && relation->rd_rel->relallvisible >= GH_COLUMNS_THERE * pages)
		lacking = gh_columns_missing(relation, relation->rd_rel->reltuples, columns);
	if (lacking != 0)
		gh_wanted_add_table(walk->wanted, RelationGetRelid(relation), lacking, saved);
	return false;
}

/* What a scan costs more than the columns of its rows, if there are all. */
static Cost
saved_by_columns(const SeqScan *scan, Relation relation)
{
	const Plan *plan = &scan->scan.plan;

	return Max(plan->total_cost - plan->startup_cost -
			   relation->rd_rel->reltuples * GH_COLUMN_ROW_COST * cpu_tuple_cost, 0);
}

/* Whether columns are there that make it worth it, and few rows come out of many. */
static bool
reads_columns(Walk *walk, const SeqScan *scan, const Plan *join)
{
	Bitmapset  *columns = columns_of_scan(scan);
	Relation	relation;
	Cost		saved;
	bool		reads;

	if (columns == NULL)
		return false;
	relation = table_open(rt_fetch(scan->scan.scanrelid, walk->stmt->rtable)->relid, NoLock);
	saved = walk->is_priced ? 0 : saved_by_columns(scan, relation);
	reads = (gh_force_offload || join->plan_rows <= relation->rd_rel->reltuples / GH_READ_FOR_ONE) &&
		are_there(walk, relation, columns, saved);
	table_close(relation, NoLock);
	return reads;
}

static bool
is_worth_it(Walk *walk, Plan *plan)
{
	const SeqScan *scan = scan_of_chain(plan);

	return scan != NULL && holds_all_columns(walk, (CustomScan *) plan) && reads_columns(walk, scan, plan);
}

/* -------------------------------------------------------------------- the node */

static void
find_last_id(Plan *plan, void *arg)
{
	Walk	   *walk = arg;

	walk->last_id = Max(walk->last_id, plan->plan_node_id);
}

/* The node's number is one that no other node of the statement has. */
static int
next_id(Walk *walk)
{
	if (walk->last_id == 0)
		gh_walk_statement(walk->stmt, find_last_id, walk);
	return ++walk->last_id;
}

static Var *
index_var(const TargetEntry *tle, int number)
{
	const Node *expr = (const Node *) tle->expr;

	return makeVar(INDEX_VAR, number, exprType(expr), exprTypmod(expr), exprCollation(expr), 0);
}

/* What a join's output is computed of, by the numbers of its columns; from 0 on they have new ones. */
static Node *
renumber_mutator(Node *node, Bitmapset *columns)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varno == INDEX_VAR)
	{
		Var		   *var = copyObject((Var *) node);

		var->varattno = bms_member_index(columns, var->varattno) + 1;
		return (Node *) var;
	}
	return expression_tree_mutator(node, renumber_mutator, (void *) columns);
}

/*
 * A GpuHashRows above the join.  That returns the columns that its output is computed of, which is done
 * above, as it was: for each row when it comes out.
 */
static Plan *
make_rows(Walk *walk, CustomScan *join)
{
	Plan	   *below = &join->scan.plan;
	CustomScan *rows = makeNode(CustomScan);
	bool		others;
	Bitmapset  *columns = columns_of_output(join, &others);
	List	   *output = NIL;
	List	   *values = NIL;
	List	   *places = NIL;
	int			column = -1;
	int			n = 0;

	while ((column = bms_next_member(columns, column)) >= 0)
	{
		const TargetEntry *tle = scan_column(join, column);

		n++;
		output = lappend(output, makeTargetEntry((Expr *) index_var(tle, column), n, NULL, false));
		values = lappend(values, index_var(tle, n));
		places = lappend_int(places, n - 1);
		rows->custom_scan_tlist = lappend(rows->custom_scan_tlist, makeTargetEntry(copyObject(tle->expr), n, NULL, false));
	}
	rows->scan.plan = *below;
	rows->scan.plan.plan_node_id = next_id(walk);
	rows->scan.plan.startup_cost = below->total_cost;
	rows->scan.plan.parallel_aware = ((Plan *) scan_of_chain(below))->parallel_aware;
	rows->scan.plan.targetlist = (List *) renumber_mutator((Node *) below->targetlist, columns);
	rows->scan.plan.qual = NIL;
	/* subqueries that run once stay those of the highest node: EXPLAIN knows their results below that alone */
	below->initPlan = NIL;
	rows->scan.plan.lefttree = below;
	rows->scan.plan.righttree = NULL;
	rows->scan.plan.extParam = bms_copy(below->extParam);
	rows->scan.plan.allParam = bms_copy(below->allParam);
	below->targetlist = output;
	rows->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	rows->custom_relids = bms_copy(join->custom_relids);
	/* in the orders of GhAggregateExprs and GhAggregatePrivate */
	rows->custom_exprs = list_make3(values, NIL, NIL);
	rows->custom_private = list_make5(makeInteger(n), places, makeInteger(n), NIL, NIL);
	rows->custom_private = lappend(rows->custom_private, NIL);
	rows->custom_private = lappend(rows->custom_private, makeInteger(1));
	rows->methods = GetCustomScanMethods(GH_ROWS_NAME, false);
	return &rows->scan.plan;
}

/* -------------------------------------------------------------------- the plan */

static void visit(Walk *walk, Plan **place, bool absorbed, bool unread, bool grouped);

static void
visit_list(Walk *walk, List *plans, bool unread)
{
	ListCell   *lc;

	foreach(lc, plans)
		visit(walk, (Plan **) &lfirst(lc), false, unread, false);
}

/* Whether a node reads all of what is below it before its first row comes out. */
static bool
reads_all(const Plan *plan)
{
	return IsA(plan, Sort) || IsA(plan, Hash) || gh_is_node(plan, GH_AGGREGATE_NAME) ||
		(IsA(plan, Agg) && ((const Agg *) plan)->aggstrategy != AGG_SORTED);
}

/*
 * A plan and what is below it.  absorbed: the node above reads the scan of its joins itself; unread: maybe
 * not all of its rows are asked for, so that it is not to make all before the first; grouped: it is a join of
 * a grouping's chain, which knows the price of inner sides (gh_inner_chains_save), or such an inner side.
 */
static void
visit(Walk *walk, Plan **place, bool absorbed, bool unread, bool grouped)
{
	Plan	   *plan = *place;
	bool		is_join;
	bool		below;
	bool		priced;

	if (plan == NULL)
		return;
	is_join = gh_is_node(plan, GH_JOIN_NAME);
	priced = grouped && (is_join || IsA(plan, Gather) || IsA(plan, GatherMerge));
	below = !reads_all(plan) && (unread || IsA(plan, Limit) || IsA(plan, RecursiveUnion));
	visit(walk, &plan->lefttree, is_join || gh_is_node(plan, GH_AGGREGATE_NAME) || gh_is_node(plan, GH_ROWS_NAME), below,
		  gh_is_node(plan, GH_AGGREGATE_NAME) || priced);
	/* an inner side that is hashed is read to its end; of a nested loop, for each row anew */
	visit(walk, &plan->righttree, false, !is_join && (below || IsA(plan, NestLoop)), priced);
	if (IsA(plan, CustomScan))
		visit_list(walk, ((CustomScan *) plan)->custom_plans, true);
	else if (IsA(plan, Append))
		visit_list(walk, ((Append *) plan)->appendplans, below);
	else if (IsA(plan, MergeAppend))
		visit_list(walk, ((MergeAppend *) plan)->mergeplans, below);
	else if (IsA(plan, SubqueryScan))
		visit(walk, &((SubqueryScan *) plan)->subplan, false, below, false);
	walk->is_priced = grouped;
	if (is_join && !absorbed && !unread && is_worth_it(walk, plan) && !walk->looks_only)
		*place = make_rows(walk, (CustomScan *) plan);
}

bool
gh_host_rows_are_expected(void)
{
	return gh_enable_rows && gh_service_enabled() && !gh_device_is_expected(PG_UINT32_MAX);
}

static void
visit_all(Walk *walk, int options)
{
	ListCell   *lc;

	if (!gh_host_rows_are_expected())
		return;
	visit(walk, &walk->stmt->planTree, false, (options & CURSOR_OPT_FAST_PLAN) != 0, false);
	/* what is read of them, and when, is not known here */
	foreach(lc, walk->stmt->subplans)
		visit(walk, (Plan **) &lfirst(lc), false, true, false);
}

void
gh_host_rows(PlannedStmt *stmt, int options)
{
	Walk		walk = {.stmt = stmt};

	visit_all(&walk, options);
}

Cost
gh_host_rows_save(PlannedStmt *stmt, int options, GhWantedList *wanted)
{
	Walk		walk = {.stmt = stmt,.wanted = wanted,.looks_only = true};

	visit_all(&walk, options);
	return walk.saved;
}
