/*
 * translate.c
 *		Expressions and qualifications over one relation as a program of the engines.
 *
 * What has no equivalent makes the translation of an expression fail, with a word on why, and the
 * program is then to be given up.  A part without columns that is no constant yet (a
 * parameter, now()) has to be made one before: see gh_translate_begin().
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "engine/program/program_text.h"
#include "expr/translate.h"
#include "expr/values.h"

static bool translate_expr(GhTranslation *translation, Expr *expr, GhOperand *result);

/* ----------------------------------------------------- columns, constants */

/* The column as it is read: the bytes of a numeric without a scale. */
static bool
translate_column(GhTranslation *translation, Var *var, GhOperand *result)
{
	const GhTypeLoad *type = gh_find_type(var->vartype);
	GhColumn	column = {0};

	if (var->varno != translation->varno || var->varattno <= 0 || var->varlevelsup > 0)
		return gh_translation_fails(translation, "it reads what is no plain column");
	if (type == NULL)
		return gh_translation_fails(translation, "a column's type is not supported");
	column.attribute = var->varattno;
	column.load = type->load;
	column.length = type->length;
	if (TupleDescAttr(translation->desc, var->varattno - 1)->atthasmissing)
		column.missing = GH_MISSING_BACK;
	result->value_class = type->value_class;
	if (gh_is_open_numeric(var->vartype, var->vartypmod))
	{
		column.load = GH_LOAD_TEXT;
		result->value_class = GH_CLASS_TEXT;
	}
	else if (type->load == GH_LOAD_NUMERIC)
		column.scale = result->scale = gh_scale_of_typmod(var->vartypmod);
	return gh_add_column(translation, &column, result);
}

static bool
translate_var(GhTranslation *translation, Var *var, GhOperand *result)
{
	GhOperand	stored = {0};
	bool		guessed;
	int			digits;

	if (!gh_is_open_numeric(var->vartype, var->vartypmod))
		return translate_column(translation, var, result);
	if (!translate_column(translation, var, &stored))
		return false;
	digits = gh_shown_of(translation->desc, var->varattno, &guessed);
	if (digits < 0)
		return gh_translation_fails(translation, digits == GH_SHOWN_UNKNOWN ?
									"a numeric column without a scale has no statistics, which ANALYZE makes" :
									"a numeric column has too many digits after the point");
	if (!gh_translate_stored(translation, &stored, digits, result))
		return false;
	/* to be compared; the engines add up no large numbers of so many digits */
	if (guessed)
		result->scales = NULL;
	return true;
}

/* A not-NULL value of the type as a vector holds it. */
static bool
value_parts(GhTranslation *translation, Oid type, Datum value, GhOperand *result, uint64 *low,
			uint64 *high)
{
	double		number;

	*high = 0;
	switch (getBaseType(type))
	{
		case BOOLOID:
			*low = DatumGetBool(value);
			return true;
		case INT2OID:
			*low = (uint64) (int64) DatumGetInt16(value);
			return true;
		case INT4OID:
		case DATEOID:
			*low = (uint64) (int64) DatumGetInt32(value);
			return true;
		case OIDOID:
			*low = DatumGetObjectId(value);
			return true;
		case INT8OID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			*low = (uint64) DatumGetInt64(value);
			return true;
		case FLOAT4OID:
		case FLOAT8OID:
			number = getBaseType(type) == FLOAT4OID ? DatumGetFloat4(value) : DatumGetFloat8(value);
			memcpy(low, &number, sizeof(number));
			return true;
		case NUMERICOID:
			return gh_numeric_parts(value, result, low, high);
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case BYTEAOID:
			{
				text	   *bytes = DatumGetTextPP(value);

				*high = VARSIZE_ANY_EXHDR(bytes);
				*low = gh_keep_bytes(translation, VARDATA_ANY(bytes), *high, 1);
				return true;
			}
		case NAMEOID:
		case UUIDOID:
		case MACADDROID:
		case MACADDR8OID:
			*high = gh_find_type(type)->length;
			*low = gh_keep_bytes(translation, DatumGetPointer(value), *high, 1);
			return true;
		default:
			*low = DatumGetObjectId(value);
			return gh_is_enum(type);
	}
}

static bool
translate_const(GhTranslation *translation, Const *constant, GhOperand *result)
{
	const GhTypeLoad *type = gh_find_type(constant->consttype);
	uint64		low = 0;
	uint64		high = 0;

	if (type == NULL)
		return gh_translation_fails(translation, "a constant's type is not supported");
	result->scale = 0;
	result->is_null = constant->constisnull;
	result->open_scale = list_member_ptr(translation->stand_ins, constant);
	if (!constant->constisnull &&
		!value_parts(translation, constant->consttype, constant->constvalue, result, &low, &high))
		return gh_translation_fails(translation, "a constant is too large");
	return gh_add_constant(translation, type->value_class, constant->constisnull, low, high, result);
}

/* ---------------------------------------------------------- operations */

/* Whether a value of one class can be an argument of an operation of the other. */
static bool
fits_class(GhClass value, GhClass operation)
{
	return value == operation || (value == GH_CLASS_FLOAT4 && operation == GH_CLASS_FLOAT8) ||
		(value == GH_CLASS_TEXT && operation == GH_CLASS_BPCHAR);
}

/* Whether bytes tell under the collation what the call asks: GH_CALL_TEXT, GH_CALL_TEXT_ORDER. */
bool
gh_collation_allows(GhTranslation *translation, GhCall call, Oid collation)
{
	if (!OidIsValid(collation))
		return gh_translation_fails(translation, "a comparison has no collation");
	if (!get_collation_isdeterministic(collation))
		return gh_translation_fails(translation, "a collation is not deterministic");
	if (call == GH_CALL_TEXT_ORDER && !gh_collation_is_c(collation))
		return gh_translation_fails(translation, "text is ordered by another collation than C");
	return true;
}

/* The largest power of ten that is a float8. */
#define GH_FLOAT8_POWER_MAX 22

/* A date or timestamp as what it is compared with. */
static bool
prepare_time(GhTranslation *translation, GhCall call, GhOperand *args)
{
	bool		left = call == GH_CALL_DATE_LEFT || call == GH_CALL_DATE_LEFT_ZONED || call == GH_CALL_TIMESTAMP_LEFT_ZONED;
	bool		is_date = call != GH_CALL_TIMESTAMP_LEFT_ZONED && call != GH_CALL_TIMESTAMP_RIGHT_ZONED;
	bool		zoned = call != GH_CALL_DATE_LEFT && call != GH_CALL_DATE_RIGHT;
	GhOperand  *time = &args[left ? 0 : 1];

	return (!is_date || gh_add_int(translation, GH_OP_DATE_TO_TIMESTAMP, 0, 1, time, time)) &&
		(!zoned || gh_add_moment(translation, gh_session_zone(translation), time, time));
}

/* The arguments as the call wants them, and what of the result depends on them. */
static bool
prepare_arguments(GhTranslation *translation, const GhFunction *function, Oid collation,
				  int nargs, GhOperand *args, int *immediate, GhOperand *result)
{
	const GhScales *scales;

	switch ((GhCall) function->call)
	{
		case GH_CALL_SAME:
			return true;
		case GH_CALL_NUMERIC:
			result->scale = 0;
			scales = gh_scales_of(&args[0]);
			for (int i = 0; i < nargs; i++)
			{
				if (i > 0)
					scales = gh_scales_joined(GH_SCALES_LARGER, scales, gh_scales_of(&args[i]));
				result->scale = Max(result->scale, args[i].scale);
				result->mixed_scale |= args[i].mixed_scale;
				result->open_scale |= args[i].open_scale;
			}
			gh_mix_scales(result, scales);
			return gh_to_one_scale(translation, args, nargs);
		case GH_CALL_NUMERIC_MUL:
			result->scale = args[0].scale + args[1].scale;
			result->mixed_scale = args[0].mixed_scale || args[1].mixed_scale;
			result->open_scale = args[0].open_scale || args[1].open_scale;
			gh_mix_scales(result, gh_scales_joined(GH_SCALES_SUM, gh_scales_of(&args[0]), gh_scales_of(&args[1])));
			return result->scale <= GH_SCALE_MAX ||
				gh_translation_fails(translation, "a numeric has too many digits after the point");
		case GH_CALL_NUMERIC_CAST:
			*immediate = args[0].scale;
			/* a power of ten that is no float8 gives no exact quotient: all rows would go back */
			return function->op != GH_OP_TO_FLOAT8 || *immediate <= GH_FLOAT8_POWER_MAX ||
				gh_translation_fails(translation, "a numeric has too many digits after the point");
		case GH_CALL_TO_NUMERIC:
			return true;
		case GH_CALL_TEXT:
		case GH_CALL_TEXT_ORDER:
			return gh_collation_allows(translation, (GhCall) function->call, collation);
		case GH_CALL_DATE_LEFT:
		case GH_CALL_DATE_RIGHT:
		case GH_CALL_DATE_LEFT_ZONED:
		case GH_CALL_DATE_RIGHT_ZONED:
		case GH_CALL_TIMESTAMP_LEFT_ZONED:
		case GH_CALL_TIMESTAMP_RIGHT_ZONED:
			return prepare_time(translation, (GhCall) function->call, args);
	}
	return false;
}

static bool
translate_call(GhTranslation *translation, Oid funcid, Oid collation, List *exprs,
			   GhOperand *result)
{
	const GhFunction *function = gh_find_function(funcid);
	GhOperand	args[2];
	int			nargs = 0;
	int			immediate = 0;
	bool		is_one;
	bool		done;
	ListCell   *lc;

	/* a float4 is its float8 */
	if (funcid == F_FLOAT8_FLOAT4)
	{
		if (!translate_expr(translation, linitial(exprs), result))
			return false;
		result->value_class = GH_CLASS_FLOAT8;
		return true;
	}
	done = gh_translate_text_call(translation, funcid, collation, exprs, &is_one, result);
	if (!is_one)
		done = gh_translate_date_call(translation, funcid, exprs, &is_one, result);
	if (!is_one)
		done = gh_translate_zone_call(translation, funcid, exprs, &is_one, result);
	if (!is_one)
		done = gh_translate_interval_call(translation, funcid, exprs, &is_one, result);
	if (!is_one)
		done = gh_translate_number_call(translation, funcid, exprs, &is_one, result);
	if (is_one)
		return done;
	if (function == NULL || list_length(exprs) > (int) lengthof(args))
		return gh_translation_fails(translation, "a function or operator is not supported");
	foreach(lc, exprs)
	{
		if (!translate_expr(translation, lfirst(lc), &args[nargs++]))
			return false;
	}
	if (!prepare_arguments(translation, function, collation, nargs, args, &immediate, result))
		return false;
	for (int i = 0; i < nargs; i++)
		if (!fits_class(args[i].value_class, function->call == GH_CALL_TO_NUMERIC ||
						function->op == GH_OP_FROM_INT ? GH_CLASS_INT : function->op_class))
			return gh_translation_fails(translation, "an argument is of another type");
	result->value_class = function->result_class;
	return gh_add_instruction(translation, function->op, function->op_class, function->width, immediate, nargs,
				args, result);
}

/* A comparison of the class that a function is for. */
static bool
compare_as(GhTranslation *translation, GhProgramOp op, const GhFunction *function, Oid collation, GhOperand *args,
		   GhOperand *result)
{
	int			immediate = 0;

	if (!prepare_arguments(translation, function, collation, 2, args, &immediate, result))
		return false;
	if (!fits_class(args[0].value_class, function->op_class) || !fits_class(args[1].value_class, function->op_class))
		return gh_translation_fails(translation, "an argument is of another type");
	result->value_class = GH_CLASS_BOOL;
	return gh_add_instruction(translation, op, function->op_class, 0, 0, 2, args, result);
}

/* Of a function that tells whether two are equal, for IS DISTINCT FROM and NULLIF. */
static bool
translate_equal(GhTranslation *translation, GhProgramOp op, Oid funcid, Oid collation,
				GhOperand *args, GhOperand *result)
{
	const GhFunction *function = gh_find_function(funcid);

	if (function == NULL || function->op != GH_OP_EQ)
		return gh_translation_fails(translation, "a function or operator is not supported");
	return compare_as(translation, op, function, collation, args, result);
}

/* ------------------------------------------------- other expressions */

/* Two arguments that are compared. */
static bool
translate_pair(GhTranslation *translation, List *exprs, GhOperand *args)
{
	return translate_expr(translation, linitial(exprs), &args[0]) &&
		translate_expr(translation, lsecond(exprs), &args[1]);
}

static bool
translate_nullif(GhTranslation *translation, NullIfExpr *expr, GhOperand *result)
{
	GhOperand	args[2];
	GhOperand	choice[3] = {{0}};

	if (!translate_pair(translation, expr->args, args))
		return false;
	choice[2] = args[0];
	choice[1].scale = args[0].scale;
	return translate_equal(translation, GH_OP_EQ, expr->opfuncid, expr->inputcollid, args, &choice[0]) &&
		gh_add_constant(translation, choice[2].value_class, true, 0, 0, &choice[1]) &&
		gh_translate_select(translation, choice, result);
}

/* ------------------------------------------------------------ IN lists */

/* The most values of a list of text, and of a list of which each value is compared by an instruction. */
#define GH_TEXT_LIST_MAX GH_LIST_SLOTTED_MAX
/* So few texts are found as soon by halves. */
#define GH_BISECTED_MAX 4
#define GH_EACH_VALUE_MAX 16

/* How many values the array has, of whatever dimensions; and these. */
static int
array_values(ArrayType *array, Datum **values, bool **nulls)
{
	Oid			type = ARR_ELEMTYPE(array);
	int			nvalues;
	int16		typlen;
	bool		typbyval;
	char		typalign;

	get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
	deconstruct_array(array, type, typlen, typbyval, typalign, values, nulls, &nvalues);
	return nvalues;
}

/* In the order of a list, of texts that are kept. */
static int
compare_texts(const void *a, const void *b, void *translation)
{
	GhText		texts[2];
	const GhListText *values[2] = {a, b};

	for (int i = 0; i < 2; i++)
	{
		texts[i].bytes = (const unsigned char *) ((GhTranslation *) translation)->values.data + values[i]->offset;
		texts[i].length = values[i]->length;
	}
	return gh_text_list_compare(texts[0], texts[1], false);
}

/* The slots by which texts of a list are found. */
static uint32
keep_slots(GhTranslation *translation, const GhListText *texts, uint32 count)
{
	uint16		slots[GH_LIST_SLOTS] = {0};

	for (uint32 i = 0; i < count; i++)
	{
		GhText		text = {(const unsigned char *) translation->values.data + texts[i].offset, texts[i].length};
		uint32		at = gh_list_slot(text);

		while (slots[at] != 0)
			at = (at + 1) % GH_LIST_SLOTS;
		slots[at] = i + 1;
	}
	return gh_keep_bytes(translation, slots, sizeof(slots), sizeof(uint64));
}

/* The array's values that are not NULL, as a list. */
static bool
add_list(GhTranslation *translation, ArrayType *array, GhClass value_class)
{
	Oid			type = ARR_ELEMTYPE(array);
	int64	   *numbers;
	GhListText *texts;
	GhList	   *list;
	Datum	   *values;
	bool	   *nulls;
	int			nvalues;

	if (translation->nlists >= GH_PROGRAM_LISTS_MAX)
		return gh_translation_fails(translation, "there are too many lists");
	nvalues = array_values(array, &values, &nulls);
	list = &translation->lists[translation->nlists];
	memset(list, 0, sizeof(*list));
	list->value_class = value_class;
	numbers = palloc(sizeof(int64) * Max(nvalues, 1));
	texts = palloc(sizeof(GhListText) * Max(nvalues, 1));
	for (int i = 0; i < nvalues; i++)
	{
		GhOperand	ignored;
		uint64		low;
		uint64		high;

		if (nulls[i])
			list->has_null = 1;
		else if (!value_parts(translation, type, values[i], &ignored, &low, &high))
			return gh_translation_fails(translation, "the values of a list are not supported");
		else
		{
			texts[list->count].offset = (uint32) low;
			texts[list->count].length = (uint32) high;
			numbers[list->count++] = (int64) low;
		}
	}
	if (value_class == GH_CLASS_INT)
	{
		gh_sort_numbers(numbers, list->count);
		list->values = gh_keep_bytes(translation, numbers, list->count * sizeof(int64), sizeof(int64));
	}
	else
	{
		qsort_arg(texts, list->count, sizeof(GhListText), compare_texts, translation);
		if (list->count > GH_BISECTED_MAX)
			list->slots = keep_slots(translation, texts, list->count);
		list->values = gh_keep_bytes(translation, texts, list->count * sizeof(GhListText), sizeof(int64));
	}
	translation->nlists++;
	return true;
}

/* One comparison for each of the array's values, where a list cannot have them. */
static bool
compare_each(GhTranslation *translation, const GhFunction *function, ScalarArrayOpExpr *expr, ArrayType *array,
			 GhOperand *result)
{
	Oid			type = ARR_ELEMTYPE(array);
	int16		typlen = get_typlen(type);
	bool		typbyval = get_typbyval(type);
	GhOperand	value;
	Datum	   *values;
	bool	   *nulls;
	int			nvalues = array_values(array, &values, &nulls);

	if (nvalues == 0 || nvalues > GH_EACH_VALUE_MAX)
		return gh_translation_fails(translation, "the values of a list are not supported");
	if (!translate_expr(translation, linitial(expr->args), &value))
		return false;
	for (int i = 0; i < nvalues; i++)
	{
		Const	   *constant = makeConst(type, -1, expr->inputcollid, typlen, values[i], nulls[i], typbyval);
		GhOperand	args[2] = {value};
		GhOperand	either[2] = {*result, {0}};

		if (!translate_expr(translation, (Expr *) constant, &args[1]) ||
			!compare_as(translation, GH_OP_EQ, function, expr->inputcollid, args, &either[1]))
			return false;
		*result = either[1];
		if (i > 0 && !gh_add_instruction(translation, GH_OP_OR, GH_CLASS_BOOL, 0, 0, 2, either, result))
			return false;
	}
	return true;
}

/* Whether a value is one of the array's; the function compares by its class, for equality or its contrary. */
static bool
translate_member(GhTranslation *translation, const GhFunction *function, ScalarArrayOpExpr *expr, Const *array,
				 GhOperand *result)
{
	ArrayType  *values;
	GhClass		value_class;
	GhOperand	args[2];

	values = DatumGetArrayTypeP(array->constvalue);
	/* a date, say, is compared with timestamps as one of them */
	if (function->call != GH_CALL_TEXT && (function->call != GH_CALL_SAME ||
										   (function->op_class != GH_CLASS_INT && function->op_class != GH_CLASS_TEXT)))
		return compare_each(translation, function, expr, values, result);
	if (function->call == GH_CALL_TEXT && !gh_collation_allows(translation, GH_CALL_TEXT, expr->inputcollid))
		return false;
	value_class = function->op_class == GH_CLASS_INT ? GH_CLASS_INT : GH_CLASS_TEXT;
	/* of more texts one is found sooner in PostgreSQL's hash table */
	if (value_class == GH_CLASS_TEXT && ArrayGetNItems(ARR_NDIM(values), ARR_DIMS(values)) > GH_TEXT_LIST_MAX)
		return gh_translation_fails(translation, "a list of text is too long");
	if (!translate_expr(translation, linitial(expr->args), &args[0]) || !add_list(translation, values, value_class))
		return false;
	result->value_class = GH_CLASS_BOOL;
	return gh_add_instruction(translation, GH_OP_IN, function->op_class, 0, translation->nlists - 1, 1, args, result);
}

/* x = ANY (array), and x <> ALL (array), which is its contrary. */
static bool
translate_in(GhTranslation *translation, ScalarArrayOpExpr *expr, GhOperand *result)
{
	Const	   *array = lsecond(expr->args);
	const GhFunction *function = gh_find_function(expr->opfuncid);
	GhOperand	is_one = {0};

	if (function == NULL || function->op != (expr->useOr ? GH_OP_EQ : GH_OP_NE) || !IsA(array, Const) ||
		array->constisnull)
		return gh_translation_fails(translation, "an operator with ANY or ALL is not supported");
	if (expr->useOr)
		return translate_member(translation, function, expr, array, result);
	result->value_class = GH_CLASS_BOOL;
	return translate_member(translation, function, expr, array, &is_one) &&
		gh_add_instruction(translation, GH_OP_NOT, GH_CLASS_BOOL, 0, 0, 1, &is_one, result);
}

/* --------------------------------------------------------------- all */

/* The same bytes as another type: of int4 and oid, other numbers. */
static bool
translate_relabel(GhTranslation *translation, RelabelType *expr, GhOperand *result)
{
	const GhTypeLoad *from = gh_find_type(exprType((Node *) expr->arg));
	const GhTypeLoad *to = gh_find_type(expr->resulttype);

	if (from == NULL || to == NULL || from->load != to->load || from->length != to->length)
		return gh_translation_fails(translation, "a conversion is not supported");
	return translate_expr(translation, expr->arg, result);
}

static bool
translate_expr(GhTranslation *translation, Expr *expr, GhOperand *result)
{
	OpExpr	   *op = (OpExpr *) expr;
	FuncExpr   *call = (FuncExpr *) expr;
	GhOperand	args[2];

	check_stack_depth();
	memset(result, 0, sizeof(*result));
	switch (nodeTag(expr))
	{
		case T_Var:
			return translate_var(translation, (Var *) expr, result);
		case T_Const:
			return translate_const(translation, (Const *) expr, result);
		case T_RelabelType:
			return translate_relabel(translation, (RelabelType *) expr, result);
		case T_OpExpr:
			return translate_call(translation, op->opfuncid, op->inputcollid, op->args, result);
		case T_FuncExpr:
			return translate_call(translation, call->funcid, call->inputcollid, call->args, result);
		case T_DistinctExpr:
			return translate_pair(translation, op->args, args) &&
				translate_equal(translation, GH_OP_DISTINCT, op->opfuncid, op->inputcollid, args, result);
		case T_NullIfExpr:
			return translate_nullif(translation, op, result);
		case T_BoolExpr:
			return gh_translate_bool(translation, (BoolExpr *) expr, result);
		case T_NullTest:
			return gh_translate_null_test(translation, (NullTest *) expr, result);
		case T_BooleanTest:
			return gh_translate_boolean_test(translation, (BooleanTest *) expr, result);
		case T_CaseExpr:
			return gh_translate_case(translation, (CaseExpr *) expr, result);
		case T_CaseTestExpr:
			if (translation->case_value != NULL)
				*result = *translation->case_value;
			return translation->case_value != NULL || gh_translation_fails(translation, "an expression is not supported");
		case T_CoalesceExpr:
			return gh_translate_coalesce(translation, (CoalesceExpr *) expr, result);
		case T_MinMaxExpr:
			return gh_translate_min_max(translation, (MinMaxExpr *) expr, result);
		case T_ScalarArrayOpExpr:
			return translate_in(translation, (ScalarArrayOpExpr *) expr, result);
		default:
			return gh_translation_fails(translation, "an expression is not supported");
	}
}

/*
 * Starts a program over the relation of that number and row type.  Of the expressions to
 * come, what has no columns must be Consts.
 */
GhTranslation *
gh_translate_begin(TupleDesc desc, Index varno)
{
	GhTranslation *translation = palloc0(sizeof(GhTranslation));

	translation->desc = desc;
	translation->varno = varno;
	initStringInfo(&translation->values);
	return translation;
}

/* Adds the expression's evaluation to the program; false, with a word on why, if it cannot. */
bool
gh_translate_value(GhTranslation *translation, Expr *expr, GhOperand *result)
{
	return translate_expr(translation, expr, result);
}

/* Whether PostgreSQL computes anything for a column that comes out of a node. */
bool
gh_is_computed(const Expr *expr)
{
	return !IsA(expr, Var) && !IsA(expr, Const);
}

/*
 * Adds all that PostgreSQL computes for a row that comes out of a node, so that one for which it might raise
 * an error is handed back; false: that has no program.
 */
bool
gh_translate_computed(GhTranslation *translation, const List *targetlist, GhOverRows over_rows, void *arg)
{
	ListCell   *lc;

	foreach(lc, targetlist)
	{
		Expr	   *expr = lfirst_node(TargetEntry, lc)->expr;
		GhOperand	unused = {0};

		if (gh_is_computed(expr) && !gh_translate_value(translation, over_rows(expr, arg), &unused))
			return false;
	}
	return true;
}

/* A column, as it is read. */
bool
gh_translate_attribute(GhTranslation *translation, int attno, GhOperand *result)
{
	Form_pg_attribute attribute = TupleDescAttr(translation->desc, attno - 1);
	Var		   *var = makeVar(translation->varno, attno, attribute->atttypid, attribute->atttypmod,
							  attribute->attcollation, 0);

	return translate_column(translation, var, result);
}

/* Likewise a qualification: rows for which it is not true are dropped. */
bool
gh_translate_filter(GhTranslation *translation, Expr *qual)
{
	GhOperand	value;
	GhOperand	none;

	return translate_expr(translation, qual, &value) &&
		gh_add_instruction(translation, GH_OP_FILTER, GH_CLASS_BOOL, 0, 0, 1, &value, &none);
}

