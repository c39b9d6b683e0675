/*
 * compile.c
 *		What an engine is to do with the rows of a scan, as a program: the scan's conditions,
 *		keys, arguments and filters of the aggregates.
 *
 * The program is made when the first row is there, with constants for what has no columns
 * (../scan/fold.c).  Where that is not possible there is no program, and PostgreSQL's expressions do
 * the rows; a subquery that was not run yet is waited for, page by page.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "aggregate/exec.h"
#include "aggregate/joined.h"
#include "expr/fold.h"
#include "expr/translate.h"
#include "heap/layout.h"

/* ----------------------------------------------------------- constants */

/*
 * The child's column as one of the rows that programs are about: those of the scan's relation and
 * behind them, as if they were more columns of it, those of the joins' inner sides.
 */
static Var *
input_column(GhAggregateNode *node, Var *var)
{
	int			column = var->varattno - 1;

	if (gh_joined_nprobes(node) > 0)
		return makeVar(gh_joined_varno(node), gh_joined_attno(node, node->joined->sources[column]), var->vartype,
					   var->vartypmod, var->varcollid, 0);
	if (node->scan == NULL || node->by_rows)
		return var;
	return makeVar(((Scan *) node->scan->plan)->scanrelid, node->attnos[column], var->vartype, var->vartypmod,
				   var->varcollid, 0);
}

static Node *
input_columns_mutator(Node *expr, GhAggregateNode *node)
{
	if (expr == NULL)
		return NULL;
	if (IsA(expr, Var) && ((Var *) expr)->varno == INDEX_VAR)
		return (Node *) input_column(node, (Var *) expr);
	return expression_tree_mutator(expr, input_columns_mutator, (void *) node);
}

/*
 * The expression over the rows of programs, with constants for what has no columns.  *awaited is
 * set where the result of a subquery would be one.
 */
Expr *
gh_aggregate_folded(GhAggregateNode *node, Expr *expr, ParamExecData **awaited)
{
	return (Expr *) gh_fold_constants(&node->css.ss.ps, input_columns_mutator((Node *) expr, node), awaited);
}

/* --------------------------------------------------------------- types */

static TupleDesc
scan_desc(GhAggregateNode *node)
{
	return RelationGetDescr(((ScanState *) node->scan)->ss_currentRelation);
}

static GhTranslation *
begin_translation(GhAggregateNode *node)
{
	if (gh_joined_nprobes(node) > 0)
		return gh_translate_begin(gh_joined_desc(node), gh_joined_varno(node));
	if (node->scan == NULL || node->by_rows)
		return gh_translate_begin(ExecGetResultType(node->child), INDEX_VAR);
	return gh_translate_begin(scan_desc(node), ((Scan *) node->scan->plan)->scanrelid);
}

/*
 * What the engines hold an expression's values in.  Where a part of it has no value yet, or an
 * error for one, that is as the planner saw it, with some value in its place: no key's scale
 * depends on it, and values of an argument that have another scale go to a side.
 */
static bool
find_operand(GhAggregateNode *node, Expr *expr, GhOperand *operand)
{
	ParamExecData *awaited = NULL;
	GhTranslation *translation = begin_translation(node);

	if (gh_translate_value(translation, gh_aggregate_folded(node, expr, &awaited), operand))
		return true;
	translation = begin_translation(node);
	expr = (Expr *) gh_make_constants(input_columns_mutator((Node *) expr, node), gh_some_constant,
									  translation);
	return gh_translate_value(translation, expr, operand);
}

/*
 * How the engines hold an expression's values.  exact: they must be able to.  Whether they are of
 * different scales, which are known.
 */
static bool
init_type(GhAggregateNode *node, GhValueType *type, Expr *expr, bool exact)
{
	GhOperand	operand = {0};
	Oid			sql_type = exprType((Node *) expr);
	GhClass		value_class = gh_class_of_type(sql_type);
	int			scale = 0;

	if (find_operand(node, expr, &operand))
	{
		value_class = operand.value_class;
		scale = operand.scale;
	}
	else if (exact && value_class == GH_CLASS_INT128)
		elog(ERROR, "the scale of a key is not known");
	if (!gh_value_type_init(type, sql_type, value_class, scale))
		elog(ERROR, "type %u is not known to the engines", sql_type);
	return operand.mixed_scale && operand.has_scales;
}

/* One more aggregate, which keeps the largest scale of the values of aggregate a. */
static void
add_scales(GhAggregateNode *node, int a)
{
	GhAggregateSpec *spec = &node->specs[node->naggregates];

	memset(spec, 0, sizeof(*spec));
	spec->aggregate.kind = GH_AGGREGATE_MAX;
	spec->aggregate.value_class = GH_CLASS_INT;
	spec->final = GH_FINAL_VALUE;
	(void) gh_value_type_init(&spec->argument, INT4OID, GH_CLASS_INT, 0);
	spec->result = spec->argument;
	node->specs[a].scales = node->naggregates++;
}

/* The types of keys, arguments and results, for this run's parameters. */
void
gh_aggregate_types(GhAggregateNode *node)
{
	MemoryContext saved = MemoryContextSwitchTo(node->program.context);

	for (int k = 0; k < node->nkeys; k++)
		(void) init_type(node, &node->key_types[k], list_nth(node->keys, k), true);
	node->naggregates = node->nresults;
	for (int a = 0; a < node->nresults; a++)
	{
		GhAggregateSpec *spec = &node->specs[a];
		GhValueType *argument = &spec->argument;

		if (spec->aggregate.kind == GH_AGGREGATE_COUNT_ROWS)
			continue;
		spec->scales = 0;
		if (init_type(node, argument, list_nth(node->arguments, a), false) &&
			gh_sums_numerics(spec->final))
			add_scales(node, a);
		spec->aggregate.value_class = argument->value_class;
		if (spec->final == GH_FINAL_VALUE &&
			!gh_value_type_init(&spec->result, spec->result.type, argument->value_class, argument->scale))
			elog(ERROR, "type %u is not known to the engines", spec->result.type);
	}
	MemoryContextSwitchTo(saved);
}

/* ------------------------------------------------------------- the program */

/* The operands of the program's results. */
typedef struct Results
{
	ParamExecData *awaited;		/* as of gh_aggregate_folded() */
	GhOperand  *keys;			/* and places, behind them */
	GhOperand  *arguments;		/* also of aggregates that tell scales */
	GhOperand  *filters;
	bool	   *filtered;		/* there is one */
} Results;

/* A value that is held as `type` says; with_scales: its rows may have different scales. */
static bool
translate_typed(GhAggregateNode *node, GhTranslation *translation, Expr *expr, const GhValueType *type,
				bool with_scales, Results *results, GhOperand *operand)
{
	if (!gh_translate_value(translation, gh_aggregate_folded(node, expr, &results->awaited), operand))
		return false;
	if (operand->value_class != type->value_class ||
		(type->value_class == GH_CLASS_INT128 &&
		 (operand->scale != type->scale || operand->mixed_scale != with_scales ||
		  operand->has_scales != with_scales)))
		return gh_translation_fails(translation, "a parameter changes the scale of a numeric");
	return true;
}

/* The columns that the joins look up must be read, too. */
static bool
translate_joins(GhAggregateNode *node, GhTranslation *translation)
{
	for (int i = node->joined->base + 1; i < node->joined->nlevels; i++)
	{
		GhJoinLevel *level = &node->joined->levels[i];

		for (int k = 0; k < level->nkeys; k++)
		{
			GhOperand	operand;

			if (!gh_translate_attribute(translation, gh_joined_attno(node, level->keys[k]), &operand))
				return false;
			level->key_vectors[k] = operand.vector;
		}
	}
	return true;
}

/* What rows of the last join must pass; as all that is not in front of the joins, that is looked at behind them all. */
static bool
translate_conditions(GhAggregateNode *node, GhTranslation *translation, Results *results)
{
	ListCell   *lc;

	foreach(lc, node->joined->conditions)
	{
		if (!gh_translate_filter(translation, gh_aggregate_folded(node, lfirst(lc), &results->awaited)))
			return false;
	}
	return true;
}

/* Where tuples are that are fetched when their rows come out. */
static bool
translate_places(GhAggregateNode *node, GhTranslation *translation, GhOperand *places)
{
	for (int f = 0; f < node->nfetches; f++)
	{
		int			level = node->fetches[f].level;

		if (level < 0)
		{
			if (!gh_add_place(translation, &places[f]))
				return false;
			continue;
		}
		if (!gh_translate_attribute(translation, gh_joined_place_attno(node, level), &places[f]))
			return false;
	}
	return true;
}

static bool
translate_all(GhAggregateNode *node, GhTranslation *translation, Results *results)
{
	ListCell   *lc;

	foreach(lc, node->by_rows ? NIL : node->scan->plan->qual)
	{
		if (!gh_translate_filter(translation, gh_aggregate_folded(node, lfirst(lc), &results->awaited)))
			return false;
	}
	node->program.nfilters = translation->ninstructions;
	if (gh_joined_nprobes(node) > 0 &&
		(!translate_joins(node, translation) || !translate_conditions(node, translation, results)))
		return false;
	for (int k = 0; k < node->nkeys; k++)
		if (!translate_typed(node, translation, list_nth(node->keys, k), &node->key_types[k], false,
							 results, &results->keys[k]))
			return false;
	if (!node->by_rows && !translate_places(node, translation, results->keys + node->nkeys))
		return false;
	for (int a = 0; a < node->nresults; a++)
	{
		const GhAggregateSpec *spec = &node->specs[a];

		results->filtered[a] = node->filter_states[a] != NULL;
		if (results->filtered[a] &&
			!gh_translate_value(translation, gh_aggregate_folded(node, list_nth(node->filters, a), &results->awaited),
								&results->filters[a]))
			return false;
		if (spec->aggregate.kind == GH_AGGREGATE_COUNT_ROWS)
			continue;
		if (!translate_typed(node, translation, list_nth(node->arguments, a), &spec->argument,
							 spec->scales > 0, results, &results->arguments[a]))
			return false;
		if (spec->scales == 0)
			continue;
		results->filtered[spec->scales] = results->filtered[a];
		results->filters[spec->scales] = results->filters[a];
		if (!gh_translate_scales(translation, &results->arguments[a], &results->arguments[spec->scales]))
			return false;
	}
	return true;
}

static void
keep_program(GhAggregateNode *node, GhTranslation *translation, const Results *results)
{
	GhAggregateProgram *program = &node->program;
	int			nvectors = node->nkeys + node->nfetches;
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
	if (!node->by_rows)
		node->ninstructions = program->program->ninstructions;
	if (gh_joined_nprobes(node) > 0)
		gh_joined_take_columns(node, program->program);
	program->key_vectors = palloc(sizeof(uint16) * Max(nvectors, 1));
	for (int k = 0; k < nvectors; k++)
		program->key_vectors[k] = gh_final_vector(translation, &results->keys[k]);
	program->aggregates = palloc(sizeof(GhAggregate) * Max(node->naggregates, 1));
	for (int a = 0; a < node->naggregates; a++)
	{
		GhAggregate *aggregate = &program->aggregates[a];

		*aggregate = node->specs[a].aggregate;
		if (aggregate->kind != GH_AGGREGATE_COUNT_ROWS)
			aggregate->argument = gh_final_vector(translation, &results->arguments[a]);
		aggregate->filter = !results->filtered[a] ? GH_AGGREGATE_NO_FILTER :
			gh_final_vector(translation, &results->filters[a]);
	}
}

/* The keys of groups, and places of tuples, as engines know them; in the current context. */
GhScanKey *
gh_aggregate_scan_keys(const GhAggregateNode *node)
{
	GhScanKey  *keys = palloc0(sizeof(GhScanKey) * Max(node->nkeys + node->nfetches, 1));

	for (int k = 0; k < node->nkeys; k++)
	{
		const GhValueType *type = &node->key_types[k];

		keys[k].vector = node->program.key_vectors[k];
		keys[k].value_class = type->value_class == GH_CLASS_BPCHAR ? GH_CLASS_TEXT : type->value_class;
		keys[k].padded = type->type == BPCHAROID;
	}
	for (int k = node->nkeys; k < node->nkeys + node->nfetches; k++)
	{
		keys[k].vector = node->program.key_vectors[k];
		keys[k].value_class = GH_CLASS_INT;
	}
	return keys;
}

/*
 * Whether there is a program for the rows of the scan, which is made at the first call, or, if
 * subqueries have to be run first, when they were.
 */
bool
gh_aggregate_compile(GhAggregateNode *node)
{
	GhAggregateProgram *program = &node->program;
	MemoryContext saved;
	GhTranslation *translation;
	Results		results = {0};

	if (program->tried || (program->awaited != NULL && program->awaited->execPlan != NULL))
		return program->program != NULL;
	saved = MemoryContextSwitchTo(program->context);
	results.keys = palloc0(sizeof(GhOperand) * Max(node->nkeys + node->nfetches, 1));
	results.arguments = palloc0(sizeof(GhOperand) * Max(node->naggregates, 1));
	results.filters = palloc0(sizeof(GhOperand) * Max(node->naggregates, 1));
	results.filtered = palloc0(sizeof(bool) * Max(node->naggregates, 1));
	translation = begin_translation(node);
	if (!node->by_rows && !gh_layout_is_known())
		program->why_not = "this server's pages are not known to the engines";
	else if (translate_all(node, translation, &results))
		keep_program(node, translation, &results);
	else
		program->why_not = translation->why_not;
	program->awaited = program->program == NULL ? results.awaited : NULL;
	program->tried = program->awaited == NULL;
	MemoryContextSwitchTo(saved);
	return program->program != NULL;
}

/* Before a run with other parameters. */
void
gh_aggregate_forget_program(GhAggregateNode *node)
{
	GhAggregateProgram *program = &node->program;
	MemoryContext context = program->context;

	if (node->joined != NULL)
		gh_joined_forget_columns(node);
	if (node->final != NULL)
		gh_final_groups_add_sink(node->final, NULL);
	MemoryContextReset(context);
	memset(program, 0, sizeof(*program));
	program->context = context;
}
