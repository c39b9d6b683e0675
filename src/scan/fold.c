/*
 * fold.c
 *		What has no columns in an expression, made constants for one execution.
 *
 * A node does so when its first row is there.  What has no columns is then evaluated: parameters,
 * now(), and built-in functions of these.  An error that this raises may be one that PostgreSQL never
 * comes to, because a row was dropped before.  So it is forgotten, the part stays as it is, there is
 * no program, and PostgreSQL's expressions do the rows.  In the same way a parameter that stands for
 * a subquery not run yet is left, for the node to ask again when it was.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"

#include "guard.h"
#include "scan/fold.h"
#include "scan/translate.h"

typedef struct Folding
{
	PlanState  *ps;
	ParamExecData *awaited;		/* the result of a subquery that was not run yet; or NULL */
} Folding;

/* Whether the expression reads the result of a subquery that was not run yet. */
static bool
waits_walker(Node *expr, Folding *folding)
{
	if (expr == NULL)
		return false;
	if (IsA(expr, Param) && ((Param *) expr)->paramkind == PARAM_EXEC)
	{
		ExprContext *econtext = folding->ps->ps_ExprContext;
		ParamExecData *param = &econtext->ecxt_param_exec_vals[((Param *) expr)->paramid];

		if (param->execPlan != NULL)
			folding->awaited = param;
		return param->execPlan != NULL;
	}
	return expression_tree_walker(expr, waits_walker, (void *) folding);
}

typedef struct Evaluation
{
	PlanState  *ps;
	Expr	   *expr;
	Datum		value;
	bool		null;
} Evaluation;

static void
evaluate(void *arg)
{
	Evaluation *evaluation = arg;
	PlanState  *ps = evaluation->ps;

	evaluation->value = ExecEvalExprSwitchContext(ExecInitExpr(evaluation->expr, ps),
												  ps->ps_ExprContext, &evaluation->null);
}

/* A GhMakeConstant: the expression's value; NULL: there is none yet, or there was an error. */
static Const *
evaluated(Expr *expr, void *arg)
{
	Folding    *folding = arg;
	Evaluation	evaluation = {.ps = folding->ps, .expr = expr};
	Oid			type = exprType((Node *) expr);
	ResourceOwner owner;
	int16		typlen;
	bool		typbyval;
	bool		done;

	if (waits_walker((Node *) expr, folding))
		return NULL;
	owner = ResourceOwnerCreate(CurrentResourceOwner, "gpuhash constants");
	done = gh_run_tried(owner, evaluate, &evaluation);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, done, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_LOCKS, done, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, done, false);
	ResourceOwnerDelete(owner);
	if (!done)
		return NULL;
	get_typlenbyval(type, &typlen, &typbyval);
	return makeConst(type, exprTypmod((Node *) expr), exprCollation((Node *) expr), typlen,
					 evaluation.null ? (Datum) 0 : datumCopy(evaluation.value, typbyval, typlen),
					 evaluation.null, typbyval);
}

/*
 * A copy of the expression with constants, as they are in this execution of the node, for what has no
 * columns.  *awaited is set where the result of a subquery would be one.
 */
Node *
gh_fold_constants(PlanState *ps, Node *expr, ParamExecData **awaited)
{
	Folding		folding = {.ps = ps};
	Node	   *result = gh_make_constants(expr, evaluated, &folding);

	if (folding.awaited != NULL)
		*awaited = folding.awaited;
	return result;
}
