/*
 * cpu_groups.c
 *		From the keys of a batch's rows to the groups of a pipeline on the CPU.
 *
 * Codes stand for keys (cpu_group_codes.c).  A slot of the hash table has a group's code: so a row looks at
 * one line of memory, and at the keys of its group only where codes are hashes.  While there are few groups,
 * slots are many, so that nearly each row finds its group in the first slot that it looks at.  Where groups
 * are many, slots and what they lead to are fetched some rows ahead of their use.
 */
#include "engine/pipeline/cpu_groups.h"
#include "engine/table/cpu_internal.h"

#define GROUPS_MIN 64
#define GROUPS_MAX (UINT32_C(1) << 31)

/* So few are in the cache already, and have more slots a group. */
#define FEW_GROUPS 4096
#define SLOTS_OF_FEW 8
#define SLOTS_OF_MANY 2

/*
 * Near the limit of memory this many slots of so many are in use at most; and room for less than a part more
 * is none.
 */
#define FULL_SLOTS 7
#define FULL_OF 8
#define WORTH_PART 8

/*
 * Where no more rows are live than so many, and one of so many that were looked at, and there are no more
 * keys, the keys of these rows are brought together.
 */
#define SPARSE_ROWS 64
#define SPARSE_PART 16
#define SPARSE_BEGIN 4
#define SPARSE_KEYS 8

/* Rows between a fetch into cache and its use. */
#define AHEAD 12

/* Between looks at the stop flag. */
#define PIECE_BYTES (UINT64_C(1) << 20)
#define PIECE_SLOTS (UINT64_C(1) << 16)

/* -------------------------------------------------------------------- slots */

/* What says where a packed code belongs.  Who does not know the seed cannot choose keys that collide. */
static inline uint64_t
packed_hash(const uint64_t seed[2], uint64_t code, uint32_t nulls)
{
	return gh_cpu_fold(code ^ seed[0] ^ nulls * GH_CODE_OF_NULL, seed[1]);
}

/* The same for any code: a hash is one already. */
static inline uint64_t
slot_hash(const GhCpuGrouping *groups, uint64_t code, uint32_t nulls)
{
	return groups->packing.packed ? packed_hash(groups->seed, code, nulls) : code;
}

static void
slot_put(GhCpuGrouping *groups, GhCpuSlot slot)
{
	uint64_t	at = slot_hash(groups, slot.code, slot.nulls) & groups->mask;

	while (groups->slots[at].group != 0)
		at = (at + 1) & groups->mask;
	groups->slots[at] = slot;
}

static void
clear_slots(GhCpuGrouping *groups)
{
	memset(groups->slots, 0, (groups->mask + 1) * sizeof(GhCpuSlot));
}

/* Codes have changed. */
static void
put_again(GhCpuGrouping *groups)
{
	clear_slots(groups);
	for (uint32_t group = 0; group < groups->count; group++)
	{
		GhCpuSlot	slot = gh_cpu_group_code(groups, gh_cpu_grouping_at(groups, group));

		slot.group = group + 1;
		slot_put(groups, slot);
	}
}

/* ------------------------------------------------------------------- growth */

static bool
sees_stop(GhCpuGrouping *groups)
{
	groups->stopped = groups->may_stop && gh_cpu_is_stopped(&groups->memory->host);
	return groups->stopped;
}

/* Copies bytes, or zeroes them where there are none to copy; false: it was stopped. */
static bool
copy_pieces(GhCpuGrouping *groups, void *to, const void *from, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += PIECE_BYTES)
	{
		uint64_t	n = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;

		if (sees_stop(groups))
			return false;
		if (from != NULL)
			memcpy((char *) to + at, (const char *) from + at, n);
		else
			memset((char *) to + at, 0, n);
	}
	return true;
}

/* Of the bits of so many groups: whole words. */
static uint64_t
had_row_bytes(uint64_t count)
{
	return (count + 63) / 64 * sizeof(uint64_t);
}

/* All that groups had before they grew; false: it was stopped. */
static bool
move_groups(GhCpuGrouping *groups, const GhCpuGrouping *old)
{
	uint64_t	states_bytes = groups->sink->naggregates * sizeof(GhAggregateState);

	if (!copy_pieces(groups, groups->slots, NULL, (groups->mask + 1) * sizeof(GhCpuSlot)) ||
		!copy_pieces(groups, groups->keys, old->keys, (uint64_t) old->count * old->keys_bytes) ||
		!copy_pieces(groups, groups->had_row, NULL, had_row_bytes(groups->room)) ||
		!copy_pieces(groups, groups->states, old->states, old->count * states_bytes))
		return false;
	if (old->count > 0)
		memcpy(groups->had_row, old->had_row, had_row_bytes(old->count));
	for (uint64_t at = 0; old->count > 0 && at <= old->mask; at++)
	{
		if (at % PIECE_SLOTS == 0 && sees_stop(groups))
			return false;
		if (old->slots[at].group != 0)
			slot_put(groups, old->slots[at]);
	}
	return true;
}

/* Bytes of a group, but for its slots, texts and bit. */
static uint64_t
bytes_of_group(const GhCpuGrouping *groups)
{
	return groups->sink->naggregates * sizeof(GhAggregateState) + groups->keys_bytes;
}

/*
 * Room for that many groups, with so many slots.  False: there is no memory, or it was stopped; all is as it
 * was.
 */
static bool
resize(GhCpuGrouping *groups, uint64_t room, uint64_t nslots)
{
	GhCpuGrouping old = *groups;
	GhCpuBlock	block;

	if (room > GROUPS_MAX || sees_stop(groups))
		return false;
	block = gh_cpu_block_take_instead(groups->memory, groups->block,
									  nslots * sizeof(GhCpuSlot) + room * bytes_of_group(groups) + had_row_bytes(room));
	if (block.ref == 0)
		return false;
	groups->room = (uint32_t) room;
	groups->mask = nslots - 1;
	groups->slots = gh_cpu_block_address(groups->memory, block);
	groups->states = (GhAggregateState *) (groups->slots + nslots);
	groups->had_row = (uint64_t *) (groups->states + room * groups->sink->naggregates);
	groups->keys = (char *) groups->had_row + had_row_bytes(room);
	if (!move_groups(groups, &old))
	{
		gh_cpu_block_give(groups->memory, block);
		*groups = old;
		groups->stopped = true;
		return false;
	}
	gh_cpu_block_give(groups->memory, old.block);
	groups->block = block;
	return true;
}

/* For a room that is a power of two. */
static bool
grow(GhCpuGrouping *groups, uint64_t room)
{
	return resize(groups, room, room * (room <= FEW_GROUPS ? SLOTS_OF_FEW : SLOTS_OF_MANY));
}

/* More room, a power of two: there is one that is none where not so many had room, and now they may have. */
static bool
grow_further(GhCpuGrouping *groups)
{
	uint64_t	room = 1;

	while (room <= groups->room)
		room *= 2;
	return grow(groups, room);
}

/* Where twice as many do not fit: as many as do, if that is worth their being moved. */
static bool
grow_to_limit(GhCpuGrouping *groups)
{
	const GhCpuSinkMemory *memory = groups->memory;
	uint64_t	others = memory->bytes - groups->block.bytes;
	uint64_t	best = 0;
	uint64_t	best_slots = 0;

	if (memory->limit <= others)
		return false;
	for (uint64_t nslots = groups->mask + 1; nslots <= 4 * (groups->mask + 1); nslots *= 2)
	{
		uint64_t	room = nslots / FULL_OF * FULL_SLOTS;
		uint64_t	bytes = nslots * sizeof(GhCpuSlot) + had_row_bytes(room);

		if (bytes >= memory->limit - others)
			break;
		if (room > (memory->limit - others - bytes) / bytes_of_group(groups))
			room = (memory->limit - others - bytes) / bytes_of_group(groups);
		if (room > best)
		{
			best = room;
			best_slots = nslots;
		}
	}
	return best > groups->room && best - groups->room >= groups->room / WORTH_PART && resize(groups, best, best_slots);
}

/* Of texts among a row's keys. */
static uint64_t
text_bytes(const GhGroupsSink *sink, const GhVectorBatch *batch, uint32_t row)
{
	uint64_t	bytes = 0;

	for (uint32_t k = 0; k < sink->nkeys; k++)
	{
		const GhVector *vector = &batch->vectors[sink->keys[k].vector];

		if (sink->keys[k].value_class == GH_CLASS_TEXT && !vector->null[row])
			bytes += vector->high[row];
	}
	return bytes;
}

/* A group of no rows with these keys and the last number; false: there is no memory. */
static bool
make_group(GhCpuGrouping *groups, const GhVectorBatch *batch, uint32_t row)
{
	const GhGroupsSink *sink = groups->sink;
	GhCpuGroupKeys *group;

	if (!gh_cpu_texts_reserve(groups->memory, &groups->texts, text_bytes(sink, batch, row)) ||
		(groups->count == groups->room && !grow_further(groups) && !grow_to_limit(groups)))
		return false;
	group = gh_cpu_grouping_at(groups, groups->count);
	memset(group, 0, groups->keys_bytes);
	gh_cpu_group_set_row(groups, groups->count, false);
	for (uint32_t k = 0; k < sink->nkeys; k++)
	{
		const GhVector *vector = &batch->vectors[sink->keys[k].vector];
		uint64_t   *words = group->words + groups->key_words[k];

		if (vector->null[row])
		{
			group->nulls |= UINT64_C(1) << k;
			continue;
		}
		words[0] = vector->low[row];
		if (gh_class_has_high(sink->keys[k].value_class))
			words[1] = vector->high[row];
		if (sink->keys[k].value_class == GH_CLASS_TEXT)
			words[0] = gh_cpu_texts_add(&groups->texts, words[0], words[1]);
	}
	if (sink->naggregates > 0)
		memset(groups->states + (size_t) groups->count * sink->naggregates, 0,
			   sink->naggregates * sizeof(GhAggregateState));
	groups->any_null |= group->nulls != 0;
	groups->count++;
	return true;
}

/* The one group without keys is there without rows, too. */
static bool
begin(GhCpuGrouping *groups, uint64_t expected)
{
	uint64_t	room = groups->sink->nkeys == 0 ? 1 : GROUPS_MIN;

	while (groups->sink->nkeys > 0 && room < expected && room < GROUPS_MAX)
		room *= 2;
	/* an estimate that is too great is no reason to fail */
	while (!grow(groups, room) && room > 1)
		room /= 2;
	return groups->room > 0 && (groups->sink->nkeys > 0 || make_group(groups, NULL, 0));
}

static void
lay_out_keys(GhCpuGrouping *groups)
{
	uint32_t	nwords = 0;

	for (uint32_t k = 0; k < groups->sink->nkeys; k++)
	{
		groups->key_words[k] = (uint8_t) nwords;
		nwords += gh_class_has_high(groups->sink->keys[k].value_class) ? 2 : 1;
	}
	groups->keys_bytes = (uint32_t) (sizeof(GhCpuGroupKeys) + nwords * sizeof(uint64_t));
}

GhStatus
gh_cpu_grouping_init(GhCpuGrouping *groups, GhCpuSinkMemory *memory, const GhGroupsSink *sink, GhError *error)
{
	groups->memory = memory;
	groups->sink = sink;
	lay_out_keys(groups);
	groups->seed[0] = gh_code_mix(sink->seed + UINT64_C(0x9E3779B97F4A7C15));
	/* an even multiplier would drop bits of codes */
	groups->seed[1] = gh_code_mix(groups->seed[0]) | 1;
	gh_cpu_packing_init(&groups->packing, sink);
	if (!begin(groups, sink->expected))
		return gh_error_set(error, memory->limit != 0 ? GH_LIMIT : GH_NO_MEMORY,
							"there is no memory for the groups of a pipeline");
	return GH_OK;
}

void
gh_cpu_grouping_drop(GhCpuGrouping *groups)
{
	gh_cpu_block_give(groups->memory, groups->texts.block);
	gh_cpu_block_give(groups->memory, groups->block);
	groups->texts = (GhCpuTexts) {0};
	groups->texts_left = 0;
	groups->block.ref = 0;
	groups->count = groups->room = 0;
}

void
gh_cpu_grouping_clear(GhCpuGrouping *groups)
{
	groups->count = groups->full = 0;
	groups->any_null = false;
	groups->texts.used = groups->texts_left = 0;
	clear_slots(groups);
	gh_cpu_packing_init(&groups->packing, groups->sink);
	/* there is room for the one */
	if (groups->sink->nkeys == 0)
		(void) make_group(groups, NULL, 0);
}

/* Empties a slot; those behind it that would no longer be found move up. */
static void
slot_take(GhCpuGrouping *groups, uint64_t hole)
{
	GhCpuSlot  *slots = groups->slots;

	for (uint64_t at = (hole + 1) & groups->mask; slots[at].group != 0; at = (at + 1) & groups->mask)
	{
		uint64_t	home = slot_hash(groups, slots[at].code, slots[at].nulls);

		if (((at - home) & groups->mask) < ((at - hole) & groups->mask))
			continue;
		slots[hole] = slots[at];
		hole = at;
	}
	slots[hole] = (GhCpuSlot) {0, 0, 0};
}

void
gh_cpu_grouping_cut(GhCpuGrouping *groups, uint32_t count, uint64_t texts_used)
{
	for (uint64_t at = 0; groups->count > count && at <= groups->mask; at++)
		while (groups->slots[at].group > count)
			slot_take(groups, at);
	groups->count = count;
	groups->texts.used = texts_used;
	if (groups->full > count)
		groups->full = count;
}

/* ------------------------------------------------------------------ look-up */

static bool
has_keys(const GhCpuGrouping *groups, uint32_t group, const GhVectorBatch *batch, uint32_t row)
{
	const GhCpuGroupKeys *keys = gh_cpu_grouping_at(groups, group);

	for (uint32_t k = 0; k < groups->sink->nkeys; k++)
	{
		const GhRecordKey *key = &groups->sink->keys[k];
		const GhVector *vector = &batch->vectors[key->vector];
		GhValue		held = gh_cpu_group_value(groups, keys, k);
		GhValue		value = {vector->low[row], gh_class_has_high(key->value_class) ? vector->high[row] : 0,
		vector->null[row]};

		if (!gh_record_key_equal(key, &held, &value))
			return false;
	}
	return true;
}

/* A row's group, or one that is made, by its code; its number is set here. */
static uint32_t
find_one(GhCpuGrouping *groups, const GhVectorBatch *batch, uint32_t row, GhCpuSlot wanted, uint64_t hash)
{
	uint64_t	mask = groups->mask;
	uint64_t	at = hash & mask;

	for (const GhCpuSlot *slot; (slot = &groups->slots[at])->group != 0; at = (at + 1) & mask)
		if (slot->code == wanted.code && slot->nulls == wanted.nulls &&
			(groups->packing.packed || has_keys(groups, slot->group - 1, batch, row)))
			return slot->group - 1;
	if (!make_group(groups, batch, row))
		return GH_CPU_NO_GROUP_FOUND;
	wanted.group = groups->count;
	if (groups->mask == mask)
		groups->slots[at] = wanted;
	else
		slot_put(groups, wanted);
	return groups->count - 1;
}

/* What a row's slot leads to, as far as a first look tells. */
static inline void
fetch_group(const GhCpuGrouping *groups, uint64_t hash)
{
	uint32_t	group = groups->slots[hash & groups->mask].group - 1;

	if (group == UINT32_MAX)
		return;
	if (!groups->packing.packed)
		__builtin_prefetch(gh_cpu_grouping_at(groups, group));
	if (groups->sink->naggregates > 0)
		__builtin_prefetch(groups->states + (size_t) group * groups->sink->naggregates, 1);
}

/*
 * The groups of rows from `row` on, as long as each is in the first slot that is looked at, where most are;
 * returns the first live row of which that is not so.  Codes are packed.
 */
static inline uint32_t
find_at_once(const GhCpuGrouping *groups, const GhVectorBatch *batch, const GhCpuCodes *codes, uint32_t row, bool nulls,
			 uint32_t *found)
{
	const GhCpuSlot *slots = groups->slots;
	const uint64_t seed[2] = {groups->seed[0], groups->seed[1]};
	uint64_t	mask = groups->mask;
	const uint8_t *state = batch->state;

	for (uint32_t n = batch->nrows; row < n; row++)
	{
		uint32_t	row_nulls = nulls && codes->any_null ? codes->nulls[row] : 0;
		const GhCpuSlot *slot;

		if (state[row] != GH_ROW_LIVE)
			continue;
		slot = &slots[packed_hash(seed, codes->codes[row], row_nulls) & mask];
		if (slot->code != codes->codes[row] || slot->group == 0 || (nulls && slot->nulls != row_nulls))
			break;
		found[row] = slot->group - 1;
	}
	return row;
}

/* Nothing is fetched ahead. */
static uint32_t
find_among_few(GhCpuGrouping *groups, const GhVectorBatch *batch, const GhCpuCodes *codes, uint32_t *found)
{
	uint32_t	none = 0;

	for (uint32_t i = 0; i < batch->nrows; i++)
	{
		GhCpuSlot	wanted;

		if (groups->packing.packed)
			i = codes->any_null || groups->any_null ? find_at_once(groups, batch, codes, i, true, found) :
				find_at_once(groups, batch, codes, i, false, found);
		if (i == batch->nrows || batch->state[i] != GH_ROW_LIVE)
			continue;
		wanted = (GhCpuSlot) {codes->codes[i], 0, codes->any_null ? codes->nulls[i] : 0};
		found[i] = find_one(groups, batch, i, wanted, slot_hash(groups, wanted.code, wanted.nulls));
		none += found[i] == GH_CPU_NO_GROUP_FOUND;
	}
	return none;
}

static uint32_t
find_among_many(GhCpuGrouping *groups, const GhVectorBatch *batch, const GhCpuCodes *codes, uint32_t *found)
{
	uint64_t	hashes[GH_VECTOR_ROWS];
	uint32_t	n = batch->nrows;
	uint32_t	none = 0;

	for (uint32_t i = 0; i < n; i++)
		hashes[i] = slot_hash(groups, codes->codes[i], codes->any_null ? codes->nulls[i] : 0);
	for (uint32_t i = 0; i < n + AHEAD; i++)
	{
		uint32_t	row = i - AHEAD;
		GhCpuSlot	wanted;

		if (i < n)
			__builtin_prefetch(&groups->slots[hashes[i] & groups->mask]);
		if (i >= AHEAD / 2 && i - AHEAD / 2 < n)
			fetch_group(groups, hashes[i - AHEAD / 2]);
		if (i < AHEAD || batch->state[row] != GH_ROW_LIVE)
			continue;
		wanted = (GhCpuSlot) {codes->codes[row], 0, codes->any_null ? codes->nulls[row] : 0};
		found[row] = find_one(groups, batch, row, wanted, hashes[row]);
		none += found[row] == GH_CPU_NO_GROUP_FOUND;
	}
	return none;
}

static uint32_t
find_rows(GhCpuGrouping *groups, const GhVectorBatch *batch, uint32_t *found)
{
	GhCpuCodes	codes;

	/* each time the packing changes a key gets wider, or codes are hashes */
	while (!gh_cpu_make_codes(&groups->packing, groups->sink, batch, &codes))
		put_again(groups);
	return groups->count < FEW_GROUPS ? find_among_few(groups, batch, &codes, found) :
		find_among_many(groups, batch, &codes, found);
}

/* The live rows, if they are few; false: they are not, which is known after some. */
static bool
pick_few(const GhVectorBatch *batch, uint16_t *rows, uint32_t *n)
{
	const uint8_t *end = batch->state + batch->nrows;

	*n = 0;
	for (const uint8_t *at = batch->state; at < end && (at = memchr(at, GH_ROW_LIVE, (size_t) (end - at))) != NULL; at++)
	{
		uint32_t	row = (uint32_t) (at - batch->state);

		if (*n == SPARSE_ROWS || *n > SPARSE_BEGIN + row / SPARSE_PART)
			return false;
		rows[(*n)++] = (uint16_t) row;
	}
	return true;
}

/*
 * The same of few rows: codes are made of all that a batch has, and these would be made for nothing.  What
 * joins leave of a table that is read from end to end is often a row or two of a batch.
 */
static uint32_t
find_few_rows(GhCpuGrouping *groups, const GhVectorBatch *batch, const uint16_t *rows, uint32_t n, uint32_t *found)
{
	const GhGroupsSink *sink = groups->sink;
	uint64_t	low[SPARSE_KEYS][SPARSE_ROWS] = {{0}};
	uint64_t	high[SPARSE_KEYS][SPARSE_ROWS];
	uint8_t		null[SPARSE_KEYS][SPARSE_ROWS] = {{0}};
	uint8_t		state[SPARSE_ROWS];
	uint32_t	places[SPARSE_ROWS];
	GhVector	vectors[GH_PROGRAM_VECTORS_MAX];
	GhVectorBatch few = {.nrows = n,.nvectors = batch->nvectors,.state = state,.vectors = vectors};
	uint32_t	none;

	for (uint32_t i = 0; i < SPARSE_ROWS; i++)
		state[i] = i < n ? GH_ROW_LIVE : GH_ROW_DROPPED;
	for (uint32_t k = 0; k < sink->nkeys; k++)
	{
		const GhVector *vector = &batch->vectors[sink->keys[k].vector];
		bool		has_high = gh_class_has_high(sink->keys[k].value_class);

		for (uint32_t i = 0; i < n; i++)
		{
			low[k][i] = vector->low[rows[i]];
			high[k][i] = has_high ? vector->high[rows[i]] : 0;
			null[k][i] = vector->null[rows[i]];
		}
		vectors[sink->keys[k].vector] = (GhVector) {low[k], high[k], null[k]};
	}
	none = find_rows(groups, &few, places);
	for (uint32_t i = 0; i < n; i++)
		found[rows[i]] = places[i];
	return none;
}

uint32_t
gh_cpu_grouping_find(GhCpuGrouping *groups, const GhVectorBatch *batch, uint32_t *found)
{
	uint16_t	rows[SPARSE_ROWS];
	uint32_t	n;

	groups->stopped = false;
	/* nobody looks at found */
	if (groups->sink->nkeys == 0)
		return 0;
	if (groups->sink->nkeys <= SPARSE_KEYS && pick_few(batch, rows, &n))
		return n == 0 ? 0 : find_few_rows(groups, batch, rows, n, found);
	return find_rows(groups, batch, found);
}

void
gh_cpu_grouping_fill(GhCpuGrouping *groups, const GhVectorBatch *batch, const uint32_t *found)
{
	if (groups->sink->nkeys == 0)
	{
		if (memchr(batch->state, GH_ROW_LIVE, batch->nrows) != NULL)
			gh_cpu_group_set_row(groups, 0, true);
		return;
	}
	if (groups->full == groups->count)
		return;
	for (uint32_t i = 0; i < batch->nrows; i++)
		if (batch->state[i] == GH_ROW_LIVE && found[i] >= groups->full)
			gh_cpu_group_set_row(groups, found[i], true);
	while (groups->full < groups->count && gh_cpu_group_had_row(groups, groups->full))
		groups->full++;
}
