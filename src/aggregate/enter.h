/*
 * enter.h
 *		enter.c: rows that enter the pipeline that makes the groups.
 */
#ifndef GPUHASH_AGGREGATE_ENTER_H
#define GPUHASH_AGGREGATE_ENTER_H

#include "postgres.h"

#include "aggregate/exec.h"
#include "fragment/stage.h"

/* Rows as columns. */
typedef struct GhEnteringRows
{
	uint32		ngiven;
	uint16	   *given;			/* vectors of the program */
	GhVector   *vectors;		/* their values */
	uint16	   *numbers;		/* of the rows, as the caller has them */
	GhBackRow  *back;			/* room for as many */
} GhEnteringRows;

extern GhStage *gh_aggregate_stage(GhAggregateNode *node);
extern void gh_aggregate_drop_stage(GhAggregateNode *node);
extern void gh_entering_init(GhEnteringRows *rows, uint32 ngiven, uint32 nrows);
extern void gh_entering_move(GhEnteringRows *rows, uint32 to, uint32 from);
extern uint32 gh_enter_columns(GhAggregateNode *node, uint32 step, GhEnteringRows *rows, uint32 nrows);
extern bool gh_enter_row(GhAggregateNode *node);
extern void gh_enter_rows(GhAggregateNode *node, bool at_once);
extern void gh_enter_forget(GhAggregateNode *node);
extern uint64 gh_enter_page(GhAggregateNode *node, GhBackRow *back, uint32 *nback);

#endif							/* GPUHASH_AGGREGATE_ENTER_H */
