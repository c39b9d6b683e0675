/*
 * having.h
 *		HAVING as a program over groups: what having.c and narrow.c share.
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

struct GhHaving
{
	MemoryContext context;		/* of what is below */
	bool		tried;
	ParamExecData *awaited;		/* the result of a subquery that was not run yet; NULL: there is none */
	List	   *conditions;		/* over groups: the first ones, that have programs */
	GhProgram  *program;		/* of all these; NULL: there is none */
	bool		whole;			/* it has all the conditions */
	bool		divides;		/* it has a quotient, whose digits depend on those that its numbers show */
	GhGroupsPart parts[GH_PROGRAM_VECTORS_MAX]; /* by column of the program */
	GhVectorBatch batch;
};

extern TupleDesc gh_having_desc(const GhAggregateNode *node);
extern GhGroupsPart gh_having_part(const GhAggregateNode *node, AttrNumber attribute);
extern Expr *gh_having_over_groups(GhAggregateNode *node, const Expr *expr);
extern int	gh_having_columns(const GhAggregateNode *node);
extern bool gh_having_compile(GhAggregateNode *node);
extern GhTranslation *gh_having_begin(const GhAggregateNode *node, bool conditions);

#endif							/* GPUHASH_AGGREGATE_HAVING_H */
