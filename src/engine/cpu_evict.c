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
#include "cpu_internal.h"

/* Buckets that a search looks at.  At a filled factor of 0.95 about one in eight
 * has room, so a path is all but always found within a few dozen. */
#define PATH_BUCKETS_MAX 1024

typedef struct PathNode
{
	uint64_t   *bucket;
	int16_t		parent;			/* node that the entry would come from; -1: a root */
	uint8_t		slot;			/* of the parent's bucket, where that entry is */
	uint8_t		subtable;
} PathNode;

/* A free slot that an entry may move to, or NULL. */
static uint64_t *
room_in(const GhCpuView *view, const PathNode *node)
{
	const GhCpuResize *resize = &view->root->resize;
	uint64_t   *slot = gh_cpu_slot(node->bucket, GH_CPU_EMPTY, view->slots);

	if (gh_unlikely(slot != NULL && resize->phase == GH_CPU_EVACUATING &&
					resize->subtable == node->subtable))
	{
		/* the bucket that this one will be merged with */
		uint64_t	half = resize->buckets << GH_CPU_BUCKET_SHIFT;
		uint64_t	offset = (uint64_t) ((char *) node->bucket - view->base[node->subtable]);
		const uint64_t *twin = (uint64_t *) (view->base[node->subtable] + (offset ^ half));

		if (gh_cpu_used(node->bucket, view->slots) + gh_cpu_used(twin, view->slots) >=
			view->slots)
			return NULL;
	}
	return slot;
}

/* Moves the entries of the path that ends with room in slot `to` of the last
 * node; returns the slot of the root that became free. */
static uint64_t *
move_path(GhCpuTable *table, const PathNode *nodes, int last, uint64_t *to, int *root)
{
	const GhCpuView *view = &table->view;
	int			at = last;

	while (nodes[at].parent >= 0)
	{
		const PathNode *from = &nodes[nodes[at].parent];
		uint64_t   *entry = from->bucket + nodes[at].slot;

		gh_cpu_copy_entry(to, entry, view->slots);
		*entry = GH_CPU_EMPTY;
		to = entry;
		at = nodes[at].parent;
	}
	view->root->subtable[nodes[at].subtable].entries--;
	view->root->subtable[nodes[last].subtable].entries++;
	*root = at;
	return to;
}

/*
 * Frees a slot in one of the root buckets, which have none (or, of a pair to be
 * merged, too few); subtable names theirs.  Returns the slot's key word, which is
 * GH_CPU_EMPTY now, with *which telling the root; NULL: no path within the bound.
 */
uint64_t *
gh_cpu_make_room(GhCpuTable *table, uint64_t *const root[2],
				 const uint8_t subtable[2], int *which)
{
	const GhCpuView *view = &table->view;
	PathNode	nodes[PATH_BUCKETS_MAX];
	int			filled = 2;
	int			at;

	nodes[0] = (PathNode) {.bucket = root[0], .parent = -1, .subtable = subtable[0]};
	nodes[1] = (PathNode) {.bucket = root[1], .parent = -1, .subtable = subtable[1]};
	for (at = 0; at < filled; at++)
	{
		const PathNode node = nodes[at];
		uint32_t	s;

		if (node.parent >= 0)
		{
			uint64_t   *slot = room_in(view, &node);

			if (slot != NULL)
				return move_path(table, nodes, at, slot, which);
		}
		for (s = 0; s < view->slots && filled < PATH_BUCKETS_MAX; s++)
		{
			GhCpuPlace	place;
			int			other;

			if (node.bucket[s] == GH_CPU_EMPTY)
				continue;
			gh_cpu_locate(view, node.bucket[s], &place);
			other = place.bucket[0] == node.bucket;
			__builtin_prefetch(place.bucket[other]);
			nodes[filled++] = (PathNode) {
				.bucket = place.bucket[other],
				.parent = (int16_t) at,
				.slot = (uint8_t) s,
				.subtable = place.subtable[other]
			};
		}
	}
	return NULL;
}
