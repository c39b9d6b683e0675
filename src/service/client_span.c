/*
 * client_span.c
 *		Spans of the service (spans.c), and entries of tables that stay: what sessions do with them.
 *
 * A span has an entry, and no handle: its root is its name, in whose memory is up to its owner
 * (../store/resident.c).  So it is with a table that stays (../store/resident_tables.c), but whoever probes
 * it has a handle on it, too.
 */
#include "postgres.h"

#include "service/client.h"
#include "service/placement.h"

static GhTableEntry *
entry_of(GhRef root, uint32 *number, uint64 *generation)
{
	gh_root_split(root, number, generation);
	return gh_table_entry_at(*number);
}

/* Whether there are so many spans that tables might lack entries. */
static bool
are_too_many(void)
{
	uint32		spans = 0;

	for (uint32 i = 0; i < GH_TABLES_MAX; i++)
	{
		GhTableEntry *entry = gh_table_entry_at(i);

		spans += entry->kind == GH_ENTRY_SPAN &&
			(GhTableState) gh_slot_state(pg_atomic_read_u64(&entry->word)) != GH_TABLE_FREE;
	}
	return spans >= GH_TABLES_MAX / 2;
}

GhStatus
gh_service_span_create(int device, uint32 npages, GhRef *root, GhError *error)
{
	GhEntryHandle handle = {0};
	uint32		number;
	GhStatus	status;

	*root = 0;
	if (are_too_many())
		return gh_error_set(error, GH_LIMIT, "pages on GPUs are in as many pieces as there may be");
	gh_host_init(&handle.host, CurrentMemoryContext);
	handle.shared = true;
	status = gh_entry_open(&handle, device, GH_ENTRY_SPAN, (int) gh_service_executor(), error);
	if (status != GH_OK)
		return status;
	status = gh_entry_control(&handle, GH_SERVICE_SPAN_CREATE, npages, &number, error);
	if (status == GH_OK)
	{
		gh_slot_leave(number);
		*root = gh_entry_root(&handle);
	}
	else
		gh_entry_drop(&handle);
	return status;
}

bool
gh_service_entry_hold(GhRef root)
{
	uint32		number;
	uint64		generation;
	GhTableEntry *entry = entry_of(root, &number, &generation);

	/* in this order: whoever gives it up looks at the holders last */
	pg_atomic_fetch_add_u32(&entry->holders, 1);
	if (gh_client_entry_lives(number, generation))
	{
		pg_atomic_write_u64(&entry->used_ns, gh_monotonic_ns());
		return true;
	}
	pg_atomic_fetch_sub_u32(&entry->holders, 1);
	return false;
}

void
gh_service_entry_leave(GhRef root)
{
	uint32		number;
	uint64		generation;

	pg_atomic_fetch_sub_u32(&entry_of(root, &number, &generation)->holders, 1);
}

void
gh_service_table_stays(GhRef root)
{
	uint32		number;
	uint64		generation;

	entry_of(root, &number, &generation)->stays = true;
}

uint64
gh_service_entry_used(GhRef root)
{
	uint32		number;
	uint64		generation;
	GhTableEntry *entry = entry_of(root, &number, &generation);

	return gh_client_entry_lives(number, generation) ? pg_atomic_read_u64(&entry->used_ns) : 0;
}

bool
gh_service_span_stayed(GhRef root)
{
	uint32		number;
	uint64		generation;
	GhTableEntry *entry = entry_of(root, &number, &generation);

	return pg_atomic_read_u64(&entry->word) == gh_slot_word(generation, GH_TABLE_LIVE);
}

bool
gh_service_span_fits(int device, uint32 npages)
{
	GhDevice   *known = gh_device_at(device);

	return known != NULL && gh_device_is_ready(known) && gh_spans_may_grow(known, (uint64) npages * BLCKSZ);
}

bool
gh_service_entry_release(GhRef root)
{
	uint32		number;
	uint64		generation;
	GhTableEntry *entry = entry_of(root, &number, &generation);
	uint64		word = pg_atomic_read_u64(&entry->word);

	if (gh_slot_generation(word) != generation || (GhTableState) gh_slot_state(word) == GH_TABLE_DYING)
		return true;
	if (pg_atomic_read_u32(&entry->holders) == 0 && gh_entry_give_up(number, generation, GH_TABLE_DYING))
	{
		GhRing	   *ring = gh_client_ring(entry->device, number);

		pg_atomic_write_u32(&ring->dying, 1);
		gh_client_wake(entry->device, ring);
		return true;
	}
	/* its worker has gone, or has freed it; one that is about to be freed has its bytes yet */
	word = gh_slot_word(generation, GH_TABLE_LOST);
	return pg_atomic_read_u64(&entry->word) == word && pg_atomic_read_u32(&entry->holders) == 0 &&
		pg_atomic_read_u64(&entry->bytes) == 0 &&
		pg_atomic_compare_exchange_u64(&entry->word, &word, gh_slot_word(generation + 1, GH_TABLE_FREE));
}

void
gh_service_span_init(GhServiceSpan *span, GhRef root, uint32 npages)
{
	span->common.engine = &gh_service_pipelines;
	span->common.device = gh_client_root_device(root);
	span->common.page_bytes = BLCKSZ;
	span->common.npages = npages;
	span->root = root;
}
