/*
 * guard.c
 *		Calls of dsa.h and dsm.h from under an engine, which must see no error thrown.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lwlock.h"

#include "guard.h"

typedef struct HeldLocks
{
	int			count;
	LWLock	   *last;
} HeldLocks;

static void
note_lock(LWLock *lock, LWLockMode mode, void *arg)
{
	HeldLocks  *held = arg;

	(void) mode;
	held->count++;
	held->last = lock;
}

static HeldLocks
held_locks(void)
{
	HeldLocks	held = {0};

	ForEachLWLockHeldByMe(note_lock, &held);
	return held;
}

/* A cancel, a conflict with recovery and the like: they are not the work's own. */
static bool
ends_statement(int sqlerrcode)
{
	int			category = ERRCODE_TO_CATEGORY(sqlerrcode);

	return category == ERRCODE_TO_CATEGORY(ERRCODE_OPERATOR_INTERVENTION) ||
		category == ERRCODE_TO_CATEGORY(ERRCODE_TRANSACTION_ROLLBACK);
}

/*
 * dsa.h and dsm.h leave their structures in order when they throw, but rely on the
 * transaction's end for their locks and for the descriptor of a segment that was
 * refused.  Here the locks are released one by one, the last first.  With no resource
 * owner nobody misses the descriptor, which stays until the process ends; with one, the
 * caller sees to it that the transaction ends in an error.
 */
static bool
run_work(ResourceOwner owner, void (*work) (void *arg), void *arg, bool is_tried)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner saved_owner = CurrentResourceOwner;
	uint32		interrupts = InterruptHoldoffCount;
	uint32		cancels = QueryCancelHoldoffCount;
	int			before = held_locks().count;
	volatile bool done = false;

	PG_TRY();
	{
		CurrentResourceOwner = owner;
		work(arg);
		done = true;
	}
	PG_CATCH();
	{
		if (is_tried && ends_statement(geterrcode()))
		{
			CurrentResourceOwner = saved_owner;
			PG_RE_THROW();
		}
		for (HeldLocks held = held_locks(); held.count > before; held = held_locks())
		{
			/* the error has reset the count that the release takes one from */
			HOLD_INTERRUPTS();
			LWLockRelease(held.last);
		}
		MemoryContextSwitchTo(context);
		FlushErrorState();
		InterruptHoldoffCount = interrupts;
		QueryCancelHoldoffCount = cancels;
	}
	PG_END_TRY();
	CurrentResourceOwner = saved_owner;
	return done;
}

bool
gh_run_guarded(ResourceOwner owner, void (*work) (void *arg), void *arg)
{
	return run_work(owner, work, arg, false);
}

bool
gh_run_tried(ResourceOwner owner, void (*work) (void *arg), void *arg)
{
	return run_work(owner, work, arg, true);
}
