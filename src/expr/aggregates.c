/*
 * aggregates.c
 *		What PostgreSQL's aggregates are to an engine: what it gathers of the values, and what
 *		is made of that in the end.
 *
 * An aggregate that is not here is PostgreSQL's alone.  sum(float4) is not: its result depends on
 * the order of the rows in its first digits (engine/aggregate.h).
 */
#include "postgres.h"

#include "utils/fmgroids.h"

#include "expr/aggregates.h"

#define AGGREGATE(function, kind, final) \
	{function, GH_AGGREGATE_##kind, GH_FINAL_##final}

#define EXTREMES(type) \
	AGGREGATE(F_MIN_##type, MIN, VALUE), \
	AGGREGATE(F_MAX_##type, MAX, VALUE)

#define TEXT_EXTREMES(type) \
	AGGREGATE(F_MIN_##type, MIN, TEXT), \
	AGGREGATE(F_MAX_##type, MAX, TEXT)

#define MOMENTS(type) \
	AGGREGATE(F_VAR_POP_##type, MOMENTS, VAR_POP), \
	AGGREGATE(F_VAR_SAMP_##type, MOMENTS, VAR_SAMP), \
	AGGREGATE(F_VARIANCE_##type, MOMENTS, VAR_SAMP), \
	AGGREGATE(F_STDDEV_POP_##type, MOMENTS, STDDEV_POP), \
	AGGREGATE(F_STDDEV_SAMP_##type, MOMENTS, STDDEV_SAMP), \
	AGGREGATE(F_STDDEV_##type, MOMENTS, STDDEV_SAMP)

/* The sums are exact, so that an average needs no more than one. */
#define EXACT(type, sum) \
	AGGREGATE(F_SUM_##type, SUM, sum), \
	AGGREGATE(F_AVG_##type, SUM, AVG), \
	EXTREMES(type), \
	MOMENTS(type)

/*
 * An average is that of the moments, as in PostgreSQL: they raise an error where squares
 * overflow, and start with a sum of +0, so that the average of -0 is +0.
 */
#define FLOAT(type) \
	AGGREGATE(F_AVG_##type, MOMENTS, AVG), \
	EXTREMES(type), \
	MOMENTS(type)

static const GhAggregateFunction functions[] = {
	AGGREGATE(F_COUNT_, COUNT_ROWS, COUNT),
	AGGREGATE(F_COUNT_ANY, COUNT, COUNT),
	EXACT(INT2, SUM_INT8),
	EXACT(INT4, SUM_INT8),
	EXACT(INT8, SUM_NUMERIC),
	EXACT(NUMERIC, SUM_NUMERIC),
	FLOAT(FLOAT4),
	FLOAT(FLOAT8),
	AGGREGATE(F_SUM_FLOAT8, SUM, VALUE),
	EXTREMES(OID),
	EXTREMES(DATE),
	EXTREMES(TIME),
	EXTREMES(TIMESTAMP),
	EXTREMES(TIMESTAMPTZ),
	TEXT_EXTREMES(TEXT),
	TEXT_EXTREMES(BPCHAR),
	AGGREGATE(F_BOOL_AND, BOOL_AND, VALUE),
	AGGREGATE(F_EVERY, BOOL_AND, VALUE),
	AGGREGATE(F_BOOL_OR, BOOL_OR, VALUE)
};

const GhAggregateFunction *
gh_find_aggregate(Oid function)
{
	for (Size i = 0; i < lengthof(functions); i++)
		if (functions[i].function == function)
			return &functions[i];
	return NULL;
}
