/*
 * record.c
 *		Writes the records of groups: what all engines have in common.
 */
#include "engine/pipeline/record.h"

static bool
is_text(const GhRecordPlan *plan, const GhRecordHead *group, uint32_t k)
{
	return plan->keys[k].value_class == GH_CLASS_TEXT && (group->nulls >> k & 1) == 0;
}

bool
gh_record_put(const GhRecordPlan *plan, const GhRecordHead *group, const GhAggregateState *states,
				   const char *texts, size_t capacity, char *buffer, size_t *used, size_t *needed)
{
	size_t		states_bytes = plan->naggregates * sizeof(GhAggregateState);
	size_t		at = plan->group_bytes + states_bytes;
	char	   *record = buffer + *used;
	GhRecordValue *keys = (GhRecordValue *) (record + sizeof(GhRecordHead));
	const GhRecordValue *held = (const GhRecordValue *) (group + 1);

	*needed = at;
	for (uint32_t k = 0; k < plan->nkeys; k++)
		*needed += is_text(plan, group, k) ? (size_t) held[k].high : 0;
	*needed = (*needed + 7) & ~(size_t) 7;
	if (*needed > capacity - *used)
		return false;
	memcpy(record, group, plan->group_bytes);
	if (states_bytes > 0)
		memcpy(record + plan->group_bytes, states, states_bytes);
	((GhRecordHead *) record)->bytes = *needed;
	for (uint32_t k = 0; k < plan->nkeys; k++)
	{
		if (!is_text(plan, group, k))
			continue;
		/* without any text but empty ones, there is no memory for them */
		if (held[k].high > 0)
			memcpy(record + at, texts + held[k].low, (size_t) held[k].high);
		keys[k].low = at;
		at += (size_t) held[k].high;
	}
	memset(record + at, 0, *needed - at);
	*used += *needed;
	return true;
}
