/*
 * cpu_rows_find.c
 *		Finds in a table that a pipeline made on the CPU: to a request the value of a key is what its row keeps.
 *
 * The index has it as it is, or as a part of a value that is carried, or has the number of the row, and 1.  Of the
 * latter two no value is NONE, so that who looks them up knows which keys are there.
 */
#include "engine/pipeline/cpu_rows.h"
#include "engine/table/cpu_internal.h"

#define NONE UINT64_MAX

/* Puts kept values in the place of those of the index, up to a batch of them. */
static void
take_kept(const GhCpuRows *rows, uint64_t *values, uint32_t count, uint64_t absent)
{
	uint64_t	found[GH_VECTOR_ROWS];
	uint8_t		null[GH_VECTOR_ROWS];
	GhVector	kept = {values, NULL, null};
	GhCpuPicks	picks = {.n = 0};

	for (uint32_t i = 0; i < count; i++)
	{
		found[picks.n] = rows->carried ? values[i] : values[i] - 1;
		picks.rows[picks.n] = (uint16_t) i;
		picks.n += values[i] != NONE;
		null[i] = values[i] == NONE;
	}
	if (rows->carried)
		gh_cpu_carried_load(rows, 0, found, &kept, &picks);
	else
		gh_cpu_rows_load(rows, 0, found, &kept, &picks);
	for (uint32_t i = 0; i < count; i++)
		if (null[i])
			values[i] = absent;
}

/* As gh_cpu_find_slice. */
GhStatus
gh_cpu_made_find_slice(GhCpuTable *table, GhRequest *request)
{
	const GhCpuRows *rows = table->rows;
	uint64_t	absent = request->absent;
	uint64_t	at = request->outcome.done;
	GhStatus	status;

	if (request->values_out == NULL || (rows->carried && rows->shape.kept[0].bytes == sizeof(uint64_t)))
		return gh_cpu_find_slice(table, request);
	request->absent = NONE;
	status = gh_cpu_find_slice(table, request);
	request->absent = absent;
	for (uint32_t count; at < request->outcome.done; at += count)
	{
		uint64_t	left = request->outcome.done - at;

		count = left < GH_VECTOR_ROWS ? (uint32_t) left : GH_VECTOR_ROWS;
		take_kept(rows, (uint64_t *) request->values_out + at, count, absent);
	}
	return status;
}
