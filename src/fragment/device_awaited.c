/*
 * device_awaited.c
 *		Results of subqueries that conditions are compared with, and that no first row would ask for where a device does
 *		all.
 */
#include "postgres.h"

#include "executor/nodeSubplan.h"
#include "nodes/nodeFuncs.h"

#include "expr/translate.h"
#include "fragment/device.h"
#include "fragment/joined.h"

/*
 * Whether PostgreSQL, if it evaluates an expression, is sure to come to a subquery's result that is not there
 * yet, or has no such part: nothing that is evaluated before may raise an error, or be a user's.  *awaited:
 * that one.
 */
static bool
comes_to_awaited(PlanState *ps, Node *node, ParamExecData **awaited)
{
	const Param *param = (Param *) node;
	List	   *args = NIL;
	Oid			function = InvalidOid;
	ListCell   *lc;

	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
			return true;
		case T_Param:
			if (param->paramkind == PARAM_EXEC && ps->ps_ExprContext->ecxt_param_exec_vals[param->paramid].execPlan != NULL)
				*awaited = &ps->ps_ExprContext->ecxt_param_exec_vals[param->paramid];
			return true;
		case T_RelabelType:
			return comes_to_awaited(ps, (Node *) ((RelabelType *) node)->arg, awaited);
		case T_OpExpr:
			args = ((OpExpr *) node)->args;
			function = ((OpExpr *) node)->opfuncid;
			break;
		case T_FuncExpr:
			args = ((FuncExpr *) node)->args;
			function = ((FuncExpr *) node)->funcid;
			break;
		default:
			return false;
	}
	foreach(lc, args)
	{
		if (!comes_to_awaited(ps, lfirst(lc), awaited))
			return false;
		if (*awaited != NULL)
			return true;
	}
	return gh_never_fails(function);
}

/* Whether rows of the scan are looked at whatever there is on inner sides. */
static bool
reads_scan_always(const GhJoined *joined)
{
	for (int i = 0; i < joined->nlevels; i++)
	{
		JoinType	jointype = joined->levels[i].lower->jointype;

		if (jointype != JOIN_LEFT && jointype != JOIN_ANTI)
			return false;
	}
	return true;
}

/*
 * The result of a subquery that a condition is compared with, and that is not there yet; NULL: there is none.
 */
static ParamExecData *
awaited_by(PlanState *ps, Node *condition)
{
	ParamExecData *awaited = NULL;

	return condition != NULL && comes_to_awaited(ps, condition, &awaited) ? awaited : NULL;
}

/*
 * Runs the subqueries whose results a node's condition is compared with, where it is sure that there is a row
 * which that is evaluated for: where all is done by a device, or nothing, no first row would run them.
 */
void
gh_device_run_awaited(PlanState *ps, Node *condition)
{
	ParamExecData *awaited;

	while ((awaited = awaited_by(ps, condition)) != NULL)
		ExecSetParamPlan(awaited->execPlan, ps->ps_ExprContext);
}

/*
 * Likewise of the scan's first condition.  Other conditions may never be reached; with a subquery in one of
 * these, the host does the node.
 */
void
gh_device_run_first(GhFragment *fragment)
{
	ScanState  *scan = (ScanState *) fragment->scan;
	Node	   *first = scan->ps.plan->qual == NIL ? NULL : linitial(scan->ps.plan->qual);
	MemoryContext saved;

	if (!reads_scan_always(fragment->joined))
		return;
	saved = MemoryContextSwitchTo(fragment->device->context);
	if (awaited_by(&fragment->css.ss.ps, first) != NULL && gh_fragment_has_row(fragment, false))
		gh_device_run_awaited(&fragment->css.ss.ps, first);
	MemoryContextSwitchTo(saved);
}
