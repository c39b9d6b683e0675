/*
 * page_trial.c
 *		Draws pages, and what is asked of them; damages them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* MAP_ANONYMOUS */
#endif

#include "page_trial.h"

#include <sys/mman.h>

static bool
chance(Context *c, uint32_t percent)
{
	return random_below(c, 100) < percent;
}

/* --------------------------------------------------------------------- pages */

/* Pages of one relation, in memory that the engine registers where it does so. */
void
trial_pages(Context *c, Trial *trial, uint32_t npages)
{
	GhError		error = {0};

	trial->npages = npages;
	trial->memory_bytes = ((size_t) npages * trial->relation.page_bytes + 4095) & ~(size_t) 4095;
	trial->memory = mmap(NULL, trial->memory_bytes, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (trial->memory == MAP_FAILED)
		exit(2);
	for (uint32_t p = 0; p < npages; p++)
	{
		uint8_t    *page = trial->memory + (size_t) p * trial->relation.page_bytes;

		(trial->relation.leaves ? leaf_draw : page_draw) (c, &trial->relation, &trial->written[p]);
		memcpy(page, trial->written[p].page, trial->relation.page_bytes);
		trial->pages[p].page = page;
		trial->pages[p].block = (uint32_t) random_next(c);
	}
	trial->bitmaps = make_words((uint64_t) npages * TRIAL_WORDS);
	trial->registered = chance(c, 50) && c->engine->memory_register != NULL &&
		c->engine->memory_register(0, trial->memory, trial->memory_bytes, false, &error) == GH_OK;
	trial->cut = 1 + (uint32_t) random_below(c, npages);
}

/* What is asked of the pages: all lines up to some, or some of the tuples. */
void
trial_ask(Context *c, Trial *trial)
{
	memset(trial->bitmaps, 0, (size_t) trial->npages * TRIAL_WORDS * sizeof(uint64_t));
	for (uint32_t p = 0; p < trial->npages; p++)
	{
		const WrittenPage *written = &trial->written[p];
		GhPageRef *page = &trial->pages[p];
		uint32_t	lines = gh_page_lines(page->page, trial->relation.page_bytes);
		uint32_t	share = chance(c, 50) ? 100 : (uint32_t) random_below(c, 101);

		page->lines = chance(c, 80) ? lines : (uint32_t) random_below(c, lines + 1);
		page->bitmap = trial->relation.leaves || chance(c, 50) ? GH_PAGE_ALL_LINES : p * TRIAL_WORDS;
		for (uint32_t t = 0; t < written->ntuples; t++)
		{
			uint32_t	bit = written->numbers[t] - 1u;

			if (chance(c, share))
				trial->bitmaps[p * TRIAL_WORDS + bit / 64] |= UINT64_C(1) << bit % 64;
		}
	}
}

/* Bytes of a leaf page's head, its line pointers, the heads of its entries, or its end. */
static void
damage_leaf(Context *c, const Trial *trial, uint32_t p)
{
	const WrittenPage *written = &trial->written[p];
	uint8_t    *bytes = trial->memory + (size_t) p * trial->relation.page_bytes;
	uint32_t	t = written->ntuples > 0 ? (uint32_t) random_below(c, written->ntuples) : 0;

	for (uint64_t n = 1 + random_below(c, 3); n > 0; n--)
	{
		uint8_t		any = (uint8_t) random_next(c);

		switch (random_below(c, 5))
		{
			case 0:
				bytes[12 + random_below(c, 8)] = any;
				break;
			case 1:
				bytes[24 + random_below(c, trial->pages[p].lines * 4 + 4)] = any;
				break;
			case 2:
				bytes[trial->relation.page_bytes - 1 - random_below(c, 16)] = any;
				break;
			default:
				if (written->ntuples > 0)
					bytes[written->starts[t] + random_below(c, 16)] ^= (uint8_t) (1u << random_below(c, 8));
				break;
		}
	}
}

/* Some pages become what no heap, or index, has, or are asked for what they have not. */
void
trial_damage(Context *c, Trial *trial)
{
	for (uint32_t p = 0; p < trial->npages; p++)
	{
		uint8_t    *bytes = trial->memory + (size_t) p * trial->relation.page_bytes;
		GhPageRef *page = &trial->pages[p];
		uint32_t	most = (trial->relation.page_bytes - 24) / 4;

		if (trial->relation.leaves && chance(c, 40))
			damage_leaf(c, trial, p);
		switch (random_below(c, 12))
		{
			case 0:				/* no page */
				bytes[18 + random_below(c, 2)] ^= (uint8_t) (1 + random_below(c, 255));
				break;
			case 1:				/* not so many lines */
				if (page->lines < most)
					page->lines += 1 + (uint32_t) random_below(c, most - page->lines);
				break;
			case 2:				/* maybe a line without a tuple */
				if (page->lines > 0)
				{
					uint32_t	bit = (uint32_t) random_below(c, page->lines);

					trial->bitmaps[p * TRIAL_WORDS + bit / 64] |= UINT64_C(1) << bit % 64;
				}
				break;
			case 3:				/* bytes of tuples, or any */
			case 4:
				for (uint64_t n = 1 + random_below(c, 40); n > 0; n--)
					bytes[random_below(c, trial->relation.page_bytes)] ^=
						(uint8_t) (1u << random_below(c, 8));
				break;
			default:
				break;
		}
	}
}

/* ----------------------------------------------------------------- what was written */

Written
trial_value(const Trial *trial, uint32_t p, uint32_t t, const GhColumn *column)
{
	Written		place = {WRITTEN_VALUE, trial->pages[p].block, 0};

	place.low = trial->relation.leaves ? trial->written[p].blocks[t] :
		place.low * 65536 + trial->written[p].numbers[t];
	return column->load == GH_LOAD_TID ? place : trial->written[p].values[t][column->attribute - 1];
}

void
trial_drop(Context *c, Trial *trial)
{
	if (trial->registered)
		c->engine->memory_unregister(0, trial->memory);
	for (uint32_t p = 0; p < trial->npages; p++)
		page_drop(&trial->written[p]);
	munmap(trial->memory, trial->memory_bytes);
	free(trial->bitmaps);
}
