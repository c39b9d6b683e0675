/*
 * test_budget.c
 *		The budget of device memory: tables take from it what they hold, to the byte
 *		(check_content), get by with what there is, and give it back.
 */
#include "conformance.h"

static bool
no_device(Context *c)
{
	if (c->on_host)
		c->skip = "the engine takes no device memory";
	return c->on_host;
}

static void
try_small_budget(Context *c, const GhTableOptions *options, uint64_t bytes)
{
	Budget		budget = {bytes, 0};
	Subject		s;

	memset(&s, 0, sizeof(s));
	host_init(&s.state, &s.host);
	s.state.budget = &budget;
	CHECK_STATUS(c, "create with a small budget", subject_try(&s, c, options), GH_LIMIT);
	CHECK_U64(c, "of a small budget", budget_taken(&budget), 0);
	CHECK_U64(c, "memory left", s.state.allocated, 0);
}

/* Just enough makes a table, anything less does not. */
static void
test_budget_at_create(Context *c)
{
	TableType	type;
	uint32_t	t;

	for (t = 0; !no_device(c) && type_at(c, t, &type); t++)
	{
		GhTableOptions options = options_of(c, type);
		Budget		enough = {0, 0};
		Subject		s;
		uint64_t	bytes;

		options.capacity = sized(c, 10000, 1000);
		bytes = bytes_when_new(c, &options);
		try_small_budget(c, &options, 0);
		try_small_budget(c, &options, 1);
		try_small_budget(c, &options, bytes / 3);
		try_small_budget(c, &options, bytes / 2);
		try_small_budget(c, &options, bytes - 1);
		enough.limit = bytes;
		if (!subject_open_budget(&s, c, &options, &enough))
			break;
		CHECK_U64(c, "of a budget that is just enough", budget_taken(&enough), bytes);
		check_content(&s);
		subject_close(&s);
		CHECK_U64(c, "of the budget after destroy", budget_taken(&enough), 0);
	}
}

/* The budget ends while the table is filled, and later is larger again. */
static void
fill_to_budget(Subject *s, GhOp op, const uint64_t *keys, uint64_t count, Budget *budget)
{
	Context    *c = s->c;
	uint8_t    *ops = make_memory(count);
	GhError		error = {0};
	GhStatus	status;
	uint64_t	limit = budget->limit;
	Batch		b;

	memset(ops, GH_UPSERT, count);
	batch_begin(s, &b, op, keys, NULL, op == GH_MIXED ? ops : NULL, count);
	CHECK_STATUS(c, "storing at the end of the budget", batch_run(&b), GH_LIMIT);
	CHECK(c, b.request.outcome.done < count, "all was done");
	check_content(s);
	/* others took all that is left: everything goes on but growth */
	budget->limit = 0;
	status = batch_run(&b);
	CHECK(c, status == GH_LIMIT || status == GH_OK, "storing without a budget: %s",
		  gh_status_name(status));
	CHECK_STATUS(c, "reserve without a budget",
				 c->engine->table_reserve(s->table, 100 * count, &error), GH_LIMIT);
	CHECK(c, error.message[0] != '\0', "no message");
	CHECK_STATUS(c, "flush without a budget", c->engine->table_flush(s->table, &error), GH_OK);
	do_checked(s, GH_DELETE, keys, NULL, b.request.outcome.done / 4);
	check_content(s);
	check_export(s, 1000);
	/* they gave it back, and more */
	budget->limit = 100 * limit;
	CHECK_STATUS(c, "storing with a larger budget", batch_run(&b), GH_OK);
	check_content(s);
	batch_end(&b);
	free(ops);
}

static void
test_budget_midway(Context *c)
{
	uint64_t	count = sized(c, 50000, 20000);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	t;
	uint64_t	i;
	GhOp		op;

	for (t = 0; !no_device(c) && type_at(c, t, &type); t++)
	{
		uint64_t	n = type.value_size > 64 ? count / 4 : count;
		GhTableOptions options = options_of(c, type);
		uint64_t	limit = bytes_when_new(c, &options) +
			n * (type.key_size + type.value_size) / 3;

		for (i = 0; i < n; i++)
			keys[i] = type.kind == KIND_MULTI && i % 2 != 0 ? keys[i - 1] : random_next(c);
		for (op = GH_INSERT; op <= GH_MIXED; op++)
		{
			Budget		budget = {limit, 0};
			Subject		s;

			if ((op > GH_ADD && op < GH_MIXED) ||
				!subject_open_budget(&s, c, &options, &budget))
				continue;
			if (op_fits(&s, op))
				fill_to_budget(&s, op, keys, n, &budget);
			subject_close(&s);
			CHECK_U64(c, "of the budget after destroy", budget_taken(&budget), 0);
		}
	}
	free(keys);
}

/* A table has what another one needs, until it goes. */
static void
test_budget_of_two(Context *c)
{
	uint64_t	count = sized(c, 100000, 20000);
	uint64_t   *keys = make_words(count);
	Kind		kind;
	uint64_t	i;

	for (i = 0; i < count; i++)
		keys[i] = random_next(c);
	for (kind = 0; !no_device(c) && kind < KINDS; kind++)
	{
		GhTableOptions options = options_of(c, type_of_kind(kind));
		Budget		budget = {UINT64_MAX, 0};
		GhError		error = {0};
		Subject		first;
		Subject		second;
		Batch		b;

		if (!subject_open_budget(&first, c, &options, &budget))
			break;
		if (!subject_open_budget(&second, c, &options, &budget))
			break;
		CHECK_STATUS(c, "reserve", c->engine->table_reserve(first.table, 4 * count, &error), GH_OK);
		do_checked(&first, storing_op(&first), keys, NULL, count);
		budget.limit = budget_taken(&budget) + count;
		batch_begin(&second, &b, storing_op(&second), keys, NULL, NULL, count);
		CHECK_STATUS(c, "storing beside a large table", batch_run(&b), GH_LIMIT);
		check_content(&first);
		check_content(&second);
		/* resizing has the old and the new at a time */
		budget.limit *= 3;
		subject_close(&first);
		CHECK_STATUS(c, "storing after the large table is gone", batch_run(&b), GH_OK);
		batch_end(&b);
		check_content(&second);
		subject_close(&second);
		CHECK_U64(c, "of the budget after both", budget_taken(&budget), 0);
	}
	free(keys);
}

/* No budget at all. */
static void
test_no_budget(Context *c)
{
	uint64_t	count = sized(c, 50000, 5000);
	uint64_t   *keys = make_words(count);
	Kind		kind;
	uint64_t	i;

	for (i = 0; i < count; i++)
		keys[i] = random_next(c);
	for (kind = 0; kind < KINDS; kind++)
	{
		GhTableOptions options = options_of(c, type_of_kind(kind));
		Subject		s;

		memset(&s, 0, sizeof(s));
		host_init(&s.state, &s.host);
		s.host.take_device = NULL;
		s.host.give_device = NULL;
		if (!CHECK_STATUS(c, "create without a budget", subject_try(&s, c, &options), GH_OK))
			break;
		do_checked(&s, storing_op(&s), keys, NULL, count);
		check_content(&s);
		do_checked(&s, GH_DELETE, keys, NULL, count);
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
}

const Test	budget_tests[] = {
	{"budget at create", test_budget_at_create, false},
	{"budget midway", test_budget_midway, false},
	{"budget of two tables", test_budget_of_two, false},
	{"no budget", test_no_budget, false},
	{NULL, NULL, false}
};
