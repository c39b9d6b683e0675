/*
 * cpu_pipeline_records.c
 *		Rows that the sink of a pipeline on the CPU keeps, as records.
 */
#include "engine/pipeline/cpu_pipeline.h"

#define RECORDS_MIN 4096		/* bytes */

/* Bytes of a row's record. */
static uint64_t
bytes_of_row(const GhCpuPipeline *pipeline, const GhVectorBatch *batch, uint32_t row)
{
	const GhRowsSink *sink = &pipeline->plan.options.sink.rows;
	uint64_t	bytes = pipeline->plan.group_bytes;

	for (uint32_t k = 0; k < sink->nvalues; k++)
	{
		const GhVector *vector = &batch->vectors[sink->values[k].vector];

		if (sink->values[k].value_class == GH_CLASS_TEXT && !vector->null[row])
			bytes += vector->high[row];
	}
	return (bytes + 7) & ~UINT64_C(7);
}

bool
gh_cpu_records_reserve(GhCpuPipeline *pipeline, uint64_t bytes)
{
	GhCpuRecords *records = &pipeline->records;
	uint64_t	room = records->room == 0 ? RECORDS_MIN : records->room;
	GhCpuBlock	block;

	if (bytes <= records->room - records->used)
		return true;
	while (room - records->used < bytes)
		room *= 2;
	block = gh_cpu_block_take(&pipeline->memory, room);
	if (block.ref == 0)
		return false;
	if (records->used > 0)
		memcpy(gh_cpu_block_address(&pipeline->memory, block), records->bytes, records->used);
	gh_cpu_block_give(&pipeline->memory, records->block);
	records->bytes = gh_cpu_block_address(&pipeline->memory, block);
	records->room = room;
	records->block = block;
	return true;
}

uint64_t
gh_cpu_records_bytes(const GhCpuPipeline *pipeline, const GhVectorBatch *batch)
{
	uint64_t	bytes = 0;

	for (uint32_t i = 0; i < batch->nrows; i++)
		if (batch->state[i] == GH_ROW_LIVE)
			bytes += bytes_of_row(pipeline, batch, i);
	return bytes;
}

static void
put_record(GhCpuPipeline *pipeline, const GhVectorBatch *batch, uint32_t row)
{
	const GhRowsSink *sink = &pipeline->plan.options.sink.rows;
	char	   *record = pipeline->records.bytes + pipeline->records.used;
	GhRecordHead head = {0, 1, 0};
	GhRecordValue *values = (GhRecordValue *) (record + sizeof(head));
	uint64_t	at = pipeline->plan.group_bytes;

	for (uint32_t k = 0; k < sink->nvalues; k++)
	{
		const GhVector *vector = &batch->vectors[sink->values[k].vector];
		GhRecordValue value = {0, 0};

		if (vector->null[row])
			head.nulls |= UINT64_C(1) << k;
		else
		{
			value.low = vector->low[row];
			value.high = gh_class_has_high(sink->values[k].value_class) ? vector->high[row] : 0;
		}
		if (sink->values[k].value_class == GH_CLASS_TEXT && !vector->null[row])
		{
			if (value.high > 0)
				memcpy(record + at, (const char *) (uintptr_t) value.low, value.high);
			value.low = at;
			at += value.high;
		}
		values[k] = value;
	}
	head.bytes = (at + 7) & ~UINT64_C(7);
	memset(record + at, 0, head.bytes - at);
	memcpy(record, &head, sizeof(head));
	pipeline->records.used += head.bytes;
	pipeline->records.count++;
}

void
gh_cpu_records_add(GhCpuPipeline *pipeline, const GhVectorBatch *batch)
{
	for (uint32_t i = 0; i < batch->nrows; i++)
		if (batch->state[i] == GH_ROW_LIVE)
			put_record(pipeline, batch, i);
}
