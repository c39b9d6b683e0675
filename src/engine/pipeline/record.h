/*
 * record.h
 *		What pipelines read and write beside columns: heap pages, keys, parts of keys, records of groups.
 *
 * pipeline.h says what is done with them.  Pages are what a source of pages brings.  Keys make groups, or are the
 * values of rows.  Parts make the key of a table.  Records are what a sink's results are written as.
 *
 * C11, C++17 and CUDA.
 */
#ifndef GPUHASH_RECORD_H
#define GPUHASH_RECORD_H

#include "engine/page/page.h"
#include "engine/program/aggregate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------- limits */

#define GH_RECORD_KEYS_MAX 32		/* of a group, or values of a row, that a query's plan asks for */
#define GH_KEY_PARTS_MAX 8
#define GH_TABLE_KEPT_MAX GH_PROGRAM_VECTORS_MAX
#define GH_REQUEST_PAGES_MAX 65536 /* of a request */
#define GH_REQUEST_SPANS_MAX 16	/* of a request */
#define GH_SPAN_PAGES_MAX 65536	/* of a span */
#define GH_REQUEST_LINES_MAX (1 << 24) /* of all pages of a request */
#define GH_PIPELINE_ROWS_MAX (UINT64_C(1) << 40)	/* lines of all requests of a pipeline, and rows that are counted */
#define GH_ROW_MATCHES_MAX 4096	/* rows that one becomes by probes */

/* ---------------------------------------------------------------------- keys */

/* What makes groups.  Equal are NULLs, -0 and 0, all NaNs. */
typedef struct GhRecordKey
{
	uint16_t	vector;			/* of the program */
	uint8_t		value_class;	/* what the vector holds: a GhClass */
	uint8_t		padded;			/* TEXT: 1, trailing blanks do not count (bpchar); else 0 */
} GhRecordKey;

/*
 * A part of a table's key: the lower bits of a vector of INT.  The parts make one number of 64 bits at
 * most, the last one in its lowest bits.  A row with a NULL in it has no key: it has no match, and is in no
 * table but one whose rows are numbered (GhTableSink.numbered).
 */
typedef struct GhKeyPart
{
	uint16_t	vector;			/* of the program */
	uint8_t		bits;			/* 1 to 64 */
	uint8_t		unused;			/* 0 */
} GhKeyPart;

/* --------------------------------------------------------------------- pages */

/* GhPageRef.bitmap: all line pointers up to `lines` that are normal. */
#define GH_PAGE_ALL_LINES UINT32_MAX

typedef struct GhPageRef
{
	const void *page;			/* aligned to 16; NULL: it is in its place in a span */
	uint32_t	lines;			/* line numbers 1 up to this are looked at */
	/*
	 * The word of GhPipelineRequest.bitmaps with which the page's begin: bit (n - 1) % 64 of its
	 * word (n - 1) / 64 asks for line n, which is a tuple; or GH_PAGE_ALL_LINES.
	 */
	uint32_t	bitmap;
	uint32_t	block;			/* its number in the relation: for columns of GH_LOAD_TID */
	/*
	 * Not 0: of what is asked for, just tuples that begin at this byte of the page or behind it, which others
	 * were not yet there when the caller looked, and are visible, as their headers say (record_row.h): inserted
	 * by a transaction that is known to be committed and is before GhPipelineSource.seen_before, and not
	 * deleted, or not as far as is known by one that is.  A tuple of which the header does not tell
	 * either way is handed back, before anything else is done with it: the caller is to find out
	 * whether it is visible.  0: what is asked for is visible.
	 */
	uint32_t	hinted;
	/*
	 * Not 0: number + 1 of one of the request's spans (GhPageSpan, pipeline.h), and the number of a page's place there.
	 * Where `page` is given, the page is put there, whole, as it is read.  Else it is read there.  If others
	 * wrote to the page while it was put, the place has some of that: then `hinted` of later requests is to be
	 * of before.
	 */
	uint16_t	span;
	/*
	 * More than 1: it stands for so many pages, in places from `place` on, of blocks from `block` on, all lines of which are
	 * asked for, and `lines` is the sum of theirs.  Only where requests go through the service, which knows what it has
	 * there (service.h), and of engines that take runs (GhPipelineEngine.takes_runs); else 0.
	 */
	uint16_t	run;
	uint32_t	place;
} GhPageRef;

/* ------------------------------------------------------------------- records */

/*
 * A group, as the results of a pipeline tell it: this, then a GhRecordValue for each key, a GhAggregateState
 * for each aggregate, and the bytes of texts.  The low word of a key that is text is the offset of
 * its bytes from the record's begin, and so is that of a state that has the least or the greatest of texts.  A row of a sink of rows is written likewise: its values are the keys.
 */
typedef struct GhRecordHead
{
	uint64_t	bytes;			/* of the record: a multiple of 8 */
	uint64_t	rows;			/* 1; 0 of the one group without keys where there are none */
	uint64_t	nulls;			/* bit k: key k is NULL, and its value 0 */
} GhRecordHead;

typedef struct GhRecordValue
{
	uint64_t	low;			/* as in a GhVector */
	uint64_t	high;			/* 0 where the class has none */
} GhRecordValue;

/* ------------------------------------------------- for the engines: record.c */

/* What records are made of. */
typedef struct GhRecordPlan
{
	uint32_t	nkeys;
	const GhRecordKey *keys;
	uint32_t	naggregates;
	uint32_t	group_bytes;	/* of GhRecordHead and the keys, in an engine's memory */
	const GhAggregate *texts;	/* the aggregates, where some are the least or greatest of texts; else NULL */
} GhRecordPlan;

/*
 * Appends the record of a group to *used bytes of a buffer; keys that are text lie at texts +
 * low, texts of states at texts + low - 1.  False: there is no room, and *used is as it was; *needed is the record's size.
 */
extern bool gh_record_put(const GhRecordPlan *plan, const GhRecordHead *group, const GhAggregateState *states,
							   const char *texts, size_t capacity, char *buffer, size_t *used, size_t *needed);

#ifdef __cplusplus
}
#endif

#endif							/* GPUHASH_RECORD_H */
