/*
 * columns_share.c
 *		Of how many of a table's blocks columns are in shared memory: for the planner.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "store/columns_share.h"
#include "store/columns_use.h"

/* So many stripes are looked at, evenly spread. */
#define GH_SAMPLED_STRIPES 32

static bool
has_attribute(const GhStripe *stripe, int attribute)
{
	for (uint32 s = 0; s < stripe->ncolumns; s++)
		if (stripe->columns[s].attribute == attribute)
			return true;
	return false;
}

static bool
has_attributes(const GhStripe *stripe, const Bitmapset *attributes)
{
	int			attribute = -1;

	while ((attribute = bms_next_member(attributes, attribute)) >= 0)
		if (!has_attribute(stripe, attribute))
			return false;
	return true;
}

/* Blocks of the stripes that are looked at, of those that these could have, 0 to 1; under the copy's lock. */
static double
share_of_stripes(dsa_area *area, const GhStoredColumns *root, const Bitmapset *attributes)
{
	uint32		step = Max(root->nstripes / GH_SAMPLED_STRIPES, 1);
	const dsa_pointer *stripes = dsa_get_address(area, root->stripes);
	uint32		nblocks = 0;
	uint32		nlooked = 0;

	for (uint32 number = 0; number < root->nstripes; number += step, nlooked++)
	{
		const GhStripe *stripe;

		if (!DsaPointerIsValid(stripes[number]))
			continue;
		stripe = dsa_get_address(area, stripes[number]);
		if (has_attributes(stripe, attributes))
			nblocks += pg_popcount32(stripe->there);
	}
	return (double) nblocks / (nlooked * GH_STRIPE_BLOCKS);
}

/*
 * For about what share of a table's pages, 0 to 1, all of these attributes are there, by their numbers from 1 on.  Whether they are still right
 * is not asked.
 */
double
gh_columns_share(Relation relation, BlockNumber npages, const Bitmapset *attributes)
{
	GhCopyFacts facts;
	GhCopyHold	hold;
	double		share = 0;

	if (npages == 0 || !gh_shared_copy_look(GH_COPY_OF_COLUMNS, relation, &facts) || facts.rows == 0 ||
		!gh_shared_copy_open(GH_COPY_OF_COLUMNS, relation, &hold))
		return 0;
	LWLockAcquire(&hold.columns->lock, LW_SHARED);
	if (hold.columns->nstripes > 0)
		share = share_of_stripes(hold.area, hold.columns, attributes) *
			Min((double) hold.columns->nstripes * GH_STRIPE_BLOCKS / npages, 1);
	LWLockRelease(&hold.columns->lock);
	gh_shared_copy_close(&hold);
	return share;
}
