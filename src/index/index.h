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

/* ---- build.c ---- */

extern IndexBuildResult *gh_index_build(Relation heap, Relation index, IndexInfo *info);

#endif
