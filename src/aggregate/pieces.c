/*
 * pieces.c
 *		Groups that are final as a device has returned them, in a temporary file.
 *
 * Where one process has a device do all rows, each group comes back once.  What does not fit in memory then
 * need not be parted and merged like other groups (spill.c): it is written as it comes, before anything comes
 * out of the node, and read back some groups at a time.
 */
#include "postgres.h"

#include "commands/tablespace.h"
#include "storage/buffile.h"
#include "utils/memutils.h"

#include "aggregate/node.h"
#include "engine/pipeline/scan.h"

struct GhPieces
{
	BufFile    *file;
	uint64		bytes;			/* written */
	bool		reading;
	GhRecordBuffer buffer;
};

GhPieces *
gh_pieces_create(MemoryContext context)
{
	MemoryContext saved = MemoryContextSwitchTo(context);
	GhPieces   *pieces = palloc0(sizeof(GhPieces));

	PrepareTempTablespaces();
	pieces->file = BufFileCreateTemp(false);
	pieces->buffer.context = context;
	MemoryContextSwitchTo(saved);
	return pieces;
}

/* Writes records as of a scan's results (engine/pipeline/scan.h).  How many. */
uint64
gh_pieces_put(GhPieces *pieces, char *records, Size size)
{
	uint64		count = 0;

	for (Size at = 0; at < size; at += ((const GhScanGroup *) (records + at))->bytes)
	{
		if (size - at < sizeof(GhScanGroup) || ((const GhScanGroup *) (records + at))->bytes < sizeof(GhScanGroup))
			elog(ERROR, "group of a scan has a wrong size");
		count++;
	}
	BufFileWrite(pieces->file, records, size);
	pieces->bytes += size;
	return count;
}

/* Puts the next groups in place of those that are there; false: there are none. */
bool
gh_pieces_next(GhPieces *pieces, GhGroups *groups)
{
	Size		size;

	gh_groups_reset(groups);
	if (!pieces->reading && BufFileSeek(pieces->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file of a hash aggregation: %m")));
	pieces->reading = true;
	size = gh_records_read(&pieces->buffer, pieces->file);
	if (size > 0)
		gh_groups_merge_scan(groups, pieces->buffer.data, size);
	return size > 0;
}

uint64
gh_pieces_bytes(const GhPieces *pieces)
{
	return pieces->bytes;
}

void
gh_pieces_close(GhPieces *pieces)
{
	BufFileClose(pieces->file);
	if (pieces->buffer.data != NULL)
		pfree(pieces->buffer.data);
	pfree(pieces);
}
