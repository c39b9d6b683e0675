/*
 * test_pipeline_shared.c
 *		Tables that several processes fill, index, probe and read together, each with the memory at an address of
 *		its own.
 *
 * Row n has a key that is drawn from n modulo a number of keys, and keeps n, and a text that says n.  Participant w
 * of p brings, looks for and reads those of w modulo p.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* pthread_barrier_t, MAP_ANONYMOUS */
#endif

#include "pipeline_model.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PARTICIPANTS 4
#define ARENA_BYTES ((size_t) 1 << 30)
#define BATCH 1000				/* rows of a request */
#define TEXT_MAX 32
#define SECONDS_MOST 300

typedef struct TableKind
{
	const char *what;
	bool		numbered;
	bool		texts;
	GhTableMatches matches;
	uint32_t	copies;			/* rows of a key */
} TableKind;

static const TableKind kinds[] = {
	{"numbered rows, several of a key", true, true, GH_MATCHES_ALL, 3},
	{"carried values", false, false, GH_MATCHES_ALL, 1},
	{"values that are not carried, for keys come twice", false, false, GH_MATCHES_ALL, 2},
	{"any row of a key", false, false, GH_MATCHES_ANY, 2},
	{"texts", false, true, GH_MATCHES_ALL, 1}
};

/* What participants found, each. */
typedef struct Found
{
	uint64_t	matches;
	uint64_t	sum;			/* of the numbers of matches */
	uint64_t	rows;			/* read, by ranges */
	uint64_t	rows_sum;
	uint64_t	unmatched;		/* by its own marks */
} Found;

/* In memory that all processes have. */
typedef struct Party
{
	pthread_rwlock_t lock;
	pthread_barrier_t barrier;
	const TableKind *kind;
	uint64_t	rows;
	uint64_t	keys;
	uint64_t	seed;
	GhRef		sink;
	uint32_t	left;			/* handles on the table */
	Found		found[PARTICIPANTS];
} Party;

/* A participant. */
typedef struct Self
{
	Context    *c;
	Party	   *party;
	uint32_t	number;
	GhHost		memory;
	GhHost		host;
	volatile sig_atomic_t stop;
	GhMadeTable made;
	ModelTable	model;
} Self;

/* ---------------------------------------------------------------------- host */

static GhRef
self_alloc(void *ctx, size_t bytes)
{
	Self	   *self = ctx;

	return self->memory.alloc(self->memory.ctx, bytes);
}

static void
self_free(void *ctx, GhRef ref)
{
	Self	   *self = ctx;

	self->memory.free(self->memory.ctx, ref);
}

static void *
self_address(void *ctx, GhRef ref)
{
	Self	   *self = ctx;

	return self->memory.address(self->memory.ctx, ref);
}

static void
self_lock(void *ctx, GhLockMode mode)
{
	Self	   *self = ctx;

	if (mode == GH_LOCK_SHARED)
		pthread_rwlock_rdlock(&self->party->lock);
	else
		pthread_rwlock_wrlock(&self->party->lock);
}

static void
self_unlock(void *ctx)
{
	pthread_rwlock_unlock(&((Self *) ctx)->party->lock);
}

/* At another address than in any other process: these are copies of one. */
static bool
self_open(Self *self, Context *c, Party *party, Arena *arena, uint32_t number)
{
	memset(self, 0, sizeof(*self));
	self->c = c;
	self->party = party;
	self->number = number;
	(void) mmap(NULL, (number + 1) * 4096 * 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!arena_host(arena, &self->memory))
		return false;
	self->host = (GhHost) {
		.ctx = self,
		.alloc = self_alloc,
		.free = self_free,
		.address = self_address,
		.lock = self_lock,
		.unlock = self_unlock,
		.stop = &self->stop,
	};
	return true;
}

/* ------------------------------------------------------------------ pipelines */

static uint64_t
key_of(const Party *party, uint64_t number)
{
	return mix(party->seed + number % party->keys);
}

/* Its bytes; NULL: UINT32_MAX. */
static uint32_t
text_of(uint64_t number, char *to)
{
	if (number % 5 == 0)
		return UINT32_MAX;
	return number % 7 == 0 ? 0 : (uint32_t) snprintf(to, TEXT_MAX, "row %" PRIu64, number);
}

static Stage *
make_filler(Context *c, const TableKind *kind)
{
	Stage	   *stage = stage_make();

	stage->options.source.natts = 3;
	(void) stage_column(stage, GH_CLASS_INT, 1);
	(void) stage_column(stage, GH_CLASS_INT, 2);
	(void) stage_column(stage, GH_CLASS_TEXT, 3);
	stage->options.sink.kind = GH_SINK_TABLE;
	stage->options.sink.table.numbered = kind->numbered;
	stage->options.sink.table.matches = kind->matches;
	stage->options.sink.table.seed = random_next(c);
	stage_part(stage, 0, 64);
	stage_keep(stage, 1, GH_CLASS_INT, 8);
	if (kind->texts)
		stage_keep(stage, 2, GH_CLASS_TEXT, 0);
	stage_finish(c, stage);
	return stage;
}

/* Counts matches, and sums their numbers. */
static Stage *
make_prober(Context *c, ModelTable *model)
{
	Stage	   *stage = stage_make();
	uint32_t	probe;

	stage->options.source.natts = 1;
	(void) stage_column(stage, GH_CLASS_INT, 1);
	probe = stage_probe(stage, model, GH_PROBE_INNER, true);
	stage_probe_part(stage, probe, 0, 64);
	stage_probe_step(stage, probe);
	stage->options.sink.kind = GH_SINK_GROUPS;
	stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	stage_aggregate(stage, GH_AGGREGATE_SUM, 1, GH_CLASS_INT);
	stage_finish(c, stage);
	return stage;
}

/* All values of rows, as records. */
static Stage *
make_reader(Context *c, ModelTable *model)
{
	Stage	   *stage = stage_make();

	stage_of_table(stage, model);
	for (uint32_t k = 0; k < model->nkept; k++)
		stage_key(stage, k, model->kept[k].value_class);
	stage->options.sink.kind = GH_SINK_ROWS;
	stage_finish(c, stage);
	return stage;
}

static bool
do_pipeline(Context *c, GhPipeline *pipeline, GhPipelineRequest *request)
{
	GhBackRow  *back = make_memory((request->count + 1) * sizeof(GhBackRow));
	GhStatus	status;

	request->back = back;
	request->back_room = request->count;
	status = pipeline->engine->submit(pipeline, request);
	if (status == GH_BUSY)
		status = pipeline->engine->wait(request);
	CHECK(c, status == GH_OK, "a request: %s", request->error.message);
	CHECK_U64(c, "rows that went back", request->nback, 0);
	free(back);
	return c->failures == 0;
}

/* Rows by their numbers: keys, and where `whole` what the table is to keep. */
static bool
bring(Context *c, const Party *party, GhPipeline *pipeline, const uint64_t *numbers, uint64_t count, bool whole)
{
	static uint64_t words[4][BATCH];
	static uint8_t nulls[2][BATCH];
	static char texts[BATCH][TEXT_MAX];
	static const uint16_t given[3] = {0, 1, 2};
	GhVector	vectors[3] = {{words[0], NULL, nulls[0]}, {words[1], NULL, nulls[0]}, {words[2], words[3], nulls[1]}};
	GhPipelineRequest request = {.kind = GH_INPUT_COLUMNS,.given = given,.vectors = vectors,.count = count};

	request.ngiven = whole ? 3 : 1;
	for (uint64_t i = 0; i < count; i++)
	{
		uint32_t	length = text_of(numbers[i], texts[i]);

		words[0][i] = key_of(party, numbers[i]);
		words[1][i] = numbers[i];
		words[2][i] = (uintptr_t) texts[i];
		words[3][i] = length;
		nulls[1][i] = length == UINT32_MAX;
	}
	return do_pipeline(c, pipeline, &request);
}

/* Numbers from `first` on in steps, below the end. */
static bool
bring_all(Context *c, const Party *party, GhPipeline *pipeline, uint64_t first, uint64_t step, uint64_t end,
		  bool whole)
{
	uint64_t	numbers[BATCH];
	uint64_t	n = 0;
	bool		good = true;

	for (uint64_t number = first; number < end && good; number += step)
	{
		numbers[n++] = number;
		if (n < BATCH && number + step < end)
			continue;
		good = bring(c, party, pipeline, numbers, n, whole);
		n = 0;
	}
	return good;
}

static void
read_group(Context *c, GhPipeline *pipeline, uint64_t *count, uint64_t *sum)
{
	uint64_t	buffer[64];
	GhCursor	cursor = {0};
	GhError		error = {0};
	size_t		bytes = 0;
	const GhAggregateState *states = (const GhAggregateState *) gh_record_keys((const GhRecordHead *) buffer);

	CHECK_STATUS(c, "results", pipeline->engine->results(pipeline, &cursor, sizeof(buffer), buffer, &bytes, &error),
				 GH_OK);
	*count += states[0].count;
	*sum += states[1].low;
}

/* ----------------------------------------------------------- what each one does */

static void
fill(Self *self)
{
	Context    *c = self->c;
	Party	   *party = self->party;
	Stage	   *filler = make_filler(c, party->kind);
	GhPipeline *pipeline = NULL;
	GhError		error = {0};

	if (self->number == 0)
		CHECK(c, c->engine->pipelines->share_sink(&self->host, &filler->options, &party->sink, &error) == GH_OK,
			  "share_sink: %s", error.message);
	(void) pthread_barrier_wait(&party->barrier);
	filler->options.shared_sink = party->sink;
	if (!CHECK(c, c->engine->pipelines->create(&self->host, &filler->options, &pipeline, &error) == GH_OK,
			   "create: %s", error.message))
		exit(1);
	/* some bring much, and one nothing */
	if (self->number > 0)
		(void) bring_all(c, party, pipeline, self->number - 1, PARTICIPANTS - 1, party->rows, true);
	CHECK(c, pipeline->engine->finish(pipeline, &error) == GH_OK, "finish: %s", error.message);
	pipeline->engine->destroy(pipeline);
	self->model.nkept = filler->options.sink.table.nkept;
	memcpy(self->model.kept, filler->kept, sizeof(filler->kept));
	stage_drop(c, filler);
}

static void
make_table(Self *self)
{
	Context    *c = self->c;
	Party	   *party = self->party;
	const GhPipelineEngine *pipelines = c->engine->pipelines;
	GhError		error = {0};
	bool		ready = false;
	GhStatus	status = GH_OK;

	self->stop = self->number % 2 == 1;
	while (!ready && status == GH_OK)
	{
		if (pthread_barrier_wait(&party->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			CHECK(c, pipelines->index_begin(&self->host, party->sink, &error) == GH_OK, "index_begin: %s",
				  error.message);
		(void) pthread_barrier_wait(&party->barrier);
		status = pipelines->index_enter(&self->host, party->sink, &ready, &error);
		if (status == GH_STOPPED)
			status = GH_OK;
		self->stop = 0;
	}
	CHECK(c, status == GH_OK, "index_enter: %s", error.message);
	if (!CHECK(c, pipelines->table_attach(&self->host, party->sink, &self->made, &error) == GH_OK,
			   "table_attach: %s", error.message))
		exit(1);
	CHECK_U64(c, "rows of a table", self->made.rows, party->rows);
	CHECK(c, self->made.several == (party->kind->copies > 1 && party->kind->matches == GH_MATCHES_ALL),
		  "several: %d", self->made.several);
}

/* Every key that is this one's, without marks. */
static void
probe(Self *self, Found *found)
{
	Context    *c = self->c;
	Party	   *party = self->party;
	Stage	   *prober = make_prober(c, &self->model);
	GhPipeline *pipeline = NULL;
	GhError		error = {0};

	prober->probes[0].table = self->made.table;
	if (CHECK(c, c->engine->pipelines->create(&self->host, &prober->options, &pipeline, &error) == GH_OK,
			  "create: %s", error.message) &&
		bring_all(c, party, pipeline, self->number, PARTICIPANTS, party->keys, false))
		read_group(c, pipeline, &found->matches, &found->sum);
	c->engine->pipelines->destroy(pipeline);
	stage_drop(c, prober);
}

/* Of keys of even numbers the rows are marked, by each of its own ones; then it counts rows without a mark. */
static void
mark(Self *self, Found *found)
{
	Context    *c = self->c;
	Party	   *party = self->party;
	const GhPipelineEngine *pipelines = c->engine->pipelines;
	Stage	   *prober = make_prober(c, &self->model);
	GhPipeline *pipeline = NULL;
	GhMarks    *marks = NULL;
	GhError		error = {0};
	uint64_t	count = 0;
	uint64_t	sum = 0;

	CHECK_STATUS(c, "marks", pipelines->marks_create(&self->host, self->made.table, &marks, &error), GH_OK);
	prober->probes[0].table = self->made.table;
	prober->probes[0].marks = marks;
	CHECK_STATUS(c, "create", pipelines->create(&self->host, &prober->options, &pipeline, &error), GH_OK);
	(void) bring_all(c, party, pipeline, 2 * self->number, 2 * PARTICIPANTS, party->keys, false);
	CHECK_STATUS(c, "clear", pipelines->clear(pipeline, &error), GH_OK);
	(void) do_pipeline(c, pipeline, &(GhPipelineRequest) {.kind = GH_INPUT_UNMATCHED,.count = party->rows});
	read_group(c, pipeline, &count, &sum);
	found->unmatched = count;
	pipelines->destroy(pipeline);
	pipelines->marks_destroy(marks);
	stage_drop(c, prober);
}

/* What a record says, and the text that its number has. */
static void
read_record(Context *c, const GhRecordHead *record, bool texts, Found *found)
{
	static const GhRecordKey key = {0, GH_CLASS_TEXT, 0};
	uint64_t	number = gh_record_keys(record)[0].low;
	char		expected[TEXT_MAX];
	uint32_t	length = text_of(number, expected);
	GhValue		text;

	found->rows++;
	found->rows_sum += number;
	if (!texts)
		return;
	text = gh_record_group_value(&key, record, 1, (const char *) record);
	CHECK(c, text.null == (length == UINT32_MAX) && (text.null || (text.high == length &&
																   memcmp((const char *) (uintptr_t) text.low,
																		  expected, length) == 0)),
		  "row %" PRIu64 " has another text", number);
}

static void
read_rows(Self *self, Found *found)
{
	Context    *c = self->c;
	Party	   *party = self->party;
	Stage	   *reader = make_reader(c, &self->model);
	GhPipeline *pipeline = NULL;
	GhMarks    *marks = NULL;
	GhError		error = {0};
	uint64_t	end = party->rows * (self->number + 1) / PARTICIPANTS;
	static uint64_t buffer[1 << 16];
	GhCursor	cursor = {0};

	CHECK_STATUS(c, "marks", c->engine->pipelines->marks_create(&self->host, self->made.table, &marks, &error), GH_OK);
	reader->probes[0].table = self->made.table;
	reader->probes[0].marks = marks;
	CHECK_STATUS(c, "create", c->engine->pipelines->create(&self->host, &reader->options, &pipeline, &error), GH_OK);
	for (uint64_t at = party->rows * self->number / PARTICIPANTS; at < end; at += BATCH)
		(void) do_pipeline(c, pipeline, &(GhPipelineRequest) {.kind = GH_INPUT_UNMATCHED,.first = at,
						   .count = end - at < BATCH ? end - at : BATCH});
	while (!cursor.finished && c->failures == 0)
	{
		size_t		bytes = 0;

		CHECK_STATUS(c, "results", pipeline->engine->results(pipeline, &cursor, sizeof(buffer), buffer, &bytes,
															 &error), GH_OK);
		for (size_t at = 0; at < bytes; at += ((const GhRecordHead *) ((char *) buffer + at))->bytes)
			read_record(c, (const GhRecordHead *) ((char *) buffer + at), self->model.nkept > 1, found);
	}
	c->engine->pipelines->destroy(pipeline);
	c->engine->pipelines->marks_destroy(marks);
	stage_drop(c, reader);
}

/* A process. */
static void
take_part(Context *c, Party *party, Arena *arena, uint32_t number)
{
	Self		self;
	Found	   *found = &party->found[number];

	/* if others are gone */
	(void) alarm(SECONDS_MOST);
	if (!self_open(&self, c, party, arena, number))
		exit(1);
	fill(&self);
	make_table(&self);
	probe(&self, found);
	if (party->kind->numbered)
	{
		mark(&self, found);
		read_rows(&self, found);
	}
	(void) pthread_barrier_wait(&party->barrier);
	if (number > 0)
		c->engine->table_detach(self.made.table);
	(void) pthread_barrier_wait(&party->barrier);
	if (number == 0)
		c->engine->table_destroy(self.made.table);
	fflush(stdout);
	_exit(c->failures == 0 ? 0 : 1);
}

/* ----------------------------------------------------------------- what came of it */

static void
check_found(Context *c, const Party *party)
{
	const TableKind *kind = party->kind;
	bool		all = kind->matches == GH_MATCHES_ALL;
	uint64_t	sum = party->rows * (party->rows - 1) / 2;
	uint64_t	even = 0;		/* rows whose key's number is even */
	Found		found = {0};

	for (uint32_t w = 0; w < PARTICIPANTS; w++)
	{
		found.matches += party->found[w].matches;
		found.sum += party->found[w].sum;
		found.rows += party->found[w].rows;
		found.rows_sum += party->found[w].rows_sum;
		found.unmatched += party->found[w].unmatched;
	}
	for (uint64_t n = 0; n < party->rows; n++)
		even += n % party->keys % 2 == 0;
	CHECK_U64(c, "matches", found.matches, all ? party->rows : party->keys);
	if (all)
		CHECK_U64(c, "the sum of matches", found.sum, sum);
	else
		CHECK_U64(c, "the sum of matches, whichever", found.sum % party->keys,
				  party->keys * (party->keys - 1) / 2 % party->keys);
	if (!kind->numbered)
		return;
	CHECK_U64(c, "rows read", found.rows, party->rows);
	CHECK_U64(c, "the sum of rows read", found.rows_sum, sum);
	CHECK_U64(c, "rows without a mark", found.unmatched, PARTICIPANTS * party->rows - even);
}

static Party *
make_party(Context *c, const TableKind *kind)
{
	Party	   *party = mmap(NULL, sizeof(Party), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_rwlockattr_t lock;
	pthread_barrierattr_t barrier;

	if (party == MAP_FAILED)
		exit(2);
	pthread_rwlockattr_init(&lock);
	pthread_rwlockattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
	pthread_rwlock_init(&party->lock, &lock);
	pthread_barrierattr_init(&barrier);
	pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&party->barrier, &barrier, PARTICIPANTS);
	party->kind = kind;
	party->rows = sized(c, 600000, 90000) + random_below(c, 10000);
	party->keys = party->rows / kind->copies;
	party->rows = party->keys * kind->copies;
	party->seed = random_next(c);
	return party;
}

static void
run_kind(Context *c, const TableKind *kind)
{
	Arena	   *arena = arena_make(ARENA_BYTES);
	Party	   *party = make_party(c, kind);
	pid_t		processes[PARTICIPANTS];
	bool		good = true;

	if (!CHECK(c, arena != NULL, "no arena"))
		return;
	fflush(stdout);
	for (uint32_t w = 0; w < PARTICIPANTS; w++)
	{
		processes[w] = fork();
		if (processes[w] == 0)
			take_part(c, party, arena, w);
	}
	for (uint32_t w = 0; w < PARTICIPANTS; w++)
	{
		int			status = 1;

		good &= waitpid(processes[w], &status, 0) == processes[w] && status == 0;
	}
	if (CHECK(c, good, "%s: a participant failed", kind->what))
		check_found(c, party);
	CHECK_U64(c, "blocks left in the arena", arena_blocks(arena), 0);
	arena_drop(arena);
	munmap(party, sizeof(Party));
}

static void
test_processes(Context *c)
{
	if (no_shared_sinks(c))
		return;
	for (uint32_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]) && c->failures == 0; k++)
		run_kind(c, &kinds[k]);
}

const Test	pipeline_shared_tests[] = {
	{"pipelines: processes fill a table, and probe and read it", test_processes, true},
	{NULL, NULL, false}
};
