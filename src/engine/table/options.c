/*
 * options.c
 *		Checks that both engines make before anything else: the options of a
 *		table, the arrays of a request; and how an error is written down.
 *
 * Pure C without a word about either engine: it is compiled into gpuhash.so
 * and into gpuhash_cuda.so.
 */
#include "engine/engine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

GhStatus
gh_error_set(GhError *error, GhStatus status, const char *format,...)
{
	va_list		args;

	if (error == NULL)
		return status;
	error->status = status;
	va_start(args, format);
	(void) vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	return status;
}

/* The bounds of the filled factor; each comparison is false for a NaN. */
static GhStatus
check_fill(GhTableOptions *options, GhError *error)
{
	double		d = options->subtables;
	double		bound;

	if (options->fill_min == 0)
		options->fill_min = GH_FILL_MIN_DEFAULT;
	if (options->fill_max == 0)
		options->fill_max = GH_FILL_MAX_DEFAULT;

	if (!(options->fill_max > 0 && options->fill_max <= GH_FILL_MAX_MAX))
		return gh_error_set(error, GH_INVALID,
							"fill_max is %g but must be above 0 and at most %g",
							options->fill_max, GH_FILL_MAX_MAX);
	bound = d / (d + 1) * options->fill_max;
	if (!(options->fill_min > 0 && options->fill_min < bound))
		return gh_error_set(error, GH_INVALID,
							"fill_min is %g but must be above 0 and below %g with %u subtables and fill_max %g",
							options->fill_min, bound,
							(unsigned) options->subtables, options->fill_max);
	return GH_OK;
}

GhStatus
gh_options_check(GhTableOptions *options, GhError *error)
{
	if (options == NULL)
		return gh_error_set(error, GH_INVALID, "there are no table options");
	if (options->key_size != 4 && options->key_size != 8)
		return gh_error_set(error, GH_INVALID,
							"key_size is %u bytes but must be 4 or 8",
							(unsigned) options->key_size);
	if (options->value_size > GH_VALUE_SIZE_MAX)
		return gh_error_set(error, GH_INVALID,
							"value_size is %u bytes but may be %d at most",
							(unsigned) options->value_size, GH_VALUE_SIZE_MAX);
	if (options->multi && options->value_size == 0)
		return gh_error_set(error, GH_INVALID,
							"value_size of a multi table is 0 bytes but must be 1 or more");
	if (options->subtables == 0)
		options->subtables = GH_SUBTABLES_DEFAULT;
	if (options->subtables < GH_SUBTABLES_MIN || options->subtables > GH_SUBTABLES_MAX)
		return gh_error_set(error, GH_INVALID,
							"subtables is %u but must be between %d and %d",
							(unsigned) options->subtables,
							GH_SUBTABLES_MIN, GH_SUBTABLES_MAX);
	if (options->device < 0)
		return gh_error_set(error, GH_INVALID,
							"device is %d but must be 0 or more", options->device);
	return check_fill(options, error);
}

/* Is op one that this kind of table has? */
static bool
op_fits_table(const GhTableOptions *options, GhOp op)
{
	switch (op)
	{
		case GH_INSERT:
		case GH_UPSERT:
		case GH_MIXED:
			return !options->multi;
		case GH_EXCHANGE:
			return !options->multi &&
				(options->value_size == 4 || options->value_size == 8);
		case GH_ADD:
		case GH_BUILD:
		case GH_FIND_ALL:
		case GH_DELETE_ONE:
			return options->multi;
		case GH_FIND:
		case GH_COUNT:
		case GH_DELETE:
			return true;
	}
	return false;
}

/* The outputs, which matter even where there are no keys. */
static GhStatus
check_outputs(const GhTableOptions *options, const GhRequest *request, GhError *error)
{
	GhOp		op = request->op;

	if (op == GH_FIND_ALL && request->offsets_out == NULL)
		return gh_error_set(error, GH_INVALID, "a find-all request has no offsets_out");
	if (op == GH_FIND_ALL && request->values_out == NULL && request->values_capacity > 0)
		return gh_error_set(error, GH_INVALID,
							"a find-all request has a values_capacity but no values_out");
	if ((op == GH_FIND || op == GH_MIXED) && request->values_out != NULL &&
		(options->multi || options->value_size == 0))
		return gh_error_set(error, GH_INVALID,
							"values_out must be NULL in a find or mixed request on a multi table or a set");
	if (request->count == 0)
		return GH_OK;
	if (op == GH_EXCHANGE && request->values_out == NULL)
		return gh_error_set(error, GH_INVALID, "an exchange request has no values_out");
	if (op == GH_COUNT && request->counts_out == NULL)
		return gh_error_set(error, GH_INVALID, "a count request has no counts_out");
	return GH_OK;
}

/* May a build leave values_in out: are values positions? */
static bool
values_are_positions(const GhTableOptions *options, const GhRequest *request)
{
	return request->op == GH_BUILD &&
		(options->value_size == 4 || options->value_size == 8);
}

GhStatus
gh_request_check(const GhTableOptions *options, const GhRequest *request,
				 GhError *error)
{
	GhOp		op = request->op;
	GhStatus	status;
	bool		takes_values;

	if (op < GH_INSERT || op > GH_MIXED)
		return gh_error_set(error, GH_INVALID, "there is no operation %d", (int) op);
	if (!op_fits_table(options, op))
		return gh_error_set(error, GH_INVALID,
							"operation %d is not one of a %s of %u-byte values",
							(int) op, options->multi ? "multi table" :
							options->value_size > 0 ? "table of single values" : "set",
							(unsigned) options->value_size);
	if (request->count > GH_BATCH_MAX)
		return gh_error_set(error, GH_INVALID,
							"a request has %" PRIu64 " keys but may have %" PRIu64 " at most",
							request->count, GH_BATCH_MAX);
	if (request->outcome.done > request->count)
		return gh_error_set(error, GH_INVALID,
							"%" PRIu64 " of %" PRIu64 " keys are said to be done",
							request->outcome.done, request->count);
	status = check_outputs(options, request, error);
	if (status != GH_OK || request->count == 0)
		return status;

	takes_values = options->value_size > 0 &&
		(op == GH_INSERT || op == GH_UPSERT || op == GH_EXCHANGE || op == GH_ADD ||
		 op == GH_BUILD || op == GH_MIXED);
	if (request->keys == NULL)
		return gh_error_set(error, GH_INVALID, "a request has no keys");
	if (takes_values && request->values_in == NULL &&
		!values_are_positions(options, request))
		return gh_error_set(error, GH_INVALID, "a storing request has no values_in");
	if (op == GH_MIXED && request->ops == NULL)
		return gh_error_set(error, GH_INVALID, "a mixed request has no ops");
	return GH_OK;
}

GhStatus
gh_made_refuse(GhError *error)
{
	return gh_error_set(error, GH_INVALID, "a table that a pipeline made does not change");
}

GhStatus
gh_made_request_check(uint32_t value_size, const GhRequest *request, GhError *error)
{
	GhTableOptions options = {.key_size = sizeof(uint64_t),.value_size = value_size};

	if (request->op != GH_FIND && request->op != GH_COUNT)
		return gh_made_refuse(error);
	/* an engine may fill them beside the counts, as wide as they are in its index */
	if (request->op == GH_COUNT && request->values_out != NULL)
		return gh_error_set(error, GH_INVALID, "a count request has values_out");
	return gh_request_check(&options, request, error);
}
