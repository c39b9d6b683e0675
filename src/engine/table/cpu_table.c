/*
 * cpu_table.c
 *		The life of a CPU table and of the handles on it, and its statistics.
 *
 * The table is a root and what the root refers to, all in the host's memory.  A
 * handle is a small struct of the process's own heap.
 */
#include "engine/table/cpu_internal.h"

#include <inttypes.h>
#include <stdlib.h>

/* splitmix64, which makes independent words of consecutive calls */
static uint64_t
next_seed(uint64_t *state)
{
	uint64_t	z = (*state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static GhCpuTable *
make_handle(const GhHost *host, GhRef root)
{
	GhCpuTable *table = calloc(1, sizeof(GhCpuTable));

	if (table == NULL)
		return NULL;
	table->common.engine = gh_cpu_engine();
	table->host = *host;
	table->root = root;
	return table;
}

static void
fill_root(GhCpuRoot *root, const GhTableOptions *options, uint32_t level)
{
	uint64_t	state = options->seed;
	uint32_t	i;

	memset(root, 0, sizeof(*root));
	root->magic = GH_CPU_MAGIC;
	root->options = *options;
	root->level = root->level_initial = root->level_floor = level;
	for (i = 0; i < 6; i++)
		root->hash_seed[i] = next_seed(&state);
	/* an even multiplier would drop key bits from the low half */
	for (i = 1; i < 6; i += 2)
		root->hash_seed[i] |= 1;
	root->bytes = root->bytes_peak = sizeof(*root);
}

static GhStatus
make_subtables(GhCpuTable *table, GhError *error)
{
	GhCpuRoot  *root = table->view.root;
	uint32_t	i;

	for (i = 0; i < root->options.subtables; i++)
	{
		GhCpuSubtable *subtable = &root->subtable[i];
		uint64_t	buckets = gh_cpu_level_buckets(root->options.subtables, root->level, i);
		uint64_t	bytes = gh_cpu_block_bytes(&root->options, buckets);
		GhStatus	status = gh_cpu_take(table, bytes, &subtable->ref, error);

		if (status != GH_OK)
			return status;
		subtable->bytes = bytes;
		subtable->buckets = buckets;
	}
	/* handles that exchange together blank it together */
	root->hidden = GH_CPU_BLANKING;
	if (!gh_cpu_exchanges_together(table, root) && !gh_cpu_blank(table))
		return gh_error_set(error, GH_STOPPED, "the making of a hash table was stopped");
	return GH_OK;
}

/* Everything the root refers to, and the root. */
static void
free_table(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;
	uint32_t	i;

	gh_cpu_resize_abandon(table);
	gh_cpu_values_free(table);
	for (i = 0; i < root->options.subtables; i++)
	{
		if (root->subtable[i].ref != 0)
			gh_cpu_give(table, root->subtable[i].ref, root->subtable[i].bytes);
	}
	root->magic = 0;
	table->host.free(table->host.ctx, table->root);
}

/* Refuses what no allocation could mend, before anything is allocated. */
static GhStatus
check_capacity(const GhTableOptions *options, uint32_t *level, GhError *error)
{
	uint64_t	bytes;
	uint32_t	i;

	if (options->device != 0)
		return gh_error_set(error, GH_INVALID, "the CPU engine has no device %d",
							options->device);
	if (!gh_cpu_level_for(options, options->capacity, level))
		return gh_error_set(error,
							options->memory_limit > 0 ? GH_LIMIT : GH_NO_MEMORY,
							"a hash table has no room for %" PRIu64 " keys",
							options->capacity);
	bytes = sizeof(GhCpuRoot);
	for (i = 0; i < options->subtables; i++)
		bytes += gh_cpu_block_bytes(options,
									gh_cpu_level_buckets(options->subtables, *level, i));
	if (options->memory_limit > 0 && bytes > options->memory_limit)
		return gh_error_set(error, GH_LIMIT,
							"room for %" PRIu64 " keys takes %" PRIu64
							" bytes and the memory limit is %" PRIu64,
							options->capacity, bytes, options->memory_limit);
	return GH_OK;
}

GhStatus
gh_cpu_table_create(const GhHost *host, const GhTableOptions *asked,
					GhTable **result, GhError *error)
{
	GhTableOptions options;
	GhCpuTable *table;
	GhRef		root;
	uint32_t	level = 0;
	GhStatus	status;

	*result = NULL;
	if (asked == NULL)
		return gh_options_check(NULL, error);
	options = *asked;
	status = gh_options_check(&options, error);
	if (status == GH_OK)
		status = check_capacity(&options, &level, error);
	if (status != GH_OK)
		return status;

	root = host->alloc(host->ctx, sizeof(GhCpuRoot));
	if (root == 0)
		return gh_error_set(error, GH_NO_MEMORY,
							"could not allocate the root of a hash table");
	table = make_handle(host, root);
	if (table == NULL)
	{
		host->free(host->ctx, root);
		return gh_error_set(error, GH_NO_MEMORY, "could not allocate a table handle");
	}
	table->view.root = host->address(host->ctx, root);
	fill_root(table->view.root, &options, level);
	status = make_subtables(table, error);
	if (status != GH_OK)
	{
		free_table(table);
		free(table);
		return status;
	}
	*result = &table->common;
	return GH_OK;
}

GhRef
gh_cpu_table_root(const GhTable *table)
{
	return ((const GhCpuTable *) table)->root;
}

GhStatus
gh_cpu_table_attach(const GhHost *host, GhRef root, GhTable **result, GhError *error)
{
	const GhCpuRoot *there;
	GhCpuTable *table;

	*result = NULL;
	there = root != 0 ? host->address(host->ctx, root) : NULL;
	if (there == NULL || there->magic != GH_CPU_MAGIC)
		return gh_error_set(error, GH_INVALID, "there is no CPU table at this root");
	table = make_handle(host, root);
	if (table == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "could not allocate a table handle");
	*result = &table->common;
	return GH_OK;
}

/* Requests still queued are forgotten, not touched: after an error of the caller
 * their memory may be gone. */
void
gh_cpu_table_detach(GhTable *common)
{
	GhCpuTable *table = (GhCpuTable *) common;

	if (table != NULL && table->forget_rows != NULL)
		table->forget_rows(table->rows);
	if (table != NULL)
		free(table->overlay);
	free(common);
}

void
gh_cpu_table_destroy(GhTable *common)
{
	GhCpuTable *table = (GhCpuTable *) common;

	if (table == NULL)
		return;
	if (table->drop_rows != NULL)
		table->drop_rows(table->rows);
	gh_cpu_view_load(table);
	free_table(table);
	free(table->overlay);
	free(table);
}

/* What the slots hold, to be seen by everybody. */
static void
content_stats(const GhCpuRoot *root, GhTableStats *stats)
{
	uint32_t	i;

	stats->keys = root->keys;
	stats->values = root->values;
	for (i = 0; i < stats->subtables; i++)
		stats->subtable[i].entries = root->subtable[i].entries;
}

GhStatus
gh_cpu_table_stats(GhTable *common, GhTableStats *stats, GhError *error)
{
	GhCpuTable *table = (GhCpuTable *) common;
	const GhCpuRoot *root;
	uint64_t	slots = 0;
	uint32_t	i;

	(void) error;
	memset(stats, 0, sizeof(*stats));
	gh_cpu_lock(table, GH_LOCK_SHARED);
	root = table->view.root;
	stats->subtables = root->options.subtables;
	for (i = 0; i < stats->subtables; i++)
	{
		stats->subtable[i].slots = root->subtable[i].buckets * gh_cpu_slots(table->view.shape);
		stats->subtable[i].bytes = root->subtable[i].bytes;
		slots += stats->subtable[i].slots;
	}
	if (!table->view.hidden)
		content_stats(root, stats);
	stats->fill = (double) stats->keys / (double) slots;
	stats->fill_min = root->options.fill_min;
	stats->fill_max = root->options.fill_max;
	stats->upsizes = root->upsizes;
	stats->downsizes = root->downsizes;
	stats->bytes = root->bytes;
	stats->bytes_peak = root->bytes_peak;
	stats->reads = __atomic_load_n(&root->reads, __ATOMIC_RELAXED);
	stats->writes = root->writes;
	stats->bucket_reads = __atomic_load_n(&root->bucket_reads, __ATOMIC_RELAXED);
	gh_cpu_unlock(table);
	return GH_OK;
}
