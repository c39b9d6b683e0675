/*
 * layout.h
 *		This server's heap pages, as engine/page.h describes them.
 */
#ifndef GPUHASH_LAYOUT_H
#define GPUHASH_LAYOUT_H

#include "postgres.h"

#include "access/tupdesc.h"

#include "compat.h"
#include "engine/page.h"

extern bool gh_layout_is_known(void);
extern GhPageAttribute gh_page_attribute(TupleDesc desc, int attno);

#endif							/* GPUHASH_LAYOUT_H */
