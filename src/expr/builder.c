/*
 * builder.c
 *		A program of the engines that grows while expressions are translated.
 *
 * Vectors are numbered by kind, columns, constants and temporaries having ranges of their
 * own, which gh_translate_end() joins.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "expr/translate.h"

/* Ranges of numbers of vectors, until it is known how many there are of each. */
#define CONSTANTS_FROM 0x4000
#define TEMPORARIES_FROM 0x8000

/* Says why; false, for the caller to return. */
bool
gh_translation_fails(GhTranslation *translation, const char *why)
{
	if (translation->why_not == NULL)
		translation->why_not = why;
	return false;
}

static bool
is_full(GhTranslation *translation)
{
	return translation->ncolumns + translation->nconstants + translation->ntemporaries >=
		GH_PROGRAM_VECTORS_MAX;
}

/* One more instruction, which fills a new temporary. */
bool
gh_add_instruction(GhTranslation *translation, GhProgramOp op, GhClass op_class, int width,
				   int immediate, int nargs, const GhOperand *args, GhOperand *result)
{
	GhInstruction *instruction;

	if (is_full(translation) || translation->ninstructions >= GH_PROGRAM_INSTRUCTIONS_MAX)
		return gh_translation_fails(translation, "the expressions are too long");
	instruction = &translation->instructions[translation->ninstructions++];
	memset(instruction, 0, sizeof(*instruction));
	instruction->op = op;
	instruction->op_class = op_class;
	instruction->width = width;
	instruction->immediate = immediate;
	for (int i = 0; i < nargs; i++)
		instruction->args[i] = args[i].vector;
	if (op != GH_OP_FILTER)
		instruction->result = result->vector = TEMPORARIES_FROM + translation->ntemporaries++;
	return true;
}

/* The vector of a column, which is there once. */
bool
gh_add_column(GhTranslation *translation, const GhColumn *column, GhOperand *result)
{
	for (result->vector = 0; result->vector < translation->ncolumns; result->vector++)
		if (memcmp(&translation->columns[result->vector], column, sizeof(*column)) == 0)
			return true;
	if (is_full(translation))
		return gh_translation_fails(translation, "too many columns are read");
	translation->columns[translation->ncolumns++] = *column;
	return true;
}

/* The column that holds where the tuple is. */
bool
gh_add_place(GhTranslation *translation, GhOperand *result)
{
	const GhColumn place = {.load = GH_LOAD_TID};

	result->value_class = GH_CLASS_INT;
	return gh_add_column(translation, &place, result);
}

/* Bytes kept with the program; where they are. */
uint64
gh_keep_bytes(GhTranslation *translation, const void *bytes, Size size, Size align)
{
	uint64		at;

	while (translation->values.len % align != 0)
		appendStringInfoCharMacro(&translation->values, '\0');
	at = translation->values.len;
	appendBinaryStringInfo(&translation->values, bytes, size);
	return at;
}

bool
gh_add_constant(GhTranslation *translation, GhClass value_class, bool null, uint64 low, uint64 high,
				GhOperand *result)
{
	GhConstant	constant = {.value_class = value_class, .null = null, .low = low, .high = high};

	result->value_class = value_class;
	for (int i = 0; i < translation->nconstants; i++)
		if (memcmp(&translation->constants[i], &constant, sizeof(constant)) == 0)
		{
			result->vector = CONSTANTS_FROM + i;
			return true;
		}
	if (is_full(translation))
		return gh_translation_fails(translation, "the expressions have too many constants");
	result->vector = CONSTANTS_FROM + translation->nconstants;
	translation->constants[translation->nconstants++] = constant;
	return true;
}

/* The constant that an operand is; NULL: it is none. */
const GhConstant *
gh_constant_of(const GhTranslation *translation, const GhOperand *operand)
{
	return operand->vector >= CONSTANTS_FROM && operand->vector < TEMPORARIES_FROM ?
		&translation->constants[operand->vector - CONSTANTS_FROM] : NULL;
}

/* --------------------------------------------------------- the program */

static uint16
final_number(const GhTranslation *translation, int vector)
{
	if (vector >= TEMPORARIES_FROM)
		return vector - TEMPORARIES_FROM + translation->ncolumns + translation->nconstants;
	if (vector >= CONSTANTS_FROM)
		return vector - CONSTANTS_FROM + translation->ncolumns;
	return vector;
}

/* The operand's vector in the finished program. */
uint16
gh_final_vector(const GhTranslation *translation, const GhOperand *operand)
{
	return final_number(translation, operand->vector);
}

/* Moves offsets into translation->values to where these begin in the program. */
static void
place_values(GhTranslation *translation, uint32 base)
{
	for (int i = 0; i < translation->nconstants; i++)
		if (translation->constants[i].value_class == GH_CLASS_TEXT && !translation->constants[i].null)
			translation->constants[i].low += base;
	for (int i = 0; i < translation->nlists; i++)
	{
		GhList	   *list = &translation->lists[i];

		if (list->value_class == GH_CLASS_TEXT)
		{
			GhListText *texts = (GhListText *) (translation->values.data + list->values);

			for (uint32 j = 0; j < list->count; j++)
				texts[j].offset += base;
			list->slots += list->slots != 0 ? base : 0;
		}
		list->values += base;
	}
}

static char *
put_array(char *at, const void *array, Size bytes)
{
	memcpy(at, array, bytes);
	return at + bytes;
}

/* The program of all that was added; NULL, with a word on why, if it is too long. */
GhProgram *
gh_translate_end(GhTranslation *translation)
{
	uint32		fixed = sizeof(GhProgram) + translation->nconstants * sizeof(GhConstant) +
		translation->nlists * sizeof(GhList) + translation->ninstructions * sizeof(GhInstruction) +
		translation->ncolumns * sizeof(GhColumn);
	uint32		base = TYPEALIGN(16, fixed);
	Size		bytes = TYPEALIGN(16, (Size) base + translation->values.len);
	GhProgram  *program;
	char	   *at;

	if (bytes > GH_PROGRAM_BYTES_MAX)
	{
		gh_translation_fails(translation, "the expressions' constants are too long");
		return NULL;
	}
	for (int i = 0; i < translation->ninstructions; i++)
	{
		GhInstruction *instruction = &translation->instructions[i];

		if (instruction->op != GH_OP_FILTER)
			instruction->result = final_number(translation, instruction->result);
		for (int a = 0; a < (int) lengthof(instruction->args); a++)
			instruction->args[a] = final_number(translation, instruction->args[a]);
	}
	place_values(translation, base);
	/* palloc aligns to less */
	program = (GhProgram *) TYPEALIGN(16, palloc0(bytes + 16));
	program->magic = GH_PROGRAM_MAGIC;
	program->bytes = bytes;
	program->nconstants = translation->nconstants;
	program->nlists = translation->nlists;
	program->ninstructions = translation->ninstructions;
	program->ncolumns = translation->ncolumns;
	program->ntemporaries = translation->ntemporaries;
	at = put_array((char *) (program + 1), translation->constants, translation->nconstants * sizeof(GhConstant));
	at = put_array(at, translation->lists, translation->nlists * sizeof(GhList));
	at = put_array(at, translation->instructions, translation->ninstructions * sizeof(GhInstruction));
	put_array(at, translation->columns, translation->ncolumns * sizeof(GhColumn));
	memcpy((char *) program + base, translation->values.data, translation->values.len);
	return program;
}

/*
 * A list of whole numbers that is longer is searched by halves, each of which takes as long as so many
 * instructions.
 */
#define GH_SHORT_LIST 16
#define GH_HALVING_INSTRUCTIONS 2

int
gh_translation_length(const GhTranslation *translation)
{
	int			length = translation->ninstructions;

	for (int l = 0; l < translation->nlists; l++)
	{
		const GhList *list = &translation->lists[l];

		if (list->value_class == GH_CLASS_INT && list->count > GH_SHORT_LIST)
			length += GH_HALVING_INSTRUCTIONS * pg_leftmost_one_pos32(list->count / GH_SHORT_LIST);
	}
	return length;
}
