/*
 * calibrate.c
 *		gpuhash_calibrate: what the planner's costs of gpuhash should be on this machine.
 *
 * Costs are relative.  A unit of cost is worth the milliseconds that make PostgreSQL's costs of its own hash
 * joins fit their times best, but for the smallest, whose start they do not count.  With it the times of
 * GpuHashJoin, less what the rest of the plan costs, are fitted by
 *
 *		setup_cost + build_tuple_cost x inner rows + probe_tuple_cost x outer rows
 *
 * and those of sums by a device by
 *
 *		device_start_cost + device_page_cost x pages
 *
 * where a page that is read where it is counts as costs.h has it.  All fits weigh relative errors.  What has
 * no times is not guessed: it has no suggestion, and a reason.
 *
 * PostgreSQL's costs count seq_page_cost for pages that are in memory, and so does the unit: a suggestion is
 * what makes the planner choose between these plans as their times do, with the server's other costs as they
 * are.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"

#include "fragment/costs.h"
#include "plan/calibrate.h"
#include "result_rows.h"

PG_FUNCTION_INFO_V1(gpuhash_calibrate);

#define LEAST_ROWS 10000		/* of joins that tell what a unit of cost is worth */
#define LEAST_JOINS 5			/* for a fit, of which some have so many rows */

/* A line of the result. */
typedef struct Suggestion
{
	const char *setting;
	double		current;
	double		cost;			/* as fitted; NaN: it was not measured */
	int			digits;			/* behind the point */
	const char *why;
} Suggestion;

enum
{
	SETUP, BUILD, PROBE, START, PAGE, BUS, NSETTINGS
};

static const Suggestion unmeasured[NSETTINGS] = {
	[SETUP] = {.setting = "gpuhash.setup_cost",.digits = 1},
	[BUILD] = {.setting = "gpuhash.build_tuple_cost",.digits = 4},
	[PROBE] = {.setting = "gpuhash.probe_tuple_cost",.digits = 4},
	[START] = {.setting = "gpuhash.device_start_cost",.digits = 1},
	[PAGE] = {.setting = "gpuhash.device_page_cost",.digits = 4},
	[BUS] = {.setting = "gpuhash.device_bus_cost",.digits = 4},
};

/* -------------------------------------------------------------------- fits */

/* Milliseconds of a unit of cost: those with which the costs' relative errors are least. */
static double
unit_of_cost(const GhMeasurements *measured)
{
	double		sum = 0;
	double		squares = 0;

	for (int i = 0; i < measured->njoins; i++)
	{
		double		ratio = measured->joins[i].native_cost / measured->joins[i].native_ms;

		if (measured->joins[i].outer_rows < LEAST_ROWS)
			continue;
		sum += ratio;
		squares += ratio * ratio;
	}
	return sum / squares;
}

/* Least squares of y = x[0] c[0] + ... + x[n - 1] c[n - 1]: the normal equations, a sum over the points. */
typedef struct Fit
{
	int			n;
	double		sums[3][4];		/* the last column: of y */
} Fit;

static void
add_point(Fit *fit, const double *x, double y, double weight)
{
	for (int i = 0; i < fit->n; i++)
	{
		for (int j = 0; j < fit->n; j++)
			fit->sums[i][j] += weight * x[i] * x[j];
		fit->sums[i][3] += weight * x[i] * y;
	}
}

/*
 * By Gauss and Jordan; the matrix is positive definite where there are as many different points as unknowns.
 */
static void
solve(Fit *fit, double *c)
{
	for (int k = 0; k < fit->n; k++)
		for (int i = 0; i < fit->n; i++)
		{
			double		factor = fit->sums[i][k] / fit->sums[k][k];

			for (int j = k; i != k && j < 4; j++)
				fit->sums[i][j] -= factor * fit->sums[k][j];
		}
	for (int i = 0; i < fit->n; i++)
		c[i] = fit->sums[i][3] / fit->sums[i][i];
}

static void
fit_joins(const GhMeasurements *measured, double unit, Suggestion *suggestions)
{
	const char *what[] = {"a join without rows", "an inner row stored", "an outer row looked up"};
	Fit			fit = {.n = 3};
	double		c[3];
	double		worst = 0;

	for (int i = 0; i < measured->njoins; i++)
	{
		const GhJoinTimes *join = &measured->joins[i];

		add_point(&fit, (double[]) {1, join->inner_rows, join->outer_rows}, join->ms / unit - join->other_cost,
				  unit * unit / (join->ms * join->ms));
	}
	solve(&fit, c);
	for (int i = 0; i < measured->njoins; i++)
	{
		const GhJoinTimes *join = &measured->joins[i];
		double		cost = join->other_cost + c[0] + c[1] * join->inner_rows + c[2] * join->outer_rows;

		worst = Max(worst, fabs(cost * unit / join->ms - 1));
	}
	for (int i = 0; i < 3; i++)
	{
		suggestions[i].cost = c[i];
		suggestions[i].why = psprintf("%s, in one process by the CPU engine, beyond what its scans cost; "
									  "%d joins, fitted within %.0f %%",
									  what[i], measured->njoins, 100 * worst);
	}
}

static void
fit_scans(const GhMeasurements *measured, double unit, Suggestion *suggestions)
{
	Fit			fit = {.n = 2};
	double		c[2];
	double		pages = 0;
	double		pinned = 0;

	for (int i = 0; i < measured->nscans; i++)
	{
		const GhScanTimes *scan = &measured->scans[i];
		double		share = 1 - (1 - GH_PINNED_PAGE_SHARE) * scan->pinned / scan->pages;

		add_point(&fit, (double[]) {1, share * scan->pages}, scan->ms / unit,
				  unit * unit / (scan->ms * scan->ms));
		pages += scan->pages;
		pinned += scan->pinned;
	}
	solve(&fit, c);
	suggestions[START].cost = c[0];
	suggestions[START].why = psprintf("a sum by the GPU without pages; %d sums, in one process",
									  measured->nscans);
	suggestions[PAGE].cost = c[1];
	suggestions[PAGE].why = psprintf("a page that a process supplies, copied for the GPU; %.0f of %.0f pages "
									 "were read where they are, at %g of it",
									 pinned, pages, GH_PINNED_PAGE_SHARE);
}

/* ------------------------------------------------------------------- rows */

static void
put_suggestion(ReturnSetInfo *result, const Suggestion *suggestion, double unit)
{
	double		scale = pow(10, suggestion->digits);
	bool		measured = !isnan(suggestion->cost);
	const char *why = suggestion->why;
	Datum		values[5];
	bool		nulls[5] = {false, false, !measured, !measured, false};

	if (measured)
		why = psprintf("%s%s; a unit of cost takes %.4f us here", why,
					   suggestion->cost < 0 ? "; below 0, and so none" : "", 1000 * unit);
	values[0] = CStringGetTextDatum(suggestion->setting);
	values[1] = Float8GetDatum(suggestion->current);
	values[2] = Float8GetDatum(measured ? rint(Max(suggestion->cost, 0) * scale) / scale : 0);
	values[3] = Float8GetDatum(measured ? suggestion->cost * unit * 1000 : 0);
	values[4] = CStringGetTextDatum(why);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static void
set_current(Suggestion *suggestions)
{
	suggestions[SETUP].current = gh_setup_cost;
	suggestions[BUILD].current = gh_build_tuple_cost;
	suggestions[PROBE].current = gh_probe_tuple_cost;
	suggestions[START].current = gh_device_start_cost;
	suggestions[PAGE].current = gh_device_page_cost;
	suggestions[BUS].current = gh_device_bus_cost;
}

/* gpuhash_calibrate() */
Datum
gpuhash_calibrate(PG_FUNCTION_ARGS)
{
	Suggestion	suggestions[NSETTINGS];
	GhMeasurements measured = {0};
	double		unit = 0;

	memcpy(suggestions, unmeasured, sizeof(suggestions));
	set_current(suggestions);
	gh_calibrate_measure(get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid)), &measured);
	for (int i = 0; i < NSETTINGS; i++)
	{
		const char *reason = i < START || measured.njoins < LEAST_JOINS ? measured.no_joins : measured.no_scans;

		suggestions[i].cost = NAN;
		suggestions[i].why = psprintf("not measured: %s", reason);
	}
	/* enough for what is asked */
	if (measured.njoins >= LEAST_JOINS)
	{
		unit = unit_of_cost(&measured);
		fit_joins(&measured, unit, suggestions);
		if (measured.nscans >= 2)
			fit_scans(&measured, unit, suggestions);
	}
	if (!isnan(suggestions[PAGE].cost))
		suggestions[BUS].why = "not measured: it shows in large tables that several processes read; "
			"test/bench/calibrate.sql measures it";
	gh_rows_begin(fcinfo, "tffft");
	for (int i = 0; i < NSETTINGS; i++)
		put_suggestion((ReturnSetInfo *) fcinfo->resultinfo, &suggestions[i], unit);
	return (Datum) 0;
}
