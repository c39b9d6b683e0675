/*
 * test_pipeline_random.c
 *		Random chains of pipelines against the model: each probes or reads what those before it made;
 *		with memory enough, with limits, and with each allocation failing once.
 *
 * Every chain has a seed of its own: with --seed it is the first one that is drawn.  --random N: N chains.
 */
#include "pipeline_model.h"

static void
chain_drop(Context *c, Chain *chain)
{
	for (uint32_t i = STAGES_MAX; i-- > 0;)
		stage_drop(c, chain->stages[i]);
}

/* How the memory of a chain is kept short. */
typedef struct Shortage
{
	uint64_t	fail_at;		/* the allocation that fails, or the budget's refusal; 0: none */
	bool		limits;			/* sinks have limits */
	uint32_t	participants;	/* that fill tables together; 0: there are none */
} Shortage;

/* What all chains of a test have seen, so that it is known to be one. */
typedef struct Seen
{
	uint64_t	chains;
	uint64_t	whole;			/* whose last stage was done */
	uint64_t	backs;			/* rows handed back */
	uint64_t	rows;			/* in sinks */
	uint64_t	lost;			/* that these took not */
	uint64_t	unmatched;		/* probes of which the rows without a match were asked for */
} Seen;

/* After a failure requests may still be in flight, whose memory was left alone. */
static void
chain_end(Context *c, Chain *chain, Crew *crew)
{
	for (uint32_t i = STAGES_MAX; i-- > 0;)
		if (chain->stages[i] != NULL)
			stage_end(chain->stages[i]);
	for (uint32_t i = STAGES_MAX; i-- > 0;)
		if (chain->stages[i] != NULL && crew != NULL)
			crew_end_table(c, chain->stages[i]);
		else if (chain->stages[i] != NULL)
			stage_end_table(chain->stages[i]);
	if (crew == NULL)
		return;
	CHECK_U64(c, "blocks left in the memory that participants share", arena_blocks(crew->arena), 0);
	CHECK(c, !crew->state.lock_misused, "locks were misused");
}

/*
 * Stages are drawn as those before them are done, for they need the numbers of rows.  True: an allocation was
 * refused.
 */
static bool
chain_run(Context *c, uint64_t seed, Shortage shortage, Seen *seen)
{
	Chain		chain = {{NULL}, 0};
	Chain		before = {{NULL}, 0};
	HostState	state;
	GhHost		host;
	Crew	   *crew = shortage.participants > 0 ? crew_of(shortage.participants) : NULL;
	bool		good = CHECK(c, crew != NULL || shortage.participants == 0, "no memory that is shared");
	bool		refused;

	c->random = mix(seed);
	chain.count = 1 + (uint32_t) random_below(c, STAGES_MAX);
	host_init(&state, &host);
	state.fail_at = state.refuse_at = shortage.fail_at;
	if (crew != NULL)
		crew->state.fail_at = shortage.fail_at;
	for (uint32_t i = 0; i < chain.count && good; i++)
	{
		/* each stage is drawn from the seed alone, however the one before fared */
		Stage	   *stage;

		c->random = mix(seed + (uint64_t) i * 1000003);
		stage = stage_draw(c, &before, i + 1 == chain.count);
		chain.stages[i] = stage;
		stage->crew = crew;
		crew_join(c, stage);
		stage->scarce = shortage.fail_at > 0;
		if (shortage.limits && random_below(c, 2) == 0)
		{
			stage->scarce = true;
			stage->options.memory_limit = 1000 + random_below(c, 100) * random_below(c, 5000);
		}
		good = stage_run(c, stage, &host) && c->failures == 0;
		seen->backs += stage->backs;
		seen->rows += stage->sink.count;
		seen->lost += stage->lost;
		for (uint32_t p = 0; p < stage->options.nprobes; p++)
			seen->unmatched += good && stage->marking[p] && !stage->marks_lost[p];
		if (stage->options.sink.kind != GH_SINK_GROUPS)
			stage_end(stage);
		before.stages[before.count++] = stage;
	}
	seen->chains++;
	seen->whole += good;
	chain_end(c, &chain, crew);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	CHECK_U64(c, "blocks left", state.blocks, 0);
	CHECK(c, !state.overdrawn && !state.damaged, "the host's memory was misused");
	chain_drop(c, &chain);
	refused = state.failed || state.refused || (crew != NULL && crew->state.failed);
	crew_end(crew);
	return refused;
}

#define CHAINS_MAX 200000

/* The option's number of chains, or a small one. */
static uint64_t
chains_of(const Context *c, uint64_t full, uint64_t reduced)
{
	uint64_t	usual = sized(c, 10000000, 20000);

	/* millions are meant for the random operations of tables */
	return c->operations != usual && c->operations <= CHAINS_MAX ? c->operations : sized(c, full, reduced);
}

static void
tell_seed(const Context *c, uint64_t seed)
{
	if (c->failures > 0)
		printf("  a chain of pipelines failed: repeat with --seed %" PRIu64 " --random 1\n", seed);
}

static void
tell_seen(Context *c, const Seen *seen, uint64_t enough)
{
	CHECK(c, c->failures > 0 || seen->chains < enough || (seen->whole > 0 && seen->backs > 0 &&
														  seen->rows > 0),
		  "of %" PRIu64 " chains %" PRIu64 " were done, %" PRIu64 " rows handed back", seen->chains,
		  seen->whole,
		  seen->backs);
}

/* How many fill the tables of chain i. */
static uint32_t
participants_of(uint64_t i, bool shared)
{
	return shared ? 1 + (uint32_t) (i % CREW_MAX) : 0;
}

static void
run_chains(Context *c, bool limits, bool shared)
{
	uint64_t	count = limits ? chains_of(c, 150, 20) : chains_of(c, 300, 40);
	Seen		seen = {0};

	for (uint64_t i = 0; i < count && c->failures == 0; i++)
	{
		(void) chain_run(c, c->seed + i,
						 (Shortage) {.limits = limits,.participants = participants_of(c->seed + i, shared)}, &seen);
		tell_seed(c, c->seed + i);
	}
	tell_seen(c, &seen, 50);
	CHECK(c, limits || c->failures > 0 || seen.chains < 50 || seen.unmatched > 0,
		  "no rows without a match were asked for");
}

static void
random_chains(Context *c)
{
	if (!no_pipelines(c))
		run_chains(c, false, false);
}

static void
shared_chains(Context *c)
{
	if (!no_shared_sinks(c))
		run_chains(c, false, true);
}

static void
limited_chains(Context *c)
{
	if (!no_pipelines(c))
		run_chains(c, true, false);
}

static void
shared_limited_chains(Context *c)
{
	if (!no_shared_sinks(c))
		run_chains(c, true, true);
}

static void
run_failing(Context *c, bool shared)
{
	uint64_t	count = chains_of(c, 10, 2);
	Seen		seen = {0};

	for (uint64_t i = 0; i < count && c->failures == 0; i++)
	{
		uint64_t	at = 1;

		while (chain_run(c, c->seed + i, (Shortage) {at, false, participants_of(c->seed + i, shared)}, &seen) &&
			   c->failures == 0)
			at++;
		if (c->failures > 0)
			printf("  allocation %" PRIu64 " failed\n", at);
		tell_seed(c, c->seed + i);
	}
	tell_seen(c, &seen, 50);
}

static void
failing_chains(Context *c)
{
	if (!no_pipelines(c))
		run_failing(c, false);
}

static void
shared_failing_chains(Context *c)
{
	if (!no_shared_sinks(c))
		run_failing(c, true);
}

const Test	pipeline_random_tests[] = {
	{"pipelines: random chains", random_chains, false},
	{"pipelines: random chains with limits of memory", limited_chains, false},
	{"pipelines: random chains in which each allocation fails", failing_chains, false},
	{"pipelines: random chains, tables of several participants", shared_chains, false},
	{"pipelines: random chains, tables of several participants, with limits", shared_limited_chains, false},
	{"pipelines: random chains, tables of several participants, each allocation fails", shared_failing_chains, false},
	{NULL, NULL, false}
};
