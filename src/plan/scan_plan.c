/*
 * scan_plan.c
 *		From the chosen path to the CustomScan node.
 */
#include "postgres.h"

#include "optimizer/restrictinfo.h"

#include "plan/scan_plan.h"

/* PlanCustomPath.  The clauses are those of the path, in another order. */
Plan *
gh_rowscan_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
				List *custom_plans)
{
	CustomScan *cscan = makeNode(CustomScan);

	(void) root;
	(void) clauses;
	(void) custom_plans;
	cscan->scan.plan.targetlist = tlist;
	cscan->scan.plan.qual = extract_actual_clauses(list_nth(path->custom_private, GH_ROWSCAN_PATH_CONDITIONS), false);
	cscan->scan.scanrelid = rel->relid;
	cscan->flags = path->flags;
	cscan->methods = GetCustomScanMethods(GH_ROWSCAN_NAME, false);
	return &cscan->scan.plan;
}
