/*
 * cpu_find.c
 *		Looks up a batch of keys.
 *
 * A random probe is a cache miss, so keys are taken in groups: both candidate
 * buckets of every key of the group are located and fetched ahead, then the
 * group is compared.
 */
#include "cpu_internal.h"

static gh_always_inline uint64_t *
find_one(const GhCpuPlace *place, uint64_t key, uint32_t slots)
{
	int			which;

	return gh_cpu_lookup(place, key, slots, &which);
}

/*
 * Positions begin to end.  with_values and slots are constants at each call, so
 * that each kind of table gets a loop of its own.
 */
static gh_always_inline uint64_t
find_range(GhCpuTable *table, GhRequest *request, uint64_t begin, uint64_t end,
		   bool with_values, uint32_t slots)
{
	const GhCpuView *view = &table->view;
	const GhCpuRoot *root = view->root;
	const uint64_t *keys = request->keys;
	uint64_t	absent = request->absent;
	uint64_t	matched = 0;
	uint64_t	i;
	GhCpuPlace	place[GH_CPU_GROUP];

	for (i = begin; i < end; i += GH_CPU_GROUP)
	{
		uint32_t	group = end - i < GH_CPU_GROUP ? (uint32_t) (end - i) : GH_CPU_GROUP;
		uint32_t	g;

		for (g = 0; g < group; g++)
		{
			gh_cpu_locate(view, keys[i + g], &place[g]);
			__builtin_prefetch(place[g].bucket[0]);
			__builtin_prefetch(place[g].bucket[1]);
		}
		for (g = 0; g < group; g++)
		{
			uint64_t	key = keys[i + g];
			const uint64_t *slot = find_one(&place[g], key, slots);
			bool		found = slot != NULL;
			uint64_t	value = absent;

			if (with_values && found)
				value = slot[GH_CPU_MAP_SLOTS];
			/* an empty slot looks like its key */
			if (gh_unlikely(key == GH_CPU_EMPTY))
			{
				found = root->has_empty_key;
				value = found ? root->empty_key_value : absent;
			}
			if (with_values)
				request->values_out[i + g] = value;
			if (request->flags_out != NULL)
				request->flags_out[i + g] = found;
			matched += found;
		}
	}
	return matched;
}

GhStatus
gh_cpu_find_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t	begin = request->done;
	uint64_t	end = request->count;

	if (end - begin > GH_CPU_SLICE_KEYS)
		end = begin + GH_CPU_SLICE_KEYS;

	if (request->values_out != NULL)
		request->matched += find_range(table, request, begin, end, true, GH_CPU_MAP_SLOTS);
	else if (table->view.slots == GH_CPU_MAP_SLOTS)
		request->matched += find_range(table, request, begin, end, false, GH_CPU_MAP_SLOTS);
	else
		request->matched += find_range(table, request, begin, end, false, GH_CPU_SET_SLOTS);
	request->done = end;
	return end < request->count ? GH_BUSY : GH_OK;
}
