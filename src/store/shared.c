/*
 * shared.c
 *		Memory of what all sessions share.
 *
 * One area (dsa.h) holds the directory, the tables' structs and the smaller blocks that
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

#include "compat.h"
#include "service/placement.h"
#include "service/service.h"
#include "store/columns_wanted.h"
#include "store/index_wanted.h"
#include "store/shared_copies.h"
#include "store/inside.h"
#include "store/remember.h"
#include "store/resident_file.h"

/* The part of the area in the main shared memory: some thousand small structs. */
#define GH_AREA_BYTES ((Size) 256 * 1024)

#define GH_HOST_MEMORY_SHARE 0.75

typedef struct GhStoreMemory
{
	/* never change once the server runs */
	int			area_tranche;
	int			entries_tranche;
	dshash_table_handle entries;
	dshash_table_handle residents;

	uint64		bytes_max;		/* of all blocks */

	pg_atomic_uint64 last_id;
	pg_atomic_uint64 drops;
	pg_atomic_uint64 bytes;
	/* the list of segments and the area's first part follow */
} GhStoreMemory;

static GhStoreMemory *memory = NULL;

/* this process's; not the postmaster's */
static dsa_area *area = NULL;
static dshash_table *entries = NULL;
static dshash_table *residents = NULL;

/* -------------------------------------------------------- start of a server */

static void *
segments_place(void)
{
	return (char *) memory + MAXALIGN(sizeof(GhStoreMemory));
}

static void *
area_place(void)
{
	return (char *) segments_place() + MAXALIGN(gh_store_segments_shmem_size());
}

static Size
shmem_size(void)
{
	return MAXALIGN(sizeof(GhStoreMemory)) + MAXALIGN(gh_store_segments_shmem_size()) + GH_AREA_BYTES;
}

uint64
gh_store_host_memory(void)
{
	return (uint64) (GH_HOST_MEMORY_SHARE * sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

static void
make_area(void)
{
	dshash_parameters parameters =
		GH_DSHASH_PARAMETERS(sizeof(GhStoreKey), sizeof(GhStoreEntry), 0);
	dshash_parameters resident_parameters =
		GH_DSHASH_PARAMETERS(sizeof(GhResidentKey), sizeof(GhResidentEntry), 0);
	dsa_area   *made;
	dshash_table *table;

	pg_atomic_init_u64(&memory->last_id, 0);
	pg_atomic_init_u64(&memory->drops, 0);
	pg_atomic_init_u64(&memory->bytes, 0);
	memory->bytes_max = gh_store_host_memory();
	memory->area_tranche = gh_new_tranche("GpuhashTables");
	memory->entries_tranche = gh_new_tranche("GpuhashTableNames");
	parameters.tranche_id = resident_parameters.tranche_id = memory->entries_tranche;

	made = dsa_create_in_place(area_place(), GH_AREA_BYTES, memory->area_tranche, NULL);
	dsa_pin(made);
	/* the postmaster cannot use dynamic shared memory */
	dsa_set_size_limit(made, GH_AREA_BYTES);
	table = dshash_create(made, &parameters, NULL);
	memory->entries = dshash_get_hash_table_handle(table);
	dshash_detach(table);
	table = dshash_create(made, &resident_parameters, NULL);
	memory->residents = dshash_get_hash_table_handle(table);
	dshash_detach(table);
	dsa_set_size_limit(made, memory->bytes_max);
	dsa_detach(made);
}

static void
shmem_init(void *place, bool found)
{
	memory = place;
	if (!found)
		make_area();
	gh_store_segments_shmem_init(segments_place(), found);
	gh_name_tranche(memory->area_tranche, "GpuhashTables");
	gh_name_tranche(memory->entries_tranche, "GpuhashTableNames");
}

void
gh_store_init(void)
{
	gh_evictor_register(gh_store_evict);
	if (process_shared_preload_libraries_in_progress)
	{
		/* in this order: the one has the tranche of the other's lock */
		gh_service_add_memory("gpuhash tables", shmem_size, shmem_init);
		gh_resident_tables_init();
		gh_shared_copies_init();
		gh_columns_wanted_init();
		gh_index_wanted_init();
		gh_reload_init();
	}
}

/* ---------------------------------------------------------- of this process */

static void
attach(void)
{
	dshash_parameters parameters =
		GH_DSHASH_PARAMETERS(sizeof(GhStoreKey), sizeof(GhStoreEntry), 0);
	dshash_parameters resident_parameters =
		GH_DSHASH_PARAMETERS(sizeof(GhResidentKey), sizeof(GhResidentEntry), 0);
	MemoryContext old;

	if (entries != NULL)
		return;
	old = MemoryContextSwitchTo(TopMemoryContext);
	if (area == NULL)
	{
		area = dsa_attach_in_place(area_place(), NULL);
		on_shmem_exit(dsa_on_shmem_exit_release_in_place, PointerGetDatum(area_place()));
		dsa_pin_mapping(area);
	}
	parameters.tranche_id = resident_parameters.tranche_id = memory->entries_tranche;
	residents = dshash_attach(area, &resident_parameters, memory->residents, NULL);
	entries = dshash_attach(area, &parameters, memory->entries, NULL);
	MemoryContextSwitchTo(old);
}

dshash_table *
gh_store_area_entries(void)
{
	attach();
	return entries;
}

dshash_table *
gh_store_area_residents(void)
{
	attach();
	return residents;
}

int
gh_store_area_tranche(void)
{
	return memory->area_tranche;
}

uint64
gh_store_area_new_id(void)
{
	return pg_atomic_add_fetch_u64(&memory->last_id, 1);
}

pg_atomic_uint64 *
gh_store_area_drops(void)
{
	return &memory->drops;
}

bool
gh_store_area_count(int64 bytes)
{
	uint64		now = pg_atomic_add_fetch_u64(&memory->bytes, bytes);

	if (bytes <= 0 || now <= memory->bytes_max)
		return true;
	pg_atomic_fetch_sub_u64(&memory->bytes, bytes);
	return false;
}

dsa_area *
gh_store_area(void)
{
	attach();
	return area;
}
