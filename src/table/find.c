/*
 * find.c
 *		SQL functions that look keys up in a named table.
 *
 * A NULL key is never in a table: its answer is NULL, or no row.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "result_rows.h"
#include "table/table.h"

PG_FUNCTION_INFO_V1(gpuhash_find_key);
PG_FUNCTION_INFO_V1(gpuhash_find_keys);
PG_FUNCTION_INFO_V1(gpuhash_find_bytea_key);
PG_FUNCTION_INFO_V1(gpuhash_find_bytea_keys);
PG_FUNCTION_INFO_V1(gpuhash_contains_key);
PG_FUNCTION_INFO_V1(gpuhash_contains_keys);
PG_FUNCTION_INFO_V1(gpuhash_count);
PG_FUNCTION_INFO_V1(gpuhash_find_all);
PG_FUNCTION_INFO_V1(gpuhash_find_all_bytea);

/* Is the key there?  Its value, unless value is NULL. */
static bool
find_key(FunctionCallInfo fcinfo, const GhStoredInfo *info, void *value)
{
	uint64		key;
	uint64		stored;
	uint8		found;

	if (PG_ARGISNULL(1))
		return false;
	key = (uint64) PG_GETARG_INT64(1);
	if (!gh_key_fits(info, key))
		return false;
	gh_set_key(info->key_size, &stored, 0, key);
	gh_find(info, &stored, 1, value, &found);
	return found;
}

/* Looks up the array of keys; NULL keys and those outside are not found. */
static void
find_keys(FunctionCallInfo fcinfo, const GhStoredInfo *info, GhKeys *keys, void **values,
		  uint8 **found)
{
	gh_keys_arg(fcinfo, 1, info, true, keys);
	if (values != NULL)
		*values = MemoryContextAllocHuge(CurrentMemoryContext,
										 Max(keys->count, 1) * info->value_size);
	*found = palloc(Max(keys->count, 1));
	gh_find(info, keys->keys, keys->count, values == NULL ? NULL : *values, *found);
	for (uint64 i = 0; keys->nulls != NULL && i < keys->count; i++)
		if (keys->nulls[i])
			(*found)[i] = 0;
	for (uint64 i = 0; keys->outside != NULL && i < keys->count; i++)
		if (keys->outside[i])
			(*found)[i] = 0;
}

Datum
gpuhash_find_key(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	int64		value;

	gh_table_arg(fcinfo, GH_MAY_READ, &info);
	gh_require_bigint(&info);
	gh_require_single(&info);
	if (!find_key(fcinfo, &info, &value))
		PG_RETURN_NULL();
	PG_RETURN_INT64(value);
}

Datum
gpuhash_find_keys(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	GhKeys		keys;
	void	   *values;
	uint8	   *found;

	gh_table_arg(fcinfo, GH_MAY_READ, &info);
	gh_require_bigint(&info);
	gh_require_single(&info);
	find_keys(fcinfo, &info, &keys, &values, &found);
	PG_RETURN_ARRAYTYPE_P(gh_make_bigint_array(values, found, keys.count));
}

Datum
gpuhash_find_bytea_key(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	uint64		value[GH_VALUE_SIZE_MAX / sizeof(uint64)];
	bytea	   *result;

	gh_table_arg(fcinfo, GH_MAY_READ, &info);
	gh_require_bytes(&info);
	gh_require_single(&info);
	if (!find_key(fcinfo, &info, value))
		PG_RETURN_NULL();
	result = palloc(VARHDRSZ + info.value_size);
	SET_VARSIZE(result, VARHDRSZ + info.value_size);
	gh_value_to_bytes(info.value_size, (char *) value, VARDATA(result));
	PG_RETURN_BYTEA_P(result);
}

Datum
gpuhash_find_bytea_keys(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	GhKeys		keys;
	void	   *values;
	uint8	   *found;

	gh_table_arg(fcinfo, GH_MAY_READ, &info);
	gh_require_bytes(&info);
	gh_require_single(&info);
	find_keys(fcinfo, &info, &keys, &values, &found);
	PG_RETURN_ARRAYTYPE_P(gh_make_bytea_array(info.value_size, values, found, keys.count));
}

Datum
gpuhash_contains_key(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;

	gh_table_arg(fcinfo, GH_MAY_READ, &info);
	if (PG_ARGISNULL(1))
		PG_RETURN_NULL();
	PG_RETURN_BOOL(find_key(fcinfo, &info, NULL));
}

Datum
gpuhash_contains_keys(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	GhKeys		keys;
	uint8	   *found;

	gh_table_arg(fcinfo, GH_MAY_READ, &info);
	find_keys(fcinfo, &info, &keys, NULL, &found);
	PG_RETURN_ARRAYTYPE_P(gh_make_bool_array(found, gh_keys_present(&keys), keys.count));
}

Datum
gpuhash_count(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	GhKeys		keys;
	uint64	   *counts;

	gh_table_arg(fcinfo, GH_MAY_READ, &info);
	gh_keys_arg(fcinfo, 1, &info, true, &keys);
	counts = MemoryContextAllocHuge(CurrentMemoryContext, Max(keys.count, 1) * sizeof(uint64));
	gh_count(&info, keys.keys, keys.count, counts);
	for (uint64 i = 0; keys.outside != NULL && i < keys.count; i++)
		if (keys.outside[i])
			counts[i] = 0;
	PG_RETURN_ARRAYTYPE_P(gh_make_bigint_array(counts, gh_keys_present(&keys), keys.count));
}

/* ------------------------------------------------------------- every value */

/* buffer is room for one value as bytea, or NULL: values are bigint. */
static void
emit_lists(ReturnSetInfo *result, int value_size, const uint64 *keys, uint64 count,
		   const GhValueLists *lists, bytea *buffer)
{
	for (uint64 i = 0; i < count; i++)
	{
		for (uint64 j = lists->offsets[i]; j < lists->offsets[i + 1]; j++)
		{
			Datum		row[2];
			bool		nulls[2] = {false, false};

			CHECK_FOR_INTERRUPTS();
			row[0] = Int64GetDatum((int64) keys[i]);
			if (buffer == NULL)
				row[1] = Int64GetDatum(((int64 *) lists->values)[j]);
			else
			{
				gh_value_to_bytes(value_size, lists->values + j * value_size, VARDATA(buffer));
				row[1] = PointerGetDatum(buffer);
			}
			tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
		}
	}
}

static void
find_all(FunctionCallInfo fcinfo, const GhStoredInfo *info, bytea *buffer)
{
	GhValueLists lists = {CurrentMemoryContext};
	GhKeys		keys;

	gh_keys_arg(fcinfo, 1, info, true, &keys);
	gh_keys_leave_out(info, &keys);
	gh_rows_begin(fcinfo, buffer == NULL ? "ll" : "ly");
	for (uint64 done = 0; done < keys.count;)
	{
		uint64		chunk = gh_find_lists(info, (const char *) keys.keys + done * info->key_size,
										  keys.count - done, &lists);

		emit_lists((ReturnSetInfo *) fcinfo->resultinfo, info->value_size, keys.given + done, chunk,
				   &lists, buffer);
		done += chunk;
	}
}

Datum
gpuhash_find_all(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;

	gh_table_arg(fcinfo, GH_MAY_READ, &info);
	gh_require_bigint(&info);
	find_all(fcinfo, &info, NULL);
	return (Datum) 0;
}

Datum
gpuhash_find_all_bytea(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	bytea	   *buffer;

	gh_table_arg(fcinfo, GH_MAY_READ, &info);
	gh_require_bytes(&info);
	buffer = palloc(VARHDRSZ + info.value_size);
	SET_VARSIZE(buffer, VARHDRSZ + info.value_size);
	find_all(fcinfo, &info, buffer);
	return (Datum) 0;
}
