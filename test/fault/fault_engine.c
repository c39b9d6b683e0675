/*
 * fault_engine.c
 *		A table engine whose device fails when told to (test/perl/GpuHash/Fault.pm).
 *
 * It has the CUDA engine's name and entry point and does its work with the CPU
 * engine, so that what happens after the loss of a GPU can be tested on every
 * machine.  While the file that GPUHASH_FAULT_FILE names does not exist, all
 * goes well.  A number n in it lets n more requests succeed; the next one does
 * half of its positions and ends with GH_DEVICE_ERROR, and so does at once
 * every call after that, in every process, until the file is gone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

typedef struct FaultTable
{
	GhTable		common;			/* first */
	GhTable    *inner;			/* of the CPU engine */
} FaultTable;

__attribute__((visibility("default"))) const GhEngine *gh_cuda_engine(void);

/* Requests that may still succeed; negative: any number. */
static long
successes_left(void)
{
	const char *path = getenv("GPUHASH_FAULT_FILE");
	FILE	   *file = path != NULL ? fopen(path, "r") : NULL;
	long		n = 0;

	if (file == NULL)
		return -1;
	if (fscanf(file, "%ld", &n) != 1)
		n = 0;
	fclose(file);
	return n;
}

static void
note_success(long left)
{
	FILE	   *file = fopen(getenv("GPUHASH_FAULT_FILE"), "w");

	if (file == NULL)
		return;
	fprintf(file, "%ld\n", left - 1);
	fclose(file);
}

static GhStatus
fail(GhError *error)
{
	return gh_error_set(error, GH_DEVICE_ERROR, "the test lets the device fail");
}

static GhStatus
fault_device_count(int *count, GhError *error)
{
	(void) error;
	*count = 1;
	return GH_OK;
}

static GhStatus
fault_open_device(int device, GhError *error)
{
	(void) device;
	(void) error;
	return GH_OK;
}

static GhStatus
fault_device_info(int device, GhDeviceInfo *info, GhError *error)
{
	(void) device;
	(void) error;
	memset(info, 0, sizeof(*info));
	strcpy(info->name, "device of the tests");
	return GH_OK;
}

static void *
fault_buffer_alloc(int device, size_t bytes)
{
	return successes_left() == 0 ? NULL : gh_cpu_engine()->buffer_alloc(device, bytes);
}

static GhStatus
fault_table_create(const GhHost *host, const GhTableOptions *options,
				   GhTable **table, GhError *error)
{
	FaultTable *fault;
	GhStatus	status;

	if (successes_left() == 0)
		return fail(error);
	fault = calloc(1, sizeof(*fault));
	if (fault == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory");
	status = gh_cpu_engine()->table_create(host, options, &fault->inner, error);
	if (status != GH_OK)
	{
		free(fault);
		return status;
	}
	fault->common.engine = gh_cuda_engine();
	*table = &fault->common;
	return GH_OK;
}

static void
fault_table_destroy(GhTable *table)
{
	FaultTable *fault = (FaultTable *) table;

	gh_cpu_engine()->table_destroy(fault->inner);
	free(fault);
}

static GhStatus
fault_table_clear(GhTable *table, GhError *error)
{
	if (successes_left() == 0)
		return fail(error);
	return gh_cpu_engine()->table_clear(((FaultTable *) table)->inner, error);
}

static GhStatus
fault_table_stats(GhTable *table, GhTableStats *stats, GhError *error)
{
	if (successes_left() == 0)
		return fail(error);
	return gh_cpu_engine()->table_stats(((FaultTable *) table)->inner, stats, error);
}

/* From here on the request is the CPU engine's, unless it is to fail. */
static GhStatus
fault_submit(GhTable *table, GhRequest *request)
{
	GhTable    *inner = ((FaultTable *) table)->inner;
	long		left = successes_left();
	uint64_t	count = request->count;

	if (left != 0)
	{
		if (left > 0)
			note_success(left);
		return gh_cpu_engine()->submit(inner, request);
	}
	request->count /= 2;
	if (gh_cpu_engine()->submit(inner, request) <= GH_BUSY)
		(void) gh_cpu_engine()->wait(request);
	request->count = count;
	request->status = GH_DEVICE_ERROR;
	return fail(&request->error);
}

const GhEngine *
gh_cuda_engine(void)
{
	static GhEngine engine;

	engine.abi_version = GH_ABI_VERSION;
	engine.name = "cuda";
	engine.asynchronous = true;
	engine.device_count = fault_device_count;
	engine.open_device = fault_open_device;
	engine.device_info = fault_device_info;
	engine.buffer_alloc = fault_buffer_alloc;
	engine.buffer_free = gh_cpu_engine()->buffer_free;
	engine.table_create = fault_table_create;
	engine.table_destroy = fault_table_destroy;
	engine.table_clear = fault_table_clear;
	engine.table_stats = fault_table_stats;
	engine.submit = fault_submit;
	engine.poll = gh_cpu_engine()->poll;
	engine.wait = gh_cpu_engine()->wait;
	return &engine;
}
