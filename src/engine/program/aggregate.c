/*
 * aggregate.c
 *		Accepts or refuses a list of aggregates, before anybody uses it.
 */
#include "engine/program/aggregate.h"

#define CLASS(name) (1 << GH_CLASS_##name)
#define CLASSES_ORDERED (CLASS(INT) | CLASS(INT128) | CLASS(FLOAT4) | CLASS(FLOAT8))

/* The classes that an aggregate has an argument of, as bits; 0: there is no such kind. */
static int
classes_of_kind(uint8_t kind)
{
	switch (kind)
	{
		case GH_AGGREGATE_COUNT:
			return CLASSES_ORDERED | CLASS(BOOL) | CLASS(TEXT);
		case GH_AGGREGATE_SUM:
		case GH_AGGREGATE_MIN:
		case GH_AGGREGATE_MAX:
		case GH_AGGREGATE_MOMENTS:
			return CLASSES_ORDERED;
		case GH_AGGREGATE_BOOL_AND:
		case GH_AGGREGATE_BOOL_OR:
			return CLASS(BOOL);
	}
	return 0;
}

/* A FLOAT4 may stand for a FLOAT8, but not the other way round. */
static bool
class_stands_for(uint8_t held, uint8_t wanted)
{
	return held == wanted || (held == GH_CLASS_FLOAT4 && wanted == GH_CLASS_FLOAT8);
}

static GhStatus
check_argument(const GhAggregate *aggregate, uint32_t a, const uint8_t *classes,
			   uint32_t nvectors, GhError *error)
{
	int			allowed = classes_of_kind(aggregate->kind);

	if (aggregate->kind == GH_AGGREGATE_COUNT_ROWS)
	{
		if (aggregate->value_class != 0 || aggregate->argument != 0)
			return gh_error_set(error, GH_INVALID, "aggregate %u counts rows and has an argument",
								a);
		return GH_OK;
	}
	if (allowed == 0)
		return gh_error_set(error, GH_INVALID, "aggregate %u is of kind %d, which there is not", a,
							aggregate->kind);
	if (aggregate->value_class > GH_CLASS_BPCHAR || (allowed >> aggregate->value_class & 1) == 0)
		return gh_error_set(error, GH_INVALID, "aggregate %u is of kind %d and cannot be of class "
							"%d", a, aggregate->kind, aggregate->value_class);
	if (aggregate->argument >= nvectors)
		return gh_error_set(error, GH_INVALID, "aggregate %u has vector %d of %u as argument", a,
							aggregate->argument, nvectors);
	if (!class_stands_for(classes[aggregate->argument], aggregate->value_class))
		return gh_error_set(error, GH_INVALID, "aggregate %u is of class %d, and its argument, "
							"vector %d, of class %d", a, aggregate->value_class,
							aggregate->argument, classes[aggregate->argument]);
	return GH_OK;
}

GhStatus
gh_aggregates_check(const GhAggregate *aggregates, uint32_t count, const uint8_t *classes,
					uint32_t nvectors, GhError *error)
{
	GhStatus	status;

	if (count > GH_AGGREGATES_MAX)
		return gh_error_set(error, GH_INVALID, "%u aggregates are more than %d", count,
							GH_AGGREGATES_MAX);
	for (uint32_t a = 0; a < count; a++)
	{
		const GhAggregate *aggregate = &aggregates[a];

		status = check_argument(aggregate, a, classes, nvectors, error);
		if (status != GH_OK)
			return status;
		if (aggregate->unused != 0)
			return gh_error_set(error, GH_INVALID, "aggregate %u has bytes of no use that are "
								"not 0", a);
		if (aggregate->filter != GH_AGGREGATE_NO_FILTER &&
			(aggregate->filter >= nvectors || classes[aggregate->filter] != GH_CLASS_BOOL))
			return gh_error_set(error, GH_INVALID, "aggregate %u has vector %d as filter, which "
								"is no truth value", a, aggregate->filter);
	}
	return GH_OK;
}
