/*
 * shared_groups.c
 *		Groups that a device makes once for several nodes of a query.
 *
 * The planner has found nodes that read the same tables into the same groups (../plan/same_groups.c): a query
 * in WITH that is read twice, and was put in the place of both references.  The first of them to read its
 * input makes the groups.  The pipeline that has them then stays, and is the first one of the others'
 * supplies, too: they read no page, and go on as if they had made the groups, with levels of their own over
 * them (supply_groups.c).
 *
 * That two make the same groups is not the planner's word alone: pages of the same table, read under the
 * snapshot of the same query by the same program into the same sink, on the same device; with joins, past the
 * same tables, which are made of pages in the same way.  A parameter that has another value for one of them
 * is a constant of its program.
 *
 * Only groups that are whole are offered: all pages were read by the device, and it has handed no row back.
 * Only serial nodes take part, and in their first run; not those over several parts (parts.c), over right or
 * full joins, or whose inner sides are rows of other plans.  A node whose pages, or groups, a device cannot
 * do reads by itself, as ever.
 *
 * The pipeline belongs to the query's memory.  It goes when all those nodes are through, or, where one of
 * them is never asked for rows, with the query.  Two of them may be at it at a time: the first one's HAVING
 * may ask for the result of a subquery that has the second one.  Whichever is forgotten first, their levels
 * go before it does.
 */
#include "postgres.h"

#include "lib/ilist.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "fragment/inner_side.h"
#include "fragment/shared_groups.h"
#include "service/service.h"

struct GhSharedGroups
{
	dlist_node	node;			/* in all_groups */
	MemoryContext context;		/* of all this, a child of the query's */
	MemoryContextCallback callback;
	const EState *estate;		/* whose nodes they are for */
	StringInfoData made_by;		/* what they are made of (describe) */
	const GhEngine *engine;
	int			device;
	GhPipeline *pipeline;		/* NULL: it was not made, or is gone */
	bool		offered;		/* it has all groups */
	int			left;			/* nodes that were not through with them yet; 0: nobody else is to have them */
	List	   *supplies;		/* GhSupply that have the pipeline */
};

/* Of all queries of this process that run. */
static dlist_head all_groups = DLIST_STATIC_INIT(all_groups);

/* ------------------------------------------------------------------- the same groups */

/* Adds a relation, and what is made of its pages; false: no pipeline does that. */
static bool
add_pipeline(StringInfo text, const PlanState *scan, const GhPipelineOptions *options)
{
	Oid			relation = RelationGetRelid(((const ScanState *) scan)->ss_currentRelation);
	Size		size;
	const void *bytes = gh_device_options_bytes(*options, &size);

	if (bytes == NULL)
		return false;
	appendBinaryStringInfo(text, (const char *) &relation, sizeof(relation));
	appendBinaryStringInfo(text, (const char *) &size, sizeof(size));
	appendBinaryStringInfo(text, bytes, (int) size);
	return true;
}

/*
 * Describes what the groups are made of: pages of a table by a pipeline, and those that tables of joins are
 * made of by theirs, in the order of the joins.  False: of something else.
 */
static bool
describe(GhFragment *fragment, const GhPipelineOptions *options, StringInfo text)
{
	const GhDeviceRun *device = fragment->device;

	initStringInfo(text);
	if (fragment->joined != NULL && !gh_device_prepare_tables(fragment))
		return false;
	for (int i = 0; i < device->ntables; i++)
	{
		GhInnerSide *side = device->tables[i].side;
		GhPipelineOptions of_side;

		if (side->by_rows || !IsA(side->scan, SeqScanState))
			return false;
		gh_side_options(side, &of_side);
		if (!add_pipeline(text, side->scan, &of_side))
			return false;
	}
	return add_pipeline(text, fragment->scan, options);
}

static bool
is_made_by(const GhSharedGroups *groups, const StringInfoData *text)
{
	return groups->made_by.len == text->len && memcmp(groups->made_by.data, text->data, text->len) == 0;
}

/* Groups that are there; NULL: there are none like that. */
static GhSharedGroups *
find(const GhFragment *fragment, const StringInfoData *text)
{
	dlist_iter	iter;

	dlist_foreach(iter, &all_groups)
	{
		GhSharedGroups *groups = dlist_container(GhSharedGroups, node, iter.cur);

		if (groups->estate == fragment->css.ss.ps.state && groups->offered && groups->left > 0 &&
			groups->engine == fragment->device->engine && groups->device == fragment->device->number &&
			is_made_by(groups, text))
			return groups;
	}
	return NULL;
}

/* Whether the node may have its groups in common with others. */
bool
gh_shared_groups_apply(const GhFragment *fragment)
{
	return fragment->sharers > 1 && fragment->member == NULL && !fragment->ran && fragment->parts == NULL &&
		IsA(fragment->scan, SeqScanState) && (fragment->joined == NULL || !fragment->joined->fills_inner) &&
		fragment->counts.pages == 0 && fragment->counts.back == 0;
}

static bool
is_ready(const GhSharedGroups *groups)
{
	bool		ready = true;

	if (groups->engine->shares_tables)
		(void) gh_service_worker_of(groups->device, &ready);
	return ready;
}

/*
 * Of a node that may share, the device becomes that on which nodes of the query have their groups, if there
 * is one, and it is ready: which of several has most memory left may have changed since.
 */
void
gh_shared_groups_choose_device(const GhFragment *fragment, int *device)
{
	dlist_iter	iter;

	if (!gh_shared_groups_apply(fragment))
		return;
	dlist_foreach(iter, &all_groups)
	{
		const GhSharedGroups *groups = dlist_container(GhSharedGroups, node, iter.cur);

		if (groups->estate == fragment->css.ss.ps.state && groups->engine == fragment->device->engine && groups->offered &&
			is_ready(groups))
		{
			*device = groups->device;
			return;
		}
	}
}

/* -------------------------------------------------------------------------- their life */

/* The supply does not have the pipeline any more; its levels are gone before. */
void
gh_shared_groups_leave(GhSupply *supply)
{
	GhSharedGroups *groups = supply->lender;

	groups->supplies = list_delete_ptr(groups->supplies, supply);
	/* whatever has failed may be lost */
	if (supply->failed)
		groups->offered = false;
	supply->lender = NULL;
	supply->pipeline = NULL;
}

/* They go with their context, or the query's.  A level's source outlives it. */
static void
drop(void *arg)
{
	GhSharedGroups *groups = arg;

	while (groups->supplies != NIL)
	{
		GhSupply   *supply = linitial(groups->supplies);

		gh_supply_drop_levels(supply, 0);
		supply->failed = true;
		gh_shared_groups_leave(supply);
	}
	if (groups->pipeline != NULL)
		groups->engine->pipelines->destroy(groups->pipeline);
	groups->pipeline = NULL;
	dlist_delete(&groups->node);
}

static GhSharedGroups *
create(const GhFragment *fragment, const StringInfoData *text)
{
	MemoryContext context = AllocSetContextCreate(fragment->css.ss.ps.state->es_query_cxt, "GpuHash shared groups",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext saved = MemoryContextSwitchTo(context);
	GhSharedGroups *groups = palloc0(sizeof(GhSharedGroups));

	groups->context = context;
	groups->estate = fragment->css.ss.ps.state;
	groups->engine = fragment->device->engine;
	groups->device = fragment->device->number;
	groups->left = fragment->sharers;
	initStringInfo(&groups->made_by);
	appendBinaryStringInfo(&groups->made_by, text->data, text->len);
	groups->callback.func = drop;
	groups->callback.arg = groups;
	dlist_push_head(&all_groups, &groups->node);
	MemoryContextRegisterResetCallback(context, &groups->callback);
	MemoryContextSwitchTo(saved);
	return groups;
}

/* The supply's first pipeline is theirs. */
static void
lend(GhSharedGroups *groups, GhFragment *fragment, GhSupply *supply, const GhPipelineOptions *options)
{
	MemoryContext saved = MemoryContextSwitchTo(groups->context);

	gh_supply_begin_lent(supply, groups->engine, options, groups->pipeline, fragment->pages, fragment->device->context);
	supply->lender = groups;
	groups->supplies = lappend(groups->supplies, supply);
	MemoryContextSwitchTo(saved);
}

/* -------------------------------------------------------------------------- nodes */

/*
 * Of a node that may share: whether another one has made the groups that such a pipeline would make, so that
 * nothing is to be read.
 */
bool
gh_shared_groups_are_there(GhFragment *fragment, const GhPipelineOptions *options)
{
	StringInfoData text;

	return describe(fragment, options, &text) && find(fragment, &text) != NULL;
}

/*
 * In the place of gh_supply_begin, of a node that may have its groups in common with others: *there, if they
 * are made, and no page is to be supplied.  False: this node has them alone, and nothing was begun.
 */
bool
gh_shared_groups_begin(GhFragment *fragment, GhSupply *supply, const GhPipelineOptions *options, bool *there)
{
	GhSharedGroups *groups;
	StringInfoData text;
	GhError		error;

	*there = false;
	if (!gh_shared_groups_apply(fragment) || !describe(fragment, options, &text))
		return false;
	groups = find(fragment, &text);
	if (groups != NULL)
	{
		lend(groups, fragment, supply, options);
		supply->attached = *there = true;
		return true;
	}
	groups = create(fragment, &text);
	if (gh_supply_make_pipeline(groups->engine, options, fragment->pages, groups->context, &groups->pipeline, &error) ==
		GH_OK)
	{
		lend(groups, fragment, supply, options);
		return true;
	}
	/* the node finds out why by itself */
	groups->pipeline = NULL;
	MemoryContextDelete(groups->context);
	return false;
}

/*
 * All pages were supplied, and nothing is made of the groups yet: other nodes may have them, if they are
 * whole.
 */
void
gh_shared_groups_offer(GhFragment *fragment)
{
	const GhSupply *supply = &fragment->device->supply;

	if (supply->lender != NULL)
		supply->lender->offered = !supply->failed && fragment->device->read_before == 0 && fragment->counts.back == 0;
}

/*
 * The node is through with them.  Before its supply ends.  Others that are at it keep them; so may nodes that
 * are none of those they were counted for, whose parameters happen to be the same.
 */
void
gh_shared_groups_end(GhFragment *fragment)
{
	GhSupply   *supply = &fragment->device->supply;
	GhSharedGroups *groups = supply->lender;

	if (groups == NULL)
		return;
	gh_supply_drop_levels(supply, 0);
	gh_shared_groups_leave(supply);
	if (groups->left > 0)
		groups->left--;
	if (groups->supplies == NIL && (groups->left == 0 || !groups->offered))
		MemoryContextDelete(groups->context);
}
