/*
 * test_pipeline.c
 *		Pipelines, case by case: what they read, probe and make; at the edges of what there may be.
 *
 * All that comes of a stage is checked against the model.  test_pipeline_random.c draws whole chains.
 */
#include "pipeline_model.h"

/* What a test has made, from the first stage on. */
typedef struct Setting
{
	HostState	state;
	GhHost		host;
	Stage	   *stages[8];
	uint32_t	count;
} Setting;

static void
setting_init(Setting *setting)
{
	memset(setting, 0, sizeof(*setting));
	host_init(&setting->state, &setting->host);
}

/* A stage of columns of these classes, which are handed over. */
static Stage *
new_stage(Setting *setting, const uint8_t *classes, uint32_t count)
{
	Stage	   *stage = stage_make();

	setting->stages[setting->count++] = stage;
	stage->options.source.natts = count;
	for (uint32_t i = 0; i < count; i++)
		(void) stage_column(stage, classes[i], i + 1);
	return stage;
}

static void
put_key(Stage *stage, uint64_t key, bool null)
{
	GhValue		value = {key, 0, null};

	stage_row(stage, &value);
}

static bool
run(Context *c, Setting *setting, Stage *stage)
{
	return stage_run(c, stage, &setting->host) && c->failures == 0;
}

static void
setting_end(Context *c, Setting *setting)
{
	for (uint32_t i = setting->count; i-- > 0;)
		stage_end(setting->stages[i]);
	for (uint32_t i = setting->count; i-- > 0;)
		stage_end_table(setting->stages[i]);
	CHECK_U64(c, "bytes left", setting->state.allocated + setting->state.device_bytes, 0);
	for (uint32_t i = setting->count; i-- > 0;)
		stage_drop(c, setting->stages[i]);
}

static const uint8_t one_int[] = {GH_CLASS_INT};

/* A table by a key of 64 bits, which it keeps. */
static Stage *
new_table(Context *c, Setting *setting, bool numbered, GhTableMatches matches)
{
	Stage	   *stage = new_stage(setting, one_int, 1);

	stage->options.sink.kind = GH_SINK_TABLE;
	stage->options.sink.table.numbered = numbered;
	stage->options.sink.table.matches = matches;
	stage_part(stage, 0, 64);
	stage_keep(stage, 0, GH_CLASS_INT, 8);
	stage_finish(c, stage);
	return stage;
}

/* Rows that probe a table by a column, and are brought out, with what the probe fills. */
static Stage *
new_prober(Context *c, Setting *setting, ModelTable *table, GhProbeKind kind)
{
	Stage	   *stage = new_stage(setting, one_int, 1);
	uint32_t	p = stage_probe(stage, table, kind, kind <= GH_PROBE_LEFT);

	stage_probe_part(stage, p, 0, 64);
	stage_probe_step(stage, p);
	stage->options.sink.kind = GH_SINK_ROWS;
	stage_key(stage, 0, GH_CLASS_INT);
	for (uint32_t f = 0; f < stage->probes[p].nfills && f + 1 < STAGE_KEYS_MAX; f++)
		stage_key(stage, stage->fills[p][f].column, table->kept[f].value_class);
	stage_finish(c, stage);
	return stage;
}

/* ----------------------------------------------------------------------- keys */

/*
 * Keys of all patterns of 64 bits: those that an engine may take for its marks, and such as differ in a bit.
 */
static void
put_patterns(Stage *stage)
{
	for (uint32_t i = 0; i < SPECIALS; i++)
		put_key(stage, special_keys[i], false);
	for (uint32_t i = 0; i < 64; i++)
	{
		bool		is_special = false;

		for (uint32_t k = 0; k < SPECIALS; k++)
			is_special |= special_keys[k] == UINT64_C(1) << i;
		if (!is_special)
			put_key(stage, UINT64_C(1) << i, false);
	}
	put_key(stage, 0, true);
}

static void
key_patterns(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint32_t kind = GH_PROBE_INNER; kind <= GH_PROBE_ANTI; kind++)
		for (uint32_t how = 0; how < 4; how++)
		{
			Setting		setting;
			Stage	   *table;
			Stage	   *prober;

			setting_init(&setting);
			table = new_table(c, &setting, how & 1, how & 2 ? GH_MATCHES_ANY : GH_MATCHES_ALL);
			put_patterns(table);
			/* half of them */
			table->source.count -= 40;
			if (run(c, &setting, table))
			{
				prober = new_prober(c, &setting, &table->made, kind);
				put_patterns(prober);
				(void) run(c, &setting, prober);
			}
			setting_end(c, &setting);
		}
}

/* A key of parts: only its lower bits of each count. */
static void
key_parts(Context *c)
{
	static const uint8_t classes[] = {GH_CLASS_INT, GH_CLASS_INT, GH_CLASS_INT};
	static const uint8_t bits[][3] = {{1, 62, 1}, {32, 16, 16}, {8, 8, 8}, {63, 1, 0}};

	if (no_pipelines(c))
		return;
	for (uint32_t b = 0; b < 4; b++)
	{
		Setting		setting;
		Stage	   *table;
		Stage	   *prober;

		setting_init(&setting);
		table = new_stage(&setting, classes, 3);
		table->options.sink.kind = GH_SINK_TABLE;
		for (uint32_t k = 0; k < 3 && bits[b][k] > 0; k++)
			stage_part(table, k, bits[b][k]);
		stage_keep(table, 2, GH_CLASS_INT, 8);
		stage_finish(c, table);
		for (uint32_t i = 0; i < 200; i++)
		{
			uint64_t	drawn = random_next(c) >> random_below(c, 64);
			GhValue		values[] = {{drawn, 0, i % 50 == 0}, {i, 0, 0}, {~(uint64_t) i, 0, 0}};

			stage_row(table, values);
		}
		if (run(c, &setting, table))
		{
			uint32_t	p;

			prober = new_stage(&setting, classes, 3);
			p = stage_probe(prober, &table->made, GH_PROBE_LEFT, true);
			for (uint32_t k = 0; k < 3 && bits[b][k] > 0; k++)
				stage_probe_part(prober, p, k, bits[b][k]);
			stage_probe_step(prober, p);
			prober->options.sink.kind = GH_SINK_ROWS;
			stage_key(prober, 0, GH_CLASS_INT);
			stage_key(prober, prober->fills[p][0].column, GH_CLASS_INT);
			stage_finish(c, prober);
			for (uint64_t i = 0; i < table->source.count; i++)
				stage_row(prober, rows_at(&table->source, i));
			(void) run(c, &setting, prober);
		}
		setting_end(c, &setting);
	}
}

/* ---------------------------------------------------------------- what is kept */

static GhValue
draw_value(Context *c, const GhKept *kept)
{
	static const char text[] = "the bytes of texts, of which there are some";
	GhValue		value = {random_next(c), random_next(c), random_below(c, 10) == 0};
	uint32_t	shift = kept->bytes > 0 ? 64 - 8 * kept->bytes : 0;

	if (kept->value_class == GH_CLASS_INT)
		value.low = (uint64_t) ((int64_t) value.low >> shift);
	else if (kept->value_class == GH_CLASS_BOOL)
		value.low &= 1;
	else if (kept->value_class == GH_CLASS_FLOAT4)
		value.low = gh_from_double((double) (float) random_below(c, 1000) / 8);
	else if (kept->value_class == GH_CLASS_FLOAT8)
		value.low = gh_from_double((double) random_below(c, 1000) / 8);
	else if (kept->value_class == GH_CLASS_TEXT)
		value = (GhValue) {(uintptr_t) text + random_below(c, 20), random_below(c, 20), value.null};
	return value;
}

/* Tables that keep these values, of rows whose keys are all different, or `same` of each. */
static void
keep_values(Context *c, const GhKept *kept, uint32_t count, uint32_t same, bool numbered, bool nulls)
{
	uint8_t		classes[STAGE_KEPT_MAX + 1] = {GH_CLASS_INT};
	Setting		setting;
	Stage	   *table;
	Stage	   *prober;

	for (uint32_t k = 0; k < count; k++)
		classes[k + 1] = kept[k].value_class;
	setting_init(&setting);
	table = new_stage(&setting, classes, count + 1);
	table->options.sink.kind = GH_SINK_TABLE;
	table->options.sink.table.numbered = numbered;
	stage_part(table, 0, 64);
	for (uint32_t k = 0; k < count; k++)
		stage_keep(table, k + 1, kept[k].value_class, kept[k].bytes);
	stage_finish(c, table);
	for (uint64_t i = 0; i < 400; i++)
	{
		GhValue		values[STAGE_KEPT_MAX + 1] = {{i / same * 7, 0, 0}};

		for (uint32_t k = 0; k < count; k++)
		{
			values[k + 1] = draw_value(c, &kept[k]);
			values[k + 1].null &= nulls;
		}
		stage_row(table, values);
	}
	/* what a row of a numbered table is told by is kept: its number */
	if (run(c, &setting, table))
	{
		prober = new_prober(c, &setting, &table->made, GH_PROBE_LEFT);
		for (uint64_t i = 0; i < 420; i++)
			put_key(prober, i * 3, i % 100 == 0);
		(void) run(c, &setting, prober);
	}
	setting_end(c, &setting);
}

static void
kept_values(Context *c)
{
	static const GhKept int2 = {0, GH_CLASS_INT, 2};
	static const GhKept int4 = {0, GH_CLASS_INT, 4};
	static const GhKept int8 = {0, GH_CLASS_INT, 8};
	static const GhKept truth = {0, GH_CLASS_BOOL, 0};
	static const GhKept float4 = {0, GH_CLASS_FLOAT4, 0};
	static const GhKept float8 = {0, GH_CLASS_FLOAT8, 0};
	static const GhKept wide = {0, GH_CLASS_INT128, 0};
	static const GhKept text = {0, GH_CLASS_TEXT, 0};
	const struct
	{
		uint32_t	count;
		GhKept		kept[STAGE_KEPT_MAX];
	}			cases[] = {
		{0, {int2}}, {1, {int2}}, {1, {int4}}, {1, {int8}}, {1, {truth}}, {1, {float4}}, {1, {float8}},
		{1, {wide}}, {1, {text}}, {2, {int4, int2}}, {3, {int4, int2, truth}},
		{4, {int4, int2, truth, truth}},
		{4, {int2, int2, int2, truth}}, {4, {int2, int2, int2, int2}}, {2, {int4, int4}},
		{7, {truth, truth, truth, truth, truth, truth, truth}},
		{8, {truth, truth, truth, truth, truth, truth, truth, truth}}, {2, {int8, truth}},
		{7, {int8, int4, int2, truth, float8, wide, text}},
		{8, {text, wide, truth, text, int2, float4, int8, int4}}
	};

	if (no_pipelines(c))
		return;
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (uint32_t how = 0; how < 4 && c->failures == 0; how++)
		{
			/* rows of a numbered table that keep the same are told apart by nothing: not tried with many */
			keep_values(c, cases[i].kept, cases[i].count, how & 1 ? 3 : 1, false, how & 2);
			if (cases[i].count >= 7 && cases[i].kept[1].value_class != GH_CLASS_BOOL)
				keep_values(c, cases[i].kept, cases[i].count, how & 1 ? 3 : 1, true, how & 2);
			if (c->failures > 0)
				printf("  case %u, %s keys, %s NULLs\n", i, how & 1 ? "several" : "different", how & 2 ?
					   "with" : "without");
		}
}

/* -------------------------------------------------------------------- matches */

/* Two probes that multiply, of more rows than engines do at a time. */
static void
many_rows(Context *c)
{
	Setting		setting;
	Stage	   *table;
	Stage	   *prober;

	if (no_pipelines(c))
		return;
	setting_init(&setting);
	table = new_table(c, &setting, false, GH_MATCHES_ALL);
	for (uint32_t i = 0; i < 150; i++)
		put_key(table, i % 15, false);
	if (run(c, &setting, table))
	{
		prober = new_stage(&setting, one_int, 1);
		for (uint32_t p = 0; p < 2; p++)
			(void) stage_probe(prober, &table->made, p == 0 ? GH_PROBE_LEFT : GH_PROBE_INNER, true);
		for (uint32_t p = 0; p < 2; p++)
		{
			stage_probe_part(prober, p, p == 0 ? 0 : prober->fills[0][0].column, 64);
			stage_probe_step(prober, p);
		}
		prober->options.sink.kind = GH_SINK_GROUPS;
		stage_key(prober, 0, GH_CLASS_INT);
		stage_aggregate(prober, GH_AGGREGATE_COUNT_ROWS, 0, 0);
		stage_finish(c, prober);
		for (uint32_t i = 0; i < 1300; i++)
			put_key(prober, i % 20, i % 77 == 0);
		(void) run(c, &setting, prober);
	}
	setting_end(c, &setting);
}

/* Rows without a match, of tables whose keys may be NULL; after rows that found some, or none. */
static void
unmatched_rows(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint32_t how = 0; how < 8; how++)
	{
		Setting		setting;
		Stage	   *table;
		Stage	   *prober;
		uint32_t	p;

		setting_init(&setting);
		table = new_table(c, &setting, true, GH_MATCHES_ALL);
		for (uint32_t i = 0; i < (how & 1 ? 70 : 2500); i++)
			put_key(table, i / 2, i % 9 == 0);
		if (run(c, &setting, table))
		{
			prober = new_stage(&setting, one_int, 1);
			p = stage_probe(prober, &table->made, how & 2 ? GH_PROBE_INNER : GH_PROBE_LEFT, true);
			stage_probe_part(prober, p, 0, 64);
			/* in front of the probe, and behind it */
			stage_run_step(prober);
			stage_probe_step(prober, p);
			prober->marking[p] = true;
			prober->options.sink.kind = GH_SINK_ROWS;
			stage_key(prober, 0, GH_CLASS_INT);
			stage_key(prober, prober->fills[p][0].column, GH_CLASS_INT);
			stage_finish(c, prober);
			for (uint32_t i = 0; how & 4 && i < 600; i++)
				put_key(prober, i * 3, i % 5 == 0);
			(void) run(c, &setting, prober);
		}
		setting_end(c, &setting);
	}
}

/*
 * A flagged row of a table sends back those that match it, and itself where nothing does, at the probe's
 * step.
 */
static void
flagged_rows(Context *c)
{
	static const uint8_t classes[] = {GH_CLASS_INT, GH_CLASS_BOOL};

	if (no_pipelines(c))
		return;
	for (uint32_t kind = GH_PROBE_INNER; kind <= GH_PROBE_ANTI; kind++)
		for (uint32_t same = 1; same <= 3; same += 2)
		{
			Setting		setting;
			Stage	   *table;
			Stage	   *prober;

			setting_init(&setting);
			table = new_stage(&setting, classes, 2);
			table->options.sink.kind = GH_SINK_TABLE;
			table->options.sink.table.back_vector = 2;
			stage_part(table, 0, 64);
			stage_keep(table, 0, GH_CLASS_INT, 2);
			stage_finish(c, table);
			for (uint32_t i = 0; i < 100; i++)
				stage_row(table, (GhValue[]) {{i / same, 0, i % 17 == 0}, {i % 10 == 0, 0, i % 20 == 0}});
			if (run(c, &setting, table))
			{
				prober = new_prober(c, &setting, &table->made, kind);
				for (uint32_t i = 0; i < 200; i++)
					put_key(prober, i, false);
				(void) run(c, &setting, prober);
				CHECK(c, prober->backs > 0 || c->failures > 0, "no row went back");
			}
			setting_end(c, &setting);
		}
}

/* ---------------------------------------------------------------- no rows at all */

static void
empty_inputs(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint32_t kind = GH_PROBE_INNER; kind <= GH_PROBE_ANTI; kind++)
		for (uint32_t how = 0; how < 4; how++)
		{
			Setting		setting;
			Stage	   *table;
			Stage	   *prober;

			setting_init(&setting);
			table = new_table(c, &setting, how & 1, GH_MATCHES_ALL);
			if (how & 2)
				put_key(table, 3, true);
			if (run(c, &setting, table))
			{
				prober = new_prober(c, &setting, &table->made, kind);
				prober->marking[0] = (how & 1) && kind <= GH_PROBE_LEFT;
				for (uint32_t i = 0; i < 5 * (how / 2); i++)
					put_key(prober, i, i == 3);
				(void) run(c, &setting, prober);
			}
			setting_end(c, &setting);
		}
}

/* Groups without rows: one where there are no keys, else none; and pipelines that read them. */
static void
empty_groups(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint32_t nkeys = 0; nkeys < 2; nkeys++)
	{
		Setting		setting;
		Stage	   *groups;
		Stage	   *reader;

		setting_init(&setting);
		groups = new_stage(&setting, one_int, 1);
		groups->options.sink.kind = GH_SINK_GROUPS;
		if (nkeys > 0)
			stage_key(groups, 0, GH_CLASS_INT);
		stage_aggregate(groups, GH_AGGREGATE_COUNT_ROWS, 0, 0);
		stage_aggregate(groups, GH_AGGREGATE_SUM, 0, GH_CLASS_INT);
		stage_finish(c, groups);
		if (run(c, &setting, groups))
		{
			reader = setting.stages[setting.count++] = stage_make();
			stage_from_groups(reader, groups);
			reader->group_columns[0] = (GhGroupColumn) {GH_GROUP_COUNT, 0};
			reader->group_columns[1] = (GhGroupColumn) {GH_GROUP_VALUE, 1};
			reader->options.source.natts = 2;
			(void) stage_column(reader, GH_CLASS_INT, 1);
			(void) stage_column(reader, GH_CLASS_INT128, 2);
			reader->options.sink.kind = GH_SINK_ROWS;
			stage_key(reader, 0, GH_CLASS_INT);
			stage_key(reader, 1, GH_CLASS_INT128);
			stage_finish(c, reader);
			CHECK_U64(c, "groups", reader->source.count, 1 - nkeys);
			(void) run(c, &setting, reader);
		}
		setting_end(c, &setting);
	}
}

/* --------------------------------------------------------------------- groups */

/* A sum that 64 bits do not hold is one of 128, or goes back. */
static void
wide_sums(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint32_t how = 0; how < 2; how++)
	{
		uint8_t		value_class = how == 0 ? GH_CLASS_INT : GH_CLASS_INT128;
		Setting		setting;
		Stage	   *groups;
		Stage	   *reader;

		setting_init(&setting);
		groups = new_stage(&setting, (const uint8_t[]) {GH_CLASS_INT, GH_CLASS_INT}, 2);
		groups->options.sink.kind = GH_SINK_GROUPS;
		stage_key(groups, 0, GH_CLASS_INT);
		stage_aggregate(groups, GH_AGGREGATE_SUM, 1, GH_CLASS_INT);
		stage_finish(c, groups);
		for (uint32_t i = 0; i < 40; i++)
		{
			uint64_t	number = i % 10 < 5 ? INT64_MAX : (uint64_t) (INT64_MIN / 4);

			stage_row(groups, (GhValue[]) {{i % 10, 0, 0}, {number, 0, i % 10 == 4}});
		}
		if (run(c, &setting, groups))
		{
			reader = setting.stages[setting.count++] = stage_make();
			stage_from_groups(reader, groups);
			reader->group_columns[0] = (GhGroupColumn) {GH_GROUP_KEY, 0};
			reader->group_columns[1] = (GhGroupColumn) {GH_GROUP_VALUE, 0};
			reader->options.source.natts = 2;
			(void) stage_column(reader, GH_CLASS_INT, 1);
			(void) stage_column(reader, value_class, 2);
			stage_run_step(reader);
			reader->options.sink.kind = GH_SINK_ROWS;
			stage_key(reader, 0, GH_CLASS_INT);
			stage_key(reader, 1, value_class);
			stage_finish(c, reader);
			(void) run(c, &setting, reader);
			CHECK_U64(c, "sums that go back", reader->backs, how == 0 ? 4 : 0);
		}
		setting_end(c, &setting);
	}
}

/* ------------------------------------------------------------- other tables */

/* Another handle on a table, where the engine has several. */
static GhTable *
another_handle(Context *c, const GhHost *host, GhTable *table)
{
	GhTable    *another = table;
	GhError		error = {0};

	if (c->on_host)
		CHECK(c, c->engine->table_attach(host, c->engine->table_root(table), &another, &error) == GH_OK, "attach: %s",
			  error.message);
	return another;
}

/* Tables that no pipeline made: a value each, or none.  Who fills one may have another handle than who probes it. */
static void
other_tables(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint32_t value_size = 0; value_size <= 8; value_size += 8)
		for (uint32_t kind = GH_PROBE_INNER; kind <= GH_PROBE_ANTI; kind++)
		{
			GhTableOptions options = {.key_size = 8,.value_size = value_size,.seed = c->seed};
			ModelTable	table = {.nkept = value_size / 8,.kept = {{0, GH_CLASS_INT, 8}}};
			uint64_t	keys[100];
			uint64_t	values[100];
			bool		there[100];
			bool		back[100] = {false};
			GhRequest	request = {.op = GH_INSERT,.count = 100,.keys = keys};
			Setting		setting;
			Stage	   *prober;
			GhTable    *filled = NULL;
			GhError		error;

			setting_init(&setting);
			if (c->on_host)
				host_init_locked(&setting.state, &setting.host);
			request.values_in = value_size > 0 ? values : NULL;
			rows_init(&table.rows, table.nkept);
			table.keys = keys;
			table.has_key = there;
			table.back = back;
			for (uint32_t i = 0; i < 100; i++)
			{
				keys[i] = i * i;
				values[i] = random_next(c);
				there[i] = true;
				(void) rows_add(&table.rows, (GhValue[]) {{values[i], 0, 0}}, false);
			}
			if (CHECK_STATUS(c, "a table", c->engine->table_create(&setting.host, &options, &filled, &error),
							 GH_OK) &&
				CHECK_STATUS(c, "its rows", do_request(c, filled, &request), GH_OK))
			{
				table.table = another_handle(c, &setting.host, filled);
				prober = new_prober(c, &setting, &table, kind);
				for (uint32_t i = 0; i < 2000; i++)
					put_key(prober, i, i % 100 == 0);
				(void) run(c, &setting, prober);
				stage_end(prober);
			}
			if (table.table != NULL && table.table != filled)
				c->engine->table_detach(table.table);
			c->engine->table_destroy(filled);
			CHECK(c, !setting.state.lock_misused, "the host's lock was misused");
			rows_drop(&table.rows);
			setting_end(c, &setting);
		}
}

const Test	pipeline_tests[] = {
	{"pipelines: keys of all patterns", key_patterns, false},
	{"pipelines: keys of parts", key_parts, false},
	{"pipelines: values that tables keep", kept_values, false},
	{"pipelines: probes that multiply many rows", many_rows, false},
	{"pipelines: rows without a match", unmatched_rows, false},
	{"pipelines: rows of tables that hand back", flagged_rows, false},
	{"pipelines: nothing to read or probe", empty_inputs, false},
	{"pipelines: groups without rows", empty_groups, false},
	{"pipelines: sums of more than 64 bits", wide_sums, false},
	{"pipelines: tables that no pipeline made", other_tables, false},
	{NULL, NULL, false}
};
