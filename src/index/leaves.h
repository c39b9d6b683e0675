/*
 * leaves.h
 *		leaves.c: what the leaf pages of an index have.
 */
#ifndef GPUHASH_INDEX_LEAVES_H
#define GPUHASH_INDEX_LEAVES_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "storage/block.h"
#include "storage/buf.h"
#include "utils/rel.h"

/*
 * An entry: the block of its row, and the columns' values, which are good until the function returns.
 * False: no more.
 */
typedef bool (*GhLeafEntry) (void *arg, BlockNumber block, const Datum *values, const bool *nulls);

/*
 * Where the next page is to be copied to, BLCKSZ bytes; NULL: nothing is read any more.  And that a leaf page
 * is there, of which some lines are entries, looked at by nobody but for its head; false: likewise.
 */
typedef char *(*GhLeafRoom) (void *arg);
typedef bool (*GhLeafPage) (void *arg, const char *page);

/* Likewise, of a page that is pinned, which is the callee's to release: it has so many lines, and this LSN. */
typedef bool (*GhLeafPinned) (void *arg, Buffer buffer, uint32 lines, XLogRecPtr lsn);

/* Reads entries of pages by themselves. */
typedef struct GhLeafReader GhLeafReader;

extern GhLeafReader *gh_leaf_reader(Relation index, GhLeafEntry entry, void *arg);
/* The function is called for a line's entry, or its entries; false: as of gh_leaves_read. */
extern bool gh_leaf_read_line(GhLeafReader *reader, const char *page, OffsetNumber line);

/*
 * Copies all leaf pages, from the first to the last, to where room says.  As gh_leaves_read otherwise.
 */
extern bool gh_leaves_copy(Relation index, GhLeafRoom room, GhLeafPage page, void *arg);
/*
 * Pins them all, one by one.  Others may change a page from then on, which its LSN tells: not of an index
 * that is not logged.
 */
extern bool gh_leaves_pin(Relation index, GhLeafPinned page, void *arg);

/*
 * Has the function called for all entries, from the least to the greatest, but for those that are known to be
 * of rows that nobody sees any more.  A snapshot is held from before the call to its end.  False: the
 * function was false, or a page is not as nbtree writes it.
 */
extern bool gh_leaves_read(Relation index, GhLeafEntry entry, void *arg);

#endif							/* GPUHASH_INDEX_LEAVES_H */
