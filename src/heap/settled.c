/*
 * settled.c
 *		Whether VACUUM would mark a page as all-visible.
 *
 * Some pages are left without the mark although nothing on them has changed for long: others had them pinned
 * when VACUUM came by, or it was not there since, or they are new.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/transam.h"
#include "storage/bufmgr.h"

#include "heap/settled.h"

/* The page is locked. */
static bool
is_settled(Relation relation, Buffer buffer, BlockNumber block, OffsetNumber line, TransactionId horizon)
{
	Page		page = BufferGetPage(buffer);
	ItemId		item = PageGetItemId(page, line);
	HeapTupleData tuple;

	if (!ItemIdIsUsed(item) || ItemIdIsRedirected(item))
		return true;
	if (!ItemIdIsNormal(item))
		return false;
	tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
	tuple.t_len = ItemIdGetLength(item);
	tuple.t_tableOid = RelationGetRelid(relation);
	ItemPointerSet(&tuple.t_self, block, line);
	return HeapTupleSatisfiesVacuum(&tuple, horizon, buffer) == HEAPTUPLE_LIVE &&
		HeapTupleHeaderXminCommitted(tuple.t_data) &&
		TransactionIdPrecedes(HeapTupleHeaderGetXmin(tuple.t_data), horizon);
}

/*
 * Whether all snapshots, those of later, too, see all rows of a block, as long as its page's LSN is *lsn, or
 * it is new: every change of them moves it, in a relation that needs WAL. horizon:
 * GetOldestNonRemovableTransactionId, of before.  Not in recovery.
 */
bool
gh_page_is_settled(Relation relation, BlockNumber block, TransactionId horizon, XLogRecPtr *lsn)
{
	Buffer		buffer = ReadBuffer(relation, block);
	Page		page = BufferGetPage(buffer);
	bool		settled = true;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	/*
	 * COPY and others make a table longer by several pages at a time (from 16 on), and VACUUM leaves those as
	 * they are
	 */
	if (PageIsNew(page))
	{
		UnlockReleaseBuffer(buffer);
		*lsn = GH_PAGE_IS_NEW;
		return true;
	}
	for (OffsetNumber line = FirstOffsetNumber; settled && line <= PageGetMaxOffsetNumber(page); line++)
		settled = is_settled(relation, buffer, block, line, horizon);
	/* hints that were just set may have moved it */
	*lsn = BufferGetLSNAtomic(buffer);
	UnlockReleaseBuffer(buffer);
	return settled && *lsn != InvalidXLogRecPtr;
}
