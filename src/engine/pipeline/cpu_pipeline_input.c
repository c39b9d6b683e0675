/*
 * cpu_pipeline_input.c
 *		The rows that a request brings to a pipeline on the CPU: of pages, of columns that are handed over, of a table
 *		or of groups.
 */
#include "engine/page/cpu_page.h"
#include "engine/page/packed.h"
#include "engine/pipeline/cpu_pipeline.h"

static void
put_back(GhPipelineRequest *request, uint32_t page, uint32_t line, uint32_t step)
{
	GhBackRow  *row = &request->back[request->nback++];

	row->page = page;
	row->line = (uint16_t) line;
	row->step = (uint16_t) step;
}

static bool
lists_places(const GhCpuPipeline *pipeline)
{
	return pipeline->plan.options.sink.kind == GH_SINK_PLACES;
}

/* Rows whose states are looked at together. */
#define STATES 8

/* Are rows of level 0 from first on, some of them behind the last one, neither live nor handed back? */
static bool
all_dropped(const GhVectorBatch *batch, uint32_t first)
{
	uint64_t	states;

	_Static_assert(sizeof(states) == STATES, "a byte each");
	memcpy(&states, batch->state + first, sizeof(states));
	return states == GH_ROW_DROPPED * UINT64_C(0x0101010101010101);
}

/*
 * Some rows of level 0, from one of them up to another: those that go back, or whose places are listed.  Of a
 * page with the numbers of their lines, by row; else first is the number of the first one.
 */
static void
put_some_back(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint32_t from, uint32_t end, uint64_t first,
			  const uint16_t *numbers)
{
	const GhVectorBatch *batch = &pipeline->levels[0]->batch;
	bool		lists = lists_places(pipeline) && pipeline->ended > 0;
	GhBackRow  *row = request->back + request->nback;

	/* rows without a branch: of those in no order, each would be guessed wrong.  There is room for all */
	for (uint32_t i = from; i < end; i++)
	{
		if (i % STATES == 0 && pipeline->nback == 0 && all_dropped(batch, i))
		{
			i += STATES - 1;
			continue;
		}
		row->page = (uint32_t) (numbers != NULL ? first : first + i);
		row->line = numbers != NULL ? numbers[i] : 0;
		row->step = pipeline->back_step[i];
		row += (row->step != GH_STEP_LIVE) | (lists & (batch->state[i] == GH_ROW_LIVE));
	}
	request->nback = (uint64_t) (row - request->back);
}

/* Does any row of level 0 go back, or is its place listed? */
static bool
puts_back(const GhCpuPipeline *pipeline)
{
	return pipeline->nback > 0 || (lists_places(pipeline) && pipeline->ended > 0);
}

/* The rows of level 0, of a request without pages. */
static void
put_rows_back(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint64_t first)
{
	if (puts_back(pipeline))
		put_some_back(pipeline, request, 0, pipeline->levels[0]->batch.nrows, first, NULL);
}

/* The rows of level 0, of pages. */
static void
put_lines_back(GhCpuPipeline *pipeline, GhPipelineRequest *request)
{
	uint32_t	from = 0;

	for (uint32_t p = 0; puts_back(pipeline) && p < pipeline->nparts; p++)
	{
		const GhCpuPart *part = &pipeline->parts[p];

		put_some_back(pipeline, request, from, part->end, part->page, pipeline->lines);
		from = part->end;
	}
}

/* ------------------------------------------------------------------- pages */

/* The lines of a page that is asked for, by what is to be done with them. */
typedef struct Lines
{
	const uint16_t *numbers;	/* of rows: */
	uint32_t	asked;
	uint32_t	untold;			/* in pipeline->untold: they are handed back */
} Lines;

/* A line that is asked for; false: the page is not to be trusted. */
static bool
list_line(GhCpuPipeline *pipeline, const GhPageRef *page, uint32_t page_lines, uint32_t number, Lines *lines)
{
	const GhPipelineSource *source = &pipeline->plan.options.source;
	GhTupleSeen	seen = GH_SEEN_VISIBLE;
	GhPageTuple tuple;

	if (page->hinted && gh_line_is_newer(page, page->page, number))
		return true;
	if (page->hinted)
	{
		if (!gh_page_tuple(page->page, source->page_bytes, page_lines, number, &tuple))
			return false;
		seen = gh_line_judge(page->page, page->page, tuple.header, source->seen_before);
	}
	if (seen == GH_SEEN_VISIBLE)
		pipeline->numbers[lines->asked++] = (uint16_t) number;
	else if (seen == GH_SEEN_UNTOLD)
		pipeline->untold[lines->untold++] = (uint16_t) number;
	return true;
}

/* Line pointers that are looked at together. */
#define LINES_AT_A_TIME 8

/* What two line pointers have that normal ones have not, in the places of their states. */
static inline uint64_t
find_others(const uint8_t *at)
{
	const uint64_t normal = UINT64_C(0x100000001) * ((uint32_t) GH_LINE_NORMAL << GH_LINE_OFFSET_BITS);

	return gh_read_u64(at) ^ normal;
}

/* Are all lines of a page normal? */
static bool
all_normal(const uint8_t *page, uint32_t lines)
{
	const uint64_t states = UINT64_C(0x100000001) * ((1u << GH_LINE_STATE_BITS) - 1) << GH_LINE_OFFSET_BITS;
	const uint8_t *at = page + GH_PAGE_LINES_AT;
	uint64_t	others = 0;
	uint32_t	i = 0;

	for (; i + LINES_AT_A_TIME <= lines; i += LINES_AT_A_TIME, at += LINES_AT_A_TIME * GH_LINE_BYTES)
		others |= find_others(at) | find_others(at + 2 * GH_LINE_BYTES) |
			find_others(at + 4 * GH_LINE_BYTES) | find_others(at + 6 * GH_LINE_BYTES);
	for (; i + 2 <= lines; i += 2, at += 2 * GH_LINE_BYTES)
		others |= find_others(at);
	return (others & states) == 0 && (lines % 2 == 0 || gh_line_is_normal(page, lines));
}

/* All lines that are normal, of a page of which no tuple is to be judged; mostly they all are. */
static void
list_normal(GhCpuPipeline *pipeline, const uint8_t *page, uint32_t lines, Lines *list)
{
	if (all_normal(page, lines))
	{
		for (; pipeline->numbered < lines; pipeline->numbered++)
			pipeline->all_numbers[pipeline->numbered] = (uint16_t) (pipeline->numbered + 1);
		list->numbers = pipeline->all_numbers;
		list->asked = lines;
		return;
	}
	for (uint32_t number = 1; number <= lines; number++)
	{
		pipeline->numbers[list->asked] = (uint16_t) number;
		list->asked += gh_line_is_normal(page, number);
	}
}

/*
 * All lines that are normal, and entries, of a leaf page; false: it is none.  Of one without lines nothing is
 * looked at, for there is no room for it to go back.
 */
static bool
list_entries(GhCpuPipeline *pipeline, const uint8_t *page, uint32_t lines, Lines *list)
{
	uint32_t	first = gh_leaf_first_line(page, pipeline->plan.options.source.page_bytes);

	for (uint32_t number = first; first > 0 && number <= lines; number++)
	{
		pipeline->numbers[list->asked] = (uint16_t) number;
		list->asked += gh_line_is_normal(page, number);
	}
	return first > 0 || lines == 0;
}

/* The lines whose bits are set, of a page of which no tuple is to be judged. */
static void
list_asked(GhCpuPipeline *pipeline, const uint64_t *bits, uint32_t lines, Lines *list)
{
	for (uint32_t first = 0; first < lines; first += 64)
	{
		uint64_t	word = bits[first / 64];

		if (lines - first < 64)
			word &= (UINT64_C(1) << (lines - first)) - 1;
		for (; word != 0; word &= word - 1)
			pipeline->numbers[list->asked++] = (uint16_t) (first + (uint32_t) __builtin_ctzll(word) + 1);
	}
}

/* The lines that are asked for; false: the page does not have them, or is not to be trusted. */
static bool
list_lines(GhCpuPipeline *pipeline, const GhPipelineRequest *request, const GhPageRef *page, Lines *lines)
{
	const uint8_t *bytes = page->page;
	uint32_t	page_lines = gh_page_lines(bytes, pipeline->plan.options.source.page_bytes);

	memset(lines, 0, sizeof(*lines));
	lines->numbers = pipeline->numbers;
	if (page->lines > page_lines)
		return false;
	if (pipeline->plan.options.source.kind == GH_SOURCE_LEAVES)
		return list_entries(pipeline, bytes, page->lines, lines);
	if (page->bitmap == GH_PAGE_ALL_LINES && !page->hinted)
	{
		list_normal(pipeline, bytes, page->lines, lines);
		return true;
	}
	if (!page->hinted)
	{
		list_asked(pipeline, request->bitmaps + page->bitmap, page->lines, lines);
		return true;
	}
	for (uint32_t number = 1; number <= page->lines; number++)
		if (gh_line_is_asked(page, request->bitmaps, number) &&
			(page->bitmap != GH_PAGE_ALL_LINES || gh_line_is_normal(bytes, number)) &&
			!list_line(pipeline, page, page_lines, number, lines))
			return false;
	return true;
}

/* Appends lines of a page to the rows of level 0, which have room for them; false: the page is not to be trusted. */
static bool
load_lines(GhCpuPipeline *pipeline, const GhPageRef *asked, uint32_t page, const uint16_t *numbers, uint32_t n)
{
	GhVectorBatch *batch = &pipeline->levels[0]->batch;
	uint16_t   *lines = pipeline->lines + batch->nrows;

	if (n == 0)
		return true;
	memcpy(lines, numbers, n * sizeof(*lines));
	if (gh_cpu_page_load(&pipeline->shape, asked->page, asked->block, lines, n, batch) != GH_OK)
		return false;
	pipeline->parts[pipeline->nparts++] = (GhCpuPart) {page, batch->nrows};
	return true;
}

static void
forget_rows(GhCpuPipeline *pipeline)
{
	gh_batch_forget_bits(&pipeline->levels[0]->batch);
	pipeline->levels[0]->batch.nrows = 0;
	pipeline->nparts = 0;
}

/* The steps of the rows that were loaded. */
static void
run_loaded(GhCpuPipeline *pipeline, GhPipelineRequest *request)
{
	pipeline->decoded = 0;
	gh_cpu_run_rows(pipeline, request, 0);
	if (!pipeline->stopped)
		put_lines_back(pipeline, request);
}

/* Loads a page's rows, and does them; false: it is not to be trusted. */
static bool
go_over_page(GhCpuPipeline *pipeline, GhPipelineRequest *request, const GhPageRef *asked, uint32_t page,
			 const Lines *lines, bool run)
{
	for (uint32_t at = 0; at < lines->asked; at += GH_VECTOR_ROWS)
	{
		uint32_t	n = lines->asked - at < GH_VECTOR_ROWS ? lines->asked - at : GH_VECTOR_ROWS;

		forget_rows(pipeline);
		if (!load_lines(pipeline, asked, page, lines->numbers + at, n))
			return false;
		if (!run)
			continue;
		run_loaded(pipeline, request);
		if (pipeline->stopped)
			break;
	}
	return true;
}

/* Puts the lines that are not known to be visible among those of the page that went back, from first on. */
static void
put_untold(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint32_t page, uint64_t first, uint32_t nuntold)
{
	uint64_t	from = request->nback;
	uint64_t	to = from + nuntold;

	request->nback = to;
	while (nuntold > 0)
	{
		uint16_t	line = pipeline->untold[nuntold - 1];
		GhBackRow	row = {page, line, GH_STEP_VISIBILITY};

		to--;
		if (from > first && request->back[from - 1].line > line)
		{
			request->back[to] = request->back[--from];
			continue;
		}
		request->back[to] = row;
		nuntold--;
	}
}

/* A page by itself. */
static void
do_page(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint32_t page)
{
	const GhPageRef *asked = &request->pages[page];
	uint64_t	first = request->nback;
	GhPageRef	placed;
	Lines		lines;

	if (asked->span != 0)
	{
		placed = gh_cpu_place_page(request, asked);
		asked = &placed;
	}
	/* rows of several batches: all are loaded once before any is done */
	if (!list_lines(pipeline, request, asked, &lines) ||
		(lines.asked > GH_VECTOR_ROWS && !go_over_page(pipeline, request, asked, page, &lines, false)) ||
		!go_over_page(pipeline, request, asked, page, &lines, true))
	{
		put_back(request, page, 0, 0);
		pipeline->order_is_broken = true;
		return;
	}
	request->seen += lines.asked;
	put_untold(pipeline, request, page, first, lines.untold);
}

/*
 * Appends a page's rows to those that were loaded.  False: it is to be done by itself, since it is refused,
 * it is put into its place, or some of its lines are told back; or there is no room for its rows.
 */
static bool
gather_page(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint32_t page)
{
	const GhPageRef *asked = &request->pages[page];
	Lines		lines;

	if (asked->span != 0 || asked->hinted != 0 || !list_lines(pipeline, request, asked, &lines) ||
		lines.asked > GH_VECTOR_ROWS - pipeline->levels[0]->batch.nrows ||
		!load_lines(pipeline, asked, page, lines.numbers, lines.asked))
		return false;
	request->seen += lines.asked;
	return true;
}

/* Rows of as many pages as there is room for are done together; *at goes on. */
static void
do_pages(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint64_t *at)
{
	uint64_t	first = *at;

	forget_rows(pipeline);
	while (*at < request->npages && gather_page(pipeline, request, (uint32_t) *at))
		(*at)++;
	if (pipeline->nparts > 0)
		run_loaded(pipeline, request);
	else if (*at == first)
		do_page(pipeline, request, (uint32_t) (*at)++);
}

/* ------------------------------------------------------------- other sources */

static void
begin_rows(GhCpuPipeline *pipeline, uint32_t n)
{
	GhVectorBatch *batch = &pipeline->levels[0]->batch;

	gh_batch_make_ready(batch, n);
	gh_batch_forget_bits(batch);
	batch->nrows = n;
	memset(batch->state, GH_ROW_LIVE, n);
}

/* Rows of packed columns whose bits are not set are not there. */
static void
drop_unasked(GhVectorBatch *batch, const uint64_t *bits, uint64_t at, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if ((bits[(at + i) / 64] >> (at + i) % 64 & 1) == 0)
			batch->state[i] = GH_ROW_DROPPED;
}

static void
take_packed(GhCpuPipeline *pipeline, const GhPipelineRequest *request, uint64_t at, uint32_t n)
{
	GhVectorBatch *batch = &pipeline->levels[0]->batch;

	for (uint32_t g = 0; g < request->ngiven; g++)
	{
		uint32_t	v = request->given[g];

		gh_unpack_rows(request->packed[g], request->first + at, n, pipeline->plan.wide[v] != 0, &batch->vectors[v]);
		batch->bits[v] = gh_packed_bits(request->packed[g]);
	}
	if (request->bitmaps != NULL)
		drop_unasked(batch, request->bitmaps, at, n);
}

static void
take_columns(GhCpuPipeline *pipeline, const GhPipelineRequest *request, uint64_t at, uint32_t n)
{
	const GhVectorBatch *batch = &pipeline->levels[0]->batch;

	begin_rows(pipeline, n);
	if (request->packed != NULL)
	{
		take_packed(pipeline, request, at, n);
		return;
	}
	for (uint32_t g = 0; g < request->ngiven; g++)
	{
		const GhVector *from = &request->vectors[g];
		const GhVector *to = &batch->vectors[request->given[g]];

		memcpy(to->low, from->low + at, n * sizeof(uint64_t));
		memcpy(to->null, from->null + at, n);
		if (pipeline->plan.wide[request->given[g]] != 0 && from->high != NULL)
			memcpy(to->high, from->high + at, n * sizeof(uint64_t));
	}
}

/* A part of a group as the value of a column; false: it does not fit, and the row goes back. */
static bool
group_value(const GhCpuGrouping *groups, GhGroupColumn column, uint32_t number, uint8_t value_class, GhValue *value)
{
	const GhAggregateState *state;
	const GhAggregate *aggregate;

	if (column.part == GH_GROUP_KEY)
	{
		*value = gh_cpu_group_value(groups, gh_cpu_grouping_at(groups, number), column.number);
		return true;
	}
	state = &groups->states[(size_t) number * groups->sink->naggregates + column.number];
	aggregate = &groups->sink->aggregates[column.number];
	*value = (GhValue) {state->count, 0, 0};
	if (column.part == GH_GROUP_COUNT)
		return true;
	*value = (GhValue) {state->low, state->high, state->count == 0};
	return state->count == 0 || !gh_aggregate_is_sum(aggregate) || aggregate->value_class != GH_CLASS_INT ||
		value_class != GH_CLASS_INT ||
		state->high == gh_sign_extension(state->low);
}

static void
take_groups(GhCpuPipeline *pipeline, uint64_t first, uint32_t n)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	const GhCpuGrouping *groups = &((const GhCpuPipeline *) options->source.groups)->groups;
	const GhVectorBatch *batch = &pipeline->levels[0]->batch;

	begin_rows(pipeline, n);
	for (uint32_t i = 0; i < n; i++)
		if (!gh_cpu_group_had_row(groups, (uint32_t) (first + i)) && groups->sink->nkeys > 0)
			batch->state[i] = GH_ROW_DROPPED;
	for (uint32_t c = 0; c < options->program->ncolumns; c++)
	{
		const GhColumn *column = &gh_program_columns(options->program)[c];

		for (uint32_t i = 0; column->attribute <= options->source.natts && i < n; i++)
		{
			uint8_t		value_class = column->load == GH_LOAD_NUMERIC ? GH_CLASS_INT128 : GH_CLASS_INT;
			GhValue		value;

			if (!group_value(groups, options->source.columns[column->attribute - 1], (uint32_t) (first + i), value_class,
							 &value) && batch->state[i] == GH_ROW_LIVE)
				batch->state[i] = GH_ROW_BACK;
			batch->vectors[c].low[i] = value.low;
			batch->vectors[c].null[i] = value.null;
			if (pipeline->plan.wide[c] != 0)
				batch->vectors[c].high[i] = value.high;
		}
	}
}

/* ----------------------------------------------------- rows without a match */

/* All columns NULL, and what the steps in front of one set of them; nothing is dropped. */
static void
take_nulls(GhCpuPipeline *pipeline, uint32_t step, uint32_t n)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	GhVectorBatch *batch = &pipeline->levels[0]->batch;

	begin_rows(pipeline, n);
	for (uint32_t c = 0; c < options->program->ncolumns; c++)
	{
		memset(batch->vectors[c].null, 1, n);
		memset(batch->vectors[c].low, 0, n * sizeof(uint64_t));
	}
	for (uint32_t s = 0; s < step; s++)
	{
		if (options->steps[s].probe == 0)
			(void) gh_program_run_part(options->program, batch, gh_step_begin(options, s), options->steps[s].end);
		for (uint32_t i = 0; i < n; i++)
			if (batch->state[i] == GH_ROW_DROPPED)
				batch->state[i] = GH_ROW_LIVE;
	}
}

/* All rows of a batch, with these numbers of a table's rows. */
static void
number_rows(const GhCpuPipeline *pipeline, uint64_t first, uint64_t *numbers, GhCpuPicks *picks)
{
	picks->n = pipeline->levels[0]->batch.nrows;
	for (uint32_t i = 0; i < picks->n; i++)
	{
		picks->rows[i] = (uint16_t) i;
		numbers[i] = first + i;
	}
}

static void
take_unmatched(GhCpuPipeline *pipeline, const GhPipelineRequest *request, uint64_t first, uint32_t n)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	const GhProbe *probe = &options->probes[options->steps[request->step].probe - 1];
	GhVectorBatch *batch = &pipeline->levels[0]->batch;
	const GhCpuRows *rows = probe->marks->rows;
	uint64_t	numbers[GH_VECTOR_ROWS];
	GhCpuPicks	picks;

	take_nulls(pipeline, request->step, n);
	number_rows(pipeline, first, numbers, &picks);
	for (uint32_t f = 0; f < probe->nfills; f++)
		gh_cpu_rows_load(rows, probe->fills[f].kept, numbers, &batch->vectors[probe->fills[f].column], &picks);
	for (uint32_t i = 0; i < n; i++)
		if ((probe->marks->bits[numbers[i] / 64] >> numbers[i] % 64 & 1) != 0)
			batch->state[i] = GH_ROW_DROPPED;
		else if (gh_cpu_row_hands_back(rows, numbers[i]))
			batch->state[i] = GH_ROW_BACK;
}

/* -------------------------------------------------------------------- all */

/* Of the rows of level 0, those that were not dropped already; those of groups without rows were never there. */
static uint32_t
count_seen(const GhCpuPipeline *pipeline)
{
	const GhVectorBatch *batch = &pipeline->levels[0]->batch;
	uint32_t	seen = 0;

	if (memchr(batch->state, GH_ROW_DROPPED, batch->nrows) == NULL)
		return batch->nrows;
	for (uint32_t i = 0; i < batch->nrows; i++)
		seen += batch->state[i] != GH_ROW_DROPPED;
	return seen;
}

/* The columns of pages and groups are set by no step. */
void
gh_cpu_refill(GhCpuPipeline *pipeline, const GhPipelineRequest *request)
{
	uint32_t	n = pipeline->levels[0]->batch.nrows;

	if (request->kind == GH_INPUT_COLUMNS)
		take_columns(pipeline, request, pipeline->at, n);
	else if (request->kind == GH_INPUT_UNMATCHED)
		take_unmatched(pipeline, request, request->first + pipeline->at, n);
}

bool
gh_cpu_input(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint64_t *at)
{
	uint32_t	step = request->kind == GH_INPUT_COLUMNS ? request->step : 0;
	uint32_t	n;

	if (request->kind == GH_INPUT_PAGES)
	{
		if (*at == request->npages)
			return false;
		do_pages(pipeline, request, at);
		return true;
	}
	if (*at == request->count)
		return false;
	pipeline->at = *at;
	/* only of pages are there columns that wait */
	pipeline->decoded = pipeline->nlater;
	n = (uint32_t) (request->count - *at < GH_VECTOR_ROWS ? request->count - *at : GH_VECTOR_ROWS);
	if (request->kind == GH_INPUT_COLUMNS)
		take_columns(pipeline, request, *at, n);
	else if (request->kind == GH_INPUT_UNMATCHED)
	{
		take_unmatched(pipeline, request, request->first + *at, n);
		step = request->step + 1;
	}
	else
		take_groups(pipeline, request->first + *at, n);
	request->seen += count_seen(pipeline);
	gh_cpu_run_rows(pipeline, request, step);
	put_rows_back(pipeline, request, *at);
	*at += n;
	return true;
}
