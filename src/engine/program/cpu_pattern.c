/*
 * cpu_pattern.c
 *		LIKE by the parts of its pattern: '%special%requests%' is two texts, one behind the other.
 *
 * A part is looked for by its first and its last byte, at 16 places at a time: few places have both.  That is
 * what W. Mula calls the generic algorithm of "SIMD-friendly algorithms for substring searching".
 */
#include <string.h>

#include "engine/program/cpu_pattern.h"

#define GH_LANES 16

typedef unsigned char Lanes __attribute__((vector_size(GH_LANES)));
typedef uint64_t Halves __attribute__((vector_size(GH_LANES)));

/* False: it has a character that stands for any, or too many parts or bytes; gh_text_matches does those. */
bool
gh_pattern_read(GhText pattern, GhPattern *parts)
{
	uint64_t	used = 0;
	uint64_t	begin = 0;
	uint64_t	i;

	parts->nparts = 0;
	parts->at_begin = pattern.length == 0 || pattern.bytes[0] != '%';
	parts->at_end = true;
	for (i = 0; i <= pattern.length; i++)
	{
		if (i == pattern.length || pattern.bytes[i] == '%')
		{
			/* nothing before the first % or behind the last one is no part, nor is nothing between two */
			parts->at_end = used > begin || pattern.length == 0;
			if (parts->at_end)
			{
				if (parts->nparts == GH_PATTERN_PARTS)
					return false;
				parts->parts[parts->nparts++] = gh_text((uint64_t) (uintptr_t) (parts->bytes + begin), used - begin);
			}
			begin = used;
			continue;
		}
		if (pattern.bytes[i] == '_' || used == GH_PATTERN_BYTES)
			return false;
		if (pattern.bytes[i] == '\\' && ++i == pattern.length)
			return false;
		parts->bytes[used++] = pattern.bytes[i];
	}
	parts->length = used;
	return true;
}

static inline Lanes
load(const unsigned char *bytes)
{
	Lanes		lanes;

	memcpy(&lanes, bytes, sizeof(lanes));
	return lanes;
}

static inline bool
is_at(const unsigned char *bytes, GhText part)
{
	return part.length == 0 || memcmp(bytes, part.bytes, part.length) == 0;
}

/* The first of `count` places where the part is; NULL: none. */
static const unsigned char *
find_by_byte(const unsigned char *bytes, uint64_t count, GhText part)
{
	const unsigned char *end = bytes + count;

	while (bytes < end && (bytes = memchr(bytes, part.bytes[0], (size_t) (end - bytes))) != NULL)
	{
		if (is_at(bytes, part))
			return bytes;
		bytes++;
	}
	return NULL;
}

/* Likewise, of 16 places. */
static inline const unsigned char *
find_in_lanes(const unsigned char *bytes, GhText part, Lanes first, Lanes last)
{
	Lanes		both = (Lanes) ((load(bytes) == first) & (load(bytes + part.length - 1) == last));
	Halves		halves = (Halves) both;

	if ((halves[0] | halves[1]) == 0)
		return NULL;
	for (int i = 0; i < GH_LANES; i++)
		if (both[i] != 0 && is_at(bytes + i, part))
			return bytes + i;
	return NULL;
}

/* The first place of the part in the text, which is not shorter; NULL: none. */
static const unsigned char *
find(GhText text, GhText part)
{
	const uint64_t count = text.length - part.length + 1;
	const Lanes none = {0};
	const Lanes first = none + part.bytes[0];
	const Lanes last = none + part.bytes[part.length - 1];
	uint64_t	at;

	if (count < GH_LANES)
		return find_by_byte(text.bytes, count, part);
	for (at = 0; at < count; at += GH_LANES)
	{
		/* the last ones are looked at twice, for nothing behind the text may be read */
		const uint64_t place = at + GH_LANES <= count ? at : count - GH_LANES;
		const unsigned char *found = find_in_lanes(text.bytes + place, part, first, last);

		if (found != NULL)
			return found;
	}
	return NULL;
}

/* Each part as early as it can be: so there is most room for those behind it. */
bool
gh_pattern_matches(const GhPattern *parts, GhText text)
{
	uint32_t	next = 0;
	uint32_t	end = parts->nparts;

	if (text.length < parts->length)
		return false;
	if (parts->at_begin && end > 0)
	{
		const GhText part = parts->parts[next++];

		if (!is_at(text.bytes, part) || (parts->at_end && end == 1 && text.length != part.length))
			return false;
		text.bytes += part.length;
		text.length -= part.length;
	}
	if (parts->at_end && end > next)
	{
		const GhText part = parts->parts[--end];

		text.length -= part.length;
		if (!is_at(text.bytes + text.length, part))
			return false;
	}
	for (; next < end; next++)
	{
		const GhText part = parts->parts[next];
		const unsigned char *found = text.length < part.length ? NULL : find(text, part);

		if (found == NULL)
			return false;
		text.length -= (uint64_t) (found - text.bytes) + part.length;
		text.bytes = found + part.length;
	}
	return true;
}
