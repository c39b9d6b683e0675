/*
 * device_tables.c
 *		Joins' tables that stay on the device when a query has ended (../store/resident_tables.c).
 *
 * That is for a table that is made of the pages of one relation, or of joins over them, of which no row was
 * handed back: nothing in it was computed by PostgreSQL.  Where participants of a parallel query make it
 * together, one of them has looked for it, before anybody has read anything, and has it kept
 * (device_parallel.c).  What it depends on beside the relation's rows is in the options of the pipeline that
 * makes it: key, columns, and conditions, with the values that parameters and stable functions have in this
 * execution; and so it is for each table that is joined on the way, with what its relation is now.
 */
#include "postgres.h"

#include "common/cryptohash.h"
#include "utils/rel.h"

#include "fragment/device.h"
#include "fragment/inner_side.h"
#include "service/pipeline_block.h"
#include "service/service.h"
#include "store/resident_tables.h"

static const GhTableSource *look_for(GhFragment *fragment, GhDeviceTable *table);

/*
 * The options as bytes, but for tables, and for what a pipeline may have otherwise that makes the same; NULL:
 * they are too large for any pipeline.
 */
const void *
gh_device_options_bytes(GhPipelineOptions options, Size *bytes)
{
	GhPipelineNames names = {0};
	uint8	   *block;

	options.memory_limit = options.sink.table.expected = options.sink.table.seed = 0;
	options.sink.groups.expected = options.sink.groups.seed = 0;
	*bytes = gh_pipeline_block_write(&options, &names, NULL);
	if (*bytes == 0)
		return NULL;
	block = (uint8 *) TYPEALIGN(16, palloc0(*bytes + 16));
	(void) gh_pipeline_block_write(&options, &names, block);
	return block;
}

static void
add_bytes(pg_cryptohash_ctx *context, const void *bytes, Size size)
{
	if (pg_cryptohash_update(context, bytes, size) < 0)
		elog(ERROR, "could not compute a digest");
}

/* False: they are too large. */
static bool
add_options(pg_cryptohash_ctx *context, const GhPipelineOptions *options)
{
	Size		size;
	const void *bytes = gh_device_options_bytes(*options, &size);

	if (bytes != NULL)
		add_bytes(context, bytes, size);
	return bytes != NULL;
}

/*
 * Adds the tables that a side which is joins is made with, as their relations are now; false: one of them
 * cannot stay.
 */
static bool
add_tables_of(GhFragment *fragment, pg_cryptohash_ctx *context, const GhJoined *joined)
{
	for (int i = 0; i < joined->nlevels; i++)
	{
		const GhTableSource *source = look_for(fragment, &fragment->device->tables[joined->levels[i].table]);
		const void *bytes;
		Size		size;

		if (source == NULL)
			return false;
		bytes = gh_resident_table_source_bytes(source, &size);
		add_bytes(context, bytes, size);
	}
	return true;
}

/* Of what a table is made of, beside the rows; false: it is made with one that cannot stay. */
bool
gh_device_digest(GhFragment *fragment, GhInnerSide *side, uint8 digest[PG_SHA256_DIGEST_LENGTH])
{
	pg_cryptohash_ctx *context = pg_cryptohash_create(PG_SHA256);
	GhPipelineOptions options;
	bool		made;

	if (context == NULL || pg_cryptohash_init(context) < 0)
		elog(ERROR, "could not compute a digest");
	gh_side_options(side, &options);
	made = add_options(context, &options) &&
		(side->joined == NULL || add_tables_of(fragment, context, side->joined));
	if (pg_cryptohash_final(context, digest, PG_SHA256_DIGEST_LENGTH) < 0)
		elog(ERROR, "could not compute a digest");
	pg_cryptohash_free(context);
	return made;
}

/*
 * What a table is made of, of one relation's pages or of joins over them, as all these are now; NULL: none
 * like it stays.
 */
static GhTableSource *
source_of(GhFragment *fragment, const GhDeviceTable *table)
{
	GhInnerSide *side = table->side;
	uint8		digest[PG_SHA256_DIGEST_LENGTH];

	if (side->relation == NULL ||
		!gh_resident_tables_apply(side->relation, fragment->css.ss.ps.state->es_snapshot) ||
		!gh_device_digest(fragment, side, digest))
		return NULL;
	return gh_resident_table_source(side->relation, fragment->device->number, digest);
}

/*
 * What a table may stay for; NULL: nothing.  It is looked at once in a run: before anything of what the table
 * is made of is read, or made.
 */
static const GhTableSource *
look_for(GhFragment *fragment, GhDeviceTable *table)
{
	/* a run for each row may have other parameters each time, and a table for each is not of use for long */
	if (!table->looked_for && !fragment->rescanned)
		table->source = source_of(fragment, table);
	table->looked_for = true;
	return table->source;
}

/*
 * Takes a table that has stayed, in place of one that is made; false: it is to be made.  *marks: the name of
 * marks that other processes are to set, too, or NULL.
 */
bool
gh_device_borrow_table(GhFragment *fragment, int number, GhRef *marks)
{
	GhDeviceTable *table = &fragment->device->tables[number];
	GhError		error;

	if (look_for(fragment, table) == NULL)
		return false;
	gh_device_register_tables(fragment);
	table->kept = gh_resident_table_borrow(table->source, &table->root, &table->rows);
	if (table->kept && gh_device_attach(fragment->device, table, table->root, 0) &&
		gh_device_note_table(fragment, number, marks, &error))
	{
		fragment->counts.resident_tables++;
		return true;
	}
	if (table->table != NULL)
		fragment->device->engine->table_detach(table->table);
	table->table = NULL;
	gh_device_leave_table(table);
	return false;
}

/* A table that stays, and that another participant holds, is held by this one, too; false: it has gone. */
bool
gh_device_hold_table(GhDeviceTable *table, GhRef root)
{
	if (!table->kept && gh_resident_table_hold(root))
	{
		table->root = root;
		table->kept = true;
	}
	return table->kept;
}

/* Of a chain that is not needed. */
static void
note_unused(GhDeviceSharedTables *own, const GhJoined *joined)
{
	for (int i = 0; joined != NULL && i < joined->nlevels; i++)
	{
		pg_atomic_write_u32(&own->becomes[joined->levels[i].table], GH_SHARED_UNUSED);
		note_unused(own, joined->levels[i].inner);
	}
}

/* Whether the copy of an index is right for all of an inner side, and the table of it is there, and stays. */
static bool
borrow_copy(GhFragment *fragment, int number, GhDeviceSharedTables *own)
{
	GhDeviceTable *table = &fragment->device->tables[number];
	GhCopyTable used = gh_device_copy_table(fragment, number);

	if (used == GH_COPY_NOT_USED)
		return false;
	if (used == GH_COPY_USED)
	{
		pg_atomic_write_u64(&own->copied[number], RelationGetNumberOfBlocks(table->side->relation));
		return true;
	}
	/* it would be this process's alone */
	gh_device_drop_table(fragment->device, table);
	if (table->supply != NULL)
		gh_supply_end(table->supply);
	table->supply = NULL;
	table->copied = false;
	return false;
}

/*
 * Looks for all tables of a chain that participants are to make, from the outermost down, and borrows those
 * that have stayed; own: what participants share of the device at hand.
 */
void
gh_device_borrow_shared(GhFragment *fragment, const GhJoined *joined, GhDeviceSharedTables *own, GhRef *marks)
{
	for (int i = 0; i < joined->nlevels; i++)
	{
		const GhJoinLevel *level = &joined->levels[i];

		if (borrow_copy(fragment, level->table, own) || gh_device_borrow_table(fragment, level->table, marks))
		{
			pg_atomic_write_u64(&own->tables[level->table], fragment->device->tables[level->table].root);
			pg_atomic_write_u32(&own->becomes[level->table], GH_SHARED_BORROWED);
			note_unused(own, level->inner);
		}
		else if (level->inner != NULL)
			gh_device_borrow_shared(fragment, level->inner, own, marks);
	}
}

/* The table was made, under the name that it has: it may stay. */
void
gh_device_keep_table(GhFragment *fragment, int number)
{
	GhDeviceTable *table = &fragment->device->tables[number];

	if (table->source != NULL)
		table->kept = gh_resident_table_keep(table->source, table->root, table->rows);
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
