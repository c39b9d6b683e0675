/*
 * cpu_internal.h
 *		What the files of the CPU engine share; src/engine/README tells the story.
 *
 * Two kinds of structs: those that live in the host's memory (GhCpuRoot and what
 * it holds), which know each other by GhRef only, and those of one process
 * (GhCpuTable, GhCpuView), which hold pointers made anew in every slice.
 */
#ifndef GH_CPU_INTERNAL_H
#define GH_CPU_INTERNAL_H

#include "engine/clones.h"
#include "engine/engine.h"

/* A bucket is one cache line. */
#define GH_CPU_BUCKET_BYTES 64
#define GH_CPU_BUCKET_SHIFT 6

/*
 * What a bucket holds.  Values of the size of the keys stand behind them in the
 * bucket; values of any other size stand beside the buckets, in an array in the
 * order of the slots.  The slot of a multi table holds a value word of 8 bytes.
 */
typedef enum GhCpuShape
{
	GH_CPU_K8V8,				/* 4 keys of 8 bytes, their 4 values */
	GH_CPU_K4V4,				/* 8 keys of 4 bytes, their 8 values */
	GH_CPU_K8,					/* 8 keys of 8 bytes */
	GH_CPU_K4					/* 16 keys of 4 bytes */
} GhCpuShape;

/* In a bucket with values: from a key to its value. */
#define GH_CPU_TO_VALUE 32

/* The key of an empty slot; the key of that pattern lives in the root. */
#define GH_CPU_EMPTY UINT64_C(0)

/* Buckets of the smallest subtable, and of the largest that the hash has bits for. */
#define GH_CPU_BUCKETS_MIN 8
#define GH_CPU_BUCKETS_SHIFT_MAX 36

#define GH_CPU_PAIRS_MAX (GH_SUBTABLES_MAX * (GH_SUBTABLES_MAX - 1) / 2)

/* Keys of a slice, buckets of a slice of a resize, values of a slice of find-all
 * or export, fewer where values are wide (gh_cpu_slice): each keeps a slice
 * well below a millisecond. */
#define GH_CPU_SLICE_KEYS 4096
#define GH_CPU_SLICE_BUCKETS 2048
#define GH_CPU_SLICE_VALUES 65536

/* Bytes that a slice moves, or blanks, at most. */
#define GH_CPU_SLICE_BYTES ((uint64_t) 1 << 19)

/* Keys whose cache misses overlap. */
#define GH_CPU_GROUP 32

/* Groups that are located before those that are done. */
#define GH_CPU_GROUPS_AHEAD 2

#define gh_likely(x) __builtin_expect((x) != 0, 1)
#define gh_unlikely(x) __builtin_expect((x) != 0, 0)

/* -------------------------------------------------- in the host's memory */

typedef struct GhCpuSubtable
{
	GhRef		ref;			/* the buckets */
	uint64_t	bytes;			/* of that block; may exceed what the buckets take
								 * after a clear that found no memory for a smaller one */
	uint64_t	buckets;		/* a power of two */
	uint64_t	entries;
} GhCpuSubtable;

/* A resize in progress belongs to the table: the next slice that writes, of
 * whatever handle, carries it on before it does anything else. */
typedef enum GhCpuResizePhase
{
	GH_CPU_STEADY,				/* no resize */
	GH_CPU_SPLITTING,			/* upsize: buckets are being copied to their halves */
	GH_CPU_EVACUATING,			/* downsize: entries too many for a merged bucket
								 * leave for their other candidate */
	GH_CPU_MERGING,				/* downsize: buckets are being copied together */
	GH_CPU_SPREADING			/* reserve: buckets of all subtables in turn are being
								 * copied to larger ones */
} GhCpuResizePhase;

typedef struct GhCpuResize
{
	GhCpuResizePhase phase;
	uint32_t	subtable;		/* the one resized */
	GhRef		ref;			/* its new buckets, not yet in use */
	uint64_t	buckets;		/* their number */
	uint64_t	next;			/* old (splitting, spreading) or new bucket to do next */
	/* spreading: the level to be, and its blocks, 0 where a subtable stays */
	uint32_t	level;
	GhRef		spread[GH_SUBTABLES_MAX];
	uint64_t	blank_at;		/* bytes of the new buckets that are blank */
} GhCpuResize;

/* Value lists of multi tables: cpu_values.c */
#define GH_CPU_CHUNKS_MAX 120
#define GH_CPU_NODE_CLASSES 5

typedef struct GhCpuChunk
{
	GhRef		ref;			/* 0: none; lower names than the last may be free */
	uint64_t	words;			/* its size */
	bool		leaving;		/* a flush moves its lists to other chunks */
} GhCpuChunk;

typedef struct GhCpuValues
{
	GhCpuChunk	chunk[GH_CPU_CHUNKS_MAX];
	uint32_t	chunks;			/* all are below */
	uint32_t	cutting;		/* the chunk that nodes are cut from */
	uint64_t	cut;			/* words handed out of it */
	uint64_t	words;			/* of all chunks */
	uint64_t	free[GH_CPU_NODE_CLASSES];	/* free nodes by class; 0 is none */
	uint64_t	pending;		/* heads of long deleted lists, linked through their
								 * second words, not yet taken apart */
	uint64_t	lists;			/* lists in use */
	uint64_t	values;			/* in them */
} GhCpuValues;

#define GH_CPU_MAGIC UINT64_C(0x3255504348555047)

/*
 * The table.  GhHost.lock guards all of it but what says otherwise.  With
 * options.concurrent_exchange slices under a shared lock count atomically in keys,
 * values, entries, version, writes, blank_at and blanked, set hidden to 0, and write slots and empty_key_value as
 * cpu_exchange.c has it.
 */
typedef struct GhCpuRoot
{
	uint64_t	magic;
	GhTableOptions options;		/* checked, defaults filled in; never changes */
	uint64_t	hash_seed[6];	/* never changes */
	uint32_t	level;			/* doublings since GH_CPU_BUCKETS_MIN, all subtables */
	uint32_t	level_initial;	/* as made for options.capacity */
	uint32_t	level_floor;	/* it does not shrink below: initial, or reserved */
	uint32_t	crowded_level;	/* where a key last found no room below fill_max, */
	uint64_t	crowded_keys;	/* and how many keys there were; 0: never */
	GhCpuSubtable subtable[GH_SUBTABLES_MAX];
	GhCpuResize resize;
	uint64_t	keys;			/* distinct, the one of the empty pattern too */
	uint64_t	values;
	uint64_t	version;		/* counts the slices that may have changed something */
	/*
	 * Not 0: what the slots hold is not the table's content, which is empty.  A
	 * build that has not ended (its number), or GH_CPU_BLANKING.
	 */
	uint64_t	hidden;
	uint64_t	blank_at;		/* while blanking: bytes of buckets, of all subtables one after
								 * the other, that somebody has taken to blank; it may pass them */
	uint64_t	blanked;		/* and those that are blank */
	uint64_t	downsize_after; /* a downsize failed: none is tried before writes
								 * is there */
	bool		has_empty_key;	/* is the key GH_CPU_EMPTY there? */
	/* and what its slot would hold: a value, or the value word of a multi table */
	uint64_t	empty_key_value[GH_VALUE_SIZE_MAX / 8];
	GhCpuValues lists;
	uint64_t	upsizes;
	uint64_t	downsizes;
	uint64_t	bytes;			/* taken from the host and not given back */
	uint64_t	bytes_peak;
	uint64_t	reads;			/* counted atomically under a shared lock */
	uint64_t	bucket_reads;	/* likewise, with options.timing */
	uint64_t	writes;
} GhCpuRoot;

/* GhCpuRoot.hidden: emptied in name, and being blanked. */
#define GH_CPU_BLANKING UINT64_MAX

/* ------------------------------------------------------- of one process */

/* Where the slots of a subtable are, or those of its resize. */
typedef struct GhCpuArea
{
	char	   *base;			/* the buckets */
	char	   *beside;			/* the values, where they are not in the buckets */
} GhCpuArea;

/* Two subtables that share the keys whose first hash says so. */
typedef struct GhCpuPair
{
	char	   *base[2];
	uint64_t	mask[2];		/* of a bucket's byte offset */
	uint32_t	steer;			/* of 2^16 new keys, those that go to the first */
	uint8_t		subtable[2];
} GhCpuPair;

/* The table as one slice sees it. */
typedef struct GhCpuView
{
	GhCpuRoot  *root;
	uint64_t	hash_seed[6];
	uint64_t	grow_at;		/* keys that fit under fill_max */
	uint32_t	pairs;
	GhCpuShape	shape;
	uint32_t	stride;			/* bytes of a slot's value, or value word */
	uint32_t	value_size;		/* bytes of a value */
	bool		hidden;			/* the table is empty in name: root->hidden */
	bool		has_empty_key;	/* for those who read */
	uint32_t	node_unit;		/* multi: words of the smallest node */
	uint32_t	node_capacity[GH_CPU_NODE_CLASSES]; /* values that a node holds */
	GhCpuPair	pair[GH_CPU_PAIRS_MAX];
	GhCpuArea	area[GH_SUBTABLES_MAX];
} GhCpuView;

/* Where an export stopped inside a list; only a shortcut, see cpu_export.c */
typedef struct GhCpuExported
{
	GhCursor	cursor;
	uint64_t	version;		/* of the table then */
	uint64_t	node;
	uint64_t	index;
} GhCpuExported;

/* Registers of the sketch that a build counts distinct keys with. */
#define GH_CPU_SKETCH_SHIFT 11
#define GH_CPU_SKETCH_REGISTERS (1 << GH_CPU_SKETCH_SHIFT)

typedef struct GhCpuTable
{
	GhTable		common;			/* first */
	GhHost		host;
	GhRef		root;
	GhRequest  *queue_head;		/* submitted and not finished, linked through */
	GhRequest  *queue_tail;		/* engine_state[GH_CPU_STATE_NEXT] */
	uint64_t	building;		/* the hidden content that this handle may see */
	GhCpuView	view;
	GhCpuExported exported;
	uint64_t   *chunk[GH_CPU_CHUNKS_MAX];	/* multi: where value chunks are mapped */
	uint8_t		sketch[GH_CPU_SKETCH_REGISTERS];
	/* of a table that a pipeline made: what its values lead to, and who frees that (pipeline/cpu_rows.h) */
	struct GhCpuRows *rows;
	uint32_t	made_value_size;	/* to requests (GhMadeTable) */
	void		(*drop_rows) (struct GhCpuRows *rows);
	void		(*forget_rows) (struct GhCpuRows *rows);	/* where other handles lead there, too */
	struct GhCpuOverlay *overlay;	/* how this handle shows it; malloc()ed, or NULL */
} GhCpuTable;

/* Uses of GhRequest.engine_state. */
enum
{
	GH_CPU_STATE_NEXT,			/* next request of the queue */
	GH_CPU_STATE_PHASE,			/* find-all, build, mixed, exchange: see their files */
	GH_CPU_STATE_POSITION,
	GH_CPU_STATE_NODE,
	GH_CPU_STATE_INDEX,
	GH_CPU_STATE_OUT,
	GH_CPU_STATE_VERSION,
	GH_CPU_STATE_WHOLE
};

/* A key's two candidate buckets; [0] is the one a new key is steered to, hence
 * the likelier one to hold an old one. */
typedef struct GhCpuPlace
{
	char	   *bucket[2];
	uint8_t		subtable[2];
} GhCpuPlace;

/* The places of a group of keys, and of the groups behind it. */
typedef struct GhCpuAhead
{
	GhCpuPlace	place[GH_CPU_GROUPS_AHEAD + 1][GH_CPU_GROUP];
} GhCpuAhead;

#include "engine/table/cpu_bucket.h"

/* ----------------------------------------------------------- functions */

static inline bool
gh_cpu_stopped(const GhCpuTable *table)
{
	return table->host.stop != NULL && *table->host.stop != 0;
}

/* Does the request only read? */
static inline bool
gh_cpu_reads(GhOp op)
{
	return op == GH_FIND || op == GH_COUNT || op == GH_FIND_ALL;
}

/* Counts buckets that a slice under a shared lock looked at. */
static inline void
gh_cpu_count_bucket_reads(const GhCpuTable *table, uint64_t buckets)
{
	GhCpuRoot  *root = table->view.root;

	if (root->options.timing)
		(void) __atomic_fetch_add(&root->bucket_reads, buckets, __ATOMIC_RELAXED);
}

/* Counts those of a gh_cpu_lookup that told `which`, under an exclusive lock. */
static gh_always_inline void
gh_cpu_count_lookup(GhCpuRoot *root, int which)
{
	if (gh_unlikely(root->options.timing))
		root->bucket_reads += (uint32_t) which + 1;
}

/* cpu_memory.c */
extern GhStatus gh_cpu_take(GhCpuTable *table, uint64_t bytes, GhRef *ref, GhError *error);
extern void gh_cpu_give(GhCpuTable *table, GhRef ref, uint64_t bytes);

/* cpu_view.c */
extern void gh_cpu_view_load(GhCpuTable *table);
extern void gh_cpu_lock(GhCpuTable *table, GhLockMode mode);
extern void gh_cpu_unlock(GhCpuTable *table);
extern GhCpuArea gh_cpu_area(const GhCpuTable *table, GhRef ref, uint64_t buckets);

/* cpu_level.c */
extern GhCpuShape gh_cpu_shape(const GhTableOptions *options);
extern uint32_t gh_cpu_stride(const GhTableOptions *options);
extern uint64_t gh_cpu_level_buckets(uint32_t subtables, uint32_t level, uint32_t index);
extern uint64_t gh_cpu_level_slots(const GhTableOptions *options, uint32_t level);
extern uint64_t gh_cpu_block_bytes(const GhTableOptions *options, uint64_t buckets);
extern bool gh_cpu_level_for(const GhTableOptions *options, uint64_t keys, uint32_t *level);

/* cpu_table.c */
extern GhStatus gh_cpu_table_create(const GhHost *host, const GhTableOptions *options,
									GhTable **table, GhError *error);
extern GhRef gh_cpu_table_root(const GhTable *table);
extern GhStatus gh_cpu_table_attach(const GhHost *host, GhRef root, GhTable **table,
									GhError *error);
extern void gh_cpu_table_detach(GhTable *table);
extern void gh_cpu_table_destroy(GhTable *table);
extern GhStatus gh_cpu_table_stats(GhTable *table, GhTableStats *stats, GhError *error);

/* cpu_clear.c */
extern GhStatus gh_cpu_table_clear(GhTable *table, GhError *error);
extern void gh_cpu_hide(GhCpuTable *table);
extern void gh_cpu_forget(GhCpuRoot *root);
extern bool gh_cpu_blank_slice(GhCpuTable *table);
extern bool gh_cpu_blank_shared(GhCpuTable *table);
extern bool gh_cpu_blank(GhCpuTable *table);

/* cpu_reserve.c, cpu_flush.c, cpu_export.c */
extern GhStatus gh_cpu_table_reserve(GhTable *table, uint64_t keys, GhError *error);
extern void gh_cpu_give_blocks(GhCpuTable *table, uint32_t level, GhRef *ref);
extern void gh_cpu_spread_slice(GhCpuTable *table);
extern GhStatus gh_cpu_enlarge_empty(GhCpuTable *table, uint32_t level, GhError *error);
extern GhStatus gh_cpu_table_flush(GhTable *table, GhError *error);
extern GhStatus gh_cpu_table_export(GhTable *table, GhCursor *cursor, uint64_t capacity,
									void *keys, void *values, uint64_t *count,
									GhError *error);
/* Each key once, of a table whose lock is held. */
extern void gh_cpu_each_key(const GhCpuTable *table, void (*take) (void *arg, uint64_t key), void *arg);

/* cpu_request.c */
extern GhStatus gh_cpu_submit(GhTable *table, GhRequest *request);
extern GhStatus gh_cpu_poll(GhRequest *request);
extern GhStatus gh_cpu_wait(GhRequest *request);
extern void gh_cpu_drain(GhCpuTable *table);
extern bool gh_cpu_carry_on(GhCpuTable *table);

/*
 * A slice of each operation.  The view is loaded and the lock held; the answer is
 * GH_BUSY while positions are left, GH_OK when the request is done, or an error
 * with request->error filled.
 */
extern GhStatus gh_cpu_find_slice(GhCpuTable *table, GhRequest *request);	/* cpu_find.c */
/* The same in a table that a pipeline made: pipeline/cpu_rows_find.c */
extern GhStatus gh_cpu_made_find_slice(GhCpuTable *table, GhRequest *request);
extern GhStatus gh_cpu_count_slice(GhCpuTable *table, GhRequest *request);	/* cpu_count.c */
extern GhStatus gh_cpu_find_all_slice(GhCpuTable *table, GhRequest *request);	/* cpu_find_all.c */
extern GhStatus gh_cpu_write_slice(GhCpuTable *table, GhRequest *request);	/* cpu_write.c */
extern GhStatus gh_cpu_delete_slice(GhCpuTable *table, GhRequest *request); /* cpu_delete.c */
extern GhStatus gh_cpu_mixed_slice(GhCpuTable *table, GhRequest *request);	/* cpu_mixed.c */
extern GhStatus gh_cpu_build_slice(GhCpuTable *table, GhRequest *request);	/* cpu_build.c */
extern GhStatus gh_cpu_exchange_slice(GhCpuTable *table, GhRequest *request);	/* cpu_exchange.c */

/* cpu_exchange.c */
extern bool gh_cpu_exchanges_together(const GhCpuTable *table, const GhCpuRoot *root);
extern bool gh_cpu_exchange_goes_on(const GhCpuRoot *root, const GhRequest *request);
extern bool gh_cpu_exchange_shared(GhCpuTable *table, GhRequest *request, GhStatus *status);

/* cpu_build.c */
extern void gh_cpu_build_give_up(GhCpuTable *table);

/* cpu_write.c */
typedef enum GhCpuOutcome
{
	GH_CPU_WROTE_OLD,			/* the key was there */
	GH_CPU_WROTE_OVER,			/* the key was there, its value was replaced */
	GH_CPU_WROTE_NEW,			/* the key is new */
	GH_CPU_WROTE_FULL,			/* nothing done: fill_max is reached, grow first */
	GH_CPU_WROTE_CROWDED,		/* nothing done: no eviction makes room, grow first */
	GH_CPU_WROTE_NOTHING		/* nothing done: request->error says why */
} GhCpuOutcome;

extern GhCpuOutcome gh_cpu_write_one(GhCpuTable *table, GhRequest *request, uint64_t i,
									 const GhCpuPlace *place, GhOp op);
extern GhStatus gh_cpu_write_grow(GhCpuTable *table, GhRequest *request, uint64_t position,
								  bool crowded);

/* cpu_delete.c */
extern bool gh_cpu_delete_key(GhCpuTable *table, uint64_t key, const GhCpuPlace *place);

/* cpu_find.c */
extern const char *gh_cpu_find_key(const GhCpuTable *table, uint64_t key,
								   const GhCpuPlace *place);

/* cpu_evict.c */
extern char *gh_cpu_make_room(GhCpuTable *table, char *const root[2],
							  const uint8_t subtable[2], int *which);
extern void gh_cpu_fetch_room(const GhCpuTable *table, const GhCpuPlace *place);

/* A free slot for a new key: where it is steered, else in its other bucket, else one
 * that an eviction frees.  NULL: none. */
static gh_always_inline char *
gh_cpu_free_slot(GhCpuShape shape, GhCpuTable *table, const GhCpuPlace *place, int *which)
{
	char	   *slot = gh_cpu_lookup(shape, place, GH_CPU_EMPTY, which);

	if (gh_likely(slot != NULL))
		return slot;
	return gh_cpu_make_room(table, place->bucket, place->subtable, which);
}

/* cpu_resize.c */
extern GhStatus gh_cpu_grow(GhCpuTable *table, bool crowded, GhError *error);
extern bool gh_cpu_downsize_begin(GhCpuTable *table);
extern bool gh_cpu_shrink_begin(GhCpuTable *table);
extern void gh_cpu_resize_slice(GhCpuTable *table);
extern void gh_cpu_resize_abandon(GhCpuTable *table);

/* cpu_values.c: a slot's value word in a multi table is a value or a list */
#define GH_CPU_LIST_TAG UINT64_C(0xFFF5)
#define GH_CPU_LIST_SHIFT 48

static inline bool
gh_cpu_is_list(uint64_t word)
{
	return word >> GH_CPU_LIST_SHIFT == GH_CPU_LIST_TAG;
}

static inline uint64_t
gh_cpu_list_head(uint64_t word)
{
	return word & (((uint64_t) 1 << GH_CPU_LIST_SHIFT) - 1);
}

static inline uint64_t
gh_cpu_list_word(uint64_t name)
{
	return GH_CPU_LIST_TAG << GH_CPU_LIST_SHIFT | name;
}

/*
 * A node: a word of next node, class and number of values; a word that counts the
 * values of this node and all behind it; the values.  A run is the last node of its
 * list, as long as need be: it has its words in the place of a next node, and
 * its second word counts its own values.
 */
#define GH_CPU_NODE_HEADER 2	/* words */
#define GH_CPU_NODE_RUN 15		/* class */

static inline uint32_t
gh_cpu_node_class(const uint64_t *node)
{
	return node[0] >> 12 & 0xF;
}

static inline uint64_t
gh_cpu_node_next(const uint64_t *node)
{
	return gh_cpu_node_class(node) == GH_CPU_NODE_RUN ? 0 : node[0] >> 16;
}

static inline uint64_t
gh_cpu_node_used(const uint64_t *node)
{
	return gh_cpu_node_class(node) == GH_CPU_NODE_RUN ? node[1] : (node[0] & 0xFFF);
}

static inline char *
gh_cpu_node_values(uint64_t *node)
{
	return (char *) (node + GH_CPU_NODE_HEADER);
}

/* A node's name: chunk number + 1 above, word in the chunk below. */
#define GH_CPU_NODE_CHUNK_SHIFT 40

static inline uint64_t *
gh_cpu_node(const GhCpuTable *table, uint64_t name)
{
	return table->chunk[(name >> GH_CPU_NODE_CHUNK_SHIFT) - 1] +
		(name & (((uint64_t) 1 << GH_CPU_NODE_CHUNK_SHIFT) - 1));
}

/* How many values a slot's value word stands for. */
static inline uint64_t
gh_cpu_value_count(const GhCpuTable *table, uint64_t word)
{
	return gh_cpu_is_list(word) ? gh_cpu_node(table, gh_cpu_list_head(word))[1] : 1;
}

/* A value that is at most a word wide, as the word that a slot holds. */
static inline uint64_t
gh_cpu_lone_word(const void *value, uint32_t bytes)
{
	uint64_t	word = 0;

	gh_cpu_copy(&word, value, bytes);
	return word;
}

/* Words of a run of that many values. */
static inline uint64_t
gh_cpu_run_words(uint64_t values, uint32_t value_size)
{
	return GH_CPU_NODE_HEADER + (values * value_size + 7) / 8;
}

extern void gh_cpu_values_map(GhCpuTable *table);
extern GhStatus gh_cpu_values_first(GhCpuTable *table, uint64_t *word, const void *value,
									GhError *error);
extern GhStatus gh_cpu_values_append(GhCpuTable *table, uint64_t *word, const void *value,
									 GhError *error);
extern uint64_t gh_cpu_values_pop(GhCpuTable *table, uint64_t *word);
extern uint64_t gh_cpu_values_release(GhCpuTable *table, uint64_t word);
extern void gh_cpu_values_free(GhCpuTable *table);
extern GhStatus gh_cpu_values_chunk(GhCpuTable *table, uint64_t words, GhError *error);
extern uint64_t gh_cpu_values_cut_run(GhCpuTable *table, uint64_t values);
extern void gh_cpu_values_leave(GhCpuTable *table, uint32_t stay);
extern void gh_cpu_values_give_left(GhCpuTable *table);

#endif							/* GH_CPU_INTERNAL_H */
