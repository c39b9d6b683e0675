/*
 * groups.c
 *		The groups of one process: from the keys of a row to the number of its group.
 *
 * A hash table leads from a code, 64 bits that stand for a group's keys, to a group; groups of one
 * code are chained.  Where all keys are integers or truth values and fit
 * in 64 bits together, the code is made of the keys themselves ("packed"), and a group has
 * beside it one byte that tells which keys are NULL.  Otherwise the code is a hash value, and a
 * group has its keys in full, which are compared whatever the code says.
 *
 * Rows are looked up some hundred at a time:
 *	1. The codes of all rows, and where each belongs in the table, which is fetched into cache.
 *	2. Row by row, the first group of the code, then the chain; a group is made where the keys are new.
 *
 * The table is of numbers of groups, with linear probing and at most half full.  It grows with the arrays
 * that have a group's code and the rest.  Its hash has a seed that nobody knows: codes that collide cannot be
 * chosen.
 *
 * All that grows with the groups lies in one memory context, the table included, so that its size is the
 * memory held.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "aggregate/groups.h"
#include "hash.h"

/*
 * What there is room for at first: so many, or half of those that were there before a reset, if they are not
 * more than this.
 */
#define GH_GROUPS_FIRST 16
#define GH_GROUPS_AGAIN_MAX 16384

#define GH_GROUPS_MAX (UINT32_C(1) << 31)

/* Slots of the table, of each group that there is room for. */
#define GH_GROUP_SLOTS 2

/* More slots than these are not all in the nearest cache. */
#define GH_NEAR_SLOTS 4096

/* Memory for texts is taken in pieces, each twice as large as the last. */
#define GH_PIECE_MIN ((Size) 512)
#define GH_PIECE_MAX ((Size) 256 * 1024)

/* ------------------------------------------------------------------- memory */

static void *
grow_array(GhGroups *groups, void *array, Size element)
{
	Size		size = mul_size(element, groups->capacity);

	return array == NULL ? MemoryContextAllocHuge(groups->context, size) :
		repalloc_huge(array, size);
}

/* Where the first group of a code is, or belongs. */
static inline uint32 *
find_slot(GhGroups *groups, uint64 code, uint64 at)
{
	while (groups->slots[at] != 0 && groups->codes[groups->slots[at] - 1] != code)
		at = (at + 1) & groups->mask;
	return &groups->slots[at];
}

static inline uint64
first_slot(const GhGroups *groups, uint64 code)
{
	return gh_mix64(code ^ groups->seed) & groups->mask;
}

/* A table for all that there is room for, with the groups that there are: of each code, the first one. */
static void
make_table(GhGroups *groups)
{
	uint64		nslots = (uint64) groups->capacity * GH_GROUP_SLOTS;

	if (groups->slots != NULL)
		pfree(groups->slots);
	groups->slots = NULL;
	groups->slots = MemoryContextAllocHuge(groups->context, nslots * sizeof(uint32));
	memset(groups->slots, 0, nslots * sizeof(uint32));
	groups->mask = nslots - 1;
	for (uint32 group = 0; group < groups->count; group++)
	{
		uint32	   *slot = find_slot(groups, groups->codes[group], first_slot(groups, groups->codes[group]));

		if (*slot == 0)
			*slot = group + 1;
	}
}

/* A power of two.  It is less than there was room for before, which was not too much, or just so. */
static uint32
first_room(const GhGroups *groups)
{
	uint32		room = GH_GROUPS_FIRST;

	while (room < GH_GROUPS_AGAIN_MAX && room < groups->before / 2)
		room *= 2;
	return room;
}

static void
make_room(GhGroups *groups)
{
	Size		before = (Size) groups->capacity * groups->naggregates;

	if (groups->capacity >= GH_GROUPS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("more than %u groups in one hash aggregation", GH_GROUPS_MAX)));
	groups->capacity = groups->capacity == 0 ? first_room(groups) : groups->capacity * 2;
	groups->codes = grow_array(groups, groups->codes, sizeof(uint64));
	groups->next = grow_array(groups, groups->next, sizeof(uint32));
	if (groups->nkeys > 0)
		make_table(groups);
	if (groups->packed)
		groups->nulls = grow_array(groups, groups->nulls, sizeof(uint8));
	else if (groups->nkeys > 0)
		groups->values = grow_array(groups, groups->values, sizeof(GhSqlValue) * groups->nkeys);
	if (groups->naggregates == 0)
		return;
	groups->states = grow_array(groups, groups->states,
								sizeof(GhAggregateState) * groups->naggregates);
	if (groups->sides == NULL)
		return;
	groups->sides = grow_array(groups, groups->sides, sizeof(GhSide *) * groups->naggregates);
	memset(groups->sides + before, 0, before * sizeof(GhSide *));
}

static const char *
keep_bytes(GhGroups *groups, const char *bytes, Size length)
{
	char	   *kept;

	if (length > GH_PIECE_MAX / 8)
		kept = MemoryContextAlloc(groups->context, length);
	else
	{
		if (length > groups->piece_left)
		{
			groups->piece_size = Min(Max(groups->piece_size * 2, GH_PIECE_MIN), GH_PIECE_MAX);
			groups->piece_left = Max(groups->piece_size, length);
			groups->piece = MemoryContextAlloc(groups->context, groups->piece_left);
		}
		kept = groups->piece;
		groups->piece += length;
		groups->piece_left -= length;
	}
	if (length > 0)
		memcpy(kept, bytes, length);
	return kept;
}

/* A group of no rows, of the keys of a row that is looked up. */
static uint32
make_group(GhGroups *groups, uint32 row)
{
	const GhLookup *lookup = groups->lookup;
	uint32		group;

	if (groups->count == groups->capacity)
		make_room(groups);
	group = groups->count++;
	if (groups->naggregates > 0)
		memset(groups->states + (Size) group * groups->naggregates, 0,
			   sizeof(GhAggregateState) * groups->naggregates);
	groups->next[group] = 0;
	groups->codes[group] = lookup->codes[row];
	if (groups->packed)
	{
		groups->nulls[group] = lookup->nulls[row];
		groups->any_null |= lookup->nulls[row] != 0;
		return group;
	}
	for (int k = 0; k < groups->nkeys; k++)
	{
		GhSqlValue *value = &groups->values[(Size) group * groups->nkeys + k];

		*value = lookup->values[(Size) row * groups->nkeys + k];
		if (gh_value_is_bytes(&groups->keys[k], value))
			value->low = (uintptr_t) keep_bytes(groups, (const char *) (uintptr_t) value->low,
												value->high);
	}
	return group;
}

/*
 * The group of a row that is looked up shows that row's keys, where equal ones differ: 0 and -0, trailing
 * blanks.
 */
void
gh_group_show_keys(GhGroups *groups, uint32 row)
{
	const GhLookup *lookup = groups->lookup;

	for (int k = 0; k < groups->nkeys && !groups->packed; k++)
	{
		GhSqlValue *held = &groups->values[(Size) (lookup->groups[row] - 1) * groups->nkeys + k];
		const GhSqlValue *value = &lookup->values[(Size) row * groups->nkeys + k];

		if (gh_class_is_float(groups->keys[k].value_class))
			*held = *value;
		else if (groups->keys[k].type == BPCHAROID && value->kind == GH_SQL_HELD && value->high != held->high)
		{
			*held = *value;
			held->low = (uintptr_t) keep_bytes(groups, (const char *) (uintptr_t) value->low, value->high);
		}
	}
}

/* ------------------------------------------------------------------- lookup */

/* Where the first group of each row's code may be, fetched into cache where it is far away. */
static void
find_slots(const GhGroups *groups)
{
	GhLookup   *lookup = groups->lookup;

	for (uint32 row = 0; row < lookup->nrows; row++)
		lookup->slots[row] = first_slot(groups, lookup->codes[row]);
	if (groups->mask < GH_NEAR_SLOTS)
		return;
	for (uint32 row = 0; row < lookup->nrows; row++)
		__builtin_prefetch(&groups->slots[lookup->slots[row]], 1);
	for (uint32 row = 0; row < lookup->nrows; row++)
	{
		uint32		group = groups->slots[lookup->slots[row]];

		if (group == 0)
			continue;
		__builtin_prefetch(&groups->codes[group - 1]);
		if (groups->naggregates > 0)
			__builtin_prefetch(&groups->states[(Size) (group - 1) * groups->naggregates], 1);
	}
}

/*
 * The group of a row, from the first one of its code on; 0: there is none.  *last: the last one that was
 * looked at.
 */
static inline uint32
search_chain(const GhGroups *groups, uint32 row, uint32 group, uint32 *last)
{
	*last = 0;
	while (group != 0 && !gh_group_has_keys(groups, group - 1, row))
	{
		*last = group;
		group = groups->next[group - 1];
		/* a chain is long only where somebody chose keys of one hash value */
		CHECK_FOR_INTERRUPTS();
	}
	return group;
}

/* Finds or makes the group of a row; nothing to compare: a packed code is all that there is of its keys. */
static inline void
find_group(GhGroups *groups, uint32 row, bool nothing_to_compare)
{
	GhLookup   *lookup = groups->lookup;
	uint32	   *slot = find_slot(groups, lookup->codes[row], lookup->slots[row]);
	uint32		last = 0;

	lookup->groups[row] = *slot;
	if (*slot != 0 && nothing_to_compare)
		return;
	lookup->groups[row] = search_chain(groups, row, *slot, &last);
	if (lookup->groups[row] != 0)
		return;
	lookup->groups[row] = make_group(groups, row) + 1;
	if (last != 0)
		groups->next[last - 1] = lookup->groups[row];
	else
		*slot = lookup->groups[row];
}

/* The groups of the rows that have codes, and values where these matter. */
void
gh_look_up(GhGroups *groups)
{
	GhLookup   *lookup = groups->lookup;
	bool		nothing_to_compare = groups->packed && !groups->any_null && !lookup->any_null;

	if (groups->nkeys == 0)
	{
		/* the one group is number 0 */
		for (uint32 row = 0; row < lookup->nrows; row++)
			lookup->groups[row] = 1;
		return;
	}
	/* so that slots stay where they are meanwhile */
	while (groups->capacity - groups->count < lookup->nrows)
		make_room(groups);
	find_slots(groups);
	for (uint32 row = 0; row < lookup->nrows; row++)
		find_group(groups, row, nothing_to_compare);
}

/* The same, but none is made: rows without a group have 0. */
void
gh_look_up_known(GhGroups *groups)
{
	GhLookup   *lookup = groups->lookup;

	if (groups->nkeys == 0)
	{
		gh_look_up(groups);
		return;
	}
	if (groups->capacity == 0)
	{
		memset(lookup->groups, 0, sizeof(uint32) * lookup->nrows);
		return;
	}
	find_slots(groups);
	for (uint32 row = 0; row < lookup->nrows; row++)
	{
		uint32		last;

		lookup->groups[row] = search_chain(groups, row, *find_slot(groups, lookup->codes[row], lookup->slots[row]), &last);
	}
}

/* ---------------------------------------------------------------- interface */

/* Back to where only groups->context is there, and empty. */
static void
begin(GhGroups *groups)
{
	groups->count = groups->capacity = 0;
	groups->slots = NULL;
	groups->codes = NULL;
	groups->next = NULL;
	groups->nulls = NULL;
	groups->any_null = false;
	groups->values = NULL;
	groups->states = NULL;
	groups->sides = NULL;
	groups->piece = NULL;
	groups->piece_left = groups->piece_size = 0;
	/* without keys, there is a group without rows, too */
	if (groups->nkeys == 0)
	{
		groups->lookup->nrows = 1;
		gh_lookup_values(groups);
		make_group(groups, 0);
	}
}

/* keys and specs stay where they are as long as the groups. */
GhGroups *
gh_groups_create(MemoryContext parent, int nkeys, const GhValueType *keys, int naggregates,
				 const GhAggregateSpec *specs)
{
	MemoryContext own = AllocSetContextCreate(parent, "GpuHashAggregate lookups",
											  ALLOCSET_SMALL_SIZES);
	GhGroups   *groups = MemoryContextAlloc(own, sizeof(GhGroups));

	memset(groups, 0, sizeof(GhGroups));
	groups->own = own;
	groups->nkeys = nkeys;
	groups->keys = keys;
	groups->naggregates = naggregates;
	groups->specs = specs;
	for (int a = 0; a < naggregates; a++)
		groups->has_texts |= specs[a].final == GH_FINAL_TEXT;
	groups->packed = gh_choose_packing(groups);
	groups->seed = pg_prng_uint64(&pg_global_prng_state);
	groups->lookup = MemoryContextAlloc(own, sizeof(GhLookup));
	groups->lookup->values = MemoryContextAlloc(own, sizeof(GhSqlValue) * GH_LOOKUP_ROWS *
												Max(nkeys, 1));
	groups->context = AllocSetContextCreate(own, "GpuHashAggregate groups",
											ALLOCSET_SMALL_MINSIZE, ALLOCSET_SMALL_INITSIZE,
											ALLOCSET_DEFAULT_MAXSIZE);
	begin(groups);
	return groups;
}

void
gh_groups_destroy(GhGroups *groups)
{
	MemoryContextDelete(groups->own);
}

/* All groups go, with what they hold. */
void
gh_groups_reset(GhGroups *groups)
{
	if (groups->count > 0)
		groups->before = groups->count;
	MemoryContextReset(groups->context);
	begin(groups);
}

Size
gh_groups_bytes(const GhGroups *groups)
{
	return MemoryContextMemAllocated(groups->context, true);
}

uint32
gh_groups_count(const GhGroups *groups)
{
	return groups->count;
}

uint32
gh_groups_find_one(GhGroups *groups, const GhSqlValue *keys)
{
	GhLookup   *lookup = groups->lookup;

	memcpy(lookup->values, keys, sizeof(GhSqlValue) * groups->nkeys);
	lookup->nrows = 1;
	gh_lookup_values(groups);
	gh_look_up(groups);
	return lookup->groups[0] - 1;
}

/* The states of group g are those from g * naggregates on, until another group is made. */
GhAggregateState *
gh_groups_states(GhGroups *groups)
{
	return groups->states;
}

/* Where a group's side is, or is to be put. */
GhSide **
gh_groups_side(GhGroups *groups, uint32 group, int aggregate)
{
	if (groups->sides == NULL)
	{
		groups->sides = grow_array(groups, NULL, sizeof(GhSide *) * groups->naggregates);
		memset(groups->sides, 0, sizeof(GhSide *) * groups->naggregates * groups->capacity);
	}
	return &groups->sides[(Size) group * groups->naggregates + aggregate];
}

/* The side, or NULL. */
const GhSide *
gh_groups_side_of(const GhGroups *groups, uint32 group, int aggregate)
{
	return groups->sides == NULL ? NULL :
		groups->sides[(Size) group * groups->naggregates + aggregate];
}

/* What sides and their values are allocated in. */
MemoryContext
gh_groups_context(GhGroups *groups)
{
	return groups->context;
}

/* A key, as of the group's first row; bytes are the group's. */
GhSqlValue
gh_groups_key(const GhGroups *groups, uint32 group, int key)
{
	return groups->packed ? gh_unpack_key(groups, groups->codes[group], groups->nulls[group], key) :
		groups->values[(Size) group * groups->nkeys + key];
}
