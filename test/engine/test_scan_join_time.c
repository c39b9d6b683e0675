/*
 * test_scan_join_time.c
 *		What building a table from pages takes, a scan that joins with it, and the rows without a match.
 */
#include "join_test.h"

#define PAGE_BYTES 8192
#define ROW_BYTES 40			/* of a tuple: its header, and two int8 */
#define PAGE_ROWS ((PAGE_BYTES - GH_PAGE_LINES_AT) / (ROW_BYTES + GH_LINE_BYTES))
#define CUT 4096				/* pages of a request */
#define CUT_ROWS 131072			/* of a request for those without a match */

/* A relation of rows of a key and the row's number, and a scan of it. */
typedef struct Timed
{
	uint64_t	rows;
	__int128	numbers;		/* sum of the numbers of the keys */
	uint32_t	npages;
	uint8_t    *memory;
	size_t		bytes;
	bool		registered;
	GhScanPage *pages;
	GhProgram  *program;
	GhScanOptions options;
} Timed;

static const GhPageAttribute attributes[2] = {{8, 8}, {8, 8}};

static void
put_row(uint8_t *page, uint32_t n, uint64_t key, uint64_t value)
{
	uint32_t	at = PAGE_BYTES - (n + 1) * ROW_BYTES;
	uint32_t	line = ROW_BYTES << 17 | UINT32_C(1) << 15 | at;
	uint16_t	natts = 2;

	memcpy(page + GH_PAGE_LINES_AT + n * GH_LINE_BYTES, &line, sizeof(line));
	memcpy(page + at + 18, &natts, sizeof(natts));
	page[at + 22] = 24;
	memcpy(page + at + 24, &key, sizeof(key));
	memcpy(page + at + 32, &value, sizeof(value));
}

/* There are so many keys; in their order rows have them, equally many of each, or as it happens. */
static void
write_pages(Timed *timed, uint64_t keys, bool ordered)
{
	for (uint32_t p = 0; p < timed->npages; p++)
	{
		uint8_t    *page = timed->memory + (size_t) p * PAGE_BYTES;
		uint64_t	first = (uint64_t) p * PAGE_ROWS;
		uint32_t	n = timed->rows - first < PAGE_ROWS ? (uint32_t) (timed->rows - first) : PAGE_ROWS;
		uint16_t	words[3] = {(uint16_t) (GH_PAGE_LINES_AT + n * GH_LINE_BYTES),
		(uint16_t) (PAGE_BYTES - n * ROW_BYTES), PAGE_BYTES};
		uint16_t	version = PAGE_BYTES | GH_PAGE_VERSION;

		memset(page, 0, PAGE_BYTES);
		memcpy(page + GH_PAGE_LOWER_AT, words, sizeof(words));
		memcpy(page + GH_PAGE_VERSION_AT, &version, sizeof(version));
		for (uint32_t i = 0; i < n; i++)
		{
			uint64_t	number = ordered ? (first + i) / (timed->rows / keys) : mix(first + i) % keys;

			put_row(page, i, mix(number), first + i);
			timed->numbers += number;
		}
		timed->pages[p].page = page;
		timed->pages[p].lines = n;
		timed->pages[p].bitmap = GH_SCAN_ALL;
		timed->pages[p].block = timed->pages[p].hinted = 0;
	}
}

static void
timed_make(Context *c, Timed *timed, uint64_t rows, uint64_t keys, bool ordered)
{
	GhError		error = {0};

	memset(timed, 0, sizeof(*timed));
	timed->rows = rows;
	timed->npages = (uint32_t) ((rows + PAGE_ROWS - 1) / PAGE_ROWS);
	timed->bytes = (size_t) timed->npages * PAGE_BYTES;
	timed->memory = aligned_alloc(PAGE_BYTES, timed->bytes);
	timed->pages = make_memory(timed->npages * sizeof(GhScanPage));
	if (timed->memory == NULL)
		exit(2);
	write_pages(timed, keys, ordered);
	timed->registered = c->engine->memory_register != NULL &&
		c->engine->memory_register(0, timed->memory, timed->bytes, false, &error) == GH_OK;
	timed->options.page_bytes = PAGE_BYTES;
	timed->options.natts = 2;
	timed->options.attributes = attributes;
	timed->options.seed = c->seed;
}

static void
timed_drop(Context *c, Timed *timed)
{
	if (timed->registered)
		c->engine->memory_unregister(0, timed->memory);
	free(timed->memory);
	free(timed->pages);
	free(timed->program);
}

static void
timed_program(Timed *timed, uint32_t ncolumns)
{
	Parts		parts;

	memset(&parts, 0, sizeof(parts));
	for (uint32_t i = 0; i < ncolumns; i++)
		(void) add_column(&parts, GH_LOAD_INT8);
	timed->program = build_program(&parts);
	timed->options.program = timed->program;
	timed->options.program_bytes = timed->program->bytes;
}

/* All pages; returns how many rows were counted or handed back. */
static uint64_t
scan_all(Context *c, const Timed *timed, GhScan *scan)
{
	uint32_t	nrequests = (timed->npages + CUT - 1) / CUT;
	GhScanRequest *requests = make_memory(nrequests * sizeof(GhScanRequest));
	uint64_t	rows = 0;

	memset(requests, 0, nrequests * sizeof(GhScanRequest));
	for (uint32_t r = 0; r < nrequests; r++)
	{
		GhScanRequest *request = &requests[r];

		request->pages = timed->pages + (size_t) r * CUT;
		request->npages = r + 1 < nrequests ? CUT : timed->npages - r * CUT;
		request->readable = timed->registered;
		request->back_room = (uint64_t) request->npages * PAGE_ROWS;
		request->back = make_memory(request->back_room * sizeof(GhScanRow));
		(void) c->engine->scans->submit(scan, request);
	}
	for (uint32_t r = 0; r < nrequests; r++)
	{
		if (CHECK(c, c->engine->scans->wait(&requests[r]) == GH_OK, "%s", requests[r].error.message))
			rows += requests[r].counted + requests[r].nback;
		free(requests[r].back);
	}
	free(requests);
	return rows;
}

static void
tell(const char *what, const Timed *timed, double seconds)
{
	printf("  %s: %" PRIu64 " rows of %u pages, %s: %.1f ms, %.1f ns a row\n", what, timed->rows,
		   timed->npages, timed->registered ? "registered" : "staged", seconds * 1e3,
		   seconds * 1e9 / (double) timed->rows);
}

static GhScan *
make_scan(Context *c, const Timed *timed, HostState *state)
{
	GhError		error = {0};
	GhScan	   *scan = NULL;
	GhHost		host;

	host_init(state, &host);
	CHECK(c, c->engine->scans->create(&host, &timed->options, &scan, &error) == GH_OK, "%s",
		  error.message);
	return scan;
}

/* The table of the inner side, whose rows have so many different keys. */
static GhScan *
build(Context *c, Timed *inner, uint64_t keys, HostState *state, const GhScanPart *part,
	  const uint16_t *kept)
{
	GhScanTable made;
	GhError		error = {0};
	GhScan	   *scan;
	double		begin;

	timed_program(inner, 2);
	inner->options.parts = part;
	inner->options.nparts = 1;
	inner->options.kept = kept;
	inner->options.nkept = 1;
	inner->options.all_matches = 1;
	inner->options.groups = inner->rows;
	scan = make_scan(c, inner, state);
	if (scan == NULL)
		return NULL;
	begin = seconds_now();
	CHECK_U64(c, "rows of the table", scan_all(c, inner, scan), inner->rows);
	tell("rows for a table", inner, seconds_now() - begin);
	begin = seconds_now();
	if (!CHECK(c, c->engine->scans->make_table(scan, &made, &error) == GH_OK, "%s", error.message))
		return scan;
	tell("the table of them", inner, seconds_now() - begin);
	CHECK_U64(c, "rows of the table", made.rows, inner->rows);
	CHECK_U64(c, "keys of the table", made.keys, keys);
	return scan;
}

/* All rows were joined twice, with so many rows each, whose numbers follow one another. */
static void
check_sums(Context *c, const Timed *outer, uint64_t each, GhScan *scan)
{
	__int128	rows = (__int128) outer->rows * (outer->rows - 1) * each;
	uint64_t	joined = 2 * each * each * outer->numbers + outer->rows * each * (each - 1);
	uint64_t	buffer[32];
	const GhAggregateState *states = (const GhAggregateState *) ((const GhScanGroup *) buffer + 1);
	GhCursor	cursor = {0};
	GhError		error = {0};
	size_t		bytes;

	CHECK_STATUS(c, "groups", c->engine->scans->results(scan, &cursor, sizeof(buffer), buffer, &bytes,
														&error), GH_OK);
	CHECK(c, states[0].low == (uint64_t) rows && states[0].high == (uint64_t) (rows >> 64),
		  "the sum of the rows' numbers is another");
	CHECK(c, states[1].low == joined && states[1].high == 0, "the sum of what was joined is another");
}

/* Keys of the inner side that no outer row has. */
static uint64_t
count_unmatched(const Timed *outer, uint64_t keys)
{
	uint8_t    *found = make_memory(keys);
	uint64_t	none = 0;

	memset(found, 0, keys);
	for (uint64_t row = 0; row < outer->rows; row++)
		found[mix(row) % keys] = 1;
	for (uint64_t key = 0; key < keys; key++)
		none += found[key] == 0;
	free(found);
	return none;
}

/* Rows of the inner side, which has so many, that no outer row has matched. */
static void
ask_unmatched(Context *c, const Timed *outer, const Timed *inner, uint64_t each, GhScan *scan)
{
	uint64_t	nrequests = (inner->rows + CUT_ROWS - 1) / CUT_ROWS;
	GhScanRequest *requests = make_memory(nrequests * sizeof(GhScanRequest));
	uint64_t	rows = 0;
	double		begin = seconds_now();

	for (uint64_t r = 0; r < nrequests; r++)
	{
		requests[r] = (GhScanRequest) {.unmatched = 1,.first_row = r * CUT_ROWS,.nrows = CUT_ROWS};
		if (r + 1 == nrequests)
			requests[r].nrows = inner->rows - r * CUT_ROWS;
		(void) c->engine->scans->submit(scan, &requests[r]);
	}
	for (uint64_t r = 0; r < nrequests; r++)
		if (CHECK(c, c->engine->scans->wait(&requests[r]) == GH_OK, "%s", requests[r].error.message))
			rows += requests[r].counted;
	tell("rows of the table, for those without a match", inner, seconds_now() - begin);
	CHECK_U64(c, "rows without a match", rows, count_unmatched(outer, inner->rows / each) * each);
	free(requests);
}

/* SELECT sum(outer.value), sum(inner.value) FROM outer JOIN inner USING (key); with marks, RIGHT JOIN */
static void
probe(Context *c, Timed *outer, const Timed *inner, uint64_t each, GhScan *table, const GhScanPart *part)
{
	static const GhScanFill fill = {2, 0};
	static const GhAggregate sums[2] = {
		{GH_AGGREGATE_SUM, GH_CLASS_INT, 1, GH_AGGREGATE_NO_FILTER, 0},
		{GH_AGGREGATE_SUM, GH_CLASS_INT, 2, GH_AGGREGATE_NO_FILTER, 0}
	};
	bool		marks = inner->options.marks_matches != 0;
	GhScanJoin	join = {table, marks ? GH_SCAN_RIGHT : GH_SCAN_INNER, 1, part, 1, &fill};
	HostState	state;
	GhScan	   *scan;

	timed_program(outer, 3);
	outer->options.joins = &join;
	outer->options.njoins = 1;
	outer->options.aggregates = sums;
	outer->options.naggregates = 2;
	scan = make_scan(c, outer, &state);
	if (scan == NULL)
		return;
	/* the first time also finds the memory */
	for (int round = 0; round < 2; round++)
	{
		double		begin = seconds_now();
		uint64_t	rows = scan_all(c, outer, scan);

		if (round == 1)
			tell("rows joined with it", outer, seconds_now() - begin);
		CHECK_U64(c, "rows that were joined", rows, outer->rows * each);
	}
	check_sums(c, outer, each, scan);
	if (marks)
		ask_unmatched(c, outer, inner, each, scan);
	c->engine->scans->destroy(scan);
}

/* So many rows of the inner side have each key.  marks: of those that no row matches it is told. */
static void
time_join(Context *c, uint64_t each, bool marks)
{
	const GhScanPart part = {0, 64, 0};
	const uint16_t kept = 1;
	uint64_t	scale = c->on_host ? 200 : sized(c, 1, 100);
	HostState	state;
	Timed		inner;
	Timed		outer;
	GhScan	   *table;

	timed_make(c, &inner, 10000000 / scale, 10000000 / scale / each, true);
	timed_make(c, &outer, 50000000 / scale / each, inner.rows / each, false);
	inner.options.marks_matches = marks;
	table = build(c, &inner, inner.rows / each, &state, &part, &kept);
	if (table != NULL && c->failures == 0)
		probe(c, &outer, &inner, each, table, &part);
	if (table != NULL)
		c->engine->scans->destroy(table);
	timed_drop(c, &inner);
	timed_drop(c, &outer);
}

static void
throughput(Context *c)
{
	if (no_scans(c))
		return;
	time_join(c, 1, false);
	printf("  the same with eight rows of each key:\n");
	time_join(c, 8, false);
	printf("  the same as a right join:\n");
	time_join(c, 1, true);
	printf("  with eight rows of each key:\n");
	time_join(c, 8, true);
}

const Test	scan_join_time_tests[] = {
	{"joins of scans: throughput", throughput, false},
	{NULL, NULL, false}
};
