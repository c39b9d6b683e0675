/*
 * cpu_spans.c
 *		Room for pages that stay from one request to the next, in the host's memory.
 *
 * What a request puts there is copied before it is looked at, and then read there, as by the requests behind it:
 * so texts that are handed out lie in the span.
 */
#include "engine/pipeline/cpu_pipeline.h"

#include <stdlib.h>

typedef struct CpuSpan
{
	GhPageSpan	base;			/* first */
	GhCpuSinkMemory memory;
	GhCpuBlock	block;
	char	   *pages;
} CpuSpan;

GhStatus
gh_cpu_span_create(const GhHost *host, int device, uint32_t page_bytes, uint32_t npages, GhPageSpan **result,
				   GhError *error)
{
	GhStatus	status = gh_span_check(page_bytes, npages, error);
	CpuSpan    *span;

	*result = NULL;
	if (status != GH_OK)
		return status;
	if (device != 0)
		return gh_error_set(error, GH_INVALID, "the CPU engine has no device %d", device);
	if (host == NULL || host->alloc == NULL || host->free == NULL || host->address == NULL)
		return gh_error_set(error, GH_INVALID, "the CPU engine needs a host's memory");
	span = calloc(1, sizeof(CpuSpan));
	if (span == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a span");
	span->base = (GhPageSpan) {&gh_cpu_pipelines, device, page_bytes, npages};
	span->memory.host = *host;
	span->block = gh_cpu_block_take(&span->memory, (uint64_t) page_bytes * npages);
	if (span->block.ref == 0)
	{
		free(span);
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a span of %u pages", npages);
	}
	span->pages = gh_cpu_block_address(&span->memory, span->block);
	*result = &span->base;
	return GH_OK;
}

void
gh_cpu_span_destroy(GhPageSpan *handle)
{
	CpuSpan    *span = (CpuSpan *) handle;

	if (span == NULL)
		return;
	gh_cpu_block_give(&span->memory, span->block);
	free(span);
}

GhPageRef
gh_cpu_place_page(const GhPipelineRequest *request, const GhPageRef *page)
{
	const CpuSpan *span = (const CpuSpan *) request->spans[page->span - 1];
	char	   *place = span->pages + (size_t) page->place * span->base.page_bytes;
	GhPageRef	placed = *page;

	/* backwards: headers of a page that others write to are judged by the copy, now or later */
	if (page->page != NULL)
		gh_page_copy_backwards(place, page->page, span->base.page_bytes);
	placed.page = place;
	return placed;
}
