/*
 * test_regions.c
 *		Batches that fill an empty table, so large that an engine may store them in another way
 *		than key by key: the table is as any other way leaves it.
 */
#include "conformance.h"

enum
{
	SHAPE_UNIQUE,
	SHAPE_FEW_EQUAL,			/* one in a thousand comes again */
	SHAPE_MANY_EQUAL,			/* about a third do */
	SHAPE_HOT,					/* a tenth of all are the same key */
	SHAPES
};

/* Among all but unique keys those with patterns that mean something in slots come twice. */
static void
draw_batch(Context *c, uint64_t *keys, uint64_t count, int shape)
{
	uint64_t	first = random_next(c);
	uint64_t	i;

	for (i = 0; i < count; i++)
	{
		/* odd, so unique in 4 bytes, too */
		keys[i] = (first + i) * UINT64_C(0x9e3779b97f4a7c15);
		if (i < SPECIALS)
			keys[i] = special_keys[i];
		if (shape == SHAPE_FEW_EQUAL && i % 1000 == 999)
			keys[i] = keys[random_below(c, i)];
		else if (shape == SHAPE_MANY_EQUAL)
			keys[i] = (first + random_below(c, count)) * UINT64_C(0x9e3779b97f4a7c15);
		else if (shape == SHAPE_HOT && i % 10 == 3)
			keys[i] = first;
	}
	for (i = 0; i < SPECIALS && shape != SHAPE_UNIQUE; i++)
		keys[count - 1 - i] = special_keys[i];
}

bool
device_batch_fits(const Context *c)
{
	return c->engine->on_device && c->engine->buffer_alloc != NULL && !c->stand_in;
}

/* Its arrays are where the device reads them.  False: there is no memory for them, which is a failure. */
bool
device_batch_begin(Subject *s, DeviceBatch *d, GhOp op, const uint64_t *keys, uint64_t count,
				   bool with_flags)
{
	uint64_t	key_bytes = count * s->key_size;
	uint64_t	value_bytes = count * s->value_size;
	uint64_t	values_at = (key_bytes + 15) / 16 * 16;
	uint64_t	flags_at = values_at + (value_bytes + 15) / 16 * 16;
	GhRequest  *request = &d->batch.request;

	d->buffer = s->c->engine->buffer_alloc(0, flags_at + count);
	if (!CHECK(s->c, d->buffer != NULL, "buffer_alloc gave nothing"))
		return false;
	batch_begin(s, &d->batch, op, keys, NULL, NULL, count);
	d->host = *request;
	memcpy(d->buffer, d->host.keys, key_bytes);
	request->keys = d->buffer;
	if (value_bytes > 0)
	{
		memcpy(d->buffer + values_at, d->host.values_in, value_bytes);
		request->values_in = d->buffer + values_at;
	}
	memset(d->buffer + flags_at, 0xA5, count);
	request->flags_out = with_flags ? (uint8_t *) d->buffer + flags_at : NULL;
	request->on_device = true;
	return true;
}

void
device_batch_end(DeviceBatch *d)
{
	GhRequest  *request = &d->batch.request;
	Context    *c = d->batch.s->c;

	request->keys = d->host.keys;
	request->values_in = d->host.values_in;
	request->flags_out = d->host.flags_out;
	batch_end(&d->batch);
	c->engine->buffer_free(d->buffer);
}

/* Stores a batch in one request; every third is stopped now and then. */
static void
store_on_device(Subject *s, GhOp op, const uint64_t *keys, uint64_t count, int number)
{
	DeviceBatch d;

	if (!device_batch_begin(s, &d, op, keys, count, number % 3 != 0))
		return;
	if (number % 3 == 2)
		(void) run_with_alarms(&d.batch, 100);
	else
		CHECK_STATUS(s->c, "a batch on the device", batch_run(&d.batch), GH_OK);
	device_batch_end(&d);
}

static void
store_batch(Subject *s, const uint64_t *keys, uint64_t count, int number)
{
	bool		multi = s->kind == KIND_MULTI;

	if (multi && (number / 4 % 2 == 0 || !device_batch_fits(s->c)))
		do_checked(s, GH_BUILD, keys, NULL, count);
	else if (device_batch_fits(s->c))
		store_on_device(s, multi ? GH_ADD : number % 2 == 0 ? GH_INSERT : GH_UPSERT, keys, count,
						number);
	else
		do_checked(s, storing_op(s), keys, NULL, count);
}

/* The table goes on as any other: entries move, leave, and come to fill it again. */
static void
use_filled(Subject *s, const uint64_t *keys, uint64_t *others, uint64_t count)
{
	GhOp		op = s->kind == KIND_MULTI ? GH_ADD : storing_op(s);
	GhTableStats stats;
	uint64_t	i;

	check_content(s);
	check_shape(s->c, s->table, &stats);
	do_checked(s, GH_DELETE, keys, NULL, count / 3);
	for (i = 0; i < count / 3; i++)
		others[i] = keys[count / 3 + i] * 3 + 1;
	do_checked(s, op, others, NULL, count / 3);
	check_content(s);
	/* as many again: it grows */
	for (i = 0; i < count; i++)
		others[i] = keys[i] * 5 + 2;
	do_checked(s, op, others, NULL, count);
	check_content(s);
	check_shape(s->c, s->table, &stats);
	do_checked(s, GH_DELETE, others, NULL, count);
	check_content(s);
}

/* A new table of that many subtables, or one that was emptied; maybe of unlike ones. */
static void
fill_tables(Context *c, TableType type, int number, uint64_t *keys, uint64_t *others,
			uint64_t count)
{
	GhTableOptions options = options_of(c, type);
	int			shape = number % SHAPES;
	GhError		error = {0};
	Subject		s;

	options.capacity = number % 5 == 4 ? count / 3 : count;
	options.fill_max = number % 3 == 0 ? 0.8 : number % 3 == 1 ? 0.9 : GH_FILL_MAX_MAX;
	options.subtables = 2 + (uint32_t) number % 5;
	if (!subject_open(&s, c, &options))
		return;
	if (number % 5 == 4)
		CHECK_STATUS(c, "reserve", c->engine->table_reserve(s.table, count, &error), GH_OK);
	draw_batch(c, keys, count, shape);
	store_batch(&s, keys, count, number);
	use_filled(&s, keys, others, count);
	do_checked(&s, GH_DELETE, keys, NULL, count);
	if (s.model->keys > 0)
		subject_clear(&s);
	draw_batch(c, keys, count, (shape + 1) % SHAPES);
	store_batch(&s, keys, count, number + 1);
	check_content(&s);
	subject_close(&s);
}

static void
test_fill(Context *c)
{
	static const TableType together[] = {
		{KIND_MAP, 8, 8}, {KIND_MULTI, 8, 8}, {KIND_MAP, 4, 4}, {KIND_MULTI, 4, 12}
	};
	uint64_t	count = sized(c, 200000, 70000);
	uint64_t   *keys = make_words(count);
	uint64_t   *others = make_words(count);
	int			i;

	for (i = 0; i < (c->reduced ? 12 : 30) && c->failures == 0; i++)
		fill_tables(c, together[(i + i / 4) % 4], i, keys, others, count);
	free(keys);
	free(others);
}

/* Keys of several values each: from 1 to 10 of most, and five of those with patterns of their own; or a hot one as well. */
static void
draw_several(Context *c, uint64_t *keys, uint64_t count, bool hot)
{
	uint64_t	first = random_next(c);
	uint64_t	i;

	for (i = 0; i < count; i++)
		keys[i] = (first + random_below(c, count / 5)) * UINT64_C(0x9e3779b97f4a7c15);
	for (i = 0; i < 5 * SPECIALS; i++)
		keys[random_below(c, count)] = special_keys[i % SPECIALS];
	for (i = 3; hot && i < count; i += 10)
		keys[i] = first;
}

/* Builds that need no flags, of more values than the table has room for keys, by every way that such a batch comes. */
static void
test_several(Context *c)
{
	uint64_t	count = sized(c, 300000, 150000);
	uint64_t   *keys = make_words(count);
	uint64_t   *others = make_words(count);
	int			i;

	for (i = 0; i < (c->reduced ? 8 : 12) && c->failures == 0; i++)
	{
		uint32_t	size = i % 2 == 0 ? 8 : 4;
		GhTableOptions options = options_of(c, (TableType) {KIND_MULTI, size, size});
		DeviceBatch d;
		Subject		s;

		options.capacity = i % 3 == 0 ? count / 4 : count / 16;
		options.fill_max = i % 3 == 0 ? 0.8 : i % 3 == 1 ? 0.9 : GH_FILL_MAX_MAX;
		options.subtables = 2 + (uint32_t) i % 5;
		if (!subject_open(&s, c, &options))
			break;
		draw_several(c, keys, count, i % 8 == 5);
		if (i / 2 % 2 == 0 || !device_batch_fits(c))
		{
			s.bare = true;
			do_checked(&s, GH_BUILD, keys, NULL, count);
			s.bare = false;
		}
		else if (device_batch_begin(&s, &d, i % 3 == 0 ? GH_BUILD : GH_ADD, keys, count, false))
		{
			if (i % 3 == 2)
				(void) run_with_alarms(&d.batch, 100);
			else
				CHECK_STATUS(c, "a build on the device", batch_run(&d.batch), GH_OK);
			device_batch_end(&d);
		}
		use_filled(&s, keys, others, count);
		subject_close(&s);
	}
	free(keys);
	free(others);
}

/* What a build of keys that come once left: every operation, before keys get a second value and after. */
static void
use_single(Subject *s, const uint64_t *keys, uint64_t *others, uint64_t count, bool moved)
{
	Context    *c = s->c;
	GhTableStats stats;
	GhError		error = {0};
	uint64_t	i;

	check_content(s);
	check_shape(c, s->table, &stats);
	for (i = 0; i < count; i++)
		others[i] = i % 4 == 1 ? keys[i] * 3 + 1 : keys[i / 2];
	do_checked(s, GH_COUNT, others, NULL, count);
	check_export(s, 1 + count / 3);
	/* the first of two positions takes a key's value */
	do_checked(s, GH_DELETE_ONE, others, NULL, count / 4);
	check_content(s);
	do_checked(s, GH_DELETE, keys + count / 4, NULL, count / 4);
	CHECK_STATUS(c, "flush", c->engine->table_flush(s->table, &error), GH_OK);
	check_content(s);
	if (moved)
		CHECK_STATUS(c, "reserve", c->engine->table_reserve(s->table, 3 * count, &error), GH_OK);
	/* of keys that are there and such as are not */
	do_checked(s, GH_ADD, others + count / 3, NULL, count / 3);
	check_content(s);
	check_export(s, 1 + count / 3);
	do_checked(s, GH_COUNT, others, NULL, count);
	CHECK_STATUS(c, "flush", c->engine->table_flush(s->table, &error), GH_OK);
	use_filled(s, keys, others, count);
}

/* Builds, without flags, of keys that come once, or nearly all do. */
static void
test_single(Context *c)
{
	uint64_t	count = sized(c, 200000, 80000);
	uint64_t   *keys = make_words(count);
	uint64_t   *others = make_words(count);
	int			i;

	for (i = 0; i < (c->reduced ? 8 : 24) && c->failures == 0; i++)
	{
		uint32_t	size = i % 2 == 0 ? 8 : 4;
		GhTableOptions options = options_of(c, (TableType) {KIND_MULTI, size, size});
		DeviceBatch d;
		Batch		b;
		Subject		s;

		options.capacity = i % 3 == 2 ? count / 3 : count;
		options.fill_max = i % 3 == 0 ? 0.8 : i % 3 == 1 ? 0.9 : GH_FILL_MAX_MAX;
		options.subtables = 2 + (uint32_t) i % 5;
		if (!subject_open(&s, c, &options))
			break;
		draw_batch(c, keys, count, i % 8 >= 6 ? SHAPE_FEW_EQUAL : SHAPE_UNIQUE);
		if (i / 2 % 2 != 0 && device_batch_fits(c) &&
			device_batch_begin(&s, &d, i % 3 == 0 ? GH_BUILD : GH_ADD, keys, count, false))
		{
			if (i % 3 == 2)
				(void) run_with_alarms(&d.batch, 100);
			else
				CHECK_STATUS(c, "a build on the device", batch_run(&d.batch), GH_OK);
			device_batch_end(&d);
		}
		else
		{
			s.bare = true;
			batch_begin(&s, &b, GH_BUILD, keys, NULL, NULL, count);
			s.bare = false;
			if (i % 5 == 4)
			{
				free((void *) b.request.values_in);
				b.request.values_in = NULL;
			}
			CHECK_STATUS(c, "a build", batch_run(&b), GH_OK);
			batch_end(&b);
		}
		use_single(&s, keys, others, count, i / 4 % 2 != 0);
		subject_clear(&s);
		do_checked(&s, GH_ADD, keys, NULL, count / 10);
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
	free(others);
}

/* Where a limit lets such a build be made there may be no memory for a second value; what is there stays. */
static void
test_single_under_limit(Context *c)
{
	uint64_t	count = 80000;
	uint64_t   *keys = make_words(count);
	uint64_t	refused = 0;
	uint64_t	stored = 0;
	int			i;

	draw_batch(c, keys, count, SHAPE_UNIQUE);
	for (i = 0; i < 36 && c->failures == 0; i++)
	{
		uint32_t	size = i % 2 == 0 ? 8 : 4;
		GhTableOptions options = options_of(c, (TableType) {KIND_MULTI, size, size});
		GhTableStats stats;
		GhStatus	status;
		Subject		s;
		Batch		b;

		options.capacity = count;
		if (!subject_open(&s, c, &options))
			break;
		check_shape(c, s.table, &stats);
		subject_close(&s);
		options.memory_limit = stats.bytes + (count * size << i / 4);
		if (!subject_open(&s, c, &options))
			break;
		s.bare = true;
		batch_begin(&s, &b, GH_BUILD, keys, NULL, NULL, count);
		s.bare = false;
		status = batch_run(&b);
		batch_end(&b);
		check_content(&s);
		if (status == GH_OK)
		{
			batch_begin(&s, &b, GH_ADD, keys, NULL, NULL, count / 2);
			status = batch_run(&b);
			CHECK(c, status == GH_OK || status == GH_LIMIT, "an add under a limit is \"%s\"",
				  gh_status_name(status));
			refused += status == GH_LIMIT;
			stored += status == GH_OK;
			batch_end(&b);
			check_content(&s);
			do_checked(&s, GH_DELETE, keys, NULL, count / 2);
			check_content(&s);
		}
		check_shape(c, s.table, &stats);
		CHECK(c, stats.bytes_peak <= options.memory_limit, "%" PRIu64 " bytes under a limit of %" PRIu64,
			  stats.bytes_peak, options.memory_limit);
		subject_close(&s);
	}
	CHECK(c, stored > 0, "all of %" PRIu64 " adds met a limit", refused);
	free(keys);
}

/*
 * A build whose run-th taking of memory is refused, or all from there on, goes another way or may be asked for
 * again; and so does the ADD after it of a second value for each.
 */
static bool
survive_build(Context *c, uint32_t size, const uint64_t *keys, uint64_t count, uint64_t capacity,
			  uint64_t run, bool after)
{
	GhTableOptions options = options_of(c, (TableType) {KIND_MULTI, size, size});
	Subject		s;
	bool		refused = true;

	memset(&s, 0, sizeof(s));
	host_init_locked(&s.state, &s.host);
	s.state.fail_at = c->on_host ? run : 0;
	s.state.refuse_at = c->on_host ? 0 : run;
	s.state.fail_after = s.state.refuse_after = after;
	s.patient = true;
	options.capacity = capacity;
	if (subject_try(&s, c, &options) != GH_OK)
		return true;
	s.bare = true;
	do_checked(&s, GH_BUILD, keys, NULL, count);
	s.bare = false;
	do_checked(&s, GH_ADD, keys, NULL, count / 4);
	refused = s.state.failed || s.state.refused;
	check_content(&s);
	subject_close(&s);
	return refused;
}

static void
test_refused(Context *c)
{
	uint64_t	count = 100000;
	uint64_t   *keys = make_words(count);
	int			way;

	for (way = 0; way < 8 && c->failures == 0; way++)
	{
		bool		several = way < 4;
		uint64_t	capacity = several ? count / 16 : count;
		uint64_t	run = 1;

		if (several)
			draw_several(c, keys, count, false);
		else
			draw_batch(c, keys, count, SHAPE_UNIQUE);
		while (survive_build(c, way / 2 % 2 == 0 ? 8 : 4, keys, count, capacity, run, way % 2 != 0) &&
			   run < 200 && c->failures == 0)
			run++;
		CHECK(c, run > 4 && run < 200, "%" PRIu64 " takings of memory were refused", run);
	}
	free(keys);
}

const Test	region_tests[] = {
	{"batches that fill a table", test_fill, false},
	{"builds of several values a key", test_several, false},
	{"builds of one value a key", test_single, false},
	{"builds of one value a key under a limit", test_single_under_limit, false},
	{"builds of many keys, memory refused", test_refused, false},
	{NULL, NULL, false}
};
