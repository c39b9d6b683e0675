/*
 * device.cu
 *		Devices, page-locked host memory, device memory under the table's limit and
 *		the budget it shares with others, and what a failed CUDA call means.
 */
#include <atomic>
#include <string.h>

#include "cuda/table/table.h"

/* A kernel of this library, to ask whether it was built for a device. */
static __global__ void
probe_kernel(uint32_t *nothing)
{
	if (nothing != nullptr)
		*nothing = 0;
}

GhStatus
device_count(int *count, GhError *error)
{
	cudaError_t status;

	*count = 0;
	status = cudaGetDeviceCount(count);
	if (status != cudaSuccess || *count <= 0)
	{
		*count = 0;
		(void) cudaGetLastError();
		return gh_error_set(error, GH_UNAVAILABLE, "no usable CUDA device: %s",
							cudaGetErrorString(status == cudaSuccess ?
											   cudaErrorNoDevice : status));
	}
	return GH_OK;
}

/* What CUDA says of a device that it was to make current, or to open. */
static GhStatus
usable(int device, cudaError_t status, GhError *error)
{
	if (status == cudaSuccess)
		return GH_OK;
	(void) cudaGetLastError();
	return gh_error_set(error, GH_UNAVAILABLE, "CUDA device %d cannot be used: %s",
						device, cudaGetErrorString(status));
}

/* Makes the device current; tells a wrong number from a missing driver. */
static GhStatus
device_select(int device, GhError *error)
{
	int			count;

	GH_TRY(device_count(&count, error));
	if (device < 0 || device >= count)
		return gh_error_set(error, GH_INVALID,
							"CUDA device %d does not exist: there are %d", device, count);
	return usable(device, cudaSetDevice(device), error);
}

GhStatus
device_open(int device, GhError *error)
{
	cudaFuncAttributes attributes;
	cudaError_t status;

	GH_TRY(device_select(device, error));
	/* cudaFree(NULL) creates the context */
	status = cudaFree(nullptr);
	/* a device older than the oldest code in this library fails here */
	if (status == cudaSuccess)
		status = cudaFuncGetAttributes(&attributes, probe_kernel);
	return usable(device, status, error);
}

GhStatus
device_info(int device, GhDeviceInfo *info, GhError *error)
{
	cudaDeviceProp properties;
	size_t		memory_free = 0;
	size_t		memory_total = 0;
	cudaError_t status;

	memset(info, 0, sizeof(*info));
	GH_TRY(device_select(device, error));
	status = cudaGetDeviceProperties(&properties, device);
	if (status == cudaSuccess)
		status = cudaMemGetInfo(&memory_free, &memory_total);
	if (status != cudaSuccess)
	{
		(void) cudaGetLastError();
		return gh_error_set(error, GH_UNAVAILABLE, "CUDA device %d cannot be asked: %s",
							device, cudaGetErrorString(status));
	}
	/* both end in zeroes; a longer name is cut */
	memcpy(info->name, properties.name, sizeof(info->name) - 1);
	info->memory_total = memory_total;
	info->memory_free = memory_free + pool_kept();
	info->multiprocessors = (uint32_t) properties.multiProcessorCount;
	info->compute_major = (uint32_t) properties.major;
	info->compute_minor = (uint32_t) properties.minor;
	return GH_OK;
}

/* A property that a table wants to know; 0 when the device does not answer, which
 * shows at the next call. */
uint32_t
device_attribute(int device, cudaDeviceAttr attribute)
{
	int			value = 0;

	if (cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess)
		(void) cudaGetLastError();
	return (uint32_t) value;
}

/* What the device says, or was found out before. */
static uint32_t
blocks_held(cuda_table *table, const void *kernel)
{
	resident_kernel *known = table->resident;
	const resident_kernel *end = table->resident + RESIDENT_KERNELS;
	uint32_t	most;
	int			blocks = 0;

	for (; known < end && known->kernel != nullptr; known++)
		if (known->kernel == kernel)
			return known->blocks;
	if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, BLOCK_THREADS,
													  0) != cudaSuccess)
		(void) cudaGetLastError();
	/* any number is right, a wrong one only slower */
	most = (blocks > 0 ? (uint32_t) blocks : 4) * table->multiprocessors;
	if (known < end)
		*known = {kernel, most};
	return most;
}

uint32_t
resident_blocks_of(cuda_table *table, const void *kernel, uint64_t elements)
{
	uint32_t	wanted = blocks_for(elements);
	uint32_t	most = blocks_held(table, kernel);

	/* over the bus, what is on its way shall be near each other */
	if (table->stats.bytes_paged > 0 && most > PAGED_WAVE / BLOCK_THREADS)
		most = PAGED_WAVE / BLOCK_THREADS;
	return most > 0 && wanted > most ? most : wanted;
}

void *
device_buffer_alloc(int device, size_t bytes)
{
	void	   *buffer = nullptr;

	if (bytes == 0 || cudaSetDevice(device) != cudaSuccess ||
		cudaHostAlloc(&buffer, bytes, cudaHostAllocPortable) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return nullptr;
	}
	return buffer;
}

void
device_buffer_free(void *buffer)
{
	cudaPointerAttributes attributes;

	if (buffer == nullptr)
		return;
	/* a copy from or to the buffer may be in flight on its device */
	if (cudaPointerGetAttributes(&attributes, buffer) == cudaSuccess &&
		cudaSetDevice(attributes.device) == cudaSuccess)
		(void) cudaDeviceSynchronize();
	(void) cudaFreeHost(buffer);
	(void) cudaGetLastError();
}

/*
 * Page-locks memory that the caller has, for every device.  What the driver refuses is
 * no failure of the device: requests transfer ordinary memory, too.
 */
GhStatus
device_memory_register(int device, void *memory, size_t bytes, bool read_only,
					   GhError *error)
{
	unsigned int flags = cudaHostRegisterPortable;
	cudaError_t status;

	GH_TRY(device_select(device, error));
	if (memory == nullptr || bytes == 0)
		return gh_error_set(error, GH_INVALID, "there is no memory to register");
	if (read_only)
	{
		if (device_attribute(device, cudaDevAttrHostRegisterReadOnlySupported) == 0)
			return gh_error_set(error, GH_UNSUPPORTED,
								"CUDA device %d does not register read-only memory", device);
		flags |= cudaHostRegisterReadOnly;
	}
	status = cudaHostRegister(memory, bytes, flags);
	if (status == cudaSuccess)
		return GH_OK;
	(void) cudaGetLastError();
	return gh_error_set(error, status == cudaErrorMemoryAllocation ? GH_NO_MEMORY :
						GH_UNSUPPORTED, "CUDA device %d does not register %llu bytes of memory: %s",
						device, (unsigned long long) bytes, cudaGetErrorString(status));
}

void
device_memory_unregister(int device, void *memory)
{
	if (memory == nullptr)
		return;
	/* a copy from or to the memory may be in flight */
	if (cudaSetDevice(device) == cudaSuccess)
		(void) cudaDeviceSynchronize();
	(void) cudaHostUnregister(memory);
	(void) cudaGetLastError();
}

/*
 * A CUDA call failed.  Most failures are sticky in the context, and after any
 * the table's content is unknown, so that every later call on the handle tells
 * the same error.  The lanes are waited for: when a request is told to have
 * failed, nothing may still be written to its arrays.
 */
GhStatus
table_failed(cuda_table *table, cudaError_t status, const char *call, GhError *error)
{
	(void) cudaGetLastError();
	if (!table->failed)
	{
		table->failed = true;
		(void) gh_error_set(&table->error, GH_DEVICE_ERROR,
							"CUDA device %d failed: %s (in %.60s)",
							table->options.device, cudaGetErrorString(status), call);
		for (int i = 0; i < LANES; i++)
			if (table->lanes[i].stream != nullptr)
				(void) cudaStreamSynchronize(table->lanes[i].stream);
		(void) cudaGetLastError();
	}
	if (error != nullptr && error != &table->error)
		*error = table->error;
	return GH_DEVICE_ERROR;
}

/* Whether that much more stays within the table's limit. */
bool
device_fits(const cuda_table *table, uint64_t bytes)
{
	uint64_t	limit = table->options.memory_limit;
	uint64_t	taken = table->stats.bytes + table->reserved;

	return limit == 0 || (taken <= limit && bytes <= limit - taken);
}

#ifdef GH_FAULT_POINTS

/*
 * Builds with fault points export a function by which a test makes the n-th
 * allocation or launch from now on fail; 0 is never.  It is the n-th of the
 * process, in whichever thread: one takes the count to 0.
 */
static std::atomic<uint64_t> allocations_left;
static std::atomic<uint64_t> launches_left;

extern "C" __attribute__((visibility("default"))) void
gh_cuda_fault_arm(uint64_t allocation, uint64_t launch)
{
	allocations_left = allocation;
	launches_left = launch;
}

static bool
fault_due(std::atomic<uint64_t> *left)
{
	uint64_t	now = left->load();

	while (now > 0 && !left->compare_exchange_weak(now, now - 1))
		continue;
	return now == 1;
}

static __global__ void
store_kernel(uint64_t *memory, uint64_t value)
{
	*memory = value;
}

/*
 * Likewise a store of a kernel to memory of the host: GH_DEVICE_ERROR where it does not get
 * through, and then the device is lost to this process.
 */
extern "C" __attribute__((visibility("default"))) GhStatus
gh_cuda_fault_store(void *memory, uint64_t value, GhError *error)
{
	cudaError_t status;

	GH_TRY(device_select(0, error));
	store_kernel<<<1, 1>>>((uint64_t *) memory, value);
	status = cudaGetLastError();
	if (status == cudaSuccess)
		status = cudaDeviceSynchronize();
	return status == cudaSuccess ? GH_OK :
		gh_error_set(error, GH_DEVICE_ERROR, "the store failed: %s", cudaGetErrorString(status));
}

#define ALLOCATION_FAULT fault_due(&allocations_left)
#define LAUNCH_FAULT fault_due(&launches_left)

#else

#define ALLOCATION_FAULT false
#define LAUNCH_FAULT false

#endif

bool
allocation_fault(void)
{
	return ALLOCATION_FAULT;
}

/* What the last launch has to say. */
cudaError_t
launch_status(void)
{
	cudaError_t status = cudaGetLastError();

	return LAUNCH_FAULT ? cudaErrorLaunchFailure : status;
}

static std::atomic<device_spare_function> spare;

void
device_spare_with(device_spare_function function)
{
	spare = function;
}

/* Frees what is only kept for later; false: there is nothing of that kind. */
bool
device_give_spare(void)
{
	device_spare_function function = spare;
	bool		any = function != nullptr && function();

	return pool_trim() || any;
}

/*
 * Memory, which tests can make fail; what is only kept for later goes first.  Where there is none it is not
 * sticky.
 */
cudaError_t
device_malloc(const GhHost *host, void **memory, uint64_t bytes)
{
	cudaError_t status;

	if (allocation_fault())
		return cudaErrorMemoryAllocation;
	status = pool_malloc(host, memory, bytes);
	if (status == cudaErrorMemoryAllocation)
		(void) cudaGetLastError();
	if (status == cudaErrorMemoryAllocation && device_give_spare())
		status = pool_malloc(host, memory, bytes);
	if (status == cudaErrorMemoryAllocation)
	{
		(void) cudaGetLastError();
		*memory = nullptr;
	}
	return status;
}

/* So many bytes out of a budget, if there is one; likewise. */
bool
budget_take(const GhHost *host, uint64_t bytes)
{
	return host->take_device == nullptr || host->take_device(host->ctx, bytes) ||
		(device_give_spare() && host->take_device(host->ctx, bytes));
}

void
budget_give(const GhHost *host, uint64_t bytes)
{
	if (host->give_device != nullptr)
		host->give_device(host->ctx, bytes);
}

/* Device memory that counts for the table, and is taken from the budget. */
GhStatus
device_alloc(cuda_table *table, uint64_t bytes, void **memory, GhError *error)
{
	cudaError_t status;

	*memory = nullptr;
	if (!device_fits(table, bytes))
		return gh_error_set(error, GH_LIMIT,
							"the table's memory limit of %llu bytes does not allow %llu more",
							(unsigned long long) table->options.memory_limit,
							(unsigned long long) bytes);
	if (!budget_take(&table->host, bytes))
		return gh_error_set(error, GH_LIMIT,
							"the device memory for all tables does not allow %llu more bytes",
							(unsigned long long) bytes);
	status = device_malloc(&table->host, memory, bytes);
	if (status != cudaSuccess)
		budget_give(&table->host, bytes);
	/* the table goes on with what it has */
	if (status == cudaErrorMemoryAllocation)
		return gh_error_set(error, GH_NO_MEMORY,
							"CUDA device %d has no %llu bytes of free memory",
							table->options.device, (unsigned long long) bytes);
	if (status != cudaSuccess)
		return table_failed(table, status, "cudaMalloc", error);
	table->stats.bytes += bytes;
	if (table->stats.bytes > table->stats.bytes_peak)
		table->stats.bytes_peak = table->stats.bytes;
	return GH_OK;
}

/*
 * Gives device memory back, or what table_alloc gave.  It waits for the device first, so that
 * kernels in flight keep what they use.  Of a device that failed the budget gets it
 * back all the same: what it has is gone with its context.
 */
void
device_free(cuda_table *table, void *memory, uint64_t bytes)
{
	cudaError_t status;

	if (memory == nullptr || (table->paged != nullptr && paging_free(table, memory)))
		return;
	status = device_release(memory);
	if (status != cudaSuccess)
		(void) table_failed(table, status, "cudaFree", nullptr);
	table->stats.bytes -= bytes;
	budget_give(&table->host, bytes);
}
