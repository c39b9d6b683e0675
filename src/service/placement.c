/*
 * placement.c
 *		Which engine and device a backend uses, and what its failures are to the user.
 *
 * The choice is made at execution, under the settings of that moment: gh_choose_engine.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "common/pg_prng.h"
#include "miscadmin.h"

#include "gpuhash.h"
#include "service/placement.h"
#include "service/service.h"

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
		cuda_engine = gh_cuda_engine_load(GH_SESSION_DEVICE, retry, &engine, &cuda_error) == GH_OK ? engine : NULL;
		cuda_tried = true;
	}
	if (cuda_engine == NULL && error != NULL)
		*error = cuda_error;
	return cuda_engine;
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
	{
		/* where there is none, that is why */
		if (gh_service_ready(reason, &down))
			*reason = "too few rows for the GPU";
	}
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
gh_device_may_be_expected(void)
{
	return gh_engine_setting != GH_ENGINE_CPU && gh_service_enabled();
}

bool
gh_device_is_expected(double keys)
{
	const char *reason;
	bool		down;

	return gh_device_may_be_expected() &&
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
	if (engine->shares_tables)
		options->device = gh_service_choose_device();
	else if (engine->on_device)
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
	/* such buffers are shared out: one by one, two processes might wait for each other's */
	if (engine->buffers_required)
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

static GhEvictor evictor = NULL;

void
gh_evictor_register(GhEvictor evict)
{
	evictor = evict;
}

bool
gh_make_room(const GhEngine *engine, GhStatus status, int device, uint64 bytes)
{
	return (status == GH_LIMIT || status == GH_NO_MEMORY || status == GH_TOO_MANY) && engine->shares_tables &&
		evictor != NULL &&
		evictor(device, bytes);
}

void
gh_count_fallback(const GhEngine *engine, const GhError *error)
{
	if (engine->shares_tables)
		gh_service_count_fallback(gh_service_fallback_of(error));
}

/* ----------------------------------------------------------------- errors */

GhStatus
gh_no_buffers(GhError *error)
{
	return gh_error_set(error, GH_NO_BUFFERS, "no buffer for transfers to the GPU is free");
}

void
gh_report_error(const GhError *error, const char *what)
{
	int			code = ERRCODE_INTERNAL_ERROR;
	const char *hint = NULL;

	switch (error->status)
	{
		case GH_NO_MEMORY:
			code = ERRCODE_OUT_OF_MEMORY;
			hint = "Lower \"work_mem\", or run fewer sessions at a time.";
			break;
		case GH_NO_BUFFERS:
			code = ERRCODE_OUT_OF_MEMORY;
			hint = "Raise \"gpuhash.shared_memory\".";
			break;
		case GH_LIMIT:
			code = ERRCODE_CONFIGURATION_LIMIT_EXCEEDED;
			hint = "Raise \"gpuhash.device_memory_limit\" for a table on the GPU, or set \"gpuhash.enabled\" to \"off\" for a join without one.";
			break;
		case GH_TOO_MANY:
			code = ERRCODE_PROGRAM_LIMIT_EXCEEDED;
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
		case GH_TIMEOUT:
			code = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
			hint = "Raise \"gpuhash.device_timeout\", or set \"gpuhash.engine\" to \"cpu\".";
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
