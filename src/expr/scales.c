/*
 * scales.c
 *		How many digits after the point PostgreSQL shows of a numeric, where rows differ in that.
 *
 * A program has all numerics of a vector at one scale.  PostgreSQL's have a scale each: a choice between
 * several has that of what is chosen, a quotient one that depends on its two numbers, and what is calculated
 * with these is as in PostgreSQL's +, - and *.  Values are equal whatever their scale; only who shows them,
 * or sums them, needs it.  So an operand says how its scales come about, and instructions are made of that
 * when they are asked for.
 */
#include "postgres.h"

#include "expr/translate.h"

struct GhScales
{
	GhScalesKind kind;
	int			scale;			/* GH_SCALES_SAME; GH_SCALES_QUOTIENT: that of its two numbers */
	GhOperand	args[3];		/* GH_SCALES_QUOTIENT, GH_SCALES_STORED: of the instruction; GH_SCALES_CHOICE: the condition */
	const GhScales *of[2];		/* the others': of which they are made */
};

static GhScales *
make_scales(GhScalesKind kind)
{
	GhScales   *scales = palloc0(sizeof(GhScales));

	scales->kind = kind;
	return scales;
}

/* The scales of an operand's rows; NULL: they are not known. */
const GhScales *
gh_scales_of(const GhOperand *operand)
{
	GhScales   *same;

	if (operand->mixed_scale)
		return operand->scales;
	same = make_scales(GH_SCALES_SAME);
	same->scale = operand->scale;
	return same;
}

/* The larger ones of two, or their sum. */
const GhScales *
gh_scales_joined(GhScalesKind kind, const GhScales *a, const GhScales *b)
{
	GhScales   *joined;

	if (a == NULL || b == NULL)
		return NULL;
	if (a->kind == GH_SCALES_SAME && b->kind == GH_SCALES_SAME)
	{
		joined = make_scales(GH_SCALES_SAME);
		joined->scale = kind == GH_SCALES_SUM ? a->scale + b->scale : Max(a->scale, b->scale);
		return joined;
	}
	joined = make_scales(kind);
	joined->of[0] = a;
	joined->of[1] = b;
	return joined;
}

/* Of one of two values, by a condition: the first one's where it is true. */
const GhScales *
gh_scales_chosen(const GhOperand *condition, const GhScales *chosen, const GhScales *otherwise)
{
	GhScales   *scales;

	if (chosen == NULL || otherwise == NULL)
		return NULL;
	scales = make_scales(GH_SCALES_CHOICE);
	scales->args[0] = *condition;
	scales->of[0] = chosen;
	scales->of[1] = otherwise;
	return scales;
}

/* Of a quotient, with the arguments of its instruction. */
const GhScales *
gh_scales_of_quotient(const GhOperand *args, int scale)
{
	GhScales   *scales = make_scales(GH_SCALES_QUOTIENT);

	memcpy(scales->args, args, sizeof(scales->args));
	scales->scale = scale;
	return scales;
}

/* Of stored numerics, which are bytes here. */
const GhScales *
gh_scales_stored(const GhOperand *stored)
{
	GhScales   *scales = make_scales(GH_SCALES_STORED);

	scales->args[0] = *stored;
	return scales;
}

/*
 * What has one of two numerics in it has their scales, while the scales of none of it depend on a parameter.
 */
void
gh_mix_scales(GhOperand *result, const GhScales *scales)
{
	result->scales = result->mixed_scale && !result->open_scale ? scales : NULL;
}

/* a + b, or the larger one */
static bool
add_joined(GhTranslation *translation, GhScalesKind kind, const GhOperand *pair, GhOperand *result)
{
	GhOperand	args[3] = {{.value_class = GH_CLASS_BOOL}, pair[0], pair[1]};

	if (kind == GH_SCALES_SUM)
		return gh_add_instruction(translation, GH_OP_ADD, GH_CLASS_INT, sizeof(int32), 0, 2, pair, result);
	return gh_add_instruction(translation, GH_OP_GT, GH_CLASS_INT, 0, 0, 2, pair, &args[0]) &&
		gh_add_instruction(translation, GH_OP_SELECT, GH_CLASS_INT, 0, 0, 3, args, result);
}

/* The scales as whole numbers; anything where the value is NULL. */
bool
gh_add_scales(GhTranslation *translation, const GhScales *scales, GhOperand *result)
{
	GhOperand	args[3] = {scales->args[0]};

	memset(result, 0, sizeof(*result));
	result->value_class = GH_CLASS_INT;
	if (scales->kind == GH_SCALES_SAME)
		return gh_add_constant(translation, GH_CLASS_INT, false, scales->scale, 0, result);
	if (scales->kind == GH_SCALES_QUOTIENT)
		return gh_add_instruction(translation, GH_OP_QUOTIENT_SCALE, GH_CLASS_INT128, 0, scales->scale, 3,
								  scales->args, result);
	if (scales->kind == GH_SCALES_STORED)
		return gh_add_instruction(translation, GH_OP_NUMERIC_SCALE, GH_CLASS_TEXT, 0, 0, 1, scales->args, result);
	if (!gh_add_scales(translation, scales->of[0], &args[1]) || !gh_add_scales(translation, scales->of[1], &args[2]))
		return false;
	if (scales->kind == GH_SCALES_CHOICE)
		return gh_add_instruction(translation, GH_OP_SELECT, GH_CLASS_INT, 0, 0, 3, args, result);
	return add_joined(translation, scales->kind, args + 1, result);
}

/* The scales of a value that has them, NULL where it is. */
bool
gh_translate_scales(GhTranslation *translation, const GhOperand *value, GhOperand *result)
{
	GhOperand	args[3] = {{.value_class = GH_CLASS_BOOL}};

	memset(result, 0, sizeof(*result));
	result->value_class = GH_CLASS_INT;
	return gh_add_instruction(translation, GH_OP_IS_NOT_NULL, value->value_class, 0, 0, 1, value, &args[0]) &&
		gh_add_scales(translation, gh_scales_of(value), &args[1]) &&
		gh_add_constant(translation, GH_CLASS_INT, true, 0, 0, &args[2]) &&
		gh_add_instruction(translation, GH_OP_SELECT, GH_CLASS_INT, 0, 0, 3, args, result);
}
