/*
 * join_model.c
 *		What sides of joins must give: row by row from what was written, by the model of
 *		instructions, every row of a table looked at for every row that is joined.
 */
#include "join_test.h"

#include <math.h>

/* --------------------------------------------------------------------- a row */

static void
load_constants(const GhProgram *program, GhValue *values)
{
	for (uint32_t i = 0; i < program->nconstants; i++)
	{
		const GhConstant *constant = &gh_program_constants(program)[i];
		GhValue		value = {constant->low, constant->high, constant->null};

		if (constant->value_class == GH_CLASS_TEXT)
			value.low += (uintptr_t) program;
		values[program->ncolumns + i] = value;
	}
}

/* False: it is handed back. */
static bool
load_row(const Side *side, uint32_t p, uint32_t t, GhValue *values)
{
	const WrittenPage *written = &side->trial.written[p];
	const GhProgram *program = side->trial.program;

	load_constants(program, values);
	for (uint32_t i = 0; i < program->ncolumns; i++)
	{
		const GhColumn *column = &gh_program_columns(program)[i];
		Written		value;

		/* a join fills it */
		if (column->attribute > side->trial.options.natts)
			continue;
		value = trial_value(&side->trial, p, t, i);
		if (value.kind == WRITTEN_UNREADABLE ||
			(value.kind == WRITTEN_MISSING && column->missing == GH_MISSING_BACK))
			return false;
		values[i].null = value.kind == WRITTEN_NULL || value.kind == WRITTEN_MISSING;
		values[i].low = value.low;
		values[i].high = value.high;
		if (value.kind == WRITTEN_TEXT)
			values[i].low += (uintptr_t) written->page;
	}
	return true;
}

/* False: a filter dropped it. */
static bool
run_row(Context *c, const Side *side, uint32_t first, uint32_t end, GhValue *values)
{
	const GhProgram *program = side->trial.program;

	for (uint32_t i = first; i < end; i++)
	{
		const GhInstruction *in = &gh_program_instructions(program)[i];
		GhValue		args[3] = {values[in->args[0]], values[in->args[1]], values[in->args[2]]};

		if (in->op == GH_OP_FILTER)
		{
			if (args[0].null || args[0].low == 0)
				return false;
			continue;
		}
		CHECK(c, model_instruction(program, in, args, &values[in->result]) == OUTCOME_VALUE,
			  "an instruction of a side may not go back");
	}
	return true;
}

static bool
key_is_null(const GhScanPart *parts, uint32_t nparts, const GhValue *values)
{
	for (uint32_t k = 0; k < nparts; k++)
		if (values[parts[k].vector].null)
			return true;
	return false;
}

/* Is a row that is live at the end counted?  For a table it needs a key, or that rows without a match are wanted. */
static bool
is_kept(const Side *side, const GhValue *values)
{
	return side->trial.options.marks_matches != 0 ||
		!key_is_null(side->parts, side->trial.options.nparts, values);
}

static bool
same_keys(const GhScanPart *a, const GhValue *a_values, const GhScanPart *b,
		  const GhValue *b_values, uint32_t nparts)
{
	for (uint32_t k = 0; k < nparts; k++)
		if ((a_values[a[k].vector].low ^ b_values[b[k].vector].low) << (64 - a[k].bits) != 0)
			return false;
	return true;
}

/* What becomes of one row of a page. */
typedef struct Becoming
{
	Context    *c;
	Side	   *side;			/* rows are appended to its rows */
	uint64_t	joined[GH_SCAN_JOINS_MAX];	/* rows behind each join */
	uint64_t	looks;			/* at rows of tables, for all rows */
	uint64_t	most_looks;
	bool		marks;			/* what is found is noted in the tables */
	bool		back;			/* or there were too many looks */
} Becoming;

static void
keep_row(Side *side, const GhValue *values)
{
	if (side->nrows == side->room)
	{
		side->room = 2 * side->room + 64;
		side->rows = realloc(side->rows, side->room * sizeof(ModelRow));
		if (side->rows == NULL)
			exit(2);
	}
	memcpy(side->rows[side->nrows++].values, values, sizeof(ModelRow));
}

/* A row that came as far as join j, and whatever becomes of it. */
static void
go_on(Becoming *becoming, uint32_t j, const GhValue *came)
{
	const Side *side = becoming->side;
	const GhScanJoin *join = &side->joins[j];
	GhValue		values[GH_PROGRAM_VECTORS_MAX];
	uint64_t	matches = 0;

	memcpy(values, came, sizeof(values));
	if (j == side->trial.options.njoins)
	{
		if (run_row(becoming->c, side, side->trial.options.joins_at,
					side->trial.program->ninstructions, values) && is_kept(side, values))
			keep_row(becoming->side, values);
		return;
	}
	becoming->looks += side->tables[j]->nrows;
	becoming->back |= becoming->looks > becoming->most_looks;
	for (uint64_t i = 0; i < side->tables[j]->nrows && !becoming->back; i++)
	{
		const ModelRow *match = &side->tables[j]->rows[i];

		if (key_is_null(join->parts, join->nparts, came) ||
			key_is_null(side->tables[j]->parts, join->nparts, match->values) ||
			!same_keys(join->parts, came, side->tables[j]->parts, match->values, join->nparts))
			continue;
		matches++;
		if (!gh_scan_kind_fills(join->kind))
			break;
		if (becoming->marks && gh_scan_kind_marks(join->kind))
			side->tables[j]->matched[i] = true;
		if ((matches > 1 && side->tables[j]->trial.options.all_matches == 0) ||
			++becoming->joined[j] > GH_SCAN_MATCHES_MAX)
		{
			becoming->back = true;
			return;
		}
		for (uint32_t f = 0; f < join->nfills; f++)
			values[join->fills[f].column] = match->values[side->tables[j]->kept[join->fills[f].kept]];
		go_on(becoming, j + 1, values);
	}
	/* with its matches it went on; else it does so alone, or not at all */
	if (becoming->back || join->kind == GH_SCAN_INNER || join->kind == GH_SCAN_RIGHT ||
		(matches > 0) != (join->kind == GH_SCAN_SEMI))
		return;
	for (uint32_t f = 0; f < join->nfills; f++)
		values[join->fills[f].column] = (GhValue) {0, 0, 1};
	becoming->back = ++becoming->joined[j] > GH_SCAN_MATCHES_MAX;
	if (!becoming->back)
		go_on(becoming, j + 1, values);
}

/* What becomes of a tuple: *passed: it came to the joins.  False: it is handed back. */
static bool
become(Becoming *becoming, uint32_t p, uint32_t t, bool *passed)
{
	Side	   *side = becoming->side;
	GhValue		values[GH_PROGRAM_VECTORS_MAX] = {{0, 0, 0}};

	*passed = false;
	memset(becoming->joined, 0, sizeof(becoming->joined));
	becoming->back = false;
	if (!load_row(side, p, t, values))
		return false;
	*passed = run_row(becoming->c, side, 0, side->trial.options.joins_at, values);
	if (*passed)
		go_on(becoming, 0, values);
	return !becoming->back;
}

/* -------------------------------------------------------------------- all rows */

static bool
is_asked(const Trial *trial, uint32_t p, uint32_t t)
{
	const GhScanPage *page = &trial->pages[p];
	uint32_t	bit = trial->written[p].numbers[t] - 1u;

	return bit < page->lines && (page->bitmap == GH_SCAN_ALL ||
								 (trial->bitmaps[page->bitmap + bit / 64] >> bit % 64 & 1) != 0);
}

/* Was this row handed back for want of memory?  Then it is to be missing. */
static bool
lacked_memory(const Side *side, uint32_t p, uint32_t line)
{
	const ScanOutcome *outcome = &side->outcome;

	for (uint64_t i = 0; i < outcome->nback && outcome->no_group > 0; i++)
		if (outcome->back[i].page == p && outcome->back[i].line == line)
			return true;
	return false;
}

/* The rows of the last join's table that nothing has found. */
static void
model_unmatched(Context *c, Side *side)
{
	const GhProgram *program = side->trial.program;
	uint32_t	last = side->trial.options.njoins - 1;
	const GhScanJoin *join = &side->joins[last];
	Side	   *table = side->tables[last];

	for (uint64_t i = 0; i < table->nrows; i++)
	{
		GhValue		values[GH_PROGRAM_VECTORS_MAX] = {{0, 0, 0}};

		if (table->matched[i])
			continue;
		load_constants(program, values);
		for (uint32_t k = 0; k < program->ncolumns; k++)
			values[k].null = 1;
		for (uint32_t k = 0; k < side->trial.options.joins_at; k++)
			if (gh_program_instructions(program)[k].op != GH_OP_FILTER)
				(void) run_row(c, side, k, k + 1, values);
		for (uint32_t f = 0; f < join->nfills; f++)
			values[join->fills[f].column] = table->rows[i].values[table->kept[join->fills[f].kept]];
		side->unmatched++;
		side->joined[last]++;
		if (run_row(c, side, side->trial.options.joins_at, program->ninstructions, values) &&
			is_kept(side, values))
			keep_row(side, values);
	}
}

/* False: there would be more rows, or looks at rows of tables, than so many. */
static bool
model_rows(Context *c, Side *side, uint64_t most, uint64_t most_looks)
{
	const Trial *trial = &side->trial;
	Becoming	becoming = {.c = c,.side = side,.most_looks = most_looks,.marks = most_looks == UINT64_MAX};
	uint64_t	lines = 1;

	for (uint32_t p = 0; p < trial->npages; p++)
		lines += trial->written[p].ntuples;
	side->rows = NULL;
	side->matched = NULL;
	side->back = make_memory(lines * sizeof(GhScanRow));
	side->nrows = side->nback = side->passed = side->room = side->multiplied = side->unmatched = 0;
	memset(side->joined, 0, sizeof(side->joined));
	for (uint32_t p = 0; p < trial->npages; p++)
		for (uint32_t t = 0; t < trial->written[p].ntuples && side->nrows <= most &&
			 becoming.looks <= most_looks; t++)
		{
			uint32_t	line = trial->written[p].numbers[t];
			uint64_t	before = side->nrows;
			bool		passed;

			if (!is_asked(trial, p, t))
				continue;
			if (!become(&becoming, p, t, &passed) ||
				(side->nrows > before && lacked_memory(side, p, line)))
			{
				side->nrows = before;
				side->back[side->nback].page = p;
				side->back[side->nback++].line = line;
				continue;
			}
			side->passed += passed;
			side->multiplied += side->nrows > before + 1;
			for (uint32_t j = 0; j < GH_SCAN_JOINS_MAX; j++)
				side->joined[j] += becoming.joined[j];
		}
	return side->nrows <= most && becoming.looks <= most_looks;
}

void
side_model(Context *c, Side *side)
{
	(void) model_rows(c, side, UINT64_MAX, UINT64_MAX);
	if (side->asked)
		model_unmatched(c, side);
	side->matched = make_memory(side->nrows * sizeof(bool));
	memset(side->matched, 0, side->nrows * sizeof(bool));
}

#define MORE_ROWS 1200			/* than lines */
#define MOST_LOOKS 20000000

void
side_shrink(Context *c, Side *side)
{
	for (bool few = false; !few;)
	{
		uint64_t	lines = 0;

		for (uint32_t p = 0; p < side->trial.npages; p++)
			lines += side->trial.pages[p].lines;
		few = model_rows(c, side, lines + MORE_ROWS, MOST_LOOKS);
		side_forget(side);
		for (uint32_t p = 0; p < side->trial.npages && !few; p++)
			side->trial.pages[p].lines /= 2;
	}
}

void
side_forget(Side *side)
{
	free(side->rows);
	free(side->matched);
	free(side->back);
}

/* ------------------------------------------------------------------ comparison */

static bool
same_class_value(uint8_t value_class, GhValue a, GhValue b)
{
	if (a.null || b.null)
		return a.null == b.null;
	if (value_class == GH_CLASS_TEXT)
		return a.high == b.high && (a.high == 0 || memcmp((const void *) (uintptr_t) a.low,
														   (const void *) (uintptr_t) b.low,
														   a.high) == 0);
	if (gh_class_is_float(value_class))
	{
		double		x = gh_to_double(a.low);
		double		y = gh_to_double(b.low);

		return x == y || (isnan(x) && isnan(y));
	}
	return a.low == b.low && (value_class != GH_CLASS_INT128 || a.high == b.high);
}

static bool
is_of_group(const Trial *trial, const GhScanGroup *group, const GhValue *values)
{
	for (uint32_t k = 0; k < trial->options.nkeys; k++)
	{
		const GhScanValue *held = &gh_scan_keys(group)[k];
		GhValue		key = {held->low, held->high, (uint8_t) (group->nulls >> k & 1)};

		if (trial->keys[k].value_class == GH_CLASS_TEXT)
			key.low += (uintptr_t) group;
		if (!same_class_value(trial->keys[k].value_class, key, values[trial->keys[k].vector]))
			return false;
	}
	return true;
}

/* Returns the rows of the group. */
static uint64_t
check_group(Context *c, const Side *side, const GhScanGroup *group)
{
	const Trial *trial = &side->trial;
	const GhAggregateState *states = record_states(trial, group);
	uint64_t	rows = 0;

	for (uint64_t i = 0; i < side->nrows; i++)
		rows += is_of_group(trial, group, side->rows[i].values);
	CHECK_U64(c, "rows of a group", group->rows, rows);
	for (uint32_t a = 0; a < trial->options.naggregates; a++)
	{
		const GhAggregate *aggregate = &trial->aggregates[a];
		uint64_t	count = 0;
		__int128	sum = 0;

		for (uint64_t i = 0; i < side->nrows; i++)
		{
			GhValue		value = side->rows[i].values[aggregate->argument];
			bool		rows_alone = aggregate->kind == GH_AGGREGATE_COUNT_ROWS;

			if ((!rows_alone && value.null) || !is_of_group(trial, group, side->rows[i].values))
				continue;
			count++;
			if (aggregate->kind == GH_AGGREGATE_SUM)
				sum += (int64_t) value.low;
		}
		CHECK_U64(c, "values of an aggregate", states[a].count, count);
		CHECK(c, aggregate->kind != GH_AGGREGATE_SUM || count == 0 ||
			  (states[a].low == (uint64_t) sum && states[a].high == (uint64_t) (sum >> 64)),
			  "a sum is %016" PRIx64 " %016" PRIx64 ", expected %016" PRIx64 " %016" PRIx64,
			  states[a].high, states[a].low, (uint64_t) (sum >> 64), (uint64_t) sum);
	}
	return rows;
}

static void
check_table(Context *c, const Side *side)
{
	uint64_t	keys = 0;

	for (uint64_t i = 0; i < side->nrows; i++)
	{
		uint64_t	before = 0;

		if (key_is_null(side->parts, side->key.nparts, side->rows[i].values))
			continue;
		while (before < i &&
			   (key_is_null(side->parts, side->key.nparts, side->rows[before].values) ||
				!same_keys(side->parts, side->rows[before].values, side->parts, side->rows[i].values,
						   side->key.nparts)))
			before++;
		keys += before == i;
	}
	CHECK_U64(c, "rows of a table", side->made.rows, side->nrows);
	CHECK_U64(c, "keys of a table", side->made.keys, keys);
}

void
side_check(Context *c, const Side *side)
{
	const ScanOutcome *outcome = &side->outcome;
	uint64_t	rows = 0;

	CHECK_U64(c, "rows that were counted", outcome->counted, side->nrows);
	CHECK_U64(c, "rows that came to the joins", outcome->passed, side->passed);
	for (uint32_t j = 0; j < GH_SCAN_JOINS_MAX; j++)
		CHECK_U64(c, "rows behind a join", outcome->joined[j], side->joined[j]);
	CHECK_U64(c, "rows handed back", outcome->nback, side->nback);
	for (uint64_t i = 0; i < outcome->nback && i < side->nback; i++)
		CHECK(c, outcome->back[i].page == side->back[i].page &&
			  outcome->back[i].line == side->back[i].line, "row %u of page %u is handed back",
			  outcome->back[i].line, outcome->back[i].page);
	if (side->is_table)
	{
		check_table(c, side);
		return;
	}
	for (uint32_t i = 0; i < outcome->count; i++)
		rows += check_group(c, side, (const GhScanGroup *) outcome->records[i]);
	CHECK_U64(c, "rows of all groups", rows, side->nrows);
}
