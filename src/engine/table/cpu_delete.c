/*
 * cpu_delete.c
 *		Removes a batch of keys, or one value of each, and lets the table shrink
 *		behind it.
 */
#include "engine/table/cpu_internal.h"

/*
 * Takes all values of a key, or one, from where its slot has its value.  Returns how
 * many; *gone tells whether none is left, so that the key must go.
 */
static gh_always_inline uint64_t
take_values(GhCpuTable *table, char *value, GhOp op, bool *gone)
{
	uint64_t   *word = (uint64_t *) (void *) value;

	*gone = true;
	if (!table->view.root->options.multi)
		return 1;
	if (op == GH_DELETE)
		return gh_cpu_values_release(table, *word);
	*gone = gh_cpu_values_pop(table, word) == 0;
	return 1;
}

static uint64_t
delete_empty_key(GhCpuTable *table, GhOp op, bool *gone)
{
	GhCpuRoot  *root = table->view.root;
	uint64_t	values;

	*gone = false;
	if (!root->has_empty_key)
		return 0;
	values = take_values(table, (char *) root->empty_key_value, op, gone);
	root->has_empty_key = !*gone;
	return values;
}

/* How many values left; *gone tells whether the key did. */
static gh_always_inline uint64_t
delete_position(GhCpuShape shape, GhCpuTable *table, uint64_t key, const GhCpuPlace *place,
				GhOp op, bool *gone)
{
	const GhCpuView *view = &table->view;
	char	   *slot;
	uint64_t	values;
	uint32_t	subtable;
	int			which;

	if (gh_unlikely(key == GH_CPU_EMPTY))
		return delete_empty_key(table, op, gone);
	*gone = false;
	slot = gh_cpu_lookup(shape, place, key, &which);
	gh_cpu_count_lookup(view->root, which);
	if (slot == NULL)
		return 0;
	subtable = place->subtable[which];
	values = take_values(table, gh_cpu_value(shape, &view->area[subtable], slot, view->stride),
						 op, gone);
	if (*gone)
	{
		gh_cpu_empty_slot(shape, slot);
		view->root->subtable[subtable].entries--;
	}
	return values;
}

static gh_always_inline void
delete_range(GhCpuShape shape, GhCpuTable *table, GhRequest *request, uint64_t end, GhOp op)
{
	GhCpuRoot  *root = table->view.root;
	uint64_t	begin = request->outcome.done;
	uint64_t	i;
	GhCpuAhead	ahead;

	for (i = begin; i < end; i += GH_CPU_GROUP)
	{
		uint32_t	group = gh_cpu_group(i, end);
		GhCpuPlace *place = gh_cpu_places(shape, &table->view, request->keys, begin, i, end, &ahead);
		uint32_t	g;

		for (g = 0; g < group; g++)
		{
			uint64_t	key = gh_cpu_key(shape, request->keys, i + g);
			bool		gone;
			uint64_t	values = delete_position(shape, table, key, &place[g], op, &gone);

			root->keys -= gone;
			root->values -= values;
			request->outcome.removed += gone;
			request->outcome.values_count += values;
			if (request->flags_out != NULL)
				request->flags_out[i + g] = op == GH_DELETE ? gone : values > 0;
		}
	}
	request->outcome.done = end;
}

/* The delete of one position of a mixed request; true: the key was there. */
bool
gh_cpu_delete_key(GhCpuTable *table, uint64_t key, const GhCpuPlace *place)
{
	GhCpuRoot  *root = table->view.root;
	bool		gone;

	(void) GH_CPU_BY_SHAPE(table->view.shape, delete_position, table, key, place,
						   GH_DELETE, &gone);
	root->keys -= gone;
	root->values -= gone;
	return gone;
}

GhStatus
gh_cpu_delete_slice(GhCpuTable *table, GhRequest *request)
{
	GhCpuShape	shape = table->view.shape;
	uint64_t	end = gh_cpu_slice_end(&table->view, request->outcome.done, request->count);

	if (request->op == GH_DELETE)
		GH_CPU_BY_SHAPE(shape, delete_range, table, request, end, GH_DELETE);
	else
		GH_CPU_BY_SHAPE(shape, delete_range, table, request, end, GH_DELETE_ONE);

	/* a table that got too empty shrinks before the request goes on or ends */
	if (gh_cpu_downsize_begin(table))
		return GH_BUSY;
	return end < request->count ? GH_BUSY : GH_OK;
}
