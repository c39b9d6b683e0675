/*
 * node.h
 *		GpuHashScan: what the planner's half hands to the executor's half, and what the
 *		executor's files share.
 *
 * The CustomScan has the relation as its own (scanrelid), the conditions as its plan's quals, in
 * the order in which they are evaluated, and nothing else: its scan tuple is the relation's row.
 */
#ifndef GPUHASH_SCAN_NODE_H
#define GPUHASH_SCAN_NODE_H

#include "postgres.h"

#include "access/parallel.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

#include "compat.h"
#include "fragment/bound.h"
#include "fragment/fragment.h"
#include "fragment/parallel.h"
#include "fragment/page_conditions.h"
#include "gpuhash.h"
#include "plan/scan_plan.h"

/* A tuple that the device lets through, or hands back; the snapshot keeps it where it is. */
typedef struct GhDeviceRow
{
	BlockNumber block;
	OffsetNumber line;
	bool		back;			/* it is to be evaluated from the first condition on */
	bool		removed;		/* it has been counted as a row that conditions remove */
} GhDeviceRow;

typedef struct GhRowScan
{
	/*
	 * Must be first.  Its scan is this node itself: it has the pages, the counts, what a device does, and participants; what
	 * becomes of rows is the node's alone.
	 */
	GhFragment	fragment;
	bool		reads_pages;	/* else the node is a Seq Scan like PostgreSQL's */
	bool		is_scrolled;	/* by a cursor: only the page with its row is to be pinned between rows */
	bool		may_stop;		/* likewise, but it is not scrolled itself: a node above keeps its rows */
	bool		plain;			/* it is one now, up to the next rescan */
	GhPageConditions conditions;	/* and the rows of a page that meet them */

	/* the page that is pinned */
	bool		ended;			/* there are no more pages */
	int			blank;			/* pages without a row, since the last one that had some */
	int			counted;		/* of its visible tuples: those that the statistics know */

	/* ORDER BY ... LIMIT above (first.c) */
	GhBound		bound;
	bool		looked;			/* the program is what it is to be for that */

	struct GhRowScanDevice *device;
	GhFragmentMember member;	/* of a parallel query */
} GhRowScan;

/* exec.c */
extern void gh_rowscan_register(void);

/* keys.c: GpuHashKeys */
extern void gh_keys_register(void);

/* first.c */
extern void gh_rowscan_look_for_first(GhRowScan *node);

/* device.c */
extern void gh_rowscan_device_init(GhRowScan *node);
extern bool gh_rowscan_device_wants(GhRowScan *node);
extern Buffer gh_rowscan_device_row(GhRowScan *node, GhDeviceRow *row);
extern bool gh_rowscan_next_page(GhRowScan *node, int wanted);
extern void gh_rowscan_device_park(GhRowScan *node);
extern void gh_rowscan_device_stop(GhRowScan *node);
extern void gh_rowscan_device_end(GhRowScan *node);

/* parallel.c */
extern Size gh_rowscan_estimate_dsm(CustomScanState *css, ParallelContext *pcxt);
extern void gh_rowscan_init_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate);
extern void gh_rowscan_reinit_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate);
extern void gh_rowscan_init_worker(CustomScanState *css, shm_toc *toc, void *coordinate);
extern void gh_rowscan_shutdown(CustomScanState *css);
extern uint64 gh_rowscan_wanted(GhRowScan *node);

/* explain.c */
extern void gh_rowscan_explain(CustomScanState *css, List *ancestors, ExplainState *es);

#endif							/* GPUHASH_SCAN_NODE_H */
