/*
 * shared.h
 *		What the service keeps in shared memory, and who may touch it.
 *
 * Everything here is used by several processes, and by threads of the workers,
 * which call no function of PostgreSQL: what they touch is atomic, or belongs to
 * one side at a time by the state of a slot or table.
 */
#ifndef GPUHASH_SERVICE_SHARED_H
#define GPUHASH_SERVICE_SHARED_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"

#include "engine/pipeline/pipeline.h"
#include "service/faults.h"
#include "service/service.h"

#ifdef PG_HAVE_ATOMIC_U64_SIMULATION
#error "gpuhash's service needs 64-bit atomic operations: threads cannot use simulated ones"
#endif

#define GH_DEVICES_MAX 16

/* Threads of a worker that talk to the device.  A table belongs to one of them. */
#define GH_EXECUTORS 4

#define GH_NS_PER_MS UINT64CONST(1000000)

/* The unit of the transfer area; a buffer is one or more of them in a row. */
#define GH_UNIT_BYTES ((size_t) 512 * 1024)
#define GH_UNITS_MIN 3

/* Tables, pipelines and marks on devices at a time, of all sessions together. */
#define GH_TABLE_BITS 13
#define GH_TABLES_MAX (1 << GH_TABLE_BITS)

/* ------------------------------------------------------------------- slots */

/*
 * A slot is where a request lives.  There is one for each unit of the transfer
 * area, used by the buffer that begins there, and one for each process, for
 * requests without arrays.
 *
 *				client						executor
 *	FREE		takes it: OWNED
 *	OWNED		gives it back: FREE
 *				submits: SUBMITTED
 *	SUBMITTED	leaves: ABANDONED			is through: DONE
 *	DONE		has seen it: OWNED
 *	ABANDONED								is through: FREE
 *
 * What is in the slot and its buffer belongs to the client in FREE (none), OWNED
 * and DONE, and to the service in SUBMITTED and ABANDONED.  The state's word has a
 * generation beside the state, which goes up whenever a slot becomes FREE or SUBMITTED,
 * so that it names one request, and an old name fits no more.  Every change of state is
 * a compare-and-swap of the whole word.
 */
typedef enum GhSlotState
{
	GH_SLOT_FREE,
	GH_SLOT_OWNED,
	GH_SLOT_SUBMITTED,
	GH_SLOT_ABANDONED,
	GH_SLOT_DONE
} GhSlotState;

#define GH_SLOT_STATE_BITS 8
#define gh_slot_state(word) ((GhSlotState) ((word) & ((1 << GH_SLOT_STATE_BITS) - 1)))
#define gh_slot_generation(word) ((word) >> GH_SLOT_STATE_BITS)
#define gh_slot_word(generation, state) \
	(((uint64) (generation) << GH_SLOT_STATE_BITS) | (uint64) (state))

/* What a slot asks for. */
typedef enum GhServiceOp
{
	GH_SERVICE_RUN = 1,			/* the GhRequest in it */
	GH_SERVICE_CREATE,
	GH_SERVICE_CLEAR,
	GH_SERVICE_RESERVE,
	GH_SERVICE_FLUSH,
	GH_SERVICE_STATS,
	/* of pipelines, which are tables here: entries of their own kind */
	GH_SERVICE_PIPELINE_CREATE, /* by the options in the buffer */
	GH_SERVICE_PIPELINE,		/* the GhPipelineRequest in it */
	GH_SERVICE_PIPELINE_RESULTS,
	GH_SERVICE_PIPELINE_TABLE,	/* make_table: from then on it is an entry of a table */
	GH_SERVICE_PIPELINE_CLEAR,
	GH_SERVICE_PIPELINE_STATS,
	GH_SERVICE_MARKS_CREATE,	/* of the table that is named */
	GH_SERVICE_SPAN_CREATE,		/* of so many pages as `named` says */
	GH_SERVICE_OPS
} GhServiceOp;

/* Does it bring pages?  `count` is how many. */
static inline bool
gh_op_brings_pages(GhServiceOp op)
{
	return op == GH_SERVICE_PIPELINE;
}

static inline bool
gh_op_creates(GhServiceOp op)
{
	return op == GH_SERVICE_CREATE || op == GH_SERVICE_PIPELINE_CREATE || op == GH_SERVICE_MARKS_CREATE ||
		op == GH_SERVICE_SPAN_CREATE;
}

/* Where an array is in a block of options (block.h), or GH_NO_ARRAY. */
typedef uint64 GhOffset;

#define GH_NO_ARRAY PG_UINT64_MAX

/* The results of a pipeline's request, which lie together in it. */
static inline void
gh_take_results(GhPipelineRequest *to, const GhPipelineRequest *from)
{
	memcpy(&to->nback, &from->nback, offsetof(GhPipelineRequest, pipeline) - offsetof(GhPipelineRequest, nback));
}

typedef struct GhSlot
{
	pg_atomic_uint64 word;		/* state and generation */
	pg_atomic_uint32 sleeping;	/* the owner waits on its latch */
	int			procno;			/* owner's; -1 before it becomes FREE */
	int			pid;			/* owner's */
	uint64		take;			/* the owner's count of what it has taken */
	Oid			database;		/* owner's */
	Oid			role;			/* owner's */
	uint32		units;			/* of its buffer; 0: a slot without one */
	pg_atomic_uint64 waits_since;	/* of a process's own slot, by the clock: it waits for buffers; 0: it does not */

	/* the request: the client's to write before it submits; arrays are in the buffer, which all processes have at the
	 * same address */
	uint32		device;
	uint64		instance;		/* of the worker that it was submitted to */
	GhServiceOp op;
	uint32		table;
	uint64		table_generation;
	GhTableOptions options;		/* create */
	uint64		keys_wanted;	/* reserve */
	GhRequest	request;		/* run: what is asked for; then its outcome, too */
	uint64		count;			/* of its keys; of pipelines: of pages, or of bytes of options or for results */
	/* of pipelines */
	void	   *block;			/* create: the options; results: where they go */
	GhCursor	cursor;			/* results: how far they came */
	GhRef		named;			/* marks: the root of their table; a span: how many pages it is to have */
	GhPipelineRequest brought;	/* what is asked for; then its results, too */
	GhRef		spans[GH_REQUEST_SPANS_MAX];	/* the roots of its spans */
	uint64		submitted_ns;	/* monotonic */
	pg_atomic_uint64 started_ns;	/* executor's; 0: it waits in the ring */

	/* the answer: the executor's to write before DONE */
	GhStatus	status;
	GhError		error;
	GhTableStats stats;
	bool		was_made;		/* statistics: a pipeline made the table */
	uint64		bytes;			/* of results */
	GhMadeTable made_table;		/* of a pipeline, without the address */
	GhPipelineStats pipeline_stats;
	uint64		queue_ns;		/* from submission to the engine */
	uint64		run_ns;			/* in the engine */
} GhSlot;

/* ------------------------------------------------------------------ tables */

typedef enum GhTableState
{
	GH_TABLE_FREE,
	GH_TABLE_LIVE,				/* or about to be created */
	GH_TABLE_DYING,				/* its executor is to free it */
	GH_TABLE_LOST				/* its worker is gone; the owner still names it */
} GhTableState;

/* What an entry was taken for.  The worker knows what it has there by itself. */
typedef enum GhEntryKind
{
	GH_ENTRY_TABLE,				/* also one that a pipeline made, whose entry it was */
	GH_ENTRY_PIPELINE,
	GH_ENTRY_MARKS,
	GH_ENTRY_SPAN				/* room for pages (spans.c) */
} GhEntryKind;

/* A table, a pipeline, marks or a span on a device.  state and generation as with slots. */
typedef struct GhTableEntry
{
	pg_atomic_uint64 word;
	uint32		device;
	GhEntryKind kind;
	int			procno;			/* whose it is; -1: any of the database's */
	Oid			database;
	pg_atomic_uint64 bytes;		/* of device memory */
	pg_atomic_uint64 used_ns;	/* last request, monotonic */
	pg_atomic_uint32 holders;	/* of a span, or a table that stays: processes that name it in requests, or are about to */
	bool		stays;			/* a table that outlives the query that made it, and can be done without */
} GhTableEntry;

/* ----------------------------------------------------------------- devices */

/*
 * Requests on their way to an executor: slot numbers.  Any process appends, one
 * thread takes.  It never is full: it has twice as many places as there are
 * slots, and a slot is in it once, but for a leftover of a worker's restart.
 */
typedef struct GhRing
{
	pg_atomic_uint64 tail;
	char		pad1[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64)];
	pg_atomic_uint64 head;
	char		pad2[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64)];
	pg_atomic_uint32 asleep;	/* the executor sleeps: wake the worker */
	pg_atomic_uint32 dying;		/* set after a table of it became DYING */
	uint64		mask;			/* places - 1 */
	Size		places;			/* offset from the start of the shared memory */
} GhRing;

typedef struct GhRingPlace
{
	pg_atomic_uint64 turn;
	uint64		generation;		/* of the slot, with this request in it */
	uint32		slot;
} GhRingPlace;

typedef enum GhDeviceState
{
	GH_DEVICE_STARTING,			/* no worker yet, or it opens the device */
	GH_DEVICE_READY,
	GH_DEVICE_ABSENT,			/* the worker found none; it tries again */
	GH_DEVICE_DOWN				/* the worker ended; another one will come */
} GhDeviceState;

/* Sums since the last reset, of one device. */
typedef enum GhCounter
{
	GH_COUNT_REQUESTS,
	GH_COUNT_BATCHES,			/* requests with arrays */
	GH_COUNT_KEYS,
	GH_COUNT_PAGE_BATCHES,		/* requests with pages */
	GH_COUNT_PAGES,
	GH_COUNT_PAGES_DIRECT,		/* that the device read in the server's buffers */
	GH_COUNT_PAGES_RESIDENT,	/* that were on the device */
	GH_COUNT_PAGE_BYTES,
	GH_COUNT_BYTES_TO,
	GH_COUNT_BYTES_FROM,
	GH_COUNT_QUEUE_NS,			/* from submission to the engine */
	GH_COUNT_RUN_NS,			/* in the engine */
	GH_COUNT_ERRORS,
	GH_COUNT_ABANDONED,
	GH_COUNTERS
} GhCounter;

/* Whether a device reads the server's buffers where they are. */
typedef enum GhPoolState
{
	GH_POOL_UNKNOWN,			/* no worker said anything yet */
	GH_POOL_OFF,				/* gpuhash.register_buffers */
	GH_POOL_REGISTERING,
	GH_POOL_READABLE,
	GH_POOL_REFUSED				/* pool_message says why */
} GhPoolState;

typedef struct GhDevice
{
	pg_atomic_uint32 state;		/* GhDeviceState */
	pg_atomic_uint64 instance;	/* of the worker: goes up with each start */
	int			number;			/* CUDA's of it */
	int			pid;			/* of the worker, 0: none */
	int			procno;
	pg_atomic_uint64 memory_limit;	/* bytes for all tables */
	pg_atomic_uint64 memory_used;
	pg_atomic_uint64 resident_used; /* of that, spans */
	pg_atomic_uint64 paging_limit;	/* bytes of page-locked memory for tables that page */
	pg_atomic_uint64 paging_used;
	pg_atomic_uint64 started;	/* starts of its worker that found the device */
	pg_atomic_uint64 cpu_ns;	/* of the worker's threads */
	bool		registered;		/* the transfer area is known to the device */
	pg_atomic_uint32 pool;		/* GhPoolState */
	char		pool_message[GH_MESSAGE_SIZE];
	GhDeviceInfo info;			/* valid when it was ready once */
	char		message[GH_MESSAGE_SIZE];	/* why it is absent or down, or the area
											 * not registered */
	GhRing		ring[GH_EXECUTORS];
	pg_atomic_uint64 counter[GH_COUNTERS];
} GhDevice;

/* Bytes that all uses of it together may have. */
static inline uint64
gh_memory_of_device(GhDevice *device)
{
	return Min(pg_atomic_read_u64(&device->memory_limit), device->info.memory_total);
}

/* ---------------------------------------------------------- progress */

/* Of how many processes at a time it is shown. */
#define GH_PROGRESS_MAX 64

/* One that does work of which progress is shown.  Written by that process alone, but for pid. */
typedef struct GhProgress
{
	pg_atomic_uint32 pid;		/* whose entry it is; 0: nobody's */
	pg_atomic_uint32 shown;		/* 1: what follows is good */
	Oid			database;
	Oid			role;			/* of the session's user */
	Oid			relation;
	int			device;			/* CUDA number; -1: none */
	uint32		command;		/* GhProgressCommand */
	TimestampTz started;
	pg_atomic_uint32 phase;		/* GhProgressPhase */
	pg_atomic_uint64 total;		/* of the phase, pages or rows; 0: not known */
	pg_atomic_uint64 done;		/* of these */
} GhProgress;

/* ---------------------------------------------------------- all of it */

typedef struct GhService
{
	Size		bytes;			/* of this struct and all that follows it */
	uint32		devices;
	uint32		units;			/* of the transfer area */
	uint32		slots;			/* units, then one for each process */
	uint32		processes;
	Size		slot_array;		/* offsets from the start of this struct */
	Size		unit_array;		/* pg_atomic_uint32 each: 0, or gh_unit_of its buffer */
	Size		table_array;
	Size		area;			/* the transfer area, whole pages */

	/* Takers of units and of table entries, of which there may be many thousands to look
	 * through.  Who gives one back needs no lock, and may be a thread of a worker. */
	LWLock		lock;
	int			lock_tranche;
	uint32		table_hint;		/* where to look for a free entry */
	int			watcher;		/* procno of who is woken when a worker serves, or ends; -1: nobody */
	pg_atomic_uint32 waiting;	/* processes that wait for units */
	ConditionVariable returned;	/* signalled when units are given back */
	pg_atomic_uint64 fallbacks[GH_FALLBACKS];
	pg_atomic_uint64 uses[GH_USES];
	GhProgress	progress[GH_PROGRESS_MAX];
	pg_atomic_uint64 reset_at;	/* TimestampTz of the last gpuhash_stat_reset */
	GhFaults	faults;			/* unused in a usual build */
	GhDevice	device[GH_DEVICES_MAX];
} GhService;

/* NULL: no service in this server. */
extern GhService *gh_service;

static inline void *
gh_service_at(Size offset)
{
	return (char *) gh_service + offset;
}

static inline GhSlot *
gh_slot_at(uint32 slot)
{
	return (GhSlot *) gh_service_at(gh_service->slot_array) + slot;
}

static inline pg_atomic_uint32 *
gh_unit_at(uint32 unit)
{
	return (pg_atomic_uint32 *) gh_service_at(gh_service->unit_array) + unit;
}

/* What the units of a buffer hold while it is taken: which is their first. */
static inline uint32
gh_unit_of(uint32 first)
{
	return first + 1;
}

static inline GhTableEntry *
gh_table_entry_at(uint32 table)
{
	return (GhTableEntry *) gh_service_at(gh_service->table_array) + table;
}

/* An entry is named by its root, not 0, which has its number and its generation. */
static inline GhRef
gh_root_of(uint32 table, uint64 generation)
{
	return ((generation << GH_TABLE_BITS) | table) + 1;
}

static inline void
gh_root_split(GhRef root, uint32 *table, uint64 *generation)
{
	*table = (uint32) ((root - 1) & (GH_TABLES_MAX - 1));
	*generation = (root - 1) >> GH_TABLE_BITS;
}

/*
 * Gives up the entry of a span, or of a table that stays, that is LIVE, if no process holds it (spans.c): it
 * is DYING or LOST then, and LOST for a moment before that is known.  Called by threads, too.
 */
static inline bool
gh_entry_give_up(uint32 number, uint64 generation, GhTableState to)
{
	GhTableEntry *entry = gh_table_entry_at(number);
	uint64		word = gh_slot_word(generation, GH_TABLE_LIVE);
	uint64		lost = gh_slot_word(generation, GH_TABLE_LOST);
	bool		held;

	if (!pg_atomic_compare_exchange_u64(&entry->word, &word, lost))
		return false;
	held = pg_atomic_read_u32(&entry->holders) > 0;
	word = lost;
	if (held || to != GH_TABLE_LOST)
		(void) pg_atomic_compare_exchange_u64(&entry->word, &word,
											  gh_slot_word(generation, held ? GH_TABLE_LIVE : to));
	return !held;
}

/* Whether that is a device's table that outlives the query that made it; others may change it meanwhile. */
static inline bool
gh_entry_stays(const GhTableEntry *entry, int device)
{
	return entry->stays && entry->device == (uint32) device &&
		(GhTableState) gh_slot_state(pg_atomic_read_u64((pg_atomic_uint64 *) &entry->word)) == GH_TABLE_LIVE;
}

static inline char *
gh_buffer_at(uint32 unit)
{
	return (char *) gh_service_at(gh_service->area) + unit * GH_UNIT_BYTES;
}

/* ---- settings (shmem.c) ---- */

extern int	gh_device_timeout;	/* ms; 0: none */
extern int	gh_worker_spin;		/* us */
extern bool gh_register_buffers;

/* ---- ring.c: called by threads too ---- */

extern void gh_ring_append(GhRing *ring, uint32 slot, uint64 generation);
extern bool gh_ring_take(GhRing *ring, uint32 *slot, uint64 *generation);
extern uint64 gh_monotonic_ns(void);

/* ---- slots.c ---- */

/* The executor's end of a request: DONE, or FREE with its units when it was abandoned.
 * Called by threads too.  True when someone sleeps on it. */
extern bool gh_slot_finish(uint32 number, uint64 generation);

/* ---- spans.c ---- */

extern bool gh_spans_may_grow(GhDevice *device, uint64 bytes);

/* ---- worker.c ---- */

/* With all signals blocked; ereports where there is none to be had. */
extern void gh_worker_start_thread(void *(*routine) (void *), void *arg);

extern PGDLLEXPORT void gh_worker_main(Datum arg);

#endif							/* GPUHASH_SERVICE_SHARED_H */
