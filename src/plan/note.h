/*
 * note.h
 *		What a relation of a query is to gpuhash, decided once while the query is planned.
 */
#ifndef GPUHASH_NOTE_H
#define GPUHASH_NOTE_H

#include "postgres.h"

#include "nodes/pathnodes.h"

#include "plan/chain.h"
#include "plan/scan_plan.h"

typedef enum GhRelationKind
{
	GH_RELATION_OTHER,			/* a subquery, a foreign table, a table of another access method, ... */
	GH_RELATION_HEAP,			/* a table or materialized view whose pages the engines can read */
	GH_RELATION_PARTITIONED,	/* a table with partitions, or others that inherit from it */
	GH_RELATION_JOIN
} GhRelationKind;

/*
 * How the columns of a join come out of a GpuHashRows: as values, or from tuples that are fetched by
 * their places, with which come all columns of the table.
 */
typedef struct GhRowColumns
{
	List	   *keys;			/* Vars whose values come out */
	Relids		fetched;		/* tables with none of these */
} GhRowColumns;

/* Of a table's index that was asked about last: for what share of blocks a copy is right; 0: there is none. */
typedef struct GhCopiedShare
{
	Oid			index;
	double		share;
} GhCopiedShare;

/* Each field names the function that fills it, when it is called for the first time. */
typedef struct GhNote
{
	PlannerInfo *root;
	GhRelationKind kind;		/* gh_note */
	bool		is_readable;	/* gh_note: a heap table whose pages a node above its scan may read */
	bool		on_device;		/* gh_note: a device is expected to read it */

	/* gh_note_page_cost: on the host; on a device, where it counts by how many pages have to be read */
	bool		has_page_cost;
	Cost		page_cost[2];
	double		resident;		/* the share of pages that are expected to be on the device already */
	double		pinned;			/* that which a device is expected to read in shared buffers, as they are */

	/* gh_columns_saved: for what share of pages the CPU engine has all columns in memory that the query reads of it */
	bool		has_columns_share;
	double		columns_share;
	uint64		columns_lacking;	/* where that is little, and the columns could be made: which it reads, as GhWantedColumns.columns; 0 */
	bool		has_condition_share;	/* the same share, of columns that conditions read */
	double		condition_share;

	/* gh_condition_columns_save: of the pages, the share that no row is fetched from for these columns */
	bool		has_unread;
	double		unread;

	/* gh_note_device_cost: that one process has a device read all pages */
	bool		has_device_cost;
	Cost		device_cost;

	/* gh_rowscan_absorbed: the Seq Scan as a join above takes it; [1]: as a part of a parallel plan */
	Path	   *absorbed[2];
	Cost		absorbed_cost[2];	/* of the Seq Scan that it was made from */
	Cost		absorbed_saved[2];	/* by columns in memory that its conditions read */

	/* gh_note_awaits */
	bool		has_awaits;
	bool		awaits;			/* a condition compares with the result of a subquery that is run when it is first asked for */

	/*
	 * The cheapest fragment that a device makes the relation by, where it is none of the planner's paths: of a table,
	 * its Seq Scan (gh_note_whole_scan); of a join, joins (gh_note_keep_joins).  Or NULL; [1]: of partial paths.
	 */
	Path	   *fragment[2];
	Cost		fragment_cost[2];	/* of joins, on the device */

	/* gh_parts_whole_scan: has filled fragment[0] */
	bool		has_parts_scan;

	/* gh_find_parts: the tables that it stands for, and that are read as one; or NULL */
	bool		has_parts;
	const struct GhParts *parts;

	/* gh_note_conditions */
	bool		has_conditions;
	GhConditions conditions;

	/* gh_note_row_columns */
	bool		has_row_columns;
	bool		returns_rows;	/* they can be returned by a GpuHashRows */
	GhRowColumns row_columns;

	/* gh_index_copied_share: of its copy in shared memory, and on a device */
	GhCopiedShare copied[2];

	/* look_up (key_values.c): of columns of a table, rows of pg_statistic for what its conditions leave */
	List	   *key_statistics;

	/* gh_find_whole: joins below a grouping, or NULL; [1]: of several processes */
	bool		has_whole[2];
	Path	   *whole[2];
	bool		joins_cost_more;	/* there could be some, which would do more than the planner's do */

	/* gh_whole_joins: likewise, the chain if its scan's columns were in memory, which lack, and what it would then be spared; or NULL */
	Path	   *hopeful[2];
	GhSpared	hopeful_spared[2];

	/* gh_first_rows: of joins over a scan of this table, 0 if none was asked about, rows may be left out */
	Index		first_rows_scan;
	bool		leaves_rows;
} GhNote;

/*
 * The notes that were found last, by the relations' addresses: while a query of many tables is planned the
 * same ones are asked for again and again.
 */
#define GH_RECENT_NOTES 256

typedef struct GhRecentNote
{
	const RelOptInfo *rel;
	GhNote	   *note;
} GhRecentNote;

extern GhRecentNote gh_recent_notes[GH_RECENT_NOTES];

static inline GhRecentNote *
gh_recent_note(const RelOptInfo *rel)
{
	return &gh_recent_notes[(uintptr_t) rel / sizeof(RelOptInfo) % GH_RECENT_NOTES];
}

extern GhNote *gh_find_note(PlannerInfo *root, RelOptInfo *rel);

/* The relation's note, which is made when it is asked for the first time. */
static inline GhNote *
gh_note(PlannerInfo *root, RelOptInfo *rel)
{
	const GhRecentNote *recent = gh_recent_note(rel);

	return recent->rel == rel && recent->note->root == root ? recent->note : gh_find_note(root, rel);
}

extern List *gh_key_statistics_noted(PlannerInfo *root, const RelOptInfo *rel);
extern Cost gh_find_device_cost(PlannerInfo *root, RelOptInfo *rel, GhNote *note);

static inline Cost
gh_note_device_cost(PlannerInfo *root, RelOptInfo *rel)
{
	GhNote	   *note = gh_note(root, rel);

	return note->has_device_cost ? note->device_cost : gh_find_device_cost(root, rel, note);
}

extern Bitmapset *gh_column_numbers(const Bitmapset *attnos, bool *others);
extern MemoryContext gh_note_context(const RelOptInfo *rel);
extern void gh_columns_saved(PlannerInfo *root, RelOptInfo *rel, double divisor, Cost *pages, Cost *rows);
extern double gh_columns_share_of(PlannerInfo *root, RelOptInfo *rel);
extern double gh_condition_columns_share(PlannerInfo *root, RelOptInfo *rel);
extern void gh_columns_save(PlannerInfo *root, RelOptInfo *rel, double share, double divisor, Cost *pages, Cost *rows);
extern bool gh_columns_lack(PlannerInfo *root, RelOptInfo *rel);
extern Cost gh_note_page_cost(PlannerInfo *root, RelOptInfo *rel, bool on_device);
extern Path *gh_note_whole_scan(PlannerInfo *root, RelOptInfo *rel);
extern void gh_note_keep_joins(PlannerInfo *root, const Path *joins, Cost cost);
extern bool gh_conditions_have_subqueries(const RelOptInfo *rel);
extern bool gh_follows_outer_row(PlannerInfo *root, const Path *path);
extern bool gh_note_awaits(PlannerInfo *root, RelOptInfo *rel);
extern const GhConditions *gh_note_conditions(PlannerInfo *root, RelOptInfo *rel);

#endif							/* GPUHASH_NOTE_H */
