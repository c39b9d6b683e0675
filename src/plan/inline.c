/*
 * inline.c
 *		Queries in WITH that are read more than once, put in the place of each reference.
 *
 * PostgreSQL inlines what is read once, and otherwise computes all rows, stores them, and reads them row by
 * row.  In the place of its references such a query is a part of what an engine does as a whole, and is
 * computed only for the rows, and the columns, that are asked for there: the groups of one year, not of all.
 * That it is computed more than once must not show: it must give the same rows each time (inline_repeat.c)
 * and conditions around it must not fail (inline_conditions.c).
 *
 * Only queries that make groups: of others the rows are read as fast from where they are stored, and are
 * changed by more of what is around them.  AS MATERIALIZED is obeyed.  plan_choice.c plans both ways.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"

#include "compat.h"
#include "plan/inline.h"

/*
 * More queries than so many, when all are in their places, are not planned: each level of WITH may double
 * them.
 */
#define GH_MOST_QUERIES 200

typedef struct Search
{
	const GhLevel *level;		/* in which the walk is */
	List	   *found;
} Search;

typedef struct Count
{
	const GhLevel *level;
	int			queries;
} Count;

/* So many levels up; NULL: that is not known. */
const GhLevel *
gh_inline_level(const GhLevel *level, Index up)
{
	for (; up > 0 && level != NULL; up--)
		level = level->upper;
	return level;
}

/*
 * Whether PostgreSQL computes a query in WITH once, apart from what reads it, and does not put it in its
 * place.
 */
bool
gh_inline_is_apart(const CommonTableExpr *with)
{
	return with->cterecursive || with->ctematerialized == CTEMaterializeAlways ||
		(with->ctematerialized == CTEMaterializeDefault && with->cterefcount > 1);
}

/* The query in WITH that a table stands for; NULL: it is not known.  *home: whose WITH. */
CommonTableExpr *
gh_inline_with_of(const RangeTblEntry *table, const GhLevel *level, const GhLevel **home)
{
	ListCell   *lc;

	level = gh_inline_level(level, table->ctelevelsup);
	*home = level;
	if (level == NULL)
		return NULL;
	foreach(lc, level->query->cteList)
		if (strcmp(lfirst_node(CommonTableExpr, lc)->ctename, table->ctename) == 0)
			return lfirst_node(CommonTableExpr, lc);
	return NULL;
}

/* ------------------------------------------------------------------ columns */

static bool
leaf_sources(const Node *set, AttrNumber column, const GhLevel *level, GhSource source, void *arg)
{
	if (IsA(set, SetOperationStmt))
		return leaf_sources(((const SetOperationStmt *) set)->larg, column, level, source, arg) &&
			leaf_sources(((const SetOperationStmt *) set)->rarg, column, level, source, arg);
	return gh_inline_column_sources(rt_fetch(((const RangeTblRef *) set)->rtindex, level->query->rtable)->subquery, column,
									level, source, arg);
}

/*
 * What a query computes its column by, of UNION and the like each of its queries; upper: the query around it.
 * False: there is no such column, or source has said so.
 */
bool
gh_inline_column_sources(const Query *query, AttrNumber column, const GhLevel *upper, GhSource source, void *arg)
{
	const GhLevel level = {query, upper};
	TargetEntry *target;

	if (query->setOperations != NULL)
		return leaf_sources(query->setOperations, column, &level, source, arg);
	target = get_tle_by_resno(query->targetList, column);
	return target != NULL && source((Node *) target->expr, &level, arg);
}

/* The same of a column of the level's table, which is not stored.  False: it is not known. */
bool
gh_inline_sources(const RangeTblEntry *table, AttrNumber column, const GhLevel *level, GhSource source, void *arg)
{
	const CommonTableExpr *with;
	const GhLevel *home;
	const Node *named;

	switch (table->rtekind)
	{
		case RTE_SUBQUERY:
			return gh_inline_column_sources(table->subquery, column, level, source, arg);
		case RTE_CTE:
			with = gh_inline_with_of(table, level, &home);
			return with != NULL && !with->cterecursive &&
				gh_inline_column_sources((Query *) with->ctequery, column, home, source, arg);
		default:
			named = gh_named_expression(table, column);
			return named != NULL && source(named, level, arg);
	}
}

/* ------------------------------------------------------------------- inlining */

static bool
makes_groups(const Query *query, const Node *set)
{
	if (set == NULL)
		return query->hasAggs || query->groupClause != NIL || query->groupingSets != NIL;
	if (IsA(set, SetOperationStmt))
		return makes_groups(query, ((const SetOperationStmt *) set)->larg) &&
			makes_groups(query, ((const SetOperationStmt *) set)->rarg);
	query = list_nth_node(RangeTblEntry, query->rtable, ((const RangeTblRef *) set)->rtindex - 1)->subquery;
	return makes_groups(query, query->setOperations);
}

/* Whether its rows are groups; of UNION and the like, of all of its queries. */
bool
gh_inline_makes_groups(const Query *query)
{
	return makes_groups(query, query->setOperations);
}

static bool
may_be_inlined(const CommonTableExpr *with, const GhLevel *level)
{
	Query	   *query = (Query *) with->ctequery;

	return with->ctematerialized == CTEMaterializeDefault && with->cterefcount > 1 && !with->cterecursive &&
		query->commandType == CMD_SELECT && gh_inline_makes_groups(query) && gh_inline_is_repeatable(query, level);
}

static bool
find_with(Node *node, Search *search)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		const GhLevel level = {(Query *) node, search->level};

		search->level = &level;
		(void) query_tree_walker((Query *) node, find_with, search, 0);
		search->level = level.upper;
		return false;
	}
	if (IsA(node, CommonTableExpr) && may_be_inlined((CommonTableExpr *) node, search->level))
		search->found = lappend(search->found, node);
	return expression_tree_walker(node, find_with, search);
}

/* ------------------------------------------------------------- how many */

static bool count_queries(Node *node, Count *count);

/* Those that come in the place of one that a table stands for. */
static bool
count_inlined(const RangeTblEntry *table, Count *count)
{
	const GhLevel *before = count->level;
	CommonTableExpr *with = gh_inline_with_of(table, before, &count->level);
	bool		too_many = false;

	check_stack_depth();
	if (with != NULL && !with->cterecursive && (with->ctematerialized == CTEMaterializeNever || with->cterefcount == 1))
		too_many = count_queries(with->ctequery, count);
	count->level = before;
	return too_many;
}

/* True: too many, by far or not. */
static bool
count_queries(Node *node, Count *count)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		const GhLevel level = {(Query *) node, count->level};
		bool		too_many = ++count->queries > GH_MOST_QUERIES;
		ListCell   *lc;

		count->level = &level;
		foreach(lc, level.query->rtable)
		{
			const RangeTblEntry *table = lfirst_node(RangeTblEntry, lc);

			too_many = too_many || (table->rtekind == RTE_CTE && !table->self_reference && count_inlined(table, count));
		}
		too_many = too_many || query_tree_walker((Query *) node, count_queries, count, 0);
		count->level = level.upper;
		return too_many;
	}
	return expression_tree_walker(node, count_queries, count);
}

/* Marks what may be inlined; false: nothing.  The query has no user's function. */
bool
gh_inline_with(Query *query)
{
	Search		search = {0};
	Count		count = {0};
	ListCell   *lc;

	(void) find_with((Node *) query, &search);
	if (search.found == NIL || !gh_inline_conditions_are_safe(query))
		return false;
	foreach(lc, search.found)
		lfirst_node(CommonTableExpr, lc)->ctematerialized = CTEMaterializeNever;
	return !count_queries((Node *) query, &count);
}
