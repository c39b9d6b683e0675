/*
 * threads.h
 *		What the threads of a worker share: executor.c, which has their loops, and
 *		requests.c, which does what slots ask for.
 */
#ifndef GPUHASH_SERVICE_THREADS_H
#define GPUHASH_SERVICE_THREADS_H

#include "postgres.h"

#include <pthread.h>

#include "service/executor.h"
#include "service/faults.h"
#include "service/shared.h"

typedef struct GhExecutor
{
	pthread_t	thread;
	GhRing	   *ring;
	uint32		number;
	pg_atomic_uint64 reaping_ns;	/* since when it frees a table; 0: it does not */
	uint32	   *running;		/* slots with a request in the engine */
	uint32		nrunning;
	void	   *records;		/* where results come to first; NULL: nowhere yet */
	size_t		records_bytes;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	bool		woken;
} GhExecutor;

/* Whose request it is. */
typedef enum GhRunningKind
{
	GH_RUNNING_TABLE,
	GH_RUNNING_PIPELINE
} GhRunningKind;

/* A request in the engine, by slot. */
typedef struct GhRunning
{
	bool		active;
	uint64		generation;		/* of the slot's request */
	uint32		table;
	GhRunningKind kind;
	GhRequest	request;
	GhPipelineRequest pipeline_request;
	/* its pages (pages.c) */
	GhPageRef *pages;			/* the list, malloc()ed; NULL: none */
	uint32		nlisted;		/* in it */
	uint32		npages;			/* of all, those of runs one by one */
	uint16	   *page_lines;		/* of an engine that takes runs: of each page, malloc()ed */
	uint64		nlines;			/* of all */
	uint32		page_bytes;		/* of each */
	bool		readable;		/* each is where the device reads it */
	bool		in_pool;		/* the device may read some of them in the server's buffers */
	uint32		ndirect;		/* of them, that are there */
	uint32		nresident;		/* of all, that are in spans */
	/* the spans that it names (spans.c), and their entries */
	uint32		nspans;
	GhPageSpan *spans[GH_REQUEST_SPANS_MAX];
	uint32		span_tables[GH_REQUEST_SPANS_MAX];
	/* rows that go back, malloc()ed, where the client's buffer has no room for all; else NULL (pipelines.c) */
	GhBackRow  *back;
	GhBackRow  *client_back;	/* then: in the buffer */
	uint64		client_room;
	/* its columns (columns.c), or NULL: a copy, malloc()ed, but for the bytes of texts */
	void	   *columns;
} GhRunning;

/*
 * What a pipeline uses at most: its source, and of each probe the table, marks, and the two tables of changed
 * keys.
 */
#define GH_USED_MAX (1 + 4 * GH_PROBES_MAX)

/* What an entry is in this worker: a table, a pipeline, marks or a span, or nothing. */
typedef struct GhWorkerTable
{
	GhTable    *handle;			/* NULL: none */
	uint64		generation;
	GhTableOptions options;		/* of a table; of one that a pipeline made, sizes as requests see them; else 0 */
	GhPipeline *pipeline;		/* NULL: none */
	GhMarks    *marks;			/* NULL: none */
	GhPageSpan *span;			/* NULL: none; spans.c, as the next ones */
	uint16	   *span_lines;		/* by place: lines of the page that was put there */
	uint32		naming;			/* requests in the engine that name it, of all executors */
	uint32		page_bytes;		/* of the pipeline's source; 0: that has no pages */
	uint32		ncolumns;		/* of its program */
	uint64		texts[GH_PROGRAM_VECTORS_MAX / 64]; /* columns of its program that hold texts: a bit each */
	uint32		users;			/* pipelines and marks that use it */
	uint32		nused;
	uint32		used[GH_USED_MAX];	/* what it uses, by number */
	/* The table of the pipeline that this entry was, was made: `handle` is it. */
	bool		was_made;
	GhMadeTable made_table;		/* of the pipeline */
	GhPipelineStats made_stats;
	GhError		make_error;		/* why it was not; GH_OK: nothing failed */
	/* Of a pipeline: from where on results were asked for last, and where they ended. */
	GhCursor	results_from;
	GhCursor	results_to;
	uint32		running;		/* requests in the engine */
	uint32		number;
} GhWorkerTable;

/* The worker's own, of this process; fixed once the threads run, but for what slots and
 * tables point to, each of which one thread uses. */
typedef struct GhWorker
{
	GhRunning  *running_by_slot;
	GhWorkerTable *tables;
	const GhEngine *engine;
	GhDevice   *device;
	uint32		device_index;	/* of the service's devices */
	int			cuda_device;	/* CUDA's number of it */
	uint64		instance;
	int			wake_pipe;		/* what is written to it wakes the main thread */
} GhWorker;

extern GhWorker gh_worker;

/* ---- executor.c ---- */

extern void gh_executor_tell_main(void);
/* The device is of no use any more: the main thread ends the process. */
extern void gh_executor_declare_lost(const GhError *error);
/* A fault point on the way of a request: what a test wants to happen, as a status. */
extern GhStatus gh_executor_pass_point(GhFaultPoint point, GhError *error);

/* ---- worker_memory.c ---- */

/* Fills in what the engine asks of its host for a table, but for `stop`. */
extern void gh_executor_host(GhWorkerTable *table, GhHost *host);
/* What of the device's memory is free, tables of others counted in. */
extern void gh_executor_note_memory(void);

/* ---- requests.c ---- */

extern void gh_executor_count(GhCounter counter, uint64 amount);
/* After an error that cost a table its content: does the device still answer? */
extern void gh_executor_check_device(const GhError *error);
/* The slot's answer is written; whoever waits is told. */
extern void gh_executor_answer(uint32 number);
extern void gh_executor_refuse(uint32 number, GhStatus status, const char *why);
/* Whether an array, if there is one, is in the buffer of so many units. */
extern bool gh_executor_array(uint32 number, uint32 units, const void *array, uint64 count, uint64 size);
/* Whether a buffer of so many units, and no other, begins there. */
extern bool gh_executor_is_buffer(uint32 first, uint32 units);
/* The slot's request is in the engine from here on. */
extern void gh_executor_runs(GhExecutor *executor, uint32 number, GhWorkerTable *table, GhRunningKind kind);
/* Until nothing of the table is in the engine. */
extern void gh_executor_drain(GhExecutor *executor, const GhWorkerTable *table);
/* Before it changes: until nothing that uses the table is in the engine. */
extern void gh_executor_drain_users(GhExecutor *executor, const GhWorkerTable *table);
/*
 * What another entry is, of this executor, so that no other thread uses it, and for that slot's session to
 * use; NULL: *why says what is wrong.
 */
extern GhWorkerTable *gh_executor_named(const GhExecutor *executor, const GhSlot *asked, uint32 table,
										uint64 generation, const char **why);
/* The executor of an entry is to look for what it has to free. */
extern void gh_executor_note_dying(uint32 table);
/* What is used stays as long as its user, until that lets go of all. */
extern void gh_executor_hold(GhWorkerTable *user, uint32 used);
extern void gh_executor_let_go(GhExecutor *executor, GhWorkerTable *user);

/* Begins with a slot that came through the ring. */
extern void gh_executor_start(GhExecutor *executor, uint32 number, uint64 generation);
/* Polls everything in the engine once; true when something ended. */
extern bool gh_executor_poll(GhExecutor *executor);
/* Frees tables that nobody wants any more; true when there was one. */
extern bool gh_executor_reap(GhExecutor *executor);

/* ---- pages.c ---- */

/*
 * Takes over the list of a request's pages, whose spans were taken.  NULL, or what is wrong; they are to be
 * dropped in any case.
 */
extern const char *gh_pages_take(const GhSlot *asked, const GhPageRef *list, uint32 count, uint32 page_bytes,
								 GhRunning *running);
extern void gh_pages_drop(GhRunning *running);
/* Counts them, and what went to the device and back with them. */
extern void gh_pages_count(const GhRunning *running, uint64 bitmap_words, uint64 back_bytes);

/* ---- spans.c ---- */

/* Makes the span that a slot asks for. */
extern GhStatus gh_spans_create(const GhSlot *asked, GhWorkerTable *table, GhError *error);
/* Frees it, if it is one; false: it is to stay as yet. */
extern bool gh_spans_destroy(GhWorkerTable *table);
/* The spans that a request names; NULL, or what is wrong.  They are to be dropped in any case. */
extern const char *gh_spans_take(const GhSlot *asked, GhRunning *running, GhPipelineRequest *request);
extern void gh_spans_drop(GhRunning *running);
/* The pages that the request has put into spans are there. */
extern void gh_spans_note_lines(const GhRunning *running);
/* Before an executor takes so many bytes for something else. */
extern void gh_spans_make_room(uint64 bytes, uint32 executor);

/* ---- columns.c ---- */

/* Of a pipeline that was made of the program: what gh_columns_take has to know. */
extern void gh_columns_note_texts(const GhProgram *program, Size bytes, GhWorkerTable *table);
/* Takes over a request's columns, as gh_pages_take its pages. */
extern const char *gh_columns_take(uint32 number, const GhSlot *asked, const GhWorkerTable *table,
								   GhPipelineRequest *request);
extern void gh_columns_drop(GhRunning *running);

/* ---- pipelines.c ---- */

/* Does what a slot asks of a pipeline or marks, which was checked except for its arrays. */
extern void gh_pipelines_start(GhExecutor *executor, uint32 number, const GhSlot *asked);
/* The engine is through with a request. */
extern void gh_pipelines_finish(uint32 number, GhStatus status);
/* Frees a pipeline, or marks; what they used is free of them. */
extern void gh_pipelines_destroy(GhExecutor *executor, GhWorkerTable *table);

#endif							/* GPUHASH_SERVICE_THREADS_H */
