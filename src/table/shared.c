/*
 * shared.c
 *		Memory of named tables that all sessions share.
 *
 * One area (dsa.h) holds the names, the tables' structs and everything that the CPU
 * engine allocates for them.  It begins in the server's main shared memory and takes
 * dynamic shared memory as it grows.
 *
 * An engine must never see an error thrown under it, while dsa.h throws when the
 * operating system refuses a segment, or to map one.  So allocations and frees run
 * under a guard that turns an error into a status, and all blocks of a table are
 * mapped before an engine looks at them (gh_shared_map_blocks).  For that, a table's
 * blocks form a list.
 */
#include "postgres.h"

#include <unistd.h>

#include "lib/dshash.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "service/service.h"
#include "table/registry.h"
#include "table/table.h"

/* The part of the area in the main shared memory: some thousand small structs. */
#define GH_AREA_BYTES ((Size) 256 * 1024)

/* What tables on the host may take of the machine's memory, all together. */
#define GH_HOST_MEMORY_SHARE 0.75

#define GH_ALIGNMENT 64

typedef struct GhRegistry
{
	/* never change once the server runs */
	int			area_tranche;
	int			names_tranche;
	dshash_table_handle names;

	pg_atomic_uint64 last_id;
	pg_atomic_uint64 drops;
	/* the area's first part follows */
} GhRegistry;

/* Stands before each block of a table, which is in its list. */
typedef struct GhBlock
{
	dsa_pointer start;			/* as it was allocated */
	dsa_pointer next;
	dsa_pointer previous;
} GhBlock;

static GhRegistry *registry = NULL;

/* this process's; not the postmaster's */
static dsa_area *area = NULL;
static dshash_table *names = NULL;

/* -------------------------------------------------------- start of a server */

static void *
area_place(void)
{
	return (char *) registry + MAXALIGN(sizeof(GhRegistry));
}

Size
gh_registry_shmem_size(void)
{
	return MAXALIGN(sizeof(GhRegistry)) + GH_AREA_BYTES;
}

static void
make_registry(void)
{
	dshash_parameters parameters =
		GH_DSHASH_PARAMETERS(sizeof(GhTableKey), sizeof(GhNameEntry), 0);
	dsa_area   *made;
	dshash_table *table;

	pg_atomic_init_u64(&registry->last_id, 0);
	pg_atomic_init_u64(&registry->drops, 0);
	registry->area_tranche = LWLockNewTrancheId();
	registry->names_tranche = LWLockNewTrancheId();
	parameters.tranche_id = registry->names_tranche;

	made = dsa_create_in_place(area_place(), GH_AREA_BYTES, registry->area_tranche, NULL);
	dsa_pin(made);
	/* the postmaster cannot use dynamic shared memory */
	dsa_set_size_limit(made, GH_AREA_BYTES);
	table = dshash_create(made, &parameters, NULL);
	registry->names = dshash_get_hash_table_handle(table);
	dsa_set_size_limit(made, (size_t)
					   (GH_HOST_MEMORY_SHARE * sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)));
	dshash_detach(table);
	dsa_detach(made);
}

void
gh_registry_shmem_init(void *place, bool found)
{
	registry = place;
	if (!found)
		make_registry();
	LWLockRegisterTranche(registry->area_tranche, "GpuhashTables");
	LWLockRegisterTranche(registry->names_tranche, "GpuhashTableNames");
}

void
gh_shared_attach(void)
{
	dshash_parameters parameters =
		GH_DSHASH_PARAMETERS(sizeof(GhTableKey), sizeof(GhNameEntry), 0);
	MemoryContext old;

	if (names != NULL)
		return;
	old = MemoryContextSwitchTo(TopMemoryContext);
	if (area == NULL)
	{
		area = dsa_attach_in_place(area_place(), NULL);
		on_shmem_exit(dsa_on_shmem_exit_release_in_place, PointerGetDatum(area_place()));
		dsa_pin_mapping(area);
	}
	parameters.tranche_id = registry->names_tranche;
	names = dshash_attach(area, &parameters, registry->names, NULL);
	MemoryContextSwitchTo(old);
}

dshash_table *
gh_shared_names(void)
{
	gh_shared_attach();
	return names;
}

uint64
gh_shared_new_id(void)
{
	return pg_atomic_add_fetch_u64(&registry->last_id, 1);
}

pg_atomic_uint64 *
gh_shared_drops(void)
{
	return &registry->drops;
}

dsa_pointer
gh_shared_alloc(Size bytes)
{
	gh_shared_attach();
	return dsa_allocate0(area, bytes);
}

void
gh_shared_free(dsa_pointer pointer)
{
	gh_shared_attach();
	dsa_free(area, pointer);
}

void *
gh_shared_address(dsa_pointer pointer)
{
	return dsa_get_address(area, pointer);
}

/* ---------------------------------------------------------------- the guard */

typedef struct HeldLocks
{
	int			count;
	LWLock	   *last;
} HeldLocks;

static void
note_lock(LWLock *lock, LWLockMode mode, void *arg)
{
	HeldLocks  *held = arg;

	(void) mode;
	held->count++;
	held->last = lock;
}

static HeldLocks
held_locks(void)
{
	HeldLocks	held = {0};

	ForEachLWLockHeldByMe(note_lock, &held);
	return held;
}

/*
 * Runs work, which calls dsa.h and nothing else; false: it threw an error, which is
 * forgotten.  dsa.h leaves its structures in order when it throws, but relies on the
 * transaction's end for its locks and, in older versions, for the descriptor of the
 * segment that was refused.  Here the locks are released one by one, the last first,
 * and with no resource owner nobody misses the descriptor, which stays until the
 * process ends.
 */
static bool
run_guarded(void (*work) (void *arg), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	uint32		interrupts = InterruptHoldoffCount;
	uint32		cancels = QueryCancelHoldoffCount;
	int			before = held_locks().count;
	volatile bool done = false;

	PG_TRY();
	{
		CurrentResourceOwner = NULL;
		work(arg);
		done = true;
	}
	PG_CATCH();
	{
		for (HeldLocks held = held_locks(); held.count > before; held = held_locks())
		{
			/* the error has reset the count that the release takes one from */
			HOLD_INTERRUPTS();
			LWLockRelease(held.last);
		}
		MemoryContextSwitchTo(context);
		FlushErrorState();
		InterruptHoldoffCount = interrupts;
		QueryCancelHoldoffCount = cancels;
	}
	PG_END_TRY();
	CurrentResourceOwner = owner;
	return done;
}

/* ------------------------------------------------------- blocks of a table */

typedef struct AllocWork
{
	Size		bytes;
	dsa_pointer start;
	char	   *address;
} AllocWork;

static void
alloc_work(void *arg)
{
	AllocWork  *work = arg;

	work->start = dsa_allocate_extended(area, work->bytes, DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM);
	if (DsaPointerIsValid(work->start))
		work->address = dsa_get_address(area, work->start);
}

static void
free_work(void *arg)
{
	dsa_free(area, *(dsa_pointer *) arg);
}

static GhBlock *
block_of(GhRef ref)
{
	return (GhBlock *) dsa_get_address(area, ref) - 1;
}

static GhRef
block_alloc(void *ctx, size_t bytes)
{
	GhNamedTable *table = ctx;
	AllocWork	work = {0};
	GhBlock    *block;
	GhRef		ref;

	if (bytes > SIZE_MAX / 2)
		return 0;
	/* addresses of a block differ between processes by whole pages only */
	work.bytes = bytes + sizeof(GhBlock) + GH_ALIGNMENT;
	if (!run_guarded(alloc_work, &work) || !DsaPointerIsValid(work.start))
		return 0;
	ref = work.start +
		((char *) TYPEALIGN(GH_ALIGNMENT, work.address + sizeof(GhBlock)) - work.address);
	block = block_of(ref);
	block->start = work.start;
	block->previous = 0;
	block->next = table->blocks;
	if (table->blocks != 0)
		block_of(table->blocks)->previous = ref;
	table->blocks = ref;
	table->blocks_changed++;
	return ref;
}

static void
block_free(void *ctx, GhRef ref)
{
	GhNamedTable *table = ctx;
	GhBlock    *block;
	dsa_pointer start;

	if (ref == 0)
		return;
	block = block_of(ref);
	if (block->next != 0)
		block_of(block->next)->previous = block->previous;
	if (block->previous != 0)
		block_of(block->previous)->next = block->next;
	else
		table->blocks = block->next;
	start = block->start;
	if (!run_guarded(free_work, &start))
		ereport(LOG,
				(errmsg("could not free memory of hash table \"%s\"", table->info.name)));
}

static void *
block_address(void *ctx, GhRef ref)
{
	(void) ctx;
	return dsa_get_address(area, ref);
}

/*
 * The table's lock is held from before the engine's call to after it.  It keeps
 * writers out of whatever the engine does, and others out of what a writer does, so
 * that there is nothing left to lock inside.
 */
static void
block_lock(void *ctx, GhLockMode mode)
{
	(void) ctx;
	(void) mode;
}

static void
block_unlock(void *ctx)
{
	(void) ctx;
}

void
gh_shared_host_init(GhHost *host, GhNamedTable *table)
{
	memset(host, 0, sizeof(*host));
	host->ctx = table;
	host->alloc = block_alloc;
	host->free = block_free;
	host->address = block_address;
	host->lock = block_lock;
	host->unlock = block_unlock;
	host->stop = &InterruptPending;
}

void
gh_shared_map_blocks(GhNamedTable *table)
{
	for (dsa_pointer ref = table->blocks; ref != 0; ref = block_of(ref)->next)
		continue;
}

static void
free_blocks_work(void *arg)
{
	GhNamedTable *table = arg;

	while (table->blocks != 0)
	{
		GhBlock    *block = block_of(table->blocks);
		dsa_pointer start = block->start;

		table->blocks = block->next;
		dsa_free(area, start);
	}
}

void
gh_shared_free_blocks(GhNamedTable *table)
{
	if (!run_guarded(free_blocks_work, table))
		ereport(LOG,
				(errmsg("could not free memory of hash table \"%s\"", table->info.name)));
}
