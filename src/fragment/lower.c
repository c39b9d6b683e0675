/*
 * lower.c
 *		How a node finds out that what is below it is a hash join that it may do by itself.
 */
#include "postgres.h"

#include "fragment/lower.h"

static GhLowerFind find_join = NULL;

/* Called once, by the join node, which is on a higher floor: before, no join is found. */
void
gh_lower_register(GhLowerFind find)
{
	find_join = find;
}

GhLowerJoin *
gh_lower_join(PlanState *ps)
{
	return find_join != NULL ? find_join(ps) : NULL;
}
