/*
 * cpu_bucket.h
 *		Shapes of buckets, the hash, and what is done with one bucket: the inline
 *		functions of the loops over keys.  Part of cpu_internal.h, which has the structs.
 */
#ifndef GH_CPU_BUCKET_H
#define GH_CPU_BUCKET_H

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* ----------------------------------------------------------- the shapes */

/*
 * Loops over keys are written once, as inline functions that take the shape, and
 * called with each shape as a constant.
 */
#define GH_CPU_BY_SHAPE(shape, function, ...) \
	((shape) == GH_CPU_K8V8 ? function(GH_CPU_K8V8, __VA_ARGS__) : \
	 (shape) == GH_CPU_K4V4 ? function(GH_CPU_K4V4, __VA_ARGS__) : \
	 (shape) == GH_CPU_K8 ? function(GH_CPU_K8, __VA_ARGS__) : \
	 function(GH_CPU_K4, __VA_ARGS__))

static gh_always_inline uint32_t
gh_cpu_key_shift(GhCpuShape shape)
{
	return shape == GH_CPU_K8V8 || shape == GH_CPU_K8 ? 3 : 2;
}

static gh_always_inline bool
gh_cpu_has_values_inside(GhCpuShape shape)
{
	return shape == GH_CPU_K8V8 || shape == GH_CPU_K4V4;
}

/* Slots of a bucket: 4, 8 or 16. */
static gh_always_inline uint32_t
gh_cpu_slots(GhCpuShape shape)
{
	return (gh_cpu_has_values_inside(shape) ? GH_CPU_TO_VALUE : GH_CPU_BUCKET_BYTES) >>
		gh_cpu_key_shift(shape);
}

static gh_always_inline uint64_t
gh_cpu_key_at(GhCpuShape shape, const void *at)
{
	return gh_cpu_key_shift(shape) == 3 ? *(const uint64_t *) at : *(const uint32_t *) at;
}

static gh_always_inline void
gh_cpu_key_put(GhCpuShape shape, void *at, uint64_t key)
{
	if (gh_cpu_key_shift(shape) == 3)
		*(uint64_t *) at = key;
	else
		*(uint32_t *) at = (uint32_t) key;
}

/* Makes a slot empty.  A value in the bucket goes, too: cpu_exchange.c takes what is
 * not 0 for a value. */
static gh_always_inline void
gh_cpu_empty_slot(GhCpuShape shape, char *slot)
{
	gh_cpu_key_put(shape, slot, GH_CPU_EMPTY);
	if (gh_cpu_has_values_inside(shape))
		gh_cpu_key_put(shape, slot + GH_CPU_TO_VALUE, 0);
}

/* Key i of a request's array. */
static gh_always_inline uint64_t
gh_cpu_key(GhCpuShape shape, const void *keys, uint64_t i)
{
	return gh_cpu_key_at(shape, (const char *) keys + (i << gh_cpu_key_shift(shape)));
}

/* Copies a value: the sizes of most tables without a call. */
static gh_always_inline void
gh_cpu_copy(void *to, const void *from, uint32_t bytes)
{
	if (bytes == 8)
		memcpy(to, from, 8);
	else if (bytes == 4)
		memcpy(to, from, 4);
	else
		memcpy(to, from, bytes);
}

/* The value, or value word, of the slot whose key is there. */
static gh_always_inline char *
gh_cpu_value(GhCpuShape shape, const GhCpuArea *area, char *slot, uint32_t stride)
{
	if (gh_cpu_has_values_inside(shape))
		return slot + GH_CPU_TO_VALUE;
	return area->beside +
		((uint64_t) (slot - area->base) >> gh_cpu_key_shift(shape)) * stride;
}

/* The size of what gh_cpu_value tells. */
static gh_always_inline uint32_t
gh_cpu_value_bytes(GhCpuShape shape, const GhCpuView *view)
{
	return gh_cpu_has_values_inside(shape) ? 1u << gh_cpu_key_shift(shape) : view->stride;
}

/* Writes an entry with its value to a slot; the other slot stays as it is. */
static gh_always_inline void
gh_cpu_copy_entry(GhCpuShape shape, const GhCpuView *view, const GhCpuArea *to_area, char *to,
				  const GhCpuArea *from_area, char *from)
{
	uint32_t	bytes = gh_cpu_value_bytes(shape, view);

	if (bytes > 0)
		gh_cpu_copy(gh_cpu_value(shape, to_area, to, bytes),
					gh_cpu_value(shape, from_area, from, bytes), bytes);
	gh_cpu_key_put(shape, to, gh_cpu_key_at(shape, from));
}

/* The value that stands for "not there": GhRequest.absent. */
static gh_always_inline void
gh_cpu_put_absent(void *to, uint64_t absent, uint32_t bytes)
{
	if (bytes == 8)
		memcpy(to, &absent, 8);
	else if (bytes == 4)
		*(uint32_t *) to = (uint32_t) absent;
	else
	{
		uint32_t	low = bytes < 8 ? bytes : 8;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		memcpy(to, (const char *) &absent + (8 - low), low);
#else
		memcpy(to, &absent, low);
#endif
		memset((char *) to + low, 0, bytes - low);
	}
}

/* How many pieces of that many bytes a slice takes, at most and at least. */
static inline uint64_t
gh_cpu_slice(uint64_t most, uint64_t bytes, uint64_t least)
{
	uint64_t	pieces = GH_CPU_SLICE_BYTES / (bytes > 0 ? bytes : 1);

	return pieces > most ? most : pieces < least ? least : pieces;
}

/* The end of a slice of keys that begins at a position. */
static inline uint64_t
gh_cpu_slice_end(const GhCpuView *view, uint64_t begin, uint64_t count)
{
	uint64_t	keys = gh_cpu_slice(GH_CPU_SLICE_KEYS, view->value_size, 256);

	return count - begin > keys ? begin + keys : count;
}

/* ------------------------------------------------------------ the hash */

/* The two halves of the 128-bit product, folded: every bit of the result
 * depends on every bit of both factors. */
static gh_always_inline uint64_t
gh_cpu_fold(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128) a * b;

	return (uint64_t) product ^ (uint64_t) (product >> 64);
}

/*
 * Two hash values of a key under the table's secret seeds.  The first says the
 * pair (upper 20 bits) and the bucket in the pair's first subtable, the second
 * the bucket in the second subtable and (upper 16 bits) where the key is
 * steered.  Bucket bits start at GH_CPU_BUCKET_SHIFT, so that hash & mask is a
 * byte offset.
 */
static gh_always_inline void
gh_cpu_hash(const GhCpuView *view, uint64_t key, uint64_t hash[2])
{
	const uint64_t *seed = view->hash_seed;
	uint64_t	mixed = gh_cpu_fold(key ^ seed[0], seed[1]);

	hash[0] = gh_cpu_fold(mixed ^ seed[2], seed[3]);
	hash[1] = gh_cpu_fold(mixed ^ seed[4], seed[5]);
}

static gh_always_inline const GhCpuPair *
gh_cpu_pair(const GhCpuView *view, const uint64_t hash[2])
{
	return &view->pair[((hash[0] >> 44) * view->pairs) >> 20];
}

static gh_always_inline void
gh_cpu_locate(const GhCpuView *view, uint64_t key, GhCpuPlace *place)
{
	uint64_t	hash[2];
	const GhCpuPair *pair;
	uintptr_t	first;
	uintptr_t	second;
	uintptr_t	swap;
	uintptr_t	change;

	gh_cpu_hash(view, key, hash);
	pair = gh_cpu_pair(view, hash);
	first = (uintptr_t) pair->base[0] + (hash[0] & pair->mask[0]);
	second = (uintptr_t) pair->base[1] + (hash[1] & pair->mask[1]);
	/* random, so a branch would be mispredicted at every second key */
	swap = (hash[1] >> 48) >= pair->steer;
	change = (first ^ second) & -swap;
	place->bucket[0] = (char *) (first ^ change);
	place->bucket[1] = (char *) (second ^ change);
	place->subtable[0] = pair->subtable[swap];
	place->subtable[1] = pair->subtable[!swap];
}

/*
 * Fetches a line of a bucket or value that is used soon, into the second level cache: more
 * misses are under way at the same time than the first level has room for.
 */
static gh_always_inline void
gh_cpu_fetch(const void *line)
{
	__builtin_prefetch(line, 0, 2);
}

/* Locates a group of keys and fetches their buckets, which will be written. */
static gh_always_inline void
gh_cpu_locate_to_write(GhCpuShape shape, const GhCpuView *view, const void *keys, uint64_t i,
					   uint32_t group, GhCpuPlace *place)
{
	for (uint32_t g = 0; g < group; g++)
	{
		gh_cpu_locate(view, gh_cpu_key(shape, keys, i + g), &place[g]);
		gh_cpu_fetch(place[g].bucket[0]);
		gh_cpu_fetch(place[g].bucket[1]);
	}
}

/* Positions from i on that are in one group. */
static gh_always_inline uint32_t
gh_cpu_group(uint64_t i, uint64_t end)
{
	return end - i < GH_CPU_GROUP ? (uint32_t) (end - i) : GH_CPU_GROUP;
}

/*
 * The places of the group at i, of those from begin to end.  Its lines were fetched two groups ago, so that they come
 * while these are done; those of the next group are located, too.
 */
static gh_always_inline GhCpuPlace *
gh_cpu_places(GhCpuShape shape, const GhCpuView *view, const void *keys, uint64_t begin, uint64_t i, uint64_t end,
			  GhCpuAhead *ahead)
{
	uint64_t	last = i + GH_CPU_GROUPS_AHEAD * GH_CPU_GROUP;

	for (uint64_t at = i == begin ? i : last; at <= last && at < end; at += GH_CPU_GROUP)
		gh_cpu_locate_to_write(shape, view, keys, at, gh_cpu_group(at, end),
							   ahead->place[(at - begin) / GH_CPU_GROUP % (GH_CPU_GROUPS_AHEAD + 1)]);
	return ahead->place[(i - begin) / GH_CPU_GROUP % (GH_CPU_GROUPS_AHEAD + 1)];
}

/* The places of the group behind that one. */
static gh_always_inline const GhCpuPlace *
gh_cpu_places_next(uint64_t begin, uint64_t i, const GhCpuAhead *ahead)
{
	return ahead->place[((i - begin) / GH_CPU_GROUP + 1) % (GH_CPU_GROUPS_AHEAD + 1)];
}

/* The hash whose bits choose the bucket of key in subtable, one of its pair. */
static gh_always_inline uint64_t
gh_cpu_hash_in(const GhCpuView *view, uint64_t key, uint32_t subtable)
{
	uint64_t	hash[2];

	gh_cpu_hash(view, key, hash);
	return gh_cpu_pair(view, hash)->subtable[0] == subtable ? hash[0] : hash[1];
}

/* ------------------------------------------------------------- buckets */

/* The byte offset of the first slot in a mask by gh_cpu_match, which is not 0. */
static gh_always_inline uint32_t
gh_cpu_first(GhCpuShape shape, unsigned matches)
{
	return (uint32_t) __builtin_ctz(matches) << gh_cpu_key_shift(shape);
}

#ifdef __SSE2__

/* 4 keys of 4 bytes. */
static gh_always_inline __m128i
gh_cpu_compare4(const char *at, __m128i key)
{
	return _mm_cmpeq_epi32(_mm_load_si128((const __m128i *) at), key);
}

/* 4 keys of 8 bytes, of which both halves must be equal. */
static gh_always_inline __m128
gh_cpu_compare8(const char *at, __m128i key)
{
	__m128		low = _mm_castsi128_ps(gh_cpu_compare4(at, key));
	__m128		high = _mm_castsi128_ps(gh_cpu_compare4(at + 16, key));

	return _mm_and_ps(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)),
					  _mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
}

/* Bit i is set where slot i holds key. */
static gh_always_inline unsigned
gh_cpu_match(GhCpuShape shape, const char *bucket, uint64_t key)
{
	__m128i		wide;
	__m128i		low;
	__m128i		high = _mm_setzero_si128();

	if (gh_cpu_key_shift(shape) == 3)
	{
		wide = _mm_set1_epi64x((long long) key);
		if (shape == GH_CPU_K8V8)
			return (unsigned) _mm_movemask_ps(gh_cpu_compare8(bucket, wide));
		return (unsigned) _mm_movemask_ps(gh_cpu_compare8(bucket, wide)) |
			(unsigned) _mm_movemask_ps(gh_cpu_compare8(bucket + 32, wide)) << 4;
	}
	wide = _mm_set1_epi32((int) key);
	low = _mm_packs_epi32(gh_cpu_compare4(bucket, wide), gh_cpu_compare4(bucket + 16, wide));
	if (shape == GH_CPU_K4)
		high = _mm_packs_epi32(gh_cpu_compare4(bucket + 32, wide), gh_cpu_compare4(bucket + 48, wide));
	return (unsigned) _mm_movemask_epi8(_mm_packs_epi16(low, high));
}

#else

/* Bit i is set where slot i holds key. */
static gh_always_inline unsigned
gh_cpu_match(GhCpuShape shape, const char *bucket, uint64_t key)
{
	unsigned	matches = 0;

	for (uint32_t s = 0; s < gh_cpu_slots(shape); s++)
		matches |= (unsigned) (gh_cpu_key(shape, bucket, s) == key) << s;
	return matches;
}

#endif

/* The slot where key is in the bucket, else NULL. */
static gh_always_inline char *
gh_cpu_slot(GhCpuShape shape, char *bucket, uint64_t key)
{
	unsigned	matches = gh_cpu_match(shape, bucket, key);

	return matches != 0 ? bucket + gh_cpu_first(shape, matches) : NULL;
}

/* Key's slot in either candidate; *which tells the candidate. */
static gh_always_inline char *
gh_cpu_lookup(GhCpuShape shape, const GhCpuPlace *place, uint64_t key, int *which)
{
	char	   *slot = gh_cpu_slot(shape, place->bucket[0], key);

	*which = 0;
	if (slot != NULL)
		return slot;
	*which = 1;
	return gh_cpu_slot(shape, place->bucket[1], key);
}

static gh_always_inline uint32_t
gh_cpu_used(GhCpuShape shape, const char *bucket)
{
	return gh_cpu_slots(shape) -
		(uint32_t) __builtin_popcount(gh_cpu_match(shape, bucket, GH_CPU_EMPTY));
}

#endif							/* GH_CPU_BUCKET_H */
