/*
 * first_rows.c
 *		How many rows of a relation come out of a node where an ORDER BY ... LIMIT above wants the first ones.
 *
 * What does that at run time is ../rows/first.c and ../scan/first.c.  Here it is foreseen of a query's last
 * relation below the sort, whose first key, and all that is computed of its rows, has a program.  A limit
 * that is a parameter is not known to plans for any value; what comes out is as little all the same.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"

#include "expr/aggregates.h"
#include "expr/translate.h"
#include "fragment/first.h"
#include "plan/chain.h"
#include "plan/input_path.h"
#include "plan/note.h"
#include "plan/rows_path.h"

/* Groups that are looked at, at least, to find the first ones: a batch. */
#define GH_FIRST_GROUPS_LEAST 4096
/* What is estimated may be more than a number has room for. */
#define GH_GROUPS_MOST 1e15

/* The first key of the query's order, over columns of the relation; or NULL. */
static Expr *
first_key(PlannerInfo *root, RelOptInfo *rel, const PathKey *pathkey)
{
	ListCell   *lc;

	foreach(lc, pathkey->pk_eclass->ec_members)
	{
		const EquivalenceMember *member = lfirst(lc);

		if (!member->em_is_child && !member->em_is_const && bms_is_subset(member->em_relids, rel->relids) &&
			member->em_datatype == exprType((Node *) member->em_expr))
			return member->em_expr;
	}
	return NULL;
}

/* A comparison of the key in its order; NULL: there is no such operator. */
static Expr *
comparison(const PathKey *pathkey, Expr *key)
{
	Oid			type = exprType((Node *) key);
	Oid			op = get_opfamily_member(pathkey->pk_opfamily, type, type, BTLessEqualStrategyNumber);
	Expr	   *compared;

	if (!OidIsValid(op))
		return NULL;
	compared = make_opclause(op, BOOLOID, false, key, key, InvalidOid, pathkey->pk_eclass->ec_collation);
	set_opfuncid((OpExpr *) compared);
	return compared;
}

/* What has to have a program, as conditions, but for columns; NIL: there is no order. */
static List *
what_is_computed(PlannerInfo *root, RelOptInfo *rel)
{
	const PathKey *pathkey = linitial(root->sort_pathkeys);
	Expr	   *key = first_key(root, rel, pathkey);
	Expr	   *compared = key == NULL ? NULL : comparison(pathkey, key);
	List	   *conditions;
	ListCell   *lc;

	if (compared == NULL)
		return NIL;
	conditions = list_make1(compared);
	foreach(lc, root->processed_tlist)
	{
		NullTest   *test = makeNode(NullTest);

		test->arg = lfirst_node(TargetEntry, lc)->expr;
		test->nulltesttype = IS_NULL;
		test->location = -1;
		if (gh_is_computed(test->arg))
			conditions = lappend(conditions, test);
	}
	return conditions;
}

/*
 * Whether they read columns that come from tuples which are fetched: of the scan below the joins these are
 * read, but for texts.
 */
static bool
reads_fetched(List *conditions, const GhRowColumns *columns, Index scanned)
{
	ListCell   *lc;

	foreach(lc, pull_var_clause((Node *) conditions, PVC_RECURSE_PLACEHOLDERS))
	{
		const Var  *var = lfirst_node(Var, lc);

		if (bms_is_member(var->varno, columns->fetched) &&
			(var->varno != scanned || gh_class_of_type(var->vartype) == GH_CLASS_TEXT))
			return true;
	}
	return false;
}

/* Whether rows of the relation may be left out, as far as its columns tell. */
static bool
may_be_left_out(PlannerInfo *root, RelOptInfo *rel, const GhRowColumns *columns, Index scanned)
{
	List	   *conditions = what_is_computed(root, rel);

	return conditions != NIL && !reads_fetched(conditions, columns, scanned) && gh_conditions_translate(root, conditions);
}

/*
 * Whether the query wants the first so many rows of an order of the relation's, if that is how they come out.
 */
static bool
is_limited(const PlannerInfo *root, const RelOptInfo *rel)
{
	return root->limit_tuples > 0 && root->sort_pathkeys != NIL && root->parse->rowMarks == NIL &&
		bms_is_subset(root->all_baserels, rel->relids);
}

/*
 * How many of so many rows come out of the relation at the least, whatever it has for columns and is made of:
 * a bound that is known before there is a path.
 */
double
gh_first_rows_least(const PlannerInfo *root, const RelOptInfo *rel, double rows)
{
	return is_limited(root, rel) ? Min(rows, root->limit_tuples) : rows;
}

/*
 * How many of them one of several processes returns that read so many pages, and how many of these are looked
 * at before; 0: all.
 */
static double
rows_of_sample(const PlannerInfo *root, const RelOptInfo *rel, double pages, double divisor, double *sampled)
{
	if (!is_limited(root, rel))
		return 0;
	*sampled = gh_first_sample_pages(pages, root->limit_tuples);
	return *sampled == 0 ? 0 : root->limit_tuples * pages / *sampled / divisor;
}

/*
 * How many of so many rows come out of one of several processes that have a device join them over a scan;
 * *cost: what it costs to find that out, beside them.
 */
double
gh_first_rows(PlannerInfo *root, RelOptInfo *rel, Path *scan, const GhRowColumns *columns, double rows, double divisor,
			  Cost *cost)
{
	Index		scanned = scan->parent->relid;
	double		pages = scan->parent->pages;
	double		sampled;
	double		left = rows_of_sample(root, rel, pages, divisor, &sampled);
	GhNote	   *note;

	*cost = 0;
	/* several tables that are read as one are not sampled */
	if (IsA(scan, AppendPath) || left == 0 || left >= rows)
		return rows;
	note = gh_note(root, rel);
	if (note->first_rows_scan != scanned)
		note->leaves_rows = may_be_left_out(root, rel, columns, scanned);
	note->first_rows_scan = scanned;
	if (!note->leaves_rows)
		return rows;
	*cost = gh_device_start_cost + (gh_device_scan_cost(root, scan, 1.0) - gh_device_start_cost) * sampled / pages;
	return left;
}

/* The same of a scan whose conditions all have a program; *share: of the pages that are looked at before. */
double
gh_first_rows_of_scan(PlannerInfo *root, RelOptInfo *rel, double rows, double divisor, double *share)
{
	static const GhRowColumns all = {NIL, NULL};
	double		sampled;
	double		left = rows_of_sample(root, rel, rel->pages, divisor, &sampled);
	GhNote	   *note;

	*share = 0;
	if (left == 0 || left >= rows)
		return rows;
	note = gh_note(root, rel);
	if (note->first_rows_scan == 0)
		note->leaves_rows = may_be_left_out(root, rel, &all, rel->relid);
	note->first_rows_scan = rel->relid;
	if (!note->leaves_rows)
		return rows;
	*share = sampled / rel->pages;
	return left;
}

/* A constant of LIMIT or OFFSET; -1: it is none. */
static double
limit_of(const Node *expr, double absent)
{
	const Const *constant = (const Const *) expr;

	if (expr == NULL || (IsA(expr, Const) && constant->constisnull))
		return absent;
	return IsA(expr, Const) ? (double) DatumGetInt64(constant->constvalue) : -1;
}

/* Whether many groups may have the same value: counts do. */
static bool
has_ties(const Expr *key)
{
	const GhAggregateFunction *function = IsA(key, Aggref) ? gh_find_aggregate(((const Aggref *) key)->aggfnoid) : NULL;

	return function != NULL && function->kind <= GH_AGGREGATE_COUNT;
}

/*
 * Whether the query's order is of groups, its LIMIT is right above that, and a comparison of the first key,
 * of which few have the same value, has a program.
 */
static bool
orders_groups(const PlannerInfo *root)
{
	const Query *query = root->parse;
	const EquivalenceMember *member;
	ListCell   *lc;

	if (root->sort_pathkeys == NIL || query->distinctClause != NIL || query->hasWindowFuncs || query->hasTargetSRFs ||
		query->setOperations != NULL || query->groupingSets != NIL || query->rowMarks != NIL)
		return false;
	/* of anything else that is computed it is not known here whether it has a program */
	foreach(lc, root->processed_tlist)
	{
		if (!IsA(lfirst_node(TargetEntry, lc)->expr, Var) && !IsA(lfirst_node(TargetEntry, lc)->expr, Aggref))
			return false;
	}
	member = linitial(linitial_node(PathKey, root->sort_pathkeys)->pk_eclass->ec_members);
	return gh_class_of_type(member->em_datatype) != GH_CLASS_TEXT &&
		(IsA(member->em_expr, Var) || IsA(member->em_expr, Aggref)) && !has_ties(member->em_expr);
}

/* How many of so many groups of one process come out below an ORDER BY ... LIMIT (../aggregate/first.c). */
double
gh_first_groups(const PlannerInfo *root, double groups)
{
	double		count = limit_of(root->parse->limitCount, -1);
	double		offset = limit_of(root->parse->limitOffset, 0);
	double		wanted = count + offset;
	double		sample;

	if (count < 0 || offset < 0 || wanted >= Min(groups, GH_GROUPS_MOST) || !orders_groups(root))
		return groups;
	sample = (double) gh_first_sample_groups((uint64) Min(groups, GH_GROUPS_MOST), (uint64) wanted, GH_FIRST_GROUPS_LEAST);
	return sample == 0 ? groups : Min(groups, clamp_row_est(wanted * groups / sample));
}
