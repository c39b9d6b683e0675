/*
 * pipeline_pass.cuh
 *		What the files pipeline_pass*.cu offer each other.
 */
#ifndef GPUHASH_PIPELINE_PASS_CUH
#define GPUHASH_PIPELINE_PASS_CUH

#include "cuda/pipeline/pass_pages.cuh"

/* ----------------------------------------------------------- pipeline_pass.cu */

/* Of a column of the fixed ones: does its value lie in a tuple as in a vector that has no high words? */
extern bool pass_is_plain_column(const cuda_pipeline *pipeline, const GhPageColumn *column);
/* Chunks that a batch has room for, one for each block. */
extern uint32_t pass_chunks(const cuda_pipeline *pipeline);

/* ---------------------------------------------------- pipeline_pass_direct.cu */

/* May pages be read by the kernel without vectors?  Tables are those that were sent last. */
extern bool direct_suits(const cuda_pipeline *pipeline);
/*
 * Launches it over the job's pages; what it leaves is put to `rest`, as many as the
 * counters say.  *blocks have a chunk each, from the job's first one on.
 */
extern GhStatus direct_launch(cuda_pipeline *pipeline, const pass_job *pass, pass_page *rest,
							  uint32_t *blocks, GhError *error);

#endif							/* GPUHASH_PIPELINE_PASS_CUH */
