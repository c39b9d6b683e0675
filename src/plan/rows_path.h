/*
 * rows_path.h
 *		What the planning of joins and aggregates asks of GpuHashRows.
 */
#ifndef GPUHASH_AGGREGATE_ROWS_PATH_H
#define GPUHASH_AGGREGATE_ROWS_PATH_H

#include "postgres.h"

#include "nodes/pathnodes.h"

#include "plan/join_path.h"
#include "plan/note.h"

/* ---- rows_path.c ---- */

/* What a row costs that is put together on the host, kept, and returned: in cpu_tuple_cost. */
#define GH_COLLECTED_ROW_COST 10.0
/*
 * Bytes of texts that are long, on average: some may be compressed, and an engine would hand their rows back.
 */
#define GH_LONG_TEXT 128

extern bool gh_rows_may_win(PlannerInfo *root, RelOptInfo *joinrel, Path *outer, Path *inner);
extern bool gh_joins_may_be_kept(PlannerInfo *root, RelOptInfo *joinrel, const GhJoinChoice *choice);
extern bool gh_rows_cost_too_much(PlannerInfo *root, RelOptInfo *joinrel, const GhJoinChoice *choice);
extern bool gh_rows_may_compete(PlannerInfo *root, RelOptInfo *joinrel, GhJoinStep *step,
								const GhJoinChoice *choice, bool in_place);
extern Path *gh_rows_of_join(PlannerInfo *root, Path *join, Path *other, const Cost *other_costs);
extern Path *gh_kept_joins(PlannerInfo *root, RelOptInfo *rel, bool partial);
extern void gh_rows_add_paths(PlannerInfo *root, Path *join, bool itself,
							  void (*add) (RelOptInfo *, Path *));
extern Path *gh_rows_joins(Path *path);
extern Path *gh_rows_unwrapped(PlannerInfo *root, Path *path);

/* ---- first_rows.c ---- */

extern double gh_first_rows_least(const PlannerInfo *root, const RelOptInfo *rel, double rows);
extern double gh_first_rows(PlannerInfo *root, RelOptInfo *rel, Path *scan, const GhRowColumns *columns, double rows,
							double divisor, Cost *cost);
extern double gh_first_groups(const PlannerInfo *root, double groups);
extern double gh_first_rows_of_scan(PlannerInfo *root, RelOptInfo *rel, double rows, double divisor, double *share);

#endif							/* GPUHASH_AGGREGATE_ROWS_PATH_H */
