/*
 * cpu_marks.c
 *		Which rows of a table have had a match in a query: bits by the rows' numbers, in the host's memory, so that
 *		all participants of a query can set them.
 */
#include "engine/pipeline/cpu_rows.h"
#include "engine/table/cpu_internal.h"

#include <stdlib.h>

/* A handle without the bits; NULL: error says why. */
static GhMarks *
make_handle(const GhHost *host, GhTable *table, GhError *error)
{
	GhTableShape shape;
	GhMarks    *marks;

	if (!gh_cpu_table_describe(table, &shape) || !shape.numbered)
	{
		(void) gh_error_set(error, GH_INVALID, "there are no marks of a table whose rows are not numbered");
		return NULL;
	}
	marks = calloc(1, sizeof(GhMarks));
	if (marks == NULL)
	{
		(void) gh_error_set(error, GH_NO_MEMORY, "out of memory for marks");
		return NULL;
	}
	marks->memory.host = *host;
	marks->rows = gh_cpu_rows_of(table);
	marks->block.bytes = (shape.rows / 64 + 1) * sizeof(uint64_t);
	return marks;
}

GhStatus
gh_cpu_marks_create(const GhHost *host, GhTable *table, GhMarks **result, GhError *error)
{
	GhMarks    *marks = make_handle(host, table, error);

	*result = NULL;
	if (marks == NULL)
		return error->status;
	marks->block = gh_cpu_block_take(&marks->memory, marks->block.bytes);
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

GhRef
gh_cpu_marks_root(const GhMarks *marks)
{
	return marks->block.ref;
}

GhStatus
gh_cpu_marks_attach(const GhHost *host, GhTable *table, GhRef root, GhMarks **result, GhError *error)
{
	GhMarks    *marks = make_handle(host, table, error);

	*result = NULL;
	if (marks == NULL)
		return error->status;
	marks->block.ref = root;
	/* what another process has allocated is mapped by locking */
	if (host->lock != NULL)
	{
		host->lock(host->ctx, GH_LOCK_SHARED);
		host->unlock(host->ctx);
	}
	marks->bits = gh_cpu_block_address(&marks->memory, marks->block);
	*result = marks;
	return GH_OK;
}

void
gh_cpu_marks_detach(GhMarks *marks)
{
	free(marks);
}

void
gh_cpu_marks_destroy(GhMarks *marks)
{
	if (marks == NULL)
		return;
	gh_cpu_block_give(&marks->memory, marks->block);
	free(marks);
}
