/*
 * cpu_mixed.c
 *		A batch whose positions each have an operation of their own: they are done one
 *		after the other, with their buckets fetched ahead.
 *
 * All operations are looked at before the first is done, so that one that is
 * not allowed leaves nothing half done.
 */
#include "engine/table/cpu_internal.h"

#include <inttypes.h>

typedef enum Phase
{
	PHASE_BEGIN,
	PHASE_CHECK,
	PHASE_DO
} Phase;

static bool
op_is_allowed(uint8_t op)
{
	return op == GH_INSERT || op == GH_UPSERT || op == GH_FIND || op == GH_DELETE;
}

static GhStatus
check_slice(GhRequest *request)
{
	uint64_t   *position = &request->engine_state[GH_CPU_STATE_POSITION];
	uint64_t	end = *position + GH_CPU_SLICE_VALUES;

	if (end > request->count)
		end = request->count;
	for (; *position < end; (*position)++)
	{
		if (!op_is_allowed(request->ops[*position]))
			return gh_error_set(&request->error, GH_INVALID,
								"operation %d at position %" PRIu64
								" is not one of a mixed request",
								(int) request->ops[*position], *position);
	}
	if (end == request->count)
		request->engine_state[GH_CPU_STATE_PHASE] = PHASE_DO;
	return GH_BUSY;
}

/* What a find says; other positions' values are absent. */
static bool
do_find(const GhCpuTable *table, GhRequest *request, uint64_t i, uint64_t key,
		const GhCpuPlace *place)
{
	uint32_t	bytes = table->view.stride;
	const char *value = gh_cpu_find_key(table, key, place);

	if (request->values_out != NULL && value != NULL)
		gh_cpu_copy((char *) request->values_out + i * bytes, value, bytes);
	request->outcome.matched += value != NULL;
	return value != NULL;
}

static GhCpuOutcome
do_position(GhCpuTable *table, GhRequest *request, uint64_t i, const GhCpuPlace *place)
{
	const GhCpuView *view = &table->view;
	GhOp		op = (GhOp) request->ops[i];
	uint64_t	key = gh_cpu_key(view->shape, request->keys, i);
	GhCpuOutcome outcome = GH_CPU_WROTE_OLD;
	bool		flag;

	if (request->values_out != NULL)
		gh_cpu_put_absent((char *) request->values_out + i * view->stride, request->absent,
						  view->stride);
	if (op == GH_FIND)
		flag = do_find(table, request, i, key, place);
	else if (op == GH_DELETE)
	{
		flag = gh_cpu_delete_key(table, key, place);
		request->outcome.removed += flag;
		request->outcome.values_count += flag;
	}
	else
	{
		outcome = gh_cpu_write_one(table, request, i, place, op);
		flag = outcome == GH_CPU_WROTE_NEW;
		request->outcome.inserted += flag;
		request->outcome.replaced += outcome == GH_CPU_WROTE_OVER;
	}
	if (request->flags_out != NULL)
		request->flags_out[i] = flag;
	return outcome;
}

static GhStatus
do_positions(GhCpuTable *table, GhRequest *request)
{
	const GhCpuView *view = &table->view;
	uint64_t	end = gh_cpu_slice_end(view, request->outcome.done, request->count);
	uint64_t	begin = request->outcome.done;
	uint64_t	i;
	GhCpuAhead	ahead;

	for (i = begin; i < end; i += GH_CPU_GROUP)
	{
		uint32_t	group = gh_cpu_group(i, end);
		GhCpuPlace *place = gh_cpu_places(view->shape, view, request->keys, begin, i, end, &ahead);
		uint32_t	g;

		for (g = 0; g < group; g++)
		{
			GhCpuOutcome outcome = do_position(table, request, i + g, &place[g]);

			if (outcome > GH_CPU_WROTE_NEW)
				return gh_cpu_write_grow(table, request, i + g,
										 outcome == GH_CPU_WROTE_CROWDED);
			request->outcome.done++;
		}
	}
	if (gh_cpu_downsize_begin(table))
		return GH_BUSY;
	return end < request->count ? GH_BUSY : GH_OK;
}

GhStatus
gh_cpu_mixed_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t   *state = request->engine_state;

	if (state[GH_CPU_STATE_PHASE] == PHASE_BEGIN)
	{
		state[GH_CPU_STATE_PHASE] = PHASE_CHECK;
		state[GH_CPU_STATE_POSITION] = request->outcome.done;
	}
	if (state[GH_CPU_STATE_PHASE] == PHASE_CHECK)
		return check_slice(request);
	return do_positions(table, request);
}
