/*
 * probed.c
 *		The table of a join whose outer side the node above reads, and which it probes by steps of a pipeline
 *		(../engine/pipeline/pipeline.h).
 *
 * A pipeline of the CPU engine makes it, of pages (probed_pages.c), of rows as they come (probed_rows.c), or
 * of the stored rows, with all columns that the join keeps of them: so a match is complete when it is found,
 * and a key may have any number of rows.  Rows that are stored stay, so that the join can still return them,
 * as ever.
 *
 * The participants of a parallel join make it together, in the phases of parallel.h: each enters the rows
 * that it has read or stored.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "compat.h"
#include "engine/pipeline/record_row.h"
#include "expr/translate.h"
#include "expr/values.h"
#include "fragment/stage.h"
#include "gpuhash.h"
#include "join/join.h"
#include "join/parallel.h"
#include "service/placement.h"

#define GH_PROBED_VARNO 1
/* Rows go to the pipeline early when values that were compressed take this much memory. */
#define GH_VALUES_BYTES_MAX ((Size) 1024 * 1024)

#define GH_MAKING "make the table of a hash join"

/* Rows on their way to the pipeline. */
typedef struct Filler
{
	GhJoinState *js;
	GhStage    *stage;
	MemoryContext unpacked;		/* values that were compressed */
	GhEnteringRows *rows;
	uint32		nrows;			/* that wait */
} Filler;

/* --------------------------------------------------------------- set-up */

/* The code of the key columns, which are kept. */
static bool
translate_code(const GhJoinState *js, GhTranslation *translation, GhOperand *code)
{
	int			nkeys = js->keys[GH_INNER].ncolumns;
	GhOperand  *keys = palloc0(sizeof(GhOperand) * nkeys);

	for (int k = 0; k < nkeys; k++)
		if (!gh_translate_attribute(translation, gh_lower_kept_key(&js->lower, k) + 2, &keys[k]))
			return false;
	return gh_translate_key_code(translation, js->hash_clauses, keys, code);
}

/* The program that says what a row is: its key, and each column that is kept. */
static GhProgram *
translate_row(const GhJoinState *js, GhProbed *probed, const bool *read)
{
	const GhColumns *columns = &js->columns[GH_INNER];
	TupleDesc	inner = ExecGetResultType(gh_child(js, GH_INNER));
	TupleDesc	desc = CreateTemplateTupleDesc(columns->ncolumns + 1);
	GhTranslation *translation;
	GhProgram  *program;
	GhOperand	code = {0};

	TupleDescInitEntry(desc, 1, NULL, INT8OID, -1, 0);
	for (int c = 0; c < columns->ncolumns; c++)
	{
		Form_pg_attribute attribute = TupleDescAttr(inner, columns->attnos[c] - 1);

		probed->by_ref[c] = (read != NULL && !read[c]) ||
			gh_class_of_type(attribute->atttypid) == 0;
		probed->has_refs |= probed->by_ref[c];
		if (probed->by_ref[c])
			TupleDescInitEntry(desc, c + 2, NULL, INT8OID, -1, 0);
		else
			TupleDescCopyEntry(desc, c + 2, inner, columns->attnos[c]);
	}
	gh_finish_desc(desc);
	translation = gh_translate_begin(desc, GH_PROBED_VARNO);
	for (int c = 0; c <= columns->ncolumns; c++)
	{
		GhOperand	operand = {0};

		if (!gh_translate_attribute(translation, c + 1, &operand))
			return NULL;
		Assert(operand.vector == c);
	}
	if (js->is_coded && !translate_code(js, translation, &code))
		return NULL;
	program = gh_translate_end(translation);
	probed->key_vector = program != NULL && js->is_coded ? gh_final_vector(translation, &code) : 0;
	return program;
}

/* Bytes of memory that a row takes in the table, but for its texts. */
static Size
row_bytes(const GhProbed *probed, int nkept)
{
	double		bytes = gh_table_bytes_per_row(sizeof(uint64));

	/* a head, bits, and values */
	bytes += 2 * sizeof(uint64) + sizeof(uint64);
	for (int c = 0; c < nkept; c++)
		bytes += gh_class_has_high(probed->kept[c].value_class) ? 2 * sizeof(uint64) :
			probed->kept[c].bytes != 0 ? probed->kept[c].bytes : sizeof(uint64);
	return (Size) bytes;
}

/*
 * Before the join begins, by the node above: it may ask for such a table.  False: it may not.  read: by kept
 * inner column, whether a pipeline may read it; NULL: all.
 */
bool
gh_probed_init(GhJoinState *js, const bool *read)
{
	int			nkept = js->columns[GH_INNER].ncolumns;
	uint8		classes[GH_PROGRAM_VECTORS_MAX];
	GhProbed   *probed;
	GhProgram  *program;
	GhError		error;

	probed = palloc0(sizeof(GhProbed));
	probed->by_ref = palloc0(sizeof(bool) * Max(nkept, 1));
	program = translate_row(js, probed, read);
	if (program == NULL)
		return false;
	if (gh_program_check_classes(program, program->bytes, classes, &error) != GH_OK)
		elog(ERROR, "%s", error.message);
	probed->program = program;
	probed->step.end = program->ninstructions;
	probed->kept = palloc0(sizeof(GhKept) * Max(nkept, 1));
	for (int c = 0; c < nkept; c++)
	{
		probed->kept[c].vector = c + 1;
		probed->kept[c].value_class = classes[c + 1];
		probed->kept[c].bytes = gh_kept_bytes_of(&gh_program_columns(program)[c + 1]);
	}
	probed->row_bytes = row_bytes(probed, nkept);
	js->probed = probed;
	return true;
}

/* ---------------------------------------------------------- the pipeline */

/* The sink of about so many rows, but for the parts of the key.  Its arrays last as long as the join. */
void
gh_probed_sink(const GhJoinState *js, uint64 rows, GhSink *sink)
{
	GhTableOptions settings;

	gh_options_init(&settings, gh_cpu_engine());
	gh_stage_table_sink(&settings, sink);
	sink->table.nkept = js->columns[GH_INNER].ncolumns;
	sink->table.kept = js->probed->kept;
	/* which of a key's rows is a match may be up to conditions */
	sink->table.matches = js->single_match && js->lower.join_quals == NIL ? GH_MATCHES_ANY : GH_MATCHES_ALL;
	sink->table.expected = rows;
}

/*
 * Of stored rows, with keys, that take so many bytes of the limit.  What a row takes but for its texts is
 * there in any case: that has been looked at while they were stored.  Not so if they were stored for a
 * device, whose table takes nothing of it: then there may be no room for this table.
 */
static void
stage_options(const GhJoinState *js, uint64 rows, uint64 bytes, uint64 limit, GhKeyPart *part,
			  GhPipelineOptions *options)
{
	uint64		least = js->stored ? 0 : 2 * rows * js->probed->row_bytes;

	gh_stage_options(NULL, js->probed->program, options);
	options->source.natts = js->probed->program->ncolumns;
	options->nsteps = js->is_coded ? 1 : 0;
	options->steps = &js->probed->step;
	*part = (GhKeyPart) {.vector = js->probed->key_vector,.bits = GH_KEY_BITS};
	gh_probed_sink(js, rows, &options->sink);
	options->sink.table.nparts = 1;
	options->sink.table.parts = part;
	options->memory_limit = limit > bytes && limit - bytes > least ? limit - bytes : Max(least, 1);
}

static bool
is_full(const Filler *filler)
{
	return filler->nrows == GH_VECTOR_ROWS ||
		MemoryContextMemAllocated(filler->unpacked, false) > GH_VALUES_BYTES_MAX;
}

static void
filler_init(Filler *filler, GhJoinState *js, GhStage *stage, MemoryContext context)
{
	const GhProgram *program = js->probed->program;

	filler->js = js;
	filler->stage = stage;
	filler->unpacked = AllocSetContextCreate(context, "GpuHashJoin values", ALLOCSET_DEFAULT_SIZES);
	filler->rows = gh_entering_create(program, program->ncolumns, GH_VECTOR_ROWS);
	filler->nrows = 0;
}

/* The rows that wait go to the pipeline; false: it has no memory for them. */
static bool
flush(Filler *filler)
{
	GhPipelineRequest request;

	if (filler->nrows == 0)
		return true;
	gh_stage_rows(filler->stage, 0, filler->rows, filler->nrows, &request);
	filler->nrows = 0;
	MemoryContextReset(filler->unpacked);
	return request.nback == 0;
}

/* Puts a stored row among those that wait; false: one of its values is none that the engines hold. */
static bool
put_row(Filler *filler, GhRow *row, GhRowRef ref)
{
	const bool *by_ref = filler->js->probed->by_ref;
	const GhColumns *columns = &filler->js->columns[GH_INNER];
	const GhEnteringRows *rows = filler->rows;
	const bool *nulls = gh_row_nulls(row);

	rows->vectors[0].low[filler->nrows] = row->key;
	for (int c = 0; c < columns->ncolumns; c++)
	{
		Datum		value = by_ref[c] ? Int64GetDatum((int64) ref) : gh_row_datum(columns, row, c);

		if (!gh_store_value(&rows->columns[c + 1], value, nulls[c], filler->unpacked, &rows->vectors[c + 1],
							filler->nrows))
			return false;
	}
	filler->nrows++;
	return true;
}

/* All rows that this process has stored; false: the table cannot have them, or there is no memory. */
bool
gh_probed_enter_stored(GhJoinState *js, GhStage *stage, MemoryContext context)
{
	Filler		filler;
	GhRowCursor cursor = {0};
	GhRow	   *row;

	filler_init(&filler, js, stage, context);
	while ((row = gh_row_store_next(&js->store, &cursor)) != NULL)
	{
		if (!gh_row_has_key(row))
			continue;
		if (!put_row(&filler, row, cursor.ref))
			return false;
		if (is_full(&filler))
		{
			CHECK_FOR_INTERRUPTS();
			if (!flush(&filler))
				return false;
		}
	}
	return flush(&filler);
}

/* The table was made, and has taken so many bytes. */
static void
take_table(GhJoinState *js, const GhMadeTable *made, uint64 bytes)
{
	js->probed->table = made->table;
	js->engine = gh_cpu_engine();
	js->carried = true;
	js->table_bytes_peak = Max(js->table_bytes_peak, bytes);
}

/* ------------------------------------------------------- of one process */

/* Makes the table of what has come into the pipeline. */
GhStatus
gh_probed_take(GhJoinState *js, GhStage *stage)
{
	GhPipelineStats stats;
	GhMadeTable made;
	GhError		error;
	GhStatus	status = stage->pipeline->engine->make_table(stage->pipeline, &made, &error);

	if (status != GH_OK)
		return status;
	gh_stage_stats(stage, &stats);
	take_table(js, &made, stats.bytes_peak);
	return GH_OK;
}

static GhStatus
make(GhJoinState *js, MemoryContext context)
{
	GhPipelineOptions options;
	GhKeyPart	part;
	GhStage    *stage;
	GhStatus	status;
	GhError		error;

	stage_options(js, js->store.nkeys, gh_row_store_taken(&js->store), js->memory_limit, &part, &options);
	/* the table stays when the pipeline is gone */
	gh_host_init(&js->host, js->context);
	stage = gh_stage_create(&options, &js->host, context, &error);
	if (stage == NULL)
		return error.status;
	status = gh_probed_enter_stored(js, stage, context) ? GH_OK : GH_DECLINED;
	if (status == GH_OK)
		status = gh_probed_take(js, stage);
	gh_stage_destroy(stage);
	return status;
}

/*
 * Of rows as they come, so many of them expected.  The table is within memory as far as its rows were
 * counted; the index has sizes that are a quarter apart.
 */
static void
passed_options(const GhJoinState *js, double rows, uint64 limit, GhKeyPart *part, GhPipelineOptions *options)
{
	stage_options(js, (uint64) rows, 0, limit, part, options);
	options->memory_limit = limit + limit / 4;
}

/* Likewise of rows as they come, which may not all have come then. */
static GhStatus
pass(GhJoinState *js, MemoryContext context)
{
	GhPipelineOptions options;
	GhKeyPart	part;
	GhStage    *stage;
	GhStatus	status;
	GhError		error;

	passed_options(js, gh_child(js, GH_INNER)->plan->plan_rows, js->memory_limit, &part, &options);
	gh_host_init(&js->host, js->context);
	stage = gh_stage_create(&options, &js->host, context, &error);
	if (stage == NULL)
		return GH_DECLINED;
	status = gh_probed_pass_rows(js, stage, context) ? GH_OK : GH_DECLINED;
	/* the rows are read once: what was stopped goes on */
	while (status == GH_OK && (status = gh_probed_take(js, stage)) == GH_STOPPED)
	{
		gh_serve_interrupt();
		status = GH_OK;
	}
	gh_stage_destroy(stage);
	return status;
}

/* Has a table made, in a context for what that takes.  False: it cannot be made. */
bool
gh_probed_try(GhJoinState *js, GhStatus (*attempt) (GhJoinState *js, MemoryContext context))
{
	MemoryContext context = AllocSetContextCreate(js->context, "GpuHashJoin probed", ALLOCSET_DEFAULT_SIZES);
	GhStatus	status;

	do
	{
		MemoryContext saved = MemoryContextSwitchTo(context);

		status = attempt(js, context);
		MemoryContextSwitchTo(saved);
		MemoryContextReset(context);
		/* all of it again, if that returns */
		if (status == GH_STOPPED)
			gh_serve_interrupt();
	} while (status == GH_STOPPED);
	MemoryContextDelete(context);
	return status == GH_OK;
}

/* Makes the table of the stored rows, which stay.  False: it cannot be made. */
bool
gh_probed_make(GhJoinState *js)
{
	return gh_probed_try(js, make);
}

/*
 * Puts the rows of the inner side into a table as they come; false: there is none, and rows may have been
 * read.
 */
bool
gh_probed_pass(GhJoinState *js)
{
	if (!gh_probed_takes_rows(js) || !gh_probed_try(js, pass))
		return false;
	/* as of stored rows: no table of none, unless it takes that for an outer row to come out */
	if (js->inner_rows == 0 && !js->fill_outer)
	{
		gh_probed_drop(js);
		js->engine = NULL;
	}
	return true;
}

void
gh_probed_drop(GhJoinState *js)
{
	GhTable    *table;

	if (js->probed == NULL)
		return;
	/* also where one was being made */
	if (js->probed->copy.area != NULL)
		gh_probed_copy_drop(js);
	table = js->probed->table;
	if (table == NULL)
		return;
	if (js->table_shared)
		table->engine->table_detach(table);
	else
		table->engine->table_destroy(table);
	js->probed->table = NULL;
}

/* -------------------------------------------------- of all participants */

static void
use_shared_memory(GhJoinState *js)
{
	js->engine = gh_cpu_engine();
	gh_host_init(&js->host, js->context);
	gh_parallel_host(js);
}

static void
shared_options(const GhJoinState *js, GhKeyPart *part, GhPipelineOptions *options)
{
	GhShared   *shared = js->parallel->shared;

	stage_options(js, gh_parallel_keys(js), pg_atomic_read_u64(&shared->row_bytes),
				  js->memory_limit * (uint64) shared->nmembers, part, options);
}

static void
shared_passed_options(const GhJoinState *js, GhKeyPart *part, GhPipelineOptions *options)
{
	uint64		nmembers = (uint64) js->parallel->shared->nmembers;

	passed_options(js, gh_child(js, GH_INNER)->plan->plan_rows * (double) nmembers, js->memory_limit * nmembers, part, options);
}

/* By one: a sink that all fill.  False: there is none. */
bool
gh_probed_share_sink(GhJoinState *js, const GhPipelineOptions *options, GhRef *root)
{
	GhError		error;

	use_shared_memory(js);
	return gh_cpu_engine()->pipelines->share_sink(&js->host, options, root, &error) == GH_OK;
}

/* Phase TABLE, by one: that of stored rows. */
bool
gh_probed_share(GhJoinState *js, GhRef *root)
{
	GhPipelineOptions options;
	GhKeyPart	part;

	shared_options(js, &part, &options);
	return gh_probed_share_sink(js, &options, root);
}

/* Whether to go on where an engine was stopped; other errors are raised. */
static bool
is_stopped(GhStatus status, const GhError *error)
{
	if (status == GH_OK)
		return false;
	if (status != GH_STOPPED)
		gh_report_error(error, GH_MAKING);
	gh_serve_interrupt();
	return true;
}

static bool
has_no_memory(GhStatus status)
{
	return status == GH_NO_MEMORY || status == GH_LIMIT;
}

static bool
finish_shared(GhJoinState *js, GhStage *stage)
{
	GhPipelineStats stats;
	GhStatus	status;
	GhError		error;

	gh_stage_stats(stage, &stats);
	(void) pg_atomic_fetch_add_u64(&js->parallel->shared->probed_bytes, (int64) stats.bytes);
	do
	{
		status = gh_cpu_engine()->pipelines->finish(stage->pipeline, &error);
	} while (!has_no_memory(status) && is_stopped(status, &error));
	return status == GH_OK;
}

/*
 * What this participant enters goes to all.  False: it cannot.
 *
 * After an error the pipeline goes here, as long as the shared memory is there.  The error may have come out
 * of the host's functions, with the lock held, so that nothing is given back to it any more.  A process that
 * ends at once does not come here, and leaves all as it is.
 */
bool
gh_probed_fill_sink(GhJoinState *js, const GhPipelineOptions *options,
					bool (*enter) (GhJoinState *js, GhStage *stage, MemoryContext context))
{
	MemoryContext context = AllocSetContextCreate(js->context, "GpuHashJoin probed", ALLOCSET_DEFAULT_SIZES);
	MemoryContext saved = MemoryContextSwitchTo(context);
	GhStage    *stage;
	GhError		error;
	bool		filled;

	use_shared_memory(js);
	stage = gh_stage_create(options, &js->host, context, &error);
	if (stage == NULL)
		gh_report_error(&error, GH_MAKING);
	PG_TRY();
	{
		filled = enter(js, stage, context) && finish_shared(js, stage);
	}
	PG_CATCH();
	{
		gh_parallel_abandon(js);
		gh_stage_destroy(stage);
		PG_RE_THROW();
	}
	PG_END_TRY();
	gh_stage_destroy(stage);
	MemoryContextSwitchTo(saved);
	MemoryContextDelete(context);
	return filled;
}

/* Phase ENTER: the rows that this participant has stored. */
bool
gh_probed_fill(GhJoinState *js, GhRef root)
{
	GhPipelineOptions options;
	GhKeyPart	part;

	shared_options(js, &part, &options);
	options.shared_sink = root;
	return gh_probed_fill_sink(js, &options, gh_probed_enter_stored);
}

/* The same of rows as they come: phase TABLE, by one. */
bool
gh_probed_share_passed(GhJoinState *js, GhRef *root)
{
	GhPipelineOptions options;
	GhKeyPart	part;

	shared_passed_options(js, &part, &options);
	return gh_probed_share_sink(js, &options, root);
}

/* Phase ENTER: the rows of this participant's part of the inner side. */
bool
gh_probed_fill_passed(GhJoinState *js, GhRef root)
{
	GhPipelineOptions options;
	GhKeyPart	part;

	shared_passed_options(js, &part, &options);
	options.shared_sink = root;
	return gh_probed_fill_sink(js, &options, gh_probed_pass_rows);
}

/* Phases TABLE_2 to TABLE_4, by one.  False: there is no memory. */
bool
gh_probed_begin(GhJoinState *js, GhRef root)
{
	GhStatus	status;
	GhError		error;

	use_shared_memory(js);
	do
	{
		status = gh_cpu_engine()->pipelines->index_begin(&js->host, root, &error);
	} while (!has_no_memory(status) && is_stopped(status, &error));
	return status == GH_OK;
}

/* Phases ENTER_2 and ENTER_3. */
void
gh_probed_enter(GhJoinState *js, GhRef root)
{
	bool		ready;
	GhError		error;

	use_shared_memory(js);
	while (is_stopped(gh_cpu_engine()->pipelines->index_enter(&js->host, root, &ready, &error), &error))
		continue;
}

/* Phase PROBE. */
void
gh_probed_attach(GhJoinState *js, GhRef root)
{
	GhMadeTable made;
	GhError		error;

	js->table_shared = true;
	use_shared_memory(js);
	while (is_stopped(gh_cpu_engine()->pipelines->table_attach(&js->host, root, &made, &error), &error))
		continue;
	take_table(js, &made, pg_atomic_read_u64(&js->parallel->shared->probed_bytes) +
			   (uint64) (made.rows * gh_table_bytes_per_row(sizeof(uint64))));
}

/* Where the table comes to nothing, by one. */
void
gh_probed_unshare(GhJoinState *js, GhRef root)
{
	use_shared_memory(js);
	gh_cpu_engine()->pipelines->unshare_sink(&js->host, root);
}
