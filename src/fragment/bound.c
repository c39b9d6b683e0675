/*
 * bound.c
 *		ORDER BY ... LIMIT above a node: how many of its rows are wanted.
 *
 * A node does not know its parents, so they are looked for in the plan.  A Limit reads no more than so many
 * rows of a Sort below it, and with WITH TIES those that are equal to the last one.  So a node may leave out
 * a row if it knows of as many that come before it by the first sort key alone.  In a parallel plan each
 * process has a Sort of its own, and the Limit is above the Gather Merge: workers do not know of it.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"

#include "expr/fold.h"
#include "fragment/bound.h"

static bool find_in(const Plan *plan, const Plan *wanted, GhBound *bound);

static bool
find_in_list(List *plans, const Plan *wanted, GhBound *bound)
{
	ListCell   *lc;

	foreach(lc, plans)
		if (find_in(lfirst(lc), wanted, bound))
			return true;
	return false;
}

/* Below nodes that have more than two children. */
static bool
find_in_children(const Plan *plan, const Plan *wanted, GhBound *bound)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			return find_in_list(((const Append *) plan)->appendplans, wanted, bound);
		case T_MergeAppend:
			return find_in_list(((const MergeAppend *) plan)->mergeplans, wanted, bound);
		case T_SubqueryScan:
			return find_in(((const SubqueryScan *) plan)->subplan, wanted, bound);
		case T_CustomScan:
			return find_in_list(((const CustomScan *) plan)->custom_plans, wanted, bound);
		default:
			return false;
	}
}

/*
 * The plan whose rows a node passes on, as many as there are and in their order, so that a Limit above it is
 * about those, too; or the node itself.
 */
static const Plan *
passed_on_by(const Plan *plan)
{
	if (IsA(plan, GatherMerge))
		return passed_on_by(outerPlan(plan));
	/* what it computes is not computed before */
	if (IsA(plan, Result) && outerPlan(plan) != NULL && plan->qual == NIL && ((const Result *) plan)->resconstantqual == NULL)
		return passed_on_by(outerPlan(plan));
	return plan;
}

/* Whether the plan is there; a Sort right above it and a Limit right above that, if so. */
static bool
find_in(const Plan *plan, const Plan *wanted, GhBound *bound)
{
	if (plan == NULL)
		return false;
	if (plan == wanted)
		return true;
	if (!find_in(outerPlan(plan), wanted, bound) && !find_in(innerPlan(plan), wanted, bound) &&
		!find_in_children(plan, wanted, bound))
		return false;
	if (IsA(plan, Sort) && outerPlan(plan) == wanted)
		bound->sort = (const Sort *) plan;
	if (IsA(plan, Limit) && bound->sort != NULL && passed_on_by(outerPlan(plan)) == (const Plan *) bound->sort)
		bound->limit = (const Limit *) plan;
	return true;
}

/* Looks for a Limit above a Sort above the plan, which say how many of its rows are wanted. */
void
gh_bound_find(GhBound *bound, const EState *estate, const Plan *plan)
{
	memset(bound, 0, sizeof(*bound));
	if (!find_in(estate->es_plannedstmt->planTree, plan, bound))
		(void) find_in_list(estate->es_plannedstmt->subplans, plan, bound);
}

/* Whether an expression may be another one in the next run of the node. */
static bool
changes(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind != PARAM_EXTERN)
		return true;
	return IsA(node, SubPlan) || IsA(node, Var) || expression_tree_walker(node, changes, unused);
}

/* The number that a clause of the Limit is; 0: there is none; -1: that is not known. */
static int64
number_of(Node *expr, PlanState *ps)
{
	ParamExecData *awaited = NULL;

	if (expr == NULL)
		return 0;
	expr = changes(expr, NULL) ? expr : gh_fold_constants(ps, expr, &awaited);
	if (!IsA(expr, Const))
		return -1;
	return ((Const *) expr)->constisnull ? 0 : DatumGetInt64(((Const *) expr)->constvalue);
}

/* The first so many rows of the Sort's order are wanted; 0: that is not known, or all are. */
uint64
gh_bound_rows(const GhBound *bound, PlanState *ps)
{
	int64		count;
	int64		offset;

	if (bound->limit == NULL)
		return 0;
	count = number_of(bound->limit->limitCount, ps);
	offset = number_of(bound->limit->limitOffset, ps);
	return count <= 0 || offset < 0 ? 0 : (uint64) count + (uint64) offset;
}

/* The first key of the Sort, which is there, as an expression over what the node computes its rows of. */
Expr *
gh_bound_key(const GhBound *bound, const Plan *plan)
{
	return list_nth_node(TargetEntry, plan->targetlist, bound->sort->sortColIdx[0] - 1)->expr;
}
