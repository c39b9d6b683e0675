/*
 * pipeline_bench.c
 *		Makes what the tests of refused pipelines and requests refuse parts of.
 */
#include "pipeline_bench.h"

Stage *
three_columns(void)
{
	Stage	   *stage = stage_make();

	stage->options.source.natts = 3;
	(void) stage_column(stage, GH_CLASS_INT, 1);
	(void) stage_column(stage, GH_CLASS_TEXT, 2);
	(void) stage_column(stage, GH_CLASS_BOOL, 3);
	return stage;
}

void
put_three_columns(Stage *stage)
{
	static const char text[] = "some text";

	for (uint32_t i = 0; i < 10; i++)
	{
		GhValue    *row = rows_add(&stage->source, NULL, false);

		model_blank(stage, row);
		row[NUMBER] = (GhValue) {i, 0, 0};
		row[TEXT] = (GhValue) {(uintptr_t) text, i, 0};
		row[TRUTH] = (GhValue) {i % 2, 0, 0};
	}
}

static Stage *
make_side(Context *c, Bench *bench, bool numbered)
{
	Stage	   *stage = three_columns();

	stage->options.sink.kind = GH_SINK_TABLE;
	stage->options.sink.table.numbered = numbered;
	stage_part(stage, NUMBER, 64);
	stage_keep(stage, NUMBER, GH_CLASS_INT, 8);
	stage_keep(stage, TEXT, GH_CLASS_TEXT, 0);
	stage_finish(c, stage);
	put_three_columns(stage);
	(void) stage_run(c, stage, &bench->host);
	stage_end(stage);
	return stage;
}

static void
make_stage(Context *c, Bench *bench)
{
	Stage	   *stage = three_columns();
	uint32_t	p = stage_probe(stage, &bench->table->made, GH_PROBE_INNER, true);

	(void) stage_constant(stage, GH_CLASS_INT, 7);
	(void) stage_constant(stage, GH_CLASS_INT, 0);
	stage->parts.constants[1].null = 1;
	(void) stage_compute(stage, GH_OP_ADD, GH_CLASS_INT, NUMBER, CONSTANT);
	stage_probe_part(stage, p, NUMBER, 64);
	stage_run_step(stage);
	stage_filter(stage, stage_compute(stage, GH_OP_LT, GH_CLASS_INT, FILLED, SUM));
	stage_probe_step(stage, p);
	(void) stage_compute(stage, GH_OP_ADD, GH_CLASS_INT, FILLED, SUM);
	stage_run_step(stage);
	stage->options.sink.kind = GH_SINK_GROUPS;
	stage_key(stage, FILLED_TEXT, GH_CLASS_TEXT);
	stage_aggregate(stage, GH_AGGREGATE_SUM, TOTAL, GH_CLASS_INT);
	stage_finish(c, stage);
	put_three_columns(stage);
	stage->engine = c->engine;
	stage->probes[p].table = bench->table->made.table;
	bench->stage = stage;
}

bool
bench_open(Context *c, Bench *bench)
{
	GhTableOptions options = {.key_size = 8,.value_size = 8,.multi = true};
	GhError		error = {0};

	memset(bench, 0, sizeof(*bench));
	host_init(&bench->state, &bench->host);
	if (no_pipelines(c))
		return false;
	bench->table = make_side(c, bench, true);
	bench->second = make_side(c, bench, true);
	bench->unnumbered = make_side(c, bench, false);
	bench->groups = three_columns();
	bench->groups->options.sink.kind = GH_SINK_GROUPS;
	stage_key(bench->groups, TRUTH, GH_CLASS_BOOL);
	stage_aggregate(bench->groups, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	stage_aggregate(bench->groups, GH_AGGREGATE_SUM, NUMBER, GH_CLASS_INT);
	stage_finish(c, bench->groups);
	put_three_columns(bench->groups);
	(void) stage_run(c, bench->groups, &bench->host);
	CHECK_STATUS(c, "a table of many values", c->engine->table_create(&bench->host, &options, &bench->other,
																	  &error), GH_OK);
	CHECK_STATUS(c, "marks", c->engine->pipelines->marks_create(&bench->host, bench->table->made.table,
																&bench->marks,
																&error), GH_OK);
	if (c->failures == 0)
		make_stage(c, bench);
	return c->failures == 0;
}

void
bench_close(Context *c, Bench *bench)
{
	if (bench->stage != NULL)
		stage_end(bench->stage);
	if (bench->groups != NULL)
		stage_end(bench->groups);
	if (bench->marks != NULL)
		c->engine->pipelines->marks_destroy(bench->marks);
	if (bench->table != NULL)
		stage_end_table(bench->table);
	if (bench->second != NULL)
		stage_end_table(bench->second);
	if (bench->unnumbered != NULL)
		stage_end_table(bench->unnumbered);
	if (bench->other != NULL)
		c->engine->table_destroy(bench->other);
	CHECK_U64(c, "bytes left", bench->state.allocated + bench->state.device_bytes, 0);
	stage_drop(c, bench->stage);
	stage_drop(c, bench->groups);
	stage_drop(c, bench->second);
	stage_drop(c, bench->unnumbered);
	stage_drop(c, bench->table);
}
