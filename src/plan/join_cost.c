/*
 * join_cost.c
 *		What a GpuHashJoin costs.
 *
 * What a path says that it costs may be something else: that of the path in the place of which it stands
 * (join_path.c), or nearly nothing where it is forced.  So it keeps its own costs, and those of a join are
 * reckoned from its inputs' own.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "expr/key.h"
#include "gpuhash.h"
#include "plan/aggregate_plan.h"
#include "plan/host_rows.h"
#include "plan/join_path.h"
#include "plan/join_plan.h"
#include "plan/note.h"
#include "plan/parts_path.h"
#include "plan/planning.h"
#include "plan/rows_path.h"
#include "plan/scan_path.h"
#include "service/placement.h"

/*
 * cpu_tuple_cost: an outer row of another plan, copied into a batch.  PostgreSQL's hash join looks it up
 * where it is.
 */
#define GH_COPIED_ROW_COST 1.0

/* The share of all pairs of the relations' rows that a clause leaves, taken for an inner join. */
Selectivity
gh_pair_selectivity(PlannerInfo *root, RelOptInfo *outerrel, RelOptInfo *innerrel, RestrictInfo *clause)
{
	SpecialJoinInfo sjinfo;

	memset(&sjinfo, 0, sizeof(sjinfo));
	sjinfo.type = T_SpecialJoinInfo;
	sjinfo.min_lefthand = sjinfo.syn_lefthand = outerrel->relids;
	sjinfo.min_righthand = sjinfo.syn_righthand = innerrel->relids;
	sjinfo.jointype = JOIN_INNER;
	return clause_selectivity(root, (Node *) clause, 0, JOIN_INNER, &sjinfo);
}

/* The share of all pairs that clauses which are hashed leave, taken for an inner join. */
Selectivity
gh_hash_selectivity(const GhJoinInputs *inputs, List *hash_clauses)
{
	Selectivity result = 1.0;
	ListCell   *lc;

	foreach(lc, hash_clauses)
		result *= gh_pair_selectivity(inputs->root, inputs->outerrel, inputs->innerrel,
									  lfirst_node(RestrictInfo, lc));
	return result;
}

/* What the costs of all the paths need. */
void
gh_prepare_join_costs(GhJoinInputs *inputs)
{
	List	   *clauses = inputs->extra->restrictlist;

	/* as add_paths_to_joinrel() has it; a join with a unique-ified side is inner here */
	inputs->has_semifactors = inputs->jointype == JOIN_SEMI || inputs->jointype == JOIN_ANTI ||
		inputs->extra->inner_unique;
	if (!inputs->has_semifactors)
		inputs->hash_selectivity = gh_hash_selectivity(inputs, inputs->hash_clauses);
	cost_qual_eval(&inputs->qual_cost, clauses, inputs->root);
	if (inputs->hash_clauses == clauses)
		inputs->hash_cost = inputs->qual_cost;
	else
		cost_qual_eval(&inputs->hash_cost, inputs->hash_clauses, inputs->root);
}

/*
 * Pairs of rows that the look-up gives and that are looked at, counted as PostgreSQL's
 * hash join counts them, lest like be held against unlike: also with a common table, of
 * which it takes the inner rows of one process.
 */
static double
looked_at_pairs(const GhJoinInputs *inputs, Path *outer, Path *inner)
{
	double		matched;

	if (!inputs->has_semifactors)
		return clamp_row_est(outer->rows * inner->rows * inputs->hash_selectivity);
	matched = rint(outer->rows * inputs->extra->semifactors.outer_match_frac);
	return clamp_row_est(inputs->jointype == JOIN_ANTI ? outer->rows - matched : matched);
}

/* Whether the inner column is read above the join, as far as is known. */
static bool
is_kept(const GhJoinInputs *inputs, Node *expr)
{
	Var		   *var = (Var *) expr;
	RelOptInfo *rel;

	if (!IsA(var, Var) || IS_OTHER_REL(inputs->innerrel))
		return true;
	rel = find_base_rel(inputs->root, var->varno);
	return var->varattno < rel->min_attr ||
		!bms_is_subset(rel->attr_needed[var->varattno - rel->min_attr], inputs->joinrel->relids);
}

/*
 * Whether the table's keys and values are expected to have 4 bytes, not 8.  They have where keys are that
 * short, but for values that are inner columns of 5 to 8 bytes (../join/carry.c), which these are unless keys
 * come again.
 */
static bool
entries_seem_narrow(const GhJoinInputs *inputs)
{
	int			bytes = 0;
	ListCell   *lc;

	if (!inputs->keys_are_short)
		return false;
	if (inputs->jointype != JOIN_INNER && inputs->jointype != JOIN_LEFT)
		return true;
	foreach(lc, inputs->innerrel->reltarget->exprs)
	{
		int16		len;
		bool		byval;

		if (!is_kept(inputs, lfirst(lc)))
			continue;
		get_typlenbyval(exprType(lfirst(lc)), &len, &byval);
		if (!byval)
			return true;
		bytes += len;
	}
	return bytes <= (int) sizeof(uint32) || bytes > (int) sizeof(uint64);
}

/* Bytes of row store and table for the inner side, as estimated, with keys and values of so many bytes. */
static double
estimate_memory(Path *inner, Size word)
{
	double		width = inner->pathtarget->width + GH_ROW_HEADER_BYTES + sizeof(Datum);

	return inner->rows * (width + gh_table_bytes_per_row(word));
}

/*
 * How much of the inner side memory is expected to hold: 1 or more is all of it.  Processes with a common
 * table put their memory together.
 */
static double
share_in_memory(Path *inner, Size word, int workers, bool common_table)
{
	double		memory = estimate_memory(inner, word);
	double		limit = get_hash_memory_limit();

	if (common_table)
	{
		/* as the inner path's rows were divided: among fewer workers, it may be */
		memory *= gh_parallel_divisor(inner->parallel_workers);
		limit *= workers + 1;
	}
	return limit / memory;
}

/* Whether an inner side is expected to fit in the memory of one process, with a table. */
bool
gh_side_fits_in_memory(Path *inner)
{
	return share_in_memory(inner, sizeof(uint64), 0, false) >= 1.0;
}

/*
 * Whether the inner side of such a path is expected to fit in memory, in one part, for a node above that
 * looks rows up in the table.
 */
bool
gh_join_fits_in_memory(const CustomPath *path)
{
	return share_in_memory(lsecond(path->custom_paths), sizeof(uint64), path->path.parallel_workers,
						   path->path.parallel_aware) >= 1.0;
}

/* What the processes of a parallel plan do, each its part; else the path itself. */
Path *
gh_below_gather(Path *path)
{
	if (IsA(path, ProjectionPath))
		path = ((ProjectionPath *) path)->subpath;
	if (IsA(path, GatherPath))
		path = ((GatherPath *) path)->subpath;
	else if (IsA(path, GatherMergePath))
		path = ((GatherMergePath *) path)->subpath;
	if (IsA(path, ProjectionPath))
		path = ((ProjectionPath *) path)->subpath;
	return path;
}

/*
 * What the path really costs: where it or, below a Gather, its rows stand in for a path of PostgreSQL's at
 * that one's cost, or at a forced one.
 */
void
gh_real_cost(Path *path, Cost *startup, Cost *total)
{
	Path	   *own = IsA(path, CustomPath) ? path : gh_below_gather(path);
	Cost		own_startup;
	Cost		own_total;

	*startup = path->startup_cost;
	*total = path->total_cost;
	if (!IsA(own, CustomPath))
		return;
	if (gh_is_join_path(own))
	{
		own_startup = gh_step(own)->startup_cost;
		own_total = gh_step(own)->total_cost;
	}
	else if (gh_is_rowscan_path(own))
		gh_rowscan_cost(own, &own_startup, &own_total);
	else if (gh_rows_joins(own) != NULL && !gh_force_offload)
		gh_read_costs(list_nth(((CustomPath *) own)->custom_private, GH_ROWS_PATH_COSTS), &own_startup, &own_total);
	else if (gh_rows_joins(own) != NULL)
	{
		own_startup = own->startup_cost / GH_FORCED_SCALE;
		own_total = own->total_cost / GH_FORCED_SCALE;
	}
	else
		return;
	*startup += own_startup - own->startup_cost;
	*total += own_total - own->total_cost;
}

/*
 * The same of a hash join of PostgreSQL's: less than it says by what its sides do.  One that stands in for a
 * nested loop (loops.c) says that it begins as early as that.
 */
void
gh_real_hash_join_cost(JoinPath *join, Cost *startup, Cost *total)
{
	Path	   *outer = join->outerjoinpath;
	Path	   *inner = join->innerjoinpath;
	Cost		side_startup;
	Cost		side_total;

	gh_real_cost(outer, &side_startup, &side_total);
	*startup = join->path.startup_cost - (outer->startup_cost - side_startup);
	*total = join->path.total_cost - (outer->total_cost - side_total);
	gh_real_cost(inner, &side_startup, &side_total);
	*startup -= inner->total_cost - side_total;
	*total -= inner->total_cost - side_total;
	*startup = Max(*startup, side_total);
}

/*
 * Whether outer rows come from pages that the join, or the node above the chain that it is in, reads, or from
 * another join of ours, and not one by one.
 */
static bool
reads_outer_side(const GhJoinInputs *inputs, Path *outer)
{
	return outer->pathtype == T_SeqScan || gh_is_join_path(outer) || gh_rows_joins(outer) != NULL ||
		(inputs->is_in_chain && gh_is_parts_scan(inputs->root, outer));
}

/* Pages of rows in temporary files, as PostgreSQL's hash join counts them. */
static double
spilled_pages(Path *path)
{
	return ceil(path->rows * (path->pathtarget->width + GH_ROW_HEADER_BYTES + sizeof(Datum)) /
				BLCKSZ);
}

/*
 * Startup: the whole inner side, stored and entered.  Then, for each outer row,
 * its look-up; for each match, the rechecks and join quals, and PostgreSQL's
 * usual cost of making a row.  Where keys are hashed, that is done for the rows of
 * both sides, and the hash clauses are rechecked.  Where memory does not hold the inner
 * side, all but the first partition of both sides is written and read once.
 *
 * Of a parallel path, this is what one process does.  Those with a common table put
 * their memory together.
 */
void
gh_cost_join(const GhJoinInputs *inputs, GhJoinChoice *choice)
{
	Path	   *outer = choice->outer;
	Path	   *inner = choice->inner;
	PathTarget *target = inputs->joinrel->reltarget;
	QualCost	quals = inputs->qual_cost;
	double		in_memory = share_in_memory(inner, sizeof(uint64), choice->workers, choice->common_table);
	Cost		outer_startup;
	Cost		outer_total;
	Cost		inner_startup;
	Cost		inner_total;
	Cost		startup;
	Cost		run;

	if (in_memory < 1.0 && entries_seem_narrow(inputs))
		in_memory = share_in_memory(inner, sizeof(uint32), choice->workers, choice->common_table);
	gh_real_cost(outer, &outer_startup, &outer_total);
	gh_real_cost(inner, &inner_startup, &inner_total);
	/* parameters bring more clauses */
	if (choice->has_parameters)
		cost_qual_eval(&quals, choice->clauses, inputs->root);
	choice->inner_cost = inner_total + gh_build_tuple_cost * inner->rows;
	startup = outer_startup + choice->inner_cost + gh_setup_cost;
	run = outer_total - outer_startup + gh_probe_tuple_cost * outer->rows;
	if (!reads_outer_side(inputs, outer))
		run += GH_COPIED_ROW_COST * cpu_tuple_cost * outer->rows;
	if (inputs->keys_are_exact)
		/* the look-up's own price covers them once */
		quals.per_tuple -= inputs->hash_cost.per_tuple;
	else
	{
		choice->inner_cost += cpu_operator_cost * list_length(inputs->hash_clauses) * inner->rows;
		startup += cpu_operator_cost * list_length(inputs->hash_clauses) * inner->rows;
		run += inputs->hash_cost.per_tuple * outer->rows;
	}
	startup += quals.startup;
	run += (cpu_tuple_cost + quals.per_tuple) * looked_at_pairs(inputs, outer, inner);
	if (in_memory < 1.0)
	{
		double		spilled = 1.0 - in_memory;
		Cost		written = seq_page_cost * spilled * spilled_pages(inner);
		Cost		read = seq_page_cost * spilled * (spilled_pages(inner) + 2 * spilled_pages(outer));

		choice->inner_cost += written + read;
		startup += written;
		run += read;
	}
	startup += target->cost.startup;
	run += target->cost.per_tuple * choice->rows;

	choice->startup_cost = startup;
	choice->total_cost = startup + run;
}

/* Of a join of ours the answer is kept.  It costs what its sides really do. */
static Cost
whole_tables_cost_of_sides(PlannerInfo *root, CustomPath *path, bool on_device)
{
	GhJoinStep *step = gh_is_join_path(&path->path) ? gh_step(&path->path) : NULL;
	Cost		costs[2] = {0, 0};
	ListCell   *lc;

	if (step != NULL && step->has_whole_tables_cost)
		return step->whole_tables_cost[on_device];
	foreach(lc, path->custom_paths)
	{
		costs[0] += gh_whole_tables_cost(root, lfirst(lc), false, true);
		costs[1] += gh_whole_tables_cost(root, lfirst(lc), true, true);
	}
	if (step != NULL)
	{
		step->has_whole_tables_cost = true;
		memcpy(step->whole_tables_cost, costs, sizeof(costs));
	}
	return costs[on_device];
}

/*
 * A GpuHashScan costs as a Seq Scan does, or, by itself or where its real cost counts, what it takes a
 * device.
 */
static Cost
whole_table_cost(PlannerInfo *root, Path *path, bool on_device, bool real)
{
	RelOptInfo *rel = path->parent;
	Cost		saved = 0;
	Cost		rows;
	Cost		startup;
	Cost		total;

	if (!on_device && gh_is_rowscan_path(path) && gh_note(root, rel)->on_device)
	{
		gh_rowscan_cost(path, &startup, &total);
		on_device = (real || path->total_cost == total) && gh_rowscan_is_for_device(root, path);
	}
	if (!on_device && real && gh_is_rowscan_path(path))
		gh_condition_columns_save(root, rel, 1.0, &saved, &rows);
	else if (!on_device && real)
		gh_absorbed_saves(root, path, &saved, &rows);
	return gh_note_page_cost(root, rel, on_device) * rel->pages - saved;
}

static Cost
whole_tables_cost_of_parts(PlannerInfo *root, AppendPath *path, bool on_device)
{
	Cost		cost = 0;
	ListCell   *lc;

	foreach(lc, path->subpaths)
		cost += gh_whole_tables_cost(root, lfirst(lc), on_device, false);
	return cost;
}

/*
 * What the pages cost of the tables that the path reads from end to end, once each: not of those below an
 * index, or on the inner side of a nested loop.  It is what the path is charged for them, of what it really
 * costs (gh_real_cost) or says that it does; on_device: what they would cost where a device reads them.
 */
Cost
gh_whole_tables_cost(PlannerInfo *root, Path *path, bool on_device, bool real)
{
	switch (nodeTag(path))
	{
		case T_AppendPath:
			return whole_tables_cost_of_parts(root, (AppendPath *) path, on_device);
		case T_Path:
		case T_CustomPath:
			if (path->pathtype == T_SeqScan || gh_is_rowscan_path(path))
				return whole_table_cost(root, path, on_device, real);
			if (IsA(path, Path))
				return 0;
			/* a GpuHashRows costs what it takes a device */
			return whole_tables_cost_of_sides(root, (CustomPath *) path, on_device || gh_rows_joins(path) != NULL);
		case T_HashPath:
		case T_MergePath:
			return gh_whole_tables_cost(root, ((JoinPath *) path)->outerjoinpath, on_device, false) +
				gh_whole_tables_cost(root, ((JoinPath *) path)->innerjoinpath, on_device, false);
		case T_NestPath:
			return gh_whole_tables_cost(root, ((JoinPath *) path)->outerjoinpath, on_device, false);
		case T_GatherPath:
			return gh_whole_tables_cost(root, ((GatherPath *) path)->subpath, on_device, real);
		case T_GatherMergePath:
			return gh_whole_tables_cost(root, ((GatherMergePath *) path)->subpath, on_device, real);
		case T_ProjectionPath:
			return gh_whole_tables_cost(root, ((ProjectionPath *) path)->subpath, on_device, false);
		case T_SortPath:
			return gh_whole_tables_cost(root, ((SortPath *) path)->subpath, on_device, false);
		default:
			return 0;
	}
}

/* Likewise of a chain that is an inner side, and of those below it. */
static void
add_inner_chain(PlannerInfo *root, Path *chain, Cost *pages, Cost *rows)
{
	Path	   *scan = gh_scan_below_joins(root, chain);
	double		divisor = chain->parallel_workers > 0 ? gh_parallel_divisor(chain->parallel_workers) : 1.0;
	Cost		below_pages;
	Cost		below_rows;
	Cost		saved_pages;
	Cost		saved_rows;
	Cost		spared_pages;
	Cost		spared_rows;

	if (scan == NULL)
		return;
	gh_inner_chains_save(root, chain, &below_pages, &below_rows);
	*pages += below_pages;
	*rows += below_rows;
	if (chain->rows * divisor > scan->parent->tuples / GH_READ_FOR_ONE ||
		gh_columns_share_of(root, scan->parent) < GH_COLUMNS_THERE)
		return;
	gh_columns_saved(root, scan->parent, divisor, &saved_pages, &saved_rows);
	/* of columns that conditions read it is known already */
	gh_absorbed_saves(root, scan, &spared_pages, &spared_rows);
	*pages += Max(saved_pages - spared_pages, 0);
	*rows += Max(saved_rows - spared_rows, 0);
}

/*
 * What the inner sides of joins cost less that are chains of joins, where these are expected to be done by
 * pipelines out of columns in memory (host_rows.c): for pages, and for rows.
 */
void
gh_inner_chains_save(PlannerInfo *root, Path *joins, Cost *pages, Cost *rows)
{
	*pages = *rows = 0;
	if (!gh_host_rows_are_expected())
		return;
	for (; gh_is_join_path(joins); joins = linitial(((CustomPath *) joins)->custom_paths))
	{
		Path	   *inner = gh_below_gather(lsecond(((CustomPath *) joins)->custom_paths));

		if (gh_is_join_path(inner))
			add_inner_chain(root, inner, pages, rows);
	}
}

/* The tables of which a clause compares columns, or others that equal these. */
static Relids
compared_tables(const RestrictInfo *clause)
{
	return clause->parent_ec != NULL ? clause->parent_ec->ec_relids : clause->clause_relids;
}

/*
 * What the selectivities are, multiplied, of all the clauses that compare the same two tables as one that
 * is more selective.
 */
static Selectivity
doubtful_selectivity(PlannerInfo *root, RelOptInfo *outerrel, RelOptInfo *innerrel, List *clauses)
{
	Selectivity result = 1.0;
	ListCell   *lc;
	ListCell   *lo;

	foreach(lc, clauses)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, lc);
		Selectivity own = gh_pair_selectivity(root, outerrel, innerrel, clause);

		foreach(lo, clauses)
		{
			RestrictInfo *other = lfirst_node(RestrictInfo, lo);
			Selectivity others = gh_pair_selectivity(root, outerrel, innerrel, other);

			/* of two that are alike, the first counts */
			if (others > own || (others == own && foreach_current_index(lo) >= foreach_current_index(lc)))
				continue;
			if (bms_membership(bms_intersect(compared_tables(clause),
											 compared_tables(other))) == BMS_MULTIPLE)
			{
				result *= own;
				break;
			}
		}
	}
	return result;
}

static double
cautious_path_rows(PlannerInfo *root, Path *path)
{
	Path	   *joins = gh_rows_joins(path);
	List	   *sides;

	if (joins != NULL)
		path = joins;
	if (!gh_is_join_path(path))
		return path->rows;
	sides = ((CustomPath *) path)->custom_paths;
	return gh_cautious_rows(root, gh_step(path), path->rows, linitial(sides), lsecond(sides));
}

/*
 * How many rows may come out of a join of ours, where so many are expected, at most by what its clauses
 * tell one by one.  The planner multiplies the selectivities of all of them; but columns that make up a key
 * together are not independent, and where two tables are joined by such ones, the product is wrong by as
 * much as the other columns have values.
 */
double
gh_cautious_rows(PlannerInfo *root, GhJoinStep *step, double rows, Path *outer, Path *inner)
{
	GhJoinPair *pair = step->pair;
	double		outer_rows;
	double		most;

	if (step->cautious_rows > 0)
		return step->cautious_rows;
	if (!pair->has_doubtful)
		pair->doubtful = doubtful_selectivity(root, outer->parent, inner->parent, step->equalities);
	pair->has_doubtful = true;
	outer_rows = cautious_path_rows(root, outer);
	most = outer_rows * cautious_path_rows(root, inner) * rows / Max(outer->rows * inner->rows, 1) / pair->doubtful;
	/* whether the inner rows are unique, or just one of them counts */
	if (step->inner_unique || step->jointype == JOIN_SEMI)
		most = Min(most, outer_rows);
	/* how many rows lack a match is what is left of all, and a guess */
	step->cautious_rows = step->jointype == JOIN_ANTI ? outer_rows : Max(most, rows);
	return step->cautious_rows;
}

/*
 * Of these paths, the cheapest of which come first, the one that a path over outer and inner has to beat;
 * NULL: there is none, or it has more disabled nodes.  *total: what it costs.
 */
Path *
gh_path_to_beat(List *paths, Path *outer, Path *inner, Cost *total)
{
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		Cost		startup;

		if (path->param_info != NULL)
			continue;
		if (gh_has_more_disabled_nodes(path, outer, inner))
			return NULL;
		gh_real_cost(path, &startup, total);
		return path;
	}
	return NULL;
}

/* Whether a path over these two that costs so much wins against all paths by a clear margin. */
bool
gh_wins_clearly(List *paths, Path *outer, Path *inner, Cost total)
{
	Cost		other;

	return gh_path_to_beat(paths, outer, inner, &other) == NULL || total <= GH_CLEAR_SHARE * other;
}
