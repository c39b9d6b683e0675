/*
 * node.h
 *		GpuHashAggregate, and GpuHashRows, which is the same without groups: what the planner's half hands to the
 *		executor's half, and what the executor's files share.
 */
#ifndef GPUHASH_AGGREGATE_NODE_H
#define GPUHASH_AGGREGATE_NODE_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "storage/buffile.h"
#include "storage/sharedfileset.h"

#include "compat.h"
#include "engine/aggregate.h"
#include "engine/page.h"
#include "gpuhash.h"

/* Also the name that EXPLAIN shows. */
#define GH_AGGREGATE_NAME "GpuHashAggregate"
/* Likewise, of the node that returns rows in place of groups. */
#define GH_ROWS_NAME "GpuHashRows"

/* ---- functions.c: PostgreSQL's aggregates ---- */

/* How an aggregate's result is made of a group's state. */
typedef enum GhFinal
{
	GH_FINAL_COUNT,				/* int8 */
	GH_FINAL_SUM_INT8,			/* of int2 and int4: the lower 64 bits */
	GH_FINAL_SUM_NUMERIC,		/* of int8 and numeric */
	GH_FINAL_VALUE,				/* the state's value, in the aggregate's result type: float sums, min,
								 * max, bool_and, bool_or */
	GH_FINAL_AVG,				/* numeric, or float8 of floats; likewise the following */
	GH_FINAL_VAR_POP,
	GH_FINAL_VAR_SAMP,
	GH_FINAL_STDDEV_POP,
	GH_FINAL_STDDEV_SAMP
} GhFinal;

/* Whether the result's scale is the largest of the values', of numerics. */
static inline bool
gh_sums_numerics(uint8 final)
{
	return final == GH_FINAL_SUM_NUMERIC || final == GH_FINAL_AVG;
}

typedef struct GhAggregateFunction
{
	Oid			function;
	uint8		kind;			/* a GhAggregateKind */
	uint8		final;			/* a GhFinal */
} GhAggregateFunction;

extern const GhAggregateFunction *gh_find_aggregate(Oid function);

/* ---- values.c: SQL values and what the engines hold of them ---- */

/* A type of which the engines hold values, as vectors of engine/program.h have them. */
typedef struct GhValueType
{
	Oid			type;			/* base type */
	GhClass		value_class;
	int			scale;			/* GH_CLASS_INT128: decimal digits after the point */
	int16		typlen;
	bool		typbyval;
} GhValueType;

/* What a value is. */
typedef enum GhSqlKind
{
	GH_SQL_HELD = 0,			/* low and high, as in a vector */
	GH_SQL_NULL,
	GH_SQL_BYTES				/* of a class but TEXT, one that does not fit (a numeric that is NaN,
								 * infinite, or wide): low and high are address and length of the
								 * varlena's bytes behind its header, as of text */
} GhSqlKind;

typedef struct GhSqlValue
{
	uint64		low;
	uint64		high;
	uint8		kind;			/* a GhSqlKind */
} GhSqlValue;

extern bool gh_value_type_init(GhValueType *type, Oid sql_type, GhClass value_class, int scale);
extern GhSqlValue gh_value_of_datum(const GhValueType *type, Datum datum, bool null);
extern Datum gh_datum_of_value(const GhValueType *type, GhSqlValue value, bool *null);
extern Datum gh_numeric_of_int128(uint64 low, uint64 high, int scale);

/* ---- sides.c: what 128 bits cannot hold ---- */

/*
 * What a state of 128 bits cannot hold of an aggregate's values, by PostgreSQL's own numeric
 * arithmetic.  All datums lie in one context, each in a chunk of its own, and are 0 while there
 * is nothing.
 */
typedef struct GhSide
{
	int64		count;			/* of the values below; the state does not count them */
	Datum		sum;			/* numeric; MIN, MAX: the least or greatest of them */
	Datum		squares;		/* numeric; MOMENTS: the sum of the squares */
} GhSide;

/* One aggregate of the node. */
typedef struct GhAggregateSpec
{
	GhAggregate aggregate;		/* as the engine adds rows */
	uint8		final;			/* a GhFinal */
	GhValueType argument;		/* where it has one; COUNT: not used */
	GhValueType result;			/* of GH_FINAL_VALUE */
	int			scales;			/* number of the aggregate that has the largest scale of the values, which
								 * may be less than the argument's; 0: there is none */
} GhAggregateSpec;

extern void gh_aggregate_datum(const GhAggregateSpec *spec, GhAggregateState *state,
							   GhSide **side, MemoryContext context, Datum datum);
extern void gh_aggregate_merge_sides(const GhAggregateSpec *spec, GhAggregateState *into,
									 GhSide **into_side, const GhAggregateState *from,
									 const GhSide *from_side, MemoryContext context);
extern GhSide gh_side_total(const GhAggregateSpec *spec, const GhAggregateState *state,
							const GhSide *side);

/* ---- results.c ---- */

extern Datum gh_aggregate_result(const GhAggregateSpec *spec, const GhAggregateState *state,
								 const GhSide *side, int scale, bool *null);

/* ---- groups.c: the groups of one process ---- */

typedef struct GhGroups GhGroups;

extern GhGroups *gh_groups_create(MemoryContext parent, int nkeys, const GhValueType *keys,
								  int naggregates, const GhAggregateSpec *specs);
extern void gh_groups_destroy(GhGroups *groups);
extern void gh_groups_reset(GhGroups *groups);
extern Size gh_groups_bytes(const GhGroups *groups);
extern uint32 gh_groups_count(const GhGroups *groups);
extern void gh_groups_find(GhGroups *groups, const GhVectorBatch *batch, const uint16 *key_vectors,
						   uint32 *found);
extern uint32 gh_groups_find_one(GhGroups *groups, const GhSqlValue *keys);
extern GhAggregateState *gh_groups_states(GhGroups *groups);
extern GhSide **gh_groups_side(GhGroups *groups, uint32 group, int aggregate);
extern const GhSide *gh_groups_side_of(const GhGroups *groups, uint32 group, int aggregate);
extern MemoryContext gh_groups_context(GhGroups *groups);
extern GhSqlValue gh_groups_key(const GhGroups *groups, uint32 group, int key);

/*
 * A group as bytes: it means the same in any process and in a file.  Its first 8 bytes are its
 * size, a multiple of 8, the next 8 the hash of its keys; it lies at a multiple of 8.  Several
 * may be merged at once, one behind the other, which is faster.
 */
/* Bytes of groups that a participant leaves to others in shared memory, not in a file. */
#define GH_SHARED_GROUPS_MAX (1024 * 1024)

extern Size gh_group_record_size(const GhGroups *groups, uint32 group);
extern void gh_group_record_write(const GhGroups *groups, uint32 group, char *record);
extern void gh_groups_merge_records(GhGroups *groups, const char *records, Size size);
extern void gh_groups_merge_scan(GhGroups *groups, const char *records, Size size);
extern uint64 gh_group_record_hash(const char *record);
extern uint64 gh_group_hash(const GhGroups *groups, uint32 group);

/* ---- spill.c: groups that do not fit in memory ---- */

extern Size gh_aggregate_memory_limit(void);

/* Room for records, which grows. */
typedef struct GhRecordBuffer
{
	MemoryContext context;
	char	   *data;
	Size		size;
} GhRecordBuffer;

extern char *gh_record_buffer(GhRecordBuffer *buffer, Size size);
extern Size gh_records_read(GhRecordBuffer *buffer, BufFile *file);

typedef struct GhGroupFiles GhGroupFiles;

extern GhGroupFiles *gh_group_files_create(MemoryContext context, Size memory_limit);
extern void gh_group_files_put(GhGroupFiles *files, GhGroups *groups);
extern bool gh_group_files_next(GhGroupFiles *files, GhGroups *groups);
extern uint64 gh_group_files_bytes(const GhGroupFiles *files);
extern void gh_group_files_close(GhGroupFiles *files);

/* ---- pieces.c: groups that a device has returned, each once ---- */

typedef struct GhPieces GhPieces;

extern GhPieces *gh_pieces_create(MemoryContext context);
extern uint64 gh_pieces_put(GhPieces *pieces, char *records, Size size);
extern bool gh_pieces_next(GhPieces *pieces, GhGroups *groups);
extern uint64 gh_pieces_bytes(const GhPieces *pieces);
extern void gh_pieces_close(GhPieces *pieces);

/* ---- target.c: what a grouping computes, and whether the engines can ---- */

/* Expressions over the input's columns. */
typedef struct GhGrouping
{
	List	   *keys;			/* what comes out and is no aggregate is one, too */
	List	   *aggregates;		/* Aggrefs that differ */
	const char *why_not;		/* what the engines have not, where they have not all */
	Expr	   *why_expr;		/* the key, aggregate, argument or condition that it is about; or NULL */
} GhGrouping;

/* Where the rows come from. */
typedef struct GhGroupingInput
{
	Index		varno;			/* of the columns, and their row type */
	TupleDesc	desc;
	List	   *columns;		/* expressions that are the columns; NIL: they are Vars of varno */
	List	   *quals;			/* of the rows */
} GhGroupingInput;

extern bool gh_grouping_collect(PlannerInfo *root, RelOptInfo *grouped, GroupPathExtraData *extra,
								GhGrouping *grouping);
extern Expr *gh_aggregate_argument(Aggref *aggref);
extern bool gh_grouping_translates(GhGrouping *grouping, const GhGroupingInput *input,
								   int *ninstructions);

/* ---- path.c, plan.c ---- */

/* custom_private of the CustomPath. */
typedef enum GhAggregatePathPrivate
{
	GH_AGGREGATE_PATH_KEYS,		/* as of GhGrouping */
	GH_AGGREGATE_PATH_AGGREGATES,
	GH_AGGREGATE_PATH_HAVING,	/* quals of the groups */
	GH_ROWS_PATH_COSTS			/* of a GpuHashRows alone: its own, as of gh_costs_list() */
} GhAggregatePathPrivate;

/*
 * The scan tuple: the child's columns, then keys that are none of these, then the aggregates.
 * custom_private, element by element.
 */
typedef enum GhAggregatePrivate
{
	GH_AGGREGATE_PRIVATE_COLUMNS,	/* Integer: the child's columns */
	GH_AGGREGATE_PRIVATE_KEYS,	/* IntList: by key, the scan column where its value goes, from 0 */
	GH_AGGREGATE_PRIVATE_FIRST, /* Integer: the first aggregate's scan column, from 0 */
	GH_AGGREGATE_PRIVATE_FUNCTIONS	/* OidList: by aggregate, PostgreSQL's function */
} GhAggregatePrivate;

/* custom_exprs, element by element: each a list, over the child's columns. */
typedef enum GhAggregateExprs
{
	GH_AGGREGATE_EXPRS_KEYS,	/* by key */
	GH_AGGREGATE_EXPRS_ARGUMENTS,	/* by aggregate; a NULL Const for count(*) */
	GH_AGGREGATE_EXPRS_FILTERS	/* by aggregate; a true Const where there is none */
} GhAggregateExprs;

extern const CustomScanMethods gh_aggregate_scan_methods;
extern const CustomScanMethods gh_rows_scan_methods;
extern Plan *gh_aggregate_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path,
							   List *tlist, List *clauses, List *custom_plans);
/*
 * Of a GpuHashRows: its keys are columns of the child, and there are no aggregates.  Columns that are no keys are of
 * tables whose tuples are fetched (fetch.c).
 */
extern Plan *gh_rows_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
						  List *clauses, List *custom_plans);

#endif							/* GPUHASH_AGGREGATE_NODE_H */
