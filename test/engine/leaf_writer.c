/*
 * leaf_writer.c
 *		Writes leaf pages of random entries, as nbtree has them.
 */
#include "page_writer.h"

#define LEAF_NATTS_MAX 32
#define LEAF_SPECIAL_BYTES 16
#define ENTRY_BYTES_MAX 0x1fff
#define ENTRY_HAS_VARIABLE 0x4000	/* of an entry's bits, as what follows */
#define ENTRY_HAS_NULL 0x8000
#define ENTRY_IS_OTHER 0x2000

static bool
chance(Context *c, uint32_t percent)
{
	return random_below(c, 100) < percent;
}

static void
put_u16(uint8_t *to, uint32_t value)
{
	uint16_t	narrow = (uint16_t) value;

	memcpy(to, &narrow, sizeof(narrow));
}

static void
put_u32(uint8_t *to, uint32_t value)
{
	memcpy(to, &value, sizeof(value));
}

static uint32_t
aligned8(uint32_t at)
{
	return (at + 7) / 8 * 8;
}

/* Of few columns, of a fixed width or not, which most indexes have, or of any. */
void
leaf_relation_draw(Context *c, Relation *relation)
{
	do
		relation_draw(c, relation);
	while (relation->natts > LEAF_NATTS_MAX);
	relation->leaves = true;
	relation->shorter = 0;
	if (chance(c, 50))
		return;
	relation->page_bytes = 8192;
	relation->natts = 1 + (uint32_t) random_below(c, 3);
	relation->odd = 0;
	for (uint32_t i = 0; i < relation->natts; i++)
	{
		bool		wide = chance(c, 60);

		relation->attributes[i] = (GhPageAttribute) {wide ? 8 : 4, wide ? 8 : 4};
		relation->loads[i] = (GhColumn) {.attribute = (uint16_t) (i + 1)};
		relation->loads[i].load = wide ? GH_LOAD_INT8 : GH_LOAD_INT4;
	}
}

/* ------------------------------------------------------------------- entries */

/* Values behind an entry's head, and the bits of NULLs; returns where they end. */
static uint32_t
values_write(Context *c, const Relation *relation, uint8_t *to, Written *values, uint16_t *info)
{
	uint32_t	at = 8;

	for (uint32_t i = 0; i < relation->natts; i++)
	{
		values[i].kind = chance(c, relation->nulls) ? WRITTEN_NULL : WRITTEN_VALUE;
		if (values[i].kind == WRITTEN_NULL)
			*info |= ENTRY_HAS_NULL;
		if (relation->attributes[i].length < 0)
			*info |= ENTRY_HAS_VARIABLE;
	}
	if (*info & ENTRY_HAS_NULL)
	{
		at = 16;
		for (uint32_t i = 0; i < relation->natts; i++)
			to[8 + i / 8] |= (uint8_t) ((values[i].kind != WRITTEN_NULL) << i % 8);
	}
	for (uint32_t i = 0; i < relation->natts; i++)
		if (values[i].kind != WRITTEN_NULL)
			at = attribute_write(c, relation, i, to, at, &values[i]);
	return at;
}

/* A key with the places of several rows, or the key that bounds pages. */
static uint32_t
other_write(Context *c, const Relation *relation, uint8_t *to, uint32_t at, Written *values, uint16_t *info)
{
	uint32_t	count = 2 + (uint32_t) random_below(c, 20);

	*info |= ENTRY_IS_OTHER;
	for (uint32_t i = 0; i < relation->natts; i++)
		values[i].kind = WRITTEN_UNREADABLE;
	at = aligned8(at);
	if (chance(c, 20))
	{
		put_u16(to + 4, 1 + (uint32_t) random_below(c, LEAF_NATTS_MAX));
		return at;
	}
	put_u16(to, 0);
	put_u16(to + 2, at);
	put_u16(to + 4, 0x2000 | count);
	for (uint32_t i = 0; i < 6 * count; i++)
		to[at++] = (uint8_t) random_next(c);
	return at;
}

/* Writes an entry at the start of `to`, which is zero, and returns its length. */
static uint32_t
entry_write(Context *c, const Relation *relation, uint8_t *to, Written *values, uint32_t *block, bool *other)
{
	uint16_t	info = 0;
	uint32_t	bytes;

	*block = (uint32_t) random_next(c) >> random_below(c, 32);
	if (chance(c, 20))
		*block |= UINT32_C(1) << 31;
	put_u16(to, *block >> 16);
	put_u16(to + 2, *block & 0xffff);
	put_u16(to + 4, 1 + (uint32_t) random_below(c, 200));
	bytes = values_write(c, relation, to, values, &info);
	*other = !relation->plain && chance(c, 5);
	if (*other)
		bytes = other_write(c, relation, to, bytes, values, &info);
	/* nbtree's own are aligned */
	if (relation->plain || chance(c, 90))
		bytes = aligned8(bytes);
	put_u16(to + 6, info | (bytes & ENTRY_BYTES_MAX));
	return bytes;
}

/* --------------------------------------------------------------------- pages */

static void
end_page(Context *c, const WrittenPage *written, uint32_t lower, uint32_t upper, bool rightmost)
{
	uint32_t	bytes = written->relation->page_bytes;
	uint32_t	special = bytes - LEAF_SPECIAL_BYTES;

	put_u16(written->page + 12, lower);
	put_u16(written->page + 14, upper);
	put_u16(written->page + 16, special);
	put_u16(written->page + 18, bytes | 4);
	put_u32(written->page + special, (uint32_t) random_next(c));
	put_u32(written->page + special + 4, rightmost ? 0 : 1 + (uint32_t) random_below(c, UINT32_MAX));
	put_u16(written->page + special + 12, 1);
}

/*
 * Entries from the page's end downwards, as long as there is room; some line pointers are of none, or of one that
 * is known as dead.  The first one of a page with another one to its right is of a bound.
 */
void
leaf_draw(Context *c, const Relation *relation, WrittenPage *written)
{
	bool		rightmost = chance(c, 40);
	bool		full = chance(c, 50);
	uint32_t	most = full ? WRITER_TUPLES_MAX : (uint32_t) random_below(c, 100);
	uint32_t	dead = relation->plain || chance(c, 50) ? 0 : 15;
	uint32_t	lower = 24;
	uint32_t	upper = relation->page_bytes - LEAF_SPECIAL_BYTES;
	uint8_t    *entry = make_memory(64 * 1024);

	memset(written, 0, sizeof(*written));
	written->relation = relation;
	written->page = make_memory(relation->page_bytes);
	memset(written->page, 0, relation->page_bytes);
	written->values = make_memory(sizeof(*written->values) * WRITER_TUPLES_MAX);
	for (; written->ntuples < most; lower += 4)
	{
		uint32_t	n = written->ntuples;
		uint32_t	number = (lower - 24) / 4 + 1;
		uint32_t	state = !chance(c, dead) ? 1 : chance(c, 80) ? 3 : 0;
		uint32_t	bytes;

		memset(entry, 0, 64 * 1024);
		bytes = entry_write(c, relation, entry, written->values[n], &written->blocks[n], &written->others[n]);
		if (bytes > ENTRY_BYTES_MAX || lower + 4 + aligned8(bytes) > upper)
			break;
		upper -= aligned8(bytes);
		memcpy(written->page + upper, entry, bytes);
		put_u32(written->page + lower, bytes << 17 | state << 15 | upper);
		if (state != 1 || (number == 1 && !rightmost))
			continue;
		for (uint32_t i = 0; i < relation->natts; i++)
			if (written->values[n][i].kind == WRITTEN_TEXT)
				written->values[n][i].low += upper;
		written->numbers[n] = (uint16_t) number;
		written->starts[n] = upper;
		written->lengths[n] = bytes;
		written->ntuples++;
	}
	if (lower == 24)
		rightmost = true;
	end_page(c, written, lower, upper, rightmost);
	free(entry);
}
