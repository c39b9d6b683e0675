/*
 * page_conditions.h
 *		The conditions of a scan as a program over its pages.
 */
#ifndef GPUHASH_PAGE_CONDITIONS_H
#define GPUHASH_PAGE_CONDITIONS_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "fragment/stage.h"

typedef struct GhPageConditions
{
	ScanState  *scan;			/* whose they are */
	GhPages    *pages;
	bool		wants_rest;		/* where the program has not all, just the rest is evaluated of rows that it lets through */

	/* -- the program, made when the first page is there; zero before */
	MemoryContext context;		/* of all that follows */
	bool		tried;
	ParamExecData *awaited;		/* the result of a subquery that, once it was run, makes a better one */
	const char *why_not;		/* why it has no more conditions */
	int			nquals;			/* conditions that it has, the first ones of the plan */
	GhProgram  *program;		/* NULL: rows are done by PostgreSQL's expressions */
	ExprState  *rest;			/* conditions of rows that it lets through; NULL: there are none */
	uint32		nfilters;		/* its instructions for these; what is behind them narrows what they let through */
	GhStage    *stage;			/* lists the places of rows that pass */

	/* -- the page that is pinned */
	int			tuple;			/* of its visible tuples, the next one: those before it were taken, or removed */
	bool		is_back;		/* that one, found, was evaluated from the first condition on */
	bool		in_slot;		/* and it is in the scan's slot */
	int			next;			/* pick */
	int			npicks;
	GhBackRow	picks[MaxHeapTuplesPerPage];	/* its rows that may pass; of those that are not live all conditions are
												 * to be evaluated */
} GhPageConditions;

extern void gh_page_conditions_init(GhPageConditions *conditions, ScanState *scan, GhPages *pages, bool wants_rest);
extern bool gh_page_conditions_compile(GhPageConditions *conditions);
extern bool gh_page_conditions_narrow(GhPageConditions *conditions, Expr *further);
extern uint64 gh_page_conditions_left(const GhPageConditions *conditions, const GhPipelineRequest *request);
extern void gh_page_conditions_forget(GhPageConditions *conditions);
extern void gh_page_conditions_pick(GhPageConditions *conditions, bool by_program);
extern bool gh_page_conditions_next(GhPageConditions *conditions);

#endif							/* GPUHASH_PAGE_CONDITIONS_H */
