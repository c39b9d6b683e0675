/*
 * unnest_in.c
 *		Subqueries of which it is asked whether they have a row: NOT IN as NOT EXISTS, and EXISTS beside OR as IN.
 *
 * x NOT IN (SELECT y ...) is NOT EXISTS (SELECT ... WHERE y = x) where neither x nor y can be NULL:
 * PostgreSQL has an anti join for that.  Where x can be, it is that, and x IS NOT NULL OR NOT EXISTS (SELECT
 * ...); where y can be, that, and NOT EXISTS (SELECT ... WHERE y IS NULL); each of which PostgreSQL asks
 * once.  Then it is false where NOT IN is NULL, so that it has to be a condition of its own.
 *
 * PostgreSQL makes a semi join of EXISTS where it is a condition of its own.  Beside OR it is asked for each
 * row, and is priced as that, though the executor may well make a hash table of the subquery once:
 *
 *		... WHERE EXISTS (SELECT 1 FROM i WHERE i.k = o.k AND i.x = 1) OR o.y = 2
 *
 * So dear a condition hides what everything else in the plan costs.  As o.k IN (SELECT i.k FROM i WHERE i.x =
 * 1) it is priced as what it is.  Where a key is NULL, IN may be NULL, and EXISTS is false; which is the same
 * where a condition consists of nothing but AND and OR.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

#include "compat.h"
#include "plan/unnest.h"

/* ---------------------------------------------------------------- NOT IN */

/* Whether an expression of the query is a column that is never NULL. */
static bool
is_never_null(const Query *query, Node *expr)
{
	Var		   *var = (Var *) (IsA(expr, RelabelType) ? (Node *) ((RelabelType *) expr)->arg : expr);
	RangeTblEntry *table;
	Relation	relation;
	bool		result;

	if (!IsA(var, Var) || var->varlevelsup != 0 || var->varattno <= 0 || gh_unnest_is_nullable(query, (Index) var->varno))
		return false;
	table = list_nth_node(RangeTblEntry, query->rtable, var->varno - 1);
	/* a child may allow it where its parent does not, unless it is a partition */
	if (table->rtekind != RTE_RELATION ||
		(table->relkind != RELKIND_PARTITIONED_TABLE &&
		 (table->relkind != RELKIND_RELATION || (table->inh && has_subclass(table->relid)))))
		return false;
	relation = table_open(table->relid, NoLock);
	result = gh_is_never_null(RelationGetDescr(relation), var->varattno);
	table_close(relation, NoLock);
	return result;
}

/* Whether a subquery is rows of its FROM, and nothing else. */
bool
gh_is_plain_selection(const Query *sub)
{
	return sub->commandType == CMD_SELECT && !sub->hasAggs && sub->groupClause == NIL && sub->groupingSets == NIL &&
		sub->havingQual == NULL && sub->limitCount == NULL && sub->limitOffset == NULL && sub->setOperations == NULL &&
		sub->cteList == NIL && sub->rowMarks == NIL && !sub->hasWindowFuncs && !sub->hasTargetSRFs &&
		!sub->hasDistinctOn && sub->jointree->fromlist != NIL;
}

/* NOT EXISTS of the subquery's rows for which one more condition holds, unless it is NULL. */
static Node *
make_not_exists(const SubLink *link, Node *condition)
{
	SubLink    *exists = copyObject((SubLink *) link);
	Query	   *sub = (Query *) exists->subselect;

	if (condition != NULL)
		sub->jointree->quals = gh_conjunction(lappend(gh_conjuncts(sub->jointree->quals), condition));
	sub->distinctClause = sub->sortClause = NIL;
	exists->subLinkType = EXISTS_SUBLINK;
	exists->testexpr = NULL;
	exists->operName = NIL;
	return (Node *) make_notclause((Expr *) exists);
}

static Node *
make_null_test(Node *expr, NullTestType type)
{
	NullTest   *test = makeNode(NullTest);

	test->arg = (Expr *) copyObject(expr);
	test->nulltesttype = type;
	test->location = -1;
	return (Node *) test;
}

/*
 * The same as NOT EXISTS; NULL: it stays.  nulls: it is a condition of its own, and may be false where NOT IN
 * is NULL.
 */
Node *
gh_unnest_not_in(const Query *query, const GhLevel *level, const SubLink *link, bool nulls)
{
	Query	   *sub = (Query *) link->subselect;
	OpExpr	   *op = (OpExpr *) link->testexpr;
	TypeCacheEntry *type;
	List	   *conditions;
	OpExpr	   *clause;
	Node	   *inner;
	Node	   *outer;
	Node	   *key;
	bool		outer_null;
	bool		inner_null;

	if (link->subLinkType != ANY_SUBLINK || !gh_is_plain_selection(sub) || !IsA(op, OpExpr) || list_length(op->args) != 2 ||
		!IsA(lsecond(op->args), Param) || checkExprHasSubLink((Node *) sub->targetList) ||
		!gh_unnest_is_safe((Node *) sub, level) || gh_reads_outer_columns((Node *) sub))
		return NULL;
	outer = linitial(op->args);
	inner = (Node *) linitial_node(TargetEntry, sub->targetList)->expr;
	type = lookup_type_cache(exprType(inner), TYPECACHE_BTREE_OPFAMILY);
	outer_null = !is_never_null(query, outer);
	inner_null = !is_never_null(sub, inner);
	/* a row of NULLs is NULL to IS NULL, but not to an operator */
	if (get_op_opfamily_strategy(op->opno, type->btree_opf) != BTEqualStrategyNumber ||
		((outer_null || inner_null) && (!nulls || type_is_rowtype(exprType(outer)) || type_is_rowtype(exprType(inner)))))
		return NULL;
	key = copyObject(outer);
	IncrementVarSublevelsUp(key, 1, 0);
	clause = copyObject(op);
	clause->args = list_make2(key, copyObject(inner));
	conditions = list_make1(make_not_exists(link, (Node *) clause));
	if (outer_null)
		conditions = lappend(conditions, makeBoolExpr(OR_EXPR, list_make2(make_null_test(outer, IS_NOT_NULL),
																		  make_not_exists(link, NULL)), -1));
	if (inner_null)
		conditions = lappend(conditions, make_not_exists(link, make_null_test(inner, IS_NULL)));
	return gh_conjunction(conditions);
}

/* ------------------------------------------------------------- EXISTS beside OR */

/*
 * The subquery's columns that are to be equal to such of the outer query, and what of its conditions is not
 * about those.
 */
typedef struct Tests
{
	List	   *equalities;		/* outer = Param, of the column with that number */
	List	   *targets;		/* these columns */
	List	   *quals;
} Tests;

static bool
add_test(Tests *tests, const OpExpr *op, Node *inner, bool inner_is_left)
{
	AttrNumber	number = (AttrNumber) (list_length(tests->targets) + 1);
	Oid			operator = inner_is_left ? get_commutator(op->opno) : op->opno;
	Node	   *outer = copyObject((Node *) (inner_is_left ? lsecond(op->args) : linitial(op->args)));
	Param	   *param = makeNode(Param);

	IncrementVarSublevelsUp(outer, -1, 1);
	if (!OidIsValid(operator) || !op_hashjoinable(operator, exprType(outer)))
		return false;
	param->paramkind = PARAM_SUBLINK;
	param->paramid = number;
	param->paramtype = exprType(inner);
	param->paramtypmod = exprTypmod(inner);
	param->paramcollid = exprCollation(inner);
	param->location = -1;
	tests->equalities = lappend(tests->equalities, make_opclause(operator, BOOLOID, false, (Expr *) outer, (Expr *) param,
																 InvalidOid, op->inputcollid));
	tests->targets = lappend(tests->targets, makeTargetEntry((Expr *) inner, number, psprintf("key%d", number), false));
	return true;
}

/* Divides the subquery's conditions. */
static bool
take_tests(const Query *sub, Tests *tests)
{
	ListCell   *lc;

	foreach(lc, gh_conjuncts(sub->jointree->quals))
	{
		Node	   *clause = lfirst(lc);
		Node	   *inner;
		bool		inner_is_left;

		if (!contain_vars_of_level(clause, 1))
			tests->quals = lappend(tests->quals, clause);
		else if (!gh_unnest_find_keys((OpExpr *) clause, &inner, &inner_is_left) ||
				 !add_test(tests, (OpExpr *) clause, inner, inner_is_left))
			return false;
	}
	return tests->equalities != NIL;
}

/* The same as IN; NULL: it stays. */
static Node *
exists_as_in(const SubLink *link)
{
	Tests		tests = {0};
	SubLink    *result;
	Query	   *sub;

	if (link->subLinkType != EXISTS_SUBLINK || !gh_is_plain_selection((Query *) link->subselect))
		return NULL;
	result = copyObject((SubLink *) link);
	sub = (Query *) result->subselect;
	if (!take_tests(sub, &tests))
		return NULL;
	sub->targetList = tests.targets;
	sub->jointree->quals = gh_conjunction(tests.quals);
	sub->distinctClause = sub->sortClause = NIL;
	/* hasSubLinks stays: policies of its tables may have some */
	if (gh_reads_outer_columns((Node *) sub))
		return NULL;
	result->subLinkType = ANY_SUBLINK;
	result->testexpr = gh_conjunction(tests.equalities);
	result->operName = list_make1(makeString("="));
	return (Node *) result;
}

/* Of a condition that is to hold for a row to come out, and is safe; whether it was changed. */
bool
gh_unnest_exists(Node **condition)
{
	bool		done = false;
	List	   *args = NIL;
	ListCell   *lc;
	Node	   *in;

	if (is_orclause(*condition) || is_andclause(*condition))
	{
		foreach(lc, ((BoolExpr *) *condition)->args)
		{
			Node	   *arg = lfirst(lc);

			done |= gh_unnest_exists(&arg);
			args = lappend(args, arg);
		}
		if (done)
			*condition = (Node *) makeBoolExpr(((BoolExpr *) *condition)->boolop, args, -1);
		return done;
	}
	in = IsA(*condition, SubLink) ? exists_as_in((SubLink *) *condition) : NULL;
	if (in != NULL)
		*condition = in;
	return in != NULL;
}
