/*
 * sides.c
 *		What 128 bits cannot hold of an aggregate's values.
 *
 * Exact sums and moments that overflow, and numerics that are NaN, infinite or wide, go to a
 * GhSide, where PostgreSQL's numeric functions do the arithmetic: only their cost is different,
 * not the result.  When a value does not fit beside what the state holds, all that the state
 * holds goes to the side, and the state starts anew, so that of values that fit by themselves
 * only one in many takes that way.
 *
 * PostgreSQL's own aggregates keep sums in a form that cannot overflow, and only their
 * results are numerics; here each step is one.  So there is an error for squares of more
 * than 131072 digits before the point, of numbers that no column with a scale has.  The order
 * of a group's rows is lost between state and side, which MIN and MAX would need to choose
 * among equal numerics with different display scales; those of one scale have one.
 *
 * The least or greatest of texts is in the side alone, but in an engine's records (gh_side_of_text).
 * PostgreSQL compares them, by their collation; equal ones are the same bytes.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/varlena.h"

#include "compat.h"
#include "expr/aggregates.h"

/* ---------------------------------------------------- numerics as they come */

/* What a state holds, as numerics in the current context. */
static GhSide
side_of_state(const GhAggregateSpec *spec, const GhAggregateState *state)
{
	GhSide		side = {state->count, 0, 0};
	int			scale = spec->argument.scale;

	if (state->count == 0)
		return side;
	side.sum = gh_numeric_of_int128(state->low, state->high, scale);
	if (spec->aggregate.kind == GH_AGGREGATE_MOMENTS)
		side.squares = gh_numeric_of_int128(state->squares_low, state->squares_high, 2 * scale);
	return side;
}

static GhSide
side_of_value(const GhAggregateSpec *spec, Datum datum)
{
	GhSide		side = {1, 0, 0};
	GhSqlValue	value;

	if (spec->final == GH_FINAL_TEXT)
		side.sum = PointerGetDatum(PG_DETOAST_DATUM_PACKED(datum));
	else if (spec->argument.value_class == GH_CLASS_INT)
	{
		value = gh_value_of_datum(&spec->argument, datum, false);
		side.sum = NumericGetDatum(int64_to_numeric((int64) value.low));
	}
	else
		side.sum = NumericGetDatum(DatumGetNumeric(datum));
	if (spec->aggregate.kind == GH_AGGREGATE_MOMENTS)
		side.squares = DirectFunctionCall2(numeric_mul, side.sum, side.sum);
	return side;
}

/* Bytes of a text that are compared: of a bpchar, without the blanks at its end. */
static int
compared_bytes(const GhAggregateSpec *spec, const char *text, int bytes)
{
	return spec->argument.type == BPCHAROID ? bpchartruelen(unconstify(char *, text), bytes) : bytes;
}

/* As PostgreSQL compares the texts of such an aggregate: less than 0, 0, or more. */
int
gh_compare_texts(const GhAggregateSpec *spec, const char *a, int a_bytes, const char *b, int b_bytes)
{
	return varstr_cmp(a, compared_bytes(spec, a, a_bytes), b, compared_bytes(spec, b, b_bytes), spec->collation);
}

/* The least or greatest of two numerics or texts. */
static Datum
extreme_of(const GhAggregateSpec *spec, Datum a, Datum b)
{
	bool		least = spec->aggregate.kind == GH_AGGREGATE_MIN;
	int			order;

	if (spec->final != GH_FINAL_TEXT)
		return DirectFunctionCall2(least ? numeric_smaller : numeric_larger, a, b);
	order = gh_compare_texts(spec, VARDATA_ANY(DatumGetPointer(a)), VARSIZE_ANY_EXHDR(DatumGetPointer(a)),
							 VARDATA_ANY(DatumGetPointer(b)), VARSIZE_ANY_EXHDR(DatumGetPointer(b)));
	return (least ? order < 0 : order > 0) ? a : b;
}

/* Both, a's values before b's; the result has datums of either or of the current context. */
static GhSide
sides_joined(const GhAggregateSpec *spec, const GhSide *a, const GhSide *b)
{
	GhSide		joined = {a->count + b->count, 0, 0};

	if (a->count == 0 || b->count == 0)
		return a->count == 0 ? *b : *a;
	switch (spec->aggregate.kind)
	{
		case GH_AGGREGATE_MIN:
		case GH_AGGREGATE_MAX:
			joined.sum = extreme_of(spec, a->sum, b->sum);
			break;
		default:
			if (spec->aggregate.kind == GH_AGGREGATE_MOMENTS)
				joined.squares = DirectFunctionCall2(numeric_add, a->squares, b->squares);
			joined.sum = DirectFunctionCall2(numeric_add, a->sum, b->sum);
			break;
	}
	return joined;
}

/* State and side together, for the result; the datums are the side's or of the current context. */
GhSide
gh_side_total(const GhAggregateSpec *spec, const GhAggregateState *state, const GhSide *side)
{
	GhSide		held = side_of_state(spec, state);

	return side == NULL ? held : sides_joined(spec, &held, side);
}

/* ------------------------------------------------------ the sides of groups */

static void
replace_datum(Datum *datum, Datum with, MemoryContext context)
{
	MemoryContext before;
	Datum		old = *datum;

	if (with == 0 || with == old)
		return;
	before = MemoryContextSwitchTo(context);
	*datum = datumCopy(with, false, -1);
	MemoryContextSwitchTo(before);
	if (old != 0)
		pfree(DatumGetPointer(old));
}

/* Adds to a group's side, which is made when there is none yet. */
static void
add_to_side(const GhAggregateSpec *spec, GhSide **side, const GhSide *more, MemoryContext context)
{
	GhSide		joined;

	if (more->count == 0)
		return;
	if (*side == NULL)
		*side = MemoryContextAllocZero(context, sizeof(GhSide));
	joined = sides_joined(spec, *side, more);
	replace_datum(&(*side)->sum, joined.sum, context);
	replace_datum(&(*side)->squares, joined.squares, context);
	(*side)->count = joined.count;
}

/* Empties a state in which more does not fit; for floats that is PostgreSQL's error. */
static void
move_to_side(const GhAggregateSpec *spec, GhAggregateState *state, GhSide **side,
			 MemoryContext context)
{
	GhSide		held;

	if (gh_class_is_float(spec->aggregate.value_class))
		float_overflow_error();
	held = side_of_state(spec, state);
	add_to_side(spec, side, &held, context);
	memset(state, 0, sizeof(GhAggregateState));
}

/*
 * Adds one value that is not NULL (of COUNT_ROWS, a row), as PostgreSQL has it.  The side, if
 * it takes one, lies in `context`; what is needed on the way, in the current context.
 */
void
gh_aggregate_datum(const GhAggregateSpec *spec, GhAggregateState *state, GhSide **side,
				   MemoryContext context, Datum datum)
{
	GhSqlValue	value = {0, 0, GH_SQL_HELD};
	GhSide		single;

	/* what is only counted may be of any type, and is not looked at */
	if (spec->final == GH_FINAL_TEXT)
		value.kind = GH_SQL_BYTES;
	else if (spec->aggregate.kind != GH_AGGREGATE_COUNT_ROWS &&
		spec->aggregate.kind != GH_AGGREGATE_COUNT)
		value = gh_value_of_datum(&spec->argument, datum, false);
	if (value.kind == GH_SQL_HELD)
	{
		if (gh_aggregate_add(&spec->aggregate, state, value.low, value.high))
			return;
		move_to_side(spec, state, side, context);
		if (gh_aggregate_add(&spec->aggregate, state, value.low, value.high))
			return;
	}
	single = side_of_value(spec, datum);
	add_to_side(spec, side, &single, context);
}

/*
 * Adds the values of a state and its side, either of which may be empty, behind those of
 * another; memory as above.  Nothing of `from_side` is referred to afterwards.
 */
void
gh_aggregate_merge_sides(const GhAggregateSpec *spec, GhAggregateState *into, GhSide **into_side,
						 const GhAggregateState *from, const GhSide *from_side,
						 MemoryContext context)
{
	if (!gh_aggregate_merge(&spec->aggregate, into, from))
	{
		move_to_side(spec, into, into_side, context);
		*into = *from;
	}
	if (from_side != NULL)
		add_to_side(spec, into_side, from_side, context);
}
