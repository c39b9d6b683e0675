/*
 * plan_choice.c
 *		A query as it is, with its WITH inlined, and with its subqueries unnested: the cheapest plan.  Likewise
 *		with what INTERSECT, EXCEPT and UNION compare made distinct before, and what UNION ALL unites grouped.
 *
 * Whether a subquery is better run for each outer row, over an index, or once for all keys, and a query in
 * WITH once or for each that reads it, is for costs to tell, and they are known only when all of the query is
 * planned.  So a query that has such is planned more than once.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"

#include "compat.h"
#include "gpuhash.h"
#include "plan/aggregate_plan.h"
#include "plan/host_rows.h"
#include "plan/in_memory.h"
#include "plan/inline.h"
#include "plan/join_plan.h"
#include "plan/keys_path.h"
#include "plan/planning.h"
#include "plan/same_groups.h"
#include "plan/scan_plan.h"
#include "plan/unnest.h"
#include "plan/wanted.h"
#include "plan/why.h"
#include "service/service.h"

/*
 * What the unnested plan may cost of the other.  How many rows ask is an estimate, and random_page_cost is
 * much too high for pages in memory.
 */
#define GH_UNNESTED_SHARE 0.4
/*
 * The same where each row that asks has a subquery read all of what it reads: the more rows ask, the more of
 * it is saved.
 */
#define GH_UNNESTED_WHOLE_SHARE 0.9
/* An anti join looks up as many rows as NOT IN does: there, no estimate is in doubt. */
#define GH_ANTI_JOIN_SHARE 0.8
/* Nor where a semi join has fewer rows to put into its table, for the same that are looked up. */
#define GH_KEYS_SHARE 0.8
/* An inlined one may cost of the other: it is computed from the same estimates, so little is in doubt. */
#define GH_INLINED_SHARE 0.9
/* A plan that costs less than this takes less time than another planning saves. */
#define GH_WORTH_PLANNING 1000.0
/*
 * With so many tables planning takes twice as long as what that stands for, and beyond them it grows with
 * their square.
 */
#define GH_WORTH_TABLES 4.0
/* Nor is much in doubt where the same rows are made distinct, or groups, once or twice. */
#define GH_ARMS_SHARE 0.9

static planner_hook_type previous_hook = NULL;

static PlannedStmt *
plan_query(Query *query, GH_PLANNER_PARAMETERS)
{
	return previous_hook != NULL ? previous_hook(query, GH_PLANNER_ARGUMENTS) :
		standard_planner(query, GH_PLANNER_ARGUMENTS);
}

/*
 * An unnested query.  Estimates of how many rows come out of a join with groups are often much too low, for
 * what makes up a key together is taken to be independent, and nothing is known of groups of a UNION ALL; and
 * then a nested loop is what costs without end.
 */
static PlannedStmt *
plan_loopless(Query *query, GH_PLANNER_PARAMETERS)
{
	const bool	loops = enable_nestloop;
	PlannedStmt *plan = NULL;

	enable_nestloop = false;
	PG_TRY();
	{
		plan = plan_query(query, GH_PLANNER_ARGUMENTS);
	}
	PG_FINALLY();
	{
		enable_nestloop = loops;
	}
	PG_END_TRY();
	return plan;
}

/*
 * Whether a query has subqueries in expressions, set operations without ALL, or makes groups of a UNION ALL.
 */
static bool
find_candidates(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return ((Query *) node)->hasSubLinks || gh_may_group_arms((Query *) node) || gh_has_lateral_groups((Query *) node) ||
			query_tree_walker((Query *) node, find_candidates, unused, 0);
	if (IsA(node, SetOperationStmt))
		return !((SetOperationStmt *) node)->all || expression_tree_walker(node, find_candidates, unused);
	/* WITH */
	if (IsA(node, List) || IsA(node, CommonTableExpr))
		return expression_tree_walker(node, find_candidates, unused);
	return false;
}

/*
 * Whether it has a query in WITH that is read more than once.  Each statement is asked: expressions only
 * where they have queries.
 */
static bool
find_with(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;

		return query->hasSubLinks ? query_tree_walker(query, find_with, unused, 0) :
			find_with((Node *) query->cteList, unused) ||
			range_table_walker(query->rtable, find_with, unused, QTW_IGNORE_JOINALIASES);
	}
	if (IsA(node, CommonTableExpr) && ((CommonTableExpr *) node)->cterefcount > 1)
		return true;
	return expression_tree_walker(node, find_with, unused);
}

/*
 * Whether another query may be planned in the place of this one.  A cursor may have its rows changed by
 * CURRENT OF, which finds a table in a plan only where that is not joined.
 */
static bool
may_change(const Query *query, int options)
{
	return gh_enabled && !(options & CURSOR_OPT_FAST_PLAN) && !query->hasModifyingCTE && query->rowMarks == NIL &&
		(query->commandType == CMD_SELECT || query->commandType == CMD_INSERT);
}

/* The query unnested, a copy; NULL: there is nothing to unnest. */
static Query *
unnested_query(const Query *query, int options, GhUnnested *done)
{
	Query	   *copy;

	if (!gh_enable_unnest || !may_change(query, options) || !find_candidates((Node *) query, NULL))
		return NULL;
	copy = copyObject((Query *) query);
	if (gh_has_users_functions((Node *) copy))
		return NULL;
	*done = gh_unnest(copy);
	if (gh_enable_aggregate && gh_make_arms_distinct(copy))
		*done = Max(*done, GH_UNNESTED_ARMS);
	if (gh_enable_aggregate && gh_group_arms(copy))
		*done = Max(*done, GH_UNNESTED_ARMS);
	return *done != GH_UNNESTED_NOTHING ? copy : NULL;
}

/* The query with its WITH inlined, a copy; NULL: there is nothing to inline. */
static Query *
inlined_query(const Query *query, int options)
{
	Query	   *copy;

	if (!gh_enable_inline || !may_change(query, options) || !find_with((Node *) query, NULL))
		return NULL;
	copy = copyObject((Query *) query);
	return !gh_has_users_functions((Node *) copy) && gh_inline_with(copy) ? copy : NULL;
}

/* ------------------------------------------------------------------- costs */

/*
 * PostgreSQL charges the conditions of a scan for all of its rows, as if each was asked about all of them.
 * But a subquery is asked last.  How many rows pass the other conditions is what the unnested plan's scan of
 * the same table returns.
 */
typedef struct Scans
{
	const PlannedStmt *stmt;
	const PlannedStmt *unnested;
	const GhWeighed *weighed;
	Cost		excess;			/* so far: charged for what is not computed, */
	Cost		spared;			/* and for pages of subqueries that may be in memory */
	Index		table;			/* looked for: of which the rows are, */
	double		rows;			/* and how many; negative: it was not found */
} Scans;

static Index
scanned_table(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_IndexScan:
		case T_BitmapHeapScan:
			return ((const Scan *) plan)->scanrelid;
		case T_CustomScan:
			return ((const CustomScan *) plan)->scan.scanrelid;
		default:
			return 0;
	}
}

static void
find_rows(Plan *plan, void *arg)
{
	Scans	   *scans = arg;

	if (scanned_table(plan) == scans->table && scans->rows < 0)
		scans->rows = plan->plan_rows;
}

/*
 * What subqueries cost each time that they are run, and how much of that is for pages that may be in memory.
 */
typedef struct Call
{
	const GhWeighed *weighed;
	Cost		cost;
	Cost		spared;
} Call;

static bool
add_call_cost(Node *node, Call *call)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) && !((SubPlan *) node)->useHashTable)
	{
		call->cost += ((SubPlan *) node)->per_call_cost;
		if (((SubPlan *) node)->parParam != NIL && ((SubPlan *) node)->plan_id <= list_length(call->weighed->subqueries))
			call->spared += *(Cost *) list_nth(call->weighed->subqueries, ((SubPlan *) node)->plan_id - 1);
	}
	return expression_tree_walker(node, add_call_cost, call);
}

static void
add_excess(Plan *plan, void *arg)
{
	Scans	   *scans = arg;
	Index		table = scanned_table(plan);
	Call		of_results = {.weighed = scans->weighed};
	Call		call = {.weighed = scans->weighed};
	double		charged;

	(void) add_call_cost((Node *) plan->targetlist, &of_results);
	scans->spared += of_results.spared * plan->plan_rows;
	if (table == 0 || plan->qual == NIL)
		return;
	(void) add_call_cost((Node *) plan->qual, &call);
	if (call.cost <= 0)
		return;
	charged = (plan->total_cost - plan->startup_cost) / (call.cost + cpu_tuple_cost);
	scans->table = table;
	scans->rows = -1;
	if (list_length(plan->qual) > 1 && scans->unnested != NULL && table <= (Index) list_length(scans->unnested->rtable) &&
		list_nth_node(RangeTblEntry, scans->unnested->rtable, table - 1)->relid ==
		list_nth_node(RangeTblEntry, scans->stmt->rtable, table - 1)->relid)
		gh_walk_plans(scans->unnested->planTree, find_rows, scans);
	if (scans->rows >= 0 && scans->rows < charged)
	{
		scans->excess += call.cost * (charged - scans->rows);
		charged = scans->rows;
	}
	scans->spared += call.spared * charged;
}

/* Subqueries of a plan that are run for each row that asks. */
typedef struct Asked
{
	const PlannedStmt *stmt;
	bool		any;
	bool		by_index;		/* one of them reads an index, or what an index tells */
} Asked;

static void
find_index(Plan *plan, void *arg)
{
	*(bool *) arg |= IsA(plan, IndexScan) || IsA(plan, IndexOnlyScan) || IsA(plan, BitmapHeapScan);
}

static bool
find_asked(Node *node, Asked *asked)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) && ((SubPlan *) node)->parParam != NIL && !((SubPlan *) node)->useHashTable)
	{
		asked->any = true;
		gh_walk_plans(list_nth(asked->stmt->subplans, ((SubPlan *) node)->plan_id - 1), find_index, &asked->by_index);
	}
	return expression_tree_walker(node, find_asked, asked);
}

static void
add_asked(Plan *plan, void *arg)
{
	(void) find_asked((Node *) plan->qual, arg);
	(void) find_asked((Node *) plan->targetlist, arg);
	if (IsA(plan, NestLoop) || IsA(plan, MergeJoin) || IsA(plan, HashJoin))
		(void) find_asked((Node *) ((Join *) plan)->joinqual, arg);
}

/*
 * Whether a plan has subqueries that are run for each row, and all of these read tables, or what WITH has,
 * from end to end.
 */
static bool
asks_for_all(const PlannedStmt *stmt)
{
	Asked		asked = {.stmt = stmt};

	gh_walk_statement(stmt, add_asked, &asked);
	return asked.any && !asked.by_index;
}

/* What a plan costs, but for groups that are made once for several nodes. */
typedef struct Choice
{
	PlannedStmt *plan;
	Cost		cost;
	Cost		common;			/* of it, what it takes to make these groups once */
	bool		reads_parts;	/* some groups are those of several tables that are read as one */
	GhWeighed	weighed;
	List	   *lines;			/* what explain_why has to say of it */
	GhWantedList wanted;		/* columns that would have changed it */
} Choice;

/* What the plan with its subqueries costs, rather; *in_memory: if the pages that it reads are there. */
static Cost
cost_of_subqueries(const Choice *choice, const PlannedStmt *unnested, Cost *in_memory)
{
	const GhWeighed *weighed = &choice->weighed;
	Scans		scans = {.stmt = choice->plan,.unnested = unnested,.weighed = weighed};

	gh_walk_plans(choice->plan->planTree, add_excess, &scans);
	*in_memory = choice->cost + weighed->uncharged - scans.excess -
		Min(1, effective_cache_size / Max(weighed->pages, 1)) * (weighed->spared + scans.spared);
	return choice->cost - scans.excess;
}

/* Whether the other plan costs less than so much.  Forced, costs do not tell. */
static bool
is_cheaper(const Choice *other, const Choice *choice, Cost cost)
{
	return gh_force_offload ||
		(gh_disabled_nodes(other->plan->planTree) <= gh_disabled_nodes(choice->plan->planTree) && other->cost < cost);
}

/* A choice as it would be with all columns in memory that it would like to find there. */
static Choice
with_columns(const Choice *choice)
{
	Choice		with = *choice;

	with.cost -= gh_wanted_saved(&choice->wanted);
	/* which are not read then */
	with.weighed.spared = with.weighed.random;
	return with;
}

/* reads_all: asks_for_all, of groups */
static bool
is_better(const Choice *unnested, const Choice *choice, GhUnnested done, bool reads_all)
{
	double		share = done == GH_UNNESTED_ARMS ? GH_ARMS_SHARE : done == GH_UNNESTED_KEYS ? GH_KEYS_SHARE :
		done == GH_UNNESTED_NOT_IN ? GH_ANTI_JOIN_SHARE : reads_all ? GH_UNNESTED_WHOLE_SHARE : GH_UNNESTED_SHARE;
	Cost		in_memory;
	Cost		unnested_in_memory;
	Cost		cost = cost_of_subqueries(choice, unnested->plan, &in_memory);

	(void) cost_of_subqueries(unnested, NULL, &unnested_in_memory);
	/* forced, sides that are read as one are, for nobody would have them grouped one by one */
	if (gh_force_offload && done == GH_UNNESTED_ARMS && choice->reads_parts)
		return false;
	return is_cheaper(unnested, choice, share * cost) &&
		(gh_force_offload || unnested->weighed.by_device || unnested_in_memory <= in_memory);
}

/* ------------------------------------------------------------------ choice */

/* Whether what a plan reads is on other servers, or not known. */
typedef struct Elsewhere
{
	const PlannedStmt *stmt;
	bool		is_read;
} Elsewhere;

static Choice
make_choice(Query *query, GH_PLANNER_PARAMETERS, bool loopless, bool is_weighed)
{
	uint64		before = gh_aggregate_plans;
	uint64		parts = gh_parts_plans;
	GhWantedList before_wanted = gh_wanted_begin();
	GhWeighed	before_weighed = gh_weighed_begin(is_weighed);
	Choice		choice;

	choice.plan = loopless ? plan_loopless(query, GH_PLANNER_ARGUMENTS) : plan_query(query, GH_PLANNER_ARGUMENTS);
	choice.weighed = gh_weighed_take(&before_weighed);
	choice.cost = choice.plan->planTree->total_cost;
	choice.common = 0;
	choice.reads_parts = gh_parts_plans != parts;
	if (gh_aggregate_plans - before > 1)
		choice.cost -= gh_share_groups(choice.plan, &choice.common);
	choice.lines = gh_why_take_lines(choice.plan);
	choice.wanted = gh_wanted_take(&before_wanted);
	choice.cost -= Min(gh_host_rows_save(choice.plan, options, &choice.wanted), choice.cost);
	return choice;
}

/* A query of ours is planned; whoever counts plans by queries counts one, the first. */
static Choice
plan_other(Query *query, GH_PLANNER_PARAMETERS, const Choice *first, bool loopless)
{
	Choice		choice;

	query->queryId = 0;
	choice = make_choice(query, GH_PLANNER_ARGUMENTS, loopless, true);
	choice.plan->queryId = first->plan->queryId;
	return choice;
}

/*
 * Whether arms that a query has grouped for itself are groups of ours.  PostgreSQL gains little by them, or
 * nothing, as all of their rows are grouped once more above; only its expectation of few groups says
 * otherwise.
 */
static bool
has_our_groups(const Choice *other, const Choice *choice, GhUnnested done)
{
	return done != GH_UNNESTED_ARMS || gh_force_offload ||
		gh_groups_of_postgres(other->plan) <= gh_groups_of_postgres(choice->plan);
}

/*
 * The better one of the unnested query's plan and the other.  Where each row has a subquery read everything,
 * and the plan without nested loops costs more all the same, it does so for the loops over an index that the
 * other has, too: then both may have them.
 */
static Choice
better_unnested(Query *unnested, GH_PLANNER_PARAMETERS, Choice *choice, GhUnnested done)
{
	bool		reads_all = done == GH_UNNESTED_GROUPS && asks_for_all(choice->plan);
	Query	   *copy = reads_all && enable_nestloop ? copyObject(unnested) : NULL;
	Choice		other = plan_other(unnested, GH_PLANNER_ARGUMENTS, choice, done != GH_UNNESTED_EXISTS);
	Choice		hopeful;
	Choice		own;

	if (has_our_groups(&other, choice, done) && is_better(&other, choice, done, reads_all))
		return other;
	if (copy != NULL)
	{
		other = plan_other(copy, GH_PLANNER_ARGUMENTS, choice, false);
		if (is_better(&other, choice, done, reads_all))
			return other;
	}
	hopeful = with_columns(&other);
	own = with_columns(choice);
	if (is_better(&hopeful, &own, done, reads_all))
		gh_wanted_add(&choice->wanted, &other.wanted);
	return *choice;
}

/* A leaf of another extension that reads no table: it has rows made, by whatever plan it has for that. */
static void
find_elsewhere(Plan *plan, void *arg)
{
	Elsewhere  *elsewhere = arg;
	const CustomScan *cscan = (const CustomScan *) plan;

	if (IsA(plan, CustomScan) && outerPlan(plan) == NULL && cscan->custom_plans == NIL &&
		(cscan->scan.scanrelid == 0 || rt_fetch(cscan->scan.scanrelid, elsewhere->stmt->rtable)->rtekind != RTE_RELATION))
		elsewhere->is_read = true;
}

/*
 * Whether a plan has such a leaf.  What it has done, often on other servers, it may do for this query alone,
 * and refuse another one that means the same; and its costs are seldom those of the work.  So the query stays
 * as it is.
 */
static bool
reads_elsewhere(const PlannedStmt *stmt)
{
	Elsewhere	elsewhere = {.stmt = stmt};

	gh_walk_statement(stmt, find_elsewhere, &elsewhere);
	return elsewhere.is_read;
}

/* Whether the plan has a node of ours. */
static void
find_ours(Plan *plan, void *arg)
{
	static const char *const names[] = {GH_ROWSCAN_NAME, GH_KEYS_NAME, GH_JOIN_NAME, GH_AGGREGATE_NAME, GH_ROWS_NAME};

	for (int i = 0; i < lengthof(names); i++)
		*(bool *) arg |= gh_is_node(plan, names[i]);
}

/* For gpuhash_stat. */
static void
count_plan(const PlannedStmt *stmt)
{
	bool		is_offloaded = false;

	if (!gh_service_enabled())
		return;
	gh_walk_statement(stmt, find_ours, &is_offloaded);
	if (is_offloaded)
		gh_service_count_use(GH_USE_PLANS);
}

/* Whether a plan costs enough for another planning of as many tables, where that may save little. */
static bool
outweighs_planning(const Choice *choice)
{
	double		tables = 0;
	ListCell   *lc;

	foreach(lc, choice->plan->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		/* before 16 a view stands beside its query, twice */
		tables += rte->rtekind == RTE_RELATION && rte->relkind != RELKIND_VIEW;
	}
	tables /= GH_WORTH_TABLES;
	return choice->cost >= GH_WORTH_PLANNING * (1 + tables * tables);
}

/* Planning changes a query, so that copies are taken before. */
static PlannedStmt *
choose_plan(Query *query, GH_PLANNER_PARAMETERS)
{
	GhUnnested	done = GH_UNNESTED_NOTHING;
	GhUnnested	done_inlined = GH_UNNESTED_NOTHING;
	Query	   *inlined = inlined_query(query, options);
	Query	   *unnested = unnested_query(query, options, &done);
	List	   *before = gh_why_begin();	/* of a query in whose planning a function runs this one */
	bool		is_worth_it;
	Choice		choice;
	Choice		other;
	Choice		hopeful;
	Cost		limit;

	choice = make_choice(query, GH_PLANNER_ARGUMENTS, false, inlined != NULL || unnested != NULL);
	if ((inlined != NULL || unnested != NULL) && reads_elsewhere(choice.plan))
		inlined = unnested = NULL;
	is_worth_it = gh_force_offload || choice.cost >= GH_WORTH_PLANNING;
	if (inlined != NULL && is_worth_it)
	{
		Query	   *both = unnested_query(inlined, options, &done_inlined);

		other = plan_other(inlined, GH_PLANNER_ARGUMENTS, &choice, false);
		hopeful = with_columns(&other);
		/* groups that are made once are made in both plans: they are not what these differ in */
		limit = other.common + GH_INLINED_SHARE * (choice.cost - other.common);
		if (is_cheaper(&other, &choice, limit))
		{
			choice = other;
			unnested = both;
			done = done_inlined;
		}
		else if (is_cheaper(&hopeful, &choice, limit))
			gh_wanted_add(&choice.wanted, &other.wanted);
	}
	if (unnested != NULL && done == GH_UNNESTED_ARMS && !gh_force_offload && !outweighs_planning(&choice))
		unnested = NULL;
	/* what a subquery costs for each row is not always seen in the plan; that of an EXISTS is never less than it says */
	if (unnested != NULL && (is_worth_it || done > GH_UNNESTED_EXISTS))
		choice = better_unnested(unnested, GH_PLANNER_ARGUMENTS, &choice, done);
	gh_why_end(before, choice.lines);
	gh_order_conditions(choice.plan);
	gh_host_rows(choice.plan, options);
	gh_wanted_ask(choice.plan, &choice.wanted);
	count_plan(choice.plan);
	return choice.plan;
}

/* Called by _PG_init. */
void
gh_plan_choice_init(void)
{
	previous_hook = planner_hook;
	planner_hook = choose_plan;
}
