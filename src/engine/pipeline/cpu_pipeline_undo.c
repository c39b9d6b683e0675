/*
 * cpu_pipeline_undo.c
 *		Requests of pipelines on the CPU that are stopped: what they have put into the sink is taken out again.
 *
 * Rows and records that a request has added are the last ones, and are cut off.  Groups that it has made are the last
 * ones, too; but of older ones the states have changed.  So the states of a group are saved before a request changes
 * them for the first time.  That takes time and memory, and short requests do without: once they have changed a state
 * they are done to their end.
 */
#include "engine/pipeline/cpu_pipeline.h"

#include <stdlib.h>

/* Rows of a request that is done, once begun, before anybody minds. */
#define SHORT_ROWS 16384

#define SAVED_MIN 1024			/* groups */

/* What is saved of a group; its states are behind it. */
typedef struct Saved
{
	uint32_t	group;
	uint32_t	had_row;
} Saved;

static size_t
saved_bytes(const GhCpuPipeline *pipeline)
{
	return sizeof(Saved) + pipeline->plan.options.sink.groups.naggregates * sizeof(GhAggregateState);
}

/* Can a row have many matches, so that a short request may take long? */
static bool
finds_several(const GhCpuPipeline *pipeline)
{
	for (uint32_t p = 0; p < pipeline->plan.options.nprobes; p++)
		if (pipeline->plan.probed[p].several)
			return true;
	return false;
}

void
gh_cpu_undo_begin(GhCpuPipeline *pipeline, uint64_t rows)
{
	GhCpuUndo  *undo = &pipeline->undo;
	bool		groups = pipeline->plan.options.sink.kind == GH_SINK_GROUPS;

	gh_cpu_undo_end(pipeline);
	gh_cpu_texts_tidy(pipeline);
	undo->records_used = pipeline->records.used;
	undo->records = pipeline->records.count;
	if (pipeline->rows != NULL)
	{
		undo->rows = pipeline->rows->count;
		undo->keyless = pipeline->rows->nkeyless;
	}
	undo->groups = pipeline->groups.count;
	undo->texts_used = pipeline->groups.texts.used;
	undo->texts_left = pipeline->groups.texts_left;
	undo->range = pipeline->range;
	undo->saves = groups && (rows > SHORT_ROWS || finds_several(pipeline));
	undo->possible = true;
	if (undo->saves)
	{
		undo->is_saved = calloc(undo->groups / 64 + 1, sizeof(uint64_t));
		undo->saves = undo->is_saved != NULL;
	}
}

void
gh_cpu_undo_end(GhCpuPipeline *pipeline)
{
	free(pipeline->undo.is_saved);
	free(pipeline->undo.saved);
	memset(&pipeline->undo, 0, sizeof(pipeline->undo));
}

bool
gh_cpu_sees_stop(GhCpuPipeline *pipeline)
{
	if (pipeline->undo.possible && gh_cpu_is_stopped(&pipeline->host))
		pipeline->stopped = true;
	return pipeline->stopped;
}

/* False: there is no memory. */
static bool
save_group(GhCpuPipeline *pipeline, uint32_t group)
{
	GhCpuUndo  *undo = &pipeline->undo;
	const GhCpuGrouping *groups = &pipeline->groups;
	size_t		bytes = saved_bytes(pipeline);
	uint32_t	n = pipeline->plan.options.sink.groups.naggregates;
	Saved		saved = {group, gh_cpu_group_had_row(groups, group)};
	char	   *to;

	if (undo->nsaved == undo->room)
	{
		uint64_t	room = undo->room == 0 ? SAVED_MIN : undo->room * 2;
		char	   *place = realloc(undo->saved, room * bytes);

		if (place == NULL)
			return false;
		undo->saved = place;
		undo->room = room;
	}
	to = undo->saved + undo->nsaved++ * bytes;
	memcpy(to, &saved, sizeof(saved));
	if (n > 0)
		memcpy(to + sizeof(saved), groups->states + (size_t) group * n, n * sizeof(GhAggregateState));
	undo->is_saved[group / 64] |= UINT64_C(1) << group % 64;
	return true;
}

void
gh_cpu_undo_note(GhCpuPipeline *pipeline, const GhVectorBatch *batch, const uint32_t *found)
{
	GhCpuUndo  *undo = &pipeline->undo;
	bool		keys = pipeline->plan.options.sink.groups.nkeys > 0;

	for (uint32_t i = 0; undo->saves && i < batch->nrows; i++)
	{
		uint32_t	group = keys ? found[i] : 0;

		if (batch->state[i] == GH_ROW_LIVE && group < undo->groups &&
			(undo->is_saved[group / 64] >> group % 64 & 1) == 0)
			undo->saves = save_group(pipeline, group);
	}
	/* from here on the request cannot be stopped any more */
	if (!undo->saves)
		undo->possible = false;
}

/* The states of groups that have changed, and no groups that are new. */
static void
restore_groups(GhCpuPipeline *pipeline)
{
	const GhCpuUndo *undo = &pipeline->undo;
	GhCpuGrouping *groups = &pipeline->groups;
	uint32_t	n = pipeline->plan.options.sink.groups.naggregates;

	for (uint64_t s = 0; s < undo->nsaved; s++)
	{
		const char *from = undo->saved + s * saved_bytes(pipeline);
		Saved		saved;

		memcpy(&saved, from, sizeof(saved));
		gh_cpu_group_set_row(groups, saved.group, saved.had_row != 0);
		if (saved.had_row == 0 && saved.group < groups->full)
			groups->full = saved.group;
		if (n > 0)
			memcpy(groups->states + (size_t) saved.group * n, from + sizeof(saved), n * sizeof(GhAggregateState));
	}
	gh_cpu_grouping_cut(groups, undo->groups, undo->texts_used);
	groups->texts_left = undo->texts_left;
}

void
gh_cpu_undo(GhCpuPipeline *pipeline)
{
	const GhCpuUndo *undo = &pipeline->undo;

	pipeline->range = undo->range;
	pipeline->records.used = undo->records_used;
	pipeline->records.count = undo->records;
	/* their texts stay where they are, and no row has them */
	if (pipeline->rows != NULL)
	{
		pipeline->rows->count = undo->rows;
		pipeline->rows->nkeyless = undo->keyless;
	}
	if (pipeline->plan.options.sink.kind == GH_SINK_GROUPS)
		restore_groups(pipeline);
	pipeline->stopped = false;
	gh_cpu_undo_end(pipeline);
}
