/*
 * forge_columns.c
 *		Requests with rows as columns that no client of ours would make: gpuhash_forge_columns.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "compat.h"
#include "service/placement.h"

#include "forge.h"
#include "pipeline_trial.h"

PG_FUNCTION_INFO_V1(gpuhash_forge_columns);

#define ROWS 100

/* What lies where in the buffer. */
#define VECTORS_AT 0
#define GIVEN_AT 1024
#define ARRAYS_AT 4096			/* and then every ARRAY_BYTES */
#define ARRAY_BYTES 4096
#define TEXTS_AT GH_FORGE_PAGE_AT
#define BACK_AT (2 * GH_FORGE_PAGE_AT)

/* The program's third vector, which is no column. */
#define TEMPORARY 2

/* A step that makes the text of the temporary. */
static void
add_step(GhTrialStage *stage)
{
	const GhInstruction copy = {.op = GH_OP_COALESCE,.op_class = GH_CLASS_TEXT,.result = TEMPORARY,.args = {1, 1}};
	GhColumn	columns[2];

	StaticAssertStmt(sizeof(copy) + sizeof(columns) <= sizeof(stage->columns), "room behind the program");
	memcpy(columns, stage->columns, sizeof(columns));
	stage->program.ninstructions = stage->program.ntemporaries = 1;
	stage->program.bytes += sizeof(copy);
	stage->options.program_bytes = stage->program.bytes;
	memcpy(stage->columns, &copy, sizeof(copy));
	memcpy((char *) stage->columns + sizeof(copy), columns, sizeof(columns));
	stage->steps[0].end = 1;
	stage->options.nsteps = 1;
}

/* Keeps rows of an int4 and a text, which is that of the column, or of the temporary. */
static void
stage_texts(GhTrialStage *stage, bool of_temporary)
{
	gh_trial_stage_begin(stage, NULL);
	stage->columns[1].load = GH_LOAD_TEXT;
	add_step(stage);
	if (of_temporary)
		stage->values[1].vector = TEMPORARY;
	stage->options.source.kind = GH_SOURCE_COLUMNS;
	stage->values[0].value_class = GH_CLASS_INT;
	stage->values[1].value_class = GH_CLASS_TEXT;
	gh_trial_stage_rows(stage);
}

static void *
array_at(char *buffer, int number)
{
	return buffer + ARRAYS_AT + number * ARRAY_BYTES;
}

/* Rows of a number and a text of ten bytes; every seventh text is NULL, and points nowhere. */
static GhVector *
fill_columns(char *buffer)
{
	GhVector   *vectors = (GhVector *) (buffer + VECTORS_AT);
	uint16	   *given = (uint16 *) (buffer + GIVEN_AT);

	for (int v = 0; v < 2; v++)
	{
		given[v] = v;
		vectors[v].low = array_at(buffer, 3 * v);
		vectors[v].high = array_at(buffer, 3 * v + 1);
		vectors[v].null = array_at(buffer, 3 * v + 2);
		memset(vectors[v].null, 0, ROWS);
	}
	for (int i = 0; i < ROWS; i++)
	{
		vectors[0].low[i] = i;
		vectors[1].null[i] = i % 7 == 0;
		vectors[1].low[i] = i % 7 == 0 ? 1 : (uintptr_t) (buffer + TEXTS_AT + 10 * i);
		vectors[1].high[i] = i % 7 == 0 ? PG_UINT64_MAX : 10;
	}
	return vectors;
}

/*
 * Has something point elsewhere: an array of a column, or the last row's text, which may also be as long as is said, or be
 * the temporary's.
 */
static void
forge_part(GhVector *vectors, const char *part, uint64 value)
{
	if (strcmp(part, "text") == 0 || strcmp(part, "temporary") == 0)
		vectors[1].low[ROWS - 1] = value;
	else if (strcmp(part, "length") == 0)
		vectors[1].high[ROWS - 1] = value;
	else if (strcmp(part, "low") == 0)
		vectors[1].low = (uint64 *) (uintptr_t) value;
	else if (strcmp(part, "high") == 0)
		vectors[1].high = (uint64 *) (uintptr_t) value;
	else if (strcmp(part, "null") == 0)
		vectors[0].null = (uint8 *) (uintptr_t) value;
	else if (strcmp(part, "nothing") != 0)
		elog(ERROR, "columns have no part \"%s\"", part);
}

static void
fill_slot(GhSlot *slot, const GhEntryHandle *entry)
{
	char	   *buffer = gh_buffer_at((uint32) (slot - gh_slot_at(0)));

	slot->device = gh_table_entry_at(entry->table)->device;
	slot->op = GH_SERVICE_PIPELINE;
	slot->table = entry->table;
	slot->table_generation = entry->generation;
	slot->count = 0;
	memset(&slot->brought, 0, sizeof(slot->brought));
	slot->brought.vectors = (const GhVector *) (buffer + VECTORS_AT);
	slot->brought.given = (const uint16 *) (buffer + GIVEN_AT);
	slot->brought.back = (GhBackRow *) (buffer + BACK_AT);
	slot->brought.kind = GH_INPUT_COLUMNS;
	slot->brought.ngiven = 2;
	slot->brought.count = slot->brought.back_room = ROWS;
}

/*
 * gpuhash_forge_columns(part text, address text, offset bigint, fields text): has a pipeline take 100 rows as columns, of
 * which a part is at the address, or is the offset if the address is "null"; and fields of the request are changed.
 */
Datum
gpuhash_forge_columns(PG_FUNCTION_ARGS)
{
	GhTrialStage *stage = (GhTrialStage *) TYPEALIGN(64, palloc0(sizeof(GhTrialStage) + 64));
	const char *answer = "not answered";
	char	   *part = text_to_cstring(PG_GETARG_TEXT_PP(0));
	bool		of_temporary = strcmp(part, "temporary") == 0;
	GhTrial		trial;
	GhSlot	   *slot;
	void	   *buffer;
	uint32		number;

	if (!superuser() || gh_service == NULL)
		elog(ERROR, "must be superuser, in a server with the service, to test it");
	gh_trial_begin(&trial, "service", "copied", 1, 1, 65536);
	stage_texts(stage, of_temporary);
	gh_trial_create(&trial, stage);
	gh_trial_give_back(&trial);
	if (!gh_service_reserve(1, GH_UNIT_BYTES, &buffer) || !gh_buffer_slot(buffer, &number))
		elog(ERROR, "no buffer is free");
	memset(buffer, 'x', GH_UNIT_BYTES);
	forge_part(fill_columns(buffer), part,
			   (uint64) (uintptr_t) gh_forge_address(text_to_cstring(PG_GETARG_TEXT_PP(1)), buffer) +
			   (uint64) PG_GETARG_INT64(2));
	if (of_temporary)
		((uint16 *) ((char *) buffer + GIVEN_AT))[1] = TEMPORARY;
	slot = gh_slot_at(number);
	fill_slot(slot, &((const GhServicePipeline *) stage->pipeline)->entry);
	gh_forge_fields(slot, text_to_cstring(PG_GETARG_TEXT_PP(3)));
	if (gh_forge_submit(number, slot->device, number))
		answer = gh_forge_pipeline_answer(slot);
	gh_service_return(buffer);
	gh_trial_destroy(stage);
	PG_RETURN_TEXT_P(cstring_to_text(answer));
}
