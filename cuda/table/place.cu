/*
 * place.cu
 *		Placing entries: the part of every insert that finds slots.
 *
 * place_kernel (place.cuh) puts most keys of a list into the table.  Those that it
 * could not place are grouped, if equal ones may be among them, and placed by
 * longer moves (relocate.cu); the table grows when that fails.  Positions whose
 * keys were there, or came with another position, are told to the operation.
 *
 * The table grows before keys are placed when they might not fit below fill_max.
 * With room for all of a list nothing needs to be known of its keys; with less, its
 * keys are grouped and looked up first, part by part, for only those that are new
 * count.
 */
#include "cuda/table/place.cuh"
#include "cuda/table/table.h"

/* A table of fewer slots grows for keys that find no place, however few there are. */
#define USELESS_SLOTS 65536

/* Frees the slots that a placing left BUSY, where no search behind it does. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
free_listed_kernel(claim_view claims, const counters *counts)
{
	free_listed<L>(claims, counts);
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
			free_slot<L>(slot);
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

	block_add(&counts->matched, leader && !place.found ? 1 : 0);
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
	uint64_t	places = CLAIM_PLACES_MIN;

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

/* Frees all slots that are BUSY. */
static GhStatus
free_busy_slots(cuda_table *table, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;

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
	uint32_t   *overflow_list;	/* these */
	bool		unclaimed;		/* equal keys may be among those */
};

/*
 * Behind place_kernel, without a look at what it counted: slots that it left BUSY become free, and
 * what found no slot gets the first try of relocation.
 */
static GhStatus
place_ahead(cuda_table *table, const entry_list *list, const place_lists *lists,
			const claim_view *claims, uint32_t *overflow_list, uint32_t *left, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	entry_list	full = *list;

	if (left == nullptr)
	{
		LAYOUT_DISPATCH(table, free_listed_kernel<L><<<blocks_for(claims->dead_room), BLOCK_THREADS, 0,
						lane->stream>>>(*claims, lane->device_count));
		LAUNCH_TRY(table, error);
		return GH_OK;
	}
	full.positions = overflow_list;
	return relocate_ahead(table, &full, GROUP_MAX, claims, lists->flags, left, error);
}

/* Runs place_kernel; with `left` what it lists may have gone through relocation's first round. */
static GhStatus
place_once(cuda_table *table, const entry_list *list, const place_lists *lists,
		   uint32_t *overflow_list, uint32_t *left, placed_counts *count, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	const counters *told = lane->host_count;
	claim_view	claims = lists->claims;
	uint64_t	placed;
	table_view	view;

	/* keys that prefer by anything but even bounds cannot be found in order */
	for (uint32_t i = 1; i < table->options.subtables; i++)
		if (table->sub[i].buckets != table->sub[0].buckets)
			table->ordered = false;
	view = table_make_view(table);
	/* a short list needs few places */
	while (claims.mask / 2 + 1 >= CLAIM_PLACES_MIN && claims.mask / 2 + 1 >= list->count)
		claims.mask /= 2;
	GH_TRY(lane_count_reset(table, lane, error));
	/* POSITION_NONE has all bits set; the other layouts claim nothing */
	if (values_together(table))
		CUDA_TRY(table, cudaMemsetAsync(claims.holder, 0xff,
										((size_t) claims.mask + 1) * sizeof(uint32_t),
										lane->stream), error);
	LAYOUT_DISPATCH(table, place_kernel<L><<<resident_blocks(table, place_kernel<L>, list->count),
					BLOCK_THREADS, 0, lane->stream>>>(view, *list, claims, lists->flags,
									lists->present + count->present, overflow_list,
									lane->device_count));
	LAUNCH_TRY(table, error);
	GH_TRY(place_ahead(table, list, lists, &claims, overflow_list, left, error));
	GH_TRY(lane_count_read(table, lane, error));
	subtables_add_gains(table, told);
	count->present += told->present;
	count->overflow = told->overflow;
	count->overflow_list = overflow_list;
	count->unclaimed = told->unclaimed != 0;
	placed = told->inserted;
	if (left != nullptr && !count->unclaimed && told->overflow <= GROUP_MAX)
	{
		placed += told->overflow - told->appended;
		count->overflow = told->appended;
		count->overflow_list = left;
	}
	table->keys += placed;
	count->placed += (uint32_t) placed;
	return told->dead > claims.dead_room ? free_busy_slots(table, error) : GH_OK;
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

/*
 * Were keys not placed in a large table that is nearly empty?  That takes more keys of
 * equal hash values than two buckets hold, which growing does not cure.
 */
static bool
growth_is_useless(const cuda_table *table)
{
	uint64_t	slots = table_slots(table);

	return slots > USELESS_SLOTS && table->keys < slots / 8;
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
		uint32_t	placed;

		GH_TRY(relocate_rounds(table, list, lists->flags, lists->spare, &none, error));
		placed = wanted - list->count;
		count->placed += placed;
		table->keys += placed;
		wanted = list->count;
		if (wanted == 0)
			return GH_OK;
		if (growth_is_useless(table))
		{
			/* they may have been in each other's way */
			if (placed > 0)
				continue;
			return gh_error_set(error, GH_TOO_MANY,
								"too many keys share the hash values of a key of the request");
		}
		/* too full for these keys, by chance, below fill_max: grow early */
		table_note_crowded(table, table_slots(table));
		GH_TRY(table_upsize(table, error));
	}
}

/* Places a list for which there is room. */
static GhStatus
place_part(cuda_table *table, const entry_list *list, const place_lists *lists,
		   placed_counts *count, GhError *error)
{
	uint32_t	overflow;
	uint32_t   *overflow_list;
	bool		unclaimed;

	GH_TRY(place_once(table, list, lists, lists->overflow, lists->spare[0], count, error));
	overflow = count->overflow;
	overflow_list = count->overflow_list;
	unclaimed = count->unclaimed;
	for (uint64_t start = 0; start < overflow; start += GROUP_MAX)
	{
		entry_list	full = *list;

		full.positions = overflow_list + start;
		full.count = (uint32_t) (overflow - start < GROUP_MAX ? overflow - start : GROUP_MAX);
		/* keys of the parts before may be among them, and are in the table now */
		if (unclaimed && start > 0)
		{
			GH_TRY(place_once(table, &full, lists, lists->spare[0], nullptr, count, error));
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
	return table_make_room(table, table->keys + lane->host_count->matched, GROW_ALIKE, error);
}

/* Takes out those of a list whose flag is set. */
GhStatus
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
 * table as needed.  After GH_LIMIT, GH_TOO_MANY and GH_NO_MEMORY the table holds what it held.
 */
GhStatus
entries_place(cuda_table *table, const entry_list *list, const place_lists *lists,
			  uint32_t *placed, uint32_t *present, GhError *error)
{
	uint64_t	done = 0;
	uint64_t	crowded_slots = table->crowded_slots;
	uint64_t	crowded_keys = table->crowded_keys;
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
		/* nor does it stay larger for keys that are not there, and that crowded it */
		table->crowded_slots = crowded_slots;
		table->crowded_keys = crowded_keys;
		GH_TRY(table_downsize_if_due(table, false, error));
		count = {};
	}
	*placed = count.placed;
	*present = count.present;
	return status;
}
