/*
 * compat_plan.h
 *		Every test of PG_VERSION_NUM in the planner's matters; compat.h includes it.
 */
#ifndef GPUHASH_COMPAT_PLAN_H
#define GPUHASH_COMPAT_PLAN_H

#include "nodes/pathnodes.h"
#include "optimizer/appendinfo.h"
#include "optimizer/cost.h"
#include "optimizer/geqo.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parse_relation.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

/*
 * From 16 on, a Var tells which outer joins may have made it NULL.  Two Vars
 * that differ in nothing else read the same column of a join's input.
 */
static inline void
gh_clear_nullingrels(Node *node)
{
#if PG_VERSION_NUM >= 160000
	if (IsA(node, Var))
		((Var *) node)->varnullingrels = NULL;
	else if (IsA(node, PlaceHolderVar))
		((PlaceHolderVar *) node)->phnullingrels = NULL;
#else
	(void) node;
#endif
}

/* Whether no row has a NULL there.  From 18 on, a constraint may hold for new rows alone. */
static inline bool
gh_is_never_null(TupleDesc desc, AttrNumber attno)
{
#if PG_VERSION_NUM >= 180000
	return TupleDescCompactAttr(desc, attno - 1)->attnullability == ATTNULLABLE_VALID;
#else
	return TupleDescAttr(desc, attno - 1)->attnotnull;
#endif
}

/* Whether it compares as an ordering does, or tells what is unequal there.  18 renamed the function. */
static inline bool
gh_is_comparison(Oid operator)
{
#if PG_VERSION_NUM >= 180000
	return get_op_index_interpretation(operator) != NIL;
#else
	return get_op_btree_interpretation(operator) != NIL;
#endif
}

/* How many of the plan's nodes are of a kind that is switched off.  Before 18, costs tell. */
static inline int
gh_disabled_nodes(const Plan *plan)
{
#if PG_VERSION_NUM >= 180000
	return plan->disabled_nodes;
#else
	(void) plan;
	return 0;
#endif
}

/* Whether columns of the table are computed when they are read. */
static inline bool
gh_has_virtual_columns(TupleDesc desc)
{
#if PG_VERSION_NUM >= 180000
	return desc->constr != NULL && desc->constr->has_generated_virtual;
#else
	(void) desc;
	return false;
#endif
}

/* What a column of a table stands for that only names others' expressions: a join, and from 18 on a grouping; else NULL. */
static inline Node *
gh_named_expression(const RangeTblEntry *table, AttrNumber column)
{
	if (table->rtekind == RTE_JOIN)
		return list_nth(table->joinaliasvars, column - 1);
#if PG_VERSION_NUM >= 180000
	if (table->rtekind == RTE_GROUP)
		return list_nth(table->groupexprs, column - 1);
#endif
	return NULL;
}

/*
 * From 18 on, a grouping's keys have names, which its targets refer to: columns of an entry of their own among its tables.
 * Its number; 0: there is none.
 */
static inline Index
gh_group_names(const Query *query)
{
#if PG_VERSION_NUM >= 180000
	ListCell   *lc;

	if (query->hasGroupRTE)
		foreach(lc, query->rtable)
			if (lfirst_node(RangeTblEntry, lc)->rtekind == RTE_GROUP)
				return (Index) foreach_current_index(lc) + 1;
#else
	(void) query;
#endif
	return 0;
}

/* What these are names of; and what they are to be names of. */
static inline List *
gh_named_groups(const RangeTblEntry *names)
{
#if PG_VERSION_NUM >= 180000
	return names->groupexprs;
#else
	(void) names;
	return NIL;
#endif
}

static inline void
gh_rename_groups(RangeTblEntry *names, List *exprs)
{
#if PG_VERSION_NUM >= 180000
	names->groupexprs = exprs;
#else
	(void) names;
	(void) exprs;
#endif
}

/* An expression of the query with what the names stand for. */
static inline Node *
gh_without_group_names(const Query *query, Node *expr)
{
#if PG_VERSION_NUM >= 180000
	if (query->hasGroupRTE)
		return flatten_group_exprs(NULL, (Query *) query, expr);
#else
	(void) query;
#endif
	return expr;
}

/* Of a query whose targets have none: the entry, of that number, or 0, stands for nothing. */
static inline void
gh_drop_group_names(Query *query, Index names)
{
#if PG_VERSION_NUM >= 180000
	if (names == 0)
		return;
	query->hasGroupRTE = false;
	list_nth_node(RangeTblEntry, query->rtable, names - 1)->rtekind = RTE_RESULT;
	list_nth_node(RangeTblEntry, query->rtable, names - 1)->groupexprs = NIL;
#else
	(void) query;
	(void) names;
#endif
}

/* Copies of those of a view's tables that stand for the view, with what its user may do; from 16 on there are none. */
static inline List *
gh_view_entries(const Query *query)
{
	List	   *entries = NIL;
#if PG_VERSION_NUM < 160000
	ListCell   *lc;

	foreach(lc, query->rtable)
		if (lfirst_node(RangeTblEntry, lc)->rtekind == RTE_RELATION)
			entries = lappend(entries, copyObject(lfirst(lc)));
#else
	(void) query;
#endif
	return entries;
}

/*
 * Whether the user may do with all tables of a plan what it does, by privileges on whole tables, where the executor looks at those on
 * columns, too.  From 16 on, what that is stands beside the tables.
 */
static inline bool
gh_may_read_all(const PlannedStmt *plan)
{
	ListCell   *lc;

#if PG_VERSION_NUM >= 160000
	foreach(lc, plan->permInfos)
	{
		const RTEPermissionInfo *entry = lfirst_node(RTEPermissionInfo, lc);
#else
	foreach(lc, plan->rtable)
	{
		const RangeTblEntry *entry = lfirst_node(RangeTblEntry, lc);

		if (entry->rtekind != RTE_RELATION)
			continue;
#endif
		if (pg_class_aclmask(entry->relid, OidIsValid(entry->checkAsUser) ? entry->checkAsUser : GetUserId(),
							 entry->requiredPerms, ACLMASK_ALL) != entry->requiredPerms)
			return false;
	}
	return true;
}

/* Whether all columns of a table of the query may be read, by whoever has to have the privileges on it. */
static inline bool
gh_may_read(PlannerInfo *root, RangeTblEntry *rte)
{
	Oid			user;

#if PG_VERSION_NUM >= 160000
	if (rte->perminfoindex == 0)
		return false;
	user = getRTEPermissionInfo(root->parse->rteperminfos, rte)->checkAsUser;
#else
	(void) root;
	user = rte->checkAsUser;
#endif
	return pg_class_aclcheck(rte->relid, OidIsValid(user) ? user : GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

/* Subqueries in the place of all of a query's tables: what one may do with tables is noted in these queries, from 16 on. */
static inline void
gh_set_tables(Query *query, List *tables)
{
	query->rtable = tables;
#if PG_VERSION_NUM >= 160000
	query->rteperminfos = NIL;
#endif
}

/* The table of that number becomes the only one of `to`.  From 16 on, what one may do with it is noted in the query. */
static inline void
gh_copy_table(Query *to, const Query *from, int number)
{
	RangeTblEntry *table = copyObject(list_nth_node(RangeTblEntry, from->rtable, number - 1));

#if PG_VERSION_NUM >= 160000
	if (table->perminfoindex != 0)
	{
		to->rteperminfos = list_make1(copyObject(getRTEPermissionInfo(from->rteperminfos, table)));
		table->perminfoindex = 1;
	}
#endif
	to->rtable = list_make1(table);
}

/* And a column of an outer join's nullable side, above that, names the join. */
static inline void
gh_add_nulling_join(Var *var, Index join)
{
#if PG_VERSION_NUM >= 160000
	var->varnullingrels = bms_add_member(var->varnullingrels, (int) join);
#else
	(void) var;
	(void) join;
#endif
}

/*
 * From 16 on, the parameters of a path may include that an outer join was made: a path
 * of its own inputs must not ask for that.
 */
static inline bool
gh_needs_this_join(Path *path, SpecialJoinInfo *sjinfo)
{
#if PG_VERSION_NUM >= 160000
	return sjinfo->ojrelid != 0 && bms_is_member(sjinfo->ojrelid, PATH_REQ_OUTER(path));
#else
	(void) path;
	(void) sjinfo;
	return false;
#endif
}

/*
 * What a join path's parameters are, given what the join relation has for all of its
 * paths.  From 16 on, it says which clauses with parameters the path sees to, lest the
 * node that gives the parameters evaluate them again; the core knows its own joins.
 */
static inline ParamPathInfo *
gh_join_param_info(ParamPathInfo *shared, Path *outer, Path *inner, List *clauses)
{
#if PG_VERSION_NUM >= 160000
	ParamPathInfo *own;
	ListCell   *lc;

	if (shared == NULL)
		return NULL;
	own = makeNode(ParamPathInfo);
	*own = *shared;
	own->ppi_serials = bms_union(get_param_path_clause_serials(outer),
								 get_param_path_clause_serials(inner));
	foreach(lc, clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		/* a clause of the join alone never comes up above it */
		if (bms_overlap(rinfo->clause_relids, own->ppi_req_outer))
			own->ppi_serials = bms_add_member(own->ppi_serials, rinfo->rinfo_serial);
	}
	return own;
#else
	(void) outer;
	(void) inner;
	(void) clauses;
	return shared;
#endif
}

/*
 * Gating quals (pseudoconstants): from 17 on the core takes them from
 * custom_restrictinfo and puts a Result node over the join.  Before, it does not
 * call the join hook for such joins, and a path must not be built either.
 */
#if PG_VERSION_NUM >= 170000
#define GH_CORE_GATES_JOINS true
#define gh_set_path_restrictinfo(cpath, list) ((cpath)->custom_restrictinfo = (list))
#else
#define GH_CORE_GATES_JOINS false
#define gh_set_path_restrictinfo(cpath, list) ((void) 0)
#endif

/* From 18 on, INTERSECT and EXCEPT of rows that come in order return some before all are read. */
#if PG_VERSION_NUM >= 180000
#define GH_SETOP_READS_ALL false
#else
#define GH_SETOP_READS_ALL true
#endif

/* From 17 on, so does UNION. */
#if PG_VERSION_NUM >= 170000
#define GH_UNION_READS_ALL false
#else
#define GH_UNION_READS_ALL true
#endif

/* Join types that came later: the right anti join with 16, the right semi join with 18. */
static inline bool
gh_is_right_anti(JoinType jointype)
{
#if PG_VERSION_NUM >= 160000
	return jointype == JOIN_RIGHT_ANTI;
#else
	(void) jointype;
	return false;
#endif
}

static inline bool
gh_is_right_semi(JoinType jointype)
{
#if PG_VERSION_NUM >= 180000
	return jointype == JOIN_RIGHT_SEMI;
#else
	(void) jointype;
	return false;
#endif
}

/* From 19 on, groups may be made below a join: such a join's relation, and those below it, have groups for rows. */
#if PG_VERSION_NUM >= 190000
#define gh_is_grouped(rel) IS_GROUPED_REL(rel)
#else
#define gh_is_grouped(rel) ((void) (rel), false)
#endif

/*
 * From 19 on, other extensions may say how two relations are to be joined, and in what order, or a table be read, by taking from
 * what the settings allow.  Whether one does not want a hash join of these two; a Seq Scan of the table; a scan of an index of it.
 */
#if PG_VERSION_NUM >= 190000
#define gh_hash_join_is_unwanted(root, extra) (((root)->glob->default_pgs_mask & ~(extra)->pgs_mask & PGS_HASHJOIN) != 0)
#define gh_seq_scan_is_unwanted(root, rel) (((root)->glob->default_pgs_mask & ~(rel)->pgs_mask & PGS_SEQSCAN) != 0)
#define gh_index_scan_is_unwanted(root, rel) \
	(((root)->glob->default_pgs_mask & ~(rel)->pgs_mask & (PGS_INDEXSCAN | PGS_INDEXONLYSCAN)) != 0)
#else
#define gh_index_scan_is_unwanted(root, rel) ((void) (root), (void) (rel), false)
#define gh_hash_join_is_unwanted(root, extra) ((void) (root), (void) (extra), false)
#define gh_seq_scan_is_unwanted(root, rel) ((void) (root), (void) (rel), false)
#endif

/* From 16 on, processes with a common table find inner rows without a match together. */
#define GH_PARALLEL_FILLS_INNER (PG_VERSION_NUM >= 160000)

/*
 * The path of a semijoin's right side, each row once, for the join types
 * JOIN_UNIQUE_OUTER and JOIN_UNIQUE_INNER; or NULL.  From 19 on, the relation that
 * such a join is given has just paths of that kind.
 */
static inline Path *
gh_unique_path(PlannerInfo *root, RelOptInfo *rel, Path *path, SpecialJoinInfo *sjinfo)
{
#if PG_VERSION_NUM >= 190000
	(void) root;
	(void) rel;
	(void) sjinfo;
	return path;
#else
	return (Path *) create_unique_path(root, rel, path, sjinfo);
#endif
}

/*
 * Whether a side of a join is a semijoin's right side, each row once.  Before 19 it is a path of a kind of its own; from 19 on it is
 * one that makes groups, as no other side does: subqueries are scanned, and a join of groups is not looked at.
 */
static inline bool
gh_is_unique_path(const Path *side)
{
#if PG_VERSION_NUM >= 190000
	return IsA(side, AggPath) || IsA(side, UniquePath);
#else
	return IsA(side, UniquePath);
#endif
}

/* Clauses that refer to the topmost parent of a child relation, as they refer to the child. */
static inline List *
gh_clauses_of_child(PlannerInfo *root, List *clauses, RelOptInfo *child)
{
#if PG_VERSION_NUM >= 160000
	return (List *) adjust_appendrel_attrs_multilevel(root, (Node *) clauses, child,
													  child->top_parent);
#else
	return (List *) adjust_appendrel_attrs_multilevel(root, (Node *) clauses, child->relids,
													  child->top_parent_relids);
#endif
}

/*
 * Whether a path of rel over these two, in no order, is not sure to lose against those
 * that rel has.
 */
static inline bool
gh_path_may_win(RelOptInfo *rel, Path *outer, Path *inner, Cost startup, Cost total,
				Relids required_outer)
{
#if PG_VERSION_NUM >= 180000
	return add_path_precheck(rel, outer->disabled_nodes + inner->disabled_nodes, startup,
							 total, NIL, required_outer);
#else
	(void) outer;
	(void) inner;
	return add_path_precheck(rel, startup, total, NIL, required_outer);
#endif
}

/* An Append of these paths, or of these partial ones, in no order.  19 has them in a struct. */
static inline AppendPath *
gh_append(PlannerInfo *root, RelOptInfo *rel, List *paths, List *partial, int workers, bool aware)
{
#if PG_VERSION_NUM >= 190000
	AppendPathInput input = {.subpaths = paths, .partial_subpaths = partial};

	return create_append_path(root, rel, input, NIL, NULL, workers, aware, -1);
#else
	return create_append_path(root, rel, paths, partial, NIL, NULL, workers, aware, -1);
#endif
}

/* Whether a relation has one row at most by its conditions and a unique index.  19 has one parameter less. */
#if PG_VERSION_NUM >= 190000
#define gh_is_one_row(root, rel) relation_has_unique_index_for(root, rel, NIL, NULL)
#else
#define gh_is_one_row(root, rel) relation_has_unique_index_for(root, rel, NIL, NIL, NIL)
#endif

/* Whether GEQO is searching an order of the joins.  19 keeps what it knows by a number that it gets when it first runs. */
#if PG_VERSION_NUM >= 190000
#define gh_geqo_runs(root) (Geqo_planner_extension_id >= 0 && GetGeqoPrivateData(root) != NULL)
#else
#define gh_geqo_runs(root) ((root)->join_search_private != NULL)
#endif

/* The path that drops what is the same in sorted rows.  19 renamed it. */
#if PG_VERSION_NUM >= 190000
typedef UniquePath GhSortedUniquePath;
#define T_GhSortedUniquePath T_UniquePath
#else
typedef UpperUniquePath GhSortedUniquePath;
#define T_GhSortedUniquePath T_UpperUniquePath
#endif

/* What the planner is given beside a query; from 19 on, also what EXPLAIN collects, or NULL. */
#if PG_VERSION_NUM >= 190000
#define GH_PLANNER_PARAMETERS const char *text, int options, ParamListInfo params, ExplainState *es
#define GH_PLANNER_ARGUMENTS text, options, params, es
#define gh_plan_query(query, text, options, params) pg_plan_query(query, text, options, params, NULL)
#else
#define GH_PLANNER_PARAMETERS const char *text, int options, ParamListInfo params
#define GH_PLANNER_ARGUMENTS text, options, params
#define gh_plan_query(query, text, options, params) pg_plan_query(query, text, options, params)
#endif

/* 18 counts disabled nodes instead of adding a huge cost. */
#if PG_VERSION_NUM >= 180000
#define gh_sum_disabled_nodes(path, a, b) \
	((path)->disabled_nodes = (a)->disabled_nodes + (b)->disabled_nodes)
#define gh_has_more_disabled_nodes(path, a, b) \
	((path)->disabled_nodes > (a)->disabled_nodes + (b)->disabled_nodes)
#define gh_copy_disabled_nodes(path, a) ((path)->disabled_nodes = (a)->disabled_nodes)
#else
#define gh_sum_disabled_nodes(path, a, b) ((void) 0)
#define gh_has_more_disabled_nodes(path, a, b) ((void) (a), (void) (b), false)
#define gh_copy_disabled_nodes(path, a) ((void) 0)
#endif

/* What a query groups by, and of DISTINCT; from 16 on, without what is the same in all rows of a group anyway. */
#if PG_VERSION_NUM >= 160000
#define gh_group_clause(root) ((root)->processed_groupClause)
#define gh_distinct_clause(root) ((root)->processed_distinctClause)
#else
#define gh_group_clause(root) ((root)->parse->groupClause)
#define gh_distinct_clause(root) ((root)->parse->distinctClause)
#endif

/* An expression of a query's grouping, without the marks that 18 has on columns which grouping sets make NULL. */
#if PG_VERSION_NUM >= 180000
#define gh_below_grouping(root, expr) \
	((root)->group_rtindex > 0 ? remove_nulling_relids(expr, bms_make_singleton((root)->group_rtindex), NULL) : (expr))
#else
#define gh_below_grouping(root, expr) ((void) (root), (expr))
#endif

/* What an ordering operator says: that is a strategy of B-trees; from 18 on, a comparison of any index. */
#if PG_VERSION_NUM >= 180000
typedef CompareType gh_ordering;
#define GH_ORDERING_LESS COMPARE_LT
#else
typedef int16 gh_ordering;
#define GH_ORDERING_LESS BTLessStrategyNumber
#endif

/*
 * What PostgreSQL counts for the sort of the rows that go into an aggregate with DISTINCT; 0 where it counts nothing: 15
 * has no other sort for these than within the aggregate, nor have others where it is switched off.
 */
static inline Cost
gh_counted_distinct_sort(PlannerInfo *root, double rows, int width)
{
#if PG_VERSION_NUM >= 160000
	Path		sort = {0};

	if (!enable_presorted_aggregate || !enable_sort)
		return 0.0;
#if PG_VERSION_NUM >= 180000
	cost_sort(&sort, root, NIL, 0, 0.0, rows, width, 0.0, work_mem, -1.0);
#else
	cost_sort(&sort, root, NIL, 0.0, rows, width, 0.0, work_mem, -1.0);
#endif
	return sort.total_cost;
#else
	return 0.0;
#endif
}

#endif							/* GPUHASH_COMPAT_PLAN_H */
