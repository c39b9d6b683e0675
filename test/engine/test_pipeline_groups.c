/*
 * test_pipeline_groups.c
 *		Groups of pipelines by keys of all widths and classes, with NULLs; by keys that differ in little; and by keys
 *		that an engine may take for the same.
 */
#include "pipeline_model.h"

/* A stage that groups the rows of its columns by all of them, and counts. */
static Stage *
by_columns(Context *c, const uint8_t *classes, uint32_t count)
{
	Stage	   *stage = stage_make();

	stage->options.source.natts = count;
	for (uint32_t i = 0; i < count; i++)
		(void) stage_column(stage, classes[i], i + 1);
	stage->options.sink.kind = GH_SINK_GROUPS;
	stage->options.sink.groups.seed = c->seed;
	for (uint32_t i = 0; i < count; i++)
		stage_key(stage, i, classes[i]);
	stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	stage_finish(c, stage);
	stage->cut = 700;
	return stage;
}

static void
run_and_drop(Context *c, Stage *stage)
{
	HostState	state;
	GhHost		host;

	host_init(&state, &host);
	(void) stage_run(c, stage, &host);
	stage_end(stage);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	stage_drop(c, stage);
}

/* ---------------------------------------------------------------------- widths */

/* An integer at the edges of what so many bits hold. */
static uint64_t
edge(uint32_t bits, uint64_t which)
{
	uint64_t	least = UINT64_MAX << (bits - 1);

	switch (which % 6)
	{
		case 0:
			return least;
		case 1:
			return ~least;
		case 2:
			return least + 1;
		case 3:
			return 0;
		case 4:
			return UINT64_MAX;
		default:
			return ~least >> 1;
	}
}

/* Rows of values of up to so many bits each, some NULL; each comes twice. */
static void
put_edges(Context *c, Stage *stage, const uint32_t *bits, uint32_t rows)
{
	uint32_t	n = stage->options.source.natts;
	GhValue		values[STAGE_KEYS_MAX];

	for (uint32_t i = 0; i < rows; i++)
	{
		for (uint32_t k = 0; k < n; k++)
		{
			values[k] = (GhValue) {edge(bits[k], random_next(c)), 0, random_below(c, 5) == 0};
			if (stage->keys[k].value_class == GH_CLASS_BOOL)
				values[k].low &= 1;
		}
		stage_row(stage, values);
		stage_row(stage, values);
	}
}

/* Keys whose widths together are, over requests, less than 64 bits, as many, more, and less again. */
static void
widths(Context *c)
{
	static const uint8_t integers[] = {GH_CLASS_INT, GH_CLASS_INT, GH_CLASS_INT, GH_CLASS_INT};
	static const uint8_t mixed[] = {GH_CLASS_BOOL, GH_CLASS_INT, GH_CLASS_BOOL, GH_CLASS_INT};
	static const uint32_t steps[][4] = {
		{1, 1, 1, 1}, {16, 16, 16, 16}, {2, 40, 2, 20}, {20, 2, 40, 2}, {2, 60, 1, 1}, {1, 62, 2, 30}, {64, 64, 64, 64},
		{3, 3, 3, 3}
	};

	if (no_pipelines(c))
		return;
	for (uint32_t n = 1; n <= 4; n++)
		for (uint32_t first = 0; first < sizeof(steps) / sizeof(steps[0]) && c->failures == 0; first++)
			for (uint32_t how = 0; how < 2; how++)
			{
				Stage	   *stage = by_columns(c, how == 0 ? integers : mixed, n);

				for (uint32_t s = first; s < sizeof(steps) / sizeof(steps[0]); s++)
					put_edges(c, stage, steps[s], 350);
				run_and_drop(c, stage);
			}
}

/* Two keys of w and 64 - w bits at their edges, which 64 bits are just enough for; then of one more. */
static void
all_widths(Context *c)
{
	static const uint8_t integers[] = {GH_CLASS_INT, GH_CLASS_INT};

	if (no_pipelines(c))
		return;
	for (uint32_t w = 1; w < 64 && c->failures == 0; w++)
		for (uint32_t more = 0; more < 2; more++)
		{
			Stage	   *stage = by_columns(c, integers, 2);

			put_edges(c, stage, (uint32_t[]) {w, 64 - w + more}, 60);
			run_and_drop(c, stage);
		}
}

/* All combinations of so many truth values and NULLs, `all` of them: what is NULL alone tells many apart. */
static Stage *
combine(Context *c, uint32_t n, uint32_t all)
{
	uint8_t		classes[8];
	Stage	   *stage;

	memset(classes, GH_CLASS_BOOL, sizeof(classes));
	stage = by_columns(c, classes, n);
	for (uint32_t i = 0; i < all; i++)
	{
		GhValue		values[8];
		uint32_t	digits = i * 5 % all;

		for (uint32_t k = 0; k < n; k++, digits /= 3)
			values[k] = (GhValue) {digits % 3 == 1, 0, digits % 3 == 2};
		stage_row(stage, values);
	}
	return stage;
}

/* Many of them; and few, by many seeds, with another request where nothing is NULL. */
static void
truths(Context *c)
{
	if (no_pipelines(c))
		return;
	run_and_drop(c, combine(c, 8, 6561));
	for (uint32_t s = 0; s < 200 && c->failures == 0; s++)
	{
		Stage	   *stage = combine(c, 4, 81);

		stage->cut = 81;
		stage->options.sink.groups.seed = c->seed + s;
		for (uint32_t i = 0; i < 16; i++)
			stage_row(stage, (GhValue[]) {{i & 1, 0, 0}, {i >> 1 & 1, 0, 0}, {i >> 2 & 1, 0, 0}, {i >> 3, 0, 0}});
		run_and_drop(c, stage);
	}
}

/* One key of each class, of many values, and such as are equal although their bits are not. */
static void
classes(Context *c)
{
	static const uint8_t each[] = {GH_CLASS_BOOL, GH_CLASS_INT, GH_CLASS_INT128, GH_CLASS_FLOAT4, GH_CLASS_FLOAT8,
	GH_CLASS_TEXT};
	static const char text[] = "abcabdabeaaaaaaaaaaaaaaaa";

	if (no_pipelines(c))
		return;
	for (uint32_t k = 0; k < sizeof(each) && c->failures == 0; k++)
	{
		Stage	   *stage = by_columns(c, &each[k], 1);

		for (uint32_t i = 0; i < 12000; i++)
		{
			uint64_t	drawn = random_below(c, 6000);
			GhValue		value = {drawn, 0, drawn == 77};

			if (each[k] == GH_CLASS_BOOL)
				value.low &= 1;
			else if (each[k] == GH_CLASS_INT128)
				value.high = drawn % 3;
			else if (each[k] == GH_CLASS_TEXT)
				value = (GhValue) {(uintptr_t) text + drawn % 16, drawn % 9, drawn == 77};
			else if (each[k] != GH_CLASS_INT)
				value.low = drawn < 10 ? UINT64_C(0x7FF8000000000000) + drawn * (UINT64_C(1) << 60) / 2 :
					drawn < 20 ? drawn % 2 << 63 : gh_from_double((double) drawn / 8);
			stage_row(stage, &value);
		}
		run_and_drop(c, stage);
	}
}

/* ---------------------------------------------------------------------- many */

/* More groups than are few, of one key and of two; each comes again later, and some with a NULL. */
static void
many(Context *c)
{
	static const uint8_t integers[] = {GH_CLASS_INT, GH_CLASS_INT};
	uint32_t	groups = (uint32_t) sized(c, 40000, 10000);

	if (no_pipelines(c))
		return;
	for (uint32_t n = 1; n <= 2; n++)
	{
		Stage	   *stage = by_columns(c, integers, n);

		for (uint32_t i = 0; i < 2 * groups; i++)
		{
			uint64_t	word = mix(i % groups);
			GhValue		values[2] = {{n == 1 ? word : i % groups, 0, i % 1000 == 7}, {word >> 40, 0, i % 500 == 9}};

			stage_row(stage, values);
		}
		run_and_drop(c, stage);
	}
}

/*
 * Keys of two words whose hash, as record_row.h has it, is the same for all: what hashes alone tell apart is one
 * group.
 */
static void
one_hash(Context *c)
{
	static const uint8_t integers[] = {GH_CLASS_INT, GH_CLASS_INT};
	Stage	   *stage;

	if (no_pipelines(c))
		return;
	stage = by_columns(c, integers, 2);
	for (uint32_t i = 0; i < 3000; i++)
	{
		uint64_t	word = i % 1500 * UINT64_C(0x123456789ABCDEF1);
		GhValue		values[2] = {{word, 0, 0}, {UINT64_C(42) - gh_code_mix(c->seed + word), 0, 0}};

		stage_row(stage, values);
	}
	run_and_drop(c, stage);
}

const Test	pipeline_group_tests[] = {
	{"pipelines: keys of groups of many widths", widths, false},
	{"pipelines: keys of groups that fill a word", all_widths, false},
	{"pipelines: groups by truth values and NULLs", truths, false},
	{"pipelines: groups by a key of each class", classes, false},
	{"pipelines: many groups", many, false},
	{"pipelines: groups of one hash", one_hash, false},
	{NULL, NULL, false}
};
