/*
 * apply.c
 *		gpuhash_apply: a mixed batch, in which every position has an operation of its own
 *		and sees what the positions before it did.
 *
 * All of the batch is checked before the first position is done.  A value is looked at
 * only where one is stored; where a key is looked up or removed it may be NULL.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/memutils.h"

#include "compat.h"
#include "result_rows.h"
#include "table/table.h"

/* What stands for an operation in SQL. */
#define GH_LETTER_INSERT 'i'
#define GH_LETTER_UPSERT 'u'
#define GH_LETTER_FIND 'f'
#define GH_LETTER_DELETE 'd'

#define GH_LETTERS_HINT \
	"The operations are \"i\" (insert unless the key is there), \"u\" (insert or replace), " \
	"\"f\" (find) and \"d\" (delete)."

PG_FUNCTION_INFO_V1(gpuhash_apply_pairs);
PG_FUNCTION_INFO_V1(gpuhash_apply_bytea_pairs);
PG_FUNCTION_INFO_V1(gpuhash_apply_keys);

/* ---------------------------------------------------------------- arguments */

static GhOp
operation_of(char letter)
{
	switch (letter)
	{
		case GH_LETTER_INSERT:
			return GH_INSERT;
		case GH_LETTER_UPSERT:
			return GH_UPSERT;
		case GH_LETTER_FIND:
			return GH_FIND;
		case GH_LETTER_DELETE:
			return GH_DELETE;
	}
	/* other bytes are no characters: written as type "char" writes them */
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("\"%s\" is not an operation on hash tables",
					letter > ' ' && letter <= '~' ? psprintf("%c", letter) : psprintf("\\%03o", (uint8) letter)),
			 errhint(GH_LETTERS_HINT)));
	pg_unreachable();
}

static bool
stores(uint8 op)
{
	return op == GH_INSERT || op == GH_UPSERT;
}

static uint8 *
operations_arg(FunctionCallInfo fcinfo, ArrayType **array)
{
	int			count;
	const char *letters;
	uint8	   *ops;

	*array = gh_array_arg(fcinfo, 1, "operations");
	if (array_contains_nulls(*array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("array of operations must not contain nulls"),
				 errhint(GH_LETTERS_HINT)));
	count = ArrayGetNItems(ARR_NDIM(*array), ARR_DIMS(*array));
	letters = ARR_DATA_PTR(*array);
	ops = palloc(Max(count, 1));
	for (int i = 0; i < count; i++)
		ops[i] = (uint8) operation_of(letters[i]);
	return ops;
}

static void
require_mixed(const GhStoredInfo *info)
{
	if (info->multi)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("hash table \"%s\" holds many values for a key", info->key.name),
				 errhint("Use gpuhash_insert, gpuhash_delete and gpuhash_delete_one.")));
}

/* 22003 where a key that is outside is to be stored.  Elsewhere the position finds and
 * removes nothing (forget_outside). */
static void
check_outside(const GhStoredInfo *info, const GhKeys *keys, uint8 *ops)
{
	for (uint64 i = 0; i < keys->count; i++)
	{
		if (keys->outside[i] && stores(ops[i]))
			gh_report_key_outside(info->key.name, keys->given[i]);
		if (keys->outside[i])
			ops[i] = GH_FIND;
	}
}

/*
 * 54000 where the row of what was done and found might be too large: nothing is done then.  value_bytes: of
 * one in its array.
 */
static void
check_result_size(Size value_bytes, const uint8 *ops, uint64 count)
{
	uint64		finds = 0;

	for (uint64 i = 0; i < count; i++)
		finds += ops[i] == GH_FIND;
	if (!AllocSizeIsValid(MAXIMUM_ALIGNOF * 4 + 2 * ARR_OVERHEAD_WITHNULLS(1, count) + count + finds * value_bytes))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("array size exceeds the maximum allowed (%d)", (int) MaxAllocSize),
				 errhint("Look up fewer keys at a time.")));
}

/* The batch that the first three arguments describe, with room for what was done. */
static void
batch_args(FunctionCallInfo fcinfo, const GhStoredInfo *info, Size value_bytes, GhKeys *keys, GhMixedBatch *batch)
{
	ArrayType  *operations;
	uint8	   *ops;

	require_mixed(info);
	ops = operations_arg(fcinfo, &operations);
	gh_keys_arg(fcinfo, 2, info, false, keys);
	gh_check_same_length(keys, operations, "operation");
	if (keys->outside != NULL)
		check_outside(info, keys, ops);
	check_result_size(value_bytes, ops, keys->count);
	memset(batch, 0, sizeof(*batch));
	batch->count = keys->count;
	batch->keys = keys->keys;
	batch->ops = ops;
	batch->flags = palloc0(Max(batch->count, 1));
}

/* 22004 where a value that is to be stored is NULL. */
static void
check_values(const GhMixedBatch *batch, const bool *nulls)
{
	for (uint64 i = 0; i < batch->count; i++)
		if (nulls[i] && stores(batch->ops[i]))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("value to be stored must not be null"),
					 errdetail("The operation at position %llu stores it.", (unsigned long long) i + 1),
					 errhint("Values may be null where the operation is \"f\" or \"d\".")));
}

/* ------------------------------------------------------------------ results */

/*
 * Keys that are outside were neither found nor removed, whatever was done in their place.  The batch is of
 * the keys from `first` on.
 */
static void
forget_outside(const GhKeys *keys, uint64 first, const GhMixedBatch *batch)
{
	for (uint64 i = 0; keys->outside != NULL && i < batch->count; i++)
		if (keys->outside[first + i])
			batch->flags[i] = 0;
}

/* Where a find found a value. */
static uint8 *
found_values(const GhMixedBatch *batch)
{
	uint8	   *present = palloc(Max(batch->count, 1));

	for (uint64 i = 0; i < batch->count; i++)
		present[i] = batch->ops[i] == GH_FIND && batch->flags[i];
	return present;
}

static Datum
make_row(FunctionCallInfo fcinfo, const GhMixedBatch *batch, ArrayType *found)
{
	TupleDesc	columns = gh_row_type(fcinfo, ARR_ELEMTYPE(found) == BYTEAOID ? "BY" : "BL");
	Datum		row[2];
	bool		nulls[2] = {false, false};

	row[0] = PointerGetDatum(gh_make_bool_array(batch->flags, NULL, batch->count));
	row[1] = PointerGetDatum(found);
	return HeapTupleGetDatum(heap_form_tuple(columns, row, nulls));
}

/* ---------------------------------------------------------------- functions */

Datum
gpuhash_apply_pairs(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	GhMixedBatch		batch;
	ArrayType  *array;
	GhKeys		keys;
	GhBigints	values;

	gh_table_arg(fcinfo, GH_MAY_WRITE, &info);
	gh_require_bigint(&info);
	batch_args(fcinfo, &info, sizeof(uint64), &keys, &batch);
	array = gh_array_arg(fcinfo, 3, "values");
	gh_check_same_length(&keys, array, "value");
	gh_bigint_elements(array, "values", true, &values);
	if (values.nulls != NULL)
		check_values(&batch, values.nulls);
	batch.values = values.values;
	batch.found = MemoryContextAllocHuge(CurrentMemoryContext, Max(batch.count, 1) * sizeof(uint64));
	gh_apply(&info, &batch);
	forget_outside(&keys, 0, &batch);
	PG_RETURN_DATUM(make_row(fcinfo, &batch, gh_make_bigint_array(batch.found, found_values(&batch),
																  batch.count)));
}

/* The part of a batch from a position on. */
static GhMixedBatch
piece_of(const GhStoredInfo *info, const GhMixedBatch *batch, uint64 done, uint64 count)
{
	GhMixedBatch piece = *batch;

	piece.count = count;
	piece.ops += done;
	piece.keys = (const char *) batch->keys + done * info->key_size;
	piece.flags += done;
	return piece;
}

/* Values that were found, one behind the other. */
typedef struct FoundValues
{
	char	   *bytes;
	Size		used;
	Size		room;
} FoundValues;

/* Keeps what a piece's finds found: the call's result holds no more of it. */
static void
keep_found(int value_size, const GhMixedBatch *piece, FoundValues *found)
{
	for (uint64 i = 0; i < piece->count; i++)
	{
		if (piece->ops[i] != GH_FIND || !piece->flags[i])
			continue;
		if (found->room - found->used < value_size)
		{
			found->room = Max(2 * found->room, 64 * (Size) value_size);
			found->bytes = found->bytes == NULL ? MemoryContextAllocHuge(CurrentMemoryContext, found->room) :
				repalloc_huge(found->bytes, found->room);
		}
		memcpy(found->bytes + found->used, (const char *) piece->found + i * value_size, value_size);
		found->used += value_size;
	}
}

static void
apply_bytea(const GhStoredInfo *info, const GhKeys *keys, const GhMixedBatch *batch, const Datum *values,
			FoundValues *found)
{
	Size		room = Max(Min(GH_PIECE_KEYS, batch->count), 1) * info->value_size;
	char	   *bytes = palloc0(room);
	char	   *answers = palloc(room);

	for (uint64 done = 0; done < batch->count; done += GH_PIECE_KEYS)
	{
		uint64		n = Min(GH_PIECE_KEYS, batch->count - done);
		GhMixedBatch piece = piece_of(info, batch, done, n);

		piece.values = bytes;
		piece.found = answers;
		for (uint64 i = 0; i < n; i++)
			if (stores(piece.ops[i]))
				gh_copy_value(info->value_size, values[done + i], bytes + i * info->value_size);
		gh_apply(info, &piece);
		forget_outside(keys, done, &piece);
		keep_found(info->value_size, &piece, found);
	}
}

Datum
gpuhash_apply_bytea_pairs(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	GhMixedBatch		batch;
	ArrayType  *array;
	GhKeys		keys;
	Datum	   *values;
	bool	   *nulls;
	int			count;
	FoundValues found = {0};

	gh_table_arg(fcinfo, GH_MAY_WRITE, &info);
	gh_require_bytes(&info);
	batch_args(fcinfo, &info, INTALIGN(VARHDRSZ + info.value_size), &keys, &batch);
	array = gh_array_arg(fcinfo, 3, "values");
	gh_check_same_length(&keys, array, "value");
	deconstruct_array(array, BYTEAOID, -1, false, TYPALIGN_INT, &values, &nulls, &count);
	check_values(&batch, nulls);
	for (int i = 0; i < count; i++)
		if (stores(batch.ops[i]))
			gh_check_value_size(info.key.name, info.value_size, values[i]);
	apply_bytea(&info, &keys, &batch, values, &found);
	PG_RETURN_DATUM(make_row(fcinfo, &batch, gh_make_packed_bytea_array(info.value_size, found.bytes,
																		found_values(&batch), batch.count)));
}

Datum
gpuhash_apply_keys(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	GhMixedBatch		batch;
	GhKeys		keys;

	gh_table_arg(fcinfo, GH_MAY_WRITE, &info);
	gh_require_set(&info);
	batch_args(fcinfo, &info, 0, &keys, &batch);
	gh_apply(&info, &batch);
	forget_outside(&keys, 0, &batch);
	PG_RETURN_ARRAYTYPE_P(gh_make_bool_array(batch.flags, NULL, batch.count));
}
