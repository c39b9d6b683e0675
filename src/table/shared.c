/*
 * shared.c
 *		Memory of named tables that all sessions share.
 *
 * One area (dsa.h) holds the names, the tables' structs and the smaller blocks that
 * the CPU engine allocates for them.  It begins in the server's main shared memory
 * and takes dynamic shared memory as it grows.  What was freed in it stays with it,
 * so larger blocks are segments of their own (segments.c).
 *
 * Both throw errors when the operating system refuses a segment, or to map one, which
 * an engine must never see under it: guard.c.
 */
#include "postgres.h"

#include <unistd.h>

#include "lib/dshash.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/memutils.h"

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

	uint64		bytes_max;		/* of all blocks */

	pg_atomic_uint64 last_id;
	pg_atomic_uint64 drops;
	pg_atomic_uint64 bytes;
	/* the list of segments and the area's first part follow */
} GhRegistry;

static GhRegistry *registry = NULL;

/* this process's; not the postmaster's */
static dsa_area *area = NULL;
static dshash_table *names = NULL;

/* -------------------------------------------------------- start of a server */

static void *
segments_place(void)
{
	return (char *) registry + MAXALIGN(sizeof(GhRegistry));
}

static void *
area_place(void)
{
	return (char *) segments_place() + MAXALIGN(gh_segments_shmem_size());
}

Size
gh_registry_shmem_size(void)
{
	return MAXALIGN(sizeof(GhRegistry)) + MAXALIGN(gh_segments_shmem_size()) + GH_AREA_BYTES;
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
	pg_atomic_init_u64(&registry->bytes, 0);
	registry->bytes_max = (uint64)
		(GH_HOST_MEMORY_SHARE * sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
	registry->area_tranche = LWLockNewTrancheId();
	registry->names_tranche = LWLockNewTrancheId();
	parameters.tranche_id = registry->names_tranche;

	made = dsa_create_in_place(area_place(), GH_AREA_BYTES, registry->area_tranche, NULL);
	dsa_pin(made);
	/* the postmaster cannot use dynamic shared memory */
	dsa_set_size_limit(made, GH_AREA_BYTES);
	table = dshash_create(made, &parameters, NULL);
	registry->names = dshash_get_hash_table_handle(table);
	dsa_set_size_limit(made, registry->bytes_max);
	dshash_detach(table);
	dsa_detach(made);
}

void
gh_registry_shmem_init(void *place, bool found)
{
	registry = place;
	if (!found)
		make_registry();
	gh_segments_shmem_init(segments_place(), found);
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

bool
gh_shared_count(int64 bytes)
{
	uint64		now = pg_atomic_add_fetch_u64(&registry->bytes, bytes);

	if (bytes <= 0 || now <= registry->bytes_max)
		return true;
	pg_atomic_fetch_sub_u64(&registry->bytes, bytes);
	return false;
}

dsa_area *
gh_shared_area(void)
{
	gh_shared_attach();
	return area;
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
