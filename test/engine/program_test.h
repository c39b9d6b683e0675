/*
 * program_test.h
 *		What the tests of programs share: programs are put together, batches filled with values
 *		of every kind, and instructions told apart from PostgreSQL's rules by a model.
 */
#ifndef PROGRAM_TEST_H
#define PROGRAM_TEST_H

#include "conformance.h"
#include "engine/program/program_row.h"

#define PARTS_MAX 64
#define TEXT_BYTES 32768
#define TEXTS 64				/* of a pool */

/* A program whose parts are added one by one; build_program() makes a block of them. */
typedef struct Parts
{
	GhColumn	columns[PARTS_MAX];
	GhConstant	constants[PARTS_MAX];
	GhList		lists[PARTS_MAX];
	GhInstruction instructions[PARTS_MAX];
	uint32_t	ncolumns;
	uint32_t	nconstants;
	uint32_t	nlists;
	uint32_t	ninstructions;
	uint32_t	ntemporaries;
	uint64_t	data[TEXT_BYTES / 8];	/* offsets of constants and lists count from here */
	uint32_t	data_bytes;
} Parts;

/* Texts in memory of their own, of exactly their size. */
typedef struct Pool
{
	char	   *texts[TEXTS];
	size_t		lengths[TEXTS];
} Pool;

typedef struct RowBatch
{
	GhVectorBatch batch;
	void	   *memory;
} RowBatch;

/* program_parts.c */
extern uint32_t add_column(Parts *parts, GhLoad load);
extern uint32_t add_constant(Parts *parts, GhClass value_class, GhValue value);
extern uint32_t add_text(Parts *parts, const char *bytes, uint32_t length);
extern uint32_t add_int_list(Parts *parts, const int64_t *values, uint32_t count, bool has_null);
extern uint32_t add_text_list(Parts *parts, const char *const *texts, uint32_t count, bool has_null);
extern GhInstruction *add_instruction(Parts *parts, GhProgramOp op, GhClass op_class,
									  uint32_t a, uint32_t b, uint32_t c);
/* malloc()ed, of exactly its size; the numbers of its temporaries follow those of all else */
extern GhProgram *build_program(const Parts *parts);
extern bool accepted(const GhProgram *program);
extern GhClass column_class(const GhColumn *column);
/* of an instruction that was accepted */
extern GhClass result_class(const GhInstruction *in);

/* program_values.c */
extern void make_pool(Context *c, Pool *pool);
extern void free_pool(Pool *pool);
extern GhValue random_value(Context *c, const Pool *pool, GhClass value_class);
extern void make_row_batch(RowBatch *batch, const GhProgram *program);
extern void free_row_batch(RowBatch *batch);
/* Some rows are NULL, some not live; what these hold is no address. */
extern void fill_row_batch(Context *c, const Pool *pool, const GhProgram *program, RowBatch *batch,
					   uint32_t nrows);
extern GhValue batch_value(const RowBatch *batch, uint32_t vector, uint32_t row);
extern bool same_value(GhClass value_class, GhValue a, GhValue b);

/* program_model.c */
typedef enum Outcome
{
	OUTCOME_VALUE,
	OUTCOME_BACK,
	OUTCOME_EITHER				/* the value, or back */
} Outcome;

extern Outcome model_instruction(const GhProgram *program, const GhInstruction *in,
								 const GhValue *args, GhValue *result);

/* program_model_numeric.c: of a stored numeric, which the text may be */
extern Outcome model_stored(const GhInstruction *in, GhText text, GhValue *result);

/* program_model_text.c: of such an operation on texts, none of whose first two arguments is NULL */
extern Outcome model_text(const GhInstruction *in, const GhValue *args, GhValue *result);

/* program_model_date.c: likewise, of dates and timestamps */
extern Outcome model_dates(const GhInstruction *in, int64_t a, int64_t b, uint64_t *low);
extern Outcome model_zone(const GhProgram *program, const GhInstruction *in, int64_t a, uint64_t *low);

/* program_model_numeric.c: of such an operation, none of whose first two arguments is NULL */
extern Outcome model_numeric(const GhInstruction *in, const GhValue *args, GhInt128 *wide);
extern Outcome model_division(const GhInstruction *in, const GhValue *args, GhValue *result);

/* test_program.c */
/* Columns and constants of every class, and lists: TEXT_LIST is the first one of text. */
#define TEXT_LIST 5
#define LISTS 11
extern void add_vectors(Context *c, const Pool *pool, Parts *parts);
extern void add_random_instruction(Context *c, Parts *parts);
/* Runs a batch, and each row of it by itself, which must be the same. */
extern void check_program(Context *c, const Pool *pool, const GhProgram *program, uint32_t nrows);

#endif							/* PROGRAM_TEST_H */
