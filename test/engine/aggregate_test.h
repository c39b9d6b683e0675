/*
 * aggregate_test.h
 *		What the tests of aggregates share: batches of any values, and a model of the states.
 */
#ifndef AGGREGATE_TEST_H
#define AGGREGATE_TEST_H

#include "engine/program/aggregate.h"
#include "conformance.h"

#include <float.h>
#include <math.h>

typedef __int128 Wide;

#define WIDE_MAX ((Wide) (~(unsigned __int128) 0 >> 1))

/* The vectors of every batch here: two of each class that has values, a text, and none. */
#define VECTORS 12

extern const uint8_t vector_classes[VECTORS];

/* A state's values, in their order, and running sums. */
typedef struct Known
{
	uint64_t	count;
	uint64_t	room;
	uint64_t   *low;
	uint64_t   *high;
	Wide		sum;
	Wide		squares;
	double		float_sum;
	double		deviation;
} Known;

/* ------------------------------------------------------- aggregate_model.c */

extern GhVectorBatch aggregate_batch_make(void);
extern void aggregate_batch_drop(GhVectorBatch *batch);
/* Rows of any values, wild ones or such as overflow nothing; the rest of the memory is anything. */
extern void aggregate_batch_fill(Context *c, GhVectorBatch *batch, uint32_t nrows, bool wild);
/* Adds a row to what is known of its group; false: it does not fit, and nothing changed. */
extern bool known_add_row(const GhAggregate *aggregates, uint32_t count,
						  const GhVectorBatch *batch, uint32_t row, Known *known);
extern void known_drop(Known *known, uint64_t count);
/* Is the result of the state what the values make it? */
extern bool known_result(const GhAggregate *aggregate, const GhAggregateState *state,
						 const Known *known);

static inline double
to_double(uint64_t bits)
{
	double		value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline uint64_t
to_bits(double value)
{
	uint64_t	bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline Wide
to_wide(uint64_t low, uint64_t high)
{
	return (Wide) ((unsigned __int128) high << 64 | low);
}

static inline bool
is_float(const GhAggregate *aggregate)
{
	return aggregate->value_class >= GH_CLASS_FLOAT4;
}

static inline bool
has_sum(const GhAggregate *aggregate)
{
	return aggregate->kind == GH_AGGREGATE_SUM || aggregate->kind == GH_AGGREGATE_MOMENTS;
}

static inline bool
same_double(uint64_t bits, double expected)
{
	return isnan(expected) ? isnan(to_double(bits)) : bits == to_bits(expected);
}

#endif							/* AGGREGATE_TEST_H */
