/*
 * hash.h
 *		A hash function for what the CPU alone looks up.
 */
#ifndef GPUHASH_HASH_H
#define GPUHASH_HASH_H

#include "postgres.h"

/* MurmurHash3's finalizer: every input bit reaches every output bit. */
static inline uint64
gh_mix64(uint64 x)
{
	x ^= x >> 33;
	x *= UINT64CONST(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64CONST(0xc4ceb9fe1a85ec53);
	x ^= x >> 33;
	return x;
}

#endif							/* GPUHASH_HASH_H */
