/*
 * device_parallel.c
 *		The joins' tables of a fragment on the device, made by all participants of a parallel
 *		query together.
 *
 * One of them makes the pipelines that are to make the tables; all supply pages to these; one has the tables
 * made; and then each has a pipeline of its own go over its part of the outer side. Where inner sides are
 * joins, that goes by rank: tables that others are made with are there before these are begun. Where anything
 * of that fails for anyone, the joins make their tables on the host, together as well. On several devices
 * (device_set.c) all that is done on each: a page of an inner side is read once, and goes to all that need
 * it. A device on which it fails is left out, and where none is left it goes as with one.  Whoever makes the
 * pipelines chooses the devices. Tables that have stayed are not made: before anything is read, the one who
 * begins the pipelines looks for all of them, and borrows those that are there; each participant holds them.
 * He has tables that were made stay, too (device_tables.c).
 *
 * Those tables may also be needed later: a row that the device handed back is to be joined, or the device
 * was lost.  They, too, can only be made by all together, so that participants meet once more when they
 * have supplied their pages, and rows handed back are kept until then.  Where memory is not enough for
 * them after all, all that was read is forgotten, and everyone reads rows of the joins, as without a
 * device.  The joins then partition the outer side while their tables are made, so it is set back before.
 *
 * Where the last join is a right or full one, participants meet before that, too: when all inner rows that
 * have a match are marked, one asks for the others.  Its tables are never made on the host: where anything
 * fails for anyone, everyone reads rows of the joins.
 *
 * Phases follow one another at a barrier.  A participant waits only while it has returned nothing, and for
 * others that are reading, too: nobody is blocked by a full queue of result rows.  One that comes late
 * does what is left.  One that fails ends the query.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/wait_event.h"

#include "fragment/inner_side.h"
#include "fragment/parallel.h"
#include "service/service.h"

/*
 * The phases of the barrier, in this order: PHASE_ELECT; then, for each rank of tables, these steps; then
 * each reads its part of the outer side.
 *
 * Of a right or full join, one more follows: one asks for the inner rows that nobody has marked.  Then, if
 * anyone wants tables on the host, one sets the outer side back; all make the tables; and use them.
 */
typedef enum GhDeviceStep
{
	STEP_BEGIN,					/* one begins the pipelines */
	STEP_SUPPLY,				/* all supply pages */
	STEP_MAKE					/* one has the tables made */
} GhDeviceStep;

#define PHASE_ELECT 0
#define STEPS_OF_RANK 3

/* The phase in which participants read. */
static int
phase_of_reading(const GhFragment *fragment)
{
	return PHASE_ELECT + 1 + STEPS_OF_RANK * fragment->device->nranks;
}

/* ------------------------------------------------------------- shared memory */

static void
init_tables(GhDeviceSharedTables *own)
{
	pg_atomic_init_u32(&own->number, 0);
	pg_atomic_init_u32(&own->refused, 0);
	pg_atomic_init_u32(&own->executor, 0);
	pg_atomic_init_u32(&own->asked, 0);
	for (int i = 0; i < GH_PROBES_MAX; i++)
	{
		pg_atomic_init_u64(&own->tables[i], 0);
		pg_atomic_init_u32(&own->becomes[i], GH_SHARED_OWN);
		pg_atomic_init_u64(&own->copied[i], 0);
	}
}

void
gh_device_share(GhDeviceShared *shared)
{
	BarrierInit(&shared->barrier, 0);
	pg_atomic_init_u32(&shared->no_rows, 0);
	pg_atomic_init_u32(&shared->wanted, 0);
	pg_atomic_init_u32(&shared->readers, 0);
	pg_atomic_init_u32(&shared->asked, 0);
	pg_atomic_init_u32(&shared->was_read, 0);
	pg_atomic_init_u32(&shared->by_rows, 0);
	pg_atomic_init_u32(&shared->failed, 0);
	pg_atomic_init_u64(&shared->inner_rows, 0);
	pg_atomic_init_u64(&shared->marks, 0);
	pg_atomic_init_u32(&shared->ndevices, 1);
	for (int i = 0; i < GH_DEVICES_PER_QUERY_MAX; i++)
		init_tables(&shared->devices[i]);
}

/* Whether the table is no longer, or was never, the query's. */
static bool
has_stayed(GhDeviceSharedTables *own, int number)
{
	GhSharedTable becomes = (GhSharedTable) pg_atomic_read_u32(&own->becomes[number]);

	return becomes == GH_SHARED_KEPT || becomes == GH_SHARED_BORROWED;
}

static void
release_tables(GhDeviceSharedTables *own)
{
	for (int i = 0; i < GH_PROBES_MAX; i++)
	{
		GhRef		table = pg_atomic_exchange_u64(&own->tables[i], 0);

		if (!has_stayed(own, i))
			gh_service_table_release(table);
	}
}

/* The tables go, when nobody uses them any more; those that stay are given back by each who holds them. */
void
gh_device_unshare(GhDeviceShared *shared)
{
	gh_service_table_release(pg_atomic_exchange_u64(&shared->marks, 0));
	for (int i = 0; i < GH_DEVICES_PER_QUERY_MAX; i++)
		release_tables(&shared->devices[i]);
}

/* ------------------------------------------------------------------- devices */

/* What participants share of the device at hand. */
static GhDeviceSharedTables *
tables_of(GhFragment *fragment)
{
	return &fragment->member->shared->device.devices[fragment->device->turn];
}

/* The one who makes the pipelines: all are to use these devices. */
static void
choose_devices(GhFragment *fragment, GhDeviceShared *shared)
{
	int			numbers[GH_DEVICES_PER_QUERY_MAX];
	int			n = gh_device_set_propose(fragment, numbers);

	gh_device_set_agree(fragment, n, numbers);
	for (int i = 0; i < n; i++)
		pg_atomic_write_u32(&shared->devices[i].number, (uint32) numbers[i]);
	pg_atomic_write_u32(&shared->ndevices, (uint32) n);
}

/* Another one, before it does anything with them. */
static void
agree_to_devices(GhFragment *fragment, GhDeviceShared *shared)
{
	int			numbers[GH_DEVICES_PER_QUERY_MAX];
	int			n = (int) pg_atomic_read_u32(&shared->ndevices);

	for (int i = 0; i < n; i++)
		numbers[i] = (int) pg_atomic_read_u32(&shared->devices[i].number);
	gh_device_set_agree(fragment, n, numbers);
}

/* -------------------------------------------------------------------- phases */

/* Whether no tables are made on the device at hand. */
static bool
is_refused(GhFragment *fragment)
{
	return pg_atomic_read_u32(&tables_of(fragment)->refused) != 0;
}

static void
refuse_all(GhDeviceShared *shared)
{
	for (int i = 0; i < GH_DEVICES_PER_QUERY_MAX; i++)
		pg_atomic_write_u32(&shared->devices[i].refused, 1);
}

/* The tables cannot be made on the device at hand, nor, if it is not its fault, on others. */
static void
refuse(GhFragment *fragment)
{
	const GhSupply *supply = gh_device_failed_supply(fragment->device);

	if (supply == NULL || supply->error.status == GH_DECLINED)
		refuse_all(&fragment->member->shared->device);
	else
		pg_atomic_write_u32(&tables_of(fragment)->refused, 1);
}

/* Whether a table is empty, and there will be no rows. */
static bool
has_no_rows(GhDeviceShared *shared)
{
	return pg_atomic_read_u32(&shared->no_rows) != 0;
}

/* Whether no more tables are to be made on the device at hand. */
static bool
is_over(GhFragment *fragment)
{
	return is_refused(fragment) || has_no_rows(&fragment->member->shared->device);
}

/* Whether the table is, or was, made for this query; and is of a rank. */
static bool
is_made(GhFragment *fragment, int number)
{
	GhSharedTable becomes = (GhSharedTable) pg_atomic_read_u32(&tables_of(fragment)->becomes[number]);

	return becomes == GH_SHARED_OWN || becomes == GH_SHARED_KEPT;
}

static bool
is_made_in(GhFragment *fragment, int number, int rank)
{
	return fragment->device->tables[number].rank == rank && is_made(fragment, number);
}

/* Handles on the tables of a chain, which others may have made. */
static bool
attach_chain(GhFragment *fragment, const GhJoined *joined, GhRef marks)
{
	GhDeviceSharedTables *own = tables_of(fragment);

	gh_device_register_tables(fragment);
	for (int i = 0; i < joined->nlevels; i++)
	{
		int			number = joined->levels[i].table;
		GhRef		table = pg_atomic_read_u64(&own->tables[number]);

		/* whoever has borrowed it may be gone before this one */
		if (has_stayed(own, number) && !gh_device_hold_table(&fragment->device->tables[number], table))
			return gh_device_refuses(fragment, "a table that was on the GPU is no longer there");
		if (!gh_device_attach_table(fragment, number, table, i == joined->nlevels - 1 ? marks : 0))
			return false;
		if (pg_atomic_read_u64(&own->copied[number]) > 0 && !gh_device_map_copy(fragment, number))
			return gh_device_refuses(fragment, "the copy of an index has other columns by now");
		joined->levels[i].lower->methods->tell_copy(joined->levels[i].lower, pg_atomic_read_u64(&own->copied[number]), 0, 0);
	}
	return true;
}

/* What is known of tables that were made, or borrowed, becomes known to all. */
static void
tell_rows(GhFragment *fragment, GhDeviceShared *shared, GhRef marks)
{
	/* of the last table, which others may follow */
	if (marks != 0)
		pg_atomic_write_u64(&shared->marks, marks);
	if (fragment->device->no_rows)
		pg_atomic_write_u32(&shared->no_rows, 1);
	if (fragment->device->inner_rows > 0)
		pg_atomic_write_u64(&shared->inner_rows, fragment->device->inner_rows);
}

/* For all, before anything is read: which tables need not be made on the device at hand. */
static void
borrow_tables(GhFragment *fragment, GhDeviceShared *shared)
{
	GhRef		marks = 0;

	fragment->device->inner_rows = 0;
	if (!gh_device_prepare_tables(fragment))
		return;
	gh_device_choose_executor(fragment);
	pg_atomic_write_u32(&tables_of(fragment)->executor, (uint32) (fragment->device->executor + 1));
	gh_device_borrow_shared(fragment, fragment->joined, tables_of(fragment), &marks);
	tell_rows(fragment, shared, marks);
}

/* Makes the pipelines of a rank, or attaches to those that another participant has made. */
static bool
begin_tables(GhFragment *fragment, int rank)
{
	GhDeviceRun   *device = fragment->device;
	GhDeviceSharedTables *own = tables_of(fragment);

	device->executor = (int) pg_atomic_read_u32(&own->executor) - 1;
	for (int i = 0; i < device->ntables; i++)
	{
		const GhJoined *inner = device->tables[i].level->inner;
		GhRef		table = pg_atomic_read_u64(&own->tables[i]);
		bool		begun;

		if (!is_made_in(fragment, i, rank))
			continue;
		/* what it looks up in */
		if (table == 0 && inner != NULL && !attach_chain(fragment, inner, 0))
			return false;
		begun = gh_device_begin_table(fragment, i, &table);
		pg_atomic_write_u64(&own->tables[i], table);
		if (!begun)
			return false;
	}
	return true;
}

/* Whether this participant is one that has begun, with a rank. */
static bool
has_begun(GhFragment *fragment, int rank)
{
	for (int i = 0; i < fragment->device->ntables; i++)
		if (is_made_in(fragment, i, rank) && fragment->device->tables[i].supply == NULL)
			return false;
	return true;
}

/*
 * Who has begun the pipelines of a rank cannot leave its part to others.  So it takes buffers for the first
 * one before they do; it has them for the next ones when it gives these back.
 */
static void
take_first_buffers(GhDeviceRun *device, int rank)
{
	for (int i = 0; i < device->ntables; i++)
	{
		GhSupply   *supply = device->tables[i].supply;

		if (device->tables[i].rank != rank || supply == NULL)
			continue;
		/* if there are none, there may be some when it has a page */
		if (!gh_supply_take_buffers(supply))
			supply->failed = false;
		return;
	}
}

/* The elected one begins a rank on the device at hand. */
static void
begin_rank(GhFragment *fragment, GhDeviceShared *shared, int rank)
{
	if (rank == 0 && !is_over(fragment))
		borrow_tables(fragment, shared);
	if (is_over(fragment))
		return;
	if (begin_tables(fragment, rank))
		take_first_buffers(fragment->device, rank);
	else
		refuse(fragment);
}

/* The supplies of a table, on all devices that make it, in a rank. */
static const GhDeviceTable *
find_supplies(GhFragment *fragment, int number, int rank, GhSupplies *all)
{
	const GhDeviceTable *table = NULL;

	all->count = 0;
	for (int turn = 0; gh_device_turn_to(fragment, turn); turn++)
	{
		if (is_refused(fragment) || !is_made_in(fragment, number, rank))
			continue;
		table = &fragment->device->tables[number];
		all->supplies[all->count++] = table->supply;
	}
	return table;
}

static void
supply_rank(GhFragment *fragment, int rank, bool elected)
{
	for (int turn = 0; gh_device_turn_to(fragment, turn); turn++)
		if (!is_refused(fragment) && !has_begun(fragment, rank) && !begin_tables(fragment, rank))
			refuse(fragment);
	for (int i = 0; i < fragment->device->ntables; i++)
	{
		GhSupplies all;
		const GhDeviceTable *table = find_supplies(fragment, i, rank, &all);

		if (table != NULL)
			gh_device_supply_tables(table, &all, elected);
		for (int turn = 0; gh_device_turn_to(fragment, turn); turn++)
			if (gh_device_failed_supply(fragment->device) != NULL)
				refuse(fragment);
	}
}

/* The table was made, by the one who has looked for it: it may stay. */
static void
keep_table(GhFragment *fragment, int number)
{
	GhDeviceTable *table = &fragment->device->tables[number];
	GhDeviceSharedTables *own = tables_of(fragment);

	table->root = pg_atomic_read_u64(&own->tables[number]);
	gh_device_keep_table(fragment, number);
	if (table->kept)
		pg_atomic_write_u32(&own->becomes[number], GH_SHARED_KEPT);
	else
		/* it is the query's */
		table->root = 0;
}

/* Has the tables of a rank made, on the device at hand. */
static void
make_rank(GhFragment *fragment, int rank, bool elected, GhRef *marks)
{
	GhDeviceRun *device = fragment->device;

	for (int i = 0; i < device->ntables && !is_over(fragment) && !device->no_rows; i++)
	{
		if (!is_made_in(fragment, i, rank))
			continue;
		if (!gh_device_finish_table(fragment, i, marks))
			refuse(fragment);
		else if (elected)
			keep_table(fragment, i);
	}
}

/*
 * Devices make their tables at a time.  The elected one asks one after the other; meanwhile others ask those
 * that come later, which give it the same answer then.
 */
static void
help_to_make(GhFragment *fragment, int rank)
{
	GhRef		marks = 0;

	for (int turn = 0; gh_device_turn_to(fragment, turn); turn++)
	{
		pg_atomic_uint32 *ranks = &tables_of(fragment)->asked;
		uint32		asked = pg_atomic_read_u32(ranks);

		if (turn > 0 && asked <= (uint32) rank && !is_refused(fragment) && has_begun(fragment, rank) &&
			pg_atomic_compare_exchange_u32(ranks, &asked, (uint32) rank + 1))
			make_rank(fragment, rank, false, &marks);
	}
}

/* The elected one has the tables of a rank made, on the device at hand. */
static void
finish_rank(GhFragment *fragment, GhDeviceShared *shared, int rank)
{
	GhDeviceRun   *device = fragment->device;
	GhRef		marks = 0;

	make_rank(fragment, rank, true, &marks);
	tell_rows(fragment, shared, marks);
	/* nobody reads the inner sides now */
	for (int i = 0; i < device->ntables; i++)
		if (is_made_in(fragment, i, rank))
			gh_device_rewind_table(fragment, i, true);
}

/* On the device at hand. */
static void
rewind_tables(GhFragment *fragment)
{
	for (int i = 0; i < fragment->device->ntables; i++)
		if (is_made(fragment, i))
			gh_device_rewind_table(fragment, i, false);
}

/* Handles on the tables, which one has made, on the device at hand. */
static bool
attach_tables(GhFragment *fragment, GhDeviceShared *shared)
{
	return attach_chain(fragment, fragment->joined, pg_atomic_read_u64(&shared->marks));
}

/* Of several devices: those that are left.  False: none is within this participant's reach. */
static bool
attach_devices(GhFragment *fragment, GhDeviceShared *shared)
{
	for (int turn = 0; gh_device_turn_to(fragment, turn); turn++)
		if (is_refused(fragment) || !attach_tables(fragment, shared))
			gh_device_set_lose_tables(fragment);
	return gh_device_set_has_tables(fragment);
}

/* Whether no device has tables. */
static bool
are_all_refused(GhDeviceShared *shared)
{
	uint32		n = pg_atomic_read_u32(&shared->ndevices);

	for (uint32 i = 0; i < n; i++)
		if (pg_atomic_read_u32(&shared->devices[i].refused) == 0)
			return false;
	return true;
}

/*
 * When it comes to reading, it is settled whether there are tables.  Who comes too late to read, or cannot
 * do with them, leaves all to the others.
 */
static GhDeviceTables
what_follows(GhFragment *fragment, GhDeviceShared *shared, bool able)
{
	bool		attached;

	if (are_all_refused(shared))
	{
		if (fragment->device->set != NULL)
			(void) attach_devices(fragment, shared);
		return GH_DEVICE_NO_TABLES;
	}
	fragment->device->no_rows = has_no_rows(shared);
	fragment->device->inner_rows = pg_atomic_read_u64(&shared->inner_rows);
	if (fragment->device->no_rows || BarrierPhase(&shared->barrier) > phase_of_reading(fragment) || !able)
		return GH_DEVICE_NO_INPUT;
	attached = fragment->device->set != NULL ? attach_devices(fragment, shared) : attach_tables(fragment, shared);
	return attached ? GH_DEVICE_TABLES : GH_DEVICE_NO_INPUT;
}

/*
 * One step of a rank.  elected: what one alone does is for this participant, in all steps: it has looked for
 * the tables.  Who begins the pipelines reads what participants do not share.
 */
static void
take_step(GhFragment *fragment, GhDeviceShared *shared, GhDeviceStep step, int rank, bool elected)
{
	switch (step)
	{
		case STEP_BEGIN:
			if (elected && rank == 0)
				choose_devices(fragment, shared);
			for (int turn = 0; elected && gh_device_turn_to(fragment, turn); turn++)
				begin_rank(fragment, shared, rank);
			BarrierArriveAndWait(&shared->barrier, WAIT_EVENT_HASH_BUILD_ALLOCATE);
			break;
		case STEP_SUPPLY:
			if (!has_no_rows(shared))
				supply_rank(fragment, rank, elected);
			/* the elected one may not be here yet; with it, all inner sides were read */
			BarrierArriveAndWait(&shared->barrier, WAIT_EVENT_HASH_BUILD_HASH_INNER);
			break;
		case STEP_MAKE:
			for (int turn = 0; elected && gh_device_turn_to(fragment, turn); turn++)
				finish_rank(fragment, shared, rank);
			if (!elected)
				help_to_make(fragment, rank);
			BarrierArriveAndWait(&shared->barrier, WAIT_EVENT_HASH_BUILD_ALLOCATE);
			break;
	}
}

/* Takes part in making the tables.  able: this participant can do with them. */
GhDeviceTables
gh_device_make_tables_together(GhFragment *fragment, bool able)
{
	GhDeviceShared *shared = &fragment->member->shared->device;
	MemoryContext saved = MemoryContextSwitchTo(fragment->device->context);
	int			reading = phase_of_reading(fragment);
	instr_time	clock = {0};
	bool		elected = false;
	bool		agreed = !able;
	GhDeviceTables result;
	int			phase = BarrierAttach(&shared->barrier);
	bool		takes_part = phase < reading;

	gh_fragment_clock(fragment, NULL, &clock);
	if (!able && takes_part)
		refuse_all(shared);
	if (phase == PHASE_ELECT)
	{
		agreed |= elected = BarrierArriveAndWait(&shared->barrier, WAIT_EVENT_HASH_BUILD_ELECT);
		phase++;
	}
	for (; phase < reading; phase++)
	{
		if (!agreed && phase > PHASE_ELECT + 1)
		{
			agree_to_devices(fragment, shared);
			agreed = true;
		}
		take_step(fragment, shared, (GhDeviceStep) ((phase - PHASE_ELECT - 1) % STEPS_OF_RANK),
				  (phase - PHASE_ELECT - 1) / STEPS_OF_RANK, elected);
	}
	if (!agreed)
		agree_to_devices(fragment, shared);
	for (int turn = 0; takes_part && gh_device_turn_to(fragment, turn); turn++)
		rewind_tables(fragment);
	result = what_follows(fragment, shared, able);
	if (result != GH_DEVICE_TABLES)
	{
		BarrierDetach(&shared->barrier);
		gh_device_set_end(fragment);
	}
	gh_device_tables_are_done(fragment, result == GH_DEVICE_TABLES);
	gh_fragment_clock(fragment, &fragment->counts.build_time, &clock);
	MemoryContextSwitchTo(saved);
	return result;
}

/* The shared scan is at its begin, for a participant that goes over it, or over none of it. */
static void
rewind_outer(GhFragment *fragment, bool elected, Barrier *barrier)
{
	if (elected)
		gh_fragment_rewind_for_all(fragment);
	BarrierArriveAndWait(barrier, WAIT_EVENT_HASH_BUILD_ALLOCATE);
	gh_fragment_rewind(fragment);
}

/*
 * Before a participant takes its first page of the outer side: whether it leaves all pages to others, since
 * there are no buffers for it, and for another one there are.  That one goes on until there are no more
 * pages, whatever becomes of the device, so that none is left.
 */
bool
gh_device_leaves_pages(GhFragment *fragment)
{
	GhDeviceRun *device = fragment->device;
	GhSupply   *supply = &device->supply;
	GhDeviceShared *shared = &fragment->member->shared->device;

	/* without a pipeline it could not ask for a right or full join's rows without a match */
	if (!gh_device_set_has_begun(fragment))
		return supply->error.status == GH_NO_BUFFERS && !fragment->joined->fills_inner &&
			pg_atomic_read_u32(&shared->readers) > 0;
	/* counted before it has them: of two that find none, the last one sees that nobody is left */
	pg_atomic_fetch_add_u32(&shared->readers, 1);
	if (device->set != NULL ? gh_device_set_take_buffers(fragment) : gh_supply_take_buffers(supply))
		return false;
	if (pg_atomic_sub_fetch_u32(&shared->readers, 1) == 0)
		return false;
	supply->failed = false;
	return true;
}

/*
 * Of a right or full join: all participants are through with the outer side.  done: this one has had the
 * device do all of its part.  Returns whether all have; *asks: it is for this one to ask for inner rows
 * without a match.
 */
bool
gh_device_all_have_read(GhFragment *fragment, bool done, bool *asks)
{
	GhDeviceShared *shared = &fragment->member->shared->device;
	bool		has_buffers = fragment->device->supply.buffers[0] != NULL;

	if (!done)
		pg_atomic_write_u32(&shared->failed, 1);
	*asks = BarrierArriveAndWait(&shared->barrier, WAIT_EVENT_HASH_BUILD_HASH_OUTER);
	/* of those that have buffers, if there are some, the first one */
	if (pg_atomic_read_u32(&shared->readers) > 0)
		*asks = has_buffers && pg_atomic_exchange_u32(&shared->asked, 1) == 0;
	return pg_atomic_read_u32(&shared->failed) == 0;
}

/*
 * All participants are through with the outer side.  If one of them wants tables on the host, they
 * make them, and each leaves when all have.  has_read: this one has gone on until there were no more
 * pages; others have not begun.
 *
 * Returns what is left to be read: nothing, but what each has logged or kept; all pages, for nobody
 * has begun; or all rows of the joins, for their tables cannot be probed.
 */
GhJoinedInput
gh_device_meet(GhFragment *fragment, bool wanted, bool has_read)
{
	GhDeviceShared *shared = &fragment->member->shared->device;
	bool		elected;

	if (wanted)
		pg_atomic_write_u32(&shared->wanted, 1);
	if (has_read)
		pg_atomic_write_u32(&shared->was_read, 1);
	elected = BarrierArriveAndWait(&shared->barrier, WAIT_EVENT_HASH_BUILD_HASH_OUTER);
	if (pg_atomic_read_u32(&shared->wanted) != 0)
	{
		rewind_outer(fragment, elected, &shared->barrier);
		if (!gh_joined_open_tables(fragment, true))
			pg_atomic_write_u32(&shared->by_rows, 1);
		BarrierArriveAndWait(&shared->barrier, WAIT_EVENT_HASH_BUILD_ALLOCATE);
	}
	BarrierDetach(&shared->barrier);
	if (pg_atomic_read_u32(&shared->by_rows) != 0)
	{
		/* the outer side was set back: nothing is left of what was read, whoever has tables to go on with */
		gh_device_set_forget_log(fragment);
		return fragment->joined->open ? GH_JOINED_PAGES : GH_JOINED_ROWS;
	}
	return pg_atomic_read_u32(&shared->was_read) != 0 ? GH_JOINED_NOTHING : GH_JOINED_PAGES;
}
