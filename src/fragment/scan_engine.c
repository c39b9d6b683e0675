/*
 * scan_engine.c
 *		Which engine and device does a relation's scan, with what; and what becomes of it when it cannot.
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/spccache.h"

#include "fragment/costs.h"
#include "fragment/supply.h"
#include "gpuhash.h"
#include "heap/hints.h"
#include "heap/layout.h"
#include "service/placement.h"
#include "store/resident.h"

/* Rows that a page is thought to have, where no statistics tell. */
#define GH_ROWS_PER_PAGE 64

/* ------------------------------------------------------------------ costs */

/* What reading a page costs, on the average; and which share of them a device has. */
typedef struct PageCosts
{
	Cost		host;
	Cost		device;
	double		resident;
} PageCosts;

/*
 * Pages that the device has and the server, too, are read by neither engine; of others it makes no
 * difference.
 */
static void
price_pages(Relation relation, BlockNumber npages, PageCosts *costs)
{
	double		page_cost;

	get_tablespace_page_costs(relation->rd_rel->reltablespace, NULL, &page_cost);
	costs->resident = gh_resident_share(relation, npages);
	costs->device = page_cost * (1 - costs->resident);
	costs->host = page_cost;
	if (costs->resident > 0)
		costs->host *= 1 - costs->resident * gh_share_in_pool(relation, npages);
}

/* Rows of so many of its pages, as ANALYZE has counted them, or as many as a page may well have. */
double
gh_rows_of_pages(Relation relation, double pages)
{
	Form_pg_class rel = relation->rd_rel;

	return rel->relpages > 0 && rel->reltuples > 0 ? pages * rel->reltuples / rel->relpages :
		pages * GH_ROWS_PER_PAGE;
}

/* Of pages, by a program of so many instructions. */
static void
add_pages_costs(GhRunCosts *costs, const GhPages *pages, int ninstructions)
{
	Relation	relation = pages->relation;
	double		npages = pages->nblocks;
	PageCosts	page;

	price_pages(relation, pages->nblocks, &page);
	costs->cpu += gh_cpu_pages_cost(npages, gh_rows_of_pages(relation, npages), page.host, ninstructions, 1.0);
	costs->device += gh_device_pages_cost(npages, page.device, page.resident, 0.0, 1.0, 1);
}

/* Of the scan at the bottom, which has begun. */
void
gh_add_scan_costs(GhRunCosts *costs, const GhPages *pages, int ninstructions)
{
	costs->device += gh_device_start_cost;
	add_pages_costs(costs, pages, ninstructions);
}

/* And of another relation's pages, which are read behind these. */
void
gh_add_part_costs(GhRunCosts *costs, const GhPages *pages, int ninstructions)
{
	costs->device += GH_DEVICE_PART_COST * gh_device_start_cost;
	add_pages_costs(costs, pages, ninstructions);
}

/*
 * Of a join above it.  A device makes the join's table in every run, the CPU engine only where the inner side
 * changes from one to the next.
 */
void
gh_add_join_costs(GhRunCosts *costs, Relation inner, bool changes, const GhPages *outer)
{
	BlockNumber npages = RelationGetNumberOfBlocks(inner);
	double		rows = gh_rows_of_pages(inner, npages);
	PageCosts	page;

	price_pages(inner, npages, &page);
	costs->cpu += gh_probe_tuple_cost * gh_rows_of_pages(outer->relation, outer->nblocks);
	if (changes)
		costs->cpu += page.host * npages + (cpu_tuple_cost + gh_build_tuple_cost) * rows;
	costs->device += gh_device_pages_cost(npages, page.device, page.resident, 0.0, 1.0, 1) +
		GH_DEVICE_TABLE_COST * cpu_tuple_cost * rows;
}

/* ----------------------------------------------------------------- choice */

/*
 * The engine that is to read so many rows, and the number of its device for all scans beside it; NULL: the
 * CPU engine, in this process.  The scan has begun; again: what it costs, where it is not the first time,
 * since then each run pays for the start of a scan on the device.
 */
const GhEngine *
gh_choose_scan_engine(double rows, const GhRunCosts *again, int *device, const char **reason)
{
	const GhEngine *engine;
	GhTableOptions options;

	if (gh_engine_setting == GH_ENGINE_CPU || rows == 0)
		return NULL;
	if (again != NULL && again->device >= again->cpu)
	{
		*reason = "the CPU engine is expected to do this again for less";
		return NULL;
	}
	engine = gh_choose_engine(rows, reason);
	if (!engine->on_device)
		return NULL;
	if (engine->pipelines == NULL)
	{
		*reason = "the engine has no pipelines";
		return NULL;
	}
	gh_options_init(&options, engine);
	*device = options.device;
	return engine;
}

/* How the attributes of a relation lie in its tuples; in the memory context. */
GhPageAttribute *
gh_scan_attributes(Relation relation)
{
	TupleDesc	desc = RelationGetDescr(relation);
	GhPageAttribute *attributes = palloc(sizeof(GhPageAttribute) * Max(desc->natts, 1));

	for (int i = 0; i < desc->natts; i++)
		attributes[i] = gh_page_attribute(desc, i + 1);
	return attributes;
}

/*
 * What a pipeline has that is to be one of a device, beside what it is to do, which is set; *table: options
 * of a table that it makes, and the seed of groups.
 */
void
gh_device_options(const GhEngine *engine, int device, GhPipelineOptions *options, GhTableOptions *table)
{
	gh_options_init(table, engine);
	options->memory_limit = table->memory_limit;
	options->device = device;
}

/*
 * The device cannot go on: that is counted, and *reason says why.  With gpuhash.fallback = error, that is
 * one.
 */
void
gh_supply_gave_up(const GhSupply *supply, const char *what, char *reason, Size size)
{
	GhError		error = supply->error;

	if (gh_fallback_setting == GH_FALLBACK_ERROR && error.status != GH_DECLINED)
		gh_report_error(&error, what);
	gh_count_fallback(supply->engine, &error);
	strlcpy(reason, error.message, size);
}
