/*
 * cpu_pattern.h
 *		LIKE by the parts of its pattern, for the CPU engine.
 */
#ifndef GH_CPU_PATTERN_H
#define GH_CPU_PATTERN_H

#include "engine/program/program_text.h"

#define GH_PATTERN_PARTS 8
#define GH_PATTERN_BYTES 128

/* What is between the % of a pattern that has no _, in order. */
typedef struct GhPattern
{
	GhText		parts[GH_PATTERN_PARTS];	/* they refer to bytes below */
	uint32_t	nparts;
	bool		at_begin;		/* the first one is where the text begins */
	bool		at_end;			/* the last one is where it ends */
	uint64_t	length;			/* of all parts together: no text that matches is shorter */
	unsigned char bytes[GH_PATTERN_BYTES];
} GhPattern;

extern bool gh_pattern_read(GhText pattern, GhPattern *parts);
extern bool gh_pattern_matches(const GhPattern *parts, GhText text);

#endif							/* GH_CPU_PATTERN_H */
