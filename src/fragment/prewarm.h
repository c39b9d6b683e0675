/*
 * prewarm.h
 *		Pages that are put onto a GPU before a query needs them: for one who asks for it (prewarm.c), and
 *		after a restart (reload.c).
 */
#ifndef GPUHASH_PREWARM_H
#define GPUHASH_PREWARM_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "storage/block.h"
#include "utils/rel.h"

#include "engine/engine.h"

/* Which pages of a relation, and what came of it. */
typedef struct GhPrewarm
{
	int			device;
	bool		unasked;		/* see gh_resident_load; only then: */
	TimestampTz used;
	BlockNumber first;			/* the block to begin with; then, the one to go on with */
	BlockNumber most_blocks;	/* to look at */
	uint64		most_pages;		/* to be on the device */
	/* of a table whose pages are divided among several devices (device.h): */
	int			ndevices;		/* how many; 0 or 1: they are not */
	int			turn;			/* which of them this one is */
	/* set by the load */
	uint64		pages;			/* of those blocks that are on the device */
	uint64		brought;		/* of these, that were not there before */
	bool		ended;			/* the relation has no more blocks */
	bool		full;			/* there is no room for more pages, or another session brings them */
	GhError		error;			/* why it failed */
} GhPrewarm;

/* ---- prewarm.c ---- */

/* Whether pages of such a relation can be put there: pages of the heap, in shared buffers. */
extern bool gh_is_loadable(Relation relation);
/* Loads pages, by the active snapshot.  False: the device failed, or has no room. */
extern bool gh_load_pages(Relation relation, GhPrewarm *load);

/* ---- prewarm_columns.c ---- */

/* Columns of a table in shared memory: which, and what came of it. */
typedef struct GhColumnsLoad
{
	uint64		columns;		/* a bit for each attribute, as GhCopyFacts.columns has them; 0: those that queries mostly compute with */
	BlockNumber first;			/* the block to begin with, of a stripe the first; then, the one to go on with */
	BlockNumber most_blocks;	/* to look at: whole stripes */
	/* set by the load */
	uint64		pages;			/* of those blocks that columns are of then */
	bool		ended;			/* there is no more to be made: no blocks, no room, or such a table has no columns */
} GhColumnsLoad;

extern void gh_load_columns(Relation relation, GhColumnsLoad *load);

/* ---- prewarm_index.c ---- */

extern bool gh_is_index(Oid relid);
extern int64 gh_prewarm_index(Oid relid);

/* ---- reload.c: the process that loads a database's relations; ../store/reload.c starts it ---- */

extern PGDLLEXPORT void gh_reload_worker_main(Datum arg);
extern void gh_loader_begin(Datum database);
extern bool gh_loader_lock_database(void);
extern bool gh_loader_database_is_waited_for(void);
extern void gh_loader_in_transaction(void (*part) (void *arg), void *arg);

/* ---- reload_columns.c: likewise, the one that makes columns ---- */

extern PGDLLEXPORT void gh_columns_worker_main(Datum arg);

/* ---- reload_index.c ---- */

extern PGDLLEXPORT void gh_copies_worker_main(Datum arg);

#endif							/* GPUHASH_PREWARM_H */
