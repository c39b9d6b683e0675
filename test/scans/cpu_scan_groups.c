/*
 * cpu_scan_groups.c
 *		The groups of a scan on the CPU: a hash table with linear probing over numbers, at most
 *		half full.
 */
#include "cpu_scan.h"

#define GROUPS_MIN 64
#define GROUPS_MAX (UINT32_C(1) << 31)

/* --------------------------------------------------------------------- growth */

/* Else each row makes one. */
static bool
is_looked_up(const GhCpuGroups *groups)
{
	return groups->plan->options.each_row == 0;
}

static void
slot_put(GhCpuGroups *groups, uint32_t group)
{
	uint64_t	mask = 2 * (uint64_t) groups->room - 1;
	uint64_t	at = groups->hashes[group] & mask;

	while (groups->slots[at] != 0)
		at = (at + 1) & mask;
	groups->slots[at] = group + 1;
}

/* False: there is no memory for that many groups, and all is as it was. */
static bool
grow_groups(GhCpuGroups *groups, uint32_t room)
{
	const GhCpuGroups old = *groups;
	uint64_t	group_bytes = groups->plan->group_bytes;
	uint64_t	states_bytes = groups->plan->options.naggregates * sizeof(GhAggregateState);
	uint64_t	hash_bytes = is_looked_up(groups) ? sizeof(uint64_t) : 0;
	uint64_t	slots_bytes = is_looked_up(groups) ? 2 * sizeof(uint32_t) : 0;
	GhCpuBlock	block;
	char	   *place;

	if (room > GROUPS_MAX)
		return false;
	block = gh_cpu_block_take(groups->memory,
							  room * (group_bytes + states_bytes + hash_bytes + slots_bytes));
	if (block.ref == 0)
		return false;
	place = gh_cpu_block_address(groups->memory, block);
	groups->room = room;
	groups->records = place;
	groups->states = (GhAggregateState *) (place += room * group_bytes);
	groups->hashes = (uint64_t *) (place += room * states_bytes);
	groups->slots = (uint32_t *) (place + room * hash_bytes);
	memset(groups->slots, 0, room * slots_bytes);
	if (old.count > 0)
	{
		memcpy(groups->records, old.records, old.count * group_bytes);
		memcpy(groups->states, old.states, old.count * states_bytes);
		memcpy(groups->hashes, old.hashes, old.count * hash_bytes);
	}
	for (uint32_t group = 0; is_looked_up(groups) && group < groups->count; group++)
		slot_put(groups, group);
	gh_cpu_block_give(groups->memory, old.block);
	groups->block = block;
	return true;
}

/* --------------------------------------------------------------------- groups */

static bool
has_keys(const GhCpuGroups *groups, uint32_t group, const GhValue *values)
{
	const GhScanOptions *options = &groups->plan->options;

	for (uint32_t k = 0; k < options->nkeys; k++)
	{
		GhValue		held = gh_scan_group_value(&options->keys[k], gh_cpu_group_at(groups, group), k,
											   groups->texts.bytes);

		if (!gh_scan_equal(&options->keys[k], &held, &values[k]))
			return false;
	}
	return true;
}

/* A group of no rows, not yet in a slot, with the last number; false: there is no memory. */
static bool
make_group(GhCpuGroups *groups, const GhValue *values)
{
	const GhScanOptions *options = &groups->plan->options;
	uint64_t	text_bytes = 0;
	GhScanGroup *group;

	for (uint32_t k = 0; k < options->nkeys; k++)
		if (options->keys[k].value_class == GH_CLASS_TEXT && !values[k].null)
			text_bytes += values[k].high;
	if (!gh_cpu_texts_reserve(groups->memory, &groups->texts, text_bytes) ||
		(groups->count == groups->room &&
		 !grow_groups(groups, groups->room == 0 ? GROUPS_MIN :
					  groups->room < GROUPS_MAX ? groups->room * 2 : UINT32_MAX)))
		return false;
	group = gh_cpu_group_at(groups, groups->count);
	memset(group, 0, groups->plan->group_bytes);
	for (uint32_t k = 0; k < options->nkeys; k++)
	{
		GhScanValue *key = &gh_scan_keys(group)[k];

		if (values[k].null)
		{
			group->nulls |= UINT64_C(1) << k;
			continue;
		}
		key->low = values[k].low;
		key->high = values[k].high;
		if (options->keys[k].value_class == GH_CLASS_TEXT)
			key->low = gh_cpu_texts_add(&groups->texts, values[k].low, values[k].high);
	}
	if (options->naggregates > 0)
		memset(groups->states + (size_t) groups->count * options->naggregates, 0,
			   options->naggregates * sizeof(GhAggregateState));
	groups->count++;
	return true;
}

/* The group of these keys, new or old; GH_CPU_NO_GROUP: there is no memory for a new one. */
uint32_t
gh_cpu_group_find(GhCpuGroups *groups, const GhValue *values)
{
	const GhScanOptions *options = &groups->plan->options;
	uint64_t	mask = 2 * (uint64_t) groups->room - 1;
	uint64_t	hash = options->seed;

	for (uint32_t k = 0; k < options->nkeys; k++)
		hash = gh_scan_hash(&options->keys[k], &values[k], hash);
	for (uint64_t at = hash & mask; groups->slots[at] != 0; at = (at + 1) & mask)
	{
		uint32_t	group = groups->slots[at] - 1;

		if (groups->hashes[group] == hash && has_keys(groups, group, values))
			return group;
	}
	if (!make_group(groups, values))
		return GH_CPU_NO_GROUP;
	groups->hashes[groups->count - 1] = hash;
	slot_put(groups, groups->count - 1);
	return groups->count - 1;
}

/* A group of a row's own; GH_CPU_NO_GROUP: there is no memory for it. */
uint32_t
gh_cpu_group_add(GhCpuGroups *groups, const GhValue *values)
{
	return make_group(groups, values) ? groups->count - 1 : GH_CPU_NO_GROUP;
}

GhStatus
gh_cpu_groups_init(GhCpuGroups *groups, GhCpuSinkMemory *memory, const GhScanPlan *plan,
				   GhError *error)
{
	bool		one = plan->options.nkeys == 0 && plan->options.each_row == 0;
	uint64_t	expected = one ? 1 : plan->options.groups;
	uint32_t	room = one ? 1 : GROUPS_MIN;

	groups->memory = memory;
	groups->plan = plan;
	while (room < expected && room < GROUPS_MAX)
		room *= 2;
	/* an estimate that is too great is no reason to fail */
	while (!grow_groups(groups, room) && room > 1)
		room /= 2;
	if (groups->room == 0 && is_looked_up(groups))
		return gh_error_set(error, plan->options.memory_limit != 0 ? GH_LIMIT : GH_NO_MEMORY,
							"there is no memory for the groups of a scan");
	return GH_OK;
}

void
gh_cpu_groups_drop(GhCpuGroups *groups)
{
	gh_cpu_block_give(groups->memory, groups->texts.block);
	gh_cpu_block_give(groups->memory, groups->block);
	groups->texts.block.ref = groups->block.ref = 0;
}
