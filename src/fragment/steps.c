/*
 * steps.c
 *		The steps of a fragment in EXPLAIN (ANALYZE): what became of its rows, in the order of the work.
 *
 * They have the names that PostgreSQL's nodes have: Scan, Filter, Join, and what the node does last.  A
 * step's rows are all that came out of it, in all loops and processes.  They are those that the nodes below
 * count, whose rows are shown there for each loop.
 *
 * Text shows them in one line; other formats have a group for each.
 */
#include "postgres.h"

#include "executor/instrument.h"
#include "lib/stringinfo.h"

#include "fragment/explain.h"
#include "fragment/joined.h"

typedef struct Steps
{
	ExplainState *es;
	StringInfoData line;		/* of text */
} Steps;

static void
show_step(Steps *steps, const char *name, List *relations, double rows)
{
	ExplainState *es = steps->es;
	ListCell   *lc;

	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainOpenGroup("Step", NULL, true, es);
		ExplainPropertyText("Step Type", name, es);
		ExplainPropertyList("Relations", relations, es);
		ExplainPropertyFloat("Rows", NULL, rows, 0, es);
		ExplainCloseGroup("Step", NULL, true, es);
		return;
	}
	appendStringInfo(&steps->line, "%s%s", steps->line.len > 0 ? ", " : "", name);
	foreach(lc, relations)
		appendStringInfo(&steps->line, "%s%s", lc == list_head(relations) ? " " : " + ",
						 (const char *) lfirst(lc));
	appendStringInfo(&steps->line, " (rows=%.0f)", rows);
}

/* The name that EXPLAIN gives to the relation that a node reads, in a list; NIL: it reads none itself. */
static List *
own_relation(const Plan *plan, const ExplainState *es)
{
	Index		number = 0;

	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_SubqueryScan:
		case T_FunctionScan:
		case T_ValuesScan:
		case T_CteScan:
		case T_ForeignScan:
		case T_CustomScan:
			number = ((const Scan *) plan)->scanrelid;
			break;
		default:
			break;
	}
	return number > 0 ? list_make1(list_nth(es->rtable_names, number - 1)) : NIL;
}

/* Names of the relations that a node and those below it read. */
static List *
relations_of(const PlanState *ps, const ExplainState *es)
{
	List	   *names = NIL;
	ListCell   *lc;

	if (ps == NULL || (names = own_relation(ps->plan, es)) != NIL)
		return names;
	/* of another extension, which may have its children there */
	if (IsA(ps, CustomScanState))
		foreach(lc, ((const CustomScanState *) ps)->custom_ps)
			names = list_concat(names, relations_of(lfirst(lc), es));
	return list_concat(list_concat(names, relations_of(outerPlanState(ps), es)), relations_of(innerPlanState(ps), es));
}

/* Rows that came out of a node, and those that its conditions removed. */
static double
rows_of(const PlanState *ps, double *removed)
{
	/* EXPLAIN does so before it shows the node itself */
	InstrEndLoop(ps->instrument);
	*removed = ps->instrument->nfiltered1;
	return ps->instrument->ntuples;
}

static const char *
join_name(const GhLowerJoin *lower)
{
	switch (lower->jointype)
	{
		case JOIN_LEFT:
			return "Left Join";
		case JOIN_RIGHT:
			return "Right Join";
		case JOIN_FULL:
			return "Full Join";
		case JOIN_SEMI:
			return "Semi Join";
		case JOIN_ANTI:
			return "Anti Join";
		default:
			return "Join";
	}
}

/* Relations that are read as one: what the query calls them all. */
static void
show_parts(const GhFragment *fragment, Steps *steps)
{
	const Bitmapset *called = ((const Append *) fragment->append->plan)->apprelids;
	int			number = bms_next_member(called, -1);
	List	   *name = number > 0 ? list_make1(list_nth(steps->es->rtable_names, number - 1)) : NIL;
	double		rows = 0;
	double		removed = 0;

	for (int i = 0; i < fragment->nparts; i++)
	{
		double		of_part;

		rows += rows_of(fragment->parts[i].scan, &of_part);
		removed += of_part;
	}
	show_step(steps, "Scan", name, rows + removed);
	if (fragment->parts[0].scan->plan->qual != NIL)
		show_step(steps, "Filter", NIL, rows);
}

/* The scan whose pages were read, or the node whose rows came in. */
static void
show_source(const GhFragment *fragment, Steps *steps)
{
	uint32		below = fragment->counts.joins_below;
	PlanState  *source = fragment->child;
	double		removed;
	double		rows;

	if (fragment->parts != NULL && below == 0 && !fragment->by_rows)
	{
		show_parts(fragment, steps);
		return;
	}
	if (fragment->joined != NULL)
		source = below > 0 ? fragment->joined->levels[below - 1].lower->ps : fragment->joined->scan;
	rows = rows_of(source, &removed);
	if (fragment->scan == NULL || below > 0)
	{
		show_step(steps, "Rows", relations_of(source, steps->es), rows);
		return;
	}
	show_step(steps, "Scan", relations_of(source, steps->es), rows + removed);
	if (source->plan->qual != NIL)
		show_step(steps, "Filter", NIL, rows);
}

/* The joins, from the lowest one on whose rows came out of the fragment. */
static void
show_joins(const GhFragment *fragment, Steps *steps)
{
	const GhJoined *joined = fragment->joined;
	double		removed;

	for (int i = (int) fragment->counts.joins_below; joined != NULL && i < joined->nlevels; i++)
	{
		const GhLowerJoin *lower = joined->levels[i].lower;

		show_step(steps, join_name(lower), relations_of(lower->children[GH_INNER], steps->es),
				  rows_of(lower->ps, &removed));
	}
}

/* What the node did in the end, with its own conditions; a step before that, too, where there is one. */
static void
show_last(const GhFragment *fragment, const GhLastSteps *last, Steps *steps)
{
	const PlanState *ps = &fragment->css.ss.ps;
	double		removed;
	double		rows = rows_of(ps, &removed);

	if (last->before != NULL)
		show_step(steps, last->before, NIL, (double) last->rows_before);
	if (last->name != NULL)
		show_step(steps, last->name, NIL, rows + removed + last->unwanted);
	if (ps->plan->qual != NIL)
		show_step(steps, "Filter", NIL, rows + last->unwanted);
	if (last->unwanted > 0)
		show_step(steps, "First", NIL, rows);
}

void
gh_fragment_explain_steps(const GhFragment *fragment, const GhLastSteps *last, ExplainState *es)
{
	Steps		steps = {.es = es};

	initStringInfo(&steps.line);
	ExplainOpenGroup("Steps", "Steps", false, es);
	if (fragment->counts.groups_shared > 0)
		show_step(&steps, "Shared Groups", relations_of(fragment->child, es), (double) fragment->counts.groups_shared);
	else
	{
		show_source(fragment, &steps);
		show_joins(fragment, &steps);
	}
	show_last(fragment, last, &steps);
	ExplainCloseGroup("Steps", "Steps", false, es);
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Steps", steps.line.data, es);
	pfree(steps.line.data);
}
