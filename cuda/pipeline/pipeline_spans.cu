/*
 * pipeline_spans.cu
 *		Device memory for pages that stay from one request to the next; pipeline_input.cu puts them there and
 *		reads them.
 */
#include <stdlib.h>

#include "cuda/pipeline/pipeline_spans.cuh"

GhStatus
cuda_span_create(const GhHost *host, int device, uint32_t page_bytes, uint32_t npages, GhPageSpan **result,
				 GhError *error)
{
	cuda_span  *span;
	GhStatus	status;

	*result = nullptr;
	GH_TRY(gh_span_check(page_bytes, npages, error));
	GH_TRY(device_open(device, error));
	span = static_cast<cuda_span *>(calloc(1, sizeof(cuda_span)));
	if (span == nullptr)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a span");
	span->base = {&cuda_pipelines, device, page_bytes, npages};
	if (host != nullptr)
		span->memory.host = *host;
	/* pages stay there, and their memory is not to be a part of the pool's (../table/pool.cu) */
	span->memory.host.lasting = nullptr;
	span->memory.device = device;
	status = pipe_alloc(&span->memory, (uint64_t) page_bytes * npages, false, &span->block, error);
	if (status != GH_OK)
	{
		free(span);
		return status;
	}
	*result = &span->base;
	return GH_OK;
}

/* After a device error the call fails, which is as it should be. */
void
cuda_span_destroy(GhPageSpan *handle)
{
	cuda_span  *span = reinterpret_cast<cuda_span *>(handle);

	if (span == nullptr)
		return;
	(void) cudaSetDevice(span->memory.device);
	pipe_free(&span->memory, false, &span->block);
	free(span);
}
