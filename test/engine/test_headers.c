/*
 * test_headers.c
 *		Tuples whose headers tell whether they are visible.
 *
 * What a header must be taken for is said here in PostgreSQL's terms, from its documentation, without
 * record_row.h.
 */
#include "page_trial.h"

/* Bits of a tuple's infomask. */
enum
{
	KEY_SHARE_LOCK = 0x0010,
	EXCLUSIVE_LOCK = 0x0040,
	LOCK_ONLY = 0x0080,
	XMIN_COMMITTED = 0x0100,
	XMIN_INVALID = 0x0200,
	XMAX_COMMITTED = 0x0400,
	XMAX_INVALID = 0x0800,
	XMAX_IS_MULTI = 0x1000,
	UPDATED = 0x2000,
	MOVED_OFF = 0x4000,
	MOVED_IN = 0x8000
};

/* Where the header has what. */
#define XMIN_AT 0
#define XMAX_AT 4
#define INFOMASK_AT 20

/* ------------------------------------------------------------------- the model */

/* Did the transaction get its number before the other one?  Numbers up to 2 are of no transaction. */
static bool
is_earlier(uint32_t xid, uint32_t other)
{
	uint64_t	ahead = ((uint64_t) other + (UINT64_C(1) << 32) - xid) % (UINT64_C(1) << 32);

	if (xid <= 2 || other <= 2)
		return xid < other;
	return ahead > 0 && ahead <= UINT64_C(1) << 31;
}

static GhTupleSeen
expected_of_deleter(uint32_t infomask, uint32_t xmax, uint32_t seen_before)
{
	if ((infomask & XMAX_INVALID) || (infomask & LOCK_ONLY))
		return GH_SEEN_VISIBLE;
	if (infomask & (XMAX_IS_MULTI | EXCLUSIVE_LOCK | KEY_SHARE_LOCK))
		return GH_SEEN_UNTOLD;
	return (infomask & XMAX_COMMITTED) && is_earlier(xmax, seen_before) ? GH_SEEN_INVISIBLE : GH_SEEN_UNTOLD;
}

static GhTupleSeen
expected_of(uint32_t infomask, uint32_t xmin, uint32_t xmax, uint32_t seen_before)
{
	bool		committed = (infomask & XMIN_COMMITTED) != 0;
	bool		invalid = (infomask & XMIN_INVALID) != 0;

	if (infomask & (MOVED_OFF | MOVED_IN))
		return GH_SEEN_UNTOLD;
	if (invalid && !committed)
		return GH_SEEN_INVISIBLE;
	if (committed && invalid)
		return expected_of_deleter(infomask, xmax, seen_before);	/* frozen */
	if (committed && is_earlier(xmin, seen_before))
		return expected_of_deleter(infomask, xmax, seen_before);
	return GH_SEEN_UNTOLD;
}

static uint8_t *
header_of(const Trial *trial, uint32_t p, uint32_t t)
{
	return trial->memory + (size_t) p * trial->relation.page_bytes + trial->written[p].starts[t];
}

GhTupleSeen
hinted_tuple(const Trial *trial, uint32_t p, uint32_t t)
{
	const uint8_t *header = header_of(trial, p, t);
	uint32_t	xmin;
	uint32_t	xmax;
	uint16_t	infomask;

	if (trial->written[p].starts[t] < trial->pages[p].hinted)
		return GH_SEEN_INVISIBLE;	/* it came later */
	memcpy(&xmin, header + XMIN_AT, sizeof(xmin));
	memcpy(&xmax, header + XMAX_AT, sizeof(xmax));
	memcpy(&infomask, header + INFOMASK_AT, sizeof(infomask));
	return expected_of(infomask, xmin, xmax, trial->seen_before);
}

/* --------------------------------------------------------------------- headers */

/* Near the snapshot's, half the numbers away from it, or of no transaction. */
static uint32_t
draw_xid(Context *c, uint32_t seen_before)
{
	switch (random_below(c, 6))
	{
		case 0:
			return (uint32_t) random_below(c, 5);
		case 1:
			return (uint32_t) random_next(c);
		case 2:
			return seen_before + UINT32_C(0x80000000) - 2 + (uint32_t) random_below(c, 5);
		case 3:
			return seen_before - 2 + (uint32_t) random_below(c, 5);
		default:
			return seen_before - 1 - (uint32_t) random_below(c, 1000);
	}
}

/* Mostly what headers have; the bits of no concern stay. */
static uint16_t
draw_infomask(Context *c, uint16_t infomask)
{
	static const uint16_t common[] = {
		XMIN_COMMITTED | XMAX_INVALID, XMIN_COMMITTED | XMIN_INVALID | XMAX_INVALID,
		XMIN_COMMITTED | XMAX_INVALID | UPDATED, XMIN_COMMITTED | XMAX_COMMITTED, XMIN_COMMITTED,
		XMIN_INVALID | XMAX_INVALID, XMAX_INVALID, XMIN_COMMITTED | LOCK_ONLY | KEY_SHARE_LOCK,
		XMIN_COMMITTED | LOCK_ONLY | XMAX_IS_MULTI, XMIN_COMMITTED | XMAX_IS_MULTI | KEY_SHARE_LOCK
	};
	uint64_t	kind = random_below(c, 20);

	if (kind == 0)
		return (uint16_t) ((infomask & 0x000f) | (random_next(c) & 0xfff0));
	return (uint16_t) ((infomask & 0x000f) |
					   common[kind < 12 ? kind % 4 : random_below(c, sizeof(common) / sizeof(common[0]))]);
}

void
trial_hint(Context *c, Trial *trial)
{
	static const uint32_t snapshots[] = {3, 4, 100, 0x7fffffff, 0x80000000, 0x80000003, 0xfffffffe, 0xffffffff};

	trial->seen_before = random_below(c, 2) ? 3 + (uint32_t) random_below(c, UINT32_MAX - 3) :
		snapshots[random_below(c, sizeof(snapshots) / sizeof(snapshots[0]))];
	for (uint32_t p = 0; p < trial->npages; p++)
	{
		/* all tuples, those from one of them on, some, or the page is not hinted */
		uint32_t	from[] = {0, 24, 1, (uint32_t) random_below(c, trial->relation.page_bytes + 1)};

		if (trial->written[p].ntuples > 0)
			from[2] = trial->written[p].starts[random_below(c, trial->written[p].ntuples)];
		trial->pages[p].hinted = from[random_below(c, 4)];
		for (uint32_t t = 0; t < trial->written[p].ntuples; t++)
		{
			uint8_t    *header = header_of(trial, p, t);
			uint32_t	xmin = draw_xid(c, trial->seen_before);
			uint32_t	xmax = draw_xid(c, trial->seen_before);
			uint16_t	infomask;

			memcpy(&infomask, header + INFOMASK_AT, sizeof(infomask));
			infomask = draw_infomask(c, infomask);
			memcpy(header + XMIN_AT, &xmin, sizeof(xmin));
			memcpy(header + XMAX_AT, &xmax, sizeof(xmax));
			memcpy(header + INFOMASK_AT, &infomask, sizeof(infomask));
		}
	}
}

/* ----------------------------------------------------------------------- tests */

static GhTupleSeen
told_of(uint32_t infomask, uint32_t xmin, uint32_t xmax, uint32_t seen_before)
{
	/* aligned as a page is */
	_Alignas(16) uint8_t header[24] = {0};
	uint16_t	narrow = (uint16_t) infomask;

	memcpy(header + XMIN_AT, &xmin, sizeof(xmin));
	memcpy(header + XMAX_AT, &xmax, sizeof(xmax));
	memcpy(header + INFOMASK_AT, &narrow, sizeof(narrow));
	return gh_line_judge(header, header, 0, seen_before);
}

/* Each infomask, with numbers of transactions around each other, where they begin and where they wrap. */
static void
every_infomask(Context *c)
{
	static const uint32_t xids[] = {0, 1, 2, 3, 4, 0x7fffffff, 0x80000000, 0x80000001, 0x80000002, 0x80000003, 0xfffffffe, 0xffffffff};
	const uint32_t n = sizeof(xids) / sizeof(xids[0]);
	uint64_t	told[4] = {0};

	for (uint32_t infomask = 0; infomask <= UINT16_MAX && c->failures == 0; infomask += 16)
		for (uint32_t i = 0; i < n * n * (n - 3) && c->failures == 0; i++)
		{
			uint32_t	xmin = xids[i % n];
			uint32_t	xmax = xids[i / n % n];
			uint32_t	seen_before = xids[3 + i / n / n];
			GhTupleSeen	expected = expected_of(infomask, xmin, xmax, seen_before);

			told[expected]++;
			CHECK_U64(c, "what a header tells", told_of(infomask, xmin, xmax, seen_before), expected);
		}
	CHECK(c, told[GH_SEEN_UNTOLD] > 0 && told[GH_SEEN_VISIBLE] > 0 && told[GH_SEEN_INVISIBLE] > 0,
		  "headers tell always the same");
}

/*
 * Who deleted the tuple is read from the page itself, not from its copy: there, xmax may be of the time
 * before the infomask.
 */
static void
late_xmax(Context *c)
{
	_Alignas(16) uint8_t copy[24] = {0};
	_Alignas(16) uint8_t page[24];
	uint16_t	infomask = XMIN_COMMITTED | XMAX_COMMITTED;
	uint32_t	locker = 50;
	uint32_t	deleter = 150;

	memcpy(copy + INFOMASK_AT, &infomask, sizeof(infomask));
	copy[XMIN_AT] = 10;
	memcpy(copy + XMAX_AT, &locker, sizeof(locker));
	memcpy(page, copy, sizeof(page));
	memcpy(page + XMAX_AT, &deleter, sizeof(deleter));
	CHECK_U64(c, "a tuple deleted later", gh_line_judge(copy, page, 0, 100), GH_SEEN_UNTOLD);
	CHECK_U64(c, "a tuple deleted before", gh_line_judge(copy, copy, 0, 100), GH_SEEN_INVISIBLE);
}

const Test	header_tests[] = {
	{"pages: what every header tells", every_infomask, false},
	{"pages: deleters are read last", late_xmax, false},
	{NULL, NULL, false}
};
