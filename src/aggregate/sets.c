/*
 * sets.c
 *		Grouping sets: GROUPING SETS, ROLLUP and CUBE.
 *
 * The input is read into groups by the keys of all sets, by whatever engine, in parallel or not, in memory or
 * through files, as any groups.  When all are final they are merged, once for each set, into groups by the
 * keys of the set (regroup.c).  All sets' groups are together there: their keys are all keys, of which those
 * that are not of the set are NULL, and, behind them, the set's number, which tells such a NULL from a value
 * that is NULL.
 *
 * Where the groups by all keys are all on a device, it makes those of each set (narrow.c).
 *
 * A set without keys has a group even where there are no rows.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/memutils.h"

#include "aggregate/exec.h"
#include "aggregate/regroup.h"

/* --------------------------------------------------------------- set-up */

/* What aggregate_plan.c wrote: as of GhSetsPrivate.  The node's columns and keys are there. */
void
gh_sets_init(GhAggregateNode *node, List *private)
{
	GhSets	   *sets;
	List	   *keys;
	List	   *values;
	ListCell   *lc;
	ListCell   *key;

	if (private == NIL)
		return;
	keys = list_nth(private, GH_SETS_PRIVATE_SETS);
	values = list_nth(private, GH_SETS_PRIVATE_VALUES);
	sets = palloc0(sizeof(GhSets));
	sets->count = list_length(keys);
	sets->expected = intVal(list_nth(private, GH_SETS_PRIVATE_GROUPS));
	sets->has_key = palloc0(sizeof(bool) * sets->count * node->nkeys);
	foreach(lc, keys)
		foreach(key, (List *) lfirst(lc))
			sets->has_key[foreach_current_index(lc) * node->nkeys + lfirst_int(key)] = true;
	if (list_nth(private, GH_SETS_PRIVATE_PARTS) != NIL)
		node->is_part_key = palloc0(sizeof(bool) * node->nkeys);
	foreach(lc, (List *) list_nth(private, GH_SETS_PRIVATE_PARTS))
		node->is_part_key[lfirst_int(lc)] = true;
	sets->nfunctions = list_length(values);
	sets->function_values = values;
	node->sets = sets;
}

/* The types are known: what the second level has. */
void
gh_sets_show(GhAggregateNode *node)
{
	(void) gh_value_type_init(&node->key_types[node->nkeys], INT2OID, GH_CLASS_INT, 0);
	node->shown = (GhShown) {node->nkeys + 1, node->nresults, node->naggregates, node->specs};
}

/* ------------------------------------------------------------- the sets' groups */

/* The keys of a set's group: of those by all keys that are given; NULL: there are none of them. */
static void
set_keys_of(const GhAggregateNode *node, int set, const GhSqlValue *given, GhSqlValue *keys)
{
	const bool *has_key = node->sets->has_key + set * node->nkeys;

	for (int k = 0; k < node->nkeys; k++)
		keys[k] = has_key[k] ? given[k] : (GhSqlValue) {.kind = GH_SQL_NULL};
	keys[node->nkeys] = (GhSqlValue) {.low = set, .kind = GH_SQL_HELD};
}

/* The keys of a set; how many.  Room for all of the node's. */
int
gh_sets_keys(const GhAggregateNode *node, int set, int *keys)
{
	int			nkeys = 0;

	for (int k = 0; k < node->nkeys; k++)
		if (node->sets->has_key[set * node->nkeys + k])
			keys[nkeys++] = k;
	return nkeys;
}

static bool
is_without_keys(const GhAggregateNode *node, int set)
{
	return memchr(node->sets->has_key + set * node->nkeys, true, node->nkeys) == NULL;
}

static bool
has_all_keys(const GhAggregateNode *node, int set)
{
	return memchr(node->sets->has_key + set * node->nkeys, false, node->nkeys) == NULL;
}

/* GhRegroupMethods */
static void
begin(GhRegrouping *level)
{
	GhAggregateNode *node = level->node;

	for (int set = 0; set < node->sets->count; set++)
	{
		if (!is_without_keys(node, set))
			continue;
		set_keys_of(node, set, NULL, node->key_values);
		(void) gh_groups_find_one(level->groups, node->key_values);
	}
}

/* GhRegroupMethods: a pass for each set */
static void
set_keys(GhRegrouping *level, int pass, uint32 row, GhSqlValue *keys)
{
	set_keys_of(level->node, pass, level->batch.keys + (Size) row * level->node->nkeys, keys);
}

/* GhRegroupMethods */
static void
add(GhRegrouping *level, GhGroups *groups, uint32 row, uint32 group)
{
	for (int a = 0; a < level->node->naggregates; a++)
		gh_regroup_merge(level, row, a, groups, group, a);
}

/*
 * GhRegroupMethods: a group by all keys is in one part, and so are all that have the keys in common that tell
 * parts
 */
static bool
is_whole(const GhRegrouping *level, int pass)
{
	const GhAggregateNode *node = level->node;
	const bool *has_key = node->sets->has_key + pass * node->nkeys;

	for (int k = 0; k < node->nkeys; k++)
		if (!has_key[k] && (!level->part_is_whole || node->is_part_key[k]))
			return false;
	return true;
}

static const GhRegroupMethods methods = {
	.begin = begin,
	.is_whole = is_whole,
	.set_keys = set_keys,
	.add = add,
};

/*
 * The groups that the input was read into, which are final, become those of the grouping sets, which come
 * out.
 */
void
gh_sets_groups(GhAggregateNode *node)
{
	int			same = node->sets->count - 1;

	while (same >= 0 && !has_all_keys(node, same))
		same--;
	gh_sets_show(node);
	gh_regroup(node, node->sets->count, same, &methods);
}

/* ------------------------------------------------------------------ output */

/* Puts what GROUPING() is for groups of a set into the scan tuple: the columns before the aggregates. */
void
gh_sets_load_functions(const GhAggregateNode *node, int set, TupleTableSlot *scan)
{
	const GhSets *sets = node->sets;
	int			column = node->first - sets->nfunctions;
	ListCell   *lc;

	foreach(lc, sets->function_values)
	{
		scan->tts_values[column] = Int32GetDatum(list_nth_int(lfirst(lc), set));
		scan->tts_isnull[column++] = false;
	}
}
