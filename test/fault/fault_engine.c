/*
 * fault_engine.c
 *		A table engine that stands in for the CUDA engine where there is no GPU, and
 *		whose device fails when told to (test/perl/GpuHash/Fault.pm).
 *
 * It has the CUDA engine's name, entry point and manners, and does its work with
 * the CPU engine:
 *
 *	- What a table holds counts as memory of its device, which has 1 GiB; it is
 *	  taken from GhHost's budget and comes from GhHost.alloc.
 *	- Requests run in poll.  The first poll of a find or count does nothing, so that
 *	  several of them are in flight.
 *	- A handle has one owner at a time, but different ones are used by different
 *	  threads: what they share is atomic or behind a lock.
 *
 * The environment tells what goes wrong:
 *
 *	GPUHASH_FAULT_FILE		While the file of this name does not exist, all goes
 *							well.  A number n in it lets n more requests succeed; the
 *							next one does half of its positions and ends with
 *							GH_DEVICE_ERROR, and every call after that fails at once,
 *							in every process, until the file is gone.  A table that
 *							has met the failure stays lost.
 *	GPUHASH_FAULT_DEVICES	The number of devices, else 1.
 *	GPUHASH_FAULT_REFUSE_REGISTER	memory_register fails.
 *
 * gh_cuda_fault_arm is that of the CUDA engine's builds with fault points.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* flock */
#endif

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "fault.h"

#define EXPORTED __attribute__((visibility("default")))

/* A request that was submitted and has not ended. */
typedef struct Flight
{
	GhRequest  *request;
	GhRequest	inner;			/* the CPU engine's */
	bool		fails;			/* does half, and ends with the device */
	bool		polled;
	struct Flight *next;
} Flight;

/* What a request's Flight is found by: GhRequest.engine_state */
#define STATE_FLIGHT 0

typedef struct FaultTable
{
	GhTable		common;			/* first */
	FaultMemory *memory;
	GhTableOptions options;
	GhTable    *inner;			/* of the CPU engine */
	bool		made;			/* by a pipeline */
	bool		failed;			/* it met a failure of the device */
	Flight	   *first;			/* oldest */
	Flight	   *last;
	uint64_t	bytes_to_device;
	uint64_t	bytes_from_device;
} FaultTable;

static _Atomic uint64_t allocations_left;
static _Atomic uint64_t launches_left;

EXPORTED const GhEngine *gh_cuda_engine(void);
EXPORTED void gh_cuda_fault_arm(uint64_t allocation, uint64_t launch);

/* ---------------------------------------------------------------- failures */

void
gh_cuda_fault_arm(uint64_t allocation, uint64_t launch)
{
	atomic_store(&allocations_left, allocation);
	atomic_store(&launches_left, launch);
}

/* One thread brings the count to 0. */
static bool
fault_due(_Atomic uint64_t *left)
{
	uint64_t	now = atomic_load(left);

	while (now > 0 && !atomic_compare_exchange_weak(left, &now, now - 1))
		continue;
	return now == 1;
}

bool
fault_allocation_due(void)
{
	return fault_due(&allocations_left);
}

bool
fault_launch_due(void)
{
	return fault_due(&launches_left);
}

/* The file's lock keeps threads and processes apart. */
bool
fault_device_works(bool is_request)
{
	const char *path = getenv("GPUHASH_FAULT_FILE");
	int			file = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	char		text[24] = "";
	bool		works = true;
	long		left;

	if (file < 0)
		return true;
	while (flock(file, LOCK_EX) != 0 && errno == EINTR)
		continue;
	/* an empty file is one that the test is about to write */
	if (pread(file, text, sizeof(text) - 1, 0) > 0)
	{
		left = strtol(text, NULL, 10);
		works = left > 0;
		if (works && is_request)
		{
			/* as long as any that was there before */
			int			length = snprintf(text, sizeof(text), "%-21ld\n", left - 1);

			works = pwrite(file, text, (size_t) length, 0) == length;
		}
	}
	close(file);
	return works;
}

GhStatus
fault_fail(GhError *error)
{
	return gh_error_set(error, GH_DEVICE_ERROR, "the test lets the device fail");
}

/* ------------------------------------------------------------------ devices */

static int
devices(void)
{
	const char *text = getenv("GPUHASH_FAULT_DEVICES");
	int			count = text != NULL ? atoi(text) : 1;

	return count < FAULT_DEVICES_MAX ? count : FAULT_DEVICES_MAX;
}

static GhStatus
fault_device_count(int *count, GhError *error)
{
	*count = devices();
	if (*count > 0)
		return GH_OK;
	*count = 0;
	return gh_error_set(error, GH_UNAVAILABLE, "the test has no device");
}

GhStatus
fault_open_device(int device, GhError *error)
{
	if (device < 0 || device >= devices())
		return gh_error_set(error, GH_INVALID, "the test has no device %d", device);
	return GH_OK;
}

static GhStatus
fault_device_info(int device, GhDeviceInfo *info, GhError *error)
{
	GhStatus	status = fault_open_device(device, error);
	uint64_t	taken;

	memset(info, 0, sizeof(*info));
	if (status != GH_OK)
		return status;
	taken = fault_memory_taken(device);
	strcpy(info->name, "device of the tests");
	info->memory_total = FAULT_DEVICE_BYTES;
	/* more than there is seems taken while some of it is about to be refused */
	info->memory_free = taken < FAULT_DEVICE_BYTES ? FAULT_DEVICE_BYTES - taken : 0;
	info->multiprocessors = 1;
	return GH_OK;
}

static void *
fault_buffer_alloc(int device, size_t bytes)
{
	GhError		ignored;
	void	   *buffer = NULL;

	if (fault_open_device(device, &ignored) == GH_OK && fault_device_works(false))
		buffer = gh_cpu_engine()->buffer_alloc(0, bytes);
	/* it is as good as registered */
	if (buffer != NULL && range_register(buffer, bytes, false, &ignored) != GH_OK)
	{
		gh_cpu_engine()->buffer_free(buffer);
		return NULL;
	}
	return buffer;
}

static void
fault_buffer_free(void *buffer)
{
	if (buffer != NULL)
		range_unregister(buffer);
	gh_cpu_engine()->buffer_free(buffer);
}

/* -------------------------------------------------------- registered memory */

static GhStatus
fault_memory_register(int device, void *memory, size_t bytes, bool read_only,
					  GhError *error)
{
	uintptr_t	place = (uintptr_t) memory | bytes;
	GhStatus	status = fault_open_device(device, error);

	if (status != GH_OK)
		return status;
	if (memory == NULL || bytes == 0 || place % (uintptr_t) sysconf(_SC_PAGESIZE) != 0)
		return gh_error_set(error, GH_INVALID, "what is to be registered is not whole pages");
	if (getenv("GPUHASH_FAULT_REFUSE_REGISTER") != NULL)
		return gh_error_set(error, GH_NO_MEMORY, "the test lets no memory be registered");
	return range_register(memory, bytes, read_only, error);
}

static void
fault_memory_unregister(int device, void *memory)
{
	(void) device;
	range_unregister(memory);
}

/* ------------------------------------------------------------------- flights */

/* The request has ended: the oldest flight is its. */
static void
flight_end(FaultTable *table, GhStatus status)
{
	Flight	   *flight = table->first;
	GhRequest  *request = flight->request;
	const GhRequest *inner = &flight->inner;

	request->outcome = inner->outcome;
	/* a build is done in full or not at all */
	if (status != GH_OK && request->op == GH_BUILD)
		request->outcome.done = 0;
	request->error = inner->error;
	request->status = status == GH_DEVICE_ERROR ? fault_fail(&request->error) :
		fault_status_of(table->memory, status, &request->error);
	request->table = NULL;
	table->first = flight->next;
	if (table->first == NULL)
		table->last = NULL;
	free(flight);
}

/* A slice of the oldest request; after a failure, all end. */
static void
table_advance(FaultTable *table)
{
	Flight	   *flight = table->first;

	if (gh_cpu_engine()->poll(&flight->inner) == GH_BUSY)
		return;
	table->failed = flight->fails;
	if (!table->failed)
		flight_end(table, flight->inner.status);
	while (table->failed && table->first != NULL)
		flight_end(table, GH_DEVICE_ERROR);
}

/* Counts the bytes that the request transfers; false: not as its arrays are. */
static bool
count_transfers(FaultTable *table, const GhRequest *request)
{
	const GhTableOptions *options = &table->options;
	uint64_t	count = request->count;
	uint64_t	values = request->op == GH_FIND_ALL ? request->values_capacity : count;
	const struct
	{
		const void *array;
		uint64_t	bytes;
		bool		written;
	}			arrays[] = {
		{request->keys, count * options->key_size, false},
		{request->values_in, count * options->value_size, false},
		{request->ops, count, false},
		{request->values_out, values * options->value_size, true},
		{request->flags_out, count, true},
		{request->counts_out, count * sizeof(uint64_t), true},
		{request->offsets_out, (count + 1) * sizeof(uint64_t), true}
	};

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
	{
		if (arrays[i].array == NULL || arrays[i].bytes == 0)
			continue;
		if (!can_transfer(arrays[i].array, arrays[i].bytes, arrays[i].written))
			return false;
		*(arrays[i].written ? &table->bytes_from_device : &table->bytes_to_device) +=
			arrays[i].bytes;
	}
	return true;
}

/* Gives the request to the CPU engine, or half of it when the device is to fail. */
static GhStatus
flight_start(FaultTable *table, Flight *flight)
{
	GhRequest  *request = flight->request;
	GhRequest  *inner = &flight->inner;

	if (!count_transfers(table, request))
		return gh_error_set(&request->error, GH_INVALID,
							"an array of the request is not where a device reads or writes");
	flight->fails = !fault_device_works(true) || fault_launch_due();
	*inner = *request;
	if (flight->fails)
		inner->count = inner->outcome.done + (inner->count - inner->outcome.done) / 2;
	if (gh_cpu_engine()->submit(table->inner, inner) > GH_BUSY)
	{
		request->error = inner->error;
		return inner->status;
	}
	request->engine_state[STATE_FLIGHT] = (uintptr_t) flight;
	if (table->last == NULL)
		table->first = flight;
	else
		table->last->next = flight;
	table->last = flight;
	return GH_BUSY;
}

static GhStatus
fault_submit(GhTable *common, GhRequest *request)
{
	FaultTable *table = (FaultTable *) common;
	Flight	   *flight;
	GhStatus	status;

	request->table = NULL;
	if (table->failed)
		return request->status = fault_fail(&request->error);
	status = table->made ? gh_made_request_check(table->options.value_size, request, &request->error) :
		gh_request_check(&table->options, request, &request->error);
	if (status != GH_OK)
		return request->status = status;
	flight = calloc(1, sizeof(*flight));
	if (flight == NULL)
		return request->status = gh_error_set(&request->error, GH_NO_MEMORY, "out of memory");
	flight->request = request;
	status = flight_start(table, flight);
	if (status == GH_BUSY)
		request->table = common;
	else
		free(flight);
	return request->status = status;
}

static GhStatus
fault_poll(GhRequest *request)
{
	Flight	   *flight;

	if (request->status != GH_BUSY || request->table == NULL)
		return request->status;
	flight = (Flight *) (uintptr_t) request->engine_state[STATE_FLIGHT];
	if (!flight->polled && (request->op == GH_FIND || request->op == GH_COUNT))
		flight->polled = true;
	else
		table_advance((FaultTable *) request->table);
	return request->status;
}

static GhStatus
fault_wait(GhRequest *request)
{
	while (fault_poll(request) == GH_BUSY)
		continue;
	return request->status;
}

/* -------------------------------------------------------------------- tables */

/* Waits for what was submitted, before a call that is not a request. */
static GhStatus
table_enter(FaultTable *table, GhError *error)
{
	while (table->first != NULL)
		table_advance(table);
	if (!fault_device_works(false) || fault_launch_due())
		table->failed = true;
	return table->failed ? fault_fail(error) : GH_OK;
}

static void
fault_table_destroy(GhTable *common)
{
	FaultTable *table = (FaultTable *) common;

	if (table == NULL)
		return;
	/* requests may be gone already: they are not looked at */
	while (table->first != NULL)
	{
		Flight	   *flight = table->first;

		table->first = flight->next;
		free(flight);
	}
	gh_cpu_engine()->table_destroy(table->inner);
	fault_memory_leave(table->memory);
	free(table);
}

GhTable *
fault_table_wrap(FaultMemory *memory, GhTable *inner, uint32_t value_size)
{
	FaultTable *table = calloc(1, sizeof(*table));

	if (table == NULL)
		return NULL;
	table->common.engine = gh_cuda_engine();
	table->memory = fault_memory_share(memory);
	table->made = true;
	table->options.key_size = sizeof(uint64_t);
	table->options.value_size = value_size;
	table->options.device = memory->device;
	table->inner = inner;
	return &table->common;
}

GhTable *
fault_table_inner(GhTable *table)
{
	return table != NULL && table->engine == gh_cuda_engine() ? ((FaultTable *) table)->inner : table;
}

static GhStatus
fault_table_create(const GhHost *host, const GhTableOptions *options, GhTable **result,
				   GhError *error)
{
	GhTableOptions inner;
	GhHost		inner_host;
	FaultTable *table;
	GhStatus	status;

	*result = NULL;
	if (options != NULL)
		inner = *options;
	status = gh_options_check(options != NULL ? &inner : NULL, error);
	if (status == GH_OK)
		status = fault_open_device(inner.device, error);
	if (status != GH_OK)
		return status;
	if (!fault_device_works(false))
		return fault_fail(error);
	table = calloc(1, sizeof(*table));
	if (table != NULL)
		table->memory = fault_memory_make(host, inner.device);
	if (table == NULL || table->memory == NULL)
	{
		free(table);
		return gh_error_set(error, GH_NO_MEMORY, "out of memory");
	}
	table->common.engine = gh_cuda_engine();
	table->options = inner;
	inner.device = 0;
	if (inner.pages)
	{
		/* the CPU engine would count all */
		fault_memory_page(table->memory, inner.memory_limit);
		inner.memory_limit = 0;
	}
	fault_inner_host(table->memory, &inner_host);
	status = gh_cpu_engine()->table_create(&inner_host, &inner, &table->inner, error);
	if (status == GH_OK)
	{
		*result = &table->common;
		return GH_OK;
	}
	status = fault_status_of(table->memory, status, error);
	fault_memory_leave(table->memory);
	free(table);
	return status;
}

static GhRef
fault_table_root(const GhTable *table)
{
	(void) table;
	return 0;
}

static GhStatus
fault_table_attach(const GhHost *host, GhRef root, GhTable **result, GhError *error)
{
	(void) host;
	(void) root;
	*result = NULL;
	return gh_error_set(error, GH_UNSUPPORTED, "a table of a device has one handle");
}

static GhStatus
fault_table_clear(GhTable *common, GhError *error)
{
	FaultTable *table = (FaultTable *) common;
	GhStatus	status = table_enter(table, error);

	if (status == GH_OK)
		status = gh_cpu_engine()->table_clear(table->inner, error);
	return fault_status_of(table->memory, status, error);
}

static GhStatus
fault_table_reserve(GhTable *common, uint64_t keys, GhError *error)
{
	FaultTable *table = (FaultTable *) common;
	GhStatus	status = table_enter(table, error);

	if (status == GH_OK)
		status = gh_cpu_engine()->table_reserve(table->inner, keys, error);
	return fault_status_of(table->memory, status, error);
}

static GhStatus
fault_table_flush(GhTable *common, GhError *error)
{
	FaultTable *table = (FaultTable *) common;
	GhStatus	status = table_enter(table, error);

	if (status == GH_OK)
		status = gh_cpu_engine()->table_flush(table->inner, error);
	return fault_status_of(table->memory, status, error);
}

static GhStatus
fault_table_export(GhTable *common, GhCursor *cursor, uint64_t capacity, void *keys,
				   void *values, uint64_t *count, GhError *error)
{
	FaultTable *table = (FaultTable *) common;
	GhStatus	status = table_enter(table, error);

	*count = 0;
	if (status == GH_OK)
		status = gh_cpu_engine()->table_export(table->inner, cursor, capacity, keys, values,
											   count, error);
	return fault_status_of(table->memory, status, error);
}

/* Which subtable is where nobody looks at: each is where all of them are on average. */
static void
tell_paged(const FaultTable *table, GhTableStats *stats)
{
	double		share = stats->bytes == 0 ? 0 : (double) table->memory->paged / (double) stats->bytes;

	for (uint32_t i = 0; i < stats->subtables; i++)
	{
		stats->subtable[i].bytes_paged = (uint64_t) (share * (double) stats->subtable[i].bytes);
		stats->subtable[i].bytes -= stats->subtable[i].bytes_paged;
	}
	stats->bytes_paged = table->memory->paged;
	stats->bytes -= stats->bytes_paged;
}

static GhStatus
fault_table_stats(GhTable *common, GhTableStats *stats, GhError *error)
{
	FaultTable *table = (FaultTable *) common;
	GhStatus	status;

	memset(stats, 0, sizeof(*stats));
	if (!fault_device_works(false))
		table->failed = true;
	if (table->failed)
		return fault_fail(error);
	status = gh_cpu_engine()->table_stats(table->inner, stats, error);
	tell_paged(table, stats);
	stats->bytes_to_device = table->bytes_to_device;
	stats->bytes_from_device = table->bytes_from_device;
	return status;
}

static const GhEngine fault_engine = {
	.abi_version = GH_ABI_VERSION,
	.name = "cuda",
	.asynchronous = true,
	.on_device = true,
	.device_count = fault_device_count,
	.open_device = fault_open_device,
	.device_info = fault_device_info,
	.buffer_alloc = fault_buffer_alloc,
	.buffer_free = fault_buffer_free,
	.memory_register = fault_memory_register,
	.memory_unregister = fault_memory_unregister,
	.table_create = fault_table_create,
	.table_root = fault_table_root,
	.table_attach = fault_table_attach,
	.table_detach = fault_table_destroy,
	.table_destroy = fault_table_destroy,
	.table_clear = fault_table_clear,
	.table_reserve = fault_table_reserve,
	.table_flush = fault_table_flush,
	.table_export = fault_table_export,
	.table_stats = fault_table_stats,
	.submit = fault_submit,
	.poll = fault_poll,
	.wait = fault_wait,
	.pipelines = &fault_pipelines,
};

const GhEngine *
gh_cuda_engine(void)
{
	return &fault_engine;
}
