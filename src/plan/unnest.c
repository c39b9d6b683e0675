/*
 * unnest.c
 *		Correlated subqueries as groups that are joined.
 *
 * A scalar subquery that computes aggregates of those rows whose columns equal columns of the outer query,
 *
 *		... WHERE o.x < (SELECT f(agg(i.y)) FROM i WHERE i.k = o.k)
 *
 * gives the same as a look-up in the groups of all of them,
 *
 *		... FROM o LEFT JOIN (SELECT i.k, agg(i.y) AS a FROM i GROUP BY i.k) g ON g.k = o.k WHERE o.x < f(g.a)
 *
 * where agg is NULL without rows; count is 0 then.  PostgreSQL turns the outer join into an inner one where
 * the condition is strict; elsewhere than in a condition that may be computed for all groups agg is in a
 * CASE, so that it does not.  Where conditions of the outer query tell which rows of a table may ask, the
 * groups are made for their keys alone,
 *
 *		... FROM i WHERE EXISTS (SELECT 1 FROM o WHERE o.k = i.k AND o.y = 1) GROUP BY i.k
 *
 * or, where these conditions are about keys, for keys that pass them.  If only rows that have a group pass
 * the condition with the subquery, as those must for which it is strict, these conditions hold of them; of
 * such with a subquery, which is a join, the outer query has no need then.
 *
 * What is computed for keys that nobody asks for must not show (unnest_safe.c).  Subqueries of which it is
 * asked whether they have a row: unnest_in.c; that are computed of groups: unnest_grouped.c.
 *
 * All of this changes a query before it is planned; plan_choice.c plans it both ways.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_aggregate.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "plan/unnest.h"

/* What is done to one query level. */
typedef struct Unnesting
{
	Query	   *query;
	const GhLevel *level;		/* of the query */
	List	   *conditions;		/* all of its WHERE, with IN in place of EXISTS */
	List	   *held;			/* those of them that hold of each row which comes out for other reasons */
	const Node *condition;		/* the one that is being changed; NULL: an expression is */
	List	   *groups;			/* of GhUnnestedGroups, of that: what was made of its subqueries */
	GhUnnested	done;
} Unnesting;

/* ------------------------------------------------------------ conditions */

/*
 * Of an OR, first the conditions that are in all of its arms, then an OR of what is left of these: (a AND b)
 * OR (a AND c) is a AND (b OR c), and a where one arm has nothing else, as the planner will find in the end
 * (canonicalize_qual).
 */
static List *
factored_or(BoolExpr *any)
{
	List	   *arms = NIL;
	List	   *common = NIL;
	List	   *rests = NIL;
	ListCell   *lc;

	foreach(lc, any->args)
		arms = lappend(arms, gh_conjuncts(lfirst(lc)));
	foreach(lc, arms)
		common = lc == list_head(arms) ? list_copy(lfirst(lc)) : list_intersection(common, lfirst(lc));
	if (common == NIL)
		return list_make1(any);
	foreach(lc, arms)
	{
		List	   *rest = list_difference(lfirst(lc), common);

		if (rest == NIL)
			return common;
		rests = lappend(rests, gh_conjunction(rest));
	}
	return lappend(common, makeBoolExpr(OR_EXPR, rests, -1));
}

/* The conditions of which all must hold, in order. */
List *
gh_conjuncts(Node *quals)
{
	List	   *result = NIL;
	ListCell   *lc;

	if (quals == NULL)
		return NIL;
	if (IsA(quals, List))
	{
		foreach(lc, (List *) quals)
			result = list_concat(result, gh_conjuncts(lfirst(lc)));
		return result;
	}
	if (is_orclause(quals))
		return factored_or((BoolExpr *) quals);
	if (!is_andclause(quals))
		return list_make1(quals);
	foreach(lc, ((BoolExpr *) quals)->args)
		result = list_concat(result, gh_conjuncts(lfirst(lc)));
	return result;
}

Node *
gh_conjunction(List *quals)
{
	if (quals == NIL)
		return NULL;
	return list_length(quals) == 1 ? linitial(quals) : (Node *) makeBoolExpr(AND_EXPR, quals, -1);
}

static bool
find_upper(Node *node, int *depth)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return (int) ((Var *) node)->varlevelsup > *depth;
	if (IsA(node, Aggref) && (int) ((Aggref *) node)->agglevelsup > *depth)
		return true;
	if (IsA(node, Query))
	{
		bool		found;

		(*depth)++;
		found = query_tree_walker((Query *) node, find_upper, depth, 0);
		(*depth)--;
		return found;
	}
	return expression_tree_walker(node, find_upper, depth);
}

/* Whether the query, or the expression in one, reads columns of queries around it. */
bool
gh_reads_outer_columns(Node *node)
{
	int			depth = IsA(node, Query) ? -1 : 0;

	return find_upper(node, &depth);
}

/* Whether an expression has columns of the query directly around it, and no others. */
static bool
is_outer_key(Node *expr)
{
	if (contain_vars_of_level(expr, 0) || !contain_vars_of_level(expr, 1) || checkExprHasSubLink(expr))
		return false;
	expr = copyObject(expr);
	IncrementVarSublevelsUp(expr, -1, 1);
	return !gh_reads_outer_columns(expr);
}

static bool
is_inner_key(Node *expr)
{
	return contain_vars_of_level(expr, 0) && !gh_reads_outer_columns(expr) && !checkExprHasSubLink(expr);
}

/*
 * Whether a clause is an equality of a key of the subquery with one of the outer query, and of those that the
 * key's groups are made by: all of a group are equal to the outer key, or none is.
 */
bool
gh_unnest_find_keys(const OpExpr *op, Node **inner, bool *inner_is_left)
{
	TypeCacheEntry *type;
	Node	   *left;
	Node	   *right;

	if (!IsA(op, OpExpr) || list_length(op->args) != 2)
		return false;
	left = linitial(op->args);
	right = lsecond(op->args);
	*inner_is_left = is_inner_key(left) && is_outer_key(right);
	if (!*inner_is_left && !(is_inner_key(right) && is_outer_key(left)))
		return false;
	*inner = *inner_is_left ? left : right;
	type = lookup_type_cache(exprType(*inner), TYPECACHE_EQ_OPR | TYPECACHE_LT_OPR | TYPECACHE_BTREE_OPFAMILY);
	return OidIsValid(type->eq_opr) && OidIsValid(type->lt_opr) &&
		get_op_opfamily_strategy(op->opno, type->btree_opf) == BTEqualStrategyNumber &&
		(!OidIsValid(op->inputcollid) || op->inputcollid == exprCollation(*inner));
}

/* ----------------------------------------------------------- outer joins */

static bool
has_table(Node *node, const Index *table)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblRef))
		return ((RangeTblRef *) node)->rtindex == (int) *table;
	if (!IsA(node, JoinExpr) && !IsA(node, FromExpr) && !IsA(node, List))
		return false;
	return expression_tree_walker(node, has_table, (void *) table);
}

static bool
find_nulling_join(Node *node, const Index *table)
{
	if (node == NULL)
		return false;
	if (IsA(node, JoinExpr))
	{
		const JoinExpr *join = (JoinExpr *) node;

		if ((join->jointype == JOIN_LEFT || join->jointype == JOIN_FULL) && has_table(join->rarg, table))
			return true;
		if ((join->jointype == JOIN_RIGHT || join->jointype == JOIN_FULL) && has_table(join->larg, table))
			return true;
	}
	else if (!IsA(node, FromExpr) && !IsA(node, List))
		return false;
	return expression_tree_walker(node, find_nulling_join, (void *) table);
}

/* Whether the table is one of those that the query's rows are made from. */
bool
gh_unnest_is_in_from(const Query *query, Index table)
{
	return has_table((Node *) query->jointree, &table);
}

/* Whether an outer join of the query may put NULLs in place of the table's columns. */
bool
gh_unnest_is_nullable(const Query *query, Index table)
{
	return find_nulling_join((Node *) query->jointree, &table);
}

/* ---------------------------------------------------------- whole queries */

static Node *
unnest_mutator(Node *node, Unnesting *unnesting)
{
	Node	   *result = NULL;
	GhUnnested	done = GH_UNNESTED_NOT_IN;

	if (node == NULL || IsA(node, Query))
		return node;
	if (is_notclause(node) && IsA(get_notclausearg(node), SubLink))
		result = gh_unnest_not_in(unnesting->query, unnesting->level, (SubLink *) get_notclausearg(node),
								  node == unnesting->condition);
	else if (IsA(node, SubLink))
	{
		GhUnnestedGroups *groups = palloc(sizeof(GhUnnestedGroups));

		result = gh_unnest_scalar(unnesting->query, unnesting->level, unnesting->conditions, (SubLink *) node,
								  unnesting->condition != NULL, groups);
		if (result != NULL)
			unnesting->groups = lappend(unnesting->groups, groups);
		done = GH_UNNESTED_GROUPS;
	}
	if (result == NULL)
		return expression_tree_mutator(node, unnest_mutator, unnesting);
	unnesting->done = Max(unnesting->done, done);
	return result;
}

/* EXISTS beside OR as IN, also where the condition is repeated for groups. */
static Node *
prefer_in(Node *condition, Unnesting *unnesting)
{
	if (is_orclause(condition) && checkExprHasSubLink(condition) && gh_unnest_is_safe(condition, unnesting->level) &&
		gh_unnest_exists(&condition))
		unnesting->done = Max(unnesting->done, GH_UNNESTED_EXISTS);
	return condition;
}

/* A condition that may be computed for rows that others would have kept from it. */
static Node *
unnest_condition(Node *condition, Unnesting *unnesting)
{
	Relids		needed;
	ListCell   *lc;

	if (!checkExprHasSubLink(condition) || !gh_unnest_is_safe(condition, unnesting->level))
		return condition;
	unnesting->groups = NIL;
	unnesting->condition = condition;
	condition = unnest_mutator(condition, unnesting);
	unnesting->condition = NULL;
	needed = find_nonnullable_rels(condition);
	foreach(lc, unnesting->groups)
	{
		const GhUnnestedGroups *groups = lfirst(lc);

		if (bms_is_member((int) groups->varno, needed))
			unnesting->held = list_concat_unique_ptr(unnesting->held, groups->implied);
	}
	return condition;
}

/* A condition that reads other tables only to say what holds of the rows anyway. */
static bool
is_spared(const Unnesting *unnesting, Node *condition)
{
	return list_member_ptr(unnesting->held, condition) && checkExprHasSubLink(condition);
}

/*
 * Arguments and FILTER of the query's aggregates are computed of single rows of its FROM, as what it returns
 * without any.
 */
static Node *
unnest_arguments(Node *node, Unnesting *unnesting)
{
	const Aggref *aggregate = (Aggref *) node;

	if (node == NULL || IsA(node, Query))
		return node;
	if (!IsA(node, Aggref))
		return expression_tree_mutator(node, unnest_arguments, unnesting);
	/* those of an ordered set are computed of groups, too */
	if (aggregate->agglevelsup > 0 || aggregate->aggkind != AGGKIND_NORMAL)
		return node;
	return expression_tree_mutator(node, unnest_mutator, unnesting);
}

/* Whether what the query returns is computed of single rows of its FROM. */
static bool
returns_rows(const Query *query)
{
	return !query->hasAggs && query->groupClause == NIL && query->groupingSets == NIL && !query->hasWindowFuncs &&
		!query->hasTargetSRFs;
}

/* Whether conditions with subqueries may change places in the query; they are listed. */
static bool
may_unnest(Unnesting *unnesting)
{
	Query	   *query = unnesting->query;

	if ((!query->hasSubLinks && !gh_has_lateral_groups(query)) || query->commandType != CMD_SELECT || query->rowMarks != NIL ||
		query->setOperations != NULL || query->jointree->fromlist == NIL)
		return false;
	unnesting->conditions = gh_conjuncts(query->jointree->quals);
	return gh_unnest_tables_are_stored(query) && gh_unnest_may_reorder(unnesting->level, unnesting->conditions);
}

/* Subqueries over large tables are asked for fewer keys. */
static void
reduce_level(Unnesting *unnesting)
{
	Query	   *query = unnesting->query;
	ListCell   *lc;

	if (!may_unnest(unnesting))
		return;
	foreach(lc, unnesting->conditions)
		if (gh_unnest_reduce(query, unnesting->level, unnesting->conditions, lfirst(lc)))
			unnesting->done = GH_UNNESTED_KEYS;
	query->jointree->quals = gh_conjunction(unnesting->conditions);
}

static void unnest_level(Unnesting *unnesting);

/* What is computed of the query's groups is computed of rows, where they are a query in its FROM. */
static void
unnest_grouped(Unnesting *unnesting)
{
	Query	   *above = gh_unnest_as_rows(unnesting->query);
	const GhLevel level = {above, unnesting->level->upper};
	Unnesting	own = {.query = above,.level = &level};

	if (above == NULL)
		return;
	unnest_level(&own);
	if (own.done < GH_UNNESTED_GROUPS)
		return;
	*unnesting->query = *above;
	unnesting->done = own.done;
}

static void
unnest_level(Unnesting *unnesting)
{
	Query	   *query = unnesting->query;
	List	   *changed = NIL;
	List	   *conditions = NIL;
	ListCell   *lc;
	ListCell   *lc2;
	bool		rows;

	if (!may_unnest(unnesting))
		return;
	if (gh_unnest_laterals(query, unnesting->level, unnesting->conditions))
	{
		unnesting->done = GH_UNNESTED_GROUPS;
		unnesting->conditions = gh_conjuncts(query->jointree->quals);
	}
	foreach(lc, unnesting->conditions)
		lfirst(lc) = prefer_in(lfirst(lc), unnesting);
	foreach(lc, unnesting->conditions)
		changed = lappend(changed, unnest_condition(lfirst(lc), unnesting));
	forboth(lc, unnesting->conditions, lc2, changed)
		if (!is_spared(unnesting, lfirst(lc)))
			conditions = lappend(conditions, lfirst(lc2));
	query->jointree->quals = gh_conjunction(conditions);
	rows = returns_rows(query);
	foreach(lc, query->targetList)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);
		Node	   *expr = (Node *) entry->expr;

		entry->expr = (Expr *) (rows ? unnest_mutator(expr, unnesting) : unnest_arguments(expr, unnesting));
	}
	query->havingQual = unnest_arguments(query->havingQual, unnesting);
	unnest_grouped(unnesting);
}

typedef struct Walk
{
	const GhLevel *level;		/* in which it is */
	void		(*unnest) (Unnesting *unnesting);	/* what is done to each query */
	GhUnnested	done;
} Walk;

static bool
unnest_below(Node *node, Walk *walk)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		const GhLevel level = {(Query *) node, walk->level};
		Unnesting	unnesting = {.query = (Query *) node,.level = &level};

		/* from the innermost outwards */
		walk->level = &level;
		(void) query_tree_walker((Query *) node, unnest_below, walk, 0);
		walk->level = level.upper;
		walk->unnest(&unnesting);
		walk->done = Max(walk->done, unnesting.done);
		return false;
	}
	return expression_tree_walker(node, unnest_below, walk);
}

/*
 * Changes the query, which is the caller's own.  Fewer keys alone: what is done besides them is not to win or
 * lose by them.
 */
GhUnnested
gh_unnest(Query *query)
{
	Walk		walk = {.unnest = unnest_level};

	(void) unnest_below((Node *) query, &walk);
	if (walk.done != GH_UNNESTED_NOTHING)
		return walk.done;
	walk.unnest = reduce_level;
	(void) unnest_below((Node *) query, &walk);
	return walk.done;
}
