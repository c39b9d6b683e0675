/*
 * everywhere.h
 *		What functions need that stand once, in headers, for the CPU and for the device.
 */
#ifndef GPUHASH_EVERYWHERE_H
#define GPUHASH_EVERYWHERE_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define GH_EVERYWHERE static __host__ __device__ __forceinline__
#else
#define GH_EVERYWHERE static inline
#endif

/* Likewise, of much code that is seldom needed: a kernel calls it, and needs no registers for it else. */
#ifdef __CUDACC__
#define GH_CALLED [[maybe_unused]] static __host__ __device__ __noinline__
#else
#define GH_CALLED static inline
#endif

/*
 * Of any address: values behind short headers are not aligned.  They are little-endian.  A device,
 * where memcpy() would go byte by byte, reads the one or two aligned words that hold the value.
 */
GH_EVERYWHERE uint16_t
gh_read_u16(const uint8_t *at)
{
	uint16_t	value;

	memcpy(&value, at, sizeof(value));
	return value;
}

GH_EVERYWHERE uint32_t
gh_read_u32(const uint8_t *at)
{
	uint32_t	value;
#ifdef __CUDA_ARCH__
	uint32_t	shift = (uint32_t) (uintptr_t) at % 4;
	uint32_t	upper;

	memcpy(&value, __builtin_assume_aligned(at - shift, 4), 4);
	if (shift == 0)
		return value;
	memcpy(&upper, __builtin_assume_aligned(at - shift + 4, 4), 4);
	value = value >> 8 * shift | upper << (32 - 8 * shift);
#else
	memcpy(&value, at, sizeof(value));
#endif
	return value;
}

/* Of an address that is a multiple of the size, on a device: its copies of pages are aligned. */
GH_EVERYWHERE uint32_t
gh_read_aligned_u32(const uint8_t *at)
{
	uint32_t	value;

#ifdef __CUDA_ARCH__
	at = (const uint8_t *) __builtin_assume_aligned(at, sizeof(value));
#endif
	memcpy(&value, at, sizeof(value));
	return value;
}

GH_EVERYWHERE uint64_t
gh_read_aligned_u64(const uint8_t *at)
{
	uint64_t	value;

#ifdef __CUDA_ARCH__
	at = (const uint8_t *) __builtin_assume_aligned(at, sizeof(value));
#endif
	memcpy(&value, at, sizeof(value));
	return value;
}

GH_EVERYWHERE uint64_t
gh_read_u64(const uint8_t *at)
{
	uint64_t	value;
#ifdef __CUDA_ARCH__
	uint32_t	shift = (uint32_t) (uintptr_t) at % 8;
	uint64_t	upper;

	memcpy(&value, __builtin_assume_aligned(at - shift, 8), 8);
	if (shift == 0)
		return value;
	memcpy(&upper, __builtin_assume_aligned(at - shift + 8, 8), 8);
	value = value >> 8 * shift | upper << (64 - 8 * shift);
#else
	memcpy(&value, at, sizeof(value));
#endif
	return value;
}

#endif							/* GPUHASH_EVERYWHERE_H */
