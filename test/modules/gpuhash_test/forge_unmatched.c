/*
 * forge_unmatched.c
 *		Requests for the rows of a table that no client of ours would make: gpuhash_forge_unmatched.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "service/placement.h"

#include "forge.h"
#include "pipeline_trial.h"

PG_FUNCTION_INFO_V1(gpuhash_forge_unmatched);

#define BACK_AT (2 * GH_FORGE_PAGE_AT)
#define BACK_ROOM 10

typedef struct Made
{
	GhTrial		trial;
	GhTrialStage build;			/* makes a table of a relation's rows */
	GhTrialStage reader;		/* has them all as rows without a match */
	GhMadeTable table;
	GhMarks    *marks;
} Made;

static void
make_all(Made *made, Oid relid)
{
	GhTrial    *trial = &made->trial;

	gh_trial_begin(trial, "service", "copied", 1, 1, 65536);
	gh_trial_stage_begin(&made->build, NULL);
	gh_trial_stage_table(&made->build);
	gh_trial_create(trial, &made->build);
	gh_trial_bring(trial, made->build.pipeline, relid, 0, MaxBlockNumber);
	gh_trial_make_table(trial, made->build.pipeline, &made->table);
	made->marks = gh_trial_marks(trial, made->table.table);
	gh_trial_stage_begin(&made->reader, NULL);
	gh_trial_stage_probe(&made->reader, GH_PROBE_INNER, 2, made->table.table, made->marks);
	gh_trial_stage_rows(&made->reader);
	gh_trial_create(trial, &made->reader);
	gh_trial_give_back(trial);
}

static void
drop_all(Made *made)
{
	const GhEngine *engine = gh_service_engine();

	gh_trial_destroy(&made->reader);
	engine->pipelines->marks_destroy(made->marks);
	gh_trial_destroy(&made->build);
	engine->table_destroy(made->table.table);
}

/* For all rows, with room for few to come back. */
static void
fill_slot(GhSlot *slot, const Made *made)
{
	const GhEntryHandle *entry = &((const GhServicePipeline *) made->reader.pipeline)->entry;
	char	   *buffer = gh_buffer_at((uint32) (slot - gh_slot_at(0)));

	slot->device = gh_table_entry_at(entry->table)->device;
	slot->op = GH_SERVICE_PIPELINE;
	slot->table = entry->table;
	slot->table_generation = entry->generation;
	slot->count = 0;
	memset(&slot->brought, 0, sizeof(slot->brought));
	slot->brought.kind = GH_INPUT_UNMATCHED;
	slot->brought.back = (GhBackRow *) (buffer + BACK_AT);
	slot->brought.back_room = BACK_ROOM;
	slot->brought.count = made->table.rows;
}

/*
 * gpuhash_forge_unmatched(relation oid, fields text): a request for all rows of a table that a pipeline has made of the
 * relation's, with some fields changed.
 */
Datum
gpuhash_forge_unmatched(PG_FUNCTION_ARGS)
{
	Made	   *made = (Made *) TYPEALIGN(64, palloc0(sizeof(Made) + 64));
	const char *answer = "not answered";
	GhSlot	   *slot;
	void	   *buffer;
	uint32		number;

	if (!superuser() || gh_service == NULL)
		elog(ERROR, "must be superuser, in a server with the service, to test it");
	make_all(made, PG_GETARG_OID(0));
	if (!gh_service_reserve(1, GH_UNIT_BYTES, &buffer) || !gh_buffer_slot(buffer, &number))
		elog(ERROR, "no buffer is free");
	slot = gh_slot_at(number);
	fill_slot(slot, made);
	gh_forge_fields(slot, text_to_cstring(PG_GETARG_TEXT_PP(1)));
	if (gh_forge_submit(number, slot->device, number))
		answer = gh_forge_pipeline_answer(slot);
	gh_service_return(buffer);
	drop_all(made);
	PG_RETURN_TEXT_P(cstring_to_text(answer));
}
