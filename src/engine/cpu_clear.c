/*
 * cpu_clear.c
 *		Removes every key of a table.
 *
 * Buckets are emptied in place under one exclusive lock, with the counts kept
 * right as they go: where the stop flag ends it the table is whole, with fewer
 * keys, and a second call goes on.  No memory is needed to empty a table.  It is
 * needed to bring an empty one back to the size of its creation, and where there
 * is none the table uses the front part of its large blocks.
 */
#include "cpu_internal.h"

static void
empty_bucket(GhCpuTable *table, GhCpuSubtable *subtable, uint64_t *bucket)
{
	GhCpuRoot  *root = table->view.root;
	uint32_t	slots = table->view.slots;
	uint32_t	s;

	for (s = 0; s < slots; s++)
	{
		if (bucket[s] == GH_CPU_EMPTY)
			continue;
		root->values -= root->options.multi ?
			gh_cpu_values_release(table, bucket[s + GH_CPU_MAP_SLOTS]) : 1;
		root->keys--;
		subtable->entries--;
		bucket[s] = GH_CPU_EMPTY;
	}
}

/* false: stopped */
static bool
empty_subtable(GhCpuTable *table, uint32_t index)
{
	GhCpuSubtable *subtable = &table->view.root->subtable[index];
	uint64_t   *bucket = (uint64_t *) table->view.base[index];
	uint64_t	b;

	for (b = 0; b < subtable->buckets && subtable->entries > 0; b++)
	{
		if (b % GH_CPU_SLICE_BUCKETS == 0 && gh_cpu_stopped(table))
			return false;
		empty_bucket(table, subtable, bucket + b * GH_CPU_BUCKET_WORDS);
	}
	return true;
}

static void
empty_special_key(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;

	if (!root->has_empty_key)
		return;
	root->values -= root->options.multi ?
		gh_cpu_values_release(table, root->empty_key_value) : 1;
	root->has_empty_key = false;
	root->keys--;
}

/* Exchanges the block of an empty subtable for one of the right size, if the
 * memory is there; false: stopped. */
static bool
refit_subtable(GhCpuTable *table, GhCpuSubtable *subtable)
{
	uint64_t	bytes = subtable->buckets << GH_CPU_BUCKET_SHIFT;
	GhRef		ref;

	if (subtable->bytes == bytes || gh_cpu_take(table, bytes, &ref, NULL) != GH_OK)
		return true;
	if (!gh_cpu_blank(table, table->host.address(table->host.ctx, ref), bytes))
	{
		gh_cpu_give(table, ref, bytes);
		return false;
	}
	gh_cpu_give(table, subtable->ref, subtable->bytes);
	subtable->ref = ref;
	subtable->bytes = bytes;
	return true;
}

static bool
clear_locked(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;
	uint32_t	d = root->options.subtables;
	uint32_t	i;

	gh_cpu_resize_abandon(table);
	root->version++;
	for (i = 0; i < d; i++)
	{
		if (!empty_subtable(table, i))
			return false;
	}
	empty_special_key(table);

	/* an empty table may take any size without moving an entry */
	root->level = root->level_initial;
	root->downsize_after = 0;
	for (i = 0; i < d; i++)
		root->subtable[i].buckets = gh_cpu_level_buckets(d, root->level, i);
	for (i = 0; i < d; i++)
	{
		if (!refit_subtable(table, &root->subtable[i]))
			return false;
	}
	return true;
}

GhStatus
gh_cpu_table_clear(GhTable *common, GhError *error)
{
	GhCpuTable *table = (GhCpuTable *) common;
	bool		finished;

	/* requests submitted before the call are done before it */
	while (table->queue_head != NULL)
		(void) gh_cpu_wait(table->queue_head);

	gh_cpu_lock(table, GH_LOCK_EXCLUSIVE);
	finished = clear_locked(table);
	gh_cpu_unlock(table);
	if (!finished)
		return gh_error_set(error, GH_STOPPED, "the clearing of a hash table was stopped");
	return GH_OK;
}
