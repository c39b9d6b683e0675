/*
 * note.c
 *		One note for each relation of a query that is being planned.
 *
 * PostgreSQL makes one RelOptInfo for each set of relations of a query level, and for each kind of
 * relation above the joins.  So its address names a relation as (root, relids, kind) do, and notes are
 * found by it, in a hash table.  A note lives as long as its RelOptInfo: both are in one memory
 * context, which has a table of its own, and which takes the table off the list when it is reset.
 * With GEQO, each tour has such a context.  So a note of another tour, or of another query, is never
 * found, although the address may be the same; nor is one after an error.
 *
 * Notes are made only by planner hooks, when the planner has dropped the relations that it does not
 * need (PostgreSQL frees some of those).  What a note refers to is allocated in its context, whichever
 * is the current one.
 */
#include "postgres.h"

#include <float.h>

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/spccache.h"

#include "fragment/costs.h"
#include "gpuhash.h"
#include "hash.h"
#include "heap/hints.h"
#include "heap/layout.h"
#include "plan/note.h"
#include "plan/planning.h"
#include "plan/wide_texts.h"
#include "service/placement.h"
#include "service/service.h"
#include "store/columns_share.h"
#include "store/resident.h"

typedef struct NoteEntry
{
	const RelOptInfo *rel;		/* hash key */
	char		status;			/* of simplehash.h */
	GhNote	   *note;
} NoteEntry;

#define SH_PREFIX notes
#define SH_ELEMENT_TYPE NoteEntry
#define SH_KEY_TYPE const RelOptInfo *
#define SH_KEY rel
#define SH_HASH_KEY(table, key) ((uint32) gh_mix64((uint64) (uintptr_t) (key)))
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* Notes of the relations in one memory context: of a planning, or of a tour of GEQO. */
typedef struct Notes
{
	MemoryContext context;
	notes_hash *table;
	MemoryContextCallback forget;
	struct Notes *next;
} Notes;

/* How many relations most queries have. */
#define GH_NOTES_FIRST 16

/* Of all contexts; the one in use comes first, as it was made last. */
static Notes *all_notes = NULL;

GhRecentNote gh_recent_notes[GH_RECENT_NOTES];

/* Called when the context goes. */
static void
forget_notes(void *arg)
{
	Notes	  **at = &all_notes;

	memset(gh_recent_notes, 0, sizeof(gh_recent_notes));
	while (*at != arg)
		at = &(*at)->next;
	*at = (*at)->next;
}

static Notes *
notes_in(MemoryContext context)
{
	Notes	   *notes = all_notes;

	while (notes != NULL && notes->context != context)
		notes = notes->next;
	if (notes != NULL)
		return notes;
	notes = MemoryContextAllocZero(context, sizeof(Notes));
	notes->context = context;
	notes->table = notes_create(context, GH_NOTES_FIRST, NULL);
	notes->forget.func = forget_notes;
	notes->forget.arg = notes;
	notes->next = all_notes;
	MemoryContextRegisterResetCallback(context, &notes->forget);
	all_notes = notes;
	return notes;
}

/* The memory context of the relation's note, and of all that it refers to. */
MemoryContext
gh_note_context(const RelOptInfo *rel)
{
	return GetMemoryChunkContext((void *) rel);
}

/* ----------------------------------------------------------- what is noted */

/* The access method is looked at just here: what is not PostgreSQL's own heap is never read as such. */
static GhRelationKind
kind_of_table(const RangeTblEntry *rte)
{
	Relation	relation;
	bool		is_heap;

	if (rte->inh)
		return GH_RELATION_PARTITIONED;
	if ((rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW) || !gh_layout_is_known())
		return GH_RELATION_OTHER;
	relation = table_open(rte->relid, NoLock);
	is_heap = relation->rd_tableam == GetHeapamTableAmRoutine();
	table_close(relation, NoLock);
	return is_heap ? GH_RELATION_HEAP : GH_RELATION_OTHER;
}

/* Whether it is a scan with conditions: a sample is none, and above a gating condition there is a Result. */
static bool
has_plain_scan(const RangeTblEntry *rte, const RelOptInfo *rel)
{
	ListCell   *lc;

	if (rte->tablesample != NULL)
		return false;
	foreach(lc, rel->baserestrictinfo)
	{
		if (lfirst_node(RestrictInfo, lc)->pseudoconstant)
			return false;
	}
	return true;
}

static void
fill(GhNote *note, PlannerInfo *root, const RelOptInfo *rel)
{
	const RangeTblEntry *rte;

	memset(note, 0, sizeof(*note));
	note->root = root;
	if (IS_JOIN_REL(rel))
		note->kind = GH_RELATION_JOIN;
	if (!IS_SIMPLE_REL(rel) || rel->rtekind != RTE_RELATION)
		return;
	rte = planner_rt_fetch(rel->relid, root);
	note->kind = kind_of_table(rte);
	note->is_readable = gh_enable_scan && note->kind == GH_RELATION_HEAP && has_plain_scan(rte, rel);
	note->on_device = gh_device_is_expected(rel->tuples);
}

static GhNote *
find_or_make(PlannerInfo *root, const RelOptInfo *rel)
{
	Notes	   *notes = notes_in(gh_note_context(rel));
	NoteEntry  *entry = notes_lookup(notes->table, rel);
	GhNote	   *note;
	bool		found;

	if (entry != NULL && entry->note->root == root)
		return entry->note;
	note = MemoryContextAlloc(notes->context, sizeof(GhNote));
	fill(note, root, rel);
	/* opening a table may have it all moved */
	notes_insert(notes->table, rel, &found)->note = note;
	return note;
}

/* Of a relation that may have no note. */
List *
gh_key_statistics_noted(PlannerInfo *root, const RelOptInfo *rel)
{
	const MemoryContext context = gh_note_context(rel);
	const Notes *notes = all_notes;
	const NoteEntry *entry;

	while (notes != NULL && notes->context != context)
		notes = notes->next;
	entry = notes == NULL ? NULL : notes_lookup(notes->table, rel);
	return entry != NULL && entry->note->root == root ? entry->note->key_statistics : NIL;
}

/* The relation's note, which becomes one of those that were found last. */
GhNote *
gh_find_note(PlannerInfo *root, RelOptInfo *rel)
{
	GhRecentNote *recent = gh_recent_note(rel);
	GhNote	   *note = find_or_make(root, rel);

	recent->rel = rel;
	recent->note = note;
	return note;
}

/* Of tables with fewer pages it is not asked where these are. */
#define GH_SAMPLED_PAGES 1000

/*
 * About what share of a heap table's pages would have to be read.  What a device takes for a page is much
 * less than seq_page_cost, so that this decides for or against it.
 */
static double
share_to_be_read(Relation relation, BlockNumber npages)
{
	return npages < GH_SAMPLED_PAGES || RelationUsesLocalBuffers(relation) ? 1 :
		1 - gh_share_in_pool(relation, npages);
}

/* What a page of a table costs a device that it is brought to: by what share of them is in shared buffers. */
static void
price_on_device(PlannerInfo *root, const RelOptInfo *rel, GhNote *note)
{
	Relation	relation = table_open(planner_rt_fetch(rel->relid, root)->relid, NoLock);
	double		read = share_to_be_read(relation, rel->pages);

	note->resident = gh_resident_share(relation, rel->pages);
	table_close(relation, NoLock);
	note->page_cost[1] *= read;
	/* of other pages it is to be found out which tuples are visible */
	note->pinned = gh_service_reads_pool() ? (1 - read) * rel->allvisfrac : 0;
}

/*
 * What one of the relation's pages costs where it is read with those beside it.  PostgreSQL charges
 * seq_page_cost for pages in shared buffers, too, and so do the nodes on the host, whose costs are compared
 * with its own; but not a device.
 */
Cost
gh_note_page_cost(PlannerInfo *root, RelOptInfo *rel, bool on_device)
{
	GhNote	   *note = gh_note(root, rel);

	if (!note->has_page_cost)
	{
		get_tablespace_page_costs(rel->reltablespace, NULL, &note->page_cost[0]);
		note->page_cost[1] = note->page_cost[0];
		/* one that is too small to be scanned there may have its joins' table made there */
		if (note->kind == GH_RELATION_HEAP && gh_device_is_expected(DBL_MAX))
			price_on_device(root, rel, note);
	}
	note->has_page_cost = true;
	return note->page_cost[on_device];
}

/* Columns lack where those that there are are of less than this share of the pages that they can be of: */
#define GH_LACKING_SHARE 0.5
/* all-visible ones, which are most of the table's. */
#define GH_VISIBLE_SHARE 0.5

/* Columns by their numbers, of what pull_varattnos() has found; *others: that has what is no column, too. */
Bitmapset *
gh_column_numbers(const Bitmapset *attnos, bool *others)
{
	Bitmapset  *columns = NULL;
	int			member = -1;

	*others = false;
	while ((member = bms_next_member(attnos, member)) >= 0)
	{
		int			attno = member + FirstLowInvalidHeapAttributeNumber;

		if (attno > 0)
			columns = bms_add_member(columns, attno);
		else
			*others = true;
	}
	return columns;
}

/*
 * The columns of a table that its conditions read, and conditions_only: no others, by their numbers; *others:
 * it reads what is no column.
 */
static Bitmapset *
columns_read(const RelOptInfo *rel, bool conditions_only, bool *others)
{
	Bitmapset  *all = NULL;		/* as pull_varattnos() has them */
	ListCell   *lc;

	for (int attno = rel->min_attr; attno <= rel->max_attr && !conditions_only; attno++)
		if (!bms_is_empty(rel->attr_needed[attno - rel->min_attr]))
			all = bms_add_member(all, attno - FirstLowInvalidHeapAttributeNumber);
	foreach(lc, rel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause, rel->relid, &all);
	return gh_column_numbers(all, others);
}

/*
 * Whether the CPU engine may find columns of the table in memory: of a partition it is not known which
 * columns are read.
 */
static bool
may_have_columns(RelOptInfo *rel, const GhNote *note)
{
	return note->is_readable && rel->reloptkind == RELOPT_BASEREL && !note->on_device && !gh_force_offload && gh_service_enabled();
}

/*
 * For what share of the table's pages the CPU engine finds in memory all columns that the query, or only its conditions, read of it.
 * *lacking: where that is little, and the columns could be made, which they are; NULL: it is not asked.
 */
static double
find_columns_share(PlannerInfo *root, RelOptInfo *rel, const GhNote *note, bool conditions_only, uint64 *lacking)
{
	bool		others = false;
	Bitmapset  *read;
	Relation	relation;
	double		share;

	if (!may_have_columns(rel, note))
		return 0;
	read = columns_read(rel, conditions_only, &others);
	/* of pages with wide texts no columns are read */
	if (read == NULL || others || gh_has_wide_texts(root, rel, read))
		return 0;
	relation = table_open(planner_rt_fetch(rel->relid, root)->relid, NoLock);
	share = gh_columns_share(relation, rel->pages, read) * rel->allvisfrac;
	if (lacking != NULL && share < GH_LACKING_SHARE * rel->allvisfrac && rel->allvisfrac >= GH_VISIBLE_SHARE &&
		!gh_has_few_rows(rel->tuples))
		*lacking = gh_columns_missing(relation, rel->tuples, read);
	table_close(relation, NoLock);
	return share;
}

/*
 * For what share of the table's pages a scan by the CPU engine finds in memory all columns that the query
 * reads of it.  Of pages that have changed since it does not.  A plan that is kept may outlive them.
 */
double
gh_columns_share_of(PlannerInfo *root, RelOptInfo *rel)
{
	GhNote	   *note = gh_note(root, rel);

	if (!note->has_columns_share)
	{
		note->columns_lacking = 0;
		note->columns_share = find_columns_share(root, rel, note, false, &note->columns_lacking);
	}
	note->has_columns_share = true;
	return note->columns_share;
}

/* The same of the columns that the table's conditions read. */
double
gh_condition_columns_share(PlannerInfo *root, RelOptInfo *rel)
{
	GhNote	   *note = gh_note(root, rel);

	if (!note->has_condition_share)
		note->condition_share = find_columns_share(root, rel, note, true, NULL);
	note->has_condition_share = true;
	return note->condition_share;
}

/*
 * Whether columns of the table that the query reads are not in memory, and would be made if they were asked
 * for.
 */
bool
gh_columns_lack(PlannerInfo *root, RelOptInfo *rel)
{
	(void) gh_columns_share_of(root, rel);
	return gh_note(root, rel)->columns_lacking != 0;
}

/*
 * What one of several processes saves by columns of such a share of the table's pages, of what reading these
 * costs: for the pages, and for the rows.
 */
void
gh_columns_save(PlannerInfo *root, RelOptInfo *rel, double share, double divisor, Cost *pages, Cost *rows)
{
	*pages = *rows = 0;
	/* mostly there are none, and to price a page may take a look at where it is */
	if (share == 0)
		return;
	*pages = share * rel->pages * gh_note_page_cost(root, rel, false);
	*rows = share * rel->tuples / divisor * (GH_PAGE_ROW_COST - GH_COLUMN_ROW_COST) * cpu_tuple_cost;
}

/* The same by those that there are. */
void
gh_columns_saved(PlannerInfo *root, RelOptInfo *rel, double divisor, Cost *pages, Cost *rows)
{
	gh_columns_save(root, rel, gh_columns_share_of(root, rel), divisor, pages, rows);
}

/*
 * Of the relation's note: what it costs that one process has a device read all of its pages, but for the
 * start.
 */
Cost
gh_find_device_cost(PlannerInfo *root, RelOptInfo *rel, GhNote *note)
{
	Cost		page_cost = gh_note_page_cost(root, rel, true);
	double		brought = 1 - note->resident;

	note->device_cost = gh_device_pages_cost(rel->pages, page_cost * brought, 1 - brought, note->pinned * brought, 1, 1);
	note->has_device_cost = true;
	return note->device_cost;
}

/*
 * A Seq Scan of a table that a device is expected to read, whose cheapest path is another one: it is as dear
 * to PostgreSQL as it may be.
 */
Path *
gh_note_whole_scan(PlannerInfo *root, RelOptInfo *rel)
{
	GhNote	   *note = gh_note(root, rel);
	MemoryContext saved;

	if (note->fragment[0] == NULL)
	{
		saved = MemoryContextSwitchTo(gh_note_context(rel));
		note->fragment[0] = create_seqscan_path(root, rel, NULL, 0);
		MemoryContextSwitchTo(saved);
	}
	return note->fragment[0];
}

/*
 * Joins for a device, which cost less there than those that were kept: a copy, for the planner frees paths
 * that others drive out.
 */
void
gh_note_keep_joins(PlannerInfo *root, const Path *joins, Cost cost)
{
	GhNote	   *note = gh_note(root, joins->parent);
	Path	   *copy = MemoryContextAlloc(gh_note_context(joins->parent), sizeof(CustomPath));

	memcpy(copy, joins, sizeof(CustomPath));
	note->fragment[joins->parallel_workers > 0] = copy;
	note->fragment_cost[joins->parallel_workers > 0] = cost;
}

static bool
find_result(Node *node, PlannerInfo *root)
{
	if (node == NULL)
		return false;
	if (!IsA(node, Param) || ((Param *) node)->paramkind != PARAM_EXEC)
		return expression_tree_walker(node, find_result, root);
	for (; root != NULL; root = root->parent_root)
	{
		ListCell   *lc;

		foreach(lc, root->init_plans)
		{
			if (list_member_int(lfirst_node(SubPlan, lc)->setParam, ((Param *) node)->paramid))
				return true;
		}
	}
	return false;
}

/* A value of a row outside of this query, which is run once more for each of those. */
static bool
find_outer_value(Node *node, PlannerInfo *root)
{
	if (node == NULL)
		return false;
	if (!IsA(node, Param))
		return expression_tree_walker(node, find_outer_value, root);
	return ((Param *) node)->paramkind == PARAM_EXEC && !find_result(node, root);
}

static bool
index_follows_outer_row(PlannerInfo *root, const IndexPath *path)
{
	ListCell   *lc;

	foreach(lc, path->indexclauses)
		if (find_outer_value((Node *) lfirst_node(IndexClause, lc)->rinfo->clause, root))
			return true;
	return false;
}

/* Whether a path of a table looks into an index by values of a row outside of this query. */
bool
gh_follows_outer_row(PlannerInfo *root, const Path *path)
{
	const List *quals = NIL;
	ListCell   *lc;

	if (IsA(path, IndexPath))
		return index_follows_outer_row(root, (const IndexPath *) path);
	if (IsA(path, BitmapHeapPath))
		return gh_follows_outer_row(root, ((const BitmapHeapPath *) path)->bitmapqual);
	if (IsA(path, BitmapAndPath))
		quals = ((const BitmapAndPath *) path)->bitmapquals;
	else if (IsA(path, BitmapOrPath))
		quals = ((const BitmapOrPath *) path)->bitmapquals;
	foreach(lc, quals)
		if (gh_follows_outer_row(root, lfirst(lc)))
			return true;
	return false;
}

static bool
compares_with_result(PlannerInfo *root, const RelOptInfo *rel)
{
	bool		any = false;
	ListCell   *lc;

	for (PlannerInfo *level = root; level != NULL; level = level->parent_root)
		any |= level->init_plans != NIL;
	if (!any)
		return false;
	foreach(lc, rel->baserestrictinfo)
	{
		if (find_result((Node *) lfirst_node(RestrictInfo, lc)->clause, root))
			return true;
	}
	return false;
}

/* Whether a condition of a relation has a subquery, which the host runs. */
bool
gh_conditions_have_subqueries(const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
	{
		if (contain_subplans((Node *) lfirst_node(RestrictInfo, lc)->clause))
			return true;
	}
	return false;
}

/*
 * Whether a condition of a relation compares with the result of a subquery that is run when it is first asked
 * for.
 */
bool
gh_note_awaits(PlannerInfo *root, RelOptInfo *rel)
{
	GhNote	   *note = gh_note(root, rel);

	if (!note->has_awaits)
		note->awaits = compares_with_result(root, rel);
	note->has_awaits = true;
	return note->awaits;
}

/* The conditions of a heap table, in the order in which they are evaluated, and split. */
const GhConditions *
gh_note_conditions(PlannerInfo *root, RelOptInfo *rel)
{
	GhNote	   *note = gh_note(root, rel);
	MemoryContext saved;
	Relation	relation;

	Assert(note->kind == GH_RELATION_HEAP);
	if (note->has_conditions)
		return &note->conditions;
	saved = MemoryContextSwitchTo(gh_note_context(rel));
	relation = table_open(planner_rt_fetch(rel->relid, root)->relid, NoLock);
	gh_rowscan_conditions(root, rel, RelationGetDescr(relation), &note->conditions);
	table_close(relation, NoLock);
	MemoryContextSwitchTo(saved);
	note->has_conditions = true;
	return &note->conditions;
}
