/*
 * nested.c
 *		A grouping over a grouping whose groups are on a device: they become groups of the node above there,
 *		and never leave it.
 *
 * The node above would read the rows of the one below, through a subquery's scan or not.  Before it does so,
 * it has that one read its input.  If all that comes of it is groups on a device, these are the source of one
 * more pipeline (fragment/supply_groups.c), which has HAVING of the node below as its conditions, and makes
 * the groups of the node above; with them that goes on as if a device of its own had made them (narrow.c).
 * Else the node below has its groups as always, and the node above reads its rows.
 *
 * Expressions of the node above are about the rows of the one below, and those about its groups (having.c).
 * All that PostgreSQL computes for such a row has to have a program.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/instrument.h"
#include "nodes/nodeFuncs.h"

#include "aggregate/level.h"
#include "fragment/device.h"

/* The node below whose rows the node reads; NULL: there is none that would do. */
static GhAggregateNode *
node_below(const GhAggregateNode *node)
{
	const GhFragment *fragment = &node->fragment;
	PlanState  *child = fragment->child;
	GhAggregateNode *below;

	if (fragment->member != NULL || fragment->joined != NULL || fragment->scan != NULL)
		return NULL;
	if (IsA(child, SubqueryScanState) && child->qual == NULL)
		child = ((SubqueryScanState *) child)->subplan;
	if (!gh_is_aggregate(child))
		return NULL;
	below = (GhAggregateNode *) child;
	return below->fragment.member == NULL && below->sets == NULL && !below->stays ? below : NULL;
}

/* -------------------------------------------------------------------- expressions */

/* What comes out of the node below in a column, over its groups. */
static Expr *
column_below(const GhAggregateNode *below, List *targetlist, int column)
{
	return gh_having_over_groups((GhAggregateNode *) below,
								 list_nth_node(TargetEntry, targetlist, column)->expr);
}

/* A column of the subquery's scan as one of the node below. */
static Node *
scan_columns_mutator(Node *expr, GhAggregateNode *below)
{
	if (expr == NULL)
		return NULL;
	/* a row as a whole has no program */
	if (IsA(expr, Var) && ((Var *) expr)->varattno <= 0)
	{
		Var		   *whole = copyObject((Var *) expr);

		whole->varno = INDEX_VAR;
		return (Node *) whole;
	}
	if (IsA(expr, Var))
		return (Node *) column_below(below, below->fragment.css.ss.ps.plan->targetlist,
									 ((Var *) expr)->varattno - 1);
	return expression_tree_mutator(expr, scan_columns_mutator, (void *) below);
}

/* GhOverRows: what comes out of the node's child. */
static Expr *
column_of_child(Expr *expr, void *arg)
{
	const GhAggregateNode *node = arg;
	GhAggregateNode *below = node->below;

	return IsA(node->fragment.child, SubqueryScanState) ?
		(Expr *) scan_columns_mutator((Node *) expr, below) :
		gh_having_over_groups(below, expr);
}

/* GhRowsBelow */
static Expr *
row_column(void *arg, int column)
{
	const GhAggregateNode *node = arg;

	return column_of_child(list_nth_node(TargetEntry, node->fragment.child->plan->targetlist, column)->expr, arg);
}

/* All that PostgreSQL computes for a row, for the errors that it might raise. */
static bool
translate_rows(GhAggregateNode *node, GhTranslation *translation)
{
	const PlanState *child = node->fragment.child;

	return gh_level_translate_computed(node->below, translation) &&
		(!IsA(child, SubqueryScanState) ||
		 gh_translate_computed(translation, child->plan->targetlist, column_of_child, node));
}

/* ----------------------------------------------------------------------- the level */

/* What the node computes of a row; it keeps that with its program, which this is. */
static bool
translate_node(GhAggregateNode *node, GhTranslation *translation)
{
	MemoryContext saved = MemoryContextSwitchTo(node->fragment.program.context);
	bool		done = gh_aggregate_translate(&node->fragment, translation);

	MemoryContextSwitchTo(saved);
	return done;
}

static void
keep_vectors(GhAggregateNode *node, const GhTranslation *translation)
{
	MemoryContext saved = MemoryContextSwitchTo(node->fragment.program.context);

	gh_aggregate_keep_vectors(&node->fragment, translation);
	MemoryContextSwitchTo(saved);
}

/* A pipeline from the groups of the node below to those of the node; false: that has no program. */
static bool
make_options(GhAggregateNode *node, const GhLevelGroups *groups, GhPipelineOptions *options)
{
	GhAggregateNode *below = node->below;
	GhTranslation *translation = gh_having_begin(below, true);
	GhLevel		level;

	if (translation == NULL)
		return false;
	gh_level_begin(&level, translation);
	gh_level_add_parts(&level, below, groups);
	if (!translate_rows(node, translation) || !translate_node(node, translation) ||
		!gh_level_end(&level, options) || !gh_level_tells(below, options->program, true))
		return false;
	keep_vectors(node, translation);
	gh_aggregate_sink(node, &options->sink);
	if (node->nkeys > 0)
		options->sink.groups.expected = (uint64) gh_aggregate_expected(node);
	return true;
}

/* The node reads rows after all: what is known of them is what a type tells. */
static void
undo(GhAggregateNode *node)
{
	gh_having_forget(node);
	gh_fragment_forget_program(&node->fragment);
	gh_aggregate_types(node);
	gh_aggregate_show(node, false);
}

/*
 * The node below has read all, and its groups are the last level's of the supply.  They become groups of the
 * node that has asked for that, if they can: as rows that would have come out of the first step.
 */
bool
gh_nested_take(GhAggregateNode *below, GhSupply *supply, const GhLevelGroups *groups, GhLevelCounts *counts)
{
	GhAggregateNode *node = below->above;
	const GhRowsBelow rows = {gh_having_desc(below), GH_GROUPS_VARNO, row_column, node};
	GhPipelineOptions options;
	bool		made;

	if (gh_aggregate_order_matters(&node->fragment) ||
		node->fragment.methods->why_not_on_device(&node->fragment) != NULL ||
		!gh_level_has_conditions(below))
		return false;
	gh_fragment_forget_program(&node->fragment);
	node->fragment.rows_below = &rows;
	gh_aggregate_types(node);
	gh_aggregate_show(node, false);
	made = make_options(node, groups, &options);
	node->fragment.rows_below = NULL;
	if (made && gh_supply_add_level(supply, &options, 0, counts))
		return true;
	undo(node);
	return false;
}

/* The device has failed after that. */
void
gh_nested_give_up(GhAggregateNode *below)
{
	GhAggregateNode *node = below->above;

	if (node->taken)
		gh_nested_give_up(node);
	gh_final_groups_clear(node->final);
	gh_aggregate_reset_levels(node);
	undo(node);
}

/* ------------------------------------------------------------------------- the run */

/* As the executor would do it before it asks for a row. */
static void
rescan_if_changed(PlanState *child)
{
	if (child->chgParam != NULL)
		ExecReScan(child);
}

/*
 * Has the node below read its input, if there is one.  Whether its groups have become the node's, so that no
 * rows come.
 */
bool
gh_nested_read(GhAggregateNode *node)
{
	GhAggregateNode *below = node_below(node);
	PlanState  *child = node->fragment.child;
	double		rows;

	if (below == NULL)
		return false;
	rescan_if_changed(child);
	rescan_if_changed(&below->fragment.css.ss.ps);
	/* it has its groups from an earlier run */
	if (below->phase != GH_AGGREGATE_START)
		return false;
	gh_child_start(child);
	if (&below->fragment.css.ss.ps != child)
		gh_child_start(&below->fragment.css.ss.ps);
	node->below = below;
	below->above = node;
	gh_aggregate_make(below);
	below->above = NULL;
	rows = below->taken ? (double) below->passed : 0;
	if (&below->fragment.css.ss.ps != child)
		gh_child_stop(&below->fragment.css.ss.ps, rows);
	gh_child_stop(child, rows);
	if (!below->taken)
		return false;
	InstrCountFiltered1(&below->fragment.css.ss.ps, below->left_out);
	node->fragment.counts.rows += below->passed;
	node->fragment.counts.on_device = true;
	return true;
}
