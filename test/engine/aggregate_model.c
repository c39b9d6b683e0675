/*
 * aggregate_model.c
 *		The model of the tests of aggregates: sums in __int128 with the compiler's checks, all
 *		values kept and searched, and the formulas of floats written once more.
 */
#include "aggregate_test.h"

const uint8_t vector_classes[VECTORS] = {
	GH_CLASS_BOOL, GH_CLASS_INT, GH_CLASS_INT128, GH_CLASS_FLOAT4, GH_CLASS_FLOAT8, GH_CLASS_TEXT,
	GH_CLASS_BOOL, GH_CLASS_INT, GH_CLASS_INT128, GH_CLASS_FLOAT4, GH_CLASS_FLOAT8, 0
};

/* -------------------------------------------------------------- the batches */

GhVectorBatch
aggregate_batch_make(void)
{
	GhVectorBatch batch = {.nvectors = VECTORS,.state = make_memory(GH_VECTOR_ROWS)};

	batch.vectors = make_memory(VECTORS * sizeof(GhVector));
	for (uint32_t v = 0; v < VECTORS; v++)
	{
		batch.vectors[v].low = make_words(GH_VECTOR_ROWS);
		batch.vectors[v].high = make_words(GH_VECTOR_ROWS);
		batch.vectors[v].null = make_memory(GH_VECTOR_ROWS);
	}
	return batch;
}

void
aggregate_batch_drop(GhVectorBatch *batch)
{
	for (uint32_t v = 0; v < VECTORS; v++)
	{
		free(batch->vectors[v].low);
		free(batch->vectors[v].high);
		free(batch->vectors[v].null);
	}
	free(batch->vectors);
	free(batch->state);
}

static double
draw_double(Context *c, bool wild)
{
	static const double edges[] = {
		0.0, -0.0, 1, -1, DBL_MAX, -DBL_MAX, DBL_MIN, 4.9e-324, 1e200, -1e160, 0x1p53
	};

	if (!wild || random_below(c, 8) != 0)
		return ((double) random_below(c, 2000001) - 1e6) / 64;
	switch (random_below(c, 40))
	{
		case 0:
			return (double) INFINITY;
		case 1:
			return -(double) INFINITY;
		case 2:
			return (double) NAN;
		default:
			return edges[random_below(c, sizeof(edges) / sizeof(edges[0]))];
	}
}

/* A value of the class; a tame one neither overflows a sum of some thousands nor is NaN. */
static void
draw_value(Context *c, uint8_t value_class, bool wild, uint64_t *low, uint64_t *high)
{
	uint64_t	word = random_next(c);
	uint64_t	pick = random_below(c, 16);

	if (!wild)
		word = (uint64_t) ((int64_t) word >> 20);
	else if (pick == 0)
		word = random_below(c, 2) ? INT64_MAX : (uint64_t) INT64_MIN;
	else if (pick < 4)
		word = random_below(c, 5) - 2;
	*low = word;
	*high = random_next(c);
	switch (value_class)
	{
		case GH_CLASS_BOOL:
			*low = random_below(c, 16) != 0;
			break;
		case GH_CLASS_INT128:
			*high = (int64_t) word < 0 ? UINT64_MAX : 0;
			if (wild && pick > 13)
				*high = random_next(c);
			break;
		case GH_CLASS_FLOAT4:
			*low = to_bits((float) draw_double(c, wild));
			break;
		case GH_CLASS_FLOAT8:
			*low = to_bits(draw_double(c, wild));
			break;
	}
}

static bool
is_integer(uint32_t v)
{
	return vector_classes[v] == GH_CLASS_INT || vector_classes[v] == GH_CLASS_INT128;
}

/* The value as one that so many bits hold. */
static void
shorten(GhVector *vector, uint32_t row, uint32_t bits)
{
	vector->low[row] = (uint64_t) ((int64_t) vector->low[row] >> (64 - bits));
	vector->high[row] = gh_sign_extension(vector->low[row]);
}

/* Rows, and behind them, and where a value is NULL, anything. */
void
aggregate_batch_fill(Context *c, GhVectorBatch *batch, uint32_t nrows, bool wild)
{
	uint64_t	nulls = random_below(c, 3) * 50;	/* of 100 */
	uint64_t	dead = random_below(c, 3) * 10;
	uint32_t	bits = random_below(c, 2) == 0 ? 0 : 1 + (uint32_t) random_below(c, 64);

	batch->nrows = nrows;
	memset(batch->bits, 0, sizeof(batch->bits));
	for (uint32_t i = 0; i < GH_VECTOR_ROWS; i++)
		batch->state[i] = i < nrows && random_below(c, 100) < dead ?
			GH_ROW_DROPPED + (uint8_t) random_below(c, 2) : GH_ROW_LIVE;
	for (uint32_t v = 0; v < VECTORS; v++)
		for (uint32_t i = 0; i < GH_VECTOR_ROWS; i++)
		{
			GhVector   *vector = &batch->vectors[v];

			vector->null[i] = random_below(c, 100) < nulls;
			draw_value(c, i < nrows && !vector->null[i] ? vector_classes[v] : 0, wild,
					   &vector->low[i], &vector->high[i]);
			if (bits != 0 && i < nrows && !vector->null[i] && is_integer(v))
				shorten(vector, i, bits);
		}
	for (uint32_t v = 0; v < VECTORS; v++)
		batch->bits[v] = is_integer(v) ? (uint8_t) bits : 0;
}

/* ---------------------------------------------------------------- the model */

static Wide
value_of(const GhAggregate *aggregate, uint64_t low, uint64_t high)
{
	return aggregate->value_class == GH_CLASS_INT ? (Wide) (int64_t) low : to_wide(low, high);
}

/* The sums with one more value; false: PostgreSQL raises an error, or 128 bits are too few. */
static bool
known_next(const GhAggregate *aggregate, Known *known, uint64_t low, uint64_t high)
{
	double		x = to_double(low);
	double		n = (double) known->count;
	double		old = known->float_sum;
	Wide		value;
	Wide		square;

	if (!is_float(aggregate))
	{
		value = value_of(aggregate, low, high);
		if (aggregate->kind == GH_AGGREGATE_MOMENTS &&
			(__builtin_mul_overflow(value, value, &square) ||
			 __builtin_add_overflow(known->squares, square, &known->squares)))
			return false;
		return !__builtin_add_overflow(known->sum, value, &known->sum);
	}
	if (aggregate->kind == GH_AGGREGATE_SUM && known->count == 0)
		known->float_sum = x;
	else if (aggregate->kind == GH_AGGREGATE_SUM && aggregate->value_class == GH_CLASS_FLOAT4)
		known->float_sum = (float) old + (float) x;
	else
		known->float_sum += x;
	if (aggregate->kind == GH_AGGREGATE_MOMENTS && n == 0)
		known->deviation = isfinite(x) ? 0 : (double) NAN;
	else if (aggregate->kind == GH_AGGREGATE_MOMENTS)
	{
		volatile double scaled = x * (n + 1);
		volatile double off = scaled - known->float_sum;

		known->deviation += off * off / ((n + 1) * n);
		if (isinf(known->float_sum) || isinf(known->deviation))
		{
			known->deviation = (double) NAN;
			return isinf(old) || isinf(x);
		}
	}
	return !isinf(known->float_sum) || isinf(old) || isinf(x);
}

static bool
row_taken(const GhAggregate *aggregate, const GhVectorBatch *batch, uint32_t row)
{
	if (aggregate->filter != GH_AGGREGATE_NO_FILTER &&
		(batch->vectors[aggregate->filter].null[row] ||
		 batch->vectors[aggregate->filter].low[row] == 0))
		return false;
	return aggregate->kind == GH_AGGREGATE_COUNT_ROWS ||
		!batch->vectors[aggregate->argument].null[row];
}

/* Adds a row to what is known of its group; false: it does not fit, and nothing changed. */
bool
known_add_row(const GhAggregate *aggregates, uint32_t count, const GhVectorBatch *batch,
			  uint32_t row, Known *known)
{
	for (uint32_t a = 0; a < count; a++)
	{
		const GhVector *vector = &batch->vectors[aggregates[a].argument];
		Known		next = known[a];

		if (row_taken(&aggregates[a], batch, row) && has_sum(&aggregates[a]) &&
			!known_next(&aggregates[a], &next, vector->low[row], vector->high[row]))
			return false;
	}
	for (uint32_t a = 0; a < count; a++)
	{
		const GhVector *vector = &batch->vectors[aggregates[a].argument];
		Known	   *k = &known[a];

		if (!row_taken(&aggregates[a], batch, row))
			continue;
		if (has_sum(&aggregates[a]))
			known_next(&aggregates[a], k, vector->low[row], vector->high[row]);
		if (k->count == k->room)
		{
			k->room = 2 * k->room + 64;
			k->low = realloc(k->low, k->room * sizeof(uint64_t));
			k->high = realloc(k->high, k->room * sizeof(uint64_t));
		}
		k->low[k->count] = vector->low[row];
		k->high[k->count++] = vector->high[row];
	}
	return true;
}

void
known_drop(Known *known, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
	{
		free(known[i].low);
		free(known[i].high);
	}
	free(known);
}

/* PostgreSQL's order of floats: the rank of a NaN is above that of the rest. */
static int
compare_values(const GhAggregate *aggregate, uint64_t a_low, uint64_t a_high,
			   uint64_t b_low, uint64_t b_high)
{
	double		x = to_double(a_low);
	double		y = to_double(b_low);
	Wide		a = value_of(aggregate, a_low, a_high);
	Wide		b = value_of(aggregate, b_low, b_high);

	if (!is_float(aggregate))
		return (a > b) - (a < b);
	if (isnan(x) || isnan(y))
		return !!isnan(x) - !!isnan(y);
	return (x > y) - (x < y);
}

/* Is the result of the state what the values make it? */
bool
known_result(const GhAggregate *aggregate, const GhAggregateState *state, const Known *known)
{
	bool		truth = aggregate->kind == GH_AGGREGATE_BOOL_AND;
	bool		found = false;
	int			sign = aggregate->kind == GH_AGGREGATE_MAX ? 1 : -1;

	if (state->count != known->count)
		return false;
	if (known->count == 0)
		return (state->low | state->high | state->squares_low | state->squares_high) == 0;
	switch (aggregate->kind)
	{
		case GH_AGGREGATE_COUNT_ROWS:
		case GH_AGGREGATE_COUNT:
			return true;
		case GH_AGGREGATE_BOOL_AND:
		case GH_AGGREGATE_BOOL_OR:
			for (uint64_t i = 0; i < known->count; i++)
				truth = aggregate->kind == GH_AGGREGATE_BOOL_AND ? truth && known->low[i] :
					truth || known->low[i];
			return state->low == truth;
		case GH_AGGREGATE_MIN:
		case GH_AGGREGATE_MAX:
			for (uint64_t i = 0; i < known->count; i++)
			{
				int			order = compare_values(aggregate, known->low[i], known->high[i],
												   state->low, state->high);

				if (order == sign)
					return false;
				found |= order == 0;
			}
			return found && (aggregate->value_class == GH_CLASS_INT128 || state->high == 0);
	}
	if (is_float(aggregate))
		return same_double(state->low, known->float_sum) && state->high == 0 &&
			(aggregate->kind == GH_AGGREGATE_SUM ? state->squares_low == 0 :
			 same_double(state->squares_low, known->deviation)) && state->squares_high == 0;
	return to_wide(state->low, state->high) == known->sum &&
		to_wide(state->squares_low, state->squares_high) == known->squares;
}
