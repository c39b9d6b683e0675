/*
 * parallel.h
 *		A GpuHashJoin that all participants of a parallel query run together: what is
 *		in dynamic shared memory, and what the files of this part offer each other.
 *
 * README in this folder tells the story.
 */
#ifndef GPUHASH_PARALLEL_H
#define GPUHASH_PARALLEL_H

#include "postgres.h"

#include "port/atomics.h"
#include "storage/barrier.h"
#include "storage/condition_variable.h"
#include "storage/dsm.h"
#include "storage/lwlock.h"
#include "storage/sharedfileset.h"
#include "storage/spin.h"
#include "utils/dsa.h"

#include "join/join.h"
#include "service/service.h"

/* Partitions of rows that do not fit in memory; each participant has a file for each. */
#define GH_SHARED_PARTITIONS_MAX 1024
/* Partitions that there are at least, each participant: they take unequal times. */
#define GH_SHARED_PARTITIONS_EACH 4

/*
 * Phases of GhShared.barrier.  A participant comes to the barrier whenever it gets to
 * run, finds the phase, and does what is left to do.  Nobody waits once it has
 * returned a row: from GH_SHARED_PROBE on there is nothing to wait for.
 *
 *	phase			all do										one does as well
 *	ROWS			read their part of the inner side
 *	TABLE			put what is in memory into files			makes an empty table
 *	ENTER			enter their rows, or put their part of
 *					the outer side into files
 *	TABLE_2														where ENTER came to nothing:
 *																makes another one, or empties it
 *	ENTER_2			enter their rows, then
 *	TABLE_3, ENTER_3,
 *	TABLE_4				likewise
 *	PROBE			probe, or join partitions
 *	DONE			return nothing								returns rows without a match
 *
 * ENTER comes to nothing where the device fails: then the next table is on the CPU
 * engine; and where the values cannot be columns (carry.c): then they are references.
 * After both there is nothing left to come to nothing.
 *
 * A table for the node above (probed.c) is made in the same phases: in TABLE one makes what all fill in
 * ENTER, in TABLE_2 its index, which is filled in ENTER_2 and, where columns could not be its values, once
 * more in ENTER_3. In TABLE_4 it is ready.  Where some row cannot be in it, TABLE_2 begins with a table of
 * the join's own.
 *
 * Where it is made straight from pages (probed_pages.c), ROWS reads nothing, and ENTER the pages.  If that
 * comes to nothing, ENTER_2, TABLE_3 and ENTER_3 are what ROWS, TABLE and ENTER are otherwise.
 *
 * So it is where rows are put into it as they come (probed_rows.c), but that none is read twice: ENTER_2
 * stores those that were read in ENTER, and reads the others.
 *
 * Where it is the copy of an index (probed_copy.c), each participant takes that for itself when it comes, and
 * nothing is done in the phases.  Where one that came up to ENTER cannot, all give it up, as pages.  One that
 * comes later and cannot, as the copy has been replaced, returns nothing: whoever decided that it is a copy
 * has one, and does what is left.
 */
typedef enum GhSharedPhase
{
	GH_SHARED_ROWS,
	GH_SHARED_TABLE,
	GH_SHARED_ENTER,
	GH_SHARED_TABLE_2,
	GH_SHARED_ENTER_2,
	GH_SHARED_TABLE_3,
	GH_SHARED_ENTER_3,
	GH_SHARED_TABLE_4,
	GH_SHARED_PROBE,
	GH_SHARED_DONE
} GhSharedPhase;

/* Which engine has the table. */
typedef enum GhSharedEngine
{
	GH_SHARED_NO_TABLE,
	GH_SHARED_CPU,
	GH_SHARED_SERVICE
} GhSharedEngine;

/* Whether the table is made straight from pages. */
typedef enum GhOfPages
{
	GH_OF_PAGES_UNDECIDED,
	GH_OF_PAGES_DECIDING,		/* one looks for the copy of an index, or makes it: others wait */
	GH_OF_PAGES_NO,
	GH_OF_PAGES_YES,
	GH_OF_ROWS,					/* nor from stored rows, but from rows as they come (probed_rows.c) */
	GH_OF_ROWS_GIVEN_UP,		/* from phase TABLE_2 on: they are stored after all */
	GH_OF_COPY,					/* there is nothing to make: each takes the copy of an index */
	GH_OF_PAGES_GIVEN_UP		/* from phase TABLE_2 on: rows are read after all */
} GhOfPages;

/* A table on the CPU engine in place of one on a device that failed while it was probed. */
typedef enum GhRescue
{
	GH_RESCUE_NONE,
	GH_RESCUE_MAKING,			/* one participant does */
	GH_RESCUE_READY
} GhRescue;

/* What all participants did, as far as they have left. */
typedef struct GhJoinTotals
{
	uint64		inner_rows;
	uint64		nbatches;
	uint64		removed_by_join_filter;
	uint64		bytes_written;
	uint64		private_bytes;	/* rows in memory of the participants alone, at most */
	uint64		table_bytes;	/* the largest table */
	bool		built;			/* the join itself ran; else a device did it for a node above */
	bool		carried;
	int			partitions;
	instr_time	source_time;
	instr_time	build_time;
	instr_time	wait_time;
	GhTableStats stats;			/* of the table that was written to most */
} GhJoinTotals;

/* Rows that a participant shares: its own to write until phase PROBE, then fixed. */
typedef struct GhSharedMember
{
	dsa_pointer chunks;			/* array of GhRowChunk */
	uint32		nchunks;
} GhSharedMember;

typedef struct GhShared
{
	/* never change */
	dsm_handle	segment;		/* that this lies in */
	int			nmembers;		/* the leader, and the workers asked for */

	Barrier		barrier;		/* GhSharedPhase */
	pg_atomic_uint32 users;		/* processes that have the segment mapped */

	/* rows */
	pg_atomic_uint32 last_chunk;	/* number given last */
	pg_atomic_uint64 row_bytes; /* of chunks */
	pg_atomic_uint64 row_bytes_peak;
	pg_atomic_uint64 nkeys;		/* rows with a key, as far as they were counted */
	pg_atomic_uint32 has_nulls; /* GhRowStore.has_nulls of any, likewise */
	pg_atomic_uint64 probed_bytes;	/* of rows in a table for the node above */
	pg_atomic_uint32 of_pages;	/* GhOfPages: by the first one in phase ROWS, or given up by who is elected */
	ConditionVariable decided;	/* it is no longer DECIDING */
	pg_atomic_uint32 unprobed;	/* set in phase ROWS: beside the rows there is no memory for a table for the node above */
	pg_atomic_uint32 own_chunks;	/* chunks of rows that were not shared when all were read */

	/* the table: written by the elected participant before the next phase */
	GhSharedEngine engine;
	char		engine_reason[GH_MESSAGE_SIZE];
	pg_atomic_uint64 device_root;	/* 0: none, or given back */
	GhRef		cpu_root;		/* written before rescue says READY, too */
	bool		enter;			/* the rows are to be entered */
	bool		probed;			/* it is for the node above, and cpu_root that of what all fill */
	bool		carries;		/* of GhCarry: in_use */
	bool		narrow;
	uint64		absent;

	/* memory of a table on the CPU engine */
	LWLock		lock;			/* of the table itself, and for the two below */
	GhRef		blocks;			/* list */
	uint32		blocks_changed; /* how often it became longer */

	/* failures */
	pg_atomic_uint32 failed;	/* set in a phase ENTER: the device did */
	pg_atomic_uint32 refused;	/* likewise: some row cannot be entered as columns */
	slock_t		mutex;			/* for the fields below */
	char		fallback_reason[GH_MESSAGE_SIZE];
	GhRescue	rescue;
	ConditionVariable rescued;

	/* rows in files */
	pg_atomic_uint32 nparts;	/* a power of two, set once in phase ROWS; 0: all is in memory */
	pg_atomic_uint32 next_part; /* the next one to be joined */
	SharedFileSet files;
	bool		has_rows[2][GH_SHARED_PARTITIONS_MAX];	/* by side: set by whoever writes
														 * a row */

	/* A participant left before it had probed: who was matched is not known. */
	bool		skip_unmatched;

	GhJoinTotals totals;		/* under mutex */

	GhSharedMember member[FLEXIBLE_ARRAY_MEMBER];
} GhShared;

/* A participant's own part. */
struct GhParallel
{
	GhShared   *shared;
	dsa_area   *area;			/* of the query: rows, and the CPU engine's table */
	dsm_segment *segment;
	int			member;			/* this participant's number */
	bool		attached;		/* to the barrier */
	bool		is_leader;
	bool		counted;		/* is in shared->totals */
	bool		left;			/* for good */
	bool		in_files;		/* rows are partitioned */
	GhServiceScope scope;
	uint32		blocks_seen;	/* blocks_changed when they were last mapped */
	bool		abandoned;		/* after an error: the common memory is left as it is */
	uint64		keys;			/* inner rows with a key that this participant has read */
	Size		bytes_counted;	/* of the store, in shared->row_bytes */
	uint64		keys_counted;	/* in shared->nkeys */
	char		engine_reason[GH_MESSAGE_SIZE];
	BufFile   **out;			/* by partition: files being written, or NULL */
	uint64		keyless_rows;	/* of the outer side, put into files */
	int			part;			/* the partition being joined */
	int			from[2];		/* by side: whose file is being read */
	BufFile    *in[2];			/* and the file, or NULL */
};

/* ---- parallel_table.c ---- */

extern void gh_shared_table_make(GhJoinState *js);
extern void gh_shared_table_enter(GhJoinState *js);
extern void gh_shared_table_make_again(GhJoinState *js);
extern void gh_shared_table_make_last(GhJoinState *js);
extern void gh_shared_table_open(GhJoinState *js);
extern void gh_shared_table_release(GhShared *shared);
extern void gh_parallel_free_blocks(GhJoinState *js);

/* ---- parallel_probed.c ---- */

extern bool gh_shared_probed_needs_no_rows(GhJoinState *js);
extern bool gh_shared_probed_gave_up(const GhJoinState *js);
extern bool gh_shared_probed_gave_rows_up(const GhJoinState *js);
extern bool gh_shared_probed_is_copy(const GhJoinState *js);
extern bool gh_shared_probed_take_copy(GhJoinState *js);
extern bool gh_shared_probed_make(GhJoinState *js);
extern void gh_shared_probed_go_on(GhJoinState *js, bool refused);
extern void gh_shared_probed_enter(GhJoinState *js);

/* ---- parallel_rows.c ---- */

extern void gh_parallel_rows_start(GhJoinState *js);
extern void gh_parallel_rows_end(GhJoinState *js);
extern void gh_parallel_share_rows(GhJoinState *js);
extern void gh_parallel_map_rows(GhJoinState *js);
extern void gh_parallel_forget_rows(GhJoinState *js);
extern void gh_parallel_use_private_rows(GhJoinState *js);

/* ---- parallel_spill.c ---- */

extern void gh_parallel_count_rows(GhJoinState *js);
extern void gh_parallel_close_files(GhJoinState *js);
extern void gh_parallel_write_rest(GhJoinState *js);
extern void gh_parallel_write_outer(GhJoinState *js);

#endif							/* GPUHASH_PARALLEL_H */
