/*
 * page_writer.h
 *		Heap pages of random tuples, and leaf pages of random entries, with what each of their attributes
 *		holds.
 *
 * Written by what PostgreSQL's documentation says of pages, without engine/page.h.
 */
#ifndef PAGE_WRITER_H
#define PAGE_WRITER_H

#include "conformance.h"
#include "engine/page/cpu_page.h"

#define WRITER_NATTS_MAX 70
#define WRITER_TUPLES_MAX GH_VECTOR_ROWS

/* What reading an attribute of a tuple must give. */
typedef enum WrittenKind
{
	WRITTEN_VALUE,				/* low, and high where the load has one */
	WRITTEN_TEXT,				/* the bytes at low, of the page, as many as high */
	WRITTEN_NULL,
	WRITTEN_MISSING,
	WRITTEN_UNREADABLE
} WrittenKind;

typedef struct Written
{
	WrittenKind kind;
	uint64_t	low;
	uint64_t	high;
} Written;

/* A relation: its attributes, and how a column of each may be loaded. */
typedef struct Relation
{
	uint32_t	page_bytes;
	uint32_t	natts;
	GhPageAttribute attributes[WRITER_NATTS_MAX];
	GhColumn	loads[WRITER_NATTS_MAX];
	uint32_t	nulls;			/* a value is NULL so many times in 100 */
	uint32_t	odd;			/* the same for one that cannot be read */
	uint32_t	shorter;		/* the same for a tuple without the last attributes */
	bool		plain;			/* tuples without NULLs have no bitmap of them; entries are of one row, none dead */
	bool		leaves;			/* they are entries of leaf pages */
} Relation;

/* A page of its tuples, at the very end of its memory. */
typedef struct WrittenPage
{
	const Relation *relation;
	uint8_t    *page;
	uint32_t	ntuples;
	uint16_t	numbers[WRITER_TUPLES_MAX]; /* offset numbers */
	uint32_t	starts[WRITER_TUPLES_MAX];	/* bytes: where the tuple's header is */
	uint32_t	lengths[WRITER_TUPLES_MAX]; /* bytes */
	Written		(*values)[WRITER_NATTS_MAX];	/* by tuple */
	/* of a leaf page, by entry */
	uint32_t	blocks[WRITER_TUPLES_MAX];	/* of its row */
	bool		others[WRITER_TUPLES_MAX];	/* it is of several rows, or of none */
} WrittenPage;

extern void relation_draw(Context *c, Relation *relation);
extern void page_draw(Context *c, const Relation *relation, WrittenPage *written);
extern void page_drop(WrittenPage *written);
/* Writes a value, which may be one that cannot be read, behind `at` of the page; returns where it ends. */
extern uint32_t attribute_write(Context *c, const Relation *relation, uint32_t number, uint8_t *page,
								uint32_t at, Written *written);

/* leaf_writer.c: an index in the place of the relation, and a leaf page of it. */
extern void leaf_relation_draw(Context *c, Relation *relation);
extern void leaf_draw(Context *c, const Relation *relation, WrittenPage *written);

/* Stored numerics without a varlena header, which take that many bytes of a buffer. */
#define NUMERIC_BYTES_MAX 64
extern uint32_t numeric_write(uint8_t *to, bool negative, unsigned __int128 magnitude,
							  uint32_t scale, bool long_header);
extern uint32_t numeric_draw(Context *c, uint8_t *to, uint32_t scale, bool odd, Written *written);

#endif							/* PAGE_WRITER_H */
