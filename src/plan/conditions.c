/*
 * conditions.c
 *		The conditions of a scan: in which order they are evaluated, and which of them by a program.
 *
 * The order is the planner's, by security level and cost, but for one thing: of conditions that cost the
 * same, those come first that have a program and cannot fail (what PostgreSQL calls leakproof), as
 * comparisons of integers.  The planner leaves such conditions in the order in which it happened to come by
 * them, which for an equality is the last.  Next to each other they come by what a program takes for them
 * (condition_order.c).
 */
#include "postgres.h"

#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"

#include "expr/translate.h"
#include "plan/planning.h"
#include "plan/scan_plan.h"
#include "plan/why.h"

/* What decides when a condition is evaluated: see order_qual_clauses() of the planner. */
typedef struct Turn
{
	RestrictInfo *rinfo;
	Index		security_level;
	Cost		cost;
	bool		is_quiet;		/* it has a program, and cannot fail */
	bool		is_volatile;	/* who removes rows before can be seen */
} Turn;

static bool
translates(GhTranslation *translation, RestrictInfo *rinfo)
{
	/* what was tried for the conditions before is none of this one's reasons */
	translation->why_not = NULL;
	return gh_translate_filter(translation,
							   (Expr *) gh_make_constants((Node *) rinfo->clause, gh_some_constant,
														  translation));
}

/* Whether it has a program by itself. */
static bool
has_program(TupleDesc desc, Index varno, RestrictInfo *rinfo)
{
	GhTranslation *translation = gh_translate_begin(desc, varno);
	bool		done = translates(translation, rinfo);

	pfree(translation);
	return done;
}

static Turn
turn_of(PlannerInfo *root, RelOptInfo *rel, TupleDesc desc, RestrictInfo *rinfo)
{
	Turn		turn = {.rinfo = rinfo, .security_level = rinfo->security_level};
	QualCost	cost;

	cost_qual_eval_node(&cost, (Node *) rinfo, root);
	turn.cost = cost.per_tuple;
	if (rinfo->leakproof && turn.cost < 10 * cpu_operator_cost)
		turn.security_level = 0;
	turn.is_volatile = contain_volatile_functions((Node *) rinfo->clause);
	turn.is_quiet = !contain_leaked_vars((Node *) rinfo->clause) && has_program(desc, rel->relid, rinfo);
	return turn;
}

static bool
is_before(const Turn *a, const Turn *b)
{
	if (a->security_level != b->security_level)
		return a->security_level < b->security_level;
	if (a->cost != b->cost)
		return a->cost < b->cost;
	return a->is_quiet && !b->is_quiet && !b->is_volatile;
}

/* The relation's conditions; a Result above the node sees to those that are the same for all rows. */
static List *
in_turn(PlannerInfo *root, RelOptInfo *rel, TupleDesc desc)
{
	Turn	   *turns = palloc(sizeof(Turn) * Max(list_length(rel->baserestrictinfo), 1));
	int			n = 0;
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		Turn		turn;
		int			at = n;

		if (rinfo->pseudoconstant)
			continue;
		turn = turn_of(root, rel, desc, rinfo);
		for (; at > 0 && is_before(&turn, &turns[at - 1]); at--)
			turns[at] = turns[at - 1];
		turns[at] = turn;
		n++;
	}
	for (int i = 0; i < n; i++)
		result = lappend(result, turns[i].rinfo);
	pfree(turns);
	return result;
}

/* Orders the relation's conditions, and splits them behind the first ones that have a program. */
void
gh_rowscan_conditions(PlannerInfo *root, RelOptInfo *rel, TupleDesc desc, GhConditions *conditions)
{
	GhTranslation *translation = gh_translate_begin(desc, rel->relid);
	ListCell   *lc;

	foreach(lc, gh_conditions_in_order(in_turn(root, rel, desc)))
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (conditions->rest == NIL && translates(translation, rinfo))
		{
			conditions->programmed = lappend(conditions->programmed, rinfo);
			conditions->ninstructions = gh_translation_length(translation);
		}
		else
			conditions->rest = lappend(conditions->rest, rinfo);
	}
	if (conditions->rest != NIL)
		conditions->why_not = gh_why_of(root, translation->why_not,
										(Node *) linitial_node(RestrictInfo, conditions->rest)->clause);
	pfree(translation);
}
