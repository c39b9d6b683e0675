/*
 * join.h
 *		GpuHashJoin: what the planner's half hands to the executor's half, and
 *		what the executor's files share.
 */
#ifndef GPUHASH_JOIN_H
#define GPUHASH_JOIN_H

#include "postgres.h"

#include "access/htup.h"
#include "access/parallel.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "portability/instr_time.h"
#include "port/atomics.h"
#include "storage/buffile.h"
#include "utils/dsa.h"

#include "compat.h"
#include "engine/pipeline/pipeline.h"
#include "expr/key.h"
#include "fragment/lower.h"
#include "fragment/stage.h"
#include "gpuhash.h"
#include "hash.h"
#include "heap/copies.h"
#include "plan/join_plan.h"
#include "store/index_copies.h"

/* ---- rows.c: rows as the join keeps them ---- */

/* Columns of one child that the join keeps. */
typedef struct GhColumns
{
	int			ncolumns;
	int		   *attnos;			/* in the child's slot, from 1 */
	int16	   *typlens;
	bool	   *typbyvals;
	bool		all_byval;
	int			max_attno;		/* what to deform, keys included */
	Size		nulls_size;		/* bytes of a row's null flags, aligned */
} GhColumns;

/*
 * Where a stored row is, in whichever process: the number of its chunk and, in the lower
 * half, its offset there, a multiple of 8.  0: none.
 */
typedef uint64 GhRowRef;

#define GH_REF_SHIFT 32

/*
 * The same in 4 bytes, for chunks up to a number: that, and the offset in units of 8 bytes.
 * A row beyond that offset is in a chunk of its own, at its start.
 */
#define GH_NARROW_SHIFT 22
#define GH_NARROW_CHUNKS_MAX (UINT32_MAX >> GH_NARROW_SHIFT)

static inline uint32
gh_narrow_ref(GhRowRef ref)
{
	return (uint32) (ref >> GH_REF_SHIFT) << GH_NARROW_SHIFT | (uint32) ref / 8;
}

static inline GhRowRef
gh_widened_ref(uint32 narrow)
{
	return (GhRowRef) (narrow >> GH_NARROW_SHIFT) << GH_REF_SHIFT |
		(narrow & ((1 << GH_NARROW_SHIFT) - 1)) * 8;
}

/*
 * A stored inner row: this header, ncolumns null flags (one byte each, padded
 * to 8), ncolumns Datums, and the by-reference values, of which the Datums are the
 * offsets from the row's start.  So a row can be copied as bytes.
 */
typedef struct GhRow
{
	uint64		link;			/* GhRowRef of the next row with the same key; its low bits
								 * are flags */
	uint64		key;			/* kept to build the table again elsewhere */
} GhRow;

StaticAssertDecl(sizeof(GhRow) == GH_ROW_HEADER_BYTES, "header of a row");

#define GH_ROW_MATCHED UINT64CONST(1)	/* an outer row matched it */
#define GH_ROW_KEYLESS UINT64CONST(2)	/* a key column is NULL: in no chain, and key is
										 * any number */
#define GH_ROW_NULLS UINT64CONST(4)	/* a kept column is NULL */
#define GH_ROW_FLAGS (GH_ROW_MATCHED | GH_ROW_KEYLESS | GH_ROW_NULLS)

static inline GhRowRef
gh_row_next(const GhRow *row)
{
	return row->link & ~GH_ROW_FLAGS;
}

static inline void
gh_row_set_next(GhRow *row, GhRowRef next)
{
	row->link = (row->link & GH_ROW_FLAGS) | next;
}

static inline bool
gh_row_is_matched(const GhRow *row)
{
	return (row->link & GH_ROW_MATCHED) != 0;
}

static inline bool
gh_row_has_key(const GhRow *row)
{
	return (row->link & GH_ROW_KEYLESS) == 0;
}

static inline bool *
gh_row_nulls(GhRow *row)
{
	return (bool *) (row + 1);
}

static inline Datum *
gh_row_values(const GhColumns *columns, GhRow *row)
{
	return (Datum *) ((char *) (row + 1) + columns->nulls_size);
}

/* A row's column, not NULL, as it is while the row lies there. */
static inline Datum
gh_row_datum(const GhColumns *columns, GhRow *row, int column)
{
	Datum		value = gh_row_values(columns, row)[column];

	return columns->typbyvals[column] ? value : PointerGetDatum((char *) row + value);
}

/* The columns of a row, which has to stay where it is while they are used. */
static inline void
gh_row_load(const GhColumns *columns, GhRow *row, bool *nulls, Datum *values)
{
	const bool *row_nulls = gh_row_nulls(row);

	for (int i = 0; i < columns->ncolumns; i++)
	{
		nulls[i] = row_nulls[i];
		values[i] = gh_row_datum(columns, row, i);
	}
}

typedef struct GhRowChunk
{
	uint32		number;			/* in refs, from 1 */
	dsa_pointer shared;			/* where it is in dynamic shared memory, if it is */
	Size		used;			/* bytes, whole rows */
	Size		size;
} GhRowChunk;

typedef struct GhRowStore
{
	MemoryContext context;
	dsa_area   *area;			/* NULL: chunks are in the context */
	pg_atomic_uint32 *last_number;	/* of all the stores that share the area */
	const GhColumns *columns;
	Size		chunk_max;		/* largest chunk, but for a row that is larger */
	uint32		nchunks;
	uint32		max_chunks;
	GhRowChunk *chunks;			/* of this store's own rows, in order */
	uint32		max_bases;
	char	  **base;			/* by chunk number: where it starts */
	uint64		nrows;
	uint64		nkeys;			/* rows that have a key */
	bool		has_nulls;		/* some row has a NULL in a kept column */
	Size		bytes;			/* of chunks */
	Size		bytes_peak;
} GhRowStore;

static inline GhRow *
gh_row_at(const GhRowStore *store, GhRowRef ref)
{
	return (GhRow *) (store->base[ref >> GH_REF_SHIFT] + (uint32) ref);
}

/* Bytes of chunks, less what is still free in the last one. */
static inline Size
gh_row_store_taken(const GhRowStore *store)
{
	const GhRowChunk *last;

	if (store->nchunks == 0)
		return 0;
	last = &store->chunks[store->nchunks - 1];
	return store->bytes - (last->size - last->used);
}

/* Where a reader of the store stands. */
typedef struct GhRowCursor
{
	uint32		chunk;
	Size		offset;
	GhRowRef	ref;			/* of the row that was read last */
} GhRowCursor;

extern void gh_columns_init(GhColumns *columns, int nattnos, const int *attnos, TupleDesc desc);
extern void gh_row_store_init(GhRowStore *store, MemoryContext context,
							  const GhColumns *columns, Size memory_limit);
extern void gh_row_store_share(GhRowStore *store, dsa_area *area, pg_atomic_uint32 *last_number);
extern void gh_row_store_map(GhRowStore *store, const GhRowChunk *chunks, uint32 nchunks);
extern void gh_row_store_reset(GhRowStore *store);
extern void gh_row_store_forget(GhRowStore *store);
extern void gh_row_store_free_chunk(GhRowStore *store, int chunk);
extern void gh_row_store_add_slot(GhRowStore *store, TupleTableSlot *slot, uint64 key, bool has_key);
extern void gh_row_store_add_row(GhRowStore *store, GhRow *row);
extern GhRow *gh_row_store_next(const GhRowStore *store, GhRowCursor *cursor);

extern Size gh_row_size_of_slot(const GhColumns *columns, TupleTableSlot *slot);
extern void gh_row_form(const GhColumns *columns, TupleTableSlot *slot, uint64 key,
						bool has_key, GhRow *row);
/* Bytes of a row up to its by-reference values. */
static inline Size
gh_row_fixed_size(const GhColumns *columns)
{
	return sizeof(GhRow) + columns->nulls_size + columns->ncolumns * sizeof(Datum);
}

extern Size gh_row_size(const GhColumns *columns, GhRow *row);

/* Copies the kept columns of a slot; by-reference values go to arena. */
extern Size gh_columns_copy(const GhColumns *columns, TupleTableSlot *slot,
							bool *nulls, Datum *values, MemoryContext arena);

/* ---- carry.c: inner columns as values of the table, and how wide its entries are ---- */

/* A value of the table: columns, and where there is room for it a byte of null flags. */
typedef union GhCarried
{
	uint64		value;
	uint32		narrow;			/* the value where it has 4 bytes */
	char		bytes[sizeof(uint64)];
} GhCarried;

#define GH_CARRY_MAX ((int) sizeof(uint64))
#define GH_CARRY_NULLS (GH_CARRY_MAX - 1)	/* the byte of null flags */
#define GH_CARRY_NARROW_MAX ((int) sizeof(uint32))
#define GH_CARRY_NARROW_NULLS (GH_CARRY_NARROW_MAX - 1)

typedef struct GhCarry
{
	/* as the plan has it */
	bool		possible;		/* nothing more of an inner row is needed than fits a value */
	bool		needs_columns;	/* and then only where each key has one row; else a value just
								 * says that there is a row */
	int			used;			/* bytes of the columns in a value */
	int			offsets[GH_CARRY_MAX];	/* by kept inner column: bytes from a value's start */

	/* of the table that there is, or is being made */
	bool		in_use;			/* its values are columns; else GhRowRefs */
	bool		narrow;			/* its keys and values have 4 bytes; else 8 */
	bool		has_nulls;		/* values that are columns have null flags */
	bool		refused;		/* while rows are entered: they cannot be */
	uint64		absent;			/* what is found where there is no row; 0 for GhRowRefs */
} GhCarry;

/* ---- probed.c: a table that the node above probes ---- */

/* Such a table is one that a pipeline makes (../engine/pipeline/pipeline.h). */
typedef struct GhProbed
{
	GhProgram  *program;		/* vector 0 is the key of a stored row, 1 + c the kept inner column c */
	uint16		key_vector;		/* of a row's key: 0, or of the key columns' code */
	GhStep		step;			/* its only one: makes that code */
	GhKept	   *kept;			/* by kept inner column: the table's values */
	Size		row_bytes;		/* of memory */
	bool	   *by_ref;			/* by kept inner column: no pipeline reads it, and the table has the row's GhRowRef in
								 * its place */
	bool		has_refs;		/* some are so: rows are stored, and stay */
	bool		wanted;			/* in this run, the node above asks for it */
	GhTable    *table;			/* NULL: there is none */
	bool		of_pages;		/* and then, its rows are not stored */
	struct GhProbedFile *file;	/* of its rows, which were put into it as they came; NULL: they were not */
	struct GhProbedReader *reader;	/* of the pages that it is made of, by all participants; NULL: it cannot be */

	/* it is the copy of an index (probed_copy.c) */
	GhCopyHold	copy;
	struct GhKeyFilter *filter; /* of keys of which rows are elsewhere; or NULL */
	GhTable    *instead;		/* all rows of the keys that it may have; or NULL */
} GhProbed;

/* What EXPLAIN shows of the use of an index's copy. */
typedef struct GhCopyUse
{
	bool		used;
	uint64		copy_blocks;	/* of the table, of which the rows came from the copy */
	uint64		heap_blocks;	/* of which they did not */
	uint64		heap_rows;		/* that were on them */
	double		made_ms;		/* it was made first, in this time */
	const char *why_not;		/* it was asked for, and is not used; else NULL */
} GhCopyUse;

/* ---- spill.c: rows that do not fit in memory ---- */

/* Rows of both sides are partitioned by key.  One partition at a time is joined in memory; later rows wait in files. */
typedef struct GhSpill
{
	MemoryContext context;
	int			nparts;			/* a power of two; 1: everything fits */
	int			current;		/* the partition being joined */
	Size		grow_at;		/* bytes; splitting did not help: wait for so many */
	BufFile   **files[2];		/* by side and partition; NULL: no rows */
	int		   *born[2];		/* by side and partition: nparts when it was made */
	char	   *buffer;			/* of one row */
	Size		buffer_size;
	uint64		bytes_written;
} GhSpill;

#define GH_PARTITIONS_MAX 4096

/* ---- exec.c: the node's state ---- */

typedef enum GhJoinPhase
{
	GH_JOIN_START,				/* nothing read, or the table is to be reused */
	GH_JOIN_FETCH,				/* the next batch is to be filled or awaited */
	GH_JOIN_EMIT,				/* a probed batch is being emitted */
	GH_JOIN_UNMATCHED,			/* and then the inner rows that nothing matched */
	GH_JOIN_DONE
} GhJoinPhase;

/*
 * A batch of outer rows.  keys and found belong to the engine from submit until
 * the request is no longer busy.
 */
typedef struct GhBatch
{
	int			capacity;		/* rows the arrays hold */
	int			nrows;
	int			nprobes;		/* rows with a key */
	bool	   *has_key;		/* by row; NULL keys are not sent to the engine */
	bool	   *nulls;			/* by row and kept column */
	Datum	   *values;			/* likewise */
	MemoryContext arena;		/* by-reference values */
	bool		narrow;			/* keys have 4 bytes, and until the outcome is taken so has found */
	bool		as_tuples;		/* the rows are in tuples, not in nulls and values */
	HeapTupleHeader *tuples;	/* by row; of a source */
	GhTupleCopies copies;		/* where they lie */
	uint64	   *keys;			/* by probe, in words as narrow says; start of the block that
								 * holds both */
	uint64	   *found;			/* by probe: GhRowRef of the first match, or the match's
								 * columns (GhCarry); GhCarry.absent for none */
	bool		in_transfer;	/* they are in GhJoinState.transfer */
	GhRequest	request;
	GhStatus	submitted;		/* what submit said: GH_OK, GH_BUSY or an error */
	bool		pending;		/* submitted, outcome not yet taken */
} GhBatch;

typedef struct GhJoinState
{
	CustomScanState css;		/* must be first */

	/* what the plan says */
	JoinType	jointype;
	bool		single_match;	/* stop at an outer row's first match */
	bool		emits_pairs;	/* matches come out, not just what has none */
	bool		fill_outer;		/* outer rows without a match come out */
	bool		fill_inner;		/* inner rows without a match come out */
	bool		marks_inner;	/* rows remember that they were matched */
	bool		once_per_inner; /* of an inner row, the first match is enough */
	bool		keys_repeat;	/* inner rows are expected to share keys */
	bool		is_plain;		/* as planned: a node above may probe a table of its rows */
	bool		is_coded;		/* and then, by a code of its keys, which are not exact (lower.h) */
	bool		keys_are_short; /* exact, and of 32 bits at most */
	bool		looks_at_inner;	/* what a match is, or a joined row, depends on more of
								 * the inner row than that it is there */
	int			nkept[2];		/* scan columns of either side that rows hold */
	int			ncopies;		/* scan columns after those that repeat one */
	int		   *copy_sources;	/* by copy: the scan column that it repeats */
	int			nscan;			/* columns of the scan tuple */
	int		   *scan_sides;		/* by scan column */
	int		   *scan_attnos;	/* by scan column: in the child's slot */
	GhColumns	columns[2];		/* by side */
	GhKeySide	keys[2];		/* by side */
	struct GhSource *source[2]; /* by side; NULL: rows come through the executor */
	struct GhPipe *pipe;		/* of the outer side, when it is such a join; or NULL */
	ExprState  *recheck;		/* hash clauses, or NULL when keys are exact */
	ExprState  *joinqual;		/* NULL: none */
	List	   *hash_clauses;	/* for EXPLAIN */
	List	   *join_quals;		/* for EXPLAIN */

	/* the inner side */
	MemoryContext context;		/* of all below; its reset callback gives back
								 * what the engines hold */
	MemoryContextCallback cleanup;
	Size		memory_limit;	/* bytes for rows and table */
	Size		table_bytes_per_row;	/* what of them the table will need, with wide entries */
	GhRowStore	store;			/* rows of the current partition */
	GhSpill		spill;
	GhCarry		carry;
	uint64		inner_rows;		/* read so far, all partitions */
	bool		stored;			/* they were read for a node above, and are in the store and the partitions */
	bool		built;
	const GhEngine *engine;
	GhHost		host;
	GhTable    *table;			/* NULL: no inner rows */
	bool		table_shared;	/* it is all participants' */
	struct GhParallel *parallel;	/* NULL: this process joins alone */
	const GhEngine *transfer_engine;	/* whose the buffers are; NULL: there are none */
	void	   *transfer[2];	/* for the arrays of either batch, and to build */
	Size		transfer_bytes; /* of each */

	/* the outer side */
	GhJoinPhase phase;
	GhProbed   *probed;			/* what a node above may probe; NULL: nothing */
	Oid			index;			/* whose copy may be the table; InvalidOid: none */
	GhCopyUse	copy_use;
	GhLowerJoin lower;			/* the join as that one sees it */
	GhRowCursor given;			/* the stored row that it was given last */
	TupleTableSlot *first_outer;	/* read ahead of the build, or NULL */
	bool		outer_done;		/* no more outer rows for this partition */
	int			batch_rows;		/* rows of the next batch */
	int			batch_rows_max; /* of any batch */
	GhBatch		batch[2];
	int			current;		/* the batch being emitted */
	bool		ahead;			/* the other one is filled and submitted */

	/* emission */
	int		   *output_columns; /* by output column, that of the scan tuple; NULL: the output
								 * is more than columns */
	bool		evaluates;		/* there are quals, or expressions in the output */
	int			prefetch_span;	/* bytes from a row's start to what else is fetched early */
	GhRowCursor unmatched;		/* the next inner row to try */
	int			row;			/* in the current batch */
	int			probe;			/* likewise; rows without a key have none */
	GhRowRef	match;			/* next inner row to try for it */
	bool		row_open;		/* its first match was looked up */
	bool		row_loaded;		/* its columns are in the scan tuple */
	bool		row_matched;

	/* for EXPLAIN */
	bool		timing;
	bool		ran_parallel;	/* in the leader: what follows is of all participants */
	bool		carried;		/* some table's values were columns */
	int			partitions_peak;
	uint64		nbatches;
	uint64		removed_by_join_filter;
	const char *engine_reason;	/* why engine = auto did not take CUDA, or NULL */
	char		fallback_reason[GH_MESSAGE_SIZE];	/* empty: none */
	GhTableStats stats;			/* of the table when it was last there */
	uint64		table_bytes_peak;	/* over all tables */
	instr_time	source_time;
	instr_time	build_time;
	instr_time	wait_time;
} GhJoinState;

static inline PlanState *
gh_child(const GhJoinState *js, int side)
{
	return side == GH_OUTER ? outerPlanState(js) : innerPlanState(js);
}

/* exec.c */
extern void gh_join_register(void);
extern GhJoinState *gh_as_join(PlanState *ps);
extern bool gh_join_advance(GhJoinState *js);
extern bool gh_join_asks_outer_first(GhJoinState *js);
extern bool gh_join_open_for_probes(GhJoinState *js, bool on_host);
extern void gh_join_return_rows(GhJoinState *js);
extern void gh_join_close_for_probes(GhJoinState *js);
extern bool gh_join_store_inner(GhJoinState *js);

/* lower.c */
extern void gh_lower_init(GhJoinState *js);
extern GhLowerJoin *gh_lower_of(PlanState *ps);

/* emit.c: the scan tuple, joined rows */
extern bool gh_row_key(GhJoinState *js, int side, TupleTableSlot *slot, uint64 *key);
extern void gh_emit_init(GhJoinState *js);
extern void gh_emit_start(GhJoinState *js);
extern bool gh_emit_row(GhJoinState *js);
extern void gh_emit_unmatched_start(GhJoinState *js);
extern bool gh_emit_unmatched(GhJoinState *js);
extern TupleTableSlot *gh_emit_project(GhJoinState *js);
extern void gh_unmark_rows(GhJoinState *js);

/* The node above reads the outer side in this one's place. */
static inline bool
gh_is_probed_above(const GhJoinState *js)
{
	return js->probed != NULL && js->probed->wanted;
}

/* It is not to have that table: the rows leave no memory for it. */
static inline void
gh_probed_do_without(GhJoinState *js)
{
	if (js->probed != NULL)
		js->probed->wanted = false;
}

/* carry.c */
extern void gh_carry_init(GhJoinState *js);
extern bool gh_entries_fit_narrow(const GhJoinState *js);
extern void gh_carry_use(GhJoinState *js, bool in_use, bool narrow, uint64 absent);
extern void gh_carry_start(GhJoinState *js);
extern void gh_carry_stop(GhJoinState *js);
extern bool gh_carry_pack(const GhJoinState *js, GhRow *row, uint64 *value);

/* Bytes of a key of the table, and of a value. */
static inline Size
gh_word_size(const GhJoinState *js)
{
	return js->carry.narrow ? sizeof(uint32) : sizeof(uint64);
}

/* Keys and values in the arrays of requests. */
static inline void
gh_word_set(bool narrow, void *array, uint64 i, uint64 word)
{
	if (narrow)
		((uint32 *) array)[i] = (uint32) word;
	else
		((uint64 *) array)[i] = word;
}

static inline uint64
gh_word(bool narrow, const void *array, uint64 i)
{
	return narrow ? ((const uint32 *) array)[i] : ((const uint64 *) array)[i];
}

/* The table's value for a row: where it is, or its columns; false: these cannot be. */
static inline bool
gh_table_value(const GhJoinState *js, GhRow *row, GhRowRef ref, uint64 *value)
{
	if (js->carry.in_use)
		return gh_carry_pack(js, row, value);
	*value = js->carry.narrow ? gh_narrow_ref(ref) : ref;
	return true;
}

/* And back, where it is not columns. */
static inline GhRowRef
gh_value_ref(bool narrow, uint64 value)
{
	return narrow ? gh_widened_ref((uint32) value) : value;
}

/* What of the memory a row with a key takes, or is going to, for a table with such entries. */
static inline Size
gh_table_bytes_of_row(const GhJoinState *js, bool narrow)
{
	if (gh_is_probed_above(js))
		return js->probed->row_bytes;
	return narrow ? (js->table_bytes_per_row + 1) / 2 : js->table_bytes_per_row;
}

/* probed.c, probed_pages.c: a table for the node above */
extern bool gh_probed_init(GhJoinState *js, const bool *read);
extern bool gh_probed_try(GhJoinState *js, GhStatus (*attempt) (GhJoinState *js, MemoryContext context));
extern bool gh_probed_make(GhJoinState *js);
extern bool gh_probed_read(GhJoinState *js);
extern bool gh_probed_may_read_together(GhJoinState *js);
extern bool gh_probed_share_pages(GhJoinState *js, GhRef *root);
extern bool gh_probed_fill_pages(GhJoinState *js, GhRef root);
extern void gh_probed_tell_pages(GhJoinState *js);
extern void gh_probed_forget_pages(GhJoinState *js);
extern bool gh_probed_may_fit(const GhJoinState *js);
extern bool gh_probed_enter_stored(GhJoinState *js, GhStage *stage, MemoryContext context);
extern void gh_probed_drop(GhJoinState *js);
extern void gh_probed_sink(const GhJoinState *js, uint64 rows, GhSink *sink);
extern GhStatus gh_probed_take(GhJoinState *js, GhStage *stage);
extern bool gh_probed_share_sink(GhJoinState *js, const GhPipelineOptions *options, GhRef *root);
extern bool gh_probed_fill_sink(GhJoinState *js, const GhPipelineOptions *options,
								bool (*enter) (GhJoinState *js, GhStage *stage, MemoryContext context));
extern bool gh_probed_share(GhJoinState *js, GhRef *root);
extern bool gh_probed_pass(GhJoinState *js);
extern bool gh_probed_share_passed(GhJoinState *js, GhRef *root);
extern bool gh_probed_fill_passed(GhJoinState *js, GhRef root);
extern void gh_probed_unshare(GhJoinState *js, GhRef root);
extern bool gh_probed_fill(GhJoinState *js, GhRef root);
extern bool gh_probed_begin(GhJoinState *js, GhRef root);
extern void gh_probed_enter(GhJoinState *js, GhRef root);
extern void gh_probed_attach(GhJoinState *js, GhRef root);

/* probed_rows.c: such a table of rows that are put into it as they come */
extern bool gh_probed_takes_rows(const GhJoinState *js);
extern bool gh_probed_pass_rows(GhJoinState *js, GhStage *stage, MemoryContext context);
extern void gh_probed_forget_rows(GhJoinState *js);
extern void gh_probed_take_rows_back(GhJoinState *js);

/* probed_copy.c: the copy of an index as such a table */
extern bool gh_probed_copy(GhJoinState *js);
extern void gh_probed_copy_drop(GhJoinState *js);

/* build.c: the inner side's rows and table */
extern void gh_join_build(GhJoinState *js);
extern void gh_join_make_table(GhJoinState *js);
extern TupleTableSlot *gh_next_row(GhJoinState *js, int side, uint64 *key, bool *has_key);
extern void gh_join_read_inner(GhJoinState *js);
extern void gh_join_store_row(GhJoinState *js, GhRow *row);
extern bool gh_next_partition(GhJoinState *js);
extern GhStatus gh_join_open_table(GhJoinState *js, uint64 keys, GhError *error);
extern GhStatus gh_join_enter_rows(GhJoinState *js, GhError *error);
extern void gh_join_take_stats(GhJoinState *js);
extern void gh_join_close_table(GhJoinState *js);
extern void gh_join_drop_table(GhJoinState *js);
extern void gh_join_drop_inner(GhJoinState *js);
extern void gh_join_report_failure(GhJoinState *js, const GhError *error);
extern void gh_join_fall_back(GhJoinState *js, const GhError *error);

/* spill.c */
/* Bits of a key to part rows by: not those that the engines' hash functions favour. */
static inline uint64
gh_partition_bits(uint64 key)
{
	return gh_mix64(key ^ UINT64CONST(0x8ebc6af09c88c6e3));
}

/* The partition of a key.  Asked for every row, nearly always without partitions. */
static inline int
gh_spill_partition(const GhSpill *spill, uint64 key)
{
	if (spill->nparts == 1)
		return 0;
	return (int) (gh_partition_bits(key) & (spill->nparts - 1));
}

extern GhRow *gh_spill_form(GhJoinState *js, int side, TupleTableSlot *slot,
							uint64 key, bool has_key, Size *size);
extern void gh_spill_write(GhJoinState *js, BufFile *file, GhRow *row, Size size);
extern GhRow *gh_spill_read_file(GhJoinState *js, BufFile *file);
extern bool gh_spill_has_file(const GhSpill *spill, int side, int partition);
extern bool gh_spill_may_have_rows(const GhSpill *spill, int side, int partition);
extern void gh_spill_slot(GhJoinState *js, int side, int partition,
						  TupleTableSlot *slot, uint64 key, bool has_key);
extern void gh_spill_row(GhJoinState *js, int side, int partition, GhRow *row);
extern GhRow *gh_spill_read(GhJoinState *js, int side);
extern void gh_spill_rewind(GhJoinState *js);
extern void gh_spill_skip(GhJoinState *js);
extern void gh_spill_keep_within_memory(GhJoinState *js);
extern void gh_spill_close_current(GhSpill *spill);
extern void gh_spill_reset(GhSpill *spill);

/* batch.c: the outer side's batches */
extern void gh_batch_init(GhJoinState *js);
extern bool gh_outer_has_row(GhJoinState *js);
extern bool gh_next_batch(GhJoinState *js);
extern void gh_forget_batches(GhJoinState *js);
extern bool gh_take_transfer(GhJoinState *js);
extern void gh_leave_transfer(GhJoinState *js);
extern void gh_free_transfer(GhJoinState *js);

/* parallel.c, parallel_table.c, parallel_spill.c: the join of all participants */
extern Size gh_parallel_estimate(CustomScanState *node, ParallelContext *pcxt);
extern void gh_parallel_init(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
extern void gh_parallel_reinit(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
extern void gh_parallel_init_worker(CustomScanState *node, shm_toc *toc, void *coordinate);
extern void gh_parallel_shutdown(CustomScanState *node);
extern void gh_parallel_rescan(GhJoinState *js);
extern void gh_parallel_forget(GhJoinState *js);
extern GhJoinPhase gh_parallel_start(GhJoinState *js);
extern bool gh_parallel_probed(GhJoinState *js);
extern void gh_parallel_fall_back(GhJoinState *js);
extern void gh_parallel_host(GhJoinState *js);
extern void gh_parallel_abandon(GhJoinState *js);
extern const GhEngine *gh_parallel_choose_engine(GhJoinState *js);
extern bool gh_parallel_in_files(const GhJoinState *js);
extern uint64 gh_parallel_keys(const GhJoinState *js);
extern void gh_parallel_entries(const GhJoinState *js, bool *has_nulls, uint32 *nchunks);
extern void gh_parallel_store_slot(GhJoinState *js, TupleTableSlot *slot, uint64 key,
								   bool has_key);
extern void gh_parallel_store_row(GhJoinState *js, GhRow *row);
extern GhRow *gh_parallel_read(GhJoinState *js, int side);
extern bool gh_parallel_next_partition(GhJoinState *js);

/* explain.c */
extern void gh_join_explain(CustomScanState *node, List *ancestors, ExplainState *es);

/* What of the node's time went where. */
static inline void
gh_time_start(const GhJoinState *js, instr_time *start)
{
	INSTR_TIME_SET_ZERO(*start);
	if (js->timing)
		INSTR_TIME_SET_CURRENT(*start);
}

static inline void
gh_time_stop(const GhJoinState *js, instr_time *sum, instr_time start)
{
	if (js->timing)
	{
		instr_time	now;

		INSTR_TIME_SET_CURRENT(now);
		INSTR_TIME_ACCUM_DIFF(*sum, now, start);
	}
}

#endif							/* GPUHASH_JOIN_H */
