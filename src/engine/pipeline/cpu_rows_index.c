/*
 * cpu_rows_index.c
 *		The index of a table that a pipeline made on the CPU: from a key to its first row, or to what it carries.
 *
 * Rows are collected first, so that the index is made once for as many keys as there are.  Where
 * values may be carried, they are entered as a set would be; the first key that comes twice ends that, if
 * all its rows are wanted, and rows are entered by number after all.
 */
#include "engine/pipeline/cpu_rows.h"
#include "engine/table/cpu_internal.h"

#include <stdlib.h>

#define ENTER_ROWS 4096			/* of a request to the index */

bool
gh_cpu_rows_lay_out_carried(GhCpuRows *rows)
{
	uint32_t	most = sizeof(uint64_t) - (rows->any_null ? 1 : 0);
	uint32_t	at = 0;

	if (rows->shape.numbered || rows->any_back)
		return false;
	for (uint32_t k = 0; k < rows->shape.nkept; k++)
	{
		uint32_t	width = gh_cpu_kept_bytes(&rows->shape.kept[k]);

		if (at + width > most)
			return false;
		rows->carry_offsets[k] = (uint8_t) at;
		at += width;
	}
	rows->carries_nulls = rows->any_null;
	return true;
}

/* A row's values as a value of the index. */
static uint64_t
carried_value(const GhCpuRows *rows, const char *row)
{
	char		bytes[sizeof(uint64_t)] = {0};
	uint64_t	value;

	for (uint32_t k = 0; k < rows->shape.nkept; k++)
	{
		memcpy(bytes + rows->carry_offsets[k], row + rows->offsets[k], gh_cpu_kept_bytes(&rows->shape.kept[k]));
		if (gh_cpu_row_bit(row, k))
			bytes[sizeof(bytes) - 1] |= (char) (1 << k);
	}
	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* ----------------------------------------------------------------- entering */

GhCpuPiece *
gh_cpu_piece_create(uint32_t room)
{
	GhCpuPiece *piece = malloc(sizeof(GhCpuPiece) + 4 * sizeof(uint64_t) * room);

	if (piece == NULL)
		return NULL;
	piece->room = room;
	piece->keys = (uint64_t *) (piece + 1);
	piece->values = piece->keys + room;
	piece->before = piece->values + room;
	piece->numbers = piece->before + room;
	return piece;
}

/* Fills a piece from a row on; returns how many it has, and *number is the next row. */
static uint32_t
fill_piece(const GhCpuRows *rows, GhCpuPiece *piece, uint64_t *number, uint64_t end)
{
	uint64_t   *keys = piece->keys;
	uint64_t   *values = piece->values;
	uint64_t   *numbers = piece->numbers;
	uint32_t	room = piece->room;
	uint64_t	at = *number;
	uint32_t	n = 0;

	for (; at < end && n < room; at++)
	{
		const char *row = gh_cpu_row(rows, at);
		GhCpuRow	head;

		if (gh_cpu_row_bit(row, rows->shape.nkept))
			continue;
		memcpy(&head, row, sizeof(head));
		keys[n] = head.key;
		numbers[n] = at;
		values[n++] = rows->carried ? carried_value(rows, row) : at + 1;
	}
	*number = at;
	return n;
}

/* Rows of a key that were entered before are behind the one that is now its first. */
static bool
link_rows(GhCpuRows *rows, const GhCpuPiece *piece, uint32_t n)
{
	bool		several = false;

	for (uint32_t i = 0; i < n; i++)
	{
		if (piece->before[i] != 0 || rows->linked)
			memcpy(gh_cpu_row(rows, piece->numbers[i]) + offsetof(GhCpuRow, next), &piece->before[i],
				   sizeof(uint64_t));
		several |= piece->before[i] != 0;
	}
	return several;
}

static GhStatus
run(GhTable *index, GhRequest *request, GhError *error)
{
	GhStatus	status = index->engine->submit(index, request);

	if (status == GH_BUSY)
		status = index->engine->wait(request);
	if (status != GH_OK)
		*error = request->error;
	return status;
}

GhStatus
gh_cpu_rows_enter(GhCpuRows *rows, GhCpuPiece *piece, GhOp op, bool all, uint64_t *number, uint64_t end, bool *twice,
				  GhError *error)
{
	GhRequest	request = {
		.op = op,
		.count = fill_piece(rows, piece, number, end),
		.keys = piece->keys,
		.values_in = piece->values,
	};
	GhStatus	status;

	if (op == GH_EXCHANGE)
		request.values_out = piece->before;
	status = run(rows->index, &request, error);
	if (status != GH_OK)
		return status;
	if (op == GH_EXCHANGE && all && !rows->carried)
		*twice |= link_rows(rows, piece, (uint32_t) request.count);
	else
		*twice |= request.outcome.inserted < request.count;
	return GH_OK;
}

/* Enters all rows; *twice: some key came twice, which of carried values only the first one is entered of. */
static GhStatus
enter_all(GhCpuRows *rows, bool all, GhCpuPiece *piece, bool *twice, GhError *error)
{
	GhOp		op = all && !rows->carried ? GH_EXCHANGE : GH_INSERT;
	uint64_t	number = 0;
	GhStatus	status = GH_OK;

	*twice = false;
	/* where the values of a key that comes twice are all wanted, they cannot be carried */
	while (status == GH_OK && number < rows->count && !(all && rows->carried && *twice))
		status = gh_cpu_rows_enter(rows, piece, op, all, &number, rows->count, twice, error);
	return status;
}

static GhStatus
fill_index(GhCpuRows *rows, const GhTableSink *sink, GhError *error)
{
	GhCpuPiece *piece = gh_cpu_piece_create(ENTER_ROWS);
	bool		all = sink->matches == GH_MATCHES_ALL;
	bool		twice;
	GhStatus	status;

	if (piece == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory to enter rows into a table");
	rows->carried = gh_cpu_rows_lay_out_carried(rows);
	status = enter_all(rows, all, piece, &twice, error);
	if (status == GH_OK && all && rows->carried && twice)
	{
		rows->carried = false;
		status = gh_cpu_table_clear(rows->index, error);
		if (status == GH_OK)
			status = enter_all(rows, all, piece, &twice, error);
	}
	free(piece);
	rows->shape.several = twice && all;
	return status;
}

/* -------------------------------------------------------------------- making */

GhTableOptions
gh_cpu_index_options(const GhTableSink *sink, uint64_t keys)
{
	return (GhTableOptions) {
		.key_size = sizeof(uint64_t),
		.value_size = sizeof(uint64_t),
		.subtables = sink->subtables,
		.fill_min = sink->fill_min,
		.fill_max = sink->fill_max,
		.capacity = keys,
		.seed = sink->seed,
	};
}

static GhStatus
create_index(GhCpuRows *rows, const GhTableSink *sink, GhError *error)
{
	GhTableOptions options = gh_cpu_index_options(sink, rows->count - rows->nkeyless);

	if (rows->memory.limit != 0)
	{
		if (rows->memory.bytes >= rows->memory.limit)
			return gh_error_set(error, GH_LIMIT, "the rows of a table leave no memory for its index");
		options.memory_limit = rows->memory.limit - rows->memory.bytes;
	}
	return gh_cpu_table_create(&rows->memory.host, &options, &rows->index, error);
}

void
gh_cpu_rows_hand_over(GhCpuRows *rows, void (*drop) (GhCpuRows *), void (*forget) (GhCpuRows *), GhMadeTable *made)
{
	GhCpuTable *index = (GhCpuTable *) rows->index;

	index->rows = rows;
	index->made_value_size = gh_made_value_size(&rows->shape, rows->any_back);
	index->drop_rows = drop;
	index->forget_rows = forget;
	made->table = rows->index;
	made->rows = rows->count;
	made->several = rows->shape.several;
	made->value_size = index->made_value_size;
}

GhStatus
gh_cpu_rows_make(GhCpuRows *rows, const GhTableSink *sink, GhMadeTable *made, GhError *error)
{
	GhStatus	status = create_index(rows, sink, error);

	if (status != GH_OK)
		return status;
	status = fill_index(rows, sink, error);
	if (status != GH_OK)
	{
		gh_cpu_table_destroy(rows->index);
		rows->index = NULL;
		rows->linked = true;
		return status;
	}
	rows->shape.rows = rows->count;
	if (rows->carried)
		gh_cpu_rows_free(rows);
	gh_cpu_rows_hand_over(rows, gh_cpu_rows_drop, NULL, made);
	return GH_OK;
}
