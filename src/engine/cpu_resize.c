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
#include "cpu_internal.h"

#include <string.h>

/* A downsize must leave the table this far below fill_max, or a few inserts would
 * double the subtable again. */
#define DOWNSIZE_FILL_SHARE (15.0 / 16.0)

static GhStatus
resize_begin(GhCpuTable *table, uint32_t level, uint32_t index, GhCpuResizePhase phase,
			 GhError *error)
{
	GhCpuRoot  *root = table->view.root;
	uint64_t	buckets = gh_cpu_level_buckets(root->options.subtables, level, index);
	GhStatus	status;

	if (buckets >> GH_CPU_BUCKETS_SHIFT_MAX > 1)
		return gh_error_set(error, GH_NO_MEMORY, "a subtable cannot grow any further");
	status = gh_cpu_take(table, buckets << GH_CPU_BUCKET_SHIFT, &root->resize.ref, error);
	if (status != GH_OK)
		return status;
	root->resize.phase = phase;
	root->resize.subtable = index;
	root->resize.buckets = buckets;
	root->resize.next = 0;
	return GH_OK;
}

GhStatus
gh_cpu_upsize_begin(GhCpuTable *table, GhError *error)
{
	GhCpuRoot  *root = table->view.root;

	return resize_begin(table, root->level + 1, root->level % root->options.subtables,
						GH_CPU_SPLITTING, error);
}

/* Keeps a downsize that failed from being tried at every slice. */
static void
put_off_downsize(GhCpuRoot *root)
{
	root->downsize_after = root->writes + root->keys / 8 + GH_CPU_SLICE_KEYS;
}

/* Starts a downsize if the table is too empty and may shrink; true: it did. */
bool
gh_cpu_downsize_begin(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;
	const GhTableOptions *options = &root->options;
	double		keys = (double) root->keys;
	uint32_t	level = root->level;

	if (level <= root->level_initial || root->writes < root->downsize_after)
		return false;
	if (keys >= options->fill_min * (double) gh_cpu_level_slots(options, level))
		return false;
	level--;
	if (keys > options->fill_max * DOWNSIZE_FILL_SHARE *
		(double) gh_cpu_level_slots(options, level))
		return false;
	if (resize_begin(table, level, level % options->subtables,
					 GH_CPU_EVACUATING, NULL) == GH_OK)
		return true;
	/* a delete does not fail for lack of memory */
	put_off_downsize(root);
	return false;
}

/* Gives up the resize in progress, if any. */
void
gh_cpu_resize_abandon(GhCpuTable *table)
{
	GhCpuResize *resize = &table->view.root->resize;

	if (resize->phase == GH_CPU_STEADY)
		return;
	gh_cpu_give(table, resize->ref, resize->buckets << GH_CPU_BUCKET_SHIFT);
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
	subtable->bytes = resize->buckets << GH_CPU_BUCKET_SHIFT;
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
static void
split_buckets(const GhCpuView *view, const GhCpuResize *resize, uint64_t *fresh,
			  uint64_t end)
{
	const uint64_t *from = (uint64_t *) view->base[resize->subtable] +
		resize->next * GH_CPU_BUCKET_WORDS;
	uint64_t	half_words = resize->buckets / 2 * GH_CPU_BUCKET_WORDS;
	uint64_t	half_bit = (resize->buckets / 2) << GH_CPU_BUCKET_SHIFT;
	uint64_t   *to = fresh + resize->next * GH_CPU_BUCKET_WORDS;
	uint64_t	b;

	for (b = resize->next; b < end; b++)
	{
		uint64_t   *half[2] = {to, to + half_words};
		uint32_t	used[2] = {0, 0};
		uint32_t	s;

		memset(half[0], 0, GH_CPU_BUCKET_BYTES);
		memset(half[1], 0, GH_CPU_BUCKET_BYTES);
		for (s = 0; s < view->slots; s++)
		{
			int			upper;

			if (from[s] == GH_CPU_EMPTY)
				continue;
			upper = (gh_cpu_hash_in(view, from[s], resize->subtable) & half_bit) != 0;
			gh_cpu_copy_entry(half[upper] + used[upper]++, from + s, view->slots);
		}
		from += GH_CPU_BUCKET_WORDS;
		to += GH_CPU_BUCKET_WORDS;
	}
}

/* false: an entry has no other place */
static bool
evacuate_buckets(GhCpuTable *table, const GhCpuResize *resize, uint64_t end)
{
	const GhCpuView *view = &table->view;
	uint64_t   *base = (uint64_t *) view->base[resize->subtable];
	const uint8_t subtable[2] = {(uint8_t) resize->subtable, (uint8_t) resize->subtable};
	uint64_t	b;

	for (b = resize->next; b < end; b++)
	{
		uint64_t   *const pair[2] = {
			base + b * GH_CPU_BUCKET_WORDS,
			base + (b + resize->buckets) * GH_CPU_BUCKET_WORDS
		};

		while (gh_cpu_used(pair[0], view->slots) + gh_cpu_used(pair[1], view->slots) >
			   view->slots)
		{
			int			which;

			if (gh_cpu_make_room(table, pair, subtable, &which) == NULL)
				return false;
		}
	}
	return true;
}

static void
merge_buckets(const GhCpuView *view, const GhCpuResize *resize, uint64_t *fresh,
			  uint64_t end)
{
	const uint64_t *base = (uint64_t *) view->base[resize->subtable];
	uint64_t	b;

	for (b = resize->next; b < end; b++)
	{
		uint64_t   *to = fresh + b * GH_CPU_BUCKET_WORDS;
		const uint64_t *from = base + b * GH_CPU_BUCKET_WORDS;
		uint32_t	used = 0;
		uint32_t	s;

		memset(to, 0, GH_CPU_BUCKET_BYTES);
		for (s = 0; s < 2 * view->slots; s++)
		{
			if (s == view->slots)
				from += resize->buckets * GH_CPU_BUCKET_WORDS - view->slots;
			if (from[s] != GH_CPU_EMPTY)
				gh_cpu_copy_entry(to + used++, from + s, view->slots);
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
	uint64_t   *fresh = table->host.address(table->host.ctx, resize->ref);
	uint64_t	last = resize->phase == GH_CPU_SPLITTING ? resize->buckets / 2 : resize->buckets;
	uint64_t	end = last;

	if (end - resize->next > GH_CPU_SLICE_BUCKETS)
		end = resize->next + GH_CPU_SLICE_BUCKETS;

	if (resize->phase == GH_CPU_SPLITTING)
		split_buckets(view, resize, fresh, end);
	else if (resize->phase == GH_CPU_MERGING)
		merge_buckets(view, resize, fresh, end);
	else if (!evacuate_buckets(table, resize, end))
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
