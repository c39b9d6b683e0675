/*
 * pipeline_draw.c
 *		Draws stages for the random tests of pipelines.
 *
 * Keys of tables have few values, so that some match; and of what a source has no more is asked for than
 * the model can do in a moment.
 */
#include "pipeline_model.h"

#define DOMAINS 4
#define ROWS_MAX 3000			/* on the way at a time */

static const uint8_t domains[DOMAINS] = {2, 4, 6, 10};

/* A stage that is drawn, and vectors of it. */
typedef struct Draft
{
	Stage	   *stage;
	uint32_t	masks;			/* constants: the first of DOMAINS masks, and of their complements */
	uint32_t	zero;
	uint32_t	three;
	uint32_t	null;
	uint32_t	text;
	uint32_t	list;			/* of integers */
} Draft;

static bool
chance(Context *c, uint32_t percent)
{
	return random_below(c, 100) < percent;
}

/* ------------------------------------------------------------------ sources */

static void
draw_relation(Context *c, Relation *relation)
{
	static const uint8_t loads[] = {
		GH_LOAD_INT8, GH_LOAD_INT4, GH_LOAD_INT2, GH_LOAD_BOOL, GH_LOAD_FLOAT4, GH_LOAD_FLOAT8,
		GH_LOAD_NUMERIC, GH_LOAD_TEXT
	};
	static const int16_t lengths[] = {8, 4, 2, 1, 4, 8, -1, -1};

	relation->page_bytes = 8192;
	relation->natts = sizeof(loads);
	relation->nulls = chance(c, 50) ? 0 : 20;
	relation->odd = chance(c, 70) ? 0 : 5;
	relation->shorter = chance(c, 70) ? 0 : 10;
	for (uint32_t i = 0; i < sizeof(loads); i++)
	{
		relation->loads[i].load = loads[i];
		relation->loads[i].attribute = (uint16_t) (i + 1);
		relation->loads[i].missing = (uint8_t) random_below(c, 2);
		relation->attributes[i].length = lengths[i];
		relation->attributes[i].alignment = (uint8_t) (lengths[i] < 0 ? 4 : lengths[i]);
	}
}

static void
from_pages(Context *c, Stage *stage)
{
	Trial	   *pages = make_memory(sizeof(Trial));

	memset(pages, 0, sizeof(*pages));
	draw_relation(c, &pages->relation);
	trial_pages(c, pages, 1 + (uint32_t) random_below(c, 3));
	trial_ask(c, pages);
	if (chance(c, 30))
		trial_hint(c, pages);
	stage->pages = pages;
	stage->options.source.natts = pages->relation.natts;
	stage->cut = 1 + random_below(c, 3);
	stage->in_spans = chance(c, 30);
	for (uint32_t i = 0; i < pages->relation.natts; i++)
		if (i < 3 || chance(c, 70))
		{
			uint32_t	column = stage_column(stage, GH_CLASS_INT, i + 1);

			stage->parts.columns[column] = pages->relation.loads[i];
			stage->classes[column] = column_class(&pages->relation.loads[i]);
		}
	if (chance(c, 50))
		stage->parts.columns[stage_column(stage, GH_CLASS_INT, 0)].load = GH_LOAD_TID;
}

static void
from_groups(Context *c, Stage *stage, Stage *groups)
{
	const GhGroupsSink *sink = &groups->options.sink.groups;
	uint32_t	n = 0;

	stage_from_groups(stage, groups);
	for (uint32_t k = 0; k < sink->nkeys; k++)
		stage->group_columns[n++] = (GhGroupColumn) {GH_GROUP_KEY, (uint8_t) k};
	for (uint32_t a = 0; a < sink->naggregates && n < 8; a++)
	{
		/* a group's text is no column of another pipeline */
		bool		count = sink->aggregates[a].kind <= GH_AGGREGATE_COUNT || gh_is_text_extreme(&sink->aggregates[a]) ||
			chance(c, 40);

		stage->group_columns[n++] = (GhGroupColumn) {count ? GH_GROUP_COUNT : GH_GROUP_VALUE, (uint8_t) a};
	}
	stage->options.source.natts = n;
	for (uint32_t i = 0; i < n; i++)
	{
		const GhAggregate *aggregate = &sink->aggregates[stage->group_columns[i].number];
		uint8_t		value_class = aggregate->value_class;

		if (stage->group_columns[i].part == GH_GROUP_KEY)
			value_class = groups->keys[stage->group_columns[i].number].value_class;
		else if (stage->group_columns[i].part == GH_GROUP_COUNT)
			value_class = GH_CLASS_INT;
		else if (value_class == GH_CLASS_INT && gh_aggregate_is_sum(aggregate) && chance(c, 50))
			value_class = GH_CLASS_INT128;
		(void) stage_column(stage, value_class, i + 1);
	}
}

static const uint8_t given_classes[] = {
	GH_CLASS_INT, GH_CLASS_INT, GH_CLASS_TEXT, GH_CLASS_BOOL, GH_CLASS_INT128, GH_CLASS_FLOAT8,
	GH_CLASS_FLOAT4
};

#define GIVEN sizeof(given_classes)

/* Values of columns that are handed over; texts are the program's constants. */
static void
draw_given(Context *c, const Draft *draft)
{
	Stage	   *stage = draft->stage;
	uint64_t	count = chance(c, 10) ? 0 : random_below(c, chance(c, 20) ? 2500 : 100);
	uint32_t	nulls = chance(c, 50) ? 0 : 15;

	for (uint64_t i = 0; i < count; i++)
	{
		GhValue    *values = rows_add(&stage->source, NULL, false);

		model_blank(stage, values);
		for (uint32_t k = 0; k < GIVEN; k++)
		{
			uint64_t	bits = random_next(c);

			values[k] = (GhValue) {bits >> random_below(c, 64), 0, chance(c, nulls)};
			if (given_classes[k] == GH_CLASS_TEXT)
			{
				GhValue		text = values[draft->text + random_below(c, 3)];

				text.null = values[k].null;
				values[k] = text;
			}
			else if (given_classes[k] == GH_CLASS_BOOL)
				values[k].low &= 1;
			else if (given_classes[k] == GH_CLASS_INT128)
				values[k].high = gh_sign_extension(bits);
			else if (gh_class_is_float(given_classes[k]))
				values[k].low = gh_from_double((double) random_below(c, 9) / 2 - 2);
		}
	}
}

static void
draw_source(Context *c, Stage *stage, const Chain *before)
{
	Stage	   *from = before->count > 0 ? before->stages[random_below(c, before->count)] : NULL;

	if (from != NULL && from->options.sink.kind == GH_SINK_GROUPS && chance(c, 70))
		from_groups(c, stage, from);
	else if (chance(c, 25))
	{
		stage->options.source.natts = GIVEN;
		for (uint32_t k = 0; k < GIVEN; k++)
			(void) stage_column(stage, given_classes[k], k + 1);
	}
	else
		from_pages(c, stage);
	if (stage->pages == NULL)
		stage->cut = chance(c, 50) ? UINT64_MAX : 1 + random_below(c, 200);
}

/* ------------------------------------------------------------------- probes */

/* A table of which any match is found is asked for nothing but whether there is one. */
static void
draw_probe(Context *c, Stage *stage, ModelTable *table)
{
	bool		any = !table->all && table->several;
	GhProbeKind kind = any ? GH_PROBE_SEMI + random_below(c, 2) : GH_PROBE_INNER + random_below(c, 4);
	uint32_t	p = stage_probe(stage, table, kind, !any && chance(c, 80));

	stage->marking[p] = table->numbered && table->nkept > 0 && table->all && kind <= GH_PROBE_LEFT &&
		chance(c, 50);
}

static void
draw_probes(Context *c, Stage *stage, const Chain *before)
{
	for (uint32_t i = 0; i < before->count; i++)
		if (before->stages[i]->options.sink.kind == GH_SINK_TABLE &&
			stage->options.nprobes < STAGE_PROBES_MAX &&
			chance(c, 80))
			draw_probe(c, stage, &before->stages[i]->made);
}

static void
draw_constants(Context *c, Draft *draft)
{
	static const int64_t integers[] = {-3, 0, 1, 2, 7};
	Stage	   *stage = draft->stage;

	for (uint32_t i = 0; i < 2 * DOMAINS; i++)
	{
		uint64_t	mask = (UINT64_C(1) << domains[i % DOMAINS]) - 1;
		uint32_t	vector = stage_constant(stage, GH_CLASS_INT, i < DOMAINS ? mask : ~mask);

		if (i == 0)
			draft->masks = vector;
	}
	draft->zero = stage_constant(stage, GH_CLASS_INT, 0);
	draft->three = stage_constant(stage, GH_CLASS_INT, 3);
	draft->null = stage_constant(stage, GH_CLASS_INT, 0);
	stage->parts.constants[stage->parts.nconstants - 1].null = 1;
	/* groups by texts of up to seven bytes are found otherwise than by longer ones */
	draft->text = stage_text(stage, "");
	(void) stage_text(stage, "ab");
	(void) stage_text(stage, chance(c, 50) ? "abababa" : chance(c, 30) ? "abababab" : "a longer text, of more bytes");
	draft->list = add_int_list(&stage->parts, integers, 5, false);
}

/*
 * A vector of the class that is there before the next step, or, `also`, one that the probe fills; NEVER:
 * there is none.
 */
static uint32_t
pick(Context *c, const Stage *stage, uint8_t value_class, uint32_t also)
{
	uint32_t	nvectors = stage->parts.ncolumns + stage->parts.nconstants + stage->parts.ntemporaries;
	uint32_t	found = NEVER;
	uint64_t	n = 0;

	for (uint32_t v = 0; v < nvectors; v++)
	{
		bool		filled = false;

		for (uint32_t f = 0; also != NEVER && f < stage->probes[also].nfills; f++)
			filled |= stage->fills[also][f].column == v;
		if (stage->classes[v] != value_class || (!filled && stage->born[v] > stage->options.nsteps))
			continue;
		/* constants are of less interest */
		if (v >= stage->parts.ncolumns && v < stage->parts.ncolumns + stage->parts.nconstants && n > 0)
			continue;
		if (random_below(c, ++n) == 0)
			found = v;
	}
	return found;
}

static uint32_t
draw_part(Context *c, const Draft *draft, const ModelTable *table, uint32_t k)
{
	bool		negative = table->negative[k] != chance(c, 10);
	uint32_t	d = 0;

	while (domains[d] != table->domain[k])
		d++;
	return stage_compute(draft->stage, negative ? GH_OP_BIT_OR : GH_OP_BIT_AND, GH_CLASS_INT,
						 pick(c, draft->stage, GH_CLASS_INT, NEVER),
						 draft->masks + d + (negative ? DOMAINS : 0));
}

/* An instruction or two on what there is; some of them may hand rows back. */
static void
draw_instructions(Context *c, const Draft *draft, uint32_t also)
{
	Stage	   *stage = draft->stage;
	uint32_t	number = pick(c, stage, GH_CLASS_INT, also);
	uint32_t	other = pick(c, stage, GH_CLASS_INT, also);
	uint32_t	text = pick(c, stage, GH_CLASS_TEXT, also);
	uint32_t	wide = pick(c, stage, GH_CLASS_INT128, also);

	switch (random_below(c, 9))
	{
		case 0:
			(void) stage_compute(stage, GH_OP_ADD, GH_CLASS_INT, number, other);
			break;
		case 1:					/* divided by zero, where it ends in enough of them */
			other = draft->masks + (uint32_t) random_below(c, DOMAINS);
			number = stage_compute(stage, GH_OP_BIT_AND, GH_CLASS_INT, number, other);
			(void) stage_compute(stage, GH_OP_DIV, GH_CLASS_INT, draft->three, number);
			break;
		case 2:
			stage_filter(stage, stage_compute(stage, chance(c, 50) ? GH_OP_LT : GH_OP_GE, GH_CLASS_INT,
											  number, other));
			break;
		case 3:
			stage_filter(stage, stage_compute(stage, chance(c, 70) ? GH_OP_NE : GH_OP_LE, GH_CLASS_TEXT, text,
											  draft->text + 1));
			break;
		case 4:
			(void) stage_compute(stage, GH_OP_IS_NULL, GH_CLASS_INT, number, 0);
			break;
		case 5:
			(void) stage_compute(stage, GH_OP_COALESCE, GH_CLASS_INT, number, draft->zero);
			break;
		case 6:
			(void) stage_compute(stage, GH_OP_COALESCE, GH_CLASS_TEXT, text, draft->text + 2);
			break;
		case 7:
			(void) stage_compute(stage, GH_OP_BIT_XOR, GH_CLASS_INT, number, other);
			break;
		default:
			if (wide != NEVER)
				(void) stage_compute(stage, GH_OP_ADD, GH_CLASS_INT128, wide, wide);
	}
}

static void
draw_steps(Context *c, const Draft *draft)
{
	Stage	   *stage = draft->stage;

	for (uint32_t p = 0; p < stage->options.nprobes; p++)
	{
		const ModelTable *table = stage->probed[p];
		bool		conditions = table->all || !table->several;

		if (chance(c, 40))
		{
			draw_instructions(c, draft, NEVER);
			stage_run_step(stage);
		}
		for (uint32_t k = 0; k < table->nparts; k++)
		{
			uint32_t	vector = chance(c, 15) ? pick(c, stage, GH_CLASS_INT, NEVER) :
				draw_part(c, draft, table, k);

			stage_probe_part(stage, p, vector, table->bits[k]);
		}
		stage_run_step(stage);
		for (uint32_t n = conditions ? (uint32_t) random_below(c, 4) : 0; n > 1; n--)
			draw_instructions(c, draft, p);
		stage_probe_step(stage, p);
	}
	for (uint32_t n = (uint32_t) random_below(c, 3); n > 0; n--)
		draw_instructions(c, draft, NEVER);
}

/* -------------------------------------------------------------------- sinks */

static uint32_t
pick_any(Context *c, const Stage *stage)
{
	uint32_t	vector = NEVER;

	while (vector == NEVER)
		vector = pick(c, stage, (uint8_t) (GH_CLASS_BOOL + random_below(c, GH_CLASS_TEXT)), NEVER);
	return vector;
}

/* Other keys of the same classes, and other filters. */
static void
draw_sets(Context *c, Stage *stage)
{
	GhGroupsSink *sink = &stage->options.sink.groups;

	sink->nsets = 2 + (uint32_t) random_below(c, chance(c, 80) ? 2 : STAGE_SETS_MAX - 1);
	for (uint32_t k = sink->nkeys; k < sink->nsets * sink->nkeys; k++)
	{
		stage->keys[k] = stage->keys[k - sink->nkeys];
		if (chance(c, 50))
			stage->keys[k].vector = (uint16_t) pick(c, stage, stage->keys[k].value_class, NEVER);
	}
	for (uint32_t a = sink->naggregates; a < sink->nsets * sink->naggregates; a++)
	{
		uint32_t	filter = chance(c, 50) ? pick(c, stage, GH_CLASS_BOOL, NEVER) : NEVER;

		stage->aggregates[a] = stage->aggregates[a - sink->naggregates];
		if (filter != NEVER)
			stage->aggregates[a].filter = (uint16_t) filter;
	}
}

static void
draw_groups(Context *c, Stage *stage)
{
	uint32_t	nkeys = (uint32_t) random_below(c, 4);
	/* counts and sums of few groups the CUDA engine makes while it reads pages of spans; there may be more groups */
	bool		sums = chance(c, 40);

	stage->options.sink.kind = GH_SINK_GROUPS;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		uint32_t	vector = chance(c, 50) ? pick(c, stage, GH_CLASS_INT, NEVER) : pick_any(c, stage);

		stage_key(stage, vector, stage->classes[vector]);
		stage->keys[k].padded = stage->classes[vector] == GH_CLASS_TEXT && chance(c, 30);
	}
	stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	for (uint32_t n = (uint32_t) random_below(c, 6); n > 0; n--)
	{
		uint32_t	vector = pick_any(c, stage);
		uint8_t		value_class = stage->classes[vector];
		GhAggregateKind kind = GH_AGGREGATE_COUNT + random_below(c, sums ? 2 : 7);
		uint32_t	filter = chance(c, 25) ? pick(c, stage, GH_CLASS_BOOL, NEVER) : NEVER;
		GhAggregate aggregate = {
			.kind = (uint8_t) kind,.value_class = value_class,.argument = (uint16_t) vector,
			.filter = GH_AGGREGATE_NO_FILTER
		};
		GhError		error;

		if ((!(gh_is_text_extreme(&aggregate) && c->engine->pipelines->compares_texts) &&
			 gh_aggregates_check(&aggregate, 1, stage->classes, GH_PROGRAM_VECTORS_MAX, &error) != GH_OK) ||
			(gh_class_is_float(value_class) && gh_aggregate_is_sum(&aggregate)))
			continue;
		stage_aggregate(stage, kind, vector, value_class);
		if (filter != NEVER)
			stage->aggregates[stage->options.sink.groups.naggregates - 1].filter = (uint16_t) filter;
	}
	if (c->engine->pipelines->adds_sets && chance(c, 30))
		draw_sets(c, stage);
	stage->options.sink.groups.order = model_order;
	stage->options.sink.groups.expected = random_below(c, 2) * random_below(c, sums ? 40 : 3000);
	stage->options.sink.groups.seed = random_next(c);
}

static void
draw_rows(Context *c, Stage *stage)
{
	uint32_t	nvalues = (uint32_t) random_below(c, 5);

	stage->options.sink.kind = GH_SINK_ROWS;
	for (uint32_t k = 0; k < nvalues; k++)
	{
		uint32_t	vector = pick_any(c, stage);

		stage_key(stage, vector, stage->classes[vector]);
	}
}

static void
draw_key(Context *c, ModelTable *table)
{
	uint32_t	left = 64;

	table->nparts = 1 + (uint32_t) random_below(c, STAGE_PARTS_MAX);
	for (uint32_t k = 0; k < table->nparts; k++)
	{
		table->domain[k] = domains[random_below(c, DOMAINS + 1 - table->nparts)];
		table->bits[k] = (uint8_t) (table->domain[k] + (chance(c, 50) ? 0 : random_below(c, 9)));
		table->negative[k] = chance(c, 40);
		if (k + 1 == table->nparts && chance(c, 40))
			table->bits[k] = (uint8_t) left;
		left -= table->bits[k];
	}
}

/* A numbered table keeps all that its key is made of, so that the test can tell its rows apart. */
static void
draw_table(Context *c, Stage *stage, const uint32_t *parts)
{
	GhTableSink *sink = &stage->options.sink.table;
	ModelTable *table = &stage->made;

	stage->options.sink.kind = GH_SINK_TABLE;
	for (uint32_t k = 0; k < table->nparts; k++)
		stage_part(stage, parts[k], table->bits[k]);
	sink->numbered = chance(c, 50);
	sink->matches = sink->numbered || chance(c, 70) ? GH_MATCHES_ALL : GH_MATCHES_ANY;
	sink->seed = random_next(c);
	sink->expected = random_below(c, 2) * random_below(c, 3000);
	for (uint32_t k = 0; sink->numbered && k < table->nparts; k++)
		stage_keep(stage, parts[k], GH_CLASS_INT, 8);
	for (uint32_t n = (uint32_t) random_below(c, 5); n > 0; n--)
	{
		uint32_t	vector = pick_any(c, stage);

		stage_keep(stage, vector, stage->classes[vector], stage->classes[vector] == GH_CLASS_INT ? 8 : 0);
	}
	if (sink->nkept > 0 && stage->kept[0].vector == parts[0] && !table->negative[0] && chance(c, 30))
		stage->kept[0].bytes = 2;
	if (sink->matches == GH_MATCHES_ALL && chance(c, 25))
	{
		uint32_t	vector = pick(c, stage, GH_CLASS_BOOL, NEVER);

		if (vector == NEVER || sink->nkept == STAGE_KEPT_MAX)
			return;
		sink->back_vector = vector + 1;
		stage_keep(stage, vector, GH_CLASS_BOOL, 0);
	}
}

static bool
can_list_places(const Stage *stage)
{
	for (uint32_t p = 0; p < stage->options.nprobes; p++)
		if (stage->probes[p].kind <= GH_PROBE_LEFT && stage->probed[p]->several)
			return false;
	return true;
}

/* ------------------------------------------------------------------ the whole */

/* How many rows would there be, at most, if all of the source were asked for? */
static bool
too_many(Context *c, Stage *stage)
{
	uint64_t	rows = 0;

	stage->most = ROWS_MAX;
	stage->looks = 0;
	stage->too_many = false;
	for (uint64_t i = 0; i < stage->source.count && !stage->too_many; i++)
	{
		RowList		one = {stage->source.width, 1, 1, rows_at(&stage->source, i), &stage->source.failed[i]};
		Fate		fate = {0};
		RowList		out;

		rows_init(&out, one.width);
		model_advance(c, stage, &one, 0, stage->options.nsteps, &fate, &out);
		for (uint32_t s = 0; s < stage->options.nsteps; s++)
			rows += fate.passed[s];
		stage->too_many |= rows > 4 * ROWS_MAX;
		rows_drop(&out);
	}
	stage->most = 0;
	return stage->too_many;
}

/* Of pages fewer lines, of other sources the first rows. */
static void
shrink(Context *c, Stage *stage)
{
	while (too_many(c, stage))
	{
		uint64_t	n = 0;

		if (stage->pages == NULL)
		{
			stage->source.count /= 2;
			continue;
		}
		for (uint32_t p = 0; p < stage->pages->npages; p++)
			stage->pages->pages[p].lines /= 2;
		for (uint64_t i = 0; i < stage->source.count; i++)
		{
			GhBackRow	place = stage->places[i];

			if (place.line > stage->pages->pages[place.page].lines)
				continue;
			memmove(rows_at(&stage->source, n), rows_at(&stage->source, i),
					stage->source.width * sizeof(GhValue));
			stage->source.failed[n] = stage->source.failed[i];
			stage->untold[n] = stage->untold[i];
			stage->places[n++] = place;
		}
		stage->source.count = n;
	}
}

Stage *
stage_draw(Context *c, const Chain *before, bool last)
{
	Stage	   *stage = stage_make();
	Draft		draft = {.stage = stage};
	uint64_t	kind = random_below(c, last ? 8 : 4);
	uint32_t	parts[STAGE_PARTS_MAX];

	draw_source(c, stage, before);
	draw_probes(c, stage, before);
	draw_constants(c, &draft);
	draw_steps(c, &draft);
	draw_key(c, &stage->made);
	for (uint32_t k = 0; kind < 3 && k < stage->made.nparts; k++)
		parts[k] = draw_part(c, &draft, &stage->made, k);
	stage_run_step(stage);
	if (kind < 3)
		draw_table(c, stage, parts);
	else if (kind < 6)
		draw_groups(c, stage);
	else if (kind < 7 && can_list_places(stage))
		stage->options.sink.kind = GH_SINK_PLACES;
	else
		draw_rows(c, stage);
	stage_finish(c, stage);
	if (stage->options.source.kind == GH_SOURCE_COLUMNS)
		draw_given(c, &draft);
	shrink(c, stage);
	return stage;
}
