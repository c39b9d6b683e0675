/*
 * place.cu
 *		Placing entries: the part of every insert that finds a slot.
 *
 * place_kernel looks at a key's two buckets and either finds the key there, or
 * takes a free slot by one compare-and-swap, in the bucket that the key prefers,
 * or else in the other.  Nothing is moved, and no slot is emptied
 * while it runs, so a slot once seen full stays as it is.
 *
 * No key gets in twice, without locks: of equal keys every thread tries the same
 * slots in the same order, those of the preferred bucket first, and passes one
 * only when it has seen another key in it.  So whoever comes second meets the
 * first one's key, at the latest as what the compare-and-swap found.
 *
 * Where one atomic changes a whole entry, a key that finds both buckets full is
 * placed by a single move (displace.cuh).  Equal keys must not both do that, so they
 * claim the key in a scratch table first, and only the first of them goes on.  The
 * argument above holds on: slots are still never free again while the kernel runs,
 * and a key that was moved is in the other bucket, in the first slot that was free
 * there, which is one that every other thread of that key tries, too.
 *
 * Keys that are left are listed, grouped, if equal ones may be among them, and
 * placed by longer moves (relocate.cu); the table grows when that fails.  Positions whose keys were there, or came with another position, are
 * listed too: what to do with them is the operation's.
 */
#include "displace.cuh"
#include "table.h"

/* Places of the scratch table that a claim tries. */
#define CLAIM_PROBES 16

enum place_outcome
{
	NOT_ASKED,
	PLACED,
	PRESENT,
	FULL
};

/* What a key found, and where. */
struct placing
{
	place_outcome outcome;
	uint32_t	sub;
	void	   *slot;
};

/* A key and its value, to be stored. */
template <typename L> struct new_entry
{
	typename L::key_type key;
	uint64_t	value;			/* where values are together with keys */
};

/*
 * Takes a slot for the entry if it still is as seen, free.  Returns the key that it
 * holds otherwise.  Where one atomic can, it stores the value as well; else
 * place_kernel does.
 */
template <typename L> static __device__ __forceinline__ place_outcome
take_slot(void *slot, typename L::word_type seen, const new_entry<L> &entry)
{
	typedef typename L::word_type word_type;
	typename L::key_type held;

#if HAVE_ATOMIC_128
	if constexpr (L::paired)
	{
		/* what a free slot has for a value is known when it was never used */
		word_pair	expected = {seen, ~UINT64_C(0)};

		for (;;)
		{
			word_pair	found = compare_and_swap(static_cast<word_pair *>(slot), expected,
												 {entry.key, entry.value});

			held = L::key_of(found.x);
			if (found.x != seen || found.y == expected.y)
				break;
			expected.y = found.y;
		}
	}
	else
#endif
		held = L::key_of(compare_and_swap(static_cast<word_type *>(slot), seen,
										  L::make_word(entry.key, entry.value)));
	return held == L::key_of(seen) ? PLACED : held == entry.key ? PRESENT : FULL;
}

/*
 * Tries the free slots of a bucket that a scan saw, in order.  FULL: others took
 * them all.
 */
template <typename L> static __device__ __forceinline__ place_outcome
take_seen(char *bucket, const bucket_scan &scan, const new_entry<L> &entry, void **slot)
{
	for (uint32_t mask = scan.empty | scan.freed; mask != 0; mask &= mask - 1)
	{
		bool		empty = (mask & (0 - mask) & scan.empty) != 0;
		place_outcome outcome;

		*slot = mask_first<L>(bucket, mask);
		outcome = take_slot<L>(*slot, empty ? L::empty_word : L::freed_word, entry);
		if (outcome != FULL)
			return outcome;
	}
	return FULL;
}

/* The same for a bucket that was not scanned, since the other had an EMPTY slot. */
template <typename L> static __device__ place_outcome
take_unseen(char *bucket, const new_entry<L> &entry, void **slot)
{
	for (uint32_t bit = 0; bit < L::slots; bit++)
	{
		typename L::word_type *place = bucket_slot<L>(bucket, mask_slot<L>(bit));
		typename L::word_type held = load_relaxed(place);
		place_outcome outcome = L::key_of(held) == entry.key ? PRESENT : FULL;

		*slot = place;
		if (held == L::empty_word || held == L::freed_word)
			outcome = take_slot<L>(place, held, entry);
		if (outcome != FULL)
			return outcome;
	}
	return FULL;
}

/* Each asking lane's key into its buckets.  All lanes of the warp come here. */
template <typename L> static __device__ __forceinline__ placing
warp_place(const table_view &view, typename L::key_type key, uint64_t value, bool asking,
		   uint32_t *reads)
{
	placing		result = {NOT_ASKED, 0, nullptr};
	candidates	candidate = key_candidates(view, hash_key(view.seed, key));
	new_entry<L> entry = {key, value};
	bucket_scan preferred = warp_scan<L>(asking ? candidate.bucket[0] : nullptr, key);
	bucket_scan other = {0, 0, 0, 0};
	bool		both = asking && preferred.match == 0 &&
		!(view.ordered != 0 && preferred.empty != 0);

	if (__ballot_sync(ALL_LANES, both) != 0)
		other = warp_scan<L>(both ? candidate.bucket[1] : nullptr, key);
	if (!asking)
		return result;
	*reads = both ? 2 : 1;
	if (preferred.match != 0 || (both && other.match != 0))
	{
		result.outcome = PRESENT;
		return result;
	}
	result.sub = candidate.sub[0];
	result.outcome = take_seen<L>(candidate.bucket[0], preferred, entry, &result.slot);
	if (result.outcome == FULL)
	{
		result.sub = candidate.sub[1];
		result.outcome = both ?
			take_seen<L>(candidate.bucket[1], other, entry, &result.slot) :
			take_unseen<L>(candidate.bucket[1], entry, &result.slot);
	}
	return result;
}

/* One of the threads with that key gets true. */
enum claim_outcome
{
	CLAIMED,
	OTHERS,
	UNDECIDED					/* the scratch table is too full around there */
};

template <typename L> static __device__ claim_outcome
claim_key(const entry_list &list, const claim_view &claims, uint64_t hash,
		  typename L::key_type key, uint32_t position)
{
	uint32_t	place = (uint32_t) (hash >> 16) & claims.mask;

	for (uint32_t probe = 0; probe < CLAIM_PROBES; probe++)
	{
		uint32_t	holder = load_relaxed(&claims.holder[place]);

		if (holder == POSITION_NONE)
			holder = atomicCAS(&claims.holder[place], POSITION_NONE, position);
		if (holder == POSITION_NONE)
			return CLAIMED;
		if (list_key<L>(list, holder) == key)
			return OTHERS;
		place = (place + 1) & claims.mask;
	}
	return UNDECIDED;
}

/* A key whose buckets are full: by a single move, if it is this thread's to do. */
template <typename L> static __device__ __forceinline__ placing
place_by_move(const table_view &view, const entry_list &list, const claim_view &claims,
			  const new_entry<L> &entry, uint32_t position, counters *counts,
			  bool *unclaimed)
{
	placing		result = {FULL, 0, nullptr};
	uint64_t	hash = hash_key(view.seed, entry.key);
	candidates	candidate = key_candidates(view, hash);
	dead_slots	dead = {claims.dead, claims.dead_room, &counts->dead};

	switch (claim_key<L>(list, claims, hash, entry.key, position))
	{
		case OTHERS:
			result.outcome = PRESENT;
			return result;
		case UNDECIDED:
			*unclaimed = true;
			return result;
		case CLAIMED:
			break;
	}
	for (uint32_t i = 0; i < 2 * L::slots; i++)
	{
		char	   *bucket = candidate.bucket[i / L::slots];
		uint32_t	slot = ((uint32_t) hash + i) % L::slots;

		if (displace<L>(view, bucket, bucket + slot * L::slot_bytes,
						make_whole<L>(entry.key, entry.value), dead, &result.sub))
		{
			result.outcome = PLACED;
			break;
		}
	}
	return result;
}

template <typename L> static __device__ __forceinline__ placing
side_place(const table_view &view, typename L::key_type key)
{
	placing		result = {PRESENT, 0, nullptr};

	if (exchange(&view.side_present[side_index<L>(key)], 1u) == 0)
		result.outcome = PLACED;
	return result;
}

/* Keys that a warp will place by moves, when it has enough of them for all lanes. */
template <typename L> struct move_queue
{
	typename L::key_type key[64];
	uint64_t	value[64];
	uint32_t	position[64];
};

/* What place_kernel's parts share. */
template <typename L> struct place_context
{
	const table_view &view;
	const entry_list &list;
	const claim_view &claims;
	uint8_t    *flags;
	uint32_t   *present;
	uint32_t   *overflow;
	counters   *counts;
	block_sums	sums;
};

/* The value of a placed entry, where it was not stored with the key. */
template <typename L> static __device__ __forceinline__ void
store_placed_value(const place_context<L> &context, const placing &result,
				   typename L::key_type key, uint64_t value, uint32_t position)
{
	const table_view &view = context.view;
	bool		placed = result.outcome == PLACED;
	bool		special = L::special(key);
	char	   *to = placed && !special ? slot_value<L>(view, result.sub, result.slot) :
		side_value(view, special ? side_index<L>(key) : 0);

	if (!L::together)
		warp_copy_values(placed, to,
						 context.list.values + (uint64_t) position * view.value_size,
						 view.value_size);
	else if (placed && (special || !HAVE_WHOLE(L)))
		value_from_word(to, value, view.value_size);
}

/* Tells each lane's outcome.  All lanes of the warp come here. */
template <typename L> static __device__ __forceinline__ void
tell_outcome(place_context<L> &context, const placing &result, uint32_t position)
{
	counters   *counts = context.counts;
	bool		placed = result.outcome == PLACED;

	if (result.outcome != NOT_ASKED)
		context.flags[position] = placed ? 1 : 0;
	if (result.outcome == PRESENT)
		context.present[append_index(&counts->present)] = position;
	else if (result.outcome == FULL)
		context.overflow[append_index(&counts->overflow)] = position;
	__syncwarp();
	context.sums.add_one(block_sums::ENTRIES, placed);
	context.sums.add_gains(context.view, placed, result.sub);
}

/* Places the last queued keys, up to one a lane, by moves; returns how many are left. */
template <typename L> static __device__ __forceinline__ uint32_t
place_queued(place_context<L> &context, const move_queue<L> &queue, uint32_t queued)
{
	uint32_t	lane = threadIdx.x & 31;
	uint32_t	taken = queued < 32 ? queued : 32;
	placing		result = {NOT_ASKED, 0, nullptr};
	uint32_t	position = 0;

	__syncwarp();				/* what other lanes have queued */
	if (lane < taken)
	{
		uint32_t	index = queued - taken + lane;
		bool		unclaimed = false;

		position = queue.position[index];
		result = place_by_move<L>(context.view, context.list, context.claims,
								  {queue.key[index], queue.value[index]}, position,
								  context.counts, &unclaimed);
		if (unclaimed)
			context.counts->unclaimed = 1;
	}
	__syncwarp();				/* all have read: the queue may be written again */
	tell_outcome<L>(context, result, position);
	return queued - taken;
}

/* One key for each lane; those whose buckets are full are queued.  Returns how many are. */
template <typename L> static __device__ __forceinline__ uint32_t
place_round(place_context<L> &context, move_queue<L> &queue, uint32_t queued, uint64_t i)
{
	const entry_list &list = context.list;
	const table_view &view = context.view;
	bool		listed = i < list.count;
	uint32_t	position = listed ? list_position(list, i) : 0;
	typename L::key_type key = listed ? list_key<L>(list, position) : 0;
	bool		special = L::special(key);
	uint64_t	value = position;	/* of a list without values */
	uint32_t	reads = 0;
	placing		result;

	if (L::together && listed && list.values != nullptr)
		value = value_word(list.values + (uint64_t) position * view.value_size,
						   view.value_size);
	result = warp_place<L>(view, key, value, listed && !special, &reads);
	__syncwarp();
	if (listed && special)
		result = side_place<L>(view, key);
	/* nobody reads the value before the next kernel */
	if (view.value_size != 0)
		store_placed_value<L>(context, result, key, value, position);
	context.sums.add_reads(view, reads);
	if (HAVE_WHOLE(L))
	{
		uint32_t	full = __ballot_sync(ALL_LANES, result.outcome == FULL);
		uint32_t	index = queued + (uint32_t) __popc(full & ((1u << (threadIdx.x & 31)) - 1));

		if (result.outcome == FULL)
		{
			queue.key[index] = key;
			queue.value[index] = value;
			queue.position[index] = position;
			result.outcome = NOT_ASKED;
		}
		queued += (uint32_t) __popc(full);
	}
	else if (result.outcome == FULL)
		context.counts->unclaimed = 1;
	tell_outcome<L>(context, result, position);
	return queued;
}

template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS, PLACE_BLOCKS)
place_kernel(const __grid_constant__ table_view view,
			 const __grid_constant__ entry_list list,
			 const __grid_constant__ claim_view claims, uint8_t *flags, uint32_t *present,
			 uint32_t *overflow, counters *counts)
{
	__shared__ uint32_t shared[block_sums::WORDS];
	__shared__ move_queue<L> queues[HAVE_WHOLE(L) ? BLOCK_THREADS / 32 : 1];
	move_queue<L> &queue = queues[HAVE_WHOLE(L) ? threadIdx.x / 32 : 0];
	place_context<L> context = {view, list, claims, flags, present, overflow, counts, {}};
	uint32_t	queued = 0;

	context.sums.begin(shared);
	FOR_ROUNDS(i, list.count)
	{
		queued = place_round<L>(context, queue, queued, i);
		if (HAVE_WHOLE(L) && queued >= 32)
			queued = place_queued<L>(context, queue, queued);
	}
	if (HAVE_WHOLE(L) && queued > 0)
		(void) place_queued<L>(context, queue, queued);
	context.sums.end(counts, &counts->inserted, 1);
}

/* Frees the listed slots that a placing left BUSY. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
free_listed_kernel(char *const *slots, uint32_t count)
{
	uint64_t	i = ELEMENT;

	if (i < count)
		*reinterpret_cast<typename L::word_type *>(slots[i]) = L::freed_word;
}

/* The same, when there were too many to list: looks at every slot of a subtable. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
free_busy_kernel(char *slots, uint64_t count)
{
	uint64_t	i = ELEMENT;

	if (i < count)
	{
		typename L::word_type *slot =
			reinterpret_cast<typename L::word_type *>(slots + i * L::slot_bytes);

		if (L::key_of(*slot) == L::busy_key)
			*slot = L::freed_word;
	}
}

/* Of listed keys that are not in the table, one position each goes on; the others
 * will find the key there. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
leaders_kernel(entry_list list, group_view group, uint32_t *leaders, uint32_t *present,
			   counters *counts)
{
	uint64_t	i = ELEMENT;

	if (i >= list.count)
		return;

	uint32_t	position = list_position(list, i);

	if (group.first[group.place[i]] == position)
		leaders[append_index(&counts->overflow)] = position;
	else
		present[append_index(&counts->present)] = position;
}

/* How many different keys of a grouped list are not in the table? */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
absent_kernel(const __grid_constant__ table_view view, entry_list list, group_view group,
			  counters *counts)
{
	uint64_t	i = ELEMENT;
	bool		listed = i < list.count;
	uint32_t	position = listed ? list_position(list, i) : 0;
	bool		leader = listed && group.first[group.place[i]] == position;
	entry_place place = warp_locate<L>(view, leader ? list_key<L>(list, position) : 0,
									   leader);

	warp_add(&counts->matched, leader && !place.found ? 1 : 0);
}

/* Takes out what place_kernel and relocation put in. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
unplace_kernel(const __grid_constant__ table_view view, entry_list list,
			   const uint8_t *flags, counters *counts)
{
	__shared__ uint32_t shared[block_sums::WORDS];
	block_sums	sums;
	uint64_t	i = ELEMENT;
	bool		listed = i < list.count;
	uint32_t	position = listed ? list_position(list, i) : 0;
	bool		asking = listed && flags[position] != 0;
	typename L::key_type key = asking ? list_key<L>(list, position) : 0;
	entry_place place;
	bool		removed;

	sums.begin(shared);
	place = warp_locate<L>(view, key, asking);
	removed = place.found && place_empty<L>(view, place, key);
	sums.add_one(block_sums::ENTRIES, removed);
	sums.add_gains(view, removed, place.sub);
	sums.end(counts, &counts->removed, -1);
}

/* ------------------------------------------------------------ the host's part */

/* Takes over what kernels counted; counts below zero wrap and come out right. */
void
subtables_add_gains(cuda_table *table, const counters *count)
{
	for (uint32_t i = 0; i < table->options.subtables; i++)
		table->sub[i].entries += count->gained[i];
	table->stats.bucket_reads += count->bucket_reads;
}

static void
claims_carve(carver *carver, uint64_t keys, claim_view *claims)
{
	uint64_t	places = 64;

	while (places < keys)
		places *= 2;
	claims->mask = (uint32_t) (places - 1);
	claims->holder = carver->array<uint32_t>(places);
	claims->dead_room = (uint32_t) (keys / 16 + 64);
	claims->dead = carver->array<char *>(claims->dead_room);
}

void
place_carve(carver *carver, uint64_t keys, place_lists *lists)
{
	uint64_t	grouped = keys < GROUP_MAX ? keys : GROUP_MAX;

	lists->present = carver->array<uint32_t>(keys);
	lists->overflow = carver->array<uint32_t>(keys);
	lists->spare[0] = carver->array<uint32_t>(grouped);
	lists->spare[1] = carver->array<uint32_t>(grouped);
	lists->group = group_carve(carver, grouped, GROUP_FIRST);
	claims_carve(carver, keys, &lists->claims);
}

/* A part of a list, counted from its beginning. */
static entry_list
list_part(const entry_list *list, uint64_t start, uint64_t count)
{
	entry_list	part = *list;

	if (list->positions != nullptr)
		part.positions = list->positions + start;
	else
		part.first = list->first + (uint32_t) start;
	part.count = (uint32_t) count;
	return part;
}

/* Frees what the last placing left BUSY. */
static GhStatus
free_dead_slots(cuda_table *table, const claim_view *claims, uint32_t dead, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;

	if (dead == 0)
		return GH_OK;
	if (dead <= claims->dead_room)
	{
		LAYOUT_DISPATCH(table, free_listed_kernel<L><<<blocks_for(dead), BLOCK_THREADS, 0,
						stream>>>(claims->dead, dead));
		LAUNCH_TRY(table, error);
		return GH_OK;
	}
	for (uint32_t i = 0; i < table->options.subtables; i++)
	{
		uint64_t	slots = table->sub[i].buckets * table->bucket_slots;

		LAYOUT_DISPATCH(table, free_busy_kernel<L><<<blocks_for(slots), BLOCK_THREADS, 0,
						stream>>>(table->sub[i].slots, slots));
		LAUNCH_TRY(table, error);
	}
	return GH_OK;
}

/* What place_kernel found. */
struct placed_counts
{
	uint32_t	placed;
	uint32_t	present;
	uint32_t	overflow;		/* found no slot, in the last run */
	bool		unclaimed;		/* equal keys may be among those */
};

/* Runs place_kernel. */
static GhStatus
place_once(cuda_table *table, const entry_list *list, const place_lists *lists,
		   uint32_t *overflow_list, placed_counts *count, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	size_t		claim_bytes = ((size_t) lists->claims.mask + 1) * sizeof(uint32_t);
	table_view	view;

	/* keys that prefer by anything but even bounds cannot be found in order */
	for (uint32_t i = 1; i < table->options.subtables; i++)
		if (table->sub[i].buckets != table->sub[0].buckets)
			table->ordered = false;
	view = table_make_view(table);
	GH_TRY(lane_count_reset(table, lane, error));
	/* POSITION_NONE has all bits set */
	CUDA_TRY(table, cudaMemsetAsync(lists->claims.holder, 0xff, claim_bytes, lane->stream),
			 error);
	LAYOUT_DISPATCH(table, place_kernel<L><<<resident_blocks(table, place_kernel<L>, list->count),
					BLOCK_THREADS, 0, lane->stream>>>(view, *list, lists->claims, lists->flags,
									lists->present + count->present, overflow_list,
									lane->device_count));
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	subtables_add_gains(table, lane->host_count);
	table->keys += lane->host_count->inserted;
	count->placed += (uint32_t) lane->host_count->inserted;
	count->present += lane->host_count->present;
	count->overflow = lane->host_count->overflow;
	count->unclaimed = lane->host_count->unclaimed != 0;
	return free_dead_slots(table, &lists->claims, lane->host_count->dead, error);
}

/* Moves one position of each key to spare[1], and the others to the present ones. */
static GhStatus
pick_leaders(cuda_table *table, entry_list *list, const place_lists *lists,
			 placed_counts *count, GhError *error)
{
	lane	   *lane = &table->lanes[0];

	GH_TRY(group_positions(table, list, &lists->group, GROUP_FIRST, error));
	GH_TRY(lane_count_reset(table, lane, error));
	leaders_kernel<<<blocks_for(list->count), BLOCK_THREADS, 0, lane->stream>>>(
		*list, lists->group, lists->spare[1], lists->present + count->present,
		lane->device_count);
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	count->present += lane->host_count->present;
	list->positions = lists->spare[1];
	list->count = lane->host_count->overflow;
	return GH_OK;
}

/* Places listed keys that are not in the table, found no slot and are distinct. */
static GhStatus
place_by_moves(cuda_table *table, entry_list *list, const place_lists *lists,
			   placed_counts *count, GhError *error)
{
	move_journal none = {};
	uint32_t	wanted = list->count;

	for (;;)
	{
		GH_TRY(relocate_rounds(table, list, lists->flags, lists->spare, &none, error));
		count->placed += wanted - list->count;
		table->keys += wanted - list->count;
		wanted = list->count;
		if (wanted == 0)
			return GH_OK;
		/* too full for these keys, by chance, below fill_max: grow early */
		GH_TRY(table_upsize(table, error));
	}
}

/* Places a list for which there is room. */
static GhStatus
place_part(cuda_table *table, const entry_list *list, const place_lists *lists,
		   placed_counts *count, GhError *error)
{
	uint32_t	overflow;
	bool		unclaimed;

	GH_TRY(place_once(table, list, lists, lists->overflow, count, error));
	overflow = count->overflow;
	unclaimed = count->unclaimed;
	for (uint64_t start = 0; start < overflow; start += GROUP_MAX)
	{
		entry_list	full = *list;

		full.positions = lists->overflow + start;
		full.count = (uint32_t) (overflow - start < GROUP_MAX ? overflow - start : GROUP_MAX);
		/* keys of the parts before may be among them, and are in the table now */
		if (unclaimed && start > 0)
		{
			GH_TRY(place_once(table, &full, lists, lists->spare[0], count, error));
			full.positions = lists->spare[0];
			full.count = count->overflow;
		}
		if (unclaimed && full.count > 0)
			GH_TRY(pick_leaders(table, &full, lists, count, error));
		if (full.count > 0)
			GH_TRY(place_by_moves(table, &full, lists, count, error));
	}
	return GH_OK;
}

/* Keys that still fit below fill_max. */
static uint64_t
table_room(const cuda_table *table)
{
	uint64_t	fits = (uint64_t) (table->options.fill_max * (double) table_slots(table));

	return fits > table->keys ? fits - table->keys : 0;
}

/* Grows for those of a list, up to GROUP_MAX, that are not in the table. */
static GhStatus
room_for_list(cuda_table *table, const entry_list *list, const place_lists *lists,
			  GhError *error)
{
	lane	   *lane = &table->lanes[0];

	GH_TRY(group_positions(table, list, &lists->group, GROUP_FIRST, error));
	GH_TRY(lane_count_reset(table, lane, error));
	LAYOUT_DISPATCH(table, absent_kernel<L><<<blocks_for(list->count), BLOCK_THREADS, 0,
					lane->stream>>>(table_make_view(table), *list, lists->group,
									lane->device_count));
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	return table_make_room(table, table->keys + lane->host_count->matched, error);
}

/* Takes out those of a list whose flag is set. */
static GhStatus
entries_unplace(cuda_table *table, const entry_list *list, const uint8_t *flags,
				GhError *error)
{
	lane	   *lane = &table->lanes[0];

	if (list->count == 0)
		return GH_OK;
	GH_TRY(lane_count_reset(table, lane, error));
	LAYOUT_DISPATCH(table, unplace_kernel<L><<<blocks_for(list->count),
					BLOCK_THREADS, 0, lane->stream>>>(table_make_view(table), *list, flags,
									lane->device_count));
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	subtables_add_gains(table, lane->host_count);
	table->keys -= lane->host_count->removed;
	return GH_OK;
}

/*
 * Sees to it that every key of a list, of any length, is in the table: *placed of
 * them were not, and have their flags set, one position each; *present positions
 * are listed whose keys were there or came with another position.  Grows the
 * table as needed.  After GH_LIMIT and GH_NO_MEMORY the table holds what it held.
 */
GhStatus
entries_place(cuda_table *table, const entry_list *list, const place_lists *lists,
			  uint32_t *placed, uint32_t *present, GhError *error)
{
	uint64_t	done = 0;
	placed_counts count = {};
	GhStatus	status = GH_OK;

	while (status == GH_OK && done < list->count)
	{
		uint64_t	keys = list->count - done;
		uint64_t	room = table_room(table);
		entry_list	part;

		/* with less room than that, only what is really new counts */
		if (!lists->sized && keys > room && keys > GROUP_MAX)
			keys = room > GROUP_MAX ? room : GROUP_MAX;
		part = list_part(list, done, keys);
		if (!lists->sized && keys > room)
			status = room_for_list(table, &part, lists, error);
		if (status == GH_OK)
		{
			done += keys;
			status = place_part(table, &part, lists, &count, error);
		}
	}
	if (status != GH_OK && status != GH_DEVICE_ERROR)
	{
		entry_list	tried = list_part(list, 0, done);

		GH_TRY(entries_unplace(table, &tried, lists->flags, error));
		count = {};
	}
	*placed = count.placed;
	*present = count.present;
	return status;
}
