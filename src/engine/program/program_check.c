/*
 * program_check.c
 *		Accepts or refuses a block of bytes as a program, before anybody runs it.
 *
 * The block may come from memory that another process wrote.  First its parts must lie in
 * it, then each column, constant and list must be in range, and then the instructions are
 * followed once, with the class of what each vector holds: there are no jumps, so what
 * is set before an instruction is set whenever it runs.  A vector is of text exactly if its
 * words are an address and a length that a column, a constant or another such vector
 * gave, or lie within these, which is why no operation can make an address out of a number.
 */
#include "engine/program/program_float.h"
#include "engine/program/program_text.h"

#define CLASS(name) (1 << GH_CLASS_##name)
#define CLASSES_COMPARED \
	(CLASS(BOOL) | CLASS(INT) | CLASS(INT128) | CLASS(FLOAT8) | CLASS(TEXT) | CLASS(BPCHAR))
#define CLASSES_COMPUTED (CLASS(INT) | CLASS(INT128) | CLASS(FLOAT4) | CLASS(FLOAT8))
#define CLASSES_HELD ((CLASSES_COMPARED | CLASS(FLOAT4)) & ~CLASS(BPCHAR))

/* What `immediate` must be. */
typedef enum Immediate
{
	NOTHING,					/* 0 */
	DIGITS,						/* 0 to GH_SCALE_MAX, if INT128 is what it works on or comes to, else 0 */
	DIGITS_SIGNED,
	LIST
} Immediate;

/*
 * An operation: the classes it is for; its arguments and result, by the letter: S the
 * operation's class, B BOOL, I INT, W INT128, 4 FLOAT4, 8 FLOAT8; does an INT result have a width?
 */
typedef struct Signature
{
	uint16_t	classes;
	char		args[4];
	char		result;			/* 0: none */
	bool		width;
	Immediate	immediate;
} Signature;

static const Signature signatures[] = {
	[GH_OP_EQ] = {CLASSES_COMPARED, "SS", 'B', false, NOTHING},
	[GH_OP_NE] = {CLASSES_COMPARED, "SS", 'B', false, NOTHING},
	[GH_OP_LT] = {CLASSES_COMPARED, "SS", 'B', false, NOTHING},
	[GH_OP_LE] = {CLASSES_COMPARED, "SS", 'B', false, NOTHING},
	[GH_OP_GT] = {CLASSES_COMPARED, "SS", 'B', false, NOTHING},
	[GH_OP_GE] = {CLASSES_COMPARED, "SS", 'B', false, NOTHING},
	[GH_OP_DISTINCT] = {CLASSES_COMPARED, "SS", 'B', false, NOTHING},
	[GH_OP_NOT_DISTINCT] = {CLASSES_COMPARED, "SS", 'B', false, NOTHING},
	[GH_OP_ADD] = {CLASSES_COMPUTED, "SS", 'S', true, NOTHING},
	[GH_OP_SUB] = {CLASSES_COMPUTED, "SS", 'S', true, NOTHING},
	[GH_OP_MUL] = {CLASSES_COMPUTED, "SS", 'S', true, NOTHING},
	[GH_OP_NEG] = {CLASSES_COMPUTED, "S", 'S', true, NOTHING},
	[GH_OP_ABS] = {CLASSES_COMPUTED, "S", 'S', true, NOTHING},
	[GH_OP_DIV] = {CLASSES_COMPUTED & ~CLASS(INT128), "SS", 'S', true, NOTHING},
	[GH_OP_MOD] = {CLASS(INT) | CLASS(INT128), "SS", 'S', true, NOTHING},
	[GH_OP_SQRT] = {CLASS(FLOAT8), "S", 'S', false, NOTHING},
	[GH_OP_TRUNC] = {CLASS(INT128) | CLASS(FLOAT8), "S", 'S', false, DIGITS},
	[GH_OP_FLOOR] = {CLASS(INT128) | CLASS(FLOAT8), "S", 'S', false, DIGITS},
	[GH_OP_CEIL] = {CLASS(INT128) | CLASS(FLOAT8), "S", 'S', false, DIGITS},
	[GH_OP_ROUND] = {CLASS(FLOAT8), "S", 'S', false, NOTHING},
	[GH_OP_SIGN] = {CLASS(INT128) | CLASS(FLOAT8), "S", 'S', false, NOTHING},
	[GH_OP_QUOTIENT] = {CLASS(INT128), "SSI", 'S', false, DIGITS},
	[GH_OP_QUOTIENT_SCALE] = {CLASS(INT128), "SSI", 'I', false, DIGITS},
	[GH_OP_BOUND] = {CLASS(INT128), "S", 'S', false, DIGITS},
	[GH_OP_BIT_AND] = {CLASS(INT), "SS", 'S', false, NOTHING},
	[GH_OP_BIT_OR] = {CLASS(INT), "SS", 'S', false, NOTHING},
	[GH_OP_BIT_XOR] = {CLASS(INT), "SS", 'S', false, NOTHING},
	[GH_OP_BIT_NOT] = {CLASS(INT), "S", 'S', false, NOTHING},
	[GH_OP_SHIFT_LEFT] = {CLASS(INT), "SS", 'S', true, NOTHING},
	[GH_OP_SHIFT_RIGHT] = {CLASS(INT), "SS", 'S', true, NOTHING},
	[GH_OP_RESCALE] = {CLASS(INT128), "S", 'S', false, DIGITS_SIGNED},
	[GH_OP_FROM_INT] = {CLASS(INT128) | CLASS(FLOAT4) | CLASS(FLOAT8), "I", 'S', false, DIGITS},
	[GH_OP_TO_INT] = {CLASS(BOOL) | CLASS(INT) | CLASS(INT128) | CLASS(FLOAT8), "S", 'I', true, DIGITS},
	[GH_OP_TO_FLOAT4] = {CLASS(FLOAT8), "S", '4', false, NOTHING},
	[GH_OP_TO_FLOAT8] = {CLASS(INT128), "S", '8', false, DIGITS},
	[GH_OP_DATE_ADD] = {CLASS(INT), "SS", 'S', false, NOTHING},
	[GH_OP_DATE_SUB] = {CLASS(INT), "SS", 'S', false, NOTHING},
	[GH_OP_DATE_DIFF] = {CLASS(INT), "SS", 'S', false, NOTHING},
	[GH_OP_DATE_TO_TIMESTAMP] = {CLASS(INT), "S", 'S', false, NOTHING},
	[GH_OP_TIMESTAMP_ADD] = {CLASS(INT), "SS", 'S', false, NOTHING},
	[GH_OP_TIMESTAMP_ADD_MONTHS] = {CLASS(INT), "SS", 'S', false, NOTHING},
	[GH_OP_TIMESTAMP_DIFF] = {CLASS(INT), "SS", 'S', false, NOTHING},
	[GH_OP_TIMESTAMP_TO_DATE] = {CLASS(INT), "S", 'S', false, NOTHING},
	[GH_OP_DATE_YEAR] = {CLASS(INT), "S", 'S', false, NOTHING},
	[GH_OP_DATE_MONTH] = {CLASS(INT), "S", 'S', false, NOTHING},
	[GH_OP_DATE_DAY] = {CLASS(INT), "S", 'S', false, NOTHING},
	[GH_OP_DATE_WEEKDAY] = {CLASS(INT), "S", 'S', false, NOTHING},
	[GH_OP_DATE_TO_YEAR] = {CLASS(INT), "S", 'S', false, NOTHING},
	[GH_OP_DATE_TO_QUARTER] = {CLASS(INT), "S", 'S', false, NOTHING},
	[GH_OP_DATE_TO_MONTH] = {CLASS(INT), "S", 'S', false, NOTHING},
	[GH_OP_DATE_TO_WEEK] = {CLASS(INT), "S", 'S', false, NOTHING},
	[GH_OP_ZONE_SHIFT] = {CLASS(INT), "S", 'S', false, LIST},
	[GH_OP_LIKE] = {CLASS(TEXT), "SS", 'B', false, NOTHING},
	[GH_OP_LIKE_UTF8] = {CLASS(TEXT), "SS", 'B', false, NOTHING},
	[GH_OP_ILIKE] = {CLASS(TEXT), "SS", 'B', false, NOTHING},
	[GH_OP_ILIKE_UTF8] = {CLASS(TEXT), "SS", 'B', false, NOTHING},
	[GH_OP_UNPADDED] = {CLASS(TEXT), "S", 'S', false, NOTHING},
	[GH_OP_SUBSTRING] = {CLASS(TEXT), "SII", 'S', false, NOTHING},
	[GH_OP_SUBSTRING_UTF8] = {CLASS(TEXT), "SII", 'S', false, NOTHING},
	[GH_OP_LEFT] = {CLASS(TEXT), "SI", 'S', false, NOTHING},
	[GH_OP_LEFT_UTF8] = {CLASS(TEXT), "SI", 'S', false, NOTHING},
	[GH_OP_RIGHT] = {CLASS(TEXT), "SI", 'S', false, NOTHING},
	[GH_OP_RIGHT_UTF8] = {CLASS(TEXT), "SI", 'S', false, NOTHING},
	[GH_OP_TRIM_LEFT] = {CLASS(TEXT), "SS", 'S', false, NOTHING},
	[GH_OP_TRIM_RIGHT] = {CLASS(TEXT), "SS", 'S', false, NOTHING},
	[GH_OP_LENGTH] = {CLASS(TEXT), "S", 'I', false, NOTHING},
	[GH_OP_LENGTH_UTF8] = {CLASS(TEXT), "S", 'I', false, NOTHING},
	[GH_OP_POSITION] = {CLASS(TEXT), "SS", 'I', false, NOTHING},
	[GH_OP_POSITION_UTF8] = {CLASS(TEXT), "SS", 'I', false, NOTHING},
	[GH_OP_STARTS_WITH] = {CLASS(TEXT), "SS", 'B', false, NOTHING},
	[GH_OP_NUMERIC] = {CLASS(TEXT), "S", 'W', false, DIGITS},
	[GH_OP_NUMERIC_SCALE] = {CLASS(TEXT), "S", 'I', false, NOTHING},
	[GH_OP_HASH] = {CLASSES_COMPARED, "SI", 'I', false, NOTHING},
	[GH_OP_AND] = {CLASS(BOOL), "SS", 'S', false, NOTHING},
	[GH_OP_OR] = {CLASS(BOOL), "SS", 'S', false, NOTHING},
	[GH_OP_NOT] = {CLASS(BOOL), "S", 'S', false, NOTHING},
	[GH_OP_IS_TRUE] = {CLASS(BOOL), "S", 'S', false, NOTHING},
	[GH_OP_IS_NOT_TRUE] = {CLASS(BOOL), "S", 'S', false, NOTHING},
	[GH_OP_IS_FALSE] = {CLASS(BOOL), "S", 'S', false, NOTHING},
	[GH_OP_IS_NOT_FALSE] = {CLASS(BOOL), "S", 'S', false, NOTHING},
	[GH_OP_FILTER] = {CLASS(BOOL), "S", 0, false, NOTHING},
	[GH_OP_IN] = {CLASS(INT) | CLASS(TEXT) | CLASS(BPCHAR), "S", 'B', false, LIST},
	[GH_OP_IS_NULL] = {CLASSES_HELD, "S", 'B', false, NOTHING},
	[GH_OP_IS_NOT_NULL] = {CLASSES_HELD, "S", 'B', false, NOTHING},
	[GH_OP_SELECT] = {CLASSES_HELD, "BSS", 'S', false, NOTHING},
	[GH_OP_COALESCE] = {CLASSES_HELD, "SS", 'S', false, NOTHING},
};

/* A block whose parts were found to lie in it. */
typedef struct Checked
{
	const GhProgram *program;
	uint8_t		held[GH_PROGRAM_VECTORS_MAX];	/* a GhClass; 0: nothing yet */
	GhError    *error;
} Checked;

/* ------------------------------------------------------------------- layout */

/* Do so many items lie in the block, from this offset on? */
static bool
lies_within(const GhProgram *program, uint64_t offset, uint64_t count, uint64_t size)
{
	return offset <= program->bytes && count <= (program->bytes - offset) / size;
}

static GhStatus
check_layout(const void *block, size_t bytes, GhError *error)
{
	const GhProgram *program = block;
	uint64_t	parts;

	if (block == NULL || (uintptr_t) block % 16 != 0 || bytes < sizeof(GhProgram) ||
		bytes > GH_PROGRAM_BYTES_MAX || program->magic != GH_PROGRAM_MAGIC ||
		program->bytes != bytes || program->unused != 0)
		return gh_error_set(error, GH_INVALID, "there is no program in these %zu bytes", bytes);
	if (program->nlists > GH_PROGRAM_LISTS_MAX ||
		program->ninstructions > GH_PROGRAM_INSTRUCTIONS_MAX ||
		program->ncolumns > GH_PROGRAM_VECTORS_MAX ||
		program->nconstants > GH_PROGRAM_VECTORS_MAX ||
		program->ntemporaries > GH_PROGRAM_VECTORS_MAX ||
		gh_program_vectors(program) > GH_PROGRAM_VECTORS_MAX)
		return gh_error_set(error, GH_INVALID,
							"a program has too many lists, instructions or vectors");
	parts = sizeof(GhProgram) + (uint64_t) program->nconstants * sizeof(GhConstant) +
		(uint64_t) program->nlists * sizeof(GhList) +
		(uint64_t) program->ninstructions * sizeof(GhInstruction) +
		(uint64_t) program->ncolumns * sizeof(GhColumn);
	if (parts > bytes)
		return gh_error_set(error, GH_INVALID,
							"the parts of a program do not fit into its %zu bytes", bytes);
	return GH_OK;
}

/* ------------------------------------------------ columns, constants, lists */

static const uint8_t load_classes[] = {
	[GH_LOAD_INT2] = GH_CLASS_INT,
	[GH_LOAD_INT4] = GH_CLASS_INT,
	[GH_LOAD_INT8] = GH_CLASS_INT,
	[GH_LOAD_OID] = GH_CLASS_INT,
	[GH_LOAD_BOOL] = GH_CLASS_BOOL,
	[GH_LOAD_FLOAT4] = GH_CLASS_FLOAT4,
	[GH_LOAD_FLOAT8] = GH_CLASS_FLOAT8,
	[GH_LOAD_NUMERIC] = GH_CLASS_INT128,
	[GH_LOAD_TEXT] = GH_CLASS_TEXT,
	[GH_LOAD_FIXED] = GH_CLASS_TEXT,
	[GH_LOAD_TID] = GH_CLASS_INT,
};

/* A column of GH_LOAD_TID has nothing but its load, and is the first one. */
static bool
is_tid(const GhProgram *program, uint32_t i)
{
	const GhColumn *columns = gh_program_columns(program);

	for (uint32_t before = 0; before < i; before++)
		if (columns[before].load == GH_LOAD_TID)
			return false;
	return columns[i].attribute == 0 && columns[i].missing == GH_MISSING_NULL &&
		columns[i].scale == 0 && columns[i].length == 0;
}

static GhStatus
check_column(Checked *checked, uint32_t i)
{
	const GhColumn *column = &gh_program_columns(checked->program)[i];
	bool		numeric = column->load == GH_LOAD_NUMERIC;
	bool		fixed = column->load == GH_LOAD_FIXED;
	bool		tid = column->load == GH_LOAD_TID;

	if (column->load == 0 || column->load >= sizeof(load_classes) ||
		(tid ? !is_tid(checked->program, i) : column->attribute == 0) ||
		column->attribute > GH_COLUMN_MAX ||
		column->missing > GH_MISSING_BACK || column->scale > (numeric ? GH_SCALE_MAX : 0) ||
		(fixed ? column->length == 0 || column->length > GH_FIXED_LENGTH_MAX : column->length != 0))
		return gh_error_set(checked->error, GH_INVALID, "column %u of a program is not valid", i);
	checked->held[i] = load_classes[column->load];
	return GH_OK;
}

static bool
is_float4(uint64_t bits)
{
	double		value = gh_to_double(bits);

	return value != value || (float) value == value;
}

static bool
is_constant(const GhProgram *program, const GhConstant *constant)
{
	static const uint8_t zeros[sizeof(constant->unused)];

	if (constant->null > 1 || memcmp(constant->unused, zeros, sizeof(zeros)) != 0)
		return false;
	switch (constant->value_class)
	{
		case GH_CLASS_BOOL:
			return constant->low <= 1;
		case GH_CLASS_FLOAT4:
			return is_float4(constant->low);
		case GH_CLASS_TEXT:
			return lies_within(program, constant->low, constant->high, 1);
		case GH_CLASS_INT:
		case GH_CLASS_INT128:
		case GH_CLASS_FLOAT8:
			return true;
		default:
			return false;
	}
}

static GhStatus
check_constant(Checked *checked, uint32_t i)
{
	const GhConstant *constant = &gh_program_constants(checked->program)[i];

	if (!is_constant(checked->program, constant))
		return gh_error_set(checked->error, GH_INVALID, "constant %u of a program is not valid", i);
	checked->held[checked->program->ncolumns + i] = constant->value_class;
	return GH_OK;
}

static bool
is_ascending(const int64_t *values, uint32_t count)
{
	uint32_t	i;

	for (i = 1; i < count; i++)
		if (values[i - 1] > values[i])
			return false;
	return true;
}

static bool
are_texts(const GhProgram *program, const GhListText *texts, uint32_t count)
{
	uint32_t	i;

	for (i = 0; i < count; i++)
		if (!lies_within(program, texts[i].offset, texts[i].length, 1) ||
			(i > 0 && gh_text_list_compare(gh_list_text(program, texts[i - 1]), gh_list_text(program, texts[i]), false) > 0))
			return false;
	return true;
}

/* Slots of a list, or none. */
static bool
are_slots(const GhProgram *program, const GhList *list)
{
	const uint16_t *slots = (const uint16_t *) ((const char *) program + list->slots);
	uint32_t	i;

	if (list->slots == 0)
		return true;
	if (list->value_class != GH_CLASS_TEXT || list->slots % 8 != 0 ||
		!lies_within(program, list->slots, GH_LIST_SLOTS, sizeof(uint16_t)))
		return false;
	for (i = 0; i < GH_LIST_SLOTS; i++)
		if (slots[i] > list->count)
			return false;
	return true;
}

static GhStatus
check_list(Checked *checked, uint32_t i)
{
	const GhProgram *program = checked->program;
	const GhList *list = &gh_program_lists(program)[i];
	const void *values = (const char *) program + list->values;

	if (list->has_null > 1 || list->unused[0] != 0 || list->unused[1] != 0 ||
		list->values % 8 != 0 || !are_slots(program, list) ||
		!lies_within(program, list->values, list->count, 8) ||
		!(list->value_class == GH_CLASS_INT ? is_ascending(values, list->count) :
		  list->value_class == GH_CLASS_TEXT && are_texts(program, values, list->count)))
		return gh_error_set(checked->error, GH_INVALID, "list %u of a program is not valid", i);
	return GH_OK;
}

/* ------------------------------------------------------------- instructions */

static uint8_t
class_of(char letter, const GhInstruction *in)
{
	switch (letter)
	{
		case 'B':
			return GH_CLASS_BOOL;
		case 'I':
			return GH_CLASS_INT;
		case 'W':
			return GH_CLASS_INT128;
		case '4':
			return GH_CLASS_FLOAT4;
		case '8':
			return GH_CLASS_FLOAT8;
		default:
			return gh_vector_class(in->op_class);
	}
}

static bool
are_args(const Checked *checked, const Signature *signature, const GhInstruction *in)
{
	bool		more = true;
	int			i;

	for (i = 0; i < 3; i++)
	{
		uint8_t		wanted = class_of(signature->args[i], in);
		uint8_t		held;

		more = more && signature->args[i] != 0;
		if (!more)
		{
			if (in->args[i] != 0)
				return false;
			continue;
		}
		if (in->args[i] >= gh_program_vectors(checked->program))
			return false;
		held = checked->held[in->args[i]];
		if (held != wanted && !(held == GH_CLASS_FLOAT4 && wanted == GH_CLASS_FLOAT8))
			return false;
	}
	return true;
}

static bool
is_immediate(const GhProgram *program, const Signature *signature, const GhInstruction *in)
{
	Immediate	kind = signature->immediate;
	bool		wide = in->op_class == GH_CLASS_INT128 || signature->result == 'W';
	const GhList *list;

	if (kind == NOTHING || (kind != LIST && !wide))
		return in->immediate == 0;
	if (kind != LIST)
		return in->immediate <= GH_SCALE_MAX &&
			in->immediate >= (kind == DIGITS_SIGNED ? -GH_SCALE_MAX : 0);
	if (in->immediate < 0 || (uint32_t) in->immediate >= program->nlists)
		return false;
	list = &gh_program_lists(program)[in->immediate];
	return list->value_class == class_of('S', in);
}

/* A temporary, and no argument: loops store results while they read arguments. */
static bool
is_result(const GhProgram *program, const Signature *signature, const GhInstruction *in)
{
	size_t		nargs = strlen(signature->args);
	size_t		i;

	if (signature->result == 0)
		return in->result == 0;
	for (i = 0; i < nargs; i++)
		if (in->args[i] == in->result)
			return false;
	return in->result >= program->ncolumns + program->nconstants &&
		in->result < gh_program_vectors(program);
}

static bool
is_width(const Signature *signature, const GhInstruction *in)
{
	if (signature->width && class_of(signature->result, in) == GH_CLASS_INT)
		return in->width == 2 || in->width == 4 || in->width == 8;
	return in->width == 0;
}

static GhStatus
check_instruction(Checked *checked, uint32_t i)
{
	const GhProgram *program = checked->program;
	const GhInstruction *in = &gh_program_instructions(program)[i];
	const Signature *signature;

	if (in->op == 0 || in->op >= sizeof(signatures) / sizeof(signatures[0]) ||
		in->op_class > GH_CLASS_BPCHAR || !(signatures[in->op].classes >> in->op_class & 1))
		return gh_error_set(checked->error, GH_INVALID,
							"instruction %u of a program has no such operation and class: %u, %u",
							i, in->op, in->op_class);
	signature = &signatures[in->op];
	if (!are_args(checked, signature, in))
		return gh_error_set(checked->error, GH_INVALID,
							"instruction %u of a program has arguments that are not set or of another class", i);
	if (!is_result(program, signature, in) || !is_width(signature, in) ||
		!is_immediate(program, signature, in))
		return gh_error_set(checked->error, GH_INVALID,
							"instruction %u of a program has a result, width or immediate out of range", i);
	if (signature->result != 0)
		checked->held[in->result] = class_of(signature->result, in);
	return GH_OK;
}

/* ---------------------------------------------------------------------- all */

static GhStatus
check_each(Checked *checked, uint32_t count, GhStatus (*check) (Checked *checked, uint32_t i))
{
	uint32_t	i;

	for (i = 0; i < count; i++)
	{
		GhStatus	status = check(checked, i);

		if (status != GH_OK)
			return status;
	}
	return GH_OK;
}

GhStatus
gh_program_check(const void *block, size_t bytes, GhError *error)
{
	uint8_t		classes[GH_PROGRAM_VECTORS_MAX];

	return gh_program_check_classes(block, bytes, classes, error);
}

GhStatus
gh_program_check_classes(const void *block, size_t bytes, uint8_t *classes, GhError *error)
{
	const GhProgram *program = block;
	Checked		checked = {.program = program, .error = error};
	GhStatus	status = check_layout(block, bytes, error);

	if (status == GH_OK)
		status = check_each(&checked, program->ncolumns, check_column);
	if (status == GH_OK)
		status = check_each(&checked, program->nconstants, check_constant);
	if (status == GH_OK)
		status = check_each(&checked, program->nlists, check_list);
	if (status == GH_OK)
		status = check_each(&checked, program->ninstructions, check_instruction);
	memcpy(classes, checked.held, sizeof(checked.held));
	return status;
}

/* ------------------------------------------------------- what was accepted */

uint32_t
gh_program_args(const GhInstruction *instruction)
{
	return (uint32_t) strlen(signatures[instruction->op].args);
}

uint8_t
gh_program_result_class(const GhInstruction *instruction)
{
	char		result = signatures[instruction->op].result;

	return result != 0 ? class_of(result, instruction) : 0;
}
