/*
 * fetch.c
 *		Tuples that GpuHashRows fetches when their rows come out.
 *
 * Programs, and so the device, hold columns of some types only.  Of a relation with others among those that
 * come out, or with very many, the device returns where the tuple is (GH_LOAD_TID), and all of the relation's
 * columns are taken from there, as a scan would have them: compressed and TOASTed values as they are, those
 * of columns that the tuple is older than from the relation's description.
 *
 * A tuple that is visible to the query's snapshot stays where it is, under its own line pointer, until the
 * query ends.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "fragment/joined.h"
#include "rows/node.h"

/* ----------------------------------------------------------------- set-up */

/* Whether the device returns the column's values. */
static bool
is_value(const GhRowsNode *node, int column)
{
	for (int i = 0; i < node->nvalues; i++)
		if (node->value_columns[i] == column)
			return true;
	return false;
}

/* The fetch of a level's relation, which is made when the first of its columns is there. */
static GhFetch *
find_fetch(GhRowsNode *node, EState *estate, int level)
{
	const GhLowerJoin *lower = level < 0 ? NULL : node->fragment.joined->levels[level].lower;
	GhFetch    *fetch;

	for (int f = 0; f < node->nfetches; f++)
		if (node->fetches[f].level == level)
			return &node->fetches[f];
	fetch = &node->fetches[node->nfetches++];
	fetch->level = level;
	fetch->columns = palloc(sizeof(int) * node->fragment.ncolumns);
	fetch->attnos = palloc(sizeof(int) * node->fragment.ncolumns);
	if (lower == NULL)
		fetch->relation = ((ScanState *) node->fragment.scan)->ss_currentRelation;
	else if (lower->pages[GH_INNER] != NULL)
		fetch->relation = ((ScanState *) lower->children[GH_INNER])->ss_currentRelation;
	if (fetch->relation != NULL)
		fetch->slot = ExecInitExtraTupleSlot(estate, RelationGetDescr(fetch->relation),
											 table_slot_callbacks(fetch->relation));
	return fetch;
}

static void
add_column(GhRowsNode *node, EState *estate, int column)
{
	GhColumnSource source = node->fragment.joined->sources[column];
	GhFetch    *fetch = find_fetch(node, estate, source.level);
	const GhLowerJoin *lower;

	if (fetch->relation == NULL)
		return;
	if (source.level >= 0)
	{
		lower = node->fragment.joined->levels[source.level].lower;
		source.column = gh_relation_attno(lower->children[GH_INNER], lower->kept_attnos[source.column]);
	}
	fetch->columns[fetch->ncolumns] = column;
	fetch->attnos[fetch->ncolumns++] = source.column;
	fetch->last_attno = Max(fetch->last_attno, source.column);
}

/*
 * Sets node->fetches, of a node whose joins have been looked at: for the columns that a device does not
 * return.
 */
void
gh_fetch_init(GhRowsNode *node, EState *estate)
{
	/* rows are passed on */
	if (node->fragment.joined == NULL)
		return;
	node->fetches = palloc0(sizeof(GhFetch) * (node->fragment.joined->nlevels + 1));
	for (int c = 0; c < node->fragment.ncolumns; c++)
		if (!is_value(node, c))
			add_column(node, estate, c);
}

/* ------------------------------------------------------------------- rows out */

/* A place comes from other processes: one that the relation cannot have is an error. */
static void
set_place(GhFetch *fetch, uint64 place, ItemPointer tid)
{
	uint64		block = place >> 16;
	OffsetNumber line = place & 0xffff;

	if (block >= fetch->nblocks)
		fetch->nblocks = fetch->relation == NULL ? 0 : RelationGetNumberOfBlocks(fetch->relation);
	if (block >= fetch->nblocks || !OffsetNumberIsValid(line))
		elog(ERROR, "row of a scan has a place that is not in its table");
	ItemPointerSet(tid, (BlockNumber) block, line);
}

/*
 * Puts the columns of the tuple at a place, as a column of GH_LOAD_TID has it, into the scan tuple; they are
 * good until the next call, or gh_fetch_park.
 */
void
gh_fetch_columns(GhRowsNode *node, GhFetch *fetch, uint64 place)
{
	TupleTableSlot *scan = node->fragment.css.ss.ss_ScanTupleSlot;
	ItemPointerData tid;

	set_place(fetch, place, &tid);
	if (!table_tuple_fetch_row_version(fetch->relation, &tid, node->fragment.css.ss.ps.state->es_snapshot, fetch->slot))
		elog(ERROR, "row of a scan has a place where no tuple is visible");
	/* a cursor may stay here for days, and nodes above still refer to the row then: it is not to hold its page */
	ExecMaterializeSlot(fetch->slot);
	slot_getsomeattrs(fetch->slot, fetch->last_attno);
	for (int i = 0; i < fetch->ncolumns; i++)
	{
		scan->tts_values[fetch->columns[i]] = fetch->slot->tts_values[fetch->attnos[i] - 1];
		scan->tts_isnull[fetch->columns[i]] = fetch->slot->tts_isnull[fetch->attnos[i] - 1];
	}
}

/* The tuples are no longer needed. */
void
gh_fetch_park(GhRowsNode *node)
{
	for (int f = 0; f < node->nfetches; f++)
		if (node->fetches[f].slot != NULL)
			ExecClearTuple(node->fetches[f].slot);
}
