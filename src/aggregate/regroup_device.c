/*
 * regroup_device.c
 *		Groups of groups (regroup.c), where those of the first level are all on a device: they are the source
 *		of a pipeline there, whose groups are those of aggregates with DISTINCT (distinct.c), or of a grouping
 *		set (sets.c).
 *
 * Of an aggregate of the first level that pipeline adds up how many values there are, and, as a second
 * aggregate, what they come to.  To one with DISTINCT it adds the key that is its argument, where that is not
 * NULL.
 */
#include "postgres.h"

#include "aggregate/level.h"
#include "compat.h"
#include "engine/pipeline/record_row.h"

/* The second level, while it is made. */
typedef struct SecondLevel
{
	const GhAggregateNode *node;
	GhLevelGroups *groups;		/* of it */
	GhLevel		level;
	GhOperand  *keys;			/* of the first level */
	GhOperand  *counts;			/* of its aggregates */
	int			naggregates;
	GhAggregate aggregates[GH_AGGREGATES_MAX];
	GhOperand	arguments[GH_AGGREGATES_MAX];
	GhOperand	filters[GH_AGGREGATES_MAX];
} SecondLevel;

/*
 * Sums of floats are added once, in one order; variances are not made of values that a pipeline tells of
 * groups.
 */
static bool
can_be_added_up(const GhAggregateNode *node)
{
	for (int a = 0; a < node->shown.naggregates; a++)
	{
		const GhAggregate *aggregate = &node->shown.specs[a].aggregate;

		if (aggregate->kind == GH_AGGREGATE_MOMENTS ||
			(gh_aggregate_is_sum(aggregate) && gh_class_is_float(aggregate->value_class)))
			return false;
	}
	return true;
}

/* One more aggregate; *where: what it comes to. */
static bool
add_aggregate(SecondLevel *second, uint8 kind, uint8 value_class, const GhOperand *argument,
			  const GhOperand *filter, GhGroupColumn *where)
{
	int			n = second->naggregates;

	if (n == GH_AGGREGATES_MAX)
		return gh_translation_fails(second->level.translation, "there are too many aggregates");
	second->naggregates++;
	second->aggregates[n] = (GhAggregate) {kind, value_class};
	second->arguments[n] = *argument;
	second->aggregates[n].filter = filter == NULL ? GH_AGGREGATE_NO_FILTER : 0;
	if (filter != NULL)
		second->filters[n] = *filter;
	*where = (GhGroupColumn) {GH_GROUP_VALUE, n};
	return true;
}

/* Aggregate a of the first level. */
static bool
add_up(SecondLevel *second, int a)
{
	const GhAggregate *aggregate = &second->node->specs[a].aggregate;
	int			to = second->node->distinct != NULL ? gh_distinct_shown(second->node, a) : a;
	uint8		value_class = gh_level_class(aggregate);
	GhOperand  *count = &second->counts[a];
	GhOperand	value;

	if (!gh_level_add(&second->level, (GhGroupColumn) {GH_GROUP_COUNT, a}, GH_CLASS_INT, count) ||
		!add_aggregate(second, GH_AGGREGATE_SUM, GH_CLASS_INT, count, NULL, &second->groups->counts[to]))
		return false;
	second->groups->values[to] = second->groups->counts[to];
	return aggregate->kind <= GH_AGGREGATE_COUNT ||
		(gh_level_add(&second->level, (GhGroupColumn) {GH_GROUP_VALUE, a}, value_class, &value) &&
		 add_aggregate(second, aggregate->kind, value_class, &value, NULL, &second->groups->values[to]));
}

/*
 * Aggregate d of those with DISTINCT: of the key that is its argument, where that is not NULL, and a row with
 * it passed the filter.  Groups by other arguments have NULL there.
 */
static bool
add_distinct(SecondLevel *second, int d)
{
	const GhAggregateNode *node = second->node;
	int			to = node->nresults + d;
	const GhAggregate *aggregate = &node->shown.specs[to].aggregate;
	int			key = node->nkeys - node->distinct->nkeys + node->distinct->keys[d];
	int			counted = node->distinct->filters[d];
	GhGroupColumn *value = &second->groups->values[to];
	GhOperand	passed[2];
	GhOperand	filter;

	if (counted >= 0)
	{
		passed[0] = second->counts[counted];
		if (!gh_add_constant(second->level.translation, GH_CLASS_INT, false, 0, 0, &passed[1]) ||
			!gh_add_instruction(second->level.translation, GH_OP_GT, GH_CLASS_INT, 0, 0, 2, passed, &filter))
			return false;
	}
	if (!add_aggregate(second, aggregate->kind, gh_vector_class(aggregate->value_class),
					   &second->keys[key], counted >= 0 ? &filter : NULL, value))
		return false;
	second->groups->counts[to] = (GhGroupColumn) {GH_GROUP_COUNT, value->number};
	if (aggregate->kind <= GH_AGGREGATE_COUNT)
		*value = second->groups->counts[to];
	return true;
}

static bool
add_all(SecondLevel *second)
{
	const GhAggregateNode *node = second->node;

	for (int k = 0; k < node->nkeys; k++)
		if (!gh_level_add(&second->level, (GhGroupColumn) {GH_GROUP_KEY, k},
						  gh_vector_class(node->key_types[k].value_class), &second->keys[k]))
			return false;
	for (int a = 0; a < node->naggregates; a++)
		if (!add_up(second, a))
			return false;
	for (int d = 0; node->distinct != NULL && d < node->distinct->naggregates; d++)
		if (!add_distinct(second, d))
			return false;
	return true;
}

/* The program is made: the sink is of its vectors. */
static void
make_sink(SecondLevel *second, GhGroupsSink *sink)
{
	const GhAggregateNode *node = second->node;
	const GhTranslation *translation = second->level.translation;
	int			nkeys = second->groups->nkeys;
	uint16	   *vectors = palloc(sizeof(uint16) * Max(nkeys, 1));
	GhValueType *types = palloc(sizeof(GhValueType) * Max(nkeys, 1));
	GhRecordKey *keys = palloc0(sizeof(GhRecordKey) * Max(nkeys, 1));

	for (int k = 0; k < nkeys; k++)
	{
		vectors[k] = gh_final_vector(translation, &second->keys[second->groups->keys[k]]);
		types[k] = node->key_types[second->groups->keys[k]];
	}
	gh_fragment_scan_keys(nkeys, types, vectors, keys);
	for (int a = 0; a < second->naggregates; a++)
	{
		GhAggregate *aggregate = &second->aggregates[a];

		aggregate->argument = gh_final_vector(translation, &second->arguments[a]);
		if (aggregate->filter != GH_AGGREGATE_NO_FILTER)
			aggregate->filter = gh_final_vector(translation, &second->filters[a]);
	}
	*sink = (GhGroupsSink) {nkeys, keys, second->naggregates, second->aggregates};
}

static bool
make_options(GhAggregateNode *node, GhLevelGroups *groups, GhPipelineOptions *options)
{
	SecondLevel *second = palloc0(sizeof(SecondLevel));
	TupleDesc	none = CreateTemplateTupleDesc(0);

	gh_finish_desc(none);
	second->node = node;
	second->groups = groups;
	second->keys = palloc(sizeof(GhOperand) * Max(node->nkeys, 1));
	second->counts = palloc(sizeof(GhOperand) * Max(node->naggregates, 1));
	groups->counts = palloc(sizeof(GhGroupColumn) * Max(node->shown.naggregates, 1));
	groups->values = palloc(sizeof(GhGroupColumn) * Max(node->shown.naggregates, 1));
	gh_level_begin(&second->level, gh_translate_begin(none, GH_GROUPS_VARNO));
	if (!add_all(second) || !gh_level_end(&second->level, options))
		return false;
	options->sink.kind = GH_SINK_GROUPS;
	make_sink(second, &options->sink.groups);
	options->sink.groups.expected = (uint64) Max(node->fragment.css.ss.ps.plan->plan_rows, 1);
	return true;
}

/*
 * The groups of the first level, which are the last level's of the supply and all that there is of them, are
 * grouped by some of their keys (groups->keys); *groups: where those groups have what.  False: nothing has
 * changed.
 */
bool
gh_regroup_on_device(GhAggregateNode *node, GhSupply *supply, GhLevelGroups *groups)
{
	GhPipelineOptions options;
	GhLevelCounts counts;

	return !supply->failed && can_be_added_up(node) && make_options(node, groups, &options) &&
		gh_supply_add_level(supply, &options, 0, &counts);
}
