/*
 * key.h
 *		key.c: join keys as 64-bit integers.
 */
#ifndef GPUHASH_KEY_H
#define GPUHASH_KEY_H

#include "postgres.h"

#include "executor/tuptable.h"
#include "fmgr.h"
#include "nodes/execnodes.h"

/* The two inputs, as numbers in lists and indexes in arrays. */
#define GH_OUTER 0
#define GH_INNER 1

/* How one key column becomes an integer. */
typedef enum GhKeyEncoding
{
	GH_KEY_BOOL,				/* bool, "char" */
	GH_KEY_INT2,
	GH_KEY_INT4,				/* int4, date */
	GH_KEY_INT8,				/* int8, time, timestamp, timestamptz */
	GH_KEY_OID,					/* oid, enum */
	GH_KEY_FLOAT4,				/* widened to float8 */
	GH_KEY_FLOAT8,
	GH_KEY_HASH32,				/* the opfamily's 32-bit hash function */
	GH_KEY_HASH64				/* its extended hash function */
} GhKeyEncoding;

/* Whether values of different width that are equal are the same number. */
static inline bool
gh_key_is_integer(GhKeyEncoding encoding)
{
	return encoding == GH_KEY_INT2 || encoding == GH_KEY_INT4 || encoding == GH_KEY_INT8;
}

/*
 * One hash clause as planned.  "Exact" encodings are equal just where the
 * operator says equal; the others need the clause rechecked on each match.
 */
typedef struct GhKeyPlan
{
	GhKeyEncoding encoding[2];	/* by side */
	Oid			hashproc[2];	/* hash encodings: the function, else InvalidOid */
	Oid			collation;		/* the operator's input collation */
	int			bits;			/* exact: bits that tell values apart, else 0 */
} GhKeyPlan;

/* One input's keys at run time. */
typedef struct GhKeyColumn
{
	GhKeyEncoding encoding;
	int			bits;			/* shift of the packed key; 0: mix */
	int			attno;			/* in the child's slot, or 0: evaluate expr */
	ExprState  *expr;			/* over the scan tuple */
	FmgrInfo	hash;
	Oid			collation;
} GhKeyColumn;

typedef struct GhKeySide
{
	int			ncolumns;
	GhKeyColumn *columns;
	bool		exact;			/* packed; else mixed, and the clauses are rechecked */
	bool		has_exprs;		/* some column is evaluated */
} GhKeySide;

/* Bits of a key, and of one that takes 4 bytes. */
#define GH_KEY_BITS 64
#define GH_SHORT_KEY_BITS 32

/* What of an encoded value goes into a packed key: its lower bits, 1 to 64 of them. */
static inline uint64
gh_code_bits(uint64 code, int bits)
{
	return code & (~UINT64CONST(0) >> (GH_KEY_BITS - bits));
}

extern bool gh_plan_key(Oid opno, Oid collation, bool outer_is_left, GhKeyPlan *key);
extern int	gh_operator_key_bits(Oid opno);
extern GhKeyEncoding gh_operator_encoding(Oid opno, bool left);
extern bool gh_keys_are_exact(List *keys);
extern void gh_key_init(void);
extern bool gh_encode_key(GhKeySide *side, TupleTableSlot *slot,
						  ExprContext *econtext, uint64 *key);

#endif							/* GPUHASH_KEY_H */
