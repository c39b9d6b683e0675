/*
 * host.c
 *		What an engine is given by the backend that uses it: memory, waits, its library.
 *
 * The engines know nothing of PostgreSQL; this file is the other side of the ABI.  It hands
 * them memory out of a memory context, waits for them so that cancel and statement_timeout
 * take effect, and opens the CUDA engine's library.
 *
 * That is opened on first need and never by the postmaster.  All signals are blocked
 * meanwhile, because the driver starts threads, and a thread started with signals open could
 * run one of PostgreSQL's handlers.
 */
#include "postgres.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "compat.h"
#include "gpuhash.h"
#include "host.h"

#define GH_CUDA_LIBRARY "gpuhash_cuda.so"


/* ---------------------------------------------------------------- memory */

static GhRef
host_alloc(void *ctx, size_t bytes)
{
	char	   *block;
	char	   *aligned;

	if (bytes > MaxAllocHugeSize - GH_HOST_ALIGNMENT - sizeof(void *))
		return 0;
	block = MemoryContextAllocExtended((MemoryContext) ctx,
									   bytes + GH_HOST_ALIGNMENT + sizeof(void *),
									   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (block == NULL)
		return 0;
	aligned = (char *) TYPEALIGN(GH_HOST_ALIGNMENT, block + sizeof(void *));
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

GhRef
gh_area_alloc(dsa_area *area, Size bytes, Size head, dsa_pointer *start)
{
	char	   *address;

	*start = dsa_allocate_extended(area, bytes, DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM);
	if (!DsaPointerIsValid(*start))
		return 0;
	/* addresses of a block differ between processes by whole pages only */
	address = dsa_get_address(area, *start);
	return *start + ((char *) TYPEALIGN(GH_HOST_ALIGNMENT, address + head) - address);
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

/* ------------------------------------------------------ page-locked memory */

/* Of the machine's memory: the rest cannot be swapped out by it. */
#define GH_PAGING_SHARE 4
/* And no more than is page-locked (0.25 s a GB) in half of gpuhash.device_timeout, for it may be one request that does so. */
#define GH_PAGING_MOST ((uint64) 64 << 30)
/* Sessions without the service do not know of each other. */
#define GH_PAGING_SESSIONS 16

/* For each of so many that share it. */
uint64
gh_paging_limit(int sharers)
{
	if (gh_paging_memory >= 0)
		return (uint64) gh_paging_memory * 1024 * 1024;
	return Min((uint64) sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / GH_PAGING_SHARE / Max(sharers, 1), GH_PAGING_MOST);
}

/* Bytes that tables of this session have. */
static uint64 session_paged;

static bool
take_paged(void *ctx, uint64_t bytes)
{
	uint64		limit = gh_paging_limit(GH_PAGING_SESSIONS);

	(void) ctx;
	if (session_paged > limit || bytes > limit - session_paged)
		return false;
	session_paged += bytes;
	return true;
}

static void
give_paged(void *ctx, uint64_t bytes)
{
	(void) ctx;
	session_paged -= bytes;
}

void
gh_host_pages(GhHost *host)
{
	host->take_host = take_paged;
	host->give_host = give_paged;
}

/* ------------------------------------------------ the CUDA engine's library */

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

GhStatus
gh_cuda_engine_load(int device, bool retry, const GhEngine **engine, GhError *error)
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

/* --------------------------------------------------------------- requests */

void
gh_serve_interrupt(void)
{
	CHECK_FOR_INTERRUPTS();
	if (InterruptPending && !INTERRUPTS_CAN_BE_PROCESSED())
		elog(ERROR, "an engine is used while interrupts are held off");
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
