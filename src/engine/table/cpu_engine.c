/*
 * cpu_engine.c
 *		The CPU engine's face: its functions, and the machine as its only device.
 */
#include "engine/pipeline/pipeline.h"
#include "engine/table/cpu_internal.h"

#include <stdlib.h>
#include <unistd.h>

static GhStatus
device_count(int *count, GhError *error)
{
	(void) error;
	*count = 1;
	return GH_OK;
}

static GhStatus
open_device(int device, GhError *error)
{
	if (device != 0)
		return gh_error_set(error, GH_INVALID, "the CPU engine has no device %d", device);
	return GH_OK;
}

static uint64_t
system_value(int name)
{
	long		value = sysconf(name);

	return value > 0 ? (uint64_t) value : 0;
}

static GhStatus
device_info(int device, GhDeviceInfo *info, GhError *error)
{
	GhStatus	status = open_device(device, error);
	uint64_t	page = system_value(_SC_PAGESIZE);

	if (status != GH_OK)
		return status;
	memset(info, 0, sizeof(*info));
	strcpy(info->name, "cpu");
	info->memory_total = system_value(_SC_PHYS_PAGES) * page;
	info->memory_free = system_value(_SC_AVPHYS_PAGES) * page;
	info->multiprocessors = (uint32_t) system_value(_SC_NPROCESSORS_ONLN);
	return GH_OK;
}

/* Ordinary memory, at the start of a cache line. */
static void *
buffer_alloc(int device, size_t bytes)
{
	(void) device;
	if (bytes == 0 || bytes > SIZE_MAX - (GH_CPU_BUCKET_BYTES - 1))
		return NULL;
	return aligned_alloc(GH_CPU_BUCKET_BYTES,
						 (bytes + GH_CPU_BUCKET_BYTES - 1) & ~(size_t) (GH_CPU_BUCKET_BYTES - 1));
}

static void
buffer_free(void *buffer)
{
	free(buffer);
}

static const GhEngine cpu_engine = {
	.abi_version = GH_ABI_VERSION,
	.name = "cpu",
	.asynchronous = false,
	.on_device = false,
	.buffers_required = false,
	.shares_tables = false,
	.device_count = device_count,
	.open_device = open_device,
	.device_info = device_info,
	.buffer_alloc = buffer_alloc,
	.buffer_free = buffer_free,
	.table_create = gh_cpu_table_create,
	.table_root = gh_cpu_table_root,
	.table_attach = gh_cpu_table_attach,
	.table_detach = gh_cpu_table_detach,
	.table_destroy = gh_cpu_table_destroy,
	.table_clear = gh_cpu_table_clear,
	.table_reserve = gh_cpu_table_reserve,
	.table_flush = gh_cpu_table_flush,
	.table_export = gh_cpu_table_export,
	.table_stats = gh_cpu_table_stats,
	.submit = gh_cpu_submit,
	.poll = gh_cpu_poll,
	.wait = gh_cpu_wait,
	.pipelines = &gh_cpu_pipelines,
};

const GhEngine *
gh_cpu_engine(void)
{
	return &cpu_engine;
}
