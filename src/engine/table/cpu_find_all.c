/*
 * cpu_find_all.c
 *		Every value of every key of a batch, in two passes: the first counts and
 *		writes the offsets, the second copies.
 *
 * The passes must see the same table.  Between slices the lock is open, so the
 * request remembers the table's version; where another process has written, it
 * starts anew and keeps the lock to the end this time, looking at the stop flag
 * only.
 */
#include "engine/table/cpu_words.h"

#include <inttypes.h>

typedef enum Phase
{
	PHASE_BEGIN,
	PHASE_COUNT,
	PHASE_COPY
} Phase;

static void
load_words(const GhCpuTable *table, const GhRequest *request, uint64_t i, GhCpuWords *words)
{
	GhCpuShape	shape = table->view.shape;
	uint64_t	count = request->count;

	/* the slots of a multi table hold value words */
	if (shape == GH_CPU_K8V8)
		gh_cpu_load_words(GH_CPU_K8V8, table, request, i, count, words);
	else
		gh_cpu_load_words(GH_CPU_K4, table, request, i, count, words);
}

static GhStatus
count_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t   *position = &request->engine_state[GH_CPU_STATE_POSITION];
	uint64_t	end = *position + GH_CPU_SLICE_KEYS;
	GhCpuWords	words;
	uint32_t	g;

	if (end > request->count)
		end = request->count;
	for (; *position < end; *position += words.count)
	{
		load_words(table, request, *position, &words);
		gh_cpu_count_bucket_reads(table, words.buckets);
		for (g = 0; g < words.count; g++)
		{
			uint64_t	i = *position + g;

			if (words.found[g])
				request->outcome.values_count += gh_cpu_value_count(table, words.word[g]);
			request->outcome.matched += words.found[g];
			request->offsets_out[i + 1] = request->outcome.values_count;
			if (request->flags_out != NULL)
				request->flags_out[i] = words.found[g];
		}
	}
	if (*position < request->count)
		return GH_BUSY;
	if (request->outcome.values_count > request->values_capacity)
		return gh_error_set(&request->error, GH_TOO_SMALL,
							"the keys have %" PRIu64 " values and there is room for %" PRIu64,
							request->outcome.values_count, request->values_capacity);
	request->engine_state[GH_CPU_STATE_PHASE] = PHASE_COPY;
	*position = 0;
	return GH_BUSY;
}

/* Copies the values of a list from those named in the state on; true: to its end. */
static bool
copy_list(const GhCpuTable *table, GhRequest *request, int64_t *budget)
{
	uint64_t   *state = request->engine_state;
	uint32_t	size = table->view.value_size;

	while (state[GH_CPU_STATE_NODE] != 0 && *budget > 0)
	{
		uint64_t   *node = gh_cpu_node(table, state[GH_CPU_STATE_NODE]);
		uint64_t	left = gh_cpu_node_used(node) - state[GH_CPU_STATE_INDEX];
		uint64_t	now = left < (uint64_t) *budget ? left : (uint64_t) *budget;

		memcpy((char *) request->values_out + state[GH_CPU_STATE_OUT] * size,
			   gh_cpu_node_values(node) + state[GH_CPU_STATE_INDEX] * size, now * size);
		state[GH_CPU_STATE_OUT] += now;
		state[GH_CPU_STATE_INDEX] += now;
		/* a node costs more than its values */
		*budget -= (int64_t) now + 1;
		if (now == left)
		{
			state[GH_CPU_STATE_NODE] = gh_cpu_node_next(node);
			state[GH_CPU_STATE_INDEX] = 0;
		}
	}
	return state[GH_CPU_STATE_NODE] == 0;
}

static GhStatus
copy_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t   *state = request->engine_state;
	uint64_t   *position = &state[GH_CPU_STATE_POSITION];
	uint32_t	size = table->view.value_size;
	int64_t		budget = (int64_t) gh_cpu_slice(GH_CPU_SLICE_VALUES, size, 256);
	GhCpuWords	words;
	uint32_t	g;

	/* a list that the last slice left in the middle */
	if (state[GH_CPU_STATE_NODE] != 0)
	{
		if (!copy_list(table, request, &budget))
			return GH_BUSY;
		(*position)++;
	}
	while (*position < request->count && budget > 0)
	{
		load_words(table, request, *position, &words);
		for (g = 0; g < words.count; g++)
		{
			if (!words.found[g])
				continue;
			if (!gh_cpu_is_list(words.word[g]))
			{
				gh_cpu_copy((char *) request->values_out + state[GH_CPU_STATE_OUT]++ * size,
							&words.word[g], size);
				continue;
			}
			state[GH_CPU_STATE_NODE] = gh_cpu_list_head(words.word[g]);
			state[GH_CPU_STATE_INDEX] = 0;
			if (!copy_list(table, request, &budget))
			{
				*position += g;
				return GH_BUSY;
			}
		}
		*position += words.count;
		budget -= GH_CPU_SLICE_VALUES / GH_CPU_SLICE_KEYS * words.count;
	}
	if (*position < request->count)
		return GH_BUSY;
	request->outcome.done = request->count;
	return GH_OK;
}

static void
begin(GhRequest *request, uint64_t version)
{
	request->outcome.matched = request->outcome.values_count = 0;
	request->offsets_out[0] = 0;
	request->engine_state[GH_CPU_STATE_PHASE] = PHASE_COUNT;
	request->engine_state[GH_CPU_STATE_POSITION] = 0;
	request->engine_state[GH_CPU_STATE_NODE] = 0;
	request->engine_state[GH_CPU_STATE_INDEX] = 0;
	request->engine_state[GH_CPU_STATE_OUT] = 0;
	request->engine_state[GH_CPU_STATE_VERSION] = version;
}

GhStatus
gh_cpu_find_all_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t   *state = request->engine_state;
	uint64_t	version = table->view.root->version;
	GhStatus	status;

	if (state[GH_CPU_STATE_PHASE] == PHASE_BEGIN)
		begin(request, version);
	else if (state[GH_CPU_STATE_VERSION] != version)
	{
		begin(request, version);
		state[GH_CPU_STATE_WHOLE] = true;
	}
	do
	{
		status = state[GH_CPU_STATE_PHASE] == PHASE_COUNT ?
			count_slice(table, request) : copy_slice(table, request);
	} while (status == GH_BUSY && state[GH_CPU_STATE_WHOLE] && !gh_cpu_stopped(table));
	return status;
}
