/*
 * key_code.c
 *		Keys of joins that are no whole number together, in programs: a code of their values, by which rows are looked up.
 *
 * Keys that are equal have the same code, others nearly always different ones: so the equalities are
 * conditions on the pair besides (../plan/join_plan.c).  A code is made of what the equality compares: of
 * texts of their bytes under any deterministic collation, of bpchar without trailing blanks.  Of numerics
 * both sides must have one scale.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

#include "expr/translate.h"

/* The scale of a key that is a numeric; -1: its type has none. */
static int
scale_of(const OpExpr *clause, int arg)
{
	return gh_scale_of_typmod(exprTypmod(list_nth(clause->args, arg)));
}

/*
 * Whether equality of two columns is one of which there is a code; with the collation, its program has to
 * say.
 */
bool
gh_clause_has_code(const OpExpr *clause)
{
	const GhFunction *function = gh_find_function(get_opcode(clause->opno));

	if (function == NULL || function->op != GH_OP_EQ)
		return false;
	if (function->call == GH_CALL_NUMERIC)
		return scale_of(clause, 0) >= 0 && scale_of(clause, 0) == scale_of(clause, 1);
	return function->call == GH_CALL_SAME || function->call == GH_CALL_TEXT;
}

/* Whether a column is what the equality compares. */
static bool
is_compared(const OpExpr *clause, const GhFunction *function, const GhOperand *key)
{
	if (function->op_class == GH_CLASS_INT128)
		return key->value_class == GH_CLASS_INT128 && key->scale == scale_of(clause, 0);
	return key->value_class == function->op_class ||
		(key->value_class == GH_CLASS_FLOAT4 && function->op_class == GH_CLASS_FLOAT8) ||
		(key->value_class == GH_CLASS_TEXT && function->op_class == GH_CLASS_BPCHAR);
}

/* Adds the code of a side's key columns, one for each of the clauses. */
bool
gh_translate_key_code(GhTranslation *translation, const List *clauses, const GhOperand *keys, GhOperand *code)
{
	GhOperand	args[2];
	ListCell   *lc;

	if (!gh_add_constant(translation, GH_CLASS_INT, false, 0, 0, &args[1]))
		return false;
	foreach(lc, clauses)
	{
		const OpExpr *clause = lfirst_node(OpExpr, lc);
		const GhFunction *function = gh_find_function(get_opcode(clause->opno));

		args[0] = keys[foreach_current_index(lc)];
		if (!gh_clause_has_code(clause) || !is_compared(clause, function, &args[0]))
			return gh_translation_fails(translation, "a join's key has no hash code");
		memset(code, 0, sizeof(*code));
		code->value_class = GH_CLASS_INT;
		if (!gh_add_instruction(translation, GH_OP_HASH, function->op_class, 0, 0, 2, args, code))
			return false;
		args[1] = *code;
	}
	return true;
}
