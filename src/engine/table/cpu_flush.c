/*
 * cpu_flush.c
 *		Gives memory back that deletes left.
 *
 * The values of a multi table move, list by list, to a chunk of just the words
 * that they take, each list as one run; then the chunks before are given back.  This
 * holds the lock throughout.  Where the stop flag ends it, or memory does, some lists
 * are in the new chunk and some in old ones, which are marked as leaving; the next
 * flush goes on with those.  Then subtables are halved, in slices, as long as
 * the filled factor allows.
 */
#include "engine/table/cpu_internal.h"

/* Chunks are left for a new one when that saves at least this part of it. */
#define WORTHWHILE_SHARE 8

typedef enum Moved
{
	MOVED,
	MOVED_STOPPED,
	MOVED_NOT					/* no memory */
} Moved;

static bool
is_leaving(const GhCpuTable *table, uint64_t name)
{
	const GhCpuValues *lists = &table->view.root->lists;

	for (; name != 0; name = gh_cpu_node_next(gh_cpu_node(table, name)))
	{
		if (lists->chunk[(name >> GH_CPU_NODE_CHUNK_SHIFT) - 1].leaving)
			return true;
	}
	return false;
}

/* Copies the values of a list to a new run; false: stopped. */
static bool
copy_values(const GhCpuTable *table, uint64_t from, uint64_t *run)
{
	uint32_t	size = table->view.value_size;
	uint64_t	piece = GH_CPU_SLICE_BYTES / size;

	while (from != 0)
	{
		uint64_t   *node = gh_cpu_node(table, from);
		uint64_t	used = gh_cpu_node_used(node);
		uint64_t	at;

		for (at = 0; at < used; at += piece)
		{
			uint64_t	now = used - at < piece ? used - at : piece;

			if (gh_cpu_stopped(table))
				return false;
			memcpy(gh_cpu_node_values(run) + run[1] * size,
				   gh_cpu_node_values(node) + at * size, now * size);
			run[1] += now;
		}
		from = gh_cpu_node_next(node);
	}
	return true;
}

/* Moves one list out of the chunks that are leaving. */
static Moved
move_list(GhCpuTable *table, uint64_t *word)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint32_t	size = table->view.value_size;
	uint64_t	head = gh_cpu_list_head(*word);
	uint64_t	values = gh_cpu_node(table, head)[1];
	uint64_t	words = gh_cpu_run_words(values, size);
	uint64_t	before;
	uint64_t	name;

	if (!is_leaving(table, head))
		return MOVED;
	/* what was added since an earlier flush was stopped may need more than was taken */
	if (lists->chunk[lists->cutting].words - lists->cut < words &&
		gh_cpu_values_chunk(table, words, NULL) != GH_OK)
		return MOVED_NOT;
	before = lists->cut;
	name = gh_cpu_values_cut_run(table, values);
	if (!copy_values(table, head, gh_cpu_node(table, name)))
	{
		lists->cut = before;
		return MOVED_STOPPED;
	}
	*word = gh_cpu_list_word(name);
	return MOVED;
}

static Moved
move_lists_of(GhCpuTable *table, uint32_t subtable)
{
	const GhCpuView *view = &table->view;
	const GhCpuArea *area = &view->area[subtable];
	GhCpuShape	shape = view->shape;
	uint64_t	buckets = view->root->subtable[subtable].buckets;
	uint64_t	b;
	uint32_t	s;

	for (b = 0; b < buckets; b++)
	{
		char	   *bucket = area->base + (b << GH_CPU_BUCKET_SHIFT);

		if (gh_cpu_stopped(table))
			return MOVED_STOPPED;
		for (s = 0; s < gh_cpu_slots(shape); s++)
		{
			char	   *slot = bucket + (s << gh_cpu_key_shift(shape));
			uint64_t   *word = (uint64_t *) (void *) gh_cpu_value(shape, area, slot, view->stride);
			Moved		moved;

			if (gh_cpu_key_at(shape, slot) == GH_CPU_EMPTY || !gh_cpu_is_list(*word))
				continue;
			moved = move_list(table, word);
			if (moved != MOVED)
				return moved;
		}
	}
	return MOVED;
}

/* Takes a chunk for all lists, if that saves much; false: it does not, or there is
 * no memory. */
static bool
begin_to_leave(GhCpuTable *table)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint64_t	words = lists->lists * (GH_CPU_NODE_HEADER + 1) +
		lists->values * table->view.value_size / 8;
	uint32_t	i;

	for (i = 0; i < lists->chunks; i++)
	{
		if (lists->chunk[i].leaving)
			return true;
	}
	if (lists->words < words + words / WORTHWHILE_SHARE ||
		gh_cpu_values_chunk(table, words, NULL) != GH_OK)
		return false;
	gh_cpu_values_leave(table, lists->cutting);
	return true;
}

/* false: stopped */
static bool
compact_values(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;
	uint64_t   *word = root->empty_key_value;
	Moved		moved = MOVED;
	uint32_t	i;

	if (!root->options.multi || root->hidden != 0 || root->lists.lists == 0 ||
		!begin_to_leave(table))
		return true;
	if (root->has_empty_key && gh_cpu_is_list(*word))
		moved = move_list(table, word);
	for (i = 0; i < root->options.subtables && moved == MOVED; i++)
		moved = move_lists_of(table, i);
	if (moved == MOVED)
		gh_cpu_values_give_left(table);
	return moved != MOVED_STOPPED;
}

/* One slice of the shrinking; false: it does not go any further. */
static bool
shrink_slice(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;
	bool		resizing = root->resize.phase != GH_CPU_STEADY;

	/* a build in progress is left alone */
	if (root->hidden != 0 && root->hidden != GH_CPU_BLANKING)
		return false;
	if (!gh_cpu_carry_on(table))
		return gh_cpu_shrink_begin(table);
	/* a downsize that found no place for an entry will find none now */
	return !resizing || root->resize.phase != GH_CPU_STEADY ||
		root->downsize_after <= root->writes;
}

GhStatus
gh_cpu_table_flush(GhTable *common, GhError *error)
{
	GhCpuTable *table = (GhCpuTable *) common;
	bool		stopped;
	bool		more = true;

	if (table->rows != NULL)
		return gh_made_refuse(error);
	gh_cpu_drain(table);
	gh_cpu_lock(table, GH_LOCK_EXCLUSIVE);
	table->view.root->version++;
	stopped = !compact_values(table);
	gh_cpu_unlock(table);
	while (more && !stopped)
	{
		stopped = gh_cpu_stopped(table);
		if (stopped)
			break;
		gh_cpu_lock(table, GH_LOCK_EXCLUSIVE);
		table->view.root->version++;
		more = shrink_slice(table);
		gh_cpu_unlock(table);
	}
	if (stopped)
		return gh_error_set(error, GH_STOPPED, "the flush of a hash table was stopped");
	return GH_OK;
}
