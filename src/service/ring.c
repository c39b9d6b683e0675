/*
 * ring.c
 *		The way from clients to an executor: a bounded queue of slot numbers that
 *		many processes append to and one thread takes from, without locks.
 *
 * Each place has a turn: the number of the append that may write it next, or that
 * number plus one while it holds what was written (D. Vyukov's bounded queue).
 * A client that is stopped between taking its place and writing it holds up those
 * behind it, for as long as the system lets it wait: no longer than a spinlock's
 * holder would, and nothing in between can throw.
 *
 * No function of PostgreSQL is called here: threads of the worker come here.
 */
#include "postgres.h"

#include <time.h>

#include "service/shared.h"

uint64
gh_monotonic_ns(void)
{
	struct timespec now;

	(void) clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64) now.tv_sec * UINT64CONST(1000000000) + (uint64) now.tv_nsec;
}

static GhRingPlace *
place_at(GhRing *ring, uint64 number)
{
	return (GhRingPlace *) gh_service_at(ring->places) + (number & ring->mask);
}

void
gh_ring_append(GhRing *ring, uint32 slot, uint64 generation)
{
	uint64		number = pg_atomic_fetch_add_u64(&ring->tail, 1);
	GhRingPlace *place = place_at(ring, number);

	/* free by its size; only a reader that is just through can be seen here */
	while (pg_atomic_read_u64(&place->turn) != number)
		pg_spin_delay();
	place->slot = slot;
	place->generation = generation;
	pg_write_barrier();
	pg_atomic_write_u64(&place->turn, number + 1);
}

bool
gh_ring_take(GhRing *ring, uint32 *slot, uint64 *generation)
{
	uint64		number = pg_atomic_read_u64(&ring->head);
	GhRingPlace *place = place_at(ring, number);

	if (pg_atomic_read_u64(&place->turn) != number + 1)
		return false;
	pg_read_barrier();
	*slot = place->slot;
	*generation = place->generation;
	pg_memory_barrier();
	pg_atomic_write_u64(&place->turn, number + ring->mask + 1);
	pg_atomic_write_u64(&ring->head, number + 1);
	return true;
}
