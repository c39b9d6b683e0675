/*
 * aggregate.h
 *		Aggregates over the vectors of a batch: what a group keeps for each, how a row is
 *		added, and how the states of participants and partitions become one.
 *
 * A list of aggregates is plain bytes that gh_aggregates_check() accepts before anybody uses
 * it.  A group has one state for each aggregate of the list, in its order; a state is plain
 * bytes, and all of it 0 before the first value.
 *
 * A row is added to all its states or to none.  None it is, and the row is handed back, where
 * a sum does not fit in 128 bits, or where PostgreSQL raises an error because floats overflow.
 *
 * Integers are exact, so that every order of rows and merges that ends with a result ends with
 * the same one; only whether something on the way does not fit depends on it.  Floats are added
 * in the order of the rows, as float8pl, float4pl and float8_accum do step by step, and
 * merged in the order that the caller chooses, as float8_combine does.  The sum of FLOAT4 is a
 * float4 after each step, as PostgreSQL's: 2^24 ones are where it stays.  In another order
 * few of its digits need be the same, so whoever cannot add the rows in PostgreSQL's order (a
 * device, several participants) declines it.  All other aggregates of FLOAT4 are those of
 * FLOAT8.  NULL values, and rows for which the filter is not true, leave a state alone.
 *
 * C11, C++17 and CUDA.  Nothing here is atomic: a state has one writer at a time.
 */
#ifndef GPUHASH_AGGREGATE_H
#define GPUHASH_AGGREGATE_H

#include "engine/program/program_float.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------- definitions */

typedef enum GhAggregateKind
{
	GH_AGGREGATE_COUNT_ROWS = 1,	/* no argument */
	GH_AGGREGATE_COUNT,			/* values that are not NULL, of any class */
	GH_AGGREGATE_SUM,			/* INT, INT128: exact; FLOAT4, FLOAT8 */
	GH_AGGREGATE_MIN,			/* INT, INT128, FLOAT4, FLOAT8; TEXT: not here (pipeline/pipeline.h) */
	GH_AGGREGATE_MAX,
	GH_AGGREGATE_BOOL_AND,		/* BOOL */
	GH_AGGREGATE_BOOL_OR,
	GH_AGGREGATE_MOMENTS		/* count, sum and squares: INT, INT128: exact; FLOAT4, FLOAT8 */
} GhAggregateKind;

#define GH_AGGREGATES_MAX 64	/* of one list */
#define GH_AGGREGATE_NO_FILTER UINT16_MAX

typedef struct GhAggregate
{
	uint8_t		kind;			/* a GhAggregateKind */
	uint8_t		value_class;	/* the argument's GhClass; COUNT_ROWS: 0 */
	uint16_t	argument;		/* a vector; COUNT_ROWS: 0 */
	uint16_t	filter;			/* a vector of BOOL, or GH_AGGREGATE_NO_FILTER */
	uint16_t	unused;			/* 0 */
} GhAggregate;

/*
 * What a group knows of an aggregate.  `low` and `high` are the sum, the least or greatest
 * value or the truth value, as in a GhVector; but the sum of INT has 128 bits, too, and `high` is
 * 0 where a class has no use for it.  Where count is 0, the result is that of no values
 * (NULL, but for counts), and the rest is 0.
 */
typedef struct GhAggregateState
{
	uint64_t	count;			/* values added, or rows of COUNT_ROWS */
	uint64_t	low;
	uint64_t	high;
	/* MOMENTS: the sum of the squares, in 128 bits; of floats, in squares_low, the float8 of
	 * the sum of the squared differences from the mean (Sxx of Youngs and Cramer) */
	uint64_t	squares_low;
	uint64_t	squares_high;
} GhAggregateState;

/* Is it the least or the greatest of texts?  No function here has such an aggregate. */
GH_EVERYWHERE bool
gh_is_text_extreme(const GhAggregate *aggregate)
{
	return (aggregate->kind == GH_AGGREGATE_MIN || aggregate->kind == GH_AGGREGATE_MAX) &&
		aggregate->value_class == GH_CLASS_TEXT;
}

/* ------------------------------------------------- on the host: aggregate.c */

/*
 * Is this a list of aggregates over vectors of these classes (a GhClass each, 0: nothing sets
 * the vector)?  GH_INVALID where anything is out of range.  An accepted list reads the vectors
 * that it names, and nothing else.  Whoever checks a list that others can change copies it first.
 */
extern GhStatus gh_aggregates_check(const GhAggregate *aggregates, uint32_t count,
									const uint8_t *classes, uint32_t nvectors, GhError *error);

/* ----------------------------------------------- on the CPU: cpu_aggregate.c */

/*
 * Adds the live rows of a batch, in their order, to the states of their groups: of row i to
 * states[groups[i] * count] and the following, or, where groups is NULL, to states[0] and the
 * following.  Rows that do not fit become GH_ROW_BACK, and where there are floats, whose order counts,
 * all rows behind the first such.  The vectors have memory for
 * GH_VECTOR_ROWS values; groups are looked at for live rows only, and are the caller's to bound.
 * all_known_to_fit: whatever has been added, no integer of these rows can fail to fit.
 */
extern void gh_cpu_aggregate(const GhAggregate *aggregates, uint32_t count, GhVectorBatch *batch,
							 const uint32_t *groups, GhAggregateState *states, bool all_known_to_fit);

/* ----------------------------------------------------------- 128-bit integers */

/* Adds to *sum_low, *sum_high; false, and nothing is changed: 128 bits are too few. */
GH_EVERYWHERE bool
gh_sum_add(uint64_t *sum_low, uint64_t *sum_high, uint64_t low, uint64_t high)
{
	uint64_t	new_low = *sum_low + low;
	uint64_t	new_high = *sum_high + high + (new_low < low);

	if (((*sum_high ^ new_high) & (high ^ new_high)) >> 63 != 0)
		return false;
	*sum_low = new_low;
	*sum_high = new_high;
	return true;
}

/* The square of a 128-bit integer; false: it has more than 127 bits. */
GH_EVERYWHERE bool
gh_sum_square(uint64_t low, uint64_t high, uint64_t *square_low, uint64_t *square_high)
{
	uint64_t	sign = gh_sign_extension(high);
	uint64_t	magnitude = (low ^ sign) - sign;
	uint64_t	above = (high ^ sign) + (sign & (magnitude == 0));
	unsigned __int128 square = (unsigned __int128) magnitude * magnitude;

	*square_low = (uint64_t) square;
	*square_high = (uint64_t) (square >> 64);
	return above == 0 && *square_high >> 63 == 0;
}

/* --------------------------------------------------------------------- floats */

#define GH_SUM_NAN (UINT64_C(0x7FF8) << 48)

/*
 * A product that is rounded before anything is added to it: compilers may make one fused
 * operation of both, which has other digits.  Everything else here adds what is no product.
 */
GH_EVERYWHERE double
gh_rounded_product(double a, double b)
{
#ifdef __CUDA_ARCH__
	return gh_double_mul(a, b);
#else
	volatile double product = gh_double_mul(a, b);

	return product;
#endif
}

GH_EVERYWHERE bool
gh_bits_infinite(uint64_t bits)
{
	return gh_is_inf(gh_to_double(bits));
}

/* The sum of two float8s or, rounded, two float4s; false: PostgreSQL raises an error. */
GH_EVERYWHERE bool
gh_sum_float(uint8_t value_class, uint64_t a, uint64_t b, uint64_t *sum)
{
	uint64_t	bad = 0;

	*sum = value_class == GH_CLASS_FLOAT4 ? gh_single_float_add(a, b, 0, &bad) :
		gh_double_float_add(a, b, 0, &bad);
	return bad == 0;
}

/*
 * A value into count, sum and Sxx, as float8_accum does; it starts with a sum of +0, so that
 * the sum of -0 is +0.  Sxx is NaN as soon as a value is infinite or NaN, and never infinite.
 */
GH_EVERYWHERE bool
gh_moments_add_float(GhAggregateState *state, uint64_t bits)
{
	double		value = gh_to_double(bits);
	double		before = (double) state->count;
	double		now = before + 1;
	double		sum = gh_to_double(state->low) + value;
	uint64_t	squares = state->squares_low;
	double		difference;

	if (state->count == 0)
		squares = gh_bits_infinite(bits) || gh_is_nan(value) ? GH_SUM_NAN : 0;
	else
	{
		difference = gh_rounded_product(value, now) - sum;
		squares = gh_from_double(gh_to_double(squares) + difference * difference / (now * before));
		if (gh_is_inf(sum) || gh_bits_infinite(squares))
		{
			if (!gh_bits_infinite(state->low) && !gh_bits_infinite(bits))
				return false;
			squares = GH_SUM_NAN;
		}
	}
	state->count++;
	state->low = gh_from_double(sum);
	state->squares_low = squares;
	return true;
}

/* As float8_combine does, where both have values. */
GH_EVERYWHERE bool
gh_moments_merge_float(GhAggregateState *into, const GhAggregateState *from)
{
	double		n1 = (double) into->count;
	double		n2 = (double) from->count;
	double		difference = gh_to_double(into->low) / n1 - gh_to_double(from->low) / n2;
	uint64_t	squares = gh_from_double(gh_to_double(into->squares_low) +
									 gh_to_double(from->squares_low) +
									 n1 * n2 * difference * difference / (n1 + n2));
	uint64_t	sum;

	if (!gh_sum_float(GH_CLASS_FLOAT8, into->low, from->low, &sum) || gh_bits_infinite(squares))
		return false;
	into->count += from->count;
	into->low = sum;
	into->squares_low = squares;
	return true;
}

/* ------------------------------------------------------- one value, one state */

GH_EVERYWHERE bool
gh_class_is_float(uint8_t value_class)
{
	return value_class == GH_CLASS_FLOAT4 || value_class == GH_CLASS_FLOAT8;
}

/* Of INT, INT128, FLOAT4 and FLOAT8. */
GH_EVERYWHERE bool
gh_aggregate_less(uint8_t value_class, uint64_t a_low, uint64_t a_high,
				  uint64_t b_low, uint64_t b_high)
{
	uint64_t	unused = 0;

	if (gh_class_is_float(value_class))
		return gh_float_lt(a_low, b_low, 0, &unused) != 0;
	if (value_class == GH_CLASS_INT || a_high == b_high)
		return value_class == GH_CLASS_INT ? (int64_t) a_low < (int64_t) b_low : a_low < b_low;
	return (int64_t) a_high < (int64_t) b_high;
}

/*
 * Puts the later of two values in place of the earlier, unless that is less (MIN), or greater
 * (MAX): of equal values the last one stays, as with PostgreSQL, which tells -0 from 0 then.
 */
GH_EVERYWHERE void
gh_aggregate_extreme(const GhAggregate *aggregate, GhAggregateState *state,
					 uint64_t low, uint64_t high)
{
	uint8_t		value_class = aggregate->value_class;

	if (state->count > 0 &&
		(aggregate->kind == GH_AGGREGATE_MIN ?
		 gh_aggregate_less(value_class, state->low, state->high, low, high) :
		 gh_aggregate_less(value_class, low, high, state->low, state->high)))
		return;
	state->low = low;
	state->high = high;
}

/* Sum and squares of integers, or the sum alone; the counts are the caller's. */
GH_EVERYWHERE bool
gh_aggregate_sum(GhAggregateState *state, uint64_t low, uint64_t high,
				 uint64_t squares_low, uint64_t squares_high)
{
	uint64_t	sum_low = state->low;
	uint64_t	sum_high = state->high;

	if (!gh_sum_add(&sum_low, &sum_high, low, high) ||
		!gh_sum_add(&state->squares_low, &state->squares_high, squares_low, squares_high))
		return false;
	state->low = sum_low;
	state->high = sum_high;
	return true;
}

/* Adds a value that is not NULL; false, and the state is as before: it does not fit. */
GH_EVERYWHERE bool
gh_aggregate_add(const GhAggregate *aggregate, GhAggregateState *state,
				 uint64_t low, uint64_t high)
{
	uint64_t	squares_low = 0;
	uint64_t	squares_high = 0;

	switch (aggregate->kind)
	{
		case GH_AGGREGATE_MIN:
		case GH_AGGREGATE_MAX:
			gh_aggregate_extreme(aggregate, state, low, high);
			break;
		case GH_AGGREGATE_BOOL_AND:
			state->low = low != 0 && (state->count == 0 || state->low != 0);
			break;
		case GH_AGGREGATE_BOOL_OR:
			state->low |= low != 0;
			break;
		case GH_AGGREGATE_SUM:
		case GH_AGGREGATE_MOMENTS:
			if (gh_class_is_float(aggregate->value_class))
			{
				if (aggregate->kind == GH_AGGREGATE_MOMENTS)
					return gh_moments_add_float(state, low);
				/* the first value is the sum: -0 stays -0 */
				if (state->count == 0)
					state->low = low;
				else if (gh_sum_float(aggregate->value_class, state->low, low, &squares_low))
					state->low = squares_low;
				else
					return false;
				break;
			}
			if (aggregate->value_class == GH_CLASS_INT)
				high = gh_sign_extension(low);
			if ((aggregate->kind == GH_AGGREGATE_MOMENTS &&
				 !gh_sum_square(low, high, &squares_low, &squares_high)) ||
				!gh_aggregate_sum(state, low, high, squares_low, squares_high))
				return false;
			break;
		default:
			break;
	}
	state->count++;
	return true;
}

/*
 * Adds the values of `from`, which come behind those of `into`, to `into`; false, and nothing
 * is changed: the result does not fit.
 */
GH_EVERYWHERE bool
gh_aggregate_merge(const GhAggregate *aggregate, GhAggregateState *into,
				   const GhAggregateState *from)
{
	uint64_t	sum;

	if (from->count == 0)
		return true;
	if (into->count == 0)
	{
		*into = *from;
		return true;
	}
	switch (aggregate->kind)
	{
		case GH_AGGREGATE_MIN:
		case GH_AGGREGATE_MAX:
			gh_aggregate_extreme(aggregate, into, from->low, from->high);
			break;
		case GH_AGGREGATE_BOOL_AND:
			into->low &= from->low;
			break;
		case GH_AGGREGATE_BOOL_OR:
			into->low |= from->low;
			break;
		case GH_AGGREGATE_SUM:
		case GH_AGGREGATE_MOMENTS:
			if (!gh_class_is_float(aggregate->value_class))
			{
				if (!gh_aggregate_sum(into, from->low, from->high, from->squares_low,
									  from->squares_high))
					return false;
				break;
			}
			if (aggregate->kind == GH_AGGREGATE_MOMENTS)
				return gh_moments_merge_float(into, from);
			if (!gh_sum_float(aggregate->value_class, into->low, from->low, &sum))
				return false;
			into->low = sum;
			break;
		default:
			break;
	}
	into->count += from->count;
	return true;
}

/* ------------------------------------------------------- one row, all its states */

/* Does the aggregate count this row at all? */
GH_EVERYWHERE bool
gh_aggregate_takes(const GhAggregate *aggregate, const GhVector *vectors, uint32_t row)
{
	const GhVector *filter;

	if (aggregate->filter != GH_AGGREGATE_NO_FILTER)
	{
		filter = &vectors[aggregate->filter];
		if (filter->null[row] != 0 || filter->low[row] == 0)
			return false;
	}
	return aggregate->kind == GH_AGGREGATE_COUNT_ROWS ||
		vectors[aggregate->argument].null[row] == 0;
}

/* gh_aggregate_add for a row that the aggregate takes; only 128-bit values have a `high`. */
GH_EVERYWHERE bool
gh_aggregate_add_row(const GhAggregate *aggregate, const GhVector *vectors, uint32_t row,
					 GhAggregateState *state)
{
	const GhVector *argument;

	/* no vector to look at, or nothing in it that matters */
	if (aggregate->kind <= GH_AGGREGATE_COUNT)
		return gh_aggregate_add(aggregate, state, 0, 0);
	argument = &vectors[aggregate->argument];
	return gh_aggregate_add(aggregate, state, argument->low[row],
							aggregate->value_class == GH_CLASS_INT128 ? argument->high[row] : 0);
}

/* Would every aggregate of the row fit?  Only sums and moments can fail to. */
GH_EVERYWHERE bool
gh_aggregates_fit(const GhAggregate *aggregates, uint32_t count, const GhVector *vectors,
				  uint32_t row, const GhAggregateState *states)
{
	GhAggregateState state;

	for (uint32_t a = 0; a < count; a++)
	{
		if ((aggregates[a].kind != GH_AGGREGATE_SUM &&
			 aggregates[a].kind != GH_AGGREGATE_MOMENTS) ||
			!gh_aggregate_takes(&aggregates[a], vectors, row))
			continue;
		state = states[a];
		if (!gh_aggregate_add_row(&aggregates[a], vectors, row, &state))
			return false;
	}
	return true;
}

/* Adds a row to the states of its group; false: it is to be handed back, and is in none. */
GH_EVERYWHERE bool
gh_aggregates_add_row(const GhAggregate *aggregates, uint32_t count, const GhVector *vectors,
					  uint32_t row, GhAggregateState *states)
{
	if (!gh_aggregates_fit(aggregates, count, vectors, row, states))
		return false;
	for (uint32_t a = 0; a < count; a++)
		if (gh_aggregate_takes(&aggregates[a], vectors, row))
			(void) gh_aggregate_add_row(&aggregates[a], vectors, row, &states[a]);
	return true;
}

/* gh_aggregate_merge for all states of a group; false: not all fit, and nothing is changed. */
GH_EVERYWHERE bool
gh_aggregates_merge(const GhAggregate *aggregates, uint32_t count, GhAggregateState *into,
					const GhAggregateState *from)
{
	GhAggregateState state;

	for (uint32_t a = 0; a < count; a++)
	{
		state = into[a];
		if (!gh_aggregate_merge(&aggregates[a], &state, &from[a]))
			return false;
	}
	for (uint32_t a = 0; a < count; a++)
		(void) gh_aggregate_merge(&aggregates[a], &into[a], &from[a]);
	return true;
}

#ifdef __cplusplus
}
#endif

#endif							/* GPUHASH_AGGREGATE_H */
