/*
 * rows_path.c
 *		When the planner considers a GpuHashRows, and what it costs.
 *
 * The node stands above a chain of GpuHashJoins over a scan, as GpuHashAggregate does, and returns their rows.
 * It is considered with each path of a join, where a device is expected to do the scans and the joins, and only
 * rows that come out cost the host anything.  Of two such nodes one above the other, with a join between them, the
 * upper one takes the place of both.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "utils/spccache.h"

#include "aggregate/input_path.h"
#include "aggregate/rows_path.h"
#include "engine/scan.h"
#include "join/join.h"
#include "join/path.h"
#include "planning.h"
#include "scan/translate.h"
#include "session.h"
#include "why.h"

/* What a row costs that is put together on the host, kept, and returned: in cpu_tuple_cost. */
#define GH_COLLECTED_ROW_COST 10.0
/* And what a tuple costs that is fetched for it. */
#define GH_FETCHED_TUPLE_COST 10.0
/* Bytes of texts that are long, on average. */
#define GH_LONG_TEXT 128

/*
 * With gpuhash.force_offload, the cost is as much of the joins'.  So the node stands above all that it can, and
 * no other plan changes.
 */
#define GH_FORCED_SHARE 0.98

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
 * The same joins, one directly above the other: where the outer side of one is the rows of others, that is these
 * others.  A copy, if there is any.
 */
Path *
gh_rows_unwrapped(Path *path)
{
	Path	   *joins = gh_rows_joins(path);
	Path	   *outer;
	CustomPath *copy;
	Cost		startup;
	Cost		total;
	Cost		outer_startup;
	Cost		outer_total;
	Cost		joins_startup;
	Cost		joins_total;

	if (joins != NULL)
		return gh_rows_unwrapped(joins);
	if (!gh_is_join_path(path))
		return path;
	outer = linitial(((CustomPath *) path)->custom_paths);
	joins = gh_rows_unwrapped(outer);
	if (joins == outer)
		return path;
	copy = makeNode(CustomPath);
	memcpy(copy, path, sizeof(CustomPath));
	copy->custom_paths = list_make2(joins, lsecond(((CustomPath *) path)->custom_paths));
	copy->path.startup_cost += joins->startup_cost - outer->startup_cost;
	copy->path.total_cost += joins->total_cost - outer->total_cost;
	copy->custom_private = list_copy(copy->custom_private);
	gh_real_cost(path, &startup, &total);
	gh_real_cost(outer, &outer_startup, &outer_total);
	gh_real_cost(joins, &joins_startup, &joins_total);
	lfirst(list_nth_cell(copy->custom_private, GH_PATH_COSTS)) =
		gh_costs_list(startup + joins_startup - outer_startup, total + joins_total - outer_total);
	return &copy->path;
}

/* ------------------------------------------------------------ columns */

/*
 * What comes out of a joined relation, and how: as values, or from tuples that are fetched by their places, with which
 * come all columns of the table.
 */
typedef struct RowColumns
{
	List	   *keys;			/* Vars whose values come out */
	Relids		fetched;		/* tables with none of these */
} RowColumns;

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
 * Whether the column is better taken from the tuple.  Of long texts some are compressed or elsewhere, and the device
 * would hand their rows back; and with one of them, an inner side.
 */
static bool
is_fetched(PlannerInfo *root, const Var *var)
{
	const RelOptInfo *rel;

	if (!gh_reads_columns_of(var->vartype, var->vartypmod))
		return true;
	rel = find_base_rel(root, var->varno);
	return gh_class_of_type(var->vartype) == GH_CLASS_TEXT && rel->attr_widths[var->varattno - rel->min_attr] > GH_LONG_TEXT;
}

/* False: the columns cannot be returned. */
static bool
divide_columns(PlannerInfo *root, RelOptInfo *joinrel, RowColumns *result)
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
	result->keys = columns_of(columns, 0, result->fetched);
	while (result->keys != NIL && list_length(result->keys) + bms_num_members(result->fetched) > GH_SCAN_KEYS_MAX)
	{
		result->fetched = bms_add_member(result->fetched, widest_table(result->keys));
		result->keys = columns_of(columns, 0, result->fetched);
	}
	return list_length(result->keys) + bms_num_members(result->fetched) <= GH_SCAN_KEYS_MAX;
}

/* -------------------------------------------------------------- costs */

/*
 * What a page costs that tuples are fetched from.  The scan has just read it; but of a table that is large beside
 * shared_buffers it did so through a ring of few buffers, and the page has to be read once more.
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
 * Startup: all is read, and the rows are kept.
 */
static void
cost_rows(PlannerInfo *root, Path *path, Path *joins, Relids fetched)
{
	double		divisor = path->parallel_workers > 0 ? gh_parallel_divisor(path->parallel_workers) : 1.0;
	PathTarget *target = path->pathtarget;

	path->startup_cost = gh_setup_cost + gh_device_reading_cost(joins, divisor) +
		GH_COLLECTED_ROW_COST * cpu_tuple_cost * path->rows + target->cost.startup;
	path->total_cost = path->startup_cost + (cpu_tuple_cost + target->cost.per_tuple) * path->rows +
		fetch_cost(root, fetched, path->rows);
	if (gh_force_offload)
	{
		path->startup_cost = GH_FORCED_SHARE * joins->startup_cost;
		path->total_cost = GH_FORCED_SHARE * joins->total_cost;
	}
}

/* joins: a copy of the path, for the original goes where this one costs less. */
static Path *
make_rows_path(PlannerInfo *root, RelOptInfo *joinrel, Path *joins, const RowColumns *columns)
{
	CustomPath *cpath = makeNode(CustomPath);

	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = joinrel;
	cpath->path.pathtarget = joinrel->reltarget;
	cpath->path.parallel_aware = joins->parallel_workers > 0;
	cpath->path.parallel_safe = joins->parallel_safe;
	cpath->path.parallel_workers = joins->parallel_workers;
	cpath->path.rows = joins->rows;
	gh_copy_disabled_nodes(&cpath->path, joins);
	cpath->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make1(joins);
	cpath->methods = &gh_rows_path_methods;
	/* in the order of GhAggregatePathPrivate */
	cpath->custom_private = list_make3(columns->keys, NIL, NIL);
	cost_rows(root, &cpath->path, joins, columns->fetched);
	cpath->custom_private = lappend(cpath->custom_private,
									gh_costs_list(cpath->path.startup_cost, cpath->path.total_cost));
	return &cpath->path;
}

/* Whether a device is expected to read the table that these joins are over. */
static bool
device_may_read(Path *outer)
{
	if (!gh_enable_rows)
		return false;
	while (gh_is_join_path(outer) || gh_rows_joins(outer) != NULL)
		outer = linitial(((CustomPath *) outer)->custom_paths);
	return outer->param_info == NULL && IS_SIMPLE_REL(outer->parent) &&
		outer->parent->rtekind == RTE_RELATION && gh_device_is_expected(outer->parent->tuples);
}

/*
 * Whether a join of these may be worth a path though it costs more than others: a device may do it, and those
 * below.  A large query asks for thousands of joins, so what its rows are sure to cost is looked at here, before
 * there is a path.
 */
bool
gh_rows_may_win(RelOptInfo *joinrel, Path *outer, Path *inner)
{
	Cost		startup;

	if (!device_may_read(outer))
		return false;
	/* forced, it costs what the joins do; of a parallel plan each process has a part of the rows */
	if (gh_force_offload || (joinrel->consider_parallel && outer->parent->partial_pathlist != NIL))
		return true;
	startup = gh_setup_cost + gh_device_start_cost + GH_COLLECTED_ROW_COST * cpu_tuple_cost * joinrel->rows;
	return gh_path_may_win(joinrel, outer, inner, startup, startup + cpu_tuple_cost * joinrel->rows, NULL);
}

/*
 * The rows of these joins, to be returned by a GpuHashRows; NULL: it cannot, or no device is expected to make
 * them.
 */
static Path *
rows_path(PlannerInfo *root, Path *join)
{
	RelOptInfo *joinrel = join->parent;
	List	   *sides = ((CustomPath *) join)->custom_paths;
	GhGrouping	grouping = {0};
	RowColumns	columns;
	Path	   *joins;
	Path	   *rows;
	int			ninstructions;

	if (!gh_rows_may_win(joinrel, linitial(sides), lsecond(sides)) || !divide_columns(root, joinrel, &columns))
		return NULL;
	grouping.keys = columns.keys;
	joins = gh_rows_unwrapped(join);
	if (gh_scan_below_joins(root, joins) == NULL || !gh_device_reads(root, joins))
		return NULL;
	rows = make_rows_path(root, joinrel, gh_joins_with_target(root, joins, joinrel->reltarget->exprs), &columns);
	gh_why_cost(root, joinrel->relids, GH_ROWS_NAME, rows->startup_cost, rows->total_cost, rows->parallel_workers > 0);
	/* most cost more than others; this is looked at before the expressions are, which takes longer */
	if (joins->parallel_workers == 0 &&
		!gh_path_may_win(joinrel, linitial(sides), lsecond(sides), rows->startup_cost, rows->total_cost, NULL))
		return NULL;
	return gh_joins_translate(root, &grouping, joins, grouping.keys, &ninstructions) ? rows : NULL;
}

/*
 * Adds the path of a join, where that may win by itself, and one of its rows, where that costs half of the cheapest one
 * there is: it keeps all rows, and estimates of how many there are may be wrong a thousand times.
 */
void
gh_rows_add_paths(PlannerInfo *root, Path *join, bool itself, void (*add) (RelOptInfo *, Path *))
{
	RelOptInfo *joinrel = join->parent;
	Path	   *rows = rows_path(root, join);
	List	   *sides = ((CustomPath *) join)->custom_paths;
	List	   *others = join->parallel_workers > 0 ? joinrel->partial_pathlist : joinrel->pathlist;

	/* of paths that cost nearly the same, the first one stays */
	if (rows != NULL && (gh_force_offload ||
						 (!gh_joins_are_searched_at_random(root) &&
						  gh_wins_clearly(others, linitial(sides), lsecond(sides), rows->total_cost))))
		add(joinrel, rows);
	if (itself)
		add(joinrel, join);
}

/* The rows of a join that takes the place of another one, if these cost half of what the join does itself; or NULL. */
Path *
gh_rows_of_join(PlannerInfo *root, Path *join)
{
	Path	   *rows = gh_rows_may_stay_unread(root, join->parent) ? NULL : rows_path(root, join);
	Cost		startup;
	Cost		total;

	gh_real_cost(join, &startup, &total);
	return rows != NULL && rows->total_cost <= GH_CLEAR_SHARE * total &&
		gh_costs_less(root, join->rows, rows->startup_cost, rows->total_cost, startup, total) ? rows : NULL;
}

/* Called by _PG_init. */
void
gh_rows_init(void)
{
	RegisterCustomScanMethods(&gh_rows_scan_methods);
}
