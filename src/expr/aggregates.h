/*
 * aggregates.h
 *		PostgreSQL's aggregates, and how their results are made of the engines' states.
 */
#ifndef GPUHASH_AGGREGATES_H
#define GPUHASH_AGGREGATES_H

#include "postgres.h"

#include "engine/program/aggregate.h"
#include "expr/values.h"

/* ---- aggregates.c: PostgreSQL's aggregates ---- */

/* How an aggregate's result is made of a group's state. */
typedef enum GhFinal
{
	GH_FINAL_COUNT,				/* int8 */
	GH_FINAL_SUM_INT8,			/* of int2 and int4: the lower 64 bits */
	GH_FINAL_SUM_NUMERIC,		/* of int8 and numeric */
	GH_FINAL_VALUE,				/* the state's value, in the aggregate's result type: float sums, min,
								 * max, bool_and, bool_or */
	GH_FINAL_TEXT,				/* min and max of texts: the side's (below) */
	GH_FINAL_AVG,				/* numeric, or float8 of floats; likewise the following */
	GH_FINAL_VAR_POP,
	GH_FINAL_VAR_SAMP,
	GH_FINAL_STDDEV_POP,
	GH_FINAL_STDDEV_SAMP
} GhFinal;

/* Whether the result's scale is the largest of the values', of numerics. */
static inline bool
gh_sums_numerics(uint8 final)
{
	return final == GH_FINAL_SUM_NUMERIC || final == GH_FINAL_AVG;
}

typedef struct GhAggregateFunction
{
	Oid			function;
	uint8		kind;			/* a GhAggregateKind */
	uint8		final;			/* a GhFinal */
} GhAggregateFunction;

extern const GhAggregateFunction *gh_find_aggregate(Oid function);

/* ---- sides.c: what 128 bits cannot hold ---- */

/*
 * What a state of 128 bits cannot hold of an aggregate's values, by PostgreSQL's own numeric arithmetic, or
 * its comparison of texts.  All datums lie in one context, each in a chunk of its own, and are 0 while there
 * is nothing.
 */
typedef struct GhSide
{
	int64		count;			/* of the values below; the state does not count them */
	Datum		sum;			/* numeric; MIN, MAX: the least or greatest of them, also of texts */
	Datum		squares;		/* numeric; MOMENTS: the sum of the squares */
} GhSide;

/* One aggregate of the node. */
typedef struct GhAggregateSpec
{
	GhAggregate aggregate;		/* as the engine adds rows */
	uint8		final;			/* a GhFinal */
	GhValueType argument;		/* where it has one; COUNT: not used */
	GhValueType result;			/* of GH_FINAL_VALUE */
	int			scales;			/* number of the aggregate that has the largest scale of the values, which
								 * may be less than the argument's; 0: there is none */
	Oid			collation;		/* of GH_FINAL_TEXT */
} GhAggregateSpec;

extern int	gh_compare_texts(const GhAggregateSpec *spec, const char *a, int a_bytes, const char *b, int b_bytes);
extern void gh_aggregate_datum(const GhAggregateSpec *spec, GhAggregateState *state,
							   GhSide **side, MemoryContext context, Datum datum);
extern void gh_aggregate_merge_sides(const GhAggregateSpec *spec, GhAggregateState *into,
									 GhSide **into_side, const GhAggregateState *from,
									 const GhSide *from_side, MemoryContext context);
extern GhSide gh_side_total(const GhAggregateSpec *spec, const GhAggregateState *state,
							const GhSide *side);

/* ---- results.c ---- */

extern Datum gh_aggregate_result(const GhAggregateSpec *spec, const GhAggregateState *state,
								 const GhSide *side, int scale, bool *null);

#endif							/* GPUHASH_AGGREGATES_H */
