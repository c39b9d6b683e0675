/*
 * same_groups.c
 *		Nodes of a plan that read the same input into the same groups.
 *
 * A query in WITH that was inlined twice (inline.c), a view that is read twice, a subquery that is written
 * twice: where a device makes the groups of each, it may make them once, and keep them for the others
 * (../fragment/shared_groups.c).  Here such nodes are found in a plan that is complete, by what they read and
 * how they group it; what is done with the groups (HAVING, what comes out) may differ.  Each of them has it
 * in its plan how many they are.
 *
 * At run time they are compared once more, by their programs.  So here a wrong answer costs no more than
 * time, or memory of the device until the query ends.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "parser/parsetree.h"

#include "gpuhash.h"
#include "plan/aggregate_plan.h"
#include "plan/join_plan.h"
#include "plan/same_groups.h"

bool
gh_is_node(const Plan *plan, const char *name)
{
	return plan != NULL && IsA(plan, CustomScan) && strcmp(((const CustomScan *) plan)->methods->CustomName, name) == 0;
}

/* Calls for all nodes of a plan, but those of subplans. */
void
gh_walk_plans(Plan *plan, void (*visit) (Plan *, void *), void *arg)
{
	List	   *below = NIL;
	ListCell   *lc;

	if (plan == NULL)
		return;
	visit(plan, arg);
	gh_walk_plans(plan->lefttree, visit, arg);
	gh_walk_plans(plan->righttree, visit, arg);
	if (IsA(plan, CustomScan))
		below = ((CustomScan *) plan)->custom_plans;
	else if (IsA(plan, Append))
		below = ((Append *) plan)->appendplans;
	else if (IsA(plan, MergeAppend))
		below = ((MergeAppend *) plan)->mergeplans;
	else if (IsA(plan, SubqueryScan))
		gh_walk_plans(((SubqueryScan *) plan)->subplan, visit, arg);
	foreach(lc, below)
		gh_walk_plans(lfirst(lc), visit, arg);
}

/* Calls for all nodes of a statement's plans. */
void
gh_walk_statement(const PlannedStmt *stmt, void (*visit) (Plan *, void *), void *arg)
{
	ListCell   *lc;

	gh_walk_plans(stmt->planTree, visit, arg);
	foreach(lc, stmt->subplans)
		gh_walk_plans(lfirst(lc), visit, arg);
}

/* ------------------------------------------------------------ whether they are the same */

/* Of the node; an Integer. */
static ListCell *
sharers_cell(const CustomScan *node)
{
	return list_nth_cell(node->custom_private, GH_AGGREGATE_PRIVATE_SHARERS);
}

/*
 * Whether what two nodes read are the same tables, in joins of the same shape.  The tables' numbers in the
 * query are added to the lists.
 */
static bool
read_same_tables(const Plan *a, const Plan *b, const PlannedStmt *stmt, List **a_tables, List **b_tables)
{
	if (nodeTag(a) != nodeTag(b) || a->parallel_aware || b->parallel_aware)
		return false;
	if (IsA(a, SeqScan))
	{
		*a_tables = lappend_int(*a_tables, ((const Scan *) a)->scanrelid);
		*b_tables = lappend_int(*b_tables, ((const Scan *) b)->scanrelid);
		return rt_fetch(((const Scan *) a)->scanrelid, stmt->rtable)->relid ==
			rt_fetch(((const Scan *) b)->scanrelid, stmt->rtable)->relid;
	}
	return gh_is_node(a, GH_JOIN_NAME) && gh_is_node(b, GH_JOIN_NAME) &&
		read_same_tables(outerPlan(a), outerPlan(b), stmt, a_tables, b_tables) &&
		read_same_tables(innerPlan(a), innerPlan(b), stmt, a_tables, b_tables);
}

/* Columns of tables, by the tables' places in the list, whichever number they have in the query. */
static Node *
tables_mutator(Node *node, List *tables)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *var = copyObject((Var *) node);
		ListCell   *lc;

		foreach(lc, tables)
			if (lfirst_int(lc) == ((Var *) node)->varno)
				var->varno = foreach_current_index(lc) + 1;
		return (Node *) var;
	}
	return expression_tree_mutator(node, tables_mutator, (void *) tables);
}

static bool
are_equal(List *a, List *a_tables, List *b, List *b_tables)
{
	return equal(tables_mutator((Node *) a, a_tables), tables_mutator((Node *) b, b_tables));
}

/* Of nodes that read the same tables: whether they make the same of them. */
static bool
make_same_rows(const Plan *a, List *a_tables, const Plan *b, List *b_tables)
{
	const CustomScan *a_join = (const CustomScan *) a;
	const CustomScan *b_join = (const CustomScan *) b;

	if (!are_equal(a->targetlist, a_tables, b->targetlist, b_tables) ||
		!are_equal(a->qual, a_tables, b->qual, b_tables))
		return false;
	if (!gh_is_node(a, GH_JOIN_NAME))
		return true;
	if (!equal(a_join->custom_private, b_join->custom_private) ||
		!are_equal(a_join->custom_exprs, a_tables, b_join->custom_exprs, b_tables) ||
		!are_equal(a_join->custom_scan_tlist, a_tables, b_join->custom_scan_tlist, b_tables))
		return false;
	return make_same_rows(outerPlan(a), a_tables, outerPlan(b), b_tables) &&
		make_same_rows(innerPlan(a), a_tables, innerPlan(b), b_tables);
}

static bool
is_private_equal(const CustomScan *a, const CustomScan *b, GhAggregatePrivate part)
{
	return equal(list_nth(a->custom_private, part), list_nth(b->custom_private, part));
}

static bool
make_same_groups(const CustomScan *a, const CustomScan *b, const PlannedStmt *stmt)
{
	const Plan *a_child = outerPlan(a);
	const Plan *b_child = outerPlan(b);
	List	   *a_tables = NIL;
	List	   *b_tables = NIL;

	return equal(a->custom_exprs, b->custom_exprs) &&
		is_private_equal(a, b, GH_AGGREGATE_PRIVATE_FUNCTIONS) &&
		is_private_equal(a, b, GH_AGGREGATE_PRIVATE_DISTINCT) &&
		is_private_equal(a, b, GH_AGGREGATE_PRIVATE_SETS) &&
		read_same_tables(a_child, b_child, stmt, &a_tables, &b_tables) &&
		make_same_rows(a_child, a_tables, b_child, b_tables);
}

/* ---------------------------------------------------------------------- all of a plan */

/* Those whose groups a device is expected to make, and that were not looked at yet. */
static void
collect(Plan *plan, void *arg)
{
	List	  **nodes = arg;

	if (gh_is_node(plan, GH_AGGREGATE_NAME) &&
		intVal(lfirst(sharers_cell((CustomScan *) plan))) < 0)
		*nodes = lappend(*nodes, plan);
}

/* Those of the list that make the groups that this one makes, which is the first of them. */
static List *
nodes_like(const CustomScan *node, List *nodes, const PlannedStmt *stmt)
{
	List	   *same = NIL;
	ListCell   *lc;

	foreach(lc, nodes)
	{
		CustomScan *other = lfirst_node(CustomScan, lc);

		if (other == node || make_same_groups(node, other, stmt))
			same = lappend(same, other);
	}
	return same;
}

/* What it takes to begin on a device, with groups that are there: that is not spared. */
static Cost
spared_cost(const CustomScan *node)
{
	return Max(node->scan.plan.startup_cost - gh_setup_cost - gh_device_start_cost, 0);
}

/*
 * Finds them in the plan; returns what of its cost is spared.  *common: what it costs to make all these
 * groups once.
 */
Cost
gh_share_groups(PlannedStmt *stmt, Cost *common)
{
	List	   *nodes = NIL;
	Cost		spared = 0;
	ListCell   *lc;

	gh_walk_statement(stmt, collect, &nodes);
	*common = 0;
	while (nodes != NIL)
	{
		CustomScan *node = linitial_node(CustomScan, nodes);
		List	   *same = nodes_like(node, nodes, stmt);
		int			count = list_length(same);

		foreach(lc, same)
			lfirst(sharers_cell(lfirst_node(CustomScan, lc))) = makeInteger(count > 1 ? count : 0);
		spared += (count - 1) * spared_cost(node);
		*common += count > 1 ? spared_cost(node) : 0;
		nodes = list_difference_ptr(nodes, same);
	}
	return spared;
}
