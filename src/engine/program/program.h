/*
 * program.h
 *		Programs over batches of rows: qualifications and expressions that an engine
 *		evaluates by itself, on the CPU or on the device.
 *
 * A batch holds up to GH_VECTOR_ROWS rows as vectors, one for each column that is read, each
 * constant and each intermediate result.  A program is a straight line of instructions, each
 * of which fills one vector from others.  It is one block of bytes without addresses in it,
 * so that it can be copied into shared memory or to a device; gh_program_check() accepts it
 * before anybody runs it.
 *
 * What the engines cannot do as PostgreSQL does it (a compressed value, an overflow, a
 * division by zero) makes a row GH_ROW_BACK: whoever asked evaluates that row with
 * PostgreSQL's own functions from the first qualification on.  Handing a row back is always
 * right.
 *
 * Plain C11, C++17 and CUDA.  The per-row meaning of the instructions is in program_ops.h.
 */
#ifndef GH_PROGRAM_H
#define GH_PROGRAM_H

#include "engine/engine.h"
#include "engine/everywhere.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ batches */

#define GH_VECTOR_ROWS 1024		/* most rows of a batch */
#define GH_LOOP_ROWS 16			/* loops over a batch end at a multiple of these */

typedef enum GhRowState
{
	/* a bit each: rows are counted several at a time */
	GH_ROW_LIVE = 0,
	GH_ROW_DROPPED = 1,			/* a qualification is not true for it */
	GH_ROW_BACK = 2				/* to be handed back; this and dropped are final */
} GhRowState;

/*
 * One value for each row of a batch.  `low` is the value's 64 bits: integers sign-extended
 * (oid zero-extended), the bits of a float8, a float4 as the float8 of its value, bool 0 or 1,
 * for text the address of its bytes.  `high` is the upper half of 128-bit values, or text's
 * length in bytes; other values leave it alone.  Where null is 1, low and high are anything.
 */
typedef struct GhVector
{
	uint64_t   *low;
	uint64_t   *high;
	uint8_t    *null;			/* 0 or 1 */
} GhVector;

#define GH_PROGRAM_VECTORS_MAX 128	/* columns, constants and temporaries together */

typedef struct GhVectorBatch
{
	uint32_t	nrows;			/* at most GH_VECTOR_ROWS */
	uint32_t	nvectors;
	uint8_t    *state;			/* a GhRowState for each row; behind the last, the engine's */
	GhVector   *vectors;		/* columns, then constants, then temporaries */
	/* of gh_batch_begin and gh_batch_prepare, else 0: rows that are ready, and whose vectors these are */
	uint32_t	ready;
	const struct GhProgram *program;
	/*
	 * Of vectors of integers, of 128 bits too: so many bits, 64 at most, one of them for the sign, hold the value of every row that
	 * is live and not NULL; 0: nobody knows.  Whoever puts rows into the batch sees to it, see gh_batch_forget_bits().
	 */
	uint8_t		bits[GH_PROGRAM_VECTORS_MAX];
} GhVectorBatch;

/*
 * Where a loop over so many rows ends, within the vectors' memory: it needs no remainder loop, without which
 * compilers do not vectorise at -O2.  They must see where it is used that it is a multiple.
 */
GH_EVERYWHERE uint32_t
gh_loop_rows(uint32_t nrows)
{
	return (nrows + GH_LOOP_ROWS - 1) & ~(uint32_t) (GH_LOOP_ROWS - 1);
}

/* ------------------------------------------------------------------ columns */

/* How the value of an attribute is read from a tuple, and what its vector then holds. */
typedef enum GhLoad
{
	GH_LOAD_INT2 = 1,
	GH_LOAD_INT4,
	GH_LOAD_INT8,
	GH_LOAD_OID,				/* 4 bytes without sign */
	GH_LOAD_BOOL,
	GH_LOAD_FLOAT4,
	GH_LOAD_FLOAT8,
	GH_LOAD_NUMERIC,			/* 128 bits: the value times 10 to the power of `scale` */
	GH_LOAD_TEXT,				/* any varlena: address and length of what follows its header */
	GH_LOAD_FIXED,				/* `length` bytes by address: name, uuid */
	GH_LOAD_TID					/* no attribute: where the tuple is, see gh_tid_value(), or of a leaf page's entry the
								 * block of its row; never NULL */
} GhLoad;

/* What a tuple that ends before the attribute has there. */
typedef enum GhMissing
{
	GH_MISSING_NULL = 0,
	GH_MISSING_BACK				/* a value that is not in the tuple: the row is handed back */
} GhMissing;

#define GH_SCALE_MAX 37			/* 10 to the power of it fits in 127 bits, and ten times it */
#define GH_QUOTIENT_SCALE 24	/* enough for quotients of 1e-8 and more */
#define GH_FIXED_LENGTH_MAX 64	/* bytes */
#define GH_ATTRIBUTE_MAX 1600	/* of a tuple */
#define GH_COLUMN_MAX 32767		/* that, and behind a tuple's attributes what joins add to it */

/*
 * Column i of a program fills vector i of the batch.  One at most is GH_LOAD_TID, and all else in it is
 * 0: its vector holds integers, of which the page's block number is the upper part.
 */
typedef struct GhColumn
{
	uint16_t	attribute;		/* number in the row, from 1 to GH_COLUMN_MAX */
	uint8_t		load;			/* a GhLoad */
	uint8_t		missing;		/* a GhMissing */
	uint16_t	scale;			/* GH_LOAD_NUMERIC: decimal digits after the point, else 0 */
	uint16_t	length;			/* GH_LOAD_FIXED: bytes, else 0 */
} GhColumn;

/* What a column of GH_LOAD_TID holds for the tuple of a line number, in a block of any number. */
GH_EVERYWHERE uint64_t
gh_tid_value(uint32_t block, uint32_t line)
{
	return (uint64_t) block << 16 | line;
}

/* ----------------------------------------------------------------- programs */

#define GH_PROGRAM_MAGIC 0x67685031
#define GH_PROGRAM_INSTRUCTIONS_MAX 1024
#define GH_PROGRAM_LISTS_MAX 64
#define GH_PROGRAM_BYTES_MAX (1 << 20)

/* What a vector holds; a FLOAT4 is a FLOAT8 that a float4 can hold, and may stand for one. */
typedef enum GhClass
{
	GH_CLASS_BOOL = 1,
	GH_CLASS_INT,				/* 64 bits with sign */
	GH_CLASS_INT128,			/* numeric at a scale that the program's author keeps track of */
	GH_CLASS_FLOAT4,
	GH_CLASS_FLOAT8,
	GH_CLASS_TEXT,				/* bytes; equal and less as memcmp() says */
	GH_CLASS_BPCHAR				/* the same without trailing blanks; an operation's class only */
} GhClass;

/* The class of vectors that have values which operations of that class work on. */
static inline uint8_t
gh_vector_class(uint8_t op_class)
{
	return op_class == GH_CLASS_BPCHAR ? (uint8_t) GH_CLASS_TEXT : op_class;
}

/*
 * What an instruction does.  The class beside each is op_class; `same` arguments and results
 * are of that class (BPCHAR: vectors of TEXT).  If an argument is NULL, so is the result,
 * where nothing else is said.  The checked ones hand the row back where PostgreSQL raises an
 * error or where 128 bits are too few.
 */
typedef enum GhProgramOp
{
	/* BOOL, INT, INT128, FLOAT8, TEXT, BPCHAR: two same, to BOOL */
	GH_OP_EQ = 1,
	GH_OP_NE,
	GH_OP_LT,
	GH_OP_LE,
	GH_OP_GT,
	GH_OP_GE,
	GH_OP_DISTINCT,				/* IS DISTINCT FROM: never NULL */
	GH_OP_NOT_DISTINCT,
	/* INT (of `width`), INT128, FLOAT4, FLOAT8: same to same, checked */
	GH_OP_ADD,
	GH_OP_SUB,
	GH_OP_MUL,
	GH_OP_NEG,
	GH_OP_ABS,
	GH_OP_DIV,					/* not INT128 */
	GH_OP_MOD,					/* INT, INT128 */
	GH_OP_SQRT,					/* FLOAT8 only */
	/* to a whole number: FLOAT8; INT128, which loses its last `immediate` digits */
	GH_OP_TRUNC,
	GH_OP_FLOOR,
	GH_OP_CEIL,
	GH_OP_ROUND,				/* FLOAT8 only, halves to even: of INT128 see GH_OP_RESCALE */
	GH_OP_SIGN,					/* FLOAT8, INT128: -1, 0 or 1 */
	/*
	 * INT128: two of `immediate` digits, and how many (INT) are shown of that of which more are.
	 * From these three PostgreSQL chooses how many digits the quotient has; it has GH_QUOTIENT_SCALE
	 * here, and goes back where they are too few.  To INT: how many PostgreSQL chooses.
	 */
	GH_OP_QUOTIENT,
	GH_OP_QUOTIENT_SCALE,
	GH_OP_BOUND,				/* INT128: as it is, if it has at most `immediate` digits in all */
	/* INT: bits, of `width` where they are shifted; shifts by what C leaves undefined go back */
	GH_OP_BIT_AND,
	GH_OP_BIT_OR,
	GH_OP_BIT_XOR,
	GH_OP_BIT_NOT,
	GH_OP_SHIFT_LEFT,
	GH_OP_SHIFT_RIGHT,
	/* conversions, checked */
	GH_OP_RESCALE,				/* INT128: `immediate` more decimal digits, or fewer, rounded */
	GH_OP_FROM_INT,				/* INT to INT128 (with `immediate` decimal digits), FLOAT4, FLOAT8 */
	GH_OP_TO_INT,				/* BOOL, INT, FLOAT8, INT128 (of `immediate` digits) to INT of `width` */
	GH_OP_TO_FLOAT4,			/* FLOAT8 */
	GH_OP_TO_FLOAT8,			/* INT128 of `immediate` digits */
	/* INT: dates are days, timestamps are microseconds, since 2000 */
	GH_OP_DATE_ADD,				/* date, days */
	GH_OP_DATE_SUB,				/* date, days */
	GH_OP_DATE_DIFF,			/* date, date, to days */
	GH_OP_DATE_TO_TIMESTAMP,
	GH_OP_TIMESTAMP_ADD,		/* timestamp, microseconds */
	GH_OP_TIMESTAMP_ADD_MONTHS,	/* timestamp, months: the same day, or the month's last one */
	GH_OP_TIMESTAMP_DIFF,		/* timestamp, timestamp, to microseconds; infinite ones go back */
	/* likewise; dates that are infinite, or none, go back */
	GH_OP_TIMESTAMP_TO_DATE,
	GH_OP_DATE_YEAR,			/* 1 BC is -1 */
	GH_OP_DATE_MONTH,
	GH_OP_DATE_DAY,
	GH_OP_DATE_WEEKDAY,			/* Sunday is 0 */
	GH_OP_DATE_TO_YEAR,			/* the first day of the date's year, */
	GH_OP_DATE_TO_QUARTER,
	GH_OP_DATE_TO_MONTH,
	GH_OP_DATE_TO_WEEK,			/* or week, which begins on Monday */
	/* INT: what is to be added to a timestamp, by a time zone that is list `immediate`; checked (program_zone.h) */
	GH_OP_ZONE_SHIFT,
	/*
	 * TEXT.  Of LIKE: text, pattern, to BOOL; ILIKE takes A to Z for a to z, in both.  A character is a byte, or of UTF-8.
	 * A pattern that ends within an escape, which is an error to PostgreSQL, matches nothing.
	 */
	GH_OP_LIKE,
	GH_OP_LIKE_UTF8,
	GH_OP_ILIKE,
	GH_OP_ILIKE_UTF8,
	GH_OP_UNPADDED,				/* without trailing blanks */
	GH_OP_SUBSTRING,			/* TEXT; the first character, from 1, and how many (INT), checked */
	GH_OP_SUBSTRING_UTF8,
	GH_OP_LEFT,					/* the first characters, so many (INT); negative: all but as many last ones */
	GH_OP_LEFT_UTF8,
	GH_OP_RIGHT,				/* likewise the last ones, checked */
	GH_OP_RIGHT_UTF8,
	GH_OP_TRIM_LEFT,			/* from the first byte on that is none of the second text's */
	GH_OP_TRIM_RIGHT,
	GH_OP_LENGTH,				/* characters, to INT */
	GH_OP_LENGTH_UTF8,
	GH_OP_POSITION,				/* of the second text in the first, in characters from 1, to INT; 0: it is not there */
	GH_OP_POSITION_UTF8,
	GH_OP_STARTS_WITH,			/* two texts, to BOOL */
	/*
	 * TEXT, the bytes of a stored numeric.  To INT128 of `immediate` digits: what is shown with more of them, or is no
	 * number, goes back.  To INT: how many digits after the point it is shown with.
	 */
	GH_OP_NUMERIC,
	GH_OP_NUMERIC_SCALE,
	/* BOOL, INT, INT128, FLOAT8, TEXT, BPCHAR: same, and the code (INT) of what is before it, to the code of both, INT */
	GH_OP_HASH,
	/* BOOL, in three-valued logic; the IS are never NULL */
	GH_OP_AND,
	GH_OP_OR,
	GH_OP_NOT,
	GH_OP_IS_TRUE,
	GH_OP_IS_NOT_TRUE,
	GH_OP_IS_FALSE,
	GH_OP_IS_NOT_FALSE,
	GH_OP_FILTER,				/* has no result: rows where it is not true are dropped */
	/* INT, TEXT, BPCHAR: same = ANY (list `immediate`), to BOOL */
	GH_OP_IN,
	/* any class but BPCHAR */
	GH_OP_IS_NULL,				/* of BOOL: IS UNKNOWN */
	GH_OP_IS_NOT_NULL,
	GH_OP_SELECT,				/* CASE: BOOL, same if it is true, same if not, to same */
	GH_OP_COALESCE				/* two same to same */
} GhProgramOp;

/* Vector ncolumns + i is constant i in every row. */
typedef struct GhConstant
{
	uint8_t		value_class;	/* a GhClass, not GH_CLASS_BPCHAR */
	uint8_t		null;			/* 0 or 1 */
	uint8_t		unused[6];		/* 0 */
	uint64_t	low;			/* as in a GhVector, but for text the offset in the program */
	uint64_t	high;
} GhConstant;

typedef struct GhInstruction
{
	uint16_t	op;				/* a GhProgramOp */
	uint8_t		op_class;		/* a GhClass */
	uint8_t		width;			/* 2, 4 or 8 bytes of a checked INT result; else 0 */
	uint16_t	result;			/* a temporary that is no argument; 0: GH_OP_FILTER */
	uint16_t	args[3];		/* vectors; 0 where the operation has fewer */
	int32_t		immediate;		/* a list's number, a number of digits; else 0 */
} GhInstruction;

/* The values of an IN list, without NULLs; or the entries of a time zone (program_zone.h). */
typedef struct GhList
{
	uint8_t		value_class;	/* GH_CLASS_INT, or GH_CLASS_TEXT */
	uint8_t		has_null;		/* the list has a NULL as well: no match is unknown, then */
	uint8_t		unused[2];		/* 0 */
	uint32_t	count;			/* of values */
	uint32_t	values;			/* offset: int64_t, or GhListText, in ascending order (gh_text_list_compare) */
	uint32_t	slots;			/* of texts, offset: GH_LIST_SLOTS uint16_t, where they are found by their codes; 0: none */
} GhList;

/* Of each text its number, from 1 on, in the first slot that was 0 from gh_list_slot() on. */
#define GH_LIST_SLOT_BITS 11
#define GH_LIST_SLOTS (1 << GH_LIST_SLOT_BITS)
/* A list with slots has so many texts at most, so that these are found soon. */
#define GH_LIST_SLOTTED_MAX (GH_LIST_SLOTS / 4)

typedef struct GhListText
{
	uint32_t	offset;			/* of the bytes, in the program */
	uint32_t	length;
} GhListText;

/*
 * The head of a block of `bytes` bytes, aligned to 16.  Behind it, without gaps, lie the
 * constants, the lists, the instructions and the columns; then whatever they name by offset
 * from the head, where integers and GhListText begin at multiples of 8.
 */
typedef struct GhProgram
{
	uint32_t	magic;			/* GH_PROGRAM_MAGIC */
	uint32_t	bytes;
	uint32_t	nconstants;
	uint32_t	nlists;
	uint32_t	ninstructions;
	uint32_t	ncolumns;
	uint32_t	ntemporaries;
	uint32_t	unused;			/* 0 */
} GhProgram;

GH_EVERYWHERE const GhConstant *
gh_program_constants(const GhProgram *program)
{
	return (const GhConstant *) (program + 1);
}

GH_EVERYWHERE const GhList *
gh_program_lists(const GhProgram *program)
{
	return (const GhList *) (gh_program_constants(program) + program->nconstants);
}

GH_EVERYWHERE const GhInstruction *
gh_program_instructions(const GhProgram *program)
{
	return (const GhInstruction *) (gh_program_lists(program) + program->nlists);
}

GH_EVERYWHERE const GhColumn *
gh_program_columns(const GhProgram *program)
{
	return (const GhColumn *) (gh_program_instructions(program) + program->ninstructions);
}

GH_EVERYWHERE uint32_t
gh_program_vectors(const GhProgram *program)
{
	return program->ncolumns + program->nconstants + program->ntemporaries;
}

/*
 * Is this block of `bytes` bytes, aligned to 16, a program?  GH_INVALID where anything in it
 * is out of range, set too late or of the wrong class.  A program that was accepted reads
 * nothing but itself, the batch and the text that the batch's columns point to, and writes
 * the batch alone.  Whoever checks a program in memory that others can change copies it first.
 */
extern GhStatus gh_program_check(const void *block, size_t bytes, GhError *error);
/* The same; classes, of GH_PROGRAM_VECTORS_MAX, tells what each vector holds at the end: a GhClass, or 0. */
extern GhStatus gh_program_check_classes(const void *block, size_t bytes, uint8_t *classes,
										 GhError *error);

/* How many arguments an instruction of an accepted program has. */
extern uint32_t gh_program_args(const GhInstruction *instruction);
/* What its result is: a GhClass, or 0, there is none. */
extern uint8_t gh_program_result_class(const GhInstruction *instruction);

/* ------------------------------------------------- on the CPU: cpu_program.c */

/* Bytes of memory for a batch of this program's vectors. */
extern size_t gh_batch_bytes(const GhProgram *program);

/*
 * Lays a batch of no rows out in `memory`, which is aligned to 64, and fills the constants,
 * which point into the program.  For each batch of rows the caller then sets nrows, the
 * states and the columns.
 */
extern void gh_batch_prepare(GhVectorBatch *batch, const GhProgram *program, void *memory);

/*
 * The same, for rows that gh_batch_make_ready makes ready, before they are set: the constants of so many rows
 * are there then, and values that no row has set can be read.  It costs as much as there are rows.
 */
extern void gh_batch_begin(GhVectorBatch *batch, const GhProgram *program, void *memory);
extern void gh_batch_extend(GhVectorBatch *batch, uint32_t nrows);

static inline void
gh_batch_make_ready(GhVectorBatch *batch, uint32_t nrows)
{
	if (nrows > batch->ready && batch->program != NULL)
		gh_batch_extend(batch, nrows);
}

/*
 * How many bits, one of them for the sign, hold a value of 128 bits; 0: more than 64.
 */
static inline uint8_t
gh_value_bits(uint64_t low, uint64_t high)
{
	uint64_t	sign = 0 - (low >> 63);

	return high != sign ? 0 : low == sign ? 1 : (uint8_t) (65 - __builtin_clzll(low ^ sign));
}

/* Of columns and temporaries nothing is known: before rows are put into a batch that had others. */
extern void gh_batch_forget_bits(GhVectorBatch *batch);

/* Rows of another batch come behind the nrows that are there: what is then known of all. */
extern void gh_batch_copy_bits(GhVectorBatch *to, const GhVectorBatch *from, uint32_t vector);

/* Runs a program that was checked; returns the number of rows that are live at the end. */
extern uint32_t gh_program_run(const GhProgram *program, GhVectorBatch *batch);

/* Likewise the instructions from first up to, but not including, end, which is at most all. */
extern uint32_t gh_program_run_part(const GhProgram *program, GhVectorBatch *batch, uint32_t first,
									uint32_t end);

/* How many rows of a batch that was run, if only a part of no instructions, have these states. */
extern void gh_batch_count(const GhVectorBatch *batch, uint32_t *live, uint32_t *back);

#ifdef __cplusplus
}
#endif

#endif							/* GH_PROGRAM_H */
