/*
 * scans.c
 *		What the threads of a worker do with requests on scans.
 *
 * As everywhere in a worker, what a client wrote is copied and checked: plans (plan.c), lists of
 * pages (pages.c), numbers of rows, and offsets.  What lies in bitmaps is not: the engine takes any bytes, also
 * such that change while it reads them.  No function of PostgreSQL is called here.
 */
#include "postgres.h"

#include "service/plan.h"
#include "service/threads.h"

/* ------------------------------------------------------------------ requests */

/* One for rows of a joined table, which the engine holds against its number of rows; NULL, or what is wrong. */
static const char *
build_row_request(const GhSlot *asked, GhScanRequest *request)
{
	if (asked->unmatched != 1 || asked->count != 0)
		return "a request is for pages, or for rows without a match";
	request->unmatched = 1;
	request->first_row = asked->first_row;
	request->nrows = asked->nrows;
	return NULL;
}

/* The engine's request out of what was asked for, checked; NULL, or what is wrong. */
static const char *
build_request(uint32 number, const GhSlot *asked, const GhWorkerTable *table)
{
	GhRunning  *running = &gh_worker.running_by_slot[number];
	GhScanRequest *request = &running->scan_request;
	void	   *pages;
	void	   *bitmaps;
	void	   *back;
	const char *why;

	memset(request, 0, sizeof(*request));
	if (asked->unmatched != 0)
		return build_row_request(asked, request);
	if (!gh_executor_is_buffer(number, asked->units) || asked->count > GH_SCAN_PAGES_MAX ||
		!gh_executor_array(number, asked->units, asked->pages, asked->count, sizeof(GhScanPage), &pages) ||
		!gh_executor_array(number, asked->units, asked->bitmaps, asked->nbitmaps, sizeof(uint64), &bitmaps) ||
		!gh_executor_array(number, asked->units, asked->back, asked->back_room, sizeof(GhScanRow), &back) ||
		pages == NULL)
		return "an array of the request is outside its buffer";
	why = gh_pages_take(asked, pages, (uint32) asked->count, table->page_bytes, running);
	if (why != NULL)
		return why;
	request->readable = running->readable;
	request->npages = running->npages;
	request->pages = running->pages;
	request->bitmaps = bitmaps;
	request->nbitmaps = bitmaps == NULL ? 0 : asked->nbitmaps;
	request->back = back;
	request->back_room = back == NULL ? 0 : asked->back_room;
	return NULL;
}

void
gh_scans_finish(uint32 number, GhStatus status)
{
	GhRunning  *running = &gh_worker.running_by_slot[number];
	GhScanRequest *request = &running->scan_request;
	GhSlot	   *slot = gh_slot_at(number);

	slot->status = status;
	if (status != GH_OK)
		slot->error = request->error;
	slot->counted = request->counted;
	slot->seen = request->seen;
	slot->passed = request->passed;
	memcpy(slot->joined, request->joined, sizeof(slot->joined));
	slot->nback = gh_fault_pass(GH_FAULT_POINT_SCAN_ANSWER) == GH_FAULT_NONE ? request->nback : PG_UINT64_MAX;
	slot->no_group = request->no_group;
	gh_pages_count(running, request->nbitmaps, request->nback * sizeof(GhScanRow));
	gh_pages_drop(running);
	if (status == GH_DEVICE_ERROR)
		gh_executor_check_device(&request->error);
	gh_executor_answer(number);
}

static void
run_pages(GhExecutor *executor, uint32 number, const GhSlot *asked, GhWorkerTable *table)
{
	GhRunning  *running = &gh_worker.running_by_slot[number];
	GhScanRequest *request = &running->scan_request;
	const char *why = build_request(number, asked, table);
	GhStatus	status;

	if (why != NULL)
	{
		gh_pages_drop(running);
		gh_executor_refuse(number, GH_INVALID, why);
		return;
	}
	status = gh_executor_pass_point(GH_FAULT_POINT_SCAN, &request->error);
	if (status == GH_OK)
		status = gh_worker.engine->scans->submit(table->scan, request);
	if (status != GH_OK && status != GH_BUSY)
	{
		gh_scans_finish(number, status);
		return;
	}
	gh_executor_runs(executor, number, table, GH_RUNNING_SCAN);
}

/* ---------------------------------------------------------------- making one */

/* The tables that a plan's scan is joined with; NULL, or what is wrong. */
static const char *
find_tables(const GhExecutor *executor, const GhSlot *asked, GhPlan *plan)
{
	for (uint32 i = 0; plan->options.joins != NULL && i < plan->options.njoins; i++)
	{
		const GhPlanTable *named = &plan->tables[i];
		const char *why;
		GhWorkerTable *table = gh_executor_named(executor, asked, named->table, named->generation, &why);

		if (table == NULL)
			return why;
		if (table->scan == NULL || !table->was_made)
			return "a table of the scan's joins was not made";
		plan->joins[i].table = table->scan;
	}
	return NULL;
}

/* The tables of its joins stay as long as the scan. */
static void
hold_tables(GhWorkerTable *table, const GhPlan *plan)
{
	for (uint32 i = 0; plan->options.joins != NULL && i < plan->options.njoins; i++)
		gh_executor_hold(table, plan->tables[i].table);
}

static GhStatus
make_scan(GhExecutor *executor, const GhSlot *asked, GhWorkerTable *table, GhPlan *plan,
		  GhError *error)
{
	const char *why = find_tables(executor, asked, plan);
	GhHost		host;
	GhStatus	status;

	if (why != NULL)
		return gh_error_set(error, GH_INVALID, "%s", why);
	gh_executor_host(table, &host);
	plan->options.device = gh_worker.cuda_device;
	table->generation = asked->table_generation;
	table->page_bytes = plan->options.page_bytes;
	table->was_made = false;
	status = gh_executor_pass_point(GH_FAULT_POINT_SCAN_CREATE, error);
	if (status == GH_OK)
		status = gh_worker.engine->scans->create(&host, &plan->options, &table->scan, error);
	if (status == GH_OK)
		hold_tables(table, plan);
	else
		table->scan = NULL;
	return status;
}

static void
create_scan(GhExecutor *executor, uint32 number, const GhSlot *asked, GhWorkerTable *table)
{
	GhSlot	   *slot = gh_slot_at(number);
	void	   *block;
	GhPlan		plan;

	if (!gh_executor_is_buffer(number, asked->units) ||
		!gh_executor_array(number, asked->units, asked->block, asked->count, 1, &block) || block == NULL)
	{
		gh_executor_refuse(number, GH_INVALID, "the plan of a scan is outside its buffer");
		return;
	}
	if (gh_worker.engine->scans == NULL)
	{
		gh_executor_refuse(number, GH_UNSUPPORTED, "the engine has no scans");
		return;
	}
	slot->status = gh_plan_read(block, asked->count, &plan, &slot->error);
	if (slot->status == GH_OK)
	{
		slot->status = make_scan(executor, asked, table, &plan, &slot->error);
		gh_plan_drop(&plan);
	}
	if (slot->status == GH_DEVICE_ERROR)
		gh_executor_check_device(&slot->error);
	else
		gh_executor_note_memory();
	gh_executor_answer(number);
}

void
gh_scans_destroy(GhExecutor *executor, GhWorkerTable *table)
{
	GhScan	   *scan = table->scan;

	table->scan = NULL;
	gh_worker.engine->scans->destroy(scan);
	gh_executor_let_go(executor, table);
}

/* ------------------------------------------------------------- what they made */

/* Records of groups into the slot's buffer; the executor waits for the device meanwhile. */
static GhStatus
fetch_results(uint32 number, const GhSlot *asked, GhWorkerTable *table)
{
	GhSlot	   *slot = gh_slot_at(number);
	GhCursor	cursor = asked->cursor;
	size_t		bytes = 0;
	void	   *place;
	GhStatus	status;

	slot->bytes = 0;
	if (!gh_executor_is_buffer(number, asked->units) ||
		!gh_executor_array(number, asked->units, asked->block, asked->count, 1, &place) || place == NULL)
		return gh_error_set(&slot->error, GH_INVALID, "the place for results is outside its buffer");
	status = gh_executor_pass_point(GH_FAULT_POINT_SCAN_RESULTS, &slot->error);
	if (status == GH_OK)
		status = gh_worker.engine->scans->results(table->scan, &cursor, asked->count, place, &bytes,
												  &slot->error);
	slot->cursor = cursor;
	slot->bytes = gh_fault_pass(GH_FAULT_POINT_SCAN_ANSWER) == GH_FAULT_NONE ? bytes : SIZE_MAX;
	if (status == GH_OK)
		gh_executor_count(GH_COUNT_BYTES_FROM, bytes);
	return status;
}

/* A client that was stopped on its way asks again, and is told the same. */
static GhStatus
make_table(GhSlot *slot, GhWorkerTable *table)
{
	GhStatus	status = gh_executor_pass_point(GH_FAULT_POINT_SCAN_TABLE, &slot->error);

	if (status == GH_OK && !table->was_made)
		status = gh_worker.engine->scans->make_table(table->scan, &table->made, &slot->error);
	if (status != GH_OK)
		return status;
	table->was_made = true;
	slot->made = table->made;
	gh_executor_note_memory();
	return GH_OK;
}

static GhStatus
tell_stats(GhSlot *slot, GhWorkerTable *table)
{
	GhStatus	status = gh_executor_pass_point(GH_FAULT_POINT_SCAN_STATS, &slot->error);

	return status != GH_OK ? status :
		gh_worker.engine->scans->stats(table->scan, &slot->scan_stats, &slot->error);
}

void
gh_scans_start(GhExecutor *executor, uint32 number, const GhSlot *asked)
{
	GhWorkerTable *table = &gh_worker.tables[asked->table];
	GhSlot	   *slot = gh_slot_at(number);

	if (asked->op == GH_SERVICE_SCAN_CREATE)
	{
		create_scan(executor, number, asked, table);
		return;
	}
	if (asked->op == GH_SERVICE_SCAN)
	{
		run_pages(executor, number, asked, table);
		return;
	}
	gh_executor_drain(executor, table);
	if (asked->op == GH_SERVICE_SCAN_RESULTS)
		slot->status = fetch_results(number, asked, table);
	else if (asked->op == GH_SERVICE_SCAN_TABLE)
		slot->status = make_table(slot, table);
	else
		slot->status = tell_stats(slot, table);
	if (slot->status == GH_DEVICE_ERROR)
		gh_executor_check_device(&slot->error);
	gh_executor_answer(number);
}
