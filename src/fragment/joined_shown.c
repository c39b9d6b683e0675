/*
 * joined_shown.c
 *		Which relations' columns the columns of joins are, for numerics whose types have no scale (../expr/shown.c).
 */
#include "postgres.h"

#include "utils/rel.h"

#include "expr/translate.h"
#include "fragment/joined.h"

/* A column of a relation. */
typedef struct Origin
{
	Oid			relation;		/* InvalidOid: it is none */
	AttrNumber	number;
} Origin;

static Origin origin_of_output(const GhJoined *joined, int level, int resno);

/* Output column of a scan of a table, if it is one, of whatever kind. */
static Origin
origin_of_scan(PlanState *scan, int resno)
{
	const Var  *var = (const Var *) list_nth_node(TargetEntry, scan->plan->targetlist, resno - 1)->expr;

	if ((!IsA(scan, SeqScanState) && !IsA(scan, IndexScanState) && !IsA(scan, BitmapHeapScanState) &&
		 !IsA(scan, SampleScanState) && !IsA(scan, TidRangeScanState) && !IsA(scan, CustomScanState)) ||
		((ScanState *) scan)->ss_currentRelation == NULL || !IsA(var, Var) ||
		var->varno != (int) ((Scan *) scan->plan)->scanrelid || var->varattno <= 0)
		return (Origin) {InvalidOid, 0};
	return (Origin) {RelationGetRelid(((ScanState *) scan)->ss_currentRelation), var->varattno};
}

/* A column that a join keeps of its inner side. */
static Origin
origin_of_kept(const GhJoinLevel *level, int column)
{
	const GhLowerJoin *lower = level->lower;
	int			resno = lower->kept_attnos[column];

	if (level->inner != NULL)
		return origin_of_output(level->inner, level->inner->nlevels - 1, resno);
	return origin_of_scan(lower->children[GH_INNER], resno);
}

/* Output column of the join at this level or, -1, of the scan. */
static Origin
origin_of_output(const GhJoined *joined, int level, int resno)
{
	const GhLowerJoin *lower;
	const GhLowerColumn *from;

	if (level < 0)
		return origin_of_scan(joined->scan, resno);
	lower = joined->levels[level].lower;
	from = &lower->columns[lower->output_columns[resno - 1]];
	return from->side == GH_OUTER ? origin_of_output(joined, level - 1, from->column) :
		origin_of_kept(&joined->levels[level], from->column);
}

static void
note(TupleDesc desc, int attno, Origin origin)
{
	Form_pg_attribute attribute = TupleDescAttr(desc, attno - 1);

	/* what the row type was copied from may describe another relation, or none */
	attribute->attrelid = InvalidOid;
	if (OidIsValid(origin.relation))
		gh_shown_note(desc, attno, origin.relation, origin.number);
}

/*
 * Tells what programs are about (gh_joined_desc) where its columns come from: the same whichever joins are
 * probed.
 */
void
gh_joined_note_shown(const GhJoined *joined, TupleDesc desc)
{
	if (joined->base >= 0)
		for (int i = 1; i <= gh_joined_natts(joined); i++)
			note(desc, i, origin_of_output(joined, joined->base, i));
	for (int i = joined->base + 1; i < joined->nlevels; i++)
		for (int c = 0; c < joined->levels[i].lower->nkept; c++)
			note(desc, joined->levels[i].first_attno + c, origin_of_kept(&joined->levels[i], c));
}
