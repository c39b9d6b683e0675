/*
 * keys_join.c
 *		A GpuHashKeys in place of a semi join: rows with `k IN (SELECT ...)`, whose keys are looked up in the
 *		copy of an index (keys_path.c).
 *
 * It is considered where PostgreSQL considers to make the subquery's rows unique and to look each up in the
 * table; the node needs no unique keys, for it sorts them.  The keys' plan is its inner child.  The outer one
 * is the cheapest path of the join so far, whose rows it returns without the copy, or where the keys outgrow
 * memory.
 * Then the keys' plan may run a second time, so there must be nothing volatile in the query.
 *
 * How many keys come is estimated, as for any join: so it is taken only where it wins clearly.  The join that
 * it stands for may be gone from the relation's paths then, and is found below it by nodes above
 * (gh_keys_replaced). Where a device is expected to read the table, that is faster.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "commands/defrem.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "compat_plan.h"
#include "gpuhash.h"
#include "plan/index_side.h"
#include "plan/join_path.h"
#include "plan/keys_path.h"
#include "plan/note.h"
#include "plan/planning.h"
#include "service/service.h"

/* The keys, as an expression over their relation's rows; NULL: the clause compares the column with none. */
static Expr *
find_keys(const IndexOptInfo *index, const RelOptInfo *keys, const List *clauses)
{
	const RestrictInfo *clause = linitial_node(RestrictInfo, clauses);
	const OpExpr *op = (const OpExpr *) clause->clause;

	if (!IsA(op, OpExpr) || list_length(op->args) != 2 || clause->pseudoconstant)
		return NULL;
	for (int side = 0; side < 2; side++)
	{
		const Var  *var = list_nth(op->args, side);
		Node	   *other = list_nth(op->args, 1 - side);

		if (IsA(var, Var) && var->varno == (int) index->rel->relid && var->varattno == index->indexkeys[0] &&
			gh_keys_are_equal_by(index, op->opno, var->vartype, exprType(other)) &&
			bms_is_subset(side == 0 ? clause->right_relids : clause->left_relids, keys->relids))
			return (Expr *) other;
	}
	return NULL;
}

/* A copy of the path, which the planner may free; NULL: it is of another kind. */
static Path *
copied_path(const Path *path)
{
	Size		bytes;
	Path	   *copy;

	switch (nodeTag(path))
	{
		case T_NestPath:
			bytes = sizeof(NestPath);
			break;
		case T_HashPath:
			bytes = sizeof(HashPath);
			break;
		case T_MergePath:
			bytes = sizeof(MergePath);
			break;
		case T_CustomPath:
			bytes = sizeof(CustomPath);
			break;
		default:
			return NULL;
	}
	copy = palloc(bytes);
	memcpy(copy, path, bytes);
	return copy;
}

/* The cheapest path of the join; NULL: none is known. */
static Path *
cheapest_path(const RelOptInfo *joinrel)
{
	ListCell   *lc;

	foreach(lc, joinrel->pathlist)
	{
		const Path *path = lfirst(lc);

		if (path->param_info == NULL)
			return copied_path(path);
	}
	return NULL;
}

/* The join that a GpuHashKeys stands for, which nodes above may do by themselves; any other path as it is. */
Path *
gh_keys_replaced(Path *path)
{
	const CustomPath *cpath = (const CustomPath *) path;

	return IsA(path, CustomPath) && cpath->methods == &gh_keys_path_methods && IS_JOIN_REL(path->parent) ?
		linitial(cpath->custom_paths) : path;
}

/* The keys as rows of one column. */
static Path *
keys_alone(PlannerInfo *root, RelOptInfo *keys, Expr *key)
{
	PathTarget *target = create_empty_pathtarget();

	add_column_to_pathtarget(target, key, 0);
	set_pathtarget_cost_width(root, target);
	return (Path *) create_projection_path(root, keys, keys->cheapest_total_path, target);
}

static void
add_path_by_keys(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *keys, IndexOptInfo *index, Expr *key)
{
	RelOptInfo *rel = index->rel;
	int			nothers = gh_keys_others(index, rel);
	double		share = gh_index_copied_share(root, rel, index->indexoid);
	Path	   *child;
	Path	   *inner;
	CustomPath *path;
	Cost		startup;
	Cost		total;

	if (share == 0 ||
		!gh_keys_pay(GH_KEYS_LOOP * keys->rows, rel->tuples, nothers, (1 - share) * rel->pages) ||
		keys->rows * sizeof(int64) > get_hash_memory_limit() || (child = cheapest_path(joinrel)) == NULL)
		return;
	inner = keys_alone(root, keys, key);
	startup = inner->total_cost + (cpu_tuple_cost + cpu_operator_cost * GH_FOUND_COST / 2) * keys->rows;
	total = startup + gh_keys_copy_cost(index, rel, keys->rows, joinrel->rows, share);
	if (!gh_force_offload && !gh_wins_clearly(joinrel->pathlist, inner, child, total))
		return;
	path = gh_keys_path(joinrel, index, child, startup, total);
	path->path.parallel_safe = joinrel->consider_parallel && child->parallel_safe && inner->parallel_safe;
	path->custom_paths = lappend(path->custom_paths, inner);
	add_path(joinrel, &path->path);
}

/* Whether it is a table by itself, for the host, whose conditions may be evaluated in any order. */
static bool
is_plain_table(PlannerInfo *root, RelOptInfo *rel)
{
	const GhNote *note = gh_note(root, rel);

	return rel->reloptkind == RELOPT_BASEREL && root->qual_security_level == 0 && note->is_readable &&
		(!note->on_device || gh_force_offload);
}

/*
 * Whether the table's columns are all that comes out of the join: a row mark wants one of the keys' rows,
 * too.
 */
static bool
has_target(const RelOptInfo *joinrel, const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, joinrel->reltarget->exprs)
	{
		const Var  *var = lfirst(lc);

		if (!IsA(var, Var) || var->varno != (int) rel->relid)
			return false;
	}
	return true;
}

/* Of a table, the rows of which the keys have a column's value, which is the only clause. */
void
gh_keys_consider_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *keys, RelOptInfo *rel,
					  const List *clauses)
{
	Oid			method;
	ListCell   *lc;

	if (!gh_enable_index || !gh_service_enabled() || !enable_indexscan ||
		rel->indexlist == NIL || list_length(clauses) != 1 || !is_plain_table(root, rel) ||
		!has_target(joinrel, rel) || !bms_is_empty(joinrel->lateral_relids) || keys->cheapest_total_path->param_info != NULL ||
		gh_joins_are_searched_at_random(root) || gh_index_scan_is_unwanted(root, rel))
		return;
	method = get_index_am_oid("gpuhash", true);
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);
		Expr	   *key = gh_keys_has_index(index, rel, method) ? find_keys(index, keys, clauses) : NULL;

		if (key != NULL && gh_index_is_copied(index->indexoid))
		{
			if (!contain_volatile_functions((Node *) root->parse))
				add_path_by_keys(root, joinrel, keys, index, key);
			return;
		}
	}
}
