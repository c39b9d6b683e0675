/*
 * regroup.c
 *		Groups of groups: a second level of groups, made of those that the input was read into.
 *
 * The groups of the first level are final: they come from engines, from the node's own memory, and from files.  Each is
 * shown to what makes the second level of them (GhRegroupMethods: aggregates with DISTINCT, distinct.c, and grouping sets,
 * sets.c), some hundred at a time, and once or more often: that tells the keys of its group there, and adds it.
 *
 * The groups of the second level then take the place of the first's in the node, and come out as any do.  They share
 * the memory with them while they are made; if they outgrow it they go to files, by partition (spill.c).
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "aggregate/exec.h"
#include "aggregate/regroup.h"
#include "engine/pipeline/record.h"

/* Bytes that the groups of the first level still take. */
static Size
first_level_memory(const GhAggregateNode *node)
{
	return gh_groups_bytes(node->groups) + gh_final_groups_memory(node->final);
}

/* The groups of the second level go to files, and others begin. */
static void
spill(GhRegrouping *level)
{
	MemoryContext context = level->node->fragment.css.ss.ps.state->es_query_cxt;

	if (level->files == NULL)
		level->files = gh_group_files_create(context, level->node->fragment.memory_limit);
	gh_groups_put_records(level->groups, gh_group_files_put, level->files);
	gh_groups_reset(level->groups);
	level->ngroups = 0;
}

static void
keep_within_memory(GhRegrouping *level)
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

/* The batch goes to the second level, for the pass-th time. */
static void
add_pass(GhRegrouping *level, int pass)
{
	GhLookup   *lookup = level->groups->lookup;
	ExprContext *econtext = level->node->fragment.css.ss.ps.ps_ExprContext;
	MemoryContext saved;

	CHECK_FOR_INTERRUPTS();
	ResetExprContext(econtext);
	saved = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	lookup->nrows = level->batch.nrows;
	for (uint32 row = 0; row < level->batch.nrows; row++)
		level->methods->set_keys(level, pass, row, lookup->values + (Size) row * level->node->shown.nkeys);
	gh_lookup_values(level->groups);
	gh_look_up(level->groups);
	for (uint32 row = 0; row < level->batch.nrows; row++)
		level->methods->add(level, row, lookup->groups[row] - 1);
	MemoryContextSwitchTo(saved);
	keep_within_memory(level);
}

static void
add_batch(GhRegrouping *level)
{
	for (int pass = 0; pass < level->npasses; pass++)
		add_pass(level, pass);
}

/* Groups that engines made; none of the node's own has the same keys. */
static void
add_final_groups(GhRegrouping *level)
{
	GhAggregateNode *node = level->node;
	GhRegroupBatch *batch = &level->batch;

	batch->own = false;
	while ((batch->nrows = gh_final_groups_next(node->final, batch->records, GH_LOOKUP_ROWS)) > 0)
	{
		for (uint32 row = 0; row < batch->nrows; row++)
		{
			const GhRecordHead *head = (const GhRecordHead *) batch->records[row];

			batch->states[row] = gh_record_states(node->groups, batch->records[row], head->bytes);
			for (int k = 0; k < node->nkeys; k++)
				batch->keys[(Size) row * node->nkeys + k] = gh_record_value(head, k, &node->key_types[k]);
		}
		add_batch(level);
	}
}

/* The node's own that are in memory. */
static void
add_own_groups(GhRegrouping *level)
{
	GhAggregateNode *node = level->node;
	GhRegroupBatch *batch = &level->batch;
	uint32		count = gh_groups_count(node->groups);

	batch->own = true;
	for (uint32 first = 0; first < count; first += batch->nrows)
	{
		batch->nrows = Min(count - first, GH_LOOKUP_ROWS);
		for (uint32 row = 0; row < batch->nrows; row++)
		{
			uint32		group = batch->groups[row] = first + row;

			for (int k = 0; k < node->nkeys; k++)
				batch->keys[(Size) row * node->nkeys + k] = gh_groups_key(node->groups, group, k);
			batch->states[row] = gh_groups_states(node->groups) + (Size) group * node->naggregates;
		}
		add_batch(level);
	}
}

/* Merges aggregate `from` of a group of the batch into aggregate `to` of one of the second level. */
void
gh_regroup_merge(GhRegrouping *level, uint32 row, int from, uint32 group, int to)
{
	const GhRegroupBatch *batch = &level->batch;

	if (batch->own)
		gh_group_merge_state(level->groups, group, to, &batch->states[row][from],
							 gh_groups_side_of(level->node->groups, batch->groups[row], from));
	else
		gh_group_merge_record(level->groups, group, to, batch->records[row], &batch->states[row][from]);
}

/* The groups of the second level take the place of the first's. */
static void
replace_groups(GhRegrouping *level)
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
 * The groups that the input was read into, which are final, become those that come out: node->shown tells what these are.
 * Each is shown `npasses` times.
 */
void
gh_regroup(GhAggregateNode *node, int npasses, const GhRegroupMethods *methods)
{
	GhRegrouping *level = palloc0(sizeof(GhRegrouping));
	instr_time	clock = {0};

	gh_fragment_clock(&node->fragment, NULL, &clock);
	level->node = node;
	level->methods = methods;
	level->npasses = npasses;
	level->batch.keys = palloc(sizeof(GhSqlValue) * GH_LOOKUP_ROWS * node->nkeys);
	level->groups = gh_groups_create(node->fragment.css.ss.ps.state->es_query_cxt, node->shown.nkeys,
									 node->key_types, node->shown.naggregates, node->shown.specs);
	if (methods->begin != NULL)
		methods->begin(level);
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
	pfree(level->batch.keys);
	pfree(level);
	gh_fragment_clock(&node->fragment, &node->fragment.counts.merge_time, &clock);
}
