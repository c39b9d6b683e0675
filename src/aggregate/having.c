/*
 * having.c
 *		HAVING as a program over finished groups, so that those it leaves out go before anything is made of them.
 *
 * The first of the conditions, as far as all of them have programs, are evaluated for some hundred groups at
 * a time, over columns that are made of the groups' keys and states (GhGroupsPart).  A group for which one of
 * these is not true is left out.  What a program cannot tell of a group (a key or sum that 128 bits do not
 * hold, a quotient of too many digits) and the conditions behind those with programs are for PostgreSQL's
 * expressions.
 *
 * No error is lost: PostgreSQL evaluates the conditions in their order, and none behind one that is not true.
 * Before that it makes the results of all aggregates of a group, which for states without a side cannot fail.
 * Programs raise nothing.
 *
 * Many groups of a device are judged there, by the same conditions, before they leave it (narrow.c).  Where
 * an ORDER BY ... LIMIT above wants the first groups alone, a longer program has behind the conditions what
 * lets these through (first.c).
 */
#include "postgres.h"

#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

#include "aggregate/first.h"
#include "aggregate/having.h"
#include "compat.h"
#include "expr/fold.h"

/* ------------------------------------------------------- groups as a relation */

int
gh_having_columns(const GhAggregateNode *node)
{
	return node->shown.nkeys + 2 * node->shown.nresults;
}

static AttrNumber
attribute_of(const GhAggregateNode *node, GhPartKind kind, int number)
{
	return 1 + number + (kind == GH_PART_KEY ? 0 : node->shown.nkeys) +
		(kind == GH_PART_COUNT ? node->shown.nresults : 0);
}

/* What a column of the relation of groups is. */
GhGroupsPart
gh_having_part(const GhAggregateNode *node, AttrNumber attribute)
{
	GhGroupsPart part = {GH_PART_KEY, attribute - 1};

	if (part.number < node->shown.nkeys)
		return part;
	part.number -= node->shown.nkeys;
	part.kind = part.number < node->shown.nresults ? GH_PART_VALUE : GH_PART_COUNT;
	part.number %= node->shown.nresults;
	if (part.kind == GH_PART_VALUE && node->shown.specs[part.number].final >= GH_FINAL_AVG &&
		gh_class_is_float(node->shown.specs[part.number].aggregate.value_class))
		part.kind = GH_PART_FLOAT;
	return part;
}

/* The relation of groups.  Programs ask for no more of a column than whether its tuples may lack it. */
TupleDesc
gh_having_desc(const GhAggregateNode *node)
{
	TupleDesc	desc = CreateTemplateTupleDesc(gh_having_columns(node));

	for (int i = 1; i <= desc->natts; i++)
		TupleDescInitEntry(desc, i, NULL, INT8OID, -1, 0);
	gh_finish_desc(desc);
	return desc;
}

/* A column of a type, at a scale, if its values are numerics. */
static Expr *
make_column(const GhAggregateNode *node, GhPartKind kind, int number, Oid type, int scale, Oid collation)
{
	int32		typmod = getBaseType(type) == NUMERICOID ? ((NUMERIC_MAX_PRECISION << 16) | scale) + VARHDRSZ : -1;

	return (Expr *) makeVar(GH_GROUPS_VARNO, attribute_of(node, kind, number), type, typmod, collation, 0);
}

/* An aggregate's result as an expression over the columns; NULL: it is none. */
static Expr *
result_of(const GhAggregateNode *node, int a, const Var *var)
{
	const GhAggregateSpec *spec = &node->shown.specs[a];
	Expr	   *value = make_column(node, GH_PART_VALUE, a, var->vartype, spec->argument.scale, var->varcollid);
	Expr	   *count = make_column(node, GH_PART_COUNT, a, INT8OID, 0, InvalidOid);

	/* no state has it as a program would read it */
	if (spec->final == GH_FINAL_TEXT)
		return NULL;
	if (spec->final < GH_FINAL_AVG || gh_class_is_float(spec->aggregate.value_class))
		return value;
	if (spec->final > GH_FINAL_AVG)
		return NULL;
	count = (Expr *) makeFuncExpr(F_NUMERIC_INT8, NUMERICOID, list_make1(count), InvalidOid, InvalidOid,
								  COERCE_EXPLICIT_CALL);
	return (Expr *) makeFuncExpr(F_NUMERIC_DIV, NUMERICOID, list_make2(value, count), InvalidOid, InvalidOid,
								 COERCE_EXPLICIT_CALL);
}

/* What a column of the scan tuple is in the relation of groups; if nothing, itself, which has no program. */
static Node *
group_column(GhAggregateNode *node, Var *var)
{
	int			column = var->varattno - 1;
	Expr	   *result = NULL;

	if (column >= node->first && column < node->first + node->shown.nresults)
		result = result_of(node, column - node->first, var);
	for (int k = 0; k < node->shown.nkeys && result == NULL; k++)
		if (node->key_columns[k] == column)
			result = make_column(node, GH_PART_KEY, k, var->vartype, node->key_types[k].scale, var->varcollid);
	return (Node *) (result != NULL ? result : (Expr *) var);
}

static Node *
group_columns_mutator(Node *expr, GhAggregateNode *node)
{
	if (expr == NULL)
		return NULL;
	if (IsA(expr, Var) && ((Var *) expr)->varno == INDEX_VAR)
		return group_column(node, (Var *) expr);
	return expression_tree_mutator(expr, group_columns_mutator, (void *) node);
}

/*
 * An expression over the scan tuple as one over groups, with constants for what has no columns.  Where a
 * subquery's result would be one, the program has to be made again when it is there.
 */
Expr *
gh_having_over_groups(GhAggregateNode *node, const Expr *expr)
{
	Node	   *over = group_columns_mutator((Node *) expr, node);

	return (Expr *) gh_fold_constants(&node->fragment.css.ss.ps, over, &node->having->awaited);
}

/* ------------------------------------------------------------- the program */

/* The first of the conditions, over groups, up to one that has no program by itself. */
static List *
conditions_with_programs(GhAggregateNode *node, TupleDesc desc)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, node->fragment.css.ss.ps.plan->qual)
	{
		Expr	   *condition = gh_having_over_groups(node, lfirst(lc));

		if (!gh_translate_filter(gh_translate_begin(desc, GH_GROUPS_VARNO), condition))
			break;
		result = lappend(result, condition);
	}
	return result;
}

/* Begins a program over groups, with the conditions or without them; NULL: all together they are too long. */
GhTranslation *
gh_having_begin(const GhAggregateNode *node, bool conditions)
{
	GhTranslation *translation = gh_translate_begin(gh_having_desc(node), GH_GROUPS_VARNO);
	List	   *translated = conditions ? node->having->conditions : NIL;
	ListCell   *lc;

	foreach(lc, translated)
		if (!gh_translate_filter(translation, lfirst(lc)))
			return NULL;
	return translation;
}

/* What the program's columns are, and whether it divides. */
static void
describe_program(const GhAggregateNode *node, GhGroupsProgram *made)
{
	const GhProgram *program = made->program;
	const GhInstruction *instructions = gh_program_instructions(program);

	for (uint32 i = 0; i < program->ncolumns; i++)
		made->parts[i] = gh_having_part(node, gh_program_columns(program)[i].attribute);
	for (uint32 i = 0; i < program->ninstructions; i++)
		made->divides |= instructions[i].op == GH_OP_QUOTIENT;
}

/* The program, which may have more behind so many instructions for the conditions; NULL: it is too long. */
GhGroupsProgram *
gh_having_end(const GhAggregateNode *node, GhTranslation *translation, uint32 nconditions)
{
	GhProgram  *program = gh_translate_end(translation);
	GhGroupsProgram *made;
	GhError		error;

	if (program == NULL)
		return NULL;
	if (gh_program_check(program, program->bytes, &error) != GH_OK)
		elog(ERROR, "%s", error.message);
	made = palloc0(sizeof(GhGroupsProgram));
	made->program = program;
	made->nconditions = nconditions;
	describe_program(node, made);
	gh_batch_begin(&made->batch, program, (void *) TYPEALIGN(64, palloc(gh_batch_bytes(program) + 64)));
	return made;
}

static void
make_program(GhAggregateNode *node)
{
	GhHaving   *having = node->having;
	GhTranslation *translation;

	having->conditions = conditions_with_programs(node, gh_having_desc(node));
	translation = having->conditions == NIL ? NULL : gh_having_begin(node, true);
	having->program = translation == NULL ? NULL : gh_having_end(node, translation, translation->ninstructions);
	having->whole = having->program != NULL &&
		list_length(having->conditions) == list_length(node->fragment.css.ss.ps.plan->qual);
}

/*
 * For groups that are there.  It has the parameters of this execution: it goes with the groups
 * (gh_having_forget).
 */
static GhHaving *
make_having(GhAggregateNode *node)
{
	MemoryContext context = AllocSetContextCreate(node->fragment.css.ss.ps.state->es_query_cxt,
												  "GpuHashAggregate HAVING", ALLOCSET_DEFAULT_SIZES);
	GhHaving   *having = MemoryContextAllocZero(context, sizeof(GhHaving));

	having->context = context;
	return having;
}

/* Whether there is a program; what a subquery is to say is waited for. */
bool
gh_having_compile(GhAggregateNode *node)
{
	MemoryContext saved;

	if (node->having != NULL && node->having->awaited != NULL && node->having->awaited->execPlan == NULL)
		gh_having_forget(node);
	if (node->having == NULL)
		node->having = make_having(node);
	if (node->having->tried)
		return node->having->program != NULL;
	node->having->tried = true;
	saved = MemoryContextSwitchTo(node->having->context);
	make_program(node);
	MemoryContextSwitchTo(saved);
	return node->having->program != NULL;
}

void
gh_having_forget(GhAggregateNode *node)
{
	if (node->having != NULL)
		MemoryContextDelete(node->having->context);
	node->having = NULL;
}

/* ---------------------------------------------------------------- the groups */

static void
fill_key(const GhAggregateNode *node, const GhOutput *output, int k, GhVectorBatch *batch, GhVector *vector)
{
	for (uint32 i = 0; i < output->count; i++)
	{
		GhSqlValue	value = gh_output_key(node, output, i, k);

		vector->low[i] = value.low;
		vector->high[i] = value.high;
		vector->null[i] = value.kind != GH_SQL_HELD;
		if (value.kind == GH_SQL_BYTES)
			batch->state[i] = GH_ROW_BACK;
	}
}

static void
fill_float(const GhAggregateSpec *spec, const GhOutput *output, int a, GhVector *vector)
{
	for (uint32 i = 0; i < output->count; i++)
	{
		bool		null;
		Datum		value = gh_aggregate_result(spec, &output->states[i][a], NULL, -1, &null);

		vector->null[i] = null;
		vector->low[i] = null ? 0 : gh_from_double(DatumGetFloat8(value));
	}
}

/* What an aggregate counts is never NULL. */
static void
fill_count(const GhOutput *output, int a, GhVector *vector)
{
	for (uint32 i = 0; i < output->count; i++)
	{
		vector->low[i] = output->states[i][a].count;
		vector->null[i] = 0;
	}
}

static void
fill_value(const GhOutput *output, int a, GhVector *vector)
{
	for (uint32 i = 0; i < output->count; i++)
	{
		const GhAggregateState *state = &output->states[i][a];

		vector->low[i] = state->low;
		vector->high[i] = state->high;
		vector->null[i] = state->count == 0;
	}
}

/* A quotient depends on how many digits a number shows: groups that show others of a sum than it has. */
static void
hand_back_scales(const GhAggregateNode *node, const GhOutput *output, int a, GhVectorBatch *batch)
{
	const GhAggregateSpec *spec = &node->shown.specs[a];

	if (spec->scales == 0)
		return;
	for (uint32 i = 0; i < output->count; i++)
		if ((int) output->states[i][spec->scales].low != spec->argument.scale)
			batch->state[i] = GH_ROW_BACK;
}

/* Groups of which some state is not all of its aggregate. */
static void
hand_back_sides(const GhAggregateNode *node, const GhOutput *output, GhVectorBatch *batch)
{
	for (uint32 i = 0; i < output->count; i++)
		for (int a = 0; a < node->shown.nresults; a++)
			if (gh_output_side(node, output, i, a) != NULL)
				batch->state[i] = GH_ROW_BACK;
}

static void
fill_part(const GhAggregateNode *node, const GhOutput *output, GhGroupsProgram *program, uint32 column)
{
	const GhGroupsPart *part = &program->parts[column];
	const GhAggregateSpec *spec = &node->shown.specs[part->number];
	GhVectorBatch *batch = &program->batch;
	GhVector   *vector = &batch->vectors[column];

	if (part->kind == GH_PART_KEY)
		fill_key(node, output, part->number, batch, vector);
	else if (part->kind == GH_PART_FLOAT)
		fill_float(spec, output, part->number, vector);
	else if (part->kind == GH_PART_COUNT || spec->final == GH_FINAL_COUNT)
		fill_count(output, part->number, vector);
	else
	{
		fill_value(output, part->number, vector);
		if (program->divides)
			hand_back_scales(node, output, part->number, batch);
	}
}

/* Groups that HAVING's conditions let out, and that the rest of the program leaves out. */
static uint32
mark_unwanted(GhOutput *output, const GhVectorBatch *batch)
{
	uint32		count = 0;

	for (uint32 i = 0; i < output->count; i++)
	{
		if (output->verdicts[i] == GH_ROW_DROPPED || batch->state[i] != GH_ROW_DROPPED)
			continue;
		output->verdicts[i] = GH_GROUP_UNWANTED;
		count++;
	}
	return count;
}

/* Evaluates a program, and what its states say; how many groups are left out that HAVING lets out. */
static uint32
run_program(const GhAggregateNode *node, GhOutput *output, GhGroupsProgram *program)
{
	GhVectorBatch *batch = &program->batch;

	gh_batch_make_ready(batch, output->count);
	batch->nrows = output->count;
	memset(batch->state, GH_ROW_LIVE, output->count);
	for (uint32 i = 0; i < program->program->ncolumns; i++)
		fill_part(node, output, program, i);
	if (!output->is_final)
		hand_back_sides(node, output, batch);
	(void) gh_program_run_part(program->program, batch, 0, program->nconditions);
	memcpy(output->verdicts, batch->state, output->count);
	if (program->nconditions == program->program->ninstructions)
		return 0;
	(void) gh_program_run_part(program->program, batch, program->nconditions, program->program->ninstructions);
	for (uint32 i = 0; i < output->count; i++)
		if (batch->state[i] == GH_ROW_BACK)
			output->verdicts[i] = GH_ROW_BACK;
	return mark_unwanted(output, batch);
}

/* The conditions behind those with programs are still to be asked. */
static void
judge_by_conditions(GhAggregateNode *node, GhOutput *output)
{
	(void) run_program(node, output, node->having->program);
	for (uint32 i = 0; i < output->count && !node->having->whole; i++)
		if (output->verdicts[i] == GH_ROW_LIVE)
			output->verdicts[i] = GH_ROW_BACK;
}

/*
 * Which of the groups come out (GH_ROW_LIVE), are left out (GH_ROW_DROPPED, or GH_GROUP_UNWANTED, see
 * first.c), or are for PostgreSQL's expressions to judge (GH_ROW_BACK).
 */
void
gh_having_judge(GhAggregateNode *node, GhOutput *output)
{
	GhGroupsProgram *first = gh_first_program(node);

	if (first != NULL)
		node->fragment.counts.unwanted += run_program(node, output, first);
	else if (node->fragment.css.ss.ps.qual == NULL)
		memset(output->verdicts, GH_ROW_LIVE, output->count);
	/* a single group is not worth a program */
	else if (node->shown.nkeys > 0 && gh_having_compile(node))
		judge_by_conditions(node, output);
	else
		memset(output->verdicts, GH_ROW_BACK, output->count);
}
