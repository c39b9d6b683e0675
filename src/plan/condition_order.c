/*
 * condition_order.c
 *		Conditions of scans that programs evaluate: the cheapest first, where nobody can tell.
 *
 * A program does what is fixed in width for a whole batch at a time, and texts row by row, for rows that are
 * left.  PostgreSQL's costs know of no such difference, and conditions that cost it the same stay as they
 * were written.  Those that cannot fail, and do nothing else, may be evaluated in any order, as far as they
 * are next to each other.
 */
#include "postgres.h"

#include "access/transam.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "expr/translate.h"
#include "plan/aggregate_plan.h"
#include "plan/join_plan.h"
#include "plan/planning.h"
#include "plan/same_groups.h"
#include "plan/unnest.h"

/* What a condition takes of programs, the least first. */
typedef enum Weight
{
	BY_BATCH,					/* words */
	BY_ROW,						/* numerics */
	BY_TEXT,
	BY_PATTERN,
	WITHOUT						/* there is no program */
} Weight;

static Weight
weight_of_type(Oid type)
{
	switch ((int) gh_class_of_type(type))
	{
		case 0:
			return WITHOUT;
		case GH_CLASS_INT128:
			return BY_ROW;
		case GH_CLASS_TEXT:
		case GH_CLASS_BPCHAR:
			return BY_TEXT;
		default:
			return BY_BATCH;
	}
}

static bool
add_weight(Node *node, Weight *weight)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		*weight = Max(*weight, weight_of_type(exprType(node)));
	/* of texts, whatever is no comparison */
	if (IsA(node, OpExpr) && weight_of_type(exprType(linitial(((OpExpr *) node)->args))) == BY_TEXT &&
		!gh_is_comparison(((OpExpr *) node)->opno))
		*weight = Max(*weight, BY_PATTERN);
	return expression_tree_walker(node, add_weight, weight);
}

/*
 * Whether an operator is PostgreSQL's own, and cannot fail.  Leakproof ones fail for want of a collation, and
 * some where texts that differ may be equal by it.
 */
static bool
cannot_fail(Oid operator, Oid collation, List *args)
{
	if (operator >= FirstUnpinnedObjectId || !get_func_leakproof(get_opcode(operator)))
		return false;
	return OidIsValid(collation) ? get_collation_isdeterministic(collation) : !gh_lacks_collation(collation, args);
}

/*
 * Whether evaluating the condition may fail, or be seen otherwise.  Results of subqueries are asked for when
 * a condition is, and not before.
 */
static bool
may_show(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_OpExpr:
			{
				const OpExpr *op = (const OpExpr *) node;

				if (!cannot_fail(op->opno, op->inputcollid, op->args) && !gh_operator_is_safe(op))
					return true;
			}
			break;
		case T_ScalarArrayOpExpr:
			{
				const ScalarArrayOpExpr *op = (const ScalarArrayOpExpr *) node;

				if (!cannot_fail(op->opno, op->inputcollid, op->args) && !gh_array_operator_is_safe(op))
					return true;
			}
			break;
		case T_Param:
			return ((Param *) node)->paramkind != PARAM_EXTERN;
		case T_List:
		case T_Var:
		case T_Const:
		case T_RelabelType:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, may_show, unused);
}

static Node *
clause_of(void *condition)
{
	return IsA(condition, RestrictInfo) ? (Node *) ((RestrictInfo *) condition)->clause : condition;
}

/* Conditions, expressions or RestrictInfos, in the order in which programs are to evaluate them. */
List *
gh_conditions_in_order(List *conditions)
{
	int			n = list_length(conditions);
	List	   *result = list_copy(conditions);
	Weight	   *weights;
	int			first = 0;		/* of those that may change places */

	if (n < 2)
		return result;
	weights = palloc0(n * sizeof(Weight));
	for (int i = 0; i < n; i++)
	{
		void	   *condition = list_nth(result, i);
		Node	   *clause = clause_of(condition);
		int			at = i;

		if (may_show(clause, NULL))
		{
			first = i + 1;
			continue;
		}
		(void) add_weight(clause, &weights[i]);
		for (Weight weight = weights[i]; at > first && weights[at - 1] > weight; at--)
		{
			lfirst(list_nth_cell(result, at)) = list_nth(result, at - 1);
			weights[at] = weights[at - 1];
			weights[at - 1] = weight;
		}
		lfirst(list_nth_cell(result, at)) = condition;
	}
	pfree(weights);
	return result;
}

/* ------------------------------------------------------------------- in a plan */

/* A scan that a node of ours reads, or several as one. */
static void
order_scan(Plan *plan)
{
	ListCell   *lc;

	if (plan == NULL)
		return;
	if (IsA(plan, SeqScan))
		plan->qual = gh_conditions_in_order(plan->qual);
	if (IsA(plan, Append))
		foreach(lc, ((Append *) plan)->appendplans)
			order_scan(lfirst(lc));
}

static void
visit(Plan *plan, void *unused)
{
	if (!gh_is_node(plan, GH_JOIN_NAME) && !gh_is_node(plan, GH_AGGREGATE_NAME) && !gh_is_node(plan, GH_ROWS_NAME))
		return;
	order_scan(outerPlan(plan));
	order_scan(innerPlan(plan));
}

/* Those of scans that nodes of ours read by themselves.  (Of a GpuHashScan its path has seen to it.) */
void
gh_order_conditions(const PlannedStmt *stmt)
{
	gh_walk_statement(stmt, visit, NULL);
}
