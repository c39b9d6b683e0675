/*
 * test_scan_join_refused.c
 *		Joins and tables of scans that are refused, what a scan that makes a table does not do, and
 *		devices that fail meanwhile.
 */
#include "join_test.h"

/* ------------------------------------------------------------ what is refused */

/* A scan that joins with a table twice, and may make a table itself; all of it can be changed. */
typedef struct Bench
{
	Side	   *side;			/* the table: its key is of two parts, and it keeps an int and a text */
	Trial	   *trial;			/* pages of an int8, a text and a float8 */
	GhScanOptions options;
	Parts		parts;
	GhProgram  *program;
	GhScanJoin	joins[2];
	GhScanPart	join_parts[2][2];
	GhScanFill	fills[2][2];
	GhScanPart	key[2];
	uint16_t	kept[2];
} Bench;

/* Vectors of the program. */
enum
{
	OWN_INT,
	OWN_TEXT,
	OWN_FLOAT,
	FIRST_INT,					/* filled by the first join */
	FIRST_TEXT,
	SECOND_INT,					/* and by the second */
	SECOND_TEXT,
	CONSTANT,
	BEFORE,						/* set before the joins */
	AFTER
};

static void
bench_reset(Bench *bench)
{
	static const uint8_t loads[] = {
		GH_LOAD_INT8, GH_LOAD_TEXT, GH_LOAD_FLOAT8, GH_LOAD_INT8, GH_LOAD_TEXT, GH_LOAD_INT8,
		GH_LOAD_TEXT
	};
	GhValue		seven = {7, 0, 0};
	Parts	   *parts = &bench->parts;

	memset(parts, 0, sizeof(*parts));
	for (uint32_t i = 0; i < sizeof(loads); i++)
		(void) add_column(parts, loads[i]);
	(void) add_constant(parts, GH_CLASS_INT, seven);
	(void) add_instruction(parts, GH_OP_BIT_AND, GH_CLASS_INT, OWN_INT, CONSTANT, 0);
	add_instruction(parts, GH_OP_BIT_AND, GH_CLASS_INT, SECOND_INT, CONSTANT, 0)->result = AFTER;
	parts->ntemporaries = 2;
	bench->options = bench->trial->options;
	for (uint32_t j = 0; j < 2; j++)
	{
		GhScanJoin	join = {
			.table = bench->side->scan, .kind = GH_SCAN_LEFT, .nparts = 2,
			.parts = bench->join_parts[j], .nfills = 2, .fills = bench->fills[j]
		};

		bench->joins[j] = join;
		for (uint32_t k = 0; k < 2; k++)
		{
			GhScanPart	part = {(uint16_t) (k == 0 ? BEFORE : j == 0 ? OWN_INT : FIRST_INT), 32, 0};
			GhScanFill	fill = {(uint16_t) (FIRST_INT + 2 * j + k), (uint16_t) k};

			bench->join_parts[j][k] = part;
			bench->fills[j][k] = fill;
		}
	}
	for (uint32_t k = 0; k < 2; k++)
	{
		GhScanPart	part = {(uint16_t) (k == 0 ? AFTER : FIRST_INT), 30, 0};

		bench->key[k] = part;
		bench->kept[k] = (uint16_t) (k == 0 ? SECOND_TEXT : OWN_FLOAT);
	}
	bench->options.joins = bench->joins;
	bench->options.njoins = 2;
	bench->options.joins_at = 1;
	bench->options.nkeys = bench->options.naggregates = 0;
}

/* Makes the table, and the columns are those of make_many() in their order. */
static bool
bench_make(Context *c, Bench *bench)
{
	memset(bench, 0, sizeof(*bench));
	bench->side = side_draw(c, SIDE_FEW, true, NULL, 0);
	bench->side->key.nparts = bench->side->trial.options.nparts = 2;
	bench->side->trial.options.nkept = 2;
	bench->side->trial.options.marks_matches = 0;
	for (uint32_t k = 0; k < 2; k++)
	{
		GhScanPart	part = {(uint16_t) (k == 0 ? SIDE_INT4 : SIDE_INT8), 32, 0};

		bench->side->parts[k] = part;
		bench->side->kept[k] = k == 0 ? SIDE_INT8 : SIDE_TEXT;
	}
	bench->trial = make_memory(sizeof(Trial));
	make_many(c, bench->trial, 0, 20);
	return side_run(c, bench->side, c->engine);
}

static void
bench_drop(Context *c, Bench *bench)
{
	side_end(c, bench->side);
	side_drop(c, bench->side);
	trial_drop(c, bench->trial);
	free(bench->trial);
}

/* Tries the bench's options, and sets all back; `words`: of the message, where it is refused. */
static void
bench_try(Context *c, Bench *bench, GhStatus expected, const char *words)
{
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	GhScan	   *scan = NULL;
	GhStatus	status;

	bench->program = build_program(&bench->parts);
	if (bench->options.program != NULL)
		bench->options.program = bench->program;
	bench->options.program_bytes = bench->program->bytes;
	host_init(&state, &host);
	status = c->engine->scans->create(&host, &bench->options, &scan, &error);
	CHECK(c, status == expected && (expected == GH_OK || strstr(error.message, words) != NULL),
		  "\"%s\": %s: %s", words, gh_status_name(status), error.message);
	if (status == GH_OK)
		c->engine->scans->destroy(scan);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	free(bench->program);
	bench_reset(bench);
}

/* Makes a change, and expects the message. */
#define REFUSED(change, words) \
	do { \
		change; \
		bench_try(c, &bench, GH_INVALID, words); \
	} while (0)

static void
make_own_table(Bench *bench)
{
	bench->options.parts = bench->key;
	bench->options.nparts = 2;
	bench->options.kept = bench->kept;
	bench->options.nkept = 2;
}

static void
refused_joins(Context *c)
{
	Bench		bench;
	GhScan		other;

	if (no_scans(c))
		return;
	if (!bench_make(c, &bench))
		return;
	bench_reset(&bench);
	bench_try(c, &bench, GH_OK, "");
	other = *bench.side->scan;
	REFUSED(bench.options.joins = NULL, "has no 2 joins");
	REFUSED(bench.options.njoins = GH_SCAN_JOINS_MAX + 1, "joins");
	REFUSED(bench.joins[1].nparts = 0, "join 1 of a scan has no key of 0 parts");
	REFUSED(bench.joins[1].nparts = GH_SCAN_PARTS_MAX + 1, "has no key of");
	REFUSED(bench.joins[1].parts = NULL, "has no key of");
	REFUSED(bench.joins[1].nfills = GH_PROGRAM_VECTORS_MAX + 1, "fills no");
	REFUSED(bench.joins[1].fills = NULL, "fills no");
	REFUSED(bench.options.joins_at = 3, "are behind 3 of 2 instructions");
	REFUSED(bench.options.joins_at = 2, "is read before the joins");
	REFUSED(bench.joins[0].kind = 0, "is of kind 0");
	REFUSED(bench.joins[0].kind = GH_SCAN_FULL + 1, "is of kind 7");
	REFUSED(bench.joins[0].kind = GH_SCAN_RIGHT, "marks matches and is not the last one");
	REFUSED(bench.joins[0].kind = GH_SCAN_FULL, "marks matches and is not the last one");
	REFUSED(bench.joins[1].kind = GH_SCAN_RIGHT, "in a table that was not made for it");
	REFUSED(bench.joins[1].kind = GH_SCAN_FULL, "in a table that was not made for it");
	REFUSED((bench.joins[1].kind = GH_SCAN_FULL, bench.options.lists_rows = 1), "that lists rows marks matches");
	REFUSED(bench.joins[0].kind = GH_SCAN_ANTI, "and fills columns");
	REFUSED(bench.joins[0].kind = GH_SCAN_SEMI, "and fills columns");
	REFUSED(bench.joins[0].table = NULL, "has no table");
	REFUSED((other.engine = NULL, bench.joins[0].table = &other), "has no table");
	other.engine = c->engine->scans;
	other.table_made = false;
	REFUSED(bench.joins[0].table = &other, "has no table");
	REFUSED((bench.joins[0].nparts = 1), "has 1 parts, and its table's 2");
	REFUSED(bench.join_parts[0][1].bits = 31, "has 31 bits, and its table's 32");
	REFUSED(bench.join_parts[0][1].bits = 0, "has 0 bits");
	REFUSED(bench.join_parts[0][1].bits = 65, "has 65 bits");
	REFUSED(bench.join_parts[0][1].bits = 33, "has 65 bits, of 64 at most");
	REFUSED(bench.join_parts[0][1].unused = 1, "has 32 bits");
	REFUSED(bench.join_parts[0][1].vector = AFTER + 1, "is no integer that is set");
	REFUSED(bench.join_parts[0][1].vector = OWN_FLOAT, "is no integer that is set");
	REFUSED(bench.join_parts[0][1].vector = AFTER, "is no integer that is set");
	REFUSED(bench.join_parts[0][1].vector = FIRST_INT, "is no integer that is set");
	REFUSED(bench.join_parts[1][1].vector = SECOND_INT, "is no integer that is set");
	REFUSED(bench.options.joins_at = 0, "is no integer that is set");
	REFUSED(bench.fills[1][0].column = OWN_INT, "is none or is in the page");
	REFUSED(bench.fills[1][0].column = CONSTANT, "is none or is in the page");
	REFUSED(bench.fills[1][0].column = FIRST_INT, "is filled already");
	REFUSED(bench.fills[1][0].kept = 1, "is not of class");
	REFUSED(bench.fills[1][0].kept = 2, "is not of class");
	REFUSED(bench.joins[1].nfills = 1, "and no join fills it");
	REFUSED(bench.options.njoins = 1, "and no join fills it");
	bench_drop(c, &bench);
}

static void
refused_tables(Context *c)
{
	GhAggregate count = {GH_AGGREGATE_COUNT_ROWS, 0, 0, GH_AGGREGATE_NO_FILTER, 0};
	GhScanKey	key = {OWN_INT, GH_CLASS_INT, 0};
	Bench		bench;

	if (no_scans(c))
		return;
	if (!bench_make(c, &bench))
		return;
	bench_reset(&bench);
	make_own_table(&bench);
	bench_try(c, &bench, GH_OK, "");
#define TABLE_REFUSED(change, words) REFUSED((make_own_table(&bench), change), words)
	TABLE_REFUSED(bench.options.parts = NULL, "with a key of 2 parts");
	TABLE_REFUSED(bench.options.nparts = GH_SCAN_PARTS_MAX + 1, "with a key of");
	TABLE_REFUSED(bench.options.kept = NULL, "makes no table of 2 values");
	TABLE_REFUSED(bench.options.nkept = GH_SCAN_KEPT_MAX + 1, "makes no table of");
	TABLE_REFUSED(bench.options.nparts = 0, "makes no table keeps");
	TABLE_REFUSED((bench.options.nparts = bench.options.nkept = 0, bench.options.marks_matches = 1),
				  "mark the keys that they find");
	TABLE_REFUSED(bench.options.marks_matches = 2, "mark the keys that they find");
	TABLE_REFUSED((bench.options.keys = &key, bench.options.nkeys = 1), "has 1 keys of groups");
	TABLE_REFUSED((bench.options.aggregates = &count, bench.options.naggregates = 1), "1 aggregates");
	TABLE_REFUSED(bench.key[1].bits = 35, "has 65 bits, of 64");
	TABLE_REFUSED(bench.key[1].bits = 0, "has 0 bits");
	TABLE_REFUSED(bench.key[1].unused = 1, "has 30 bits");
	TABLE_REFUSED(bench.key[1].vector = SECOND_TEXT, "is no integer that is set");
	TABLE_REFUSED(bench.key[1].vector = AFTER + 1, "is no integer that is set");
	TABLE_REFUSED(bench.kept[1] = AFTER + 1, "which is not set");
	TABLE_REFUSED((bench.parts.ntemporaries = 3, bench.kept[1] = AFTER + 1), "which is not set");
#undef TABLE_REFUSED
	bench_drop(c, &bench);
}
#undef REFUSED

/* ----------------------------------------------------- what a table's scan does not do */

static void
misused_tables(Context *c)
{
	const GhScanEngine *scans;
	GhScanRequest request = {0};
	GhCursor	cursor = {0};
	GhScanTable made;
	GhError		error = {0};
	uint64_t	buffer[64];
	size_t		bytes;
	Side	   *table;
	Side	   *groups;

	if (no_scans(c))
		return;
	scans = c->engine->scans;
	table = side_draw(c, SIDE_FEW, true, NULL, 0);
	groups = side_draw(c, SIDE_FEW, false, NULL, 0);
	if (side_run(c, table, c->engine) && side_run(c, groups, c->engine))
	{
		CHECK_STATUS(c, "groups of a table", scans->results(table->scan, &cursor, sizeof(buffer),
														   buffer, &bytes, &error), GH_INVALID);
		CHECK_STATUS(c, "a table that is made twice", scans->make_table(table->scan, &made, &error),
					 GH_INVALID);
		CHECK_STATUS(c, "a table of groups", scans->make_table(groups->scan, &made, &error),
					 GH_INVALID);
		CHECK_STATUS(c, "a request after all", scans->submit(table->scan, &request), GH_INVALID);
		CHECK_STATUS(c, "a request after all", request.status, GH_INVALID);
	}
	side_end(c, groups);
	side_end(c, table);
	side_drop(c, groups);
	side_drop(c, table);
}

/* ----------------------------------------------------------------- failures */

/* A side in one request, as far as it goes. */
static GhStatus
run_side(Context *c, Side *side)
{
	const GhScanEngine *scans = c->engine->scans;
	const Trial *trial = &side->trial;
	GhScanRequest request = {0};
	GhScanOptions options = trial->options;
	GhError		error = {0};
	GhHost		host;
	GhStatus	status;

	host_init(&side->state, &host);
	for (uint32_t j = 0; j < options.njoins; j++)
		side->joins[j].table = side->tables[j]->scan;
	status = scans->create(&host, &options, &side->scan, &error);
	if (status != GH_OK)
		return status;
	request.npages = trial->npages;
	request.pages = trial->pages;
	request.bitmaps = trial->bitmaps;
	request.nbitmaps = (uint64_t) trial->npages * TRIAL_WORDS;
	request.back_room = (uint64_t) trial->npages * TRIAL_LINES_MAX;
	request.back = make_memory(request.back_room * sizeof(GhScanRow));
	status = scans->submit(side->scan, &request);
	if (status == GH_OK || status == GH_BUSY)
		status = scans->wait(&request);
	free(request.back);
	request = (GhScanRequest) {.unmatched = 1};
	if (status == GH_OK && gh_scan_marked_table(&options) != NULL)
	{
		request.nrows = side->tables[options.njoins - 1]->made.rows;
		status = scans->submit(side->scan, &request);
		if (status == GH_OK || status == GH_BUSY)
			status = scans->wait(&request);
	}
	if (status == GH_OK && side->is_table)
		status = scans->make_table(side->scan, &side->made, &error);
	return status;
}

/* A table and a scan that joins with it, while a launch fails; false: none did any more. */
static bool
fail_launch(Context *c, Side **sides, FaultArm arm, uint64_t launch)
{
	GhStatus	status = GH_OK;
	uint32_t	n = 0;

	arm(0, launch);
	while (n < 2 && status == GH_OK)
		status = run_side(c, sides[n++]);
	arm(0, 0);
	CHECK(c, status == GH_OK || status == GH_DEVICE_ERROR, "launch %" PRIu64 " fails: %s", launch,
		  gh_status_name(status));
	while (n-- > 0)
	{
		if (sides[n]->scan != NULL)
			c->engine->scans->destroy(sides[n]->scan);
		CHECK_U64(c, "bytes left", sides[n]->state.allocated + sides[n]->state.device_bytes, 0);
	}
	return status != GH_OK;
}

static void
failing_launches(Context *c)
{
	FaultArm	arm = find_fault_arm(c);
	Side	   *sides[2];
	uint64_t	launch = 1;

	if (arm == NULL || no_scans(c))
		return;
	sides[0] = side_draw(c, SIDE_FEW, true, NULL, 0);
	sides[0]->trial.options.marks_matches = 1;
	sides[1] = side_draw(c, SIDE_FEW, false, sides, 1);
	while (!gh_scan_kind_marks(sides[1]->joins[sides[1]->trial.options.njoins - 1].kind))
	{
		side_drop(c, sides[1]);
		sides[1] = side_draw(c, SIDE_FEW, false, sides, 1);
	}
	while (c->failures == 0 && fail_launch(c, sides, arm, launch))
		launch++;
	/* of the stand-in a request is one, and a table */
	CHECK(c, launch > (c->stand_in ? 3 : 6) || c->failures > 0, "a join has %" PRIu64 " launches only", launch);
	side_drop(c, sides[1]);
	side_drop(c, sides[0]);
}

const Test	scan_join_refused_tests[] = {
	{"joins of scans: joins that are refused", refused_joins, false},
	{"joins of scans: tables that are refused", refused_tables, false},
	{"joins of scans: tables that are misused", misused_tables, false},
	{"joins of scans: launches that fail", failing_launches, false},
	{NULL, NULL, false}
};
