/*
 * distinct.c
 *		Aggregates that add each value once: count(DISTINCT x), sum(DISTINCT x) and the like.
 *
 * Two levels of groups.
 *
 *	1. The input is read into groups by the keys and x, by whatever engine, in parallel or not, in memory or through
 *	   files, as any groups: so each value of x is there once for each group of the keys.  These groups have the
 *	   states of all aggregates but those with DISTINCT.  Where there are several x, each row is in groups by each of
 *	   them, the others being NULL; those by the first one have the states, and all have counts for their own FILTERs.
 *	   An engine's sink adds a row to all of them at once (GhGroupsSink.nsets).
 *	2. When all are final they are merged, some hundred at a time, into groups by the keys alone: the states of the
 *	   other aggregates as those of participants are, and to those with DISTINCT x is added.  Where an aggregate has
 *	   a FILTER, x is added if a row of the group passed it, which one of the other aggregates has counted.
 *
 * Where the groups of the first level are all on a device, it does the second, too (regroup_device.c); else
 * regroup.c has what both levels are to one another.
 */
#include "postgres.h"

#include "aggregate/exec.h"
#include "aggregate/regroup.h"

/* --------------------------------------------------------------- set-up */

static const int *
numbers_of(List *list)
{
	int		   *numbers = palloc(sizeof(int) * Max(list_length(list), 1));
	ListCell   *lc;

	foreach(lc, list)
		numbers[foreach_current_index(lc)] = lfirst_int(lc);
	return numbers;
}

/* What aggregate_plan.c wrote: as of GhDistinctPrivate. */
void
gh_distinct_init(GhAggregateNode *node, List *private)
{
	GhDistinct *distinct;
	List	   *functions;
	List	   *keys;
	ListCell   *lc;

	if (private == NIL)
		return;
	functions = list_nth(private, GH_DISTINCT_PRIVATE_FUNCTIONS);
	keys = list_nth(private, GH_DISTINCT_PRIVATE_KEYS);
	distinct = palloc0(sizeof(GhDistinct));
	distinct->expected = intVal(list_nth(private, GH_DISTINCT_PRIVATE_GROUPS));
	distinct->own = palloc0(sizeof(GhAggregateSpec) * list_length(functions));
	/* each of the others may have another one for its scale */
	distinct->specs = palloc0(sizeof(GhAggregateSpec) * (2 * node->nresults + list_length(functions)));
	distinct->filters = numbers_of(list_nth(private, GH_DISTINCT_PRIVATE_FILTERS));
	distinct->keys = numbers_of(keys);
	distinct->sets = numbers_of(list_nth(private, GH_DISTINCT_PRIVATE_SETS));
	foreach(lc, keys)
		distinct->nkeys = Max(distinct->nkeys, lfirst_int(lc) + 1);
	foreach(lc, functions)
	{
		const GhAggregateFunction *function = gh_find_aggregate(lfirst_oid(lc));
		GhAggregateSpec *spec = &distinct->own[distinct->naggregates];

		if (function == NULL)
			elog(ERROR, "aggregate function %u is not known", lfirst_oid(lc));
		spec->aggregate.kind = function->kind;
		spec->final = function->final;
		distinct->naggregates++;
	}
	node->distinct = distinct;
	if (node->nkeys > distinct->nkeys)
		node->is_part_key = palloc0(sizeof(bool) * node->nkeys);
	for (int k = 0; k < node->nkeys - distinct->nkeys; k++)
		node->is_part_key[k] = true;
}

/* Where aggregate a of the first level is in the second: what comes out stands together there. */
int
gh_distinct_shown(const GhAggregateNode *node, int a)
{
	return a < node->nresults ? a : a + node->distinct->naggregates;
}

/* The types are known: what the second level computes. */
void
gh_distinct_show(GhAggregateNode *node)
{
	GhDistinct *distinct = node->distinct;
	int			nkeys = node->nkeys - distinct->nkeys;

	for (int a = 0; a < node->naggregates; a++)
	{
		GhAggregateSpec *spec = &distinct->specs[gh_distinct_shown(node, a)];

		*spec = node->specs[a];
		if (spec->scales > 0)
			spec->scales = gh_distinct_shown(node, spec->scales);
	}
	for (int d = 0; d < distinct->naggregates; d++)
	{
		GhAggregateSpec *spec = &distinct->specs[node->nresults + d];
		const GhValueType *x = &node->key_types[nkeys + distinct->keys[d]];

		*spec = distinct->own[d];
		spec->argument = *x;
		spec->aggregate.value_class = x->value_class;
	}
	node->shown = (GhShown) {nkeys, node->nresults + distinct->naggregates,
							 node->naggregates + distinct->naggregates, distinct->specs};
}

/* ------------------------------------------------------------- adding groups */

/* Adds a value, which is not NULL, to what aggregate a has of a group. */
static void
add_value(const GhShown *shown, GhGroups *groups, uint32 group, int a, const GhSqlValue *value)
{
	const GhAggregateSpec *spec = &shown->specs[a];
	GhAggregateState *state = gh_groups_states(groups) + (Size) group * shown->naggregates + a;
	Datum		datum;
	bool		null;

	if (spec->aggregate.kind == GH_AGGREGATE_COUNT)
	{
		state->count++;
		return;
	}
	if (value->kind == GH_SQL_HELD && gh_aggregate_add(&spec->aggregate, state, value->low, value->high))
		return;
	datum = gh_datum_of_value(&spec->argument, *value, &null);
	gh_aggregate_datum(spec, state, gh_groups_side(groups, group, a), gh_groups_context(groups), datum);
}

/* GhRegroupMethods: the keys but the last ones, which are arguments */
static void
set_keys(GhRegrouping *level, int pass, uint32 row, GhSqlValue *keys)
{
	const GhAggregateNode *node = level->node;

	memcpy(keys, level->batch.keys + (Size) row * node->nkeys, sizeof(GhSqlValue) * node->shown.nkeys);
}

/* GhRegroupMethods */
static void
add_group(GhRegrouping *level, GhGroups *groups, uint32 row, uint32 group)
{
	const GhAggregateNode *node = level->node;
	const GhDistinct *distinct = node->distinct;
	const GhAggregateState *states = level->batch.states[row];
	const GhSqlValue *values = &level->batch.keys[(Size) row * node->nkeys + node->shown.nkeys];

	for (int a = 0; a < node->naggregates; a++)
		gh_regroup_merge(level, row, a, groups, group, gh_distinct_shown(node, a));
	for (int d = 0; d < distinct->naggregates; d++)
		if (values[distinct->keys[d]].kind != GH_SQL_NULL &&
			(distinct->filters[d] < 0 || states[distinct->filters[d]].count > 0))
			add_value(&node->shown, groups, group, node->nresults + d, &values[distinct->keys[d]]);
}

/* GhRegroupMethods: parts are by the keys but arguments */
static bool
is_whole(const GhRegrouping *level, int pass)
{
	(void) pass;
	return level->part_is_whole;
}

static const GhRegroupMethods methods = {
	.is_whole = is_whole,
	.set_keys = set_keys,
	.add = add_group,
};

/* The groups that the input was read into, which are final, become those that come out. */
void
gh_distinct_groups(GhAggregateNode *node)
{
	gh_distinct_show(node);
	gh_regroup(node, 1, -1, &methods);
}
