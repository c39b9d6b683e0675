/*
 * records.c
 *		Groups as bytes, for other processes and for files.
 *
 * A record is, each part at a multiple of 8 bytes:
 *
 *		GhRecord			its size, the code of the keys, which aggregates have a side
 *		bytes				of each key, its GhSqlKind; none where codes are packed
 *		words				of each aggregate: those of a GhAggregateState that its kind uses
 *		words				of each key that is not NULL: its low one, of classes with two its high one, too; or,
 *							where it is bytes, how many they are, and these
 *		GhRecordSide		of each side, and behind it its datums
 *
 * Records come from memory that others write and from files: what would lead outside of a
 * record is an error.  Whether a state makes sense does not matter to anybody but its result.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "aggregate/groups.h"
#include "engine/pipeline/record.h"
#include "engine/pipeline/record_row.h"
#include "fragment/records.h"
#include "hash.h"

/* Where the bits of NULLs are among those of sides. */
#define GH_NULLS_SHIFT 56

typedef struct GhRecord
{
	uint64		size;			/* of the whole record */
	uint64		code;			/* packed: the keys but for NULLs; else their hash */
	uint64		sides;			/* a bit for each aggregate; packed: in the highest byte, one for each key that is NULL */
} GhRecord;

typedef struct GhRecordSide
{
	int64		count;
	uint64		sum_size;		/* bytes; 0: there is none */
	uint64		squares_size;
} GhRecordSide;

StaticAssertDecl(GH_AGGREGATES_MAX <= 64, "a record has a bit for each aggregate");
StaticAssertDecl(GH_PACKED_AGGREGATES_MAX <= GH_NULLS_SHIFT, "a record has a byte for NULLs");

#define PAD(size) TYPEALIGN(8, size)

/* What is still to be read of a record. */
typedef struct GhRecordReader
{
	const char *at;
	Size		left;
} GhRecordReader;

/* -------------------------------------------------------------------- writing */

/* Of all bits for partitions, and the same in every process. */
uint64
gh_group_hash(const GhGroups *groups, uint32 group)
{
	return gh_mix64(groups->codes[group]);
}

/* Bytes of a state that an aggregate uses: from the first one on. */
static inline Size
state_bytes(const GhAggregateSpec *spec)
{
	if (spec->aggregate.kind <= GH_AGGREGATE_COUNT)
		return offsetof(GhAggregateState, low);
	return spec->aggregate.kind == GH_AGGREGATE_MOMENTS ? sizeof(GhAggregateState) : offsetof(GhAggregateState, squares_low);
}

static inline Size
keys_size(const GhGroups *groups)
{
	return groups->packed ? 0 : PAD(groups->nkeys);
}

/* What a key takes in a record, beside its kind. */
static Size
key_size(const GhValueType *type, const GhSqlValue *key)
{
	if (key->kind == GH_SQL_NULL)
		return 0;
	if (gh_value_is_bytes(type, key))
		return sizeof(uint64) + PAD(key->high);
	return gh_class_has_high(type->value_class) ? 2 * sizeof(uint64) : sizeof(uint64);
}

static Size
fixed_size(const GhGroups *groups)
{
	Size		size = sizeof(GhRecord) + keys_size(groups);

	for (int a = 0; a < groups->naggregates; a++)
		size += state_bytes(&groups->specs[a]);
	return size;
}

static Size
datum_size(Datum datum)
{
	return datum == 0 ? 0 : VARSIZE_ANY(DatumGetPointer(datum));
}

static Size
side_size(const GhSide *side)
{
	return sizeof(GhRecordSide) + PAD(datum_size(side->sum)) + PAD(datum_size(side->squares));
}

/* Of one group. */
static Size
record_size(const GhGroups *groups, uint32 group)
{
	Size		size = fixed_size(groups);

	for (int k = 0; k < groups->nkeys && !groups->packed; k++)
		size += key_size(&groups->keys[k], &groups->values[(Size) group * groups->nkeys + k]);
	for (int a = 0; a < groups->naggregates && groups->sides != NULL; a++)
	{
		const GhSide *side = gh_groups_side_of(groups, group, a);

		if (side != NULL)
			size += side_size(side);
	}
	return size;
}

static char *
put_bytes(char *at, const void *bytes, Size size)
{
	if (size > 0)
		memcpy(at, bytes, size);
	memset(at + size, 0, PAD(size) - size);
	return at + PAD(size);
}

static char *
put_side(char *at, const GhSide *side)
{
	GhRecordSide head;

	head.count = side->count;
	head.sum_size = datum_size(side->sum);
	head.squares_size = datum_size(side->squares);
	at = put_bytes(at, &head, sizeof(head));
	at = put_bytes(at, DatumGetPointer(side->sum), head.sum_size);
	return put_bytes(at, DatumGetPointer(side->squares), head.squares_size);
}

/* Begins a record, but for its size, with key k, the next one.  What comes behind it. */
static char *
put_key(const GhGroups *groups, GhRecord *head, int k, const GhSqlValue *key, char *at)
{
	uint64	   *to = (uint64 *) at;

	((uint8 *) (head + 1))[k] = key->kind;
	if (key->kind == GH_SQL_NULL)
		return at;
	if (gh_value_is_bytes(&groups->keys[k], key))
	{
		*to++ = key->high;
		return put_bytes((char *) to, (const void *) (uintptr_t) key->low, key->high);
	}
	*to++ = key->low;
	if (gh_class_has_high(groups->keys[k].value_class))
		*to++ = key->high;
	return (char *) to;
}

/* A record without keys and sides, into memory of its size, at a multiple of 8.  What comes behind it. */
static char *
begin_record(const GhGroups *groups, GhRecord *head, uint64 code, uint8 nulls, const GhAggregateState *states)
{
	char	   *at = (char *) (head + 1) + keys_size(groups);

	memset(head + 1, 0, keys_size(groups));
	head->code = code;
	head->sides = groups->packed ? (uint64) nulls << GH_NULLS_SHIFT : 0;
	for (int a = 0; a < groups->naggregates; a++)
	{
		memcpy(at, &states[a], state_bytes(&groups->specs[a]));
		at += state_bytes(&groups->specs[a]);
	}
	return at;
}

/* One group's. */
static void
write_record(const GhGroups *groups, uint32 group, GhRecord *head)
{
	char	   *at = begin_record(groups, head, groups->codes[group], groups->packed ? groups->nulls[group] : 0,
								  groups->states + (Size) group * groups->naggregates);

	for (int k = 0; k < groups->nkeys && !groups->packed; k++)
		at = put_key(groups, head, k, &groups->values[(Size) group * groups->nkeys + k], at);
	for (int a = 0; a < groups->naggregates && groups->sides != NULL; a++)
	{
		const GhSide *side = gh_groups_side_of(groups, group, a);

		if (side == NULL)
			continue;
		head->sides |= UINT64CONST(1) << a;
		at = put_side(at, side);
	}
	head->size = at - (char *) head;
}

/* All groups, one by one. */
void
gh_groups_put_records(const GhGroups *groups, GhPutRecord put, void *arg)
{
	GhRecordBuffer buffer = {.context = CurrentMemoryContext};

	for (uint32 group = 0; group < groups->count; group++)
	{
		Size		size = record_size(groups, group);

		CHECK_FOR_INTERRUPTS();
		write_record(groups, group, (GhRecord *) gh_record_buffer(&buffer, size));
		put(arg, buffer.data, size);
	}
	if (buffer.data != NULL)
		pfree(buffer.data);
}

uint64
gh_group_record_hash(const char *record)
{
	return gh_mix64(((const GhRecord *) record)->code);
}

/* -------------------------------------------------------------------- reading */

static const void *
take(GhRecordReader *reader, Size size)
{
	const char *at = reader->at;

	if (size > reader->left || PAD(size) > reader->left)
		elog(ERROR, "group of a hash aggregation is cut off");
	reader->at += PAD(size);
	reader->left -= PAD(size);
	return at;
}

static uint64
take_word(GhRecordReader *reader)
{
	return *(const uint64 *) take(reader, sizeof(uint64));
}

/* A varlena that nobody needs to look up elsewhere; 0: none. */
static Datum
take_datum(GhRecordReader *reader, Size size)
{
	const char *datum = take(reader, size);

	if (size == 0)
		return (Datum) 0;
	if (VARATT_IS_EXTERNAL(datum) || VARATT_IS_COMPRESSED(datum) ||
		(!VARATT_IS_SHORT(datum) && size < VARHDRSZ) || VARSIZE_ANY(datum) != size)
		elog(ERROR, "group of a hash aggregation has a value of the wrong size");
	return PointerGetDatum(datum);
}

/* The next of several records. */
static const GhRecord *
next_record(const GhGroups *groups, GhRecordReader *records)
{
	const GhRecord *record = (const GhRecord *) records->at;

	Assert(TYPEALIGN(8, (uintptr_t) record) == (uintptr_t) record);
	if (records->left < sizeof(GhRecord) || record->size < fixed_size(groups) ||
		record->size > records->left)
		elog(ERROR, "group of a hash aggregation has a wrong size");
	return take(records, record->size);
}

/* What comes behind the fixed part of a record. */
static GhRecordReader
behind_fixed(const GhGroups *groups, const GhRecord *record)
{
	return (GhRecordReader) {(const char *) record + fixed_size(groups), record->size - fixed_size(groups)};
}

static inline uint8
record_nulls(const GhGroups *groups, const GhRecord *record)
{
	return groups->packed ? record->sides >> GH_NULLS_SHIFT : 0;
}

/* Key k of a record, the next one; the address of its bytes is in it. */
static GhSqlValue
read_key(const GhGroups *groups, const GhRecord *record, int k, GhRecordReader *rest)
{
	GhSqlValue	key;

	if (groups->packed)
		return gh_unpack_key(groups, record->code, record_nulls(groups, record), k);
	key = (GhSqlValue) {.kind = ((const uint8 *) (record + 1))[k]};
	if (key.kind > GH_SQL_BYTES)
		elog(ERROR, "group of a hash aggregation has a key of kind %d", key.kind);
	if (key.kind == GH_SQL_NULL)
		return key;
	if (gh_value_is_bytes(&groups->keys[k], &key))
	{
		key.high = take_word(rest);
		key.low = (uintptr_t) take(rest, key.high);
		return key;
	}
	key.low = take_word(rest);
	if (gh_class_has_high(groups->keys[k].value_class))
		key.high = take_word(rest);
	return key;
}

/* Rows to be looked up: the keys of records; rest: by record, what comes behind the bytes of these. */
static void
load_records(GhGroups *groups, const GhRecord *const *records, uint32 n, GhRecordReader *rest)
{
	GhLookup   *lookup = groups->lookup;

	lookup->nrows = n;
	lookup->any_null = false;
	for (uint32 row = 0; row < n; row++)
	{
		rest[row] = behind_fixed(groups, records[row]);
		for (int k = 0; k < groups->nkeys && !groups->packed; k++)
			lookup->values[(Size) row * groups->nkeys + k] = read_key(groups, records[row], k, &rest[row]);
		lookup->codes[row] = records[row]->code;
		lookup->nulls[row] = record_nulls(groups, records[row]);
		lookup->any_null |= lookup->nulls[row] != 0;
	}
	if (groups->packed)
		return;
	gh_lookup_values(groups);
	for (uint32 row = 0; row < n; row++)
		if (records[row]->code != lookup->codes[row])
			elog(ERROR, "group of a hash aggregation has a wrong hash value");
}

/* The hash of those of a record's keys, which is not that of all of them. */
uint64
gh_group_record_part_hash(const GhGroups *groups, const char *record, Size size, const bool *is_part_key)
{
	GhRecordReader records = {record, size};
	const GhRecord *head = next_record(groups, &records);
	GhRecordReader rest = behind_fixed(groups, head);
	uint64		hash = 0;

	for (int k = 0; k < groups->nkeys; k++)
	{
		GhSqlValue	key;

		/* of keys that are no number together each is behind the one before it */
		if (!is_part_key[k] && groups->packed)
			continue;
		key = read_key(groups, head, k, &rest);
		if (is_part_key[k])
			hash = gh_hash_key(&groups->keys[k], &key, hash);
	}
	return hash;
}

/* Adds what another group has of an aggregate to a group. */
void
gh_group_merge_state(GhGroups *groups, uint32 group, int a, const GhAggregateState *from,
					 const GhSide *from_side)
{
	GhSide	   *held = (GhSide *) gh_groups_side_of(groups, group, a);
	GhSide	   *side = held;

	gh_aggregate_merge_sides(&groups->specs[a],
							 &groups->states[(Size) group * groups->naggregates + a],
							 &side, from, from_side, groups->context);
	if (side != held)
		*gh_groups_side(groups, group, a) = side;
}

static void
merge_states(GhGroups *groups, uint32 group, const GhRecord *record, GhRecordReader *rest)
{
	const char *at = (const char *) (record + 1) + keys_size(groups);

	for (int a = 0; a < groups->naggregates; a++)
	{
		GhAggregateState state = {0};
		const GhRecordSide *head;
		GhSide		side;

		memcpy(&state, at, state_bytes(&groups->specs[a]));
		at += state_bytes(&groups->specs[a]);
		if ((record->sides >> a & 1) == 0)
		{
			gh_group_merge_state(groups, group, a, &state, NULL);
			continue;
		}
		head = take(rest, sizeof(GhRecordSide));
		side.count = head->count;
		side.sum = take_datum(rest, head->sum_size);
		side.squares = take_datum(rest, head->squares_size);
		gh_group_merge_state(groups, group, a, &state, &side);
	}
}

/* Records that lie one behind the other; all of them are in the groups then. */
void
gh_groups_merge_records(GhGroups *groups, const char *records, Size size)
{
	GhRecordReader reader = {records, size};

	while (reader.left > 0)
	{
		const GhRecord *record[GH_LOOKUP_ROWS];
		GhRecordReader rest[GH_LOOKUP_ROWS];
		uint32		n = 0;

		CHECK_FOR_INTERRUPTS();
		for (; n < GH_LOOKUP_ROWS && reader.left > 0; n++)
			record[n] = next_record(groups, &reader);
		load_records(groups, record, n, rest);
		gh_look_up(groups);
		for (uint32 row = 0; row < n && groups->naggregates > 0; row++)
			merge_states(groups, groups->lookup->groups[row] - 1, record[row], &rest[row]);
	}
}

/* ------------------------------------------------- groups of an engine */

/* Such a record's states. */
const GhAggregateState *
gh_record_states(const GhGroups *groups, const char *record, Size left)
{
	Size		before = sizeof(GhRecordHead) + sizeof(GhRecordValue) * groups->nkeys;

	if (gh_record_bytes(record, left) < before + sizeof(GhAggregateState) * groups->naggregates)
		elog(ERROR, "group of an engine has a wrong size");
	return (const GhAggregateState *) (record + before);
}

/*
 * The least or greatest text that such a record has in a state, as a group of this process would have it: in
 * *side, with a datum in the current context.  NULL: it is another aggregate's state, or there was no text.
 */
const GhSide *
gh_record_text(const GhAggregateSpec *spec, const char *record, const GhAggregateState *state, GhSide *side)
{
	const GhRecordHead *head = (const GhRecordHead *) record;

	if (spec->final != GH_FINAL_TEXT || state->count == 0)
		return NULL;
	if (state->low > head->bytes || state->high > head->bytes - state->low)
		elog(ERROR, "record of an engine has a text that is not in it");
	*side = (GhSide) {.count = state->count};
	side->sum = PointerGetDatum(cstring_to_text_with_len(record + state->low, state->high));
	return side;
}

/* Its keys, with addresses in it, and its states.  Its bytes. */
static Size
read_scan_record(const GhGroups *groups, const char *record, Size left, GhSqlValue *keys,
				 const GhAggregateState **states)
{
	const GhRecordHead *head = (const GhRecordHead *) record;

	*states = gh_record_states(groups, record, left);
	for (int k = 0; k < groups->nkeys; k++)
		keys[k] = gh_record_value(head, k, &groups->keys[k]);
	return head->bytes;
}

/* Adds what such a record has of an aggregate to a group. */
void
gh_group_merge_record(GhGroups *groups, uint32 group, int a, const char *record, const GhAggregateState *state)
{
	static const GhAggregateState nothing = {0};
	GhSide		side;
	const GhSide *text = gh_record_text(&groups->specs[a], record, state, &side);

	gh_group_merge_state(groups, group, a, text != NULL ? &nothing : state, text);
	if (text != NULL)
		pfree(DatumGetPointer(side.sum));
}

/* Some such records, as rows to be looked up; their bytes. */
static Size
load_scan_records(GhGroups *groups, const char *records, Size size, const char **found, const GhAggregateState **states)
{
	GhLookup   *lookup = groups->lookup;
	Size		used = 0;
	uint32		n = 0;

	CHECK_FOR_INTERRUPTS();
	for (; n < GH_LOOKUP_ROWS && used < size; n++)
	{
		found[n] = records + used;
		used += read_scan_record(groups, records + used, size - used,
								 lookup->values + (Size) n * groups->nkeys, &states[n]);
	}
	lookup->nrows = n;
	gh_lookup_values(groups);
	return used;
}

static void
merge_scan_record(GhGroups *groups, uint32 row, const char *record, const GhAggregateState *states)
{
	for (int a = 0; a < groups->naggregates; a++)
		gh_group_merge_record(groups, groups->lookup->groups[row] - 1, a, record, &states[a]);
}

/* Such records, one behind the other; all of them are in the groups then. */
void
gh_groups_merge_scan(GhGroups *groups, const char *records, Size size)
{
	while (size > 0)
	{
		const char *found[GH_LOOKUP_ROWS];
		const GhAggregateState *states[GH_LOOKUP_ROWS];
		Size		used = load_scan_records(groups, records, size, found, states);

		gh_look_up(groups);
		for (uint32 row = 0; row < groups->lookup->nrows; row++)
			merge_scan_record(groups, row, found[row], states[row]);
		records += used;
		size -= used;
	}
}

/*
 * Of such records, one behind the other, those whose keys some group has are merged into it: how many.  *turn
 * is the number of the first, and then of the next one behind them; the bits of those that were merged are
 * set, of `room`.
 */
uint64
gh_groups_absorb_scan(GhGroups *groups, const char *records, Size size, uint64 *absorbed, uint64 room, uint64 *turn)
{
	const GhLookup *lookup = groups->lookup;
	uint64		nabsorbed = 0;

	while (size > 0)
	{
		const char *found[GH_LOOKUP_ROWS];
		const GhAggregateState *states[GH_LOOKUP_ROWS];
		Size		used = load_scan_records(groups, records, size, found, states);

		if (lookup->nrows > room - *turn)
			elog(ERROR, "an engine has more groups than it said");
		gh_look_up_known(groups);
		for (uint32 row = 0; row < lookup->nrows; row++, ++*turn)
		{
			if (lookup->groups[row] == 0)
				continue;
			merge_scan_record(groups, row, found[row], states[row]);
			/* rows before the node's own may have been the first to have the key */
			gh_group_show_keys(groups, row);
			absorbed[*turn / 64] |= UINT64CONST(1) << *turn % 64;
			nabsorbed++;
		}
		records += used;
		size -= used;
	}
	return nabsorbed;
}

/*
 * The texts that an engine's record has in states, as sides; those states are empty in *own then.  Bytes of
 * the sides.
 */
static Size
take_texts(const GhGroups *groups, const char *record, const GhAggregateState *states, GhAggregateState *own,
		   GhSide *sides)
{
	Size		size = 0;

	memcpy(own, states, sizeof(GhAggregateState) * groups->naggregates);
	for (int a = 0; a < groups->naggregates; a++)
	{
		if (gh_record_text(&groups->specs[a], record, &states[a], &sides[a]) == NULL)
			continue;
		memset(&own[a], 0, sizeof(own[a]));
		size += side_size(&sides[a]);
	}
	return size;
}

/* The same written behind a record. */
static char *
put_texts(const GhGroups *groups, GhRecord *head, const GhSide *sides, char *at)
{
	for (int a = 0; a < groups->naggregates; a++)
	{
		if (sides[a].count == 0)
			continue;
		head->sides |= UINT64CONST(1) << a;
		at = put_side(at, &sides[a]);
		pfree(DatumGetPointer(sides[a].sum));
	}
	return at;
}

/* The record of a row that is looked up, which need not be there; `record` is the engine's. */
static Size
convert_record(const GhGroups *groups, uint32 row, const char *record, const GhAggregateState *states,
			   GhRecordBuffer *buffer)
{
	const GhLookup *lookup = groups->lookup;
	const GhSqlValue *keys = lookup->values + (Size) row * groups->nkeys;
	Size		size = fixed_size(groups);
	GhAggregateState own[GH_AGGREGATES_MAX];
	GhSide		sides[GH_AGGREGATES_MAX];
	GhRecord   *head;
	char	   *at;

	if (groups->has_texts)
	{
		memset(sides, 0, sizeof(GhSide) * groups->naggregates);
		size += take_texts(groups, record, states, own, sides);
		states = own;
	}
	for (int k = 0; k < groups->nkeys && !groups->packed; k++)
		size += key_size(&groups->keys[k], &keys[k]);
	head = (GhRecord *) gh_record_buffer(buffer, size);
	at = begin_record(groups, head, lookup->codes[row], lookup->nulls[row], states);
	for (int k = 0; k < groups->nkeys && !groups->packed; k++)
		at = put_key(groups, head, k, &keys[k], at);
	if (groups->has_texts)
		at = put_texts(groups, head, sides, at);
	head->size = size;
	Assert(at == (char *) head + size);
	return size;
}

/* Such records as groups of this process would be written, one by one. */
void
gh_put_records(GhGroups *groups, const char *records, Size size, GhPutRecord put, void *arg)
{
	GhRecordBuffer buffer = {.context = CurrentMemoryContext};

	while (size > 0)
	{
		const char *found[GH_LOOKUP_ROWS];
		const GhAggregateState *states[GH_LOOKUP_ROWS];
		Size		used = load_scan_records(groups, records, size, found, states);

		for (uint32 row = 0; row < groups->lookup->nrows; row++)
		{
			Size		bytes = convert_record(groups, row, found[row], states[row], &buffer);

			put(arg, buffer.data, bytes);
		}
		records += used;
		size -= used;
	}
	if (buffer.data != NULL)
		pfree(buffer.data);
}
