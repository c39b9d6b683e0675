/*
 * test_aggregate.c
 *		Aggregates over batches, held against the model: what a state has after each batch,
 *		which rows go back, what merges make; and at the edges against numbers written here.
 */
#include "aggregate_test.h"

/* ------------------------------------------------------- the lists of aggregates */

static GhAggregate
aggregate_of(uint8_t kind, uint8_t value_class, uint16_t argument, uint16_t filter)
{
	GhAggregate aggregate = {kind, value_class, argument, filter, 0};

	return aggregate;
}

static bool
accepted(const GhAggregate *aggregates, uint32_t count)
{
	GhError		error = {GH_OK, ""};
	GhStatus	status = gh_aggregates_check(aggregates, count, vector_classes, VECTORS, &error);

	return status == GH_OK;
}

/* Any that are accepted, among aggregates of any bytes; up to `most` of them. */
static uint32_t
draw_aggregates(Context *c, GhAggregate *aggregates, uint32_t most)
{
	uint32_t	count = 1 + (uint32_t) random_below(c, most);

	for (uint32_t a = 0; a < count;)
	{
		uint16_t	argument = (uint16_t) random_below(c, VECTORS);
		uint8_t		kind = (uint8_t) (1 + random_below(c, GH_AGGREGATE_MOMENTS));

		aggregates[a] = kind == GH_AGGREGATE_COUNT_ROWS ?
			aggregate_of(kind, 0, 0, GH_AGGREGATE_NO_FILTER) :
			aggregate_of(kind, vector_classes[argument], argument, GH_AGGREGATE_NO_FILTER);
		if (random_below(c, 3) == 0)
			aggregates[a].filter = random_below(c, 2) ? 0 : 6;
		if (aggregates[a].value_class == GH_CLASS_FLOAT4 && random_below(c, 2) == 0)
			aggregates[a].value_class = GH_CLASS_FLOAT8;
		a += accepted(&aggregates[a], 1);
	}
	return count;
}

/* Then the order of rows counts, and what is behind a row that went back goes back, too. */
static bool
has_floats(const GhAggregate *aggregates, uint32_t count)
{
	for (uint32_t a = 0; a < count; a++)
		if (aggregates[a].kind > GH_AGGREGATE_COUNT &&
			(aggregates[a].value_class == GH_CLASS_FLOAT4 || aggregates[a].value_class == GH_CLASS_FLOAT8))
			return true;
	return false;
}

/* -------------------------------------------------------------------- tests */

#define ROUNDS 100

/* Batches of any rows, in groups or without, against what is known of every state. */
static void
batches_in_groups(Context *c)
{
	GhVectorBatch batch = aggregate_batch_make();
	GhAggregate aggregates[GH_AGGREGATES_MAX];
	uint32_t	groups[GH_VECTOR_ROWS];
	uint8_t		expected[GH_VECTOR_ROWS];
	uint64_t	rounds = sized(c, ROUNDS, 15);
	uint64_t	back = 0;
	uint64_t	back_before;

	/* few rounds may be without a sum that is too large: then there are more */
	for (uint64_t round = 0; (round < rounds || (back == 0 && round < ROUNDS)) && c->failures == 0; round++)
	{
		/* rows of up to 128 groups are put in order */
		uint32_t	ngroups = random_below(c, 3) == 0 ? 1 : 1 + (uint32_t) random_below(c, round % 3 == 0 ? 300 : 40);
		uint32_t	count = draw_aggregates(c, aggregates, round % 10 == 0 ? GH_AGGREGATES_MAX : 6);
		uint64_t	n = (uint64_t) ngroups * count;
		GhAggregateState *states = make_memory(n * sizeof(GhAggregateState));
		Known	   *known = make_memory(n * sizeof(Known));

		memset(states, 0, n * sizeof(GhAggregateState));
		memset(known, 0, n * sizeof(Known));
		for (int b = 0; b < 3; b++)
		{
			aggregate_batch_fill(c, &batch,
								 (uint32_t) random_below(c, b == 0 ? 34 : GH_VECTOR_ROWS + 1),
								 random_below(c, 3) != 0);
			for (uint32_t i = 0; i < GH_VECTOR_ROWS; i++)
				groups[i] = i < batch.nrows && batch.state[i] == GH_ROW_LIVE ?
					(uint32_t) random_below(c, ngroups) : UINT32_MAX;
			memcpy(expected, batch.state, sizeof(expected));
			back_before = back;
			for (uint32_t i = 0; i < batch.nrows; i++)
				if (expected[i] == GH_ROW_LIVE &&
					!known_add_row(aggregates, count, &batch, i, known + groups[i] * count))
				{
					for (uint32_t j = i; j < (has_floats(aggregates, count) ? batch.nrows : i + 1); j++)
						expected[j] = expected[j] == GH_ROW_LIVE ? GH_ROW_BACK : expected[j];
					back++;
				}
			gh_cpu_aggregate(aggregates, count, &batch, ngroups == 1 ? NULL : groups, states,
							 back == back_before && random_below(c, 2) == 0);
			CHECK(c, memcmp(expected, batch.state, sizeof(expected)) == 0, "other rows went back");
			for (uint64_t i = 0; i < n; i++)
				CHECK(c, known_result(&aggregates[i % count], &states[i], &known[i]), "group %"
					  PRIu64 ": aggregate of kind %d, class %d: count %" PRIu64, i / count,
					  aggregates[i % count].kind, aggregates[i % count].value_class,
					  states[i].count);
		}
		free(states);
		known_drop(known, n);
	}
	CHECK(c, back > 0, "no row went back");
	aggregate_batch_drop(&batch);
}

/* Sums of several participants, merged in any order, are the sums of all their rows. */
static void
merges(Context *c)
{
	enum {PARTS = 5};
	GhVectorBatch batch = aggregate_batch_make();
	GhAggregate aggregates[6];
	GhAggregateState parts[PARTS][6];
	GhAggregateState all[6];
	uint64_t	merged = 0;

	for (uint64_t round = sized(c, 100, 20); round > 0 && c->failures == 0; round--)
	{
		uint32_t	count = draw_aggregates(c, aggregates, 6);
		bool		wild = random_below(c, 2) == 0;
		Known	   *known = make_memory(count * sizeof(Known));
		bool		fits = true;

		memset(known, 0, count * sizeof(Known));
		memset(parts, 0, sizeof(parts));
		memset(all, 0, sizeof(all));
		for (int p = 0; p < PARTS; p++)
		{
			aggregate_batch_fill(c, &batch, (uint32_t) random_below(c, 200), wild);
			gh_cpu_aggregate(aggregates, count, &batch, NULL, parts[p], false);
			for (uint32_t i = 0; i < batch.nrows; i++)
				if (batch.state[i] == GH_ROW_LIVE)
					fits &= known_add_row(aggregates, count, &batch, i, known);
		}
		for (int p = 0, first = (int) random_below(c, PARTS); p < PARTS && fits; p++)
		{
			GhAggregateState before[6];

			memcpy(before, all, sizeof(before));
			fits = gh_aggregates_merge(aggregates, count, all, parts[(first + p * 2) % PARTS]);
			CHECK(c, fits || memcmp(before, all, sizeof(before)) == 0, "a merge that did not "
				  "fit has left something");
		}
		for (uint32_t a = 0; a < count && fits; a++)
		{
			if (has_sum(&aggregates[a]) && is_float(&aggregates[a]))
			{
				CHECK_U64(c, "count of floats", all[a].count, known[a].count);
				CHECK(c, wild || aggregates[a].kind != GH_AGGREGATE_MOMENTS ||
					  fabs(to_double(all[a].squares_low) - known[a].deviation) <=
					  1e-12 * known[a].deviation, "Sxx is %g, not %g",
					  to_double(all[a].squares_low), known[a].deviation);
				continue;
			}
			merged++;
			CHECK(c, known_result(&aggregates[a], &all[a], &known[a]), "merged aggregate of kind "
				  "%d, class %d", aggregates[a].kind, aggregates[a].value_class);
		}
		known_drop(known, count);
	}
	CHECK(c, merged > 0, "nothing was merged");
	aggregate_batch_drop(&batch);
}

/* The value's vector in a batch of these tests. */
static uint16_t
vector_of(uint8_t value_class)
{
	uint16_t	v = 0;

	while (vector_classes[v] != value_class)
		v++;
	return v;
}

static GhAggregate
plain(GhAggregateKind kind, uint8_t value_class)
{
	return aggregate_of((uint8_t) kind, value_class, vector_of(value_class),
						GH_AGGREGATE_NO_FILTER);
}

/* That hold each of the values; 0: more than 64. */
static uint8_t
bits_of(const Wide *values, uint32_t nrows)
{
	uint8_t		bits = 1;

	for (uint32_t i = 0; i < nrows && bits != 0; i++)
	{
		uint8_t		own = gh_value_bits((uint64_t) values[i], (uint64_t) (values[i] >> 64));

		bits = own == 0 || own > bits ? own : bits;
	}
	return bits;
}

/*
 * Adds values to a state and, beside it, to a count of rows: as one group, and again as group
 * 1 of several, which must come to the same.  Returns the number of rows handed back.
 */
static uint32_t
feed(Context *c, GhAggregate aggregate, const Wide *values, uint32_t nrows,
	 GhAggregateState *state)
{
	GhAggregate list[2];
	GhAggregateState one[2];
	GhAggregateState many[4];
	GhVectorBatch batch = aggregate_batch_make();
	uint32_t	groups[GH_VECTOR_ROWS];
	uint8_t		before[GH_VECTOR_ROWS];
	uint32_t	back = 0;

	list[0] = aggregate_of(GH_AGGREGATE_COUNT_ROWS, 0, 0, GH_AGGREGATE_NO_FILTER);
	list[1] = aggregate;
	memset(many, 0, sizeof(many));
	many[3] = *state;
	memcpy(one, many + 2, sizeof(one));
	aggregate_batch_fill(c, &batch, nrows, true);
	for (uint32_t i = 0; i < nrows; i++)
	{
		batch.state[i] = GH_ROW_LIVE;
		groups[i] = 1;
		batch.vectors[aggregate.argument].null[i] = 0;
		batch.vectors[aggregate.argument].low[i] = (uint64_t) values[i];
		batch.vectors[aggregate.argument].high[i] = (uint64_t) (values[i] >> 64);
	}
	batch.bits[aggregate.argument] = is_float(&aggregate) || random_below(c, 2) == 0 ? 0 : bits_of(values, nrows);
	gh_cpu_aggregate(list, 2, &batch, NULL, one, false);
	memcpy(before, batch.state, sizeof(before));
	memset(batch.state, GH_ROW_LIVE, nrows);
	gh_cpu_aggregate(list, 2, &batch, groups, many, false);
	for (uint32_t i = 0; i < nrows; i++)
		back += batch.state[i] == GH_ROW_BACK;
	CHECK(c, memcmp(before, batch.state, sizeof(before)) == 0, "other rows of a group went back");
	CHECK(c, memcmp(one, many + 2, sizeof(one)) == 0, "a group has other states than all rows");
	CHECK(c, many[0].count + many[1].count == 0, "another group has values");
	CHECK_U64(c, "rows beside", one[0].count, nrows - back);
	*state = one[1];
	aggregate_batch_drop(&batch);
	return back;
}

static uint32_t
feed_doubles(Context *c, GhAggregate aggregate, const double *values, uint32_t nrows,
			 GhAggregateState *state)
{
	Wide		words[GH_VECTOR_ROWS];

	for (uint32_t i = 0; i < nrows; i++)
		words[i] = to_bits(values[i]);
	return feed(c, aggregate, words, nrows, state);
}

static GhAggregateState
state_of(uint64_t count, Wide value, Wide squares)
{
	GhAggregateState state = {
		count, (uint64_t) value, (uint64_t) (value >> 64),
		(uint64_t) squares, (uint64_t) (squares >> 64)
	};

	return state;
}

static void
check_state(Context *c, const char *what, GhAggregateState got, GhAggregateState expected)
{
	CHECK(c, memcmp(&got, &expected, sizeof(got)) == 0, "%s: %" PRIu64 " values, %" PRIx64 " %"
		  PRIx64 ", squares %" PRIx64 " %" PRIx64, what, got.count, got.high, got.low,
		  got.squares_high, got.squares_low);
}

static void
integer_edges(Context *c)
{
	const Wide	ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	const Wide	root = (Wide) UINT64_C(13043817825332782212);	/* of 2^127, rounded down */
	const Wide	squares[6] = {root + 1, -root - 1, -WIDE_MAX - 1, -root, -((Wide) 1 << 64), 0};
	const Wide	carry[3] = {-1, 5, 3};
	const Wide	least[3] = {INT64_MIN, INT64_MAX, INT64_MIN};
	const Wide	extremes[4] = {-1, -WIDE_MAX - 1, WIDE_MAX, 1};
	const Wide	halves[3] = {2, UINT64_MAX, 1};
	GhAggregate sum = plain(GH_AGGREGATE_SUM, GH_CLASS_INT);
	GhAggregateState state = state_of(1, WIDE_MAX - 4, 0);
	GhAggregateState more = state_of(1, 1, 0);

	CHECK_U64(c, "rows back at 2^127", feed(c, sum, ones, 10, &state), 6);
	check_state(c, "sum at 2^127", state, state_of(5, WIDE_MAX, 0));
	CHECK(c, !gh_aggregate_merge(&sum, &state, &more), "2^127 is a sum");
	check_state(c, "sum not merged", state, state_of(5, WIDE_MAX, 0));
	state = state_of(1, WIDE_MAX - 4, 0);
	sum = plain(GH_AGGREGATE_SUM, GH_CLASS_INT128);
	CHECK_U64(c, "wide rows back at 2^127", feed(c, sum, ones, 10, &state), 6);
	check_state(c, "wide sum at 2^127", state, state_of(5, WIDE_MAX, 0));

	state = state_of(0, 0, 0);
	CHECK_U64(c, "squares back", feed(c, plain(GH_AGGREGATE_MOMENTS, GH_CLASS_INT128), squares, 6,
									  &state), 4);
	check_state(c, "greatest square", state, state_of(2, -root, root * root));
	state = state_of(0, 0, 0);
	CHECK_U64(c, "squares of INT back", feed(c, plain(GH_AGGREGATE_MOMENTS, GH_CLASS_INT), least,
											 3, &state), 1);
	check_state(c, "squares of the least and greatest", state,
				state_of(2, -1, ((Wide) 1 << 126) + (Wide) INT64_MAX * INT64_MAX));

	state = state_of(0, 0, 0);
	CHECK_U64(c, "sum of extremes", feed(c, plain(GH_AGGREGATE_SUM, GH_CLASS_INT), least, 3,
										 &state), 0);
	check_state(c, "sum of extremes", state, state_of(3, (Wide) INT64_MIN - 1, 0));
	state = state_of(0, 0, 0);
	feed(c, plain(GH_AGGREGATE_SUM, GH_CLASS_INT), carry, 3, &state);
	check_state(c, "sum with a carry", state, state_of(3, 7, 0));
	state = state_of(0, 0, 0);
	feed(c, plain(GH_AGGREGATE_MIN, GH_CLASS_INT128), extremes, 4, &state);
	check_state(c, "least", state, state_of(4, -WIDE_MAX - 1, 0));
	state = state_of(0, 0, 0);
	feed(c, plain(GH_AGGREGATE_MAX, GH_CLASS_INT128), extremes, 4, &state);
	check_state(c, "greatest", state, state_of(4, WIDE_MAX, 0));
	state = state_of(0, 0, 0);
	feed(c, plain(GH_AGGREGATE_MAX, GH_CLASS_INT128), halves, 3, &state);
	check_state(c, "greatest lower half", state, state_of(3, UINT64_MAX, 0));
}

typedef struct FloatCase
{
	const char *what;
	GhAggregateKind kind;
	uint8_t		value_class;
	uint32_t	nrows;
	double		values[3];
	uint32_t	back;
	double		result;
	double		squares;		/* MOMENTS */
} FloatCase;

#define INF ((double) INFINITY)
#define NOT ((double) NAN)

static const FloatCase float_cases[] = {
	{"-0 alone", GH_AGGREGATE_SUM, GH_CLASS_FLOAT8, 1, {-0.0}, 0, -0.0, 0},
	{"-0 and 0", GH_AGGREGATE_SUM, GH_CLASS_FLOAT8, 2, {-0.0, 0}, 0, 0, 0},
	{"too great", GH_AGGREGATE_SUM, GH_CLASS_FLOAT8, 3, {DBL_MAX, DBL_MAX, 1}, 2, DBL_MAX, 0},
	{"too small", GH_AGGREGATE_SUM, GH_CLASS_FLOAT8, 2, {-DBL_MAX, -DBL_MAX}, 1, -DBL_MAX, 0},
	{"infinite", GH_AGGREGATE_SUM, GH_CLASS_FLOAT8, 3, {1, INF, DBL_MAX}, 0, INF, 0},
	{"both infinities", GH_AGGREGATE_SUM, GH_CLASS_FLOAT8, 2, {INF, -INF}, 0, NOT, 0},
	{"NaN", GH_AGGREGATE_SUM, GH_CLASS_FLOAT8, 3, {1, NOT, DBL_MAX}, 0, NOT, 0},
	{"in order", GH_AGGREGATE_SUM, GH_CLASS_FLOAT8, 3, {1e16, 1, -1e16}, 0, 0, 0},
	{"float4 that stays", GH_AGGREGATE_SUM, GH_CLASS_FLOAT4, 3, {0x1p24, 1, 1}, 0, 0x1p24, 0},
	{"float4 as float8", GH_AGGREGATE_SUM, GH_CLASS_FLOAT8, 3, {0x1p24, 1, 1}, 0, 0x1p24 + 2, 0},
	{"float4 too great", GH_AGGREGATE_SUM, GH_CLASS_FLOAT4, 2, {FLT_MAX, FLT_MAX}, 1, FLT_MAX, 0},
	{"float4 -0", GH_AGGREGATE_SUM, GH_CLASS_FLOAT4, 2, {-0.0, -0.0}, 0, -0.0, 0},
	{"float4 infinite", GH_AGGREGATE_SUM, GH_CLASS_FLOAT4, 2, {-INF, FLT_MAX}, 0, -INF, 0},
	{"last 0", GH_AGGREGATE_MIN, GH_CLASS_FLOAT8, 3, {0, 5, -0.0}, 0, -0.0, 0},
	{"last -0", GH_AGGREGATE_MAX, GH_CLASS_FLOAT4, 3, {-0.0, -5, 0}, 0, 0, 0},
	{"below NaN", GH_AGGREGATE_MIN, GH_CLASS_FLOAT8, 3, {NOT, INF, NOT}, 0, INF, 0},
	{"NaN alone", GH_AGGREGATE_MIN, GH_CLASS_FLOAT8, 2, {NOT, NOT}, 0, NOT, 0},
	{"NaN last", GH_AGGREGATE_MAX, GH_CLASS_FLOAT4, 3, {NOT, INF, 1}, 0, NOT, 0},
	{"least", GH_AGGREGATE_MIN, GH_CLASS_FLOAT4, 3, {1, -INF, -1}, 0, -INF, 0},
	{"three", GH_AGGREGATE_MOMENTS, GH_CLASS_FLOAT8, 3, {1, 2, 3}, 0, 6, 2},
	{"-0 of moments", GH_AGGREGATE_MOMENTS, GH_CLASS_FLOAT8, 1, {-0.0}, 0, 0, 0},
	{"an infinity", GH_AGGREGATE_MOMENTS, GH_CLASS_FLOAT8, 1, {INF}, 0, INF, NOT},
	{"a late infinity", GH_AGGREGATE_MOMENTS, GH_CLASS_FLOAT8, 3, {1, -INF, 2}, 0, -INF, NOT},
	{"a NaN alone", GH_AGGREGATE_MOMENTS, GH_CLASS_FLOAT8, 1, {NOT}, 0, NOT, NOT},
	{"a NaN", GH_AGGREGATE_MOMENTS, GH_CLASS_FLOAT8, 2, {NOT, DBL_MAX}, 0, NOT, NOT},
	{"squares too great", GH_AGGREGATE_MOMENTS, GH_CLASS_FLOAT8, 2, {1e200, -1e200}, 1, 1e200, 0},
	{"sum too great", GH_AGGREGATE_MOMENTS, GH_CLASS_FLOAT8, 2, {DBL_MAX, DBL_MAX}, 1, DBL_MAX, 0},
	{"float4 in float8", GH_AGGREGATE_MOMENTS, GH_CLASS_FLOAT4, 3, {0x1p24, 0x1p24 + 2, 0x1p24 + 4},
		0, 3 * 0x1p24 + 6, 8}
};

static void
float_edges(Context *c)
{
	for (size_t i = 0; i < sizeof(float_cases) / sizeof(float_cases[0]); i++)
	{
		const FloatCase *f = &float_cases[i];
		GhAggregateState state = state_of(0, 0, 0);

		CHECK_U64(c, f->what, feed_doubles(c, plain(f->kind, f->value_class), f->values, f->nrows,
										   &state), f->back);
		CHECK_U64(c, f->what, state.count, f->nrows - f->back);
		CHECK(c, same_double(state.low, f->result) && same_double(state.squares_low, f->squares),
			  "%s: %g, Sxx %g", f->what, to_double(state.low), to_double(state.squares_low));
	}
}

static GhAggregateState
moments_of(uint64_t count, double sum, double squares)
{
	return state_of(count, to_bits(sum), to_bits(squares));
}

/* The numbers of PostgreSQL's own regression test of float8_accum and float8_combine, and ends. */
static void
float_merges(Context *c)
{
	const double hundred = 100;
	GhAggregate moments = plain(GH_AGGREGATE_MOMENTS, GH_CLASS_FLOAT8);
	GhAggregate sum = plain(GH_AGGREGATE_SUM, GH_CLASS_FLOAT8);
	GhAggregateState state = moments_of(4, 140, 2900);
	GhAggregateState more = moments_of(2, 180, 200);

	feed_doubles(c, moments, &hundred, 1, &state);
	check_state(c, "float8_accum", state, moments_of(5, 240, 6280));
	state = moments_of(3, 60, 200);
	CHECK(c, gh_aggregate_merge(&moments, &state, &more), "float8_combine");
	check_state(c, "float8_combine", state, moments_of(5, 240, 6280));
	state = moments_of(0, 0, 0);
	CHECK(c, gh_aggregate_merge(&moments, &state, &more), "float8_combine with none");
	check_state(c, "float8_combine with none", state, more);
	more = moments_of(0, 0, 0);
	CHECK(c, gh_aggregate_merge(&moments, &state, &more), "float8_combine of none");
	check_state(c, "float8_combine of none", state, moments_of(2, 180, 200));

	state = moments_of(1, 1e200, 0);
	more = moments_of(1, -1e200, 0);
	CHECK(c, !gh_aggregate_merge(&moments, &state, &more), "Sxx is infinite");
	check_state(c, "Sxx not merged", state, moments_of(1, 1e200, 0));
	state = moments_of(1, INF, NOT);
	CHECK(c, gh_aggregate_merge(&moments, &state, &more) && isnan(to_double(state.squares_low)) &&
		  to_double(state.low) == INF, "an infinity and a number");
	state = moments_of(1, DBL_MAX, 0);
	more = state;
	CHECK(c, !gh_aggregate_merge(&sum, &state, &more), "a sum is infinite");
	check_state(c, "sum not merged", state, more);
	state = moments_of(0, 0, 0);
	more = moments_of(1, -0.0, 0);
	CHECK(c, gh_aggregate_merge(&sum, &state, &more), "-0 is merged");
	check_state(c, "-0", state, more);
}

static void
lists_refused(Context *c)
{
	const GhAggregate good = {GH_AGGREGATE_SUM, GH_CLASS_INT, 1, 0, 0};
	const GhAggregate bad[] = {
		{0, 0, 0, 0, 0},
		{GH_AGGREGATE_MOMENTS + 1, GH_CLASS_INT, 1, 0, 0},
		{GH_AGGREGATE_COUNT_ROWS, GH_CLASS_INT, 0, 0, 0},
		{GH_AGGREGATE_COUNT_ROWS, 0, 1, 0, 0},
		{GH_AGGREGATE_COUNT, 0, 11, 0, 0},
		{GH_AGGREGATE_COUNT, GH_CLASS_BPCHAR, 5, 0, 0},
		{GH_AGGREGATE_SUM, GH_CLASS_BOOL, 0, 0, 0},
		{GH_AGGREGATE_MIN, GH_CLASS_TEXT, 5, 0, 0},
		{GH_AGGREGATE_SUM, 255, 1, 0, 0},
		{GH_AGGREGATE_BOOL_AND, GH_CLASS_INT, 1, 0, 0},
		{GH_AGGREGATE_SUM, GH_CLASS_INT128, 1, 0, 0},
		{GH_AGGREGATE_SUM, GH_CLASS_FLOAT4, 4, 0, 0},
		{GH_AGGREGATE_SUM, GH_CLASS_INT, VECTORS, 0, 0},
		{GH_AGGREGATE_SUM, GH_CLASS_INT, UINT16_MAX, 0, 0},
		{GH_AGGREGATE_SUM, GH_CLASS_INT, 1, 1, 0},
		{GH_AGGREGATE_SUM, GH_CLASS_INT, 1, VECTORS, 0},
		{GH_AGGREGATE_SUM, GH_CLASS_INT, 1, 0, 1}
	};
	GhAggregate list[GH_AGGREGATES_MAX + 1];
	GhError		error;

	for (uint32_t a = 0; a <= GH_AGGREGATES_MAX; a++)
		list[a] = good;
	for (uint32_t n = 0; n <= GH_AGGREGATES_MAX; n++)
		CHECK(c, accepted(list, n), "%u aggregates are refused", n);
	CHECK(c, !accepted(list, GH_AGGREGATES_MAX + 1), "there may be too many aggregates");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		list[1] = bad[i];
		error.message[0] = '\0';
		CHECK_STATUS(c, "a bad list", gh_aggregates_check(list, 2, vector_classes, VECTORS, &error),
					 GH_INVALID);
		CHECK(c, strstr(error.message, "aggregate 1") == error.message, "bad list %zu: %s", i,
			  error.message);
	}
	list[1] = aggregate_of(GH_AGGREGATE_COUNT, GH_CLASS_TEXT, 5, GH_AGGREGATE_NO_FILTER);
	list[0] = aggregate_of(GH_AGGREGATE_MAX, GH_CLASS_FLOAT8, 3, 6);
	CHECK(c, accepted(list, 2), "text is not counted, or a float4 does not stand for a float8");
}

const Test	aggregate_tests[] = {
	{"aggregates: lists", lists_refused, true},
	{"aggregates: integers at the edges", integer_edges, true},
	{"aggregates: floats at the edges", float_edges, true},
	{"aggregates: floats, merged", float_merges, true},
	{"aggregates: batches, in groups", batches_in_groups, true},
	{"aggregates: merges", merges, true},
	{NULL, NULL, false}
};
