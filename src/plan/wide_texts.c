/*
 * wide_texts.c
 *		Columns whose texts are wide, by their statistics.
 *
 * ANALYZE leaves values out that are wider than a kilobyte (WIDTH_THRESHOLD of analyze.c).  A column of which
 * it has neither common values nor a histogram has none but such.  The statistics tell how long they are as
 * they are stored: where that is less, most are compressed, or stored elsewhere.  Engines do not read these,
 * and rows that have one are handed back.
 */
#include "postgres.h"

#include "catalog/pg_statistic.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "expr/translate.h"
#include "plan/wide_texts.h"

/* WIDTH_THRESHOLD */
#define GH_WIDTH_ANALYZED 1024

/* Whether the texts of a column are wide, and not stored as they are. */
bool
gh_is_wide_text(PlannerInfo *root, Node *column)
{
	GhClass		value_class = gh_class_of_type(exprType(column));
	VariableStatData data;
	AttStatsSlot slot;
	bool		wide = false;

	if (value_class != GH_CLASS_TEXT && value_class != GH_CLASS_BPCHAR)
		return false;
	examine_variable(root, column, 0, &data);
	if (HeapTupleIsValid(data.statsTuple))
		wide = ((Form_pg_statistic) GETSTRUCT(data.statsTuple))->stanullfrac < 1.0 &&
			((Form_pg_statistic) GETSTRUCT(data.statsTuple))->stawidth < GH_WIDTH_ANALYZED &&
			!get_attstatsslot(&slot, data.statsTuple, STATISTIC_KIND_MCV, InvalidOid, 0) &&
			!get_attstatsslot(&slot, data.statsTuple, STATISTIC_KIND_HISTOGRAM, InvalidOid, 0);
	ReleaseVariableStats(data);
	return wide;
}

/* Whether some column that expressions read has wide texts. */
bool
gh_read_wide_texts(PlannerInfo *root, List *exprs)
{
	ListCell   *lc;

	foreach(lc, pull_var_clause((Node *) exprs, PVC_RECURSE_AGGREGATES | PVC_RECURSE_PLACEHOLDERS))
	{
		if (gh_is_wide_text(root, lfirst(lc)))
			return true;
	}
	return false;
}

/* The same of a table's columns, by number. */
bool
gh_has_wide_texts(PlannerInfo *root, const RelOptInfo *rel, const Bitmapset *columns)
{
	int			attno = -1;

	while ((attno = bms_next_member(columns, attno)) > 0)
	{
		Oid			type;
		int32		typmod;
		Oid			collation;

		get_atttypetypmodcoll(planner_rt_fetch(rel->relid, root)->relid, attno, &type, &typmod, &collation);
		if (gh_is_wide_text(root, (Node *) makeVar(rel->relid, attno, type, typmod, collation, 0)))
			return true;
	}
	return false;
}

/* Bytes of a text, as an engine has it. */
double
gh_text_width(PlannerInfo *root, Expr *text)
{
	PathTarget *target = create_empty_pathtarget();

	add_column_to_pathtarget(target, text, 0);
	set_pathtarget_cost_width(root, target);
	return IsA(text, Var) && gh_is_wide_text(root, (Node *) text) ? Max(target->width, GH_WIDE_TEXT_BYTES) :
		target->width;
}
