/*
 * unnest_keys.c
 *		Keys that a subquery may be asked for, as a condition of the subquery.
 *
 * Where conditions of the outer query tell which rows of a table may ask, the subquery needs no rows of other
 * keys:
 *
 *		... FROM o WHERE o.y = 1 AND EXISTS (SELECT 1 FROM i WHERE i.k = o.k AND i.z < 0)
 *
 * is the same with
 *
 *		EXISTS (SELECT 1 FROM i WHERE i.k = o.k AND i.z < 0 AND
 *				EXISTS (SELECT 1 FROM o WHERE o.k = i.k AND o.y = 1))
 *
 * PostgreSQL makes a semi join of EXISTS, whose hash table is of all rows of i, and these are many more than
 * those of o where a few of o ask: so the table is small, and most rows of i are only looked up.  Likewise of
 * NOT EXISTS, and of IN.  For groups: unnest.c.
 *
 * Where all of the conditions are about keys, as o.k < 10 or o.k IN (SELECT ...), they are about the
 * subquery's keys as well, which are equal to those: i.k < 10 says it without reading o once more.  But where
 * i has many keys that are not in o, it is o that tells which may be asked for.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteManip.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "gpuhash.h"
#include "plan/unnest.h"

/*
 * The table of a subquery whose rows are to be fewer has so many, and so many times more than the one that
 * asks, which is read twice.
 */
#define GH_REDUCED_ROWS 100000.0
#define GH_REDUCED_FACTOR 2.0
/*
 * Of the subquery's keys so many are in the table that asks, by its number of rows, where conditions about
 * keys tell enough.
 */
#define GH_SHARED_KEYS 0.5

/* ------------------------------------------------------- keys that may be asked for */

/*
 * The one table of the query that all outer keys of the links are columns of; 0: there is none.  Beyond an
 * outer join, rows without one of it may ask, too.
 */
static Index
asking_table(const Query *query, const List *links)
{
	Bitmapset  *tables = gh_unnest_tables((Node *) links, 1);
	int			number;
	RangeTblEntry *table;

	if (!bms_get_singleton_member(tables, &number))
		return 0;
	table = list_nth_node(RangeTblEntry, query->rtable, number - 1);
	if (table->rtekind != RTE_RELATION || table->tablesample != NULL || table->securityQuals != NIL ||
		gh_unnest_is_nullable(query, (Index) number))
		return 0;
	return (Index) number;
}

static bool
has_scalar_subquery(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink) && ((SubLink *) node)->subLinkType == EXPR_SUBLINK)
		return true;
	return expression_tree_walker(node, has_scalar_subquery, unused);
}

static bool
find_common_table(Node *node, int *depth)
{
	bool		found;

	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
		return ((RangeTblEntry *) node)->rtekind == RTE_CTE &&
			(int) ((RangeTblEntry *) node)->ctelevelsup >= *depth;
	if (!IsA(node, Query))
		return expression_tree_walker(node, find_common_table, depth);
	(*depth)++;
	found = query_tree_walker((Query *) node, find_common_table, depth, QTW_EXAMINE_RTES_BEFORE);
	(*depth)--;
	return found;
}

/*
 * Whether a subquery in the condition reads what a WITH of its query, or of one around that, has: these are
 * found by levels.
 */
static bool
reads_common_tables(Node *condition)
{
	int			depth = 0;

	return find_common_table(condition, &depth);
}

/*
 * Of conditions, those about columns of that table alone, that may be computed for any of its rows; but not
 * those that ask for groups.
 */
static List *
conditions_of_table(List *conditions, Index table, const GhLevel *level)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, conditions)
	{
		Node	   *condition = lfirst(lc);

		if (bms_equal(gh_unnest_tables(condition, 0), bms_make_singleton((int) table)) &&
			gh_unnest_is_safe(condition, level) && !gh_reads_outer_columns(condition) &&
			!reads_common_tables(condition) && !has_scalar_subquery(condition, NULL))
			result = lappend(result, condition);
	}
	return result;
}

/*
 * What links a row of the subquery to one of the table that asks, where the table is all that there is in a
 * query below.
 */
static List *
links_of_table(const List *links, Index table)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, links)
	{
		Node	   *link = copyObject((Node *) lfirst(lc));

		/* the subquery's columns go up by one level, and those of the table come down */
		IncrementVarSublevelsUp(link, 1, 0);
		IncrementVarSublevelsUp(link, -2, 2);
		ChangeVarNodes(link, (int) table, 1, 0);
		result = lappend(result, link);
	}
	return result;
}

/* How many rows a table had when it was last looked at; 0: nobody has. */
double
gh_unnest_rows(const RangeTblEntry *table)
{
	Relation	relation;
	double		result;

	if (table->rtekind != RTE_RELATION)
		return 0;
	relation = table_open(table->relid, NoLock);
	result = Max(relation->rd_rel->reltuples, 0);
	table_close(relation, NoLock);
	return result;
}

/* Of the tables of a query. */
static double
most_rows(const Query *query)
{
	double		rows = 0;
	ListCell   *lc;

	foreach(lc, query->rtable)
		rows = Max(rows, gh_unnest_rows(lfirst_node(RangeTblEntry, lc)));
	return rows;
}

/* --------------------------------------------------------- conditions about keys */

/* Columns of the table that asks become the keys of the subquery that are equal to them. */
typedef struct Exchange
{
	const List *links;
	Index		table;
	int			depth;			/* of queries within the condition */
	bool		fails;			/* some column is no key */
} Exchange;

static Node *
without_labels(Node *expr)
{
	while (IsA(expr, RelabelType))
		expr = (Node *) ((RelabelType *) expr)->arg;
	return expr;
}

/* Whether equal values of the expression have the same bytes. */
static bool
is_identical(const Node *expr)
{
	return gh_is_identical_type(exprType(expr), exprTypmod(expr), exprCollation(expr));
}

/*
 * The subquery's key that has the same bytes as a column of the table that asks, so that whatever is asked
 * about one holds of the other; NULL: there is none.
 */
static Node *
key_of_column(const List *links, const Var *column)
{
	ListCell   *lc;

	foreach(lc, links)
	{
		const OpExpr *op = lfirst(lc);
		Node	   *inner;
		bool		inner_is_left;
		Node	   *key;
		const Var  *outer;

		if (!gh_unnest_find_keys(op, &inner, &inner_is_left))
			continue;
		key = without_labels(inner);
		outer = (const Var *) without_labels(inner_is_left ? lsecond(op->args) : linitial(op->args));
		/* as they are compared, a varchar as char(n) for instance, and as what they are */
		if (IsA(outer, Var) && outer->varattno == column->varattno && is_identical(inner) &&
			is_identical(key) && exprType(key) == column->vartype && exprTypmod(key) == column->vartypmod &&
			exprCollation(key) == column->varcollid && exprCollation(inner) == column->varcollid)
			return key;
	}
	return NULL;
}

static Node *
exchange_columns(Node *node, Exchange *exchange)
{
	Node	   *result;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		const Var  *var = (const Var *) node;

		if ((int) var->varlevelsup != exchange->depth || var->varno != (int) exchange->table)
			return copyObject(node);
		result = copyObject(key_of_column(exchange->links, var));
		if (result == NULL)
			exchange->fails = true;
		else
			IncrementVarSublevelsUp(result, exchange->depth, 0);
		return result;
	}
	if (!IsA(node, Query))
		return expression_tree_mutator(node, exchange_columns, exchange);
	exchange->depth++;
	result = (Node *) query_tree_mutator((Query *) node, exchange_columns, exchange, 0);
	exchange->depth--;
	return result;
}

/* How many values an expression has, if it is a table's column with statistics; else 0. */
double
gh_unnest_values(const Query *query, const Node *expr)
{
	const Var  *var = (const Var *) expr;
	const RangeTblEntry *table;
	HeapTuple	tuple;
	double		values;
	bool		inherited;

	if (!IsA(var, Var) || var->varattno <= 0)
		return 0;
	table = list_nth_node(RangeTblEntry, query->rtable, var->varno - 1);
	if (table->rtekind != RTE_RELATION)
		return 0;
	inherited = table->inh && has_subclass(table->relid);
	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table->relid), Int16GetDatum(var->varattno),
							BoolGetDatum(inherited));
	if (!HeapTupleIsValid(tuple))
		return 0;
	values = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
	ReleaseSysCache(tuple);
	return values < 0 ? -values * gh_unnest_rows(table) : values;
}

/* Whether a unique index of the table has no other columns than these. */
static bool
are_unique(const RangeTblEntry *table, const Bitmapset *columns)
{
	Relation	relation = table_open(table->relid, NoLock);
	List	   *indexes = RelationGetIndexList(relation);
	bool		unique = false;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(lc)));
		Form_pg_index index;
		bool		covered;

		if (!HeapTupleIsValid(tuple))
			continue;
		index = (Form_pg_index) GETSTRUCT(tuple);
		covered = index->indisunique && index->indisvalid && heap_attisnull(tuple, Anum_pg_index_indpred, NULL);
		for (int i = 0; covered && i < index->indnkeyatts; i++)
			covered = index->indkey.values[i] > 0 && bms_is_member(index->indkey.values[i], columns);
		unique |= covered;
		ReleaseSysCache(tuple);
	}
	list_free(indexes);
	table_close(relation, NoLock);
	return unique;
}

/*
 * Whether the table that asks lacks many of the subquery's keys, or it is not known how many these are.  Of
 * several keys there may be as many combinations as their numbers allow, but where they are all of a unique
 * index of the table that asks: then the subquery's rows refer to it, most likely.  Forced, nothing need be
 * known.
 */
static bool
lacks_keys(const Query *query, Index asking, const Query *sub, const List *links)
{
	const RangeTblEntry *table = list_nth_node(RangeTblEntry, query->rtable, asking - 1);
	double		rows = gh_unnest_rows(table);
	double		asked = 1;
	double		there = 1;
	Bitmapset  *columns = NULL;
	ListCell   *lc;

	foreach(lc, links)
	{
		const OpExpr *op = lfirst(lc);
		Node	   *inner;
		Node	   *outer;
		bool		inner_is_left;
		double		keys;
		double		values;

		if (!gh_unnest_find_keys(op, &inner, &inner_is_left))
			continue;
		outer = without_labels(inner_is_left ? lsecond(op->args) : linitial(op->args));
		keys = gh_unnest_values(sub, without_labels(inner));
		values = gh_unnest_values(query, outer);
		if (values <= 0 || values > rows)
			values = rows;
		if (keys <= 0 ? !gh_force_offload : values < GH_SHARED_KEYS * keys)
			return true;
		there *= keys;
		asked *= values;
		if (IsA(outer, Var) && ((Var *) outer)->varattno > 0)
			columns = bms_add_member(columns, ((Var *) outer)->varattno);
	}
	return Min(asked, rows) < GH_SHARED_KEYS * Min(there, most_rows(sub)) && !are_unique(table, columns);
}

/*
 * Conditions about the table's columns, as conditions about the subquery's keys; NIL: some are not about
 * keys.
 */
static List *
conditions_of_keys(List *conditions, Index table, const List *links)
{
	Exchange	exchange = {.links = links,.table = table};
	List	   *result = (List *) exchange_columns((Node *) conditions, &exchange);

	return exchange.fails ? NIL : result;
}

/* ---------------------------------------------------------- keys that are asked for */

/* That the table that asks has a row by which, as these conditions say, the links may ask. */
static Node *
asking_row(const Query *query, Index table, List *conditions, const List *links)
{
	SubLink    *exists = makeNode(SubLink);
	Query	   *sub = makeNode(Query);
	RangeTblRef *ref = makeNode(RangeTblRef);
	List	   *quals = copyObject(conditions);
	Const	   *one;

	ChangeVarNodes((Node *) quals, (int) table, 1, 0);
	ref->rtindex = 1;
	sub->commandType = CMD_SELECT;
	sub->canSetTag = true;
	gh_copy_table(sub, query, (int) table);
	sub->jointree = makeFromExpr(list_make1(ref),
								 gh_conjunction(list_concat(quals, links_of_table(links, table))));
	sub->hasSubLinks = checkExprHasSubLink(sub->jointree->quals);
	one = makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(1), false, true);
	sub->targetList = list_make1(makeTargetEntry((Expr *) one, 1, "one", false));
	exists->subLinkType = EXISTS_SUBLINK;
	exists->subselect = (Node *) sub;
	exists->location = -1;
	return (Node *) exists;
}

/*
 * A condition for a subquery of the query: that a row has a key for which, by these conditions of the
 * query's, a row of one table may ask; NULL: they do not tell.  links: equalities of keys, as
 * gh_unnest_find_keys finds them in the subquery.  implied: those of the conditions that hold of whatever row
 * has the key of a row of the subquery.
 */
Node *
gh_unnest_asked_keys(const Query *query, const GhLevel *level, List *conditions, const Query *sub,
					 const List *links, List **implied)
{
	Index		table = asking_table(query, links);
	List	   *quals = table == 0 ? NIL : conditions_of_table(conditions, table, level);
	List	   *of_keys;

	*implied = NIL;
	if (quals == NIL)
		return NULL;
	of_keys = conditions_of_keys(quals, table, links);
	if (of_keys == NIL || lacks_keys(query, table, sub, links))
		return asking_row(query, table, quals, links);
	*implied = quals;
	return gh_conjunction(of_keys);
}

/* --------------------------------------------------------------- EXISTS, IN */

/*
 * Whether a table of the subquery is large, and much larger than the one that asks.  Forced, it need not be.
 */
static bool
has_large_table(const Query *sub, const Query *query, const List *links)
{
	const Index table = asking_table(query, links);
	double		rows;

	if (table == 0 || gh_force_offload)
		return table != 0;
	rows = most_rows(sub);
	return rows >= GH_REDUCED_ROWS &&
		rows >= GH_REDUCED_FACTOR * gh_unnest_rows(list_nth_node(RangeTblEntry, query->rtable, table - 1));
}

/*
 * Of the subquery's conditions, the equalities of keys with such of the outer query; with IN, that of its
 * column, too.
 */
static List *
links_of(const SubLink *link)
{
	const Query *sub = (const Query *) link->subselect;
	List	   *result = NIL;
	Node	   *inner;
	bool		inner_is_left;
	ListCell   *lc;

	foreach(lc, gh_conjuncts(sub->jointree->quals))
		if (gh_unnest_find_keys(lfirst(lc), &inner, &inner_is_left))
			result = lappend(result, lfirst(lc));
	if (link->subLinkType == ANY_SUBLINK && IsA(link->testexpr, OpExpr) &&
		list_length(((OpExpr *) link->testexpr)->args) == 2 &&
		IsA(lsecond(((OpExpr *) link->testexpr)->args), Param))
	{
		OpExpr	   *op = copyObject((OpExpr *) link->testexpr);
		Node	   *outer = linitial(op->args);

		IncrementVarSublevelsUp(outer, 1, 0);
		op->args = list_make2(outer, linitial_node(TargetEntry, sub->targetList)->expr);
		if (gh_unnest_find_keys(op, &inner, &inner_is_left))
			result = lappend(result, op);
	}
	return result;
}

/* Conditions that ask for no subquery: those that do are as dear as this one. */
static List *
without_subqueries(const List *conditions)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, conditions)
		if (!checkExprHasSubLink(lfirst(lc)))
			result = lappend(result, lfirst(lc));
	return result;
}

/*
 * One of the query's conditions, all of which have to hold.  If it is EXISTS, NOT EXISTS or IN, its subquery
 * is asked for no other keys than rows have which pass the others; whether it was changed.
 */
bool
gh_unnest_reduce(const Query *query, const GhLevel *level, List *conditions, Node *condition)
{
	SubLink    *link = (SubLink *) (is_notclause(condition) ? (Node *) get_notclausearg(condition) :
									condition);
	Query	   *sub;
	List	   *links;
	List	   *implied;
	Node	   *asked;

	if (!IsA(link, SubLink) || (link->subLinkType != EXISTS_SUBLINK && link->subLinkType != ANY_SUBLINK) ||
		(link->subLinkType == ANY_SUBLINK && is_notclause(condition)))
		return false;
	sub = (Query *) link->subselect;
	if (!gh_is_plain_selection(sub) || !gh_unnest_is_safe(condition, level))
		return false;
	links = links_of(link);
	if (links == NIL || !has_large_table(sub, query, links))
		return false;
	asked = gh_unnest_asked_keys(query, level, without_subqueries(conditions), sub, links, &implied);
	if (asked == NULL)
		return false;
	sub->jointree->quals = gh_conjunction(lappend(gh_conjuncts(sub->jointree->quals), asked));
	sub->hasSubLinks = sub->hasSubLinks || checkExprHasSubLink(asked);
	return true;
}
