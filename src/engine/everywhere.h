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

/* Of any address: values behind short headers are not aligned.  They are little-endian. */
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

	memcpy(&value, at, sizeof(value));
	return value;
}

GH_EVERYWHERE uint64_t
gh_read_u64(const uint8_t *at)
{
	uint64_t	value;

	memcpy(&value, at, sizeof(value));
	return value;
}

#endif							/* GPUHASH_EVERYWHERE_H */
