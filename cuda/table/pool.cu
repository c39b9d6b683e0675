/*
 * pool.cu
 *		Device memory, some of it by CUDA's stream-ordered allocator.
 *
 * To get memory from the driver and to give it back takes half a millisecond for each gigabyte, as long as
 * filling it does, and that of an allocator which is cold takes one.  So where the process is one that goes
 * on (GhHost.lasting) each device has a pool that keeps what is given back for what is asked for next.  Out
 * of it comes memory as long as no more than a share of the device's is in use by it; what is more comes from
 * the driver, and so does all memory of a process that does not go on, and of who has it for long and says so
 * by no GhHost.lasting.  A pool has no more than was in use at a time before, so that budgets bound it, too.
 *
 * Allocations and frees are of a stream of their own, so that they are in order; who gets memory may use it
 * in any stream, and who gives it back has waited for the device.  Threads share all that: pools_lock guards
 * what is made.
 */
#include <cuda.h>
#include <pthread.h>

#include "cuda/table/table.h"

/* Devices with a pool. */
#define POOLS_MAX 64

/* Of the device's memory, what comes out of a pool, and what it keeps. */
#define POOL_SHARE 16

typedef CUresult (*pointer_attribute_function) (void *data, CUpointer_attribute attribute, CUdeviceptr pointer);

#define CUDA_TRY_STATUS(call) \
	do \
	{ \
		cudaError_t called = (call); \
		if (called != cudaSuccess) \
			return called; \
	} while (0)

struct device_pool
{
	bool		looked;			/* for whether there are pools */
	uint64_t	most;			/* bytes of it */
	cudaMemPool_t pool;			/* NULL: there are none */
	cudaStream_t stream;
};

static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static device_pool pools[POOLS_MAX];
static pointer_attribute_function pointer_attribute;

/* The driver's function by which a pool's memory is known; this library is not linked with the driver. */
static cudaError_t
find_pointer_attribute(void)
{
	void	   *function = nullptr;
	cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
	cudaError_t status;

#if CUDART_VERSION >= 12050
	status = cudaGetDriverEntryPointByVersion("cuPointerGetAttribute", &function, 11020, cudaEnableDefault, &found);
#else
	status = cudaGetDriverEntryPoint("cuPointerGetAttribute", &function, cudaEnableDefault, &found);
#endif
	pointer_attribute = reinterpret_cast<pointer_attribute_function>(function);
	return status == cudaSuccess && (found != cudaDriverEntryPointSuccess || function == nullptr) ? cudaErrorNotSupported : status;
}

static cudaError_t
make_pool(int device, device_pool *made)
{
	cudaMemPoolProps properties = {};
	size_t		memory_free;
	size_t		memory_total;
	cudaError_t status;

	properties.allocType = cudaMemAllocationTypePinned;
	properties.location.type = cudaMemLocationTypeDevice;
	properties.location.id = device;
	CUDA_TRY_STATUS(cudaMemGetInfo(&memory_free, &memory_total));
	CUDA_TRY_STATUS(find_pointer_attribute());
	made->most = memory_total / POOL_SHARE;
	CUDA_TRY_STATUS(cudaStreamCreateWithFlags(&made->stream, cudaStreamNonBlocking));
	status = cudaMemPoolCreate(&made->pool, &properties);
	if (status == cudaSuccess)
		return cudaMemPoolSetAttribute(made->pool, cudaMemPoolAttrReleaseThreshold, &made->most);
	(void) cudaStreamDestroy(made->stream);
	made->pool = nullptr;
	return status;
}

/* The current device's pool; NULL: it has none.  make: it is made now, if it was not. */
static device_pool *
current_pool(bool make)
{
	device_pool *found = nullptr;
	int			device;

	if (cudaGetDevice(&device) != cudaSuccess || device < 0 || device >= POOLS_MAX)
		return nullptr;
	(void) pthread_mutex_lock(&pools_lock);
	if (make && !pools[device].looked)
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

/* Bytes: of what the pool has from the driver, or of that what is in use. */
static uint64_t
pool_bytes(const device_pool *pool, cudaMemPoolAttr which)
{
	uint64_t	bytes = 0;

	if (cudaMemPoolGetAttribute(pool->pool, which, &bytes) != cudaSuccess)
		(void) cudaGetLastError();
	return bytes;
}

/* Memory of the current device, for any stream.  host: whose it is. */
cudaError_t
pool_malloc(const GhHost *host, void **memory, uint64_t bytes)
{
	device_pool *pool = host->lasting != nullptr ? current_pool(true) : nullptr;
	cudaError_t status;

	if (pool == nullptr || bytes > pool->most || pool_bytes(pool, cudaMemPoolAttrUsedMemCurrent) > pool->most - bytes)
		return cudaMalloc(memory, bytes);
	status = cudaMallocFromPoolAsync(memory, bytes, pool->pool, pool->stream);
	return status == cudaSuccess ? cudaStreamSynchronize(pool->stream) : status;
}

/* Whether memory came out of a pool. */
static bool
is_pooled(void *memory)
{
	CUmemoryPool of = nullptr;

	return pointer_attribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, reinterpret_cast<CUdeviceptr>(memory)) == CUDA_SUCCESS &&
		of != nullptr;
}

static cudaError_t
release(void *memory)
{
	device_pool *pool = current_pool(false);
	cudaError_t status;

	if (pool == nullptr || !is_pooled(memory))
		return cudaFree(memory);
	status = cudaDeviceSynchronize();
	return status == cudaSuccess ? cudaFreeAsync(memory, pool->stream) : status;
}

/*
 * Gives memory back, of whichever device.  It waits for that first, so that kernels in flight keep what they
 * use.
 */
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

/* Bytes that the current device's pool keeps: the driver says that they are not free. */
uint64_t
pool_kept(void)
{
	device_pool *pool = current_pool(false);
	uint64_t	reserved = pool == nullptr ? 0 : pool_bytes(pool, cudaMemPoolAttrReservedMemCurrent);
	uint64_t	used = pool == nullptr ? 0 : pool_bytes(pool, cudaMemPoolAttrUsedMemCurrent);

	return reserved > used ? reserved - used : 0;
}

/* Gives that to the driver.  False: it is nothing. */
bool
pool_trim(void)
{
	device_pool *pool = current_pool(false);
	bool		any = pool_kept() > 0;

	if (any && cudaMemPoolTrimTo(pool->pool, 0) != cudaSuccess)
		(void) cudaGetLastError();
	return any;
}
