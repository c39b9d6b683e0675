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

/* The bytes of a text that a state has. */
static size_t
state_text_bytes(const GhRecordPlan *plan, const GhAggregateState *states, uint32_t a)
{
	return gh_is_text_extreme(&plan->texts[a]) && states[a].low != 0 ? (size_t) states[a].high : 0;
}

/* Texts of states, behind the `at` first bytes of a record; the bytes that it has then. */
static size_t
put_state_texts(const GhRecordPlan *plan, const GhAggregateState *states, const char *texts, char *record, size_t at)
{
	GhAggregateState *written = (GhAggregateState *) (record + plan->group_bytes);

	for (uint32_t a = 0; a < plan->naggregates; a++)
	{
		size_t		bytes = state_text_bytes(plan, states, a);

		if (!gh_is_text_extreme(&plan->texts[a]))
			continue;
		if (bytes > 0)
			memcpy(record + at, texts + states[a].low - 1, bytes);
		written[a].low = at;
		at += bytes;
	}
	return at;
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
	for (uint32_t a = 0; plan->texts != NULL && a < plan->naggregates; a++)
		*needed += state_text_bytes(plan, states, a);
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
	if (plan->texts != NULL)
		at = put_state_texts(plan, states, texts, record, at);
	memset(record + at, 0, *needed - at);
	*used += *needed;
	return true;
}
