/*
 * scan_join.c
 *		Accepts or refuses the joins of a scan, and the table that it makes.
 *
 * What a part, a fill or a table names is set where it is read: at the joins there is what the
 * instructions before them set, and what the joins before one filled.
 */
#include "engine/pipeline/scan_row.h"

#include <stdio.h>

#define WHOSE_BYTES 32

/* What vectors hold where parts of keys are read: not columns that are filled later. */
typedef struct Held
{
	uint8_t		classes[GH_PROGRAM_VECTORS_MAX];	/* a GhClass; 0: nothing yet */
	uint32_t	nvectors;
} Held;

/* `whose`: the join, or the table. */
static GhStatus
check_parts(const GhScanPart *parts, uint32_t nparts, const Held *held, const char *whose,
			GhError *error)
{
	uint32_t	bits = 0;

	for (uint32_t k = 0; k < nparts; k++)
	{
		const GhScanPart *part = &parts[k];

		if (part->vector >= held->nvectors || held->classes[part->vector] != GH_CLASS_INT)
			return gh_error_set(error, GH_INVALID, "part %u of the key of %s is vector %d, which is "
								"no integer that is set", k, whose, part->vector);
		if (part->bits == 0 || part->bits > 64 || part->unused != 0)
			return gh_error_set(error, GH_INVALID, "part %u of the key of %s has %d bits", k, whose,
								part->bits);
		bits += part->bits;
	}
	if (bits > 64)
		return gh_error_set(error, GH_INVALID, "the key of %s has %u bits, of 64 at most", whose,
							bits);
	return GH_OK;
}

/* ------------------------------------------------------------------- a table */

static GhStatus
check_own_table(const GhScanPlan *plan, GhError *error)
{
	const GhScanOptions *options = &plan->options;
	Held		held;
	GhStatus	status;

	if (options->nparts == 0 && options->nkept > 0)
		return gh_error_set(error, GH_INVALID, "a scan that makes no table keeps %u values",
							options->nkept);
	if (options->all_matches > (options->nparts > 0))
		return gh_error_set(error, GH_INVALID, "joins are to find all rows (%u) of a table with a key of "
							"%u parts", options->all_matches, options->nparts);
	if (options->marks_matches > (uint32_t) (options->nparts > 0))
		return gh_error_set(error, GH_INVALID, "joins are to mark the keys that they find (%u) of a table with "
							"a key of %u parts", options->marks_matches, options->nparts);
	if (options->nparts > 0 && options->nkeys + options->naggregates > 0)
		return gh_error_set(error, GH_INVALID, "a scan that makes a table has %u keys of groups and "
							"%u aggregates", options->nkeys, options->naggregates);
	memcpy(held.classes, plan->classes, sizeof(held.classes));
	held.nvectors = gh_program_vectors(options->program);
	status = check_parts(options->parts, options->nparts, &held, "a table", error);
	for (uint32_t k = 0; k < options->nkept && status == GH_OK; k++)
		if (options->kept[k] >= held.nvectors || held.classes[options->kept[k]] == 0)
			status = gh_error_set(error, GH_INVALID, "value %u of a table is vector %d, which is not "
								  "set", k, options->kept[k]);
	return status;
}

/* --------------------------------------------------------------------- joins */

static GhStatus
check_table(const GhScanPlan *plan, const GhScanEngine *engine, uint32_t j, GhError *error)
{
	const GhScanJoin *join = &plan->options.joins[j];
	const GhScanOptions *table;

	if (join->kind < GH_SCAN_INNER || join->kind > GH_SCAN_FULL)
		return gh_error_set(error, GH_INVALID, "join %u of a scan is of kind %u", j, join->kind);
	if (join->table == NULL || join->table->engine != engine || join->table->plan == NULL ||
		!join->table->table_made)
		return gh_error_set(error, GH_INVALID, "join %u of a scan has no table that was made by a "
							"scan of the same engine", j);
	table = &join->table->plan->options;
	if (table->device != plan->options.device)
		return gh_error_set(error, GH_INVALID, "join %u of a scan on device %d has a table on device "
							"%d", j, plan->options.device, table->device);
	if (table->nparts != join->nparts)
		return gh_error_set(error, GH_INVALID, "the key of join %u of a scan has %u parts, and its "
							"table's %u", j, join->nparts, table->nparts);
	for (uint32_t k = 0; k < join->nparts; k++)
		if (join->parts[k].bits != table->parts[k].bits)
			return gh_error_set(error, GH_INVALID, "part %u of the key of join %u of a scan has %d "
								"bits, and its table's %d", k, j, join->parts[k].bits,
								table->parts[k].bits);
	return GH_OK;
}

/* A join whose table's rows without a match may be asked for. */
static GhStatus
check_marks(const GhScanOptions *options, uint32_t j, GhError *error)
{
	if (!gh_scan_kind_marks(options->joins[j].kind))
		return GH_OK;
	if (j + 1 != options->njoins)
		return gh_error_set(error, GH_INVALID, "join %u of a scan marks matches and is not the last one, which "
							"is %u", j, options->njoins - 1);
	if (options->lists_rows != 0)
		return gh_error_set(error, GH_INVALID, "join %u of a scan that lists rows marks matches", j);
	if (options->joins[j].table->plan->options.marks_matches == 0)
		return gh_error_set(error, GH_INVALID, "join %u of a scan marks matches in a table that was not made "
							"for it", j);
	return GH_OK;
}

/* A column that is filled, which nothing has filled so far. */
static GhStatus
check_fill(const GhScanPlan *plan, uint32_t j, uint32_t f, const Held *held, GhError *error)
{
	const GhScanOptions *options = &plan->options;
	const GhScanFill *fill = &options->joins[j].fills[f];
	const GhScanPlan *table = options->joins[j].table->plan;

	if (fill->column >= options->program->ncolumns ||
		gh_program_columns(options->program)[fill->column].attribute <= options->natts)
		return gh_error_set(error, GH_INVALID, "join %u of a scan fills column %d, which is none "
							"or is in the page", j, fill->column);
	if (held->classes[fill->column] != 0)
		return gh_error_set(error, GH_INVALID, "join %u of a scan fills column %d, which is filled "
							"already", j, fill->column);
	if (fill->kept >= table->options.nkept ||
		table->classes[table->options.kept[fill->kept]] != plan->classes[fill->column])
		return gh_error_set(error, GH_INVALID, "join %u of a scan fills column %d with value %d of "
							"its table, which is not of class %d", j, fill->column, fill->kept,
							plan->classes[fill->column]);
	return GH_OK;
}

static GhStatus
check_join(const GhScanPlan *plan, const GhScanEngine *engine, uint32_t j, Held *held,
		   GhError *error)
{
	const GhScanJoin *join = &plan->options.joins[j];
	char		whose[WHOSE_BYTES];
	GhStatus	status;

	(void) snprintf(whose, sizeof(whose), "join %u of a scan", j);
	status = check_parts(join->parts, join->nparts, held, whose, error);
	if (status == GH_OK)
		status = check_table(plan, engine, j, error);
	if (status == GH_OK)
		status = check_marks(&plan->options, j, error);
	if (status == GH_OK && join->nfills > 0 && !gh_scan_kind_fills(join->kind))
		status = gh_error_set(error, GH_INVALID, "join %u of a scan is of kind %u and fills columns",
							  j, join->kind);
	for (uint32_t f = 0; f < join->nfills && status == GH_OK; f++)
	{
		status = check_fill(plan, j, f, held, error);
		if (status == GH_OK)
			held->classes[join->fills[f].column] = plan->classes[join->fills[f].column];
	}
	return status;
}

/* What is set before the joins: no column that they fill, which nothing may have read. */
static GhStatus
hold_before_joins(const GhScanPlan *plan, Held *held, GhError *error)
{
	const GhScanOptions *options = &plan->options;
	const GhProgram *program = options->program;

	if (options->joins_at > program->ninstructions)
		return gh_error_set(error, GH_INVALID, "the joins of a scan are behind %u of %u instructions",
							options->joins_at, program->ninstructions);
	held->nvectors = gh_program_vectors(program);
	gh_program_classes(program, options->joins_at, held->classes);
	for (uint32_t i = 0; i < program->ncolumns; i++)
	{
		if (gh_program_columns(program)[i].attribute <= options->natts)
			continue;
		if (gh_program_reads(program, options->joins_at, i))
			return gh_error_set(error, GH_INVALID, "column %u of a scan is read before the joins, "
								"which fill it", i);
		held->classes[i] = 0;
	}
	return GH_OK;
}

bool
gh_scan_join_multiplies(const GhScanOptions *options, uint32_t j)
{
	const GhScanJoin *join = &options->joins[j];

	return gh_scan_kind_fills(join->kind) && join->table->several &&
		join->table->plan->options.all_matches != 0 && options->lists_rows == 0;
}

GhScan *
gh_scan_marked_table(const GhScanOptions *options)
{
	const GhScanJoin *last = options->njoins > 0 ? &options->joins[options->njoins - 1] : NULL;

	return last != NULL && gh_scan_kind_marks(last->kind) ? last->table : NULL;
}

GhStatus
gh_scan_joins_check(const GhScanPlan *plan, const GhScanEngine *engine, GhError *error)
{
	const GhScanOptions *options = &plan->options;
	Held		held;
	GhStatus	status = hold_before_joins(plan, &held, error);

	for (uint32_t j = 0; j < options->njoins && status == GH_OK; j++)
		status = check_join(plan, engine, j, &held, error);
	for (uint32_t i = 0; i < options->program->ncolumns && status == GH_OK; i++)
		if (held.classes[i] == 0)
			status = gh_error_set(error, GH_INVALID, "column %u of a scan is attribute %d of %u, and "
								  "no join fills it", i,
								  gh_program_columns(options->program)[i].attribute, options->natts);
	return status == GH_OK ? check_own_table(plan, error) : status;
}
