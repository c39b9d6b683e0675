/*
 * engine_bench_resize.c
 *		Rows of tables that change their size: growing, shrinking, upsizing.
 */
#include "engine_bench.h"

#include <string.h>

#define GROW_BATCH ((uint64_t) 1 << 20)	/* keys */
#define CHECK_ORDER 31

typedef struct Grow
{
	Bench	   *bench;
	GhTable    *table;
	uint64_t	batch;			/* keys */
	uint64_t	slots_empty;	/* it never gets smaller than this */
	void	   *keys;			/* all n */
	void	   *values;
	void	   *queries;
	void	   *results;
} Grow;

/*
 * The filled factor is within its bounds.  The lower one holds from the second resize on,
 * and not for a table that is as small as it gets.
 */
static bool
fill_right(Grow *grow)
{
	GhTableStats stats = bench_stats(grow->bench, grow->table);
	bool		bounded = stats.upsizes > 1 && bench_slots(&stats) > grow->slots_empty;

	return stats.fill <= stats.fill_max && (!bounded || stats.fill >= stats.fill_min);
}

/* Does op on the keys first .. end - 1 in batches; the seconds, and whether all was right. */
static double
grow_pass(Grow *grow, GhOp op, uint64_t first, uint64_t end, bool *right)
{
	Bench	   *bench = grow->bench;
	size_t		size = bench->key_size;
	double		seconds = 0;

	*right = true;
	for (; first < end && !bench->failed; first += grow->batch)
	{
		GhRequest	request = {.op = op};

		request.count = end - first < grow->batch ? end - first : grow->batch;
		request.keys = (char *) grow->keys + first * size;
		if (op == GH_INSERT)
			request.values_in = (char *) grow->values + first * size;
		seconds += bench_request(bench, grow->table, &request);
		*right &= (op == GH_INSERT ? request.outcome.inserted : request.outcome.removed) == request.count &&
			fill_right(grow);
	}
	return seconds;
}

/* Exactly the keys from `low` on are there, with their values. */
static bool
grow_complete(Grow *grow, uint64_t low)
{
	Bench	   *bench = grow->bench;
	BenchFind	find = {.count = bench->n, .low = low, .high = bench->n};
	double		ignored = 0;

	find.stream = bench_unique(bench, 0, bench->n, CHECK_ORDER);
	find.keys = grow->queries;
	find.values = grow->results;
	return !bench->failed && bench_find(bench, grow->table, &find, &ignored) &&
		bench_stats(bench, grow->table).keys == bench->n - low;
}

static void
grow_open(Grow *grow, Bench *bench)
{
	size_t		bytes = bench->n * bench->key_size;
	BenchStream stream = bench_unique(bench, 0, bench->n, 0);

	memset(grow, 0, sizeof(*grow));
	grow->bench = bench;
	/* in steps that a small table has several of, too; aligned to 16 bytes */
	grow->batch = bench->n / 16 < GROW_BATCH ? (bench->n / 16 + 15) / 16 * 16 : GROW_BATCH;
	grow->keys = bench_alloc(bench, bytes);
	grow->values = bench_alloc(bench, bytes);
	grow->queries = bench_alloc(bench, bytes);
	grow->results = bench_alloc(bench, bytes);
	bench_make_pairs(bench, &stream, bench->n, 0, grow->keys, grow->values);
}

static void
grow_close(Grow *grow)
{
	const BenchPlace *place = &grow->bench->place;

	place->free(grow->keys);
	place->free(grow->values);
	place->free(grow->queries);
	place->free(grow->results);
}

/* From empty to n keys and back to one batch, a new table each time. */
static void
grow_round(Grow *grow, BenchRow *up, BenchRow *down)
{
	Bench	   *bench = grow->bench;
	GhTableOptions options = bench_options(bench, 0);
	uint64_t	left = bench->n - grow->batch;
	GhTableStats stats;
	double		seconds;
	bool		right;

	grow->table = bench_table(bench, &options);
	if (grow->table == NULL)
		return;
	stats = bench_stats(bench, grow->table);
	grow->slots_empty = bench_slots(&stats);
	seconds = grow_pass(grow, GH_INSERT, 0, bench->n, &right);
	stats = bench_stats(bench, grow->table);
	up->fill = stats.fill;
	bench_row_memory(up, &stats);
	bench_row_add(up, seconds, right && grow_complete(grow, 0));

	seconds = grow_pass(grow, GH_DELETE, 0, left, &right);
	stats = bench_stats(bench, grow->table);
	down->fill = stats.fill;
	bench_row_add(down, seconds, right && grow_complete(grow, left));
	bench->engine->table_destroy(grow->table);
}

void
bench_grow_rows(Bench *bench)
{
	Grow		grow;
	BenchRow	up = {.op = "grow", .roof = BENCH_ROOF_CAS, .n = bench->n};
	BenchRow	down = {.op = "shrink", .roof = BENCH_ROOF_CAS};
	int			r;

	grow_open(&grow, bench);
	down.n = bench->n - grow.batch;
	for (r = 0; r <= (bench->rounds < 3 ? bench->rounds : 3) && !bench->failed; r++)
		grow_round(&grow, &up, &down);
	bench_row_print(bench, &up);
	bench_row_print(bench, &down);
	grow_close(&grow);
}

/* ----------------------------------------------------------------- upsizing */

/*
 * Reserves just more than the table has room for, so that one subtable is
 * doubled: the entries it had, the bytes read and written at least.
 */
static void
upsize_round(Grow *grow, BenchRow *row)
{
	Bench	   *bench = grow->bench;
	GhTableStats before;
	GhTableStats after;
	GhError		error = {0};
	double		begin;
	double		seconds;
	bool		right;
	uint32_t	s;

	bench_clear(bench, grow->table);
	(void) grow_pass(grow, GH_INSERT, 0, bench->n, &right);
	before = bench_stats(bench, grow->table);
	bench->place.sync();
	begin = bench_now();
	if (bench->engine->table_reserve(grow->table, (uint64_t) ((double) bench_slots(&before) *
															   before.fill_max) + 2, &error) != GH_OK)
		bench_error(bench, "table_reserve", &error);
	seconds = bench_now() - begin;
	after = bench_stats(bench, grow->table);
	for (s = 0; s < before.subtables; s++)
	{
		if (after.subtable[s].slots != 2 * before.subtable[s].slots)
			continue;
		row->n = before.subtable[s].entries;
		row->bytes = (double) (before.subtable[s].slots * 3 * 2 * bench->key_size);
	}
	row->fill = before.fill;
	bench_row_add(row, seconds, right && after.upsizes == before.upsizes + 1 &&
				  bench_slots(&after) > bench_slots(&before) && grow_complete(grow, 0));
}

void
bench_upsize_rows(Bench *bench)
{
	Grow		grow;
	GhTableOptions options = bench_options(bench, bench->n);
	BenchRow	row = {.op = "upsize", .roof = BENCH_ROOF_COPY};
	int			r;

	grow_open(&grow, bench);
	grow.batch = bench->n;
	grow.table = bench_table(bench, &options);
	if (grow.table != NULL)
	{
		for (r = 0; r <= bench->rounds && !bench->failed; r++)
			upsize_round(&grow, &row);
		bench->engine->table_destroy(grow.table);
	}
	bench_row_print(bench, &row);
	grow_close(&grow);
}

/* ------------------------------------------- the experiment: resize or rehash */

/*
 * DyHash, section 6.3: resizing one subtable against rehashing, up from a filled factor
 * of 0.9 and down from 0.4.
 *
 *	subtable	one subtable is doubled or halved
 *	rehash		the entries are exported and inserted in a new table of the new size
 *	reinsert	they are inserted in such a table from arrays that are there already: what
 *				a rehash costs at least
 *
 *	experiment,lib,direction,method,keybits,n,fill,ms,moved,Mops,ok
 *
 * n is the keys of the table, moved those that were moved, Mops moved per second, and
 * fill the filled factor before.
 */
#define RESIZE_ROUNDS 3
#define RESIZE_FILL_MAX 0.9
#define RESIZE_FILL_MIN 0.4

typedef struct Resize
{
	Grow		grow;
	uint64_t	low;			/* keys low .. n - 1 are in the table */
	uint64_t	slots_after;	/* of the table once it was resized */
	void	   *host_keys;
	void	   *host_values;
	BenchRow	subtable;
	BenchRow	rehash;
	BenchRow	reinsert;
} Resize;

/* Deletes `count` keys more, the next ones. */
static double
resize_delete(Resize *resize, uint64_t count, bool *right)
{
	double		seconds = grow_pass(&resize->grow, GH_DELETE, resize->low,
									resize->low + count, right);

	resize->low += count;
	return seconds;
}

/* A table of n keys; for the way down, with just enough deleted that few more will do. */
static bool
resize_table(Resize *resize, bool down)
{
	Grow	   *grow = &resize->grow;
	Bench	   *bench = grow->bench;
	GhTableOptions options = bench_options(bench, down ? 0 : bench->n);
	GhTableStats stats;
	uint64_t	keep;
	bool		right;

	options.fill_min = RESIZE_FILL_MIN;
	grow->table = bench_table(bench, &options);
	if (grow->table == NULL)
		return false;
	resize->low = 0;
	(void) grow_pass(grow, GH_INSERT, 0, bench->n, &right);
	if (!down)
		return right;
	stats = bench_stats(bench, grow->table);
	keep = (uint64_t) (RESIZE_FILL_MIN * (double) bench_slots(&stats)) + 17;
	if (keep < bench->n)
		(void) resize_delete(resize, (bench->n - keep) / 16 * 16, &right);
	return right;
}

/* One subtable up or down. */
static void
resize_subtable(Resize *resize, bool down)
{
	Grow	   *grow = &resize->grow;
	Bench	   *bench = grow->bench;
	GhTableStats before = bench_stats(bench, grow->table);
	uint64_t	room = (uint64_t) ((double) bench_slots(&before) * before.fill_max) + 2;
	GhTableStats after;
	GhError		error = {0};
	double		seconds;
	bool		right = true;
	uint32_t	s;

	bench->place.sync();
	seconds = bench_now();
	if (!down && bench->engine->table_reserve(grow->table, room, &error) != GH_OK)
		bench_error(bench, "table_reserve", &error);
	seconds = bench_now() - seconds;
	if (down)
		seconds = resize_delete(resize, 64, &right);
	after = bench_stats(bench, grow->table);
	for (s = 0; s < before.subtables; s++)
	{
		if (after.subtable[s].slots != before.subtable[s].slots)
			resize->subtable.n = before.subtable[s].entries;
	}
	resize->slots_after = bench_slots(&after);
	resize->subtable.fill = before.fill;
	bench_row_add(&resize->subtable, seconds, right &&
				  after.upsizes - before.upsizes == (down ? 0 : 1) &&
				  after.downsizes - before.downsizes == (down ? 1 : 0) &&
				  grow_complete(grow, resize->low));
}

/*
 * Exports the table's entries to the host's arrays; adds to the seconds and returns how
 * many came.  The arrays have room for one entry more than there are: a call without room
 * cannot tell that nothing is left.
 */
static uint64_t
resize_export(Resize *resize, double *seconds)
{
	Bench	   *bench = resize->grow.bench;
	GhCursor	cursor = {0};
	GhError		error = {0};
	uint64_t	total = 0;
	double		begin = bench_now();

	while (!cursor.finished && total <= bench->n)
	{
		uint64_t	count = 0;

		if (bench->engine->table_export(resize->grow.table, &cursor, bench->n + 1 - total,
										(char *) resize->host_keys + total * bench->key_size,
										(char *) resize->host_values + total * bench->key_size,
										&count, &error) != GH_OK)
		{
			bench_error(bench, "table_export", &error);
			break;
		}
		total += count;
	}
	*seconds += bench_now() - begin;
	return total;
}

/* A new table of the new size for the entries; the old one goes. */
static void
resize_rehash(Resize *resize, BenchRow *row, bool exported)
{
	Grow	   *grow = &resize->grow;
	Bench	   *bench = grow->bench;
	BenchPlace	place = bench->place;
	GhTableOptions options = bench_options(bench, (uint64_t) ((double) resize->slots_after *
															  RESIZE_FILL_MAX));
	GhRequest	request = {.op = GH_INSERT, .count = bench->n - resize->low};
	GhTable    *old = grow->table;
	double		seconds = 0;
	uint64_t	entries = exported ? resize_export(resize, &seconds) : request.count;
	double		begin = bench_now();

	row->fill = bench_stats(bench, old).fill;
	row->n = request.count;
	request.keys = (char *) grow->keys + resize->low * bench->key_size;
	request.values_in = (char *) grow->values + resize->low * bench->key_size;
	if (exported)
	{
		request.keys = resize->host_keys;
		request.values_in = resize->host_values;
		bench->place = bench_host_place(bench->engine);
	}
	options.fill_min = RESIZE_FILL_MIN;
	grow->table = bench_table(bench, &options);
	seconds += bench_now() - begin;
	if (grow->table == NULL)
		grow->table = old;
	else
	{
		seconds += bench_request(bench, grow->table, &request);
		bench->engine->table_destroy(old);
	}
	bench->place = place;
	bench_row_add(row, seconds, entries == request.count &&
				  request.outcome.inserted == request.count && grow_complete(grow, resize->low));
}

static void
resize_print(Resize *resize, const char *direction, const char *method, const BenchRow *row)
{
	Bench	   *bench = resize->grow.bench;
	double		seconds = bench_row_seconds(row);
	bool		right = row->right && row->runs > 0 && !bench->failed;

	printf("resize,%s,%s,%s,%u,%" PRIu64 ",%.4f,%.3f,%" PRIu64 ",%.2f,%s\n", bench->lib,
		   direction, method, bench->key_size * 8, bench->n - resize->low, row->fill,
		   seconds * 1e3, row->n, seconds > 0 ? (double) row->n / seconds * 1e-6 : 0,
		   right ? "yes" : "no");
	fflush(stdout);
	bench->wrong |= !right;
}

static void
resize_direction(Resize *resize, bool down)
{
	Bench	   *bench = resize->grow.bench;
	const char *direction = down ? "down" : "up";
	int			r;

	memset(&resize->subtable, 0, sizeof(BenchRow));
	memset(&resize->rehash, 0, sizeof(BenchRow));
	memset(&resize->reinsert, 0, sizeof(BenchRow));
	for (r = 0; r <= RESIZE_ROUNDS && !bench->failed; r++)
	{
		int			method;

		for (method = 0; method < 3 && !bench->failed; method++)
		{
			if (!resize_table(resize, down))
				bench->failed = true;
			else if (method == 0)
				resize_subtable(resize, down);
			else
				resize_rehash(resize, method == 1 ? &resize->rehash : &resize->reinsert,
							  method == 1);
			if (resize->grow.table != NULL)
				bench->engine->table_destroy(resize->grow.table);
		}
	}
	resize_print(resize, direction, "subtable", &resize->subtable);
	resize_print(resize, direction, "rehash", &resize->rehash);
	resize_print(resize, direction, "reinsert", &resize->reinsert);
}

void
bench_experiment_resize(Bench *bench)
{
	Resize		resize;
	BenchPlace	host = bench_host_place(bench->engine);
	uint64_t	n = bench->n;

	printf("experiment,lib,direction,method,keybits,n,fill,ms,moved,Mops,ok\n");
	memset(&resize, 0, sizeof(resize));
	bench->n = (uint64_t) (bench->scale * 1e8) / 16 * 16;
	bench->load = RESIZE_FILL_MAX;
	grow_open(&resize.grow, bench);
	resize.host_keys = host.alloc((bench->n + 1) * bench->key_size);
	resize.host_values = host.alloc((bench->n + 1) * bench->key_size);
	if (resize.host_keys == NULL || resize.host_values == NULL)
		bench_die("no memory for arrays", "host");
	resize_direction(&resize, false);
	bench->failed = false;
	resize_direction(&resize, true);
	host.free(resize.host_keys);
	host.free(resize.host_values);
	grow_close(&resize.grow);
	bench->n = n;
}
