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
 * Room for a group is claimed before a slot is taken, and given back if somebody else has taken that.  So at
 * most half of the slots are ever taken, and who looks for a group that is not there soon meets a free one,
 * also where there is no room for it.  As long as claims of others may be given back, who gets none looks
 * once more.
 *
 * A slot whose group could not be made after all, for want of room for its texts, is dead: it is passed, and
 * keeps its claim. The slots are filled anew before the rows come again.
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

/* Adds one for each thread of the warp that is here with this one; what was there before its own. */
static __device__ __forceinline__ uint32_t
count_together(uint32_t *count)
{
	uint32_t	together = __activemask();
	uint32_t	lane = threadIdx.x % 32;
	int			first = __ffs((int) together) - 1;
	uint32_t	before = 0;

	/* what the others have written before comes before it */
	__syncwarp(together);
	if (lane == (uint32_t) first)
		before = atomicAdd(count, (uint32_t) __popc(together));
	return __shfl_sync(together, before, first) + (uint32_t) __popc(together & ((1u << lane) - 1));
}

/* Whether there is room for a group. */
enum room_state
{
	ROOM_NONE,
	ROOM_UNSURE,				/* others have claimed the last of it, and may give it back */
	ROOM_CLAIMED
};

/* Claims room for one more group. */
static __device__ room_state
room_claim(const groups_view &groups, uint64_t text_bytes, scan_counters *counters)
{
	groups_used *used = groups.used;
	uint64_t	text_used = load_relaxed(&used->text_bytes);

	if (text_bytes > 0 && (text_used > groups.text_room || text_bytes > groups.text_room - text_used))
	{
		counters->texts_full = 1;
		return ROOM_NONE;
	}
	if (load_relaxed(&used->claims) < groups.room)
	{
		if (count_together(&used->claims) < groups.room)
			return ROOM_CLAIMED;
		atomicSub(&used->claims, 1u);
	}
	/* groups that were made and slots that are dead only get more: then nobody gives room back */
	if (load_relaxed(&used->groups) + load_relaxed(&used->dead) < groups.room)
		return ROOM_UNSURE;
	counters->groups_full = 1;
	return ROOM_NONE;
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

/*
 * Makes a group of the row's keys, with room that was claimed; GROUP_NONE: there is none for its texts after
 * all.
 */
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
			atomicAdd(&groups.used->dead, 1u);
			return GROUP_NONE;
		}
	}
	group = count_together(&groups.used->groups);
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

/* Meets a slot that others are busy with, or wants room that they may give back. */
static __device__ __forceinline__ void
search_wait(group_search *search)
{
	__nanosleep(50);
	search->done = ++search->waits >= WAITS_MAX;
}

/*
 * Takes a slot that was free, unless somebody else has; returns what is in it then, or 0: the search is over,
 * or waits.
 */
template <typename ROW> static __device__ uint64_t
search_claim(const plan_view &plan, const groups_view &groups, const ROW &row,
			 uint64_t *slot, scan_counters *counters, group_search *search)
{
	uint64_t	tag = search->hash >> 32 << 32;
	room_state	room = room_claim(groups, search->text_bytes, counters);
	uint64_t	word;

	if (room != ROOM_CLAIMED)
	{
		/* who took the last room may have done so for these keys: it claimed the slot before that was full */
		__threadfence();
		word = load_acquire(slot);
		if (word == 0 && room == ROOM_UNSURE)
			search_wait(search);
		else if (word == 0)
			search->done = true;
		return word;
	}
	word = compare_and_swap(slot, (uint64_t) 0, tag | SLOT_BUSY);
	if (word != 0)
	{
		atomicSub(&groups.used->claims, 1u);
		return word;
	}
	__threadfence();
	search->found = group_make(plan, groups, row, search->text_bytes, counters);
	store_release(slot, tag | (search->found == GROUP_NONE ? SLOT_DEAD : search->found + 1));
	search->done = true;
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
		if (word == 0)
			return;
	}
	number = (uint32_t) word;
	if (word >> 32 == search->hash >> 32)
	{
		if (number == SLOT_BUSY)
		{
			search_wait(search);
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
