/*
 * inner_side.c
 *		What the table of a join on a device is made of: the inner side, its program, the options of the
 *		pipeline.
 */
#include "postgres.h"

#include "utils/rel.h"

#include "expr/translate.h"
#include "fragment/inner_side.h"
#include "fragment/joined.h"

/* --------------------------------------------------------------- the inner side */

/* Whether the inner side is pages, with joins or without, or rows that make a table; and which. */
bool
gh_side_find(GhFragment *fragment, GhJoinLevel *level, GhInnerSide *side)
{
	const GhLowerJoin *lower = level->lower;

	side->fragment = fragment;
	side->level = level;
	side->joined = level->inner;
	side->by_rows = side->joined == NULL && lower->pages[GH_INNER] == NULL;
	side->nkeys = side->by_rows && !lower->is_coded ? 1 : level->nkeys;
	if (level->has_no_columns)
		return gh_device_refuses(fragment, "columns of an inner side are read of which there is no row");
	if (side->by_rows)
	{
		const char *why_not = gh_side_rows_refused(side);

		side->scan = lower->children[GH_INNER];
		return why_not == NULL || gh_device_refuses(fragment, why_not);
	}
	if (lower->keys[GH_INNER]->has_exprs)
		return gh_device_refuses(fragment, "an inner key is an expression");
	/* there are tuples of several tables */
	if (side->joined != NULL && level->place_vector >= 0)
		return gh_device_refuses(fragment, "tuples of an inner side that is joins are fetched");
	side->scan = side->joined != NULL ? side->joined->scan : lower->children[GH_INNER];
	side->relation = ((ScanState *) side->scan)->ss_currentRelation;
	side->pages = side->joined != NULL ? gh_joined_pages(side->joined) : lower->pages[GH_INNER];
	return true;
}

/* --------------------------------------------------------------- the program */

/* A column of the inner side's rows, as the program reads it. */
static bool
translate_column(GhInnerSide *side, int resno, GhOperand *operand)
{
	int			attno = side->joined != NULL ? gh_joined_attno(side->joined, side->joined->sources[resno - 1]) :
		gh_relation_attno(side->scan, resno);

	return gh_translate_attribute(side->translation, attno, operand);
}

/* The columns of an inner side that its table has. */
int
gh_side_count_kept(const GhJoinLevel *level)
{
	return level->ncolumns + (level->place_vector >= 0);
}

/* What the outer program reads must be what the table has. */
static bool
is_kept_as_read(const GhInnerSide *side, const GhJoinedColumn *column, const GhOperand *operand)
{
	const GhColumn *kept = &side->translation->columns[operand->vector];

	return kept->load == column->load && kept->scale == column->scale;
}

/*
 * Which of the level's columns is a key column of a join that is coded: its conditions on the pair read it.
 */
static int
key_column(const GhJoinLevel *level, int k)
{
	int			c = 0;

	while (level->columns[c].column != gh_lower_kept_key(level->lower, k))
		c++;
	return c;
}

/* A key column, or a part of the key, and a column of the level. */
static bool
translate_key(GhInnerSide *side, int k)
{
	if (side->by_rows && side->level->lower->is_coded)
		return gh_translate_attribute(side->translation, key_column(side->level, k) + 2, &side->keys[k]);
	if (side->by_rows)
		return gh_translate_attribute(side->translation, 1, &side->keys[k]);
	return translate_column(side, side->level->lower->keys[GH_INNER]->columns[k].attno, &side->keys[k]);
}

static bool
translate_kept(GhInnerSide *side, int c)
{
	if (side->by_rows)
		return gh_translate_attribute(side->translation, c + 2, &side->kept[c]);
	return translate_column(side, side->level->lower->kept_attnos[side->level->columns[c].column],
							&side->kept[c]);
}

/*
 * Rows are supplied by the program's columns: the key that is stored with a row, which no code needs, and the
 * level's.
 */
static bool
translate_rows(GhInnerSide *side)
{
	for (int attno = 1; attno <= side->translation->desc->natts; attno++)
	{
		GhOperand	operand = {0};

		if (!gh_translate_attribute(side->translation, attno, &operand))
			return false;
	}
	return true;
}

static bool
translate_side(GhInnerSide *side)
{
	GhJoinLevel *level = side->level;
	ParamExecData *awaited = NULL;

	if (!side->by_rows &&
		(!gh_fragment_translate_input(side->fragment, side->translation, side->scan, side->joined, &awaited,
									  &side->nfilters) || awaited != NULL))
		return false;
	if (side->by_rows && !translate_rows(side))
		return false;
	for (int k = 0; k < side->nkeys; k++)
		if (!translate_key(side, k) || (side->keys[k].value_class != GH_CLASS_INT && !level->lower->is_coded))
			return false;
	if (!gh_lower_translate_key(level->lower, side->translation, side->keys))
		return false;
	for (int c = 0; c < level->ncolumns; c++)
		if (!translate_kept(side, c) || !is_kept_as_read(side, &level->columns[c], &side->kept[c]))
			return false;
	return level->place_vector < 0 || gh_add_place(side->translation, &side->kept[level->ncolumns]);
}

static int
nparts(const GhInnerSide *side)
{
	return side->level->lower->is_coded ? 1 : side->nkeys;
}

/* The key of stored rows is one number, whatever its parts. */
static GhKeyPart *
key_parts(const GhInnerSide *side)
{
	GhKeyPart *parts = palloc0(sizeof(GhKeyPart) * side->nkeys);

	for (int k = 0; k < nparts(side); k++)
		parts[k].bits = side->by_rows ? GH_KEY_BITS : gh_lower_part_bits(side->level->lower, GH_INNER, k);
	return parts;
}

/* With conditions, a single match may be one of several rows with the key. */
static bool
returns_all_matches(const GhLowerJoin *lower)
{
	return !lower->single_match || lower->join_quals != NIL;
}

/* How the table keeps a column, of a program that was made. */
static GhKept
kept_value(const GhInnerSide *side, const GhOperand *operand)
{
	GhKept		kept = {0};

	kept.vector = gh_final_vector(side->translation, operand);
	kept.value_class = gh_vector_class(operand->value_class);
	kept.bytes = kept.value_class == GH_CLASS_INT ? sizeof(uint64) : 0;
	return kept;
}

/* Where there are marks of them, rows have numbers, and any of a key may be marked. */
static void
set_sink(const GhInnerSide *side, const GhTableOptions *table, GhKeyPart *parts, GhKept *kept, GhSink *sink)
{
	const GhLowerJoin *lower = side->level->lower;
	bool		fills = gh_lower_fills_inner(lower);

	gh_stage_table_sink(table, sink);
	sink->table.nparts = nparts(side);
	sink->table.parts = parts;
	sink->table.nkept = gh_side_count_kept(side->level);
	sink->table.kept = kept;
	sink->table.matches = fills || returns_all_matches(lower) ? GH_MATCHES_ALL : GH_MATCHES_ANY;
	sink->table.numbered = fills;
	sink->table.expected = (uint64) Max(lower->children[GH_INNER]->plan->plan_rows, 1);
}

static GhTranslation *
begin_translation(const GhInnerSide *side)
{
	if (side->by_rows)
		return gh_side_begin_rows(side);
	if (side->joined != NULL)
		return gh_translate_begin(gh_joined_desc(side->joined), gh_joined_varno(side->joined));
	return gh_translate_begin(RelationGetDescr(side->relation), ((Scan *) side->scan->plan)->scanrelid);
}

/* The side's program; with it, the tables of its own joins are known to keep what it reads of them. */
bool
gh_side_make_program(GhInnerSide *side)
{
	side->keys = palloc0(sizeof(GhOperand) * side->nkeys);
	side->kept = palloc0(sizeof(GhOperand) * Max(gh_side_count_kept(side->level), 1));
	side->translation = begin_translation(side);
	if (!translate_side(side) || (side->program = gh_translate_end(side->translation)) == NULL)
		return false;
	if (side->joined == NULL)
		return true;
	gh_joined_forget_columns(side->joined);
	gh_joined_take_keys(side->joined, side->translation);
	gh_joined_take_columns(side->joined, side->program);
	return true;
}

/* Options of the pipeline that makes the table.  The tables of the side's own joins are there. */
void
gh_side_options(GhInnerSide *side, GhPipelineOptions *options)
{
	const GhDeviceRun *device = side->fragment->device;
	GhKeyPart *parts = key_parts(side);
	int			nkept = gh_side_count_kept(side->level);
	GhKept	   *kept = palloc(sizeof(GhKept) * Max(nkept, 1));
	GhTableOptions table;

	for (int k = 0; k < nparts(side); k++)
		parts[k].vector = gh_final_vector(side->translation, &side->keys[k]);
	for (int c = 0; c < nkept; c++)
		kept[c] = kept_value(side, &side->kept[c]);
	gh_stage_options(side->relation, side->program, options);
	if (side->by_rows)
		options->source.natts = side->program->ncolumns;
	if (!side->by_rows || side->level->lower->is_coded)
		gh_fragment_add_steps(side->joined, side->nfilters, false, options);
	if (side->joined != NULL)
		options->probes = gh_device_make_probes(device, side->joined);
	gh_device_options(device->engine, device->number, options, &table);
	set_sink(side, &table, parts, kept, &options->sink);
}
