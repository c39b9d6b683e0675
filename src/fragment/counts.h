/*
 * counts.h
 *		What a node counts of its input, by whichever engine it is read.
 */
#ifndef GPUHASH_FRAGMENT_COUNTS_H
#define GPUHASH_FRAGMENT_COUNTS_H

#include "postgres.h"

#include "portability/instr_time.h"

#include "fragment/supply.h"

/* What EXPLAIN ANALYZE shows; in a parallel query, of all participants. */
typedef struct GhFragmentCounts
{
	uint64		pages;			/* read by the node itself */
	uint64		column_pages;	/* of them, those of which columns were in shared memory */
	uint64		rows;			/* that the child had for it */
	uint64		back;			/* of them, by PostgreSQL's expressions from the scan's conditions on */
	uint32		joins_below;	/* from the lowest on, joins that returned their rows through the executor */
	uint64		groups;			/* that came out of the input, or its parts; or rows that were kept */
	Size		memory;			/* bytes of groups, at most */
	uint64		disk;			/* bytes written to files */
	instr_time	build_time;		/* the joins' inner sides read */
	instr_time	source_time;	/* pages read */
	instr_time	evaluate_time;	/* rows decoded, joined, evaluated, and added to groups */
	instr_time	merge_time;		/* of several participants' groups */
	/* on the device, also of joins' inner sides: */
	uint32		devices;		/* several: how many; 0: one, or none */
	uint64		device_pages;	/* that it read */
	uint64		pinned_pages;	/* of them, where they are in shared buffers */
	uint64		resident_pages; /* and that were on the device before */
	uint64		hinted_pages;	/* of them, where it found by hints what is visible */
	uint64		judged;			/* tuples of these, of which hints did not tell */
	uint64		unmatched;		/* inner rows of a right or full join, without a match */
	uint64		resident_tables;	/* of joins, that were there */
	uint64		groups_shared;	/* that another node had made */
	uint64		groups_left;	/* or rows, that it made, and that did not leave it */
	uint64		unwanted;		/* groups that did not come out, since they are not among the first of an order, in all runs */
	uint64		device_bytes;	/* that it read */
	uint64		device_memory;	/* bytes, at most */
	instr_time	wait_time;		/* for it */
	uint64		queue_ns;		/* of requests, until it began with them; the service's only */
	uint64		kernel_ns;		/* and until it was through */
	char		fallback_reason[GH_MESSAGE_SIZE];	/* why it was not, or not to the end */
	bool		on_device;		/* rows came in that were groups on a device, and never left it */
	bool		fell_with_others;	/* and that is that another participant failed, whose reason says more */
} GhFragmentCounts;

extern void gh_counts_add(GhFragmentCounts *totals, const GhFragmentCounts *counts);
extern void gh_counts_add_supply(GhFragmentCounts *counts, const GhSupply *supply, instr_time *elapsed);

#endif							/* GPUHASH_FRAGMENT_COUNTS_H */
