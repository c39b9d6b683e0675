/*
 * test_pipeline_integers.c
 *		Pipelines: counts, sums, least and greatest of integers over pages that are in spans, joined with a
 *		table or not, in groups by an integer or not, with conditions that compare them with constants or
 *		without, against the model.
 *
 * An engine may do such pipelines in a way of its own, as long as tuples are all alike; in some rounds some
 * are not.  Tables keep nothing, one value or two, of keys that have one row or several.  Rows of some keys may be in another table.
 */
#include "pipeline_model.h"

#define ATTRIBUTES_MAX 6
#define INNER_ROWS_MAX 400
#define CONSTANTS 6

static bool
chance(Context *c, uint32_t percent)
{
	return random_below(c, 100) < percent;
}

static void
draw_integers(Context *c, Relation *relation)
{
	static const uint8_t loads[] = {GH_LOAD_INT8, GH_LOAD_INT4, GH_LOAD_INT2};
	static const int16_t lengths[] = {8, 4, 2};

	relation->page_bytes = 8192;
	relation->natts = 1 + (uint32_t) random_below(c, ATTRIBUTES_MAX);
	relation->plain = true;
	relation->nulls = chance(c, 60) ? 0 : 1 + 19 * (uint32_t) random_below(c, 2);
	relation->shorter = chance(c, 80) ? 0 : 3;
	for (uint32_t i = 0; i < relation->natts; i++)
	{
		uint32_t	kind = (uint32_t) random_below(c, 3);

		relation->loads[i] = (GhColumn) {.attribute = (uint16_t) (i + 1),.load = loads[kind]};
		relation->attributes[i] = (GhPageAttribute) {lengths[kind], (uint8_t) lengths[kind]};
	}
}

/* Of all pages all lines, some of which have no tuple. */
static Trial *
draw_pages(Context *c)
{
	Trial	   *pages = make_memory(sizeof(Trial));

	memset(pages, 0, sizeof(*pages));
	draw_integers(c, &pages->relation);
	trial_pages(c, pages, 1 + (uint32_t) random_below(c, chance(c, 20) ? TRIAL_PAGES_MAX : 8));
	for (uint32_t p = 0; p < pages->npages; p++)
	{
		pages->pages[p].lines = gh_page_lines(pages->pages[p].page, pages->relation.page_bytes);
		pages->pages[p].bitmap = GH_PAGE_ALL_LINES;
	}
	return pages;
}

/* --------------------------------------------------------------------- the table */

/* An attribute of some tuple, or any number. */
static uint64_t
draw_key(Context *c, const Trial *pages, uint32_t attribute)
{
	const WrittenPage *page = &pages->written[random_below(c, pages->npages)];
	const Written *value;

	if (page->ntuples == 0 || chance(c, 30))
		return random_next(c) >> random_below(c, 64);
	value = &page->values[random_below(c, page->ntuples)][attribute];
	return value->kind == WRITTEN_VALUE ? value->low : 0;
}

static bool
has_row(const Stage *stage, uint64_t key)
{
	for (uint64_t i = 0; i < stage->source.count; i++)
		if (rows_at(&stage->source, i)[0].low == key)
			return true;
	return false;
}

/* A table by a key, of which it has what an attribute of the pages has. */
static Stage *
draw_table(Context *c, const Trial *pages, uint32_t attribute)
{
	Stage	   *stage = stage_make();
	GhTableSink *sink = &stage->options.sink.table;
	bool		unique = chance(c, 70);
	uint32_t	nulls = chance(c, 80) ? 0 : 5;

	stage->options.source.natts = 3;
	for (uint32_t i = 0; i < 3; i++)
		(void) stage_column(stage, GH_CLASS_INT, i + 1);
	stage_run_step(stage);
	stage->options.sink.kind = GH_SINK_TABLE;
	stage_part(stage, 0, (uint8_t) (chance(c, 70) ? 64 : 32));
	sink->matches = chance(c, 80) ? GH_MATCHES_ALL : GH_MATCHES_ANY;
	sink->seed = random_next(c);
	for (uint32_t k = (uint32_t) random_below(c, 5); k > 2; k--)
		stage_keep(stage, k - 2, GH_CLASS_INT, 8);
	if (chance(c, 60) && sink->nkept == 0)
		stage_keep(stage, 1, GH_CLASS_INT, 8);
	stage_finish(c, stage);
	for (uint64_t n = random_below(c, INNER_ROWS_MAX); n > 0; n--)
	{
		GhValue		row[3] = {{draw_key(c, pages, attribute), 0, chance(c, nulls)}};

		for (uint32_t i = 1; i < 3; i++)
			row[i] = (GhValue) {random_next(c) >> random_below(c, 64), 0, chance(c, nulls)};
		if (!unique || !has_row(stage, row[0].low))
			stage_row(stage, row);
	}
	stage->cut = UINT64_MAX;
	return stage;
}

/* A table in the place of `inner`: without the rows of some keys, or with others of these; their keys; and their rows. */
typedef struct Changes
{
	Stage	   *base;
	Stage	   *changed;
	Stage	   *instead;
} Changes;

/* Keeps what the table does, or, of keys, nothing. */
static Stage *
table_like(Context *c, const Stage *inner, bool keys)
{
	Stage	   *stage = stage_make();

	stage->options.source.natts = 3;
	for (uint32_t i = 0; i < 3; i++)
		(void) stage_column(stage, GH_CLASS_INT, i + 1);
	stage_run_step(stage);
	stage->options.sink.kind = GH_SINK_TABLE;
	stage_part(stage, 0, inner->table_parts[0].bits);
	stage->options.sink.table.matches = keys ? GH_MATCHES_ANY : inner->options.sink.table.matches;
	stage->options.sink.table.seed = random_next(c);
	for (uint32_t k = 0; !keys && k < inner->options.sink.table.nkept; k++)
		stage_keep(stage, inner->kept[k].vector, GH_CLASS_INT, 8);
	stage_finish(c, stage);
	stage->cut = UINT64_MAX;
	return stage;
}

static bool
draw_changes(Context *c, Stage *inner, const GhHost *host, Changes *changes)
{
	uint64_t	mask = inner->table_parts[0].bits == 64 ? UINT64_MAX : UINT32_MAX;
	uint32_t	part = 1 + (uint32_t) random_below(c, 4);
	bool		gone = chance(c, 30);

	changes->base = table_like(c, inner, false);
	changes->changed = table_like(c, inner, true);
	changes->instead = table_like(c, inner, false);
	for (uint64_t i = 0; i < inner->source.count; i++)
	{
		const GhValue *row = rows_at(&inner->source, i);
		GhValue		other[3] = {row[0], {random_next(c), 0, chance(c, 10)}, {random_next(c), 0, 0}};

		if (row[0].null || mix(row[0].low & mask) % 4 >= part)
		{
			stage_row(changes->base, row);
			continue;
		}
		if (!gone)
			stage_row(changes->base, other);
		stage_row(changes->changed, row);
		stage_row(changes->instead, row);
	}
	/* of keys that are in no table any more */
	for (uint64_t n = random_below(c, 20); n > 0; n--)
	{
		GhValue		row[3] = {{random_next(c), 0, 0}, {0, 0, 0}, {0, 0, 0}};

		if (has_row(inner, row[0].low) || mask != UINT64_MAX)
			continue;
		stage_row(changes->base, row);
		stage_row(changes->changed, row);
	}
	return stage_run(c, changes->base, host) && stage_run(c, changes->changed, host) && stage_run(c, changes->instead, host);
}

/* The three are in the place of the table. */
static void
put_changes(Stage *inner, Stage *outer, const Changes *changes)
{
	stage_end_table(inner);
	inner->made.table = changes->base->made.table;
	if (changes->changed->made.rows.count == 0)
		return;
	outer->probes[0].changed = changes->changed->made.table;
	if (changes->instead->made.rows.count > 0)
		outer->probes[0].instead = changes->instead->made.table;
}

static void
drop_changes(Context *c, Changes *changes)
{
	Stage	   *stages[] = {changes->base, changes->changed, changes->instead};

	for (uint32_t i = 0; i < 3; i++)
	{
		if (stages[i] == NULL)
			continue;
		stage_end(stages[i]);
		stage_end_table(stages[i]);
		stage_drop(c, stages[i]);
	}
}

/* -------------------------------------------------------------------- the pages */

/* A join with the table by an attribute; columns that are filled become some of the vectors. */
static void
join(Context *c, Stage *stage, Stage *inner, uint32_t attribute)
{
	ModelTable *table = &inner->made;
	bool		any = !table->all && table->several;
	GhProbeKind kind = any || chance(c, 30) ? GH_PROBE_SEMI + random_below(c, 2) :
		chance(c, 85) ? GH_PROBE_INNER : GH_PROBE_LEFT;
	uint32_t	p = stage_probe(stage, table, kind, kind <= GH_PROBE_LEFT);

	stage_probe_part(stage, p, attribute, inner->table_parts[0].bits);
}

/* Conditions on columns of pages: constants are values of some, or the least and the greatest of all. */
static void
draw_conditions(Context *c, Stage *stage, const Trial *pages, const uint32_t *constants)
{
	for (uint32_t n = (uint32_t) random_below(c, 4); n > 0; n--)
	{
		uint32_t	column = (uint32_t) random_below(c, pages->relation.natts);
		uint32_t	constant = constants[random_below(c, CONSTANTS)];
		GhProgramOp op = GH_OP_EQ + random_below(c, 6);
		bool		turned = chance(c, 30);

		/* of which few rows come through */
		if (op == GH_OP_EQ && chance(c, 80))
			op = GH_OP_NE;
		stage_filter(stage, stage_compute(stage, op, GH_CLASS_INT, turned ? constant : column,
										  turned ? column : constant));
	}
}

static void
draw_steps(Context *c, Stage *stage, const Trial *pages, bool joined)
{
	uint32_t	constants[CONSTANTS];
	bool		before = chance(c, 80);

	for (uint32_t i = 0; i < CONSTANTS; i++)
	{
		uint64_t	value = draw_key(c, pages, (uint32_t) random_below(c, pages->relation.natts));

		constants[i] = stage_constant(stage, GH_CLASS_INT, i == 0 ? (uint64_t) INT64_MIN :
									  i == 1 ? (uint64_t) INT64_MAX : value);
	}
	if (chance(c, 20))
		stage_run_step(stage);
	if (chance(c, 50) && before)
		draw_conditions(c, stage, pages, constants);
	if (joined)
	{
		stage_run_step(stage);
		stage_probe_step(stage, 0);
	}
	if (chance(c, 50) && !before)
		draw_conditions(c, stage, pages, constants);
	stage_run_step(stage);
}

static Stage *
draw_outer(Context *c, Trial *pages, Stage *inner, uint32_t attribute)
{
	Stage	   *stage = stage_make();
	GhGroupsSink *sink = &stage->options.sink.groups;
	bool		extremes = chance(c, 50);

	stage->pages = pages;
	stage->cut = 1 + random_below(c, pages->npages);
	stage->options.source.natts = pages->relation.natts;
	for (uint32_t i = 0; i < pages->relation.natts; i++)
	{
		uint32_t	column = stage_column(stage, GH_CLASS_INT, i + 1);

		stage->parts.columns[column] = pages->relation.loads[i];
	}
	if (inner != NULL)
		join(c, stage, inner, attribute);
	draw_steps(c, stage, pages, inner != NULL);
	stage->options.sink.kind = GH_SINK_GROUPS;
	sink->seed = random_next(c);
	sink->expected = random_below(c, 2) * random_below(c, 3000);
	if (chance(c, 60))
		stage_key(stage, (uint32_t) random_below(c, stage->parts.ncolumns), GH_CLASS_INT);
	for (uint32_t n = (uint32_t) random_below(c, 6); n > 0; n--)
	{
		uint32_t	kind = GH_AGGREGATE_COUNT_ROWS + (uint32_t) random_below(c, extremes ? 5 : 3);

		if (kind == GH_AGGREGATE_COUNT_ROWS)
			stage_aggregate(stage, kind, 0, 0);
		else
			stage_aggregate(stage, kind, (uint32_t) random_below(c, stage->parts.ncolumns), GH_CLASS_INT);
	}
	if (sink->naggregates == 0)
		stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	stage_finish(c, stage);
	return stage;
}

/* The pages are put into spans, and are nowhere else from then on. */
static bool
put_pages(Context *c, Trial *pages, Stage *stage, const GhHost *host)
{
	Stage	   *first = pages_stage(c, pages);
	bool		good;

	first->in_spans = true;
	good = stage_run(c, first, host);
	if (good)
	{
		spans_only(c, pages);
		stage->nspans = first->nspans;
		memcpy(stage->spans, first->spans, sizeof(first->spans));
		first->nspans = 0;
	}
	stage_end(first);
	first->pages = NULL;
	stage_drop(c, first);
	return good;
}

static void
one_round(Context *c)
{
	Trial	   *pages = draw_pages(c);
	uint32_t	attribute = (uint32_t) random_below(c, pages->relation.natts);
	Stage	   *inner = chance(c, 60) ? draw_table(c, pages, attribute) : NULL;
	Stage	   *outer = NULL;
	Changes		changes = {NULL, NULL, NULL};
	HostState	state;
	GhHost		host;

	host_init(&state, &host);
	if (inner == NULL || stage_run(c, inner, &host))
	{
		if (inner != NULL)
			stage_end(inner);
		outer = draw_outer(c, pages, inner, attribute);
		if (inner != NULL && chance(c, 40) && draw_changes(c, inner, &host, &changes))
			put_changes(inner, outer, &changes);
		if (put_pages(c, pages, outer, &host))
			(void) stage_run(c, outer, &host);
		stage_end(outer);
	}
	/* that of the base, then */
	if (changes.base != NULL && inner->made.table == changes.base->made.table)
		inner->made.table = NULL;
	if (inner != NULL)
	{
		stage_end(inner);
		stage_end_table(inner);
	}
	drop_changes(c, &changes);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	stage_drop(c, outer);
	stage_drop(c, inner);
}

static void
integers_of_pages(Context *c)
{
	uint64_t	seed = random_next(c);

	if (no_pipelines(c))
		return;
	for (uint64_t round = 0; round < sized(c, 2000, 300) && c->failures == 0; round++)
	{
		c->random = seed + round * 1000003;
		one_round(c);
		if (c->failures > 0)
			printf("  round %" PRIu64 " of integers failed\n", round);
	}
}

const Test	pipeline_integer_tests[] = {
	{"pipelines: integers of pages in spans", integers_of_pages, false},
	{NULL, NULL, false}
};
