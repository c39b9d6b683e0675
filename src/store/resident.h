/*
 * resident.h
 *		Pages of relations that stay on a device: which ones are there, and whether they are still the relation's.
 *
 * README, "Resident pages", has the rules and what they rest on.
 */
#ifndef GPUHASH_RESIDENT_H
#define GPUHASH_RESIDENT_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "storage/block.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

#include "engine/pipeline/pipeline.h"

/* A process's use of the pages of a relation on a device, for one scan. */
typedef struct GhResident GhResident;

/* Where a page is, or is to be put. */
typedef struct GhResidentPlace
{
	uint32		span;			/* number of the span, for gh_resident_span */
	uint32		place;			/* in it */
	uint32		lines;
} GhResidentPlace;

/* What becomes of a page that was read. */
typedef enum GhResidentOffer
{
	GH_RESIDENT_NOT,			/* it is not to stay */
	GH_RESIDENT_SAME,			/* it is there, as it was read: the device needs no other */
	GH_RESIDENT_KEEP			/* it is to be put there */
} GhResidentOffer;

/*
 * A page that was offered with another answer than NOT: for the others, when the device has done the request.
 */
typedef struct GhResidentNote
{
	BlockNumber block;
	GhResidentPlace at;
	XLogRecPtr	map_lsn;
	XLogRecPtr	heap_lsn;
	bool		kept;			/* it was put there; false: it was there */
	bool		spoilt;			/* kept: the page has changed while it was read */
	/* the caller's: */
	bool		unsure;			/* it has to find out whether it has */
	uint32		listed;			/* which page of a request it is */
} GhResidentNote;

/* What a use came to. */
typedef struct GhResidentCounts
{
	uint64		hits;			/* pages that were found without a look at the heap's */
	uint64		revalidated;	/* and with one */
	uint64		kept;
} GhResidentCounts;

extern double gh_resident_share(Relation relation, BlockNumber npages);
extern BlockNumber gh_resident_expected(const GhResident *resident);
extern GhResident *gh_resident_open(Relation relation, Snapshot snapshot, int device, MemoryContext context);
extern void gh_resident_load(GhResident *resident, TimestampTz used);
extern void gh_resident_give_up_scattered(Relation relation, int device);
extern bool gh_resident_may_fill(const GhResident *resident);
extern uint64 gh_resident_brought(const GhResident *resident);
extern void gh_resident_close(GhResident *resident);
extern uint32 gh_resident_find(GhResident *resident, BlockNumber block, uint32 most, GhResidentPlace *at);
extern uint32 gh_resident_lines(const GhResident *resident, BlockNumber block, uint32 count);
extern GhResidentOffer gh_resident_offer(GhResident *resident, BlockNumber block, XLogRecPtr lsn, bool may_keep,
										 GhResidentNote *note);
extern void gh_resident_publish(GhResident *resident, const GhResidentNote *notes, int count);
extern GhPageSpan *gh_resident_span(GhResident *resident, uint32 span);
extern void gh_resident_count_hits(GhResident *resident, uint32 pages);
extern const GhResidentCounts *gh_resident_counts(const GhResident *resident);

#endif							/* GPUHASH_RESIDENT_H */
