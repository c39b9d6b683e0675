/*
 * measure_pages.c
 *		What a page of a heap table costs the host that is to supply it to somebody else:
 *		to a device, or to the join's own source.
 *
 * A pass goes over all pages of a table, in one of these ways:
 *
 *	pinned			the page stays pinned, for as long as it is among the last so many
 *	copied			it is copied to an area of so many pages, and its pin given up
 *	stream_pinned	the same, by a read stream instead of block by block
 *	stream_copied
 *	source			as the join reads it: pages.c, which makes a list of visible tuples
 *	count			not at all: PostgreSQL's own count(*), to compare with
 *
 * Pinned and copied pages are noted as a device would be told of them: "all line
 * pointers up to n", or a bitmap of the visible tuples.  On the way to that each page gets
 * what PostgreSQL's page scans do for it: an interrupt check, opportunistic pruning,
 * visibility under the content lock (all at once where the page is all-visible, not in
 * recovery), serializable conflicts tuple by tuple, the old-snapshot test up to 16.  The scan's
 * descriptor takes the predicate lock on the relation and counts the scan; synchronised
 * scans, and parallel ones, are left out.
 *
 * The first pass of a call is not timed: it reads the visible tuples, when their page's pin
 * or copy is about to be given up, for a checksum that all ways must agree on.
 */
#include "postgres.h"

#include <time.h>

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "common/hashfn.h"
#include "executor/instrument.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "join/source.h"

PG_FUNCTION_INFO_V1(gpuhash_measure_pages);

/* Pages in flight: 256 MB of copies.  Pins have the pool's fair share as a limit, too. */
#define MEASURE_WINDOW_MAX 32768
#define MEASURE_REPETITIONS_MAX 1000

#define VISIBLE_WORDS ((MaxHeapTuplesPerPage + 63) / 64)

typedef struct Way
{
	const char *name;
	bool		count;			/* PostgreSQL reads */
	bool		source;			/* pages.c reads */
	bool		stream;
	bool		copied;
} Way;

static const Way ways[] = {
	{"pinned"},
	{"copied", .copied = true},
#if GH_HAVE_READ_STREAM
	{"stream_pinned", .stream = true},
	{"stream_copied", .stream = true, .copied = true},
#endif
	{"source", .source = true},
	{"count", .count = true},
};

/* A page in flight. */
typedef struct PageNote
{
	Buffer		buffer;			/* pinned, unless copied */
	BlockNumber block;
	uint16		ntuples;		/* visible ones */
	bool		all;			/* they are all line pointers up to ntuples; no bitmap */
	uint64		visible[VISIBLE_WORDS]; /* bit i: line pointer i + 1 */
} PageNote;

typedef struct Measurement
{
	Relation	relation;
	const Way  *way;
	int			window;			/* pages in flight */
	bool		ring;			/* read through a buffer ring */
	BlockNumber start;			/* where passes begin; they go once around */
	PageNote   *notes;			/* of the window, used in turn */
	char	   *area;			/* the window's copies */

	/* of a pass */
	HeapScanDesc scan;
	struct ReadStream *stream;
	BlockNumber chosen;			/* blocks so far */
	bool		check;			/* make the checksum */
	int64		pages;
	int64		tuples;
	uint64		checksum;
} Measurement;

/* ------------------------------------------------------- a page's checksum */

/* Under a pin, and in a copy, data and place of a visible tuple do not change. */
static void
check_tuple(Measurement *m, Page page, BlockNumber block, OffsetNumber offset)
{
	ItemId		item = PageGetItemId(page, offset);
	HeapTupleHeader tuple = (HeapTupleHeader) PageGetItem(page, item);

	m->checksum += hash_bytes_extended((unsigned char *) tuple + tuple->t_hoff,
									   ItemIdGetLength(item) - tuple->t_hoff,
									   (uint64) block << 16 | offset);
}

static void
check_page(Measurement *m, Page page, const PageNote *note)
{
	int			lines = note->all ? note->ntuples : MaxHeapTuplesPerPage;

	for (int i = 0; i < lines; i++)
		if (note->all || (note->visible[i / 64] >> i % 64 & 1) != 0)
			check_tuple(m, page, note->block, i + FirstOffsetNumber);
}

/* ------------------------------------------------- which tuples are visible */

static bool
all_lines_normal(Page page, int lines)
{
	for (int i = 0; i < lines; i++)
		if (!ItemIdIsNormal(PageGetItemId(page, i + FirstOffsetNumber)))
			return false;
	return true;
}

/* Makes the bitmap; conflicts: serializable conflicts are to be looked for. */
static void
note_visible(Measurement *m, Page page, int lines, bool all_visible, bool conflicts,
			 PageNote *note)
{
	Snapshot	snapshot = m->scan->rs_base.rs_snapshot;

	memset(note->visible, 0, sizeof(note->visible));
	note->ntuples = 0;
	for (int i = 0; i < lines; i++)
	{
		ItemId		item = PageGetItemId(page, i + FirstOffsetNumber);
		HeapTupleData tuple;
		bool		visible;

		if (!ItemIdIsNormal(item))
			continue;
		tuple.t_tableOid = RelationGetRelid(m->relation);
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
		tuple.t_len = ItemIdGetLength(item);
		ItemPointerSet(&tuple.t_self, note->block, i + FirstOffsetNumber);
		visible = all_visible || HeapTupleSatisfiesVisibility(&tuple, snapshot, note->buffer);
		if (conflicts)
			HeapCheckForSerializableConflictOut(visible, m->relation, &tuple, note->buffer,
												snapshot);
		note->visible[i / 64] |= (uint64) visible << i % 64;
		note->ntuples += visible;
	}
}

/* What a device is told of the page, which is pinned. */
static void
note_page(Measurement *m, PageNote *note)
{
	Snapshot	snapshot = m->scan->rs_base.rs_snapshot;
	Page		page = BufferGetPage(note->buffer);
	bool		conflicts = CheckForSerializableConflictOutNeeded(m->relation, snapshot);
	Buffer		map = InvalidBuffer;
	bool		all_visible;
	int			lines;

	gh_prune_page(m->relation, note->buffer, &map, false);
	if (BufferIsValid(map))
		ReleaseBuffer(map);
	LockBuffer(note->buffer, BUFFER_LOCK_SHARE);
	gh_test_old_snapshot(snapshot, m->relation, page);
	lines = PageGetMaxOffsetNumber(page);
	all_visible = PageIsAllVisible(page) && !snapshot->takenDuringRecovery;

	/*
	 * A line pointer that is free now may be a tuple's, whose row is not ours to see,
	 * before the device reads it: then it needs the bitmap.
	 */
	note->all = all_visible && !conflicts && all_lines_normal(page, lines);
	if (note->all)
		note->ntuples = lines;
	else
		note_visible(m, page, lines, all_visible, conflicts, note);
	LockBuffer(note->buffer, BUFFER_LOCK_UNLOCK);
}

/* --------------------------------------------------------- the ways to read */

static BlockNumber
choose_block(Measurement *m)
{
	BlockNumber nblocks = m->scan->rs_nblocks;

	if (m->chosen == nblocks)
		return InvalidBlockNumber;
	return (m->start + m->chosen++) % nblocks;
}

#if GH_HAVE_READ_STREAM

/* ReadStreamBlockNumberCB */
static BlockNumber
choose_stream_block(ReadStream *stream, void *arg, void *per_buffer_data)
{
	return choose_block((Measurement *) arg);
}

static void
start_stream(Measurement *m)
{
	m->stream = read_stream_begin_relation(GH_READ_STREAM_FLAGS, m->scan->rs_strategy,
										   m->relation, MAIN_FORKNUM,
										   choose_stream_block, m, 0);
}

#define next_stream_buffer(m) read_stream_next_buffer((m)->stream, NULL)
#define end_stream(m) read_stream_end((m)->stream)

#else

#define start_stream(m) ((void) 0)
#define next_stream_buffer(m) InvalidBuffer
#define end_stream(m) ((void) 0)

#endif							/* GH_HAVE_READ_STREAM */

/* Pins the next page; InvalidBuffer at the end. */
static Buffer
next_buffer(Measurement *m)
{
	BlockNumber block;

	if (m->way->stream)
		return next_stream_buffer(m);
	block = choose_block(m);
	return block == InvalidBlockNumber ? InvalidBuffer :
		ReadBufferExtended(m->relation, MAIN_FORKNUM, block, RBM_NORMAL, m->scan->rs_strategy);
}

/* ------------------------------------------------------------------ a pass */

/* The page of that place in the window has been used. */
static void
finish_page(Measurement *m, int place)
{
	PageNote   *note = &m->notes[place];
	bool		copied = m->way->copied;

	if (m->check)
		check_page(m, copied ? m->area + (Size) place * BLCKSZ : BufferGetPage(note->buffer),
				   note);
	if (!copied)
		ReleaseBuffer(note->buffer);
}

static void
supply_pages(Measurement *m)
{
	int			place = 0;

	if (m->way->stream)
		start_stream(m);
	for (;;)
	{
		PageNote   *note = &m->notes[place];

		CHECK_FOR_INTERRUPTS();
		if (m->pages >= m->window)
			finish_page(m, place);
		note->buffer = next_buffer(m);
		if (!BufferIsValid(note->buffer))
			break;
		note->block = BufferGetBlockNumber(note->buffer);
		note_page(m, note);
		if (m->way->copied)
		{
			memcpy(m->area + (Size) place * BLCKSZ, BufferGetPage(note->buffer), BLCKSZ);
			ReleaseBuffer(note->buffer);
		}
		m->tuples += note->ntuples;
		m->pages++;
		place = place + 1 < m->window ? place + 1 : 0;
	}
	/* the one whose place the next page would have got is finished already */
	for (int left = Min(m->pages, m->window - 1); left > 0; left--)
		finish_page(m, (place - left + m->window) % m->window);
	if (m->way->stream)
		end_stream(m);
}

static void
read_source(Measurement *m)
{
	GhPages		pages;

	gh_pages_init(&pages, CurrentMemoryContext);
	gh_pages_of_scan(&pages, (TableScanDesc) m->scan);
	while (gh_pages_next(&pages, m->window))
	{
		m->tuples += pages.ntuples;
		m->pages++;
		for (int i = 0; m->check && i < pages.ntuples; i++)
			check_tuple(m, BufferGetPage(pages.buffer), pages.block, pages.lines[i]);
	}
	gh_pages_end(&pages);
}

static void
count_rows(Measurement *m)
{
	const char *name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(m->relation)),
												  RelationGetRelationName(m->relation));
	bool		isnull;

	SPI_connect();
	if (SPI_execute(psprintf("SELECT count(*) FROM ONLY %s", name), true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not count the rows of %s", name);
	m->tuples = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
											&isnull));
	m->pages = RelationGetNumberOfBlocks(m->relation);
	SPI_finish();
}

static void
scan_pages(Measurement *m)
{
	TableScanDesc scan = table_beginscan_strat(m->relation, GetActiveSnapshot(), 0, NULL,
											   false, false);

	m->scan = (HeapScanDesc) scan;
	heap_setscanlimits(scan, m->start, m->scan->rs_nblocks);
	/* ended with the scan */
	if (m->ring)
		m->scan->rs_strategy = GetAccessStrategy(BAS_BULKREAD);
	if (m->way->source)
		read_source(m);
	else
		supply_pages(m);
	table_endscan(scan);
}

static void
run_pass(Measurement *m, bool check)
{
	m->check = check;
	m->chosen = 0;
	m->pages = m->tuples = 0;
	if (m->way->count)
		count_rows(m);
	else
		scan_pages(m);
}

/* ------------------------------------------------------------ the function */

static const Way *
find_way(const char *name)
{
	for (int i = 0; i < (int) lengthof(ways); i++)
		if (strcmp(ways[i].name, name) == 0)
			return &ways[i];
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("there is no way \"%s\" to read pages", name),
			 errhint("Ways are pinned, copied, source, count and, from PostgreSQL 17 on, stream_pinned and stream_copied.")));
}

/* A plain heap table that the caller may read. */
static Relation
open_table(Oid relid)
{
	Relation	relation = table_open(relid, AccessShareLock);
	AclResult	acl = pg_class_aclcheck(relid, GetUserId(), ACL_SELECT);

	if (acl != ACLCHECK_OK)
		aclcheck_error(acl, OBJECT_TABLE, RelationGetRelationName(relation));
	if (relation->rd_rel->relkind != RELKIND_RELATION || RelationUsesLocalBuffers(relation) ||
		relation->rd_tableam != GetHeapamTableAmRoutine())
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a heap table in shared buffers",
						RelationGetRelationName(relation))));
	return relation;
}

static void
check_range(const char *what, int64 value, int64 least, int64 most)
{
	if (value < least || value > most)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is " INT64_FORMAT ", not " INT64_FORMAT " to " INT64_FORMAT,
						what, value, least, most)));
}

static void
prepare(Measurement *m)
{
	/* what bufmgr.c has for the share of one process */
	int			share = NBuffers / (MaxBackends + NUM_AUXILIARY_PROCS);
	bool		copied = m->way->copied;

	check_range("start_block", m->start, 0, Max(RelationGetNumberOfBlocks(m->relation), 1) - 1);
	check_range("window", m->window, 1,
				copied ? MEASURE_WINDOW_MAX : Min(Max(share, 1), MEASURE_WINDOW_MAX));
	m->notes = palloc(sizeof(PageNote) * m->window);
	if (copied)
		m->area = (char *) TYPEALIGN(BLCKSZ, palloc(((Size) m->window + 1) * BLCKSZ));
}

static int64
clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64) now.tv_sec * 1000000000 + now.tv_nsec;
}

/* A timed pass, as a row of the function's result. */
static void
measure_pass(Measurement *m, ReturnSetInfo *result)
{
	int64		reads = pgBufferUsage.shared_blks_read;
	int64		ns = clock_ns(CLOCK_MONOTONIC);
	int64		cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	Datum		values[6];
	bool		nulls[6] = {false};

	run_pass(m, false);
	cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	ns = clock_ns(CLOCK_MONOTONIC) - ns;
	values[0] = Int64GetDatum(m->pages);
	values[1] = Int64GetDatum(m->tuples);
	values[2] = Int64GetDatum((int64) m->checksum);
	nulls[2] = m->way->count;
	values[3] = Int64GetDatum(pgBufferUsage.shared_blks_read - reads);
	values[4] = Int64GetDatum(ns);
	values[5] = Int64GetDatum(cpu_ns);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * gpuhash_measure_pages(relation regclass, way text, page_window int, ring bool,
 * start_block int, repetitions int): a row of each pass, one after the other: pages; visible
 * tuples; the checksum, NULL of count; pages that were not in shared_buffers; and
 * nanoseconds, by the clock and of this process.  The window is pages that stay pinned, or
 * the area's, or how many the join's source wants at a time.
 */
Datum
gpuhash_measure_pages(PG_FUNCTION_ARGS)
{
	int			repetitions = PG_GETARG_INT32(5);
	Measurement m = {0};

	check_range("repetitions", repetitions, 1, MEASURE_REPETITIONS_MAX);
	check_range("start_block", PG_GETARG_INT32(4), 0, PG_INT32_MAX);
	m.way = find_way(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	m.window = PG_GETARG_INT32(2);
	m.ring = PG_GETARG_BOOL(3);
	m.start = PG_GETARG_INT32(4);
	m.relation = open_table(PG_GETARG_OID(0));
	prepare(&m);
	InitMaterializedSRF(fcinfo, 0);
	run_pass(&m, true);
	for (int i = 0; i < repetitions; i++)
		measure_pass(&m, (ReturnSetInfo *) fcinfo->resultinfo);
	table_close(m.relation, AccessShareLock);
	PG_RETURN_NULL();
}
