/*
 * groups.h
 *		What the files that deal with the groups of one process share.
 */
#ifndef GPUHASH_AGGREGATE_GROUPS_H
#define GPUHASH_AGGREGATE_GROUPS_H

#include "postgres.h"

#include "utils/palloc.h"

#include "aggregate/node.h"

/* Rows looked up at a time. */
#define GH_LOOKUP_ROWS 256

/* Most keys of a packed code: a byte tells which of them are NULL. */
#define GH_PACKED_KEYS_MAX 8

/* Most aggregates beside such: a record has a byte for NULLs beside a bit for each. */
#define GH_PACKED_AGGREGATES_MAX 56

/* Where a key is in a packed code. */
typedef struct GhPacking
{
	uint8		shift;
	uint8		bits;
} GhPacking;

/* Rows that are being looked up; groups are given as number + 1, and 0 is none. */
typedef struct GhLookup
{
	uint32		nrows;
	bool		any_null;		/* packed: some key of some row is NULL */
	uint64		codes[GH_LOOKUP_ROWS];
	uint8		nulls[GH_LOOKUP_ROWS];	/* packed: a bit for each key */
	GhSqlValue *values;			/* not packed, or of records: all keys of a row, then the next */
	uint64		slots[GH_LOOKUP_ROWS];	/* where the search for the code begins */
	uint32		groups[GH_LOOKUP_ROWS];
} GhLookup;

struct GhGroups
{
	MemoryContext own;			/* of this and what is as large for any number of groups */
	MemoryContext context;		/* of what grows with the groups */
	int			nkeys;
	const GhValueType *keys;
	int			naggregates;
	const GhAggregateSpec *specs;
	bool		has_texts;		/* some aggregate is the least or greatest of texts */
	bool		packed;
	GhPacking	packing[GH_PACKED_KEYS_MAX];
	GhLookup   *lookup;

	uint64		seed;			/* of the table's hash */
	uint64		mask;			/* of its slots: how many, less 1 */
	uint32	   *slots;			/* the first group of a code + 1, or 0; NULL: there is no room yet */

	uint32		count;
	uint32		capacity;		/* of the arrays by group */
	uint32		before;			/* how many there were before they were forgotten; 0: none */
	uint64	   *codes;
	uint32	   *next;			/* group + 1 of the next one with the same code, or 0 */
	uint8	   *nulls;			/* packed */
	bool		any_null;		/* packed: some key of some group is NULL */
	GhSqlValue *values;			/* not packed: by group and key */
	GhAggregateState *states;	/* by group and aggregate */
	GhSide	  **sides;			/* likewise; NULL before the first was asked for */
	char	   *piece;			/* what is left of memory for texts */
	Size		piece_left;
	Size		piece_size;
};

/* ---- keys.c: values and codes of the rows that are looked up ---- */

extern bool gh_choose_packing(GhGroups *groups);
extern uint64 gh_hash_key(const GhValueType *type, const GhSqlValue *key, uint64 hash);
extern GhSqlValue gh_unpack_key(const GhGroups *groups, uint64 code, uint8 nulls, int key);
extern void gh_lookup_values(GhGroups *groups);
extern bool gh_group_has_keys(const GhGroups *groups, Size group, uint32 row);

/* ---- groups.c ---- */

extern void gh_group_show_keys(GhGroups *groups, uint32 row);
extern void gh_look_up(GhGroups *groups);
extern void gh_look_up_known(GhGroups *groups);

/* ---- records.c ---- */

extern void gh_group_merge_state(GhGroups *groups, uint32 group, int a, const GhAggregateState *from,
								 const GhSide *from_side);
extern void gh_group_merge_record(GhGroups *groups, uint32 group, int a, const char *record,
								  const GhAggregateState *state);

#endif							/* GPUHASH_AGGREGATE_GROUPS_H */
