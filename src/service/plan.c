/*
 * plan.c
 *		The options of a scan as one block of bytes: a head, then the arrays, each at a
 *		multiple of 16 and named by its offset.
 *
 * The block is what a client writes, so the reader copies it first and holds every offset
 * and size against the copy.
 */
#include "postgres.h"

#include <stdlib.h>

#include "service/plan.h"

#define ALIGNMENT 16

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

/* Puts an array behind what is there; without a block it is only counted. */
static GhOffset
put_array(char *block, Size *used, const void *array, Size count, Size size)
{
	Size		at = *used;

	if (array == NULL)
		return GH_NO_ARRAY;
	/* what is far too much is refused by its size */
	if (count > GH_PLAN_BYTES_MAX)
		count = GH_PLAN_BYTES_MAX;
	if (block != NULL && count > 0)
		memcpy(block + at, array, count * size);
	*used = TYPEALIGN(ALIGNMENT, at + count * size);
	return at;
}

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
		joins[i].parts = put_array(block, used, join->parts, join->nparts, sizeof(GhScanPart));
		joins[i].fills = put_array(block, used, join->fills, join->nfills, sizeof(GhScanFill));
	}
	return put_array(block, used, joins, options->njoins, sizeof(JoinBlock));
}

Size
gh_plan_write(const GhScanOptions *options, const GhPlanTable *tables, void *to)
{
	Size		used = TYPEALIGN(ALIGNMENT, sizeof(PlanHead));
	PlanHead		head;

	if (options->njoins > GH_SCAN_JOINS_MAX)
		return 0;
	memset(&head, 0, sizeof(head));
	head.options = *options;
	head.program = put_array(to, &used, options->program, options->program_bytes, 1);
	head.attributes = put_array(to, &used, options->attributes, options->natts, sizeof(GhPageAttribute));
	head.keys = put_array(to, &used, options->keys, options->nkeys, sizeof(GhScanKey));
	head.aggregates = put_array(to, &used, options->aggregates, options->naggregates, sizeof(GhAggregate));
	head.joins = put_joins(to, &used, options, tables);
	head.parts = put_array(to, &used, options->parts, options->nparts, sizeof(GhScanPart));
	head.kept = put_array(to, &used, options->kept, options->nkept, sizeof(uint16));
	if (to != NULL)
		memcpy(to, &head, sizeof(head));
	return used <= GH_PLAN_BYTES_MAX ? used : 0;
}

/* ------------------------------------------------------------------- reading */

/* An array of the copy; false: it is not in there. */
static bool
find_array(const GhPlan *plan, Size bytes, GhOffset offset, uint64 count, Size size,
		   const void **array)
{
	*array = NULL;
	if (offset == GH_NO_ARRAY)
		return true;
	if (offset % ALIGNMENT != 0 || offset > bytes || count > (bytes - offset) / size)
		return false;
	*array = (const char *) plan->memory + offset;
	return true;
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
	memset(plan, 0, sizeof(*plan));
	if (bytes < sizeof(PlanHead) || bytes > GH_PLAN_BYTES_MAX)
		return gh_error_set(error, GH_INVALID, "there is no plan of a scan of %zu bytes", bytes);
	plan->memory = aligned_alloc(ALIGNMENT, TYPEALIGN(ALIGNMENT, bytes));
	if (plan->memory == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the plan of a scan");
	memcpy(plan->memory, block, bytes);
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
