/*
 * pass_groups.cuh
 *		Groups of a batch that the kernel makes which reads its pages (pipeline_pass.cu), with sums beside them that
 *		many threads add to.
 *
 * The batch has groups of its own, in device memory, in which rows find theirs as in those of the pipeline (group_find.cuh), and
 * sums for each.  In front of them each block has a table in shared memory of groups that it has met, with sums
 * of its own, which it adds to the batch's in the end.  A row whose group is in that table adds there.  Any other finds its
 * group among the batch's, adds there, and puts the group into the block's table, if there is room.  So that table only saves
 * time: it may lack groups, or have one twice.
 *
 *	1. A row's keys become words, one a key, that are equal where the keys are: integers, floats by their codes, texts of up
 *	   to seven bytes.  Rows of which a key is longer do without the block's table.
 *	2. A slot of the table is vacant, busy, or has an entry.  Who finds a free one claims it, fills an entry and then names it
 *	   there.  Nobody waits: who meets a busy slot does without the table.
 *	3. Sums are added by atomics, and the order of rows does not matter: modulo 2^64 those of values below 2^PASS_NARROW_BITS,
 *	   which so many as a batch has do not exceed; of others 32 bits each to 64 bits, of the batch's sums alone.
 *
 * ROW is line_values, PLAN has keys and aggregates as plan_view does.
 */
#ifndef GPUHASH_PASS_GROUPS_CUH
#define GPUHASH_PASS_GROUPS_CUH

#include "cuda/pipeline/group_find.cuh"

#define PASS_AGGREGATES_MAX 16
/* Keys that the block's table has words for, at most. */
#define PASS_KEYS_MAX 4

/* A sum of so many values of so many bits has 63 bits at most. */
#define PASS_NARROW_BITS 39
#define PASS_KEYED_LINES ((uint64_t) 1 << 23)

/* Entries of a block's table: as many as are expected, within these. */
#define PASS_ENTRIES_MIN 16
#define PASS_ENTRIES_MAX 1024
#define PASS_ENTRIES_UNKNOWN 256
/* Slots for each entry, and how many are looked at. */
#define PASS_SLOTS_EACH 2
#define PASS_PROBES 8

#define PASS_SLOT_FREE 0
#define PASS_SLOT_BUSY 1
#define PASS_SLOT_ENTRY 2		/* and more: the entry's number */

#define PASS_LIMBS 4

/* What the batch has of a group for each aggregate. */
struct pass_sum
{
	uint64_t	missed;			/* rows that it does not take */
	uint64_t	narrow;			/* sum of narrow values, modulo 2^64 */
	uint64_t	limbs[PASS_LIMBS];	/* sums of other values' 32 bits, the lowest first; of the last ones as signed numbers */
};

/* The groups of a batch. */
struct pass_groups
{
	groups_view groups;			/* without states */
	uint64_t   *rows;			/* by group */
	pass_sum   *sums;			/* by group, of all aggregates */
	uint32_t	entries;		/* of a block's table */
	uint32_t	nsums;			/* aggregates that add values */
};

/* A block's table, in shared memory. */
struct pass_table
{
	uint64_t   *keys;			/* by entry: a word a key */
	uint32_t   *slots;
	uint32_t   *groups;			/* by entry */
	uint32_t   *nulls;			/* by entry: bit k: key k is NULL */
	uint32_t   *words;			/* by entry: rows; rows that each aggregate does not take; then low and high of each sum */
	uint32_t	width;			/* words of an entry: odd, so that entries lie in all banks */
	uint32_t   *used;			/* entries that were claimed; may be beyond them */
};

static __host__ __device__ __forceinline__ uint32_t
pass_width(uint32_t naggregates, uint32_t nsums)
{
	return (1 + naggregates + 2 * nsums) | 1;
}

/* Bytes of a block's table. */
static __host__ __device__ __forceinline__ size_t
pass_table_bytes(uint32_t entries, uint32_t nkeys, uint32_t naggregates, uint32_t nsums)
{
	return entries * (nkeys * sizeof(uint64_t) + (PASS_SLOTS_EACH + 2 + pass_width(naggregates, nsums)) * sizeof(uint32_t)) +
		sizeof(uint64_t);
}

/* ---------------------------------------------------------------- the block's table */

/* Made by all threads of the block, at a place of 8 bytes' alignment; who reads it waits for them. */
static __device__ __forceinline__ pass_table
table_begin(const plan_view &plan, const pass_groups &batch, uint64_t *at)
{
	pass_table	table;
	uint32_t	zeros;

	table.width = pass_width(plan.naggregates, batch.nsums);
	table.keys = at;
	table.slots = reinterpret_cast<uint32_t *>(at + (uint64_t) batch.entries * plan.nkeys);
	table.groups = table.slots + batch.entries * PASS_SLOTS_EACH;
	table.nulls = table.groups + batch.entries;
	table.words = table.nulls + batch.entries;
	table.used = table.words + batch.entries * table.width;
	zeros = (uint32_t) (table.used + 1 - table.slots);
	for (uint32_t i = threadIdx.x; i < zeros; i += blockDim.x)
		table.slots[i] = 0;
	return table;
}

/* The word of a key; false: it has none. */
static __device__ __forceinline__ bool
key_word(const GhRecordKey &key, const GhValue &value, uint64_t *word)
{
	*word = value.low;
	if (key.value_class == GH_CLASS_TEXT)
	{
		GhText		text = gh_record_key_text(&key, &value);

		if (text.length > 7)
			return false;
		*word = (uint64_t) text.length << 56;
		for (uint32_t i = 0; i < (uint32_t) text.length; i++)
			*word |= (uint64_t) (uint8_t) text.bytes[i] << 8 * i;
	}
	else if (gh_class_is_float(key.value_class))
		*word = gh_code_of_float(value.low);
	else if (key.value_class == GH_CLASS_INT128)
		return value.high == gh_sign_extension(value.low);
	return true;
}

/* The words of a row's keys, and which ones are NULL; false: not all have one. */
template <typename PLAN, typename ROW> static __device__ __forceinline__ bool
key_words(const PLAN &plan, const ROW &row, uint64_t *words, uint32_t *nulls)
{
	bool		all = true;

	*nulls = 0;
#pragma unroll
	for (uint32_t k = 0; k < PASS_KEYS_MAX; k++)
	{
		words[k] = 0;
		if (k < plan.nkeys && all)
		{
			GhRecordKey	key = plan.keys[k];
			GhValue		value = row.get(key.vector);

			if (value.null != 0)
				*nulls |= 1u << k;
			else
				all = key_word(key, value, &words[k]);
		}
	}
	return all;
}

static __device__ __forceinline__ bool
entry_has_keys(const pass_table &table, uint32_t nkeys, uint32_t entry, const uint64_t *words, uint32_t nulls)
{
	bool		equal = table.nulls[entry] == nulls;

#pragma unroll
	for (uint32_t k = 0; k < PASS_KEYS_MAX; k++)
		if (k < nkeys)
			equal &= table.keys[entry * nkeys + k] == words[k];
	return equal;
}

#define ENTRY_NONE UINT32_MAX

/* The entry of the words, or ENTRY_NONE; *vacant: the slot that it may be named in then, or ENTRY_NONE. */
static __device__ __forceinline__ uint32_t
entry_find(const pass_table &table, uint32_t nslots, uint32_t nkeys, const uint64_t *words, uint32_t nulls,
		   uint32_t *vacant)
{
	uint64_t	hash = nulls;

#pragma unroll
	for (uint32_t k = 0; k < PASS_KEYS_MAX; k++)
		if (k < nkeys)
			hash = gh_code_mix(hash + words[k]);
	*vacant = ENTRY_NONE;
	for (uint32_t probe = 0; probe < PASS_PROBES; probe++)
	{
		uint32_t	at = (uint32_t) (hash + probe) & (nslots - 1);
		uint32_t	slot = *const_cast<volatile uint32_t *>(&table.slots[at]);

		if (slot == PASS_SLOT_FREE)
			*vacant = at;
		if (slot < PASS_SLOT_ENTRY)
			return ENTRY_NONE;
		/* what was stored before the slot is seen behind it */
		__threadfence_block();
		if (entry_has_keys(table, nkeys, slot - PASS_SLOT_ENTRY, words, nulls))
			return slot - PASS_SLOT_ENTRY;
	}
	return ENTRY_NONE;
}

/*
 * Puts the group into the table, at a slot that was vacant, unless another one has; without an entry the slot
 * stays busy.
 */
static __device__ __forceinline__ void
entry_add(const pass_table &table, uint32_t entries, uint32_t nkeys, uint32_t at, const uint64_t *words, uint32_t nulls,
		  uint32_t group)
{
	uint32_t	entry;

	if (atomicCAS(&table.slots[at], (uint32_t) PASS_SLOT_FREE, (uint32_t) PASS_SLOT_BUSY) != PASS_SLOT_FREE)
		return;
	entry = atomicAdd(table.used, 1u);
	if (entry >= entries)
		return;
	table.groups[entry] = group;
	table.nulls[entry] = nulls;
#pragma unroll
	for (uint32_t k = 0; k < PASS_KEYS_MAX; k++)
		if (k < nkeys)
			table.keys[entry * nkeys + k] = words[k];
	__threadfence_block();
	*const_cast<volatile uint32_t *>(&table.slots[at]) = entry + PASS_SLOT_ENTRY;
}

/* -------------------------------------------------------------------- a row */

static __device__ __forceinline__ bool
is_narrow(uint64_t low, uint64_t high)
{
	return high == gh_sign_extension(low) &&
		low + ((uint64_t) 1 << (PASS_NARROW_BITS - 1)) < (uint64_t) 1 << PASS_NARROW_BITS;
}

/* A value that is not narrow. */
static __device__ void
add_limbs(pass_sum *sum, uint64_t low, uint64_t high)
{
	add_relaxed(&sum->limbs[0], (uint32_t) low);
	add_relaxed(&sum->limbs[1], low >> 32);
	add_relaxed(&sum->limbs[2], (uint32_t) high);
	add_relaxed(&sum->limbs[3], (uint64_t) ((int64_t) high >> 32));
}

/* To two words of 32 bits, for which shared memory has atomics. */
static __device__ __forceinline__ void
add_narrow(uint32_t *words, uint64_t value)
{
	uint32_t	low = (uint32_t) value;
	uint32_t	before = atomicAdd(&words[0], low);
	uint32_t	high = (uint32_t) (value >> 32) + (before + low < low);

	if (high != 0)
		atomicAdd(&words[1], high);
}

/* Adds the row to its group's sums, and to the block's for that group, if there is an entry. */
template <typename PLAN, typename ROW> static __device__ __forceinline__ void
add_to_group(const PLAN &plan, const pass_groups &batch, const pass_table &table, const ROW &row, uint64_t takes,
			 uint32_t group, uint32_t entry)
{
	bool		near = entry != ENTRY_NONE;
	uint32_t   *words = table.words + (near ? entry * table.width : 0);
	pass_sum   *sums = batch.sums + (uint64_t) group * plan.naggregates;
	uint32_t	at = 1 + plan.naggregates;

	if (near)
		atomicAdd(&words[0], 1u);
	else
		add_relaxed(&batch.rows[group], 1);
	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		const GhAggregate aggregate = plan.aggregates[a];
		bool		is_sum = aggregate.kind == GH_AGGREGATE_SUM;
		GhValue		value;

		at += is_sum ? 2 : 0;
		if ((takes >> a & 1) == 0)
		{
			if (near)
				atomicAdd(&words[1 + a], 1u);
			else
				add_relaxed(&sums[a].missed, 1);
			continue;
		}
		if (!is_sum)
			continue;
		value = row.get(aggregate.argument);
		if (aggregate.value_class != GH_CLASS_INT128)
			value.high = gh_sign_extension(value.low);
		if (!is_narrow(value.low, value.high))
			add_limbs(&sums[a], value.low, value.high);
		else if (near)
			add_narrow(&words[at - 2], value.low);
		else
			add_relaxed(&sums[a].narrow, value.low);
	}
}

/* The row into its group; false: it has found none. */
template <typename PLAN, typename ROW> static __device__ __forceinline__ bool
add_grouped(const PLAN &plan, const plan_view &view, const pass_groups &batch, const pass_table &table, const ROW &row, uint64_t takes,
			scan_counters *counters)
{
	uint64_t	words[PASS_KEYS_MAX];
	uint32_t	nulls;
	uint32_t	vacant = ENTRY_NONE;
	uint32_t	entry = ENTRY_NONE;
	bool		all = key_words(plan, row, words, &nulls);
	uint32_t	group;

	if (all)
		entry = entry_find(table, batch.entries * PASS_SLOTS_EACH, plan.nkeys, words, nulls, &vacant);
	if (entry != ENTRY_NONE)
		group = table.groups[entry];
	else
	{
		group = group_find(view, batch.groups, row, counters);
		if (group == GROUP_NONE)
			return false;
		if (vacant != ENTRY_NONE)
			entry_add(table, batch.entries, plan.nkeys, vacant, words, nulls, group);
	}
	add_to_group(plan, batch, table, row, takes, group, entry);
	return true;
}

/* What the block has goes to the batch's sums, when all of its threads have added their rows. */
static __device__ __forceinline__ void
table_end(const plan_view &plan, const pass_groups &batch, const pass_table &table)
{
	uint32_t	used = *table.used < batch.entries ? *table.used : batch.entries;

	for (uint32_t entry = threadIdx.x; entry < used; entry += blockDim.x)
	{
		const uint32_t *words = table.words + entry * table.width;
		uint32_t	group = table.groups[entry];
		pass_sum   *sums = batch.sums + (uint64_t) group * plan.naggregates;
		uint32_t	at = 1 + plan.naggregates;

		if (words[0] == 0)
			continue;
		add_relaxed(&batch.rows[group], words[0]);
		for (uint32_t a = 0; a < plan.naggregates; a++)
		{
			if (words[1 + a] > 0)
				add_relaxed(&sums[a].missed, words[1 + a]);
			if (plan.aggregates[a].kind != GH_AGGREGATE_SUM)
				continue;
			add_relaxed(&sums[a].narrow, words[at] | (uint64_t) words[at + 1] << 32);
			at += 2;
		}
	}
}

/* --------------------------------------------------------------- into the sink */

/* The keys of a group, as a row of them. */
struct group_row
{
	const plan_view &plan;
	const GhRecordHead *record;
	const char *texts;

	__device__ __forceinline__ GhValue
	get(uint32_t vector) const
	{
		uint32_t	k = 0;

		while (plan.keys[k].vector != vector)
			k++;
		GhRecordKey	key = plan.keys[k];
		return gh_record_group_value(&key, record, k, texts);
	}
};

/* The state of an aggregate, of a group that has so many rows. */
static __device__ __forceinline__ GhAggregateState
state_of_sum(const GhAggregate &aggregate, const pass_sum &sum, uint64_t rows)
{
	GhAggregateState state = {};
	uint64_t	low = sum.narrow;
	uint64_t	high = gh_sign_extension(sum.narrow);

	state.count = rows - sum.missed;
	if (aggregate.kind != GH_AGGREGATE_SUM || state.count == 0)
		return state;
	/* no sum is near what 128 bits can hold (record_row.h) */
	(void) gh_sum_add(&low, &high, sum.limbs[0], 0);
	(void) gh_sum_add(&low, &high, sum.limbs[1] << 32, sum.limbs[1] >> 32);
	(void) gh_sum_add(&low, &high, 0, sum.limbs[2]);
	high += sum.limbs[3] << 32;
	state.low = low;
	state.high = high;
	return state;
}

#endif							/* GPUHASH_PASS_GROUPS_CUH */
