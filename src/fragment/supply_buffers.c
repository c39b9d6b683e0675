/*
 * supply_buffers.c
 *		What a supply takes while requests are filled or on their way: buffers, and a share of the pins.
 *
 * A backend pins no more pages at a time, in all its supplies together, than others could claim, too, of
 * the buffers that there are.  A supply that finds too few of them left copies its pages.
 *
 * Of a request most of the memory is for rows that come back, by its pages that are not on the device.  Where
 * nearly all are, a supply takes little, so that many scans have theirs beside each other; and one that finds
 * none waits for it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "utils/rel.h"

#include "compat.h"
#include "fragment/supply.h"
#include "service/faults.h"
#include "service/placement.h"
#include "service/service.h"

/* Pages of a request; several: of one of several supplies, which all need buffers. */
#define GH_SUPPLY_PINNED 1024
#define GH_SUPPLY_SEVERAL 512
#define GH_SUPPLY_COPIED 192
#define GH_SUPPLY_LISTED 512

/*
 * Entries of a request's list for each of these, where runs of pages that are on the device have some, too.
 * With more, a request of GH_SUPPLY_PINNED pages would take one more unit of the transfer area, of which the
 * default has a few dozen.
 */
#define GH_SUPPLY_RUNS 4

/*
 * Pages of a request, of a relation nearly all of which is on the device, for which others have room: its
 * buffer is one unit of the transfer area.
 */
#define GH_SUPPLY_FEW 192

/*
 * For buffers a scan waits as long as the CPU engine would take, about, for each of its pages, where many
 * scans that find none share the processors: 2 us for one alone, 6 us for each of 26 on 16 of them.  In
 * tests, that is long.
 */
#define GH_SUPPLY_WAIT_PAGE_NS ((uint64) GH_WITH_FAULT_POINTS(1000000, 4000))

/* A page has room for so many rows that come back, on the average, where it is known to have few. */
#define GH_SUPPLY_LINES_LEAST 64

/* Pages that this process's supplies may have pinned at a time. */
static uint32 pins_of_process = 0;

/*
 * Pages of a request, if they are pinned.  Of several devices' supplies each has a part of the process's
 * share.
 */
static uint32
pinned_room(const GhSupply *supply)
{
	uint32		allowed = (uint32) (NBuffers / (MaxBackends + NUM_AUXILIARY_PROCS));
	uint32		left = allowed > pins_of_process ? allowed - pins_of_process : 0;
	uint32		most = supply->nsupplies > 1 ? GH_SUPPLY_SEVERAL : GH_SUPPLY_PINNED;

	return Min(Min(left, allowed / (uint32) Max(supply->nsupplies, 1)) / GH_SUPPLY_REQUESTS, most);
}

/* Whether pages of the relation may stay where they are. */
static bool
may_pin(const GhSupply *supply, int device, Relation relation)
{
	return supply->engine->reads_pool != NULL && supply->engine->reads_pool(device) &&
		!RelationUsesLocalBuffers(relation) && pinned_room(supply) >= GH_SUPPLY_MIN;
}

/* Whether pages may stay where they are; the supply's pages are set. */
bool
gh_supply_may_pin(const GhSupply *supply, int device)
{
	return may_pin(supply, device, supply->pages->relation);
}

/*
 * Whether pages that the caller pins are read where they are: those of a relation that is in shared buffers,
 * by a supply that has no buffers yet, and is for nothing else.
 */
bool
gh_supply_pins_pages(GhSupply *supply, Relation relation)
{
	supply->pins = may_pin(supply, supply->device, relation);
	return supply->pins && gh_supply_take_buffers(supply) && supply->pins;
}

/*
 * Rows of a page that may come back, which most of a buffer is for: as many as ANALYZE has counted, and a
 * quarter more.  A request whose pages have more is full with fewer of them.
 */
static uint32
expected_lines(const GhSupply *supply)
{
	const FormData_pg_class *class;
	double		lines = MaxHeapTuplesPerPage;

	/* of an index, which has few that come back */
	if (supply->pages == NULL)
		return GH_SUPPLY_LINES_LEAST;
	class = supply->pages->relation->rd_rel;
	if (class->relpages > 0 && class->reltuples > 0)
		lines = 1.25 * class->reltuples / class->relpages;
	return (uint32) Min(Max(lines, GH_SUPPLY_LINES_LEAST), MaxHeapTuplesPerPage);
}

static Size
buffer_bytes(const GhSupply *supply)
{
	return sizeof(GhPageRef) * supply->list_room + GH_LINE_WORDS * sizeof(uint64) * supply->room +
		sizeof(GhBackRow) * supply->page_lines * supply->room + (Size) BLCKSZ * supply->copy_room;
}

/* Pages of the list: where rows are listed, or nothing is on the device, those that are read are all. */
static void
choose_list_room(GhSupply *supply)
{
	supply->list_room = supply->resident != NULL && !supply->lists ? supply->room * GH_SUPPLY_RUNS : supply->room;
}

static void
lay_out(GhSupply *supply, GhSupplyRequest *request, char *buffer)
{
	request->copies = buffer;
	buffer += (Size) supply->copy_room * BLCKSZ;
	request->pages = (GhPageRef *) buffer;
	request->bitmaps = (uint64 *) (request->pages + supply->list_room);
	request->back = (GhBackRow *) (request->bitmaps + (Size) supply->room * GH_LINE_WORDS);
	request->blocks = MemoryContextAlloc(supply->context, sizeof(BlockNumber) * supply->list_room);
	request->pins = MemoryContextAlloc(supply->context, sizeof(Buffer) * supply->list_room);
	request->firsts = MemoryContextAlloc(supply->context, sizeof(uint32) * supply->list_room);
	if (supply->engine->shares_tables)
		request->notes = MemoryContextAlloc(supply->context, sizeof(GhResidentNote) * supply->room);
}

/*
 * Whether few pages of a full request are not on the device, as far as can be expected, where rows are not
 * listed.
 */
static bool
expects_few(const GhSupply *supply)
{
	BlockNumber nblocks;

	if (supply->resident == NULL || supply->lists)
		return false;
	nblocks = supply->pages->nblocks / Max(supply->nsupplies, 1);
	if (nblocks == 0)
		return false;
	return (double) (nblocks - Min(gh_resident_expected(supply->resident), nblocks)) / nblocks *
		Min(nblocks, gh_supply_most_pages(supply)) < GH_SUPPLY_FEW;
}

/*
 * Pages of a request, at first; of a pipeline that lists rows, the pages stay pinned while these come out one
 * by one.
 */
static void
choose_room(GhSupply *supply)
{
	/* others may have begun since */
	if (supply->pins && pinned_room(supply) < GH_SUPPLY_MIN)
	{
		supply->pins = false;
		if (supply->pages != NULL)
			supply->pages->tuples_unread = supply->pages->tells_pooled = false;
	}
	supply->room = supply->pins ? pinned_room(supply) : GH_SUPPLY_COPIED;
	if (supply->lists)
		supply->room = Min(supply->room, GH_SUPPLY_LISTED);
	if (expects_few(supply))
		supply->room = Min(supply->room, GH_SUPPLY_FEW);
	/* few are one unit of the area anyway, and runs of pages that are on the device have very many rows */
	supply->page_lines = supply->room > GH_SUPPLY_FEW ? expected_lines(supply) : MaxHeapTuplesPerPage;
	/* without pins all are copies, and else those that a ring had to read */
	supply->copy_room = Min(supply->room, GH_SUPPLY_COPIED);
	if (supply->pins && (supply->pages == NULL || supply->pages->strategy == NULL))
		supply->copy_room = 0;
	choose_list_room(supply);
}

/* As large as can be had: others need some, too. */
static bool
alloc_buffers(GhSupply *supply)
{
	while (!gh_buffers_alloc(supply->engine, GH_SUPPLY_REQUESTS, buffer_bytes(supply), supply->buffers))
	{
		supply->buffers[0] = NULL;
		/* copies at last: a request is full with them */
		supply->room /= 2;
		choose_list_room(supply);
		supply->copy_room = Min(supply->copy_room, supply->room);
		if (supply->room < GH_SUPPLY_MIN)
			return false;
	}
	return true;
}

/*
 * Whether the supply waits for buffers that other scans have: where it needs few, before a run of pages that
 * are on the device, so that none is pinned.  In parallel queries others may wait for this process.
 */
static bool
may_wait(const GhSupply *supply)
{
	return supply->pages != NULL && supply->pages->elsewhere && supply->room <= GH_SUPPLY_FEW &&
		supply->engine->buffers_required && !IsInParallelMode();
}

/* To have the pages read by the CPU engine takes far longer than these scans do. */
static bool
await_buffers(GhSupply *supply)
{
	uint64		most_ns = Max(supply->pages->nblocks, 1) * GH_SUPPLY_WAIT_PAGE_NS;

	if (gh_service_reserve_within(most_ns, GH_SUPPLY_REQUESTS, buffer_bytes(supply), supply->buffers))
		return true;
	supply->buffers[0] = NULL;
	return false;
}

/*
 * They are taken when there is a page or a result to be put into them, so that the scans of a node have
 * theirs one after the other.  False: the supply has failed.
 */
bool
gh_supply_take_buffers(GhSupply *supply)
{
	if (supply->buffers[0] != NULL)
		return true;
	choose_room(supply);
	if (!(may_wait(supply) ? await_buffers(supply) : alloc_buffers(supply)))
	{
		supply->failed = true;
		(void) gh_no_buffers(&supply->error);
		return false;
	}
	supply->pins_taken = supply->pins ? supply->room * GH_SUPPLY_REQUESTS : 0;
	pins_of_process += supply->pins_taken;
	for (int i = 0; i < GH_SUPPLY_REQUESTS; i++)
		lay_out(supply, &supply->requests[i], supply->buffers[i]);
	supply->judged = MemoryContextAlloc(supply->context, sizeof(GhJudgedPage) * supply->room);
	supply->rows_room = supply->lines_room = supply->room * supply->page_lines;
	supply->fill = Min(supply->room, Max(supply->fill, GH_SUPPLY_MIN));
	return true;
}

/* An array that may not be there: memory for it may have lacked. */
static void *
drop(void *array)
{
	if (array != NULL)
		pfree(array);
	return NULL;
}

/* No request is in flight, or the pipeline is gone. */
void
gh_supply_free_buffers(GhSupply *supply)
{
	if (supply->buffers[0] == NULL)
		return;
	for (int i = 0; i < GH_SUPPLY_REQUESTS; i++)
	{
		GhSupplyRequest *request = &supply->requests[i];

		supply->engine->buffer_free(supply->buffers[i]);
		request->blocks = drop(request->blocks);
		request->pins = drop(request->pins);
		request->firsts = drop(request->firsts);
		request->lsns = drop(request->lsns);
		request->notes = drop(request->notes);
	}
	supply->judged = drop(supply->judged);
	supply->buffers[0] = NULL;
	supply->rows_room = supply->lines_room = 0;
	pins_of_process -= supply->pins_taken;
	supply->pins_taken = 0;
}

/*
 * What comes next are other pages, and no request is in flight: buffers that do not suit them are taken anew.
 */
void
gh_supply_fit_buffers(GhSupply *supply)
{
	bool		too_few = supply->room <= GH_SUPPLY_FEW && !expects_few(supply);
	bool		no_copies = supply->pins && supply->copy_room == 0 && supply->pages->strategy != NULL;

	if (too_few || no_copies)
		gh_supply_free_buffers(supply);
}

/* A buffer for results, while no request is in flight; NULL: no page was supplied. */
void *
gh_supply_buffer(GhSupply *supply, Size *bytes)
{
	*bytes = buffer_bytes(supply);
	*bytes -= *bytes % sizeof(uint64);
	return supply->buffers[0];
}
