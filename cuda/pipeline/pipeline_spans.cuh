/*
 * pipeline_spans.cuh
 *		Device memory for pages that stay from one request to the next.
 */
#ifndef GPUHASH_PIPELINE_SPANS_CUH
#define GPUHASH_PIPELINE_SPANS_CUH

#include "cuda/pipeline/pipeline.cuh"

struct cuda_span
{
	GhPageSpan	base;			/* first: it is the handle */
	pipe_memory memory;
	pipe_block	block;
};

static inline char *
span_place(const GhPageSpan *span, uint32_t place)
{
	return reinterpret_cast<const cuda_span *>(span)->block.memory + (uint64_t) place * span->page_bytes;
}

/* pipeline_spans.cu */
extern GhStatus cuda_span_create(const GhHost *host, int device, uint32_t page_bytes, uint32_t npages,
								 GhPageSpan **span, GhError *error);
extern void cuda_span_destroy(GhPageSpan *span);

#endif							/* GPUHASH_PIPELINE_SPANS_CUH */
