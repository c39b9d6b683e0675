/*
 * measure_requests.c
 *		What the way through the service costs a request.
 */
#include "postgres.h"

#include <math.h>

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "gpuhash.h"
#include "service/placement.h"
#include "service/shared.h"

PG_FUNCTION_INFO_V1(gpuhash_measure_requests);

static uint64
counter_of(GhCounter counter)
{
	return pg_atomic_read_u64(&gh_service->device[0].counter[counter]);
}

static int
compare_u64(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

/*
 * gpuhash_measure_requests(requests int, keys int): finds of so many keys, one after
 * the other, in a table of 10^6 on the first GPU.  Microseconds as text: the median
 * and the 99th percentile of a request as its client sees it, and of it the means of
 * the time in the queue and in the engine.
 */
Datum
gpuhash_measure_requests(PG_FUNCTION_ARGS)
{
	int			requests = PG_GETARG_INT32(0);
	int			keys = PG_GETARG_INT32(1);
	const GhEngine *engine = gh_service_engine();
	GhTableOptions options;
	GhHost		host;
	GhError		error;
	GhTable    *table;
	void	   *buffer;
	uint64	   *times;
	uint64		queue;
	uint64		run;

	if (!superuser() || !gh_service_enabled() || requests < 1 || keys < 1 ||
		keys > GH_UNIT_BYTES / 16)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot measure %d requests of %d keys", requests, keys)));
	gh_options_init(&options, engine);
	options.capacity = 1000000;
	gh_host_init(&host, CurrentMemoryContext);
	host.ctx = NULL;
	if (gh_create_table(engine, &host, &options, &table, &error) != GH_OK)
		gh_report_error(&error, "measure the service");
	if (!gh_buffers_alloc(engine, 1, GH_UNIT_BYTES, &buffer))
		elog(ERROR, "no buffer is free");
	times = palloc(requests * sizeof(uint64));
	for (int i = 0; i < keys; i++)
		((uint64 *) buffer)[i] = (uint64) i;
	queue = counter_of(GH_COUNT_QUEUE_NS);
	run = counter_of(GH_COUNT_RUN_NS);
	for (int i = 0; i < requests; i++)
	{
		GhRequest	request = {0};
		uint64		start = gh_monotonic_ns();

		request.op = GH_FIND;
		request.count = (uint64) keys;
		request.keys = buffer;
		request.values_out = (uint64 *) buffer + keys;
		if (gh_run_request(table, &request) != GH_OK)
			gh_report_error(&request.error, "measure the service");
		times[i] = gh_monotonic_ns() - start;
	}
	queue = counter_of(GH_COUNT_QUEUE_NS) - queue;
	run = counter_of(GH_COUNT_RUN_NS) - run;
	qsort(times, requests, sizeof(uint64), compare_u64);
	engine->buffer_free(buffer);
	engine->table_destroy(table);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("median %.1f, p99 %.1f, queue %.1f, engine %.1f",
											  times[requests / 2] / 1e3,
											  times[requests - 1 - requests / 100] / 1e3,
											  queue / 1e3 / requests, run / 1e3 / requests)));
}
