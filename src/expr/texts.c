/*
 * texts.c
 *		LIKE and substrings in programs.
 *
 * A pattern is a constant, and characters are those of an encoding in which the engines find them: one byte each, or
 * UTF-8.
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

/* ---------------------------------------------------------------- substrings */

static bool
translate_substring(GhTranslation *translation, List *exprs, GhOperand *result)
{
	/* behind any text's last character */
	const uint64 all = UINT64CONST(1) << 40;
	GhOperand	args[3] = {{0}};
	bool		utf8;

	if (!knows_characters(translation, &utf8) ||
		!gh_translate_value(translation, linitial(exprs), &args[0]) ||
		!gh_translate_value(translation, lsecond(exprs), &args[1]) ||
		!(list_length(exprs) == 3 ? gh_translate_value(translation, lthird(exprs), &args[2]) :
		  gh_add_constant(translation, GH_CLASS_INT, false, all, 0, &args[2])))
		return false;
	result->value_class = GH_CLASS_TEXT;
	return gh_add_instruction(translation, utf8 ? GH_OP_SUBSTRING_UTF8 : GH_OP_SUBSTRING, GH_CLASS_TEXT, 0, 0, 3, args,
							  result);
}

/* bpchar as text */
static bool
translate_unpadded(GhTranslation *translation, Expr *expr, GhOperand *result)
{
	GhOperand	padded;

	if (!gh_translate_value(translation, expr, &padded))
		return false;
	result->value_class = GH_CLASS_TEXT;
	return gh_add_instruction(translation, GH_OP_UNPADDED, GH_CLASS_TEXT, 0, 0, 1, &padded, result);
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
		case F_SUBSTRING_TEXT_INT4_INT4:
		case F_SUBSTRING_TEXT_INT4:
		case F_SUBSTR_TEXT_INT4_INT4:
		case F_SUBSTR_TEXT_INT4:
			return translate_substring(translation, exprs, result);
		case F_TEXT_BPCHAR:
			return translate_unpadded(translation, linitial(exprs), result);
		default:
			*is_one = false;
			return false;
	}
}
