/*
 * shared_copies.h
 *		Copies in shared memory, for the CPU engine: of indexes of the access method gpuhash (index_copies.h), and of tables'
 *		columns (columns.h).
 *
 * README, "Copies of indexes", has who makes one, who uses it, and when it goes.
 */
#ifndef GPUHASH_SHARED_COPIES_H
#define GPUHASH_SHARED_COPIES_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "storage/block.h"
#include "utils/dsa.h"
#include "utils/rel.h"

#include "engine/engine.h"

typedef enum GhCopyKind
{
	GH_COPY_OF_INDEX = 1,
	GH_COPY_OF_COLUMNS
} GhCopyKind;

/* A process's hold on a copy: as long as it has one, the copy is there. */
typedef struct GhCopyHold
{
	dsa_area   *area;			/* NULL: it has none */
	union						/* its root */
	{
		void	   *any;
		struct GhIndexCopy *copy;
		struct GhStoredColumns *columns;
	};
	dsa_pointer at;				/* where in the area */
	int			place;			/* in the list */
	uint64		number;			/* of the copy, never used again */
} GhCopyHold;

#define GH_FACTS_COLUMNS 64

/* What can be told of a copy to those who do not attach it. */
typedef struct GhCopyFacts
{
	uint64		rows;			/* of columns: pages */
	uint64		columns;		/* of columns: which there are, at least of some pages: a bit for each attribute up to GH_FACTS_COLUMNS */
	uint64		generation;		/* of an index: GhIndexCopy's */
	BlockNumber nblocks;		/* likewise */
	int			place;			/* in the list, for gh_shared_copy_count_use: of who looks */
} GhCopyFacts;

/* What the view shows. */
typedef struct GhSharedCopyInfo
{
	GhCopyKind	kind;
	Oid			relation;
	uint64		bytes;
	uint64		rows;			/* of columns: pages */
	uint64		hits;			/* queries that used it */
	TimestampTz used;
} GhSharedCopyInfo;

extern void gh_shared_copies_init(void);

/* For those who use a copy.  False: there is none of the relation's file as it is now. */
extern bool gh_shared_copy_open(GhCopyKind kind, Relation relation, GhCopyHold *hold);
extern void gh_shared_copy_close(GhCopyHold *hold);
extern void gh_shared_copy_count_use(int place);
/* What is known of the one that there is; false: there is none. */
extern bool gh_shared_copy_look(GhCopyKind kind, Relation relation, GhCopyFacts *facts);
/* That one is right for nothing any more: it leaves the list.  Another one is made no sooner for that. */
extern void gh_shared_copy_retire(GhCopyKind kind, Relation relation, uint64 generation);
/*
 * Whether one may be made now: not while somebody does, nor soon after it was refused, or made and it was
 * slow.
 */
extern bool gh_shared_copy_is_due(GhCopyKind kind, Relation relation);
/* Whether somebody makes one now. */
extern bool gh_shared_copy_is_made(GhCopyKind kind, Relation relation);
/* What is in the area, and a GhHost for the CPU engine that allocates there. */
extern void gh_shared_copy_host(GhCopyHold *hold, GhHost *host);

/*
 * For those who make one: an empty area with a root of so many bytes, all 0, while nobody else makes a copy
 * of it.  It takes about so many bytes, for which others go, those that were used longest ago first.  One of
 * it that is there stays in use until this one is published, but where there is no room for both.  False: not
 * now, or there is no room.  Then publish or abandon; abandon also after an error.
 */
extern bool gh_shared_copy_begin(GhCopyKind kind, Relation relation, uint64 bytes, Size root_bytes, GhCopyHold *hold);
/* Memory of it; false: there is none. */
extern bool gh_shared_copy_alloc(GhCopyHold *hold, Size bytes, dsa_pointer *at);
extern void gh_shared_copy_publish(GhCopyHold *hold, const GhCopyFacts *facts, bool grows);
/* refused: it is not to be tried again for a while, which grows with each time in a row. */
extern void gh_shared_copy_abandon(GhCopyHold *hold, bool refused);

/* For copies that grow: their makers take memory when it is needed. */
extern bool gh_shared_copy_was_seen(GhCopyKind kind, Relation relation);
extern bool gh_shared_copy_may_grow(const GhCopyHold *hold, uint64 bytes);
extern void gh_shared_copy_grew(const GhCopyHold *hold, int64 bytes, int64 rows, uint64 columns);
extern void gh_shared_copy_took(const GhCopyHold *hold, int64 ms);
extern void gh_shared_copy_free(GhCopyHold *hold, dsa_pointer at);

/* What this process makes from now on goes without memory of copies that were used within so long. */
extern void gh_shared_copies_spare(int64 ms);
extern void gh_shared_copies_drop_database(Oid database);
/* Those of this database; palloc'd. */
extern GhSharedCopyInfo *gh_shared_copies_list(int *count);
/* What all may take together. */
extern uint64 gh_shared_copies_limit(void);

#endif							/* GPUHASH_SHARED_COPIES_H */
