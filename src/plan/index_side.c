/*
 * index_side.c
 *		When the copy of an index (../store/README, "Copies of indexes") may be the table of a join's inner
 *		side: which index that is.
 *
 * It is one whose key columns are those of the join's hash clauses, in the index's order, and that has all
 * other columns of the table that are read.  The table is scanned without conditions.  Whether there is a
 * copy, and of how many blocks its rows are those of the query's snapshot, is found when the query runs.
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "expr/translate.h"
#include "gpuhash.h"
#include "plan/index_side.h"
#include "plan/join_path.h"
#include "plan/scan_path.h"
#include "service/service.h"

static bool
has_column(const IndexOptInfo *index, int attno)
{
	for (int i = 0; i < index->ncolumns; i++)
		if (index->indexkeys[i] == attno)
			return true;
	return false;
}

/* Whether all that is read of the relation is in the index. */
static bool
has_columns(const IndexOptInfo *index, const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->reltarget->exprs)
	{
		const Var  *var = lfirst(lc);

		if (!IsA(var, Var) || var->varattno <= 0 || !has_column(index, var->varattno) ||
			gh_class_of_type(var->vartype) == 0 || gh_is_open_numeric(var->vartype, var->vartypmod))
			return false;
	}
	return true;
}

/* Whether values of one type are taken as another one's, as an oid's as an integer's; a domain's are its base type's. */
static bool
is_relabelled(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	if (IsA(node, RelabelType) && getBaseType(exprType((Node *) ((RelabelType *) node)->arg)) !=
		getBaseType(((RelabelType *) node)->resulttype))
		return true;
	return expression_tree_walker(node, is_relabelled, unused);
}

/* The column of the inner side that a hash clause compares, or 0. */
static int
inner_column(const RestrictInfo *clause, Relids outer_relids)
{
	bool		outer_is_left = bms_is_subset(clause->left_relids, outer_relids);
	const List *args = castNode(OpExpr, clause->clause)->args;
	Node	   *inner = outer_is_left ? lsecond(args) : linitial(args);

	if (is_relabelled((Node *) clause->clause, NULL))
		return 0;
	while (IsA(inner, RelabelType))
		inner = (Node *) ((RelabelType *) inner)->arg;
	return IsA(inner, Var) ? ((Var *) inner)->varattno : 0;
}

static bool
has_keys(const IndexOptInfo *index, const GhJoinStep *step, Relids outer_relids)
{
	ListCell   *lc;

	if (list_length(step->hash_clauses) != index->nkeycolumns)
		return false;
	foreach(lc, step->hash_clauses)
		if (inner_column(lfirst_node(RestrictInfo, lc), outer_relids) != index->indexkeys[foreach_current_index(lc)])
			return false;
	return true;
}

/* A scan of a table as such, without conditions. */
static bool
is_whole_table(const Path *inner)
{
	const RelOptInfo *rel = inner->parent;

	return IS_SIMPLE_REL(rel) && rel->rtekind == RTE_RELATION && rel->baserestrictinfo == NIL &&
		inner->param_info == NULL && (inner->pathtype == T_SeqScan || gh_is_rowscan_path((Path *) inner));
}

Oid
gh_inner_index(const GhJoinStep *step, const RelOptInfo *outerrel, const Path *inner)
{
	Oid			method;
	ListCell   *lc;

	if (!gh_enable_index || !gh_service_enabled() || !is_whole_table(inner) || inner->parent->indexlist == NIL)
		return InvalidOid;
	method = get_index_am_oid("gpuhash", true);
	foreach(lc, inner->parent->indexlist)
	{
		const IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (index->relam == method && !index->hypothetical && index->indpred == NIL &&
			has_keys(index, step, outerrel->relids) && has_columns(index, inner->parent))
			return index->indexoid;
	}
	return InvalidOid;
}

/* The share of blocks that a copy has to be right for; ../join/probed_copy.c has it, too. */
#define GH_RIGHT_SHARE 0.75

/*
 * Of such a join, what it saves that its inner side is neither read nor made a table of.  That is as much of
 * it as VACUUM has found all-visible; a copy that is there may be right for less.
 */
Cost
gh_copy_saves(const GhJoinStep *step, const Path *outer, Path *inner)
{
	Cost		startup;
	Cost		total;

	if (inner->parent->allvisfrac < GH_RIGHT_SHARE || !OidIsValid(gh_inner_index(step, outer->parent, inner)))
		return 0;
	gh_real_cost(inner, &startup, &total);
	return inner->parent->allvisfrac * (total + gh_build_tuple_cost * inner->rows);
}
