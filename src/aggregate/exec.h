/*
 * exec.h
 *		GpuHashAggregate at run time: what the executor's files share.
 */
#ifndef GPUHASH_AGGREGATE_EXEC_H
#define GPUHASH_AGGREGATE_EXEC_H

#include "postgres.h"

#include "access/parallel.h"

#include "aggregate/node.h"
#include "fragment/bound.h"
#include "fragment/fragment.h"

typedef enum GhAggregatePhase
{
	GH_AGGREGATE_START,			/* nothing read */
	GH_AGGREGATE_EMIT,			/* groups come out */
	GH_AGGREGATE_DONE
} GhAggregatePhase;

/* Groups that come out next. */
#define GH_OUTPUT_GROUPS 256

/*
 * What a group is that HAVING lets out, but is not among those that are wanted (first.c); beside a
 * GhRowState.
 */
#define GH_GROUP_UNWANTED 255

typedef struct GhOutput
{
	bool		fresh;			/* no group of those in memory has come out */
	uint32		count;
	uint32		next;			/* which of them comes out next */
	bool		is_final;		/* they are an engine's; else the node's own */
	int			set;			/* the grouping set of all of them, which they do not have as a key; -1: they have it */
	uint32		first;			/* of the node's own, which one is the first */
	const char *records[GH_OUTPUT_GROUPS];	/* of an engine's */
	const GhAggregateState *states[GH_OUTPUT_GROUPS];
	uint8		verdicts[GH_OUTPUT_GROUPS]; /* of HAVING: a GhRowState each, or GH_GROUP_UNWANTED */
} GhOutput;

typedef struct GhHaving GhHaving;

/* Of the groups that come out: those that the input is read into, or what is made of these (distinct.c). */
typedef struct GhShown
{
	int			nkeys;			/* the first ones of the node's */
	int			nresults;		/* aggregates that come out, in the scan tuple's columns from `first` on */
	int			naggregates;	/* of a group: those, and then those that tell scales */
	const GhAggregateSpec *specs;
} GhShown;

/*
 * Aggregates that add each value once (DISTINCT).  The last keys of the groups that the input is read into
 * are their arguments; those that come out have the other keys, and are made of these (distinct.c).  Where
 * there are several arguments, each row is in a set of groups by each of them, of which the other arguments
 * are NULL.
 */
typedef struct GhDistinct
{
	int			nkeys;			/* arguments */
	int			naggregates;
	const int  *keys;			/* by aggregate: its argument, from 0 */
	const int  *sets;			/* by aggregate of the first level that comes out: of which argument's groups it is */
	const int  *filters;		/* by aggregate: which of the others counts the rows of a group that its FILTER lets
								 * pass; -1: it has none */
	GhAggregateSpec *own;		/* by aggregate */
	GhAggregateSpec *specs;		/* of the groups that come out: the other results, these, and the others' scales */
	double		expected;		/* groups by all keys, in this process */
} GhDistinct;

/*
 * Grouping sets.  The groups that the input is read into are by the keys of all sets; those that come out,
 * which have one more key, the set's number, are made of these (sets.c).
 */
typedef struct GhSets
{
	int			count;
	bool	   *has_key;		/* by set, and by key */
	int			nfunctions;		/* of GROUPING(), in the scan tuple's columns before the aggregates */
	List	   *function_values;	/* by these: IntLists, by set */
	double		expected;		/* groups by all keys, in this process */
} GhSets;

typedef struct GhAggregateNode
{
	GhFragment	fragment;		/* must be first */

	/* what the plan says */
	int			nkeys;
	int		   *key_columns;	/* by key: of the scan tuple; then that of grouping sets' numbers */
	double		expected;		/* groups by all keys, in this process */
	int			first;			/* column of the first aggregate */
	int			nresults;		/* aggregates that come out, but those of `distinct` */
	int			naggregates;	/* and those that tell scales of their results, behind them */
	List	   *keys;			/* expressions */
	List	   *arguments;
	List	   *filters;
	ExprState **key_states;
	ExprState **argument_states;	/* NULL: count(*) */
	ExprState **filter_states;	/* NULL: none */
	GhValueType *key_types;
	GhAggregateSpec *specs;
	GhDistinct *distinct;		/* NULL: no aggregate adds each value once */
	GhSets	   *sets;			/* NULL: no grouping sets */
	bool	   *is_part_key;	/* by key: groups of which these are the same are together in files; NULL: all keys tell */
	GhBound		bound;			/* a Sort and Limit above, where there are both */

	/* of the program, in its context */
	struct GhResults *results;	/* while it is made */
	uint16	   *key_vectors;	/* by key */
	GhAggregate *aggregates;	/* by aggregate */
	uint16	   *null_vectors;	/* of several sets, by key that is an argument: NULL in its place, in other sets */
	uint16		never_vector;	/* likewise, of an aggregate's filter */
	struct GhEntered *entered;	/* rows that were computed, and are to enter its pipeline; NULL: there were none */
	GhSqlValue *key_values;		/* of one row */

	/* the groups */
	GhAggregatePhase phase;
	GhGroups   *groups;
	uint32		ngroups;		/* when their memory was asked for */
	uint64		back_before;	/* rows that were handed back in earlier executions */
	uint64		pages_before;	/* likewise, pages read */
	GhGroupFiles *files;		/* groups that are to be merged; NULL: all are in memory */
	struct GhRegrouping *regrouping;	/* both levels of groups, of which groups and files are some; NULL: there is one */
	GhShown		shown;
	const struct GhLevelGroups *as_rows;	/* groups come from the device as rows of these (narrow.c); NULL: as groups */
	bool		taken;			/* a device has made those of the node above of them: none come out here */
	bool		stays;			/* its rows were asked for once more after that: its groups are to be kept here */
	uint64		passed;			/* taken: those that would have come out */
	uint64		left_out;		/* and those that HAVING left out */
	bool		regrouped;		/* of DISTINCT or grouping sets, a device has made those that come out */
	uint64		made;			/* groups of a device, of which what has left it is not all; 0: it is all */
	uint64		left_there;		/* of these, those that have not left it */
	uint64		behind;			/* and those that HAVING let out, but that are not among the first of the bound */
	GhFinalGroups *final;		/* those that engines made; NULL: nothing was read yet */
	uint32		next_group;		/* of the node's own */
	GhOutput	output;
	GhHaving   *having;			/* NULL: not asked for yet */
	bool		looked;			/* for what lets the first ones of the bound through; if there is something: */
	struct GhFirstHost *firsts;	/* (first.c) */

	/* a grouping over a grouping (nested.c) */
	struct GhAggregateNode *above;	/* while this one reads its input for that one; else NULL */
	struct GhAggregateNode *below;	/* whose rows come in; or NULL */
} GhAggregateNode;

static inline GhAggregateNode *
gh_aggregate_of(GhFragment *fragment)
{
	return (GhAggregateNode *) fragment;
}

/* Groups that are expected in this process. */
static inline double
gh_aggregate_expected(const GhAggregateNode *node)
{
	double		expected = node->distinct != NULL ? node->distinct->expected :
		node->sets != NULL ? node->sets->expected : node->expected;

	return Max(expected, 1);
}

/* Sets of groups that each row is added to. */
static inline int
gh_aggregate_nsets(const GhAggregateNode *node)
{
	return node->distinct != NULL ? node->distinct->nkeys : 1;
}

/* Whether groups of a set have the key; else it is NULL. */
static inline bool
gh_set_has_key(const GhAggregateNode *node, int set, int k)
{
	int			argument = node->distinct != NULL ? k - (node->nkeys - node->distinct->nkeys) : -1;

	return argument < 0 || argument == set;
}

/* The set whose groups have aggregate a, or what tells its scale. */
static inline int
gh_set_of(const GhAggregateNode *node, int a)
{
	return node->distinct != NULL && a < node->nresults ? node->distinct->sets[a] : 0;
}

/* distinct.c */
extern void gh_distinct_init(GhAggregateNode *node, List *private);
extern int	gh_distinct_shown(const GhAggregateNode *node, int a);
extern void gh_distinct_show(GhAggregateNode *node);
extern void gh_distinct_groups(GhAggregateNode *node);

/* sets.c */
extern void gh_sets_init(GhAggregateNode *node, List *private);
extern void gh_sets_show(GhAggregateNode *node);
extern int	gh_sets_keys(const GhAggregateNode *node, int set, int *keys);
extern void gh_sets_groups(GhAggregateNode *node);
extern void gh_sets_load_functions(const GhAggregateNode *node, int set, TupleTableSlot *scan);

/* add.c */
extern bool gh_aggregate_adds_floats(const GhFragment *fragment);
extern bool gh_aggregate_order_matters(const GhFragment *fragment);
extern void gh_aggregate_input_row(GhFragment *fragment);
extern uint32 gh_aggregate_own_group(GhAggregateNode *node, const GhSqlValue *keys, int set);
extern bool gh_filter_is_true(ExprState *filter, ExprContext *econtext);
extern bool gh_aggregate_scale(Datum value, int *scale);
extern void gh_aggregate_add_datum(GhAggregateNode *node, uint32 group, int a, Datum value);
extern void gh_aggregate_add_value(GhAggregateNode *node, uint32 group, int a, Datum value);
extern void gh_aggregate_put_groups(GhAggregateNode *node, GhPutRecord put, void *arg);
extern void gh_aggregate_spill(GhFragment *fragment);
extern void gh_aggregate_keep_within_memory(GhFragment *fragment);
extern void gh_aggregate_add_parts(GhAggregateNode *node, const char *records, Size size);
extern void gh_aggregate_end_input(GhFragment *fragment);
extern void gh_aggregate_start_anew(GhFragment *fragment);
extern void gh_aggregate_close_files(GhAggregateNode *node);
extern void gh_aggregate_create_files(GhAggregateNode *node);

/* regroup.c */
extern bool gh_regroup_next(GhAggregateNode *node);
extern bool gh_regroup_may_rewind(const GhAggregateNode *node);
extern void gh_regroup_rewind(GhAggregateNode *node);
extern bool gh_regroup_is_first(const GhAggregateNode *node);
extern int	gh_regroup_set(const GhAggregateNode *node);
extern void gh_regroup_close(GhAggregateNode *node);

/* enter.c */
extern GhStage *gh_aggregate_stage(GhFragment *fragment);
extern void gh_aggregate_drop_stage(GhAggregateNode *node);
extern void gh_aggregate_sink(const GhAggregateNode *node, GhSink *sink);
extern bool gh_enter_row(GhAggregateNode *node);
extern void gh_enter_rows(GhAggregateNode *node, bool at_once);
extern void gh_enter_waiting(GhFragment *fragment);
extern void gh_enter_forget(GhAggregateNode *node);

/* compile.c */
extern void gh_aggregate_types(GhAggregateNode *node);
extern bool gh_aggregate_translate(GhFragment *fragment, GhTranslation *translation);
extern void gh_aggregate_keep_vectors(GhFragment *fragment, const GhTranslation *translation);
extern void gh_aggregate_forget_program(GhFragment *fragment);
extern GhRecordKey *gh_aggregate_scan_keys(const GhAggregateNode *node);
extern const GhAggregate *gh_aggregate_set_aggregates(const GhAggregateNode *node);

/* output.c */
extern GhSqlValue gh_output_key(const GhAggregateNode *node, const GhOutput *output, uint32 i, int k);
extern const GhSide *gh_output_side(const GhAggregateNode *node, const GhOutput *output, uint32 i, int a);
extern void gh_output_take(GhAggregateNode *node, const char *records, Size size);
extern bool gh_output_is_whole(const GhAggregateNode *node);
extern void gh_output_show(GhAggregateNode *node, const char *records, Size size, void (*show) (void *arg), void *arg);
extern uint64 gh_output_sample(GhAggregateNode *node, uint64 step, uint64 count, void (*show) (void *arg), void *arg);
extern uint64 gh_output_count(const GhAggregateNode *node);
extern bool gh_output_next(GhAggregateNode *node);
extern void gh_output_rewind(GhAggregateNode *node);

/* exec.c */
extern bool gh_is_aggregate(const PlanState *ps);
extern void gh_aggregate_show(GhAggregateNode *node, bool regrouped);
extern void gh_aggregate_make(GhAggregateNode *node);
extern void gh_aggregate_reset_levels(GhAggregateNode *node);

/* narrow.c */
extern bool gh_aggregate_narrow(GhFragment *fragment);
extern void gh_narrow_take(GhAggregateNode *node, const char *rows, Size size);

/* nested.c */
extern bool gh_nested_read(GhAggregateNode *node);
extern void gh_nested_give_up(GhAggregateNode *below);

/* having.c */
extern void gh_having_judge(GhAggregateNode *node, GhOutput *output);
extern void gh_having_forget(GhAggregateNode *node);

/* parallel.c */
extern Size gh_aggregate_estimate_dsm(CustomScanState *css, ParallelContext *pcxt);
extern void gh_aggregate_init_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate);
extern void gh_aggregate_reinit_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate);
extern void gh_aggregate_init_worker(CustomScanState *css, shm_toc *toc, void *coordinate);
extern bool gh_aggregate_attach(GhAggregateNode *node);
extern bool gh_aggregate_hand_over(GhAggregateNode *node);
extern uint64 gh_aggregate_wanted(const GhAggregateNode *node);
extern void gh_aggregate_leave_counts(GhAggregateNode *node);
extern void gh_aggregate_leave_later_counts(GhAggregateNode *node);
extern void gh_aggregate_drop_shared(GhAggregateNode *node);
extern bool gh_aggregate_put_shared(GhAggregateNode *node);

/* explain.c */
extern void gh_aggregate_explain(CustomScanState *css, List *ancestors, ExplainState *es);

#endif							/* GPUHASH_AGGREGATE_EXEC_H */
