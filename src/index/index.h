/*
 * index.h
 *		What the files of the access method gpuhash share.
 */
#ifndef GPUHASH_INDEX_H
#define GPUHASH_INDEX_H

#include "postgres.h"

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

/* ---- btree.c ---- */

extern void gh_index_init(void);
extern IndexBuildResult *gh_index_build(Relation heap, Relation index, IndexInfo *info);
extern bool gh_index_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
							IndexUniqueCheck unique, bool unchanged, IndexInfo *info);
extern IndexBulkDeleteResult *gh_index_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *result,
											  IndexBulkDeleteCallback callback, void *state);

#endif
