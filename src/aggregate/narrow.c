/*
 * narrow.c
 *		Groups on a device that do not leave it: those that HAVING leaves out, those that are not among the
 *		first ones of an order (first.c), and those that are grouped again, by the node (regroup_device.c) or
 *		one above it (nested.c).
 *
 * The groups are the source of a pipeline there, which has the first of HAVING's conditions (having.c) and
 * what lets the first ones through as steps, and whose rows have all that the records of groups have.  That
 * is for groups that are whole, and of which the program tells without PostgreSQL's help: where it cannot
 * tell of one, all of them come to the host, and are judged there.
 */
#include "postgres.h"

#include "aggregate/first.h"
#include "aggregate/level.h"
#include "engine/pipeline/record_row.h"
#include "fragment/device.h"
#include "fragment/records.h"

/* What of the groups leaves the device. */
typedef struct Narrowing
{
	GhLevelGroups groups;
	bool		judged;			/* what HAVING's conditions with programs let through */
	const GhFirstGroups *first; /* and this; NULL: there is no such limit */
	uint64		sample;			/* of so many groups; 0: of all */
	GhLevelCounts counts;		/* of them: the first step are the conditions */
} Narrowing;

/* ------------------------------------------------------------------ the program */

/*
 * What a group's record has, as values of a row: the keys, and of each aggregate how many values, and the
 * value.
 */
static uint32
number_of_values(const GhAggregateNode *node, const GhLevelGroups *groups)
{
	return groups->nkeys + 2 * node->shown.naggregates;
}

/* Such a value in the groups, and its class. */
static GhGroupColumn
value_of_record(const GhAggregateNode *node, const GhLevelGroups *groups, uint32 number, GhClass *value_class)
{
	uint32		state = number - groups->nkeys;

	if (number < (uint32) groups->nkeys)
	{
		*value_class = gh_vector_class(node->key_types[groups->keys[number]].value_class);
		return (GhGroupColumn) {GH_GROUP_KEY, number};
	}
	*value_class = state % 2 == 0 ? GH_CLASS_INT : gh_level_class(&node->shown.specs[state / 2].aggregate);
	return state % 2 == 0 ? groups->counts[state / 2] : groups->values[state / 2];
}

/* Whether the records are made of what a pipeline tells of groups. */
static bool
can_be_rows(const GhAggregateNode *node, const GhLevelGroups *groups)
{
	for (int a = 0; a < node->shown.naggregates; a++)
		if (node->shown.specs[a].aggregate.kind == GH_AGGREGATE_MOMENTS)
			return false;
	return number_of_values(node, groups) <= GH_VALUES_MAX;
}

/* Adds the values of the rows, behind what the conditions read. */
static bool
add_values(const GhAggregateNode *node, const GhLevelGroups *groups, GhLevel *level, GhOperand *operands,
		   GhRecordKey *values)
{
	for (uint32 i = 0; i < number_of_values(node, groups); i++)
	{
		GhClass		value_class;
		GhGroupColumn column = value_of_record(node, groups, i, &value_class);

		values[i].value_class = value_class;
		if (!gh_level_add(level, column, value_class, &operands[i]))
			return false;
	}
	return true;
}

/*
 * The conditions, what lets the first ones through, and the values; false: that is too much, or cannot be
 * told.
 */
static bool
make_options(GhAggregateNode *node, const Narrowing *narrowing, GhPipelineOptions *options)
{
	uint32		nvalues = number_of_values(node, &narrowing->groups);
	GhRecordKey *values = palloc0(sizeof(GhRecordKey) * Max(nvalues, 1));
	GhOperand	operands[GH_VALUES_MAX];
	GhTranslation *translation = gh_having_begin(node, narrowing->judged);
	GhLevel		level;

	if (translation == NULL)
		return false;
	gh_level_begin(&level, translation);
	gh_level_add_parts(&level, node, &narrowing->groups);
	if ((narrowing->first != NULL && !gh_first_translate(narrowing->first, translation)) ||
		!add_values(node, &narrowing->groups, &level, operands, values) || !gh_level_end(&level, options) ||
		!gh_level_tells(node, options->program, false))
		return false;
	for (uint32 i = 0; i < nvalues; i++)
		values[i].vector = gh_final_vector(translation, &operands[i]);
	options->sink.kind = GH_SINK_ROWS;
	options->sink.rows = (GhRowsSink) {nvalues, values};
	return true;
}

/* --------------------------------------------------------------- records of rows */

/* Where texts begin. */
static Size
texts_of_record(const GhAggregateNode *node)
{
	return sizeof(GhRecordHead) + sizeof(GhRecordValue) * node->shown.nkeys +
		sizeof(GhAggregateState) * node->shown.naggregates;
}

/* Sets the keys of a record; what is no key of the row is NULL, but for the number of a grouping set. */
static void
set_keys(const GhAggregateNode *node, const GhLevelGroups *groups, const GhRecordHead *from,
		 GhRecordHead *head, Size texts_moved)
{
	const GhRecordValue *values = (const GhRecordValue *) (from + 1);
	GhRecordValue *keys = (GhRecordValue *) (head + 1);

	memset(keys, 0, sizeof(GhRecordValue) * node->shown.nkeys);
	head->nulls = (UINT64CONST(1) << node->shown.nkeys) - 1;
	for (int i = 0; i < groups->nkeys; i++)
	{
		int			k = groups->keys[i];

		if ((from->nulls >> i & 1) != 0)
			continue;
		head->nulls &= ~(UINT64CONST(1) << k);
		keys[k] = values[i];
		if (gh_vector_class(node->key_types[k].value_class) == GH_CLASS_TEXT)
			keys[k].low += texts_moved;
	}
	if (node->sets != NULL)
	{
		head->nulls &= ~(UINT64CONST(1) << node->nkeys);
		keys[node->nkeys].low = groups->set;
	}
}

/* Makes a group's record of a row, which has *row_bytes; the record's bytes. */
static Size
make_record(const GhAggregateNode *node, const GhLevelGroups *groups, const char *row, Size left,
			char *record, Size *row_bytes)
{
	const GhRecordHead *from = gh_record_of(row, left, number_of_values(node, groups));
	const GhRecordValue *values = (const GhRecordValue *) (from + 1) + groups->nkeys;
	Size		texts_from = sizeof(GhRecordHead) + sizeof(GhRecordValue) * number_of_values(node, groups);
	Size		texts_to = texts_of_record(node);
	GhRecordHead *head = (GhRecordHead *) record;
	GhAggregateState *states = (GhAggregateState *) ((GhRecordValue *) (head + 1) + node->shown.nkeys);

	*row_bytes = from->bytes;
	head->bytes = texts_to + from->bytes - texts_from;
	head->rows = 1;
	set_keys(node, groups, from, head, texts_to - texts_from);
	for (int a = 0; a < node->shown.naggregates; a++)
	{
		const GhRecordValue *count = &values[2 * a];

		states[a] = (GhAggregateState) {.count = count[0].low};
		if (node->shown.specs[a].aggregate.kind > GH_AGGREGATE_COUNT)
			states[a] = (GhAggregateState) {.count = count[0].low,.low = count[1].low,.high = count[1].high};
	}
	memcpy(record + texts_to, row + texts_from, from->bytes - texts_from);
	return head->bytes;
}

/* Makes the groups' records of rows; their bytes.  *records is to be freed. */
static Size
make_records(const GhAggregateNode *node, const GhLevelGroups *groups, const char *rows, Size size,
			 char **records)
{
	Size		used = 0;
	/* a state is larger than its two values, by less than these take; a key may be none of the row's */
	Size		keys = sizeof(GhRecordValue) * (node->shown.nkeys - groups->nkeys);
	Size		most = 2 * size + size / sizeof(GhRecordHead) * keys;

	*records = MemoryContextAllocHuge(CurrentMemoryContext, Max(most, 1));
	while (size > 0)
	{
		Size		bytes;

		used += make_record(node, groups, rows, size, *records + used, &bytes);
		rows += bytes;
		size -= bytes;
	}
	return used;
}

/* Keeps groups that came as rows. */
void
gh_narrow_take(GhAggregateNode *node, const char *rows, Size size)
{
	char	   *records;
	Size		used = make_records(node, node->as_rows, rows, size, &records);

	gh_final_groups_put(node->final, records, used);
	pfree(records);
}

/* ------------------------------------------------------------------------ the run */

static bool narrow_all(GhAggregateNode *node, GhSupply *supply);

/* Adds a level of rows; false: they cannot be made, or the supply has failed. */
static bool
add_rows(GhAggregateNode *node, GhSupply *supply, Narrowing *narrowing)
{
	GhPipelineOptions options;

	return !supply->failed && make_options(node, narrowing, &options) &&
		gh_supply_add_level(supply, &options, narrowing->sample, &narrowing->counts);
}

typedef struct Sample
{
	GhAggregateNode *node;
	const GhLevelGroups *groups;
	GhFirstGroups *first;
} Sample;

/* Shows a sample's rows to who looks for the first ones. */
static void
take_sample(void *arg, const char *rows, Size size)
{
	const Sample *sample = arg;
	char	   *records;
	Size		used = make_records(sample->node, sample->groups, rows, size, &records);

	gh_first_take(sample->first, records, used);
	pfree(records);
}

/* What lets the first of so many groups through; NULL: there is no such limit, or the supply has failed. */
static const GhFirstGroups *
find_first(GhAggregateNode *node, GhSupply *supply, const Narrowing *narrowing, uint64 ngroups)
{
	Narrowing	sampling = *narrowing;
	GhFirstGroups *first = gh_first_begin(node, ngroups);
	Sample		sample = {node, &narrowing->groups, first};
	int			nlevels = supply->nlevels;
	bool		found;

	if (first == NULL)
		return NULL;
	sampling.sample = gh_first_sample(first);
	if (!add_rows(node, supply, &sampling))
		return NULL;
	found = gh_supply_fetch(supply, gh_device_piece(&node->fragment), take_sample, &sample) &&
		gh_first_end(first);
	gh_supply_drop_levels(supply, nlevels);
	return found ? first : NULL;
}

/* Adds a level of rows, of as few groups as can be told; false: all groups are to come as they are. */
static bool
narrow(GhAggregateNode *node, GhSupply *supply, Narrowing *narrowing)
{
	bool		compiled = gh_level_compile_having(node);
	bool		conditions = node->fragment.css.ss.ps.qual != NULL;

	if (!can_be_rows(node, &narrowing->groups))
		return false;
	narrowing->judged = conditions && compiled && node->shown.nkeys > 0;
	if (node->shown.nkeys > 0 && (!conditions || (compiled && node->having->whole)))
		narrowing->first = find_first(node, supply, narrowing, gh_supply_groups(supply));
	if (narrowing->first != NULL && add_rows(node, supply, narrowing))
		return true;
	narrowing->first = NULL;
	if (narrowing->judged && add_rows(node, supply, narrowing))
		return true;
	narrowing->judged = false;
	return node->regrouped && add_rows(node, supply, narrowing);
}

/*
 * The groups, so many, which are the last level's, become fewer, as far as they can; false: all are to come
 * as they are.
 */
static bool
narrow_level(GhAggregateNode *node, GhSupply *supply, Narrowing *narrowing)
{
	GhLevelCounts *counts = &narrowing->counts;

	if (node->above != NULL && gh_nested_take(node, supply, &narrowing->groups, counts))
	{
		node->taken = true;
		node->passed = counts->passed[0];
		node->left_out = counts->groups - node->passed;
		counts->counted = 0;
		return true;
	}
	if (!narrow(node, supply, narrowing))
		return false;
	node->as_rows = &narrowing->groups;
	if (narrowing->judged)
		gh_final_groups_leave_out(node->final, counts->groups - counts->passed[0]);
	node->behind = counts->passed[0] - counts->counted;
	return true;
}

/*
 * The node's groups are the last level's of the supply: of so many, few or none are to come.  True: these
 * have come.
 */
static bool
narrow_groups(GhAggregateNode *node, GhSupply *supply, uint64 made)
{
	Narrowing  *narrowing = palloc0(sizeof(Narrowing));
	int			nlevels = supply->nlevels;

	gh_level_first(node, &narrowing->groups);
	if (node->distinct != NULL)
	{
		gh_aggregate_show(node, true);
		narrowing->groups.nkeys -= node->distinct->nkeys;
		if (!gh_regroup_on_device(node, supply, &narrowing->groups))
		{
			gh_aggregate_show(node, false);
			return false;
		}
	}
	if (narrow_level(node, supply, narrowing))
	{
		node->made = made;
		node->left_there = narrowing->counts.groups - narrowing->counts.counted +
			(node->regrouped ? made : 0);
	}
	else if (node->regrouped)
	{
		gh_supply_drop_levels(supply, nlevels);
		gh_aggregate_show(node, false);
	}
	return node->taken && narrow_all(node->above, supply);
}

/* ---------------------------------------------------------------------- grouping sets */

static void
take_rows(void *arg, const char *rows, Size size)
{
	gh_narrow_take(arg, rows, size);
}

/* The groups of one of the sets come as rows; false: the device cannot make them. */
static bool
take_set(GhAggregateNode *node, GhSupply *supply, int set)
{
	Narrowing  *narrowing = palloc0(sizeof(Narrowing));
	int			nlevels = supply->nlevels;
	bool		done;

	narrowing->groups.nkeys = gh_sets_keys(node, set, narrowing->groups.keys);
	narrowing->groups.set = set;
	node->as_rows = &narrowing->groups;
	done = gh_regroup_on_device(node, supply, &narrowing->groups) && can_be_rows(node, &narrowing->groups) &&
		add_rows(node, supply, narrowing) &&
		gh_supply_fetch(supply, gh_device_piece(&node->fragment), take_rows, node);
	gh_supply_drop_levels(supply, nlevels);
	return done;
}

/* Of the groups by all keys, those of each set are made, and come; false: those by all keys are to come. */
static bool
take_sets(GhAggregateNode *node, GhSupply *supply, uint64 made)
{
	bool		done = true;

	gh_aggregate_show(node, true);
	for (int set = 0; done && set < node->sets->count; set++)
		done = take_set(node, supply, set);
	if (!done)
	{
		gh_final_groups_clear(node->final);
		gh_aggregate_show(node, false);
		node->as_rows = NULL;
		return false;
	}
	node->made = made;
	node->left_there = made;
	return true;
}

/*
 * Not for as many groups as fit in a batch: these come to the host in less time than it takes to make a
 * pipeline.  True: they have come.
 */
static bool
narrow_all(GhAggregateNode *node, GhSupply *supply)
{
	uint64		made = gh_supply_groups(supply);

	if (node->nkeys == 0 || made <= (uint64) gh_batch_rows || !gh_output_is_whole(node))
		return false;
	return node->sets != NULL ? take_sets(node, supply, made) : narrow_groups(node, supply, made);
}

/* GhFragmentMethods */
bool
gh_aggregate_narrow(GhFragment *fragment)
{
	GhSupply   *supply = &fragment->device->supply;
	MemoryContext saved = MemoryContextSwitchTo(supply->context);
	bool		taken = narrow_all(gh_aggregate_of(fragment), supply);

	MemoryContextSwitchTo(saved);
	return taken;
}
