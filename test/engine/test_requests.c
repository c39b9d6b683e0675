/*
 * test_requests.c
 *		Requests that are wrong, lack arrays or have none to spare, several at a time,
 *		and in the engine's own buffers.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* MAP_ANONYMOUS, MAP_NORESERVE */
#endif

#include "conformance.h"

#include <sys/mman.h>

static void
try_request(Subject *s, const char *what, GhRequest request, GhStatus expected)
{
	Context    *c = s->c;
	GhStatus	status;

	status = c->engine->submit(s->table, &request);
	if (status == GH_OK || status == GH_BUSY)
		status = c->engine->wait(&request);
	if (!CHECK(c, status == expected, "%s (%s, %s): status \"%s\", expected \"%s\"",
			   what, kind_name[s->kind], op_name(request.op), gh_status_name(status),
			   gh_status_name(expected)))
		return;
	if (status == GH_INVALID)
		CHECK(c, request.error.status == GH_INVALID && request.error.message[0] != '\0',
			  "%s: no message", what);
}

/* The same with an array taken away. */
#define try_without(s, good, field) \
	do \
	{ \
		GhRequest	spoilt = good; \
		spoilt.field = NULL; \
		try_request(s, "no " #field, spoilt, GH_INVALID); \
	} while (0)

/* Room for one position of any operation at any width. */
typedef struct Arrays
{
	uint64_t	keys[2];
	uint64_t	offsets[2];
	uint64_t	counts[1];
	uint64_t	values[GH_VALUE_SIZE_MAX / 8];
	uint64_t	out[2 * GH_VALUE_SIZE_MAX / 8];
	uint8_t		ops[8];
} Arrays;

/* A request that is right for the operation, to be spoilt. */
static GhRequest
good_request(const Subject *s, GhOp op, Arrays *arrays)
{
	GhRequest	request = {.op = op, .count = 1, .keys = arrays->keys};

	if (s->kind != KIND_SET && (op <= GH_BUILD || op == GH_MIXED))
		request.values_in = arrays->values;
	if (op == GH_EXCHANGE || op == GH_FIND_ALL ||
		(s->kind == KIND_MAP && (op == GH_FIND || op == GH_MIXED)))
		request.values_out = arrays->out;
	if (op == GH_FIND_ALL)
	{
		request.offsets_out = arrays->offsets;
		request.values_capacity = 2;
	}
	if (op == GH_COUNT)
		request.counts_out = arrays->counts;
	if (op == GH_MIXED)
		request.ops = arrays->ops;
	return request;
}

static void
try_op(Subject *s, GhOp op, Arrays *arrays)
{
	const GhRequest good = good_request(s, op, arrays);
	GhRequest	request = good;

	if (!op_fits(s, op))
	{
		try_request(s, "operation of another kind of table", good, GH_INVALID);
		return;
	}
	subject_clear(s);
	try_request(s, "as it should be", good, GH_OK);
	subject_clear(s);
	try_without(s, good, keys);
	if (good.values_in != NULL &&
		!(op == GH_BUILD && (s->value_size == 4 || s->value_size == 8)))
		try_without(s, good, values_in);
	if (op == GH_EXCHANGE || op == GH_FIND_ALL)
		try_without(s, good, values_out);
	if (op == GH_FIND_ALL)
		try_without(s, good, offsets_out);
	if (op == GH_COUNT)
		try_without(s, good, counts_out);
	if (op == GH_MIXED)
		try_without(s, good, ops);
	request.count = GH_BATCH_MAX + 1;
	try_request(s, "too many keys", request, GH_INVALID);
	request.count = UINT64_MAX;
	try_request(s, "far too many keys", request, GH_INVALID);
	request = good;
	request.outcome.done = 2;
	try_request(s, "more done than there is", request, GH_INVALID);
	if ((op == GH_FIND || op == GH_MIXED) && s->kind != KIND_MAP)
	{
		request = good;
		request.values_out = arrays->out;
		try_request(s, "values_out where there is no value", request, GH_INVALID);
	}
	if (s->c->on_host)
	{
		request = good;
		request.on_device = true;
		try_request(s, "arrays on a device that is none", request, GH_UNSUPPORTED);
	}
	request = (GhRequest) {.op = op, .offsets_out = good.offsets_out};
	try_request(s, "no keys at all", request, GH_OK);
}

static void
test_requests(Context *c)
{
	static Arrays arrays = {.keys = {7, 8}, .ops = {GH_UPSERT}};
	TableType	type;
	uint32_t	i;

	for (i = 0; type_at(c, i, &type); i++)
	{
		Subject		s;
		GhOp		op;
		GhRequest	request;

		if (!subject_open_type(&s, c, type))
			return;
		for (op = GH_INSERT; op <= GH_MIXED; op++)
			try_op(&s, op, &arrays);
		request = good_request(&s, GH_COUNT, &arrays);
		request.op = (GhOp) 0;
		try_request(&s, "operation 0", request, GH_INVALID);
		request.op = (GhOp) (GH_MIXED + 1);
		try_request(&s, "operation after the last", request, GH_INVALID);
		request.op = (GhOp) 255;
		try_request(&s, "operation 255", request, GH_INVALID);
		CHECK_U64(c, "keys after refused requests", s.model->keys, 0);
		check_content(&s);
		subject_close(&s);
	}
}

/* As many keys as a request may have; the stop flag spares us the work. */
static void
test_largest_batch(Context *c)
{
	size_t		bytes = GH_BATCH_MAX * sizeof(uint64_t);
	GhRequest	find = {.op = GH_FIND, .count = GH_BATCH_MAX};
	GhRequest	insert = {.op = GH_INSERT, .count = GH_BATCH_MAX};
	GhTableStats stats;
	GhStatus	status;
	Subject		s;
	void	   *keys;

	keys = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (keys == MAP_FAILED)
	{
		c->skip = "the machine gives no 8 GiB of addresses";
		return;
	}
	if (!subject_open_kind(&s, c, KIND_SET))
		return;
	s.state.stop = 1;
	find.keys = insert.keys = keys;
	status = do_request(c, s.table, &find);
	CHECK(c, status == GH_STOPPED || status == GH_OK, "a find of GH_BATCH_MAX keys: %s",
		  gh_status_name(status));
	status = do_request(c, s.table, &insert);
	CHECK(c, status == GH_STOPPED || status == GH_OK, "an insert of GH_BATCH_MAX keys: %s",
		  gh_status_name(status));
	s.state.stop = 0;
	if (insert.outcome.done > 0)
		model_put(s.model, model_entry(s.model, 0), 0);
	check_content(&s);
	check_shape(c, s.table, &stats);
	subject_close(&s);
	munmap(keys, bytes);
}

/* Batch sizes around what an engine may do at a time. */
static void
test_batch_sizes(Context *c)
{
	static const uint64_t sizes[] = {
		0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 4095, 4096, 4097,
		8191, 8192, 8193, 65535, 65536, 65537
	};
	size_t		n = sized(c, sizeof(sizes) / sizeof(sizes[0]), 16);
	uint64_t   *keys = make_words(65537);
	TableType	type;
	uint32_t	t;
	size_t		i;

	for (t = 0; type_at(c, t, &type); t++)
	{
		Subject		s;

		if (!subject_open_type(&s, c, type))
			break;
		for (i = 0; i < n && (type.value_size < 100 || sizes[i] < 5000); i++)
		{
			uint64_t	k;

			for (k = 0; k < sizes[i]; k++)
				keys[k] = random_next(c);
			do_checked(&s, storing_op(&s), keys, NULL, sizes[i]);
			do_checked(&s, GH_FIND, keys, NULL, sizes[i]);
			do_checked(&s, GH_COUNT, keys, NULL, sizes[i]);
			do_checked(&s, GH_DELETE, keys, NULL, sizes[i]);
			do_checked(&s, GH_FIND, keys, NULL, sizes[i]);
		}
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
}

/* Every array that may be left out is. */
static void
test_optional_arrays(Context *c)
{
	enum
	{
		COUNT = 1000
	};
	uint64_t	keys[COUNT];
	uint8_t		ops[COUNT];
	TableType	type;
	uint32_t	t;
	GhOp		op;
	int			i;

	for (i = 0; i < COUNT; i++)
	{
		static const GhOp mixed[] = {GH_INSERT, GH_UPSERT, GH_FIND, GH_DELETE};

		keys[i] = random_below(c, COUNT / 2);
		ops[i] = (uint8_t) mixed[random_below(c, 4)];
	}
	for (t = 0; type_at(c, t, &type); t++)
	{
		Subject		s;

		if (!subject_open_type(&s, c, type))
			break;
		for (op = GH_INSERT; op <= GH_MIXED; op++)
		{
			if (!op_fits(&s, op))
				continue;
			if (op == GH_BUILD)
				subject_clear(&s);
			s.bare = true;
			if (op == GH_MIXED)
				do_mixed(&s, ops, keys, NULL, COUNT);
			else
				do_checked(&s, op, keys, NULL, COUNT);
			s.bare = false;
			check_content(&s);
		}
		subject_close(&s);
	}
}

/* Several requests submitted before the first is waited for. */
static void
test_several_in_flight(Context *c)
{
	enum
	{
		FLIGHTS = 8
	};
	uint64_t	count = sized(c, 50000, 2000);
	uint64_t   *keys = make_words(count);
	uint64_t   *values = make_words(count);
	uint64_t   *out = make_words(FLIGHTS * count);
	GhRequest	store = {.op = GH_UPSERT, .count = count, .keys = keys, .values_in = values};
	GhRequest	flight[FLIGHTS];
	Subject		s;
	uint64_t	i;
	int			f;

	if (!subject_open_kind(&s, c, KIND_MAP))
		return;
	for (i = 0; i < count; i++)
	{
		keys[i] = random_next(c);
		values[i] = ~keys[i];
	}
	c->engine->submit(s.table, &store);
	for (f = 0; f < FLIGHTS; f++)
	{
		flight[f] = (GhRequest) {.op = GH_FIND, .count = count - f, .keys = keys + f};
		flight[f].values_out = out + f * count;
		c->engine->submit(s.table, &flight[f]);
	}
	/* the last first: it may not overtake the upsert */
	for (f = FLIGHTS - 1; f >= 0; f--)
	{
		GhStatus	status;

		do
			status = c->engine->poll(&flight[f]);
		while (status == GH_BUSY);
		CHECK_STATUS(c, "find in flight", status, GH_OK);
		CHECK_U64(c, "found in flight", flight[f].outcome.matched, count - f);
		for (i = 0; i < count - f; i++)
			CHECK(c, out[f * count + i] == values[i + f], "a value in flight is wrong");
	}
	CHECK_STATUS(c, "upsert in flight", c->engine->wait(&store), GH_OK);
	CHECK_U64(c, "inserted in flight", store.outcome.inserted, count);
	subject_close(&s);
	free(keys);
	free(values);
	free(out);
}

/* A queue of every operation, waited for from its end: done in the order of submission. */
static void
test_queue_order(Context *c)
{
	enum
	{
		COUNT = 3000
	};
	uint64_t	keys[COUNT];
	uint64_t	values[2][COUNT];
	uint64_t	out[2][COUNT];
	uint8_t		ops[COUNT];
	GhRequest	queue[6] = {
		{.op = GH_INSERT, .values_in = values[0]},
		{.op = GH_FIND, .values_out = out[0]},
		{.op = GH_UPSERT, .values_in = values[1]},
		{.op = GH_FIND, .values_out = out[1]},
		{.op = GH_MIXED, .values_in = values[0], .ops = ops},
		{.op = GH_FIND}
	};
	Subject		s;
	int			i;

	if (!subject_open_kind(&s, c, KIND_MAP))
		return;
	for (i = 0; i < COUNT; i++)
	{
		keys[i] = random_next(c);
		values[0][i] = keys[i] + 1;
		values[1][i] = keys[i] + 2;
		ops[i] = GH_DELETE;
	}
	for (i = 0; i < 6; i++)
	{
		queue[i].count = COUNT;
		queue[i].keys = keys;
		c->engine->submit(s.table, &queue[i]);
	}
	for (i = 5; i >= 0; i--)
		CHECK_STATUS(c, "a request of the queue", c->engine->wait(&queue[i]), GH_OK);
	CHECK_U64(c, "first: inserted", queue[0].outcome.inserted, COUNT);
	CHECK_U64(c, "second: found", queue[1].outcome.matched, COUNT);
	CHECK_U64(c, "third: replaced", queue[2].outcome.replaced, COUNT);
	CHECK_U64(c, "fourth: found", queue[3].outcome.matched, COUNT);
	CHECK_U64(c, "fifth: removed", queue[4].outcome.removed, COUNT);
	CHECK_U64(c, "sixth: found", queue[5].outcome.matched, 0);
	CHECK(c, memcmp(out[0], values[0], sizeof(out[0])) == 0, "the second saw another's values");
	CHECK(c, memcmp(out[1], values[1], sizeof(out[1])) == 0, "the fourth saw another's values");
	subject_close(&s);
}

/* Arrays out of the engine's own buffers; device information. */
static void
test_devices_and_buffers(Context *c)
{
	enum
	{
		COUNT = 10000
	};
	GhDeviceInfo info;
	GhError		error = {0};
	GhRequest	store = {.op = GH_INSERT, .count = COUNT};
	int			count = 0;
	Subject		s;
	uint64_t   *buffer;
	uint64_t	i;

	CHECK_STATUS(c, "device_count", c->engine->device_count(&count, &error), GH_OK);
	CHECK(c, count >= 1, "%d devices", count);
	CHECK_STATUS(c, "device_info", c->engine->device_info(0, &info, &error), GH_OK);
	CHECK(c, info.name[0] != '\0' && info.memory_total > 0 &&
		  info.memory_free <= info.memory_total, "the device has no name or memory");
	CHECK(c, c->engine->open_device(count + 1000, &error) != GH_OK, "a device too many opened");
	if (c->engine->buffer_alloc == NULL || !subject_open_kind(&s, c, KIND_MAP))
		return;
	buffer = c->engine->buffer_alloc(0, 2 * COUNT * sizeof(uint64_t));
	if (CHECK(c, buffer != NULL, "buffer_alloc gave nothing"))
	{
		for (i = 0; i < COUNT; i++)
		{
			buffer[i] = mix(i);
			buffer[COUNT + i] = i;
			model_put(s.model, model_entry(s.model, mix(i)), i);
		}
		store.keys = buffer;
		store.values_in = buffer + COUNT;
		CHECK_STATUS(c, "insert out of a buffer", do_request(c, s.table, &store), GH_OK);
		CHECK_U64(c, "inserted out of a buffer", store.outcome.inserted, COUNT);
		check_content(&s);
		c->engine->buffer_free(buffer);
	}
	subject_close(&s);
}

/*
 * Memory of a table that has gone is free, also where the process keeps it for tables to come; and these can have all of it,
 * kept in whatever pieces.
 */
static void
test_memory_given_back(Context *c)
{
	const uint64_t bytes = (uint64_t) 1 << 28;
	static HostState lasting_state;
	static GhHost lasting;
	GhTableOptions options = options_of(c, type_of_kind(KIND_MAP));
	GhDeviceInfo before;
	GhDeviceInfo after;
	HostState	state;
	GhHost		host;
	GhError		error = {0};
	uint64_t	round;

	if (c->on_host || c->stand_in)
	{
		c->skip = "the engine has no memory of a device";
		return;
	}
	host_init(&lasting_state, &lasting);
	host_init(&state, &host);
	host.lasting = &lasting;
	options.pages = false;
	CHECK_STATUS(c, "device_info", c->engine->device_info(0, &before, &error), GH_OK);
	for (round = 0; round < 8 && c->failures == 0; round++)
	{
		GhTable    *table = NULL;

		options.capacity = bytes / 16 * (1 + round % 3);
		if (CHECK_STATUS(c, "table_create", c->engine->table_create(&host, &options, &table, &error), GH_OK))
			c->engine->table_destroy(table);
		CHECK_U64(c, "memory of a table that has gone", state.device_bytes, 0);
	}
	CHECK_STATUS(c, "device_info", c->engine->device_info(0, &after, &error), GH_OK);
	/* what the first table brings beside its memory stays: streams, and modules of kernels */
	CHECK(c, after.memory_free + bytes / 2 > before.memory_free, "of %" PRIu64 " bytes that were free %" PRIu64 " are",
		  before.memory_free, after.memory_free);
}

const Test	request_tests[] = {
	{"request arrays", test_requests, false},
	{"largest batch", test_largest_batch, false},
	{"batch sizes", test_batch_sizes, false},
	{"optional arrays", test_optional_arrays, false},
	{"several in flight", test_several_in_flight, false},
	{"queue order", test_queue_order, false},
	{"devices and buffers", test_devices_and_buffers, false},
	{"memory that is given back", test_memory_given_back, false},
	{NULL, NULL, false}
};
