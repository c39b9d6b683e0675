/*
 * groups.c
 *		The groups of one process: from the keys of a row to the number of its group.
 *
 * A hash table of the CPU engine leads from a code, 64 bits that stand for a group's keys, to a
 * group; groups of one code are chained.  Where all keys are integers or truth values and fit
 * in 64 bits together, the code is made of the keys themselves ("packed"), and a group has
 * beside it one byte that tells which keys are NULL.  Otherwise the code is a hash value, and a
 * group has its keys in full, which are compared whatever the code says.
 *
 * Rows are looked up some hundred at a time:
 *	1. The codes of all rows.
 *	2. The first group of each code: out of a small cache, which answers nearly all rows where
 *	   there are few groups, or by one request to the engine for the other rows.
 *	3. Row by row, the chain is searched, and a group is made where the keys are new.  The codes
 *	   that are new are kept in a table of this call alone until they go to the engine, in one request.
 *
 * All that grows with the groups lies in one memory context, the engine's table included,
 * so that its size is the memory held.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "aggregate/groups.h"
#include "service/placement.h"

/* The cache is of use while there are not many more groups than it has slots. */
#define GH_CACHED_GROUPS (2 * GH_CACHE_SLOTS)

#define GH_GROUPS_FIRST 16		/* what there is room for at first */
#define GH_GROUPS_MAX (UINT32_C(1) << 31)

/* Memory for texts is taken in pieces, each twice as large as the last. */
#define GH_PIECE_MIN ((Size) 512)
#define GH_PIECE_MAX ((Size) 256 * 1024)

/* ------------------------------------------------------------------- memory */

/* The engine's handle is not in the context. */
static void
release_table(void *arg)
{
	GhGroups   *groups = arg;

	if (groups->table != NULL)
		groups->table->engine->table_destroy(groups->table);
	groups->table = NULL;
}

static void *
grow_array(GhGroups *groups, void *array, Size element)
{
	Size		size = mul_size(element, groups->capacity);

	return array == NULL ? MemoryContextAllocHuge(groups->context, size) :
		repalloc_huge(array, size);
}

static void
make_room(GhGroups *groups)
{
	Size		before = (Size) groups->capacity * groups->naggregates;

	if (groups->capacity >= GH_GROUPS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("more than %u groups in one hash aggregation", GH_GROUPS_MAX)));
	groups->capacity = groups->capacity == 0 ? GH_GROUPS_FIRST : groups->capacity * 2;
	groups->codes = grow_array(groups, groups->codes, sizeof(uint64));
	groups->next = grow_array(groups, groups->next, sizeof(uint32));
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

/* The group of a row that is looked up shows that row's keys, where equal ones differ: 0 and -0, trailing blanks. */
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

static inline uint32
cache_slot(uint64 code)
{
	return (uint32) (code * UINT64CONST(0x9e3779b97f4a7c15) >> (64 - GH_CACHE_BITS));
}

/* Does what was filled in of a request, with the first n of what is asked. */
static void
ask_engine(GhGroups *groups, GhOp op, uint32 n)
{
	GhLookup   *lookup = groups->lookup;
	GhRequest	request = {0};

	request.op = op;
	request.count = n;
	request.keys = lookup->asked;
	if (op == GH_FIND)
		request.values_out = lookup->answer;
	else
		request.values_in = lookup->answer;
	if (gh_run_request(groups->table, &request) != GH_OK)
		gh_report_error(&request.error, "aggregate through the hash table");
}

/* The first group of each row's code, or 0. */
static void
find_first_groups(GhGroups *groups)
{
	GhLookup   *lookup = groups->lookup;
	bool		cached = groups->count <= GH_CACHED_GROUPS;
	uint32		n = 0;

	if (groups->table == NULL)
	{
		memset(lookup->groups, 0, sizeof(uint32) * lookup->nrows);
		return;
	}
	for (uint32 row = 0; row < lookup->nrows; row++)
	{
		uint64		code = lookup->codes[row];
		uint32		first = cached ? groups->cache[cache_slot(code)] : 0;

		if (first != 0 && groups->codes[first - 1] != code)
			first = 0;
		lookup->groups[row] = first;
		lookup->asked[n] = code;
		lookup->asked_row[n] = row;
		n += first == 0;
	}
	if (n == 0)
		return;
	ask_engine(groups, GH_FIND, n);
	for (uint32 i = 0; i < n; i++)
	{
		lookup->groups[lookup->asked_row[i]] = (uint32) lookup->answer[i];
		if (cached)
			groups->cache[cache_slot(lookup->asked[i])] = (uint32) lookup->answer[i];
	}
}

/* Where the first group of a row's code is among the new ones, or belongs. */
static uint32 *
new_slot(GhGroups *groups, uint64 code)
{
	GhLookup   *lookup = groups->lookup;
	uint32		i = cache_slot(code) >> (GH_CACHE_BITS - GH_NEW_BITS);

	if (!lookup->news_ready)
		memset(lookup->news, 0, sizeof(lookup->news));
	lookup->news_ready = true;
	while (lookup->news[i] != 0 && groups->codes[lookup->news[i] - 1] != code)
		i = (i + 1) % GH_NEW_SLOTS;
	return &lookup->news[i];
}

/* Finds or makes the group of a row; *nnew codes are to go to the engine. */
static void
find_group(GhGroups *groups, uint32 row, uint32 *nnew)
{
	GhLookup   *lookup = groups->lookup;
	uint32		group = lookup->groups[row];
	uint32	   *slot = NULL;
	uint32		last = 0;

	if (group == 0)
	{
		slot = new_slot(groups, lookup->codes[row]);
		group = *slot;
	}
	while (group != 0 && !gh_group_has_keys(groups, group - 1, row))
	{
		last = group;
		group = groups->next[group - 1];
		/* a chain is long only where somebody chose keys of one hash value */
		CHECK_FOR_INTERRUPTS();
	}
	if (group == 0)
	{
		group = make_group(groups, row) + 1;
		if (last != 0)
			groups->next[last - 1] = group;
		else
		{
			*slot = group;
			lookup->asked[*nnew] = lookup->codes[row];
			lookup->answer[*nnew] = group;
			++*nnew;
		}
	}
	lookup->groups[row] = group;
}

static void
open_table(GhGroups *groups)
{
	GhTableOptions options;
	GhError		error;

	gh_options_init(&options, gh_cpu_engine());
	gh_host_init(&groups->host, groups->context);
	if (gh_create_table(gh_cpu_engine(), &groups->host, &options, &groups->table, &error) != GH_OK)
	{
		groups->table = NULL;
		gh_report_error(&error, "aggregate through a hash table");
	}
	memset(groups->cache, 0, sizeof(groups->cache));
}

/* The groups of the rows that have codes, and values where these matter. */
void
gh_look_up(GhGroups *groups)
{
	GhLookup   *lookup = groups->lookup;
	uint32		nnew = 0;

	if (groups->nkeys == 0)
	{
		/* the one group is number 0 */
		for (uint32 row = 0; row < lookup->nrows; row++)
			lookup->groups[row] = 1;
		return;
	}
	find_first_groups(groups);
	lookup->news_ready = false;
	for (uint32 row = 0; row < lookup->nrows; row++)
		/* a packed code without NULLs is all there is to compare */
		if (lookup->groups[row] == 0 || !groups->packed || groups->any_null || lookup->any_null)
			find_group(groups, row, &nnew);
	if (nnew == 0)
		return;
	if (groups->table == NULL)
		open_table(groups);
	ask_engine(groups, GH_INSERT, nnew);
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
	find_first_groups(groups);
	for (uint32 row = 0; row < lookup->nrows; row++)
		while (lookup->groups[row] != 0 && !gh_group_has_keys(groups, lookup->groups[row] - 1, row))
		{
			lookup->groups[row] = groups->next[lookup->groups[row] - 1];
			CHECK_FOR_INTERRUPTS();
		}
}

/* ---------------------------------------------------------------- interface */

/* Back to where only groups->context is there, and empty. */
static void
begin(GhGroups *groups)
{
	groups->callback.func = release_table;
	groups->callback.arg = groups;
	MemoryContextRegisterResetCallback(groups->context, &groups->callback);
	groups->count = groups->capacity = 0;
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

	/* the cache is of use with a table only */
	memset(groups, 0, offsetof(GhGroups, cache));
	groups->own = own;
	groups->nkeys = nkeys;
	groups->keys = keys;
	groups->naggregates = naggregates;
	groups->specs = specs;
	groups->packed = gh_choose_packing(groups);
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
	return groups->packed ? gh_unpack_key(groups, group, key) :
		groups->values[(Size) group * groups->nkeys + key];
}
