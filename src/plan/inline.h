/*
 * inline.h
 *		Queries in WITH that are read more than once, put in the place of each reference.
 */
#ifndef GPUHASH_INLINE_H
#define GPUHASH_INLINE_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/* ---- inline.c ---- */

extern bool gh_inline_with(Query *query);

/* ---- inline_repeat.c ---- */

extern bool gh_inline_is_repeatable(Query *with);

/* ---- inline_conditions.c ---- */

extern bool gh_inline_conditions_are_safe(Query *query);

#endif							/* GPUHASH_INLINE_H */
