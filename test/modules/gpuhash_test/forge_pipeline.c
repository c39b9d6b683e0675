/*
 * forge_pipeline.c
 *		Requests on pipelines that no client of ours would make.
 *
 * gpuhash_forge_hold_pipeline makes pipelines, a table and marks of this session; gpuhash_forge_pipeline, of this or
 * another session, has a pipeline do one page, with anything changed; gpuhash_forge_names has a pipeline made that uses
 * anything; gpuhash_forge_sets, one with other sets of groups than there are; gpuhash_forge_blocks has pipelines made by
 * damaged options.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "common/pg_prng.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "compat.h"
#include "service/pipeline_block.h"
#include "service/placement.h"

#include "forge.h"
#include "../../status_name.h"
#include "pipeline_trial.h"

PG_FUNCTION_INFO_V1(gpuhash_forge_hold_pipeline);
PG_FUNCTION_INFO_V1(gpuhash_forge_pipeline);
PG_FUNCTION_INFO_V1(gpuhash_forge_span);
PG_FUNCTION_INFO_V1(gpuhash_forge_names);
PG_FUNCTION_INFO_V1(gpuhash_forge_sets);
PG_FUNCTION_INFO_V1(gpuhash_forge_blocks);

/* Where rows go back to in the buffer of a forged request. */
#define BACK_AT 4096

/* Of the pipelines that blocks tell. */
enum
{
	BLOCK_PROBE,				/* pages, probes with marks, groups */
	BLOCK_GROUPS,				/* groups, into a table */
	BLOCK_SETS,					/* pages, groups of several sets */
	BLOCKS
};

static GhTrialStage held_build;
static GhTrialStage held_groups;
static GhTrialStage held_marking;
static GhMadeTable held_table;
static GhMarks *held_marks = NULL;
static void *held_buffer = NULL;

static const GhEntryHandle *
entry_of(const GhTrialStage *stage)
{
	return &((const GhServicePipeline *) stage->pipeline)->entry;
}

static GhRef
table_root(void)
{
	return gh_service_engine()->table_root(held_table.table);
}

static GhRef
marks_root(void)
{
	return gh_entry_root(&((const GhServiceMarks *) held_marks)->entry);
}

/* ----------------------------------------------------------------- what is held */

static void
hold_all(GhTrial *trial)
{
	gh_trial_stage_begin(&held_build, NULL);
	gh_trial_stage_table(&held_build);
	gh_trial_create(trial, &held_build);
	gh_trial_make_table(trial, held_build.pipeline, &held_table);
	held_marks = gh_trial_marks(trial, held_table.table);
	gh_trial_stage_begin(&held_groups, NULL);
	gh_trial_stage_groups(&held_groups);
	gh_trial_create(trial, &held_groups);
	gh_trial_stage_begin(&held_marking, NULL);
	gh_trial_stage_probe(&held_marking, GH_PROBE_INNER, 2, held_table.table, held_marks);
	gh_trial_stage_rows(&held_marking);
	gh_trial_create(trial, &held_marking);
}

/*
 * gpuhash_forge_hold_pipeline(): "slot pipeline generation marking generation table generation marks generation": the
 * slot of a buffer, a pipeline that makes groups, one that marks matches, a table of no rows, and its marks.
 */
Datum
gpuhash_forge_hold_pipeline(PG_FUNCTION_ARGS)
{
	GhTrial		trial;
	uint32		slot;
	uint32		numbers[2];
	uint64		generations[2];

	if (held_buffer != NULL)
		elog(ERROR, "this session holds pipelines already");
	gh_trial_begin(&trial, "service", "copied", 1, 1, 65536);
	hold_all(&trial);
	gh_trial_give_back(&trial);
	if (!gh_service_reserve(1, GH_UNIT_BYTES, &held_buffer) || !gh_buffer_slot(held_buffer, &slot))
		elog(ERROR, "no buffer is free");
	gh_root_split(table_root(), &numbers[0], &generations[0]);
	gh_root_split(marks_root(), &numbers[1], &generations[1]);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%u %u %llu %u %llu %u %llu %u %llu", slot, entry_of(&held_groups)->table,
											  (unsigned long long) entry_of(&held_groups)->generation,
											  entry_of(&held_marking)->table,
											  (unsigned long long) entry_of(&held_marking)->generation,
											  numbers[0], (unsigned long long) generations[0],
											  numbers[1], (unsigned long long) generations[1])));
}

/* --------------------------------------------------------------------- requests */

static void
fill_honest(GhSlot *slot, uint32 table, uint64 generation)
{
	char	   *buffer = gh_buffer_at((uint32) (slot - gh_slot_at(0)));

	slot->device = gh_table_entry_at(table % GH_TABLES_MAX)->device;
	slot->op = GH_SERVICE_PIPELINE;
	slot->table = table;
	slot->table_generation = generation;
	slot->count = 1;
	slot->block = buffer + BACK_AT;
	slot->named = 0;
	memset(&slot->cursor, 0, sizeof(slot->cursor));
	memset(&slot->brought, 0, sizeof(slot->brought));
	slot->brought.kind = GH_INPUT_PAGES;
	slot->brought.pages = (const GhPageRef *) buffer;
	slot->brought.back = (GhBackRow *) (buffer + BACK_AT);
	slot->brought.npages = 1;
	slot->brought.back_room = MaxHeapTuplesPerPage;
}

char *
gh_forge_pipeline_answer(const GhSlot *slot)
{
	if (slot->status != GH_OK)
		return psprintf("%s: %s", gh_status_name(slot->status), slot->error.message);
	return psprintf("done, %llu counted, %llu back", (unsigned long long) slot->brought.counted,
					(unsigned long long) slot->brought.nback);
}

/*
 * gpuhash_forge_pipeline(relation oid, pipeline int, generation bigint, page text, offset bigint, fields text): a request
 * of one page, the relation's first if its address is "own" + 0, with some fields changed.
 */
Datum
gpuhash_forge_pipeline(PG_FUNCTION_ARGS)
{
	const char *answer = "not answered";
	GhPageRef *list;
	void	   *buffer;
	uint32		number;
	uint32		device;
	GhSlot	   *slot;

	if (!superuser() || gh_service == NULL)
		elog(ERROR, "must be superuser, in a server with the service, to test it");
	if (!gh_service_reserve(1, GH_UNIT_BYTES, &buffer) || !gh_buffer_slot(buffer, &number))
		elog(ERROR, "no buffer is free");
	list = buffer;
	gh_forge_copy_page(PG_GETARG_OID(0), (char *) buffer + GH_FORGE_PAGE_AT);
	memset(list, 0, sizeof(*list));
	list->lines = PageGetMaxOffsetNumber((Page) ((char *) buffer + GH_FORGE_PAGE_AT));
	list->bitmap = GH_PAGE_ALL_LINES;
	list->page = (const void *) ((uintptr_t) gh_forge_address(text_to_cstring(PG_GETARG_TEXT_PP(3)), buffer) +
								 (uintptr_t) PG_GETARG_INT64(4));
	slot = gh_slot_at(number);
	fill_honest(slot, (uint32) PG_GETARG_INT32(1), (uint64) PG_GETARG_INT64(2));
	device = slot->device;
	gh_forge_fields(slot, text_to_cstring(PG_GETARG_TEXT_PP(5)));
	if (gh_forge_submit(number, device, number))
		answer = gh_forge_pipeline_answer(slot);
	gh_service_return(buffer);
	PG_RETURN_TEXT_P(cstring_to_text(answer));
}

/* gpuhash_forge_span(pages bigint): the root of a new span of so many pages, or why there is none. */
Datum
gpuhash_forge_span(PG_FUNCTION_ARGS)
{
	GhRef		root;
	GhError		error;

	if (!superuser() || gh_service == NULL)
		elog(ERROR, "must be superuser, in a server with the service, to test it");
	if (gh_service_span_create(0, (uint32) PG_GETARG_INT64(0), &root, &error) != GH_OK)
		PG_RETURN_TEXT_P(cstring_to_text(psprintf("%s: %s", gh_status_name(error.status), error.message)));
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%llu", (unsigned long long) root)));
}

/* ----------------------------------------------------------------------- blocks */

/* Has a pipeline made by what is in a buffer; what the worker answers. */
static GhStatus
make_by(uint64 count, uint32 number, char *message)
{
	GhSlot	   *slot = gh_slot_at(number);
	uint32		device = (uint32) gh_client_root_device(table_root());
	uint32		table;
	uint64		generation;
	GhStatus	status = GH_TIMEOUT;

	if (!gh_client_entry_take(device, gh_my_procno(), GH_ENTRY_PIPELINE, gh_client_root_executor(table_root()), &table,
							  &generation))
		elog(ERROR, "no entry is free");
	fill_honest(slot, table, generation);
	slot->op = GH_SERVICE_PIPELINE_CREATE;
	slot->block = gh_buffer_at(number);
	slot->count = count;
	if (gh_forge_submit(number, device, number))
		status = slot->status;
	if (status != GH_OK)
		strlcpy(message, slot->error.message, GH_MESSAGE_SIZE);
	gh_client_entry_drop(table, generation);
	return status;
}

/* Options that are good, and what they use. */
static void
stage_block(int which, GhTrialStage *stage, GhPipelineNames *names)
{
	memset(names, 0, sizeof(*names));
	names->source = which == BLOCK_GROUPS ? gh_entry_root(entry_of(&held_groups)) : 0;
	gh_trial_stage_begin(stage, which == BLOCK_GROUPS ? held_groups.pipeline : NULL);
	if (which == BLOCK_PROBE)
	{
		gh_trial_stage_probe(stage, GH_PROBE_INNER, 2, held_table.table, held_marks);
		gh_trial_stage_probe(stage, GH_PROBE_LEFT, 2, held_table.table, NULL);
		names->tables[0] = names->tables[1] = table_root();
		names->marks[0] = marks_root();
		gh_trial_stage_groups(stage);
	}
	else if (which == BLOCK_SETS)
		gh_trial_stage_sets(stage, 3);
	else
		gh_trial_stage_table(stage);
}

/* Has a pipeline made by these options; what the worker answers.  sets: how many its groups are said to have. */
static char *
make_by_options(GhTrialStage *stage, const GhPipelineNames *names, uint32 sets)
{
	char		message[GH_MESSAGE_SIZE] = "";
	Size		bytes = gh_pipeline_block_write(&stage->options, names, NULL);
	void	   *buffer;
	uint32		number;
	GhStatus	status;

	if (!gh_service_reserve(1, GH_UNIT_BYTES, &buffer) || !gh_buffer_slot(buffer, &number))
		elog(ERROR, "no buffer is free");
	memset(buffer, 0, bytes);
	(void) gh_pipeline_block_write(&stage->options, names, buffer);
	/* options are what a block begins with */
	if (stage->options.sink.kind == GH_SINK_GROUPS)
		((GhPipelineOptions *) buffer)->sink.groups.nsets = sets;
	status = make_by(bytes, number, message);
	gh_service_return(buffer);
	return psprintf("%s: %s", gh_status_name(status), message);
}

/*
 * gpuhash_forge_names(which int, source bigint, table bigint, marks bigint): has a pipeline made whose options are good,
 * but name these in place of what they should; 0: leave it, -1: none.
 */
Datum
gpuhash_forge_names(PG_FUNCTION_ARGS)
{
	GhTrialStage *stage = (GhTrialStage *) TYPEALIGN(64, palloc0(sizeof(GhTrialStage) + 64));
	GhPipelineNames names;
	GhRef	   *forged[3] = {&names.source, &names.tables[0], &names.marks[0]};

	if (held_buffer == NULL)
		elog(ERROR, "this session holds no pipelines");
	stage_block(PG_GETARG_INT32(0), stage, &names);
	for (int i = 0; i < 3; i++)
		if (PG_GETARG_INT64(i + 1) != 0)
			*forged[i] = PG_GETARG_INT64(i + 1) < 0 ? 0 : (GhRef) PG_GETARG_INT64(i + 1);
	PG_RETURN_TEXT_P(cstring_to_text(make_by_options(stage, &names, stage->options.sink.groups.nsets)));
}

/* Changes something of the second set. */
static void
change_set(GhTrialStage *stage, const char *what)
{
	GhRecordKey *key = &stage->set_keys[1];
	GhAggregate *aggregate = &stage->set_aggregates[stage->options.sink.groups.naggregates + 1];

	if (strcmp(what, "key class") == 0)
		key->value_class = GH_CLASS_TEXT;
	else if (strcmp(what, "key vector") == 0)
		key->vector = 4000;
	else if (strcmp(what, "key padded") == 0)
		key->padded = 1;
	else if (strcmp(what, "kind") == 0)
		aggregate->kind = GH_AGGREGATE_MAX;
	else if (strcmp(what, "class") == 0)
		aggregate->value_class = GH_CLASS_FLOAT8;
	else if (strcmp(what, "argument") == 0)
		aggregate->argument = 0;
	else if (strcmp(what, "filter") == 0)
		aggregate->filter = 4000;
	else if (strcmp(what, "filter class") == 0)
		aggregate->filter = 0;
	else if (what[0] != '\0')
		elog(ERROR, "a set has no \"%s\"", what);
}

/*
 * gpuhash_forge_sets(there int, said bigint, changed text): has a pipeline made of so many sets of groups, which is said to
 * have others, and of whose second set something is changed.
 */
Datum
gpuhash_forge_sets(PG_FUNCTION_ARGS)
{
	GhTrialStage *stage = (GhTrialStage *) TYPEALIGN(64, palloc0(sizeof(GhTrialStage) + 64));
	GhPipelineNames names;

	if (held_buffer == NULL)
		elog(ERROR, "this session holds no pipelines");
	stage_block(BLOCK_SETS, stage, &names);
	gh_trial_stage_sets(stage, (uint32) Min(PG_GETARG_INT32(0), GH_SINK_SETS_MAX));
	change_set(stage, text_to_cstring(PG_GETARG_TEXT_PP(2)));
	PG_RETURN_TEXT_P(cstring_to_text(make_by_options(stage, &names, (uint32) PG_GETARG_INT64(1))));
}

/*
 * gpuhash_forge_blocks(times int, seed bigint): options of pipelines, damaged; how often the worker gave which status,
 * and what the last refusal said.
 */
Datum
gpuhash_forge_blocks(PG_FUNCTION_ARGS)
{
	GhTrialStage *stage = (GhTrialStage *) TYPEALIGN(64, palloc0(sizeof(GhTrialStage) + 64));
	int			seen[GH_DEVICE_ERROR + 1] = {0};
	char		message[GH_MESSAGE_SIZE] = "";
	pg_prng_state random;
	StringInfoData text;
	void	   *buffer;
	uint32		number;

	if (held_buffer == NULL)
		elog(ERROR, "this session holds no pipelines");
	pg_prng_seed(&random, (uint64) PG_GETARG_INT64(1));
	if (!gh_service_reserve(1, GH_UNIT_BYTES, &buffer) || !gh_buffer_slot(buffer, &number))
		elog(ERROR, "no buffer is free");
	for (int32 i = 0; i < PG_GETARG_INT32(0); i++)
	{
		GhPipelineNames names;
		uint64		count;

		stage_block(i % BLOCKS, stage, &names);
		count = gh_pipeline_block_write(&stage->options, &names, NULL);
		memset(buffer, 0, count);
		(void) gh_pipeline_block_write(&stage->options, &names, buffer);
		/* the first ones are good */
		if (i >= BLOCKS)
			gh_forge_damage(buffer, count, &random);
		if (i >= BLOCKS && pg_prng_uint64_range(&random, 0, 9) == 0)
			count = pg_prng_uint64_range(&random, 0, 2 * GH_UNIT_BYTES);
		seen[make_by(count, number, message)]++;
		if (seen[GH_OK] == 0)
			break;
	}
	gh_service_return(buffer);
	initStringInfo(&text);
	for (int i = 0; i <= GH_DEVICE_ERROR; i++)
		if (seen[i] > 0)
			appendStringInfo(&text, "%s %d, ", gh_status_name((GhStatus) i), seen[i]);
	appendStringInfoString(&text, message);
	PG_RETURN_TEXT_P(cstring_to_text(text.data));
}
