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
#include "engine/table/cpu_internal.h"

#include <inttypes.h>

/* The value that position i stores. */
static gh_always_inline const char *
value_in(const GhCpuView *view, const GhRequest *request, uint64_t i, uint32_t bytes, GhOp op)
{
	return (const char *) request->values_in + i * (op == GH_ADD ? view->value_size : bytes);
}

/* What the operation does to the value of a key that is there. */
static gh_always_inline GhCpuOutcome
write_value(GhCpuTable *table, GhRequest *request, uint64_t i, char *value, uint32_t bytes,
			GhOp op)
{
	const char *in = value_in(&table->view, request, i, bytes, op);

	switch (op)
	{
		case GH_UPSERT:
			gh_cpu_copy(value, in, bytes);
			return GH_CPU_WROTE_OVER;
		case GH_EXCHANGE:
			gh_cpu_copy((char *) request->values_out + i * bytes, value, bytes);
			gh_cpu_copy(value, in, bytes);
			return GH_CPU_WROTE_OVER;
		case GH_ADD:
			if (gh_cpu_values_append(table, (uint64_t *) (void *) value, in,
									 &request->error) != GH_OK)
				return GH_CPU_WROTE_NOTHING;
			table->view.root->values++;
			return GH_CPU_WROTE_OLD;
		default:
			return GH_CPU_WROTE_OLD;
	}
}

/* The value of a new key. */
static gh_always_inline GhCpuOutcome
write_first_value(GhCpuTable *table, GhRequest *request, uint64_t i, char *value,
				  uint32_t bytes, GhOp op)
{
	const char *in = value_in(&table->view, request, i, bytes, op);

	if (op == GH_ADD)
	{
		if (gh_cpu_values_first(table, (uint64_t *) (void *) value, in,
								&request->error) != GH_OK)
			return GH_CPU_WROTE_NOTHING;
	}
	else
		gh_cpu_copy(value, in, bytes);
	if (op == GH_EXCHANGE)
		gh_cpu_put_absent((char *) request->values_out + i * bytes, request->absent, bytes);
	return GH_CPU_WROTE_NEW;
}

/* The key whose pattern marks empty slots lives in the root. */
static __attribute__((noinline)) GhCpuOutcome
write_empty_key(GhCpuTable *table, GhRequest *request, uint64_t i, GhOp op)
{
	GhCpuRoot  *root = table->view.root;
	char	   *value = (char *) root->empty_key_value;
	uint32_t	bytes = table->view.stride;

	if (root->has_empty_key)
		return bytes == 0 ? GH_CPU_WROTE_OLD : write_value(table, request, i, value, bytes, op);
	if (bytes > 0 &&
		write_first_value(table, request, i, value, bytes, op) == GH_CPU_WROTE_NOTHING)
		return GH_CPU_WROTE_NOTHING;
	root->has_empty_key = true;
	root->keys++;
	root->values++;
	return GH_CPU_WROTE_NEW;
}

static gh_always_inline GhCpuOutcome
write_one(GhCpuShape shape, GhCpuTable *table, GhRequest *request, uint64_t i,
		  const GhCpuPlace *place, GhOp op)
{
	const GhCpuView *view = &table->view;
	GhCpuRoot  *root = view->root;
	uint32_t	bytes = gh_cpu_value_bytes(shape, view);
	uint64_t	key = gh_cpu_key(shape, request->keys, i);
	char	   *slot;
	int			which;

	if (gh_unlikely(key == GH_CPU_EMPTY))
		return write_empty_key(table, request, i, op);

	slot = gh_cpu_lookup(shape, place, key, &which);
	gh_cpu_count_lookup(root, which);
	if (slot != NULL)
		return op == GH_INSERT ? GH_CPU_WROTE_OLD :
			write_value(table, request, i,
						gh_cpu_value(shape, &view->area[place->subtable[which]], slot, bytes),
						bytes, op);

	if (gh_unlikely(root->keys >= view->grow_at))
		return GH_CPU_WROTE_FULL;
	slot = gh_cpu_free_slot(shape, table, place, &which);
	if (gh_unlikely(slot == NULL))
		return GH_CPU_WROTE_CROWDED;
	if (bytes > 0 &&
		write_first_value(table, request, i,
						  gh_cpu_value(shape, &view->area[place->subtable[which]], slot, bytes),
						  bytes, op) == GH_CPU_WROTE_NOTHING)
		return GH_CPU_WROTE_NOTHING;
	gh_cpu_key_put(shape, slot, key);
	root->subtable[place->subtable[which]].entries++;
	root->keys++;
	root->values++;
	return GH_CPU_WROTE_NEW;
}

/* Are so many buckets full that keys find none with room among their own? */
static bool
is_crowded(const GhCpuView *view)
{
	const GhCpuRoot *root = view->root;

	return root->keys > gh_cpu_level_slots(&root->options, root->level) / 2;
}

/* Fetches what a search for room will look at, for those of a group that need one. */
static gh_always_inline void
fetch_rooms(GhCpuShape shape, const GhCpuTable *table, uint32_t group, const GhCpuPlace *place)
{
	for (uint32_t g = 0; g < group; g++)
		if (gh_cpu_match(shape, place[g].bucket[0], GH_CPU_EMPTY) == 0 &&
			gh_cpu_match(shape, place[g].bucket[1], GH_CPU_EMPTY) == 0)
			gh_cpu_fetch_room(table, &place[g]);
}

/* Positions from request->outcome.done to end; shape and op are constants at each call. */
static gh_always_inline GhCpuOutcome
write_range(GhCpuShape shape, GhCpuTable *table, GhRequest *request, uint64_t end, GhOp op)
{
	const GhCpuView *view = &table->view;
	uint64_t	begin = request->outcome.done;
	bool		crowded = is_crowded(view);
	uint64_t	i;
	GhCpuAhead	ahead;

	for (i = begin; i < end; i += GH_CPU_GROUP)
	{
		uint32_t	group = gh_cpu_group(i, end);
		GhCpuPlace *place = gh_cpu_places(shape, view, request->keys, begin, i, end, &ahead);
		uint32_t	g;

		if (crowded && i + GH_CPU_GROUP < end)
			fetch_rooms(shape, table, gh_cpu_group(i + GH_CPU_GROUP, end),
						gh_cpu_places_next(begin, i, &ahead));
		for (g = 0; g < group; g++)
		{
			GhCpuOutcome outcome = write_one(shape, table, request, i + g, &place[g], op);

			if (gh_unlikely(outcome > GH_CPU_WROTE_NEW))
			{
				request->outcome.done = i + g;
				return outcome;
			}
			if (request->flags_out != NULL)
				request->flags_out[i + g] = outcome == GH_CPU_WROTE_NEW;
			request->outcome.inserted += outcome == GH_CPU_WROTE_NEW;
			request->outcome.replaced += outcome == GH_CPU_WROTE_OVER;
		}
	}
	request->outcome.done = end;
	return GH_CPU_WROTE_OLD;
}

/* Insert or upsert of one position of a mixed request, or one of an exchange. */
GhCpuOutcome
gh_cpu_write_one(GhCpuTable *table, GhRequest *request, uint64_t i, const GhCpuPlace *place,
				 GhOp op)
{
	GhCpuShape	shape = table->view.shape;

	if (table->view.stride == 0 || op == GH_INSERT)
		return GH_CPU_BY_SHAPE(shape, write_one, table, request, i, place, GH_INSERT);
	if (op == GH_EXCHANGE)
		return GH_CPU_BY_SHAPE(shape, write_one, table, request, i, place, GH_EXCHANGE);
	return GH_CPU_BY_SHAPE(shape, write_one, table, request, i, place, GH_UPSERT);
}

static GhCpuOutcome
write_positions(GhCpuTable *table, GhRequest *request, uint64_t end)
{
	GhCpuShape	shape = table->view.shape;

	/* in a set upsert has nothing to replace */
	if (table->view.stride == 0 || request->op == GH_INSERT)
		return GH_CPU_BY_SHAPE(shape, write_range, table, request, end, GH_INSERT);
	if (request->op == GH_UPSERT)
		return GH_CPU_BY_SHAPE(shape, write_range, table, request, end, GH_UPSERT);
	if (request->op == GH_EXCHANGE)
		return GH_CPU_BY_SHAPE(shape, write_range, table, request, end, GH_EXCHANGE);
	/* the slots of a multi table hold value words of 8 bytes */
	return shape == GH_CPU_K8V8 ?
		write_range(GH_CPU_K8V8, table, request, end, GH_ADD) :
		write_range(GH_CPU_K4, table, request, end, GH_ADD);
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

/* What follows a position that found no room. */
GhStatus
gh_cpu_write_grow(GhCpuTable *table, GhRequest *request, uint64_t position, bool crowded)
{
	GhStatus	status;

	if (crowded && growth_is_useless(table))
		return gh_error_set(&request->error, GH_TOO_MANY,
							"too many keys share the hash values of key number %" PRIu64
							" of the request", position);
	status = gh_cpu_grow(table, crowded, &request->error);
	return status == GH_OK ? GH_BUSY : status;
}

GhStatus
gh_cpu_write_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t	end = gh_cpu_slice_end(&table->view, request->outcome.done, request->count);
	GhCpuOutcome outcome = write_positions(table, request, end);

	if (outcome == GH_CPU_WROTE_NOTHING)
		return request->error.status;
	if (outcome == GH_CPU_WROTE_FULL || outcome == GH_CPU_WROTE_CROWDED)
		return gh_cpu_write_grow(table, request, request->outcome.done, outcome == GH_CPU_WROTE_CROWDED);
	return end < request->count ? GH_BUSY : GH_OK;
}
