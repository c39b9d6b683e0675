/*
 * joined.h
 *		The rows of a chain of hash joins over a scan, in vectors: the scan's pages are read
 *		once, and each join's table is probed with the keys of a page's rows.
 */
#ifndef GPUHASH_AGGREGATE_JOINED_H
#define GPUHASH_AGGREGATE_JOINED_H

#include "postgres.h"

#include "aggregate/exec.h"
#include "join/join.h"

/* Where a column of the joined rows comes from. */
typedef struct GhColumnSource
{
	int			level;			/* -1: the scan; else a join, from the lowest on */
	int			column;			/* of the scan's relation, from 1; of the join's kept inner ones, from 0 */
} GhColumnSource;

/* A column that a program reads, of one join's inner side. */
typedef struct GhJoinedColumn
{
	int			column;			/* of the kept inner ones */
	uint16		vector;
	uint16		load;			/* a GhLoad */
	uint16		scale;
} GhJoinedColumn;

typedef struct GhJoinLevel
{
	GhJoinState *js;
	int			first_attno;	/* of the kept inner columns, in programs */
	int			nkeys;
	GhColumnSource *keys;		/* by key column of the outer side */
	uint16	   *key_vectors;
	int			ncolumns;
	GhJoinedColumn *columns;
	int			place_vector;	/* of the places of inner tuples, which the device fills; -1: none is asked for */
	Datum	   *values;			/* of one row, by kept inner column */
	bool	   *nulls;
	uint64		rows;			/* of the page, that came out */
} GhJoinLevel;

typedef struct GhJoined
{
	int			nlevels;
	GhJoinLevel *levels;		/* the lowest first */
	GhColumnSource *sources;	/* by column of the aggregate's child */
	/*
	 * The last join is a right or full one, or has conditions beside its keys: just a device does it so, and with a row that
	 * it hands back the joins do all.
	 */
	bool		for_device;
	bool		fills_inner;	/* it is a right or full one */
	List	   *conditions;		/* of its rows, as expressions over the columns of programs */
	bool		open;			/* the tables can be probed */
	int			first;			/* of the scan's page, the visible tuple that was found ahead, and makes
								 * this page the next one; -1: none */
	uint64	   *keys;			/* of a page's rows that have one */
	uint64	   *found;
	uint16	   *rows;			/* their numbers in the batch */
} GhJoined;

extern void gh_joined_init(GhAggregateNode *node, EState *estate, int eflags);
extern int	gh_joined_attno(GhAggregateNode *node, GhColumnSource source);
extern int	gh_joined_place_attno(const GhAggregateNode *node, int number);
extern TupleDesc gh_joined_desc(GhAggregateNode *node);
extern void gh_joined_add_column(GhAggregateNode *node, const GhColumn *column, int vector);
extern void gh_joined_forget_columns(GhAggregateNode *node);
/* What may be read. */
typedef enum GhJoinedInput
{
	GH_JOINED_NOTHING,			/* there are no rows */
	GH_JOINED_PAGES,			/* the scan's, the joins' tables are there */
	GH_JOINED_ROWS				/* those of the joins */
} GhJoinedInput;

extern GhPages *gh_joined_pages(GhAggregateNode *node);
extern void gh_joined_reset(GhAggregateNode *node);
extern bool gh_joined_open_tables(GhAggregateNode *node, bool on_host);
extern GhJoinedInput gh_joined_open(GhAggregateNode *node);
extern void gh_joined_close(GhAggregateNode *node);
extern void gh_joined_start(GhAggregateNode *node);
extern void gh_joined_stop(GhAggregateNode *node);
extern void gh_joined_probe(GhAggregateNode *node, GhVectorBatch *batch);
extern void gh_joined_add_rows(GhAggregateNode *node, const uint64 *rows);
extern void gh_joined_uncount(GhAggregateNode *node, int level, uint32 rows);
extern void gh_joined_add_tuple(GhAggregateNode *node);

#endif							/* GPUHASH_AGGREGATE_JOINED_H */
