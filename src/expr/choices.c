/*
 * choices.c
 *		CASE, COALESCE, GREATEST and LEAST in programs, which choose one of several values.
 *
 * A program has numerics at one scale, PostgreSQL each row's own: what is chosen among numerics of different
 * scales remembers whose each row's is (scales.c).
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/lsyscache.h"

#include "expr/translate.h"

/* Two values one of which is chosen: of one class, numerics of one scale. */
static bool
to_one_class(GhTranslation *translation, GhOperand *values, GhOperand *result)
{
	if (values[0].value_class != values[1].value_class)
		return gh_translation_fails(translation, "the results of a choice are of different types");
	result->value_class = values[0].value_class;
	result->mixed_scale = values[0].mixed_scale || values[1].mixed_scale;
	result->open_scale = values[0].open_scale || values[1].open_scale;
	result->is_null = values[0].is_null && values[1].is_null;
	if (values[0].value_class == GH_CLASS_INT128)
	{
		for (int i = 0; i < 2; i++)
			if (values[i].is_null)
				values[i].scale = values[1 - i].scale;
		if (values[0].scale != values[1].scale ||
			(result->open_scale && !values[0].is_null && !values[1].is_null))
			result->mixed_scale = true;
		if (!gh_to_one_scale(translation, values, 2))
			return false;
	}
	result->scale = values[0].scale;
	return true;
}

/* `values` are as they were before they were brought to one scale. */
static void
choose_scale(const GhOperand *condition, const GhOperand *values, GhOperand *result)
{
	gh_mix_scales(result, gh_scales_chosen(condition, gh_scales_of(&values[0]), gh_scales_of(&values[1])));
}

/* CASE: a condition, what it chooses, and what else. */
bool
gh_translate_select(GhTranslation *translation, GhOperand *args, GhOperand *result)
{
	GhOperand	values[2] = {args[1], args[2]};

	if (!to_one_class(translation, args + 1, result))
		return false;
	choose_scale(&args[0], values, result);
	return gh_add_instruction(translation, GH_OP_SELECT, result->value_class, 0, 0, 3, args, result);
}

static bool
emit_coalesce(GhTranslation *translation, GhOperand *args, GhOperand *result)
{
	GhOperand	values[2] = {args[0], args[1]};
	GhOperand	condition = {.value_class = GH_CLASS_BOOL};

	if (!to_one_class(translation, args, result) ||
		(result->mixed_scale &&
		 !gh_add_instruction(translation, GH_OP_IS_NOT_NULL, values[0].value_class, 0, 0, 1, values, &condition)))
		return false;
	choose_scale(&condition, values, result);
	return gh_add_instruction(translation, GH_OP_COALESCE, result->value_class, 0, 0, 2, args, result);
}

/* The branches from the last one on, so that the first that is true is what stays. */
static bool
translate_branches(GhTranslation *translation, CaseExpr *expr, GhOperand *result)
{
	if (!gh_translate_value(translation, expr->defresult, result))
		return false;
	for (int i = list_length(expr->args) - 1; i >= 0; i--)
	{
		CaseWhen   *when = list_nth_node(CaseWhen, expr->args, i);
		GhOperand	args[3];

		args[2] = *result;
		if (!gh_translate_value(translation, when->expr, &args[0]) ||
			!gh_translate_value(translation, when->result, &args[1]) ||
			!gh_translate_select(translation, args, result))
			return false;
	}
	return true;
}

bool
gh_translate_case(GhTranslation *translation, CaseExpr *expr, GhOperand *result)
{
	GhOperand  *outside = translation->case_value;
	GhOperand	value;
	bool		done;

	if (expr->arg != NULL && !gh_translate_value(translation, expr->arg, &value))
		return false;
	translation->case_value = expr->arg != NULL ? &value : NULL;
	done = translate_branches(translation, expr, result);
	translation->case_value = outside;
	return done;
}

bool
gh_translate_coalesce(GhTranslation *translation, CoalesceExpr *expr, GhOperand *result)
{
	ListCell   *lc;

	if (!gh_translate_value(translation, linitial(expr->args), result))
		return false;
	for_each_from(lc, expr->args, 1)
	{
		GhOperand	args[2] = {*result};

		if (!gh_translate_value(translation, lfirst(lc), &args[1]) || !emit_coalesce(translation, args, result))
			return false;
	}
	return true;
}

/*
 * Of the largest, or least, value so far and one more: that one, if there was none so far or it is larger, or
 * less.
 */
static bool
add_min_max(GhTranslation *translation, GhProgramOp op, bool padded, GhOperand *best, const GhOperand *value)
{
	GhOperand	pair[2] = {*value, *best};
	GhOperand	either[2] = {{.value_class = GH_CLASS_BOOL}, {.value_class = GH_CLASS_BOOL}};
	GhOperand	args[3] = {{.value_class = GH_CLASS_BOOL}, *value, *best};
	GhClass		op_class = value->value_class == GH_CLASS_FLOAT4 ? GH_CLASS_FLOAT8 :
		padded ? GH_CLASS_BPCHAR : value->value_class;

	return (value->value_class != GH_CLASS_INT128 || gh_to_one_scale(translation, pair, 2)) &&
		gh_add_instruction(translation, op, op_class, 0, 0, 2, pair, &either[0]) &&
		gh_add_instruction(translation, GH_OP_IS_NULL, best->value_class, 0, 0, 1, best, &either[1]) &&
		gh_add_instruction(translation, GH_OP_OR, GH_CLASS_BOOL, 0, 0, 2, either, &args[0]) &&
		gh_translate_select(translation, args, best);
}

/* Whether a text is greater, bytes tell under collation C; of a type without collations they do, too. */
static bool
order_is_known(GhTranslation *translation, const GhOperand *value, const MinMaxExpr *expr)
{
	if (gh_is_enum(expr->minmaxtype))
		return gh_translation_fails(translation, "enums are compared for equality alone");
	return value->value_class != GH_CLASS_TEXT || !type_is_collatable(expr->minmaxtype) ||
		gh_collation_allows(translation, GH_CALL_TEXT_ORDER, expr->inputcollid);
}

/* GREATEST and LEAST: NULLs do not count. */
bool
gh_translate_min_max(GhTranslation *translation, MinMaxExpr *expr, GhOperand *result)
{
	ListCell   *lc;

	if (!gh_translate_value(translation, linitial(expr->args), result))
		return false;
	for_each_from(lc, expr->args, 1)
	{
		GhOperand	value;

		if (!gh_translate_value(translation, lfirst(lc), &value))
			return false;
		if (!order_is_known(translation, &value, expr))
			return false;
		if (result->value_class != value.value_class || result->is_null || value.is_null)
			return gh_translation_fails(translation, "values of GREATEST or LEAST are not supported");
		if (!add_min_max(translation, expr->op == IS_GREATEST ? GH_OP_GT : GH_OP_LT,
						 getBaseType(expr->minmaxtype) == BPCHAROID, result, &value))
			return false;
	}
	return true;
}
