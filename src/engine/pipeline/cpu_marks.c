/*
 * cpu_marks.c
 *		Which rows of a table have had a match in a query: bits by the rows' numbers, in the host's memory.
 */
#include "engine/pipeline/cpu_rows.h"
#include "engine/table/cpu_internal.h"

#include <stdlib.h>

GhStatus
gh_cpu_marks_create(const GhHost *host, GhTable *table, GhMarks **result, GhError *error)
{
	GhTableShape shape;
	GhMarks    *marks;

	*result = NULL;
	if (!gh_cpu_table_describe(table, &shape) || !shape.numbered)
		return gh_error_set(error, GH_INVALID, "there are no marks of a table whose rows are not numbered");
	marks = calloc(1, sizeof(GhMarks));
	if (marks == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for marks");
	marks->memory.host = *host;
	marks->rows = gh_cpu_rows_of(table);
	marks->block = gh_cpu_block_take(&marks->memory, (shape.rows / 64 + 1) * sizeof(uint64_t));
	if (marks->block.ref == 0)
	{
		free(marks);
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the marks of a table's rows");
	}
	marks->bits = gh_cpu_block_address(&marks->memory, marks->block);
	memset(marks->bits, 0, marks->block.bytes);
	*result = marks;
	return GH_OK;
}

void
gh_cpu_marks_destroy(GhMarks *marks)
{
	if (marks == NULL)
		return;
	gh_cpu_block_give(&marks->memory, marks->block);
	free(marks);
}
