/*
 * requests.c
 *		Operations on a named table, as requests to its engines.
 *
 * A named table is one engine's table (main) and, when main is on a device and
 * the table keeps a host copy, a CPU twin (copy) that receives the same
 * modifications.  Wide values have slots in the table's value store.  All of
 * them must agree after every call, and a call can end anywhere: on cancel, out
 * of memory, at a limit.  So a modification goes chunk by chunk through
 * GhStage, which outlives the call:
 *
 *	1. MAIN	  main does the chunk's request.  Of a request cut short, done tells
 *			  how many positions were done in full.
 *	2. COPY	  the copy does these positions.
 *	3. SLOTS  slots that the chunk replaced, removed or never came to use are
 *			  freed.
 *	4. IDLE
 *
 * To clear the table is one step, CLEAR, before IDLE: main, the store of values
 * and the copy are emptied, from the start again when it was cut short.
 *
 * Whatever throws leaves the phase where it is, and the next call on the table
 * goes on from there (settle) before it does anything else.
 *
 * When a request on main says that the device failed, the copy becomes main
 * and does the chunk again from its start: up to then it had every chunk before
 * and nothing of this one.  Without a copy the table is lost.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "compat.h"
#include "gpuhash.h"
#include "session.h"
#include "table/table.h"

/* Keys of a chunk that is modified, in growing arrays of at least the first. */
#define GH_STAGE_KEYS_MIN 64
#define GH_STAGE_KEYS_MAX 65536
/* ... when values are wide: a slot for each is taken beforehand. */
#define GH_WIDE_KEYS_MAX 8192
/* Keys of a chunk that is read. */
#define GH_FIND_KEYS_MAX (1024 * 1024)
/* Keys of a chunk of value lists; values, unless one key has more. */
#define GH_LIST_KEYS_MAX 8192
#define GH_LIST_VALUES_MAX (1024 * 1024)

/* The keys of a chunk, each with its last position. */
typedef struct GhPosition
{
	uint64		key;
	uint32		position;
	char		status;
} GhPosition;

#define SH_PREFIX positions
#define SH_ELEMENT_TYPE GhPosition
#define SH_KEY_TYPE uint64
#define SH_KEY key
#define SH_HASH_KEY(tb, key) hash_bytes((const unsigned char *) &(key), sizeof(uint64))
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* -------------------------------------------------------------- failures */

/*
 * The device failed under main: the copy takes over, or the table is lost.  The
 * copy must have done all that main did.  Does not throw.
 */
static void
drop_main(GhNamedTable *table)
{
	GhTable    *lost = table->main;

	table->main = table->copy;
	table->copy = NULL;
	table->reason = "the GPU failed";
	lost->engine->table_destroy(lost);
	if (table->main == NULL)
	{
		table->stage.phase = GH_STAGE_IDLE;
		if (gh_table_is_wide(table))
			gh_values_reset(table->store);
	}
}

/* Likewise.  Returns if the request is to be done again, else throws. */
static void
leave_device(GhNamedTable *table, const GhError *error)
{
	drop_main(table);
	if (table->main == NULL)
		gh_table_report_lost(table);
	if (gh_fallback_setting == GH_FALLBACK_ERROR)
		gh_report_error(error, psprintf("use hash table \"%s\" on the GPU", table->name));
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("hash table \"%s\" continues on the CPU engine", table->name),
			 errdetail("The GPU failed: %s.", error->message)));
}

/* A request that changes nothing.  Returns GH_OK or GH_TOO_SMALL. */
static GhStatus
run_read(GhNamedTable *table, GhRequest *request)
{
	GhRequest	fresh = *request;
	GhStatus	status;

	for (;;)
	{
		*request = fresh;
		status = gh_run_request(table->main, request);
		if (status == GH_OK || status == GH_TOO_SMALL)
			return status;
		if (status != GH_DEVICE_ERROR)
			gh_table_report(table, table->main->engine, &request->error, "read");
		leave_device(table, &request->error);
	}
}

/* ------------------------------------------------------------ value lists */

static void
free_lists(GhValueLists *lists)
{
	if (lists->offsets != NULL)
		pfree(lists->offsets);
	if (lists->values != NULL)
		pfree(lists->values);
	lists->offsets = NULL;
	lists->values = NULL;
	lists->keys_capacity = 0;
	lists->values_capacity = 0;
}

/* Makes room in lists for keys and values; what is in there is gone. */
static void
reserve_lists(GhValueLists *lists, uint64 keys, uint64 values)
{
	if (keys > lists->keys_capacity)
	{
		if (lists->offsets != NULL)
			pfree(lists->offsets);
		lists->offsets = NULL;
		lists->keys_capacity = 0;
		lists->offsets = MemoryContextAlloc(lists->context, (keys + 1) * sizeof(uint64));
		lists->keys_capacity = keys;
	}
	if (values > lists->values_capacity)
	{
		if (lists->values != NULL)
			pfree(lists->values);
		lists->values = NULL;
		lists->values_capacity = 0;
		lists->values = MemoryContextAllocHuge(lists->context, values * sizeof(uint64));
		lists->values_capacity = values;
	}
}

/* --------------------------------------------------- modification by chunks */

/* Slots of deleted keys: which ones a key had stands in lists or values_out. */
static void
free_removed_slots(GhNamedTable *table, uint64 position)
{
	GhStage    *stage = &table->stage;

	if (!stage->flags[position])
		return;
	if (!table->multi)
	{
		gh_values_free(table->store, stage->values_out[position]);
		return;
	}
	for (uint64 i = stage->lists.offsets[position]; i < stage->lists.offsets[position + 1]; i++)
		gh_values_free(table->store, stage->lists.values[i]);
}

static void
free_unused_slots(GhNamedTable *table)
{
	GhStage    *stage = &table->stage;
	GhRequest  *request = &stage->request;

	for (uint64 i = 0; i < request->count; i++)
	{
		if (request->op == GH_DELETE)
		{
			if (i < request->done)
				free_removed_slots(table, i);
		}
		else if (i >= request->done)
			gh_values_free(table->store, stage->values_in[i]);
		else if (request->op == GH_EXCHANGE && stage->values_out[i] != GH_NO_SLOT)
			gh_values_free(table->store, stage->values_out[i]);
	}
}

static GhStatus
clear_engine_table(GhTable *engine_table, GhError *error)
{
	for (;;)
	{
		GhStatus	status = engine_table->engine->table_clear(engine_table, error);

		if (status != GH_STOPPED)
			return status;
		gh_serve_interrupt();
	}
}

/*
 * Empties all of the table, which may be empty in part from a call cut short.  A
 * copy, empty or not, takes over from a main that fails; without one the engine's
 * table is made anew, as a lost one is.
 */
static void
clear_table(GhNamedTable *table)
{
	GhError		error = {0};
	GhStatus	status = GH_DEVICE_ERROR;

	while (table->main != NULL)
	{
		status = clear_engine_table(table->main, &error);
		if (status != GH_DEVICE_ERROR || table->copy == NULL)
			break;
		leave_device(table, &error);
	}
	if (status == GH_DEVICE_ERROR)
		gh_table_open_engines(table);
	else if (status != GH_OK)
		gh_table_report(table, table->main->engine, &error, "clear");

	if (gh_table_is_wide(table))
		gh_values_reset(table->store);
	if (table->copy != NULL && clear_engine_table(table->copy, &error) != GH_OK)
		gh_table_report(table, table->copy->engine, &error, "clear the host copy of");
}

/* What is left of the modification in the stage, from where it is. */
static void
settle(GhNamedTable *table)
{
	GhStage    *stage = &table->stage;
	GhStatus	status = GH_OK;

	if (stage->phase == GH_STAGE_MAIN)
	{
		stage->copy_request = stage->request;
		stage->copy_request.count = stage->request.done;
		stage->copy_request.done = 0;
		stage->copy_request.inserted = 0;
		stage->copy_request.replaced = 0;
		stage->copy_request.removed = 0;
		stage->copy_request.values_count = 0;
		stage->copy_request.flags_out = NULL;
		if (stage->request.op == GH_EXCHANGE)
			stage->copy_request.values_out = stage->copy_out;
		stage->phase = GH_STAGE_COPY;
	}
	if (stage->phase == GH_STAGE_COPY)
	{
		if (table->copy != NULL && stage->copy_request.count > 0)
			status = gh_run_request(table->copy, &stage->copy_request);
		if (status != GH_OK)
			gh_table_report(table, table->copy->engine, &stage->copy_request.error,
							"keep the host copy of");
		stage->phase = GH_STAGE_SLOTS;
	}
	if (stage->phase == GH_STAGE_SLOTS)
	{
		if (gh_table_is_wide(table))
			free_unused_slots(table);
		stage->phase = GH_STAGE_IDLE;
	}
	if (stage->phase == GH_STAGE_CLEAR)
	{
		clear_table(table);
		stage->phase = GH_STAGE_IDLE;
	}
}

/* Makes room for count keys.  What is in the stage is gone then. */
static void
reserve_stage(GhNamedTable *table, uint64 count)
{
	GhStage    *stage = &table->stage;
	uint64		capacity = Max(stage->capacity, GH_STAGE_KEYS_MIN);
	uint64	   *block;

	if (count <= stage->capacity)
		return;
	while (capacity < count)
		capacity *= 2;
	block = MemoryContextAlloc(table->context,
							   capacity * (4 * sizeof(uint64) + sizeof(uint8)));
	if (stage->keys != NULL)
		pfree(stage->keys);
	stage->capacity = capacity;
	stage->keys = block;
	stage->values_in = block + capacity;
	stage->values_out = block + 2 * capacity;
	stage->copy_out = block + 3 * capacity;
	stage->flags = (uint8 *) (block + 4 * capacity);
}

/*
 * Does what is in the stage's arrays: op on the first count keys.  Returns the
 * request's matched; *removed, if wanted, the values removed.
 */
static uint64
run_stage(GhNamedTable *table, GhOp op, uint64 count, uint64 *removed)
{
	GhStage    *stage = &table->stage;
	GhRequest  *request = &stage->request;
	GhStatus	status;

	Assert(stage->phase == GH_STAGE_IDLE);
	for (;;)
	{
		memset(request, 0, sizeof(*request));
		request->op = op;
		request->count = count;
		request->keys = stage->keys;
		if (op != GH_DELETE && table->value_size > 0)
			request->values_in = stage->values_in;
		if (op == GH_EXCHANGE)
			request->values_out = stage->values_out;
		request->absent = GH_NO_SLOT;
		request->flags_out = stage->flags;
		stage->phase = GH_STAGE_MAIN;

		status = gh_run_request(table->main, request);
		if (status != GH_DEVICE_ERROR)
			break;
		/* nothing of it counts, whether or not leave_device returns */
		request->done = 0;
		leave_device(table, &request->error);
	}
	settle(table);
	if (status != GH_OK)
		gh_table_report(table, table->main->engine, &request->error,
						op == GH_DELETE ? "delete from" : "insert into");
	if (removed != NULL)
		*removed = request->values_count;
	return op == GH_DELETE ? request->removed : request->inserted;
}

uint64
gh_put(GhNamedTable *table, const uint64 *keys, const uint64 *values, uint64 count)
{
	GhOp		op = table->multi ? GH_ADD : values != NULL ? GH_UPSERT : GH_INSERT;
	uint64		new_keys = 0;

	Assert(!gh_table_is_wide(table));
	settle(table);
	for (uint64 done = 0; done < count;)
	{
		uint64		chunk = Min(count - done, GH_STAGE_KEYS_MAX);

		reserve_stage(table, chunk);
		memcpy(table->stage.keys, keys + done, chunk * sizeof(uint64));
		if (values != NULL)
			memcpy(table->stage.values_in, values + done, chunk * sizeof(uint64));
		new_keys += run_stage(table, op, chunk, NULL);
		done += chunk;
	}
	return new_keys;
}

/* ---------------------------------------------------------------- wide values */

/*
 * Fills the stage with keys and with slots that hold their values; last, if
 * not NULL, tells the only position of a key that counts.  Returns the number
 * of keys.
 */
static uint64
stage_wide_values(GhNamedTable *table, const uint64 *keys, const char *bytes,
				  uint64 count, positions_hash *last)
{
	GhStage    *stage = &table->stage;
	uint64		staged = 0;

	reserve_stage(table, count);
	for (uint64 i = 0; i < count; i++)
	{
		uint64		slot;

		if (last != NULL && positions_lookup(last, keys[i])->position != i)
			continue;
		slot = gh_values_alloc(table->store);
		if (slot == GH_NO_SLOT)
		{
			while (staged > 0)
				gh_values_free(table->store, stage->values_in[--staged]);
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory for the values of hash table \"%s\"", table->name),
					 errhint("Drop hash tables that are no longer needed.")));
		}
		memcpy(gh_values_at(table->store, slot), bytes + i * table->value_size,
			   table->value_size);
		stage->keys[staged] = keys[i];
		stage->values_in[staged++] = slot;
	}
	return staged;
}

/*
 * The engines replace a key's slot by a new one and tell the old, which is then
 * freed.  They do equal keys of a batch in any order, so that only the last of
 * them goes there.
 */
static uint64
put_wide_chunk(GhNamedTable *table, const uint64 *keys, const char *bytes, uint64 count)
{
	positions_hash *last = NULL;
	uint64		staged;

	if (!table->multi)
	{
		last = positions_create(CurrentMemoryContext, count, NULL);
		for (uint64 i = 0; i < count; i++)
		{
			bool		found;

			positions_insert(last, keys[i], &found)->position = i;
		}
	}
	staged = stage_wide_values(table, keys, bytes, count, last);
	if (last != NULL)
		positions_destroy(last);
	return run_stage(table, table->multi ? GH_ADD : GH_EXCHANGE, staged, NULL);
}

uint64
gh_put_bytes(GhNamedTable *table, const uint64 *keys, const char *bytes, uint64 count)
{
	uint64		new_keys = 0;
	uint64	   *values = NULL;

	settle(table);
	if (!gh_table_is_wide(table))
		values = palloc(Min(count, GH_STAGE_KEYS_MAX) * sizeof(uint64));
	for (uint64 done = 0; done < count;)
	{
		uint64		chunk = Min(count - done,
								gh_table_is_wide(table) ? GH_WIDE_KEYS_MAX : GH_STAGE_KEYS_MAX);
		const char *first = bytes + done * table->value_size;

		if (gh_table_is_wide(table))
			new_keys += put_wide_chunk(table, keys + done, first, chunk);
		else
		{
			for (uint64 i = 0; i < chunk; i++)
				values[i] = gh_value_pack(first + i * table->value_size, table->value_size);
			new_keys += gh_put(table, keys + done, values, chunk);
		}
		done += chunk;
	}
	return new_keys;
}

/* ---------------------------------------------------------------- removal */

/*
 * Notes the slots of the keys about to leave.  Returns for how many of the keys,
 * in the stage already, there was room.
 */
static uint64
find_slots_to_free(GhNamedTable *table, uint64 count)
{
	GhStage    *stage = &table->stage;
	GhRequest	request = {0};

	if (table->multi)
		return gh_find_lists(table, stage->keys, count, &stage->lists);
	request.op = GH_FIND;
	request.count = count;
	request.keys = stage->keys;
	request.values_out = stage->values_out;
	request.absent = GH_NO_SLOT;
	run_read(table, &request);
	return count;
}

uint64
gh_remove(GhNamedTable *table, const uint64 *keys, uint64 count)
{
	uint64		total = 0;

	settle(table);
	for (uint64 done = 0; done < count;)
	{
		uint64		chunk = Min(count - done, GH_STAGE_KEYS_MAX);
		uint64		matched;
		uint64		removed;

		reserve_stage(table, chunk);
		memcpy(table->stage.keys, keys + done, chunk * sizeof(uint64));
		if (gh_table_is_wide(table))
			chunk = find_slots_to_free(table, chunk);
		matched = run_stage(table, GH_DELETE, chunk, &removed);
		total += table->multi ? removed : matched;
		done += chunk;
	}
	if (table->stage.lists.values_capacity > GH_LIST_VALUES_MAX)
		free_lists(&table->stage.lists);
	return total;
}

void
gh_remove_all(GhNamedTable *table)
{
	/* what an interrupted chunk left to do has no meaning any more */
	table->stage.phase = GH_STAGE_CLEAR;
	settle(table);
}

/* ---------------------------------------------------------------- look-up */

void
gh_find(GhNamedTable *table, const uint64 *keys, uint64 count, uint64 *values,
		uint8 *found)
{
	settle(table);
	for (uint64 done = 0; done < count;)
	{
		GhRequest	request = {0};

		request.op = GH_FIND;
		request.count = Min(count - done, GH_FIND_KEYS_MAX);
		request.keys = keys + done;
		request.values_out = values == NULL ? NULL : values + done;
		request.flags_out = found + done;
		run_read(table, &request);
		done += request.count;
	}
}

/* A table of single values, told as lists of one or none. */
static uint64
find_single_lists(GhNamedTable *table, const uint64 *keys, uint64 count,
				  GhValueLists *lists)
{
	uint8	   *found = palloc(count);
	uint64		n = 0;

	reserve_lists(lists, count, count);
	gh_find(table, keys, count, lists->values, found);
	for (uint64 i = 0; i < count; i++)
	{
		lists->offsets[i] = n;
		if (found[i])
			lists->values[n++] = lists->values[i];
	}
	lists->offsets[count] = n;
	pfree(found);
	return count;
}

uint64
gh_find_lists(GhNamedTable *table, const uint64 *keys, uint64 count, GhValueLists *lists)
{
	GhRequest	request = {0};

	settle(table);
	count = Min(count, GH_LIST_KEYS_MAX);
	if (!table->multi)
		return find_single_lists(table, keys, count, lists);

	reserve_lists(lists, count, 2 * count);
	for (;;)
	{
		memset(&request, 0, sizeof(request));
		request.op = GH_FIND_ALL;
		request.count = count;
		request.keys = keys;
		request.values_out = lists->values;
		request.values_capacity = lists->values_capacity;
		request.offsets_out = lists->offsets;
		if (run_read(table, &request) == GH_OK)
			return count;

		/* too small, but the offsets are right: take the keys that fit the bound */
		while (count > 1 && lists->offsets[count] > GH_LIST_VALUES_MAX)
			count--;
		reserve_lists(lists, count, lists->offsets[count]);
	}
}

bool
gh_read_stats(GhNamedTable *table, GhTableStats *stats, GhError *error)
{
	GhStatus	status;

	if (table->main == NULL)
		return false;
	settle(table);
	do
	{
		memset(stats, 0, sizeof(*stats));
		status = table->main->engine->table_stats(table->main, stats, error);
		if (status == GH_DEVICE_ERROR)
			drop_main(table);
	} while (status == GH_DEVICE_ERROR && table->main != NULL);
	return status == GH_OK;
}
