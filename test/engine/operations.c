/*
 * operations.c
 *		A table beside its model: every operation is done on both, and every
 *		result is held against the contract in engine.h.
 */
#include "conformance.h"

const char *const kind_name[KINDS] = {"set", "map", "multi"};

GhTableOptions
options_of(const Context *c, Kind kind)
{
	GhTableOptions options = {.key_size = 8};

	options.value_size = kind == KIND_SET ? 0 : 8;
	options.multi = kind == KIND_MULTI;
	options.seed = mix(c->seed);
	return options;
}

bool
subject_open(Subject *s, Context *c, const GhTableOptions *options)
{
	GhError		error = {0};
	GhStatus	status;

	memset(s, 0, sizeof(*s));
	s->c = c;
	s->kind = options->multi ? KIND_MULTI : options->value_size > 0 ? KIND_MAP : KIND_SET;
	host_init_locked(&s->state, &s->host);
	s->next_value = 1;
	status = c->engine->table_create(&s->host, options, &s->table, &error);
	if (!CHECK(c, status == GH_OK, "create of a %s: %s: %s", kind_name[s->kind],
			   gh_status_name(status), error.message))
		return false;
	s->model = model_make();
	return true;
}

bool
subject_open_kind(Subject *s, Context *c, Kind kind)
{
	GhTableOptions options = options_of(c, kind);

	return subject_open(s, c, &options);
}

void
subject_close(Subject *s)
{
	s->c->engine->table_destroy(s->table);
	model_drop(s->model);
	CHECK_U64(s->c, "memory after destroy", s->state.allocated, 0);
	CHECK(s->c, !s->state.damaged, "memory was freed twice");
	CHECK(s->c, !s->state.lock_misused && s->state.lock_depth == 0, "locks are out of balance");
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
			  strchr(request->error.message, '\n') == NULL,
			  "an error of status \"%s\" has no sentence", gh_status_name(status));
	return status;
}

/* The arrays of a batch, and the model's entry of every position. */
typedef struct Batch
{
	uint64_t	count;
	const uint64_t *keys;
	uint64_t   *values;
	uint64_t   *out;
	uint8_t    *flags;
	ModelEntry **entry;
	GhRequest	request;
} Batch;

static void
batch_begin(Subject *s, Batch *b, GhOp op, const uint64_t *keys, const uint64_t *values,
			uint64_t count)
{
	uint64_t	i;

	memset(b, 0, sizeof(*b));
	b->count = count;
	b->keys = keys;
	b->values = make_memory(count * sizeof(uint64_t));
	b->out = make_memory(count * sizeof(uint64_t));
	b->flags = make_memory(count);
	b->entry = make_memory(count * sizeof(ModelEntry *));
	memset(b->out, 0xCC, count * sizeof(uint64_t));
	memset(b->flags, 0xCC, count);
	s->model->batch++;
	for (i = 0; i < count; i++)
	{
		ModelEntry *entry = model_entry(s->model, keys[i]);

		b->entry[i] = entry;
		b->values[i] = values != NULL ? values[i] : s->next_value++;
		if (entry->batch == s->model->batch)
			continue;
		entry->batch = s->model->batch;
		entry->was_present = entry->present;
		entry->was_value = entry->present ? entry->values[0] : 0;
		entry->flags = 0;
	}
	b->request.op = op;
	b->request.count = count;
	b->request.keys = keys;
	b->request.flags_out = b->flags;
	b->request.absent = random_next(s->c);
	if (s->kind != KIND_SET && op != GH_FIND && op != GH_FIND_ALL && op != GH_DELETE)
		b->request.values_in = b->values;
	if (op == GH_EXCHANGE || (op == GH_FIND && s->kind == KIND_MAP))
		b->request.values_out = b->out;
}

static void
batch_end(Batch *b)
{
	free(b->values);
	free(b->out);
	free(b->flags);
	free(b->entry);
}

/* Flags must be given at exactly one position of each key that came or went. */
static void
check_one_flag(Subject *s, const Batch *b, bool of_those_present, const char *op)
{
	Context    *c = s->c;
	uint64_t	matched = 0;
	uint64_t	i;

	for (i = 0; i < b->count; i++)
	{
		CHECK(c, b->flags[i] <= 1, "%s: flag %d at position %" PRIu64, op, b->flags[i], i);
		b->entry[i]->flags += b->flags[i];
	}
	for (i = 0; i < b->count; i++)
	{
		ModelEntry *entry = b->entry[i];

		if (entry->batch == 0)
			continue;
		CHECK(c, entry->flags == (entry->was_present == of_those_present),
			  "%s: key %" PRIx64 " has %" PRIu64 " flags and was %s", op, entry->key,
			  entry->flags, entry->was_present ? "present" : "absent");
		matched += entry->was_present == of_those_present;
		entry->batch = 0;
	}
	CHECK_U64(c, "matched", b->request.matched, matched);
}

static void
check_insert(Subject *s, const Batch *b)
{
	uint64_t	matched = 0;
	uint64_t	i;

	for (i = 0; i < b->count; i++)
	{
		bool		fresh = !b->entry[i]->present;

		if (fresh)
			model_put(s->model, b->entry[i], b->values[i]);
		matched += fresh;
		CHECK(s->c, b->flags[i] == fresh, "insert: flag %d at position %" PRIu64,
			  b->flags[i], i);
	}
	CHECK_U64(s->c, "matched of insert", b->request.matched, matched);
}

static void
check_store(Subject *s, const Batch *b, GhOp op)
{
	uint64_t	i;

	for (i = 0; i < b->count; i++)
	{
		if (op == GH_ADD)
			model_add(s->model, b->entry[i], b->values[i]);
		else
			model_put(s->model, b->entry[i], b->values[i]);
	}
	check_one_flag(s, b, false, op == GH_ADD ? "add" : "upsert");
}

static void
check_delete(Subject *s, const Batch *b)
{
	uint64_t	values = s->model->values;
	uint64_t	i;

	for (i = 0; i < b->count; i++)
		model_remove(s->model, b->entry[i]);
	check_one_flag(s, b, true, "delete");
	CHECK_U64(s->c, "values_count of delete", b->request.values_count,
			  values - s->model->values);
}

static void
check_find(Subject *s, const Batch *b)
{
	uint64_t	matched = 0;
	uint64_t	i;

	for (i = 0; i < b->count; i++)
	{
		const ModelEntry *entry = b->entry[i];

		matched += entry->present;
		CHECK(s->c, b->flags[i] == entry->present,
			  "find: flag %d of key %" PRIx64 " that is %s", b->flags[i], entry->key,
			  entry->present ? "present" : "absent");
		if (s->kind == KIND_MAP)
			CHECK(s->c, b->out[i] == (entry->present ? entry->values[0] : b->request.absent),
				  "find: key %" PRIx64 " has value %" PRIx64, entry->key, b->out[i]);
	}
	CHECK_U64(s->c, "matched of find", b->request.matched, matched);
}

/* An exchange's step: at this key, this value went out and that one came in. */
typedef struct Step
{
	const ModelEntry *entry;
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
check_exchange(Subject *s, const Batch *b)
{
	Step	   *steps = make_memory(b->count * sizeof(Step));
	uint64_t	i;
	uint64_t	begin;

	for (i = 0; i < b->count; i++)
		steps[i] = (Step) {b->entry[i], b->out[i], b->values[i]};
	qsort(steps, b->count, sizeof(Step), compare_steps);
	for (begin = 0; begin < b->count; begin = i)
	{
		ModelEntry *entry = (ModelEntry *) steps[begin].entry;
		Step		sought = {entry, entry->was_present ? entry->was_value : b->request.absent, 0};
		uint64_t	length = 0;

		for (i = begin; i < b->count && steps[i].entry == entry; i++)
		{
			const Step *step = bsearch(&sought, steps, b->count, sizeof(Step), compare_steps);

			if (step == NULL)
				break;
			length++;
			sought.out = step->in;
		}
		while (i < b->count && steps[i].entry == entry)
			i++;
		CHECK(s->c, length == i - begin, "exchange: the chain of key %" PRIx64 " has %" PRIu64
			  " of %" PRIu64 " steps", entry->key, length, i - begin);
		model_put(s->model, entry, sought.out);
	}
	free(steps);
	check_one_flag(s, b, false, "exchange");
}

static int
compare_u64(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return x < y ? -1 : x > y;
}

/* The values of one key, in any order. */
static void
check_values(Subject *s, ModelEntry *entry, uint64_t *got, uint64_t count)
{
	if (!CHECK(s->c, count == entry->count, "find-all: key %" PRIx64 " has %" PRIu64
			   " values, expected %" PRIu64, entry->key, count, entry->count) || count == 0)
		return;
	qsort(got, count, sizeof(uint64_t), compare_u64);
	qsort(entry->values, count, sizeof(uint64_t), compare_u64);
	CHECK(s->c, memcmp(got, entry->values, count * sizeof(uint64_t)) == 0,
		  "find-all: the values of key %" PRIx64 " are wrong", entry->key);
}

static void
do_find_all(Subject *s, Batch *b)
{
	Context    *c = s->c;
	uint64_t   *offsets = make_memory((b->count + 1) * sizeof(uint64_t));
	uint64_t	total = 0;
	uint64_t	present = 0;
	uint64_t   *out;
	uint64_t	i;

	for (i = 0; i < b->count; i++)
	{
		total += b->entry[i]->count;
		present += b->entry[i]->present;
	}
	out = make_memory(total * sizeof(uint64_t));
	memset(out, 0xCC, total * sizeof(uint64_t));
	b->request.offsets_out = offsets;
	b->request.values_out = out;
	if (total > 0)
	{
		b->request.values_capacity = random_below(c, total);
		CHECK_STATUS(c, "find-all without room", do_request(c, s->table, &b->request),
					 GH_TOO_SMALL);
		CHECK_U64(c, "values_count without room", b->request.values_count, total);
		CHECK_U64(c, "last offset without room", offsets[b->count], total);
		for (i = 0; i < total && out[i] == UINT64_C(0xCCCCCCCCCCCCCCCC); i++)
			continue;
		CHECK_U64(c, "values untouched without room", i, total);
	}
	b->request.values_capacity = total;
	if (CHECK_STATUS(c, "find-all", do_request(c, s->table, &b->request), GH_OK) &&
		CHECK_U64(c, "values_count of find-all", b->request.values_count, total) &&
		CHECK_U64(c, "first offset", offsets[0], 0) &&
		CHECK_U64(c, "last offset", offsets[b->count], total))
	{
		CHECK_U64(c, "matched of find-all", b->request.matched, present);
		for (i = 0; i < b->count; i++)
		{
			CHECK(c, b->flags[i] == b->entry[i]->present, "find-all: flag %d at %" PRIu64,
				  b->flags[i], i);
			if (CHECK(c, offsets[i] <= offsets[i + 1], "offsets of find-all fall"))
				check_values(s, b->entry[i], out + offsets[i], offsets[i + 1] - offsets[i]);
		}
	}
	free(out);
	free(offsets);
}

bool
do_checked(Subject *s, GhOp op, const uint64_t *keys, const uint64_t *values,
		   uint64_t count)
{
	int			before = s->c->failures;
	Batch		b;

	batch_begin(s, &b, op, keys, values, count);
	if (op == GH_FIND_ALL)
		do_find_all(s, &b);
	else if (CHECK_STATUS(s->c, "operation", do_request(s->c, s->table, &b.request), GH_OK) &&
			 CHECK_U64(s->c, "done", b.request.done, count))
	{
		if (op == GH_FIND)
			check_find(s, &b);
		else if (op == GH_INSERT)
			check_insert(s, &b);
		else if (op == GH_DELETE)
			check_delete(s, &b);
		else if (op == GH_EXCHANGE)
			check_exchange(s, &b);
		else
			check_store(s, &b, op);
	}
	batch_end(&b);
	return s->c->failures == before;
}

bool
check_content(Subject *s)
{
	int			before = s->c->failures;
	Model	   *model = s->model;
	uint64_t   *keys = make_memory(model->count * sizeof(uint64_t));
	GhTableStats stats;
	GhError		error;
	uint64_t	i;

	for (i = 0; i < model->count; i++)
		keys[i] = model->entries[i]->key;
	do_checked(s, GH_FIND, keys, NULL, model->count);
	if (s->kind == KIND_MULTI)
		do_checked(s, GH_FIND_ALL, keys, NULL, model->count);
	free(keys);
	if (CHECK_STATUS(s->c, "stats", s->c->engine->table_stats(s->table, &stats, &error), GH_OK))
	{
		CHECK_U64(s->c, "keys of stats", stats.keys, model->keys);
		CHECK_U64(s->c, "values of stats", stats.values, model->values);
	}
	return s->c->failures == before;
}

/* What must hold of the sizes whatever was done; fills stats. */
bool
check_shape(Context *c, GhTable *table, GhTableStats *stats)
{
	int			before = c->failures;
	GhError		error;
	uint64_t	slots = 0;
	uint64_t	entries = 0;
	uint64_t	smallest = UINT64_MAX;
	uint64_t	largest = 0;
	uint32_t	i;

	if (!CHECK_STATUS(c, "stats", c->engine->table_stats(table, stats, &error), GH_OK))
		return false;
	for (i = 0; i < stats->subtables; i++)
	{
		uint64_t	n = stats->subtable[i].slots;

		slots += n;
		entries += stats->subtable[i].entries;
		smallest = n < smallest ? n : smallest;
		largest = n > largest ? n : largest;
		CHECK(c, stats->subtable[i].entries <= n, "subtable %u holds more than its slots",
			  (unsigned) i);
	}
	CHECK(c, largest <= 2 * smallest, "a subtable of %" PRIu64 " slots beside one of %" PRIu64,
		  largest, smallest);
	/* the key of the empty slot's pattern may live outside the subtables */
	CHECK(c, stats->keys - entries <= 2, "%" PRIu64 " keys but %" PRIu64 " entries",
		  stats->keys, entries);
	CHECK(c, stats->fill >= (double) entries / (double) slots - 1e-9 &&
		  stats->fill <= (double) (entries + 2) / (double) slots + 1e-9,
		  "fill is %g with %" PRIu64 " entries in %" PRIu64 " slots", stats->fill,
		  entries, slots);
	CHECK(c, stats->fill <= stats->fill_max + 2.0 / (double) slots,
		  "fill %g is above fill_max %g", stats->fill, stats->fill_max);
	CHECK(c, stats->bytes_peak >= stats->bytes && stats->bytes > 0,
		  "bytes %" PRIu64 " and peak %" PRIu64, stats->bytes, stats->bytes_peak);
	return c->failures == before;
}
