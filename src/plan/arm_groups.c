/*
 * arm_groups.c
 *		Groups of a UNION ALL, put together from groups of each of the queries that it unites.
 *
 * PostgreSQL has all rows of these queries come together before they are grouped.  Where what they read
 * cannot be read as one table (parts_path.c),
 *
 *		SELECT k, agg(x) FROM (SELECT ... UNION ALL SELECT ...) u JOIN d ... WHERE ... GROUP BY k
 *
 * gives the same as
 *
 *		SELECT k, final(part) FROM (
 *			SELECT k, agg(x) AS part FROM (SELECT ...) u JOIN d ... WHERE ... GROUP BY k UNION ALL
 *			SELECT k, agg(x) AS part FROM (SELECT ...) u JOIN d ... WHERE ... GROUP BY k) g GROUP BY k
 *
 * where each side's groups are a fragment of its own, and few rows come out of it.  That holds for joins of
 * which the united rows are no nullable side, for each of these rows is joined by itself.  What they are
 * joined with is read once for each side, and must be the same each time: tables as a whole, and no
 * subqueries.  It holds for aggregates of which the parts of a group give the whole exactly: not for sums of
 * floats.  (A part of a sum of numerics may have more digits than there can be, some 131,000, where the whole
 * has not.)  Keys that are equal must look the same, too: which of them stands for its group would be
 * another.  With grouping sets, these are made of the sides' groups.  plan_choice.c plans the query both
 * ways.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"

#include "compat.h"
#include "plan/inline.h"
#include "plan/unnest.h"

/* Of more queries the plan is large, and so is the time that it takes to make it. */
#define GH_ARMS_MOST 32

/* A grouping, and what is to become of it. */
typedef struct Grouping
{
	Query	   *query;
	Index		varno;			/* of the UNION ALL among its tables */
	List	   *arms;			/* of Query: what that unites */
	const Query *united;		/* which no copy of the query has */
	Index		names;			/* and of what gives the keys names (gh_group_names) */
	List	   *targets;		/* of each arm's groups: keys first, then parts of aggregates */
	bool		fails;			/* there is something that parts do not give */
} Grouping;

/* ------------------------------------------------------------------ the arms */

/* Whether the query returns what the operation unites, without a cast. */
static bool
has_types(const Query *arm, const SetOperationStmt *operation)
{
	ListCell   *lc;
	int			column = 0;

	foreach(lc, arm->targetList)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);
		Node	   *expr = (Node *) entry->expr;

		if (entry->resjunk)
			continue;
		if (column >= list_length(operation->colTypes) || exprType(expr) != list_nth_oid(operation->colTypes, column) ||
			exprCollation(expr) != list_nth_oid(operation->colCollations, column))
			return false;
		column++;
	}
	return column == list_length(operation->colTypes);
}

/*
 * The queries that are united, in order, to the list; false: something else is done to them than UNION ALL.
 */
static bool
collect_arms(const Query *query, Node *node, List **arms)
{
	const SetOperationStmt *operation = (SetOperationStmt *) node;
	Node	   *sides[2];

	if (!IsA(node, SetOperationStmt) || operation->op != SETOP_UNION || !operation->all)
		return false;
	sides[0] = operation->larg;
	sides[1] = operation->rarg;
	for (int i = 0; i < 2; i++)
	{
		Query	   *arm;

		if (!IsA(sides[i], RangeTblRef))
		{
			if (!collect_arms(query, sides[i], arms))
				return false;
			continue;
		}
		arm = list_nth_node(RangeTblEntry, query->rtable, ((RangeTblRef *) sides[i])->rtindex - 1)->subquery;
		if (arm->commandType != CMD_SELECT || arm->rowMarks != NIL || arm->hasModifyingCTE ||
			!has_types(arm, (SetOperationStmt *) query->setOperations))
			return false;
		*arms = lappend(*arms, arm);
	}
	return true;
}

/* Whether a table of a query is a UNION ALL, and nothing more. */
static bool
is_union_all(const RangeTblEntry *table)
{
	const Query *query = table->subquery;

	return table->rtekind == RTE_SUBQUERY && !table->lateral && table->securityQuals == NIL && !table->security_barrier &&
		query->setOperations != NULL && ((SetOperationStmt *) query->setOperations)->op == SETOP_UNION &&
		((SetOperationStmt *) query->setOperations)->all && query->sortClause == NIL && query->limitCount == NULL &&
		query->limitOffset == NULL && query->rowMarks == NIL && query->cteList == NIL && query->commandType == CMD_SELECT;
}

static bool
find_union(Grouping *grouping)
{
	const Query *query = grouping->query;
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		const RangeTblEntry *table = lfirst_node(RangeTblEntry, lc);
		Index		varno = (Index) foreach_current_index(lc) + 1;

		grouping->arms = NIL;
		if (!is_union_all(table) || !gh_unnest_is_in_from(query, varno) || gh_unnest_is_nullable(query, varno) ||
			!collect_arms(table->subquery, table->subquery->setOperations, &grouping->arms) ||
			list_length(grouping->arms) > GH_ARMS_MOST)
			continue;
		grouping->varno = varno;
		return true;
	}
	return false;
}

/* Whether the query makes groups, and has no subqueries where rows come from, but those in FROM. */
static bool
is_grouping(const Query *query)
{
	return query->commandType == CMD_SELECT && (query->hasAggs || query->groupClause != NIL) &&
		query->setOperations == NULL && !query->hasTargetSRFs && query->rowMarks == NIL && !query->hasModifyingCTE &&
		!checkExprHasSubLink((Node *) query->jointree);
}

/* Whether all other tables of the query give the same rows whenever they are read in a snapshot. */
static bool
others_are_tables(const Grouping *grouping)
{
	ListCell   *lc;

	foreach(lc, grouping->query->rtable)
	{
		const RangeTblEntry *table = lfirst_node(RangeTblEntry, lc);
		Index		number = (Index) foreach_current_index(lc) + 1;

		/* an entry of RTE_RESULT is nothing's any more (unnest_grouped.c, unnest_groups.c) */
		if (number != grouping->varno && number != grouping->names && table->rtekind != RTE_JOIN && table->rtekind != RTE_RESULT &&
			(table->rtekind != RTE_RELATION || table->tablesample != NULL || table->securityQuals != NIL))
			return false;
	}
	return true;
}

/* Whether it may be that there is something to do; asked of each query of each statement. */
bool
gh_may_group_arms(const Query *query)
{
	ListCell   *lc;

	if (!query->hasAggs && query->groupClause == NIL)
		return false;
	foreach(lc, query->rtable)
		if (lfirst_node(RangeTblEntry, lc)->rtekind == RTE_SUBQUERY && is_union_all(lfirst_node(RangeTblEntry, lc)))
			return true;
	return false;
}

/* ------------------------------------------------------------------- targets */

/* A column of the arms' groups, for the query above them. */
static Var *
column_of(int number, const Expr *expr)
{
	return makeVar(1, (AttrNumber) number, exprType((Node *) expr), exprTypmod((Node *) expr),
				   exprCollation((Node *) expr), 0);
}

/* The column that an expression is of the arms' groups: one more, unless it is there. */
static Var *
add_target(Grouping *grouping, Expr *expr, Index sortgroupref)
{
	int			number = list_length(grouping->targets) + 1;
	TargetEntry *entry;
	ListCell   *lc;

	foreach(lc, grouping->targets)
		if (sortgroupref == 0 && equal(lfirst_node(TargetEntry, lc)->expr, expr))
			return column_of(foreach_current_index(lc) + 1, expr);
	entry = makeTargetEntry(expr, (AttrNumber) number, psprintf("%s%d", sortgroupref != 0 ? "key" : "part", number), false);
	entry->ressortgroupref = sortgroupref;
	grouping->targets = lappend(grouping->targets, entry);
	return column_of(number, expr);
}

/*
 * The keys are the first columns.  False: one of them may look different where it is equal, or is no
 * column's.
 */
static bool
add_keys(Grouping *grouping)
{
	const Query *query = grouping->query;
	ListCell   *lc;

	foreach(lc, query->groupClause)
	{
		const SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *key = (Node *) get_sortgroupclause_expr((SortGroupClause *) clause, query->targetList);

		key = gh_without_group_names(query, key);
		if (!contain_vars_of_level(key, 0) || checkExprHasSubLink(key) ||
			!gh_is_identical_type(exprType(key), exprTypmod(key), exprCollation(key)))
			return false;
		(void) add_target(grouping, (Expr *) key, clause->tleSortGroupRef);
	}
	return true;
}

/* The column that is a key; NULL: none is. */
static Var *
key_of(const Grouping *grouping, const Node *expr)
{
	ListCell   *lc;

	foreach(lc, grouping->targets)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (entry->ressortgroupref != 0 && equal(entry->expr, expr))
			return column_of(foreach_current_index(lc) + 1, entry->expr);
	}
	return NULL;
}

/* --------------------------------------------------------------- aggregates */

static Expr *
cast_to_int8(Expr *numeric)
{
	return (Expr *) makeFuncExpr(F_INT8_NUMERIC, INT8OID, list_make1(numeric), InvalidOid, InvalidOid, COERCE_EXPLICIT_CAST);
}

/* An aggregate of the parts that one makes of each arm's rows. */
static Expr *
aggregate_parts(Grouping *grouping, const Aggref *part, Oid function, Oid type)
{
	Var		   *column = add_target(grouping, (Expr *) copyObject(part), 0);
	Aggref	   *aggref = makeNode(Aggref);

	aggref->aggfnoid = function;
	aggref->aggtype = type;
	aggref->aggcollid = part->aggcollid;
	aggref->inputcollid = part->inputcollid;
	aggref->aggargtypes = list_make1_oid(column->vartype);
	aggref->args = list_make1(makeTargetEntry((Expr *) column, 1, NULL, false));
	aggref->aggkind = AGGKIND_NORMAL;
	aggref->aggsplit = AGGSPLIT_SIMPLE;
	aggref->aggno = aggref->aggtransno = -1;
	aggref->location = -1;
	return (Expr *) aggref;
}

/* The same of an aggregate of other rows, or of another result. */
static Aggref *
like(const Aggref *aggref, Oid function, Oid type)
{
	Aggref	   *other = copyObject((Aggref *) aggref);

	other->aggfnoid = function;
	other->aggtype = type;
	return other;
}

/* Also of no groups at all, which a grouping set may have one of. */
static Expr *
whole_count(Grouping *grouping, const Aggref *aggref)
{
	return gh_unnest_count_or_zero(cast_to_int8(aggregate_parts(grouping, aggref, F_SUM_INT8, NUMERICOID)));
}

/* Of sums and counts, as PostgreSQL divides them: as numerics. */
static Expr *
whole_mean(Grouping *grouping, const Aggref *aggref, Oid sum, Oid type)
{
	Expr	   *sums = aggregate_parts(grouping, like(aggref, sum, type), type == INT8OID ? F_SUM_INT8 : F_SUM_NUMERIC,
									   NUMERICOID);
	Expr	   *counts = aggregate_parts(grouping, like(aggref, F_COUNT_ANY, INT8OID), F_SUM_INT8, NUMERICOID);

	return (Expr *) makeFuncExpr(F_NUMERIC_DIV, NUMERICOID, list_make2(sums, counts), InvalidOid, InvalidOid,
								 COERCE_EXPLICIT_CALL);
}

/*
 * Whether it is the least or greatest of values that look the same where they are equal: these name an order.
 */
static bool
is_extreme(const Aggref *aggref)
{
	HeapTuple	tuple;
	Oid			order;
	const Node *arg;

	if (aggref->aggfnoid >= FirstUnpinnedObjectId || list_length(aggref->args) != 1)
		return false;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
	if (!HeapTupleIsValid(tuple))
		return false;
	order = ((Form_pg_aggregate) GETSTRUCT(tuple))->aggsortop;
	ReleaseSysCache(tuple);
	arg = (Node *) linitial_node(TargetEntry, aggref->args)->expr;
	return OidIsValid(order) && exprType(arg) == aggref->aggtype &&
		gh_is_identical_type(aggref->aggtype, exprTypmod(arg), aggref->inputcollid);
}

/* What an aggregate is, of its parts; NULL: they do not give it. */
static Expr *
whole_of(Grouping *grouping, const Aggref *aggref)
{
	if (aggref->agglevelsup != 0 || aggref->aggkind != AGGKIND_NORMAL || aggref->aggdistinct != NIL || aggref->aggorder != NIL ||
		aggref->aggdirectargs != NIL || aggref->aggvariadic || checkExprHasSubLink((Node *) aggref))
		return NULL;
	switch (aggref->aggfnoid)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
			return whole_count(grouping, aggref);
		case F_SUM_INT2:
		case F_SUM_INT4:
			return cast_to_int8(aggregate_parts(grouping, aggref, F_SUM_INT8, NUMERICOID));
		case F_SUM_INT8:
		case F_SUM_NUMERIC:
			return aggregate_parts(grouping, aggref, F_SUM_NUMERIC, NUMERICOID);
		case F_AVG_INT2:
			return whole_mean(grouping, aggref, F_SUM_INT2, INT8OID);
		case F_AVG_INT4:
			return whole_mean(grouping, aggref, F_SUM_INT4, INT8OID);
		case F_AVG_INT8:
			return whole_mean(grouping, aggref, F_SUM_INT8, NUMERICOID);
		case F_AVG_NUMERIC:
			return whole_mean(grouping, aggref, F_SUM_NUMERIC, NUMERICOID);
		default:
			return is_extreme(aggref) ? aggregate_parts(grouping, aggref, aggref->aggfnoid, aggref->aggtype) : NULL;
	}
}

/* Aggregates and keys as the query above the arms' groups has them; subqueries that have neither. */
static Node *
above(Node *node, Grouping *grouping)
{
	Node	   *result = NULL;

	if (node == NULL || grouping->fails)
		return NULL;
	if (IsA(node, Aggref))
		result = (Node *) whole_of(grouping, (Aggref *) node);
	else if (IsA(node, SubLink) ? !contain_vars_of_level(node, 0) && !contain_aggs_of_level(node, 0) :
			 IsA(node, Var) && ((Var *) node)->varlevelsup == 0 && ((Var *) node)->varno == grouping->names)
		result = copyObject(node);
	else
	{
		result = (Node *) key_of(grouping, node);
		if (result == NULL && !IsA(node, SubLink) && !(IsA(node, Var) && ((Var *) node)->varlevelsup == 0))
			return expression_tree_mutator(node, above, grouping);
	}
	grouping->fails |= result == NULL;
	return result;
}

/* -------------------------------------------------------------- the new query */

/* The grouping over one arm in the place of all, two levels below where it was. */
static Query *
group_arm(const Grouping *grouping, const Query *arm)
{
	Query	   *query = copyObject(grouping->query);
	RangeTblEntry *table = list_nth_node(RangeTblEntry, query->rtable, grouping->varno - 1);

	/* what a view's user may do is noted with these, before 16 */
	query->rtable = list_concat(query->rtable, gh_view_entries(grouping->united));
	query->targetList = copyObject(grouping->targets);
	query->groupingSets = query->cteList = query->sortClause = query->distinctClause = query->windowClause = NIL;
	query->havingQual = query->limitCount = query->limitOffset = NULL;
	query->hasAggs = contain_aggs_of_level((Node *) query->targetList, 0);
	query->hasWindowFuncs = query->hasDistinctOn = query->hasRecursive = query->groupDistinct = false;
	gh_drop_group_names(query, grouping->names);
	IncrementVarSublevelsUp((Node *) query, 2, 1);
	/* it was two levels below the grouping, and is one below this one */
	table->subquery = copyObject((Query *) arm);
	IncrementVarSublevelsUp((Node *) table->subquery, 1, 2);
	return query;
}

static RangeTblRef *
make_reference(int rtindex)
{
	RangeTblRef *ref = makeNode(RangeTblRef);

	ref->rtindex = rtindex;
	return ref;
}

static Node *
unite(const List *targets, Node *left, int right)
{
	SetOperationStmt *operation = makeNode(SetOperationStmt);
	ListCell   *lc;

	operation->op = SETOP_UNION;
	operation->all = true;
	operation->larg = left;
	operation->rarg = (Node *) make_reference(right);
	foreach(lc, targets)
	{
		const Node *expr = (Node *) lfirst_node(TargetEntry, lc)->expr;

		operation->colTypes = lappend_oid(operation->colTypes, exprType(expr));
		operation->colTypmods = lappend_int(operation->colTypmods, exprTypmod(expr));
		operation->colCollations = lappend_oid(operation->colCollations, exprCollation(expr));
	}
	return (Node *) operation;
}

/* The groups of all arms. */
static Query *
unite_groups(Grouping *grouping)
{
	RangeTblEntry *table = list_nth_node(RangeTblEntry, grouping->query->rtable, grouping->varno - 1);
	Query	   *query = makeNode(Query);
	ListCell   *lc;

	grouping->united = table->subquery;
	table->subquery = makeNode(Query);
	table->subquery->commandType = CMD_SELECT;
	query->commandType = CMD_SELECT;
	query->canSetTag = true;
	query->jointree = makeFromExpr(NIL, NULL);
	foreach(lc, grouping->arms)
	{
		int			number = foreach_current_index(lc) + 1;

		query->rtable = lappend(query->rtable, gh_unnest_subquery(group_arm(grouping, lfirst_node(Query, lc)), "arm",
															 grouping->targets));
		query->setOperations = number == 1 ? (Node *) make_reference(1) :
			unite(grouping->targets, query->setOperations, number);
	}
	foreach(lc, grouping->targets)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);

		query->targetList = lappend(query->targetList,
									makeTargetEntry((Expr *) column_of(entry->resno, entry->expr), entry->resno,
													pstrdup(entry->resname), false));
	}
	return query;
}

/* The grouping is one of the arms' groups from here on; targets, having: what it computes of these. */
static void
put_groups(Grouping *grouping, List *targets, Node *having)
{
	Query	   *query = grouping->query;
	List	   *tables = list_make1(gh_unnest_subquery(unite_groups(grouping), "groups", grouping->targets));

	if (grouping->names != 0)
	{
		RangeTblEntry *names = list_nth_node(RangeTblEntry, query->rtable, grouping->names - 1);

		gh_rename_groups(names, (List *) above((Node *) gh_without_group_names(query, (Node *) gh_named_groups(names)),
											   grouping));
		tables = lappend(tables, names);
		ChangeVarNodes((Node *) targets, (int) grouping->names, list_length(tables), 0);
		ChangeVarNodes(having, (int) grouping->names, list_length(tables), 0);
	}
	gh_set_tables(query, tables);
	query->targetList = targets;
	query->havingQual = having;
	query->jointree = makeFromExpr(list_make1(make_reference(1)), NULL);
}

/* Makes groups of the arms' groups in the place of the grouping; false: they would not be the same. */
static bool
group_arms(Query *query)
{
	Grouping	grouping = {.query = query,.names = gh_group_names(query)};
	List	   *targets;
	Node	   *having;

	if (!is_grouping(query) || !find_union(&grouping) || !others_are_tables(&grouping) ||
		contain_volatile_functions((Node *) query) || !add_keys(&grouping))
		return false;
	targets = (List *) above((Node *) query->targetList, &grouping);
	having = above(query->havingQual, &grouping);
	/* without a column there would be no rows to count */
	if (grouping.fails || grouping.targets == NIL)
		return false;
	put_groups(&grouping, targets, having);
	return true;
}

static bool
visit_below(Node *node, bool *done)
{
	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, visit_below, done);
	/* what is below first: it is not looked at once more in each arm */
	(void) query_tree_walker((Query *) node, visit_below, done, 0);
	*done |= group_arms((Query *) node);
	return false;
}

/* Changes the query, which is the caller's own; false: there is nothing to change. */
bool
gh_group_arms(Query *query)
{
	bool		done = false;

	(void) visit_below((Node *) query, &done);
	return done;
}
