/*
 * test_build.c
 *		BUILD: a multi table made in one request.
 */
#include "conformance.h"

/* Keys of a build: unique, a few of many values, or one of nearly all. */
static void
draw_keys(Context *c, uint64_t *keys, uint64_t count, int skew)
{
	uint64_t	i;

	for (i = 0; i < count; i++)
	{
		if (skew == 0)
			keys[i] = mix(i + c->seed);
		else if (skew == 1)
			keys[i] = random_below(c, 1 + count / 10) - 4;
		else
			keys[i] = i % 10 == 3 ? random_next(c) : 9;
	}
}

/* What a build made is a table as any other. */
static void
use_built(Subject *s, uint64_t *keys, uint64_t count)
{
	check_content(s);
	do_checked(s, GH_COUNT, keys, NULL, count);
	check_export(s, 1 + count / 3);
	do_checked(s, GH_DELETE_ONE, keys, NULL, count / 2);
	check_content(s);
	do_checked(s, GH_ADD, keys + count / 4, NULL, count / 2);
	check_content(s);
	do_checked(s, GH_DELETE, keys, NULL, count / 3);
	check_content(s);
	do_checked(s, GH_ADD, keys, NULL, count);
	check_content(s);
	do_checked(s, GH_DELETE, keys, NULL, count);
	CHECK_U64(s->c, "keys left", s->model->keys, 0);
}

static void
test_build(Context *c)
{
	uint64_t	count = sized(c, 30000, 1500);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	t;
	int			skew;

	for (t = 0; type_at(c, t, &type); t++)
	{
		uint64_t	n = type.value_size > 64 ? count / 15 : count;
		Subject		s;

		if (type.kind != KIND_MULTI || !subject_open_type(&s, c, type))
			continue;
		for (skew = 0; skew < 3; skew++)
		{
			draw_keys(c, keys, n, skew);
			/* deletes leave an empty table, and so does clear */
			do_checked(&s, GH_BUILD, keys, NULL, n);
			use_built(&s, keys, n);
			do_checked(&s, GH_BUILD, keys, NULL, n / 2);
			check_content(&s);
			subject_clear(&s);
		}
		subject_close(&s);
	}
	free(keys);
}

/* Without values_in position i's value is i. */
static void
test_positions(Context *c)
{
	static const uint32_t sizes[] = {4, 8, 5, 12, 1};
	uint64_t	count = sized(c, 200000, 3000);
	uint64_t   *keys = make_words(count);
	uint32_t	i;

	for (i = 0; i < 10; i++)
	{
		TableType	type = {KIND_MULTI, i % 2 == 0 ? 8 : 4, sizes[i / 2]};
		GhStatus	status;
		Subject		s;
		Batch		b;

		if (!subject_open_type(&s, c, type))
			break;
		draw_keys(c, keys, count, i % 3);
		batch_begin(&s, &b, GH_BUILD, keys, NULL, NULL, count);
		free((void *) b.request.values_in);
		b.request.values_in = NULL;
		if (type.value_size == 4 || type.value_size == 8)
			CHECK_STATUS(c, "build of positions", batch_run(&b), GH_OK);
		else
		{
			status = c->engine->submit(s.table, &b.request);
			CHECK_STATUS(c, "build of positions of other widths", status, GH_INVALID);
		}
		check_content(&s);
		batch_end(&b);
		subject_close(&s);
	}
	free(keys);
}

/* A table that has a key is not built, and stays as it is. */
static void
test_build_on_full(Context *c)
{
	uint64_t	keys[100];
	Subject		s;
	Batch		b;
	int			i;
	int			last;

	for (i = 0; i < 100; i++)
		keys[i] = (uint64_t) i;
	/* the only key there may be one that has no slot of its own */
	for (last = 0; last < SPECIALS; last++)
	{
		if (!subject_open_kind(&s, c, KIND_MULTI))
			break;
		do_checked(&s, GH_ADD, special_keys + last, NULL, 1);
		batch_begin(&s, &b, GH_BUILD, keys, NULL, NULL, 100);
		CHECK_STATUS(c, "build on a table that has a key", do_request(c, s.table, &b.request),
					 GH_INVALID);
		CHECK_U64(c, "done of a build that was refused", b.request.outcome.done, 0);
		batch_end(&b);
		check_content(&s);
		do_checked(&s, GH_DELETE, special_keys + last, NULL, 1);
		do_checked(&s, GH_BUILD, keys, NULL, 100);
		check_content(&s);
		subject_close(&s);
	}
}

/* A build that finds no memory leaves an empty table that can be used. */
static void
test_build_under_limit(Context *c)
{
	uint64_t	count = sized(c, 100000, 20000);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	t;

	for (t = 0; type_at(c, t, &type); t++)
	{
		GhTableOptions options = options_of(c, type);
		GhTableStats stats;
		Subject		s;
		Batch		b;

		if (type.kind != KIND_MULTI || !subject_open(&s, c, &options))
			continue;
		check_shape(c, s.table, &stats);
		subject_close(&s);
		options.memory_limit = stats.bytes + count * type.value_size / 2;
		if (!subject_open(&s, c, &options))
			break;
		draw_keys(c, keys, count, 1);
		batch_begin(&s, &b, GH_BUILD, keys, NULL, NULL, count);
		CHECK_STATUS(c, "build under a limit", batch_run(&b), GH_LIMIT);
		batch_end(&b);
		check_content(&s);
		check_shape(c, s.table, &stats);
		CHECK(c, stats.bytes_peak <= options.memory_limit, "%" PRIu64 " bytes under a limit of %"
			  PRIu64, stats.bytes_peak, options.memory_limit);
		do_checked(&s, GH_BUILD, keys, NULL, 100);
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
}

/* A build that is stopped leaves an empty table, and goes well the next time. */
static void
test_build_stopped(Context *c)
{
	uint64_t	count = sized(c, 200000, 10000);
	uint64_t   *keys = make_words(count);
	uint64_t	stops = 0;
	uint64_t	n;

	draw_keys(c, keys, count, 1);
	for (n = 1; n < 1000; n += 1 + n / 8)
	{
		GhStatus	status;
		Subject		s;
		Batch		b;

		if (!subject_open_kind(&s, c, KIND_MULTI))
			break;
		batch_begin(&s, &b, GH_BUILD, keys, NULL, NULL, count);
		/* engines without locks see the flag from the start */
		s.state.stop = !c->on_host;
		s.state.stop_at_lock = s.state.locks_shared + s.state.locks_exclusive + n;
		status = batch_run(&b);
		s.state.stop_at_lock = 0;
		s.state.stop = 0;
		stops += status == GH_STOPPED;
		if (status == GH_STOPPED)
		{
			check_content(&s);
			CHECK_STATUS(c, "a stopped build again", batch_run(&b), GH_OK);
		}
		else
			CHECK_STATUS(c, "a build", status, GH_OK);
		batch_end(&b);
		check_content(&s);
		subject_close(&s);
		if (status == GH_OK || !c->on_host)
			break;
	}
	CHECK(c, stops > 0 || !c->on_host, "no build was ever stopped");
	free(keys);
}

const Test	build_tests[] = {
	{"build", test_build, false},
	{"build of positions", test_positions, false},
	{"build on a table with keys", test_build_on_full, false},
	{"build under a limit", test_build_under_limit, false},
	{"build stopped", test_build_stopped, false},
	{NULL, NULL, false}
};
