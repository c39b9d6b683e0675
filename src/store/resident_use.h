/*
 * resident_use.h
 *		A scan's use of pages of a relation that stay on a device: what its files share.
 */
#ifndef GPUHASH_RESIDENT_USE_H
#define GPUHASH_RESIDENT_USE_H

#include "heap/map.h"
#include "service/service.h"
#include "store/resident_file.h"

/* Places that are taken together. */
#define GH_CLAIM 256

/* What is known of a span in this use. */
typedef enum SpanState
{
	SPAN_UNKNOWN,
	SPAN_HELD,
	SPAN_GONE
} SpanState;

typedef struct OwnSpan
{
	SpanState	state;
	GhServiceSpan *span;		/* held: stays where it is */
} OwnSpan;

struct GhResident
{
	Relation	relation;
	int			device;
	MemoryContext context;
	MemoryContextCallback callback;
	GhResidentFile *file;
	uint32		period;			/* of the file's, in which this began */
	BlockNumber nblocks;
	bool		fills;			/* this process puts pages there */
	bool		full;			/* there is no room for more */
	bool		unasked;		/* no query wants it: see gh_resident_load */
	GhMapPage **maps;			/* by number; NULL: not read yet */
	uint32		nmaps;
	uint32		nspans;			/* in spans */
	OwnSpan    *spans;			/* by number */
	BlockNumber chunk;			/* first block of those that were looked up; or InvalidBlockNumber */
	uint64		fresh[GH_CHUNK_BLOCKS / 64];	/* a bit each */
	uint64		follows[GH_CHUNK_BLOCKS / 64];	/* likewise: its place is the one behind that of the block before */
	uint32		lines_before[GH_CHUNK_BLOCKS + 1];	/* by block: lines of all before it in the chunk */
	GhResidentBlock blocks[GH_CHUNK_BLOCKS];
	bool		is_whole;		/* all of the chunk's are what they were; then, of the above, only the chunk is set: */
	uint32		whole_place;	/* of the first block */
	uint16		whole_lines[GH_CHUNK_BLOCKS];
	uint32		nclaimed;
	uint32		next_claimed;	/* of them: pages that follow one another get places that do so */
	uint32		claimed[GH_CLAIM];
	uint32		in_flight;		/* places that a device may write to */
	GhResidentCounts counts;
};

static inline void
gh_set_place(GhResidentPlace *at, uint32 place, uint32 lines)
{
	at->span = place / GH_PLACES_OF_SPAN;
	at->place = place % GH_PLACES_OF_SPAN;
	at->lines = lines;
}

/* resident.c: holds a span of the file, if it is there; the file's lock is held, a shared one */
extern bool gh_resident_hold_span(GhResident *resident, uint32 number);

/* resident_lookup.c: the map's page of a block; once it is read it stays as it is for this use */
extern const GhMapPage *gh_resident_map(GhResident *resident, BlockNumber block);

#endif							/* GPUHASH_RESIDENT_USE_H */
