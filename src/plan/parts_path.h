/*
 * parts_path.h
 *		Several tables that are read as one: the partitions of a table, or others below an Append.
 */
#ifndef GPUHASH_PARTS_PATH_H
#define GPUHASH_PARTS_PATH_H

#include "postgres.h"

#include "nodes/pathnodes.h"

/* Of the relation that stands for them all. */
typedef struct GhParts
{
	List	   *rels;			/* RelOptInfos of the tables, in their order */
	double		pages;
	double		tuples;
	bool		on_device;		/* a device is expected to read them */
} GhParts;

extern const GhParts *gh_find_parts(PlannerInfo *root, RelOptInfo *rel);
extern double gh_pages_read(PlannerInfo *root, RelOptInfo *rel);
extern double gh_tuples_read(PlannerInfo *root, RelOptInfo *rel);
extern Node *gh_parts_translated(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *part, Node *exprs);
extern bool gh_parts_have(PlannerInfo *root, RelOptInfo *rel, List *columns);
extern Path *gh_parts_scan(PlannerInfo *root, RelOptInfo *rel, List *columns, int workers);
extern Path *gh_parts_whole_scan(PlannerInfo *root, RelOptInfo *rel);
extern Path *gh_parts_scan_for_chain(PlannerInfo *root, RelOptInfo *rel, int workers);
extern Path *gh_parts_forced(PlannerInfo *root, Path *path);
extern bool gh_is_parts_scan(PlannerInfo *root, const Path *path);
extern bool gh_ends_in_parts(PlannerInfo *root, Path *path);

#endif							/* GPUHASH_PARTS_PATH_H */
