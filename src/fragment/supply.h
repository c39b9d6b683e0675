/*
 * supply.h
 *		The pages of a heap scan, supplied to a pipeline of an engine (engine/pipeline/pipeline.h).
 */
#ifndef GPUHASH_SUPPLY_H
#define GPUHASH_SUPPLY_H

#include "postgres.h"

#include "commands/explain.h"

#include "compat.h"
#include "fragment/stage.h"
#include "gpuhash.h"
#include "store/resident.h"

/* Requests at a time: one is filled, one is worked on, one waits behind it. */
#define GH_SUPPLY_REQUESTS 3

/* Pipelines one behind the other, each of which has the groups of the one before it as its source. */
#define GH_SUPPLY_LEVELS 8

/* Pages of a request: with fewer than this, there is no point. */
#define GH_SUPPLY_MIN 64

/*
 * Lines of a request, at most, as long as nearly no row comes back: of pages that are added to one group, or
 * to few behind few joins, and of others, whose sinks take so many at a time.
 */
#define GH_SUPPLY_LINES_ADDED (1 << 22)
#define GH_SUPPLY_LINES_TAKEN (1 << 20)
/* That is: one in so many of those so far. */
#define GH_SUPPLY_BACK_SHARE 1024

/* A request, and what is kept of its pages until it is through. */
typedef struct GhSupplyRequest
{
	GhPipelineRequest request;
	GhPageRef *pages;			/* in the buffer, as what follows */
	uint64	   *bitmaps;
	GhBackRow  *back;
	char	   *copies;			/* of pages that are not left where they are */
	uint32		ncopies;
	BlockNumber *blocks;		/* by page of the list; of a run, the first one's */
	Buffer	   *pins;			/* likewise; InvalidBuffer: it is a copy, or on the device */
	uint32	   *firsts;			/* likewise: how many pages are before it, all of runs counted */
	XLogRecPtr *lsns;			/* likewise, of pages that the caller has pinned (supply_copies.c) */
	uint32		nall;			/* pages, likewise */
	uint32		nlines;			/* of all */
	uint32		nhinted;		/* of the pages */
	uint32		nagain;			/* likewise: asked once more */
	uint32		nresident;		/* likewise: they, or runs of them, are on the device */
	GhResidentNote *notes;		/* of pages that stay there, or still are what they were; room for all; NULL: none are taken */
	uint32		nnotes;
	uint32		spans[GH_REQUEST_SPANS_MAX];	/* numbers of those that the request names */
	GhPageSpan *named[GH_REQUEST_SPANS_MAX];
	bool		submitted;
} GhSupplyRequest;

/*
 * A page of a request, by its number in the list, that is asked once more: for the tuples that were found to
 * be visible.
 */
typedef struct GhJudgedPage
{
	uint32		page;
	OffsetNumber lines;			/* the last of them */
	uint64		visible[GH_LINE_WORDS];	/* bit n - 1: line n */
} GhJudgedPage;

/*
 * Likewise, of a page that the caller has copied or pinned (supply_copies.c); line 0: nothing of the page can
 * be read, or, with NULL for the page, somebody has changed one while it was read.  What is needed of the
 * page has to be taken now.
 */
typedef void (*GhLineBack) (void *arg, const char *page, OffsetNumber line);

/* A row that the engine has not done: to be found in the buffer, which is pinned. */
typedef void (*GhRowBack) (void *arg, Buffer buffer, BlockNumber block, OffsetNumber line);

typedef struct GhSupplyCounts
{
	uint64		pages;
	uint64		pinned;			/* of them: the device reads them where they are */
	uint64		hinted;			/* likewise: the device is to find what is visible */
	uint64		judged;			/* tuples of these of which it could not */
	uint64		tuples;			/* visible */
	uint64		resident;		/* they were on the device already */
	uint64		bytes;			/* that the device has read over the bus, without pages that were asked once more: which
								 * these are depends on rows that nobody may be to know of */
	uint64		counted;		/* rows, as of GhPipelineRequest */
	uint64		back;			/* likewise: they came back */
	uint64		passed[GH_STEPS_MAX];	/* likewise */
	uint64		unmatched;		/* rows of a table that no row matched */
	instr_time	wait_time;		/* for requests */
	instr_time	back_time;		/* with rows that came back */
} GhSupplyCounts;

typedef struct GhSupply
{
	const GhEngine *engine;
	GhPipeline *pipeline;
	int			nlevels;		/* behind that */
	GhPipeline *levels[GH_SUPPLY_LEVELS];	/* the first one's source are its groups; results come from the last one */
	GhPages    *pages;
	MemoryContext context;
	bool		attached;		/* the pipeline is one that another process has made, or another node */
	struct GhSharedGroups *lender;	/* whose the pipeline is (shared_groups.c); NULL: the supply's own */
	bool		turned;			/* to other pages, that it has not begun to supply */
	bool		pins;			/* the device reads pages of the pool in place; may change with the first page */
	int			device;			/* of the engine */
	int			nsupplies;		/* of several devices, beside each other; 0: it is one by itself */
	GhResident *resident;		/* the relation's pages that stay there; NULL: none do */
	GhResidentPlace found;		/* of the block that was looked up last */
	bool		timing;
	uint32		room;			/* pages of a request that are not on the device */
	uint32		page_lines;		/* rows that may come back, for each of these */
	uint32		list_room;		/* pages, or runs of them, of its list */
	uint32		rows_room;		/* rows of a request that may come back; 0: no buffers are taken */
	uint32		lines_room;		/* lines of all its pages */
	uint32		most_lines;		/* as many these may become; 0: no more than rows_room */
	uint32		copy_room;		/* of them, copies */
	uint32		fill;			/* likewise, where rows are listed: these are submitted then */
	bool		lists;			/* requests are read one after the other: gh_supply_next */
	int			current;		/* request that is filled */
	GhSupplyRequest requests[GH_SUPPLY_REQUESTS];
	void	   *buffers[GH_SUPPLY_REQUESTS];	/* NULL: none are taken */
	uint32		pins_taken;		/* with them, of this process's share */
	uint32		njudged;		/* pages of the request that is completed */
	GhJudgedPage *judged;		/* room of them */
	GhRowBack	row_back;
	GhLineBack	line_back;		/* NULL: pages are those of a scan */
	void	   *arg;
	GhSupplyCounts counts;
	bool		failed;			/* the pipeline is lost, or was never made */
	GhError		error;			/* and why */
	MemoryContextCallback callback;
} GhSupply;

/* Supplies of the same pages, on a device each. */
typedef struct GhSupplies
{
	int			count;
	GhSupply   *supplies[GH_DEVICES_PER_QUERY_MAX];
} GhSupplies;

extern bool gh_supply_begin(GhSupply *supply, const GhEngine *engine, const GhPipelineOptions *options,
							GhRef *shared, GhPages *pages, MemoryContext context);
extern GhStatus gh_supply_make_pipeline(const GhEngine *engine, const GhPipelineOptions *options,
										const GhPages *pages, MemoryContext context, GhPipeline **pipeline,
										GhError *error);
extern void gh_supply_begin_lent(GhSupply *supply, const GhEngine *engine, const GhPipelineOptions *options,
								 GhPipeline *pipeline, GhPages *pages, MemoryContext context);
extern void gh_supply_open_pages(GhSupply *supply, bool hints);
extern void gh_supply_turn_to(GhSupply *supply, GhPages *pages);
extern void gh_supply_close_pages(GhSupply *supply);
extern bool gh_supply_page(GhSupply *supply);
extern void gh_supply_submit_last(GhSupply *supply);
extern bool gh_supply_flush(GhSupply *supply);
extern bool gh_supply_unmatched(GhSupply *supply, uint32 step, uint64 nrows);
extern bool gh_supply_source(GhSupply *supply, uint64 ngroups);
extern void gh_supply_times(const GhSupply *supply, uint64 *queue_ns, uint64 *device_ns);
extern void gh_supply_end(GhSupply *supply);

/* supplies.c */
extern bool gh_supplies_go_on(const GhSupplies *all);
extern void gh_supplies_tell_pages(const GhSupplies *all, GhPages *pages);
extern void gh_supplies_open_pages(GhSupplies *all, GhPages *pages, uint32 (*has_blocks) (void *arg, BlockNumber block),
								   void *arg);
extern bool gh_supplies_take_buffers(GhSupplies *all);
extern void gh_supplies_page(GhSupplies *all, GhPages *pages);
extern void gh_supplies_flush(GhSupplies *all);

/* supply_buffers.c */
extern bool gh_supply_may_pin(const GhSupply *supply, int device);
extern bool gh_supply_take_buffers(GhSupply *supply);
extern void gh_supply_free_buffers(GhSupply *supply);
extern void gh_supply_fit_buffers(GhSupply *supply);
extern void *gh_supply_buffer(GhSupply *supply, Size *bytes);

/* for the other files about supplies */
extern void gh_supply_turn_over(GhSupply *supply);
extern GhStatus gh_supply_wait(const GhSupply *supply, GhPipeline *pipeline, GhPipelineRequest *request);

/* Pages of a request, all of runs counted: where rows are listed the first ones are few. */
static inline uint32
gh_supply_most_pages(const GhSupply *supply)
{
	return supply->lists ? Max(supply->fill, GH_SUPPLY_MIN) : GH_REQUEST_PAGES_MAX;
}

/* supply_resident.c: pages that stay on the device */
extern void gh_supply_open_resident(GhSupply *supply);
extern void gh_supply_close_resident(GhSupply *supply);
extern void gh_supply_leave_resident(GhSupply *supply);
extern uint32 gh_supply_has_blocks(GhSupply *supply, BlockNumber block);
extern GhResidentOffer gh_supply_offer_page(GhSupply *supply, bool in_place, GhResidentNote *note);
extern void gh_supply_publish(GhSupply *supply, GhSupplyRequest *request);
extern void gh_supply_put_resident(GhSupply *supply, GhSupplyRequest *request, const GhResidentPlace *at, uint32 run,
								   uint32 lines);
extern void gh_supply_name_place(GhSupply *supply, GhSupplyRequest *request, GhPageRef *page,
								 const GhResidentPlace *at);
extern void gh_supply_note(GhSupplyRequest *request, const GhResidentNote *note);

/* supply_copies.c: pages that the caller copies, or pins */
extern bool gh_supply_pins_pages(GhSupply *supply, Relation relation);
extern bool gh_supply_pinned_page(GhSupply *supply, Buffer buffer, uint32 lines, XLogRecPtr lsn);
extern char *gh_supply_copy_room(GhSupply *supply);
extern bool gh_supply_copied_page(GhSupply *supply, uint32 lines);
extern void gh_supply_give_lines_back(GhSupply *supply, const GhSupplyRequest *request);

/* supply_rows.c: rows of the executor, as columns */
typedef struct GhSupplyRows GhSupplyRows;
extern GhSupplyRows *gh_supply_open_rows(GhSupply *supply, const GhProgram *program);
extern void gh_supply_rows_enter(GhSupplyRows *rows, uint32 step);
extern bool gh_supply_row(GhSupplyRows *rows, const Datum *values, const bool *nulls);
extern bool gh_supply_columns(GhSupplyRows *rows, const GhVector *from, const char *texts, uint64 count);
extern bool gh_supply_close_rows(GhSupplyRows *rows);

/* supply_groups.c: groups that the device has made */

/* What became of the groups that were brought to a level. */
typedef struct GhLevelCounts
{
	uint64		groups;			/* so many there were */
	uint64		passed[GH_STEPS_MAX];	/* and so many came out of each step */
	uint64		counted;		/* and into the sink */
} GhLevelCounts;

extern uint64 gh_supply_groups(const GhSupply *supply);
extern bool gh_supply_add_level(GhSupply *supply, GhPipelineOptions *options, uint64 sample,
								GhLevelCounts *counts);
extern void gh_supply_drop_levels(GhSupply *supply, int nlevels);
extern bool gh_supply_fetch(GhSupply *supply, Size piece, void (*take) (void *arg, const char *records, Size bytes),
							void *arg);

/* supply_back.c */
extern void gh_supply_give_back(GhSupply *supply, const GhSupplyRequest *request);
extern bool gh_supply_asks(const GhSupplyRequest *request, uint32 page, OffsetNumber line);
extern uint32 gh_supply_listed(const GhSupplyRequest *request, uint32 page);
extern BlockNumber gh_supply_block(const GhSupplyRequest *request, uint32 page);
extern uint32 gh_supply_blocks(const GhSupply *supply, BlockNumber **blocks);
extern bool gh_supply_is_visible(GhSupply *supply, Buffer buffer, BlockNumber block, OffsetNumber line);
extern bool gh_supply_has_tuple(Buffer buffer, OffsetNumber line);

/* scan_engine.c */

/* What one more run of a node costs by either engine, as the planner has it. */
typedef struct GhRunCosts
{
	Cost		cpu;
	Cost		device;
} GhRunCosts;

extern void gh_add_part_costs(GhRunCosts *costs, const GhPages *pages, int ninstructions);
extern void gh_add_scan_costs(GhRunCosts *costs, const GhPages *pages, int ninstructions);
extern void gh_add_join_costs(GhRunCosts *costs, Relation inner, bool changes, const GhPages *outer);
extern double gh_rows_of_pages(Relation relation, double pages);
extern const GhEngine *gh_choose_scan_engine(double rows, const GhRunCosts *again, int *device,
											 const char **reason);
extern void gh_supply_gave_up(const GhSupply *supply, const char *what, char *reason, Size size);
extern void gh_device_options(const GhEngine *engine, int device, GhPipelineOptions *options, GhTableOptions *table);

/* explain.c: what any node shows of that */

/* Of a pipeline that lists rows */
extern bool gh_supply_has_room(const GhSupply *supply);
extern GhSupplyRequest *gh_supply_next(GhSupply *supply);
extern void gh_supply_done(GhSupply *supply, GhSupplyRequest *request);

#endif							/* GPUHASH_SUPPLY_H */
