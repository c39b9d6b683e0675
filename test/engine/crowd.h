/*
 * crowd.h
 *		Workers that exchange at the same time on one table, each with a handle of its
 *		own, and the check of what came back.
 *
 * A key has a number, and every value that is brought is another, so that what comes
 * back tells who brought it; but some positions bring 0, which the CPU engine takes for
 * "not there yet" in between.
 */
#ifndef CROWD_H
#define CROWD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* pthread_barrier_t, MAP_ANONYMOUS */
#endif

#include "conformance.h"

#include <pthread.h>

#define WORKERS 4

/* One of those who exchange.  Arrays hold keys and values in the table's width. */
typedef struct Worker
{
	uint32_t   *number;			/* of each position's key */
	char	   *keys;
	char	   *values;
	char	   *out;
	uint8_t    *flags;
	uint64_t	absent;
	uint64_t	inserted;
	uint64_t	replaced;
	uint64_t	stops;			/* and failures: requests that were submitted again */
	uint64_t	random;
	int			failures;
	/* its host */
	struct Crowd *crowd;
	GhHost		memory;			/* what gives the memory */
	volatile sig_atomic_t stop;
} Worker;

/* All of a run; in memory that processes share. */
typedef struct Crowd
{
	Context    *c;
	pthread_rwlock_t lock;
	pthread_barrier_t start;
	uint32_t	workers;
	uint32_t	size;			/* bytes of a key, and of a value */
	uint32_t	universe;		/* keys */
	uint64_t	count;			/* positions of a worker */
	bool		alike;			/* all bring the same keys in the same order */
	bool		zeros;			/* some bring 0 */
	bool		stopping;		/* they are stopped at random */
	bool		fresh;			/* the table is as it was made, not blank yet */
	uint64_t	shared_locks;	/* atomic */
	HostState	state;			/* of the memory that threads use */
	Worker		worker[WORKERS];
} Crowd;

/* Keys of a universe, values for so many positions of each worker; the rest is drawn. */
extern Crowd *crowd_make(Context *c, uint32_t size, uint64_t count, uint32_t universe);
extern void crowd_drop(Crowd *crowd);
/* Options of a table for it, with room for its keys or none. */
extern GhTableOptions crowd_options(Context *c, const Crowd *crowd, bool roomy);
/* The host of a worker, whose memory is worker->memory's. */
extern GhHost crowd_host(Worker *worker);
/* All keys, and most go again: what is left has been moved about, and slots are empty. */
extern void crowd_store_before(Crowd *crowd, GhTable *table);
/* What a worker does, with a handle and a context of its own. */
extern void crowd_work(Worker *worker, GhRef root);
/* Every value that was brought came back once, or is its key's, and so on. */
extern void crowd_check(Crowd *crowd, GhTable *table);

#endif							/* CROWD_H */
