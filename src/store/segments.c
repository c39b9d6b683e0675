/*
 * segments.c
 *		Large blocks of tables in shared memory: each is a dynamic shared memory
 *		segment, so that freeing one gives its memory back.
 *
 * Segments have numbers, which index a list in shared memory and one of each process's
 * mappings.  A process that has mapped a segment is not told when it is freed; the
 * generation in the list tells that what it has mapped is another one, and it unmaps
 * such mappings when it next takes a table's lock.  So as not to wait for that, the
 * memory of a freed segment is given back at once, under all mappings.
 *
 * The server has a bounded number of segments, which parallel queries need, too; so
 * the list is short.
 */
#include "postgres.h"

#include <sys/mman.h>

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

#include "store/inside.h"

/* Segments at a time: the server has 64, and 5 for each backend. */
#define segments_max() (32 + MaxBackends)

typedef struct GhSegment
{
	pg_atomic_uint64 generation;	/* odd: taken */
	pg_atomic_uint32 users;		/* processes that have it, or one before it, mapped */
	/* the owner's, the table whose lock is held: */
	dsm_handle	handle;
	uint64		bytes;
} GhSegment;

typedef struct GhSegments
{
	pg_atomic_uint64 freed;		/* counts segments that were freed */
	GhSegment	segment[FLEXIBLE_ARRAY_MEMBER];
} GhSegments;

/* A segment as this process has it mapped. */
typedef struct GhMapping
{
	uint64		generation;
	dsm_segment *segment;		/* NULL: not mapped */
	void	   *address;
} GhMapping;

static GhSegments *segments = NULL;
static GhMapping *mappings = NULL;
static uint64 freed_seen = 0;

Size
gh_store_segments_shmem_size(void)
{
	return offsetof(GhSegments, segment) + segments_max() * sizeof(GhSegment);
}

void
gh_store_segments_shmem_init(void *place, bool found)
{
	segments = place;
	if (found)
		return;
	pg_atomic_init_u64(&segments->freed, 0);
	for (int i = 0; i < segments_max(); i++)
	{
		pg_atomic_init_u64(&segments->segment[i].generation, 0);
		pg_atomic_init_u32(&segments->segment[i].users, 0);
	}
}

/* At the process's end, when the server unmaps them. */
static void
forget_mappings(int code, Datum arg)
{
	(void) code;
	(void) arg;
	for (int i = 0; i < segments_max(); i++)
		if (mappings[i].segment != NULL)
			pg_atomic_fetch_sub_u32(&segments->segment[i].users, 1);
}

static void
open_mappings(void)
{
	if (mappings != NULL)
		return;
	mappings = MemoryContextAllocZero(TopMemoryContext, segments_max() * sizeof(GhMapping));
	before_shmem_exit(forget_mappings, (Datum) 0);
}

static void
unmap(int number)
{
	GhMapping  *mapping = &mappings[number];

	if (mapping->segment == NULL)
		return;
	dsm_detach(mapping->segment);
	mapping->segment = NULL;
	mapping->address = NULL;
	pg_atomic_fetch_sub_u32(&segments->segment[number].users, 1);
}

static void
note_mapping(int number, dsm_segment *segment)
{
	GhMapping  *mapping = &mappings[number];

	/* it outlives the query, and whoever mapped it */
	dsm_pin_mapping(segment);
	mapping->generation = pg_atomic_read_u64(&segments->segment[number].generation);
	mapping->segment = segment;
	mapping->address = dsm_segment_address(segment);
	pg_atomic_fetch_add_u32(&segments->segment[number].users, 1);
}

/* ------------------------------------------------------------ create and free */

/* A number whose last segment nobody has mapped any more: while someone has, the server
 * counts it among its segments.  -1: there is none. */
int
gh_store_segment_take(void)
{
	for (int i = 0; i < segments_max(); i++)
	{
		uint64		generation = pg_atomic_read_u64(&segments->segment[i].generation);

		if (generation % 2 == 0 && pg_atomic_read_u32(&segments->segment[i].users) == 0 &&
			pg_atomic_compare_exchange_u64(&segments->segment[i].generation, &generation, generation + 1))
			return i;
	}
	return -1;
}

void
gh_store_segment_leave(int number)
{
	pg_atomic_fetch_add_u64(&segments->segment[number].generation, 1);
}

bool
gh_store_segment_create(int number, Size bytes)
{
	dsm_segment *segment;

	open_mappings();
	unmap(number);
	segment = dsm_create(bytes, DSM_CREATE_NULL_IF_MAXSEGMENTS);
	if (segment == NULL)
		return false;
	dsm_pin_segment(segment);
	segments->segment[number].handle = dsm_segment_handle(segment);
	segments->segment[number].bytes = bytes;
	note_mapping(number, segment);
	return true;
}

/*
 * Processes that have it mapped keep the address range and nothing else.  A segment
 * that the server cut from its main shared memory is used again as it is.
 */
static void
give_memory_back(const GhSegment *segment, void *address)
{
#ifdef MADV_REMOVE
	if ((segment->handle & 1) == 0)
		(void) madvise(address, segment->bytes, MADV_REMOVE);
#else
	(void) segment;
	(void) address;
#endif
}

void
gh_store_segment_free(int number)
{
	GhSegment  *segment = &segments->segment[number];

	give_memory_back(segment, mappings[number].address);
	unmap(number);
	dsm_unpin_segment(segment->handle);
	/* in this order, for those who look at the count first */
	gh_store_segment_leave(number);
	pg_atomic_fetch_add_u64(&segments->freed, 1);
}

/* ------------------------------------------------------------------ mapping */

void
gh_store_segment_map(int number)
{
	GhMapping  *mapping;
	dsm_segment *segment;

	open_mappings();
	mapping = &mappings[number];
	if (mapping->segment != NULL &&
		mapping->generation == pg_atomic_read_u64(&segments->segment[number].generation))
		return;
	unmap(number);
	segment = dsm_attach(segments->segment[number].handle);
	if (segment == NULL)
		elog(ERROR, "could not map memory of a hash table");
	note_mapping(number, segment);
}

void *
gh_store_segment_address(int number)
{
	return mappings[number].address;
}

void
gh_store_segments_sweep(void)
{
	uint64		freed = pg_atomic_read_u64(&segments->freed);

	if (mappings == NULL || freed == freed_seen)
		return;
	for (int i = 0; i < segments_max(); i++)
		if (mappings[i].segment != NULL &&
			mappings[i].generation != pg_atomic_read_u64(&segments->segment[i].generation))
			unmap(i);
	freed_seen = freed;
}
