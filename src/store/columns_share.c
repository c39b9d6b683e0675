/*
 * columns_share.c
 *		Of how many of a table's blocks columns are in shared memory: for the planner.
 *
 * It is asked in each planning, so that nothing is looked at but what the list of copies says.
 */
#include "postgres.h"

#include "store/columns_share.h"
#include "store/columns_wanted.h"
#include "store/shared_copies.h"

/* Whether the copy has all of these attributes, at least of some blocks. */
static bool
has_attributes(const GhCopyFacts *facts, const Bitmapset *attributes)
{
	int			attribute = -1;

	while ((attribute = bms_next_member(attributes, attribute)) >= 0)
		if (attribute > GH_FACTS_COLUMNS || (facts->columns >> (attribute - 1) & 1) == 0)
			return false;
	return true;
}

/*
 * For about what share of a table's pages, 0 to 1, all of these attributes are there, by their numbers from 1
 * on.  Whether they are still right is not asked; and of some pages columns may lack that others have.
 */
double
gh_columns_share(Relation relation, BlockNumber npages, const Bitmapset *attributes)
{
	GhCopyFacts facts;

	if (npages == 0 || !gh_shared_copy_look(GH_COPY_OF_COLUMNS, relation, &facts) || !has_attributes(&facts, attributes))
		return 0;
	return Min((double) facts.rows / npages, 1);
}

/*
 * These attributes, a bit each, of a table of so many rows, where their columns are not in memory and may be
 * asked for (columns_wanted.c); else 0.
 */
uint64
gh_columns_missing(Relation relation, double rows, const Bitmapset *attributes)
{
	GhWantedColumns wanted = {.relation = RelationGetRelid(relation)};
	int			attribute = -1;

	while ((attribute = bms_next_member(attributes, attribute)) >= 0)
	{
		if (attribute > GH_FACTS_COLUMNS)
			return 0;
		wanted.columns |= UINT64CONST(1) << (attribute - 1);
	}
	return gh_columns_may_be_wanted(relation, rows, &wanted) ? wanted.columns : 0;
}
