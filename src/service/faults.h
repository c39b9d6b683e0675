/*
 * faults.h
 *		Fault points: where a build with FAULT_POINTS=yes can make the device, or its
 *		worker, fail.  One list for all tests.  This is the one place where such a build and a
 *		usual one differ; what else tests need is in test/modules/gpuhash_test.
 */
#ifndef GPUHASH_SERVICE_FAULTS_H
#define GPUHASH_SERVICE_FAULTS_H

#include "postgres.h"

#include "port/atomics.h"

#include "engine/engine.h"

/* Points: before a worker does what a request asks for, and inside. */
#define GH_FAULT_POINT_LIST(X) \
	X(ANY, "any") \
	X(OPEN, "open") \
	X(REGISTER, "register") \
	X(POOL, "pool") \
	X(CREATE, "create") \
	X(CLEAR, "clear") \
	X(RESERVE, "reserve") \
	X(FLUSH, "flush") \
	X(STATS, "stats") \
	X(DESTROY, "destroy") \
	X(INSERT, "insert") \
	X(UPSERT, "upsert") \
	X(EXCHANGE, "exchange") \
	X(ADD, "add") \
	X(BUILD, "build") \
	X(FIND, "find") \
	X(COUNT, "count") \
	X(FIND_ALL, "find_all") \
	X(DELETE, "delete") \
	X(DELETE_ONE, "delete_one") \
	X(MIXED, "mixed") \
	X(SCAN_CREATE, "scan_create") \
	X(SCAN, "scan") \
	X(SCAN_RESULTS, "scan_results") \
	X(SCAN_TABLE, "scan_table") \
	X(SCAN_STATS, "scan_stats") \
	X(SCAN_ANSWER, "scan_answer")	/* whatever happens there, too much is told */ \
	X(SPAN_CREATE, "span_create") \
	X(RESIDENT_MAP, "resident_map")	/* of resident pages the map's LSN is not looked at */ \
	X(RESIDENT_HEAP, "resident_heap")	/* nor the page's */ \
	X(RESIDENT_ORDER, "resident_order")	/* the map is read before the snapshot is held */ \
	X(RESIDENT_SPLIT, "resident_split")	/* the map's bits are read some time after its LSN */ \
	X(INDEX_INSERTED, "index_inserted")	/* an insert is not noted in the touched map */ \
	X(INDEX_REMOVED, "index_removed")	/* nor what VACUUM removes */ \
	X(INDEX_ORDER, "index_order")	/* the touched map is read before the visibility map */ \
	X(INDEX_LSN, "index_lsn")	/* of a copy made in recovery the map's LSNs are not compared */ \
	X(INDEX_BEGIN, "index_begin")	/* blocks not all-visible when a copy is begun are not left out */ \
	X(INDEX_AGAIN, "index_again")	/* in recovery the map is not asked again behind the leaf pages */ \
	X(INDEX_LEAF, "index_leaf")	/* behind each leaf page that is copied */ \
	X(INDEX_ASKED, "index_asked")	/* behind each of the two maps that are read */ \
	X(INDEX_REMADE, "index_remade")	/* behind some thousand entries of a copy that is made in the background */ \
	X(INDEX_COPY, "index_copy")	/* a process does not take the copy of an index */ \
	X(COLUMNS_WORKER, "columns_worker")	/* a part of columns is made in the background */ \
	X(TEXT_ORDER, "text_order")	/* PostgreSQL cannot compare two texts, of which an engine is to keep one */ \
	X(ALLOCATION, "allocation") \
	X(REPLY, "reply")

/* What happens there. */
#define GH_FAULT_KIND_LIST(X) \
	X(NO_MEMORY, "no_memory")	/* the device has no memory */ \
	X(LIMIT, "limit")			/* the memory limit is reached */ \
	X(LAUNCH, "launch")			/* a kernel fails: this table's content is lost */ \
	X(STICKY, "sticky")			/* the device fails for good, in this process */ \
	X(TERM, "term")				/* the worker is told to end */ \
	X(HANG, "hang")				/* the device answers no more */ \
	X(DELAY, "delay")			/* it answers after `ms` */ \
	X(HOLD, "hold")				/* nothing, until something else is armed */ \
	X(KILL, "kill")				/* the worker is killed */ \
	X(CRASH, "crash")			/* the driver aborts the process */

typedef enum GhFaultPoint
{
#define GH_FAULT_ENUM(name, text) GH_FAULT_POINT_##name,
	GH_FAULT_POINT_LIST(GH_FAULT_ENUM)
#undef GH_FAULT_ENUM
	GH_FAULT_POINTS_COUNT
} GhFaultPoint;

typedef enum GhFaultKind
{
	GH_FAULT_NONE,
#define GH_FAULT_ENUM(name, text) GH_FAULT_##name,
	GH_FAULT_KIND_LIST(GH_FAULT_ENUM)
#undef GH_FAULT_ENUM
	GH_FAULT_KINDS_COUNT
} GhFaultKind;

/* In shared memory; all zero: nothing is armed. */
typedef struct GhFaults
{
	pg_atomic_uint32 kind;		/* GhFaultKind; NONE: not armed */
	pg_atomic_uint32 point;
	pg_atomic_uint32 after;		/* passages that go well before */
	pg_atomic_uint32 times;		/* that fail then */
	pg_atomic_uint32 delay_ms;
	pg_atomic_uint32 fired;		/* so far, since armed */
} GhFaults;

#ifdef GH_FAULT_POINTS

/* A number of a build with fault points, and of a usual one. */
#define GH_WITH_FAULT_POINTS(number, usual) (number)

extern void gh_faults_init(GhFaults *faults);
/* What is to happen at this passage of the point.  Delays and ends are done here. */
extern GhFaultKind gh_fault_pass(GhFaultPoint point);
extern GhFaultPoint gh_fault_point_of(GhOp op);

#else

#define GH_WITH_FAULT_POINTS(number, usual) (usual)

#define gh_faults_init(faults) ((void) 0)

static inline GhFaultKind
gh_fault_pass(GhFaultPoint point)
{
	(void) point;
	return GH_FAULT_NONE;
}

static inline GhFaultPoint
gh_fault_point_of(GhOp op)
{
	(void) op;
	return GH_FAULT_POINT_ANY;
}

#endif

/* At a point where something is to be left out: whether it is. */
static inline bool
gh_fault_leaves_out(GhFaultPoint point)
{
	GhFaultKind kind = gh_fault_pass(point);

	return kind != GH_FAULT_NONE && kind != GH_FAULT_HOLD;
}

/* An armed fault as an engine's status; GH_OK: none. */
static inline GhStatus
gh_fault_status(GhFaultKind kind, GhError *error)
{
	switch (kind)
	{
		case GH_FAULT_NO_MEMORY:
			return gh_error_set(error, GH_NO_MEMORY, "fault point: the device has no memory");
		case GH_FAULT_LIMIT:
			return gh_error_set(error, GH_LIMIT, "fault point: the memory limit is reached");
		case GH_FAULT_LAUNCH:
		case GH_FAULT_STICKY:
			return gh_error_set(error, GH_DEVICE_ERROR, "fault point: the device failed");
		default:
			return GH_OK;
	}
}

#endif							/* GPUHASH_SERVICE_FAULTS_H */
