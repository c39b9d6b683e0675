/*
 * target.c
 *		What a query's grouping computes, and whether the engines can compute it.
 *
 * Keys are what the query groups by and, besides, columns that come out as they are: those that
 * the grouping determines (they have one value in each group, or values that are equal), which
 * PostgreSQL takes from any row of the group.  As keys they make no more groups.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "engine/pipeline/pipeline.h"
#include "expr/aggregates.h"
#include "expr/translate.h"
#include "plan/aggregate_plan.h"

typedef struct CollectContext
{
	PlannerInfo *root;
	const GhGroupBy *by;
	GhGrouping *grouping;
} CollectContext;

/* ---------------------------------------------------- keys and aggregates */

/* Whether equality of the expression's values is what the engines take it for. */
bool
gh_can_be_key(Expr *expr, Oid eqop)
{
	Oid			sql_type = exprType((Node *) expr);
	TypeCacheEntry *type = lookup_type_cache(sql_type, TYPECACHE_EQ_OPR | TYPECACHE_HASH_PROC);
	Oid			collation = exprCollation((Node *) expr);

	return OidIsValid(type->eq_opr) && OidIsValid(type->hash_proc) &&
		(!OidIsValid(eqop) || eqop == type->eq_opr) &&
		/* of texts whose collation could not be determined, PostgreSQL says so in an error */
		(OidIsValid(collation) ? get_collation_isdeterministic(collation) :
		 !type_is_collatable(sql_type)) &&
		!contain_volatile_functions((Node *) expr) && !contain_subplans((Node *) expr);
}

static bool
collect_keys(PlannerInfo *root, const GhGroupBy *by, GhGrouping *grouping)
{
	ListCell   *lc;

	/* where all keys are known to be the same in all rows: but without rows, there is no group */
	foreach(lc, by->clauses != NIL ? by->clauses : by->written)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		TargetEntry *tle = get_sortgroupref_tle(clause->tleSortGroupRef, by->tlist);

		if (!clause->hashable || !gh_can_be_key(tle->expr, clause->eqop))
		{
			grouping->why_not = "a key cannot be hashed, or its equality is not that of its bytes";
			grouping->why_expr = tle->expr;
			return false;
		}
		if (by->sets == NIL)
			grouping->keys = list_append_unique(grouping->keys, tle->expr);
		else if (!gh_sets_add_key(root, grouping, tle->expr))
			return false;
	}
	return true;
}

/* The only argument of an aggregate that gh_find_aggregate knows; NULL: it has none. */
Expr *
gh_aggregate_argument(Aggref *aggref)
{
	return aggref->args == NIL ? NULL : linitial_node(TargetEntry, aggref->args)->expr;
}

static bool
declines(CollectContext *context, Aggref *aggref, const char *why)
{
	context->grouping->why_not = why;
	context->grouping->why_expr = (Expr *) aggref;
	return false;
}

/* Whether it is the least or the greatest of texts; the engines know the aggregate. */
bool
gh_compares_texts(const Aggref *aggref)
{
	return gh_find_aggregate(aggref->aggfnoid)->final == GH_FINAL_TEXT;
}

/* Whether there is something in it that no device does: texts are compared. */
bool
gh_grouping_is_for_host(const GhGrouping *grouping)
{
	ListCell   *lc;

	foreach(lc, grouping->aggregates)
	{
		if (gh_compares_texts(lfirst_node(Aggref, lc)))
			return true;
	}
	return false;
}

/*
 * The least or the greatest of texts, of all of them as of those that differ.  Which of equal ones it is must
 * not matter: they are the same bytes, with the blanks at the end of a char(n).
 */
static bool
collect_text_extreme(CollectContext *context, Aggref *aggref)
{
	Expr	   *argument = gh_aggregate_argument(aggref);

	if (aggref->inputcollid != exprCollation((Node *) argument) || !gh_can_be_key(argument, InvalidOid) ||
		(getBaseType(exprType((Node *) argument)) == BPCHAROID && exprTypmod((Node *) argument) < 0))
		return declines(context, aggref, "texts that are equal may differ in their bytes");
	context->grouping->aggregates = list_append_unique(context->grouping->aggregates, aggref);
	return true;
}

static bool
collect_aggregate(CollectContext *context, Aggref *aggref)
{
	if (aggref->aggdirectargs != NIL || aggref->aggorder != NIL || aggref->aggvariadic || list_length(aggref->args) > 1)
		return declines(context, aggref, "an aggregate has ORDER BY or several arguments");
	if (aggref->agglevelsup != 0 || aggref->aggsplit != AGGSPLIT_SIMPLE ||
		gh_find_aggregate(aggref->aggfnoid) == NULL)
		return declines(context, aggref, psprintf("aggregate %s is not supported", get_func_name(aggref->aggfnoid)));
	if (contain_volatile_functions((Node *) aggref) || contain_subplans((Node *) aggref->args) ||
		contain_subplans((Node *) aggref->aggfilter))
		return declines(context, aggref, "an aggregate's argument or filter is volatile, or has a subquery");
	if (gh_compares_texts(aggref))
		return collect_text_extreme(context, aggref);
	if (aggref->aggdistinct != NIL)
		return gh_distinct_collect(context->grouping, aggref);
	context->grouping->aggregates = list_append_unique(context->grouping->aggregates, aggref);
	return true;
}

/*
 * Whether the query groups by the expression.  If it is no key, it is the same in all rows of a
 * group for another reason: a condition makes it equal to a key, or to a constant.
 */
static bool
is_grouped_by(const CollectContext *context, Node *expr)
{
	ListCell   *lc;

	if (IsA(expr, List) || !contain_var_clause(expr))
		return false;
	foreach(lc, context->by->written)
	{
		if (equal(get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc), context->by->tlist), expr))
			return true;
	}
	return false;
}

/* What comes out and is the same in all rows of a group, though it is no key by itself. */
static bool
collect_determined(CollectContext *context, Expr *expr)
{
	if (!gh_can_be_key(expr, InvalidOid))
		return false;
	context->grouping->keys = lappend(context->grouping->keys, expr);
	return true;
}

/* Collects of what comes out, or decides on groups; true: there is something unknown in it. */
static bool
collect_walker(Node *node, CollectContext *context)
{
	GhGrouping *grouping = context->grouping;
	bool		is_of_sets = context->by->sets != NIL;

	if (node == NULL)
		return false;
	if (!IsA(node, List) && list_member(is_of_sets ? grouping->shown_keys : grouping->keys, node))
		return false;
	if (IsA(node, Aggref))
		return !collect_aggregate(context, (Aggref *) node);
	if (IsA(node, GroupingFunc) && is_of_sets && ((GroupingFunc *) node)->agglevelsup == 0)
	{
		grouping->functions = list_append_unique(grouping->functions, node);
		return false;
	}
	/* as a whole: its parts may have several values where it has one */
	if (!is_of_sets && is_grouped_by(context, node))
		return !collect_determined(context, (Expr *) node);
	/* other columns come out where a primary key is grouped by */
	if (IsA(node, Var) || IsA(node, PlaceHolderVar))
		return is_of_sets || context->root->parse->constraintDeps == NIL ||
			!collect_determined(context, (Expr *) node);
	if (IsA(node, GroupingFunc) || IsA(node, WindowFunc))
		return true;
	return expression_tree_walker(node, collect_walker, (void *) context);
}

/* The keys and aggregates of a grouping; false: the engines have no such thing. */
bool
gh_grouping_collect(PlannerInfo *root, const GhGroupBy *by, GhGrouping *grouping)
{
	CollectContext context = {.root = root, .by = by, .grouping = grouping};

	grouping->keys = NIL;
	grouping->aggregates = NIL;
	grouping->distinct = NIL;
	grouping->distinct_arguments = NIL;
	grouping->distinct_keys = NIL;
	grouping->distinct_filters = NIL;
	grouping->distinct_sets = NIL;
	grouping->sets = NIL;
	grouping->shown_keys = NIL;
	grouping->looks_through = by->sets != NIL && bms_membership(root->all_baserels) == BMS_SINGLETON;
	grouping->functions = NIL;
	grouping->function_values = NIL;
	return collect_keys(root, by, grouping) && !collect_walker((Node *) by->target->exprs, &context) &&
		!collect_walker((Node *) by->having, &context) && gh_sets_collect(by, grouping) &&
		gh_distinct_add_keys(grouping) &&
		list_length(grouping->keys) <= GH_VALUES_MAX && list_length(grouping->aggregates) <= GH_AGGREGATES_MAX;
}

/* --------------------------------------------------------------- programs */

/* Columns of the input, which are expressions to the planner, as columns. */
static Node *
columns_mutator(Node *node, const GhGroupingInput *input)
{
	int			column = 0;
	ListCell   *lc;

	if (node == NULL)
		return NULL;
	foreach(lc, input->columns)
	{
		column++;
		if (!IsA(node, Const) && equal(lfirst(lc), node))
			return (Node *) makeVar(input->varno, column, exprType(node),
									input->typmods != NIL ? list_nth_int(input->typmods, column - 1) : exprTypmod(node),
									exprCollation(node), 0);
	}
	return expression_tree_mutator(node, columns_mutator, (void *) input);
}

/* The expression as an execution of the program would have it, but for the constants' values. */
static Expr *
as_executed(GhTranslation *translation, const GhGrouping *grouping, const GhGroupingInput *input, Expr *expr)
{
	Node	   *node = (Node *) expr;

	if (input->columns != NIL)
		node = columns_mutator(node, input);
	if (grouping->looks_through)
		node = gh_sets_row_expr(node);
	return (Expr *) gh_make_constants(node, gh_some_constant, translation);
}

/* Whether the expression reads a numeric column whose type has no scale. */
static bool
reads_open_numerics(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return gh_is_open_numeric(((Var *) node)->vartype, ((Var *) node)->vartypmod);
	return expression_tree_walker(node, reads_open_numerics, context);
}

bool
gh_reads_open_numerics(Node *node)
{
	return reads_open_numerics(node, NULL);
}

/* What is added up has room for large numbers with so many digits after the point. */
#define GH_SUM_DIGITS_MAX 18

/*
 * Whether the expression has a program whose values are PostgreSQL's, digits and all: a numeric must be of
 * the scale that its value has in PostgreSQL, or sums tell that by themselves.  final: of the aggregate whose
 * argument it is.
 */
static bool
value_translates(GhTranslation *translation, const GhGrouping *grouping, const GhGroupingInput *input, Expr *expr,
				 GhFinal final, GhOperand *value)
{
	GhOperand	scales;

	if (!gh_translate_value(translation, as_executed(translation, grouping, input, expr), value))
		return false;
	if (value->value_class != GH_CLASS_INT128 || !value->mixed_scale || final == GH_FINAL_COUNT)
		return true;
	if (value->scale > GH_SUM_DIGITS_MAX && gh_reads_open_numerics((Node *) expr))
		return gh_translation_fails(translation, "a numeric has too many digits after the point");
	return gh_sums_numerics(final) && gh_has_scales(value) ? gh_translate_scales(translation, value, &scales) :
		gh_translation_fails(translation, "a numeric is shown with other digits from row to row");
}

/* A key: which values are equal is to be known before rows are. */
static bool
key_translates(GhTranslation *translation, const GhGrouping *grouping, const GhGroupingInput *input, Expr *expr)
{
	GhOperand	value;

	/* how many digits are read of such a column may be otherwise when the plan runs, and a key must be as it was */
	if (gh_reads_open_numerics((Node *) expr))
		return gh_translation_fails(translation, "a numeric column without a scale decides on a key");
	return value_translates(translation, grouping, input, expr, GH_FINAL_VALUE, &value) &&
		((value.value_class != GH_CLASS_INT128 || !value.open_scale) ||
		 gh_translation_fails(translation, "a parameter may decide on a key's scale"));
}

/* What is translated next: reasons are about this, whatever was tried before. */
static void
begin_expr(GhTranslation *translation, GhGrouping *grouping, Expr *expr)
{
	translation->why_not = NULL;
	grouping->why_expr = expr;
}

/* In grouping->why_expr, what is being translated. */
static bool
add_all(GhTranslation *translation, GhGrouping *grouping, const GhGroupingInput *input)
{
	GhOperand	value;
	ListCell   *lc;

	foreach(lc, input->quals)
	{
		begin_expr(translation, grouping, lfirst(lc));
		if (!gh_translate_filter(translation, as_executed(translation, grouping, input, lfirst(lc))))
			return false;
	}
	foreach(lc, grouping->keys)
	{
		begin_expr(translation, grouping, lfirst(lc));
		if (!key_translates(translation, grouping, input, lfirst(lc)))
			return false;
	}
	foreach(lc, grouping->aggregates)
	{
		Aggref	   *aggref = lfirst_node(Aggref, lc);
		Expr	   *argument = gh_aggregate_argument(aggref);

		begin_expr(translation, grouping, argument);
		if (argument != NULL && !value_translates(translation, grouping, input, argument,
												  (GhFinal) gh_find_aggregate(aggref->aggfnoid)->final, &value))
			return false;
		begin_expr(translation, grouping, aggref->aggfilter);
		if (aggref->aggfilter != NULL &&
			!value_translates(translation, grouping, input, aggref->aggfilter, GH_FINAL_VALUE, &value))
			return false;
	}
	begin_expr(translation, grouping, NULL);
	return true;
}

/* Whether all that is computed of a row has a program, and how long it is. */
bool
gh_grouping_translates(GhGrouping *grouping, const GhGroupingInput *input,
					   int *ninstructions)
{
	GhTranslation *translation = gh_translate_begin(input->desc, input->varno);
	bool		done = add_all(translation, grouping, input) &&
		gh_translate_end(translation) != NULL;

	*ninstructions = gh_translation_length(translation);
	if (!done)
		grouping->why_not = translation->why_not;
	pfree(translation);
	return done;
}
