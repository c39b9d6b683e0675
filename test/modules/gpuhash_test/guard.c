/*
 * guard.c
 *		An error under gh_run_guarded (src/guard.c), with locks that it leaves.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"

#include "guard.h"

PG_FUNCTION_INFO_V1(gpuhash_test_guard);

static LWLock test_locks[3];

static void
fail_with_locks(void *arg)
{
	(void) arg;
	LWLockAcquire(&test_locks[1], LW_EXCLUSIVE);
	LWLockAcquire(&test_locks[2], LW_SHARED);
	ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory, as a test wants it")));
}

/*
 * gpuhash_test_guard(has_list bool) returns text: an error under the guard, with two locks that were
 * acquired there and one from before: what is held after it.  has_list: by the server's list, if it has one.
 */
Datum
gpuhash_test_guard(PG_FUNCTION_ARGS)
{
	bool		done;
	char	   *text;

	for (int i = 0; i < 3; i++)
		LWLockInitialize(&test_locks[i], LWTRANCHE_PARALLEL_QUERY_DSA);
	LWLockAcquire(&test_locks[0], LW_EXCLUSIVE);
	done = gh_run_guarded_by(PG_GETARG_BOOL(0) && gh_server_lists_locks(), CurrentResourceOwner,
							 fail_with_locks, NULL);
	text = psprintf("done %d, held %d %d %d, interrupts held off %u", done, LWLockHeldByMe(&test_locks[0]),
					LWLockHeldByMe(&test_locks[1]), LWLockHeldByMe(&test_locks[2]), InterruptHoldoffCount);
	LWLockRelease(&test_locks[0]);
	PG_RETURN_TEXT_P(cstring_to_text(text));
}
