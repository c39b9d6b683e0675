/*
 * cpu_memory.c
 *		Memory of a CPU table: taken from the host under the table's limit,
 *		counted, given back.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* madvise */
#endif

#include "engine/table/cpu_internal.h"

#include "engine/huge_pages.h"

#include <inttypes.h>

/* A block of the host, counted in root->bytes, of any content. */
GhStatus
gh_cpu_take(GhCpuTable *table, uint64_t bytes, GhRef *ref, GhError *error)
{
	GhCpuRoot  *root = table->view.root;
	uint64_t	limit = root->options.memory_limit;

	if (limit > 0 && (bytes > limit || root->bytes > limit - bytes))
		return gh_error_set(error, GH_LIMIT,
							"the table holds %" PRIu64 " bytes and %" PRIu64
							" more would pass its memory limit of %" PRIu64,
							root->bytes, bytes, limit);
	*ref = bytes <= SIZE_MAX ? table->host.alloc(table->host.ctx, (size_t) bytes) : 0;
	if (*ref == 0)
		return gh_error_set(error, GH_NO_MEMORY,
							"could not allocate %" PRIu64 " bytes for a hash table", bytes);
	root->bytes += bytes;
	if (root->bytes > root->bytes_peak)
		root->bytes_peak = root->bytes;
	gh_advise_huge_pages(table->host.address(table->host.ctx, *ref), bytes);
	return GH_OK;
}

void
gh_cpu_give(GhCpuTable *table, GhRef ref, uint64_t bytes)
{
	table->host.free(table->host.ctx, ref);
	table->view.root->bytes -= bytes;
}
