/*
 * test_region_changes.c
 *		Batches that are large beside the table they change, which an engine may do in another way than
 *		key by key: the table is as any other way leaves it.
 */
#include "conformance.h"

enum
{
	SHAPE_OLD,					/* keys that are there */
	SHAPE_HALF,					/* every other key is new */
	SHAPE_EQUAL,				/* as many positions as keys, so that two of three come again */
	SHAPE_HOT,					/* one position of ten has the same key */
	SHAPE_NEW,					/* more new keys than the table has room for */
	SHAPES
};

static const TableType together[] = {{KIND_MAP, 8, 8}, {KIND_MAP, 4, 4}};

/* Key number i: odd multiples differ in 4 bytes, too; the first are such as might have a meaning. */
static uint64_t
key_at(const Context *c, uint64_t i)
{
	return i < SPECIALS ? special_keys[i] : (c->seed + i) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Keys 0 to `old` are there, but for some. */
static void
draw_change(Context *c, uint64_t *keys, uint64_t count, uint64_t old, int shape)
{
	uint64_t	i;

	for (i = 0; i < count; i++)
	{
		uint64_t	number = i % old;

		if (shape == SHAPE_HALF && i % 2 == 1)
			number = old + i;
		else if (shape == SHAPE_EQUAL)
			number = random_below(c, count);
		else if (shape == SHAPE_HOT && i % 10 == 3)
			number = old + 7;
		else if (shape == SHAPE_NEW)
			number = 2 * count + i;
		keys[i] = key_at(c, number);
	}
	/* in no order of the table's */
	for (i = count - 1; i > 0; i--)
	{
		uint64_t	j = random_below(c, i + 1);
		uint64_t	key = keys[i];

		keys[i] = keys[j];
		keys[j] = key;
	}
}

static void
change(Subject *s, GhOp op, const uint64_t *keys, uint64_t count, int number)
{
	DeviceBatch d;
	GhTableStats stats;

	if (!device_batch_begin(s, &d, op, keys, count, number % 3 != 0))
		return;
	if (number % 4 == 3)
		(void) run_with_alarms(&d.batch, 100);
	else
		CHECK_STATUS(s->c, "a batch that changes", batch_run(&d.batch), GH_OK);
	device_batch_end(&d);
	check_content(s);
	check_shape(s->c, s->table, &stats);
}

/* A table that has keys, and slots that others have left, is changed by one shape after the other. */
static void
change_table(Context *c, int number, uint64_t *keys, uint64_t count)
{
	GhTableOptions options = options_of(c, together[number % 2]);
	uint64_t	old = count / 2;
	uint64_t	i;
	int			shape;
	Subject		s;

	options.capacity = number % 4 == 3 ? count / 3 : count;
	options.fill_max = number % 3 == 0 ? 0.8 : number % 3 == 1 ? 0.9 : GH_FILL_MAX_MAX;
	options.subtables = 2 + (uint32_t) number % 5;
	if (!subject_open(&s, c, &options))
		return;
	for (i = 0; i < old; i++)
		keys[i] = key_at(c, i);
	do_checked(&s, GH_INSERT, keys, NULL, old);
	do_checked(&s, GH_DELETE, keys + old / 3, NULL, old / 8);
	for (shape = 0; shape < SHAPES && c->failures == 0; shape++)
	{
		draw_change(c, keys, count, old, (shape + number) % SHAPES);
		change(&s, (number + shape) % 2 == 0 ? GH_UPSERT : GH_INSERT, keys, count, number + shape);
		do_checked(&s, GH_DELETE, keys, NULL, count / 8);
	}
	check_export(&s, 10000);
	subject_close(&s);
}

static void
test_changes(Context *c)
{
	uint64_t	count = sized(c, 200000, 70000);
	uint64_t   *keys = make_words(count);
	int			i;

	if (!device_batch_fits(c))
		c->skip = "no arrays of the host are in the device's memory";
	for (i = 0; i < (c->reduced ? 6 : 30) && c->failures == 0 && c->skip == NULL; i++)
		change_table(c, i, keys, count);
	free(keys);
}

#define LIMITED_KEYS 70000
#define LIMITED_CAPACITY 300000

/*
 * A batch of which a few more keys are new than there is room for, with the run-th taking of memory,
 * and all later ones, refused until they are asked for again.  Tells whether one was.
 */
static bool
change_without_memory(Context *c, TableType type, uint64_t run, uint64_t *keys)
{
	GhTableOptions options = options_of(c, type);
	GhTableStats stats;
	uint64_t	room;
	uint64_t	old;
	uint64_t	i;
	bool		refused;
	Subject		s;

	options.capacity = LIMITED_CAPACITY;
	options.fill_max = 0.8;
	if (!subject_open(&s, c, &options))
		return false;
	check_shape(c, s.table, &stats);
	room = (uint64_t) (options.fill_max * (double) slots_of(&stats));
	old = room - LIMITED_KEYS / 2;
	for (i = 0; i < old; i++)
		keys[i] = mix(i);
	do_checked(&s, GH_UPSERT, keys, NULL, old);
	/* so few more that a sample does not tell */
	for (i = 0; i < LIMITED_KEYS; i++)
		keys[i] = mix(i < LIMITED_KEYS / 2 + LIMITED_KEYS / 60 ? old + i : i);
	s.patient = true;
	s.state.refused = false;
	s.state.refuse_at = s.state.takes + run;
	s.state.refuse_after = true;
	{
		DeviceBatch d;
		int			tries = 0;
		GhStatus	status;

		if (device_batch_begin(&s, &d, run % 2 == 0 ? GH_UPSERT : GH_INSERT, keys, LIMITED_KEYS, true))
		{
			do
			{
				status = batch_run(&d.batch);
				check_content(&s);
			}
			while (subject_again(&s, status, ++tries));
			CHECK(c, status == GH_OK, "a change without memory: %s", gh_status_name(status));
			device_batch_end(&d);
		}
	}
	refused = s.state.refused;
	s.state.refuse_at = 0;
	check_content(&s);
	subject_close(&s);
	return refused;
}

static void
test_without_memory(Context *c)
{
	uint64_t   *keys = make_words(LIMITED_CAPACITY + LIMITED_KEYS);
	size_t		t;

	if (!device_batch_fits(c))
		c->skip = "no arrays of the host are in the device's memory";
	for (t = 0; t < sizeof(together) / sizeof(together[0]) && c->skip == NULL; t++)
	{
		uint64_t	run = 1;

		while (run < 1000 && c->failures == 0 && change_without_memory(c, together[t], run, keys))
			run++;
		CHECK(c, run > 1 && run < 1000, "%" PRIu64 " takings were seen to be refused", run);
	}
	free(keys);
}

/* Keys of two buckets come with others: as many as these hold, or more. */
static void
change_twins(Context *c, uint64_t *keys, uint64_t count, uint64_t twins, GhOp op)
{
#ifdef WITH_CUDA_HASH
	GhTableOptions options = options_of(c, together[0]);
	uint64_t	i;
	Subject		s;
	DeviceBatch d;
	GhStatus	status;

	options.capacity = 2 * count;
	options.seed = random_next(c);
	if (!subject_open(&s, c, &options))
		return;
	for (i = 0; i < count; i++)
		keys[i] = key_at(c, i);
	do_checked(&s, GH_INSERT, keys, NULL, count);
	for (i = 0; i < count; i++)
		keys[i] = key_at(c, i % 4 == 0 ? count + i : i);
	/* each comes twice */
	CHECK_U64(c, "keys of equal hash values",
			  adversary_twins_cuda(&options, 20, keys + count / 2, twins), twins);
	(void) adversary_twins_cuda(&options, 20, keys + count / 3, twins);
	if (device_batch_begin(&s, &d, op, keys, count, true))
	{
		status = batch_run(&d.batch);
		CHECK(c, status == (twins > 8 ? GH_TOO_MANY : GH_OK), "%" PRIu64 " twins: %s", twins,
			  gh_status_name(status));
		device_batch_end(&d);
	}
	check_content(&s);
	do_checked(&s, GH_DELETE, keys, NULL, count);
	check_content(&s);
	subject_close(&s);
#else
	(void) keys;
	(void) count;
	(void) twins;
	(void) op;
	c->skip = "without a C++ compiler there is no way to the CUDA engine's hash";
#endif
}

static void
test_twins(Context *c)
{
	uint64_t	count = sized(c, 200000, 70000);
	uint64_t   *keys = make_words(count);
	uint64_t	i;

	if (!device_batch_fits(c))
		c->skip = "no arrays of the host are in the device's memory";
	for (i = 0; i < 4 && c->skip == NULL; i++)
		change_twins(c, keys, count, i < 2 ? 8 : 12, i % 2 == 0 ? GH_UPSERT : GH_INSERT);
	free(keys);
}

const Test	region_change_tests[] = {
	{"batches that change a table", test_changes, false},
	{"batches that change a table without memory", test_without_memory, false},
	{"batches of equal hash values that change a table", test_twins, false},
	{NULL, NULL, false}
};
