/*
 * compile.c
 *		What an engine is to do with the rows below a node, as a program: the scan's conditions, the joins' keys and
 *		conditions, and what the node makes of a row.
 *
 * The program is made when the first row is there, with constants for what has no columns
 * (../expr/fold.c).  Where that is not possible there is no program, and PostgreSQL's expressions do
 * the rows; a subquery that was not run yet is waited for, page by page.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "expr/fold.h"
#include "expr/translate.h"
#include "fragment/fragment.h"
#include "fragment/joined.h"
#include "heap/layout.h"

/* ----------------------------------------------------------- constants */

/* The scan that programs are about: of several relations that are read as one, the first. */
static PlanState *
program_scan(const GhFragment *fragment)
{
	return fragment->parts != NULL ? fragment->parts[0].scan : fragment->scan;
}

static Index
program_varno(const GhFragment *fragment)
{
	return ((Scan *) program_scan(fragment)->plan)->scanrelid;
}

/*
 * The child's column as one of the rows that programs are about: those of the scan's relation and
 * behind them, as if they were more columns of it, those of the joins' inner sides.
 */
static Var *
input_column(GhFragment *fragment, Var *var)
{
	int			column = var->varattno - 1;

	if (gh_joined_nprobes(fragment) > 0)
		return makeVar(gh_joined_varno(fragment->joined), gh_joined_attno(fragment->joined, fragment->joined->sources[column]),
					   var->vartype, var->vartypmod, var->varcollid, 0);
	if (fragment->scan == NULL || fragment->by_rows)
		return var;
	return makeVar(program_varno(fragment), fragment->attnos[column], var->vartype, var->vartypmod, var->varcollid, 0);
}

static Node *
input_columns_mutator(Node *expr, GhFragment *fragment)
{
	if (expr == NULL)
		return NULL;
	if (IsA(expr, Var) && ((Var *) expr)->varno == INDEX_VAR)
		return fragment->rows_below != NULL ?
			(Node *) fragment->rows_below->column(fragment->rows_below->arg, ((Var *) expr)->varattno - 1) :
			(Node *) input_column(fragment, (Var *) expr);
	return expression_tree_mutator(expr, input_columns_mutator, (void *) fragment);
}

/*
 * The expression over the rows of programs, with constants for what has no columns.  *awaited is
 * set where the result of a subquery would be one.
 */
Expr *
gh_fragment_folded(GhFragment *fragment, Expr *expr, ParamExecData **awaited)
{
	return (Expr *) gh_fold_constants(&fragment->css.ss.ps, input_columns_mutator((Node *) expr, fragment), awaited);
}

/* --------------------------------------------------------------- types */

static GhTranslation *
begin_translation(GhFragment *fragment)
{
	if (fragment->rows_below != NULL)
		return gh_translate_begin(fragment->rows_below->desc, fragment->rows_below->varno);
	if (gh_joined_nprobes(fragment) > 0)
		return gh_translate_begin(gh_joined_desc(fragment->joined), gh_joined_varno(fragment->joined));
	if (fragment->scan == NULL || fragment->by_rows)
		return gh_translate_begin(ExecGetResultType(fragment->child), INDEX_VAR);
	return gh_translate_begin(gh_fragment_scan_desc(fragment), program_varno(fragment));
}

/*
 * What the engines hold an expression's values in.  Where a part of it has no value yet, or an
 * error for one, that is as the planner saw it, with some value in its place: no key's scale
 * depends on it, and values of an argument that have another scale go to a side.
 */
static bool
find_operand(GhFragment *fragment, Expr *expr, GhOperand *operand)
{
	ParamExecData *awaited = NULL;
	GhTranslation *translation = begin_translation(fragment);

	if (gh_translate_value(translation, gh_fragment_folded(fragment, expr, &awaited), operand))
		return true;
	translation = begin_translation(fragment);
	expr = (Expr *) gh_make_constants(input_columns_mutator((Node *) expr, fragment), gh_some_constant,
									  translation);
	return gh_translate_value(translation, expr, operand);
}

/*
 * How the engines hold an expression's values, for this run's parameters.  exact: they must be able to.
 * Whether they are of different scales, which are known.
 */
bool
gh_fragment_init_type(GhFragment *fragment, GhValueType *type, Expr *expr, bool exact)
{
	GhOperand	operand = {0};
	Oid			sql_type = exprType((Node *) expr);
	GhClass		value_class = gh_class_of_type(sql_type);
	int			scale = 0;

	if (find_operand(fragment, expr, &operand))
	{
		value_class = operand.value_class;
		scale = operand.scale;
	}
	/* of rows that an engine may bring: then they have no program, either (../aggregate/nested.c) */
	else if (exact && value_class == GH_CLASS_INT128 && fragment->rows_below == NULL)
		elog(ERROR, "the scale of a key is not known");
	if (!gh_value_type_init(type, sql_type, value_class, scale))
		elog(ERROR, "type %u is not known to the engines", sql_type);
	return gh_has_scales(&operand);
}

/* ------------------------------------------------------------- the program */

/* A value that is held as `type` says; with_scales: its rows may have different scales. */
bool
gh_fragment_translate(GhFragment *fragment, GhTranslation *translation, Expr *expr, const GhValueType *type,
					  bool with_scales, GhOperand *operand)
{
	if (!gh_translate_value(translation, gh_fragment_folded(fragment, expr, &fragment->program.awaited), operand))
		return false;
	if (operand->value_class != type->value_class ||
		(type->value_class == GH_CLASS_INT128 &&
		 (operand->scale != type->scale || operand->mixed_scale != with_scales ||
		  gh_has_scales(operand) != with_scales)))
		return gh_translation_fails(translation, "the scale of a numeric is another one than was planned");
	return true;
}

/*
 * A join: the columns that it looks up must be read, too; then what makes a match, and what rows must pass to
 * come out, as parts of the program.
 */
static bool
translate_join(GhFragment *fragment, GhTranslation *translation, GhJoined *joined, int number, ParamExecData **awaited)
{
	PlanState  *ps = &fragment->css.ss.ps;
	GhJoinLevel *level = &joined->levels[number];
	const GhLowerJoin *lower = level->lower;

	memset(level->key_operands, 0, sizeof(GhOperand) * level->nkeys);
	for (int k = 0; k < level->nkeys; k++)
		if (!gh_translate_attribute(translation, gh_joined_attno(joined, level->keys[k]), &level->key_operands[k]))
			return false;
	if (!gh_lower_translate_key(level->lower, translation, level->key_operands))
		return false;
	level->key_end = translation->ninstructions;
	if (!gh_translate_conditions(ps, translation, gh_joined_conditions(joined, number, lower->join_quals), NULL, awaited))
		return false;
	level->pair_end = translation->ninstructions;
	if (!gh_translate_conditions(ps, translation, gh_joined_conditions(joined, number, lower->ps->plan->qual), NULL,
								 awaited))
		return false;
	level->filter_end = translation->ninstructions;
	return true;
}

/*
 * What rows of a scan, NULL for others, must pass, which *nfilters instructions say, and then of joins above
 * it, those that are probed.  joined: may be NULL.
 */
bool
gh_fragment_translate_input(GhFragment *fragment, GhTranslation *translation, PlanState *scan, GhJoined *joined,
							ParamExecData **awaited, uint32 *nfilters)
{
	if (!gh_translate_conditions(&fragment->css.ss.ps, translation, scan == NULL ? NIL : scan->plan->qual, NULL, awaited))
		return false;
	*nfilters = translation->ninstructions;
	for (int i = joined == NULL ? 0 : joined->base + 1; joined != NULL && i < joined->nlevels; i++)
		if (!translate_join(fragment, translation, joined, i, awaited))
			return false;
	return true;
}

static bool
translate_all(GhFragment *fragment, GhTranslation *translation)
{
	return gh_fragment_translate_input(fragment, translation, fragment->by_rows ? NULL : program_scan(fragment),
									   fragment->joined, &fragment->program.awaited, &fragment->program.nfilters) &&
		fragment->methods->translate(fragment, translation);
}

static void
keep_program(GhFragment *fragment, GhTranslation *translation)
{
	GhFragmentProgram *program = &fragment->program;
	GhError		error;

	program->why_not = NULL;
	program->program = gh_translate_end(translation);
	if (program->program == NULL)
	{
		program->why_not = translation->why_not;
		return;
	}
	if (gh_program_check(program->program, program->program->bytes, &error) != GH_OK)
		elog(ERROR, "%s", error.message);
	if (!fragment->by_rows)
		fragment->ninstructions = program->program->ninstructions;
	if (gh_joined_nprobes(fragment) > 0)
	{
		gh_joined_take_keys(fragment->joined, translation);
		gh_joined_take_columns(fragment->joined, program->program);
	}
	fragment->methods->keep_vectors(fragment, translation);
}

/* Values of such types, as engines know them. */
void
gh_fragment_scan_keys(int nkeys, const GhValueType *types, const uint16 *vectors, GhRecordKey *keys)
{
	for (int k = 0; k < nkeys; k++)
	{
		keys[k].vector = vectors[k];
		keys[k].value_class = gh_vector_class(types[k].value_class);
		keys[k].padded = types[k].type == BPCHAROID;
	}
}

/*
 * Whether there is a program for the rows of the scan, which is made at the first call, or, if
 * subqueries have to be run first, when they were.
 */
bool
gh_fragment_compile(GhFragment *fragment)
{
	GhFragmentProgram *program = &fragment->program;
	MemoryContext saved;
	GhTranslation *translation;

	if (program->tried || (program->awaited != NULL && program->awaited->execPlan != NULL))
		return program->program != NULL;
	saved = MemoryContextSwitchTo(program->context);
	program->awaited = NULL;
	translation = begin_translation(fragment);
	if (!fragment->by_rows && !gh_layout_is_known())
		program->why_not = "this server's pages are not known to the engines";
	else if (translate_all(fragment, translation))
		keep_program(fragment, translation);
	else
		program->why_not = translation->why_not;
	if (program->program != NULL)
		program->awaited = NULL;
	program->tried = program->awaited == NULL;
	MemoryContextSwitchTo(saved);
	return program->program != NULL;
}

/* Whether a program reads what another one does, and nothing more but columns of what comes in. */
static bool
has_columns_of(const GhFragment *fragment, const GhProgram *program, const GhProgram *other)
{
	const GhColumn *columns = gh_program_columns(program);

	if (program->ncolumns < other->ncolumns ||
		memcmp(columns, gh_program_columns(other), sizeof(GhColumn) * other->ncolumns) != 0)
		return false;
	for (uint32 v = other->ncolumns; v < program->ncolumns; v++)
		if (gh_joined_nprobes(fragment) > 0 &&
			gh_joined_level_of(fragment->joined, columns[v].attribute) != fragment->joined->base)
			return false;
	return true;
}

/*
 * The program is made anew, as the node now has it.  The joins' tables, which are there, have the columns
 * that the program before reads, and must have all that this one does.  False: they do not, or there is no
 * such program, and it stays as it was.
 */
bool
gh_fragment_compile_again(GhFragment *fragment)
{
	GhFragmentProgram *program = &fragment->program;
	MemoryContext saved = MemoryContextSwitchTo(program->context);
	GhTranslation *translation = begin_translation(fragment);
	GhProgram  *made = translate_all(fragment, translation) ? gh_translate_end(translation) : NULL;
	bool		done = made != NULL && program->awaited == NULL && has_columns_of(fragment, made, program->program);
	GhError		error;

	program->awaited = NULL;
	if (done)
	{
		if (gh_program_check(made, made->bytes, &error) != GH_OK)
			elog(ERROR, "%s", error.message);
		program->program = made;
		fragment->ninstructions = made->ninstructions;
		if (gh_joined_nprobes(fragment) > 0)
			gh_joined_take_keys(fragment->joined, translation);
		fragment->methods->keep_vectors(fragment, translation);
	}
	MemoryContextSwitchTo(saved);
	return done;
}

/* Before a run with other parameters. */
void
gh_fragment_forget_program(GhFragment *fragment)
{
	GhFragmentProgram *program = &fragment->program;
	MemoryContext context = program->context;

	if (fragment->joined != NULL)
		gh_joined_forget_columns(fragment->joined);
	fragment->methods->forget_program(fragment);
	MemoryContextReset(context);
	memset(program, 0, sizeof(*program));
	program->context = context;
}
