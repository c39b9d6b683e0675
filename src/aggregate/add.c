/*
 * add.c
 *		What becomes of the rows of a GpuHashAggregate that PostgreSQL's expressions do, and of groups where memory is
 *		short or the input is read anew.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "aggregate/exec.h"
#include "fragment/joined.h"

/* ----------------------------------------- one row, by PostgreSQL's expressions */

bool
gh_filter_is_true(ExprState *filter, ExprContext *econtext)
{
	bool		null;
	Datum		value;

	if (filter == NULL)
		return true;
	value = ExecEvalExpr(filter, econtext, &null);
	return !null && DatumGetBool(value);
}

/* The scale of a numeric; false: it is none, of NaN nobody asks. */
bool
gh_aggregate_scale(Datum value, int *scale)
{
	Numeric		numeric = DatumGetNumeric(value);

	if (numeric_is_nan(numeric) || numeric_is_inf(numeric))
		return false;
	*scale = DatumGetInt32(DirectFunctionCall1(numeric_scale, NumericGetDatum(numeric)));
	return true;
}

/*
 * Adds a value, that is not NULL, to what an aggregate has of a group; rows and values that are counted may
 * be anything.
 */
void
gh_aggregate_add_datum(GhAggregateNode *node, uint32 group, int a, Datum value)
{
	const GhAggregateSpec *spec = &node->specs[a];
	GhAggregateState *state = gh_groups_states(node->groups) + (Size) group * node->naggregates + a;

	if (spec->aggregate.kind <= GH_AGGREGATE_COUNT)
		state->count++;
	else
		gh_aggregate_datum(spec, state, gh_groups_side(node->groups, group, a),
						   gh_groups_context(node->groups), value);
}

/* The same, and its scale to the aggregate that keeps the largest. */
void
gh_aggregate_add_value(GhAggregateNode *node, uint32 group, int a, Datum value)
{
	int			scales = node->specs[a].scales;
	int			scale;

	gh_aggregate_add_datum(node, group, a, value);
	if (scales > 0 && gh_aggregate_scale(value, &scale))
		gh_aggregate_add_datum(node, group, scales, Int32GetDatum(scale));
}

static void
add_to_aggregate(GhAggregateNode *node, uint32 group, int a)
{
	ExprContext *econtext = node->fragment.css.ss.ps.ps_ExprContext;
	Datum		value = (Datum) 0;
	bool		null = false;

	if (!gh_filter_is_true(node->filter_states[a], econtext))
		return;
	if (node->argument_states[a] != NULL)
		value = ExecEvalExpr(node->argument_states[a], econtext, &null);
	if (!null)
		gh_aggregate_add_value(node, group, a, value);
}

/* The group of the node's own, in a set, of a row with these keys. */
uint32
gh_aggregate_own_group(GhAggregateNode *node, const GhSqlValue *keys, int set)
{
	GhSqlValue	of_set[GH_VALUES_MAX];

	if (node->nkeys == 0)
		return 0;
	if (gh_aggregate_nsets(node) == 1)
		return gh_groups_find_one(node->groups, keys);
	for (int k = 0; k < node->nkeys; k++)
		of_set[k] = gh_set_has_key(node, set, k) ? keys[k] : (GhSqlValue) {0, 0, GH_SQL_NULL};
	return gh_groups_find_one(node->groups, of_set);
}

/* To groups of the node's own. */
static void
add_to_groups(GhAggregateNode *node)
{
	for (int s = 0; s < gh_aggregate_nsets(node); s++)
	{
		uint32		group = gh_aggregate_own_group(node, node->key_values, s);

		for (int a = 0; a < node->nresults; a++)
			if (gh_set_of(node, a) == s)
				add_to_aggregate(node, group, a);
	}
}

/* GhFragmentMethods */
void
gh_aggregate_input_row(GhFragment *fragment)
{
	GhAggregateNode *node = gh_aggregate_of(fragment);
	TupleTableSlot *scan = fragment->css.ss.ss_ScanTupleSlot;
	ExprContext *econtext = fragment->css.ss.ps.ps_ExprContext;
	MemoryContext saved = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);

	scan->tts_flags &= ~TTS_FLAG_EMPTY;
	scan->tts_nvalid = scan->tts_tupleDescriptor->natts;
	econtext->ecxt_scantuple = scan;
	for (int k = 0; k < node->nkeys; k++)
	{
		bool		null;
		Datum		value = ExecEvalExpr(node->key_states[k], econtext, &null);

		node->key_values[k] = gh_value_of_datum(&node->key_types[k], value, null);
	}
	if (!gh_enter_row(node))
		add_to_groups(node);
	MemoryContextSwitchTo(saved);
}

/* ------------------------------------------------------- floats and their order */

static bool
is_float(const GhValueType *type)
{
	return type->value_class == GH_CLASS_FLOAT4 || type->value_class == GH_CLASS_FLOAT8;
}

/*
 * Whether the result may tell in which order the rows came: sums of floats round and overflow, and
 * 0 and -0 are equal, as keys and for extremes.  The rows of joins that are done here have no order.
 */
bool
gh_aggregate_order_matters(const GhFragment *fragment)
{
	const GhAggregateNode *node = (const GhAggregateNode *) fragment;

	if (gh_joined_nprobes(fragment) > 0)
		return false;
	for (int k = 0; k < node->nkeys; k++)
		if (is_float(&node->key_types[k]))
			return true;
	return gh_aggregate_adds_floats(fragment);
}

/* Whether floats are added, or compared. */
bool
gh_aggregate_adds_floats(const GhFragment *fragment)
{
	const GhAggregateNode *node = (const GhAggregateNode *) fragment;

	for (int a = 0; a < node->naggregates; a++)
		if (node->specs[a].aggregate.kind > GH_AGGREGATE_COUNT && is_float(&node->specs[a].argument))
			return true;
	return false;
}

/* -------------------------------------------------------------------- groups */

/* Groups, and bytes of memory that they take. */
static uint64
count_groups(const GhAggregateNode *node)
{
	if (node->nkeys == 0)
		return 1;
	if (node->made > 0)
		return node->made;
	return gh_groups_count(node->groups) + gh_final_groups_count(node->final) +
		gh_final_groups_left_out(node->final);
}

static Size
groups_memory(const GhAggregateNode *node)
{
	return gh_groups_bytes(node->groups) + gh_final_groups_memory(node->final);
}

/* All groups as bytes, one by one, whoever made them; then there are none. */
void
gh_aggregate_put_groups(GhAggregateNode *node, GhPutRecord put, void *arg)
{
	const char *records;
	Size		bytes;

	gh_final_groups_rewind(node->final);
	while ((records = gh_final_groups_take(node->final, &bytes)) != NULL)
		gh_put_records(node->groups, records, bytes, put, arg);
	gh_groups_put_records(node->groups, put, arg);
	node->fragment.counts.disk += gh_final_groups_disk(node->final);
	gh_final_groups_clear(node->final);
	gh_groups_reset(node->groups);
	node->ngroups = 0;
}

/*
 * Bytes of the groups of a part that is read from files: with a second level, whose groups, mostly fewer, are
 * there, too, less.
 */
static Size
part_limit(const GhAggregateNode *node)
{
	return node->distinct != NULL || node->sets != NULL ? Max(node->fragment.memory_limit / 4 * 3, GH_MEMORY_MIN) :
		node->fragment.memory_limit;
}

/* Files for groups, or to read those that participants leave; of two levels the second is made part by part. */
void
gh_aggregate_create_files(GhAggregateNode *node)
{
	node->files = gh_group_files_create(node->fragment.css.ss.ps.state->es_query_cxt, part_limit(node));
	if (node->is_part_key != NULL)
		gh_group_files_part_by(node->files, node->groups, node->is_part_key, node->fragment.css.ss.ps.plan->plan_rows);
}

/* The groups have outgrown memory: they go to files, and other groups begin. */
void
gh_aggregate_spill(GhFragment *fragment)
{
	GhAggregateNode *node = gh_aggregate_of(fragment);

	node->fragment.counts.memory = Max(node->fragment.counts.memory, groups_memory(node));
	node->fragment.counts.groups += count_groups(node);
	if (fragment->member != NULL && gh_aggregate_put_shared(node))
		return;
	if (node->files == NULL)
		gh_aggregate_create_files(node);
	gh_aggregate_put_groups(node, gh_group_files_put, node->files);
}

/* Looks at the groups of the node's own; a sink has a limit, too. */
void
gh_aggregate_keep_within_memory(GhFragment *fragment)
{
	GhAggregateNode *node = gh_aggregate_of(fragment);

	if (node->nkeys == 0 || gh_groups_count(node->groups) == node->ngroups)
		return;
	node->ngroups = gh_groups_count(node->groups);
	if (groups_memory(node) > node->fragment.memory_limit)
		gh_aggregate_spill(fragment);
}

/* Groups of one of several devices: others may have parts of them. */
void
gh_aggregate_add_parts(GhAggregateNode *node, const char *records, Size size)
{
	gh_groups_merge_scan(node->groups, records, size);
	gh_aggregate_keep_within_memory(&node->fragment);
}

/* GhFragmentMethods */
void
gh_aggregate_end_input(GhFragment *fragment)
{
	GhAggregateNode *node = gh_aggregate_of(fragment);

	gh_enter_rows(node, true);
	fragment->counts.groups += count_groups(node);
	fragment->counts.groups_left += node->left_there;
	fragment->counts.memory = Max(fragment->counts.memory, groups_memory(node));
	fragment->counts.disk += gh_final_groups_disk(node->final);
}

/* GhFragmentMethods */
void
gh_aggregate_start_anew(GhFragment *fragment)
{
	GhAggregateNode *node = gh_aggregate_of(fragment);

	if (fragment->member != NULL)
		gh_aggregate_drop_shared(node);
	if (node->files != NULL)
		gh_group_files_close(node->files);
	node->files = NULL;
	gh_enter_forget(node);
	if (node->taken)
		gh_nested_give_up(node);
	gh_final_groups_clear(node->final);
	gh_aggregate_show(node, false);
	node->ngroups = 0;
	gh_aggregate_reset_levels(node);
}

/* Forgets the groups that are final, or in files. */
void
gh_aggregate_close_files(GhAggregateNode *node)
{
	if (node->regrouping != NULL)
		gh_regroup_close(node);
	if (node->files != NULL)
		gh_group_files_close(node->files);
	if (node->final != NULL)
		gh_final_groups_close(node->final);
	node->files = NULL;
	node->final = NULL;
}

