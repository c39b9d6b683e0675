/*
 * values.c
 *		SQL values and what the engines hold of them, in both directions.
 *
 * What a vector holds of a type stands in engine/program.h; columns are read so by
 * engine/page/cpu_page.h, and here a Datum is.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "engine/page/numeric.h"
#include "engine/program/aggregate.h"
#include "engine/program/program_int128.h"
#include "expr/values.h"

/* 10^19: an integer of 128 bits with sign is at most 2^64 times as much. */
#define LOWER_DIGITS UINT64_C(10000000000000000000)
/* A sign, two words in decimal, "e-" and a scale. */
#define INT128_TEXT_SIZE 64

/* -------------------------------------------------------------------- types */

/* Whether values of a base type are held as a class, and as which: floats may be wider. */
static bool
class_holds(Oid type, GhClass *value_class)
{
	switch (type)
	{
		case BOOLOID:
			return *value_class == GH_CLASS_BOOL;
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return *value_class == GH_CLASS_INT;
		case NUMERICOID:
			/* TEXT: as it is stored */
			return *value_class == GH_CLASS_INT128 || *value_class == GH_CLASS_TEXT;
		case FLOAT4OID:
			return *value_class == GH_CLASS_FLOAT4;
		case FLOAT8OID:
			if (*value_class == GH_CLASS_FLOAT4)
				*value_class = GH_CLASS_FLOAT8;
			return *value_class == GH_CLASS_FLOAT8;
		case TEXTOID:
		case VARCHAROID:
		case BYTEAOID:
		case NAMEOID:
		case UUIDOID:
		case MACADDROID:
		case MACADDR8OID:
			return *value_class == GH_CLASS_TEXT;
		case BPCHAROID:
			return *value_class == GH_CLASS_TEXT || *value_class == GH_CLASS_BPCHAR;
		default:
			return false;
	}
}

/*
 * Describes a type whose values an engine holds as `value_class`; false: they are not held
 * so.  `scale` is that of INT128, and nothing to other classes.
 */
bool
gh_value_type_init(GhValueType *type, Oid sql_type, GhClass value_class, int scale)
{
	type->type = getBaseType(sql_type);
	/* an enum's value is an oid */
	if (type_is_enum(type->type))
		type->type = OIDOID;
	type->value_class = value_class;
	type->scale = value_class == GH_CLASS_INT128 ? scale : 0;
	if (!class_holds(type->type, &type->value_class) ||
		type->scale < 0 || type->scale > GH_SCALE_MAX)
		return false;
	get_typlenbyval(type->type, &type->typlen, &type->typbyval);
	return true;
}

/* Whether its values are so many bytes by reference, as a uuid's. */
static bool
is_fixed(const GhValueType *type)
{
	return type->typlen > 0 && type->value_class == GH_CLASS_TEXT;
}

/* ------------------------------------------------------------- from a Datum */

static uint64
word_of_datum(Oid type, Datum datum)
{
	switch (type)
	{
		case BOOLOID:
			return DatumGetBool(datum);
		case INT2OID:
			return (uint64) (int64) DatumGetInt16(datum);
		case INT4OID:
			return (uint64) (int64) DatumGetInt32(datum);
		case INT8OID:
			return (uint64) DatumGetInt64(datum);
		case OIDOID:
			return DatumGetObjectId(datum);
		case DATEOID:
			return (uint64) (int64) DatumGetDateADT(datum);
		case TIMEOID:
			return (uint64) DatumGetTimeADT(datum);
		case TIMESTAMPOID:
			return (uint64) DatumGetTimestamp(datum);
		case TIMESTAMPTZOID:
			return (uint64) DatumGetTimestampTz(datum);
		case FLOAT4OID:
			return gh_from_double(DatumGetFloat4(datum));
		case FLOAT8OID:
			return gh_from_double(DatumGetFloat8(datum));
		default:
			elog(ERROR, "gpuhash: type %u is not held in a word", type);
	}
}

/*
 * A value as a vector holds it.  Bytes are the Datum's own where it is neither compressed nor
 * toasted, and in the current context otherwise.
 */
GhSqlValue
gh_value_of_datum(const GhValueType *type, Datum datum, bool null)
{
	GhSqlValue	value = {0, 0, GH_SQL_HELD};
	struct varlena *stored;
	const uint8 *bytes;
	Size		length;

	if (null)
		value.kind = GH_SQL_NULL;
	else if (is_fixed(type))
	{
		value.low = (uintptr_t) DatumGetPointer(datum);
		value.high = type->typlen;
	}
	else if (type->typlen > 0)
		value.low = word_of_datum(type->type, datum);
	else
	{
		stored = PG_DETOAST_DATUM_PACKED(datum);
		bytes = (const uint8 *) VARDATA_ANY(stored);
		length = VARSIZE_ANY_EXHDR(stored);
		if (type->value_class == GH_CLASS_INT128)
		{
			if (gh_numeric_read(bytes, length, type->scale, &value.low, &value.high))
				return value;
			value.kind = GH_SQL_BYTES;
		}
		value.low = (uintptr_t) bytes;
		value.high = length;
	}
	return value;
}

/* --------------------------------------------------------------- to a Datum */

/* The numeric of an integer times 10 to the power of -scale, shown with that scale. */
Datum
gh_numeric_of_int128(uint64 low, uint64 high, int scale)
{
	GhUint128	magnitude = gh_int128_magnitude(gh_int128(low, high));
	char		text[INT128_TEXT_SIZE];

	if (high == gh_sign_extension(low))
		return NumericGetDatum(int64_div_fast_to_numeric((int64) low, scale));
	snprintf(text, sizeof(text), "%s%llu%019llue-%d", (int64) high < 0 ? "-" : "",
			 (unsigned long long) (magnitude / LOWER_DIGITS),
			 (unsigned long long) (magnitude % LOWER_DIGITS), scale);
	return DirectFunctionCall3(numeric_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid),
							   Int32GetDatum(-1));
}

static Datum
datum_of_word(Oid type, uint64 word)
{
	switch (type)
	{
		case BOOLOID:
			return BoolGetDatum(word != 0);
		case INT2OID:
			return Int16GetDatum((int16) word);
		case INT4OID:
			return Int32GetDatum((int32) word);
		case INT8OID:
			return Int64GetDatum((int64) word);
		case OIDOID:
			return ObjectIdGetDatum((Oid) word);
		case DATEOID:
			return DateADTGetDatum((DateADT) word);
		case TIMEOID:
			return TimeADTGetDatum((TimeADT) word);
		case TIMESTAMPOID:
			return TimestampGetDatum((Timestamp) word);
		case TIMESTAMPTZOID:
			return TimestampTzGetDatum((TimestampTz) word);
		case FLOAT4OID:
			return Float4GetDatum((float4) gh_to_double(word));
		case FLOAT8OID:
			return Float8GetDatum(gh_to_double(word));
		default:
			elog(ERROR, "gpuhash: type %u is not held in a word", type);
	}
}

static Datum
fixed_datum(const GhValueType *type, GhSqlValue value)
{
	void	   *bytes;

	if (value.high != (uint64) type->typlen)
		elog(ERROR, "gpuhash: a value of type %u has another length", type->type);
	bytes = palloc(type->typlen);
	memcpy(bytes, (const void *) (uintptr_t) value.low, type->typlen);
	return PointerGetDatum(bytes);
}

/* PostgreSQL's value, by reference in the current context. */
Datum
gh_datum_of_value(const GhValueType *type, GhSqlValue value, bool *null)
{
	struct varlena *stored;

	*null = value.kind == GH_SQL_NULL;
	if (*null)
		return (Datum) 0;
	if (is_fixed(type))
		return fixed_datum(type, value);
	if (type->typlen > 0)
		return datum_of_word(type->type, value.low);
	if (type->value_class == GH_CLASS_INT128 && value.kind == GH_SQL_HELD)
		return gh_numeric_of_int128(value.low, value.high, type->scale);
	stored = palloc(VARHDRSZ + value.high);
	SET_VARSIZE(stored, VARHDRSZ + value.high);
	memcpy(VARDATA(stored), (const void *) (uintptr_t) value.low, value.high);
	return PointerGetDatum(stored);
}

/* What of a value is in the vector as bytes: not compressed, and here. */
static bool
unpack(Datum *value, MemoryContext unpacked)
{
	struct varlena *bytes = (struct varlena *) DatumGetPointer(*value);
	MemoryContext saved;

	if (!VARATT_IS_EXTERNAL(bytes) && !VARATT_IS_COMPRESSED(bytes))
		return true;
	/* nobody knows whether what lies elsewhere is worth being read */
	if (unpacked == NULL || VARATT_IS_EXTERNAL(bytes))
		return false;
	saved = MemoryContextSwitchTo(unpacked);
	*value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(*value));
	MemoryContextSwitchTo(saved);
	return true;
}

/*
 * Bytes of a number of the column in the row of a table, 0 where they are those of its class (GhKept.bytes).
 */
uint8
gh_kept_bytes_of(const GhColumn *column)
{
	switch ((GhLoad) column->load)
	{
		case GH_LOAD_INT2:
			return sizeof(int16);
		case GH_LOAD_INT4:
			return sizeof(int32);
		case GH_LOAD_INT8:
		case GH_LOAD_OID:
			return sizeof(int64);
		default:
			return 0;
	}
}

/*
 * Puts a column's value into a vector, as a page's would be read, or that it is NULL; false: it cannot be.
 * unpacked: where compressed values are unpacked; NULL: they are not, and cannot be.
 */
bool
gh_store_value(const GhColumn *column, Datum value, bool null, MemoryContext unpacked, GhVector *vector,
			   int row)
{
	float8		number;
	struct varlena *bytes;

	vector->null[row] = null;
	if (null)
		return true;
	switch ((GhLoad) column->load)
	{
		case GH_LOAD_INT2:
			vector->low[row] = (uint64) (int64) DatumGetInt16(value);
			return true;
		case GH_LOAD_INT4:
			vector->low[row] = (uint64) (int64) DatumGetInt32(value);
			return true;
		case GH_LOAD_INT8:
			vector->low[row] = (uint64) DatumGetInt64(value);
			return true;
		case GH_LOAD_OID:
			vector->low[row] = DatumGetObjectId(value);
			return true;
		case GH_LOAD_BOOL:
			vector->low[row] = DatumGetBool(value);
			return true;
		case GH_LOAD_FLOAT4:
		case GH_LOAD_FLOAT8:
			number = column->load == GH_LOAD_FLOAT4 ? (float8) DatumGetFloat4(value) : DatumGetFloat8(value);
			memcpy(&vector->low[row], &number, sizeof(number));
			return true;
		case GH_LOAD_NUMERIC:
		case GH_LOAD_TEXT:
			if (!unpack(&value, unpacked))
				return false;
			bytes = (struct varlena *) DatumGetPointer(value);
			if (column->load == GH_LOAD_NUMERIC)
				return gh_numeric_read((const uint8 *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes),
									   column->scale, &vector->low[row], &vector->high[row]);
			vector->low[row] = (uint64) (uintptr_t) VARDATA_ANY(bytes);
			vector->high[row] = VARSIZE_ANY_EXHDR(bytes);
			return true;
		case GH_LOAD_FIXED:
			vector->low[row] = (uint64) (uintptr_t) DatumGetPointer(value);
			vector->high[row] = column->length;
			return true;
		case GH_LOAD_TID:
			vector->low[row] = (uint64) DatumGetInt64(value);
			return true;
	}
	return false;
}

/* What of a value is an address and a length. */
bool
gh_value_is_bytes(const GhValueType *type, const GhSqlValue *value)
{
	return value->kind == GH_SQL_BYTES ||
		(value->kind == GH_SQL_HELD && type->value_class == GH_CLASS_TEXT);
}

/* --------------------------------------------------------------------- order */

#define ST_SORT sort_numbers
#define ST_ELEMENT_TYPE int64
#define ST_COMPARE(a, b) (*(a) < *(b) ? -1 : *(a) > *(b))
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/* Of lists, which may be long. */
void
gh_sort_numbers(int64 *numbers, size_t count)
{
	sort_numbers(numbers, count);
}
