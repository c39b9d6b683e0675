/*
 * test_registered.c
 *		Requests whose arrays are in memory that the caller registered.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* MAP_ANONYMOUS, setenv */
#endif

#include "conformance.h"

#include <sys/mman.h>

#define COUNT ((uint64_t) 1 << 16)
#define FLIGHTS 4
#define ARRAYS (2 + FLIGHTS)	/* keys, values, and what each find gives */
#define BYTES (ARRAYS * COUNT * sizeof(uint64_t))

static uint64_t *
map_words(Context *c)
{
	void	   *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
							  -1, 0);

	return CHECK(c, memory != MAP_FAILED, "no memory to register") ? memory : NULL;
}

static bool
no_registering(Context *c)
{
	if (c->engine->memory_register != NULL)
		return false;
	CHECK(c, c->engine->memory_unregister == NULL, "memory can be unregistered only");
	c->skip = "the engine has no device";
	return true;
}

/* A refusal has a sentence and one of two statuses; tells whether there was none. */
static bool
is_registered(Context *c, GhStatus status, const GhError *error)
{
	CHECK(c, status == GH_OK || ((status == GH_UNSUPPORTED || status == GH_NO_MEMORY) &&
								 error->status == status && error->message[0] != '\0'),
		  "registering: %s: %s", gh_status_name(status), error->message);
	return status == GH_OK;
}

/* Stores out of the memory, and has several finds give their values there. */
static void
use_memory(Context *c, uint64_t *words)
{
	GhRequest	store = {.op = GH_UPSERT, .count = COUNT, .keys = words, .values_in = words + COUNT};
	GhRequest	flight[FLIGHTS];
	Subject		s;
	uint64_t	i;
	int			f;

	if (!subject_open_kind(&s, c, KIND_MAP))
		return;
	for (i = 0; i < COUNT; i++)
	{
		words[i] = mix(i);
		words[COUNT + i] = i;
	}
	memset(words + 2 * COUNT, 0, FLIGHTS * COUNT * sizeof(uint64_t));
	c->engine->submit(s.table, &store);
	for (f = 0; f < FLIGHTS; f++)
	{
		flight[f] = (GhRequest) {.op = GH_FIND, .count = COUNT - f, .keys = words + f};
		flight[f].values_out = words + (2 + f) * COUNT;
		c->engine->submit(s.table, &flight[f]);
	}
	for (f = 0; f < FLIGHTS; f++)
	{
		CHECK_STATUS(c, "find to registered memory", c->engine->wait(&flight[f]), GH_OK);
		CHECK_U64(c, "found", flight[f].outcome.matched, COUNT - f);
		for (i = 0; i < COUNT - f && c->failures == 0; i++)
			CHECK_U64(c, "a value in registered memory", words[(2 + f) * COUNT + i], i + f);
	}
	CHECK_STATUS(c, "upsert out of registered memory", c->engine->wait(&store), GH_OK);
	CHECK_U64(c, "inserted", store.outcome.inserted, COUNT);
	subject_close(&s);
}

static void
test_registered(Context *c)
{
	uint64_t   *words;
	GhError		error = {0};

	if (no_registering(c) || (words = map_words(c)) == NULL)
		return;
	if (!is_registered(c, c->engine->memory_register(0, words, BYTES, false, &error), &error))
	{
		CHECK(c, !c->stand_in, "the stand-in registers no memory");
		c->skip = "the device registers no memory here";
		munmap(words, BYTES);
		return;
	}
	use_memory(c, words);
	/* once more: refused, and nothing is broken */
	CHECK(c, !is_registered(c, c->engine->memory_register(0, words, BYTES, false, &error), &error),
		  "the same memory was registered twice");
	use_memory(c, words);
	c->engine->memory_unregister(0, words);
	use_memory(c, words);
	CHECK_STATUS(c, "registering again",
				 c->engine->memory_register(0, words, BYTES, false, &error), GH_OK);
	use_memory(c, words);
	c->engine->memory_unregister(0, words);
	munmap(words, BYTES);
}

static void
test_read_only(Context *c)
{
	GhRequest	store = {.op = GH_INSERT, .count = COUNT};
	GhRequest	find = {.op = GH_FIND, .count = COUNT};
	GhError		error = {0};
	uint64_t   *out = make_words(COUNT);
	uint64_t   *words;
	Subject		s;
	uint64_t	i;

	if (no_registering(c) || (words = map_words(c)) == NULL ||
		!subject_open_kind(&s, c, KIND_MAP))
	{
		free(out);
		return;
	}
	for (i = 0; i < COUNT; i++)
	{
		words[i] = mix(i);
		words[COUNT + i] = i;
	}
	mprotect(words, BYTES, PROT_READ);
	if (is_registered(c, c->engine->memory_register(0, words, BYTES, true, &error), &error))
	{
		store.keys = find.keys = words;
		store.values_in = words + COUNT;
		find.values_out = out;
		CHECK_STATUS(c, "insert out of read-only memory", do_request(c, s.table, &store), GH_OK);
		CHECK_STATUS(c, "find out of read-only memory", do_request(c, s.table, &find), GH_OK);
		CHECK_U64(c, "inserted", store.outcome.inserted, COUNT);
		CHECK(c, memcmp(out, words + COUNT, COUNT * sizeof(uint64_t)) == 0, "wrong values");
		c->engine->memory_unregister(0, words);
	}
	else
	{
		CHECK(c, !c->stand_in, "the stand-in registers no read-only memory");
		c->skip = "the device registers no read-only memory here";
	}
	subject_close(&s);
	munmap(words, BYTES);
	free(out);
}

/* What cannot be registered; the device works on. */
static void
test_unregistrable(Context *c)
{
	GhError		error = {0};
	uint64_t   *words;
	int			devices = 0;

	if (no_registering(c) || (words = map_words(c)) == NULL)
		return;
	c->engine->device_count(&devices, &error);
	CHECK_STATUS(c, "registering nothing",
				 c->engine->memory_register(0, NULL, BYTES, false, &error), GH_INVALID);
	CHECK_STATUS(c, "registering no bytes",
				 c->engine->memory_register(0, words, 0, false, &error), GH_INVALID);
	CHECK_STATUS(c, "registering for a device too many",
				 c->engine->memory_register(devices, words, BYTES, false, &error), GH_INVALID);
	c->engine->memory_unregister(0, NULL);
	c->engine->memory_unregister(0, words);
	use_memory(c, words);
	munmap(words, BYTES);
	/* no memory at all any more */
	CHECK(c, !is_registered(c, c->engine->memory_register(0, words, BYTES, false, &error), &error) ||
		  c->stand_in, "memory that is not there was registered");
	c->engine->memory_unregister(0, words);
}

/* What the stand-in makes of a refusal, and of arrays that a device cannot reach. */
static void
test_stand_in_memory(Context *c)
{
	GhRequest	find = {.op = GH_FIND, .count = COUNT};
	GhError		error = {0};
	uint64_t   *words;
	Subject		s;

	if (!c->stand_in)
	{
		c->skip = "the engine is not the stand-in";
		return;
	}
	if ((words = map_words(c)) == NULL || !subject_open_kind(&s, c, KIND_MAP))
		return;
	setenv("GPUHASH_FAULT_REFUSE_REGISTER", "1", 1);
	CHECK_STATUS(c, "registering refused",
				 c->engine->memory_register(0, words, BYTES, false, &error), GH_NO_MEMORY);
	unsetenv("GPUHASH_FAULT_REFUSE_REGISTER");
	/* all but the last of the memory, which no device can write to */
	CHECK_STATUS(c, "registering", c->engine->memory_register(
					 0, words, BYTES - COUNT * sizeof(uint64_t), true, &error), GH_OK);
	find.keys = words;
	find.values_out = words + COUNT;
	CHECK_STATUS(c, "values to read-only memory", do_request(c, s.table, &find), GH_INVALID);
	find.values_out = words + (ARRAYS - 1) * COUNT;
	CHECK_STATUS(c, "values to ordinary memory", do_request(c, s.table, &find), GH_OK);
	find.outcome.done = 0;
	find.keys = words + (ARRAYS - 2) * COUNT + 1;
	CHECK_STATUS(c, "keys on an edge", do_request(c, s.table, &find), GH_INVALID);
	c->engine->memory_unregister(0, words);
	subject_close(&s);
	munmap(words, BYTES);
}

const Test	registered_tests[] = {
	{"registered memory", test_registered, false},
	{"registered read-only memory", test_read_only, false},
	{"memory that cannot be registered", test_unregistrable, false},
	{"registered memory of the stand-in", test_stand_in_memory, false},
	{NULL, NULL, false}
};
