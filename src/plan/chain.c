/*
 * chain.c
 *		Chains of GpuHashJoins over a scan, as paths.
 *
 * Nodes above joins read the pages of the scan below them, and look its rows up in the joins' tables,
 * on the host or on a device.  Whether that can be is noted in each join's path, from what is noted in
 * the path of its outer side: so a chain is never walked for a join that is put on top of it.
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "utils/memutils.h"

#include "engine/pipeline/pipeline.h"
#include "expr/key.h"
#include "fragment/costs.h"
#include "gpuhash.h"
#include "plan/chain.h"
#include "plan/index_side.h"
#include "plan/input_path.h"
#include "plan/join_plan.h"
#include "plan/note.h"
#include "plan/parts_path.h"
#include "plan/planning.h"
#include "plan/rows_path.h"
#include "service/placement.h"
#include "service/service.h"

#define GH_STEP_NAME "GpuHashJoinStep"

/* Inner rows of the most common key; of many of them a device's other threads wait for one. */
#define GH_DEVICE_MATCHES_MAX 512

/* For debugging; paths are neither copied, compared nor read. */
static void
step_out(struct StringInfoData *text, const struct ExtensibleNode *node)
{
	const GhJoinStep *step = (const GhJoinStep *) node;

	appendStringInfo(text, " :jointype %d :inner_unique %d :startup_cost %.2f :total_cost %.2f",
					 (int) step->jointype, step->inner_unique, step->startup_cost, step->total_cost);
}

static const ExtensibleNodeMethods step_methods = {
	.extnodename = GH_STEP_NAME,
	.node_size = sizeof(GhJoinStep),
	.nodeOut = step_out,
};

/* Called by _PG_init. */
void
gh_chain_init(void)
{
	RegisterExtensibleNodeMethods(&step_methods);
}

/* --------------------------------------------------------------- steps */

/* Of another path, the chain of which is not the same. */
GhJoinStep *
gh_make_step(const GhJoinStep *from)
{
	GhJoinStep *step = palloc(sizeof(GhJoinStep));

	*step = *from;
	NodeSetTag(step, T_ExtensibleNode);
	step->node.extnodename = GH_STEP_NAME;
	step->is_linked = step->has_whole_tables_cost = false;
	step->cautious_rows = 0;
	return step;
}

/* The joins that an inner side is, or whose rows it is; NULL: it is none. */
static Path *
joins_of_side(Path *inner)
{
	Path	   *joins = gh_rows_joins(inner);

	if (joins != NULL)
		return joins;
	return gh_is_join_path(inner) ? inner : NULL;
}

/*
 * Whether a device is expected to make a table of an inner side that is joins: their own inner sides become
 * tables, which it looks the rows of their scan up in.
 */
static bool
side_is_for_device(PlannerInfo *root, Path *inner)
{
	const GhJoinStep *side;

	if (!gh_is_join_path(inner) || !gh_are_columns(inner->pathtarget->exprs))
		return false;
	side = gh_linked_step(root, inner);
	/* over several tables that are read as one, they return their rows */
	return side->on_device && side->scan != NULL && IsA(side->scan, Path) && !side->needs_device;
}

/*
 * Whether a device is expected to make a table of rows that come through the executor: in one process, where
 * the join can store them (../fragment/device_rows.c).
 */
static bool
rows_are_for_device(const GhJoinStep *step, Path *inner, int workers)
{
	return workers == 0 && inner->pathtype != T_SeqScan && joins_of_side(inner) == NULL &&
		!gh_step_fills_inner(step) && gh_side_fits_in_memory(inner);
}

/*
 * Whether a device may make the table of such a join by itself, as far as the path tells, and statistics: a
 * row's matches are one thread's work, and those of a row that has too many are the host's.
 */
static bool
is_for_device(PlannerInfo *root, const GhJoinStep *step, Path *outer, Path *inner, int workers)
{
	GhJoinPair *pair = step->pair;

	if (inner->param_info != NULL || (inner->pathtype != T_SeqScan && !side_is_for_device(root, inner) &&
									  !rows_are_for_device(step, inner, workers)))
		return false;
	if (step->inner_unique || step->jointype == JOIN_SEMI || step->jointype == JOIN_ANTI)
		return true;
	if (!pair->has_matches)
		pair->matches = gh_most_matches(root, step, outer->parent, inner->parent);
	pair->has_matches = true;
	return pair->matches <= GH_DEVICE_MATCHES_MAX;
}

/*
 * What one of several processes does to have a device read a table's pages.  Where they are on the device there is nothing to
 * share: a parallel plan is not the cheaper for that, which what it does on the host with the rows may make the worse one.
 */
static Cost
device_pages_cost(PlannerInfo *root, Path *scan, double divisor, int buses)
{
	RelOptInfo *rel = scan->parent;
	Cost		page_cost;
	Cost		cost = 0;
	ListCell   *lc;

	if (IsA(scan, AppendPath))
	{
		foreach(lc, ((AppendPath *) scan)->subpaths)
			cost += GH_DEVICE_PART_COST * gh_device_start_cost + device_pages_cost(root, lfirst(lc), divisor, buses);
		return cost;
	}
	if (divisor <= 1)
		return scan->startup_cost + gh_note_device_cost(root, rel);
	page_cost = gh_note_page_cost(root, rel, true);
	return scan->startup_cost + gh_device_pages_cost(rel->pages, page_cost, 0, gh_note(root, rel)->pinned, divisor, buses);
}

static double
divisor_of(int workers)
{
	return workers > 0 ? gh_parallel_divisor(workers) : 1.0;
}

/* Likewise of an inner side that is joins; the least, if that cannot be. */
static Cost
device_side_cost(PlannerInfo *root, Path *joins, int workers)
{
	const GhJoinStep *side = gh_linked_step(root, joins);

	if (side->scan == NULL)
		return 0;
	return side->inner_device_cost + device_pages_cost(root, side->scan, side->scan->parallel_aware ? divisor_of(workers) : 1.0, 1) +
		joins->rows * GH_DEVICE_TABLE_COST * cpu_tuple_cost;
}

/* What it costs that a device makes a join's table. */
static Cost
device_table_cost(PlannerInfo *root, Path *inner, int workers)
{
	Path	   *joins = joins_of_side(inner);

	if (joins != NULL)
		return device_side_cost(root, joins, workers);
	/* the host runs subqueries */
	if (inner->pathtype != T_SeqScan || gh_conditions_have_subqueries(inner->parent))
		return inner->total_cost + inner->rows * (1 + GH_DEVICE_TABLE_COST) * cpu_tuple_cost;
	return device_pages_cost(root, inner, inner->parallel_aware ? divisor_of(workers) : 1.0, 1) +
		inner->parent->tuples * GH_DEVICE_TABLE_COST * cpu_tuple_cost;
}

/* The note of the table that the path reads; NULL: it reads something else, or has parameters. */
static const GhNote *
note_of_end(PlannerInfo *root, const Path *path)
{
	RelOptInfo *rel = path->parent;

	if (!IS_SIMPLE_REL(rel) || rel->rtekind != RTE_RELATION || path->param_info != NULL)
		return NULL;
	return gh_note(root, rel);
}

/*
 * Whether one process would have to leave the join to the host for the result of a subquery (run_awaited,
 * ../fragment/device.c).  In a parallel plan, subqueries are run before.
 */
static bool
cannot_await(PlannerInfo *root, const GhJoinStep *step, const Path *inner, int workers)
{
	if (workers > 0)
		return false;
	return (step->awaits && step->jointype != JOIN_LEFT && step->jointype != JOIN_ANTI) ||
		(IS_SIMPLE_REL(inner->parent) && gh_note_awaits(root, inner->parent));
}

/*
 * Several tables whose pages a node above reads as those of one stand there: a row of these has no tuple that
 * can be fetched.
 */
static void
link_parts(PlannerInfo *root, GhJoinStep *step, Path *outer, Path **scan)
{
	step->on_device = step->ends_on_device = gh_find_parts(root, outer->parent)->on_device;
	step->awaits = gh_note_awaits(root, outer->parent);
	step->inner_joined = bms_copy(outer->parent->relids);
	*scan = outer;
}

/* What stands at the end of a chain: *scan, if that is a table whose pages a node above may read. */
static void
link_end(PlannerInfo *root, GhJoinStep *step, Path *outer, Path **scan)
{
	const GhNote *note;

	if (gh_is_parts_scan(root, outer))
	{
		link_parts(root, step, outer, scan);
		return;
	}
	note = note_of_end(root, outer);
	if (note == NULL)
		return;
	step->ends_on_device = note->on_device;
	step->awaits = gh_note_awaits(root, outer->parent);
	if (outer->pathtype != T_SeqScan)
		return;
	step->on_device = note->on_device;
	if (note->is_readable)
		*scan = outer;
}

/* And what stands below a join of one. */
static void
link_join(PlannerInfo *root, GhJoinStep *step, Path *outer, Path **scan)
{
	const GhJoinStep *below = gh_linked_step(root, outer);

	step->ends_on_device = below->ends_on_device;
	step->on_device = below->on_device;
	step->has_rows = below->has_rows;
	step->inner_joined = below->inner_joined;
	step->unread = below->unread;
	step->awaits = below->awaits;
	step->ntables += below->ntables;
	step->inner_device_cost = below->inner_device_cost;
	/* what just a device does comes last */
	if (outer->param_info == NULL && !below->needs_device)
		*scan = below->scan;
}

/* What an inner side that is joins, or other rows, adds. */
static void
link_side(PlannerInfo *root, GhJoinStep *step, Path *inner)
{
	Path	   *joins = joins_of_side(inner);

	if (inner->pathtype != T_SeqScan)
		step->inner_joined = bms_union(step->inner_joined, inner->parent->relids);
	if (joins == NULL)
		return;
	step->has_rows |= joins != inner || gh_linked_step(root, joins)->has_rows;
	step->unread = bms_union(step->unread, gh_linked_step(root, joins)->unread);
	step->ntables += gh_linked_step(root, joins)->ntables;
}

/*
 * Whether a clause of the join reads a table of which no row comes out of a join below: it is equal to
 * another one there, and the planner takes either.
 */
static bool
reads_unread(const GhJoinStep *step)
{
	ListCell   *lc;

	if (step->unread == NULL)
		return false;
	foreach(lc, step->clauses)
	{
		if (bms_overlap(lfirst_node(RestrictInfo, lc)->clause_relids, step->unread))
			return true;
	}
	return false;
}

/* Fills in the chain of a join of these two, of which there may be no path yet. */
void
gh_link_step(PlannerInfo *root, GhJoinStep *step, RelOptInfo *joinrel, Path *outer, Path *inner,
			 int workers)
{
	GhJoinPair *pair = step->pair;
	Path	   *scan = NULL;

	step->is_linked = true;
	step->scan = NULL;
	step->on_device = step->ends_on_device = step->has_rows = step->awaits = false;
	step->inner_joined = step->unread = NULL;
	step->ntables = 1;
	step->inner_device_cost = 0;
	if (gh_is_join_path(outer))
		link_join(root, step, outer, &scan);
	else if (gh_rows_joins(outer) != NULL)
	{
		step->ends_on_device = gh_linked_step(root, gh_rows_joins(outer))->ends_on_device;
		step->ntables += gh_linked_step(root, gh_rows_joins(outer))->ntables;
		step->has_rows = true;
	}
	else
		link_end(root, step, outer, &scan);
	link_side(root, step, inner);
	if (!pair->is_split)
		gh_split_pair(root, step, joinrel, outer->parent);
	pair->is_split = true;
	step->needs_device = gh_step_fills_inner(step);
	if (pair->is_plain && scan != NULL && gh_are_columns(outer->pathtarget->exprs))
		step->scan = scan;
	step->on_device = step->on_device && step->ntables <= GH_PROBES_MAX && !reads_unread(step) &&
		!cannot_await(root, step, inner, workers) &&
		is_for_device(root, step, outer, inner, workers);
	if (step->jointype == JOIN_SEMI || step->jointype == JOIN_ANTI)
		step->unread = bms_union(step->unread, inner->parent->relids);
	if (step->on_device)
		step->inner_device_cost += (1 - gh_device_copied_share(root, step, outer->parent, inner, workers)) *
			device_table_cost(root, inner, workers) +
			GH_DEVICE_LINE_COST * cpu_tuple_cost * Max(joinrel->rows - outer->parent->rows, 0);
}

/* Fills in the chain of a join's path, and returns its step. */
GhJoinStep *
gh_link_path(PlannerInfo *root, Path *join)
{
	GhJoinStep *step = gh_step(join);
	List	   *sides = ((CustomPath *) join)->custom_paths;
	MemoryContext saved;

	/* the path may be older than this tour of GEQO */
	saved = MemoryContextSwitchTo(GetMemoryChunkContext(step));
	gh_link_step(root, step, join->parent, linitial(sides), lsecond(sides), join->parallel_workers);
	MemoryContextSwitchTo(saved);
	return step;
}

/* ------------------------------------------------------- what is asked of them */

/* Whether a device is expected to read the table that the path is over, itself or with joins in between. */
bool
gh_ends_on_device(PlannerInfo *root, Path *path)
{
	const GhParts *parts;
	const GhNote *note;

	if (gh_is_join_path(path))
		return gh_linked_step(root, path)->ends_on_device;
	if (gh_rows_joins(path) != NULL)
		return gh_ends_on_device(root, gh_rows_joins(path));
	parts = gh_find_parts(root, path->parent);
	if (parts != NULL)
		return parts->on_device;
	note = note_of_end(root, path);
	return note != NULL && note->on_device;
}

/* Whether a node above may look rows up in all the joins, as far as the last one is concerned. */
bool
gh_chain_is_usable(const GhJoinStep *step)
{
	return step->scan != NULL &&
		(!step->needs_device || step->on_device ||
		 (gh_force_offload && gh_engine_setting != GH_ENGINE_CPU));
}

/*
 * The scan below the joins of a path, when they are such that the node can look its rows up in
 * their tables; or NULL.
 */
Path *
gh_scan_below_joins(PlannerInfo *root, Path *path)
{
	const GhJoinStep *step;

	if (!gh_is_join_path(path) || path->param_info != NULL)
		return NULL;
	step = gh_linked_step(root, path);
	return gh_chain_is_usable(step) ? step->scan : NULL;
}

/* Of such joins, what makes a match and what a joined row must pass to come out, beside the keys. */
List *
gh_chain_conditions(PlannerInfo *root, Path *join)
{
	List	   *conditions = NIL;

	for (; gh_is_join_path(join); join = linitial(((CustomPath *) join)->custom_paths))
		conditions = list_concat_copy(gh_linked_step(root, join)->pair->conditions, conditions);
	return conditions;
}

/* Whether a device is expected to read a scan, or that below joins, whose tables it makes. */
bool
gh_device_reads(PlannerInfo *root, Path *path)
{
	if (gh_is_join_path(path))
		return gh_linked_step(root, path)->on_device;
	if (gh_is_parts_scan(root, path))
		return gh_find_parts(root, path->parent)->on_device;
	return path->pathtype == T_SeqScan && gh_note(root, path->parent)->on_device;
}

/* What it costs that a device reads a table's pages alone. */
Cost
gh_device_scan_cost(PlannerInfo *root, Path *scan, double divisor)
{
	return gh_device_start_cost + device_pages_cost(root, scan, divisor, 1);
}

/*
 * Among how many devices the pages of a fragment's scan are divided, as far as settings tell.  One process
 * does not keep two buses busy, and of pages that are on devices the time is theirs, which has no price.
 */
static int
count_buses(double divisor)
{
	int			devices[GH_DEVICES_PER_QUERY_MAX];

	if (divisor <= 1 || gh_devices_per_query == 1 || !gh_service_enabled())
		return 1;
	return Max(gh_service_choose_devices(InvalidOid, true, gh_devices_per_query, devices), 1);
}

/* The same of the scan below what a fragment makes. */
static Cost
fragment_scan_cost(PlannerInfo *root, Path *scan, double divisor)
{
	return gh_device_start_cost + device_pages_cost(root, scan, divisor, count_buses(divisor));
}

/* What it costs that a device reads all that, until it has its results. */
Cost
gh_chain_device_cost(PlannerInfo *root, const GhJoinStep *step, int workers)
{
	return step->inner_device_cost + fragment_scan_cost(root, step->scan, divisor_of(workers));
}

/*
 * The same of a join of these two, of which there is no step yet, if a device can do it, but for what several matches of a row
 * add: the same sum, in the same order.  False: it is not known.
 */
bool
gh_chain_cost_above(PlannerInfo *root, Path *outer, Path *inner, int workers, Cost *cost)
{
	const GhJoinStep *below;

	if (!gh_is_join_path(outer))
		return false;
	below = gh_linked_step(root, outer);
	if (below->scan == NULL || below->has_rows)
		return false;
	*cost = below->inner_device_cost + device_table_cost(root, inner, workers) +
		fragment_scan_cost(root, below->scan, divisor_of(workers));
	return true;
}

/* The same of a path that a device is expected to read. */
Cost
gh_device_reading_cost(PlannerInfo *root, Path *path)
{
	if (gh_is_join_path(path))
		return gh_chain_device_cost(root, gh_linked_step(root, path), path->parallel_workers);
	return fragment_scan_cost(root, path, divisor_of(path->parallel_workers));
}
