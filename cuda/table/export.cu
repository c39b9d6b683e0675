/*
 * export.cu
 *		Copying a table out, entry by entry, to host memory.
 *
 * The cursor's position counts the slots of the subtables, one after the other,
 * and then those of the side bucket; its value counts the values of a multi
 * table's key that are through.  A window of slots says how many entries each
 * has, prefix sums tell where each entry goes, and one thread per entry finds its
 * slot by bisecting them.  What does not fit cuts the window short: at a
 * slot, or within the values of one.
 */
#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

/* Slots of a window, and what its entries may take. */
#define EXPORT_SLOTS ((uint64_t) 1 << 18)
#define EXPORT_BYTES ((uint64_t) 8 << 20)
/* A window and entries that fit lane 0 whatever the memory's state. */
#define EXPORT_MIN ((uint64_t) 32)

/* Slots of a subtable, or of the side bucket, and where their entries go. */
struct export_window
{
	uint32_t	sub;			/* view.subtables: the side bucket */
	uint64_t	first;			/* slot */
	uint64_t	slots;
	uint64_t	skip;			/* values of the first slot's key that are through */
	const value_record *records;	/* of a multi table; NULL: a key has one value */
	uint64_t	room;			/* entries */
	uint64_t   *sums;			/* slots + 1 */
	void	   *keys;			/* room */
	char	   *values;			/* room, of value_size bytes; NULL in a set */
	uint32_t	value_size;
};

/* Where a window ends. */
struct export_cut
{
	uint64_t	entries;
	uint64_t	slot;			/* of the window: the first that is not through */
	uint64_t	value;			/* its values that are, those of this window */
};

/* An entry's slot: its key and where its value is. */
template <typename KEY>
struct export_slot
{
	bool		there;
	KEY			key;
	const char *value;
};

template <typename L> static __device__ __forceinline__ export_slot<typename L::key_type>
window_slot(const table_view &view, const export_window &window, uint64_t i)
{
	typedef typename L::word_type word_type;
	export_slot<typename L::key_type> slot;
	uint64_t	number = window.first + i;

	if (window.sub == view.subtables)
	{
		slot.there = view.side_present[number] != 0;
		/* what side_index computes, backwards */
		slot.key = (typename L::key_type) (L::empty_key - number);
		slot.value = side_value(view, (uint32_t) number);
	}
	else
	{
		char	   *place = view.sub[window.sub].slots + number * L::slot_bytes;

		slot.key = L::key_of(*reinterpret_cast<const word_type *>(place));
		slot.there = !L::special(slot.key);
		slot.value = slot_value<L>(view, window.sub, place);
	}
	return slot;
}

/* The record of a multi table's slot. */
template <typename L> static __device__ __forceinline__ const value_record &
slot_record(const export_window &window, const char *value)
{
	return window.records[*reinterpret_cast<const typename L::key_type *>(value)];
}

/* Element i + 1 of the sums becomes slot i's number of entries, element 0 is 0. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
census_kernel(const __grid_constant__ table_view view, export_window window)
{
	uint64_t	i = ELEMENT;
	uint64_t	entries = 0;

	if (i >= window.slots)
		return;

	export_slot<typename L::key_type> slot = window_slot<L>(view, window, i);

	if (slot.there)
	{
		uint64_t	skip = i == 0 ? window.skip : 0;

		entries = window.records == nullptr ? 1 :
			slot_record<L>(window, slot.value).count;
		entries = entries > skip ? entries - skip : 0;
	}
	window.sums[i + 1] = entries;
	if (i == 0)
		window.sums[0] = 0;
}

/* One thread: how far the room goes. */
static __global__ void
cut_kernel(export_window window, export_cut *cut)
{
	cut->entries = window.sums[window.slots];
	cut->slot = window.slots;
	cut->value = 0;
	if (cut->entries > window.room)
	{
		cut->entries = window.room;
		cut->slot = owner_of(window.sums, window.slots, window.room);
		cut->value = window.room - window.sums[cut->slot];
	}
}

/* One thread per entry. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
entries_kernel(const __grid_constant__ table_view view, export_window window,
			   uint64_t entries)
{
	typedef typename L::key_type key_type;
	uint64_t	i = ELEMENT;
	bool		listed = i < entries;
	const char *value = nullptr;

	if (listed)
	{
		uint64_t	owner = owner_of(window.sums, window.slots, i);
		export_slot<key_type> slot = window_slot<L>(view, window, owner);

		static_cast<key_type *>(window.keys)[i] = slot.key;
		value = slot.value;
		if (window.records != nullptr)
			value = slot_record<L>(window, slot.value).start +
				(i - window.sums[owner] + (owner == 0 ? window.skip : 0)) *
				window.value_size;
	}
	if (window.values != nullptr)
		warp_copy_values(listed, window.values + i * window.value_size, value,
						 window.value_size);
}

/* ------------------------------------------------------------------ the host */

/* A window's memory in lane 0. */
struct export_memory
{
	export_cut *cut;
	void	   *scan_space;
	size_t		scan_bytes;
};

/* Cuts a buffer, or with a NULL base only adds up. */
static size_t
export_carve(const cuda_table *table, void *base, uint64_t slots, uint64_t room,
			 export_window *window, export_memory *memory)
{
	carver		carver = {static_cast<char *>(base), 0};

	window->room = room;
	window->value_size = table->options.value_size;
	window->sums = carver.array<uint64_t>(slots + 1);
	window->keys = carver.take(room * table->options.key_size);
	window->values = nullptr;
	if (window->value_size != 0)
		window->values = carver.array<char>(room * window->value_size);
	memory->cut = carver.array<export_cut>(1);
	memory->scan_bytes = scan_space_bytes(slots + 1);
	memory->scan_space = carver.take(memory->scan_bytes);
	return carver.used;
}

/*
 * Gets memory for a window of up to that many slots and entries; both may be
 * lowered to what there is.
 */
static GhStatus
export_reserve(cuda_table *table, uint64_t room, export_window *window,
			   export_memory *memory, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	most = EXPORT_BYTES / (table->options.key_size + table->options.value_size);

	if (room > most)
		room = most;
	for (;;)
	{
		size_t		bytes = export_carve(table, nullptr, window->slots, room, window, memory);
		GhStatus	status = lane_reserve(table, lane, bytes);

		if (status == GH_OK)
			break;
		/* the first failure tells why */
		if (status == GH_DEVICE_ERROR)
			return table_failed(table, cudaErrorUnknown, "cudaMalloc", error);
		if (window->slots <= EXPORT_MIN && room <= EXPORT_MIN)
			return gh_error_set(error, status, "no device memory for an export");
		if (window->slots > EXPORT_MIN)
			window->slots /= 2;
		if (room > EXPORT_MIN)
			room /= 2;
	}
	(void) export_carve(table, lane->buffer, window->slots, room, window, memory);
	return GH_OK;
}

/* The slots from the cursor on, up to the end of their subtable; false: none are left. */
static bool
export_place(const cuda_table *table, const GhCursor *cursor, export_window *window)
{
	uint64_t	number = cursor->position;
	uint32_t	d = table->options.subtables;

	window->skip = cursor->value;
	window->records = table_records(table);
	for (window->sub = 0; window->sub <= d; window->sub++)
	{
		uint64_t	slots = window->sub == d ? SIDE_SLOTS :
			table->sub[window->sub].buckets * table->bucket_slots;

		if (number < slots)
		{
			window->first = number;
			window->slots = slots - number < EXPORT_SLOTS ? slots - number : EXPORT_SLOTS;
			return true;
		}
		number -= slots;
	}
	return false;
}

/* Copies a window's entries to lane 0's memory.  Waits for the device. */
static GhStatus
export_gather(cuda_table *table, const export_window *window, const export_memory *memory,
			  export_cut *cut, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	cudaStream_t stream = lane->stream;

	LAYOUT_DISPATCH(table, census_kernel<L><<<blocks_for(window->slots), BLOCK_THREADS, 0,
					stream>>>(table_make_view(table), *window));
	LAUNCH_TRY(table, error);
	GH_TRY(scan_sums(table, lane, window->sums, window->slots + 1, memory->scan_space,
					 memory->scan_bytes, error));
	cut_kernel<<<1, 1, 0, stream>>>(*window, memory->cut);
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, cudaMemcpyAsync(cut, memory->cut, sizeof(export_cut),
									cudaMemcpyDeviceToHost, stream), error);
	CUDA_TRY(table, cudaStreamSynchronize(stream), error);
	if (cut->entries == 0)
		return GH_OK;
	LAYOUT_DISPATCH(table, entries_kernel<L><<<blocks_for(cut->entries), BLOCK_THREADS, 0,
					stream>>>(table_make_view(table), *window, cut->entries));
	LAUNCH_TRY(table, error);
	return GH_OK;
}

/* One window: moves the cursor on, and adds to *count. */
static GhStatus
export_step(cuda_table *table, GhCursor *cursor, uint64_t room, char *keys, char *values,
			uint64_t *count, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint32_t	key_size = table->options.key_size;
	uint32_t	value_size = table->options.value_size;
	export_window window = {};
	export_memory memory = {};
	export_cut	cut = {};

	if (!export_place(table, cursor, &window))
	{
		cursor->finished = true;
		return GH_OK;
	}
	GH_TRY(export_reserve(table, room, &window, &memory, error));
	GH_TRY(export_gather(table, &window, &memory, &cut, error));
	if (cut.entries > 0)
	{
		GH_TRY(lane_copy_out(table, lane, keys + *count * key_size, window.keys,
							 cut.entries * key_size, error));
		if (value_size != 0)
			GH_TRY(lane_copy_out(table, lane, values + *count * value_size, window.values,
								 cut.entries * value_size, error));
		CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
	}
	/* still within the slot that the window began with: what was through stays so */
	cursor->value = cut.value + (cut.slot == 0 ? window.skip : 0);
	cursor->position += cut.slot;
	*count += cut.entries;
	return GH_OK;
}

GhStatus
cuda_table_export(GhTable *handle, GhCursor *cursor, uint64_t capacity, void *keys,
				  void *values, uint64_t *count, GhError *error)
{
	cuda_table *table = reinterpret_cast<cuda_table *>(handle);
	uint64_t	before = UINT64_MAX;

	*count = 0;
	if (table->rows != nullptr)
		return gh_made_refuse(error);
	GH_TRY(table_enter(table, error));
	if (capacity > 0 &&
		(keys == nullptr || (values == nullptr && table->options.value_size != 0)))
		return gh_error_set(error, GH_INVALID, "an export has no room for keys or values");
	/*
	 * A bounded window at a time, for the stop flag.  Without any room the cursor passes
	 * free slots, up to an entry: who had room for just all entries comes to the end.
	 */
	while (!cursor->finished &&
		   (*count < capacity || (capacity == 0 && cursor->position != before)))
	{
		GhStatus	status;

		before = cursor->position;
		status = stop_seen(table) ?
			gh_error_set(error, GH_STOPPED, "the export was stopped") :
			export_step(table, cursor, capacity - *count, static_cast<char *>(keys),
						static_cast<char *>(values), count, error);

		/* the cursor has passed what came already: the next call may fail instead */
		if (status != GH_OK)
			return *count > 0 && status != GH_DEVICE_ERROR ? GH_OK : status;
	}
	return GH_OK;
}
