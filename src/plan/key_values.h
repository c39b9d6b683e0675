/*
 * key_values.h
 *		Statistics of all of a column's values.
 */
#ifndef GPUHASH_KEY_VALUES_H
#define GPUHASH_KEY_VALUES_H

#include "postgres.h"

#include "access/htup.h"
#include "catalog/pg_attribute.h"

/* ---- key_statistics.c ---- */

extern bool gh_key_has_statistics(Form_pg_attribute attribute);
extern HeapTuple gh_key_statistics(Form_pg_attribute attribute, Datum *values, int nvalues, double nrows);

#endif							/* GPUHASH_KEY_VALUES_H */
