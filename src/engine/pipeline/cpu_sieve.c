/*
 * cpu_sieve.c
 *		Rows that a probe drops without a look into its table, since their keys are not there.
 *
 * A key is looked up in one or two lines of the cache or of memory; a filter of the keys that are there, which is a tenth of
 * the table, tells of nearly all others that they are not, at a fraction of that.  Whether it is worth it shows: when
 * as many keys have been looked up as the table has, and half of them or more were not there, a pipeline makes a
 * filter of its own, which costs no more than what it has done by then.  It goes when most keys pass it, and when
 * the table has changed.
 *
 * Only where rows without a match are dropped, and of tables that pipelines have made.
 */
#include "engine/pipeline/cpu_pipeline.h"
#include "engine/pipeline/key_filter.h"
#include "engine/table/cpu_internal.h"

#include <stdlib.h>

/* Keys that are looked up before that, at the least, and those of the largest table that gets a filter, of 4 MB at most. */
#define SIEVE_LOOKED_MIN 256
#define SIEVE_KEYS_MAX (UINT64_C(1) << 21)
/* Keys that have come to a filter before it may go. */
#define SIEVE_TRIED 16384

void
gh_cpu_sieve_end(GhCpuSieve *sieve)
{
	free(sieve->filter);
	memset(sieve, 0, sizeof(*sieve));
}

static void
add_key(void *arg, uint64_t key)
{
	gh_key_filter_add(arg, key);
}

static void
make_filter(GhCpuSieve *sieve, GhCpuTable *table, uint64_t keys)
{
	uint32_t	shift = gh_key_filter_shift(keys);

	sieve->given_up = true;
	if (keys > SIEVE_KEYS_MAX || gh_cpu_key_shift(table->view.shape) != 3)
		return;
	sieve->filter = calloc(1, gh_key_filter_bytes(shift));
	if (sieve->filter == NULL)
		return;
	sieve->given_up = false;
	sieve->filter->shift = shift;
	gh_cpu_lock(table, GH_LOCK_SHARED);
	sieve->version = table->view.root->version;
	gh_cpu_each_key(table, add_key, sieve->filter);
	gh_cpu_unlock(table);
	sieve->looked = sieve->passed = 0;
}

void
gh_cpu_sieve_found(GhCpuSieve *sieve, GhTable *table, uint64_t looked, uint64_t found)
{
	uint64_t	keys = ((const GhCpuTable *) table)->view.root->keys;

	if (sieve->filter != NULL || sieve->given_up)
		return;
	sieve->looked += looked;
	sieve->passed += found;
	if (sieve->looked >= SIEVE_LOOKED_MIN && sieve->looked >= keys && sieve->passed * 2 <= sieve->looked)
		make_filter(sieve, (GhCpuTable *) table, keys);
}

void
gh_cpu_sieve_rows(GhCpuSieve *sieve, const GhTable *table, uint8_t *state, GhCpuPicks *picks, uint64_t *keys)
{
	const GhKeyFilter *filter = sieve->filter;
	uint32_t	n = 0;

	if (filter != NULL && sieve->version != ((const GhCpuTable *) table)->view.root->version)
		gh_cpu_sieve_end(sieve);
	if (sieve->filter == NULL)
		return;
	for (uint32_t i = 0; i < picks->n; i++)
	{
		uint64_t	key = keys[i];
		uint16_t	row = picks->rows[i];
		bool		may = gh_key_filter_may_have(filter, key);

		keys[n] = key;
		picks->rows[n] = row;
		state[row] = may ? GH_ROW_LIVE : GH_ROW_DROPPED;
		n += may;
	}
	sieve->looked += picks->n;
	sieve->passed += n;
	picks->n = n;
	if (sieve->looked >= SIEVE_TRIED && sieve->passed > sieve->looked / 4 * 3)
	{
		gh_cpu_sieve_end(sieve);
		sieve->given_up = true;
	}
}
