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
	uint32_t   *positions;		/* NULL: nobody asks */
	uint32_t	room;
};

/* Pairs by region, with their positions, where the region has entries. */
struct region_lists
{
	void	   *pairs;
	uint32_t   *positions;
	uint32_t	room;			/* pairs of a region */
};

/* The regions of a table as a batch is stored by them. */
struct region_map
{
	uint32_t	regions;		/* those of the subtable that has fewest */
	uint32_t	slots;			/* of a region in all subtables */
	uint32_t	run[GH_SUBTABLES_MAX];	/* slots of a region in a subtable */
	uint32_t	queue;			/* keys of a region whose two buckets are full, at most */
	uint32_t   *filled;			/* by region: pairs that are there */
	region_lists lists;
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
	uint32_t   *positions;		/* of the pairs, if they are wanted */
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
	bool		positions;		/* pairs have theirs */
	uint64_t	slice_bytes;	/* of pairs between the two passes; 0: SLICE_BYTES */
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
extern bool regions_map(const cuda_table *table, region_map *map);
extern size_t regions_shared_most(const cuda_table *table, size_t fixed);
extern bool regions_plan_passes(const cuda_table *table, uint64_t count, bool positions,
								region_work *work);
extern uint32_t regions_bin_room(double mean);
extern uint64_t regions_bin_pairs(const region_work *work);
extern void regions_carve_counts(carver *carver, uint64_t count, region_work *work);
extern GhStatus regions_list(cuda_table *table, const table_view &view, const entry_list *list,
							 const region_work *work, GhError *error);
/*
 * Their queue's room, where no region has keys, and whether a batch of so many is worth writing all of them.
 */
extern uint32_t regions_queue_room(const cuda_table *table, uint32_t slots);
extern bool regions_worth(const cuda_table *table, uint64_t count);
extern void regions_begin(cuda_table *table);
extern GhStatus regions_reserve(cuda_table *table, uint64_t count, region_work *work, GhError *error);
extern GhStatus regions_store(cuda_table *table, const entry_list *list,
							  const region_work *work, uint8_t *flags, bool with_equals,
							  regions_outcome *outcome, GhError *error);

/*
 * Always for the most: the leave is the kernel's, whoever launches it, and the thread of
 * another table may be between getting it and its launch.
 */
template <typename KERNEL> static inline GhStatus
regions_allow_shared(cuda_table *table, KERNEL kernel, size_t fixed, GhError *error)
{
	CUDA_TRY(table, cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
										 cudaFuncAttributeMaxDynamicSharedMemorySize,
										 (int) regions_shared_most(table, fixed)), error);
	return GH_OK;
}

/* --------------------------------------------------------------- change.cu */

/* A slice of INSERT or UPSERT that is to be done by regions in a table that has keys. */
struct change_work
{
	region_work regions;		/* with lists, and a list of keys that have no region */
	uint64_t	count;			/* positions */
	uint64_t	bytes;			/* of scratch memory; 0: it is not to be done like this */
};

extern void change_plan(const cuda_table *table, GhOp op, uint64_t count, change_work *work);
extern GhStatus change_suits(cuda_table *table, GhOp op, const entry_list *list, bool *suits,
							 GhError *error);
extern void change_carve(const cuda_table *table, void *base, change_work *work);
/* *done: the slice is, with that many new keys; else the table's content is as before. */
extern GhStatus change_run(cuda_table *table, GhOp op, const entry_list *list,
						   const change_work *work, uint8_t *flags, bool *done,
						   uint32_t *inserted, GhError *error);

#endif							/* GPUHASH_REGIONS_CUH */
