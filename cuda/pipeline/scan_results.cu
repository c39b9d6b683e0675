/*
 * scan_results.cu
 *		Copies groups to the host, a piece at a time, and writes their records.
 */
#include <stdlib.h>

#include "cuda/pipeline/scan_device.cuh"

#define PIECE_GROUPS 65536

/* Groups on the host: from number `first` on. */
struct piece
{
	uint32_t	first;
	uint32_t	count;
	char	   *records;
	GhAggregateState *states;
	char	   *texts;
};

static void
piece_drop(piece *piece)
{
	free(piece->records);
	free(piece->states);
	free(piece->texts);
	*piece = {};
}

static GhStatus
copy_out(cuda_scan *scan, char **to, const void *from, uint64_t bytes, GhError *error)
{
	*to = static_cast<char *>(malloc(bytes > 0 ? bytes : 1));
	if (*to == nullptr)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the groups of a scan");
	if (bytes == 0)
		return GH_OK;
	SCAN_TRY(scan, cudaMemcpyAsync(*to, from, bytes, cudaMemcpyDeviceToHost, scan->reduce_stream),
			 error);
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	return GH_OK;
}

static GhScanGroup *
piece_group(const cuda_scan *scan, const piece *piece, uint32_t i)
{
	return reinterpret_cast<GhScanGroup *>(piece->records +
										   (uint64_t) i * scan->groups.record_bytes);
}

static bool
is_text(const cuda_scan *scan, const GhScanGroup *group, uint32_t k)
{
	return scan->plan.options.keys[k].value_class == GH_CLASS_TEXT && (group->nulls >> k & 1) == 0;
}

/* The texts of the piece's groups, which lie about together; keys name their offsets in it then. */
static GhStatus
copy_texts(cuda_scan *scan, piece *piece, GhError *error)
{
	const GhScanOptions *options = &scan->plan.options;
	uint64_t	begin = UINT64_MAX;
	uint64_t	end = 0;

	for (uint32_t i = 0; i < piece->count; i++)
		for (uint32_t k = 0; k < options->nkeys; k++)
		{
			const GhScanGroup *group = piece_group(scan, piece, i);
			const GhScanValue *key = &gh_scan_keys(group)[k];

			if (!is_text(scan, group, k))
				continue;
			begin = key->low < begin ? key->low : begin;
			end = key->low + key->high > end ? key->low + key->high : end;
		}
	if (begin > end)
		begin = end;
	for (uint32_t i = 0; i < piece->count; i++)
		for (uint32_t k = 0; k < options->nkeys; k++)
			if (is_text(scan, piece_group(scan, piece, i), k))
				gh_scan_keys(piece_group(scan, piece, i))[k].low -= begin;
	return copy_out(scan, &piece->texts, scan->groups.texts + begin, end - begin, error);
}

static GhStatus
piece_fetch(cuda_scan *scan, piece *piece, GhError *error)
{
	uint64_t	record_bytes = scan->groups.record_bytes;
	uint64_t	states = scan->plan.options.naggregates;
	char	   *copy = nullptr;

	GH_TRY(copy_out(scan, &piece->records, scan->groups.records + piece->first * record_bytes,
					piece->count * record_bytes, error));
	GH_TRY(copy_out(scan, &copy, scan->groups.states + piece->first * states,
					piece->count * states * sizeof(GhAggregateState), error));
	piece->states = reinterpret_cast<GhAggregateState *>(copy);
	return copy_texts(scan, piece, error);
}

/* Writes records until the piece or the room ends; true: the piece did. */
static bool
piece_put(const cuda_scan *scan, const piece *piece, GhCursor *cursor, size_t capacity,
		  char *buffer, size_t *bytes, size_t *needed)
{
	for (uint32_t i = 0; i < piece->count; i++)
	{
		const GhScanGroup *group = piece_group(scan, piece, i);

		if (group->rows != 0 &&
			!gh_scan_record_put(&scan->plan, group,
								piece->states + (uint64_t) i * scan->plan.options.naggregates,
								piece->texts, capacity, buffer, bytes, needed))
			return false;
		cursor->position++;
	}
	return true;
}

/* As many groups as may fit, and one at least: a record takes no less than these bytes. */
static uint32_t
piece_groups(const cuda_scan *scan, size_t room, uint64_t left)
{
	uint64_t	record = scan->groups.record_bytes +
		scan->plan.options.naggregates * sizeof(GhAggregateState);
	uint64_t	groups = room / record + 1;

	groups = groups < PIECE_GROUPS ? groups : PIECE_GROUPS;
	return (uint32_t) (groups < left ? groups : left);
}

/* GhScanEngine.results, when nothing is in flight. */
GhStatus
scan_fetch(cuda_scan *scan, GhCursor *cursor, size_t capacity, char *buffer, size_t *bytes,
		   GhError *error)
{
	uint32_t	count;
	size_t		needed = 0;
	bool		room = true;

	GH_TRY(groups_count(scan, &count, error));
	while (room && cursor->position < count)
	{
		piece		piece = {};
		GhStatus	status;

		piece.first = (uint32_t) cursor->position;
		piece.count = piece_groups(scan, capacity - *bytes, count - cursor->position);
		status = piece_fetch(scan, &piece, error);
		if (status == GH_OK)
			room = piece_put(scan, &piece, cursor, capacity, buffer, bytes, &needed);
		piece_drop(&piece);
		GH_TRY(status);
	}
	if (cursor->position >= count)
		cursor->finished = true;
	else if (*bytes == 0)
	{
		*bytes = needed;
		return gh_error_set(error, GH_TOO_SMALL, "a group needs %zu bytes", needed);
	}
	return GH_OK;
}
