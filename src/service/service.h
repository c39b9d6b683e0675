/*
 * service.h
 *		The GPU service as the rest of gpuhash.so sees it.
 *
 * With gpuhash in shared_preload_libraries, one background worker for each GPU
 * owns its CUDA context, and sessions are its clients: they write keys into
 * buffers of a transfer area in shared memory, submit requests, and read the
 * results there.  The client is an engine (engine.h) like the others, so that
 * its callers differ in one thing only: the arrays of a request lie in one buffer
 * of the transfer area.
 *
 * README in this folder tells who owns what, and what happens when the worker
 * goes away.
 */
#ifndef GPUHASH_SERVICE_H
#define GPUHASH_SERVICE_H

#include "postgres.h"

#include "postmaster/bgworker.h"

#include "compat.h"
#include "engine/engine.h"
#include "engine/pipeline/pipeline.h"

/* ---- shmem.c ---- */

/* Of _PG_init, while the postmaster loads the library: settings, shared memory, workers. */
extern void gh_service_init(void);
/*
 * Of _PG_init, while the postmaster loads the library: another room's shared memory, which is there
 * when the service is.  size is asked when all settings are known; init gets the place, under
 * AddinShmemInitLock, and whether another process found it before (only with EXEC_BACKEND).
 */
typedef Size (*GhMemorySize) (void);
typedef void (*GhMemoryInit) (void *place, bool found);
extern void gh_service_add_memory(const char *name, GhMemorySize size, GhMemoryInit init);
/* Of _PG_init in a session: the settings, which then do nothing but say so. */
extern void gh_service_define_settings(void);
/* Those that were set before; once in a session. */
extern void gh_service_report_unserved(void);
/* Whether this server runs with the service.  False in a session that loaded the
 * library by itself, which then uses the GPU on its own. */
extern bool gh_service_enabled(void);

typedef enum GhWait
{
	GH_WAIT_REQUEST,			/* an answer of the worker */
	GH_WAIT_BUFFER,				/* units of the transfer area */
	GH_WAIT_WORKER,				/* the worker, for requests */
	GH_WAIT_RELOAD,				/* who loads pages again: for devices, for loads, for buffers */
	GH_WAIT_MEMORY,				/* memory of a device that its worker is about to free */
	GH_WAIT_COPY,				/* somebody else, who makes the copy of an index */
	GH_WAITS
} GhWait;

extern uint32 gh_wait_event(GhWait wait);
extern void gh_wait_for_memory(long ms);
/*
 * Of a background worker: that function, in this library; it is started again some seconds after it has
 * failed.
 */
extern void gh_service_init_worker(BackgroundWorker *worker, const char *function);

/* ---- client.c: the engine ---- */

/*
 * Tables on the service's GPUs.  Asynchronous.  It differs from engine.h in this:
 *
 *	- A request's arrays lie in one buffer that this session holds, and a buffer
 *	  has one request at a time (GH_INVALID otherwise).
 *	- submit never waits, and poll only looks.  wait looks for a while and then
 *	  sleeps on the process's latch; with GhHost.stop set it returns GH_STOPPED
 *	  with the request still in flight: poll it again, or give its buffer back.
 *	- GhHost.ctx is NULL for a table of this process, which goes with it, or a
 *	  GhServiceScope for one that others attach and that stays until it is
 *	  destroyed.
 *	- GH_DEVICE_ERROR also says that the worker has gone; GH_TIMEOUT, which costs no table its
 *	  content, that it did not answer within gpuhash.device_timeout; GH_LIMIT that
 *	  gpuhash.device_memory_limit is reached; GH_TOO_MANY that there are GH_TABLES_MAX tables.
 *	- table_export is NULL.
 *
 * Its pipelines are of the process that makes them, and go with it.  They differ from pipeline.h:
 *
 *	- create takes a buffer for the time of the call and never waits for one: GH_NO_BUFFERS.
 *	- A request's lists of pages, bitmaps and rows to go back lie in one buffer that this session
 *	  holds, which has one request at a time.  A page lies whole in that buffer, or in another
 *	  one of this session, or is one of the server's shared buffers, pinned until the request has
 *	  ended or the buffer with the list was given back.  `readable` is the worker's to know.
 *	- results writes to an idle buffer of this session, which stays the service's where the call
 *	  ends with GH_STOPPED: call it again with the same, or give the buffer back.  make_table may
 *	  be called again after GH_STOPPED, too.
 *	- GH_DEVICE_ERROR, GH_TIMEOUT, GH_LIMIT, GH_TOO_MANY and GH_STOPPED as above.
 *	- Rows as columns enter before the first step, and have their arrays in such a buffer, too: given, vectors,
 *	  what these point to, and texts' bytes.
 *	- Requests without pages have `back` in the buffer, also where nothing can go back.
 *	- What a pipeline uses (its source, the tables and marks of its probes) is of this process, or shared, of the
 *	  same device, and of one of the worker's threads: GH_INVALID.  So it is where pipelines of one process have made all
 *	  of it; a table of table_create is of any thread.
 *	- GhPipeline.plan is NULL: whose pipeline it is, a caller knows.
 *	- A table that make_table makes is a table of this engine, of the process, or shared where the pipeline is.  It takes
 *	  no requests (GH_INVALID).  It can be probed, be a source, and have marks.
 *	- stats says GH_DEVICE_ERROR when the table that was made is gone.
 *	- Spans of requests are GhServiceSpan, of this database.
 *	- A page that is in a span may stand for a run of pages, whose lines are those with which they were put there.  Of rows
 *	  that go back, `page` counts all of them.
 *	- A request of pages may have less room for rows that go back than there are.  GH_TOO_SMALL: there were more than
 *	  that, all others are in the sink, and only destroy is left.
 *	- Sinks are not shared; pipelines and marks are: see gh_service_pipeline_create_shared and
 *	  gh_service_marks_create_shared.
 *
 * No call throws.
 */
extern const GhEngine *gh_service_engine(void);

/*
 * A pipeline that several processes of this database supply pages to: made by one of them, it has a
 * name, *root, by which others get a handle; GH_DEVICE_ERROR: it is gone.  The handles' destroy leaves
 * it alone: it goes with gh_service_table_release, for which nobody needs a handle.
 *
 * When its table was made, by one of them, the root is that of the table, which others then get by
 * table_attach: it goes with table_destroy, or by its root.  Their own handles on the pipeline are only to be
 * destroyed from then on.
 */
extern GhStatus gh_service_pipeline_create_shared(const GhHost *host, const GhPipelineOptions *options, GhRef *root,
												  GhPipeline **pipeline, GhError *error);
extern GhStatus gh_service_pipeline_attach(GhRef root, const GhHost *host, GhPipeline **pipeline, GhError *error);
/* Marks of such a table that pipelines of several processes set, likewise: they go by their root. */
extern GhStatus gh_service_marks_create_shared(const GhHost *host, GhTable *table, GhRef *root, GhMarks **marks,
											   GhError *error);
extern GhStatus gh_service_marks_attach(GhRef root, const GhHost *host, GhMarks **marks, GhError *error);

/*
 * Room on a device for so many of this database's pages (GhPageSpan), which belongs to no process: it stays
 * until it is given up by gh_service_entry_release, or by the worker where memory lacks, or the worker goes.
 * Waits for the worker.  GH_LIMIT: gpuhash.resident_memory; others as of a table.
 */
extern GhStatus gh_service_span_create(int device, uint32 npages, GhRef *root, GhError *error);
/*
 * Of a span, or a table that was made shared and stays: holds it, so that it is not given up while this
 * process names it in requests, or is about to; false: it is gone.  Whoever holds it leaves it.
 */
extern bool gh_service_entry_hold(GhRef root);
extern void gh_service_entry_leave(GhRef root);
/* Has the worker give up a table that was made shared, where memory lacks and nobody holds it. */
extern void gh_service_table_stays(GhRef root);
/* Whether the device has room for one of so many pages now, with what others keep there. */
extern bool gh_service_span_fits(int device, uint32 npages);
extern bool gh_reload_resident; /* what was resident before a restart is loaded again */
extern bool gh_prewarm_columns; /* columns that the planner asks for are made in the background */
extern int	gh_resident_memory; /* MB, of each device, for all spans; -1: what others leave; 0: none */
/* When it was used last, on the clock of gh_monotonic_ns; 0: it is gone. */
extern uint64 gh_service_entry_used(GhRef root);
/*
 * Whether it was not given up before its worker ended; true while that serves, until another worker has
 * begun.
 */
extern bool gh_service_span_stayed(GhRef root);
/* Gives it up, unless somebody holds it; of one that is gone, what is left of it.  False: it stays. */
extern bool gh_service_entry_release(GhRef root);
/* What a request of the service's pipelines names it by. */
typedef struct GhServiceSpan
{
	GhPageSpan	common;			/* first */
	GhRef		root;
} GhServiceSpan;

extern void gh_service_span_init(GhServiceSpan *span, GhRef root, uint32 npages);

typedef struct GhServiceScope
{
	Oid			database;		/* whose sessions may attach the table */
} GhServiceScope;

/*
 * The executor of what this process makes by itself; and of tables that a pipeline makes: the leader's in a
 * parallel query.
 */
extern uint32 gh_service_executor(void);
extern uint32 gh_service_table_executor(void);
/* From now on that one has tables that this process makes, since others that go with them are there; -1: as ever. */
extern void gh_service_use_table_executor(int executor);
/* Bytes that all uses of a device together may have. */
extern uint64 gh_service_device_memory(int device);

/* Destroys the table, shared pipeline or marks of that root, for whoever has no handle on it.  Does nothing
 * when it is gone, and 0 names none. */
extern void gh_service_table_release(GhRef root);
/* Device memory that the table of that root takes, in bytes; and whether it is freed. */
extern uint64 gh_service_table_bytes(GhRef root);
extern bool gh_service_table_is_gone(GhRef root);

/*
 * Is there a device for new tables?  false: *reason is a constant string.  *down: none
 * answers at the moment, but one did or may yet; otherwise there is no usable GPU.
 */
extern bool gh_service_ready(const char **reason, bool *down);
/* Whether there is a device that reads pages in shared buffers where they are: for costs. */
extern bool gh_service_reads_pool(void);
/* CUDA's number of a device, which users know it by. */
extern int	gh_service_device_number(int device);
extern int	gh_service_devices(void);
/* Which worker of a device that is, counted from 1; 0: there was none yet.  *ready: it serves. */
extern uint64 gh_service_worker_of(int device, bool *ready);
/*
 * From now on this process's latch is set when a worker begins to serve, and when one ends.  One process at a
 * time.
 */
extern void gh_service_watch(void);
/* Sets it for another reason, which that process looks for by itself. */
extern void gh_service_wake_watcher(void);
/* The device with most memory left, for GhTableOptions.device; -1: none is ready. */
extern int	gh_service_choose_device(void);
extern int	gh_service_choose_devices(Oid table, bool ready, int most, int *devices);

/* ---- slots.c: the transfer area ---- */

/*
 * n buffers of `bytes` each, aligned to a page, or none of them: never waits.  They
 * are the caller's to give back, and this process's exit does.
 */
extern bool gh_service_reserve(int n, size_t bytes, void **buffers);

/*
 * The same, but waits for them up to so long, and ereports on cancel.  Not while this process has a buffer,
 * which others may wait for; the caller holds no pin and no lock.
 */
extern bool gh_service_reserve_within(uint64 most_ns, int n, size_t bytes, void **buffers);
/*
 * One buffer, for a single request that ends soon, of those which are kept for such; waits a moment likewise.
 */
extern bool gh_service_reserve_briefly(size_t bytes, void **buffer);
/* The most bytes that a buffer can have. */
extern size_t gh_service_buffer_max(void);
/*
 * One buffer, for a request or few, of which some are always left; waits for it, at most
 * until the next worker has taken those of the last one out of quarantine,
 * and ereports on cancel, so the caller holds no other and no lock.  Given back
 * with `context` at the latest.  bytes up to gh_service_buffer_max.
 */
extern void *gh_service_borrow(MemoryContext context, size_t bytes);
/* Gives a buffer back; with a request in flight it stays the service's until that
 * is through. */
extern void gh_service_return(void *buffer);

/* ---- stats.c ---- */

typedef enum GhFallback
{
	GH_FALLBACK_NO_GPU,			/* no worker had a GPU */
	GH_FALLBACK_WORKER_DOWN,	/* a worker was about to start or restart */
	GH_FALLBACK_NO_BUFFERS,		/* the transfer area was taken */
	GH_FALLBACK_MEMORY,			/* device memory or its limit */
	GH_FALLBACK_DEVICE,			/* a request failed with the device or its worker */
	GH_FALLBACK_TIMEOUT,		/* it took longer than device_timeout */
	GH_FALLBACK_DECLINED,		/* what was read is not for it: too many rows were handed back, say */
	GH_FALLBACKS
} GhFallback;

/* What was offloaded, on whichever engine. */
typedef enum GhUse
{
	GH_USE_PLANS,				/* plans with nodes of ours, made */
	GH_USE_JOINS,				/* nodes that were run, by kind */
	GH_USE_AGGREGATES,
	GH_USE_ROWS,
	GH_USE_SCANS,
	GH_USES
} GhUse;

extern void gh_service_count_use(GhUse use);
/* Of a node that begins with these flags of the executor: in the leader, and where it is going to be run. */
extern void gh_service_count_node(GhUse use, int eflags);
/* Counts work that a GPU was meant for and the CPU engine did. */
extern void gh_service_count_fallback(GhFallback reason);
/* Of a failed request or table. */
extern GhFallback gh_service_fallback_of(const GhError *error);

#endif							/* GPUHASH_SERVICE_H */
