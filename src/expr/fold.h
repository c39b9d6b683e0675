/*
 * fold.h
 *		fold.c: what has no columns in an expression, made constants for one execution.
 */
#ifndef GPUHASH_SCAN_FOLD_H
#define GPUHASH_SCAN_FOLD_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "expr/translate.h"

extern Node *gh_fold_constants(PlanState *ps, Node *expr, ParamExecData **awaited);
extern bool gh_translate_conditions(PlanState *ps, GhTranslation *translation, const List *conditions, int *failed,
									ParamExecData **awaited);

#endif							/* GPUHASH_SCAN_FOLD_H */
