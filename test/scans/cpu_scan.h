/*
 * cpu_scan.h
 *		Scans on the CPU: the groups of one, or the table that it makes, and joins with such tables.
 */
#ifndef GPUHASH_CPU_SCAN_H
#define GPUHASH_CPU_SCAN_H

#include "engine/pipeline/cpu_blocks.h"

/* --------------------------------------------- groups: cpu_scan_groups.c */

#define GH_CPU_NO_GROUP UINT32_MAX

/*
 * Groups by number, each with its keys and states; a hash table of their numbers; the bytes of
 * keys that are text.  All of it grows by doubling, within the memory limit.  Where each row is a group
 * of its own there are no states, and nothing is looked up: no hashes or slots either.
 */
typedef struct GhCpuGroups
{
	GhCpuSinkMemory *memory;
	const GhScanPlan *plan;
	uint32_t	count;
	uint32_t	room;			/* groups: half the slots, a power of two; or 0 */
	char	   *records;		/* group_bytes each */
	uint64_t   *hashes;
	GhAggregateState *states;
	uint32_t   *slots;			/* a group's number + 1; 0: free */
	GhCpuTexts	texts;
	GhCpuBlock	block;			/* has records, hashes, states and slots */
} GhCpuGroups;

static inline GhScanGroup *
gh_cpu_group_at(const GhCpuGroups *groups, uint32_t group)
{
	return (GhScanGroup *) (groups->records + (size_t) group * groups->plan->group_bytes);
}

extern GhStatus gh_cpu_groups_init(GhCpuGroups *groups, GhCpuSinkMemory *memory,
								   const GhScanPlan *plan, GhError *error);
extern void gh_cpu_groups_drop(GhCpuGroups *groups);
extern uint32_t gh_cpu_group_find(GhCpuGroups *groups, const GhValue *values);
extern uint32_t gh_cpu_group_add(GhCpuGroups *groups, const GhValue *values);

/* ------------------------------------------------ a table: cpu_scan_table.c */

/* A row of a table; the values that it keeps lie behind it, as GhScanValue. */
typedef struct GhCpuEntry
{
	uint64_t	key;
	uint64_t	next;			/* one more than the number of the next one with the key; 0: there is none; or */
	uint64_t	nulls[GH_SCAN_KEPT_MAX / 64];	/* bit k: value k is NULL */
} GhCpuEntry;

#define GH_CPU_NO_KEY UINT64_MAX	/* in place of `next`: the row has no key, which is wanted all the same */

/*
 * Entries by number, in the order of the rows, and, when it is made, a hash table of the
 * numbers of the first one of each key.
 */
typedef struct GhCpuScanTable
{
	GhCpuSinkMemory *memory;
	const GhScanPlan *plan;
	uint64_t	count;
	uint64_t	room;			/* entries */
	uint32_t	entry_bytes;
	char	   *entries;
	uint64_t   *slots;			/* an entry's number + 1; 0: free */
	uint64_t	nslots;			/* a power of two; half of them are free */
	bool		several;		/* rows have the same key */
	uint8_t    *marks;			/* by entry, the first one of its key: 1: a join found it; NULL: there are none */
	GhCpuTexts	texts;
	GhCpuBlock	block;			/* entries */
	GhCpuBlock	slots_block;
	GhCpuBlock	marks_block;
} GhCpuScanTable;

extern void gh_cpu_table_init(GhCpuScanTable *table, GhCpuSinkMemory *memory,
							  const GhScanPlan *plan);
extern void gh_cpu_table_drop(GhCpuScanTable *table);
/* The batch has the row's values; key: or NULL; false: there is no memory. */
extern bool gh_cpu_table_add(GhCpuScanTable *table, const uint64_t *key, const GhVectorBatch *batch,
							 uint32_t row);
extern GhStatus gh_cpu_table_make(GhCpuScanTable *table, GhScanTable *made, GhError *error);
/* The first entry of the key, or NULL; the table was made. */
extern const GhCpuEntry *gh_cpu_table_find(const GhCpuScanTable *table, uint64_t key);
/* The next one with the key, or NULL. */
extern const GhCpuEntry *gh_cpu_table_next(const GhCpuScanTable *table, const GhCpuEntry *entry);
/* Marks the key of its first entry, in a table that has marks: scans of other threads may do so, too. */
extern void gh_cpu_table_mark(const GhCpuScanTable *table, const GhCpuEntry *entry);
/* The entry of a number, or NULL where it has a key that is marked. */
extern const GhCpuEntry *gh_cpu_table_unmarked(const GhCpuScanTable *table, uint64_t number);
extern bool gh_cpu_table_value(const GhCpuScanTable *table, const GhCpuEntry *entry,
							   uint32_t kept, GhScanValue *value);

/* ---------------------------------------------------- joins: cpu_scan_join.c */

/* A row's key; false: a part is NULL. */
extern bool gh_cpu_scan_key(const GhScanPart *parts, uint32_t nparts, const GhVectorBatch *batch,
							uint32_t row, uint64_t *key);
/* Fills the columns that a match fills, or, where entry is NULL, with NULL. */
extern void gh_cpu_scan_fill(const GhScanJoin *join, const GhCpuScanTable *table,
							 const GhCpuEntry *entry, const GhVectorBatch *batch, uint32_t row);
/* The first entry that a row of a batch matches, or NULL; it is marked, if that kind of join does. */
extern const GhCpuEntry *gh_cpu_scan_match(const GhScanJoin *join, const GhCpuScanTable *table,
										   const GhVectorBatch *batch, uint32_t row);
/*
 * Joins the rows that are live with a table: drops some, hands some back, fills columns.  Where several is
 * not NULL, rows with several matches are noted there, and dropped.
 */
extern void gh_cpu_scan_join(const GhScanJoin *join, const GhCpuScanTable *table,
							 GhVectorBatch *batch, uint8_t *several);

/* ------------------------------------------------------ a scan: cpu_scan.c */

struct GhCpuMatches;

typedef struct GhCpuScan
{
	GhScan		base;			/* first */
	GhHost		host;
	GhScanPlan	plan;
	GhCpuSinkMemory memory;
	GhCpuGroups groups;			/* or */
	GhCpuScanTable table;		/* where there are plan.options.parts */
	GhVectorBatch batch;
	void	   *batch_memory;
	uint32_t	found[GH_VECTOR_ROWS];	/* the rows' groups */
	uint8_t		came[GH_VECTOR_ROWS];	/* to the joins: 1; behind the first one: 2... */
	uint8_t		several[GH_VECTOR_ROWS];	/* 1: a row that joins make several of */
	struct GhCpuMatches *matches;	/* where joins may do that; else NULL */
	uint16_t   *numbers;		/* of a page's lines that are asked for */
	uint16_t   *untold;			/* of those that are not known to be visible */
	GhScanRequest *first;		/* oldest */
	GhScanRequest *last;
	uint64_t	lines;			/* of all requests so far */
	uint64_t	counted;
	bool		made;			/* the table, or tried to */
} GhCpuScan;

static inline const GhCpuScanTable *
gh_cpu_joined_table(const GhScanJoin *join)
{
	return &((const GhCpuScan *) join->table)->table;
}

/* Hands rows of a batch back that have a value which no engine sums. */
extern void gh_cpu_scan_check_sums(const GhCpuScan *scan, const GhVectorBatch *batch);
/*
 * Finds or makes the groups of the live rows, or puts them into the table.  Those for which there is no
 * memory go back, and are how many is returned.
 */
extern uint32_t gh_cpu_scan_find_groups(GhCpuScan *scan, const GhVectorBatch *batch, uint32_t *found);
extern uint32_t gh_cpu_scan_add_to_table(GhCpuScan *scan, const GhVectorBatch *batch);

/* Adds the live rows of scan->batch to their groups, or puts them into the table, or hands them back. */
extern void gh_cpu_scan_add(GhCpuScan *scan, GhScanRequest *request);

/* ------------------------- rows without a match: cpu_scan_unmatched.c */

/* Some rows of the last join's table, which has marks; the request has no pages. */
extern void gh_cpu_unmatched_rows(GhCpuScan *scan, GhScanRequest *request, uint64_t first, uint32_t count);

/* ----------------------------- rows with several matches: cpu_scan_matches.c */

extern GhStatus gh_cpu_matches_init(GhCpuScan *scan, GhError *error);
extern void gh_cpu_matches_drop(GhCpuScan *scan);
/* A row of scan->batch, as it came to the joins; false: it goes back. */
extern bool gh_cpu_matches_count(GhCpuScan *scan, GhScanRequest *request, uint32_t row);

/* --------------------------------------------------------- for other tests */

extern const GhScanEngine gh_cpu_scans;
/* The CPU engine, as if it did such scans. */
extern const GhEngine *gh_cpu_engine_with_scans(void);

#endif							/* GPUHASH_CPU_SCAN_H */
