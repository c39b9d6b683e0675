/*
 * regions.cuh
 *		What regions.cu offers to the operations that begin with it, and tells its kernels.
 */
#ifndef GPUHASH_REGIONS_CUH
#define GPUHASH_REGIONS_CUH

#include "cuda/table/table.h"

/* Entries that found no place in their region, and keys that have none. */
struct leftover_list
{
	void	   *keys;			/* by key_size */
	void	   *values;			/* the same */
	uint32_t	room;
};

/* The regions of a table as a batch is stored by them. */
struct region_map
{
	uint32_t	regions;		/* those of the subtable that has fewest */
	uint32_t	slots;			/* of a region in all subtables */
	uint32_t	run[GH_SUBTABLES_MAX];	/* slots of a region in a subtable */
	uint32_t	queue;			/* keys of a region whose two buckets are full, at most */
	uint32_t   *filled;			/* by region: pairs that are there */
	leftover_list leftover;
};

/* One pass over a slice of the batch. */
struct partition
{
	/* of a pass that reads the batch */
	const void *keys;
	const void *values;			/* NULL: positions */
	uint32_t	first;			/* position */
	uint32_t	count;
	/* between the passes, by bin of 2^shift regions */
	void	   *pairs;
	uint32_t   *filled;			/* pairs of a bin; more than bin_room did not fit */
	uint32_t	bin_room;
	uint32_t	shift;
	uint32_t	bins;			/* of the pass */
};

/* A batch that is to be stored by regions, and the scratch memory for it. */
struct region_work
{
	region_map	map;
	partition	part;			/* of the first pass of two */
	bool		single;			/* one pass does it */
	uint64_t	slice;			/* positions that both passes take at a time */
	uint64_t	filled_bytes;	/* of map.filled and of part.filled behind it */
	place_lists lists;			/* for what is left over */
	uint64_t	bytes;			/* of scratch memory; 0: it is not to be stored like this */
};

struct regions_outcome
{
	bool		stored;			/* else the table is empty as before */
	uint32_t	placed;
	uint32_t	present;		/* positions that came with another's key */
	uint32_t   *equals;			/* these, in scratch memory */
};

extern bool regions_may(const cuda_table *table, uint64_t count);
extern void regions_carve(const cuda_table *table, uint64_t count, void *base,
						  region_work *work);
extern GhStatus regions_store(cuda_table *table, const entry_list *list,
							  const region_work *work, uint8_t *flags, bool with_equals,
							  regions_outcome *outcome, GhError *error);

#endif							/* GPUHASH_REGIONS_CUH */
