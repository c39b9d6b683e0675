/*
 * group_find.cuh
 *		A row's group: found, or made, by the thread that has the row.
 *
 * The table of groups is open addressing with linear probing.  A slot is one word: 0, or the upper
 * half of the hash beside a group's number.  A thread that finds no group of its keys takes
 * the first free slot by compare-and-swap, marked as busy, makes the group, and then stores its
 * number there with release; who reads a number reads it with acquire, and so sees the group.
 * Threads of equal keys pass the same slots in the same order and stop at a busy one of the same
 * hash until it says a number: so there is one group of a key.
 *
 * The threads of a warp that search at the same time go round the loop together, a slot a
 * round: whoever takes a slot makes the group before the end of its round, and who meets a busy
 * slot looks again in the next.  So nobody waits for a thread of its own round, and what it
 * does wait for is a warp that runs.  Should that take too long all the same, the row is
 * handed back, which is always right.
 *
 * A slot whose group could not be made after all is dead: it is passed.  That happens between
 * looking whether there is room and taking it, to as many as do so at a time: they may leave no slot
 * free.  So the slots are filled anew before the rows come again.
 *
 * ROW is whatever has the values of a row, such as line_values.
 */
#ifndef GPUHASH_GROUP_FIND_CUH
#define GPUHASH_GROUP_FIND_CUH

#include "cuda/pipeline/sink_views.cuh"
#include "cuda/table/memory.cuh"

/* Slots that are looked at, and rounds of waiting, before the row is handed back. */
#define PROBES_MAX 65536
#define WAITS_MAX 100000

/* ------------------------------------------------------------------------ search */

static __device__ __forceinline__ uint64_t
load_acquire(const uint64_t *word)
{
	uint64_t	value;

	asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
	return value;
}

static __device__ __forceinline__ GhRecordHead *
group_at(const groups_view &groups, uint32_t group)
{
	return reinterpret_cast<GhRecordHead *>(groups.records + (uint64_t) group * groups.record_bytes);
}

template <typename ROW> static __device__ bool
group_has_keys(const plan_view &plan, const groups_view &groups, uint32_t group,
			   const ROW &row)
{
	const GhRecordHead *record = group_at(groups, group);

	for (uint32_t k = 0; k < plan.nkeys; k++)
	{
		GhRecordKey	key = plan.keys[k];
		GhValue		held = gh_record_group_value(&key, record, k, groups.texts);
		GhValue		value = row.get(key.vector);

		if (!gh_record_key_equal(&key, &held, &value))
			return false;
	}
	return true;
}

/* Bytes of the row's keys that are text; each starts at a multiple of 8. */
template <typename ROW> static __device__ uint64_t
key_text_bytes(const plan_view &plan, const ROW &row)
{
	uint64_t	bytes = 0;

	for (uint32_t k = 0; k < plan.nkeys; k++)
	{
		GhValue		value;

		if (plan.keys[k].value_class != GH_CLASS_TEXT)
			continue;
		value = row.get(plan.keys[k].vector);
		bytes += value.null ? 0 : (value.high + 7) / 8 * 8;
	}
	return bytes;
}

/* Is there room for one more group of the row's keys, as far as one can see? */
static __device__ bool
group_has_room(const groups_view &groups, uint64_t text_bytes, scan_counters *counters)
{
	uint64_t	used = load_relaxed(&groups.used->text_bytes);

	if (load_relaxed(&groups.used->groups) >= groups.room)
	{
		counters->groups_full = 1;
		return false;
	}
	if (text_bytes > 0 && (used > groups.text_room || text_bytes > groups.text_room - used))
	{
		counters->texts_full = 1;
		return false;
	}
	return true;
}

/* Writes the keys of a new group, texts from text_at on. */
template <typename ROW> static __device__ void
group_write(const plan_view &plan, const groups_view &groups, uint32_t group,
			const ROW &row, uint64_t text_at)
{
	GhRecordHead *record = group_at(groups, group);
	uint64_t	nulls = 0;

	for (uint32_t k = 0; k < plan.nkeys; k++)
	{
		GhRecordKey	key = plan.keys[k];
		GhValue		value = row.get(key.vector);
		GhRecordValue held = {0, 0};

		nulls |= (uint64_t) (value.null != 0) << k;
		if (!value.null)
		{
			held.low = value.low;
			held.high = gh_class_has_high(key.value_class) ? value.high : 0;
		}
		if (!value.null && key.value_class == GH_CLASS_TEXT)
		{
			const char *from = reinterpret_cast<const char *>((uintptr_t) value.low);

			held.low = text_at;
			for (uint64_t i = 0; i < value.high; i++)
				groups.texts[text_at + i] = from[i];
			text_at += (value.high + 7) / 8 * 8;
		}
		gh_record_keys(record)[k] = held;
	}
	record->bytes = 0;
	record->rows = 0;
	record->nulls = nulls;
}

/* Makes a group of the row's keys; GROUP_NONE: there is no room after all. */
template <typename ROW> static __device__ uint32_t
group_make(const plan_view &plan, const groups_view &groups, const ROW &row,
		   uint64_t text_bytes, scan_counters *counters)
{
	unsigned long long *text_used = reinterpret_cast<unsigned long long *>(&groups.used->text_bytes);
	uint64_t	text_at = 0;
	uint32_t	group;

	if (text_bytes > 0)
	{
		text_at = atomicAdd(text_used, (unsigned long long) text_bytes);
		if (text_at > groups.text_room || text_bytes > groups.text_room - text_at)
		{
			counters->texts_full = 1;
			return GROUP_NONE;
		}
	}
	group = atomicAdd(&groups.used->groups, 1u);
	if (group >= groups.room)
	{
		counters->groups_full = 1;
		return GROUP_NONE;
	}
	group_write(plan, groups, group, row, text_at);
	return group;
}

template <typename ROW> static __device__ uint64_t
keys_hash(const plan_view &plan, const ROW &row)
{
	uint64_t	hash = plan.seed;

	for (uint32_t k = 0; k < plan.nkeys; k++)
	{
		GhRecordKey	key = plan.keys[k];
		GhValue		value = row.get(key.vector);

		hash = gh_record_key_hash(&key, &value, hash);
	}
	return hash;
}

/* Where a thread's search for a group has come to. */
struct group_search
{
	uint64_t	hash;
	uint64_t	text_bytes;		/* of the keys */
	uint32_t	probes;
	uint32_t	waits;
	uint32_t	found;			/* the group, or GROUP_NONE */
	bool		done;
};

/* Takes a slot that was free, unless somebody else has; returns what is in it then. */
template <typename ROW> static __device__ uint64_t
search_claim(const plan_view &plan, const groups_view &groups, const ROW &row,
			 uint64_t *slot, scan_counters *counters, group_search *search)
{
	uint64_t	tag = search->hash >> 32 << 32;
	uint64_t	word;

	/* who took the last room may have done so for these keys: it claimed the slot before */
	if (!group_has_room(groups, search->text_bytes, counters))
	{
		__threadfence();
		word = load_acquire(slot);
		search->done = word == 0;
		return word;
	}
	word = compare_and_swap(slot, (uint64_t) 0, tag | SLOT_BUSY);
	if (word == 0)
	{
		__threadfence();
		search->found = group_make(plan, groups, row, search->text_bytes, counters);
		store_release(slot, tag | (search->found == GROUP_NONE ? SLOT_DEAD : search->found + 1));
		search->done = true;
	}
	return word;
}

/* Looks at one slot. */
template <typename ROW> static __device__ void
search_step(const plan_view &plan, const groups_view &groups, const ROW &row,
			scan_counters *counters, group_search *search)
{
	uint64_t   *slot = &groups.slots[(search->hash + search->probes) & groups.mask];
	uint64_t	word = load_acquire(slot);
	uint32_t	number;

	if (word == 0)
	{
		word = search_claim(plan, groups, row, slot, counters, search);
		if (search->done)
			return;
	}
	number = (uint32_t) word;
	if (word >> 32 == search->hash >> 32)
	{
		if (number == SLOT_BUSY)
		{
			__nanosleep(50);
			search->done = ++search->waits >= WAITS_MAX;
			return;
		}
		/* the word may be from the compare-and-swap, which does not acquire */
		if (number != SLOT_DEAD && load_acquire(slot) == word &&
			group_has_keys(plan, groups, number - 1, row))
		{
			search->found = number - 1;
			search->done = true;
			return;
		}
	}
	search->done = ++search->probes >= PROBES_MAX;
}

/* The group of the row's keys, found or made; GROUP_NONE: there is none. */
template <typename ROW> static __device__ uint32_t
group_find(const plan_view &plan, const groups_view &groups, const ROW &row,
		   scan_counters *counters)
{
	uint32_t	together = __activemask();
	group_search search = {};

	search.hash = keys_hash(plan, row);
	search.text_bytes = key_text_bytes(plan, row);
	search.found = GROUP_NONE;
	/* threads of a warp go round together: none waits while another has a slot to fill */
	do
		if (!search.done)
			search_step(plan, groups, row, counters, &search);
	while (__any_sync(together, !search.done));
	return search.found;
}

#endif							/* GPUHASH_GROUP_FIND_CUH */
