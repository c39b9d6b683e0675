/*
 * cpu_values.c
 *		The values of a key of a multi table.
 *
 * A slot's value word is the key's only value, or names a list.  The two are told
 * apart by the word's upper 16 bits: a word under GH_CPU_LIST_TAG is a list.  A
 * lone value that happens to look like one, or is wider than a word, is kept in
 * a list of one.
 *
 * A list is a chain of nodes that hold a count and values (slab-hash.txt's slabs,
 * for one writer).  A node that is full is replaced by one of twice the size, up to
 * the largest class; further values go to a new node put before the full ones.
 * So an add costs the same however many values the key has, short lists are in one
 * piece, and only the first node of a list has room.  What a build or a flush
 * writes are runs: one node for all values of a key, of just the words it takes.  A
 * run never gets values added, and is always the last node of its list.
 *
 * Nodes are cut from chunks of the host's memory, each a fifth of what there is
 * already.  A list of several nodes, or with a run, is deleted by putting it aside
 * whole, whatever its length, and taken apart piece by piece as new nodes are
 * needed.  Where no node of a class is free a larger one is halved; halves are
 * not put together again before a flush, so until then the memory is at most what
 * each class once needed.  When the last list has gone, the chunks are given back.
 */
#include "engine/table/cpu_internal.h"

#define CLASS_LAST (GH_CPU_NODE_CLASSES - 1)

/* The smallest chunk, in words and in nodes of the last class. */
#define CHUNK_WORDS_MIN 1024
#define CHUNK_NODES_MIN 4
/* A new chunk is this part of the chunks there are. */
#define CHUNK_SHARE 5

/* Pieces of deleted lists that are taken apart for one new node, at most. */
#define RECLAIM_MAX 8

static uint64_t
node_words(const GhCpuTable *table, uint32_t class)
{
	return (uint64_t) table->view.node_unit << class;
}

static void
node_set(uint64_t *node, uint64_t next, uint32_t class, uint64_t used)
{
	node[0] = next << 16 | (uint64_t) class << 12 | used;
}

/* Where the chunks are in this process, and what its nodes hold. */
void
gh_cpu_values_map(GhCpuTable *table)
{
	GhCpuView  *view = &table->view;
	const GhCpuValues *lists = &view->root->lists;
	uint32_t	i;

	for (i = 0; i < lists->chunks; i++)
		table->chunk[i] = lists->chunk[i].ref == 0 ? NULL :
			table->host.address(table->host.ctx, lists->chunk[i].ref);
	/* two small values, or one that is wider than a word */
	view->node_unit = view->value_size <= sizeof(uint64_t) ? GH_CPU_NODE_HEADER + 2 :
		(uint32_t) gh_cpu_run_words(1, view->value_size);
	for (i = 0; i < GH_CPU_NODE_CLASSES; i++)
		view->node_capacity[i] = (uint32_t) ((node_words(table, i) - GH_CPU_NODE_HEADER) *
											 sizeof(uint64_t) / view->value_size);
}

/* ------------------------------------------------------------- the chunks */

static void
give_chunk(GhCpuTable *table, GhCpuChunk *chunk)
{
	table->view.root->lists.words -= chunk->words;
	gh_cpu_give(table, chunk->ref, chunk->words * sizeof(uint64_t));
	memset(chunk, 0, sizeof(*chunk));
}

void
gh_cpu_values_free(GhCpuTable *table)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint32_t	i;

	for (i = 0; i < lists->chunks; i++)
	{
		if (lists->chunk[i].ref != 0)
			give_chunk(table, &lists->chunk[i]);
	}
	memset(lists, 0, sizeof(*lists));
}

static uint64_t
words_to_cut(const GhCpuValues *lists)
{
	return lists->words == 0 ? 0 : lists->chunk[lists->cutting].words - lists->cut;
}

/* The next words of the chunk that nodes are cut from; it has them. */
static uint64_t
cut(GhCpuValues *lists, uint64_t words)
{
	uint64_t	name = (uint64_t) (lists->cutting + 1) << GH_CPU_NODE_CHUNK_SHIFT | lists->cut;

	lists->cut += words;
	return name;
}

static void
push_free(GhCpuTable *table, uint64_t name, uint32_t class)
{
	GhCpuValues *lists = &table->view.root->lists;

	gh_cpu_node(table, name)[0] = lists->free[class];
	lists->free[class] = name;
}

static uint64_t
pop_free(GhCpuTable *table, uint32_t class)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint64_t	name = lists->free[class];

	lists->free[class] = gh_cpu_node(table, name)[0];
	return name;
}

/* Makes free nodes of a piece of a chunk; what is less than a node is lost until
 * a flush. */
static void
free_words(GhCpuTable *table, uint64_t name, uint64_t words)
{
	int			class;

	for (class = CLASS_LAST; class >= 0; class--)
	{
		for (; words >= node_words(table, (uint32_t) class);
			 words -= node_words(table, (uint32_t) class))
		{
			push_free(table, name, (uint32_t) class);
			name += node_words(table, (uint32_t) class);
		}
	}
}

/* A chunk of just so many words, which nodes are cut from now on.  What is left of
 * the one before becomes free nodes; the caller sees to it that this is little. */
GhStatus
gh_cpu_values_chunk(GhCpuTable *table, uint64_t words, GhError *error)
{
	GhCpuValues *lists = &table->view.root->lists;
	GhCpuChunk *chunk;
	GhRef		ref;
	GhStatus	status;
	uint32_t	i;

	for (i = 0; i < lists->chunks && lists->chunk[i].ref != 0; i++)
		continue;
	if (i == GH_CPU_CHUNKS_MAX || words >> GH_CPU_NODE_CHUNK_SHIFT != 0)
		return gh_error_set(error, GH_NO_MEMORY, "a hash table has no room for more values");
	status = gh_cpu_take(table, words * sizeof(uint64_t), &ref, error);
	if (status != GH_OK)
		return status;
	if (words_to_cut(lists) > 0)
	{
		uint64_t	left = words_to_cut(lists);

		free_words(table, cut(lists, left), left);
	}
	chunk = &lists->chunk[i];
	chunk->ref = ref;
	chunk->words = words;
	table->chunk[i] = table->host.address(table->host.ctx, ref);
	if (i == lists->chunks)
		lists->chunks++;
	lists->words += words;
	lists->cutting = i;
	lists->cut = 0;
	return GH_OK;
}

/* A chunk of the usual size, or of a smaller one where that is too much. */
static GhStatus
add_chunk(GhCpuTable *table, GhError *error)
{
	uint64_t	least = CHUNK_NODES_MIN * node_words(table, CLASS_LAST);
	uint64_t	words = table->view.root->lists.words / CHUNK_SHARE;
	GhStatus	status;

	if (least < CHUNK_WORDS_MIN)
		least = CHUNK_WORDS_MIN;
	for (; words > least; words /= 2)
	{
		status = gh_cpu_values_chunk(table, words, error);
		if (status == GH_OK)
			return status;
	}
	return gh_cpu_values_chunk(table, least, error);
}

/* --------------------------------------------------------------- the nodes */

/* Takes a node, or of a long run a piece from its end, off the lists put aside. */
static void
reclaim_pending(GhCpuTable *table)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint64_t	name = lists->pending;
	uint64_t   *node = gh_cpu_node(table, name);
	uint64_t	next = gh_cpu_node_next(node);
	uint64_t	other_lists = node[1];

	if (gh_cpu_node_class(node) == GH_CPU_NODE_RUN)
	{
		uint64_t	words = node[0] >> 16;
		uint64_t	piece = node_words(table, CLASS_LAST);

		if (words >= piece + GH_CPU_NODE_HEADER)
		{
			words -= piece;
			node[0] = words << 16 | GH_CPU_NODE_RUN << 12;
			push_free(table, name + words, CLASS_LAST);
			return;
		}
		lists->pending = other_lists;
		free_words(table, name, words);
		return;
	}
	if (next != 0)
		gh_cpu_node(table, next)[1] = other_lists;
	lists->pending = next != 0 ? next : other_lists;
	push_free(table, name, gh_cpu_node_class(node));
}

/* The class of a free node to take one of that class from, or more than the last. */
static uint32_t
free_class(const GhCpuValues *lists, uint32_t class)
{
	while (class <= CLASS_LAST && lists->free[class] == 0)
		class++;
	return class;
}

/* Gets a free node of the class out of what was given up, halving a larger one
 * if need be; false: there is none. */
static bool
reuse_node(GhCpuTable *table, uint32_t class)
{
	const GhCpuValues *lists = &table->view.root->lists;
	uint32_t	from = free_class(lists, class);
	int			tries;

	for (tries = 0; from > CLASS_LAST && lists->pending != 0 && tries < RECLAIM_MAX; tries++)
	{
		reclaim_pending(table);
		from = free_class(lists, class);
	}
	if (from > CLASS_LAST)
		return false;
	for (; from > class; from--)
	{
		uint64_t	name = pop_free(table, from);

		push_free(table, name + node_words(table, from - 1), from - 1);
		push_free(table, name, from - 1);
	}
	return true;
}

static GhStatus
take_node(GhCpuTable *table, uint32_t class, uint64_t *name, GhError *error)
{
	GhCpuValues *lists = &table->view.root->lists;

	if (reuse_node(table, class))
	{
		*name = pop_free(table, class);
		return GH_OK;
	}
	if (words_to_cut(lists) < node_words(table, class))
	{
		GhStatus	status = add_chunk(table, error);

		if (status != GH_OK)
			return status;
	}
	*name = cut(lists, node_words(table, class));
	return GH_OK;
}

/* A run with room for that many values, and none in it; the chunk has the words. */
uint64_t
gh_cpu_values_cut_run(GhCpuTable *table, uint64_t values)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint64_t	words = gh_cpu_run_words(values, table->view.value_size);
	uint64_t	name = cut(lists, words);
	uint64_t   *node = gh_cpu_node(table, name);

	node[0] = words << 16 | GH_CPU_NODE_RUN << 12;
	node[1] = 0;
	return name;
}

/* --------------------------------------------------------------- the lists */

/* A list of one value in *word. */
static GhStatus
make_list(GhCpuTable *table, uint64_t *word, const void *value, GhError *error)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint64_t	name;
	uint64_t   *node;
	GhStatus	status = take_node(table, 0, &name, error);

	if (status != GH_OK)
		return status;
	node = gh_cpu_node(table, name);
	node_set(node, 0, 0, 1);
	node[1] = 1;
	gh_cpu_copy(gh_cpu_node_values(node), value, table->view.value_size);
	lists->lists++;
	lists->values++;
	*word = gh_cpu_list_word(name);
	return GH_OK;
}

/* The value word of a key's first value. */
GhStatus
gh_cpu_values_first(GhCpuTable *table, uint64_t *word, const void *value, GhError *error)
{
	uint32_t	size = table->view.value_size;

	if (size > sizeof(uint64_t) || gh_cpu_is_list(gh_cpu_lone_word(value, size)))
		return make_list(table, word, value, error);
	*word = gh_cpu_lone_word(value, size);
	return GH_OK;
}

/* Makes room before or in the place of a full first node. */
static GhStatus
extend_list(GhCpuTable *table, uint64_t *word, GhError *error)
{
	uint64_t	old_name = gh_cpu_list_head(*word);
	uint32_t	old_class = gh_cpu_node_class(gh_cpu_node(table, old_name));
	bool		replace = old_class < CLASS_LAST;
	uint32_t	class = replace ? old_class + 1 : old_class == CLASS_LAST ? CLASS_LAST : 0;
	uint64_t	name;
	uint64_t   *node;
	uint64_t   *old;
	GhStatus	status = take_node(table, class, &name, error);

	if (status != GH_OK)
		return status;
	node = gh_cpu_node(table, name);
	old = gh_cpu_node(table, old_name);
	node[1] = old[1];
	if (replace)
	{
		uint64_t	used = gh_cpu_node_used(old);

		node_set(node, gh_cpu_node_next(old), class, used);
		memcpy(gh_cpu_node_values(node), gh_cpu_node_values(old),
			   used * table->view.value_size);
		push_free(table, old_name, old_class);
	}
	else
		node_set(node, old_name, class, 0);
	*word = gh_cpu_list_word(name);
	return GH_OK;
}

static bool
has_room(const GhCpuTable *table, const uint64_t *node)
{
	uint32_t	class = gh_cpu_node_class(node);

	return class != GH_CPU_NODE_RUN &&
		gh_cpu_node_used(node) < table->view.node_capacity[class];
}

/* One more value; on failure the values are as before. */
GhStatus
gh_cpu_values_append(GhCpuTable *table, uint64_t *word, const void *value, GhError *error)
{
	uint32_t	size = table->view.value_size;
	uint64_t   *node;
	GhStatus	status;

	if (!gh_cpu_is_list(*word))
	{
		uint64_t	first = *word;

		status = make_list(table, word, &first, error);
		if (status != GH_OK)
			return status;
	}
	node = gh_cpu_node(table, gh_cpu_list_head(*word));
	if (!has_room(table, node))
	{
		status = extend_list(table, word, error);
		if (status != GH_OK)
			return status;
		node = gh_cpu_node(table, gh_cpu_list_head(*word));
	}
	gh_cpu_copy(gh_cpu_node_values(node) + gh_cpu_node_used(node) * size, value, size);
	/* the lowest bits of its first word count */
	node[0]++;
	node[1]++;
	table->view.root->lists.values++;
	return GH_OK;
}

static void
drop_list(GhCpuTable *table)
{
	if (--table->view.root->lists.lists == 0)
		gh_cpu_values_free(table);
}

/* Takes one value off; returns how many are left.  With the last the word means
 * nothing any more. */
uint64_t
gh_cpu_values_pop(GhCpuTable *table, uint64_t *word)
{
	uint64_t	name = gh_cpu_list_head(*word);
	uint64_t   *node;
	uint64_t	next;
	uint64_t	left;

	if (!gh_cpu_is_list(*word))
		return 0;
	node = gh_cpu_node(table, name);
	if (node[1] == 1)
	{
		(void) gh_cpu_values_release(table, *word);
		return 0;
	}
	left = --node[1];
	table->view.root->lists.values--;
	if (gh_cpu_node_class(node) == GH_CPU_NODE_RUN)
		return left;
	node[0]--;
	next = gh_cpu_node_next(node);
	if (gh_cpu_node_used(node) == 0)
	{
		/* there are values left, hence a node behind it, which is full */
		*word = gh_cpu_list_word(next);
		push_free(table, name, gh_cpu_node_class(node));
	}
	return left;
}

/* Gives up what a slot's value word stands for; returns how many values. */
uint64_t
gh_cpu_values_release(GhCpuTable *table, uint64_t word)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint64_t	name = gh_cpu_list_head(word);
	uint64_t   *node;
	uint64_t	count;

	if (!gh_cpu_is_list(word))
		return 1;
	node = gh_cpu_node(table, name);
	count = node[1];
	if (gh_cpu_node_next(node) == 0 && gh_cpu_node_class(node) != GH_CPU_NODE_RUN)
		push_free(table, name, gh_cpu_node_class(node));
	else
	{
		node[1] = lists->pending;
		lists->pending = name;
	}
	lists->values -= count;
	drop_list(table);
	return count;
}

/* ---------------------------------------------------------------- a flush */

/* All chunks but one are to be left: nothing is cut from them or reused in them. */
void
gh_cpu_values_leave(GhCpuTable *table, uint32_t stay)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint32_t	i;

	for (i = 0; i < lists->chunks; i++)
		lists->chunk[i].leaving = lists->chunk[i].ref != 0 && i != stay;
	memset(lists->free, 0, sizeof(lists->free));
	lists->pending = 0;
}

/* Gives back the chunks that no list is in any more. */
void
gh_cpu_values_give_left(GhCpuTable *table)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint32_t	i;

	for (i = 0; i < lists->chunks; i++)
	{
		if (lists->chunk[i].leaving)
			give_chunk(table, &lists->chunk[i]);
	}
	/* some may be in them */
	memset(lists->free, 0, sizeof(lists->free));
	lists->pending = 0;
}
