/*
 * columns_wanted.h
 *		Which tables' columns the planner would have liked to find in shared memory: asked for by sessions, made by a process in the
 *		background.
 *
 * README, "Columns of tables: before a scan", has who asks, and when they are made.
 */
#ifndef GPUHASH_COLUMNS_WANTED_H
#define GPUHASH_COLUMNS_WANTED_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/rel.h"

/* Columns of a table of this database: a bit for each attribute, as GhCopyFacts.columns has them. */
typedef struct GhWantedColumns
{
	Oid			relation;
	uint64		columns;
} GhWantedColumns;

extern void gh_columns_wanted_init(void);

/*
 * For the planner: whether to ask may have them made, by what the table is, and what was asked before; and to
 * ask.
 */
extern bool gh_columns_may_be_wanted(Relation relation, double rows, const GhWantedColumns *wanted);
extern void gh_columns_ask(const GhWantedColumns *wanted);

/*
 * For the launcher: a database of which columns are to be made; InvalidOid: there is none.  Then, that the
 * process for it has ended.
 */
extern Oid	gh_columns_wanted_database(void);
extern void gh_columns_wanted_end(Oid database, TimestampTz began);

/* For that process: what it makes next, of its database; false: nothing. */
extern bool gh_columns_wanted_next(GhWantedColumns *wanted);

#endif							/* GPUHASH_COLUMNS_WANTED_H */
