/*
 * index_copies.c
 *		Copies of indexes: what the room of the access method does for those who use them, which it registers here, and what
 *		the planner sees of them.
 */
#include "postgres.h"

#include "store/index_copies.h"

static const GhIndexCopyMethods *methods = NULL;

void
gh_index_copies_register(const GhIndexCopyMethods *those)
{
	methods = those;
}

const GhIndexCopyMethods *
gh_index_copy_methods(void)
{
	return methods;
}

bool
gh_index_copy_look(Relation index, GhIndexCopy *copy)
{
	GhCopyFacts facts;

	if (!gh_shared_copy_look(GH_COPY_OF_INDEX, index, &facts))
		return false;
	copy->generation = facts.generation;
	copy->nblocks = facts.nblocks;
	return true;
}
