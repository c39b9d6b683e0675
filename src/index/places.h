/*
 * places.h
 *		The touched map as it lies in shared memory: what touched.c and asked.c share.
 */
#ifndef GPUHASH_INDEX_PLACES_H
#define GPUHASH_INDEX_PLACES_H

#include "postgres.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "utils/rel.h"

#include "compat.h"
#include "heap/map.h"
#include "index/touched.h"

/* Indexes of which there are copies at a time, and words of bits for all: 32 M blocks, tables of 256 GB. */
#define GH_COPIES_MAX 64
#define GH_TOUCHED_WORDS (1024 * 1024)

typedef struct GhTouchedPlace
{
	Oid			database;		/* InvalidOid: a free one */
	Oid			index;
	Oid			tablespace;
	Oid			number;			/* of its file */
	uint64		generation;
	BlockNumber nblocks;
	int			where;			/* GH_COPY_SHARED, or a device */
	bool		published;		/* of a device's: it was made */
	uint32		first;			/* of its words */
	bool		in_recovery;	/* it was begun then: an LSN for each page of the map is behind its bits */
	GhBlockRuns empty;			/* blocks that had no rows when the copy was begun */
} GhTouchedPlace;

/* An LSN is in so many of the words. */
#define GH_LSN_WORDS 2

/*
 * An index has the places of the copies that are in use, in shared memory and on some devices, and of those
 * that are being made to take their places.
 */
#define GH_INDEX_PLACES 8

typedef struct GhTouched
{
	LWLock		lock;			/* guards places; changes and ncopies are written under it */
	pg_atomic_uint64 changes;	/* of places, so far */
	pg_atomic_uint32 ncopies;
	GhTouchedPlace		places[GH_COPIES_MAX];
	pg_atomic_uint32 words[GH_TOUCHED_WORDS];
} GhTouched;

extern GhTouched *gh_touched;

static inline uint32
gh_touched_words(BlockNumber nblocks)
{
	return nblocks / GH_BITS + (nblocks % GH_BITS != 0);
}

/* Of the visibility map. */
static inline uint32
gh_touched_map_pages(BlockNumber nblocks)
{
	return nblocks / GH_MAP_BLOCKS + (nblocks % GH_MAP_BLOCKS != 0);
}

/* Of a place: its bits and LSNs. */
static inline uint32
gh_touched_all_words(BlockNumber nblocks, bool in_recovery)
{
	return gh_touched_words(nblocks) + (in_recovery ? gh_touched_map_pages(nblocks) * GH_LSN_WORDS : 0);
}

/* The first of the words that have the LSN of a page of the map. */
static inline pg_atomic_uint32 *
gh_touched_lsn(const GhTouchedPlace *place, uint32 page)
{
	return &gh_touched->words[place->first + gh_touched_words(place->nblocks) + page * GH_LSN_WORDS];
}

static inline bool
gh_touched_is_of(const GhTouchedPlace *place, Relation index)
{
	return place->index == RelationGetRelid(index) && place->number == gh_relation_number(index) &&
		place->tablespace == index->rd_rel->reltablespace && place->database == MyDatabaseId;
}

/* The place of the index's copy of that generation.  With the lock. */
static inline GhTouchedPlace *
gh_touched_find(Relation index, uint64 generation)
{
	for (int i = 0; i < GH_COPIES_MAX; i++)
		if (gh_touched_is_of(&gh_touched->places[i], index) && gh_touched->places[i].generation == generation)
			return &gh_touched->places[i];
	return NULL;
}

#endif							/* GPUHASH_INDEX_PLACES_H */
