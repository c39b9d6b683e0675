/*
 * join_test.h
 *		What the tests of joins in scans share: sides, which are scans that make a table or groups,
 *		and may join with the tables of others; and what the model says of them.
 */
#ifndef JOIN_TEST_H
#define JOIN_TEST_H

#include "scan_test.h"

#define SIDE_KEPT_MAX 8
#define SIDE_PARTS_MAX 3

/* The columns of all sides' pages, and vectors of their programs, behind which come filled ones. */
enum
{
	SIDE_INT8,
	SIDE_INT4,
	SIDE_INT2,
	SIDE_BOOL,
	SIDE_FLOAT4,
	SIDE_FLOAT8,
	SIDE_NUMERIC,
	SIDE_TEXT,
	SIDE_TID,					/* no attribute, as all before it are */
	SIDE_COLUMNS
};

/* A part of a table's key has one of 2^domain values, which are negative or not. */
typedef struct SideKey
{
	uint32_t	nparts;
	uint8_t		bits[SIDE_PARTS_MAX];
	uint8_t		domain[SIDE_PARTS_MAX];
	bool		negative[SIDE_PARTS_MAX];
} SideKey;

/* A row of a side that was counted, with all of its vectors. */
typedef struct ModelRow
{
	GhValue		values[GH_PROGRAM_VECTORS_MAX];
} ModelRow;

typedef struct Side
{
	Trial		trial;
	bool		is_table;
	SideKey		key;
	GhScanPart	parts[GH_SCAN_PARTS_MAX];
	uint16_t	kept[SIDE_KEPT_MAX];
	struct Side *tables[GH_SCAN_JOINS_MAX];
	GhScanJoin	joins[GH_SCAN_JOINS_MAX];	/* of a kind that marks matches: a scan of it asks for the others */
	GhScanPart	join_parts[GH_SCAN_JOINS_MAX][GH_SCAN_PARTS_MAX];
	GhScanFill	fills[GH_SCAN_JOINS_MAX][SIDE_KEPT_MAX];

	/* what an engine made of it */
	const GhEngine *engine;
	HostState	state;
	GhScan	   *scan;			/* NULL: it could not be made */
	GhScanTable made;
	ScanOutcome outcome;
	bool		marks_lost;		/* of its table: a scan that joined with it handed rows back */
	bool		asked;			/* for rows of the last join's table without a match; and of them */
	bool		lacking;		/* some went back: nobody knows which */

	/* what the model did */
	ModelRow   *rows;
	uint64_t	nrows;
	uint64_t	room;			/* for rows */
	uint64_t	multiplied;		/* rows that became several */
	bool	   *matched;		/* by row of a table: a join that marks matches has found it */
	uint64_t	unmatched;		/* rows that came out of the last join without a match */
	GhScanRow  *back;
	uint64_t	nback;
	uint64_t	passed;
	uint64_t	joined[GH_SCAN_JOINS_MAX];
} Side;

/* How many rows of a side are asked for. */
typedef enum SideSize
{
	SIDE_EMPTY,
	SIDE_ONE,
	SIDE_FEW,
	SIDE_MANY
} SideSize;

/* join_side.c */
extern Side *side_draw(Context *c, SideSize size, bool is_table, Side **tables, uint32_t ntables);
extern void side_drop(Context *c, Side *side);
/* False: it failed, and that was told, or memory was refused that trial.fail_at refuses. */
extern bool side_run(Context *c, Side *side, const GhEngine *engine);
extern void side_end(Context *c, Side *side);

/* join_model.c: the same of the side's pages, whose tables have run. */
extern void side_model(Context *c, Side *side);
/* Asks for fewer of the side's lines until it has not too many rows for side_check(). */
extern void side_shrink(Context *c, Side *side);
extern void side_check(Context *c, const Side *side);
extern void side_forget(Side *side);

#endif							/* JOIN_TEST_H */
