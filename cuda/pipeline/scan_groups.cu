/*
 * scan_groups.cu
 *		The groups of a scan: memory for them, and more of it.
 *
 * All but texts is one allocation, which is made anew with more room and filled again.  Groups keep
 * their numbers, so that a request whose pages were read before, and whose lines name groups, is
 * not concerned.  While that happens no kernel runs.
 */
#include "cuda/pipeline/scan_device.cuh"
#include "cuda/pipeline/scan_find.cuh"

#define ROOM_MIN ((uint32_t) 64)
#define ROOM_UNKNOWN ((uint32_t) 16384) /* where nobody has an estimate */
#define ROOM_MAX ((uint32_t) 1 << 30)
#define GROWTH_MAX 16			/* times, at once */

#define TEXT_BYTES_MIN ((uint64_t) 4096)
#define TEXT_BYTES_GUESS ((uint64_t) 32)	/* of a group */

/* -------------------------------------------------------------------- memory */

static void
groups_carve(const cuda_scan *scan, groups_view *groups, uint32_t room, carver *carver)
{
	groups->room = room;
	groups->mask = 2 * (uint64_t) room - 1;
	groups->record_bytes = scan->plan.group_bytes;
	groups->used = carver->array<groups_used>(1);
	groups->slots = carver->array<uint64_t>(2 * (uint64_t) room);
	groups->records = carver->array<char>((uint64_t) room * groups->record_bytes);
	groups->states = carver->array<GhAggregateState>((uint64_t) room *
													 scan->plan.options.naggregates);
	groups->begin = carver->array<uint32_t>(room);
	groups->end = carver->array<uint32_t>(room);
}

/*
 * Memory under the limit, all zero: that of texts, too, for what lies between them is copied to the
 * host with them.
 */
static GhStatus
zeros_alloc(cuda_scan *scan, uint64_t bytes, scan_block *block, GhError *error)
{
	cudaError_t status;

	GH_TRY(scan_alloc(scan, bytes, true, block, error));
	status = cudaMemsetAsync(block->memory, 0, block->bytes, scan->reduce_stream);
	if (status != cudaSuccess)
	{
		scan_free(scan, true, block);
		return scan_failed(scan, status, "cudaMemsetAsync", error);
	}
	return GH_OK;
}

/* Memory for groups that are all zero, in *groups; texts are left as they are. */
static GhStatus
groups_alloc(cuda_scan *scan, uint32_t room, groups_view *groups, scan_block *block,
			 GhError *error)
{
	carver		sizes = {};
	carver		arrays = {};

	groups_carve(scan, groups, room, &sizes);
	GH_TRY(zeros_alloc(scan, sizes.used, block, error));
	arrays.base = block->memory;
	groups_carve(scan, groups, room, &arrays);
	return GH_OK;
}

/* The same for as many as there is memory for, from `least` to `room`, by halves. */
static GhStatus
groups_alloc_most(cuda_scan *scan, uint32_t room, uint32_t least, groups_view *groups,
				  scan_block *block, GhError *error)
{
	GhStatus	status = groups_alloc(scan, room, groups, block, error);

	while ((status == GH_LIMIT || status == GH_NO_MEMORY) && room / 2 >= least)
		status = groups_alloc(scan, room /= 2, groups, block, error);
	return status;
}

static bool
has_text_keys(const cuda_scan *scan)
{
	for (uint32_t k = 0; k < scan->plan.options.nkeys; k++)
		if (scan->plan.options.keys[k].value_class == GH_CLASS_TEXT)
			return true;
	return false;
}

static uint32_t
room_for(uint64_t groups)
{
	uint32_t	room = ROOM_MIN;

	while (room < groups && room < ROOM_MAX)
		room *= 2;
	return room;
}

static GhStatus
used_set(cuda_scan *scan, groups_used used, GhError *error)
{
	SCAN_TRY(scan, cudaMemcpyAsync(scan->groups.used, &used, sizeof(used), cudaMemcpyHostToDevice,
								   scan->reduce_stream), error);
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	return GH_OK;
}

GhStatus
groups_create(cuda_scan *scan, GhError *error)
{
	uint64_t	expected = scan->plan.options.groups;
	uint32_t	room = expected == 0 ? ROOM_UNKNOWN : room_for(expected < ROOM_MAX ?
															   expected + expected / 4 : ROOM_MAX);
	groups_used used = {};
	GhStatus	status;

	/* the one group of no keys is number 0 */
	if (scan->plan.options.nkeys == 0)
	{
		room = 1;
		used.groups = 1;
	}
	else if (has_text_keys(scan))
	{
		status = zeros_alloc(scan, room * TEXT_BYTES_GUESS, &scan->texts_block, error);
		if (status == GH_LIMIT || status == GH_NO_MEMORY)
			status = zeros_alloc(scan, TEXT_BYTES_MIN, &scan->texts_block, error);
		GH_TRY(status);
	}
	GH_TRY(groups_alloc_most(scan, room, room < ROOM_MIN ? room : ROOM_MIN, &scan->groups,
							 &scan->groups_block, error));
	scan->groups.texts = scan->texts_block.memory;
	scan->groups.text_room = scan->texts_block.bytes;
	return used_set(scan, used, error);
}

void
groups_destroy(cuda_scan *scan)
{
	scan_free(scan, true, &scan->texts_block);
	scan_free(scan, true, &scan->groups_block);
}

/* ---------------------------------------------------------------------- growth */

static GhStatus
used_get(cuda_scan *scan, groups_used *used, GhError *error)
{
	SCAN_TRY(scan, cudaMemcpyAsync(used, scan->groups.used, sizeof(*used), cudaMemcpyDeviceToHost,
								   scan->reduce_stream), error);
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	/* what found no room was counted, too */
	if (used->groups > scan->groups.room)
		used->groups = scan->groups.room;
	if (used->text_bytes > scan->groups.text_room)
		used->text_bytes = scan->groups.text_room;
	return GH_OK;
}

static GhStatus
copy_on_device(cuda_scan *scan, void *to, const void *from, uint64_t bytes, GhError *error)
{
	if (bytes > 0)
		SCAN_TRY(scan, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
									   scan->reduce_stream), error);
	return GH_OK;
}

/* Room for more texts; GH_LIMIT and GH_NO_MEMORY leave all as it is. */
static GhStatus
texts_grow(cuda_scan *scan, const groups_used *used, GhError *error)
{
	uint64_t	bytes = scan->texts_block.bytes * 4;
	scan_block	block;
	GhStatus	status = zeros_alloc(scan, bytes, &block, error);

	if (status == GH_LIMIT || status == GH_NO_MEMORY)
		status = zeros_alloc(scan, bytes / 2, &block, error);
	GH_TRY(status);
	status = copy_on_device(scan, block.memory, scan->groups.texts, used->text_bytes, error);
	scan_free(scan, true, &scan->texts_block);
	scan->texts_block = block;
	scan->groups.texts = block.memory;
	scan->groups.text_room = block.bytes;
	return status;
}

/* Room for more groups, and so many rows that found none; likewise. */
static GhStatus
slots_grow(cuda_scan *scan, const groups_used *used, uint32_t no_group, GhError *error)
{
	uint32_t	room = scan->groups.room;
	uint32_t	wanted = room_for((uint64_t) used->groups + no_group);
	groups_view groups = scan->groups;
	scan_block	block;
	cudaError_t launched;
	GhStatus	status;

	if (room >= ROOM_MAX)
		return GH_LIMIT;
	if (wanted < 2 * room)
		wanted = 2 * room;
	if (wanted / GROWTH_MAX > room)
		wanted = room * GROWTH_MAX;
	GH_TRY(groups_alloc_most(scan, wanted, 2 * room, &groups, &block, error));
	status = copy_on_device(scan, groups.records, scan->groups.records,
							(uint64_t) used->groups * groups.record_bytes, error);
	if (status == GH_OK)
		status = copy_on_device(scan, groups.states, scan->groups.states,
								(uint64_t) used->groups * scan->plan.options.naggregates *
								sizeof(GhAggregateState), error);
	if (status == GH_OK)
	{
		rebuild_kernel<<<blocks_for(used->groups), BLOCK_THREADS, 0, scan->reduce_stream>>>
			(scan->view, groups, used->groups);
		launched = launch_status();
		if (launched != cudaSuccess)
			status = scan_failed(scan, launched, "rebuild_kernel", error);
	}
	scan_free(scan, true, &scan->groups_block);
	scan->groups_block = block;
	scan->groups = groups;
	return status;
}

/*
 * More room, after pages were read for some of whose rows there was not enough.  It is no error
 * where there is no memory: *grown tells.
 */
GhStatus
groups_grow(cuda_scan *scan, const scan_counters *counters, bool *grown, GhError *error)
{
	groups_used used;
	GhStatus	status = GH_OK;
	GhStatus	texts = GH_LIMIT;

	*grown = false;
	GH_TRY(scan_wait_streams(scan, error));
	GH_TRY(used_get(scan, &used, error));
	if (counters->texts_full != 0)
		texts = texts_grow(scan, &used, error);
	if (counters->groups_full != 0 && texts != GH_DEVICE_ERROR)
		status = slots_grow(scan, &used, counters->no_group, error);
	else
		status = texts;
	if (scan->failed)
	{
		*error = scan->error;
		return GH_DEVICE_ERROR;
	}
	*grown = status == GH_OK || texts == GH_OK;
	scan->generation += *grown;
	/* without more room it stays full */
	return *grown ? used_set(scan, used, error) : GH_OK;
}

/* How many groups there are, when all kernels are through. */
GhStatus
groups_count(cuda_scan *scan, uint32_t *count, GhError *error)
{
	groups_used used = {};

	GH_TRY(used_get(scan, &used, error));
	*count = used.groups;
	return GH_OK;
}
