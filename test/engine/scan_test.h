/*
 * scan_test.h
 *		What the tests of scans share: pages with a program, keys and aggregates over them, and
 *		the outcome of a scan.
 */
#ifndef SCAN_TEST_H
#define SCAN_TEST_H

#include "cpu_scan.h"
#include "page_writer.h"
#include "program_test.h"
#include "engine/pipeline/scan_row.h"

#define TRIAL_PAGES_MAX 48
#define TRIAL_LINES_MAX 8192	/* of a page */
#define TRIAL_WORDS (TRIAL_LINES_MAX / 64)
#define TRIAL_AGGREGATES_MAX 30

/* Pages of a relation, what is asked of them, and a scan over them. */
typedef struct Trial
{
	Relation	relation;
	uint32_t	npages;
	WrittenPage written[TRIAL_PAGES_MAX];	/* their pages: also below */
	uint8_t    *memory;			/* the pages, one behind the other; whole pages of memory */
	size_t		memory_bytes;
	bool		registered;
	GhScanPage	pages[TRIAL_PAGES_MAX];
	uint64_t   *bitmaps;		/* TRIAL_WORDS for each page */
	GhProgram  *program;
	uint8_t		classes[GH_PROGRAM_VECTORS_MAX];
	GhScanKey	keys[GH_SCAN_KEYS_MAX];
	GhAggregate aggregates[TRIAL_AGGREGATES_MAX];
	GhScanOptions options;
	uint32_t	cut;			/* pages of a request */
	uint64_t	fail_at;		/* the host's allocation, or taking from its budget, that is refused;
								 * 0: none.  What fails for it is tried again */
} Trial;

/* Groups of a scan, told by several records or one, by their keys. */
typedef struct ScanOutcome
{
	const Trial *trial;
	char	  **records;		/* GhScanGroup, malloc()ed */
	uint32_t	count;
	uint32_t   *slots;			/* a record's number + 1 */
	uint32_t	nslots;			/* a power of two */
	GhScanRow  *back;			/* of all requests, with the trial's page numbers */
	uint64_t	nback;
	uint64_t	no_group;
	uint32_t	told;			/* records that the scan told */
	uint64_t	listed;			/* with lists_rows: of those in back */
	char	   *rows;			/* with each_row: all records, one behind the other */
	size_t		rows_bytes;
	size_t		rows_room;
	bool		refused;		/* memory was */
	uint64_t	counted;
	uint64_t	seen;
	uint64_t	passed;
	uint64_t	joined[GH_SCAN_JOINS_MAX];
} ScanOutcome;

/* scan_trial.c */
extern void trial_pages(Context *c, Trial *trial, uint32_t npages);
extern void trial_ask(Context *c, Trial *trial);
extern void trial_damage(Context *c, Trial *trial);
/* test_scan_hinted.c: of some pages, just what is visible by the tuples' headers, which are drawn. */
extern void trial_hint(Context *c, Trial *trial);
/* What the header of a tuple must be taken for. */
extern GhScanSeen hinted_tuple(const Trial *trial, uint32_t p, uint32_t t);
extern void trial_program(Context *c, Trial *trial, uint32_t ninstructions);
extern void trial_keys(Context *c, Trial *trial, uint32_t nkeys);
extern void trial_aggregates(Context *c, Trial *trial, uint32_t count);
extern void trial_drop(Context *c, Trial *trial);
/* Does the whole of it with an engine; false: it failed, and that was told. */
extern bool trial_run(Context *c, const Trial *trial, const GhEngine *engine, ScanOutcome *outcome);
/* The same for the rows that were handed back alone, as bitmaps. */
extern bool trial_run_back(Context *c, const Trial *trial, const ScanOutcome *back,
						   const GhEngine *engine, ScanOutcome *outcome);
/* The steps of a run: what a scan, that is there, makes of pages, and its groups. */
extern void outcome_make(ScanOutcome *outcome, const Trial *trial);
extern bool trial_requests(Context *c, const Trial *trial, const GhScanEngine *engine, GhScan *scan,
						   const GhScanPage *pages, const uint64_t *bitmaps, ScanOutcome *outcome);
extern bool trial_results(Context *c, const GhScanEngine *engine, GhScan *scan,
						  ScanOutcome *outcome);
extern bool lacks_memory(GhStatus status);
extern void outcome_drop(ScanOutcome *outcome);
/* Puts a record, which is copied, to those of its group. */
extern void outcome_add(Context *c, ScanOutcome *outcome, const GhScanGroup *record);
/* The group with these keys, or NULL. */
extern const GhScanGroup *outcome_find(const ScanOutcome *outcome, const GhScanGroup *record);
extern const GhAggregateState *record_states(const Trial *trial, const GhScanGroup *record);

/* test_scan.c */
/* What a column of the trial's program holds for a tuple. */
extern Written trial_value(const Trial *trial, uint32_t p, uint32_t t, uint32_t column);
extern bool no_scans(Context *c);
/* A tuple, by what was written.  0: the row is not asked for; 1: it is counted; 2: handed back. */
extern int	trial_expects(const Trial *trial, uint32_t p, uint32_t t);
/* The engine's outcome against that of the CPU engine. */
extern void compare_engines(Context *c, const Trial *trial);
/* A trial over pages of three columns, the first nkeys of which are keys. */
extern void make_many(Context *c, Trial *trial, uint32_t nkeys, uint32_t nulls);

#endif							/* SCAN_TEST_H */
