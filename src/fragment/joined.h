/*
 * joined.h
 *		A chain of hash joins over a scan, whose rows a fragment joins by itself: the scan's pages are read
 *		once, and each join's table is probed with the keys of a page's rows.
 */
#ifndef GPUHASH_FRAGMENT_JOINED_H
#define GPUHASH_FRAGMENT_JOINED_H

#include "postgres.h"

#include "expr/translate.h"
#include "fragment/fragment.h"
#include "fragment/lower.h"

/* Where a column of the joined rows comes from. */
typedef struct GhColumnSource
{
	int			level;			/* -1: what comes in; else a join, from the lowest on */
	int			column;			/* of what comes in, from 1; of the join's kept inner ones, from 0 */
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
	GhLowerJoin *lower;
	int			first_attno;	/* of the kept inner columns, in programs */
	int			nkeys;
	GhColumnSource *keys;		/* by key column of the outer side */
	GhOperand  *key_operands;	/* while a program is made: of key columns, or, of a join that is coded, of the code first */
	uint16	   *key_vectors;	/* of the program that was made, likewise */
	int			ncolumns;
	GhJoinedColumn *columns;
	int			place_vector;	/* of the places of inner tuples, which the device fills; -1: none is asked for */
	/* of a program: the key's code ends there, behind it the conditions on the pair, and behind them those on the joined row */
	uint32		key_end;
	uint32		pair_end;
	uint32		filter_end;
	uint32		step;			/* of a pipeline: the probe, */
	uint32		last_step;		/* and that behind which are the rows that come out */
	struct GhJoined *inner;		/* the inner side is joins, of which a device may make the table; or NULL */
	int			table;			/* its number, on a device */
	bool		has_no_columns; /* of a semi or anti join: what is read elsewhere than in its conditions on the pair */
	uint64		rows;			/* that came out, and that the executor has not been told of */
	bool		open;			/* in this run, its table can be probed */
} GhJoinLevel;

/* A chain of joins: those of a fragment, or of the inner side of one of them. */
typedef struct GhJoined
{
	PlanState  *scan;			/* below the joins; of a fragment with parts, the first */
	TupleDesc	scan_desc;		/* the row type of what programs read of it */
	int			nlevels;
	GhJoinLevel *levels;		/* the lowest first */
	int			base;			/* the join whose rows come in; -1: the scan's do */
	int			ncolumns;
	GhColumnSource *sources;	/* by column of the last join: the fragment's child */
	const struct GhJoined *within;	/* it is the inner side of a join of that chain; NULL: of none */
	int			within_level;	/* which one */
	/*
	 * The last join is a right or full one: just a device does it so, and with a row that it hands back the joins do
	 * all.
	 */
	bool		fills_inner;
	bool		open;			/* all tables can be probed */
	int			first;			/* of the scan's page, the visible tuple that was found ahead, and makes
								 * this page the next one; -1: none */
} GhJoined;

extern void gh_joined_init(GhFragment *fragment, int eflags);
extern void gh_joined_arrange(GhJoined *joined, int base);
extern GhColumnSource gh_joined_scan_source(const GhJoined *joined, int number, int column);
extern List *gh_joined_conditions(GhJoined *joined, int number, List *exprs);
extern Index gh_joined_varno(const GhJoined *joined);
extern int	gh_joined_natts(const GhJoined *joined);
extern int	gh_joined_attno(const GhJoined *joined, GhColumnSource source);
extern int	gh_joined_place_attno(const GhJoined *joined, int number);
extern TupleDesc gh_joined_desc(const GhJoined *joined);
extern int	gh_joined_first_within_limits(const GhJoined *joined);
extern int	gh_joined_level_of(const GhJoined *joined, int attno);
extern bool gh_lower_translate_key(const GhLowerJoin *lower, GhTranslation *translation, GhOperand *keys);
extern void gh_joined_take_keys(GhJoined *joined, const GhTranslation *translation);
extern void gh_joined_take_columns(GhJoined *joined, const GhProgram *program);
extern void gh_joined_forget_columns(GhJoined *joined);
extern int	gh_joined_nprobes(const GhFragment *fragment);
extern void gh_joined_probe(const GhJoinLevel *level, const uint16 *key_vectors, GhTable *table, GhMarks *marks,
							GhProbe *probe);
extern GhProbe *gh_joined_probes(const GhFragment *fragment);
extern void gh_joined_count(GhJoined *joined, const uint64 *passed);

/* ---- joined_shown.c ---- */

extern void gh_joined_note_shown(const GhJoined *joined, TupleDesc desc);

/* ---- joined_open.c ---- */

extern GhPages *gh_joined_pages(const GhJoined *joined);
extern void gh_joined_enter(GhJoined *joined);
extern void gh_joined_reset(GhFragment *fragment);
extern bool gh_joined_open_tables(GhFragment *fragment, bool on_host);
extern GhJoinedInput gh_joined_open(GhFragment *fragment);
extern void gh_joined_close(GhFragment *fragment);
extern void gh_joined_start(GhFragment *fragment);
extern void gh_joined_stop(GhFragment *fragment);
extern void gh_joined_add_rows(GhJoined *joined, const uint64 *passed);

/* ---- joined_row.c ---- */

extern void gh_joined_add_row(GhFragment *fragment, const Datum *values, const bool *nulls);

#endif							/* GPUHASH_FRAGMENT_JOINED_H */
