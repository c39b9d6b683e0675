/*
 * guard.c
 *		Calls of dsa.h and dsm.h from under an engine, which must see no error thrown.
 *
 * What may run here is an allocation, or the end of one: it fails for want of memory alone, has no user's code below
 * it, and does not look for interrupts.  Its error is not lost: the caller gets false, for which the engine
 * gives up its request, and that ends the statement with an error of its own; the server's log has both.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lwlock.h"

#include "guard.h"

/* ------------------------------------------------- the locks that are held */

/* A process can hold no more than this, MAX_SIMUL_LWLOCKS of lwlock.c. */
#define GH_LOCKS_MAX 200

typedef struct HeldLocks
{
	int			count;
	LWLock	   *locks[GH_LOCKS_MAX];
} HeldLocks;

/* Servers before 15.13, 16.9 and 17.5 do not have it, nor those from 19 on. */
extern void ForEachLWLockHeldByMe(void (*callback) (LWLock *, LWLockMode, void *), void *context)
			__attribute__((weak));

static void
note_lock(LWLock *lock, LWLockMode mode, void *arg)
{
	HeldLocks  *held = arg;

	(void) mode;
	if (held->count < GH_LOCKS_MAX)
		held->locks[held->count++] = lock;
}

/* Addresses of a process are below this, unless it asks for others; locks lie at multiples of four bytes. */
#define GH_ADDRESSES (UINT64CONST(1) << 48)
#define GH_LOCK_ALIGNMENT 4
#define GH_ADDRESSES_AT_ONCE (UINT64CONST(1) << 32)

/*
 * Whether a lock at one of these addresses is held.  A server without the list tells only that: it compares
 * addresses, and looks at none of them.
 */
static bool
any_held(uint64 first, uint64 bytes)
{
	return LWLockAnyHeldByMe((LWLock *) (uintptr_t) first, (int) (bytes / GH_LOCK_ALIGNMENT), GH_LOCK_ALIGNMENT);
}

/* Finds the locks among so many addresses, a power of two, by halves.  All addresses take less than a millisecond. */
static void
search_addresses(uint64 first, uint64 bytes, HeldLocks *held)
{
	if (bytes <= GH_ADDRESSES_AT_ONCE && !any_held(first, bytes))
		return;
	if (bytes == GH_LOCK_ALIGNMENT)
		note_lock((LWLock *) (uintptr_t) first, LW_EXCLUSIVE, held);
	else
	{
		search_addresses(first, bytes / 2, held);
		search_addresses(first + bytes / 2, bytes / 2, held);
	}
}

static void
find_held_locks(HeldLocks *held, bool has_list)
{
	held->count = 0;
	if (has_list)
		ForEachLWLockHeldByMe(note_lock, held);
	else
		search_addresses(0, GH_ADDRESSES, held);
}

bool
gh_server_lists_locks(void)
{
	return ForEachLWLockHeldByMe != NULL;
}

static bool
is_among(const HeldLocks *held, const LWLock *lock)
{
	for (int i = 0; i < held->count; i++)
		if (held->locks[i] == lock)
			return true;
	return false;
}

/* Releases what has been acquired since `before`. */
static void
release_since(const HeldLocks *before, bool has_list)
{
	HeldLocks	now;

	find_held_locks(&now, has_list);
	for (int i = now.count - 1; i >= 0; i--)
	{
		if (is_among(before, now.locks[i]))
			continue;
		/* the error has reset the count that the release takes one from */
		HOLD_INTERRUPTS();
		LWLockRelease(now.locks[i]);
	}
}

/* ---------------------------------------------------------------- the call */

/*
 * dsa.h and dsm.h leave their structures in order when they throw, but rely on the
 * transaction's end for their locks and for the descriptor of a segment that was
 * refused.  Here the locks are released.  With no resource owner nobody misses the
 * descriptor, which stays until the process ends; with one, the caller sees to it that the
 * transaction ends in an error.
 */
bool
gh_run_guarded_by(bool has_list, ResourceOwner owner, void (*work) (void *arg), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner saved_owner = CurrentResourceOwner;
	uint32		interrupts = InterruptHoldoffCount;
	uint32		cancels = QueryCancelHoldoffCount;
	volatile bool done = false;
	HeldLocks	before = {0};

	/*
	 * Whoever acquires a lock holds off interrupts.  An error that is being dealt with has begun to count anew, but what
	 * it has left locked its cleanup releases
	 */
	if (interrupts > 0)
		find_held_locks(&before, has_list);
	PG_TRY();
	{
		CurrentResourceOwner = owner;
		work(arg);
		done = true;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		release_since(&before, has_list);
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		InterruptHoldoffCount = interrupts;
		QueryCancelHoldoffCount = cancels;
		ereport(LOG, (errcode(error->sqlerrcode), errmsg_internal("%s", error->message)));
		FreeErrorData(error);
	}
	PG_END_TRY();
	CurrentResourceOwner = saved_owner;
	return done;
}

bool
gh_run_guarded(ResourceOwner owner, void (*work) (void *arg), void *arg)
{
	return gh_run_guarded_by(gh_server_lists_locks(), owner, work, arg);
}
