/*
 * reload_columns.c
 *		Makes columns of tables that the planner asked for (../store/columns_wanted.c): a background worker, which the launcher
 *		(../store/reload.c) starts for a database.
 *
 * It does what gpuhash_prewarm() does, for one table after the other, and is in nobody's way, as what loads
 * pages again is (reload.c): each part has a transaction and locks of its own, and who has a lock against
 * these, or waits for one, has the rest of the table left.  Nobody's columns, or copies of indexes, that
 * queries still use go for what it makes.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/rel.h"

#include "compat.h"
#include "fragment/prewarm.h"
#include "service/faults.h"
#include "service/service.h"
#include "store/columns_wanted.h"
#include "store/shared_copies.h"

/*
 * Blocks of a part: 16 MB, of which columns are made in a fraction of a second; tests have several in a small
 * table.
 */
#define GH_PART_BLOCKS GH_WITH_FAULT_POINTS(256, 2048)
/* What was used within so long stays. */
#define GH_OTHERS_STAY_MS (10 * 60 * 1000)

typedef struct Making
{
	GhWantedColumns wanted;
	GhColumnsLoad load;
	uint32		number;			/* of the table's file; 0: it was not opened yet */
	bool		goes_on;		/* with other tables, when this one is done */
} Making;

/*
 * Whether the table is as it was when the first part was made, and as those whose columns are asked for are.
 */
static bool
is_as_before(Making *making, Relation relation)
{
	if (making->number == 0)
		making->number = gh_relation_number(relation);
	return making->number == gh_relation_number(relation) && gh_is_loadable(relation);
}

/* In a transaction. */
static void
make_part(void *arg)
{
	Making	   *making = arg;
	Relation	relation = NULL;

	making->goes_on = gh_loader_lock_database();
	making->load.ended = true;
	if (!making->goes_on || !ConditionalLockRelationOid(making->wanted.relation, AccessShareLock) ||
		(relation = try_relation_open(making->wanted.relation, NoLock)) == NULL)
		return;
	if (is_as_before(making, relation) && gh_fault_pass(GH_FAULT_POINT_COLUMNS_WORKER) == GH_FAULT_NONE)
		gh_load_columns(relation, &making->load);
	relation_close(relation, NoLock);
}

/* False: no more of this database. */
static bool
make_columns(const GhWantedColumns *wanted)
{
	Making		making = {.wanted = *wanted,.load = {.columns = wanted->columns,.most_blocks = GH_PART_BLOCKS}};

	ereport(DEBUG1,
			(errmsg("gpuhash makes columns of relation %u of database %u", wanted->relation, MyDatabaseId)));
	do
		gh_loader_in_transaction(make_part, &making);
	while (!making.load.ended && gh_prewarm_columns);
	return making.goes_on && gh_prewarm_columns;
}

void
gh_columns_worker_main(Datum arg)
{
	GhWantedColumns wanted;

	gh_loader_begin(arg);
	gh_shared_copies_spare(GH_OTHERS_STAY_MS);
	while (gh_columns_wanted_next(&wanted) && make_columns(&wanted))
		;
}
