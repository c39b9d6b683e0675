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

#include "engine.h"

/* A bucket is one cache line of eight words. */
#define GH_CPU_BUCKET_WORDS 8
#define GH_CPU_BUCKET_BYTES 64
#define GH_CPU_BUCKET_SHIFT 6

/* Slots of a bucket: keys in the first half and values in the second, or keys only. */
#define GH_CPU_MAP_SLOTS 4
#define GH_CPU_SET_SLOTS 8

/* The key word of an empty slot; the key of that pattern lives in the root. */
#define GH_CPU_EMPTY UINT64_C(0)

/* Buckets of the smallest subtable, and of the largest that the hash has bits for. */
#define GH_CPU_BUCKETS_MIN 8
#define GH_CPU_BUCKETS_SHIFT_MAX 36

#define GH_CPU_PAIRS_MAX (GH_SUBTABLES_MAX * (GH_SUBTABLES_MAX - 1) / 2)

/* Keys of a slice, buckets of a slice of a resize, values of a slice of find-all:
 * each keeps a slice well below a millisecond. */
#define GH_CPU_SLICE_KEYS 4096
#define GH_CPU_SLICE_BUCKETS 2048
#define GH_CPU_SLICE_VALUES 65536

/* Bytes that are blanked between two looks at the stop flag. */
#define GH_CPU_SLICE_BYTES ((uint64_t) 1 << 20)

/* Keys whose cache misses overlap. */
#define GH_CPU_GROUP 32

#define gh_likely(x) __builtin_expect((x) != 0, 1)
#define gh_unlikely(x) __builtin_expect((x) != 0, 0)
#define gh_always_inline inline __attribute__((always_inline))

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
	GH_CPU_MERGING				/* downsize: buckets are being copied together */
} GhCpuResizePhase;

typedef struct GhCpuResize
{
	GhCpuResizePhase phase;
	uint32_t	subtable;		/* the one resized */
	GhRef		ref;			/* its new buckets, not yet in use */
	uint64_t	buckets;		/* their number */
	uint64_t	next;			/* old (splitting) or new bucket to do next */
} GhCpuResize;

/* Value lists of multi tables: cpu_values.c */
#define GH_CPU_CHUNKS_MAX 120
#define GH_CPU_NODE_CLASSES 5

typedef struct GhCpuValues
{
	GhRef		chunk[GH_CPU_CHUNKS_MAX];
	uint32_t	chunks;
	uint64_t	chunk_used;		/* words handed out of the last chunk */
	uint64_t	free[GH_CPU_NODE_CLASSES];	/* free nodes by class; 0 is none */
	uint64_t	pending;		/* heads of long deleted lists, linked through their
								 * second words, not yet taken apart */
	uint64_t	lists;			/* lists in use */
} GhCpuValues;

#define GH_CPU_MAGIC UINT64_C(0x3155504348555047)

/* The table.  GhHost.lock guards all of it but what says otherwise. */
typedef struct GhCpuRoot
{
	uint64_t	magic;
	GhTableOptions options;		/* checked, defaults filled in; never changes */
	uint64_t	hash_seed[6];	/* never changes */
	uint32_t	level;			/* doublings since GH_CPU_BUCKETS_MIN, all subtables */
	uint32_t	level_initial;	/* as made for options.capacity */
	GhCpuSubtable subtable[GH_SUBTABLES_MAX];
	GhCpuResize resize;
	uint64_t	keys;			/* distinct, the one of the empty pattern too */
	uint64_t	values;
	uint64_t	version;		/* counts the slices that may have changed something */
	uint64_t	downsize_after; /* a downsize failed: none is tried before writes
								 * is there */
	bool		has_empty_key;	/* is the key GH_CPU_EMPTY there? */
	uint64_t	empty_key_value;	/* and what its slot would hold */
	GhCpuValues lists;
	uint64_t	upsizes;
	uint64_t	downsizes;
	uint64_t	bytes;			/* taken from the host and not given back */
	uint64_t	bytes_peak;
	uint64_t	reads;			/* counted atomically under a shared lock */
	uint64_t	writes;
} GhCpuRoot;

/* ------------------------------------------------------- of one process */

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
	uint32_t	slots;			/* of a bucket */
	GhCpuPair	pair[GH_CPU_PAIRS_MAX];
	char	   *base[GH_SUBTABLES_MAX];
} GhCpuView;

typedef struct GhCpuTable
{
	GhTable		common;			/* first */
	GhHost		host;
	GhRef		root;
	GhRequest  *queue_head;		/* submitted and not finished, linked through */
	GhRequest  *queue_tail;		/* engine_state[GH_CPU_STATE_NEXT] */
	GhCpuView	view;
	uint64_t   *chunk[GH_CPU_CHUNKS_MAX];	/* multi: where value chunks are mapped */
} GhCpuTable;

/* Uses of GhRequest.engine_state. */
enum
{
	GH_CPU_STATE_NEXT,			/* next request of the queue */
	GH_CPU_STATE_PHASE,			/* find-all: see cpu_find_all.c */
	GH_CPU_STATE_POSITION,
	GH_CPU_STATE_NODE,
	GH_CPU_STATE_OUT,
	GH_CPU_STATE_VERSION,
	GH_CPU_STATE_WHOLE
};

/* A key's two candidate buckets; [0] is the one a new key is steered to, hence
 * the likelier one to hold an old one. */
typedef struct GhCpuPlace
{
	uint64_t   *bucket[2];
	uint8_t		subtable[2];
} GhCpuPlace;

/* ------------------------------------------------------------ the hash */

/* The two halves of the 128-bit product, folded: every bit of the result
 * depends on every bit of both factors. */
static gh_always_inline uint64_t
gh_cpu_fold(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128) a * b;

	return (uint64_t) product ^ (uint64_t) (product >> 64);
}

/*
 * Two hash values of a key under the table's secret seeds.  The first says the
 * pair (upper 20 bits) and the bucket in the pair's first subtable, the second
 * the bucket in the second subtable and (upper 16 bits) where the key is
 * steered.  Bucket bits start at GH_CPU_BUCKET_SHIFT, so that hash & mask is a
 * byte offset.
 */
static gh_always_inline void
gh_cpu_hash(const GhCpuView *view, uint64_t key, uint64_t hash[2])
{
	const uint64_t *seed = view->hash_seed;
	uint64_t	mixed = gh_cpu_fold(key ^ seed[0], seed[1]);

	hash[0] = gh_cpu_fold(mixed ^ seed[2], seed[3]);
	hash[1] = gh_cpu_fold(mixed ^ seed[4], seed[5]);
}

static gh_always_inline const GhCpuPair *
gh_cpu_pair(const GhCpuView *view, const uint64_t hash[2])
{
	return &view->pair[((hash[0] >> 44) * view->pairs) >> 20];
}

static gh_always_inline void
gh_cpu_locate(const GhCpuView *view, uint64_t key, GhCpuPlace *place)
{
	uint64_t	hash[2];
	const GhCpuPair *pair;
	uint64_t   *first;
	uint64_t   *second;
	bool		swap;

	gh_cpu_hash(view, key, hash);
	pair = gh_cpu_pair(view, hash);
	first = (uint64_t *) (pair->base[0] + (hash[0] & pair->mask[0]));
	second = (uint64_t *) (pair->base[1] + (hash[1] & pair->mask[1]));
	swap = (hash[1] >> 48) >= pair->steer;
	place->bucket[0] = swap ? second : first;
	place->bucket[1] = swap ? first : second;
	place->subtable[0] = pair->subtable[swap];
	place->subtable[1] = pair->subtable[!swap];
}

/* Locates a group of keys and fetches their buckets, which will be written. */
static gh_always_inline void
gh_cpu_locate_to_write(const GhCpuView *view, const uint64_t *keys, uint32_t group,
					   GhCpuPlace *place)
{
	for (uint32_t g = 0; g < group; g++)
	{
		gh_cpu_locate(view, keys[g], &place[g]);
		__builtin_prefetch(place[g].bucket[0], 1);
		__builtin_prefetch(place[g].bucket[1], 1);
	}
}

/* The hash whose bits choose the bucket of key in subtable, one of its pair. */
static gh_always_inline uint64_t
gh_cpu_hash_in(const GhCpuView *view, uint64_t key, uint32_t subtable)
{
	uint64_t	hash[2];

	gh_cpu_hash(view, key, hash);
	return gh_cpu_pair(view, hash)->subtable[0] == subtable ? hash[0] : hash[1];
}

/* ------------------------------------------------------------- buckets */

/* Bit s is set where slot s holds key. */
static gh_always_inline unsigned
gh_cpu_match4(const uint64_t *bucket, uint64_t key)
{
	return (unsigned) (bucket[0] == key) | (unsigned) (bucket[1] == key) << 1 |
		(unsigned) (bucket[2] == key) << 2 | (unsigned) (bucket[3] == key) << 3;
}

static gh_always_inline unsigned
gh_cpu_match(const uint64_t *bucket, uint64_t key, uint32_t slots)
{
	unsigned	matches = gh_cpu_match4(bucket, key);

	if (slots == GH_CPU_SET_SLOTS)
		matches |= gh_cpu_match4(bucket + 4, key) << 4;
	return matches;
}

/* The slot's key word where key is in the bucket, else NULL; its value word is
 * GH_CPU_MAP_SLOTS further. */
static gh_always_inline uint64_t *
gh_cpu_slot(uint64_t *bucket, uint64_t key, uint32_t slots)
{
	unsigned	matches = gh_cpu_match(bucket, key, slots);

	return matches != 0 ? bucket + __builtin_ctz(matches) : NULL;
}

/* Key's slot in either candidate; *which tells the candidate. */
static gh_always_inline uint64_t *
gh_cpu_lookup(const GhCpuPlace *place, uint64_t key, uint32_t slots, int *which)
{
	uint64_t   *slot = gh_cpu_slot(place->bucket[0], key, slots);

	*which = 0;
	if (slot != NULL)
		return slot;
	*which = 1;
	return gh_cpu_slot(place->bucket[1], key, slots);
}

static gh_always_inline uint32_t
gh_cpu_used(const uint64_t *bucket, uint32_t slots)
{
	return slots - (uint32_t) __builtin_popcount(gh_cpu_match(bucket, GH_CPU_EMPTY, slots));
}

/* Copies an entry; the value words of a set are keys and stay alone. */
static gh_always_inline void
gh_cpu_copy_entry(uint64_t *to, const uint64_t *from, uint32_t slots)
{
	to[0] = from[0];
	if (slots == GH_CPU_MAP_SLOTS)
		to[GH_CPU_MAP_SLOTS] = from[GH_CPU_MAP_SLOTS];
}

/* ----------------------------------------------------------- functions */

static inline bool
gh_cpu_stopped(const GhCpuTable *table)
{
	return table->host.stop != NULL && *table->host.stop != 0;
}

/* cpu_memory.c */
extern GhStatus gh_cpu_take(GhCpuTable *table, uint64_t bytes, GhRef *ref, GhError *error);
extern void gh_cpu_give(GhCpuTable *table, GhRef ref, uint64_t bytes);
extern bool gh_cpu_blank(const GhCpuTable *table, void *memory, uint64_t bytes);

/* cpu_view.c */
extern void gh_cpu_view_load(GhCpuTable *table);
extern void gh_cpu_lock(GhCpuTable *table, GhLockMode mode);
extern void gh_cpu_unlock(GhCpuTable *table);
extern uint64_t gh_cpu_level_buckets(uint32_t subtables, uint32_t level, uint32_t index);
extern uint64_t gh_cpu_level_slots(const GhTableOptions *options, uint32_t level);

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

/* cpu_request.c */
extern GhStatus gh_cpu_submit(GhTable *table, GhRequest *request);
extern GhStatus gh_cpu_poll(GhRequest *request);
extern GhStatus gh_cpu_wait(GhRequest *request);

/*
 * A slice of each operation.  The view is loaded and the lock held; the answer is
 * GH_BUSY while positions are left, GH_OK when the request is done, or an error
 * with request->error filled.
 */
extern GhStatus gh_cpu_find_slice(GhCpuTable *table, GhRequest *request);	/* cpu_find.c */
extern GhStatus gh_cpu_find_all_slice(GhCpuTable *table, GhRequest *request);	/* cpu_find_all.c */
extern GhStatus gh_cpu_write_slice(GhCpuTable *table, GhRequest *request);	/* cpu_write.c */
extern GhStatus gh_cpu_delete_slice(GhCpuTable *table, GhRequest *request); /* cpu_delete.c */

/* cpu_evict.c */
extern uint64_t *gh_cpu_make_room(GhCpuTable *table, uint64_t *const root[2],
								  const uint8_t subtable[2], int *which);

/* cpu_resize.c */
extern GhStatus gh_cpu_upsize_begin(GhCpuTable *table, GhError *error);
extern bool gh_cpu_downsize_begin(GhCpuTable *table);
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

/* A node: next node, class and number of values; values of this node and all
 * behind it; the values. */
#define GH_CPU_NODE_HEADER 2

static inline uint64_t
gh_cpu_node_next(const uint64_t *node)
{
	return node[0] >> 16;
}

static inline uint32_t
gh_cpu_node_class(const uint64_t *node)
{
	return node[0] >> 8 & 0xFF;
}

static inline uint32_t
gh_cpu_node_used(const uint64_t *node)
{
	return node[0] & 0xFF;
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

extern void gh_cpu_values_map(GhCpuTable *table);
extern GhStatus gh_cpu_values_first(GhCpuTable *table, uint64_t *word, uint64_t value,
									GhError *error);
extern GhStatus gh_cpu_values_append(GhCpuTable *table, uint64_t *word, uint64_t value,
									 GhError *error);
extern uint64_t gh_cpu_values_release(GhCpuTable *table, uint64_t word);
extern void gh_cpu_values_free(GhCpuTable *table);

#endif							/* GH_CPU_INTERNAL_H */
