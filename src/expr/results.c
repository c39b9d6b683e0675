/*
 * results.c
 *		PostgreSQL's results of what groups hold: the same types, digits and display scales.
 *
 * What is exact is calculated by PostgreSQL's numeric functions, in its steps.  Its variance
 * is (N * sum of squares - square of the sum) / (N * N), or / (N * (N - 1)), which is one
 * division, with the scale that division chooses; the deviation is the square root of that
 * variance as it was rounded, at the same scale.
 */
#include "postgres.h"

#include <math.h>

#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "expr/aggregates.h"

static bool
is_sample(uint8 final)
{
	return final == GH_FINAL_VAR_SAMP || final == GH_FINAL_STDDEV_SAMP;
}

static bool
is_deviation(uint8 final)
{
	return final == GH_FINAL_STDDEV_POP || final == GH_FINAL_STDDEV_SAMP;
}

/* ----------------------------------------------------------------- numerics */

static int
numeric_scale_of(Datum numeric)
{
	return DatumGetInt32(DirectFunctionCall1(numeric_scale, numeric));
}

/* units times 10 to the power of -scale */
static Datum
small_numeric(int64 units, int scale)
{
	return NumericGetDatum(int64_div_fast_to_numeric(units, scale));
}

static bool
numeric_is_greater(Datum a, Datum b)
{
	return DatumGetBool(DirectFunctionCall2(numeric_gt, a, b));
}

/*
 * The square root of a number that is greater than 0, rounded to its scale.  numeric_sqrt
 * rounds, too, perhaps to more digits: where it has rounded up to a half, which the second
 * rounding takes up once more, the result is 1 too much in the last digit.
 */
static Datum
root_at_own_scale(Datum number)
{
	int			scale = numeric_scale_of(number);
	Datum		root = DirectFunctionCall1(numeric_sqrt, number);
	Datum		half_less;

	if (numeric_scale_of(root) == scale)
		return root;
	root = DirectFunctionCall2(numeric_round, root, Int32GetDatum(scale));
	half_less = DirectFunctionCall2(numeric_sub, root, small_numeric(5, scale + 1));
	if (numeric_is_greater(DirectFunctionCall2(numeric_mul, half_less, half_less), number))
		root = DirectFunctionCall2(numeric_sub, root, small_numeric(1, scale));
	return root;
}

static Datum
numeric_spread(uint8 final, const GhSide *total)
{
	Datum		n = NumericGetDatum(int64_to_numeric(total->count));
	Datum		divisor = is_sample(final) ?
		NumericGetDatum(int64_to_numeric(total->count - 1)) : n;
	Datum		dividend;
	Datum		variance;

	dividend = DirectFunctionCall2(numeric_sub,
								   DirectFunctionCall2(numeric_mul, n, total->squares),
								   DirectFunctionCall2(numeric_mul, total->sum, total->sum));
	/* of NaN and the infinities: the sum of the squares is one, too */
	if (numeric_is_nan(DatumGetNumeric(dividend)))
		return dividend;
	/* 0 is shown without digits after the point */
	if (!numeric_is_greater(dividend, small_numeric(0, 0)))
		return small_numeric(0, 0);
	variance = DirectFunctionCall2(numeric_div, dividend,
								   DirectFunctionCall2(numeric_mul, n, divisor));
	return is_deviation(final) ? root_at_own_scale(variance) : variance;
}

static Datum
numeric_result(uint8 final, const GhSide *total)
{
	switch (final)
	{
		case GH_FINAL_SUM_NUMERIC:
		case GH_FINAL_VALUE:
			return total->sum;
		case GH_FINAL_AVG:
			return DirectFunctionCall2(numeric_div, total->sum,
									   NumericGetDatum(int64_to_numeric(total->count)));
		default:
			return numeric_spread(final, total);
	}
}

/* ------------------------------------------------------------------- floats */

/* As float8_avg, float8_var_pop and the like do. */
static float8
float_result(uint8 final, const GhAggregateState *state)
{
	float8		n = (float8) state->count;
	float8		variance;

	if (final == GH_FINAL_AVG)
		return gh_to_double(state->low) / n;
	variance = gh_to_double(state->squares_low) / (is_sample(final) ? n - 1.0 : n);
	return is_deviation(final) ? sqrt(variance) : variance;
}

/* ---------------------------------------------------------------------- all */

/*
 * An aggregate's result from a group's state and side (NULL: none).  What is by reference
 * lies in the current context, or is the side's.  scale: the largest of its values, where
 * it may be another one than the argument's; else -1.
 */
Datum
gh_aggregate_result(const GhAggregateSpec *spec, const GhAggregateState *state,
					const GhSide *side, int scale, bool *null)
{
	int64		count = (int64) state->count + (side != NULL ? side->count : 0);
	GhSqlValue	value = {state->low, state->high, GH_SQL_HELD};
	GhSide		total;

	*null = false;
	if (spec->final == GH_FINAL_COUNT)
		return Int64GetDatum(count);
	if (spec->final == GH_FINAL_TEXT)
	{
		*null = side == NULL || side->count == 0;
		return *null ? (Datum) 0 : side->sum;
	}
	*null = count == 0 || (count == 1 && is_sample(spec->final));
	if (*null)
		return (Datum) 0;
	if (spec->final == GH_FINAL_SUM_INT8)
		return Int64GetDatum((int64) state->low);
	if (spec->final == GH_FINAL_VALUE && side == NULL)
		return gh_datum_of_value(&spec->result, value, null);
	if (gh_class_is_float(spec->aggregate.value_class))
		return Float8GetDatum(float_result(spec->final, state));
	total = gh_side_total(spec, state, side);
	if (scale >= 0 && !numeric_is_nan(DatumGetNumeric(total.sum)) &&
		!numeric_is_inf(DatumGetNumeric(total.sum)) && numeric_scale_of(total.sum) != scale)
		total.sum = DirectFunctionCall2(numeric_round, total.sum, Int32GetDatum(scale));
	return numeric_result(spec->final, &total);
}
