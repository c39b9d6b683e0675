/*
 * having.h
 *		Programs over groups, HAVING's among them: what having.c, first.c and narrow.c share.
 */
#ifndef GPUHASH_AGGREGATE_HAVING_H
#define GPUHASH_AGGREGATE_HAVING_H

#include "postgres.h"

#include "aggregate/exec.h"
#include "expr/translate.h"

/* The relation of groups, whose columns are the parts: keys, aggregates' values, what means are of. */
#define GH_GROUPS_VARNO 1

/* What a column of that relation is. */
typedef enum GhPartKind
{
	GH_PART_KEY,
	GH_PART_VALUE,				/* of an aggregate: a sum, least or greatest value; a count */
	GH_PART_FLOAT,				/* likewise a mean or variance of floats */
	GH_PART_COUNT				/* how many values a mean is of */
} GhPartKind;

typedef struct GhGroupsPart
{
	uint8		kind;			/* a GhPartKind */
	int			number;			/* of the key or aggregate */
} GhGroupsPart;

/* A program over groups that are on the host. */
typedef struct GhGroupsProgram
{
	GhProgram  *program;
	uint32		nconditions;	/* its first instructions, which are HAVING's conditions */
	bool		divides;		/* it has a quotient, whose digits depend on those that its numbers show */
	GhGroupsPart parts[GH_PROGRAM_VECTORS_MAX]; /* by column of the program */
	GhVectorBatch batch;
} GhGroupsProgram;

struct GhHaving
{
	MemoryContext context;		/* of what is below */
	bool		tried;
	ParamExecData *awaited;		/* the result of a subquery that was not run yet; NULL: there is none */
	List	   *conditions;		/* over groups: the first ones, that have programs */
	GhGroupsProgram *program;	/* of all these; NULL: there is none */
	bool		whole;			/* it has all the conditions */
};

extern TupleDesc gh_having_desc(const GhAggregateNode *node);
extern GhGroupsPart gh_having_part(const GhAggregateNode *node, AttrNumber attribute);
extern Expr *gh_having_over_groups(GhAggregateNode *node, const Expr *expr);
extern int	gh_having_columns(const GhAggregateNode *node);
extern bool gh_having_compile(GhAggregateNode *node);
extern GhTranslation *gh_having_begin(const GhAggregateNode *node, bool conditions);
extern GhGroupsProgram *gh_having_end(const GhAggregateNode *node, GhTranslation *translation, uint32 nconditions);

#endif							/* GPUHASH_AGGREGATE_HAVING_H */
