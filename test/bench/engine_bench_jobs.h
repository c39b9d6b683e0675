/*
 * engine_bench_jobs.h
 *		The benchmark's data as functions of the position: which key and value
 *		stand there, and whether a result is right.
 *
 * Nothing is kept to compare results with.  A key has a number, its index;
 * the key itself is a permutation of the index, and a stream says which index
 * stands at a position.  So data can be made and results checked where the arrays
 * are, by the same code: bench_element does one element of a job, in a loop on the
 * host and in a kernel on the device.
 */
#ifndef ENGINE_BENCH_JOBS_H
#define ENGINE_BENCH_JOBS_H

#include "engine/engine.h"

#ifdef __CUDACC__
#define BENCH_FUNCTION static __host__ __device__ inline
#else
#define BENCH_FUNCTION static inline
#endif

/* Indexes from here on are never stored: keys to miss.  Within 32 bits. */
#define BENCH_MISS_FIRST ((uint64_t) 1 << 31)

/* "Not there": cut to the size of a value. */
#define BENCH_ABSENT UINT64_MAX

typedef enum BenchShape
{
	BENCH_UNIQUE,				/* positions are different indexes of first .. first + range */
	BENCH_DRAWN,				/* random indexes of that range, with repeats */
	BENCH_MULTI,				/* range positions over range / 4 indexes: of each four,
								 * one has 1, 3, 5 and 7 positions; range is a multiple of 16 */
	BENCH_SKEWED,				/* indexes below 2^octaves - 1, each octave equally often:
								 * nearly Zipf's law with exponent 1 */
	BENCH_HOT					/* index 0 everywhere */
} BenchShape;

typedef struct BenchStream
{
	BenchShape	shape;
	bool		line_keys;		/* keys in the shape of TPC-H's lineitem, of 8 bytes */
	uint32_t	key_size;		/* bytes, of values too: 4 or 8 */
	uint64_t	seed;			/* of the keys */
	uint64_t	first;
	uint64_t	range;
	uint64_t	order;			/* 0: unique indexes ascend; else a seed of their order */
	uint32_t	octaves;
} BenchStream;

typedef enum BenchJobKind
{
	BENCH_MAKE_KEYS,			/* keys */
	BENCH_MAKE_PAIRS,			/* keys; values that follow from index and version */
	BENCH_MAKE_POSITIONS,		/* keys; values that are the positions */
	BENCH_MAKE_LAST,			/* last[index] = the last position of index, plus 1 */
	BENCH_MAKE_MIX,				/* keys, values, ops */
	BENCH_COUNT_PRESENT,		/* how many positions have an index of low .. high */
	BENCH_COUNT_MIX,			/* how many positions of a mix are of the part */
	BENCH_COUNT_STORED,			/* how many positions have an index with a last position */
	BENCH_CHECK_FOUND,			/* values: those of indexes of low .. high, else absent */
	BENCH_CHECK_COUNTS,			/* words: how many positions of a multi stream each has */
	BENCH_CHECK_OFFSETS,		/* words: offsets of lists of `limit` values each */
	BENCH_CHECK_LISTS,			/* words: offsets; values: positions of the key; seen */
	BENCH_CHECK_POSITIONS,		/* values: positions, each once; seen */
	BENCH_CHECK_PAIRS,			/* keys and their values, in any order, each once; seen */
	BENCH_CHECK_LAST,			/* values: last of each index, or absent */
	BENCH_CHECK_MIX				/* values and ops (flags) of a mix */
} BenchJobKind;

typedef enum BenchMixPart
{
	BENCH_MIX_INSERT,
	BENCH_MIX_DELETE,
	BENCH_MIX_HIT,
	BENCH_MIX_MISS
} BenchMixPart;

/*
 * Operation distributions as of "A Dynamic Hash Table for the GPU" (slab hash), section
 * VI-C: shares of 256 of inserts of new keys, deletes and finds of keys that are
 * there; the rest are finds of keys that are not.
 */
typedef struct BenchMix
{
	uint32_t	inserts;
	uint32_t	deletes;
	uint32_t	hits;
	uint64_t	salt;			/* of this batch */
	uint64_t	insert_first;	/* position i inserts insert_first + i */
	uint64_t	delete_first;	/* and deletes delete_first + i */
	uint64_t	hit_first;		/* finds are drawn from hit_first .. + hit_range */
	uint64_t	hit_range;
} BenchMix;

typedef struct BenchJob
{
	BenchJobKind kind;
	BenchStream stream;
	uint64_t	low;			/* indexes that are there: low <= index < high */
	uint64_t	high;
	uint64_t	version;		/* of values */
	uint64_t	limit;			/* lists, positions: how many positions were stored */
	uint64_t	stored_order;	/* lists: in this order */
	BenchMix	mix;
	BenchMixPart part;
	void	   *keys;
	void	   *values;
	uint8_t    *bytes;			/* ops or flags */
	uint64_t   *words;			/* counts, offsets or last positions */
	uint32_t   *seen;			/* a bit per index or position, cleared before */
} BenchJob;

/* ------------------------------------------------------------- numbers */

BENCH_FUNCTION uint64_t
bench_mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

BENCH_FUNCTION uint32_t
bench_mix32(uint32_t z)
{
	z = (z ^ (z >> 16)) * UINT32_C(0x85EBCA6B);
	z = (z ^ (z >> 13)) * UINT32_C(0xC2B2AE35);
	return z ^ (z >> 16);
}

/* A permutation of 0 .. range - 1: one of the next power of two, walked on until inside. */
BENCH_FUNCTION uint64_t
bench_shuffle(uint64_t i, uint64_t range, uint64_t seed)
{
	uint64_t	odd = bench_mix64(seed) | 1;
	uint64_t	add = bench_mix64(seed + 1);
	uint32_t	bits = 1;
	uint64_t	mask;

	while (bits < 63 && ((uint64_t) 1 << bits) < range)
		bits++;
	mask = ((uint64_t) 1 << bits) - 1;
	do
	{
		i = (i * odd + add) & mask;
		i ^= i >> ((bits + 1) / 2);
		i = (i * UINT64_C(0x9E3779B97F4A7C15)) & mask;
		i ^= i >> ((bits + 1) / 2);
		i = (i * odd + (add >> 7)) & mask;
	} while (i >= range);
	return i;
}

/* ---------------------------------------------------------- keys, values */

/*
 * Row `row` of a lineitem: orders of 1 to 7 lines, seven orders of 28 lines a
 * group; order numbers with gaps as dbgen leaves them (8 of 32); parts at random.
 * order number, part and line number in 34, 27 and 3 bits.
 */
BENCH_FUNCTION uint64_t
bench_line_key(uint64_t row, uint64_t seed)
{
	uint64_t	group = row / 28;
	uint64_t	line = row % 28;
	uint64_t	start = bench_mix64(group ^ seed) % 7;
	uint64_t	order = 0;
	uint64_t	number;
	uint64_t	part;

	while (line >= 1 + (order + start) % 7)
	{
		line -= 1 + (order + start) % 7;
		order++;
	}
	number = group * 7 + order;
	number = (number >> 3) << 5 | (number & 7);
	/* 200,000 parts for each 6 million rows: what 100 million rows have */
	part = 1 + bench_mix64(row * 3 + seed) % 3333333;
	return number << 30 | part << 3 | (line + 1);
}

BENCH_FUNCTION uint64_t
bench_key(const BenchStream *stream, uint64_t index)
{
	if (stream->line_keys)
		return bench_line_key(index, stream->seed);
	if (stream->key_size == 4)
		return bench_mix32((uint32_t) index * UINT32_C(0x9E3779B1) + (uint32_t) stream->seed);
	return bench_mix64(index * UINT64_C(0x9E3779B97F4A7C15) + stream->seed);
}

BENCH_FUNCTION uint64_t
bench_cut(uint32_t size, uint64_t word)
{
	return size == 4 ? (uint32_t) word : word;
}

BENCH_FUNCTION uint64_t
bench_value(const BenchStream *stream, uint64_t index, uint64_t version)
{
	return bench_cut(stream->key_size, index + version * UINT64_C(0x9E3779B97F4A7C15));
}

BENCH_FUNCTION uint64_t
bench_get(const void *array, uint32_t size, uint64_t i)
{
	return size == 4 ? ((const uint32_t *) array)[i] : ((const uint64_t *) array)[i];
}

BENCH_FUNCTION void
bench_set(void *array, uint32_t size, uint64_t i, uint64_t word)
{
	if (size == 4)
		((uint32_t *) array)[i] = (uint32_t) word;
	else
		((uint64_t *) array)[i] = word;
}

BENCH_FUNCTION uint64_t
bench_index(const BenchStream *stream, uint64_t i)
{
	uint64_t	word;
	uint64_t	octave;

	switch (stream->shape)
	{
		case BENCH_UNIQUE:
			return stream->first +
				(stream->order != 0 ? bench_shuffle(i, stream->range, stream->order) : i);
		case BENCH_DRAWN:
			return stream->first + bench_mix64(i ^ bench_mix64(stream->order)) % stream->range;
		case BENCH_MULTI:
			word = bench_shuffle(i, stream->range, stream->order);
			octave = word % 16;
			return word / 16 * 4 + (octave >= 1) + (octave >= 4) + (octave >= 9);
		case BENCH_SKEWED:
			word = bench_mix64(i ^ bench_mix64(stream->order));
			octave = (word >> 40) % stream->octaves;
			return ((uint64_t) 1 << octave) - 1 + (word & (((uint64_t) 1 << octave) - 1));
		case BENCH_HOT:
			break;
	}
	return 0;
}

/* -------------------------------------------------------- shared memory */

/* Sets the bit; was it set before? */
BENCH_FUNCTION bool
bench_seen(uint32_t *seen, uint64_t i)
{
	uint32_t	bit = (uint32_t) 1 << (i % 32);
	uint32_t	before;

#ifdef __CUDA_ARCH__
	before = atomicOr(&seen[i / 32], bit);
#else
	before = seen[i / 32];
	seen[i / 32] = before | bit;
#endif
	return (before & bit) != 0;
}

BENCH_FUNCTION void
bench_raise(uint64_t *word, uint64_t to)
{
#ifdef __CUDA_ARCH__
	atomicMax((unsigned long long *) word, (unsigned long long) to);
#else
	if (*word < to)
		*word = to;
#endif
}

/* ----------------------------------------------------------------- mixes */

/* The operation at a position and its index; all but hits are of indexes of their own. */
BENCH_FUNCTION BenchMixPart
bench_mix_part(const BenchMix *mix, uint64_t i, uint64_t *index)
{
	uint64_t	word = bench_mix64(i + bench_mix64(mix->salt));
	uint32_t	share = word & 255;

	if (share < mix->inserts)
	{
		*index = mix->insert_first + i;
		return BENCH_MIX_INSERT;
	}
	share -= mix->inserts;
	if (share < mix->deletes)
	{
		*index = mix->delete_first + i;
		return BENCH_MIX_DELETE;
	}
	share -= mix->deletes;
	if (share < mix->hits)
	{
		*index = mix->hit_first + (word >> 8) % mix->hit_range;
		return BENCH_MIX_HIT;
	}
	*index = BENCH_MISS_FIRST + i;
	return BENCH_MIX_MISS;
}

BENCH_FUNCTION void
bench_make_mix(const BenchJob *job, uint64_t i)
{
	uint32_t	size = job->stream.key_size;
	uint64_t	index;
	BenchMixPart part = bench_mix_part(&job->mix, i, &index);

	bench_set(job->keys, size, i, bench_key(&job->stream, index));
	bench_set(job->values, size, i, bench_value(&job->stream, index, job->version));
	job->bytes[i] = part == BENCH_MIX_INSERT ? GH_INSERT :
		part == BENCH_MIX_DELETE ? GH_DELETE : GH_FIND;
}

/* Finds see their values, others none; every operation but a miss has its effect. */
BENCH_FUNCTION uint64_t
bench_check_mix(const BenchJob *job, uint64_t i)
{
	uint32_t	size = job->stream.key_size;
	uint64_t	index;
	BenchMixPart part = bench_mix_part(&job->mix, i, &index);
	uint64_t	expected = part == BENCH_MIX_HIT ?
		bench_value(&job->stream, index, job->version) : BENCH_ABSENT;

	return bench_get(job->values, size, i) != bench_cut(size, expected) ||
		job->bytes[i] != (part != BENCH_MIX_MISS);
}

/* ---------------------------------------------------------------- checks */

BENCH_FUNCTION uint64_t
bench_check_found(const BenchJob *job, uint64_t i)
{
	uint32_t	size = job->stream.key_size;
	uint64_t	index = bench_index(&job->stream, i);
	bool		there = index >= job->low && index < job->high;
	uint64_t	expected = there ? bench_value(&job->stream, index, job->version) : BENCH_ABSENT;

	return bench_get(job->values, size, i) != bench_cut(size, expected);
}

/* The stream is of the queries; what is stored is a multi stream of limit positions. */
BENCH_FUNCTION uint64_t
bench_check_list(const BenchJob *job, uint64_t i)
{
	uint32_t	size = job->stream.key_size;
	uint64_t	index = bench_index(&job->stream, i);
	uint64_t	at = job->words[i];
	uint64_t	end = job->words[i + 1];
	uint64_t	wrong = 0;
	BenchStream stored = job->stream;

	if (end < at || end > job->limit || end - at != 1 + 2 * (index % 4))
		return 1;
	stored.shape = BENCH_MULTI;
	stored.range = job->limit;
	stored.order = job->stored_order;
	for (; at < end; at++)
	{
		uint64_t	position = bench_get(job->values, size, at);

		wrong |= position >= job->limit || bench_index(&stored, position) != index ||
			bench_seen(job->seen, position);
	}
	return wrong;
}

BENCH_FUNCTION uint64_t
bench_check_pair(const BenchJob *job, uint64_t i)
{
	uint32_t	size = job->stream.key_size;
	uint64_t	index = bench_cut(size, bench_get(job->values, size, i) -
								  job->version * UINT64_C(0x9E3779B97F4A7C15));

	return index < job->low || index >= job->high ||
		bench_get(job->keys, size, i) != bench_key(&job->stream, index) ||
		bench_seen(job->seen, index);
}

/* Does element i of the job; 1 when it is wrong, or counts. */
BENCH_FUNCTION uint64_t
bench_element(const BenchJob *job, uint64_t i)
{
	const BenchStream *stream = &job->stream;
	uint32_t	size = stream->key_size;
	uint64_t	index;

	switch (job->kind)
	{
		case BENCH_MAKE_KEYS:
		case BENCH_MAKE_PAIRS:
		case BENCH_MAKE_POSITIONS:
			index = bench_index(stream, i);
			bench_set(job->keys, size, i, bench_key(stream, index));
			if (job->kind != BENCH_MAKE_KEYS)
				bench_set(job->values, size, i, job->kind == BENCH_MAKE_POSITIONS ? i :
						  bench_value(stream, index, job->version));
			return 0;
		case BENCH_MAKE_LAST:
			bench_raise(&job->words[bench_index(stream, i)], i + 1);
			return 0;
		case BENCH_MAKE_MIX:
			bench_make_mix(job, i);
			return 0;
		case BENCH_COUNT_PRESENT:
			index = bench_index(stream, i);
			return index >= job->low && index < job->high;
		case BENCH_COUNT_MIX:
			return bench_mix_part(&job->mix, i, &index) == job->part;
		case BENCH_COUNT_STORED:
			return job->words[bench_index(stream, i)] != 0;
		case BENCH_CHECK_FOUND:
			return bench_check_found(job, i);
		case BENCH_CHECK_COUNTS:
			return job->words[i] != 1 + 2 * (bench_index(stream, i) % 4);
		case BENCH_CHECK_OFFSETS:
			return job->words[i] != i * job->limit;
		case BENCH_CHECK_LISTS:
			return bench_check_list(job, i);
		case BENCH_CHECK_POSITIONS:
			index = bench_get(job->values, size, i);
			return index >= job->limit || bench_seen(job->seen, index);
		case BENCH_CHECK_PAIRS:
			return bench_check_pair(job, i);
		case BENCH_CHECK_LAST:
			index = job->words[bench_index(stream, i)];
			return bench_get(job->values, size, i) != bench_cut(size, index - 1);
		case BENCH_CHECK_MIX:
			return bench_check_mix(job, i);
	}
	return 1;
}

#endif							/* ENGINE_BENCH_JOBS_H */
