/*
 * slots.c
 *		Slots and buffers: taking them, giving them back, and what becomes of them
 *		when a process leaves.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "utils/memutils.h"

#include "service/client.h"
#include "service/shared.h"

/* Of the units, one in so many is kept for gh_service_borrow, but one at least. */
#define GH_BORROW_SHARE 8

/* A waiter looks at least so often: abandoned buffers come back without a signal. */
#define GH_BORROW_RETRY_MS 10

/* For a buffer for the time of one request a process waits so long, unless it has others. */
#define GH_BRIEF_WAIT_NS ((uint64) 100000000)

/* What this process has taken so far. */
static uint64 takes = 0;

/* Changes the state if the word is still what it was. */
static bool
slot_change(GhSlot *slot, uint64 word, GhSlotState to)
{
	uint64		generation = gh_slot_generation(word) +
		(to == GH_SLOT_FREE || to == GH_SLOT_SUBMITTED ? 1 : 0);

	return pg_atomic_compare_exchange_u64(&slot->word, &word, gh_slot_word(generation, to));
}

/*
 * The slot becomes FREE, then its units, which say whose they are: what the slot says of
 * their number may be anything.
 */
static bool
slot_free(uint32 number, uint64 word)
{
	GhSlot	   *slot = gh_slot_at(number);
	int			procno = slot->procno;

	/* nobody takes it for his own from here on */
	slot->procno = -1;
	pg_write_barrier();
	if (!slot_change(slot, word, GH_SLOT_FREE))
	{
		slot->procno = procno;
		return false;
	}
	for (uint32 i = number; i < gh_service->units && pg_atomic_read_u32(gh_unit_at(i)) == gh_unit_of(number); i++)
		pg_atomic_write_u32(gh_unit_at(i), 0);
	return true;
}

bool
gh_slot_finish(uint32 number, uint64 generation)
{
	GhSlot	   *slot = gh_slot_at(number);

	pg_write_barrier();
	if (slot_change(slot, gh_slot_word(generation, GH_SLOT_SUBMITTED), GH_SLOT_DONE))
	{
		pg_memory_barrier();
		return pg_atomic_read_u32(&slot->sleeping) != 0;
	}
	if (pg_atomic_read_u64(&slot->word) == gh_slot_word(generation, GH_SLOT_ABANDONED))
		(void) slot_free(number, gh_slot_word(generation, GH_SLOT_ABANDONED));
	return false;
}

/* Whether the slot was this process's when its word was read. */
static bool
slot_is_mine(const GhSlot *slot)
{
	pg_read_barrier();
	return slot->procno == gh_my_procno() && slot->pid == MyProcPid;
}

/* OWNED becomes SUBMITTED; the new generation names the request. */
uint64
gh_slot_submit(uint32 number)
{
	GhSlot	   *slot = gh_slot_at(number);
	uint64		word = pg_atomic_read_u64(&slot->word);

	pg_write_barrier();
	(void) slot_change(slot, word, GH_SLOT_SUBMITTED);
	return gh_slot_generation(word) + 1;
}

/* DONE becomes OWNED: its answer was read. */
void
gh_slot_reuse(uint32 number)
{
	GhSlot	   *slot = gh_slot_at(number);
	uint64		word = pg_atomic_read_u64(&slot->word);

	if (gh_slot_state(word) == GH_SLOT_DONE)
		(void) slot_change(slot, word, GH_SLOT_OWNED);
}

/* ------------------------------------------------------------------- ends */

/* This process no longer wants the slot, in whatever state it is; not its own: nothing. */
void
gh_slot_leave(uint32 number)
{
	GhSlot	   *slot = gh_slot_at(number);

	for (;;)
	{
		uint64		word = pg_atomic_read_u64(&slot->word);
		GhSlotState state = gh_slot_state(word);
		uint32		device = slot->device;

		if (!slot_is_mine(slot))
			return;
		if (state == GH_SLOT_OWNED || state == GH_SLOT_DONE)
		{
			if (slot_free(number, word))
				return;
		}
		else if (state == GH_SLOT_SUBMITTED)
		{
			/* from then on it is the executor's to free */
			if (slot_change(slot, word, GH_SLOT_ABANDONED))
			{
				pg_atomic_fetch_add_u64(&gh_service->device[device].counter[GH_COUNT_ABANDONED], 1);
				return;
			}
		}
		else
			return;
	}
}

/* This process is counted among those that wait for buffers. */
static bool waits = false;

/*
 * It waits since then, by which others come before or behind it; 0: it does not, or has no place among them.
 */
static void
set_waiting(uint64 since_ns)
{
	pg_atomic_write_u64(&gh_slot_at(gh_service->units + (uint32) gh_my_procno())->waits_since, since_ns);
}

static void
begin_waiting(uint64 since_ns)
{
	pg_atomic_fetch_add_u32(&gh_service->waiting, 1);
	waits = true;
	set_waiting(since_ns);
}

static void
end_waiting(void)
{
	set_waiting(0);
	waits = false;
	pg_atomic_fetch_sub_u32(&gh_service->waiting, 1);
}

static void
leave_service(int code, Datum arg)
{
	(void) code;
	(void) arg;
	for (uint32 i = 0; i < gh_service->slots; i++)
		gh_slot_leave(i);
	/* a process that is terminated while it waits leaves await_buffers without its end */
	if (waits)
		end_waiting();
	gh_client_drop_tables();
	if (pg_atomic_read_u32(&gh_service->waiting) > 0)
		ConditionVariableBroadcast(&gh_service->returned);
}

/* Before the first thing that this process takes of the service. */
void
gh_client_join(void)
{
	static int	joined = 0;

	if (joined == MyProcPid)
		return;
	/* what may throw comes before there is anything to give back */
	for (int i = 0; i < GH_WAITS; i++)
		(void) gh_wait_event((GhWait) i);
	before_shmem_exit(leave_service, (Datum) 0);
	joined = MyProcPid;
}

static void
slot_take(uint32 number, uint32 units)
{
	GhSlot	   *slot = gh_slot_at(number);

	slot->procno = gh_my_procno();
	slot->pid = MyProcPid;
	slot->database = MyDatabaseId;
	slot->role = GetUserId();
	slot->take = ++takes;
	slot->units = units;
	pg_atomic_write_u32(&slot->sleeping, 0);
	pg_atomic_write_u64(&slot->started_ns, 0);
	pg_write_barrier();
	(void) slot_change(slot, pg_atomic_read_u64(&slot->word), GH_SLOT_OWNED);
}

bool
gh_slot_of_process(uint32 *number)
{
	gh_client_join();
	*number = gh_service->units + (uint32) gh_my_procno();
	if (gh_slot_state(pg_atomic_read_u64(&gh_slot_at(*number)->word)) != GH_SLOT_FREE)
		return false;
	slot_take(*number, 0);
	return true;
}

/* ---------------------------------------------------------------- buffers */

size_t
gh_service_buffer_max(void)
{
	return gh_service == NULL ? 0 : (gh_service->units - 1) * GH_UNIT_BYTES;
}

/* The first unit of so many free ones in a row, or units; under the lock. */
static uint32
find_run(uint32 wanted)
{
	uint32		run = 0;

	for (uint32 i = 0; i < gh_service->units; i++)
	{
		run = pg_atomic_read_u32(gh_unit_at(i)) == 0 ? run + 1 : 0;
		if (run == wanted)
			return i + 1 - wanted;
	}
	return gh_service->units;
}

static uint32
count_free(void)
{
	uint32		count = 0;

	for (uint32 i = 0; i < gh_service->units; i++)
		if (pg_atomic_read_u32(gh_unit_at(i)) == 0)
			count++;
	return count;
}

/* Whether others wait for buffers since before that time. */
static bool
is_behind(uint64 since_ns)
{
	for (uint32 i = gh_service->units; i < gh_service->slots; i++)
	{
		uint64		other = pg_atomic_read_u64(&gh_slot_at(i)->waits_since);

		if (other != 0 && other < since_ns)
			return true;
	}
	return false;
}

/*
 * n buffers of so many units each, if `kept` units stay free beside them.  since_ns: since when they are
 * wanted, for they go to those first who have waited longest; 0: by one who does not wait so.
 */
static bool
take_buffers(int n, uint32 units, uint32 kept, uint64 since_ns, uint32 *first)
{
	int			taken = 0;

	LWLockAcquire(&gh_service->lock, LW_EXCLUSIVE);
	if (count_free() >= (uint64) n * units + kept && (since_ns == 0 || !is_behind(since_ns)))
		for (; taken < n; taken++)
		{
			first[taken] = find_run(units);
			if (first[taken] == gh_service->units)
				break;
			for (uint32 i = 0; i < units; i++)
				pg_atomic_write_u32(gh_unit_at(first[taken] + i), gh_unit_of(first[taken]));
		}
	if (taken < n)
		while (taken > 0)
		{
			taken--;
			for (uint32 i = 0; i < units; i++)
				pg_atomic_write_u32(gh_unit_at(first[taken] + i), 0);
		}
	LWLockRelease(&gh_service->lock);
	for (int i = 0; i < taken; i++)
		slot_take(first[i], units);
	return taken == n;
}

static uint32
units_for(size_t bytes)
{
	return (uint32) ((Max(bytes, 1) + GH_UNIT_BYTES - 1) / GH_UNIT_BYTES);
}

/* The same, as soon as others have given them back; see await_buffers. */
static bool
sleep_for_buffers(int n, uint32 units, uint32 kept, uint64 since_ns, uint64 most_ns, uint32 *first)
{
	uint64		begin_ns = gh_monotonic_ns();
	bool		taken;

	ConditionVariablePrepareToSleep(&gh_service->returned);
	while (!(taken = take_buffers(n, units, kept, since_ns, first)) &&
		   (most_ns == 0 || gh_monotonic_ns() - begin_ns < most_ns))
		(void) ConditionVariableTimedSleep(&gh_service->returned, GH_BORROW_RETRY_MS, gh_wait_event(GH_WAIT_BUFFER));
	ConditionVariableCancelSleep();
	return taken;
}

/*
 * Waits for them; false: there were none within so long (most_ns; 0: no matter how long that takes).  Whoever
 * waits holds no buffer.
 */
static bool
await_buffers(int n, uint32 units, uint32 kept, uint64 since_ns, uint64 most_ns, uint32 *first)
{
	volatile bool taken = false;

	begin_waiting(since_ns);
	PG_TRY();
	{
		taken = sleep_for_buffers(n, units, kept, since_ns, most_ns, first);
	}
	PG_CATCH();
	{
		end_waiting();
		PG_RE_THROW();
	}
	PG_END_TRY();
	end_waiting();
	/* who comes next may have looked before */
	if (pg_atomic_read_u32(&gh_service->waiting) > 0)
		ConditionVariableBroadcast(&gh_service->returned);
	return taken;
}

/* Whether this process has a buffer. */
static bool
holds_buffers(void)
{
	for (uint32 i = 0; i < gh_service->units; i++)
	{
		GhSlot	   *slot = gh_slot_at(i);

		if (gh_slot_state(pg_atomic_read_u64(&slot->word)) != GH_SLOT_FREE && slot_is_mine(slot))
			return true;
	}
	return false;
}

/* As gh_service_reserve; most_ns: see gh_service_reserve_within. */
static bool
reserve(uint64 most_ns, int n, size_t bytes, void **buffers)
{
	uint32		first[GH_RESERVE_MAX];
	uint32		kept;
	uint64		since_ns = 0;

	Assert(n <= GH_RESERVE_MAX);
	if (gh_service == NULL || bytes > gh_service_buffer_max())
		return false;
	gh_client_join();
	kept = Max(gh_service->units / GH_BORROW_SHARE, 1);
	if (most_ns > 0 && !holds_buffers())
		since_ns = gh_monotonic_ns();
	if (!take_buffers(n, units_for(bytes), kept, since_ns, first) &&
		(since_ns == 0 || !await_buffers(n, units_for(bytes), kept, since_ns, most_ns, first)))
		return false;
	for (int i = 0; i < n; i++)
		buffers[i] = gh_buffer_at(first[i]);
	return true;
}

bool
gh_service_reserve(int n, size_t bytes, void **buffers)
{
	return reserve(0, n, bytes, buffers);
}

bool
gh_service_reserve_within(uint64 most_ns, int n, size_t bytes, void **buffers)
{
	return reserve(most_ns, n, bytes, buffers);
}

bool
gh_service_reserve_briefly(size_t bytes, void **buffer)
{
	uint32		units = units_for(bytes);
	uint32		first;

	if (gh_service == NULL || bytes > gh_service_buffer_max())
		return false;
	gh_client_join();
	if (!take_buffers(1, units, 0, 0, &first) &&
		(holds_buffers() || !await_buffers(1, units, 0, 0, GH_BRIEF_WAIT_NS, &first)))
		return false;
	*buffer = gh_buffer_at(first);
	return true;
}

/* A borrowed buffer goes back with the memory context that it was borrowed for. */
typedef struct Borrowed
{
	MemoryContextCallback callback;
	uint64		take;			/* of the slot: it may be another's by then, or taken anew */
	uint32		slot;
} Borrowed;

static void
return_borrowed(void *arg)
{
	Borrowed   *borrowed = arg;
	GhSlot	   *slot = gh_slot_at(borrowed->slot);

	/* the process may be past the point where shared memory was left */
	if (slot->take == borrowed->take && slot_is_mine(slot))
		gh_service_return(gh_buffer_at(borrowed->slot));
}

void *
gh_service_borrow(MemoryContext context, size_t bytes)
{
	Borrowed   *borrowed = MemoryContextAlloc(context, sizeof(Borrowed));
	uint32		units = units_for(bytes);
	uint32		first;

	if (bytes > gh_service_buffer_max())
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("a request of %zu bytes does not fit the transfer area", bytes),
				 errhint("Raise \"gpuhash.shared_memory\".")));
	gh_client_join();
	if (!take_buffers(1, units, 0, 0, &first))
		(void) await_buffers(1, units, 0, 0, 0, &first);
	borrowed->slot = first;
	borrowed->take = gh_slot_at(first)->take;
	borrowed->callback.func = return_borrowed;
	borrowed->callback.arg = borrowed;
	MemoryContextRegisterResetCallback(context, &borrowed->callback);
	return gh_buffer_at(first);
}

void
gh_service_return(void *buffer)
{
	uint32		number;

	if (buffer == NULL || !gh_buffer_slot(buffer, &number))
		return;
	gh_slot_leave(number);
	if (pg_atomic_read_u32(&gh_service->waiting) > 0)
		ConditionVariableBroadcast(&gh_service->returned);
}

/* The slot of the buffer that an address is in, if this process holds it. */
bool
gh_buffer_slot(const void *address, uint32 *number)
{
	const char *area = gh_buffer_at(0);
	const char *at = address;
	uint32		unit;

	if (at < area || at >= gh_buffer_at(gh_service->units))
		return false;
	unit = (uint32) ((at - area) / GH_UNIT_BYTES);
	/* back to the unit where the buffer begins */
	for (uint32 first = unit + 1; first-- > 0;)
	{
		GhSlot	   *slot = gh_slot_at(first);

		if (gh_slot_state(pg_atomic_read_u64(&slot->word)) == GH_SLOT_FREE)
			continue;
		if (!slot_is_mine(slot) || unit - first >= slot->units)
			return false;
		*number = first;
		return true;
	}
	return false;
}
