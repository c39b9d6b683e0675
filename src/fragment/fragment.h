/*
 * fragment.h
 *		What a node has engines do with the rows below it, whatever it makes of them: pages of a scan, joins over
 *		one, or rows that come through the executor.
 *
 * A node's state begins with a GhFragment, and its methods tell what becomes of rows.
 */
#ifndef GPUHASH_FRAGMENT_H
#define GPUHASH_FRAGMENT_H

#include "postgres.h"

#include "access/parallel.h"
#include "commands/explain.h"
#include "nodes/extensible.h"
#include "storage/buf.h"

#include "clock.h"
#include "compat.h"
#include "engine/pipeline/pipeline.h"
#include "expr/translate.h"
#include "expr/values.h"
#include "fragment/counts.h"
#include "fragment/stage.h"
#include "gpuhash.h"
#include "heap/pages.h"
#include "heap/tuple.h"

typedef struct GhFragment GhFragment;

/* What may be read. */
typedef enum GhJoinedInput
{
	GH_JOINED_NOTHING,			/* there are no rows */
	GH_JOINED_PAGES,			/* the scan's, the joins' tables are there */
	GH_JOINED_ROWS				/* those of a join, of the last one if none is probed */
} GhJoinedInput;

/* What a node does with the rows. */
typedef struct GhFragmentMethods
{
	const char *doing;			/* on a device, for messages: "aggregate on the GPU" */
	const char *left_there;		/* what it makes there and that does not leave it, for EXPLAIN */

	/* -- the program; compile.c -- */
	/* Translates what comes behind the scan's conditions and the joins.  False: that has no program. */
	bool		(*translate) (GhFragment *fragment, GhTranslation *translation);
	/* The program is made of it: keeps the vectors of what was translated. */
	void		(*keep_vectors) (GhFragment *fragment, const GhTranslation *translation);
	/* The program goes, and all that is in its context. */
	void		(*forget_program) (GhFragment *fragment);

	/* -- rows on the CPU -- */
	/* The pipeline that rows enter; NULL: none is there, and they are added one by one. */
	GhStage    *(*stage) (GhFragment *fragment);
	/* The row whose columns are in the scan tuple. */
	void		(*add_row) (GhFragment *fragment);
	/* Rows that were added and wait are to enter the pipeline, if there is one, in front of what comes next. */
	void		(*enter_waiting) (GhFragment *fragment);
	/* The pipeline has no memory for a row: makes some. */
	void		(*make_memory) (GhFragment *fragment);
	void		(*keep_within_memory) (GhFragment *fragment);
	/* All has been read. */
	void		(*end_input) (GhFragment *fragment);
	/* All that was read is forgotten, and this process's part of the input is read once more. */
	void		(*start_anew) (GhFragment *fragment);
	/* Whether results tell in which order rows were added; and whether for sums, or the like, of floats. */
	bool		(*order_matters) (const GhFragment *fragment);
	bool		(*adds_floats) (const GhFragment *fragment);
	double		(*expected_groups) (const GhFragment *fragment);	/* NULL: rows come of it */

	/* -- on a device -- */
	/*
	 * Rows are joined by a device only.  On the CPU joins are not probed but for rows that were handed back, so that
	 * pipelines there read nothing but keys.
	 */
	bool		for_device;
	/*
	 * Where no pipeline does the joins the child's rows are not read, but left to be passed on: a row that is read all the
	 * same, as it comes.  NULL: they are read.
	 */
	void		(*put_child_row) (GhFragment *fragment, TupleTableSlot *slot);
	const char *(*why_not_on_device) (const GhFragment *fragment);	/* NULL: it can be done there */
	void		(*device_sink) (GhFragment *fragment, GhSink *sink);	/* but for its seed */
	/*
	 * Joins' tables are there, if any, and pages are read next: may look at some of them (sample.c), and have the program
	 * made anew.  NULL: it need not.
	 */
	void		(*sample) (GhFragment *fragment);
	/*
	 * All has been read: what leaves the device may be less than it has made (supply_groups.c).  True: it has been taken.
	 * NULL: it is all.
	 */
	bool		(*narrow) (GhFragment *fragment);
	void		(*take_records) (GhFragment *fragment, const char *records, Size bytes);
} GhFragmentMethods;

/* Rows of a child that are no tuples, but groups on a device (aggregate/nested.c). */
typedef struct GhRowsBelow
{
	TupleDesc	desc;			/* of what programs are about then */
	Index		varno;
	Expr	   *(*column) (void *arg, int column);	/* a column of the child's rows, over that */
	void	   *arg;
} GhRowsBelow;

/* The program for some hundred rows; made when the first row is there. */
typedef struct GhFragmentProgram
{
	MemoryContext context;
	bool		tried;
	ParamExecData *awaited;		/* not tried: the result of a subquery that is to be run first */
	const char *why_not;		/* why there is none */
	GhProgram  *program;		/* NULL: rows are done by PostgreSQL's expressions */
	uint32		nfilters;		/* instructions of the scan's conditions, which come first */
	bool		narrowed;		/* a step of their own, even if there are none: another condition follows (scan/first.c) */
	GhStage    *stage;			/* on the CPU, what does the rows; NULL: there is none yet */
	struct GhEnteringRows *rows;	/* of the executor; NULL: there were none yet */
	struct GhJoinedRow *joined_row; /* what joins a row by itself; NULL: none was to be yet */
} GhFragmentProgram;

/* One of several relations that are read as one (parts.c). */
typedef struct GhFragmentPart
{
	PlanState  *scan;
	GhPages		pages;
	/* on a device */
	uint64		tuples;			/* that were visible */
	uint64		passed;			/* the scan's conditions */
} GhFragmentPart;

struct GhFragment
{
	CustomScanState css;		/* must be first */
	const GhFragmentMethods *methods;
	int			ncolumns;		/* of the child, and of the scan tuple the first */

	/* the input */
	PlanState  *child;
	PlanState  *scan;			/* whose pages the node can read: the child, that below its joins, or that of the part;
								 * NULL: rows come from the child */
	PlanState  *append;			/* has such scans as its parts, and is the child or below its joins; or NULL */
	int			nparts;
	int			part;			/* that which is read */
	GhFragmentPart *parts;
	TupleDesc	parts_desc;		/* of all of them: columns that tuples of any may lack are said to be missing */
	int		   *attnos;			/* by column: of the relation, where the child is the scan, or has it as a part */
	struct GhJoined *joined;	/* the child is joins over the scan; or NULL */
	GhJoinedInput input;		/* what is read, since gh_fragment_begin_input() */
	bool		by_rows;		/* the child's rows are read all the same */
	const GhRowsBelow *rows_below;	/* what comes in, if it is that; or NULL */
	bool		passes_on;		/* they are not read, but come out as they come (put_child_row) */
	struct GhDeviceRun *device;	/* what is done there */
	int			sharers;		/* nodes of the plan that make the same groups, this one included; 0: it is alone */
	struct GhRowBuffer *rows;	/* of the executor */
	GhPages		own_pages;
	GhPages    *pages;			/* of the scan: the node's own, the part's, or those of the lowest join's source */
	GhFragmentProgram program;
	Size		memory_limit;
	struct GhFragmentMember *member;	/* of a parallel query; NULL: this process is alone */

	bool		timing;
	bool		rescanned;		/* at least once */
	int			ninstructions;	/* of the last program for pages; 0: there was none */
	bool		ran;			/* at least once: there are counts to show */
	GhFragmentCounts counts;
};

/* ---- input.c ---- */

extern void gh_fragment_init(GhFragment *fragment, const GhFragmentMethods *methods, int ncolumns, EState *estate,
							 int eflags);
extern bool gh_fragment_changes(GhFragment *fragment);
extern void gh_fragment_forget(GhFragment *fragment);
extern void gh_fragment_rescan(GhFragment *fragment);
extern void gh_fragment_end(GhFragment *fragment);
extern bool gh_fragment_begin_input(GhFragment *fragment);
extern bool gh_fragment_read_some(GhFragment *fragment);
extern void gh_fragment_end_input(GhFragment *fragment);
extern void gh_fragment_read_input(GhFragment *fragment);
extern bool gh_add_tuple(GhFragment *fragment, Buffer buffer, BlockNumber block, OffsetNumber line);
extern void gh_fragment_reread(GhFragment *fragment, BlockNumber block, bool counted);
extern void gh_fragment_start_anew(GhFragment *fragment);

/* ---- parts.c ---- */

extern bool gh_parts_init(GhFragment *fragment, PlanState *below, int eflags);
extern void gh_parts_drop(GhFragment *fragment);
extern void gh_parts_begin(GhFragment *fragment);
extern void gh_parts_turn_to(GhFragment *fragment, int part);
extern bool gh_parts_next(GhFragment *fragment);
extern void gh_parts_stop(GhFragment *fragment);
extern double gh_fragment_pages(const GhFragment *fragment);
extern double gh_fragment_rows(const GhFragment *fragment);
extern TupleDesc gh_fragment_scan_desc(const GhFragment *fragment);
extern bool gh_fragment_has_row(const GhFragment *fragment, bool accepted);
extern void gh_fragment_rewind(GhFragment *fragment);
extern void gh_fragment_rewind_for_all(GhFragment *fragment);
extern void gh_parts_end(GhFragment *fragment);

/* ---- rows.c ---- */

extern bool gh_fragment_read_rows(GhFragment *fragment);

/* ---- compile.c ---- */

extern Expr *gh_fragment_folded(GhFragment *fragment, Expr *expr, ParamExecData **awaited);
extern bool gh_fragment_init_type(GhFragment *fragment, GhValueType *type, Expr *expr, bool exact);
extern bool gh_fragment_translate(GhFragment *fragment, GhTranslation *translation, Expr *expr, const GhValueType *type,
								  bool with_scales, GhOperand *operand);
extern void gh_fragment_scan_keys(int nkeys, const GhValueType *types, const uint16 *vectors, GhRecordKey *keys);
extern bool gh_fragment_translate_input(GhFragment *fragment, GhTranslation *translation, PlanState *scan,
										struct GhJoined *joined, ParamExecData **awaited, uint32 *nfilters);
extern bool gh_fragment_compile(GhFragment *fragment);
extern bool gh_fragment_compile_again(GhFragment *fragment);
extern void gh_fragment_forget_program(GhFragment *fragment);

/* ---- enter.c: rows enter the CPU engine's pipeline ---- */

extern void gh_fragment_add_steps(struct GhJoined *joined, uint32 nfilters, bool apart, GhPipelineOptions *options);
extern void gh_fragment_stage_options(GhFragment *fragment, const GhProbe *probes, GhPipelineOptions *options);
extern bool gh_fragment_create_stage(GhFragment *fragment, const GhPipelineOptions *options, const char *doing);
extern void gh_entering_move(GhEnteringRows *rows, uint32 to, uint32 from);
extern uint32 gh_enter_columns(GhFragment *fragment, uint32 step, GhEnteringRows *rows, uint32 nrows);
extern uint64 gh_enter_page(GhFragment *fragment, GhBackRow *back, uint32 *nback);
extern uint64 gh_enter_held(GhFragment *fragment);

/* What of the node's time went where. */
static inline void
gh_fragment_clock(const GhFragment *fragment, instr_time *sum, instr_time *last)
{
	gh_clock(fragment->timing, sum, last);
}

#endif							/* GPUHASH_FRAGMENT_H */
