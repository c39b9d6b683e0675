/*
 * scan.h
 *		The scan ABI: heap pages in, groups with their aggregates out.
 *
 * A scan is made once for a query: how tuples are read, the program over a row, the tables that
 * it is joined with, the keys that make groups, the aggregates.  Requests then bring pages by the
 * thousand.  Of each row that is asked for, the engine reads the columns, runs the program up to
 * the joins, looks the row up in their tables, one after the other, which fills more columns or
 * drops the row, runs the rest, and adds what is live at the end to the row's group.  At last the
 * groups are fetched, as records that the caller merges with those of other scans and of the rows
 * that it was handed back.
 *
 * A row with several matches in such a join goes on once with each, and is as many rows from there on, also
 * where rows are counted.  All that becomes of it is counted, or it is handed back.
 *
 * The last join may be one that asks for the rows of its table, too, that no row matched: each key that is found
 * is marked in the table, and requests without pages bring the rows whose key has no mark.
 *
 * A scan may make a table in place of groups, for the joins of others: of the rows that are live at
 * the end, by a key of up to 64 bits, with some of their values.  Or each row that is live at the end is a
 * group of its own: rows out in place of groups.  Or which rows are live is all that is told.
 *
 * Rows that an engine cannot do as PostgreSQL does are handed back, and are in no group or table:
 * what page.h and program.h say of it; a value in a sum that is very large (gh_scan_fits()); several
 * matches in a join that is to return them all, where the table is not made for that, rows are listed, or
 * there are too many (GH_SCAN_MATCHES_MAX); a new group, or a table's row, without memory.
 * Handing a row back is always right.  A page that no heap has, or that is not of the shape, is handed
 * back whole.
 *
 * A request is counted in full, but for what it hands back, or not at all.  It ends with GH_OK;
 * with GH_STOPPED or another error, and the groups are as they were; or with GH_DEVICE_ERROR,
 * and the scan is lost: only scan_destroy is left.
 *
 * Integers are exact.  Floats are added in an order that depends on the requests alone, so that
 * the same requests give the same digits with the same engine.
 *
 * Contract of every call: engine.h.  C11, C++17 and CUDA.
 */
#ifndef GPUHASH_SCAN_H
#define GPUHASH_SCAN_H

#include "engine/page/page.h"
#include "engine/program/aggregate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ the plan */

#define GH_SCAN_KEYS_MAX 32
#define GH_SCAN_JOINS_MAX 8
#define GH_SCAN_PARTS_MAX 8
#define GH_SCAN_KEPT_MAX GH_PROGRAM_VECTORS_MAX
#define GH_SCAN_PAGES_MAX 65536 /* of a request */
#define GH_SCAN_LINES_MAX (1 << 24) /* of all pages of a request */
#define GH_SCAN_ROWS_MAX (UINT64_C(1) << 40)	/* lines of all requests of a scan, and rows that are counted */
#define GH_SCAN_MATCHES_MAX 4096	/* rows that one becomes by joins */

/* What makes groups.  Equal are NULLs, -0 and 0, all NaNs. */
typedef struct GhScanKey
{
	uint16_t	vector;			/* of the program */
	uint8_t		value_class;	/* what the vector holds: a GhClass */
	uint8_t		padded;			/* TEXT: 1, trailing blanks do not count (bpchar); else 0 */
} GhScanKey;

/*
 * A part of a table's key: the lower bits of a vector of INT.  The parts make one number of 64 bits at
 * most, the last one in its lowest bits.  A row with a NULL in it has no key: it has no match, and is in no
 * table but one that marks matches.
 */
typedef struct GhScanPart
{
	uint16_t	vector;			/* of the program */
	uint8_t		bits;			/* 1 to 64 */
	uint8_t		unused;			/* 0 */
} GhScanPart;

typedef enum GhScanJoinKind
{
	GH_SCAN_INNER = 1,
	GH_SCAN_LEFT,				/* without a match the columns are NULL */
	GH_SCAN_SEMI,				/* rows that have a match, once; it fills no columns */
	GH_SCAN_ANTI,				/* rows that have none; it fills no columns */
	/*
	 * As GH_SCAN_INNER and GH_SCAN_LEFT, and mark the keys that are found (marks_matches).  The scan's last join
	 * alone can be one, where rows are not listed.
	 */
	GH_SCAN_RIGHT,
	GH_SCAN_FULL
} GhScanJoinKind;

/* A column of the program that a match fills. */
typedef struct GhScanFill
{
	uint16_t	column;			/* of the program: its attribute is none of the page's */
	uint16_t	kept;			/* of the table: a number in its GhScanOptions.kept, of the same class */
} GhScanFill;

typedef struct GhScan GhScan;	/* a process's handle */

typedef struct GhScanJoin
{
	GhScan	   *table;			/* of this engine and device, with its table made; it outlives this scan */
	uint32_t	kind;			/* a GhScanJoinKind */
	uint32_t	nparts;			/* at least one */
	const GhScanPart *parts;	/* columns or constants, or set before the joins */
	uint32_t	nfills;
	const GhScanFill *fills;
} GhScanJoin;

typedef struct GhScanOptions
{
	/*
	 * Aligned to 16.  A column whose attribute is more than natts is filled by one of the joins: the
	 * part before the joins does not read it, nor do joins up to that one.
	 */
	const GhProgram *program;
	size_t		program_bytes;
	uint32_t	page_bytes;
	uint32_t	natts;
	const GhPageAttribute *attributes;
	uint32_t	nkeys;			/* 0: all rows are one group */
	const GhScanKey *keys;
	uint32_t	naggregates;
	const GhAggregate *aggregates;	/* without a SUM of FLOAT4: GH_UNSUPPORTED */
	/*
	 * 1: each row is a group of its own, whose keys are any values of it, as they are, also without keys;
	 * there are no aggregates, no table is made, and nothing is compared.  Else 0.
	 */
	uint32_t	each_row;
	/*
	 * 1: rows that are live at the end are neither added nor kept, but listed in each request's `back`, marked
	 * with GH_SCAN_LIVE; there are no keys or aggregates, no table is made.  Else 0.
	 */
	uint32_t	lists_rows;
	uint32_t	njoins;
	const GhScanJoin *joins;	/* in this order */
	uint32_t	joins_at;		/* instructions that are run before the joins */
	uint32_t	nparts;			/* not 0: the scan makes a table, and has no keys or aggregates */
	const GhScanPart *parts;	/* of its key */
	uint32_t	nkept;
	const uint16_t *kept;		/* vectors whose values the table has */
	uint32_t	all_matches;	/* of a table: 1: joins find all rows of a key; 0: that there are several */
	/*
	 * Of a table: 1: joins mark the keys that they find, none at first, and rows whose key has no mark can be
	 * asked for.  So rows that are NULL in a part of the key are in the table, too, and never have a match.  Else 0.
	 */
	uint32_t	marks_matches;
	uint64_t	groups;			/* or rows of the table, expected; 0: not known */
	uint64_t	memory_limit;	/* bytes that groups, or a table, may take; 0: no limit */
	uint64_t	seed;			/* of the hash of keys */
	/*
	 * For pages that are `hinted`, a transaction number: whatever was committed by earlier ones is seen, and
	 * none of them is still running.  0: there are no such pages.
	 */
	uint32_t	seen_before;
	int			device;			/* CUDA device number; the CPU engine: 0 */
} GhScanOptions;

/* ------------------------------------------------------------------ requests */

/* GhScanPage.bitmap: all line pointers up to `lines` that are normal. */
#define GH_SCAN_ALL UINT32_MAX

typedef struct GhScanPage
{
	const void *page;			/* aligned to 16 */
	uint32_t	lines;			/* line numbers 1 up to this are looked at */
	/*
	 * The word of GhScanRequest.bitmaps with which the page's begin: bit (n - 1) % 64 of its
	 * word (n - 1) / 64 asks for line n, which is a tuple; or GH_SCAN_ALL.
	 */
	uint32_t	bitmap;
	uint32_t	block;			/* its number in the relation: for columns of GH_LOAD_TID */
	/*
	 * Not 0: of what is asked for, just tuples that begin at this byte of the page or behind it, which others
	 * were not yet there when the caller looked, and are visible, as their headers say (scan_row.h): inserted
	 * by a transaction that is known to be committed and is before GhScanOptions.seen_before, and not
	 * deleted, or not as far as is known by one that is.  A tuple of which the header does not tell
	 * either way is handed back, before anything else is done with it: the caller is to find out
	 * whether it is visible.  0: what is asked for is visible.
	 */
	uint32_t	hinted;
} GhScanPage;

/* GhScanRow.line of a row that is not handed back, but listed: it is live at the end. */
#define GH_SCAN_LIVE UINT32_C(0x80000000)

/* A row that is handed back; line 0: all that was asked of the page. */
typedef struct GhScanRow
{
	uint32_t	page;			/* of the request's, from 0 */
	uint32_t	line;			/* offset number, and GH_SCAN_LIVE */
} GhScanRow;

/*
 * A request for rows without a match has no pages.  Rows first_row up to first_row + nrows of the last join's table
 * (GhScanTable.rows) that have no key, or one that is not marked when the request is done, come out of that
 * join: they fill what it fills, and all columns of the page and of the joins before it are NULL.  Instructions in front
 * of the joins are run on these NULLs, for what they set, and filters among them drop nothing; then all goes
 * on as with rows that matched.  Such rows as go back are only counted (nback): nothing is written to `back`.
 *
 * A key is marked when a row comes to the join and finds it, whether or not the program's rest then drops that
 * row, and also by rows that are handed back in the end: the marks of a scan that handed rows back are of no
 * use, but for those whose visibility alone was not told (hinted), which came to no join.  So it is when a
 * request fails, but with GH_STOPPED.  All scans that join with the table mark it.  Whoever asks sees to it that the
 * others have read all their pages; of one scan requests take effect in their order.
 */

/*
 * The caller zeroes the struct, fills the first part, submits it and leaves it, its arrays and
 * the pages alone until poll or wait says other than GH_BUSY; other processes may write to a
 * page as PostgreSQL does beside a pin.
 */
typedef struct GhScanRequest
{
	uint32_t	npages;
	/* every page is in memory that the device can read: registered, or its own */
	bool		readable;
	const GhScanPage *pages;
	const uint64_t *bitmaps;
	uint64_t	nbitmaps;		/* words */
	GhScanRow  *back;			/* room for as many as the pages have lines */
	uint64_t	back_room;
	uint32_t	unmatched;		/* 1: rows of the last join's table without a match, and no pages; else 0 */
	uint64_t	first_row;		/* from 0 */
	uint64_t	nrows;			/* GH_SCAN_LINES_MAX at most */

	/* -- results, valid once the request is not busy; all 0 where it did not end with GH_OK -- */
	uint64_t	counted;		/* rows that were added to their groups, or to the table, or listed */
	/* tuples that were asked for and, of pages that are hinted, visible: without those that were handed back */
	uint64_t	seen;
	/* rows that were not handed back and came as far; without a match: behind the last join alone: */
	uint64_t	passed;			/* to the joins, and */
	uint64_t	joined[GH_SCAN_JOINS_MAX];	/* behind each of them */
	uint64_t	nback;			/* of back, in the order of pages and lines, those listed among them */
	uint64_t	no_group;		/* of them, for whose groups, or place in the table, there was no memory */
	GhStatus	status;
	GhError		error;			/* when status is an error */

	/* -- the engine's own, from submit on -- */
	GhScan	   *scan;
	uint64_t	engine_state[4];
} GhScanRequest;

/* ------------------------------------------------------------------- results */

/*
 * A group, as scan_results tells it: this, then a GhScanValue for each key, a GhAggregateState
 * for each aggregate, and the bytes of texts.  The low word of a key that is text is the offset of
 * its bytes from the record's begin.
 */
typedef struct GhScanGroup
{
	uint64_t	bytes;			/* of the record: a multiple of 8 */
	uint64_t	rows;			/* that were counted: not 0 */
	uint64_t	nulls;			/* bit k: key k is NULL, and its value 0 */
} GhScanGroup;

typedef struct GhScanValue
{
	uint64_t	low;			/* as in a GhVector */
	uint64_t	high;			/* 0 where the class has none */
} GhScanValue;

/* A table that was made. */
typedef struct GhScanTable
{
	uint64_t	rows;			/* numbered from 0, for requests of those without a match */
	uint64_t	keys;			/* different ones; of rows that have one */
} GhScanTable;

typedef struct GhScanStats
{
	uint64_t	groups;			/* there is memory taken for; rows of a table */
	uint64_t	counted;		/* rows */
	uint64_t	bytes;			/* memory of groups or table: host for cpu, device for cuda */
	uint64_t	bytes_peak;
	uint64_t	work_bytes;		/* device memory that requests are worked on in, beside that */
} GhScanStats;

/* -------------------------------------------------------------------- engines */

struct GhScanEngine
{
	/*
	 * GH_INVALID: the options; GH_UNSUPPORTED: legal, but not by this engine; GH_LIMIT,
	 * GH_NO_MEMORY, GH_DEVICE_ERROR.  The options' arrays are copied, then checked, so that they
	 * may lie where others can change them.
	 */
	GhStatus	(*create) (const GhHost *host, const GhScanOptions *options, GhScan **scan,
						   GhError *error);
	/* Waits for what is in flight, looks at no request, frees all. */
	void		(*destroy) (GhScan *scan);

	/*
	 * As GhEngine's.  Requests are counted in the order of submission.  The stop flag is
	 * looked at before one is begun: GH_STOPPED, and it may be submitted again.
	 *
	 * Groups for which there is no memory, or none within the limit, are no error: rows that
	 * need a new one are handed back from then on.
	 */
	GhStatus	(*submit) (GhScan *scan, GhScanRequest *request);
	GhStatus	(*poll) (GhScanRequest *request);
	GhStatus	(*wait) (GhScanRequest *request);

	/*
	 * Writes records of groups that the cursor has not passed to buffer, aligned to 8, one
	 * behind the other: those that have rows, each once, in no particular order; keys may be
	 * those of several.  *bytes is how many bytes came, also 0.  GH_TOO_SMALL: the
	 * next record alone needs *bytes, and nothing was written.  Waits for all requests.
	 */
	GhStatus	(*results) (GhScan *scan, GhCursor *cursor, size_t capacity, void *buffer,
							size_t *bytes, GhError *error);
	/*
	 * Of a scan that makes a table, in place of results: makes it of the rows of all requests.
	 * Waits for them; after it there may be no more: GH_INVALID.  GH_NO_MEMORY, GH_LIMIT: only
	 * scan_destroy is left.
	 */
	GhStatus	(*make_table) (GhScan *scan, GhScanTable *table, GhError *error);
	GhStatus	(*stats) (GhScan *scan, GhScanStats *stats, GhError *error);
	/* What the requests through this handle took so far, in all: from submission until the
	 * engine had them, and in it.  NULL: nobody takes the time. */
	void		(*times) (const GhScan *scan, uint64_t *queue_ns, uint64_t *device_ns);
};

/* The first field of every handle. */
struct GhScan
{
	const GhScanEngine *engine;
	/* for checks of the joins with its table, by the engine that has that: */
	const struct GhScanPlan *plan;
	bool		table_made;
	bool		several;		/* rows of the table have the same key */
	uint64_t	rows;			/* of the table */
};

/* ------------------------------------------------- for the engines: scan.c */

/* Options that were copied and accepted, with what follows from them. */
typedef struct GhScanPlan
{
	GhScanOptions options;		/* what it points to is the plan's */
	GhPageShape shape;			/* of the columns that are in the page */
	uint8_t		classes[GH_PROGRAM_VECTORS_MAX];	/* of the vectors at the end: a GhClass, or 0 */
	uint32_t	group_bytes;	/* of GhScanGroup and the keys, in an engine's memory */
	void	   *memory;			/* malloc()ed */
} GhScanPlan;

extern GhStatus gh_scan_plan_init(GhScanPlan *plan, const GhScanEngine *engine,
								  const GhScanOptions *options, GhError *error);
extern void gh_scan_plan_drop(GhScanPlan *plan);
/* *lines: of all pages, or rows of a table */
extern GhStatus gh_scan_request_check(const GhScanPlan *plan, const GhScanRequest *request,
									  uint64_t *lines, GhError *error);
/*
 * Appends the record of a group to *used bytes of a buffer; keys that are text lie at texts +
 * low.  False: there is no room, and *used is as it was; *needed is the record's size.
 */
extern bool gh_scan_record_put(const GhScanPlan *plan, const GhScanGroup *group,
							   const GhAggregateState *states, const char *texts,
							   size_t capacity, char *buffer, size_t *used, size_t *needed);

/*
 * scan_join.c: of options whose program was accepted, the parts of keys, the joins and what a
 * table keeps.
 */
extern GhStatus gh_scan_joins_check(const GhScanPlan *plan, const GhScanEngine *engine,
									GhError *error);
/* May a row become several in this join? */
extern bool gh_scan_join_multiplies(const GhScanOptions *options, uint32_t j);
/* The table whose rows without a match can be asked for, or NULL. */
extern GhScan *gh_scan_marked_table(const GhScanOptions *options);

#ifdef __cplusplus
}
#endif

#endif							/* GPUHASH_SCAN_H */
