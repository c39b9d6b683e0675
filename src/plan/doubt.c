/*
 * doubt.c
 *		How many more rows than expected may come out of joins, and what that is to a grouping over them.
 *
 * Two things make the planner's estimate of joined rows too low by a factor of ten and more: columns that
 * make up a key together are taken to be independent (gh_cautious_rows); and conditions on a table are taken
 * to have nothing to do with which of its keys another table has.  A calendar has two hundred years, and
 * facts are of five: of 2020 the planner expects a two-hundredth of the facts, and a fifth comes.
 *
 * The first is likely where the columns are all that a unique index of a table has: another table that is
 * joined by all of them mostly refers to its rows, also where no foreign key says so (gh_key_factor).
 *
 * Where a device does the joins either way, it costs nearly the same to have it make groups of many rows as
 * of few, while rows that come out of it are sorted and grouped one by one.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/selfuncs.h"

#include "compat.h"
#include "plan/chain.h"
#include "plan/doubt.h"
#include "plan/join_path.h"
#include "plan/rows_path.h"

/* ---------------------------------------------------------------------- rows */

/* The table that a key of a join is a column of; NULL: it is none. */
static RelOptInfo *
table_of_key(PlannerInfo *root, Node **key)
{
	RelOptInfo *rel;

	if (IsA(*key, RelabelType))
		*key = (Node *) ((RelabelType *) *key)->arg;
	if (!IsA(*key, Var) || ((Var *) *key)->varlevelsup > 0 || ((Var *) *key)->varno <= 0)
		return NULL;
	rel = find_base_rel(root, ((Var *) *key)->varno);
	return rel->rtekind == RTE_RELATION && rel->tuples > 0 ? rel : NULL;
}

/* How many values a column has in its table; 0: nobody knows. */
static double
values_of_key(PlannerInfo *root, Node *key)
{
	VariableStatData data;
	bool		is_default;
	double		values;

	examine_variable(root, key, 0, &data);
	values = get_variable_numdistinct(&data, &is_default);
	ReleaseVariableStats(data);
	return is_default ? 0 : values;
}

/*
 * How many times more rows may match than the planner expects, where the one table has conditions and the
 * other few of its keys.  The planner takes the rows that the conditions leave to have a like share of these
 * keys, but they may have all of them.
 */
static double
more_matches(PlannerInfo *root, Node *key, Node *other)
{
	RelOptInfo *rel = table_of_key(root, &key);
	double		others;

	if (rel == NULL || rel->baserestrictinfo == NIL || table_of_key(root, &other) == NULL)
		return 1.0;
	others = values_of_key(root, other);
	if (others <= 0)
		return 1.0;
	return Max(Min(values_of_key(root, key) / others, rel->tuples / Max(rel->rows, 1.0)), 1.0);
}

/* Likewise of all joins of a chain. */
static double
more_in_chain(PlannerInfo *root, Path *joins)
{
	double		result = 1.0;
	List	   *sides;
	ListCell   *lc;

	if (!gh_is_join_path(joins))
		return 1.0;
	foreach(lc, gh_step(joins)->equalities)
	{
		const OpExpr *op = (const OpExpr *) lfirst_node(RestrictInfo, lc)->clause;

		if (!IsA(op, OpExpr) || list_length(op->args) != 2)
			continue;
		result = Max(result, more_matches(root, linitial(op->args), lsecond(op->args)));
		result = Max(result, more_matches(root, lsecond(op->args), linitial(op->args)));
	}
	sides = ((CustomPath *) joins)->custom_paths;
	return result * more_in_chain(root, linitial(sides)) * more_in_chain(root, lsecond(sides));
}

/* ---------------------------------------------------------------------- keys */

static bool
is_column(Expr *expr, Index relid, AttrNumber attno)
{
	while (IsA(expr, RelabelType))
		expr = ((RelabelType *) expr)->arg;
	return IsA(expr, Var) && ((Var *) expr)->varno == (int) relid && ((Var *) expr)->varattno == attno &&
		((Var *) expr)->varlevelsup == 0;
}

/* A clause that compares the column with another, or what equals either of them; NULL: none does. */
static RestrictInfo *
clause_of_column(List *clauses, Index relid, AttrNumber attno)
{
	ListCell   *lc;
	ListCell   *lm;

	foreach(lc, clauses)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, lc);

		if (clause->parent_ec == NULL || clause->parent_ec->ec_has_const)
			continue;
		foreach(lm, clause->parent_ec->ec_members)
		{
			if (is_column(((EquivalenceMember *) lfirst(lm))->em_expr, relid, attno))
				return clause;
		}
	}
	return NULL;
}

/*
 * The share of rows with a value in the column that is compared: NULLs refer to nothing, as the clause's
 * selectivity has it.
 */
static double
share_with_values(PlannerInfo *root, const RestrictInfo *clause, Relids others)
{
	ListCell   *lc;

	foreach(lc, clause->parent_ec->ec_members)
	{
		const EquivalenceMember *member = lfirst(lc);
		VariableStatData data;
		double		share = 1.0;

		if (member->em_is_const || !bms_is_subset(member->em_relids, others) || bms_is_empty(member->em_relids))
			continue;
		examine_variable(root, (Node *) member->em_expr, 0, &data);
		if (HeapTupleIsValid(data.statsTuple))
			share = 1.0 - ((Form_pg_statistic) GETSTRUCT(data.statsTuple))->stanullfrac;
		ReleaseVariableStats(data);
		return share;
	}
	return 1.0;
}

/* Whether the planner knows that one of these tables refers to that one. */
static bool
has_foreign_key(PlannerInfo *root, Relids others, Index relid)
{
	ListCell   *lc;

	foreach(lc, root->fkey_list)
	{
		const ForeignKeyOptInfo *key = lfirst_node(ForeignKeyOptInfo, lc);

		if (key->ref_relid == relid && bms_is_member((int) key->con_relid, others))
			return true;
	}
	return false;
}

/* See gh_key_factor, of an index of a table of the one side; others: tables of the other side. */
static double
factor_of_index(PlannerInfo *root, const IndexOptInfo *index, RelOptInfo *one, RelOptInfo *other, List *clauses)
{
	const RelOptInfo *table = index->rel;
	Relids		others = bms_copy(other->relids);
	Selectivity share = 1.0;
	double		values = 1.0;

	if (!index->unique || index->nkeycolumns < 2 || index->indpred != NIL || table->tuples <= 0)
		return 1.0;
	for (int i = 0; i < index->nkeycolumns; i++)
	{
		RestrictInfo *clause = index->indexkeys[i] == 0 ? NULL :
			clause_of_column(clauses, table->relid, index->indexkeys[i]);

		if (clause == NULL)
			return 1.0;
		others = bms_int_members(others, clause->parent_ec->ec_relids);
		share *= gh_pair_selectivity(root, one, other, clause);
		values *= share_with_values(root, clause, other->relids);
	}
	if (bms_is_empty(others) || has_foreign_key(root, others, table->relid))
		return 1.0;
	return Max(values / Max(share * table->tuples, 1e-10), 1.0);
}

static double
factor_of_side(PlannerInfo *root, RelOptInfo *one, RelOptInfo *other, List *clauses)
{
	double		result = 1.0;
	int			relid = -1;
	ListCell   *lc;

	while ((relid = bms_next_member(one->relids, relid)) >= 0)
	{
		const RelOptInfo *table = root->simple_rel_array[relid];

		if (table == NULL)
			continue;
		foreach(lc, table->indexlist)
			result = Max(result, factor_of_index(root, lfirst_node(IndexOptInfo, lc), one, other, clauses));
	}
	return result;
}

/* How many rows the planner expects of a join, before it makes that one row at the least. */
static double
expected_rows(PlannerInfo *root, RelOptInfo *outerrel, RelOptInfo *innerrel, List *clauses)
{
	double		rows = outerrel->rows * innerrel->rows;
	ListCell   *lc;

	foreach(lc, clauses)
		rows *= gh_pair_selectivity(root, outerrel, innerrel, lfirst_node(RestrictInfo, lc));
	return rows;
}

/*
 * How many times more rows than expected come out of an inner join of two relations by such clauses, where
 * columns of one table that are compared with those of another one are a key.
 */
double
gh_key_factor(PlannerInfo *root, const RelOptInfo *joinrel, RelOptInfo *outerrel, RelOptInfo *innerrel, List *clauses)
{
	double		factor;

	if (list_length(clauses) < 2)
		return 1.0;
	factor = Max(factor_of_side(root, outerrel, innerrel, clauses), factor_of_side(root, innerrel, outerrel, clauses));
	return factor == 1.0 ? factor :
		Max(factor * Min(expected_rows(root, outerrel, innerrel, clauses) / joinrel->rows, 1.0), 1.0);
}

/* --------------------------------------------------------------------- chains */

/* How many rows may come out of joins of ours. */
double
gh_doubtful_rows(PlannerInfo *root, Path *joins)
{
	List	   *sides = ((CustomPath *) joins)->custom_paths;

	return gh_cautious_rows(root, gh_step(joins), joins->rows, linitial(sides), lsecond(sides)) *
		more_in_chain(root, joins);
}

/* -------------------------------------------------------------------- groups */

/* Whether a path groups rows that come out of a device, sorted or joined with others in between. */
static bool
groups_rows_of_device(Path *path)
{
	switch (nodeTag(path))
	{
		case T_AggPath:
			return groups_rows_of_device(((AggPath *) path)->subpath);
		case T_GroupPath:
			return groups_rows_of_device(((GroupPath *) path)->subpath);
		case T_GroupingSetsPath:
			return groups_rows_of_device(((GroupingSetsPath *) path)->subpath);
		case T_SortPath:
		case T_IncrementalSortPath:
			return groups_rows_of_device(((SortPath *) path)->subpath);
		case T_ProjectionPath:
			return groups_rows_of_device(((ProjectionPath *) path)->subpath);
		case T_GatherPath:
			return groups_rows_of_device(((GatherPath *) path)->subpath);
		case T_GatherMergePath:
			return groups_rows_of_device(((GatherMergePath *) path)->subpath);
		case T_NestPath:
		case T_HashPath:
		case T_MergePath:
			return groups_rows_of_device(((JoinPath *) path)->outerjoinpath);
		default:
			if (gh_is_join_path(path))
				return groups_rows_of_device(linitial(((CustomPath *) path)->custom_paths));
			return gh_rows_joins(path) != NULL;
	}
}

/*
 * Where the device may make the groups: takes out the paths that group rows which come out of it, and would
 * cost more if so many rows came.  An order that these paths have does not make up for it.
 */
void
gh_drop_doubtful(RelOptInfo *rel, const Path *groups, double expected, double doubtful)
{
	const Cost	more = GH_COLLECTED_ROW_COST * cpu_tuple_cost * (doubtful - expected);
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (groups_rows_of_device(path) && !gh_has_more_disabled_nodes(groups, path, path) &&
			groups->total_cost < path->total_cost + more)
			rel->pathlist = foreach_delete_current(rel->pathlist, lc);
	}
}
