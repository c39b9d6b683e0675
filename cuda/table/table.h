/*
 * table.h
 *		The host's side of a CUDA table: its struct, and what the files of this
 *		folder offer each other.
 *
 * Everything here is used by one thread at a time, the handle's.  Other handles have
 * other threads, so nothing static changes, and every function of the engine makes
 * the table's device current before it calls CUDA.  Functions that take a GhError
 * return a GhStatus and fill the error when it is not GH_OK.
 */
#ifndef GPUHASH_TABLE_H
#define GPUHASH_TABLE_H

#include <cuda_runtime.h>

#include "cuda/table/layout.cuh"

/* FIND pieces in flight; one is copied in, one runs, one is copied out, one waits. */
#define LANES 4

/* Keys of one FIND or COUNT piece from host memory: small, so that the pieces of one
 * request overlap. */
#define PIECE_MAX ((uint64_t) 1 << 18)
/* The same where the arrays are on the device: a millisecond or so of looking up, for
 * the stop flag is seen between pieces. */
#define DEVICE_PIECE_MAX ((uint64_t) 1 << 25)

/* Keys of one slice of another operation: enough to fill the device, few enough
 * for the stop flag (about a millisecond with page-locked arrays). */
#define SLICE_MAX ((uint64_t) 1 << 20)
/* The same where the arrays are on the device, for operations whose scratch
 * memory is small: a launch should be long beside what the host does between. */
#define DEVICE_SLICE_MAX ((uint64_t) 1 << 23)
/* The same for operations whose scratch memory is large: a lane keeps that of a slice. */
#define MIXED_SLICE_MAX ((uint64_t) 1 << 21)
/* Keys of one slice that fit lane 0 whatever the memory's state. */
#define SLICE_MIN ((uint64_t) 256)

/* Keys and values that a piece or slice stages in device memory: fewer when wide. */
#define STAGED_BYTES ((uint64_t) 32 << 20)

/* Keys of a piece or slice where part of the table is in the host's memory: some milliseconds
 * of single reads over the bus. */
#define PAGED_KEYS_MAX ((uint64_t) 1 << 20)
/* The same where they are not arranged by regions (arrange.cu), and where that begins. */
#define PAGED_LOOSE_MAX ((uint64_t) 1 << 17)
#define ARRANGE_KEYS_MIN ((uint64_t) 1 << 15)
/* Keys that are on their way at a time: enough for the bus, near each other once they are arranged. */
#define PAGED_WAVE ((uint32_t) 1 << 16)
/* What a device has on its way of an arranged batch, a tenth of it or so, is near with so much paged. */
#define PAGED_WIDE ((uint64_t) 4 << 30)
/* A lane keeps a buffer up to this size; and lane 0 of a table that was built, which may
 * never change. */
#define LANE_KEPT_BYTES ((size_t) 256 << 20)
#define BUILT_KEPT_BYTES ((size_t) 32 << 20)

/* Keys that are grouped at a time: their scratch table stays in L2. */
#define GROUP_MAX SLICE_MAX

/* Buckets of a subtable at creation: with fewer, chance decides what fits. */
#define SUBTABLE_BUCKETS_MIN ((uint64_t) 16)
/* A region is this large at least: so many of them are built in the shared memory of a
 * multiprocessor at a time, and not many more keys than on average fall to one. */
#define REGION_BYTES 65536
/* The hash has 32 bits for a bucket. */
#define SUBTABLE_BUCKETS_MAX ((uint64_t) UINT32_MAX)

#define SEGMENTS_MAX 64

enum layout_kind
{
	LAYOUT_K4,
	LAYOUT_K8,
	LAYOUT_K4V4,
	LAYOUT_K8V8
};

/*
 * Runs a statement in which L is the table's layout:
 *		LAYOUT_DISPATCH(table, kernel<L><<<...>>>(...));
 */
#define LAYOUT_DISPATCH(table, ...) \
	do { \
		switch ((table)->layout) \
		{ \
			case LAYOUT_K4: { typedef layout_k4 L; __VA_ARGS__; break; } \
			case LAYOUT_K8: { typedef layout_k8 L; __VA_ARGS__; break; } \
			case LAYOUT_K4V4: { typedef layout_k4v4 L; __VA_ARGS__; break; } \
			case LAYOUT_K8V8: { typedef layout_k8v8 L; __VA_ARGS__; break; } \
		} \
	} while (0)

/* The same where the layout has values together with keys (values_together), as multi tables have. */
#define TOGETHER_DISPATCH(table, ...) \
	do { \
		if ((table)->layout == LAYOUT_K4V4) \
			{ typedef layout_k4v4 L; __VA_ARGS__; } \
		else \
			{ typedef layout_k8v8 L; __VA_ARGS__; } \
	} while (0)

struct subtable
{
	char	   *slots;			/* device: buckets */
	char	   *values;			/* device: by slot; NULL: together with keys, or none */
	uint64_t	buckets;
	uint64_t	entries;		/* subtable 0 counts the side bucket's too */
};

/* A device allocation that values are handed out of, front to back. */
struct segment
{
	char	   *values;
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
	/* every key has one value, which is in its slot: none of the above (records.cu) */
	bool		in_slots;
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
	bool		count_clear;	/* device_count is all zeroes */
	GhRequest  *request;		/* whose piece is in flight, or NULL */
	uint64_t	count;			/* keys of that piece */
};

/* How many blocks of a kernel the device holds: asking takes as long as a launch. */
struct resident_kernel
{
	const void *kernel;			/* NULL: none yet */
	uint32_t	blocks;
};

#define RESIDENT_KERNELS 4

/* Copies of the entries that are used most, of a table of which a part is paged (hot.cu). */
struct hot_copies
{
	char	   *buckets;		/* device */
	uint64_t	bytes;			/* of them; 0: there are none */
};

struct cuda_table
{
	GhTable		base;			/* first: it is the handle */
	GhHost		host;
	GhTableOptions options;
	layout_kind layout;
	uint32_t	slot_bytes;		/* of a slot in its bucket */
	uint32_t	bucket_slots;
	/* bytes that a slot has for a value: value_size, or a multi table's record number */
	uint32_t	slot_value_size;
	bool		ordered;		/* see "Order" in README */
	uint32_t	multiprocessors;
	resident_kernel resident[RESIDENT_KERNELS];	/* those that were asked for */
	bool		failed;			/* the device did; error says how */
	GhError		error;

	subtable	sub[GH_SUBTABLES_MAX];
	uint32_t   *side_present;	/* device: the side bucket */
	char	   *side_values;
	uint64_t	base_buckets;	/* of each subtable at creation */
	uint64_t	region_span;	/* buckets of a region in a subtable that has several */
	uint64_t	floor_slots;	/* of all subtables: it does not shrink below */
	uint64_t	crowded_slots;	/* so many slots were too few, by chance or for want of */
	uint64_t	crowded_keys;	/* memory, for so many keys; 0: none were */
	uint64_t	keys;
	uint64_t	values;			/* multi tables */
	uint64_t	reserved;		/* bytes kept free under the limit, for compaction */
	value_store store;
	struct paged_range *paged;	/* memory that is not the device's alone (paging.cu) */
	hot_copies	hot;

	lane		lanes[LANES];
	size_t		lane_min_bytes;	/* SLICE_MIN keys of any operation, in lane 0 */
	lane	   *flight[LANES];	/* lanes in use, oldest first */
	uint32_t	flying;
	GhRequest  *pending;		/* requests not fully started, oldest first */
	GhRequest  *pending_last;

	GhTableStats stats;			/* the running totals; the rest is filled when asked */

	/* Of a table that a pipeline made: its rows; else NULL.  They are the table's. */
	struct pipe_rows *rows;
	bool		by_number;		/* values are the numbers of these */
	uint32_t	made_value_size;	/* to requests (GhMadeTable) */
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
#define LAUNCH_TRY(table, error) CUDA_TRY(table, launch_status(), error)

#define GH_TRY(call) \
	do { \
		GhStatus gh_try_status = (call); \
		if (gh_try_status != GH_OK) \
			return gh_try_status; \
	} while (0)

extern GhStatus device_count(int *count, GhError *error);
extern GhStatus device_open(int device, GhError *error);
extern GhStatus device_info(int device, GhDeviceInfo *info, GhError *error);
extern uint32_t device_attribute(int device, cudaDeviceAttr attribute);
extern void *device_buffer_alloc(int device, size_t bytes);
extern void device_buffer_free(void *buffer);
extern GhStatus device_memory_register(int device, void *memory, size_t bytes,
									   bool read_only, GhError *error);
extern void device_memory_unregister(int device, void *memory);
extern GhStatus table_failed(cuda_table *table, cudaError_t status, const char *call,
							 GhError *error);
extern bool device_fits(const cuda_table *table, uint64_t bytes);
extern GhStatus device_alloc(cuda_table *table, uint64_t bytes, void **memory,
							 GhError *error);
extern void device_free(cuda_table *table, void *memory, uint64_t bytes);
extern cudaError_t device_malloc(const GhHost *host, void **memory, uint64_t bytes);
/* Who frees what is kept for later, when there would be too little memory; it says whether that was any. */
typedef bool (*device_spare_function) (void);
extern void device_spare_with(device_spare_function function);
extern bool device_give_spare(void);
/* pool.cu */
extern cudaError_t pool_malloc(const GhHost *host, void **memory, uint64_t bytes);
extern cudaError_t device_release(void *memory);
extern bool pool_trim(void);
extern uint64_t pool_kept(void);
/* Tests: this allocation is to fail. */
extern bool allocation_fault(void);
extern bool budget_take(const GhHost *host, uint64_t bytes);
extern void budget_give(const GhHost *host, uint64_t bytes);
extern cudaError_t launch_status(void);
/* Are values in the slots, beside their keys? */
static inline bool
values_together(const cuda_table *table)
{
	return table->layout == LAYOUT_K4V4 || table->layout == LAYOUT_K8V8;
}

extern uint32_t resident_blocks_of(cuda_table *table, const void *kernel, uint64_t elements);

/* Blocks of a kernel with FOR_ROUNDS: as many as the device holds, or fewer. */
template <typename KERNEL> static inline uint32_t
resident_blocks(cuda_table *table, KERNEL kernel, uint64_t elements)
{
	return resident_blocks_of(table, reinterpret_cast<const void *>(kernel), elements);
}

/* ---------------------------------------------------------------- paging.cu */

extern bool table_pages(const cuda_table *table);
extern GhStatus table_alloc(cuda_table *table, uint64_t bytes, void **memory, GhError *error);
extern bool paging_free(cuda_table *table, void *memory);
extern uint64_t paging_bytes(const cuda_table *table, const void *memory);
extern GhStatus paging_copy(cuda_table *table, void *to, const void *from, uint64_t bytes,
							GhError *error);
extern GhStatus paging_settle(cuda_table *table, GhError *error);
extern uint64_t device_free_bytes(const cuda_table *table);
extern uint64_t paging_keys(const cuda_table *table, uint64_t most);
extern uint32_t paging_wave(const cuda_table *table, uint32_t keys);
extern uint64_t paging_near_bytes(const cuda_table *table, const void *memory);
extern bool paging_has(const cuda_table *table, uint64_t bytes);

/* ------------------------------------------------------------------- hot.cu */

extern uint64_t hot_bytes_wanted(const cuda_table *table, uint64_t more);
extern void hot_drop(cuda_table *table);
extern GhStatus hot_settle(cuda_table *table, GhError *error);
extern GhStatus hot_forget_all(cuda_table *table, GhError *error);
extern GhStatus hot_refresh(cuda_table *table, const entry_list *list, const uint32_t *sources,
							GhError *error);
extern GhStatus hot_forget(cuda_table *table, GhOp op, const void *keys, uint32_t count, GhError *error);

/* ----------------------------------------------------------------- table.cu */

extern GhStatus cuda_table_create(const GhHost *host, const GhTableOptions *options,
								  GhTable **handle, GhError *error);
extern void cuda_table_destroy(GhTable *handle);
extern GhStatus cuda_table_clear(GhTable *handle, GhError *error);
extern GhStatus cuda_table_stats(GhTable *handle, GhTableStats *stats, GhError *error);
extern GhStatus cuda_table_reserve(GhTable *handle, uint64_t keys, GhError *error);
extern GhStatus cuda_table_flush(GhTable *handle, GhError *error);
extern uint64_t table_slots(const cuda_table *table);
extern uint64_t table_staged_keys(const cuda_table *table, uint64_t most);
extern GhStatus subtable_alloc(cuda_table *table, uint64_t buckets, subtable *sub,
							   GhError *error);
extern void subtable_free(cuda_table *table, subtable *sub);
extern uint64_t subtable_bytes(const cuda_table *table, uint64_t buckets);
/* The regions of a subtable of that many buckets, and the buckets of one: seed and slots are left. */
extern subtable_view subtable_regions(const cuda_table *table, uint64_t buckets);
/* A subtable as kernels see it, with the hash function of subtable `number`. */
extern subtable_view subtable_view_of(const cuda_table *table, uint32_t number,
									  const subtable *sub);
extern table_view table_make_view(const cuda_table *table);
extern GhStatus table_erase(cuda_table *table, GhError *error);
/* Waits for what was submitted and makes the device current, before a table call. */
extern GhStatus table_enter(cuda_table *table, GhError *error);

/* ------------------------------------------------------------------ lane.cu */

extern GhStatus lane_create(cuda_table *table, lane *lane, counters *device_count,
							counters *host_count, GhError *error);
extern void lane_destroy(cuda_table *table, lane *lane);
extern GhStatus lane_reserve(cuda_table *table, lane *lane, size_t bytes);
extern void lane_shrink(cuda_table *table, lane *lane, size_t most);
extern GhStatus lane_mark(cuda_table *table, lane *lane, int mark, GhError *error);
extern GhStatus lane_add_times(cuda_table *table, lane *lane, GhError *error);
extern GhStatus lane_count_reset(cuda_table *table, lane *lane, GhError *error);
extern GhStatus lane_count_read(cuda_table *table, lane *lane, GhError *error);
extern GhStatus lane_count_look(cuda_table *table, lane *lane, GhError *error);
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

/* --------------------------------------------------------------- arrange.cu */

/* Positions of a slice or piece in the order of regions. */
struct arrangement
{
	uint32_t   *unsorted_bits;	/* by position: those that the region is picked by */
	uint32_t   *bits;			/* sorted */
	uint32_t   *unsorted;		/* positions in their own order */
	uint32_t   *positions;		/* sorted */
	void	   *space;			/* CUB's */
	size_t		space_bytes;
};

extern bool arranges(const cuda_table *table, uint64_t keys);
extern void arrange_carve(carver *carver, uint64_t keys, arrangement *order);
extern GhStatus arrange_keys(cuda_table *table, lane *lane, const void *keys, uint32_t count,
							 const arrangement *order, GhError *error);
extern GhStatus arrange_move(cuda_table *table, lane *lane, const arrangement *order, void *to,
							 const void *from, uint32_t count, uint32_t size, bool back,
							 GhError *error);

/* ----------------------------------------------------------------- queue.cu */

/* GhRequest.engine_state */
enum request_state
{
	STATE_NEXT,					/* the request behind it in the pending list */
	STATE_STARTED,				/* positions started */
	STATE_FLYING,				/* its pieces in flight */
	STATE_STOPPED,				/* start no more of it */
	STATE_SUBMITTED_NS,			/* the clock at submit */
	STATE_PHASE,				/* find-all: counting or gathering */
	STATE_REFUSED = STATE_PHASE,	/* what is faster did not suit, and is not tried again */
	STATE_GATHERED				/* find-all: values gathered */
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
/* Bytes of a lane for that many keys and a chunk of that many values. */
extern size_t find_bytes(const cuda_table *table, uint64_t keys);
extern size_t find_all_bytes(const cuda_table *table, uint64_t keys, uint64_t chunk);

/* ----------------------------------------------------------------- batch.cu */

/*
 * One slice of a modifying request: its arrays in device memory, those that the
 * operation has, and scratch memory of as many bytes as the operation asked for.
 */
struct slice_io
{
	uint32_t	count;			/* positions */
	const void *keys;
	const char *values;
	const uint8_t *ops;
	char	   *values_out;
	uint8_t    *flags;			/* always there; the operation fills all of it */
	void	   *scratch;
};

/*
 * What an operation supplies.  run does the slice whole, adds to the request's
 * counters and, after an error other than GH_DEVICE_ERROR, leaves the table's
 * content as it was; GH_LIMIT, GH_TOO_MANY and GH_NO_MEMORY make batch_step try less.
 */
struct slice_operation
{
	size_t		(*scratch_bytes) (const cuda_table *table, uint64_t keys);
	GhStatus	(*run) (cuda_table *table, GhRequest *request, const slice_io *slice,
						GhError *error);
	uint64_t	device_slice_max;	/* keys, where the arrays are on the device */
};

extern GhStatus batch_step(cuda_table *table, GhRequest *request, GhError *error);
extern size_t batch_bytes(const cuda_table *table, GhOp op, uint64_t keys);

extern const slice_operation insert_operation;	/* insert.cu: INSERT, EXCHANGE */
extern const slice_operation upsert_operation;	/* insert.cu */
extern const slice_operation delete_operation;	/* delete.cu */
extern const slice_operation add_operation;	/* add.cu */
extern const slice_operation delete_one_operation;	/* delete_one.cu */
extern const slice_operation mixed_operation;	/* mixed.cu */

/* ----------------------------------------------------------------- group.cu */

enum group_mode
{
	GROUP_FIRST,				/* only the leaders */
	GROUP_REPEATED,				/* leaders are any position; for whose keys order matters */
	GROUP_LAST,					/* last: the largest position */
	GROUP_COUNT					/* last: how many positions; rank: each one's number,
								 * from 0, in no particular order */
};

/* Takes a group_view for that many keys out of a buffer. */
struct carver;
extern group_view group_carve(carver *carver, uint64_t keys, group_mode mode);
/* Enqueues the grouping of a list of up to that many keys on lane 0. */
extern GhStatus group_positions(cuda_table *table, const entry_list *list,
								const group_view *group, group_mode mode,
								GhError *error);

/* ----------------------------------------------------------------- order.cu */

/*
 * Positions sorted by key, those of a key ascending: each is a number of which the
 * upper bits are its place in the group.
 */
struct key_order
{
	uint64_t   *unsorted;
	uint64_t   *sorted;
	int			position_bits;
	int			bits;			/* of a number */
	void	   *space;			/* CUB's */
	size_t		space_bytes;
};

static __host__ __device__ __forceinline__ uint64_t
order_number(const key_order &order, uint32_t place, uint32_t position)
{
	return (uint64_t) place << order.position_bits | position;
}

static __host__ __device__ __forceinline__ uint32_t
order_place(const key_order &order, uint64_t number)
{
	return (uint32_t) (number >> order.position_bits);
}

static __host__ __device__ __forceinline__ uint32_t
order_position(const key_order &order, uint64_t number)
{
	return (uint32_t) number & (((uint32_t) 1 << order.position_bits) - 1);
}

extern key_order order_carve(carver *carver, const group_view *group, uint64_t keys);
/* Enqueue on lane 0 the sort of all positions of a slice, or of the numbers that are in `unsorted`. */
extern GhStatus order_positions(cuda_table *table, const group_view *group,
								const key_order *order, uint32_t count, GhError *error);
extern GhStatus order_numbers(cuda_table *table, const key_order *order, uint32_t count, GhError *error);

/* ----------------------------------------------------------------- place.cu */

/* What entries_place works with and tells. */
struct place_lists
{
	uint8_t    *flags;			/* by position: 1 where the key was placed */
	uint32_t   *present;		/* positions whose keys were there, list->count elements */
	uint32_t   *overflow;		/* list->count elements */
	uint32_t   *spare[2];		/* up to GROUP_MAX elements each */
	group_view	group;			/* GROUP_FIRST, for up to GROUP_MAX keys */
	claim_view	claims;
	bool		sized;			/* the caller has seen to the room, maybe too little */
};

extern void place_carve(carver *carver, uint64_t keys, place_lists *lists);
extern GhStatus entries_place(cuda_table *table, const entry_list *list,
							  const place_lists *lists, uint32_t *placed,
							  uint32_t *present, GhError *error);
extern GhStatus entries_unplace(cuda_table *table, const entry_list *list,
								const uint8_t *flags, GhError *error);
extern void subtables_add_gains(cuda_table *table, const counters *count);

/* -------------------------------------------------------------- relocate.cu */

extern GhStatus relocate_ahead(cuda_table *table, const entry_list *list, uint32_t most,
							   const claim_view *claims, uint8_t *flags, uint32_t *left,
							   GhError *error);
extern GhStatus relocate_rounds(cuda_table *table, entry_list *list,
								uint8_t *flags, uint32_t *const *spare,
								const move_journal *journal, GhError *error);

/* ------------------------------------------------------------------- runs.cu */

/*
 * Runs of values to copy, in device memory.  Run i is output elements offsets[i]
 * up to offsets[i + 1], of value_size bytes each.
 */
struct run_list
{
	uint64_t	count;			/* runs */
	/* pointers to the runs' values, the stride apart; not read of an empty run */
	const void *sources;
	uint32_t	source_stride;	/* bytes */
	const uint64_t *offsets;	/* count + 1, ascending */
	const uint64_t *targets;	/* elements of `to` that runs go to; NULL: as offsets */
	uint64_t	first;			/* only output elements from here on */
	uint64_t	end;			/* and below this are copied */
	char	   *to;				/* targets NULL: where output element `first` goes */
};

/* Scratch memory of runs_copy: the list of runs that are long. */
struct long_runs
{
	uint64_t   *taken;			/* pieces << 32 | runs */
	uint2	   *runs;			/* number, first piece */
};

extern uint64_t runs_long_max(const cuda_table *table, uint64_t runs, uint64_t values);
extern long_runs runs_carve(carver *carver, uint64_t long_max);
extern GhStatus runs_copy(cuda_table *table, const run_list *runs,
						  const long_runs *scratch, GhError *error);

/* ----------------------------------------------------------------- values.cu */

/* What an ADD slice needs of the store, and where it is. */
struct value_plan
{
	uint64_t	fresh;			/* values of new room */
	uint64_t	moved;			/* values that move there */
	segment    *from;			/* the new room is handed out of this segment */
	char	   *start;			/* the new room */
};

extern GhStatus values_reserve(cuda_table *table, value_plan *plan, uint32_t absent,
							   uint32_t added, GhError *error);
extern GhStatus values_room_for(cuda_table *table, uint64_t values, uint64_t records,
								GhError *error);
extern size_t scan_space_bytes(uint64_t elements);
extern GhStatus scan_sums(cuda_table *table, lane *lane, uint64_t *sums,
						  uint64_t elements, void *space, size_t space_bytes,
						  GhError *error);
extern void values_hold_back(cuda_table *table, uint64_t keys, uint64_t values);
extern GhStatus values_compact_if_due(cuda_table *table, GhError *error);
extern GhStatus values_compact(cuda_table *table, bool *done, GhError *error);
extern void values_clear(cuda_table *table);
/* records.cu */
extern value_record *table_records(const cuda_table *table);
extern GhStatus records_make(cuda_table *table, GhError *error);

/* ------------------------------------------ estimate.cu, build.cu, export.cu */

/* Two standard errors of an estimate, as part of it. */
#define ESTIMATE_ERROR 0.0325

extern size_t estimate_bytes(void);
extern GhStatus estimate_keys(cuda_table *table, const entry_list *list, void *space,
							  uint64_t *keys, GhError *error);
extern GhStatus build_step(cuda_table *table, GhRequest *request, GhError *error);
extern GhStatus cuda_table_export(GhTable *handle, GhCursor *cursor, uint64_t capacity,
								  void *keys, void *values, uint64_t *count,
								  GhError *error);

/* ------------------------------------------------------- resize.cu, shrink.cu */

/* Which subtables grow, where some must. */
typedef enum table_growth
{
	GROW_LEAST,					/* smallest first, until there is room; some may have after an error */
	GROW_ALIKE,					/* all, where memory is plentiful */
	GROW_TOGETHER				/* as GROW_LEAST, but all of these or none */
} table_growth;

extern GhStatus table_make_room(cuda_table *table, uint64_t keys, table_growth growth,
								GhError *error);
extern GhStatus table_upsize(cuda_table *table, GhError *error);
extern void table_note_crowded(cuda_table *table, uint64_t slots);
extern GhStatus table_downsize_if_due(cuda_table *table, bool flush, GhError *error);

/* ------------------------------------------- cuda/pipeline/pipeline_rows.cu */

/* NULL: nothing. */
extern void pipe_rows_destroy(struct pipe_rows *rows);

/* What a find in a table that a pipeline made takes for absent: no number of a row is that. */
#define NO_ROW UINT64_MAX

/*
 * Puts the values that rows keep in the place of their numbers, as many as found in device memory, and absent
 * in that of NO_ROW and of NULLs; to be followed by a check.
 */
extern void pipe_rows_values(const struct pipe_rows *rows, uint64_t *values, uint32_t count, uint64_t absent,
							 cudaStream_t stream);

#endif							/* GPUHASH_TABLE_H */
