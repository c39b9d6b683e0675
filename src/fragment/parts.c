/*
 * parts.c
 *		A fragment over several relations: the partitions of a table, or others below an Append, whose tuples lie alike.
 *
 * They are one source: one program and one pipeline for all, and one set of groups or rows.  So each relation
 * has the same columns in the same places, and each scan the same conditions and the same columns to put out.
 * The relations are read one after the other, in the order of the Append.  Before the next one, requests to a
 * device have ended, so that whatever is known by blocks is about one relation: each costs the device's
 * answer to its last request, some 0.1 ms.
 *
 * The Append stays a node of the plan, and only ExecProcNode is left out, as of scans (../heap/child.c).
 */
#include "postgres.h"

#include "executor/execPartition.h"
#include "executor/instrument.h"
#include "rewrite/rewriteManip.h"
#include "utils/rel.h"

#include "fragment/device.h"
#include "fragment/fragment.h"
#include "fragment/parts.h"
#include "heap/layout.h"

/* ------------------------------------------------------------- are they alike */

static Relation
relation_of(const PlanState *scan)
{
	return ((const ScanState *) scan)->ss_currentRelation;
}

/* Whether expressions over one table are those over another one, but for the number of the table. */
bool
gh_exprs_are_alike(List *exprs, Index table, const List *others, Index other)
{
	List	   *same = copyObject(exprs);

	ChangeVarNodes((Node *) same, (int) table, (int) other, 0);
	return equal(same, others);
}

static bool
has_conditions_of(const PlanState *scan, const PlanState *first)
{
	return gh_exprs_are_alike(scan->plan->qual, ((Scan *) scan->plan)->scanrelid, first->plan->qual,
							  ((Scan *) first->plan)->scanrelid);
}

static bool
has_columns_of(PlanState *scan, PlanState *first)
{
	int			ncolumns = list_length(first->plan->targetlist);

	if (list_length(scan->plan->targetlist) != ncolumns)
		return false;
	for (int c = 1; c <= ncolumns; c++)
		if (gh_relation_attno(scan, c) != gh_relation_attno(first, c))
			return false;
	return true;
}

static bool
is_alike(PlanState *scan, PlanState *first)
{
	return gh_tuples_lie_alike(RelationGetDescr(relation_of(scan)), RelationGetDescr(relation_of(first))) &&
		has_columns_of(scan, first) && has_conditions_of(scan, first);
}

/*
 * Whether pages can be read of the scan, as a part of what the participants of a parallel query share, or of
 * none.
 */
static bool
may_read(PlanState *scan, bool shared, EState *estate, int eflags)
{
	return gh_may_read_pages(scan, estate, eflags) && !RelationUsesLocalBuffers(relation_of(scan)) &&
		scan->plan->parallel_aware == shared;
}

/* Whether it is an Append that runs all of its scans in each run, one after the other, in every process. */
static bool
appends_all(const AppendState *append)
{
	return append->as_nplans > 0 && !append->ps.plan->parallel_aware && append->as_nasyncplans == 0 &&
		(append->as_prune_state == NULL || !append->as_prune_state->do_exec_prune);
}

/*
 * Their row type, for programs.  A column that was added later is missing in older tuples of some relations,
 * and in none of others; a program that reads all of them has to know.
 */
static TupleDesc
common_desc(const GhFragment *fragment)
{
	TupleDesc	desc = CreateTupleDescCopy(RelationGetDescr(relation_of(fragment->parts[0].scan)));

	for (int i = 0; i < fragment->nparts; i++)
		for (int a = 0; a < desc->natts; a++)
			TupleDescAttr(desc, a)->atthasmissing |=
				TupleDescAttr(RelationGetDescr(relation_of(fragment->parts[i].scan)), a)->atthasmissing;
	return desc;
}

/*
 * Where the node, the child or what is below its joins, is an Append of such scans, these become the parts;
 * false: it is none.
 */
bool
gh_parts_init(GhFragment *fragment, PlanState *below, int eflags)
{
	AppendState *append = (AppendState *) below;
	EState	   *estate = below->state;

	if (!IsA(append, AppendState) || !appends_all(append))
		return false;
	for (int i = 0; i < append->as_nplans; i++)
		if (!may_read(append->appendplans[i], fragment->css.ss.ps.plan->parallel_aware, estate, eflags) ||
			!is_alike(append->appendplans[i], append->appendplans[0]))
			return false;
	fragment->append = below;
	fragment->nparts = append->as_nplans;
	fragment->parts = palloc0(sizeof(GhFragmentPart) * fragment->nparts);
	for (int i = 0; i < fragment->nparts; i++)
	{
		fragment->parts[i].scan = append->appendplans[i];
		gh_pages_init(&fragment->parts[i].pages, estate->es_query_cxt);
	}
	fragment->parts_desc = common_desc(fragment);
	return true;
}

/* They are not read as such. */
void
gh_parts_drop(GhFragment *fragment)
{
	fragment->append = NULL;
	fragment->nparts = 0;
	fragment->parts = NULL;
	fragment->parts_desc = NULL;
}

/* ------------------------------------------------------------------ reading */

/* The pages that are read next are those of this part, from where its scan is. */
void
gh_parts_turn_to(GhFragment *fragment, int part)
{
	if (fragment->parts == NULL)
		return;
	gh_pages_park(fragment->pages);
	fragment->part = part;
	fragment->scan = fragment->parts[part].scan;
	fragment->pages = &fragment->parts[part].pages;
}

/* The part that is read has no more pages.  False: it is the last one. */
bool
gh_parts_next(GhFragment *fragment)
{
	if (fragment->part + 1 >= fragment->nparts)
		return false;
	/* of many parts, each would hold on to a stream */
	gh_pages_end(fragment->pages);
	gh_parts_turn_to(fragment, fragment->part + 1);
	return true;
}

static void
enter(PlanState *ps)
{
	gh_child_start(ps);
	gh_child_stop(ps, 0);
}

/* Before anything is read: with changed parameters, all is rescanned, as ExecProcNode does it. */
void
gh_parts_begin(GhFragment *fragment)
{
	if (fragment->parts == NULL)
		return;
	if (fragment->append->chgParam != NULL)
		enter(fragment->append);
	for (int i = 0; i < fragment->nparts; i++)
		if (fragment->parts[i].scan->chgParam != NULL)
			enter(fragment->parts[i].scan);
	gh_parts_turn_to(fragment, 0);
}

/* Rows that a node is said to have returned, in all runs. */
static double
rows_of(const PlanState *ps)
{
	return ps->instrument == NULL ? 0 : ps->instrument->ntuples + ps->instrument->tuplecount;
}

/* All is read: what the scans returned would have come out of the Append. */
void
gh_parts_stop(GhFragment *fragment)
{
	double		rows = 0;

	if (fragment->parts == NULL)
		return;
	for (int i = 0; i < fragment->nparts; i++)
		rows += rows_of(fragment->parts[i].scan);
	gh_child_start(fragment->append);
	gh_child_stop(fragment->append, rows - rows_of(fragment->append));
}

/* --------------------------------------------- of all parts, or of the scan */

/* The row type of what programs read. */
TupleDesc
gh_fragment_scan_desc(const GhFragment *fragment)
{
	return fragment->parts != NULL ? fragment->parts_desc : RelationGetDescr(relation_of(fragment->scan));
}

/* Pages: of parts as many as there are now, else when the scan began. */
double
gh_fragment_pages(const GhFragment *fragment)
{
	double		pages = 0;

	if (fragment->parts == NULL)
		return fragment->pages->nblocks;
	for (int i = 0; i < fragment->nparts; i++)
		pages += RelationGetNumberOfBlocks(relation_of(fragment->parts[i].scan));
	return pages;
}

/* Their rows, visible or not, as statistics tell. */
double
gh_fragment_rows(const GhFragment *fragment)
{
	double		rows = 0;

	if (fragment->parts == NULL)
		return gh_rows_of_pages(fragment->pages->relation, fragment->pages->nblocks);
	for (int i = 0; i < fragment->nparts; i++)
	{
		Relation	relation = relation_of(fragment->parts[i].scan);

		rows += gh_rows_of_pages(relation, RelationGetNumberOfBlocks(relation));
	}
	return rows;
}

/* Whether there is a visible row; accepted: one that the scan's conditions accept. */
bool
gh_fragment_has_row(const GhFragment *fragment, bool accepted)
{
	if (fragment->parts == NULL)
		return gh_device_scan_has_row(fragment->scan, accepted);
	for (int i = 0; i < fragment->nparts; i++)
		if (gh_device_scan_has_row(fragment->parts[i].scan, accepted))
			return true;
	return false;
}

/* The scan begins anew: this process's, */
void
gh_fragment_rewind(GhFragment *fragment)
{
	if (fragment->parts == NULL)
		gh_child_rewind(fragment->scan);
	for (int i = 0; i < fragment->nparts; i++)
		gh_child_rewind(fragment->parts[i].scan);
	gh_parts_turn_to(fragment, 0);
}

/* and, by one of them, what participants share of it. */
void
gh_fragment_rewind_for_all(GhFragment *fragment)
{
	if (fragment->parts == NULL)
		gh_child_rewind_for_all(fragment->scan);
	for (int i = 0; i < fragment->nparts; i++)
		gh_child_rewind_for_all(fragment->parts[i].scan);
}

void
gh_parts_end(GhFragment *fragment)
{
	for (int i = 0; i < fragment->nparts; i++)
		gh_pages_end(&fragment->parts[i].pages);
}
