/*
 * test_pipeline_overlay.c
 *		Tables with an overlay, and the filter of its keys; probes with changed keys.
 *
 * A table has entries, some of which are stale: what is right of the others' keys is in another table, with rows that
 * are new.  What the overlay, or the probe, shows must be what a table of all right entries and new rows does: the model
 * of that one checks what the other is asked.
 */
#include "pipeline_model.h"
#include "engine/pipeline/key_filter.h"

#define KEY_PARTS_MAX 2
#define ENTRIES_MOST 3000
#define OUTER_MOST 4000

/* ---------------------------------------------------------------------- filter */

static uint64_t
pattern(Context *c, uint32_t which, uint64_t i)
{
	switch (which)
	{
		case 0:
			return i;
		case 1:
			return -i;
		case 2:
			return i << 32;
		case 3:
			return i * 4096;
		case 4:
			return i << 32 | i;
		default:
			return mix(c->seed + i);
	}
}

/* Whatever the keys, each that was added is there, and of others few are, if there are no more than it was made for. */
static void
filter_has_its_keys(Context *c)
{
	for (uint32_t which = 0; which <= 5; which++)
		for (uint64_t keys = 0; keys <= sized(c, 1000000, 50000); keys = keys * 7 + 1)
			for (uint64_t made_for = keys / 16; made_for <= keys; made_for = made_for * 16 + (keys > 0 ? keys % 16 : 1))
			{
				uint32_t	shift = gh_key_filter_shift(made_for);
				GhKeyFilter *filter = calloc(1, gh_key_filter_bytes(shift));
				uint64_t	missing = 0;
				uint64_t	others = 0;

				filter->shift = shift;
				for (uint64_t i = 0; i < keys; i++)
					gh_key_filter_add(filter, pattern(c, which, i));
				for (uint64_t i = 0; i < keys; i++)
				{
					missing += !gh_key_filter_may_have(filter, pattern(c, which, i));
					others += gh_key_filter_may_have(filter, pattern(c, which, keys + 1 + i));
				}
				CHECK_U64(c, "keys that it has not", missing, 0);
				if (made_for == keys && keys > 1000)
					CHECK(c, others < keys / 20, "of %" PRIu64 " other keys of pattern %u it has %" PRIu64, keys, which, others);
				free(filter);
			}
}

/* --------------------------------------------------------------------- overlay */

typedef struct Entry
{
	GhValue		values[KEY_PARTS_MAX + 2];	/* parts of the key, a number, a text */
	bool		stale;
	bool		is_new;			/* in no table but that of other rows */
} Entry;

typedef struct Case
{
	uint32_t	nparts;
	bool		texts;
	bool		with_key;		/* its parts are columns, too */
	uint32_t	nentries;
	Entry		entries[ENTRIES_MOST];
	Stage	   *base;
	Stage	   *instead;
	Stage	   *visible;		/* a table of all that is right */
	GhKeyFilter *filter;
	/* without an overlay: keys of the other table are those of a table, which each probe names */
	bool		by_probe;
	Stage	   *changed;
} Case;

static uint64_t
key_of(const Case *one, const GhValue *values)
{
	GhKeyPart	parts[KEY_PARTS_MAX];
	uint64_t	key;

	for (uint32_t k = 0; k < one->nparts; k++)
		parts[k] = (GhKeyPart) {(uint16_t) k, (uint8_t) (64 / one->nparts), 0};
	(void) model_key(parts, one->nparts, values, &key);
	return key;
}

static void
draw_entries(Context *c, Case *one)
{
	static char texts[64][8];
	bool		unique = random_below(c, 2) == 0;
	uint32_t	domain = 1 + (uint32_t) random_below(c, ENTRIES_MOST);
	uint32_t	stale = (uint32_t) random_below(c, 4) * 15;

	one->nparts = 1 + (uint32_t) random_below(c, KEY_PARTS_MAX);
	one->texts = random_below(c, 3) == 0;
	one->with_key = random_below(c, 2) == 0;
	one->nentries = (uint32_t) random_below(c, ENTRIES_MOST);
	for (uint32_t i = 0; i < one->nentries; i++)
	{
		Entry	   *entry = &one->entries[i];
		uint64_t	key = (unique ? i : random_below(c, domain)) - domain / 2;
		char	   *text = texts[i % 64];

		memset(entry, 0, sizeof(*entry));
		for (uint32_t k = 0; k < one->nparts; k++)
			entry->values[k].low = k == 0 ? key : key % 3;
		entry->values[one->nparts] = (GhValue) {i, 0, random_below(c, 9) == 0};
		snprintf(text, sizeof(texts[0]), "t%u", i % 64);
		entry->values[one->nparts + 1] = (GhValue) {(uint64_t) (uintptr_t) text, strlen(text), 0};
		entry->is_new = stale > 0 && random_below(c, 100) < 10;
		entry->stale = !entry->is_new && random_below(c, 100) < stale;
	}
}

/*
 * A table of the entries that are wanted; with an overlay, the base has its columns in another order, and no parts of the
 * key.  keys: of their keys alone.
 */
static Stage *
make_table_stage(Context *c, const Case *one, bool is_base, bool keys)
{
	Stage	   *stage = stage_make();

	stage->options.source.natts = one->nparts + 2;
	for (uint32_t k = 0; k <= one->nparts; k++)
		(void) stage_column(stage, GH_CLASS_INT, k + 1);
	(void) stage_column(stage, GH_CLASS_TEXT, one->nparts + 2);
	stage->options.sink.kind = GH_SINK_TABLE;
	stage->options.sink.table.matches = GH_MATCHES_ALL;
	stage->options.sink.table.seed = random_next(c);
	for (uint32_t k = 0; k < one->nparts; k++)
		stage_part(stage, k, (uint8_t) (64 / one->nparts));
	if (keys)
	{
		stage_finish(c, stage);
		return stage;
	}
	is_base &= !one->by_probe;
	if (is_base && one->texts)
		stage_keep(stage, one->nparts + 1, GH_CLASS_TEXT, 0);
	stage_keep(stage, one->nparts, GH_CLASS_INT, 8);
	if (!is_base && one->texts)
		stage_keep(stage, one->nparts + 1, GH_CLASS_TEXT, 0);
	for (uint32_t k = 0; !is_base && one->with_key && k < one->nparts; k++)
		stage_keep(stage, k, GH_CLASS_INT, 8);
	stage_finish(c, stage);
	return stage;
}

static void
make_filter(Case *one)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < one->nentries; i++)
		n += one->entries[i].stale || one->entries[i].is_new;
	if (n == 0)
		return;
	one->filter = calloc(1, gh_key_filter_bytes(gh_key_filter_shift(n / 4)));
	one->filter->shift = gh_key_filter_shift(n / 4);
	for (uint32_t i = 0; i < one->nentries; i++)
		if (one->entries[i].stale || one->entries[i].is_new)
			gh_key_filter_add(one->filter, key_of(one, one->entries[i].values));
}

/* Are the key's rows in the other table? */
static bool
is_elsewhere(const Case *one, uint64_t key)
{
	if (!one->by_probe)
		return one->filter != NULL && gh_key_filter_may_have(one->filter, key);
	for (uint32_t i = 0; i < one->nentries; i++)
		if ((one->entries[i].stale || one->entries[i].is_new) && key_of(one, one->entries[i].values) == key)
			return true;
	return false;
}

static bool
make_tables(Context *c, Case *one, const GhHost *host)
{
	one->base = make_table_stage(c, one, true, false);
	one->instead = make_table_stage(c, one, false, false);
	one->visible = make_table_stage(c, one, false, false);
	one->changed = make_table_stage(c, one, false, true);
	make_filter(one);
	for (uint32_t i = 0; i < one->nentries; i++)
	{
		const Entry *entry = &one->entries[i];

		if (!entry->is_new)
			stage_row(one->base, entry->values);
		if (!entry->stale)
			stage_row(one->visible, entry->values);
		if (!entry->stale && is_elsewhere(one, key_of(one, entry->values)))
			stage_row(one->instead, entry->values);
		if (entry->stale || entry->is_new)
			stage_row(one->changed, entry->values);
	}
	return stage_run(c, one->base, host) && stage_run(c, one->instead, host) && stage_run(c, one->visible, host) &&
		stage_run(c, one->changed, host);
}

/* The table of all that is right goes, and the base is in its place. */
static void
put_in_place(Case *one)
{
	stage_end_table(one->visible);
	one->visible->made.table = one->base->made.table;
}

/* The base gets the overlay. */
static void
lay_over(Context *c, Case *one)
{
	uint16_t	from[KEY_PARTS_MAX + 2] = {one->texts, 0};
	GhTableOverlay overlay = {.nkept = one->visible->made.nkept,.kept = one->visible->made.kept,.from = from,
	.filter = one->filter};
	GhError		error = {0};

	for (uint32_t k = 0; one->with_key && k < one->nparts; k++)
		from[(one->texts ? 2 : 1) + k] = (uint16_t) (GH_OVERLAY_KEY + k);
	if (one->filter != NULL && one->instead->made.rows.count > 0)
		overlay.instead = one->instead->made.table;
	CHECK_STATUS(c, "an overlay", c->engine->pipelines->table_overlay(one->base->made.table, &overlay, &error), GH_OK);
	CHECK_STATUS(c, "another one", c->engine->pipelines->table_overlay(one->base->made.table, &overlay, &error),
				 GH_INVALID);
}

/* Rows are looked up, with a condition on the pair or without, as a join of any kind. */
static void
look_up(Context *c, Case *one, const GhHost *host, GhProbeKind kind)
{
	Stage	   *stage = stage_make();
	bool		fills = kind == GH_PROBE_INNER || kind == GH_PROBE_LEFT;
	bool		condition = fills && random_below(c, 2) == 0;
	uint32_t	rows = (uint32_t) random_below(c, OUTER_MOST);
	uint32_t	probe;

	stage->options.source.natts = one->nparts;
	for (uint32_t k = 0; k < one->nparts; k++)
		(void) stage_column(stage, GH_CLASS_INT, k + 1);
	probe = stage_probe(stage, &one->visible->made, kind, fills);
	if (condition)
	{
		uint32_t	limit = stage_constant(stage, GH_CLASS_INT, ENTRIES_MOST / 3);

		stage_filter(stage, stage_compute(stage, GH_OP_LT, GH_CLASS_INT, one->nparts, limit));
	}
	for (uint32_t k = 0; k < one->nparts; k++)
		stage_probe_part(stage, probe, k, (uint8_t) (64 / one->nparts));
	stage_probe_step(stage, probe);
	if (one->by_probe && one->changed->made.rows.count > 0)
	{
		stage->probes[probe].changed = one->changed->made.table;
		if (one->instead->made.rows.count > 0)
			stage->probes[probe].instead = one->instead->made.table;
	}
	stage->options.sink.kind = GH_SINK_GROUPS;
	stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	for (uint32_t k = 0; k < stage->parts.ncolumns; k++)
		if (k != one->nparts + 1 || !one->texts || !fills)
			stage_aggregate(stage, GH_AGGREGATE_SUM, k, GH_CLASS_INT);
	stage_finish(c, stage);
	for (uint32_t i = 0; i < rows; i++)
	{
		GhValue		values[KEY_PARTS_MAX] = {{random_below(c, 2 * ENTRIES_MOST) - ENTRIES_MOST, 0, random_below(c, 50) == 0}};

		if (one->nentries > 0 && random_below(c, 4) > 0)
			memcpy(values, one->entries[random_below(c, one->nentries)].values, sizeof(values));
		stage_row(stage, values);
	}
	(void) stage_run(c, stage, host);
	stage_end(stage);
	stage_drop(c, stage);
}

static void
one_case(Context *c, bool by_probe)
{
	static const GhProbeKind kinds[] = {GH_PROBE_INNER, GH_PROBE_LEFT, GH_PROBE_SEMI, GH_PROBE_ANTI};
	Case	   *one = calloc(1, sizeof(Case));
	HostState	state;
	GhHost		host;

	host_init(&state, &host);
	one->by_probe = by_probe;
	draw_entries(c, one);
	if (make_tables(c, one, &host))
	{
		if (!by_probe)
			lay_over(c, one);
		put_in_place(one);
		for (uint32_t k = 0; k < 4 && c->failures == 0; k++)
			look_up(c, one, &host, kinds[k]);
		/* it was that of the table below */
		one->visible->made.table = NULL;
	}
	stage_end(one->base);
	stage_end(one->instead);
	stage_end(one->visible);
	stage_end(one->changed);
	stage_end_table(one->changed);
	stage_end_table(one->base);
	stage_end_table(one->instead);
	stage_end_table(one->visible);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	stage_drop(c, one->base);
	stage_drop(c, one->instead);
	stage_drop(c, one->visible);
	stage_drop(c, one->changed);
	free(one->filter);
	free(one);
}

static void
overlay_shows_what_is_right(Context *c)
{
	uint64_t	seed = random_next(c);

	if (no_pipelines(c))
		return;
	if (c->engine->pipelines->table_overlay == NULL)
	{
		c->skip = "the engine has no overlays";
		return;
	}
	for (uint64_t round = 0; round < sized(c, 200, 40) && c->failures == 0; round++)
	{
		c->random = seed + round * 1000003;
		one_case(c, false);
		if (c->failures > 0)
			printf("  round %" PRIu64 " of overlays failed\n", round);
	}
}

static void
changed_keys_are_looked_up_elsewhere(Context *c)
{
	uint64_t	seed = random_next(c);

	if (no_pipelines(c))
		return;
	for (uint64_t round = 0; round < sized(c, 100, 20) && c->failures == 0; round++)
	{
		c->random = seed + round * 1000003;
		one_case(c, true);
		if (c->failures > 0)
			printf("  round %" PRIu64 " of changed keys failed\n", round);
	}
}

const Test	pipeline_overlay_tests[] = {
	{"pipelines: a filter of keys has those that were added", filter_has_its_keys, false},
	{"pipelines: an overlay shows what is right", overlay_shows_what_is_right, false},
	{"pipelines: changed keys are looked up elsewhere", changed_keys_are_looked_up_elsewhere, false},
	{NULL, NULL, false}
};
