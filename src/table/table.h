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
#include "port/atomics.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/dsa.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "engine/engine.h"

/* Bytes of a value; 0: the table is a set. */
#define GH_VALUE_SIZE_MIN 0
#define GH_VALUE_SIZE_DEFAULT 8

/* Keys that a new table is asked to make room for. */
#define GH_CAPACITY_MIN 0
#define GH_CAPACITY_DEFAULT 0
#define GH_CAPACITY_MAX (INT64CONST(1) << 36)

/* Bytes of the keys and values that go to a device at a time: a unit of the transfer
 * area. */
#define GH_CHUNK_BYTES ((Size) 512 * 1024)

/* Roles, PUBLIC among them, that a table is granted to. */
#define GH_GRANTS_MAX 64

/* What the engine setting's rule said of the table, or what happened since. */
#define GH_REASON_SIZE 64
#define GH_REASON_FAILED "the GPU failed"

/* ------------------------------------------------------------ a named table */

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

typedef struct GhNamedTable GhNamedTable;

/* What is known of a table without its lock: a copy that a look-up makes. */
typedef struct GhTableInfo
{
	/* never changes; 0: the setting's value */
	char		name[NAMEDATALEN];
	Oid			database;
	uint64		id;				/* never used again */
	int			value_size;		/* bytes */
	bool		multi;
	int			subtables;
	double		fill_min;
	double		fill_max;
	int64		capacity;		/* keys */
	bool		host_copy;
	bool		wants_copy;		/* on a device, too, when it is large */

	/* guarded by the registry */
	Oid			owner;			/* InvalidOid: the role was dropped */
	bool		ready;			/* made in full; others do not see it before */
	int			ngrants;
	GhGrant		grants[GH_GRANTS_MAX];

	/* of a copy only: as it was when the copy was made */
	GhNamedTable *table;		/* to be followed under the table's lock */
	bool		on_host;
	bool		lost;			/* with its device */
	int			device;			/* where it or its copy is, or -1 */
	bool		copy_due;		/* a copy on a device may be tried */
	uint64		keys;			/* about so many */
	TimestampTz used;
} GhTableInfo;

/*
 * Is the table on a device to be relied upon?  The number beside the state goes up
 * with every new engine's table there.
 */
typedef enum GhCopyState
{
	GH_COPY_NONE,
	GH_COPY_UNSURE,				/* it is being made or changed, or failed: whoever
								 * finds it so under a lock that keeps those who make
								 * and change it out drops it */
	GH_COPY_READY
} GhCopyState;

#define GH_COPY_STATE_BITS 2
#define gh_copy_state(word) ((GhCopyState) ((word) & ((1 << GH_COPY_STATE_BITS) - 1)))
#define gh_copy_number(word) ((word) >> GH_COPY_STATE_BITS)
#define gh_copy_word(number, state) (((uint64) (number) << GH_COPY_STATE_BITS) | (uint64) (state))

/*
 * In shared memory with the service, else in the session's.  The table's lock
 * guards what is not atomic: read under any mode, written under GH_TO_WRITE, the
 * copy's fields under GH_TO_COPY or GH_TO_WRITE.
 */
struct GhNamedTable
{
	GhTableInfo info;			/* guarded by the registry */
	uint64		self;			/* this struct, as gh_memory_alloc named it */

	GhRef		host;			/* root on the CPU engine; 0: there is none */
	GhRef		blocks;			/* shared memory: the first of the host's blocks */
	uint64		blocks_changed; /* counts new ones */

	pg_atomic_uint64 copy;		/* gh_copy_word */
	GhRef		device_root;	/* as the engine tells it; valid unless GH_COPY_NONE */
	int			device;
	char		reason[GH_REASON_SIZE]; /* why it is not on a device, or empty */
	pg_atomic_uint64 copy_tried;	/* TimestampTz: no copy for a minute after this */

	pg_atomic_uint64 keys;		/* about so many: exact when a call has ended well */
	pg_atomic_uint64 reads;		/* keys looked up so far */
	pg_atomic_uint64 writes;	/* positions of modifications so far */
	pg_atomic_uint64 used;		/* TimestampTz of the last call */
};

/* ---- shared.c: memory of named tables in shared memory ---- */

extern void gh_shared_attach(void);
/* A number for a new table. */
extern uint64 gh_shared_new_id(void);
/* Counts dropped tables, so that other sessions let go of their handles. */
extern pg_atomic_uint64 *gh_shared_drops(void);
extern dsa_area *gh_shared_area(void);
/* Zeroed.  May ereport. */
extern dsa_pointer gh_shared_alloc(Size bytes);
extern void gh_shared_free(dsa_pointer pointer);
extern void *gh_shared_address(dsa_pointer pointer);
extern struct dshash_table *gh_shared_names(void);
/* Counts bytes of blocks; false: there would be too many, and nothing was counted. */
extern bool gh_shared_count(int64 bytes);

/* ---- segments.c ---- */

extern Size gh_segments_shmem_size(void);
extern void gh_segments_shmem_init(void *place, bool found);
/* A number that nobody uses, or -1: there are too many. */
extern int	gh_segment_take(void);
/* Nobody uses it any more. */
extern void gh_segment_leave(int number);
/* Makes the segment of that number, mapped; false: the server has too many.  May
 * ereport. */
extern bool gh_segment_create(int number, Size bytes);
/* Of a segment mapped in this process; leaves the number.  May ereport. */
extern void gh_segment_free(int number);
/* Maps a segment in this process, if it is not.  May ereport. */
extern void gh_segment_map(int number);
/* Of a segment mapped in this process. */
extern void *gh_segment_address(int number);
/* Unmaps what others have freed. */
extern void gh_segments_sweep(void);

/* ---- blocks.c: what the CPU engine allocates ---- */

/* Fills host so that it allocates blocks of that table, which outlives it. */
extern void gh_shared_host_init(GhHost *host, GhNamedTable *table);
/* Maps the table's blocks in this process, so that no engine has to.  May ereport. */
extern void gh_shared_map_blocks(GhNamedTable *table);
/* Frees all memory of a table on the host without an engine.  Does not throw. */
extern void gh_shared_free_blocks(GhNamedTable *table);

/* ---- names.c: names -> tables, in shared memory or the session's ---- */

/* The key, unique among all tables. */
typedef struct GhTableKey
{
	Oid			database;
	char		name[NAMEDATALEN];	/* padded with zeroes */
} GhTableKey;

typedef struct GhNameEntry
{
	GhTableKey	key;
	uint64		table;			/* as gh_memory_alloc named it */
} GhNameEntry;

/* A table, made in full or not. */
extern bool gh_names_find(Oid database, const char *name, GhTableInfo *info);
/* Enters a table that is not ready yet; NULL: there is one of that name. */
extern GhNamedTable *gh_names_add(const GhTableInfo *info);
/* The table's entry and struct go. */
extern void gh_names_remove(GhNamedTable *table);
/* Has change alter what the registry guards; false: no such table any more. */
extern bool gh_names_change(const GhTableInfo *info,
							void (*change) (GhTableInfo *info, void *arg), void *arg);
/* All that are ready, of one database or, InvalidOid, of all; a palloc'd array sorted
 * by name. */
extern GhTableInfo *gh_names_list(Oid database, int *count);
/* A new number. */
extern uint64 gh_names_new_id(void);

/* ---- grants.c: who may do what ---- */

extern GhPrivilege gh_privilege_of(const GhTableInfo *info, Oid role);
/* A name argument, checked: 22004 for NULL, 42602 when empty, 42622 too long. */
extern char *gh_table_name_arg(FunctionCallInfo fcinfo, int argno);
/* The table of this name, if the current user may do that with it: 42704, 42501. */
extern void gh_table_lookup(const char *name, GhPrivilege need, GhTableInfo *info);
/* 25000 in a parallel worker: its leader's locks do not keep it out. */
extern void gh_refuse_parallel_worker(const char *name);
/* Likewise of the function's first argument, and not lost: 55000. */
extern void gh_table_arg(FunctionCallInfo fcinfo, GhPrivilege need, GhTableInfo *info);
/* ereport(ERROR), 42704 */
GH_NORETURN extern void gh_table_report_missing(const char *name);
/* The grants as an array of texts, like "role=read". */
extern ArrayType *gh_grants_array(const GhTableInfo *info);

/* ---- access.c: a table's lock, and this process's handles on it ---- */

/* Modes of the lock, each with what it keeps out beside itself. */
#define GH_TO_READ RowShareLock				/* those who write and drop */
#define GH_TO_COPY ShareUpdateExclusiveLock /* ... and others who copy */
#define GH_TO_WRITE ExclusiveLock			/* all others */
#define GH_TO_DROP AccessExclusiveLock		/* all others */

/* This process's handles on a table. */
typedef struct GhHandle
{
	uint64		id;				/* of the table; the key */
	GhTableKey	key;
	GhNamedTable *table;
	MemoryContext context;		/* session's tables: the host's memory */
	GhRef		host_root;		/* what host is a handle on */
	GhTable    *host;
	GhRef		device_root;
	GhTable    *on_device;
	uint64		blocks_seen;	/* GhNamedTable.blocks_changed when they were mapped */
} GhHandle;

/* A call's hold on a table. */
typedef struct GhAccess
{
	GhTableInfo info;
	GhNamedTable *table;
	GhHandle   *handle;
	LOCKMODE	mode;
	void	   *buffer;			/* of the service, or NULL */
	Size		buffer_bytes;
	GhError		left;			/* why the copy on the device was given up meanwhile */
} GhAccess;

/* Waits for the lock.  false: the table is gone.  Zero the struct before. */
extern bool gh_access_try(GhAccess *access, const GhTableInfo *info, LOCKMODE mode);
/* false: the table is gone, or the lock is not to be had at once. */
extern bool gh_access_try_now(GhAccess *access, const GhTableInfo *info, LOCKMODE mode);
/* Likewise, but 42704 for a table that is gone and 55000 for a lost one. */
extern void gh_access_begin(GhAccess *access, const GhTableInfo *info, LOCKMODE mode);
/* Likewise with a buffer of the service, if the table's requests there need one, and
 * for a read of no more than few keys they do not. */
extern void gh_access_open(GhAccess *access, const GhTableInfo *info, LOCKMODE mode,
						   bool large, Size buffer_bytes);
/* Releases the lock and the buffer. */
extern void gh_access_end(GhAccess *access);
/* The lock of a new table, which nobody else knows yet. */
extern void gh_access_lock_new(GhAccess *access, const GhTableInfo *info);
/* Then, the table once it is entered. */
extern void gh_access_new(GhAccess *access, GhNamedTable *table);
/* Another database's tables may be looked at until gh_access_visited; false: not now. */
extern bool gh_access_visit(Oid database);
extern void gh_access_visited(Oid database);
/* Waits for such visitors and keeps them out until the transaction ends. */
extern void gh_access_keep_out(Oid database);
/* Of a table about to go: closes the handles. */
extern void gh_handle_forget(uint64 id);

/* The handle on the host's table; the caller knows there is one. */
extern GhTable *gh_host_of(GhAccess *access);
/* The handle on the device's, or NULL and why. */
extern GhTable *gh_device_of(GhAccess *access, GhError *error);

/* ---- create.c ---- */

/* Drops all tables of this session, whoever owns them; not with the service. */
extern void gh_drop_session_tables(void);

/* ---- engines.c: engines' tables of a named table come and go ---- */

/* Makes those of a new or lost table, by the present settings. */
extern void gh_engines_open(GhAccess *access);
/* Frees all there are.  Does not throw. */
extern void gh_engines_close(GhAccess *access);
/* A table on the device for that many keys, GH_COPY_UNSURE. */
extern GhStatus gh_device_open(GhAccess *access, const GhEngine *engine, uint64 keys,
							   GhError *error);
/* Frees it.  Does not throw. */
extern void gh_device_close(GhAccess *access);
/* ereport(ERROR), 55000: what every call on a lost table gets. */
GH_NORETURN extern void gh_table_report_lost(const char *name);
/* gh_report_error with the table's name and a cure for the engine. */
GH_NORETURN extern void gh_table_report(const char *name, const GhEngine *engine,
										const GhError *error, const char *verb);

/* ---- copies.c: the copy on a device of a table on the host ---- */

extern uint64 gh_copy_word_of(GhNamedTable *table);
extern bool gh_copy_is_ready(GhNamedTable *table);
/* From now on it is unsure, or sure again; by those who may change it. */
extern void gh_copy_set(GhNamedTable *table, GhCopyState state);
/* A read through the copy of that word failed; under any lock. */
extern void gh_copy_failed(GhAccess *access, uint64 word, const GhError *error);
/* It is given up, under a lock that allows to. */
extern void gh_copy_drop(GhAccess *access, const GhError *error);
/* Once the lock is released: tells of a copy given up, as gpuhash.fallback says. */
extern void gh_copy_report(const GhAccess *access);
/* Before a large read: makes the copy if it is time. */
extern void gh_copy_make_if_due(const GhTableInfo *info);

/* ---- requests.c: operations on a named table, in chunks ---- */

/*
 * Each may throw on cancel, out of memory, a limit, or the loss of the device.
 * The table is then whole; of a modification a prefix of the keys may be done.
 * Arrays are of count elements and need to live during the call only.  Values are
 * as the engines have them, value_size bytes each without gaps: int64 where
 * value_size is 8.
 */

/* Upsert, or add when multi.  values is NULL for a set.  Returns the number of new
 * keys. */
extern uint64 gh_put(const GhTableInfo *info, const uint64 *keys, const void *values,
					 uint64 count);
/* Removes keys; returns the number of entries (values, when multi) that left. */
extern uint64 gh_remove(const GhTableInfo *info, const uint64 *keys, uint64 count);
/* Removes every entry; brings a lost table back. */
extern void gh_remove_all(const GhTableInfo *info);

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
extern void gh_find(const GhTableInfo *info, const uint64 *keys, uint64 count,
					void *values, uint8 *found);
/*
 * The values of the first keys, as many keys as fit in a bounded memory, but one
 * at least.  Returns their number.  Not for sets.
 */
extern uint64 gh_find_lists(const GhTableInfo *info, const uint64 *keys, uint64 count,
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
	uint64		host_bytes;
	uint64		device_bytes;
	uint64		bytes_to_device;
	uint64		bytes_from_device;
	uint64		reads;
	uint64		writes;
} GhTableNumbers;

/* false: the table is gone. */
extern bool gh_read_numbers(const GhTableInfo *info, GhTableNumbers *numbers);

/* ---- values.c: values as bytea ---- */

/*
 * Between the engine's value and the bytes of a bytea: in a table of 8-byte values
 * the bytes are those of int8send, so that a bigint v and the bytea int8send(v) are
 * the same value.
 */
extern void gh_value_from_bytes(int value_size, const char *bytes, char *value);
extern void gh_value_to_bytes(int value_size, const char *value, char *bytes);

/* Does the table hold what the caller needs?  42809 with the way to go. */
extern void gh_require_bigint(const GhTableInfo *info);
extern void gh_require_bytes(const GhTableInfo *info);
extern void gh_require_set(const GhTableInfo *info);
extern void gh_require_single(const GhTableInfo *info);

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
/* The value as the engine has it. */
extern void gh_copy_value(int value_size, Datum bytea_value, char *target);

/* Arrays of one dimension; an element is NULL where present[i] is 0. */
extern ArrayType *gh_make_bigint_array(const uint64 *values, const uint8 *present,
									   uint64 count);
extern ArrayType *gh_make_bytea_array(int value_size, const char *values,
									  const uint8 *present, uint64 count);
extern ArrayType *gh_make_bool_array(const uint8 *values, const bool *nulls,
									 uint64 count);

#endif							/* GPUHASH_TABLE_H */
