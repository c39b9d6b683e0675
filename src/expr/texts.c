/*
 * texts.c
 *		LIKE, parts of texts, and their lengths in programs.
 *
 * A pattern is a constant, and characters are those of an encoding in which the engines find them: one byte
 * each, or UTF-8.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/fmgroids.h"

#include "compat.h"
#include "expr/translate.h"

/* Whether a character is a byte, or of UTF-8: *utf8. */
static bool
knows_characters(GhTranslation *translation, bool *utf8)
{
	*utf8 = GetDatabaseEncoding() == PG_UTF8;
	return *utf8 || pg_database_encoding_max_length() == 1 ||
		gh_translation_fails(translation, "the engines do not know the characters of this encoding");
}

/* ------------------------------------------------------------------ patterns */

/* Whether it has a _, which stands for a character, and does not end within an escape, which is an error. */
static bool
look_at_pattern(GhTranslation *translation, const text *pattern, bool *has_any)
{
	const char *bytes = VARDATA_ANY(pattern);
	int			length = VARSIZE_ANY_EXHDR(pattern);

	*has_any = false;
	for (int i = 0; i < length; i++)
	{
		*has_any |= bytes[i] == '_';
		if (bytes[i] == '\\' && ++i == length)
			return gh_translation_fails(translation, "a pattern ends with its escape character");
	}
	return true;
}

static bool
collation_allows(GhTranslation *translation, Oid collation, bool folds)
{
	if (!gh_collation_allows(translation, GH_CALL_TEXT, collation))
		return false;
	/* an order by bytes does not say so: C.UTF-8 has that, and folds all letters */
	if (folds && !gh_folds_as_c(collation))
		return gh_translation_fails(translation, "letters are folded by another collation than C");
	return true;
}

/* The operation; false: there is none. */
static bool
choose_like(GhTranslation *translation, const Const *pattern, Oid collation, bool folds, GhProgramOp *op)
{
	bool		utf8;
	bool		has_any = false;

	if (!IsA(pattern, Const) || pattern->consttype != TEXTOID)
		return gh_translation_fails(translation, "a pattern is not constant");
	if (!collation_allows(translation, collation, folds) || !knows_characters(translation, &utf8) ||
		(!pattern->constisnull && !look_at_pattern(translation, DatumGetTextPP(pattern->constvalue), &has_any)))
		return false;
	/* where no character is skipped by itself, bytes do */
	utf8 = utf8 && has_any;
	if (folds)
		*op = utf8 ? GH_OP_ILIKE_UTF8 : GH_OP_ILIKE;
	else
		*op = utf8 ? GH_OP_LIKE_UTF8 : GH_OP_LIKE;
	return true;
}

static bool
translate_like(GhTranslation *translation, Oid collation, List *exprs, bool folds, bool negated, GhOperand *result)
{
	GhOperand	args[2];
	GhOperand	matches = {.value_class = GH_CLASS_BOOL};
	GhProgramOp op = GH_OP_LIKE;

	if (!choose_like(translation, lsecond(exprs), collation, folds, &op) ||
		!gh_translate_value(translation, linitial(exprs), &args[0]) ||
		!gh_translate_value(translation, lsecond(exprs), &args[1]) ||
		!gh_add_instruction(translation, op, GH_CLASS_TEXT, 0, 0, 2, args, &matches))
		return false;
	*result = matches;
	return !negated || gh_add_instruction(translation, GH_OP_NOT, GH_CLASS_BOOL, 0, 0, 1, &matches, result);
}

/* --------------------------------------------------------------------- parts */

/* An operation for characters that are bytes, or for those of UTF-8. */
typedef struct ForCharacters
{
	GhProgramOp bytes;
	GhProgramOp utf8;
} ForCharacters;

static const ForCharacters substring = {GH_OP_SUBSTRING, GH_OP_SUBSTRING_UTF8};
static const ForCharacters left = {GH_OP_LEFT, GH_OP_LEFT_UTF8};
static const ForCharacters right = {GH_OP_RIGHT, GH_OP_RIGHT_UTF8};
static const ForCharacters length = {GH_OP_LENGTH, GH_OP_LENGTH_UTF8};
static const ForCharacters position = {GH_OP_POSITION, GH_OP_POSITION_UTF8};

/* One on the expressions, and on further arguments behind these. */
static bool
add_for_characters(GhTranslation *translation, const ForCharacters *ops, List *exprs, GhOperand *args, int nargs,
				   GhClass result_class, GhOperand *result)
{
	bool		utf8;

	if (!knows_characters(translation, &utf8))
		return false;
	for (int i = 0; i < list_length(exprs); i++)
		if (!gh_translate_value(translation, list_nth(exprs, i), &args[i]))
			return false;
	result->value_class = result_class;
	return gh_add_instruction(translation, utf8 ? ops->utf8 : ops->bytes, GH_CLASS_TEXT, 0, 0, nargs, args, result);
}

static bool
translate_substring(GhTranslation *translation, List *exprs, GhOperand *result)
{
	/* behind any text's last character */
	const uint64 all = UINT64CONST(1) << 40;
	GhOperand	args[3] = {{0}};

	return (list_length(exprs) == 3 || gh_add_constant(translation, GH_CLASS_INT, false, all, 0, &args[2])) &&
		add_for_characters(translation, &substring, exprs, args, 3, GH_CLASS_TEXT, result);
}

static bool
translate_end(GhTranslation *translation, const ForCharacters *ops, List *exprs, GhOperand *result)
{
	GhOperand	args[2];

	return add_for_characters(translation, ops, exprs, args, 2, GH_CLASS_TEXT, result);
}

/* x::varchar(n), which cuts off what is behind n characters; where it is not asked for, that is an error. */
static bool
translate_varchar(GhTranslation *translation, List *exprs, GhOperand *result)
{
	const Const *typmod = lsecond(exprs);
	const Const *asked = lthird(exprs);
	GhOperand	args[2] = {{0}};

	if (!IsA(typmod, Const) || typmod->constisnull || DatumGetInt32(typmod->constvalue) < (int32) VARHDRSZ ||
		!IsA(asked, Const) || asked->constisnull || !DatumGetBool(asked->constvalue))
		return gh_translation_fails(translation, "a function or operator is not supported");
	return gh_add_constant(translation, GH_CLASS_INT, false, DatumGetInt32(typmod->constvalue) - VARHDRSZ, 0, &args[1]) &&
		add_for_characters(translation, &left, list_make1(linitial(exprs)), args, 2, GH_CLASS_TEXT, result);
}

/* bpchar as text */
static bool
add_unpadded(GhTranslation *translation, Expr *expr, GhOperand *result)
{
	GhOperand	padded;

	if (!gh_translate_value(translation, expr, &padded))
		return false;
	memset(result, 0, sizeof(*result));
	result->value_class = GH_CLASS_TEXT;
	return gh_add_instruction(translation, GH_OP_UNPADDED, GH_CLASS_TEXT, 0, 0, 1, &padded, result);
}

/* ---------------------------------------------------------------------- trim */

/* Bytes that are taken away: no character of UTF-8 but such of one byte is made of them. */
static bool
trimmed_set(GhTranslation *translation, const List *exprs, const char **bytes, int *length, bool *null)
{
	const Const *set = list_length(exprs) == 2 ? lsecond(exprs) : NULL;
	bool		utf8;

	*bytes = " ";
	*length = 1;
	*null = set != NULL && IsA(set, Const) && set->constisnull;
	if (!knows_characters(translation, &utf8))
		return false;
	if (set == NULL || *null)
		return true;
	if (!IsA(set, Const) || set->consttype != TEXTOID)
		return gh_translation_fails(translation, "the characters that are trimmed are not constant");
	*bytes = VARDATA_ANY(DatumGetTextPP(set->constvalue));
	*length = VARSIZE_ANY_EXHDR(DatumGetTextPP(set->constvalue));
	for (int i = 0; utf8 && i < *length; i++)
		if (IS_HIGHBIT_SET((*bytes)[i]))
			return gh_translation_fails(translation, "the characters that are trimmed are not of one byte");
	return true;
}

static bool
translate_trim(GhTranslation *translation, List *exprs, bool at_begin, bool at_end, GhOperand *result)
{
	GhOperand	args[2] = {{0}};
	const char *bytes;
	int			length;
	bool		null;

	if (!trimmed_set(translation, exprs, &bytes, &length, &null) ||
		!gh_translate_value(translation, linitial(exprs), &args[0]) ||
		!gh_add_constant(translation, GH_CLASS_TEXT, null, null ? 0 : gh_keep_bytes(translation, bytes, length, 1),
						 null ? 0 : length, &args[1]))
		return false;
	result->value_class = GH_CLASS_TEXT;
	if (at_begin && !gh_add_instruction(translation, GH_OP_TRIM_LEFT, GH_CLASS_TEXT, 0, 0, 2, args, result))
		return false;
	if (at_begin)
		args[0] = *result;
	return !at_end || gh_add_instruction(translation, GH_OP_TRIM_RIGHT, GH_CLASS_TEXT, 0, 0, 2, args, result);
}

/* ------------------------------------------------------------------- numbers */

/* Of bpchar without trailing blanks. */
static bool
translate_length(GhTranslation *translation, List *exprs, bool padded, GhOperand *result)
{
	GhOperand	args[1];
	bool		utf8;

	result->value_class = GH_CLASS_INT;
	if (!padded)
		return add_for_characters(translation, &length, exprs, args, 1, GH_CLASS_INT, result);
	return knows_characters(translation, &utf8) && add_unpadded(translation, linitial(exprs), args) &&
		gh_add_instruction(translation, utf8 ? length.utf8 : length.bytes, GH_CLASS_TEXT, 0, 0, 1, args, result);
}

/* Bytes, whatever they are. */
static bool
translate_octets(GhTranslation *translation, List *exprs, GhOperand *result)
{
	GhOperand	args[1];

	result->value_class = GH_CLASS_INT;
	return gh_translate_value(translation, linitial(exprs), args) &&
		gh_add_instruction(translation, length.bytes, GH_CLASS_TEXT, 0, 0, 1, args, result);
}

static bool
translate_position(GhTranslation *translation, Oid collation, List *exprs, GhOperand *result)
{
	GhOperand	args[2];

	return gh_collation_allows(translation, GH_CALL_TEXT, collation) &&
		add_for_characters(translation, &position, exprs, args, 2, GH_CLASS_INT, result);
}

static bool
translate_starts_with(GhTranslation *translation, Oid collation, List *exprs, GhOperand *result)
{
	GhOperand	args[2];

	result->value_class = GH_CLASS_BOOL;
	return gh_collation_allows(translation, GH_CALL_TEXT, collation) &&
		gh_translate_value(translation, linitial(exprs), &args[0]) &&
		gh_translate_value(translation, lsecond(exprs), &args[1]) &&
		gh_add_instruction(translation, GH_OP_STARTS_WITH, GH_CLASS_TEXT, 0, 0, 2, args, result);
}

/* ----------------------------------------------------------------------- all */

/* What makes a part of a text, or tells a number of it. */
static bool
translate_part_call(GhTranslation *translation, Oid function, Oid collation, List *exprs, bool *is_one, GhOperand *result)
{
	*is_one = true;
	switch (function)
	{
		case F_SUBSTRING_TEXT_INT4_INT4:
		case F_SUBSTRING_TEXT_INT4:
		case F_SUBSTR_TEXT_INT4_INT4:
		case F_SUBSTR_TEXT_INT4:
			return translate_substring(translation, exprs, result);
		case F_LEFT:
			return translate_end(translation, &left, exprs, result);
		case F_RIGHT:
			return translate_end(translation, &right, exprs, result);
		case F_VARCHAR_VARCHAR_INT4_BOOL:
			return translate_varchar(translation, exprs, result);
		case F_TEXT_BPCHAR:
			return add_unpadded(translation, linitial(exprs), result);
		case F_BTRIM_TEXT:
		case F_BTRIM_TEXT_TEXT:
			return translate_trim(translation, exprs, true, true, result);
		case F_LTRIM_TEXT:
		case F_LTRIM_TEXT_TEXT:
			return translate_trim(translation, exprs, true, false, result);
		case F_RTRIM_TEXT:
		case F_RTRIM_TEXT_TEXT:
			return translate_trim(translation, exprs, false, true, result);
		case F_LENGTH_TEXT:
		case F_CHAR_LENGTH_TEXT:
		case F_CHARACTER_LENGTH_TEXT:
			return translate_length(translation, exprs, false, result);
		case F_LENGTH_BPCHAR:
		case F_CHAR_LENGTH_BPCHAR:
		case F_CHARACTER_LENGTH_BPCHAR:
			return translate_length(translation, exprs, true, result);
		case F_OCTET_LENGTH_TEXT:
			return translate_octets(translation, exprs, result);
		case F_STRPOS:
		case F_POSITION_TEXT_TEXT:
			return translate_position(translation, collation, exprs, result);
		case F_STARTS_WITH:
			return translate_starts_with(translation, collation, exprs, result);
		default:
			*is_one = false;
			return false;
	}
}

/* A call of one of these functions; *is_one: it is. */
bool
gh_translate_text_call(GhTranslation *translation, Oid function, Oid collation, List *exprs, bool *is_one,
					   GhOperand *result)
{
	*is_one = true;
	switch (function)
	{
		case F_TEXTLIKE:
		case F_LIKE_TEXT_TEXT:
		case F_BPCHARLIKE:
			return translate_like(translation, collation, exprs, false, false, result);
		case F_TEXTNLIKE:
		case F_NOTLIKE_TEXT_TEXT:
		case F_BPCHARNLIKE:
			return translate_like(translation, collation, exprs, false, true, result);
		case F_TEXTICLIKE:
		case F_BPCHARICLIKE:
			return translate_like(translation, collation, exprs, true, false, result);
		case F_TEXTICNLIKE:
		case F_BPCHARICNLIKE:
			return translate_like(translation, collation, exprs, true, true, result);
		default:
			return translate_part_call(translation, function, collation, exprs, is_one, result);
	}
}
