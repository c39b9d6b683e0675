/*
 * values.h
 *		values.c: SQL values, and what the engines hold of them.
 */
#ifndef GPUHASH_VALUES_H
#define GPUHASH_VALUES_H

#include "postgres.h"

#include "engine/program/program.h"

/* A type of which the engines hold values, as vectors of engine/program.h have them. */
typedef struct GhValueType
{
	Oid			type;			/* base type */
	GhClass		value_class;
	int			scale;			/* GH_CLASS_INT128: decimal digits after the point */
	int16		typlen;
	bool		typbyval;
} GhValueType;

/* What a value is. */
typedef enum GhSqlKind
{
	GH_SQL_HELD = 0,			/* low and high, as in a vector */
	GH_SQL_NULL,
	GH_SQL_BYTES				/* of a class but TEXT, one that does not fit (a numeric that is NaN,
								 * infinite, or wide): low and high are address and length of the
								 * varlena's bytes behind its header, as of text */
} GhSqlKind;

typedef struct GhSqlValue
{
	uint64		low;
	uint64		high;
	uint8		kind;			/* a GhSqlKind */
} GhSqlValue;

extern bool gh_value_type_init(GhValueType *type, Oid sql_type, GhClass value_class, int scale);
extern bool gh_value_is_bytes(const GhValueType *type, const GhSqlValue *value);
extern GhSqlValue gh_value_of_datum(const GhValueType *type, Datum datum, bool null);
extern Datum gh_datum_of_value(const GhValueType *type, GhSqlValue value, bool *null);
extern uint8 gh_kept_bytes_of(const GhColumn *column);
extern bool gh_store_value(const GhColumn *column, Datum value, bool null, MemoryContext unpacked,
						   GhVector *vector, int row);
extern void gh_sort_numbers(int64 *numbers, size_t count);
extern Datum gh_numeric_of_int128(uint64 low, uint64 high, int scale);

#endif							/* GPUHASH_VALUES_H */
