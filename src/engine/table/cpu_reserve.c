/*
 * cpu_reserve.c
 *		Makes room for a number of keys ahead of them.
 *
 * All new blocks are taken first, so that more than can be had is refused with
 * nothing changed.  An empty table gets them at once.  The entries of any other one
 * are copied to them in slices, as a resize of all subtables together
 * (GH_CPU_SPREADING): the old blocks are in use until the last bucket is copied.
 */
#include "engine/table/cpu_internal.h"

#include <inttypes.h>

/* Takes the blocks of a level that are of other sizes than the table's; the others'
 * refs are 0. */
static GhStatus
take_blocks(GhCpuTable *table, uint32_t level, GhRef *ref, GhError *error)
{
	const GhCpuRoot *root = table->view.root;
	uint32_t	d = root->options.subtables;
	GhStatus	status = GH_OK;
	uint32_t	i;

	memset(ref, 0, d * sizeof(GhRef));
	for (i = 0; i < d && status == GH_OK; i++)
	{
		uint64_t	buckets = gh_cpu_level_buckets(d, level, i);
		uint64_t	bytes = gh_cpu_block_bytes(&root->options, buckets);

		if (root->subtable[i].buckets != buckets || root->subtable[i].bytes != bytes)
			status = gh_cpu_take(table, bytes, &ref[i], error);
	}
	if (status != GH_OK)
		gh_cpu_give_blocks(table, level, ref);
	return status;
}

/* Gives blocks of a level back that are not in use. */
void
gh_cpu_give_blocks(GhCpuTable *table, uint32_t level, GhRef *ref)
{
	const GhTableOptions *options = &table->view.root->options;
	uint32_t	i;

	for (i = 0; i < options->subtables; i++)
	{
		if (ref[i] != 0)
			gh_cpu_give(table, ref[i],
						gh_cpu_block_bytes(options,
										   gh_cpu_level_buckets(options->subtables, level, i)));
		ref[i] = 0;
	}
}

/* Puts the blocks of a level in the place of the old. */
static void
use_blocks(GhCpuTable *table, uint32_t level, const GhRef *ref)
{
	GhCpuRoot  *root = table->view.root;
	uint32_t	d = root->options.subtables;
	uint32_t	i;

	for (i = 0; i < d; i++)
	{
		GhCpuSubtable *subtable = &root->subtable[i];

		if (ref[i] == 0)
			continue;
		gh_cpu_give(table, subtable->ref, subtable->bytes);
		subtable->ref = ref[i];
		subtable->buckets = gh_cpu_level_buckets(d, level, i);
		subtable->bytes = gh_cpu_block_bytes(&root->options, subtable->buckets);
	}
	root->level = level;
}

/* Gives a table without content the size of a level that is above its own; its slots
 * are of any content then, to be blanked.  On failure nothing has changed. */
GhStatus
gh_cpu_enlarge_empty(GhCpuTable *table, uint32_t level, GhError *error)
{
	GhRef		ref[GH_SUBTABLES_MAX];
	GhStatus	status = take_blocks(table, level, ref, error);

	if (status != GH_OK)
		return status;
	use_blocks(table, level, ref);
	gh_cpu_forget(table->view.root);
	return GH_OK;
}

/* ------------------------------------------------------------ with content */

/* The entries of bucket b of n belong into b, b + n, b + 2n..., which are blank. */
static gh_always_inline void
spread_buckets(GhCpuShape shape, const GhCpuView *view, const GhCpuResize *resize,
			   const GhCpuArea *fresh, uint64_t end)
{
	const GhCpuArea *area = &view->area[resize->subtable];
	uint64_t	mask = (resize->buckets - 1) << GH_CPU_BUCKET_SHIFT;
	uint64_t	b;

	for (b = resize->next; b < end; b++)
	{
		uint32_t	s;

		for (s = 0; s < gh_cpu_slots(shape); s++)
		{
			char	   *slot = area->base + (b << GH_CPU_BUCKET_SHIFT) +
				(s << gh_cpu_key_shift(shape));
			uint64_t	key = gh_cpu_key_at(shape, slot);
			char	   *bucket;

			if (key == GH_CPU_EMPTY)
				continue;
			/* has room: nothing but bucket b comes here */
			bucket = fresh->base + (gh_cpu_hash_in(view, key, resize->subtable) & mask);
			gh_cpu_copy_entry(shape, view, fresh, gh_cpu_slot(shape, bucket, GH_CPU_EMPTY),
							  area, slot);
		}
	}
}

/* Starts with the next subtable that gets larger; there are no more: ends. */
static void
next_subtable(GhCpuTable *table, uint32_t index)
{
	GhCpuRoot  *root = table->view.root;
	GhCpuResize *resize = &root->resize;
	uint32_t	d = root->options.subtables;

	while (index < d && resize->spread[index] == 0)
		index++;
	resize->subtable = index;
	resize->next = 0;
	resize->blank_at = 0;
	if (index < d)
	{
		resize->buckets = gh_cpu_level_buckets(d, resize->level, index);
		return;
	}
	root->upsizes += resize->level - root->level;
	use_blocks(table, resize->level, resize->spread);
	root->downsize_after = 0;
	memset(resize, 0, sizeof(*resize));
}

/* A slice of the spreading in progress. */
void
gh_cpu_spread_slice(GhCpuTable *table)
{
	const GhCpuView *view = &table->view;
	GhCpuResize *resize = &view->root->resize;
	uint64_t	old = view->root->subtable[resize->subtable].buckets;
	GhCpuArea	fresh = gh_cpu_area(table, resize->spread[resize->subtable], resize->buckets);
	uint64_t	end = gh_cpu_slice(GH_CPU_SLICE_BUCKETS,
								   gh_cpu_block_bytes(&view->root->options, 1), 16);
	uint64_t	bytes = (resize->buckets << GH_CPU_BUCKET_SHIFT) - resize->blank_at;

	if (bytes > 0)
	{
		if (bytes > GH_CPU_SLICE_BYTES)
			bytes = GH_CPU_SLICE_BYTES;
		memset(fresh.base + resize->blank_at, 0, bytes);
		resize->blank_at += bytes;
		return;
	}
	end = old - resize->next > end ? resize->next + end : old;
	GH_CPU_BY_SHAPE(view->shape, spread_buckets, view, resize, &fresh, end);
	resize->next = end;
	if (end == old)
		next_subtable(table, resize->subtable + 1);
}

/* The next step of the growth to a level; GH_BUSY: there are more. */
static GhStatus
grow_step(GhCpuTable *table, uint32_t level, GhError *error)
{
	GhCpuRoot  *root = table->view.root;
	GhStatus	status;

	if (root->level >= level)
	{
		if (root->level_floor < level)
			root->level_floor = level;
		return GH_OK;
	}
	if (root->keys == 0)
	{
		status = gh_cpu_enlarge_empty(table, level, error);
		if (status == GH_OK)
			root->hidden = GH_CPU_BLANKING;
	}
	else
	{
		status = take_blocks(table, level, root->resize.spread, error);
		if (status == GH_OK)
		{
			root->resize.phase = GH_CPU_SPREADING;
			root->resize.level = level;
			next_subtable(table, 0);
		}
	}
	return status == GH_OK ? GH_BUSY : status;
}

GhStatus
gh_cpu_table_reserve(GhTable *common, uint64_t keys, GhError *error)
{
	GhCpuTable *table = (GhCpuTable *) common;
	const GhCpuRoot *root = table->host.address(table->host.ctx, table->root);
	uint32_t	level;
	GhStatus	status = GH_BUSY;

	if (table->rows != NULL)
		return gh_made_refuse(error);
	gh_cpu_drain(table);
	if (!gh_cpu_level_for(&root->options, keys, &level))
		return gh_error_set(error, root->options.memory_limit > 0 ? GH_LIMIT : GH_NO_MEMORY,
							"a hash table has no room for %" PRIu64 " keys", keys);
	while (status == GH_BUSY)
	{
		if (gh_cpu_stopped(table))
			return gh_error_set(error, GH_STOPPED, "making room in a hash table was stopped");
		gh_cpu_lock(table, GH_LOCK_EXCLUSIVE);
		table->view.root->version++;
		if (!gh_cpu_carry_on(table))
			status = grow_step(table, level, error);
		gh_cpu_unlock(table);
	}
	return status;
}
