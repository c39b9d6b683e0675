/*
 * first.c
 *		ORDER BY ... LIMIT above groups on a device: a condition that lets through the first ones of the
 *		order, and few others.
 *
 * The first key of the Sort is computed for a sample of the groups that HAVING lets out, and these tell what the
 * others have to be (../fragment/first.c).
 *
 * A group that does not come out is not seen by any expression of PostgreSQL's: so all that is computed of
 * groups has to have a program, or to be just a column, and a group for which PostgreSQL might raise an error
 * hands back.
 */
#include "postgres.h"

#include <math.h>

#include "executor/executor.h"

#include "aggregate/level.h"
#include "fragment/bound.h"
#include "fragment/first.h"

/* Groups of a sample: so many at least, or a batch, and so many for each that is wanted. */
#define GH_SAMPLE_MIN 4096
#define GH_SAMPLE_PER_GROUP 16
/* It is no use if the sample is more than this part of all. */
#define GH_SAMPLE_PART 4

struct GhFirstGroups
{
	GhAggregateNode *node;
	uint64		sample;
	ExprState  *key_state;
	GhFirstValues *values;		/* of the sample */
	Expr	   *condition;		/* over the scan tuple */
};

/* ---------------------------------------------------------------- the sample */

/*
 * Of so many groups, of which HAVING lets some out; NULL: that no few first ones are wanted, or that cannot
 * be told.
 */
GhFirstGroups *
gh_first_begin(GhAggregateNode *node, uint64 ngroups)
{
	PlanState  *ps = &node->fragment.css.ss.ps;
	uint64		wanted = gh_bound_rows(&node->bound, ps);
	uint64		sample = (uint64) sqrt((double) ngroups * Min(wanted, ngroups));
	GhTranslation *translation;
	GhFirstGroups *first;
	Expr	   *key;

	sample = Max(Max(sample, Min(GH_SAMPLE_MIN, gh_batch_rows)), Min(wanted, ngroups) * GH_SAMPLE_PER_GROUP);
	if (wanted == 0 || sample > ngroups / GH_SAMPLE_PART)
		return NULL;
	translation = gh_having_begin(node, false);
	if (translation == NULL)
		return NULL;
	first = palloc0(sizeof(GhFirstGroups));
	first->node = node;
	first->sample = sample;
	key = gh_bound_key(&node->bound, ps->plan);
	first->values = gh_first_values_begin(node->bound.sort, key, wanted);
	if (first->values == NULL || !gh_first_translate(first, translation))
		return NULL;
	first->key_state = ExecInitExpr(key, ps);
	return first;
}

/* Groups that are to be taken, at least. */
uint64
gh_first_sample(const GhFirstGroups *first)
{
	return first->sample;
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
