/*
 * constants.c
 *		The parts of an expression that have no columns, and so one value for all rows.
 *
 * A planner puts some constant of the type in their place, to see whether the rest has a
 * program; an executor, what they are in this execution.  Only such parts are made constants as can be
 * evaluated before PostgreSQL would do it; with others an expression has no program.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

#include "expr/translate.h"

typedef struct ConstantsContext
{
	GhMakeConstant make;
	void	   *arg;
} ConstantsContext;

static Node *
make_constants_mutator(Node *node, ConstantsContext *context)
{
	Const	   *constant;

	if (node == NULL)
		return NULL;
	/* its parameters have values only while it is evaluated itself */
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan))
		return node;
	if (!IsA(node, Const) && gh_is_unfailing(node))
	{
		constant = context->make((Expr *) node, context->arg);
		if (constant != NULL)
			return (Node *) constant;
	}
	return expression_tree_mutator(node, make_constants_mutator, (void *) context);
}

/*
 * A copy of the expression in which the largest parts that have no columns and can be evaluated ahead
 * (unfailing.c) are the constants that `make` gives; where it gives NULL, their parts are tried.
 */
Node *
gh_make_constants(Node *node, GhMakeConstant make, void *arg)
{
	ConstantsContext context = {.make = make, .arg = arg};

	return make_constants_mutator(node, &context);
}

/*
 * A GhMakeConstant for a translation that is just to tell whether there is a program: some value
 * of the expression's type, a numeric of scale 0.  NULL where no program has the type.
 */
Const *
gh_some_constant(Expr *expr, void *translation)
{
	GhTranslation *for_planning = translation;
	Const	   *constant;
	Oid			type = exprType((Node *) expr);
	Oid			base = getBaseType(type);
	Oid			element = get_element_type(base);
	Datum		value = (Datum) 0;
	bool		null = false;
	int16		typlen;
	bool		typbyval;

	get_typlenbyval(type, &typlen, &typbyval);
	if (OidIsValid(element))
		value = PointerGetDatum(construct_empty_array(element));
	else if (base == NUMERICOID)
		value = DirectFunctionCall1(int4_numeric, Int32GetDatum(0));
	else if (gh_class_of_type(base) == GH_CLASS_TEXT)
		value = typlen > 0 ? PointerGetDatum(palloc0(typlen)) : CStringGetTextDatum("");
	else
		null = !typbyval;
	constant = makeConst(type, exprTypmod((Node *) expr), exprCollation((Node *) expr), typlen, value,
						 null, typbyval);
	for_planning->stand_ins = lappend(for_planning->stand_ins, constant);
	return constant;
}
