/*
 * test_pipeline_refused.c
 *		Pipelines that are refused.
 */
#include "pipeline_bench.h"

static void
expect_create(Context *c, const GhPipelineOptions *options, GhStatus expected, const char *what)
{
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	GhPipeline *pipeline = NULL;
	GhStatus	status;

	host_init(&state, &host);
	status = c->engine->pipelines->create(&host, options, &pipeline, &error);
	CHECK_STATUS(c, what, status, expected);
	CHECK(c, status == GH_OK || (error.status == status && error.message[0] != '\0'), "%s: no message", what);
	if (status == GH_OK)
		c->engine->pipelines->destroy(pipeline);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
}

/* With a field set to a value, the pipeline is refused; and is not without. */
#define REFUSED_AS(target, value, status) \
	do { \
		__typeof__(target) was = target; \
		target = value; \
		expect_create(c, &stage->options, status, #target " = " #value); \
		target = was; \
	} while (0)
#define REFUSED(target, value) REFUSED_AS(target, value, GH_INVALID)

static void
refused_parts(Context *c)
{
	Bench		bench;
	Stage	   *stage;

	if (bench_open(c, &bench))
	{
		stage = bench.stage;
		expect_create(c, &stage->options, GH_OK, "a pipeline");
		expect_create(c, NULL, GH_INVALID, "no options");
		REFUSED(stage->options.program, NULL);
		REFUSED(stage->options.program_bytes, 4);
		REFUSED(stage->options.program_bytes, stage->options.program_bytes - 8);
		REFUSED(stage->options.program_bytes, GH_PROGRAM_BYTES_MAX + 1);
		REFUSED(stage->options.device, -1);
		REFUSED(stage->options.steps, NULL);
		REFUSED(stage->options.nsteps, 2);
		REFUSED(stage->options.nsteps, 0);
		REFUSED(stage->options.nsteps, GH_STEPS_MAX + 1);
		REFUSED(stage->options.probes, NULL);
		REFUSED(stage->options.nprobes, 0);
		REFUSED(stage->options.nprobes, 2);
		REFUSED(stage->options.nprobes, GH_PROBES_MAX + 1);
		REFUSED(stage->steps[0].end, 4);
		REFUSED(stage->steps[0].end, 0);	/* the probe's conditions set a vector that is read behind */
		REFUSED(stage->steps[1].end, 0);
		REFUSED(stage->steps[2].end, stage->program->ninstructions - 1);
		REFUSED(stage->steps[2].end, stage->program->ninstructions + 1);
		REFUSED(stage->steps[1].probe, 0);
		REFUSED(stage->steps[1].probe, 2);
		REFUSED(stage->steps[2].probe, 1);
		REFUSED_AS(stage->options.memory_limit, 1, GH_LIMIT);
		expect_create(c, &stage->options, GH_OK, "a pipeline again");
	}
	bench_close(c, &bench);
}

static void
refused_probes(Context *c)
{
	Bench		bench;
	Stage	   *stage;
	GhProbe    *probe;

	if (bench_open(c, &bench))
	{
		stage = bench.stage;
		probe = &stage->probes[0];
		REFUSED(probe->table, NULL);
		REFUSED(probe->table, bench.other);
		REFUSED(probe->kind, 0);
		REFUSED(probe->kind, GH_PROBE_ANTI + 1);
		/* what a semi join fills is not there behind it */
		REFUSED(probe->kind, GH_PROBE_SEMI);
		REFUSED(probe->nparts, 0);
		REFUSED(probe->nparts, GH_KEY_PARTS_MAX + 1);
		REFUSED(probe->parts, NULL);
		REFUSED(stage->probe_parts[0][0].bits, 0);
		REFUSED(stage->probe_parts[0][0].bits, 65);
		REFUSED(stage->probe_parts[0][0].unused, 1);
		REFUSED(stage->probe_parts[0][0].vector, VECTORS);
		REFUSED(stage->probe_parts[0][0].vector, TEXT);
		REFUSED(stage->probe_parts[0][0].vector, FILLED);
		REFUSED(stage->probe_parts[0][0].vector, TOTAL);
		REFUSED(probe->fills, NULL);
		REFUSED(probe->nfills, GH_PROGRAM_VECTORS_MAX + 1);
		REFUSED(probe->nfills, 1);	/* and the key of groups is set by nothing */
		REFUSED(stage->fills[0][0].column, NUMBER);
		REFUSED(stage->fills[0][0].column, CONSTANT);
		REFUSED(stage->fills[0][0].column, SUM);
		REFUSED(stage->fills[0][0].column, VECTORS);
		REFUSED(stage->fills[0][1].column, FILLED);
		REFUSED(stage->fills[0][1].kept, 0);
		REFUSED(stage->fills[0][1].kept, 2);
		REFUSED(probe->instead, bench.unnumbered->made.table);
		REFUSED(probe->changed, bench.other);
		probe->changed = bench.unnumbered->made.table;
		expect_create(c, &stage->options, GH_OK, "changed keys");
		REFUSED(probe->instead, bench.other);
		REFUSED(probe->marks, bench.marks);
		probe->changed = NULL;
		probe->marks = bench.marks;
		expect_create(c, &stage->options, GH_OK, "marks");
		REFUSED(probe->table, bench.unnumbered->made.table);
		REFUSED(probe->table, bench.second->made.table);
		REFUSED(probe->kind, GH_PROBE_ANTI);
		probe->marks = NULL;
		expect_create(c, &stage->options, GH_OK, "a pipeline again");
		probe->table = bench.unnumbered->made.table;
		expect_create(c, &stage->options, GH_OK, "a table whose rows have no numbers");
	}
	bench_close(c, &bench);
}

/* Instructions that read what is not set, or set what is. */
static void
refused_instructions(Context *c)
{
	Bench		bench;
	Stage	   *stage;
	GhInstruction *in;

	if (bench_open(c, &bench))
	{
		stage = bench.stage;
		in = (GhInstruction *) gh_program_instructions(stage->program);
		REFUSED(in[0].args[0], FILLED);
		REFUSED(in[0].args[0], LESS);
		REFUSED(in[3].args[0], TEXT);
		/* of a pair: what is set there is not there behind the probe, nor may it be set already */
		REFUSED(in[1].result, SUM);
		in[3].op = GH_OP_AND;
		in[3].op_class = GH_CLASS_BOOL;
		in[3].width = 0;
		in[3].args[0] = in[3].args[1] = TRUTH;
		stage->aggregates[0].kind = GH_AGGREGATE_BOOL_AND;
		stage->aggregates[0].value_class = GH_CLASS_BOOL;
		expect_create(c, &stage->options, GH_OK, "another instruction");
		REFUSED(in[3].args[1], LESS);
		stage->probes[0].kind = GH_PROBE_LEFT;
		REFUSED(in[3].args[1], LESS);
		expect_create(c, &stage->options, GH_OK, "a left join");
	}
	bench_close(c, &bench);
}

/* ------------------------------------------------------------ sinks and sources */

/* The greatest of texts, by an order that somebody has to give. */
static void
refused_text_order(Context *c, Stage *stage)
{
	GhAggregate saved = stage->aggregates[0];

	if (!c->engine->pipelines->compares_texts)
		return;
	stage->aggregates[0].kind = GH_AGGREGATE_MAX;
	stage->aggregates[0].value_class = GH_CLASS_TEXT;
	stage->aggregates[0].argument = TEXT;
	stage->options.sink.groups.order = model_order;
	expect_create(c, &stage->options, GH_OK, "the greatest of texts");
	REFUSED(stage->options.sink.groups.order.compare, NULL);
	stage->aggregates[0] = saved;
}

static void
refused_groups(Context *c)
{
	Bench		bench;
	Stage	   *stage;
	GhGroupsSink *sink;

	if (bench_open(c, &bench))
	{
		stage = bench.stage;
		sink = &stage->options.sink.groups;
		REFUSED(stage->options.sink.kind, 0);
		REFUSED(stage->options.sink.kind, GH_SINK_PLACES + 1);
		REFUSED(sink->keys, NULL);
		REFUSED(sink->nkeys, GH_VALUES_MAX + 1);
		REFUSED(sink->aggregates, NULL);
		REFUSED(sink->naggregates, GH_AGGREGATES_MAX + 1);
		REFUSED(sink->in_order, 2);
		REFUSED(stage->keys[0].value_class, GH_CLASS_INT);
		REFUSED(stage->keys[0].value_class, 0);
		REFUSED(stage->keys[0].padded, 2);
		REFUSED(stage->keys[0].vector, VECTORS);
		REFUSED(stage->aggregates[0].argument, LESS);
		REFUSED(stage->aggregates[0].argument, TEXT);
		REFUSED(stage->aggregates[0].filter, LESS);
		REFUSED(stage->aggregates[0].filter, NUMBER);
		refused_text_order(c, stage);
		stage->options.sink.kind = GH_SINK_ROWS;
		expect_create(c, &stage->options, GH_OK, "rows");
		REFUSED(stage->options.sink.rows.values, NULL);
		REFUSED(stage->options.sink.rows.nvalues, GH_VALUES_MAX + 1);
		REFUSED(stage->keys[0].padded, 1);
		REFUSED(stage->keys[0].vector, LESS);
		REFUSED(stage->keys[0].value_class, GH_CLASS_BPCHAR);
	}
	bench_close(c, &bench);
}

static void
refused_tables(Context *c)
{
	Bench		bench;
	Stage	   *stage;
	GhTableSink *sink;

	if (bench_open(c, &bench))
	{
		stage = bench.stage;
		sink = &stage->options.sink.table;
		stage->options.sink.kind = GH_SINK_TABLE;
		stage_part(stage, TOTAL, 32);
		stage_part(stage, FILLED, 32);
		stage_keep(stage, FILLED_TEXT, GH_CLASS_TEXT, 0);
		stage_keep(stage, NUMBER, GH_CLASS_INT, 4);
		expect_create(c, &stage->options, GH_OK, "a table");
		REFUSED(sink->nparts, 0);
		REFUSED(sink->nparts, GH_KEY_PARTS_MAX + 1);
		REFUSED(sink->parts, NULL);
		REFUSED(stage->table_parts[0].bits, 33);
		REFUSED(stage->table_parts[0].bits, 0);
		REFUSED(stage->table_parts[0].vector, FILLED_TEXT);
		REFUSED(stage->table_parts[0].vector, LESS);
		REFUSED(sink->kept, NULL);
		REFUSED(sink->nkept, GH_TABLE_KEPT_MAX + 1);
		REFUSED(stage->kept[0].bytes, 8);
		REFUSED(stage->kept[0].value_class, GH_CLASS_INT);
		REFUSED(stage->kept[0].vector, LESS);
		REFUSED(stage->kept[0].vector, VECTORS);
		REFUSED(stage->kept[1].bytes, 0);
		REFUSED(stage->kept[1].bytes, 1);
		REFUSED(stage->kept[1].bytes, 16);
		REFUSED(sink->matches, 0);
		REFUSED(sink->matches, 3);
		REFUSED(sink->numbered, 2);
		REFUSED(sink->back_vector, NUMBER + 1);
		REFUSED(sink->back_vector, LESS + 1);
		REFUSED(sink->back_vector, VECTORS + 1);
		REFUSED(sink->back_vector, UINT32_MAX);
		sink->back_vector = TRUTH + 1;
		expect_create(c, &stage->options, GH_OK, "a table that hands back");
	}
	bench_close(c, &bench);
}

static void
refused_sources(Context *c)
{
	Bench		bench;
	Stage	   *stage;
	GhPipelineSource *source;
	GhColumn   *columns;

	if (bench_open(c, &bench))
	{
		stage = bench.stage;
		source = &stage->options.source;
		columns = (GhColumn *) gh_program_columns(stage->program);
		REFUSED(source->kind, 0);
		REFUSED(source->kind, GH_SOURCE_LEAVES + 1);
		REFUSED(source->natts, GH_ATTRIBUTE_MAX + 1);
		REFUSED(source->natts, 0);	/* and nothing sets a column that is read */
		source->kind = GH_SOURCE_GROUPS;
		source->groups = bench.groups->pipeline;
		source->columns = stage->group_columns;
		source->natts = 2;
		stage->group_columns[0] = (GhGroupColumn) {GH_GROUP_VALUE, 1};
		stage->group_columns[1] = (GhGroupColumn) {GH_GROUP_KEY, 0};
		columns[TEXT].attribute = GH_ATTRIBUTE_MAX + 10;
		columns[TRUTH].attribute = 2;
		expect_create(c, &stage->options, GH_OK, "a source that is groups");
		REFUSED(source->columns, NULL);
		REFUSED(source->groups, NULL);
		REFUSED(columns[NUMBER].attribute, 2);
		REFUSED(columns[NUMBER].attribute, 0);
		REFUSED(stage->group_columns[0].part, 0);
		REFUSED(stage->group_columns[0].part, GH_GROUP_VALUE + 1);
		REFUSED(stage->group_columns[0].part, GH_GROUP_KEY);	/* which there is no second one of */
		REFUSED(stage->group_columns[0].number, 0);	/* a count of rows has no value */
		REFUSED(stage->group_columns[0].number, 2);
		REFUSED(stage->group_columns[1].part, GH_GROUP_COUNT);	/* an integer */
	}
	bench_close(c, &bench);
}

/*
 * No probe of a pipeline that lists places, or adds in order, may find several rows; nor is a sum of float4
 * in any order.
 */
static void
unsupported(Context *c)
{
	Bench		bench;
	Stage	   *several;
	Stage	   *stage;

	if (bench_open(c, &bench))
	{
		stage = bench.stage;
		stage->options.sink.kind = GH_SINK_PLACES;
		expect_create(c, &stage->options, GH_OK, "places");
		several = three_columns();
		several->options.sink.kind = GH_SINK_TABLE;
		stage_part(several, NUMBER, 1);
		stage_keep(several, NUMBER, GH_CLASS_INT, 8);
		stage_keep(several, TEXT, GH_CLASS_TEXT, 0);
		stage_finish(c, several);
		put_three_columns(several);
		(void) stage_run(c, several, &bench.host);
		REFUSED_AS(stage->probes[0].table, several->made.table, GH_UNSUPPORTED);
		stage->options.sink.kind = GH_SINK_GROUPS;
		stage->options.sink.groups.in_order = 1;
		REFUSED_AS(stage->probes[0].table, several->made.table, GH_UNSUPPORTED);
		REFUSED_AS(stage->options.source.seen_before, 1000, GH_UNSUPPORTED);
		stage_end(several);
		stage_end_table(several);
		stage_drop(c, several);
	}
	bench_close(c, &bench);
}

const Test	pipeline_refused_tests[] = {
	{"pipelines: options that are refused", refused_parts, false},
	{"pipelines: probes that are refused", refused_probes, false},
	{"pipelines: instructions that are refused", refused_instructions, false},
	{"pipelines: groups and rows that are refused", refused_groups, false},
	{"pipelines: tables that are refused", refused_tables, false},
	{"pipelines: sources that are refused", refused_sources, false},
	{"pipelines: what no engine need do", unsupported, false},
	{NULL, NULL, false}
};
