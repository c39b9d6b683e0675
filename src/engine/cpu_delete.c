/*
 * cpu_delete.c
 *		Removes a batch of keys, and lets the table shrink behind it.
 */
#include "cpu_internal.h"

/* Values that left with the key; 0: it was not there. */
static uint64_t
delete_empty_key(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;

	if (!root->has_empty_key)
		return 0;
	root->has_empty_key = false;
	return root->options.multi ? gh_cpu_values_release(table, root->empty_key_value) : 1;
}

static gh_always_inline uint64_t
delete_one(GhCpuTable *table, uint64_t key, const GhCpuPlace *place, uint32_t slots)
{
	GhCpuRoot  *root = table->view.root;
	uint64_t   *slot;
	int			which;

	if (gh_unlikely(key == GH_CPU_EMPTY))
		return delete_empty_key(table);
	slot = gh_cpu_lookup(place, key, slots, &which);
	if (slot == NULL)
		return 0;
	*slot = GH_CPU_EMPTY;
	root->subtable[place->subtable[which]].entries--;
	if (slots == GH_CPU_MAP_SLOTS && root->options.multi)
		return gh_cpu_values_release(table, slot[GH_CPU_MAP_SLOTS]);
	return 1;
}

static gh_always_inline void
delete_range(GhCpuTable *table, GhRequest *request, uint64_t end, uint32_t slots)
{
	const GhCpuView *view = &table->view;
	GhCpuRoot  *root = view->root;
	const uint64_t *keys = request->keys;
	uint64_t	i;
	GhCpuPlace	place[GH_CPU_GROUP];

	for (i = request->done; i < end; i += GH_CPU_GROUP)
	{
		uint32_t	group = end - i < GH_CPU_GROUP ? (uint32_t) (end - i) : GH_CPU_GROUP;
		uint32_t	g;

		gh_cpu_locate_to_write(view, keys + i, group, place);
		for (g = 0; g < group; g++)
		{
			uint64_t	values = delete_one(table, keys[i + g], &place[g], slots);

			root->keys -= values > 0;
			root->values -= values;
			request->matched += values > 0;
			request->values_count += values;
			if (request->flags_out != NULL)
				request->flags_out[i + g] = values > 0;
		}
	}
	request->done = end;
}

GhStatus
gh_cpu_delete_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t	end = request->count;

	if (end - request->done > GH_CPU_SLICE_KEYS)
		end = request->done + GH_CPU_SLICE_KEYS;

	if (table->view.slots == GH_CPU_MAP_SLOTS)
		delete_range(table, request, end, GH_CPU_MAP_SLOTS);
	else
		delete_range(table, request, end, GH_CPU_SET_SLOTS);

	/* a table that got too empty shrinks before the request goes on or ends */
	if (gh_cpu_downsize_begin(table))
		return GH_BUSY;
	return end < request->count ? GH_BUSY : GH_OK;
}
