/*
 * test_program_check.c
 *		What gh_program_check() refuses: limits at their edges, each kind of fault, and bytes
 *		that were changed at random.  What it accepts runs, and stays within its memory, which
 *		the sanitizers watch.
 */
#include "program_test.h"

/* ------------------------------------------------------------------- limits */

static bool
accepts(GhProgram *program)
{
	bool		is = accepted(program);

	free(program);
	return is;
}

/* A program of one BOOL column, so many constants and temporaries, and instructions. */
static GhProgram *
make_program(uint32_t nconstants, uint32_t ntemporaries, uint32_t nlists, uint32_t ninstructions,
			 uint32_t bytes)
{
	size_t		least = sizeof(GhProgram) + nconstants * sizeof(GhConstant) + nlists * sizeof(GhList) +
		ninstructions * sizeof(GhInstruction) + sizeof(GhColumn);
	GhProgram  *program;
	uint32_t	i;

	bytes = bytes > least ? bytes : (uint32_t) least;
	program = make_memory(bytes);
	memset(program, 0, bytes);
	program->magic = GH_PROGRAM_MAGIC;
	program->bytes = bytes;
	program->ncolumns = 1;
	program->nconstants = nconstants;
	program->ntemporaries = ntemporaries;
	program->nlists = nlists;
	program->ninstructions = ninstructions;
	((GhColumn *) gh_program_columns(program))->load = GH_LOAD_BOOL;
	((GhColumn *) gh_program_columns(program))->attribute = 1;
	for (i = 0; i < nconstants; i++)
		((GhConstant *) gh_program_constants(program))[i].value_class = GH_CLASS_INT;
	for (i = 0; i < nlists; i++)
		((GhList *) gh_program_lists(program))[i].value_class = GH_CLASS_INT;
	for (i = 0; i < ninstructions; i++)
	{
		GhInstruction *in = &((GhInstruction *) gh_program_instructions(program))[i];

		in->op = GH_OP_FILTER;
		in->op_class = GH_CLASS_BOOL;
	}
	return program;
}

static void
test_limits(Context *c)
{
	const uint32_t vectors = GH_PROGRAM_VECTORS_MAX;
	const uint32_t lists = GH_PROGRAM_LISTS_MAX;
	const uint32_t instructions = GH_PROGRAM_INSTRUCTIONS_MAX;

	(void) CHECK(c, accepts(make_program(0, 0, 0, 0, 0)), "least program");
	(void) CHECK(c, accepts(make_program(vectors - 1, 0, 0, 1, 0)), "most constants");
	(void) CHECK(c, !accepts(make_program(vectors, 0, 0, 1, 0)), "a constant too many");
	(void) CHECK(c, accepts(make_program(1, vectors - 2, 0, 1, 0)), "most temporaries");
	(void) CHECK(c, !accepts(make_program(1, vectors - 1, 0, 1, 0)), "a temporary too many");
	(void) CHECK(c, !accepts(make_program(1, UINT32_MAX, 0, 1, 0)), "temporaries that wrap around");
	(void) CHECK(c, accepts(make_program(0, 0, lists, 1, 0)), "most lists");
	(void) CHECK(c, !accepts(make_program(0, 0, lists + 1, 1, 0)), "a list too many");
	(void) CHECK(c, accepts(make_program(0, 0, 0, instructions, 0)), "most instructions");
	(void) CHECK(c, !accepts(make_program(0, 0, 0, instructions + 1, 0)), "an instruction too many");
	(void) CHECK(c, accepts(make_program(0, 0, 0, 1, GH_PROGRAM_BYTES_MAX)), "most bytes");
	(void) CHECK(c, !accepts(make_program(0, 0, 0, 1, GH_PROGRAM_BYTES_MAX + 1)), "a byte too many");
}

/* ------------------------------------------------------------------- faults */

/*
 * A program of two INT, a NUMERIC, a name and a text column, an INT and a text constant, a
 * list of each, and INT + INT, its comparison, text = text, IN and a filter.
 */
static GhProgram *
make_sound(void)
{
	static const int64_t integers[] = {1, 2};
	static const char *const texts[] = {"a", "b"};
	Parts		parts = {0};
	GhValue		one = {1, 0, 0};
	uint32_t	i;

	(void) add_column(&parts, GH_LOAD_INT4);
	(void) add_column(&parts, GH_LOAD_INT8);
	(void) add_column(&parts, GH_LOAD_NUMERIC);
	(void) add_column(&parts, GH_LOAD_FIXED);
	(void) add_column(&parts, GH_LOAD_TEXT);
	(void) add_constant(&parts, GH_CLASS_INT, one);
	(void) add_text(&parts, "abc", 3);
	(void) add_int_list(&parts, integers, 2, false);
	(void) add_text_list(&parts, texts, 2, false);
	parts.ntemporaries = 4;
	add_instruction(&parts, GH_OP_ADD, GH_CLASS_INT, 0, 5, 0)->width = 4;
	add_instruction(&parts, GH_OP_LT, GH_CLASS_INT, 7, 1, 0);
	add_instruction(&parts, GH_OP_EQ, GH_CLASS_TEXT, 6, 4, 0);
	add_instruction(&parts, GH_OP_IN, GH_CLASS_INT, 7, 0, 0);
	for (i = 0; i < 4; i++)
		parts.instructions[i].result = (uint16_t) (7 + i);
	add_instruction(&parts, GH_OP_FILTER, GH_CLASS_BOOL, 8, 0, 0);
	return build_program(&parts);
}

/* Copies that are changed in one place; all are refused. */
typedef struct Sound
{
	GhProgram  *program;
	GhColumn   *columns;
	GhConstant *constants;
	GhList	   *lists;
	GhInstruction *in;
	int64_t    *integers;
	GhListText *texts;
} Sound;

static Sound
open_sound(GhProgram *program)
{
	Sound		s = {
		program, (GhColumn *) gh_program_columns(program),
		(GhConstant *) gh_program_constants(program), (GhList *) gh_program_lists(program),
		(GhInstruction *) gh_program_instructions(program), NULL, NULL
	};

	s.integers = (int64_t *) ((char *) program + s.lists[0].values);
	s.texts = (GhListText *) ((char *) program + s.lists[1].values);
	return s;
}

#define REFUSED(change) \
	do \
	{ \
		Sound		s = open_sound(make_sound()); \
		change; \
		(void) CHECK(c, !accepts(s.program), "a program is accepted after: %s", #change); \
	} while (0)

#define ACCEPTED(change) \
	do \
	{ \
		Sound		s = open_sound(make_sound()); \
		change; \
		(void) CHECK(c, accepts(s.program), "a program is refused after: %s", #change); \
	} while (0)

static void
check_heads(Context *c)
{
	REFUSED(s.program->magic++);
	REFUSED(s.program->bytes--);
	REFUSED(s.program->unused = 1);
	REFUSED(s.program->nconstants = UINT32_MAX);
	REFUSED(s.program->ncolumns = UINT32_MAX);
	REFUSED(s.program->nlists++);
	REFUSED(s.program->ninstructions++);
	REFUSED(s.program->ncolumns--);
	REFUSED(s.program->ntemporaries--);
}

static void
check_columns_and_constants(Context *c)
{
	static const GhColumn tid = {.load = GH_LOAD_TID};

	REFUSED(s.columns[0].load = 0);
	REFUSED(s.columns[0].load = GH_LOAD_TID + 1);
	REFUSED(s.columns[0].load = GH_LOAD_TID);
	ACCEPTED(s.columns[0] = tid);
	ACCEPTED(s.columns[1] = tid);
	REFUSED(s.columns[0] = s.columns[1] = tid);
	REFUSED(s.columns[0] = tid; s.columns[0].missing = GH_MISSING_BACK);
	REFUSED(s.columns[0] = tid; s.columns[0].scale = 1);
	REFUSED(s.columns[0] = tid; s.columns[0].length = 8);
	/* it is no text */
	REFUSED(s.columns[4] = tid);
	REFUSED(s.columns[0].attribute = 0);
	ACCEPTED(s.columns[0].attribute = GH_ATTRIBUTE_MAX + 1);
	ACCEPTED(s.columns[0].attribute = GH_COLUMN_MAX);
	REFUSED(s.columns[0].attribute = GH_COLUMN_MAX + 1);
	REFUSED(s.columns[0].missing = GH_MISSING_BACK + 1);
	REFUSED(s.columns[0].scale = 1);
	REFUSED(s.columns[0].length = 1);
	REFUSED(s.columns[2].scale = GH_SCALE_MAX + 1);
	REFUSED(s.columns[3].length = 0);
	REFUSED(s.columns[3].length = GH_FIXED_LENGTH_MAX + 1);
	REFUSED(s.constants[0].value_class = 0);
	REFUSED(s.constants[0].value_class = GH_CLASS_BPCHAR);
	REFUSED(s.constants[0].null = 2);
	REFUSED(s.constants[0].unused[5] = 1);
	REFUSED(s.constants[0].value_class = GH_CLASS_BOOL; s.constants[0].low = 2);
	REFUSED(s.constants[0].value_class = GH_CLASS_FLOAT4; s.constants[0].low = gh_from_double(0.1));
	REFUSED(s.constants[1].low = s.program->bytes - 2);
	REFUSED(s.constants[1].low = UINT64_MAX);
	REFUSED(s.constants[1].high = s.program->bytes);
	REFUSED(s.constants[1].high = UINT64_MAX);
}

static void
check_lists(Context *c)
{
	REFUSED(s.lists[0].value_class = GH_CLASS_FLOAT8);
	REFUSED(s.lists[0].has_null = 2);
	REFUSED(s.lists[0].unused[1] = 1);
	REFUSED(s.lists[0].slots = s.lists[0].values);
	REFUSED(s.lists[1].slots += 4);
	REFUSED(s.lists[1].slots = (s.program->bytes - 8) & ~UINT32_C(7));
	REFUSED(s.lists[1].slots = UINT32_MAX - 7);
	REFUSED(((uint16_t *) ((char *) s.program + s.lists[1].slots))[GH_LIST_SLOTS - 1] = 3);
	REFUSED(s.lists[0].values += 4);
	REFUSED(s.lists[0].values = UINT32_MAX - 7);
	REFUSED(s.lists[0].count = UINT32_MAX);
	REFUSED(s.integers[0] = 3);
	REFUSED(s.texts[0].offset = s.program->bytes);
	REFUSED({ GhListText first = s.texts[0]; s.texts[0] = s.texts[1]; s.texts[1] = first; });
	REFUSED(s.texts[1].length = UINT32_MAX);
}

static void
check_instructions(Context *c)
{
	REFUSED(s.in[0].op = 0);
	REFUSED(s.in[0].op = GH_OP_COALESCE + 1);
	REFUSED(s.in[0].op = UINT16_MAX);
	REFUSED(s.in[0].op_class = 0);
	REFUSED(s.in[0].op_class = GH_CLASS_BPCHAR + 1);
	REFUSED(s.in[0].op_class = 32 + GH_CLASS_INT);
	REFUSED(s.in[0].op_class = GH_CLASS_TEXT);
	REFUSED(s.in[0].width = 0);
	REFUSED(s.in[0].width = 3);
	REFUSED(s.in[1].width = 4);
	REFUSED(s.in[0].immediate = 1);
	REFUSED(s.in[0].args[0] = 2);	/* numeric */
	REFUSED(s.in[0].args[1] = 4);	/* text */
	REFUSED(s.in[0].args[1] = 9);	/* set later */
	REFUSED(s.in[0].args[1] = 11);	/* no vector */
	REFUSED(s.in[0].args[1] = UINT16_MAX);
	REFUSED(s.in[0].args[2] = 1);	/* one too many */
	REFUSED(s.in[0].result = 0);	/* a column */
	REFUSED(s.in[0].result = 6);	/* a constant */
	REFUSED(s.in[0].result = 11);
	REFUSED(s.in[1].result = 7);	/* its argument */
	REFUSED(s.in[2].args[0] = 5);
	REFUSED(s.in[3].immediate = -1);
	REFUSED(s.in[3].immediate = 1);
	REFUSED(s.in[3].immediate = 2);
	REFUSED(s.in[4].result = 10);
	REFUSED(s.in[4].args[0] = 7);	/* not BOOL */
	REFUSED(s.in[4].args[0] = 10; s.in[3].result = 9);
}

/* Digits from what is fewest to what is most, and beyond. */
static void
check_digits(Context *c)
{
	static const struct
	{
		GhProgramOp op;
		uint32_t	vector;
		int			width;
		int32_t		least;
		GhClass		op_class;
	}			kinds[] = {
		{GH_OP_RESCALE, 2, 0, -GH_SCALE_MAX, GH_CLASS_INT128}, {GH_OP_FROM_INT, 0, 0, 0, GH_CLASS_INT128},
		{GH_OP_TO_INT, 2, 8, 0, GH_CLASS_INT128}, {GH_OP_TO_FLOAT8, 2, 0, 0, GH_CLASS_INT128},
		{GH_OP_TRUNC, 2, 0, 0, GH_CLASS_INT128}, {GH_OP_FLOOR, 2, 0, 0, GH_CLASS_INT128},
		{GH_OP_CEIL, 2, 0, 0, GH_CLASS_INT128}, {GH_OP_BOUND, 2, 0, 0, GH_CLASS_INT128},
		{GH_OP_NUMERIC, 4, 0, 0, GH_CLASS_TEXT}
	};
	size_t		k;
	int32_t		digits;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (digits = -GH_SCALE_MAX - 1; digits <= GH_SCALE_MAX + 1; digits++)
		{
			Sound		s = open_sound(make_sound());

			s.program->ninstructions = 1;
			/* what follows the instructions moves up: the columns */
			memmove(s.in + 1, s.columns, s.program->ncolumns * sizeof(GhColumn));
			s.in[0].op = (uint16_t) kinds[k].op;
			s.in[0].op_class = (uint8_t) kinds[k].op_class;
			s.in[0].width = (uint8_t) kinds[k].width;
			s.in[0].args[0] = (uint16_t) kinds[k].vector;
			s.in[0].args[1] = 0;
			s.in[0].immediate = digits;
			(void) CHECK(c, accepts(s.program) == (digits >= kinds[k].least && digits <= GH_SCALE_MAX),
						 "operation %u with %d digits", kinds[k].op, digits);
		}
}

static void
test_faults(Context *c)
{
	GhProgram  *program = make_sound();
	char	   *moved = make_memory(program->bytes + 8);
	GhError		error = {0};

	memcpy(moved + 8, program, program->bytes);
	(void) CHECK_STATUS(c, "no block", gh_program_check(NULL, 100, &error), GH_INVALID);
	(void) CHECK_STATUS(c, "no bytes", gh_program_check(program, 0, &error), GH_INVALID);
	(void) CHECK_STATUS(c, "a block out of line",
						gh_program_check(moved + 8, program->bytes, &error), GH_INVALID);
	(void) CHECK(c, error.status == GH_INVALID && error.message[0] != '\0', "there is no sentence");
	free(moved);
	(void) CHECK(c, accepts(program), "the sound program is refused");
	check_heads(c);
	check_columns_and_constants(c);
	check_lists(c);
	check_instructions(c);
	check_digits(c);
}

/* ------------------------------------------------------------ garbled bytes */

static void
garble(Context *c, uint8_t *bytes, size_t count)
{
	uint64_t	changes = random_below(c, 5);

	while (changes-- > 0)
	{
		uint8_t    *byte = &bytes[random_below(c, count)];

		*byte = (uint8_t) (random_below(c, 2) ? random_next(c) : *byte ^ UINT64_C(1) << random_below(c, 8));
	}
}

/* Random bytes behind a head that lets them be looked at. */
static GhProgram *
make_noise(Context *c)
{
	GhProgram  *program = make_program((uint32_t) random_below(c, 3), 3, (uint32_t) random_below(c, 3),
									   1 + (uint32_t) random_below(c, 2), 256);
	uint8_t    *bytes = (uint8_t *) (program + 1);
	size_t		i;

	for (i = 0; i < program->bytes - sizeof(GhProgram); i++)
		if (random_below(c, 4) == 0)
			bytes[i] = (uint8_t) (random_next(c) % (random_below(c, 2) ? 8 : 256));
	return program;
}

static void
test_garbled(Context *c)
{
	uint64_t	rounds = sized(c, 60000, 15000);
	uint64_t	accepted_count = 0;
	uint64_t	round;
	Pool		pool;

	make_pool(c, &pool);
	for (round = 0; round < rounds; round++)
	{
		GhProgram  *program = random_below(c, 4) == 0 ? make_noise(c) : make_sound();
		size_t		bytes = program->bytes;
		GhError		error;

		garble(c, (uint8_t *) program, bytes);
		if (gh_program_check(program, bytes, &error) == GH_OK)
		{
			accepted_count++;
			check_program(c, &pool, program, (uint32_t) random_below(c, 20));
		}
		free(program);
	}
	(void) CHECK(c, accepted_count > rounds / 20, "only %" PRIu64 " of %" PRIu64 " were accepted",
				 accepted_count, rounds);
	free_pool(&pool);
}

const Test	program_check_tests[] = {
	{"limits of programs", test_limits, true},
	{"faults of programs", test_faults, true},
	{"garbled programs", test_garbled, true},
	{NULL, NULL, false}
};
