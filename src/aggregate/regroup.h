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
	GhGroups   *groups;			/* of the second level */
	GhGroupFiles *files;		/* groups that are to be merged; NULL: all are in memory */
	uint32		ngroups;		/* when their memory was asked for */
	GhRegroupBatch batch;
} GhRegrouping;

typedef struct GhRegroupMethods
{
	void		(*begin) (GhRegrouping *level); /* NULL: there are no groups but of groups */
	/* the keys of the second level's group that a group of the batch is a part of, in a pass */
	void		(*set_keys) (GhRegrouping *level, int pass, uint32 row, GhSqlValue *keys);
	void		(*add) (GhRegrouping *level, uint32 row, uint32 group);
} GhRegroupMethods;

extern void gh_regroup(GhAggregateNode *node, int npasses, const GhRegroupMethods *methods);
extern void gh_regroup_merge(GhRegrouping *level, uint32 row, int from, uint32 group, int to);

#endif							/* GPUHASH_AGGREGATE_REGROUP_H */
