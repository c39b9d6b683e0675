/*
 * unnest.h
 *		Correlated subqueries as groups that are joined, NOT IN as NOT EXISTS, EXISTS beside OR as IN, set operations on
 *		distinct rows, and groups of a UNION ALL as groups of its arms' groups.
 */
#ifndef GPUHASH_UNNEST_H
#define GPUHASH_UNNEST_H

#include "postgres.h"

#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"

#include "plan/inline.h"

/* ---- unnest.c ---- */

/* What was done to a query; of several things, the one that is last here. */
typedef enum GhUnnested
{
	GH_UNNESTED_NOTHING,
	GH_UNNESTED_ARMS,			/* gh_make_arms_distinct, gh_group_arms */
	GH_UNNESTED_KEYS,			/* gh_unnest_reduce */
	GH_UNNESTED_EXISTS,
	GH_UNNESTED_NOT_IN,
	GH_UNNESTED_GROUPS
} GhUnnested;

extern GhUnnested gh_unnest(Query *query);
extern bool gh_unnest_is_in_from(const Query *query, Index table);
extern bool gh_unnest_is_nullable(const Query *query, Index table);
extern List *gh_conjuncts(Node *quals);
extern Node *gh_conjunction(List *quals);
extern bool gh_reads_outer_columns(Node *node);
extern bool gh_unnest_find_keys(const OpExpr *op, Node **inner, bool *inner_is_left);

/* ---- unnest_groups.c ---- */

/* What was made of a subquery. */
typedef struct GhUnnestedGroups
{
	Index		varno;			/* the groups, among the outer query's tables */
	List	   *implied;		/* conditions of that query that hold of whatever row has a group */
} GhUnnestedGroups;

extern Expr *gh_unnest_count_or_zero(Expr *count);
extern RangeTblEntry *gh_unnest_subquery(Query *query, const char *name, const List *targets);
extern Node *gh_unnest_scalar(Query *query, const GhLevel *level, List *conditions, const SubLink *link, bool safe,
							  GhUnnestedGroups *made);
extern bool gh_has_lateral_groups(const Query *query);
extern bool gh_unnest_laterals(Query *query, const GhLevel *level, List *conditions);

/* ---- unnest_grouped.c ---- */

extern Query *gh_unnest_as_rows(const Query *original);

/* ---- unnest_in.c ---- */

extern Node *gh_unnest_not_in(const Query *query, const GhLevel *level, const SubLink *link, bool nulls);
extern bool gh_unnest_exists(Node **condition);
extern bool gh_is_plain_selection(const Query *sub);

/* ---- unnest_keys.c ---- */

extern Node *gh_unnest_asked_keys(const Query *query, const GhLevel *level, List *conditions, const Query *sub,
								  const List *links, List **implied);
extern double gh_unnest_rows(const RangeTblEntry *table);
extern double gh_unnest_values(const Query *query, const Node *expr);
extern bool gh_unnest_reduce(const Query *query, const GhLevel *level, List *conditions, Node *condition);

/* ---- arms.c ---- */

extern bool gh_make_arms_distinct(Query *query);
extern int	gh_groups_of_postgres(const PlannedStmt *stmt);

/* ---- arm_groups.c ---- */

extern bool gh_may_group_arms(const Query *query);
extern bool gh_group_arms(Query *query);

/* ---- unnest_safe.c ---- */

extern bool gh_unnest_is_count(const Aggref *aggref);
extern bool gh_lacks_collation(Oid collation, const List *args);
extern bool gh_operator_is_safe(const OpExpr *op);
extern bool gh_array_operator_is_safe(const ScalarArrayOpExpr *op);
extern bool gh_unnest_is_safe(Node *node, const GhLevel *level);
extern bool gh_unnest_tables_are_stored(const Query *query);
extern bool gh_has_users_functions(Node *node);

/* ---- unnest_digits.c ---- */

extern bool gh_unnest_is_safe_divisor(const Node *divisor);
extern bool gh_unnest_is_bounded(const List *args, const GhLevel *level);

/* ---- unnest_order.c ---- */

extern Bitmapset *gh_unnest_tables(Node *node, int levelsup);
extern bool gh_unnest_may_reorder(const GhLevel *level, List *conditions);

#endif							/* GPUHASH_UNNEST_H */
