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

	/* -- what was read */
	uint64		seen;			/* in this run, tuples of pages and of columns, and of them those that were picked: */
	uint64		picked;
	uint32		pages_picked;	/* of pages that were read, those that rows were picked of */
	uint64		left;			/* of what was picked last, rows that pass the plan's conditions, but not what narrows them */
	uint32		pages_read;		/* blocks that were read last; none where it was the next page of a run */
	uint32		column_pages;	/* of them, those of which columns were */

	/* -- a run of blocks whose rows were picked by columns: their pages come one by one (page_columns.c) */
	bool		in_run;
	bool		run_picked;		/* which rows these are is known */
	bool		missed;			/* the page of one was not in the pool */
	uint32		run_row;		/* the rows before that one, of the stripe, were taken, or removed */
	uint32		run_end;
	uint32		run_pick;		/* of the picks of the run, the next one */

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
extern void gh_page_conditions_leave(GhPageConditions *conditions);
extern uint64 gh_page_conditions_left(const GhPageConditions *conditions, const GhPipelineRequest *request);
extern void gh_page_conditions_forget(GhPageConditions *conditions);
extern void gh_page_conditions_pick(GhPageConditions *conditions, bool by_program);
extern bool gh_page_conditions_next(GhPageConditions *conditions);

/* page_columns.c */
extern bool gh_page_conditions_read(GhPageConditions *conditions, int wanted, bool by_columns);
extern void gh_page_columns_pick(GhPageConditions *conditions);

#endif							/* GPUHASH_PAGE_CONDITIONS_H */
