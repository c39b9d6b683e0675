/*
 * first.c
 *		ORDER BY ... LIMIT above rows from a device: a condition that lets through those that may be among the first ones.
 *
 * Before all pages are read, the device makes the rows of a sample of them (../fragment/sample.c), which come
 * to the host, and whose values of the Sort's first key tell what the others have to be
 * (../fragment/first.c).
 *
 * A row that does not come out is not seen by any expression of PostgreSQL's: so all that is computed of rows
 * has to have a program, which then computes it, too, or to be just a column, and a row for which PostgreSQL
 * might raise an error is handed back.
 *
 * In a parallel query each participant takes a sample of all pages, and its condition is about its own rows:
 * those of the sample are rows of the query, whoever reads them in the end.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"

#include "fragment/first.h"
#include "fragment/joined.h"
#include "rows/node.h"

/* A sample that is taken. */
typedef struct Sample
{
	GhRowsNode *node;
	GhFirstValues *values;
	ExprState  *key;
} Sample;

/* ------------------------------------------------------------- the program */

/*
 * Whether a program can read the column of the scan tuple: the device returns it, or the scan below the joins
 * has it.  Of texts that are fetched many may be compressed, and their rows would be handed back.
 */
static bool
is_readable(const GhRowsNode *node, const Var *var)
{
	for (int i = 0; i < node->nvalues; i++)
		if (node->value_columns[i] == var->varattno - 1)
			return true;
	return node->fragment.joined->sources[var->varattno - 1].level < 0 &&
		gh_class_of_type(var->vartype) != GH_CLASS_TEXT && gh_class_of_type(var->vartype) != 0;
}

/* Whether an expression reads a column of another kind. */
static bool
reads_others(Node *expr, GhRowsNode *node)
{
	if (expr == NULL)
		return false;
	if (IsA(expr, Var))
		return !is_readable(node, (Var *) expr);
	return expression_tree_walker(expr, reads_others, (void *) node);
}

/* GhOverRows */
static Expr *
over_rows(Expr *expr, void *arg)
{
	GhFragment *fragment = arg;

	return gh_fragment_folded(fragment, expr, &fragment->program.awaited);
}

/* What the program has behind the rows' values; false: that has no program. */
bool
gh_first_rows_translate(GhRowsNode *node, GhTranslation *translation)
{
	GhFragment *fragment = &node->fragment;
	GhFirstRows *first = &node->first;

	if (first->computes &&
		!gh_translate_computed(translation, fragment->css.ss.ps.plan->targetlist, over_rows, fragment))
		return false;
	return first->condition == NULL ||
		gh_translate_filter(translation, gh_fragment_folded(fragment, first->condition, &fragment->program.awaited));
}

/* -------------------------------------------------------------- the sample */

/* So many rows are wanted, the leader knows; 0: all, or that is not known. */
static uint64
wanted_rows(GhRowsNode *node)
{
	if (node->fragment.member != NULL)
		return ((const GhRowsShared *) node->fragment.member->shared)->wanted;
	return gh_bound_rows(&node->first.bound, &node->fragment.css.ss.ps);
}

/* In the leader, before the workers start. */
void
gh_first_rows_share(GhRowsNode *node, GhRowsShared *shared)
{
	shared->wanted = gh_bound_rows(&node->first.bound, &node->fragment.css.ss.ps);
}

/* Pages of the sample; 0: it is of no use, or rows may not be left out. */
static BlockNumber
sample_pages(GhRowsNode *node, uint64 wanted)
{
	const GhFragment *fragment = &node->fragment;

	if (node->first.bound.sort == NULL || fragment->parts != NULL || fragment->css.ss.ps.plan->qual != NIL || fragment->joined->fills_inner)
		return 0;
	return (BlockNumber) gh_first_sample_pages(fragment->pages->nblocks, (double) wanted);
}

/* Whether a program can read what is computed of rows, and the first key, whatever it is. */
static bool
can_be_read(GhRowsNode *node)
{
	const Plan *plan = node->fragment.css.ss.ps.plan;
	ListCell   *lc;

	foreach(lc, plan->targetlist)
	{
		Expr	   *expr = lfirst_node(TargetEntry, lc)->expr;

		if (gh_is_computed(expr) && reads_others((Node *) expr, node))
			return false;
	}
	return !reads_others((Node *) gh_bound_key(&node->first.bound, plan), node);
}

/*
 * The row that was loaded becomes the scan tuple, as far as a key reads it: with columns of the scan that are
 * fetched.
 */
static void
store_row(GhRowsNode *node, TupleTableSlot *slot)
{
	ExecClearTuple(slot);
	memcpy(slot->tts_values, node->collected.row, sizeof(Datum) * node->fragment.ncolumns);
	memcpy(slot->tts_isnull, node->collected.nulls, sizeof(bool) * node->fragment.ncolumns);
	for (int f = 0; f < node->nfetches; f++)
		if (node->fetches[f].level < 0)
			gh_fetch_columns(node, &node->fetches[f], DatumGetUInt64(node->collected.row[node->fragment.ncolumns + f]));
	ExecStoreVirtualTuple(slot);
}

/* Takes rows of the sample, as records. */
static void
take_rows(void *arg, const char *records, Size size)
{
	const Sample *sample = arg;
	GhRowsNode *node = sample->node;
	TupleTableSlot *slot = node->fragment.css.ss.ss_ScanTupleSlot;
	ExprContext *econtext = node->fragment.css.ss.ps.ps_ExprContext;
	NullableDatum key;

	for (Size at = 0; at < size;)
	{
		CHECK_FOR_INTERRUPTS();
		at += gh_collect_load(node, records + at, size - at);
		ResetExprContext(econtext);
		store_row(node, slot);
		econtext->ecxt_scantuple = slot;
		key.value = ExecEvalExprSwitchContext(sample->key, econtext, &key.isnull);
		gh_first_values_add(sample->values, key);
	}
	ExecClearTuple(slot);
	gh_fetch_park(node);
}

/* What a sample of so many pages tells of rows that may be among the first ones; NULL: nothing. */
static Expr *
find_condition(GhRowsNode *node, uint64 wanted, BlockNumber npages)
{
	PlanState  *ps = &node->fragment.css.ss.ps;
	Expr	   *key = gh_bound_key(&node->first.bound, ps->plan);
	Sample		sample = {node, gh_first_values_begin(node->first.bound.sort, key, wanted)};

	if (sample.values == NULL)
		return NULL;
	sample.key = ExecInitExpr(key, ps);
	return gh_device_sample(&node->fragment, npages, take_rows, &sample) ? gh_first_values_condition(sample.values) : NULL;
}

/* GhFragmentMethods */
void
gh_first_rows_sample(GhFragment *fragment)
{
	GhRowsNode *node = gh_rows_of(fragment);
	GhFirstRows *first = &node->first;
	uint64		wanted = wanted_rows(node);
	BlockNumber npages = sample_pages(node, wanted);
	GhProgram  *program = fragment->program.program;
	uint16	   *vectors = node->vectors;
	int			ninstructions = fragment->ninstructions;

	if (npages == 0 || !can_be_read(node))
		return;
	first->computes = true;
	if (gh_fragment_compile_again(fragment))
		first->condition = find_condition(node, wanted, npages);
	if (first->condition != NULL && gh_fragment_compile_again(fragment))
		return;
	gh_first_rows_forget(node);
	/* as it was: it may read fewer columns */
	fragment->program.program = program;
	fragment->ninstructions = ninstructions;
	node->vectors = vectors;
}

/* ------------------------------------------------------------- what it did */

/* GhFragmentMethods: all has been read, and of rows that did not come out there are only numbers. */
void
gh_first_rows_end(GhFragment *fragment)
{
	GhRowsNode *node = gh_rows_of(fragment);
	const GhSupplyCounts *counts = &fragment->device->supply.counts;
	const GhJoined *joined = fragment->joined;

	if (node->first.condition == NULL)
		return;
	node->first.left = counts->passed[joined->levels[joined->nlevels - 1].last_step] - counts->counted;
	node->first.unwanted += node->first.left;
	fragment->counts.groups_left += node->first.left;
}

/* Before another run, or when all is read anew by the host. */
void
gh_first_rows_forget(GhRowsNode *node)
{
	node->first.computes = false;
	node->first.condition = NULL;
	node->first.left = 0;
}
