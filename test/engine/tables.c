/*
 * tables.c
 *		Tables of every kind and width beside their models: opening and closing,
 *		keys and values as bytes, and whether content and shape are right.
 */
#include "conformance.h"

const char *const kind_name[KINDS] = {"set", "map", "multi"};

static const uint32_t value_sizes[] = {8, 4, 16, 5, 12, 100, 1024};

#define VALUE_SIZES (sizeof(value_sizes) / sizeof(value_sizes[0]))

/* Patterns that mark empty or deleted slots, lists or locks in some table; of
 * 4-byte keys these are the lower halves. */
const uint64_t special_keys[SPECIALS] = {
	0, UINT64_MAX, UINT64_C(1) << 63, INT64_MAX, 1, 2, UINT64_MAX - 1, UINT64_MAX - 2,
	UINT64_MAX - 3, UINT64_MAX - 4, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX << 32,
	(UINT64_C(1) << 63) + 1, (UINT64_C(1) << 63) | UINT32_MAX, UINT64_C(0x7FFFFFFF),
	UINT64_C(0x80000000), UINT64_C(0xFFFFFFFF80000000), UINT64_C(0x8000000080000000),
	UINT64_C(0x80000001), UINT64_C(0xA5A5A5A5A5A5A5A5), UINT64_C(0xCCCCCCCCCCCCCCCC),
	UINT64_C(0xFFF5000000000000), UINT64_C(0xFFF5010000000000), UINT64_C(0xC0000000C0000000),
	UINT64_C(0xDEADBEEFDEADBEEF), UINT64_C(0x7FF0000000000000), UINT64_C(0xFFFF)
};

bool
type_at(const Context *c, uint32_t i, TableType *type)
{
	/* sets, then maps, then multi tables; widths of either key size */
	static const TableType few[] = {
		{KIND_SET, 8, 0}, {KIND_SET, 4, 0}, {KIND_MAP, 8, 8}, {KIND_MAP, 4, 4},
		{KIND_MAP, 8, 100}, {KIND_MULTI, 8, 8}, {KIND_MULTI, 4, 5}
	};
	uint32_t	half;

	if (c->reduced)
	{
		if (i < sizeof(few) / sizeof(few[0]))
			*type = few[i];
		return i < sizeof(few) / sizeof(few[0]);
	}
	half = i / 2;
	type->key_size = i % 2 == 0 ? 8 : 4;
	type->kind = half == 0 ? KIND_SET : half <= VALUE_SIZES ? KIND_MAP : KIND_MULTI;
	type->value_size = half == 0 ? 0 : value_sizes[(half - 1) % VALUE_SIZES];
	return half <= 2 * VALUE_SIZES;
}

TableType
type_of_kind(Kind kind)
{
	return (TableType) {kind, 8, kind == KIND_SET ? 0 : 8};
}

GhTableOptions
options_of(const Context *c, TableType type)
{
	GhTableOptions options = {.key_size = type.key_size};

	options.value_size = type.value_size;
	options.multi = type.kind == KIND_MULTI;
	options.seed = mix(c->seed);
	return options;
}

/* ------------------------------------------------------------ open and close */

GhStatus
subject_try(Subject *s, Context *c, const GhTableOptions *options)
{
	GhError		error = {0};
	GhStatus	status;

	s->c = c;
	s->kind = options->multi ? KIND_MULTI : options->value_size > 0 ? KIND_MAP : KIND_SET;
	s->key_size = options->key_size;
	s->value_size = options->value_size;
	s->table = NULL;
	s->next_value = 1;
	s->concurrent = options->concurrent_exchange;
	status = c->engine->table_create(&s->host, options, &s->table, &error);
	if (status == GH_OK)
		s->model = model_make(s->kind == KIND_MULTI);
	else
	{
		CHECK(c, error.status == status && error.message[0] != '\0' && s->table == NULL,
			  "a create that failed says nothing, or left a table");
		CHECK_U64(c, "device memory after a failed create", s->state.device_bytes, 0);
	}
	return status;
}

bool
subject_open(Subject *s, Context *c, const GhTableOptions *options)
{
	memset(s, 0, sizeof(*s));
	host_init_locked(&s->state, &s->host);
	return CHECK_STATUS(c, "create", subject_try(s, c, options), GH_OK);
}

bool
subject_open_budget(Subject *s, Context *c, const GhTableOptions *options, Budget *budget)
{
	memset(s, 0, sizeof(*s));
	host_init(&s->state, &s->host);
	s->state.budget = budget;
	return CHECK_STATUS(c, "create", subject_try(s, c, options), GH_OK);
}

bool
subject_open_type(Subject *s, Context *c, TableType type)
{
	GhTableOptions options = options_of(c, type);

	return subject_open(s, c, &options);
}

bool
subject_open_kind(Subject *s, Context *c, Kind kind)
{
	return subject_open_type(s, c, type_of_kind(kind));
}

void
subject_close(Subject *s)
{
	s->c->engine->table_destroy(s->table);
	model_drop(s->model);
	CHECK_U64(s->c, "memory after destroy", s->state.allocated, 0);
	CHECK(s->c, !s->state.damaged, "memory was freed twice");
	CHECK_U64(s->c, "device memory after destroy", s->state.device_bytes, 0);
	CHECK(s->c, !s->state.overdrawn, "more device memory was given back than taken");
	CHECK(s->c, !s->state.lock_misused && s->state.lock_depth == 0, "locks are out of balance");
}

void
subject_clear(Subject *s)
{
	GhError		error = {0};
	GhStatus	status;
	int			tries = 0;

	do
		status = s->c->engine->table_clear(s->table, &error);
	while (subject_again(s, status, ++tries));
	CHECK(s->c, status == GH_OK || s->lost, "clear: %s: %s", gh_status_name(status),
		  error.message);
	model_clear(s->model);
}

bool
subject_again(Subject *s, GhStatus status, int tries)
{
	if (!s->patient)
		return false;
	if (status == GH_DEVICE_ERROR)
		s->lost = true;
	/* where it was to last, the lack of memory is over now */
	if (tries == 2)
		s->state.fail_at = s->state.refuse_at = 0;
	if (status == GH_STOPPED)
		s->state.stop_at_lock = s->state.stop = 0;
	return (status == GH_NO_MEMORY || status == GH_STOPPED ||
			(status == GH_LIMIT && s->state.refused)) && tries < 5;
}

/* ----------------------------------------------------------- keys and values */

uint64_t
key_cut(const Subject *s, uint64_t key)
{
	return s->key_size == 4 ? (uint32_t) key : key;
}

uint64_t
value_cut(const Subject *s, uint64_t token)
{
	if (s->value_size >= 8)
		return token;
	return token & (((uint64_t) 1 << 8 * s->value_size) - 1);
}

/* What a value's k-th eight bytes are. */
static uint64_t
value_word(uint64_t token, uint32_t k)
{
	return token + k * UINT64_C(0x9E3779B97F4A7C15);
}

void
value_write(uint32_t size, uint64_t token, void *to)
{
	uint32_t	at;

	for (at = 0; at < size; at += 8)
	{
		uint64_t	word = value_word(token, at / 8);

		memcpy((char *) to + at, &word, size - at < 8 ? size - at : 8);
	}
}

bool
value_is(uint32_t size, const void *from, uint64_t token)
{
	uint32_t	at;

	for (at = 0; at < size; at += 8)
	{
		uint64_t	word = value_word(token, at / 8);

		if (memcmp((const char *) from + at, &word, size - at < 8 ? size - at : 8) != 0)
			return false;
	}
	return true;
}

bool
value_read(uint32_t size, const void *from, uint64_t *token)
{
	*token = 0;
	memcpy(token, from, size < 8 ? size : 8);
	return value_is(size, from, *token);
}

bool
value_is_absent(uint32_t size, const void *from, uint64_t absent)
{
	uint32_t	at;

	if (memcmp(from, &absent, size < 8 ? size : 8) != 0)
		return false;
	for (at = 8; at < size; at++)
	{
		if (((const char *) from)[at] != 0)
			return false;
	}
	return true;
}

void *
make_values(uint32_t size, const uint64_t *tokens, uint64_t count)
{
	char	   *values = make_memory(count * size);
	uint64_t	i;

	for (i = 0; i < count; i++)
		value_write(size, tokens[i], values + i * size);
	return values;
}

void *
make_keys(uint32_t size, const uint64_t *keys, uint64_t count)
{
	char	   *packed = make_memory(count * size);
	uint64_t	i;

	/* little-endian, as every machine that runs this */
	for (i = 0; i < count; i++)
		memcpy(packed + i * size, &keys[i], size);
	return packed;
}

uint64_t
key_read(uint32_t size, const void *from)
{
	uint64_t	key = 0;

	memcpy(&key, from, size);
	return key;
}

/* ------------------------------------------------------------------- content */

bool
check_content(Subject *s)
{
	int			before = s->c->failures;
	Model	   *model = s->model;
	uint64_t	most = s->value_size > 64 ? (uint64_t) 1 << 13 : (uint64_t) 1 << 17;
	uint64_t   *keys = make_words(most);
	GhTableStats stats;
	GhError		error = {0};
	uint64_t	i = 0;

	if (s->lost)
	{
		free(keys);
		return false;
	}
	do
	{
		uint64_t	n;

		for (n = 0; n < most && i < model->count; n++, i++)
			keys[n] = model_at(model, i)->key;
		do_checked(s, GH_FIND, keys, NULL, n);
		if (s->kind == KIND_MULTI)
			do_checked(s, GH_FIND_ALL, keys, NULL, n);
	} while (i < model->count && s->c->failures == before && !s->lost);
	free(keys);
	if (!s->lost &&
		CHECK_STATUS(s->c, "stats", s->c->engine->table_stats(s->table, &stats, &error), GH_OK))
	{
		CHECK_U64(s->c, "keys of stats", stats.keys, model->keys);
		CHECK_U64(s->c, "values of stats", stats.values, model->values);
		/* device memory is taken to the byte, and only what is on a device */
		if (s->host.take_device != NULL)
			CHECK_U64(s->c, "device memory taken", s->state.device_bytes,
					  s->c->on_host ? 0 : stats.bytes);
		CHECK_U64(s->c, "page-locked memory taken", s->state.host_bytes, stats.bytes_paged);
	}
	return s->c->failures == before;
}

/* One exported entry, held against the model and counted there. */
static bool
check_exported(Subject *s, const char *key_at, const char *value_at)
{
	ModelEntry *entry = model_entry(s->model, key_read(s->key_size, key_at));
	uint64_t	token = 0;

	if (entry->stage != s->model->stage)
	{
		entry->stage = s->model->stage;
		entry->positions = entry->sum = 0;
	}
	entry->positions++;
	if (!CHECK(s->c, entry->positions <= entry->count, "export: key %" PRIx64 " comes %" PRIu64
			   " times and has %" PRIu64 " values", entry->key, entry->positions, entry->count))
		return false;
	if (s->kind == KIND_SET)
		return true;
	if (!CHECK(s->c, value_read(s->value_size, value_at, &token),
			   "export: the value of key %" PRIx64 " is torn", entry->key))
		return false;
	entry->sum += value_sum(token);
	return s->kind == KIND_MULTI ||
		CHECK(s->c, token == entry->value, "export: key %" PRIx64 " has the value %" PRIx64
			  ", expected %" PRIx64, entry->key, token, entry->value);
}

/* Of a multi table all values must be known: after check_content. */
bool
check_export(Subject *s, uint64_t capacity)
{
	int			before = s->c->failures;
	char	   *keys = make_memory(capacity * s->key_size);
	char	   *values = make_memory(capacity * s->value_size);
	GhCursor	cursor = {0};
	GhError		error = {0};
	uint64_t	total = 0;
	uint64_t	empty = 0;
	uint64_t	i;

	s->model->stage++;
	while (!cursor.finished && s->c->failures == before && !s->lost)
	{
		uint64_t	count = UINT64_MAX;
		GhStatus	status;
		int			tries = 0;

		do
			status = s->c->engine->table_export(s->table, &cursor, capacity, keys,
												s->kind == KIND_SET ? NULL : values, &count, &error);
		while (subject_again(s, status, ++tries));
		if (s->lost)
			break;
		if (!CHECK_STATUS(s->c, "export", status, GH_OK) ||
			!CHECK(s->c, count <= capacity, "%" PRIu64 " entries exported, room was for %" PRIu64,
				   count, capacity))
			break;
		for (i = 0; i < count && s->c->failures == before; i++)
			check_exported(s, keys + i * s->key_size, values + i * s->value_size);
		total += count;
		/* an empty stretch of a table may give nothing, but it has an end */
		empty = count == 0 ? empty + 1 : 0;
		CHECK(s->c, empty < 1000000, "an export does not get on");
	}
	if (s->c->failures == before && !s->lost)
		CHECK_U64(s->c, "entries exported", total, s->model->values);
	for (i = 0; i < s->model->count && s->kind == KIND_MULTI && !s->lost; i++)
	{
		const ModelEntry *entry = model_at(s->model, i);

		CHECK(s->c, s->c->failures > before || entry->count == 0 || entry->sum == model_sum(entry),
			  "export: the values of key %" PRIx64 " are wrong", entry->key);
	}
	free(keys);
	free(values);
	return s->c->failures == before;
}

/* --------------------------------------------------------------------- shape */

/* Keys whose bit patterns mean something in slots may live outside the subtables. */
#define KEYS_OUTSIDE 4

uint64_t
slots_of(const GhTableStats *stats)
{
	uint64_t	slots = 0;
	uint32_t	i;

	for (i = 0; i < stats->subtables; i++)
		slots += stats->subtable[i].slots;
	return slots;
}

uint64_t
bytes_when_new(Context *c, const GhTableOptions *options)
{
	GhTableStats stats = {0};
	Subject		s;

	if (subject_open(&s, c, options))
	{
		check_shape(c, s.table, &stats);
		subject_close(&s);
	}
	return stats.bytes;
}

/* What must hold of the sizes whatever was done; fills stats. */
bool
check_shape(Context *c, GhTable *table, GhTableStats *stats)
{
	int			before = c->failures;
	GhError		error = {0};
	uint64_t	slots;
	uint64_t	entries = 0;
	uint64_t	smallest = UINT64_MAX;
	uint64_t	largest = 0;
	uint32_t	i;

	if (!CHECK_STATUS(c, "stats", c->engine->table_stats(table, stats, &error), GH_OK))
		return false;
	slots = slots_of(stats);
	for (i = 0; i < stats->subtables; i++)
	{
		uint64_t	n = stats->subtable[i].slots;

		entries += stats->subtable[i].entries;
		smallest = n < smallest ? n : smallest;
		largest = n > largest ? n : largest;
		CHECK(c, stats->subtable[i].entries <= n, "subtable %u holds more than its slots",
			  (unsigned) i);
	}
	CHECK(c, largest <= 2 * smallest, "a subtable of %" PRIu64 " slots beside one of %" PRIu64,
		  largest, smallest);
	CHECK(c, stats->keys - entries <= KEYS_OUTSIDE, "%" PRIu64 " keys but %" PRIu64 " entries",
		  stats->keys, entries);
	CHECK(c, stats->fill >= (double) entries / (double) slots - 1e-9 &&
		  stats->fill <= (double) (entries + KEYS_OUTSIDE) / (double) slots + 1e-9,
		  "fill is %g with %" PRIu64 " entries in %" PRIu64 " slots", stats->fill,
		  entries, slots);
	CHECK(c, stats->fill <= stats->fill_max + (double) KEYS_OUTSIDE / (double) slots,
		  "fill %g is above fill_max %g", stats->fill, stats->fill_max);
	CHECK(c, stats->bytes_peak >= stats->bytes && stats->bytes > 0,
		  "bytes %" PRIu64 " and peak %" PRIu64, stats->bytes, stats->bytes_peak);
	return c->failures == before;
}
