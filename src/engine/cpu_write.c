/*
 * cpu_write.c
 *		Insert, upsert, exchange and add: the operations that may store a key.
 *
 * Keys are taken in groups whose buckets are located and fetched ahead; within a
 * group they are done one after the other, so that equal keys see each other.  A
 * position is either done in full or not at all.  Where the table must grow the
 * slice ends before the position, and the request goes on there when the resize
 * is complete.
 */
#include "cpu_internal.h"

#include <inttypes.h>

typedef enum Outcome
{
	WROTE_OLD,					/* the key was there */
	WROTE_NEW,					/* the key is new */
	WROTE_FULL,					/* nothing done: fill_max is reached, grow first */
	WROTE_CROWDED,				/* nothing done: no eviction makes room, grow first */
	WROTE_NOTHING				/* nothing done: request->error says why */
} Outcome;

/* What the operation does to the value word of a key that is there. */
static gh_always_inline Outcome
write_value(GhCpuTable *table, GhRequest *request, uint64_t i, uint64_t *word, GhOp op)
{
	switch (op)
	{
		case GH_UPSERT:
			*word = request->values_in[i];
			break;
		case GH_EXCHANGE:
			{
				uint64_t	old = *word;

				*word = request->values_in[i];
				request->values_out[i] = old;
				break;
			}
		case GH_ADD:
			if (gh_cpu_values_append(table, word, request->values_in[i],
									 &request->error) != GH_OK)
				return WROTE_NOTHING;
			table->view.root->values++;
			break;
		default:
			break;
	}
	return WROTE_OLD;
}

/* The value word of a new key. */
static gh_always_inline Outcome
write_first_value(GhCpuTable *table, GhRequest *request, uint64_t i, uint64_t *word, GhOp op)
{
	if (op == GH_ADD)
	{
		if (gh_cpu_values_first(table, word, request->values_in[i],
								&request->error) != GH_OK)
			return WROTE_NOTHING;
	}
	else
		*word = request->values_in[i];
	if (op == GH_EXCHANGE)
		request->values_out[i] = request->absent;
	return WROTE_NEW;
}

/* The key whose pattern marks empty slots lives in the root. */
static __attribute__((noinline)) Outcome
write_empty_key(GhCpuTable *table, GhRequest *request, uint64_t i, GhOp op)
{
	GhCpuRoot  *root = table->view.root;
	Outcome		outcome;

	if (root->has_empty_key)
		return root->options.value_size == 0 ? WROTE_OLD :
			write_value(table, request, i, &root->empty_key_value, op);
	if (root->options.value_size > 0)
	{
		outcome = write_first_value(table, request, i, &root->empty_key_value, op);
		if (outcome == WROTE_NOTHING)
			return outcome;
	}
	root->has_empty_key = true;
	root->keys++;
	root->values++;
	return WROTE_NEW;
}

/* A free slot for a new key: where it is steered, else in its other bucket,
 * else one that an eviction frees.  NULL: none. */
static gh_always_inline uint64_t *
free_slot(GhCpuTable *table, const GhCpuPlace *place, uint32_t slots, int *which)
{
	uint64_t   *slot = gh_cpu_lookup(place, GH_CPU_EMPTY, slots, which);

	if (gh_likely(slot != NULL))
		return slot;
	return gh_cpu_make_room(table, place->bucket, place->subtable, which);
}

static gh_always_inline Outcome
write_one(GhCpuTable *table, GhRequest *request, uint64_t i, const GhCpuPlace *place,
		  GhOp op, uint32_t slots)
{
	GhCpuRoot  *root = table->view.root;
	uint64_t	key = request->keys[i];
	uint64_t   *slot;
	int			which;

	if (gh_unlikely(key == GH_CPU_EMPTY))
		return write_empty_key(table, request, i, op);

	slot = gh_cpu_lookup(place, key, slots, &which);
	if (slot != NULL)
		return slots == GH_CPU_SET_SLOTS ? WROTE_OLD :
			write_value(table, request, i, slot + GH_CPU_MAP_SLOTS, op);

	if (gh_unlikely(root->keys >= table->view.grow_at))
		return WROTE_FULL;
	slot = free_slot(table, place, slots, &which);
	if (gh_unlikely(slot == NULL))
		return WROTE_CROWDED;
	if (slots == GH_CPU_MAP_SLOTS &&
		write_first_value(table, request, i, slot + GH_CPU_MAP_SLOTS, op) == WROTE_NOTHING)
		return WROTE_NOTHING;
	*slot = key;
	root->subtable[place->subtable[which]].entries++;
	root->keys++;
	root->values++;
	return WROTE_NEW;
}

/* Positions from request->done to end; op and slots are constants at each call. */
static gh_always_inline Outcome
write_range(GhCpuTable *table, GhRequest *request, uint64_t end, GhOp op, uint32_t slots)
{
	const GhCpuView *view = &table->view;
	const uint64_t *keys = request->keys;
	uint64_t	i;
	GhCpuPlace	place[GH_CPU_GROUP];

	for (i = request->done; i < end; i += GH_CPU_GROUP)
	{
		uint32_t	group = end - i < GH_CPU_GROUP ? (uint32_t) (end - i) : GH_CPU_GROUP;
		uint32_t	g;

		gh_cpu_locate_to_write(view, keys + i, group, place);
		for (g = 0; g < group; g++)
		{
			Outcome		outcome = write_one(table, request, i + g, &place[g], op, slots);

			if (gh_unlikely(outcome > WROTE_NEW))
			{
				request->done = i + g;
				return outcome;
			}
			if (request->flags_out != NULL)
				request->flags_out[i + g] = outcome == WROTE_NEW;
			request->matched += outcome == WROTE_NEW;
		}
	}
	request->done = end;
	return WROTE_OLD;
}

static Outcome
write_positions(GhCpuTable *table, GhRequest *request, uint64_t end)
{
	/* in a set upsert has nothing to replace */
	if (table->view.slots == GH_CPU_SET_SLOTS)
		return write_range(table, request, end, GH_INSERT, GH_CPU_SET_SLOTS);
	switch (request->op)
	{
		case GH_INSERT:
			return write_range(table, request, end, GH_INSERT, GH_CPU_MAP_SLOTS);
		case GH_UPSERT:
			return write_range(table, request, end, GH_UPSERT, GH_CPU_MAP_SLOTS);
		case GH_EXCHANGE:
			return write_range(table, request, end, GH_EXCHANGE, GH_CPU_MAP_SLOTS);
		default:
			return write_range(table, request, end, GH_ADD, GH_CPU_MAP_SLOTS);
	}
}

/*
 * Could not place a key in a large table that is nearly empty: that takes more
 * keys of equal hash values than two buckets hold, which growing does not cure.
 */
static bool
growth_is_useless(const GhCpuTable *table)
{
	const GhCpuRoot *root = table->view.root;
	uint64_t	slots = gh_cpu_level_slots(&root->options, root->level);

	return slots > 65536 && root->keys < slots / 8;
}

GhStatus
gh_cpu_write_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t	end = request->count;
	GhStatus	status;

	if (end - request->done > GH_CPU_SLICE_KEYS)
		end = request->done + GH_CPU_SLICE_KEYS;

	switch (write_positions(table, request, end))
	{
		case WROTE_CROWDED:
			if (growth_is_useless(table))
				return gh_error_set(&request->error, GH_LIMIT,
									"too many keys share the hash values of key number %" PRIu64
									" of the request", request->done);
			/* FALLTHROUGH */
		case WROTE_FULL:
			status = gh_cpu_upsize_begin(table, &request->error);
			return status == GH_OK ? GH_BUSY : status;
		case WROTE_NOTHING:
			return request->error.status;
		default:
			return end < request->count ? GH_BUSY : GH_OK;
	}
}
