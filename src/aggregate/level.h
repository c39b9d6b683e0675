/*
 * level.h
 *		Groups on a device as the source of another pipeline there: what is said of them by those who make one
 *		(narrow.c, regroup_device.c, nested.c).
 */
#ifndef GPUHASH_AGGREGATE_LEVEL_H
#define GPUHASH_AGGREGATE_LEVEL_H

#include "postgres.h"

#include "aggregate/exec.h"
#include "aggregate/having.h"
#include "expr/translate.h"
#include "fragment/supply.h"

/* Where a pipeline's groups have what comes out of the node (GhShown). */
typedef struct GhLevelGroups
{
	int			nkeys;			/* of the pipeline's */
	int			keys[GH_VALUES_MAX];	/* which ones of the node's they are */
	int			set;			/* of grouping sets: the number, which is the last key that comes out */
	GhGroupColumn *counts;		/* by shown aggregate: of how many values */
	GhGroupColumn *values;		/* likewise, what they come to; of one that counts, the count once more */
} GhLevelGroups;

/* Options of a pipeline over groups, while its program is made. */
typedef struct GhLevel
{
	GhTranslation *translation;
	uint32		nconditions;	/* instructions that were there at first: the groups' conditions */
	uint32		ncolumns;		/* of the source */
	GhGroupColumn *columns;		/* room for as many as a program has vectors */
} GhLevel;

extern GhClass gh_level_class(const GhAggregate *aggregate);
extern void gh_level_first(const GhAggregateNode *node, GhLevelGroups *groups);
extern bool gh_level_compile_having(GhAggregateNode *node);
extern bool gh_level_has_conditions(GhAggregateNode *node);
extern void gh_level_begin(GhLevel *level, GhTranslation *translation);
extern void gh_level_add_parts(GhLevel *level, const GhAggregateNode *node, const GhLevelGroups *groups);
extern bool gh_level_add(GhLevel *level, GhGroupColumn column, GhClass value_class, GhOperand *operand);
extern bool gh_level_translate_computed(GhAggregateNode *node, GhTranslation *translation);
extern bool gh_level_end(GhLevel *level, GhPipelineOptions *options);
extern bool gh_level_tells(const GhAggregateNode *node, const GhProgram *program, bool exact);

/* ---- regroup_device.c ---- */

extern bool gh_regroup_on_device(GhAggregateNode *node, GhSupply *supply, GhLevelGroups *groups);

/* ---- nested.c ---- */

extern bool gh_nested_take(GhAggregateNode *below, GhSupply *supply, const GhLevelGroups *groups,
						   GhLevelCounts *counts);

#endif							/* GPUHASH_AGGREGATE_LEVEL_H */
