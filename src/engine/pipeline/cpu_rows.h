/*
 * cpu_rows.h
 *		The rows of a table that a pipeline made on the CPU, and probes of such tables.
 *
 * A row has a number, from 0 on, and lies in a chunk at a place that follows from it.  The table's
 * values are, by key, the number of the key's first row, and 1; rows of one key are linked.  Where all
 * that rows keep fits in a value, and each key has one row that matters, the values are carried in the
 * table itself, and the rows are gone.
 */
#ifndef GPUHASH_CPU_ROWS_H
#define GPUHASH_CPU_ROWS_H

#include "engine/pipeline/cpu_blocks.h"
#include "engine/pipeline/pipeline.h"

/* The head of a row.  Behind it lie its null bits, one for each value and two more, and the values, without gaps. */
typedef struct GhCpuRow
{
	uint64_t	next;			/* the number of the next row with the key, and 1; 0: there is none */
	uint64_t	key;
} GhCpuRow;

/* Blocks by number. */
typedef struct GhCpuBlocks
{
	uint32_t	count;
	uint32_t	room;
	GhCpuBlock *blocks;			/* malloc()ed */
	char	  **bases;			/* likewise: where they are in this process */
} GhCpuBlocks;

/*
 * A row has a text as two words: where it is, and its bytes.  Where is the number of a block of texts, above, and
 * the offset there; 0: the text is empty.  A block begins with its number, in 8 bytes.
 */
#define GH_CPU_TEXT_SHIFT 40
#define GH_CPU_TEXT_BLOCKS_MAX (UINT64_C(1) << (64 - GH_CPU_TEXT_SHIFT))

typedef struct GhCpuRows
{
	GhCpuSinkMemory memory;		/* of chunks and texts */
	GhTableShape shape;
	uint32_t	row_bytes;
	uint32_t	chunk_shift;	/* a chunk has 2 to the power of it rows */
	uint16_t	offsets[GH_TABLE_KEPT_MAX];	/* bytes from a row's start to its values */
	uint64_t	count;
	uint64_t	nkeyless;		/* of them */
	GhCpuBlocks chunks;
	GhCpuBlocks texts;
	uint64_t	text_at;		/* bytes used of the last one */
	bool		any_null;		/* some value is NULL */
	bool		any_back;		/* a match with some row hands back */
	struct GhCpuSharedRows *shared; /* several processes fill the table; NULL: this one alone */
	GhRef		root;			/* of those */
	bool		finished;		/* this process adds no more rows to them */
	bool		linked;			/* the making of an index was stopped, and rows may still be linked as in that one */

	/* the index, once the table was made; NULL: no row has a key */
	GhTable    *index;
	bool		carried;		/* its values are the rows' values */
	bool		carries_nulls;	/* and the last byte the null bits */
	uint8_t		carry_offsets[sizeof(uint64_t)];	/* by value: bytes */
} GhCpuRows;

/* Bytes of a value in a row, or carried. */
static inline uint32_t
gh_cpu_kept_bytes(const GhKept *kept)
{
	switch (kept->value_class)
	{
		case GH_CLASS_BOOL:
			return 1;
		case GH_CLASS_INT:
			return kept->bytes;
		case GH_CLASS_INT128:
		case GH_CLASS_TEXT:
			return 16;
		default:
			return 8;
	}
}

static inline char *
gh_cpu_row(const GhCpuRows *rows, uint64_t number)
{
	return rows->chunks.bases[number >> rows->chunk_shift] +
		(number & ((UINT64_C(1) << rows->chunk_shift) - 1)) * rows->row_bytes;
}

static inline const char *
gh_cpu_row_text(const GhCpuRows *rows, uint64_t where)
{
	if (where == 0)
		return "";
	return rows->texts.bases[where >> GH_CPU_TEXT_SHIFT] + (where & ((UINT64_C(1) << GH_CPU_TEXT_SHIFT) - 1));
}

static inline bool
gh_cpu_row_bit(const char *row, uint32_t bit)
{
	return ((uint8_t) row[sizeof(GhCpuRow) + bit / 8] >> bit % 8 & 1) != 0;
}

/* Behind the bits of values is that of a row without a key, and behind it this one. */
static inline bool
gh_cpu_row_hands_back(const GhCpuRows *rows, uint64_t number)
{
	return rows->any_back && gh_cpu_row_bit(gh_cpu_row(rows, number), rows->shape.nkept + 1);
}

/* Rows of a batch, by their numbers there. */
typedef struct GhCpuPicks
{
	uint32_t	n;
	uint16_t	rows[GH_VECTOR_ROWS];
} GhCpuPicks;

extern GhCpuRows *gh_cpu_rows_create(const GhHost *host, const GhTableSink *sink, uint64_t memory_limit, GhError *error);
extern void gh_cpu_rows_drop(GhCpuRows *rows);
/* Gives rows and texts back. */
extern void gh_cpu_rows_free(GhCpuRows *rows);
extern uint64_t gh_cpu_rows_text_bytes(const GhTableSink *sink, const GhVectorBatch *batch, const GhCpuPicks *picks);
/* Room for so many more rows, and bytes of their texts; false: there is no memory. */
extern bool gh_cpu_rows_reserve(GhCpuRows *rows, uint64_t n, uint64_t text_bytes);
/* Adds them; key and keyless by pick. */
extern void gh_cpu_rows_add(GhCpuRows *rows, const GhTableSink *sink, const GhVectorBatch *batch,
							const GhCpuPicks *picks, const uint64_t *keys, const uint8_t *keyless);
/* The rows of a table that a pipeline made. */
extern const GhCpuRows *gh_cpu_rows_of(const GhTable *table);
/* Bytes of a table, without its rows. */
extern uint64_t gh_cpu_index_bytes(const GhTable *table);
extern bool gh_cpu_table_describe(const GhTable *table, GhTableShape *shape);

/* The value `kept` of rows of these numbers, into a vector at the picks. */
extern void gh_cpu_rows_load(const GhCpuRows *rows, uint32_t kept, const uint64_t *numbers, const GhVector *vector,
							 const GhCpuPicks *picks);
/* The same out of values that are carried. */
extern void gh_cpu_carried_load(const GhCpuRows *rows, uint32_t kept, const uint64_t *values, const GhVector *vector,
								const GhCpuPicks *picks);

/* ---------------------------------------------- the index: cpu_rows_index.c */

/* Rows on their way into the index, so many at a time. */
typedef struct GhCpuPiece
{
	uint32_t	room;
	uint64_t   *keys;
	uint64_t   *values;
	uint64_t   *before;			/* what an exchange replaced */
	uint64_t   *numbers;
} GhCpuPiece;

extern GhCpuPiece *gh_cpu_piece_create(uint32_t room);
/* Whether an index may carry the rows' values, and where in a value of its own. */
extern bool gh_cpu_rows_lay_out_carried(GhCpuRows *rows);
extern GhTableOptions gh_cpu_index_options(const GhTableSink *sink, uint64_t keys);
/*
 * Enters some rows from *number on, up to `end`, by GH_INSERT or GH_EXCHANGE; *number is then the next one.  Rows of a
 * key are linked by an exchange where all are wanted.  *twice: some key was there before.
 */
extern GhStatus gh_cpu_rows_enter(GhCpuRows *rows, GhCpuPiece *piece, GhOp op, bool all, uint64_t *number,
								  uint64_t end, bool *twice, GhError *error);
/* The index becomes the table that the caller gets; drop and forget: of its rows, as of GhCpuTable. */
extern void gh_cpu_rows_hand_over(GhCpuRows *rows, void (*drop) (GhCpuRows *), void (*forget) (GhCpuRows *),
								  GhMadeTable *made);
/* Makes the index.  The rows are then the table's, which drops them.  GH_STOPPED: it can be called again. */
extern GhStatus gh_cpu_rows_make(GhCpuRows *rows, const GhTableSink *sink, GhMadeTable *made, GhError *error);

/* ------------------------- of several processes: cpu_rows_shared.c; pipeline.h says when what is called */

extern GhStatus gh_cpu_shared_create(const GhHost *host, const GhPipelineOptions *options, GhRef *root,
									 GhError *error);
extern void gh_cpu_shared_destroy(const GhHost *host, GhRef root);
/* Rows of this process that are going to be some of the sink's; they may be there after an error, too. */
extern GhStatus gh_cpu_shared_join(const GhHost *host, GhRef root, const GhTableSink *sink, GhCpuRows **rows,
								   GhError *error);
extern uint64_t gh_cpu_shared_text_number(GhCpuRows *rows);
extern GhStatus gh_cpu_shared_finish(GhCpuRows *rows, GhError *error);
/* Before they are dropped; used: requests have been made, so that without finish rows are lost. */
extern void gh_cpu_shared_leave(GhCpuRows *rows, bool used);
extern GhStatus gh_cpu_shared_begin(const GhHost *host, GhRef root, GhError *error);
extern GhStatus gh_cpu_shared_enter(const GhHost *host, GhRef root, bool *ready, GhError *error);
extern GhStatus gh_cpu_shared_attach(const GhHost *host, GhRef root, GhMadeTable *made, GhError *error);

/* --------------------------------------------------- overlays: cpu_overlay.c */

/* GhTableOverlay, with its arrays. */
typedef struct GhCpuOverlay
{
	const struct GhKeyFilter *filter;
	GhTable    *instead;
	GhTableShape shape;			/* what probes see */
	uint16_t	from[GH_TABLE_KEPT_MAX];
} GhCpuOverlay;

extern GhStatus gh_cpu_table_overlay(GhTable *table, const GhTableOverlay *overlay, GhError *error);

/* -------------------------------------------------------- marks: cpu_marks.c */

struct GhMarks
{
	GhCpuSinkMemory memory;
	GhCpuBlock	block;
	uint64_t   *bits;			/* by row */
	const GhCpuRows *rows;
};

static inline void
gh_cpu_mark(GhMarks *marks, uint64_t number)
{
	marks->bits[number / 64] |= UINT64_C(1) << number % 64;
}

extern GhStatus gh_cpu_marks_create(const GhHost *host, GhTable *table, GhMarks **marks, GhError *error);
extern void gh_cpu_marks_destroy(GhMarks *marks);

#endif							/* GPUHASH_CPU_ROWS_H */
