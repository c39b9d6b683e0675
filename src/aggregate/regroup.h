/*
 * regroup.h
 *		regroup.c: groups of groups, of aggregates with DISTINCT and of grouping sets.
 */
#ifndef GPUHASH_AGGREGATE_REGROUP_H
#define GPUHASH_AGGREGATE_REGROUP_H

#include "postgres.h"

#include "aggregate/exec.h"
#include "aggregate/groups.h"

/* Groups of the first level that are looked up in the second. */
typedef struct GhRegroupBatch
{
	uint32		nrows;
	GhSqlValue *keys;			/* all of a group, then of the next */
	const GhAggregateState *states[GH_LOOKUP_ROWS];
	uint32		groups[GH_LOOKUP_ROWS]; /* numbers of the node's own, for their sides */
	bool		own;			/* they are the node's own */
	const char *records[GH_LOOKUP_ROWS];	/* else they are these */
} GhRegroupBatch;

typedef struct GhRegrouping
{
	GhAggregateNode *node;
	const struct GhRegroupMethods *methods;
	int			npasses;
	int			same;			/* pass whose groups are those of the first level, which come out as they are; -1: none */
	GhGroups   *first;			/* of the first level, beside those that engines made; NULL: they are not needed any more */
	GhGroupFiles *first_files;	/* these come from files, part by part; NULL: all are in memory */
	bool		loaded;			/* a part is in memory that was not looked at */
	bool		part_is_whole;	/* as gh_group_files_are_whole() says of it */
	bool		outgrown;		/* groups that were made of it are in `files` */
	bool		ended;			/* the first level has been looked at, and come out if it does */
	GhGroups   *whole;			/* of the second level, what is made of one part alone; NULL: there are no parts */
	GhGroups   *groups;			/* and of all others */
	GhGroupFiles *files;		/* those that are to be merged; NULL: all are in memory */
	GhRegroupBatch batch;
} GhRegrouping;

typedef struct GhRegroupMethods
{
	void		(*begin) (GhRegrouping *level); /* NULL: there are no groups but of groups */
	/* whether groups of a pass are made of one part of the first level's alone */
	bool		(*is_whole) (const GhRegrouping *level, int pass);
	/* the keys of the second level's group that a group of the batch is a part of, in a pass */
	void		(*set_keys) (GhRegrouping *level, int pass, uint32 row, GhSqlValue *keys);
	void		(*add) (GhRegrouping *level, GhGroups *groups, uint32 row, uint32 group);
} GhRegroupMethods;

extern void gh_regroup(GhAggregateNode *node, int npasses, int same, const GhRegroupMethods *methods);
extern void gh_regroup_merge(GhRegrouping *level, uint32 row, int from, GhGroups *groups, uint32 group, int to);

#endif							/* GPUHASH_AGGREGATE_REGROUP_H */
