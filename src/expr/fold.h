/*
 * fold.h
 *		fold.c: what has no columns in an expression, made constants for one execution.
 */
#ifndef GPUHASH_SCAN_FOLD_H
#define GPUHASH_SCAN_FOLD_H

#include "postgres.h"

#include "nodes/execnodes.h"

extern Node *gh_fold_constants(PlanState *ps, Node *expr, ParamExecData **awaited);

#endif							/* GPUHASH_SCAN_FOLD_H */
