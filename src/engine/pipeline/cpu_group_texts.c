/*
 * cpu_group_texts.c
 *		The least and the greatest of texts, in groups on the CPU.
 *
 * To the states that keep one, all else that is added to groups only counts values (GhCpuSet.counted_as).  Which text
 * stays is found here, behind that: the caller compares them (GhGroupsSink.order), each row's with what its group has.
 *
 * A state's `low` is where its text begins among the groups' texts, and 1; 0 before the first one.  A text that stays is
 * appended, and the one before it is left there: so groups can be had as they were (cpu_pipeline_undo.c).  What was left is
 * taken away before a request, when texts have become twice as many bytes as the last time.
 */
#include "engine/pipeline/cpu_pipeline.h"

/* Where texts have as many bytes, what was left among them is not looked for. */
#define LEFT_MIN (UINT64_C(64) * 1024)

void
gh_cpu_texts_init(GhCpuPipeline *pipeline)
{
	pipeline->texts_before = LEFT_MIN;
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

uint32_t
gh_cpu_texts_make_room(GhCpuPipeline *pipeline, const GhVectorBatch *batch)
{
	uint32_t	nrows = batch->nrows;

	while (nrows > 0)
	{
		GhVectorBatch first = *batch;

		first.nrows = nrows;
		if (gh_cpu_texts_reserve(&pipeline->memory, &pipeline->groups.texts, gh_cpu_texts_bytes(pipeline, &first)))
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
	uint64_t	shorter = bytes < state->high ? bytes : state->high;
	int			order;

	if (state->low == 0)
		return true;
	/* without any text but empty ones, there is no memory for them */
	held = state->high > 0 ? pipeline->groups.texts.bytes + state->low - 1 : "";
	order = shorter > 0 ? memcmp(text, held, shorter) : 0;
	if (order == 0 && bytes == state->high)
		return false;
	if (sink->order.compare != NULL)
		order = sink->order.compare(sink->order.arg, a, text, bytes, held, state->high);
	else if (order == 0)
		order = bytes < state->high ? -1 : 1;
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

void
gh_cpu_texts_tidy(GhCpuPipeline *pipeline)
{
	GhCpuGrouping *groups = &pipeline->groups;
	GhCpuTexts	tidy = {0};

	if (!pipeline->plan.keeps_texts || groups->texts.used < 2 * pipeline->texts_before)
		return;
	/* without memory for the others, what was left stays */
	if (gh_cpu_texts_reserve(&pipeline->memory, &tidy, groups->texts.used))
	{
		for (uint32_t group = 0; group < groups->count; group++)
			move_texts(groups, group, &tidy);
		gh_cpu_block_give(&pipeline->memory, groups->texts.block);
		groups->texts = tidy;
	}
	pipeline->texts_before = groups->texts.used > LEFT_MIN ? groups->texts.used : LEFT_MIN;
}
