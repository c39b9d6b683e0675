/*
 * pipeline_block.c
 *		The options of a pipeline as a block of bytes: the options, the names of what they use, then arrays.
 *
 * In the block an array's address is its offset.  One walk over all arrays of the options serves both ways:
 * the writer puts each array into the block and its offset in the address's place, the reader does the
 * reverse.
 */
#include "postgres.h"

#include <stdlib.h>

#include "service/block.h"
#include "service/pipeline_block.h"

/* What begins a block. */
typedef struct BlockHead
{
	GhPipelineOptions options;
	GhPipelineNames names;
} BlockHead;

/* A walk over arrays. */
typedef struct Walk
{
	/* what stands for the array after it; bytes that are not there: *failed is set */
	const void *(*step) (struct Walk *walk, const void *array, uint64 count, Size size);
	char	   *block;			/* writing: NULL: sizes only */
	Size		bytes;			/* writing: so far; reading: of the block */
	bool		failed;
} Walk;

static const void *
put_array(Walk *walk, const void *array, uint64 count, Size size)
{
	return (const void *) (uintptr_t) gh_block_put(walk->block, &walk->bytes, array, count, size);
}

static const void *
find_array(Walk *walk, const void *offset, uint64 count, Size size)
{
	const void *array = NULL;

	if (!gh_block_find(walk->block, walk->bytes, (GhOffset) (uintptr_t) offset, count, size, &array))
		walk->failed = true;
	return array;
}

static void
walk_probes(Walk *walk, GhProbe *probes, uint32 nprobes)
{
	for (uint32 i = 0; i < nprobes; i++)
	{
		GhProbe    *probe = &probes[i];

		probe->parts = walk->step(walk, probe->parts, probe->nparts, sizeof(GhKeyPart));
		probe->fills = walk->step(walk, probe->fills, probe->nfills, sizeof(GhProbeFill));
		probe->table = NULL;
		probe->marks = NULL;
		probe->changed = NULL;
		probe->instead = NULL;
	}
}

/* Of arrays that the kind of source or sink does not have nothing is looked at. */
static void
walk_source(Walk *walk, GhPipelineSource *source)
{
	if (gh_source_has_pages(source))
		source->attributes = walk->step(walk, source->attributes, source->natts, sizeof(GhPageAttribute));
	else
		source->attributes = NULL;
	if (source->kind == GH_SOURCE_GROUPS)
		source->columns = walk->step(walk, source->columns, source->natts, sizeof(GhGroupColumn));
	else
		source->columns = NULL;
	source->groups = NULL;
}

static void
walk_sink(Walk *walk, GhSink *sink)
{
	GhSink		had = *sink;

	sink->groups.keys = NULL;
	sink->groups.aggregates = NULL;
	sink->table.parts = NULL;
	sink->table.kept = NULL;
	sink->rows.values = NULL;
	/* a function of another process */
	sink->groups.order = (GhTextOrder) {NULL, NULL};
	sink->groups.nsets = 0;
	if (sink->kind == GH_SINK_GROUPS)
	{
		/* how many there may be is checked when the pipeline is made, of arrays that are there */
		uint64		nsets = gh_sink_sets(&had.groups);

		sink->groups.nsets = had.groups.nsets;
		sink->groups.keys = walk->step(walk, had.groups.keys, nsets * sink->groups.nkeys, sizeof(GhRecordKey));
		sink->groups.aggregates = walk->step(walk, had.groups.aggregates, nsets * sink->groups.naggregates,
											 sizeof(GhAggregate));
	}
	else if (sink->kind == GH_SINK_TABLE)
	{
		sink->table.parts = walk->step(walk, had.table.parts, sink->table.nparts, sizeof(GhKeyPart));
		sink->table.kept = walk->step(walk, had.table.kept, sink->table.nkept, sizeof(GhKept));
	}
	else if (sink->kind == GH_SINK_ROWS)
		sink->rows.values = walk->step(walk, had.rows.values, sink->rows.nvalues, sizeof(GhRecordKey));
}

/* All arrays but that of the probes. */
static void
walk_options(Walk *walk, GhPipelineOptions *options)
{
	options->program = walk->step(walk, options->program, options->program_bytes, 1);
	options->steps = walk->step(walk, options->steps, options->nsteps, sizeof(GhStep));
	walk_source(walk, &options->source);
	walk_sink(walk, &options->sink);
}

Size
gh_pipeline_block_write(const GhPipelineOptions *options, const GhPipelineNames *names, void *to)
{
	Walk		walk = {put_array, to, TYPEALIGN(GH_BLOCK_ALIGNMENT, sizeof(BlockHead)), false};
	GhProbe		probes[GH_PROBES_MAX];
	BlockHead	head;

	if (options->nprobes > GH_PROBES_MAX)
		return 0;
	memset(&head, 0, sizeof(head));
	head.options = *options;
	head.names = *names;
	walk_options(&walk, &head.options);
	if (options->probes != NULL)
	{
		memcpy(probes, options->probes, options->nprobes * sizeof(GhProbe));
		walk_probes(&walk, probes, options->nprobes);
	}
	head.options.probes = put_array(&walk, options->probes != NULL ? probes : NULL, options->nprobes, sizeof(GhProbe));
	if (to != NULL)
		memcpy(to, &head, sizeof(head));
	return walk.bytes <= GH_BLOCK_BYTES_MAX ? walk.bytes : 0;
}

/* False: an array is outside of the copy. */
static bool
read_arrays(GhPipelineBlock *block, Size bytes)
{
	Walk		walk = {find_array, block->memory, bytes, false};
	GhPipelineOptions *options = &block->options;
	const GhProbe *probes;

	if (options->nprobes > GH_PROBES_MAX)
		return false;
	walk_options(&walk, options);
	probes = find_array(&walk, options->probes, options->nprobes, sizeof(GhProbe));
	if (walk.failed)
		return false;
	options->probes = probes != NULL ? block->probes : NULL;
	if (probes == NULL)
		return true;
	memcpy(block->probes, probes, options->nprobes * sizeof(GhProbe));
	walk_probes(&walk, block->probes, options->nprobes);
	return !walk.failed;
}

GhStatus
gh_pipeline_block_read(const void *from, Size bytes, GhPipelineBlock *block, GhError *error)
{
	GhStatus	status;

	memset(block, 0, sizeof(*block));
	status = gh_block_copy(from, bytes, sizeof(BlockHead), &block->memory, error);
	if (status != GH_OK)
		return status;
	block->options = ((const BlockHead *) block->memory)->options;
	block->names = ((const BlockHead *) block->memory)->names;
	if (read_arrays(block, bytes))
		return GH_OK;
	gh_pipeline_block_drop(block);
	return gh_error_set(error, GH_INVALID, "an array of the options of a pipeline is outside of them");
}

void
gh_pipeline_block_drop(GhPipelineBlock *block)
{
	free(block->memory);
	block->memory = NULL;
}
