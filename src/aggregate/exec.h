/*
 * exec.h
 *		GpuHashAggregate at run time: what the executor's files share.
 */
#ifndef GPUHASH_AGGREGATE_EXEC_H
#define GPUHASH_AGGREGATE_EXEC_H

#include "postgres.h"

#include "access/parallel.h"
#include "portability/instr_time.h"
#include "storage/buf.h"

#include "aggregate/node.h"
#include "clock.h"
#include "engine/pipeline/scan.h"
#include "heap/pages.h"
#include "heap/tuple.h"

typedef enum GhAggregatePhase
{
	GH_AGGREGATE_START,			/* nothing read */
	GH_AGGREGATE_EMIT,			/* groups come out */
	GH_AGGREGATE_DONE
} GhAggregatePhase;

/* What EXPLAIN ANALYZE shows; in a parallel query, of all participants. */
typedef struct GhAggregateCounts
{
	uint64		pages;			/* read by the node itself */
	uint64		rows;			/* that the child had for it */
	uint64		back;			/* of them, by PostgreSQL's expressions from the scan's conditions on */
	uint64		groups;			/* that came out of the input, or its parts; or rows that were kept */
	Size		memory;			/* bytes of groups, at most */
	uint64		disk;			/* bytes written to files */
	instr_time	build_time;		/* the joins' inner sides read */
	instr_time	source_time;	/* pages read */
	instr_time	evaluate_time;	/* rows decoded, joined, evaluated, and added to groups */
	instr_time	merge_time;		/* of several participants' groups */
	/* on the device, also of joins' inner sides: */
	uint64		device_pages;	/* that it read */
	uint64		pinned_pages;	/* of them, where they are in shared buffers */
	uint64		hinted_pages;	/* of them, where it found by hints what is visible */
	uint64		judged;			/* tuples of these, of which hints did not tell */
	uint64		unmatched;		/* inner rows of a right or full join, without a match */
	uint64		device_bytes;	/* that it read */
	uint64		device_memory;	/* bytes, at most */
	instr_time	wait_time;		/* for it */
	uint64		queue_ns;		/* of requests, until it began with them; the service's only */
	uint64		kernel_ns;		/* and until it was through */
	char		fallback_reason[GH_MESSAGE_SIZE];	/* why it was not, or not to the end */
} GhAggregateCounts;

/* The program for some hundred rows; made when the first row is there. */
typedef struct GhAggregateProgram
{
	MemoryContext context;
	bool		tried;
	ParamExecData *awaited;		/* not tried: the result of a subquery that is to be run first */
	const char *why_not;		/* why there is none */
	GhProgram  *program;		/* NULL: rows are done by PostgreSQL's expressions */
	uint32		nfilters;		/* instructions of the scan's conditions, which come first */
	struct GhStage *stage;		/* on the CPU, what does the rows; NULL: there is none yet */
	struct GhEntered *entered;	/* rows that were computed for it */
	struct GhEnteringRows *rows;	/* and those of the executor; NULL: there were none yet */
	struct GhJoinedRow *joined_row; /* what joins a row by itself; NULL: none was to be yet */
	uint16	   *key_vectors;	/* by key, and behind them, by fetch, of the tuples' places */
	GhAggregate *aggregates;	/* by aggregate */
} GhAggregateProgram;

typedef struct GhAggregateNode
{
	CustomScanState css;		/* must be first */

	/* what the plan says */
	int			ncolumns;		/* of the child, and of the scan tuple the first */
	int			nkeys;
	int		   *key_columns;	/* by key: of the scan tuple */
	int			first;			/* column of the first aggregate */
	int			nresults;		/* aggregates that come out */
	int			naggregates;	/* and those that tell scales of their results, behind them */
	List	   *keys;			/* expressions */
	List	   *arguments;
	List	   *filters;
	ExprState **key_states;
	ExprState **argument_states;	/* NULL: count(*) */
	ExprState **filter_states;	/* NULL: none */
	GhValueType *key_types;
	GhAggregateSpec *specs;

	/* the input */
	PlanState  *child;
	PlanState  *scan;			/* whose pages the node can read: the child, or that below its joins;
								 * NULL: rows come from the child */
	int		   *attnos;			/* by column: of the relation, where the child is the scan */
	struct GhJoined *joined;	/* the child is joins over the scan; or NULL */
	bool		by_rows;		/* the child's rows are read all the same */
	struct GhDevice *device;	/* what the engine's scans do */
	struct GhRowBuffer *rows;	/* of them */
	GhPages		own_pages;
	GhPages    *pages;			/* of the scan: the node's own, or those of the lowest join's source */
	GhAggregateProgram program;
	GhSqlValue *key_values;		/* of one row */

	/* the groups, or, where `collected` is set, the rows themselves */
	GhAggregatePhase phase;
	struct GhCollected *collected;
	int			nfetches;		/* relations whose columns come from tuples that are fetched */
	struct GhFetch *fetches;
	bool		passes_on;		/* the child's rows come out as they come */
	Size		memory_limit;
	GhGroups   *groups;
	uint32		ngroups;		/* when their memory was asked for */
	GhGroupFiles *files;		/* groups that are to be merged; NULL: all are in memory */
	GhFinalGroups *final;		/* those that engines made; NULL: nothing was read yet, or rows are collected */
	uint32		next_group;
	struct GhAggregateMember *member;	/* of a parallel query; NULL: this process is alone */

	bool		timing;
	bool		rescanned;		/* at least once */
	int			ninstructions;	/* of the last program for pages; 0: there was none */
	bool		ran;			/* at least once: there are counts to show */
	GhAggregateCounts counts;
} GhAggregateNode;

/* input.c */
extern void gh_aggregate_close_files(GhAggregateNode *node);
extern void gh_aggregate_read_input(GhAggregateNode *node);
extern bool gh_aggregate_adds_floats(const GhAggregateNode *node);
extern bool gh_aggregate_order_matters(const GhAggregateNode *node);
extern void gh_add_input_row(GhAggregateNode *node);
extern bool gh_filter_is_true(ExprState *filter, ExprContext *econtext);
extern bool gh_aggregate_scale(Datum value, int *scale);
extern void gh_aggregate_add_datum(GhAggregateNode *node, uint32 group, int a, Datum value);
extern void gh_aggregate_add_value(GhAggregateNode *node, uint32 group, int a, Datum value);
extern bool gh_add_tuple(GhAggregateNode *node, Buffer buffer, BlockNumber block, OffsetNumber line);
extern void gh_aggregate_reread(GhAggregateNode *node, BlockNumber block, bool counted);
extern void gh_aggregate_start_anew(GhAggregateNode *node);
extern void gh_aggregate_put_groups(GhAggregateNode *node, GhPutRecord put, void *arg);
extern void gh_aggregate_spill(GhAggregateNode *node);
extern void gh_aggregate_keep_within_memory(GhAggregateNode *node);

/* collect.c */
extern void gh_collect_init(GhAggregateNode *node, EState *estate);
extern void gh_collect_scan_tuple(GhAggregateNode *node);
extern void gh_collect_records(GhAggregateNode *node, const char *records, Size size);
extern bool gh_collect_child_row(GhAggregateNode *node);
extern void gh_collect_clear(GhAggregateNode *node);
extern void gh_collect_rewind(GhAggregateNode *node);
extern bool gh_collect_next(GhAggregateNode *node);

/* fetch.c */

/*
 * A relation of the joins, all of whose columns that come out are of its tuples: the device returns where these are.
 */
typedef struct GhFetch
{
	int			level;			/* as of GhColumnSource */
	Relation	relation;		/* NULL: of an inner side that is no scan, and of which no place is known */
	BlockNumber nblocks;		/* that it had when somebody looked */
	TupleTableSlot *slot;		/* a copy of the tuple that was fetched last */
	int			ncolumns;
	int		   *columns;		/* of the scan tuple */
	int		   *attnos;			/* of the relation */
	int			last_attno;		/* the largest of them */
} GhFetch;

extern void gh_fetch_init(GhAggregateNode *node, EState *estate);
extern void gh_fetch_columns(GhAggregateNode *node, GhFetch *fetch, uint64 place);
extern void gh_fetch_park(GhAggregateNode *node);

/* rows.c */
extern bool gh_aggregate_read_rows(GhAggregateNode *node);

/* compile.c */
extern void gh_aggregate_types(GhAggregateNode *node);
extern Expr *gh_aggregate_folded(GhAggregateNode *node, Expr *expr, ParamExecData **awaited);
extern bool gh_aggregate_compile(GhAggregateNode *node);
extern GhScanKey *gh_aggregate_scan_keys(const GhAggregateNode *node);
extern void gh_aggregate_forget_program(GhAggregateNode *node);

/* parallel.c */
extern Size gh_aggregate_estimate_dsm(CustomScanState *css, ParallelContext *pcxt);
extern void gh_aggregate_init_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate);
extern void gh_aggregate_reinit_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate);
extern void gh_aggregate_init_worker(CustomScanState *css, shm_toc *toc, void *coordinate);
extern bool gh_aggregate_attach(GhAggregateNode *node);
extern bool gh_aggregate_hand_over(GhAggregateNode *node);
extern void gh_aggregate_leave(GhAggregateNode *node);
extern void gh_aggregate_drop_file(GhAggregateNode *node);
extern bool gh_aggregate_put_shared(GhAggregateNode *node);

/* explain.c */
extern void gh_aggregate_explain(CustomScanState *css, List *ancestors, ExplainState *es);

/* What of the node's time went where. */
static inline void
gh_aggregate_clock(const GhAggregateNode *node, instr_time *sum, instr_time *last)
{
	gh_clock(node->timing, sum, last);
}

#endif							/* GPUHASH_AGGREGATE_EXEC_H */
