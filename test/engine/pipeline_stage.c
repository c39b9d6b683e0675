/*
 * pipeline_stage.c
 *		Puts the stages of tests of pipelines together, part by part, and lists the rows of their sources.
 */
#include "pipeline_model.h"

bool
no_pipelines(Context *c)
{
	if (c->engine->pipelines != NULL)
		return false;
	c->skip = "the engine has no pipelines";
	return true;
}

Stage *
stage_make(void)
{
	Stage	   *stage = make_memory(sizeof(Stage));

	memset(stage, 0, sizeof(*stage));
	memset(stage->born, 0xff, sizeof(stage->born));
	stage->options.source.kind = GH_SOURCE_COLUMNS;
	stage->cut = UINT64_MAX;
	stage->options.sink.table.matches = GH_MATCHES_ALL;
	return stage;
}

static void
drop_table(ModelTable *table)
{
	rows_drop(&table->rows);
	free(table->keys);
	free(table->has_key);
	free(table->back);
}

void
stage_drop(Context *c, Stage *stage)
{
	if (stage == NULL)
		return;
	if (stage->pages != NULL)
	{
		trial_drop(c, stage->pages);
		free(stage->pages);
	}
	for (uint32_t p = 0; p < STAGE_PROBES_MAX; p++)
		free(stage->matched[p]);
	drop_table(&stage->made);
	rows_drop(&stage->source);
	rows_drop(&stage->sink);
	free(stage->places);
	free(stage->untold);
	free(stage->groups);
	free(stage->program);
	free(stage);
}

/* ------------------------------------------------------------------ vectors */

uint32_t
stage_column(Stage *stage, uint8_t value_class, uint32_t attribute)
{
	static const uint8_t loads[] = {
		[GH_CLASS_BOOL] = GH_LOAD_BOOL, [GH_CLASS_INT] = GH_LOAD_INT8, [GH_CLASS_INT128] = GH_LOAD_NUMERIC,
		[GH_CLASS_FLOAT4] = GH_LOAD_FLOAT4, [GH_CLASS_FLOAT8] = GH_LOAD_FLOAT8, [GH_CLASS_TEXT] = GH_LOAD_TEXT
	};
	uint32_t	number = stage->parts.ncolumns++;

	stage->parts.columns[number] = (GhColumn) {.attribute = (uint16_t) attribute,.load = loads[value_class]};
	stage->classes[number] = value_class;
	if (attribute <= stage->options.source.natts)
		stage->born[number] = 0;
	return number;
}

void
stage_row(Stage *stage, const GhValue *values)
{
	GhValue    *row = rows_add(&stage->source, NULL, false);

	model_blank(stage, row);
	memcpy(row, values, stage->options.source.natts * sizeof(GhValue));
}

static uint32_t
constant_vector(Stage *stage, uint8_t value_class)
{
	uint32_t	vector = stage->parts.ncolumns + stage->parts.nconstants - 1;

	stage->classes[vector] = value_class;
	stage->born[vector] = 0;
	return vector;
}

uint32_t
stage_constant(Stage *stage, uint8_t value_class, uint64_t low)
{
	GhValue		value = {low, 0, 0};

	if (value_class == GH_CLASS_INT128)
		value.high = gh_sign_extension(low);
	(void) add_constant(&stage->parts, value_class, value);
	return constant_vector(stage, value_class);
}

uint32_t
stage_null(Stage *stage, uint8_t value_class)
{
	(void) add_constant(&stage->parts, value_class, (GhValue) {0, 0, 1});
	return constant_vector(stage, value_class);
}

uint32_t
stage_text(Stage *stage, const char *text)
{
	(void) add_text(&stage->parts, text, (uint32_t) strlen(text));
	return constant_vector(stage, GH_CLASS_TEXT);
}

uint32_t
stage_compute(Stage *stage, GhProgramOp op, uint8_t op_class, uint32_t a, uint32_t b)
{
	GhInstruction *in = add_instruction(&stage->parts, op, op_class, a, b, 0);

	in->result = (uint16_t) (in->result + stage->parts.ntemporaries++);
	if (op_class == GH_CLASS_INT && op >= GH_OP_ADD && op <= GH_OP_MOD)
		in->width = 8;
	stage->classes[in->result] = result_class(in);
	return in->result;
}

void
stage_filter(Stage *stage, uint32_t vector)
{
	(void) add_instruction(&stage->parts, GH_OP_FILTER, GH_CLASS_BOOL, vector, 0, 0);
}

/* -------------------------------------------------------------------- steps */

uint32_t
stage_probe(Stage *stage, ModelTable *table, GhProbeKind kind, bool fills)
{
	uint32_t	p = stage->options.nprobes++;
	GhProbe    *probe = &stage->probes[p];

	stage->probed[p] = table;
	probe->kind = kind;
	probe->parts = stage->probe_parts[p];
	probe->fills = stage->fills[p];
	for (uint32_t k = 0; fills && k < table->nkept; k++)
	{
		uint32_t	column = stage_column(stage, table->kept[k].value_class, GH_ATTRIBUTE_MAX + 1 +
										  stage->parts.ncolumns);

		stage->fills[p][probe->nfills++] = (GhProbeFill) {(uint16_t) column, (uint16_t) k};
	}
	return p;
}

void
stage_probe_part(Stage *stage, uint32_t probe, uint32_t vector, uint8_t bits)
{
	stage->probe_parts[probe][stage->probes[probe].nparts++] = (GhKeyPart) {(uint16_t) vector, bits, 0};
}

static void
end_step(Stage *stage, uint32_t probe)
{
	uint32_t	begin = stage->options.nsteps > 0 ? stage->steps[stage->options.nsteps - 1].end : 0;

	stage->steps[stage->options.nsteps++] = (GhStep) {stage->parts.ninstructions, probe};
	for (uint32_t i = begin; probe == 0 && i < stage->parts.ninstructions; i++)
		if (stage->parts.instructions[i].op != GH_OP_FILTER)
			stage->born[stage->parts.instructions[i].result] = stage->options.nsteps;
}

void
stage_run_step(Stage *stage)
{
	end_step(stage, 0);
}

void
stage_probe_step(Stage *stage, uint32_t probe)
{
	end_step(stage, probe + 1);
	for (uint32_t f = 0; stage->probes[probe].kind <= GH_PROBE_LEFT && f < stage->probes[probe].nfills; f++)
		stage->born[stage->fills[probe][f].column] = stage->options.nsteps;
}

/* --------------------------------------------------------------------- sink */

/* Of groups and rows alike. */
void
stage_key(Stage *stage, uint32_t vector, uint8_t value_class)
{
	GhSink	   *sink = &stage->options.sink;

	stage->keys[sink->groups.nkeys++] = (GhRecordKey) {(uint16_t) vector, value_class, 0};
	sink->rows.nvalues++;
	sink->groups.keys = sink->rows.values = stage->keys;
}

void
stage_aggregate(Stage *stage, GhAggregateKind kind, uint32_t vector, uint8_t value_class)
{
	GhGroupsSink *sink = &stage->options.sink.groups;

	sink->aggregates = stage->aggregates;
	stage->aggregates[sink->naggregates++] = (GhAggregate) {
		.kind = (uint8_t) kind,.value_class = value_class,.argument = (uint16_t) vector,
		.filter = GH_AGGREGATE_NO_FILTER
	};
}

void
stage_part(Stage *stage, uint32_t vector, uint8_t bits)
{
	GhTableSink *sink = &stage->options.sink.table;

	sink->parts = stage->table_parts;
	stage->table_parts[sink->nparts++] = (GhKeyPart) {(uint16_t) vector, bits, 0};
}

void
stage_keep(Stage *stage, uint32_t vector, uint8_t value_class, uint8_t bytes)
{
	GhTableSink *sink = &stage->options.sink.table;

	sink->kept = stage->kept;
	stage->kept[sink->nkept++] = (GhKept) {(uint16_t) vector, value_class, bytes};
}

/* ------------------------------------------------------------------- source */

void
stage_of_table(Stage *stage, ModelTable *table)
{
	uint32_t	p = stage_probe(stage, table, GH_PROBE_INNER, true);

	stage_probe_part(stage, p, stage_constant(stage, GH_CLASS_INT, 0), 64);
	stage_probe_step(stage, p);
	stage->marking[p] = true;
}

/* The columns of groups are the test's to set: their number is natts. */
void
stage_from_groups(Stage *stage, Stage *groups)
{
	stage->source_groups = groups;
	stage->options.source.kind = GH_SOURCE_GROUPS;
	stage->options.source.columns = stage->group_columns;
}

/* What PostgreSQL finds where an engine can read nothing. */
static GhValue
detoasted(uint8_t value_class)
{
	static const char text[] = "a text from elsewhere";
	GhValue		value = {1, 0, 0};

	if (value_class == GH_CLASS_TEXT)
		value = (GhValue) {(uintptr_t) text, sizeof(text) - 1, 0};
	else if (gh_class_is_float(value_class))
		value.low = UINT64_C(0x3fe0000000000000);
	return value;
}

static void
load_tuple(Stage *stage, uint32_t p, uint32_t t)
{
	const Trial *pages = stage->pages;
	GhValue    *values = rows_add(&stage->source, NULL, false);
	bool	   *failed = &stage->source.failed[stage->source.count - 1];

	model_blank(stage, values);
	for (uint32_t i = 0; i < stage->program->ncolumns; i++)
	{
		const GhColumn *column = &gh_program_columns(stage->program)[i];
		Written		written;

		if (column->attribute > stage->options.source.natts)
			continue;
		written = trial_value(pages, p, t, column);
		values[i] = (GhValue) {written.low, written.high, 0};
		values[i].null = written.kind == WRITTEN_NULL || written.kind == WRITTEN_MISSING;
		if (written.kind == WRITTEN_TEXT)
			values[i].low += (uintptr_t) pages->written[p].page;
		if (written.kind != WRITTEN_UNREADABLE &&
			(written.kind != WRITTEN_MISSING || column->missing != GH_MISSING_BACK))
			continue;
		values[i] = detoasted(stage->classes[i]);
		*failed = true;
	}
}

static void
load_pages(Stage *stage)
{
	const Trial *pages = stage->pages;
	uint64_t	most = 1;

	for (uint32_t p = 0; p < pages->npages; p++)
		most += pages->written[p].ntuples;
	stage->places = make_memory(most * sizeof(GhBackRow));
	stage->untold = make_memory(most);
	for (uint32_t p = 0; p < pages->npages; p++)
		for (uint32_t t = 0; t < pages->written[p].ntuples; t++)
		{
			const GhPageRef *page = &pages->pages[p];
			uint32_t	line = pages->written[p].numbers[t];
			GhTupleSeen	seen = GH_SEEN_VISIBLE;

			if (line > page->lines)
				continue;
			if (page->bitmap != GH_PAGE_ALL_LINES &&
				(pages->bitmaps[page->bitmap + (line - 1) / 64] >> (line - 1) % 64 & 1) == 0)
				continue;
			if (page->hinted != 0)
				seen = hinted_tuple(pages, p, t);
			if (seen == GH_SEEN_INVISIBLE)
				continue;
			stage->places[stage->source.count] = (GhBackRow) {p, (uint16_t) line, 0};
			stage->untold[stage->source.count] = seen == GH_SEEN_UNTOLD ? 1 + (line & 1) :
				pages->written[p].others[t] ? UNTOLD_ENTRY : 0;
			load_tuple(stage, p, t);
		}
}

static GhValue
group_value(const Stage *groups, const ModelGroup *group, GhGroupColumn column, uint8_t value_class,
			bool *failed)
{
	const GhAggregateState *state = &group->states[column.number];
	GhValue		value = {state->low, state->high, state->count == 0};

	if (column.part == GH_GROUP_KEY)
		return group->keys[column.number];
	if (column.part == GH_GROUP_COUNT)
		return (GhValue) {state->count, 0, 0};
	if (value_class == GH_CLASS_INT && !value.null && gh_aggregate_is_sum(&groups->aggregates[column.number]))
		*failed |= state->high != gh_sign_extension(state->low);
	return value;
}

static void
load_groups(Stage *stage)
{
	const Stage *groups = stage->source_groups;

	for (uint64_t row = 0; row < groups->ngroups; row++)
	{
		GhValue    *values = rows_add(&stage->source, NULL, false);

		model_blank(stage, values);
		for (uint32_t i = 0; i < stage->program->ncolumns; i++)
		{
			uint32_t	attribute = gh_program_columns(stage->program)[i].attribute;

			if (attribute > stage->options.source.natts)
				continue;
			values[i] = group_value(groups, &groups->groups[row], stage->group_columns[attribute - 1],
									stage->classes[i], &stage->source.failed[row]);
		}
	}
}

void
stage_finish(Context *c, Stage *stage)
{
	GhPipelineOptions *options = &stage->options;
	uint8_t		classes[GH_PROGRAM_VECTORS_MAX];
	GhError		error = {0};

	stage->program = build_program(&stage->parts);
	CHECK(c, gh_program_check_classes(stage->program, stage->program->bytes, classes, &error) == GH_OK,
		  "a stage's program: %s", error.message);
	options->program = stage->program;
	options->program_bytes = stage->program->bytes;
	options->steps = stage->steps;
	options->probes = stage->probes;
	for (uint32_t p = 0; p < options->nprobes; p++)
	{
		uint64_t	rows = stage->probed[p]->rows.count;

		stage->matched[p] = make_memory(rows);
		memset(stage->matched[p], 0, rows);
	}
	if (stage->pages != NULL)
	{
		options->source.kind = stage->pages->relation.leaves ? GH_SOURCE_LEAVES : GH_SOURCE_PAGES;
		options->source.page_bytes = stage->pages->relation.page_bytes;
		options->source.attributes = stage->pages->relation.attributes;
		options->source.seen_before = stage->pages->seen_before;
	}
	rows_init(&stage->source, gh_program_vectors(stage->program));
	rows_init(&stage->sink, gh_program_vectors(stage->program));
	if (stage->pages != NULL)
		load_pages(stage);
	else if (options->source.kind != GH_SOURCE_COLUMNS)
		load_groups(stage);
}
