/*
 * key_values.c
 *		Which values of a small table's key its conditions leave, looked up while the query is planned.
 *
 * Of "fact JOIN kind ON kind.id = fact.kind_id WHERE kind.name = 'rating'" the planner expects as many facts
 * as a kind has on the average, because it does not know which id that name has.  Where facts are mostly of a
 * few kinds, a hundred times more come, and all that it has chosen above is for few rows: nested loops,
 * mostly.  But how many facts there are of each common kind is in the statistics.  So where the mistake can
 * be large, and the small table is read in a fraction of the time that the rows in question take, its
 * conditions are evaluated before joins are considered.  The values that its key then has take the place of
 * the column's statistics, their number that of the table's estimated rows, and PostgreSQL's own estimates do
 * the rest.
 *
 * Likewise where conditions leave most of the values that there are in the other table: of a calendar of two
 * hundred years one year, and the other table has five.
 *
 * Conditions are of built-in functions that cannot fail, and the user may read the table: what shows of it is
 * the plan, and one more scan in the table's counters.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "gpuhash.h"
#include "plan/join_plan.h"
#include "plan/key_values.h"
#include "plan/note.h"
#include "plan/planning.h"
#include "plan/unnest.h"

/* How many times more rows than expected must be possible, and how many at the least. */
#define GH_MISTAKE 4.0
#define GH_MISTAKEN_ROWS 1000.0
/*
 * What reading the small table may cost for each row that is possible, a fiftieth of what looking one up in
 * an index costs, and of what reading the other table does.
 */
#define GH_LOOK_COST 0.01
#define GH_LOOK_SHARE 0.05
/* Values of more than this are not kept, and a wide one ends the look, as ANALYZE leaves such out. */
#define GH_LOOK_VALUES 10000
#define GH_LOOK_BYTES (1024 * 1024)
#define GH_LOOK_WIDTH 1024

static set_rel_pathlist_hook_type previous_paths_hook = NULL;
static get_relation_stats_hook_type previous_stats_hook = NULL;

/* ---------------------------------------------------------- whether it pays */

/* The column that a side of an equality is, of whatever table; NULL: it is none. */
static const Var *
column_of(const Expr *side)
{
	while (IsA(side, RelabelType))
		side = ((const RelabelType *) side)->arg;
	return IsA(side, Var) && ((const Var *) side)->varlevelsup == 0 && ((const Var *) side)->varno > 0 &&
		((const Var *) side)->varattno > 0 ? (const Var *) side : NULL;
}

/* What reading all of the table costs, with its conditions. */
static Cost
read_cost(PlannerInfo *root, const RelOptInfo *rel)
{
	QualCost	conditions;

	cost_qual_eval(&conditions, rel->baserestrictinfo, root);
	return seq_page_cost * rel->pages + (cpu_tuple_cost + conditions.per_tuple) * rel->tuples;
}

/*
 * How many values a column has, how many of these are known to be common, and what share of the rows has n of
 * them, if they are the most common ones; false: nobody knows.
 */
static bool
examine_column(PlannerInfo *root, const Var *column, double n, double *values, int *ncommon, double *most)
{
	VariableStatData data;
	AttStatsSlot slot;
	bool		is_default;
	double		common = 0;

	examine_variable(root, (Node *) column, 0, &data);
	*values = get_variable_numdistinct(&data, &is_default);
	*most = *ncommon = 0;
	if (HeapTupleIsValid(data.statsTuple) &&
		get_attstatsslot(&slot, data.statsTuple, STATISTIC_KIND_MCV, InvalidOid, ATTSTATSSLOT_NUMBERS))
	{
		*ncommon = slot.nnumbers;
		for (int i = 0; i < *ncommon; i++)
		{
			common += slot.numbers[i];
			*most += i < n ? slot.numbers[i] : 0;
		}
		free_attstatsslot(&slot);
	}
	*most += Max(n - *ncommon, 0) * Max(1.0 - common, 0) / Max(*values - *ncommon, 1.0);
	*most = Min(*most, 1.0);
	ReleaseVariableStats(data);
	return !is_default;
}

/*
 * How many rows of the other table may match those that the conditions leave, if that is far more than is
 * expected; 0.  *compare_cost: of the values with those that are common there, as the planner is going to.
 */
static double
rows_in_question(PlannerInfo *root, const RelOptInfo *rel, const Var *key, const RelOptInfo *other,
				 const Var *other_key, Cost *compare_cost)
{
	double		values;
	double		other_values;
	double		most;
	double		possible;
	double		expected;
	double		unused;
	int			ncommon;
	int			ncommon_key;

	*compare_cost = 0;
	if (other->rows < GH_MISTAKEN_ROWS ||
		!examine_column(root, other_key, rel->rows, &other_values, &ncommon, &most))
		return 0;
	possible = other->rows * most;
	if (possible < GH_MISTAKEN_ROWS || !examine_column(root, key, rel->rows, &values, &ncommon_key, &unused))
		return 0;
	*compare_cost = Min(rel->rows, GH_KEY_COMMON_MAX) * ncommon * cpu_operator_cost;
	expected = other->rows * rel->rows / Max(values, other_values);
	return possible >= GH_MISTAKE * expected ? possible : 0;
}

/*
 * Whether reading the table costs little beside what joins of another one may, where a column of it equals
 * that.
 */
static bool
look_pays(PlannerInfo *root, const RelOptInfo *rel, const Var *key, const Expr *equal, Cost look_cost)
{
	const Var  *other_key = column_of(equal);
	const RelOptInfo *other = other_key == NULL ? NULL : root->simple_rel_array[other_key->varno];
	Cost		compare_cost;
	double		rows;

	if (other == NULL || other == rel || other->reloptkind != RELOPT_BASEREL ||
		other->rtekind != RTE_RELATION || look_cost > GH_LOOK_SHARE * read_cost(root, other))
		return false;
	rows = rows_in_question(root, rel, key, other, other_key, &compare_cost);
	return look_cost + compare_cost <= GH_LOOK_COST * rows;
}

/* A column of the table whose values are to be looked up, and one of another table that is equal to it. */
typedef struct Question
{
	AttrNumber	attno;
	const Var  *other;
} Question;

static List *
ask(List *questions, AttrNumber attno, const Expr *equal)
{
	Question   *question;
	ListCell   *lc;

	foreach(lc, questions)
		if (((Question *) lfirst(lc))->attno == attno)
			return questions;
	question = palloc(sizeof(Question));
	*question = (Question) {.attno = attno,.other = column_of(equal)};
	return lappend(questions, question);
}

/* With the column of the table among the members of an equivalence class, if it is one. */
static List *
ask_for_class(List *questions, PlannerInfo *root, const RelOptInfo *rel, const EquivalenceClass *class,
			  Cost look_cost)
{
	const Var  *key = NULL;
	ListCell   *lc;

	if (class->ec_has_const || class->ec_has_volatile)
		return questions;
	foreach(lc, class->ec_members)
	{
		const Var  *column = column_of(((const EquivalenceMember *) lfirst(lc))->em_expr);

		if (column != NULL && column->varno == (int) rel->relid)
			key = column;
	}
	if (key == NULL)
		return questions;
	foreach(lc, class->ec_members)
		if (look_pays(root, rel, key, ((const EquivalenceMember *) lfirst(lc))->em_expr, look_cost))
			return ask(questions, key->varattno, ((const EquivalenceMember *) lfirst(lc))->em_expr);
	return questions;
}

/* The same of an equality that is in no class, as those of outer joins are. */
static List *
ask_for_clause(List *questions, PlannerInfo *root, const RelOptInfo *rel, const RestrictInfo *rinfo,
			   Cost look_cost)
{
	const OpExpr *op = (const OpExpr *) rinfo->clause;
	const Expr *other;
	const Var  *key;
	bool		is_left;

	if (!rinfo->can_join || rinfo->mergeopfamilies == NIL || list_length(op->args) != 2)
		return questions;
	is_left = bms_is_member((int) rel->relid, rinfo->left_relids);
	key = column_of(is_left ? linitial(op->args) : lsecond(op->args));
	other = is_left ? lsecond(op->args) : linitial(op->args);
	if (key == NULL || key->varno != (int) rel->relid || !look_pays(root, rel, key, other, look_cost))
		return questions;
	return ask(questions, key->varattno, other);
}

/*
 * Whether by a column of the table, of a class of equal ones, it is joined with many rows of another one that
 * has few of its values.
 */
static bool
leads_to_few_values(PlannerInfo *root, const RelOptInfo *rel, const EquivalenceClass *class)
{
	double		values = 0;
	double		other_values;
	double		unused;
	int			ncommon;
	ListCell   *lc;

	foreach(lc, class->ec_members)
	{
		const Var  *column = column_of(((const EquivalenceMember *) lfirst(lc))->em_expr);

		if (column != NULL && column->varno == (int) rel->relid &&
			!examine_column(root, column, 0, &values, &ncommon, &unused))
			return false;
	}
	foreach(lc, class->ec_members)
	{
		const Var  *column = column_of(((const EquivalenceMember *) lfirst(lc))->em_expr);
		const RelOptInfo *other = column == NULL ? NULL : root->simple_rel_array[column->varno];

		if (other != NULL && other != rel && other->rows >= GH_MISTAKEN_ROWS &&
			examine_column(root, column, 0, &other_values, &ncommon, &unused) &&
			values >= GH_MISTAKE * other_values)
			return true;
	}
	return false;
}

/*
 * Whether the table's column in a class equals that of the same table once more, without conditions, that leads
 * to few values itself: a calendar by weeks, say.  How many rows are joined by that is not looked up, and so the
 * planner would take that way for its error, as soon as it knows of the others.
 */
static bool
is_way_around(PlannerInfo *root, const RelOptInfo *rel, int number)
{
	const EquivalenceClass *class = list_nth(root->eq_classes, number);
	const Oid	relid = root->simple_rte_array[rel->relid]->relid;
	ListCell   *lc;

	foreach(lc, class->ec_members)
	{
		const Var  *column = column_of(((const EquivalenceMember *) lfirst(lc))->em_expr);
		const RelOptInfo *other = column == NULL ? NULL : root->simple_rel_array[column->varno];
		int			next = -1;

		if (other == NULL || other == rel || other->reloptkind != RELOPT_BASEREL ||
			other->baserestrictinfo != NIL || root->simple_rte_array[other->relid]->relid != relid)
			continue;
		while ((next = bms_next_member(other->eclass_indexes, next)) >= 0)
			if (next != number && leads_to_few_values(root, other, list_nth(root->eq_classes, next)))
				return true;
	}
	return false;
}

/* Columns of the table whose values are to be looked up, as Questions. */
static List *
keys_in_question(PlannerInfo *root, const RelOptInfo *rel)
{
	const Cost	look_cost = read_cost(root, rel);
	List	   *questions = NIL;
	int			number = -1;
	ListCell   *lc;

	while ((number = bms_next_member(rel->eclass_indexes, number)) >= 0)
		questions = ask_for_class(questions, root, rel, list_nth(root->eq_classes, number), look_cost);
	foreach(lc, rel->joininfo)
		questions = ask_for_clause(questions, root, rel, lfirst_node(RestrictInfo, lc), look_cost);
	number = -1;
	while (questions != NIL && (number = bms_next_member(rel->eclass_indexes, number)) >= 0)
		if (is_way_around(root, rel, number))
			return NIL;
	return questions;
}

/* ------------------------------------------------------- whether it is allowed */

/* Whether it needs what is only there when the query runs. */
static bool
is_of_execution(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan))
		return true;
	return expression_tree_walker(node, is_of_execution, unused);
}

static bool
may_evaluate(const RestrictInfo *rinfo)
{
	return !rinfo->pseudoconstant && !is_of_execution((Node *) rinfo->clause, NULL) &&
		!gh_has_users_functions((Node *) rinfo->clause) && !gh_may_show((Node *) rinfo->clause);
}

/*
 * Its rows are read as a Seq Scan would, but for a serializable transaction, which would then have read all
 * of them.
 */
static bool
may_look(PlannerInfo *root, const RelOptInfo *rel, RangeTblEntry *rte)
{
	ListCell   *lc;

	if (rte->securityQuals != NIL || rte->tablesample != NULL || rte->inh || !ActiveSnapshotSet() ||
		IsolationIsSerializable() || (rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW) ||
		!gh_may_read(root, rte))
		return false;
	foreach(lc, rel->baserestrictinfo)
		if (!may_evaluate(lfirst_node(RestrictInfo, lc)))
			return false;
	return true;
}

/*
 * Whether wide values of the table are stored elsewhere, in more pages than it has itself: conditions may
 * have to read them.
 */
static bool
has_much_aside(Relation relation)
{
	Relation	toast;
	BlockNumber npages;

	if (!OidIsValid(relation->rd_rel->reltoastrelid))
		return false;
	toast = table_open(relation->rd_rel->reltoastrelid, AccessShareLock);
	npages = RelationGetNumberOfBlocks(toast);
	table_close(toast, AccessShareLock);
	return npages > RelationGetNumberOfBlocks(relation);
}

/* ------------------------------------------------------------------ the look */

/* A column's values in the rows that the conditions leave. */
typedef struct Key
{
	Form_pg_attribute attribute;
	const Var  *other;			/* of Question */
	int			nvalues;		/* not NULL */
	Datum	   *values;
} Key;

/* False: the value is too wide.  *bytes: how many it takes are added. */
static bool
keep_value(Key *key, TupleTableSlot *slot, Size *bytes)
{
	const Form_pg_attribute attribute = key->attribute;
	bool		isnull;
	Datum		value = slot_getattr(slot, attribute->attnum, &isnull);
	Size		width;

	if (isnull)
		return true;
	width = attribute->attlen == -1 ? toast_raw_datum_size(value) :
		datumGetSize(value, attribute->attbyval, attribute->attlen);
	if (width > GH_LOOK_WIDTH)
		return false;
	*bytes += width;
	key->values[key->nvalues++] = attribute->attlen == -1 ? PointerGetDatum(PG_DETOAST_DATUM_COPY(value)) :
		datumCopy(value, attribute->attbyval, attribute->attlen);
	return true;
}

static bool
keep_values(Key *keys, int nkeys, TupleTableSlot *slot, Size *bytes)
{
	for (int i = 0; i < nkeys; i++)
		if (!keep_value(&keys[i], slot, bytes))
			return false;
	return *bytes <= GH_LOOK_BYTES;
}

/* Reads the table; returns how many rows the conditions leave, or -1 if they are too many. */
static double
read_values(Relation relation, const RelOptInfo *rel, Key *keys, int nkeys)
{
	EState	   *estate = CreateExecutorState();
	ExprContext *econtext = GetPerTupleExprContext(estate);
	ExprState  *conditions = ExecPrepareQual(extract_actual_clauses(rel->baserestrictinfo, false), estate);
	TupleTableSlot *slot = table_slot_create(relation, NULL);
	TableScanDesc scan = table_beginscan_strat(relation, GetActiveSnapshot(), 0, NULL, true, false);
	int			nrows = 0;
	Size		bytes = 0;

	econtext->ecxt_scantuple = slot;
	while (nrows >= 0 && table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		if (!ExecQual(conditions, econtext))
			continue;
		nrows = nrows < GH_LOOK_VALUES && keep_values(keys, nkeys, slot, &bytes) ? nrows + 1 : -1;
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	FreeExecutorState(estate);
	return nrows;
}

/* Those of the columns whose values can be counted. */
static Key *
make_keys(Relation relation, const List *questions, int *nkeys)
{
	Key		   *keys = palloc0(list_length(questions) * sizeof(Key));
	ListCell   *lc;

	*nkeys = 0;
	foreach(lc, questions)
	{
		const Question *question = lfirst(lc);
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation), question->attno - 1);

		if (!gh_key_has_statistics(attribute))
			continue;
		keys[*nkeys].attribute = attribute;
		keys[*nkeys].other = question->other;
		keys[(*nkeys)++].values = palloc(GH_LOOK_VALUES * sizeof(Datum));
	}
	return keys;
}

/*
 * The columns' statistics; NIL: of one of them it cannot be told how many rows of the other table they stand
 * for.
 */
static List *
make_statistics(PlannerInfo *root, const Key *keys, int nkeys, double nrows)
{
	List	   *statistics = NIL;

	for (int i = 0; i < nkeys; i++)
	{
		HeapTuple	row = gh_key_statistics(root, keys[i].attribute, keys[i].values, keys[i].nvalues, nrows,
											keys[i].other);

		if (row == NULL)
			return NIL;
		statistics = lappend(statistics, row);
	}
	return statistics;
}

/*
 * The columns' statistics, noted with the table; returns how many rows the conditions leave, or -1: nothing
 * is noted.  *noted: of which columns.
 */
static double
look_up(PlannerInfo *root, RelOptInfo *rel, Relation relation, const List *questions, Bitmapset **noted)
{
	MemoryContext look = AllocSetContextCreate(CurrentMemoryContext, "gpuhash values of keys",
											   ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(look);
	int			nkeys;
	Key		   *keys = make_keys(relation, questions, &nkeys);
	double		nrows = nkeys == 0 ? -1 : read_values(relation, rel, keys, nkeys);
	List	   *statistics = NIL;

	MemoryContextSwitchTo(gh_note_context(rel));
	if (nrows >= 0)
		statistics = make_statistics(root, keys, nkeys, nrows);
	if (statistics == NIL)
		nrows = -1;
	else
		gh_note(root, rel)->key_statistics = statistics;
	MemoryContextSwitchTo(caller);
	*noted = NULL;
	for (int i = 0; i < nkeys && nrows >= 0; i++)
		*noted = bms_add_member(*noted, keys[i].attribute->attnum);
	MemoryContextDelete(look);
	return nrows;
}

/* ------------------------------------------------------------- what is made of it */

/*
 * The table and its paths have so many rows, and as its statistics are those of these rows, there are no
 * others: the planner reduces a number of values by the share of rows that conditions leave.
 */
static void
set_rows(RelOptInfo *rel, double nrows)
{
	const double rows = clamp_row_est(nrows);
	const double share = rows / rel->rows;
	ListCell   *lc;

	rel->rows = rel->tuples = rows;
	foreach(lc, rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (path->param_info == NULL)
			path->rows = rows;
	}
	foreach(lc, rel->partial_pathlist)
	{
		Path	   *path = lfirst(lc);

		path->rows = clamp_row_est(path->rows * share);
	}
}

/*
 * Of a foreign key that refers to such a column the planner knows that there is a row for each value, and
 * asks for no statistics.
 */
static void
forget_foreign_keys(PlannerInfo *root, const RelOptInfo *rel, const Bitmapset *attnos)
{
	ListCell   *lc;

	foreach(lc, root->fkey_list)
	{
		const ForeignKeyOptInfo *foreign = lfirst_node(ForeignKeyOptInfo, lc);

		if (foreign->ref_relid == rel->relid && foreign->nkeys == 1 &&
			bms_is_member(foreign->confkey[0], attnos))
			root->fkey_list = foreach_delete_current(root->fkey_list, lc);
	}
}

static void
rel_pathlist_hook(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	List	   *questions;
	Bitmapset  *noted = NULL;
	Relation	relation;
	double		nrows;

	if (previous_paths_hook)
		previous_paths_hook(root, rel, rti, rte);
	/* a search at random would go elsewhere, for better or worse */
	if (enable_geqo && bms_num_members(root->all_baserels) >= geqo_threshold)
		return;
	if (!gh_enabled || !gh_enable_key_values || rel->reloptkind != RELOPT_BASEREL ||
		rel->rtekind != RTE_RELATION || rel->baserestrictinfo == NIL || IS_DUMMY_REL(rel))
		return;
	questions = keys_in_question(root, rel);
	if (questions == NIL || !may_look(root, rel, rte))
		return;
	relation = table_open(rte->relid, NoLock);
	nrows = has_much_aside(relation) ? -1 : look_up(root, rel, relation, questions, &noted);
	table_close(relation, NoLock);
	if (nrows < 0)
		return;
	set_rows(rel, nrows);
	forget_foreign_keys(root, rel, noted);
}

static void
keep_statistics(HeapTuple statistics)
{
	(void) statistics;
}

/*
 * The relation that is that entry of the range table; NULL: it is none.  Who asks for statistics has not
 * always put it into what he asks with.
 */
static const RelOptInfo *
rel_of(const PlannerInfo *root, const RangeTblEntry *rte)
{
	if (rte->rtekind != RTE_RELATION || root->simple_rte_array == NULL)
		return NULL;
	for (int i = 1; i < root->simple_rel_array_size; i++)
		if (root->simple_rte_array[i] == rte)
			return root->simple_rel_array[i];
	return NULL;
}

static bool
relation_stats_hook(PlannerInfo *root, RangeTblEntry *rte, AttrNumber attno, VariableStatData *data)
{
	const RelOptInfo *rel;
	ListCell   *lc;

	if (previous_stats_hook && previous_stats_hook(root, rte, attno, data))
		return true;
	rel = rel_of(root, rte);
	if (rel == NULL || rel->baserestrictinfo == NIL)
		return false;
	foreach(lc, gh_key_statistics_noted(root, rel))
	{
		HeapTuple	statistics = lfirst(lc);

		if (((Form_pg_statistic) GETSTRUCT(statistics))->staattnum != attno)
			continue;
		data->statsTuple = statistics;
		data->freefunc = keep_statistics;
		/* there are not as many values as rows without the conditions */
		data->isunique = false;
		data->acl_ok = true;
		return true;
	}
	return false;
}

/* Called by _PG_init. */
void
gh_key_values_init(void)
{
	previous_paths_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = rel_pathlist_hook;
	previous_stats_hook = get_relation_stats_hook;
	get_relation_stats_hook = relation_stats_hook;
}
