/*
 * pipeline_check.c
 *		Accepts or refuses the parts of a pipeline's options, whose arrays were copied.
 *
 * What a step reads has been set: by the source, by a constant, by the instructions or by a probe in front
 * of it.  What a probe's conditions set is there for these alone, since a row without a match has not
 * been through them.
 */
#include "engine/pipeline/record_row.h"
#include "engine/pipeline/pipeline.h"

/* A check that is under way. */
typedef struct Check
{
	GhPipelinePlan *plan;
	const GhPipelineOptions *options;
	const GhProgram *program;
	const GhPipelineEngine *engine;
	GhTableDescribe describe;
	uint32_t	nvectors;
	uint8_t		all[GH_PROGRAM_VECTORS_MAX];	/* the classes that the program's check has told */
	uint8_t		held[GH_PROGRAM_VECTORS_MAX];	/* a GhClass; 0: not set so far */
	GhError    *error;
} Check;

static bool
is_held(const Check *check, uint32_t vector, uint8_t value_class)
{
	return vector < check->nvectors && value_class != 0 && check->held[vector] == value_class;
}

/* ------------------------------------------------------------------- source */

/* Is it a column of the source? */
static bool
is_of_source(const Check *check, uint32_t column)
{
	return gh_program_columns(check->program)[column].attribute <= check->options->source.natts;
}

/* The class of what a group's part is, or 0. */
static uint8_t
group_class(const GhPipelineOptions *groups, GhGroupColumn column, uint8_t wanted)
{
	const GhGroupsSink *sink = &groups->sink.groups;
	const GhAggregate *aggregate;

	if (column.part == GH_GROUP_KEY)
		return column.number < sink->nkeys ? sink->keys[column.number].value_class : 0;
	if (column.number >= sink->naggregates)
		return 0;
	aggregate = &sink->aggregates[column.number];
	if (column.part == GH_GROUP_COUNT)
		return GH_CLASS_INT;
	if (column.part != GH_GROUP_VALUE || aggregate->kind <= GH_AGGREGATE_COUNT || gh_is_text_extreme(aggregate))
		return 0;
	/* the sum of INT has 128 bits */
	if (aggregate->value_class == GH_CLASS_INT && gh_aggregate_is_sum(aggregate) && wanted == GH_CLASS_INT128)
		return GH_CLASS_INT128;
	return aggregate->value_class;
}

static GhStatus
check_source_columns(Check *check)
{
	const GhPipelineSource *source = &check->options->source;
	const GhColumn *columns = gh_program_columns(check->program);

	for (uint32_t i = 0; i < check->program->ncolumns; i++)
	{
		uint32_t	n = columns[i].attribute;
		uint8_t		there = check->all[i];

		if (!is_of_source(check, i))
			continue;
		if (n == 0 && !gh_source_has_pages(source))
			return gh_error_set(check->error, GH_INVALID, "column %u of a pipeline is a tuple's place, and there are "
								"no tuples", i);
		if (source->kind == GH_SOURCE_GROUPS)
			there = group_class(&source->groups->plan->options, source->columns[n - 1], check->all[i]);
		if (there != check->all[i])
			return gh_error_set(check->error, GH_INVALID, "column %u of a pipeline is of class %d, and its source's "
								"of %d", i, check->all[i], there);
		check->held[i] = check->all[i];
	}
	return GH_OK;
}

/* The shape of a page has the columns whose attributes are its tuples'. */
static GhStatus
make_shape(Check *check)
{
	GhPipelinePlan *plan = check->plan;
	const GhPipelineSource *source = &check->options->source;
	const GhColumn *columns = gh_program_columns(check->program);
	GhColumn	own[GH_PROGRAM_VECTORS_MAX] = {0}; /* none at all may be passed on */
	uint32_t	vectors[GH_PROGRAM_VECTORS_MAX];
	uint32_t	n = 0;
	GhStatus	status;

	for (uint32_t i = 0; i < check->program->ncolumns; i++)
		if (is_of_source(check, i))
		{
			vectors[n] = i;
			own[n++] = columns[i];
		}
	status = gh_page_shape_init(&plan->shape, source->page_bytes, source->natts, source->attributes, n, own,
								check->error);
	plan->shape.leaves = source->kind == GH_SOURCE_LEAVES;
	if (plan->shape.leaves != 0 && plan->shape.natts > GH_LEAF_ATTRIBUTES)
		return gh_error_set(check->error, GH_INVALID, "a pipeline reads attribute %u of a leaf page's entries",
							plan->shape.natts);
	/* the shape numbers the columns that it was given */
	for (uint32_t i = 0; status == GH_OK && i < plan->shape.ncolumns; i++)
		plan->shape.columns[i].vector = vectors[plan->shape.columns[i].vector];
	if (status == GH_OK && plan->shape.tids != 0)
		plan->shape.tids = vectors[plan->shape.tids - 1] + 1;
	return status;
}

static GhStatus
check_source(Check *check)
{
	const GhPipelineSource *source = &check->options->source;
	const GhPipeline *groups = source->groups;
	GhStatus	status;

	if (source->kind == GH_SOURCE_GROUPS &&
		(groups->engine != check->engine || groups->plan->options.sink.kind != GH_SINK_GROUPS))
		return gh_error_set(check->error, GH_INVALID, "a pipeline's source is no groups of a pipeline of this engine");
	status = check_source_columns(check);
	if (status == GH_OK && gh_source_has_pages(source))
		status = make_shape(check);
	return status;
}

/* -------------------------------------------------------------------- steps */

/* `whose`: the number of a probe, or -1, the table that is made. */
static GhStatus
check_parts(Check *check, const GhKeyPart *parts, uint32_t nparts, int whose)
{
	uint32_t	bits = 0;

	for (uint32_t k = 0; k < nparts; k++)
	{
		const GhKeyPart *part = &parts[k];

		if (!is_held(check, part->vector, GH_CLASS_INT))
			return gh_error_set(check->error, GH_INVALID, "part %u of the key of probe %d of a pipeline (-1: its table) "
								"is vector %d, which is no integer that is set", k, whose, part->vector);
		if (part->bits == 0 || part->bits > 64 || part->unused != 0)
			return gh_error_set(check->error, GH_INVALID, "part %u of the key of probe %d of a pipeline (-1: its table) "
								"has %d bits", k, whose, part->bits);
		bits += part->bits;
	}
	if (bits > 64)
		return gh_error_set(check->error, GH_INVALID, "the key of probe %d of a pipeline (-1: its table) has %u bits, "
							"of 64 at most", whose, bits);
	return GH_OK;
}

static GhStatus
check_fills(Check *check, uint32_t p)
{
	const GhProbe *probe = &check->options->probes[p];
	const GhTableShape *table = &check->plan->probed[p];

	for (uint32_t f = 0; f < probe->nfills; f++)
	{
		const GhProbeFill *fill = &probe->fills[f];

		if (fill->column >= check->program->ncolumns || is_of_source(check, fill->column) ||
			check->held[fill->column] != 0)
			return gh_error_set(check->error, GH_INVALID, "probe %u of a pipeline fills column %d, which is none, the "
								"source's or filled already", p, fill->column);
		if (fill->kept >= table->nkept || table->kept[fill->kept].value_class != check->all[fill->column])
			return gh_error_set(check->error, GH_INVALID, "probe %u of a pipeline fills column %d with value %d of its "
								"table, which is not of class %d", p, fill->column, fill->kept,
								check->all[fill->column]);
		check->held[fill->column] = check->all[fill->column];
	}
	return GH_OK;
}

static bool
keeps_the_same(const GhTableShape *a, const GhTableShape *b)
{
	bool		same = a->nkept == b->nkept;

	for (uint32_t k = 0; same && k < a->nkept; k++)
		same = a->kept[k].value_class == b->kept[k].value_class && a->kept[k].bytes == b->kept[k].bytes;
	return same;
}

/* Keys of a probe whose rows are in another table, and that one; some key may have several there, too. */
static GhStatus
check_changed(Check *check, uint32_t p)
{
	const GhProbe *probe = &check->options->probes[p];
	GhTableShape *table = &check->plan->probed[p];
	GhTableShape keys;
	GhTableShape instead;

	if (probe->changed == NULL && probe->instead == NULL)
		return GH_OK;
	if (probe->changed == NULL || probe->marks != NULL || !check->describe(probe->changed, &keys))
		return gh_error_set(check->error, GH_INVALID, "probe %u of a pipeline has rows of other keys, without a table of "
							"these, or with marks", p);
	if (probe->instead == NULL)
		return GH_OK;
	if (!check->describe(probe->instead, &instead) || !keeps_the_same(table, &instead))
		return gh_error_set(check->error, GH_INVALID, "probe %u of a pipeline has a table of other rows that do not keep "
							"what those of its table do", p);
	table->several |= instead.several;
	return GH_OK;
}

static GhStatus
check_probe(Check *check, uint32_t p)
{
	const GhProbe *probe = &check->options->probes[p];
	GhTableShape *table = &check->plan->probed[p];
	GhStatus	status;

	if (probe->kind < GH_PROBE_INNER || probe->kind > GH_PROBE_ANTI)
		return gh_error_set(check->error, GH_INVALID, "probe %u of a pipeline is of kind %u", p, probe->kind);
	if (probe->table == NULL || !check->describe(probe->table, table))
		return gh_error_set(check->error, GH_INVALID, "probe %u of a pipeline has no table of this engine that can be "
							"probed", p);
	if (probe->marks != NULL && (!table->numbered || probe->kind > GH_PROBE_LEFT))
		return gh_error_set(check->error, GH_INVALID, "probe %u of a pipeline, of kind %u, marks matches of a table "
							"whose rows are %s", p, probe->kind, table->numbered ? "numbered" : "not numbered");
	status = check_parts(check, probe->parts, probe->nparts, (int) p);
	if (status == GH_OK)
		status = check_fills(check, p);
	if (status == GH_OK)
		status = check_changed(check, p);
	return status;
}

/* What a probe has filled, or its conditions have set, and is not there behind it. */
static void
forget_probe(Check *check, uint32_t p, uint32_t begin, uint32_t end)
{
	const GhProbe *probe = &check->options->probes[p];

	for (uint32_t i = begin; i < end; i++)
	{
		const GhInstruction *in = &gh_program_instructions(check->program)[i];

		if (gh_program_result_class(in) != 0)
			check->held[in->result] = 0;
	}
	for (uint32_t f = 0; probe->kind > GH_PROBE_LEFT && f < probe->nfills; f++)
		check->held[probe->fills[f].column] = 0;
}

static GhStatus
check_instructions(Check *check, uint32_t begin, uint32_t end, bool pair)
{
	for (uint32_t i = begin; i < end; i++)
	{
		const GhInstruction *in = &gh_program_instructions(check->program)[i];
		uint8_t		result = gh_program_result_class(in);

		for (uint32_t a = 0; a < gh_program_args(in); a++)
			if (check->held[in->args[a]] == 0)
				return gh_error_set(check->error, GH_INVALID, "instruction %u of a pipeline reads vector %d, which "
									"nothing has set", i, in->args[a]);
		if (pair && result != 0 && check->held[in->result] != 0)
			return gh_error_set(check->error, GH_INVALID, "instruction %u of a pipeline, on a pair, sets vector %d once "
								"more", i, in->result);
		if (result != 0)
			check->held[in->result] = result;
	}
	return GH_OK;
}

static GhStatus
check_steps(Check *check)
{
	const GhPipelineOptions *options = check->options;
	uint32_t	begin = 0;
	uint32_t	probed = 0;

	for (uint32_t s = 0; s < options->nsteps; s++)
	{
		const GhStep *step = &options->steps[s];
		GhStatus	status = GH_OK;

		if (step->end < begin || step->end > check->program->ninstructions || step->probe > options->nprobes)
			return gh_error_set(check->error, GH_INVALID, "step %u of a pipeline, with probe %u, ends at instruction %u of %u",
								s, step->probe, step->end, check->program->ninstructions);
		/* each once, in their order: what a table fills is one column */
		if (step->probe != 0 && step->probe != ++probed)
			return gh_error_set(check->error, GH_INVALID, "step %u of a pipeline is probe %u in place of %u", s,
								step->probe, probed);
		if (step->probe != 0)
			status = check_probe(check, step->probe - 1);
		if (status == GH_OK)
			status = check_instructions(check, begin, step->end, step->probe != 0);
		if (status != GH_OK)
			return status;
		if (step->probe != 0)
			forget_probe(check, step->probe - 1, begin, step->end);
		begin = step->end;
	}
	if (begin != check->program->ninstructions || probed != options->nprobes)
		return gh_error_set(check->error, GH_INVALID, "the steps of a pipeline have %u of %u instructions and %u of %u "
							"probes", begin, check->program->ninstructions, probed, options->nprobes);
	return GH_OK;
}

/* --------------------------------------------------------------------- sink */

static bool
multiplies(const Check *check)
{
	for (uint32_t p = 0; p < check->options->nprobes; p++)
		if (gh_probe_multiplies(check->plan, p))
			return true;
	return false;
}

static GhStatus
check_keys(Check *check)
{
	uint32_t	nkeys;
	const GhRecordKey *keys = gh_pipeline_keys(check->options, &nkeys);
	bool		groups = check->options->sink.kind == GH_SINK_GROUPS;

	for (uint32_t k = 0; k < nkeys; k++)
	{
		if (!is_held(check, keys[k].vector, keys[k].value_class))
			return gh_error_set(check->error, GH_INVALID, "key %u of a pipeline is vector %d, which is not of class %d",
								k, keys[k].vector, keys[k].value_class);
		if (keys[k].padded > (groups && keys[k].value_class == GH_CLASS_TEXT))
			return gh_error_set(check->error, GH_INVALID, "key %u of a pipeline is padded and of class %d", k,
								keys[k].value_class);
	}
	return GH_OK;
}

/* Of a set.  The least and the greatest of texts have the arguments that counts of them have. */
static GhStatus
check_aggregates(Check *check, uint32_t set)
{
	const GhGroupsSink *sink = &check->options->sink.groups;
	const GhAggregate *aggregates = sink->aggregates + set * sink->naggregates;
	GhAggregate counted[GH_AGGREGATES_MAX];

	for (uint32_t a = 0; a < sink->naggregates; a++)
	{
		counted[a] = aggregates[a];
		if (aggregates[a].kind != sink->aggregates[a].kind || aggregates[a].value_class != sink->aggregates[a].value_class ||
			aggregates[a].argument != sink->aggregates[a].argument)
			return gh_error_set(check->error, GH_INVALID, "aggregate %u of a pipeline is another one in set %u", a, set);
		if (!gh_is_text_extreme(&counted[a]))
			continue;
		if (!check->engine->compares_texts)
			return gh_error_set(check->error, GH_UNSUPPORTED, "aggregate %u of a pipeline compares texts", a);
		if (sink->order.compare == NULL)
			return gh_error_set(check->error, GH_INVALID, "aggregate %u of a pipeline compares texts in no order", a);
		counted[a].kind = GH_AGGREGATE_COUNT;
		check->plan->keeps_texts = true;
	}
	return gh_aggregates_check(counted, sink->naggregates, check->held, check->nvectors, check->error);
}

/* The keys of other sets than the first. */
static GhStatus
check_sets(const Check *check)
{
	const GhGroupsSink *sink = &check->options->sink.groups;

	if (gh_sink_sets(sink) == 1)
		return GH_OK;
	if (!check->engine->adds_sets || sink->in_order == 1)
		return gh_error_set(check->error, GH_UNSUPPORTED, "rows of a pipeline are added for %u sets", sink->nsets);
	for (uint32_t k = 0; k < gh_sink_sets(sink) * sink->nkeys; k++)
	{
		const GhRecordKey *first = &sink->keys[k % sink->nkeys];

		if (sink->keys[k].value_class != first->value_class || sink->keys[k].padded != first->padded ||
			!is_held(check, sink->keys[k].vector, first->value_class))
			return gh_error_set(check->error, GH_INVALID, "key %u of a pipeline is another one in set %u",
								k % sink->nkeys, k / sink->nkeys);
	}
	return GH_OK;
}

static GhStatus
check_groups(Check *check)
{
	const GhGroupsSink *sink = &check->options->sink.groups;
	GhStatus	status = check_sets(check);

	if (status != GH_OK)
		return status;

	if (sink->in_order > 1)
		return gh_error_set(check->error, GH_INVALID, "a pipeline keeps rows in order: %u", sink->in_order);
	if (sink->in_order == 1 && multiplies(check))
		return gh_error_set(check->error, GH_UNSUPPORTED, "rows that become several in a pipeline have no order");
	/* whether a tuple is visible is found out later */
	if (sink->in_order == 1 && check->options->source.seen_before != 0)
		return gh_error_set(check->error, GH_UNSUPPORTED, "rows of pages that are hinted have no order in a pipeline");
	for (uint32_t a = 0; a < sink->naggregates; a++)
		if (sink->in_order == 0 && sink->aggregates[a].kind == GH_AGGREGATE_SUM &&
			sink->aggregates[a].value_class == GH_CLASS_FLOAT4)
			return gh_error_set(check->error, GH_UNSUPPORTED, "aggregate %u of a pipeline is a sum of float4, in no order",
								a);
	for (uint32_t s = 0; status == GH_OK && s < gh_sink_sets(sink); s++)
		status = check_aggregates(check, s);
	return status;
}

static bool
is_kept(const Check *check, const GhKept *kept)
{
	bool		integer = kept->value_class == GH_CLASS_INT;

	return is_held(check, kept->vector, kept->value_class) &&
		(integer ? kept->bytes == 2 || kept->bytes == 4 || kept->bytes == 8 : kept->bytes == 0);
}

static GhStatus
check_table(Check *check)
{
	const GhTableSink *sink = &check->options->sink.table;
	GhStatus	status = check_parts(check, sink->parts, sink->nparts, -1);

	if (status != GH_OK)
		return status;
	for (uint32_t k = 0; k < sink->nkept; k++)
		if (!is_kept(check, &sink->kept[k]))
			return gh_error_set(check->error, GH_INVALID, "value %u of a pipeline's table is vector %d, which is not of "
								"class %d in %d bytes", k, sink->kept[k].vector, sink->kept[k].value_class,
								sink->kept[k].bytes);
	if (sink->matches < GH_MATCHES_ALL || sink->matches > GH_MATCHES_ANY || sink->numbered > 1 ||
		(sink->back_vector != 0 && !is_held(check, sink->back_vector - 1, GH_CLASS_BOOL)))
		return gh_error_set(check->error, GH_INVALID, "probes of a pipeline's table are to find %u, its rows are numbered "
							"(%u), and vector %u hands back", sink->matches, sink->numbered, sink->back_vector);
	return GH_OK;
}

static GhStatus
check_sink(Check *check)
{
	switch (check->options->sink.kind)
	{
		case GH_SINK_TABLE:
			return check_table(check);
		case GH_SINK_PLACES:
			if (multiplies(check))
				return gh_error_set(check->error, GH_UNSUPPORTED, "rows whose places are listed become several");
			return GH_OK;
		case GH_SINK_ROWS:
			return check_keys(check);
		default:
			{
				GhStatus	status = check_keys(check);

				return status == GH_OK ? check_groups(check) : status;
			}
	}
}

/* --------------------------------------------------- what later steps read */

static void
need(uint64_t *needed, uint32_t vector)
{
	needed[vector / 64] |= UINT64_C(1) << vector % 64;
}

static void
need_not(uint64_t *needed, uint32_t vector)
{
	needed[vector / 64] &= ~(UINT64_C(1) << vector % 64);
}

static void
need_sink(const GhPipelineOptions *options, uint64_t *needed)
{
	uint32_t	nkeys;
	const GhRecordKey *keys = gh_pipeline_keys(options, &nkeys);
	uint32_t	nsets = options->sink.kind == GH_SINK_GROUPS ? gh_sink_sets(&options->sink.groups) : 1;

	for (uint32_t k = 0; k < nsets * nkeys; k++)
		need(needed, keys[k].vector);
	for (uint32_t a = 0; options->sink.kind == GH_SINK_GROUPS && a < nsets * options->sink.groups.naggregates; a++)
	{
		const GhAggregate *aggregate = &options->sink.groups.aggregates[a];

		if (aggregate->kind != GH_AGGREGATE_COUNT_ROWS)
			need(needed, aggregate->argument);
		if (aggregate->filter != GH_AGGREGATE_NO_FILTER)
			need(needed, aggregate->filter);
	}
	if (options->sink.kind != GH_SINK_TABLE)
		return;
	for (uint32_t k = 0; k < options->sink.table.nparts; k++)
		need(needed, options->sink.table.parts[k].vector);
	for (uint32_t k = 0; k < options->sink.table.nkept; k++)
		need(needed, options->sink.table.kept[k].vector);
	if (options->sink.table.back_vector != 0)
		need(needed, options->sink.table.back_vector - 1);
}

static void
need_step(const GhPipelineOptions *options, uint32_t s, uint64_t *needed)
{
	const GhStep *step = &options->steps[s];
	const GhProbe *probe = step->probe != 0 ? &options->probes[step->probe - 1] : NULL;

	for (uint32_t i = step->end; i-- > gh_step_begin(options, s);)
	{
		const GhInstruction *in = &gh_program_instructions(options->program)[i];

		if (gh_program_result_class(in) != 0)
			need_not(needed, in->result);
		for (uint32_t a = 0; a < gh_program_args(in); a++)
			need(needed, in->args[a]);
	}
	for (uint32_t f = 0; probe != NULL && f < probe->nfills; f++)
		need_not(needed, probe->fills[f].column);
	for (uint32_t k = 0; probe != NULL && k < probe->nparts; k++)
		need(needed, probe->parts[k].vector);
}

static void
fill_needed(GhPipelinePlan *plan)
{
	const GhPipelineOptions *options = &plan->options;
	uint32_t	first = options->program->ncolumns;

	need_sink(options, plan->needed[options->nsteps]);
	for (uint32_t s = options->nsteps; s-- > 0;)
	{
		memcpy(plan->needed[s], plan->needed[s + 1], sizeof(plan->needed[s]));
		need_step(options, s, plan->needed[s]);
	}
	for (uint32_t s = 0; s <= options->nsteps; s++)
		for (uint32_t c = 0; c < options->program->nconstants; c++)
			need_not(plan->needed[s], first + c);
}

/* Vectors change their class from one instruction to the next. */
static void
fill_wide(GhPipelinePlan *plan, const uint8_t *classes)
{
	const GhProgram *program = plan->options.program;

	for (uint32_t v = 0; v < gh_program_vectors(program); v++)
		plan->wide[v] = gh_class_has_high(classes[v]);
	for (uint32_t i = 0; i < program->ninstructions; i++)
	{
		const GhInstruction *in = &gh_program_instructions(program)[i];
		uint8_t		result = gh_program_result_class(in);

		if (result != 0 && gh_class_has_high(result))
			plan->wide[in->result] = 1;
	}
}

GhStatus
gh_pipeline_check(GhPipelinePlan *plan, const GhPipelineEngine *engine, GhTableDescribe describe, GhError *error)
{
	const GhPipelineOptions *options = &plan->options;
	Check		check = {plan, options, options->program, engine, describe, 0, {0}, {0}, error};
	GhStatus	status = gh_program_check_classes(options->program, options->program_bytes, check.all, error);

	if (status != GH_OK)
		return status;
	check.nvectors = gh_program_vectors(options->program);
	for (uint32_t c = 0; c < options->program->nconstants; c++)
		check.held[options->program->ncolumns + c] = check.all[options->program->ncolumns + c];
	status = check_source(&check);
	if (status == GH_OK)
		status = check_steps(&check);
	if (status == GH_OK)
		status = check_sink(&check);
	if (status != GH_OK)
		return status;
	fill_wide(plan, check.all);
	fill_needed(plan);
	return GH_OK;
}
