/*
 * distinct.c
 *		Aggregates that add each value once: count(DISTINCT x), sum(DISTINCT x) and the like.
 *
 * Two levels of groups.
 *
 *	1. The input is read into groups by the keys and x, by whatever engine, in parallel or not, in memory or through
 *	   files, as any groups: so each value of x is there once for each group of the keys.  These groups have the
 *	   states of all aggregates but those with DISTINCT.
 *	2. When all are final they are merged, some hundred at a time, into groups by the keys alone: the states of the
 *	   other aggregates as those of participants are, and to those with DISTINCT x is added.  Where an aggregate has
 *	   a FILTER, x is added if a row of the group passed it, which one of the other aggregates has counted.
 *
 * The groups of the second level then take the place of the first's in the node, and come out as any do.  They share
 * the memory with them while they are made; if they outgrow it they go to files, by partition (spill.c).
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "aggregate/exec.h"
#include "aggregate/groups.h"
#include "engine/pipeline/record.h"

/* Groups of the first level that are looked up in the second. */
typedef struct Batch
{
	uint32		nrows;
	GhSqlValue	values[GH_LOOKUP_ROWS]; /* of x */
	const GhAggregateState *states[GH_LOOKUP_ROWS];
	uint32		groups[GH_LOOKUP_ROWS]; /* numbers of the node's own, for their sides */
	bool		own;				/* they are the node's own */
	const char *records[GH_LOOKUP_ROWS];	/* else they are these */
} Batch;

typedef struct SecondLevel
{
	GhAggregateNode *node;
	GhGroups   *groups;
	GhGroupFiles *files;		/* groups that are to be merged; NULL: all are in memory */
	uint32		ngroups;		/* when their memory was asked for */
	Batch		batch;
} SecondLevel;

/* --------------------------------------------------------------- set-up */

/* What aggregate_plan.c wrote: as of GhDistinctPrivate. */
void
gh_distinct_init(GhAggregateNode *node, List *private)
{
	GhDistinct *distinct;
	List	   *functions;
	List	   *places;
	int		   *filters;
	ListCell   *lc;

	if (private == NIL)
		return;
	functions = list_nth(private, GH_DISTINCT_PRIVATE_FUNCTIONS);
	places = list_nth(private, GH_DISTINCT_PRIVATE_FILTERS);
	distinct = palloc0(sizeof(GhDistinct));
	distinct->expected = intVal(list_nth(private, GH_DISTINCT_PRIVATE_GROUPS));
	distinct->own = palloc0(sizeof(GhAggregateSpec) * list_length(functions));
	/* each of the others may have another one for its scale */
	distinct->specs = palloc0(sizeof(GhAggregateSpec) * (2 * node->nresults + list_length(functions)));
	filters = palloc(sizeof(int) * list_length(functions));
	distinct->filters = filters;
	foreach(lc, functions)
	{
		const GhAggregateFunction *function = gh_find_aggregate(lfirst_oid(lc));
		GhAggregateSpec *spec = &distinct->own[distinct->naggregates];

		if (function == NULL)
			elog(ERROR, "aggregate function %u is not known", lfirst_oid(lc));
		spec->aggregate.kind = function->kind;
		spec->final = function->final;
		filters[distinct->naggregates] = list_nth_int(places, distinct->naggregates);
		distinct->naggregates++;
	}
	node->distinct = distinct;
}

/* Where aggregate a of the first level is in the second: what comes out stands together there. */
static int
shown_aggregate(const GhAggregateNode *node, int a)
{
	return a < node->nresults ? a : a + node->distinct->naggregates;
}

/* The types are known: what the second level computes. */
static void
set_shown(GhAggregateNode *node)
{
	GhDistinct *distinct = node->distinct;
	const GhValueType *x = &node->key_types[node->nkeys - 1];

	for (int a = 0; a < node->naggregates; a++)
	{
		GhAggregateSpec *spec = &distinct->specs[shown_aggregate(node, a)];

		*spec = node->specs[a];
		if (spec->scales > 0)
			spec->scales = shown_aggregate(node, spec->scales);
	}
	for (int d = 0; d < distinct->naggregates; d++)
	{
		GhAggregateSpec *spec = &distinct->specs[node->nresults + d];

		*spec = distinct->own[d];
		spec->argument = *x;
		spec->aggregate.value_class = x->value_class;
	}
	node->shown = (GhShown) {node->nkeys - 1, node->nresults + distinct->naggregates,
							 node->naggregates + distinct->naggregates, distinct->specs};
}

/* ------------------------------------------------------------- adding groups */

/* Adds a value, which is not NULL, to what aggregate a has of a group. */
static void
add_value(SecondLevel *level, uint32 group, int a, const GhSqlValue *value)
{
	const GhShown *shown = &level->node->shown;
	const GhAggregateSpec *spec = &shown->specs[a];
	GhAggregateState *state = gh_groups_states(level->groups) + (Size) group * shown->naggregates + a;
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
	gh_aggregate_datum(spec, state, gh_groups_side(level->groups, group, a), gh_groups_context(level->groups), datum);
}

/* Adds a group of the first level to one of the second. */
static void
add_group(SecondLevel *level, uint32 row, uint32 group)
{
	const GhAggregateNode *node = level->node;
	const GhDistinct *distinct = node->distinct;
	const Batch *batch = &level->batch;
	const GhAggregateState *states = batch->states[row];

	for (int a = 0; a < node->naggregates; a++)
		gh_group_merge_state(level->groups, group, shown_aggregate(node, a), &states[a],
							 batch->own ? gh_groups_side_of(node->groups, batch->groups[row], a) : NULL);
	if (batch->values[row].kind == GH_SQL_NULL)
		return;
	for (int d = 0; d < distinct->naggregates; d++)
		if (distinct->filters[d] < 0 || states[distinct->filters[d]].count > 0)
			add_value(level, group, node->nresults + d, &batch->values[row]);
}

/* Bytes that the groups of the first level still take. */
static Size
first_level_memory(const GhAggregateNode *node)
{
	return gh_groups_bytes(node->groups) + gh_final_groups_memory(node->final);
}

/* The groups of the second level go to files, and others begin. */
static void
spill(SecondLevel *level)
{
	MemoryContext context = level->node->fragment.css.ss.ps.state->es_query_cxt;

	if (level->files == NULL)
		level->files = gh_group_files_create(context, level->node->fragment.memory_limit);
	gh_groups_put_records(level->groups, gh_group_files_put, level->files);
	gh_groups_reset(level->groups);
	level->ngroups = 0;
}

static void
keep_within_memory(SecondLevel *level)
{
	GhFragment *fragment = &level->node->fragment;
	Size		first;
	Size		second;

	if (level->node->shown.nkeys == 0 || gh_groups_count(level->groups) == level->ngroups)
		return;
	level->ngroups = gh_groups_count(level->groups);
	first = first_level_memory(level->node);
	second = gh_groups_bytes(level->groups);
	fragment->counts.memory = Max(fragment->counts.memory, first + second);
	if (second > GH_MEMORY_MIN && first + second > fragment->memory_limit)
		spill(level);
}

/* A row of the batch has these keys. */
static void
set_row(SecondLevel *level, uint32 row, const GhSqlValue *keys)
{
	int			nkeys = level->node->shown.nkeys;

	memcpy(level->groups->lookup->values + (Size) row * nkeys, keys, sizeof(GhSqlValue) * nkeys);
	level->batch.values[row] = keys[nkeys];
}

/* The batch goes to the second level. */
static void
add_batch(SecondLevel *level)
{
	GhLookup   *lookup = level->groups->lookup;
	ExprContext *econtext = level->node->fragment.css.ss.ps.ps_ExprContext;
	MemoryContext saved;

	CHECK_FOR_INTERRUPTS();
	ResetExprContext(econtext);
	saved = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	lookup->nrows = level->batch.nrows;
	gh_lookup_values(level->groups);
	gh_look_up(level->groups);
	for (uint32 row = 0; row < level->batch.nrows; row++)
		add_group(level, row, lookup->groups[row] - 1);
	MemoryContextSwitchTo(saved);
	keep_within_memory(level);
}

/* Groups that engines made; none of the node's own has the same keys. */
static void
add_final_groups(SecondLevel *level)
{
	GhAggregateNode *node = level->node;
	Batch	   *batch = &level->batch;

	batch->own = false;
	while ((batch->nrows = gh_final_groups_next(node->final, batch->records, GH_LOOKUP_ROWS)) > 0)
	{
		for (uint32 row = 0; row < batch->nrows; row++)
		{
			const GhRecordHead *head = (const GhRecordHead *) batch->records[row];

			batch->states[row] = gh_record_states(node->groups, batch->records[row], head->bytes);
			for (int k = 0; k < node->nkeys; k++)
				node->key_values[k] = gh_record_value(head, k, &node->key_types[k]);
			set_row(level, row, node->key_values);
		}
		add_batch(level);
	}
}

/* The node's own that are in memory. */
static void
add_own_groups(SecondLevel *level)
{
	GhAggregateNode *node = level->node;
	Batch	   *batch = &level->batch;
	uint32		count = gh_groups_count(node->groups);

	batch->own = true;
	for (uint32 first = 0; first < count; first += batch->nrows)
	{
		batch->nrows = Min(count - first, GH_LOOKUP_ROWS);
		for (uint32 row = 0; row < batch->nrows; row++)
		{
			uint32		group = batch->groups[row] = first + row;

			for (int k = 0; k < node->nkeys; k++)
				node->key_values[k] = gh_groups_key(node->groups, group, k);
			set_row(level, row, node->key_values);
			batch->states[row] = gh_groups_states(node->groups) + (Size) group * node->naggregates;
		}
		add_batch(level);
	}
}

/* The groups of the second level take the place of the first's. */
static void
replace_groups(SecondLevel *level)
{
	GhAggregateNode *node = level->node;

	gh_final_groups_clear(node->final);
	gh_aggregate_drop_stage(node);
	if (node->files != NULL)
		gh_group_files_close(node->files);
	gh_groups_destroy(node->groups);
	node->groups = level->groups;
	node->files = level->files;
}

/*
 * The groups that the input was read into, which are final, become those that come out.  False: there are
 * none.
 */
bool
gh_distinct_groups(GhAggregateNode *node)
{
	SecondLevel *level = palloc(sizeof(SecondLevel));
	instr_time	clock = {0};
	bool		any = true;

	gh_fragment_clock(&node->fragment, NULL, &clock);
	set_shown(node);
	level->node = node;
	level->groups = gh_groups_create(node->fragment.css.ss.ps.state->es_query_cxt, node->shown.nkeys,
									 node->key_types, node->shown.naggregates, node->shown.specs);
	level->files = NULL;
	level->ngroups = 0;
	add_final_groups(level);
	do
		add_own_groups(level);
	while (node->files != NULL && gh_group_files_next(node->files, node->groups));
	if (level->files != NULL)
	{
		spill(level);
		node->fragment.counts.disk += gh_group_files_bytes(level->files);
	}
	replace_groups(level);
	gh_output_rewind(node);
	if (node->files != NULL)
		any = gh_group_files_next(node->files, node->groups);
	pfree(level);
	gh_fragment_clock(&node->fragment, &node->fragment.counts.merge_time, &clock);
	return any;
}
