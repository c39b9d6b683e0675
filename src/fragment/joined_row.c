/*
 * joined_row.c
 *		One row that comes in, joined: an engine has handed it back, or there is no program for it yet.
 *
 * What its keys find is asked of the same tables by a pipeline of its own, which returns the inner columns of each
 * row that it becomes.  They are evaluated with the row's own columns by PostgreSQL's expressions.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"

#include "fragment/joined.h"
#include "fragment/records.h"
#include "expr/translate.h"
#include "fragment/stage.h"

/* Its rows are read about so many bytes at a time. */
#define GH_JOINED_BYTES ((Size) 64 * 1024)

typedef struct GhJoinedRow
{
	GhStage    *stage;
	GhTranslation *translation;
	uint32		ngiven;			/* columns of what comes in: they are keys */
	uint16	   *given;
	GhVector   *vectors;		/* of one row */
	int			nvalues;		/* columns of inner sides */
	GhScanKey  *values;
	GhValueType *types;
	int		   *value_numbers;	/* by column of the fragment's child; -1: it is one of what comes in */
	bool	   *by_ref;			/* likewise: the value is where the inner row is stored (GhLowerJoin.by_ref) */
	GhBackRow	back;
	GhRecordBuffer buffer;
} GhJoinedRow;

/* ---------------------------------------------------------- the pipeline */

static void
translate_column(GhJoinedRow *row, int attno, GhOperand *operand)
{
	if (!gh_translate_attribute(row->translation, attno, operand))
		elog(ERROR, "a column of a hash join cannot be read: %s", row->translation->why_not);
}

/* The number of a value that the pipeline returns. */
static int
add_value(GhJoinedRow *row, int attno)
{
	Form_pg_attribute attribute = TupleDescAttr(row->translation->desc, attno - 1);
	GhOperand	operand = {0};
	GhClass		value_class;

	translate_column(row, attno, &operand);
	value_class = operand.value_class;
	for (int v = 0; v < row->nvalues; v++)
		if (row->values[v].vector == operand.vector)
			return v;
	if (row->nvalues == GH_VALUES_MAX)
		elog(ERROR, "too many columns of hash joins are read");
	row->values[row->nvalues].vector = operand.vector;
	row->values[row->nvalues].value_class = gh_vector_class(value_class);
	if (!gh_value_type_init(&row->types[row->nvalues], attribute->atttypid, value_class, operand.scale))
		elog(ERROR, "type %u is not known to the engines", attribute->atttypid);
	return row->nvalues++;
}

/* The keys of all levels that are probed, and the values. */
static GhProgram *
make_program(GhFragment *fragment, GhJoinedRow *row, uint16 **key_vectors)
{
	const GhJoined *joined = fragment->joined;
	GhProgram  *program;
	GhError		error;

	row->translation = gh_translate_begin(gh_joined_desc(fragment), gh_joined_varno(fragment));
	for (int c = 0; c < fragment->ncolumns; c++)
	{
		GhColumnSource source = joined->sources[c];

		row->by_ref[c] = source.level >= 0 && joined->levels[source.level].lower->by_ref[source.column];
		if (row->by_ref[c])
			TupleDescInitEntry(row->translation->desc, gh_joined_attno(fragment, source), NULL, INT8OID, -1, 0);
	}
	for (int i = joined->base + 1; i < joined->nlevels; i++)
	{
		const GhJoinLevel *level = &joined->levels[i];

		key_vectors[i] = palloc(sizeof(uint16) * level->nkeys);
		for (int k = 0; k < level->nkeys; k++)
		{
			GhOperand	operand = {0};

			translate_column(row, gh_joined_attno(fragment, level->keys[k]), &operand);
			key_vectors[i][k] = operand.vector;
		}
	}
	for (int c = 0; c < fragment->ncolumns; c++)
		row->value_numbers[c] = joined->sources[c].level < 0 ? -1 :
			add_value(row, gh_joined_attno(fragment, joined->sources[c]));
	/* there are no rows of no values */
	if (row->nvalues == 0)
		(void) add_value(row, gh_joined_attno(fragment, joined->levels[joined->base + 1].keys[0]));
	program = gh_translate_end(row->translation);
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
		if (gh_joined_level_of(fragment, columns[v].attribute) != number)
			continue;
		fills[probe->nfills].column = v;
		fills[probe->nfills].kept = columns[v].attribute - fragment->joined->levels[number].first_attno;
		probe->nfills++;
	}
	probe->fills = fills;
}

static void
make_given(const GhFragment *fragment, const GhProgram *program, GhJoinedRow *row)
{
	const GhColumn *columns = gh_program_columns(program);

	row->given = palloc(sizeof(uint16) * Max(program->ncolumns, 1));
	for (uint32 v = 0; v < program->ncolumns; v++)
		if (columns[v].attribute <= gh_joined_natts(fragment))
			row->given[row->ngiven++] = v;
	row->vectors = gh_vectors_create(row->ngiven, 1);
}

static GhJoinedRow *
make_row(GhFragment *fragment)
{
	const GhJoined *joined = fragment->joined;
	int			nprobes = gh_joined_nprobes(fragment);
	GhJoinedRow *row = palloc0(sizeof(GhJoinedRow));
	uint16	  **key_vectors = palloc(sizeof(uint16 *) * joined->nlevels);
	GhProbe    *probes = palloc(sizeof(GhProbe) * nprobes);
	GhStep	   *steps = palloc0(sizeof(GhStep) * nprobes);
	GhPipelineOptions options;
	GhProgram  *program;
	GhError		error;

	row->values = palloc0(sizeof(GhScanKey) * GH_VALUES_MAX);
	row->types = palloc0(sizeof(GhValueType) * GH_VALUES_MAX);
	row->value_numbers = palloc(sizeof(int) * Max(fragment->ncolumns, 1));
	row->by_ref = palloc(sizeof(bool) * Max(fragment->ncolumns, 1));
	row->buffer.context = CurrentMemoryContext;
	program = make_program(fragment, row, key_vectors);
	make_given(fragment, program, row);
	gh_stage_options(NULL, program, &options);
	options.source.natts = gh_joined_natts(fragment);
	for (int p = 0; p < nprobes; p++)
	{
		int			number = joined->base + 1 + p;

		gh_joined_probe(&joined->levels[number], key_vectors[number], joined->levels[number].lower->table, NULL, &probes[p]);
		add_fills(fragment, program, number, &probes[p]);
		steps[p].probe = p + 1;
	}
	options.nsteps = options.nprobes = nprobes;
	options.steps = steps;
	options.probes = probes;
	options.sink.kind = GH_SINK_ROWS;
	options.sink.rows.nvalues = row->nvalues;
	options.sink.rows.values = row->values;
	row->stage = gh_stage_create(&options, NULL, CurrentMemoryContext, &error);
	if (row->stage == NULL)
		elog(ERROR, "%s", error.message);
	return row;
}

/* ------------------------------------------------------------------ a row */

static void
run(GhFragment *fragment, GhJoinedRow *row, const Datum *values, const bool *nulls)
{
	const GhColumn *columns = gh_program_columns(row->stage->pipeline->plan->options.program);
	GhPipelineRequest request = {0};

	for (uint32 g = 0; g < row->ngiven; g++)
	{
		const GhColumn *column = &columns[row->given[g]];
		int			at = column->attribute - 1;

		row->vectors[g].null[0] = nulls[at];
		/* keys are whole numbers, which vectors always hold */
		if (!nulls[at] && !gh_store_value((GhLoad) column->load, column->scale, values[at], &row->vectors[g], 0))
			elog(ERROR, "a key of a hash join is none that engines hold");
	}
	request.kind = GH_INPUT_COLUMNS;
	request.ngiven = row->ngiven;
	request.given = row->given;
	request.vectors = row->vectors;
	request.back = &row->back;
	request.count = request.back_room = 1;
	gh_stage_run(row->stage, &request);
	if (request.nback > 0)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory for the rows that one becomes by hash joins")));
	gh_joined_count(fragment, request.passed);
}

/* The value of a column that comes from a stored row, where the pipeline has told where that is. */
static Datum
stored_value(const GhFragment *fragment, int column, uint64 ref)
{
	GhColumnSource source = fragment->joined->sources[column];
	const GhLowerJoin *lower = fragment->joined->levels[source.level].lower;

	return lower->methods->stored_value(lower, source.column, ref);
}

/* Of what the row has become, the first of some records, of which so many bytes are left; its size. */
static Size
add_record(GhFragment *fragment, const GhJoinedRow *row, const char *records, Size left, const Datum *values,
		   const bool *nulls)
{
	const GhScanGroup *record = gh_scan_record_of(records, left, row->nvalues);
	TupleTableSlot *to = fragment->css.ss.ss_ScanTupleSlot;
	MemoryContext saved;

	CHECK_FOR_INTERRUPTS();
	ResetExprContext(fragment->css.ss.ps.ps_ExprContext);
	saved = MemoryContextSwitchTo(fragment->css.ss.ps.ps_ExprContext->ecxt_per_tuple_memory);
	for (int c = 0; c < fragment->ncolumns; c++)
	{
		int			number = row->value_numbers[c];
		int			at = fragment->joined->sources[c].column - 1;
		GhSqlValue	value = {0};

		if (number >= 0)
			value = gh_scan_record_value(record, number, &row->types[number]);
		to->tts_isnull[c] = value.kind == GH_SQL_NULL;
		if (number >= 0 && row->by_ref[c])
			to->tts_values[c] = to->tts_isnull[c] ? (Datum) 0 : stored_value(fragment, c, value.low);
		else if (number >= 0)
			to->tts_values[c] = gh_datum_of_value(&row->types[number], value, &to->tts_isnull[c]);
		else
		{
			to->tts_values[c] = values[at];
			to->tts_isnull[c] = nulls[at];
		}
	}
	MemoryContextSwitchTo(saved);
	fragment->methods->add_row(fragment);
	return record->bytes;
}

/*
 * Adds all rows that one becomes which comes in, and whose columns these are.  They have passed the scan's conditions.
 */
void
gh_joined_add_row(GhFragment *fragment, const Datum *values, const bool *nulls)
{
	GhJoinedRow *row = fragment->program.joined_row;
	GhCursor	cursor = {0};
	Size		room = GH_JOINED_BYTES;

	if (row == NULL)
	{
		MemoryContext saved = MemoryContextSwitchTo(fragment->program.context);

		row = fragment->program.joined_row = make_row(fragment);
		MemoryContextSwitchTo(saved);
	}
	run(fragment, row, values, nulls);
	while (!cursor.finished)
	{
		char	   *records = gh_record_buffer(&row->buffer, room);
		Size		bytes = 0;

		if (gh_stage_results(row->stage, &cursor, row->buffer.size, records, &bytes) == GH_TOO_SMALL)
		{
			room = bytes;
			continue;
		}
		for (Size at = 0; at < bytes;)
			at += add_record(fragment, row, records + at, bytes - at, values, nulls);
		fragment->methods->keep_within_memory(fragment);
	}
	gh_stage_clear(row->stage);
}
