/*
 * supply_groups.c
 *		Groups that a supply's pipeline has made, brought to another pipeline: fewer leave the device, or
 *		others.
 *
 * A level is a pipeline whose source are the groups of the one before it; the first one's are those of the
 * supply's own pipeline, when all pages are through.  Where a level cannot be made, or cannot do all of the
 * groups, these are still there as they were.  Results come from the last level.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "fragment/supply.h"
#include "gpuhash.h"

/* A sample is taken in so many pieces, spread evenly: groups may be there in an order. */
#define GH_SAMPLE_PIECES 16

static GhPipeline *
last_level(const GhSupply *supply)
{
	return supply->nlevels > 0 ? supply->levels[supply->nlevels - 1] : supply->pipeline;
}

/* How many groups the last pipeline has; 0: none, or that is not known. */
uint64
gh_supply_groups(const GhSupply *supply)
{
	GhPipeline *pipeline = last_level(supply);
	GhPipelineStats stats;
	GhError		error;

	return pipeline->engine->stats(pipeline, &stats, &error) == GH_OK ? stats.entries : 0;
}

static GhStatus
create_level(GhSupply *supply, const GhPipelineOptions *options, GhPipeline **level, GhError *error)
{
	const GhPipelineEngine *engine = supply->engine->pipelines;
	GhHost		host;
	GhStatus	status;

	gh_host_init(&host, supply->context);
	while ((status = engine->create(&host, options, level, error)) == GH_STOPPED)
		gh_serve_interrupt();
	return status;
}

/*
 * Brings groups from `first` on, so many, as many at a time as there is room to hand back; false: not all can
 * be done.
 */
static bool
bring_groups(GhSupply *supply, GhPipelineRequest *request, uint64 first, uint64 count, GhLevelCounts *counts,
			 GhError *error)
{
	GhPipeline *level = last_level(supply);

	request->kind = GH_INPUT_SOURCE;
	for (uint64 end = first + count; first < end; first += request->count)
	{
		GhStatus	status;

		CHECK_FOR_INTERRUPTS();
		request->first = first;
		request->count = Min(end - first, request->back_room);
		status = supply->engine->pipelines->submit(level, request);
		if (status == GH_BUSY)
			status = gh_supply_wait(supply, level, request);
		*error = request->error;
		if (status != GH_OK || request->nback > 0)
			return false;
		for (int s = 0; s < GH_STEPS_MAX; s++)
			counts->passed[s] += request->passed[s];
		counts->counted += request->counted;
	}
	return true;
}

/* Brings all of the groups of the level before, or a sample of them. */
static bool
fill_level(GhSupply *supply, uint64 sample, GhLevelCounts *counts, GhError *error)
{
	GhPipelineRequest *request = MemoryContextAllocZero(supply->context, sizeof(GhPipelineRequest));
	Size		room;
	bool		done = true;

	request->back = gh_supply_buffer(supply, &room);
	request->back_room = Min(room / sizeof(GhBackRow), GH_REQUEST_LINES_MAX);
	if (request->back == NULL)
		return false;
	if (sample == 0)
		return bring_groups(supply, request, 0, counts->groups, counts, error);
	for (uint64 piece = 0; done && piece < GH_SAMPLE_PIECES; piece++)
		done = bring_groups(supply, request, counts->groups / GH_SAMPLE_PIECES * piece,
							sample / GH_SAMPLE_PIECES, counts, error);
	return done;
}

/*
 * Adds a level that is made of the options, but for its source, when all requests are through.  Of `sample`
 * groups of the level before, which has more, if that is not 0; else of all.  False: the level is not there,
 * or the supply has failed.
 */
bool
gh_supply_add_level(GhSupply *supply, GhPipelineOptions *options, uint64 sample, GhLevelCounts *counts)
{
	GhTableOptions table;
	GhError		error = {0};

	memset(counts, 0, sizeof(*counts));
	counts->groups = gh_supply_groups(supply);
	if (counts->groups == 0 || supply->nlevels == GH_SUPPLY_LEVELS)
		return false;
	gh_device_options(supply->engine, supply->device, options, &table);
	options->sink.groups.seed = table.seed;
	options->sink.groups.expected = Min(options->sink.groups.expected, counts->groups);
	options->source.kind = GH_SOURCE_GROUPS;
	options->source.groups = last_level(supply);
	if (create_level(supply, options, &supply->levels[supply->nlevels], &error) == GH_OK)
	{
		supply->nlevels++;
		if (fill_level(supply, sample, counts, &error))
			return true;
		gh_supply_drop_levels(supply, supply->nlevels - 1);
	}
	/* then the groups are lost, too */
	if (error.status == GH_DEVICE_ERROR)
	{
		supply->failed = true;
		supply->error = error;
	}
	return false;
}

/* Only the first so many stay. */
void
gh_supply_drop_levels(GhSupply *supply, int nlevels)
{
	while (supply->nlevels > nlevels)
	{
		GhPipeline *level = supply->levels[--supply->nlevels];

		supply->engine->pipelines->destroy(level);
	}
}

/* As GhPipelineEngine.results, of the last level; GH_OK or GH_TOO_SMALL, or the supply has failed. */
static GhStatus
next_results(GhSupply *supply, GhCursor *cursor, Size room, void *buffer, Size *bytes)
{
	GhPipeline *pipeline = last_level(supply);

	for (;;)
	{
		size_t		came = 0;
		GhStatus	status = pipeline->engine->results(pipeline, cursor, room, buffer, &came, &supply->error);

		*bytes = came;
		if (status == GH_STOPPED)
		{
			gh_serve_interrupt();
			continue;
		}
		supply->failed |= status != GH_OK && status != GH_TOO_SMALL;
		return status;
	}
}

/*
 * Hands over what the last level's sink has, a piece of so many bytes at a time, or what one record takes.
 * False: the supply has failed, and not all was handed over.  Nothing is where no buffers were taken.
 */
bool
gh_supply_fetch(GhSupply *supply, Size piece,
				void (*take) (void *arg, const char *records, Size bytes), void *arg)
{
	GhCursor	cursor = {0};
	Size		room;
	char	   *buffer = gh_supply_buffer(supply, &room);

	piece = Min(piece, room);
	while (buffer != NULL && !supply->failed && !cursor.finished)
	{
		Size		bytes;

		/* one alone is larger */
		if (next_results(supply, &cursor, piece, buffer, &bytes) == GH_TOO_SMALL)
		{
			supply->failed = piece == room;
			piece = room;
		}
		else if (!supply->failed)
			take(arg, buffer, bytes);
	}
	return !supply->failed;
}
