/*
 * device_tables.c
 *		Joins' tables that stay on the device when a query has ended (../store/resident_tables.c).
 *
 * That is for a table that one process makes of the pages of one relation, of which no row was handed back: nothing in it was
 * computed by PostgreSQL.  What it depends on beside the relation's rows is in the options of the pipeline that makes it: key,
 * columns, and conditions, with the values that parameters and stable functions have in this execution.
 */
#include "postgres.h"

#include "common/cryptohash.h"
#include "utils/rel.h"

#include "fragment/device.h"
#include "fragment/inner_side.h"
#include "service/pipeline_block.h"
#include "service/service.h"
#include "store/resident_tables.h"

/* A digest of the options, but for what the same table may have otherwise. */
static void
digest_options(const GhPipelineOptions *options, uint8 digest[PG_SHA256_DIGEST_LENGTH])
{
	GhPipelineOptions same = *options;
	GhPipelineNames names = {0};
	pg_cryptohash_ctx *context = pg_cryptohash_create(PG_SHA256);
	uint8	   *block;
	Size		bytes;

	same.memory_limit = same.sink.table.expected = same.sink.table.seed = 0;
	bytes = gh_pipeline_block_write(&same, &names, NULL);
	block = (uint8 *) TYPEALIGN(16, palloc0(bytes + 16));
	(void) gh_pipeline_block_write(&same, &names, block);
	if (pg_cryptohash_init(context) < 0 || pg_cryptohash_update(context, block, bytes) < 0 ||
		pg_cryptohash_final(context, digest, PG_SHA256_DIGEST_LENGTH) < 0)
		elog(ERROR, "could not compute a digest");
	pg_cryptohash_free(context);
}

/* What the table is made of; NULL: none like it stays. */
static GhTableSource *
source_of(GhFragment *fragment, GhInnerSide *side)
{
	GhPipelineOptions options;
	uint8		digest[PG_SHA256_DIGEST_LENGTH];

	if (side->relation == NULL || side->joined != NULL ||
		!gh_resident_tables_apply(side->relation, fragment->css.ss.ps.state->es_snapshot))
		return NULL;
	gh_side_options(side, &options);
	digest_options(&options, digest);
	return gh_resident_table_source(side->relation, fragment->device->number, digest);
}

static bool
attach_table(GhFragment *fragment, GhDeviceTable *table)
{
	const GhEngine *engine = fragment->device->engine;
	GhHost		host;
	GhError		error;
	GhStatus	status;

	gh_host_init(&host, fragment->device->context);
	while ((status = engine->table_attach(&host, table->root, &table->table, &error)) == GH_STOPPED)
		gh_serve_interrupt();
	return status == GH_OK;
}

/*
 * Takes a table that has stayed, in place of one that is made.  False: it is to be made; then *source is what it may stay for, or
 * NULL.
 */
bool
gh_device_borrow_table(GhFragment *fragment, int number, GhTableSource **source)
{
	GhDeviceTable *table = &fragment->device->tables[number];
	GhError		error;

	*source = source_of(fragment, table->side);
	if (*source == NULL)
		return false;
	gh_device_register_tables(fragment);
	table->kept = gh_resident_table_borrow(*source, &table->root, &table->rows);
	if (table->kept && attach_table(fragment, table) && gh_device_note_table(fragment, number, NULL, &error))
	{
		fragment->counts.resident_tables++;
		return true;
	}
	if (table->table != NULL)
		fragment->device->engine->table_detach(table->table);
	table->table = NULL;
	gh_device_leave_table(table);
	/* each run may have other parameters, and a table for each would not be of use for long */
	if (fragment->rescanned)
		*source = NULL;
	return false;
}

/* The table was made, under the name that it has: it may stay. */
void
gh_device_keep_table(GhFragment *fragment, int number, const GhTableSource *source)
{
	GhDeviceTable *table = &fragment->device->tables[number];

	table->kept = gh_resident_table_keep(source, table->root, table->rows);
}

/* This process has no handle on the table any more: gives it back, or has it freed. */
void
gh_device_leave_table(GhDeviceTable *table)
{
	if (table->kept)
		gh_resident_table_return(table->root);
	else
		gh_service_table_release(table->root);
	table->root = 0;
	table->kept = false;
}
