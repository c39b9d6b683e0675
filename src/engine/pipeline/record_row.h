/*
 * record_row.h
 *		What a pipeline does with the values of one row, for the CPU and the device: which lines of a
 *		page are asked for and visible, which keys are equal, and which values may be summed.
 */
#ifndef GPUHASH_RECORD_ROW_H
#define GPUHASH_RECORD_ROW_H

#include "engine/pipeline/record.h"
#include "engine/program/program_row.h"

/* --------------------------------------------------------------------- lines */

/* Does the request ask for the line of this number, from 1 to page->lines? */
GH_EVERYWHERE bool
gh_line_is_asked(const GhPageRef *page, const uint64_t *bitmaps, uint32_t number)
{
	return page->bitmap == GH_PAGE_ALL_LINES ||
		(bitmaps[page->bitmap + (number - 1) / 64] >> (number - 1) % 64 & 1) != 0;
}

/* Is it a normal line pointer?  The page has as many lines. */
GH_EVERYWHERE bool
gh_line_is_normal(const uint8_t *page, uint32_t number)
{
	uint32_t	line = gh_read_aligned_u32(page + GH_PAGE_LINES_AT + (number - 1) * GH_LINE_BYTES);

	return ((line >> GH_LINE_OFFSET_BITS) & ((1u << GH_LINE_STATE_BITS) - 1)) == GH_LINE_NORMAL;
}

/* Was the tuple of a normal line not yet there when the page was asked for? */
GH_EVERYWHERE bool
gh_line_is_newer(const GhPageRef *asked, const uint8_t *page, uint32_t number)
{
	uint32_t	line = gh_read_u32(page + GH_PAGE_LINES_AT + (number - 1) * GH_LINE_BYTES);

	return (line & ((1u << GH_LINE_OFFSET_BITS) - 1)) < asked->hinted;
}

/* ------------------------------------------------------------ visible tuples */

/*
 * What is told of a tuple by its header, to a snapshot that sees all that was committed by
 * transactions before one (GhPipelineSource.seen_before).
 */
typedef enum GhTupleSeen
{
	GH_SEEN_UNTOLD,				/* the row is handed back */
	GH_SEEN_VISIBLE,
	GH_SEEN_INVISIBLE,
	GH_SEEN_DELETED				/* invisible, if the transaction that deleted it is before that one */
} GhTupleSeen;

/* Is a transaction before another one?  As TransactionIdPrecedes(). */
GH_EVERYWHERE bool
gh_xid_is_before(uint32_t xid, uint32_t other)
{
	if (xid < GH_XID_FIRST_NORMAL || other < GH_XID_FIRST_NORMAL)
		return xid < other;
	return (int32_t) (xid - other) < 0;
}

/*
 * By infomask and xmin.  A lock is no deletion, whoever has it.  Rules that need to know more than that a
 * transaction has committed, or are for tuples of old, are left to the caller.
 */
GH_EVERYWHERE GhTupleSeen
gh_line_header_tells(uint32_t infomask, uint32_t xmin, uint32_t seen_before)
{
	uint32_t	inserted = infomask & GH_TUPLE_XMIN_FROZEN;

	if ((infomask & GH_TUPLE_MOVED) != 0)
		return GH_SEEN_UNTOLD;
	if (inserted == GH_TUPLE_XMIN_INVALID)
		return GH_SEEN_INVISIBLE;
	if (inserted == 0 ||
		(inserted == GH_TUPLE_XMIN_COMMITTED && !gh_xid_is_before(xmin, seen_before)))
		return GH_SEEN_UNTOLD;
	if ((infomask & (GH_TUPLE_XMAX_INVALID | GH_TUPLE_XMAX_LOCK_ONLY)) != 0)
		return GH_SEEN_VISIBLE;
	if ((infomask & (GH_TUPLE_XMAX_COMMITTED | GH_TUPLE_XMAX_IS_MULTI | GH_TUPLE_XMAX_LOCKS)) ==
		GH_TUPLE_XMAX_COMMITTED)
		return GH_SEEN_DELETED;
	return GH_SEEN_UNTOLD;
}

/*
 * Of a tuple of a page, or of a copy of the page which was made from `original`.
 *
 * Others may write to the header meanwhile.  While an infomask says that the deleter is committed, xmax
 * is that one, and stays so; before, xmax may have been somebody else, who did not delete it.  So
 * xmax is read after the infomask, and from the original, since loads of a copy have no order.  All
 * else is right whichever came first: xmin does not change once it is known to be committed.
 */
GH_EVERYWHERE GhTupleSeen
gh_line_judge(const uint8_t *page, const void *original, uint32_t header, uint32_t seen_before)
{
	const uint8_t *mask_at = page + header + GH_TUPLE_INFOMASK_AT;
	const uint8_t *xmax_at = (const uint8_t *) original + header + GH_TUPLE_XMAX_AT;
	GhTupleSeen	seen;
	uint32_t	infomask;
	uint32_t	xmax;

#ifdef __CUDA_ARCH__
	infomask = gh_read_u16(mask_at);
#else
	infomask = __atomic_load_n((const uint16_t *) mask_at, __ATOMIC_ACQUIRE);
#endif
	seen = gh_line_header_tells(infomask, gh_read_u32(page + header + GH_TUPLE_XMIN_AT), seen_before);
	if (seen != GH_SEEN_DELETED)
		return seen;
#ifdef __CUDA_ARCH__
	/* not what a cache may still have of it */
	xmax = __ldcv((const uint32_t *) xmax_at);
#else
	xmax = __atomic_load_n((const uint32_t *) xmax_at, __ATOMIC_RELAXED);
#endif
	return gh_xid_is_before(xmax, seen_before) ? GH_SEEN_INVISIBLE : GH_SEEN_UNTOLD;
}

/*
 * Copies a page to which others may write, from its end to its begin: so that of each tuple xmax, which comes
 * first in it, is read after the infomask, as gh_line_judge() would have it.  Then the copy can be its own
 * original.
 */
static inline void
gh_page_copy_backwards(void *to, const void *from, size_t bytes)
{
	uint64_t   *words = (uint64_t *) to;
	const uint64_t *source = (const uint64_t *) from;

	for (size_t i = bytes / sizeof(uint64_t); i-- > 0;)
		words[i] = __atomic_load_n(&source[i], __ATOMIC_ACQUIRE);
}

/* ------------------------------------------------------------- keys of tables */

/* A key with the next part behind it, whose vector has this value. */
GH_EVERYWHERE uint64_t
gh_key_part_add(uint64_t key, const GhKeyPart *part, uint64_t low)
{
	if (part->bits == 64)
		return low;
	return key << part->bits | (low & ((UINT64_C(1) << part->bits) - 1));
}

/* ---------------------------------------------------------------------- keys */

#define GH_CODE_OF_NULL UINT64_C(0x13198a2e03707344)

/* The bytes that tell which texts are equal. */
GH_EVERYWHERE GhText
gh_record_key_text(const GhRecordKey *key, const GhValue *value)
{
	GhText		text = gh_value_text(value);

	return key->padded ? gh_text_unpadded(text) : text;
}

/* The hash of a row's keys up to this one, from that of those before, or the seed. */
GH_EVERYWHERE uint64_t
gh_record_key_hash(const GhRecordKey *key, const GhValue *value, uint64_t hash)
{
	if (value->null)
		return gh_code_mix(hash + GH_CODE_OF_NULL);
	return gh_code_of_value(key->padded ? (uint8_t) GH_CLASS_BPCHAR : key->value_class, value->low, value->high, hash);
}

GH_EVERYWHERE bool
gh_record_key_equal(const GhRecordKey *key, const GhValue *a, const GhValue *b)
{
	if (a->null | b->null)
		return a->null == b->null;
	if (key->value_class == GH_CLASS_TEXT)
		return gh_text_equal(gh_record_key_text(key, a), gh_record_key_text(key, b));
	if (gh_class_is_float(key->value_class))
		return gh_code_of_float(a->low) == gh_code_of_float(b->low);
	return a->low == b->low && (key->value_class != GH_CLASS_INT128 || a->high == b->high);
}

/* Classes whose values have a high word. */
GH_EVERYWHERE bool
gh_class_has_high(uint8_t value_class)
{
	return value_class == GH_CLASS_INT128 || value_class == GH_CLASS_TEXT;
}

/* -------------------------------------------------------------------- groups */

/* In a device's memory a group is this, and its keys behind it; `bytes` is not used. */
GH_EVERYWHERE GhRecordValue *
gh_record_keys(const GhRecordHead *group)
{
	return (GhRecordValue *) (group + 1);
}

/* Key k of a group whose texts lie at texts + low. */
GH_EVERYWHERE GhValue
gh_record_group_value(const GhRecordKey *key, const GhRecordHead *group, uint32_t k, const char *texts)
{
	const GhRecordValue *held = &gh_record_keys(group)[k];
	GhValue		value = {held->low, held->high, (uint8_t) (group->nulls >> k & 1)};

	if (key->value_class == GH_CLASS_TEXT)
		value.low += (uint64_t) (uintptr_t) texts;
	return value;
}

/* ---------------------------------------------------------------------- sums */

/*
 * A device adds many rows at a time, and cannot take one out again whose sum turns out not to
 * fit.  So pipelines hand rows back that have a value from these powers of two on, and take no more
 * than GH_PIPELINE_ROWS_MAX (2^40) rows: no sum, square, product on the way or merge of them comes
 * near what 128 bits, or a float8, can hold, and which rows go back depends on each row alone.
 * Infinities and NaN are no matter: sums of them raise no error.
 */
#define GH_SUM_BITS 86		/* of INT128: 86 + 40 < 127 */
#define GH_SQUARE_BITS 43	/* of INT and INT128: 2 * 43 + 40 < 127 */
#define GH_SUM_EXPONENT 980	/* of FLOAT8: 980 + 40 < 1023 */
#define GH_SQUARE_EXPONENT 400 /* 2 * (400 + 40 + 1) + 40 < 1023 */

/* Is the magnitude of an integer less than 2^bits, or is it -2^bits?  bits is below 127. */
GH_EVERYWHERE bool
gh_int_within(uint64_t low, uint64_t high, int bits)
{
	GhInt128	value = gh_int128(low, high) >> bits;

	return value == 0 || value == -1;
}

GH_EVERYWHERE bool
gh_float_within(uint64_t bits, uint64_t exponent)
{
	uint64_t	biased = bits >> 52 & 0x7ff;

	return biased == 0x7ff || biased < 1023 + exponent;
}

GH_EVERYWHERE bool
gh_aggregate_is_sum(const GhAggregate *aggregate)
{
	return aggregate->kind == GH_AGGREGATE_SUM || aggregate->kind == GH_AGGREGATE_MOMENTS;
}

/* May a value that is not NULL be added by an aggregate that is a sum? */
GH_EVERYWHERE bool
gh_aggregate_fits(const GhAggregate *aggregate, uint64_t low, uint64_t high)
{
	bool		squares = aggregate->kind == GH_AGGREGATE_MOMENTS;

	if (gh_class_is_float(aggregate->value_class))
		return gh_float_within(low, squares ? GH_SQUARE_EXPONENT : GH_SUM_EXPONENT);
	if (aggregate->value_class == GH_CLASS_INT)
		high = gh_sign_extension(low);
	return gh_int_within(low, high, squares ? GH_SQUARE_BITS : GH_SUM_BITS);
}

#endif							/* GPUHASH_RECORD_ROW_H */
