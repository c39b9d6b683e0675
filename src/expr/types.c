/*
 * types.c
 *		PostgreSQL's types: how columns of them are read, and what vectors hold of them.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/uuid.h"

#include "expr/translate.h"

static const GhTypeLoad type_loads[] = {
	{BOOLOID, GH_LOAD_BOOL, GH_CLASS_BOOL},
	{INT2OID, GH_LOAD_INT2, GH_CLASS_INT},
	{INT4OID, GH_LOAD_INT4, GH_CLASS_INT},
	{INT8OID, GH_LOAD_INT8, GH_CLASS_INT},
	{OIDOID, GH_LOAD_OID, GH_CLASS_INT},
	{DATEOID, GH_LOAD_INT4, GH_CLASS_INT},
	{TIMEOID, GH_LOAD_INT8, GH_CLASS_INT},
	{TIMESTAMPOID, GH_LOAD_INT8, GH_CLASS_INT},
	{TIMESTAMPTZOID, GH_LOAD_INT8, GH_CLASS_INT},
	{FLOAT4OID, GH_LOAD_FLOAT4, GH_CLASS_FLOAT4},
	{FLOAT8OID, GH_LOAD_FLOAT8, GH_CLASS_FLOAT8},
	{NUMERICOID, GH_LOAD_NUMERIC, GH_CLASS_INT128},
	{TEXTOID, GH_LOAD_TEXT, GH_CLASS_TEXT},
	{VARCHAROID, GH_LOAD_TEXT, GH_CLASS_TEXT},
	{BPCHAROID, GH_LOAD_TEXT, GH_CLASS_TEXT},
	{BYTEAOID, GH_LOAD_TEXT, GH_CLASS_TEXT},
	/* a name is padded with zeros, so that all of its bytes compare as it does */
	{NAMEOID, GH_LOAD_FIXED, GH_CLASS_TEXT, NAMEDATALEN},
	{UUIDOID, GH_LOAD_FIXED, GH_CLASS_TEXT, UUID_LEN},
	{MACADDROID, GH_LOAD_FIXED, GH_CLASS_TEXT, sizeof(macaddr)},
	{MACADDR8OID, GH_LOAD_FIXED, GH_CLASS_TEXT, sizeof(macaddr8)},
};

StaticAssertDecl(NAMEDATALEN <= GH_FIXED_LENGTH_MAX, "a name is longer than the engines read");

/* An enum is an oid, whose order is not that of its values: two of them are compared for equality alone. */
static const GhTypeLoad enum_load = {ANYENUMOID, GH_LOAD_OID, GH_CLASS_INT};

bool
gh_is_enum(Oid type)
{
	return type_is_enum(getBaseType(type));
}

static const GhTypeLoad *
find_listed(Oid type)
{
	for (Size i = 0; i < lengthof(type_loads); i++)
		if (type_loads[i].type == type)
			return &type_loads[i];
	return NULL;
}

/* How columns of a type are read; NULL: they are not. */
const GhTypeLoad *
gh_find_type(Oid type)
{
	const GhTypeLoad *found = find_listed(type);

	/* of a domain, values are those of its base type */
	if (found == NULL)
		found = find_listed(getBaseType(type));
	return found == NULL && gh_is_enum(type) ? &enum_load : found;
}

/* What vectors hold of a type; 0: nothing. */
GhClass
gh_class_of_type(Oid type)
{
	const GhTypeLoad *found = gh_find_type(type);

	return found == NULL ? (GhClass) 0 : found->value_class;
}

/* Whether it is a numeric whose type has no scale: its columns are bytes until they are read as numbers. */
bool
gh_is_open_numeric(Oid type, int32 typmod)
{
	return gh_class_of_type(type) == GH_CLASS_INT128 && gh_scale_of_typmod(typmod) < 0;
}
