/*
 * crowd.c
 *		Workers that exchange at the same time: their host, their keys and values, their
 *		work, and whether each key's values are one chain over all of them.
 */
#include "crowd.h"

#include <sys/mman.h>

/* Of the keys whose number is divisible by it, and of those alone, there is a value
 * before; where by the second, it is 0. */
#define LASTING 3
#define LASTING_ZERO 30

#define BATCH_MOST 20000

/* ------------------------------------------------------------------- host */

static GhRef
crowd_alloc(void *ctx, size_t bytes)
{
	Worker	   *worker = ctx;

	return worker->memory.alloc(worker->memory.ctx, bytes);
}

static void
crowd_free(void *ctx, GhRef ref)
{
	Worker	   *worker = ctx;

	worker->memory.free(worker->memory.ctx, ref);
}

static void *
crowd_address(void *ctx, GhRef ref)
{
	Worker	   *worker = ctx;

	return worker->memory.address(worker->memory.ctx, ref);
}

/* Now and then it stops the request, which sees that at its next slice. */
static void
crowd_lock(void *ctx, GhLockMode mode)
{
	Worker	   *worker = ctx;
	Crowd	   *crowd = worker->crowd;

	worker->random = mix(worker->random + 1);
	if (crowd->stopping && worker->random % 8 == 0)
		worker->stop = 1;
	if (mode == GH_LOCK_SHARED)
	{
		pthread_rwlock_rdlock(&crowd->lock);
		(void) __atomic_fetch_add(&crowd->shared_locks, 1, __ATOMIC_RELAXED);
	}
	else
		pthread_rwlock_wrlock(&crowd->lock);
}

static void
crowd_unlock(void *ctx)
{
	pthread_rwlock_unlock(&((Worker *) ctx)->crowd->lock);
}

GhHost
crowd_host(Worker *worker)
{
	return (GhHost) {
		.ctx = worker,
		.alloc = crowd_alloc,
		.free = crowd_free,
		.address = crowd_address,
		.lock = crowd_lock,
		.unlock = crowd_unlock,
		.stop = &worker->stop
	};
}

/* ------------------------------------------------------- numbers and values */

static uint64_t
key_of(const Crowd *crowd, uint64_t number)
{
	/* permutations that map 0 to 0 */
	return crowd->size == 8 ? mix(number) : (uint32_t) (number * UINT32_C(2654435761));
}

static void
put_word(const Crowd *crowd, char *array, uint64_t i, uint64_t word)
{
	memcpy(array + i * crowd->size, &word, crowd->size);
}

static uint64_t
get_word(const Crowd *crowd, const char *array, uint64_t i)
{
	return key_read(crowd->size, array + i * crowd->size);
}

/* What position i of a worker brings; 0, or a number from 1 on that none else is. */
static uint64_t
value_of(const Crowd *crowd, uint32_t w, uint64_t i)
{
	uint64_t	id = w * crowd->count + i;

	return crowd->zeros && mix(id) % 32 == 0 ? 0 : id + 1;
}

static bool
lasts(uint64_t number)
{
	return number % LASTING == 0;
}

/* Was it stored before? */
static bool
was_there(const Crowd *crowd, uint64_t number)
{
	return !crowd->fresh && lasts(number);
}

/* What a key has before. */
static uint64_t
value_before(const Crowd *crowd, uint64_t number)
{
	return number % LASTING_ZERO == 0 ? 0 : crowd->workers * crowd->count + 1 + number;
}

/* ------------------------------------------------------- before and during */

static void *
shared_memory(size_t bytes)
{
	void	   *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
	{
		printf("conformance: out of memory\n");
		exit(2);
	}
	return memory;
}

static void
make_worker(Crowd *crowd, uint32_t w)
{
	Worker	   *worker = &crowd->worker[w];
	Context    *c = crowd->c;
	uint64_t	i;

	worker->crowd = crowd;
	worker->random = random_next(c);
	worker->absent = UINT64_MAX - w;
	worker->number = shared_memory(crowd->count * sizeof(uint32_t));
	worker->keys = shared_memory(crowd->count * crowd->size);
	worker->values = shared_memory(crowd->count * crowd->size);
	worker->out = shared_memory(crowd->count * crowd->size);
	worker->flags = shared_memory(crowd->count);
	for (i = 0; i < crowd->count; i++)
	{
		uint64_t	number = random_below(c, crowd->universe);

		/* a few keys come often */
		if (random_below(c, 16) == 0)
			number %= 5;
		if (crowd->alike && w > 0)
			number = crowd->worker[0].number[i];
		worker->number[i] = (uint32_t) number;
		put_word(crowd, worker->keys, i, key_of(crowd, number));
		put_word(crowd, worker->values, i, value_of(crowd, w, i));
	}
}

Crowd *
crowd_make(Context *c, uint32_t size, uint64_t count, uint32_t universe)
{
	Crowd	   *crowd = shared_memory(sizeof(Crowd));
	pthread_rwlockattr_t lock;
	pthread_barrierattr_t barrier;
	uint32_t	w;

	crowd->c = c;
	crowd->workers = WORKERS;
	crowd->size = size;
	crowd->count = count;
	crowd->universe = universe;
	crowd->alike = random_below(c, 2) != 0;
	crowd->zeros = random_below(c, 2) != 0;
	crowd->stopping = random_below(c, 2) != 0;
	crowd->fresh = random_below(c, 2) != 0;
	pthread_rwlockattr_init(&lock);
	pthread_rwlockattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
	pthread_rwlock_init(&crowd->lock, &lock);
	pthread_barrierattr_init(&barrier);
	pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&crowd->start, &barrier, WORKERS);
	for (w = 0; w < WORKERS; w++)
		make_worker(crowd, w);
	return crowd;
}

void
crowd_drop(Crowd *crowd)
{
	uint32_t	w;

	for (w = 0; w < crowd->workers; w++)
	{
		Worker	   *worker = &crowd->worker[w];

		munmap(worker->number, crowd->count * sizeof(uint32_t));
		munmap(worker->keys, crowd->count * crowd->size);
		munmap(worker->values, crowd->count * crowd->size);
		munmap(worker->out, crowd->count * crowd->size);
		munmap(worker->flags, crowd->count);
	}
	munmap(crowd, sizeof(Crowd));
}

GhTableOptions
crowd_options(Context *c, const Crowd *crowd, bool roomy)
{
	GhTableOptions options = {.key_size = crowd->size, .value_size = crowd->size};

	options.seed = random_next(c);
	options.subtables = (uint32_t) (GH_SUBTABLES_MIN + random_below(c, 7));
	options.capacity = roomy ? crowd->universe : 0;
	options.concurrent_exchange = true;
	return options;
}

static GhStatus
do_numbers(Crowd *crowd, GhTable *table, GhOp op, bool (*has) (uint64_t), char *out,
		   uint8_t *flags)
{
	uint32_t	n = crowd->universe;
	char	   *keys = make_memory(n * crowd->size);
	char	   *values = make_memory(n * crowd->size);
	GhRequest	request = {.op = op, .keys = keys, .values_out = out, .flags_out = flags};
	GhStatus	status;
	uint32_t	i;

	for (i = 0; i < n; i++)
	{
		if (has != NULL && has(i))
			continue;
		put_word(crowd, keys, request.count, key_of(crowd, i));
		put_word(crowd, values, request.count++, value_before(crowd, i));
	}
	if (op == GH_UPSERT)
		request.values_in = values;
	do
		crowd->worker[0].stop = 0;
	while ((status = do_request(crowd->c, table, &request)) == GH_STOPPED);
	free(keys);
	free(values);
	return status;
}

void
crowd_store_before(Crowd *crowd, GhTable *table)
{
	if (crowd->fresh)
		return;
	CHECK_STATUS(crowd->c, "upsert before",
				 do_numbers(crowd, table, GH_UPSERT, NULL, NULL, NULL), GH_OK);
	CHECK_STATUS(crowd->c, "delete before",
				 do_numbers(crowd, table, GH_DELETE, lasts, NULL, NULL), GH_OK);
}

/* What a worker does; a request that ends early is submitted again as it is. */
static void
work(Worker *worker, Context *c, GhTable *table)
{
	const Crowd *crowd = worker->crowd;
	uint64_t	at = 0;

	pthread_barrier_wait(&worker->crowd->start);
	while (at < crowd->count)
	{
		GhRequest	request = {.op = GH_EXCHANGE, .absent = worker->absent};
		GhStatus	status;

		request.count = 1 + mix(at + (crowd->alike ? 0 : worker->random)) % BATCH_MOST;
		if (request.count > crowd->count - at)
			request.count = crowd->count - at;
		request.keys = worker->keys + at * crowd->size;
		request.values_in = worker->values + at * crowd->size;
		request.values_out = worker->out + at * crowd->size;
		request.flags_out = worker->flags + at;
		while ((status = do_request(c, table, &request)) == GH_STOPPED ||
			   (status == GH_NO_MEMORY && crowd->state.failed))
		{
			worker->stop = 0;
			worker->stops++;
		}
		worker->stop = 0;
		if (!CHECK_STATUS(c, "exchange beside others", status, GH_OK) ||
			!CHECK_U64(c, "done of an exchange", request.outcome.done, request.count))
			break;
		worker->inserted += request.outcome.inserted;
		worker->replaced += request.outcome.replaced;
		at += request.count;
	}
}

void
crowd_work(Worker *worker, GhRef root)
{
	Context		own = *worker->crowd->c;
	GhHost		host = crowd_host(worker);
	GhTable    *table = NULL;
	GhError		error = {0};

	own.failures = 0;
	CHECK_STATUS(&own, "attach", own.engine->table_attach(&host, root, &table, &error), GH_OK);
	if (table != NULL)
	{
		work(worker, &own, table);
		own.engine->table_detach(table);
	}
	worker->failures = own.failures;
}

/* ------------------------------------------------------------------- after */

/* What came back, put together. */
typedef struct Chains
{
	const Crowd *crowd;
	uint64_t	ids;			/* values above 0 */
	uint8_t    *seen;			/* by value - 1: was it returned, or is it final? */
	uint64_t   *zeros;			/* by number: zeros brought less those seen */
	uint64_t   *positions;		/* by number */
	uint64_t   *news;			/* by number: positions that replaced nothing */
} Chains;

/* Whose key has the value? */
static uint64_t
number_of_value(const Crowd *crowd, uint64_t value)
{
	uint64_t	id = value - 1;
	uint64_t	brought = crowd->workers * crowd->count;

	return id < brought ? crowd->worker[id / crowd->count].number[id % crowd->count] :
		id - brought;
}

static void
see_value(Chains *chains, uint64_t number, uint64_t value)
{
	Context    *c = chains->crowd->c;

	if (value == 0)
	{
		chains->zeros[number]--;
		return;
	}
	if (!CHECK(c, value - 1 < chains->ids &&
			   number_of_value(chains->crowd, value) == number,
			   "key number %" PRIu64 " has another key's value %" PRIx64, number, value))
		return;
	CHECK(c, !chains->seen[value - 1], "value %" PRIx64 " came back twice", value);
	chains->seen[value - 1] = 1;
}

/* The key's values from the final one on: as many as were brought. */
static void
walk(const Chains *chains, uint64_t number, uint64_t value)
{
	const Crowd *crowd = chains->crowd;
	uint64_t	brought = crowd->workers * crowd->count;
	uint64_t	expected = chains->positions[number] + was_there(crowd, number);
	uint64_t	length = 0;

	while (length <= expected && value - 1 < chains->ids)
	{
		uint64_t	id = value - 1;

		length++;
		if (id >= brought)
			break;
		value = get_word(crowd, crowd->worker[id / crowd->count].out, id % crowd->count);
	}
	CHECK_U64(crowd->c, "length of a chain", length, expected);
}

static void
see_positions(Chains *chains)
{
	const Crowd *crowd = chains->crowd;
	uint64_t	i;
	uint32_t	w;

	for (w = 0; w < crowd->workers; w++)
	{
		const Worker *worker = &crowd->worker[w];

		for (i = 0; i < crowd->count; i++)
		{
			uint64_t	number = worker->number[i];
			uint64_t	value = get_word(crowd, worker->out, i);
			bool		fresh = value == (crowd->size == 8 ? worker->absent : (uint32_t) worker->absent);

			CHECK(crowd->c, worker->flags[i] == fresh, "flag %d at position %" PRIu64
				  " of worker %u, which got %" PRIx64, worker->flags[i], i, w, value);
			chains->positions[number]++;
			chains->zeros[number] += value_of(crowd, w, i) == 0;
			chains->news[number] += fresh;
			if (!fresh)
				see_value(chains, number, value);
		}
	}
}

static void
see_final(Chains *chains, const char *values, const uint8_t *there)
{
	const Crowd *crowd = chains->crowd;
	Context    *c = crowd->c;
	bool		zeros;
	uint32_t	n;

	for (n = 0; n < crowd->universe && c->failures == 0; n++)
	{
		uint64_t	value = get_word(crowd, values, n);

		zeros = crowd->zeros || (was_there(crowd, n) && value_before(crowd, n) == 0);
		chains->zeros[n] += was_there(crowd, n) && value_before(crowd, n) == 0;
		CHECK_U64(c, "whether a key is there", there[n], was_there(crowd, n) || chains->positions[n] > 0);
		CHECK_U64(c, "new at so many positions", chains->news[n],
				  !was_there(crowd, n) && chains->positions[n] > 0);
		if (!there[n])
			continue;
		see_value(chains, n, value);
		CHECK_U64(c, "zeros lost", chains->zeros[n], 0);
		if (!zeros)
			walk(chains, n, value);
	}
}

void
crowd_check(Crowd *crowd, GhTable *table)
{
	Context    *c = crowd->c;
	uint32_t	n = crowd->universe;
	char	   *values = make_memory((uint64_t) n * crowd->size);
	uint8_t    *there = make_memory(n);
	Chains		chains = {.crowd = crowd, .ids = crowd->workers * crowd->count + n};
	uint64_t	inserted = 0;
	uint64_t	replaced = 0;
	uint64_t	keys = 0;
	GhTableStats stats;
	uint32_t	w;

	chains.seen = calloc(chains.ids, 1);
	chains.zeros = calloc(n, sizeof(uint64_t));
	chains.positions = calloc(n, sizeof(uint64_t));
	chains.news = calloc(n, sizeof(uint64_t));
	CHECK_STATUS(c, "find after", do_numbers(crowd, table, GH_FIND, NULL, values, there), GH_OK);
	see_positions(&chains);
	see_final(&chains, values, there);
	for (w = 0; w < n; w++)
		keys += there[w];
	for (w = 0; w < crowd->workers; w++)
	{
		inserted += crowd->worker[w].inserted;
		replaced += crowd->worker[w].replaced;
	}
	CHECK_U64(c, "new keys", inserted, keys - (crowd->fresh ? 0 : (n + LASTING - 1) / LASTING));
	CHECK_U64(c, "values replaced", replaced, crowd->workers * crowd->count - inserted);
	check_shape(c, table, &stats);
	CHECK_U64(c, "keys of stats", stats.keys, keys);
	CHECK(c, crowd->shared_locks > 0, "nothing was done at the same time");
	free(chains.seen);
	free(chains.zeros);
	free(chains.positions);
	free(chains.news);
	free(values);
	free(there);
}
