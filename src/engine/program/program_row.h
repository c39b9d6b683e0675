/*
 * program_row.h
 *		Runs a program that was checked over one row, whose values are in an array: for
 *		kernels, and for the tests, which compare it with the loops over batches.
 */
#ifndef GH_PROGRAM_ROW_H
#define GH_PROGRAM_ROW_H

#include "engine/page/numeric.h"
#include "engine/program/program_hash.h"
#include "engine/program/program_quotient.h"
#include "engine/program/program_zone.h"

/* Fills the constants; no row changes them.  values has one element for each vector. */
GH_EVERYWHERE void
gh_row_prepare(const GhProgram *program, GhValue *values)
{
	const GhConstant *constants = gh_program_constants(program);
	uint32_t	i;

	for (i = 0; i < program->nconstants; i++)
	{
		GhValue    *value = &values[program->ncolumns + i];

		value->low = constants[i].low;
		value->high = constants[i].high;
		value->null = constants[i].null;
		if (constants[i].value_class == GH_CLASS_TEXT)
			value->low += (uint64_t) (uintptr_t) program;
	}
}

GH_EVERYWHERE GhValue
gh_value(uint64_t low)
{
	GhValue		value = {low, 0, 0};

	return value;
}

GH_EVERYWHERE GhValue
gh_value_int128(GhInt128 wide)
{
	GhValue		value = {(uint64_t) wide, (uint64_t) ((GhUint128) wide >> 64), 0};

	return value;
}

GH_EVERYWHERE GhInt128
gh_value_wide(const GhValue *value)
{
	return gh_int128(value->low, value->high);
}

GH_EVERYWHERE GhText
gh_value_text(const GhValue *value)
{
	return gh_text(value->low, value->high);
}

GH_EVERYWHERE GhValue
gh_value_of_text(GhText text)
{
	GhValue		value = {(uint64_t) (uintptr_t) text.bytes, text.length, 0};

	return value;
}

/* The operations whose result is NULL exactly where an argument is. */
GH_EVERYWHERE GhValue
gh_row_strict(const GhInstruction *in, const GhValue *a, const GhValue *b, uint64_t *bad)
{
	GhValue		result = {0, 0, 1};

	switch (gh_op_key(in))
	{
#define UNARY(op, op_class, expression) \
		case GH_OP_KEY(op, op_class): \
			if (!a->null) \
				result = expression; \
			break;
#define BINARY(op, op_class, expression) \
		case GH_OP_KEY(op, op_class): \
			if (!(a->null | b->null)) \
				result = expression; \
			break;
#define WORD_1(op, op_class, f) \
	UNARY(op, op_class, gh_value(f(a->low, in->width, bad)))
#define WORD_2(op, op_class, f) \
	BINARY(op, op_class, gh_value(f(a->low, b->low, in->width, bad)))
#define FROM_WORD(op, op_class, f) \
	UNARY(op, op_class, gh_value_int128(f(a->low, in->immediate, bad)))
#define TO_WORD(op, op_class, f) \
	UNARY(op, op_class, gh_value(f(gh_value_wide(a), in->width, in->immediate, bad)))
#define WIDE_1(op, op_class, f) \
	UNARY(op, op_class, gh_value_int128(f(gh_value_wide(a), in->immediate, bad)))
#define WIDE_2(op, op_class, f) \
	BINARY(op, op_class, gh_value_int128(f(gh_value_wide(a), gh_value_wide(b), bad)))
#define WIDE_COMPARISON(op, op_class, f) \
	BINARY(op, op_class, gh_value(f(gh_value_wide(a), gh_value_wide(b))))
#define TEXT_COMPARISON(op, op_class, f) \
	BINARY(op, op_class, gh_value(f(gh_value_text(a), gh_value_text(b))))
			GH_WORD_FUNCTIONS_1(WORD_1)
			GH_FLOAT_FUNCTIONS_1(WORD_1)
			GH_WORD_FUNCTIONS_2(WORD_2)
			GH_FLOAT_FUNCTIONS_2(WORD_2)
			GH_INT128_FROM_WORD(FROM_WORD)
			GH_INT128_TO_WORD(TO_WORD)
			GH_INT128_FUNCTIONS_1(WIDE_1)
			GH_INT128_FUNCTIONS_2(WIDE_2)
			GH_INT128_COMPARISONS(WIDE_COMPARISON)
			GH_TEXT_COMPARISONS(TEXT_COMPARISON)
#undef UNARY
#undef BINARY
#undef WORD_1
#undef WORD_2
#undef FROM_WORD
#undef TO_WORD
#undef WIDE_1
#undef WIDE_2
#undef WIDE_COMPARISON
#undef TEXT_COMPARISON
	}
	return result;
}

/* IS DISTINCT FROM: a comparison that takes NULL as a value. */
GH_EVERYWHERE bool
gh_row_distinct(const GhInstruction *in, const GhValue *a, const GhValue *b)
{
	GhInstruction equal = *in;
	uint64_t	bad = 0;

	if (a->null | b->null)
		return a->null != b->null;
	equal.op = GH_OP_EQ;
	return gh_row_strict(&equal, a, b, &bad).low == 0;
}

/* x = ANY (list): false of an empty list, even where x is NULL. */
GH_EVERYWHERE GhValue
gh_row_in(const GhProgram *program, const GhInstruction *in, const GhValue *a)
{
	const GhList *list = &gh_program_lists(program)[in->immediate];
	GhValue		result = {0, 0, 0};

	if (list->count == 0 && !list->has_null)
		return result;
	if (!a->null)
		result.low = in->op_class == GH_CLASS_INT ? gh_int_in(program, list, a->low) :
			gh_text_in(program, list, gh_value_text(a), in->op_class == GH_CLASS_BPCHAR);
	result.null = a->null | (list->has_null && result.low == 0);
	return result;
}

/* NULL where the timestamp is. */
GH_EVERYWHERE GhValue
gh_row_zone(const GhProgram *program, const GhInstruction *in, const GhValue *a, uint64_t *bad)
{
	GhValue		none = {0, 0, 1};

	return a->null ? none : gh_value(gh_zone_shift(program, in, a->low, bad));
}

/* A part of a text, whose second argument is another text. */
GH_EVERYWHERE GhValue
gh_row_trimmed(const GhInstruction *in, const GhValue *a, const GhValue *b)
{
	GhValue		none = {0, 0, 1};

	if (a->null | b->null)
		return none;
	return gh_value_of_text(in->op == GH_OP_TRIM_LEFT ? gh_text_trim_left(gh_value_text(a), gh_value_text(b)) :
							gh_text_trim_right(gh_value_text(a), gh_value_text(b)));
}

/* Likewise, a number: NULL where an argument is, of which there are one to three. */
GH_EVERYWHERE GhValue
gh_row_text(const GhInstruction *in, const GhValue *a, const GhValue *b, const GhValue *c, uint64_t *bad)
{
	GhValue		none = {0, 0, 1};
	GhText		text = gh_value_text(a);

	if (a->null)
		return none;
	if (in->op == GH_OP_UNPADDED)
		return gh_value_of_text(gh_text_unpadded(text));
	if (in->op == GH_OP_LENGTH || in->op == GH_OP_LENGTH_UTF8)
		return gh_value(gh_text_characters(text, in->op == GH_OP_LENGTH_UTF8));
	if (b->null)
		return none;
	if (in->op == GH_OP_LEFT || in->op == GH_OP_LEFT_UTF8)
		return gh_value_of_text(gh_text_left(text, (int64_t) b->low, in->op == GH_OP_LEFT_UTF8));
	if (in->op == GH_OP_RIGHT || in->op == GH_OP_RIGHT_UTF8)
		return gh_value_of_text(gh_text_right(text, (int64_t) b->low, in->op == GH_OP_RIGHT_UTF8, bad));
	if (c->null)
		return none;
	return gh_value_of_text(gh_text_substring(text, b->low, c->low, in->op == GH_OP_SUBSTRING_UTF8, bad));
}

/* A stored numeric, or how many digits it is shown with. */
GH_EVERYWHERE GhValue
gh_row_numeric(const GhInstruction *in, const GhValue *a, uint64_t *bad)
{
	GhValue		result = {0, 0, a->null};
	const uint8_t *bytes = (const uint8_t *) (uintptr_t) a->low;

	if (!a->null && !(in->op == GH_OP_NUMERIC_SCALE ? gh_numeric_scale(bytes, (uint32_t) a->high, &result.low) :
					  gh_numeric_read_upto(bytes, (uint32_t) a->high, (uint32_t) in->immediate, &result.low, &result.high)))
		*bad |= 1;
	return result;
}

/* NULL where an argument is. */
GH_EVERYWHERE GhValue
gh_row_hash(const GhInstruction *in, const GhValue *a, const GhValue *before)
{
	GhValue		none = {0, 0, 1};

	return a->null | before->null ? none : gh_value(gh_code_of_value(in->op_class, a->low, a->high, before->low));
}

/* Likewise. */
GH_EVERYWHERE GhValue
gh_row_quotient(const GhInstruction *in, const GhValue *a, const GhValue *b, const GhValue *c, uint64_t *bad)
{
	GhValue		none = {0, 0, 1};
	int			scale;

	if (a->null | b->null | c->null)
		return none;
	scale = gh_quotient_scale(gh_value_wide(a), gh_value_wide(b), (int64_t) c->low, in->immediate, bad);
	return in->op == GH_OP_QUOTIENT_SCALE ? gh_value((uint64_t) scale) :
		gh_value_int128(gh_quotient(gh_value_wide(a), gh_value_wide(b), scale, bad));
}

/* Three-valued: one false argument decides AND, one that is true OR. */
GH_EVERYWHERE GhValue
gh_row_and_or(bool decisive, const GhValue *a, const GhValue *b)
{
	GhValue		result = {decisive, 0, 0};

	if (decisive ? gh_bool_true(a->low, a->null) || gh_bool_true(b->low, b->null) :
		gh_bool_false(a->low, a->null) || gh_bool_false(b->low, b->null))
		return result;
	result.low = !decisive;
	result.null = a->null | b->null;
	return result;
}

/*
 * One instruction but GH_OP_FILTER; *bad is not 0 where the row is to be handed back.
 * Arguments that the operation does not have are not looked at.
 */
GH_EVERYWHERE GhValue
gh_row_value(const GhProgram *program, const GhInstruction *in, const GhValue *a,
			 const GhValue *b, const GhValue *c, uint64_t *bad)
{
	switch (in->op)
	{
		case GH_OP_DISTINCT:
			return gh_value(gh_row_distinct(in, a, b));
		case GH_OP_NOT_DISTINCT:
			return gh_value(!gh_row_distinct(in, a, b));
		case GH_OP_QUOTIENT:
		case GH_OP_QUOTIENT_SCALE:
			return gh_row_quotient(in, a, b, c, bad);
		case GH_OP_ZONE_SHIFT:
			return gh_row_zone(program, in, a, bad);
		case GH_OP_TRIM_LEFT:
		case GH_OP_TRIM_RIGHT:
			return gh_row_trimmed(in, a, b);
		case GH_OP_UNPADDED:
		case GH_OP_LENGTH:
		case GH_OP_LENGTH_UTF8:
		case GH_OP_LEFT:
		case GH_OP_LEFT_UTF8:
		case GH_OP_RIGHT:
		case GH_OP_RIGHT_UTF8:
		case GH_OP_SUBSTRING:
		case GH_OP_SUBSTRING_UTF8:
			return gh_row_text(in, a, b, c, bad);
		case GH_OP_NUMERIC:
		case GH_OP_NUMERIC_SCALE:
			return gh_row_numeric(in, a, bad);
		case GH_OP_HASH:
			return gh_row_hash(in, a, b);
		case GH_OP_AND:
			return gh_row_and_or(false, a, b);
		case GH_OP_OR:
			return gh_row_and_or(true, a, b);
		case GH_OP_IS_TRUE:
			return gh_value(gh_bool_true(a->low, a->null));
		case GH_OP_IS_NOT_TRUE:
			return gh_value(!gh_bool_true(a->low, a->null));
		case GH_OP_IS_FALSE:
			return gh_value(gh_bool_false(a->low, a->null));
		case GH_OP_IS_NOT_FALSE:
			return gh_value(!gh_bool_false(a->low, a->null));
		case GH_OP_IN:
			return gh_row_in(program, in, a);
		case GH_OP_IS_NULL:
			return gh_value(a->null);
		case GH_OP_IS_NOT_NULL:
			return gh_value(!a->null);
		case GH_OP_SELECT:
			return gh_bool_true(a->low, a->null) ? *b : *c;
		case GH_OP_COALESCE:
			return a->null ? *b : *a;
		default:
			return gh_row_strict(in, a, b, bad);
	}
}

/* The columns are in values; the temporaries are, afterwards, where the row is live. */
GH_EVERYWHERE GhRowState
gh_row_run(const GhProgram *program, GhValue *values)
{
	const GhInstruction *in = gh_program_instructions(program);
	uint32_t	i;

	for (i = 0; i < program->ninstructions; i++, in++)
	{
		const GhValue *a = &values[in->args[0]];
		uint64_t	bad = 0;

		if (in->op == GH_OP_FILTER)
		{
			if (!gh_bool_true(a->low, a->null))
				return GH_ROW_DROPPED;
			continue;
		}
		values[in->result] = gh_row_value(program, in, a, &values[in->args[1]],
										  &values[in->args[2]], &bad);
		if (bad != 0)
			return GH_ROW_BACK;
	}
	return GH_ROW_LIVE;
}

#endif							/* GH_PROGRAM_ROW_H */
