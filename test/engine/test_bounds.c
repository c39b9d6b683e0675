/*
 * test_bounds.c
 *		Options and requests at the edges of what is allowed, and beyond.
 */
#include "conformance.h"

#include <math.h>

/* Creates a table and says whether that went as expected. */
static void
try_options(Context *c, const char *what, GhTableOptions options, GhStatus expected)
{
	HostState	state;
	GhHost		host;
	GhTable    *table = NULL;
	GhError		error = {0};
	GhStatus	status;

	host_init(&state, &host);
	status = c->engine->table_create(&host, &options, &table, &error);
	CHECK_STATUS(c, what, status, expected);
	if (status != GH_OK)
	{
		CHECK(c, error.status == status && error.message[0] != '\0', "%s: no message", what);
		CHECK(c, table == NULL, "%s: a table all the same", what);
	}
	else
		c->engine->table_destroy(table);
	CHECK_U64(c, "memory left", state.allocated, 0);
}

static void
test_subtable_bounds(Context *c)
{
	static const struct
	{
		uint32_t	subtables;
		GhStatus	status;
	}			cases[] = {
		{GH_SUBTABLES_MIN - 1, GH_INVALID},
		{GH_SUBTABLES_MIN, GH_OK},
		{GH_SUBTABLES_DEFAULT, GH_OK},
		{GH_SUBTABLES_MAX, GH_OK},
		{GH_SUBTABLES_MAX + 1, GH_INVALID},
		{UINT32_MAX, GH_INVALID},
		{0, GH_OK}
	};
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		GhTableOptions options = options_of(c, KIND_MAP);

		options.subtables = cases[i].subtables;
		try_options(c, "subtables", options, cases[i].status);
	}
}

static void
test_fill_bounds(Context *c)
{
	uint32_t	d;

	for (d = GH_SUBTABLES_MIN; d <= GH_SUBTABLES_MAX; d++)
	{
		GhTableOptions options = options_of(c, KIND_MAP);
		double		bound = (double) d / (d + 1) * GH_FILL_MAX_MAX;

		options.subtables = d;
		options.fill_max = GH_FILL_MAX_MAX;
		try_options(c, "fill_max at its maximum", options, GH_OK);
		options.fill_min = bound;
		try_options(c, "fill_min at d / (d + 1) x fill_max", options, GH_INVALID);
		options.fill_min = bound - 0.001;
		try_options(c, "fill_min below d / (d + 1) x fill_max", options, GH_OK);
		options.fill_min = bound + 0.001;
		try_options(c, "fill_min above d / (d + 1) x fill_max", options, GH_INVALID);
		options.fill_min = 0.0001;
		try_options(c, "small fill_min", options, GH_OK);
		options.fill_min = -0.1;
		try_options(c, "negative fill_min", options, GH_INVALID);
		options.fill_min = NAN;
		try_options(c, "fill_min not a number", options, GH_INVALID);
		options.fill_min = 0;
		options.fill_max = GH_FILL_MAX_MAX + 0.0001;
		try_options(c, "fill_max above its maximum", options, GH_INVALID);
		options.fill_max = 1;
		try_options(c, "fill_max of 1", options, GH_INVALID);
		options.fill_max = -0.5;
		try_options(c, "negative fill_max", options, GH_INVALID);
		options.fill_max = NAN;
		try_options(c, "fill_max not a number", options, GH_INVALID);
	}
}

static void
test_sizes(Context *c)
{
	static const uint32_t wrong[] = {1, 4, 7, 9, 16, UINT32_MAX};
	GhTableOptions options;
	size_t		i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		options = options_of(c, KIND_MAP);
		options.value_size = wrong[i];
		try_options(c, "value_size", options, GH_INVALID);
		options = options_of(c, KIND_MAP);
		options.key_size = wrong[i];
		try_options(c, "key_size", options, GH_INVALID);
	}
	options = options_of(c, KIND_MAP);
	options.key_size = 0;
	try_options(c, "key_size", options, GH_INVALID);
	options = options_of(c, KIND_SET);
	options.multi = true;
	try_options(c, "a multi table without values", options, GH_INVALID);
	options = options_of(c, KIND_MAP);
	options.device = -1;
	try_options(c, "device", options, GH_INVALID);
	options = options_of(c, KIND_MAP);
	options.capacity = UINT64_MAX;
	options.memory_limit = 1 << 20;
	try_options(c, "capacity beyond the limit", options, GH_LIMIT);
}

static void
try_request(Context *c, Subject *s, const char *what, GhRequest request, GhStatus expected)
{
	GhStatus	status;

	status = c->engine->submit(s->table, &request);
	if (status == GH_OK || status == GH_BUSY)
		status = c->engine->wait(&request);
	if (!CHECK(c, status == expected, "%s (%s, operation %d): status \"%s\", expected \"%s\"",
			   what, kind_name[s->kind], (int) request.op, gh_status_name(status),
			   gh_status_name(expected)))
		return;
	if (status == GH_INVALID)
		CHECK(c, request.error.message[0] != '\0', "%s: no message", what);
}

/* A request that is right for the operation, to be spoilt. */
static GhRequest
good_request(Kind kind, GhOp op, uint64_t *arrays)
{
	GhRequest	request = {.op = op, .count = 1, .keys = arrays};

	if (kind != KIND_SET && (op <= GH_ADD))
		request.values_in = arrays + 1;
	if (op == GH_EXCHANGE || op == GH_FIND_ALL || (op == GH_FIND && kind == KIND_MAP))
		request.values_out = arrays + 2;
	if (op == GH_FIND_ALL)
	{
		request.offsets_out = arrays + 4;
		request.values_capacity = 2;
	}
	return request;
}

static bool
op_fits(Kind kind, GhOp op)
{
	switch (op)
	{
		case GH_INSERT:
		case GH_UPSERT:
			return kind != KIND_MULTI;
		case GH_EXCHANGE:
			return kind == KIND_MAP;
		case GH_ADD:
		case GH_FIND_ALL:
			return kind == KIND_MULTI;
		default:
			return true;
	}
}

static void
try_unknown_ops(Context *c, Subject *s, GhRequest request)
{
	request.op = (GhOp) 0;
	try_request(c, s, "operation 0", request, GH_INVALID);
	request.op = (GhOp) (GH_DELETE + 1);
	try_request(c, s, "operation after the last", request, GH_INVALID);
}

static void
test_requests_of(Context *c, Kind kind)
{
	uint64_t	arrays[8] = {7, 8};
	GhRequest	request;
	Subject		s;
	GhOp		op;

	if (!subject_open_kind(&s, c, kind))
		return;
	for (op = GH_INSERT; op <= GH_DELETE; op++)
	{
		const GhRequest good = good_request(kind, op, arrays);

		if (!op_fits(kind, op))
		{
			try_request(c, &s, "operation of another kind of table", good, GH_INVALID);
			continue;
		}
		try_request(c, &s, "as it should be", good, GH_OK);
		request = good;
		request.keys = NULL;
		try_request(c, &s, "no keys", request, GH_INVALID);
		request = good;
		request.count = GH_BATCH_MAX + 1;
		try_request(c, &s, "too many keys", request, GH_INVALID);
		request = good;
		request.done = 2;
		try_request(c, &s, "more done than there is", request, GH_INVALID);
		if (good.values_in != NULL)
		{
			request = good;
			request.values_in = NULL;
			try_request(c, &s, "no values_in", request, GH_INVALID);
		}
		if (op == GH_EXCHANGE || op == GH_FIND_ALL)
		{
			request = good;
			request.values_out = NULL;
			try_request(c, &s, "no values_out", request, GH_INVALID);
		}
		if (op == GH_FIND_ALL)
		{
			request = good;
			request.offsets_out = NULL;
			try_request(c, &s, "no offsets_out", request, GH_INVALID);
		}
		if (op == GH_FIND && kind != KIND_MAP)
		{
			request = good;
			request.values_out = arrays + 2;
			try_request(c, &s, "values_out where there is no value", request, GH_INVALID);
		}
		request = good;
		request.count = 0;
		request.keys = NULL;
		request.values_in = NULL;
		try_request(c, &s, "no keys at all", request, GH_OK);
	}
	try_unknown_ops(c, &s, good_request(kind, GH_FIND, arrays));
	subject_close(&s);
}

static void
test_requests(Context *c)
{
	Kind		kind;

	for (kind = 0; kind < KINDS; kind++)
		test_requests_of(c, kind);
}

/* A find-all of no keys or of absent ones. */
static void
test_empty_find_all(Context *c)
{
	uint64_t	offsets[4] = {9, 9, 9, 9};
	uint64_t	keys[3] = {0, 1, 2};
	GhRequest	request = {.op = GH_FIND_ALL, .offsets_out = offsets};
	Subject		s;
	int			i;

	if (!subject_open_kind(&s, c, KIND_MULTI))
		return;
	CHECK_STATUS(c, "find-all of nothing", do_request(c, s.table, &request), GH_OK);
	CHECK_U64(c, "offset of nothing", offsets[0], 0);
	request.keys = keys;
	request.count = 3;
	request.done = 0;
	CHECK_STATUS(c, "find-all of absent keys", do_request(c, s.table, &request), GH_OK);
	for (i = 0; i < 4; i++)
		CHECK_U64(c, "offset of an absent key", offsets[i], 0);
	subject_close(&s);
}

const Test	bounds_tests[] = {
	{"subtable bounds", test_subtable_bounds, false},
	{"fill bounds", test_fill_bounds, false},
	{"key and value sizes", test_sizes, false},
	{"request arrays", test_requests, false},
	{"empty find-all", test_empty_find_all, false},
	{NULL, NULL, false}
};
