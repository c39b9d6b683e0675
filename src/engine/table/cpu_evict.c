/*
 * cpu_evict.c
 *		Frees a slot in one of two buckets by moving entries to their other
 *		candidate bucket.
 *
 * A breadth-first search follows entries to their other buckets until one has
 * room, and only then are entries moved, from the end of the path backwards:
 * at every instant each entry is stored in full, and a search that finds nothing
 * has changed nothing.  A shortest path never passes a bucket twice (what can
 * be reached from a bucket's second visit was queued, earlier, from its first), so
 * the slots named on the path still hold what the search saw.
 *
 * While a downsize evacuates a subtable, room in it is counted for each pair
 * of buckets that will be merged, so that no path makes more residuals.
 */
#include "engine/table/cpu_internal.h"

/* Buckets that a search looks at.  At a filled factor of 0.95 about one in eight
 * has room, so a path is all but always found within a few dozen. */
#define PATH_BUCKETS_MAX 1024

typedef struct PathNode
{
	char	   *bucket;
	int16_t		parent;			/* node that the entry would come from; -1: a root */
	uint8_t		offset;			/* in the parent's bucket, where that entry is */
	uint8_t		subtable;
} PathNode;

/* A free slot that an entry may move to, or NULL. */
static gh_always_inline char *
room_in(GhCpuShape shape, const GhCpuView *view, const PathNode *node)
{
	const GhCpuResize *resize = &view->root->resize;
	char	   *slot = gh_cpu_slot(shape, node->bucket, GH_CPU_EMPTY);

	if (gh_unlikely(slot != NULL && resize->phase == GH_CPU_EVACUATING &&
					resize->subtable == node->subtable))
	{
		/* the bucket that this one will be merged with */
		char	   *base = view->area[node->subtable].base;
		uint64_t	half = resize->buckets << GH_CPU_BUCKET_SHIFT;
		const char *twin = base + ((uint64_t) (node->bucket - base) ^ half);

		if (gh_cpu_used(shape, node->bucket) + gh_cpu_used(shape, twin) >=
			gh_cpu_slots(shape))
			return NULL;
	}
	return slot;
}

/* Moves the entries of the path that ends with room in slot `to` of the last
 * node; returns the slot of the root that became free. */
static gh_always_inline char *
move_path(GhCpuShape shape, GhCpuTable *table, const PathNode *nodes, int last, char *to,
		  int *root)
{
	const GhCpuView *view = &table->view;
	int			at = last;

	while (nodes[at].parent >= 0)
	{
		const PathNode *from = &nodes[nodes[at].parent];
		char	   *entry = from->bucket + nodes[at].offset;

		gh_cpu_copy_entry(shape, view, &view->area[nodes[at].subtable], to,
						  &view->area[from->subtable], entry);
		gh_cpu_empty_slot(shape, entry);
		to = entry;
		at = nodes[at].parent;
	}
	view->root->subtable[nodes[at].subtable].entries--;
	view->root->subtable[nodes[last].subtable].entries++;
	*root = at;
	return to;
}

/* Queues the other candidate buckets of the entries of node `at`. */
static gh_always_inline int
queue_others(GhCpuShape shape, const GhCpuView *view, PathNode *nodes, int at, int filled)
{
	char	   *bucket = nodes[at].bucket;
	uint32_t	s;

	for (s = 0; s < gh_cpu_slots(shape) && filled < PATH_BUCKETS_MAX; s++)
	{
		uint64_t	key = gh_cpu_key(shape, bucket, s);
		GhCpuPlace	place;
		int			other;

		if (key == GH_CPU_EMPTY)
			continue;
		gh_cpu_locate(view, key, &place);
		other = place.bucket[0] == bucket;
		gh_cpu_fetch(place.bucket[other]);
		nodes[filled++] = (PathNode) {
			.bucket = place.bucket[other],
			.parent = (int16_t) at,
			.offset = (uint8_t) (s << gh_cpu_key_shift(shape)),
			.subtable = place.subtable[other]
		};
	}
	return filled;
}

static gh_always_inline char *
make_room(GhCpuShape shape, GhCpuTable *table, char *const root[2],
		  const uint8_t subtable[2], int *which)
{
	const GhCpuView *view = &table->view;
	PathNode	nodes[PATH_BUCKETS_MAX];
	int			filled = 2;
	int			followed = 0;
	int			at = 2;

	nodes[0] = (PathNode) {.bucket = root[0], .parent = -1, .subtable = subtable[0]};
	nodes[1] = (PathNode) {.bucket = root[1], .parent = -1, .subtable = subtable[1]};
	do
	{
		filled = queue_others(shape, view, nodes, followed++, filled);
		/* by twos where the first one was not enough: the cache misses of their others overlap */
		if (followed > 1 && followed < filled)
			filled = queue_others(shape, view, nodes, followed++, filled);
		for (; at < filled; at++)
		{
			char	   *slot = room_in(shape, view, &nodes[at]);

			if (slot != NULL)
				return move_path(shape, table, nodes, at, slot, which);
		}
	} while (followed < filled);
	return NULL;
}

/*
 * Frees a slot in one of the root buckets, which have none (or, of a pair to be
 * merged, too few); subtable names theirs.  Returns the slot, whose key is
 * GH_CPU_EMPTY now, with *which telling the root; NULL: no path within the bound.
 */
char *
gh_cpu_make_room(GhCpuTable *table, char *const root[2], const uint8_t subtable[2],
				 int *which)
{
	return GH_CPU_BY_SHAPE(table->view.shape, make_room, table, root, subtable, which);
}

/* Fetches the buckets that gh_cpu_make_room looks at first ahead: the others of the
 * entries of one root, where there mostly is room. */
static gh_always_inline void
fetch_room(GhCpuShape shape, const GhCpuView *view, char *root)
{
	PathNode	nodes[1 + GH_CPU_BUCKET_BYTES / sizeof(uint32_t)];

	nodes[0] = (PathNode) {.bucket = root};
	(void) queue_others(shape, view, nodes, 0, 1);
}

void
gh_cpu_fetch_room(const GhCpuTable *table, const GhCpuPlace *place)
{
	GH_CPU_BY_SHAPE(table->view.shape, fetch_room, &table->view, place->bucket[0]);
}
