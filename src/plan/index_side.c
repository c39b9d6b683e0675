/*
 * index_side.c
 *		When the copy of an index (../store/README, "Copies of indexes") may be the table of a join's inner
 *		side: which index that is.
 *
 * It is one whose key columns are those of the join's hash clauses, in the index's order, and that has all
 * other columns of the table that are read.  The table is scanned without conditions.  Whether there is a
 * copy, and of how many blocks its rows are those of the query's snapshot, is found when the query runs; the
 * planner looks, too, since joins of few rows cost less than loops over the index only by a copy that is
 * there.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "expr/translate.h"
#include "gpuhash.h"
#include "plan/index_side.h"
#include "plan/join_path.h"
#include "plan/join_plan.h"
#include "plan/note.h"
#include "plan/scan_path.h"
#include "service/placement.h"
#include "service/service.h"
#include "store/index_copies.h"

static bool
has_column(const IndexOptInfo *index, int attno)
{
	for (int i = 0; i < index->ncolumns; i++)
		/* a key of names has these without the zeros behind them, which a copy does not take */
		if (index->indexkeys[i] == attno && (i >= index->nkeycolumns || index->opcintype[i] != NAMEOID))
			return true;
	return false;
}

bool
gh_index_has_value(const IndexOptInfo *index, const Var *var)
{
	return IsA(var, Var) && var->varattno > 0 && has_column(index, var->varattno) &&
		gh_class_of_type(var->vartype) != 0 && !gh_is_enum(var->vartype) &&
		!gh_is_open_numeric(var->vartype, var->vartypmod);
}

bool
gh_index_has_target(const IndexOptInfo *index, const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->reltarget->exprs)
		if (!gh_index_has_value(index, lfirst(lc)))
			return false;
	return true;
}

/*
 * Whether values of one type are taken as another one's, as an oid's as an integer's; a domain's are its base
 * type's.
 */
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

	if (!gh_enable_index || !gh_service_enabled() || !is_whole_table(inner) || inner->parent->indexlist == NIL ||
		!gh_step_keys_are_exact(step))
		return InvalidOid;
	method = get_index_am_oid("gpuhash", true);
	foreach(lc, inner->parent->indexlist)
	{
		const IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (index->relam == method && !index->hypothetical && index->indpred == NIL &&
			has_keys(index, step, outerrel->relids) && gh_index_has_target(index, inner->parent))
			return index->indexoid;
	}
	return InvalidOid;
}

/* ----------------------------------------------------------------- what it saves */

/* Of a table, the share of blocks that VACUUM has found all-visible, for a copy to be made. */
#define GH_VISIBLE_SHARE 0.75
/* A copy is made again when it is not right for more; ../join/probed_copy.c has it, too. */
#define GH_REMADE_SHARE 0.1

/*
 * What look-ups in a copy cost beside those in a table of the query's own, each in units of
 * cpu_operator_cost. A process has the copy's memory mapped as long as a query uses it, and the system maps
 * it when it is looked at, so many bytes at a time: on the machine of BENCHMARKS.md ("Joins of few rows
 * through the copy of an index") in 7 us.  There a nested loop takes 4 us for a row of an index in memory,
 * for which PostgreSQL charges 0.53 without pages.
 */
#define GH_MAPPED_COST 350.0
#define GH_MAPPED_BYTES 65536.0
/*
 * Bytes, beside its values, of a row of a block that is not right: where memory does not hold these rows, the
 * copy is not used.
 */
#define GH_STALE_ROW_BYTES 128.0
/* Where some blocks are not right, all entries are gone through once. */
#define GH_PASSED_ROW_COST 0.1

bool
gh_may_have_copy(const RelOptInfo *rel)
{
	ListCell   *lc;

	if (!gh_enable_index || !gh_service_enabled() || !IS_SIMPLE_REL(rel))
		return false;
	foreach(lc, rel->indexlist)
		if (lfirst_node(IndexOptInfo, lc)->relam == get_index_am_oid("gpuhash", true))
			return true;
	return false;
}

/* The copy that some device has; queries are where the table's pages are, which the planner does not know. */
static bool
look_on_devices(Relation index, GhIndexCopy *copy)
{
	for (int device = 0; device < gh_service_devices(); device++)
		if (gh_index_copy_methods()->look_up_on_device(index, device, &copy->generation, &copy->nblocks))
			return true;
	return false;
}

/* Of how many of the table's blocks the copy of an index is right, in shared memory or on a device, if there is one. */
static double
right_share(PlannerInfo *root, const RelOptInfo *rel, Oid index_oid, bool on_device)
{
	Relation	heap = table_open(planner_rt_fetch(rel->relid, root)->relid, NoLock);
	Relation	index = index_open(index_oid, NoLock);
	GhIndexCopy copy = {0};
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	GhCopyBlocks blocks;
	double		share = 0;
	int			place;

	if (nblocks >= GH_COPY_BLOCKS_MIN &&
		(on_device ? look_on_devices(index, &copy) : gh_index_copy_look(index, &copy, &place)))
	{
		gh_copy_ask_blocks(index, heap, &copy, nblocks, &blocks);
		share = (double) blocks.right / nblocks;
		/* what is planned now may do without a copy that is right for few blocks, and so would all that comes later */
		if (pg_class_aclcheck(RelationGetRelid(heap), GetUserId(), ACL_SELECT) == ACLCHECK_OK)
		{
			if (on_device)
				gh_copy_make_again_on_device(index, &blocks);
			else
				(void) gh_copy_make_again(index, &blocks);
		}
		pfree(blocks.bits);
	}
	index_close(index, NoLock);
	table_close(heap, NoLock);
	return Min(share, 1);
}

bool
gh_index_is_copied(Oid index_oid)
{
	Relation	index = index_open(index_oid, NoLock);
	GhIndexCopy copy = {0};
	int			place;
	bool		there = gh_index_copy_look(index, &copy, &place);

	index_close(index, NoLock);
	return there;
}

/* The index's copy may change until the query runs, which is what makes this an estimate. */
static double
copied_share_of(PlannerInfo *root, RelOptInfo *rel, Oid index, bool on_device)
{
	GhCopiedShare *known = &gh_note(root, rel)->copied[on_device];

	if (known->index != index)
		*known = (GhCopiedShare) {index, right_share(root, rel, index, on_device)};
	return known->share;
}

double
gh_index_copied_share(PlannerInfo *root, RelOptInfo *rel, Oid index)
{
	return copied_share_of(root, rel, index, false);
}

bool
gh_copy_rows_fit(const RelOptInfo *rel, double share)
{
	return (1 - share) * rel->tuples * (rel->reltarget->width + GH_STALE_ROW_BYTES) <= get_hash_memory_limit();
}

static double
copied_share(PlannerInfo *root, const Path *join, Oid index)
{
	const Path *inner = lsecond(((const CustomPath *) join)->custom_paths);
	double		share = gh_index_copied_share(root, inner->parent, index);

	return 1 - share <= GH_COPY_HEAP_MAX(1.0, join->parallel_workers + 1) && gh_copy_rows_fit(inner->parent, share) ? share : 0;
}

static Oid
index_of(const Path *join)
{
	const List *sides = ((const CustomPath *) join)->custom_paths;

	return gh_inner_index(gh_step(join), ((Path *) linitial(sides))->parent, lsecond(sides));
}

double
gh_copied_share(PlannerInfo *root, Path *join)
{
	Oid			index = index_of(join);

	return OidIsValid(index) ? copied_share(root, join, index) : 0;
}

double
gh_device_copied_share(PlannerInfo *root, const GhJoinStep *step, const RelOptInfo *outerrel, const Path *inner,
					   int workers)
{
	Oid			index = gh_enable_resident ? gh_inner_index(step, outerrel, inner) : InvalidOid;
	double		share;

	if (!OidIsValid(index))
		return 0;
	share = copied_share_of(root, inner->parent, index, true);
	if (workers > 0 || gh_step_fills_inner(step))
		return share < 1 || (workers > 0 && gh_step_fills_inner(step)) ? 0 : share;
	if (share < 1 && !gh_copy_tells_apart(inner->parent->tuples, (1 - share) * inner->parent->tuples, outerrel->rows))
		return 0;
	return share < 1 ? Max(share - GH_APART_SHARE, 0) : share;
}

/* So many look-ups in so many bytes of it. */
double
gh_mapped_cost(double nlookups, double bytes)
{
	return GH_MAPPED_COST * Min(nlookups, bytes / GH_MAPPED_BYTES);
}

/* By a copy that is right for that share of blocks. */
static Cost
saved(const Path *join, double share)
{
	const Path *outer = linitial(((const CustomPath *) join)->custom_paths);
	const Path *inner = lsecond(((const CustomPath *) join)->custom_paths);
	double		bytes = inner->rows * (inner->pathtarget->width + gh_table_bytes_per_row(sizeof(uint64)));
	Cost		own = gh_mapped_cost(outer->rows, bytes);

	if (share < 1)
		own += GH_PASSED_ROW_COST * inner->rows;
	return share * gh_step(join)->inner_cost - cpu_operator_cost * own;
}

/* Whether a query that needs a copy has one soon.  On a standby it makes it itself, once in a while. */
static bool
may_be_made(Oid index_oid)
{
	Relation	index;
	bool		is_due;

	if (!RecoveryInProgress())
		return true;
	index = index_open(index_oid, NoLock);
	is_due = gh_shared_copy_is_due(GH_COPY_OF_INDEX, index);
	index_close(index, NoLock);
	return is_due;
}

Cost
gh_copy_saves(PlannerInfo *root, Path *join)
{
	Path	   *inner = lsecond(((CustomPath *) join)->custom_paths);
	Oid			index = index_of(join);
	double		share;
	Cost		startup;
	Cost		total;

	if (!OidIsValid(index))
		return 0;
	share = copied_share(root, join, index);
	if (share > 0)
		return Max(saved(join, share), 0);
	/* one that is right but for rows that do not fit in memory is not made again */
	if (inner->parent->allvisfrac < GH_VISIBLE_SHARE ||
		gh_note(root, inner->parent)->copied[false].share > 1 - GH_REMADE_SHARE || !may_be_made(index))
		return 0;
	gh_real_cost(inner, &startup, &total);
	return inner->parent->allvisfrac * (total + gh_build_tuple_cost * inner->rows);
}

Cost
gh_copies_save(PlannerInfo *root, Path *joins)
{
	Cost		sum = 0;

	for (; gh_is_join_path(joins); joins = linitial(((CustomPath *) joins)->custom_paths))
	{
		double		share = gh_copied_share(root, joins);

		if (share > 0)
			sum += Max(saved(joins, share), 0);
	}
	return sum;
}
