/*
 * join_path.c
 *		When the planner considers a GpuHashJoin, and in place of what.
 *
 * The hook is called for every pair of inputs of every join, in either order and
 * with the join type that goes with the order; the second input is the one that is
 * hashed.  So it turns down by row count before it looks at a clause.  Which paths of
 * the inputs are joined is what PostgreSQL's hash join does.  The hook never touches a
 * GPU: plans are made, and kept, where there may be none.
 *
 * A path takes the place of a hash join of PostgreSQL's, at its cost; by its own cost it competes only where
 * it wins clearly.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "expr/key.h"
#include "gpuhash.h"
#include "plan/input_path.h"
#include "plan/join_path.h"
#include "plan/join_plan.h"
#include "plan/keys_path.h"
#include "plan/note.h"
#include "plan/parts_path.h"
#include "plan/planning.h"
#include "plan/rows_path.h"
#include "plan/scan_path.h"
#include "plan/why.h"
#include "service/placement.h"

static set_join_pathlist_hook_type previous_hook = NULL;

static List *reparameterize_private(PlannerInfo *root, List *custom_private,
									RelOptInfo *child_rel);

const CustomPathMethods gh_join_path_methods = {
	.CustomName = GH_JOIN_NAME,
	.PlanCustomPath = gh_join_plan,
	.ReparameterizeCustomPathByChild = reparameterize_private,
};

/* --------------------------------------------------------------- paths */

/*
 * Whether a path that joins these two, one of which has parameters, is one that may be
 * there, and that the planner has a use for above this join.
 */
static bool
may_have_parameters(const GhJoinInputs *inputs, Path *outer, Path *inner)
{
	JoinPathExtraData *extra = inputs->extra;

	/* an outer side that is read ahead: its clauses with parameters come from elsewhere */
	return (outer->param_info == NULL || !inputs->may_stay_unread) &&
		!gh_needs_this_join(outer, extra->sjinfo) &&
		!gh_needs_this_join(inner, extra->sjinfo) &&
		(bms_overlap(PATH_REQ_OUTER(outer), extra->param_source_rels) ||
		 bms_overlap(PATH_REQ_OUTER(inner), extra->param_source_rels));
}

/* What its path carries. */
static void
init_step(GhJoinInputs *inputs, const GhJoinChoice *choice, GhJoinStep *step)
{
	if (choice->has_parameters)
		step->pair = palloc0(sizeof(GhJoinPair));
	else
	{
		if (inputs->pair == NULL)
			inputs->pair = palloc0(sizeof(GhJoinPair));
		step->pair = inputs->pair;
	}
	step->jointype = inputs->jointype;
	step->inner_unique = inputs->extra->inner_unique;
	step->clauses = choice->clauses;
	step->hash_clauses = inputs->hash_clauses;
	step->equalities = inputs->equalities;
	step->startup_cost = choice->startup_cost;
	step->total_cost = choice->total_cost;
	step->inner_cost = choice->inner_cost;
}

/* The chosen path. */
static CustomPath *
make_join_path(GhJoinInputs *inputs, const GhJoinChoice *choice, ParamPathInfo *param_info)
{
	CustomPath *cpath = makeNode(CustomPath);
	GhJoinStep	step = {0};
	Path	   *outer = choice->outer;
	Path	   *inner = choice->inner;

	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = inputs->joinrel;
	cpath->path.pathtarget = inputs->joinrel->reltarget;
	cpath->path.param_info = param_info;
	cpath->path.parallel_aware = choice->common_table;
	cpath->path.parallel_workers = choice->workers;
	cpath->path.parallel_safe = inputs->joinrel->consider_parallel &&
		outer->parallel_safe && inner->parallel_safe;
	cpath->path.rows = choice->rows;
	cpath->path.startup_cost = choice->startup_cost;
	cpath->path.total_cost = choice->total_cost;
	if (gh_force_offload)
	{
		cpath->path.startup_cost *= GH_FORCED_SCALE;
		cpath->path.total_cost *= GH_FORCED_SCALE;
	}
	gh_sum_disabled_nodes(&cpath->path, outer, inner);
	cpath->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make2(outer, inner);
	cpath->methods = &gh_join_path_methods;
	gh_set_path_restrictinfo(cpath, choice->clauses);
	init_step(inputs, choice, &step);
	cpath->custom_private = list_make1(gh_make_step(&step));
	return cpath;
}

/*
 * Prices a join of these two, of which the choice says how many workers there are; *shared: what the join relation has
 * for all of its paths with these parameters.  False: it must not be made.
 */
static bool
price_join(GhJoinInputs *inputs, Path *any_outer, Path *any_inner, GhJoinChoice *choice,
		   ParamPathInfo **shared)
{
	RelOptInfo *joinrel = inputs->joinrel;
	Path	   *outer;
	Path	   *inner;

	*shared = NULL;
	/* what takes the place of a hash join is most often priced once more, for itself */
	if (any_outer == inputs->priced_outer && any_inner == inputs->priced_inner &&
		choice->workers == inputs->priced.workers && choice->common_table == inputs->priced.common_table)
	{
		*choice = inputs->priced;
		return true;
	}
	outer = gh_parts_forced(inputs->root, gh_rowscan_absorbed(inputs->root, any_outer));
	inner = gh_rowscan_absorbed(inputs->root, any_inner);
	choice->outer = outer;
	choice->inner = inner;
	choice->clauses = inputs->extra->restrictlist;
	choice->rows = choice->workers > 0 ?
		clamp_row_est(joinrel->rows / gh_parallel_divisor(choice->workers)) : joinrel->rows;
	if (outer->param_info != NULL || inner->param_info != NULL)
	{
		Relids		required_outer;

		if (!may_have_parameters(inputs, outer, inner))
			return false;
		/* clauses that compare with the parameters come to the join's own */
		required_outer = calc_non_nestloop_required_outer(outer, inner);
		*shared = get_joinrel_parampathinfo(inputs->root, joinrel, outer, inner, inputs->extra->sjinfo,
											required_outer, &choice->clauses);
		if (*shared != NULL)
		{
			choice->has_parameters = true;
			choice->rows = (*shared)->ppi_rows;
		}
	}
	gh_cost_join(inputs, choice);
	/* a path with parameters is for one row of another relation */
	if (choice->outer->param_info == NULL && choice->inner->param_info == NULL)
	{
		inputs->priced_outer = any_outer;
		inputs->priced_inner = any_inner;
		inputs->priced = *choice;
		gh_why_cost(inputs->root, joinrel->relids, GH_JOIN_NAME, choice->startup_cost, choice->total_cost,
					choice->workers > 0);
	}
	return true;
}

/*
 * What a hash join of PostgreSQL's costs at least that has the smaller one of the same sides in its table.
 * Of an inner join it may come only after this path, with the sides the other way round.
 */
static Cost
hash_join_cost(const GhJoinInputs *inputs, const GhJoinChoice *choice)
{
	List	   *outer_partial = inputs->outerrel->partial_pathlist;
	List	   *inner_partial = inputs->innerrel->partial_pathlist;
	Path	   *outer = choice->workers > 0 && outer_partial != NIL ? linitial(outer_partial) :
		inputs->outerrel->cheapest_total_path;
	Path	   *inner = choice->common_table && inner_partial != NIL ? linitial(inner_partial) :
		inputs->innerrel->cheapest_total_path;
	Cost		hashing = cpu_operator_cost * list_length(inputs->hash_clauses);

	return outer->total_cost + inner->total_cost + hashing * (outer->rows + inner->rows) +
		cpu_tuple_cost * (Min(outer->rows, inner->rows) + choice->rows);
}

/*
 * Whether a path that PostgreSQL has nothing like is to compete, by its own cost.  What it changes is the order of joins, or
 * how a table is read; rows and pages are estimated too badly for that to be decided by little.
 */
static bool
may_compete(const GhJoinInputs *inputs, const GhJoinChoice *choice, List *paths)
{
	if (gh_force_offload)
		return true;
	if (gh_joins_are_searched_at_random(inputs->root) ||
		!gh_wins_clearly(paths, choice->outer, choice->inner, choice->total_cost))
		return false;
	return inputs->jointype != JOIN_INNER || choice->has_parameters || !enable_hashjoin ||
		choice->total_cost <= GH_CLEAR_SHARE * hash_join_cost(inputs, choice);
}

/* Whether a GpuHashRows above the join is to compete, or the join to be kept, before there is a path. */
static bool
rows_may_compete(GhJoinInputs *inputs, const GhJoinChoice *choice, bool in_place)
{
	GhJoinStep	step = {0};

	/* rows that take another path's place need not compete */
	if (!in_place && gh_rows_cost_too_much(inputs->root, inputs->joinrel, choice))
		return false;
	if (!gh_rows_may_win(inputs->root, inputs->joinrel, choice->outer, choice->inner) &&
		!gh_joins_may_be_kept(inputs->root, inputs->joinrel, choice))
		return false;
	if (gh_force_offload)
		return true;
	/* what has parameters is no chain of joins */
	if (choice->outer->param_info != NULL || choice->inner->param_info != NULL)
		return false;
	init_step(inputs, choice, &step);
	gh_link_step(inputs->root, &step, inputs->joinrel, choice->outer, choice->inner, choice->workers);
	return gh_rows_may_compete(inputs->root, inputs->joinrel, &step, choice, in_place);
}

static void
add_join_path(GhJoinInputs *inputs, Path *outer, Path *inner)
{
	RelOptInfo *joinrel = inputs->joinrel;
	ParamPathInfo *param_info;
	GhJoinChoice choice = {0};
	bool		wins;
	bool		competes;

	if (gh_has_few_rows(outer->rows + inner->rows))
		return;
	if (!price_join(inputs, outer, inner, &choice, &param_info))
		return;
	wins = gh_force_offload ||
		gh_path_may_win(joinrel, choice.outer, choice.inner, choice.startup_cost, choice.total_cost,
						param_info != NULL ? param_info->ppi_req_outer : NULL);
	competes = wins && may_compete(inputs, &choice, joinrel->pathlist);
	if (!competes && !rows_may_compete(inputs, &choice, false))
		return;
	param_info = gh_join_param_info(param_info, choice.outer, choice.inner, choice.clauses);
	gh_rows_add_paths(inputs->root, (Path *) make_join_path(inputs, &choice, param_info), competes, add_path);
}

/*
 * The table's Seq Scan, where a device is expected to read it and its cheapest path is none, but goes over an index, or
 * is of several processes; of several tables that are read as one, on an outer side, the scan of them all; else NULL.
 */
static Path *
scan_for_device(const GhJoinInputs *inputs, RelOptInfo *rel, bool is_outer)
{
	const Path *cheapest = rel->cheapest_total_path;
	const GhParts *parts;
	const GhNote *note;

	if (!IS_SIMPLE_REL(rel) || !bms_is_empty(rel->lateral_relids) || cheapest->pathtype == T_SeqScan ||
		gh_is_rowscan_path(cheapest))
		return NULL;
	if (is_outer && (parts = gh_find_parts(inputs->root, rel)) != NULL)
		return parts->on_device ? gh_parts_whole_scan(inputs->root, rel) : NULL;
	note = gh_note(inputs->root, rel);
	return note->is_readable && note->on_device ? gh_note_whole_scan(inputs->root, rel) : NULL;
}

/* Tables that PostgreSQL would read otherwise, as a device reads them: for its rows alone. */
static void
add_device_join_path(GhJoinInputs *inputs, Path *kept)
{
	Path	   *outer;
	Path	   *inner;
	ParamPathInfo *param_info;
	GhJoinChoice choice = {0};

	if (gh_force_offload || !gh_device_may_be_expected() || gh_joins_are_searched_at_random(inputs->root))
		return;
	outer = scan_for_device(inputs, inputs->outerrel, true);
	inner = scan_for_device(inputs, inputs->innerrel, false);
	if (outer == NULL && inner == NULL)
		return;
	if (outer == NULL)
		outer = kept != NULL ? kept : inputs->outerrel->cheapest_total_path;
	if (inner == NULL)
		inner = inputs->innerrel->cheapest_total_path;
	if (outer->param_info != NULL || inner->param_info != NULL ||
		!price_join(inputs, outer, inner, &choice, &param_info) || !rows_may_compete(inputs, &choice, false))
		return;
	param_info = gh_join_param_info(param_info, choice.outer, choice.inner, choice.clauses);
	gh_rows_add_paths(inputs->root, (Path *) make_join_path(inputs, &choice, param_info), false, add_path);
}

/*
 * How many workers a path has of which each process gives a part of the rows: as many as the outer side was planned for, or, of a
 * common table, the inner one, which may be much the larger part of the work.
 */
static int
workers_of(const Path *outer, const Path *inner, bool common_table)
{
	return common_table ? Max(outer->parallel_workers, inner->parallel_workers) : outer->parallel_workers;
}

/*
 * A path of which each process gives a part of the rows.  With a common table, each
 * has a part of the inner rows, too; else all of them to itself.
 */
static void
add_partial_join_path(GhJoinInputs *inputs, Path *outer, Path *inner, bool common_table)
{
	RelOptInfo *joinrel = inputs->joinrel;
	ParamPathInfo *param_info;
	GhJoinChoice choice = {.workers = workers_of(outer, inner, common_table),.common_table = common_table};
	bool		competes;

	if (!price_join(inputs, outer, inner, &choice, &param_info))
		return;
	competes = may_compete(inputs, &choice, joinrel->partial_pathlist);
	if (!competes && !rows_may_compete(inputs, &choice, false))
		return;
	gh_rows_add_paths(inputs->root, (Path *) make_join_path(inputs, &choice, NULL), competes, add_partial_path);
}

/* ------------------------------------------- in place of PostgreSQL's own */

/*
 * Of an inner side that each process of a parallel plan would make all of, a path that one of them makes for all: the only
 * child, not a partial one, of a Parallel Append.  NULL: it is none, or costs less than it takes to wait for one another.
 */
static Path *
inner_made_once(const GhJoinInputs *inputs, const GhJoinChoice *choice)
{
	Path	   *inner = choice->inner;
	AppendPath *once;

	/* pages of a table are read by the join itself */
	if (choice->workers == 0 || choice->common_table || !enable_parallel_append || !enable_parallel_hash ||
		!inner->parallel_safe || inner->param_info != NULL || inner->pathtype == T_SeqScan ||
		inner->total_cost < parallel_setup_cost)
		return NULL;
	once = gh_append(inputs->root, inner->parent, list_make1(inner), NIL, choice->workers, true);
	/* PostgreSQL 15 takes an Append of one child for nothing, and leaves it out: then each process would run that */
	return once->path.rows < inner->rows ? &once->path : NULL;
}

/* The same join with a common table whose rows one process makes, where that costs less. */
static void
share_inner(GhJoinInputs *inputs, Path *outer, GhJoinChoice *choice)
{
	Path	   *inner = inner_made_once(inputs, choice);
	GhJoinChoice shared = {.workers = choice->workers,.common_table = true};
	ParamPathInfo *param_info;

	if (inner != NULL && price_join(inputs, outer, inner, &shared, &param_info) &&
		shared.total_cost < choice->total_cost)
		*choice = shared;
}

/*
 * A join over the same two paths as the hash join, if it costs less, at the hash join's cost; or NULL.
 * Whatever the estimates of rows are worth, they are the same for both.
 *
 * The join reads its tables by itself, on the host, while GpuHashScans below the hash join may have a
 * device do so.  So its rows may cost less where it does not.
 */
static Path *
join_in_place(GhJoinInputs *inputs, Path *path)
{
	JoinPath   *join = (JoinPath *) path;
	Path	   *sides[2] = {join->outerjoinpath, join->innerjoinpath};
	Cost		costs[2];
	GhJoinChoice choice = {.workers = workers_of(sides[0], sides[1], path->parallel_aware),.common_table = path->parallel_aware};
	ParamPathInfo *param_info;
	Path	   *result;
	Path	   *rows;
	bool		less;

	/* with parameters it is run again for each outer row, and the planner has it that only a hash join keeps its table */
	if (path->param_info != NULL)
		return NULL;
	if (join->jointype != inputs->jointype || sides[0]->rows + sides[1]->rows < GH_MIN_ROWS ||
		!price_join(inputs, sides[0], sides[1], &choice, &param_info))
		return NULL;
	share_inner(inputs, sides[0], &choice);
	gh_real_hash_join_cost(join, &costs[0], &costs[1]);
	result = gh_join_turned(inputs, join, choice.total_cost);
	if (result != NULL)
	{
		choice.startup_cost = gh_step(result)->startup_cost;
		choice.total_cost = gh_step(result)->total_cost;
	}
	less = gh_costs_less(inputs->root, path->rows, choice.startup_cost, choice.total_cost, costs[0],
						 costs[1]);
	if (!less && (result != NULL || !rows_may_compete(inputs, &choice, true)))
		return NULL;
	param_info = gh_join_param_info(param_info, choice.outer, choice.inner, choice.clauses);
	if (result == NULL)
		result = (Path *) make_join_path(inputs, &choice, param_info);
	rows = gh_rows_of_join(inputs->root, result, path, costs);
	if (rows == NULL && !less)
		return NULL;
	if (rows != NULL)
		result = rows;
	result->startup_cost = path->startup_cost;
	result->total_cost = path->total_cost;
	/* of one process, of which there may be more than the hash join has */
	result->rows = choice.workers == path->parallel_workers ? path->rows : choice.rows;
	gh_copy_disabled_nodes(result, path);
	return result;
}

/*
 * Takes the places of PostgreSQL's hash joins of the two inputs.  A path that does costs what they do, so that no choice
 * above this join is another one than without gpuhash.
 */
static void
take_places(GhJoinInputs *inputs, List *paths)
{
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = gh_is_same_hash_join(inputs, lfirst(lc)) ? join_in_place(inputs, lfirst(lc)) : NULL;

		if (path != NULL)
			lfirst(lc) = path;
	}
}

/*
 * ReparameterizeCustomPathByChild: the path's parameters come from a partition instead of
 * its partitioned table.
 */
static List *
reparameterize_private(PlannerInfo *root, List *custom_private, RelOptInfo *child_rel)
{
	GhJoinStep *step = gh_make_step(linitial(custom_private));

	step->clauses = gh_clauses_of_child(root, step->clauses, child_rel);
	step->hash_clauses = gh_clauses_of_child(root, step->hash_clauses, child_rel);
	step->equalities = gh_clauses_of_child(root, step->equalities, child_rel);
	step->pair = palloc0(sizeof(GhJoinPair));
	return list_make1(step);
}

/* The outer path that starts most cheaply, where the query may want its first rows soon. */
static Path *
startup_path(const GhJoinInputs *inputs)
{
	return inputs->joinrel->consider_startup ? inputs->outerrel->cheapest_startup_path : NULL;
}

/*
 * Parallel paths, as PostgreSQL's hash join has them, over this one of the outer side.  total_inner is the
 * inner path to take where each process reads all of it; made_distinct says that nothing may take its
 * place.
 */
static void
add_partial_paths_over(GhJoinInputs *inputs, Path *outer, Path *total_inner, bool made_distinct)
{
	RelOptInfo *joinrel = inputs->joinrel;
	List	   *inner_paths = inputs->innerrel->partial_pathlist;
	bool		fills_inner = inputs->jointype == JOIN_FULL ||
		inputs->jointype == JOIN_RIGHT || gh_is_right_anti(inputs->jointype);

	if (!joinrel->consider_parallel || !bms_is_empty(joinrel->lateral_relids))
		return;
	/* two processes may find the first match of an inner row at the same time */
	if (gh_is_right_semi(inputs->jointype) || (fills_inner && !GH_PARALLEL_FILLS_INNER))
		return;

	/* parts of it, each made distinct, would not be distinct together */
	if (inner_paths != NIL && !made_distinct && enable_parallel_hash)
		add_partial_join_path(inputs, outer, linitial(inner_paths), true);

	/* no process of several knows all the matches of an inner row */
	if (fills_inner)
		return;
	if (!total_inner->parallel_safe)
		total_inner = made_distinct ? NULL :
			get_cheapest_parallel_safe_total_inner(inputs->innerrel->pathlist);
	if (total_inner != NULL && bms_is_empty(PATH_REQ_OUTER(total_inner)))
		add_partial_join_path(inputs, outer, total_inner, false);
}

/* Over the cheapest outer path, and the joins for a device that may be none of the paths. */
static void
add_partial_paths(GhJoinInputs *inputs, Path *total_inner, bool made_distinct)
{
	List	   *outer_paths = inputs->outerrel->partial_pathlist;
	Path	   *kept = gh_kept_joins(inputs->root, inputs->outerrel, true);

	if (outer_paths != NIL)
		add_partial_paths_over(inputs, linitial(outer_paths), total_inner, made_distinct);
	if (kept != NULL)
		add_partial_paths_over(inputs, kept, total_inner, made_distinct);
}

/*
 * The cheapest outer paths, by startup and by total cost, with the cheapest inner path,
 * and what there is with parameters, unless they come from the other input.
 */
static void
add_join_paths(GhJoinInputs *inputs)
{
	Path	   *startup_outer = startup_path(inputs);
	Path	   *total_inner = inputs->innerrel->cheapest_total_path;
	Path	   *kept = gh_kept_joins(inputs->root, inputs->outerrel, false);
	ListCell   *lo;
	ListCell   *li;

	if (startup_outer != NULL)
		add_join_path(inputs, startup_outer, total_inner);
	if (kept != NULL && !gh_needs_rel(total_inner, inputs->outerrel))
		add_join_path(inputs, kept, total_inner);
	add_device_join_path(inputs, kept);
	foreach(lo, inputs->outerrel->cheapest_parameterized_paths)
	{
		Path	   *outer = (Path *) lfirst(lo);

		if (gh_needs_rel(outer, inputs->innerrel))
			continue;
		foreach(li, inputs->innerrel->cheapest_parameterized_paths)
		{
			Path	   *inner = (Path *) lfirst(li);

			if (!gh_needs_rel(inner, inputs->outerrel) &&
				(outer != startup_outer || inner != total_inner))
				add_join_path(inputs, outer, inner);
		}
	}
	add_partial_paths(inputs, total_inner, false);
}

/* A semijoin as an inner join with its right side's rows made distinct before. */
static void
add_unique_paths(GhJoinInputs *inputs, JoinType unique_side)
{
	SpecialJoinInfo *sjinfo = inputs->extra->sjinfo;
	Path	   *startup_outer = startup_path(inputs);
	Path	   *outer = inputs->outerrel->cheapest_total_path;
	Path	   *inner = inputs->innerrel->cheapest_total_path;

	if (unique_side == JOIN_UNIQUE_OUTER)
		outer = gh_unique_path(inputs->root, inputs->outerrel, outer, sjinfo);
	else
		inner = gh_unique_path(inputs->root, inputs->innerrel, inner, sjinfo);
	if (outer == NULL || inner == NULL)
		return;
	add_join_path(inputs, outer, inner);
	if (unique_side == JOIN_UNIQUE_INNER && startup_outer != NULL && startup_outer != outer)
		add_join_path(inputs, startup_outer, inner);
	/* parts of an outer side, each made distinct, would not be distinct together */
	if (unique_side == JOIN_UNIQUE_INNER)
		add_partial_paths(inputs, inner, true);
}

static const char *
why_not_taken(GhJoinInputs *inputs)
{
	if (!gh_find_keys(inputs))
		return "no condition is an equality of both sides that can be hashed";
	if (!gh_columns_are_plain(inputs->outerrel) || !gh_columns_are_plain(inputs->innerrel))
		return "it has row identities, or columns of anonymous record type";
	if (inputs->may_stay_unread && !gh_outer_is_quiet(inputs->root, inputs->outerrel))
		return "rows may stay unread, and an expression over the outer ones may fail";
	return NULL;
}

/*
 * A join of these two by clauses that the planner has found for them, whatever it costs; NULL: it cannot be
 * made.  The outer path says how many processes there are; common_table: of the inner side each of them makes
 * a part; is_in_chain: GhJoinInputs.
 */
Path *
gh_join_of(PlannerInfo *root, RelOptInfo *joinrel, JoinType jointype, List *clauses, Path *outer, Path *inner,
		   bool common_table, bool is_in_chain)
{
	RelOptInfo *outerrel = outer->parent;
	RelOptInfo *innerrel = inner->parent;
	JoinPathExtraData extra = {.restrictlist = clauses};
	GhJoinInputs inputs = {
		.root = root,
		.joinrel = joinrel,
		.outerrel = outerrel,
		.innerrel = innerrel,
		.jointype = jointype,
		.extra = &extra,
		.is_in_chain = is_in_chain,
	};
	GhJoinChoice choice = {
		.outer = outer,
		.inner = gh_rowscan_absorbed(root, inner),
		.clauses = clauses,
		.workers = workers_of(outer, inner, common_table),
		.common_table = common_table,
	};
	double		share = Min(joinrel->rows / Max(outerrel->rows, 1), 1);

	extra.inner_unique = innerrel_is_unique(root, joinrel->relids, outerrel->relids, innerrel, jointype,
											clauses, false);
	/* as PostgreSQL reckons it, with which joins over plain tables are priced that are found while joins are searched */
	if (is_in_chain && jointype == JOIN_INNER && extra.inner_unique && gh_ends_in_parts(root, outer))
		share /= Max(innerrel->rows, 1);
	extra.semifactors.outer_match_frac = jointype == JOIN_ANTI ? 1 - share : share;
	extra.semifactors.match_count = 1;
	inputs.may_stay_unread = gh_rows_may_stay_unread(root, joinrel);
	if (why_not_taken(&inputs) != NULL)
		return NULL;
	gh_prepare_join_costs(&inputs);
	choice.rows = joinrel->rows;
	if (choice.workers > 0)
		choice.rows = clamp_row_est(joinrel->rows / gh_parallel_divisor(choice.workers));
	gh_cost_join(&inputs, &choice);
	return (Path *) make_join_path(&inputs, &choice, NULL);
}

static void
consider_join(GhJoinInputs *inputs, JoinType jointype)
{
	bool		unique = jointype == JOIN_UNIQUE_OUTER || jointype == JOIN_UNIQUE_INNER;
	const char *why = gh_why_not_considered(inputs, jointype);

	if (why == NULL)
	{
		inputs->jointype = unique ? JOIN_INNER : jointype;
		inputs->may_stay_unread = gh_rows_may_stay_unread(inputs->root, inputs->joinrel);
		why = why_not_taken(inputs);
	}
	if (why != NULL)
	{
		gh_why(inputs->root, inputs->joinrel->relids, why);
		return;
	}
	gh_prepare_join_costs(inputs);
	if (!gh_force_offload)
	{
		take_places(inputs, inputs->joinrel->pathlist);
		take_places(inputs, inputs->joinrel->partial_pathlist);
	}
	if (unique)
		add_unique_paths(inputs, jointype);
	else
		add_join_paths(inputs);
}

static void
join_pathlist_hook(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
				   RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	GhJoinInputs	inputs = {
		.root = root,
		.joinrel = joinrel,
		.outerrel = outerrel,
		.innerrel = innerrel,
		.extra = extra,
	};

	if (previous_hook)
		previous_hook(root, joinrel, outerrel, innerrel, jointype, extra);
	/* a join of groups puts these together, too: its target is not that of its rows */
	if (!gh_enabled || gh_is_grouped(joinrel) || gh_hash_join_is_unwanted(root, extra))
		return;
	if (gh_enable_join && !gh_force_offload &&
		(jointype == JOIN_INNER || jointype == JOIN_LEFT || jointype == JOIN_SEMI || jointype == JOIN_ANTI))
	{
		inputs.jointype = jointype;
		gh_replace_loops(&inputs);
	}
	consider_join(&inputs, jointype);
	if (jointype == JOIN_UNIQUE_OUTER)
		gh_keys_consider_join(root, joinrel, outerrel, innerrel, extra->restrictlist);
}

/* Called by _PG_init. */
void
gh_join_init(void)
{
	gh_chain_init();
	previous_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = join_pathlist_hook;
}
