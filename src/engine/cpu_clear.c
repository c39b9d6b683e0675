/*
 * cpu_clear.c
 *		Removes every key of a table, and blanks what a build left unfinished.
 *
 * A table is emptied in name first, by GhCpuRoot.hidden: from then on nobody sees
 * what its slots hold.  Then its buckets are blanked piece by piece.  Where the
 * stop flag ends that, the next call or the next request that writes carries it
 * on.  No memory is needed to empty a table.  It is needed to bring an empty one
 * back to a smaller size, and where there is none the table uses the front part of
 * its large blocks.
 */
#include "cpu_internal.h"

/* Exchanges the block of a subtable without content for one of the right size, if
 * the memory is there. */
static void
refit_subtable(GhCpuTable *table, GhCpuSubtable *subtable)
{
	uint64_t	bytes = gh_cpu_block_bytes(&table->view.root->options, subtable->buckets);
	GhRef		ref;

	if (subtable->bytes == bytes || gh_cpu_take(table, bytes, &ref, NULL) != GH_OK)
		return;
	gh_cpu_give(table, subtable->ref, subtable->bytes);
	subtable->ref = ref;
	subtable->bytes = bytes;
}

/* The table has no content from now on, at its smallest size; its slots are of any
 * content, to be blanked. */
void
gh_cpu_hide(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;
	uint32_t	d = root->options.subtables;
	uint32_t	i;

	gh_cpu_resize_abandon(table);
	gh_cpu_values_free(table);
	gh_cpu_forget(root);
	root->hidden = GH_CPU_BLANKING;
	root->level = root->level_floor;
	for (i = 0; i < d; i++)
	{
		root->subtable[i].buckets = gh_cpu_level_buckets(d, root->level, i);
		refit_subtable(table, &root->subtable[i]);
	}
}

/* Counts nothing, and begins to blank at the start. */
void
gh_cpu_forget(GhCpuRoot *root)
{
	uint32_t	i;

	for (i = 0; i < root->options.subtables; i++)
		root->subtable[i].entries = 0;
	root->keys = root->values = 0;
	root->has_empty_key = false;
	root->blank_subtable = 0;
	root->blank_at = 0;
	root->downsize_after = 0;
	root->crowded_keys = 0;
}

/* Empties the slots of some buckets; true: of the last ones. */
bool
gh_cpu_blank_slice(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;
	const GhCpuSubtable *subtable = &root->subtable[root->blank_subtable];
	uint64_t	bytes = (subtable->buckets << GH_CPU_BUCKET_SHIFT) - root->blank_at;
	char	   *base = table->host.address(table->host.ctx, subtable->ref);

	if (bytes > GH_CPU_SLICE_BYTES)
		bytes = GH_CPU_SLICE_BYTES;
	memset(base + root->blank_at, 0, bytes);
	root->blank_at += bytes;
	if (root->blank_at < subtable->buckets << GH_CPU_BUCKET_SHIFT)
		return false;
	root->blank_at = 0;
	return ++root->blank_subtable == root->options.subtables;
}

/* Blanks all of a hidden table and shows it, empty; false: stopped. */
bool
gh_cpu_blank(GhCpuTable *table)
{
	do
	{
		if (gh_cpu_stopped(table))
			return false;
	} while (!gh_cpu_blank_slice(table));
	table->view.root->hidden = 0;
	return true;
}

GhStatus
gh_cpu_table_clear(GhTable *common, GhError *error)
{
	GhCpuTable *table = (GhCpuTable *) common;
	GhCpuRoot  *root;
	bool		finished;

	gh_cpu_drain(table);
	gh_cpu_lock(table, GH_LOCK_EXCLUSIVE);
	root = table->view.root;
	root->version++;
	/* one that was stopped goes on, else nothing would ever finish it */
	if (root->hidden != GH_CPU_BLANKING || root->level_floor != root->level_initial)
	{
		root->level_floor = root->level_initial;
		gh_cpu_hide(table);
	}
	finished = gh_cpu_blank(table);
	gh_cpu_unlock(table);
	if (!finished)
		return gh_error_set(error, GH_STOPPED, "the clearing of a hash table was stopped");
	return GH_OK;
}
