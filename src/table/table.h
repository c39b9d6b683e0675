/*
 * table.h
 *		Named hash tables: what the files behind the SQL functions share.
 *
 * README in this folder tells the story: who owns what, what an interrupted
 * call leaves behind, and what happens when the device fails.
 */
#ifndef GPUHASH_TABLE_H
#define GPUHASH_TABLE_H

#include "postgres.h"

#include "fmgr.h"
#include "utils/array.h"

#include "compat.h"
#include "engine/engine.h"

/* Bytes of a value; 0: the table is a set. */
#define GH_VALUE_SIZE_MIN 0
#define GH_VALUE_SIZE_DEFAULT 8
#define GH_VALUE_SIZE_MAX 1024

/* Keys that a new table is asked to make room for. */
#define GH_CAPACITY_MIN 0
#define GH_CAPACITY_DEFAULT 0
#define GH_CAPACITY_MAX (INT64CONST(1) << 36)

/* Values up to this many bytes are the engine's 8-byte values themselves. */
#define GH_INLINE_VALUE_SIZE 8

/* ---- values.c: values wider than 8 bytes ---- */

typedef struct GhValueStore GhValueStore;	/* opaque */

/* Never a slot: what the engine says for "no value". */
#define GH_NO_SLOT PG_UINT64_MAX

extern GhValueStore *gh_values_create(MemoryContext parent, int value_size);
/* A slot of undefined content, or GH_NO_SLOT: out of memory.  Does not throw. */
extern uint64 gh_values_alloc(GhValueStore *store);
extern void gh_values_free(GhValueStore *store, uint64 slot);
/* value_size bytes, to be read or written; valid until the slot is freed */
extern char *gh_values_at(GhValueStore *store, uint64 slot);
/* Frees every slot. */
extern void gh_values_reset(GhValueStore *store);

/*
 * A value of 1 to 8 bytes as the engine's number and back.  The number is read
 * from the bytes the way int8recv reads them, so that a bigint value v and the
 * bytea value int8send(v) are the same.
 */
extern uint64 gh_value_pack(const char *bytes, int value_size);
extern void gh_value_unpack(uint64 value, int value_size, char *bytes);

/* ---- registry.c: names, owners, life and death ---- */

/*
 * How far the modification in GhStage has come.  It is kept in the table because
 * an interrupt may end the call between any two of these steps; the next call
 * goes on (settle, in requests.c).
 */
typedef enum GhStagePhase
{
	GH_STAGE_IDLE,				/* nothing is left to do */
	GH_STAGE_MAIN,				/* submitted to main, whose request.done counts */
	GH_STAGE_COPY,				/* the host copy is to do what main did */
	GH_STAGE_SLOTS,				/* slots that are no longer used are to be freed */
	GH_STAGE_CLEAR				/* all of the table is to be emptied */
} GhStagePhase;

/* Every value of some keys, as find-all tells them. */
typedef struct GhValueLists
{
	MemoryContext context;		/* where the arrays are */
	uint64	   *offsets;		/* key i: values[offsets[i]] up to [offsets[i + 1]] */
	uint64		keys_capacity;	/* keys that offsets has room for */
	uint64	   *values;
	uint64		values_capacity;
} GhValueLists;

/* One chunk of a modification, in memory that outlives the call. */
typedef struct GhStage
{
	GhStagePhase phase;
	uint64		capacity;		/* keys that the arrays have room for */
	uint64	   *keys;			/* start of the block that holds all arrays */
	uint64	   *values_in;
	uint64	   *values_out;		/* wide values: slots that were replaced, or found */
	uint64	   *copy_out;		/* what the copy replaced: the same slots */
	uint8	   *flags;
	GhValueLists lists;			/* wide multi tables: slots of keys to be deleted */
	GhRequest	request;		/* as main does it */
	GhRequest	copy_request;	/* as the host copy does it */
} GhStage;

typedef struct GhNamedTable
{
	char		name[NAMEDATALEN];
	uint64		id;				/* never reused in a session */
	Oid			owner;
	MemoryContext context;		/* all host memory of the table, this struct too */
	MemoryContextCallback destroy;	/* gives the engines' tables back */

	/* as asked for at creation; 0: the setting's value */
	int			value_size;		/* bytes */
	bool		multi;
	int			subtables;
	double		fill_min;
	double		fill_max;
	int64		capacity;		/* keys */
	bool		host_copy;

	GhTable    *main;			/* answers; NULL: lost with its device */
	GhTable    *copy;			/* CPU twin of a main on a device, or NULL */
	const char *reason;			/* constant: why main is not on a GPU, or NULL */
	int			device;			/* main's, when it is on one */
	GhValueStore *store;		/* values wider than 8 bytes, else NULL */
	GhStage		stage;
} GhNamedTable;

#define gh_table_is_wide(table) ((table)->store != NULL)

/* A name argument, checked: 22004 for NULL, 42602 when empty, 42622 too long. */
extern char *gh_table_name_arg(FunctionCallInfo fcinfo, int argno);
/* The table of this name, if the current user may use it: 42704, 42501. */
extern GhNamedTable *gh_table_lookup(const char *name);
/* Likewise of the function's first argument, and not lost: 55000. */
extern GhNamedTable *gh_table_arg(FunctionCallInfo fcinfo);
/* Every table of the session, sorted by name; a palloc'd array. */
extern GhNamedTable **gh_table_list(int *count);

/* Makes the engines' tables of a new or lost table, by the present settings, in
 * place of those it has. */
extern void gh_table_open_engines(GhNamedTable *table);
/* ereport(ERROR), 55000: what every call on a lost table gets. */
GH_NORETURN extern void gh_table_report_lost(GhNamedTable *table);
/* gh_report_error with the table's name and a cure for the engine. */
GH_NORETURN extern void gh_table_report(GhNamedTable *table, const GhEngine *engine,
										const GhError *error, const char *verb);

/* Does the table hold what the caller needs?  42809 with the way to go. */
extern void gh_require_bigint(GhNamedTable *table);
extern void gh_require_bytes(GhNamedTable *table);
extern void gh_require_set(GhNamedTable *table);
extern void gh_require_single(GhNamedTable *table);

/* ---- requests.c: operations on a named table, in chunks ---- */

/*
 * Each may throw on cancel, out of memory, a limit, or the loss of the device.
 * The table is then whole; of a modification a prefix of the keys may be done.
 * Arrays are of count elements and need to live during the call only.
 */

/*
 * Upsert, or add when multi.  values is NULL for a set.  Not for wide values.
 * Returns the number of new keys.
 */
extern uint64 gh_put(GhNamedTable *table, const uint64 *keys,
					 const uint64 *values, uint64 count);
/* The same for values of bytes, value_size each, one after the other. */
extern uint64 gh_put_bytes(GhNamedTable *table, const uint64 *keys,
						   const char *bytes, uint64 count);
/*
 * found[i]: 1 or 0.  values, if not NULL: the number or slot of each key found,
 * undefined where it is not; then the table must not be multi or a set.
 */
extern void gh_find(GhNamedTable *table, const uint64 *keys, uint64 count,
					uint64 *values, uint8 *found);
/*
 * The values of the first keys, as many keys as fit in a bounded memory, but one
 * at least.  Returns their number.  Not for sets.
 */
extern uint64 gh_find_lists(GhNamedTable *table, const uint64 *keys, uint64 count,
							GhValueLists *lists);
/* Removes keys; returns the number of entries (values, when multi) that left. */
extern uint64 gh_remove(GhNamedTable *table, const uint64 *keys, uint64 count);
/* Removes every entry, once begun in the next call at the latest; brings a lost
 * table back. */
extern void gh_remove_all(GhNamedTable *table);
/* false: the table is, or just now was found, lost, or *error says what else. */
extern bool gh_read_stats(GhNamedTable *table, GhTableStats *stats, GhError *error);

/* Bytes of a key's value, of any table but a set. */
extern void gh_value_bytes(GhNamedTable *table, uint64 value, char *bytes);

/* ---- arrays.c: SQL arrays in and out ---- */

typedef struct GhKeys
{
	uint64		count;
	const uint64 *keys;			/* 0 where the element is NULL */
	const bool *nulls;			/* NULL: no element is */
} GhKeys;

/* An array argument of at most one dimension: 22004 for NULL, 2202E. */
extern ArrayType *gh_array_arg(FunctionCallInfo fcinfo, int argno, const char *name);
/* 22004 if an element is NULL. */
extern void gh_forbid_nulls(ArrayType *array, const char *name);
/* Its bigint elements.  22004 for a NULL element unless nulls_allowed. */
extern void gh_bigint_elements(ArrayType *array, const char *name,
							   bool nulls_allowed, GhKeys *elements);
/* Both of the above for the argument after the table's name. */
extern void gh_keys_arg(FunctionCallInfo fcinfo, bool nulls_allowed, GhKeys *keys);
/* 2202E unless there is a value for each key. */
extern void gh_check_same_length(const GhKeys *keys, ArrayType *values);
/* 22026 unless the value has value_size bytes, as the table of that name wants. */
extern void gh_check_value_size(const char *name, int value_size, Datum bytea_value);
/* The bytes of a value of that size. */
extern void gh_copy_value(int value_size, Datum bytea_value, char *target);

/* Arrays of one dimension; an element is NULL where present[i] is 0. */
extern ArrayType *gh_make_bigint_array(const uint64 *values, const uint8 *present,
									   uint64 count);
extern ArrayType *gh_make_bytea_array(GhNamedTable *table, const uint64 *values,
									  const uint8 *present, uint64 count);
extern ArrayType *gh_make_bool_array(const uint8 *values, const bool *nulls,
									 uint64 count);

#endif							/* GPUHASH_TABLE_H */
