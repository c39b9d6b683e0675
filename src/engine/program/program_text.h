/*
 * program_text.h
 *		What an instruction does to the texts of one row: comparisons of bytes.
 *
 * That is PostgreSQL's equality under every deterministic collation, and its order under C
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

/* text = ANY (list); the caller deals with NULLs. */
GH_EVERYWHERE bool
gh_text_in(const GhProgram *program, const GhList *list, GhText text, bool padded)
{
	const char *block = (const char *) program;
	const GhListText *values = (const GhListText *) (block + list->values);
	uint32_t	i;

	if (padded)
		text = gh_text_unpadded(text);
	for (i = 0; i < list->count; i++)
	{
		GhText		value;

		value.bytes = (const unsigned char *) block + values[i].offset;
		value.length = values[i].length;
		if (gh_text_equal(text, padded ? gh_text_unpadded(value) : value))
			return true;
	}
	return false;
}

/* By operation and class: f(a, b). */
#define GH_TEXT_COMPARISONS(X) \
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
