/*
 * explain.h
 *		What EXPLAIN shows of fragments and of other nodes whose pages an engine reads.
 */
#ifndef GPUHASH_FRAGMENT_EXPLAIN_H
#define GPUHASH_FRAGMENT_EXPLAIN_H

#include "postgres.h"

#include "fragment/fragment.h"

/* ---- explain.c ---- */

extern bool gh_explain_all(const ExplainState *es);
extern void gh_explain_count(const char *label, const char *unit, uint64 value, ExplainState *es);
extern void gh_explain_time(const char *label, double milliseconds, ExplainState *es);
extern void gh_explain_input_times(const GhFragmentCounts *counts, ExplainState *es);
extern void gh_explain_other_times(const GhFragmentCounts *counts, const PlanState *ps, ExplainState *es);
extern void gh_explain_page_supply(const GhFragmentCounts *counts, ExplainState *es);
extern void gh_explain_reasons(const GhFragmentCounts *counts, const char *no_program, const char *no_device,
							   ExplainState *es);
extern uint64 gh_to_kilobytes(uint64 bytes);
extern void gh_fragment_explain_input(const GhFragment *fragment, ExplainState *es);
extern void gh_fragment_explain_device(const GhFragment *fragment, ExplainState *es);
extern void gh_fragment_explain_end(const GhFragment *fragment, ExplainState *es);

/* ---- steps.c ---- */

/* What a fragment's node does with the rows. */
typedef struct GhLastSteps
{
	const char *before;			/* NULL: nothing; else what is done first, */
	uint64		rows_before;	/* and rows of that */
	const char *name;			/* what makes the node's rows, but for its conditions; NULL: they come as they are */
	uint64		unwanted;		/* groups or rows that did not come out behind all: they are not among the first of an order */
} GhLastSteps;

extern void gh_fragment_explain_steps(const GhFragment *fragment, const GhLastSteps *last, ExplainState *es);

#endif							/* GPUHASH_FRAGMENT_EXPLAIN_H */
