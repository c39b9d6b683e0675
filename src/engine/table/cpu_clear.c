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
#include "engine/table/cpu_internal.h"

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
	root->blank_at = root->blanked = 0;
	root->downsize_after = 0;
	root->crowded_keys = 0;
}

/* Bytes of the buckets of all subtables. */
static uint64_t
all_bytes(const GhCpuRoot *root)
{
	uint64_t	bytes = 0;
	uint32_t	i;

	for (i = 0; i < root->options.subtables; i++)
		bytes += root->subtable[i].buckets << GH_CPU_BUCKET_SHIFT;
	return bytes;
}

/* Empties slots: a piece of the subtables' buckets, taken one after the other. */
static void
blank_piece(GhCpuTable *table, uint64_t begin, uint64_t end)
{
	const GhCpuRoot *root = table->view.root;
	uint64_t	start = 0;		/* of the subtable */
	uint32_t	i;

	for (i = 0; i < root->options.subtables && start < end; i++)
	{
		uint64_t	bytes = root->subtable[i].buckets << GH_CPU_BUCKET_SHIFT;
		uint64_t	from = begin > start ? begin - start : 0;
		uint64_t	to = end - start < bytes ? end - start : bytes;

		if (from < to)
			memset((char *) table->host.address(table->host.ctx, root->subtable[i].ref) + from,
				   0, to - from);
		start += bytes;
	}
}

/* Empties the slots of some buckets; true: there are no others.  The lock is exclusive. */
bool
gh_cpu_blank_slice(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;
	uint64_t	all = all_bytes(root);
	uint64_t	begin = root->blanked;
	uint64_t	end = all - begin > GH_CPU_SLICE_BYTES ? begin + GH_CPU_SLICE_BYTES : all;

	blank_piece(table, begin, end);
	root->blank_at = root->blanked = end;
	return end == all;
}

/*
 * The same beside other handles, under the shared lock; false: others have taken what was left,
 * and may not be done.  Whoever is the last one shows the table.  Acquire and release: what
 * others have blanked is blank to whoever finds the table shown (cpu_view.c).
 */
bool
gh_cpu_blank_shared(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;
	uint64_t	all = all_bytes(root);
	uint64_t	begin = __atomic_fetch_add(&root->blank_at, GH_CPU_SLICE_BYTES, __ATOMIC_RELAXED);
	uint64_t	end = begin + GH_CPU_SLICE_BYTES < all ? begin + GH_CPU_SLICE_BYTES : all;

	if (begin >= all)
		return false;
	blank_piece(table, begin, end);
	if (__atomic_add_fetch(&root->blanked, end - begin, __ATOMIC_ACQ_REL) == all)
		__atomic_store_n(&root->hidden, 0, __ATOMIC_RELEASE);
	return true;
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

	if (table->rows != NULL)
		return gh_made_refuse(error);
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
