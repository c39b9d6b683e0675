/*
 * prewarm.c
 *		Puts the pages of a table onto a GPU before a query needs them: gpuhash_prewarm(), and what loads them
 *		again after a restart (reload.c).  Where the CPU engine does the queries, columns in the place of pages:
 *		prewarm_columns.c.
 *
 * They are read as a scan reads them, by a pipeline that looks at none of their columns, and stay there as
 * those of any query do (store/resident.h).  No rows leave the device, so that no policy has a say in it.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/tableam.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "expr/translate.h"
#include "fragment/device.h"
#include "fragment/prewarm.h"
#include "fragment/supply.h"
#include "gpuhash.h"
#include "service/placement.h"
#include "service/progress.h"
#include "service/service.h"

PG_FUNCTION_INFO_V1(gpuhash_prewarm);

/* GhRowBack: no row is asked for. */
static void
leave_row(void *arg, Buffer buffer, BlockNumber block, OffsetNumber line)
{
	(void) arg;
	(void) buffer;
	(void) block;
	(void) line;
}

/* The pipeline: rows come in, and are counted. */
static bool
begin_supply(GhSupply *supply, Relation relation, GhPages *pages, int device)
{
	GhStep	   *step = palloc0(sizeof(GhStep));
	GhProgram  *program = gh_translate_end(gh_translate_begin(RelationGetDescr(relation), 1));
	GhPipelineOptions options;
	GhTableOptions table;
	bool		begun;

	gh_stage_options(relation, program, &options);
	gh_device_options(gh_service_engine(), device, &options, &table);
	options.nsteps = 1;
	options.steps = step;
	options.sink.kind = GH_SINK_GROUPS;
	options.sink.groups.seed = table.seed;
	begun = gh_supply_begin(supply, gh_service_engine(), &options, NULL, pages, CurrentMemoryContext);
	supply->row_back = leave_row;
	return begun;
}

/*
 * Of pages from that block on, how many are wanted next: the scan must not go round to the relation's begin.
 */
static int
count_wanted(const GhSupply *supply, const GhPrewarm *load, BlockNumber next)
{
	const GhResident *resident = supply->resident;
	uint64		end = Min((uint64) load->first + load->most_blocks, supply->pages->nblocks);

	if (!load->unasked)
		return GH_PAGES_AHEAD_MAX;
	if (resident == NULL || !gh_resident_may_fill(resident) || next >= end ||
		supply->counts.resident + gh_resident_brought(resident) >= load->most_pages)
		return 0;
	return (int) Min(end - next, GH_PAGES_AHEAD_MAX);
}

/* Pages of a table that is divided among several devices, for one of them. */
typedef struct Divided
{
	GhSupply   *supply;
	const GhPrewarm *load;
} Divided;

static bool
is_for_others(const GhPrewarm *load, BlockNumber block)
{
	return load->ndevices > 1 && gh_share_of_block(block, load->ndevices) != load->turn;
}

/* GhPages.has_blocks: what is for the others need not be read, either. */
static uint32
has_blocks(void *arg, BlockNumber block)
{
	const Divided *divided = arg;
	uint32		left = GH_SHARE_BLOCKS - block % GH_SHARE_BLOCKS;

	return is_for_others(divided->load, block) ? left : Min(left, gh_supply_has_blocks(divided->supply, block));
}

/* Supplies pages, until there are no more, or no more are wanted.  False: the supply has failed. */
static bool
supply_pages(GhSupply *supply, GhPrewarm *load)
{
	GhPages    *pages = supply->pages;
	BlockNumber next = load->first;
	Divided		divided = {supply, load};
	bool		done = true;
	int			wanted;

	gh_supply_open_pages(supply, true);
	if (load->ndevices > 1)
	{
		pages->has_blocks = has_blocks;
		pages->has_blocks_arg = &divided;
	}
	gh_progress_phase(GH_PROGRESS_READS, pages->nblocks);
	if (load->unasked && supply->resident != NULL)
		gh_resident_load(supply->resident, load->used);
	while (done && (wanted = count_wanted(supply, load, next)) > 0 && gh_pages_next(pages, wanted))
	{
		next = pages->block + pages->run;
		if (!is_for_others(load, pages->block))
			done = gh_supply_page(supply);
		gh_progress_done(next);
	}
	done = done && gh_supply_flush(supply);
	if (load->ndevices > 1)
		pages->has_blocks = NULL;
	load->first = next;
	/* of one whose pages may not stay there is nothing to be loaded */
	load->ended = supply->resident == NULL || next >= pages->nblocks;
	load->full = supply->resident != NULL && !gh_resident_may_fill(supply->resident);
	load->brought = supply->resident != NULL ? gh_resident_counts(supply->resident)->kept : 0;
	load->pages = supply->counts.resident + load->brought;
	return done;
}

/* In a context of its own. */
static bool
load_in_context(Relation relation, GhPrewarm *load)
{
	Snapshot	snapshot = GetActiveSnapshot();
	TableScanDesc scan = load->unasked ? gh_begin_scan_aside(relation, snapshot, load->first) :
		gh_beginscan_of(relation, snapshot);
	/* which the context's end gives back */
	GhSupply   *supply = palloc0(sizeof(GhSupply));
	GhPages		pages;
	bool		done;

	gh_progress_begin(CurrentMemoryContext, load->unasked ? GH_PROGRESS_RELOAD : GH_PROGRESS_PREWARM,
					  RelationGetRelid(relation), gh_service_device_number(load->device));
	gh_pages_init(&pages, CurrentMemoryContext);
	gh_pages_of_scan(&pages, scan);
	done = begin_supply(supply, relation, &pages, load->device) && supply_pages(supply, load);
	gh_pages_park(&pages);
	gh_pages_end(&pages);
	if (!done)
		load->error = supply->error;
	else
		gh_supply_close_pages(supply);
	gh_supply_end(supply);
	table_endscan(scan);
	return done;
}

/*
 * Where queries divide a table's pages among devices, and this is one of them, it gets those that are for it.
 */
static void
find_turn(Relation relation, GhPrewarm *load)
{
	int			devices[GH_DEVICES_PER_QUERY_MAX];
	int			n = gh_device_set_of(relation, false, devices);

	for (int i = 0; i < n; i++)
		if (devices[i] == load->device)
		{
			load->ndevices = n;
			load->turn = i;
		}
}

bool
gh_load_pages(Relation relation, GhPrewarm *load)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuhash_prewarm",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext saved = MemoryContextSwitchTo(context);
	bool		done;

	if (gh_devices_per_query > 1)
		find_turn(relation, load);
	done = load_in_context(relation, load);
	MemoryContextSwitchTo(saved);
	MemoryContextDelete(context);
	return done;
}

bool
gh_is_loadable(Relation relation)
{
	return RELKIND_HAS_TABLE_AM(relation->rd_rel->relkind) && relation->rd_rel->relam == HEAP_TABLE_AM_OID &&
		!RelationUsesLocalBuffers(relation);
}

/* Reads a table's pages; how many of them are on the device now. */
static int64
read_pages(Relation relation, int device)
{
	GhPrewarm	load = {.device = device};

	gh_resident_give_up_scattered(relation, device);
	if (!gh_load_pages(relation, &load))
		gh_report_error(&load.error, "put pages onto the GPU");
	return (int64) load.pages;
}

/* Likewise onto each device that queries divide them among, or, if that is one, onto that one. */
static int64
read_divided_pages(Relation relation, int device)
{
	int			devices[GH_DEVICES_PER_QUERY_MAX];
	int			n = gh_devices_per_query > 1 ? gh_device_set_of(relation, true, devices) : 1;
	int64		pages = 0;

	if (n < 2)
		return read_pages(relation, device);
	for (int i = 0; i < n; i++)
		pages += read_pages(relation, devices[i]);
	return pages;
}

/* Where the CPU engine does what queries do. */
#define GH_NO_DEVICE (-1)

static int64
make_columns(Relation relation)
{
	GhColumnsLoad load = {.most_blocks = MaxBlockNumber};

	gh_load_columns(relation, &load);
	return (int64) load.pages;
}

/* One table, or what has its pages. */
static int64
prewarm(Oid relid, int device)
{
	Relation	relation = try_relation_open(relid, AccessShareLock);
	int64		pages = 0;

	/* a partition that was dropped meanwhile has none */
	if (relation != NULL)
	{
		if (gh_is_loadable(relation))
			pages = device == GH_NO_DEVICE ? make_columns(relation) : read_divided_pages(relation, device);
		relation_close(relation, NoLock);
	}
	return pages;
}

/* Whether the caller may read the table, which is one. */
static void
check_table(Oid relid)
{
	char		kind = get_rel_relkind(relid);

	if (kind != RELKIND_RELATION && kind != RELKIND_MATVIEW && kind != RELKIND_PARTITIONED_TABLE &&
		kind != RELKIND_TOASTVALUE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("relation %u is not a table or materialized view", relid)));
	if (pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(kind), get_rel_name(relid));
}

/* The device to put them on: the one that has most memory left.  GH_NO_DEVICE: queries will have none. */
static int
choose_device(void)
{
	const char *reason = NULL;
	bool		down = false;
	int			device;

	if (!gh_service_enabled())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pages and columns are kept only with gpuhash preloaded"),
				 errhint("Add \"gpuhash\" to \"shared_preload_libraries\" and restart the server.")));
	if (!gh_enable_resident)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pages and columns are not kept"),
				 errhint("Set \"gpuhash.enable_resident\" to \"on\".")));
	if (gh_engine_setting == GH_ENGINE_CPU)
		return GH_NO_DEVICE;
	device = gh_service_ready(&reason, &down) ? gh_service_choose_device() : GH_NO_DEVICE;
	if (device < 0 && (down || gh_engine_setting == GH_ENGINE_CUDA))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the CUDA engine is not available: %s", reason != NULL ? reason : "no GPU is ready"),
				 errhint("Look at the view gpuhash_devices.")));
	return device;
}

/*
 * Of an index, its copy (prewarm_index.c).  Else the pages of a table, with all that inherits from it, that
 * are on a GPU when this is done, or whose columns are in shared memory.
 */
Datum
gpuhash_prewarm(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	List	   *tables;
	ListCell   *cell;
	int64		pages = 0;
	int			device;

	if (gh_is_index(relid))
		PG_RETURN_INT64(gh_prewarm_index(relid));
	check_table(relid);
	device = choose_device();
	tables = find_all_inheritors(relid, AccessShareLock, NULL);
	foreach(cell, tables)
		pages += prewarm(lfirst_oid(cell), device);
	PG_RETURN_INT64(pages);
}
