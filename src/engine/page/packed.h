/*
 * packed.h
 *		Values of a column of some thousand rows, as few bytes, and back into the vectors of a batch.
 *
 * A packed column is one block of bytes without addresses in it, so that it can be copied into shared memory and out of it.
 * Numbers are what is left above the least of them, in 1, 2, 4 or 8 bytes each, or in none where all are the same.  Texts are
 * numbers of few different ones, or lie one behind the other.  Such forms are known from column stores: a frame of
 * reference, and a dictionary.
 *
 * Plain C11.
 */
#ifndef GPUHASH_PACKED_H
#define GPUHASH_PACKED_H

#include "engine/program/program.h"

/* Rows of a column, at most. */
#define GH_PACKED_ROWS_MAX (1 << 20)
/* A packed column begins at a multiple of these, and is one. */
#define GH_PACKED_ALIGNMENT 8

typedef enum GhPackedKind
{
	GH_PACKED_NUMBERS = 1,		/* base and a number without sign of `width` bytes: 0, 1, 2, 4 or 8 */
	GH_PACKED_WIDE,				/* 128 bits */
	GH_PACKED_CODES,			/* of texts: numbers of some, of one byte */
	GH_PACKED_TEXTS,			/* one behind the other */
	GH_PACKED_FIXED				/* `width` bytes each, by address */
} GhPackedKind;

/* Where parts are is counted in bytes from the head's start. */
typedef struct GhPackedColumn
{
	uint32_t	bytes;			/* of all of it */
	uint32_t	nrows;
	uint8_t		kind;			/* a GhPackedKind */
	uint8_t		has_nulls;
	uint16_t	width;
	uint32_t	nulls_at;		/* by row, if some are NULL: a byte, 0 or 1 */
	uint32_t	values_at;		/* by row, as the kind has it */
	uint32_t	ntexts;			/* codes: different texts; texts: rows */
	uint32_t	ends_at;		/* by text, and one more in front: uint32, where it ends among the texts */
	uint32_t	texts_at;
	uint64_t	base;
} GhPackedColumn;

/* How many bytes the column takes at most, of rows whose values the vector has. */
extern size_t gh_packed_bytes_max(const GhColumn *column, const GhVector *vector, uint32_t nrows);
/*
 * Packs a column whose values the vector has, as program.h says; `to` has room for gh_packed_bytes_max() bytes.
 */
extern void gh_pack_column(const GhColumn *column, const GhVector *vector, uint32_t nrows, GhPackedColumn *to);
/* Whether these are the values of such a column, and so many rows at least, in that many bytes: before it is unpacked. */
extern bool gh_packed_is_of(const GhPackedColumn *packed, const GhColumn *column, uint64_t nrows);
/*
 * Puts n rows from `first` on into a vector, from its first row on.  Texts stay where they are.  Only columns that
 * gh_packed_is_of() has accepted.
 */
extern void gh_unpack_rows(const GhPackedColumn *packed, uint64_t first, uint32_t n, bool wide, const GhVector *vector);

/* Bits that hold any of the numbers (GhVectorBatch.bits); 0: more than 64, or it has others. */
extern uint8_t gh_packed_bits(const GhPackedColumn *packed);

#endif							/* GPUHASH_PACKED_H */
