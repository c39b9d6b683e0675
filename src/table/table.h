/*
 * table.h
 *		Named hash tables: what the files behind the SQL functions share.
 *
 * README in this folder tells the story: who owns what, which lock guards what,
 * what an interrupted call leaves behind, and what happens when the device fails.
 */
#ifndef GPUHASH_TABLE_H
#define GPUHASH_TABLE_H

#include "postgres.h"

#include "fmgr.h"
#include "utils/array.h"

#include "compat.h"
#include "store/store.h"

/* Bytes of a key: int4 or int8. */
#define GH_KEY_SIZE_MIN ((int) sizeof(int32))
#define GH_KEY_SIZE_DEFAULT ((int) sizeof(int64))
#define GH_KEY_SIZE_MAX ((int) sizeof(int64))

/* Bytes of a value; 0: the table is a set. */
#define GH_VALUE_SIZE_MIN 0
#define GH_VALUE_SIZE_DEFAULT 8

/* Keys that a new table is asked to make room for. */
#define GH_CAPACITY_MIN 0
#define GH_CAPACITY_DEFAULT 0
#define GH_CAPACITY_MAX (INT64CONST(1) << 36)

/* Roles, PUBLIC among them, that a table is granted to. */
#define GH_GRANTS_MAX 64

/* ------------------------------------------------------------------- rights */

/* Each includes the ones before. */
typedef enum GhPrivilege
{
	GH_MAY_NOTHING,
	GH_MAY_READ,
	GH_MAY_WRITE,
	GH_MAY_OWN
} GhPrivilege;

typedef struct GhGrant
{
	Oid			role;			/* ACL_ID_PUBLIC: everybody */
	GhPrivilege privilege;
} GhGrant;

/* What the store keeps with a table for us. */
typedef struct GhRights
{
	Oid			owner;			/* InvalidOid: the role was dropped */
	int			ngrants;
	GhGrant		grants[GH_GRANTS_MAX];
} GhRights;

/* ---- grants.c: who may do what ---- */

/* The key of this database's table of that name. */
extern void gh_table_key(GhStoreKey *key, const char *name);
extern GhPrivilege gh_privilege_of(const GhRights *rights, Oid role);
/* A name argument, checked: 22004 for NULL, 42602 when empty, 42622 too long. */
extern char *gh_table_name_arg(FunctionCallInfo fcinfo, int argno);
/* The table of this name, if the current user may do that with it: 42704, 42501. */
extern void gh_table_lookup(const char *name, GhPrivilege need, GhStoredInfo *info);
/* Likewise of the function's first argument, and not lost: 55000. */
extern void gh_table_arg(FunctionCallInfo fcinfo, GhPrivilege need, GhStoredInfo *info);
/* The grants as an array of texts, like "role=read". */
extern ArrayType *gh_grants_array(const GhRights *rights);

/* ---- errors.c: a call's hold on a table, or the error that there is none ---- */

/* As of the store, but 42704 for a table that is gone and 55000 for a lost one. */
extern void gh_table_lock(GhAccess *access, const GhStoredInfo *info, LOCKMODE mode);
extern void gh_table_lock_buffered(GhAccess *access, const GhStoredInfo *info, LOCKMODE mode,
								   bool large, Size buffer_bytes);
/* The handle on the host's table. */
extern GhTable *gh_table_host(GhAccess *access);
/* ereport(ERROR), 42704 */
GH_NORETURN extern void gh_table_report_missing(const char *name);
/* ereport(ERROR), 55000: what every call on a lost table gets. */
GH_NORETURN extern void gh_table_report_lost(const char *name);
/* gh_report_error with the table's name and a cure for the engine. */
GH_NORETURN extern void gh_table_report(const char *name, const GhEngine *engine,
										const GhError *error, const char *verb);
/* Once the lock is released: tells of a copy given up, as gpuhash.fallback says. */
extern void gh_table_report_copy(const GhAccess *access);

/* ---- create.c ---- */

/* Drops all tables of this session, whoever owns them; not with the service. */
extern void gh_drop_session_tables(void);

/* ---- drops.c ---- */

/* Of _PG_init: hooks. */
extern void gh_tables_init(void);

/* ---- requests.c: operations on a named table, in chunks ---- */

/*
 * Each may throw on cancel, out of memory, a limit, or the loss of the device.
 * The table is then whole; of a modification a prefix of the keys may be done.
 * Arrays are of count elements and need to live during the call only.  Values are
 * as the engines have them, value_size bytes each without gaps: int64 where
 * value_size is 8.  So are keys: int64 or int32, as key_size says.
 */

/* Upsert, or add when multi, through a static build where that can be.  values is NULL for
 * a set.  Returns the number of new keys. */
extern uint64 gh_put(const GhStoredInfo *info, const void *keys, const void *values,
					 uint64 count);
/* Removes keys; returns the number of entries (values, when multi) that left. */
extern uint64 gh_remove(const GhStoredInfo *info, const void *keys, uint64 count);
/* Of a multi table: removes one value for each position of a key, as long as it has any;
 * returns the number of values. */
extern uint64 gh_remove_one(const GhStoredInfo *info, const void *keys, uint64 count);
/*
 * Values of bytea[] are copied out for so many positions at a time, each of which is done as a whole, as of
 * larger calls; a multiple of 8, so that the arrays of every piece are aligned.
 */
#define GH_PIECE_KEYS 65536

/* A mixed batch: arrays of count elements, values and found value_size bytes each. */
typedef struct GhMixedBatch
{
	uint64		count;
	const uint8 *ops;			/* a GhOp each: insert, upsert, find, delete */
	const void *keys;
	const void *values;			/* of any content where nothing is stored; NULL for a set */
	uint8	   *flags;			/* out: the key was found, is new, or was removed */
	void	   *found;			/* out: a find's value, where the flag is 1; NULL for a set */
} GhMixedBatch;

/* Does the positions one after the other.  Not for multi tables. */
extern void gh_apply(const GhStoredInfo *info, const GhMixedBatch *batch);

/* ---- reads.c ---- */

/* Every value of some keys, as find-all tells them. */
typedef struct GhValueLists
{
	MemoryContext context;		/* where the arrays are */
	uint64	   *offsets;		/* key i: values[offsets[i]] up to [offsets[i + 1]] */
	uint64		keys_capacity;	/* keys that offsets has room for */
	char	   *values;
	uint64		values_capacity;
} GhValueLists;

/*
 * found[i]: 1 or 0.  values, if not NULL: the value of each key found, undefined
 * where it is not; then the table must not be multi or a set.
 */
extern void gh_find(const GhStoredInfo *info, const void *keys, uint64 count,
					void *values, uint8 *found);
/* counts[i]: the number of the key's values; in a set 1 where the key is there. */
extern void gh_count(const GhStoredInfo *info, const void *keys, uint64 count, uint64 *counts);
/*
 * The values of the first keys, as many keys as fit in a bounded memory, but one
 * at least.  Returns their number.  Not for sets.
 */
extern uint64 gh_find_lists(const GhStoredInfo *info, const void *keys, uint64 count,
							GhValueLists *lists);

/* What the views tell of a table. */
typedef struct GhTableNumbers
{
	bool		lost;
	bool		unknown;		/* lost, or its device does not answer: no numbers */
	const char *engine;			/* that large reads use */
	int			device;			/* -1: none */
	char		reason[GH_REASON_SIZE];
	GhTableStats stats;			/* of the host's table, or of the device's alone */
	bool		parts_on_device;	/* the latter: its bytes are the device's, bytes_paged the host's */
	uint64		host_bytes;
	uint64		device_bytes;
	uint64		bytes_to_device;
	uint64		bytes_from_device;
	uint64		reads;
	uint64		writes;
} GhTableNumbers;

/* false: the table is gone. */
extern bool gh_read_numbers(const GhStoredInfo *info, GhTableNumbers *numbers);

/* ---- values.c: values as bytea ---- */

/*
 * Between the engine's value and the bytes of a bytea: in a table of 8-byte values
 * the bytes are those of int8send, so that a bigint v and the bytea int8send(v) are
 * the same value.
 */
extern void gh_value_from_bytes(int value_size, const char *bytes, char *value);
extern void gh_value_to_bytes(int value_size, const char *value, char *bytes);

/* Does the table hold what the caller needs?  42809 with the way to go. */
extern void gh_require_bigint(const GhStoredInfo *info);
extern void gh_require_bytes(const GhStoredInfo *info);
extern void gh_require_set(const GhStoredInfo *info);
extern void gh_require_single(const GhStoredInfo *info);
extern void gh_require_multi(const GhStoredInfo *info);

/* ---- arrays.c: SQL arrays in and out ---- */

typedef struct GhBigints
{
	uint64		count;
	const uint64 *values;		/* 0 where the element is NULL */
	const bool *nulls;			/* NULL: no element is */
} GhBigints;

/*
 * Keys as a table has them.  A bigint that is not an int4 is outside a table of 4-byte
 * keys: no entry has it.
 */
typedef struct GhKeys
{
	uint64		count;
	const void *keys;			/* key_size each; 0 where the element is NULL or outside */
	const uint64 *given;		/* as they were given */
	const bool *nulls;			/* NULL: no element is */
	const bool *outside;		/* NULL: no element is */
} GhKeys;

/* An array argument of at most one dimension: 22004 for NULL, 2202E. */
extern ArrayType *gh_array_arg(FunctionCallInfo fcinfo, int argno, const char *name);
/* 22004 if an element is NULL. */
extern void gh_forbid_nulls(ArrayType *array, const char *name);
/* Its bigint elements.  22004 for a NULL element unless nulls_allowed. */
extern void gh_bigint_elements(ArrayType *array, const char *name,
							   bool nulls_allowed, GhBigints *elements);
/* An array of the table's keys.  22004 for a NULL element unless nulls_allowed. */
extern void gh_keys_arg(FunctionCallInfo fcinfo, int argno, const GhStoredInfo *info,
						bool nulls_allowed, GhKeys *keys);
/* Likewise, all to be stored: 22003 for a key that is outside. */
extern void gh_keys_arg_to_store(FunctionCallInfo fcinfo, int argno, const GhStoredInfo *info,
								 GhKeys *keys);
/* Leaves out keys that no entry has: NULLs and those outside. */
extern void gh_keys_leave_out(const GhStoredInfo *info, GhKeys *keys);
/* ereport(ERROR), 22003 */
GH_NORETURN extern void gh_report_key_outside(const char *name, uint64 key);
/* Can the table have it? */
extern bool gh_key_fits(const GhStoredInfo *info, uint64 key);
/* A key that fits, as a table with keys of that size has it. */
extern void gh_set_key(int key_size, void *keys, uint64 at, uint64 key);
/* Which keys are not NULL; NULL: all. */
extern uint8 *gh_keys_present(const GhKeys *keys);
/* 2202E unless there is a value, or an operation, for each key. */
extern void gh_check_same_length(const GhKeys *keys, ArrayType *array, const char *element);
/* 22026 unless the value has value_size bytes, as the table of that name wants. */
extern void gh_check_value_size(const char *name, int value_size, Datum bytea_value);
/* The value as the engine has it. */
extern void gh_copy_value(int value_size, Datum bytea_value, char *target);

/* Arrays of one dimension; an element is NULL where present[i] is 0, and none is where
 * present is NULL. */
extern ArrayType *gh_make_bigint_array(const uint64 *values, const uint8 *present,
									   uint64 count);
extern ArrayType *gh_make_bytea_array(int value_size, const char *values,
									  const uint8 *present, uint64 count);
extern ArrayType *gh_make_packed_bytea_array(int value_size, const char *values, const uint8 *present,
											 uint64 count);
extern ArrayType *gh_make_bool_array(const uint8 *values, const uint8 *present,
									 uint64 count);

#endif							/* GPUHASH_TABLE_H */
