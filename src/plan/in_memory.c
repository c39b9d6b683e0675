/*
 * in_memory.c
 *		What paths cost where the pages that they read are in memory.
 *
 * PostgreSQL charges random_page_cost, a disk's, for each page that an index leads to, wherever it is;
 * columns in memory are charged next to nothing.  So a plan that looks up a few rows in an index seems many
 * times dearer than a grouping that reads columns of all rows, and yet takes less time, as pages that queries
 * read again are in memory.  Therefore a grouping of ours that is to win against an index also has to cost
 * less than PostgreSQL's plan would with all of its pages in memory, as far as the tables and indexes that it
 * reads at random fit in effective_cache_size.  So has a query whose subqueries are unnested (plan_choice.c).
 *
 * A page at random then costs what was measured (in_memory.h), the way down an index half of what it is
 * charged, and pages that are read from end to end little, on both sides.  Rows, conditions and results cost
 * what they do anywhere.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "utils/spccache.h"

#include "compat.h"
#include "gpuhash.h"
#include "plan/aggregate_path.h"
#include "plan/aggregate_plan.h"
#include "plan/in_memory.h"
#include "plan/index_side.h"
#include "plan/input_path.h"
#include "plan/join_path.h"
#include "plan/join_plan.h"
#include "plan/note.h"
#include "plan/parts_path.h"
#include "plan/planning.h"
#include "plan/rows_path.h"
#include "plan/scan_path.h"

/*
 * How much of what is charged for the way down an index it does not take where that is done again and again.
 */
#define GH_DESCENT_SPARED 0.5

/*
 * What a grouping over a chain of joins may cost of PostgreSQL's plan, with all in memory: over large
 * columns, which each process maps, a unit of what it costs takes up to 1.5 times as long.
 */
#define GH_CHAIN_SHARE 0.7

/*
 * A row that comes out of one of PostgreSQL's joins takes so much more, in cpu_tuple_cost, than it is
 * charged, beside rows in a chain of ours.  Fitted to TPC-H at scale 0.5, whose joins by an index of 20,000
 * to 40,000 rows a chain does in a third to 0.6 of the time.
 */
#define GH_JOINED_ROW_COST 16.0

/* How much of what a chain costs may be for rows that another plan may have beyond those that it expects. */
#define GH_DOUBTED_SHARE 0.5

/* Of what a path costs. */
typedef struct Weight
{
	Cost		spared;			/* charged for pages at random, beyond what they take in memory */
	Cost		whole;			/* charged for pages of tables that are read from end to end */
	Cost		uncharged;		/* charged too little for chains of ours, as they are weighed here */
	double		pages;			/* of the tables that are read at random, and of their indexes */
	double		joined;			/* rows that come out of PostgreSQL's joins */
	bool		by_device;		/* a device is expected to do a part */
} Weight;

/* Without disabled nodes. */
static const Path no_path;

static void weigh(PlannerInfo *root, Path *path, double times, bool real, Weight *weight);

/* Of what a path is charged, how much it does not take if its pages are in memory. */
static Cost
spared(const Weight *weight)
{
	return weight->spared +
		weight->whole * Max(1 - GH_NEXT_PAGE_COST * cpu_tuple_cost / Max(seq_page_cost, 1e-10), 0);
}

/* ------------------------------------------------------------------ indexes */

static double
divisor_of(const Path *path)
{
	return path->parallel_workers > 0 ? gh_parallel_divisor(path->parallel_workers) : 1.0;
}

/* What is charged for the pages on the way down. */
static Cost
descent_cost(const IndexPath *path)
{
	return (Max(path->indexinfo->tree_height, 0) + 1) * GH_DESCENT_PAGE_COST * cpu_operator_cost;
}

/* Of what an index costs, what is charged for its pages, and not for the way down and its rows. */
static Cost
leaf_pages_cost(const IndexPath *path)
{
	const IndexOptInfo *index = path->indexinfo;

	return Max(path->indextotalcost - descent_cost(path) - path->indexselectivity * index->rel->tuples * cpu_index_tuple_cost, 0);
}

/*
 * What conditions cost for a row, but those that are the index's: they may hold subqueries, which cost more
 * than any page.  What each costs has been computed for the path's own price.
 */
static Cost
conditions_cost(const List *conditions, List *index_clauses)
{
	Cost		cost = 0;
	ListCell   *lc;

	foreach(lc, conditions)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (!rinfo->pseudoconstant && rinfo->eval_cost.startup >= 0 &&
			!is_redundant_with_indexclauses(rinfo, index_clauses))
			cost += rinfo->eval_cost.per_tuple;
	}
	return cost;
}

static const List *
parameters_clauses(const Path *path)
{
	return path->param_info != NULL ? path->param_info->ppi_clauses : NIL;
}

/* The same of an index scan, with the table's pages. */
Cost
gh_index_pages_cost(const IndexPath *path)
{
	const IndexOptInfo *index = path->indexinfo;
	double		tuples = path->indexselectivity * index->rel->tuples;
	Cost		row_cost = cpu_tuple_cost + conditions_cost(index->indrestrictinfo, path->indexclauses) +
		conditions_cost(parameters_clauses(&path->path), path->indexclauses);

	return Max(path->path.total_cost - descent_cost(path) - tuples * cpu_index_tuple_cost -
			   clamp_row_est(tuples) / divisor_of(&path->path) * row_cost, 0);
}

/* What a bitmap scan's conditions cost, of all rows that it fetches: those of the index are charged, too. */
Cost
gh_bitmap_conditions_cost(const BitmapHeapPath *path)
{
	const RelOptInfo *rel = path->path.parent;
	Cost		cost;
	Selectivity selectivity;

	cost_bitmap_tree_node(path->bitmapqual, &cost, &selectivity);
	return clamp_row_est(selectivity * rel->tuples) / divisor_of(&path->path) *
		(rel->baserestrictcost.per_tuple + conditions_cost(parameters_clauses(&path->path), NIL));
}

/*
 * What a page takes that is found in shared_buffers, or read from the system's cache as far as the table does
 * not fit there.
 */
static Cost
cached_page_cost(const RelOptInfo *rel)
{
	double		missed = 1 - Min(1, NBuffers / Max((double) rel->pages, 1));

	return cpu_tuple_cost * (GH_POOL_PAGE_COST + GH_CACHE_PAGE_COST * missed);
}

/*
 * What so many pages of a table take that are in memory, of what was charged for them.  As in PostgreSQL's
 * costs, it is not divided among processes: one of them reads the index that a bitmap comes from.
 */
static Cost
cached_cost(const RelOptInfo *rel, Cost charged, double pages)
{
	return Min(charged, pages * cached_page_cost(rel));
}

static Cost
random_page_cost_of(const RelOptInfo *rel)
{
	double		random_cost;

	get_tablespace_page_costs(rel->reltablespace, &random_cost, NULL);
	return Max(random_cost, 1e-10);
}

static void
weigh_index(const IndexPath *path, double times, Weight *weight)
{
	const RelOptInfo *rel = path->indexinfo->rel;
	Cost		charged = Min(gh_index_pages_cost(path), path->path.total_cost - path->path.startup_cost);

	weight->spared += times * (charged - cached_cost(rel, charged, charged / random_page_cost_of(rel)) +
							   GH_DESCENT_SPARED * descent_cost(path));
	weight->pages += (double) rel->pages + path->indexinfo->pages;
}

/* Of the indexes below a bitmap. */
static void
weigh_bitmap_index(const Path *path, double times, Weight *weight)
{
	const List *paths = NIL;
	ListCell   *lc;

	if (IsA(path, IndexPath))
	{
		const IndexPath *index = (const IndexPath *) path;
		const RelOptInfo *rel = index->indexinfo->rel;
		Cost		charged = leaf_pages_cost(index);

		weight->spared += times * (charged - cached_cost(rel, charged, charged / random_page_cost_of(rel)));
		weight->pages += index->indexinfo->pages;
	}
	else if (IsA(path, BitmapAndPath))
		paths = ((const BitmapAndPath *) path)->bitmapquals;
	else if (IsA(path, BitmapOrPath))
		paths = ((const BitmapOrPath *) path)->bitmapquals;
	foreach(lc, paths)
		weigh_bitmap_index(lfirst(lc), times, weight);
}

/* The more pages a bitmap has, the less is charged for each: so they are counted. */
static void
weigh_bitmap(PlannerInfo *root, BitmapHeapPath *path, double times, Weight *weight)
{
	RelOptInfo *rel = path->path.parent;
	Cost		index_cost;
	double		tuples;
	double		pages = compute_bitmap_pages(root, rel, path->bitmapqual, 1.0, &index_cost, &tuples);
	Cost		charged = Max(path->path.total_cost - path->path.startup_cost -
							  tuples / divisor_of(&path->path) * cpu_tuple_cost -
							  gh_bitmap_conditions_cost(path), 0);

	weight->spared += times * (charged - cached_cost(rel, charged, pages));
	weight->pages += rel->pages;
	weigh_bitmap_index(path->bitmapqual, times, weight);
}

/* -------------------------------------------------------------------- paths */

/* What is below a path of one input; NULL: it is another one. */
static Path *
below(Path *path)
{
	switch (nodeTag(path))
	{
		case T_ProjectionPath:
			return ((ProjectionPath *) path)->subpath;
		case T_ProjectSetPath:
			return ((ProjectSetPath *) path)->subpath;
		case T_GatherPath:
			return ((GatherPath *) path)->subpath;
		case T_GatherMergePath:
			return ((GatherMergePath *) path)->subpath;
		case T_MaterialPath:
			return ((MaterialPath *) path)->subpath;
		case T_MemoizePath:
			return ((MemoizePath *) path)->subpath;
		case T_SortPath:
		case T_IncrementalSortPath:
			return ((SortPath *) path)->subpath;
		case T_AggPath:
			return ((AggPath *) path)->subpath;
		case T_GroupPath:
			return ((GroupPath *) path)->subpath;
		case T_GroupingSetsPath:
			return ((GroupingSetsPath *) path)->subpath;
		case T_WindowAggPath:
			return ((WindowAggPath *) path)->subpath;
		case T_GhSortedUniquePath:
			return ((GhSortedUniquePath *) path)->subpath;
		default:
			return NULL;
	}
}

/*
 * How often a join has its inner side run: for each outer row, and less where one match is enough, or results
 * are kept.
 */
static double
times_run(const Path *join, const Path *outer, const Path *inner)
{
	Cost		loops;

	if (!IsA(join, NestPath) || inner->param_info == NULL)
		return 1.0;
	loops = Max(join->total_cost - outer->total_cost - outer->rows * cpu_tuple_cost, 0);
	return Min(outer->rows, loops / Max(inner->total_cost, 1e-10));
}

static void
weigh_all(PlannerInfo *root, const List *paths, double times, Weight *weight)
{
	ListCell   *lc;

	foreach(lc, paths)
		weigh(root, lfirst(lc), times, false, weight);
}

/*
 * A chain is charged for less than it costs where that stands for pages in memory, or for a plan of which
 * more rows may come than it says (gh_charged).  Its pages are weighed here, so all that is undone, but for
 * the latter, up to a share of what the chain costs in memory.
 */
static Cost
cost_not_charged(PlannerInfo *root, Path *chain, int ninstructions, const Weight *input)
{
	static const GhSpared nothing;
	const GhSpared *charged = &gh_step(chain)->spared;
	Cost		cost = gh_joins_cost(root, chain, &nothing, ninstructions, divisor_of(chain));

	return cost - gh_joins_cost(root, chain, charged, ninstructions, divisor_of(chain)) -
		Min(charged->doubt, GH_DOUBTED_SHARE * Max(cost - spared(input), 0));
}

/*
 * Of a grouping of ours, what it is charged for pages of its joins, or of the table that it reads by itself:
 * of pages with columns in memory nothing.
 */
static void
weigh_input(PlannerInfo *root, Path *child, int ninstructions, double times, Weight *weight)
{
	Weight		input = {0};
	Path	   *scan = child;
	Cost		saved_pages;
	Cost		saved_rows;

	weigh(root, child, 1.0, true, &input);
	if (gh_is_join_path(child))
	{
		scan = gh_scan_below_joins(root, child);
		gh_inner_chains_save(root, child, &saved_pages, &saved_rows);
		input.whole -= saved_pages;
		gh_absorbed_saves(root, scan, &saved_pages, &saved_rows);
		input.whole += saved_pages;
	}
	if (scan->pathtype == T_SeqScan)
	{
		gh_columns_saved(root, scan->parent, divisor_of(scan), &saved_pages, &saved_rows);
		input.whole -= saved_pages;
	}
	input.whole = Max(input.whole, 0);
	if (gh_is_join_path(child))
		input.uncharged += cost_not_charged(root, child, ninstructions, &input);
	weight->whole += times * input.whole;
	weight->spared += times * input.spared;
	weight->uncharged += times * input.uncharged;
	weight->pages += input.pages;
}

/* real: of what a path of ours really costs (gh_real_cost), not of what it says. */
static void
weigh_ours(PlannerInfo *root, CustomPath *path, double times, bool real, Weight *weight)
{
	Path	   *child = path->custom_paths == NIL ? NULL : linitial(path->custom_paths);
	double		copied;

	if (gh_is_aggregate_path(&path->path))
	{
		/* a device is charged for little */
		if (boolVal(list_nth(path->custom_private, GH_AGGREGATE_PATH_ON_DEVICE)))
		{
			weight->by_device = true;
			return;
		}
		if (child->pathtype == T_SeqScan || (gh_is_join_path(child) && gh_scan_below_joins(root, child) != NULL))
		{
			int			ninstructions = intVal(list_nth(path->custom_private, GH_AGGREGATE_PATH_INSTRUCTIONS));

			weigh_input(root, child, ninstructions, times, weight);
			return;
		}
	}
	if (!gh_is_join_path(&path->path))
	{
		weigh_all(root, path->custom_paths, times, weight);
		return;
	}
	/* it may compete at what it really costs */
	real |= path->path.total_cost == gh_step(&path->path)->total_cost;
	copied = gh_copied_share(root, &path->path);
	weigh(root, linitial(path->custom_paths), times, real, weight);
	weigh(root, lsecond(path->custom_paths), (1 - copied) * times, real, weight);
}

/* Of a path that is run so many times. */
static void
weigh(PlannerInfo *root, Path *path, double times, bool real, Weight *weight)
{
	Path	   *outer;
	Path	   *inner;

	for (outer = below(path); outer != NULL; outer = below(path))
		path = outer;
	switch (nodeTag(path))
	{
		case T_IndexPath:
			weigh_index((IndexPath *) path, times, weight);
			return;
		case T_BitmapHeapPath:
			weigh_bitmap(root, (BitmapHeapPath *) path, times, weight);
			return;
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			outer = ((JoinPath *) path)->outerjoinpath;
			inner = ((JoinPath *) path)->innerjoinpath;
			weigh(root, outer, times, false, weight);
			weigh(root, inner, times * times_run(path, outer, inner), false, weight);
			weight->joined += times * path->rows;
			return;
		case T_SubqueryScanPath:
			weigh(path->parent->subroot, ((SubqueryScanPath *) path)->subpath, times, false, weight);
			return;
		case T_AppendPath:
			weigh_all(root, ((AppendPath *) path)->subpaths, times, weight);
			return;
		case T_MergeAppendPath:
			weigh_all(root, ((MergeAppendPath *) path)->subpaths, times, weight);
			return;
		default:
			break;
	}
	/* rows that a device returns are charged for its pages alone */
	weight->by_device |= gh_rows_joins(path) != NULL;
	if (path->pathtype == T_SeqScan || gh_is_rowscan_path(path) || gh_rows_joins(path) != NULL)
		weight->whole += times * gh_whole_tables_cost(root, path, false, real);
	else if (IsA(path, CustomPath))
		weigh_ours(root, (CustomPath *) path, times, real, weight);
}

/* ----------------------------------------------------------------- in memory */

/* How many of the pages may be in memory that are read at random, as a share. */
static double
cached_share(const Weight *weight)
{
	return Min(1, effective_cache_size / Max(weight->pages, 1));
}

/* What a path that says that it costs so much does if its pages are in memory, of which so many may be. */
static Cost
in_memory(Cost cost, double share, const Weight *weight)
{
	return cost + weight->uncharged - share * spared(weight);
}

/* What a path of a table costs if pages that it reads are in memory. */
Cost
gh_cost_in_memory(PlannerInfo *root, Path *path)
{
	Weight		weight = {0};

	weigh(root, path, 1.0, false, &weight);
	return in_memory(path->total_cost, cached_share(&weight), &weight);
}

/* The same of one that reads all of it, and is charged so much for its pages. */
Cost
gh_whole_cost_in_memory(Cost cost, Cost pages)
{
	Weight		weight = {.whole = pages};

	return in_memory(cost, 1, &weight);
}

void
gh_weigh_planned(PlannerInfo *root, const RelOptInfo *grouped, GhPlanned *planned)
{
	Path	   *cheapest = gh_force_offload ? NULL : gh_cheapest_of(grouped->pathlist);
	Weight		weight = {0};

	planned->is_weighed = true;
	planned->is_spared = false;
	if (cheapest == NULL || gh_has_more_disabled_nodes(cheapest, &no_path, &no_path))
		return;
	weigh(root, cheapest, 1.0, false, &weight);
	planned->is_spared = weight.spared > 0;
	planned->share = cached_share(&weight);
	planned->cost = in_memory(cheapest->total_cost, planned->share, &weight) +
		GH_JOINED_ROW_COST * cpu_tuple_cost * weight.joined;
}

static bool
is_chain_over_columns(PlannerInfo *root, Path *child)
{
	Path	   *scan = gh_is_join_path(child) ? gh_scan_below_joins(root, child) : NULL;

	return scan != NULL && scan->pathtype == T_SeqScan && gh_columns_share_of(root, scan->parent) > 0;
}

/* Of a path whose child's rows do not come one by one, and are not read by a device. */
bool
gh_aggregate_loses_in_memory(PlannerInfo *root, const GhPlanned *planned, const Path *path, Path *child,
							 int ninstructions)
{
	Weight		weight = {0};

	if (!planned->is_spared)
		return false;
	weigh_input(root, child, ninstructions, 1.0, &weight);
	return in_memory(path->total_cost, planned->share, &weight) >
		(is_chain_over_columns(root, child) ? GH_CHAIN_SHARE : 1) * planned->cost;
}

/* ------------------------------------------------------------- whole queries */

static create_upper_paths_hook_type previous_hook = NULL;

/*
 * Of the planning that goes on, if that is to be weighed; what one leaves here that ends in an error is
 * dropped.
 */
static GhWeighed weighed;

/* Of the subqueries that are run for each row, which are planned before the query. */
static void
weigh_subqueries(const PlannerGlobal *glob)
{
	ListCell   *lc;

	foreach(lc, glob->subroots)
	{
		PlannerInfo *root = lfirst(lc);
		Path	   *path = gh_cheapest_of(fetch_upper_rel(root, UPPERREL_FINAL, NULL)->pathlist);
		Weight		weight = {0};
		Cost	   *each = palloc(sizeof(Cost));

		if (path != NULL)
			weigh(root, path, 1.0, false, &weight);
		*each = weight.spared;
		weighed.subqueries = lappend(weighed.subqueries, each);
		weighed.pages += weight.pages;
	}
}

static void
upper_paths_hook(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	Weight		weight = {0};
	Path	   *path;

	if (previous_hook)
		previous_hook(root, stage, input_rel, output_rel, extra);
	if (!weighed.is_wanted || stage != UPPERREL_FINAL || root->parent_root != NULL || root->query_level != 1)
		return;
	path = gh_cheapest_of(output_rel->pathlist);
	if (path == NULL)
		return;
	weighed = (GhWeighed) {.is_wanted = true};
	weigh(root, path, 1.0, false, &weight);
	weighed.random = weight.spared;
	weighed.spared = spared(&weight);
	weighed.uncharged = weight.uncharged;
	weighed.pages = weight.pages;
	weighed.by_device = weight.by_device;
	weigh_subqueries(root->glob);
}

/* For a planning that begins now, within another one or not. */
GhWeighed
gh_weighed_begin(bool is_wanted)
{
	GhWeighed	before = weighed;

	weighed = (GhWeighed) {.is_wanted = is_wanted};
	return before;
}

GhWeighed
gh_weighed_take(const GhWeighed *before)
{
	GhWeighed	taken = weighed;

	weighed = *before;
	return taken;
}

/* Called by _PG_init. */
void
gh_in_memory_init(void)
{
	previous_hook = create_upper_paths_hook;
	create_upper_paths_hook = upper_paths_hook;
}
