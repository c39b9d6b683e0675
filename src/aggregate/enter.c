/*
 * enter.c
 *		The pipeline that makes the groups, on the CPU, and the rows that PostgreSQL's expressions have computed for it;
 *		others enter as of any fragment (../fragment/enter.c).
 *
 * A row that the pipeline hands back is computed by PostgreSQL's expressions, from the scan's first condition
 * on, and enters again in front of the sink, with its keys and arguments as columns.  So values are added to
 * a group in the order of the rows.  What no vector can hold goes to a group of the node's own (groups.c):
 * the row as a whole if it is a key, else that value alone.
 *
 * Where the sink has no memory for one more group, all groups go to files, it is emptied, and the row comes
 * again.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "aggregate/exec.h"
#include "engine/pipeline/record_row.h"
#include "fragment/joined.h"
#include "service/faults.h"

/*
 * For groups that are expected to come, this part of the memory is taken at once at most; by a guess, less.
 */
#define GH_EXPECTED_PART 4
#define GH_GUESSED_BYTES_MAX ((Size) 1024 * 1024)
#define GH_SLOT_BYTES 32

/* Computed rows that wait, and bytes of their texts. */
#define GH_ENTERED_ROWS 256
#define GH_ENTERED_BYTES_MAX ((Size) 1024 * 1024)

/* Rows that PostgreSQL's expressions have computed, and that are to enter. */
typedef struct GhEntered
{
	MemoryContext context;		/* of texts */
	Size		bytes;			/* of them */
	uint32		nrows;
	GhSqlValue *values;			/* by row: of each key, and of each aggregate what is to be added, or NULL */
	/* when there is a pipeline: */
	GhEnteringRows *rows;		/* what its sink reads; NULL: not made yet */
	uint16		places[GH_PROGRAM_VECTORS_MAX]; /* by vector: among those, and 1; 0: it is not among them */
} GhEntered;

/* ------------------------------------------------------------ the pipeline */

static GhEntered *
make_entered(const GhAggregateNode *node)
{
	MemoryContext saved = MemoryContextSwitchTo(node->fragment.program.context);
	GhEntered  *entered = palloc0(sizeof(GhEntered));

	entered->context = AllocSetContextCreate(CurrentMemoryContext, "GpuHashAggregate computed rows",
											 ALLOCSET_SMALL_SIZES);
	entered->values = palloc(sizeof(GhSqlValue) * GH_ENTERED_ROWS * Max(node->nkeys + node->naggregates, 1));
	MemoryContextSwitchTo(saved);
	return entered;
}

/* What the sink reads, behind the last step. */
static void
make_entered_rows(const GhAggregateNode *node)
{
	GhEntered  *entered = node->entered;
	const GhStage *stage = node->fragment.program.stage;
	MemoryContext saved = MemoryContextSwitchTo(node->fragment.program.context);

	entered->rows = gh_entering_create_before(stage, stage->pipeline->plan->options.nsteps, NULL, GH_ENTERED_ROWS);
	for (uint32 g = 0; g < entered->rows->ngiven; g++)
		entered->places[entered->rows->given[g]] = g + 1;
	MemoryContextSwitchTo(saved);
}

/* Whether it is by statistics how many groups are expected. */
static bool
keys_are_columns(const GhAggregateNode *node)
{
	ListCell   *lc;

	foreach(lc, node->keys)
	{
		if (!IsA(lfirst(lc), Var))
			return false;
	}
	return true;
}

/* Groups that are expected: with room for them from the first one on, they need not be moved. */
static uint64
expected_groups(const GhAggregateNode *node)
{
	Size		bytes = GH_SLOT_BYTES + sizeof(GhRecordHead) + sizeof(GhRecordValue) * node->nkeys +
		sizeof(GhAggregateState) * node->naggregates;
	Size		most = node->fragment.memory_limit / GH_EXPECTED_PART;

	if (!keys_are_columns(node))
		most = Min(most, GH_GUESSED_BYTES_MAX);
	/* rooms are powers of two, and not less */
	return (uint64) Min(gh_aggregate_expected(node), most / bytes / 2);
}

/*
 * GhTextOrder.  An error ends the query as soon as the request is back: until then an engine is at work,
 * which no error may jump over.
 */
static int
compare_texts(void *arg, uint32 a, const char *text, uint64 bytes, const char *other, uint64 other_bytes)
{
	const GhAggregateNode *node = arg;
	GhStage    *stage = node->fragment.program.stage;
	MemoryContext saved = CurrentMemoryContext;
	volatile int order = 0;

	if (stage->raised != NULL)
		return 0;
	PG_TRY();
	{
		if (gh_fault_pass(GH_FAULT_POINT_TEXT_ORDER) != GH_FAULT_NONE)
			elog(ERROR, "fault point: texts are not compared");
		order = gh_compare_texts(&node->specs[a], text, (int) bytes, other, (int) other_bytes);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(stage->context);
		stage->raised = CopyErrorData();
		FlushErrorState();
		MemoryContextSwitchTo(saved);
	}
	PG_END_TRY();
	return order;
}

/* The sink of a pipeline that makes the groups, but for how many are expected, and how texts compare. */
void
gh_aggregate_sink(const GhAggregateNode *node, GhSink *sink)
{
	sink->kind = GH_SINK_GROUPS;
	sink->groups.nkeys = node->nkeys;
	sink->groups.keys = gh_aggregate_scan_keys(node);
	sink->groups.naggregates = node->naggregates;
	sink->groups.aggregates = gh_aggregate_set_aggregates(node);
	sink->groups.nsets = gh_aggregate_nsets(node);
}

static void
make_stage(GhAggregateNode *node)
{
	GhPipelineOptions options;

	gh_fragment_stage_options(&node->fragment, gh_joined_probes(&node->fragment), &options);
	gh_aggregate_sink(node, &options.sink);
	/* here alone an error of it is looked for (gh_stage_run): without it, no pipeline elsewhere compares texts */
	options.sink.groups.order = (GhTextOrder) {compare_texts, node};
	options.sink.groups.expected = expected_groups(node);
	options.sink.groups.seed = pg_prng_uint64(&pg_global_prng_state);
	options.sink.groups.in_order = gh_aggregate_order_matters(&node->fragment);
	options.memory_limit = node->nkeys > 0 ? node->fragment.memory_limit : 0;
	if (gh_fragment_create_stage(&node->fragment, &options, "aggregate"))
		gh_final_groups_add_sink(node->final, node->fragment.program.stage);
}

/*
 * The pipeline from the rows of the scan, or those of the executor, to groups, which is made at the first
 * call. NULL: there is none, and PostgreSQL's expressions do the rows.
 */
GhStage *
gh_aggregate_stage(GhFragment *fragment)
{
	MemoryContext saved;

	if (!gh_fragment_compile(fragment) || fragment->program.stage != NULL)
		return fragment->program.stage;
	saved = MemoryContextSwitchTo(fragment->program.context);
	make_stage(gh_aggregate_of(fragment));
	MemoryContextSwitchTo(saved);
	return fragment->program.stage;
}

/* All that was to be read has been, and its groups are elsewhere: the pipeline gives its memory back. */
void
gh_aggregate_drop_stage(GhAggregateNode *node)
{
	if (node->fragment.program.stage == NULL)
		return;
	gh_final_groups_add_sink(node->final, NULL);
	gh_stage_destroy(node->fragment.program.stage);
	node->fragment.program.stage = NULL;
}

/* ------------------------------------------------- rows that were computed */

static GhSqlValue *
values_of(const GhAggregateNode *node, uint32 row)
{
	return node->entered->values + (Size) row * (node->nkeys + node->naggregates);
}

/* A value with texts that stay. */
static GhSqlValue
keep_value(GhEntered *entered, const GhValueType *type, GhSqlValue value)
{
	void	   *bytes;

	if (value.kind == GH_SQL_NULL || (type->value_class != GH_CLASS_TEXT && type->value_class != GH_CLASS_BPCHAR))
		return value;
	bytes = MemoryContextAlloc(entered->context, Max(value.high, 1));
	memcpy(bytes, (const void *) (uintptr_t) value.low, value.high);
	entered->bytes += value.high;
	value.low = (uintptr_t) bytes;
	return value;
}


/* What an aggregate adds of the row in the scan tuple, whose keys are these. */
static void
compute_aggregate(GhAggregateNode *node, int a, const GhSqlValue *keys, GhSqlValue *values)
{
	const GhSqlValue nothing = {0, 0, GH_SQL_NULL};
	const GhAggregateSpec *spec = &node->specs[a];
	bool		null = false;
	Datum		datum;
	int			scale;

	values[a] = nothing;
	if (spec->scales > 0)
		values[spec->scales] = nothing;
	if (!gh_filter_is_true(node->filter_states[a], node->fragment.css.ss.ps.ps_ExprContext))
		return;
	if (node->argument_states[a] == NULL)
	{
		values[a].kind = GH_SQL_HELD;
		return;
	}
	datum = ExecEvalExpr(node->argument_states[a], node->fragment.css.ss.ps.ps_ExprContext, &null);
	if (null)
		return;
	values[a] = gh_value_of_datum(&spec->argument, datum, false);
	if (values[a].kind != GH_SQL_HELD)
	{
		gh_aggregate_add_value(node, gh_aggregate_own_group(node, keys, gh_set_of(node, a)), a, datum);
		values[a] = nothing;
		return;
	}
	values[a] = keep_value(node->entered, &spec->argument, values[a]);
	if (spec->scales > 0 && gh_aggregate_scale(datum, &scale))
		values[spec->scales] = (GhSqlValue) {.low = scale,.high = gh_sign_extension(scale)};
}

/* The row in the scan tuple, whose keys are in node->key_values, is to enter; false: it cannot. */
bool
gh_enter_row(GhAggregateNode *node)
{
	GhFragmentProgram *program = &node->fragment.program;
	GhEntered  *entered = node->entered;
	GhSqlValue *values;

	/* there is a pipeline, or rows wait for it so that theirs are the first values to be added */
	if (program->stage == NULL && (program->tried || !gh_aggregate_order_matters(&node->fragment)))
	{
		gh_enter_rows(node, true);
		return false;
	}
	for (int k = 0; k < node->nkeys; k++)
		if (node->key_values[k].kind == GH_SQL_BYTES)
			return false;
	if (entered == NULL)
		entered = node->entered = make_entered(node);
	values = values_of(node, entered->nrows);
	for (int k = 0; k < node->nkeys; k++)
		values[k] = keep_value(entered, &node->key_types[k], node->key_values[k]);
	for (int a = 0; a < node->nresults; a++)
		compute_aggregate(node, a, values, values + node->nkeys);
	entered->nrows++;
	if (entered->nrows < GH_ENTERED_ROWS && entered->bytes < GH_ENTERED_BYTES_MAX)
		return true;
	gh_enter_rows(node, true);
	if (program->stage == NULL)
	{
		/* what is in groups of the node's own is in front of all that could come */
		program->tried = true;
		program->why_not = "values are added in their order, and a subquery's result came late";
	}
	return true;
}

/*
 * Whether the sink takes a value for an aggregate; of floats it takes all, as long as their sum does not
 * overflow.
 */
static bool
sink_holds(const GhAggregate *aggregate, const GhSqlValue *value)
{
	return !gh_aggregate_is_sum(aggregate) || gh_class_is_float(aggregate->value_class) ||
		gh_aggregate_fits(aggregate, value->low, value->high);
}

/* Whether it does so for all aggregates that have this one's argument. */
static bool
argument_is_held(const GhAggregateNode *node, int a, const GhSqlValue *value)
{
	const GhAggregate *aggregates = node->aggregates;

	for (int other = 0; other < node->naggregates; other++)
		if (aggregates[other].kind != GH_AGGREGATE_COUNT_ROWS && aggregates[other].argument == aggregates[a].argument &&
			!sink_holds(&aggregates[other], value))
			return false;
	return true;
}

/*
 * A value that a vector has in a row; constants are there already.  Whoever reads it, too, has the same
 * value: a numeric and what it is rounded to are two vectors.
 */
static void
put_value(const GhEntered *entered, uint32 vector, uint32 row, const GhValueType *type, const GhSqlValue *value)
{
	uint32		place = entered->places[vector];
	const GhVector *to;

	if (place == 0)
		return;
	to = &entered->rows->vectors[place - 1];
	Assert(to->null[row] || value->kind == GH_SQL_NULL || gh_value_is_bytes(type, value) ||
		   to->low[row] == value->low);
	to->null[row] = value->kind == GH_SQL_NULL;
	to->low[row] = value->low;
	to->high[row] = value->high;
}

/* A value as PostgreSQL has it, which is not NULL, to an aggregate of a group of the node's own. */
static void
add_to_own(GhAggregateNode *node, uint32 group, int a, const GhSqlValue *value)
{
	Datum		datum = (Datum) 0;
	bool		null;

	if (node->specs[a].aggregate.kind > GH_AGGREGATE_COUNT)
		datum = gh_datum_of_value(&node->specs[a].argument, *value, &null);
	gh_aggregate_add_datum(node, group, a, datum);
}

/*
 * Puts a row into the vectors.  One that several aggregates, filters or keys read has the value that one of
 * them has; where none adds anything it is NULL, as good as any for a filter.
 */
static void
fill_row(GhAggregateNode *node, uint32 row)
{
	const GhSqlValue yes = {1, 0, GH_SQL_HELD};
	const GhValueType truth = {.typlen = sizeof(bool),.value_class = GH_CLASS_BOOL};
	const GhAggregate *aggregates = node->aggregates;
	const GhEntered *entered = node->entered;
	GhSqlValue *values = values_of(node, row);

	entered->rows->numbers[row] = row;
	for (uint32 g = 0; g < entered->rows->ngiven; g++)
		entered->rows->vectors[g].null[row] = 1;
	for (int a = 0; a < node->naggregates; a++)
	{
		GhSqlValue *value = &values[node->nkeys + a];

		if (value->kind == GH_SQL_NULL)
			continue;
		if (aggregates[a].kind != GH_AGGREGATE_COUNT_ROWS && !argument_is_held(node, a, value))
		{
			add_to_own(node, gh_aggregate_own_group(node, values, gh_set_of(node, a)), a, value);
			value->kind = GH_SQL_NULL;
			continue;
		}
		if (aggregates[a].filter != GH_AGGREGATE_NO_FILTER)
			put_value(entered, aggregates[a].filter, row, &truth, &yes);
	}
	for (int a = 0; a < node->naggregates; a++)
		if (values[node->nkeys + a].kind != GH_SQL_NULL && aggregates[a].kind != GH_AGGREGATE_COUNT_ROWS)
			put_value(entered, aggregates[a].argument, row, &node->specs[a].argument,
					  &values[node->nkeys + a]);
	for (int k = 0; k < node->nkeys; k++)
		put_value(entered, node->key_vectors[k], row, &node->key_types[k], &values[k]);
}

/*
 * The sink's groups become the node's own.  So a row with which a sum of floats overflows does so as it does
 * in PostgreSQL, where that is an error.
 */
static void
take_groups(GhAggregateNode *node)
{
	const char *records;
	Size		bytes;

	gh_final_groups_rewind(node->final);
	while ((records = gh_final_groups_take(node->final, &bytes)) != NULL)
		gh_groups_merge_scan(node->groups, records, bytes);
	gh_final_groups_clear(node->final);
}

/* A row to a group of the node's own. */
static void
add_entered(GhAggregateNode *node, uint32 row)
{
	const GhSqlValue *values = values_of(node, row);

	for (int s = 0; s < gh_aggregate_nsets(node); s++)
	{
		uint32		group = gh_aggregate_own_group(node, values, s);

		for (int a = 0; a < node->naggregates; a++)
			if (gh_set_of(node, a) == s && values[node->nkeys + a].kind != GH_SQL_NULL)
				add_to_own(node, group, a, &values[node->nkeys + a]);
	}
}

/* The rows enter the pipeline; those that it does not take go to groups of the node's own. */
static void
enter_all(GhAggregateNode *node)
{
	GhEntered  *entered = node->entered;
	uint32		nback;

	if (entered->rows == NULL)
		make_entered_rows(node);
	for (uint32 row = 0; row < entered->nrows; row++)
		fill_row(node, row);
	nback = gh_enter_columns(&node->fragment, node->fragment.program.stage->pipeline->plan->options.nsteps,
							 entered->rows, entered->nrows);
	if (nback > 0 && gh_aggregate_order_matters(&node->fragment))
		take_groups(node);
	for (uint32 i = 0; i < nback; i++)
		add_entered(node, entered->rows->numbers[i]);
}

/*
 * Those that wait enter, in front of whatever comes next.  Where there is no pipeline yet they may wait on;
 * not if `at_once`: then they are added to groups of the node's own.
 */
void
gh_enter_rows(GhAggregateNode *node, bool at_once)
{
	GhFragmentProgram *program = &node->fragment.program;
	GhEntered  *entered = node->entered;
	MemoryContext saved;

	if (entered == NULL || entered->nrows == 0 || (program->stage == NULL && !at_once))
		return;
	saved = MemoryContextSwitchTo(entered->context);
	if (program->stage != NULL)
		enter_all(node);
	else
		for (uint32 row = 0; row < entered->nrows; row++)
			add_entered(node, row);
	MemoryContextSwitchTo(saved);
	gh_enter_forget(node);
}

/* GhFragmentMethods */
void
gh_enter_waiting(GhFragment *fragment)
{
	gh_enter_rows(gh_aggregate_of(fragment), false);
}

/* None waits any more. */
void
gh_enter_forget(GhAggregateNode *node)
{
	GhEntered  *entered = node->entered;

	if (entered == NULL)
		return;
	MemoryContextReset(entered->context);
	entered->nrows = 0;
	entered->bytes = 0;
}

