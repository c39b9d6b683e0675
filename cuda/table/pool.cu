/*
 * pool.cu
 *		Device memory, by CUDA's stream-ordered allocator.
 *
 * To get memory from the driver and to give it back takes about a millisecond for each gigabyte, as long as filling it does.  So
 * each device has a pool, out of which all memory comes, and which keeps what is given back for what is asked for next: up to a
 * share of the device's memory, where the process is one that goes on (GhHost.lasting), and nothing else.  A pool has no more than
 * was in use at a time before, so that budgets bound it, too.  A device that has no pools has its memory from the driver each time.
 *
 * Allocations and frees are of a stream of their own, so that they are in order; who gets memory may use it in any stream, and
 * who gives it back has waited for the device.  Threads share all that: pools_lock guards what is made.
 */
#include <pthread.h>

#include "cuda/table/table.h"

/* Devices with a pool. */
#define POOLS_MAX 64

/* Of the device's memory, what a pool may keep. */
#define POOL_SHARE 16

struct device_pool
{
	bool		looked;			/* for whether there are pools */
	bool		keeps;
	cudaMemPool_t pool;			/* NULL: there are none */
	cudaStream_t stream;
};

static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static device_pool pools[POOLS_MAX];

static cudaError_t
make_pool(int device, device_pool *made)
{
	cudaMemPoolProps properties = {};
	cudaError_t status;

	properties.allocType = cudaMemAllocationTypePinned;
	properties.location.type = cudaMemLocationTypeDevice;
	properties.location.id = device;
	status = cudaStreamCreateWithFlags(&made->stream, cudaStreamNonBlocking);
	if (status == cudaSuccess)
		status = cudaMemPoolCreate(&made->pool, &properties);
	if (status == cudaSuccess)
		return status;
	if (made->stream != nullptr)
		(void) cudaStreamDestroy(made->stream);
	made->stream = nullptr;
	made->pool = nullptr;
	return status;
}

/* The current device's pool, which is made when it is asked for first; NULL: it has none. */
static device_pool *
current_pool(void)
{
	device_pool *found = nullptr;
	int			device;

	if (cudaGetDevice(&device) != cudaSuccess || device < 0 || device >= POOLS_MAX)
		return nullptr;
	(void) pthread_mutex_lock(&pools_lock);
	if (!pools[device].looked)
	{
		pools[device].looked = true;
		if (device_attribute(device, cudaDevAttrMemoryPoolsSupported) != 0 && make_pool(device, &pools[device]) != cudaSuccess)
			(void) cudaGetLastError();
	}
	if (pools[device].pool != nullptr)
		found = &pools[device];
	(void) pthread_mutex_unlock(&pools_lock);
	return found;
}

/* From now on what is given back is kept. */
static void
keep_memory(device_pool *pool)
{
	size_t		memory_free;
	size_t		memory_total;
	uint64_t	most;

	(void) pthread_mutex_lock(&pools_lock);
	if (!pool->keeps && cudaMemGetInfo(&memory_free, &memory_total) == cudaSuccess)
	{
		most = memory_total / POOL_SHARE;
		(void) cudaMemPoolSetAttribute(pool->pool, cudaMemPoolAttrReleaseThreshold, &most);
	}
	pool->keeps = true;
	(void) cudaGetLastError();
	(void) pthread_mutex_unlock(&pools_lock);
}

/* Memory of the current device, for any stream.  host: whose it is. */
cudaError_t
pool_malloc(const GhHost *host, void **memory, uint64_t bytes)
{
	device_pool *pool = current_pool();
	cudaError_t status;

	if (pool == nullptr)
		return cudaMalloc(memory, bytes);
	if (host->lasting != nullptr && !pool->keeps)
		keep_memory(pool);
	status = cudaMallocFromPoolAsync(memory, bytes, pool->pool, pool->stream);
	return status == cudaSuccess ? cudaStreamSynchronize(pool->stream) : status;
}

static cudaError_t
release(void *memory)
{
	device_pool *pool = current_pool();
	cudaError_t status;

	if (pool == nullptr)
		return cudaFree(memory);
	status = cudaDeviceSynchronize();
	return status == cudaSuccess ? cudaFreeAsync(memory, pool->stream) : status;
}

/* Gives memory back, of whichever device.  It waits for that first, so that kernels in flight keep what they use. */
cudaError_t
device_release(void *memory)
{
	cudaPointerAttributes attributes;
	int			current;
	cudaError_t status = cudaPointerGetAttributes(&attributes, memory);

	if (status == cudaSuccess)
		status = cudaGetDevice(&current);
	if (status != cudaSuccess || attributes.device == current)
		return status == cudaSuccess ? release(memory) : status;
	status = cudaSetDevice(attributes.device);
	if (status == cudaSuccess)
		status = release(memory);
	(void) cudaSetDevice(current);
	return status;
}

/* Gives what the current device's pool keeps to the driver.  False: that is nothing. */
bool
pool_trim(void)
{
	uint64_t	kept = pool_kept();
	device_pool *pool = kept > 0 ? current_pool() : nullptr;

	if (pool == nullptr)
		return false;
	if (cudaMemPoolTrimTo(pool->pool, 0) != cudaSuccess)
		(void) cudaGetLastError();
	return true;
}

/* Bytes that the current device's pool keeps: the driver says that they are not free. */
uint64_t
pool_kept(void)
{
	device_pool *pool = current_pool();
	uint64_t	reserved = 0;
	uint64_t	used = 0;

	if (pool == nullptr ||
		cudaMemPoolGetAttribute(pool->pool, cudaMemPoolAttrReservedMemCurrent, &reserved) != cudaSuccess ||
		cudaMemPoolGetAttribute(pool->pool, cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return 0;
	}
	return reserved > used ? reserved - used : 0;
}
