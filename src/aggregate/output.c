/*
 * output.c
 *		The groups as they come out, some hundred at a time: first those that engines made (final.c), then those in
 *		memory, and then those that wait in files.
 *
 * HAVING is asked of all of them at once (having.c), and only of a group that it does not leave out a tuple
 * is made.  So it is with what an ORDER BY ... LIMIT above does not want, once a sample of the groups tells
 * (first.c). A device's groups are judged before they leave it (narrow.c), or when they arrive, if nothing
 * can be added to them, and those that it leaves out are not even stored.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"

#include "aggregate/first.h"
#include "fragment/device.h"

/* Of a sample, groups at a time: these lie next to each other. */
#define GH_SAMPLE_GROUPS 16

/* Key k of the i-th group; texts are the group's. */
GhSqlValue
gh_output_key(const GhAggregateNode *node, const GhOutput *output, uint32 i, int k)
{
	if (k == node->nkeys && output->set >= 0)
		return (GhSqlValue) {.low = output->set, .kind = GH_SQL_HELD};
	return output->is_final ?
		gh_record_value((const GhRecordHead *) output->records[i], k, &node->key_types[k]) :
		gh_groups_key(node->groups, output->first + i, k);
}

/*
 * What the i-th group of the node's own has of aggregate a that its state does not hold; NULL: that holds
 * all.
 */
const GhSide *
gh_output_side(const GhAggregateNode *node, const GhOutput *output, uint32 i, int a)
{
	return gh_groups_side_of(node->groups, output->first + i, a);
}

/* --------------------------------------------------------------- some groups */

/* The records of some that engines made are set. */
static void
find_states(GhAggregateNode *node)
{
	GhOutput   *output = &node->output;

	output->is_final = true;
	output->set = gh_regroup_set(node);
	for (uint32 i = 0; i < output->count; i++)
	{
		const GhRecordHead *head = (const GhRecordHead *) output->records[i];

		output->states[i] = gh_record_states(node->groups, output->records[i], head->bytes);
	}
}

/* Of those that engines made; false: there are no more. */
static bool
take_final(GhAggregateNode *node)
{
	GhOutput   *output = &node->output;

	if (!gh_regroup_is_first(node))
		return false;
	output->count = gh_final_groups_next(node->final, output->records, GH_OUTPUT_GROUPS);
	find_states(node);
	return output->count > 0;
}

/* Of the node's own in memory, so many at most; false: there are no more. */
static bool
take_in_memory(GhAggregateNode *node, uint32 room)
{
	GhOutput   *output = &node->output;
	uint32		count = gh_groups_count(node->groups);

	if (node->next_group >= count)
		return false;
	output->is_final = false;
	output->set = gh_regroup_set(node);
	output->first = node->next_group;
	output->count = Min(count - output->first, room);
	node->next_group += output->count;
	for (uint32 i = 0; i < output->count; i++)
		output->states[i] = gh_groups_states(node->groups) + (Size) (output->first + i) * node->shown.naggregates;
	return true;
}

/*
 * Puts others of the node's own into memory, in place of those that have come out; false: there are no more.
 */
static bool
next_groups(GhAggregateNode *node)
{
	if (node->regrouping != NULL && gh_regroup_next(node))
		return true;
	return node->files != NULL && gh_group_files_next(node->files, node->groups);
}

/* Of those in memory, and then of those that wait in files; false: there are no more. */
static bool
take_own(GhAggregateNode *node)
{
	while (!take_in_memory(node, GH_OUTPUT_GROUPS))
	{
		if (!next_groups(node))
			return false;
		node->next_group = 0;
		gh_first_look(node);
	}
	return true;
}

static bool
take_groups(GhAggregateNode *node)
{
	if (node->output.fresh || gh_first_awaits(node))
		gh_first_look(node);
	node->output.fresh = false;
	node->output.next = 0;
	if (!take_final(node) && !take_own(node))
	{
		node->output.count = 0;
		return false;
	}
	gh_having_judge(node, &node->output);
	return true;
}

/* ------------------------------------------------- as they come from a device */

/*
 * Whether a device's groups are all that there is of them: no part of one is on another, in this process or
 * in another one.
 */
bool
gh_output_is_whole(const GhAggregateNode *node)
{
	const GhFragment *fragment = &node->fragment;

	return fragment->member == NULL && fragment->device->set == NULL && node->files == NULL &&
		gh_groups_count(node->groups) == 0 && fragment->counts.back == node->back_before &&
		fragment->counts.pages == node->pages_before;
}

/* Some of the records become those that are judged; their bytes. */
static Size
load_records(GhAggregateNode *node, const char *records, Size size)
{
	GhOutput   *output = &node->output;
	Size		used = 0;

	for (output->count = 0; output->count < GH_OUTPUT_GROUPS && used < size; output->count++)
	{
		output->records[output->count] = records + used;
		used += gh_record_bytes(records + used, size - used);
	}
	find_states(node);
	return used;
}

/* Appends those that HAVING does not leave out; their bytes. */
static Size
keep_records(GhAggregateNode *node, char *kept)
{
	const GhOutput *output = &node->output;
	Size		used = 0;
	uint32		nkept = 0;

	for (uint32 i = 0; i < output->count; i++)
	{
		Size		bytes = ((const GhRecordHead *) output->records[i])->bytes;

		if (output->verdicts[i] == GH_ROW_DROPPED)
			continue;
		memcpy(kept + used, output->records[i], bytes);
		used += bytes;
		nkept++;
	}
	gh_final_groups_leave_out(node->final, output->count - nkept);
	return used;
}

/*
 * Keeps a device's groups, as records, but for those that HAVING leaves out, where that can be known by now.
 * They may be grouped again (DISTINCT, grouping sets), and HAVING is about the groups of these.
 */
void
gh_output_take(GhAggregateNode *node, const char *records, Size size)
{
	char	   *kept;
	Size		used = 0;

	if (size == 0 || node->fragment.css.ss.ps.qual == NULL || node->distinct != NULL || node->sets != NULL ||
		!gh_output_is_whole(node))
	{
		gh_final_groups_put(node->final, records, size);
		return;
	}
	kept = palloc(size);
	while (size > 0)
	{
		Size		bytes = load_records(node, records, size);

		CHECK_FOR_INTERRUPTS();
		gh_having_judge(node, &node->output);
		used += keep_records(node, kept + used);
		records += bytes;
		size -= bytes;
	}
	gh_final_groups_put(node->final, kept, used);
	pfree(kept);
}

/* ----------------------------------------------------------------- one group */

static void
load_keys(const GhAggregateNode *node, uint32 i, TupleTableSlot *scan)
{
	for (int k = 0; k < node->shown.nkeys; k++)
	{
		int			column = node->key_columns[k];

		scan->tts_values[column] = gh_datum_of_value(&node->key_types[k], gh_output_key(node, &node->output, i, k),
													 &scan->tts_isnull[column]);
	}
}

static void
load_results(const GhAggregateNode *node, uint32 i, TupleTableSlot *scan)
{
	const GhOutput *output = &node->output;
	const GhAggregateState *states = output->states[i];
	GhSide		text;

	for (int a = 0; a < node->shown.nresults; a++)
	{
		const GhAggregateSpec *spec = &node->shown.specs[a];
		int			column = node->first + a;
		int			scales = spec->scales;

		scan->tts_values[column] = gh_aggregate_result(spec, &states[a], output->is_final ?
													   gh_record_text(spec, output->records[i], &states[a], &text) :
													   gh_output_side(node, output, i, a),
													   scales > 0 ? (int) states[scales].low : -1,
													   &scan->tts_isnull[column]);
	}
}

/* Puts the i-th group into the scan tuple: its keys, and what its states come to. */
static void
load_group(GhAggregateNode *node, uint32 i)
{
	TupleTableSlot *scan = node->fragment.css.ss.ss_ScanTupleSlot;
	ExprContext *econtext = node->fragment.css.ss.ps.ps_ExprContext;
	MemoryContext saved;

	ResetExprContext(econtext);
	saved = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	ExecStoreAllNullTuple(scan);
	load_keys(node, i, scan);
	if (node->sets != NULL)
		gh_sets_load_functions(node, (int) gh_output_key(node, &node->output, i, node->nkeys).low, scan);
	load_results(node, i, scan);
	MemoryContextSwitchTo(saved);
	econtext->ecxt_scantuple = scan;
}

/* Puts each of some groups, as records, into the scan tuple. */
void
gh_output_show(GhAggregateNode *node, const char *records, Size size, void (*show) (void *arg), void *arg)
{
	while (size > 0)
	{
		Size		bytes = load_records(node, records, size);

		CHECK_FOR_INTERRUPTS();
		for (uint32 i = 0; i < node->output.count; i++)
		{
			load_group(node, i);
			show(arg);
		}
		records += bytes;
		size -= bytes;
	}
}

/* ------------------------------------------------------------------ a sample */

/* How many come out of memory, but for those in the node's regrouping that follow them. */
uint64
gh_output_count(const GhAggregateNode *node)
{
	return gh_groups_count(node->groups) + (gh_regroup_is_first(node) ? gh_final_groups_count(node->final) : 0);
}

/* Some groups of a sample; false: there are no more in memory. */
static bool
take_of_sample(GhAggregateNode *node, uint64 step)
{
	GhOutput   *output = &node->output;

	output->count = gh_regroup_is_first(node) ?
		gh_final_groups_sample(node->final, output->records, GH_SAMPLE_GROUPS, step) : 0;
	if (output->count > 0)
	{
		find_states(node);
		return true;
	}
	if (!take_in_memory(node, GH_SAMPLE_GROUPS))
		return false;
	node->next_group = (uint32) Min(output->first + output->count * step, PG_UINT32_MAX);
	return true;
}

/* Begins anew, behind so many groups that have come out at once. */
static void
go_on_behind(GhAggregateNode *node, uint32 came, bool were_final)
{
	GhOutput   *output = &node->output;

	output->next = output->count = 0;
	gh_final_groups_rewind(node->final);
	node->next_group = were_final ? 0 : came;
	if (came > 0 && were_final)
		(void) gh_final_groups_next(node->final, output->records, came);
}

/*
 * Before others of those in memory than the first ones come out: shows some of all of these, one of `step`,
 * that HAVING lets out for sure.  How many were looked at for that: `count`, or all.
 */
uint64
gh_output_sample(GhAggregateNode *node, uint64 step, uint64 count, void (*show) (void *arg), void *arg)
{
	GhOutput   *output = &node->output;
	uint32		came = output->next;
	bool		were_final = output->is_final;
	uint64		seen = 0;

	node->next_group = 0;
	gh_final_groups_rewind(node->final);
	for (; seen < count && take_of_sample(node, step); seen += output->count)
	{
		CHECK_FOR_INTERRUPTS();
		gh_having_judge(node, output);
		for (uint32 i = 0; i < output->count; i++)
		{
			if (output->verdicts[i] != GH_ROW_LIVE)
				continue;
			load_group(node, i);
			show(arg);
		}
	}
	go_on_behind(node, came, were_final);
	return seen;
}

/* ------------------------------------------------------------------- the next */

/* Loads the i-th group, unless it is left out. */
static bool
comes_out(GhAggregateNode *node, uint32 i)
{
	PlanState  *ps = &node->fragment.css.ss.ps;
	uint8		verdict = node->output.verdicts[i];

	if (verdict == GH_GROUP_UNWANTED)
		return false;
	if (verdict != GH_ROW_DROPPED)
	{
		load_group(node, i);
		if (verdict == GH_ROW_LIVE || ExecQual(ps->qual, ps->ps_ExprContext))
			return true;
	}
	InstrCountFiltered1(ps, 1);
	return false;
}

/* The next group that comes out, in the scan tuple; false: there are no more. */
bool
gh_output_next(GhAggregateNode *node)
{
	GhOutput   *output = &node->output;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (output->next == output->count && !take_groups(node))
			return false;
		if (comes_out(node, output->next++))
			return true;
	}
}

/* Those that are there come out from the first one on. */
void
gh_output_rewind(GhAggregateNode *node)
{
	if (node->regrouping != NULL)
		gh_regroup_rewind(node);
	node->output.next = node->output.count = 0;
	node->output.fresh = true;
	node->next_group = 0;
	gh_final_groups_rewind(node->final);
	InstrCountFiltered1(&node->fragment.css.ss.ps, gh_final_groups_left_out(node->final));
	node->fragment.counts.unwanted += node->behind;
}
