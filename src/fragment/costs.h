/*
 * costs.h
 *		What reading pages costs, in the planner's unit: for the planner, and for who chooses an
 *		engine at run time.
 */
#ifndef GPUHASH_FRAGMENT_COSTS_H
#define GPUHASH_FRAGMENT_COSTS_H

#include "postgres.h"

#include "optimizer/optimizer.h"

#include "gpuhash.h"

/*
 * What a row costs beside PostgreSQL's executor; each in the unit that it names.  To be calibrated on the
 * benchmarks.
 */
#define GH_PAGE_ROW_COST (1.0 / 3)	/* cpu_tuple_cost: a row of a page */
#define GH_COLUMN_ROW_COST 0.1	/* cpu_tuple_cost: a row of columns in memory */
#define GH_KEPT_ROW_COST 0.25	/* cpu_tuple_cost: a row of another plan, kept until there are some hundred */
#define GH_INSTRUCTION_COST 0.1 /* cpu_operator_cost: an instruction, for one row */
#define GH_DEVICE_TABLE_COST 0.05	/* cpu_tuple_cost: a row of a joined table, on a device; gpuhash.device_page_cost
									 * and others have what pages cost */
#define GH_DEVICE_LINE_COST 0.05	/* cpu_tuple_cost: a row of a join beyond those of its outer side, on a device */

/*
 * What one of several processes does to read a table's pages, for the planner and for who chooses an engine at run
 * time: with the CPU engine,
 */
static inline Cost
gh_cpu_pages_cost(double pages, double rows, double page_cost, int ninstructions, double divisor)
{
	return page_cost * pages + rows / divisor *
		(GH_PAGE_ROW_COST * cpu_tuple_cost + GH_INSTRUCTION_COST * cpu_operator_cost * ninstructions);
}

/*
 * What a page costs that a device reads where it is, and whose tuples are all visible: of one that is gone
 * over and copied, 550 ns. On three H200 hosts one process finds, pins, hands over and unpins 318,000 such
 * pages in 80 to 125 ms, 250 to 390 ns each, where the bus takes 160.
 */
#define GH_PINNED_PAGE_SHARE 0.5
/*
 * What one costs that is on the device already, in the unit of gpuhash.device_page_cost, of which 0.25 stand
 * for 550 ns: its place is looked up and named, some 20 ns, and nothing takes the bus.
 */
#define GH_RESIDENT_PAGE_COST 0.01

/*
 * What it costs that a device goes on with the pages of another relation: this share of its start.  120
 * partitions of pages that stay take 0.13 ms each on an H200, where a start takes about 1 ms.
 */
#define GH_DEVICE_PART_COST 0.1

/*
 * ... and for a device, but for its start: each page costs the process that supplies it, by what share of all
 * is on the device and what share only pinned, and at the least the bus, or one of the buses where pages are
 * divided among several devices; rows are decoded and added meanwhile.  page_cost is what reading costs, of a
 * page as they are on the average.
 */
static inline Cost
gh_device_pages_cost(double pages, double page_cost, double resident, double pinned, double divisor, int buses)
{
	Cost		supply = gh_device_page_cost * (1 - resident - (1 - GH_PINNED_PAGE_SHARE) * pinned) +
		GH_RESIDENT_PAGE_COST * resident;

	return pages * (page_cost + Max(supply / divisor, gh_device_bus_cost * (1 - resident) / buses));
}

#endif							/* GPUHASH_FRAGMENT_COSTS_H */
