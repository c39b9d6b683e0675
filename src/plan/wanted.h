/*
 * wanted.h
 *		Columns of tables that the planner would have liked to find in memory.
 */
#ifndef GPUHASH_WANTED_H
#define GPUHASH_WANTED_H

#include "postgres.h"

#include "nodes/plannodes.h"

#include "plan/aggregate_path.h"
#include "store/columns_wanted.h"

/* Tables of a query that columns are asked for of, at most. */
#define GH_WANTED_MAX 4

/* Columns of a table that lack. */
typedef struct GhWantedTable
{
	GhWantedColumns columns;
	Cost		saved;			/* what the plan would cost less with them */
	bool		is_read;		/* the plan reads them by the CPU engine, and so makes them by itself */
} GhWantedTable;

typedef struct GhWantedList
{
	int			count;
	GhWantedTable tables[GH_WANTED_MAX];
} GhWantedList;

/* The paths of a grouping that are ours, by what notes say now, without adding them. */
typedef List *(*GhPathsAside) (const GhAggregateInputs *inputs);

/* Of a grouping whose paths have been added. */
extern void gh_want_columns(const GhAggregateInputs *inputs, GhPathsAside paths_aside);

/*
 * A planning begins, with an empty list; it ends, with what is on it.  `before` is that of the planning
 * around it.
 */
extern GhWantedList gh_wanted_begin(void);
extern GhWantedList gh_wanted_take(const GhWantedList *before);
/* What the plan would cost less with all of them. */
extern Cost gh_wanted_saved(const GhWantedList *wanted);
/* Those of another plan, which would have been chosen with them, are to be asked for, too. */
extern void gh_wanted_add(GhWantedList *wanted, const GhWantedList *other);
/* Those of a table, which a node that is put into the plan would read, and save so much. */
extern void gh_wanted_add_table(GhWantedList *wanted, Oid relation, uint64 columns, Cost saved);
/* They are asked for, if the user may run the plan. */
extern void gh_wanted_ask(const PlannedStmt *plan, const GhWantedList *wanted);

#endif							/* GPUHASH_WANTED_H */
