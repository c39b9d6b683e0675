/*
 * cpu_words.h
 *		The value words of a group of keys of a multi table, for the operations that
 *		read them: count and find-all.
 */
#ifndef GH_CPU_WORDS_H
#define GH_CPU_WORDS_H

#include "engine/table/cpu_internal.h"

typedef struct GhCpuWords
{
	uint32_t	count;			/* keys of the group */
	uint64_t	buckets;		/* that were looked at */
	bool		found[GH_CPU_GROUP];
	uint64_t	word[GH_CPU_GROUP]; /* 1 in a table that is not multi */
} GhCpuWords;

/* Looks up the keys from position i on, and fetches ahead the lists found. */
static gh_always_inline void
gh_cpu_load_words(GhCpuShape shape, const GhCpuTable *table, const GhRequest *request,
				  uint64_t i, uint64_t end, GhCpuWords *words)
{
	const GhCpuView *view = &table->view;
	bool		multi = view->root->options.multi;
	GhCpuPlace	place[GH_CPU_GROUP];
	uint32_t	g;

	words->count = end - i < GH_CPU_GROUP ? (uint32_t) (end - i) : GH_CPU_GROUP;
	words->buckets = 0;
	for (g = 0; g < words->count; g++)
	{
		gh_cpu_locate(view, gh_cpu_key(shape, request->keys, i + g), &place[g]);
		gh_cpu_fetch(place[g].bucket[0]);
		gh_cpu_fetch(place[g].bucket[1]);
	}
	for (g = 0; g < words->count; g++)
	{
		uint64_t	key = gh_cpu_key(shape, request->keys, i + g);
		const void *word = view->root->empty_key_value;

		words->found[g] = view->has_empty_key;
		words->word[g] = 1;
		if (gh_likely(key != GH_CPU_EMPTY))
		{
			int			which;
			char	   *slot = gh_cpu_lookup(shape, &place[g], key, &which);

			words->buckets += (uint32_t) which + 1;
			words->found[g] = slot != NULL;
			if (multi && slot != NULL)
				word = gh_cpu_value(shape, &view->area[place[g].subtable[which]], slot,
									view->stride);
		}
		if (!multi || !words->found[g])
			continue;
		words->word[g] = *(const uint64_t *) word;
		if (gh_cpu_is_list(words->word[g]))
			__builtin_prefetch(gh_cpu_node(table, gh_cpu_list_head(words->word[g])));
	}
}

#endif							/* GH_CPU_WORDS_H */
