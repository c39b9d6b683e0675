/*
 * cpu_scan_join.c
 *		Joins of scans on the CPU, row by row.
 */
#include "cpu_scan.h"

bool
gh_cpu_scan_key(const GhScanPart *parts, uint32_t nparts, const GhVectorBatch *batch, uint32_t row,
				uint64_t *key)
{
	*key = 0;
	for (uint32_t k = 0; k < nparts; k++)
	{
		const GhVector *vector = &batch->vectors[parts[k].vector];

		if (vector->null[row])
			return false;
		*key = gh_scan_key_add(*key, &parts[k], vector->low[row]);
	}
	return true;
}

void
gh_cpu_scan_fill(const GhScanJoin *join, const GhCpuScanTable *table, const GhCpuEntry *entry,
				 const GhVectorBatch *batch, uint32_t row)
{
	for (uint32_t f = 0; f < join->nfills; f++)
	{
		const GhVector *vector = &batch->vectors[join->fills[f].column];
		GhScanValue value = {0};	/* compilers see it used unset */

		vector->null[row] = entry == NULL ||
			!gh_cpu_table_value(table, entry, join->fills[f].kept, &value);
		if (vector->null[row])
			continue;
		vector->low[row] = value.low;
		vector->high[row] = value.high;
	}
}

const GhCpuEntry *
gh_cpu_scan_match(const GhScanJoin *join, const GhCpuScanTable *table, const GhVectorBatch *batch,
				  uint32_t row)
{
	const GhCpuEntry *entry = NULL;
	uint64_t	key;

	if (gh_cpu_scan_key(join->parts, join->nparts, batch, row, &key))
		entry = gh_cpu_table_find(table, key);
	if (entry != NULL && gh_scan_kind_marks(join->kind))
		gh_cpu_table_mark(table, entry);
	return entry;
}

void
gh_cpu_scan_join(const GhScanJoin *join, const GhCpuScanTable *table, GhVectorBatch *batch,
				 uint8_t *several)
{
	bool		all = gh_scan_kind_fills(join->kind);

	for (uint32_t i = 0; i < batch->nrows; i++)
	{
		const GhCpuEntry *entry;

		if (batch->state[i] != GH_ROW_LIVE)
			continue;
		entry = gh_cpu_scan_match(join, table, batch, i);
		if (all && entry != NULL && entry->next != 0)
		{
			batch->state[i] = several == NULL ? GH_ROW_BACK : GH_ROW_DROPPED;
			if (several != NULL)
				several[i] = 1;
		}
		else if (gh_scan_kind_goes_on(join->kind, entry != NULL))
			gh_cpu_scan_fill(join, table, entry, batch, i);
		else
			batch->state[i] = GH_ROW_DROPPED;
	}
}
