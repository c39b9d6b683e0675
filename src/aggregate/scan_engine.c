/*
 * scan_engine.c
 *		Which engine and device does a relation's scan, with what; and what becomes of it when it cannot.
 */
#include "postgres.h"

#include "utils/rel.h"

#include "aggregate/supply.h"
#include "layout.h"
#include "session.h"

/* Rows that a page is thought to have, until it is read. */
#define GH_ROWS_PER_PAGE 64
/* Tables of fewer pages that are scanned again and again are not worth a scan on the device each time. */
#define GH_RESCAN_PAGES 64

/*
 * The engine that is to do the pages of a scan, and the number of its device for all scans beside it; NULL: the CPU
 * engine, in this process.  The scan has begun; rescanned: not for the first time.
 */
const GhEngine *
gh_choose_scan_engine(const GhPages *pages, bool rescanned, int *device, const char **reason)
{
	double		rows = (double) pages->scan->rs_nblocks * GH_ROWS_PER_PAGE;
	const GhEngine *engine;
	GhTableOptions options;

	if (gh_engine_setting == GH_ENGINE_CPU || rows == 0)
		return NULL;
	if (rescanned && pages->scan->rs_nblocks < GH_RESCAN_PAGES)
	{
		*reason = "a small table is scanned several times";
		return NULL;
	}
	engine = gh_choose_engine(rows, reason);
	if (!engine->asynchronous)
		return NULL;
	if (engine->scans == NULL)
	{
		*reason = "the engine has no scans";
		return NULL;
	}
	gh_options_init(&options, engine);
	*device = options.device;
	return engine;
}

/* What all scans of a relation have in common, by an engine and on one of its devices. */
void
gh_scan_options(const GhEngine *engine, int device, Relation relation, const GhProgram *program,
				GhScanOptions *options)
{
	TupleDesc	desc = RelationGetDescr(relation);
	GhPageAttribute *attributes = palloc(sizeof(GhPageAttribute) * Max(desc->natts, 1));
	GhTableOptions table;

	for (int i = 0; i < desc->natts; i++)
		attributes[i] = gh_page_attribute(desc, i + 1);
	gh_options_init(&table, engine);
	memset(options, 0, sizeof(*options));
	options->program = program;
	options->program_bytes = program->bytes;
	options->page_bytes = BLCKSZ;
	options->natts = desc->natts;
	options->attributes = attributes;
	options->memory_limit = table.memory_limit;
	options->seed = table.seed;
	options->device = device;
}

/*
 * The device cannot go on: that is counted, and *reason says why.  With gpuhash.fallback = error, that is one.
 */
void
gh_supply_gave_up(const GhSupply *supply, const char *what, char *reason, Size size)
{
	GhError		error = supply->error;

	if (gh_fallback_setting == GH_FALLBACK_ERROR && error.status != GH_UNSUPPORTED)
		gh_report_error(&error, what);
	if (error.status != GH_UNSUPPORTED)
		gh_count_fallback(supply->engine, &error);
	strlcpy(reason, error.message, size);
}
