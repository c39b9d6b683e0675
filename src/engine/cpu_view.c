/*
 * cpu_view.c
 *		What a slice needs to know of the table: where the subtables are in this
 *		process, which pairs they form, and where new keys are steered.
 */
#include "cpu_internal.h"

/* Locks the table and looks at it as it is now. */
void
gh_cpu_lock(GhCpuTable *table, GhLockMode mode)
{
	if (table->host.lock != NULL)
		table->host.lock(table->host.ctx, mode);
	gh_cpu_view_load(table);
}

void
gh_cpu_unlock(GhCpuTable *table)
{
	if (table->host.unlock != NULL)
		table->host.unlock(table->host.ctx);
}

/*
 * Buckets of a subtable at a level.  Level l + 1 has the first of the smallest
 * subtables of level l doubled; so all sizes follow from the level, no subtable is
 * more than twice another, and a downsize undoes the last upsize.
 */
uint64_t
gh_cpu_level_buckets(uint32_t subtables, uint32_t level, uint32_t index)
{
	uint32_t	shift = level / subtables + (index < level % subtables ? 1 : 0);

	return (uint64_t) GH_CPU_BUCKETS_MIN << shift;
}

uint64_t
gh_cpu_level_slots(const GhTableOptions *options, uint32_t level)
{
	uint64_t	buckets = 0;
	uint32_t	i;

	for (i = 0; i < options->subtables; i++)
		buckets += gh_cpu_level_buckets(options->subtables, level, i);
	return buckets * (options->value_size > 0 ? GH_CPU_MAP_SLOTS : GH_CPU_SET_SLOTS);
}

/* Theorem 1's weight of a subtable: n / C(m, 2). */
static double
steer_weight(const GhCpuSubtable *subtable)
{
	double		m = (double) subtable->entries;
	double		conflicts = m * (m - 1) / 2;

	return (double) subtable->buckets / (conflicts < 1 ? 1 : conflicts);
}

static void
load_pairs(GhCpuView *view)
{
	const GhCpuRoot *root = view->root;
	uint32_t	d = root->options.subtables;
	double		weight[GH_SUBTABLES_MAX];
	uint32_t	i;
	uint32_t	j;

	for (i = 0; i < d; i++)
		weight[i] = steer_weight(&root->subtable[i]);
	view->pairs = 0;
	for (i = 0; i < d; i++)
	{
		for (j = i + 1; j < d; j++)
		{
			GhCpuPair  *pair = &view->pair[view->pairs++];

			pair->subtable[0] = (uint8_t) i;
			pair->subtable[1] = (uint8_t) j;
			pair->base[0] = view->base[i];
			pair->base[1] = view->base[j];
			pair->mask[0] = (root->subtable[i].buckets - 1) << GH_CPU_BUCKET_SHIFT;
			pair->mask[1] = (root->subtable[j].buckets - 1) << GH_CPU_BUCKET_SHIFT;
			pair->steer = (uint32_t) (65536 * (weight[i] / (weight[i] + weight[j])));
		}
	}
}

void
gh_cpu_view_load(GhCpuTable *table)
{
	GhCpuView  *view = &table->view;
	const GhHost *host = &table->host;
	GhCpuRoot  *root = host->address(host->ctx, table->root);
	uint32_t	i;

	view->root = root;
	for (i = 0; i < 6; i++)
		view->hash_seed[i] = root->hash_seed[i];
	view->slots = root->options.value_size > 0 ? GH_CPU_MAP_SLOTS : GH_CPU_SET_SLOTS;
	view->grow_at = (uint64_t) (root->options.fill_max *
								(double) gh_cpu_level_slots(&root->options, root->level));
	for (i = 0; i < root->options.subtables; i++)
		view->base[i] = host->address(host->ctx, root->subtable[i].ref);
	load_pairs(view);
	if (root->options.multi)
		gh_cpu_values_map(table);
}
