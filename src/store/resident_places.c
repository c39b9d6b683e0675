/*
 * resident_places.c
 *		The places of a file's pages on a device, and which block is in which one.
 *
 * All of it is for a file whose lock is held: exclusively, unless it is said otherwise.
 *
 * What is in a place does not change as long as a process may have been told of it.  A block whose page has
 * changed gets another place, and the old one is given up.  It can be used again when everybody is gone who
 * had begun by then: the users are counted by two periods, and a new one begins when those of the one before
 * are gone.
 */
#include "postgres.h"

#include "service/service.h"
#include "store/inside.h"
#include "store/resident_file.h"

/* Zeroed memory; invalid: there is none. */
static dsa_pointer
allocate(dsa_area *area, Size bytes)
{
	return dsa_allocate_extended(area, bytes, DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM | DSA_ALLOC_ZERO);
}

/* An array with room for more; false: there is no memory for it. */
static bool
grow(dsa_area *area, dsa_pointer *array, Size had, Size wanted)
{
	dsa_pointer made = allocate(area, wanted);

	if (!DsaPointerIsValid(made))
		return false;
	if (had > 0)
		memcpy(dsa_get_address(area, made), dsa_get_address(area, *array), had);
	if (DsaPointerIsValid(*array))
		dsa_free(area, *array);
	*array = made;
	return true;
}

/* ------------------------------------------------------------------- lists */

static inline uint32 *
places_of(dsa_area *area, const GhPlaceList *list)
{
	return dsa_get_address(area, list->places);
}

/* There is room: for every place there is. */
static void
put_place(dsa_area *area, GhPlaceList *list, uint32 place)
{
	places_of(area, list)[list->count++] = place;
}

static bool
is_there(dsa_area *area, const GhResidentFile *file, uint32 place)
{
	return gh_file_span_lives(&gh_file_spans(area, file)[place / GH_PLACES_OF_SPAN]);
}

/* Those of a list go to another one. */
static void
move_places(dsa_area *area, GhPlaceList *from, GhPlaceList *to)
{
	for (uint32 i = 0; i < from->count; i++)
		put_place(area, to, places_of(area, from)[i]);
	from->count = 0;
}

/* --------------------------------------------------------------------- use */

void
gh_file_begin_use(GhResidentFile *file, uint32 *period)
{
	*period = file->period;
	file->users[file->period]++;
}

void
gh_file_end_use(dsa_area *area, GhResidentFile *file, uint32 period)
{
	uint32		before = 1 - file->period;

	file->users[period]--;
	if (file->users[before] > 0)
		return;
	/* nobody is left who knew of what was given up in the period before */
	if (file->retired[before].count > 0)
		move_places(area, &file->retired[before], &file->free);
	file->period = before;
}

/* ------------------------------------------------------------------- places */

/* Places that nobody has, so many at most; how many. */
uint32
gh_file_take_places(dsa_area *area, GhResidentFile *file, uint32 *places, uint32 most)
{
	GhFileSpan *last = file->nspans > 0 ? &gh_file_spans(area, file)[file->nspans - 1] : NULL;
	uint32		count = 0;

	while (count < most && file->free.count > 0)
	{
		uint32		some = Min(most - count, file->free.count);

		/* in their order: pages that follow one another shall have places that do so */
		file->free.count -= some;
		for (uint32 i = 0; i < some; i++)
		{
			uint32		place = places_of(area, &file->free)[file->free.count + i];

			if (is_there(area, file, place))
				places[count++] = place;
		}
	}
	while (count < most && last != NULL && gh_file_span_lives(last) && last->used < last->npages)
		places[count++] = (file->nspans - 1) * GH_PLACES_OF_SPAN + last->used++;
	return count;
}

/* Places of which nobody was told that a page is there. */
void
gh_file_give_places(dsa_area *area, GhResidentFile *file, const uint32 *places, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
		if (is_there(area, file, places[i]))
			put_place(area, &file->free, places[i]);
}

/* Room in all lists for so many places. */
static bool
grow_lists(dsa_area *area, GhResidentFile *file, uint32 nplaces)
{
	GhPlaceList *lists[] = {&file->free, &file->retired[0], &file->retired[1]};

	for (int i = 0; i < lengthof(lists); i++)
		if (!grow(area, &lists[i]->places, lists[i]->count * sizeof(uint32), nplaces * sizeof(uint32)))
			return false;
	return true;
}

/* A new span; false: there is no memory to know of it. */
bool
gh_file_add_span(dsa_area *area, GhResidentFile *file, GhRef root, uint32 npages)
{
	GhFileSpan *span;
	GhFileSpan *last;

	if (file->nspans == GH_FILE_SPANS_MAX || !grow_lists(area, file, file->nplaces + npages) ||
		!grow(area, &file->spans, file->nspans * sizeof(GhFileSpan), (file->nspans + 1) * sizeof(GhFileSpan)))
		return false;
	/* what is left of the one before is free, and not forgotten */
	if (file->nspans > 0)
	{
		last = &gh_file_spans(area, file)[file->nspans - 1];
		for (; last->used < last->npages; last->used++)
			put_place(area, &file->free, (file->nspans - 1) * GH_PLACES_OF_SPAN + last->used);
	}
	span = &gh_file_spans(area, file)[file->nspans++];
	span->root = root;
	span->npages = npages;
	span->used = span->blocks = 0;
	span->gone = false;
	file->nplaces += npages;
	return true;
}

/*
 * A span that is gone, or is given up, which nobody holds then.  Blocks that are in it are not there any
 * more: their places say so.  Its root stays known until what is left of it was given back, which others may
 * keep from that for now.
 */
void
gh_file_lose_span(dsa_area *area, GhResidentFile *file, uint32 number)
{
	GhFileSpan *span = &gh_file_spans(area, file)[number];

	span->gone = true;
	if (span->root != 0 && gh_service_entry_release(span->root))
		span->root = 0;
}

/* Gives up the last span that nobody holds; false: there is none. */
bool
gh_file_shrink(dsa_area *area, GhResidentFile *file)
{
	for (uint32 i = file->nspans; i > 0; i--)
	{
		GhFileSpan *span = &gh_file_spans(area, file)[i - 1];

		if (gh_file_span_lives(span) && gh_service_entry_release(span->root))
		{
			span->root = 0;
			span->gone = true;
			return true;
		}
	}
	return false;
}

/* Of its places, what may be lost, and of its spans, what may have gone, before it is better begun anew. */
#define GH_LOST_SHARE 8
#define GH_GONE_SHARE 2

bool
gh_file_is_worn(dsa_area *area, const GhResidentFile *file)
{
	uint32		gone = 0;

	for (uint32 i = 0; i < file->nspans; i++)
		gone += gh_file_spans(area, file)[i].gone;
	return file->lost > file->nplaces / GH_LOST_SHARE || gone > file->nspans / GH_GONE_SHARE;
}

/* ------------------------------------------------------------------- blocks */

/*
 * Some blocks, the number-th GH_CHUNK_BLOCKS of them; NULL: nothing is known of these, or there is no memory
 * for it.  With `make` false the lock may be a shared one.
 */
GhResidentBlock *
gh_file_chunk(dsa_area *area, GhResidentFile *file, uint32 number, bool make)
{
	dsa_pointer *chunks;

	if (number >= file->nchunks)
	{
		uint32		nchunks = Max(number + 1, file->nchunks + file->nchunks / 2);

		if (!make ||
			!grow(area, &file->chunks, file->nchunks * sizeof(dsa_pointer), nchunks * sizeof(dsa_pointer)))
			return NULL;
		file->nchunks = nchunks;
	}
	chunks = dsa_get_address(area, file->chunks);
	if (!DsaPointerIsValid(chunks[number]) && make)
		chunks[number] = allocate(area, GH_CHUNK_BLOCKS * sizeof(GhResidentBlock) + sizeof(GhChunkWhole));
	return DsaPointerIsValid(chunks[number]) ? dsa_get_address(area, chunks[number]) : NULL;
}

/* The block's entry; NULL: there is no memory for one. */
static GhResidentBlock *
block_of(dsa_area *area, GhResidentFile *file, GhFileChunk *chunk, BlockNumber block)
{
	uint32		number = block / GH_CHUNK_BLOCKS;

	if (chunk->blocks == NULL || chunk->number != number)
	{
		chunk->number = number;
		chunk->blocks = gh_file_chunk(area, file, number, true);
	}
	return chunk->blocks != NULL ? &chunk->blocks[block % GH_CHUNK_BLOCKS] : NULL;
}

/*
 * A page that is on the device now, or that still is what it was.  Many are noted at a time, mostly of the
 * same chunk.
 */
void
gh_file_set_block(dsa_area *area, GhResidentFile *file, GhFileSpan *spans, GhFileChunk *chunk,
				  const GhResidentNote *note)
{
	GhResidentBlock *block = block_of(area, file, chunk, note->block);
	uint32		place = note->at.span * GH_PLACES_OF_SPAN + note->at.place;
	bool		there = block != NULL && block->there && gh_file_span_lives(&spans[block->place / GH_PLACES_OF_SPAN]);

	if (block != NULL)
		gh_chunk_whole(chunk->blocks)->map_lsn = InvalidXLogRecPtr;
	if (!gh_file_span_lives(&spans[note->at.span]))
		return;
	if (!note->kept)
	{
		/* others may have given it another place since, or know as much */
		if (there && block->place == place)
			block->map_lsn = Max(block->map_lsn, note->map_lsn);
		return;
	}
	if (note->spoilt || block == NULL || (there && block->map_lsn > note->map_lsn))
	{
		put_place(area, &file->free, place);
		return;
	}
	/* its own place is not to be given up */
	Assert(!there || block->place != place);
	if (there && block->place == place)
		return;
	if (there)
	{
		put_place(area, &file->retired[file->period], block->place);
		spans[block->place / GH_PLACES_OF_SPAN].blocks--;
	}
	spans[note->at.span].blocks++;
	block->map_lsn = note->map_lsn;
	block->heap_lsn = note->heap_lsn;
	block->place = place;
	block->lines = (uint16) note->at.lines;
	block->there = 1;
}

/*
 * How many blocks a run is to have, on average, lest runs be short; and how many runs there are at least,
 * then.
 */
#define GH_SHORT_RUN 16
#define GH_SHORT_RUNS_MIN 64

/*
 * Whether blocks that follow one another have places that do not, as many do after changes; the lock may be a
 * shared one.
 */
bool
gh_file_is_scattered(dsa_area *area, const GhResidentFile *file)
{
	const dsa_pointer *chunks = file->nchunks > 0 ? dsa_get_address(area, file->chunks) : NULL;
	uint32		next_place = PG_UINT32_MAX;
	uint64		blocks = 0;
	uint64		runs = 0;

	for (uint32 c = 0; c < file->nchunks; c++)
	{
		const GhResidentBlock *known = DsaPointerIsValid(chunks[c]) ? dsa_get_address(area, chunks[c]) : NULL;

		for (int i = 0; known != NULL && i < GH_CHUNK_BLOCKS; i++)
		{
			if (!known[i].there || !is_there(area, file, known[i].place))
				continue;
			blocks++;
			runs += known[i].place != next_place;
			next_place = known[i].place + 1;
		}
	}
	return runs >= GH_SHORT_RUNS_MIN && runs * GH_SHORT_RUN > blocks;
}

/*
 * Blocks that are on the device; the lock may be a shared one.  ended: those that were there when its worker
 * ended, too.
 */
uint64
gh_file_count_blocks(dsa_area *area, const GhResidentFile *file, bool ended)
{
	uint64		blocks = 0;

	for (uint32 i = 0; i < file->nspans; i++)
	{
		const GhFileSpan *span = &gh_file_spans(area, file)[i];

		/* one may be gone that nobody has noted */
		if (gh_file_span_lives(span) &&
			(ended ? gh_service_span_stayed(span->root) : gh_service_entry_used(span->root) != 0))
			blocks += span->blocks;
	}
	return blocks;
}

/*
 * Nobody uses it: all spans and blocks are given up.  False: a span is being given up by others, and is known
 * until then.
 */
bool
gh_file_forget_all(dsa_area *area, GhResidentFile *file)
{
	dsa_pointer *arrays[] = {&file->free.places, &file->retired[0].places, &file->retired[1].places, &file->spans,
	&file->chunks};
	dsa_pointer *chunks = file->nchunks > 0 ? dsa_get_address(area, file->chunks) : NULL;
	bool		all = true;

	for (uint32 i = 0; i < file->nspans; i++)
	{
		gh_file_lose_span(area, file, i);
		all &= gh_file_spans(area, file)[i].root == 0;
	}
	if (!all)
		return false;
	for (uint32 i = 0; i < file->nchunks; i++)
		if (DsaPointerIsValid(chunks[i]))
			dsa_free(area, chunks[i]);
	for (int i = 0; i < lengthof(arrays); i++)
	{
		if (DsaPointerIsValid(*arrays[i]))
			dsa_free(area, *arrays[i]);
		*arrays[i] = InvalidDsaPointer;
	}
	file->free.count = file->retired[0].count = file->retired[1].count = 0;
	file->nspans = file->nplaces = file->nchunks = file->lost = 0;
	return true;
}
