/*
 * regroup.c
 *		Groups of groups: a second level of groups, made of those that the input was read into.
 *
 * The groups of the first level are final: they come from engines, from the node's own memory, and from
 * files.  Each is shown to what makes the second level of them (GhRegroupMethods: aggregates with DISTINCT,
 * distinct.c, and grouping sets, sets.c), some hundred at a time, and once or more often: that tells the keys
 * of its group there, and adds it.
 *
 * Where all of the first level are in memory those of the second take their place in the node, and come out
 * as any do. Where they are in files they come part by part (spill.c), and what is made of one part alone
 * (`whole`) comes out before the next one is read; what others may add to is kept until all have been read.
 * Groups of the second level share the memory with those of the first; if they outgrow it they go to files,
 * by partition.
 *
 * The grouping set of all keys has the groups of the first level: these come out as they are (`same`),
 * without the key that tells the set, which the output knows.
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
first_level_memory(const GhRegrouping *level)
{
	return gh_groups_bytes(level->first) + gh_final_groups_memory(level->node->final);
}

/* Groups of the second level go to files, and others begin. */
static void
spill(GhRegrouping *level, GhGroups *groups)
{
	MemoryContext context = level->node->fragment.css.ss.ps.state->es_query_cxt;

	if (level->files == NULL)
		level->files = gh_group_files_create(context, level->node->fragment.memory_limit);
	level->outgrown |= groups == level->whole;
	gh_groups_put_records(groups, gh_group_files_put, level->files);
	gh_groups_reset(groups);
}

static void
keep_within_memory(GhRegrouping *level)
{
	GhFragment *fragment = &level->node->fragment;
	Size		kept = gh_groups_bytes(level->groups);
	Size		whole = level->whole != NULL ? gh_groups_bytes(level->whole) : 0;
	Size		all = first_level_memory(level) + kept + whole;

	if (level->node->shown.nkeys == 0)
		return;
	fragment->counts.memory = Max(fragment->counts.memory, all);
	if (Max(kept, whole) > GH_MEMORY_MIN && all > fragment->memory_limit)
		spill(level, whole > kept ? level->whole : level->groups);
}

/* The batch goes to the second level, for the pass-th time. */
static void
add_pass(GhRegrouping *level, int pass)
{
	GhGroups   *groups = level->whole != NULL && level->methods->is_whole(level, pass) ? level->whole : level->groups;
	GhLookup   *lookup = groups->lookup;
	ExprContext *econtext = level->node->fragment.css.ss.ps.ps_ExprContext;
	MemoryContext saved;

	CHECK_FOR_INTERRUPTS();
	ResetExprContext(econtext);
	saved = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	lookup->nrows = level->batch.nrows;
	for (uint32 row = 0; row < level->batch.nrows; row++)
		level->methods->set_keys(level, pass, row, lookup->values + (Size) row * level->node->shown.nkeys);
	gh_lookup_values(groups);
	gh_look_up(groups);
	for (uint32 row = 0; row < level->batch.nrows; row++)
		level->methods->add(level, groups, row, lookup->groups[row] - 1);
	MemoryContextSwitchTo(saved);
	keep_within_memory(level);
}

static void
add_batch(GhRegrouping *level)
{
	for (int pass = 0; pass < level->npasses; pass++)
		if (pass != level->same)
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

			batch->states[row] = gh_record_states(level->first, batch->records[row], head->bytes);
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
	uint32		count = gh_groups_count(level->first);

	batch->own = true;
	for (uint32 first = 0; first < count; first += batch->nrows)
	{
		batch->nrows = Min(count - first, GH_LOOKUP_ROWS);
		for (uint32 row = 0; row < batch->nrows; row++)
		{
			uint32		group = batch->groups[row] = first + row;

			for (int k = 0; k < node->nkeys; k++)
				batch->keys[(Size) row * node->nkeys + k] = gh_groups_key(level->first, group, k);
			batch->states[row] = gh_groups_states(level->first) + (Size) group * node->naggregates;
		}
		add_batch(level);
	}
}

/* Merges aggregate `from` of a group of the batch into aggregate `to` of one of the second level. */
void
gh_regroup_merge(GhRegrouping *level, uint32 row, int from, GhGroups *groups, uint32 group, int to)
{
	const GhRegroupBatch *batch = &level->batch;

	if (batch->own)
		gh_group_merge_state(groups, group, to, &batch->states[row][from],
							 gh_groups_side_of(level->first, batch->groups[row], from));
	else
		gh_group_merge_record(groups, group, to, batch->records[row], &batch->states[row][from]);
}

/* ------------------------------------------------------------- both levels */

static GhGroups *
create_groups(const GhAggregateNode *node)
{
	return gh_groups_create(node->fragment.css.ss.ps.state->es_query_cxt, node->shown.nkeys, node->key_types,
							node->shown.naggregates, node->shown.specs);
}

/* Groups of the first level come out, of which there are some, or none. */
static bool
show_first(GhRegrouping *level)
{
	if (level->same < 0 || gh_groups_count(level->first) == 0)
		return false;
	level->node->groups = level->first;
	return true;
}

/* What is kept of the second level comes out. */
static void
show_kept(GhRegrouping *level)
{
	level->node->groups = level->groups;
	level->node->files = level->files;
	level->ended = true;
}

/* All of the first level has been looked at. */
static void
end_first_level(GhRegrouping *level)
{
	if (level->files == NULL)
		return;
	spill(level, level->groups);
	level->node->fragment.counts.disk += gh_group_files_bytes(level->files);
}

/* A part of the first level becomes groups of the second; false: there is none. */
static bool
regroup_part(GhRegrouping *level)
{
	if (!level->loaded && !gh_group_files_next(level->first_files, level->first))
		return false;
	level->loaded = false;
	level->part_is_whole = gh_group_files_are_whole(level->first_files);
	level->outgrown = false;
	if (level->whole != NULL)
		gh_groups_reset(level->whole);
	add_own_groups(level);
	if (level->outgrown)
		spill(level, level->whole);
	return true;
}

/* All of the first level, which is in memory. */
static void
regroup_all(GhRegrouping *level)
{
	GhAggregateNode *node = level->node;

	add_final_groups(level);
	add_own_groups(level);
	end_first_level(level);
	if (level->same >= 0)
		return;
	gh_final_groups_clear(node->final);
	gh_aggregate_drop_stage(node);
	gh_groups_destroy(level->first);
	level->first = NULL;
}

/*
 * The groups that the input was read into, which are final, become those that come out: node->shown tells
 * what these are. Each is shown in `npasses` passes but in `same`, whose groups these are.  What comes out
 * first is in the node; there is more of it by gh_regroup_next().
 */
void
gh_regroup(GhAggregateNode *node, int npasses, int same, const GhRegroupMethods *methods)
{
	GhRegrouping *level = MemoryContextAllocZero(node->fragment.css.ss.ps.state->es_query_cxt, sizeof(GhRegrouping));
	instr_time	clock = {0};

	gh_fragment_clock(&node->fragment, NULL, &clock);
	level->node = node;
	level->methods = methods;
	level->npasses = npasses;
	level->same = same;
	level->batch.keys = MemoryContextAlloc(GetMemoryChunkContext(level), sizeof(GhSqlValue) * GH_LOOKUP_ROWS * node->nkeys);
	level->first = node->groups;
	level->first_files = node->files;
	level->groups = create_groups(node);
	node->files = NULL;
	node->regrouping = level;
	if (methods->begin != NULL)
		methods->begin(level);
	if (level->first_files == NULL)
		regroup_all(level);
	else
	{
		/* what engines made is in files, too */
		level->loaded = true;
		if (node->shown.nkeys > 0)
			level->whole = node->groups = create_groups(node);
		else
		{
			/* one group is made of all parts */
			while (regroup_part(level))
				continue;
			show_kept(level);
		}
	}
	gh_output_rewind(node);
	gh_fragment_clock(&node->fragment, &node->fragment.counts.merge_time, &clock);
}

/*
 * Puts other groups in place of those in the node that have come out; false: there are none, but what files
 * have.
 */
bool
gh_regroup_next(GhAggregateNode *node)
{
	GhRegrouping *level = node->regrouping;
	instr_time	clock = {0};
	bool		any;

	if (level->ended)
		return false;
	if (node->groups == level->whole && !level->loaded && show_first(level))
		return true;
	gh_fragment_clock(&node->fragment, NULL, &clock);
	node->groups = level->whole;
	for (any = false; !any && level->first_files != NULL && regroup_part(level);)
		any = gh_groups_count(level->whole) > 0 || show_first(level);
	if (!any)
	{
		if (level->first_files != NULL)
			end_first_level(level);
		show_kept(level);
		any = gh_groups_count(node->groups) > 0;
	}
	gh_fragment_clock(&node->fragment, &node->fragment.counts.merge_time, &clock);
	return any;
}

/* Whether all groups are in memory, so that they may come out once more. */
bool
gh_regroup_may_rewind(const GhAggregateNode *node)
{
	return node->regrouping->first_files == NULL && node->regrouping->files == NULL;
}

/* Before groups come out, for the first time or once more: which are in the node. */
void
gh_regroup_rewind(GhAggregateNode *node)
{
	GhRegrouping *level = node->regrouping;

	if (level->first_files != NULL)
		return;
	level->ended = false;
	if (level->same >= 0)
		node->groups = level->first;
	else
		show_kept(level);
}

/*
 * Whether those groups come out that the input was read into: in the node, and before these what engines
 * made.
 */
bool
gh_regroup_is_first(const GhAggregateNode *node)
{
	return node->regrouping == NULL || node->groups == node->regrouping->first;
}

/* The set of these, by all keys; -1: those in the node have their set as a key, or there are none. */
int
gh_regroup_set(const GhAggregateNode *node)
{
	return node->regrouping != NULL && gh_regroup_is_first(node) ? node->regrouping->same : -1;
}

/* Frees all groups of both levels, those in the node among them. */
void
gh_regroup_close(GhAggregateNode *node)
{
	GhRegrouping *level = node->regrouping;

	if (level->first_files != NULL)
		gh_group_files_close(level->first_files);
	if (level->files != NULL)
		gh_group_files_close(level->files);
	if (level->first != NULL)
		gh_groups_destroy(level->first);
	if (level->whole != NULL)
		gh_groups_destroy(level->whole);
	gh_groups_destroy(level->groups);
	pfree(level->batch.keys);
	pfree(level);
	node->groups = NULL;
	node->files = NULL;
	node->regrouping = NULL;
}
