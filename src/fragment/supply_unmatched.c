/*
 * supply_unmatched.c
 *		The rows of a join's table that no row has matched, when all pages were supplied; and the groups of another
 *		pipeline.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "fragment/supply.h"

/* Rows of a request that asks for those of a table without a match. */
#define GH_SUPPLY_ROWS 131072
/* Of the service, which has room by itself for those that are handed back. */
#define GH_SERVICE_ROWS (1 << 22)

/* Asks for so many rows of a kind, none of which is to come back. */
static bool
ask_for_rows(GhSupply *supply, GhInputKind kind, uint32 step, uint64 nrows)
{
	uint64		most = GH_SERVICE_ROWS;

	if (nrows > 0 && !gh_supply_take_buffers(supply))
		return false;
	/* each may be handed back */
	if (!supply->engine->shares_tables)
		most = Min((uint64) supply->room * MaxHeapTuplesPerPage, GH_SUPPLY_ROWS);
	for (uint64 first = 0; first < nrows && !supply->failed; first += most)
	{
		GhSupplyRequest *request = &supply->requests[supply->current];

		CHECK_FOR_INTERRUPTS();
		request->request.kind = kind;
		request->request.step = step;
		request->request.first = first;
		request->request.count = Min(nrows - first, most);
		gh_supply_turn_over(supply);
	}
	return gh_supply_flush(supply);
}

/* Asks for all groups of the pipeline's source, of which there are so many.  False: the supply has failed. */
bool
gh_supply_source(GhSupply *supply, uint64 ngroups)
{
	return ask_for_rows(supply, GH_INPUT_SOURCE, 0, ngroups);
}

/*
 * Asks for the rows that have no match in the table that a step probes, of the nrows that are in it, when all
 * pages have been supplied and flushed.  False: the supply has failed.
 */
bool
gh_supply_unmatched(GhSupply *supply, uint32 step, uint64 nrows)
{
	return ask_for_rows(supply, GH_INPUT_UNMATCHED, step, nrows);
}
