/*
 * estimate.cu
 *		How many different keys there are among very many, about: a HyperLogLog
 *		sketch (Flajolet, Fusy, Gandouet, Meunier 2007) in shared memory.
 *
 * A register keeps the longest run of leading zeroes among the hashes that fall
 * to it.  A key that is there often changes nothing after its first time, so one
 * with all positions costs no more than any other.
 */
#include <math.h>

#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

/* The standard error is 1.04 / sqrt(REGISTERS), half of ESTIMATE_ERROR. */
#define REGISTER_BITS 12
#define REGISTERS (1u << REGISTER_BITS)

#define ESTIMATE_BLOCKS 1024

static __device__ __forceinline__ void
raise_register(uint32_t *place, uint32_t rank)
{
	/* the word only rises: looking first spares nearly all atomics */
	if (load_relaxed(place) < rank)
		atomicMax(place, rank);
}

template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
sketch_kernel(entry_list list, uint64_t seed, uint32_t *registers)
{
	__shared__ uint32_t shared[REGISTERS];
	uint64_t	step = (uint64_t) gridDim.x * blockDim.x;

	for (uint32_t i = threadIdx.x; i < REGISTERS; i += blockDim.x)
		shared[i] = 0;
	__syncthreads();			/* nobody raises before the zeroes are there */
	for (uint64_t i = ELEMENT; i < list.count; i += step)
	{
		/* not the hash that places keys, whose bits belong together */
		uint64_t	hash = mix64(hash_key(seed, list_key<L>(list, list_position(list, i))) ^
								 GOLDEN_RATIO);
		uint32_t	at = (uint32_t) hash & (REGISTERS - 1);
		uint32_t	rank = (uint32_t) __clzll((long long) (hash | (REGISTERS - 1))) + 1;

		if (shared[at] < rank)
			atomicMax(&shared[at], rank);
	}
	__syncthreads();			/* all have raised */
	for (uint32_t i = threadIdx.x; i < REGISTERS; i += blockDim.x)
		if (shared[i] != 0)
			raise_register(&registers[i], shared[i]);
}

/* What the registers say. */
static uint64_t
sketch_estimate(const uint32_t *registers)
{
	double		m = REGISTERS;
	double		sum = 0;
	double		estimate;
	uint32_t	zeroes = 0;

	for (uint32_t i = 0; i < REGISTERS; i++)
	{
		sum += ldexp(1.0, -(int) registers[i]);
		zeroes += registers[i] == 0 ? 1 : 0;
	}
	estimate = 0.7213 / (1 + 1.079 / m) * m * m / sum;
	/* few keys: how many registers stayed empty says it better */
	if (estimate <= 2.5 * m && zeroes > 0)
		estimate = m * log(m / zeroes);
	return (uint64_t) ceil(estimate);
}

size_t
estimate_bytes(void)
{
	return REGISTERS * sizeof(uint32_t);
}

/*
 * About how many different keys a list has; in one case of twenty it is more
 * than ESTIMATE_ERROR off.  space: estimate_bytes on the device.  Waits for it.
 */
GhStatus
estimate_keys(cuda_table *table, const entry_list *list, void *space, uint64_t *keys,
			  GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	uint32_t   *registers = static_cast<uint32_t *>(space);
	uint32_t	blocks = blocks_for(list->count);
	uint32_t	result[REGISTERS];

	if (blocks > ESTIMATE_BLOCKS)
		blocks = ESTIMATE_BLOCKS;
	CUDA_TRY(table, cudaMemsetAsync(registers, 0, estimate_bytes(), stream), error);
	LAYOUT_DISPATCH(table, sketch_kernel<L><<<blocks, BLOCK_THREADS, 0, stream>>>(
						*list, table->options.seed, registers));
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, cudaMemcpyAsync(result, registers, estimate_bytes(),
									cudaMemcpyDeviceToHost, stream), error);
	CUDA_TRY(table, cudaStreamSynchronize(stream), error);
	*keys = sketch_estimate(result);
	return GH_OK;
}
