/*
 * hints.h
 *		Where blocks of relations were in shared buffers: a guess that spares the pool's table.
 */
#ifndef GPUHASH_HINTS_H
#define GPUHASH_HINTS_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "storage/block.h"
#include "storage/buf.h"
#include "utils/relcache.h"

extern Size gh_hints_shmem_size(void);
extern void gh_hints_shmem_init(void *memory, bool found);
extern bool gh_hint_read(Relation relation, BlockNumber block, bool ring, Buffer *buffer);
extern bool gh_hint_is_good(Relation relation, BlockNumber block, bool ring);
extern bool gh_hint_lsn(Relation relation, BlockNumber block, XLogRecPtr *lsn);
extern void gh_hint_fetch_header(Relation relation, BlockNumber block);
extern void gh_hint_fetch(Relation relation, BlockNumber block);
extern void gh_hint_keep(Relation relation, BlockNumber block, Buffer buffer);
extern bool gh_block_is_in_pool(Relation relation, BlockNumber block);
extern double gh_share_in_pool(Relation relation, BlockNumber nblocks);

#endif							/* GPUHASH_HINTS_H */
