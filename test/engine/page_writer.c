/*
 * page_writer.c
 *		Writes heap pages of random tuples.
 */
#include "page_writer.h"

static bool
chance(Context *c, uint32_t percent)
{
	return random_below(c, 100) < percent;
}

static void
put_u16(uint8_t *to, uint16_t value)
{
	memcpy(to, &value, sizeof(value));
}

static void
put_u32(uint8_t *to, uint32_t value)
{
	memcpy(to, &value, sizeof(value));
}

static uint32_t
aligned(uint32_t at, uint32_t alignment)
{
	return (at + alignment - 1) / alignment * alignment;
}

/* ----------------------------------------------------------------- relations */

static void
attribute_draw(Context *c, GhPageAttribute *attribute, GhColumn *load)
{
	static const int16_t lengths[] = {0, 2, 4, 8, 4, 1, 4, 8, -1, -1};

	load->load = (uint8_t) (GH_LOAD_INT2 + random_below(c, GH_LOAD_FIXED));
	load->missing = (uint8_t) random_below(c, 2);
	if (load->load == GH_LOAD_FIXED)
	{
		load->length = (uint16_t) (1 + random_below(c, GH_FIXED_LENGTH_MAX));
		attribute->length = (int16_t) load->length;
		attribute->alignment = (uint8_t) (1u << random_below(c, 4));
		return;
	}
	if (load->load == GH_LOAD_NUMERIC)
		load->scale = (uint16_t) random_below(c, chance(c, 50) ? 5 : GH_SCALE_MAX + 1);
	attribute->length = lengths[load->load];
	attribute->alignment = (uint8_t) (attribute->length > 0 ? attribute->length :
									  chance(c, 80) ? 4 : 8);
}

void
relation_draw(Context *c, Relation *relation)
{
	memset(relation, 0, sizeof(*relation));
	relation->page_bytes = chance(c, 80) ? 8192 : 1024u << random_below(c, 6);
	relation->natts = 1 + (uint32_t) random_below(c, chance(c, 80) ? 12 : WRITER_NATTS_MAX);
	for (uint32_t i = 0; i < relation->natts; i++)
	{
		attribute_draw(c, &relation->attributes[i], &relation->loads[i]);
		relation->loads[i].attribute = (uint16_t) (i + 1);
	}
	relation->nulls = chance(c, 40) ? 0 : (uint32_t) random_below(c, 60);
	relation->odd = chance(c, 70) ? 0 : (uint32_t) random_below(c, 20);
	relation->shorter = chance(c, 60) ? 0 : (uint32_t) random_below(c, 50);
}

/* ------------------------------------------------------------------ numerics */

/*
 * The decimal digits of the magnitude, in groups of four around the point; groups of
 * zeros at either end are not stored.
 */
uint32_t
numeric_write(uint8_t *to, bool negative, unsigned __int128 magnitude, uint32_t scale,
			  bool long_header)
{
	uint16_t	groups[32] = {0};	/* the last one is the lowest */
	int			below = (int) (scale + 3) / 4;	/* groups after the point */
	int			first = 0;
	int			last = 31;
	int			weight;
	uint32_t	bytes = 2;

	for (uint32_t place = below * 4 - scale; magnitude > 0; place++, magnitude /= 10)
	{
		static const uint16_t tens[] = {1, 10, 100, 1000};

		groups[31 - place / 4] += (uint16_t) (magnitude % 10) * tens[place % 4];
	}
	while (first < 32 && groups[first] == 0)
		first++;
	while (last >= first && groups[last] == 0)
		last--;
	weight = first == 32 ? 0 : 31 - below - first;
	if (long_header)
	{
		put_u16(to, (uint16_t) ((negative ? 0x4000 : 0) | scale));
		put_u16(to + 2, (uint16_t) weight);
		bytes = 4;
	}
	else
		put_u16(to, (uint16_t) (0x8000 | (negative ? 0x2000 : 0) | scale << 7 |
								(weight < 0 ? 0x40 : 0) | (weight & 0x3f)));
	for (; first <= last; first++, bytes += 2)
		put_u16(to + bytes, groups[first]);
	return bytes;
}

/* One that has no 128-bit integer at this scale. */
static uint32_t
odd_numeric(Context *c, uint8_t *to, uint32_t scale)
{
	static const uint16_t specials[] = {0xc000, 0xd000, 0xf000};
	unsigned __int128 half = (unsigned __int128) 1 << 127;
	bool		long_header = chance(c, 50);
	uint32_t	bytes;

	switch (random_below(c, 7))
	{
		case 0:
			put_u16(to, specials[random_below(c, 3)]);
			return 2;
		case 1:					/* too wide by one, or by more */
			return numeric_write(to, chance(c, 50), half + random_below(c, 1u << random_below(c, 30)),
								 scale, long_header);
		case 2:					/* the same value is shown otherwise */
			return numeric_write(to, chance(c, 50), random_below(c, 1000) * 10, scale + 1,
								 long_header);
		case 3:					/* a digit that is not shown */
			bytes = numeric_write(to, false, random_below(c, 1000) * 10 + 1, scale + 1, long_header);
			put_u16(to, (uint16_t) (long_header ? scale :
									(gh_read_u16(to) & ~0x1f80u) | scale << 7));
			return bytes;
		case 4:					/* no digit of base 10000 */
			bytes = numeric_write(to, false, 1 + random_below(c, 1000), scale, long_header);
			put_u16(to + bytes - 2, (uint16_t) (10000 + random_below(c, 55536)));
			return bytes;
		case 5:					/* half a digit */
			bytes = numeric_write(to, false, 1 + random_below(c, 1000), scale, long_header);
			to[bytes] = 0;
			return bytes + 1;
		default:				/* a wide one with a weight that is out of reach */
			put_u16(to, (uint16_t) scale);
			put_u16(to + 2, (uint16_t) (chance(c, 50) ? 10 + random_below(c, 32758) :
										32768 + random_below(c, 32758)));
			put_u16(to + 4, (uint16_t) (1 + random_below(c, 9999)));
			return 6;
	}
}

uint32_t
numeric_draw(Context *c, uint8_t *to, uint32_t scale, bool odd, Written *written)
{
	unsigned __int128 magnitude = (unsigned __int128) random_next(c) << 64 | random_next(c);
	unsigned __int128 value;
	bool		negative = chance(c, 50);

	if (odd)
	{
		written->kind = WRITTEN_UNREADABLE;
		return odd_numeric(c, to, scale);
	}
	magnitude >>= 1 + random_below(c, 127);
	if (chance(c, 10))
		magnitude = 0;
	for (uint64_t zeros = random_below(c, 12); zeros > 0 && magnitude < (unsigned __int128) 1 << 120; zeros--)
		magnitude *= 10;
	value = negative ? -magnitude : magnitude;
	written->kind = WRITTEN_VALUE;
	written->low = (uint64_t) value;
	written->high = (uint64_t) (value >> 64);
	return numeric_write(to, negative && magnitude > 0, magnitude, scale, chance(c, 40));
}

/* -------------------------------------------------------------------- values */

/* Bytes of a varlena without header: a numeric, or text. */
static uint32_t
varlena_draw(Context *c, const GhColumn *load, bool odd, uint8_t *to, Written *written)
{
	uint32_t	bytes;

	if (load->load == GH_LOAD_NUMERIC)
		return numeric_draw(c, to, load->scale, odd, written);
	bytes = (uint32_t) random_below(c, chance(c, 70) ? 12 : 300);
	for (uint32_t i = 0; i < bytes; i++)
		to[i] = (uint8_t) random_next(c);
	written->kind = WRITTEN_TEXT;
	written->high = bytes;
	return bytes;
}

/* Toasted, or compressed: its bytes do not matter, but their number does. */
static uint32_t
elsewhere_write(Context *c, uint8_t *page, uint32_t at, uint32_t alignment, Written *written)
{
	uint32_t	bytes = 8 + (uint32_t) random_below(c, 40);

	written->kind = WRITTEN_UNREADABLE;
	if (chance(c, 50))
	{
		memset(page + at, 0xee, 18);
		page[at] = 1;
		page[at + 1] = 18;
		return at + 18;
	}
	at = aligned(at, alignment);
	memset(page + at, 0xee, bytes);
	put_u32(page + at, bytes << 2 | 2);
	return at + bytes;
}

static uint32_t
varlena_write(Context *c, uint8_t *page, uint32_t at, const GhPageAttribute *attribute,
			  const GhColumn *load, bool odd, Written *written)
{
	uint8_t		value[512];
	uint32_t	bytes;

	if (odd && (load->load == GH_LOAD_TEXT || chance(c, 30)))
		return elsewhere_write(c, page, at, attribute->alignment, written);
	bytes = varlena_draw(c, load, odd, value, written);
	if (bytes <= 126 && chance(c, 80))
		page[at++] = (uint8_t) ((bytes + 1) << 1 | 1);
	else
	{
		at = aligned(at, attribute->alignment);
		put_u32(page + at, (bytes + 4) << 2);
		at += 4;
	}
	memcpy(page + at, value, bytes);
	if (written->kind == WRITTEN_TEXT)
		written->low = at;
	return at + bytes;
}

/* Of a type of fixed length; what it must give is said in the type's own terms. */
static uint32_t
fixed_write(Context *c, uint8_t *page, uint32_t at, const GhPageAttribute *attribute,
			const GhColumn *load, bool odd, Written *written)
{
	uint64_t	bits = random_next(c) >> random_below(c, 64);
	double		wide;
	float		narrow;

	at = aligned(at, attribute->alignment);
	written->kind = WRITTEN_VALUE;
	if (chance(c, 50))
		bits = 0 - bits;
	switch (load->load)
	{
		case GH_LOAD_INT2:
			written->low = (uint64_t) (int64_t) (int16_t) bits;
			break;
		case GH_LOAD_INT4:
			written->low = (uint64_t) (int64_t) (int32_t) bits;
			break;
		case GH_LOAD_OID:
			written->low = bits & 0xffffffff;
			break;
		case GH_LOAD_BOOL:
			bits = odd ? 2 + bits % 254 : bits % 2;
			written->low = bits;
			written->kind = odd ? WRITTEN_UNREADABLE : WRITTEN_VALUE;
			break;
		case GH_LOAD_FLOAT4:
			narrow = (float) (int64_t) bits / 1024;
			wide = narrow;
			memcpy(&bits, &narrow, sizeof(narrow));
			memcpy(&written->low, &wide, sizeof(wide));
			break;
		case GH_LOAD_FIXED:
			for (int i = 0; i < attribute->length; i++)
				page[at + (uint32_t) i] = (uint8_t) random_next(c);
			written->kind = WRITTEN_TEXT;
			written->low = at;
			written->high = (uint64_t) attribute->length;
			return at + (uint32_t) attribute->length;
		default:
			written->low = bits;
			break;
	}
	memcpy(page + at, &bits, (size_t) attribute->length);
	return at + (uint32_t) attribute->length;
}

uint32_t
attribute_write(Context *c, const Relation *relation, uint32_t number, uint8_t *page, uint32_t at,
				Written *written)
{
	const GhPageAttribute *attribute = &relation->attributes[number];
	bool		odd = chance(c, relation->odd);

	return (attribute->length < 0 ? varlena_write : fixed_write)
		(c, page, at, attribute, &relation->loads[number], odd, written);
}

/* -------------------------------------------------------------------- tuples */

/* Writes one at the start of `to`, which is zero, and returns its length. */
static uint32_t
tuple_write(Context *c, const Relation *relation, uint8_t *to, Written *values)
{
	uint32_t	natts = relation->natts;
	bool		bitmap = !relation->plain && chance(c, 10);
	uint32_t	at;

	if (chance(c, relation->shorter))
		natts = (uint32_t) random_below(c, natts + 1);
	for (uint32_t i = 0; i < relation->natts; i++)
	{
		values[i].kind = i >= natts ? WRITTEN_MISSING :
			chance(c, relation->nulls) ? WRITTEN_NULL : WRITTEN_VALUE;
		bitmap |= values[i].kind == WRITTEN_NULL;
		if (values[i].kind == WRITTEN_VALUE)
			to[23 + i / 8] |= (uint8_t) (1u << i % 8);
	}
	if (!bitmap)
		memset(to + 23, 0, (natts + 7) / 8);
	/* flags of no concern, and sometimes the room that oids took */
	put_u16(to + 18, (uint16_t) (natts | (random_next(c) & 0xe000)));
	put_u16(to + 20, (uint16_t) ((bitmap ? 1 : 0) | (random_next(c) & 0xfff0)));
	at = aligned(23 + (bitmap ? (natts + 7) / 8 : 0), 8) + (chance(c, 5) ? 8 : 0);
	to[22] = (uint8_t) at;
	for (uint32_t i = 0; i < natts; i++)
		if (values[i].kind != WRITTEN_NULL)
			at = attribute_write(c, relation, i, to, at, &values[i]);
	return at;
}

/*
 * Tuples from the page's end downwards, as long as there is room; some line pointers
 * have none.
 */
void
page_draw(Context *c, const Relation *relation, WrittenPage *written)
{
	const uint32_t states[] = {0, 2, 3};
	uint32_t	most = 1 + (uint32_t) random_below(c, WRITER_TUPLES_MAX / 8);
	uint32_t	lower = 24;
	uint32_t	upper = relation->page_bytes;
	uint8_t    *tuple = make_memory(64 * 1024);

	memset(written, 0, sizeof(*written));
	written->relation = relation;
	written->page = make_memory(relation->page_bytes);
	memset(written->page, 0, relation->page_bytes);
	written->values = make_memory(sizeof(*written->values) * WRITER_TUPLES_MAX);
	for (; written->ntuples < most; lower += 4)
	{
		uint32_t	line = states[random_below(c, 3)] << 15;

		if (lower + 4 > upper)
			break;
		if (!chance(c, 10))
		{
			uint32_t	n = written->ntuples;
			uint32_t	bytes;

			memset(tuple, 0, 64 * 1024);
			bytes = tuple_write(c, relation, tuple, written->values[n]);
			if (lower + 4 + aligned(bytes, 8) > upper)
				break;
			upper -= aligned(bytes, 8);
			memcpy(written->page + upper, tuple, bytes);
			for (uint32_t i = 0; i < relation->natts; i++)
				if (written->values[n][i].kind == WRITTEN_TEXT)
					written->values[n][i].low += upper;
			line = bytes << 17 | 1u << 15 | upper;
			written->numbers[n] = (uint16_t) ((lower - 24) / 4 + 1);
			written->starts[n] = upper;
			written->lengths[n] = bytes;
			written->ntuples++;
		}
		put_u32(written->page + lower, line);
	}
	put_u16(written->page + 12, (uint16_t) lower);
	put_u16(written->page + 14, (uint16_t) upper);
	put_u16(written->page + 16, (uint16_t) relation->page_bytes);
	put_u16(written->page + 18, (uint16_t) (relation->page_bytes | 4));
	free(tuple);
}

void
page_drop(WrittenPage *written)
{
	free(written->page);
	free(written->values);
}
