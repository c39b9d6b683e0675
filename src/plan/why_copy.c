/*
 * why_copy.c
 *		Why a join is not done by the copy of an index, for gpuhash.explain_why: of the indexes of the access method gpuhash that
 *		have all that the join reads of a side.
 *
 * Which index that is index_side.c finds for joins of ours, of their inner side.  Here are joins whose sides
 * are the other way round, or which return their rows, and paths of PostgreSQL's, with conditions of which
 * some may be those of the inner side's index scan.  What it says is a guess, as all that is planned is: what
 * a query finds when it runs is in EXPLAIN (ANALYZE), in the same words.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "gpuhash.h"
#include "plan/index_side.h"
#include "plan/join_plan.h"
#include "plan/why_copy.h"
#include "service/service.h"
#include "store/index_copies.h"

/* Whether a copy may have keys of such columns, all together. */
static bool
has_copied_keys(const IndexOptInfo *index)
{
	int			bytes = 0;

	for (int k = 0; k < index->nkeycolumns; k++)
	{
		Oid			type = index->opcintype[k];

		if (index->indexkeys[k] <= 0 || (type != INT2OID && type != INT4OID && type != INT8OID && type != DATEOID &&
										 type != TIMESTAMPOID && type != TIMESTAMPTZOID))
			return false;
		bytes += get_typlen(type);
	}
	return bytes <= (int) sizeof(uint64);
}

/* Whether the clause is that a key of the index equals something of the other side. */
static bool
is_equality(const RestrictInfo *clause, const RelOptInfo *rel, const IndexOptInfo *index, int key)
{
	const OpExpr *op = (const OpExpr *) clause->clause;

	if (!IsA(op, OpExpr) || list_length(op->args) != 2 ||
		get_op_opfamily_strategy(op->opno, index->opfamily[key]) != BTEqualStrategyNumber)
		return false;
	for (int side = 0; side < 2; side++)
	{
		const Var  *var = list_nth(op->args, side);

		if (IsA(var, Var) && var->varno == (int) rel->relid && var->varattno == index->indexkeys[key] &&
			!bms_is_member(rel->relid, side == 0 ? clause->right_relids : clause->left_relids))
			return true;
	}
	return false;
}

static bool
has_keys(const List *clauses, const RelOptInfo *rel, const IndexOptInfo *index)
{
	for (int k = 0; k < index->nkeycolumns; k++)
	{
		ListCell   *lc;
		bool		found = false;

		foreach(lc, clauses)
			found |= is_equality(lfirst_node(RestrictInfo, lc), rel, index, k);
		if (!found)
			return false;
	}
	return true;
}

/* The first index that has what the join reads of that side; NULL: there is none. */
static const IndexOptInfo *
find_index(const List *clauses, const Path *side)
{
	const RelOptInfo *rel = side->parent;
	Oid			method;
	ListCell   *lc;

	if (!IS_SIMPLE_REL(rel) || rel->rtekind != RTE_RELATION || rel->baserestrictinfo != NIL || rel->indexlist == NIL)
		return NULL;
	method = get_index_am_oid("gpuhash", true);
	foreach(lc, rel->indexlist)
	{
		const IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (index->relam == method && !index->hypothetical && index->indpred == NIL && has_copied_keys(index) &&
			has_keys(clauses, rel, index) && gh_index_has_target(index, rel))
			return index;
	}
	return NULL;
}

/* A join of two paths, PostgreSQL's or ours. */
typedef struct TwoSides
{
	const Path *path;
	const Path *sides[2];		/* inner, outer */
	int			nsides;			/* of which a copy may be the table */
	const List *clauses;
	bool		returns_rows;	/* no grouping of ours above may look them up */
} TwoSides;

static const char *
reason_of(PlannerInfo *root, const TwoSides *join, RelOptInfo *rel, const IndexOptInfo *index)
{
	double		share;

	if (join->returns_rows)
		return GH_COPY_NOT_GROUPED;
	if (rel->pages < GH_COPY_BLOCKS_MIN)
		return GH_COPY_SMALL_TABLE;
	if (!gh_index_is_copied(index->indexoid))
		return GH_COPY_IS_NOT_THERE;
	share = gh_index_copied_share(root, rel, index->indexoid);
	if (1 - share > GH_COPY_HEAP_MAX(1.0, join->path->parallel_workers + 1))
		return GH_COPY_MUCH_CHANGED;
	return gh_copy_rows_fit(rel, share) ? NULL : GH_COPY_ROWS_DO_NOT_FIT;
}

static const char *
why_no_copy(PlannerInfo *root, const TwoSides *join)
{
	if (!gh_enable_index || !gh_service_enabled())
		return NULL;
	for (int side = 0; side < join->nsides; side++)
	{
		const IndexOptInfo *index = find_index(join->clauses, join->sides[side]);
		const char *why = index != NULL ? reason_of(root, join, join->sides[side]->parent, index) : NULL;

		if (why != NULL)
			return psprintf("%s: %s", get_rel_name(index->indexoid), why);
	}
	return NULL;
}

const char *
gh_why_no_copy(PlannerInfo *root, const JoinPath *path)
{
	const Path *inner = path->innerjoinpath;
	const Query *query = root->parse;
	TwoSides	join = {
		.path = &path->path,.sides = {inner, path->outerjoinpath},.nsides = path->jointype == JOIN_INNER ? 2 : 1,
		.clauses = path->joinrestrictinfo,
		.returns_rows = !query->hasAggs && query->groupClause == NIL && query->distinctClause == NIL
	};

	/* of a nested loop */
	if (inner->param_info != NULL)
		join.clauses = list_concat_copy(join.clauses, inner->param_info->ppi_clauses);
	return why_no_copy(root, &join);
}

const char *
gh_why_no_copy_of_ours(PlannerInfo *root, Path *path, bool returns_rows)
{
	const List *sides = ((const CustomPath *) path)->custom_paths;
	const GhJoinStep *step = gh_step(path);
	const TwoSides join = {
		.path = path,.sides = {lsecond(sides), linitial(sides)},.nsides = step->jointype == JOIN_INNER ? 2 : 1,
		.clauses = step->hash_clauses,.returns_rows = returns_rows
	};

	/* what becomes of that is found out when it runs */
	if (!returns_rows && OidIsValid(gh_inner_index(step, join.sides[1]->parent, join.sides[0])))
		return NULL;
	return why_no_copy(root, &join);
}
