/*
 * whole.c
 *		The planner's joins of a relation, all as steps of one chain.
 *
 * While PostgreSQL looks for the best order of joins, a GpuHashJoin is compared with one join at a time.
 * So a chain ends where a join of few rows, or a nested loop over an index, is no dearer than one of
 * ours, although a grouping above costs much less if it reads the scan below all of the joins by itself.
 * Therefore a grouping asks for the joins of PostgreSQL's cheapest path, in its order and whatever kind
 * each one is, as a chain of GpuHashJoins over one scan.  It is made once for a grouping, not while joins
 * are searched.
 *
 * A join with a table that has more rows than the other side may be turned around: the table is read from
 * end to end, and the other side becomes a hash table.  That is what replaces nested loops over an index.
 * An inner side that is joins may be such a chain, too.
 *
 * PostgreSQL charges a nested loop for pages as if they were on disk.  So the chain also has to cost less
 * than the plan would if pages cost nothing.  And of how often a loop looks into an index it knows too little
 * where rows were joined by columns that are a key together (doubt.h): what that costs more counts, too.
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"

#include "compat.h"
#include "gpuhash.h"
#include "plan/chain.h"
#include "plan/doubt.h"
#include "plan/in_memory.h"
#include "plan/index_side.h"
#include "plan/join_path.h"
#include "plan/join_plan.h"
#include "plan/keys_path.h"
#include "plan/note.h"
#include "plan/parts_path.h"
#include "plan/planning.h"
#include "plan/rows_path.h"
#include "plan/scan_path.h"
#include "plan/whole.h"

/*
 * Where all tables are expected to be in memory, and a chain without its pages costs no more than this share
 * of the plan without its pages, the chain is charged for no more pages than the plan.
 */
#define GH_SURE_SHARE 0.8

/*
 * A chain that is taken for what the plan would cost if more rows came is charged for this share of what the
 * plan says at the least, and costs so many times that at most.
 */
#define GH_DOUBT_SHARE 0.5
#define GH_DOUBT_MOST 2.0

/* What a page in memory takes of what PostgreSQL charges for one at random: a microsecond of some forty. */
#define GH_CACHED_PAGE_SHARE 0.05

/* One of the planner's joins. */
typedef struct PlannedJoin
{
	RelOptInfo *joinrel;
	JoinType	jointype;
	Path	   *outer;
	Path	   *inner;
	List	   *clauses;		/* also those that are conditions of an index below */
} PlannedJoin;

/* What one process makes for all, as join_path.c has it below an Append; or NULL. */
static Path *
made_once(const AppendPath *path)
{
	Path	   *only = list_length(path->subpaths) == 1 ? linitial(path->subpaths) : NULL;

	/* the only partition of a table is another relation */
	return only != NULL && only->parent == path->path.parent ? only : NULL;
}

/* What is below a path that sorts, keeps, gathers, shares or projects its rows. */
static Path *
below_passing(Path *path)
{
	for (;;)
	{
		Path	   *once;

		switch (nodeTag(path))
		{
			case T_AppendPath:
				once = made_once((AppendPath *) path);
				if (once == NULL)
					return path;
				path = once;
				break;
			case T_ProjectionPath:
				path = ((ProjectionPath *) path)->subpath;
				break;
			case T_GatherPath:
				path = ((GatherPath *) path)->subpath;
				break;
			case T_GatherMergePath:
				path = ((GatherMergePath *) path)->subpath;
				break;
			case T_MaterialPath:
				path = ((MaterialPath *) path)->subpath;
				break;
			case T_MemoizePath:
				path = ((MemoizePath *) path)->subpath;
				break;
			case T_SortPath:
			case T_IncrementalSortPath:
				path = ((SortPath *) path)->subpath;
				break;
			default:
				return path;
		}
	}
}

/* The same, or the joins whose rows a device returns. */
static Path *
below_wrapping(Path *path)
{
	path = below_passing(path);
	return gh_rows_joins(path) != NULL ? gh_rows_joins(path) : path;
}

/* Whether a side's rows are made distinct, so that no other path of the relation may stand there. */
static bool
is_made_distinct(Path *side)
{
	return gh_is_unique_path(below_wrapping(side));
}

/* ------------------------------------------------------- the planner's joins */

/* Whether the clause compares an expression over one side with one over the other. */
static bool
compares_sides(const RestrictInfo *clause, const JoinPath *join)
{
	Relids		outer = join->outerjoinpath->parent->relids;
	Relids		inner = join->innerjoinpath->parent->relids;

	return (bms_is_subset(clause->left_relids, outer) && bms_is_subset(clause->right_relids, inner)) ||
		(bms_is_subset(clause->left_relids, inner) && bms_is_subset(clause->right_relids, outer));
}

/*
 * Whether another clause of the list makes this one unnecessary: the same, or one that compares both sides
 * for the same equivalence class, of which each side has made its own expressions equal.
 */
static bool
is_implied(const JoinPath *join, List *clauses, const RestrictInfo *clause)
{
	const EquivalenceClass *class = clause->parent_ec;
	ListCell   *lc;

	foreach(lc, clauses)
	{
		const RestrictInfo *other = lfirst_node(RestrictInfo, lc);

		if (other == clause ||
			(class != NULL && !class->ec_broken && other->parent_ec == class && compares_sides(clause, join) &&
			 compares_sides(other, join)))
			return true;
	}
	return false;
}

static bool
has_pseudoconstants(List *clauses)
{
	ListCell   *lc;

	foreach(lc, clauses)
	{
		if (lfirst_node(RestrictInfo, lc)->pseudoconstant)
			return true;
	}
	return false;
}

/*
 * The clauses of a join, those that its inner path takes as conditions of an index among them.  False: they
 * are not known, for the inner path is a join with parameters, or an Append, or of a partition, which may
 * have those of its parent; or what is computed for the rows that an index finds would show for others.
 */
static bool
find_clauses(PlannerInfo *root, const JoinPath *join, List **clauses)
{
	RelOptInfo *inner = join->innerjoinpath->parent;
	const ParamPathInfo *param_info = join->innerjoinpath->param_info;
	ListCell   *lc;

	*clauses = list_copy(join->joinrestrictinfo);
	if (param_info == NULL)
		return true;
	if (!IS_SIMPLE_REL(inner) || IS_OTHER_REL(inner) || inner->rtekind != RTE_RELATION ||
		param_info->ppi_clauses == NIL || !gh_outer_is_quiet(root, inner))
		return false;
	foreach(lc, param_info->ppi_clauses)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, lc);

		if (!is_implied(join, *clauses, clause))
			*clauses = lappend(*clauses, clause);
	}
	return true;
}

/* The join that keeps the rows of its left side, in the place of one that keeps those of its right side. */
static JoinType
turned(JoinType jointype)
{
	if (jointype == JOIN_RIGHT)
		return JOIN_LEFT;
	if (gh_is_right_anti(jointype))
		return JOIN_ANTI;
	return gh_is_right_semi(jointype) ? JOIN_SEMI : jointype;
}

static void
turn_around(PlannedJoin *join)
{
	Path	   *outer = join->outer;

	join->jointype = turned(join->jointype);
	join->outer = join->inner;
	join->inner = outer;
}

/* False: the path is no join, or one that a chain cannot have. */
static bool
find_join(PlannerInfo *root, Path *path, PlannedJoin *join)
{
	join->joinrel = path->parent;
	if (gh_is_join_path(path))
	{
		join->jointype = gh_step(path)->jointype;
		join->outer = linitial(((CustomPath *) path)->custom_paths);
		join->inner = lsecond(((CustomPath *) path)->custom_paths);
		join->clauses = gh_step(path)->clauses;
	}
	else if (IsA(path, HashPath) || IsA(path, NestPath) || IsA(path, MergePath))
	{
		join->jointype = ((JoinPath *) path)->jointype;
		join->outer = ((JoinPath *) path)->outerjoinpath;
		join->inner = ((JoinPath *) path)->innerjoinpath;
		if (!find_clauses(root, (JoinPath *) path, &join->clauses))
			return false;
	}
	else
		return false;
	if (turned(join->jointype) != join->jointype)
		turn_around(join);
	return bms_is_empty(join->joinrel->lateral_relids) && !has_pseudoconstants(join->clauses);
}

/* ------------------------------------------------------------ its price */

/* Of what a bitmap scan costs, how much is for pages that may be in memory. */
static Cost
bitmap_pages_cost(const BitmapHeapPath *path)
{
	Cost		descent = GH_DESCENT_PAGE_COST * cpu_operator_cost;

	return Max(path->path.total_cost - descent - gh_bitmap_conditions_cost(path) -
			   path->path.rows * (cpu_tuple_cost + cpu_index_tuple_cost), 0);
}

static Cost pages_cost(PlannerInfo *root, Path *path, bool real);

/* Whether a nested loop looks into its inner side by values of each outer row. */
static bool
looks_up(const Path *path, const Path *inner)
{
	return IsA(path, NestPath) && inner->param_info != NULL;
}

/* What such a loop is charged for its inner side, of all outer rows. */
static Cost
loops_cost(const Path *path, const Path *outer)
{
	return Max(path->total_cost - outer->total_cost - outer->rows * cpu_tuple_cost, 0);
}

static Cost
sides_pages_cost(PlannerInfo *root, Path *path, Path *outer, Path *inner, bool real)
{
	Cost		outer_cost = pages_cost(root, outer, real);
	Cost		inner_cost = pages_cost(root, inner, real);

	/* for each outer row; less, where one match is enough, or results are kept */
	if (looks_up(path, inner))
		inner_cost = Min(outer->rows * inner_cost, loops_cost(path, outer) * inner_cost / Max(inner->total_cost, 1e-10));
	return outer_cost + inner_cost;
}

static Cost
parts_pages_cost(PlannerInfo *root, const List *parts)
{
	Cost		cost = 0;
	ListCell   *lc;

	foreach(lc, parts)
		cost += pages_cost(root, lfirst(lc), false);
	return cost;
}

/*
 * Of what a path costs, how much is for pages that may be in memory: all of those that are read from end to
 * end, and what an index scan costs beyond its way down and its rows.  real: of what the path really costs
 * (gh_real_cost), not of what it says
 */
static Cost
pages_cost(PlannerInfo *root, Path *path, bool real)
{
	path = below_passing(path);
	if (IsA(path, HashPath) || IsA(path, NestPath) || IsA(path, MergePath))
		return sides_pages_cost(root, path, ((JoinPath *) path)->outerjoinpath, ((JoinPath *) path)->innerjoinpath, false);
	if (gh_is_join_path(path))
	{
		/* it may compete at what it really costs */
		real |= path->total_cost == gh_step(path)->total_cost;
		return pages_cost(root, linitial(((CustomPath *) path)->custom_paths), real) +
			(1 - gh_copied_share(root, path)) * pages_cost(root, lsecond(((CustomPath *) path)->custom_paths), real);
	}
	if (IsA(path, AppendPath))
		return parts_pages_cost(root, ((AppendPath *) path)->subpaths);
	if (IsA(path, MergeAppendPath))
		return parts_pages_cost(root, ((MergeAppendPath *) path)->subpaths);
	if (IsA(path, IndexPath))
		return gh_index_pages_cost((IndexPath *) path);
	if (IsA(path, BitmapHeapPath))
		return bitmap_pages_cost((BitmapHeapPath *) path);
	/* rows that a device returns are charged for its pages alone */
	return path->pathtype == T_SeqScan || gh_is_rowscan_path(path) || gh_rows_joins(path) != NULL ?
		gh_whole_tables_cost(root, path, false, real) : 0;
}

/*
 * How many times more rows than expected come out of a plan's joins, for some are by keys; adds what its
 * nested loops, and joins of ours, cost more then, without pages that are expected to be in memory.
 */
static double
add_doubt(PlannerInfo *root, Path *path, bool is_cached, Cost *more)
{
	PlannedJoin join;
	double		outer;
	double		inner;

	path = below_wrapping(path);
	if (IS_SIMPLE_REL(path->parent) || is_made_distinct(path) || !find_join(root, path, &join))
		return 1.0;
	outer = add_doubt(root, join.outer, is_cached, more);
	inner = add_doubt(root, join.inner, is_cached, more);
	if (gh_is_join_path(path))
		*more += (outer - 1) * join.outer->rows * cpu_tuple_cost + (inner - 1) * join.inner->rows * gh_build_tuple_cost;
	else if (looks_up(path, join.inner))
	{
		Cost		pages = is_cached ? pages_cost(root, join.inner, false) : 0;

		*more += (outer - 1) * loops_cost(path, join.outer) * (1 - Min(pages / Max(join.inner->total_cost, 1e-10), 1));
	}
	return join.jointype != JOIN_INNER ? outer * inner :
		outer * inner * gh_key_factor(root, join.joinrel, join.outer->parent, join.inner->parent, join.clauses);
}

/* Whether all tables of the relation are expected to be in memory; *rows: of the largest. */
static bool
fits_in_cache(PlannerInfo *root, RelOptInfo *rel, double *rows)
{
	double		pages = 0;
	int			relid = -1;

	*rows = 0;
	while ((relid = bms_next_member(rel->relids, relid)) >= 0)
	{
		RelOptInfo *table = root->simple_rel_array[relid];

		if (table == NULL)
			continue;
		pages += gh_pages_read(root, table);
		*rows = Max(*rows, gh_tuples_read(root, table));
	}
	return pages <= effective_cache_size;
}

/* --------------------------------------------------------------- the chain */

/* What a chain is looked for with. */
typedef struct Search
{
	PlannerInfo *root;
	bool		partial;		/* of which each of several processes does a part */
	bool		is_cached;		/* all tables are expected to be in memory */
} Search;

/* The scan of a table, or of several as one, whose pages a node above reads; NULL: there is none. */
static Path *
scan_of(const Search *search, RelOptInfo *rel)
{
	const bool	is_table = gh_note(search->root, rel)->is_readable;
	int			workers = 0;

	if ((!is_table && gh_find_parts(search->root, rel) == NULL) || !bms_is_empty(rel->lateral_relids) ||
		gh_follows_outer_row(search->root, rel->cheapest_total_path))
		return NULL;
	if (search->partial)
	{
		workers = rel->consider_parallel ?
			compute_parallel_worker(rel, gh_pages_read(search->root, rel), -1, max_parallel_workers_per_gather) : 0;
		if (workers <= 0)
			return NULL;
	}
	if (!is_table)
		return gh_parts_scan_for_chain(search->root, rel, workers);
	return gh_rowscan_absorbed(search->root, create_seqscan_path(search->root, rel, NULL, workers));
}

static Cost
total_cost(const Search *search, Path *path)
{
	Cost		startup;
	Cost		total;
	Cost		pages;
	Cost		rows;
	Cost		more = 0;

	gh_real_cost(path, &startup, &total);
	(void) add_doubt(search->root, path, search->is_cached, &more);
	total += more;
	if (!gh_is_join_path(path))
		return search->is_cached ? total - pages_cost(search->root, path, true) : total;
	gh_inner_chains_save(search->root, path, &pages, &rows);
	total -= gh_copies_save(search->root, path) + rows;
	return total - (search->is_cached ? pages_cost(search->root, path, true) : pages);
}

/* The cheaper of two joins, either of which may be NULL. */
static Path *
cheaper(const Search *search, Path *a, Path *b)
{
	if (a == NULL || b == NULL)
		return a == NULL ? b : a;
	return total_cost(search, a) <= total_cost(search, b) ? a : b;
}

/*
 * A join of the chain with an inner side; NULL: there is none, or it would not fit in memory and there is no
 * copy.
 */
static Path *
join_with(const Search *search, const PlannedJoin *join, Path *outer, Path *inner, bool common_table)
{
	Path	   *path;

	if (inner == NULL || inner->param_info != NULL)
		return NULL;
	path = gh_join_of(search->root, join->joinrel, join->jointype, join->clauses, outer, inner, common_table, true);
	return path != NULL &&
		(gh_join_fits_in_memory((CustomPath *) path) || gh_copied_share(search->root, path) > 0) ? path : NULL;
}

/* The same over the cheapest path of the inner side's relation, or over the chain that it is. */
static Path *
join_chain(const Search *search, const PlannedJoin *join, Path *outer, Path *inner_chain)
{
	RelOptInfo *rel = join->inner->parent;
	Path	   *best = NULL;

	/* each process would give the rows that match none of its own */
	if (outer == NULL || (search->partial && join->jointype == JOIN_FULL))
		return NULL;
	if (is_made_distinct(join->inner))
		return search->partial ? NULL : join_with(search, join, outer, join->inner, false);
	if (!search->partial)
		best = join_with(search, join, outer, rel->cheapest_total_path, false);
	else
	{
		best = join_with(search, join, outer, get_cheapest_parallel_safe_total_inner(rel->pathlist), false);
		if (!enable_parallel_hash)
			return best;
		if (rel->partial_pathlist != NIL)
			best = cheaper(search, best, join_with(search, join, outer, linitial(rel->partial_pathlist), true));
	}
	/* the table may be found in its index's copy: that is what is asked for of a Seq Scan, which is not read */
	if (gh_may_have_copy(rel) && gh_note(search->root, rel)->is_readable && bms_is_empty(rel->lateral_relids) &&
		rel->cheapest_total_path->pathtype != T_SeqScan)
		best = cheaper(search, best,
					   join_with(search, join, outer, create_seqscan_path(search->root, rel, NULL, 0), false));
	/* an inner side returns its rows: the executor would run the scans of several tables */
	if (inner_chain == NULL || gh_ends_in_parts(search->root, inner_chain))
		return best;
	return cheaper(search, best, join_with(search, join, outer, inner_chain, search->partial));
}

/*
 * The scan of a table that is a join's inner side, where that has more rows than the outer one, or a copy may
 * be the table of the outer one; or NULL.
 */
static Path *
scan_of_inner(const Search *search, const PlannedJoin *join)
{
	RelOptInfo *rel = below_wrapping(join->inner)->parent;

	return join->jointype == JOIN_INNER && IS_SIMPLE_REL(rel) && !is_made_distinct(join->inner) &&
		(gh_tuples_read(search->root, rel) > join->outer->parent->rows || gh_may_have_copy(join->outer->parent)) ?
		scan_of(search, rel) : NULL;
}

/* The path's joins, down to a table that is read from end to end; NULL: it cannot be. */
static Path *
chain_of(const Search *search, Path *path)
{
	PlannedJoin join;
	Path	   *outer;
	Path	   *inner;
	Path	   *scan;
	Path	   *straight;
	Path	   *turned_around;

	path = below_wrapping(gh_keys_replaced(below_wrapping(path)));
	if (is_made_distinct(path))
		return NULL;
	if (IS_SIMPLE_REL(path->parent))
		return scan_of(search, path->parent);
	if (!find_join(search->root, path, &join))
		return NULL;
	outer = chain_of(search, join.outer);
	inner = IS_JOIN_REL(join.inner->parent) ? chain_of(search, join.inner) : NULL;
	straight = join_chain(search, &join, outer, inner);
	scan = scan_of_inner(search, &join);
	if (scan == NULL)
		return straight;
	turn_around(&join);
	if (IS_SIMPLE_REL(join.inner->parent))
		outer = NULL;
	turned_around = join_chain(search, &join, scan, outer);
	/* by more rows of the inner side, only for its copy */
	if (turned_around != NULL && gh_tuples_read(search->root, scan->parent) <= join.inner->parent->rows &&
		gh_copied_share(search->root, turned_around) == 0)
		return straight;
	return cheaper(search, straight, turned_around);
}

/* What a chain, [0], costs for pages and otherwise, and the plan that it would replace, [1]. */
typedef struct Balance
{
	Cost		pages[2];
	Cost		work[2];
	Cost		doubt;			/* what the plan costs beyond that, and beyond what the chain does */
} Balance;

/* The plan's half. */
static void
weigh_plan(const Search *search, Path *planned, Balance *balance)
{
	balance->pages[1] = pages_cost(search->root, planned, false);
	balance->work[1] = planned->total_cost - balance->pages[1];
	balance->doubt = 0;
	(void) add_doubt(search->root, planned, search->is_cached, &balance->doubt);
}

/* The chain's, and so what of the plan's doubt is not its own; its columns are not there. */
static void
weigh_chain(const Search *search, Path *chain, Balance *balance)
{
	Cost		doubt = 0;
	Cost		saved_pages;
	Cost		saved_rows;

	(void) add_doubt(search->root, chain, search->is_cached, &doubt);
	balance->doubt = Max(balance->doubt - doubt, 0);
	balance->pages[0] = pages_cost(search->root, chain, true);
	balance->work[0] = gh_step(chain)->total_cost - gh_copies_save(search->root, chain) - balance->pages[0];
	gh_inner_chains_save(search->root, chain, &saved_pages, &saved_rows);
	balance->pages[0] -= saved_pages;
	balance->work[0] -= saved_rows;
}

/*
 * Whether the chain does no more work, where the CPU engine has in memory the columns of such a share of its
 * scan's pages; and what it is not charged for.  What is in doubt counts only where the chain costs little
 * more than the plan says, for it may come otherwise.
 */
static bool
pays(const Search *search, Path *scan, double share, Balance balance, GhSpared *spared)
{
	const Cost	plan = balance.pages[1] + balance.work[1];
	Cost		saved_pages;
	Cost		saved_rows;
	Cost		more_pages;

	gh_absorbed_saves(search->root, scan, &saved_pages, &saved_rows);
	balance.pages[0] += saved_pages;
	balance.work[0] += saved_rows;
	gh_columns_save(search->root, scan->parent, share, scan->parallel_workers > 0 ? gh_parallel_divisor(scan->parallel_workers) : 1,
					&saved_pages, &saved_rows);
	balance.pages[0] -= saved_pages;
	balance.work[0] -= saved_rows;
	more_pages = search->is_cached ? Max(balance.pages[0] - balance.pages[1], 0) : 0;
	if (balance.pages[0] - more_pages + balance.work[0] > GH_DOUBT_MOST * plan)
		balance.doubt = 0;
	balance.work[1] += balance.doubt;
	if (balance.work[0] > balance.work[1])
		return false;
	*spared = (GhSpared)
	{
		.pages = balance.work[0] <= GH_SURE_SHARE * balance.work[1] ? more_pages : 0,
			.doubt = balance.doubt,.least = GH_DOUBT_SHARE * plan
	};
	return true;
}

/* Notes the chain if it pays with all columns in memory, which lack. */
static void
note_hopeful(const Search *search, RelOptInfo *rel, Path *chain, Balance balance)
{
	GhNote	   *note = gh_note(search->root, rel);
	Path	   *scan = gh_scan_below_joins(search->root, chain);

	if (gh_columns_lack(search->root, scan->parent) &&
		pays(search, scan, scan->parent->allvisfrac, balance, &note->hopeful_spared[search->partial]))
		note->hopeful[search->partial] = chain;
}

/* No chain, and why. */
static Path *
costs_more(PlannerInfo *root, RelOptInfo *rel)
{
	gh_note(root, rel)->joins_cost_more = true;
	return NULL;
}

/*
 * The joins of the relation's cheapest path as a chain over one scan, on the host; or NULL.  partial: of
 * which each of several processes does a part.
 */
Path *
gh_whole_joins(PlannerInfo *root, RelOptInfo *rel, bool partial)
{
	Path	   *planned = rel->cheapest_total_path;
	Search		search = {root, partial};
	Path	   *chain;
	Path	   *scan;
	double		rows;
	Balance		balance;
	GhSpared	spared;

	if (!IS_JOIN_REL(rel) || !gh_enable_join || !gh_enable_scan || gh_force_offload ||
		(partial && !rel->consider_parallel) || planned->param_info != NULL)
		return NULL;
	search.is_cached = fits_in_cache(root, rel, &rows);
	if (gh_has_few_rows(rows))
		return NULL;
	weigh_plan(&search, planned, &balance);
	/* what a join takes to begin with is more */
	if (balance.work[1] + balance.doubt < gh_setup_cost)
		return costs_more(root, rel);
	chain = chain_of(&search, planned);
	if (chain == NULL || gh_scan_below_joins(root, chain) == NULL || gh_device_reads(root, chain))
		return NULL;
	weigh_chain(&search, chain, &balance);
	scan = gh_scan_below_joins(root, chain);
	note_hopeful(&search, rel, chain, balance);
	if (!pays(&search, scan, gh_columns_share_of(root, scan->parent), balance, &spared))
		return costs_more(root, rel);
	gh_step(chain)->spared = spared;
	return chain;
}

/*
 * Whether the relation's cheapest path takes less than joins that are not made of it, where all tables are
 * expected to be in memory: it looks few rows up in an index, and is charged for each of their pages as if it
 * came from a disk, while the joins read all of a table by columns.
 */
bool
gh_plan_is_lighter(PlannerInfo *root, RelOptInfo *rel, Path *joins)
{
	const Search search = {.root = root,.is_cached = true};
	Path	   *planned = rel->cheapest_total_path;
	Path	   *scan = gh_scan_below_joins(root, joins);
	Balance		balance;
	Cost		saved_pages;
	Cost		saved_rows;
	double		rows;

	if (gh_force_offload || scan == NULL || planned->param_info != NULL || !fits_in_cache(root, rel, &rows) ||
		gh_device_reads(root, joins))
		return false;
	weigh_plan(&search, planned, &balance);
	weigh_chain(&search, joins, &balance);
	gh_columns_saved(root, scan->parent, scan->parallel_workers > 0 ? gh_parallel_divisor(scan->parallel_workers) : 1,
					 &saved_pages, &saved_rows);
	return balance.work[1] + GH_CACHED_PAGE_SHARE * balance.pages[1] + balance.doubt < balance.work[0] - saved_rows;
}
