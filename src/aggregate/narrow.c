/*
 * narrow.c
 *		HAVING on a device: groups that it leaves out do not leave the device.
 *
 * The groups are the source of a second pipeline there, whose step are the first of the conditions
 * (having.c), and whose rows have all that the records of groups have.  That is for groups that are whole,
 * and of which the conditions' program tells without PostgreSQL's help: where it cannot tell of one, all of
 * them come to the host, and are judged there.
 */
#include "postgres.h"

#include "aggregate/having.h"
#include "engine/pipeline/record_row.h"
#include "fragment/device.h"
#include "fragment/records.h"

/*
 * What a group's record has, as values of a row: the keys, and of each aggregate how many values, and the
 * value.
 */
static uint32
number_of_values(const GhAggregateNode *node)
{
	return node->nkeys + 2 * node->naggregates;
}

static GhGroupColumn
value_of_record(const GhAggregateNode *node, uint32 number)
{
	uint32		state = number - node->nkeys;

	if (number < (uint32) node->nkeys)
		return (GhGroupColumn) {GH_GROUP_KEY, number};
	return (GhGroupColumn) {state % 2 == 0 ? GH_GROUP_COUNT : GH_GROUP_VALUE, state / 2};
}

/* What a pipeline has of a group for a column of the conditions. */
static GhGroupColumn
column_of_part(const GhAggregateNode *node, GhGroupsPart part)
{
	if (part.kind == GH_PART_KEY)
		return (GhGroupColumn) {GH_GROUP_KEY, part.number};
	if (part.kind == GH_PART_COUNT || node->shown.specs[part.number].final == GH_FINAL_COUNT)
		return (GhGroupColumn) {GH_GROUP_COUNT, part.number};
	return (GhGroupColumn) {GH_GROUP_VALUE, part.number};
}

/* All 128 bits of a sum. */
static GhClass
class_of_value(const GhAggregateNode *node, GhGroupColumn column)
{
	const GhAggregate *aggregate;

	if (column.part == GH_GROUP_KEY)
		return node->key_types[column.number].value_class;
	if (column.part == GH_GROUP_COUNT)
		return GH_CLASS_INT;
	aggregate = &node->aggregates[column.number];
	return aggregate->value_class == GH_CLASS_INT && gh_aggregate_is_sum(aggregate) ? GH_CLASS_INT128 :
		aggregate->value_class;
}

/* A column of a source that is no page: how it is loaded says no more than what it holds. */
static GhColumn
source_column(AttrNumber attribute, GhClass value_class)
{
	static const uint8 loads[] = {
		[GH_CLASS_INT] = GH_LOAD_INT8,
		[GH_CLASS_INT128] = GH_LOAD_NUMERIC,
		[GH_CLASS_FLOAT4] = GH_LOAD_FLOAT4,
		[GH_CLASS_FLOAT8] = GH_LOAD_FLOAT8,
		[GH_CLASS_BOOL] = GH_LOAD_BOOL,
		[GH_CLASS_TEXT] = GH_LOAD_TEXT,
	};

	Assert(value_class < lengthof(loads) && loads[value_class] != 0);
	return (GhColumn) {.attribute = attribute,.load = loads[value_class]};
}

/* Whether the conditions and the groups' records are made of what a pipeline tells of groups. */
static bool
can_be_judged_on_device(const GhAggregateNode *node)
{
	const GhHaving *having = node->having;
	bool		can = number_of_values(node) <= GH_VALUES_MAX;

	for (uint32 i = 0; i < having->program->ncolumns; i++)
	{
		const GhGroupsPart *part = &having->parts[i];

		/* see hand_back_scales() */
		can &= part->kind != GH_PART_FLOAT &&
			(part->kind == GH_PART_KEY || !having->divides || node->shown.specs[part->number].scales == 0);
	}
	for (int a = 0; a < node->naggregates; a++)
		can &= node->aggregates[a].kind != GH_AGGREGATE_MOMENTS;
	return can;
}

/*
 * The conditions, then the values, which are columns behind those of the conditions; false: that is too much.
 */
static bool
make_narrowing(const GhAggregateNode *node, GhPipelineOptions *options)
{
	GhTranslation *translation = gh_having_translate(node);
	uint32		nvalues = number_of_values(node);
	int			nbefore = gh_having_columns(node);
	GhGroupColumn *columns = palloc0(sizeof(GhGroupColumn) * (nbefore + nvalues));
	GhRecordKey *values = palloc0(sizeof(GhRecordKey) * nvalues);
	GhOperand	operands[GH_VALUES_MAX];
	GhStep	   *step = palloc0(sizeof(GhStep));
	const GhProgram *conditions = node->having->program;
	GhProgram  *program;

	for (uint32 i = 0; i < conditions->ncolumns; i++)
		columns[gh_program_columns(conditions)[i].attribute - 1] =
			column_of_part(node, node->having->parts[i]);
	for (uint32 i = 0; i < nvalues; i++)
	{
		GhGroupColumn value = value_of_record(node, i);
		GhColumn	column;

		/* a count has no value beside: its own once more */
		if (value.part == GH_GROUP_VALUE && node->aggregates[value.number].kind <= GH_AGGREGATE_COUNT)
			value.part = GH_GROUP_COUNT;
		values[i].value_class = class_of_value(node, value);
		columns[nbefore + i] = value;
		column = source_column(nbefore + i + 1, values[i].value_class);
		if (!gh_add_column(translation, &column, &operands[i]))
			return false;
	}
	program = gh_translate_end(translation);
	if (program == NULL)
		return false;
	for (uint32 i = 0; i < nvalues; i++)
		values[i].vector = gh_final_vector(translation, &operands[i]);
	step->end = program->ninstructions;
	*options = (GhPipelineOptions) {
		.program = program,
		.program_bytes = program->bytes,
		.source.natts = nbefore + nvalues,
		.source.columns = columns,
		.nsteps = 1,
		.steps = step,
		.sink.kind = GH_SINK_ROWS,
		.sink.rows = {nvalues, values},
	};
	return true;
}

/* Options of the second pipeline; false: it cannot do it. */
static bool
narrow_options(GhAggregateNode *node, GhPipelineOptions *options)
{
	MemoryContext saved;
	bool		done;

	if (!gh_having_compile(node) || !can_be_judged_on_device(node))
		return false;
	saved = MemoryContextSwitchTo(node->having->context);
	done = make_narrowing(node, options);
	MemoryContextSwitchTo(saved);
	return done;
}

/* Where texts begin. */
static Size
texts_of_record(const GhAggregateNode *node)
{
	return sizeof(GhRecordHead) + sizeof(GhRecordValue) * node->nkeys +
		sizeof(GhAggregateState) * node->naggregates;
}

/* Makes a group's record of a row of the second pipeline, which has *row_bytes; the record's bytes. */
static Size
make_record(const GhAggregateNode *node, const char *row, Size left, char *record, Size *row_bytes)
{
	const GhRecordHead *from = gh_record_of(row, left, number_of_values(node));
	const GhRecordValue *values = (const GhRecordValue *) (from + 1);
	Size		texts_from = sizeof(GhRecordHead) + sizeof(GhRecordValue) * number_of_values(node);
	Size		texts_to = texts_of_record(node);
	GhRecordHead *head = (GhRecordHead *) record;
	GhRecordValue *keys = (GhRecordValue *) (head + 1);
	GhAggregateState *states = (GhAggregateState *) (keys + node->nkeys);

	*row_bytes = from->bytes;
	head->bytes = texts_to + from->bytes - texts_from;
	head->rows = 1;
	head->nulls = from->nulls & ((UINT64CONST(1) << node->nkeys) - 1);
	for (int k = 0; k < node->nkeys; k++)
	{
		keys[k] = values[k];
		if (node->key_types[k].value_class == GH_CLASS_TEXT && (head->nulls >> k & 1) == 0)
			keys[k].low += texts_to - texts_from;
	}
	for (int a = 0; a < node->naggregates; a++)
	{
		const GhRecordValue *count = &values[node->nkeys + 2 * a];

		states[a] = (GhAggregateState) {.count = count[0].low};
		if (node->aggregates[a].kind > GH_AGGREGATE_COUNT)
			states[a] = (GhAggregateState) {.count = count[0].low,.low = count[1].low,.high = count[1].high};
	}
	memcpy(record + texts_to, row + texts_from, from->bytes - texts_from);
	return head->bytes;
}

/* -------------------------------------------------------------------- the run */

/*
 * GhFragmentMethods.  Not for as many groups as fit in a batch: these come to the host in less time than it
 * takes to make a pipeline.
 */
void
gh_aggregate_narrow(GhFragment *fragment)
{
	GhAggregateNode *node = gh_aggregate_of(fragment);
	GhSupply   *supply = &fragment->device->supply;
	uint64		ngroups = gh_supply_groups(supply);
	uint64		passed;
	GhPipelineOptions options;

	if (node->nkeys == 0 || ngroups <= (uint64) gh_batch_rows || fragment->css.ss.ps.qual == NULL ||
		!gh_output_is_whole(node) || !narrow_options(node, &options))
		return;
	if (!gh_supply_narrow(supply, &options, ngroups, &passed))
		return;
	gh_final_groups_leave_out(node->final, ngroups - passed);
	fragment->counts.groups_left += ngroups - passed;
}

/* Keeps groups that came as rows. */
void
gh_narrow_take(GhAggregateNode *node, const char *rows, Size size)
{
	/* a state is larger than its two values, by less than these take */
	char	   *records = palloc(2 * size);
	Size		used = 0;

	while (size > 0)
	{
		Size		bytes;

		used += make_record(node, rows, size, records + used, &bytes);
		rows += bytes;
		size -= bytes;
	}
	gh_final_groups_put(node->final, records, used);
	pfree(records);
}
