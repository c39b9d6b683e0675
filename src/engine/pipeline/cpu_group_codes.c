/*
 * cpu_group_codes.c
 *		Codes that stand for the keys of groups on the CPU.
 *
 * Keys that are integers, truth values or texts of a few bytes are packed as long as 64 bits are enough for all of them.  Which
 * widths those need, no program says: each key starts with its share of the 64 bits.  When a value comes that needs more,
 * the widths are chosen anew by all values so far, or, where 64 bits are too few, codes are hashes from then on.
 * A float alone is packed as well: by the bits that tell which floats are equal.
 *
 * Codes are made column by column.
 */
#include "engine/pipeline/cpu_groups.h"

/* A truth value is packed as an integer with sign. */
#define TRUTH_BITS 2

/* ------------------------------------------------------------------ packing */

/* Texts of up to so many bytes are packed: their bytes, above how many they are. */
#define TEXT_BYTES 7
#define LENGTH_BITS 3
/* What stands for a longer one: more bits than there are. */
#define LONG_TEXT UINT64_MAX

/* Is the key an integer, or is it packed as one of up to 64 bits? */
static bool
is_integer(const GhRecordKey *key)
{
	return key->value_class == GH_CLASS_INT || key->value_class == GH_CLASS_TEXT;
}

/* A text as an integer that tells it from all others, or LONG_TEXT. */
static inline uint64_t
integer_of_text(const GhRecordKey *key, const GhValue *value)
{
	GhText		text = gh_record_key_text(key, value);
	uint64_t	bytes = 0;
	uint32_t	four;
	uint16_t	two;

	if (text.length > TEXT_BYTES)
		return LONG_TEXT;
	/* the last ones first */
	if (text.length & 1)
		bytes = text.bytes[text.length - 1];
	if (text.length & 2)
	{
		memcpy(&two, text.bytes + (text.length & 4), sizeof(two));
		bytes = bytes << 16 | two;
	}
	if (text.length & 4)
	{
		memcpy(&four, text.bytes, sizeof(four));
		bytes = bytes << 32 | four;
	}
	return bytes << LENGTH_BITS | text.length;
}

/* Bits of integers with sign, all of whose magnitudes are in `seen`. */
static uint32_t
bits_for(uint64_t seen)
{
	return seen == 0 ? 1 : 65 - (uint32_t) __builtin_clzll(seen);
}

/* What is below 0 is turned over: the highest bit that is left is the one below the sign. */
static inline uint64_t
magnitude(uint64_t value)
{
	return value ^ gh_sign_extension(value);
}

static uint32_t
needed_bits(const GhCpuPacking *packing, const GhGroupsSink *sink, uint32_t k)
{
	uint32_t	bits = bits_for(packing->seen[k]);

	return sink->keys[k].value_class == GH_CLASS_BOOL && bits < TRUTH_BITS ? TRUTH_BITS : bits;
}

/* What values so far do not need is shared by the integers. */
static void
choose_widths(GhCpuPacking *packing, const GhGroupsSink *sink)
{
	uint32_t	needed = 0;
	uint32_t	integers = 0;
	uint32_t	shift = 0;

	for (uint32_t k = 0; k < sink->nkeys; k++)
	{
		needed += needed_bits(packing, sink, k);
		integers += is_integer(&sink->keys[k]);
	}
	/* a slot has a bit for each key, too */
	packing->packed = needed <= 64 && sink->nkeys <= 32;
	for (uint32_t k = 0; k < sink->nkeys && packing->packed; k++)
	{
		uint32_t	bits = needed_bits(packing, sink, k);

		if (is_integer(&sink->keys[k]))
		{
			uint32_t	share = (64 - needed) / integers--;

			bits += share;
			needed += share;
		}
		packing->bits[k] = (uint8_t) bits;
		packing->shift[k] = (uint8_t) shift;
		shift += bits;
	}
}

void
gh_cpu_packing_init(GhCpuPacking *packing, const GhGroupsSink *sink)
{
	bool		alone = sink->nkeys == 1 && gh_class_is_float(sink->keys[0].value_class);

	memset(packing, 0, sizeof(*packing));
	for (uint32_t k = 0; k < sink->nkeys && !alone; k++)
		if (!is_integer(&sink->keys[k]) && sink->keys[k].value_class != GH_CLASS_BOOL)
			return;
	choose_widths(packing, sink);
	if (sink->nkeys == 1)
		packing->bits[0] = 64;
}

/* One key of all bits: whatever the value is, it fits. */
static void
pack_alone(const GhGroupsSink *sink, const GhVectorBatch *batch, uint64_t *codes)
{
	const uint64_t *low = batch->vectors[sink->keys[0].vector].low;
	const uint8_t *null = batch->vectors[sink->keys[0].vector].null;
	uint32_t	rows = gh_loop_rows(batch->nrows);
	bool		is_float = gh_class_is_float(sink->keys[0].value_class);

	for (uint32_t i = 0; i < rows; i++)
		codes[i] = low[i] & ((uint64_t) null[i] - 1);
	for (uint32_t i = 0; is_float && i < batch->nrows; i++)
		codes[i] = gh_code_of_float(codes[i]);
}

/* Adds a key to the codes; false: some row's does not fit. */
static bool
pack_key(GhCpuPacking *packing, uint32_t k, const GhVector *vector, const GhVectorBatch *batch, uint64_t *codes)
{
	uint64_t	below = UINT64_MAX >> (64 - packing->bits[k]);
	uint32_t	shift = packing->shift[k];
	uint32_t	rows = gh_loop_rows(batch->nrows);
	const uint8_t *state = batch->state;
	const uint64_t *low = vector->low;
	const uint8_t *null = vector->null;
	uint64_t	seen = 0;

	for (uint32_t i = 0; i < rows; i++)
	{
		/* of rows that are not live the value is anything */
		uint64_t	counts = 0 - (uint64_t) ((state[i] == GH_ROW_LIVE) & (null[i] == 0));
		uint64_t	value = low[i] & counts;

		seen |= magnitude(value);
		codes[i] |= (value & below) << shift;
	}
	packing->seen[k] |= seen;
	return bits_for(seen) <= packing->bits[k];
}

/* The same of a key that is text. */
static bool
pack_text(GhCpuPacking *packing, uint32_t k, const GhRecordKey *key, const GhVectorBatch *batch, uint64_t *codes)
{
	const GhVector *vector = &batch->vectors[key->vector];
	uint64_t	seen = 0;

	for (uint32_t i = 0; i < batch->nrows; i++)
	{
		GhValue		value = {vector->low[i], vector->high[i], vector->null[i]};
		uint64_t	integer;

		/* others lead nowhere */
		if (batch->state[i] != GH_ROW_LIVE || value.null)
			continue;
		integer = integer_of_text(key, &value);
		seen |= integer;
		codes[i] |= integer << packing->shift[k];
	}
	packing->seen[k] |= seen;
	return bits_for(seen) <= packing->bits[k];
}

static void
pack_nulls(const GhGroupsSink *sink, const GhVectorBatch *batch, GhCpuCodes *codes)
{
	for (uint32_t k = 0; k < sink->nkeys; k++)
	{
		const uint8_t *null = batch->vectors[sink->keys[k].vector].null;

		if (memchr(null, 1, batch->nrows) == NULL)
			continue;
		if (!codes->any_null)
			memset(codes->nulls, 0, batch->nrows * sizeof(*codes->nulls));
		codes->any_null = true;
		for (uint32_t i = 0; i < batch->nrows; i++)
			codes->nulls[i] |= (uint32_t) null[i] << k;
	}
}

static bool
pack(GhCpuPacking *packing, const GhGroupsSink *sink, const GhVectorBatch *batch, GhCpuCodes *codes)
{
	bool		fits = true;

	pack_nulls(sink, batch, codes);
	if (sink->nkeys == 1 && sink->keys[0].value_class != GH_CLASS_TEXT)
	{
		pack_alone(sink, batch, codes->codes);
		return true;
	}
	memset(codes->codes, 0, gh_loop_rows(batch->nrows) * sizeof(*codes->codes));
	for (uint32_t k = 0; k < sink->nkeys; k++)
		fits &= sink->keys[k].value_class == GH_CLASS_TEXT ? pack_text(packing, k, &sink->keys[k], batch, codes->codes) :
			pack_key(packing, k, &batch->vectors[sink->keys[k].vector], batch, codes->codes);
	if (!fits)
		choose_widths(packing, sink);
	return fits;
}

/* ------------------------------------------------------------------- hashes */

/* Of all rows of the batch, also those that are not live: their values are anything, but texts' bytes. */
static void
hash_words(const GhRecordKey *key, const GhVector *vector, uint32_t nrows, uint64_t *hashes)
{
	bool		wide = key->value_class == GH_CLASS_INT128;
	bool		is_float = gh_class_is_float(key->value_class);

	for (uint32_t i = 0; i < nrows; i++)
	{
		uint64_t	low = is_float ? gh_code_of_float(vector->low[i]) : vector->low[i];

		hashes[i] = gh_code_mix(hashes[i] + (vector->null[i] ? GH_CODE_OF_NULL : low));
	}
	for (uint32_t i = 0; wide && i < nrows; i++)
		if (!vector->null[i])
			hashes[i] = gh_code_mix(hashes[i] + vector->high[i]);
}

static void
hash_texts(const GhRecordKey *key, const GhVectorBatch *batch, uint64_t *hashes)
{
	const GhVector *vector = &batch->vectors[key->vector];

	for (uint32_t i = 0; i < batch->nrows; i++)
	{
		GhValue		value;

		if (batch->state[i] != GH_ROW_LIVE)
			continue;
		value.low = vector->low[i];
		value.high = vector->high[i];
		value.null = vector->null[i];
		hashes[i] = gh_record_key_hash(key, &value, hashes[i]);
	}
}

static void
hash(const GhGroupsSink *sink, const GhVectorBatch *batch, uint64_t *hashes)
{
	for (uint32_t i = 0; i < batch->nrows; i++)
		hashes[i] = sink->seed;
	for (uint32_t k = 0; k < sink->nkeys; k++)
	{
		const GhRecordKey *key = &sink->keys[k];

		if (key->value_class == GH_CLASS_TEXT)
			hash_texts(key, batch, hashes);
		else
			hash_words(key, &batch->vectors[key->vector], batch->nrows, hashes);
	}
}

/* ---------------------------------------------------------------- interface */

bool
gh_cpu_make_codes(GhCpuPacking *packing, const GhGroupsSink *sink, const GhVectorBatch *batch, GhCpuCodes *codes)
{
	codes->any_null = false;
	if (packing->packed)
		return pack(packing, sink, batch, codes);
	hash(sink, batch, codes->codes);
	return true;
}

GhCpuSlot
gh_cpu_group_code(const GhCpuGrouping *groups, const GhCpuGroupKeys *keys)
{
	const GhGroupsSink *sink = groups->sink;
	const GhCpuPacking *packing = &groups->packing;
	GhCpuSlot	slot = {packing->packed ? 0 : sink->seed, 0, 0};

	for (uint32_t k = 0; k < sink->nkeys; k++)
	{
		GhValue		value = gh_cpu_group_value(groups, keys, k);

		if (!packing->packed)
			slot.code = gh_record_key_hash(&sink->keys[k], &value, slot.code);
		else if (value.null)
			slot.nulls |= UINT32_C(1) << k;
		else if (gh_class_is_float(sink->keys[k].value_class))
			slot.code = gh_code_of_float(value.low);
		else
		{
			uint64_t	integer = sink->keys[k].value_class == GH_CLASS_TEXT ?
				integer_of_text(&sink->keys[k], &value) : value.low;

			slot.code |= (integer & UINT64_MAX >> (64 - packing->bits[k])) << packing->shift[k];
		}
	}
	return slot;
}
