/*
 * insert.cu
 *		INSERT, UPSERT and EXCHANGE: one slice of a batch.
 *
 * The outcome must be that of doing the positions one after the other; only the
 * order of an exchange's chain is left to chance.  All positions are placed at once
 * (place.cu), which tells which of them brought a new key, and lists those that
 * found their key there, be it an old one or another position's.  With keys that
 * are new and all different that is the whole work.  Otherwise the listed
 * positions are settled:
 *
 *	INSERT		of equal new keys the first position's value is to stay.  The listed
 *			ones are grouped by key; a position that placed its key looks into the
 *			group whether there is an earlier one, and if so hands over.
 *	UPSERT		the last position's value is to stay: the largest of each group, and
 *			of the position that placed the key, if it is of this slice.
 *	EXCHANGE	each listed position swaps its value with the slot's, one atomic.
 */
#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

struct insert_scratch
{
	place_lists lists;
	group_view	listed;			/* of present positions, up to GROUP_MAX */
};

/* The group of a key that may have none; its place, or NONE. */
template <typename L> static __device__ __forceinline__ uint32_t
group_look(const entry_list &list, const group_view &group, uint64_t seed,
		   typename L::key_type key)
{
	uint32_t	place = (uint32_t) hash_key(seed, key) & group.mask;

	for (;;)
	{
		uint32_t	holder = group.first[place];

		if (holder == POSITION_NONE)
			return POSITION_NONE;
		if (list_key<L>(list, holder) == key)
			return place;
		place = (place + 1) & group.mask;
	}
}

/*
 * INSERT: positions that placed their key hand it over to an earlier one of the
 * group, with the flag; the value they placed is replaced by the earlier one's.
 */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
hand_over_kernel(const __grid_constant__ table_view view, entry_list list,
				 group_view group, uint8_t *flags)
{
	uint64_t	i = ELEMENT;
	uint32_t	place = POSITION_NONE;
	uint32_t	earlier = POSITION_NONE;
	typename L::key_type key = 0;
	entry_place entry;

	if (i < list.count && flags[i] != 0)
	{
		key = list_key<L>(list, (uint32_t) i);
		place = group_look<L>(list, group, view.seed, key);
		if (place != POSITION_NONE && group.first[place] < i)
			earlier = group.first[place];
	}
	entry = warp_locate<L>(view, key, earlier != POSITION_NONE && view.value_size != 0);
	warp_copy_values(entry.found, entry.value,
					 list.values + (uint64_t) earlier * view.value_size, view.value_size);
	if (earlier != POSITION_NONE)
	{
		/* nobody else looks at these two: the one is the leader, the other placed the key */
		flags[i] = 0;
		flags[earlier] = 1;
	}
}

/* UPSERT: positions that placed their key count among the group's. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
join_group_kernel(entry_list list, group_view group, uint64_t seed, const uint8_t *flags)
{
	uint64_t	i = ELEMENT;

	if (i < list.count && flags[i] != 0)
	{
		uint32_t	place = group_look<L>(list, group, seed,
										  list_key<L>(list, (uint32_t) i));

		if (place != POSITION_NONE)
			atomicMax(&group.last[place], (uint32_t) i);
	}
}

/* UPSERT: the leader of each group stores the last position's value. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
settle_kernel(const __grid_constant__ table_view view, entry_list present,
			  group_view group)
{
	uint64_t	i = ELEMENT;
	bool		listed = i < present.count;
	uint32_t	position = listed ? list_position(present, i) : 0;
	uint32_t	place = listed ? group.place[i] : 0;
	bool		leader = listed && group.first[place] == position;
	entry_place entry = warp_locate<L>(view,
									   leader ? list_key<L>(present, position) : 0, leader);

	warp_copy_values(entry.found, entry.value,
					 present.values + (leader ? (uint64_t) group.last[place] : 0) *
					 view.value_size, view.value_size);
}

/* EXCHANGE: swaps with the slot's value, which is one word. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
swap_kernel(const __grid_constant__ table_view view, entry_list present, char *values_out)
{
	uint64_t	i = ELEMENT;
	bool		listed = i < present.count;
	uint32_t	position = listed ? list_position(present, i) : 0;
	entry_place entry = warp_locate<L>(view,
									   listed ? list_key<L>(present, position) : 0, listed);

	if (!entry.found)
		return;
	if (view.value_size == 4)
		reinterpret_cast<uint32_t *>(values_out)[position] =
			exchange(reinterpret_cast<uint32_t *>(entry.value),
					 reinterpret_cast<const uint32_t *>(present.values)[position]);
	else
		reinterpret_cast<uint64_t *>(values_out)[position] =
			exchange(reinterpret_cast<uint64_t *>(entry.value),
					 reinterpret_cast<const uint64_t *>(present.values)[position]);
}

/* EXCHANGE: what those that brought a new key replace. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
absent_values_kernel(const uint8_t *flags, uint32_t count, char *values_out,
					 uint64_t absent, uint32_t value_size)
{
	uint64_t	i = ELEMENT;

	if (i < count && flags[i] != 0)
		value_from_word(values_out + i * value_size, absent, value_size);
}

static size_t
insert_carve(void *base, uint64_t keys, insert_scratch *scratch)
{
	carver		carver = {static_cast<char *>(base), 0};

	place_carve(&carver, keys, &scratch->lists);
	scratch->listed = group_carve(&carver, keys < GROUP_MAX ? keys : GROUP_MAX, GROUP_LAST);
	return carver.used;
}

static size_t
insert_bytes(const cuda_table *table, uint64_t keys)
{
	insert_scratch scratch;

	(void) table;
	return insert_carve(nullptr, keys, &scratch);
}

/*
 * INSERT: the present positions in parts that can be grouped; each may only make
 * the position that holds a key an earlier one.
 */
static GhStatus
settle_insert(cuda_table *table, const entry_list *list, const insert_scratch *scratch,
			  uint32_t present, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;

	for (uint64_t start = 0; start < present; start += GROUP_MAX)
	{
		entry_list	part = *list;

		part.positions = scratch->lists.present + start;
		part.count = (uint32_t) (present - start < GROUP_MAX ? present - start : GROUP_MAX);
		GH_TRY(group_positions(table, &part, &scratch->listed, GROUP_FIRST, error));
		LAYOUT_DISPATCH(table, hand_over_kernel<L><<<blocks_for(list->count),
						BLOCK_THREADS, 0, stream>>>(table_make_view(table), *list,
													scratch->listed,
													scratch->lists.flags));
		LAUNCH_TRY(table, error);
	}
	return GH_OK;
}

/* UPSERT: the slice is no longer than what can be grouped at a time. */
static GhStatus
settle_upsert(cuda_table *table, const entry_list *list, const insert_scratch *scratch,
			  uint32_t present, uint32_t placed, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	entry_list	part = *list;

	part.positions = scratch->lists.present;
	part.count = present;
	GH_TRY(group_positions(table, &part, &scratch->listed, GROUP_LAST, error));
	if (placed > 0)
	{
		LAYOUT_DISPATCH(table, join_group_kernel<L><<<blocks_for(list->count),
						BLOCK_THREADS, 0, stream>>>(*list, scratch->listed,
													table->options.seed,
													scratch->lists.flags));
		LAUNCH_TRY(table, error);
	}
	LAYOUT_DISPATCH(table, settle_kernel<L><<<blocks_for(present), BLOCK_THREADS, 0,
					stream>>>(table_make_view(table), part, scratch->listed));
	LAUNCH_TRY(table, error);
	return GH_OK;
}

static GhStatus
settle_exchange(cuda_table *table, const slice_io *slice, const entry_list *list,
				const insert_scratch *scratch, uint32_t present, uint64_t absent,
				GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	entry_list	part = *list;

	absent_values_kernel<<<blocks_for(slice->count), BLOCK_THREADS, 0, stream>>>(
		slice->flags, slice->count, slice->values_out, absent, table->options.value_size);
	LAUNCH_TRY(table, error);
	if (present == 0)
		return GH_OK;
	part.positions = scratch->lists.present;
	part.count = present;
	LAYOUT_DISPATCH(table, swap_kernel<L><<<blocks_for(present), BLOCK_THREADS, 0,
					stream>>>(table_make_view(table), part, slice->values_out));
	LAUNCH_TRY(table, error);
	return GH_OK;
}

/* Nothing after entries_place fails but by the device's failure. */
static GhStatus
insert_run(cuda_table *table, GhRequest *request, const slice_io *slice, GhError *error)
{
	insert_scratch scratch = {};
	entry_list	list = {slice->keys, slice->values, nullptr, slice->count};
	bool		has_values = table->options.value_size != 0;
	uint32_t	placed;
	uint32_t	present;

	(void) insert_carve(slice->scratch, slice->count, &scratch);
	scratch.lists.flags = slice->flags;
	GH_TRY(entries_place(table, &list, &scratch.lists, &placed, &present, error));

	if (request->op == GH_EXCHANGE)
		GH_TRY(settle_exchange(table, slice, &list, &scratch, present, request->absent,
							   error));
	else if (request->op == GH_UPSERT && present > 0 && has_values)
		GH_TRY(settle_upsert(table, &list, &scratch, present, placed, error));
	else if (request->op == GH_INSERT && present > 0 && placed > 0 &&
			 (has_values || request->flags_out != nullptr))
		GH_TRY(settle_insert(table, &list, &scratch, present, error));
	request->outcome.inserted += placed;
	if (request->op != GH_INSERT)
		request->outcome.replaced += present;
	return GH_OK;
}

const slice_operation insert_operation = {insert_bytes, insert_run, DEVICE_SLICE_MAX};
/* all of a slice's positions may have to be grouped at once */
const slice_operation upsert_operation = {insert_bytes, insert_run, GROUP_MAX};
