/*
 * pipeline_bench.h
 *		What the tests of refused pipelines and requests refuse parts of.
 */
#ifndef PIPELINE_BENCH_H
#define PIPELINE_BENCH_H

#include "pipeline_model.h"

/*
 * Two tables, by an integer that they keep, with a text; groups of it; a table that no pipeline made; and a
 * pipeline of three columns that probes the first table, with a condition on the pair between two runs:
 *
 *	columns		0: INT, 1: TEXT, 2: BOOL; filled: 3: INT, 4: TEXT
 *	constants	5: an INT, 6: NULL
 *	temporaries	7: 0 + 5 (step 0); 8: 3 < 0 (step 1, the probe); 9: 3 + 7 (step 2)
 */
typedef struct Bench
{
	HostState	state;
	GhHost		host;
	Stage	   *table;
	Stage	   *second;			/* of the same shape, and not the one that marks are of */
	Stage	   *unnumbered;
	Stage	   *groups;
	Stage	   *stage;
	GhTable    *other;
	GhMarks    *marks;
} Bench;

enum
{
	NUMBER,
	TEXT,
	TRUTH,
	FILLED,
	FILLED_TEXT,
	CONSTANT,
	NULL_CONSTANT,
	SUM,
	LESS,
	TOTAL,
	VECTORS
};

/* False: there are no pipelines, or it failed; it is to be closed all the same. */
extern bool bench_open(Context *c, Bench *bench);
extern void bench_close(Context *c, Bench *bench);
/* Columns of an integer, a text and a truth value, and ten rows of them. */
extern Stage *three_columns(void);
extern void put_three_columns(Stage *stage);

#endif							/* PIPELINE_BENCH_H */
