/*
 * build.cuh
 *		What the two files of BUILD share: build.cu and duplicates.cu.
 */
#ifndef GPUHASH_BUILD_CUH
#define GPUHASH_BUILD_CUH

#include "cuda/table/probe.cuh"
#include "cuda/table/regions.cuh"

/* A build's arrays in device memory. */
struct build_work
{
	entry_list	list;			/* all positions */
	const char *values;			/* NULL: values are positions */
	place_lists lists;
	void	   *sketch;			/* estimate_bytes */
	uint64_t	bytes;			/* of all of the above that is scratch memory */
	void	   *own;			/* that memory, when it is not lane 0's */
	bool		flags_wanted;	/* the caller asks for them */

	/* the lists are not in there where the batch may be stored by regions first */
	bool		apart;
	void	   *placing;		/* memory of the lists */
	uint64_t	placing_bytes;

	/* where keys have many positions (duplicates.cu) */
	void	   *more;			/* memory of these */
	uint64_t	more_bytes;
	uint32_t   *numbers;		/* by winner's position: its record; NULL: the same */
	uint32_t   *counts;			/* by record: positions */
	uint32_t   *starts;			/* by record: first of its values */
	uint32_t   *owner;			/* by index into the list of losers: record */
	uint32_t   *rank;			/* the same: number among the record's positions */
	void	   *scan_space;
	size_t		scan_bytes;
};

/* What the records will be. */
struct record_plan
{
	uint64_t	records;
	const uint32_t *starts;		/* NULL: record i's value is value i */
	const uint32_t *counts;		/* NULL: one each */
};

/* build_regions.cu */
extern GhStatus build_by_lists(cuda_table *table, const build_work *work, bool *stored, GhError *error);

/* duplicates.cu */
extern GhStatus duplicates_number(cuda_table *table, build_work *work, uint32_t placed,
								  uint32_t present, record_plan *plan, GhError *error);
extern GhStatus duplicates_fill(cuda_table *table, const build_work *work,
								uint32_t present, GhError *error);

#endif							/* GPUHASH_BUILD_CUH */
