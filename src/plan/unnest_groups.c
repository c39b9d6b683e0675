/*
 * unnest_groups.c
 *		Groups in the place of a correlated subquery that computes aggregates: a scalar one (unnest.c), or one in FROM,
 *
 *		... FROM o, LATERAL (SELECT f(agg(i.y)) AS a, count(*) AS c FROM i WHERE i.k = o.k) l
 *
 * which has one row for each outer row, and whose columns are likewise looked up in groups.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "plan/unnest.h"

/* A subquery on its way to groups. */
typedef struct Groups
{
	Query	   *query;			/* the outer one, */
	const GhLevel *level;
	Query	   *sub;			/* and this */
	bool		may_reduce;		/* what its result is in may be computed for all groups, so that the join may become an inner one */
	Index		varno;			/* of the groups among the outer one's tables, */
	Index		joinno;			/* and of the join */
	List	   *targets;		/* keys and aggregates */
	List	   *clauses;		/* of the group: SortGroupClauses */
	List	   *join_clauses;
	List	   *links;			/* what these were in the subquery */
	List	   *quals;			/* of the subquery, that stay */
	List	   *implied;		/* conditions of the outer query that hold of whatever row has a group */
} Groups;

/* ------------------------------------------------------------------ keys and aggregates */

/* A column of the groups, for the outer query. */
static Var *
add_target(Groups *groups, Expr *expr, const char *name, Index sortgroupref)
{
	int			number = list_length(groups->targets) + 1;
	TargetEntry *entry = makeTargetEntry(expr, (AttrNumber) number, psprintf("%s%d", name, number), false);

	entry->ressortgroupref = sortgroupref;
	groups->targets = lappend(groups->targets, entry);
	return makeVar(groups->varno, (AttrNumber) number, exprType((Node *) expr), exprTypmod((Node *) expr),
				   exprCollation((Node *) expr), 0);
}

static void
add_key(Groups *groups, const OpExpr *op, Node *inner, bool inner_is_left)
{
	SortGroupClause *clause = makeNode(SortGroupClause);
	TypeCacheEntry *type = lookup_type_cache(exprType(inner), TYPECACHE_EQ_OPR | TYPECACHE_LT_OPR);
	OpExpr	   *join_clause = copyObject((OpExpr *) op);
	Node	   *outer = inner_is_left ? lsecond(join_clause->args) : linitial(join_clause->args);
	Var		   *key;

	clause->tleSortGroupRef = (Index) list_length(groups->clauses) + 1;
	clause->eqop = type->eq_opr;
	clause->sortop = type->lt_opr;
	clause->hashable = op_hashjoinable(type->eq_opr, exprType(inner));
	key = add_target(groups, (Expr *) inner, "key", clause->tleSortGroupRef);
	groups->clauses = lappend(groups->clauses, clause);
	IncrementVarSublevelsUp(outer, -1, 1);
	join_clause->args = inner_is_left ? list_make2(key, outer) : list_make2(outer, key);
	groups->join_clauses = lappend(groups->join_clauses, join_clause);
}

/* A count, which is 0 where there is none. */
Expr *
gh_unnest_count_or_zero(Expr *count)
{
	CoalesceExpr *result = makeNode(CoalesceExpr);

	result->coalescetype = INT8OID;
	result->args = list_make2(count, makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(0), false,
											   FLOAT8PASSBYVAL));
	result->location = -1;
	return (Expr *) result;
}

/*
 * A column of the groups that is NULL without one, so that no condition on it takes the outer join for an
 * inner one.
 */
static Node *
column_of_match(const Groups *groups, Var *column)
{
	const TargetEntry *key = linitial_node(TargetEntry, groups->targets);
	Var		   *var = makeVar(groups->varno, key->resno, exprType((Node *) key->expr), exprTypmod((Node *) key->expr),
							  exprCollation((Node *) key->expr), 0);
	CaseExpr   *result = makeNode(CaseExpr);
	CaseWhen   *when = makeNode(CaseWhen);
	NullTest   *matches = makeNode(NullTest);

	gh_add_nulling_join(var, groups->joinno);
	matches->arg = (Expr *) var;
	matches->nulltesttype = IS_NOT_NULL;
	matches->location = -1;
	when->expr = (Expr *) matches;
	when->result = (Expr *) column;
	when->location = -1;
	result->casetype = column->vartype;
	result->casecollid = column->varcollid;
	result->args = list_make1(when);
	result->defresult = (Expr *) makeNullConst(column->vartype, column->vartypmod, column->varcollid);
	result->location = -1;
	return (Node *) result;
}

/* Aggregates become columns of the groups. */
static Node *
replace_aggregates(Node *node, Groups *groups)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
	{
		Var		   *var = add_target(groups, (Expr *) node, "agg", 0);

		gh_add_nulling_join(var, groups->joinno);
		if (gh_unnest_is_count((Aggref *) node))
			return (Node *) gh_unnest_count_or_zero((Expr *) var);
		return groups->may_reduce ? (Node *) var : column_of_match(groups, var);
	}
	return expression_tree_mutator(node, replace_aggregates, groups);
}

/* Whether a subquery is aggregates over all of its rows, and nothing else. */
static bool
is_plain_aggregation(const Query *sub)
{
	return sub->commandType == CMD_SELECT && sub->hasAggs && sub->groupClause == NIL && sub->groupingSets == NIL &&
		sub->havingQual == NULL && sub->distinctClause == NIL && sub->limitCount == NULL && sub->limitOffset == NULL &&
		sub->setOperations == NULL && sub->cteList == NIL && sub->rowMarks == NIL && !sub->hasWindowFuncs &&
		!sub->hasTargetSRFs && sub->jointree->fromlist != NIL;
}

/* Divides the subquery's conditions into those that say which rows are the outer row's, and others. */
static bool
take_keys(Groups *groups)
{
	ListCell   *lc;

	foreach(lc, gh_conjuncts(groups->sub->jointree->quals))
	{
		Node	   *clause = lfirst(lc);
		Node	   *inner;
		bool		inner_is_left;

		if (!contain_vars_of_level(clause, 1))
			groups->quals = lappend(groups->quals, clause);
		else if (gh_unnest_find_keys((OpExpr *) clause, &inner, &inner_is_left))
		{
			add_key(groups, (OpExpr *) clause, inner, inner_is_left);
			groups->links = lappend(groups->links, clause);
		}
		else
			return false;
	}
	return groups->clauses != NIL;
}

/* Makes groups only of keys that rows of one table have which may ask for them, where conditions tell. */
static void
restrict_groups(Groups *groups, List *conditions)
{
	Node	   *asked = gh_unnest_asked_keys(groups->query, groups->level, conditions, groups->sub, groups->links,
											 &groups->implied);

	if (asked == NULL)
		return;
	groups->quals = lappend(groups->quals, asked);
	groups->sub->hasSubLinks = groups->sub->hasSubLinks || checkExprHasSubLink(asked);
}

/* ------------------------------------------------------------------ subqueries */

/* A query in FROM, with columns of these targets' names. */
RangeTblEntry *
gh_unnest_subquery(Query *query, const char *name, const List *targets)
{
	RangeTblEntry *table = makeNode(RangeTblEntry);
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, targets)
		names = lappend(names, makeString(pstrdup(lfirst_node(TargetEntry, lc)->resname)));
	table->rtekind = RTE_SUBQUERY;
	table->subquery = query;
	table->eref = makeAlias(name, names);
	return table;
}

/* Puts the groups beside all that the outer query is made from. */
static void
join_groups(Groups *groups)
{
	Query	   *query = groups->query;
	FromExpr   *from = query->jointree;
	RangeTblEntry *table = gh_unnest_subquery(groups->sub, "groups", groups->targets);
	RangeTblEntry *join = makeNode(RangeTblEntry);
	RangeTblRef *ref = makeNode(RangeTblRef);
	JoinExpr   *expr = makeNode(JoinExpr);

	join->rtekind = RTE_JOIN;
	join->jointype = JOIN_LEFT;
	join->eref = makeAlias("unnamed_join", NIL);
	query->rtable = lappend(lappend(query->rtable, table), join);
	ref->rtindex = (int) groups->varno;
	expr->jointype = JOIN_LEFT;
	expr->larg = list_length(from->fromlist) == 1 ? linitial(from->fromlist) :
		(Node *) makeFromExpr(from->fromlist, NULL);
	expr->rarg = (Node *) ref;
	expr->quals = gh_conjunction(groups->join_clauses);
	expr->rtindex = (int) groups->joinno;
	from->fromlist = list_make1(expr);
}

/*
 * Makes groups of the subquery; *results: what its columns are by these, in the outer query, for that is what
 * their columns of it are from here on.  The groups are not yet beside the outer query's tables.  False: it
 * cannot be.
 */
static bool
make_groups(Groups *groups, List *conditions, List **results)
{
	Query	   *sub = groups->sub;
	ListCell   *lc;

	if (!is_plain_aggregation(sub) || !gh_unnest_is_safe((Node *) sub, groups->level))
		return false;
	groups->varno = (Index) list_length(groups->query->rtable) + 1;
	groups->joinno = groups->varno + 1;
	if (!take_keys(groups))
		return false;
	foreach(lc, sub->targetList)
	{
		Node	   *result = (Node *) lfirst_node(TargetEntry, lc)->expr;

		if (checkExprHasSubLink(result))
			return false;
		result = replace_aggregates(result, groups);
		IncrementVarSublevelsUp(result, -1, 1);
		if (gh_reads_outer_columns(result))
			return false;
		*results = lappend(*results, result);
	}
	restrict_groups(groups, conditions);
	sub->targetList = groups->targets;
	sub->groupClause = groups->clauses;
	/* of the one row that it was */
	sub->sortClause = NIL;
	sub->jointree->quals = gh_conjunction(groups->quals);
	return !gh_reads_outer_columns((Node *) sub);
}

/*
 * What takes the place of a scalar subquery, in a query with such conditions; NULL: it stays.  safe: what it
 * is in may be computed for all groups.  Else it may be that an expression around it, or a condition of a
 * query around this one, fails for groups that nobody asks for.
 */
Node *
gh_unnest_scalar(Query *query, const GhLevel *level, List *conditions, const SubLink *link, bool safe, GhUnnestedGroups *made)
{
	Groups		groups = {.query = query,.level = level,.sub = copyObject((Query *) link->subselect),.may_reduce = safe};
	List	   *results = NIL;

	if (link->subLinkType != EXPR_SUBLINK || list_length(groups.sub->targetList) != 1 ||
		!make_groups(&groups, conditions, &results))
		return NULL;
	join_groups(&groups);
	made->varno = groups.varno;
	made->implied = groups.implied;
	return linitial(results);
}

/* ------------------------------------------------------------------ LATERAL */

/* Whether an entry of a query's tables may be such a subquery. */
static bool
is_lateral_aggregation(const RangeTblEntry *table)
{
	return table->rtekind == RTE_SUBQUERY && table->lateral && table->subquery->hasAggs &&
		table->subquery->groupClause == NIL && !table->security_barrier && table->securityQuals == NIL;
}

/* Whether the query may have one; asked of each query of each statement. */
bool
gh_has_lateral_groups(const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
		if (is_lateral_aggregation(lfirst_node(RangeTblEntry, lc)))
			return true;
	return false;
}

/* Taking a table out of FROM. */
typedef struct Removal
{
	Index		varno;
	bool		done;
	bool		fails;			/* a join's condition reads it, or NULLs may take its columns' place */
} Removal;

static bool
is_removed(const Removal *removal, const Node *node)
{
	return IsA(node, RangeTblRef) && ((const RangeTblRef *) node)->rtindex == (int) removal->varno;
}

static bool
is_true(const Node *quals)
{
	return quals == NULL || (IsA(quals, Const) && !((const Const *) quals)->constisnull && DatumGetBool(((const Const *) quals)->constvalue));
}

static Node *remove_table(Node *node, Removal *removal, bool nullable);

static Node *
remove_from_join(JoinExpr *join, Removal *removal, bool nullable)
{
	bool		left = join->jointype == JOIN_LEFT || join->jointype == JOIN_FULL;
	bool		right = join->jointype == JOIN_RIGHT || join->jointype == JOIN_FULL;

	if (is_removed(removal, join->rarg))
	{
		removal->done = true;
		removal->fails |= nullable || right || !is_true(join->quals) || join->alias != NULL;
		return join->larg;
	}
	removal->fails |= bms_is_member((int) removal->varno, gh_unnest_tables(join->quals, 0));
	join->larg = remove_table(join->larg, removal, nullable || right);
	join->rarg = remove_table(join->rarg, removal, nullable || left);
	return (Node *) join;
}

/*
 * FROM, or a part of it, without the table; nullable: an outer join above may put NULLs in the place of its
 * columns.
 */
static Node *
remove_table(Node *node, Removal *removal, bool nullable)
{
	FromExpr   *from = (FromExpr *) node;
	List	   *kept = NIL;
	ListCell   *lc;

	if (IsA(node, JoinExpr))
		return remove_from_join((JoinExpr *) node, removal, nullable);
	if (!IsA(node, FromExpr))
		return node;
	foreach(lc, from->fromlist)
	{
		if (is_removed(removal, lfirst(lc)))
		{
			removal->done = true;
			removal->fails |= nullable;
		}
		else
			kept = lappend(kept, remove_table(lfirst(lc), removal, nullable));
	}
	from->fromlist = kept;
	return node;
}

/* Whether another subquery or function in FROM reads columns of the table: of the groups it could not. */
static bool
is_read_in_from(const Query *query, Index varno)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		const RangeTblEntry *table = lfirst_node(RangeTblEntry, lc);
		Node	   *read = table->rtekind == RTE_SUBQUERY ? (Node *) table->subquery :
			table->rtekind == RTE_FUNCTION ? (Node *) table->functions : NULL;

		if (table->lateral && (read == NULL || bms_is_member((int) varno, gh_unnest_tables(read, table->rtekind == RTE_SUBQUERY ? 1 : 0))))
			return true;
	}
	return false;
}

/* Columns of a table, which are other expressions of the query from now on. */
typedef struct Replacement
{
	Index		varno;
	List	   *exprs;			/* by column */
	int			depth;			/* of queries in the query */
	bool		fails;			/* a row as a whole is read */
} Replacement;

static Node *
replace_columns(Node *node, Replacement *replacement)
{
	const Var  *var = (Var *) node;

	if (node == NULL)
		return NULL;
	if (IsA(node, Query))
	{
		replacement->depth++;
		node = (Node *) query_tree_mutator((Query *) node, replace_columns, replacement, 0);
		replacement->depth--;
		return node;
	}
	if (!IsA(node, Var) || var->varno != (int) replacement->varno || (int) var->varlevelsup != replacement->depth)
		return expression_tree_mutator(node, replace_columns, replacement);
	if (var->varattno <= 0)
	{
		replacement->fails = true;
		return node;
	}
	node = copyObject(list_nth(replacement->exprs, var->varattno - 1));
	IncrementVarSublevelsUp(node, replacement->depth, 0);
	return node;
}

/*
 * Puts groups beside the query's tables in the place of one of them.  False: it stays, and nothing has
 * changed.
 */
static bool
unnest_lateral(Query *query, const GhLevel *level, List *conditions, Index varno)
{
	Query	   *changed = copyObject(query);
	RangeTblEntry *table = rt_fetch(varno, changed->rtable);
	Groups		groups = {.query = changed,.level = level,.sub = table->subquery};
	Removal		removal = {.varno = varno};
	Replacement replacement = {.varno = varno};

	if (!make_groups(&groups, conditions, &replacement.exprs))
		return false;
	/* it is none of the query's tables any more */
	table->rtekind = RTE_RESULT;
	table->subquery = NULL;
	table->lateral = false;
	(void) remove_table((Node *) changed->jointree, &removal, false);
	if (!removal.done || removal.fails || changed->jointree->fromlist == NIL || is_read_in_from(changed, varno))
		return false;
	join_groups(&groups);
	changed = query_tree_mutator(changed, replace_columns, &replacement, 0);
	if (replacement.fails)
		return false;
	*query = *changed;
	return true;
}

/*
 * The same of all subqueries in FROM of which that can be done, in a query with such conditions; whether
 * there was one.
 */
bool
gh_unnest_laterals(Query *query, const GhLevel *level, List *conditions)
{
	int			ntables = list_length(query->rtable);
	bool		any = false;

	for (int i = 1; i <= ntables; i++)
		if (is_lateral_aggregation(rt_fetch(i, query->rtable)))
			any |= unnest_lateral(query, level, conditions, (Index) i);
	return any;
}
