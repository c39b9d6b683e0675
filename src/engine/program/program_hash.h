/*
 * program_hash.h
 *		Hash codes of values: those that are equal have the same one.
 *
 * Of keys of groups (../pipeline/record_row.h), and of keys of joins that are no whole numbers (GH_OP_HASH).
 */
#ifndef GH_PROGRAM_HASH_H
#define GH_PROGRAM_HASH_H

#include "engine/program/program_text.h"

/* splitmix64's finalizer */
GH_EVERYWHERE uint64_t
gh_code_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
	return x ^ (x >> 31);
}

/* Floats are equal where this is. */
GH_EVERYWHERE uint64_t
gh_code_of_float(uint64_t bits)
{
	uint64_t	magnitude = bits << 1;

	if (magnitude == 0)
		return 0;
	return magnitude > UINT64_C(0x7ff) << 53 ? UINT64_C(0x7ff8) << 48 : bits;
}

GH_EVERYWHERE uint64_t
gh_code_of_text(GhText text, uint64_t hash)
{
	uint64_t	at = 0;
	uint64_t	rest = 0;

	for (; at + 8 <= text.length; at += 8)
		hash = gh_code_mix(hash + gh_read_u64(text.bytes + at));
	for (; at < text.length; at++)
		rest = rest << 8 | text.bytes[at];
	return gh_code_mix(gh_code_mix(hash + rest) + text.length);
}

/* The code of several values up to this one, which is not NULL, from that of those before, or a seed. */
GH_EVERYWHERE uint64_t
gh_code_of_value(uint8_t value_class, uint64_t low, uint64_t high, uint64_t hash)
{
	GhText		text;

	if (value_class == GH_CLASS_TEXT || value_class == GH_CLASS_BPCHAR)
	{
		text = gh_text(low, high);
		return gh_code_of_text(value_class == GH_CLASS_BPCHAR ? gh_text_unpadded(text) : text, hash);
	}
	if (value_class == GH_CLASS_FLOAT4 || value_class == GH_CLASS_FLOAT8)
		low = gh_code_of_float(low);
	hash = gh_code_mix(hash + low);
	return value_class == GH_CLASS_INT128 ? gh_code_mix(hash + high) : hash;
}

#endif							/* GH_PROGRAM_HASH_H */
