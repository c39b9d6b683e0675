/*
 * cpu_rows.c
 *		The rows of a table that a pipeline made on the CPU: kept, and read again.
 *
 * Rows lie in chunks of one size, their texts in blocks that become larger.  Neither ever moves.
 */
#include "engine/pipeline/cpu_rows.h"
#include "engine/table/cpu_internal.h"

#include <stdlib.h>

#define CHUNK_BYTES (256 * 1024)
#define TEXTS_MIN 4096			/* bytes of the first block of texts, */
#define TEXTS_MAX (16 * 1024 * 1024)	/* and of later ones, unless a batch needs more */

/* ------------------------------------------------------------------ layout */

GhCpuRows *
gh_cpu_rows_create(const GhHost *host, const GhTableSink *sink, uint64_t memory_limit, GhError *error)
{
	GhCpuRows  *rows = calloc(1, sizeof(GhCpuRows));
	uint32_t	at = sizeof(GhCpuRow) + (sink->nkept + 2 + 7) / 8;

	if (rows == NULL)
	{
		(void) gh_error_set(error, GH_NO_MEMORY, "out of memory for the rows of a table");
		return NULL;
	}
	rows->memory.host = *host;
	rows->memory.limit = memory_limit;
	rows->shape.nkept = sink->nkept;
	if (sink->nkept > 0)
		memcpy(rows->shape.kept, sink->kept, sink->nkept * sizeof(GhKept));
	rows->shape.numbered = sink->numbered != 0;
	for (uint32_t k = 0; k < sink->nkept; k++)
	{
		rows->offsets[k] = (uint16_t) at;
		at += gh_cpu_kept_bytes(&sink->kept[k]);
	}
	rows->row_bytes = (at + 7) & ~UINT32_C(7);
	while ((UINT64_C(2) << rows->chunk_shift) * rows->row_bytes <= CHUNK_BYTES)
		rows->chunk_shift++;
	return rows;
}

/* ------------------------------------------------------------------ blocks */

static bool
blocks_grow(GhCpuBlocks *blocks)
{
	uint32_t	room = blocks->room == 0 ? 16 : blocks->room * 2;
	GhCpuBlock *list = realloc(blocks->blocks, room * sizeof(GhCpuBlock));
	char	  **bases;

	if (list == NULL)
		return false;
	blocks->blocks = list;
	bases = realloc(blocks->bases, room * sizeof(char *));
	if (bases == NULL)
		return false;
	blocks->bases = bases;
	blocks->room = room;
	return true;
}

/* One more of so many bytes; false: there is no memory. */
static bool
blocks_add(GhCpuBlocks *blocks, GhCpuSinkMemory *memory, uint64_t bytes)
{
	GhCpuBlock	block;

	if (blocks->count == blocks->room && !blocks_grow(blocks))
		return false;
	block = gh_cpu_block_take(memory, bytes);
	if (block.ref == 0)
		return false;
	blocks->blocks[blocks->count] = block;
	blocks->bases[blocks->count++] = gh_cpu_block_address(memory, block);
	return true;
}

static void
blocks_give(GhCpuBlocks *blocks, GhCpuSinkMemory *memory)
{
	for (uint32_t b = 0; b < blocks->count; b++)
		gh_cpu_block_give(memory, blocks->blocks[b]);
	blocks->count = 0;
}

static void
blocks_drop(GhCpuBlocks *blocks)
{
	free(blocks->blocks);
	free(blocks->bases);
}

void
gh_cpu_rows_free(GhCpuRows *rows)
{
	blocks_give(&rows->chunks, &rows->memory);
	blocks_give(&rows->texts, &rows->memory);
}

/* Not the index: that is the table, which calls this. */
void
gh_cpu_rows_drop(GhCpuRows *rows)
{
	if (rows == NULL)
		return;
	gh_cpu_rows_free(rows);
	blocks_drop(&rows->chunks);
	blocks_drop(&rows->texts);
	free(rows);
}

/* ------------------------------------------------------------------ adding */

uint64_t
gh_cpu_rows_text_bytes(const GhTableSink *sink, const GhVectorBatch *batch, const GhCpuPicks *picks)
{
	uint64_t	text_bytes = 0;

	for (uint32_t k = 0; k < sink->nkept; k++)
	{
		const GhVector *vector = &batch->vectors[sink->kept[k].vector];

		for (uint32_t i = 0; sink->kept[k].value_class == GH_CLASS_TEXT && i < picks->n; i++)
			text_bytes += vector->null[picks->rows[i]] ? 0 : vector->high[picks->rows[i]];
	}
	return text_bytes;
}

/* Room for texts in one block: the last one, or a new one, twice as large. */
static bool
reserve_texts(GhCpuRows *rows, uint64_t bytes)
{
	uint32_t	n = rows->texts.count;
	uint64_t	last = n == 0 ? 0 : rows->texts.blocks[n - 1].bytes;
	uint64_t	room = 2 * last < TEXTS_MIN ? TEXTS_MIN : 2 * last > TEXTS_MAX ? TEXTS_MAX : 2 * last;
	uint64_t	number;

	if (bytes <= last - rows->text_at)
		return true;
	number = rows->shared == NULL ? n : gh_cpu_shared_text_number(rows);
	if (bytes > (UINT64_C(1) << GH_CPU_TEXT_SHIFT) - sizeof(number) || number >= GH_CPU_TEXT_BLOCKS_MAX)
		return false;
	if (room < bytes + sizeof(number))
		room = bytes + sizeof(number);
	if (!blocks_add(&rows->texts, &rows->memory, room))
		return false;
	memcpy(rows->texts.bases[n], &number, sizeof(number));
	rows->text_at = sizeof(number);
	return true;
}

bool
gh_cpu_rows_reserve(GhCpuRows *rows, uint64_t n, uint64_t text_bytes)
{
	while ((uint64_t) rows->chunks.count << rows->chunk_shift < rows->count + n)
		if (!blocks_add(&rows->chunks, &rows->memory, (UINT64_C(1) << rows->chunk_shift) * rows->row_bytes))
			return false;
	return reserve_texts(rows, text_bytes);
}

/* Appends a text, for which there is room; returns where it is. */
static uint64_t
add_text(GhCpuRows *rows, uint64_t low, uint64_t bytes)
{
	uint32_t	last = rows->texts.count - 1;
	const char *base;
	uint64_t	number;
	uint64_t	at = rows->text_at;

	if (bytes == 0)
		return 0;
	base = rows->texts.bases[last];
	memcpy(&number, base, sizeof(number));
	memcpy(rows->texts.bases[last] + at, (const char *) (uintptr_t) low, bytes);
	rows->text_at += bytes;
	return number << GH_CPU_TEXT_SHIFT | at;
}

/* What is done with each row that is added: its number among the picks, in the batch, and its bytes. */
#define EACH_ADDED(statement) \
	do { \
		for (uint32_t i = 0; i < picks->n; i++) \
		{ \
			uint32_t	row = picks->rows[i]; \
			char	   *to = places[i] + offset; \
			(void) row; \
			statement; \
		} \
	} while (0)

static void
add_values(GhCpuRows *rows, const GhKept *kept, uint32_t offset, const GhVector *vector, const GhCpuPicks *picks,
		   char *const *places)
{
	const uint64_t *low = vector->low;

	switch (kept->value_class)
	{
		case GH_CLASS_BOOL:
			EACH_ADDED(*to = (char) low[row]);
			break;
		case GH_CLASS_INT:
			if (kept->bytes == 2)
				EACH_ADDED(memcpy(to, &(uint16_t){(uint16_t) low[row]}, 2));
			else if (kept->bytes == 4)
				EACH_ADDED(memcpy(to, &(uint32_t){(uint32_t) low[row]}, 4));
			else
				EACH_ADDED(memcpy(to, &low[row], 8));
			break;
		case GH_CLASS_INT128:
			EACH_ADDED(memcpy(to, &low[row], 8); memcpy(to + 8, &vector->high[row], 8));
			break;
		case GH_CLASS_TEXT:
			for (uint32_t i = 0; i < picks->n; i++)
			{
				uint32_t	row = picks->rows[i];
				uint64_t	text[2] = {0, 0};

				if (!vector->null[row])
				{
					text[1] = vector->high[row];
					text[0] = add_text(rows, low[row], text[1]);
				}
				memcpy(places[i] + offset, text, sizeof(text));
			}
			break;
		default:
			EACH_ADDED(memcpy(to, &low[row], 8));
	}
}

static void
set_bits(char *const *places, uint32_t bit, const uint8_t *values, const GhCpuPicks *picks)
{
	for (uint32_t i = 0; i < picks->n; i++)
		places[i][sizeof(GhCpuRow) + bit / 8] |= (char) (values[i] << bit % 8);
}

/* Of a vector's nulls, or truth, those of the picks; whether there is one. */
static bool
gather_bits(uint8_t *to, const uint8_t *null, const uint64_t *low, const GhCpuPicks *picks)
{
	bool		any = false;

	for (uint32_t i = 0; i < picks->n; i++)
	{
		to[i] = low == NULL ? null[picks->rows[i]] : !null[picks->rows[i]] && low[picks->rows[i]] != 0;
		any |= to[i] != 0;
	}
	return any;
}

void
gh_cpu_rows_add(GhCpuRows *rows, const GhTableSink *sink, const GhVectorBatch *batch, const GhCpuPicks *picks,
				const uint64_t *keys, const uint8_t *keyless)
{
	char	   *places[GH_VECTOR_ROWS];
	uint8_t		bits[GH_VECTOR_ROWS];
	uint32_t	bits_bytes = (sink->nkept + 2 + 7) / 8;

	for (uint32_t i = 0; i < picks->n; i++)
	{
		GhCpuRow	head = {0, keys[i]};

		places[i] = gh_cpu_row(rows, rows->count + i);
		memcpy(places[i], &head, sizeof(head));
		memset(places[i] + sizeof(head), 0, bits_bytes);
		rows->nkeyless += keyless[i];
	}
	for (uint32_t k = 0; k < sink->nkept; k++)
	{
		const GhVector *vector = &batch->vectors[sink->kept[k].vector];

		add_values(rows, &sink->kept[k], rows->offsets[k], vector, picks, places);
		if (gather_bits(bits, vector->null, NULL, picks))
		{
			set_bits(places, k, bits, picks);
			rows->any_null = true;
		}
	}
	set_bits(places, sink->nkept, keyless, picks);
	if (sink->back_vector != 0)
	{
		const GhVector *vector = &batch->vectors[sink->back_vector - 1];

		if (gather_bits(bits, vector->null, vector->low, picks))
		{
			set_bits(places, sink->nkept + 1, bits, picks);
			rows->any_back = true;
		}
	}
	rows->count += picks->n;
}

/* ------------------------------------------------------- rows of a table */

const GhCpuRows *
gh_cpu_rows_of(const GhTable *table)
{
	return ((const GhCpuTable *) table)->rows;
}

uint64_t
gh_cpu_index_bytes(const GhTable *table)
{
	const GhCpuTable *handle = (const GhCpuTable *) table;

	return ((const GhCpuRoot *) handle->host.address(handle->host.ctx, handle->root))->bytes;
}

bool
gh_cpu_table_describe(const GhTable *table, GhTableShape *shape)
{
	const GhCpuTable *handle = (const GhCpuTable *) table;
	const GhCpuRoot *root;

	if (table->engine != gh_cpu_engine())
		return false;
	if (handle->overlay != NULL)
	{
		*shape = handle->overlay->shape;
		return true;
	}
	if (handle->rows != NULL)
	{
		*shape = handle->rows->shape;
		return true;
	}
	memset(shape, 0, sizeof(*shape));
	root = handle->host.address(handle->host.ctx, handle->root);
	if (root->options.key_size != sizeof(uint64_t) || root->options.multi ||
		(root->options.value_size != 0 && root->options.value_size != sizeof(uint64_t)))
		return false;
	shape->nkept = root->options.value_size != 0;
	shape->kept[0].value_class = GH_CLASS_INT;
	shape->kept[0].bytes = sizeof(uint64_t);
	return true;
}

/* ----------------------------------------------------------------- reading */

/* What is done with each row that is read: its number in the batch, and its bytes. */
#define EACH_READ(statement) \
	do { \
		for (uint32_t i = 0; i < picks->n; i++) \
		{ \
			uint32_t	row = picks->rows[i]; \
			const uint8_t *at = (const uint8_t *) (PLACE) + offset; \
			statement; \
		} \
	} while (0)

#define LOAD_BY_CLASS \
	switch (kept_of->value_class) \
	{ \
		case GH_CLASS_BOOL: \
			EACH_READ(low[row] = *at); \
			break; \
		case GH_CLASS_INT: \
			if (kept_of->bytes == 2) \
				EACH_READ(low[row] = (uint64_t) (int64_t) (int16_t) gh_read_u16(at)); \
			else if (kept_of->bytes == 4) \
				EACH_READ(low[row] = (uint64_t) (int64_t) (int32_t) gh_read_u32(at)); \
			else \
				EACH_READ(low[row] = gh_read_u64(at)); \
			break; \
		case GH_CLASS_INT128: \
			EACH_READ(low[row] = gh_read_u64(at); vector->high[row] = gh_read_u64(at + 8)); \
			break; \
		case GH_CLASS_TEXT: \
			EACH_READ(low[row] = (uint64_t) (uintptr_t) TEXT(gh_read_u64(at)); \
					  vector->high[row] = gh_read_u64(at + 8)); \
			break; \
		default: \
			EACH_READ(low[row] = gh_read_u64(at)); \
	}

void
gh_cpu_rows_load(const GhCpuRows *rows, uint32_t kept, const uint64_t *numbers, const GhVector *vector,
				 const GhCpuPicks *picks)
{
	const GhKept *kept_of = &rows->shape.kept[kept];
	uint32_t	offset = rows->offsets[kept];
	uint64_t   *low = vector->low;

#define PLACE gh_cpu_row(rows, numbers[i])
#define TEXT(where) gh_cpu_row_text(rows, where)
	LOAD_BY_CLASS
	offset = sizeof(GhCpuRow) + kept / 8;
	if (rows->any_null)
		EACH_READ(vector->null[row] = *at >> kept % 8 & 1);
	else
		EACH_READ((void) at; vector->null[row] = 0);
#undef PLACE
#undef TEXT
}

void
gh_cpu_carried_load(const GhCpuRows *rows, uint32_t kept, const uint64_t *values, const GhVector *vector,
					const GhCpuPicks *picks)
{
	static const GhKept whole = {0, GH_CLASS_INT, sizeof(uint64_t)};
	/* a table that no pipeline made has one value */
	const GhKept *kept_of = rows != NULL ? &rows->shape.kept[kept] : &whole;
	uint32_t	offset = rows != NULL ? rows->carry_offsets[kept] : 0;
	uint64_t   *low = vector->low;

#define PLACE &values[i]
/* values that are carried are none */
#define TEXT(where) ((void) (where), (const char *) NULL)
	LOAD_BY_CLASS
	offset = sizeof(uint64_t) - 1;
	if (rows != NULL && rows->carries_nulls)
		EACH_READ(vector->null[row] = *at >> kept & 1);
	else
		EACH_READ((void) at; vector->null[row] = 0);
#undef PLACE
#undef TEXT
}
