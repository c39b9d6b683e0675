/*
 * wide_texts.h
 *		Columns whose texts are wide.
 */
#ifndef GPUHASH_WIDE_TEXTS_H
#define GPUHASH_WIDE_TEXTS_H

#include "postgres.h"

#include "nodes/pathnodes.h"

/*
 * Wide texts are this long at the least, whatever is stored of them: about what is compressed
 * (TOAST_TUPLE_THRESHOLD).
 */
#define GH_WIDE_TEXT_BYTES 2048.0

extern bool gh_is_wide_text(PlannerInfo *root, Node *column);
extern bool gh_read_wide_texts(PlannerInfo *root, List *exprs);
extern bool gh_has_wide_texts(PlannerInfo *root, const RelOptInfo *rel, const Bitmapset *columns);
extern double gh_text_width(PlannerInfo *root, Expr *text);

#endif							/* GPUHASH_WIDE_TEXTS_H */
