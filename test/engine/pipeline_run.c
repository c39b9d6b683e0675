/*
 * pipeline_run.c
 *		Has an engine do the stages of tests of pipelines, and checks every row of every request.
 *
 * Rows that are handed back enter again before a later step, or at first, sometimes, an earlier one, as
 * columns with the values that the model has.  They pass by no probe that marks matches, but for one at
 * which they came back: of its marks nothing is asked any more.
 */
#include "engine/page/packed.h"
#include "pipeline_model.h"

#define IN_FLIGHT 4
#define TRIES 4

/* A request, and the rows that it brings. */
typedef struct Flight
{
	GhPipelineRequest request;
	uint32_t	participant;	/* whose it is, of a crew */
	uint32_t	step;			/* before which they enter */
	RowList		rows;
	GhBackRow  *places;
	uint8_t    *untold;			/* or NULL */
	uint16_t	given[GH_PROGRAM_VECTORS_MAX];
	GhVector	vectors[GH_PROGRAM_VECTORS_MAX];
	GhPackedColumn *packed[GH_PROGRAM_VECTORS_MAX];
} Flight;

/* Rows that are to enter, by the step before which they do. */
typedef struct Pending
{
	RowList		rows[GH_STEPS_MAX + 1];
	bool		first;			/* nothing has entered again so far */
} Pending;

/* --------------------------------------------------------------- an engine */

GhStatus
stage_create(Stage *stage, const GhHost *host, GhError *error)
{
	const GhPipelineEngine *pipelines = stage->engine->pipelines;
	GhStatus	status = GH_NO_MEMORY;

	if (stage->crew != NULL)
		return crew_create(stage, error);
	stage->host = *host;
	if (stage->source_groups != NULL)
		stage->options.source.groups = stage->source_groups->pipeline;
	for (uint32_t p = 0; p < stage->options.nprobes; p++)
	{
		stage->probes[p].table = stage->probed[p]->table;
		status = GH_OK;
		for (int i = 0; stage->marking[p] && stage->marks[p] == NULL && i < TRIES; i++)
			status = pipelines->marks_create(host, stage->probed[p]->table, &stage->marks[p], error);
		if (status != GH_OK)
			return status;
		stage->probes[p].marks = stage->marks[p];
	}
	status = pipelines->create(host, &stage->options, &stage->pipeline, error);
	for (int i = 1; i < TRIES && stage->scarce && lacks_memory(status); i++)
		status = pipelines->create(host, &stage->options, &stage->pipeline, error);
	if (status != GH_OK)
		stage->pipeline = NULL;
	return status;
}

static GhStatus
wait_for(Stage *stage, GhPipeline *pipeline, GhPipelineRequest *request)
{
	const GhPipelineEngine *pipelines = stage->engine->pipelines;
	GhStatus	status = pipelines->wait(request);

	for (int i = 1; i < TRIES && stage->scarce && lacks_memory(status); i++)
	{
		status = pipelines->submit(pipeline, request);
		status = status == GH_OK || status == GH_BUSY ? pipelines->wait(request) : status;
	}
	return status;
}

GhStatus
stage_request(Stage *stage, GhPipelineRequest *request)
{
	GhStatus	status;

	crew_turn(stage, 0);
	status = stage->engine->pipelines->submit(stage->pipeline, request);
	return status == GH_OK || status == GH_BUSY ? wait_for(stage, stage->pipeline, request) : status;
}

void
stage_end(Stage *stage)
{
	if (stage->crew != NULL)
	{
		crew_end_pipelines(stage);
		return;
	}
	if (stage->pipeline != NULL)
		stage->engine->pipelines->destroy(stage->pipeline);
	stage->pipeline = NULL;
	for (uint32_t p = 0; p < stage->options.nprobes; p++)
	{
		if (stage->marks[p] != NULL)
			stage->engine->pipelines->marks_destroy(stage->marks[p]);
		stage->marks[p] = NULL;
	}
	spans_drop(stage);
}

void
stage_end_table(Stage *stage)
{
	if (stage->made.table != NULL)
		stage->engine->table_destroy(stage->made.table);
	stage->made.table = NULL;
}

/* ----------------------------------------------------------- rows that enter */

/* Does anything from the step on read the vector, before it is set there? */
static bool
is_read(const Stage *stage, uint32_t step, uint32_t vector)
{
	const GhPipelineOptions *options = &stage->options;
	uint32_t	first = step == 0 ? 0 : stage->steps[step - 1].end;
	bool		read = false;
	uint32_t	nsets = options->sink.kind == GH_SINK_GROUPS ? gh_sink_sets(&options->sink.groups) : 1;

	for (uint32_t i = first; i < stage->program->ninstructions; i++)
		for (int a = 0; a < 3; a++)
			read |= gh_program_instructions(stage->program)[i].args[a] == vector;
	for (uint32_t p = 0; p < options->nprobes; p++)
		for (uint32_t k = 0; k < stage->probes[p].nparts; k++)
			read |= stage->probe_parts[p][k].vector == vector;
	for (uint32_t k = 0; options->sink.kind != GH_SINK_TABLE && k < nsets * options->sink.groups.nkeys; k++)
		read |= stage->keys[k].vector == vector;
	for (uint32_t a = 0; options->sink.kind == GH_SINK_GROUPS && a < nsets * options->sink.groups.naggregates; a++)
		read |= stage->aggregates[a].argument == vector || stage->aggregates[a].filter == vector;
	for (uint32_t k = 0; options->sink.kind == GH_SINK_TABLE && k < options->sink.table.nparts; k++)
		read |= stage->table_parts[k].vector == vector;
	for (uint32_t k = 0; options->sink.kind == GH_SINK_TABLE && k < options->sink.table.nkept; k++)
		read |= stage->kept[k].vector == vector;
	return read || (options->sink.kind == GH_SINK_TABLE && options->sink.table.back_vector == vector + 1);
}

static bool
is_constant(const Stage *stage, uint32_t vector)
{
	return vector >= stage->program->ncolumns &&
		vector < stage->program->ncolumns + stage->program->nconstants;
}

/* Are these values of the column, and of its length?  A step that set its vector anew may have left others. */
static bool
are_of_column(const GhColumn *column, const GhVector *vector, uint64_t nrows)
{
	for (uint64_t i = 0; i < nrows; i++)
		if (column->load == GH_LOAD_FIXED && !vector->null[i] && vector->high[i] != column->length)
			return false;
	return true;
}

/* Instead of vectors, the same packed, where they are columns of the program. */
static void
pack_columns(const Stage *stage, Flight *flight)
{
	GhPipelineRequest *request = &flight->request;

	for (uint32_t i = 0; i < request->ngiven; i++)
		if (flight->given[i] >= stage->program->ncolumns ||
			!are_of_column(&gh_program_columns(stage->program)[flight->given[i]], &flight->vectors[i], flight->rows.count))
			return;
	for (uint32_t i = 0; i < request->ngiven; i++)
		flight->packed[i] = pack_drawn(&gh_program_columns(stage->program)[flight->given[i]], &flight->vectors[i],
									   (uint32_t) flight->rows.count);
	request->packed = (const GhPackedColumn *const *) flight->packed;
	request->vectors = NULL;
}

/* All that is read, and some of the rest; where a value is NULL its words are anything. */
static void
give_columns(Context *c, const Stage *stage, Flight *flight)
{
	GhPipelineRequest *request = &flight->request;
	uint64_t	others = random_next(c);

	for (uint32_t v = 0; v < flight->rows.width; v++)
	{
		GhVector   *vector = &flight->vectors[request->ngiven];

		if (is_constant(stage, v) || stage->born[v] > flight->step ||
			(!is_read(stage, flight->step, v) && (others >> v % 64 & 1) != 0))
			continue;
		flight->given[request->ngiven++] = (uint16_t) v;
		vector->low = make_words(flight->rows.count);
		vector->high = make_words(flight->rows.count);
		vector->null = make_memory(flight->rows.count);
		for (uint64_t i = 0; i < flight->rows.count; i++)
		{
			GhValue		value = rows_at(&flight->rows, i)[v];

			vector->low[i] = value.null ? others : value.low;
			vector->high[i] = value.null ? ~others : value.high;
			vector->null[i] = value.null;
		}
	}
	request->given = flight->given;
	request->vectors = flight->vectors;
	if (stage->engine->pipelines->takes_packed && flight->step == 0 && random_below(c, 2) == 0)
		pack_columns(stage, flight);
}

static void
flight_init(const Stage *stage, Flight *flight, GhInputKind kind, uint32_t step)
{
	memset(flight, 0, sizeof(*flight));
	rows_init(&flight->rows, stage->source.width);
	flight->request.kind = kind;
	flight->request.step = step;
	flight->step = kind == GH_INPUT_UNMATCHED ? step + 1 : step;
}

static void
flight_room(Flight *flight, uint64_t back_room)
{
	flight->request.back_room = back_room;
	flight->request.back = make_memory(back_room * sizeof(GhBackRow));
}

static void
flight_drop(Flight *flight)
{
	for (uint32_t i = 0; i < flight->request.ngiven; i++)
	{
		free(flight->vectors[i].low);
		free(flight->vectors[i].high);
		free(flight->vectors[i].null);
		free(flight->packed[i]);
	}
	rows_drop(&flight->rows);
	free(flight->places);
	free(flight->untold);
	free(flight->request.back);
}

/* ------------------------------------------------------------- what came of it */

/* The first step from this one on that marks matches, or the number of steps. */
static uint32_t
next_marking(const Stage *stage, uint32_t step)
{
	while (step < stage->options.nsteps &&
		   (stage->steps[step].probe == 0 || !stage->marking[stage->steps[step].probe - 1]))
		step++;
	return step;
}

/* A row came back, at this step: it enters again before a later one. */
static void
enter_again(Context *c, Stage *stage, const RowList *one, uint32_t entered, uint32_t step, Pending *next)
{
	uint32_t	first = step == GH_STEP_VISIBILITY ? 0 : step + 1;
	uint32_t	at;
	Fate		fate = {0};
	RowList		out;

	stage->backs++;
	/* which matches it has there nobody marks, now that it enters behind it */
	if (step < stage->options.nsteps && next_marking(stage, step) == step)
		stage->marks_lost[stage->steps[step].probe - 1] = true;
	rows_init(&out, one->width);
	if (step == stage->options.nsteps)
	{
		model_advance(c, stage, one, entered, step, &fate, &out);
		stage->lost += out.count;
		rows_drop(&out);
		return;
	}
	if (next->first && random_below(c, 4) == 0)
		first = entered;
	at = first + (uint32_t) random_below(c, next_marking(stage, first) - first + 1);
	model_advance(c, stage, one, entered, at, &fate, &out);
	for (uint64_t i = 0; i < out.count; i++)
		(void) rows_add(&next->rows[at], rows_at(&out, i), false);
	rows_drop(&out);
}

/* What a request must have counted. */
typedef struct Expected
{
	uint64_t	counted;
	uint64_t	seen;
	uint64_t	passed[GH_STEPS_MAX];
	uint64_t	at_sink;		/* rows that went back there for another reason than their values */
} Expected;

/* A row that was not handed back. */
static void
count_row(Context *c, Stage *stage, const RowList *out, const Fate *fate, bool live, Expected *expected)
{
	bool		places = stage->options.sink.kind == GH_SINK_PLACES;

	CHECK(c, fate->must == 0, "a row is not handed back, which must be at one of the steps %" PRIx64,
		  fate->must);
	CHECK(c, places || !live, "a row is listed");
	CHECK(c, !places || out->count == live, "a row comes to the end %" PRIu64 " times, and %d is listed",
		  out->count,
		  live);
	for (uint64_t i = 0; i < out->count; i++)
		(void) rows_add(&stage->sink, rows_at(out, i), false);
	for (uint32_t s = 0; s < stage->options.nsteps; s++)
		expected->passed[s] += fate->passed[s];
	expected->counted += out->count;
}

static void
check_row(Context *c, Stage *stage, const Flight *flight, uint64_t i, const GhBackRow *back,
		  Expected *expected,
		  Pending *next)
{
	RowList		one = {flight->rows.width, 1, 1, rows_at(&flight->rows, i), &flight->rows.failed[i]};
	Fate		fate = {.marking = true};
	RowList		out;

	if (flight->untold != NULL && flight->untold[i] == UNTOLD_ENTRY)
	{
		expected->seen++;
		if (CHECK(c, back != NULL && back->step == 0, "an entry that is not of one row is not handed back"))
			enter_again(c, stage, &one, 0, 0, next);
		return;
	}
	if (flight->untold != NULL && flight->untold[i] != 0)
	{
		if (CHECK(c, back != NULL && back->step == GH_STEP_VISIBILITY,
				  "a row that may be invisible is not handed back for that") && flight->untold[i] == 2)
			enter_again(c, stage, &one, 0, GH_STEP_VISIBILITY, next);
		return;
	}
	expected->seen++;
	/* of a page's row any step may see it, unless one drops the row; of a table's without a match it is the probe */
	if (one.failed[0] && flight->request.kind == GH_INPUT_PAGES)
		fate.may |= (UINT64_C(2) << stage->options.nsteps) - 1;
	else if (one.failed[0])
		fate.must |= UINT64_C(1) << flight->request.step;
	/* what the steps in front of it set of NULLs and constants may be beyond an engine */
	if (flight->request.kind == GH_INPUT_UNMATCHED)
		fate.may |= UINT64_C(1) << flight->request.step;
	rows_init(&out, one.width);
	model_advance(c, stage, &one, flight->step, stage->options.nsteps, &fate, &out);
	model_sink(stage, &out, &fate);
	if (back == NULL || back->step == GH_STEP_LIVE)
		count_row(c, stage, &out, &fate, back != NULL, expected);
	else if (CHECK(c, back->step <= stage->options.nsteps, "a row is handed back at step %u", back->step))
	{
		bool		at_sink = back->step == stage->options.nsteps && stage->scarce;

		CHECK(c, at_sink || ((fate.must | fate.may) >> back->step & 1) != 0,
			  "a row that entered before step %u is "
			  "handed back at step %u, where it must or may be at %" PRIx64 " %" PRIx64, flight->step,
			  back->step,
			  fate.must, fate.may);
		expected->at_sink += back->step == stage->options.nsteps && ((fate.must | fate.may) >> back->step & 1) == 0;
		enter_again(c, stage, &one, flight->step, back->step, next);
	}
	rows_drop(&out);
}

static void
check_request(Context *c, Stage *stage, const Flight *flight, Pending *next)
{
	const GhPipelineRequest *request = &flight->request;
	Expected	expected = {0};
	uint64_t	b = 0;

	for (uint64_t i = 0; i < flight->rows.count; i++)
	{
		const GhBackRow *back = &request->back[b];
		const GhBackRow *place = &flight->places[i];

		if (b < request->nback && back->page == place->page && back->line == place->line)
			b++;
		else
			back = NULL;
		check_row(c, stage, flight, i, back, &expected, next);
	}
	CHECK(c, b == request->nback, "row %" PRIu64 " of %"
		  PRIu64 " that are handed back is row %u of page %u, which "
		  "is none or in the wrong order", b, request->nback, request->back[b].line, request->back[b].page);
	CHECK_U64(c, "rows counted", request->counted, expected.counted);
	CHECK_U64(c, "rows seen", request->seen, expected.seen);
	for (uint32_t s = 0; s < GH_STEPS_MAX; s++)
		CHECK(c, request->passed[s] == expected.passed[s], "behind step %u there are %"
			  PRIu64 " rows, expected %"
			  PRIu64, s, request->passed[s], expected.passed[s]);
	CHECK(c, request->no_memory >= expected.at_sink && (stage->scarce || request->no_memory == 0), "for %"
		  PRIu64
		  " rows there was no memory, expected %" PRIu64, request->no_memory, expected.at_sink);
}

static GhPipeline *
pipeline_of(const Stage *stage, const Flight *flight)
{
	return stage->crew != NULL ? stage->pipelines[flight->participant] : stage->pipeline;
}

/* Submits them all, then waits for each. */
static bool
fly(Context *c, Stage *stage, Flight *flights, uint32_t count, Pending *next)
{
	bool		good = true;

	for (uint32_t i = 0; i < count; i++)
	{
		GhStatus	status;

		if (stage->crew != NULL)
			flights[i].participant = (uint32_t) random_below(c, stage->nmembers);
		crew_turn(stage, flights[i].participant);
		status = stage->engine->pipelines->submit(pipeline_of(stage, &flights[i]), &flights[i].request);

		good &= CHECK(c, status == GH_OK || status == GH_BUSY, "submit: %s",
					  flights[i].request.error.message);
	}
	for (uint32_t i = 0; good && i < count; i++)
	{
		crew_turn(stage, flights[i].participant);
		good = CHECK(c, wait_for(stage, pipeline_of(stage, &flights[i]), &flights[i].request) == GH_OK, "wait: %s",
					 flights[i].request.error.message);
		if (good)
			check_request(c, stage, &flights[i], next);
	}
	/* of requests that failed an engine may still have a hold */
	for (uint32_t i = 0; good && i < count; i++)
		flight_drop(&flights[i]);
	return good;
}

/* ----------------------------------------------------------------- the source */

/* The source's rows from `first` on, as many as a request brings; returns the next one. */
static uint64_t
load_source(Context *c, const Stage *stage, uint64_t first, Flight *flight)
{
	static const GhInputKind kinds[] = {
		[GH_SOURCE_PAGES] = GH_INPUT_PAGES, [GH_SOURCE_GROUPS] = GH_INPUT_SOURCE,
		[GH_SOURCE_COLUMNS] = GH_INPUT_COLUMNS
	};
	uint64_t	end = stage->cut < stage->source.count - first ? first + stage->cut : stage->source.count;

	flight_init(stage, flight, kinds[stage->options.source.kind], 0);
	flight->places = make_memory((end - first) * sizeof(GhBackRow));
	for (uint64_t i = first; i < end; i++)
	{
		(void) rows_add(&flight->rows, rows_at(&stage->source, i), stage->source.failed[i]);
		flight->places[i - first] = (GhBackRow) {(uint32_t) (i - first), 0, 0};
	}
	flight->request.first = flight->request.kind == GH_INPUT_SOURCE ? first : 0;
	flight->request.count = end - first;
	if (flight->request.kind == GH_INPUT_COLUMNS)
		give_columns(c, stage, flight);
	flight_room(flight, end - first);
	return end;
}

/* Pages from `first` on, as many as a request brings; returns the next one. */
static uint64_t
load_pages(const Stage *stage, uint64_t first, Flight *flight)
{
	const Trial *pages = stage->pages;
	uint64_t	end = stage->cut < pages->npages - first ? first + stage->cut : pages->npages;
	uint64_t	lines = 0;

	flight_init(stage, flight, GH_INPUT_PAGES, 0);
	for (uint64_t p = first; p < end; p++)
		lines += pages->pages[p].lines;
	flight->places = make_memory(lines * sizeof(GhBackRow));
	flight->untold = make_memory(lines);
	for (uint64_t i = 0; i < stage->source.count; i++)
		if (stage->places[i].page >= first && stage->places[i].page < end)
		{
			uint64_t	n = flight->rows.count;

			(void) rows_add(&flight->rows, rows_at(&stage->source, i), stage->source.failed[i]);
			flight->places[n] = stage->places[i];
			flight->places[n].page -= (uint32_t) first;
			flight->untold[n] = stage->untold[i];
		}
	flight->request.npages = (uint32_t) (end - first);
	flight->request.readable = pages->registered;
	flight->request.pages = pages->pages + first;
	flight->request.bitmaps = pages->bitmaps;
	flight->request.nbitmaps = (uint64_t) pages->npages * TRIAL_WORDS;
	flight->request.nspans = stage->nspans;
	flight->request.spans = stage->spans;
	flight_room(flight, lines);
	return end;
}

static bool
run_source(Context *c, Stage *stage, Pending *next)
{
	uint64_t	count = stage->pages != NULL ? stage->pages->npages : stage->source.count;
	uint64_t	at = 0;
	Flight	   *flights = make_memory(IN_FLIGHT * sizeof(Flight));
	bool		good = true;

	while (good && at < count)
	{
		uint32_t	n = 0;

		for (; n < IN_FLIGHT && at < count; n++)
			at = stage->pages != NULL ? load_pages(stage, at, &flights[n]) : load_source(c, stage, at,
																						 &flights[n]);
		good = fly(c, stage, flights, n, next);
	}
	if (good)
		free(flights);
	return good;
}

/* The rows that were handed back, until none is any more. */
static bool
run_again(Context *c, Stage *stage, Pending *pending)
{
	Flight	   *flight = make_memory(sizeof(Flight));
	bool		good = true;

	for (bool any = true; any && good;)
	{
		Pending		next = {.first = false};

		any = false;
		for (uint32_t s = 0; s <= GH_STEPS_MAX; s++)
			rows_init(&next.rows[s], stage->source.width);
		for (uint32_t s = 0; s <= GH_STEPS_MAX && good; s++)
		{
			if (pending->rows[s].count == 0)
				continue;
			any = true;
			flight_init(stage, flight, GH_INPUT_COLUMNS, s);
			flight->rows = pending->rows[s];
			rows_init(&pending->rows[s], stage->source.width);
			flight->request.count = flight->rows.count;
			flight->places = make_memory(flight->rows.count * sizeof(GhBackRow));
			for (uint64_t i = 0; i < flight->rows.count; i++)
				flight->places[i] = (GhBackRow) {(uint32_t) i, 0, 0};
			give_columns(c, stage, flight);
			flight_room(flight, flight->rows.count);
			good = fly(c, stage, flight, 1, &next);
		}
		*pending = next;
	}
	if (good)
		free(flight);
	return good;
}

/* Rows of the probe's table that have no mark, in requests of so many. */
static bool
run_unmatched(Context *c, Stage *stage, uint32_t step, Pending *next)
{
	uint32_t	p = stage->steps[step].probe - 1;
	uint64_t	count = stage->probed[p]->rows.count;
	uint64_t	cut = 1 + random_below(c, 2 * count + 1);
	bool		good = true;

	for (uint64_t first = 0; first < count && good; first += cut)
	{
		Flight	   *flight = make_memory(sizeof(Flight));
		uint64_t	n = cut < count - first ? cut : count - first;

		flight_init(stage, flight, GH_INPUT_UNMATCHED, step);
		flight->places = make_memory(n * sizeof(GhBackRow));
		for (uint64_t row = first; row < first + n; row++)
		{
			if (stage->matched[p][row])
				continue;
			flight->places[flight->rows.count] = (GhBackRow) {(uint32_t) (row - first), 0, 0};
			model_unmatched(c, stage, step, row, rows_add(&flight->rows, NULL, stage->probed[p]->back[row]));
		}
		flight->request.first = first;
		flight->request.count = n;
		flight_room(flight, n);
		good = fly(c, stage, flight, 1, next);
		if (good)
			free(flight);
	}
	return good;
}

bool
stage_run(Context *c, Stage *stage, const GhHost *host)
{
	Pending		pending = {.first = true};
	GhError		error = {0};
	GhStatus	status;
	bool		good;

	stage->engine = c->engine;
	status = stage_create(stage, host, &error);
	if (status == GH_OK && stage->in_spans && stage->crew == NULL)
		status = spans_open(c, stage, host, &error);
	if (stage->scarce && lacks_memory(status))
		return false;
	if (!CHECK(c, status == GH_OK, "create: %s", error.message))
		return false;
	for (uint32_t s = 0; s <= GH_STEPS_MAX; s++)
		rows_init(&pending.rows[s], stage->source.width);
	good = run_source(c, stage, &pending) && run_again(c, stage, &pending);
	for (uint32_t s = 0; good && s < stage->options.nsteps; s++)
		if (next_marking(stage, s) == s && !stage->marks_lost[stage->steps[s].probe - 1])
			good = run_unmatched(c, stage, s, &pending) && run_again(c, stage, &pending);
	return good && stage_results(c, stage);
}
