/*
 * join_plan.c
 *		From the chosen path to the CustomScan node.
 *
 * A CustomScan without a relation of its own describes its scan tuple in
 * custom_scan_tlist, and setrefs.c turns every reference in the target list,
 * the quals and custom_exprs into a column of it.  The scan tuple is made of
 * child columns:
 *
 *	1. the outer columns that the output or a qual needs ("kept"),
 *	2. the inner columns likewise,
 *	3. further references to kept columns,
 *	4. references that only the keys make, or EXPLAIN.
 *
 * From PostgreSQL 16 on, references carry the outer joins that may have made
 * them NULL: above a left join, an inner column carries one more than below it,
 * and setrefs.c insists that a column of the scan tuple and all references to it
 * carry the same.  So what the join evaluates itself, and what is evaluated
 * above it, refer to separate columns of the scan tuple.  To keep setrefs.c from
 * mixing them up, the references of the former are marked (../marks.c): setrefs.c
 * takes the whole for one expression of the scan tuple.  Marks are never executed.
 *
 * References to relations outside of the join, which a path with parameters has,
 * stay as they are: createplan.c makes them parameters afterwards.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_statistic.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "compat.h"
#include "expr/key.h"
#include "expr/translate.h"
#include "gpuhash.h"
#include "plan/index_side.h"
#include "plan/input_path.h"
#include "plan/join_plan.h"
#include "plan/planning.h"

/* A column of the scan tuple. */
typedef struct ScanColumn
{
	Expr	   *expr;
	int			side;
	int			attno;			/* in the child's output */
} ScanColumn;

/* Which of the groups above a new column may join. */
typedef enum ScanUse
{
	GH_SCAN_JOINED,				/* evaluated on joined rows: 1 to 3 */
	GH_SCAN_KEYS				/* 4 */
} ScanUse;

typedef struct ScanContext
{
	PlannerInfo *root;
	List	   *child_tlists[2];	/* by side */
	List	   *kept[2];		/* ScanColumns, by side; distinct child columns */
	List	   *copies;			/* ScanColumns */
	List	   *key_only;		/* ScanColumns */
	List	   *wrapped;		/* ScanColumns whose expr is a marked reference */
	ScanUse		use;			/* of what is being walked */
} ScanContext;

/* Whether two references name the same column, nulling relations aside. */
static bool
same_column(Node *a, Node *b)
{
	if (nodeTag(a) != nodeTag(b))
		return false;
	if (IsA(a, PlaceHolderVar))
		return ((PlaceHolderVar *) a)->phid == ((PlaceHolderVar *) b)->phid &&
			((PlaceHolderVar *) a)->phlevelsup == ((PlaceHolderVar *) b)->phlevelsup;
	if (IsA(a, Var))
	{
		Node	   *plain_a = copyObject(a);
		Node	   *plain_b = copyObject(b);

		gh_clear_nullingrels(plain_a);
		gh_clear_nullingrels(plain_b);
		return equal(plain_a, plain_b);
	}
	return false;
}

/* The child column that a Var or PlaceHolderVar names; false if none does. */
static bool
find_child_column(ScanContext *context, Node *node, int *side, int *attno)
{
	for (*side = GH_OUTER; *side <= GH_INNER; (*side)++)
	{
		ListCell   *lc;

		foreach(lc, context->child_tlists[*side])
		{
			TargetEntry *tle = lfirst_node(TargetEntry, lc);

			if (same_column((Node *) tle->expr, node))
			{
				*attno = tle->resno;
				return true;
			}
		}
	}
	return false;
}

static bool
list_has_expr(List *columns, Node *node)
{
	ListCell   *lc;

	foreach(lc, columns)
	{
		if (equal(((ScanColumn *) lfirst(lc))->expr, node))
			return true;
	}
	return false;
}

static ScanColumn *
find_column(List *columns, int side, int attno)
{
	ListCell   *lc;

	foreach(lc, columns)
	{
		ScanColumn *column = (ScanColumn *) lfirst(lc);

		if (column->side == side && column->attno == attno)
			return column;
	}
	return NULL;
}

/* Makes sure that the scan tuple has a column for this very reference. */
static void
add_column(ScanContext *context, Node *node, int side, int attno)
{
	ScanColumn *column;

	if (list_has_expr(context->kept[GH_OUTER], node) ||
		list_has_expr(context->kept[GH_INNER], node) ||
		list_has_expr(context->copies, node) ||
		list_has_expr(context->key_only, node))
		return;
	column = palloc(sizeof(ScanColumn));
	column->expr = (Expr *) copyObject(node);
	column->side = side;
	column->attno = attno;
	if (context->use == GH_SCAN_KEYS)
		context->key_only = lappend(context->key_only, column);
	else if (find_column(context->kept[side], side, attno) != NULL)
		context->copies = lappend(context->copies, column);
	else
		context->kept[side] = lappend(context->kept[side], column);
}

/*
 * Collects the references of what is evaluated above the join.  A
 * PlaceHolderVar that no child computes is computed here, out of the references
 * inside it.
 */
static bool
collect_columns_walker(Node *node, ScanContext *context)
{
	int			side;
	int			attno;

	if (node == NULL)
		return false;
	if ((IsA(node, Var) || IsA(node, PlaceHolderVar)) &&
		find_child_column(context, node, &side, &attno))
	{
		add_column(context, node, side, attno);
		return false;
	}
	return expression_tree_walker(node, collect_columns_walker, (void *) context);
}

/* The one wrapping of a child column. */
static Node *
wrap_column(ScanContext *context, Node *node, int side, int attno)
{
	ScanColumn *column = find_column(context->wrapped, side, attno);

	if (column == NULL)
	{
		column = palloc(sizeof(ScanColumn));
		column->expr = gh_marked((Expr *) copyObject(node));
		column->side = side;
		column->attno = attno;
		context->wrapped = lappend(context->wrapped, column);
	}
	add_column(context, (Node *) column->expr, side, attno);
	return (Node *) copyObject(column->expr);
}

/* Wraps the references of what the join evaluates itself, and collects them. */
static Node *
wrap_columns_mutator(Node *node, ScanContext *context)
{
	int			side;
	int			attno;

	if (node == NULL)
		return NULL;
	if ((IsA(node, Var) || IsA(node, PlaceHolderVar)) &&
		find_child_column(context, node, &side, &attno))
		return wrap_column(context, node, side, attno);
	return expression_tree_mutator(node, wrap_columns_mutator, (void *) context);
}

static List *
wrap_columns(ScanContext *context, List *exprs, ScanUse use)
{
	context->use = use;
	return (List *) wrap_columns_mutator((Node *) exprs, context);
}

static void
collect_columns(ScanContext *context, List *exprs)
{
	context->use = GH_SCAN_JOINED;
	collect_columns_walker((Node *) exprs, context);
}

/* What of the path's clauses goes where. */
typedef struct JoinClauses
{
	List	   *keys;			/* GhKeyPlan pointers */
	List	   *key_exprs[2];	/* by side, one for each key */
	List	   *hash_clauses;
	List	   *join_quals;		/* decide, with the hash clauses, what matches */
	List	   *filter;			/* decide what of the joined rows comes out */
} JoinClauses;

/*
 * The order in which quals are evaluated: by security level, so that a function
 * a user brings never sees rows that a security barrier hides, then by cost.
 * Equals keep their order.  createplan.c does this for the join nodes of its own.
 */
static List *
order_clauses(PlannerInfo *root, List *restrictinfos)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, restrictinfos)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		QualCost	cost;
		int			at;

		cost_qual_eval_node(&cost, (Node *) rinfo, root);
		for (at = list_length(result); at > 0; at--)
		{
			RestrictInfo *before = list_nth_node(RestrictInfo, result, at - 1);
			QualCost	before_cost;

			cost_qual_eval_node(&before_cost, (Node *) before, root);
			if (before->security_level < rinfo->security_level ||
				(before->security_level == rinfo->security_level &&
				 before_cost.per_tuple <= cost.per_tuple))
				break;
		}
		result = list_insert_nth(result, at, rinfo);
	}
	return result;
}

static void
split_clauses(PlannerInfo *root, const GhJoinStep *step, Relids outer_relids, Relids joinrelids,
			  JoinClauses *clauses)
{
	List	   *restrictinfos = order_clauses(root, step->clauses);
	ListCell   *lc;

	memset(clauses, 0, sizeof(*clauses));
	if (IS_OUTER_JOIN(step->jointype))
		extract_actual_join_clauses(restrictinfos, joinrelids,
									&clauses->join_quals, &clauses->filter);
	else
		clauses->join_quals = extract_actual_clauses(restrictinfos, false);

	foreach(lc, step->hash_clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		bool		outer_is_left = bms_is_subset(rinfo->left_relids, outer_relids);
		GhKeyPlan  *key = palloc(sizeof(GhKeyPlan));
		OpExpr	   *clause = castNode(OpExpr, rinfo->clause);
		Node	   *left = get_leftop(clause);
		Node	   *right = get_rightop(clause);

		if (!gh_plan_key(clause->opno, clause->inputcollid, outer_is_left, key))
			elog(ERROR, "hash clause lost its operator family");
		clauses->keys = lappend(clauses->keys, key);
		clauses->key_exprs[GH_OUTER] = lappend(clauses->key_exprs[GH_OUTER],
											   outer_is_left ? left : right);
		clauses->key_exprs[GH_INNER] = lappend(clauses->key_exprs[GH_INNER],
											   outer_is_left ? right : left);
		clauses->hash_clauses = lappend(clauses->hash_clauses, rinfo->clause);
	}
	clauses->join_quals = list_difference(clauses->join_quals, clauses->hash_clauses);
}

/* custom_scan_tlist, and the lists that say where its columns come from. */
static List *
make_scan_tlist(ScanContext *context, List **sides, List **attnos)
{
	List	   *columns = NIL;
	List	   *tlist = NIL;
	ListCell   *lc;

	columns = list_concat(columns, context->kept[GH_OUTER]);
	columns = list_concat(columns, context->kept[GH_INNER]);
	columns = list_concat(columns, context->copies);
	columns = list_concat(columns, context->key_only);
	*sides = *attnos = NIL;
	foreach(lc, columns)
	{
		ScanColumn *column = (ScanColumn *) lfirst(lc);

		tlist = lappend(tlist, makeTargetEntry(column->expr, list_length(tlist) + 1,
											   NULL, false));
		*sides = lappend_int(*sides, column->side);
		*attnos = lappend_int(*attnos, column->attno);
	}
	return tlist;
}

/*
 * Whether several inner rows have the same key, by the statistics: of a column that ANALYZE
 * found to be unique, they say as many values as rows.
 */
static bool
keys_repeat(PlannerInfo *root, CustomPath *path, const JoinClauses *clauses)
{
	Path	   *inner = lsecond(path->custom_paths);
	double		rows = inner->param_info != NULL ? inner->param_info->ppi_rows :
		inner->parent->rows;
	EstimationInfo info;
	double		values;

	/* the keys may be a part of what is unique */
	if (gh_step(&path->path)->inner_unique && clauses->join_quals == NIL)
		return false;
	values = estimate_num_groups(root, clauses->key_exprs[GH_INNER], rows, NULL, &info);
	return (info.flags & SELFLAG_USED_DEFAULT) == 0 && values < 0.99 * rows;
}

/* Whether the key is a column of which the engines read values, but for enums. */
bool
gh_is_key_column(Node *expr)
{
	while (IsA(expr, RelabelType))
		expr = (Node *) ((RelabelType *) expr)->arg;
	return IsA(expr, Var) && gh_class_of_type(((Var *) expr)->vartype) != 0 && !gh_is_enum(((Var *) expr)->vartype);
}

/* Whether it is a right or full join: inner rows without a match come out, too. */
bool
gh_step_fills_inner(const GhJoinStep *step)
{
	return step->jointype == JOIN_RIGHT || step->jointype == JOIN_FULL;
}

/* Whether the keys are exact, and decide alone (gh_keys_are_exact). */
bool
gh_step_keys_are_exact(const GhJoinStep *step)
{
	int			bits = 0;
	ListCell   *lc;

	foreach(lc, step->hash_clauses)
	{
		int			key_bits = gh_operator_key_bits(castNode(OpExpr, lfirst_node(RestrictInfo, lc)->clause)->opno);

		if (key_bits <= 0)
			return false;
		bits += key_bits;
	}
	return bits <= GH_KEY_BITS;
}

/* Whether the keys are whole numbers, which decide alone, and those of the outer side columns. */
static bool
keys_are_plain(const GhJoinStep *step, Relids outer_relids)
{
	ListCell   *lc;

	foreach(lc, step->hash_clauses)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		const OpExpr *clause = castNode(OpExpr, rinfo->clause);
		bool		outer_is_left = bms_is_subset(rinfo->left_relids, outer_relids);
		Node	   *outer = outer_is_left ? linitial(clause->args) : lsecond(clause->args);

		/* a boolean has bits, too, but programs do not have it as a whole number */
		if (gh_operator_encoding(clause->opno, outer_is_left) > GH_KEY_OID || !gh_is_key_column(outer) ||
			gh_class_of_type(getBaseType(exprType(outer))) == GH_CLASS_BOOL)
			return false;
	}
	return gh_step_keys_are_exact(step);
}

/*
 * Whether the keys are columns of both sides for whose values there are codes.  Not where they are exact, and
 * no whole numbers (a bool, a float): then the join has their equality nowhere but in its keys.
 */
static bool
keys_have_codes(const GhJoinStep *step)
{
	ListCell   *lc;

	foreach(lc, step->hash_clauses)
	{
		const OpExpr *clause = castNode(OpExpr, lfirst_node(RestrictInfo, lc)->clause);

		if (!gh_is_key_column(linitial(clause->args)) || !gh_is_key_column(lsecond(clause->args)) ||
			!gh_clause_has_code(clause))
			return false;
	}
	return !gh_step_keys_are_exact(step);
}

/* The conditions beside the keys, the equalities of keys that are looked up by their code first. */
static List *
conditions_of(const GhJoinStep *step, const JoinClauses *clauses, bool coded)
{
	List	   *keys = coded ? extract_actual_clauses(step->hash_clauses, false) : NIL;

	return list_concat(list_concat_copy(keys, clauses->join_quals), clauses->filter);
}

/*
 * Whether a row of the join is an outer row and its match, if it has one; or, of a right or full join, an
 * inner row that has none.  Matches are found by columns that are whole numbers, or by a code of columns,
 * whose equality is then a condition on the match.  Further conditions, on the match and on the joined row,
 * are what programs can evaluate.  Rows of an anti join have no inner side to look at.
 */
static bool
is_plain(PlannerInfo *root, const GhJoinStep *step, const JoinClauses *clauses, Relids outer_relids, List **conditions)
{
	JoinType	jointype = step->jointype;
	bool		coded = !keys_are_plain(step, outer_relids);

	if (jointype != JOIN_INNER && jointype != JOIN_LEFT && jointype != JOIN_SEMI && jointype != JOIN_ANTI &&
		!gh_step_fills_inner(step))
		return false;
	if ((coded || clauses->join_quals != NIL) && gh_step_fills_inner(step))
		return false;
	if ((clauses->filter != NIL && jointype == JOIN_ANTI) || (coded && !keys_have_codes(step)))
		return false;
	*conditions = conditions_of(step, clauses, coded);
	return gh_conditions_translate(root, *conditions);
}

static List *
make_private(PlannerInfo *root, CustomPath *path, ScanContext *context, JoinClauses *clauses,
			 List *sides, List *attnos)
{
	const GhJoinStep *step = gh_step(&path->path);
	const Path *outer = linitial(path->custom_paths);
	List	   *encodings = NIL;
	List	   *procs = NIL;
	List	   *collations = NIL;
	List	   *bits = NIL;
	List	   *conditions = NIL;
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, clauses->keys)
	{
		GhKeyPlan  *key = (GhKeyPlan *) lfirst(lc);

		for (int side = GH_OUTER; side <= GH_INNER; side++)
		{
			encodings = lappend_int(encodings, key->encoding[side]);
			procs = lappend_oid(procs, key->hashproc[side]);
		}
		collations = lappend_oid(collations, key->collation);
		bits = lappend_int(bits, gh_keys_are_exact(clauses->keys) ? key->bits : 0);
	}

	/* in the order of GhJoinPrivate */
	result = lappend(result, makeInteger(step->jointype));
	result = lappend(result, makeInteger(step->inner_unique));
	result = lappend(result, makeInteger(list_length(context->kept[GH_OUTER])));
	result = lappend(result, makeInteger(list_length(context->kept[GH_INNER])));
	result = lappend(result, makeInteger(list_length(context->copies)));
	result = lappend(result, sides);
	result = lappend(result, attnos);
	result = lappend(result, encodings);
	result = lappend(result, procs);
	result = lappend(result, collations);
	result = lappend(result, bits);
	result = lappend(result, makeInteger(keys_repeat(root, path, clauses)));
	result = lappend(result, makeInteger(is_plain(root, step, clauses, outer->parent->relids, &conditions)));
	result = lappend(result, list_make1_oid(gh_inner_index(step, outer->parent, lsecond(path->custom_paths))));
	return result;
}

/*
 * Whether a scan tuple can be made of the relation's columns.  Row identities of
 * an inheritance tree that is being updated have no place in one, and EXPLAIN
 * finds the field names of an anonymous record in the plan node below a join,
 * which a CustomScan keeps elsewhere.
 */
bool
gh_columns_are_plain(RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->reltarget->exprs)
	{
		Node	   *expr = (Node *) lfirst(lc);
		Oid			type;

		if (IsA(expr, Var) && ((Var *) expr)->varno == ROWID_VAR)
			return false;
		type = IsA(expr, Var) ? ((Var *) expr)->vartype : exprType(expr);
		if (type == RECORDOID)
			return false;
	}
	return true;
}

/* Fills in whether the joins of a pair are plain, and their conditions. */
void
gh_split_pair(PlannerInfo *root, const GhJoinStep *step, RelOptInfo *joinrel, RelOptInfo *outerrel)
{
	GhJoinPair *pair = step->pair;
	JoinClauses clauses = {0};
	List	   *conditions = NIL;

	/* mostly, all clauses are keys */
	if (step->clauses != step->hash_clauses)
		split_clauses(root, step, outerrel->relids, joinrel->relids, &clauses);
	pair->is_plain = is_plain(root, step, &clauses, outerrel->relids, &conditions);
	pair->conditions = pair->is_plain ? conditions : NIL;
}

/*
 * How many inner rows the most common key seems to have, as far as one of its columns tells; infinity: nobody
 * knows.
 */
double
gh_most_matches(PlannerInfo *root, const GhJoinStep *step, RelOptInfo *outerrel, RelOptInfo *innerrel)
{
	double		rows = IS_SIMPLE_REL(innerrel) ? innerrel->tuples : innerrel->rows;
	double		least = HUGE_VAL;
	ListCell   *lc;

	foreach(lc, step->hash_clauses)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		List	   *args = castNode(OpExpr, rinfo->clause)->args;
		bool		outer_is_left = bms_is_subset(rinfo->left_relids, outerrel->relids);
		VariableStatData data;
		AttStatsSlot slot;
		double		values;
		double		share = 0.0;
		bool		is_default;

		examine_variable(root, outer_is_left ? lsecond(args) : linitial(args), 0, &data);
		values = get_variable_numdistinct(&data, &is_default);
		if (HeapTupleIsValid(data.statsTuple) &&
			get_attstatsslot(&slot, data.statsTuple, STATISTIC_KIND_MCV, InvalidOid, ATTSTATSSLOT_NUMBERS))
		{
			share = slot.nnumbers > 0 ? slot.numbers[0] : 0.0;
			free_attstatsslot(&slot);
		}
		if (!is_default)
			least = Min(least, rows * Max(share, 1.0 / values));
		ReleaseVariableStats(data);
	}
	return least;
}

/* PlanCustomPath: the plan node for a path that path.c made. */
Plan *
gh_join_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
			 List *scan_clauses, List *custom_plans)
{
	CustomScan *cscan = makeNode(CustomScan);
	Path	   *outer_path = linitial(path->custom_paths);
	ScanContext context;
	JoinClauses clauses;
	List	   *join_quals;
	List	   *hash_clauses;
	ScanUse		hash_use;
	List	   *sides;
	List	   *attnos;

	split_clauses(root, gh_step(&path->path), outer_path->parent->relids, rel->relids, &clauses);

	memset(&context, 0, sizeof(context));
	context.root = root;
	context.child_tlists[GH_OUTER] = ((Plan *) linitial(custom_plans))->targetlist;
	context.child_tlists[GH_INNER] = ((Plan *) lsecond(custom_plans))->targetlist;

	/* without a target list, the node above puts in one over the relation's */
	collect_columns(&context, tlist != NIL ? tlist : rel->reltarget->exprs);
	collect_columns(&context, clauses.filter);
	/* exact keys decide alone: their clauses are there for EXPLAIN */
	hash_use = gh_keys_are_exact(clauses.keys) ? GH_SCAN_KEYS : GH_SCAN_JOINED;
	join_quals = wrap_columns(&context, clauses.join_quals, GH_SCAN_JOINED);
	hash_clauses = wrap_columns(&context, clauses.hash_clauses, hash_use);

	cscan->scan.plan.targetlist = tlist;
	cscan->scan.plan.qual = clauses.filter;
	cscan->scan.scanrelid = 0;
	cscan->flags = path->flags;
	outerPlan(cscan) = linitial(custom_plans);
	innerPlan(cscan) = lsecond(custom_plans);
	/* in the order of GhJoinExprs */
	cscan->custom_exprs = list_make4(wrap_columns(&context, clauses.key_exprs[GH_OUTER],
												  GH_SCAN_KEYS),
									 wrap_columns(&context, clauses.key_exprs[GH_INNER],
												  GH_SCAN_KEYS),
									 hash_clauses,
									 join_quals);
	cscan->custom_scan_tlist = make_scan_tlist(&context, &sides, &attnos);
	cscan->custom_private = make_private(root, path, &context, &clauses, sides, attnos);
	cscan->methods = GetCustomScanMethods(GH_JOIN_NAME, false);
	return &cscan->scan.plan;
}
