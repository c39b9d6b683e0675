/*
 * modify.c
 *		SQL functions that change the content of a named table.
 *
 * None of them is part of a transaction: what was stored stays when the
 * transaction rolls back.
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "compat.h"
#include "table/table.h"

PG_FUNCTION_INFO_V1(gpuhash_insert_pair);
PG_FUNCTION_INFO_V1(gpuhash_insert_pairs);
PG_FUNCTION_INFO_V1(gpuhash_insert_bytea_pairs);
PG_FUNCTION_INFO_V1(gpuhash_insert_key);
PG_FUNCTION_INFO_V1(gpuhash_insert_keys);
PG_FUNCTION_INFO_V1(gpuhash_delete);
PG_FUNCTION_INFO_V1(gpuhash_delete_one);

static uint64
bigint_arg(FunctionCallInfo fcinfo, int argno, const char *name)
{
	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", name),
				 errhint("Hash tables store neither null keys nor null values.")));
	return (uint64) PG_GETARG_INT64(argno);
}

/* The key to be stored, in the first key_size bytes. */
static uint64
key_arg(FunctionCallInfo fcinfo, const GhStoredInfo *info)
{
	uint64		key = bigint_arg(fcinfo, 1, "key");
	uint64		stored = 0;

	if (!gh_key_fits(info, key))
		gh_report_key_outside(info->key.name, key);
	gh_set_key(info->key_size, &stored, 0, key);
	return stored;
}

Datum
gpuhash_insert_pair(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	uint64		key;
	uint64		value;

	gh_table_arg(fcinfo, GH_MAY_WRITE, &info);
	key = key_arg(fcinfo, &info);
	value = bigint_arg(fcinfo, 2, "value");
	gh_require_bigint(&info);
	PG_RETURN_BOOL(gh_put(&info, &key, &value, 1) > 0);
}

Datum
gpuhash_insert_pairs(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	ArrayType  *array;
	GhKeys		keys;
	GhBigints	values;

	gh_table_arg(fcinfo, GH_MAY_WRITE, &info);
	gh_require_bigint(&info);
	gh_keys_arg_to_store(fcinfo, 1, &info, &keys);
	array = gh_array_arg(fcinfo, 2, "values");
	gh_check_same_length(&keys, array, "value");
	gh_bigint_elements(array, "values", false, &values);
	PG_RETURN_INT64(gh_put(&info, keys.keys, values.values, keys.count));
}

/* Every value is checked before the first is stored. */
Datum
gpuhash_insert_bytea_pairs(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	ArrayType  *array;
	GhKeys		keys;
	Datum	   *values;
	bool	   *nulls;
	int			count;
	char	   *bytes;
	uint64		new_keys = 0;

	gh_table_arg(fcinfo, GH_MAY_WRITE, &info);
	gh_require_bytes(&info);
	gh_keys_arg_to_store(fcinfo, 1, &info, &keys);
	array = gh_array_arg(fcinfo, 2, "values");
	gh_check_same_length(&keys, array, "value");
	gh_forbid_nulls(array, "values");
	deconstruct_array(array, BYTEAOID, -1, false, TYPALIGN_INT, &values, &nulls, &count);
	for (int i = 0; i < count; i++)
		gh_check_value_size(info.key.name, info.value_size, values[i]);

	bytes = palloc(Min(GH_PIECE_KEYS, count) * info.value_size);
	for (uint64 done = 0; done < count; done += GH_PIECE_KEYS)
	{
		uint64		n = Min(GH_PIECE_KEYS, count - done);

		for (uint64 i = 0; i < n; i++)
			gh_copy_value(info.value_size, values[done + i],
						  bytes + i * info.value_size);
		new_keys += gh_put(&info, (const char *) keys.keys + done * info.key_size, bytes, n);
	}
	PG_RETURN_INT64(new_keys);
}

Datum
gpuhash_insert_key(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	uint64		key;

	gh_table_arg(fcinfo, GH_MAY_WRITE, &info);
	key = key_arg(fcinfo, &info);
	gh_require_set(&info);
	PG_RETURN_BOOL(gh_put(&info, &key, NULL, 1) > 0);
}

Datum
gpuhash_insert_keys(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	GhKeys		keys;

	gh_table_arg(fcinfo, GH_MAY_WRITE, &info);
	gh_require_set(&info);
	gh_keys_arg_to_store(fcinfo, 1, &info, &keys);
	PG_RETURN_INT64(gh_put(&info, keys.keys, NULL, keys.count));
}

Datum
gpuhash_delete(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	GhKeys		keys;

	gh_table_arg(fcinfo, GH_MAY_WRITE, &info);
	gh_keys_arg(fcinfo, 1, &info, false, &keys);
	gh_keys_leave_out(&info, &keys);
	PG_RETURN_INT64(gh_remove(&info, keys.keys, keys.count));
}

Datum
gpuhash_delete_one(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	GhKeys		keys;

	gh_table_arg(fcinfo, GH_MAY_WRITE, &info);
	gh_require_multi(&info);
	gh_keys_arg(fcinfo, 1, &info, false, &keys);
	gh_keys_leave_out(&info, &keys);
	PG_RETURN_INT64(gh_remove_one(&info, keys.keys, keys.count));
}
