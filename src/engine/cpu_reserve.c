/*
 * cpu_reserve.c
 *		Makes room for a number of keys ahead of them.
 *
 * An empty table gets its blocks at once.  Any other one is doubled subtable by
 * subtable, in slices between which the lock is open; where memory does not
 * suffice the doublings are undone.
 */
#include "cpu_internal.h"

#include <inttypes.h>

/* Would the table pass its limit on the way to the level? */
static GhStatus
check_limit(const GhCpuRoot *root, uint32_t level, GhError *error)
{
	const GhTableOptions *options = &root->options;
	uint64_t	bytes = root->bytes;
	uint64_t	peak = 0;
	uint32_t	l;

	for (l = root->level; l < level; l++)
	{
		uint32_t	i = l % options->subtables;
		uint64_t	fresh = gh_cpu_block_bytes(options,
											   gh_cpu_level_buckets(options->subtables, l + 1, i));

		if (bytes + fresh > peak)
			peak = bytes + fresh;
		bytes += fresh - gh_cpu_block_bytes(options,
											gh_cpu_level_buckets(options->subtables, l, i));
	}
	if (options->memory_limit > 0 && peak > options->memory_limit)
		return gh_error_set(error, GH_LIMIT,
							"making room takes %" PRIu64 " bytes and the memory limit is %" PRIu64,
							peak, options->memory_limit);
	return GH_OK;
}

/* Gives a table without content the size of a level that is above its own; its slots
 * are of any content then, to be blanked.  On failure nothing has changed. */
GhStatus
gh_cpu_enlarge_empty(GhCpuTable *table, uint32_t level, GhError *error)
{
	GhCpuRoot  *root = table->view.root;
	uint32_t	d = root->options.subtables;
	GhRef		ref[GH_SUBTABLES_MAX] = {0};
	GhStatus	status = GH_OK;
	uint32_t	i;

	for (i = 0; i < d && status == GH_OK; i++)
	{
		uint64_t	bytes = gh_cpu_block_bytes(&root->options, gh_cpu_level_buckets(d, level, i));

		if (root->subtable[i].bytes != bytes)
			status = gh_cpu_take(table, bytes, &ref[i], error);
	}
	for (i = 0; i < d; i++)
	{
		GhCpuSubtable *subtable = &root->subtable[i];
		uint64_t	buckets = gh_cpu_level_buckets(d, level, i);
		uint64_t	bytes = gh_cpu_block_bytes(&root->options, buckets);

		if (status != GH_OK)
		{
			if (ref[i] != 0)
				gh_cpu_give(table, ref[i], bytes);
			continue;
		}
		subtable->buckets = buckets;
		if (ref[i] == 0)
			continue;
		gh_cpu_give(table, subtable->ref, subtable->bytes);
		subtable->ref = ref[i];
		subtable->bytes = bytes;
	}
	if (status != GH_OK)
		return status;
	root->level = level;
	gh_cpu_forget(root);
	return GH_OK;
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
	status = check_limit(root, level, error);
	if (status != GH_OK)
		return status;
	if (root->keys > 0)
		status = gh_cpu_upsize_begin(table, error);
	else
	{
		status = gh_cpu_enlarge_empty(table, level, error);
		if (status == GH_OK)
			root->hidden = GH_CPU_BLANKING;
	}
	return status == GH_OK ? GH_BUSY : status;
}

/* Carries on what is in progress under the lock; false: nothing is. */
static bool
carry_on(GhCpuTable *table)
{
	gh_cpu_lock(table, GH_LOCK_EXCLUSIVE);
	table->view.root->version++;
	return gh_cpu_carry_on(table);
}

/* Undoes doublings after a failure; what cannot be undone is only a larger table. */
static void
shrink_back(GhCpuTable *table, uint32_t level)
{
	bool		more = true;

	while (more && !gh_cpu_stopped(table))
	{
		if (!carry_on(table))
			more = table->view.root->level > level && gh_cpu_undo_begin(table);
		gh_cpu_unlock(table);
	}
}

GhStatus
gh_cpu_table_reserve(GhTable *common, uint64_t keys, GhError *error)
{
	GhCpuTable *table = (GhCpuTable *) common;
	const GhCpuRoot *root = table->host.address(table->host.ctx, table->root);
	uint32_t	first = 0;
	uint32_t	level;
	bool		begun = false;
	GhStatus	status = GH_BUSY;

	gh_cpu_drain(table);
	if (!gh_cpu_level_for(&root->options, keys, &level))
		return gh_error_set(error, root->options.memory_limit > 0 ? GH_LIMIT : GH_NO_MEMORY,
							"a hash table has no room for %" PRIu64 " keys", keys);
	while (status == GH_BUSY)
	{
		if (gh_cpu_stopped(table))
			return gh_error_set(error, GH_STOPPED, "making room in a hash table was stopped");
		if (!carry_on(table))
		{
			if (!begun)
				first = table->view.root->level;
			begun = true;
			status = grow_step(table, level, error);
		}
		gh_cpu_unlock(table);
	}
	if (status != GH_OK)
		shrink_back(table, first);
	return status;
}
