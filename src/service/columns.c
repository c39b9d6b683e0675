/*
 * columns.c
 *		Rows that a request brings as columns: copied, and held against the buffer that they are in.
 *
 * The session may change its buffer at any time, and the engine reads the vectors more than once.  So it has
 * them in memory that is not the session's, all but the bytes of texts.  What these are does not matter;
 * where they are, and how many, is checked in the copy.
 *
 * Only columns of the program are taken, before whichever step rows enter: what one holds never changes, while a
 * temporary may hold a text at one step and a number at the next.
 *
 * Called by threads.
 */
#include "postgres.h"

#include <stdlib.h>

#include "service/threads.h"

/* The buffer of a request. */
typedef struct Area
{
	const char *begin;
	Size		bytes;
} Area;

/* Which columns of a program that an engine has accepted hold texts. */
void
gh_columns_note_texts(const GhProgram *program, Size bytes, GhWorkerTable *table)
{
	uint8		classes[GH_PROGRAM_VECTORS_MAX];
	GhError		error;

	memset(table->texts, 0, sizeof(table->texts));
	table->ncolumns = 0;
	if (gh_program_check_classes(program, bytes, classes, &error) != GH_OK)
		return;
	table->ncolumns = program->ncolumns;
	for (uint32 v = 0; v < program->ncolumns; v++)
		if (classes[v] == GH_CLASS_TEXT)
			table->texts[v / 64] |= UINT64CONST(1) << v % 64;
}

static bool
holds_texts(const GhWorkerTable *table, uint16 vector)
{
	return vector < GH_PROGRAM_VECTORS_MAX && (table->texts[vector / 64] >> vector % 64 & 1) != 0;
}

static bool
is_within(const Area *area, uint64 address, uint64 bytes)
{
	uint64		begin = (uintptr_t) area->begin;

	return address >= begin && address - begin <= area->bytes && bytes <= area->bytes - (address - begin);
}

/* Copies an array of the session's, if there is one; false: it is elsewhere. */
static bool
copy_array(const Area *area, const void *from, uint64 bytes, char **to, void *copy)
{
	void	  **array = copy;

	*array = NULL;
	if (from == NULL)
		return true;
	if (!is_within(area, (uintptr_t) from, bytes))
		return false;
	memcpy(*to, from, bytes);
	*array = *to;
	*to += TYPEALIGN(8, bytes);
	return true;
}

static bool
copy_vector(const Area *area, const GhVector *from, uint64 count, char **to, GhVector *vector)
{
	return copy_array(area, from->low, count * sizeof(uint64), to, &vector->low) &&
		copy_array(area, from->high, count * sizeof(uint64), to, &vector->high) &&
		copy_array(area, from->null, count, to, &vector->null);
}

/* The texts' bytes are in the buffer, too.  Of what is NULL, there are none. */
static bool
check_texts(const Area *area, uint64 count, GhVector *vector)
{
	/* without these the engine refuses it */
	if (vector->low == NULL || vector->high == NULL || vector->null == NULL)
		return true;
	for (uint64 i = 0; i < count; i++)
	{
		if (vector->null[i])
			vector->low[i] = vector->high[i] = 0;
		else if (!is_within(area, vector->low[i], vector->high[i]))
			return false;
	}
	return true;
}

/* Bytes of the copies of `ngiven` vectors and their numbers. */
static Size
bytes_of_copies(uint64 ngiven, uint64 count)
{
	return TYPEALIGN(8, ngiven * sizeof(uint16)) +
		ngiven * (sizeof(GhVector) + 2 * count * sizeof(uint64) + TYPEALIGN(8, count));
}

static const char *
copy_columns(const Area *area, const GhWorkerTable *table, const uint16 *given, const GhVector *vectors,
			 char *to, GhPipelineRequest *request)
{
	GhVector   *copies = (GhVector *) to;
	uint16	   *numbers = (uint16 *) (copies + request->ngiven);

	to = (char *) numbers + TYPEALIGN(8, request->ngiven * sizeof(uint16));
	memcpy(numbers, given, request->ngiven * sizeof(uint16));
	for (uint32 i = 0; i < request->ngiven; i++)
	{
		GhVector	vector = vectors[i];

		if (request->step > 0 && numbers[i] >= table->ncolumns)
			return "rows of a request that enter behind the first step bring what is no column";
		if (!copy_vector(area, &vector, request->count, &to, &copies[i]))
			return "a vector of the request is outside its buffer";
		if (holds_texts(table, numbers[i]) && !check_texts(area, request->count, &copies[i]))
			return "a text of the request is outside its buffer";
	}
	request->given = numbers;
	request->vectors = copies;
	return NULL;
}

/* The columns of a request whose rows are known; NULL, or what is wrong. */
const char *
gh_columns_take(uint32 number, const GhSlot *asked, const GhWorkerTable *table, GhPipelineRequest *request)
{
	GhRunning  *running = &gh_worker.running_by_slot[number];
	Area		area = {gh_buffer_at(number), (Size) asked->units * GH_UNIT_BYTES};
	const uint16 *given = asked->brought.given;
	const GhVector *vectors = asked->brought.vectors;

	request->ngiven = asked->brought.ngiven;
	/* before they are multiplied; then, what lies side by side in the buffer is not more than that */
	if (request->ngiven > GH_PROGRAM_VECTORS_MAX || request->count > GH_REQUEST_LINES_MAX ||
		bytes_of_copies(request->ngiven, request->count) > area.bytes)
		return "a request has more columns or rows than its buffer";
	if (!gh_executor_array(number, asked->units, given, request->ngiven, sizeof(uint16)) ||
		!gh_executor_array(number, asked->units, vectors, request->ngiven, sizeof(GhVector)) ||
		given == NULL || vectors == NULL)
		return "an array of the request is outside its buffer";
	running->columns = malloc(bytes_of_copies(request->ngiven, request->count) + 1);
	if (running->columns == NULL)
		return "out of memory for columns";
	return copy_columns(&area, table, given, vectors, running->columns, request);
}

void
gh_columns_drop(GhRunning *running)
{
	free(running->columns);
	running->columns = NULL;
}
