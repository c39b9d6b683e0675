/*
 * parts.h
 *		Several relations that are read as one: what is decided alike while a query is planned and when it runs.
 */
#ifndef GPUHASH_FRAGMENT_PARTS_H
#define GPUHASH_FRAGMENT_PARTS_H

#include "postgres.h"

#include "nodes/pg_list.h"

/* ---- parts.c ---- */

extern bool gh_exprs_are_alike(List *exprs, Index table, const List *others, Index other);

#endif							/* GPUHASH_FRAGMENT_PARTS_H */
