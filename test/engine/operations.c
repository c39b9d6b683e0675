/*
 * operations.c
 *		Batches of any operation, on a table and on its model.
 */
#include "conformance.h"

/* Behind every array that an engine writes to: bytes that must stay. */
#define GUARD_BYTES 16
#define GUARD 0xCC

const char *
op_name(GhOp op)
{
	static const char *const names[] = {
		"none", "insert", "upsert", "exchange", "add", "build", "find", "count",
		"find-all", "delete", "delete-one", "mixed"
	};

	return op <= GH_MIXED ? names[op] : "unknown";
}

bool
op_fits(const Subject *s, GhOp op)
{
	switch (op)
	{
		case GH_INSERT:
		case GH_UPSERT:
		case GH_MIXED:
			return s->kind != KIND_MULTI;
		case GH_EXCHANGE:
			return s->kind == KIND_MAP && (s->value_size == 4 || s->value_size == 8);
		case GH_ADD:
		case GH_BUILD:
		case GH_FIND_ALL:
		case GH_DELETE_ONE:
			return s->kind == KIND_MULTI;
		case GH_FIND:
		case GH_COUNT:
		case GH_DELETE:
			return true;
	}
	return false;
}

GhOp
storing_op(const Subject *s)
{
	return s->kind == KIND_MULTI ? GH_ADD : GH_INSERT;
}

static bool
takes_values(GhOp op)
{
	return op <= GH_BUILD || op == GH_MIXED;
}

static void *
make_guarded(uint64_t bytes)
{
	void	   *memory = make_memory(bytes + GUARD_BYTES);

	memset(memory, GUARD, bytes + GUARD_BYTES);
	return memory;
}

static void
drop_guarded(Batch *b, const char *what, void *memory, uint64_t bytes)
{
	const uint8_t *guard = (const uint8_t *) memory + bytes;
	int			i;

	for (i = 0; memory != NULL && i < GUARD_BYTES; i++)
		CHECK(b->s->c, guard[i] == GUARD, "%s wrote behind %s of %" PRIu64 " bytes",
			  op_name(b->request.op), what, bytes);
	free(memory);
}

static uint64_t
draw_token(Subject *s)
{
	/* exchange tells its chains by values that differ: 31 bits leave room for absent */
	return value_cut(s, s->next_value++ & INT32_MAX);
}

static void
make_outputs(Subject *s, Batch *b)
{
	GhRequest  *request = &b->request;
	uint64_t	i;

	if (!s->bare)
		request->flags_out = make_guarded(b->count);
	if (request->op == GH_COUNT)
		request->counts_out = make_guarded(b->count * sizeof(uint64_t));
	if (request->op == GH_FIND_ALL)
	{
		for (i = 0; i < b->count; i++)
			b->values_room += b->entry[i]->count;
		request->offsets_out = make_guarded((b->count + 1) * sizeof(uint64_t));
		request->values_out = make_guarded(b->values_room * s->value_size);
		request->values_capacity = b->values_room;
	}
	else if (request->op == GH_EXCHANGE ||
			 (s->kind == KIND_MAP && !s->bare &&
			  (request->op == GH_FIND || request->op == GH_MIXED)))
	{
		b->values_room = b->count;
		request->values_out = make_guarded(b->values_room * s->value_size);
	}
}

void
batch_begin(Subject *s, Batch *b, GhOp op, const uint64_t *keys, const uint64_t *values,
			const uint8_t *ops, uint64_t count)
{
	uint64_t	i;

	memset(b, 0, sizeof(*b));
	b->s = s;
	b->count = count;
	b->entry = make_memory(count * sizeof(ModelEntry *));
	for (i = 0; i < count; i++)
		b->entry[i] = model_entry(s->model, key_cut(s, keys[i]));
	b->request.op = op;
	b->request.count = count;
	b->request.keys = make_keys(s->key_size, keys, count);
	if (takes_values(op))
	{
		b->tokens = make_words(count);
		for (i = 0; i < count; i++)
			b->tokens[i] = values != NULL ? value_cut(s, values[i]) : draw_token(s);
		if (s->value_size > 0)
			b->request.values_in = make_values(s->value_size, b->tokens, count);
	}
	if (ops != NULL)
	{
		b->request.ops = make_memory(count);
		memcpy((uint8_t *) b->request.ops, ops, count);
	}
	b->request.absent = random_next(s->c) | UINT64_C(0x80000000);
	make_outputs(s, b);
}

void
batch_end(Batch *b)
{
	GhRequest  *request = &b->request;

	drop_guarded(b, "flags_out", request->flags_out, b->count);
	drop_guarded(b, "counts_out", request->counts_out, b->count * sizeof(uint64_t));
	drop_guarded(b, "offsets_out", request->offsets_out, (b->count + 1) * sizeof(uint64_t));
	drop_guarded(b, "values_out", request->values_out, b->values_room * b->s->value_size);
	free((void *) request->keys);
	free((void *) request->values_in);
	free((void *) request->ops);
	free(b->tokens);
	free(b->entry);
}

GhStatus
do_request(Context *c, GhTable *table, GhRequest *request)
{
	GhStatus	status = c->engine->submit(table, request);

	if (status == GH_OK || status == GH_BUSY)
	{
		status = c->engine->wait(request);
		CHECK(c, status != GH_BUSY, "wait returned busy");
		CHECK_STATUS(c, "status field after wait", request->status, status);
		CHECK_STATUS(c, "poll after wait", c->engine->poll(request), status);
	}
	if (status != GH_OK && status != GH_STOPPED && status != GH_TOO_SMALL)
		CHECK(c, request->error.status == status && request->error.message[0] != '\0' &&
			  strchr(request->error.message, '\n') == NULL &&
			  strnlen(request->error.message, GH_MESSAGE_SIZE) < GH_MESSAGE_SIZE,
			  "an error of status \"%s\" has no sentence", gh_status_name(status));
	return status;
}

GhStatus
batch_run(Batch *b)
{
	Context    *c = b->s->c;
	GhRequest  *request = &b->request;
	uint64_t	before = request->outcome.done;
	GhStatus	status = do_request(c, b->s->table, request);

	if (status == GH_OK)
		CHECK_U64(c, "done of a request that is", request->outcome.done, b->count);
	if (request->op == GH_FIND_ALL)
	{
		if (status == GH_OK)
			check_found_all(b);
		return status;
	}
	if (request->op == GH_BUILD && status != GH_OK)
	{
		/* it left nothing, as the model has nothing */
		CHECK_U64(c, "done of a build that failed", request->outcome.done, 0);
		return status;
	}
	if (b->s->concurrent && request->op == GH_EXCHANGE && status != GH_OK)
		return status;
	if (CHECK(c, request->outcome.done >= before && request->outcome.done <= b->count,
			  "%s: done went from %" PRIu64 " to %" PRIu64 " of %" PRIu64, op_name(request->op), before,
			  request->outcome.done, b->count))
		check_stage(b, request->outcome.done);
	return status;
}

/* Sizes alone, then room for a part; nothing may be written but the sizes. */
static void
find_all_without_room(Batch *b)
{
	Context    *c = b->s->c;
	GhRequest  *request = &b->request;
	uint8_t    *out = request->values_out;
	uint64_t	bytes = b->values_room * b->s->value_size;
	uint64_t	i;
	int			round;

	for (round = 0; round < 2; round++)
	{
		request->values_capacity = round == 0 ? 0 : random_below(c, b->values_room);
		request->values_out = round == 0 ? NULL : out;
		CHECK_STATUS(c, "find-all without room", do_request(c, b->s->table, request),
					 GH_TOO_SMALL);
		CHECK_U64(c, "values_count without room", request->outcome.values_count, b->values_room);
		CHECK_U64(c, "last offset without room", request->offsets_out[b->count], b->values_room);
	}
	for (i = 0; i < bytes && out[i] == GUARD; i++)
		continue;
	CHECK_U64(c, "values untouched without room", i, bytes);
	request->values_out = out;
	request->values_capacity = b->values_room;
}

static bool
run_checked(Batch *b)
{
	Context    *c = b->s->c;
	int			before = c->failures;
	int			tries = 0;
	GhStatus	status;

	if (b->request.op == GH_FIND_ALL && b->values_room > 0 && !b->s->bare && !b->s->patient)
		find_all_without_room(b);
	do
		status = batch_run(b);
	while (subject_again(b->s, status, ++tries));
	CHECK(c, status == GH_OK || b->s->lost, "%s of %" PRIu64 " keys: %s: %s",
		  op_name(b->request.op), b->count, gh_status_name(status), b->request.error.message);
	batch_end(b);
	return c->failures == before && !b->s->lost;
}

bool
do_checked(Subject *s, GhOp op, const uint64_t *keys, const uint64_t *values,
		   uint64_t count)
{
	Batch		b;

	if (s->lost)
		return false;
	batch_begin(s, &b, op, keys, values, NULL, count);
	return run_checked(&b);
}

bool
do_mixed(Subject *s, const uint8_t *ops, const uint64_t *keys, const uint64_t *values,
		 uint64_t count)
{
	Batch		b;

	if (s->lost)
		return false;
	batch_begin(s, &b, GH_MIXED, keys, values, ops, count);
	return run_checked(&b);
}
