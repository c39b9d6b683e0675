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

const Test	paging_tests[] = {
	{"paging lives", test_paging_lives, false},
	{"paging large", test_paging_large, false},
	{"paging ends", test_paging_ends, false},
	{"paging refused", test_paging_refused, false},
	{"paging allocations", test_paging_allocations, false},
	{NULL, NULL, false}
};
