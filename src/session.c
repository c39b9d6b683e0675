/*
 * session.c
 *		An engine as one backend uses it.
 *
 * The engines know nothing of PostgreSQL; this file is the other side of the
 * ABI.  It hands them memory out of a memory context, waits for them so that
 * cancel and statement_timeout take effect, chooses between them, and turns
 * their statuses into errors with an SQLSTATE and a cure.
 *
 * The CUDA engine is opened on first need and never by the postmaster.  All
 * signals are blocked meanwhile, because the driver starts threads, and a
 * thread started with signals open could run one of PostgreSQL's handlers.
 */
#include "postgres.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "access/parallel.h"
#include "common/pg_prng.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/memutils.h"

#include "compat.h"
#include "gpuhash.h"
#include "service/service.h"
#include "session.h"

#define GH_CUDA_LIBRARY "gpuhash_cuda.so"

/* The device that sessions without the service use. */
#define GH_SESSION_DEVICE 0

/*
 * With engine = auto, a session pays 0.3 s and 0.5 GB of device memory for a
 * CUDA context of its own.  The CPU engine handles a key in 20 to 60 ns, so the
 * context pays from about this many keys on.  Once it is there, anything that
 * fills a few batches goes to the device.
 */
#define GH_AUTO_KEYS_FIRST 10000000.0
#define GH_AUTO_KEYS_OPEN 200000.0

#define GH_ALIGNMENT 64

/* ---------------------------------------------------------------- memory */

static GhRef
host_alloc(void *ctx, size_t bytes)
{
	char	   *block;
	char	   *aligned;

	if (bytes > MaxAllocHugeSize - GH_ALIGNMENT - sizeof(void *))
		return 0;
	block = MemoryContextAllocExtended((MemoryContext) ctx,
									   bytes + GH_ALIGNMENT + sizeof(void *),
									   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (block == NULL)
		return 0;
	aligned = (char *) TYPEALIGN(GH_ALIGNMENT, block + sizeof(void *));
	((void **) aligned)[-1] = block;	/* what host_free gives back */
	return (GhRef) (uintptr_t) aligned;
}

static void
host_free(void *ctx, GhRef ref)
{
	(void) ctx;
	if (ref != 0)
		pfree(((void **) (uintptr_t) ref)[-1]);
}

static void *
host_address(void *ctx, GhRef ref)
{
	(void) ctx;
	return (void *) (uintptr_t) ref;
}

void
gh_host_init(GhHost *host, MemoryContext context)
{
	memset(host, 0, sizeof(*host));
	host->ctx = context;
	host->alloc = host_alloc;
	host->free = host_free;
	host->address = host_address;
	host->stop = &InterruptPending;
}

/* ---------------------------------------------------------------- engines */

/*
 * gpuhash.so as this process opened it: a library that came by dynamic_library_path, by a path of its own or in
 * $libdir/plugins need not lie in pkglibdir.  Empty: the system does not tell.  Made at the first call, which is
 * the main thread's.
 */
const char *
gh_library_path(void)
{
	static char path[MAXPGPATH];
	Dl_info		found;

	if (path[0] == '\0' && dladdr(path, &found) != 0 && found.dli_fname != NULL)
	{
		/* LOAD takes paths from the data directory, where every server process stands */
		if (is_absolute_path(found.dli_fname))
			strlcpy(path, found.dli_fname, sizeof(path));
		else
			snprintf(path, sizeof(path), "%s/%s", DataDir, found.dli_fname);
		canonicalize_path(path);
	}
	return path;
}

/*
 * The CUDA engine's library: beside gpuhash.so, or else in pkglibdir.  Where neither is there, the first, for a
 * message.  Looked for anew at each call, as an installation may come later.  The main thread calls first.
 */
const char *
gh_cuda_library_path(void)
{
	static char beside[MAXPGPATH];
	static char installed[MAXPGPATH];

	if (installed[0] == '\0')
	{
		strlcpy(beside, gh_library_path(), sizeof(beside));
		get_parent_directory(beside);
		if (beside[0] == '\0')
			strlcpy(beside, pkglib_path, sizeof(beside));
		join_path_components(beside, beside, GH_CUDA_LIBRARY);
		join_path_components(installed, pkglib_path, GH_CUDA_LIBRARY);
	}
	return access(beside, F_OK) != 0 && access(installed, F_OK) == 0 ? installed : beside;
}

/*
 * Loads the CUDA engine and creates the context, with signals blocked.  Does
 * not throw.
 */
static GhStatus
load_cuda(int device, bool retry, const GhEngine **engine, GhError *error)
{
	sigset_t	all;
	sigset_t	saved;
	GhStatus	status;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &saved);
	status = gh_engine_load(gh_cuda_library_path(), retry, engine, error);
	if (status == GH_OK)
		status = (*engine)->open_device(device, error);
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
	return status;
}

/* What the session knows of the CUDA engine after its first try. */
static const GhEngine *cuda_engine = NULL;
static bool cuda_tried = false;
static GhError cuda_error;

const GhEngine *
gh_cuda_engine_open(bool retry, GhError *error)
{
	Assert(IsUnderPostmaster || !IsPostmasterEnvironment);
	if (!cuda_tried || (cuda_engine == NULL && retry))
	{
		const GhEngine *engine = NULL;

		memset(&cuda_error, 0, sizeof(cuda_error));
		cuda_engine = load_cuda(GH_SESSION_DEVICE, retry, &engine, &cuda_error) == GH_OK ? engine : NULL;
		cuda_tried = true;
	}
	if (cuda_engine == NULL && error != NULL)
		*error = cuda_error;
	return cuda_engine;
}

const GhEngine *
gh_cuda_engine_for_worker(int device, GhError *error)
{
	const GhEngine *engine = NULL;

	return load_cuda(device, true, &engine, error) == GH_OK ? engine : NULL;
}

/*
 * With the service no session opens a GPU of its own.  A worker that is about to come
 * back is no reason for an error, unless errors are asked for.
 */
static const GhEngine *
choose_service(double keys, const char **reason)
{
	bool		down;

	if (gh_engine_setting == GH_ENGINE_AUTO && keys < GH_AUTO_KEYS_OPEN)
		*reason = "too few rows for the GPU";
	else if (gh_service_ready(reason, &down))
		return gh_service_engine();
	else if (gh_engine_setting == GH_ENGINE_CUDA && (!down || gh_fallback_setting == GH_FALLBACK_ERROR))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the CUDA engine is not available: %s", *reason),
				 errhint("Look at the view gpuhash_devices, or set \"gpuhash.engine\" to \"auto\" or \"cpu\".")));
	else
		gh_service_count_fallback(down ? GH_FALLBACK_WORKER_DOWN : GH_FALLBACK_NO_GPU);
	return gh_cpu_engine();
}

const GhEngine *
gh_choose_engine(double keys, const char **reason)
{
	GhError		error;

	*reason = NULL;
	if (gh_engine_setting == GH_ENGINE_CPU)
		return gh_cpu_engine();
	if (gh_service_enabled())
		return choose_service(keys, reason);

	if (gh_engine_setting == GH_ENGINE_CUDA)
	{
		/* A context in every worker would cost more than it brings. */
		if (IsParallelWorker())
		{
			*reason = "parallel worker";
			return gh_cpu_engine();
		}
		if (gh_cuda_engine_open(true, &error) == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("the CUDA engine is not available: %s", error.message),
					 errhint("Set \"gpuhash.engine\" to \"auto\" or \"cpu\" to use the CPU engine.")));
		return cuda_engine;
	}

	if (IsParallelWorker())
		*reason = "parallel worker";
	else if (cuda_tried && cuda_engine == NULL)
		*reason = "no usable GPU";
	else if (keys < (cuda_tried ? GH_AUTO_KEYS_OPEN : GH_AUTO_KEYS_FIRST))
		*reason = "too few rows for the GPU";
	else if (gh_cuda_engine_open(false, NULL) == NULL)
		*reason = "no usable GPU";
	return *reason == NULL ? cuda_engine : gh_cpu_engine();
}

bool
gh_device_is_expected(double keys)
{
	const char *reason;
	bool		down;

	return gh_engine_setting != GH_ENGINE_CPU && gh_service_enabled() &&
		(gh_engine_setting == GH_ENGINE_CUDA || keys >= GH_AUTO_KEYS_OPEN) &&
		gh_service_ready(&reason, &down);
}

void
gh_options_init(GhTableOptions *options, const GhEngine *engine)
{
	memset(options, 0, sizeof(*options));
	options->key_size = sizeof(uint64);
	options->value_size = sizeof(uint64);
	options->subtables = gh_subtables;
	options->fill_min = gh_fill_min;
	options->fill_max = gh_fill_max;
	options->seed = pg_prng_uint64(&pg_global_prng_state);
	if (engine == gh_service_engine())
		options->device = gh_service_choose_device();
	else if (engine->asynchronous)
	{
		options->device = GH_SESSION_DEVICE;
		/* to an engine 0 means no limit */
		if (gh_device_memory_limit >= 0)
			options->memory_limit = Max((uint64) gh_device_memory_limit * 1024 * 1024, 1);
	}
}

bool
gh_buffers_alloc(const GhEngine *engine, int n, Size bytes, void **buffers)
{
	if (engine == gh_service_engine())
		return gh_service_reserve(n, bytes, buffers);
	for (int i = 0; i < n; i++)
	{
		buffers[i] = engine->buffer_alloc(GH_SESSION_DEVICE, bytes);
		if (buffers[i] != NULL)
			continue;
		while (i > 0)
			engine->buffer_free(buffers[--i]);
		return false;
	}
	return true;
}

void
gh_count_fallback(const GhEngine *engine, const GhError *error)
{
	if (engine == gh_service_engine())
		gh_service_count_fallback(gh_service_fallback_of(error));
}

/* --------------------------------------------------------------- requests */

void
gh_serve_interrupt(void)
{
	CHECK_FOR_INTERRUPTS();
	if (InterruptPending && !INTERRUPTS_CAN_BE_PROCESSED())
		elog(ERROR, "hash table is used while interrupts are held off");
}

/*
 * An engine whose wait was cut short may still be writing into the request's
 * arrays.  GH_STOPPED says that it no longer is, so this is the place where an
 * interrupt may throw.
 */
GhStatus
gh_wait_request(GhTable *table, GhRequest *request)
{
	const GhEngine *engine = table->engine;

	for (;;)
	{
		GhStatus	status = engine->wait(request);

		if (status != GH_STOPPED)
			return status;
		gh_serve_interrupt();
		/* the service still has it */
		if (request->status == GH_BUSY)
			continue;
		status = engine->submit(table, request);
		if (status != GH_OK && status != GH_BUSY)
			return status;
	}
}

GhStatus
gh_run_request(GhTable *table, GhRequest *request)
{
	GhStatus	status;

	CHECK_FOR_INTERRUPTS();
	status = table->engine->submit(table, request);
	if (status != GH_OK && status != GH_BUSY)
		return status;
	return gh_wait_request(table, request);
}

GhStatus
gh_create_table(const GhEngine *engine, const GhHost *host,
				const GhTableOptions *options, GhTable **table, GhError *error)
{
	for (;;)
	{
		GhStatus	status = engine->table_create(host, options, table, error);

		if (status != GH_STOPPED)
			return status;
		gh_serve_interrupt();
	}
}

GhStatus
gh_clear_table(GhTable *table, GhError *error)
{
	for (;;)
	{
		GhStatus	status = table->engine->table_clear(table, error);

		if (status != GH_STOPPED)
			return status;
		gh_serve_interrupt();
	}
}

/* ----------------------------------------------------------------- errors */

void
gh_report_error(const GhError *error, const char *what)
{
	int			code = ERRCODE_INTERNAL_ERROR;
	const char *hint = NULL;

	switch (error->status)
	{
		case GH_NO_MEMORY:
			code = ERRCODE_OUT_OF_MEMORY;
			hint = strcmp(error->message, GH_NO_BUFFERS_MESSAGE) == 0 ?
				"Raise \"gpuhash.shared_memory\"." :
				"Lower \"work_mem\", or run fewer sessions at a time.";
			break;
		case GH_LIMIT:
			code = ERRCODE_CONFIGURATION_LIMIT_EXCEEDED;
			hint = "Raise \"gpuhash.device_memory_limit\" for a table on the GPU, or set \"gpuhash.enabled\" to \"off\" for a join without one.";
			break;
		case GH_INVALID:
			code = ERRCODE_INVALID_PARAMETER_VALUE;
			hint = "Change \"gpuhash.subtables\", \"gpuhash.fill_min\" or \"gpuhash.fill_max\".";
			break;
		case GH_UNSUPPORTED:
			code = ERRCODE_FEATURE_NOT_SUPPORTED;
			break;
		case GH_UNAVAILABLE:
			code = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
			hint = "Set \"gpuhash.engine\" to \"auto\" or \"cpu\" to use the CPU engine.";
			break;
		case GH_DEVICE_ERROR:
			code = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
			hint = gh_service_enabled() ?
				"Look at the view gpuhash_devices; a new worker starts by itself." :
				"Reconnect, or set \"gpuhash.engine\" to \"cpu\".";
			break;
		default:
			break;
	}
	ereport(ERROR,
			(errcode(code),
			 errmsg("could not %s: %s", what, error->message),
			 hint != NULL ? errhint("%s", hint) : 0));
	pg_unreachable();
}
