/*
 * table.h
 *		The host's side of a CUDA table: its struct, and what the files of this
 *		folder offer each other.
 *
 * Everything here is used by one thread at a time, the handle's.  Functions
 * that take a GhError return a GhStatus and fill the error when it is not GH_OK.
 */
#ifndef GPUHASH_TABLE_H
#define GPUHASH_TABLE_H

#include <cuda_runtime.h>

#include "layout.cuh"

/* FIND pieces in flight; one is copied in, one runs, one is copied out, one waits. */
#define LANES 4

/* Keys of one FIND piece: small, so that the pieces of one request overlap. */
#define PIECE_MAX ((uint64_t) 1 << 18)

/* Keys of one slice of another operation: enough to fill the device, few enough
 * for the stop flag (about a millisecond with page-locked arrays). */
#define SLICE_MAX ((uint64_t) 1 << 20)
/* Keys of one slice that fit lane 0 whatever the memory's state. */
#define SLICE_MIN ((uint64_t) 256)

/* Buckets of a subtable at creation: with fewer, chance decides what fits. */
#define SUBTABLE_BUCKETS_MIN ((uint64_t) 16)
/* One subtable: 2^36 buckets of 128 bytes are more than any device has. */
#define SUBTABLE_BUCKETS_MAX ((uint64_t) 1 << 36)

#define SEGMENTS_MAX 64

struct subtable
{
	uint64_t   *words;			/* device: buckets */
	uint64_t	buckets;		/* a power of two */
	uint64_t	base_buckets;	/* at creation */
	uint64_t	entries;		/* subtable 0 counts the side bucket's too */
};

/* A device allocation that values are handed out of, front to back. */
struct segment
{
	uint64_t   *values;
	uint64_t	room;			/* values */
	uint64_t	used;			/* values handed out */
};

/* Where a multi table's values live (values.cu). */
struct value_store
{
	segment		segments[SEGMENTS_MAX];
	uint32_t	segment_count;
	value_record *records;		/* device */
	uint64_t	record_room;
	uint64_t	record_used;
	uint64_t	used;			/* values handed out of all segments */
};

/*
 * A stream with the device memory that one FIND piece or one slice of another
 * operation works in.  Lane 0 is there from the table's start with room for
 * SLICE_MIN keys of any operation, so that no table gets stuck for want of
 * memory; the others come when they are needed and there is memory.
 */
struct lane
{
	cudaStream_t stream;
	cudaEvent_t done;			/* the piece's results are on the host */
	cudaEvent_t mark[4];		/* with timing: copy in, kernels, copy out, end */
	void	   *buffer;			/* device */
	size_t		bytes;			/* of buffer */
	counters   *device_count;
	counters   *host_count;		/* page-locked */
	GhRequest  *request;		/* whose piece is in flight, or NULL */
	uint64_t	count;			/* keys of that piece */
};

struct cuda_table
{
	GhTable		base;			/* first: it is the handle */
	GhHost		host;
	GhTableOptions options;
	bool		has_values;
	bool		failed;			/* the device did; error says how */
	GhError		error;

	subtable	sub[GH_SUBTABLES_MAX];
	uint64_t   *side;			/* device: the side bucket */
	uint64_t	base_slots;		/* all subtables' slots at creation */
	uint64_t	keys;
	uint64_t	values;			/* multi tables */
	uint64_t	reserved;		/* bytes kept free under the limit, for compaction */
	value_store store;

	lane		lanes[LANES];
	lane	   *flight[LANES];	/* lanes in use, oldest first */
	uint32_t	flying;
	GhRequest  *pending;		/* requests not fully started, oldest first */
	GhRequest  *pending_last;

	GhTableStats stats;			/* the running totals; the rest is filled when asked */
};

/* engine.cu */
extern "C" const GhEngine *gh_cuda_engine(void);

/* ---------------------------------------------------------------- device.cu */

/* For CUDA calls after which nothing of the table can be trusted when they fail. */
#define CUDA_TRY(table, call, error) \
	do { \
		cudaError_t cuda_try_status = (call); \
		if (cuda_try_status != cudaSuccess) \
			return table_failed(table, cuda_try_status, #call, error); \
	} while (0)

/* After every kernel launch. */
#define LAUNCH_TRY(table, error) CUDA_TRY(table, cudaGetLastError(), error)

#define GH_TRY(call) \
	do { \
		GhStatus gh_try_status = (call); \
		if (gh_try_status != GH_OK) \
			return gh_try_status; \
	} while (0)

extern GhStatus device_count(int *count, GhError *error);
extern GhStatus device_open(int device, GhError *error);
extern GhStatus device_info(int device, GhDeviceInfo *info, GhError *error);
extern void *device_buffer_alloc(int device, size_t bytes);
extern void device_buffer_free(void *buffer);
extern GhStatus table_failed(cuda_table *table, cudaError_t status, const char *call,
							 GhError *error);
extern bool device_fits(const cuda_table *table, uint64_t bytes);
extern GhStatus device_alloc(cuda_table *table, uint64_t bytes, void **memory,
							 GhError *error);
extern void device_free(cuda_table *table, void *memory, uint64_t bytes);

/* ----------------------------------------------------------------- table.cu */

extern GhStatus cuda_table_create(const GhHost *host, const GhTableOptions *options,
								  GhTable **handle, GhError *error);
extern void cuda_table_destroy(GhTable *handle);
extern GhStatus cuda_table_clear(GhTable *handle, GhError *error);
extern GhStatus cuda_table_stats(GhTable *handle, GhTableStats *stats, GhError *error);
extern uint64_t table_slots(const cuda_table *table);
extern uint64_t subtable_bytes(const cuda_table *table, uint64_t buckets);
extern table_view table_make_view(const cuda_table *table);
extern steering_view table_make_steering(const cuda_table *table);

/* ------------------------------------------------------------------ lane.cu */

extern GhStatus lane_create(cuda_table *table, lane *lane, counters *device_count,
							counters *host_count, GhError *error);
extern void lane_destroy(cuda_table *table, lane *lane);
extern GhStatus lane_reserve(cuda_table *table, lane *lane, size_t bytes);
extern GhStatus lane_mark(cuda_table *table, lane *lane, int mark, GhError *error);
extern GhStatus lane_add_times(cuda_table *table, lane *lane, GhError *error);
extern GhStatus lane_count_reset(cuda_table *table, lane *lane, GhError *error);
extern GhStatus lane_count_read(cuda_table *table, lane *lane, GhError *error);
extern GhStatus lane_copy_in(cuda_table *table, lane *lane, void *device,
							 const void *host, size_t bytes, GhError *error);
extern GhStatus lane_copy_out(cuda_table *table, lane *lane, void *host,
							  const void *device, size_t bytes, GhError *error);

/* Cuts a lane's buffer into arrays; with a NULL base it only adds up. */
struct carver
{
	char	   *base;
	size_t		used;			/* bytes */

	void	   *take(size_t bytes);

	template <typename T> T *
	array(uint64_t elements)
	{
		return static_cast<T *>(take(elements * sizeof(T)));
	}
};

/* ----------------------------------------------------------------- queue.cu */

/* GhRequest.engine_state */
enum request_state
{
	STATE_NEXT,					/* the request behind it in the pending list */
	STATE_STARTED,				/* positions started */
	STATE_FLYING,				/* its pieces in flight */
	STATE_STOPPED,				/* start no more of it */
	STATE_SUBMITTED_NS,			/* the clock at submit */
	STATE_PHASE					/* find-all: counting or gathering */
};

extern GhStatus cuda_submit(GhTable *handle, GhRequest *request);
extern GhStatus cuda_poll(GhRequest *request);
extern GhStatus cuda_wait(GhRequest *request);
extern void queue_drain(cuda_table *table);
extern bool stop_seen(const cuda_table *table);

/* ------------------------------------------------------- find.cu, find_all.cu */

extern GhStatus find_start(cuda_table *table, GhRequest *request, bool *started,
						   GhError *error);
extern GhStatus find_finish(cuda_table *table, lane *lane, GhError *error);
extern GhStatus find_all_step(cuda_table *table, GhRequest *request, GhError *error);
extern size_t find_all_bytes(uint64_t keys, uint64_t chunk);

/* ----------------------------------------------- batch.cu, insert.cu, values.cu */

extern GhStatus batch_step(cuda_table *table, GhRequest *request, GhError *error);
extern size_t batch_bytes(const cuda_table *table, GhOp op, uint64_t keys);

extern GhStatus entries_insert(cuda_table *table, const batch_view *batch,
							   uint32_t absent, GhError *error);
extern GhStatus entries_remove(cuda_table *table, const batch_view *batch,
							   uint32_t absent, GhError *error);
extern GhStatus residuals_insert(cuda_table *table, const uint64_t *keys,
								 const uint64_t *values, uint32_t *const *lists,
								 uint32_t *left, const move_journal *journal,
								 GhError *error);
extern GhStatus residuals_undo(cuda_table *table, const move_journal *journal,
							   GhError *error);
extern void subtables_add_gains(cuda_table *table, const counters *count);

extern size_t scan_space_bytes(uint64_t elements);
extern GhStatus scan_sums(cuda_table *table, lane *lane, uint64_t *sums,
						  uint64_t elements, void *space, size_t space_bytes,
						  GhError *error);
/* The room an ADD slice needs, found before anything is changed. */
struct value_plan
{
	uint64_t	fresh;			/* values of room to hand out */
	uint64_t	moved;			/* values to move there */
	uint64_t   *start;			/* of the room, once reserved */
	segment    *from;
};
extern GhStatus values_plan(cuda_table *table, const batch_view *batch,
							value_plan *plan, GhError *error);
extern GhStatus values_reserve(cuda_table *table, value_plan *plan, uint32_t absent,
							   uint32_t added, GhError *error);
extern GhStatus values_commit(cuda_table *table, const batch_view *batch,
							  const value_plan *plan, uint32_t absent, GhError *error);
extern void values_hold_back(cuda_table *table, uint64_t keys, uint64_t values);
extern GhStatus values_compact_if_due(cuda_table *table, GhError *error);
extern GhStatus values_compact(cuda_table *table, bool *done, GhError *error);
extern void values_clear(cuda_table *table);

/* ---------------------------------------------------------------- resize.cu */

extern GhStatus table_make_room(cuda_table *table, uint64_t keys, GhError *error);
extern GhStatus table_upsize(cuda_table *table, GhError *error);
extern GhStatus table_downsize_if_due(cuda_table *table, GhError *error);

#endif							/* GPUHASH_TABLE_H */
