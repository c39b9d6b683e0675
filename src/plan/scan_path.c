/*
 * scan_path.c
 *		When the planner considers a GpuHashScan, and what it costs.
 *
 * The hook is called once for each table of a query, partitions included, when PostgreSQL's own paths of it
 * are there.  The node stands beside the Seq Scan: what it saves is work for each row that a condition
 * removes, so it is considered where there are conditions, and of those the first ones have a program.
 * Joins and aggregates that read a table's pages themselves take the Seq Scan in its place.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_class.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/rel.h"
#include "utils/spccache.h"

#include "heap/layout.h"
#include "plan/chain.h"
#include "plan/in_memory.h"
#include "plan/input_path.h"
#include "plan/note.h"
#include "plan/planning.h"
#include "plan/rows_path.h"
#include "plan/scan_path.h"
#include "plan/scan_plan.h"
#include "plan/why.h"
#include "service/placement.h"

/*
 * What a row costs beside PostgreSQL's executor; each in the unit that it names.
 */
#define GH_PICKED_ROW_COST 0.9	/* cpu_tuple_cost: one that passes the program, put into the scan tuple */
#define GH_DEVICE_FIRST_PAGES 448.0	/* that are on their way to a device when it has done the first ones */
#define GH_FEW_PICKED 0.5		/* of the rows: no more pass, for columns to be read before pages (../fragment/page_columns.c) */
#define GH_ABSORBED_ROW_SAVES (1 - GH_PAGE_ROW_COST)	/* cpu_tuple_cost: a row whose page a join reads by itself */

static set_rel_pathlist_hook_type previous_hook = NULL;

const CustomPathMethods gh_rowscan_path_methods = {
	.CustomName = GH_ROWSCAN_NAME,
	.PlanCustomPath = gh_rowscan_plan,
};

/* What such a path costs itself, whatever it is said to. */
void
gh_rowscan_cost(Path *path, Cost *startup, Cost *total)
{
	gh_read_costs(list_nth(((CustomPath *) path)->custom_private, GH_ROWSCAN_PATH_COSTS), startup, total);
}

/* ------------------------------------------------------------------ cost */

/*
 * What it costs to read the pages: `pages` on the host, or less on a device.  Of the latter, *first comes
 * before the first row.
 */
static Cost
device_cost(PlannerInfo *root, RelOptInfo *rel, Path *seqscan, double divisor, Cost pages, Cost *first)
{
	Cost		reading;

	*first = 0;
	if (!gh_note(root, rel)->on_device)
		return pages;
	reading = gh_device_scan_cost(root, seqscan, divisor) - seqscan->startup_cost;
	if (reading >= pages)
		return pages;
	*first = gh_device_start_cost +
		(reading - gh_device_start_cost) * Min(1.0, GH_DEVICE_FIRST_PAGES / Max(rel->pages, 1));
	return reading;
}

/* What it costs one of several processes to read the pages on the host. */
static Cost
host_cost(RelOptInfo *rel, const GhConditions *conditions, double divisor)
{
	double		page_cost;

	get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
	return gh_cpu_pages_cost(rel->pages, rel->tuples, page_cost, conditions->ninstructions, divisor);
}

/* Rows that pass the conditions which have a program. */
static double
rows_picked(PlannerInfo *root, RelOptInfo *rel, const GhConditions *conditions)
{
	return clamp_row_est(rel->tuples * clauselist_selectivity(root, conditions->programmed, rel->relid, JOIN_INNER, NULL));
}

/*
 * What one of several processes saves of what host_cost says, by columns in memory that the conditions read:
 * most rows that pass are fetched from pages, whose share of all is as large as if they lay anywhere.
 */
void
gh_condition_columns_save(PlannerInfo *root, RelOptInfo *rel, double divisor, Cost *pages, Cost *rows)
{
	GhNote	   *note = gh_note(root, rel);
	double		share = gh_condition_columns_share(root, rel);

	*pages = *rows = 0;
	if (share == 0)
		return;
	if (!note->has_unread)
	{
		const GhConditions *conditions = gh_note_conditions(root, rel);
		double		picked = conditions->programmed == NIL ? rel->tuples : rows_picked(root, rel, conditions);

		note->unread = picked > GH_FEW_PICKED * rel->tuples ? -1 :
			pow(1 - picked / Max(rel->tuples, 1), rel->tuples / Max(rel->pages, 1));
		note->has_unread = true;
	}
	if (note->unread < 0)
		return;
	gh_columns_save(root, rel, share, divisor, pages, rows);
	*pages *= note->unread;
}

/* What it costs to look at a share of the pages, here and there, before they are read. */
static Cost
sample_cost(RelOptInfo *rel, const GhConditions *conditions, double share)
{
	double		random_cost;
	double		page_cost;

	get_tablespace_page_costs(rel->reltablespace, &random_cost, &page_cost);
	return share * (host_cost(rel, conditions, 1.0) + (random_cost - page_cost) * rel->pages);
}

/* Whether it is a device's reading that the path really costs. */
bool
gh_rowscan_is_for_device(PlannerInfo *root, Path *path)
{
	RelOptInfo *rel = path->parent;
	double		divisor = path->parallel_workers > 0 ? gh_parallel_divisor(path->parallel_workers) : 1.0;
	Cost		pages = host_cost(rel, gh_note_conditions(root, rel), divisor);
	Cost		first;

	return device_cost(root, rel, gh_rowscan_absorbed(root, path), divisor, pages, &first) < pages;
}

/*
 * As a Seq Scan's, but for what a row costs: all are decoded and go through the program, here or on a device;
 * those that pass are put into a slot, and see the other conditions.  *real: the total, with the columns that
 * are in memory.
 */
static void
cost_scan(PlannerInfo *root, const GhConditions *conditions, CustomPath *cpath, Path *seqscan, Cost *real)
{
	Path	   *path = &cpath->path;
	RelOptInfo *rel = path->parent;
	double		divisor = path->parallel_workers > 0 ? gh_parallel_divisor(path->parallel_workers) : 1.0;
	double		picked = rows_picked(root, rel, conditions);
	QualCost	rest;
	Cost		pages;
	Cost		first;
	Cost		saved_pages;
	Cost		saved_rows;
	double		sample = 0;

	if (conditions->rest == NIL)
		picked = divisor * gh_first_rows_of_scan(root, rel, picked / divisor, divisor, &sample);
	cost_qual_eval(&rest, conditions->rest, root);
	pages = device_cost(root, rel, seqscan, divisor, host_cost(rel, conditions, divisor), &first);
	/* that it is switched off is in what a Seq Scan starts with */
	path->startup_cost = gh_setup_cost + seqscan->startup_cost + first + sample_cost(rel, conditions, sample);
	path->total_cost = path->startup_cost + pages - first +
		picked / divisor * (GH_PICKED_ROW_COST * cpu_tuple_cost + rest.per_tuple) +
		path->rows * path->pathtarget->cost.per_tuple;
	gh_condition_columns_save(root, rel, divisor, &saved_pages, &saved_rows);
	*real = path->total_cost - saved_pages - saved_rows;
}

/* ------------------------------------------------------- joins' children */

/*
 * What it costs a join to read the pages where PostgreSQL evaluates the conditions, as it does but for those
 * that columns in memory are there for; *saved: what it costs less by these.
 */
static Cost
absorbed_cost(PlannerInfo *root, const Path *seqscan, double divisor, Cost *saved)
{
	RelOptInfo *rel = seqscan->parent;
	const GhConditions *conditions = gh_note_conditions(root, rel);
	Cost		by_rows = seqscan->total_cost - GH_ABSORBED_ROW_SAVES * cpu_tuple_cost * rel->tuples / divisor;
	double		share = gh_condition_columns_share(root, rel);
	double		picked;
	QualCost	rest;
	Cost		saved_pages;
	Cost		saved_rows;
	Cost		by_columns;

	gh_condition_columns_save(root, rel, divisor, &saved_pages, &saved_rows);
	*saved = 0;
	if (saved_rows == 0)
		return by_rows;
	picked = rows_picked(root, rel, conditions);
	cost_qual_eval(&rest, conditions->rest, root);
	/* for the pages that have columns */
	by_columns = seqscan->startup_cost + host_cost(rel, conditions, divisor) - (saved_pages + saved_rows) / share +
		picked / divisor * (GH_PICKED_ROW_COST * cpu_tuple_cost + rest.per_tuple) +
		seqscan->rows * seqscan->pathtarget->cost.per_tuple;
	*saved = share * Max(by_rows - by_columns, 0);
	return by_rows - *saved;
}

/* As such, it costs what the join makes of it. */
static Path *
make_absorbed(PlannerInfo *root, Path *path, Cost *saved)
{
	double		divisor = path->parallel_workers > 0 ? gh_parallel_divisor(path->parallel_workers) : 1.0;
	Path	   *seqscan;

	if (gh_is_rowscan_path(path))
		seqscan = create_seqscan_path(root, path->parent, NULL, path->parallel_workers);
	else
	{
		seqscan = makeNode(Path);
		memcpy(seqscan, path, sizeof(Path));
	}
	*saved = 0;
	if (!gh_force_offload)
		seqscan->total_cost = absorbed_cost(root, seqscan, divisor, saved);
	return seqscan;
}

/*
 * The Seq Scan in the place of which such a path stands; or, of a table whose pages a join may read, the Seq
 * Scan as it is read so; or the path itself.
 */
Path *
gh_rowscan_absorbed(PlannerInfo *root, Path *path)
{
	bool		is_rowscan = gh_is_rowscan_path(path);
	int			i = path->parallel_workers > 0;
	MemoryContext saved;
	GhNote	   *note;

	if (!is_rowscan && (path->pathtype != T_SeqScan || path->param_info != NULL || gh_force_offload))
		return path;
	note = gh_note(root, path->parent);
	if (!is_rowscan && !note->is_readable)
		return path;
	/* there is one path of each kind, but an extension may have changed what it costs */
	if (note->absorbed[i] == NULL || note->absorbed_cost[i] != path->total_cost ||
		note->absorbed[i]->parallel_workers != path->parallel_workers)
	{
		saved = MemoryContextSwitchTo(gh_note_context(path->parent));
		note->absorbed[i] = make_absorbed(root, path, &note->absorbed_saved[i]);
		note->absorbed_cost[i] = path->total_cost;
		MemoryContextSwitchTo(saved);
	}
	return note->absorbed[i];
}

/* Of what such a Seq Scan costs less by columns in memory, what is for pages, and for rows. */
void
gh_absorbed_saves(PlannerInfo *root, const Path *scan, Cost *pages, Cost *rows)
{
	GhNote	   *note = gh_note(root, scan->parent);
	int			i = scan->parallel_workers > 0;
	Cost		saved_rows;

	*pages = *rows = 0;
	if (note->absorbed[i] != scan || note->absorbed_saved[i] == 0)
		return;
	gh_condition_columns_save(root, scan->parent, 1.0, pages, &saved_rows);
	*pages = Min(*pages, note->absorbed_saved[i]);
	*rows = note->absorbed_saved[i] - *pages;
}

/* ----------------------------------------------------------------- paths */

static Path *
make_scan_path(PlannerInfo *root, RelOptInfo *rel, const GhConditions *conditions, int workers)
{
	Path	   *seqscan = create_seqscan_path(root, rel, NULL, workers);
	CustomPath *cpath = makeNode(CustomPath);
	Cost		real;

	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = rel;
	cpath->path.pathtarget = rel->reltarget;
	cpath->path.parallel_aware = workers > 0;
	cpath->path.parallel_safe = rel->consider_parallel;
	cpath->path.parallel_workers = workers;
	cpath->path.rows = seqscan->rows;
	gh_copy_disabled_nodes(&cpath->path, seqscan);
	cpath->flags = CUSTOMPATH_SUPPORT_PROJECTION | CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
	cpath->methods = &gh_rowscan_path_methods;
	cost_scan(root, conditions, cpath, seqscan, &real);
	gh_why_cost(root, rel->relids, GH_ROWSCAN_NAME, cpath->path.startup_cost, cpath->path.total_cost, workers > 0);
	/* the conditions in the order in which they are to be evaluated */
	cpath->custom_private = list_make2(list_concat_copy(conditions->programmed, conditions->rest),
									   gh_costs_list(cpath->path.startup_cost, real));
	if (gh_force_offload)
	{
		cpath->path.startup_cost = seqscan->startup_cost;
		cpath->path.total_cost = GH_FORCED_SHARE * seqscan->total_cost;
	}
	pfree(seqscan);
	return &cpath->path;
}

/*
 * Whether reading all pages at this cost, of which so much is for the pages, is better than the path, one of
 * the relation's own: than a Seq Scan, if it costs less.  Than an index, if it is clearly so, and would be if
 * all pages were in memory; but an index that is looked into by values of a row outside of the query finds
 * far less for most of these rows than for the mean of all keys, so that it stays.
 */
bool
gh_reading_all_wins(PlannerInfo *root, RelOptInfo *rel, Path *path, Cost startup, Cost total, Cost pages)
{
	if (path->pathtype == T_SeqScan || gh_is_rowscan_path(path))
		return gh_costs_less(root, rel->rows, startup, total, path->startup_cost, path->total_cost);
	if (gh_follows_outer_row(root, path))
		return false;
	return total <= GH_CLEAR_SHARE * path->total_cost &&
		gh_costs_less(root, rel->rows, startup, total, path->startup_cost, path->total_cost) &&
		gh_whole_cost_in_memory(total, pages) <= gh_cost_in_memory(root, path);
}

/*
 * Takes the places of paths that read the table in no order, where that wins, each at its cost.  So no choice
 * above the scan is another one than without gpuhash.
 */
static List *
take_places(PlannerInfo *root, RelOptInfo *rel, const GhConditions *conditions, List *paths)
{
	/* of a child, PostgreSQL may make a path with parameters from this one later */
	bool		keeps = rel->reloptkind == RELOPT_OTHER_MEMBER_REL;
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		Path	   *scan;

		result = lappend(result, path);

		if (path->param_info != NULL || path->pathkeys != NIL ||
			!(path->pathtype == T_SeqScan || IsA(path, BitmapHeapPath) || IsA(path, IndexPath)))
			continue;
		scan = make_scan_path(root, rel, conditions, path->parallel_workers);
		if (gh_has_more_disabled_nodes(scan, path, path) ||
			!gh_reading_all_wins(root, rel, path, scan->startup_cost, scan->total_cost,
								 gh_note_page_cost(root, rel, false) * rel->pages))
			continue;
		scan->startup_cost = path->startup_cost;
		scan->total_cost = path->total_cost;
		gh_copy_disabled_nodes(scan, path);
		llast(result) = scan;
		if (keeps)
			result = lappend(result, path);
	}
	return result;
}

static void
add_scan_paths(PlannerInfo *root, RelOptInfo *rel, const GhConditions *conditions)
{
	int			workers = 0;

	if (!gh_force_offload)
	{
		rel->pathlist = take_places(root, rel, conditions, rel->pathlist);
		rel->partial_pathlist = take_places(root, rel, conditions, rel->partial_pathlist);
		return;
	}
	add_path(rel, make_scan_path(root, rel, conditions, 0));
	if (rel->consider_parallel && rel->partial_pathlist != NIL)
		workers = compute_parallel_worker(rel, rel->pages, -1, max_parallel_workers_per_gather);
	if (workers > 0)
		add_partial_path(rel, make_scan_path(root, rel, conditions, workers));
}

/* Why the node is not for this table, as far as that can be told without looking at the conditions. */
static const char *
why_not_considered(RelOptInfo *rel, RangeTblEntry *rte)
{
	if (!gh_enable_scan)
		return "gpuhash.enable_scan is off";
	if (gh_has_few_rows(rel->tuples))
		return "it has few rows";
	/* where it is forced, its cost does not tell that such scans are switched off */
	if (gh_force_offload && !enable_seqscan)
		return "enable_seqscan is off";
	if (!gh_layout_is_known())
		return "this server's pages are not known to the engines";
	if (!bms_is_empty(rel->lateral_relids))
		return "its columns refer to other relations of the query";
	if (rte->tablesample != NULL)
		return "a sample is taken of it";
	if (gh_conditions_have_subqueries(rel))
		return "a condition has a subquery";
	return NULL;
}

/*
 * Whether a scan without conditions may have fewer rows than the table, those that an ORDER BY ... LIMIT
 * wants.
 */
static bool
leaves_rows_out(PlannerInfo *root, RelOptInfo *rel, const GhConditions *conditions)
{
	double		share;

	return conditions->rest == NIL && gh_first_rows_of_scan(root, rel, rel->tuples, 1.0, &share) < rel->tuples;
}

static const char *
consider_scan(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	const GhConditions *conditions;
	const char *why = why_not_considered(rel, rte);

	if (why != NULL)
		return why;
	if (gh_note(root, rel)->kind != GH_RELATION_HEAP)
		return "it is no heap table";
	conditions = gh_note_conditions(root, rel);
	if (conditions->programmed == NIL && !leaves_rows_out(root, rel, conditions))
		return conditions->why_not != NULL ? conditions->why_not : "it has no conditions on its columns";
	add_scan_paths(root, rel, conditions);
	return NULL;
}

static void
rel_pathlist_hook(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	const char *why;

	if (previous_hook)
		previous_hook(root, rel, rti, rte);
	if (!gh_enabled || rte->rtekind != RTE_RELATION || rte->inh || gh_seq_scan_is_unwanted(root, rel) ||
		(rel->baserestrictinfo == NIL && gh_first_rows_least(root, rel, rel->tuples) == rel->tuples) ||
		(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW) || IS_DUMMY_REL(rel))
		return;
	why = consider_scan(root, rel, rte);
	if (why != NULL)
		gh_why(root, rel->relids, why);
}

/* Called by _PG_init. */
void
gh_rowscan_init(void)
{
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = rel_pathlist_hook;
}
