/*
 * cpu_aggregate.c
 *		Adds the rows of a batch to the states of their groups.
 *
 * Where all rows are of one group, each aggregate goes over the whole batch by itself, on a
 * copy of its state.  Only when all of them have got through are the states replaced, so that
 * a batch with a row that does not fit somewhere has changed nothing, and is done again row
 * by row.  Counts, truth values and integers that 64 bits hold are gathered in loops without a branch,
 * from zero, and merged into the copy; what else there is, is added row after row.
 *
 * Rows of several groups are added an aggregate at a time, too, where nothing can fail: all sums
 * and all their arguments in the batch are far from the limits, or the caller knows it.  Where groups are few, all rows of a group are
 * added before those of the next, so that its state is in registers meanwhile.
 */
#include "engine/clones.h"
#include "engine/program/aggregate.h"

/* The argument of an aggregate, and which of the rows it takes. */
typedef struct Column
{
	const uint64_t *low;		/* where the aggregate has an argument */
	const uint64_t *high;
	bool		integers;		/* which 64 bits hold */
	uint32_t	nrows;
	uint8_t		takes[GH_VECTOR_ROWS];	/* 1, or 0: also for rows behind the last */
} Column;

/*
 * Rows that are there, and of these, those whose value is.  To a compiler a byte that is written may be any other one: it is
 * told here that they are none of those that are read.
 */
static gh_always_inline void
take_live(uint8_t *restrict takes, const uint8_t *restrict state, uint32_t nrows)
{
	for (uint32_t i = 0; i < nrows; i++)
		takes[i] = state[i] == GH_ROW_LIVE;
}

static gh_always_inline void
leave_nulls(uint8_t *restrict takes, const uint8_t *restrict null, uint32_t nrows)
{
	for (uint32_t i = 0; i < nrows; i++)
		takes[i] &= null[i] == 0;
}

/* Are the argument's values integers that 64 bits are known to hold? */
static bool
are_integers(const GhAggregate *aggregate, const GhVectorBatch *batch)
{
	return aggregate->value_class == GH_CLASS_INT ||
		(aggregate->value_class == GH_CLASS_INT128 && batch->bits[aggregate->argument] != 0);
}

static gh_always_inline void
open_column(Column *column, const GhAggregate *aggregate, const GhVectorBatch *batch)
{
	uint32_t	nrows = gh_loop_rows(batch->nrows);
	uint8_t    *takes = column->takes;
	const uint64_t *truth;

	column->low = column->high = NULL;
	column->integers = false;
	column->nrows = batch->nrows;
	take_live(takes, batch->state, nrows);
	if (aggregate->kind != GH_AGGREGATE_COUNT_ROWS)
	{
		column->low = batch->vectors[aggregate->argument].low;
		column->high = batch->vectors[aggregate->argument].high;
		column->integers = are_integers(aggregate, batch);
		leave_nulls(takes, batch->vectors[aggregate->argument].null, nrows);
	}
	if (aggregate->filter != GH_AGGREGATE_NO_FILTER)
	{
		truth = batch->vectors[aggregate->filter].low;
		leave_nulls(takes, batch->vectors[aggregate->filter].null, nrows);
		for (uint32_t i = 0; i < nrows; i++)
			takes[i] &= truth[i] != 0;
	}
	memset(takes + batch->nrows, 0, nrows - batch->nrows);
}

static gh_always_inline uint64_t
count_taken(const Column *column)
{
	uint32_t	nrows = gh_loop_rows(column->nrows);
	uint32_t	count = 0;

	for (uint32_t i = 0; i < nrows; i++)
		count += column->takes[i];
	return count;
}

/*
 * The sum of 64-bit integers, in halves of 32 bits without sign, of which 2^32 rows fit in
 * a word; each negative number was taken for one that is 2^64 greater.
 */
static gh_always_inline void
sum_integers(const Column *column, GhAggregateState *state)
{
	uint32_t	nrows = gh_loop_rows(column->nrows);
	uint64_t	lower = 0;
	uint64_t	upper = 0;
	uint64_t	negative = 0;

	for (uint32_t i = 0; i < nrows; i++)
	{
		uint64_t	value = column->low[i] & (0 - (uint64_t) column->takes[i]);

		lower += value & UINT32_MAX;
		upper += value >> 32;
		negative += value >> 63;
	}
	state->low = lower + (upper << 32);
	state->high = (upper >> 32) + (state->low < lower) - negative;
}

/* The least integer, or the greatest as the complement of the least complement. */
static gh_always_inline uint64_t
least_integer(const Column *column, uint64_t complement)
{
	uint32_t	nrows = gh_loop_rows(column->nrows);
	int64_t		least = INT64_MAX;

	for (uint32_t i = 0; i < nrows; i++)
	{
		int64_t		value = column->takes[i] ? (int64_t) (column->low[i] ^ complement) : INT64_MAX;

		least = value < least ? value : least;
	}
	return (uint64_t) least ^ complement;
}

/* Is there a row of that truth value? */
static gh_always_inline bool
any_truth(const Column *column, bool truth)
{
	uint32_t	nrows = gh_loop_rows(column->nrows);
	uint64_t	any = 0;

	for (uint32_t i = 0; i < nrows; i++)
		any |= column->takes[i] & ((column->low[i] != 0) == truth);
	return any != 0;
}

/* Fills `state` from the whole column; false: there is no loop for such an aggregate. */
static gh_always_inline bool
gather_column(const GhAggregate *aggregate, const Column *column, GhAggregateState *state)
{
	switch (aggregate->kind)
	{
		case GH_AGGREGATE_COUNT_ROWS:
		case GH_AGGREGATE_COUNT:
			break;
		case GH_AGGREGATE_BOOL_AND:
			state->low = !any_truth(column, false);
			break;
		case GH_AGGREGATE_BOOL_OR:
			state->low = any_truth(column, true);
			break;
		case GH_AGGREGATE_SUM:
			if (!column->integers)
				return false;
			sum_integers(column, state);
			break;
		case GH_AGGREGATE_MIN:
		case GH_AGGREGATE_MAX:
			if (!column->integers)
				return false;
			state->low = least_integer(column, aggregate->kind == GH_AGGREGATE_MIN ? 0 :
									   UINT64_MAX);
			if (aggregate->value_class == GH_CLASS_INT128)
				state->high = gh_sign_extension(state->low);
			break;
		default:
			return false;
	}
	state->count = count_taken(column);
	return true;
}

/* All rows of a batch to one state; false: not all fit, and the state is good for nothing. */
static gh_always_inline bool
add_column(const GhAggregate *aggregate, const GhVectorBatch *batch, GhAggregateState *state)
{
	Column		column;
	GhAggregateState gathered = {0, 0, 0, 0, 0};

	open_column(&column, aggregate, batch);
	if (gather_column(aggregate, &column, &gathered))
		return gh_aggregate_merge(aggregate, state, &gathered);
	for (uint32_t i = 0; i < batch->nrows; i++)
		if (column.takes[i] && !gh_aggregate_add_row(aggregate, batch->vectors, i, state))
			return false;
	return true;
}

/* False: a row does not fit somewhere, and no state is changed. */
GH_CLONES static bool
add_columns(const GhAggregate *aggregates, uint32_t count, const GhVectorBatch *batch,
			GhAggregateState *states)
{
	GhAggregateState after[GH_AGGREGATES_MAX];

	for (uint32_t a = 0; a < count; a++)
	{
		after[a] = states[a];
		if (!add_column(&aggregates[a], batch, &after[a]))
			return false;
	}
	memcpy(states, after, count * sizeof(GhAggregateState));
	return true;
}

/* ------------------------------------------------------------ several groups */

/* Live rows of a batch, or those of them that an aggregate takes. */
typedef struct Rows
{
	uint32_t	count;
	uint16_t	rows[GH_VECTOR_ROWS];
} Rows;

/* What an aggregate adds, and to what. */
typedef struct Taken
{
	const GhAggregate *aggregate;
	const uint64_t *low;		/* of its argument */
	const uint64_t *high;		/* NULL: there are none */
	uint32_t	bits;			/* of integers, that hold each of them; 0: nobody knows */
	const uint32_t *groups;		/* by row of the batch */
	GhAggregateState *states;	/* its own of the first group */
	uint32_t	stride;			/* states of a group */
	const Rows *rows;
} Taken;

/*
 * What is done with each of the rows, after one another, and then with all of a run that are of the same group, from the one in
 * place `from` up to that in place t; `state` is a copy of what they go to.
 */
#define EACH_RUN(taken, each, all) \
	do { \
		const uint16_t *rows = (taken)->rows->rows; \
		const uint32_t count = (taken)->rows->count; \
		const uint32_t *groups = (taken)->groups; \
		for (uint32_t t = 0; t < count;) \
		{ \
			uint32_t	row = rows[t]; \
			uint32_t	group = groups[row]; \
			GhAggregateState *place = (taken)->states + (size_t) group * (taken)->stride; \
			GhAggregateState copy = *place; \
			GhAggregateState *state = &copy; \
			uint32_t	from = t; \
			do \
			{ \
				each; \
			} while (++t < count && groups[row = rows[t]] == group); \
			all; \
			*place = copy; \
		} \
	} while (0)
#define EACH_TAKEN(taken, each) EACH_RUN(taken, each, (void) from)

/* Of integers of so many bits 64 hold the sum of a batch. */
#define SHORT_BITS (64 - 10)
_Static_assert(GH_VECTOR_ROWS == 1 << 10, "so many rows");

/* Few groups are put in order: as many as a pass over their counts is nothing beside the rows. */
#define ORDERED_GROUPS 128

/* By their groups, rows of the same group in their order. */
static void
order_by_group(Rows *live, const uint32_t *groups)
{
	uint16_t	places[ORDERED_GROUPS] = {0};
	uint16_t	before[GH_VECTOR_ROWS];
	uint32_t	most = 0;
	uint16_t	place = 0;

	for (uint32_t t = 0; t < live->count; t++)
		most = groups[live->rows[t]] > most ? groups[live->rows[t]] : most;
	if (most >= ORDERED_GROUPS)
		return;
	for (uint32_t t = 0; t < live->count; t++)
		places[groups[live->rows[t]]]++;
	for (uint32_t group = 0; group <= most; group++)
	{
		uint16_t	n = places[group];

		places[group] = place;
		place += n;
	}
	memcpy(before, live->rows, live->count * sizeof(*before));
	for (uint32_t t = 0; t < live->count; t++)
		live->rows[places[groups[before[t]]]++] = before[t];
}

static void
list_live(const GhVectorBatch *batch, Rows *live)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < batch->nrows; i++)
	{
		live->rows[n] = (uint16_t) i;
		n += batch->state[i] == GH_ROW_LIVE;
	}
	live->count = n;
}

/* Whether an aggregate takes all live rows. */
static bool
takes_all(const GhAggregate *aggregate, const GhVectorBatch *batch)
{
	return aggregate->filter == GH_AGGREGATE_NO_FILTER &&
		(aggregate->kind == GH_AGGREGATE_COUNT_ROWS ||
		 memchr(batch->vectors[aggregate->argument].null, 1, batch->nrows) == NULL);
}

/* *some: has room for the rows, where it does not take all */
static void
open_taken(const GhAggregate *aggregate, const GhVectorBatch *batch, const Rows *live, Rows *some, Taken *taken)
{
	taken->aggregate = aggregate;
	taken->low = taken->high = NULL;
	if (aggregate->kind != GH_AGGREGATE_COUNT_ROWS)
		taken->low = batch->vectors[aggregate->argument].low;
	if (aggregate->value_class == GH_CLASS_INT128)
		taken->high = batch->vectors[aggregate->argument].high;
	taken->bits = are_integers(aggregate, batch) ? batch->bits[aggregate->argument] : 0;
	taken->rows = live;
	if (takes_all(aggregate, batch))
		return;
	some->count = 0;
	for (uint32_t t = 0; t < live->count; t++)
	{
		some->rows[some->count] = live->rows[t];
		some->count += gh_aggregate_takes(aggregate, batch->vectors, live->rows[t]);
	}
	taken->rows = some;
}

/* Not less than 2^116, or 2^977, are the values that could make 1024 of them too many. */
static inline uint64_t
is_large(uint64_t high)
{
	return (high + (UINT64_C(1) << 52)) >> 53;
}

static inline uint64_t
is_large_float(uint64_t bits)
{
	return (bits >> 52 & 0x7ff) >= 2000;
}

/* Whether a value may not fit. */
static bool
may_fail(const GhAggregate *aggregate)
{
	return aggregate->kind == GH_AGGREGATE_SUM || aggregate->kind == GH_AGGREGATE_MOMENTS;
}

/* Whether all rows fit, as far as that is seen without adding them. */
static bool
all_fit(const Taken *taken)
{
	const GhAggregate *aggregate = taken->aggregate;
	uint64_t	any = 0;

	if (aggregate->kind != GH_AGGREGATE_SUM)
		return false;
	if (aggregate->value_class == GH_CLASS_INT || taken->bits != 0)
		EACH_RUN(taken, (void) row, (void) from; any |= is_large(state->high));
	else if (aggregate->value_class == GH_CLASS_INT128)
		EACH_TAKEN(taken, any |= is_large(taken->high[row]) | is_large(state->high));
	else if (aggregate->value_class == GH_CLASS_FLOAT8)
		EACH_TAKEN(taken, any |= is_large_float(taken->low[row]) | is_large_float(state->low));
	else
		return false;
	return any == 0;
}

static inline void
add_float(GhAggregateState *state, uint64_t low)
{
	if (state->count++ == 0)
		state->low = low;
	else
		(void) gh_sum_float(GH_CLASS_FLOAT8, state->low, low, &state->low);
}

/* Adds them, where that cannot fail. */
static void
add_taken(const Taken *taken)
{
	const GhAggregate *aggregate = taken->aggregate;
	const uint64_t *low = taken->low;
	const uint64_t *high = taken->high;

	if (aggregate->kind <= GH_AGGREGATE_COUNT)
		EACH_RUN(taken, (void) row, state->count += t - from);
	else if (aggregate->kind != GH_AGGREGATE_SUM)
		EACH_TAKEN(taken, (void) gh_aggregate_add(aggregate, state, low[row], high != NULL ? high[row] : 0));
	else if (aggregate->value_class == GH_CLASS_FLOAT8)
		EACH_TAKEN(taken, add_float(state, low[row]));
	else if (taken->bits != 0 && taken->bits <= SHORT_BITS)
	{
		uint64_t	sum = 0;

		EACH_RUN(taken, sum += low[row], state->count += t - from;
				 (void) gh_sum_add(&state->low, &state->high, sum, gh_sign_extension(sum)); sum = 0);
	}
	else if (aggregate->value_class == GH_CLASS_INT)
		EACH_TAKEN(taken, state->count++;
				   (void) gh_sum_add(&state->low, &state->high, low[row], gh_sign_extension(low[row])));
	else
		EACH_TAKEN(taken, state->count++;
				   (void) gh_sum_add(&state->low, &state->high, low[row], high[row]));
}

/* All live rows to the states of their groups; false: some may not fit, and no state is changed. */
static bool
add_in_groups(const GhAggregate *aggregates, uint32_t count, const GhVectorBatch *batch,
			  const uint32_t *groups, GhAggregateState *states, bool all_known_to_fit)
{
	Rows		live;
	Rows		some;
	Taken		taken;

	taken.groups = groups;
	taken.stride = count;
	list_live(batch, &live);
	if (count > 1)
		order_by_group(&live, groups);
	for (uint32_t a = 0; a < count; a++)
	{
		taken.states = states + a;
		if (!may_fail(&aggregates[a]) || (all_known_to_fit && !gh_class_is_float(aggregates[a].value_class)))
			continue;
		open_taken(&aggregates[a], batch, &live, &some, &taken);
		if (!all_fit(&taken))
			return false;
	}
	for (uint32_t a = 0; a < count; a++)
	{
		taken.states = states + a;
		open_taken(&aggregates[a], batch, &live, &some, &taken);
		add_taken(&taken);
	}
	return true;
}

/* Do the states depend on the order of rows? */
static bool
is_ordered(const GhAggregate *aggregates, uint32_t count)
{
	for (uint32_t a = 0; a < count; a++)
		if (aggregates[a].kind > GH_AGGREGATE_COUNT && gh_class_is_float(aggregates[a].value_class))
			return true;
	return false;
}

/* Hands back row i and, where the order matters, all behind it; the number of rows looked at. */
static uint32_t
hand_back(GhVectorBatch *batch, uint32_t i, bool ordered)
{
	uint32_t	end = ordered ? batch->nrows : i + 1;

	for (uint32_t row = i; row < end; row++)
		if (batch->state[row] == GH_ROW_LIVE)
			batch->state[row] = GH_ROW_BACK;
	return end - i;
}

void
gh_cpu_aggregate(const GhAggregate *aggregates, uint32_t count, GhVectorBatch *batch,
				 const uint32_t *groups, GhAggregateState *states, bool all_known_to_fit)
{
	if (groups == NULL ? add_columns(aggregates, count, batch, states) :
		add_in_groups(aggregates, count, batch, groups, states, all_known_to_fit))
		return;
	for (uint32_t i = 0; i < batch->nrows; i++)
	{
		size_t		group = groups != NULL && batch->state[i] == GH_ROW_LIVE ? groups[i] : 0;

		if (batch->state[i] == GH_ROW_LIVE &&
			!gh_aggregates_add_row(aggregates, count, batch->vectors, i, states + group * count))
			i += hand_back(batch, i, is_ordered(aggregates, count)) - 1;
	}
}
