/*
 * ahead.c
 *		Whether a join's outer side may be read ahead of need.
 *
 * The node reads the outer side in batches.  Where the rows of a query may be left unread, because of a
 * LIMIT, an EXISTS or a cursor of the query or of one around it, a batch contains rows that PostgreSQL's hash
 * join would not have reached.  Their being read must not show: no error that an expression raises for one of
 * them, no lock, no side effect.  So there, the outer side's expressions must be ones that cannot fail, which
 * is what PostgreSQL's "leakproof" says, LIKE with a pattern that is known, and comparisons of built-in
 * types; and what it reads plain relations.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "utils/lsyscache.h"

#include "expr/key.h"
#include "plan/join_plan.h"
#include "plan/unnest.h"

/*
 * Whether a semi or anti join of the query is above part, which it reads to the first
 * match only.  part NULL: above some subquery.
 */
static bool
is_matched_once(PlannerInfo *root, Relids part)
{
	ListCell   *lc;

	foreach(lc, root->join_info_list)
	{
		SpecialJoinInfo *above = lfirst_node(SpecialJoinInfo, lc);
		int			relid = -1;

		if (above->jointype != JOIN_SEMI && above->jointype != JOIN_ANTI)
			continue;
		if (part != NULL && bms_is_subset(part, above->syn_righthand))
			return true;
		while (part == NULL && (relid = bms_next_member(above->syn_righthand, relid)) >= 0)
			if (root->simple_rte_array[relid]->rtekind == RTE_SUBQUERY)
				return true;
	}
	return false;
}

/* A window over the rows as they come: a condition from above may end it early. */
static bool
has_window_as_it_comes(Query *query)
{
	ListCell   *lc;

	foreach(lc, query->windowClause)
	{
		WindowClause *window = lfirst_node(WindowClause, lc);

		if (window->partitionClause == NIL && window->orderClause == NIL)
			return true;
	}
	return false;
}

/* A query whose rows are distinct: as the inner side of a nested loop, one match is enough. */
static bool
may_be_unique(Query *query)
{
	return query->distinctClause != NIL || query->groupClause != NIL ||
		query->groupingSets != NIL || query->setOperations != NULL;
}

/*
 * Whether the query reads all rows of what it is made from before its first one comes
 * out.  Sorting and grouping do, unless the rows already come in order.
 */
static bool
reads_all(Query *query, bool unordered)
{
	bool		groups = query->groupClause != NIL || query->groupingSets != NIL;

	if (query->commandType != CMD_SELECT || (query->hasAggs && !groups))
		return true;
	return unordered && (groups || query->sortClause != NIL || query->distinctClause != NIL);
}

/*
 * Whether the join's node may be stopped before all its rows are made: by its own query,
 * or by one that reads that as a subquery.  The node has no order, so what sorts or groups
 * all of its query's rows reads all of them first; but a part of a query may be the inner
 * side of a nested loop whose outer side has the order.  A semi or anti join above stops at
 * the first match, whatever the query.
 */
bool
gh_rows_may_stay_unread(PlannerInfo *root, RelOptInfo *joinrel)
{
	Relids		part = joinrel->relids;
	bool		unordered = bms_is_subset(root->all_baserels, joinrel->relids);

	for (PlannerInfo *level = root;; level = level->parent_root, part = NULL)
	{
		PlannerInfo *parent = level->parent_root;

		if (is_matched_once(level, part))
			return true;
		if (reads_all(level->parse, unordered))
			return false;
		if (level->tuple_fraction > 0)
			return true;
		if (parent == NULL)
			return false;
		if (has_window_as_it_comes(level->parse))
			return true;

		/*
		 * A parent that has no relations yet is planning its WITH queries, of which it may
		 * read a part, or a sublink, whose tuple_fraction has told that.
		 */
		if (parent->simple_rel_array == NULL)
			return list_length(parent->cte_plan_ids) < list_length(parent->parse->cteList);
		if (bms_membership(parent->all_baserels) != BMS_SINGLETON)
		{
			if (may_be_unique(level->parse))
				return true;
			unordered = false;
		}
	}
}

/*
 * The arguments of an operator that cannot fail, though PostgreSQL does not call it leakproof; NIL: it is
 * none.
 */
static List *
safe_arguments(Node *node)
{
	if (IsA(node, OpExpr) && gh_operator_is_safe((OpExpr *) node))
		return ((OpExpr *) node)->args;
	if (IsA(node, ScalarArrayOpExpr) && gh_array_operator_is_safe((ScalarArrayOpExpr *) node))
		return ((ScalarArrayOpExpr *) node)->args;
	return NIL;
}

/* In the place of such operators, tests of their arguments for NULL. */
static Node *
replace_safe(Node *node, void *unused)
{
	List	   *tests = NIL;
	ListCell   *lc;

	if (node == NULL)
		return NULL;
	foreach(lc, safe_arguments(node))
	{
		NullTest   *test = makeNode(NullTest);

		test->arg = (Expr *) replace_safe(lfirst(lc), unused);
		test->nulltesttype = IS_NULL;
		test->location = -1;
		tests = lappend(tests, test);
	}
	return tests != NIL ? (Node *) make_andclause(tests) : expression_tree_mutator(node, replace_safe, unused);
}

/* Whether evaluating any of the expressions may fail or do something. */
bool
gh_may_show(Node *exprs)
{
	return contain_volatile_functions(exprs) ||
		(contain_leaked_vars(exprs) && contain_leaked_vars(replace_safe(exprs, NULL)));
}

/* Likewise for the clauses (RestrictInfos) that the relations in relids decide. */
static bool
clauses_may_show(List *clauses, Relids relids)
{
	ListCell   *lc;

	foreach(lc, clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (bms_is_subset(rinfo->required_relids, relids) &&
			gh_may_show((Node *) rinfo->clause))
			return true;
	}
	return false;
}

static bool
relation_is_quiet(PlannerInfo *root, int relid, RelOptInfo *outerrel)
{
	RangeTblEntry *rte = root->simple_rte_array[relid];
	RelOptInfo *rel = root->simple_rel_array[relid];

	/* from 16 on, outer joins have numbers too */
	if (rel == NULL)
		return true;
	return rte->rtekind == RTE_RELATION &&
		!clauses_may_show(rel->baserestrictinfo, outerrel->relids) &&
		!clauses_may_show(rel->joininfo, outerrel->relids);
}

/*
 * Whether the class is just what the query's rows are sorted or grouped by.  A Sort below the join computes
 * it for all of its rows, whoever reads them.
 */
static bool
only_orders(PlannerInfo *root, const EquivalenceClass *class)
{
	ListCell   *lc;

	if (list_length(class->ec_members) != 1 || class->ec_has_volatile)
		return false;
	foreach(lc, root->query_pathkeys)
	{
		if (lfirst_node(PathKey, lc)->pk_eclass == class)
			return true;
	}
	return false;
}

/*
 * Equalities that the planner makes joins of are kept in classes of equal expressions, not
 * with the relations: of those that are decided within the outer side, each expression,
 * and the clauses that they come from.
 */
static bool
classes_are_quiet(PlannerInfo *root, RelOptInfo *outerrel)
{
	ListCell   *lc;

	foreach(lc, root->eq_classes)
	{
		EquivalenceClass *class = lfirst_node(EquivalenceClass, lc);
		int			inside = 0;
		ListCell   *member;
		ListCell   *source;

		if (!bms_overlap(class->ec_relids, outerrel->relids))
			continue;
		if (only_orders(root, class))
			continue;
		foreach(member, class->ec_members)
		{
			EquivalenceMember *em = lfirst_node(EquivalenceMember, member);

			if (em->em_is_child || bms_is_empty(em->em_relids) ||
				!bms_is_subset(em->em_relids, outerrel->relids))
				continue;
			/* what the query's result is sorted by: it is not computed below */
			if (contain_agg_clause((Node *) em->em_expr) || contain_window_function((Node *) em->em_expr))
				continue;
			if (gh_may_show((Node *) em->em_expr))
				return false;
			inside++;
		}
		foreach(source, class->ec_sources)
			if (inside > 1 && gh_may_show((Node *) lfirst_node(RestrictInfo, source)->clause))
				return false;
	}
	return true;
}

/* Whether the clause's side over the outer relations may be a key ahead of need. */
bool
gh_key_is_quiet(RestrictInfo *rinfo, bool outer_is_left)
{
	return !gh_may_show(outer_is_left ? get_leftop(rinfo->clause) : get_rightop(rinfo->clause));
}

/*
 * Whether the outer side's rows may be read ahead of need; not for a path of it that
 * has parameters, whose clauses come from elsewhere.
 */
bool
gh_outer_is_quiet(PlannerInfo *root, RelOptInfo *outerrel)
{
	int			relid = -1;
	ListCell   *lc;

	if (!classes_are_quiet(root, outerrel))
		return false;
	while ((relid = bms_next_member(outerrel->relids, relid)) >= 0)
		if (!relation_is_quiet(root, relid, outerrel))
			return false;
	foreach(lc, outerrel->reltarget->exprs)
	{
		Node	   *expr = (Node *) lfirst(lc);

		if (IsA(expr, PlaceHolderVar) && gh_may_show((Node *) ((PlaceHolderVar *) expr)->phexpr))
			return false;
	}
	return true;
}
