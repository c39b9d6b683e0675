/*
 * page.h
 *		A heap page as bytes: where its tuples lie, and where in a tuple its attributes do.
 *
 * C11 and CUDA alike, without PostgreSQL: layout.c holds these numbers against the
 * server's headers.  What is read may be anything.  Every offset that comes from the
 * page is held against the page, and against the tuple, before it is followed, so nothing
 * outside is ever read, and where bytes are not what a heap page has, that is said.
 * README tells the rest.
 */
#ifndef GPUHASH_PAGE_H
#define GPUHASH_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/everywhere.h"
#include "engine/page/numeric.h"
#include "engine/program/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- the layout */

/* Bytes of a page, as the server may have been configured. */
#define GH_PAGE_BYTES_MIN 1024
#define GH_PAGE_BYTES_MAX 32768

/* Page header: offsets in bytes.  The page's size is in the upper byte of its version. */
#define GH_PAGE_LOWER_AT 12
#define GH_PAGE_VERSION_AT 18
#define GH_PAGE_LINES_AT 24
#define GH_PAGE_VERSION 4

/* Line pointers: from the lowest bit on the tuple's offset, the state, the tuple's length. */
#define GH_LINE_BYTES 4
#define GH_LINE_OFFSET_BITS 15
#define GH_LINE_STATE_BITS 2
#define GH_LINE_NORMAL 1

/* Tuples, and the data in them, begin at multiples of this. */
#define GH_TUPLE_ALIGNMENT 8

/* Tuple header: offsets in bytes. */
#define GH_TUPLE_XMIN_AT 0
#define GH_TUPLE_XMAX_AT 4
#define GH_TUPLE_WORD_AT 16		/* of 8 bytes: what follows up to the first of the bits */
#define GH_TUPLE_INFOMASK2_AT 18
#define GH_TUPLE_INFOMASK_AT 20
#define GH_TUPLE_HOFF_AT 22
#define GH_TUPLE_BITS_AT 23
#define GH_TUPLE_NATTS_MASK 0x07ff	/* of infomask2 */
#define GH_TUPLE_HAS_NULL 0x0001	/* of infomask, as what follows */
#define GH_TUPLE_XMAX_LOCKS 0x0050
#define GH_TUPLE_XMAX_LOCK_ONLY 0x0080
#define GH_TUPLE_XMIN_COMMITTED 0x0100
#define GH_TUPLE_XMIN_INVALID 0x0200
#define GH_TUPLE_XMIN_FROZEN 0x0300
#define GH_TUPLE_XMAX_COMMITTED 0x0400
#define GH_TUPLE_XMAX_INVALID 0x0800
#define GH_TUPLE_XMAX_IS_MULTI 0x1000
#define GH_TUPLE_MOVED 0xc000

/* An entry of a B-tree's leaf page: what it has in the place of a tuple's header, offsets in bytes. */
#define GH_LEAF_BLOCK_AT 0		/* of its row: the upper half of the number, and the lower one */
#define GH_LEAF_INFO_AT 6
#define GH_LEAF_BITS_AT 8
#define GH_LEAF_BYTES_MASK 0x1fff	/* of info, as what follows: of all of it */
#define GH_LEAF_OTHER 0x2000	/* it is of several rows, or none */
#define GH_LEAF_HAS_NULL 0x8000
#define GH_LEAF_DATA 8			/* where columns begin, and where they do behind bits of NULLs */
#define GH_LEAF_DATA_NULLS 16
#define GH_LEAF_ATTRIBUTES 32	/* at most; bits are there for as many */

/* What such a page ends with, which its header tells the place of: offsets in bytes. */
#define GH_PAGE_SPECIAL_AT 16
#define GH_LEAF_NEXT_AT 4		/* the page to its right; 0: there is none */
#define GH_LEAF_SPECIAL_BYTES 16

/* Transaction numbers from this one on wrap around; those before it are earlier than all of them. */
#define GH_XID_FIRST_NORMAL 3

/* A varlena's first byte tells what it is. */
#define GH_VARLENA_SHORT_BIT 0x01	/* a header of one byte, not aligned */
#define GH_VARLENA_EXTERNAL 0x01	/* just that: the tag follows, and what it says */
#define GH_VARLENA_KIND_BITS 0x03	/* of a header of four bytes */
#define GH_VARLENA_COMPRESSED 0x02	/* of them */
#define GH_VARLENA_SHORT_SHIFT 1	/* the rest is the length, header included */
#define GH_VARLENA_LONG_SHIFT 2
#define GH_VARLENA_HEADER 4
#define GH_VARLENA_COMPRESSED_HEADER 8
#define GH_VARLENA_EXTERNAL_HEADER 2
#define GH_VARLENA_TAG_ON_DISK 18	/* the only one that a page may hold */
#define GH_VARLENA_ON_DISK_BYTES 18 /* header included */

/* ----------------------------------------------------------------- the shape */

/* What stepping over an attribute needs. */
typedef struct GhPageAttribute
{
	int16_t		length;			/* bytes; -1: varlena */
	uint8_t		alignment;		/* bytes: 1, 2, 4 or 8 */
} GhPageAttribute;

/* A column that is read. */
typedef struct GhPageColumn
{
	GhColumn	column;
	uint32_t	vector;			/* of the batch, that it fills */
	uint32_t	place;			/* one of the nfixed: bytes from the start of a tuple's data */
} GhPageColumn;

/*
 * The tuples of a relation, as far as the columns of a program need them.  In a tuple whose
 * first prefix attributes are not NULL these lie at the same places as in any other.
 */
typedef struct GhPageShape
{
	uint32_t	page_bytes;
	uint32_t	leaves;			/* 1: they are entries of a B-tree's leaf pages */
	uint32_t	natts;			/* up to the last column's */
	const GhPageAttribute *attributes;
	uint32_t	prefix;			/* attributes */
	uint32_t	prefix_bytes;	/* of a tuple's data, and of a page */
	uint32_t	tids;			/* the vector of the column of GH_LOAD_TID, and one more; 0: there is none */
	uint32_t	ncolumns;		/* of attributes, as all that follows */
	uint32_t	nfixed;			/* the first so many columns are in the prefix */
	GhPageColumn columns[GH_PROGRAM_VECTORS_MAX];	/* in the order of the attributes, each of
												 * which is read once at most */
} GhPageShape;

/*
 * page.c: a shape of the columns of a program, by a relation's attributes, which stay the
 * caller's and must stay there.  GH_INVALID: pages of such tuples, or these columns of
 * them, cannot be read.
 */
extern GhStatus gh_page_shape_init(GhPageShape *shape, uint32_t page_bytes, uint32_t natts,
								   const GhPageAttribute *attributes, uint32_t ncolumns,
								   const GhColumn *columns, GhError *error);

/* ---------------------------------------------------------------- one tuple */

GH_EVERYWHERE uint32_t
gh_align_up(uint32_t offset, uint32_t alignment)
{
	return (offset + alignment - 1) & ~(alignment - 1);
}

/* A tuple inside a page: offsets are bytes from the page's start. */
typedef struct GhPageTuple
{
	uint32_t	header;
	uint32_t	data;			/* a multiple of GH_TUPLE_ALIGNMENT */
	uint32_t	end;			/* behind its last byte, at most the page's size */
	uint32_t	natts;			/* that it has */
	bool		has_nulls;		/* then a bit of each of them lies before data */
} GhPageTuple;

/* Line pointers of the page; 0 also where it is not a page of that many bytes. */
GH_EVERYWHERE uint32_t
gh_page_lines(const uint8_t *page, uint32_t page_bytes)
{
	uint32_t	lower = gh_read_u16(page + GH_PAGE_LOWER_AT);

	if (gh_read_u16(page + GH_PAGE_VERSION_AT) != (page_bytes | GH_PAGE_VERSION) ||
		lower < GH_PAGE_LINES_AT || lower > page_bytes)
		return 0;
	return (lower - GH_PAGE_LINES_AT) / GH_LINE_BYTES;
}

/*
 * The tuple of an offset number, which counts from 1.  False: there is none that lies
 * in the page as a tuple must, between the line pointers and the end.
 */
GH_EVERYWHERE bool
gh_page_tuple(const uint8_t *page, uint32_t page_bytes, uint32_t lines, uint32_t number,
			  GhPageTuple *tuple)
{
	const uint32_t low_bits = (1u << GH_LINE_OFFSET_BITS) - 1;
	uint32_t	line;
	uint32_t	length;
	uint32_t	hoff;
	uint32_t	header_bytes = GH_TUPLE_BITS_AT;
	uint64_t	header;

	if (number < 1 || number > lines)
		return false;
	line = gh_read_aligned_u32(page + GH_PAGE_LINES_AT + (number - 1) * GH_LINE_BYTES);
	if (((line >> GH_LINE_OFFSET_BITS) & ((1u << GH_LINE_STATE_BITS) - 1)) != GH_LINE_NORMAL)
		return false;
	tuple->header = line & low_bits;
	length = line >> (GH_LINE_OFFSET_BITS + GH_LINE_STATE_BITS);
	if (tuple->header < GH_PAGE_LINES_AT + lines * GH_LINE_BYTES ||
		tuple->header % GH_TUPLE_ALIGNMENT != 0 || length < GH_TUPLE_BITS_AT ||
		tuple->header + length > page_bytes)
		return false;
	tuple->end = tuple->header + length;
	/* a tuple that begins at such a place, and has a byte of this word, has all of it in the page */
	header = gh_read_aligned_u64(page + tuple->header + GH_TUPLE_WORD_AT);
	tuple->natts = (uint32_t) (header >> 8 * (GH_TUPLE_INFOMASK2_AT - GH_TUPLE_WORD_AT)) & GH_TUPLE_NATTS_MASK;
	tuple->has_nulls = (header >> 8 * (GH_TUPLE_INFOMASK_AT - GH_TUPLE_WORD_AT) & GH_TUPLE_HAS_NULL) != 0;
	if (tuple->has_nulls)
		header_bytes += (tuple->natts + 7) / 8;
	hoff = (uint32_t) (header >> 8 * (GH_TUPLE_HOFF_AT - GH_TUPLE_WORD_AT)) & 0xff;
	if (hoff < header_bytes || hoff > length || hoff % GH_TUPLE_ALIGNMENT != 0)
		return false;
	tuple->data = tuple->header + hoff;
	return true;
}

/*
 * The first line of a leaf page that is an entry: that before it, of a page with another one to its right, is a
 * bound.  0: the page does not end as such a page does.
 */
GH_EVERYWHERE uint32_t
gh_leaf_first_line(const uint8_t *page, uint32_t page_bytes)
{
	uint32_t	special = gh_read_u16(page + GH_PAGE_SPECIAL_AT);

	if (special != page_bytes - GH_LEAF_SPECIAL_BYTES)
		return 0;
	return gh_read_aligned_u32(page + special + GH_LEAF_NEXT_AT) == 0 ? 1 : 2;
}

typedef enum GhLeafEntryKind
{
	GH_LEAF_BROKEN,			/* there is none that lies in the page as it must */
	GH_LEAF_ONE,				/* of a row */
	GH_LEAF_ELSE				/* of several, or of none: it cannot be read here */
} GhLeafEntryKind;

/*
 * The entry of a line of a leaf page, as a tuple, and the block of its row.  The tuple has all attributes
 * that an entry may have.
 */
GH_EVERYWHERE GhLeafEntryKind
gh_leaf_entry(const uint8_t *page, uint32_t page_bytes, uint32_t lines, uint32_t number, GhPageTuple *tuple,
			  uint32_t *block)
{
	const uint32_t low_bits = (1u << GH_LINE_OFFSET_BITS) - 1;
	uint32_t	line;
	uint32_t	length;
	uint32_t	at;
	uint32_t	info;

	if (number < 1 || number > lines)
		return GH_LEAF_BROKEN;
	line = gh_read_aligned_u32(page + GH_PAGE_LINES_AT + (number - 1) * GH_LINE_BYTES);
	if (((line >> GH_LINE_OFFSET_BITS) & ((1u << GH_LINE_STATE_BITS) - 1)) != GH_LINE_NORMAL)
		return GH_LEAF_BROKEN;
	at = line & low_bits;
	length = line >> (GH_LINE_OFFSET_BITS + GH_LINE_STATE_BITS);
	if (at < GH_PAGE_LINES_AT + lines * GH_LINE_BYTES || at % GH_TUPLE_ALIGNMENT != 0 || at + length > page_bytes ||
		length < GH_LEAF_DATA)
		return GH_LEAF_BROKEN;
	info = gh_read_u16(page + at + GH_LEAF_INFO_AT);
	tuple->has_nulls = (info & GH_LEAF_HAS_NULL) != 0;
	tuple->data = at + (tuple->has_nulls ? GH_LEAF_DATA_NULLS : GH_LEAF_DATA);
	tuple->end = at + (info & GH_LEAF_BYTES_MASK);
	tuple->natts = GH_LEAF_ATTRIBUTES;
	/* bits of NULLs are where a tuple with such a header has them */
	tuple->header = at + GH_LEAF_BITS_AT - GH_TUPLE_BITS_AT;
	if (tuple->end > at + length || tuple->data > tuple->end)
		return GH_LEAF_BROKEN;
	*block = (uint32_t) gh_read_u16(page + at + GH_LEAF_BLOCK_AT) << 16 | gh_read_u16(page + at + GH_LEAF_BLOCK_AT + 2);
	return (info & GH_LEAF_OTHER) != 0 ? GH_LEAF_ELSE : GH_LEAF_ONE;
}

/* Whether an attribute that the tuple has is NULL. */
GH_EVERYWHERE bool
gh_page_is_null(const uint8_t *page, const GhPageTuple *tuple, uint32_t attribute)
{
	return tuple->has_nulls &&
		(page[tuple->header + GH_TUPLE_BITS_AT + attribute / 8] >> attribute % 8 & 1) == 0;
}

/*
 * Whether the shape's first attributes, as many as its prefix, are at their places: the
 * tuple has them, none is NULL, and it is long enough.
 */
GH_EVERYWHERE bool
gh_page_has_prefix(const GhPageShape *shape, const uint8_t *page, const GhPageTuple *tuple)
{
	const uint8_t *bits = page + tuple->header + GH_TUPLE_BITS_AT;
	uint32_t	rest = (1u << shape->prefix % 8) - 1;

	if (tuple->natts < shape->prefix || tuple->end - tuple->data < shape->prefix_bytes)
		return false;
	if (!tuple->has_nulls)
		return true;
	for (uint32_t i = 0; i < shape->prefix / 8; i++)
		if (bits[i] != 0xff)
			return false;
	return rest == 0 || (bits[shape->prefix / 8] & rest) == rest;
}

/* ------------------------------------------------------------ its attributes */

typedef enum GhPlaceKind
{
	GH_PLACE_HERE,				/* offset and length are its */
	GH_PLACE_NULL,
	GH_PLACE_MISSING,			/* the tuple is older than the column */
	GH_PLACE_ELSEWHERE,			/* compressed, or not in the page: cannot be read here */
	GH_PLACE_BROKEN				/* outside of the tuple: the page is not to be trusted */
} GhPlaceKind;

/* Where a value lies; a varlena's without its header. */
typedef struct GhPlace
{
	GhPlaceKind kind;
	uint32_t	offset;			/* bytes from the page's start */
	uint32_t	length;			/* bytes */
} GhPlace;

/* How far a tuple's attributes have been stepped over. */
typedef struct GhPageWalk
{
	uint32_t	next;			/* attribute, from 0 */
	uint32_t	offset;			/* where the one before it ends, from the page's start */
} GhPageWalk;

GH_EVERYWHERE GhPlace
gh_place(GhPlaceKind kind, uint32_t offset, uint32_t length)
{
	GhPlace		place;

	place.kind = kind;
	place.offset = offset;
	place.length = length;
	return place;
}

/*
 * Bytes in front of a varlena's value, and all of its bytes, which may be more than there is
 * room; 0 where there is no such varlena.  room is not 0.
 */
GH_EVERYWHERE uint32_t
gh_varlena_bytes(const uint8_t *at, uint32_t room, uint32_t *header, GhPlaceKind *kind)
{
	uint32_t	bytes;

	*kind = GH_PLACE_HERE;
	if (at[0] == GH_VARLENA_EXTERNAL)
	{
		*kind = GH_PLACE_ELSEWHERE;
		*header = GH_VARLENA_EXTERNAL_HEADER;
		bytes = GH_VARLENA_ON_DISK_BYTES;
		if (room < *header || at[1] != GH_VARLENA_TAG_ON_DISK)
			return 0;
	}
	else if (at[0] & GH_VARLENA_SHORT_BIT)
	{
		*header = 1;
		bytes = at[0] >> GH_VARLENA_SHORT_SHIFT;
	}
	else
	{
		*header = GH_VARLENA_HEADER;
		if (room < *header)
			return 0;
		bytes = gh_read_u32(at) >> GH_VARLENA_LONG_SHIFT;
		if ((at[0] & GH_VARLENA_KIND_BITS) == GH_VARLENA_COMPRESSED)
		{
			*kind = GH_PLACE_ELSEWHERE;
			*header = GH_VARLENA_COMPRESSED_HEADER;
		}
	}
	return bytes < *header ? 0 : bytes;
}

/* Steps over the next attribute, which the tuple has, and tells where it is. */
GH_EVERYWHERE GhPlace
gh_page_step(const GhPageShape *shape, const uint8_t *page, const GhPageTuple *tuple,
			 GhPageWalk *walk)
{
	GhPageAttribute attribute = shape->attributes[walk->next];
	uint32_t	at = walk->offset;
	uint32_t	bytes = (uint32_t) attribute.length;
	uint32_t	header = 0;
	GhPlaceKind kind = GH_PLACE_HERE;

	if (gh_page_is_null(page, tuple, walk->next++))
		return gh_place(GH_PLACE_NULL, 0, 0);
	/* a varlena whose header is one byte follows at once; padding is of zeros */
	if (attribute.length >= 0 || (at < tuple->end && page[at] == 0))
		at = gh_align_up(at, attribute.alignment);
	if (at > tuple->end)
		return gh_place(GH_PLACE_BROKEN, 0, 0);
	if (attribute.length < 0)
		bytes = at < tuple->end ?
			gh_varlena_bytes(page + at, tuple->end - at, &header, &kind) : 0;
	if (bytes == 0 || bytes > tuple->end - at)
		return gh_place(GH_PLACE_BROKEN, 0, 0);
	walk->offset = at + bytes;
	return gh_place(kind, at + header, bytes - header);
}

/*
 * Where an attribute of the shape lies that is not before walk->next.  The walk starts
 * as {0, tuple->data} or, in a tuple that has the prefix, behind that.
 */
GH_EVERYWHERE GhPlace
gh_page_find(const GhPageShape *shape, const uint8_t *page, const GhPageTuple *tuple,
			 GhPageWalk *walk, uint32_t attribute)
{
	if (attribute >= tuple->natts)
		return gh_place(GH_PLACE_MISSING, 0, 0);
	while (walk->next < attribute)
		if (gh_page_step(shape, page, tuple, walk).kind == GH_PLACE_BROKEN)
			return gh_place(GH_PLACE_BROKEN, 0, 0);
	return gh_page_step(shape, page, tuple, walk);
}

/* ---------------------------------------------------------------- its values */

/* The bits of the float8 that is this float4. */
GH_EVERYWHERE uint64_t
gh_float4_bits(uint32_t bits)
{
	float		narrow;
	double		wide;
	uint64_t	result;

	memcpy(&narrow, &bits, sizeof(narrow));
	wide = narrow;
	memcpy(&result, &wide, sizeof(result));
	return result;
}

/*
 * What a vector holds for the value at a place of kind GH_PLACE_HERE, whose length is that
 * of the column's attribute.  False: the value cannot be read here.
 */
GH_EVERYWHERE bool
gh_page_load(const GhColumn *column, const uint8_t *page, GhPlace place, uint64_t *low,
			 uint64_t *high)
{
	const uint8_t *at = page + place.offset;

	switch (column->load)
	{
		case GH_LOAD_INT2:
			*low = (uint64_t) (int64_t) (int16_t) gh_read_u16(at);
			return true;
		case GH_LOAD_INT4:
			*low = (uint64_t) (int64_t) (int32_t) gh_read_u32(at);
			return true;
		case GH_LOAD_OID:
			*low = gh_read_u32(at);
			return true;
		case GH_LOAD_INT8:
		case GH_LOAD_FLOAT8:
			*low = gh_read_u64(at);
			return true;
		case GH_LOAD_FLOAT4:
			*low = gh_float4_bits(gh_read_u32(at));
			return true;
		case GH_LOAD_BOOL:
			*low = at[0];
			return at[0] <= 1;
		case GH_LOAD_NUMERIC:
			return gh_numeric_read(at, place.length, column->scale, low, high);
		case GH_LOAD_TEXT:
		case GH_LOAD_FIXED:
			*low = (uint64_t) (uintptr_t) at;
			*high = place.length;
			return true;
	}
	return false;
}

#ifdef __cplusplus
}
#endif

#endif							/* GPUHASH_PAGE_H */
