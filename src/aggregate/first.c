/*
 * first.c
 *		ORDER BY ... LIMIT above groups: a condition that lets through the first ones of the order, and few others.
 *
 * The first key of the Sort is computed for a sample of the groups that HAVING lets out, and these tell what
 * the others have to be (../fragment/first.c).  Groups on a device are narrowed by it there (narrow.c).
 * Those on the host are judged by it together with HAVING (having.c), some hundred at a time, before a tuple
 * is made of any.
 *
 * A group that does not come out is not seen by any expression of PostgreSQL's: so all that is computed of
 * groups has to have a program, or to be just a column, and a group for which PostgreSQL might raise an error
 * hands back.
 *
 * On the host the sample is taken when the first group is about to come out, from all over those that are in
 * memory: a sink has them in the order of their first rows, which may be that of the key.  Of groups in
 * files, it is taken from the first partitions, as many as it needs.  Where a program needs a subquery's
 * result, the first groups come out before, and have it computed.  Each participant of a parallel query has
 * groups, and a sample, of its own: none of them returns more of the first ones than are wanted of all.
 */
#include "postgres.h"

#include <math.h>

#include "executor/executor.h"
#include "utils/memutils.h"

#include "aggregate/first.h"
#include "aggregate/level.h"
#include "fragment/bound.h"
#include "fragment/first.h"

/* Groups of a sample, at least, or a batch. */
#define GH_SAMPLE_MIN 4096
/* Instead of that, on the host, where it needs no pipeline of its own. */
#define GH_HOST_SAMPLE_MIN 1024
/* There are so many times the groups of a partition, at least (spill.c, parallel.c). */
#define GH_HOST_PARTITIONS 32

struct GhFirstGroups
{
	GhAggregateNode *node;
	MemoryContext context;		/* of all this */
	uint64		sample;
	Expr	   *key;			/* of the Sort, the first */
	ExprState  *key_state;
	GhFirstValues *values;		/* of the sample */
	Expr	   *condition;		/* over the scan tuple */
};

/* What there is of it on the host. */
typedef struct GhFirstHost
{
	MemoryContext context;		/* of all this */
	GhFirstGroups *groups;
	uint64		taken;			/* groups that were looked at for the sample */
	bool		awaits;			/* a subquery's result, for which the first groups are to ask */
	GhGroupsProgram *program;	/* of HAVING's conditions, and of what lets the first groups through; NULL: not yet */
} GhFirstHost;

/* ---------------------------------------------------------------- the sample */

/* A sample of so many; NULL: the order is of no operators. */
static GhFirstGroups *
begin(GhAggregateNode *node, uint64 wanted, uint64 sample)
{
	GhFirstGroups *first = palloc0(sizeof(GhFirstGroups));

	first->node = node;
	first->context = CurrentMemoryContext;
	first->sample = sample;
	first->key = gh_bound_key(&node->bound, node->fragment.css.ss.ps.plan);
	first->values = gh_first_values_begin(node->bound.sort, first->key, wanted);
	return first->values == NULL ? NULL : first;
}

/*
 * Whether all that PostgreSQL computes of a group has a program, and so has a condition on the key, which can
 * be computed then.
 */
static bool
has_program(GhFirstGroups *first)
{
	GhAggregateNode *node = first->node;
	MemoryContext saved = MemoryContextSwitchTo(first->context);
	Expr	   *compared = gh_first_values_comparison(first->values);
	GhTranslation *translation = gh_having_begin(node, false);
	bool		has = translation != NULL && gh_first_translate(first, translation) &&
		gh_translate_filter(translation, gh_having_over_groups(node, compared));

	if (has)
		first->key_state = ExecInitExpr(first->key, &node->fragment.css.ss.ps);
	MemoryContextSwitchTo(saved);
	return has;
}

/* A group of the sample is in the scan tuple. */
static void
take_group(void *arg)
{
	GhFirstGroups *first = arg;
	ExprContext *econtext = first->node->fragment.css.ss.ps.ps_ExprContext;
	NullableDatum key;

	key.value = ExecEvalExprSwitchContext(first->key_state, econtext, &key.isnull);
	gh_first_values_add(first->values, key);
}

/* ------------------------------------------------------------- on a device */

/*
 * Of so many groups, of which HAVING lets some out; NULL: that no few first ones are wanted, or that cannot
 * be told.
 */
GhFirstGroups *
gh_first_begin(GhAggregateNode *node, uint64 ngroups)
{
	uint64		wanted = gh_bound_rows(&node->bound, &node->fragment.css.ss.ps);
	uint64		sample = gh_first_sample_groups(ngroups, wanted, Min(GH_SAMPLE_MIN, gh_batch_rows));
	GhFirstGroups *first = sample == 0 ? NULL : begin(node, wanted, sample);

	return first != NULL && has_program(first) ? first : NULL;
}

/* Groups that are to be taken, at least. */
uint64
gh_first_sample(const GhFirstGroups *first)
{
	return first->sample;
}

/* Takes some of the sample's groups, as records. */
void
gh_first_take(GhFirstGroups *first, const char *records, Size size)
{
	gh_output_show(first->node, records, size, take_group, first);
}

/*
 * The sample is taken.  False: all groups may be among the first ones, or most, by what the first key tells.
 */
bool
gh_first_end(GhFirstGroups *first)
{
	first->condition = gh_first_values_condition(first->values);
	return first->condition != NULL;
}

/* ------------------------------------------------------------- the condition */

/*
 * All that PostgreSQL computes of a group, and then the condition, if it is there; false: that has no
 * program.
 */
bool
gh_first_translate(const GhFirstGroups *first, GhTranslation *translation)
{
	return gh_level_translate_computed(first->node, translation) &&
		(first->condition == NULL ||
		 gh_translate_filter(translation, gh_having_over_groups(first->node, first->condition)));
}

/* ------------------------------------------------------------- on the host */

/* All groups come out. */
static void
give_up(GhAggregateNode *node)
{
	gh_first_forget(node);
	node->looked = true;
}

/*
 * Whether all has a program: HAVING, what is computed, and a condition on the key.  If not, whether it awaits
 * a subquery's result.
 */
static bool
can_be_judged(GhAggregateNode *node)
{
	GhFirstHost *host = node->firsts;
	bool		can = gh_level_has_conditions(node) && has_program(host->groups);

	host->awaits = !can && node->having->awaited != NULL && node->having->awaited->execPlan != NULL;
	return can;
}

/* Begins with a sample of so many groups; false: it is no use, or that cannot be told, or not yet. */
static bool
begin_on_host(GhAggregateNode *node, uint64 wanted, uint64 sample)
{
	MemoryContext context = AllocSetContextCreate(node->fragment.css.ss.ps.state->es_query_cxt,
												  "GpuHashAggregate first groups", ALLOCSET_DEFAULT_SIZES);
	MemoryContext saved = MemoryContextSwitchTo(context);
	GhFirstHost *host = palloc0(sizeof(GhFirstHost));
	bool		begun;

	host->context = context;
	node->firsts = host;
	host->groups = begin(node, wanted, sample);
	begun = host->groups != NULL && can_be_judged(node);
	MemoryContextSwitchTo(saved);
	return begun;
}

/* The first groups have come out, and with them what was awaited, unless none of them has asked for it. */
static bool
goes_on(GhAggregateNode *node)
{
	bool		can = can_be_judged(node);

	node->firsts->awaits = false;
	return can;
}

/* The sample is taken: there is a program, or all groups come out. */
static void
end_on_host(GhAggregateNode *node)
{
	GhFirstHost *host = node->firsts;
	MemoryContext saved = MemoryContextSwitchTo(host->context);
	GhTranslation *translation = NULL;
	uint32		nconditions = 0;

	if (gh_first_end(host->groups) && gh_level_has_conditions(node))
		translation = gh_having_begin(node, true);
	if (translation != NULL)
		nconditions = translation->ninstructions;
	if (translation != NULL && gh_first_translate(host->groups, translation))
		host->program = gh_having_end(node, translation, nconditions);
	MemoryContextSwitchTo(saved);
	node->looked = true;
	if (host->program == NULL)
		give_up(node);
}

/* Whether other groups follow those in memory, from files. */
static bool
others_follow(const GhAggregateNode *node)
{
	return node->files != NULL || (node->regrouping != NULL && !gh_regroup_may_rewind(node));
}

/*
 * Takes a sample of the groups in memory, and if that is enough, makes use of it.  Other groups may follow
 * from files.
 */
static void
take_sample(GhAggregateNode *node, uint64 ngroups)
{
	GhFirstHost *host = node->firsts;
	uint64		left = host->groups->sample - host->taken;

	host->taken += gh_output_sample(node, Max(ngroups / left, 1), left, take_group, host->groups);
	if (!others_follow(node) || host->taken >= host->groups->sample)
		end_on_host(node);
}

/* Whether a sample is to be taken of so many groups in memory; it may have begun with others. */
static bool
is_sampling(GhAggregateNode *node, uint64 ngroups)
{
	uint64		wanted;
	uint64		sample;

	if (node->firsts != NULL)
		return !node->firsts->awaits || goes_on(node);
	wanted = gh_aggregate_wanted(node);
	sample = gh_first_sample_groups(others_follow(node) ? ngroups * GH_HOST_PARTITIONS : ngroups, wanted,
									Min(GH_HOST_SAMPLE_MIN, gh_batch_rows));
	/* a device has left out what is not wanted */
	node->looked = wanted == 0 || node->behind > 0;
	return !node->looked && sample > 0 && begin_on_host(node, wanted, sample);
}

/*
 * Groups are in memory, of which none has come out, or the first ones, for which it waited: looks what of
 * them is wanted.
 */
void
gh_first_look(GhAggregateNode *node)
{
	uint64		ngroups = gh_output_count(node);

	if (node->looked || node->bound.sort == NULL || ngroups == 0)
		return;
	if (is_sampling(node, ngroups))
		take_sample(node, ngroups);
	else if (node->firsts != NULL && !node->firsts->awaits)
		give_up(node);
}

/*
 * Whether it is to look again when the first groups have come out: they ask for a subquery's result that
 * programs need.
 */
bool
gh_first_awaits(const GhAggregateNode *node)
{
	return node->firsts != NULL && node->firsts->awaits;
}

/*
 * HAVING's conditions, and behind these what lets the first groups through; NULL: all come out that HAVING
 * lets out.
 */
GhGroupsProgram *
gh_first_program(const GhAggregateNode *node)
{
	return node->firsts != NULL ? node->firsts->program : NULL;
}

/* The groups go. */
void
gh_first_forget(GhAggregateNode *node)
{
	if (node->firsts != NULL)
		MemoryContextDelete(node->firsts->context);
	node->firsts = NULL;
	node->looked = false;
}
