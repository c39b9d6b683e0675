/*
 * test_scan_unmatched.c
 *		Rows of a table that no row matched, as what a scan's last join returns: requests for them that are
 *		refused, that come in parts, that two scans make.
 *
 * Random joins of these kinds are in test_scan_join.c.
 */
#include "join_test.h"

/* A table with marks, and a side that joins with it alone, neither of which has rows that go back. */
typedef struct Pair
{
	Side	   *table;
	Side	   *side;
} Pair;

static bool
is_plain(const Side *side)
{
	return side->trial.relation.odd == 0 && side->trial.relation.shorter == 0 &&
		side->trial.relation.nulls == 0;
}

static Side *
draw_plain(Context *c, SideSize size, bool is_table, Side **tables, uint32_t ntables)
{
	for (;;)
	{
		Side	   *side = side_draw(c, size, is_table, tables, ntables);

		if (is_plain(side) && (is_table ? side->trial.options.nkept > 0 : side->trial.options.njoins == 1))
			return side;
		side_drop(c, side);
	}
}

static Pair
draw_pair(Context *c, SideSize size, GhScanJoinKind kind)
{
	Pair		pair;

	pair.table = draw_plain(c, size, true, NULL, 0);
	pair.table->trial.options.all_matches = pair.table->trial.options.marks_matches = 1;
	pair.side = NULL;
	/* of a kind that fills columns */
	while (pair.side == NULL || pair.side->joins[0].nfills == 0)
	{
		if (pair.side != NULL)
			side_drop(c, pair.side);
		pair.side = draw_plain(c, SIDE_FEW, false, &pair.table, 1);
	}
	pair.side->joins[0].kind = kind;
	return pair;
}

static void
drop_pair(Context *c, Pair *pair)
{
	side_drop(c, pair->side);
	side_drop(c, pair->table);
}

/* A request for some rows, as it ends. */
static GhStatus
ask_for(const Side *side, uint64_t first, uint64_t nrows, GhScanRequest *request)
{
	const GhScanEngine *scans = side->engine->scans;

	*request = (GhScanRequest) {.unmatched = 1,.first_row = first,.nrows = nrows};
	if (scans->submit(side->scan, request) == GH_BUSY)
		(void) scans->wait(request);
	return request->status;
}

/* Scans that join with the pair's table; false: one could not be made. */
static bool
begin_pair(Context *c, Pair *pair, GhHost *host, GhScan **scan)
{
	GhError		error = {0};

	*scan = NULL;
	pair->side->scan = NULL;
	if (!side_run(c, pair->table, c->engine))
		return false;
	pair->side->engine = c->engine;
	pair->side->joins[0].table = pair->table->scan;
	host_init(&pair->side->state, host);
	if (!CHECK_STATUS(c, "a scan", c->engine->scans->create(host, &pair->side->trial.options, scan, &error),
					  GH_OK))
		return false;
	pair->side->scan = *scan;
	return true;
}

static void
end_pair(Context *c, Pair *pair)
{
	if (pair->side->scan != NULL)
		c->engine->scans->destroy(pair->side->scan);
	side_end(c, pair->table);
}

/* -------------------------------------------------------------------- refusals */

static void
check_refused(Context *c, const Side *side, uint64_t first, uint64_t nrows, const char *words)
{
	GhScanRequest request;

	CHECK(c, ask_for(side, first, nrows, &request) == GH_INVALID && strstr(request.error.message, words) != NULL,
		  "%" PRIu64 " rows from %" PRIu64 " on: %s", nrows, first, request.error.message);
	CHECK_U64(c, "rows of a request that was refused", request.counted + request.nback + request.joined[0], 0);
}

/* Numbers of rows come from where others can write. */
static void
refused_rows(Context *c)
{
	GhScanRequest request;
	GhScanPage	page = {0};
	GhHost		host;
	GhScan	   *scan;
	uint64_t	rows;
	Pair		pair;

	if (no_scans(c))
		return;
	pair = draw_pair(c, SIDE_FEW, GH_SCAN_RIGHT);
	if (begin_pair(c, &pair, &host, &scan))
	{
		rows = pair.table->made.rows;
		check_refused(c, pair.side, 0, rows + 1, "of a table of");
		check_refused(c, pair.side, 1, rows, "of a table of");
		check_refused(c, pair.side, rows, 1, "of a table of");
		check_refused(c, pair.side, rows + 1, 0, "of a table of");
		check_refused(c, pair.side, UINT64_MAX, 1, "of a table of");
		check_refused(c, pair.side, UINT64_MAX, UINT64_MAX, "of a table of");
		check_refused(c, pair.side, 1, UINT64_MAX, "of a table of");
		check_refused(c, pair.side, 0, GH_SCAN_LINES_MAX + UINT64_C(1), "of a table of");
		CHECK_STATUS(c, "no rows behind the last", ask_for(pair.side, rows, 0, &request), GH_OK);
		CHECK_U64(c, "no rows", request.counted + request.joined[0] + request.nback, 0);
		request = (GhScanRequest) {.unmatched = 2,.nrows = rows};
		CHECK_STATUS(c, "an odd request", c->engine->scans->submit(scan, &request), GH_INVALID);
		request = (GhScanRequest) {.unmatched = 1,.nrows = rows,.npages = 1,.pages = &page};
		CHECK_STATUS(c, "rows beside pages", c->engine->scans->submit(scan, &request), GH_INVALID);
	}
	end_pair(c, &pair);
	pair.side->joins[0].kind = GH_SCAN_LEFT;
	if (begin_pair(c, &pair, &host, &scan))
		check_refused(c, pair.side, 0, 1, "marks none");
	end_pair(c, &pair);
	pair.side->joins[0].kind = GH_SCAN_FULL;
	pair.table->trial.options.marks_matches = 0;
	pair.side->scan = NULL;
	if (side_run(c, pair.table, c->engine))
	{
		GhError		error = {0};

		pair.side->joins[0].table = pair.table->scan;
		host_init(&pair.side->state, &host);
		CHECK_STATUS(c, "marks in a table without", c->engine->scans->create(&host, &pair.side->trial.options,
																			&scan, &error), GH_INVALID);
	}
	side_end(c, pair.table);
	drop_pair(c, &pair);
}

/* ------------------------------------------------------------------- the stop flag */

static void
stopped_rows(Context *c)
{
	GhScanRequest request;
	GhError		error = {0};
	GhHost		host;
	Pair		pair;

	if (no_scans(c))
		return;
	pair = draw_pair(c, SIDE_FEW, GH_SCAN_FULL);
	pair.side->scan = NULL;
	if (side_run(c, pair.table, c->engine))
	{
		pair.side->engine = c->engine;
		pair.side->joins[0].table = pair.table->scan;
		host_init(&pair.side->state, &host);
		pair.side->state.stop = 1;
		if (CHECK_STATUS(c, "a scan", c->engine->scans->create(&host, &pair.side->trial.options,
															  &pair.side->scan, &error), GH_OK))
		{
			CHECK_STATUS(c, "rows", ask_for(pair.side, 0, pair.table->made.rows, &request), GH_STOPPED);
			CHECK_U64(c, "rows of a stopped request", request.counted + request.joined[0], 0);
			pair.side->state.stop = 0;
			CHECK_STATUS(c, "rows", ask_for(pair.side, 0, pair.table->made.rows, &request), GH_OK);
			CHECK_U64(c, "rows without a match", request.joined[0], pair.table->made.rows);
		}
	}
	end_pair(c, &pair);
	drop_pair(c, &pair);
}

/* ----------------------------------------------------------------------- two scans */

/* The marks of a scan are there for the next one, whose rows find fewer than all without a match. */
static void
marks_of_two(Context *c)
{
	static const GhScanJoinKind kinds[] = {GH_SCAN_RIGHT, GH_SCAN_FULL};
	uint64_t	first = 0;
	uint64_t	second = 0;

	if (no_scans(c))
		return;
	for (uint32_t round = 0; round < 20 && c->failures == 0; round++)
	{
		Pair		pair = draw_pair(c, SIDE_MANY, kinds[round % 2]);
		Side	   *other = NULL;

		while (other == NULL || other->joins[0].nfills == 0)
		{
			if (other != NULL)
				side_drop(c, other);
			other = draw_plain(c, SIDE_ONE, false, &pair.table, 1);
		}
		other->joins[0].kind = kinds[round / 2 % 2];
		if (side_run(c, pair.table, c->engine))
		{
			Side	   *sides[2] = {other, pair.side};

			side_model(c, pair.table);
			for (uint32_t i = 0; i < 2; i++)
			{
				side_shrink(c, sides[i]);
				if (side_run(c, sides[i], c->engine))
				{
					side_model(c, sides[i]);
					side_check(c, sides[i]);
					CHECK(c, sides[i]->asked, "rows of a plain side went back");
					*(i == 0 ? &first : &second) += sides[i]->unmatched;
					side_forget(sides[i]);
				}
				side_end(c, sides[i]);
			}
			side_forget(pair.table);
		}
		side_end(c, pair.table);
		side_drop(c, other);
		drop_pair(c, &pair);
	}
	CHECK(c, c->failures > 0 || (second > 0 && first > second), "%" PRIu64 " rows without a match, and then %"
		  PRIu64, first, second);
}

const Test	scan_unmatched_tests[] = {
	{"joins of scans: rows without a match that are refused", refused_rows, false},
	{"joins of scans: rows without a match, stopped", stopped_rows, false},
	{"joins of scans: rows without a match of two scans", marks_of_two, false},
	{NULL, NULL, false}
};
