/*
 * clock.h
 *		Where a node's time goes, if that is asked for.
 */
#ifndef GPUHASH_CLOCK_H
#define GPUHASH_CLOCK_H

#include "postgres.h"

#include "portability/instr_time.h"

/* Adds the time since *last, which is now then, to *sum; sum NULL: begins. */
static inline void
gh_clock(bool timing, instr_time *sum, instr_time *last)
{
	instr_time	now;

	if (!timing)
		return;
	INSTR_TIME_SET_CURRENT(now);
	if (sum != NULL)
		INSTR_TIME_ACCUM_DIFF(*sum, now, *last);
	*last = now;
}

#endif							/* GPUHASH_CLOCK_H */
