/*
 * cpu_groups.h
 *		The groups that a pipeline makes on the CPU.
 */
#ifndef GPUHASH_CPU_GROUPS_H
#define GPUHASH_CPU_GROUPS_H

#include "engine/pipeline/cpu_blocks.h"
#include "engine/pipeline/pipeline.h"

/*
 * What stands for a row's keys: 64 bits, and of packed codes which keys are NULL.  A packed code is the keys
 * themselves; any other is their hash, and equal codes need not be equal keys.
 */
typedef struct GhCpuSlot
{
	uint64_t	code;
	uint32_t	group;			/* its number, and 1; 0: the slot is free */
	uint32_t	nulls;			/* packed: bit k: key k is NULL, and its bits of the code are 0; else 0 */
} GhCpuSlot;

/* How keys are packed: key k is an integer with sign of bits[k] bits, or a text that is taken for one. */
typedef struct GhCpuPacking
{
	bool		packed;			/* false: a code is a hash */
	uint8_t		bits[GH_VALUES_MAX];
	uint8_t		shift[GH_VALUES_MAX];
	uint64_t	seen[GH_VALUES_MAX]; /* all magnitudes of the key so far, or'ed */
} GhCpuPacking;

/* The keys of a group: behind this, of each key its low word, and its high word if its class has one.  NULLs are 0. */
typedef struct GhCpuGroupKeys
{
	uint64_t	nulls;			/* bit k: key k is NULL */
	uint64_t	words[];
} GhCpuGroupKeys;

/*
 * Groups by number, each with its keys and states; the bytes of keys that are text; and a hash table from codes
 * to numbers, with linear probing and at most half full.  All of it grows by doubling, and at last to the limit of
 * memory, where slots are fewer.
 */
typedef struct GhCpuGrouping
{
	GhCpuSinkMemory *memory;
	const GhGroupsSink *sink;	/* of the set whose keys are looked up */
	uint32_t	keys_bytes;		/* of a group */
	uint8_t		key_words[GH_VALUES_MAX];	/* by key: where its first word is */
	uint64_t	seed[2];		/* of the hash of packed codes */
	GhCpuPacking packing;
	bool		any_null;		/* packed: some group has a NULL */
	uint32_t	count;
	uint32_t	room;			/* groups */
	uint32_t	full;			/* groups up to this number have all had a row */
	uint64_t	mask;			/* slots - 1 */
	GhCpuSlot  *slots;
	GhAggregateState *states;
	uint64_t   *had_row;		/* bits, by group: some row was added to it */
	char	   *keys;
	GhCpuTexts	texts;
	uint64_t	texts_left;		/* bytes of them that are no group's any more (cpu_group_texts.c) */
	GhCpuBlock	block;			/* has slots, states, bits and keys */
	/* Set before a look-up: whether it may end early because of the host's stop flag; and whether it did. */
	bool		may_stop;
	bool		stopped;
} GhCpuGrouping;

/* The codes of a batch's rows; those of rows that are not live are anything. */
typedef struct GhCpuCodes
{
	bool		any_null;
	uint64_t	codes[GH_VECTOR_ROWS];
	uint32_t	nulls[GH_VECTOR_ROWS];	/* where there is any */
} GhCpuCodes;

#define GH_CPU_NO_GROUP_FOUND UINT32_MAX

static inline GhCpuGroupKeys *
gh_cpu_grouping_at(const GhCpuGrouping *groups, uint32_t group)
{
	return (GhCpuGroupKeys *) (groups->keys + (size_t) group * groups->keys_bytes);
}

/* Key k of a group. */
static inline GhValue
gh_cpu_group_value(const GhCpuGrouping *groups, const GhCpuGroupKeys *keys, uint32_t k)
{
	uint8_t		value_class = groups->sink->keys[k].value_class;
	const uint64_t *words = keys->words + groups->key_words[k];
	GhValue		value = {words[0], gh_class_has_high(value_class) ? words[1] : 0, (uint8_t) (keys->nulls >> k & 1)};

	if (value_class == GH_CLASS_TEXT)
		value.low += (uint64_t) (uintptr_t) groups->texts.bytes;
	return value;
}

static inline bool
gh_cpu_group_had_row(const GhCpuGrouping *groups, uint32_t group)
{
	return (groups->had_row[group / 64] >> group % 64 & 1) != 0;
}

static inline void
gh_cpu_group_set_row(const GhCpuGrouping *groups, uint32_t group, bool had_row)
{
	groups->had_row[group / 64] &= ~(UINT64_C(1) << group % 64);
	groups->had_row[group / 64] |= (uint64_t) had_row << group % 64;
}

/* ---------------------------------------------------------- cpu_groups.c */

extern GhStatus gh_cpu_grouping_init(GhCpuGrouping *groups, GhCpuSinkMemory *memory, const GhGroupsSink *sink,
									 GhError *error);
extern void gh_cpu_grouping_drop(GhCpuGrouping *groups);
/* Forgets all groups, in the memory that they have. */
extern void gh_cpu_grouping_clear(GhCpuGrouping *groups);
/*
 * The groups of the live rows of a batch, new or old, in found; or, of those for which there is no memory,
 * GH_CPU_NO_GROUP_FOUND, and they are how many is returned.  Where it stopped, they lack memory no more than time.
 */
extern uint32_t gh_cpu_grouping_find(GhCpuGrouping *groups, const GhVectorBatch *batch, uint32_t *found);
/* Forgets the groups from a number on, when as many bytes of texts were used; others are as they are. */
extern void gh_cpu_grouping_cut(GhCpuGrouping *groups, uint32_t count, uint64_t texts_used);
/* The live rows of a batch have been added to these groups, which therefore are in results. */
extern void gh_cpu_grouping_fill(GhCpuGrouping *groups, const GhVectorBatch *batch, const uint32_t *found);

/* ----------------------------------------------------- cpu_group_codes.c */

/* Before the first group. */
extern void gh_cpu_packing_init(GhCpuPacking *packing, const GhGroupsSink *sink);
/* False: some key does not fit.  Then the packing has changed, and all codes of groups with it. */
extern bool gh_cpu_make_codes(GhCpuPacking *packing, const GhGroupsSink *sink, const GhVectorBatch *batch,
							  GhCpuCodes *codes);
/* The code of a group's keys. */
extern GhCpuSlot gh_cpu_group_code(const GhCpuGrouping *groups, const GhCpuGroupKeys *keys);

#endif							/* GPUHASH_CPU_GROUPS_H */
