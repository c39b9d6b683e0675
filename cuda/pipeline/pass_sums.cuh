/*
 * pass_sums.cuh
 *		Sums over the rows that the lanes of a warp have, all lanes together.
 *
 * A value plus a power of two is not negative.  Of that, each piece of 27 bits is summed over the lanes in a
 * word of 32 bits, which 32 such pieces do not exceed; then the powers are taken off again.  So a sum costs a
 * warp an addition across the lanes for each piece, of which most values have two, and no lane has a state of
 * its own.
 */
#ifndef GPUHASH_PASS_SUMS_CUH
#define GPUHASH_PASS_SUMS_CUH

#include "engine/pipeline/record_row.h"

#define PIECE_BITS 27
#define PIECE_MASK (((uint32_t) 1 << PIECE_BITS) - 1)

/* Values of so many bits, and a sign, have two pieces. */
#define NARROW_BITS 52
/* Likewise four: none that is summed has more (GH_SUM_BITS). */
#define WIDE_BITS 100

static_assert(NARROW_BITS + 1 <= 2 * PIECE_BITS && WIDE_BITS + 1 <= 4 * PIECE_BITS && GH_SUM_BITS < WIDE_BITS,
			  "a value, made positive, fits in its pieces");

/* The sum over all lanes. */
static __device__ __forceinline__ uint32_t
add_lanes(uint32_t piece)
{
#if __CUDA_ARCH__ >= 800
	return __reduce_add_sync(~0u, piece);
#else
	for (int offset = 16; offset > 0; offset /= 2)
		piece += __shfl_xor_sync(~0u, piece, offset);
	return piece;
#endif
}

/*
 * The sum of the values that lanes of a mask have, for all lanes; each of them comes here, and those not in
 * it have none.
 */
static __device__ __forceinline__ GhInt128
sum_values(uint32_t mask, uint64_t low, uint64_t high)
{
	bool		mine = (mask >> threadIdx.x % 32 & 1) != 0;
	uint64_t	biased = low + ((uint64_t) 1 << NARROW_BITS);
	GhUint128	wide;
	GhInt128	sum = 0;

	if (__all_sync(~0u, !mine || (high == gh_sign_extension(low) && biased >> (NARROW_BITS + 1) == 0)))
	{
		uint64_t	lower = add_lanes(mine ? (uint32_t) biased & PIECE_MASK : 0);
		uint64_t	upper = add_lanes(mine ? (uint32_t) (biased >> PIECE_BITS) : 0);

		return (int64_t) (lower + (upper << PIECE_BITS) - ((uint64_t) __popc(mask) << NARROW_BITS));
	}
	wide = (GhUint128) gh_int128(low, high) + ((GhUint128) 1 << WIDE_BITS);
#pragma unroll
	for (int piece = 0; piece < 4; piece++)
		sum += (GhInt128) add_lanes(mine ? (uint32_t) (wide >> piece * PIECE_BITS) & PIECE_MASK : 0) << piece * PIECE_BITS;
	return sum - ((GhInt128) __popc(mask) << WIDE_BITS);
}

#endif							/* GPUHASH_PASS_SUMS_CUH */
