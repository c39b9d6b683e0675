/*
 * page_conditions.h
 *		The conditions of a scan as a program over its pages.
 */
#ifndef GPUHASH_PAGE_CONDITIONS_H
#define GPUHASH_PAGE_CONDITIONS_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "fragment/stage.h"

/* Made when the first page is there; all but the first two fields is zero before. */
typedef struct GhPageConditions
{
	MemoryContext context;		/* the owner's */
	bool		wants_rest;		/* likewise: whether it evaluates just the rest where the program has not all */
	bool		tried;
	ParamExecData *awaited;		/* the result of a subquery that, once it was run, makes a better one */
	const char *why_not;		/* why it has no more conditions */
	int			nquals;			/* conditions that it has, the first ones of the plan */
	GhProgram  *program;		/* NULL: rows are done by PostgreSQL's expressions */
	ExprState  *rest;			/* the other conditions, if they are wanted; NULL: there are none */
	GhStage    *stage;			/* lists the places of rows that pass */
} GhPageConditions;

extern bool gh_page_conditions_compile(GhPageConditions *conditions, ScanState *scan);
extern void gh_page_conditions_forget(GhPageConditions *conditions);

#endif							/* GPUHASH_PAGE_CONDITIONS_H */
