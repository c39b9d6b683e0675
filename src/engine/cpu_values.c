/*
 * cpu_values.c
 *		The values of a key of a multi table.
 *
 * A slot's value word is the key's only value, or names a list.  The two are told
 * apart by the word's upper 16 bits: a word under GH_CPU_LIST_TAG is a list, and a
 * lone value that happens to look like one is kept in a list of one.
 *
 * A list is a chain of nodes that hold a count and values (slab-hash.txt's slabs,
 * for one writer).  A node that is full is replaced by one of twice the size, up to
 * the largest class; further values go to a new node put before the full ones.
 * So an add costs the same however many values the key has, short lists are in one
 * piece, and only the first node of a list has room.
 *
 * Nodes are cut from chunks of the host's memory, each fourth of which is twice as
 * large.  A list of several nodes (all but the first are full and of the largest
 * class, and so is the first) is deleted by putting it aside whole, whatever its
 * length, and taken apart node by node as new nodes are needed.  Where no node of a
 * class is free a larger one is halved; halves are not put together again, so the
 * memory is at most what each class once needed.  When the last list has gone, the
 * chunks are given back.
 */
#include "cpu_internal.h"

#include <string.h>

#define NODE_WORDS(class) ((uint64_t) 4 << (class))
#define NODE_CAPACITY(class) ((uint32_t) NODE_WORDS(class) - GH_CPU_NODE_HEADER)
#define CLASS_LAST (GH_CPU_NODE_CLASSES - 1)

static uint64_t
chunk_words(uint32_t chunk)
{
	return (uint64_t) 1024 << (chunk / 4);
}

static void
node_set(uint64_t *node, uint64_t next, uint32_t class, uint32_t used)
{
	node[0] = next << 16 | (uint64_t) class << 8 | used;
}

void
gh_cpu_values_map(GhCpuTable *table)
{
	const GhCpuValues *lists = &table->view.root->lists;
	uint32_t	i;

	for (i = 0; i < lists->chunks; i++)
		table->chunk[i] = table->host.address(table->host.ctx, lists->chunk[i]);
}

void
gh_cpu_values_free(GhCpuTable *table)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint32_t	i;

	for (i = 0; i < lists->chunks; i++)
		gh_cpu_give(table, lists->chunk[i], chunk_words(i) * sizeof(uint64_t));
	memset(lists, 0, sizeof(*lists));
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

/* The next free words of the last chunk become a node; the chunk has them. */
static uint64_t
cut_node(GhCpuValues *lists, uint32_t class)
{
	uint64_t	name = (uint64_t) lists->chunks << GH_CPU_NODE_CHUNK_SHIFT | lists->chunk_used;

	lists->chunk_used += NODE_WORDS(class);
	return name;
}

static uint64_t
chunk_left(const GhCpuValues *lists)
{
	return lists->chunks == 0 ? 0 : chunk_words(lists->chunks - 1) - lists->chunk_used;
}

static GhStatus
add_chunk(GhCpuTable *table, GhError *error)
{
	GhCpuValues *lists = &table->view.root->lists;
	GhRef		ref;
	GhStatus	status;
	uint32_t	class;

	if (lists->chunks == GH_CPU_CHUNKS_MAX)
		return gh_error_set(error, GH_NO_MEMORY, "a hash table has no room for more values");
	status = gh_cpu_take(table, chunk_words(lists->chunks) * sizeof(uint64_t), &ref, error);
	if (status != GH_OK)
		return status;
	/* what is left of the last chunk, too little for a node, serves smaller ones */
	for (class = CLASS_LAST; chunk_left(lists) > 0; class--)
	{
		while (chunk_left(lists) >= NODE_WORDS(class))
			push_free(table, cut_node(lists, class), class);
	}
	table->chunk[lists->chunks] = table->host.address(table->host.ctx, ref);
	lists->chunk[lists->chunks++] = ref;
	lists->chunk_used = 0;
	return GH_OK;
}

/* Takes a node, which is of the last class, off the long lists put aside. */
static void
reclaim_pending(GhCpuTable *table)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint64_t	name = lists->pending;
	const uint64_t *node = gh_cpu_node(table, name);
	uint64_t	next = gh_cpu_node_next(node);
	uint64_t	other_lists = node[1];

	if (next != 0)
		gh_cpu_node(table, next)[1] = other_lists;
	lists->pending = next != 0 ? next : other_lists;
	push_free(table, name, CLASS_LAST);
}

/* Gets a free node of the class out of what was given up, halving a larger one
 * if need be; false: there is none. */
static bool
reuse_node(GhCpuTable *table, uint32_t class)
{
	const GhCpuValues *lists = &table->view.root->lists;
	uint32_t	from = class;

	while (from < CLASS_LAST && lists->free[from] == 0)
		from++;
	if (lists->free[from] == 0)
	{
		if (lists->pending == 0)
			return false;
		reclaim_pending(table);
	}
	for (; from > class; from--)
	{
		uint64_t	name = pop_free(table, from);

		push_free(table, name + NODE_WORDS(from - 1), from - 1);
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
	if (chunk_left(lists) < NODE_WORDS(class))
	{
		GhStatus	status = add_chunk(table, error);

		if (status != GH_OK)
			return status;
	}
	*name = cut_node(lists, class);
	return GH_OK;
}

static uint64_t
list_word(uint64_t name)
{
	return GH_CPU_LIST_TAG << GH_CPU_LIST_SHIFT | name;
}

/* A list of the given values, one or two, in *word. */
static GhStatus
make_list(GhCpuTable *table, uint64_t *word, const uint64_t *values, uint32_t count,
		  GhError *error)
{
	uint64_t	name;
	uint64_t   *node;
	GhStatus	status = take_node(table, 0, &name, error);

	if (status != GH_OK)
		return status;
	node = gh_cpu_node(table, name);
	node_set(node, 0, 0, count);
	node[1] = count;
	memcpy(node + GH_CPU_NODE_HEADER, values, count * sizeof(uint64_t));
	table->view.root->lists.lists++;
	*word = list_word(name);
	return GH_OK;
}

/* The value word of a key's first value. */
GhStatus
gh_cpu_values_first(GhCpuTable *table, uint64_t *word, uint64_t value, GhError *error)
{
	if (gh_cpu_is_list(value))
		return make_list(table, word, &value, 1, error);
	*word = value;
	return GH_OK;
}

/* Makes room before or in the place of a full first node. */
static GhStatus
extend_list(GhCpuTable *table, uint64_t *word, GhError *error)
{
	uint64_t	old_name = gh_cpu_list_head(*word);
	uint32_t	old_class = gh_cpu_node_class(gh_cpu_node(table, old_name));
	bool		replace = old_class < CLASS_LAST;
	uint32_t	class = replace ? old_class + 1 : CLASS_LAST;
	uint64_t	name;
	uint64_t   *node;
	const uint64_t *old;
	GhStatus	status = take_node(table, class, &name, error);

	if (status != GH_OK)
		return status;
	node = gh_cpu_node(table, name);
	old = gh_cpu_node(table, old_name);
	node[1] = old[1];
	if (replace)
	{
		uint32_t	used = gh_cpu_node_used(old);

		node_set(node, 0, class, used);
		memcpy(node + GH_CPU_NODE_HEADER, old + GH_CPU_NODE_HEADER, used * sizeof(uint64_t));
		push_free(table, old_name, old_class);
	}
	else
		node_set(node, old_name, class, 0);
	*word = list_word(name);
	return GH_OK;
}

/* One more value; on failure the list is as before. */
GhStatus
gh_cpu_values_append(GhCpuTable *table, uint64_t *word, uint64_t value, GhError *error)
{
	uint64_t   *node;
	uint32_t	used;
	GhStatus	status;

	if (!gh_cpu_is_list(*word))
	{
		uint64_t	values[2] = {*word, value};

		return make_list(table, word, values, 2, error);
	}
	node = gh_cpu_node(table, gh_cpu_list_head(*word));
	if (gh_cpu_node_used(node) == NODE_CAPACITY(gh_cpu_node_class(node)))
	{
		status = extend_list(table, word, error);
		if (status != GH_OK)
			return status;
		node = gh_cpu_node(table, gh_cpu_list_head(*word));
	}
	used = gh_cpu_node_used(node);
	node[GH_CPU_NODE_HEADER + used] = value;
	node_set(node, gh_cpu_node_next(node), gh_cpu_node_class(node), used + 1);
	node[1]++;
	return GH_OK;
}

/* Gives up what a slot's value word stands for; returns how many values. */
uint64_t
gh_cpu_values_release(GhCpuTable *table, uint64_t word)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint64_t   *node;
	uint64_t	count;

	if (!gh_cpu_is_list(word))
		return 1;
	node = gh_cpu_node(table, gh_cpu_list_head(word));
	count = node[1];
	if (gh_cpu_node_next(node) == 0)
		push_free(table, gh_cpu_list_head(word), gh_cpu_node_class(node));
	else
	{
		node[1] = lists->pending;
		lists->pending = gh_cpu_list_head(word);
	}
	if (--lists->lists == 0)
		gh_cpu_values_free(table);
	return count;
}
