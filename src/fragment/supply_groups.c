/*
 * supply_groups.c
 *		Groups that a supply's pipeline has made, brought to another pipeline: fewer leave the device.
 *
 * The second pipeline is made when all pages are through; its source are the groups, and its sink is of rows.
 * Where it cannot be made, or cannot tell of a group, the groups are still there as they were, and all of
 * them leave the device.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "fragment/supply.h"
#include "gpuhash.h"

/* How many the pipeline has; 0: none, or that is not known. */
uint64
gh_supply_groups(const GhSupply *supply)
{
	GhPipelineStats stats;
	GhError		error;

	return supply->engine->pipelines->stats(supply->pipeline, &stats, &error) == GH_OK ? stats.entries : 0;
}

static GhStatus
create_narrowed(GhSupply *supply, const GhPipelineOptions *options, GhError *error)
{
	const GhPipelineEngine *engine = supply->engine->pipelines;
	GhHost		host;
	GhStatus	status;

	gh_host_init(&host, supply->context);
	while ((status = engine->create(&host, options, &supply->narrowed, error)) == GH_STOPPED)
		gh_serve_interrupt();
	return status;
}

/*
 * Brings all groups there, as many at a time as the buffer has room for to be handed back; false: not all can
 * be done.
 */
static bool
bring_groups(GhSupply *supply, uint64 ngroups, uint64 *passed, GhError *error)
{
	GhPipelineRequest *request = MemoryContextAllocZero(supply->context, sizeof(GhPipelineRequest));
	Size		room;

	request->kind = GH_INPUT_SOURCE;
	request->back = gh_supply_buffer(supply, &room);
	request->back_room = Min(room / sizeof(GhBackRow), GH_REQUEST_LINES_MAX);
	*passed = 0;
	for (; request->back != NULL && request->first < ngroups; request->first += request->count)
	{
		GhStatus	status;

		CHECK_FOR_INTERRUPTS();
		request->count = Min(ngroups - request->first, request->back_room);
		status = supply->engine->pipelines->submit(supply->narrowed, request);
		if (status == GH_BUSY)
			status = gh_supply_wait(supply, supply->narrowed, request);
		*error = request->error;
		if (status != GH_OK || request->nback > 0)
			return false;
		*passed += request->counted;
	}
	return request->back != NULL;
}

/*
 * Brings the pipeline's groups, which are so many, when all requests are through, to one that is made of the
 * options, with the groups as its source; results then come from that, and *passed is how many.  False: they
 * come from the groups, or the supply has failed.
 */
bool
gh_supply_narrow(GhSupply *supply, GhPipelineOptions *options, uint64 ngroups, uint64 *passed)
{
	GhTableOptions table;
	GhError		error = {0};

	Assert(supply->narrowed == NULL);
	gh_device_options(supply->engine, supply->device, options, &table);
	options->source.kind = GH_SOURCE_GROUPS;
	options->source.groups = supply->pipeline;
	if (create_narrowed(supply, options, &error) == GH_OK &&
		bring_groups(supply, ngroups, passed, &error))
		return true;
	if (supply->narrowed != NULL)
		supply->engine->pipelines->destroy(supply->narrowed);
	supply->narrowed = NULL;
	/* then the groups are lost, too */
	if (error.status == GH_DEVICE_ERROR)
	{
		supply->failed = true;
		supply->error = error;
	}
	return false;
}

/*
 * As GhPipelineEngine.results, into a buffer of gh_supply_buffer(); GH_OK or GH_TOO_SMALL, or the supply has
 * failed.
 */
GhStatus
gh_supply_results(GhSupply *supply, GhCursor *cursor, Size room, void *buffer, Size *bytes)
{
	GhPipeline *pipeline = supply->narrowed != NULL ? supply->narrowed : supply->pipeline;

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
