/*
 * loader.c
 *		Opens the CUDA engine's library on first use.
 *
 * The library stays open for the life of the process: CUDA does not survive
 * being unloaded.  That also holds for one that was refused, since a later
 * try (a driver that came back) finds it already open.
 */
#include "engine/engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* What the last try came to; a process tries one library. */
static struct
{
	bool		tried;
	GhStatus	status;
	GhError		error;
	const GhEngine *engine;
	void	   *library;
}			loaded;

static GhStatus
open_library(const char *path, GhError *error)
{
	const char *reason;

	if (path == NULL || path[0] != '/')
		return gh_error_set(error, GH_UNAVAILABLE,
							"the CUDA engine's library is not given by an absolute path");
	if (loaded.library == NULL)
		loaded.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (loaded.library != NULL)
		return GH_OK;
	reason = dlerror();
	return gh_error_set(error, GH_UNAVAILABLE, "could not open the CUDA engine's library: %s",
						reason != NULL ? reason : path);
}

static GhStatus
try_engine(const char *path, const GhEngine **engine, GhError *error)
{
	GhEngineEntry entry;
	const GhEngine *found;
	void	   *symbol;
	int			devices = 0;
	GhStatus	status;

	status = open_library(path, error);
	if (status != GH_OK)
		return status;
	symbol = dlsym(loaded.library, GH_CUDA_ENTRY);
	if (symbol == NULL)
		return gh_error_set(error, GH_UNAVAILABLE, "the library \"%s\" has no symbol \"%s\"",
							path, GH_CUDA_ENTRY);
	/* ISO C has no conversion from an object to a function pointer */
	memcpy(&entry, &symbol, sizeof(entry));
	found = entry();
	if (found == NULL || found->abi_version != GH_ABI_VERSION)
		return gh_error_set(error, GH_UNAVAILABLE,
							"the library \"%s\" is of ABI version %u, wanted is %d",
							path, found != NULL ? (unsigned) found->abi_version : 0,
							GH_ABI_VERSION);
	status = found->device_count(&devices, error);
	if (status != GH_OK)
		return status;
	if (devices <= 0)
		return gh_error_set(error, GH_UNAVAILABLE, "there is no usable CUDA device");
	*engine = found;
	return GH_OK;
}

GhStatus
gh_engine_load(const char *path, bool retry, const GhEngine **engine, GhError *error)
{
	*engine = NULL;
	if (!loaded.tried || (retry && loaded.status != GH_OK))
	{
		memset(&loaded.error, 0, sizeof(loaded.error));
		loaded.engine = NULL;
		loaded.status = try_engine(path, &loaded.engine, &loaded.error);
		loaded.tried = true;
	}
	*engine = loaded.engine;
	if (loaded.status != GH_OK && error != NULL)
		*error = loaded.error;
	return loaded.status;
}
