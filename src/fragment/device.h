/*
 * device.h
 *		What a fragment has done by pipelines of an engine (engine/pipeline/pipeline.h) on a device.
 */
#ifndef GPUHASH_FRAGMENT_DEVICE_H
#define GPUHASH_FRAGMENT_DEVICE_H

#include "postgres.h"

#include "storage/barrier.h"

#include "fragment/fragment.h"
#include "fragment/joined.h"
#include "fragment/supply.h"
#include "service/faults.h"
#include "store/resident_tables.h"

/* Rows handed back that a participant of a parallel query keeps for later. */
#define GH_KEPT_ROWS_MAX (1024 * 1024)

/* Blocks that were read one behind the other. */
typedef struct GhBlockRange
{
	int			part;			/* of the fragment's; 0 where it has none */
	BlockNumber first;
	BlockNumber count;
} GhBlockRange;

/* A row of the outer side. */
typedef struct GhKeptRow
{
	int			part;			/* as above */
	ItemPointerData at;
} GhKeptRow;

/* The table of a join, on the device. */
typedef struct GhDeviceTable
{
	GhJoined   *joined;			/* the chain of the join, which looks rows up in it: the fragment's, or an inner side's */
	GhJoinLevel *level;
	int			rank;			/* 0: it is made of a scan; else one more than the highest of the tables that it is made with */
	struct GhInnerSide *side;	/* what it is made of; NULL: that was not looked at yet */
	GhSupply   *supply;			/* brings its rows; NULL: there are none, or others have brought them */
	bool		copied;			/* it is the copy of an index (device_copy.c) */
	uint16	   *numbers;		/* and then, by the level's columns: what the table keeps of an entry; else NULL */
	GhTable    *changed;		/* and keys whose rows are not the table's; NULL: there are none */
	GhTable    *instead;		/* these rows; NULL: there are none */
	GhTable    *table;			/* NULL: it was not made, or this process has no handle on it */
	GhRef		root;			/* its name, where it may stay when this run has ended (device_tables.c); else 0 */
	bool		kept;			/* it stays, and is borrowed from those that do */
	bool		looked_for;		/* it is known what it may stay for */
	GhTableSource *source;		/* that; NULL: nothing */
	uint64		rows;			/* of one that this process has made */
	GhMarks    *marks;			/* of a right or full join, like the table */
	/* of the lowest of a chain: */
	bool		looked;			/* it is known whether there is an outer row (device_rows.c) */
	bool		found;			/* and there is */
} GhDeviceTable;

/* What was read for a device. */
typedef struct GhBlockLog
{
	int			count;
	int			room;
	GhBlockRange *ranges;
} GhBlockLog;

/* Rows of a part, on a device. */
typedef struct GhPartRows
{
	uint64		tuples;			/* that were visible */
	uint64		passed;			/* the scan's conditions */
} GhPartRows;

/*
 * What a fragment has done on one device; where it is on several, those but the first have one each in the
 * first one's set.
 */
typedef struct GhDeviceRun
{
	GhFragment *fragment;
	MemoryContext context;		/* of all that one run needs */
	const GhEngine *engine;		/* NULL: the CPU engine does all */
	int			number;			/* of its devices: the one for all pipelines of this run */
	int			executor;		/* that has the tables, where copies of indexes are among them; -1: the process's */
	int			turn;			/* of one of several: among them, from 0 on */
	struct GhDeviceSet *set;	/* the fragment's pages are divided among several devices (device_set.c); NULL: this one has all */
	/* of one of several: */
	bool		lost;			/* it does nothing any more; what it has read is read by others */
	GhPartRows *parts;			/* by part of the fragment */
	GhPartRows	counted;		/* in these, of the supply's */
	bool		tried;			/* in this run */
	bool		running;		/* pages go to the device */
	bool		tables_made;	/* of the joins, on the device */
	bool		together;		/* by all participants: they meet once more in the end */
	bool		has_groups;		/* another node has made them (shared_groups.c): no page is read */
	bool		no_rows;		/* a table is empty, and a join has no rows without it */
	const char *why_not;		/* a constant string */
	GhSupply	supply;
	int			ntables;		/* of the joins: an inner side that is joins follows their tables; the last join's is last */
	int			nranks;
	GhDeviceTable tables[GH_PROBES_MAX];
	MemoryContextCallback callback; /* which they go with */
	uint64		inner_rows;		/* of the last of them */
	/* what this participant has read, to read it again where the device is lost */
	uint64		read_before;	/* of these pages, by the CPU engine */
	GhBlockLog	log;
	/* together: rows that were handed back, until there are tables to join them with; of one of several: until all is read */
	int			nkept;
	int			kept_room;
	GhKeptRow  *kept;
} GhDeviceRun;

/* What became of a table that was to be made of the copy of an index. */
typedef enum GhCopyTable
{
	GH_COPY_NOT_USED,			/* there is none for it: the table is to be made otherwise */
	GH_COPY_USED,
	GH_COPY_FAILED				/* the table's supply has, and says why */
} GhCopyTable;

/* What becomes of a table of all participants. */
typedef enum GhSharedTable
{
	GH_SHARED_OWN,				/* it is made, and goes with the query */
	GH_SHARED_KEPT,				/* it was made, and stays */
	GH_SHARED_BORROWED,			/* it was there before */
	GH_SHARED_UNUSED			/* it is not needed: what would be made with it was there before */
} GhSharedTable;

/* In a parallel query over joins: the tables that participants make on one of the devices. */
typedef struct GhDeviceSharedTables
{
	pg_atomic_uint32 number;	/* of the device, set before the first table */
	pg_atomic_uint32 refused;	/* 1: they are not made there */
	pg_atomic_uint32 executor;	/* of GhDeviceRun, and one more, set before the first table */
	pg_atomic_uint32 asked;		/* ranks whose tables another than the elected participant has asked for */
	pg_atomic_uint64 tables[GH_PROBES_MAX]; /* GhRef of the pipelines that make them, and then of tables; 0: none */
	pg_atomic_uint32 becomes[GH_PROBES_MAX];	/* GhSharedTable */
	pg_atomic_uint64 copied[GH_PROBES_MAX]; /* blocks whose rows came from the copy of an index, for EXPLAIN; 0: it is none */
} GhDeviceSharedTables;

/*
 * In a parallel query over joins: participants make the joins' tables together on the device, or on each of
 * several, before they read the outer side, and, if any of them needs those, tables on the host afterwards.
 */
typedef struct GhDeviceShared
{
	Barrier		barrier;
	pg_atomic_uint32 no_rows;	/* 1: a table is empty, and a join has no rows without it */
	pg_atomic_uint32 wanted;	/* 1: tables are needed on the host */
	pg_atomic_uint32 readers;	/* participants that have buffers for the outer side, and read it to its end */
	pg_atomic_uint32 asked;		/* 1: one of them asks for a right or full join's rows without a match */
	pg_atomic_uint32 was_read;	/* 1: of the outer side, all pages */
	pg_atomic_uint32 failed;	/* 1: a right or full join is not done on the device after all */
	pg_atomic_uint32 by_rows;	/* 1: the tables cannot be probed on the host */
	pg_atomic_uint64 inner_rows;	/* of the last join's table */
	pg_atomic_uint64 marks;		/* GhRef, of the last table's; 0: none */
	pg_atomic_uint32 ndevices;	/* set with their numbers */
	GhDeviceSharedTables devices[GH_DEVICES_PER_QUERY_MAX]; /* by their turns */
} GhDeviceShared;

/* What is to be read of joins, for one participant. */
typedef enum GhDeviceTables
{
	GH_DEVICE_TABLES,			/* reads with the tables, and then calls gh_device_meet */
	GH_DEVICE_NO_TABLES,		/* reads as if there were no device */
	GH_DEVICE_NO_INPUT			/* reads nothing: the others do */
} GhDeviceTables;

extern void gh_device_init(GhFragment *fragment);
extern GhDeviceTables gh_device_open_joins(GhFragment *fragment);
extern bool gh_device_begin(GhFragment *fragment);
extern bool gh_device_wants(GhFragment *fragment);
extern bool gh_device_read(GhFragment *fragment, GhJoinedInput *input);
extern void gh_device_forget(GhFragment *fragment);
extern Size gh_device_piece(const GhFragment *fragment);

/* for the other files about the device */
extern bool gh_device_begin_supply(GhFragment *fragment, GhSupply *supply, GhPages *pages);
extern void gh_device_give_up(GhFragment *fragment, const GhSupply *supply);
extern void gh_device_keep_counts(GhFragment *fragment, const GhSupply *supply,
								  instr_time *elapsed);
extern bool gh_device_open_host_tables(GhFragment *fragment);

/* ---- device_set.c: several devices ---- */

/* A relation's blocks are for several devices by turns, so many for each. */
#define GH_SHARE_BLOCKS ((BlockNumber) GH_WITH_FAULT_POINTS(4, 1024))

/* For which of so many devices a block is. */
static inline int
gh_share_of_block(BlockNumber block, int ndevices)
{
	return (int) (block / GH_SHARE_BLOCKS % (BlockNumber) ndevices);
}

extern int	gh_device_set_of(Relation relation, bool ready, int *devices);

extern void gh_device_set_choose(GhFragment *fragment);
extern bool gh_device_turn_to(GhFragment *fragment, int turn);
extern int	gh_device_set_propose(GhFragment *fragment, int *numbers);
extern void gh_device_set_agree(GhFragment *fragment, int ndevices, const int *numbers);
extern void gh_device_set_lose_tables(GhFragment *fragment);
extern bool gh_device_set_has_tables(GhFragment *fragment);
extern bool gh_device_set_take_buffers(GhFragment *fragment);
extern bool gh_device_set_has_begun(const GhFragment *fragment);
extern bool gh_device_set_keeps_rows(const GhFragment *fragment);
extern void gh_device_set_decline(GhFragment *fragment);
extern void gh_device_set_forget_log(GhFragment *fragment);
extern bool gh_device_set_make_tables(GhFragment *fragment);
extern bool gh_device_set_begin(GhFragment *fragment);
extern bool gh_device_set_read(GhFragment *fragment);
extern bool gh_device_set_keep_results(GhFragment *fragment, void (*take) (void *arg, const char *records, Size bytes));
extern void gh_device_set_finish(GhFragment *fragment);
extern void gh_device_set_gave_up(GhFragment *fragment);
extern int	gh_device_set_size(const GhFragment *fragment);
extern void gh_device_set_end(GhFragment *fragment);

/* ---- device_replay.c ---- */

extern void gh_log_blocks(GhBlockLog *log, MemoryContext context, int part, BlockNumber block, uint32 count);
extern void gh_device_log(GhDeviceRun *device, int part, BlockNumber block, uint32 count);
extern uint64 gh_device_pages_logged(const GhDeviceRun *device);
extern GhJoinedInput gh_device_start_anew(GhFragment *fragment, GhJoinedInput left);
extern void gh_device_keep_row(GhDeviceRun *device, int part, BlockNumber block, OffsetNumber line);
extern void gh_device_add_kept_rows(GhDeviceRun *device);

/* ---- device_awaited.c ---- */

extern void gh_device_run_awaited(PlanState *ps, Node *condition);
extern void gh_device_run_first(GhFragment *fragment);

/* ---- sample.c ---- */

extern bool gh_device_sample(GhFragment *fragment, BlockNumber npages,
							 void (*take) (void *arg, const char *records, Size bytes), void *arg);

/* ---- device_joins.c ---- */

extern void gh_device_list_tables(GhFragment *fragment);
extern void gh_device_choose_executor(GhFragment *fragment);
extern bool gh_device_prepare_tables(GhFragment *fragment);
extern bool gh_device_make_tables(GhFragment *fragment);
extern void gh_device_tell_inner_scans(GhFragment *fragment, bool told[GH_PROBES_MAX]);
extern void gh_device_end_tables(GhFragment *fragment);
extern GhProbe *gh_device_probes(GhFragment *fragment);
extern bool gh_device_begin_table(GhFragment *fragment, int number, GhRef *shared);
extern bool gh_device_attach_table(GhFragment *fragment, int number, GhRef table, GhRef marks);
extern void gh_device_supply_tables(const GhDeviceTable *table, GhSupplies *all, bool elected);
extern const GhSupply *gh_device_failed_supply(const GhDeviceRun *device);
extern bool gh_device_finish_table(GhFragment *fragment, int number, GhRef *marks);
extern void gh_device_tables_are_done(GhFragment *fragment, bool made);
extern void gh_device_rewind_table(GhFragment *fragment, int number, bool for_all);

extern void gh_device_drop_table(const GhDeviceRun *device, GhDeviceTable *made);
extern void gh_device_refuse_rows(GhSupply *supply);
extern void gh_device_register_tables(GhFragment *fragment);
extern bool gh_device_attach(GhDeviceRun *device, GhDeviceTable *made, GhRef table, GhRef marks);
extern bool gh_device_note_table(GhFragment *fragment, int number, GhRef *marks, GhError *error);

/* ---- device_tables.c ---- */

extern const void *gh_device_options_bytes(GhPipelineOptions options, Size *bytes);

extern bool gh_device_borrow_table(GhFragment *fragment, int number, GhRef *marks);
extern void gh_device_borrow_shared(GhFragment *fragment, const GhJoined *joined, GhDeviceSharedTables *own, GhRef *marks);
extern bool gh_device_hold_table(GhDeviceTable *table, GhRef root);
extern void gh_device_keep_table(GhFragment *fragment, int number);
extern void gh_device_leave_table(GhDeviceTable *table);

/* ---- device_copy.c ---- */

extern bool gh_device_has_copies(GhFragment *fragment);
extern bool gh_device_map_copy(GhFragment *fragment, int number);
extern GhCopyTable gh_device_copy_table(GhFragment *fragment, int number);
extern void gh_device_probe_copy(const GhDeviceTable *table, GhProbe *probe, GhProbeFill *fills);

/* ---- device_rows.c ---- */

extern bool gh_device_scan_has_row(PlanState *scan, bool accepted);

/* ---- device_parallel.c ---- */

extern void gh_device_share(GhDeviceShared *shared);
extern void gh_device_unshare(GhDeviceShared *shared);
extern GhDeviceTables gh_device_make_tables_together(GhFragment *fragment, bool able);
extern bool gh_device_leaves_pages(GhFragment *fragment);
extern bool gh_device_all_have_read(GhFragment *fragment, bool done, bool *asks);
extern GhJoinedInput gh_device_meet(GhFragment *fragment, bool wanted, bool has_read);

#endif							/* GPUHASH_FRAGMENT_DEVICE_H */
