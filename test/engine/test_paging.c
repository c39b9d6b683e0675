/*
 * test_paging.c
 *		Tables that page: beyond the budget of device memory they are in the host's.
 *
 * Every operation is held against the model, as on any table; so is what was taken of both
 * budgets, to the byte (check_content).
 */
#include "conformance.h"

static void
paging_options(Context *c, TableType type, GhTableOptions *options)
{
	*options = options_of(c, type);
	options->pages = true;
}

/* With so much device memory beyond what a new table takes. */
static bool
open_paging(Subject *s, Context *c, const GhTableOptions *options, uint64_t beyond, Budget *device, Budget *host)
{
	device->limit = bytes_when_new(c, options) + beyond;
	device->taken = host->taken = 0;
	memset(s, 0, sizeof(*s));
	host_init(&s->state, &s->host);
	s->state.budget = device;
	s->state.host_budget = host;
	return CHECK_STATUS(c, "create a table that pages", subject_try(s, c, options), GH_OK);
}

static uint64_t
bytes_paged(Subject *s)
{
	GhTableStats stats = {0};
	GhError		error = {0};
	uint64_t	of_subtables = 0;
	uint32_t	i;

	CHECK_STATUS(s->c, "stats", s->c->engine->table_stats(s->table, &stats, &error), GH_OK);
	for (i = 0; i < stats.subtables; i++)
		of_subtables += stats.subtable[i].bytes_paged;
	CHECK(s->c, of_subtables <= stats.bytes_paged, "the subtables have %" PRIu64 " bytes paged of %" PRIu64,
		  of_subtables, stats.bytes_paged);
	return stats.bytes_paged;
}

static void
close_paging(Subject *s, const Budget *device, const Budget *host)
{
	Context    *c = s->c;

	subject_close(s);
	CHECK_U64(c, "device memory after destroy", budget_taken(device), 0);
	CHECK_U64(c, "page-locked memory after destroy", budget_taken(host), 0);
}

/* Whether the engine can: there may be no device, or its driver may not. */
bool
pages_tables(Context *c)
{
	GhTableOptions options;
	Budget		device;
	Budget		host = {UINT64_MAX, 0};
	GhError		error = {0};
	Subject		s;
	GhStatus	status;

	if (c->on_host)
		return false;
	paging_options(c, type_of_kind(KIND_MAP), &options);
	if (!open_paging(&s, c, &options, 0, &device, &host))
		return false;
	status = c->engine->table_reserve(s.table, 100000, &error);
	CHECK(c, status == GH_OK || (status == GH_LIMIT && !c->stand_in), "reserve beyond the device's memory: %s",
		  gh_status_name(status));
	CHECK(c, status != GH_OK || bytes_paged(&s) > 0, "nothing is paged");
	close_paging(&s, &device, &host);
	return status == GH_OK;
}

static bool
does_page(Context *c)
{
	bool		does = pages_tables(c);

	if (!does)
		c->skip = c->on_host ? "the engine takes no device memory" : "the device's driver does not map the host's memory";
	return does;
}

/* All that grows is in the host's memory. */
static void
test_paging_lives(Context *c)
{
	Scenario	scenario;
	TableType	type;
	uint32_t	t;

	if (!does_page(c))
		return;
	scenario_make(c, &scenario, sized(c, 20000, 1500));
	for (t = 0; type_at(c, t, &type) && c->failures == 0; t++)
	{
		GhTableOptions options;
		Budget		device;
		Budget		host = {UINT64_MAX, 0};
		Subject		s;

		if (type.value_size > 64 && !c->reduced && t % 2 == 0)
			continue;
		paging_options(c, type, &options);
		options.subtables = GH_SUBTABLES_MIN + t % 7;
		if (!open_paging(&s, c, &options, 0, &device, &host))
			break;
		scenario_play(&s, &scenario);
		CHECK(c, s.lost || bytes_paged(&s) > 0, "nothing is paged");
		close_paging(&s, &device, &host);
	}
	scenario_drop(&scenario);
}

/* A table many times as large as the device's memory, which then is there again. */
static void
test_paging_large(Context *c)
{
	static const TableType types[] = {
		{KIND_MAP, 8, 8}, {KIND_MAP, 4, 4}, {KIND_SET, 8, 0}, {KIND_MAP, 8, 24}, {KIND_MULTI, 8, 8}
	};
	uint64_t	count = sized(c, 1200000, 12000);
	uint64_t   *keys = make_words(count);
	uint8_t    *ops = make_memory(count);
	uint64_t	i;
	size_t		t;

	for (i = 0; i < count; i++)
	{
		/* some come twice */
		keys[i] = i % 16 == 15 ? keys[i - 15] : random_next(c);
		ops[i] = (uint8_t) (i % 4 == 0 ? GH_UPSERT : i % 4 == 1 ? GH_FIND : i % 4 == 2 ? GH_DELETE : GH_INSERT);
	}
	for (t = 0; does_page(c) && t < sizeof(types) / sizeof(types[0]) && c->failures == 0; t++)
	{
		uint64_t	wanted = count * (types[t].key_size + types[t].value_size);
		GhTableOptions options;
		Budget		device;
		Budget		host = {UINT64_MAX, 0};
		GhError		error = {0};
		Subject		s;

		paging_options(c, types[t], &options);
		if (!open_paging(&s, c, &options, wanted / 4, &device, &host))
			break;
		do_checked(&s, storing_op(&s), keys, NULL, count);
		CHECK(c, bytes_paged(&s) > 0, "nothing is paged");
		check_content(&s);
		check_export(&s, 5000);
		if (s.kind != KIND_MULTI)
			do_mixed(&s, ops, keys, NULL, count);
		do_checked(&s, GH_COUNT, keys, NULL, count);
		do_checked(&s, GH_DELETE, keys, NULL, count / 3);
		do_checked(&s, storing_op(&s), keys, NULL, count / 2);
		check_content(&s);
		/* others give back what they had: the stand-in for a device moves nothing */
		device.limit = UINT64_MAX;
		CHECK_STATUS(c, "flush", c->engine->table_flush(s.table, &error), GH_OK);
		CHECK(c, c->stand_in || bytes_paged(&s) == 0, "%" PRIu64 " bytes stay paged", bytes_paged(&s));
		check_content(&s);
		check_export(&s, 5000);
		do_checked(&s, GH_DELETE, keys, NULL, count);
		check_content(&s);
		subject_clear(&s);
		check_content(&s);
		close_paging(&s, &device, &host);
	}
	free(keys);
	free(ops);
}

/* The host's memory ends, too: a prefix is done, and later the rest. */
static void
test_paging_ends(Context *c)
{
	uint64_t	count = sized(c, 1000000, 20000);
	uint64_t   *keys = make_words(count);
	Kind		kind;
	uint64_t	i;

	for (i = 0; i < count; i++)
		keys[i] = random_next(c);
	for (kind = 0; does_page(c) && kind < KINDS; kind++)
	{
		GhTableOptions options;
		Budget		device;
		Budget		host = {c->stand_in ? 200000 : 10 << 20, 0};
		Subject		s;
		Batch		b;

		paging_options(c, type_of_kind(kind), &options);
		if (!open_paging(&s, c, &options, 0, &device, &host))
			break;
		batch_begin(&s, &b, storing_op(&s), keys, NULL, NULL, count);
		if (c->reduced && !c->stand_in)
			batch_run(&b);
		else
		{
			CHECK_STATUS(c, "storing at the end of both", batch_run(&b), GH_LIMIT);
			CHECK(c, b.request.outcome.done < count, "all was done");
		}
		check_content(&s);
		check_export(&s, 1000);
		host.limit = UINT64_MAX;
		CHECK_STATUS(c, "storing with more of the host's", batch_run(&b), GH_OK);
		check_content(&s);
		batch_end(&b);
		close_paging(&s, &device, &host);
	}
	free(keys);
}

/* Ever fewer: a range of pieces is made in milliseconds. */
static uint64_t
later(uint64_t run)
{
	return run + 1 + run / 4;
}

/* Takings of memory refused, one in each run, of the device or of the host. */
static void
test_paging_refused(Context *c)
{
	static const TableType types[] = {{KIND_MAP, 8, 8}, {KIND_MULTI, 8, 8}, {KIND_MAP, 8, 100}};
	Scenario	scenario;
	size_t		t;

	if (!does_page(c))
		return;
	scenario_make(c, &scenario, sized(c, 2000, 700));
	for (t = 0; t < sizeof(types) / sizeof(types[0]); t++)
	{
		bool		refused = true;
		uint64_t	run = 1;

		for (; refused && c->failures == 0; run = later(run))
		{
			GhTableOptions options;
			Budget		device;
			Budget		host = {UINT64_MAX, 0};
			Subject		s;

			paging_options(c, types[t], &options);
			if (!open_paging(&s, c, &options, 0, &device, &host))
				break;
			s.patient = true;
			s.state.takes = 0;
			/* of the table's first bytes: nothing is refused for the budget's end */
			device.limit = run % 2 == 0 ? device.limit : UINT64_MAX;
			s.state.refuse_at = run;
			scenario_play(&s, &scenario);
			refused = s.state.takes >= run;
			close_paging(&s, &device, &host);
		}
		CHECK(c, run > 4, "%" PRIu64 " takings were seen to be refused", run);
	}
	scenario_drop(&scenario);
}

/* Allocations of the device's fail, one in each run. */
static void
test_paging_allocations(Context *c)
{
	static const TableType types[] = {{KIND_MAP, 8, 8}, {KIND_MULTI, 8, 8}};
	FaultArm	arm;
	Scenario	scenario;
	size_t		t;

	if (!does_page(c) || (arm = find_fault_arm(c)) == NULL)
		return;
	scenario_make(c, &scenario, sized(c, 2000, 700));
	for (t = 0; t < sizeof(types) / sizeof(types[0]); t++)
	{
		uint64_t	run;

		for (run = 1; run < 200 && c->failures == 0; run = later(run))
		{
			GhTableOptions options;
			Budget		device;
			Budget		host = {UINT64_MAX, 0};
			Subject		s;

			paging_options(c, types[t], &options);
			if (!open_paging(&s, c, &options, 0, &device, &host))
				break;
			s.patient = true;
			arm(run, 0);
			scenario_play(&s, &scenario);
			arm(0, 0);
			CHECK(c, !s.lost, "a failed allocation became a failure of the device");
			close_paging(&s, &device, &host);
		}
	}
	scenario_drop(&scenario);
}

/* ------------------------------------------------------- copies of entries */

/* A life in which the keys that are used most change between look-ups. */
typedef struct HotLife
{
	Subject		s;
	Budget		device;
	Budget		host;
	uint64_t	universe;		/* different keys */
	uint64_t	hot;			/* of them, those that are used most */
	uint64_t	most;			/* keys of a batch */
	uint64_t	cached;			/* look-ups that copies answered, in the end */
	uint64_t   *keys;
	uint8_t    *ops;
	FaultArm	arm;			/* NULL: allocations cannot be made to fail */
} HotLife;

static uint64_t
hot_draw(HotLife *life)
{
	static const GhOp ops[] = {GH_INSERT, GH_UPSERT, GH_FIND, GH_FIND, GH_FIND, GH_DELETE};
	Context    *c = life->s.c;
	uint64_t	count = 1 + random_below(c, life->most >> random_below(c, 6));
	uint64_t	i;

	for (i = 0; i < count; i++)
	{
		uint64_t	among = random_below(c, 4) != 0 ? life->hot : life->universe;

		life->keys[i] = random_below(c, 500) == 0 ? special_keys[random_below(c, SPECIALS)] :
			mix(random_below(c, among) + 1);
		life->ops[i] = (uint8_t) ops[random_below(c, sizeof(ops) / sizeof(ops[0]))];
	}
	return count;
}

/* A change that memory may end, in the middle of it. */
static void
hot_change(HotLife *life, GhOp op, uint64_t count)
{
	Subject    *s = &life->s;
	Context    *c = s->c;
	uint64_t	refuse = random_below(c, 4);
	Batch		b;

	batch_begin(s, &b, op, life->keys, NULL, op == GH_MIXED ? life->ops : NULL, count);
	if (refuse == 0)
	{
		life->host.limit = budget_taken(&life->host);
		s->state.takes = 0;
		s->state.refuse_at = 1 + random_below(c, 4);
		s->state.refuse_after = true;
	}
	else if (refuse == 1 && life->arm != NULL)
		life->arm(1 + random_below(c, 3), 0);
	(void) batch_run(&b);
	if (life->arm != NULL)
		life->arm(0, 0);
	life->host.limit = UINT64_MAX;
	s->state.refuse_at = 0;
	s->state.refuse_after = false;
	CHECK_STATUS(c, "the rest of it", batch_run(&b), GH_OK);
	batch_end(&b);
}

static void
hot_step(HotLife *life)
{
	static const GhOp ops[] = {GH_INSERT, GH_UPSERT, GH_UPSERT, GH_EXCHANGE, GH_DELETE, GH_MIXED, GH_MIXED};
	Subject    *s = &life->s;
	Context    *c = s->c;
	uint64_t	count = hot_draw(life);
	uint64_t	other = random_below(c, 24);
	GhError		error = {0};
	GhOp		op;

	do_checked(s, GH_FIND, life->keys, NULL, count);
	if (other == 0)
		subject_clear(s);
	else if (other == 1)
		CHECK_STATUS(c, "flush", c->engine->table_flush(s->table, &error), GH_OK);
	else if (other == 2)
		CHECK_STATUS(c, "reserve", c->engine->table_reserve(s->table, s->model->keys + life->universe / 4,
															&error), GH_OK);
	else
	{
		do
			op = ops[random_below(c, sizeof(ops) / sizeof(ops[0]))];
		while (!op_fits(s, op));
		hot_change(life, op, count);
	}
	/* of what has just changed, and of what is used most */
	do_checked(s, random_below(c, 4) == 0 ? GH_COUNT : GH_FIND, life->keys, NULL, count);
	count = hot_draw(life);
	do_checked(s, GH_FIND, life->keys, NULL, count);
}

/* There is device memory for everything, and an upsert may be done by regions. */
static void
hot_settle(HotLife *life)
{
	Subject    *s = &life->s;
	Context    *c = s->c;
	uint64_t	count = life->universe / 2;
	GhError		error = {0};
	DeviceBatch d;
	uint64_t	i;

	life->device.limit = UINT64_MAX;
	CHECK_STATUS(c, "flush", c->engine->table_flush(s->table, &error), GH_OK);
	/* regions are for batches for which the table need not grow */
	CHECK_STATUS(c, "reserve", c->engine->table_reserve(s->table, s->model->keys + count, &error), GH_OK);
	CHECK(c, c->stand_in || bytes_paged(s) == 0, "%" PRIu64 " bytes stay paged", bytes_paged(s));
	for (i = 0; i < count; i++)
		life->keys[i] = mix(i + 1);
	if (s->kind == KIND_MAP && device_batch_fits(c) &&
		device_batch_begin(s, &d, GH_UPSERT, life->keys, count, true))
	{
		CHECK_STATUS(c, "upsert of arrays on the device", batch_run(&d.batch), GH_OK);
		device_batch_end(&d);
	}
	check_content(s);
}

static void
hot_play(HotLife *life, uint64_t steps)
{
	Subject    *s = &life->s;
	Context    *c = s->c;
	GhTableStats stats = {0};
	GhError		error = {0};
	uint64_t	count = life->universe * 3 / 4;
	uint64_t	i;

	for (i = 0; i < count; i++)
		life->keys[i] = mix(i + 1);
	do_checked(s, GH_INSERT, life->keys, NULL, count);
	for (i = 0; i < steps && c->failures == 0; i++)
		hot_step(life);
	check_content(s);
	hot_settle(life);
	CHECK_STATUS(c, "stats", c->engine->table_stats(s->table, &stats, &error), GH_OK);
	CHECK(c, stats.reads_cached + stats.reads_paged <= stats.reads,
		  "%" PRIu64 " look-ups answered by copies, %" PRIu64 " paged, of %" PRIu64, stats.reads_cached,
		  stats.reads_paged, stats.reads);
	life->cached += stats.reads_cached;
}

/*
 * Copies of the entries that are used most, after each kind of change: of small tables with many
 * configurations of memory, and of large ones, whose batches are arranged by regions.
 */
static void
test_paging_copies(Context *c)
{
	static const TableType types[] = {
		{KIND_MAP, 8, 8}, {KIND_MAP, 4, 4}, {KIND_SET, 8, 0}, {KIND_SET, 4, 0}, {KIND_MAP, 8, 24}
	};
	uint64_t	most = sized(c, 1200000, 40000);
	HotLife		life = {.keys = make_words(most), .ops = make_memory(most)};
	size_t		t;

	life.arm = does_page(c) ? find_fault_arm(c) : NULL;
	c->skip = c->on_host ? c->skip : NULL;
	for (t = 0; does_page(c) && t < sizeof(types) / sizeof(types[0]); t++)
	{
		bool		suits = types[t].value_size == 0 || types[t].value_size == types[t].key_size;
		int			run;

		life.cached = 0;
		for (run = 0; run < 8 && c->failures == 0; run++)
		{
			bool		large = run == 7 && !c->reduced;
			GhTableOptions options;

			life.universe = large ? most : most / 20 + random_below(c, 1000);
			life.hot = life.universe / (large ? 100 : 20);
			life.most = large ? most / 12 : life.universe / 2;
			life.host = (Budget) {UINT64_MAX, 0};
			paging_options(c, types[t], &options);
			options.subtables = GH_SUBTABLES_MIN + (uint32_t) random_below(c, 4);
			if (!open_paging(&life.s, c, &options, large ? (uint64_t) 20 << 20 : random_below(c, 3 << 20),
							 &life.device, &life.host))
				break;
			hot_play(&life, large ? 40 : sized(c, 60, 20));
			close_paging(&life.s, &life.device, &life.host);
		}
		/* small tables may have room for none */
		CHECK(c, suits ? c->stand_in || c->reduced || life.cached > 0 : life.cached == 0,
			  "%" PRIu64 " look-ups were answered by copies in maps of %u and %u bytes", life.cached,
			  (unsigned) types[t].key_size, (unsigned) types[t].value_size);
	}
	free(life.keys);
	free(life.ops);
}

const Test	paging_tests[] = {
	{"paging lives", test_paging_lives, false},
	{"paging large", test_paging_large, false},
	{"paging ends", test_paging_ends, false},
	{"paging refused", test_paging_refused, false},
	{"paging allocations", test_paging_allocations, false},
	{"paging copies", test_paging_copies, false},
	{NULL, NULL, false}
};
