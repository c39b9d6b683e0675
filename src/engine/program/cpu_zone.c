/*
 * cpu_zone.c
 *		What a time zone adds to the timestamps of a batch.
 *
 * A zone has some hundred entries, and the rows of a batch mostly a few of them: entries are looked for once for the
 * least and the largest timestamp, and for each row between these two.  Rows that were stored one after the other have
 * a single one.
 */
#include <string.h>

#include "engine/clones.h"
#include "engine/program/cpu_zone.h"

/* The least and the largest one; rows that are NULL or not live hold anything, and make the search longer at worst. */
GH_CLONES static void
find_ends(const uint64_t *timestamps, uint32_t nrows, int64_t *least, int64_t *largest)
{
	int64_t		low = (int64_t) timestamps[0];
	int64_t		high = low;

	for (uint32_t i = 1; i < nrows; i++)
	{
		int64_t		timestamp = (int64_t) timestamps[i];

		low = timestamp < low ? timestamp : low;
		high = timestamp > high ? timestamp : high;
	}
	*least = low;
	*largest = high;
}

/* Fills so many rows, one at least; not 0: some have no such shift, as gh_zone_shift() says of each. */
uint64_t
gh_zone_shift_rows(const GhProgram *program, const GhInstruction *in, const uint64_t *timestamps, uint32_t nrows,
				   uint64_t *shifts)
{
	uint32_t	count;
	const int64_t *entries = gh_zone_entries(program, in, &count);
	uint64_t	bad = 0;
	int64_t		least;
	int64_t		largest;
	uint32_t	first;
	uint32_t	last;

	if (count == 0)
	{
		memset(shifts, 0, nrows * sizeof(*shifts));
		return 1;
	}
	find_ends(timestamps, nrows, &least, &largest);
	first = gh_zone_find(entries, count, gh_zone_key((uint64_t) least));
	last = gh_zone_find(entries, count, gh_zone_key((uint64_t) largest));
	if (first == last && entries[first] <= gh_zone_key((uint64_t) least) && gh_timestamp_finite((uint64_t) least) &&
		gh_timestamp_finite((uint64_t) largest))
	{
		uint64_t	shift = gh_zone_shift_by(entries[first], gh_zone_key((uint64_t) least), (uint64_t) least, &bad);

		for (uint32_t i = 0; i < nrows; i++)
			shifts[i] = shift;
		return bad;
	}
	entries += first;
	count = last - first + 1;
	for (uint32_t i = 0; i < nrows; i++)
	{
		int64_t		key = gh_zone_key(timestamps[i]);

		shifts[i] = gh_zone_shift_by(entries[gh_zone_find(entries, count, key)], key, timestamps[i], &bad);
	}
	return bad;
}
