/*
 * join_side.c
 *		Draws sides of joins, and has an engine run them.
 */
#include "join_test.h"

#define DOMAINS 4
#define SIDE_AGGREGATES 6
#define SIDE_PAGES_MAX 24

static const uint8_t domains[DOMAINS] = {2, 4, 6, 10};

static const uint8_t loads[SIDE_TID] = {
	GH_LOAD_INT8, GH_LOAD_INT4, GH_LOAD_INT2, GH_LOAD_BOOL, GH_LOAD_FLOAT4, GH_LOAD_FLOAT8,
	GH_LOAD_NUMERIC, GH_LOAD_TEXT
};

/* A side's program while it is put together. */
typedef struct Draft
{
	Side	   *side;
	Parts		parts;
	uint8_t		filled[GH_PROGRAM_VECTORS_MAX];	/* classes of filled columns, by number */
	uint32_t	join_columns[GH_SCAN_JOINS_MAX];	/* the first column that each join fills */
} Draft;

static bool
chance(Context *c, uint32_t percent)
{
	return random_below(c, 100) < percent;
}

/* --------------------------------------------------------------------- pages */

/* The columns' attributes lie in any order. */
static void
draw_relation(Context *c, Relation *relation)
{
	static const int16_t lengths[SIDE_TID] = {8, 4, 2, 1, 4, 8, -1, -1};

	relation->page_bytes = 8192;
	relation->natts = SIDE_TID;
	relation->nulls = chance(c, 50) ? 0 : 20;
	relation->odd = chance(c, 70) ? 0 : 3;
	relation->shorter = chance(c, 70) ? 0 : 10;
	for (uint32_t i = 0; i < SIDE_TID; i++)
	{
		uint32_t	at = (uint32_t) random_below(c, i + 1);

		relation->loads[i] = relation->loads[at];
		memset(&relation->loads[at], 0, sizeof(GhColumn));
		relation->loads[at].load = loads[i];
		relation->loads[at].scale = loads[i] == GH_LOAD_NUMERIC ? 2 : 0;
		relation->loads[at].missing = (uint8_t) random_below(c, 2);
	}
	for (uint32_t i = 0; i < SIDE_TID; i++)
		for (uint32_t k = 0; k < SIDE_TID; k++)
			if (relation->loads[i].load == loads[k])
			{
				relation->loads[i].attribute = (uint16_t) (i + 1);
				relation->attributes[i].length = lengths[k];
				relation->attributes[i].alignment = (uint8_t) (lengths[k] < 0 ? 4 : lengths[k]);
			}
}

static void
draw_pages(Context *c, Trial *trial, SideSize size)
{
	uint32_t	one = (uint32_t) random_below(c, 1000);

	draw_relation(c, &trial->relation);
	trial_pages(c, trial, size == SIDE_MANY ? SIDE_PAGES_MAX : 1 + (uint32_t) random_below(c, 3));
	trial_ask(c, trial);
	for (uint32_t p = 0; p < trial->npages && size < SIDE_FEW; p++)
	{
		uint32_t	ntuples = trial->written[p].ntuples;

		trial->pages[p].lines = 0;
		if (p > 0 || ntuples == 0 || size == SIDE_EMPTY)
			continue;
		one = trial->written[p].numbers[one % ntuples] - 1u;
		trial->pages[p].lines = gh_page_lines(trial->pages[p].page, 8192);
		trial->pages[p].bitmap = 0;
		memset(trial->bitmaps, 0, TRIAL_WORDS * sizeof(uint64_t));
		trial->bitmaps[one / 64] = UINT64_C(1) << one % 64;
	}
}

/* ------------------------------------------------------------------- a program */

/* Of 64 bits or less in all, and of so few values that some match. */
static void
draw_key(Context *c, SideKey *key)
{
	uint32_t	left = 64;

	key->nparts = 1 + (uint32_t) random_below(c, SIDE_PARTS_MAX);
	for (uint32_t k = 0; k < key->nparts; k++)
	{
		key->domain[k] = domains[random_below(c, DOMAINS + 1 - key->nparts)];
		key->bits[k] = (uint8_t) (key->domain[k] + (chance(c, 50) ? 0 : random_below(c, 9)));
		key->negative[k] = chance(c, 40);
		if (k + 1 == key->nparts && chance(c, 40))
			key->bits[k] = (uint8_t) left;
		left -= key->bits[k];
	}
}

/* An instruction whose result is a new temporary, which is returned. */
static uint16_t
compute(Draft *draft, GhProgramOp op, GhClass op_class, uint32_t a, uint32_t b)
{
	GhInstruction *in = add_instruction(&draft->parts, op, op_class, a, b, 0);

	in->result = (uint16_t) (in->result + draft->parts.ntemporaries++);
	return in->result;
}

static uint32_t
constant(const Draft *draft, uint32_t number)
{
	return draft->parts.ncolumns + number;
}

/* A vector of the values that a part has: of a column of the page, or, where it may be, a filled one. */
static uint16_t
draw_part(Context *c, Draft *draft, const SideKey *key, uint32_t k, bool all_columns)
{
	uint32_t	column = (uint32_t) random_below(c, SIDE_BOOL);
	bool		negative = key->negative[k] != chance(c, 10);
	uint32_t	d = 0;

	for (uint32_t i = SIDE_COLUMNS; all_columns && i < draft->parts.ncolumns; i++)
		if (draft->filled[i] == GH_CLASS_INT && chance(c, 30))
			column = i;
	while (domains[d] != key->domain[k])
		d++;
	return compute(draft, negative ? GH_OP_BIT_OR : GH_OP_BIT_AND, GH_CLASS_INT, column,
				   constant(draft, negative ? DOMAINS + d : d));
}

static void
add_constants(Draft *draft)
{
	GhValue		value = {0, 0, 0};

	for (uint32_t i = 0; i < 2 * DOMAINS; i++)
	{
		value.low = (UINT64_C(1) << domains[i % DOMAINS]) - 1;
		if (i >= DOMAINS)
			value.low = ~value.low;
		(void) add_constant(&draft->parts, GH_CLASS_INT, value);
	}
	value.low = 0;
	(void) add_constant(&draft->parts, GH_CLASS_INT, value);
}

static void
draw_filter(Context *c, Draft *draft, uint32_t first)
{
	uint32_t	ncolumns = draft->parts.ncolumns;
	uint32_t	column = SIDE_INT4;
	uint16_t	held;

	if (chance(c, 75))
		return;
	if (first < ncolumns)
		column = first + (uint32_t) random_below(c, ncolumns - first);
	if (column < SIDE_COLUMNS || draft->filled[column] == GH_CLASS_INT)
		held = compute(draft, chance(c, 50) ? GH_OP_LT : GH_OP_GE, GH_CLASS_INT, column,
					   constant(draft, 2 * DOMAINS));
	else
		held = compute(draft, GH_OP_IS_NOT_NULL, draft->filled[column], column, 0);
	(void) add_instruction(&draft->parts, GH_OP_FILTER, GH_CLASS_BOOL, held, 0, 0);
}

/* --------------------------------------------------------------------- joins */

static GhColumn
column_of_class(uint8_t value_class, uint32_t attribute)
{
	static const uint8_t class_loads[] = {
		[GH_CLASS_BOOL] = GH_LOAD_BOOL, [GH_CLASS_INT] = GH_LOAD_OID,
		[GH_CLASS_INT128] = GH_LOAD_NUMERIC, [GH_CLASS_FLOAT4] = GH_LOAD_FLOAT4,
		[GH_CLASS_FLOAT8] = GH_LOAD_FLOAT8, [GH_CLASS_TEXT] = GH_LOAD_TEXT
	};
	GhColumn	column = {.attribute = (uint16_t) attribute, .load = class_loads[value_class]};

	return column;
}

/* A join with a table, and the columns that it fills. */
static void
draw_join(Context *c, Draft *draft, uint32_t j, Side *table, bool last)
{
	Side	   *side = draft->side;
	GhScanJoin *join = &side->joins[j];

	side->tables[j] = table;
	join->kind = 1 + (uint32_t) random_below(c, GH_SCAN_ANTI);
	if (last && table->trial.options.marks_matches != 0 && chance(c, 70))
		join->kind = chance(c, 50) ? GH_SCAN_RIGHT : GH_SCAN_FULL;
	join->fills = side->fills[j];
	join->parts = side->join_parts[j];
	join->nparts = table->trial.options.nparts;
	draft->join_columns[j] = draft->parts.ncolumns;
	if (!gh_scan_kind_fills(join->kind))
		return;
	for (uint32_t k = 0; k < table->trial.options.nkept; k++)
	{
		uint32_t	column = draft->parts.ncolumns;
		uint8_t		value_class = table->trial.classes[table->kept[k]];

		if (chance(c, 40))
			continue;
		draft->filled[column] = value_class;
		draft->parts.columns[draft->parts.ncolumns++] = column_of_class(value_class, column + 1);
		side->fills[j][join->nfills].column = (uint16_t) column;
		side->fills[j][join->nfills++].kept = (uint16_t) k;
	}
}

/* The parts of a join's key: computed before, or a column that a join before it fills. */
static void
draw_join_parts(Context *c, Draft *draft, uint32_t j)
{
	const SideKey *key = &draft->side->tables[j]->key;

	for (uint32_t k = 0; k < key->nparts; k++)
	{
		GhScanPart *part = &draft->side->join_parts[j][k];

		part->bits = key->bits[k];
		part->vector = UINT16_MAX;
		for (uint32_t i = SIDE_COLUMNS; i < draft->join_columns[j]; i++)
			if (draft->filled[i] == GH_CLASS_INT && chance(c, 40))
				part->vector = (uint16_t) i;
		if (part->vector == UINT16_MAX)
			part->vector = draw_part(c, draft, key, k, false);
	}
}

/* -------------------------------------------------------------- what comes of it */

static uint16_t
draw_vector(Context *c, const Side *side)
{
	for (;;)
	{
		uint32_t	vector = (uint32_t) random_below(c, gh_program_vectors(side->trial.program));

		if (side->trial.classes[vector] != 0)
			return (uint16_t) vector;
	}
}

static void
draw_table(Context *c, Side *side)
{
	GhScanOptions *options = &side->trial.options;

	options->parts = side->parts;
	options->nparts = side->key.nparts;
	options->kept = side->kept;
	options->all_matches = chance(c, 70);
	options->marks_matches = chance(c, 50);
	options->nkept = (uint32_t) random_below(c, SIDE_KEPT_MAX + 1);
	for (uint32_t k = 0; k < options->nkept; k++)
		side->kept[k] = k == 0 && chance(c, 50) ? side->parts[0].vector : draw_vector(c, side);
}

static void
draw_groups(Context *c, Side *side)
{
	Trial	   *trial = &side->trial;

	trial->options.keys = trial->keys;
	trial->options.nkeys = (uint32_t) random_below(c, 4);
	for (uint32_t k = 0; k < trial->options.nkeys; k++)
	{
		trial->keys[k].vector = draw_vector(c, side);
		trial->keys[k].value_class = trial->classes[trial->keys[k].vector];
	}
	trial->options.each_row = chance(c, 30);
	if (trial->options.each_row != 0)
		return;
	trial->options.aggregates = trial->aggregates;
	trial->options.naggregates = SIDE_AGGREGATES;
	for (uint32_t a = 0; a < SIDE_AGGREGATES; a++)
	{
		GhAggregate *aggregate = &trial->aggregates[a];

		aggregate->kind = GH_AGGREGATE_COUNT_ROWS;
		aggregate->filter = GH_AGGREGATE_NO_FILTER;
		if (a == 0)
			continue;
		aggregate->argument = draw_vector(c, side);
		aggregate->value_class = trial->classes[aggregate->argument];
		aggregate->kind = aggregate->value_class == GH_CLASS_INT ? GH_AGGREGATE_SUM :
			GH_AGGREGATE_COUNT;
	}
}

static void
draw_program(Context *c, Side *side, Side **tables, uint32_t ntables)
{
	Trial	   *trial = &side->trial;
	uint32_t	njoins = (uint32_t) random_below(c, ntables == 0 ? 1 : side->is_table ? 2 : 4);
	GhError		error = {0};
	Draft		draft;

	memset(&draft, 0, sizeof(draft));
	draft.side = side;
	for (uint32_t k = 0; k < SIDE_TID; k++)
		for (uint32_t i = 0; i < SIDE_TID; i++)
			if (trial->relation.loads[i].load == loads[k])
				draft.parts.columns[k] = trial->relation.loads[i];
	draft.parts.columns[SIDE_TID].load = GH_LOAD_TID;
	draft.parts.ncolumns = SIDE_COLUMNS;
	if (!side->is_table && ntables > 0 && njoins == 0)
		njoins = 1;
	for (uint32_t j = 0; j < njoins; j++)
		draw_join(c, &draft, j, tables[random_below(c, ntables)], j + 1 == njoins);
	add_constants(&draft);
	draw_filter(c, &draft, UINT32_MAX);
	for (uint32_t j = 0; j < njoins; j++)
		draw_join_parts(c, &draft, j);
	trial->options.joins = side->joins;
	trial->options.njoins = njoins;
	trial->options.joins_at = draft.parts.ninstructions;
	draw_filter(c, &draft, SIDE_COLUMNS);
	for (uint32_t k = 0; side->is_table && k < side->key.nparts; k++)
	{
		side->parts[k].vector = draw_part(c, &draft, &side->key, k, true);
		side->parts[k].bits = side->key.bits[k];
	}
	trial->program = build_program(&draft.parts);
	CHECK_STATUS(c, "a program", gh_program_check_classes(trial->program, trial->program->bytes,
														  trial->classes, &error), GH_OK);
}

/* A side that joins with some of the tables, which have been drawn. */
Side *
side_draw(Context *c, SideSize size, bool is_table, Side **tables, uint32_t ntables)
{
	Side	   *side = make_memory(sizeof(Side));
	GhScanOptions *options = &side->trial.options;

	memset(side, 0, sizeof(*side));
	side->is_table = is_table;
	draw_pages(c, &side->trial, size);
	draw_key(c, &side->key);
	draw_program(c, side, tables, ntables);
	options->program = side->trial.program;
	options->program_bytes = side->trial.program->bytes;
	options->page_bytes = side->trial.relation.page_bytes;
	options->natts = side->trial.relation.natts;
	options->attributes = side->trial.relation.attributes;
	options->seed = random_next(c);
	options->groups = random_below(c, 2) * random_below(c, 5000);
	if (is_table)
		draw_table(c, side);
	else
		draw_groups(c, side);
	return side;
}

void
side_drop(Context *c, Side *side)
{
	trial_drop(c, &side->trial);
	free(side);
}

/* --------------------------------------------------------------------- running */

/*
 * Asks for the rows of the last join's table without a match, if that can be: in requests of a few rows each, or
 * of all.
 */
static bool
ask_unmatched(Context *c, Side *side)
{
	const GhScanOptions *options = &side->trial.options;
	const GhScanEngine *scans = side->engine->scans;
	Side	   *table = options->njoins > 0 ? side->tables[options->njoins - 1] : NULL;
	uint64_t	cut;

	if (table == NULL || !gh_scan_kind_marks(side->joins[options->njoins - 1].kind))
		return true;
	table->marks_lost |= side->outcome.nback > 0;
	side->asked = !table->marks_lost;
	cut = chance(c, 50) ? table->made.rows : 1 + table->made.rows / 500 + random_below(c, 1000);
	for (uint64_t row = 0; row < table->made.rows && side->asked; row += cut)
	{
		GhScanRequest request = {.unmatched = 1,.first_row = row,.nrows = cut};

		if (cut > table->made.rows - row)
			request.nrows = table->made.rows - row;
		if (scans->submit(side->scan, &request) == GH_BUSY)
			(void) scans->wait(&request);
		if (lacks_memory(request.status) && side->trial.fail_at > 0 &&
			scans->submit(side->scan, &request) == GH_BUSY)
			(void) scans->wait(&request);
		if (!CHECK_STATUS(c, request.error.message, request.status, GH_OK))
			return false;
		CHECK_U64(c, "tuples seen without a match", request.seen + request.passed, 0);
		side->lacking |= request.nback > 0;
		CHECK(c, request.nback == 0 || side->trial.fail_at > 0 || options->memory_limit > 0, "%" PRIu64 " rows without a match go back", request.nback);
		side->outcome.counted += request.counted;
		for (uint32_t j = 0; j < GH_SCAN_JOINS_MAX; j++)
			side->outcome.joined[j] += request.joined[j];
	}
	return true;
}

bool
side_run(Context *c, Side *side, const GhEngine *engine)
{
	const GhScanEngine *scans = engine->scans;
	GhScanOptions options = side->trial.options;
	GhScanStats stats = {0};
	GhError		error = {0};
	GhHost		host;
	GhStatus	status;
	bool		good;

	side->engine = engine;
	side->scan = NULL;
	side->marks_lost = side->asked = side->lacking = false;
	host_init(&side->state, &host);
	side->state.fail_at = side->state.refuse_at = side->trial.fail_at;
	outcome_make(&side->outcome, &side->trial);
	for (uint32_t j = 0; j < options.njoins; j++)
		side->joins[j].table = side->tables[j]->scan;
	status = scans->create(&host, &options, &side->scan, &error);
	if (lacks_memory(status) && side->trial.fail_at > 0)
		status = scans->create(&host, &options, &side->scan, &error);
	if (!CHECK(c, status == GH_OK, "create: %s", error.message))
		return false;
	good = trial_requests(c, &side->trial, scans, side->scan, side->trial.pages,
						  side->trial.bitmaps, &side->outcome);
	good = good && ask_unmatched(c, side);
	if (good && side->is_table)
	{
		status = scans->make_table(side->scan, &side->made, &error);
		if (lacks_memory(status) && (side->trial.fail_at > 0 || options.memory_limit > 0))
			return false;
		good = CHECK(c, status == GH_OK, "make_table: %s", error.message);
	}
	else if (good)
		good = trial_results(c, scans, side->scan, &side->outcome);
	if (good && CHECK_STATUS(c, "stats", scans->stats(side->scan, &stats, &error), GH_OK))
	{
		CHECK(c, options.memory_limit == 0 || stats.bytes_peak <= options.memory_limit, "%" PRIu64
			  " bytes of %" PRIu64, stats.bytes_peak, options.memory_limit);
		CHECK_U64(c, "rows in all", stats.counted, side->outcome.counted);
		CHECK(c, !side->is_table || stats.groups == side->made.rows, "%" PRIu64 " rows of a table, "
			  "not %" PRIu64, stats.groups, side->made.rows);
	}
	return good;
}

void
side_end(Context *c, Side *side)
{
	if (side->scan != NULL)
		side->engine->scans->destroy(side->scan);
	side->scan = NULL;
	outcome_drop(&side->outcome);
	CHECK_U64(c, "bytes left", side->state.allocated + side->state.device_bytes, 0);
	CHECK(c, !side->state.overdrawn && !side->state.damaged, "the host's memory was misused");
}
