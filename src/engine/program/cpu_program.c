/*
 * cpu_program.c
 *		Runs a program over a batch, one instruction after the other, each over all rows.
 *
 * Instructions on words (integers, floats, truth values) run over every row, also those that
 * are NULL or no longer live: that costs less than asking, and the compiler vectorises what
 * the processor has instructions for.  Whether any row went wrong is gathered on the way;
 * only where one did, a second pass looks for it among the rows that count.
 * 128-bit values that 64 bits are known to hold are compared, added and multiplied as such, without a look at
 * each row (GhVectorBatch.bits): most numerics of columns in memory, and what is computed of them.
 * Instructions that follow addresses or need a call for each row (text, 128 bits) leave the
 * other rows out, and the rest goes by the evaluator of single rows.
 *
 * The loops end at a multiple of GH_LOOP_ROWS, within the vectors' memory, so that they need
 * no remainder loop, without which compilers do not vectorise at -O2.  The rows behind the
 * last one are as if dropped.
 */
#include "engine/clones.h"
#include "engine/program/cpu_pattern.h"
#include "engine/program/cpu_zone.h"
#include "engine/program/program_row.h"

/* No row of such a loop depends on another: a result is none of its arguments.  Clang looks
 * whether they overlap, at run time. */
#ifdef __clang__
#define GH_EVERY_ROW
#else
#define GH_EVERY_ROW _Pragma("GCC ivdep")
#endif

/* A program on its way through a batch. */
typedef struct Run
{
	const GhProgram *program;
	GhVectorBatch *batch;
	uint8_t    *state;
	GhVector   *vectors;
	uint32_t	nrows;
	uint32_t	live;			/* rows */
} Run;

/* -------------------------------------------------------------- rows' states */

/* The eight bytes of a word, each of which is at most GH_VECTOR_ROWS / 8. */
static uint32_t
sum_bytes(uint64_t bytes)
{
	uint32_t	sum = 0;

	for (; bytes != 0; bytes >>= 8)
		sum += bytes & UINT8_MAX;
	return sum;
}

GH_CLONES static void
count_states(const GhVectorBatch *batch, uint32_t *live, uint32_t *back)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint32_t	rows = gh_loop_rows(batch->nrows);
	uint64_t	dropped_sums = 0;
	uint64_t	back_sums = 0;

	for (uint32_t i = 0; i < rows; i += sizeof(uint64_t))
	{
		uint64_t	states;

		memcpy(&states, batch->state + i, sizeof(states));
		dropped_sums += states & ones;
		back_sums += states >> 1 & ones;
	}
	*back = sum_bytes(back_sums);
	*live = rows - sum_bytes(dropped_sums) - *back;
}

void
gh_batch_count(const GhVectorBatch *batch, uint32_t *live, uint32_t *back)
{
	count_states(batch, live, back);
}

static void
count_live(Run *run)
{
	uint32_t	back;

	gh_batch_count(run->batch, &run->live, &back);
}

static bool
is_live(const Run *run, uint32_t i)
{
	return run->state[i] == GH_ROW_LIVE;
}

static void
hand_back(Run *run, uint32_t i)
{
	run->state[i] = GH_ROW_BACK;
	run->live--;
}

/* A truth value is 0 or 1, so its lowest byte tells; of rows that are not live it is ignored. */
static gh_always_inline void
filter(Run *run, const GhInstruction *in)
{
	const uint64_t *low = run->vectors[in->args[0]].low;
	const uint8_t *null = run->vectors[in->args[0]].null;
	uint8_t    *state = run->state;
	uint32_t	rows = gh_loop_rows(run->nrows);
	uint32_t	i;

	GH_EVERY_ROW
	for (i = 0; i < rows; i++)
	{
		uint8_t		drop = (((uint8_t) low[i] ^ 1) | null[i]) & 1;

		state[i] = state[i] == GH_ROW_LIVE ? drop * GH_ROW_DROPPED : state[i];
	}
	count_live(run);
}

/* -------------------------------------------------------------------- words */

static void
copy_nulls(Run *run, const GhInstruction *in)
{
	memcpy(run->vectors[in->result].null, run->vectors[in->args[0]].null, gh_loop_rows(run->nrows));
}

static gh_always_inline void
join_nulls(Run *run, const GhInstruction *in)
{
	const uint8_t *a = run->vectors[in->args[0]].null;
	const uint8_t *b = run->vectors[in->args[1]].null;
	uint8_t    *result = run->vectors[in->result].null;
	uint32_t	rows = gh_loop_rows(run->nrows);
	uint32_t	i;

	GH_EVERY_ROW
	for (i = 0; i < rows; i++)
		result[i] = a[i] | b[i];
}

/* f is a constant where this is called, and its body becomes the loop's. */
static gh_always_inline void
words_1(Run *run, const GhInstruction *in, uint64_t (*f) (uint64_t a, int width, uint64_t *bad))
{
	const uint64_t *a = run->vectors[in->args[0]].low;
	const uint8_t *null = run->vectors[in->result].null;
	uint64_t   *result = run->vectors[in->result].low;
	uint32_t	rows = gh_loop_rows(run->nrows);
	int			width = in->width;
	uint64_t	bad = 0;
	uint32_t	i;

	copy_nulls(run, in);
	GH_EVERY_ROW
	for (i = 0; i < rows; i++)
		result[i] = f(a[i], width, &bad);
	for (i = 0; bad != 0 && i < run->nrows; i++)
	{
		uint64_t	row_bad = 0;

		(void) f(a[i], width, &row_bad);
		if (row_bad != 0 && !null[i] && is_live(run, i))
			hand_back(run, i);
	}
}

static gh_always_inline void
words_2(Run *run, const GhInstruction *in,
		uint64_t (*f) (uint64_t a, uint64_t b, int width, uint64_t *bad))
{
	const uint64_t *a = run->vectors[in->args[0]].low;
	const uint64_t *b = run->vectors[in->args[1]].low;
	const uint8_t *null = run->vectors[in->result].null;
	uint64_t   *result = run->vectors[in->result].low;
	uint32_t	rows = gh_loop_rows(run->nrows);
	int			width = in->width;
	uint64_t	bad = 0;
	uint32_t	i;

	join_nulls(run, in);
	GH_EVERY_ROW
	for (i = 0; i < rows; i++)
		result[i] = f(a[i], b[i], width, &bad);
	for (i = 0; bad != 0 && i < run->nrows; i++)
	{
		uint64_t	row_bad = 0;

		(void) f(a[i], b[i], width, &row_bad);
		if (row_bad != 0 && !null[i] && is_live(run, i))
			hand_back(run, i);
	}
}

/* ------------------------------------------------------------- truth values */

static gh_always_inline void
and_or(Run *run, const GhInstruction *in)
{
	const GhVector *a = &run->vectors[in->args[0]];
	const GhVector *b = &run->vectors[in->args[1]];
	uint64_t   *low = run->vectors[in->result].low;
	uint8_t    *null = run->vectors[in->result].null;
	uint64_t	decisive = in->op == GH_OP_OR;
	uint32_t	rows = gh_loop_rows(run->nrows);
	uint32_t	i;

	GH_EVERY_ROW
	for (i = 0; i < rows; i++)
	{
		uint8_t		decided = ((a->low[i] == decisive) & !a->null[i]) |
			((b->low[i] == decisive) & !b->null[i]);

		null[i] = (a->null[i] | b->null[i]) & !decided;
		low[i] = decided ? decisive : !decisive;
	}
}

static gh_always_inline void
null_test(Run *run, const GhInstruction *in)
{
	const uint8_t *a = run->vectors[in->args[0]].null;
	uint64_t   *low = run->vectors[in->result].low;
	uint64_t	otherwise = in->op == GH_OP_IS_NOT_NULL;
	uint32_t	rows = gh_loop_rows(run->nrows);
	uint32_t	i;

	memset(run->vectors[in->result].null, 0, gh_loop_rows(run->nrows));
	GH_EVERY_ROW
	for (i = 0; i < rows; i++)
		low[i] = a[i] ^ otherwise;
}

/* --------------------------------------------------------- 128 bits and text */

/* Whether 64 bits hold the values of all live rows, as those of most numerics. */
static gh_always_inline bool
is_narrow(const Run *run, uint32_t v)
{
	const uint64_t *low = run->vectors[v].low;
	const uint64_t *high = run->vectors[v].high;
	const uint8_t *state = run->state;
	uint32_t	rows = gh_loop_rows(run->nrows);
	uint64_t	beyond = 0;
	uint32_t	i;

	if (run->batch->bits[v] != 0)
		return true;
	for (i = 0; i < rows; i++)
		beyond |= (high[i] ^ gh_sign_extension(low[i])) & (0 - (uint64_t) (state[i] == GH_ROW_LIVE));
	return beyond == 0;
}

/* What 128 bits always hold; of rows that are not live, anything. */
#define NARROW_2(expression) \
	do { \
		for (uint32_t i = 0; i < run->nrows; i++) \
		{ \
			GhInt128	x = (int64_t) a[i]; \
			GhInt128	y = (int64_t) b[i]; \
			GhInt128	wide = (expression); \
			low[i] = (uint64_t) wide; \
			high[i] = (uint64_t) ((GhUint128) wide >> 64); \
		} \
	} while (0)

/* Bits of a sum, a difference or a product of values of which so many are known; 0: of neither, or more than 64. */
static uint32_t
result_bits(const GhVectorBatch *batch, const GhInstruction *in)
{
	uint32_t	a = batch->bits[in->args[0]];
	uint32_t	b = batch->bits[in->args[1]];
	uint32_t	bits = in->op == GH_OP_MUL ? a + b : (a > b ? a : b) + 1;

	return a == 0 || b == 0 || bits > 64 ? 0 : bits;
}

/* What 64 bits hold; of rows that are not live, anything. */
#define SHORT_2(expression) \
	do { \
		GH_EVERY_ROW \
		for (uint32_t i = 0; i < rows; i++) \
		{ \
			low[i] = (expression); \
			high[i] = gh_sign_extension(low[i]); \
		} \
	} while (0)

/* Sums, differences and products that are known to be of 64 bits. */
static gh_always_inline void
short_2(Run *run, const GhInstruction *in)
{
	const uint64_t *a = run->vectors[in->args[0]].low;
	const uint64_t *b = run->vectors[in->args[1]].low;
	uint64_t   *low = run->vectors[in->result].low;
	uint64_t   *high = run->vectors[in->result].high;
	uint32_t	rows = gh_loop_rows(run->nrows);

	if (in->op == GH_OP_ADD)
		SHORT_2(a[i] + b[i]);
	else if (in->op == GH_OP_SUB)
		SHORT_2(a[i] - b[i]);
	else
		SHORT_2(a[i] * b[i]);
}

/* Sums, differences and products of two integers of 64 bits; false: it is none of these. */
static gh_always_inline bool
narrow_2(Run *run, const GhInstruction *in)
{
	const uint64_t *a = run->vectors[in->args[0]].low;
	const uint64_t *b = run->vectors[in->args[1]].low;
	uint64_t   *low = run->vectors[in->result].low;
	uint64_t   *high = run->vectors[in->result].high;
	uint32_t	bits;

	if (in->op != GH_OP_ADD && in->op != GH_OP_SUB && in->op != GH_OP_MUL)
		return false;
	bits = result_bits(run->batch, in);
	run->batch->bits[in->result] = (uint8_t) bits;
	if (bits != 0)
	{
		short_2(run, in);
		return true;
	}
	if (!is_narrow(run, in->args[0]) || !is_narrow(run, in->args[1]))
		return false;
	if (in->op == GH_OP_ADD)
		NARROW_2(x + y);
	else if (in->op == GH_OP_SUB)
		NARROW_2(x - y);
	else
		NARROW_2(x * y);
	return true;
}

static gh_always_inline void
wide_2(Run *run, const GhInstruction *in, GhInt128 (*f) (GhInt128 a, GhInt128 b, uint64_t *bad))
{
	const GhVector *a = &run->vectors[in->args[0]];
	const GhVector *b = &run->vectors[in->args[1]];
	const GhVector *result = &run->vectors[in->result];
	uint32_t	i;

	join_nulls(run, in);
	if (narrow_2(run, in))
		return;
	for (i = 0; i < run->nrows; i++)
	{
		uint64_t	bad = 0;
		GhInt128	wide;

		if (result->null[i] || !is_live(run, i))
			continue;
		wide = f(gh_int128(a->low[i], a->high[i]), gh_int128(b->low[i], b->high[i]), &bad);
		result->low[i] = (uint64_t) wide;
		result->high[i] = (uint64_t) ((GhUint128) wide >> 64);
		if (bad != 0)
			hand_back(run, i);
	}
}

static gh_always_inline void
wide_compare(Run *run, const GhInstruction *in, uint64_t (*f) (GhInt128 a, GhInt128 b))
{
	const GhVector *a = &run->vectors[in->args[0]];
	const GhVector *b = &run->vectors[in->args[1]];
	uint64_t   *result = run->vectors[in->result].low;
	uint32_t	i;

	join_nulls(run, in);
	for (i = 0; i < run->nrows; i++)
		result[i] = f(gh_int128(a->low[i], a->high[i]), gh_int128(b->low[i], b->high[i]));
}

static gh_always_inline void
text_compare(Run *run, const GhInstruction *in, uint64_t (*f) (GhText a, GhText b))
{
	const GhVector *a = &run->vectors[in->args[0]];
	const GhVector *b = &run->vectors[in->args[1]];
	const GhVector *result = &run->vectors[in->result];
	uint32_t	i;

	join_nulls(run, in);
	for (i = 0; i < run->nrows; i++)
		if (!result->null[i] && is_live(run, i))
			result->low[i] = f(gh_text(a->low[i], a->high[i]), gh_text(b->low[i], b->high[i]));
}

/* Codes of values, a loop for each class. */
static gh_always_inline void
hash_as(Run *run, const GhInstruction *in, uint8_t op_class)
{
	const GhVector *a = &run->vectors[in->args[0]];
	const GhVector *before = &run->vectors[in->args[1]];
	const GhVector *result = &run->vectors[in->result];
	uint32_t	i;

	join_nulls(run, in);
	for (i = 0; i < run->nrows; i++)
		if (!result->null[i] && is_live(run, i))
			result->low[i] = gh_code_of_value(op_class, a->low[i], a->high[i], before->low[i]);
}

/* LIKE with a pattern that is constant, by its parts; false: it is not, or has others than such. */
static bool
match_parts(Run *run, const GhInstruction *in)
{
	const GhProgram *program = run->program;
	const GhVector *texts = &run->vectors[in->args[0]];
	const GhVector *pattern = &run->vectors[in->args[1]];
	const GhVector *result = &run->vectors[in->result];
	GhPattern	parts;
	uint32_t	i;

	if ((in->op != GH_OP_LIKE && in->op != GH_OP_LIKE_UTF8) || in->args[1] < program->ncolumns ||
		in->args[1] >= program->ncolumns + program->nconstants || pattern->null[0] ||
		!gh_pattern_read(gh_text(pattern->low[0], pattern->high[0]), &parts))
		return false;
	join_nulls(run, in);
	for (i = 0; i < run->nrows; i++)
		if (!result->null[i] && is_live(run, i))
			result->low[i] = gh_pattern_matches(&parts, gh_text(texts->low[i], texts->high[i]));
	return true;
}

/* Values that are in a list. */
static void
look_up_in_list(Run *run, const GhInstruction *in)
{
	const GhVector *a = &run->vectors[in->args[0]];
	const GhVector *result = &run->vectors[in->result];
	uint32_t	i;

	for (i = 0; i < run->nrows; i++)
	{
		GhValue		value = {a->low[i], a->high[i], a->null[i]};

		if (!is_live(run, i))
			continue;
		value = gh_row_in(run->program, in, &value);
		result->low[i] = value.low;
		result->null[i] = value.null;
	}
}

/* What a time zone adds to timestamps. */
static void
shift_by_zone(Run *run, const GhInstruction *in)
{
	const uint64_t *timestamps = run->vectors[in->args[0]].low;
	const GhVector *result = &run->vectors[in->result];
	uint64_t	bad;
	uint32_t	i;

	copy_nulls(run, in);
	bad = gh_zone_shift_rows(run->program, in, timestamps, gh_loop_rows(run->nrows), result->low);
	for (i = 0; bad != 0 && i < run->nrows; i++)
	{
		uint64_t	row_bad = 0;

		(void) gh_zone_shift(run->program, in, timestamps[i], &row_bad);
		if (row_bad != 0 && !result->null[i] && is_live(run, i))
			hand_back(run, i);
	}
}

/* ---------------------------------------------------------------- single rows */

static GhValue
row_value(const Run *run, uint32_t vector, uint32_t i)
{
	const GhVector *from = &run->vectors[vector];
	GhValue		value = {from->low[i], from->high[i], from->null[i]};

	return value;
}

static void
row_by_row(Run *run, const GhInstruction *in)
{
	const GhVector *result = &run->vectors[in->result];
	uint32_t	i;

	for (i = 0; i < run->nrows; i++)
	{
		uint64_t	bad = 0;
		GhValue		a;
		GhValue		b;
		GhValue		c;
		GhValue		value;

		if (!is_live(run, i))
			continue;
		a = row_value(run, in->args[0], i);
		b = row_value(run, in->args[1], i);
		c = row_value(run, in->args[2], i);
		value = gh_row_value(run->program, in, &a, &b, &c, &bad);
		result->low[i] = value.low;
		result->high[i] = value.high;
		result->null[i] = value.null;
		if (bad != 0)
			hand_back(run, i);
	}
}

/* ---------------------------------------------------------------------- all */

/* Operation and class; of 128-bit values that 64 bits are known to hold, comparisons are those of integers. */
static uint32_t
op_key(const Run *run, const GhInstruction *in)
{
	const uint8_t *bits = run->batch->bits;

	if (in->op_class == GH_CLASS_INT128 && in->op <= GH_OP_GE && bits[in->args[0]] != 0 && bits[in->args[1]] != 0)
		return GH_OP_KEY(in->op, GH_CLASS_INT);
	return gh_op_key(in);
}

GH_CLONES static void
run_instruction(Run *run, const GhInstruction *in)
{
	if (match_parts(run, in))
		return;
	if (gh_program_result_class(in) != 0)
		run->batch->bits[in->result] = 0;
	switch (op_key(run, in))
	{
#define WORDS_1(op, op_class, f) case GH_OP_KEY(op, op_class): words_1(run, in, f); break;
#define WORDS_2(op, op_class, f) case GH_OP_KEY(op, op_class): words_2(run, in, f); break;
#define WIDE_2(op, op_class, f) case GH_OP_KEY(op, op_class): wide_2(run, in, f); break;
#define WIDE_COMPARISON(op, op_class, f) \
		case GH_OP_KEY(op, op_class): wide_compare(run, in, f); break;
#define TEXT_COMPARISON(op, op_class, f) \
		case GH_OP_KEY(op, op_class): text_compare(run, in, f); break;
#define HASH(op_class) case GH_OP_KEY(GH_OP_HASH, op_class): hash_as(run, in, op_class); break;
			GH_WORD_FUNCTIONS_1(WORDS_1)
			GH_FLOAT_FUNCTIONS_1(WORDS_1)
			GH_WORD_FUNCTIONS_2(WORDS_2)
			GH_FLOAT_FUNCTIONS_2(WORDS_2)
			GH_INT128_FUNCTIONS_2(WIDE_2)
			GH_INT128_COMPARISONS(WIDE_COMPARISON)
			GH_TEXT_COMPARISONS(TEXT_COMPARISON)
			HASH(GH_CLASS_BOOL)
			HASH(GH_CLASS_INT)
			HASH(GH_CLASS_INT128)
			HASH(GH_CLASS_FLOAT8)
			HASH(GH_CLASS_TEXT)
			HASH(GH_CLASS_BPCHAR)
		case GH_OP_KEY(GH_OP_AND, GH_CLASS_BOOL):
		case GH_OP_KEY(GH_OP_OR, GH_CLASS_BOOL):
			and_or(run, in);
			break;
		case GH_OP_KEY(GH_OP_FILTER, GH_CLASS_BOOL):
			filter(run, in);
			break;
		case GH_OP_KEY(GH_OP_IN, GH_CLASS_INT):
		case GH_OP_KEY(GH_OP_IN, GH_CLASS_TEXT):
		case GH_OP_KEY(GH_OP_IN, GH_CLASS_BPCHAR):
			look_up_in_list(run, in);
			break;
		case GH_OP_KEY(GH_OP_ZONE_SHIFT, GH_CLASS_INT):
			shift_by_zone(run, in);
			break;
		case GH_OP_KEY(GH_OP_IS_NULL, 0):
		case GH_OP_KEY(GH_OP_IS_NOT_NULL, 0):
			null_test(run, in);
			break;
		default:
			row_by_row(run, in);
	}
}

uint32_t
gh_program_run_part(const GhProgram *program, GhVectorBatch *batch, uint32_t first, uint32_t end)
{
	const GhInstruction *instructions = gh_program_instructions(program);
	Run			run = {
		.program = program, .batch = batch, .state = batch->state, .vectors = batch->vectors,
		.nrows = batch->nrows
	};
	uint32_t	i;

	for (i = run.nrows; i < gh_loop_rows(run.nrows); i++)
		run.state[i] = GH_ROW_DROPPED;
	count_live(&run);
	for (i = first; i < end && run.live > 0; i++)
		run_instruction(&run, &instructions[i]);
	return run.live;
}

uint32_t
gh_program_run(const GhProgram *program, GhVectorBatch *batch)
{
	return gh_program_run_part(program, batch, 0, program->ninstructions);
}
