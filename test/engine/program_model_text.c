/*
 * program_model_text.c
 *		What patterns and parts of texts should come to: by the characters of a text, one after the other.
 */
#include "program_test.h"

/* Characters of a text, of which each begins where it is told; how many. */
static size_t
characters_of(GhText text, bool utf8, size_t *begins)
{
	size_t		n = 0;
	uint64_t	left = 0;		/* bytes of the character that are still to come */

	for (uint64_t i = 0; i < text.length; i++)
	{
		unsigned char byte = text.bytes[i];

		if (left > 0 && utf8)
		{
			left--;
			continue;
		}
		begins[n++] = i;
		left = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
	}
	begins[n] = text.length;
	return n;
}

static unsigned char
lower(unsigned char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (unsigned char) (byte | 0x20) : byte;
}

/* By the definition: one part of the pattern after the other, and every length that a % may have. */
static bool
model_like(GhText text, const size_t *begins, size_t character, size_t count, GhText pattern, uint64_t at, bool folds)
{
	uint64_t	byte = begins[character];

	if (at == pattern.length)
		return byte == text.length;
	if (pattern.bytes[at] == '%')
	{
		for (; character <= count; character++)
			if (model_like(text, begins, character, count, pattern, at + 1, folds))
				return true;
		return false;
	}
	if (character == count)
		return false;
	if (pattern.bytes[at] == '_')
		return model_like(text, begins, character + 1, count, pattern, at + 1, folds);
	at += pattern.bytes[at] == '\\';
	for (; byte < begins[character + 1]; byte++, at++)
		if (at >= pattern.length || (folds ? lower(text.bytes[byte]) != lower(pattern.bytes[at]) :
									 text.bytes[byte] != pattern.bytes[at]))
			return false;
	return model_like(text, begins, character + 1, count, pattern, at, folds);
}

/* From one character up to another, of which the first one is 0; both are moved to where there is one. */
static Outcome
part_of(const GhValue *text, const size_t *begins, size_t count, GhInt128 first, GhInt128 end, GhValue *result)
{
	first = first < 0 ? 0 : first > (GhInt128) count ? (GhInt128) count : first;
	end = end < first ? first : end > (GhInt128) count ? (GhInt128) count : end;
	result->low = text->low + begins[first];
	result->high = begins[end] - begins[first];
	return OUTCOME_VALUE;
}

static bool
is_at(GhText text, GhText part, size_t byte)
{
	return text.length >= part.length && byte <= text.length - part.length &&
		(part.length == 0 || memcmp(text.bytes + byte, part.bytes, part.length) == 0);
}

/* Bytes of a set are taken away from one end. */
static Outcome
model_trim(const GhInstruction *in, GhText text, GhText set, GhValue *result)
{
	size_t		from = 0;
	size_t		to = text.length;

	for (; in->op == GH_OP_TRIM_LEFT && from < to && set.length > 0 && memchr(set.bytes, text.bytes[from], set.length); from++)
		;
	for (; in->op == GH_OP_TRIM_RIGHT && to > 0 && set.length > 0 && memchr(set.bytes, text.bytes[to - 1], set.length); to--)
		;
	result->low = (uint64_t) (uintptr_t) (text.bytes + from);
	result->high = to - from;
	return OUTCOME_VALUE;
}

/* At which character the other text begins, by trying each one. */
static Outcome
model_position(GhText text, GhText part, const size_t *begins, size_t count, GhValue *result)
{
	size_t		i;

	for (i = 0; i <= count && !is_at(text, part, begins[i]); i++)
		;
	result->low = i <= count ? i + 1 : 0;
	return OUTCOME_VALUE;
}

static bool
is_utf8(uint16_t op)
{
	switch (op)
	{
		case GH_OP_LIKE_UTF8:
		case GH_OP_ILIKE_UTF8:
		case GH_OP_SUBSTRING_UTF8:
		case GH_OP_LEFT_UTF8:
		case GH_OP_RIGHT_UTF8:
		case GH_OP_LENGTH_UTF8:
		case GH_OP_POSITION_UTF8:
			return true;
		default:
			return false;
	}
}

Outcome
model_text(const GhInstruction *in, const GhValue *args, GhValue *result)
{
	GhText		text = gh_text(args[0].low, args[0].high);
	GhText		other = gh_text(args[1].low, args[1].high);
	size_t		begins[64];
	GhInt128	count = (GhInt128) characters_of(text, is_utf8(in->op), begins);
	GhInt128	number = (int64_t) args[1].low;
	GhInt128	end = number + (int64_t) args[2].low;

	switch (in->op)
	{
		case GH_OP_UNPADDED:
			result->low = args[0].low;
			for (result->high = args[0].high; result->high > 0 && text.bytes[result->high - 1] == ' ';)
				result->high--;
			return OUTCOME_VALUE;
		case GH_OP_SUBSTRING:
		case GH_OP_SUBSTRING_UTF8:
			if (args[2].null)
			{
				result->null = 1;
				return OUTCOME_VALUE;
			}
			if ((int64_t) args[2].low < 0 || end > INT64_MAX || end < INT64_MIN)
				return OUTCOME_BACK;
			return part_of(args, begins, (size_t) count, number - 1, end - 1, result);
		case GH_OP_LEFT:
		case GH_OP_LEFT_UTF8:
			return part_of(args, begins, (size_t) count, 0, number < 0 ? count + number : number, result);
		case GH_OP_RIGHT:
		case GH_OP_RIGHT_UTF8:
			if (number <= INT32_MIN)
				return OUTCOME_BACK;
			return part_of(args, begins, (size_t) count, number < 0 ? -number : count - number, count, result);
		case GH_OP_TRIM_LEFT:
		case GH_OP_TRIM_RIGHT:
			return model_trim(in, text, other, result);
		case GH_OP_LENGTH:
		case GH_OP_LENGTH_UTF8:
			result->low = (uint64_t) count;
			return OUTCOME_VALUE;
		case GH_OP_POSITION:
		case GH_OP_POSITION_UTF8:
			return model_position(text, other, begins, (size_t) count, result);
		case GH_OP_STARTS_WITH:
			result->low = is_at(text, other, 0);
			return OUTCOME_VALUE;
		case GH_OP_NUMERIC:
		case GH_OP_NUMERIC_SCALE:
			return model_stored(in, text, result);
		default:
			result->low = model_like(text, begins, 0, (size_t) count, other, 0,
									 in->op == GH_OP_ILIKE || in->op == GH_OP_ILIKE_UTF8);
			return OUTCOME_VALUE;
	}
}
