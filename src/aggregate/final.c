/*
 * final.c
 *		Groups as engines return them, each once.
 *
 * They are those of a device, which have come back, and those of a pipeline in this process, which stay in
 * its sink. They need not be found among others, and come out of the node as they came: from memory; where a
 * device's are too many for that, from a temporary file; out of the sink.
 *
 * Few of them, if any, have another part: in GhGroups, of rows that no engine could hold, or of other
 * participants. These are merged into it (gh_final_groups_absorb), and do not come out here.
 */
#include "postgres.h"

#include "commands/tablespace.h"
#include "storage/buffile.h"
#include "utils/memutils.h"

#include "aggregate/node.h"
#include "engine/pipeline/record.h"
#include "fragment/stage.h"

/* A sink's records are read about so many bytes at a time, and those of a sample. */
#define GH_SINK_BYTES ((Size) 64 * 1024)
#define GH_SAMPLE_BYTES ((Size) 2 * 1024)

/* Some records, one behind the other. */
typedef struct Chunk
{
	struct Chunk *next;
	Size		size;
	char		records[FLEXIBLE_ARRAY_MEMBER];
} Chunk;

struct GhFinalGroups
{
	MemoryContext context;		/* of all this */
	Size		memory_limit;	/* bytes of chunks */
	Size		memory;
	uint64		count;			/* of groups in chunks and in the file */
	uint64		left_out;		/* groups that were not kept at all */
	GhStage    *stage;			/* in whose sink the last groups are; NULL: there is none */
	uint64	   *absorbed;		/* a bit for each group, by its turn: it does not come out.  NULL: none is */
	Chunk	   *chunks;			/* the first groups */
	Chunk	  **end;			/* where the next one goes */
	BufFile    *file;			/* the other groups; NULL: there are none */
	uint64		file_bytes;
	/* which come out next */
	const Chunk *chunk;			/* whose turn comes; NULL: the file's, and then the sink's */
	bool		file_ended;
	GhCursor	cursor;			/* in the sink */
	bool		is_sample;		/* what is read there is all over it */
	GhRecordBuffer buffer;		/* some of the file's, or the sink's */
	const char *records;
	Size		left;			/* bytes */
	uint64		turn;			/* of the first of them */
};

GhFinalGroups *
gh_final_groups_create(MemoryContext parent, Size memory_limit)
{
	MemoryContext context = AllocSetContextCreate(parent, "GpuHashAggregate final groups", ALLOCSET_DEFAULT_SIZES);
	GhFinalGroups *final = MemoryContextAllocZero(context, sizeof(GhFinalGroups));

	final->context = context;
	final->memory_limit = memory_limit;
	final->end = &final->chunks;
	final->buffer.context = context;
	return final;
}

static void
write_records(GhFinalGroups *final, const char *records, Size size)
{
	MemoryContext saved = MemoryContextSwitchTo(final->context);

	if (final->file == NULL)
	{
		PrepareTempTablespaces();
		final->file = BufFileCreateTemp(false);
	}
	BufFileWrite(final->file, unconstify(char *, records), size);
	MemoryContextSwitchTo(saved);
	final->file_bytes += size;
}

/* How many records these are. */
static uint64
count_records(const char *records, Size size)
{
	uint64		count = 0;

	for (Size at = 0; at < size; at += gh_record_bytes(records + at, size - at))
		count++;
	return count;
}

/*
 * Keeps whole records, as of a pipeline's results (engine/pipeline/record.h).  Not any more once one has come
 * out.
 */
void
gh_final_groups_put(GhFinalGroups *final, const char *records, Size size)
{
	Chunk	   *chunk;

	final->count += count_records(records, size);
	if (final->file != NULL || size > final->memory_limit - final->memory)
	{
		write_records(final, records, size);
		return;
	}
	if (size == 0)
		return;
	chunk = MemoryContextAllocHuge(final->context, offsetof(Chunk, records) + size);
	chunk->next = NULL;
	chunk->size = size;
	memcpy(chunk->records, records, size);
	final->memory += size;
	*final->end = chunk;
	final->end = &chunk->next;
}

/* So many more there were that do not come out. */
void
gh_final_groups_leave_out(GhFinalGroups *final, uint64 count)
{
	final->left_out += count;
}

uint64
gh_final_groups_left_out(const GhFinalGroups *final)
{
	return final->left_out;
}

/* The groups in the sink of a pipeline are among them, and come last. */
void
gh_final_groups_add_sink(GhFinalGroups *final, GhStage *stage)
{
	final->stage = stage;
}

/* Some more of the sink's records; false: there are none. */
static bool
next_of_sink(GhFinalGroups *final)
{
	Size		room = final->is_sample ? GH_SAMPLE_BYTES : GH_SINK_BYTES;
	Size		bytes = 0;

	while (final->stage != NULL && !final->cursor.finished && bytes == 0)
	{
		char	   *buffer = gh_record_buffer(&final->buffer, room);

		if (gh_stage_results(final->stage, &final->cursor, room, buffer, &bytes) == GH_TOO_SMALL)
		{
			room = bytes;
			bytes = 0;
		}
	}
	final->records = final->buffer.data;
	final->left = bytes;
	return bytes > 0;
}

/* Some more records; false: there are none. */
static bool
next_records(GhFinalGroups *final)
{
	if (final->chunk != NULL)
	{
		final->records = final->chunk->records;
		final->left = final->chunk->size;
		final->chunk = final->chunk->next;
		return true;
	}
	if (final->file != NULL && !final->file_ended)
	{
		final->left = gh_records_read(&final->buffer, final->file);
		final->records = final->buffer.data;
		if (final->left > 0)
			return true;
		final->file_ended = true;
	}
	return next_of_sink(final);
}

static bool
is_absorbed(const GhFinalGroups *final, uint64 turn)
{
	return final->absorbed != NULL && (final->absorbed[turn / 64] >> turn % 64 & 1) != 0;
}

/* The next records, `room` at most, which are there until the next call: how many; 0: there are no more. */
uint32
gh_final_groups_next(GhFinalGroups *final, const char **records, uint32 room)
{
	uint32		n = 0;

	while (n == 0 && (final->left > 0 || next_records(final)))
		for (; n < room && final->left > 0; final->turn++)
		{
			Size		bytes = gh_record_bytes(final->records, final->left);

			if (!is_absorbed(final, final->turn))
				records[n++] = final->records;
			final->records += bytes;
			final->left -= bytes;
		}
	return n;
}

/*
 * The same, of a sample of one group in `step`, where groups lie in an order, those of a sink; a device's are
 * in none.  The order of groups is no longer known then, until they are rewound.
 */
uint32
gh_final_groups_sample(GhFinalGroups *final, const char **records, uint32 room, uint64 step)
{
	uint64		position = final->cursor.position;
	uint32		n;

	final->is_sample = true;
	n = gh_final_groups_next(final, records, room);
	final->is_sample = false;
	/* what is absorbed is known by its turn */
	if (final->absorbed == NULL && final->cursor.position > position)
	{
		final->left = 0;
		final->cursor.position = position + n * step;
	}
	return n;
}

/*
 * Some more records, one behind the other, all of which pass; NULL: there are none.  Not once some are
 * absorbed.
 */
const char *
gh_final_groups_take(GhFinalGroups *final, Size *bytes)
{
	Assert(final->absorbed == NULL);
	if (final->left == 0 && !next_records(final))
		return NULL;
	*bytes = final->left;
	final->left = 0;
	return final->records;
}

/* Merges those into `groups` that have a part there; how many.  Once, when all are there. */
uint64
gh_final_groups_absorb(GhFinalGroups *final, GhGroups *groups)
{
	uint64		count = gh_final_groups_count(final);
	uint64	   *absorbed;
	uint64		nabsorbed = 0;
	uint64		turn = 0;
	const char *records;
	Size		bytes;

	if (count == 0 || gh_groups_count(groups) == 0)
		return 0;
	absorbed = MemoryContextAllocHuge(final->context, (count + 63) / 64 * sizeof(uint64));
	memset(absorbed, 0, (count + 63) / 64 * sizeof(uint64));
	gh_final_groups_rewind(final);
	while ((records = gh_final_groups_take(final, &bytes)) != NULL)
		nabsorbed += gh_groups_absorb_scan(groups, records, bytes, absorbed, count, &turn);
	final->absorbed = absorbed;
	gh_final_groups_rewind(final);
	return nabsorbed;
}

/* Begins anew, or for the first time, with the first record. */
void
gh_final_groups_rewind(GhFinalGroups *final)
{
	final->chunk = final->chunks;
	final->left = 0;
	final->turn = 0;
	final->file_ended = false;
	memset(&final->cursor, 0, sizeof(final->cursor));
	if (final->file != NULL && BufFileSeek(final->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file of a hash aggregation: %m")));
}

/* With those of the sink. */
uint64
gh_final_groups_count(const GhFinalGroups *final)
{
	GhPipelineStats stats = {0};

	if (final->stage != NULL)
		gh_stage_stats(final->stage, &stats);
	return final->count + stats.entries;
}

/* Bytes in memory. */
Size
gh_final_groups_memory(const GhFinalGroups *final)
{
	GhPipelineStats stats = {0};

	if (final->stage != NULL)
		gh_stage_stats(final->stage, &stats);
	return final->memory + stats.bytes;
}

/* Bytes in the file. */
uint64
gh_final_groups_disk(const GhFinalGroups *final)
{
	return final->file_bytes;
}

/* Forgets all groups, those in the sink, too. */
void
gh_final_groups_clear(GhFinalGroups *final)
{
	MemoryContext context = final->context;
	GhFinalGroups empty = {
		.context = context,
		.memory_limit = final->memory_limit,
		.stage = final->stage,
		.buffer.context = context,
	};

	if (final->file != NULL)
		BufFileClose(final->file);
	if (final->stage != NULL)
		gh_stage_clear(final->stage);
	for (Chunk *chunk = final->chunks, *next; chunk != NULL; chunk = next)
	{
		next = chunk->next;
		pfree(chunk);
	}
	if (final->absorbed != NULL)
		pfree(final->absorbed);
	if (final->buffer.data != NULL)
		pfree(final->buffer.data);
	*final = empty;
	final->end = &final->chunks;
}

/* Before the sink's pipeline goes. */
void
gh_final_groups_close(GhFinalGroups *final)
{
	if (final->file != NULL)
		BufFileClose(final->file);
	MemoryContextDelete(final->context);
}
