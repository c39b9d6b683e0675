/*
 * page_trial.h
 *		What the tests of pages in pipelines share: pages of a relation, and what is asked of them.
 */
#ifndef PAGE_TRIAL_H
#define PAGE_TRIAL_H

#include "page_writer.h"
#include "program_test.h"
#include "engine/pipeline/record_row.h"

#define TRIAL_PAGES_MAX 48
#define TRIAL_LINES_MAX 8192	/* of a page */
#define TRIAL_WORDS (TRIAL_LINES_MAX / 64)

/* Pages of a relation, and what is asked of them. */
typedef struct Trial
{
	Relation	relation;
	uint32_t	npages;
	WrittenPage written[TRIAL_PAGES_MAX];	/* their pages: also below */
	uint8_t    *memory;			/* the pages, one behind the other; whole pages of memory */
	size_t		memory_bytes;
	bool		registered;
	GhPageRef	pages[TRIAL_PAGES_MAX];
	uint64_t   *bitmaps;		/* TRIAL_WORDS for each page */
	uint32_t	seen_before;	/* of hinted pages */
	uint32_t	cut;			/* pages of a request */
} Trial;

/* page_trial.c */
extern void trial_pages(Context *c, Trial *trial, uint32_t npages);
extern void trial_ask(Context *c, Trial *trial);
extern void trial_damage(Context *c, Trial *trial);
/* What a column holds for a tuple. */
extern Written trial_value(const Trial *trial, uint32_t p, uint32_t t, const GhColumn *column);
extern void trial_drop(Context *c, Trial *trial);

/* test_headers.c: of some pages, just what is visible by the tuples' headers, which are drawn. */
extern void trial_hint(Context *c, Trial *trial);
/* What the header of a tuple must be taken for. */
extern GhTupleSeen hinted_tuple(const Trial *trial, uint32_t p, uint32_t t);

#endif							/* PAGE_TRIAL_H */
