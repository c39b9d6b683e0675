/*
 * inline.h
 *		Queries in WITH that are read more than once, put in the place of each reference.
 */
#ifndef GPUHASH_INLINE_H
#define GPUHASH_INLINE_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/* ---- inline.c ---- */

/* A query, and the one around it. */
typedef struct GhLevel
{
	const Query *query;
	const struct GhLevel *upper;
} GhLevel;

/* What a column is computed by, and the query that has the columns in it; false: enough is known. */
typedef bool (*GhSource) (const Node *expr, const GhLevel *level, void *arg);

extern const GhLevel *gh_inline_level(const GhLevel *level, Index up);
extern bool gh_inline_is_apart(const CommonTableExpr *with);
extern bool gh_inline_column_sources(const Query *query, AttrNumber column, const GhLevel *upper, GhSource source,
									 void *arg);
extern bool gh_inline_sources(const RangeTblEntry *table, AttrNumber column, const GhLevel *level, GhSource source,
							  void *arg);
extern CommonTableExpr *gh_inline_with_of(const RangeTblEntry *table, const GhLevel *level, const GhLevel **home);
extern bool gh_inline_makes_groups(const Query *query);
extern bool gh_inline_with(Query *query);

/* ---- inline_repeat.c ---- */

extern bool gh_is_identical_type(Oid type, int32 typmod, Oid collation);
extern bool gh_inline_is_repeatable(Query *with, const GhLevel *level);

/* ---- inline_conditions.c ---- */

extern bool gh_inline_conditions_are_safe(Query *query);

#endif							/* GPUHASH_INLINE_H */
