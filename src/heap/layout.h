/*
 * layout.h
 *		This server's heap pages, as engine/page.h describes them.
 */
#ifndef GPUHASH_LAYOUT_H
#define GPUHASH_LAYOUT_H

#include "postgres.h"

#include "access/tupdesc.h"
#include "catalog/pg_type.h"

#include "compat.h"
#include "engine/page/page.h"

/* Of a page's address, for the engines. */
#define GH_PAGE_ALIGNMENT 16

/* Bytes of an attribute's alignment. */
static inline uint8
gh_alignment_bytes(char attalign)
{
	return attalign == TYPALIGN_DOUBLE ? ALIGNOF_DOUBLE :
		attalign == TYPALIGN_INT ? ALIGNOF_INT :
		attalign == TYPALIGN_SHORT ? ALIGNOF_SHORT : 1;
}

/* The scale that numeric(p, s) has by its type modifier, at least VARHDRSZ; may be below 0. */
static inline int
gh_typmod_scale(int32 typmod)
{
	/* 11 bits with sign, since PostgreSQL 15 */
	return (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
}

extern bool gh_layout_is_known(void);
extern bool gh_tuples_lie_alike(TupleDesc a, TupleDesc b);
extern GhPageAttribute gh_page_attribute(TupleDesc desc, int attno);

#endif							/* GPUHASH_LAYOUT_H */
