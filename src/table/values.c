/*
 * values.c
 *		What a named table holds: values as bytea, and the checks that a function
 *		makes of the kind of the table.
 */
#include "postgres.h"

#include "port/pg_bswap.h"

#include "table/table.h"

void
gh_value_from_bytes(int value_size, const char *bytes, char *value)
{
	uint64		number;

	memcpy(value, bytes, value_size);
	if (value_size == sizeof(number))
	{
		memcpy(&number, bytes, sizeof(number));
		number = pg_ntoh64(number);
		memcpy(value, &number, sizeof(number));
	}
}

/* It is its own inverse. */
void
gh_value_to_bytes(int value_size, const char *value, char *bytes)
{
	gh_value_from_bytes(value_size, value, bytes);
}

static void
report_wrong_kind(const GhStoredInfo *info, const char *wanted)
{
	if (info->value_size == 0)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("hash table \"%s\" does not hold %s values", info->key.name, wanted),
				 errdetail("It is a set: keys without values."),
				 errhint("Use gpuhash_insert with keys alone, and gpuhash_contains.")));
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("hash table \"%s\" does not hold %s values", info->key.name, wanted),
			 errdetail("Its values are of %d bytes.", info->value_size),
			 errhint("Use gpuhash_insert with values of type bytea, gpuhash_find_bytea and gpuhash_find_all_bytea.")));
}

void
gh_require_bigint(const GhStoredInfo *info)
{
	if (info->value_size != sizeof(int64))
		report_wrong_kind(info, "bigint");
}

void
gh_require_bytes(const GhStoredInfo *info)
{
	if (info->value_size == 0)
		report_wrong_kind(info, "bytea");
}

void
gh_require_set(const GhStoredInfo *info)
{
	if (info->value_size != 0)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("hash table \"%s\" holds a value for each key", info->key.name),
				 errhint("Give values with the keys, or create a set: value_size => 0.")));
}

void
gh_require_single(const GhStoredInfo *info)
{
	if (info->multi)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("hash table \"%s\" holds many values for a key", info->key.name),
				 errhint("Use gpuhash_find_all or gpuhash_find_all_bytea.")));
}

void
gh_require_multi(const GhStoredInfo *info)
{
	if (!info->multi)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("hash table \"%s\" does not hold many values for a key", info->key.name),
				 errhint("Use gpuhash_delete, or create the table with multi => true.")));
}
