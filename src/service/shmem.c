/*
 * shmem.c
 *		The service's settings, its shared memory, and the registration of its
 *		workers: what happens in the postmaster, which never calls CUDA.
 *		Without the service, the settings alone.
 */
#include "postgres.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>

#include "access/parallel.h"
#include "access/twophase.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "gpuhash.h"
#include "service/client.h"
#include "service/placement.h"
#include "service/shared.h"

/* Of gpuhash.shared_memory, in kB. */
#define GH_SHARED_MEMORY_DEFAULT (64 * 1024)
#define GH_SHARED_MEMORY_MIN ((int) (GH_UNITS_MIN * GH_UNIT_BYTES / 1024))
#define GH_SHARED_MEMORY_MAX (1024 * 1024 * 1024)

/* A worker that ended is started again after so many seconds; a test ends many. */
#define GH_RESTART_SECONDS GH_WITH_FAULT_POINTS(1, 5)

/* Start of the transfer area: devices know memory by pages. */
#define GH_PAGE_BYTES 4096

#define GH_DEVICES_AUTO "auto"

/* Callers of gh_service_add_memory. */
#define GH_MEMORIES_MAX 8

GhService  *gh_service = NULL;

int			gh_device_timeout = 30000;
int			gh_worker_spin = 500;
bool		gh_register_buffers = true;
int			gh_resident_memory = -1;
bool		gh_reload_resident = true;
bool		gh_prewarm_columns = true;

static int	shared_memory_kb = GH_SHARED_MEMORY_DEFAULT;
static char *devices_setting = NULL;
static bool preloaded = false;

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

bool
gh_service_enabled(void)
{
	return gh_service != NULL;
}

/* ------------------------------------------------------------ settings */

/*
 * Without the service its settings are there, for who looks for them, and do nothing.  A statement that sets
 * one is told so.  A session that starts with gpuhash and finds one in the configuration is not: nobody there
 * could help it.  Who loads it by a statement, or creates the extension, is told once, of all of them.
 */
static const char *const setting_names[] = {
	"gpuhash.shared_memory", "gpuhash.devices", "gpuhash.device_timeout", "gpuhash.worker_spin",
	"gpuhash.register_buffers", "gpuhash.resident_memory", "gpuhash.reload_resident", "gpuhash.prewarm_columns"
};

typedef enum Setting
{
	SHARED_MEMORY,
	DEVICES,
	DEVICE_TIMEOUT,
	WORKER_SPIN,
	REGISTER_BUFFERS,
	RESIDENT_MEMORY,
	RELOAD_RESIDENT,
	PREWARM_COLUMNS
} Setting;

static bool defining = false;
static bool set_before[lengthof(setting_names)];	/* when the library came */

static void
note_unserved(Setting setting, GucSource source)
{
	if (preloaded || IsParallelWorker())
		return;
	if (defining)
		set_before[setting] = source != PGC_S_DEFAULT;
	else if (debug_query_string != NULL)
		ereport(WARNING,
				(errmsg("setting \"%s\" has no effect without the GPU service", setting_names[setting]),
				 errhint("Add \"gpuhash\" to \"shared_preload_libraries\" and restart the server.")));
}

static bool
check_shared_memory(int *newval, void **extra, GucSource source)
{
	note_unserved(SHARED_MEMORY, source);
	return true;
}

static bool
check_device_timeout(int *newval, void **extra, GucSource source)
{
	note_unserved(DEVICE_TIMEOUT, source);
	return true;
}

static bool
check_worker_spin(int *newval, void **extra, GucSource source)
{
	note_unserved(WORKER_SPIN, source);
	return true;
}

static bool
check_register_buffers(bool *newval, void **extra, GucSource source)
{
	note_unserved(REGISTER_BUFFERS, source);
	return true;
}

static bool
check_resident_memory(int *newval, void **extra, GucSource source)
{
	note_unserved(RESIDENT_MEMORY, source);
	return true;
}

static bool
check_reload_resident(bool *newval, void **extra, GucSource source)
{
	note_unserved(RELOAD_RESIDENT, source);
	return true;
}

static bool
check_prewarm_columns(bool *newval, void **extra, GucSource source)
{
	note_unserved(PREWARM_COLUMNS, source);
	return true;
}

/* Counts the numbers of a list like "0,2"; -1: it is no such list. */
static int
parse_devices(const char *list, int *numbers)
{
	int			count = 0;
	const char *at = list;

	for (;;)
	{
		char	   *end;
		long		number;

		while (isspace((unsigned char) *at))
			at++;
		if (!isdigit((unsigned char) *at) || count == GH_DEVICES_MAX)
			return -1;
		number = strtol(at, &end, 10);
		if (number < 0 || number > INT_MAX)
			return -1;
		for (int i = 0; i < count; i++)
			if (numbers[i] == number)
				return -1;
		numbers[count++] = (int) number;
		for (at = end; isspace((unsigned char) *at);)
			at++;
		if (*at == '\0')
			return count;
		if (*at++ != ',')
			return -1;
	}
}

static bool
check_devices(char **newval, void **extra, GucSource source)
{
	int			numbers[GH_DEVICES_MAX];

	(void) extra;
	if (*newval == NULL || strcmp(*newval, GH_DEVICES_AUTO) == 0 ||
		parse_devices(*newval, numbers) > 0)
	{
		note_unserved(DEVICES, source);
		return true;
	}
	GUC_check_errdetail("It must be \"auto\" or at most %d different device numbers with commas between them.",
						GH_DEVICES_MAX);
	return false;
}

/*
 * What "auto" means: a worker for each device file of the driver, and one that waits
 * for a GPU where there is none.  The driver itself is asked by the workers only.
 */
static int
count_device_files(void)
{
	DIR		   *dir = opendir("/dev");
	struct dirent *entry;
	int			count = 0;

	if (dir == NULL)
		return 1;
	while ((entry = readdir(dir)) != NULL)
		if (strncmp(entry->d_name, "nvidia", 6) == 0 && isdigit((unsigned char) entry->d_name[6]))
			count++;
	closedir(dir);
	return Min(Max(count, 1), GH_DEVICES_MAX);
}

/*
 * The devices of this server, by CUDA number: found once, for what depends on it must fit
 * together until the server ends, crash recovery included.
 */
static int	devices[GH_DEVICES_MAX];
static int	device_count = 0;

static void
find_devices(void)
{
	if (devices_setting != NULL && strcmp(devices_setting, GH_DEVICES_AUTO) != 0)
		device_count = parse_devices(devices_setting, devices);
	if (device_count > 0)
		return;
	device_count = count_device_files();
	for (int i = 0; i < device_count; i++)
		devices[i] = i;
}

/* PostgreSQL lets nobody define what only a start of the server changes, but then. */
static void
define_settings(void)
{
	GucContext	at_start = preloaded ? PGC_POSTMASTER : PGC_SUSET;
	GucContext	at_reload = preloaded ? PGC_SIGHUP : PGC_SUSET;

	DefineCustomIntVariable("gpuhash.shared_memory",
							"Shared memory through which sessions and GPUs exchange batches.",
							NULL,
							&shared_memory_kb,
							GH_SHARED_MEMORY_DEFAULT,
							GH_SHARED_MEMORY_MIN,
							GH_SHARED_MEMORY_MAX,
							at_start,
							GUC_UNIT_KB,
							check_shared_memory,
							NULL,
							NULL);
	DefineCustomStringVariable("gpuhash.devices",
							   "The GPUs to use, by CUDA device number: auto, or a list.",
							   "Each gets a background worker.",
							   &devices_setting,
							   GH_DEVICES_AUTO,
							   at_start,
							   0,
							   check_devices,
							   NULL,
							   NULL);
	DefineCustomIntVariable("gpuhash.device_timeout",
							"How long a request to a GPU may take before the GPU counts as lost.",
							"0: for ever.",
							&gh_device_timeout,
							30000,
							0,
							INT_MAX,
							PGC_SUSET,
							GUC_UNIT_MS,
							check_device_timeout,
							NULL,
							NULL);
	DefineCustomIntVariable("gpuhash.worker_spin",
							"Microseconds for which a worker looks for requests before it sleeps.",
							"0: it sleeps at once.",
							&gh_worker_spin,
							500,
							0,
							1000000,
							at_reload,
							0,
							check_worker_spin,
							NULL,
							NULL);
	DefineCustomBoolVariable("gpuhash.register_buffers",
							 "Lets GPUs read pages of tables in shared_buffers where they are.",
							 "Each worker registers shared_buffers with its GPU, for reading only. Otherwise pages are copied.",
							 &gh_register_buffers,
							 true,
							 at_reload,
							 0,
							 check_register_buffers,
							 NULL,
							 NULL);
	DefineCustomIntVariable("gpuhash.resident_memory",
							"Memory of a GPU for pages of tables that stay there between queries.",
							"-1: what other uses leave, up to three quarters of the GPU. 0: none.",
							&gh_resident_memory,
							-1,
							-1,
							INT_MAX,
							at_reload,
							GUC_UNIT_MB,
							check_resident_memory,
							NULL,
							NULL);
	DefineCustomBoolVariable("gpuhash.reload_resident",
							 "Loads pages that were on a GPU before a restart there again.",
							 "They are remembered in the data directory. Off: nothing is remembered.",
							 &gh_reload_resident,
							 true,
							 at_reload,
							 0,
							 check_reload_resident,
							 NULL,
							 NULL);
	DefineCustomBoolVariable("gpuhash.prewarm_columns",
							 "Makes columns of tables in memory that queries would have a better plan with.",
							 "In the background, when a table was asked for a second time within minutes.",
							 &gh_prewarm_columns,
							 true,
							 at_reload,
							 0,
							 check_prewarm_columns,
							 NULL,
							 NULL);
}

/* -------------------------------------------------------- shared memory */

/* What other rooms have in shared memory while there is the service. */
static struct
{
	const char *name;
	GhMemorySize size;
	GhMemoryInit init;
}			others[GH_MEMORIES_MAX];
static int	nothers = 0;

void
gh_service_add_memory(const char *name, GhMemorySize size, GhMemoryInit init)
{
	Assert(nothers < GH_MEMORIES_MAX);
	others[nothers].name = name;
	others[nothers].size = size;
	others[nothers].init = init;
	nothers++;
}

/* Sizes and places of everything, from the settings. */
static void
plan_memory(GhService *plan, uint64 *ring_places)
{
	Size		at = MAXALIGN(sizeof(GhService));

	memset(plan, 0, sizeof(*plan));
	plan->devices = (uint32) device_count;
	for (uint32 d = 0; d < plan->devices; d++)
		plan->device[d].number = devices[d];
	plan->units = (uint32) ((Size) shared_memory_kb * 1024 / GH_UNIT_BYTES);
	plan->processes = MaxBackends + NUM_AUXILIARY_PROCS + max_prepared_xacts;
	plan->slots = plan->units + plan->processes;
	*ring_places = 1;
	while (*ring_places < 2 * (uint64) plan->slots)
		*ring_places *= 2;

	plan->slot_array = at;
	at += MAXALIGN(plan->slots * sizeof(GhSlot));
	plan->unit_array = at;
	at += MAXALIGN(plan->units * sizeof(pg_atomic_uint32));
	plan->table_array = at;
	at += MAXALIGN(GH_TABLES_MAX * sizeof(GhTableEntry));
	for (uint32 d = 0; d < plan->devices; d++)
		for (int e = 0; e < GH_EXECUTORS; e++)
		{
			plan->device[d].ring[e].places = at;
			plan->device[d].ring[e].mask = *ring_places - 1;
			at += MAXALIGN(*ring_places * sizeof(GhRingPlace));
		}
	/* the struct's own address is aligned to less than a page */
	plan->area = TYPEALIGN(GH_PAGE_BYTES, at);
	plan->bytes = plan->area + plan->units * GH_UNIT_BYTES + GH_PAGE_BYTES;
}

static void
request_memory(void)
{
	GhService	plan;
	uint64		ring_places;

	if (previous_request_hook)
		previous_request_hook();
	plan_memory(&plan, &ring_places);
	RequestAddinShmemSpace(plan.bytes);
	for (int i = 0; i < nothers; i++)
		RequestAddinShmemSpace(others[i].size());
}

static void
init_device(GhDevice *device, const GhDevice *plan, uint64 ring_places)
{
	pg_atomic_init_u32(&device->state, GH_DEVICE_STARTING);
	pg_atomic_init_u64(&device->instance, 0);
	device->number = plan->number;
	device->procno = -1;
	strlcpy(device->message, "its worker has not started yet", sizeof(device->message));
	pg_atomic_init_u64(&device->memory_limit, PG_UINT64_MAX);
	pg_atomic_init_u64(&device->memory_used, 0);
	pg_atomic_init_u64(&device->paging_limit, 0);
	pg_atomic_init_u64(&device->paging_used, 0);
	pg_atomic_init_u64(&device->resident_used, 0);
	pg_atomic_init_u64(&device->started, 0);
	pg_atomic_init_u32(&device->pool, GH_POOL_UNKNOWN);
	pg_atomic_init_u64(&device->cpu_ns, 0);
	for (int i = 0; i < GH_COUNTERS; i++)
		pg_atomic_init_u64(&device->counter[i], 0);
	for (int e = 0; e < GH_EXECUTORS; e++)
	{
		GhRing	   *ring = &device->ring[e];

		ring->mask = plan->ring[e].mask;
		ring->places = plan->ring[e].places;
		pg_atomic_init_u64(&ring->tail, 0);
		pg_atomic_init_u64(&ring->head, 0);
		pg_atomic_init_u32(&ring->asleep, 1);
		pg_atomic_init_u32(&ring->dying, 0);
		for (uint64 i = 0; i < ring_places; i++)
			pg_atomic_init_u64(&((GhRingPlace *) gh_service_at(ring->places))[i].turn, i);
	}
}

static void
init_memory(const GhService *plan, uint64 ring_places)
{
	memset(gh_service, 0, plan->area);
	*gh_service = *plan;
	/* with the struct's address: the area is to begin at a page */
	gh_service->area = (Size) (TYPEALIGN(GH_PAGE_BYTES, (char *) gh_service + plan->area) -
							   (uintptr_t) gh_service);
	gh_service->lock_tranche = gh_new_tranche("GpuhashService");
	LWLockInitialize(&gh_service->lock, gh_service->lock_tranche);
	gh_service->watcher = -1;
	pg_atomic_init_u32(&gh_service->waiting, 0);
	ConditionVariableInit(&gh_service->returned);
	pg_atomic_init_u64(&gh_service->reset_at, 0);
	for (int i = 0; i < GH_FALLBACKS; i++)
		pg_atomic_init_u64(&gh_service->fallbacks[i], 0);
	for (int i = 0; i < GH_USES; i++)
		pg_atomic_init_u64(&gh_service->uses[i], 0);
	for (int i = 0; i < GH_PROGRESS_MAX; i++)
	{
		pg_atomic_init_u32(&gh_service->progress[i].pid, 0);
		pg_atomic_init_u32(&gh_service->progress[i].shown, 0);
		pg_atomic_init_u32(&gh_service->progress[i].phase, 0);
		pg_atomic_init_u64(&gh_service->progress[i].total, 0);
		pg_atomic_init_u64(&gh_service->progress[i].done, 0);
	}
	for (uint32 i = 0; i < plan->slots; i++)
	{
		pg_atomic_init_u64(&gh_slot_at(i)->word, gh_slot_word(0, GH_SLOT_FREE));
		pg_atomic_init_u32(&gh_slot_at(i)->sleeping, 0);
		pg_atomic_init_u64(&gh_slot_at(i)->waits_since, 0);
		pg_atomic_init_u64(&gh_slot_at(i)->started_ns, 0);
		gh_slot_at(i)->procno = -1;
	}
	for (uint32 i = 0; i < plan->units; i++)
		pg_atomic_init_u32(gh_unit_at(i), 0);
	for (uint32 i = 0; i < GH_TABLES_MAX; i++)
	{
		pg_atomic_init_u64(&gh_table_entry_at(i)->word, gh_slot_word(0, GH_TABLE_FREE));
		pg_atomic_init_u64(&gh_table_entry_at(i)->bytes, 0);
		pg_atomic_init_u64(&gh_table_entry_at(i)->used_ns, 0);
		pg_atomic_init_u32(&gh_table_entry_at(i)->holders, 0);
	}
	gh_faults_init(&gh_service->faults);
	for (uint32 d = 0; d < plan->devices; d++)
		init_device(&gh_service->device[d], &plan->device[d], ring_places);
}

static void
start_memory(void)
{
	GhService	plan;
	uint64		ring_places;
	bool		found;

	if (previous_startup_hook)
		previous_startup_hook();
	plan_memory(&plan, &ring_places);
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	gh_service = ShmemInitStruct("gpuhash service", plan.bytes, &found);
	if (!found)
		init_memory(&plan, ring_places);
	gh_name_tranche(gh_service->lock_tranche, "GpuhashService");
	for (int i = 0; i < nothers; i++)
	{
		void	   *place = ShmemInitStruct(others[i].name, others[i].size(), &found);

		others[i].init(place, found);
	}
	LWLockRelease(AddinShmemInitLock);
}

/* --------------------------------------------------------------- workers */

/*
 * The library that a worker loads is this one, wherever the postmaster found it; a path that is too long for
 * the field (before 17) leaves it to dynamic_library_path.
 */
void
gh_service_init_worker(BackgroundWorker *worker, const char *function)
{
	const char *path = gh_library_path();

	memset(worker, 0, sizeof(*worker));
	if (path[0] == '\0' || strlen(path) >= sizeof(worker->bgw_library_name))
		path = "gpuhash";
	strlcpy(worker->bgw_library_name, path, sizeof(worker->bgw_library_name));
	strlcpy(worker->bgw_function_name, function, sizeof(worker->bgw_function_name));
	worker->bgw_restart_time = GH_RESTART_SECONDS;
}

static void
register_workers(void)
{
	for (int i = 0; i < device_count; i++)
	{
		BackgroundWorker worker;

		gh_service_init_worker(&worker, "gh_worker_main");
		worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
		worker.bgw_start_time = BgWorkerStart_PostmasterStart;
		snprintf(worker.bgw_name, sizeof(worker.bgw_name), "gpuhash worker for GPU %d", devices[i]);
		strlcpy(worker.bgw_type, "gpuhash worker", sizeof(worker.bgw_type));
		/* which of the devices, and its CUDA number */
		worker.bgw_main_arg = Int32GetDatum(i);
		memcpy(worker.bgw_extra, &devices[i], sizeof(int));
		RegisterBackgroundWorker(&worker);
	}
}

void
gh_service_init(void)
{
	if (preloaded)
		return;
	preloaded = true;
	define_settings();
	find_devices();
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_memory;
	register_workers();
}

void
gh_service_define_settings(void)
{
	if (preloaded)
		return;
	defining = true;
	define_settings();
	defining = false;
	if (debug_query_string != NULL && !IsParallelWorker())
		gh_service_report_unserved();
}

void
gh_service_report_unserved(void)
{
	StringInfoData names;

	initStringInfo(&names);
	for (int i = 0; i < lengthof(setting_names); i++)
	{
		if (set_before[i])
			appendStringInfo(&names, "%s\"%s\"", names.len > 0 ? ", " : "", setting_names[i]);
		set_before[i] = false;
	}
	if (names.len > 0)
		ereport(WARNING,
				(errmsg("settings that have no effect without the GPU service: %s", names.data),
				 errhint("Add \"gpuhash\" to \"shared_preload_libraries\" and restart the server.")));
	pfree(names.data);
}

uint32
gh_wait_event(GhWait wait)
{
#if GH_HAVE_NAMED_WAIT_EVENTS
	static const char *const names[GH_WAITS] = {
		"GpuhashRequest", "GpuhashBuffer", "GpuhashWorker", "GpuhashReload", "GpuhashMemory", "GpuhashCopy"
	};
	static uint32 events[GH_WAITS];

	if (events[wait] == 0)
		events[wait] = WaitEventExtensionNew(names[wait]);
	return events[wait];
#else
	(void) wait;
	return PG_WAIT_EXTENSION;
#endif
}

/* Sleeps while the worker is about to free memory of its device. */
void
gh_wait_for_memory(long ms)
{
	pgstat_report_wait_start(gh_wait_event(GH_WAIT_MEMORY));
	pg_usleep(ms * 1000L);
	pgstat_report_wait_end();
}
