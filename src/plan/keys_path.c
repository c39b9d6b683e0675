/*
 * keys_path.c
 *		When the planner considers a GpuHashKeys: rows with `k = ANY (array)` of many keys, which are looked up in the
 *		copy of an index (../store/README, "Copies of indexes").  keys_join.c: with `k IN (SELECT ...)`.
 *
 * The index has k as its only key column, and all other columns of the table that are read.  There is a copy
 * when the query is planned, so that plans of servers that do not use copies are what they were.  How many
 * keys there are, and of how many blocks the copy is right, is seen when the query runs; for few keys, and
 * without the copy, the rows are those of the node's child, PostgreSQL's scan of the same index.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "compat_plan.h"
#include "expr/key.h"
#include "gpuhash.h"
#include "plan/index_side.h"
#include "plan/keys_path.h"
#include "plan/planning.h"
#include "plan/why.h"
#include "service/service.h"
#include "store/index_copies.h"

/* Of what the child costs, where the number of keys is not known: it runs where they are few. */
#define GH_UNKNOWN_SHARE 0.999

static set_rel_pathlist_hook_type previous_hook = NULL;

static Plan *plan_keys(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
					   List *custom_plans);

const CustomPathMethods gh_keys_path_methods = {
	.CustomName = GH_KEYS_NAME,
	.PlanCustomPath = plan_keys,
};

/* ------------------------------------------------------------------ conditions */

static bool
is_integer(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

/*
 * Whether a copy has values of the type in the order of their numbers, in which those of that other type have
 * theirs.
 */
static bool
are_numbers(Oid key, Oid other)
{
	if (is_integer(key))
		return is_integer(other);
	return key == other && (key == DATEOID || key == TIMESTAMPOID || key == TIMESTAMPTZOID || key == TIMEOID);
}

/*
 * Whether the operator finds, by the index, values that are the same number.  A user's operator class may
 * call others equal, too.
 */
bool
gh_keys_are_equal_by(const IndexOptInfo *index, Oid op, Oid key, Oid other)
{
	return are_numbers(key, other) && gh_operator_key_bits(op) > 0 &&
		get_op_opfamily_strategy(op, index->opfamily[0]) == BTEqualStrategyNumber;
}

/* Whether the condition is that the index's key is one of an array's, which is the same for all rows. */
static bool
is_of_keys(const IndexOptInfo *index, RelOptInfo *rel, RestrictInfo *condition)
{
	const ScalarArrayOpExpr *any = (const ScalarArrayOpExpr *) condition->clause;
	const Var  *var;
	Node	   *array;

	if (!IsA(any, ScalarArrayOpExpr) || !any->useOr || condition->pseudoconstant ||
		!restriction_is_securely_promotable(condition, rel))
		return false;
	var = linitial(any->args);
	array = lsecond(any->args);
	return IsA(var, Var) && var->varno == (int) rel->relid && var->varattno == index->indexkeys[0] &&
		gh_keys_are_equal_by(index, any->opno, var->vartype, get_element_type(exprType(array))) &&
		!contain_var_clause(array) && !contain_subplans(array) && !contain_volatile_functions(array);
}

static RestrictInfo *
find_condition(const IndexOptInfo *index, RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
		if (is_of_keys(index, rel, lfirst_node(RestrictInfo, lc)))
			return lfirst_node(RestrictInfo, lc);
	return NULL;
}

/* Whether all that is read of the relation is in the index. */
static bool
has_columns(const IndexOptInfo *index, const RelOptInfo *rel)
{
	List	   *vars = pull_var_clause((Node *) rel->reltarget->exprs, PVC_INCLUDE_PLACEHOLDERS);
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
		vars = list_concat(vars, pull_var_clause((Node *) lfirst_node(RestrictInfo, lc)->clause, PVC_INCLUDE_PLACEHOLDERS));
	foreach(lc, vars)
		if (!gh_index_has_value(index, lfirst(lc)))
			return false;
	return true;
}

/*
 * Whether a copy of the index may have all that is read of the relation, in the order of its only key column,
 * which has none for the planner where btree has no such operators.
 */
bool
gh_keys_has_index(const IndexOptInfo *index, const RelOptInfo *rel, Oid method)
{
	return index->relam == method && !index->hypothetical && index->indpred == NIL && index->nkeycolumns == 1 &&
		index->sortopfamily != NULL && !index->reverse_sort[0] && has_columns(index, rel);
}

/* Of how many columns beside the key values are read. */
int
gh_keys_others(const IndexOptInfo *index, const RelOptInfo *rel)
{
	int			count = 0;
	ListCell   *lc;

	foreach(lc, rel->reltarget->exprs)
		count += lfirst_node(Var, lc)->varattno != index->indexkeys[0];
	return count;
}

/* How many keys an array has, or -1. */
static double
count_keys(Node *array)
{
	if (IsA(array, Const))
		return ((Const *) array)->constisnull ? 0 :
			ArrayGetNItems(ARR_NDIM(DatumGetArrayTypeP(((Const *) array)->constvalue)),
						   ARR_DIMS(DatumGetArrayTypeP(((Const *) array)->constvalue)));
	if (IsA(array, ArrayExpr) && !((ArrayExpr *) array)->multidims)
		return list_length(((ArrayExpr *) array)->elements);
	return -1;
}

/* ------------------------------------------------------------------- the path */

/* PostgreSQL's scan of the index for those keys. */
static Path *
make_child(PlannerInfo *root, IndexOptInfo *index, RestrictInfo *condition)
{
	IndexClause *clause = makeNode(IndexClause);

	clause->rinfo = condition;
	clause->indexquals = list_make1(condition);
	return (Path *) create_index_path(root, index, list_make1(clause), NIL, NIL, NIL, ForwardScanDirection,
									  enable_indexonlyscan, NULL, 1.0, false);
}

/* By a copy that is right for that share of the blocks, until so many rows have come out. */
Cost
gh_keys_copy_cost(const IndexOptInfo *index, const RelOptInfo *rel, double nkeys, double rows, double share)
{
	return cpu_operator_cost * (GH_FOUND_COST * nkeys +
								(gh_keys_others(index, rel) + 1) * gh_mapped_cost(nkeys, rel->tuples * sizeof(uint64))) +
		(cpu_tuple_cost + cpu_operator_cost * list_length(rel->baserestrictinfo)) * rows +
		(1 - share) * (rel->pages * seq_page_cost + rel->tuples * (cpu_tuple_cost + cpu_operator_cost));
}

/* Of that relation, or join, at its own cost; without the copy its rows are the child's. */
CustomPath *
gh_keys_path(RelOptInfo *rel, IndexOptInfo *index, Path *child, Cost startup, Cost total)
{
	CustomPath *cpath = makeNode(CustomPath);

	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = rel;
	cpath->path.pathtarget = rel->reltarget;
	cpath->path.parallel_safe = child->parallel_safe;
	cpath->path.rows = rel->rows;
	cpath->path.startup_cost = startup * (gh_force_offload ? GH_FORCED_SCALE : 1);
	cpath->path.total_cost = total * (gh_force_offload ? GH_FORCED_SCALE : 1);
	gh_copy_disabled_nodes(&cpath->path, child);
	cpath->custom_paths = list_make1(child);
	cpath->custom_private = list_make1(index);
	cpath->methods = &gh_keys_path_methods;
	return cpath;
}

static void
add_keys_path(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index, RestrictInfo *condition, double nkeys, double share)
{
	Path	   *child = make_child(root, index, condition);
	Cost		startup = GH_UNKNOWN_SHARE * child->startup_cost;
	Cost		total = GH_UNKNOWN_SHARE * child->total_cost;
	CustomPath *cpath;

	if (nkeys >= 0)
	{
		startup = cpu_operator_cost * GH_FOUND_COST * nkeys / 2;
		total = startup + gh_keys_copy_cost(index, rel, nkeys, rel->rows, share);
	}
	cpath = gh_keys_path(rel, index, child, startup, total);
	cpath->custom_private = lappend(cpath->custom_private, condition);
	add_path(rel, &cpath->path);
}

/* Of the relation's indexes, the first one of which there is a copy. */
static void
consider_keys(PlannerInfo *root, RelOptInfo *rel)
{
	Oid			method = get_index_am_oid("gpuhash", true);
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);
		RestrictInfo *condition;
		double		nkeys;
		double		share;

		if (!gh_keys_has_index(index, rel, method) || (condition = find_condition(index, rel)) == NULL)
			continue;
		nkeys = count_keys(lsecond(((ScalarArrayOpExpr *) condition->clause)->args));
		if (nkeys >= 0 && nkeys < GH_KEYS_MIN && !gh_force_offload)
		{
			gh_why_copy(root, rel->relids, index->indexoid, GH_COPY_FEW_KEYS);
			return;
		}
		/* of a parameter, the copy's blocks are asked for where it is known */
		share = nkeys < 0 ? gh_index_is_copied(index->indexoid) : gh_index_copied_share(root, rel, index->indexoid);
		if (share == 0 ||
			(nkeys >= 0 && !gh_keys_pay(nkeys, rel->tuples, gh_keys_others(index, rel), (1 - share) * rel->pages)))
		{
			gh_why_copy(root, rel->relids, index->indexoid, gh_index_is_copied(index->indexoid) ? GH_COPY_FEW_FOR_COPY : GH_COPY_IS_NOT_THERE);
			continue;
		}
		add_keys_path(root, rel, index, condition, nkeys, share);
		return;
	}
}

static void
rel_pathlist_hook(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	if (previous_hook)
		previous_hook(root, rel, rti, rte);
	if (gh_enabled && gh_enable_index && gh_enable_scan && gh_service_enabled() && enable_indexscan &&
		rte->rtekind == RTE_RELATION && !rte->inh && rte->tablesample == NULL && rel->baserestrictinfo != NIL &&
		rel->indexlist != NIL && bms_is_empty(rel->lateral_relids) && !IS_DUMMY_REL(rel) &&
		!gh_index_scan_is_unwanted(root, rel))
		consider_keys(root, rel);
}

/* ------------------------------------------------------------------- the plan */

/* PlanCustomPath */
static Plan *
plan_keys(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	const IndexOptInfo *index = list_nth(path->custom_private, GH_KEYS_PATH_INDEX);
	RestrictInfo *condition = list_length(path->custom_private) > GH_KEYS_PATH_CONDITION ?
		list_nth(path->custom_private, GH_KEYS_PATH_CONDITION) : NULL;
	CustomScan *cscan = makeNode(CustomScan);

	(void) root;
	(void) rel;
	if (condition == NULL)
		clauses = index->rel->baserestrictinfo;
	cscan->scan.plan.targetlist = tlist;
	cscan->scan.plan.qual = extract_actual_clauses(list_delete_ptr(list_copy(clauses), condition), false);
	cscan->scan.scanrelid = index->rel->relid;
	cscan->flags = path->flags;
	outerPlan(cscan) = linitial(custom_plans);
	if (condition != NULL)
		cscan->custom_exprs = list_make1(lsecond(((ScalarArrayOpExpr *) condition->clause)->args));
	else
		innerPlan(cscan) = lsecond(custom_plans);
	cscan->custom_private = list_make1(list_make1_oid(index->indexoid));
	cscan->methods = GetCustomScanMethods(GH_KEYS_NAME, false);
	return &cscan->scan.plan;
}

/* Called by _PG_init. */
void
gh_keys_init(void)
{
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = rel_pathlist_hook;
}
