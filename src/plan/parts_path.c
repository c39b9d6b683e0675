/*
 * parts_path.c
 *		Several tables that are read as one, as paths: the partitions of a table, those that inherit from one, or the
 *		sides of a UNION ALL.
 *
 * A node above reads the pages of all of them by one program (../fragment/parts.c).  That takes plain tables
 * whose tuples lie alike, with the same conditions, and whatever is read of them in the same columns.
 * Partitions that the planner has pruned are none of them.
 */
#include "postgres.h"

#include "access/table.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

#include "compat.h"
#include "gpuhash.h"
#include "fragment/parts.h"
#include "heap/layout.h"
#include "plan/chain.h"
#include "plan/input_path.h"
#include "plan/note.h"
#include "plan/parts_path.h"
#include "plan/scan_path.h"
#include "service/placement.h"

/* ------------------------------------------------------------ which they are */

static bool
contains_exec_param(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind == PARAM_EXEC;
	return expression_tree_walker(node, contains_exec_param, context);
}

/*
 * Whether PostgreSQL may leave partitions of the relation out in each run, by what a parameter or a subquery
 * gives.
 */
static bool
may_be_pruned(const RelOptInfo *rel)
{
	List	   *keys = NIL;
	ListCell   *lc;

	for (int i = 0; rel->part_scheme != NULL && i < rel->part_scheme->partnatts; i++)
		keys = list_concat(keys, pull_var_clause((Node *) rel->partexprs[i], 0));
	foreach(lc, rel->baserestrictinfo)
	{
		Node	   *clause = (Node *) lfirst_node(RestrictInfo, lc)->clause;

		if (contains_exec_param(clause, NULL) && list_intersection(pull_var_clause(clause, PVC_RECURSE_PLACEHOLDERS), keys) != NIL)
			return true;
	}
	return false;
}

/* Adds the tables below a relation to the list; false: one of them is none whose pages can be read. */
static bool
collect_tables(PlannerInfo *root, const RelOptInfo *parent, List **rels)
{
	ListCell   *lc;

	if (may_be_pruned(parent))
		return false;
	foreach(lc, root->append_rel_list)
	{
		const AppendRelInfo *appinfo = lfirst_node(AppendRelInfo, lc);
		RelOptInfo *rel = root->simple_rel_array[appinfo->child_relid];

		if (appinfo->parent_relid != parent->relid || rel == NULL || IS_DUMMY_REL(rel))
			continue;
		if (planner_rt_fetch(appinfo->child_relid, root)->inh)
		{
			if (!collect_tables(root, rel, rels))
				return false;
		}
		else if (gh_note(root, rel)->is_readable)
			*rels = lappend(*rels, rel);
		else
			return false;
	}
	return true;
}

static bool
tuples_lie_alike(PlannerInfo *root, RelOptInfo *a, RelOptInfo *b)
{
	Relation	left = table_open(planner_rt_fetch(a->relid, root)->relid, NoLock);
	Relation	right = table_open(planner_rt_fetch(b->relid, root)->relid, NoLock);
	bool		alike = gh_tuples_lie_alike(RelationGetDescr(left), RelationGetDescr(right)) &&
		!RelationUsesLocalBuffers(left) && !RelationUsesLocalBuffers(right);

	table_close(left, NoLock);
	table_close(right, NoLock);
	return alike;
}

static bool
are_alike(PlannerInfo *root, List *rels)
{
	RelOptInfo *first = linitial(rels);
	List	   *conditions = extract_actual_clauses(first->baserestrictinfo, false);
	ListCell   *lc;

	foreach(lc, rels)
	{
		RelOptInfo *rel = lfirst(lc);

		if (!tuples_lie_alike(root, rel, first) ||
			!gh_exprs_are_alike(extract_actual_clauses(rel->baserestrictinfo, false), rel->relid, conditions, first->relid))
			return false;
	}
	return true;
}

/*
 * A device is expected to read all of the tables, and their notes say so of small ones, too, whose own paths
 * are made by now.
 */
static void
expect_on_device(PlannerInfo *root, const GhParts *parts)
{
	ListCell   *lc;

	foreach(lc, parts->rels)
	{
		GhNote	   *note = gh_note(root, lfirst(lc));

		if (note->on_device)
			continue;
		note->on_device = true;
		note->has_page_cost = note->has_device_cost = false;
	}
}

static GhParts *
make_parts(PlannerInfo *root, List *rels)
{
	GhParts    *parts = palloc0(sizeof(GhParts));
	ListCell   *lc;

	parts->rels = rels;
	foreach(lc, rels)
	{
		const RelOptInfo *rel = lfirst(lc);

		parts->pages += rel->pages;
		parts->tuples += rel->tuples;
	}
	parts->on_device = gh_device_is_expected(parts->tuples);
	if (parts->on_device)
		expect_on_device(root, parts);
	return parts;
}

/*
 * The tables that a relation stands for, and that are read as one; NULL: they cannot be, or it stands for
 * itself.
 */
const GhParts *
gh_find_parts(PlannerInfo *root, RelOptInfo *rel)
{
	GhNote	   *note;
	MemoryContext saved;
	List	   *rels = NIL;

	if (!IS_SIMPLE_REL(rel) || rel->reloptkind != RELOPT_BASEREL || !planner_rt_fetch(rel->relid, root)->inh ||
		rel->lateral_relids != NULL)
		return NULL;
	note = gh_note(root, rel);
	if (note->has_parts)
		return note->parts;
	note->has_parts = true;
	saved = MemoryContextSwitchTo(gh_note_context(rel));
	if (collect_tables(root, rel, &rels) && rels != NIL && are_alike(root, rels))
		note->parts = make_parts(root, rels);
	MemoryContextSwitchTo(saved);
	return note->parts;
}

/* Pages, and rows, of a table, or of several that are read as one. */
double
gh_pages_read(PlannerInfo *root, RelOptInfo *rel)
{
	const GhParts *parts = gh_find_parts(root, rel);

	return parts != NULL ? parts->pages : rel->pages;
}

double
gh_tuples_read(PlannerInfo *root, RelOptInfo *rel)
{
	const GhParts *parts = gh_find_parts(root, rel);

	return parts != NULL ? parts->tuples : rel->tuples;
}

/* -------------------------------------------------------------- their columns */

/* Expressions over the relation, over one of its tables: through all that is between. */
Node *
gh_parts_translated(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *part, Node *exprs)
{
	AppendRelInfo *info = root->append_rel_array[part->relid];

	if (info->parent_relid != rel->relid)
		exprs = gh_parts_translated(root, rel, root->simple_rel_array[info->parent_relid], exprs);
	return adjust_appendrel_attrs(root, exprs, 1, &info);
}

/* Whether the columns, Vars of the relation, are columns of each table, and the same ones. */
bool
gh_parts_have(PlannerInfo *root, RelOptInfo *rel, List *columns)
{
	const GhParts *parts = gh_find_parts(root, rel);
	RelOptInfo *first = linitial(parts->rels);
	List	   *of_first = (List *) gh_parts_translated(root, rel, first, (Node *) columns);
	ListCell   *lc;

	foreach(lc, parts->rels)
	{
		RelOptInfo *part = lfirst(lc);
		List	   *translated = (List *) gh_parts_translated(root, rel, part, (Node *) columns);

		if (!gh_are_columns(translated) || !gh_exprs_are_alike(translated, part->relid, of_first, first->relid))
			return false;
	}
	return true;
}

/* ------------------------------------------------------------------- the path */

static Path *
scan_part(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *part, List *columns, int workers)
{
	Path	   *path = create_seqscan_path(root, part, NULL, workers);
	PathTarget *target = create_empty_pathtarget();

	target->exprs = (List *) gh_parts_translated(root, rel, part, (Node *) columns);
	path->pathtarget = set_pathtarget_cost_width(root, target);
	return path;
}

/*
 * An Append of Seq Scans that put out these columns of the relation; workers: they are shared by so many and
 * the leader.
 */
Path *
gh_parts_scan(PlannerInfo *root, RelOptInfo *rel, List *columns, int workers)
{
	const GhParts *parts = gh_find_parts(root, rel);
	PathTarget *target = create_empty_pathtarget();
	List	   *scans = NIL;
	AppendPath *path;
	ListCell   *lc;

	foreach(lc, parts->rels)
		scans = lappend(scans, scan_part(root, rel, lfirst(lc), columns, workers));
	path = gh_append(root, rel, workers > 0 ? NIL : scans, workers > 0 ? scans : NIL, workers, false);
	target->exprs = columns;
	path->path.pathtarget = set_pathtarget_cost_width(root, target);
	return &path->path;
}

/* Whether the path is such an Append. */
bool
gh_is_parts_scan(PlannerInfo *root, const Path *path)
{
	ListCell   *lc;

	if (!IsA(path, AppendPath) || path->parallel_aware || gh_find_parts(root, path->parent) == NULL)
		return false;
	foreach(lc, ((const AppendPath *) path)->subpaths)
	{
		if (((const Path *) lfirst(lc))->pathtype != T_SeqScan)
			return false;
	}
	return true;
}

/* Whether all that the query reads of the relation are columns of each table. */
static bool
reads_columns(PlannerInfo *root, RelOptInfo *rel)
{
	return gh_are_columns(rel->reltarget->exprs) && gh_parts_have(root, rel, rel->reltarget->exprs);
}

/* Whether it is such a scan, or joins over one. */
bool
gh_ends_in_parts(PlannerInfo *root, Path *path)
{
	if (gh_is_join_path(path))
		path = gh_scan_below_joins(root, path);
	return path != NULL && gh_is_parts_scan(root, path);
}

/* The relation's, with all columns that the query reads of it; NULL: it is none.  It is made once. */
Path *
gh_parts_whole_scan(PlannerInfo *root, RelOptInfo *rel)
{
	GhNote	   *note;
	MemoryContext saved;

	if (gh_find_parts(root, rel) == NULL)
		return NULL;
	note = gh_note(root, rel);
	if (!note->has_parts_scan)
	{
		note->has_parts_scan = true;
		saved = MemoryContextSwitchTo(gh_note_context(rel));
		if (reads_columns(root, rel))
			note->fragment[0] = gh_parts_scan(root, rel, rel->reltarget->exprs, 0);
		MemoryContextSwitchTo(saved);
	}
	return note->fragment[0];
}

/*
 * The same for a chain of joins whose scan a node above reads, the tables one after the other: no Append
 * returns their rows, and it is not charged for that.  NULL: it is none.
 */
Path *
gh_parts_scan_for_chain(PlannerInfo *root, RelOptInfo *rel, int workers)
{
	Path	   *path;
	ListCell   *lc;

	if (!reads_columns(root, rel))
		return NULL;
	path = gh_parts_scan(root, rel, rel->reltarget->exprs, workers);
	path->total_cost = 0;
	foreach(lc, ((AppendPath *) path)->subpaths)
	{
		Path	   *part = lfirst(lc);

		part->total_cost = gh_rowscan_absorbed(root, part)->total_cost;
		path->total_cost += part->total_cost;
	}
	return path;
}

/*
 * In the place of a path that reads all of the tables: with gpuhash.force_offload, so that it is below all
 * joins that it can be below.  Or the path itself.
 */
Path *
gh_parts_forced(PlannerInfo *root, Path *path)
{
	if (!gh_force_offload || !enable_seqscan || !IsA(path, AppendPath) || path->param_info != NULL ||
		gh_is_parts_scan(root, path) || gh_parts_whole_scan(root, path->parent) == NULL)
		return path;
	return gh_parts_scan(root, path->parent, path->parent->reltarget->exprs, path->parallel_workers);
}
