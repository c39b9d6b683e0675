/*
 * translate.h
 *		PostgreSQL's expressions as programs of the engines (engine/program.h).
 */
#ifndef GPUHASH_SCAN_TRANSLATE_H
#define GPUHASH_SCAN_TRANSLATE_H

#include "postgres.h"

#include "access/tupdesc.h"
#include "lib/stringinfo.h"
#include "nodes/primnodes.h"

#include "engine/program/program.h"

/* ---- functions.c: what PostgreSQL's functions are called in a program ---- */

/* How a function's arguments become those of its instruction. */
typedef enum GhCall
{
	GH_CALL_SAME,				/* as they are */
	GH_CALL_NUMERIC,			/* brought to one scale, which the result has unless it is BOOL */
	GH_CALL_NUMERIC_MUL,		/* each at its own scale; the result has the sum */
	GH_CALL_NUMERIC_CAST,		/* from numeric: `immediate` is its scale */
	GH_CALL_TO_NUMERIC,			/* of a whole number: scale 0 */
	GH_CALL_TEXT,				/* bytes tell whether two are equal: any deterministic collation */
	GH_CALL_TEXT_ORDER,			/* bytes tell which is less: collation C */
	GH_CALL_DATE_LEFT,			/* the left one is a date to be made a timestamp */
	GH_CALL_DATE_RIGHT,
	GH_CALL_DATE_LEFT_ZONED,	/* or one with time zone, the session's */
	GH_CALL_DATE_RIGHT_ZONED,
	GH_CALL_TIMESTAMP_LEFT_ZONED,	/* likewise a timestamp */
	GH_CALL_TIMESTAMP_RIGHT_ZONED
} GhCall;

typedef struct GhFunction
{
	Oid			function;
	uint8		call;			/* a GhCall */
	uint8		op;				/* a GhProgramOp */
	uint8		op_class;		/* a GhClass */
	uint8		width;			/* as of GhInstruction */
	uint8		result_class;	/* a GhClass */
} GhFunction;

extern const GhFunction *gh_find_function(Oid function);

/* ---- builder.c: a program that grows ---- */

/* A value that a program has or makes. */
typedef struct GhOperand
{
	int			vector;			/* numbered by kind: gh_final_vector() has the program's number */
	GhClass		value_class;
	int			scale;			/* GH_CLASS_INT128: decimal digits after the point */
	bool		mixed_scale;	/* and to PostgreSQL, some rows' values have others: see README */
	bool		open_scale;		/* it may be another one with the constants of an execution */
	bool		is_null;		/* a NULL constant: a numeric of any scale */
	const struct GhScales *scales;	/* mixed_scale: each row's; NULL: they are not known */
} GhOperand;

static inline bool
gh_has_scales(const GhOperand *operand)
{
	return operand->mixed_scale && operand->scales != NULL;
}

typedef struct GhTranslation
{
	TupleDesc	desc;
	Index		varno;
	const char *why_not;		/* NULL: nothing has failed */
	GhOperand  *case_value;		/* of the CASE that is being translated, or NULL */
	List	   *stand_ins;		/* Consts by gh_some_constant */
	int			ncolumns;
	GhColumn	columns[GH_PROGRAM_VECTORS_MAX];
	int			nconstants;
	GhConstant	constants[GH_PROGRAM_VECTORS_MAX];
	int			ninstructions;
	GhInstruction instructions[GH_PROGRAM_INSTRUCTIONS_MAX];
	int			ntemporaries;
	int			nlists;
	GhList		lists[GH_PROGRAM_LISTS_MAX];
	StringInfoData values;		/* of lists, and bytes of text; offsets are into this, for now */
} GhTranslation;

extern bool gh_translation_fails(GhTranslation *translation, const char *why);
extern bool gh_add_column(GhTranslation *translation, const GhColumn *column, GhOperand *result);
extern bool gh_add_place(GhTranslation *translation, GhOperand *result);
extern bool gh_add_constant(GhTranslation *translation, GhClass value_class, bool null, uint64 low,
							uint64 high, GhOperand *result);
extern const GhConstant *gh_constant_of(const GhTranslation *translation, const GhOperand *operand);
extern bool gh_add_instruction(GhTranslation *translation, GhProgramOp op, GhClass op_class, int width,
							   int immediate, int nargs, const GhOperand *args, GhOperand *result);
/* Of how many instructions the program is, so far, by the time that they take. */
extern int	gh_translation_length(const GhTranslation *translation);
extern uint64 gh_keep_bytes(GhTranslation *translation, const void *bytes, Size size, Size align);
extern uint16 gh_final_vector(const GhTranslation *translation, const GhOperand *operand);

/* ---- constants.c: what has no columns ---- */

/* A Const's location, where it is what an expression without columns is in one execution. */
#define GH_FOLDED_LOCATION (-2)

/* Makes the Const that stands for an expression without columns; or NULL. */
typedef Const *(*GhMakeConstant) (Expr *expr, void *arg);

extern Node *gh_make_constants(Node *node, GhMakeConstant make, void *arg);
extern Const *gh_some_constant(Expr *expr, void *translation);

/* ---- unfailing.c: what can be evaluated before PostgreSQL would do it ---- */

extern bool gh_is_unfailing(Node *node);
extern bool gh_never_fails(Oid function);
extern bool gh_unfailing_allows(Oid function, const NullableDatum *args);

/* ---- choices.c: one of several values ---- */

extern bool gh_translate_select(GhTranslation *translation, GhOperand *args, GhOperand *result);
extern bool gh_translate_case(GhTranslation *translation, CaseExpr *expr, GhOperand *result);
extern bool gh_translate_coalesce(GhTranslation *translation, CoalesceExpr *expr, GhOperand *result);
extern bool gh_translate_min_max(GhTranslation *translation, MinMaxExpr *expr, GhOperand *result);

/* ---- scales.c: what PostgreSQL shows of numerics ---- */

/* How the scales of a value's rows come about. */
typedef enum GhScalesKind
{
	GH_SCALES_SAME,				/* they are the same */
	GH_SCALES_LARGER,			/* the larger ones of two others */
	GH_SCALES_SUM,
	GH_SCALES_CHOICE,			/* one or the other, by a condition */
	GH_SCALES_QUOTIENT,
	GH_SCALES_STORED			/* of a column without a scale: its values tell */
} GhScalesKind;

typedef struct GhScales GhScales;

extern const GhScales *gh_scales_of(const GhOperand *operand);
extern const GhScales *gh_scales_joined(GhScalesKind kind, const GhScales *a, const GhScales *b);
extern const GhScales *gh_scales_chosen(const GhOperand *condition, const GhScales *chosen, const GhScales *otherwise);
extern const GhScales *gh_scales_of_quotient(const GhOperand *args, int scale);
extern const GhScales *gh_scales_stored(const GhOperand *stored);
extern void gh_mix_scales(GhOperand *result, const GhScales *scales);
extern bool gh_add_scales(GhTranslation *translation, const GhScales *scales, GhOperand *result);
extern bool gh_translate_scales(GhTranslation *translation, const GhOperand *value, GhOperand *result);

/* ---- numerics.c ---- */

extern int	gh_scale_of_typmod(int32 typmod);
extern bool gh_numeric_parts(Datum value, GhOperand *result, uint64 *low, uint64 *high);
extern bool gh_translate_stored(GhTranslation *translation, const GhOperand *stored, int digits, GhOperand *result);
extern bool gh_to_one_scale(GhTranslation *translation, GhOperand *args, int nargs);
extern bool gh_translate_number_call(GhTranslation *translation, Oid function, List *exprs, bool *is_one,
									 GhOperand *result);

/* ---- shown.c ---- */

/* In place of a number of digits. */
#define GH_SHOWN_TOO_MANY (-1)
#define GH_SHOWN_UNKNOWN (-2)

extern int	gh_shown_digits(Oid relation, AttrNumber number);
extern void gh_shown_note(TupleDesc desc, AttrNumber attno, Oid relation, AttrNumber number);
extern int	gh_shown_of(TupleDesc desc, AttrNumber attno, bool *guessed);

/* ---- truth.c ---- */

extern bool gh_translate_bool(GhTranslation *translation, BoolExpr *expr, GhOperand *result);
extern bool gh_translate_null_test(GhTranslation *translation, NullTest *test, GhOperand *result);
extern bool gh_translate_boolean_test(GhTranslation *translation, BooleanTest *test, GhOperand *result);

/* ---- texts.c, dates.c, intervals.c: calls that are more than an instruction ---- */

extern bool gh_translate_text_call(GhTranslation *translation, Oid function, Oid collation, List *exprs, bool *is_one,
								   GhOperand *result);
extern bool gh_translate_date_call(GhTranslation *translation, Oid function, List *exprs, bool *is_one,
								   GhOperand *result);
extern bool gh_translate_interval_call(GhTranslation *translation, Oid function, List *exprs, bool *is_one,
									   GhOperand *result);
extern bool gh_add_int(GhTranslation *translation, GhProgramOp op, int width, int nargs, const GhOperand *args,
					   GhOperand *result);
extern bool gh_add_int_constant(GhTranslation *translation, GhProgramOp op, int width, GhOperand *number,
								int64 constant);

/* ---- zones.c: moments, and what clocks show then ---- */

typedef struct GhZone GhZone;

extern const GhZone *gh_session_zone(GhTranslation *translation);
extern const GhZone *gh_named_zone(GhTranslation *translation, const Expr *expr);
extern bool gh_add_zone_shift(GhTranslation *translation, const GhZone *zone, bool to_local, const GhOperand *time,
							  GhOperand *shift);
extern bool gh_add_shifted(GhTranslation *translation, const GhOperand *time, const GhOperand *shift, bool back,
						   GhOperand *result);
extern bool gh_add_local_time(GhTranslation *translation, const GhZone *zone, const GhOperand *moment, GhOperand *local);
extern bool gh_add_moment(GhTranslation *translation, const GhZone *zone, const GhOperand *local, GhOperand *moment);
extern bool gh_translate_zone_call(GhTranslation *translation, Oid function, List *exprs, bool *is_one,
								   GhOperand *result);

/* ---- key_code.c: keys of joins that are no whole number together ---- */

extern bool gh_clause_has_code(const OpExpr *clause);
extern bool gh_translate_key_code(GhTranslation *translation, const List *clauses, const GhOperand *keys,
								  GhOperand *code);

/* ---- types.c: how columns of PostgreSQL's types are read ---- */

typedef struct GhTypeLoad
{
	Oid			type;
	GhLoad		load;
	GhClass		value_class;
	uint16		length;			/* GH_LOAD_FIXED: bytes */
} GhTypeLoad;

extern const GhTypeLoad *gh_find_type(Oid type);
extern bool gh_is_enum(Oid type);
extern GhClass gh_class_of_type(Oid type);
extern bool gh_is_open_numeric(Oid type, int32 typmod);

/* ---- translate.c ---- */

/* An expression over the rows that a program is about, with constants for what has no columns. */
typedef Expr *(*GhOverRows) (Expr *expr, void *arg);

extern GhTranslation *gh_translate_begin(TupleDesc desc, Index varno);
extern bool gh_translate_value(GhTranslation *translation, Expr *expr, GhOperand *result);
extern bool gh_is_computed(const Expr *expr);
extern bool gh_translate_computed(GhTranslation *translation, const List *targetlist, GhOverRows over_rows, void *arg);
extern bool gh_translate_attribute(GhTranslation *translation, int attno, GhOperand *result);
extern bool gh_collation_allows(GhTranslation *translation, GhCall call, Oid collation);
extern bool gh_translate_filter(GhTranslation *translation, Expr *qual);
extern GhProgram *gh_translate_end(GhTranslation *translation);

#endif							/* GPUHASH_SCAN_TRANSLATE_H */
