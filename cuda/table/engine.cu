/*
 * engine.cu
 *		The library's one exported name: the table of functions that engine.h
 *		describes.  What they do is in the other files of this folder.
 */
#include "cuda/pipeline/pipeline.cuh"
#include "cuda/table/table.h"

/* Tables of this engine are the property of the process that made them. */
static GhRef
table_root(const GhTable *handle)
{
	(void) handle;
	return 0;
}

static GhStatus
table_attach(const GhHost *host, GhRef root, GhTable **handle, GhError *error)
{
	(void) host;
	(void) root;
	*handle = nullptr;
	return gh_error_set(error, GH_UNSUPPORTED,
						"a CUDA table has one handle, in the process that made it");
}

static const GhEngine cuda_engine = {
	GH_ABI_VERSION,
	"cuda",
	true,						/* asynchronous */
	true,						/* on_device */
	false,						/* buffers_required */
	false,						/* shares_tables */
	device_count,
	device_open,
	device_info,
	device_buffer_alloc,
	device_buffer_free,
	device_memory_register,
	device_memory_unregister,
	nullptr,					/* reads_pool */
	cuda_table_create,
	table_root,
	table_attach,
	cuda_table_destroy,			/* detach: there is no other handle to leave it to */
	cuda_table_destroy,
	cuda_table_clear,
	cuda_table_reserve,
	cuda_table_flush,
	cuda_table_export,
	cuda_table_stats,
	cuda_submit,
	cuda_poll,
	cuda_wait,
	&cuda_pipelines
};

extern "C" __attribute__((visibility("default"))) const GhEngine *
gh_cuda_engine(void)
{
	return &cuda_engine;
}
