/*
 * program_parts.c
 *		Puts programs together for the tests.
 */
#include "program_test.h"

uint32_t
add_column(Parts *parts, GhLoad load)
{
	GhColumn   *column = &parts->columns[parts->ncolumns];

	column->attribute = (uint16_t) (parts->ncolumns + 1);
	column->load = (uint8_t) load;
	column->scale = load == GH_LOAD_NUMERIC ? 2 : 0;
	column->length = load == GH_LOAD_FIXED ? 16 : 0;
	return parts->ncolumns++;
}

/* Its number among the constants. */
uint32_t
add_constant(Parts *parts, GhClass value_class, GhValue value)
{
	GhConstant *constant = &parts->constants[parts->nconstants];

	constant->value_class = (uint8_t) value_class;
	constant->null = value.null;
	constant->low = value.low;
	constant->high = value.high;
	return parts->nconstants++;
}

static uint32_t
add_data(Parts *parts, const void *bytes, uint32_t length)
{
	uint32_t	offset = parts->data_bytes;

	memcpy((char *) parts->data + offset, bytes, length);
	parts->data_bytes += (length + 7) & ~UINT32_C(7);
	return offset;
}

uint32_t
add_text(Parts *parts, const char *bytes, uint32_t length)
{
	GhValue		value = {add_data(parts, bytes, length), length, 0};

	return add_constant(parts, GH_CLASS_TEXT, value);
}

static uint32_t
add_list(Parts *parts, GhClass value_class, uint32_t values, uint32_t count, bool has_null)
{
	GhList	   *list = &parts->lists[parts->nlists];

	list->value_class = (uint8_t) value_class;
	list->has_null = has_null;
	list->count = count;
	list->values = values;
	return parts->nlists++;
}

uint32_t
add_int_list(Parts *parts, const int64_t *values, uint32_t count, bool has_null)
{
	return add_list(parts, GH_CLASS_INT, add_data(parts, values, count * 8), count, has_null);
}

static int
compare_texts(const void *a, const void *b)
{
	const char *const *x = a;
	const char *const *y = b;

	return gh_text_list_compare(gh_text((uint64_t) (uintptr_t) *x, strlen(*x)), gh_text((uint64_t) (uintptr_t) *y, strlen(*y)), false);
}

static uint32_t
add_slots(Parts *parts, const GhListText *texts, uint32_t count)
{
	uint16_t	slots[GH_LIST_SLOTS] = {0};
	uint32_t	i;

	for (i = 0; i < count; i++)
	{
		GhText		text = gh_text((uint64_t) (uintptr_t) ((const char *) parts->data + texts[i].offset), texts[i].length);
		uint32_t	at = gh_list_slot(text);

		while (slots[at] != 0)
			at = (at + 1) % GH_LIST_SLOTS;
		slots[at] = (uint16_t) (i + 1);
	}
	return add_data(parts, slots, sizeof(slots));
}

uint32_t
add_text_list(Parts *parts, const char *const *texts, uint32_t count, bool has_null)
{
	GhListText	entries[PARTS_MAX];
	const char *sorted[PARTS_MAX];
	uint32_t	slots;
	uint32_t	list;
	uint32_t	i;

	memcpy(sorted, texts, count * sizeof(texts[0]));
	qsort(sorted, count, sizeof(sorted[0]), compare_texts);
	for (i = 0; i < count; i++)
	{
		entries[i].length = (uint32_t) strlen(sorted[i]);
		entries[i].offset = add_data(parts, sorted[i], entries[i].length);
	}
	/* with slots or without; where these are at 0, there are none */
	slots = count % 2 == 0 && parts->data_bytes > 0 ? add_slots(parts, entries, count) : 0;
	list = add_list(parts, GH_CLASS_TEXT, add_data(parts, entries, count * 8), count, has_null);
	parts->lists[list].slots = slots;
	return list;
}

/* With the first temporary for its result. */
GhInstruction *
add_instruction(Parts *parts, GhProgramOp op, GhClass op_class, uint32_t a, uint32_t b, uint32_t c)
{
	GhInstruction *in = &parts->instructions[parts->ninstructions++];

	memset(in, 0, sizeof(*in));
	in->op = (uint16_t) op;
	in->op_class = (uint8_t) op_class;
	in->result = (uint16_t) (op == GH_OP_FILTER ? 0 : parts->ncolumns + parts->nconstants);
	in->args[0] = (uint16_t) a;
	in->args[1] = (uint16_t) b;
	in->args[2] = (uint16_t) c;
	return in;
}

/* Offsets count from the data until now, and from the block's begin from here on. */
static void
move_offsets(GhProgram *program, uint32_t data)
{
	GhConstant *constants = (GhConstant *) gh_program_constants(program);
	GhList	   *lists = (GhList *) gh_program_lists(program);
	uint32_t	i;
	uint32_t	j;

	for (i = 0; i < program->nconstants; i++)
		if (constants[i].value_class == GH_CLASS_TEXT)
			constants[i].low += data;
	for (i = 0; i < program->nlists; i++)
	{
		GhListText *texts;

		lists[i].values += data;
		lists[i].slots += lists[i].slots != 0 ? data : 0;
		texts = (GhListText *) ((char *) program + lists[i].values);
		for (j = 0; lists[i].value_class == GH_CLASS_TEXT && j < lists[i].count; j++)
			texts[j].offset += data;
	}
}

GhProgram *
build_program(const Parts *parts)
{
	size_t		sizes[] = {
		parts->nconstants * sizeof(GhConstant), parts->nlists * sizeof(GhList),
		parts->ninstructions * sizeof(GhInstruction), parts->ncolumns * sizeof(GhColumn),
		parts->data_bytes
	};
	const void *sources[] = {
		parts->constants, parts->lists, parts->instructions, parts->columns, parts->data
	};
	size_t		bytes = sizeof(GhProgram);
	GhProgram  *program;
	char	   *place;
	int			i;

	for (i = 0; i < 5; i++)
		bytes += sizes[i];
	program = make_memory(bytes);
	memset(program, 0, sizeof(*program));
	program->magic = GH_PROGRAM_MAGIC;
	program->bytes = (uint32_t) bytes;
	program->nconstants = parts->nconstants;
	program->nlists = parts->nlists;
	program->ninstructions = parts->ninstructions;
	program->ncolumns = parts->ncolumns;
	program->ntemporaries = parts->ntemporaries;
	place = (char *) (program + 1);
	for (i = 0; i < 5; i++)
	{
		memcpy(place, sources[i], sizes[i]);
		place += sizes[i];
	}
	move_offsets(program, (uint32_t) (bytes - parts->data_bytes));
	return program;
}

bool
accepted(const GhProgram *program)
{
	GhError		error = {0};

	return gh_program_check(program, program->bytes, &error) == GH_OK;
}

GhClass
column_class(const GhColumn *column)
{
	switch (column->load)
	{
		case GH_LOAD_BOOL:
			return GH_CLASS_BOOL;
		case GH_LOAD_FLOAT4:
			return GH_CLASS_FLOAT4;
		case GH_LOAD_FLOAT8:
			return GH_CLASS_FLOAT8;
		case GH_LOAD_NUMERIC:
			return GH_CLASS_INT128;
		case GH_LOAD_TEXT:
		case GH_LOAD_FIXED:
			return GH_CLASS_TEXT;
		default:
			return GH_CLASS_INT;
	}
}

GhClass
result_class(const GhInstruction *in)
{
	if (in->op <= GH_OP_NOT_DISTINCT || (in->op >= GH_OP_LIKE && in->op <= GH_OP_ILIKE_UTF8) || in->op == GH_OP_IN ||
		in->op == GH_OP_STARTS_WITH || in->op == GH_OP_IS_NULL || in->op == GH_OP_IS_NOT_NULL)
		return GH_CLASS_BOOL;
	if (in->op == GH_OP_TO_INT || in->op == GH_OP_QUOTIENT_SCALE || in->op == GH_OP_HASH ||
		(in->op >= GH_OP_LENGTH && in->op <= GH_OP_POSITION_UTF8))
		return GH_CLASS_INT;
	if (in->op == GH_OP_TO_FLOAT4)
		return GH_CLASS_FLOAT4;
	if (in->op == GH_OP_TO_FLOAT8)
		return GH_CLASS_FLOAT8;
	return in->op_class;
}
