/*
 * program_text.h
 *		What an instruction does to the texts of one row: comparisons of bytes, patterns, parts.
 *
 * Comparisons are PostgreSQL's equality under every deterministic collation, and its order under C
 * only.  A blank-padded text (BPCHAR) is what stands before its trailing blanks.  Unlike
 * the functions of numbers these follow addresses, so that they are called only for
 * rows that are live and not NULL.
 */
#ifndef GH_PROGRAM_TEXT_H
#define GH_PROGRAM_TEXT_H

#include "engine/program/program_ops.h"

#include <string.h>

typedef struct GhText
{
	const unsigned char *bytes;
	uint64_t	length;
} GhText;

GH_EVERYWHERE GhText
gh_text(uint64_t low, uint64_t high)
{
	GhText		text;

	text.bytes = (const unsigned char *) (uintptr_t) low;
	text.length = high;
	return text;
}

GH_EVERYWHERE GhText
gh_text_unpadded(GhText text)
{
	while (text.length > 0 && text.bytes[text.length - 1] == ' ')
		text.length--;
	return text;
}

/* Less than 0, 0 or greater, as memcmp(), which kernels do not have. */
GH_EVERYWHERE int
gh_bytes_compare(const unsigned char *a, const unsigned char *b, uint64_t length)
{
#ifdef __CUDA_ARCH__
	uint64_t	i;

	for (i = 0; i < length; i++)
		if (a[i] != b[i])
			return (int) a[i] - (int) b[i];
	return 0;
#else
	return length > 0 ? memcmp(a, b, length) : 0;
#endif
}

GH_EVERYWHERE int
gh_text_compare(GhText a, GhText b)
{
	int			order = gh_bytes_compare(a.bytes, b.bytes, a.length < b.length ? a.length : b.length);

	return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

/* Most texts that differ have different lengths. */
GH_EVERYWHERE bool
gh_text_equal(GhText a, GhText b)
{
	return a.length == b.length && gh_bytes_compare(a.bytes, b.bytes, a.length) == 0;
}

#define GH_DEFINE_TEXT_COMPARISON(name, condition) \
GH_EVERYWHERE uint64_t \
gh_text_##name(GhText a, GhText b) \
{ \
	return condition; \
} \
\
GH_EVERYWHERE uint64_t \
gh_bpchar_##name(GhText a, GhText b) \
{ \
	return gh_text_##name(gh_text_unpadded(a), gh_text_unpadded(b)); \
}
GH_DEFINE_TEXT_COMPARISON(eq, gh_text_equal(a, b))
GH_DEFINE_TEXT_COMPARISON(ne, !gh_text_equal(a, b))
GH_DEFINE_TEXT_COMPARISON(lt, gh_text_compare(a, b) < 0)
GH_DEFINE_TEXT_COMPARISON(le, gh_text_compare(a, b) <= 0)
GH_DEFINE_TEXT_COMPARISON(gt, gh_text_compare(a, b) > 0)
GH_DEFINE_TEXT_COMPARISON(ge, gh_text_compare(a, b) >= 0)

/*
 * The order of the texts of a list, which is quick to find one by: shorter ones first, without blanks at their ends.  padded: these do
 * not count at all, so that such texts as are then equal are beside each other.
 */
GH_EVERYWHERE int
gh_text_list_compare(GhText a, GhText b, bool padded)
{
	GhText		x = gh_text_unpadded(a);
	GhText		y = gh_text_unpadded(b);
	int			order;

	if (x.length != y.length)
		return x.length < y.length ? -1 : 1;
	order = gh_bytes_compare(x.bytes, y.bytes, x.length);
	return order != 0 || padded ? order : (a.length > b.length) - (a.length < b.length);
}

GH_EVERYWHERE GhText
gh_list_text(const GhProgram *program, GhListText value)
{
	GhText		text;

	text.bytes = (const unsigned char *) program + value.offset;
	text.length = value.length;
	return text;
}

/* The slot of a list from which on a text is looked for; blanks at its end, which may not count, do not. */
GH_EVERYWHERE uint32_t
gh_list_slot(GhText text)
{
	const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
	GhText		unpadded = gh_text_unpadded(text);
	uint64_t	code = unpadded.length;
	uint64_t	at = 0;
	uint64_t	rest = 0;

	for (; at + 8 <= unpadded.length; at += 8)
	{
		code = (code ^ gh_read_u64(unpadded.bytes + at)) * odd;
		code ^= code >> 32;
	}
	for (; at < unpadded.length; at++)
		rest = rest << 8 | unpadded.bytes[at];
	code = (code ^ rest) * odd;
	return (uint32_t) (((code ^ code >> 32) * odd) >> (64 - GH_LIST_SLOT_BITS));
}

/* text = ANY (list), by the list's slots. */
GH_EVERYWHERE bool
gh_text_in_slots(const GhProgram *program, const GhList *list, GhText text, bool padded)
{
	const GhListText *values = (const GhListText *) ((const char *) program + list->values);
	const uint16_t *slots = (const uint16_t *) ((const char *) program + list->slots);
	uint32_t	at = gh_list_slot(text);

	/* whoever has made the program may have left no slot free */
	for (uint32_t i = 0; i < GH_LIST_SLOTS && slots[at] != 0; i++)
	{
		if (gh_text_list_compare(gh_list_text(program, values[slots[at] - 1]), text, padded) == 0)
			return true;
		at = (at + 1) % GH_LIST_SLOTS;
	}
	return false;
}

/* text = ANY (list); padded: blanks at their ends do not count.  The caller deals with NULLs. */
GH_EVERYWHERE bool
gh_text_in(const GhProgram *program, const GhList *list, GhText text, bool padded)
{
	const GhListText *values = (const GhListText *) ((const char *) program + list->values);
	uint32_t	first = 0;
	uint32_t	count = list->count;

	if (list->slots != 0)
		return gh_text_in_slots(program, list, text, padded);
	while (count > 1)			/* values[first] <= text, if any is */
	{
		uint32_t	half = count / 2;

		if (gh_text_list_compare(gh_list_text(program, values[first + half]), text, padded) <= 0)
			first += half;
		count -= half;
	}
	return count > 0 && gh_text_list_compare(gh_list_text(program, values[first]), text, padded) == 0;
}

/* ------------------------------------------------------------------ patterns */

/* Bytes of the character at a place, which is within the text. */
GH_EVERYWHERE uint64_t
gh_character_bytes(GhText text, uint64_t at, bool utf8)
{
	unsigned char lead = text.bytes[at];
	uint64_t	bytes = !utf8 || lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	return bytes < text.length - at ? bytes : text.length - at;
}

GH_EVERYWHERE unsigned char
gh_folded(unsigned char byte, bool folds)
{
	return folds && byte >= 'A' && byte <= 'Z' ? (unsigned char) (byte - 'A' + 'a') : byte;
}

/* From a place on, the first one where a byte is: the text's length, if there is none. */
GH_EVERYWHERE uint64_t
gh_find_byte(GhText text, uint64_t at, unsigned char byte)
{
#ifdef __CUDA_ARCH__
	while (at < text.length && text.bytes[at] != byte)
		at++;
	return at;
#else
	const unsigned char *found = at < text.length ?
		(const unsigned char *) memchr(text.bytes + at, byte, text.length - at) : NULL;

	return found != NULL ? (uint64_t) (found - text.bytes) : text.length;
#endif
}

/* Whether the pattern goes on with a byte that stands for itself. */
GH_EVERYWHERE bool
gh_is_plain(GhText pattern, uint64_t at)
{
	return at < pattern.length && pattern.bytes[at] != '%' && pattern.bytes[at] != '_' && pattern.bytes[at] != '\\';
}

/*
 * text LIKE pattern.  What a % stands for is as short as it can be, and only that of the last one may become longer.
 * Bytes that stand for themselves are compared as such: in UTF-8, too, a character is found nowhere else.
 */
GH_EVERYWHERE bool
gh_text_matches(GhText text, GhText pattern, bool utf8, bool folds)
{
	uint64_t	at = 0;
	uint64_t	in_pattern = 0;
	uint64_t	behind_any = 0;	/* in the pattern; 0: there was no % */
	uint64_t	begin = 0;		/* of what is matched behind it */

	while (at < text.length)
	{
		uint64_t	literal = in_pattern;
		unsigned char next = in_pattern < pattern.length ? pattern.bytes[in_pattern] : 0;

		if (in_pattern < pattern.length && next == '%')
		{
			behind_any = ++in_pattern;
			if (behind_any == pattern.length)
				return true;
			if (!folds && gh_is_plain(pattern, in_pattern))
				at = gh_find_byte(text, at, pattern.bytes[in_pattern]);
			begin = at;
			continue;
		}
		if (in_pattern < pattern.length && next == '_')
		{
			at += gh_character_bytes(text, at, utf8);
			in_pattern++;
			continue;
		}
		literal += in_pattern < pattern.length && next == '\\';
		if (literal < pattern.length &&
			gh_folded(text.bytes[at], folds) == gh_folded(pattern.bytes[literal], folds))
		{
			at++;
			in_pattern = literal + 1;
			continue;
		}
		if (behind_any == 0)
			return false;
		begin += gh_character_bytes(text, begin, utf8);
		if (!folds && gh_is_plain(pattern, behind_any))
			begin = gh_find_byte(text, begin, pattern.bytes[behind_any]);
		at = begin;
		in_pattern = behind_any;
	}
	while (in_pattern < pattern.length && pattern.bytes[in_pattern] == '%')
		in_pattern++;
	return in_pattern == pattern.length;
}

GH_EVERYWHERE uint64_t
gh_text_like(GhText text, GhText pattern)
{
	return gh_text_matches(text, pattern, false, false);
}

GH_EVERYWHERE uint64_t
gh_text_like_utf8(GhText text, GhText pattern)
{
	return gh_text_matches(text, pattern, true, false);
}

GH_EVERYWHERE uint64_t
gh_text_ilike(GhText text, GhText pattern)
{
	return gh_text_matches(text, pattern, false, true);
}

GH_EVERYWHERE uint64_t
gh_text_ilike_utf8(GhText text, GhText pattern)
{
	return gh_text_matches(text, pattern, true, true);
}

/* --------------------------------------------------------------------- parts */

/* From a place on, behind so many characters, or the text's end. */
GH_EVERYWHERE uint64_t
gh_skip_characters(GhText text, uint64_t at, uint64_t count, bool utf8)
{
	if (!utf8)
		return count < text.length - at ? at + count : text.length;
	for (; count > 0 && at < text.length; count--)
		at += gh_character_bytes(text, at, true);
	return at;
}

/* Characters `first` up to first + count of the text, of which the first one is 1. */
GH_EVERYWHERE GhText
gh_text_substring(GhText text, uint64_t first, uint64_t count, bool utf8, uint64_t *bad)
{
	uint64_t	beyond = 0;
	int64_t		end = (int64_t) gh_int_add(first, count, 8, &beyond);
	int64_t		begin = (int64_t) first > 1 ? (int64_t) first : 1;
	uint64_t	at;

	*bad |= beyond | ((int64_t) count < 0);
	if (*bad != 0 || end <= begin)
		return gh_text((uint64_t) (uintptr_t) text.bytes, 0);
	at = gh_skip_characters(text, 0, (uint64_t) begin - 1, utf8);
	return gh_text((uint64_t) (uintptr_t) (text.bytes + at),
				   gh_skip_characters(text, at, (uint64_t) (end - begin), utf8) - at);
}

GH_EVERYWHERE uint64_t
gh_text_characters(GhText text, bool utf8)
{
	uint64_t	count = 0;
	uint64_t	at = 0;

	if (!utf8)
		return text.length;
	for (; at < text.length; count++)
		at += gh_character_bytes(text, at, true);
	return count;
}

/* The first characters: `count`, or all but as many, if it is negative. */
GH_EVERYWHERE GhText
gh_text_left(GhText text, int64_t count, bool utf8)
{
	if (count < 0)
	{
		count += (int64_t) gh_text_characters(text, utf8);
		if (count < 0)
			count = 0;
	}
	return gh_text((uint64_t) (uintptr_t) text.bytes, gh_skip_characters(text, 0, (uint64_t) count, utf8));
}

/* Likewise the last ones.  PostgreSQL takes the least int4 for another number. */
GH_EVERYWHERE GhText
gh_text_right(GhText text, int64_t count, bool utf8, uint64_t *bad)
{
	int64_t		skipped = 0;
	uint64_t	at;

	*bad |= count <= INT32_MIN;
	if (count >= 0)
		skipped = (int64_t) gh_text_characters(text, utf8) - count;
	else if (*bad == 0)
		skipped = -count;
	at = gh_skip_characters(text, 0, (uint64_t) (skipped > 0 ? skipped : 0), utf8);
	return gh_text((uint64_t) (uintptr_t) (text.bytes + at), text.length - at);
}

GH_EVERYWHERE GhText
gh_text_trim_left(GhText text, GhText set)
{
	uint64_t	at = 0;

	while (at < text.length && gh_find_byte(set, 0, text.bytes[at]) < set.length)
		at++;
	return gh_text((uint64_t) (uintptr_t) (text.bytes + at), text.length - at);
}

GH_EVERYWHERE GhText
gh_text_trim_right(GhText text, GhText set)
{
	while (text.length > 0 && gh_find_byte(set, 0, text.bytes[text.length - 1]) < set.length)
		text.length--;
	return text;
}

/* ------------------------------------------------------------- texts in texts */

GH_EVERYWHERE uint64_t
gh_text_starts_with(GhText text, GhText start)
{
	return text.length >= start.length && gh_bytes_compare(text.bytes, start.bytes, start.length) == 0;
}

/* In UTF-8, too, a character's bytes are found nowhere but where it is. */
GH_EVERYWHERE uint64_t
gh_text_find(GhText text, GhText part, bool utf8)
{
	uint64_t	at = 0;

	if (part.length == 0)
		return 1;
	for (;; at++)
	{
		at = gh_find_byte(text, at, part.bytes[0]);
		if (at >= text.length || text.length - at < part.length)
			return 0;
		if (gh_bytes_compare(text.bytes + at, part.bytes, part.length) == 0)
			return gh_text_characters(gh_text((uint64_t) (uintptr_t) text.bytes, at), utf8) + 1;
	}
}

GH_EVERYWHERE uint64_t
gh_text_position(GhText text, GhText part)
{
	return gh_text_find(text, part, false);
}

GH_EVERYWHERE uint64_t
gh_text_position_utf8(GhText text, GhText part)
{
	return gh_text_find(text, part, true);
}

/* By operation and class: f(a, b). */
#define GH_TEXT_COMPARISONS(X) \
	X(GH_OP_LIKE, GH_CLASS_TEXT, gh_text_like) \
	X(GH_OP_LIKE_UTF8, GH_CLASS_TEXT, gh_text_like_utf8) \
	X(GH_OP_ILIKE, GH_CLASS_TEXT, gh_text_ilike) \
	X(GH_OP_ILIKE_UTF8, GH_CLASS_TEXT, gh_text_ilike_utf8) \
	X(GH_OP_POSITION, GH_CLASS_TEXT, gh_text_position) \
	X(GH_OP_POSITION_UTF8, GH_CLASS_TEXT, gh_text_position_utf8) \
	X(GH_OP_STARTS_WITH, GH_CLASS_TEXT, gh_text_starts_with) \
	X(GH_OP_EQ, GH_CLASS_TEXT, gh_text_eq) \
	X(GH_OP_NE, GH_CLASS_TEXT, gh_text_ne) \
	X(GH_OP_LT, GH_CLASS_TEXT, gh_text_lt) \
	X(GH_OP_LE, GH_CLASS_TEXT, gh_text_le) \
	X(GH_OP_GT, GH_CLASS_TEXT, gh_text_gt) \
	X(GH_OP_GE, GH_CLASS_TEXT, gh_text_ge) \
	X(GH_OP_EQ, GH_CLASS_BPCHAR, gh_bpchar_eq) \
	X(GH_OP_NE, GH_CLASS_BPCHAR, gh_bpchar_ne) \
	X(GH_OP_LT, GH_CLASS_BPCHAR, gh_bpchar_lt) \
	X(GH_OP_LE, GH_CLASS_BPCHAR, gh_bpchar_le) \
	X(GH_OP_GT, GH_CLASS_BPCHAR, gh_bpchar_gt) \
	X(GH_OP_GE, GH_CLASS_BPCHAR, gh_bpchar_ge)

#endif							/* GH_PROGRAM_TEXT_H */
