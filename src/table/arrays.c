/*
 * arrays.c
 *		SQL arrays as arguments and results of the functions on named tables.
 *
 * Arguments are checked for what every function asks of them, and bigint[]
 * without NULLs are handed on as they are.  Results are built in place, without
 * a Datum for each element.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "utils/memutils.h"

#include "compat.h"
#include "table/table.h"

ArrayType *
gh_array_arg(FunctionCallInfo fcinfo, int argno, const char *name)
{
	ArrayType  *array;

	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("array of %s must not be null", name),
				 errhint("Give an empty array for no %s.", name)));
	array = PG_GETARG_ARRAYTYPE_P(argno);
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("array of %s has %d dimensions", name, ARR_NDIM(array)),
				 errhint("Give an array of one dimension.")));
	return array;
}

void
gh_forbid_nulls(ArrayType *array, const char *name)
{
	if (array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("array of %s must not contain nulls", name),
				 errhint("Leave out the keys that are null or have no value.")));
}

void
gh_bigint_elements(ArrayType *array, const char *name, bool nulls_allowed,
				   GhBigints *elements)
{
	const uint64 *data = (const uint64 *) ARR_DATA_PTR(array);
	const uint8 *bitmap = ARR_NULLBITMAP(array);
	uint64	   *dense;
	bool	   *nulls;

	elements->count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	elements->values = data;
	elements->nulls = NULL;
	if (!nulls_allowed)
		gh_forbid_nulls(array, name);
	if (!array_contains_nulls(array))
		return;

	dense = MemoryContextAllocHuge(CurrentMemoryContext,
								   elements->count * sizeof(uint64));
	nulls = palloc(elements->count * sizeof(bool));
	for (uint64 i = 0; i < elements->count; i++)
	{
		nulls[i] = att_isnull(i, bitmap);
		dense[i] = nulls[i] ? 0 : *data++;
	}
	elements->values = dense;
	elements->nulls = nulls;
}

/* --------------------------------------------------------------------- keys */

bool
gh_key_fits(const GhStoredInfo *info, uint64 key)
{
	return info->key_size == sizeof(uint64) || (int64) key == (int32) key;
}

void
gh_set_key(int key_size, void *keys, uint64 at, uint64 key)
{
	if (key_size == sizeof(uint64))
		((uint64 *) keys)[at] = key;
	else
		((uint32 *) keys)[at] = (uint32) key;
}

void
gh_report_key_outside(const char *name, uint64 key)
{
	ereport(ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
			 errmsg("key %lld is out of range for hash table \"%s\"", (long long) key, name),
			 errhint("Its keys are of 4 bytes, as those of type integer; "
					 "create it with key_size => 8 for keys of type bigint.")));
	pg_unreachable();
}

/* The keys in 4 bytes each. */
static void
narrow_keys(const GhStoredInfo *info, GhKeys *keys)
{
	uint32	   *narrow = MemoryContextAllocHuge(CurrentMemoryContext, Max(keys->count, 1) * sizeof(uint32));
	bool	   *outside = NULL;

	for (uint64 i = 0; i < keys->count; i++)
	{
		bool		fits = gh_key_fits(info, keys->given[i]);

		narrow[i] = fits ? (uint32) keys->given[i] : 0;
		if (fits)
			continue;
		if (outside == NULL)
			outside = palloc0(keys->count * sizeof(bool));
		outside[i] = true;
	}
	keys->keys = narrow;
	keys->outside = outside;
}

void
gh_keys_arg(FunctionCallInfo fcinfo, int argno, const GhStoredInfo *info, bool nulls_allowed,
			GhKeys *keys)
{
	GhBigints	elements;

	gh_bigint_elements(gh_array_arg(fcinfo, argno, "keys"), "keys", nulls_allowed, &elements);
	keys->count = elements.count;
	keys->given = elements.values;
	keys->nulls = elements.nulls;
	keys->keys = elements.values;
	keys->outside = NULL;
	if (info->key_size != sizeof(uint64))
		narrow_keys(info, keys);
}

void
gh_keys_arg_to_store(FunctionCallInfo fcinfo, int argno, const GhStoredInfo *info, GhKeys *keys)
{
	gh_keys_arg(fcinfo, argno, info, false, keys);
	for (uint64 i = 0; keys->outside != NULL && i < keys->count; i++)
		if (keys->outside[i])
			gh_report_key_outside(info->key.name, keys->given[i]);
}

void
gh_keys_leave_out(const GhStoredInfo *info, GhKeys *keys)
{
	uint64	   *given;
	void	   *left;
	uint64		count = 0;

	if (keys->nulls == NULL && keys->outside == NULL)
		return;
	given = MemoryContextAllocHuge(CurrentMemoryContext, keys->count * sizeof(uint64));
	left = MemoryContextAllocHuge(CurrentMemoryContext, keys->count * info->key_size);
	for (uint64 i = 0; i < keys->count; i++)
	{
		if ((keys->nulls != NULL && keys->nulls[i]) || (keys->outside != NULL && keys->outside[i]))
			continue;
		given[count] = keys->given[i];
		gh_set_key(info->key_size, left, count++, keys->given[i]);
	}
	keys->count = count;
	keys->given = given;
	keys->keys = left;
	keys->nulls = keys->outside = NULL;
}

uint8 *
gh_keys_present(const GhKeys *keys)
{
	uint8	   *present;

	if (keys->nulls == NULL)
		return NULL;
	present = palloc(keys->count);
	for (uint64 i = 0; i < keys->count; i++)
		present[i] = !keys->nulls[i];
	return present;
}

void
gh_check_same_length(const GhKeys *keys, ArrayType *array, const char *element)
{
	uint64		count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));

	if (count != keys->count)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("arrays of keys and %ss differ in length", element),
				 errdetail("The lengths are %llu and %llu.",
						   (unsigned long long) keys->count, (unsigned long long) count),
				 errhint("Give one %s for each key.", element)));
}

void
gh_check_value_size(const char *name, int value_size, Datum bytea_value)
{
	Size		size = toast_raw_datum_size(bytea_value) - VARHDRSZ;

	if (size != value_size)
		ereport(ERROR,
				(errcode(ERRCODE_STRING_DATA_LENGTH_MISMATCH),
				 errmsg("value of %zu bytes does not fit hash table \"%s\"", size, name),
				 errhint("Its values are of exactly %d bytes.", value_size)));
}

void
gh_copy_value(int value_size, Datum bytea_value, char *target)
{
	struct varlena *value = PG_DETOAST_DATUM_PACKED(bytea_value);

	gh_value_from_bytes(value_size, VARDATA_ANY(value), target);
	if ((Pointer) value != DatumGetPointer(bytea_value))
		pfree(value);
}

/* ---------------------------------------------------------------- results */

/*
 * An array whose elements that are present take element_size bytes each,
 * padding included, and are to be filled in at ARR_DATA_PTR.  present may be
 * NULL: all are.
 */
static ArrayType *
make_array(Oid element_type, Size element_size, const uint8 *present, uint64 count)
{
	uint64		filled = count;
	bool		has_nulls;
	uint64		bytes;
	ArrayType  *array;

	if (count == 0)
		return construct_empty_array(element_type);
	if (present != NULL)
	{
		filled = 0;
		for (uint64 i = 0; i < count; i++)
			filled += present[i] != 0;
	}
	has_nulls = filled < count;

	bytes = (has_nulls ? ARR_OVERHEAD_WITHNULLS(1, count) : ARR_OVERHEAD_NONULLS(1)) +
		filled * element_size;
	if (!AllocSizeIsValid(bytes))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("array size exceeds the maximum allowed (%d)", (int) MaxAllocSize),
				 errhint("Look up fewer keys at a time.")));
	array = palloc0(bytes);
	SET_VARSIZE(array, bytes);
	array->ndim = 1;
	array->dataoffset = has_nulls ? ARR_OVERHEAD_WITHNULLS(1, count) : 0;
	array->elemtype = element_type;
	ARR_DIMS(array)[0] = count;
	ARR_LBOUND(array)[0] = 1;
	if (has_nulls)
	{
		uint8	   *bitmap = ARR_NULLBITMAP(array);

		for (uint64 i = 0; i < count; i++)
			if (present[i])
				bitmap[i / 8] |= 1 << (i % 8);
	}
	return array;
}

ArrayType *
gh_make_bigint_array(const uint64 *values, const uint8 *present, uint64 count)
{
	ArrayType  *array = make_array(INT8OID, sizeof(uint64), present, count);
	uint64	   *data = (uint64 *) ARR_DATA_PTR(array);

	for (uint64 i = 0; i < count; i++)
		if (present == NULL || present[i])
			*data++ = values[i];
	return array;
}

/*
 * stride: bytes from one position's value to the next one's; 0: those that are present lie one behind the
 * other
 */
static ArrayType *
make_bytea_array(int value_size, const char *values, Size stride, const uint8 *present, uint64 count)
{
	Size		size = INTALIGN(VARHDRSZ + value_size);
	ArrayType  *array = make_array(BYTEAOID, size, present, count);
	char	   *data = ARR_DATA_PTR(array);
	const char *packed = values;

	for (uint64 i = 0; i < count; i++)
	{
		if (!present[i])
			continue;
		SET_VARSIZE(data, VARHDRSZ + value_size);
		gh_value_to_bytes(value_size, stride > 0 ? values + i * stride : packed, VARDATA(data));
		data += size;
		packed += value_size;
	}
	return array;
}

/* A value for each position that is present, at its place. */
ArrayType *
gh_make_bytea_array(int value_size, const char *values, const uint8 *present, uint64 count)
{
	return make_bytea_array(value_size, values, value_size, present, count);
}

/* The same of values that lie one behind the other. */
ArrayType *
gh_make_packed_bytea_array(int value_size, const char *values, const uint8 *present, uint64 count)
{
	return make_bytea_array(value_size, values, 0, present, count);
}

ArrayType *
gh_make_bool_array(const uint8 *values, const uint8 *present, uint64 count)
{
	ArrayType  *array = make_array(BOOLOID, sizeof(bool), present, count);
	char	   *data = ARR_DATA_PTR(array);

	for (uint64 i = 0; i < count; i++)
		if (present == NULL || present[i])
			*data++ = values[i] != 0;
	return array;
}
