/*
 * forge.c
 *		Requests that no client of ours would make.
 *
 * gpuhash_forge_hold makes a table and a buffer of this session with known content;
 * gpuhash_forge_request, of this or another session, submits a request that must be
 * refused, past all checks of client.c; gpuhash_forge_held tells whether what was held
 * is still as it was.
 */
#include "postgres.h"

#include "access/relation.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "gpuhash.h"
#include "service/client.h"
#include "service/placement.h"
#include "service/shared.h"

#include "forge.h"
#include "gpuhash_test.h"

PG_FUNCTION_INFO_V1(gpuhash_forge_hold);
PG_FUNCTION_INFO_V1(gpuhash_forge_held);
PG_FUNCTION_INFO_V1(gpuhash_forge_request);

/* Keys of a table that is held: 1 to this number, the value of k is 10 * k. */
#define HELD_KEYS 1000

/* A refusal comes at once; a request that was dropped never does. */
#define ANSWER_SECONDS 2

/* What the buffer that is held is full of. */
#define PATTERN 0x5a

static GhTable *held_table = NULL;
static char *held_buffer = NULL;	/* full of the pattern */
static char *work_buffer = NULL;

/* --------------------------------------------------------- what is held */

static void
run(GhRequest *request)
{
	if (gh_run_request(held_table, request) != GH_OK)
		gh_report_error(&request->error, "use the table of the test");
}

/* gpuhash_forge_hold(): "slot table generation", the slot being that of the buffer. */
Datum
gpuhash_forge_hold(PG_FUNCTION_ARGS)
{
	const GhEngine *engine = gh_service_engine();
	GhTableOptions options;
	GhHost		host;
	GhError		error;
	GhRequest	request = {0};
	void	   *buffers[2];
	uint64	   *arrays;
	uint32		slot;
	GhRef		root;

	gh_test_needs_service();
	if (held_table != NULL)
		elog(ERROR, "this session holds a table already");
	gh_options_init(&options, engine);
	options.capacity = HELD_KEYS;
	gh_host_init(&host, TopMemoryContext);
	host.ctx = NULL;
	if (gh_create_table(engine, &host, &options, &held_table, &error) != GH_OK)
		gh_report_error(&error, "make the table of the test");
	if (!gh_buffers_alloc(engine, 2, GH_UNIT_BYTES, buffers))
		elog(ERROR, "no buffers are free");
	held_buffer = buffers[0];
	work_buffer = buffers[1];
	memset(held_buffer, PATTERN, GH_UNIT_BYTES);
	arrays = buffers[1];
	for (uint64 i = 0; i < HELD_KEYS; i++)
	{
		arrays[i] = i + 1;
		arrays[HELD_KEYS + i] = 10 * (i + 1);
	}
	request.op = GH_INSERT;
	request.count = HELD_KEYS;
	request.keys = arrays;
	request.values_in = arrays + HELD_KEYS;
	run(&request);
	if (!gh_buffer_slot(held_buffer, &slot))
		elog(ERROR, "the buffer has no slot");
	root = engine->table_root(held_table) - 1;
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%u %llu %llu", slot,
											  (unsigned long long) (root % GH_TABLES_MAX),
											  (unsigned long long) (root / GH_TABLES_MAX))));
}

/* gpuhash_forge_held(): "intact", or what is not. */
Datum
gpuhash_forge_held(PG_FUNCTION_ARGS)
{
	GhRequest	request = {0};
	uint64	   *arrays = (uint64 *) work_buffer;

	gh_test_needs_service();
	if (held_table == NULL)
		elog(ERROR, "this session holds no table");
	for (Size i = 0; i < GH_UNIT_BYTES; i++)
		if (held_buffer[i] != PATTERN)
			PG_RETURN_TEXT_P(cstring_to_text(psprintf("byte %zu of the buffer has changed", i)));
	for (uint64 i = 0; i < HELD_KEYS + 1; i++)
		arrays[i] = i + 1;
	request.op = GH_FIND;
	request.count = HELD_KEYS + 1;
	request.keys = arrays;
	request.values_out = arrays + HELD_KEYS + 1;
	run(&request);
	for (uint64 i = 0; i < HELD_KEYS + 1; i++)
		if (arrays[HELD_KEYS + 1 + i] != (i == HELD_KEYS ? 0 : 10 * (i + 1)))
			PG_RETURN_TEXT_P(cstring_to_text(psprintf("the value of key %d has changed", (int) i + 1)));
	PG_RETURN_TEXT_P(cstring_to_text("intact"));
}

/* --------------------------------------------------------------- forging */

/* A find of 100 keys as a client would ask for it. */
static void
fill_honest(GhSlot *slot, uint32 table, uint64 generation)
{
	char	   *buffer = gh_buffer_at((uint32) (slot - gh_slot_at(0)));

	slot->device = gh_table_entry_at(table % GH_TABLES_MAX)->device;
	slot->keys_wanted = 0;
	slot->op = GH_SERVICE_RUN;
	slot->table = table;
	slot->table_generation = generation;
	memset(&slot->request, 0, sizeof(slot->request));
	slot->request.op = GH_FIND;
	slot->count = slot->request.count = 100;
	slot->request.keys = buffer;
	slot->request.values_out = buffer + 4096;
}

/* An array of the request by its name, whose field has an address; NULL: there is none. */
static void *
array_of(GhSlot *slot, const char *name)
{
	const struct
	{
		const char *name;
		void	   *field;
	}			arrays[] = {
		{"keys", &slot->request.keys},
		{"values_in", &slot->request.values_in},
		{"ops", &slot->request.ops},
		{"values_out", &slot->request.values_out},
		{"flags_out", &slot->request.flags_out},
		{"counts_out", &slot->request.counts_out},
		{"offsets_out", &slot->request.offsets_out},
		{"block", &slot->block},
		{"pages", &slot->brought.pages},
		{"bitmaps", &slot->brought.bitmaps},
		{"back", &slot->brought.back},
		{"given", &slot->brought.given},
		{"vectors", &slot->brought.vectors}
	};

	for (int i = 0; i < (int) lengthof(arrays); i++)
		if (strcmp(arrays[i].name, name) == 0)
			return arrays[i].field;
	return NULL;
}

/* A number of 64 bits by its name; NULL: there is none. */
static uint64 *
word_of(GhSlot *slot, const char *name)
{
	const struct
	{
		const char *name;
		uint64	   *field;
	}			words[] = {
		{"named", &slot->named},
		{"brought.first", &slot->brought.first},
		{"brought.count", &slot->brought.count},
		{"brought.nbitmaps", &slot->brought.nbitmaps},
		{"brought.back_room", &slot->brought.back_room},
		{"cursor", &slot->cursor.position}
	};

	for (int i = 0; i < (int) lengthof(words); i++)
		if (strcmp(words[i].name, name) == 0)
			return words[i].field;
	return NULL;
}

/* The address at an offset of the slot's buffer; all bits: NULL. */
static void
forge_array(GhSlot *slot, void *field, uint64 offset)
{
	uintptr_t	buffer = (uintptr_t) gh_buffer_at((uint32) (slot - gh_slot_at(0)));

	*(uintptr_t *) field = offset == PG_UINT64_MAX ? 0 : buffer + offset;
}

/* Of the first page of the list at the begin of the slot's buffer; false: there is no such field. */
static bool
forge_page_field(GhSlot *slot, const char *name, uint64 value)
{
	GhPageRef  *page = (GhPageRef *) gh_buffer_at((uint32) (slot - gh_slot_at(0)));

	if (strcmp(name, "page.span") == 0)
		page->span = (uint32) value;
	else if (strcmp(name, "page.place") == 0)
		page->place = (uint32) value;
	else if (strcmp(name, "page.lines") == 0)
		page->lines = (uint32) value;
	else
		return false;
	return true;
}

/* Another number field by its name. */
static void
forge_field(GhSlot *slot, const char *name, uint64 value)
{
	if (array_of(slot, name) != NULL)
		forge_array(slot, array_of(slot, name), value);
	else if (word_of(slot, name) != NULL)
		*word_of(slot, name) = value;
	else if (forge_page_field(slot, name, value))
		return;
	else if (strcmp(name, "span") == 0)
		slot->spans[0] = value;
	else if (strcmp(name, "brought.nspans") == 0)
		slot->brought.nspans = (uint32) value;
	else if (strcmp(name, "count") == 0)
		slot->count = slot->request.count = value;
	else if (strcmp(name, "done") == 0)
		slot->request.outcome.done = value;
	else if (strcmp(name, "on_device") == 0)
		slot->request.on_device = value != 0;
	else if (strcmp(name, "units") == 0)
		slot->units = (uint32) value;
	else if (strcmp(name, "brought.kind") == 0)
		slot->brought.kind = (uint32) value;
	else if (strcmp(name, "brought.step") == 0)
		slot->brought.step = (uint32) value;
	else if (strcmp(name, "brought.ngiven") == 0)
		slot->brought.ngiven = (uint32) value;
	else if (strcmp(name, "brought.npages") == 0)
		slot->brought.npages = (uint32) value;
	else if (strcmp(name, "op") == 0)
		slot->op = (GhServiceOp) value;
	else if (strcmp(name, "run_op") == 0)
		slot->request.op = (GhOp) value;
	else if (strcmp(name, "values_capacity") == 0)
		slot->request.values_capacity = value;
	else if (strcmp(name, "table") == 0)
		slot->table = (uint32) value;
	else if (strcmp(name, "table_generation") == 0)
		slot->table_generation = value;
	else if (strcmp(name, "device") == 0)
		slot->device = (uint32) value;
	else if (strcmp(name, "keys_wanted") == 0)
		slot->keys_wanted = value;
	else
		elog(ERROR, "a request has no field \"%s\"", name);
}

void
gh_forge_fields(GhSlot *slot, char *fields)
{
	char	   *rest = fields;
	char	   *word;

	while ((word = strsep(&rest, " ")) != NULL)
	{
		char	   *number = strchr(word, '=');

		if (number == NULL)
			continue;
		*number++ = '\0';
		forge_field(slot, word, strtoull(number, NULL, 10));
	}
}

/* Past client.c: into the ring of the executor that the table belongs to. */
static void
append_forged(uint32 number, uint64 generation, uint32 device, uint32 appended)
{
	GhRing	   *ring = &gh_service->device[device].ring[gh_slot_at(number)->table % GH_EXECUTORS];
	int			procno = gh_service->device[device].procno;

	gh_ring_append(ring, appended, generation);
	pg_memory_barrier();
	if (procno >= 0)
		SetLatch(&ProcGlobal->allProcs[procno].procLatch);
}

static void
submit_forged(uint32 number, uint32 device, uint32 appended)
{
	GhSlot	   *slot = gh_slot_at(number);

	slot->instance = pg_atomic_read_u64(&gh_service->device[device].instance);
	slot->submitted_ns = gh_monotonic_ns();
	pg_atomic_write_u64(&slot->started_ns, 0);
	pg_atomic_write_u32(&slot->sleeping, 0);
	pg_memory_barrier();
	append_forged(number, gh_slot_submit(number), device, appended);
}

static bool
await_forged(const GhSlot *slot)
{
	uint64		end = gh_monotonic_ns() + ANSWER_SECONDS * UINT64CONST(1000000000);

	while (gh_slot_state(pg_atomic_read_u64((pg_atomic_uint64 *) &slot->word)) != GH_SLOT_DONE)
	{
		if (gh_monotonic_ns() > end)
			return false;
		pg_usleep(1000);
	}
	pg_read_barrier();
	return true;
}

bool
gh_forge_submit(uint32 number, uint32 device, uint32 appended)
{
	GhSlot	   *slot = gh_slot_at(number);
	uint32		units = 0;
	bool		answered;

	while (number + units < gh_service->units && pg_atomic_read_u32(gh_unit_at(number + units)) == gh_unit_of(number))
		units++;
	submit_forged(number, device, appended);
	answered = await_forged(slot);
	slot->units = units;
	slot->device = device;
	/* so that the slot comes back */
	if (!answered)
	{
		append_forged(number, gh_slot_generation(pg_atomic_read_u64(&slot->word)), device, number);
		(void) await_forged(slot);
	}
	return answered;
}

static const char *
answer_of(const GhSlot *slot)
{
	if (slot->status != GH_OK)
		return psprintf("refused: %s", slot->error.message);
	return psprintf("done, %llu found", (unsigned long long) slot->request.outcome.matched);
}

/*
 * gpuhash_forge_request(table int, generation bigint, fields text, appended int): a
 * find of 100 keys in that table with some fields changed; appended is the slot whose
 * number goes into the ring in place of its own, -1: its own.
 */
Datum
gpuhash_forge_request(PG_FUNCTION_ARGS)
{
	int32		appended = PG_GETARG_INT32(3);
	const char *answer = "not answered";
	void	   *buffer;
	uint32		number;
	uint32		device;
	GhSlot	   *slot;

	gh_test_needs_service();
	if (!gh_service_reserve(1, GH_UNIT_BYTES, &buffer) || !gh_buffer_slot(buffer, &number))
		elog(ERROR, "no buffer is free");
	slot = gh_slot_at(number);
	for (uint64 i = 0; i < 100; i++)
		((uint64 *) buffer)[i] = i + 1;
	fill_honest(slot, (uint32) PG_GETARG_INT32(0), (uint64) PG_GETARG_INT64(1));
	device = slot->device;
	gh_forge_fields(slot, text_to_cstring(PG_GETARG_TEXT_PP(2)));
	if (gh_forge_submit(number, device, appended < 0 ? number : (uint32) appended))
		answer = answer_of(slot);
	gh_service_return(buffer);
	PG_RETURN_TEXT_P(cstring_to_text(answer));
}

/* ------------------------------------------------------------ pages and blocks */

void
gh_forge_copy_page(Oid relid, void *to)
{
	Relation	relation = relation_open(relid, AccessShareLock);
	Buffer		buffer = ReadBuffer(relation, 0);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(to, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	relation_close(relation, AccessShareLock);
}

const char *
gh_forge_address(const char *name, const char *buffer)
{
	if (strcmp(name, "own") == 0)
		return buffer + GH_FORGE_PAGE_AT;
	if (strcmp(name, "area") == 0)
		return gh_buffer_at(0);
	if (strcmp(name, "area end") == 0)
		return gh_buffer_at(gh_service->units);
	if (strcmp(name, "pool") == 0)
		return BufferBlocks;
	if (strcmp(name, "pool end") == 0)
		return BufferBlocks + (Size) NBuffers * BLCKSZ;
	if (strcmp(name, "service") == 0)
		return (const char *) gh_service;
	if (strcmp(name, "null") == 0)
		return NULL;
	return gh_buffer_at((uint32) atoi(name));
}

void
gh_forge_damage(char *block, Size bytes, pg_prng_state *random)
{
	static const uint64 values[] = {0, 1, 2, 7, 64, 255, 4096, 65535, PG_UINT32_MAX, PG_UINT64_MAX,
	UINT64CONST(1) << 31, UINT64CONST(1) << 63, PG_UINT64_MAX - 15};
	static const Size sizes[] = {1, 2, 4, 8};

	for (uint64 n = pg_prng_uint64_range(random, 0, 3); n > 0; n--)
	{
		Size		size = sizes[pg_prng_uint64_range(random, 0, lengthof(sizes) - 1)];
		Size		at = pg_prng_uint64_range(random, 0, bytes / size - 1) * size;
		uint64		value = values[pg_prng_uint64_range(random, 0, lengthof(values) - 1)];

		if (pg_prng_uint64_range(random, 0, 2) == 0)
			value = pg_prng_uint64_range(random, 0, bytes);
		memcpy(block + at, &value, size);
	}
}
