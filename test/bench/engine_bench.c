/*
 * engine_bench.c
 *		Times the operations of a table engine and checks every result.
 *
 *	engine_bench cpu|/path/to/gpuhash_cuda.so [OPTION VALUE]...
 *
 *	--n N			keys, or values of multi tables (2^27; CPU engine 10^7)
 *	--load F[,F]	filled factors (0.8,0.9; CPU engine 0.8)
 *	--keybits B[,B]	32 (4-byte keys and values), 64 (8-byte ones) (both; experiments 64)
 *	--rows R[,R]	sections: single multi build grow upsize hot export exchange (all)
 *	--experiment E[,E]	instead of rows: static resize dynamic incremental mixes all
 *	--scale F		size of the experiments, 1: that of the papers (1; CPU engine 0.1)
 *	--hot N			values of the one key (10^8; CPU engine n)
 *	--rounds N		times that count (5; CPU engine 3)
 *	--batch N		keys of a request (2^30, the most)
 *	--arrays P		device or host: where requests' arrays are (device; host for the
 *					CPU engine and in a build without nvcc)
 *	--seed N
 *
 * Rows are CSV, lib,op,keybits,n,load,Mops,ok,reads,ratio,fill,bytes,peak.  load is the
 * filled factor asked for and fill what the table reports; ok is yes where every result
 * was right; reads are bucket reads for each operation, counted in a run of its own;
 * ratio is to the device's limit measured in the same run: random 64-byte reads for
 * finds, 64-bit compare-and-swaps for what writes, bytes copied for upsizing.  bytes is
 * the memory that the table holds for each value after an insert, an add, a growth or a
 * build, and peak the most that it held until then.  Mops of multi tables are values,
 * of count keys.  The exit status is 1 when a row is not ok.
 */
#include "engine_bench.h"

#include <stdlib.h>
#include <string.h>

#define LIST_MAX 16

typedef struct Section
{
	const char *name;
	void		(*run) (Bench *bench);
} Section;

static const Section sections[] = {
	{"single", bench_single_rows},
	{"multi", bench_multi_rows},
	{"build", bench_build_rows},
	{"grow", bench_grow_rows},
	{"upsize", bench_upsize_rows},
	{"hot", bench_hot_rows},
	{"export", bench_export_rows},
	{"exchange", bench_exchange_rows},
	{NULL, NULL}
};

static const Section experiments[] = {
	{"static", bench_experiment_static},
	{"resize", bench_experiment_resize},
	{"dynamic", bench_experiment_dynamic},
	{"incremental", bench_experiment_incremental},
	{"mixes", bench_experiment_mixes},
	{NULL, NULL}
};

typedef struct Options
{
	double		loads[LIST_MAX];
	int			load_count;
	double		keybits[LIST_MAX];
	int			keybits_count;
	const char *rows;			/* NULL: all */
	const char *experiments;	/* NULL: rows */
	bool		on_device;
} Options;

/* Numbers between commas. */
static int
parse_list(const char *text, double *list)
{
	int			count = 0;
	char	   *end;

	do
	{
		if (count == LIST_MAX)
			bench_die("too many in a list", text);
		list[count++] = strtod(text, &end);
		if (end == text || (*end != ',' && *end != '\0'))
			bench_die("not a list of numbers", text);
		text = end + 1;
	} while (*end == ',');
	return count;
}

/* Is name one of those between commas? */
static bool
is_listed(const char *list, const char *name)
{
	size_t		length = strlen(name);

	while (list != NULL)
	{
		if (strncmp(list, name, length) == 0 && (list[length] == ',' || list[length] == '\0'))
			return true;
		list = strchr(list, ',');
		if (list != NULL)
			list++;
	}
	return false;
}

/* Every name of the list is a section's. */
static void
check_names(const char *list, const Section *known)
{
	while (list != NULL && *list != '\0')
	{
		const char *end = strchr(list, ',');
		size_t		length = end != NULL ? (size_t) (end - list) : strlen(list);
		const Section *section = known;

		while (section->name != NULL && (strlen(section->name) != length ||
										 strncmp(section->name, list, length) != 0))
			section++;
		if (section->name == NULL && strcmp(list, "all") != 0)
			bench_die("there is no section", list);
		list = end != NULL ? end + 1 : NULL;
	}
}

static uint64_t
parse_count(const char *text)
{
	char	   *end;
	double		number = strtod(text, &end);

	if (end == text || *end != '\0' || !(number >= 1 && number <= 1e15))
		bench_die("not a number above 0", text);
	return (uint64_t) number;
}

static void
parse_option(Bench *bench, Options *options, const char *name, const char *value)
{
	if (strcmp(name, "--n") == 0)
		bench->n = parse_count(value);
	else if (strcmp(name, "--hot") == 0)
		bench->hot = parse_count(value);
	else if (strcmp(name, "--batch") == 0)
		bench->batch = parse_count(value);
	else if (strcmp(name, "--seed") == 0)
		bench->seed = parse_count(value);
	else if (strcmp(name, "--rounds") == 0)
		bench->rounds = (int) parse_count(value);
	else if (strcmp(name, "--scale") == 0)
		bench->scale = strtod(value, NULL);
	else if (strcmp(name, "--load") == 0)
		options->load_count = parse_list(value, options->loads);
	else if (strcmp(name, "--keybits") == 0)
		options->keybits_count = parse_list(value, options->keybits);
	else if (strcmp(name, "--rows") == 0)
		options->rows = value;
	else if (strcmp(name, "--experiment") == 0)
		options->experiments = value;
	else if (strcmp(name, "--arrays") == 0 && strcmp(value, "host") == 0)
		options->on_device = false;
	else if (strcmp(name, "--arrays") == 0 && strcmp(value, "device") == 0)
		options->on_device = true;
	else
		bench_die("there is no such option", name);
}

/* Ranges that the data relies on. */
static void
check_options(Bench *bench, Options *options)
{
	int			i;

	if (options->keybits_count == 0)
		options->keybits_count = parse_list(options->experiments == NULL ? "32,64" : "64",
											options->keybits);

	/* multi data comes in groups of 16; what finds miss begins at 2^31 */
	bench->n = (bench->n + 15) / 16 * 16;
	/* parts of device arrays are aligned to 16 bytes */
	bench->batch = (bench->batch + 15) / 16 * 16;
	if (bench->n < 1024 || bench->n > (uint64_t) 1 << 29)
		bench_die("n must be between 1024 and", "2^29");
	if (bench->hot > GH_BATCH_MAX || bench->batch > GH_BATCH_MAX)
		bench_die("hot and batch must be at most", "2^30");
	if (bench->rounds >= BENCH_ROUNDS_MAX)
		bench_die("rounds must be below", "31");
	if (!(bench->scale >= 0.0001 && bench->scale <= 4))
		bench_die("scale must be between 0.0001 and", "4");
	for (i = 0; i < options->load_count; i++)
	{
		/* as far as the default lower bound of the filled factor allows */
		if (!(options->loads[i] > 0.6 && options->loads[i] <= GH_FILL_MAX_MAX))
			bench_die("load must be above 0.6 and at most", "0.95");
	}
	for (i = 0; i < options->keybits_count; i++)
	{
		if (options->keybits[i] != 32 && options->keybits[i] != 64)
			bench_die("keybits must be", "32 or 64");
	}
	check_names(options->rows, sections);
	check_names(options->experiments, experiments);
}

static const GhEngine *
open_engine(const char *name)
{
	const GhEngine *engine;
	GhError		error = {0};

	if (strcmp(name, "cpu") == 0)
		engine = gh_cpu_engine();
	else if (gh_engine_load(name, false, &engine, &error) != GH_OK)
		bench_die(name, error.message);
	if (engine->open_device(0, &error) != GH_OK)
		bench_die(name, error.message);
	return engine;
}

static void
set_defaults(Bench *bench, Options *options, bool cpu)
{
	memset(bench, 0, sizeof(*bench));
	memset(options, 0, sizeof(*options));
	bench->n = cpu ? 10000000 : (uint64_t) 1 << 27;
	bench->rounds = cpu ? 3 : 5;
	bench->scale = cpu ? 0.1 : 1;
	bench->seed = 1;
	bench->batch = GH_BATCH_MAX;
	options->load_count = parse_list(cpu ? "0.8" : "0.8,0.9", options->loads);
#ifdef BENCH_DEVICE
	options->on_device = !cpu;
#endif
}

/* All sections at one width; a limit is measured on a buffer as large as the table. */
static void
run_rows(Bench *bench, const Options *options)
{
	const Section *section;
	int			i;

#ifdef BENCH_DEVICE
	if (options->on_device)
		bench_device_roofline(bench, (uint64_t) ((double) bench->n * 2 * bench->key_size /
												 options->loads[0]));
#endif
	for (i = 0; i < options->load_count; i++)
	{
		bench->load = options->loads[i];
		for (section = sections; section->name != NULL; section++)
		{
			if (options->rows != NULL && !is_listed(options->rows, section->name) &&
				!is_listed(options->rows, "all"))
				continue;
			bench->failed = false;
			section->run(bench);
		}
	}
}

static void
run_experiments(Bench *bench, const Options *options)
{
	const Section *section;

	for (section = experiments; section->name != NULL; section++)
	{
		if (!is_listed(options->experiments, section->name) &&
			!is_listed(options->experiments, "all"))
			continue;
		bench->failed = false;
		section->run(bench);
	}
}

int
main(int argc, char **argv)
{
	Bench		bench;
	Options		options;
	int			i;

	if (argc < 2 || argc % 2 != 0)
		bench_die("usage", "engine_bench cpu|/path/to/gpuhash_cuda.so [OPTION VALUE]...");
	set_defaults(&bench, &options, strcmp(argv[1], "cpu") == 0);
	for (i = 2; i < argc; i += 2)
		parse_option(&bench, &options, argv[i], argv[i + 1]);
	check_options(&bench, &options);
	bench.engine = open_engine(argv[1]);
	snprintf(bench.lib, sizeof(bench.lib), "gpuhash_%s", bench.engine->name);
	if (bench.hot == 0)
		bench.hot = bench.engine == gh_cpu_engine() ? bench.n : 100000000;
	bench.place = bench_host_place(bench.engine);
#ifdef BENCH_DEVICE
	if (options.on_device)
		bench.place = bench_device_place();
#endif
	if (options.on_device != bench.place.on_device)
		bench_die("arrays on the device need", "engine_bench_cuda");

	if (options.experiments == NULL)
		printf("lib,op,keybits,n,load,Mops,ok,reads,ratio,fill,bytes,peak\n");
	for (i = 0; i < options.keybits_count; i++)
	{
		bench.key_size = (uint32_t) options.keybits[i] / 8;
		if (options.experiments == NULL)
			run_rows(&bench, &options);
		else
			run_experiments(&bench, &options);
	}
	return bench.wrong ? 1 : 0;
}
