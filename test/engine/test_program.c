/*
 * test_program.c
 *		Programs over batches: every operation against the model and against the evaluator of
 *		single rows, and random programs against the latter.
 */
#include "engine/program/cpu_pattern.h"

#include "program_test.h"

#define CLASSES 8				/* GH_CLASS_BPCHAR + 1 */
#define OPERATIONS (GH_OP_COALESCE + 1)
/* Pairs of an operation and a class that there are. */
#define PAIRS_EXPECTED 180

/* ------------------------------------------------------------- what is used */

static const GhLoad loads[] = {
	GH_LOAD_BOOL, GH_LOAD_BOOL, GH_LOAD_INT2, GH_LOAD_INT4, GH_LOAD_INT8, GH_LOAD_NUMERIC,
	GH_LOAD_NUMERIC, GH_LOAD_FLOAT4, GH_LOAD_FLOAT4, GH_LOAD_FLOAT8, GH_LOAD_FLOAT8,
	GH_LOAD_TEXT, GH_LOAD_FIXED
};

#define COLUMNS (sizeof(loads) / sizeof(loads[0]))

/* From that second on, so many are to be added. */
#define ENTRY(from, shift) (INT64_C(from) * 262144 + 131072 + (shift))

static void
add_lists(Parts *parts)
{
	static const int64_t zone[] = {
		ENTRY(-9223372036855, 3208), ENTRY(-3037000, 3600), ENTRY(-2147, 7200), ENTRY(-1, 0), ENTRY(0, -131072),
		ENTRY(1, 131071), ENTRY(2147, -43200), ENTRY(9007199254, -131072), ENTRY(9223372036854, 1)
	};
	static const int64_t integers[] = {INT64_MIN, -10, -1, -1, 0, 2, 3, 10, INT32_MAX, INT64_MAX};
	static const char *const texts[] = {"", "a", "a ", "ab", "b", " "};

	(void) add_int_list(parts, integers, 10, false);
	(void) add_int_list(parts, integers, 7, true);
	(void) add_int_list(parts, integers, 0, false);
	(void) add_int_list(parts, integers, 0, true);
	(void) add_int_list(parts, integers + 4, 1, false);
	(void) add_text_list(parts, texts, 6, false);
	(void) add_text_list(parts, texts + 1, 2, true);
	(void) add_text_list(parts, texts, 0, false);
	(void) add_text_list(parts, texts, 0, true);
	(void) add_int_list(parts, zone, sizeof(zone) / sizeof(zone[0]), false);
	(void) add_int_list(parts, zone + 2, 4, false);
}

/* Two columns or more of each class, and constants: one is NULL, others are drawn. */
void
add_vectors(Context *c, const Pool *pool, Parts *parts)
{
	static const GhClass classes[] = {
		GH_CLASS_BOOL, GH_CLASS_INT, GH_CLASS_INT, GH_CLASS_INT128, GH_CLASS_FLOAT4,
		GH_CLASS_FLOAT8
	};
	GhValue		null = {0, 0, 1};
	size_t		i;

	memset(parts, 0, sizeof(*parts));
	for (i = 0; i < COLUMNS; i++)
		(void) add_column(parts, loads[i]);
	for (i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		(void) add_constant(parts, classes[i], random_value(c, pool, classes[i]));
	(void) add_constant(parts, GH_CLASS_INT, null);
	(void) add_text(parts, "ab  ", (uint32_t) random_below(c, 5));
	add_lists(parts);
}

static GhClass
vector_class(const Parts *parts, uint32_t vector)
{
	return vector < parts->ncolumns ? column_class(&parts->columns[vector]) :
		parts->constants[vector - parts->ncolumns].value_class;
}

/* A column or constant of this class. */
static uint32_t
random_vector(Context *c, const Parts *parts, GhClass value_class)
{
	for (;;)
	{
		uint32_t	vector = (uint32_t) random_below(c, parts->ncolumns + parts->nconstants);

		if (vector_class(parts, vector) == value_class)
			return vector;
	}
}

/* --------------------------------------------------- one operation at a time */

static void
check_value(Context *c, const GhInstruction *in, const GhValue *args, GhValue got, GhValue expected)
{
	(void) CHECK(c, same_value(result_class(in), got, expected),
				 "operation %u of class %u, width %u, immediate %d on %" PRIx64 ":%" PRIx64
				 " (%u) and %" PRIx64 ":%" PRIx64 " (%u): %" PRIx64 ":%" PRIx64 " (%u), expected %"
				 PRIx64 ":%" PRIx64 " (%u)", in->op, in->op_class, in->width, in->immediate,
				 args[0].high, args[0].low, args[0].null, args[1].high, args[1].low, args[1].null,
				 got.high, got.low, got.null, expected.high, expected.low, expected.null);
}

/* The row's state and result, of a program of one instruction, after a run. */
static void
check_row(Context *c, const GhProgram *program, const RowBatch *batch, uint32_t row)
{
	const GhInstruction *in = gh_program_instructions(program);
	GhRowState	state = batch->batch.state[row];
	GhValue		values[GH_PROGRAM_VECTORS_MAX];
	GhValue		args[3];
	GhValue		expected;
	Outcome		outcome;
	uint32_t	i;

	for (i = 0; i < gh_program_vectors(program); i++)
		values[i] = batch_value(batch, i, row);
	for (i = 0; i < 3; i++)
		args[i] = values[in->args[i]];
	(void) CHECK_U64(c, "state of a row by itself", gh_row_run(program, values), state);
	if (in->op == GH_OP_FILTER)
	{
		(void) CHECK_U64(c, "state of a filtered row", state,
						 !args[0].null && args[0].low ? GH_ROW_LIVE : GH_ROW_DROPPED);
		return;
	}
	outcome = model_instruction(program, in, args, &expected);
	(void) CHECK(c, outcome == OUTCOME_EITHER || (state == GH_ROW_BACK) == (outcome == OUTCOME_BACK),
				 "operation %u of class %u, width %u, immediate %d on %" PRIx64 ":%" PRIx64
				 " and %" PRIx64 ":%" PRIx64 ": the row's state is %u", in->op, in->op_class,
				 in->width, in->immediate, args[0].high, args[0].low, args[1].high, args[1].low, state);
	if (state != GH_ROW_LIVE)
		return;
	check_value(c, in, args, batch_value(batch, in->result, row), expected);
	check_value(c, in, args, values[in->result], expected);
}

static uint32_t
count_live(const RowBatch *batch)
{
	uint32_t	live = 0;
	uint32_t	row;

	for (row = 0; row < batch->batch.nrows; row++)
		live += batch->batch.state[row] == GH_ROW_LIVE;
	return live;
}

static void
check_instruction(Context *c, const Pool *pool, const GhProgram *program, uint32_t nrows)
{
	uint8_t		before[GH_VECTOR_ROWS];
	RowBatch	batch;
	uint32_t	live;
	uint32_t	row;

	make_row_batch(&batch, program);
	fill_row_batch(c, pool, program, &batch, nrows);
	memcpy(before, batch.batch.state, sizeof(before));
	live = gh_program_run(program, &batch.batch);
	(void) CHECK_U64(c, "live rows", live, count_live(&batch));
	for (row = 0; row < nrows; row++)
	{
		if (before[row] == GH_ROW_LIVE)
			check_row(c, program, &batch, row);
		else
			(void) CHECK_U64(c, "state of a row that was not live", batch.batch.state[row], before[row]);
	}
	free_row_batch(&batch);
}

/* Puts an instruction on vectors of these classes (0: none) into the program; is it one? */
static bool
put_instruction(Context *c, const Parts *parts, GhProgram *program, const GhInstruction *shape,
				const uint32_t *classes, int32_t immediate)
{
	GhInstruction *in = (GhInstruction *) gh_program_instructions(program);
	int			i;

	*in = *shape;
	in->result = (uint16_t) (shape->op == GH_OP_FILTER ? 0 : parts->ncolumns + parts->nconstants);
	in->immediate = immediate;
	for (i = 0; i < 3; i++)
		in->args[i] = classes[i] == 0 ? 0 : (uint16_t) random_vector(c, parts, classes[i]);
	return accepted(program);
}

/* Several vectors and immediates of one kind of instruction; returns whether there is it. */
static bool
check_kind(Context *c, const Pool *pool, const Parts *parts, GhProgram *program,
			const GhInstruction *shape, const uint32_t *classes)
{
	int32_t		sure = shape->op == GH_OP_IN && shape->op_class != GH_CLASS_INT ? TEXT_LIST : 0;
	uint64_t	rounds = sized(c, 12, 4);
	uint64_t	i;

	if (!put_instruction(c, parts, program, shape, classes, sure))
		return false;
	for (i = 0; i < rounds; i++)
	{
		int32_t		limit = shape->op == GH_OP_IN || shape->op == GH_OP_ZONE_SHIFT ? LISTS : GH_SCALE_MAX;
		int32_t		immediate = (int32_t) random_below(c, 2 * (uint64_t) limit + 1) - limit;

		if (!put_instruction(c, parts, program, shape, classes, immediate))
			(void) put_instruction(c, parts, program, shape, classes, sure);
		check_instruction(c, pool, program, i == 0 ? GH_VECTOR_ROWS : (uint32_t) random_below(c, 600));
	}
	return true;
}

/* The three arguments' classes as digits of one number; BPCHAR is no vector's class. */
static void
classes_of(uint32_t number, uint32_t *classes)
{
	int			i;

	for (i = 0; i < 3; i++)
	{
		classes[i] = number % GH_CLASS_BPCHAR;
		number /= GH_CLASS_BPCHAR;
	}
}

static bool
check_pair(Context *c, const Pool *pool, const Parts *parts, GhProgram *program, uint16_t op,
		   uint8_t op_class)
{
	static const uint8_t widths[] = {0, 2, 4, 8};
	uint32_t	numbers = GH_CLASS_BPCHAR * GH_CLASS_BPCHAR * GH_CLASS_BPCHAR;
	uint32_t	number;
	bool		any = false;
	size_t		w;

	for (w = 0; w < sizeof(widths); w++)
		for (number = 1; number < numbers; number++)
		{
			GhInstruction shape = {.op = op, .op_class = op_class, .width = widths[w]};
			uint32_t	classes[3];

			classes_of(number, classes);
			any |= check_kind(c, pool, parts, program, &shape, classes);
		}
	return any;
}

static void
test_operations(Context *c)
{
	Pool		pool;
	Parts		parts;
	GhProgram  *program;
	uint64_t	pairs = 0;
	uint16_t	op;
	uint8_t		op_class;

	make_pool(c, &pool);
	add_vectors(c, &pool, &parts);
	parts.ninstructions = 1;
	parts.ntemporaries = 1;
	program = build_program(&parts);
	for (op = 0; op <= OPERATIONS; op++)
		for (op_class = 0; op_class <= CLASSES; op_class++)
			pairs += check_pair(c, &pool, &parts, program, op, op_class);
	(void) CHECK_U64(c, "pairs of operation and class", pairs, PAIRS_EXPECTED);
	free(program);
	free_pool(&pool);
}

/* ---------------------------------------------------------- random programs */

/* Any instruction that the check accepts behind those that are there. */
void
add_random_instruction(Context *c, Parts *parts)
{
	uint32_t	vectors = parts->ncolumns + parts->nconstants + parts->ntemporaries;
	bool		added = false;

	while (!added)
	{
		GhInstruction *in = add_instruction(parts, 1 + random_below(c, OPERATIONS - 1),
											1 + random_below(c, CLASSES - 1),
											(uint32_t) random_below(c, vectors),
											(uint32_t) random_below(c, 2) * (uint32_t) random_below(c, vectors),
											(uint32_t) random_below(c, 2) * (uint32_t) random_below(c, vectors));
		GhProgram  *program;

		if (in->op != GH_OP_FILTER)
			in->result += (uint16_t) random_below(c, parts->ntemporaries);
		in->width = (uint8_t) (random_below(c, 4) == 0 ? 0 : 1 << (1 + random_below(c, 3)));
		if (random_below(c, 2))
			in->immediate = (int32_t) random_below(c, 12) - 3;
		program = build_program(parts);
		/* one filter in ten: rows shall last */
		added = (in->op != GH_OP_FILTER || random_below(c, 10) == 0) && accepted(program);
		parts->ninstructions -= !added;
		free(program);
	}
}

/* Compares the states, and of live rows all temporaries that were set. */
void
check_program(Context *c, const Pool *pool, const GhProgram *program, uint32_t nrows)
{
	const GhInstruction *instructions = gh_program_instructions(program);
	uint8_t		before[GH_VECTOR_ROWS];
	RowBatch	batch;
	uint32_t	live;
	uint32_t	row;
	uint32_t	i;

	make_row_batch(&batch, program);
	fill_row_batch(c, pool, program, &batch, nrows);
	memcpy(before, batch.batch.state, sizeof(before));
	live = gh_program_run(program, &batch.batch);
	(void) CHECK_U64(c, "live rows", live, count_live(&batch));
	for (row = 0; row < nrows; row++)
	{
		GhValue		values[GH_PROGRAM_VECTORS_MAX] = {0};
		GhClass		held[GH_PROGRAM_VECTORS_MAX] = {0};
		GhRowState	state = before[row];

		gh_row_prepare(program, values);
		for (i = 0; i < program->ncolumns; i++)
			values[i] = batch_value(&batch, i, row);
		if (state == GH_ROW_LIVE)
			state = gh_row_run(program, values);
		(void) CHECK_U64(c, "state of a row", batch.batch.state[row], state);
		if (state != GH_ROW_LIVE)
			continue;
		for (i = 0; i < program->ninstructions; i++)
			if (instructions[i].op != GH_OP_FILTER)
				held[instructions[i].result] = result_class(&instructions[i]);
		for (i = 0; i < gh_program_vectors(program); i++)
			(void) CHECK(c, held[i] == 0 || same_value(held[i], values[i], batch_value(&batch, i, row)),
						 "vector %u of row %u is another when run by itself", i, row);
	}
	free_row_batch(&batch);
}

static void
test_random_programs(Context *c)
{
	uint64_t	rounds = sized(c, 300, 60);
	uint64_t	round;
	Pool		pool;

	make_pool(c, &pool);
	for (round = 0; round < rounds; round++)
	{
		static const uint32_t sizes[] = {0, 1, 15, 16, 17, 1000, GH_VECTOR_ROWS - 1, GH_VECTOR_ROWS};
		uint64_t	instructions = 1 + random_below(c, 20);
		GhProgram  *program;
		Parts		parts;

		add_vectors(c, &pool, &parts);
		parts.ntemporaries = 1 + (uint32_t) random_below(c, 8);
		while (parts.ninstructions < instructions)
			add_random_instruction(c, &parts);
		program = build_program(&parts);
		check_program(c, &pool, program, sizes[random_below(c, 8)]);
		free(program);
	}
	free_pool(&pool);
}

/* ---------------------------------------------------------- texts of any bytes */

/* Bytes in memory of just their number, some of which begin characters that are cut off. */
static GhText
hostile_text(Context *c, unsigned char **memory)
{
	static const unsigned char bytes[] = {'a', 'B', '%', '_', '\\', ' ', 0x80, 0xc3, 0xe6, 0xf0, 0xff};
	uint64_t	length = random_below(c, 9);
	uint64_t	i;

	*memory = make_memory(length);
	for (i = 0; i < length; i++)
		(*memory)[i] = bytes[random_below(c, sizeof(bytes))];
	return gh_text((uint64_t) (uintptr_t) *memory, length);
}

static void
check_part(Context *c, GhText text, GhText part)
{
	(void) CHECK(c, part.bytes >= text.bytes && part.length <= text.length &&
				 (size_t) (part.bytes - text.bytes) <= text.length - part.length, "a part is outside its text");
}

static void
check_parts(Context *c, GhText text, GhText other)
{
	bool		utf8 = random_below(c, 2) != 0;
	uint64_t	number = random_below(c, 24) - 12;
	uint64_t	bad = 0;

	check_part(c, text, gh_text_substring(text, random_below(c, 12) - 2, random_below(c, 12), utf8, &bad));
	check_part(c, text, gh_text_left(text, (int64_t) number, utf8));
	check_part(c, text, gh_text_right(text, (int64_t) number, utf8, &bad));
	check_part(c, text, gh_text_trim_left(text, other));
	check_part(c, text, gh_text_trim_right(text, other));
	(void) CHECK(c, gh_text_find(text, other, utf8) <= text.length + 1 && gh_text_characters(text, utf8) <= text.length,
				 "a text has more characters than bytes");
	(void) CHECK_U64(c, "where a text begins", gh_text_starts_with(text, other), gh_text_find(text, other, false) == 1);
}

/* Columns may hold anything: nothing outside a text is read, and a part lies within it. */
static void
test_hostile_texts(Context *c)
{
	uint64_t	rounds = sized(c, 200000, 20000);
	uint64_t	round;

	for (round = 0; round < rounds; round++)
	{
		unsigned char *memory[2];
		GhText		text = hostile_text(c, &memory[0]);
		GhText		pattern = hostile_text(c, &memory[1]);

		(void) CHECK(c, gh_text_like(text, pattern) <= gh_text_ilike(text, pattern),
					 "a text matches a pattern, but not if letters are folded");
		/* which of such texts match is not defined, where characters are skipped: only that it is told */
		(void) CHECK(c, gh_text_like_utf8(text, pattern) + gh_text_ilike_utf8(text, pattern) <= 2,
					 "whether a text of UTF-8 matches is no truth value");
		check_parts(c, text, pattern);
		free(memory[0]);
		free(memory[1]);
	}
}

/* Up to so many of these bytes, in memory of just their number. */
static GhText
drawn_text(Context *c, uint64_t length, const char *bytes, unsigned char **memory)
{
	uint64_t	i;

	*memory = make_memory(length);
	for (i = 0; i < length; i++)
		(*memory)[i] = (unsigned char) bytes[random_below(c, strlen(bytes))];
	return gh_text((uint64_t) (uintptr_t) *memory, length);
}

/* Patterns by their parts match what they do byte by byte. */
static void
test_pattern_parts(Context *c)
{
	static const char *const alphabets[] = {"ab%", "ab%%%", "abb%\\", "ab%_", "b"};
	uint64_t	rounds = sized(c, 1000000, 20000);
	uint64_t	by_parts = 0;
	uint64_t	found = 0;
	uint64_t	round;

	for (round = 0; round < rounds; round++)
	{
		unsigned char *memory[2];
		GhText		text = drawn_text(c, random_below(c, 70), "aaaaaaab", &memory[0]);
		GhText		pattern = drawn_text(c, random_below(c, random_below(c, 8) == 0 ? 2 * GH_PATTERN_BYTES : 9),
										 alphabets[random_below(c, sizeof(alphabets) / sizeof(alphabets[0]))], &memory[1]);
		GhPattern	parts;

		if (gh_pattern_read(pattern, &parts))
		{
			bool		matches = gh_pattern_matches(&parts, text);

			(void) CHECK_U64(c, "whether a text matches, by parts", matches, gh_text_like(text, pattern));
			by_parts++;
			found += matches;
		}
		free(memory[0]);
		free(memory[1]);
	}
	(void) CHECK(c, by_parts > rounds / 3 && found > by_parts / 10 && found < by_parts, "too few patterns were tried");
}

/* --------------------------------------------------------------- throughput */

/* What an instruction takes for a row, with a batch that stays in the cache; checks the count. */
static void
test_throughput(Context *c)
{
	uint32_t	batches = (uint32_t) sized(c, 10000, 100);
	double		least = 1e9;	/* seconds of a batch: others use the machine */
	GhValue		fifty = {50, 0, 0};
	Parts		parts = {0};
	GhProgram  *program;
	RowBatch	batch;
	uint64_t	live = 0;
	uint32_t	i;

	(void) add_column(&parts, GH_LOAD_INT4);
	(void) add_column(&parts, GH_LOAD_INT4);
	(void) add_constant(&parts, GH_CLASS_INT, fifty);
	parts.ntemporaries = 2;
	(void) add_instruction(&parts, GH_OP_LT, GH_CLASS_INT, 0, 2, 0);
	(void) add_instruction(&parts, GH_OP_FILTER, GH_CLASS_BOOL, 3, 0, 0);
	add_instruction(&parts, GH_OP_ADD, GH_CLASS_INT, 0, 1, 0)->width = 4;
	parts.instructions[2].result++;
	program = build_program(&parts);
	(void) CHECK(c, accepted(program), "int < 50, filter, int + int are no program");
	make_row_batch(&batch, program);
	batch.batch.nrows = GH_VECTOR_ROWS;
	for (i = 0; i < GH_VECTOR_ROWS; i++)
		batch.batch.vectors[0].low[i] = batch.batch.vectors[1].low[i] = random_below(c, 100);
	for (i = 0; i < batches; i++)
	{
		double		begin = seconds_now();
		double		seconds;

		memset(batch.batch.state, GH_ROW_LIVE, GH_VECTOR_ROWS);
		live += gh_program_run(program, &batch.batch);
		seconds = seconds_now() - begin;
		least = seconds < least ? seconds : least;
	}
	printf("  int < constant, filter, int + int: %.2f ns for a row and instruction\n",
		   least * 1e9 / GH_VECTOR_ROWS / 3);
	(void) CHECK_U64(c, "rows in all", live, (uint64_t) count_live(&batch) * batches);
	free_row_batch(&batch);
	free(program);
}

const Test	program_tests[] = {
	{"every operation of programs", test_operations, true},
	{"random programs", test_random_programs, true},
	{"programs: texts of any bytes", test_hostile_texts, false},
	{"programs: patterns by their parts", test_pattern_parts, false},
	{"throughput of programs", test_throughput, true},
	{NULL, NULL, false}
};
