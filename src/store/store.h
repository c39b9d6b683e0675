/*
 * store.h
 *		What outlives a query: tables of the engines, found by a key.
 *
 * README in this folder has the rules: what is where and how fresh, who may use it under
 * which lock, whose memory it is, and what goes when others need a device.
 */
#ifndef GPUHASH_STORE_H
#define GPUHASH_STORE_H

#include "postgres.h"

#include "port/atomics.h"
#include "storage/lock.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "engine/engine.h"

/* Bytes of the keys and values that go to a device at a time: a unit of the transfer
 * area. */
#define GH_CHUNK_BYTES ((Size) 512 * 1024)

/* What the engine setting's rule said of the table, or what happened since. */
#define GH_REASON_SIZE 64
#define GH_REASON_FAILED "the GPU failed"

/* ------------------------------------------------------------ what is stored */

/* Whose it is, and who knows what the name and the extra bytes mean. */
typedef enum GhStoreKind
{
	GH_STORE_ANY,				/* of a list only */
	GH_STORE_TABLE				/* named tables (table/) */
} GhStoreKind;

/* Unique among all that is stored.  Its maker sets all bytes. */
typedef struct GhStoreKey
{
	Oid			database;
	GhStoreKind kind;
	char		name[NAMEDATALEN];	/* padded with zeroes; messages have it, too */
} GhStoreKey;

typedef struct GhStored GhStored;

/* What is known without the table's lock: a copy that a look-up makes. */
typedef struct GhStoredInfo
{
	/* never changes; 0: the setting's value */
	GhStoreKey	key;
	uint64		id;				/* never used again */
	int			key_size;		/* bytes: 4 or 8 */
	int			value_size;		/* bytes */
	bool		multi;
	int			subtables;
	double		fill_min;
	double		fill_max;
	int64		capacity;		/* keys */
	bool		host_copy;
	bool		wants_copy;		/* on a device, too, when it is large */

	/* guarded by the directory */
	bool		ready;			/* made in full; others do not see it before */

	/* of a copy only: as it was when the copy was made */
	GhStored   *stored;			/* to be followed under the table's lock */
	bool		on_host;
	bool		lost;			/* with its device */
	int			device;			/* where it or its copy is, or -1 */
	bool		copy_due;		/* a copy on a device may be tried */
	uint64		keys;			/* about so many */
	TimestampTz used;
} GhStoredInfo;

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
#define gh_store_word_state(word) ((GhCopyState) ((word) & ((1 << GH_COPY_STATE_BITS) - 1)))
#define gh_store_word_number(word) ((word) >> GH_COPY_STATE_BITS)
#define gh_store_make_word(number, state) (((uint64) (number) << GH_COPY_STATE_BITS) | (uint64) (state))

/*
 * In shared memory with the service, else in the session's.  The table's lock
 * guards what is not atomic: read under any mode, written under GH_TO_WRITE, the
 * copy's fields under GH_TO_COPY or GH_TO_WRITE.
 */
struct GhStored
{
	GhStoredInfo info;			/* guarded by the directory */
	uint64		self;			/* this struct, as the directory's memory names it */

	GhRef		host;			/* root on the CPU engine; 0: there is none */
	GhRef		blocks;			/* shared memory: the first of the host's blocks */
	uint64		blocks_changed; /* counts new ones */

	pg_atomic_uint64 copy;		/* gh_store_make_word */
	GhRef		device_root;	/* as the engine tells it; valid unless GH_COPY_NONE */
	int			device;
	char		reason[GH_REASON_SIZE]; /* why it is not on a device, or empty */
	pg_atomic_uint64 copy_tried;	/* TimestampTz: no copy for a minute after this */

	pg_atomic_uint64 keys;		/* about so many: exact when a call has ended well */
	pg_atomic_uint64 reads;		/* keys looked up so far */
	pg_atomic_uint64 writes;	/* positions of modifications so far */
	pg_atomic_uint64 used;		/* TimestampTz of the last call */

	Size		extra_bytes;
	uint64		extra[FLEXIBLE_ARRAY_MEMBER];	/* the kind's own; guarded by the directory */
};

/* ---- shared.c ---- */

/* Of _PG_init: shared memory while the server starts with the service, eviction. */
extern void gh_store_init(void);

/* ---- directory.c: keys -> what is stored, in shared memory or the session's ---- */

/* Made in full or not.  extra, if not NULL: room for the extra bytes. */
extern bool gh_store_find(const GhStoreKey *key, GhStoredInfo *info, void *extra);
/* Has change alter the extra bytes; false: it is gone. */
extern bool gh_store_change(const GhStoredInfo *info, void (*change) (void *extra, void *arg), void *arg);
/* All that are ready, of one kind or of any, of one database or, InvalidOid, of all; a
 * palloc'd array sorted by name. */
extern GhStoredInfo *gh_store_list(GhStoreKind kind, Oid database, int *count);

/* ---- access.c: a table's lock, and this process's handles on it ---- */

/* Modes of the lock, each with what it keeps out beside itself. */
#define GH_TO_READ RowShareLock				/* those who write and drop */
#define GH_TO_COPY ShareUpdateExclusiveLock /* ... and others who copy */
#define GH_TO_WRITE ExclusiveLock			/* all others */
#define GH_TO_DROP AccessExclusiveLock		/* all others */

typedef struct GhHandle GhHandle;

/* A call's hold on a table. */
typedef struct GhAccess
{
	GhStoredInfo info;
	GhStored   *stored;
	GhHandle   *handle;			/* of this process */
	LOCKMODE	mode;
	void	   *buffer;			/* of the service, or NULL */
	Size		buffer_bytes;
	GhError		left;			/* why the copy on the device was given up meanwhile */
} GhAccess;

/* 25000 in a parallel worker: its leader's locks do not keep it out. */
extern void gh_store_refuse_parallel_worker(const char *name);
/* Waits for the lock.  false: the table is gone.  Zero the struct before. */
extern bool gh_store_lock(GhAccess *access, const GhStoredInfo *info, LOCKMODE mode);
/* false: the table is gone, or the lock is not to be had at once. */
extern bool gh_store_lock_now(GhAccess *access, const GhStoredInfo *info, LOCKMODE mode);
/* Like gh_store_lock, with a buffer of the service, if the table's requests there need one,
 * and for a read of no more than few keys they do not. */
extern bool gh_store_lock_buffered(GhAccess *access, const GhStoredInfo *info, LOCKMODE mode,
								   bool large, Size buffer_bytes);
/* Releases the lock and the buffer. */
extern void gh_store_unlock(GhAccess *access);
/* Of a database that is about to be dropped: waits for sessions of others that look at its
 * tables, and keeps them out until the transaction ends. */
extern void gh_store_keep_out(Oid database);

/* The handle on the host's table, which the caller knows is there, or NULL and why. */
extern GhTable *gh_store_host(GhAccess *access, GhError *error);
/* The handle on the device's, or NULL and why. */
extern GhTable *gh_store_device(GhAccess *access, GhError *error);

/* ---- entries.c: tables come and go ---- */

/*
 * Makes a table, in full or not at all, with those extra bytes, and sets info->id.  false: there
 * is one of that key.  Where an engine does not make it: error->status, and *failed is that one.
 */
extern bool gh_store_create(GhStoredInfo *info, const void *extra, Size extra_bytes,
							const GhEngine **failed, GhError *error);
/* It goes with all that there is of it, under GH_TO_DROP. */
extern void gh_store_drop(GhAccess *access);
/* All of a database that nobody is connected to any more, after gh_store_keep_out. */
extern void gh_store_drop_database(Oid database);

/* ---- engines.c: engines' tables come and go ---- */

/* Makes those of a new or lost table, by the present settings.  *failed: the engine that does not
 * make its own. */
extern GhStatus gh_store_engines_open(GhAccess *access, const GhEngine **failed, GhError *error);

/* ---- copies.c: the copy on a device of a table on the host ---- */

extern bool gh_store_copy_is_ready(GhStored *stored);
extern uint64 gh_store_copy_word(GhStored *stored);
/* The handle on the device's table for reads, and the word under which it can be relied on; or
 * NULL, and why.  Under any lock. */
extern GhTable *gh_store_ready_device(GhAccess *access, uint64 *word, GhError *error);
/* A read on the device under that word failed.  A table that is there alone is only lost when
 * the device says so, and not when it does not answer.  Under any lock. */
extern void gh_store_copy_failed(GhAccess *access, uint64 word, const GhError *error);
/* It is given up, under a lock that allows to. */
extern void gh_store_copy_drop(GhAccess *access, const GhError *error);
/* Before a large read: makes the copy if it is time. */
extern void gh_store_copy_make_if_due(const GhStoredInfo *info);

/* ---- transfer.c: parts of a request, and its arrays in a buffer of the service ---- */

/* As many keys as fit in a buffer with their arrays: those of the request that are not NULL.  A
 * multiple of 8. */
extern uint64 gh_store_transfer_keys(const GhStoredInfo *info, const GhRequest *request, Size bytes);
/* What is left of a request of which so much is done, as many keys at most. */
extern void gh_store_part(const GhStoredInfo *info, const GhRequest *whole, uint64 done, uint64 keys,
						  GhRequest *part);
/* Runs a request on the device, in the access's buffer if it has one, where it must fit. */
extern GhStatus gh_store_run(GhAccess *access, GhTable *on_device, GhRequest *request);

/* ---- replica.c: the copy on the device follows a modification of the host's ---- */

typedef struct GhReplica
{
	GhTable    *on_device;		/* NULL: there is none, or none any more */
	GhRequest	request;		/* in flight */
	bool		in_flight;
	uint64		inserted;		/* keys, as the host has told */
	uint64		removed;
	uint64		device_inserted;	/* as the device has */
	uint64		device_removed;
} GhReplica;

extern void gh_store_replica_begin(GhAccess *access, GhReplica *replica);
/* Sends what the host has done of a request. */
extern void gh_store_replica_send(GhAccess *access, GhReplica *replica, const GhRequest *done);
/* Gives the copy up. */
extern void gh_store_replica_fail(GhAccess *access, GhReplica *replica, const GhError *error);
/* Waits for the device; the copy can be relied on again. */
extern void gh_store_replica_end(GhAccess *access, GhReplica *replica);

#endif							/* GPUHASH_STORE_H */
