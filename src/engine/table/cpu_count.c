/*
 * cpu_count.c
 *		How many values each key of a batch has.
 */
#include "engine/table/cpu_words.h"

static gh_always_inline void
count_range(GhCpuShape shape, GhCpuTable *table, GhRequest *request, uint64_t end)
{
	bool		multi = table->view.root->options.multi;
	uint64_t	i;
	GhCpuWords	words;

	for (i = request->outcome.done; i < end; i += words.count)
	{
		uint32_t	g;

		gh_cpu_load_words(shape, table, request, i, end, &words);
		gh_cpu_count_bucket_reads(table, words.buckets);
		for (g = 0; g < words.count; g++)
		{
			uint64_t	values = !words.found[g] ? 0 :
				multi ? gh_cpu_value_count(table, words.word[g]) : 1;

			request->counts_out[i + g] = values;
			request->outcome.values_count += values;
			request->outcome.matched += words.found[g];
			if (request->flags_out != NULL)
				request->flags_out[i + g] = words.found[g];
		}
	}
	request->outcome.done = end;
}

GhStatus
gh_cpu_count_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t	end = gh_cpu_slice_end(&table->view, request->outcome.done, request->count);

	GH_CPU_BY_SHAPE(table->view.shape, count_range, table, request, end);
	return end < request->count ? GH_BUSY : GH_OK;
}
