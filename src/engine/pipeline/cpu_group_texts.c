/*
 * cpu_group_texts.c
 *		The least and the greatest of texts, in groups on the CPU.
 *
 * To the states that keep one, all else that is added to groups only counts values (GhCpuSet.counted_as).  Which text
 * stays is found here, behind that: the caller compares them (GhGroupsSink.order), each row's with what its group has.
 *
 * A state's `low` is where its text begins among the groups' texts, and 1; 0 before the first one.  A text that stays is
 * appended, and the one before it is left there: so groups can be had as they were (cpu_pipeline_undo.c).  What was left is
 * taken away before a request, when it is half of all texts, and when there is no memory for more.
 */
#include "engine/pipeline/cpu_pipeline.h"

/* So many bytes that were left are not worth their being looked for; nor is a smaller part, where there is no memory. */
#define LEFT_MIN (UINT64_C(64) * 1024)
#define LEFT_PART 8

void
gh_cpu_texts_init(GhCpuPipeline *pipeline)
{
	if (pipeline->plan.keeps_texts)
		pipeline->record_plan.texts = pipeline->plan.options.sink.groups.aggregates;
}

/* Bytes of the texts that a row may leave with its group. */
static uint64_t
bytes_of_row(const GhGroupsSink *sink, const GhVectorBatch *batch, uint32_t row)
{
	uint64_t	bytes = 0;

	for (uint32_t a = 0; a < sink->naggregates; a++)
		if (gh_is_text_extreme(&sink->aggregates[a]) && gh_aggregate_takes(&sink->aggregates[a], batch->vectors, row))
			bytes += batch->vectors[sink->aggregates[a].argument].high[row];
	return bytes;
}

uint64_t
gh_cpu_texts_bytes(const GhCpuPipeline *pipeline, const GhVectorBatch *batch)
{
	uint64_t	bytes = 0;

	for (uint32_t i = 0; pipeline->plan.keeps_texts && i < batch->nrows; i++)
		for (uint32_t s = 0; batch->state[i] == GH_ROW_LIVE && s < gh_sink_sets(&pipeline->plan.options.sink.groups); s++)
			bytes += bytes_of_row(&pipeline->sets[s].sink, batch, i);
	return bytes;
}

bool
gh_cpu_texts_have_room(GhCpuPipeline *pipeline, uint64_t bytes)
{
	GhCpuTexts *texts = &pipeline->groups.texts;

	return gh_cpu_texts_reserve(&pipeline->memory, texts, bytes) ||
		(gh_cpu_texts_give_back(pipeline) && gh_cpu_texts_reserve(&pipeline->memory, texts, bytes));
}

uint32_t
gh_cpu_texts_make_room(GhCpuPipeline *pipeline, const GhVectorBatch *batch)
{
	uint32_t	nrows = batch->nrows;

	while (nrows > 0)
	{
		GhVectorBatch first = *batch;

		first.nrows = nrows;
		if (gh_cpu_texts_have_room(pipeline, gh_cpu_texts_bytes(pipeline, &first)))
			break;
		nrows /= 2;
	}
	return nrows;
}

/* Does a text stay in the place of the one that a group has? */
static bool
stays(const GhCpuPipeline *pipeline, uint32_t a, const GhAggregateState *state, const char *text, uint64_t bytes)
{
	const GhGroupsSink *sink = &pipeline->plan.options.sink.groups;
	const char *held;
	int			order;

	if (state->low == 0)
		return true;
	/* without any text but empty ones, there is no memory for them */
	held = state->high > 0 ? pipeline->groups.texts.bytes + state->low - 1 : "";
	if (bytes == state->high && (bytes == 0 || memcmp(text, held, bytes) == 0))
		return false;
	order = sink->order.compare(sink->order.arg, a, text, bytes, held, state->high);
	return sink->aggregates[a].kind == GH_AGGREGATE_MIN ? order < 0 : order > 0;
}

static void
keep_column(GhCpuPipeline *pipeline, const GhGroupsSink *sink, uint32_t a, const GhVectorBatch *batch,
			const uint32_t *found)
{
	const GhAggregate *aggregate = &sink->aggregates[a];
	const GhVector *argument = &batch->vectors[aggregate->argument];

	for (uint32_t i = 0; i < batch->nrows; i++)
	{
		const char *text = (const char *) (uintptr_t) argument->low[i];
		GhAggregateState *state;

		if (batch->state[i] != GH_ROW_LIVE || !gh_aggregate_takes(aggregate, batch->vectors, i))
			continue;
		state = pipeline->groups.states + (size_t) (sink->nkeys > 0 ? found[i] : 0) * sink->naggregates + a;
		if (!stays(pipeline, a, state, text, argument->high[i]))
			continue;
		pipeline->groups.texts_left += state->low != 0 ? state->high : 0;
		state->low = gh_cpu_texts_add(&pipeline->groups.texts, argument->low[i], argument->high[i]) + 1;
		state->high = argument->high[i];
	}
}

void
gh_cpu_texts_keep(GhCpuPipeline *pipeline, const GhGroupsSink *sink, const GhVectorBatch *batch,
				  const uint32_t *found)
{
	for (uint32_t a = 0; pipeline->plan.keeps_texts && a < sink->naggregates; a++)
		if (gh_is_text_extreme(&sink->aggregates[a]))
			keep_column(pipeline, sink, a, batch, found);
}

/* Moves a text that begins at `at` and is still a group's; where it begins then. */
static uint64_t
move_text(const GhCpuTexts *from, GhCpuTexts *to, uint64_t at, uint64_t bytes)
{
	return gh_cpu_texts_add(to, (uint64_t) (uintptr_t) (from->bytes + at), bytes);
}

/* All that a group has of texts. */
static void
move_texts(GhCpuGrouping *groups, uint32_t group, GhCpuTexts *to)
{
	const GhGroupsSink *sink = groups->sink;
	GhCpuGroupKeys *keys = gh_cpu_grouping_at(groups, group);
	GhAggregateState *states = groups->states + (size_t) group * sink->naggregates;

	for (uint32_t k = 0; k < sink->nkeys; k++)
	{
		uint64_t   *words = keys->words + groups->key_words[k];

		if (sink->keys[k].value_class == GH_CLASS_TEXT && (keys->nulls >> k & 1) == 0)
			words[0] = move_text(&groups->texts, to, words[0], words[1]);
	}
	for (uint32_t a = 0; a < sink->naggregates; a++)
		if (gh_is_text_extreme(&sink->aggregates[a]) && states[a].low != 0)
			states[a].low = move_text(&groups->texts, to, states[a].low - 1, states[a].high) + 1;
}

/*
 * Takes away what was left; without memory meanwhile, all stays.  Groups of before the request under way come first, and so
 * do their texts.
 */
static bool
take_away_left(GhCpuPipeline *pipeline)
{
	GhCpuGrouping *groups = &pipeline->groups;
	GhCpuSinkMemory *memory = &pipeline->memory;
	GhCpuTexts	tidy = {.room = groups->texts.room};

	while (tidy.room / 4 > groups->texts.used - groups->texts_left)
		tidy.room /= 2;
	tidy.block = gh_cpu_block_take_instead(memory, groups->texts.block, tidy.room);
	if (tidy.block.ref == 0)
		return false;
	tidy.bytes = gh_cpu_block_address(memory, tidy.block);
	for (uint32_t group = 0; group < groups->count; group++)
	{
		if (group == pipeline->undo.groups)
			pipeline->undo.texts_used = tidy.used;
		move_texts(groups, group, &tidy);
	}
	if (groups->count == pipeline->undo.groups)
		pipeline->undo.texts_used = tidy.used;
	gh_cpu_block_give(memory, groups->texts.block);
	groups->texts = tidy;
	groups->texts_left = pipeline->undo.texts_left = 0;
	return true;
}

void
gh_cpu_texts_tidy(GhCpuPipeline *pipeline)
{
	const GhCpuGrouping *groups = &pipeline->groups;

	if (groups->texts_left >= LEFT_MIN && groups->texts_left >= groups->texts.used / 2)
		(void) take_away_left(pipeline);
}

bool
gh_cpu_texts_give_back(GhCpuPipeline *pipeline)
{
	const GhCpuGrouping *groups = &pipeline->groups;

	/* the states that were saved have texts of their own */
	return pipeline->undo.nsaved == 0 && groups->texts_left >= LEFT_MIN &&
		groups->texts_left >= groups->texts.used / LEFT_PART && take_away_left(pipeline);
}
