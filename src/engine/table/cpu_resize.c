/*
 * cpu_resize.c
 *		Doubles the smallest subtable or halves the largest, a few buckets a
 *		slice (dyhash.txt, section 5).
 *
 * New buckets are filled aside and put in place when all are done.  Until then
 * the old ones are in use, and since slices that write carry on a resize before
 * anything else, they do not change behind it.
 *
 * Upsize.  With a power of two of buckets n, the entries of bucket b belong into b
 * or b + n: nothing conflicts, and nothing outside the subtable moves.
 *
 * Downsize.  Buckets b and b + n/2 become one.  First, where the two hold more
 * than one bucket takes, entries are moved (not copied) to their other
 * candidate, by way of evictions where that is full; these are ordinary moves, the
 * table is right after each.  When every pair fits, the pairs are merged aside.
 * If an entry finds no other place the downsize is abandoned by freeing the new
 * buckets, and there is nothing to undo.
 */
#include "engine/table/cpu_internal.h"

#include <string.h>

/* A downsize must leave the table this far below fill_max, or a few inserts would
 * double the subtable again. */
#define DOWNSIZE_FILL_SHARE (15.0 / 16.0)

/* And this far below the number of keys that crowded the smaller size: else a steady
 * number of keys could be too many for it and too few for the larger one. */
#define CROWDED_SHARE (7.0 / 8.0)

static GhStatus
resize_begin(GhCpuTable *table, uint32_t level, uint32_t index, GhCpuResizePhase phase,
			 GhError *error)
{
	GhCpuRoot  *root = table->view.root;
	uint64_t	buckets = gh_cpu_level_buckets(root->options.subtables, level, index);
	GhStatus	status;

	if (buckets >> GH_CPU_BUCKETS_SHIFT_MAX > 1)
		return gh_error_set(error, GH_NO_MEMORY, "a subtable cannot grow any further");
	status = gh_cpu_take(table, gh_cpu_block_bytes(&root->options, buckets),
						 &root->resize.ref, error);
	if (status != GH_OK)
		return status;
	root->resize.phase = phase;
	root->resize.subtable = index;
	root->resize.buckets = buckets;
	root->resize.next = 0;
	return GH_OK;
}

/* What a key that finds no room asks for; crowded: although fill_max is not reached. */
GhStatus
gh_cpu_grow(GhCpuTable *table, bool crowded, GhError *error)
{
	GhCpuRoot  *root = table->view.root;
	GhStatus	status = resize_begin(table, root->level + 1,
									  root->level % root->options.subtables,
									  GH_CPU_SPLITTING, error);

	if (status != GH_OK || !crowded)
		return status;
	if (root->crowded_keys == 0 || root->crowded_level != root->level ||
		root->keys < root->crowded_keys)
	{
		root->crowded_level = root->level;
		root->crowded_keys = root->keys;
	}
	return GH_OK;
}

/* Keeps a downsize that failed from being tried at every slice. */
static void
put_off_downsize(GhCpuRoot *root)
{
	root->downsize_after = root->writes + root->keys / 8 + GH_CPU_SLICE_KEYS;
}

/* May the last upsize be undone, with room for a while of inserts left? */
static bool
may_shrink(const GhCpuRoot *root)
{
	double		keys = (double) root->keys;
	double		slots;

	if (root->level <= root->level_floor)
		return false;
	slots = (double) gh_cpu_level_slots(&root->options, root->level - 1);
	if (keys > root->options.fill_max * DOWNSIZE_FILL_SHARE * slots)
		return false;
	/* where a key found no room it would find none again */
	return root->crowded_keys == 0 || root->crowded_level < root->level - 1 ||
		keys <= CROWDED_SHARE * (double) root->crowded_keys;
}

/* Starts a downsize if that leaves room and the memory is there; true: it did. */
bool
gh_cpu_shrink_begin(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;
	uint32_t	level = root->level - 1;

	if (!may_shrink(root))
		return false;
	if (resize_begin(table, level, level % root->options.subtables,
					 GH_CPU_EVACUATING, NULL) == GH_OK)
		return true;
	/* a delete does not fail for lack of memory */
	put_off_downsize(root);
	return false;
}

/* The same if the table is too empty. */
bool
gh_cpu_downsize_begin(GhCpuTable *table)
{
	const GhCpuRoot *root = table->view.root;
	const GhTableOptions *options = &root->options;

	return root->writes >= root->downsize_after &&
		(double) root->keys <
		options->fill_min * (double) gh_cpu_level_slots(options, root->level) &&
		gh_cpu_shrink_begin(table);
}

/* Gives up the resize in progress, if any. */
void
gh_cpu_resize_abandon(GhCpuTable *table)
{
	GhCpuResize *resize = &table->view.root->resize;

	if (resize->phase == GH_CPU_STEADY)
		return;
	if (resize->phase == GH_CPU_SPREADING)
		gh_cpu_give_blocks(table, resize->level, resize->spread);
	else
		gh_cpu_give(table, resize->ref,
					gh_cpu_block_bytes(&table->view.root->options, resize->buckets));
	memset(resize, 0, sizeof(*resize));
}

/* Puts the new buckets in the place of the old. */
static void
resize_finish(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;
	GhCpuResize *resize = &root->resize;
	GhCpuSubtable *subtable = &root->subtable[resize->subtable];

	gh_cpu_give(table, subtable->ref, subtable->bytes);
	subtable->ref = resize->ref;
	subtable->bytes = gh_cpu_block_bytes(&root->options, resize->buckets);
	subtable->buckets = resize->buckets;
	if (resize->phase == GH_CPU_SPLITTING)
	{
		root->level++;
		root->upsizes++;
	}
	else
	{
		root->level--;
		root->downsizes++;
	}
	root->downsize_after = 0;
	memset(resize, 0, sizeof(*resize));
}

/* Writes both halves in full, so that new memory needs no blanking. */
static gh_always_inline void
split_buckets(GhCpuShape shape, const GhCpuView *view, const GhCpuResize *resize,
			  const GhCpuArea *fresh, uint64_t end)
{
	const GhCpuArea *area = &view->area[resize->subtable];
	uint64_t	half_bit = (resize->buckets / 2) << GH_CPU_BUCKET_SHIFT;
	uint64_t	b;

	for (b = resize->next; b < end; b++)
	{
		char	   *from = area->base + (b << GH_CPU_BUCKET_SHIFT);
		char	   *half[2];
		uint32_t	s;

		half[0] = fresh->base + (b << GH_CPU_BUCKET_SHIFT);
		half[1] = half[0] + half_bit;
		memset(half[0], 0, GH_CPU_BUCKET_BYTES);
		memset(half[1], 0, GH_CPU_BUCKET_BYTES);
		for (s = 0; s < gh_cpu_slots(shape); s++)
		{
			char	   *slot = from + (s << gh_cpu_key_shift(shape));
			uint64_t	key = gh_cpu_key_at(shape, slot);
			int			upper;

			if (key == GH_CPU_EMPTY)
				continue;
			upper = (gh_cpu_hash_in(view, key, resize->subtable) & half_bit) != 0;
			gh_cpu_copy_entry(shape, view, fresh, half[upper], area, slot);
			half[upper] += (uint64_t) 1 << gh_cpu_key_shift(shape);
		}
	}
}

/* false: an entry has no other place */
static gh_always_inline bool
evacuate_buckets(GhCpuShape shape, GhCpuTable *table, const GhCpuResize *resize, uint64_t end)
{
	char	   *base = table->view.area[resize->subtable].base;
	const uint8_t subtable[2] = {(uint8_t) resize->subtable, (uint8_t) resize->subtable};
	uint64_t	b;

	for (b = resize->next; b < end; b++)
	{
		char	   *const pair[2] = {
			base + (b << GH_CPU_BUCKET_SHIFT),
			base + ((b + resize->buckets) << GH_CPU_BUCKET_SHIFT)
		};

		while (gh_cpu_used(shape, pair[0]) + gh_cpu_used(shape, pair[1]) >
			   gh_cpu_slots(shape))
		{
			int			which;

			if (gh_cpu_make_room(table, pair, subtable, &which) == NULL)
				return false;
		}
	}
	return true;
}

static gh_always_inline void
merge_buckets(GhCpuShape shape, const GhCpuView *view, const GhCpuResize *resize,
			  const GhCpuArea *fresh, uint64_t end)
{
	const GhCpuArea *area = &view->area[resize->subtable];
	uint64_t	b;

	for (b = resize->next; b < end; b++)
	{
		char	   *to = fresh->base + (b << GH_CPU_BUCKET_SHIFT);
		int			half;
		uint32_t	s;

		memset(to, 0, GH_CPU_BUCKET_BYTES);
		for (half = 0; half < 2; half++)
		{
			char	   *from = area->base +
				((b + (half ? resize->buckets : 0)) << GH_CPU_BUCKET_SHIFT);

			for (s = 0; s < gh_cpu_slots(shape); s++)
			{
				char	   *slot = from + (s << gh_cpu_key_shift(shape));

				if (gh_cpu_key_at(shape, slot) == GH_CPU_EMPTY)
					continue;
				gh_cpu_copy_entry(shape, view, fresh, to, area, slot);
				to += (uint64_t) 1 << gh_cpu_key_shift(shape);
			}
		}
	}
}

/* A slice of the resize in progress. */
void
gh_cpu_resize_slice(GhCpuTable *table)
{
	const GhCpuView *view = &table->view;
	GhCpuRoot  *root = view->root;
	GhCpuResize *resize = &root->resize;
	GhCpuArea	fresh;
	uint64_t	last = resize->phase == GH_CPU_SPLITTING ? resize->buckets / 2 : resize->buckets;
	uint64_t	end = gh_cpu_slice(GH_CPU_SLICE_BUCKETS,
								   gh_cpu_block_bytes(&root->options, 1), 16);

	if (resize->phase == GH_CPU_SPREADING)
	{
		gh_cpu_spread_slice(table);
		return;
	}
	fresh = gh_cpu_area(table, resize->ref, resize->buckets);
	end = last - resize->next > end ? resize->next + end : last;
	if (resize->phase == GH_CPU_SPLITTING)
		GH_CPU_BY_SHAPE(view->shape, split_buckets, view, resize, &fresh, end);
	else if (resize->phase == GH_CPU_MERGING)
		GH_CPU_BY_SHAPE(view->shape, merge_buckets, view, resize, &fresh, end);
	else if (!GH_CPU_BY_SHAPE(view->shape, evacuate_buckets, table, resize, end))
	{
		gh_cpu_resize_abandon(table);
		put_off_downsize(root);
		return;
	}

	resize->next = end;
	if (end < last)
		return;
	if (resize->phase == GH_CPU_EVACUATING)
	{
		resize->phase = GH_CPU_MERGING;
		resize->next = 0;
	}
	else
		resize_finish(table);
}
