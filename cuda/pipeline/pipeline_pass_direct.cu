/*
 * pipeline_pass_direct.cu
 *		Which pipelines the kernel of pass_direct.cuh is for, and its launch.
 */
#include <algorithm>

#include "cuda/pipeline/pass_direct.cuh"
#include "cuda/pipeline/pipeline_pass.cuh"

/* The column that fills a vector, of those of a fixed place; NULL: none does. */
static const GhPageColumn *
column_of(const cuda_pipeline *pipeline, uint32_t vector)
{
	const GhPageShape *shape = &pipeline->plan.shape;

	for (uint32_t c = 0; c < shape->ncolumns; c++)
		if (shape->columns[c].vector == vector)
			return &shape->columns[c];
	return nullptr;
}

static bool
is_joined(const cuda_pipeline *pipeline, uint32_t vector)
{
	const GhPipelineOptions *options = &pipeline->plan.options;

	for (uint32_t f = 0; options->nprobes > 0 && f < options->probes[0].nfills; f++)
		if (options->probes[0].fills[f].column == vector)
			return true;
	return false;
}

/* NULL: the vector is no constant. */
static const GhConstant *
constant_of(const GhProgram *program, uint32_t vector)
{
	return vector - program->ncolumns < program->nconstants ?
		&gh_program_constants(program)[vector - program->ncolumns] : nullptr;
}

/* Does the lane have the vector's value? */
static bool
is_at_hand(const cuda_pipeline *pipeline, uint32_t vector)
{
	return column_of(pipeline, vector) != nullptr || is_joined(pipeline, vector);
}

static bool
columns_suit(const cuda_pipeline *pipeline)
{
	const GhPageShape *shape = &pipeline->plan.shape;

	return shape->tids == 0 && shape->nfixed == shape->ncolumns &&
		shape->page_bytes % sizeof(uint64_t) == 0 &&
		std::all_of(shape->columns, shape->columns + shape->ncolumns, [pipeline](const GhPageColumn &column) {
			return column.column.load <= GH_LOAD_INT8 && pass_is_plain_column(pipeline, &column);
		});
}

static bool
table_suits(const GhProbe *probe, const probe_view *view)
{
	return view->has_values != 0 && view->counts == 0 &&
		(view->by_number == 0 || (probe->nfills == 0 && view->rows.back_bit == UINT32_MAX));
}

/* Of the tables as they are now: one place has what a key finds, and that is all there is to it. */
static bool
probe_suits(const cuda_pipeline *pipeline)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	const GhProbe *probe = options->probes;
	const probe_view *view = pipeline->probes;

	if (options->nprobes == 0)
		return true;
	return options->nprobes == 1 && probe->kind != GH_PROBE_LEFT && probe->marks == nullptr &&
		probe->nparts == 1 && column_of(pipeline, probe->parts[0].vector) != nullptr &&
		view->has_index != 0 && table_suits(probe, view) &&
		(view->has_changed == 0 || (view->changed_values != 0 && (view[1].has_index == 0 || table_suits(probe, &view[1]))));
}

/* Is that a comparison of a column with a constant, for the filter that is the instruction behind it? */
static bool
is_condition(const cuda_pipeline *pipeline, const GhInstruction *in)
{
	const GhProgram *program = pipeline->plan.options.program;
	bool		turned = constant_of(program, in->args[0]) != nullptr;
	const GhConstant *constant = constant_of(program, in->args[turned ? 0 : 1]);

	return in->op >= GH_OP_EQ && in->op <= GH_OP_GE && in->op_class == GH_CLASS_INT && constant != nullptr &&
		constant->null == 0 && column_of(pipeline, in->args[turned ? 1 : 0]) != nullptr &&
		in[1].op == GH_OP_FILTER && in[1].args[0] == in->result;
}

/* Are all instructions conditions, of one step, in front of the probe? */
static bool
conditions_suit(const cuda_pipeline *pipeline)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	uint32_t	n = options->program->ninstructions;
	uint32_t	step = 0;

	if (n == 0)
		return true;
	while (step + 1 < options->nsteps && options->steps[step].end == 0 && options->steps[step].probe == 0)
		step++;
	if (options->steps[step].probe != 0 || options->steps[step].end != n || n % 2 != 0 ||
		n / 2 > DIRECT_CONDITIONS)
		return false;
	for (uint32_t i = 0; i < n; i += 2)
		if (!is_condition(pipeline, &gh_program_instructions(options->program)[i]))
			return false;
	return true;
}

static bool
aggregate_suits(const cuda_pipeline *pipeline, const GhAggregate *aggregate)
{
	return aggregate->filter == GH_AGGREGATE_NO_FILTER &&
		(aggregate->kind == GH_AGGREGATE_COUNT_ROWS ||
		 (aggregate->kind == GH_AGGREGATE_COUNT && is_at_hand(pipeline, aggregate->argument)) ||
		 (aggregate->kind >= GH_AGGREGATE_SUM && aggregate->kind <= GH_AGGREGATE_MAX &&
		  aggregate->value_class == GH_CLASS_INT && is_at_hand(pipeline, aggregate->argument)));
}

bool
direct_suits(const cuda_pipeline *pipeline)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	const GhGroupsSink *sink = &options->sink.groups;

	return !pipeline->no_direct && sink->naggregates <= DIRECT_AGGREGATES && columns_suit(pipeline) &&
		conditions_suit(pipeline) && probe_suits(pipeline) &&
		std::all_of(sink->aggregates, sink->aggregates + sink->naggregates,
					[pipeline](const GhAggregate &of) { return aggregate_suits(pipeline, &of); }) &&
		(sink->nkeys == 0 ||
		 (sink->nkeys == 1 && sink->keys[0].value_class == GH_CLASS_INT &&
		  is_at_hand(pipeline, sink->keys[0].vector) &&
		  pass_groups_shared(pipeline, pass_groups_entries(pipeline)) <= pipeline->block_shared / 2));
}

/* -------------------------------------------------------------------- the plan */

static direct_operand
operand_of(const cuda_pipeline *pipeline, uint32_t vector)
{
	const GhPageColumn *column = column_of(pipeline, vector);
	uint32_t	bits;

	if (column == nullptr)
		return {};
	bits = 8 * (uint32_t) pipeline->plan.shape.attributes[column->column.attribute - 1].length;
	return {(uint16_t) (column->place & ~7u), (uint8_t) (64 - bits - 8 * (column->place & 7)),
		(uint8_t) (64 - bits)};
}

/* Values of a range: from `low` on, of so many more. */
static void
set_range(direct_condition *condition, int64_t low, int64_t high)
{
	condition->low = (uint64_t) low;
	condition->span = (uint64_t) high - (uint64_t) low;
}

/* What of the column's values a comparison lets pass, as a range, or all that is outside of one. */
static direct_condition
condition_of(const cuda_pipeline *pipeline, const GhInstruction *in)
{
	const GhProgram *program = pipeline->plan.options.program;
	bool		turned = constant_of(program, in->args[0]) != nullptr;
	int64_t		than = (int64_t) constant_of(program, in->args[turned ? 0 : 1])->low;
	bool		from = in->op == (turned ? GH_OP_GT : GH_OP_LT) || in->op == (turned ? GH_OP_LE : GH_OP_GE);
	direct_condition condition = {};

	condition.operand = operand_of(pipeline, in->args[turned ? 1 : 0]);
	if (in->op == GH_OP_EQ || in->op == GH_OP_NE)
	{
		set_range(&condition, than, than);
		condition.outside = in->op == GH_OP_NE;
		return condition;
	}
	/* less, or not less: the range is from it on; greater, or not greater: it is up to it */
	if (from)
		set_range(&condition, than, INT64_MAX);
	else
		set_range(&condition, INT64_MIN, than);
	condition.outside = in->op == GH_OP_LT || in->op == GH_OP_GT;
	return condition;
}

static void
plan_conditions(const cuda_pipeline *pipeline, direct_plan *plan)
{
	const GhPipelineOptions *options = &pipeline->plan.options;

	plan->nconditions = options->program->ninstructions / 2;
	for (uint32_t i = 0; i < plan->nconditions; i++)
		plan->conditions[i] = condition_of(pipeline, &gh_program_instructions(options->program)[2 * i]);
	while (plan->nconditions > 0 && options->steps[plan->filter_step].end == 0)
		plan->filter_step++;
}

static void
plan_probe(const cuda_pipeline *pipeline, direct_plan *plan)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	const GhKeyPart *part;

	plan->nsteps = plan->probe_step = options->nsteps;
	if (options->nprobes == 0)
		return;
	part = &options->probes[0].parts[0];
	plan->probe = operand_of(pipeline, part->vector);
	plan->probe_mask = part->bits == 64 ? UINT64_MAX : ((uint64_t) 1 << part->bits) - 1;
	plan->anti = options->probes[0].kind == GH_PROBE_ANTI;
	plan->instead = pipeline->probes[0].has_changed != 0 && pipeline->probes[1].has_index != 0;
	plan->probe_step = 0;
	while (options->steps[plan->probe_step].probe == 0)
		plan->probe_step++;
}

static void
plan_direct(const cuda_pipeline *pipeline, direct_plan *plan)
{
	const GhGroupsSink *sink = &pipeline->plan.options.sink.groups;
	const GhPageShape *shape = &pipeline->plan.shape;

	*plan = {};
	plan->columns = shape->ncolumns;
	plan->prefix = shape->prefix;
	plan->prefix_bytes = shape->prefix_bytes;
	plan->naggregates = sink->naggregates;
	for (uint32_t a = 0; a < sink->naggregates; a++)
	{
		if (sink->aggregates[a].kind < GH_AGGREGATE_SUM)
			continue;
		plan->values |= 1u << a;
		plan->adds |= (uint32_t) (sink->aggregates[a].kind == GH_AGGREGATE_SUM) << a;
		plan->least |= (uint32_t) (sink->aggregates[a].kind == GH_AGGREGATE_MIN) << a;
		plan->joined |= (uint32_t) is_joined(pipeline, sink->aggregates[a].argument) << a;
		plan->arguments[a] = operand_of(pipeline, sink->aggregates[a].argument);
	}
	plan_conditions(pipeline, plan);
	plan_probe(pipeline, plan);
	if (sink->nkeys == 0)
		return;
	plan->group = operand_of(pipeline, sink->keys[0].vector);
	plan->group_joined = is_joined(pipeline, sink->keys[0].vector);
}

/* ------------------------------------------------------------------------ launch */

typedef void direct_function(const direct_job job);

static direct_function *
kernel_of(const cuda_pipeline *pipeline)
{
	bool		probed = pipeline->plan.options.nprobes > 0;
	bool		changed = probed && pipeline->probes[0].has_changed != 0;

	if (pipeline->plan.options.sink.groups.nkeys > 0)
		return changed ? direct_kernel<true, DIRECT_CHANGED> : probed ? direct_kernel<true, DIRECT_PROBE> :
			direct_kernel<true, DIRECT_NO_PROBE>;
	return changed ? direct_kernel<false, DIRECT_CHANGED> : probed ? direct_kernel<false, DIRECT_PROBE> :
		direct_kernel<false, DIRECT_NO_PROBE>;
}

GhStatus
direct_launch(cuda_pipeline *pipeline, const pass_job *pass, pass_page *rest, uint32_t *blocks,
			  GhError *error)
{
	bool		keyed = pipeline->plan.options.sink.groups.nkeys > 0;
	direct_function *kernel = kernel_of(pipeline);
	int			threads = keyed ? DIRECT_THREADS_KEYED : DIRECT_THREADS;
	uint32_t	warps = (uint32_t) threads / 32;
	size_t		shared = 0;
	int			each = 0;
	direct_job	job = {};

	plan_direct(pipeline, &job.plan);
	job.view = pipeline->view.plan;
	job.probe = pipeline->view.probes;
	job.pages = pass->pages;
	job.npages = pass->npages;
	job.page_bytes = pipeline->view.page_bytes;
	job.rest = rest;
	job.counters = pass->run.batch.counters;
	job.partial = pass->partial;
	job.partial_rows = pass->partial_rows;
	job.grouped = pass->grouped;
	if (keyed)
	{
		job.grouped.entries = pass_groups_entries(pipeline);
		shared = pass_groups_shared(pipeline, job.grouped.entries);
		/* all that direct_suits lets it have: other threads launch the kernel, too */
		PIPE_TRY(&pipeline->memory, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
														 (int) (pipeline->block_shared / 2)), error);
	}
	PIPE_TRY(&pipeline->memory,
			 cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, shared), error);
	/* one multiprocessor is left to what takes the batch before into the sink */
	*blocks = std::max(each, 1) * std::max(pipeline->multiprocessors - 1, 1u);
	*blocks = std::min(std::min(*blocks, pass_chunks(pipeline) / 2), (pass->npages + warps - 1) / warps);
	*blocks = std::max(*blocks, 1u);
	kernel<<<*blocks, threads, shared, pipeline->memory.stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}
