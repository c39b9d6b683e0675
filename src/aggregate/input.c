/*
 * input.c
 *		The rows that are aggregated: pages of a scan, as wholes, or row by row.
 *
 * Where the child is a scan whose pages the node may read, or joins over one (joined.c), a page enters a pipeline
 * (enter.c) while it is pinned: its columns are decoded, the scan's conditions, joins, keys and arguments evaluated,
 * groups found and rows added by the engine.  Rows that the engine hands back, and all where there is no program, are
 * evaluated by PostgreSQL's own expressions, from the scan's first condition on.  Other children's rows come
 * through the executor: rows.c.
 *
 * What a page and a scan ask for is in ../heap/README, "Pages".
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/rel.h"

#include "aggregate/device.h"
#include "aggregate/enter.h"
#include "aggregate/exec.h"
#include "aggregate/joined.h"

/* Pages that a read stream may read ahead: nothing is returned before all are read. */
#define GH_PAGES_AHEAD 128

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

/* Adds a value, that is not NULL, to what an aggregate has of a group; rows and values that are counted may be anything. */
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
	ExprContext *econtext = node->css.ss.ps.ps_ExprContext;
	Datum		value = (Datum) 0;
	bool		null = false;

	if (!gh_filter_is_true(node->filter_states[a], econtext))
		return;
	if (node->argument_states[a] != NULL)
		value = ExecEvalExpr(node->argument_states[a], econtext, &null);
	if (!null)
		gh_aggregate_add_value(node, group, a, value);
}

/* To a group of the node's own. */
static void
add_to_group(GhAggregateNode *node)
{
	uint32		group = node->nkeys > 0 ? gh_groups_find_one(node->groups, node->key_values) : 0;

	for (int a = 0; a < node->nresults; a++)
		add_to_aggregate(node, group, a);
}

/* Adds the row whose columns are in the scan tuple. */
void
gh_add_input_row(GhAggregateNode *node)
{
	TupleTableSlot *scan = node->css.ss.ss_ScanTupleSlot;
	ExprContext *econtext = node->css.ss.ps.ps_ExprContext;
	MemoryContext saved = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);

	scan->tts_flags &= ~TTS_FLAG_EMPTY;
	scan->tts_nvalid = scan->tts_tupleDescriptor->natts;
	econtext->ecxt_scantuple = scan;
	if (node->collected != NULL)
	{
		MemoryContextSwitchTo(saved);
		gh_collect_scan_tuple(node);
		return;
	}
	for (int k = 0; k < node->nkeys; k++)
	{
		bool		null;
		Datum		value = ExecEvalExpr(node->key_states[k], econtext, &null);

		node->key_values[k] = gh_value_of_datum(&node->key_types[k], value, null);
	}
	if (!gh_enter_row(node))
		add_to_group(node);
	MemoryContextSwitchTo(saved);
}

/*
 * A visible tuple of a page of the scan, which is pinned, by PostgreSQL's expressions.  Whether the scan's conditions
 * accept it: only then is it counted as handed back.  Which of the others the program could not do depends on their
 * values, and they may be rows that a policy hides from who reads the count.
 */
bool
gh_add_tuple(GhAggregateNode *node, Buffer buffer, BlockNumber block, OffsetNumber line)
{
	ScanState  *child = (ScanState *) node->scan;
	ExprContext *econtext = child->ps.ps_ExprContext;
	TupleTableSlot *to = node->css.ss.ss_ScanTupleSlot;

	TupleTableSlot *from = child->ss_ScanTupleSlot;

	gh_pages_store(node->pages, buffer, block, line, from);
	/* one row may take long, and there may be hundreds */
	CHECK_FOR_INTERRUPTS();
	ResetExprContext(econtext);
	econtext->ecxt_scantuple = from;
	if (child->ps.qual != NULL && !ExecQual(child->ps.qual, econtext))
		return false;
	node->counts.back++;
	if (gh_joined_nprobes(node) > 0)
	{
		slot_getallattrs(from);
		gh_joined_add_row(node, from->tts_values, from->tts_isnull);
		return true;
	}
	ResetExprContext(node->css.ss.ps.ps_ExprContext);
	for (int c = 0; c < node->ncolumns; c++)
		to->tts_values[c] = slot_getattr(from, node->attnos[c], &to->tts_isnull[c]);
	gh_add_input_row(node);
	return true;
}

/* A visible tuple of the page that was read last. */
static bool
add_tuple(GhAggregateNode *node, OffsetNumber line)
{
	const GhPages *pages = node->pages;

	return gh_add_tuple(node, pages->buffer, pages->block, line);
}

/* -------------------------------------------------------------- a page */

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
gh_aggregate_order_matters(const GhAggregateNode *node)
{
	if (gh_joined_nprobes(node) > 0)
		return false;
	for (int k = 0; k < node->nkeys; k++)
		if (is_float(&node->key_types[k]))
			return true;
	return gh_aggregate_adds_floats(node);
}

/* Whether floats are added, or compared. */
bool
gh_aggregate_adds_floats(const GhAggregateNode *node)
{
	for (int a = 0; a < node->naggregates; a++)
		if (node->specs[a].aggregate.kind > GH_AGGREGATE_COUNT && is_float(&node->specs[a].argument))
			return true;
	return false;
}

/* The page's rows, by the pipeline that makes the groups.  The scan's conditions have not let those before `from` through. */
static int
enter_page(GhAggregateNode *node, int from)
{
	GhBackRow	back[MaxHeapTuplesPerPage];
	uint32		nback;
	int			rows;

	node->pages->tuples_unread = node->program.program->ncolumns == 0;
	rows = (int) gh_enter_page(node, back, &nback);
	for (uint32 i = 0; i < nback; i++)
		if (back[i].line >= node->pages->lines[from])
			rows += add_tuple(node, back[i].line);
	gh_enter_rows(node, false);
	return rows;
}

/* The page that is pinned, from a visible tuple on.  How many rows the scan's conditions accept. */
static int
add_page(GhAggregateNode *node, int from, instr_time *clock)
{
	int			ntuples = node->pages->ntuples;
	int			rows = 0;

	if (from == ntuples)
		return 0;
	if (node->collected == NULL && gh_aggregate_stage(node) != NULL)
		rows = enter_page(node, from);
	else
		for (int i = from; i < ntuples; i++)
			rows += add_tuple(node, node->pages->lines[i]);
	gh_aggregate_clock(node, &node->counts.evaluate_time, clock);
	/* the slot has a pin of its own */
	ExecClearTuple(((ScanState *) node->scan)->ss_ScanTupleSlot);
	InstrCountFiltered1(node->scan, ntuples - from - rows);
	return rows;
}

/* Goes on to the next page; false at the end.  *from: its first tuple that is not done. */
static bool
next_page(GhAggregateNode *node, int *from)
{
	const GhPages *pages = node->pages;

	*from = 0;
	gh_pages_begin(node->pages, node->scan);
	if (!gh_pages_next(node->pages, GH_PAGES_AHEAD))
		return false;
	pgstat_count_index_tuples(pages->relation, pages->ntuples);
	if (!node->device->tried)
		gh_device_log(node, pages->block);
	return true;
}

static bool
read_page(GhAggregateNode *node)
{
	instr_time	clock = {0};
	bool		ahead = node->joined != NULL && node->joined->first >= 0;
	bool		found = true;
	int			from;
	int			rows = 0;

	gh_aggregate_clock(node, NULL, &clock);
	if (node->joined != NULL)
		gh_joined_start(node);
	gh_child_start(node->scan);
	if (ahead)
	{
		from = node->joined->first;
		node->joined->first = -1;
	}
	else
		found = next_page(node, &from);
	gh_aggregate_clock(node, &node->counts.source_time, &clock);
	if (found)
	{
		rows = add_page(node, from, &clock);
		node->counts.pages++;
		node->counts.rows += rows;
	}
	/* a row that was found ahead was counted then */
	gh_child_stop(node->scan, rows - (ahead ? 1 : 0));
	if (node->joined != NULL)
		gh_joined_stop(node);
	return found;
}

/* A page that was read before.  The scan's node may have counted its rows then. */
void
gh_aggregate_reread(GhAggregateNode *node, BlockNumber block, bool counted)
{
	instr_time	clock = {0};
	int			rows;

	gh_aggregate_clock(node, NULL, &clock);
	if (node->joined != NULL)
		gh_joined_start(node);
	gh_child_start(node->scan);
	gh_pages_read_block(node->pages, block);
	gh_aggregate_clock(node, &node->counts.source_time, &clock);
	rows = add_page(node, 0, &clock);
	node->counts.pages++;
	node->counts.rows += rows;
	if (counted)
		InstrCountFiltered1(node->scan, rows - node->pages->ntuples);
	else
		pgstat_count_index_tuples(node->pages->relation, node->pages->ntuples);
	gh_child_stop(node->scan, counted ? 0 : rows);
	if (node->joined != NULL)
		gh_joined_stop(node);
}

/* -------------------------------------------------------------------- all */

/* Groups, and bytes of memory that they take. */
static uint64
count_groups(const GhAggregateNode *node)
{
	if (node->nkeys == 0)
		return 1;
	return gh_groups_count(node->groups) + gh_final_groups_count(node->final);
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
		gh_scan_put_records(node->groups, records, bytes, put, arg);
	gh_groups_put_records(node->groups, put, arg);
	node->counts.disk += gh_final_groups_disk(node->final);
	gh_final_groups_clear(node->final);
	gh_groups_reset(node->groups);
	node->ngroups = 0;
}

/* The groups have outgrown memory: they go to files, and other groups begin. */
void
gh_aggregate_spill(GhAggregateNode *node)
{
	node->counts.memory = Max(node->counts.memory, groups_memory(node));
	node->counts.groups += count_groups(node);
	if (node->member != NULL && gh_aggregate_put_shared(node))
		return;
	if (node->files == NULL)
		node->files = gh_group_files_create(node->css.ss.ps.state->es_query_cxt, node->memory_limit);
	gh_aggregate_put_groups(node, gh_group_files_put, node->files);
}

/* Looks at the groups of the node's own; a sink has a limit, too. */
void
gh_aggregate_keep_within_memory(GhAggregateNode *node)
{
	/* rows that are collected see to that by themselves */
	if (node->collected != NULL || node->nkeys == 0 || gh_groups_count(node->groups) == node->ngroups)
		return;
	node->ngroups = gh_groups_count(node->groups);
	if (groups_memory(node) > node->memory_limit)
		gh_aggregate_spill(node);
}

/* Forgets the groups that are final, or in files. */
void
gh_aggregate_close_files(GhAggregateNode *node)
{
	if (node->files != NULL)
		gh_group_files_close(node->files);
	if (node->final != NULL)
		gh_final_groups_close(node->final);
	node->files = NULL;
	node->final = NULL;
}

/* This process's part of the input is to be read once more: nothing of it is kept. */
void
gh_aggregate_start_anew(GhAggregateNode *node)
{
	node->counts.pages = node->counts.rows = node->counts.back = node->counts.groups = 0;
	node->counts.disk = 0;
	if (node->member != NULL)
		gh_aggregate_drop_file(node);
	if (node->collected != NULL)
	{
		gh_collect_clear(node);
		return;
	}
	if (node->files != NULL)
		gh_group_files_close(node->files);
	node->files = NULL;
	gh_enter_forget(node);
	gh_final_groups_clear(node->final);
	gh_groups_reset(node->groups);
	node->ngroups = 0;
}

/* What is read, the joins' tables having been made where pages are. */
static GhJoinedInput
open_input(GhAggregateNode *node)
{
	instr_time	clock = {0};
	GhJoinedInput input;

	if (node->joined == NULL)
		return node->scan != NULL ? GH_JOINED_PAGES : GH_JOINED_ROWS;
	switch (gh_device_open_joins(node))
	{
		case GH_DEVICE_TABLES:
			return GH_JOINED_PAGES;
		case GH_DEVICE_NO_INPUT:
			return GH_JOINED_NOTHING;
		case GH_DEVICE_NO_TABLES:
			break;
	}
	gh_aggregate_clock(node, NULL, &clock);
	input = gh_joined_open(node);
	/* a program for the scan's rows is none for those of the joins */
	if (input == GH_JOINED_ROWS)
		gh_aggregate_forget_program(node);
	gh_aggregate_clock(node, &node->counts.build_time, &clock);
	return input;
}

/* Reads some of the input; false at its end.  *input changes where it has to be begun anew. */
static bool
read_some(GhAggregateNode *node, GhJoinedInput *input)
{
	if (*input == GH_JOINED_NOTHING)
		return false;
	if (*input == GH_JOINED_ROWS)
		return gh_aggregate_read_rows(node);
	if (!gh_device_wants(node))
		return read_page(node);
	return !gh_device_read(node, input);
}

/* Reads the child to its end, into groups. */
void
gh_aggregate_read_input(GhAggregateNode *node)
{
	GhJoinedInput input = open_input(node);

	node->by_rows = input == GH_JOINED_ROWS;
	node->passes_on = node->collected != NULL && node->by_rows && gh_joined_nprobes(node) == 0;
	if (node->passes_on)
		return;
	while (read_some(node, &input))
	{
		CHECK_FOR_INTERRUPTS();
		node->by_rows = input == GH_JOINED_ROWS;
		gh_aggregate_keep_within_memory(node);
	}
	if (node->collected == NULL)
	{
		gh_enter_rows(node, true);
		node->counts.groups += count_groups(node);
		node->counts.memory = Max(node->counts.memory, groups_memory(node));
		node->counts.disk += gh_final_groups_disk(node->final);
	}
	gh_pages_park(node->pages);
	if (node->joined != NULL)
		gh_joined_close(node);
}
