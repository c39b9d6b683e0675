/*
 * pipeline_crew.c
 *		Participants that fill the tables of stages together, one at a time: hosts with the same memory at several
 *		addresses, the steps from rows to a table, and its handles.
 *
 * Who is at work is drawn.  The mappings of all others are closed meanwhile, so that an address of one that reached
 * another is a crash.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "pipeline_model.h"

#include <sys/mman.h>

#define ARENA_BYTES ((size_t) 64 << 20)
#define TRIES 4

bool
no_shared_sinks(Context *c)
{
	if (no_pipelines(c))
		return true;
	if (!c->engine->pipelines->shares_sinks)
		c->skip = "the engine has no sinks that participants share";
	return !c->engine->pipelines->shares_sinks;
}

/* -------------------------------------------------------------------- hosts */

static GhRef
crew_alloc(void *ctx, size_t bytes)
{
	Member	   *member = ctx;
	HostState  *state = &member->crew->state;

	/* others allocate, too */
	if (state->lock_depth != 1 || state->lock_mode != GH_LOCK_EXCLUSIVE)
		state->lock_misused = true;
	state->calls++;
	if (state->fail_at > 0 && state->calls == state->fail_at)
	{
		state->failed = true;
		return 0;
	}
	return member->memory.alloc(member->memory.ctx, bytes);
}

static void
crew_free(void *ctx, GhRef ref)
{
	Member	   *member = ctx;

	member->memory.free(member->memory.ctx, ref);
}

static void *
crew_address(void *ctx, GhRef ref)
{
	Member	   *member = ctx;

	return member->memory.address(member->memory.ctx, ref);
}

static void
crew_lock(void *ctx, GhLockMode mode)
{
	HostState  *state = &((Member *) ctx)->crew->state;

	if (state->lock_depth++ != 0)
		state->lock_misused = true;
	state->lock_mode = mode;
}

static void
crew_unlock(void *ctx)
{
	HostState  *state = &((Member *) ctx)->crew->state;

	if (--state->lock_depth != 0)
		state->lock_misused = true;
}

static void
protect(const Crew *crew, uint32_t member, int how)
{
	if (mprotect(crew->members[member].memory.address(crew->members[member].memory.ctx, 0), ARENA_BYTES, how) != 0)
	{
		printf("conformance: mprotect failed\n");
		exit(2);
	}
}

Crew *
crew_of(uint32_t count)
{
	Crew	   *crew = make_memory(sizeof(Crew));

	memset(crew, 0, sizeof(*crew));
	crew->arena = arena_make(ARENA_BYTES);
	if (crew->arena == NULL)
	{
		free(crew);
		return NULL;
	}
	for (uint32_t m = 0; m < count; m++)
	{
		Member	   *member = &crew->members[m];

		if (!arena_host(crew->arena, &member->memory))
		{
			crew_end(crew);
			return NULL;
		}
		member->crew = crew;
		member->host = (GhHost) {
			.ctx = member,
			.alloc = crew_alloc,
			.free = crew_free,
			.address = crew_address,
			.lock = crew_lock,
			.unlock = crew_unlock,
			.stop = &crew->state.stop,
		};
		if (crew->count++ > 0)
			protect(crew, m, PROT_NONE);
	}
	return crew;
}

void
crew_end(Crew *crew)
{
	if (crew == NULL)
		return;
	for (uint32_t m = 0; m < crew->count; m++)
		arena_host_unmap(&crew->members[m].memory);
	arena_drop(crew->arena);
	free(crew);
}

/* -------------------------------------------------------------- participants */

void
crew_turn(const Stage *stage, uint32_t participant)
{
	Crew	   *crew = stage->crew;
	uint32_t	member = stage->first_member + participant;

	if (crew == NULL || crew->at_work == member)
		return;
	protect(crew, crew->at_work, PROT_NONE);
	protect(crew, member, PROT_READ | PROT_WRITE);
	crew->at_work = member;
}

static const GhHost *
host_of(const Stage *stage, uint32_t participant)
{
	return &stage->crew->members[stage->first_member + participant].host;
}

void
crew_join(Context *c, Stage *stage)
{
	bool		marking = false;

	if (stage->crew == NULL)
		return;
	/* groups and marks belong to one process */
	stage->first_member = stage->source_groups != NULL ? stage->source_groups->first_member :
		(uint32_t) random_below(c, stage->crew->count);
	stage->nmembers = 1;
	for (uint32_t p = 0; p < stage->options.nprobes; p++)
		marking |= stage->marking[p];
	if (stage->options.sink.kind != GH_SINK_TABLE || stage->source_groups != NULL || marking)
		return;
	stage->first_member = 0;
	stage->nmembers = stage->crew->count;
}

static bool
again(const Stage *stage, GhStatus status, int tries)
{
	return stage->scarce && lacks_memory(status) && tries < TRIES;
}

static GhStatus
open_marks(Stage *stage, uint32_t probe, GhError *error)
{
	GhMarks   **marks = &stage->marks[probe];
	GhStatus	status = GH_NO_MEMORY;

	for (int i = 0; *marks == NULL && (i == 0 || again(stage, status, i)); i++)
		status = stage->engine->pipelines->marks_create(host_of(stage, 0), stage->probes[probe].table, marks, error);
	return *marks != NULL ? GH_OK : status;
}

static GhStatus
create_one(Stage *stage, uint32_t participant, GhError *error)
{
	uint32_t	member = stage->first_member + participant;
	GhStatus	status = GH_OK;

	crew_turn(stage, participant);
	if (stage->source_groups != NULL)
		stage->options.source.groups = stage->source_groups->pipeline;
	for (uint32_t p = 0; p < stage->options.nprobes && status == GH_OK; p++)
	{
		stage->probes[p].table = stage->probed[p]->tables[member];
		if (stage->marking[p])
			status = open_marks(stage, p, error);
		stage->probes[p].marks = stage->marks[p];
	}
	if (status != GH_OK)
		return status;
	for (int i = 0; i == 0 || again(stage, status, i); i++)
	{
		status = GH_OK;
		if (stage->options.sink.kind == GH_SINK_TABLE && stage->shared_sink == 0)
			status = stage->engine->pipelines->share_sink(host_of(stage, participant), &stage->options,
														  &stage->shared_sink, error);
		stage->options.shared_sink = stage->shared_sink;
		if (status == GH_OK)
			status = stage->engine->pipelines->create(host_of(stage, participant), &stage->options,
													  &stage->pipelines[participant], error);
	}
	return status;
}

GhStatus
crew_create(Stage *stage, GhError *error)
{
	GhStatus	status = GH_OK;

	for (uint32_t p = 0; p < stage->nmembers && status == GH_OK; p++)
		status = create_one(stage, p, error);
	stage->pipeline = stage->pipelines[0];
	return status;
}

void
crew_end_pipelines(Stage *stage)
{
	const GhPipelineEngine *pipelines = stage->engine != NULL ? stage->engine->pipelines : NULL;

	for (uint32_t m = stage->nmembers; pipelines != NULL && m-- > 0;)
	{
		crew_turn(stage, m);
		if (stage->pipelines[m] != NULL)
			pipelines->destroy(stage->pipelines[m]);
		stage->pipelines[m] = NULL;
		for (uint32_t p = 0; p < stage->options.nprobes; p++)
		{
			pipelines->marks_destroy(stage->marks[p]);
			stage->marks[p] = NULL;
		}
	}
	stage->pipeline = NULL;
}

/* --------------------------------------------------------------------- tables */

static GhStatus
finish_all(Stage *stage, GhError *error)
{
	GhStatus	status = GH_OK;

	for (uint32_t p = 0; p < stage->nmembers && status == GH_OK; p++)
	{
		crew_turn(stage, p);
		for (int i = 0; i == 0 || again(stage, status, i); i++)
			status = stage->engine->pipelines->finish(stage->pipelines[p], error);
	}
	return status;
}

/* Some of them, in any order; one of them may be stopped at once. */
static GhStatus
enter_all(Context *c, Stage *stage, bool *ready, GhError *error)
{
	uint32_t	first = (uint32_t) random_below(c, stage->nmembers);
	uint32_t	count = 1 + (uint32_t) random_below(c, stage->nmembers);
	GhStatus	status = GH_OK;

	for (uint32_t p = 0; p < count && status == GH_OK && !*ready; p++)
	{
		uint32_t	participant = (first + p) % stage->nmembers;

		crew_turn(stage, participant);
		stage->crew->state.stop = random_below(c, 4) == 0;
		for (int i = 0; i == 0 || again(stage, status, i); i++)
			status = stage->engine->pipelines->index_enter(host_of(stage, participant), stage->shared_sink, ready,
														   error);
		CHECK(c, status != GH_STOPPED || stage->crew->state.stop != 0, "it was stopped by nobody");
		if (status == GH_STOPPED)
			status = GH_OK;
		stage->crew->state.stop = 0;
	}
	return status;
}

static GhStatus
make_index(Context *c, Stage *stage, GhError *error)
{
	bool		ready = false;
	GhStatus	status = GH_OK;

	while (!ready && status == GH_OK)
	{
		uint32_t	one = (uint32_t) random_below(c, stage->nmembers);

		crew_turn(stage, one);
		status = stage->engine->pipelines->index_begin(host_of(stage, one), stage->shared_sink, error);
		if (status == GH_OK)
			status = enter_all(c, stage, &ready, error);
	}
	return status;
}

GhStatus
crew_make_table(Context *c, Stage *stage, GhMadeTable *made, GhError *error)
{
	GhStatus	status = finish_all(stage, error);

	if (status == GH_OK)
		status = make_index(c, stage, error);
	/* also those who did not fill it */
	for (uint32_t m = 0; m < stage->crew->count && status == GH_OK; m++)
	{
		Stage		other = {.crew = stage->crew,.first_member = m};

		crew_turn(&other, 0);
		for (int i = 0; i == 0 || again(stage, status, i); i++)
			status = stage->engine->pipelines->table_attach(host_of(&other, 0), stage->shared_sink, made, error);
		stage->made.tables[m] = made->table;
	}
	/* whoever reads it next is the first of them */
	made->table = stage->made.tables[0];
	crew_turn(stage, 0);
	return status;
}

void
crew_end_table(Context *c, Stage *stage)
{
	Stage		other = {.crew = stage->crew};
	uint32_t	left = 0;

	for (uint32_t m = 0; m < stage->crew->count; m++)
		left += stage->made.tables[m] != NULL;
	if (left == 0 && stage->shared_sink != 0)
	{
		other.first_member = (uint32_t) random_below(c, stage->crew->count);
		crew_turn(&other, 0);
		stage->engine->pipelines->unshare_sink(host_of(&other, 0), stage->shared_sink);
	}
	for (uint32_t m = 0; m < stage->crew->count; m++)
	{
		if (stage->made.tables[m] == NULL)
			continue;
		other.first_member = m;
		crew_turn(&other, 0);
		if (--left > 0)
			stage->engine->table_detach(stage->made.tables[m]);
		else
			stage->engine->table_destroy(stage->made.tables[m]);
		stage->made.tables[m] = NULL;
	}
	stage->made.table = NULL;
	stage->shared_sink = 0;
}
