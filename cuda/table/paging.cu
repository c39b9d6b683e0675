/*
 * paging.cu
 *		Tables larger than what there is of device memory: the rest of them is in
 *		page-locked memory of the host, which kernels read and write over the bus.
 *
 * Memory of a table's buckets, values and records is a range of addresses.  Where device
 * memory for a whole range is refused, by the table's limit, the budget or the device, the
 * range is made of pieces of one size: device memory as far as it goes, then the host's.
 * Kernels see addresses alone, so every operation is the same wherever a piece is, and
 * what stands in the other files of equal keys, order and failures holds unchanged.  Atomics
 * are those of one device: the host and other devices do not touch such memory.
 *
 * When device memory is there again (the table has shrunk, a subtable's old copy is gone,
 * others gave theirs back), pieces move there (paging_settle): copied, then mapped at the
 * same address, while no kernel of the table runs.
 *
 * Which pieces are where is not chosen by use.  The hash spreads the keys that are used most
 * over all pieces alike, so none is worth more than another; README, "Tables larger than the
 * device's memory", has the figures.  Of their entries the device has copies (hot.cu).
 *
 * The driver maps host memory since CUDA 12.2, and tells so since 12.9.  Where it does not, or the system
 * refuses, such a table is refused memory like any other.
 */
#include <cuda.h>
#include <stdlib.h>

#include "cuda/table/table.h"

/* Both kinds of memory come in multiples of this, at least. */
#define PIECE_BYTES_MIN ((uint64_t) 2 << 20)
/* Pieces of a range, at most. */
#define PIECES_MAX 256

/*
 * Of device memory so much is left for lanes and scratch memory, which are nowhere else: an
 * eighth of what the table holds, and no more than this.
 */
#define HEADROOM_SHARE 8
#define HEADROOM_MAX ((uint64_t) 256 << 20)

/* Since CUDA 12.2, the second one since 12.9; older headers do not name all of them. */
#define ATTRIBUTE_HOST_NUMA_ID ((CUdevice_attribute) 134)
#define ATTRIBUTE_HOST_NUMA_MAPPED ((CUdevice_attribute) 141)
#define LOCATION_HOST_NUMA ((CUmemLocationType) 3)
#define DRIVER_VERSION_MIN 12020

struct paged_piece
{
	CUmemGenericAllocationHandle memory;
	bool		on_host;
	bool		mapped;
};

struct paged_range
{
	paged_range *next;
	CUdeviceptr start;
	uint64_t	piece_bytes;
	uint32_t	count;			/* pieces with memory */
	uint32_t	on_host;		/* of these, those of the host */
	uint32_t	pieces_max;		/* that there are addresses for */
	paged_piece pieces[PIECES_MAX];
};

/* ------------------------------------------------------------ the driver */

/* Functions of the driver, which this library is not linked with. */
struct driver_functions
{
	bool		found;			/* all of them */
	decltype(&cuDeviceGetAttribute) get_attribute;
	decltype(&cuMemGetAllocationGranularity) granularity;
	decltype(&cuMemCreate) create;
	decltype(&cuMemRelease) release;
	decltype(&cuMemAddressReserve) reserve;
	decltype(&cuMemAddressFree) free_addresses;
	decltype(&cuMemMap) map;
	decltype(&cuMemUnmap) unmap;
	decltype(&cuMemSetAccess) set_access;
};

template <typename FUNCTION> static bool
find_function(const char *name, FUNCTION *function)
{
	void	   *found = nullptr;
	cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
	cudaError_t status = cudaGetDriverEntryPointByVersion(name, &found, DRIVER_VERSION_MIN,
														  cudaEnableDefault, &result);
#else
	cudaError_t status = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif

	if (status != cudaSuccess)
		(void) cudaGetLastError();
	*function = reinterpret_cast<FUNCTION>(found);
	return status == cudaSuccess && result == cudaDriverEntryPointSuccess && found != nullptr;
}

static driver_functions
find_functions()
{
	driver_functions driver = {};

	driver.found = find_function("cuDeviceGetAttribute", &driver.get_attribute) &&
		find_function("cuMemGetAllocationGranularity", &driver.granularity) &&
		find_function("cuMemCreate", &driver.create) &&
		find_function("cuMemRelease", &driver.release) &&
		find_function("cuMemAddressReserve", &driver.reserve) &&
		find_function("cuMemAddressFree", &driver.free_addresses) &&
		find_function("cuMemMap", &driver.map) &&
		find_function("cuMemUnmap", &driver.unmap) &&
		find_function("cuMemSetAccess", &driver.set_access);
	return driver;
}

/* C++ sees to it that one thread looks for them. */
static const driver_functions &
driver()
{
	static const driver_functions functions = find_functions();

	return functions;
}

static int
attribute_of(int device, CUdevice_attribute attribute)
{
	int			value = 0;

	return driver().get_attribute(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
}

static CUmemAllocationProp
properties_of(const cuda_table *table, bool on_host)
{
	CUmemAllocationProp properties = {};
	int			node;

	properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	properties.location.id = table->options.device;
	if (on_host)
	{
		node = attribute_of(table->options.device, ATTRIBUTE_HOST_NUMA_ID);
		properties.location.type = LOCATION_HOST_NUMA;
		properties.location.id = node > 0 ? node : 0;
	}
	return properties;
}

/* May memory of the table be in the host's? */
bool
table_pages(const cuda_table *table)
{
	return table->options.pages && driver().found &&
		attribute_of(table->options.device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0 &&
		attribute_of(table->options.device, ATTRIBUTE_HOST_NUMA_MAPPED) != 0;
}

/* ------------------------------------------------------ limits and budgets */

static uint64_t
headroom_of(uint64_t bytes)
{
	return bytes / HEADROOM_SHARE < HEADROOM_MAX ? bytes / HEADROOM_SHARE : HEADROOM_MAX;
}

static uint64_t
headroom(const cuda_table *table)
{
	return headroom_of(table->stats.bytes + table->stats.bytes_paged);
}

/* What the device has free, beside the headroom; asking takes a while. */
uint64_t
device_free_bytes(const cuda_table *table)
{
	size_t		memory_free = 0;
	size_t		memory_total = 0;
	uint64_t	kept = headroom(table);

	if (cudaMemGetInfo(&memory_free, &memory_total) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return 0;
	}
	memory_free += pool_kept();
	return memory_free > kept ? memory_free - kept : 0;
}

/* The same where so much is wanted: what is only kept for later goes before anything pages. */
static uint64_t
device_bytes_for(const cuda_table *table, uint64_t wanted)
{
	uint64_t	bytes = device_free_bytes(table);

	return bytes < wanted && device_give_spare() ? device_free_bytes(table) : bytes;
}

/*
 * Takes so many bytes from the budget of device memory, if the headroom is left, and that much
 * for others.
 */
static bool
take_with_headroom(const cuda_table *table, uint64_t bytes, uint64_t others)
{
	uint64_t	kept = headroom(table) + others;

	if (!device_fits(table, bytes + kept) || !budget_take(&table->host, bytes + kept))
		return false;
	if (kept > 0)
		budget_give(&table->host, kept);
	return true;
}

/*
 * Is there so much device memory beside what lanes have and may still have?  That is what was left when
 * the device's memory was used up, before anything was paged.
 */
bool
paging_has(const cuda_table *table, uint64_t bytes)
{
	uint64_t	kept = headroom_of(table->stats.bytes);
	uint64_t	lanes = 0;

	for (int i = 0; i < LANES; i++)
		lanes += table->lanes[i].bytes;
	bytes += lanes < kept ? kept - lanes : 0;
	if (!device_fits(table, bytes) || !budget_take(&table->host, bytes))
		return false;
	budget_give(&table->host, bytes);
	return device_bytes_for(table, bytes) >= bytes;
}

static bool
take_host(const cuda_table *table, uint64_t bytes)
{
	return table->host.take_host == nullptr || table->host.take_host(table->host.ctx, bytes);
}

static void
give_host(const cuda_table *table, uint64_t bytes)
{
	if (table->host.give_host != nullptr)
		table->host.give_host(table->host.ctx, bytes);
}

/* ------------------------------------------------------------------ pieces */

static void
piece_count(cuda_table *table, uint64_t bytes, bool on_host)
{
	GhTableStats *stats = &table->stats;

	if (on_host)
		stats->bytes_paged += bytes;
	else
		stats->bytes += bytes;
	if (stats->bytes > stats->bytes_peak)
		stats->bytes_peak = stats->bytes;
}

static void
piece_uncount(cuda_table *table, uint64_t bytes, bool on_host)
{
	if (on_host)
	{
		table->stats.bytes_paged -= bytes;
		give_host(table, bytes);
	}
	else
	{
		table->stats.bytes -= bytes;
		budget_give(&table->host, bytes);
	}
}

/* Memory for a piece, counted; it is mapped nowhere.  The device's is taken already. */
static GhStatus
piece_create(cuda_table *table, uint64_t bytes, bool on_host, paged_piece *piece, GhError *error)
{
	CUmemAllocationProp properties = properties_of(table, on_host);
	CUresult	result;

	*piece = {};
	if (on_host && !take_host(table, bytes))
		return gh_error_set(error, GH_LIMIT,
							"neither the device memory for all tables nor the host's for tables that are larger allows %llu more bytes",
							(unsigned long long) bytes);
	piece_count(table, bytes, on_host);
	result = allocation_fault() ? CUDA_ERROR_OUT_OF_MEMORY :
		driver().create(&piece->memory, bytes, &properties, 0);
	if (result == CUDA_SUCCESS)
	{
		piece->on_host = on_host;
		return GH_OK;
	}
	piece_uncount(table, bytes, on_host);
	return gh_error_set(error, GH_NO_MEMORY, "there are no %llu bytes of %s memory",
						(unsigned long long) bytes, on_host ? "page-locked" : "device");
}

static bool
place_map(const cuda_table *table, CUdeviceptr place, uint64_t bytes,
		  CUmemGenericAllocationHandle memory)
{
	CUmemAccessDesc access = {};

	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location.id = table->options.device;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	if (driver().map(place, bytes, 0, memory, 0) != CUDA_SUCCESS)
		return false;
	if (driver().set_access(place, bytes, &access, 1) == CUDA_SUCCESS)
		return true;
	(void) driver().unmap(place, bytes);
	return false;
}

static CUdeviceptr
piece_place(const paged_range *range, uint32_t number)
{
	return range->start + number * range->piece_bytes;
}

/* ------------------------------------------------------------------ ranges */

/* No kernel uses it. */
static void
range_free(cuda_table *table, paged_range *range)
{
	for (uint32_t i = 0; i < range->count; i++)
	{
		paged_piece *piece = &range->pieces[i];

		if (piece->mapped)
			(void) driver().unmap(piece_place(range, i), range->piece_bytes);
		(void) driver().release(piece->memory);
		piece_uncount(table, range->piece_bytes, piece->on_host);
	}
	if (range->start != 0)
		(void) driver().free_addresses(range->start, range->pieces_max * range->piece_bytes);
	free(range);
}

/* The next piece: on the device while *device_bytes, which it lowers, and the budget last. */
static GhStatus
range_extend(cuda_table *table, paged_range *range, uint64_t *device_bytes, GhError *error)
{
	paged_piece *piece = &range->pieces[range->count];
	uint64_t	bytes = range->piece_bytes;
	GhStatus	status = GH_LIMIT;

	if (*device_bytes >= bytes && take_with_headroom(table, bytes, hot_bytes_wanted(table, 0)))
	{
		status = piece_create(table, bytes, false, piece, error);
		*device_bytes -= bytes;
	}
	if (status != GH_OK)
	{
		*device_bytes = 0;
		GH_TRY(piece_create(table, bytes, true, piece, error));
	}
	piece->mapped = place_map(table, piece_place(range, range->count), bytes, piece->memory);
	range->on_host += piece->on_host ? 1 : 0;
	range->count++;
	return piece->mapped ? GH_OK :
		gh_error_set(error, GH_NO_MEMORY, "memory cannot be mapped on CUDA device %d", table->options.device);
}

static GhStatus
range_create(cuda_table *table, uint64_t bytes, void **memory, GhError *error)
{
	paged_range *range = static_cast<paged_range *>(calloc(1, sizeof(paged_range)));
	uint64_t	unit = PIECE_BYTES_MIN;
	uint64_t	device_bytes = device_bytes_for(table, bytes);
	uint64_t	copies = hot_bytes_wanted(table, device_bytes);
	GhStatus	status = GH_OK;

	/* what copies of entries take is beside what it has */
	device_bytes -= copies < device_bytes ? copies : device_bytes;
	if (range == nullptr)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a table's handle");
	for (int on_host = 0; on_host <= 1; on_host++)
	{
		CUmemAllocationProp properties = properties_of(table, on_host != 0);
		size_t		granularity = 0;

		if (driver().granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS)
			status = gh_error_set(error, GH_NO_MEMORY, "memory cannot be mapped on CUDA device %d", table->options.device);
		while (granularity > unit)
			unit *= 2;
	}
	range->piece_bytes = ((bytes + PIECES_MAX - 1) / PIECES_MAX + unit - 1) / unit * unit;
	range->pieces_max = (uint32_t) ((bytes + range->piece_bytes - 1) / range->piece_bytes);
	if (status == GH_OK && driver().reserve(&range->start, range->pieces_max * range->piece_bytes, 0, 0, 0) != CUDA_SUCCESS)
	{
		range->start = 0;
		status = gh_error_set(error, GH_NO_MEMORY, "there are no addresses for %llu bytes", (unsigned long long) bytes);
	}
	while (status == GH_OK && range->count < range->pieces_max)
		status = range_extend(table, range, &device_bytes, error);
	if (status != GH_OK)
	{
		range_free(table, range);
		return status;
	}
	range->next = table->paged;
	table->paged = range;
	*memory = reinterpret_cast<void *>(range->start);
	return GH_OK;
}

/*
 * Memory for what a table holds: the device's or, where that is refused and the table may, in
 * part or in whole the host's.
 */
GhStatus
table_alloc(cuda_table *table, uint64_t bytes, void **memory, GhError *error)
{
	GhStatus	status = GH_LIMIT;

	if (!table_pages(table))
		return device_alloc(table, bytes, memory, error);
	*memory = nullptr;
	if (take_with_headroom(table, bytes, 0))
	{
		budget_give(&table->host, bytes);
		if (bytes < PIECE_BYTES_MIN || device_bytes_for(table, bytes) >= bytes)
			status = device_alloc(table, bytes, memory, error);
	}
	if (status != GH_LIMIT && status != GH_NO_MEMORY)
		return status;
	return range_create(table, bytes, memory, error);
}

/* Frees what table_alloc gave, if it is in pieces; false: it is not. */
bool
paging_free(cuda_table *table, void *memory)
{
	for (paged_range **link = &table->paged; *link != nullptr; link = &(*link)->next)
	{
		paged_range *range = *link;
		cudaError_t status;

		if (range->start != reinterpret_cast<CUdeviceptr>(memory))
			continue;
		*link = range->next;
		/* as cudaFree does: kernels in flight keep what they use */
		status = cudaDeviceSynchronize();
		if (status != cudaSuccess)
			(void) table_failed(table, status, "cudaDeviceSynchronize", nullptr);
		range_free(table, range);
		return true;
	}
	return false;
}

/* Of so many bytes from there on, those in the host's memory. */
uint64_t
paging_bytes(const cuda_table *table, const void *memory)
{
	for (const paged_range *range = table->paged; range != nullptr; range = range->next)
		if (range->start == reinterpret_cast<CUdeviceptr>(memory))
			return range->on_host * range->piece_bytes;
	return 0;
}

/*
 * Bytes from there on that are on the device: of a range it has the first pieces, for the device's memory is
 * used up before any of the host's, and moves begin in front.
 */
uint64_t
paging_near_bytes(const cuda_table *table, const void *memory)
{
	for (const paged_range *range = table->paged; range != nullptr; range = range->next)
		if (range->start == reinterpret_cast<CUdeviceptr>(memory))
			return (range->count - range->on_host) * range->piece_bytes;
	return UINT64_MAX;
}

/* ------------------------------------------------------------ copies, moves */

static __global__ void __launch_bounds__(BLOCK_THREADS)
copy_kernel(uint4 *to, const uint4 *from, uint64_t units)
{
	for (uint64_t i = ELEMENT; i < units; i += (uint64_t) gridDim.x * blockDim.x)
		to[i] = from[i];
}

/*
 * Copies within what table_alloc gave, on lane 0's stream; both begin at multiples of 16.
 * Copies by address need not look at what memory is where: a kernel does them where a range
 * is of both kinds.
 */
GhStatus
paging_copy(cuda_table *table, void *to, const void *from, uint64_t bytes, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	uint64_t	units = table->paged == nullptr ? 0 : bytes / sizeof(uint4);
	uint64_t	done = units * sizeof(uint4);

	if (units > 0)
	{
		copy_kernel<<<resident_blocks(table, copy_kernel, units), BLOCK_THREADS, 0, stream>>>(
			static_cast<uint4 *>(to), static_cast<const uint4 *>(from), units);
		LAUNCH_TRY(table, error);
	}
	if (bytes > done)
		CUDA_TRY(table, cudaMemcpyAsync(static_cast<char *>(to) + done, static_cast<const char *>(from) + done,
										bytes - done, cudaMemcpyDefault, stream), error);
	return GH_OK;
}

/* Puts other memory in the place of a piece, with its content there already. */
static GhStatus
piece_replace(cuda_table *table, paged_range *range, uint32_t number, paged_piece *other, GhError *error)
{
	paged_piece *piece = &range->pieces[number];
	CUdeviceptr place = piece_place(range, number);
	uint64_t	bytes = range->piece_bytes;

	if (driver().unmap(place, bytes) != CUDA_SUCCESS)
		return GH_NO_MEMORY;
	if (!place_map(table, place, bytes, other->memory))
	{
		/* the old one is where it was or, should that be refused, nowhere */
		if (place_map(table, place, bytes, piece->memory))
			return GH_NO_MEMORY;
		piece->mapped = false;
		return table_failed(table, cudaErrorMapBufferObjectFailed, "cuMemMap", error);
	}
	(void) driver().release(piece->memory);
	piece_uncount(table, bytes, true);
	range->on_host--;
	*piece = *other;
	piece->mapped = true;
	return GH_OK;
}

/* Moves a piece to device memory, which is taken; what is refused is no error but GH_NO_MEMORY. */
static GhStatus
piece_move(cuda_table *table, paged_range *range, uint32_t number, GhError *error)
{
	uint64_t	bytes = range->piece_bytes;
	CUdeviceptr scratch = 0;
	paged_piece made;
	GhStatus	status;

	GH_TRY(piece_create(table, bytes, false, &made, error));
	status = driver().reserve(&scratch, bytes, 0, 0, 0) == CUDA_SUCCESS ? GH_OK : GH_NO_MEMORY;
	if (status == GH_OK && place_map(table, scratch, bytes, made.memory))
	{
		cudaError_t copied;

		status = paging_copy(table, reinterpret_cast<void *>(scratch),
							 reinterpret_cast<const void *>(piece_place(range, number)), bytes, error);
		copied = cudaStreamSynchronize(table->lanes[0].stream);
		if (status == GH_OK && copied != cudaSuccess)
			status = table_failed(table, copied, "cudaStreamSynchronize", error);
		(void) driver().unmap(scratch, bytes);
	}
	else
		status = GH_NO_MEMORY;
	if (scratch != 0)
		(void) driver().free_addresses(scratch, bytes);
	if (status == GH_OK)
		status = piece_replace(table, range, number, &made, error);
	if (status != GH_OK)
	{
		(void) driver().release(made.memory);
		piece_uncount(table, bytes, false);
	}
	return status;
}

/* Moves to the device what it has memory for. */
static GhStatus
pieces_settle(cuda_table *table, GhError *error)
{
	uint64_t	device_bytes = device_free_bytes(table);
	uint64_t	copies = hot_bytes_wanted(table, 0);

	device_bytes -= copies < device_bytes ? copies : device_bytes;
	for (paged_range *range = table->paged; range != nullptr; range = range->next)
		for (uint32_t i = 0; i < range->count && range->on_host > 0; i++)
		{
			GhStatus	status;
			GhError		why;

			if (!range->pieces[i].on_host)
				continue;
			if (stop_seen(table) || device_bytes < range->piece_bytes ||
				!take_with_headroom(table, range->piece_bytes, hot_bytes_wanted(table, 0)))
				return GH_OK;
			device_bytes -= range->piece_bytes;
			status = piece_move(table, range, i, &why);
			if (status == GH_DEVICE_ERROR)
			{
				*error = why;
				return status;
			}
			if (status != GH_OK)
				return GH_OK;
		}
	return GH_OK;
}

/*
 * Device memory that is there is used: first for copies of the entries that are used most (hot.cu).  No
 * kernel of the table runs.  An error is the device's failure alone.
 */
GhStatus
paging_settle(cuda_table *table, GhError *error)
{
	GH_TRY(hot_settle(table, error));
	if (table->stats.bytes_paged == 0)
		return GH_OK;
	GH_TRY(pieces_settle(table, error));
	/* nothing may be paged any more */
	return table->stats.bytes_paged == 0 ? hot_settle(table, error) : GH_OK;
}

/* Keys of a piece or slice: few where their buckets are read over the bus, for the stop flag. */
uint64_t
paging_keys(const cuda_table *table, uint64_t most)
{
	return table->stats.bytes_paged > 0 && most > PAGED_KEYS_MAX ? PAGED_KEYS_MAX : most;
}

/*
 * Of so many keys in the order of regions, those that a kernel has.  Of a large kernel those are on their
 * way that multiprocessors have room for, which are near enough to each other unless very much is paged.
 */
uint32_t
paging_wave(const cuda_table *table, uint32_t keys)
{
	return table->stats.bytes_paged > PAGED_WIDE && keys > PAGED_WAVE ? PAGED_WAVE : keys;
}
