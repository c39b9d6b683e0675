/*
 * level.c
 *		Groups on a device as the source of another pipeline there: its columns, and its program.
 */
#include "postgres.h"

#include "aggregate/level.h"
#include "engine/pipeline/record_row.h"
#include "fragment/device.h"

/* Of what an aggregate comes to, the class: all 128 bits of a sum. */
GhClass
gh_level_class(const GhAggregate *aggregate)
{
	if (aggregate->kind <= GH_AGGREGATE_COUNT)
		return GH_CLASS_INT;
	return aggregate->value_class == GH_CLASS_INT && gh_aggregate_is_sum(aggregate) ? GH_CLASS_INT128 :
		aggregate->value_class;
}

/* Those that the input was read into, if nothing else comes out than these. */
void
gh_level_first(const GhAggregateNode *node, GhLevelGroups *groups)
{
	int			naggregates = Max(node->naggregates, 1);

	groups->nkeys = node->nkeys;
	for (int k = 0; k < node->nkeys; k++)
		groups->keys[k] = k;
	groups->counts = palloc(sizeof(GhGroupColumn) * naggregates);
	groups->values = palloc(sizeof(GhGroupColumn) * naggregates);
	for (int a = 0; a < node->naggregates; a++)
	{
		uint8		part = node->specs[a].aggregate.kind > GH_AGGREGATE_COUNT ?
			GH_GROUP_VALUE : GH_GROUP_COUNT;

		groups->counts[a] = (GhGroupColumn) {GH_GROUP_COUNT, a};
		groups->values[a] = (GhGroupColumn) {part, a};
	}
}

/* Whether HAVING has a program.  There is a group, so that PostgreSQL would ask the first condition. */
bool
gh_level_compile_having(GhAggregateNode *node)
{
	PlanState  *ps = &node->fragment.css.ss.ps;

	if (ps->qual != NULL)
		gh_device_run_awaited(ps, linitial(ps->plan->qual));
	return gh_having_compile(node);
}

/* Whether all that HAVING asks has a program. */
bool
gh_level_has_conditions(GhAggregateNode *node)
{
	bool		compiled = gh_level_compile_having(node);

	return node->fragment.css.ss.ps.qual == NULL || (compiled && node->having->whole);
}

/*
 * Over the relation of groups (having.h), of which the translation may already have some, and their
 * conditions.
 */
void
gh_level_begin(GhLevel *level, GhTranslation *translation)
{
	level->translation = translation;
	level->nconditions = translation->ninstructions;
	level->ncolumns = 0;
	level->columns = palloc0(sizeof(GhGroupColumn) * 2 * GH_PROGRAM_VECTORS_MAX);
}

/* What a part of a group is in them. */
static GhGroupColumn
column_of_part(const GhAggregateNode *node, const GhLevelGroups *groups, GhGroupsPart part)
{
	if (part.kind == GH_PART_KEY)
		return (GhGroupColumn) {GH_GROUP_KEY, part.number};
	return part.kind == GH_PART_COUNT || node->shown.specs[part.number].final == GH_FINAL_COUNT ?
		groups->counts[part.number] : groups->values[part.number];
}

/* The first columns of the source are those of the relation of groups. */
void
gh_level_add_parts(GhLevel *level, const GhAggregateNode *node, const GhLevelGroups *groups)
{
	Assert(level->ncolumns == 0);
	while (level->ncolumns < (uint32) gh_having_columns(node))
	{
		GhGroupsPart part = gh_having_part(node, level->ncolumns + 1);

		level->columns[level->ncolumns++] = column_of_part(node, groups, part);
	}
}

/*
 * Whether what the program reads of the relation of groups is what a pipeline tells of them.  exact: numbers
 * have to show all their digits; else just where the program divides.
 */
bool
gh_level_tells(const GhAggregateNode *node, const GhProgram *program, bool exact)
{
	for (uint32 i = 0; i < program->ninstructions; i++)
		exact |= gh_program_instructions(program)[i].op == GH_OP_QUOTIENT;
	for (uint32 i = 0; i < program->ncolumns; i++)
	{
		int			attribute = gh_program_columns(program)[i].attribute;
		GhGroupsPart part;

		if (attribute > gh_having_columns(node))
			continue;
		part = gh_having_part(node, attribute);
		if (part.kind == GH_PART_FLOAT ||
			(part.kind != GH_PART_KEY && exact && node->shown.specs[part.number].scales != 0))
			return false;
	}
	return true;
}

/* One more column of the source.  It is none of a page: how it is loaded says no more than what it holds. */
bool
gh_level_add(GhLevel *level, GhGroupColumn column, GhClass value_class, GhOperand *operand)
{
	static const uint8 loads[] = {
		[GH_CLASS_INT] = GH_LOAD_INT8,
		[GH_CLASS_INT128] = GH_LOAD_NUMERIC,
		[GH_CLASS_FLOAT4] = GH_LOAD_FLOAT4,
		[GH_CLASS_FLOAT8] = GH_LOAD_FLOAT8,
		[GH_CLASS_BOOL] = GH_LOAD_BOOL,
		[GH_CLASS_TEXT] = GH_LOAD_TEXT,
	};
	GhColumn	loaded = {0};

	Assert(value_class < lengthof(loads) && loads[value_class] != 0);
	if (level->ncolumns == 2 * GH_PROGRAM_VECTORS_MAX)
		return gh_translation_fails(level->translation, "there are too many columns");
	level->columns[level->ncolumns++] = column;
	loaded.attribute = level->ncolumns;
	loaded.load = loads[value_class];
	return gh_add_column(level->translation, &loaded, operand);
}

/* GhOverRows */
static Expr *
over_groups(Expr *expr, void *arg)
{
	return gh_having_over_groups(arg, expr);
}

/* All that PostgreSQL computes of a group that comes out; see gh_translate_computed(). */
bool
gh_level_translate_computed(GhAggregateNode *node, GhTranslation *translation)
{
	return gh_translate_computed(translation, node->fragment.css.ss.ps.plan->targetlist, over_groups, node);
}

/*
 * The program is made, of two steps: the conditions, and what comes behind them.  All of the options is set,
 * but for the sink, which is 0.
 */
bool
gh_level_end(GhLevel *level, GhPipelineOptions *options)
{
	const GhProgram *program = gh_translate_end(level->translation);
	GhStep	   *steps = palloc0(sizeof(GhStep) * 2);

	if (program == NULL)
		return false;
	memset(options, 0, sizeof(*options));
	steps[0].end = level->nconditions;
	steps[1].end = program->ninstructions;
	options->nsteps = 2;
	options->steps = steps;
	options->program = program;
	options->program_bytes = program->bytes;
	options->source.kind = GH_SOURCE_GROUPS;
	options->source.natts = level->ncolumns;
	options->source.columns = level->columns;
	return true;
}
