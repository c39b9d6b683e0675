/*
 * cpu_pipeline_sink.c
 *		Where the rows of a pipeline on the CPU end: groups, a table, records.
 *
 * First there is a place for each row, or the row goes back; then those that do not are added.  So a row that became
 * several is in the sink with all of them or with none.  Of one that becomes more than can wait, places are found for
 * all, part by part, before the first part is added (cpu_pipeline_run.c).
 */
#include "engine/pipeline/cpu_pipeline.h"

#include <stdlib.h>

#define RECORDS_AT_A_TIME 1024	/* records, before a look at the stop flag */
#define STAGED_BYTES_MAX (UINT64_C(1) << 60)	/* that rows need together; no host has them */

/* ---------------------------------------------------------------- rows aside */

/* Is a vector read by the sink, and no constant? */
static bool
is_needed(const GhPipelinePlan *plan, uint32_t v)
{
	return (plan->needed[plan->options.nsteps][v / 64] >> v % 64 & 1) != 0;
}

/* Memory for the vectors that the sink reads; constants are those of level 0, and others are not there. */
static bool
create_vectors(const GhCpuPipeline *pipeline, GhCpuStaged *staged)
{
	const GhPipelinePlan *plan = &pipeline->plan;
	const GhProgram *program = plan->options.program;
	uint32_t	nvectors = gh_program_vectors(program);
	size_t		bytes = GH_VECTOR_ROWS + ((nvectors * sizeof(GhVector) + 63) & ~(size_t) 63);
	char	   *place;

	for (uint32_t v = 0; v < nvectors; v++)
		if (is_needed(plan, v))
			bytes += GH_VECTOR_ROWS * (sizeof(uint64_t) + 1 + (plan->wide[v] != 0 ? sizeof(uint64_t) : 0));
	/* any row may be read before it is written, as one that is not live */
	staged->memory = place = aligned_alloc(64, bytes);
	if (place == NULL)
		return false;
	memset(place, 0, bytes);
	staged->batch = (GhVectorBatch) {
		.nvectors = nvectors,
		.state = (uint8_t *) place,
		.vectors = (GhVector *) (place + GH_VECTOR_ROWS),
	};
	place += GH_VECTOR_ROWS + ((nvectors * sizeof(GhVector) + 63) & ~(size_t) 63);
	for (uint32_t v = 0; v < nvectors; v++)
	{
		GhVector   *vector = &staged->batch.vectors[v];

		if (v >= program->ncolumns && v < program->ncolumns + program->nconstants)
			*vector = pipeline->levels[0]->batch.vectors[v];
		if (!is_needed(plan, v))
			continue;
		vector->low = (uint64_t *) place;
		place += GH_VECTOR_ROWS * sizeof(uint64_t);
		if (plan->wide[v] != 0)
		{
			vector->high = (uint64_t *) place;
			place += GH_VECTOR_ROWS * sizeof(uint64_t);
		}
		vector->null = (uint8_t *) place;
		place += GH_VECTOR_ROWS;
	}
	return true;
}

static GhCpuStaged *
create_staged(const GhCpuPipeline *pipeline)
{
	uint32_t	nsets = gh_sink_sets(&pipeline->plan.options.sink.groups);
	GhCpuStaged *staged = malloc(sizeof(GhCpuStaged) + nsets * GH_VECTOR_ROWS * sizeof(uint32_t));

	if (staged == NULL)
		return NULL;
	memset(&staged->batch, 0, sizeof(staged->batch));
	staged->memory = NULL;
	/* where rows do not become several it stands for level 0, and has no rows of its own */
	if (!pipeline->multiplies || create_vectors(pipeline, staged))
		return staged;
	free(staged);
	return NULL;
}

static void
drop_staged(GhCpuStaged *staged)
{
	if (staged == NULL)
		return;
	free(staged->memory);
	free(staged);
}

/* The batch with room for one more row at the least; NULL: there is none.  The first one is always there. */
static GhCpuStaged *
room_aside(GhCpuPipeline *pipeline)
{
	GhCpuStaged *last = pipeline->nstaged > 0 ? pipeline->staged[pipeline->nstaged - 1] : NULL;

	if (last != NULL && last->batch.nrows < GH_VECTOR_ROWS)
		return last;
	if (pipeline->nstaged == GH_CPU_STAGED_MAX)
		return NULL;
	if (pipeline->staged[pipeline->nstaged] == NULL)
		pipeline->staged[pipeline->nstaged] = create_staged(pipeline);
	last = pipeline->staged[pipeline->nstaged];
	if (last == NULL)
		return NULL;
	pipeline->nstaged++;
	last->batch.nrows = 0;
	return last;
}

static void
copy_row(const GhPipelinePlan *plan, GhCpuStaged *staged, const GhCpuLevel *from, uint32_t row)
{
	uint32_t	to = staged->batch.nrows++;

	for (uint32_t v = 0; v < staged->batch.nvectors; v++)
	{
		if (!is_needed(plan, v))
			continue;
		staged->batch.vectors[v].low[to] = from->batch.vectors[v].low[row];
		staged->batch.vectors[v].null[to] = from->batch.vectors[v].null[row];
		if (plan->wide[v] != 0)
			staged->batch.vectors[v].high[to] = from->batch.vectors[v].high[row];
	}
}

/* -------------------------------------------------------------------- places */

/* The row of level 0 that a staged one is, or comes from. */
static inline uint32_t
origin_of(const GhCpuPipeline *pipeline, const GhCpuStaged *staged, uint32_t row)
{
	return pipeline->multiplies ? staged->origin[row] : row;
}

/* The row of level 0 has no place in the sink. */
static void
hand_back_for_memory(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint32_t origin)
{
	if (pipeline->back_step[origin] != GH_CPU_NO_STEP)
		return;
	request->no_memory++;
	gh_cpu_hand_back(pipeline, 0, origin, pipeline->plan.options.nsteps);
}

static void
pick_live(const GhVectorBatch *batch, GhCpuPicks *picks)
{
	picks->n = 0;
	for (uint32_t i = 0; i < batch->nrows; i++)
	{
		picks->rows[picks->n] = (uint16_t) i;
		picks->n += batch->state[i] == GH_ROW_LIVE;
	}
}

/* Places in the groups of a set are looked for row by row.  Where there is none because all is to be left, no row goes back. */
static void
find_groups_of(GhCpuPipeline *pipeline, GhPipelineRequest *request, GhCpuStaged *staged, uint32_t set)
{
	uint32_t   *found = staged->found + set * GH_VECTOR_ROWS;

	pipeline->groups.sink = &pipeline->sets[set].sink;
	do
	{
		if (gh_cpu_grouping_find(&pipeline->groups, &staged->batch, found) == 0)
			return;
	}
	while (!pipeline->groups.stopped && gh_cpu_texts_give_back(pipeline));
	pipeline->stopped |= pipeline->groups.stopped;
	if (pipeline->stopped)
		return;
	for (uint32_t i = 0; i < staged->batch.nrows; i++)
		if (staged->batch.state[i] == GH_ROW_LIVE && found[i] == GH_CPU_NO_GROUP_FOUND)
			hand_back_for_memory(pipeline, request, origin_of(pipeline, staged, i));
}

static void
find_groups(GhCpuPipeline *pipeline, GhPipelineRequest *request, GhCpuStaged *staged)
{
	pipeline->groups.may_stop = pipeline->undo.possible;
	for (uint32_t s = 0; s < gh_sink_sets(&pipeline->plan.options.sink.groups) && !pipeline->stopped; s++)
		find_groups_of(pipeline, request, staged, s);
}

/* Of rows of level 0 behind the last one for whose texts there is room, none has a place. */
static void
find_text_places(GhCpuPipeline *pipeline, GhPipelineRequest *request, const GhVectorBatch *batch)
{
	for (uint32_t i = gh_cpu_texts_make_room(pipeline, batch); i < batch->nrows; i++)
		if (batch->state[i] == GH_ROW_LIVE)
			hand_back_for_memory(pipeline, request, i);
}

/* Which of the staged rows go back because what they come from does. */
static void
drop_back(const GhCpuPipeline *pipeline, GhCpuStaged *staged)
{
	for (uint32_t i = 0; i < staged->batch.nrows; i++)
		if (pipeline->back_step[staged->origin[i]] != GH_CPU_NO_STEP)
			staged->batch.state[i] = GH_ROW_DROPPED;
}

/* ------------------------------------------------------------------- adding */

static void
add_to_table(GhCpuPipeline *pipeline, GhPipelineRequest *request, GhCpuStaged *staged)
{
	const GhTableSink *sink = &pipeline->plan.options.sink.table;
	uint64_t	keys[GH_VECTOR_ROWS];
	uint8_t		keyless[GH_VECTOR_ROWS];
	GhCpuPicks	picks = {0};

	for (uint32_t i = 0; i < staged->batch.nrows; i++)
	{
		if (staged->batch.state[i] != GH_ROW_LIVE)
			continue;
		keyless[picks.n] = !gh_cpu_row_key(sink->parts, sink->nparts, &staged->batch, i, &keys[picks.n]);
		if (keyless[picks.n] != 0 && sink->numbered == 0)
		{
			staged->batch.state[i] = GH_ROW_DROPPED;
			continue;
		}
		picks.rows[picks.n++] = (uint16_t) i;
	}
	if (gh_cpu_rows_reserve(pipeline->rows, picks.n, gh_cpu_rows_text_bytes(sink, &staged->batch, &picks)))
	{
		gh_cpu_rows_add(pipeline->rows, sink, &staged->batch, &picks, keys, keyless);
		return;
	}
	for (uint32_t i = 0; i < picks.n; i++)
	{
		staged->batch.state[picks.rows[i]] = GH_ROW_DROPPED;
		hand_back_for_memory(pipeline, request, origin_of(pipeline, staged, picks.rows[i]));
	}
}

static void
add_to_groups(GhCpuPipeline *pipeline, GhCpuStaged *staged)
{
	const GhGroupsSink *sink = &pipeline->plan.options.sink.groups;

	for (uint32_t s = 0; s < gh_sink_sets(sink); s++)
	{
		const GhCpuSet *set = &pipeline->sets[s];
		const uint32_t *found = staged->found + s * GH_VECTOR_ROWS;

		gh_cpu_undo_note(pipeline, &staged->batch, found);
		/* gh_aggregate_fits has been asked, but of floats that are added in order */
		if (set->adds)
			gh_cpu_aggregate(set->counted_as, sink->naggregates, &staged->batch, sink->nkeys > 0 ? found : NULL,
							 pipeline->groups.states, sink->in_order == 0);
		gh_cpu_texts_keep(pipeline, &set->sink, &staged->batch, found);
		gh_cpu_grouping_fill(&pipeline->groups, &staged->batch, found);
	}
}

static void
add_rows(GhCpuPipeline *pipeline, GhPipelineRequest *request, GhCpuStaged *staged)
{
	switch (pipeline->plan.options.sink.kind)
	{
		case GH_SINK_GROUPS:
			add_to_groups(pipeline, staged);
			break;
		case GH_SINK_TABLE:
			add_to_table(pipeline, request, staged);
			break;
		case GH_SINK_ROWS:
			gh_cpu_records_add(pipeline, &staged->batch);
			break;
		default:
			break;
	}
}

/* ------------------------------------------------------------- what calls it */

/* Rows behind one that goes back do so, too. */
static void
keep_order(GhCpuPipeline *pipeline)
{
	const GhVectorBatch *batch = &pipeline->levels[0]->batch;

	if (pipeline->plan.options.sink.kind != GH_SINK_GROUPS || pipeline->plan.options.sink.groups.in_order == 0)
		return;
	if (pipeline->nback == 0 && !pipeline->order_is_broken)
		return;
	for (uint32_t i = 0; i < batch->nrows; i++)
	{
		pipeline->order_is_broken |= pipeline->back_step[i] != GH_CPU_NO_STEP;
		if (pipeline->order_is_broken && batch->state[i] == GH_ROW_LIVE)
			gh_cpu_hand_back(pipeline, 0, i, pipeline->plan.options.nsteps);
	}
}

/* Of rows that do not become several, those of level 0; a batch like any that is staged, but for its origins. */
static uint64_t
sink_level(GhCpuPipeline *pipeline, GhPipelineRequest *request)
{
	GhCpuStaged *staged = pipeline->staged[0];
	GhVectorBatch *batch = &pipeline->levels[0]->batch;
	GhVectorBatch own;
	uint32_t	live;
	uint32_t	back;

	if (pipeline->plan.options.sink.kind == GH_SINK_PLACES)
	{
		gh_batch_count(batch, &live, &back);
		return live;
	}
	own = staged->batch;
	staged->batch = *batch;
	if (pipeline->plan.options.sink.kind == GH_SINK_GROUPS)
	{
		find_groups(pipeline, request, staged);
		if (pipeline->stopped)
		{
			staged->batch = own;
			return 0;
		}
		if (pipeline->plan.keeps_texts)
			find_text_places(pipeline, request, batch);
	}
	else if (pipeline->plan.options.sink.kind == GH_SINK_ROWS &&
			 !gh_cpu_records_reserve(pipeline, gh_cpu_records_bytes(pipeline, batch)))
		for (uint32_t i = 0; i < batch->nrows; i++)
			if (batch->state[i] == GH_ROW_LIVE)
				hand_back_for_memory(pipeline, request, i);
	keep_order(pipeline);
	add_rows(pipeline, request, staged);
	gh_batch_count(batch, &live, &back);
	/* a float that overflows is found there, and so are those behind it in the batch */
	if (back > pipeline->nback)
	{
		gh_cpu_note_back(pipeline, 0, pipeline->plan.options.nsteps);
		pipeline->order_is_broken = true;
	}
	staged->batch = own;
	return live;
}

/* Of all that is staged: groups are found or made; for other sinks the memory that is needed is summed up. */
static void
find_places(GhCpuPipeline *pipeline, GhPipelineRequest *request)
{
	const GhSink *sink = &pipeline->plan.options.sink;

	for (uint32_t b = 0; b < pipeline->nstaged; b++)
	{
		GhVectorBatch *batch = &pipeline->staged[b]->batch;
		GhCpuPicks	picks;

		memset(batch->state, GH_ROW_LIVE, batch->nrows);
		(void) gh_cpu_pad(pipeline, batch);
		drop_back(pipeline, pipeline->staged[b]);
		if (sink->kind == GH_SINK_GROUPS)
			find_groups(pipeline, request, pipeline->staged[b]);
		if (pipeline->stopped)
			return;
		pick_live(batch, &picks);
		pipeline->staged_rows += picks.n;
		if (sink->kind == GH_SINK_GROUPS)
			pipeline->staged_bytes += gh_cpu_texts_bytes(pipeline, batch);
		else if (sink->kind == GH_SINK_TABLE)
			pipeline->staged_bytes += gh_cpu_rows_text_bytes(&sink->table, batch, &picks);
		else if (sink->kind == GH_SINK_ROWS)
			pipeline->staged_bytes += gh_cpu_records_bytes(pipeline, batch);
	}
}

/* Are the rows so far more than an empty sink has memory for, or than sums are sure to bear (gh_aggregate_fits)? */
static bool
are_too_many(const GhCpuPipeline *pipeline, const GhPipelineRequest *request)
{
	uint64_t	limit = pipeline->rows != NULL ? pipeline->rows->memory.limit : pipeline->memory.limit;
	uint64_t	bytes = pipeline->staged_bytes;
	/* a group may be one of all sets */
	uint32_t	nsets = gh_sink_sets(&pipeline->plan.options.sink.groups);

	if (pipeline->rows != NULL)
		bytes += pipeline->staged_rows * pipeline->rows->row_bytes;
	return bytes > (limit == 0 ? STAGED_BYTES_MAX : limit) ||
		pipeline->counted + request->counted + pipeline->staged_rows > GH_PIPELINE_ROWS_MAX / nsets;
}

/* Memory for all rows for which places were found; false: there is none. */
static bool
reserve_places(GhCpuPipeline *pipeline, const GhPipelineRequest *request)
{
	if (are_too_many(pipeline, request))
		return false;
	switch (pipeline->plan.options.sink.kind)
	{
		case GH_SINK_TABLE:
			return gh_cpu_rows_reserve(pipeline->rows, pipeline->staged_rows, pipeline->staged_bytes);
		case GH_SINK_ROWS:
			return gh_cpu_records_reserve(pipeline, pipeline->staged_bytes);
		default:
			return gh_cpu_texts_have_room(pipeline, pipeline->staged_bytes);
	}
}

static void
count_ended(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint64_t n)
{
	request->counted += n;
	pipeline->ended += n;
}

/* There are no places. */
static void
hand_back_staged(GhCpuPipeline *pipeline, GhPipelineRequest *request)
{
	for (uint32_t b = 0; b < pipeline->nstaged; b++)
		for (uint32_t i = 0; i < pipeline->staged[b]->batch.nrows; i++)
			if (pipeline->staged[b]->batch.state[i] == GH_ROW_LIVE)
				hand_back_for_memory(pipeline, request, pipeline->staged[b]->origin[i]);
}

/* All that is staged, but for rows that go back; there are places. */
static void
add_staged(GhCpuPipeline *pipeline, GhPipelineRequest *request)
{
	for (uint32_t b = 0; b < pipeline->nstaged; b++)
	{
		uint32_t	live;
		uint32_t	back;

		drop_back(pipeline, pipeline->staged[b]);
		add_rows(pipeline, request, pipeline->staged[b]);
		gh_batch_count(&pipeline->staged[b]->batch, &live, &back);
		count_ended(pipeline, request, live);
	}
}

static void
sink_staged(GhCpuPipeline *pipeline, GhPipelineRequest *request)
{
	find_places(pipeline, request);
	if (pipeline->stopped)
		return;
	/* of a row that is added in parts it was reserved before the first one */
	if (pipeline->stage != GH_CPU_STAGE_ADDS && !reserve_places(pipeline, request))
		hand_back_staged(pipeline, request);
	if (pipeline->stage != GH_CPU_STAGE_CHECKS)
		add_staged(pipeline, request);
}

void
gh_cpu_sink_rows(GhCpuPipeline *pipeline, GhPipelineRequest *request)
{
	if (pipeline->multiplies)
		sink_staged(pipeline, request);
	else
		count_ended(pipeline, request, sink_level(pipeline, request));
}

/* There is no room aside.  Of one row, what waits is seen to and goes; false: of several, which are too many. */
static bool
make_room_aside(GhCpuPipeline *pipeline)
{
	/* it is the one that is being done */
	GhPipelineRequest *request = pipeline->first;

	if (pipeline->stage == GH_CPU_STAGE_OF_ALL)
	{
		pipeline->stage = GH_CPU_STAGE_IS_FULL;
		return false;
	}
	if (pipeline->stage == GH_CPU_STAGE_OF_ONE)
		pipeline->stage = GH_CPU_STAGE_CHECKS;
	find_places(pipeline, request);
	if (pipeline->stage == GH_CPU_STAGE_ADDS && !pipeline->stopped)
		add_staged(pipeline, request);
	else if (pipeline->stage == GH_CPU_STAGE_CHECKS && !pipeline->stopped && are_too_many(pipeline, request))
		hand_back_staged(pipeline, request);
	pipeline->nstaged = 0;
	return true;
}

void
gh_cpu_stage(GhCpuPipeline *pipeline, uint32_t level)
{
	const GhCpuLevel *from = pipeline->levels[level];

	for (uint32_t i = 0; i < from->batch.nrows; i++)
	{
		GhCpuStaged *staged;

		if (from->batch.state[i] != GH_ROW_LIVE)
			continue;
		staged = room_aside(pipeline);
		if (staged == NULL && !make_room_aside(pipeline))
			return;
		if (staged == NULL)
			staged = room_aside(pipeline);
		staged->origin[staged->batch.nrows] = level == 0 ? (uint16_t) i : from->origin[i];
		copy_row(&pipeline->plan, staged, from, i);
	}
}

/* A look at the stop flag now and then: is this a place to end? */
static bool
results_stop(const GhCpuPipeline *pipeline, uint32_t *looks)
{
	return ++*looks % RECORDS_AT_A_TIME == 0 && gh_cpu_is_stopped(&pipeline->host);
}

/* True: the next record needs more room, *needed bytes, or it is a place to end, and *needed is 0. */
static bool
put_rows(const GhCpuPipeline *pipeline, GhCursor *cursor, size_t capacity, char *buffer, size_t *bytes, size_t *needed)
{
	const GhCpuRecords *records = &pipeline->records;

	for (uint32_t looks = 0; cursor->position < records->used; cursor->position += *needed)
	{
		*needed = 0;
		if (results_stop(pipeline, &looks))
			return true;
		*needed = ((const GhRecordHead *) (records->bytes + cursor->position))->bytes;
		if (*needed > capacity - *bytes)
			return true;
		memcpy(buffer + *bytes, records->bytes + cursor->position, *needed);
		*bytes += *needed;
	}
	return false;
}

/* A group and its keys, as they are in a record. */
typedef struct GroupHead
{
	GhRecordHead head;
	GhRecordValue keys[GH_VALUES_MAX];
} GroupHead;

static void
make_head(const GhCpuGrouping *groups, uint32_t group, GroupHead *made)
{
	const GhCpuGroupKeys *keys = gh_cpu_grouping_at(groups, group);

	made->head = (GhRecordHead) {0, gh_cpu_group_had_row(groups, group), keys->nulls};
	for (uint32_t k = 0; k < groups->sink->nkeys; k++)
	{
		const uint64_t *words = keys->words + groups->key_words[k];

		made->keys[k] = (GhRecordValue) {words[0], gh_class_has_high(groups->sink->keys[k].value_class) ? words[1] : 0};
	}
}

static bool
put_groups(const GhCpuPipeline *pipeline, GhCursor *cursor, size_t capacity, char *buffer, size_t *bytes,
		   size_t *needed)
{
	const GhGroupsSink *sink = &pipeline->plan.options.sink.groups;
	const GhCpuGrouping *groups = &pipeline->groups;
	GroupHead	group;

	for (uint32_t looks = 0; cursor->position < groups->count; cursor->position++)
	{
		*needed = 0;
		if (results_stop(pipeline, &looks))
			return true;
		if (sink->nkeys > 0 && !gh_cpu_group_had_row(groups, (uint32_t) cursor->position))
			continue;
		make_head(groups, (uint32_t) cursor->position, &group);
		if (!gh_record_put(&pipeline->record_plan, &group.head, groups->states + cursor->position * sink->naggregates,
								groups->texts.bytes, capacity, buffer, bytes, needed))
			return true;
	}
	return false;
}

GhStatus
gh_cpu_sink_results(GhCpuPipeline *pipeline, GhCursor *cursor, size_t capacity, void *buffer, size_t *bytes,
					GhError *error)
{
	size_t		needed = 0;
	bool		ended = pipeline->plan.options.sink.kind == GH_SINK_ROWS ?
		put_rows(pipeline, cursor, capacity, buffer, bytes, &needed) :
		put_groups(pipeline, cursor, capacity, buffer, bytes, &needed);

	cursor->finished = !ended;
	if (!ended || *bytes > 0)
		return GH_OK;
	if (needed == 0)
		return gh_error_set(error, GH_STOPPED, "the results of a pipeline were stopped");
	*bytes = needed;
	return gh_error_set(error, GH_TOO_SMALL, "a record needs %zu bytes", needed);
}

/* ---------------------------------------------------------- making and ending */

static void
init_set(GhCpuPipeline *pipeline, uint32_t s)
{
	GhCpuSet   *set = &pipeline->sets[s];
	const GhGroupsSink *all = &pipeline->plan.options.sink.groups;

	set->sink = *all;
	set->sink.keys = all->keys + s * all->nkeys;
	set->sink.aggregates = all->aggregates + s * all->naggregates;
	for (uint32_t a = 0; a < all->naggregates; a++)
	{
		set->counted_as[a] = set->sink.aggregates[a];
		if (gh_is_text_extreme(&set->sink.aggregates[a]))
			set->counted_as[a].kind = GH_AGGREGATE_COUNT;
	}
	set->adds = gh_sink_set_adds(&pipeline->plan.options, s);
}

GhStatus
gh_cpu_sink_init(GhCpuPipeline *pipeline, GhError *error)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	uint32_t	nkeys;

	/* other batches are made when they are needed, and done without where there is no memory */
	if (options->sink.kind != GH_SINK_PLACES)
	{
		pipeline->staged[0] = create_staged(pipeline);
		if (pipeline->staged[0] == NULL)
			return gh_error_set(error, GH_NO_MEMORY, "out of memory for a pipeline's handle");
	}
	pipeline->memory.limit = options->memory_limit;
	pipeline->record_plan.keys = gh_pipeline_keys(options, &nkeys);
	pipeline->record_plan.nkeys = nkeys;
	pipeline->record_plan.group_bytes = pipeline->plan.group_bytes;
	if (options->shared_sink != 0)
		return options->sink.kind != GH_SINK_TABLE ?
			gh_error_set(error, GH_UNSUPPORTED, "processes do not share a sink of kind %u", options->sink.kind) :
			gh_cpu_shared_join(&pipeline->host, options->shared_sink, &options->sink.table, &pipeline->rows, error);
	if (options->sink.kind == GH_SINK_GROUPS)
	{
		pipeline->record_plan.naggregates = options->sink.groups.naggregates;
		for (uint32_t s = 0; s < gh_sink_sets(&options->sink.groups); s++)
			init_set(pipeline, s);
		gh_cpu_texts_init(pipeline);
		return gh_cpu_grouping_init(&pipeline->groups, &pipeline->memory, &pipeline->sets[0].sink, error);
	}
	if (options->sink.kind == GH_SINK_TABLE)
	{
		pipeline->rows = gh_cpu_rows_create(&pipeline->host, &options->sink.table, options->memory_limit, error);
		return pipeline->rows == NULL ? GH_NO_MEMORY : GH_OK;
	}
	return GH_OK;
}

void
gh_cpu_sink_drop(GhCpuPipeline *pipeline)
{
	for (uint32_t b = 0; b < GH_CPU_STAGED_MAX; b++)
		drop_staged(pipeline->staged[b]);
	if (pipeline->groups.room > 0)
		gh_cpu_grouping_drop(&pipeline->groups);
	gh_cpu_block_give(&pipeline->memory, pipeline->records.block);
	if (pipeline->rows != NULL && pipeline->rows->shared != NULL)
		gh_cpu_shared_leave(pipeline->rows, pipeline->intake.submitted > 0);
	gh_cpu_rows_drop(pipeline->rows);
}
