/*
 * test_fault.c
 *		Allocations that fail, device memory that is refused and launches that fail,
 *		each one in turn.
 *
 * On the CPU engine the host's allocator fails.  An engine of a device may export
 *
 *	void gh_cuda_fault_arm(uint64_t allocation, uint64_t launch)
 *
 * after which the allocation-th device allocation from now answers "out of memory" and
 * the launch-th check of a launch a device failure; 0 is never.
 */
#include "conformance.h"

#include <dlfcn.h>

#define FAULT_ARM "gh_cuda_fault_arm"

/* A life takes fewer allocations and launches than this. */
#define RUNS_MAX 20000

void
scenario_make(Context *c, Scenario *scenario, uint64_t count)
{
	static const GhOp mixed[] = {GH_INSERT, GH_UPSERT, GH_FIND, GH_DELETE};
	uint64_t	i;

	scenario->count = count;
	scenario->keys = make_words(scenario->count);
	scenario->ops = make_memory(scenario->count);
	for (i = 0; i < scenario->count; i++)
	{
		scenario->keys[i] = i < SPECIALS ? special_keys[i] :
			mix(c->seed + (i % 3 == 0 ? i / 2 : i));
		scenario->ops[i] = (uint8_t) mixed[mix(i) % 4];
	}
}

void
scenario_drop(Scenario *scenario)
{
	free(scenario->keys);
	free(scenario->ops);
}

/* Flush and reserve, which may lack memory but not fail for it otherwise. */
static void
resize_by_call(Subject *s, uint64_t keys)
{
	GhError		error = {0};
	GhStatus	status;
	int			tries = 0;

	if (s->lost)
		return;
	do
		status = keys > 0 ? s->c->engine->table_reserve(s->table, keys, &error) :
			s->c->engine->table_flush(s->table, &error);
	while (subject_again(s, status, ++tries));
	CHECK(s->c, status == GH_OK || s->lost, "%s: %s: %s", keys > 0 ? "reserve" : "flush",
		  gh_status_name(status), error.message);
	/* flush does without memory */
	CHECK(s->c, keys > 0 || tries == 1 || s->lost, "flush failed for lack of memory");
	check_content(s);
}

void
scenario_play(Subject *s, const Scenario *scenario)
{
	uint64_t	n = scenario->count;
	GhOp		op;

	for (op = GH_INSERT; op <= GH_BUILD && !s->lost; op++)
	{
		if (!op_fits(s, op))
			continue;
		do_checked(s, op, scenario->keys, NULL, n);
		check_content(s);
		do_checked(s, GH_DELETE, scenario->keys, NULL, n - n / 8);
		check_content(s);
		if (op == GH_ADD || op == GH_INSERT)
		{
			resize_by_call(s, 0);
			do_checked(s, op, scenario->keys, NULL, n / 2);
			resize_by_call(s, n + n / 2);
		}
		if (!s->lost)
			subject_clear(s);
	}
	if (s->kind == KIND_MULTI)
	{
		do_checked(s, GH_ADD, scenario->keys, NULL, n);
		do_checked(s, GH_ADD, scenario->keys, NULL, n / 2);
		do_checked(s, GH_DELETE_ONE, scenario->keys, NULL, n);
	}
	else
		do_mixed(s, scenario->ops, scenario->keys, NULL, n);
	check_content(s);
	check_export(s, 100);
}

/* False: there was no table, for lack of memory. */
static bool
open_patient(Subject *s, Context *c, TableType type, uint32_t number)
{
	GhTableOptions options = options_of(c, type);
	GhStatus	status;

	options.subtables = GH_SUBTABLES_MIN + number % 7;
	s->patient = true;
	status = subject_try(s, c, &options);
	CHECK(c, status == GH_OK || status == GH_NO_MEMORY || status == GH_DEVICE_ERROR ||
		  (status == GH_LIMIT && s->state.refused), "create with a failure: %s",
		  gh_status_name(status));
	CHECK_U64(c, "memory left by a failed create", status == GH_OK ? 0 : s->state.allocated, 0);
	s->lost = status == GH_DEVICE_ERROR;
	return status == GH_OK;
}

/* --------------------------- the host's allocator and the device's budget */

/* The run-th allocation fails, or all from there on until they are asked for again; on
 * a device, the run-th taking of memory.  Tells whether there was one. */
static bool
survive_host(Context *c, TableType type, const Scenario *scenario, uint64_t run, bool after)
{
	Subject		s;
	bool		failed;

	memset(&s, 0, sizeof(s));
	host_init_locked(&s.state, &s.host);
	s.state.fail_at = c->on_host ? run : 0;
	s.state.refuse_at = c->on_host ? 0 : run;
	s.state.fail_after = s.state.refuse_after = after;
	if (!open_patient(&s, c, type, (uint32_t) run))
	{
		CHECK(c, s.state.failed || s.state.refused, "create failed for no reason");
		return true;
	}
	scenario_play(&s, scenario);
	failed = s.state.failed || s.state.refused;
	subject_close(&s);
	return failed;
}

static void
test_failed_allocations(Context *c)
{
	Scenario	scenario;
	TableType	type;
	uint32_t	t;
	int			after;

	scenario_make(c, &scenario, sized(c, 2000, 700));
	for (t = 0; type_at(c, t, &type); t++)
	{
		for (after = 0; after <= 1 && c->failures == 0; after++)
		{
			uint64_t	run = 1;

			/* the widths between are as those beside them */
			if (type.value_size == 16 || type.value_size == 1024)
				continue;
			while (survive_host(c, type, &scenario, run, after != 0) && run < RUNS_MAX &&
				   c->failures == 0)
				run++;
			CHECK(c, run > 8 && run < RUNS_MAX, "%" PRIu64 " allocations were seen to fail", run);
		}
	}
	scenario_drop(&scenario);
}

/* ---------------------------------------------------------- the device's */

FaultArm
find_fault_arm(Context *c)
{
	void	   *library = c->library != NULL ? dlopen(c->library, RTLD_NOW | RTLD_NOLOAD) : NULL;
	void	   *symbol = library != NULL ? dlsym(library, FAULT_ARM) : NULL;
	FaultArm	arm = NULL;

	if (symbol == NULL)
		c->skip = c->library == NULL ? "the engine has no device" :
			"the library was built without fault points (-DGH_FAULT_POINTS)";
	else
		memcpy(&arm, &symbol, sizeof(arm));
	return arm;
}

/* Number i of the types that are tried on a device, where a life takes its time. */
static bool
device_type_at(const Context *c, uint32_t i, TableType *type)
{
	static const TableType types[] = {
		{KIND_MAP, 8, 8}, {KIND_MULTI, 8, 8}, {KIND_SET, 4, 0}, {KIND_MAP, 4, 4},
		{KIND_MAP, 8, 100}, {KIND_MULTI, 4, 5}
	};
	uint32_t	count = c->reduced ? 2 : sizeof(types) / sizeof(types[0]);

	if (i < count)
		*type = types[i];
	return i < count;
}

/* From one run to the next: every one of the first, then ever fewer. */
static uint64_t
step_after(const Context *c, uint64_t run)
{
	return 1 + run / (c->reduced ? 3 : 50);
}

static void
test_refused_memory(Context *c)
{
	Scenario	scenario;
	TableType	type;
	uint32_t	t;
	int			after;

	if (c->on_host)
	{
		c->skip = "the engine takes no device memory";
		return;
	}
	scenario_make(c, &scenario, sized(c, 2000, 700));
	for (t = 0; device_type_at(c, t, &type); t++)
	{
		for (after = 0; after <= 1 && c->failures == 0; after++)
		{
			uint64_t	run = 1;

			while (survive_host(c, type, &scenario, run, after != 0) && run < RUNS_MAX &&
				   c->failures == 0)
				run += step_after(c, run);
			CHECK(c, run > 4 && run < RUNS_MAX, "%" PRIu64 " takings were seen to be refused", run);
		}
	}
	scenario_drop(&scenario);
}

/* Were fewer device allocations made since arming than were to be waited for?  Then
 * the next that is made fails, and a table cannot be made without one. */
static bool
arm_is_left(Context *c, uint64_t most)
{
	uint64_t	i;

	for (i = 0; i < most; i++)
	{
		Subject		s;

		memset(&s, 0, sizeof(s));
		host_init_locked(&s.state, &s.host);
		if (!open_patient(&s, c, type_of_kind(KIND_SET), 0))
			return true;
		subject_close(&s);
	}
	return false;
}

static void
test_device_allocations(Context *c)
{
	FaultArm	arm = find_fault_arm(c);
	Scenario	scenario;
	TableType	type;
	uint32_t	t;

	if (arm == NULL)
		return;
	scenario_make(c, &scenario, sized(c, 2000, 700));
	for (t = 0; device_type_at(c, t, &type) && c->failures == 0; t++)
	{
		uint64_t	run = 1;
		uint64_t	step = 1;
		bool		left = false;

		while (!left && run < RUNS_MAX && c->failures == 0)
		{
			Subject		s;

			memset(&s, 0, sizeof(s));
			host_init_locked(&s.state, &s.host);
			arm(run, 0);
			if (open_patient(&s, c, type, t))
			{
				scenario_play(&s, &scenario);
				CHECK(c, !s.lost, "a failed allocation became a failure of the device");
				subject_close(&s);
			}
			/* how many a life takes varies a little with those that fail */
			left = arm_is_left(c, step + 16);
			arm(0, 0);
			step = step_after(c, run);
			run += step;
		}
		CHECK(c, left && run > 4, "%" PRIu64 " allocations were tried", run);
	}
	scenario_drop(&scenario);
}

/* The device is lost to the table: every call says so, and another table is well. */
static void
check_lost(Subject *s, uint64_t *keys)
{
	Context    *c = s->c;
	GhRequest	find = {.op = GH_FIND, .count = 1, .keys = keys};
	GhRequest	drop = {.op = GH_DELETE, .count = 1, .keys = keys};

	CHECK_STATUS(c, "find after a failure of the device", do_request(c, s->table, &find),
				 GH_DEVICE_ERROR);
	CHECK_STATUS(c, "delete after a failure of the device", do_request(c, s->table, &drop),
				 GH_DEVICE_ERROR);
}

static void
test_device_launches(Context *c)
{
	FaultArm	arm = find_fault_arm(c);
	Scenario	scenario;
	TableType	type;
	uint32_t	t;

	if (arm == NULL)
		return;
	scenario_make(c, &scenario, sized(c, 2000, 700));
	for (t = 0; device_type_at(c, t, &type) && c->failures == 0; t++)
	{
		uint64_t	run = 1;
		bool		lost = true;

		while (lost && run < RUNS_MAX && c->failures == 0)
		{
			Subject		s;

			memset(&s, 0, sizeof(s));
			host_init_locked(&s.state, &s.host);
			arm(0, run);
			if (open_patient(&s, c, type, t))
			{
				scenario_play(&s, &scenario);
				arm(0, 0);
				if (s.lost)
					check_lost(&s, scenario.keys);
				lost = s.lost;
				subject_close(&s);
			}
			arm(0, 0);
			run += step_after(c, run);
		}
		CHECK(c, !lost && run > 4, "%" PRIu64 " launches were tried", run);
	}
	scenario_drop(&scenario);
}

const Test	fault_tests[] = {
	{"failed allocations", test_failed_allocations, true},
	{"refused device memory", test_refused_memory, false},
	{"failed device allocations", test_device_allocations, false},
	{"failed device launches", test_device_launches, false},
	{NULL, NULL, false}
};
