/*
 * test_sharing.c
 *		One table through several handles: memory at several addresses, locks, and
 *		processes that read while another writes.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* pthread_rwlockattr_setpshared, MAP_ANONYMOUS */
#endif

#include "conformance.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static GhStatus
do_keys(Context *c, GhTable *table, GhOp op, uint64_t *keys, uint64_t *values,
		uint64_t count, uint64_t *met)
{
	GhRequest	request = {.op = op, .count = count, .keys = keys};
	GhStatus	status;

	if (op == GH_FIND)
		request.values_out = values;
	else if (op != GH_DELETE)
		request.values_in = values;
	status = do_request(c, table, &request);
	*met = request.outcome.matched + request.outcome.inserted + request.outcome.removed;
	return status;
}

/* The table goes to a handle in another mapping; the old one is given back. */
static bool
move_subject(Subject *s, Arena *arena)
{
	Context    *c = s->c;
	GhRef		root = c->engine->table_root(s->table);
	GhTable    *table = NULL;
	GhHost		host;
	GhError		error = {0};

	/* at another address, while this mapping is there too */
	if (!CHECK(c, arena_host(arena, &host), "no mapping") ||
		!CHECK_STATUS(c, "attach", c->engine->table_attach(&host, root, &table, &error), GH_OK))
		return false;
	c->engine->table_detach(s->table);
	arena_host_unmap(&s->host);
	s->host = host;
	s->table = table;
	return true;
}

/*
 * Each operation is done in a mapping of its own, with the earlier ones gone: a raw
 * pointer kept anywhere in the table would be a crash.
 */
static void
test_relocation_of(Context *c, TableType type)
{
	static const GhOp ops[] = {
		GH_BUILD, GH_FIND_ALL, GH_ADD, GH_DELETE_ONE, GH_INSERT, GH_UPSERT, GH_EXCHANGE,
		GH_COUNT, GH_DELETE, GH_ADD, GH_UPSERT, GH_FIND
	};
	uint64_t	count = sized(c, type.value_size > 64 ? 2000 : 20000, 2000);
	uint64_t   *keys = make_words(count);
	GhTableOptions options = options_of(c, type);
	Arena	   *arena = arena_make(64 << 20);
	GhError		error = {0};
	Subject		s;
	uint64_t	i;
	size_t		o;

	memset(&s, 0, sizeof(s));
	if (!CHECK(c, arena != NULL && arena_host(arena, &s.host), "no arena") ||
		!CHECK_STATUS(c, "create in the arena", subject_try(&s, c, &options), GH_OK))
		return;
	for (o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
	{
		for (i = 0; i < count; i++)
			keys[i] = i < SPECIALS ? special_keys[i] : mix(random_below(c, count));
		if (op_fits(&s, ops[o]))
			do_checked(&s, ops[o], keys, NULL, count);
		if (!move_subject(&s, arena))
			break;
		check_content(&s);
		check_export(&s, 300);
		if (o % 4 == 3)
			CHECK_STATUS(c, "flush", c->engine->table_flush(s.table, &error), GH_OK);
	}
	c->engine->table_destroy(s.table);
	model_drop(s.model);
	CHECK_U64(c, "blocks left in the arena", arena_blocks(arena), 0);
	arena_host_unmap(&s.host);
	arena_drop(arena);
	free(keys);
}

static void
test_relocation(Context *c)
{
	TableType	type;
	uint32_t	t;

	for (t = 0; type_at(c, t, &type); t++)
	{
		if (t < 6 || t % 3 == 0)
			test_relocation_of(c, type);
	}
}

static void
test_bad_root(Context *c)
{
	Arena	   *arena = arena_make(1 << 20);
	GhTable    *table = NULL;
	GhError		error = {0};
	GhHost		host;

	if (!CHECK(c, arena != NULL && arena_host(arena, &host), "no arena"))
		return;
	CHECK_STATUS(c, "attach to no root", c->engine->table_attach(&host, 0, &table, &error),
				 GH_INVALID);
	CHECK_STATUS(c, "attach to something else",
				 c->engine->table_attach(&host, 8192, &table, &error), GH_INVALID);
	arena_host_unmap(&host);
	arena_drop(arena);
}

/* Finds take the lock shared, others exclusive, and none keeps it. */
static void
test_lock_modes(Context *c)
{
	uint64_t	count = sized(c, 50000, 5000);
	uint64_t   *keys = make_words(count);
	uint64_t	before;
	GhTableStats stats;
	Subject		s;
	uint64_t	i;

	if (!subject_open_kind(&s, c, KIND_MULTI))
		return;
	for (i = 0; i < count; i++)
		keys[i] = random_below(c, count / 2);
	do_checked(&s, GH_ADD, keys, NULL, count);
	CHECK(c, s.state.locks_exclusive > 0, "add took no exclusive lock");
	before = s.state.locks_exclusive;
	do_checked(&s, GH_FIND, keys, NULL, count);
	do_checked(&s, GH_FIND_ALL, keys, NULL, count);
	do_checked(&s, GH_COUNT, keys, NULL, count);
	check_export(&s, 1000);
	check_shape(c, s.table, &stats);
	CHECK_U64(c, "exclusive locks of readers", s.state.locks_exclusive, before);
	CHECK(c, s.state.locks_shared > 3, "readers took %" PRIu64 " shared locks",
		  s.state.locks_shared);
	before = s.state.locks_exclusive;
	do_checked(&s, GH_DELETE, keys, NULL, count);
	CHECK(c, s.state.locks_exclusive > before, "delete took no exclusive lock");
	CHECK(c, s.state.lock_depth == 0, "a lock was kept");
	subject_close(&s);
	free(keys);
}

/* -------------------------------------------------------------- two handles */

/* A batch that a handle is in the middle of. */
typedef struct Started
{
	bool		running;
	uint64_t   *keys;
	uint8_t    *ops;
	Batch		batch;
} Started;

static void
start_batch(Subject *s, Started *started, uint64_t most)
{
	static const GhOp mixed[] = {GH_INSERT, GH_UPSERT, GH_FIND, GH_DELETE};
	Context    *c = s->c;
	uint64_t	count = 1 + random_below(c, most);
	uint64_t	spread = 1 + random_below(c, 2 * most);
	uint64_t	i;
	GhOp		op;

	/* a find-all must see one state of the table: check_content does those */
	do
		op = (GhOp) (GH_INSERT + random_below(c, GH_MIXED));
	while (!op_fits(s, op) || op == GH_FIND_ALL || op == GH_BUILD);
	for (i = 0; i < count; i++)
	{
		started->keys[i] = mix(random_below(c, spread));
		started->ops[i] = (uint8_t) mixed[random_below(c, 4)];
	}
	batch_begin(s, &started->batch, op, started->keys, NULL, op == GH_MIXED ? started->ops : NULL,
				count);
	started->running = true;
}

/* A few slices of the handle's batch; it ends, or is stopped and goes on another time. */
static void
go_on(Subject *s, HostState *state, Started *started, uint64_t most)
{
	GhStatus	status;

	if (!started->running)
		start_batch(s, started, most);
	state->stop_at_lock = state->locks_shared + state->locks_exclusive + 1 +
		random_below(s->c, 6);
	status = batch_run(&started->batch);
	state->stop_at_lock = 0;
	state->stop = 0;
	CHECK(s->c, status == GH_OK || status == GH_STOPPED, "%s of one of two handles: %s",
		  op_name(started->batch.request.op), gh_status_name(status));
	if (status != GH_STOPPED)
	{
		batch_end(&started->batch);
		started->running = false;
	}
}

/*
 * Two handles, each in the middle of a batch when the other does a part of its own:
 * resizes that one began are ended by the other, and no position is done on a table
 * that is not there any more.
 */
static void
test_two_handles_of(Context *c, TableType type)
{
	uint64_t	most = sized(c, 20000, 6000);
	uint64_t	turns = sized(c, 300, 60);
	Started		started[2] = {{0}, {0}};
	Subject		s[2];
	GhError		error = {0};
	uint64_t	turn;
	int			h;

	if (!subject_open_type(&s[0], c, type))
		return;
	s[1] = s[0];
	s[1].next_value = 1 << 30;
	if (CHECK_STATUS(c, "attach", c->engine->table_attach(
						 &s[0].host, c->engine->table_root(s[0].table), &s[1].table, &error), GH_OK))
	{
		for (h = 0; h < 2; h++)
		{
			started[h].keys = make_words(most);
			started[h].ops = make_memory(most);
		}
		for (turn = 0; turn < turns && c->failures == 0; turn++)
		{
			h = (int) random_below(c, 2);
			go_on(&s[h], &s[0].state, &started[h], most);
			if (turn % 8 == 7)
				check_content(&s[!h]);
			if (turn % 60 == 50)
				subject_clear(&s[h]);
			if (turn % 60 == 20)
				CHECK_STATUS(c, "flush", c->engine->table_flush(s[h].table, &error), GH_OK);
		}
		for (h = 0; h < 2; h++)
		{
			while (started[h].running && c->failures == 0)
				go_on(&s[h], &s[0].state, &started[h], most);
			if (started[h].running)
				batch_end(&started[h].batch);
			free(started[h].keys);
			free(started[h].ops);
		}
		check_content(&s[0]);
		check_content(&s[1]);
		c->engine->table_detach(s[1].table);
	}
	subject_close(&s[0]);
}

static void
test_two_handles(Context *c)
{
	TableType	type;
	uint32_t	t;

	for (t = 0; type_at(c, t, &type); t++)
	{
		if (type.value_size <= 16)
			test_two_handles_of(c, type);
	}
}

/* A handle leaves in the middle of a build: the table is empty, or has all of it. */
static void
test_build_left(Context *c)
{
	uint64_t	count = sized(c, 50000, 10000);
	uint64_t   *keys = make_words(count);
	uint64_t	polls;
	uint64_t	i;

	for (i = 0; i < count; i++)
		keys[i] = mix(random_below(c, count / 2));
	for (polls = 0; polls < 300; polls += 1 + polls / 4)
	{
		GhTableStats stats;
		GhError		error = {0};
		GhTable    *other = NULL;
		Subject		s;
		Batch		b;

		if (!subject_open_kind(&s, c, KIND_MULTI))
			break;
		CHECK_STATUS(c, "attach", c->engine->table_attach(
						 &s.host, c->engine->table_root(s.table), &other, &error), GH_OK);
		batch_begin(&s, &b, GH_BUILD, keys, NULL, NULL, count);
		c->engine->submit(s.table, &b.request);
		for (i = 0; i < polls && b.request.status == GH_BUSY; i++)
			c->engine->poll(&b.request);
		if (b.request.status == GH_OK)
			check_stage(&b, count);
		c->engine->table_detach(s.table);
		s.table = other;
		batch_end(&b);
		check_content(&s);
		check_shape(c, s.table, &stats);
		check_export(&s, 1000);
		do_checked(&s, s.model->keys == 0 ? GH_BUILD : GH_ADD, keys, NULL, count / 3);
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
}

/* ------------------------------------------------------------- processes */

/* A host of a process: the arena's, with a lock that all processes share. */
typedef struct SharedLock
{
	pthread_rwlock_t lock;
	volatile int ready;			/* the writer has stored so many parts */
} SharedLock;

static SharedLock *shared;
static GhHost arena_part;

static GhRef
shared_alloc(void *ctx, size_t bytes)
{
	(void) ctx;
	return arena_part.alloc(arena_part.ctx, bytes);
}

static void
shared_free(void *ctx, GhRef ref)
{
	(void) ctx;
	arena_part.free(arena_part.ctx, ref);
}

static void *
shared_address(void *ctx, GhRef ref)
{
	(void) ctx;
	return arena_part.address(arena_part.ctx, ref);
}

static void
shared_lock(void *ctx, GhLockMode mode)
{
	(void) ctx;
	if (mode == GH_LOCK_SHARED)
		pthread_rwlock_rdlock(&shared->lock);
	else
		pthread_rwlock_wrlock(&shared->lock);
}

static void
shared_unlock(void *ctx)
{
	(void) ctx;
	pthread_rwlock_unlock(&shared->lock);
}

static const GhHost shared_host = {
	.alloc = shared_alloc,
	.free = shared_free,
	.address = shared_address,
	.lock = shared_lock,
	.unlock = shared_unlock
};

#define WRITER_PARTS 10

/*
 * The writer stores keys part by part, key i with the value i, and between two
 * parts stores and deletes passing keys.  The reader asks for the lasting keys
 * that must be there, each with a passing key before it that may be.
 */
static void
writer_process(Context *c, GhTable *table, uint64_t count)
{
	uint64_t   *keys = make_words(count);
	uint64_t   *values = make_words(count);
	uint64_t	part = count / WRITER_PARTS;
	GhError		error = {0};
	uint64_t	matched;
	uint64_t	p;
	uint64_t	i;

	for (p = 0; p < WRITER_PARTS; p++)
	{
		for (i = 0; i < part; i++)
			keys[i] = values[i] = p * part + i;
		do_keys(c, table, GH_ADD, keys, values, part, &matched);
		CHECK_U64(c, "the writer's new keys", matched, part);
		shared->ready = (int) p + 1;
		for (i = 0; i < count; i++)
			keys[i] = values[i] = count + i;
		do_keys(c, table, GH_ADD, keys, values, count, &matched);
		do_keys(c, table, GH_DELETE, keys, NULL, count, &matched);
		CHECK_U64(c, "the writer's deleted keys", matched, count);
		CHECK_STATUS(c, "the writer's flush", c->engine->table_flush(table, &error), GH_OK);
	}
	_exit(c->failures > 0 ? 1 : 0);
}

static void
read_part(Context *c, GhTable *table, uint64_t part, uint64_t *keys, uint64_t *offsets,
		  uint64_t *out)
{
	uint64_t	count = 2 * (uint64_t) shared->ready * part;
	GhRequest	request = {.op = GH_FIND_ALL, .count = count, .keys = keys};
	uint64_t	i;

	request.offsets_out = offsets;
	request.values_out = out;
	request.values_capacity = count;
	if (!CHECK_STATUS(c, "find-all beside a writer", do_request(c, table, &request), GH_OK))
		return;
	for (i = 0; i < count; i++)
	{
		uint64_t	values = offsets[i + 1] - offsets[i];
		bool		lasting = i % 2 != 0;

		if (!CHECK(c, values == 1 || (values == 0 && !lasting), "key number %" PRIu64 " has %"
				   PRIu64 " values beside a writer", i, values) ||
			!CHECK(c, values == 0 || out[offsets[i]] == keys[i],
				   "the value of key number %" PRIu64 " is wrong beside a writer", i))
			return;
	}
}

static void
make_shared_lock(void)
{
	pthread_rwlockattr_t attributes;

	shared = mmap(NULL, sizeof(SharedLock), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	/* else the reader's next shared lock keeps the writer out for ever */
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&shared->lock, &attributes);
}

/* The child maps the arena elsewhere and writes. */
static pid_t
fork_writer(Context *c, Arena *arena, const GhTable *table, uint64_t count)
{
	GhTable    *other = NULL;
	GhError		error = {0};
	pid_t		writer;

	fflush(stdout);
	writer = fork();
	if (writer != 0)
		return writer;
	if (arena_host(arena, &arena_part) &&
		c->engine->table_attach(&shared_host, c->engine->table_root(table), &other,
								&error) == GH_OK)
		writer_process(c, other, count);
	_exit(2);
}

static void
test_processes(Context *c)
{
	uint64_t	count = sized(c, 100000, 5000) / WRITER_PARTS * WRITER_PARTS;
	uint64_t   *keys = make_words(2 * count);
	uint64_t   *offsets = make_words(2 * count + 1);
	uint64_t   *out = make_words(2 * count);
	GhTableOptions options = options_of(c, type_of_kind(KIND_MULTI));
	Arena	   *arena = arena_make(128 << 20);
	GhTable    *table = NULL;
	GhError		error = {0};
	uint64_t	i;
	pid_t		writer;
	int			status = 0;
	int			reads = 0;

	make_shared_lock();
	for (i = 0; i < 2 * count; i++)
		keys[i] = i / 2 + (i % 2 == 0 ? count : 0);
	if (!CHECK(c, arena != NULL && arena_host(arena, &arena_part), "no arena") ||
		!CHECK_STATUS(c, "create", c->engine->table_create(&shared_host, &options, &table, &error),
					  GH_OK))
		return;
	writer = fork_writer(c, arena, table, count);
	do
	{
		read_part(c, table, count / WRITER_PARTS, keys, offsets, out);
		reads++;
	} while (waitpid(writer, &status, WNOHANG) == 0 && c->failures == 0);
	if (c->failures > 0)
		waitpid(writer, &status, 0);
	CHECK(c, WIFEXITED(status) && WEXITSTATUS(status) == 0, "the writer failed");
	CHECK(c, reads > 1, "the reader never ran beside the writer");
	read_part(c, table, count / WRITER_PARTS, keys, offsets, out);
	c->engine->table_destroy(table);
	CHECK_U64(c, "blocks left in the arena", arena_blocks(arena), 0);
	arena_host_unmap(&arena_part);
	arena_drop(arena);
	munmap(shared, sizeof(SharedLock));
	free(keys);
	free(offsets);
	free(out);
}

const Test	sharing_tests[] = {
	{"relocation", test_relocation, true},
	{"bad root", test_bad_root, true},
	{"lock modes", test_lock_modes, true},
	{"two handles", test_two_handles, true},
	{"build left", test_build_left, true},
	{"processes", test_processes, true},
	{NULL, NULL, false}
};
