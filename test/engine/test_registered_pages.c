/*
 * test_registered_pages.c
 *		Pages in a second, read-only mapping of shared memory, as a server's buffers are shown to
 *		a device: what comes of them, also after the pages were changed by the first mapping, and
 *		that no store of the device gets through.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* mremap */
#endif

#include "pipeline_model.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 20

/* Of the CUDA engine's builds with fault points: a kernel that stores to memory of the host. */
typedef GhStatus (*FaultStore) (void *memory, uint64_t value, GhError *error);

#define FAULT_STORE "gh_cuda_fault_store"

/* What fails breaks the device's context: so the test has a process of its own, which this tells. */
#define CHILD "GPUHASH_STORE_TEST_CHILD"

/* Memory with two mappings, of which the device has the second one, in two pieces. */
typedef struct Mapped
{
	uint8_t    *first;			/* to write to */
	uint8_t    *second;			/* to read */
	size_t		bytes;
	size_t		piece;			/* bytes, whole pages of the heap and of the system */
	bool		registered;
} Mapped;

static bool
map_twice(Context *c, Mapped *mapped, size_t bytes)
{
	GhError		error = {0};
	GhStatus	status;

	memset(mapped, 0, sizeof(*mapped));
	mapped->bytes = bytes;
	mapped->piece = bytes / 2;
	mapped->first = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	mapped->second = mremap(mapped->first, 0, bytes, MREMAP_MAYMOVE);
	if (!CHECK(c, mapped->first != MAP_FAILED && mapped->second != MAP_FAILED &&
			   mprotect(mapped->second, bytes, PROT_READ) == 0, "memory cannot be mapped twice"))
		return false;
	for (size_t at = 0; at < bytes; at += mapped->piece)
	{
		status = c->engine->memory_register(0, mapped->second + at, mapped->piece, true, &error);
		if (status == GH_OK)
			continue;
		CHECK(c, !c->stand_in && at == 0, "registering: %s", error.message);
		c->skip = "the device registers no read-only memory here";
		return false;
	}
	mapped->registered = true;
	return true;
}

static void
unmap(Context *c, Mapped *mapped)
{
	for (size_t at = 0; mapped->registered && at < mapped->bytes; at += mapped->piece)
		c->engine->memory_unregister(0, mapped->second + at);
	munmap(mapped->first, mapped->bytes);
	munmap(mapped->second, mapped->bytes);
}

static bool
no_registering(Context *c)
{
	if (c->engine->memory_register != NULL)
		return false;
	c->skip = "the engine has no device";
	return true;
}

/* The trial's pages where the device has them; page p becomes what p + shift was. */
static void
show_pages(Trial *trial, Mapped *mapped, uint32_t shift)
{
	size_t		page_bytes = trial->relation.page_bytes;

	for (uint32_t p = 0; p < trial->npages; p++)
	{
		memcpy(mapped->first + p * page_bytes,
			   trial->memory + (p + shift) % trial->npages * page_bytes, page_bytes);
		trial->pages[p].page = mapped->second + p * page_bytes;
	}
}

/* Pages of as many bytes as the device can register by pieces. */
static Stage *
mapped_stage(Context *c)
{
	Trial	   *pages = make_memory(sizeof(Trial));

	memset(pages, 0, sizeof(*pages));
	do
		relation_draw(c, &pages->relation);
	while (pages->relation.page_bytes != 8192);
	trial_pages(c, pages, TRIAL_PAGES_MAX);
	trial_ask(c, pages);
	return pages_stage(c, pages);
}

static void
pages_mapped(Context *c)
{
	Stage	   *stage;
	Trial	   *trial;
	Mapped		mapped;
	bool		registered;

	if (no_registering(c) || no_pipelines(c))
		return;
	stage = mapped_stage(c);
	trial = stage->pages;
	registered = trial->registered;
	if (map_twice(c, &mapped, trial->memory_bytes))
		for (uint32_t round = 0; round < ROUNDS && c->failures == 0; round++)
		{
			show_pages(trial, &mapped, round);
			trial->registered = true;
			compare_engines(c, stage);
		}
	trial->registered = registered;
	unmap(c, &mapped);
	stage_drop(c, stage);
}

/* ---------------------------------------------------------------------- a store */

static void
store_in_child(Context *c, FaultStore store)
{
	size_t		bytes = 16 * 8192;
	uint8_t    *before = make_memory(bytes);
	GhError		error = {0};
	Mapped		mapped;

	if (map_twice(c, &mapped, bytes))
	{
		for (size_t i = 0; i < bytes; i++)
			mapped.first[i] = (uint8_t) random_next(c);
		memcpy(before, mapped.first, bytes);
		CHECK_STATUS(c, "a store to read-only memory",
					 store(mapped.second + 3 * 8192, UINT64_C(0x5a5a5a5a5a5a5a5a), &error),
					 GH_DEVICE_ERROR);
		CHECK(c, memcmp(before, mapped.first, bytes) == 0, "the device has changed read-only memory");
	}
	unmap(c, &mapped);
	free(before);
}

/* What the child tells goes to standard error. */
static void
run_child(Context *c)
{
	pid_t		child = fork();
	int			status = -1;

	if (child == 0)
	{
		setenv(CHILD, "1", 1);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execl("/proc/self/exe", "conformance", "cuda", c->library, "--reduced", "--only",
			  "registered read-only memory: a store", (char *) NULL);
		_exit(127);
	}
	CHECK(c, child > 0 && waitpid(child, &status, 0) == child && status == 0,
		  "the process that lets the device store ended with status %d", status);
}

static void
store_to_mapped(Context *c)
{
	void	   *library = c->library != NULL ? dlopen(c->library, RTLD_NOW | RTLD_NOLOAD) : NULL;
	void	   *symbol = library != NULL ? dlsym(library, FAULT_STORE) : NULL;
	FaultStore	store;

	if (symbol == NULL)
		c->skip = c->library == NULL ? "the engine has no device" :
			c->stand_in ? "the stand-in's device is the CPU" :
			"the library was built without fault points (-DGH_FAULT_POINTS)";
	else if (getenv(CHILD) == NULL)
		run_child(c);
	else
	{
		memcpy(&store, &symbol, sizeof(store));
		store_in_child(c, store);
	}
}

const Test	registered_page_tests[] = {
	{"registered read-only memory: pages", pages_mapped, false},
	{"registered read-only memory: a store", store_to_mapped, false},
	{NULL, NULL, false}
};
