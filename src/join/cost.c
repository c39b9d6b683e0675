/*
 * cost.c
 *		What a GpuHashJoin costs.
 *
 * What a path says that it costs may be something else: that of the path in the place of which it stands
 * (path.c), or nearly nothing where it is forced.  So it keeps its own costs, and those of a join are reckoned from
 * its inputs' own.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"

#include "aggregate/node.h"
#include "aggregate/rows_path.h"
#include "gpuhash.h"
#include "join/join.h"
#include "join/path.h"
#include "planning.h"
#include "rowscan/rowscan.h"

/* cpu_tuple_cost: an outer row of another plan, copied into a batch.  PostgreSQL's hash join looks it up where it is. */
#define GH_COPIED_ROW_COST 1.0

/* The share of all pairs that the hash clauses leave, taken for an inner join. */
static Selectivity
hash_selectivity(const GhJoinInputs *inputs)
{
	SpecialJoinInfo sjinfo;
	Selectivity result = 1.0;
	ListCell   *lc;

	memset(&sjinfo, 0, sizeof(sjinfo));
	sjinfo.type = T_SpecialJoinInfo;
	sjinfo.min_lefthand = sjinfo.syn_lefthand = inputs->outerrel->relids;
	sjinfo.min_righthand = sjinfo.syn_righthand = inputs->innerrel->relids;
	sjinfo.jointype = JOIN_INNER;
	foreach(lc, inputs->hash_clauses)
		result *= clause_selectivity(inputs->root, (Node *) lfirst(lc), 0, JOIN_INNER, &sjinfo);
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
		inputs->hash_selectivity = hash_selectivity(inputs);
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

/* Bytes of row store and table for the inner side, as estimated. */
static double
estimate_memory(Path *inner)
{
	double		width = inner->pathtarget->width + sizeof(GhRow) + sizeof(Datum);

	return inner->rows * (width + gh_table_bytes_per_row());
}

/*
 * How much of the inner side memory is expected to hold: 1 or more is all of it.  Processes with a common table put
 * their memory together.
 */
static double
share_in_memory(Path *inner, int workers, bool common_table)
{
	double		memory = estimate_memory(inner);
	double		limit = get_hash_memory_limit();

	if (common_table)
	{
		/* as the inner path's rows were divided: among fewer workers, it may be */
		memory *= gh_parallel_divisor(inner->parallel_workers);
		limit *= workers + 1;
	}
	return limit / memory;
}

/* Whether the inner side of such a path is expected to fit in memory, in one part. */
bool
gh_join_fits_in_memory(const CustomPath *path)
{
	return share_in_memory(lsecond(path->custom_paths), path->path.parallel_workers, path->path.parallel_aware) >= 1.0;
}

/*
 * What the path really costs: where it or, below a Gather, its rows stand in for a path of PostgreSQL's at that
 * one's cost, or at a forced one.
 */
void
gh_real_cost(Path *path, Cost *startup, Cost *total)
{
	Path	   *own = path;
	Cost		own_startup;
	Cost		own_total;

	*startup = path->startup_cost;
	*total = path->total_cost;
	if (IsA(own, GatherPath))
		own = ((GatherPath *) own)->subpath;
	else if (IsA(own, GatherMergePath))
		own = ((GatherMergePath *) own)->subpath;
	if (gh_is_join_path(own))
		gh_read_costs(list_nth(((CustomPath *) own)->custom_private, GH_PATH_COSTS), &own_startup, &own_total);
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

/* Whether outer rows come from pages that the join reads, or from another join of ours, and not one by one. */
static bool
reads_outer_side(Path *outer)
{
	return outer->pathtype == T_SeqScan || gh_is_join_path(outer) || gh_rows_joins(outer) != NULL;
}

/* Pages of rows in temporary files, as PostgreSQL's hash join counts them. */
static double
spilled_pages(Path *path)
{
	return ceil(path->rows * (path->pathtarget->width + sizeof(GhRow) + sizeof(Datum)) /
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
	double		in_memory = share_in_memory(inner, choice->workers, choice->common_table);
	Cost		outer_startup;
	Cost		outer_total;
	Cost		inner_startup;
	Cost		inner_total;
	Cost		startup;
	Cost		run;

	gh_real_cost(outer, &outer_startup, &outer_total);
	gh_real_cost(inner, &inner_startup, &inner_total);
	/* parameters bring more clauses */
	if (choice->has_parameters)
		cost_qual_eval(&quals, choice->clauses, inputs->root);
	startup = outer_startup + inner_total + gh_setup_cost + gh_build_tuple_cost * inner->rows;
	run = outer_total - outer_startup + gh_probe_tuple_cost * outer->rows;
	if (!reads_outer_side(outer))
		run += GH_COPIED_ROW_COST * cpu_tuple_cost * outer->rows;
	if (inputs->keys_are_exact)
		/* the look-up's own price covers them once */
		quals.per_tuple -= inputs->hash_cost.per_tuple;
	else
	{
		startup += cpu_operator_cost * list_length(inputs->hash_clauses) * inner->rows;
		run += inputs->hash_cost.per_tuple * outer->rows;
	}
	startup += quals.startup;
	run += (cpu_tuple_cost + quals.per_tuple) * looked_at_pairs(inputs, outer, inner);
	if (in_memory < 1.0)
	{
		double		spilled = 1.0 - in_memory;

		startup += seq_page_cost * spilled * spilled_pages(inner);
		run += seq_page_cost * spilled * (spilled_pages(inner) + 2 * spilled_pages(outer));
	}
	startup += target->cost.startup;
	run += target->cost.per_tuple * choice->rows;

	choice->startup_cost = startup;
	choice->total_cost = startup + run;
}

/* Whether a path over these two wins against all paths, the cheapest of which come first, by a clear margin. */
bool
gh_wins_clearly(List *paths, Path *outer, Path *inner, Cost total)
{
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		Cost		path_startup;
		Cost		path_total;

		if (path->param_info != NULL)
			continue;
		if (gh_has_more_disabled_nodes(path, outer, inner))
			return true;
		gh_real_cost(path, &path_startup, &path_total);
		return total <= GH_CLEAR_SHARE * path_total;
	}
	return true;
}
