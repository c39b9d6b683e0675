/*
 * cpu_find.c
 *		Looks up a batch of keys.
 *
 * A random probe is a cache miss, so keys are taken in groups: both candidate
 * buckets of every key of the group are located and fetched ahead, then the
 * group is compared; and where values are beside the buckets they are fetched
 * ahead in their turn and copied last.
 */
#include "cpu_internal.h"

/* What the keys of a group led to. */
typedef struct Group
{
	GhCpuPlace	place[GH_CPU_GROUP];
	const char *value[GH_CPU_GROUP];	/* NULL: absent */
} Group;

static gh_always_inline void
locate_group(GhCpuShape shape, const GhCpuView *view, const void *keys, uint64_t i,
			 uint32_t count, Group *group)
{
	for (uint32_t g = 0; g < count; g++)
	{
		gh_cpu_locate(view, gh_cpu_key(shape, keys, i + g), &group->place[g]);
		__builtin_prefetch(group->place[g].bucket[0]);
		__builtin_prefetch(group->place[g].bucket[1]);
	}
}

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

/* Positions begin to end; shape and with_values are constants at each call, so
 * that each kind of table gets a loop of its own. */
static gh_always_inline uint64_t
find_range(GhCpuShape shape, GhCpuTable *table, GhRequest *request, uint64_t begin,
		   uint64_t end, bool with_values)
{
	const GhCpuView *view = &table->view;
	uint32_t	bytes = with_values ? gh_cpu_value_bytes(shape, view) : 0;
	uint64_t	matched = 0;
	uint64_t	buckets = 0;
	uint64_t	i;
	Group		group;

	for (i = begin; i < end; i += GH_CPU_GROUP)
	{
		uint32_t	count = end - i < GH_CPU_GROUP ? (uint32_t) (end - i) : GH_CPU_GROUP;
		char	   *out = with_values ? (char *) request->values_out + i * bytes : NULL;
		uint32_t	g;

		locate_group(shape, view, request->keys, i, count, &group);
		for (g = 0; g < count; g++)
		{
			uint64_t	key = gh_cpu_key(shape, request->keys, i + g);

			buckets += look_at(shape, view, key, &group.place[g], &group.value[g]);
			if (with_values && !gh_cpu_has_values_inside(shape) && group.value[g] != NULL)
				__builtin_prefetch(group.value[g]);
			if (request->flags_out != NULL)
				request->flags_out[i + g] = group.value[g] != NULL;
			matched += group.value[g] != NULL;
		}
		for (g = 0; with_values && g < count; g++, out += bytes)
		{
			if (group.value[g] != NULL)
				gh_cpu_copy(out, group.value[g], bytes);
			else
				gh_cpu_put_absent(out, request->absent, bytes);
		}
	}
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
	(void) GH_CPU_BY_SHAPE(view->shape, look_at, view, key, place, &value);
	return value;
}

GhStatus
gh_cpu_find_slice(GhCpuTable *table, GhRequest *request)
{
	GhCpuShape	shape = table->view.shape;
	uint64_t	begin = request->done;
	uint64_t	end = gh_cpu_slice_end(&table->view, begin, request->count);

	request->matched += request->values_out != NULL ?
		GH_CPU_BY_SHAPE(shape, find_range, table, request, begin, end, true) :
		GH_CPU_BY_SHAPE(shape, find_range, table, request, begin, end, false);
	request->done = end;
	return end < request->count ? GH_BUSY : GH_OK;
}
