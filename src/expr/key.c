/*
 * key.c
 *		Join keys as 64-bit integers.
 *
 * The engines compare 64-bit keys.  For the built-in hash opfamilies over
 * fixed-width types a value is encoded exactly: two encodings are equal just
 * where the operator says equal, over all the types of the family (int2 = int8,
 * float4 = float8).  Several such columns are packed into one key while their
 * bits fit.  Everything else goes through the opfamily's hash function for its
 * type and the clause's collation, and the clauses are rechecked on each match.
 *
 * What decides is the operator's hash opfamily, not the type of the column: a
 * user's own operator class over int4 may well call 1 and 11 equal.
 */
#include "postgres.h"

#include "access/hash.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/transam.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/primnodes.h"
#include "optimizer/optimizer.h"
#include "utils/catcache.h"
#include "utils/float.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "expr/key.h"
#include "hash.h"

/* ------------------------------------------------------------ planner's half */

/* The exact encoding of a type in a built-in family, and its width; or false. */
static bool
exact_encoding(Oid type, GhKeyEncoding *encoding, int *bits)
{
	switch (type)
	{
		case BOOLOID:
		case CHAROID:
			*encoding = GH_KEY_BOOL;
			*bits = 8;
			return true;
		case INT2OID:
			*encoding = GH_KEY_INT2;
			*bits = 16;
			return true;
		case INT4OID:
		case DATEOID:
			*encoding = GH_KEY_INT4;
			*bits = 32;
			return true;
		case OIDOID:
		case ANYENUMOID:
			*encoding = GH_KEY_OID;
			*bits = 32;
			return true;
		case INT8OID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			*encoding = GH_KEY_INT8;
			*bits = 64;
			return true;
		case FLOAT4OID:
			*encoding = GH_KEY_FLOAT4;
			*bits = 64;
			return true;
		case FLOAT8OID:
			*encoding = GH_KEY_FLOAT8;
			*bits = 64;
			return true;
		default:
			return false;
	}
}

/*
 * Plans a key for the hashable operator opno as one hash opfamily sees it.
 * False when the family has no hash function for one of the sides.
 */
static bool
plan_key_in_family(Form_pg_amop amop, bool outer_is_left, GhKeyPlan *key)
{
	Oid			types[2];
	int			bits[2];

	types[outer_is_left ? GH_OUTER : GH_INNER] = amop->amoplefttype;
	types[outer_is_left ? GH_INNER : GH_OUTER] = amop->amoprighttype;

	/* families made after initdb may define equality as they like */
	if (amop->amopfamily < FirstGenbkiObjectId &&
		exact_encoding(types[GH_OUTER], &key->encoding[GH_OUTER], &bits[GH_OUTER]) &&
		exact_encoding(types[GH_INNER], &key->encoding[GH_INNER], &bits[GH_INNER]))
	{
		key->hashproc[GH_OUTER] = key->hashproc[GH_INNER] = InvalidOid;
		key->bits = Max(bits[GH_OUTER], bits[GH_INNER]);
		return true;
	}

	key->bits = 0;
	for (int proc = HASHEXTENDED_PROC;; proc = HASHSTANDARD_PROC)
	{
		for (int side = GH_OUTER; side <= GH_INNER; side++)
		{
			key->encoding[side] = proc == HASHEXTENDED_PROC ? GH_KEY_HASH64 : GH_KEY_HASH32;
			key->hashproc[side] = get_opfamily_proc(amop->amopfamily, types[side],
													types[side], proc);
		}
		if (OidIsValid(key->hashproc[GH_OUTER]) && OidIsValid(key->hashproc[GH_INNER]))
			return true;
		if (proc == HASHSTANDARD_PROC)
			return false;
	}
}

/*
 * How the two sides of "outer opno inner" become integers.  False: the operator
 * cannot be hashed here, and the clause stays a join filter.
 */
bool
gh_plan_key(Oid opno, Oid collation, bool outer_is_left, GhKeyPlan *key)
{
	CatCList   *list;
	bool		found = false;

	/* a NULL key would have to match something */
	if (!op_strict(opno))
		return false;

	memset(key, 0, sizeof(*key));
	key->collation = collation;
	list = SearchSysCacheList1(AMOPOPID, ObjectIdGetDatum(opno));
	for (int i = 0; i < list->n_members && !found; i++)
	{
		Form_pg_amop amop = (Form_pg_amop) GETSTRUCT(&list->members[i]->tuple);

		if (amop->amopmethod == HASH_AM_OID &&
			amop->amopstrategy == HTEqualStrategyNumber)
			found = plan_key_in_family(amop, outer_is_left, key);
	}
	ReleaseSysCacheList(list);
	return found;
}

/*
 * What gh_plan_key makes of operators, as the planner asks again and again for the few
 * that the queries of a session have.
 */
typedef struct KnownOperator
{
	Oid			opno;			/* hash key; must be first */
	int			bits;			/* as gh_operator_key_bits tells */
	GhKeyEncoding left;			/* of its operands, if there are such bits */
	GhKeyEncoding right;
} KnownOperator;

static HTAB *known_operators = NULL;
static KnownOperator last_known;	/* nearly always the one asked for next */

/* An operator, its function, or an operator family has changed: all is forgotten. */
static void
forget_operators(Datum arg, int cacheid, uint32 hashvalue)
{
	if (known_operators != NULL)
		hash_destroy(known_operators);
	known_operators = NULL;
	last_known.opno = InvalidOid;
}

/* Makes it the last one. */
static void
know_operator(Oid opno)
{
	KnownOperator *known;
	GhKeyPlan	key = {0};
	int			bits;

	if (known_operators != NULL)
	{
		known = hash_search(known_operators, &opno, HASH_FIND, NULL);
		if (known != NULL)
		{
			last_known = *known;
			return;
		}
	}
	/* the look-ups may have it all forgotten */
	bits = gh_plan_key(opno, InvalidOid, true, &key) ? key.bits : -1;
	if (known_operators == NULL)
	{
		HASHCTL		control = {.keysize = sizeof(Oid), .entrysize = sizeof(KnownOperator)};

		known_operators = hash_create("gpuhash operators", 32, &control,
									  HASH_ELEM | HASH_BLOBS);
	}
	known = hash_search(known_operators, &opno, HASH_ENTER, NULL);
	known->bits = bits;
	known->left = key.encoding[GH_OUTER];
	known->right = key.encoding[GH_INNER];
	last_known = *known;
}

/*
 * Bits of the operator's keys, where they are encoded exactly; 0: they are hashed; -1:
 * gh_plan_key does not take it.  Neither the collation nor the side of the operator that
 * is the outer one has a say in that.
 */
int
gh_operator_key_bits(Oid opno)
{
	if (opno != last_known.opno)
		know_operator(opno);
	return last_known.bits;
}

/* How the values on one side of an operator that gh_plan_key takes are encoded. */
GhKeyEncoding
gh_operator_encoding(Oid opno, bool left)
{
	if (opno != last_known.opno)
		know_operator(opno);
	return left ? last_known.left : last_known.right;
}

/* Called by _PG_init. */
void
gh_key_init(void)
{
	CacheRegisterSyscacheCallback(AMOPOPID, forget_operators, (Datum) 0);
	CacheRegisterSyscacheCallback(AMPROCNUM, forget_operators, (Datum) 0);
	CacheRegisterSyscacheCallback(OPEROID, forget_operators, (Datum) 0);
	CacheRegisterSyscacheCallback(PROCOID, forget_operators, (Datum) 0);
}

/* Whether the keys (GhKeyPlan pointers) pack into one without loss. */
bool
gh_keys_are_exact(List *keys)
{
	ListCell   *lc;
	int			bits = 0;

	foreach(lc, keys)
	{
		GhKeyPlan  *key = (GhKeyPlan *) lfirst(lc);

		if (key->bits == 0)
			return false;
		bits += key->bits;
	}
	return bits <= GH_KEY_BITS;
}

/* ----------------------------------------------------------- executor's half */

/* Values that PostgreSQL calls equal get equal bits: -0 and 0, every NaN. */
static inline uint64
encode_float8(float8 value)
{
	union
	{
		float8		f;
		uint64		u;
	}			bits;

	if (value == 0)
		value = 0;
	if (isnan(value))
		value = get_float8_nan();
	bits.f = value;
	return bits.u;
}

static inline uint64
encode_datum(GhKeyColumn *column, Datum value)
{
	switch (column->encoding)
	{
		case GH_KEY_BOOL:
			return DatumGetUInt8(value);
		case GH_KEY_INT2:
			return (uint64) (int64) DatumGetInt16(value);
		case GH_KEY_INT4:
			return (uint64) (int64) DatumGetInt32(value);
		case GH_KEY_INT8:
			return (uint64) DatumGetInt64(value);
		case GH_KEY_OID:
			return DatumGetObjectId(value);
		case GH_KEY_FLOAT4:
			return encode_float8((float8) DatumGetFloat4(value));
		case GH_KEY_FLOAT8:
			return encode_float8(DatumGetFloat8(value));
		case GH_KEY_HASH32:
			return DatumGetUInt32(FunctionCall1Coll(&column->hash, column->collation,
													value));
		case GH_KEY_HASH64:
			return DatumGetUInt64(FunctionCall2Coll(&column->hash, column->collation,
													value, UInt64GetDatum(0)));
	}
	pg_unreachable();
}

/*
 * The key of the row in slot; false when one of its columns is NULL.  The slot
 * is deformed as far as the keys need.  Columns that are expressions read the
 * scan tuple of econtext, which the caller has loaded.  Hash functions may leave
 * memory (detoasted values) in CurrentMemoryContext.
 */
bool
gh_encode_key(GhKeySide *side, TupleTableSlot *slot, ExprContext *econtext,
			  uint64 *key)
{
	uint64		result = 0;

	for (int i = 0; i < side->ncolumns; i++)
	{
		GhKeyColumn *column = &side->columns[i];
		Datum		value;
		bool		isnull;
		uint64		code;

		if (column->attno > 0)
		{
			value = slot->tts_values[column->attno - 1];
			isnull = slot->tts_isnull[column->attno - 1];
		}
		else
			value = ExecEvalExpr(column->expr, econtext, &isnull);
		if (isnull)
			return false;
		code = encode_datum(column, value);

		if (!side->exact)
			result = gh_mix64(result + code + UINT64CONST(0x9e3779b97f4a7c15));
		else if (column->bits == GH_KEY_BITS)
			result = code;
		else
			result = (result << column->bits) | gh_code_bits(code, column->bits);
	}
	*key = result;
	return true;
}
