/*
 * pipeline_group_records.cu
 *		The groups of a pipeline as records, which the host puts together out of what it fetches: a piece at a time.
 *
 * No request is in the engine meanwhile, so that a piece comes into the page-locked memory that input of a lane goes
 * through: copies to memory that is not locked come at a tenth of the bus's speed.
 */
#include <stdlib.h>

#include "cuda/pipeline/pipeline.cuh"

#define PIECE_GROUPS 65536
/* Room for a piece's texts, beside as much as its groups take without. */
#define PIECE_TEXT_BYTES 65536

/* Parts of a piece. */
enum { PIECE_RECORDS, PIECE_STATES, PIECE_TEXTS, PIECE_PARTS };

/* Groups on the host: from number `first` on. */
struct groups_piece
{
	uint32_t	first;
	uint32_t	count;
	char	   *records;
	char	   *states;
	char	   *texts;
	uint64_t	used;			/* of the lane's page-locked memory */
	void	   *allocated[PIECE_PARTS];	/* parts that had no room there */
};

static void
piece_drop(groups_piece *piece)
{
	for (int part = 0; part < PIECE_PARTS; part++)
		free(piece->allocated[part]);
	*piece = {};
}

/* Where a part of so many bytes goes; NULL: there is no memory. */
static char *
piece_room(cuda_pipeline *pipeline, groups_piece *piece, int part, uint64_t bytes)
{
	const pipe_lane *lane = pipeline->lane;
	uint64_t	aligned = (bytes + 15) / 16 * 16;
	char	   *room;

	if (lane->host_input != nullptr && aligned <= lane->host_input_bytes - piece->used)
	{
		room = lane->host_input + piece->used;
		piece->used += aligned;
		return room;
	}
	piece->allocated[part] = malloc(aligned > 0 ? aligned : 1);
	return static_cast<char *>(piece->allocated[part]);
}

/* The copy is on its way. */
static GhStatus
copy_out(cuda_pipeline *pipeline, groups_piece *piece, int part, char **to, const void *from, uint64_t bytes,
		 GhError *error)
{
	*to = piece_room(pipeline, piece, part, bytes);
	if (*to == nullptr)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the groups of a pipeline");
	return pipe_copy(&pipeline->memory, *to, from, bytes, error);
}

static GhRecordHead *
piece_group(const cuda_pipeline *pipeline, const groups_piece *piece, uint32_t i)
{
	return reinterpret_cast<GhRecordHead *>(piece->records + (uint64_t) i * pipeline->groups.record_bytes);
}

/* The texts of the piece's groups, which lie about together; keys name their offsets in it then. */
static GhStatus
copy_texts(cuda_pipeline *pipeline, groups_piece *piece, GhError *error)
{
	const GhGroupsSink *sink = &pipeline->plan.options.sink.groups;
	uint64_t	begin = UINT64_MAX;
	uint64_t	end = 0;

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < piece->count; i++)
			for (uint32_t k = 0; k < sink->nkeys; k++)
			{
				GhRecordHead *group = piece_group(pipeline, piece, i);
				GhRecordValue *key = &gh_record_keys(group)[k];

				if (sink->keys[k].value_class != GH_CLASS_TEXT || (group->nulls >> k & 1) != 0)
					continue;
				if (pass == 1)
				{
					key->low -= begin;
					continue;
				}
				begin = key->low < begin ? key->low : begin;
				end = key->low + key->high > end ? key->low + key->high : end;
			}
	if (begin > end)
		begin = end;
	GH_TRY(copy_out(pipeline, piece, PIECE_TEXTS, &piece->texts, pipeline->groups.texts + begin, end - begin, error));
	return pipe_wait(&pipeline->memory, error);
}

static GhStatus
piece_fetch(cuda_pipeline *pipeline, groups_piece *piece, GhError *error)
{
	uint64_t	record_bytes = pipeline->groups.record_bytes;
	uint64_t	states = pipeline->view.plan.naggregates;
	uint64_t	fixed = piece->count * (record_bytes + states * sizeof(GhAggregateState));
	GhStatus	status = input_reserve(pipeline, 2 * fixed + PIECE_TEXT_BYTES, 0, error);

	/* without it, other memory does */
	if (status != GH_OK && !lacks_memory(status))
		return status;
	GH_TRY(copy_out(pipeline, piece, PIECE_RECORDS, &piece->records,
					pipeline->groups.records + piece->first * record_bytes, piece->count * record_bytes, error));
	GH_TRY(copy_out(pipeline, piece, PIECE_STATES, &piece->states, pipeline->groups.states + piece->first * states,
					piece->count * states * sizeof(GhAggregateState), error));
	GH_TRY(pipe_wait(&pipeline->memory, error));
	return copy_texts(pipeline, piece, error);
}

/* Writes records until the piece or the room ends; true: the piece did. */
static bool
piece_put(const cuda_pipeline *pipeline, const groups_piece *piece, GhCursor *cursor, size_t capacity, char *buffer,
		  size_t *bytes, size_t *needed)
{
	const GhAggregateState *states = reinterpret_cast<const GhAggregateState *>(piece->states);

	for (uint32_t i = 0; i < piece->count; i++)
	{
		GhRecordHead *group = piece_group(pipeline, piece, i);

		/* how many rows it has nobody is told */
		group->rows = group->rows != 0;
		if ((group->rows != 0 || pipeline->view.plan.nkeys == 0) &&
			!gh_record_put(&pipeline->record_plan, group, states + (uint64_t) i * pipeline->view.plan.naggregates,
								piece->texts, capacity, buffer, bytes, needed))
			return false;
		cursor->position++;
	}
	return true;
}

/* As many groups as may fit, and one at least: a record takes no less than these bytes. */
static uint32_t
piece_groups(const cuda_pipeline *pipeline, size_t room, uint64_t left)
{
	uint64_t	record = pipeline->groups.record_bytes + pipeline->view.plan.naggregates * sizeof(GhAggregateState);
	uint64_t	groups = room / record + 1;

	groups = groups < PIECE_GROUPS ? groups : PIECE_GROUPS;
	return (uint32_t) (groups < left ? groups : left);
}

GhStatus
groups_fetch(cuda_pipeline *pipeline, GhCursor *cursor, size_t capacity, char *buffer, size_t *bytes, GhError *error)
{
	uint32_t	count = pipeline->ngroups;
	size_t		needed = 0;
	bool		room = true;
	bool		stopped = false;

	while (room && cursor->position < count)
	{
		groups_piece piece = {};
		GhStatus	status;

		stopped = pipe_stopped(&pipeline->memory);
		if (stopped)
			break;
		piece.first = (uint32_t) cursor->position;
		piece.count = piece_groups(pipeline, capacity - *bytes, count - cursor->position);
		status = piece_fetch(pipeline, &piece, error);
		if (status == GH_OK)
			room = piece_put(pipeline, &piece, cursor, capacity, buffer, bytes, &needed);
		piece_drop(&piece);
		/* what came so far is good */
		if (lacks_memory(status) && *bytes > 0)
			return GH_OK;
		GH_TRY(status);
	}
	if (cursor->position >= count)
		cursor->finished = true;
	else if (*bytes == 0 && stopped)
		return gh_error_set(error, GH_STOPPED, "the results of a pipeline were stopped");
	else if (*bytes == 0)
	{
		*bytes = needed;
		return gh_error_set(error, GH_TOO_SMALL, "a group needs %zu bytes", needed);
	}
	return GH_OK;
}
