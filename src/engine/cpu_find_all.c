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
#include "cpu_internal.h"

#include <inttypes.h>

typedef enum Phase
{
	PHASE_BEGIN,
	PHASE_COUNT,
	PHASE_COPY
} Phase;

/* What a group of keys has in its slots. */
typedef struct Group
{
	uint32_t	count;
	bool		found[GH_CPU_GROUP];
	uint64_t	word[GH_CPU_GROUP];
} Group;

/* Looks up the keys from position i on, and fetches ahead the lists found. */
static void
load_group(const GhCpuTable *table, const GhRequest *request, uint64_t i, Group *group)
{
	const GhCpuView *view = &table->view;
	uint64_t	left = request->count - i;
	GhCpuPlace	place[GH_CPU_GROUP];
	uint32_t	g;

	group->count = left < GH_CPU_GROUP ? (uint32_t) left : GH_CPU_GROUP;
	for (g = 0; g < group->count; g++)
	{
		gh_cpu_locate(view, request->keys[i + g], &place[g]);
		__builtin_prefetch(place[g].bucket[0]);
		__builtin_prefetch(place[g].bucket[1]);
	}
	for (g = 0; g < group->count; g++)
	{
		uint64_t	key = request->keys[i + g];
		const uint64_t *slot;
		int			which;

		if (gh_unlikely(key == GH_CPU_EMPTY))
		{
			group->found[g] = view->root->has_empty_key;
			group->word[g] = view->root->empty_key_value;
		}
		else
		{
			slot = gh_cpu_lookup(&place[g], key, GH_CPU_MAP_SLOTS, &which);
			group->found[g] = slot != NULL;
			group->word[g] = slot != NULL ? slot[GH_CPU_MAP_SLOTS] : 0;
		}
		if (group->found[g] && gh_cpu_is_list(group->word[g]))
			__builtin_prefetch(gh_cpu_node(table, gh_cpu_list_head(group->word[g])));
	}
}

static GhStatus
count_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t   *position = &request->engine_state[GH_CPU_STATE_POSITION];
	uint64_t	end = *position + GH_CPU_SLICE_KEYS;
	Group		group;
	uint32_t	g;

	if (end > request->count)
		end = request->count;
	for (; *position < end; *position += group.count)
	{
		load_group(table, request, *position, &group);
		for (g = 0; g < group.count; g++)
		{
			uint64_t	i = *position + g;

			if (group.found[g])
				request->values_count += gh_cpu_value_count(table, group.word[g]);
			request->matched += group.found[g];
			request->offsets_out[i + 1] = request->values_count;
			if (request->flags_out != NULL)
				request->flags_out[i] = group.found[g];
		}
	}
	if (*position < request->count)
		return GH_BUSY;
	if (request->values_count > request->values_capacity)
		return gh_error_set(&request->error, GH_TOO_SMALL,
							"the keys have %" PRIu64 " values and there is room for %" PRIu64,
							request->values_count, request->values_capacity);
	request->engine_state[GH_CPU_STATE_PHASE] = PHASE_COPY;
	*position = 0;
	return GH_BUSY;
}

/* Copies nodes from the one named in the state on; true: to the end of the list. */
static bool
copy_list(const GhCpuTable *table, GhRequest *request, int64_t *budget)
{
	uint64_t   *name = &request->engine_state[GH_CPU_STATE_NODE];
	uint64_t   *out = &request->engine_state[GH_CPU_STATE_OUT];

	while (*name != 0 && *budget > 0)
	{
		const uint64_t *node = gh_cpu_node(table, *name);
		uint32_t	used = gh_cpu_node_used(node);
		uint32_t	v;

		for (v = 0; v < used; v++)
			request->values_out[*out + v] = node[GH_CPU_NODE_HEADER + v];
		*out += used;
		*budget -= used;
		*name = gh_cpu_node_next(node);
	}
	return *name == 0;
}

static GhStatus
copy_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t   *position = &request->engine_state[GH_CPU_STATE_POSITION];
	uint64_t   *out = &request->engine_state[GH_CPU_STATE_OUT];
	int64_t		budget = GH_CPU_SLICE_VALUES;
	Group		group;
	uint32_t	g;

	/* a list that the last slice left in the middle */
	if (request->engine_state[GH_CPU_STATE_NODE] != 0)
	{
		if (!copy_list(table, request, &budget))
			return GH_BUSY;
		(*position)++;
	}
	while (*position < request->count && budget > 0)
	{
		load_group(table, request, *position, &group);
		for (g = 0; g < group.count; g++)
		{
			if (!group.found[g])
				continue;
			if (!gh_cpu_is_list(group.word[g]))
			{
				request->values_out[(*out)++] = group.word[g];
				continue;
			}
			request->engine_state[GH_CPU_STATE_NODE] = gh_cpu_list_head(group.word[g]);
			if (!copy_list(table, request, &budget))
			{
				*position += g;
				return GH_BUSY;
			}
		}
		*position += group.count;
		budget -= GH_CPU_SLICE_VALUES / GH_CPU_SLICE_KEYS * group.count;
	}
	if (*position < request->count)
		return GH_BUSY;
	request->done = request->count;
	return GH_OK;
}

static void
begin(GhRequest *request, uint64_t version)
{
	request->matched = request->values_count = 0;
	request->offsets_out[0] = 0;
	request->engine_state[GH_CPU_STATE_PHASE] = PHASE_COUNT;
	request->engine_state[GH_CPU_STATE_POSITION] = 0;
	request->engine_state[GH_CPU_STATE_NODE] = 0;
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
