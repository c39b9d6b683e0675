/*
 * conformance.c
 *		Runs the conformance tests on an engine.
 *
 *	conformance cpu [options]
 *	conformance cuda /path/gpuhash_cuda.so [options]
 *	conformance cuda /path/stand_in.so [options]	that of test/fault
 *		--reduced		small sizes, for compute-sanitizer and the like
 *		--seed N		of everything random; else drawn and printed
 *		--growth N		keys of the growth test
 *		--random N		positions of the random operations, chains of random pipelines
 *		--only TEXT		tests whose name contains TEXT
 *		--without TEXT	tests whose name does not
 *		--processes N	so many share the tests (1)
 *
 * Ends with "N passed, N failed"; the exit status is 1 where one failed and 77
 * where the engine is not available.
 */
#include "conformance.h"
#include "engine/pipeline/pipeline.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FAILURES_TOLD 10
#define EXIT_SKIPPED 77
#define PROCESSES_MAX 64

bool
check_failed(Context *c, const char *file, int line, const char *format,...)
{
	va_list		args;

	if (++c->failures > FAILURES_TOLD)
		return false;
	printf("  %s:%d: ", file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	return false;
}

bool
check_u64(Context *c, const char *file, int line, const char *what,
		  uint64_t got, uint64_t expected)
{
	return got == expected ||
		check_failed(c, file, line, "%s is %" PRIu64 ", expected %" PRIu64, what, got, expected);
}

bool
check_status(Context *c, const char *file, int line, const char *what,
			 GhStatus got, GhStatus expected)
{
	return got == expected ||
		check_failed(c, file, line, "%s: status \"%s\", expected \"%s\"", what,
					 gh_status_name(got), gh_status_name(expected));
}

/* splitmix64's finalizer: a permutation of the 64-bit words */
uint64_t
mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
	return x ^ (x >> 31);
}

uint64_t
random_next(Context *c)
{
	return mix(c->random += UINT64_C(0x9E3779B97F4A7C15));
}

uint64_t
random_below(Context *c, uint64_t bound)
{
	return random_next(c) % bound;
}

uint64_t
sized(const Context *c, uint64_t full, uint64_t reduced)
{
	return c->reduced ? reduced : full;
}

void *
make_memory(size_t bytes)
{
	void	   *memory = malloc(bytes > 0 ? bytes : 1);

	if (memory == NULL)
	{
		printf("conformance: out of memory\n");
		exit(2);
	}
	return memory;
}

uint64_t *
make_words(uint64_t count)
{
	return make_memory(count * sizeof(uint64_t));
}

double
seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

static void
tell_outcome(Context *c, const Test *test, double seconds)
{
	if (c->failures > 0)
	{
		printf("FAIL %s (%.2f s), repeat with --seed %" PRIu64 " --only \"%s\"\n", test->name,
			   seconds, c->seed, test->name);
		c->failed++;
	}
	else if (c->skip != NULL)
	{
		printf("skip %s: %s\n", test->name, c->skip);
		c->skipped++;
	}
	else
	{
		printf("ok   %s (%.2f s)\n", test->name, seconds);
		c->passed++;
	}
	fflush(stdout);
}

/* Which tests are run, NULL: all; and in how many processes. */
typedef struct Choice
{
	const char *only;
	const char *without;
	int			processes;
} Choice;

/* What the processes share: tests that one of them has begun, and outcomes. */
typedef struct Shared
{
	atomic_int	begun;
	atomic_int	passed;
	atomic_int	failed;
	atomic_int	skipped;
} Shared;

static bool
is_chosen(const Test *test, const Choice *choice)
{
	return (choice->only == NULL || strstr(test->name, choice->only) != NULL) &&
		(choice->without == NULL || strstr(test->name, choice->without) == NULL);
}

/* Those of the group that no other process has begun; number: of the tests before it. */
static void
run_group(Context *c, const Test *test, const Choice *choice, Shared *shared, int *number)
{
	for (; test->name != NULL; test++)
	{
		double		begin = seconds_now();
		int			turn = *number;

		if (!is_chosen(test, choice))
			continue;
		(*number)++;
		if (!atomic_compare_exchange_strong(&shared->begun, &turn, turn + 1))
			continue;
		if (test->host_only && !c->on_host)
		{
			printf("skip %s: the engine's tables are not in the host's memory\n", test->name);
			c->skipped++;
			continue;
		}
		/* each test draws the same numbers whichever tests run before it */
		c->random = c->seed;
		c->failures = 0;
		c->skip = NULL;
		test->run(c);
		tell_outcome(c, test, seconds_now() - begin);
	}
}

static void
usage(void)
{
	printf("usage: conformance cpu | cuda /path/gpuhash_cuda.so "
		   "[--reduced] [--seed N] [--growth N] [--random N] [--only TEXT] [--without TEXT]\n"
		   "                   [--processes N]\n");
	exit(2);
}

/* Exits where there is no such engine on this machine. */
static const GhEngine *
open_engine(const char *name, const char *path)
{
	const GhEngine *engine;
	GhError		error = {0};
	GhStatus	status = GH_OK;

	if (strcmp(name, "cpu") == 0)
		engine = gh_cpu_engine();
	else
		status = gh_engine_load(path, false, &engine, &error);
	if (status == GH_OK)
		status = engine->open_device(0, &error);
	if (status != GH_OK)
	{
		printf("the engine \"%s\" is not available: %s: %s\n", name,
			   gh_status_name(status), error.message);
		exit(status == GH_UNAVAILABLE ? EXIT_SKIPPED : 1);
	}
	return engine;
}

static bool
stands_in(const GhEngine *engine)
{
	GhDeviceInfo info;
	GhError		error;

	return engine->device_info(0, &info, &error) == GH_OK &&
		strcmp(info.name, "device of the tests") == 0;
}

/* The options from argument a on. */
static void
read_options(Context *c, Choice *choice, int argc, char **argv, int a)
{
	for (; a < argc; a++)
	{
		if (strcmp(argv[a], "--reduced") == 0)
			c->reduced = true;
		else if (a + 1 == argc)
			usage();
		else if (strcmp(argv[a], "--seed") == 0)
			c->seed = strtoull(argv[++a], NULL, 0);
		else if (strcmp(argv[a], "--growth") == 0)
			c->growth = strtoull(argv[++a], NULL, 0);
		else if (strcmp(argv[a], "--random") == 0)
			c->operations = strtoull(argv[++a], NULL, 0);
		else if (strcmp(argv[a], "--only") == 0)
			choice->only = argv[++a];
		else if (strcmp(argv[a], "--without") == 0)
			choice->without = argv[++a];
		else if (strcmp(argv[a], "--processes") == 0)
			choice->processes = atoi(argv[++a]);
		else
			usage();
	}
	if (choice->processes < 1 || choice->processes > PROCESSES_MAX)
		usage();
	if (c->growth == 0)
		c->growth = sized(c, 10000000, 20000);
	if (c->operations == 0)
		c->operations = sized(c, 10000000, 20000);
}

/* What one of the processes does. */
static void
run_tests(Context *c, const Choice *choice, Shared *shared, const char *engine)
{
	const Test *const groups[] = {
		option_tests, request_tests, width_tests, store_tests, find_tests, delete_tests,
		build_tests, region_tests, region_change_tests, mixed_tests, export_tests, table_tests, multi_tests, resize_tests,
		reserve_tests, memory_tests, budget_tests, paging_tests, registered_tests, fault_tests,
		adversary_tests, stop_tests, sharing_tests, thread_tests, exchange_tests, random_tests,
		page_tests, page_numeric_tests, packed_tests, header_tests, program_tests, program_check_tests, aggregate_tests,
		pipeline_page_tests, pipeline_leaf_tests, pipeline_span_tests, pipeline_integer_tests,
		registered_page_tests,
		pipeline_tests, pipeline_refused_tests, pipeline_request_tests, pipeline_column_tests, pipeline_overlay_tests, pipeline_group_tests, pipeline_set_tests,
		pipeline_large_tests, pipeline_many_tests, pipeline_fault_tests, pipeline_stop_tests, pipeline_random_tests, pipeline_shared_tests,
		pipeline_shared_refused_tests
	};
	int			number = 0;
	size_t		g;

	/* the lines of a test come together */
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	c->engine = open_engine(engine, c->library);
	c->stand_in = stands_in(c->engine);
	for (g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
		run_group(c, groups[g], choice, shared, &number);
	/* tools that look for memory which is lost find none */
	if (c->engine->pipelines != NULL && c->engine->pipelines->give_back != NULL)
		c->engine->pipelines->give_back();
	atomic_fetch_add(&shared->passed, c->passed);
	atomic_fetch_add(&shared->failed, c->failed);
	atomic_fetch_add(&shared->skipped, c->skipped);
}

/* In processes, as what one test does to its own (signals, limits, a broken device) is not another's. */
static int
run_processes(Context *c, const Choice *choice, Shared *shared, const char *engine)
{
	pid_t		pids[PROCESSES_MAX];
	int			unavailable = 0;
	int			i;

	for (i = 0; i < choice->processes; i++)
	{
		fflush(stdout);
		pids[i] = fork();
		if (pids[i] == 0)
		{
			run_tests(c, choice, shared, engine);
			fflush(stdout);
			_exit(0);
		}
	}
	for (i = 0; i < choice->processes; i++)
	{
		int			status;

		if (pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) &&
			(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EXIT_SKIPPED))
		{
			unavailable += WEXITSTATUS(status) == EXIT_SKIPPED;
			continue;
		}
		printf("FAIL a process that ran tests ended\n");
		atomic_fetch_add(&shared->failed, 1);
	}
	return unavailable;
}

int
main(int argc, char **argv)
{
	Context		c = {0};
	Choice		choice = {.processes = 1};
	Shared	   *shared;
	bool		cuda = argc > 1 && strcmp(argv[1], "cuda") == 0;
	int			a = cuda ? 3 : 2;

	if (argc < a || (!cuda && strcmp(argv[1], "cpu") != 0))
		usage();
	c.seed = (uint64_t) time(NULL) ^ (uint64_t) getpid() << 32;
	read_options(&c, &choice, argc, argv, a);
	c.library = cuda ? argv[2] : NULL;
	c.on_host = !cuda;
	shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
	{
		printf("no memory\n");
		return 1;
	}
	printf("engine %s, seed %" PRIu64 "%s\n", argv[1], c.seed, c.reduced ? ", reduced" : "");
	/* a debugger and compute-sanitizer want the tests in the process that they started */
	if (choice.processes == 1)
		run_tests(&c, &choice, shared, argv[1]);
	else if (run_processes(&c, &choice, shared, argv[1]) > 0)
		return EXIT_SKIPPED;
	if (atomic_load(&shared->skipped) > 0)
		printf("%d skipped\n", atomic_load(&shared->skipped));
	printf("%d passed, %d failed\n", atomic_load(&shared->passed), atomic_load(&shared->failed));
	return atomic_load(&shared->failed) > 0 ? 1 : 0;
}
