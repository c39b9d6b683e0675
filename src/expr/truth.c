/*
 * truth.c
 *		AND, OR and NOT, and what is asked of a truth value or a NULL, in programs.
 */
#include "postgres.h"

#include "expr/translate.h"

bool
gh_translate_bool(GhTranslation *translation, BoolExpr *expr, GhOperand *result)
{
	GhOperand	args[2];
	ListCell   *lc;

	if (!gh_translate_value(translation, linitial(expr->args), &args[0]))
		return false;
	result->value_class = GH_CLASS_BOOL;
	if (expr->boolop == NOT_EXPR)
		return gh_add_instruction(translation, GH_OP_NOT, GH_CLASS_BOOL, 0, 0, 1, args, result);
	*result = args[0];
	for_each_from(lc, expr->args, 1)
	{
		args[0] = *result;
		if (!gh_translate_value(translation, lfirst(lc), &args[1]) ||
			!gh_add_instruction(translation, expr->boolop == AND_EXPR ? GH_OP_AND : GH_OP_OR, GH_CLASS_BOOL, 0, 0, 2,
				  args, result))
			return false;
	}
	return true;
}

bool
gh_translate_null_test(GhTranslation *translation, NullTest *test, GhOperand *result)
{
	GhOperand	arg;

	if (test->argisrow || !gh_translate_value(translation, test->arg, &arg))
		return gh_translation_fails(translation, "a row is tested");
	result->value_class = GH_CLASS_BOOL;
	return gh_add_instruction(translation, test->nulltesttype == IS_NULL ? GH_OP_IS_NULL : GH_OP_IS_NOT_NULL,
				arg.value_class, 0, 0, 1, &arg, result);
}

bool
gh_translate_boolean_test(GhTranslation *translation, BooleanTest *test, GhOperand *result)
{
	static const GhProgramOp ops[] = {
		[IS_TRUE] = GH_OP_IS_TRUE,
		[IS_NOT_TRUE] = GH_OP_IS_NOT_TRUE,
		[IS_FALSE] = GH_OP_IS_FALSE,
		[IS_NOT_FALSE] = GH_OP_IS_NOT_FALSE,
		[IS_UNKNOWN] = GH_OP_IS_NULL,
		[IS_NOT_UNKNOWN] = GH_OP_IS_NOT_NULL,
	};
	GhOperand	arg;

	if (!gh_translate_value(translation, test->arg, &arg))
		return false;
	result->value_class = GH_CLASS_BOOL;
	return gh_add_instruction(translation, ops[test->booltesttype], GH_CLASS_BOOL, 0, 0, 1, &arg, result);
}
