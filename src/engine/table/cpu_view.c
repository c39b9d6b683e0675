/*
 * cpu_view.c
 *		What a slice needs to know of the table: where the subtables are in this
 *		process, which pairs they form, and where new keys are steered.
 */
#include "engine/table/cpu_internal.h"

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

/* Theorem 1's weight of a subtable: n / C(m, 2). */
static double
steer_weight(const GhCpuSubtable *subtable)
{
	double		m = (double) subtable->entries;
	double		conflicts = m * (m - 1) / 2;

	return (double) subtable->buckets / (conflicts < 1 ? 1 : conflicts);
}

/*
 * Of 2^16 new keys, those that go to subtable i rather than j.  Handles that exchange at
 * the same time must agree, so there the sizes alone decide: a key's order of slots
 * (cpu_exchange.c) begins in the larger subtable, whose buckets are candidates of fewer
 * keys.
 */
static uint32_t
steer(const GhCpuRoot *root, uint32_t i, uint32_t j)
{
	uint64_t	n[2] = {root->subtable[i].buckets, root->subtable[j].buckets};
	double		weight[2];

	if (root->options.concurrent_exchange)
		return n[0] == n[1] ? 32768 : n[0] > n[1] ? 65536 : 0;
	weight[0] = steer_weight(&root->subtable[i]);
	weight[1] = steer_weight(&root->subtable[j]);
	return (uint32_t) (65536 * (weight[0] / (weight[0] + weight[1])));
}

static void
load_pairs(GhCpuView *view)
{
	const GhCpuRoot *root = view->root;
	uint32_t	d = root->options.subtables;
	uint32_t	i;
	uint32_t	j;

	view->pairs = 0;
	for (i = 0; i < d; i++)
	{
		for (j = i + 1; j < d; j++)
		{
			GhCpuPair  *pair = &view->pair[view->pairs++];

			pair->subtable[0] = (uint8_t) i;
			pair->subtable[1] = (uint8_t) j;
			pair->base[0] = view->area[i].base;
			pair->base[1] = view->area[j].base;
			pair->mask[0] = (root->subtable[i].buckets - 1) << GH_CPU_BUCKET_SHIFT;
			pair->mask[1] = (root->subtable[j].buckets - 1) << GH_CPU_BUCKET_SHIFT;
			pair->steer = steer(root, i, j);
		}
	}
}

/* Who must not see what the slots hold sees subtables of one empty bucket. */
static void
hide_content(GhCpuView *view)
{
	static _Alignas(GH_CPU_BUCKET_BYTES) char empty_bucket[GH_CPU_BUCKET_BYTES];
	uint32_t	i;

	view->hidden = true;
	view->has_empty_key = false;
	for (i = 0; i < view->pairs; i++)
	{
		view->pair[i].base[0] = view->pair[i].base[1] = empty_bucket;
		view->pair[i].mask[0] = view->pair[i].mask[1] = 0;
	}
}

/* A block of that many buckets. */
GhCpuArea
gh_cpu_area(const GhCpuTable *table, GhRef ref, uint64_t buckets)
{
	GhCpuArea	area;

	area.base = table->host.address(table->host.ctx, ref);
	area.beside = area.base + (buckets << GH_CPU_BUCKET_SHIFT);
	return area;
}

void
gh_cpu_view_load(GhCpuTable *table)
{
	GhCpuView  *view = &table->view;
	const GhHost *host = &table->host;
	GhCpuRoot  *root = host->address(host->ctx, table->root);
	const GhTableOptions *options = &root->options;
	/* others who hold the lock shared may just have blanked the last piece */
	uint64_t	hidden = __atomic_load_n(&root->hidden, __ATOMIC_ACQUIRE);
	uint32_t	i;

	view->root = root;
	for (i = 0; i < 6; i++)
		view->hash_seed[i] = root->hash_seed[i];
	view->shape = gh_cpu_shape(options);
	view->stride = gh_cpu_stride(options);
	view->value_size = options->value_size;
	view->grow_at = (uint64_t) (options->fill_max *
								(double) gh_cpu_level_slots(options, root->level));
	for (i = 0; i < options->subtables; i++)
		view->area[i] = gh_cpu_area(table, root->subtable[i].ref, root->subtable[i].buckets);
	load_pairs(view);
	view->hidden = false;
	view->has_empty_key = root->has_empty_key;
	if (hidden != 0 && hidden != table->building)
		hide_content(view);
	if (options->multi)
		gh_cpu_values_map(table);
}
