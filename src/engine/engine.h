/*
 * engine.h
 *		The table ABI: what a hash-table engine offers and what it asks of its
 *		caller.
 *
 * Behind it stand the CPU engine (src/engine), the CUDA engine (cuda, opened at
 * run time by the loader) and the client of the GPU service (src/service), and
 * the callers are the same for all of them.  Pipelines have an ABI of their own
 * (pipeline.h), with programs (program.h), pages (page.h) and aggregates (aggregate.h).
 * The header is plain C11 and C++17 and knows nothing of PostgreSQL or CUDA.
 *
 * Contract of every call
 *	- No exception, longjmp, exit or abort leaves an engine.  A call that can
 *	  fail returns a GhStatus and fills a GhError with a sentence.
 *	- Memory of a CPU table comes from GhHost.alloc alone and is addressed by
 *	  GhRef, so that a table can live in memory mapped at another address in
 *	  every process.  A handle (GhTable) belongs to one process.
 *	- A call that may take long looks at GhHost.stop at least once a
 *	  millisecond and then ends with GH_STOPPED; the table is whole and the
 *	  request can be submitted again, which goes on at GhOutcome.done.
 *	- A handle, and the requests on it, are used by one thread at a time; different
 *	  handles by different threads at the same time.  A thread that calls an engine
 *	  blocks all signals or is the one that handles them.
 *	  Several processes use one table through a handle each; then
 *	  GhHost.lock and GhHost.unlock must be there.
 */
#ifndef GH_ENGINE_H
#define GH_ENGINE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GH_ABI_VERSION 18

/* Limits of a table, tested at their edges. */
#define GH_SUBTABLES_MIN 2
#define GH_SUBTABLES_DEFAULT 4
#define GH_SUBTABLES_MAX 8

#define GH_FILL_MIN_DEFAULT 0.40
#define GH_FILL_MAX_DEFAULT 0.85
#define GH_FILL_MAX_MAX 0.95	/* a table asked to be fuller is refused */

#define GH_VALUE_SIZE_MAX 1024	/* bytes */

/* Keys of one request: more is refused, the caller splits. */
#define GH_BATCH_MAX ((uint64_t) 1 << 30)

/* ---------------------------------------------------------------- statuses */

typedef enum GhStatus
{
	GH_OK = 0,
	GH_BUSY,					/* poll: the request is still running */
	GH_STOPPED,					/* the stop flag was seen; submit again to go on */
	GH_TOO_SMALL,				/* find-all: values_out holds fewer than values_count */
	GH_NO_MEMORY,				/* the host's or the device's allocator gave nothing */
	GH_LIMIT,					/* a limit on memory would be passed: an option's, or GhHost.take_device */
	GH_TOO_MANY,				/* a number that no setting raises would be passed: of rows of a pipeline,
								 * of keys that share their hash values, of tables on devices */
	GH_NO_BUFFERS,				/* no buffer is free that the request's arrays could be in */
	GH_INVALID,					/* an argument is out of range */
	GH_UNSUPPORTED,				/* legal, but not by this engine */
	GH_DECLINED,				/* no engine's: the caller takes the work back, and nothing has failed */
	GH_UNAVAILABLE,				/* no library, driver or usable device */
	GH_TIMEOUT,					/* no answer in time; the request may still be done */
	GH_DEVICE_ERROR				/* the device failed: the table's content is lost */
} GhStatus;

#define GH_MESSAGE_SIZE 200

/* Why a call failed: one sentence without a final stop, no newline. */
typedef struct GhError
{
	GhStatus	status;
	char		message[GH_MESSAGE_SIZE];
} GhError;

/* ------------------------------------------------- what the caller supplies */

/* A piece of memory as the host's allocator names it; 0 is none. */
typedef uint64_t GhRef;

typedef enum GhLockMode
{
	GH_LOCK_SHARED,
	GH_LOCK_EXCLUSIVE
} GhLockMode;

/*
 * The caller's services.  None may throw.  The struct is copied into the
 * handle; what it points to must outlive the handle.
 */
typedef struct GhHost
{
	void	   *ctx;			/* handed back to each function below */

	/* bytes > 0; 64-byte aligned memory of any content, or 0 */
	GhRef		(*alloc) (void *ctx, size_t bytes);
	void		(*free) (void *ctx, GhRef ref);
	/* where ref is mapped in this process */
	void	   *(*address) (void *ctx, GhRef ref);

	/* both NULL: no other process or handle uses the table.  Not nested. */
	void		(*lock) (void *ctx, GhLockMode mode);
	void		(*unlock) (void *ctx);

	/* NULL, or a flag that others set to end long calls early */
	const volatile sig_atomic_t *stop;

	/*
	 * Both NULL: no budget.  Otherwise a table takes its device memory from a budget
	 * that it shares with others: false refuses, which is GH_LIMIT, and what was taken
	 * is given back when it is freed.  Called in the thread that uses the handle.
	 */
	bool		(*take_device) (void *ctx, uint64_t bytes);
	void		(*give_device) (void *ctx, uint64_t bytes);
	/*
	 * Likewise of page-locked memory of the host, for tables that page (GhTableOptions.pages).
	 */
	bool		(*take_host) (void *ctx, uint64_t bytes);
	void		(*give_host) (void *ctx, uint64_t bytes);
	/*
	 * NULL, or one that lasts as long as the process: memory that requests were worked on in may be kept for pipelines
	 * to come, taken from its budget.  When a budget refuses, what is kept is freed first.  Any thread.
	 */
	const struct GhHost *lasting;
	/*
	 * NULL: what the device has free counts.  Whether so many bytes of the budget are nobody's, so that who takes
	 * them takes nothing from others.  As take_device.
	 */
	bool		(*spare_device) (void *ctx, uint64_t bytes);
} GhHost;

/* ------------------------------------------------------------------- tables */

typedef struct GhTable GhTable;	/* a process's handle; opaque */

typedef struct GhTableOptions
{
	uint32_t	key_size;		/* bytes: 4 or 8 */
	uint32_t	value_size;		/* bytes: 0 (a set) to GH_VALUE_SIZE_MAX */
	bool		multi;			/* a key may hold many values; value_size > 0 */
	uint32_t	subtables;		/* 0: default */
	double		fill_min;		/* 0: default; below this the table shrinks */
	double		fill_max;		/* 0: default; above this it grows */
	uint64_t	capacity;		/* keys to make room for; it never shrinks below */
	uint64_t	memory_limit;	/* bytes the table may hold, of device memory where it pages; 0: no limit */
	uint64_t	seed;			/* of the hash functions */
	int			device;			/* CUDA device number; the CPU engine: 0 */
	bool		timing;			/* fill the times of GhTableStats */
	/*
	 * What the table needs beyond the device memory that it can have is in page-locked memory of the
	 * host, which the device works on in place, over the bus.  An engine without a device, or whose
	 * driver cannot do it, has no use for this.
	 */
	bool		pages;
	/*
	 * Several handles exchange at the same time, for a permission that this takes and an
	 * engine need not use.  From the submission of an exchange to its end nobody reads
	 * the table: who does may find any value for a key that is exchanged.  An exchange
	 * that ends with an error or GH_STOPPED may have done some of the positions from
	 * `done` on, too.  It knows them by its engine_state and values_out, and goes on
	 * rightly when it is submitted again unchanged; who gives it up has a table that is
	 * good for clear and destroy.
	 */
	bool		concurrent_exchange;
} GhTableOptions;

typedef struct GhSubtableStats
{
	uint64_t	slots;
	uint64_t	entries;		/* keys stored */
	uint64_t	bytes;			/* where the table's bytes are */
	uint64_t	bytes_paged;	/* beside those, where the table's bytes_paged are */
} GhSubtableStats;

typedef struct GhTableStats
{
	uint64_t	keys;			/* distinct keys */
	uint64_t	values;			/* values; equals keys unless multi */
	uint32_t	subtables;
	GhSubtableStats subtable[GH_SUBTABLES_MAX];
	double		fill;			/* keys over slots, 0 to 1 */
	double		fill_min;		/* the bounds in force */
	double		fill_max;
	uint64_t	upsizes;		/* subtable doublings so far */
	uint64_t	downsizes;		/* subtable halvings so far */
	uint64_t	bytes;			/* memory held: host for cpu, device for cuda */
	uint64_t	bytes_peak;
	uint64_t	bytes_paged;	/* page-locked host memory held, of a table that pages */
	uint64_t	bytes_to_device;	/* transferred so far */
	uint64_t	bytes_from_device;
	uint64_t	reads;			/* keys looked up so far */
	/* of these, of a table that pages and keeps copies of entries that are used much on the device: */
	uint64_t	reads_cached;	/* those that copies answered */
	uint64_t	reads_paged;	/* those that read the host's memory */
	uint64_t	writes;			/* positions of all other requests so far */
	uint64_t	bucket_reads;	/* with timing: buckets all requests so far looked at */
	uint64_t	queue_ns;		/* with timing: from submit to start on the device */
	uint64_t	transfer_ns;	/* with timing: copies, both ways */
	uint64_t	kernel_ns;		/* with timing: kernels */
} GhTableStats;

/* ----------------------------------------------------------------- requests */

/*
 * What a request does, key by key.  "Position" is an index into the batch.
 * The outcome of every operation but GH_EXCHANGE is that of doing the
 * positions one after the other.
 */
typedef enum GhOp
{
	/* store (key, value) where the key is absent, else leave it (so of equal
	 * keys in a batch the first position's value stays) */
	GH_INSERT = 1,
	/* store (key, value), replacing (the last position's value stays) */
	GH_UPSERT,
	/* store values_in[i] and return in values_out[i] the value it replaces, or
	 * GhRequest.absent.  Equal keys in a batch are done in some order: their
	 * values_out form one chain that starts at the value before the batch.
	 * Tables of single values of 4 or 8 bytes.
	 * With GhTableOptions.concurrent_exchange requests of several handles may be under
	 * way at the same time: of equal keys in all of them there is one chain. */
	GH_EXCHANGE,
	/* multi tables: one more value for the key; equal values are kept apart */
	GH_ADD,
	/*
	 * Multi tables that are empty: every key and value it will have, in one
	 * request.  The table is then what GH_ADD of the same would have made, but is
	 * made faster, and each key's values are contiguous.  values_in may be NULL
	 * with values of 4 or 8 bytes: then position i's value is i (below 2^32 for 4
	 * bytes).  It is done in full or, after an error or stop, the table is empty
	 * and done is 0.
	 */
	GH_BUILD,
	/* values_out[i] is the key's value, or GhRequest.absent.  With values_out
	 * NULL, as it must be in a multi table or a set, flags_out tells whether the
	 * key is there ("contains"). */
	GH_FIND,
	/* counts_out[i] is the number of values that the key has, 0 when it is absent;
	 * 1 for a present key where there is one value or none */
	GH_COUNT,
	/* multi tables: every value of every key; see offsets_out */
	GH_FIND_ALL,
	/* remove the key with all its values */
	GH_DELETE,
	/* multi tables: remove one value of the key, whichever; with its last value the
	 * key goes.  n positions of one key remove n values, or as many as there are */
	GH_DELETE_ONE,
	/* tables of single values and sets: position i does ops[i], which is
	 * GH_INSERT, GH_UPSERT, GH_FIND or GH_DELETE, and sees what the positions
	 * before it did */
	GH_MIXED
} GhOp;

/*
 * How far a request has come, and what it did: of what was really done so far, not of what was
 * asked for.  Copied as a whole.
 */
typedef struct GhOutcome
{
	uint64_t	done;			/* positions finished, a prefix of the batch */
	uint64_t	matched;		/* find, count, find-all, mixed finds: positions whose key was there */
	uint64_t	inserted;		/* keys that are new */
	uint64_t	replaced;		/* upsert, exchange, mixed upserts: positions that put a value in
								 * another's place */
	uint64_t	removed;		/* keys that left */
	uint64_t	values_count;	/* find-all, count: values of all positions; delete, delete-one,
								 * mixed deletes: values removed */
} GhOutcome;

/*
 * One batch.  The caller zeroes the struct, fills the first part, submits it
 * and leaves it and its arrays alone until poll or wait says other than
 * GH_BUSY.  Arrays are of `count` elements unless said otherwise, and do not
 * overlap.  A key takes GhTableOptions.key_size bytes of its array, a value
 * value_size bytes, without gaps; the arrays are aligned to 8 bytes.
 */
typedef struct GhRequest
{
	GhOp		op;
	/*
	 * The arrays are in the memory of the table's device, 16-byte aligned (but ops
	 * and flags_out), and what wrote them is done.  GH_UNSUPPORTED where the engine has no device
	 * memory.  Every field of this struct stays in the host's.
	 */
	bool		on_device;
	uint64_t	count;			/* keys; 0 to GH_BATCH_MAX */
	const void *keys;
	const void *values_in;		/* insert, upsert, exchange, add, build, mixed; else
								 * NULL */
	const uint8_t *ops;			/* mixed: a GhOp each */
	void	   *values_out;		/* find, exchange; find-all: values_capacity elements;
								 * mixed, may be NULL: what finds find, other positions'
								 * elements are absent */
	/*
	 * Find, exchange and mixed: the value that stands for "not there".  Values of
	 * up to 8 bytes take its low bytes; of wider ones it is the first 8 bytes and
	 * the rest is zero.
	 */
	uint64_t	absent;

	/*
	 * May be NULL.  1 or 0: find, count: the key is there; insert: this position
	 * stored its value; delete, upsert, exchange, add and build: the key left or is
	 * new, said at exactly one of the positions that hold it; delete-one: this
	 * position removed a value; mixed: of a find, that the key was there, of an
	 * insert or upsert, that the key was new, of a delete, that the key was removed.
	 */
	uint8_t    *flags_out;

	uint64_t   *counts_out;		/* count */

	/*
	 * Find-all: count + 1 elements; key i's values are elements offsets_out[i] up
	 * to offsets_out[i + 1] of values_out, in no particular order.  When
	 * values_capacity is too small, offsets_out and values_count are right,
	 * values_out is untouched and the status is GH_TOO_SMALL; values_capacity 0
	 * asks for the sizes alone.
	 */
	uint64_t   *offsets_out;
	uint64_t	values_capacity;

	/* -- results, valid once the request is not busy -- */
	GhOutcome	outcome;
	GhStatus	status;
	GhError		error;			/* when status is an error */

	/* -- the engine's own, from submit until it is finished with GH_OK or given up -- */
	GhTable    *table;
	uint64_t	engine_state[8];
} GhRequest;

/* How far an export has come; zeroed to begin. */
typedef struct GhCursor
{
	uint64_t	position;		/* the engine's */
	uint64_t	value;			/* the engine's: values of a key that are through */
	bool		finished;		/* everything was exported */
} GhCursor;

/* ------------------------------------------------------------------ engines */

typedef struct GhDeviceInfo
{
	char		name[64];
	uint64_t	memory_total;	/* bytes */
	uint64_t	memory_free;	/* bytes, now */
	uint32_t	multiprocessors;
	uint32_t	compute_major;
	uint32_t	compute_minor;
} GhDeviceInfo;

typedef struct GhPipelineEngine GhPipelineEngine;

typedef struct GhEngine
{
	uint32_t	abi_version;	/* GH_ABI_VERSION of the engine's build */
	const char *name;			/* "cpu" or "cuda" */
	bool		asynchronous;	/* submit returns before a find is done */
	bool		on_device;		/* tables and groups are in a device's memory, not in the host's */
	/* A request's arrays must lie in one buffer of buffer_alloc, which has one request at a time;
	 * else any memory does. */
	bool		buffers_required;
	/* All processes of the caller's server have the same devices: table_root names a table in each
	 * of them, and GhHost.ctx says who may attach it (service.h).  What others keep there can
	 * make room. */
	bool		shares_tables;

	/*
	 * Devices.  open_device makes the device usable in this process (CUDA: the
	 * context, 0.3 s the first time); the caller blocks signals around it.
	 * GH_UNAVAILABLE says why there is none.
	 */
	GhStatus	(*device_count) (int *count, GhError *error);
	GhStatus	(*open_device) (int device, GhError *error);
	GhStatus	(*device_info) (int device, GhDeviceInfo *info, GhError *error);

	/*
	 * Host memory that requests' arrays are best in (CUDA: page-locked).  NULL
	 * when there is none; ordinary memory works too, only slower.
	 */
	void	   *(*buffer_alloc) (int device, size_t bytes);
	void		(*buffer_free) (void *buffer);

	/*
	 * Makes host memory that the caller has, whole pages, known to the device, so that
	 * requests' arrays in it are transferred without a copy between.  read_only: no
	 * device can write to it.  Without it requests work too, only slower.  It must stay
	 * mapped until memory_unregister or the end of the process.  NULL where there is no
	 * device; GH_UNSUPPORTED or GH_NO_MEMORY where it is refused.
	 */
	GhStatus	(*memory_register) (int device, void *memory, size_t bytes,
									bool read_only, GhError *error);
	void		(*memory_unregister) (int device, void *memory);

	/*
	 * Whether a pipeline on the device takes pages where they are in the pool of buffers that the
	 * processes of the caller's server share.  May change at any time, at the cost of a copy.
	 * NULL: never.
	 */
	bool		(*reads_pool) (int device);

	/*
	 * A new, empty table.  GH_INVALID for options out of range, GH_LIMIT when
	 * the capacity does not fit the limit, GH_NO_MEMORY, GH_DEVICE_ERROR.
	 */
	GhStatus	(*table_create) (const GhHost *host, const GhTableOptions *options,
								 GhTable **table, GhError *error);
	/* Another handle on the table whose root another handle told. */
	GhRef		(*table_root) (const GhTable *table);
	GhStatus	(*table_attach) (const GhHost *host, GhRef root, GhTable **table,
								 GhError *error);
	/* Gives the handle back and leaves the table to other handles. */
	void		(*table_detach) (GhTable *table);
	/* Waits for what is in flight, frees table and handle. */
	void		(*table_destroy) (GhTable *table);

	/* Removes every key; capacity as at creation. */
	GhStatus	(*table_clear) (GhTable *table, GhError *error);
	/*
	 * Makes room for that many keys in all, so that no insert up to there needs to
	 * grow the table, and keeps it: the table does not shrink below until it is
	 * cleared.  GH_LIMIT or GH_NO_MEMORY leave it as it was.
	 */
	GhStatus	(*table_reserve) (GhTable *table, uint64_t keys, GhError *error);
	/*
	 * Gives memory back that deletes left: compacts the values of a multi table and
	 * shrinks subtables as far as the filled factor allows.  Without memory to do
	 * so it leaves things as they are, which is no error.
	 */
	GhStatus	(*table_flush) (GhTable *table, GhError *error);
	/*
	 * Copies up to `capacity` entries (a multi table: values with their keys) that
	 * the cursor has not passed to keys and values, which are host memory; values
	 * is ignored for a set and may be NULL.  Entries come in no particular order,
	 * each once, if nothing changes the table in between.  *count is how many came;
	 * it may be less than capacity, even 0, before the cursor is finished.  NULL: this engine has none.
	 */
	GhStatus	(*table_export) (GhTable *table, GhCursor *cursor, uint64_t capacity,
								 void *keys, void *values, uint64_t *count,
								 GhError *error);
	GhStatus	(*table_stats) (GhTable *table, GhTableStats *stats, GhError *error);

	/*
	 * Requests.  submit checks the request and starts it: GH_OK or GH_BUSY
	 * when it was taken (its outcome is poll's to tell), else the error, with
	 * nothing done.  Requests on a handle are done in the order of submission.
	 * poll does what can be done without waiting, a bounded slice, and tells
	 * the status.  wait polls until it is not GH_BUSY.
	 *
	 * A request that ends with an error or GH_STOPPED has done positions 0 to
	 * done - 1 in full and none of the others (but see concurrent_exchange); submitted
	 * again unchanged it goes on at done (find-all starts anew).  Results are as if it
	 * had run in one go.
	 */
	GhStatus	(*submit) (GhTable *table, GhRequest *request);
	GhStatus	(*poll) (GhRequest *request);
	GhStatus	(*wait) (GhRequest *request);

	/* Pipelines, which pipeline.h describes; NULL: it has none. */
	const GhPipelineEngine *pipelines;
} GhEngine;

/* The engine that a handle belongs to; the first field of every GhTable. */
struct GhTable
{
	const GhEngine *engine;
};

/* src/engine/table/cpu_engine.c */
extern const GhEngine *gh_cpu_engine(void);

/*
 * src/engine/loader.c
 *
 * Opens the CUDA engine's library at an absolute path, once per process; later
 * calls return the first outcome without a new try unless retry is set.
 * GH_UNAVAILABLE: no such library, one of another ABI version, no driver or no
 * device.  The caller blocks signals around the first call: the library's
 * start may create threads.
 */
extern GhStatus gh_engine_load(const char *path, bool retry,
							   const GhEngine **engine, GhError *error);

/* The symbol that the loader looks up in the library. */
#define GH_CUDA_ENTRY "gh_cuda_engine"
typedef const GhEngine *(*GhEngineEntry) (void);

/*
 * src/engine/options.c
 *
 * Replaces zeroes by defaults and checks the ranges, for both engines:
 * GH_INVALID with a sentence that names the bound.  fill_min must stay under
 * d / (d + 1) x fill_max: one doubling takes the filled factor from fill_max to
 * no less than that (dyhash.txt, section 5.1), and a table at it would shrink at
 * once.
 */
extern GhStatus gh_options_check(GhTableOptions *options, GhError *error);
/* Checks arrays and sizes of a request against the table's options. */
extern GhStatus gh_request_check(const GhTableOptions *options,
								 const GhRequest *request, GhError *error);
/*
 * The same for a table that a pipeline made (GhMadeTable in pipeline.h); what it says to calls that would
 * change it.
 */
extern GhStatus gh_made_request_check(uint32_t value_size, const GhRequest *request, GhError *error);
extern GhStatus gh_made_refuse(GhError *error);
/* Fills error and returns status; printf-like. */
extern GhStatus gh_error_set(GhError *error, GhStatus status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif

#endif							/* GH_ENGINE_H */
