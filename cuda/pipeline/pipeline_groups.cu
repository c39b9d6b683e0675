/*
 * pipeline_groups.cu
 *		The groups of a pipeline: lines find theirs and are added to its states; memory for groups, and more of it;
 *		groups as they were before a request.
 *
 * First each line looks its group up or makes it (group_find.cuh); where there was no room the table grows and they look
 * once more.  A row that has a line without a group goes back with all its lines.  The others are added as
 * group_reduce.cuh has it, in the order of lines.
 *
 * Where rows are a line each (groups_take_rows) the host does not wait for the look-up: what found its group is added at
 * once, and what did not is seen with the batch's counters (groups_settle).  Of a group's lines in a batch either all
 * find it or none does: room only gets less, and who finds none looks once more whether another took the last of it for
 * the same keys (search_claim).  So they are added in their order all the same.  Where rows become several the host
 * waits, for then a row of which one line lacks a group must not have added another one (groups_take).
 *
 * Groups keep their numbers.  All but texts is one allocation, which is made anew with more room and filled again.
 */
#include <stdlib.h>
#include <string.h>

#include <cub/device/device_radix_sort.cuh>

#include "cuda/pipeline/pipeline.cuh"
#include "cuda/pipeline/group_find.cuh"
#include "cuda/pipeline/row_program.cuh"
#include "cuda/pipeline/group_reduce.cuh"

#define ROOM_MIN ((uint32_t) 64)
#define ROOM_UNKNOWN ((uint32_t) 16384) /* where nobody has an estimate */
#define ROOM_MAX ((uint32_t) 1 << 30)
#define GROWTH_MAX 16			/* times, at once */

#define TEXT_BYTES_MIN ((uint64_t) 4096)
#define TEXT_BYTES_GUESS ((uint64_t) 32)	/* of a group */

/* -------------------------------------------------------------------- memory */

static void
groups_carve(const cuda_pipeline *pipeline, groups_view *groups, uint32_t room, carver *carver)
{
	groups->room = room;
	groups->mask = 2 * (uint64_t) room - 1;
	groups->record_bytes = pipeline->plan.group_bytes;
	groups->used = carver->array<groups_used>(1);
	groups->slots = carver->array<uint64_t>(2 * (uint64_t) room);
	groups->records = carver->array<char>((uint64_t) room * groups->record_bytes);
	groups->states = carver->array<GhAggregateState>((uint64_t) room * pipeline->view.plan.naggregates);
	groups->begin = carver->array<uint32_t>(room);
	groups->end = carver->array<uint32_t>(room);
}

/* Memory under the limit, all zero: of texts, too, whole words are read. */
static GhStatus
zeros_alloc(cuda_pipeline *pipeline, uint64_t bytes, pipe_block *block, GhError *error)
{
	GhStatus	status;

	GH_TRY(pipe_alloc_small(&pipeline->memory, bytes, true, block, error));
	status = pipe_zero(&pipeline->memory, block->memory, block->bytes, error);
	if (status != GH_OK)
		pipe_free(&pipeline->memory, true, block);
	return status;
}

/* Memory for groups that are all zero, in *groups; texts are left as they are. */
static GhStatus
groups_alloc(cuda_pipeline *pipeline, uint32_t room, groups_view *groups, pipe_block *block, GhError *error)
{
	carver		sizes = {};
	carver		arrays = {};

	groups_carve(pipeline, groups, room, &sizes);
	GH_TRY(zeros_alloc(pipeline, sizes.used, block, error));
	arrays.base = block->memory;
	groups_carve(pipeline, groups, room, &arrays);
	return GH_OK;
}

/* The same for as many as there is memory for, from `least` to `room`, by halves. */
static GhStatus
groups_alloc_most(cuda_pipeline *pipeline, uint32_t room, uint32_t least, groups_view *groups, pipe_block *block,
				  GhError *error)
{
	GhStatus	status = groups_alloc(pipeline, room, groups, block, error);

	while (lacks_memory(status) && room / 2 >= least)
		status = groups_alloc(pipeline, room /= 2, groups, block, error);
	return status;
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
used_set(cuda_pipeline *pipeline, groups_used used, GhError *error)
{
	pipeline->ngroups = used.groups;
	GH_TRY(pipe_copy(&pipeline->memory, pipeline->groups.used, &used, sizeof(used), error));
	return pipe_wait(&pipeline->memory, error);
}

static GhStatus
used_get(cuda_pipeline *pipeline, groups_used *used, GhError *error)
{
	GH_TRY(pipe_copy(&pipeline->memory, used, pipeline->groups.used, sizeof(*used), error));
	GH_TRY(pipe_wait(&pipeline->memory, error));
	/* what found no room was counted, too */
	if (used->groups > pipeline->groups.room)
		used->groups = pipeline->groups.room;
	if (used->text_bytes > pipeline->groups.text_room)
		used->text_bytes = pipeline->groups.text_room;
	return GH_OK;
}

/* The one group of no keys is there without rows. */
static groups_used
used_by_none(const cuda_pipeline *pipeline)
{
	groups_used used = {};

	used.groups = pipeline->view.plan.nkeys == 0;
	return used;
}

GhStatus
groups_init(cuda_pipeline *pipeline, GhError *error)
{
	uint64_t	expected = pipeline->plan.options.sink.groups.expected;
	uint32_t	room = expected == 0 ? ROOM_UNKNOWN :
		room_for(expected < ROOM_MAX ? expected + expected / 4 : ROOM_MAX);
	uint32_t	least = ROOM_MIN;
	GhStatus	status;

	if (pipeline->view.plan.nkeys == 0)
		room = least = 1;
	else if (pipeline->view.has_texts != 0)
	{
		status = zeros_alloc(pipeline, room * TEXT_BYTES_GUESS, &pipeline->texts_block, error);
		if (lacks_memory(status))
			status = zeros_alloc(pipeline, TEXT_BYTES_MIN, &pipeline->texts_block, error);
		GH_TRY(status);
	}
	GH_TRY(groups_alloc_most(pipeline, room, least, &pipeline->groups, &pipeline->groups_block, error));
	pipeline->groups.texts = pipeline->texts_block.memory;
	pipeline->groups.text_room = pipeline->texts_block.bytes;
	return used_set(pipeline, used_by_none(pipeline), error);
}

void
groups_drop(cuda_pipeline *pipeline)
{
	spare_leave(&pipeline->memory, true, &pipeline->texts_block);
	spare_leave(&pipeline->memory, true, &pipeline->groups_block);
	pipe_free(&pipeline->memory, false, &pipeline->undo.block);
}

/* ---------------------------------------------------------------------- growth */

/* Room for more texts; GH_LIMIT and GH_NO_MEMORY leave all as it is. */
static GhStatus
texts_grow(cuda_pipeline *pipeline, const groups_used *used, GhError *error)
{
	uint64_t	bytes = pipeline->texts_block.bytes * 4;
	pipe_block	block;
	GhStatus	status = zeros_alloc(pipeline, bytes, &block, error);

	if (lacks_memory(status))
		status = zeros_alloc(pipeline, bytes / 2, &block, error);
	GH_TRY(status);
	status = pipe_copy(&pipeline->memory, block.memory, pipeline->groups.texts, used->text_bytes, error);
	pipe_free(&pipeline->memory, true, &pipeline->texts_block);
	pipeline->texts_block = block;
	pipeline->groups.texts = block.memory;
	pipeline->groups.text_room = block.bytes;
	return status;
}

static GhStatus
slots_fill(cuda_pipeline *pipeline, const groups_view *groups, uint32_t count, GhError *error)
{
	if (count == 0 || pipeline->view.plan.nkeys == 0)
		return GH_OK;
	rebuild_kernel<<<blocks_for(count), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view.plan, *groups, count);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* Records and states of groups from one place to another. */
static GhStatus
copy_groups(cuda_pipeline *pipeline, void *records, void *states, const void *from_records, const void *from_states,
			uint32_t count, GhError *error)
{
	uint64_t	state_bytes = pipeline->view.plan.naggregates * sizeof(GhAggregateState);

	GH_TRY(pipe_copy(&pipeline->memory, records, from_records, (uint64_t) count * pipeline->groups.record_bytes,
					 error));
	return pipe_copy(&pipeline->memory, states, from_states, count * state_bytes, error);
}

/* Room for more groups, and so many lines that found none; likewise. */
static GhStatus
slots_grow(cuda_pipeline *pipeline, const groups_used *used, uint64_t lacking, GhError *error)
{
	uint32_t	room = pipeline->groups.room;
	uint32_t	wanted = room_for(used->groups + lacking);
	groups_view groups = pipeline->groups;
	pipe_block	block;
	GhStatus	status;

	if (room >= ROOM_MAX)
		return GH_LIMIT;
	if (wanted < 2 * room)
		wanted = 2 * room;
	if (wanted / GROWTH_MAX > room)
		wanted = room * GROWTH_MAX;
	GH_TRY(groups_alloc_most(pipeline, wanted, 2 * room, &groups, &block, error));
	status = copy_groups(pipeline, groups.records, groups.states, pipeline->groups.records, pipeline->groups.states,
						 used->groups, error);
	if (status == GH_OK)
		status = slots_fill(pipeline, &groups, used->groups, error);
	pipe_free(&pipeline->memory, true, &pipeline->groups_block);
	pipeline->groups_block = block;
	pipeline->groups = groups;
	return status;
}

/* More room, after lines found too little.  It is no error where there is no memory: *grown tells. */
static GhStatus
groups_grow(cuda_pipeline *pipeline, const scan_counters *counters, bool *grown, GhError *error)
{
	groups_used used;
	GhStatus	status = GH_LIMIT;
	GhStatus	texts = GH_LIMIT;

	GH_TRY(used_get(pipeline, &used, error));
	if (counters->texts_full != 0)
		texts = texts_grow(pipeline, &used, error);
	if (counters->groups_full != 0 && (texts == GH_OK || lacks_memory(texts)))
		status = slots_grow(pipeline, &used, counters->no_group, error);
	if (pipeline->memory.failed)
	{
		*error = pipeline->memory.error;
		return GH_DEVICE_ERROR;
	}
	*grown = status == GH_OK || texts == GH_OK;
	/* without more room it stays full */
	return *grown ? used_set(pipeline, used, error) : GH_OK;
}

static bool
has_room(uint64_t used, uint64_t more, uint64_t room)
{
	return used <= room && more <= room - used;
}

GhStatus
groups_make_room(cuda_pipeline *pipeline, const groups_used *more, bool *there, GhError *error)
{
	bool		grown = true;

	*there = false;
	while (grown)
	{
		scan_counters lacking = {};
		groups_used used;

		GH_TRY(used_get(pipeline, &used, error));
		lacking.no_group = more->groups;
		lacking.groups_full = !has_room(used.groups, more->groups, pipeline->groups.room);
		lacking.texts_full = !has_room(used.text_bytes, more->text_bytes, pipeline->groups.text_room);
		*there = lacking.groups_full + lacking.texts_full == 0;
		if (*there)
			return GH_OK;
		GH_TRY(groups_grow(pipeline, &lacking, &grown, error));
	}
	return GH_OK;
}

/* ----------------------------------------------------------------------- lines */

/* The groups of lines of rows that become several. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
find_kernel(const pipe_view view, const batch_view batch, const groups_view groups, const pipe_lines lines,
			const lines_view out)
{
	uint64_t	line = ELEMENT;
	scan_counters *counters = &batch.counters->groups;
	bool		lacks = false;

	if (line < lines.count)
	{
		uint32_t	group = group_find(view.plan, groups, line_at(view, lines, (uint32_t) line), counters);

		out.group[line] = group;
		lacks = group == GROUP_NONE;
	}
	add_tally(&counters->no_group, lacks);
}

/* The groups of rows that are a line each; again: those that have one have been added, and are not any more. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
find_rows_kernel(const pipe_view view, const batch_view batch, const groups_view groups, const lines_view out,
				 bool again)
{
	uint64_t	row = ELEMENT;
	scan_counters *counters = &batch.counters->groups;
	bool		live = row < batch.rows && out.state[row] == LINE_LIVE;
	uint32_t	group = GROUP_NONE;

	if (live && again && out.group[row] != GROUP_NONE)
	{
		out.state[row] = LINE_NONE;
		live = false;
	}
	if (live)
		group = group_find(view.plan, groups, line_values(view.program, batch.values, row), counters);
	if (row < batch.rows)
		out.group[row] = group;
	add_tally(&counters->no_group, live && group == GROUP_NONE);
	tally_block(&batch.counters->counted, group != GROUP_NONE);
}

/* The rows of lines that found no group go back. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
lacking_kernel(const pipe_view view, const batch_view batch, const pipe_lines lines, const lines_view out,
			   uint32_t entered)
{
	uint64_t	line = ELEMENT;
	bool		first = false;

	if (line < lines.count && out.group[line] == GROUP_NONE && (lines.rows != nullptr || out.state[line] == LINE_LIVE))
		first = row_turns_back(view, batch, row_of_line(lines, (uint32_t) line), entered);
	add_tally(&batch.counters->no_memory, first);
}

/* Of rows that become several: what is to be added of the lines whose rows do not go back. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
arguments_kernel(const pipe_view view, const batch_view batch, const pipe_lines lines, const lines_view out)
{
	uint64_t	line = ELEMENT;
	bool		live = line < lines.count && batch.back[lines.rows[line]] == NO_STEP;

	if (live)
	{
		line_values row = line_at(view, lines, (uint32_t) line);
		uint64_t	takes = 0;

		(void) row_takes(view.plan, row, &takes);
		out.takes[line] = takes;
		out.state[line] = LINE_LIVE;
		store_inputs(view.plan, out, row, (uint32_t) line);
	}
	else if (line < lines.count)
	{
		out.takes[line] = 0;
		out.state[line] = LINE_NONE;
		out.group[line] = GROUP_NONE;
	}
	add_tally(&batch.counters->counted, live);
}

static GhStatus
counters_renew(cuda_pipeline *pipeline, GhError *error)
{
	/* all in front of it counts for one reduction; that one did not fit is not forgotten */
	return pipe_zero(&pipeline->memory, &pipeline->lane->batch.counters->groups, offsetof(scan_counters, unfit), error);
}

static GhStatus
turn_lacking_back(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error)
{
	lacking_kernel<<<blocks_for(lines->count), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view, pipeline->lane->batch, *lines, pipeline->lane->sink.lines, pipeline->lane->input.step);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* Each line's group, as far as there is room for more of them. */
static GhStatus
find_groups(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error)
{
	const scan_counters *counters = &pipeline->lane->host_counters->groups;
	bool		grown = true;

	GH_TRY(counters_renew(pipeline, error));
	if (pipeline->view.plan.nkeys == 0)
		return GH_OK;
	while (grown)
	{
		find_kernel<<<blocks_for(lines->count), BLOCK_THREADS, 0, pipeline->memory.stream>>>
			(pipeline->view, pipeline->lane->batch, pipeline->groups, *lines, pipeline->lane->sink.lines);
		PIPE_TRY(&pipeline->memory, launch_status(), error);
		GH_TRY(counters_fetch(pipeline, error));
		if (counters->no_group == 0)
			return GH_OK;
		grown = false;
		if (counters->groups_full + counters->texts_full > 0)
			GH_TRY(groups_grow(pipeline, counters, &grown, error));
		GH_TRY(counters_renew(pipeline, error));
	}
	return turn_lacking_back(pipeline, lines, error);
}

static cudaError_t
sort_lines(void *space, size_t *space_bytes, const uint32_t *groups, uint32_t *sorted, const uint32_t *numbers,
		   uint32_t *order, uint32_t count, int bits, cudaStream_t stream)
{
	try
	{
		return cub::DeviceRadixSort::SortPairs(space, *space_bytes, groups, sorted, numbers, order, (int) count, 0, bits,
											   stream);
	}
	catch (...)
	{
		return cudaErrorUnknown;
	}
}

/* For any number of bits: the table of groups may grow. */
cudaError_t
groups_sort_bytes(uint32_t lines, size_t *bytes)
{
	return sort_lines(nullptr, bytes, nullptr, nullptr, nullptr, nullptr, lines, 32, nullptr);
}

/* Bits that tell groups apart: GROUP_NONE's are all ones, and no group's are. */
static int
group_bits(const cuda_pipeline *pipeline)
{
	int			bits = 0;

	while (bits < 32 && pipeline->groups.room >> bits != 0)
		bits++;
	return bits;
}

/* Blocks of kernels that go round, of so many elements at most. */
static uint32_t
blocks_of(const cuda_pipeline *pipeline, uint64_t elements)
{
	uint64_t	most = (uint64_t) pipeline->multiprocessors * 8;
	uint64_t	wanted = blocks_for(elements);

	return (uint32_t) (wanted < most ? wanted : most);
}

static reduce_job
job_of(const cuda_pipeline *pipeline, uint32_t lines)
{
	reduce_job	job;

	job.plan = pipeline->view.plan;
	job.groups = pipeline->groups;
	job.lines = pipeline->lane->sink.lines;
	job.lines.count = lines;
	job.reduce = pipeline->lane->sink.reduce;
	job.rows = lines;
	job.places = lines;
	job.counters = &pipeline->lane->batch.counters->groups;
	return job;
}

/* Enqueues the lines' way into the states of their groups. */
static GhStatus
reduce_lines(cuda_pipeline *pipeline, uint32_t count, GhError *error)
{
	cudaStream_t stream = pipeline->memory.stream;
	uint64_t	threads = (uint64_t) most_chunks(count) * warps_each(pipeline->view.plan) * 32;
	size_t		sort_bytes = pipeline->lane->sink.reduce.sort_bytes;
	reduce_job	job = job_of(pipeline, count);

	PIPE_TRY(&pipeline->memory, sort_lines(job.reduce.sort_space, &sort_bytes, job.lines.group, job.reduce.sorted,
										   job.reduce.numbers, job.reduce.order, count, group_bits(pipeline), stream),
			 error);
	segments_kernel<<<blocks_for(count), BLOCK_THREADS, 0, stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	short_kernel<<<blocks_of(pipeline, count), BLOCK_THREADS, 0, stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	chunk_kernel<false><<<blocks_of(pipeline, threads), BLOCK_THREADS, 0, stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	long_kernel<<<blocks_of(pipeline, threads), BLOCK_THREADS, 0, stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* Without keys: the states of the lines' chunks. */
static GhStatus
reduce_chunks(cuda_pipeline *pipeline, uint32_t count, GhError *error)
{
	uint64_t	threads = (uint64_t) whole_chunks(count) * warps_each(pipeline->view.plan) * 32;

	chunk_kernel<true><<<blocks_of(pipeline, threads), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(job_of(pipeline, count));
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* Without keys: the chunks' states go to the group's, by one block; to: counters go there. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
whole_kernel(const reduce_job job, pipe_counters *counters, pipe_counters *to)
{
	uint32_t	each = warps_each(job.plan);
	long_segment segment = {0, 0, whole_chunks(job.rows)};
	bool		fits = true;

	for (uint32_t a = threadIdx.x / 32; a < each; a += BLOCK_THREADS / 32)
		merge_segment(job, segment, a, &fits);
	if (!fits)
		job.counters->unfit = 1;
	if (to == nullptr)
		return;
	if (threadIdx.x == 0)
		counters->counted += counters->lines;
	__syncthreads();
	send_counters(to, counters, true);
}

GhStatus
groups_take(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error)
{
	GH_TRY(find_groups(pipeline, lines, error));
	arguments_kernel<<<blocks_for(lines->count), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view, pipeline->lane->batch, *lines, pipeline->lane->sink.lines);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	if (pipeline->view.plan.nkeys > 0)
	{
		GH_TRY(reduce_lines(pipeline, lines->count, error));
		/* the host sees it with the batch's last counters */
		return pipe_copy(&pipeline->memory, &pipeline->lane->batch.counters->used, pipeline->groups.used,
						 sizeof(groups_used), error);
	}
	GH_TRY(reduce_chunks(pipeline, lines->count, error));
	whole_kernel<<<1, BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(job_of(pipeline, lines->count), pipeline->lane->batch.counters, nullptr);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* ------------------------------------------------------- rows that are a line each */

GhStatus
groups_prepare_rows(cuda_pipeline *pipeline, GhError *error)
{
	pipeline->lane->chunk_lines = pipeline->lane->batch.rows;
	return pipeline->view.plan.nkeys > 0 ? GH_OK : reduce_chunks(pipeline, pipeline->lane->batch.rows, error);
}

static __global__ void
used_kernel(pipe_counters *counters, const groups_used *used, pipe_counters *to)
{
	if (threadIdx.x == 0)
		counters->used = *used;
	__syncthreads();
	send_counters(to, counters, false);
}

GhStatus
groups_send_counters(cuda_pipeline *pipeline, GhError *error)
{
	used_kernel<<<1, 64, 0, pipeline->memory.stream>>>
		(pipeline->lane->batch.counters, pipeline->groups.used, pipeline->lane->host_counters);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

static GhStatus
add_keyed_rows(cuda_pipeline *pipeline, bool again, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;

	find_rows_kernel<<<blocks_for(lane->batch.rows), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view, lane->batch, pipeline->groups, lane->sink.lines, again);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	GH_TRY(reduce_lines(pipeline, lane->batch.rows, error));
	return groups_send_counters(pipeline, error);
}

GhStatus
groups_take_rows(cuda_pipeline *pipeline, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;

	if (pipeline->view.plan.nkeys > 0)
		return is_one_pass(lane->request) ? pass_groups_take(pipeline, error) : add_keyed_rows(pipeline, false, error);
	whole_kernel<<<1, BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(job_of(pipeline, lane->chunk_lines), lane->batch.counters, lane->host_counters);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	lane->counters_zero = true;
	return GH_OK;
}

GhStatus
groups_settle(cuda_pipeline *pipeline, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	scan_counters counters = lane->host_counters->groups;
	pipe_lines	lines = {lane->batch.values, nullptr, 0, lane->batch.rows};
	bool		grown = false;

	if (counters.no_group == 0)
		return GH_OK;
	if (counters.groups_full + counters.texts_full > 0)
		GH_TRY(groups_grow(pipeline, &counters, &grown, error));
	GH_TRY(counters_renew(pipeline, error));
	if (grown)
		GH_TRY(add_keyed_rows(pipeline, true, error));
	else
	{
		GH_TRY(turn_lacking_back(pipeline, &lines, error));
		GH_TRY(groups_send_counters(pipeline, error));
	}
	PIPE_TRY(&pipeline->memory, cudaEventRecord(lane->done, lane->stream), error);
	return GH_BUSY;
}

void
groups_count(cuda_pipeline *pipeline)
{
	uint32_t	groups = pipeline->lane->host_counters->used.groups;

	/* what found no room was counted, too */
	if (groups > 0)
		pipeline->ngroups = groups < pipeline->groups.room ? groups : pipeline->groups.room;
}

/* -------------------------------------------------------------- as they were */

GhStatus
groups_empty(cuda_pipeline *pipeline, GhError *error)
{
	GH_TRY(pipe_zero(&pipeline->memory, pipeline->groups_block.memory, pipeline->groups_block.bytes, error));
	return used_set(pipeline, used_by_none(pipeline), error);
}

/* Of groups as they are now, in the undo's block. */
static void
save_carve(const cuda_pipeline *pipeline, uint32_t count, char **records, char **states, carver *carver)
{
	*records = carver->array<char>((uint64_t) count * pipeline->groups.record_bytes);
	*states = carver->array<char>(count * pipeline->view.plan.naggregates * sizeof(GhAggregateState));
}

/* GH_LIMIT, GH_NO_MEMORY: there is no memory for it. */
GhStatus
groups_save(cuda_pipeline *pipeline, GhError *error)
{
	pipe_undo  *undo = &pipeline->undo;
	carver		sizes = {};
	carver		arrays = {};
	groups_used used;
	pipe_block	block;
	char	   *records;
	char	   *states;

	GH_TRY(used_get(pipeline, &used, error));
	undo->groups = used.groups;
	undo->group_text_bytes = used.text_bytes;
	save_carve(pipeline, used.groups, &records, &states, &sizes);
	if (sizes.used > undo->block.bytes)
	{
		GH_TRY(pipe_alloc(&pipeline->memory, sizes.used, false, &block, error));
		pipe_free(&pipeline->memory, false, &undo->block);
		undo->block = block;
	}
	arrays.base = undo->block.memory;
	save_carve(pipeline, used.groups, &records, &states, &arrays);
	return copy_groups(pipeline, records, states, pipeline->groups.records, pipeline->groups.states, used.groups,
					   error);
}

/* The groups that were saved, and no others, in the memory that there is now. */
GhStatus
groups_restore(cuda_pipeline *pipeline, GhError *error)
{
	const pipe_undo *undo = &pipeline->undo;
	groups_used used = {undo->group_text_bytes, undo->groups, 0};
	carver		arrays = {};
	char	   *records;
	char	   *states;

	arrays.base = undo->block.memory;
	save_carve(pipeline, undo->groups, &records, &states, &arrays);
	GH_TRY(pipe_zero(&pipeline->memory, pipeline->groups_block.memory, pipeline->groups_block.bytes, error));
	GH_TRY(copy_groups(pipeline, pipeline->groups.records, pipeline->groups.states, records, states, undo->groups,
					   error));
	GH_TRY(slots_fill(pipeline, &pipeline->groups, undo->groups, error));
	return used_set(pipeline, used, error);
}
