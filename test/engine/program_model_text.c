/*
 * program_model_text.c
 *		What patterns and substrings should come to: by the characters of a text, one after the other.
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

Outcome
model_text(const GhInstruction *in, const GhValue *args, GhValue *result)
{
	GhText		text = gh_text(args[0].low, args[0].high);
	bool		utf8 = in->op == GH_OP_LIKE_UTF8 || in->op == GH_OP_ILIKE_UTF8 || in->op == GH_OP_SUBSTRING_UTF8;
	size_t		begins[64];
	size_t		count = characters_of(text, utf8, begins);
	GhInt128	first = (int64_t) args[1].low;
	GhInt128	end = first + (int64_t) args[2].low;

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
			first = first < 1 ? 1 : first > (GhInt128) count + 1 ? (GhInt128) count + 1 : first;
			end = end < first ? first : end > (GhInt128) count + 1 ? (GhInt128) count + 1 : end;
			result->low = args[0].low + begins[first - 1];
			result->high = begins[end - 1] - begins[first - 1];
			return OUTCOME_VALUE;
		default:
			result->low = model_like(text, begins, 0, count, gh_text(args[1].low, args[1].high), 0,
									 in->op == GH_OP_ILIKE || in->op == GH_OP_ILIKE_UTF8);
			return OUTCOME_VALUE;
	}
}
