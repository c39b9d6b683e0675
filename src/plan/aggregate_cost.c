/*
 * aggregate_cost.c
 *		What a GpuHashAggregate costs.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "expr/aggregates.h"
#include "expr/translate.h"
#include "compat.h"
#include "fragment/costs.h"
#include "gpuhash.h"
#include "plan/aggregate_path.h"
#include "plan/chain.h"
#include "plan/doubt.h"
#include "plan/input_path.h"
#include "plan/join_path.h"
#include "plan/planning.h"
#include "plan/rows_path.h"
#include "plan/wide_texts.h"

/*
 * What a row costs that is read from a page by programs, beside PostgreSQL's executor; each
 * in the unit that it names.  To be calibrated on the benchmarks.
 */
#define GH_KEY_COST 0.5			/* cpu_operator_cost: a key hashed and compared */
#define GH_ADD_COST 0.2			/* cpu_operator_cost: a value added to its group */

/*
 * A sort of values that are in order, a row; and one of the values of aggregates with DISTINCT: its group is
 * made, and added to one of the second level.  Each in cpu_tuple_cost.  Measured on 300,000 and 2 million
 * integers, all different, in memory and through files, and on a million rows in a third as many groups,
 * beside PostgreSQL's scan of an index.
 */
#define GH_ORDERED_ROW_COST 0.5
#define GH_VALUE_COST 2.5

/* Where a table is so far in the order of a column, a sort finds its values in order. */
#define GH_IN_ORDER 0.99

/*
 * Where it is in the order of the first key of a sort, by this key and values with DISTINCT: what PostgreSQL
 * counts for it in vain, beside what it costs to hash the values.  Measured on a million rows and a third as
 * many groups, of which this node takes 0.84 of PostgreSQL's time in memory, and 1.06 to 1.37 through files,
 * and of which mostly fewer are expected.
 */
#define GH_ORDERED_KEY_SHARE 1.1

/*
 * Bytes of a group beside its keys and states: its hash, its place in the table; the head of its record in a
 * file.
 */
#define GH_GROUP_OVERHEAD 24.0

/* Keys of so many bytes together are one number in a file. */
#define GH_PACKED_BYTES 8

/* Bytes of the kinds of other keys there. */
#define GH_KIND_BYTES 8.0

/* Bytes of a state in a file: of a count, and of most others. */
#define GH_COUNT_BYTES 8.0
#define GH_STATE_BYTES 24.0

/*
 * A text that is the least or the greatest of a group: beside its state in memory and in a file, its bytes
 * and what it takes to write, read and merge it, in cpu_tuple_cost.  Measured on 2 million groups of one row
 * each, of texts of 32 bytes.
 */
#define GH_TEXT_OVERHEAD 40.0
#define GH_TEXT_MERGE_COST 10.0

/*
 * A row that has a wide text (wide_texts.c), and is handed back for it, beside what PostgreSQL does for it:
 * in cpu_tuple_cost. Measured on 100,000 texts of 2.6 kB that are compressed to 110 bytes.
 */
#define GH_WIDE_ROW_COST 2.0

/*
 * What it costs to find a row's group and to add to its states; also to merge two groups, or one into
 * another.
 */
static Cost
group_cost(const GhGrouping *grouping)
{
	return cpu_operator_cost * (GH_KEY_COST * list_length(grouping->keys) +
								GH_ADD_COST * (list_length(grouping->aggregates) + list_length(grouping->distinct)));
}

/* Whether a device is expected to group the rows. */
bool
gh_aggregate_is_for_device(const GhAggregateInputs *inputs, Path *child)
{
	return (inputs->pages || inputs->join != NULL || inputs->partial_join != NULL) &&
		!gh_grouping_is_for_host(&inputs->grouping) && gh_device_reads(inputs->root, child);
}

/* Of rows, how many are added to groups: each to one of each argument of aggregates with DISTINCT. */
static double
rows_added(const GhAggregateInputs *inputs, double rows)
{
	return rows * Max(list_length(inputs->grouping.distinct_arguments), 1);
}

/*
 * A device adds a row to its group while it reads others; to groups of further arguments it adds it as one
 * that a join makes.
 */
static Cost
device_rows_cost(const GhAggregateInputs *inputs, double rows)
{
	return GH_DEVICE_LINE_COST * cpu_tuple_cost * (rows_added(inputs, rows) - rows);
}

/* What one process does until its rows are in groups, spilling aside. */
static Cost
rows_cost(const GhAggregateInputs *inputs, Path *child, double divisor)
{
	double		rows = inputs->rows / divisor;
	Cost		cost = group_cost(&inputs->grouping) * rows_added(inputs, rows);

	/* they do not leave it */
	if (inputs->below != NULL && child->parallel_workers == 0)
		return inputs->below->path.startup_cost + device_rows_cost(inputs, rows) + group_cost(&inputs->grouping) * inputs->groups;
	if (gh_aggregate_is_for_device(inputs, child))
		return gh_device_reading_cost(inputs->root, child) + device_rows_cost(inputs, inputs->rows) +
			group_cost(&inputs->grouping) * inputs->groups;
	if (inputs->wide && (inputs->pages || inputs->join != NULL || inputs->partial_join != NULL))
		cost += GH_WIDE_ROW_COST * cpu_tuple_cost * rows;
	if (inputs->pages)
		cost += gh_pages_cost(inputs->root, child, inputs->ninstructions, divisor);
	else if (inputs->join != NULL || inputs->partial_join != NULL)
		cost += gh_joins_cost(inputs->root, child, &gh_step(child)->spared, inputs->ninstructions, divisor);
	else
		cost += child->total_cost +
			rows * (GH_KEPT_ROW_COST * cpu_tuple_cost +
					GH_INSTRUCTION_COST * cpu_operator_cost * inputs->ninstructions);
	return cost;
}

/* Bytes of the texts that a group's aggregates keep; *count: how many they are. */
static double
text_bytes(const GhAggregateInputs *inputs, int *count)
{
	double		bytes = 0.0;
	ListCell   *lc;

	*count = 0;
	foreach(lc, inputs->grouping.aggregates)
	{
		Aggref	   *aggref = lfirst_node(Aggref, lc);

		if (!gh_compares_texts(aggref))
			continue;
		bytes += GH_TEXT_OVERHEAD + gh_text_width(inputs->root, gh_aggregate_argument(aggref));
		++*count;
	}
	return bytes;
}

/* Bytes of the keys that are wide texts, which the width of what comes out has as they are stored. */
static double
wide_key_bytes(const GhAggregateInputs *inputs)
{
	double		bytes = 0.0;
	ListCell   *lc;

	foreach(lc, inputs->grouping.keys)
	{
		if (inputs->wide && IsA(lfirst(lc), Var) && gh_is_wide_text(inputs->root, lfirst(lc)))
			bytes += GH_WIDE_TEXT_BYTES;
	}
	return bytes;
}

/* What it takes to merge so many groups into others, beside what it takes to find these. */
static Cost
texts_cost(const GhAggregateInputs *inputs, double groups)
{
	int			count;

	(void) text_bytes(inputs, &count);
	return GH_TEXT_MERGE_COST * cpu_tuple_cost * count * groups;
}

/* Bytes of a group in memory. */
static double
group_bytes(const GhAggregateInputs *inputs)
{
	const GhGrouping *grouping = &inputs->grouping;
	int			count;

	return GH_GROUP_OVERHEAD + inputs->by.target->width + wide_key_bytes(inputs) + text_bytes(inputs, &count) +
		list_length(grouping->keys) * sizeof(GhSqlValue) +
		list_length(grouping->aggregates) * (sizeof(GhAggregateState) + sizeof(GhSide *));
}

/* Bytes of keys that are numbers alone; more than are packed: some key is not. */
static int
number_bytes(const GhGrouping *grouping)
{
	int			bytes = 0;
	ListCell   *lc;

	foreach(lc, grouping->keys)
	{
		int16		length;
		bool		by_value;

		get_typlenbyval(exprType(lfirst(lc)), &length, &by_value);
		bytes += by_value ? length : GH_PACKED_BYTES + 1;
	}
	return bytes;
}

/* Bytes of a group's keys in a file: of several arguments with DISTINCT, all but one are NULL. */
static double
key_bytes_in_file(const GhAggregateInputs *inputs)
{
	const GhGrouping *grouping = &inputs->grouping;
	int			nnull = Max(list_length(grouping->distinct_arguments) - 1, 0);
	double		bytes = GH_KIND_BYTES;
	ListCell   *lc;

	if (number_bytes(grouping) <= GH_PACKED_BYTES)
		return 0.0;
	foreach(lc, grouping->keys)
	{
		int16		length;
		bool		by_value;

		get_typlenbyval(exprType(lfirst(lc)), &length, &by_value);
		bytes += by_value ? sizeof(uint64) : sizeof(uint64) + gh_text_width(inputs->root, lfirst(lc));
	}
	return bytes - nnull * (double) sizeof(uint64);
}

/* Bytes of a group in a file (../aggregate/records.c). */
static double
file_bytes(const GhAggregateInputs *inputs)
{
	const GhGrouping *grouping = &inputs->grouping;
	int			count;
	double		bytes = GH_GROUP_OVERHEAD + key_bytes_in_file(inputs) + text_bytes(inputs, &count);
	ListCell   *lc;

	foreach(lc, grouping->aggregates)
	{
		const GhAggregateFunction *function = gh_find_aggregate(lfirst_node(Aggref, lc)->aggfnoid);

		bytes += function != NULL && function->kind <= GH_AGGREGATE_COUNT ? GH_COUNT_BYTES : GH_STATE_BYTES;
	}
	return bytes;
}

/* How far a table is in the order of a column, 0 to 1. */
static double
order_of(PlannerInfo *root, Node *column)
{
	VariableStatData data;
	AttStatsSlot slot;
	double		order = 0.0;

	examine_variable(root, column, 0, &data);
	if (HeapTupleIsValid(data.statsTuple) &&
		get_attstatsslot(&slot, data.statsTuple, STATISTIC_KIND_CORRELATION, InvalidOid, ATTSTATSSLOT_NUMBERS))
	{
		if (slot.nnumbers == 1)
			order = slot.numbers[0] * slot.numbers[0];
		free_attstatsslot(&slot);
	}
	ReleaseVariableStats(data);
	return order;
}

/*
 * How far rows of the same group lie together, 0 to 1: as far as the table that is read is in the order of a
 * key.
 */
static double
clustering(const GhAggregateInputs *inputs)
{
	Path	   *scan = inputs->join != NULL ? inputs->join : inputs->partial_join;
	double		most = 0.0;
	ListCell   *lc;

	if (scan != NULL)
		scan = gh_scan_below_joins(inputs->root, scan);
	else if (!inputs->pages)
		return 0.0;
	foreach(lc, inputs->grouping.keys)
	{
		Node	   *key = lfirst(lc);

		if (!IsA(key, Var) ||
			((Var *) key)->varno != (scan != NULL ? scan->parent->relid : inputs->input_rel->relid))
			continue;
		most = Max(most, order_of(inputs->root, key));
	}
	return most;
}

/* The same of a table's partitions, or children: of that which is least so. */
static double
order_in_parts(PlannerInfo *root, const Var *column)
{
	double		least = 1.0;
	ListCell   *lc;

	if (!planner_rt_fetch(column->varno, root)->inh)
		return order_of(root, (Node *) column);
	foreach(lc, root->append_rel_list)
	{
		AppendRelInfo *part = lfirst_node(AppendRelInfo, lc);
		Node	   *of_part;

		if (part->parent_relid != column->varno)
			continue;
		of_part = column->varattno > 0 ? list_nth(part->translated_vars, column->varattno - 1) : NULL;
		if (of_part == NULL || !IsA(of_part, Var))
			return 0.0;
		least = Min(least, order_in_parts(root, (Var *) of_part));
		if (least < GH_IN_ORDER)
			break;
	}
	return least;
}

/*
 * Whether the table that is grouped is in the order of an expression, which is one of its columns and
 * compared as a number is.
 */
static bool
is_in_order(const GhAggregateInputs *inputs, Node *expr)
{
	Var		   *column = (Var *) expr;

	return IsA(expr, Var) && IS_SIMPLE_REL(inputs->input_rel) && column->varno == inputs->input_rel->relid &&
		get_typbyval(column->vartype) && planner_rt_fetch(column->varno, inputs->root)->rtekind == RTE_RELATION &&
		order_in_parts(inputs->root, column) >= GH_IN_ORDER;
}

/*
 * The sort that PostgreSQL's plan for a grouping makes of all rows; NULL: its cheapest one so far has none.
 */
SortPath *
gh_sort_of_rows(const RelOptInfo *grouped)
{
	Path	   *path = NULL;
	ListCell   *lc;

	foreach(lc, grouped->pathlist)
	{
		Path	   *other = lfirst(lc);

		if (!IsA(other, CustomPath) && (path == NULL || other->total_cost < path->total_cost))
			path = other;
	}
	if (path != NULL && IsA(path, ProjectionPath))
		path = ((ProjectionPath *) path)->subpath;
	if (path != NULL && IsA(path, AggPath))
		path = ((AggPath *) path)->subpath;
	else if (path != NULL && IsA(path, GroupingSetsPath))
		path = ((GroupingSetsPath *) path)->subpath;
	return path != NULL && (IsA(path, SortPath) || IsA(path, IncrementalSortPath)) ? (SortPath *) path : NULL;
}

/*
 * The key that a sort is by first, if it finds the rows in its order; NULL: it does not, or is by another
 * one.
 */
static Node *
key_in_order(const GhAggregateInputs *inputs, const SortPath *sort)
{
	const GhGrouping *grouping = &inputs->grouping;
	List	   *shown = grouping->sets != NIL ? grouping->shown_keys : grouping->keys;
	PathKey    *first = sort == NULL || sort->path.pathkeys == NIL ? NULL : linitial_node(PathKey, sort->path.pathkeys);
	/* what stands behind these is arguments */
	int			nkeys = list_length(grouping->keys) - list_length(grouping->distinct_arguments);

	for (int k = 0; k < nkeys && first != NULL; k++)
	{
		Node	   *key = list_nth(grouping->keys, k);

		if (find_ec_member_matching_expr(first->pk_eclass, list_nth(shown, k), NULL) != NULL)
			return is_in_order(inputs, key) ? key : NULL;
	}
	return NULL;
}

/*
 * What PostgreSQL counts for sorting the values of aggregates with DISTINCT, and does not do: it finds that
 * they are in order, where the table is, and compares them as they are.  A grouping that hashes them costs so
 * much more beside what PostgreSQL counts for its own.  Where there are groups the sort is by their keys
 * first, and less in vain; so is that of grouping sets, as far as the first key tells rows apart.
 */
static Cost
spared_sort_cost(const GhAggregateInputs *inputs)
{
	const GhGrouping *grouping = &inputs->grouping;
	const SortPath *sort = inputs->sort;
	Cost		counted;

	if (grouping->distinct == NIL && grouping->sets == NIL)
		return 0.0;
	if (list_length(grouping->keys) > 1 || grouping->sets != NIL)
	{
		Node	   *key = key_in_order(inputs, sort);
		double		share = GH_ORDERED_KEY_SHARE;

		if (key == NULL)
			return 0.0;
		if (grouping->sets != NIL)
			share = gh_estimate_groups(inputs->root, list_make1(key), inputs->rows) / inputs->rows;
		return share * (sort->path.total_cost - sort->subpath->total_cost);
	}
	if (!is_in_order(inputs, linitial(grouping->keys)))
		return 0.0;
	counted = gh_counted_distinct_sort(inputs->root, inputs->rows, inputs->input_rel->reltarget->width);
	return counted == 0.0 ? 0.0 :
		Max(counted - GH_ORDERED_ROW_COST * cpu_tuple_cost * inputs->rows, 0.0);
}

/*
 * What it costs to spill where memory does not hold a process's groups.  Whenever it is full, all of them are
 * written; how many that are in all depends on how many rows it takes until so many groups have turned up,
 * and is no more than there are where a group's rows lie together.  Files are written and read from end to
 * end, and counted as those of PostgreSQL's hash join.
 */
static Cost
spill_cost_within(const GhAggregateInputs *inputs, double memory, double rows, double groups)
{
	double		bytes = group_bytes(inputs);
	double		share = memory / (bytes * groups);
	double		written;
	double		pages;

	if (share >= 1.0)
		return 0.0;
	written = rows * share / -log1p(-share);
	written = Max(written, groups);
	written -= clustering(inputs) * (written - groups);
	pages = ceil(written * file_bytes(inputs) / BLCKSZ);
	return 2.0 * pages * seq_page_cost + 2.0 * cpu_tuple_cost * written + texts_cost(inputs, written);
}

static Cost
spill_cost(const GhAggregateInputs *inputs, double rows, double groups)
{
	return spill_cost_within(inputs, gh_aggregate_memory_limit(), rows, groups);
}

/*
 * What it costs to keep a device's groups where memory does not hold them: they are written once, and read
 * once.
 */
static Cost
kept_groups_cost(const GhAggregateInputs *inputs, double groups)
{
	double		bytes = group_bytes(inputs) * groups;

	return bytes <= gh_aggregate_memory_limit() ? 0.0 : 2.0 * ceil(bytes / BLCKSZ) * seq_page_cost;
}

/*
 * Whether a device does joins of which far more rows may come than the planner expects.  It reads all of
 * their tables, and that is most of what it costs, however many do come; of nested loops for a few rows, it
 * is not.  *doubtful: how many.
 */
bool
gh_aggregate_is_spared_doubt(const GhAggregateInputs *inputs, Path *child, double *doubtful)
{
	if (inputs->pages || !gh_aggregate_is_for_device(inputs, child) || !gh_is_join_path(child))
		return false;
	*doubtful = gh_doubtful_rows(inputs->root, child);
	return *doubtful > GH_DOUBTFUL_ROWS * child->rows;
}

/*
 * Whether HAVING has a program that finds the groups which it leaves out: mostly, its first condition tells.
 */
static bool
having_has_program(const GhAggregateInputs *inputs)
{
	List	   *conditions = inputs->by.having;
	OpExpr	   *first = conditions == NIL ? NULL : linitial(conditions);

	return first != NULL && IsA(first, OpExpr) && gh_find_function(first->opfuncid) != NULL &&
		!contain_subplans((Node *) first);
}

/* How many of so many groups of one process come out of it: all, or the first ones of the query's order. */
double
gh_aggregate_groups_out(const GhAggregateInputs *inputs, double groups)
{
	return inputs->by.having != NIL && !having_has_program(inputs) ? groups : gh_first_groups(inputs->root, groups);
}

/* How much dearer than groups of rows it is to write those of a second level. */
#define GH_SECOND_SPILL 2.0

/*
 * The same of one of the values of several arguments with DISTINCT, whose groups have room for all of these;
 * and where they go to files.  Measured on 300,000 and 2 million rows in 1 to 700,000 groups, two and three
 * arguments of 20 to a million values, 4 and 64 MB of work_mem, serial and parallel, where PostgreSQL sorts
 * all rows.
 */
#define GH_SEVERAL_VALUES_COST 4.0
#define GH_SEVERAL_WRITTEN_COST 7.0

/*
 * Whether all of its aggregates can be made of groups on a device: of those that can be merged, all but
 * variances.
 */
static bool
has_no_variances(const GhGrouping *grouping)
{
	ListCell   *lc;

	foreach(lc, grouping->aggregates)
	{
		const GhAggregateFunction *function = gh_find_aggregate(lfirst_node(Aggref, lc)->aggfnoid);

		if (function != NULL && function->kind == GH_AGGREGATE_MOMENTS)
			return false;
	}
	return true;
}

/*
 * The same of grouping sets but the one of all keys, whose groups are the first level's.  Where that is in
 * files they are made part by part.
 */
static Cost
sets_spill_cost(const GhAggregateInputs *inputs, double added)
{
	const GhGrouping *grouping = &inputs->grouping;
	double		limit = gh_aggregate_memory_limit();
	double		first = group_bytes(inputs) * inputs->groups;
	double		others = Max(inputs->returned - (gh_sets_have_all_keys(grouping) ? inputs->groups : 0), 1);

	if (first > limit && grouping->part_keys != NIL)
		return 0.0;
	return spill_cost_within(inputs, first > limit ? limit / 2 : Max(limit - first, GH_MEMORY_MIN), added, others);
}

/*
 * What it costs to write groups of a second level, made of so many of the first, which take the memory
 * meanwhile: all, where they fit; else those of a partition.  There those with DISTINCT are complete one
 * partition after the other.
 */
static Cost
second_spill_cost(const GhAggregateInputs *inputs, double added)
{
	double		limit = gh_aggregate_memory_limit();
	double		first = group_bytes(inputs) * inputs->groups;

	if (inputs->grouping.sets != NIL)
		return sets_spill_cost(inputs, added);
	if (first > limit && inputs->returned >= GH_SHARED_PARTS)
		return GH_SECOND_SPILL * spill_cost_within(inputs, limit / 2, inputs->returned, inputs->returned);
	return GH_SECOND_SPILL * spill_cost_within(inputs, first > limit ? limit / 2 : Max(limit - first, GH_MEMORY_MIN), added,
											   inputs->returned);
}

/*
 * What it costs to make those groups that come out of the groups by all keys: of each, once for each grouping set.
 * is_on_device: they are made there (../aggregate/README, "Groups that do not leave a device").
 */
static Cost
second_level_cost(const GhAggregateInputs *inputs, bool is_on_device)
{
	const GhGrouping *grouping = &inputs->grouping;
	double		added = grouping->sets == NIL ? inputs->groups :
		inputs->groups * (list_length(grouping->sets) - gh_sets_have_all_keys(grouping));
	double		each = grouping->sets != NIL ? 1.0 :
		list_length(grouping->distinct_arguments) <= 1 ? GH_VALUE_COST :
		group_bytes(inputs) * inputs->groups > gh_aggregate_memory_limit() ? GH_SEVERAL_WRITTEN_COST : GH_SEVERAL_VALUES_COST;

	if (grouping->distinct == NIL && grouping->sets == NIL)
		return 0.0;
	if (is_on_device)
		return kept_groups_cost(inputs, inputs->returned);
	return added * (each * cpu_tuple_cost + group_cost(grouping)) + texts_cost(inputs, added) +
		second_spill_cost(inputs, added);
}

/*
 * Whether participants are expected to share the merging of their groups: where they are many, and no second
 * level is made of them, or one of which the first one's parts are whole, and enough for all
 * (../aggregate/parallel.c).
 */
bool
gh_aggregate_is_merged_by_all(const GhAggregateInputs *inputs, int workers)
{
	double		divisor = workers > 0 ? gh_parallel_divisor(workers) : 1.0;

	return workers > 0 && inputs->grouping.sets == NIL &&
		(inputs->grouping.distinct == NIL || inputs->returned >= GH_SHARED_PARTS) &&
		Min(inputs->groups, rows_added(inputs, inputs->rows / divisor)) * group_bytes(inputs) > GH_SHARED_GROUPS_MAX;
}

/*
 * What it costs participants, of whom each has so many groups, to leave them to each other and to merge them.
 * Where the table is in the order of a key, few groups have rows of more than one of them.
 */
static Cost
merging_cost(const GhAggregateInputs *inputs, int workers, double groups)
{
	bool		by_all = gh_aggregate_is_merged_by_all(inputs, workers);
	double		together = groups * (workers + (parallel_leader_participation ? 1 : 0));
	double		handed = together - clustering(inputs) * Max(together - inputs->groups, 0);
	Cost		cost = handed * (cpu_tuple_cost + group_cost(&inputs->grouping)) + texts_cost(inputs, handed);

	/* through files, if they are many */
	if (groups * group_bytes(inputs) > GH_SHARED_GROUPS_MAX)
		cost += 2.0 * seq_page_cost * ceil(handed * file_bytes(inputs) / BLCKSZ);
	if (!by_all)
		return cost + spill_cost(inputs, handed, inputs->groups);
	cost += GH_SHARED_PARTS * spill_cost(inputs, handed / GH_SHARED_PARTS, inputs->groups / GH_SHARED_PARTS);
	/* values that are distinct are most of them new: a participant leaves as many as it takes */
	if (inputs->grouping.distinct != NIL)
		cost += handed * cpu_tuple_cost;
	return cost / gh_parallel_divisor(workers);
}

/*
 * Startup: all the rows, read and grouped.  Participants then hand their groups to each other, or to the last
 * of them, and they are merged.  Then, for each group, what PostgreSQL's aggregation counts, or for those
 * that come out, `emitted` of them, where a program leaves out the others.
 */
void
gh_cost_aggregate(const GhAggregateInputs *inputs, CustomPath *cpath, double emitted)
{
	PathTarget *target = cpath->path.pathtarget;
	int			workers = cpath->path.parallel_workers;
	double		divisor = workers > 0 ? gh_parallel_divisor(workers) : 1.0;
	double		rows = rows_added(inputs, inputs->rows / divisor);
	double		groups = Min(inputs->groups, rows);
	Path	   *child = linitial(cpath->custom_paths);
	double		doubtful;
	bool		is_doubtful = gh_aggregate_is_spared_doubt(inputs, child, &doubtful);
	double		shown = having_has_program(inputs) ? emitted : inputs->returned;
	/* over groups on a device it takes part in what that one has begun */
	Cost		startup = (inputs->below != NULL && workers == 0 ? 0 : gh_setup_cost) + rows_cost(inputs, child, divisor);
	QualCost	having;

	startup += gh_aggregate_is_for_device(inputs, child) ? kept_groups_cost(inputs, groups) :
		spill_cost(inputs, rows, groups);
	if (workers > 0)
		startup += merging_cost(inputs, workers, groups);
	startup += second_level_cost(inputs, workers == 0 && gh_aggregate_is_for_device(inputs, child) &&
								 (inputs->groups > gh_batch_rows || is_doubtful) &&
								 has_no_variances(&inputs->grouping)) /
		(gh_aggregate_is_merged_by_all(inputs, workers) ? divisor : 1.0);
	if (!gh_aggregate_is_for_device(inputs, child))
		startup += spared_sort_cost(inputs);
	cost_qual_eval(&having, inputs->by.having, inputs->root);
	startup += having.startup + target->cost.startup;
	cpath->path.startup_cost = startup;
	cpath->path.total_cost = startup + target->cost.per_tuple * cpath->path.rows +
		(having.per_tuple * inputs->returned + cpu_tuple_cost * gh_aggregate_groups_out(inputs, shown)) /
		(gh_aggregate_is_merged_by_all(inputs, workers) ? divisor : 1.0);
	if (gh_force_offload || is_doubtful)
	{
		double		scale = gh_force_offload ? GH_FORCED_SCALE : GH_CLEAR_SHARE;

		cpath->path.startup_cost *= scale;
		cpath->path.total_cost *= scale;
	}
}
