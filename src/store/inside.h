/*
 * inside.h
 *		What the files of the store share, and nobody else sees.
 */
#ifndef GPUHASH_STORE_INSIDE_H
#define GPUHASH_STORE_INSIDE_H

#include "postgres.h"

#include "utils/dsa.h"

#include "store/store.h"

/* ---- shared.c: one area of shared memory for small things ---- */

/* A number for a new table. */
extern uint64 gh_store_area_new_id(void);
/* Counts dropped tables, so that other sessions let go of their handles. */
extern pg_atomic_uint64 *gh_store_area_drops(void);
extern dsa_area *gh_store_area(void);
/* The directory's. */
extern struct dshash_table *gh_store_area_entries(void);
/* What tables on the host may take of the machine's memory, all together and each.  More could not
 * be kept in memory anyway: a capacity out of reach is to be an error, not the end of the server. */
extern uint64 gh_store_host_memory(void);
/* Counts bytes of blocks; false: there would be too many, and nothing was counted. */
extern bool gh_store_area_count(int64 bytes);

/* ---- segments.c: large blocks ---- */

extern Size gh_store_segments_shmem_size(void);
extern void gh_store_segments_shmem_init(void *place, bool found);
/* A number that nobody uses, or -1: there are too many. */
extern int	gh_store_segment_take(void);
/* Nobody uses it any more. */
extern void gh_store_segment_leave(int number);
/* Makes the segment of that number, mapped; false: the server has too many.  May
 * ereport. */
extern bool gh_store_segment_create(int number, Size bytes);
/* Of a segment mapped in this process; leaves the number.  May ereport. */
extern void gh_store_segment_free(int number);
/* Maps a segment in this process, if it is not.  May ereport. */
extern void gh_store_segment_map(int number);
/* Of a segment mapped in this process. */
extern void *gh_store_segment_address(int number);
/* Unmaps what others have freed. */
extern void gh_store_segments_sweep(void);

/* ---- blocks.c: what the CPU engine allocates ---- */

/* Fills host so that it allocates blocks of that table, which outlives it. */
extern void gh_store_make_host(GhHost *host, void *ctx, GhRef (*alloc) (void *, size_t), void (*free) (void *, GhRef),
							   void *(*address) (void *, GhRef));
extern void gh_store_blocks_host(GhHost *host, GhStored *stored);
/* Maps the table's blocks in this process, so that no engine has to.  May ereport. */
extern void gh_store_blocks_map(GhStored *stored);
/* Frees all memory of a table on the host without an engine.  Does not throw. */
extern void gh_store_blocks_free(GhStored *stored);

/* ---- shared_copies_memory.c ---- */

/* What copies take: bytes, and of the system's segments, of which there are few. */
typedef struct GhCopiesTaken
{
	uint64		bytes;
	uint32		segments;
} GhCopiesTaken;

/* Of a copy of so many bytes. */
extern uint32 gh_copies_segments(uint64 bytes);
extern void gh_copies_take(GhCopiesTaken *sum, uint64 bytes);
/* Whether all copies may take that. */
extern bool gh_copies_fit(GhCopiesTaken sum);
/* Whether so many bytes more leave others half of the memory for segments: in a container it may be small. */
extern bool gh_copies_leave_room(uint64 bytes);

/* ---- directory.c ---- */

typedef struct GhStoreEntry
{
	GhStoreKey	key;
	uint64		stored;			/* a GhStored, as the directory's memory names it */
} GhStoreEntry;

/* Enters a table that is not ready yet; NULL: there is one of that key. */
extern GhStored *gh_store_add(const GhStoredInfo *info, const void *extra, Size extra_bytes);
/* From now on others see it. */
extern void gh_store_set_ready(GhStored *stored);
/* The table's entry and struct go. */
extern void gh_store_remove(GhStored *stored);
/* A new number. */
extern uint64 gh_store_new_id(void);

/* ---- access.c ---- */

/* This process's handles on a table. */
struct GhHandle
{
	uint64		id;				/* of the table; the key of the cache */
	GhStoreKey	key;
	MemoryContext context;		/* session's tables: the host's memory */
	GhRef		host_root;		/* what host is a handle on */
	GhTable    *host;
	GhRef		device_root;
	GhTable    *on_device;
	uint64		blocks_seen;	/* GhStored.blocks_changed when they were mapped */
};

/* The lock of a new table, which nobody else knows yet. */
extern void gh_store_lock_new(GhAccess *access, const GhStoredInfo *info);
/* Then, once it is entered and access->stored is the table. */
extern void gh_store_lock_entered(GhAccess *access);
/* Another database's tables may be looked at until gh_store_visited; false: not now. */
extern bool gh_store_visit(Oid database);
extern void gh_store_visited(Oid database);
/* Of a table about to go: closes the handles. */
extern void gh_store_forget_handle(uint64 id);

/* ---- engines.c ---- */

/* Frees all there are.  Does not throw. */
extern void gh_store_engines_close(GhAccess *access);
/* A table on the device for that many keys, GH_COPY_UNSURE. */
extern GhStatus gh_store_device_open(GhAccess *access, const GhEngine *engine, uint64 keys,
									 GhError *error);
/* Frees it.  Does not throw. */
extern void gh_store_device_close(GhAccess *access);

/* ---- copies.c ---- */

/* From now on it is unsure, or sure again; by those who may change it. */
extern void gh_store_copy_set(GhStored *stored, GhCopyState state);

/* ---- transfer.c ---- */

/* Has the request's arrays in the buffer. */
extern void gh_store_transfer_in(const GhStoredInfo *info, GhRequest *request, char *buffer);

/* ---- evict.c ---- */

/*
 * After the device refused so much memory: takes copies of tables on the host, of those that
 * were not used for a second, from there, least recently used first, until that
 * much should be free; false when there were too few.  It waits for no lock, and for
 * a moment for the memory of each.  May ereport.
 */
extern bool gh_store_evict(int device, uint64 bytes);

#endif							/* GPUHASH_STORE_INSIDE_H */
