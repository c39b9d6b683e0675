/*
 * test_random.c
 *		Random operations on random tables, against the model.
 *
 * A table lives for some positions in phases: it grows, shrinks, is steady, or
 * changes at random.  Everything is drawn from the seed, so that it comes again.
 */
#include "conformance.h"

#define BATCH_MOST 1000000

/* Positions of a table's life: the model takes about 250 bytes a key. */
#define LIFE_MOST 5000000

/* Bytes of values: in a table, and of one find-all, in which a key may come often. */
#define TABLE_BYTES ((uint64_t) 1 << 28)
#define FOUND_BYTES ((uint64_t) 1 << 25)

typedef enum Phase
{
	PHASE_GROW,
	PHASE_SHRINK,
	PHASE_STEADY,
	PHASE_ANY,
	PHASES
} Phase;

/* How the keys of a batch are drawn. */
typedef enum Draw
{
	DRAW_UNIFORM,
	DRAW_SKEWED,				/* few keys often, many seldom */
	DRAW_ROW,					/* numbers in a row */
	DRAW_OLD,					/* those seen before */
	DRAW_FEW,					/* a handful */
	DRAWS
} Draw;

typedef struct Life
{
	Subject		s;
	GhTableOptions options;
	Budget		device;			/* of one that pages */
	uint64_t	universe;		/* different keys, or 0: all */
	bool		scattered;
	uint64_t	batch_most;
	uint64_t	left;			/* positions to be done */
	Phase		phase;
	uint64_t	phase_left;		/* positions */
	uint64_t	unchecked;		/* positions since everything was looked at */
	uint64_t   *keys;
	uint8_t    *ops;
} Life;

/* Powers of two are as likely as each other. */
static uint64_t
random_size(Context *c, uint64_t most)
{
	int			shift = 0;

	while (most >> shift > 1)
		shift++;
	return 1 + random_below(c, most >> random_below(c, (uint64_t) shift + 1));
}

static uint64_t
draw_number(Life *life, Draw draw, uint64_t from, uint64_t i)
{
	Context    *c = life->s.c;
	uint64_t	number = random_next(c);

	if (draw == DRAW_SKEWED)
		number >>= random_below(c, 64);
	else if (draw == DRAW_ROW)
		number = from + i;
	else if (draw == DRAW_FEW)
		number = from + number % 7;
	return life->universe > 0 ? number % life->universe : number;
}

static void
draw_keys(Life *life, uint64_t count)
{
	static const Draw of_phase[PHASES][4] = {
		{DRAW_UNIFORM, DRAW_ROW, DRAW_SKEWED, DRAW_UNIFORM},
		{DRAW_OLD, DRAW_OLD, DRAW_ROW, DRAW_OLD},
		{DRAW_OLD, DRAW_UNIFORM, DRAW_OLD, DRAW_ROW},
		{DRAW_UNIFORM, DRAW_SKEWED, DRAW_FEW, DRAW_OLD}
	};
	Context    *c = life->s.c;
	Draw		draw = of_phase[life->phase][random_below(c, 4)];
	uint64_t	from = random_next(c);
	uint64_t	i;

	for (i = 0; i < count; i++)
	{
		uint64_t	number;

		if (random_below(c, 256) == 0)
			life->keys[i] = special_keys[random_below(c, SPECIALS)];
		else if (draw == DRAW_OLD && life->s.model->count > 0)
			life->keys[i] = model_at(life->s.model, random_below(c, life->s.model->count))->key;
		else
		{
			number = draw_number(life, draw, from, i);
			life->keys[i] = life->scattered ? mix(number) : number;
		}
	}
}

static GhOp
draw_op(Life *life)
{
	static const GhOp of_phase[PHASES][8] = {
		{GH_INSERT, GH_UPSERT, GH_EXCHANGE, GH_ADD, GH_ADD, GH_INSERT, GH_FIND, GH_MIXED},
		{GH_DELETE, GH_DELETE, GH_DELETE_ONE, GH_DELETE, GH_DELETE_ONE, GH_FIND, GH_COUNT, GH_MIXED},
		{GH_UPSERT, GH_DELETE, GH_ADD, GH_DELETE_ONE, GH_EXCHANGE, GH_INSERT, GH_MIXED, GH_FIND},
		{GH_INSERT, GH_EXCHANGE, GH_ADD, GH_DELETE, GH_DELETE_ONE, GH_MIXED, GH_FIND_ALL, GH_COUNT}
	};
	GhOp		op;

	do
		op = of_phase[life->phase][random_below(life->s.c, 8)];
	while (!op_fits(&life->s, op));
	return op;
}

static void
draw_mixed_ops(Life *life, uint64_t count)
{
	static const GhOp ops[] = {GH_INSERT, GH_UPSERT, GH_FIND, GH_DELETE};
	uint64_t	shares[4];
	uint64_t	i;

	for (i = 0; i < 4; i++)
		shares[i] = random_below(life->s.c, 4);
	if (life->phase == PHASE_GROW)
		shares[3] = 3;
	for (i = 0; i < count; i++)
	{
		uint64_t	n = random_below(life->s.c, 4);

		life->ops[i] = (uint8_t) ops[n == 3 && life->phase == PHASE_GROW ? shares[0] % 3 : shares[n]];
	}
}

/* Memory that fails, or a stop, at some point of what follows, where they are the host's. */
static void
maybe_fail(Life *life)
{
	Subject    *s = &life->s;

	s->patient = s->c->on_host && random_below(s->c, 8) == 0;
	if (!s->patient)
		return;
	if (random_below(s->c, 2) == 0)
		s->state.stop_at_lock = s->state.locks_shared + s->state.locks_exclusive + 1 +
			random_below(s->c, 8);
	else
	{
		s->state.fail_at = s->state.calls + 1 + random_below(s->c, 4);
		s->state.fail_after = random_below(s->c, 4) == 0;
	}
}

static void
stop_failing(Life *life)
{
	life->s.patient = false;
	life->s.state.fail_at = 0;
	life->s.state.stop_at_lock = 0;
	life->s.state.stop = 0;
}

/* Something else than a request. */
static void
do_other(Life *life)
{
	Subject    *s = &life->s;
	Context    *c = s->c;
	GhTableStats stats;
	GhError		error = {0};

	switch (random_below(c, 8))
	{
		case 0:
			subject_clear(s);
			if (s->kind == KIND_MULTI && random_below(c, 2) != 0)
			{
				uint64_t	count = random_size(c, life->batch_most);

				draw_keys(life, count);
				do_checked(s, GH_BUILD, life->keys, NULL, count);
			}
			break;
		case 1:
			CHECK_STATUS(c, "reserve", c->engine->table_reserve(
							 s->table, s->model->keys + random_size(c, life->batch_most), &error), GH_OK);
			break;
		case 2:
		case 3:
			CHECK_STATUS(c, "flush", c->engine->table_flush(s->table, &error), GH_OK);
			check_shape(c, s->table, &stats);
			break;
		case 4:
			if (s->kind == KIND_MULTI)
				check_content(s);
			check_export(s, random_size(c, 5000) + (s->model->values >> 8));
			break;
		default:
			check_shape(c, s->table, &stats);
	}
}

/* How many of the keys a find-all may have. */
static uint64_t
cut_find_all(Life *life, uint64_t count)
{
	Subject    *s = &life->s;
	uint64_t	bytes = 0;
	uint64_t	i;

	for (i = 0; i < count && (i == 0 || bytes < FOUND_BYTES); i++)
		bytes += model_entry(s->model, key_cut(s, life->keys[i]))->count * s->value_size;
	return i;
}

static uint64_t
do_step(Life *life)
{
	Subject    *s = &life->s;
	Context    *c = s->c;
	uint64_t	count = random_size(c, life->batch_most);
	GhOp		op = draw_op(life);
	GhTableStats stats;

	draw_keys(life, count);
	if (op == GH_FIND_ALL)
		count = cut_find_all(life, count);
	s->bare = random_below(c, 8) == 0;
	maybe_fail(life);
	if (op == GH_MIXED)
	{
		draw_mixed_ops(life, count);
		do_mixed(s, life->ops, life->keys, NULL, count);
	}
	else
		do_checked(s, op, life->keys, NULL, count);
	s->bare = false;
	stop_failing(life);
	if (random_below(c, 64) == 0)
		do_other(life);
	life->unchecked += count;
	if (life->unchecked > 2 * s->model->count + 2 * s->model->values + 10000)
	{
		life->unchecked = 0;
		check_content(s);
		check_shape(c, s->table, &stats);
	}
	return count;
}

static bool
begin_life(Life *life, Context *c, uint64_t positions)
{
	GhTableOptions *options = &life->options;
	TableType	type;
	uint32_t	types = 0;

	while (type_at(c, types, &type))
		types++;
	type_at(c, (uint32_t) random_below(c, types), &type);
	*options = options_of(c, type);
	options->subtables = (uint32_t) (GH_SUBTABLES_MIN + random_below(c, 7));
	options->fill_max = 0.5 + 0.05 * (double) random_below(c, 10);
	options->fill_min = (0.1 + 0.1 * (double) random_below(c, 9)) * options->subtables /
		(options->subtables + 1) * options->fill_max;
	options->capacity = random_below(c, 2) != 0 ? 0 : random_size(c, positions);
	options->seed = random_next(c);
	options->concurrent_exchange = random_below(c, 2) != 0;
	life->universe = random_below(c, 8) == 0 ? 0 : random_size(c, positions);
	life->scattered = random_below(c, 2) != 0;
	/* values in arrays of at most 8 MiB */
	life->batch_most = ((uint64_t) 8 << 20) / (type.value_size > 8 ? type.value_size : 8);
	if (life->batch_most > BATCH_MOST)
		life->batch_most = BATCH_MOST;
	life->left = TABLE_BYTES / (type.value_size + 1);
	if (life->left > positions)
		life->left = positions;
	if (life->batch_most > life->left)
		life->batch_most = life->left;
	life->keys = make_words(life->batch_most);
	life->ops = make_memory(life->batch_most);
	if (c->on_host || random_below(c, 2) == 0 || !pages_tables(c))
		return subject_open(&life->s, c, options);
	/* what it has at first, and up to as much as its keys will take */
	options->pages = true;
	life->device.limit = bytes_when_new(c, options) + random_size(c, positions * (type.key_size + type.value_size));
	return subject_open_budget(&life->s, c, options, &life->device);
}

static void
tell_life(const Life *life)
{
	printf("  in a %s%s of %u-byte keys and %u-byte values, %u subtables, fill %g to %g, capacity %"
		   PRIu64 ", %" PRIu64 " keys\n", life->options.pages ? "paged " : "", kind_name[life->s.kind], (unsigned) life->s.key_size,
		   (unsigned) life->s.value_size, (unsigned) life->options.subtables,
		   life->options.fill_min, life->options.fill_max, life->options.capacity, life->universe);
}

/* A table from its making to its end; returns the positions that were done. */
static uint64_t
live(Context *c, uint64_t positions)
{
	uint64_t	done = 0;
	Life		life;

	memset(&life, 0, sizeof(life));
	if (!begin_life(&life, c, positions))
		return positions;
	while (done < life.left && c->failures == 0)
	{
		uint64_t	count;

		if (life.phase_left == 0)
		{
			life.phase = (Phase) random_below(c, PHASES);
			life.phase_left = 1 + random_size(c, positions);
		}
		count = do_step(&life);
		done += count;
		life.phase_left -= count < life.phase_left ? count : life.phase_left;
	}
	if (c->failures == 0)
	{
		check_content(&life.s);
		check_export(&life.s, random_size(c, 10000) + (life.s.model->values >> 8));
	}
	else
		tell_life(&life);
	subject_close(&life.s);
	free(life.keys);
	free(life.ops);
	return done;
}

static void
test_random_operations(Context *c)
{
	uint64_t	done = 0;
	uint64_t	tables = 0;

	while (done < c->operations && c->failures == 0)
	{
		/* the longest life is a quarter of the whole at most */
		uint64_t	most = c->operations / 4 < LIFE_MOST ? c->operations / 4 + 1 : LIFE_MOST;

		done += live(c, random_size(c, most));
		tables++;
	}
	printf("  %" PRIu64 " positions on %" PRIu64 " tables\n", done, tables);
}

const Test	random_tests[] = {
	{"random operations", test_random_operations, false},
	{NULL, NULL, false}
};
