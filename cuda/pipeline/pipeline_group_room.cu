/*
 * pipeline_group_room.cu
 *		Memory for the groups of a pipeline, and more of it; groups as they were before a request.
 *
 * Groups keep their numbers.  All but texts is one allocation, which is made anew with more room and filled
 * again.
 */
#include "cuda/pipeline/pipeline.cuh"
#include "cuda/pipeline/group_find.cuh"

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

/* No slot is dead, and no claim under way. */
static GhStatus
used_set(cuda_pipeline *pipeline, groups_used used, GhError *error)
{
	used.claims = used.groups;
	used.dead = 0;
	pipeline->ngroups = used.groups;
	GH_TRY(pipe_copy(&pipeline->memory, pipeline->groups.used, &used, sizeof(used), error));
	return pipe_wait(&pipeline->memory, error);
}

static GhStatus
used_get(cuda_pipeline *pipeline, groups_used *used, GhError *error)
{
	GH_TRY(pipe_copy(&pipeline->memory, used, pipeline->groups.used, sizeof(*used), error));
	GH_TRY(pipe_wait(&pipeline->memory, error));
	/* texts that found no room were counted, too */
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

/* Puts another block in the place of one that is left when its content has been copied. */
static void
replace_block(cuda_pipeline *pipeline, pipe_block *block, const pipe_block *by)
{
	(void) pipe_wait(&pipeline->memory, nullptr);
	spare_leave(&pipeline->memory, true, block);
	*block = *by;
}

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
	replace_block(pipeline, &pipeline->texts_block, &block);
	pipeline->groups.texts = block.memory;
	pipeline->groups.text_room = block.bytes;
	return status;
}

/* Puts the groups that there are into new slots. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
rebuild_kernel(const plan_view plan, const groups_view groups, uint32_t count)
{
	uint64_t	group = ELEMENT;
	uint64_t	hash = plan.seed;
	const GhRecordHead *record;

	if (group >= count)
		return;
	record = reinterpret_cast<const GhRecordHead *>(groups.records + group * groups.record_bytes);
	for (uint32_t k = 0; k < plan.nkeys; k++)
	{
		GhRecordKey	key = plan.keys[k];
		GhValue		value = gh_record_group_value(&key, record, k, groups.texts);

		hash = gh_record_key_hash(&key, &value, hash);
	}
	/* half of the slots stay free */
	while (compare_and_swap(&groups.slots[hash & groups.mask], (uint64_t) 0,
							hash >> 32 << 32 | (group + 1)) != 0)
		hash = (hash >> 32 << 32) | (uint32_t) (hash + 1);
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
	replace_block(pipeline, &pipeline->groups_block, &block);
	pipeline->groups = groups;
	return status;
}

/* The same slots, without those of groups that could not be made: they would leave none free. */
static GhStatus
slots_renew(cuda_pipeline *pipeline, const groups_used *used, GhError *error)
{
	const groups_view *groups = &pipeline->groups;

	GH_TRY(pipe_zero(&pipeline->memory, groups->slots, (groups->mask + 1) * sizeof(uint64_t), error));
	return slots_fill(pipeline, groups, used->groups, error);
}

/* More room, after lines found too little.  It is no error where there is no memory: *grown tells. */
GhStatus
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
	if (status != GH_OK)
		GH_TRY(slots_renew(pipeline, &used, error));
	return used_set(pipeline, used, error);
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
	groups_used used = {};
	carver		arrays = {};
	char	   *records;
	char	   *states;

	used.text_bytes = undo->group_text_bytes;
	used.groups = undo->groups;
	arrays.base = undo->block.memory;
	save_carve(pipeline, undo->groups, &records, &states, &arrays);
	GH_TRY(pipe_zero(&pipeline->memory, pipeline->groups_block.memory, pipeline->groups_block.bytes, error));
	GH_TRY(copy_groups(pipeline, pipeline->groups.records, pipeline->groups.states, records, states, undo->groups,
					   error));
	GH_TRY(slots_fill(pipeline, &pipeline->groups, undo->groups, error));
	return used_set(pipeline, used, error);
}
