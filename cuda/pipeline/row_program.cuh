/*
 * row_program.cuh
 *		The program over a row, and what aggregates take of it.
 */
#ifndef GPUHASH_ROW_PROGRAM_CUH
#define GPUHASH_ROW_PROGRAM_CUH

#include "cuda/pipeline/sink_views.cuh"
#include "cuda/pipeline/group_find.cuh"

/* The instructions from first up to, but not including, end. */
template <typename ROW> static __device__ GhRowState
run_program(const plan_view &plan, const ROW &row, uint32_t first, uint32_t end)
{
	const GhProgram *program = plan.program;
	const GhInstruction *in = gh_program_instructions(program) + first;

	for (uint32_t i = first; i < end; i++, in++)
	{
		GhValue		a = row.get(in->args[0]);
		GhValue		b = row.get(in->args[1]);
		GhValue		c = row.get(in->args[2]);
		uint64_t	bad = 0;

		if (in->op == GH_OP_FILTER)
		{
			if (!gh_bool_true(a.low, a.null))
				return GH_ROW_DROPPED;
			continue;
		}
		row.set(in->result, gh_row_value(program, in, &a, &b, &c, &bad));
		if (bad != 0)
			return GH_ROW_BACK;
	}
	return GH_ROW_LIVE;
}

/* Which aggregates take the row; false: a value is one that is not summed (gh_aggregate_fits). */
template <typename ROW> static __device__ bool
row_takes(const plan_view &plan, const ROW &row, uint64_t *takes)
{
	*takes = 0;
	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		const GhAggregate *aggregate = &plan.aggregates[a];
		GhValue		value;

		if (aggregate->filter != GH_AGGREGATE_NO_FILTER)
		{
			value = row.get(aggregate->filter);
			if (!gh_bool_true(value.low, value.null))
				continue;
		}
		if (aggregate->kind != GH_AGGREGATE_COUNT_ROWS)
		{
			value = row.get(aggregate->argument);
			if (value.null)
				continue;
			if (gh_aggregate_is_sum(aggregate) && !gh_aggregate_fits(aggregate, value.low, value.high))
				return false;
		}
		*takes |= (uint64_t) 1 << a;
	}
	return true;
}

template <typename ROW> static __device__ void
store_inputs(const plan_view &plan, const lines_view &lines, const ROW &row, uint32_t line)
{
	for (uint32_t i = 0; i < plan.ninputs; i++)
	{
		scan_input	input = plan.inputs[i];
		GhValue		value = row.get(input.vector);

		lines.low[i * lines.stride + line] = value.low;
		if (input.high != 0)
			lines.high[(input.high - 1u) * lines.stride + line] = value.high;
	}
}

#endif							/* GPUHASH_ROW_PROGRAM_CUH */
