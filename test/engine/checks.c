/*
 * checks.c
 *		What a request gave back, held against engine.h; the model follows.
 *
 * A stage is the positions that a run of a request has done.  It is judged by what
 * the model holds before it, and leaves the model as the table must be now.
 */
#include "conformance.h"

/* The flag at position i, which may not have been asked for. */
static void
expect_flag(const Batch *b, uint64_t i, bool expected)
{
	const uint8_t *flags = b->request.flags_out;

	if (flags != NULL)
		CHECK(b->s->c, flags[i] == expected, "%s: flag %d at position %" PRIu64 ", key %" PRIx64
			  ", expected %d", op_name(b->request.op), flags[i], i, b->entry[i]->key, expected);
}

/* The value at position i of values_out: the key's, or absent. */
static void
expect_value(const Batch *b, uint64_t i, bool there)
{
	const Subject *s = b->s;
	const ModelEntry *entry = b->entry[i];
	const char *out = b->request.values_out;

	if (out == NULL)
		return;
	out += i * s->value_size;
	if (there)
		CHECK(s->c, value_is(s->value_size, out, entry->value), "%s: key %" PRIx64
			  " at position %" PRIu64 " has a wrong value, expected %" PRIx64,
			  op_name(b->request.op), entry->key, i, entry->value);
	else
		CHECK(s->c, value_is_absent(s->value_size, out, b->request.absent),
			  "%s: position %" PRIu64 ", key %" PRIx64 ", is not \"absent\"",
			  op_name(b->request.op), i, entry->key);
}

/* Begins a stage on the positions' entries: were they there? */
static void
note_entries(Batch *b, uint64_t to)
{
	uint32_t	stage = ++b->s->model->stage;
	uint64_t	i;

	for (i = b->checked; i < to; i++)
	{
		ModelEntry *entry = b->entry[i];

		if (entry->stage != stage)
		{
			entry->stage = stage;
			entry->was_present = entry->count > 0;
			entry->was_value = entry->value;
			entry->flags = 0;
			entry->positions = 0;
		}
		entry->positions++;
	}
}

/* Exactly one position of each key that came, or left, says so. */
static void
check_one_flag(Batch *b, uint64_t to, bool of_those_present)
{
	Context    *c = b->s->c;
	const uint8_t *flags = b->request.flags_out;
	uint64_t	i;

	if (flags == NULL)
		return;
	for (i = b->checked; i < to; i++)
	{
		CHECK(c, flags[i] <= 1, "%s: flag %d at position %" PRIu64, op_name(b->request.op),
			  flags[i], i);
		b->entry[i]->flags += flags[i];
	}
	for (i = b->checked; i < to; i++)
	{
		const ModelEntry *entry = b->entry[i];

		CHECK(c, entry->flags == (entry->was_present == of_those_present),
			  "%s: key %" PRIx64 " has %" PRIu32 " flags and was %s", op_name(b->request.op),
			  entry->key, entry->flags, entry->was_present ? "present" : "absent");
	}
}

/* -------------------------------------------------------------- that store */

static void
stage_insert(Batch *b, uint64_t to)
{
	uint64_t	i;

	for (i = b->checked; i < to; i++)
	{
		bool		fresh = b->entry[i]->count == 0;

		if (fresh)
			model_put(b->s->model, b->entry[i], b->tokens[i]);
		b->inserted += fresh;
		expect_flag(b, i, fresh);
	}
}

static void
stage_upsert(Batch *b, uint64_t to)
{
	uint64_t	i;

	note_entries(b, to);
	for (i = b->checked; i < to; i++)
	{
		b->inserted += b->entry[i]->count == 0;
		b->replaced += b->entry[i]->count > 0;
		model_put(b->s->model, b->entry[i], b->tokens[i]);
	}
	check_one_flag(b, to, false);
}

static void
stage_add(Batch *b, uint64_t to)
{
	uint64_t	i;

	note_entries(b, to);
	for (i = b->checked; i < to; i++)
	{
		b->inserted += b->entry[i]->count == 0;
		model_add(b->s->model, b->entry[i], b->request.values_in != NULL ? b->tokens[i] :
				  value_cut(b->s, i));
	}
	check_one_flag(b, to, false);
}

/* An exchange's step: at this key, this value went out and that one came in. */
typedef struct Step
{
	ModelEntry *entry;
	uint64_t	out;
	uint64_t	in;
} Step;

static int
compare_steps(const void *a, const void *b)
{
	const Step *x = a;
	const Step *y = b;

	if (x->entry != y->entry)
		return (uintptr_t) x->entry < (uintptr_t) y->entry ? -1 : 1;
	return x->out < y->out ? -1 : x->out > y->out;
}

/*
 * The steps of a key form one chain from the value before the batch; the values
 * are all different.  The chain's end is the key's value now.
 */
static void
follow_chain(Batch *b, const Step *steps, uint64_t count)
{
	ModelEntry *entry = steps[0].entry;
	Step		sought = {entry, entry->was_value, 0};
	uint64_t	length;

	if (!entry->was_present)
		sought.out = value_cut(b->s, b->request.absent);
	for (length = 0; length < count; length++)
	{
		const Step *step = bsearch(&sought, steps, count, sizeof(Step), compare_steps);

		if (step == NULL)
			break;
		sought.out = step->in;
	}
	CHECK(b->s->c, length == count, "exchange: the chain of key %" PRIx64 " has %" PRIu64
		  " of %" PRIu64 " steps", entry->key, length, count);
	b->inserted += !entry->was_present;
	b->replaced += count - !entry->was_present;
	model_put(b->s->model, entry, sought.out);
}

static void
stage_exchange(Batch *b, uint64_t to)
{
	Step	   *steps = make_memory((to - b->checked) * sizeof(Step));
	uint64_t	size = b->s->value_size;
	uint64_t	n = 0;
	uint64_t	begin;
	uint64_t	end;
	uint64_t	i;

	note_entries(b, to);
	for (i = b->checked; i < to; i++)
	{
		Step		step = {b->entry[i], 0, b->tokens[i]};

		memcpy(&step.out, (const char *) b->request.values_out + i * size, size);
		if (step.entry->positions == 1)
			follow_chain(b, &step, 1);
		else
			steps[n++] = step;
	}
	qsort(steps, n, sizeof(Step), compare_steps);
	for (begin = 0; begin < n; begin = end)
	{
		for (end = begin; end < n && steps[end].entry == steps[begin].entry; end++)
			continue;
		follow_chain(b, steps + begin, end - begin);
	}
	free(steps);
	check_one_flag(b, to, false);
}

/* --------------------------------------------------------------- that read */

static void
stage_find(Batch *b, uint64_t to)
{
	uint64_t	i;

	for (i = b->checked; i < to; i++)
	{
		bool		there = b->entry[i]->count > 0;

		b->matched += there;
		expect_flag(b, i, there);
		expect_value(b, i, there);
	}
}

static void
stage_count(Batch *b, uint64_t to)
{
	uint64_t	i;

	for (i = b->checked; i < to; i++)
	{
		const ModelEntry *entry = b->entry[i];

		b->matched += entry->count > 0;
		b->values_count += entry->count;
		expect_flag(b, i, entry->count > 0);
		CHECK(b->s->c, b->request.counts_out[i] == entry->count, "count: key %" PRIx64 " has %"
			  PRIu64 " values, expected %" PRIu64, entry->key, b->request.counts_out[i],
			  entry->count);
	}
}

/* The values of one key, in any order; tokens is scratch. */
static void
check_values(Subject *s, ModelEntry *entry, const char *out, uint64_t count, uint64_t *tokens)
{
	uint64_t	i;

	if (!CHECK(s->c, count == entry->count, "find-all: key %" PRIx64 " has %" PRIu64
			   " values, expected %" PRIu64, entry->key, count, entry->count))
		return;
	for (i = 0; i < count; i++)
	{
		if (!CHECK(s->c, value_read(s->value_size, out + i * s->value_size, &tokens[i]),
				   "find-all: a value of key %" PRIx64 " is torn", entry->key))
			return;
	}
	CHECK(s->c, count == 0 || model_settle(entry, tokens, count),
		  "find-all: the values of key %" PRIx64 " are wrong", entry->key);
}

void
check_found_all(Batch *b)
{
	Subject    *s = b->s;
	Context    *c = s->c;
	const uint64_t *offsets = b->request.offsets_out;
	const char *out = b->request.values_out;
	uint64_t   *tokens;
	uint64_t	present = 0;
	uint64_t	i;

	if (!CHECK_U64(c, "values_count of find-all", b->request.outcome.values_count, b->values_room) ||
		!CHECK_U64(c, "first offset", offsets[0], 0) ||
		!CHECK_U64(c, "last offset", offsets[b->count], b->values_room))
		return;
	tokens = make_words(b->values_room);
	for (i = 0; i < b->count; i++)
	{
		present += b->entry[i]->count > 0;
		expect_flag(b, i, b->entry[i]->count > 0);
		if (CHECK(c, offsets[i] <= offsets[i + 1], "offsets of find-all fall"))
			check_values(s, b->entry[i], out + offsets[i] * s->value_size,
						 offsets[i + 1] - offsets[i], tokens);
	}
	CHECK_U64(c, "matched of find-all", b->request.outcome.matched, present);
	free(tokens);
}

/* ------------------------------------------------------------- that remove */

static void
stage_delete(Batch *b, uint64_t to)
{
	uint64_t	i;

	note_entries(b, to);
	for (i = b->checked; i < to; i++)
	{
		b->removed += b->entry[i]->count > 0;
		b->values_count += b->entry[i]->count;
		model_remove(b->s->model, b->entry[i]);
	}
	check_one_flag(b, to, true);
}

static void
stage_delete_one(Batch *b, uint64_t to)
{
	uint64_t	i;

	for (i = b->checked; i < to; i++)
	{
		ModelEntry *entry = b->entry[i];

		expect_flag(b, i, entry->count > 0);
		if (entry->count == 0)
			continue;
		b->values_count++;
		b->removed += entry->count == 1;
		model_remove_one(b->s->model, entry);
	}
}

/* ----------------------------------------------------------- that do it all */

static void
stage_mixed(Batch *b, uint64_t to)
{
	Model	   *model = b->s->model;
	uint64_t	i;

	for (i = b->checked; i < to; i++)
	{
		ModelEntry *entry = b->entry[i];
		GhOp		op = b->request.ops[i];
		bool		there = entry->count > 0;

		expect_flag(b, i, op == GH_FIND || op == GH_DELETE ? there : !there);
		expect_value(b, i, op == GH_FIND && there);
		if (op == GH_FIND)
			b->matched += there;
		else if (op == GH_DELETE)
		{
			b->removed += there;
			model_remove(model, entry);
		}
		else
		{
			b->inserted += !there;
			b->replaced += op == GH_UPSERT && there;
			if (!there || op == GH_UPSERT)
				model_put(model, entry, b->tokens[i]);
		}
	}
}

void
check_stage(Batch *b, uint64_t to)
{
	static void (*const stages[]) (Batch *, uint64_t) = {
		[GH_INSERT] = stage_insert,
		[GH_UPSERT] = stage_upsert,
		[GH_EXCHANGE] = stage_exchange,
		[GH_ADD] = stage_add,
		[GH_BUILD] = stage_add,
		[GH_FIND] = stage_find,
		[GH_COUNT] = stage_count,
		[GH_DELETE] = stage_delete,
		[GH_DELETE_ONE] = stage_delete_one,
		[GH_MIXED] = stage_mixed
	};
	Context    *c = b->s->c;
	const GhRequest *request = &b->request;

	stages[request->op] (b, to);
	b->checked = to;
	CHECK(c, request->outcome.matched == b->matched && request->outcome.inserted == b->inserted &&
		  request->outcome.removed == b->removed,
		  "%s: matched %" PRIu64 ", inserted %" PRIu64 ", removed %" PRIu64 ", expected %" PRIu64
		  ", %" PRIu64 ", %" PRIu64, op_name(request->op), request->outcome.matched,
		  request->outcome.inserted, request->outcome.removed, b->matched, b->inserted, b->removed);
	/* what an upsert replaces in a set, where there is no value, is not said */
	if (b->s->kind != KIND_SET)
		CHECK(c, request->outcome.replaced == b->replaced, "%s: replaced %" PRIu64 ", expected %" PRIu64,
			  op_name(request->op), request->outcome.replaced, b->replaced);
	if (request->op == GH_COUNT || request->op == GH_DELETE || request->op == GH_DELETE_ONE)
		CHECK(c, request->outcome.values_count == b->values_count, "%s: values_count %" PRIu64
			  ", expected %" PRIu64, op_name(request->op), request->outcome.values_count, b->values_count);
}
