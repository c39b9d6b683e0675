/*
 * resident_file.h
 *		What is known of the pages of a relation's file that are on a device: in memory that all sessions share.
 */
#ifndef GPUHASH_RESIDENT_FILE_H
#define GPUHASH_RESIDENT_FILE_H

#include "postgres.h"

#include "lib/dshash.h"
#include "storage/lwlock.h"
#include "utils/dsa.h"
#include "utils/timestamp.h"

#include "store/resident.h"

/* Pages of a span, at most; a place is the span's number times this, and its number in the span. */
#define GH_PLACES_OF_SPAN 8192
/* Spans that a file may have had, in all. */
#define GH_FILE_SPANS_MAX (PG_UINT32_MAX / GH_PLACES_OF_SPAN)
/* Blocks that are known of, or looked up, together. */
#define GH_CHUNK_BLOCKS 1024

typedef struct GhResidentKey
{
	uint32		device;
	Oid			database;
	Oid			tablespace;
	uint32		number;			/* relfilenumber */
} GhResidentKey;

/*
 * A block; all zero: it is not on the device.  Its place does not change as long as anybody may know of it.
 */
typedef struct GhResidentBlock
{
	XLogRecPtr	map_lsn;		/* of the map's page by which it was all-visible: not 0 */
	XLogRecPtr	heap_lsn;		/* of the page when it was copied; 0: it proves nothing */
	uint32		place;
	uint16		lines;
	uint16		there;			/* 1 */
} GhResidentBlock;

/*
 * What is known of a chunk as a whole, behind its blocks: all of them are there by the same LSN, in places of
 * one span that lie one behind the other.  Guarded as the blocks are; whoever changes one of these forgets
 * it.
 */
typedef struct GhChunkWhole
{
	XLogRecPtr	map_lsn;		/* 0: it is not known to be so */
	uint32		place;			/* of the first block */
	uint16		lines[GH_CHUNK_BLOCKS];
} GhChunkWhole;

static inline GhChunkWhole *
gh_chunk_whole(GhResidentBlock *blocks)
{
	return (GhChunkWhole *) (blocks + GH_CHUNK_BLOCKS);
}

typedef struct GhFileSpan
{
	GhRef		root;			/* 0: nothing is left of it */
	bool		gone;			/* it is not there any more */
	uint32		npages;
	uint32		used;			/* places that somebody has had */
	uint32		blocks;			/* that have their places in it */
} GhFileSpan;

/* Places, with room for all that there are. */
typedef struct GhPlaceList
{
	dsa_pointer places;			/* uint32 each */
	uint32		count;
} GhPlaceList;

typedef struct GhResidentFile
{
	GhResidentKey key;
	dsa_pointer self;
	Oid			relid;
	bool		in_recovery;	/* the copies are of a standby */

	/* guarded by the directory's lock */
	uint32		opened;			/* processes that use it */
	bool		doomed;			/* the last of them is to free it */

	LWLock		lock;			/* guards what follows */
	/*
	 * Who uses it, by the period in which it began.  A place that is given up in a period can be used again when all have
	 * gone who began in that one or before.
	 */
	uint32		users[2];
	uint32		period;			/* 0 or 1 */
	GhPlaceList retired[2];		/* by the period in which they were given up */
	GhPlaceList free;
	uint32		lost;			/* places of which nobody knows what a device may still write there */
	int			filler;			/* whose processes put pages there: the leader's pid */
	uint32		fillers;		/* how many of them */
	uint32		nspans;
	uint32		nplaces;		/* of all spans that there have been */
	dsa_pointer spans;			/* GhFileSpan each */
	uint32		nchunks;
	dsa_pointer chunks;			/* dsa_pointer each, to GH_CHUNK_BLOCKS blocks, or invalid */
	char		why_not[64];	/* why not all of it is there; or empty */
	pg_atomic_uint64 hits;
	pg_atomic_uint64 revalidated;
	pg_atomic_uint64 used;		/* TimestampTz */
} GhResidentFile;

static inline bool
gh_file_span_lives(const GhFileSpan *span)
{
	return span->root != 0 && !span->gone;
}

/* Where nobody changes them meanwhile. */
static inline GhFileSpan *
gh_file_spans(dsa_area *area, const GhResidentFile *file)
{
	return dsa_get_address(area, file->spans);
}

/* ---- resident.c ---- */

extern bool gh_resident_allowed(Relation relation);
extern void gh_resident_key(GhResidentKey *key, Relation relation, int device);

/* ---- resident_tables.c ---- */

extern void gh_resident_tables_init(void);

/* ---- resident_directory.c ---- */

extern GhResidentFile *gh_resident_file_open(const GhResidentKey *key, Oid relid);
extern void gh_resident_file_close(GhResidentFile *file);
extern bool gh_resident_make_room(uint32 device, const GhResidentFile *but);
extern bool gh_resident_has_file(const GhResidentKey *key, Oid relid);
extern uint64 gh_resident_file_pages(const GhResidentKey *key, Oid relid);

/* What the view shows of a file. */
typedef struct GhResidentInfo
{
	GhResidentKey key;
	Oid			relid;
	uint64		resident;		/* pages */
	uint64		bytes;
	uint64		hits;
	uint64		revalidated;
	TimestampTz used;
	char		why_not[64];
} GhResidentInfo;

extern GhResidentInfo *gh_resident_list(Oid database, int *count);
extern GhResidentInfo *gh_resident_list_all(int *count);

/* ---- resident_places.c: of a file whose lock is held ---- */

extern void gh_file_begin_use(GhResidentFile *file, uint32 *period);
extern void gh_file_end_use(dsa_area *area, GhResidentFile *file, uint32 period);
extern uint32 gh_file_take_places(dsa_area *area, GhResidentFile *file, uint32 *places, uint32 most);
extern void gh_file_give_places(dsa_area *area, GhResidentFile *file, const uint32 *places, uint32 count);
extern bool gh_file_add_span(dsa_area *area, GhResidentFile *file, GhRef root, uint32 npages);
extern void gh_file_lose_span(dsa_area *area, GhResidentFile *file, uint32 number);
extern bool gh_file_shrink(dsa_area *area, GhResidentFile *file);
extern bool gh_file_is_worn(dsa_area *area, const GhResidentFile *file);
extern bool gh_file_is_scattered(dsa_area *area, const GhResidentFile *file);
extern GhResidentBlock *gh_file_chunk(dsa_area *area, GhResidentFile *file, uint32 number, bool make);
/* The chunk that was looked at last. */
typedef struct GhFileChunk
{
	uint32		number;
	GhResidentBlock *blocks;	/* NULL: none was */
} GhFileChunk;

extern void gh_file_set_block(dsa_area *area, GhResidentFile *file, GhFileSpan *spans, GhFileChunk *chunk,
							  const GhResidentNote *note);
extern uint64 gh_file_count_blocks(dsa_area *area, const GhResidentFile *file, bool ended);
extern bool gh_file_forget_all(dsa_area *area, GhResidentFile *file);

/* ---- shared.c ---- */

/* What the directory has by a key. */
typedef struct GhResidentEntry
{
	GhResidentKey key;
	dsa_pointer file;
} GhResidentEntry;

extern dshash_table *gh_store_area_residents(void);
/* Of locks in the area. */
extern int	gh_store_area_tranche(void);

#endif							/* GPUHASH_RESIDENT_FILE_H */
