/*
 * unnest.h
 *		Correlated subqueries as groups that are joined, NOT IN as NOT EXISTS, and INTERSECT of distinct rows.
 */
#ifndef GPUHASH_UNNEST_H
#define GPUHASH_UNNEST_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/* ---- unnest.c ---- */

/* What was done to a query; of several things, the last one. */
typedef enum GhUnnested
{
	GH_UNNESTED_NOTHING,
	GH_UNNESTED_ARMS,			/* gh_make_arms_distinct */
	GH_UNNESTED_NOT_IN,
	GH_UNNESTED_GROUPS
} GhUnnested;

extern GhUnnested gh_unnest(Query *query);

/* ---- arms.c ---- */

extern bool gh_make_arms_distinct(Query *query);

/* ---- unnest_safe.c ---- */

extern bool gh_unnest_is_count(const Aggref *aggref);
extern bool gh_unnest_is_safe(Node *node);
extern bool gh_unnest_tables_are_stored(const Query *query);
extern bool gh_unnest_has_users_functions(Query *query);

/* ---- unnest_order.c ---- */

extern Bitmapset *gh_unnest_tables(Node *node, int levelsup);
extern bool gh_unnest_may_reorder(Query *query, List *conditions);

#endif							/* GPUHASH_UNNEST_H */
