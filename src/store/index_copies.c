/*
 * index_copies.c
 *		What the room of the access method does for those who use copies of its indexes: it registers that here.
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
