/*
 * joined_row.c
 *		One row that comes in, joined: an engine has handed it back, or there is no program for it yet.
 *
 * What its keys find is asked of the same tables by pipelines of their own, which return the inner columns of
 * each row that it becomes.  Where no join has conditions beside its keys one pipeline does all joins.  Else
 * the joins are done in parts, one behind the other: a part ends with a join that has conditions on the
 * joined row, and one that has conditions on the pair is a part of its own, whose pipeline returns all
 * candidates.  PostgreSQL's expressions decide on these, as the join would: so the row and all its candidates
 * are handed back together.
 *
 * The row's columns grow from part to part: those that came in, and behind them, as programs number them,
 * those that the joins have found.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"

#include "compat.h"
#include "fragment/joined.h"
#include "fragment/records.h"
#include "expr/translate.h"
#include "fragment/stage.h"

/* Its rows are read about so many bytes at a time. */
#define GH_JOINED_BYTES ((Size) 64 * 1024)

/* Joins that a row goes through at once. */
typedef struct RowPart
{
	int			first;			/* their levels */
	int			last;
	bool		decides;		/* the pipeline returns candidates: conditions decide which of them match */
	bool		has_conditions; /* of the last one: its scan tuple is made */
	int		   *scan_columns;	/* by column of that, that of the row */
	MemoryContext context;		/* of values that the pipeline has returned, of one record */
	GhTranslation *translation;
	GhStage    *stage;
	GhEnteringRows *entering;	/* one, and its columns: they are keys */
	MemoryContext unpacked;		/* of keys that were compressed, or lie elsewhere */
	int			nvalues;		/* columns of inner sides */
	GhRecordKey  *values;
	GhValueType *types;
	int		   *value_columns;	/* by value: of the row; -1: it is asked for because there are no rows of no values */
	GhRecordBuffer buffer;
} RowPart;

typedef struct GhJoinedRow
{
	int			nparts;
	RowPart    *parts;
	int			ncolumns;		/* of the row, which programs count from 1, */
	Datum	   *values;
	bool	   *nulls;
	bool	   *needed;			/* of an inner side: it is read behind the part that finds it */
	bool	   *by_ref;			/* the value is where the inner row is stored (GhLowerJoin.by_ref) */
	int		   *columns;		/* by column of the fragment's child, that of the row */
} GhJoinedRow;

/* ---------------------------------------------------------------- the parts */

/* A column of the row. */
static int
row_column(GhFragment *fragment, GhColumnSource source)
{
	return gh_joined_attno(fragment->joined, source) - 1;
}

/* Where the row is told that conditions of a join want its columns. */
static void
add_scan_columns(GhFragment *fragment, GhJoinedRow *row, RowPart *part)
{
	const GhLowerJoin *lower = fragment->joined->levels[part->last].lower;

	part->scan_columns = palloc(sizeof(int) * Max(lower->ncolumns, 1));
	for (int c = 0; c < lower->ncolumns; c++)
	{
		part->scan_columns[c] = row_column(fragment, gh_joined_scan_source(fragment->joined, part->last, c));
		row->needed[part->scan_columns[c]] = true;
	}
}

/* Divides the joins. */
static void
make_parts(GhFragment *fragment, GhJoinedRow *row)
{
	const GhJoined *joined = fragment->joined;
	int			first = joined->base + 1;

	row->parts = palloc0(sizeof(RowPart) * gh_joined_nprobes(fragment));
	for (int i = first; i < joined->nlevels; i++)
	{
		const GhLowerJoin *lower = joined->levels[i].lower;
		bool		ends = i == joined->nlevels - 1 || gh_lower_has_conditions(lower) ||
			joined->levels[i + 1].lower->join_quals != NIL;
		RowPart    *part = &row->parts[row->nparts];

		if (!ends)
			continue;
		part->first = first;
		part->last = i;
		part->decides = lower->join_quals != NIL;
		part->has_conditions = gh_lower_has_conditions(lower);
		if (part->has_conditions)
			add_scan_columns(fragment, row, part);
		row->nparts++;
		first = i + 1;
	}
}

/* Which columns are read of what a part has found: those that come out, and keys of later ones. */
static void
find_needed(GhFragment *fragment, GhJoinedRow *row)
{
	const GhJoined *joined = fragment->joined;

	for (int c = 0; c < fragment->ncolumns; c++)
	{
		row->columns[c] = row_column(fragment, joined->sources[c]);
		row->needed[row->columns[c]] = true;
	}
	for (int p = 0; p < row->nparts; p++)
		for (int i = row->parts[p].first; i <= row->parts[p].last; i++)
			for (int k = 0; k < joined->levels[i].nkeys; k++)
				if (joined->levels[i].keys[k].level < row->parts[p].first)
					row->needed[row_column(fragment, joined->levels[i].keys[k])] = true;
}

static void
find_refs(GhFragment *fragment, GhJoinedRow *row)
{
	const GhJoined *joined = fragment->joined;

	for (int i = joined->base + 1; i < joined->nlevels; i++)
		for (int c = 0; c < joined->levels[i].lower->nkept; c++)
			row->by_ref[joined->levels[i].first_attno - 1 + c] = joined->levels[i].lower->by_ref[c];
}

/* ------------------------------------------------------- the pipeline of a part */

static void
translate_column(RowPart *part, int attno, GhOperand *operand)
{
	if (!gh_translate_attribute(part->translation, attno, operand))
		elog(ERROR, "a column of a hash join cannot be read: %s", part->translation->why_not);
}

/* A value that the pipeline returns. */
static void
add_value(RowPart *part, int attno, int column)
{
	Form_pg_attribute attribute = TupleDescAttr(part->translation->desc, attno - 1);
	GhOperand	operand = {0};

	if (part->nvalues == GH_VALUES_MAX)
		elog(ERROR, "too many columns of hash joins are read");
	translate_column(part, attno, &operand);
	part->values[part->nvalues].vector = operand.vector;
	part->values[part->nvalues].value_class = gh_vector_class(operand.value_class);
	part->value_columns[part->nvalues] = column;
	if (!gh_value_type_init(&part->types[part->nvalues], attribute->atttypid, operand.value_class, operand.scale))
		elog(ERROR, "type %u is not known to the engines", attribute->atttypid);
	part->nvalues++;
}

/* Of the part's joins, the kept inner columns that are read. */
static void
add_values(const GhFragment *fragment, const GhJoinedRow *row, RowPart *part)
{
	part->values = palloc0(sizeof(GhRecordKey) * GH_VALUES_MAX);
	part->types = palloc0(sizeof(GhValueType) * GH_VALUES_MAX);
	part->value_columns = palloc(sizeof(int) * GH_VALUES_MAX);
	for (int i = part->first; i <= part->last; i++)
	{
		const GhJoinLevel *level = &fragment->joined->levels[i];

		for (int c = 0; c < level->lower->nkept; c++)
			if (row->needed[level->first_attno - 1 + c])
				add_value(part, level->first_attno + c, level->first_attno - 1 + c);
	}
}

/* The keys of the part's joins, and the values. */
static GhProgram *
make_program(GhFragment *fragment, const GhJoinedRow *row, RowPart *part, GhOperand **keys)
{
	const GhJoined *joined = fragment->joined;
	GhProgram  *program;
	GhError		error;

	part->translation = gh_translate_begin(gh_joined_desc(fragment->joined), gh_joined_varno(fragment->joined));
	for (int c = 0; c < row->ncolumns; c++)
		if (row->by_ref[c])
			TupleDescInitEntry(part->translation->desc, c + 1, NULL, INT8OID, -1, 0);
	gh_finish_desc(part->translation->desc);
	for (int i = part->first; i <= part->last; i++)
	{
		const GhJoinLevel *level = &joined->levels[i];

		keys[i] = palloc0(sizeof(GhOperand) * level->nkeys);
		for (int k = 0; k < level->nkeys; k++)
			translate_column(part, gh_joined_attno(fragment->joined, level->keys[k]), &keys[i][k]);
		if (!gh_lower_translate_key(level->lower, part->translation, keys[i]))
			elog(ERROR, "keys of a hash join have no code: %s", part->translation->why_not);
	}
	add_values(fragment, row, part);
	/* there are no rows of no values */
	if (part->nvalues == 0)
		add_value(part, gh_joined_attno(fragment->joined, joined->levels[part->first].keys[0]), -1);
	program = gh_translate_end(part->translation);
	if (program == NULL || gh_program_check(program, program->bytes, &error) != GH_OK)
		elog(ERROR, "the columns of hash joins cannot be read");
	return program;
}

/* What the probe of a level fills. */
static void
add_fills(const GhFragment *fragment, const GhProgram *program, int number, GhProbe *probe)
{
	const GhColumn *columns = gh_program_columns(program);
	GhProbeFill *fills = palloc0(sizeof(GhProbeFill) * Max(program->ncolumns, 1));

	for (uint32 v = 0; v < program->ncolumns; v++)
	{
		if (gh_joined_level_of(fragment->joined, columns[v].attribute) != number)
			continue;
		fills[probe->nfills].column = v;
		fills[probe->nfills].kept = columns[v].attribute - fragment->joined->levels[number].first_attno;
		probe->nfills++;
	}
	probe->fills = fills;
}

/* The probes of a part, all candidates being what comes out where conditions decide. */
static GhProbe *
make_probes(GhFragment *fragment, const RowPart *part, const GhProgram *program, GhOperand **keys)
{
	GhProbe    *probes = palloc(sizeof(GhProbe) * (part->last - part->first + 1));

	for (int i = part->first; i <= part->last; i++)
	{
		const GhJoinLevel *level = &fragment->joined->levels[i];
		GhProbe    *probe = &probes[i - part->first];
		uint16	   *vectors = palloc(sizeof(uint16) * level->nkeys);

		for (int k = 0; k < gh_lower_nparts(level->lower); k++)
			vectors[k] = gh_final_vector(part->translation, &keys[i][k]);
		gh_joined_probe(level, vectors, level->lower->table, NULL, probe);
		if (part->decides)
			probe->kind = GH_PROBE_INNER;
		add_fills(fragment, program, i, probe);
	}
	return probes;
}

static void
make_stage(GhFragment *fragment, const GhJoinedRow *row, RowPart *part)
{
	int			nprobes = part->last - part->first + 1;
	GhOperand **keys = palloc(sizeof(GhOperand *) * fragment->joined->nlevels);
	GhStep	   *steps = palloc0(sizeof(GhStep) * (nprobes + 1));
	GhProgram  *program = make_program(fragment, row, part, keys);
	GhPipelineOptions options;
	GhError		error;

	gh_stage_options(NULL, program, &options);
	options.source.natts = fragment->joined->levels[part->first].first_attno - 1;
	part->entering = gh_entering_create(program, options.source.natts, 1);
	/* a key's code comes first: such a join is a part of its own, for its conditions on the pair */
	steps[0].end = program->ninstructions;
	options.nsteps = program->ninstructions > 0 ? 1 : 0;
	for (int p = 0; p < nprobes; p++)
		steps[options.nsteps++] = (GhStep) {.end = program->ninstructions,.probe = p + 1};
	options.nprobes = nprobes;
	options.steps = steps;
	options.probes = make_probes(fragment, part, program, keys);
	options.sink.kind = GH_SINK_ROWS;
	options.sink.rows.nvalues = part->nvalues;
	options.sink.rows.values = part->values;
	part->buffer.context = CurrentMemoryContext;
	part->context = AllocSetContextCreate(CurrentMemoryContext, "GpuHash joined row", ALLOCSET_SMALL_SIZES);
	part->unpacked = AllocSetContextCreate(CurrentMemoryContext, "GpuHash joined row's keys", ALLOCSET_SMALL_SIZES);
	part->stage = gh_stage_create(&options, NULL, CurrentMemoryContext, &error);
	if (part->stage == NULL)
		elog(ERROR, "%s", error.message);
}

static GhJoinedRow *
make_row(GhFragment *fragment)
{
	GhJoinedRow *row = palloc0(sizeof(GhJoinedRow));

	row->ncolumns = gh_joined_place_attno(fragment->joined, fragment->joined->nlevels - 1);
	row->values = palloc0(sizeof(Datum) * row->ncolumns);
	row->nulls = palloc(sizeof(bool) * row->ncolumns);
	memset(row->nulls, true, row->ncolumns);
	row->needed = palloc0(sizeof(bool) * row->ncolumns);
	row->by_ref = palloc0(sizeof(bool) * row->ncolumns);
	row->columns = palloc(sizeof(int) * Max(fragment->ncolumns, 1));
	make_parts(fragment, row);
	find_needed(fragment, row);
	find_refs(fragment, row);
	for (int p = 0; p < row->nparts; p++)
		make_stage(fragment, row, &row->parts[p]);
	return row;
}

/* ------------------------------------------------------------------ a row */

/*
 * The row's columns, of which values that lie elsewhere are fetched: the join's hash function would fetch
 * them, too.
 */
static const Datum *
fetched_values(const GhJoinedRow *row, RowPart *part)
{
	const GhEnteringRows *entering = part->entering;
	MemoryContext saved = MemoryContextSwitchTo(part->unpacked);
	Datum	   *values = palloc(sizeof(Datum) * row->ncolumns);

	memcpy(values, row->values, sizeof(Datum) * row->ncolumns);
	for (uint32 g = 0; g < entering->ngiven; g++)
	{
		const GhColumn *column = &entering->columns[entering->given[g]];
		Datum	   *value = &values[column->attribute - 1];

		if ((column->load == GH_LOAD_TEXT || column->load == GH_LOAD_NUMERIC) && !row->nulls[column->attribute - 1] &&
			VARATT_IS_EXTERNAL(DatumGetPointer(*value)))
			*value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(*value));
	}
	MemoryContextSwitchTo(saved);
	return values;
}

/*
 * The row enters a part's pipeline.  A numeric that no vector holds, as NaN, is no inner row's key: there is
 * no such table.
 */
static void
run(GhFragment *fragment, GhJoinedRow *row, RowPart *part)
{
	GhPipelineRequest request;

	MemoryContextReset(part->unpacked);
	if (!gh_entering_put(part->entering, 0, fetched_values(row, part), row->nulls, part->unpacked))
		return;
	gh_stage_rows(part->stage, 0, part->entering, 1, &request);
	if (request.nback > 0)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory for the rows that one becomes by hash joins")));
	for (int i = part->first; i < part->last; i++)
		fragment->joined->levels[i].rows += request.passed[i - part->first];
}

/* The value of a column that comes from a stored row, where the pipeline has told where that is. */
static Datum
stored_value(const GhFragment *fragment, int column, uint64 ref)
{
	const GhJoinLevel *level = &fragment->joined->levels[gh_joined_level_of(fragment->joined, column + 1)];

	return level->lower->methods->stored_value(level->lower, column + 1 - level->first_attno, ref);
}

/* What a part has found, of the first of some records, of which so many bytes are left; its size. */
static Size
load_record(GhFragment *fragment, GhJoinedRow *row, const RowPart *part, const char *records, Size left)
{
	const GhRecordHead *record = gh_record_of(records, left, part->nvalues);
	MemoryContext saved;

	CHECK_FOR_INTERRUPTS();
	MemoryContextReset(part->context);
	saved = MemoryContextSwitchTo(part->context);
	for (int v = 0; v < part->nvalues; v++)
	{
		int			column = part->value_columns[v];
		GhSqlValue	value;

		if (column < 0)
			continue;
		value = gh_record_value(record, v, &part->types[v]);
		row->nulls[column] = value.kind == GH_SQL_NULL;
		if (!row->by_ref[column])
			row->values[column] = gh_datum_of_value(&part->types[v], value, &row->nulls[column]);
		else if (!row->nulls[column])
			row->values[column] = stored_value(fragment, column, value.low);
	}
	MemoryContextSwitchTo(saved);
	return record->bytes;
}

/* Without a match there are no inner columns. */
static void
load_nulls(const GhFragment *fragment, GhJoinedRow *row, const RowPart *part)
{
	const GhJoinLevel *level = &fragment->joined->levels[part->last];

	memset(row->nulls + level->first_attno - 1, true, level->lower->nkept);
}

/* What the part's last join evaluates. */
static GhLowerJoin *
load_scan_tuple(const GhFragment *fragment, const GhJoinedRow *row, const RowPart *part)
{
	GhLowerJoin *lower = fragment->joined->levels[part->last].lower;
	TupleTableSlot *scan = ((ScanState *) lower->ps)->ss_ScanTupleSlot;

	for (int c = 0; c < lower->ncolumns; c++)
	{
		scan->tts_values[c] = row->values[part->scan_columns[c]];
		scan->tts_isnull[c] = row->nulls[part->scan_columns[c]];
	}
	return lower;
}

static void join_part(GhFragment *fragment, GhJoinedRow *row, int number);

/* The row has come through a part: it goes on, if the last join there lets it come out. */
static void
go_on(GhFragment *fragment, GhJoinedRow *row, int number)
{
	const RowPart *part = &row->parts[number];
	GhJoinLevel *level = &fragment->joined->levels[part->last];

	if (part->has_conditions && !level->lower->methods->comes_out(load_scan_tuple(fragment, row, part)))
	{
		InstrCountFiltered1(level->lower->ps, 1);
		return;
	}
	level->rows++;
	join_part(fragment, row, number + 1);
}

/*
 * A candidate, which the row has the columns of.  *matched: one of them was a match.  False: no other one is
 * to be looked at.
 */
static bool
try_candidate(GhFragment *fragment, GhJoinedRow *row, int number, bool *matched)
{
	const RowPart *part = &row->parts[number];
	GhLowerJoin *lower = load_scan_tuple(fragment, row, part);

	if (!lower->methods->is_match(lower))
		return true;
	*matched = true;
	if (lower->jointype != JOIN_ANTI)
		go_on(fragment, row, number);
	return !lower->single_match;
}

/* All that a part's pipeline has returned; *matched: there was a match of the last join. */
static void
take_records(GhFragment *fragment, GhJoinedRow *row, int number, bool *matched)
{
	RowPart    *part = &row->parts[number];
	GhCursor	cursor = {0};
	Size		room = GH_JOINED_BYTES;
	bool		more = true;

	while (more && !cursor.finished)
	{
		char	   *records = gh_record_buffer(&part->buffer, room);
		Size		bytes = 0;

		if (gh_stage_results(part->stage, &cursor, part->buffer.size, records, &bytes) == GH_TOO_SMALL)
		{
			room = bytes;
			continue;
		}
		for (Size at = 0; more && at < bytes;)
		{
			at += load_record(fragment, row, part, records + at, bytes - at);
			if (part->decides)
				more = try_candidate(fragment, row, number, matched);
			else
				go_on(fragment, row, number);
		}
		fragment->methods->keep_within_memory(fragment);
	}
}

/* The row has come through all joins. */
static void
add_row(GhFragment *fragment, const GhJoinedRow *row)
{
	TupleTableSlot *to = fragment->css.ss.ss_ScanTupleSlot;

	ResetExprContext(fragment->css.ss.ps.ps_ExprContext);
	for (int c = 0; c < fragment->ncolumns; c++)
	{
		to->tts_values[c] = row->values[row->columns[c]];
		to->tts_isnull[c] = row->nulls[row->columns[c]];
	}
	fragment->methods->add_row(fragment);
}

/* The row enters a part, and whatever becomes of it there the next one. */
static void
join_part(GhFragment *fragment, GhJoinedRow *row, int number)
{
	RowPart    *part = &row->parts[number];
	JoinType	jointype;
	bool		matched = false;

	if (number == row->nparts)
	{
		add_row(fragment, row);
		return;
	}
	jointype = fragment->joined->levels[part->last].lower->jointype;
	run(fragment, row, part);
	take_records(fragment, row, number, &matched);
	gh_stage_clear(part->stage);
	if (!part->decides || matched || (jointype != JOIN_LEFT && jointype != JOIN_ANTI))
		return;
	load_nulls(fragment, row, part);
	go_on(fragment, row, number);
}

/*
 * Adds all rows that one becomes which comes in, and whose columns these are.  They have passed the scan's
 * conditions.
 */
void
gh_joined_add_row(GhFragment *fragment, const Datum *values, const bool *nulls)
{
	GhJoinedRow *row = fragment->program.joined_row;
	int			natts = gh_joined_natts(fragment->joined);

	if (row == NULL)
	{
		MemoryContext saved = MemoryContextSwitchTo(fragment->program.context);

		row = fragment->program.joined_row = make_row(fragment);
		MemoryContextSwitchTo(saved);
	}
	memcpy(row->values, values, sizeof(Datum) * natts);
	memcpy(row->nulls, nulls, sizeof(bool) * natts);
	join_part(fragment, row, 0);
}
