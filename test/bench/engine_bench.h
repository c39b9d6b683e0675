/*
 * engine_bench.h
 *		What the files of the engines' benchmark share.
 *
 * A section makes a table, lets an operation work on all of its data several times
 * (the first time is not counted), checks every result and prints a row.  An error
 * of the engine ends the section, not the program, and makes its rows wrong.
 */
#ifndef ENGINE_BENCH_H
#define ENGINE_BENCH_H

#include "engine/engine.h"
#include "engine_bench_jobs.h"

#include <inttypes.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BENCH_ROUNDS_MAX 31
#define BENCH_LOADS_MAX 8

/* Where the arrays are, and who works on them. */
typedef struct BenchPlace
{
	bool		on_device;
	void	   *(*alloc) (size_t bytes);	/* NULL: no memory */
	void		(*free) (void *memory);
	void		(*fill) (void *memory, int byte, size_t bytes);
	void		(*copy_in) (void *to, const void *from, size_t bytes);	/* from the host */
	/* the sum of bench_element over 0 .. count - 1; what goes wrong ends the program */
	uint64_t	(*run) (const BenchJob *job, uint64_t count);
	void		(*sync) (void);	/* what was started is done */
} BenchPlace;

/* What a row is compared with: the device's limits, in the same run. */
typedef enum BenchRoof
{
	BENCH_ROOF_NONE,
	BENCH_ROOF_GATHER,			/* M random 64-byte reads per second */
	BENCH_ROOF_CAS,				/* M random 64-bit compare-and-swaps per second */
	BENCH_ROOF_COPY,			/* GB read and written per second by a copy */
	BENCH_ROOFS
} BenchRoof;

typedef struct Bench
{
	const GhEngine *engine;
	char		lib[32];
	BenchPlace	place;
	uint64_t	n;				/* keys, or values of a multi table */
	uint64_t	hot;			/* values of the one key */
	uint64_t	batch;			/* keys of a request */
	uint64_t	seed;
	int			rounds;			/* that count, after one that does not */
	double		scale;			/* of the experiments */
	uint32_t	key_size;		/* bytes, of values too */
	double		load;			/* filled factor to reach */
	double		roof[BENCH_ROOFS];	/* 0: not known */
	bool		failed;			/* the engine gave an error in this section */
	bool		wrong;			/* some row was not right */
} Bench;

/* One row of the output, over the rounds. */
typedef struct BenchRow
{
	const char *op;
	BenchRoof	roof;
	uint64_t	n;				/* what the row is about */
	double		seconds[BENCH_ROUNDS_MAX];
	int			runs;			/* times measured, the first one included */
	bool		right;			/* in every round */
	double		fill;			/* the filled factor reported; 0: not said */
	double		reads;			/* bucket reads for each operation; 0: not known */
	double		bytes;			/* copy: bytes read and written */
	double		held;			/* memory for each value, in bytes; 0: not said */
	double		peak;			/* and the most there was until then */
} BenchRow;

/* ------------------------------------------------- engine_bench_run.c */

extern BenchPlace bench_host_place(const GhEngine *engine);
extern void bench_die(const char *what, const char *why);
extern double bench_now(void);
extern void *bench_alloc(const Bench *bench, size_t bytes);

/* NULL after an error, which is noted. */
extern GhTable *bench_table(Bench *bench, const GhTableOptions *options);
extern GhTableOptions bench_options(const Bench *bench, uint64_t capacity);
extern GhTableStats bench_stats(Bench *bench, GhTable *table);
extern uint64_t bench_slots(const GhTableStats *stats);
extern void bench_clear(Bench *bench, GhTable *table);
/* Does the request in batches and adds up its results; the seconds it took. */
extern double bench_request(Bench *bench, GhTable *table, GhRequest *request);
/* Notes an error; the section is over. */
extern void bench_error(Bench *bench, const char *what, const GhError *error);

extern void bench_row_add(BenchRow *row, double seconds, bool right);
extern double bench_row_seconds(const BenchRow *row);
/* What a new table holds of memory after its first round, the row's. */
extern void bench_row_memory(BenchRow *row, const GhTableStats *stats);
extern void bench_row_print(Bench *bench, const BenchRow *row);

/* Streams of the table's keys. */
extern BenchStream bench_unique(const Bench *bench, uint64_t first, uint64_t range,
								uint64_t order);
/* Shorthands for jobs; the checks tell whether nothing was wrong. */
extern void bench_make_keys(Bench *bench, const BenchStream *stream, uint64_t count,
							void *keys);
extern void bench_make_pairs(Bench *bench, const BenchStream *stream, uint64_t count,
							 uint64_t version, void *keys, void *values);
/*
 * Finds the stream's keys, made into keys, of which those of low .. high are there
 * with values of the version; adds up the seconds and tells whether all were right.
 */
typedef struct BenchFind
{
	BenchStream stream;
	uint64_t	count;
	uint64_t	low;
	uint64_t	high;
	uint64_t	version;
	void	   *keys;			/* room for the keys */
	void	   *values;			/* and what is found */
} BenchFind;

extern bool bench_find(Bench *bench, GhTable *table, const BenchFind *find,
					   double *seconds);

/* A batch of mixed operations and room for its arrays, of count elements each. */
typedef struct BenchMixed
{
	BenchMix	mix;
	BenchStream stream;			/* whose keys are mixed */
	uint64_t	count;
	void	   *keys;
	void	   *values;
	void	   *found;
	uint8_t    *ops;
	uint8_t    *flags;
} BenchMixed;

extern bool bench_mixed(Bench *bench, GhTable *table, const BenchMixed *mixed,
						double *seconds);

/* ------------------------------------------------- the sections and experiments */

extern void bench_single_rows(Bench *bench);	/* engine_bench_single.c */
extern void bench_export_rows(Bench *bench);
extern void bench_exchange_rows(Bench *bench);
extern void bench_multi_rows(Bench *bench);	/* engine_bench_multi.c */
extern void bench_build_rows(Bench *bench);
extern void bench_hot_rows(Bench *bench);
extern void bench_grow_rows(Bench *bench);	/* engine_bench_resize.c */
extern void bench_upsize_rows(Bench *bench);
extern void bench_experiment_resize(Bench *bench);
extern void bench_experiment_static(Bench *bench);	/* engine_bench_static.c */
extern void bench_experiment_dynamic(Bench *bench);	/* engine_bench_dynamic.c */
extern void bench_experiment_incremental(Bench *bench); /* engine_bench_slab.c */
extern void bench_experiment_mixes(Bench *bench);

/* ------------------------------------------------- engine_bench_device.cu */

extern BenchPlace bench_device_place(void);
/* Prints the device's limits for a buffer of that size and fills bench->roof. */
extern void bench_device_roofline(Bench *bench, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif							/* ENGINE_BENCH_H */
