/*
 * key_values.h
 *		Statistics of all of a column's values.
 */
#ifndef GPUHASH_KEY_VALUES_H
#define GPUHASH_KEY_VALUES_H

#include "postgres.h"

#include "access/htup.h"
#include "catalog/pg_attribute.h"

/*
 * So many values are told apart, which the planner compares each with each common value of the other side:
 * 100 by default, 10,000 at most.
 */
#define GH_KEY_COMMON_MAX 256

/* ---- key_statistics.c ---- */

extern bool gh_key_has_statistics(Form_pg_attribute attribute);
extern HeapTuple gh_key_statistics(PlannerInfo *root, Form_pg_attribute attribute, Datum *values,
								   int nvalues, double nrows, const Var *other);

#endif							/* GPUHASH_KEY_VALUES_H */
