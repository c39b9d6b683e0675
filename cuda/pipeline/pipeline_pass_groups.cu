/*
 * pipeline_pass_groups.cu
 *		The groups of a batch that is done in one pass, as the host has them: memory, and their way into the pipeline's.
 *
 * pass_groups.cuh says how the batch's rows are added to them.  When the batch is the oldest, and the
 * pipeline has room for as many groups more (pass_can_be_taken), a thread takes one of them to that of the
 * pipeline.  So what is in the sink is never changed by a batch that may have to be done once more.
 */
#include <algorithm>

#include "cuda/pipeline/pass_groups.cuh"
#include "cuda/pipeline/pipeline.cuh"

/* Groups that a batch has room for, where nobody knows how many there will be, and bytes of their texts. */
#define PASS_ROOM_MIN ((uint32_t) 64)
#define PASS_ROOM_UNKNOWN ((uint32_t) 4096)
#define PASS_TEXT_BYTES ((uint64_t) 64)

static bool
is_countable(const GhAggregate *aggregate)
{
	return aggregate->kind <= GH_AGGREGATE_SUM;
}

/*
 * Counts and sums, of few groups, behind few joins: TPC-H's q5 and q9, with five, are faster with lists,
 * which make full warps, q5 seven times (BENCHMARKS.md).
 */
bool
pass_groups_suit(const cuda_pipeline *pipeline)
{
	const GhGroupsSink *sink = &pipeline->plan.options.sink.groups;

	return pipeline->plan.options.nprobes <= GH_FEW_PROBES && sink->expected <= GH_FEW_GROUPS &&
		sink->nkeys <= PASS_KEYS_MAX &&
		std::all_of(sink->aggregates, sink->aggregates + sink->naggregates,
					[](const GhAggregate &aggregate) { return is_countable(&aggregate); });
}

static uint32_t
count_sums(const GhGroupsSink *sink)
{
	return (uint32_t) std::count_if(sink->aggregates, sink->aggregates + sink->naggregates,
									[](const GhAggregate &aggregate) { return aggregate.kind == GH_AGGREGATE_SUM; });
}

/* A power of two for so many, with some to spare. */
static uint32_t
room_for(uint64_t groups, uint32_t least, uint32_t most)
{
	uint32_t	room = least;

	while (room < most && room < groups + groups / 4)
		room *= 2;
	return room;
}

uint32_t
pass_groups_entries(const cuda_pipeline *pipeline)
{
	uint64_t	expected = pipeline->plan.options.sink.groups.expected;

	return expected == 0 ? PASS_ENTRIES_UNKNOWN :
		room_for(std::min(expected, (uint64_t) PASS_ENTRIES_MAX * 3 / 4), PASS_ENTRIES_MIN, PASS_ENTRIES_MAX);
}

size_t
pass_groups_shared(const cuda_pipeline *pipeline, uint32_t entries)
{
	const GhGroupsSink *sink = &pipeline->plan.options.sink.groups;

	return pass_table_bytes(entries, sink->nkeys, sink->naggregates, count_sums(sink));
}

/* -------------------------------------------------------------------- memory */

static void
carve(const cuda_pipeline *pipeline, pass_groups *batch, carver *carver)
{
	const GhGroupsSink *sink = &pipeline->plan.options.sink.groups;
	uint32_t	room = sink->expected == 0 ? PASS_ROOM_UNKNOWN :
		2 * room_for(sink->expected, PASS_ROOM_MIN, PASS_ROOM_UNKNOWN);
	groups_view *groups = &batch->groups;

	*batch = {};
	groups->room = room;
	groups->mask = 2 * (uint64_t) room - 1;
	groups->record_bytes = pipeline->plan.group_bytes;
	groups->text_room = pipeline->view.has_texts != 0 ? room * PASS_TEXT_BYTES : 0;
	groups->used = carver->array<groups_used>(1);
	groups->slots = carver->array<uint64_t>(2 * (uint64_t) room);
	groups->records = carver->array<char>((uint64_t) room * groups->record_bytes);
	groups->texts = carver->array<char>(groups->text_room);
	batch->rows = carver->array<uint64_t>(room);
	batch->sums = carver->array<pass_sum>((uint64_t) room * sink->naggregates);
	batch->nsums = count_sums(sink);
}

GhStatus
pass_groups_reserve(cuda_pipeline *pipeline, GhError *error)
{
	pass_groups batch;
	carver		sizes = {};

	if (pipeline->lane->groups_block.memory != nullptr)
		return GH_OK;
	carve(pipeline, &batch, &sizes);
	return pipe_alloc_small(&pipeline->memory, sizes.used, false, &pipeline->lane->groups_block, error);
}

pass_groups
pass_groups_of(const cuda_pipeline *pipeline, uint32_t entries)
{
	pass_groups batch;
	carver		arrays = {};

	arrays.base = pipeline->lane->groups_block.memory;
	carve(pipeline, &batch, &arrays);
	batch.entries = entries;
	return batch;
}

GhStatus
pass_groups_begin(cuda_pipeline *pipeline, GhError *error)
{
	const pipe_block *block = &pipeline->lane->groups_block;

	return pipe_zero(&pipeline->memory, block->memory, block->bytes, error);
}

GhStatus
pass_groups_tell(cuda_pipeline *pipeline, const pass_groups *batch, GhError *error)
{
	return pipe_copy(&pipeline->memory, &pipeline->lane->batch.counters->used, batch->groups.used, sizeof(groups_used),
					 error);
}

/* -------------------------------------------------------------- into the sink */

/* A thread a group of the batch. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
take_kernel(const plan_view plan, const groups_view groups, const pass_groups batch, pipe_counters *counters)
{
	uint64_t	from = ELEMENT;
	uint32_t	group;

	if (from == 0)
		counters->counted += counters->lines;
	if (from >= batch.groups.used->groups)
		return;
	group_row	row = {plan, group_at(batch.groups, (uint32_t) from), batch.groups.texts};
	group = group_find(plan, groups, row, &counters->groups);
	if (group == GROUP_NONE)
	{
		/* it cannot be: there is room */
		counters->groups.unfit = 1;
		return;
	}
	group_at(groups, group)->rows += batch.rows[from];
	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		GhAggregate aggregate = plan.aggregates[a];
		GhAggregateState state = state_of_sum(aggregate, batch.sums[from * plan.naggregates + a], batch.rows[from]);

		if (!gh_aggregate_merge(&aggregate, &groups.states[(uint64_t) group * plan.naggregates + a], &state))
			counters->groups.unfit = 1;
	}
}

GhStatus
pass_groups_take(cuda_pipeline *pipeline, GhError *error)
{
	const pipe_lane *lane = pipeline->lane;

	take_kernel<<<blocks_for(lane->host_counters->used.groups), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view.plan, pipeline->groups, pass_groups_of(pipeline, 0), lane->batch.counters);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return groups_send_counters(pipeline, error);
}
