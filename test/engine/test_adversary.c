/*
 * test_adversary.c
 *		Keys chosen to collide, by who knows the seed: no key is ever lost, and one
 *		that finds no place is reported or makes the table grow.
 */
#include "conformance.h"

/* Keys tried for one list. */
#define TRIES ((uint64_t) 1 << 25)

typedef struct Adversary
{
	uint64_t   *ordinary;
	uint64_t	ordinaries;
	uint64_t   *chosen;			/* their buckets are few */
	uint64_t	chosens;
} Adversary;

/* Up to `most` chosen keys for the subject's table. */
static uint64_t
choose_keys(Subject *s, const GhTableOptions *options, uint32_t bits, uint64_t *keys,
			uint64_t most)
{
	uint64_t	next = 1;
	uint64_t	tries = s->c->reduced ? TRIES >> 4 : TRIES;

	if (s->c->on_host)
	{
		/* the handle knows the hash once it has been used */
		do_checked(s, GH_FIND, special_keys, NULL, 1);
		return adversary_keys_cpu(s->table, s->key_size, bits, &next, tries, keys, most);
	}
	if (s->c->stand_in)
	{
		s->c->skip = "the tables of the stand-in do not show their hash";
		return 0;
	}
#ifdef WITH_CUDA_HASH
	return adversary_keys_cuda(options, bits, &next, tries, keys, most);
#else
	(void) options;
	s->c->skip = "without a C++ compiler there is no way to the CUDA engine's hash";
	return 0;
#endif
}

static void
make_adversary(Subject *s, const GhTableOptions *options, uint32_t bits, Adversary *a)
{
	uint64_t	i;

	a->ordinaries = options->capacity - options->capacity / 8;
	a->ordinary = make_words(a->ordinaries);
	for (i = 0; i < a->ordinaries; i++)
		a->ordinary[i] = i < SPECIALS ? special_keys[i] : mix(s->c->seed + i);
	a->chosens = options->capacity / 8;
	a->chosen = make_words(a->chosens);
	a->chosens = choose_keys(s, options, bits, a->chosen, a->chosens);
	CHECK(s->c, a->chosens >= 16 || s->c->skip != NULL, "only %" PRIu64 " keys collide",
		  a->chosens);
}

static void
drop_adversary(Adversary *a)
{
	free(a->ordinary);
	free(a->chosen);
}

static GhOp
storing_op_number(const Subject *s, uint64_t n)
{
	static const GhOp ops[] = {GH_INSERT, GH_UPSERT, GH_EXCHANGE};

	n %= 3;
	return op_fits(s, ops[n]) ? ops[n] : storing_op(s);
}

/*
 * Stores the chosen keys batch by batch, and looks at everything after each.  A
 * batch may end at the limit: then it has done a prefix and ordinary keys make room.
 */
static void
store_chosen(Subject *s, const Adversary *a, uint64_t batch)
{
	uint64_t	dropped = 0;
	uint64_t	i;

	for (i = 0; i < a->chosens && s->c->failures == 0; i += batch)
	{
		uint64_t	count = a->chosens - i < batch ? a->chosens - i : batch;
		GhTableStats stats;
		GhStatus	status;
		int			tries = 0;
		Batch		b;

		batch_begin(s, &b, storing_op_number(s, i / batch), a->chosen + i, NULL, NULL, count);
		do
			status = batch_run(&b);
		while (subject_again(s, status, ++tries));
		CHECK(s->c, status == GH_OK || status == GH_LIMIT || status == GH_TOO_MANY,
			  "storing keys that collide: %s: %s",
			  gh_status_name(status), b.request.error.message);
		batch_end(&b);
		check_content(s);
		check_shape(s->c, s->table, &stats);
		if (status != GH_OK && dropped < a->ordinaries)
		{
			uint64_t	some = a->ordinaries - dropped < 50 ? a->ordinaries - dropped : 50;

			do_checked(s, GH_DELETE, a->ordinary + dropped, NULL, some);
			dropped += some;
		}
	}
}

static void
store_ordinary(Subject *s, const Adversary *a)
{
	do_checked(s, storing_op(s), a->ordinary, NULL, a->ordinaries);
	check_content(s);
}

/* They come, go and come again. */
static void
come_and_go(Subject *s, const Adversary *a)
{
	uint64_t	half = a->chosens / 2;

	store_ordinary(s, a);
	store_chosen(s, a, 1 + a->chosens / 12);
	do_checked(s, GH_DELETE, a->chosen + half / 2, NULL, half);
	check_content(s);
	do_checked(s, GH_DELETE, a->ordinary, NULL, a->ordinaries);
	check_content(s);
	store_ordinary(s, a);
	store_chosen(s, a, a->chosens);
	do_checked(s, GH_DELETE, a->chosen, NULL, a->chosens);
	check_content(s);
}

static GhTableOptions
adversary_options(const Context *c, TableType type, uint32_t subtables)
{
	GhTableOptions options = options_of(c, type);

	options.subtables = subtables;
	options.fill_max = GH_FILL_MAX_MAX;
	options.fill_min = 0.05;
	options.capacity = sized(c, 6000, 1000);
	return options;
}

static const TableType types[] = {
	{KIND_MAP, 8, 8}, {KIND_SET, 8, 0}, {KIND_MAP, 4, 4}, {KIND_SET, 4, 0},
	{KIND_MAP, 8, 100}, {KIND_MULTI, 8, 8}, {KIND_MULTI, 4, 12}
};

#define TYPES (sizeof(types) / sizeof(types[0]))

static void
test_growth(Context *c)
{
	static const uint32_t subtables[] = {2, 3, 4, 8};
	static const uint32_t bits[] = {2, 4, 6, 7};
	size_t		t;
	size_t		d;
	size_t		n;

	for (t = 0; t < TYPES && c->skip == NULL; t++)
	{
		for (d = 0; d < 4 && c->skip == NULL; d++)
		{
			n = (t + d) % (c->reduced ? 2 : 4);
			if (c->reduced && t % 2 != d % 2)
				continue;
			for (; n < 4 && c->skip == NULL; n += 2)
			{
				GhTableOptions options = adversary_options(c, types[t], subtables[d]);
				Subject		s;
				Adversary	a;

				/* 28 pairs: too few keys of one pair are found that share more bits */
				if (bits[n] > 6 && subtables[d] > 3)
					continue;
				if (!subject_open(&s, c, &options))
					return;
				make_adversary(&s, &options, bits[n], &a);
				come_and_go(&s, &a);
				drop_adversary(&a);
				subject_close(&s);
				if (c->reduced)
					break;
			}
		}
	}
}

/* The table may hold little more than what it has when they come. */
static void
test_limit(Context *c)
{
	static const uint32_t room_percent[] = {0, 5, 20, 60, 150, 400};
	size_t		t;
	size_t		r;

	for (t = 0; t < TYPES && c->skip == NULL; t++)
	{
		for (r = 0; r < sizeof(room_percent) / sizeof(room_percent[0]) && c->skip == NULL; r++)
		{
			GhTableOptions options = adversary_options(c, types[t], 2 + (uint32_t) (t + r) % 3);
			GhTableStats stats;
			Subject		s;
			Adversary	a;

			if (c->reduced && (t + r) % 4 != 0)
				continue;
			if (!subject_open(&s, c, &options))
				return;
			make_adversary(&s, &options, 5, &a);
			store_ordinary(&s, &a);
			check_shape(c, s.table, &stats);
			subject_close(&s);
			/* as much as the ordinary keys took, and a part of that */
			options.memory_limit = stats.bytes_peak + stats.bytes_peak * room_percent[r] / 100;
			if (subject_open(&s, c, &options))
			{
				Batch		b;

				/* where the limit also bounds working memory, not all may fit */
				batch_begin(&s, &b, storing_op(&s), a.ordinary, NULL, NULL, a.ordinaries);
				batch_run(&b);
				CHECK(c, b.request.status == GH_OK || !c->on_host, "the ordinary keys: %s",
					  b.request.error.message);
				batch_end(&b);
				check_content(&s);
				store_chosen(&s, &a, 1 + a.chosens / 12);
				check_shape(c, s.table, &stats);
				CHECK(c, stats.bytes_peak <= options.memory_limit, "%" PRIu64
					  " bytes under a limit of %" PRIu64, stats.bytes_peak, options.memory_limit);
				subject_close(&s);
			}
			drop_adversary(&a);
		}
	}
}

/* More of them than all buckets hold that they go to while the table is small. */
#define TWINS 40

/*
 * Keys whose buckets are the same until the table is far larger than it need be.
 * Returns how many were found.
 */
static uint64_t
choose_twins(Subject *s, const GhTableOptions *options, uint64_t *keys)
{
	uint64_t	next = 1;

	if (s->c->on_host)
	{
		/* of 2^13 buckets, as one subtable has when there are more than 65536 slots: so all of them share both buckets */
		do_checked(s, GH_FIND, special_keys, NULL, 1);
		return adversary_keys_cpu(s->table, s->key_size, 13, &next, UINT64_C(1) << 33, keys, TWINS);
	}
#ifdef WITH_CUDA_HASH
	return adversary_twins_cuda(options, 20, keys, TWINS);
#else
	(void) options;
	return 0;
#endif
}

/*
 * Twins come among other keys: the request does what is before the first that finds no
 * place, and says so; the table is none the larger for it.
 */
static void
try_twins(Subject *s, const GhTableOptions *options, uint64_t *keys, uint64_t ordinaries)
{
	Context    *c = s->c;
	GhTableStats before;
	GhTableStats after;
	uint64_t	slots;
	uint64_t	i;
	Batch		b;

	for (i = 0; i < 2 * ordinaries; i++)
		keys[i] = mix(c->seed + i);
	if (!CHECK_U64(c, "keys of equal hash values", choose_twins(s, options, keys + 2 * ordinaries),
				   TWINS))
		return;
	do_checked(s, storing_op(s), keys, NULL, ordinaries);
	check_shape(c, s->table, &before);

	batch_begin(s, &b, storing_op(s), keys + ordinaries, NULL, NULL, ordinaries + TWINS);
	CHECK_STATUS(c, "storing keys of equal hash values", batch_run(&b), GH_TOO_MANY);
	CHECK(c, strstr(b.request.error.message, "hash values") != NULL, "the error says: %s",
		  b.request.error.message);
	CHECK(c, b.request.outcome.done >= ordinaries && b.request.outcome.done < ordinaries + TWINS,
		  "%" PRIu64 " positions are done, %" PRIu64 " can be and %d cannot all", b.request.outcome.done,
		  ordinaries, TWINS);
	i = b.request.outcome.done;
	batch_end(&b);
	check_content(s);
	check_shape(c, s->table, &after);
	slots = slots_of(&after);
	/* the CPU engine shrinks at the next delete */
	CHECK(c, slots <= (c->on_host ? 4 * 65536 : 4 * slots_of(&before)),
		  "%" PRIu64 " slots for %" PRIu64 " keys, before the twins %" PRIu64, slots, after.keys,
		  slots_of(&before));

	/* one goes and the next has its place */
	do_checked(s, GH_DELETE, keys + 2 * ordinaries, NULL, 1);
	do_checked(s, storing_op(s), keys + ordinaries + i, NULL, 1);
	do_checked(s, GH_DELETE, keys, NULL, 2 * ordinaries + TWINS);
	check_content(s);
}

static void
test_twins(Context *c)
{
	uint64_t	ordinaries = sized(c, 2500, 500);
	uint64_t   *keys = make_words(2 * ordinaries + TWINS);
	size_t		t;

	if (c->stand_in)
		c->skip = "the tables of the stand-in do not show their hash";
	else if (c->on_host && c->reduced)
		c->skip = "without the way back through the CPU engine's hash, too many keys must be tried";
#ifndef WITH_CUDA_HASH
	else if (!c->on_host)
		c->skip = "without a C++ compiler there is no way to the CUDA engine's hash";
#endif
	for (t = 0; t < TYPES && c->skip == NULL; t++)
	{
		GhTableOptions options = options_of(c, types[t]);
		Subject		s;

		if (types[t].key_size != 8 || (c->on_host && types[t].kind != KIND_SET) ||
			(c->reduced && types[t].value_size != 8))
			continue;
		options.subtables = c->on_host || t % 2 == 0 ? 2 : 4;
		options.seed = random_next(c);
		if (!subject_open(&s, c, &options))
			break;
		try_twins(&s, &options, keys, ordinaries);
		subject_close(&s);
	}
	free(keys);
}

/* Each allocation on the way fails once. */
static void
test_failed_allocations(Context *c)
{
	size_t		t;

	for (t = 0; t < TYPES && c->failures == 0; t++)
	{
		GhTableOptions options = adversary_options(c, types[t], 2 + (uint32_t) t % 3);
		uint64_t	run = 0;
		bool		failed = true;
		Adversary	a = {0};

		options.capacity = sized(c, 1500, 600);
		while (failed && run < 1000 && c->failures == 0)
		{
			Subject		s;

			if (!subject_open(&s, c, &options))
				return;
			if (run++ == 0)
				make_adversary(&s, &options, 5, &a);
			store_ordinary(&s, &a);
			s.patient = true;
			s.state.failed = false;
			s.state.fail_at = s.state.calls + run;
			store_chosen(&s, &a, 1 + a.chosens / 5);
			failed = s.state.failed;
			s.state.fail_at = 0;
			do_checked(&s, GH_DELETE, a.chosen, NULL, a.chosens);
			check_content(&s);
			subject_close(&s);
		}
		CHECK(c, run > 1 && run < 1000, "%" PRIu64 " allocations were seen to fail", run - 1);
		drop_adversary(&a);
	}
}

const Test	adversary_tests[] = {
	{"keys that collide", test_growth, false},
	{"keys that collide under a limit", test_limit, false},
	{"keys of equal hash values", test_twins, false},
	{"keys that collide without memory", test_failed_allocations, true},
	{NULL, NULL, false}
};
