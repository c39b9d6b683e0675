/*
 * cpu_find.c
 *		Looks up a batch of keys.
 *
 * A random probe is a cache miss, so work runs ahead of itself: the first candidate
 * bucket of a key is located and fetched some positions before it is looked at, and where
 * the key is not in it the second one is fetched, some positions before that is looked at.
 * Lines fetched in vain cost more than the second step.  A value beside the buckets is fetched
 * as many positions before it is copied.
 */
#include "engine/table/cpu_internal.h"

/* Positions between a fetch and its use, from the first bucket to the second, and from there to the
 * end; and the size of the rings that remember them, which is a power of two and larger than both together. */
#define FIND_AHEAD 16
#define FIND_RING 64

/* Finds the value of a key, or in a set its slot.  Returns the buckets looked at. */
static gh_always_inline uint32_t
look_at(GhCpuShape shape, const GhCpuView *view, uint64_t key, const GhCpuPlace *place,
		const char **value)
{
	char	   *slot;
	int			which;

	/* an empty slot looks like its key */
	if (gh_unlikely(key == GH_CPU_EMPTY))
	{
		*value = view->has_empty_key ? (const char *) view->root->empty_key_value : NULL;
		return 0;
	}
	slot = gh_cpu_lookup(shape, place, key, &which);
	*value = slot;
	if (slot != NULL)
		*value = gh_cpu_value(shape, &view->area[place->subtable[which]], slot,
							  view->stride);
	return which + 1;
}

static gh_always_inline void
fetch(GhCpuShape shape, const GhCpuView *view, const void *keys, uint64_t i, GhCpuPlace *ring)
{
	GhCpuPlace *place = &ring[i % FIND_RING];

	gh_cpu_locate(view, gh_cpu_key(shape, keys, i), place);
	__builtin_prefetch(place->bucket[0]);
}

/*
 * Finds out which bucket to look at, and puts it first.  Whether it is the second one is not to
 * be foreseen, so there is no branch; a line that is there already costs nothing to fetch.
 */
static gh_always_inline uint32_t
choose(GhCpuShape shape, const void *keys, uint64_t i, GhCpuPlace *ring)
{
	GhCpuPlace *place = &ring[i % FIND_RING];
	uint32_t	second = gh_cpu_match(shape, place->bucket[0], gh_cpu_key(shape, keys, i)) == 0;

	place->bucket[0] = place->bucket[second];
	place->subtable[0] = place->subtable[second];
	__builtin_prefetch(place->bucket[0]);
	return second;
}

/* Looks at the bucket that was chosen, as look_at does at both. */
static gh_always_inline const char *
look_at_chosen(GhCpuShape shape, const GhCpuView *view, uint64_t key, const GhCpuPlace *place)
{
	char	   *slot;

	if (gh_unlikely(key == GH_CPU_EMPTY))
		return view->has_empty_key ? (const char *) view->root->empty_key_value : NULL;
	slot = gh_cpu_slot(shape, place->bucket[0], key);
	if (slot == NULL)
		return NULL;
	return gh_cpu_value(shape, &view->area[place->subtable[0]], slot, view->stride);
}

static gh_always_inline void
put_value(GhRequest *request, uint64_t i, const char *value, uint32_t bytes)
{
	char	   *out = (char *) request->values_out + i * bytes;

	if (value != NULL)
		gh_cpu_copy(out, value, bytes);
	else
		gh_cpu_put_absent(out, request->absent, bytes);
}

/* Positions begin to end; shape and with_values are constants at each call, so
 * that each kind of table gets a loop of its own. */
static gh_always_inline uint64_t
find_range(GhCpuShape shape, GhCpuTable *table, GhRequest *request, uint64_t begin,
		   uint64_t end, bool with_values)
{
	const GhCpuView *view = &table->view;
	uint32_t	bytes = with_values ? gh_cpu_value_bytes(shape, view) : 0;
	bool		beside = with_values && !gh_cpu_has_values_inside(shape);
	uint64_t	matched = 0;
	uint64_t	buckets = 0;
	uint64_t	i;
	GhCpuPlace	place[FIND_RING];
	const char *values[FIND_RING];

	for (i = begin; i < end && i < begin + 2 * FIND_AHEAD; i++)
		fetch(shape, view, request->keys, i, place);
	for (i = begin; i < end && i < begin + FIND_AHEAD; i++)
		buckets += 1 + choose(shape, request->keys, i, place);
	for (i = begin; i < end; i++)
	{
		const char *value;

		if (i + 2 * FIND_AHEAD < end)
			fetch(shape, view, request->keys, i + 2 * FIND_AHEAD, place);
		if (i + FIND_AHEAD < end)
			buckets += 1 + choose(shape, request->keys, i + FIND_AHEAD, place);
		value = look_at_chosen(shape, view, gh_cpu_key(shape, request->keys, i), &place[i % FIND_RING]);
		if (request->flags_out != NULL)
			request->flags_out[i] = value != NULL;
		matched += value != NULL;
		if (with_values && !beside)
			put_value(request, i, value, bytes);
		if (!beside)
			continue;
		if (value != NULL)
			__builtin_prefetch(value);
		values[i % FIND_RING] = value;
		if (i >= begin + FIND_AHEAD)
			put_value(request, i - FIND_AHEAD, values[(i - FIND_AHEAD) % FIND_RING], bytes);
	}
	/* the values still on their way */
	for (i = end - begin > FIND_AHEAD ? end - FIND_AHEAD : begin; beside && i < end; i++)
		put_value(request, i, values[i % FIND_RING], bytes);
	gh_cpu_count_bucket_reads(table, buckets);
	return matched;
}

/* The value of one key, in a set its slot; NULL: absent.  For a request that writes
 * too, so that the view may be older than the key of the empty pattern. */
const char *
gh_cpu_find_key(const GhCpuTable *table, uint64_t key, const GhCpuPlace *place)
{
	const GhCpuView *view = &table->view;
	const char *value;

	if (gh_unlikely(key == GH_CPU_EMPTY))
		return view->root->has_empty_key ? (const char *) view->root->empty_key_value : NULL;
	gh_cpu_count_bucket_reads(table, GH_CPU_BY_SHAPE(view->shape, look_at, view, key, place,
													 &value));
	return value;
}

GhStatus
gh_cpu_find_slice(GhCpuTable *table, GhRequest *request)
{
	GhCpuShape	shape = table->view.shape;
	uint64_t	begin = request->outcome.done;
	uint64_t	end = gh_cpu_slice_end(&table->view, begin, request->count);

	request->outcome.matched += request->values_out != NULL ?
		GH_CPU_BY_SHAPE(shape, find_range, table, request, begin, end, true) :
		GH_CPU_BY_SHAPE(shape, find_range, table, request, begin, end, false);
	request->outcome.done = end;
	return end < request->count ? GH_BUSY : GH_OK;
}
