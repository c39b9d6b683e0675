/*
 * cpu_find.c
 *		Looks up a batch of keys.
 *
 * A random probe is a cache miss, so keys go in groups through stages, each stage one group behind the
 * one before: a group's first candidate buckets are located and fetched; where a key is not in it the
 * second one is fetched; values are copied.  Lines fetched in vain cost more than the second step.  A value
 * beside the buckets is fetched in the third stage and copied in a fourth one.  No stage has a branch that
 * depends on what is found: a mispredicted one costs as much as a key.
 */
#include "engine/table/cpu_internal.h"

/* Keys of a group; and stages, in each of which there is one. */
#define FIND_GROUP 32
#define FIND_STAGES 4

/* A group under way. */
typedef struct Group
{
	char	   *bucket[2][FIND_GROUP];	/* the candidates; from the second stage on [0] is the one to look at */
	uint8_t		subtable[2][FIND_GROUP];	/* where values are beside the buckets */
	const char *value[FIND_GROUP];	/* likewise, NULL: absent */
} Group;

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
locate_group(GhCpuShape shape, const GhCpuView *view, const void *keys, uint64_t i, uint32_t n, Group *group)
{
	for (uint32_t g = 0; g < n; g++)
	{
		uint64_t	key = gh_cpu_key(shape, keys, i + g);
		GhCpuPlace	place;

		gh_cpu_locate(view, key, &place);
		gh_cpu_fetch(place.bucket[0]);
		for (int c = 0; c < 2; c++)
		{
			group->bucket[c][g] = place.bucket[c];
			if (!gh_cpu_has_values_inside(shape))
				group->subtable[c][g] = place.subtable[c];
		}
	}
}

/* Finds out which buckets to look at; returns how many were looked at.  A line that is there already costs nothing
 * to fetch. */
static gh_always_inline uint32_t
choose_buckets(GhCpuShape shape, const void *keys, uint64_t i, uint32_t n, Group *group)
{
	uint32_t	buckets = n;

	for (uint32_t g = 0; g < n; g++)
	{
		uintptr_t	first = (uintptr_t) group->bucket[0][g];
		uint32_t	second = gh_cpu_match(shape, (char *) first, gh_cpu_key(shape, keys, i + g)) == 0;
		char	   *bucket = (char *) (first ^ ((first ^ (uintptr_t) group->bucket[1][g]) & -(uintptr_t) second));

		gh_cpu_fetch(bucket);
		group->bucket[0][g] = bucket;
		if (!gh_cpu_has_values_inside(shape))
			group->subtable[0][g] = group->subtable[second][g];
		buckets += second;
	}
	return buckets;
}

/* The value of a key that was looked at, or absent, without a branch. */
static gh_always_inline uint64_t
value_in_bucket(GhCpuShape shape, const char *bucket, unsigned matches, uint64_t absent)
{
	/* the last slot's bit makes one the first whatever matches */
	const char *slot = bucket + gh_cpu_first(shape, matches | 1u << (gh_cpu_slots(shape) - 1));
	uint64_t	none = (uint64_t) (matches == 0) - 1;

	return (gh_cpu_key_at(shape, slot + GH_CPU_TO_VALUE) & none) | (absent & ~none);
}

/*
 * Looks at the buckets that were chosen; returns how many keys are there.  Values in the buckets are copied;
 * the places of values beside them are fetched.  A slot that is empty looks like the key GH_CPU_EMPTY.
 */
static gh_always_inline uint32_t
look_at_buckets(GhCpuShape shape, const GhCpuView *view, const GhRequest *request, uint64_t i, uint32_t n,
				Group *group, bool with_values)
{
	bool		inside = gh_cpu_has_values_inside(shape);
	const char *empty_key_value = view->has_empty_key ? (const char *) view->root->empty_key_value : NULL;
	char	   *values = request->values_out;
	uint64_t	absent = request->absent;
	uint8_t		ignored[FIND_GROUP];
	uint8_t    *flags = request->flags_out != NULL ? request->flags_out + i : ignored;
	uint32_t	matched = 0;

	for (uint32_t g = 0; g < n; g++)
	{
		uint64_t	key = gh_cpu_key(shape, request->keys, i + g);
		char	   *bucket = group->bucket[0][g];
		unsigned	matches = gh_cpu_match(shape, bucket, key);
		bool		there = matches != 0;

		if (with_values && inside)
			gh_cpu_key_put(shape, values + ((i + g) << gh_cpu_key_shift(shape)), value_in_bucket(shape, bucket, matches, absent));
		else if (with_values)
			group->value[g] = there ? gh_cpu_value(shape, &view->area[group->subtable[0][g]],
												   bucket + gh_cpu_first(shape, matches), view->stride) : NULL;
		if (gh_unlikely(key == GH_CPU_EMPTY))
		{
			there = empty_key_value != NULL;
			if (with_values && inside)
				gh_cpu_key_put(shape, values + ((i + g) << gh_cpu_key_shift(shape)), there ? gh_cpu_key_at(shape, empty_key_value) : absent);
			else if (with_values)
				group->value[g] = empty_key_value;
		}
		flags[g] = there;
		matched += there;
		if (with_values && !inside)
			gh_cpu_fetch(there ? group->value[g] : bucket);
	}
	return matched;
}

/* Copies values that are beside the buckets. */
static gh_always_inline void
copy_values(const GhRequest *request, uint64_t i, uint32_t n, const Group *group, uint32_t bytes)
{
	for (uint32_t g = 0; g < n; g++)
	{
		char	   *out = (char *) request->values_out + (i + g) * bytes;

		if (group->value[g] != NULL)
			gh_cpu_copy(out, group->value[g], bytes);
		else
			gh_cpu_put_absent(out, request->absent, bytes);
	}
}

/* Keys of the group at i. */
static gh_always_inline uint32_t
group_keys(uint64_t i, uint64_t end)
{
	return end - i < FIND_GROUP ? (uint32_t) (end - i) : FIND_GROUP;
}

/* Positions begin to end; shape and with_values are constants at each call, so
 * that each kind of table gets a loop of its own. */
static gh_always_inline uint64_t
find_range(GhCpuShape shape, GhCpuTable *table, GhRequest *request, uint64_t begin,
		   uint64_t end, bool with_values)
{
	const GhCpuView *view = &table->view;
	bool		beside = with_values && !gh_cpu_has_values_inside(shape);
	uint64_t	matched = 0;
	uint64_t	buckets = 0;
	uint64_t	count = (end - begin + FIND_GROUP - 1) / FIND_GROUP;
	Group		groups[FIND_STAGES];

	for (uint64_t number = 0; number < count + FIND_STAGES - 1; number++)
	{
		uint64_t	i = begin + number * FIND_GROUP;

		if (number < count)
			locate_group(shape, view, request->keys, i, group_keys(i, end), &groups[number % FIND_STAGES]);
		i -= FIND_GROUP;
		if (number - 1 < count)
			buckets += choose_buckets(shape, request->keys, i, group_keys(i, end), &groups[(number - 1) % FIND_STAGES]);
		i -= FIND_GROUP;
		if (number - 2 < count)
			matched += look_at_buckets(shape, view, request, i, group_keys(i, end), &groups[(number - 2) % FIND_STAGES],
									   with_values);
		i -= FIND_GROUP;
		if (beside && number - 3 < count)
			copy_values(request, i, group_keys(i, end), &groups[(number - 3) % FIND_STAGES], view->stride);
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
