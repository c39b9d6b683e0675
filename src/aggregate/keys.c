/*
 * keys.c
 *		The keys of rows and groups: which are equal, and the codes that stand for them.
 *
 * Equal is what is equal for PostgreSQL: -0 and 0, all NaNs, bpchar with any number of trailing
 * blanks, and NULLs.  Values that are equal have the same code.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"

#include "aggregate/groups.h"
#include "engine/program/program_text.h"
#include "hash.h"

/* Known to anybody: the engine hashes codes once more, with a seed that is secret. */
#define GH_CODE_SEED UINT64CONST(0x243f6a8885a308d3)
#define GH_CODE_NULL UINT64CONST(0x13198a2e03707344)

/* The bytes that tell which texts are equal. */
static inline GhText
compared_text(const GhValueType *type, const GhSqlValue *value)
{
	GhText		text = gh_text(value->low, value->high);

	return type->type == BPCHAROID ? gh_text_unpadded(text) : text;
}

/* Floats are equal where this is: -0 and 0, all NaNs. */
static inline uint64
float_code(uint64 bits)
{
	uint64		magnitude = bits << 1;

	if (magnitude == 0)
		return 0;
	return magnitude > UINT64CONST(0x7ff) << 53 ? GH_SUM_NAN : bits;
}

static inline uint64
hash_value(const GhValueType *type, const GhSqlValue *value, uint64 hash)
{
	if (value->kind == GH_SQL_NULL)
		return gh_mix64(hash + GH_CODE_NULL);
	if (gh_value_is_bytes(type, value))
	{
		GhText		text = compared_text(type, value);

		return hash_bytes_extended(text.bytes, (int) text.length, hash);
	}
	if (gh_class_is_float(type->value_class))
		return gh_mix64(hash + float_code(value->low));
	hash = gh_mix64(hash + value->low);
	return type->value_class == GH_CLASS_INT128 ? gh_mix64(hash + value->high) : hash;
}

/* The hash of keys up to this one, from that of those before, or 0; the same in every process. */
uint64
gh_hash_key(const GhValueType *type, const GhSqlValue *key, uint64 hash)
{
	return hash_value(type, key, hash);
}

static inline bool
same_value(const GhValueType *type, const GhSqlValue *a, const GhSqlValue *b)
{
	if (a->kind != b->kind || a->kind == GH_SQL_NULL)
		return a->kind == b->kind;
	if (gh_value_is_bytes(type, a))
		return gh_text_equal(compared_text(type, a), compared_text(type, b));
	if (gh_class_is_float(type->value_class))
		return float_code(a->low) == float_code(b->low);
	return a->low == b->low && (type->value_class != GH_CLASS_INT128 || a->high == b->high);
}

/* The bits that a key takes in a packed code; 0: it cannot be in one. */
static int
packed_bits(const GhValueType *type)
{
	if (type->value_class == GH_CLASS_BOOL)
		return 1;
	if (type->value_class != GH_CLASS_INT || type->typlen < 1 || type->typlen > 8)
		return 0;
	return type->typlen * 8;
}

bool
gh_choose_packing(GhGroups *groups)
{
	int			shift = 0;

	if (groups->nkeys == 0 || groups->nkeys > GH_PACKED_KEYS_MAX || groups->naggregates > GH_PACKED_AGGREGATES_MAX)
		return false;
	for (int k = 0; k < groups->nkeys; k++)
	{
		int			bits = packed_bits(&groups->keys[k]);

		if (bits == 0 || shift + bits > 64)
			return false;
		groups->packing[k].shift = shift;
		groups->packing[k].bits = bits;
		shift += bits;
	}
	return true;
}

static inline uint64
packing_mask(GhPacking packing)
{
	return ~UINT64CONST(0) >> (64 - packing.bits);
}

/* A key, out of a packed code and the bits of keys that are NULL. */
GhSqlValue
gh_unpack_key(const GhGroups *groups, uint64 code, uint8 nulls, int key)
{
	const GhValueType *type = &groups->keys[key];
	GhPacking	packing = groups->packing[key];
	GhSqlValue	value = {0, 0, GH_SQL_NULL};

	if ((nulls >> key & 1) != 0)
		return value;
	value.kind = GH_SQL_HELD;
	value.low = code >> packing.shift & packing_mask(packing);
	/* only bool and oid have no sign */
	if (type->value_class == GH_CLASS_INT && type->type != OIDOID)
		value.low = (uint64) ((int64) (value.low << (64 - packing.bits)) >> (64 - packing.bits));
	return value;
}

/* The codes of the rows' values. */
void
gh_lookup_values(GhGroups *groups)
{
	GhLookup   *lookup = groups->lookup;

	lookup->any_null = false;
	for (uint32 row = 0; row < lookup->nrows; row++)
	{
		const GhSqlValue *values = &lookup->values[(Size) row * groups->nkeys];
		uint64		code = groups->packed ? 0 : GH_CODE_SEED;
		uint8		nulls = 0;

		for (int k = 0; k < groups->nkeys; k++)
			if (!groups->packed)
				code = hash_value(&groups->keys[k], &values[k], code);
			else if (values[k].kind == GH_SQL_NULL)
				nulls |= 1 << k;
			else
				code |= (values[k].low & packing_mask(groups->packing[k])) <<
					groups->packing[k].shift;
		lookup->codes[row] = code;
		lookup->nulls[row] = nulls;
		lookup->any_null |= nulls != 0;
	}
}

/* Of a group that has the code of the row. */
bool
gh_group_has_keys(const GhGroups *groups, Size group, uint32 row)
{
	const GhLookup *lookup = groups->lookup;

	if (groups->packed)
		return groups->nulls[group] == lookup->nulls[row];
	for (int k = 0; k < groups->nkeys; k++)
		if (!same_value(&groups->keys[k], &groups->values[group * groups->nkeys + k],
						&lookup->values[(Size) row * groups->nkeys + k]))
			return false;
	return true;
}
