/*
 * rows_path.c
 *		When the planner considers a GpuHashRows, and what it costs.
 *
 * The node stands above a chain of GpuHashJoins over a scan, as GpuHashAggregate does, and returns their
 * rows. It is considered with each path of a join, where a device is expected to do the scans and the joins,
 * and only rows that come out cost the host anything.  Of two such nodes one above the other, with a join
 * between them, the upper one takes the place of both.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "utils/spccache.h"

#include "engine/pipeline/record.h"
#include "expr/key.h"
#include "expr/translate.h"
#include "plan/input_path.h"
#include "plan/join_path.h"
#include "plan/chain.h"
#include "plan/join_plan.h"
#include "plan/note.h"
#include "plan/planning.h"
#include "plan/rows_path.h"
#include "plan/scan_path.h"
#include "plan/why.h"
#include "service/placement.h"

/* And what a tuple costs that is fetched for it. */
#define GH_FETCHED_TUPLE_COST 10.0

static const CustomPathMethods gh_rows_path_methods = {
	.CustomName = GH_ROWS_NAME,
	.PlanCustomPath = gh_rows_plan,
};

/* The joins whose rows such a path returns; NULL: it is none. */
Path *
gh_rows_joins(Path *path)
{
	if (!IsA(path, CustomPath) || ((CustomPath *) path)->methods != &gh_rows_path_methods)
		return NULL;
	return linitial(((CustomPath *) path)->custom_paths);
}

/*
 * A side of a join without a GpuHashRows.  Of the outer side, what that saves is at once saved; the inner is
 * read first.
 */
static Path *
unwrapped_side(PlannerInfo *root, Path *side, bool inner, GhJoinStep *step)
{
	Path	   *joins = gh_rows_unwrapped(root, side);
	Cost		startup;
	Cost		total;
	Cost		joins_startup;
	Cost		joins_total;

	gh_real_cost(side, &startup, &total);
	gh_real_cost(joins, &joins_startup, &joins_total);
	step->startup_cost += inner ? joins_total - total : joins_startup - startup;
	step->total_cost += joins_total - total;
	return joins;
}

/*
 * The same joins, one directly above the other: where a side of one is the rows of others, that is these
 * others.  A copy, if there is any.
 */
Path *
gh_rows_unwrapped(PlannerInfo *root, Path *path)
{
	Path	   *joins = gh_rows_joins(path);
	CustomPath *copy;
	GhJoinStep *step;
	Path	   *outer;
	Path	   *inner;

	if (joins != NULL)
		return gh_rows_unwrapped(root, joins);
	if (!gh_is_join_path(path) || !gh_linked_step(root, path)->has_rows)
		return path;
	copy = makeNode(CustomPath);
	memcpy(copy, path, sizeof(CustomPath));
	step = gh_make_step(gh_step(path));
	outer = unwrapped_side(root, linitial(copy->custom_paths), false, step);
	inner = unwrapped_side(root, lsecond(copy->custom_paths), true, step);
	copy->custom_paths = list_make2(outer, inner);
	copy->custom_private = list_make1(step);
	/* it stands in the place of nothing */
	copy->path.startup_cost = step->startup_cost * (gh_force_offload ? GH_FORCED_SCALE : 1);
	copy->path.total_cost = step->total_cost * (gh_force_offload ? GH_FORCED_SCALE : 1);
	return &copy->path;
}

/* ------------------------------------------------------------ columns */

/* The columns of the list that are of the table, or, 0, of tables that are not fetched. */
static List *
columns_of(List *columns, Index varno, Relids fetched)
{
	List	   *found = NIL;
	ListCell   *lc;

	foreach(lc, columns)
	{
		Var		   *var = lfirst_node(Var, lc);

		if (varno != 0 ? var->varno == varno : !bms_is_member(var->varno, fetched))
			found = lappend(found, var);
	}
	return found;
}

/* The table that has most of the columns; there are some. */
static Index
widest_table(List *columns)
{
	Index		widest = 0;
	int			most = 0;
	ListCell   *lc;

	foreach(lc, columns)
	{
		Index		varno = lfirst_node(Var, lc)->varno;
		int			n = list_length(columns_of(columns, varno, NULL));

		if (n > most)
		{
			most = n;
			widest = varno;
		}
	}
	return widest;
}

/*
 * Whether the column is better taken from the tuple.  Of long texts some are compressed or elsewhere, and the
 * device would hand their rows back; and with one of them, an inner side.
 */
static bool
is_fetched(PlannerInfo *root, const Var *var)
{
	const RelOptInfo *rel;

	if (gh_class_of_type(var->vartype) == 0 || gh_is_open_numeric(var->vartype, var->vartypmod))
		return true;
	rel = find_base_rel(root, var->varno);
	return gh_class_of_type(var->vartype) == GH_CLASS_TEXT && rel->attr_widths[var->varattno - rel->min_attr] > GH_LONG_TEXT;
}

/* False: the columns cannot be returned. */
static bool
divide_columns(PlannerInfo *root, RelOptInfo *joinrel, GhRowColumns *result)
{
	List	   *columns = joinrel->reltarget->exprs;
	ListCell   *lc;

	result->fetched = NULL;
	if (!gh_columns_are_plain(joinrel) || !gh_are_columns(columns))
		return false;
	foreach(lc, columns)
	{
		const Var  *var = lfirst_node(Var, lc);

		if (is_fetched(root, var))
			result->fetched = bms_add_member(result->fetched, var->varno);
	}
	/* nearly always */
	if (result->fetched == NULL)
		result->keys = columns;
	else
		result->keys = columns_of(columns, 0, result->fetched);
	while (result->keys != NIL && list_length(result->keys) + bms_num_members(result->fetched) > GH_RECORD_KEYS_MAX)
	{
		result->fetched = bms_add_member(result->fetched, widest_table(result->keys));
		result->keys = columns_of(columns, 0, result->fetched);
	}
	return list_length(result->keys) + bms_num_members(result->fetched) <= GH_RECORD_KEYS_MAX;
}

/* How the relation's columns come out, whatever its path is; NULL: they cannot be returned. */
static const GhRowColumns *
row_columns(PlannerInfo *root, RelOptInfo *joinrel)
{
	GhNote	   *note = gh_note(root, joinrel);

	if (!note->has_row_columns)
	{
		MemoryContext saved = MemoryContextSwitchTo(gh_note_context(joinrel));

		note->returns_rows = divide_columns(root, joinrel, &note->row_columns);
		note->has_row_columns = true;
		MemoryContextSwitchTo(saved);
	}
	return note->returns_rows ? &note->row_columns : NULL;
}

/* -------------------------------------------------------------- costs */

/*
 * What a page costs that tuples are fetched from.  The scan has just read it; but of a table that is large
 * beside shared_buffers it did so through a ring of few buffers, and the page has to be read once more.
 */
static Cost
fetched_page_cost(const RelOptInfo *rel)
{
	double		random_cost;
	double		cost;

	if (rel->pages <= (BlockNumber) NBuffers / 4)
		return 0;
	get_tablespace_page_costs(rel->reltablespace, &random_cost, &cost);
	return rel->pages <= (BlockNumber) effective_cache_size ? cost : random_cost;
}

/* What it costs to fetch a tuple of each table for so many rows. */
static Cost
fetch_cost(PlannerInfo *root, Relids fetched, double rows)
{
	Cost		cost = 0;
	int			varno = -1;

	while ((varno = bms_next_member(fetched, varno)) >= 0)
	{
		RelOptInfo *rel = find_base_rel(root, varno);

		cost += GH_FETCHED_TUPLE_COST * cpu_tuple_cost * rows +
			fetched_page_cost(rel) * index_pages_fetched(rows, rel->pages, 0, root);
	}
	return cost;
}

/*
 * Joins whose rows may be returned by a GpuHashRows, and what that costs.
 */
typedef struct RowsOffer
{
	RelOptInfo *joinrel;
	GhJoinStep *step;			/* the last join's, linked, */
	Path	   *outer;			/* and its sides */
	Path	   *inner;
	double		rows;
	int			workers;
	const GhRowColumns *columns;
	Cost		reading;		/* until the device has the results */
	Cost		startup_cost;
	Cost		total_cost;
} RowsOffer;

/*
 * What such rows of the relation cost, but for tuples that are fetched: all is read, which costs `reading`,
 * and so many rows are kept before the first one comes.
 */
static Cost
cost_kept_rows(const RelOptInfo *joinrel, Cost reading, double nrows, Cost *startup)
{
	PathTarget *target = joinrel->reltarget;

	*startup = gh_setup_cost + reading + GH_COLLECTED_ROW_COST * cpu_tuple_cost * nrows + target->cost.startup;
	return *startup + (cpu_tuple_cost + target->cost.per_tuple) * nrows;
}

static Cost
cost_rows(PlannerInfo *root, const RowsOffer *offer, double nrows, Cost *startup)
{
	double		divisor = offer->workers > 0 ? gh_parallel_divisor(offer->workers) : 1.0;
	Cost		sampling;

	nrows = gh_first_rows(root, offer->joinrel, offer->step->scan, offer->columns, nrows, divisor, &sampling);
	return cost_kept_rows(offer->joinrel, offer->reading + sampling, nrows, startup) +
		fetch_cost(root, offer->columns->fetched, nrows);
}

/* False: it cannot be, or no device is expected to do it. */
static bool
price_rows(PlannerInfo *root, RowsOffer *offer)
{
	if (!gh_chain_is_usable(offer->step) || !offer->step->on_device)
		return false;
	offer->columns = row_columns(root, offer->joinrel);
	/* of an inner side that is no plain scan, a row has no tuple */
	if (offer->columns == NULL || bms_overlap(offer->columns->fetched, offer->step->inner_joined))
		return false;
	offer->reading = gh_chain_device_cost(root, offer->step, offer->workers);
	offer->total_cost = cost_rows(root, offer, offer->rows, &offer->startup_cost);
	return true;
}

/*
 * What they would cost if as many came as may, which is what the path costs: to keep them, and whatever is
 * done with them above, is what a wrong estimate makes dear, and a node that takes no rows out of the device
 * has none of that.
 */
static Cost
cautious_cost(PlannerInfo *root, const RowsOffer *offer, Cost *startup)
{
	double		nrows = gh_cautious_rows(root, offer->step, offer->rows, offer->outer, offer->inner);

	return cost_rows(root, offer, nrows, startup);
}

/* -------------------------------------------------------------- keeping */

/*
 * On the way to all joins of a query, which a device does for little, some of the first ones may give many
 * rows, and be the cheapest path neither by themselves nor with a GpuHashRows above them.  So the cheapest
 * joins for a device are kept beside the relation's paths, where no path that costs less drives them out.
 */

/* Whether joins for a device that cost this there are to be kept. */
static bool
are_to_be_kept(PlannerInfo *root, RelOptInfo *joinrel, Cost reading, int workers)
{
	const GhNote *note;

	/* relations of GEQO's tours go with these */
	if (gh_force_offload || gh_joins_are_searched_at_random(root))
		return false;
	note = gh_note(root, joinrel);
	return note->fragment[workers > 0] == NULL || reading < note->fragment_cost[workers > 0];
}

static void
keep_joins(PlannerInfo *root, const Path *join, const RowsOffer *offer)
{
	if (are_to_be_kept(root, join->parent, offer->reading, join->parallel_workers))
		gh_note_keep_joins(root, join, offer->reading);
}

/* The last step of a path's joins, all of which a device is expected to do as one; NULL: it is not. */
static const GhJoinStep *
step_for_device(PlannerInfo *root, Path *path)
{
	const GhJoinStep *step;

	path = gh_rows_unwrapped(root, path);
	if (!gh_is_join_path(path) || path->param_info != NULL)
		return NULL;
	step = gh_linked_step(root, path);
	return step->on_device && gh_chain_is_usable(step) ? step : NULL;
}

/*
 * The cheapest joins of the relation for a device, or partial ones; or NULL, also where the planner's
 * cheapest path is such joins that cost no more there.
 */
Path *
gh_kept_joins(PlannerInfo *root, RelOptInfo *rel, bool partial)
{
	List	   *paths = partial ? rel->partial_pathlist : rel->pathlist;
	const GhJoinStep *cheapest;
	const GhNote *note;

	if (!IS_JOIN_REL(rel) || paths == NIL || gh_force_offload || !gh_enable_rows ||
		!gh_device_may_be_expected() || gh_joins_are_searched_at_random(root))
		return NULL;
	note = gh_note(root, rel);
	if (note->fragment[partial] == NULL)
		return NULL;
	cheapest = step_for_device(root, linitial(paths));
	return cheapest != NULL && gh_chain_device_cost(root, cheapest, ((Path *) linitial(paths))->parallel_workers) <=
		note->fragment_cost[partial] ? NULL : note->fragment[partial];
}

/* ------------------------------------------------------------- paths */

static Path *
make_rows_path(RelOptInfo *joinrel, Path *joins, const RowsOffer *offer)
{
	CustomPath *cpath = makeNode(CustomPath);

	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = joinrel;
	cpath->path.pathtarget = joinrel->reltarget;
	/* each process of several would have the device do the same again */
	cpath->path.parallel_safe = joins->parallel_safe && (gh_force_offload || joins->parallel_workers > 0);
	cpath->path.parallel_aware = joins->parallel_workers > 0;
	cpath->path.parallel_workers = joins->parallel_workers;
	cpath->path.rows = joins->rows;
	cpath->path.startup_cost = offer->startup_cost;
	cpath->path.total_cost = offer->total_cost;
	gh_copy_disabled_nodes(&cpath->path, joins);
	cpath->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make1(joins);
	cpath->methods = &gh_rows_path_methods;
	/* in the order of GhAggregatePathPrivate */
	cpath->custom_private = list_make4(offer->columns->keys, NIL, NIL,
									   gh_costs_list(offer->startup_cost, offer->total_cost));
	return &cpath->path;
}

/*
 * Whether an inner side is joins, of which a device may make a table; where these give more rows, they are
 * the outer side.
 */
static bool
is_smaller_join(Path *outer, Path *inner)
{
	return inner->rows < outer->rows && (gh_is_join_path(inner) || gh_rows_joins(inner) != NULL);
}

/*
 * Whether a device may do a join of these, and those below: it makes tables of what it scans, and of its own
 * joins.
 */
static bool
is_for_device(PlannerInfo *root, Path *outer, Path *inner)
{
	return gh_enable_rows && (IS_SIMPLE_REL(inner->parent) || is_smaller_join(outer, inner)) &&
		gh_device_may_be_expected() && gh_ends_on_device(root, outer);
}

/*
 * Whether a join of these may be worth a path though it costs more than others: a device may do it, and those
 * below.  A large query asks for thousands of joins, so what its rows are sure to cost is looked at here,
 * before there is a path.
 */
bool
gh_rows_may_win(PlannerInfo *root, RelOptInfo *joinrel, Path *outer, Path *inner)
{
	double		rows = gh_first_rows_least(root, joinrel, joinrel->rows);
	Cost		startup;

	if (!is_for_device(root, outer, inner))
		return false;
	/* forced, it costs what the joins do; of a parallel plan each process has a part of the rows */
	if (gh_force_offload || (joinrel->consider_parallel && outer->parent->partial_pathlist != NIL))
		return true;
	startup = gh_setup_cost + gh_device_start_cost + GH_COLLECTED_ROW_COST * cpu_tuple_cost * rows;
	return gh_path_may_win(joinrel, outer, inner, startup, startup + cpu_tuple_cost * rows, NULL);
}

/* Whether the rows may win against the paths of their relation, as far as these tell; most cost more. */
static bool
offer_may_win(PlannerInfo *root, RelOptInfo *joinrel, const RowsOffer *offer, Path *outer, Path *inner,
			  int workers)
{
	gh_why_cost(root, joinrel->relids, GH_ROWS_NAME, offer->startup_cost, offer->total_cost, workers > 0);
	return workers > 0 ||
		gh_path_may_win(joinrel, outer, inner, offer->startup_cost, offer->total_cost, NULL);
}

/*
 * Whether rows of that cost win clearly against another path for the same relation.  All of its tables are
 * read whole, and where the other path does so, too, the pages are the same: what is left of both is
 * compared.
 */
static bool
wins_clearly(PlannerInfo *root, Cost total, Path *other, Cost other_total)
{
	Cost		pages = gh_whole_tables_cost(root, other, false, true);
	Cost		most = GH_CLEAR_SHARE * (other_total - pages);

	/* to a device pages cost no more: most are out before that is reckoned */
	return total - pages <= most && total - gh_whole_tables_cost(root, other, true, true) <= most;
}

/*
 * Whether it is a hash join, of ours or not, over rows that come from a device: of a GpuHashRows, or of a
 * scan.
 */
static bool
joins_rows_of_device(PlannerInfo *root, Path *path)
{
	Path	   *outer;

	if (gh_is_join_path(path))
		outer = linitial(((CustomPath *) path)->custom_paths);
	else if (IsA(path, HashPath))
		outer = ((JoinPath *) path)->outerjoinpath;
	else
		return false;
	outer = gh_below_gather(outer);
	return gh_rows_joins(outer) != NULL || (gh_is_rowscan_path(outer) && gh_rowscan_is_for_device(root, outer));
}

/*
 * The same of the rows of a join of these against all paths.  Where the cheapest one is a join over rows from
 * a device, any saving will do: both rest on the same estimates.
 */
static bool
wins_clearly_of(PlannerInfo *root, List *paths, Path *outer, Path *inner, Cost rows_total)
{
	Cost		total;
	Path	   *path = gh_path_to_beat(paths, outer, inner, &total);

	if (path == NULL)
		return true;
	if (joins_rows_of_device(root, path))
		return rows_total < total;
	/* rows that took the place of another path are that to be beaten: maybe they are the same */
	if (gh_rows_joins(path) != NULL)
		total = path->total_cost;
	return wins_clearly(root, rows_total, path, total);
}

/*
 * Whether they compete by their own cost: they do where that is clearly less than the cheapest one there
 * is, for all rows are kept, and estimates of how many there are may be wrong a thousand times.
 */
static bool
offer_competes(PlannerInfo *root, const RowsOffer *offer, Path *outer, Path *inner, List *paths)
{
	Cost		startup;

	if (gh_force_offload)
		return true;
	/* to be cautious never costs less: most are out before that is reckoned */
	return !gh_joins_are_searched_at_random(root) &&
		wins_clearly_of(root, paths, outer, inner, offer->total_cost) &&
		wins_clearly_of(root, paths, outer, inner, cautious_cost(root, offer, &startup));
}

/*
 * Whether it is sure, before there is a step, that the rows of a join will not compete, and that the joins
 * will not be kept.  In a query of many tables that is so for most.  The bound is what the rows cost without
 * the tuples that may be fetched.
 */
bool
gh_rows_cost_too_much(PlannerInfo *root, RelOptInfo *joinrel, const GhJoinChoice *choice)
{
	List	   *paths = choice->workers > 0 ? joinrel->partial_pathlist : joinrel->pathlist;
	double		rows = gh_first_rows_least(root, joinrel, choice->rows);
	Cost		reading;
	Cost		startup;

	/* gpuhash.explain_why shows what they would cost */
	if (gh_collects_why || gh_force_offload || !gh_device_may_be_expected() ||
		!gh_chain_cost_above(root, choice->outer, choice->inner, choice->workers, &reading) ||
		are_to_be_kept(root, joinrel, reading, choice->workers))
		return false;
	return !wins_clearly_of(root, paths, choice->outer, choice->inner,
							cost_kept_rows(joinrel, reading, rows, &startup));
}

/* Whether joins may be kept if they are for a device, whatever their rows cost. */
bool
gh_joins_may_be_kept(PlannerInfo *root, RelOptInfo *joinrel, const GhJoinChoice *choice)
{
	Cost		reading = 0;

	if (!is_for_device(root, choice->outer, choice->inner))
		return false;
	(void) gh_chain_cost_above(root, choice->outer, choice->inner, choice->workers, &reading);
	return are_to_be_kept(root, joinrel, reading, choice->workers);
}

/*
 * Whether the rows of a join are to compete, or the joins to be kept, for which there may be no path yet,
 * but a linked step.  in_place: the rows may take another path's place, whatever competes.
 */
bool
gh_rows_may_compete(PlannerInfo *root, RelOptInfo *joinrel, GhJoinStep *step,
					const GhJoinChoice *choice, bool in_place)
{
	RowsOffer	offer = {joinrel, step, choice->outer, choice->inner, choice->rows, choice->workers};
	List	   *paths = choice->workers > 0 ? joinrel->partial_pathlist : joinrel->pathlist;

	/* these come out of the chain when there is a path */
	if (step->has_rows)
		return true;
	return price_rows(root, &offer) &&
		(are_to_be_kept(root, joinrel, offer.reading, choice->workers) ||
		 (offer_may_win(root, joinrel, &offer, choice->outer, choice->inner, choice->workers) &&
		  (in_place || offer_competes(root, &offer, choice->outer, choice->inner, paths))));
}

/*
 * With gpuhash.force_offload, the cost is as much of the joins'.  So the node stands above all that it can,
 * and no other plan changes.
 */
static void
force_offer(RowsOffer *offer, const Path *joins)
{
	if (!gh_force_offload)
		return;
	offer->startup_cost = GH_FORCED_SHARE * joins->startup_cost;
	offer->total_cost = GH_FORCED_SHARE * joins->total_cost;
}

/*
 * Joins as below a GpuHashRows, and what it would cost; NULL: it cannot be, no device is expected to
 * make the rows, or they cost too much.  Of joins for a device the cheapest are kept.
 */
static Path *
find_offer(PlannerInfo *root, Path *join, RowsOffer *offer)
{
	RelOptInfo *joinrel = join->parent;
	List	   *sides = ((CustomPath *) join)->custom_paths;
	Path	   *joins;

	if (join->param_info != NULL || !is_for_device(root, linitial(sides), lsecond(sides)))
		return NULL;
	joins = gh_rows_unwrapped(root, join);
	offer->joinrel = joinrel;
	offer->step = gh_linked_step(root, joins);
	offer->outer = linitial(((CustomPath *) joins)->custom_paths);
	offer->inner = lsecond(sides);
	offer->rows = joins->rows;
	offer->workers = joins->parallel_workers;
	if (!price_rows(root, offer))
		return NULL;
	keep_joins(root, join, offer);
	force_offer(offer, joins);
	return gh_rows_may_win(root, joinrel, linitial(sides), lsecond(sides)) &&
		offer_may_win(root, joinrel, offer, linitial(sides), lsecond(sides), joins->parallel_workers) ? joins : NULL;
}

/* The path of an offer; NULL: there is no program for it. */
static Path *
take_offer(PlannerInfo *root, RelOptInfo *joinrel, Path *joins, RowsOffer *offer)
{
	GhGrouping	grouping = {.keys = offer->columns->keys};
	int			ninstructions;

	if (!gh_joins_translate(root, &grouping, joins, grouping.keys, &ninstructions))
		return NULL;
	if (!gh_force_offload)
		offer->total_cost = cautious_cost(root, offer, &offer->startup_cost);
	return make_rows_path(joinrel, gh_joins_with_target(root, joins, joinrel->reltarget->exprs), offer);
}

/* Adds the path of a join, where that may win by itself, and one of its rows, where that competes. */
void
gh_rows_add_paths(PlannerInfo *root, Path *join, bool itself, void (*add) (RelOptInfo *, Path *))
{
	RelOptInfo *joinrel = join->parent;
	List	   *sides = ((CustomPath *) join)->custom_paths;
	List	   *others = join->parallel_workers > 0 ? joinrel->partial_pathlist : joinrel->pathlist;
	RowsOffer	offer;
	Path	   *joins = find_offer(root, join, &offer);
	Path	   *rows = NULL;

	if (joins != NULL && offer_competes(root, &offer, linitial(sides), lsecond(sides), others))
		rows = take_offer(root, joinrel, joins, &offer);
	/* of paths that cost nearly the same, the first one stays */
	if (rows != NULL)
		add(joinrel, rows);
	if (itself)
		add(joinrel, join);
}

/*
 * The rows of a join that takes the place of another path, which really costs this, if they cost less than
 * both, and clearly less than the path is said to, which is PostgreSQL's own cost; or NULL.
 */
Path *
gh_rows_of_join(PlannerInfo *root, Path *join, Path *other, const Cost *other_costs)
{
	RowsOffer	offer;
	Path	   *joins = gh_rows_may_stay_unread(root, join->parent) ? NULL : find_offer(root, join, &offer);
	Cost		startup;
	Cost		total;

	if (joins == NULL)
		return NULL;
	gh_real_cost(join, &startup, &total);
	if (!gh_costs_less(root, join->rows, offer.startup_cost, offer.total_cost, startup, total) ||
		!gh_costs_less(root, join->rows, offer.startup_cost, offer.total_cost, other_costs[0],
					   other_costs[1]) ||
		!wins_clearly(root, cautious_cost(root, &offer, &startup), other, other->total_cost))
		return NULL;
	return take_offer(root, join->parent, joins, &offer);
}
