/*
 * plan.c
 *		The options of a scan as one block of bytes (block.h).
 */
#include "postgres.h"

#include <stdlib.h>

#include "service/block.h"
#include "service/plan.h"

/* What begins a block. */
typedef struct PlanHead
{
	GhScanOptions options;		/* its addresses are not used */
	GhOffset	program;
	GhOffset	attributes;
	GhOffset	keys;
	GhOffset	aggregates;
	GhOffset	joins;			/* of JoinBlock */
	GhOffset	parts;
	GhOffset	kept;
} PlanHead;

typedef struct JoinBlock
{
	GhPlanTable table;
	uint32		kind;
	uint32		nparts;
	uint32		nfills;
	GhOffset	parts;
	GhOffset	fills;
} JoinBlock;

/* ------------------------------------------------------------------- writing */

static GhOffset
put_joins(char *block, Size *used, const GhScanOptions *options, const GhPlanTable *tables)
{
	JoinBlock		joins[GH_SCAN_JOINS_MAX];

	if (options->joins == NULL)
		return GH_NO_ARRAY;
	memset(joins, 0, sizeof(joins));
	for (uint32 i = 0; i < options->njoins; i++)
	{
		const GhScanJoin *join = &options->joins[i];

		if (tables != NULL)
			joins[i].table = tables[i];
		joins[i].kind = join->kind;
		joins[i].nparts = join->nparts;
		joins[i].nfills = join->nfills;
		joins[i].parts = gh_block_put(block, used, join->parts, join->nparts, sizeof(GhScanPart));
		joins[i].fills = gh_block_put(block, used, join->fills, join->nfills, sizeof(GhScanFill));
	}
	return gh_block_put(block, used, joins, options->njoins, sizeof(JoinBlock));
}

Size
gh_plan_write(const GhScanOptions *options, const GhPlanTable *tables, void *to)
{
	Size		used = TYPEALIGN(GH_BLOCK_ALIGNMENT, sizeof(PlanHead));
	PlanHead		head;

	if (options->njoins > GH_SCAN_JOINS_MAX)
		return 0;
	memset(&head, 0, sizeof(head));
	head.options = *options;
	head.program = gh_block_put(to, &used, options->program, options->program_bytes, 1);
	head.attributes = gh_block_put(to, &used, options->attributes, options->natts, sizeof(GhPageAttribute));
	head.keys = gh_block_put(to, &used, options->keys, options->nkeys, sizeof(GhScanKey));
	head.aggregates = gh_block_put(to, &used, options->aggregates, options->naggregates, sizeof(GhAggregate));
	head.joins = put_joins(to, &used, options, tables);
	head.parts = gh_block_put(to, &used, options->parts, options->nparts, sizeof(GhScanPart));
	head.kept = gh_block_put(to, &used, options->kept, options->nkept, sizeof(uint16));
	if (to != NULL)
		memcpy(to, &head, sizeof(head));
	return used <= GH_BLOCK_BYTES_MAX ? used : 0;
}

/* ------------------------------------------------------------------- reading */

/* An array of the copy; false: it is not in there. */
static bool
find_array(const GhPlan *plan, Size bytes, GhOffset offset, uint64 count, Size size, const void **array)
{
	return gh_block_find(plan->memory, bytes, offset, count, size, array);
}

static bool
read_joins(GhPlan *plan, Size bytes, GhOffset offset)
{
	const void *place;
	const void *parts;
	const void *fills;

	if (plan->options.njoins > GH_SCAN_JOINS_MAX ||
		!find_array(plan, bytes, offset, plan->options.njoins, sizeof(JoinBlock), &place))
		return false;
	plan->options.joins = place == NULL ? NULL : plan->joins;
	for (uint32 i = 0; place != NULL && i < plan->options.njoins; i++)
	{
		const JoinBlock *join = (const JoinBlock *) place + i;

		if (!find_array(plan, bytes, join->parts, join->nparts, sizeof(GhScanPart), &parts) ||
			!find_array(plan, bytes, join->fills, join->nfills, sizeof(GhScanFill), &fills))
			return false;
		plan->tables[i] = join->table;
		plan->joins[i].kind = join->kind;
		plan->joins[i].nparts = join->nparts;
		plan->joins[i].parts = parts;
		plan->joins[i].nfills = join->nfills;
		plan->joins[i].fills = fills;
	}
	return true;
}

static bool
read_arrays(GhPlan *plan, Size bytes)
{
	const PlanHead *head = plan->memory;
	GhScanOptions *options = &plan->options;
	const void *program;
	const void *attributes;
	const void *keys;
	const void *aggregates;
	const void *parts;
	const void *kept;

	*options = head->options;
	if (!find_array(plan, bytes, head->program, options->program_bytes, 1, &program) ||
		!find_array(plan, bytes, head->attributes, options->natts, sizeof(GhPageAttribute), &attributes) ||
		!find_array(plan, bytes, head->keys, options->nkeys, sizeof(GhScanKey), &keys) ||
		!find_array(plan, bytes, head->aggregates, options->naggregates, sizeof(GhAggregate), &aggregates) ||
		!find_array(plan, bytes, head->parts, options->nparts, sizeof(GhScanPart), &parts) ||
		!find_array(plan, bytes, head->kept, options->nkept, sizeof(uint16), &kept))
		return false;
	options->program = program;
	options->attributes = attributes;
	options->keys = keys;
	options->aggregates = aggregates;
	options->parts = parts;
	options->kept = kept;
	return read_joins(plan, bytes, head->joins);
}

GhStatus
gh_plan_read(const void *block, Size bytes, GhPlan *plan, GhError *error)
{
	GhStatus	status;

	memset(plan, 0, sizeof(*plan));
	status = gh_block_copy(block, bytes, sizeof(PlanHead), &plan->memory, error);
	if (status != GH_OK)
		return status;
	if (read_arrays(plan, bytes))
		return GH_OK;
	gh_plan_drop(plan);
	return gh_error_set(error, GH_INVALID, "an array of the plan of a scan is outside of it");
}

void
gh_plan_drop(GhPlan *plan)
{
	free(plan->memory);
	plan->memory = NULL;
}
