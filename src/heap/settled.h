/*
 * settled.h
 *		Pages that the visibility map has not, though every snapshot sees all of their rows.
 */
#ifndef GPUHASH_SETTLED_H
#define GPUHASH_SETTLED_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "utils/rel.h"

/* In the place of the LSN of a page that is new: it has no rows. */
#define GH_PAGE_IS_NEW PG_UINT64_MAX

extern bool gh_page_is_settled(Relation relation, BlockNumber block, TransactionId horizon, XLogRecPtr *lsn);

#endif							/* GPUHASH_SETTLED_H */
