/*
 * copy.c
 *		Makes the copy of an index in shared memory: its entries as columns, and a table from keys to the
 *		columns that are no part of the key.
 *
 * Of each entry it has the block of its row.  The entries are read by leaves.c into memory of this process,
 * made a table of by a pipeline of the CPU engine, and moved into shared memory (copy_share.c).
 * From before that on it is noted which blocks they are right for (touched.c).
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "utils/inval.h"
#include "utils/memutils.h"

#include "compat.h"
#include "engine/pipeline/record_row.h"
#include "expr/key.h"
#include "expr/translate.h"
#include "expr/values.h"
#include "fragment/stage.h"
#include "gpuhash.h"
#include "heap/map.h"
#include "index/copy.h"
#include "index/copy_maker.h"
#include "index/leaves.h"
#include "index/touched.h"
#include "service/faults.h"
#include "service/placement.h"
#include "service/progress.h"
#include "store/index_copies.h"
#include "store/resident_tables.h"

#define GH_COPY_VARNO 1
/* A copy is made when so many blocks are all-visible. */
#define GH_COPY_SHARE(nblocks) ((nblocks) - (nblocks) / 4)
/* Memory of texts is taken in pieces. */
#define GH_TEXTS_PIECE ((Size) 1024 * 1024)
/* Bytes of a copy by those of the index, at most about. */
#define GH_COPY_TIMES 3
#define GH_COPY_BYTES_MIN ((uint64) 1024 * 1024)
/* Entries between two looks at whether it is to be given up. */
#define GH_COPY_CHECKED GH_WITH_FAULT_POINTS(1024, GH_COPY_BATCH)

typedef GhCopyMaker Maker;

/* ----------------------------------------------------------------- what it has */

static int
key_bits(const GhColumn *column)
{
	switch ((GhLoad) column->load)
	{
		case GH_LOAD_INT2:
			return 16;
		case GH_LOAD_INT4:
		case GH_LOAD_OID:
			return 32;
		case GH_LOAD_INT8:
			return GH_KEY_BITS;
		default:
			return 0;
	}
}

/*
 * Whether an index's column is one of the table's, of a type whose values the engines hold as they are, in
 * the order of the index: enums have another one.
 */
static bool
may_have(Relation index, int source)
{
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(index), source);

	return index->rd_index->indkey.values[source] > 0 && attribute->attlen != -2 &&
		gh_class_of_type(attribute->atttypid) != 0 && !gh_is_enum(attribute->atttypid) &&
		!gh_is_open_numeric(attribute->atttypid, attribute->atttypmod);
}

/* The program that has a vector for the key and one for each column; false: there is none. */
static bool
translate(Maker *maker)
{
	TupleDesc	desc = CreateTemplateTupleDesc(maker->ncolumns + 1);
	uint8		classes[GH_PROGRAM_VECTORS_MAX];
	GhTranslation *translation;
	GhError		error;

	TupleDescInitEntry(desc, 1, NULL, INT8OID, -1, 0);
	for (int c = 0; c < maker->ncolumns; c++)
		TupleDescCopyEntry(desc, c + 2, RelationGetDescr(maker->index), maker->sources[c] + 1);
	gh_finish_desc(desc);
	translation = gh_translate_begin(desc, GH_COPY_VARNO);
	for (int c = 0; c <= maker->ncolumns; c++)
	{
		GhOperand	operand = {0};

		if (!gh_translate_attribute(translation, c + 1, &operand) || operand.vector != c)
			return false;
	}
	maker->program = gh_translate_end(translation);
	if (maker->program == NULL ||
		gh_program_check_classes(maker->program, maker->program->bytes, classes, &error) != GH_OK)
		return false;
	for (int c = 0; c < maker->ncolumns; c++)
	{
		GhCopyColumn *column = &maker->columns[c];

		column->column = gh_program_columns(maker->program)[c + 1];
		column->held = (GhKept) {.vector = c + 1,.value_class = classes[c + 1],.bytes = gh_kept_bytes_of(&column->column)};
	}
	return true;
}

/*
 * The key is the index's first column, and those behind it that are whole numbers, too, while all fit in a
 * key.  One alone has all bits of a key, so that whole numbers of other widths find it.
 */
static void
choose_key(Maker *maker)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(maker->index);
	int			bits = 0;

	nkeys = Min(Min(nkeys, maker->ncolumns), GH_COPY_KEYS_MAX);
	for (int c = 0; c < nkeys && maker->sources[c] == c; c++)
	{
		int			own = key_bits(&maker->columns[c].column);

		if (own == 0 || bits + own > GH_KEY_BITS)
			break;
		bits += own;
		maker->columns[c].is_key = true;
		maker->columns[c].bits = own;
		maker->nkeys++;
	}
	if (maker->nkeys == 1)
		maker->columns[0].bits = GH_KEY_BITS;
	for (int c = maker->nkeys; c < maker->ncolumns; c++)
	{
		maker->columns[c].kept = maker->nkept;
		maker->kept[maker->nkept++] = maker->columns[c].held;
	}
}

static bool
choose_columns(Maker *maker)
{
	int			natts = RelationGetDescr(maker->index)->natts;

	/* not looked at: functions in it would be computed, as by whoever makes the copy */
	if (!heap_attisnull(maker->index->rd_indextuple, Anum_pg_index_indpred, NULL))
		return false;
	for (int i = 0; i < natts && maker->ncolumns < GH_COPY_COLUMNS_MAX; i++)
		if (may_have(maker->index, i))
		{
			maker->columns[maker->ncolumns].attno = maker->index->rd_index->indkey.values[i];
			maker->sources[maker->ncolumns++] = i;
		}
	if (maker->ncolumns == 0 || !translate(maker))
		return false;
	choose_key(maker);
	return maker->nkeys > 0;
}

/* ---------------------------------------------------------------------- entries */

/* Memory that is there, or NULL. */
static void *
take(Maker *maker, Size bytes)
{
	return MemoryContextAllocExtended(maker->context, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
}

/*
 * An array of so many elements of that width, with those of the one before, which goes; false: there is no
 * memory.
 */
static bool
more(Maker *maker, void *array, Size width, uint64 room)
{
	void	   *before = *(void **) array;
	void	   *after = take(maker, room * width);

	if (after == NULL)
		return false;
	if (before != NULL)
	{
		memcpy(after, before, maker->rows * width);
		pfree(before);
	}
	*(void **) array = after;
	return true;
}

static bool
make_room(Maker *maker)
{
	uint64		room = maker->room == 0 ? GH_COPY_BATCH : maker->room * 2;

	/* nor does it take more than the copies may, or numbers of entries can count */
	if (MemoryContextMemAllocated(maker->context, true) > gh_shared_copies_limit() || room > PG_UINT32_MAX ||
		!more(maker, &maker->blocks, sizeof(uint32), room) || !more(maker, &maker->keys, sizeof(uint64), room))
		return false;
	for (int c = 0; c < maker->ncolumns; c++)
	{
		GhVector   *vector = &maker->vectors[c];

		if (!more(maker, &vector->low, sizeof(uint64), room) || !more(maker, &vector->null, 1, room) ||
			(gh_class_has_high(maker->columns[c].held.value_class) &&
			 !more(maker, &vector->high, sizeof(uint64), room)))
			return false;
	}
	maker->room = room;
	return true;
}

/* Whether it is given up for somebody else. */
static bool
has_to_stop(const Maker *maker)
{
	return maker->stop != NULL && maker->stop(maker->index, maker->heap);
}

/* A text stays here; false: there is no memory. */
static bool
keep_text(Maker *maker, GhVector *vector, uint64 row)
{
	Size		bytes = vector->high[row];

	if (bytes > maker->text_room)
	{
		maker->text_room = 0;
		maker->text = take(maker, Max(bytes, GH_TEXTS_PIECE));
		if (maker->text == NULL)
			return false;
		maker->text_room = Max(bytes, GH_TEXTS_PIECE);
	}
	memcpy(maker->text, (const void *) (uintptr_t) vector->low[row], bytes);
	vector->low[row] = (uint64) (uintptr_t) maker->text;
	maker->text += bytes;
	maker->text_room -= bytes;
	maker->text_bytes += bytes;
	return true;
}

/* GhLeafEntry; false: a value is none that the engines hold, there is no memory, or it is given up. */
static bool
keep_entry(void *arg, BlockNumber block, const Datum *values, const bool *nulls)
{
	Maker	   *maker = arg;
	uint64		row = maker->rows;
	uint64		key = 0;

	if (block >= maker->copied.nblocks || (maker->bits[block / GH_BITS] >> block % GH_BITS & 1) == 0)
		return true;
	/* a NULL in the key matches nothing */
	for (int c = 0; c < maker->nkeys; c++)
		if (nulls[maker->sources[c]])
			return true;
	if ((row == maker->room && !make_room(maker)) || (row % GH_COPY_CHECKED == 0 && has_to_stop(maker)))
		return false;
	for (int c = 0; c < maker->ncolumns; c++)
	{
		GhCopyColumn *column = &maker->columns[c];
		GhVector   *vector = &maker->vectors[c];
		GhVector	here = {vector->low + row, vector->high == NULL ? NULL : vector->high + row, vector->null + row};
		bool		null = nulls[maker->sources[c]];

		here.low[0] = 0;
		if (here.high != NULL)
			here.high[0] = 0;
		if (!gh_store_value(&column->column, null ? (Datum) 0 : values[maker->sources[c]], null, maker->unpacked,
							&here, 0))
			return false;
		maker->nulls[c] += null;
		if (column->held.value_class == GH_CLASS_TEXT && !null && !keep_text(maker, vector, row))
			return false;
		if (column->is_key)
			key = gh_key_part_add(key, &(GhKeyPart) {.bits = column->bits}, here.low[0]);
	}
	if (MemoryContextMemAllocated(maker->unpacked, false) > GH_TEXTS_PIECE)
		MemoryContextReset(maker->unpacked);
	maker->descends |= row > 0 && (int64) key < (int64) maker->keys[row - 1];
	maker->blocks[row] = block;
	maker->keys[row] = key;
	maker->rows++;
	return true;
}

/* -------------------------------------------------------------------- the table */

static void
table_options(const Maker *maker, GhKeyPart *part, GhPipelineOptions *options)
{
	GhTableOptions settings;

	gh_options_init(&settings, gh_cpu_engine());
	gh_stage_options(NULL, maker->program, options);
	options->source.natts = maker->program->ncolumns;
	gh_stage_table_sink(&settings, &options->sink);
	*part = (GhKeyPart) {.vector = 0,.bits = GH_KEY_BITS};
	options->sink.table.nparts = 1;
	options->sink.table.parts = part;
	options->sink.table.nkept = maker->nkept;
	options->sink.table.kept = maker->kept;
	options->sink.table.matches = GH_MATCHES_ALL;
	options->sink.table.expected = maker->rows;
	options->memory_limit = gh_shared_copies_limit();
}

/* All entries into the pipeline; false: there is no memory, or it is given up. */
static bool
enter_rows(const Maker *maker, GhStage *stage)
{
	uint16		given[GH_COPY_COLUMNS_MAX + 1];
	GhVector	vectors[GH_COPY_COLUMNS_MAX + 1];
	uint8	   *no_nulls = palloc0(GH_COPY_BATCH);
	GhBackRow  *back = palloc(sizeof(GhBackRow) * GH_COPY_BATCH);

	gh_progress_phase(GH_PROGRESS_ENTERS, maker->rows);
	for (uint64 at = 0; at < maker->rows; at += GH_COPY_BATCH)
	{
		GhPipelineRequest request = {.kind = GH_INPUT_COLUMNS};

		CHECK_FOR_INTERRUPTS();
		gh_progress_done(at);
		given[0] = 0;
		vectors[0] = (GhVector) {maker->keys + at, NULL, no_nulls};
		request.ngiven = 1;
		for (int c = maker->nkeys; c < maker->ncolumns; c++)
		{
			const GhVector *all = &maker->vectors[c];

			given[request.ngiven] = c + 1;
			vectors[request.ngiven++] = (GhVector) {all->low + at, all->high == NULL ? NULL : all->high + at,
				all->null + at};
		}
		request.given = given;
		request.vectors = vectors;
		request.count = request.back_room = Min(maker->rows - at, GH_COPY_BATCH);
		request.back = back;
		gh_stage_run(stage, &request);
		if (request.nback > 0 || has_to_stop(maker))
			return false;
	}
	return true;
}

/* Whether it is to be done again, after an interrupt; other errors but for want of memory are raised. */
static bool
was_stopped(GhStatus status, const GhError *error)
{
	if (status == GH_STOPPED)
		gh_serve_interrupt();
	else if (status != GH_OK && status != GH_NO_MEMORY && status != GH_LIMIT)
		gh_report_error(error, "make the copy of an index");
	return status == GH_STOPPED;
}

static GhStatus
make_index(const Maker *maker, const GhHost *host, GhRef root, GhError *error)
{
	const GhPipelineEngine *pipelines = gh_cpu_engine()->pipelines;
	bool		ready = false;
	GhStatus	status = GH_OK;

	while (status == GH_OK && !ready)
	{
		if (has_to_stop(maker))
			return GH_NO_MEMORY;
		while (was_stopped(status = pipelines->index_begin(host, root, error), error))
			continue;
		while (status == GH_OK && was_stopped(status = pipelines->index_enter(host, root, &ready, error), error))
			continue;
	}
	return status;
}

/* All entries, which are then the shared sink's. */
static GhStatus
fill_table(const Maker *maker, GhStage *stage)
{
	GhStatus	status = enter_rows(maker, stage) ? GH_OK : GH_NO_MEMORY;
	GhError		error;

	while (status == GH_OK &&
		   was_stopped(status = stage->pipeline->engine->finish(stage->pipeline, &error), &error))
		continue;
	return status;
}

static bool
make_table(Maker *maker)
{
	const GhPipelineEngine *pipelines = gh_cpu_engine()->pipelines;
	GhPipelineOptions options;
	GhKeyPart	part;
	GhHost		host;
	GhStage    *stage;
	volatile GhStatus status;
	GhError		error;
	GhMadeTable made;
	GhRef		root;

	gh_shared_copy_host(&maker->hold, &host);
	table_options(maker, &part, &options);
	if (pipelines->share_sink(&host, &options, &root, &error) != GH_OK)
		return false;
	options.shared_sink = root;
	stage = gh_stage_create(&options, &host, maker->context, &error);
	if (stage == NULL)
		return false;
	PG_TRY();
	{
		status = fill_table(maker, stage);
	}
	PG_FINALLY();
	{
		gh_stage_destroy(stage);
	}
	PG_END_TRY();
	if (status == GH_OK)
		status = make_index(maker, &host, root, &error);
	if (status != GH_OK || pipelines->table_attach(&host, root, &made, &error) != GH_OK)
		return false;
	maker->hold.copy->several = made.several;
	made.table->engine->table_detach(made.table);
	maker->hold.copy->root = root;
	return true;
}

/* --------------------------------------------------------------------- the whole */

/*
 * Blocks that are not all-visible when the copy is begun are left out for good, but for those without rows:
 * they may have entries of rows that are no more, whose keys would then have two entries.  *later: there are
 * so many that it is too early for a copy.
 */
bool
gh_copy_maker_begin(Maker *maker, bool *later)
{
	const GhCopied *copied = &maker->copied;
	GhBlockRuns empty;
	BlockNumber count;
	GhCopyFacts in_use;

	/* what there is stays, or goes for good */
	if (maker->where != GH_COPY_SHARED)
		(void) gh_copy_look_up(maker->index, maker->where, &maker->in_use);
	else if (gh_shared_copy_look(GH_COPY_OF_INDEX, maker->index, &in_use))
		maker->in_use.generation = in_use.generation;
	if (!gh_copy_begin(maker->index, maker->heap, maker->where, maker->in_use.generation, &maker->copied))
		return false;
	maker->bits = palloc0((copied->nblocks / GH_BITS + 1) * sizeof(uint32));
	count = gh_copy_blocks(maker->index, maker->heap, copied, maker->bits, NULL);
	/*
	 * Before rows no longer entered it the primary has waited for its own sessions that know it as valid, but
	 * for none of a standby.
	 */
	AcceptInvalidationMessages();
	if (!maker->index->rd_index->indisvalid)
		return false;
	count += gh_find_empty(maker->heap, copied->nblocks, maker->bits, &empty);
	gh_copy_note_empty(maker->index, copied, &empty);
	*later = count < GH_COPY_SHARE(copied->nblocks);
	return !*later;
}

/*
 * In recovery nothing has told what changed while the leaf pages were read, and the rows of the begin may
 * come back with their LSN (README, "On a standby", 2): blocks that have changed are left out, too.  False:
 * they are too many, and not to be found so again at once, with all leaf pages read.
 */
bool
gh_copy_maker_asks_again(Maker *maker)
{
	const uint32 nwords = maker->copied.nblocks / GH_BITS + 1;
	uint32	   *bits;
	BlockNumber count;

	if (!RecoveryInProgress() || gh_fault_leaves_out(GH_FAULT_POINT_INDEX_AGAIN))
		return true;
	bits = palloc0(nwords * sizeof(uint32));
	count = gh_copy_blocks(maker->index, maker->heap, &maker->copied, bits, NULL);
	for (uint32 word = 0; word < nwords; word++)
		maker->bits[word] &= bits[word];
	pfree(bits);
	return count >= GH_COPY_SHARE(maker->copied.nblocks);
}

static bool
fill(Maker *maker, bool *later)
{
	bool		filled = gh_copy_maker_begin(maker, later) && gh_leaves_read(maker->index, keep_entry, maker) &&
		gh_copy_maker_asks_again(maker) && (maker->rows == 0 || make_table(maker)) && gh_copy_share(maker);

	if (!filled)
	{
		gh_copy_end(&maker->copied);
		return false;
	}
	gh_copy_leave_out(maker->index, &maker->copied, maker->bits);
	maker->hold.copy->generation = maker->copied.generation;
	maker->hold.copy->nblocks = maker->copied.nblocks;
	return true;
}

/* Whether there is one to be made, before anything is begun; and of which columns. */
bool
gh_copy_maker_may(Maker *maker)
{
	BlockNumber nblocks;

	if (!gh_may_be_copied(maker->index, maker->heap))
		return false;
	nblocks = RelationGetNumberOfBlocks(maker->heap);
	return gh_count_visible_or_empty(maker->heap, nblocks) >= GH_COPY_SHARE(nblocks) && choose_columns(maker);
}

static void
give_up(int code, Datum arg)
{
	Maker	   *maker = (Maker *) DatumGetPointer(arg);

	(void) code;
	gh_copy_end(&maker->copied);
	gh_shared_copy_abandon(&maker->hold, true);
}

/*
 * In the place of the one before, of which whoever has it asks no more but for a moment: it is right for no
 * block then.
 */
static void
publish(Maker *maker)
{
	const GhIndexCopy *copy = maker->hold.copy;
	const GhCopyFacts facts = {.rows = copy->rows,.generation = copy->generation,.nblocks = copy->nblocks};

	gh_shared_copy_publish(&maker->hold, &facts, false);
	gh_copy_end(&maker->in_use);
}

/* GhIndexCopyMethods.make */
static bool
make_copy(Relation index, Relation heap, GhCopyStop stop)
{
	uint64		bytes;
	Maker	   *maker = palloc0(sizeof(Maker));
	MemoryContext saved;
	bool		begun;
	bool		made = false;
	bool		later = false;

	maker->index = index;
	maker->heap = heap;
	maker->where = GH_COPY_SHARED;
	maker->stop = stop;
	maker->context = AllocSetContextCreate(CurrentMemoryContext, "gpuhash index copy", ALLOCSET_DEFAULT_SIZES);
	maker->unpacked = AllocSetContextCreate(maker->context, "gpuhash index copy values", ALLOCSET_DEFAULT_SIZES);
	saved = MemoryContextSwitchTo(maker->context);
	begun = gh_copy_maker_may(maker);
	if (begun)
	{
		bytes = Max((uint64) RelationGetNumberOfBlocks(index) * BLCKSZ * GH_COPY_TIMES, GH_COPY_BYTES_MIN);
		begun = gh_shared_copy_begin(GH_COPY_OF_INDEX, index, bytes, sizeof(GhIndexCopy), &maker->hold);
	}
	MemoryContextSwitchTo(saved);
	if (!begun)
	{
		MemoryContextDelete(maker->context);
		pfree(maker);
		return false;
	}
	gh_progress_begin(maker->context, GH_PROGRESS_COPY, RelationGetRelid(index), -1);
	PG_ENSURE_ERROR_CLEANUP(give_up, PointerGetDatum(maker));
	{
		saved = MemoryContextSwitchTo(maker->context);
		made = fill(maker, &later);
		MemoryContextSwitchTo(saved);
	}
	PG_END_ENSURE_ERROR_CLEANUP(give_up, PointerGetDatum(maker));
	if (made)
		publish(maker);
	else
		gh_shared_copy_abandon(&maker->hold, !later);
	MemoryContextDelete(maker->context);
	pfree(maker);
	return made;
}

/* GhIndexCopyMethods.describe */
static bool
describe_copy(Relation index, GhIndexCopy *copy)
{
	Maker	   *maker = palloc0(sizeof(Maker));
	bool		chosen;

	maker->index = index;
	chosen = choose_columns(maker);
	copy->nkeys = maker->nkeys;
	copy->ncolumns = maker->ncolumns;
	memcpy(copy->columns, maker->columns, sizeof(GhCopyColumn) * maker->ncolumns);
	pfree(maker);
	return chosen;
}

/* GhIndexCopyMethods.blocks */
static BlockNumber
blocks_of_copy(Relation index, Relation heap, const GhIndexCopy *copy, uint32 *bits, BlockNumber *all_visible)
{
	GhCopied	copied = {copy->generation, copy->nblocks};

	return gh_copy_blocks(index, heap, &copied, bits, all_visible);
}

/* GhIndexCopyMethods.look_up_on_device */
static bool
look_up_on_device(Relation index, int device, uint64 *generation, BlockNumber *nblocks)
{
	GhTableSource *source;
	GhCopied	copied;
	bool		there;

	if (!gh_copy_look_up(index, device, &copied))
		return false;
	/* it may have been given up, or gone with its worker */
	source = gh_resident_table_source_of_copy(index, copied.generation, device);
	there = gh_resident_table_is_there(source);
	pfree(source);
	if (!there)
		return false;
	*generation = copied.generation;
	*nblocks = copied.nblocks;
	return true;
}

static const GhIndexCopyMethods copy_methods = {
	.make = make_copy,
	.describe = describe_copy,
	.blocks = blocks_of_copy,
	.make_on_device = gh_copy_make_on_device,
	.look_up_on_device = look_up_on_device,
};

void
gh_index_copy_init(void)
{
	gh_index_copies_register(&copy_methods);
}
