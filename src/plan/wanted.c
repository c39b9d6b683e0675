/*
 * wanted.c
 *		Which columns of tables, if they were in memory, would have changed a plan.
 *
 * A scan by the CPU engine makes columns of its table as it goes (../store/README, "Columns of tables").  A
 * table that PostgreSQL reads by itself, through an index in most cases, is never so scanned, although
 * reading its columns might cost less.  So when a grouping has its paths, its costs are computed once more,
 * as if all columns that the query reads of a table were there; if a path of ours that reads them would then
 * be the cheapest, they are asked for (../store/columns_wanted.c).  Likewise where a query is planned in two
 * ways, and the other one would be the cheaper (plan_choice.c).
 *
 * That takes as long as the grouping's paths have taken.  So first it is asked what such a path would cost at
 * the least, which takes a microsecond, and mostly that is enough.
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"

#include "compat.h"
#include "gpuhash.h"
#include "plan/chain.h"
#include "plan/input_path.h"
#include "plan/join_path.h"
#include "plan/note.h"
#include "plan/planning.h"
#include "plan/scan_path.h"
#include "plan/wanted.h"
#include "plan/why.h"
#include "service/service.h"

/* Of the planning that goes on; what one leaves here that ends in an error is dropped. */
static GhWantedList wanted_list;

/* --------------------------------------------------------------------- bounds */

/* What more would be saved with all columns that the table can have. */
static Cost
more_saved(PlannerInfo *root, RelOptInfo *rel, double divisor)
{
	Cost		pages;
	Cost		rows;

	gh_columns_save(root, rel, rel->allvisfrac - gh_columns_share_of(root, rel), divisor, &pages, &rows);
	return pages + rows;
}

static double
divisor_of(int workers)
{
	return workers > 0 ? gh_parallel_divisor(workers) : 1.0;
}

/* What a grouping by the CPU engine costs at the least if it reads the table's columns. */
static Cost
least_of_table(PlannerInfo *root, RelOptInfo *rel)
{
	int			workers = rel->partial_pathlist != NIL ?
		compute_parallel_worker(rel, rel->pages, -1, max_parallel_workers_per_gather) : 0;
	double		divisor = divisor_of(workers);
	Path	   *scan = create_seqscan_path(root, rel, NULL, 0);

	return gh_setup_cost + gh_pages_cost(root, scan, 0, divisor) - more_saved(root, rel, divisor);
}

/* The same over such joins, whose scan that is. */
static Cost
least_of_joins(PlannerInfo *root, Path *chain, Path *scan, const GhSpared *spared)
{
	double		divisor = divisor_of(scan->parallel_workers);

	return gh_setup_cost + gh_joins_cost(root, chain, spared, 0, divisor) - more_saved(root, scan->parent, divisor);
}

/* ------------------------------------------------------------------- as if */

/* The table that the path reads by itself, if it is a grouping of ours; or NULL. */
static RelOptInfo *
table_read(PlannerInfo *root, Path *path)
{
	Path	   *child;

	if (IsA(path, ProjectionPath))
		path = ((ProjectionPath *) path)->subpath;
	path = gh_below_gather(path);
	if (!gh_is_aggregate_path(path))
		return NULL;
	child = linitial(((CustomPath *) path)->custom_paths);
	if (gh_is_join_path(child))
		child = gh_scan_below_joins(root, child);
	return child != NULL && child->pathtype == T_SeqScan ? child->parent : NULL;
}

/* The cheapest path of ours if all columns that the table can have were in memory. */
static Path *
cheapest_with_columns(const GhAggregateInputs *inputs, RelOptInfo *table, GhPathsAside paths_aside)
{
	GhNote	   *of_table = gh_note(inputs->root, table);
	GhNote	   *of_input = gh_note(inputs->root, inputs->input_rel);
	GhNote		before_table = *of_table;
	GhNote		before_input = *of_input;
	Path	   *path;

	of_table->columns_share = table->allvisfrac;
	of_input->has_whole[0] = of_input->has_whole[1] = false;
	path = gh_cheapest_of(paths_aside(inputs));
	*of_table = before_table;
	*of_input = before_input;
	return path;
}

static void
add_to_list(GhWantedList *list, const GhWantedTable *table)
{
	for (int i = 0; i < list->count; i++)
	{
		GhWantedTable *known = &list->tables[i];

		if (known->columns.relation != table->columns.relation)
			continue;
		known->columns.columns |= table->columns.columns;
		known->saved += table->saved;
		known->is_read &= table->is_read;
		return;
	}
	if (list->count < GH_WANTED_MAX)
		list->tables[list->count++] = *table;
}

static void
add_wanted(PlannerInfo *root, const RelOptInfo *rel, uint64 columns, Cost saved, bool is_read)
{
	GhWantedTable table = {.columns = {planner_rt_fetch(rel->relid, root)->relid, columns},.saved = saved,.is_read = is_read};

	add_to_list(&wanted_list, &table);
}

/*
 * best: the grouping's cheapest path; least: what one of ours that reads the table's columns costs at the
 * least
 */
static void
consider_table(const GhAggregateInputs *inputs, Path *best, RelOptInfo *table, Cost least, GhPathsAside paths_aside)
{
	PlannerInfo *root = inputs->root;
	Path	   *path;

	if (least >= best->total_cost || table_read(root, best) == table)
		return;
	path = cheapest_with_columns(inputs, table, paths_aside);
	if (path != NULL && path->total_cost < best->total_cost && table_read(root, path) == table)
		add_wanted(root, table, gh_note(root, table)->columns_lacking, best->total_cost - path->total_cost, false);
}

/* The path makes by itself the columns that it reads, but may be a part of a plan that is not chosen. */
static void
consider_read(PlannerInfo *root, Path *best)
{
	RelOptInfo *table = table_read(root, best);

	if (table != NULL && gh_columns_lack(root, table))
		add_wanted(root, table, gh_note(root, table)->columns_lacking,
				   more_saved(root, table, divisor_of(gh_below_gather(best)->parallel_workers)), true);
}

void
gh_want_columns(const GhAggregateInputs *inputs, GhPathsAside paths_aside)
{
	PlannerInfo *root = inputs->root;
	RelOptInfo *rel = inputs->input_rel;
	Path	   *best;

	/* of reasons there would be two of each */
	if (!gh_prewarm_columns || !gh_service_enabled() || gh_force_offload || gh_collects_why || !gh_enable_aggregate)
		return;
	best = gh_cheapest_of(inputs->output_rel->pathlist);
	if (best == NULL)
		return;
	consider_read(root, best);
	if (IS_SIMPLE_REL(rel) && gh_columns_lack(root, rel))
		consider_table(inputs, best, rel, least_of_table(root, rel), paths_aside);
	for (int partial = 0; partial < 2 && IS_JOIN_REL(rel); partial++)
	{
		const GhNote *note = gh_note(root, rel);
		Path	   *chain = note->hopeful[partial];
		Path	   *scan = chain != NULL ? gh_scan_below_joins(root, chain) : NULL;

		if (scan != NULL)
			consider_table(inputs, best, scan->parent, least_of_joins(root, chain, scan, &note->hopeful_spared[partial]),
						   paths_aside);
	}
}

/* ------------------------------------------------------------------- asking */

GhWantedList
gh_wanted_begin(void)
{
	GhWantedList before = wanted_list;

	wanted_list.count = 0;
	return before;
}

GhWantedList
gh_wanted_take(const GhWantedList *before)
{
	GhWantedList taken = wanted_list;

	wanted_list = *before;
	return taken;
}

Cost
gh_wanted_saved(const GhWantedList *wanted)
{
	Cost		saved = 0;

	for (int i = 0; i < wanted->count; i++)
		saved += wanted->tables[i].saved;
	return saved;
}

void
gh_wanted_add(GhWantedList *wanted, const GhWantedList *other)
{
	for (int i = 0; i < other->count; i++)
	{
		GhWantedTable table = {.columns = other->tables[i].columns};

		add_to_list(wanted, &table);
	}
}

void
gh_wanted_add_table(GhWantedList *wanted, Oid relation, uint64 columns, Cost saved)
{
	GhWantedTable table = {.columns = {relation, columns},.saved = saved};

	add_to_list(wanted, &table);
}

/*
 * Whoever plans a query need not be allowed to run it: that is found out when it is begun.  It is not left to
 * a user to have tables read that the user may not read.
 */
void
gh_wanted_ask(const PlannedStmt *plan, const GhWantedList *wanted)
{
	bool		any = false;

	for (int i = 0; i < wanted->count; i++)
		any |= !wanted->tables[i].is_read;
	if (!any || !gh_may_read_all(plan))
		return;
	for (int i = 0; i < wanted->count; i++)
		if (!wanted->tables[i].is_read)
			gh_columns_ask(&wanted->tables[i].columns);
}
