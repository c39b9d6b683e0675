/*
 * program_zone.h
 *		What a time zone adds to a moment, or takes from what its clocks show: GH_OP_ZONE_SHIFT.
 *
 * A zone is a list of whole numbers in ascending order, which is checked, kept and copied as those of IN are.  Each is an
 * entry: from that second on, until the next entry's, so many seconds are to be added.  Both are in one number, the second
 * in its upper part, so that entries are in the order of their seconds.  Any number is some entry, and any list some zone:
 * nothing that a list could hold makes a read outside of it, or an overflow.
 *
 * One list has seconds of UTC and what clocks are ahead of it; another one, the seconds that clocks show and what these
 * are behind.  Who makes the list (../../expr/zones.c) knows which.
 */
#ifndef GH_PROGRAM_ZONE_H
#define GH_PROGRAM_ZONE_H

#include "engine/program/program_ops.h"

#define GH_ZONE_BITS 18			/* of an entry, for seconds to add: 36 hours */
#define GH_ZONE_BIAS (INT64_C(1) << (GH_ZONE_BITS - 1))
#define GH_ZONE_UNKNOWN (-GH_ZONE_BIAS)	/* in place of these seconds: it is not known how many */
#define GH_SECOND_MICROSECONDS INT64_C(1000000)

/* From that second since 2000 on, so many seconds are to be added, or GH_ZONE_UNKNOWN. */
GH_EVERYWHERE int64_t
gh_zone_entry(int64_t from, int64_t shift)
{
	return (int64_t) (((uint64_t) from << GH_ZONE_BITS) + (uint64_t) (shift + GH_ZONE_BIAS));
}

GH_EVERYWHERE int64_t
gh_zone_seconds(int64_t entry)
{
	return (int64_t) ((uint64_t) entry & ((UINT64_C(1) << GH_ZONE_BITS) - 1)) - GH_ZONE_BIAS;
}

/* The largest entry that a timestamp's second may have. */
GH_EVERYWHERE int64_t
gh_zone_key(uint64_t timestamp)
{
	int64_t		seconds = (int64_t) timestamp / GH_SECOND_MICROSECONDS;

	seconds -= (int64_t) timestamp % GH_SECOND_MICROSECONDS < 0;
	return gh_zone_entry(seconds, GH_ZONE_BIAS - 1);
}

GH_EVERYWHERE const int64_t *
gh_zone_entries(const GhProgram *program, const GhInstruction *in, uint32_t *count)
{
	const GhList *list = &gh_program_lists(program)[in->immediate];

	*count = list->count;
	return (const int64_t *) ((const char *) program + list->values);
}

/* The last of so many entries, one at least, that is not above the key; the first one, where all are. */
GH_EVERYWHERE uint32_t
gh_zone_find(const int64_t *entries, uint32_t count, int64_t key)
{
	uint32_t	first = 0;

	while (count > 1)
	{
		uint32_t	half = count / 2;

		first += entries[first + half] <= key ? half : 0;
		count -= half;
	}
	return first;
}

/* Microseconds to be added to a timestamp that has this key, by an entry that was found for it. */
GH_EVERYWHERE uint64_t
gh_zone_shift_by(int64_t entry, int64_t key, uint64_t timestamp, uint64_t *bad)
{
	int64_t		seconds = gh_zone_seconds(entry);
	bool		known = entry <= key && seconds != GH_ZONE_UNKNOWN;

	/* infinite ones stay so, whatever is added */
	*bad |= !known && gh_timestamp_finite(timestamp);
	return known ? (uint64_t) (seconds * GH_SECOND_MICROSECONDS) : 0;
}

GH_EVERYWHERE uint64_t
gh_zone_shift(const GhProgram *program, const GhInstruction *in, uint64_t timestamp, uint64_t *bad)
{
	int64_t		key = gh_zone_key(timestamp);
	uint32_t	count;
	const int64_t *entries = gh_zone_entries(program, in, &count);

	if (count == 0)
	{
		*bad |= gh_timestamp_finite(timestamp);
		return 0;
	}
	return gh_zone_shift_by(entries[gh_zone_find(entries, count, key)], key, timestamp, bad);
}

#endif							/* GH_PROGRAM_ZONE_H */
