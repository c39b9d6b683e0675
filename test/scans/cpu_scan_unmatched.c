/*
 * cpu_scan_unmatched.c
 *		Rows of a table that no row matched, as what the last join of a scan on the CPU returns.
 */
#include "cpu_scan.h"

/* Runs what is in front of the joins for what it sets: these rows are none that it could drop. */
static void
run_before_joins(const GhScanOptions *options, GhVectorBatch *batch)
{
	const GhInstruction *in = gh_program_instructions(options->program);

	for (uint32_t i = 0; i < options->joins_at; i++)
		if (in[i].op != GH_OP_FILTER)
			(void) gh_program_run_part(options->program, batch, i, i + 1);
}

/* So many rows, which are these entries. */
static void
do_batch(GhCpuScan *scan, GhScanRequest *request, const GhCpuEntry **entries, uint32_t count)
{
	const GhScanOptions *options = &scan->plan.options;
	const GhScanJoin *join = &options->joins[options->njoins - 1];
	GhVectorBatch *batch = &scan->batch;
	uint32_t	live;
	uint32_t	back;

	batch->nrows = count;
	memset(batch->state, GH_ROW_LIVE, count);
	for (uint32_t i = 0; i < options->program->ncolumns; i++)
		memset(batch->vectors[i].null, 1, count);
	run_before_joins(options, batch);
	for (uint32_t i = 0; i < count; i++)
		gh_cpu_scan_fill(join, gh_cpu_joined_table(join), entries[i], batch, i);
	(void) gh_program_run_part(options->program, batch, options->joins_at,
							   options->program->ninstructions);
	gh_cpu_scan_add(scan, request);
	gh_batch_count(batch, &live, &back);
	request->counted += live;
	request->nback += back;
	request->joined[options->njoins - 1] += count - back;
}

void
gh_cpu_unmatched_rows(GhCpuScan *scan, GhScanRequest *request, uint64_t first, uint32_t count)
{
	const GhScanOptions *options = &scan->plan.options;
	const GhCpuScanTable *table = gh_cpu_joined_table(&options->joins[options->njoins - 1]);
	const GhCpuEntry *entries[GH_VECTOR_ROWS];
	uint32_t	n = 0;

	for (uint64_t number = first; number < first + count; number++)
	{
		entries[n] = gh_cpu_table_unmarked(table, number);
		n += entries[n] != NULL;
		if (n == GH_VECTOR_ROWS || (n > 0 && number + 1 == first + count))
		{
			do_batch(scan, request, entries, n);
			n = 0;
		}
	}
}
