/*
 * cpu_batch.c
 *		The memory of a batch: its vectors, constants in each row of them, and how many bits values have.
 */
#include "engine/program/program_row.h"

#define GH_VECTOR_BYTES (GH_VECTOR_ROWS * (2 * sizeof(uint64_t) + 1))

static size_t
aligned(size_t bytes)
{
	return (bytes + 63) & ~(size_t) 63;
}

size_t
gh_batch_bytes(const GhProgram *program)
{
	size_t		nvectors = gh_program_vectors(program);

	return GH_VECTOR_ROWS + aligned(nvectors * sizeof(GhVector)) + nvectors * GH_VECTOR_BYTES;
}

/* The vectors' memory, and a row of constants. */
void
gh_batch_begin(GhVectorBatch *batch, const GhProgram *program, void *memory)
{
	GhValue		values[GH_PROGRAM_VECTORS_MAX];
	char	   *place = memory;

	batch->nrows = 0;
	batch->ready = 0;
	batch->program = program;
	batch->nvectors = gh_program_vectors(program);
	batch->state = (uint8_t *) place;
	memset(batch->state, 0, GH_VECTOR_ROWS);
	place += GH_VECTOR_ROWS;
	batch->vectors = (GhVector *) place;
	place += aligned(batch->nvectors * sizeof(GhVector));
	memset(batch->bits, 0, sizeof(batch->bits));
	gh_row_prepare(program, values);
	for (uint32_t v = 0; v < batch->nvectors; v++)
	{
		GhVector   *vector = &batch->vectors[v];

		vector->low = (uint64_t *) place;
		vector->high = vector->low + GH_VECTOR_ROWS;
		vector->null = (uint8_t *) (vector->high + GH_VECTOR_ROWS);
		place += GH_VECTOR_BYTES;
		if (v < program->ncolumns || v >= program->ncolumns + program->nconstants)
			continue;
		vector->low[0] = values[v].low;
		vector->high[0] = values[v].high;
		vector->null[0] = values[v].null;
		if (gh_program_constants(program)[v - program->ncolumns].value_class == GH_CLASS_INT128)
			batch->bits[v] = gh_value_bits(values[v].low, values[v].high);
	}
}

void
gh_batch_forget_bits(GhVectorBatch *batch)
{
	const GhProgram *program = batch->program;
	uint32_t	constants = program->ncolumns + program->nconstants;

	memset(batch->bits, 0, program->ncolumns);
	memset(batch->bits + constants, 0, batch->nvectors - constants);
}

/* Rows that are made ready at the least, and of which a multiple is. */
#define GH_READY_ROWS 64

void
gh_batch_extend(GhVectorBatch *batch, uint32_t nrows)
{
	const GhProgram *program = batch->program;
	uint32_t	from = batch->ready;
	uint32_t	to = nrows < 2 * from ? 2 * from : nrows;

	to = (to + GH_READY_ROWS - 1) / GH_READY_ROWS * GH_READY_ROWS;
	if (to > GH_VECTOR_ROWS)
		to = GH_VECTOR_ROWS;
	for (uint32_t v = 0; v < batch->nvectors; v++)
	{
		GhVector   *vector = &batch->vectors[v];

		if (v >= program->ncolumns && v < program->ncolumns + program->nconstants)
		{
			for (uint32_t i = from; i < to; i++)
			{
				vector->low[i] = vector->low[0];
				vector->high[i] = vector->high[0];
			}
			memset(vector->null + from, vector->null[0], to - from);
			continue;
		}
		memset(vector->low + from, 0, (to - from) * sizeof(uint64_t));
		memset(vector->high + from, 0, (to - from) * sizeof(uint64_t));
		memset(vector->null + from, 0, to - from);
	}
	batch->ready = to;
}

void
gh_batch_copy_bits(GhVectorBatch *to, const GhVectorBatch *from, uint32_t vector)
{
	uint8_t		before = to->nrows == 0 ? from->bits[vector] : to->bits[vector];
	bool		known = before != 0 && from->bits[vector] != 0;

	to->bits[vector] = !known ? 0 : before > from->bits[vector] ? before : from->bits[vector];
}

void
gh_batch_prepare(GhVectorBatch *batch, const GhProgram *program, void *memory)
{
	gh_batch_begin(batch, program, memory);
	gh_batch_extend(batch, GH_VECTOR_ROWS);
}
