/*
 * cpu_pipeline_probe.c
 *		Probes of a pipeline on the CPU: the keys of a batch's rows are looked up together, and then their matches are
 *		gone through in rounds, one match of each row a round.
 *
 * In a round the columns of each row's match are filled in and the conditions on the pair are run over these rows.
 * Where one match is enough there are no more than few rounds; where each match is a row that goes on, those of a round
 * are copied to the next level's batch, which is done whenever it is full.  With one row a key, and without conditions,
 * it takes no rounds.
 *
 * Where the rows of some keys are in another table, by the table's overlay (GhTableOverlay) or the probe's own word
 * (GhProbe.changed), the rows are two groups by their keys, which are done one after the other, each in the table where
 * its keys are looked up.
 */
#include "engine/pipeline/cpu_pipeline.h"
#include "engine/pipeline/key_filter.h"
#include "engine/table/cpu_internal.h"

/* A probe that is under way. */
typedef struct Probe
{
	GhCpuPipeline *pipeline;
	const GhProbe *probe;
	GhTable    *table;			/* where the keys are looked up; NULL: none is anywhere */
	const GhCpuRows *rows;		/* NULL: of a table that no pipeline made */
	GhCpuSieve *sieve;			/* NULL: none can be of use */
	const GhCpuOverlay *overlay;	/* of that table, which has other columns than the probe; or NULL */
	GhTable    *instead;		/* where keys are looked up that are not the table's; NULL: none of them is anywhere */
	bool		by_number;		/* what is found are numbers of rows; else values */
	bool		multiplies;
	bool		is_single;		/* a row has one match that matters, if its key is there */
	uint32_t	level;
	uint32_t	step;
	uint32_t	begin;			/* conditions on the pair */
	uint32_t	end;
	GhVectorBatch *batch;
	GhCpuProbing *at;
} Probe;

/* ------------------------------------------------------------------ look-up */

bool
gh_cpu_row_key(const GhKeyPart *parts, uint32_t nparts, const GhVectorBatch *batch, uint32_t row, uint64_t *key)
{
	bool		null = false;

	*key = 0;
	for (uint32_t k = 0; k < nparts; k++)
	{
		const GhVector *vector = &batch->vectors[parts[k].vector];

		*key = gh_key_part_add(*key, &parts[k], vector->low[row]);
		null |= vector->null[row] != 0;
	}
	return !null;
}

/* Gathers the live rows and their keys. */
static void
gather_keys(Probe *p)
{
	const GhProbe *probe = p->probe;
	GhCpuPicks *picks = &p->at->picks;

	picks->n = 0;
	for (uint32_t i = 0; i < p->batch->nrows; i++)
	{
		picks->rows[picks->n] = (uint16_t) i;
		picks->n += p->batch->state[i] == GH_ROW_LIVE;
	}
	for (uint32_t k = 0; k < probe->nparts; k++)
	{
		const uint64_t *low = p->batch->vectors[probe->parts[k].vector].low;

		for (uint32_t i = 0; i < picks->n; i++)
			p->at->keys[i] = gh_key_part_add(k == 0 ? 0 : p->at->keys[i], &probe->parts[k], low[picks->rows[i]]);
	}
}

static void
forget_null_keys(Probe *p)
{
	for (uint32_t k = 0; k < p->probe->nparts; k++)
	{
		const uint8_t *null = p->batch->vectors[p->probe->parts[k].vector].null;

		for (uint32_t i = 0; i < p->at->picks.n; i++)
			p->at->there[i] &= (uint8_t) !null[p->at->picks.rows[i]];
	}
}

/* Directly, not by way of the handle's queue: nothing stops it.  values: NULL, where they do not matter.  How many are there. */
static uint64_t
find_keys(Probe *p, GhTable *table, uint64_t *values)
{
	GhCpuTable *handle = (GhCpuTable *) table;
	GhRequest	request = {
		.op = GH_FIND,
		.count = p->at->picks.n,
		.keys = p->at->keys,
		.values_out = values,
		.flags_out = p->at->there,
		.table = table,
	};

	gh_cpu_lock(handle, GH_LOCK_SHARED);
	while (request.outcome.done < request.count)
		(void) gh_cpu_find_slice(handle, &request);
	gh_cpu_unlock(handle);
	return request.outcome.matched;
}

static void
look_up(Probe *p)
{
	uint64_t	found;

	memset(p->at->there, 0, p->at->picks.n);
	if (p->table == NULL)
		return;
	found = find_keys(p, p->table, p->probe->nfills > 0 || !p->is_single ? p->at->values : NULL);
	if (p->sieve != NULL)
		gh_cpu_sieve_found(p->sieve, p->table, p->at->picks.n, found);
	forget_null_keys(p);
}

/* ------------------------------------------------------------------- rounds */

/* The rows that have a match are open, with the first one; numbers count from 0 from here on. */
static void
open_rows(Probe *p)
{
	GhCpuProbing *at = p->at;

	at->open.n = 0;
	memset(at->matched, 0, p->batch->nrows);
	for (uint32_t i = 0; i < at->picks.n; i++)
		if (at->there[i])
		{
			at->values[at->open.n] = p->by_number ? at->values[i] - 1 : at->values[i];
			at->open.rows[at->open.n++] = at->picks.rows[i];
		}
}

static void
fetch_rows(const Probe *p)
{
	for (uint32_t i = 0; i < p->at->open.n; i++)
		__builtin_prefetch(gh_cpu_row(p->rows, p->at->values[i]));
}

/* The row of level 0 that a row comes from goes back, and nothing of it is wanted any more. */
static bool
is_over(const Probe *p, const GhCpuLevel *level, uint32_t number, uint32_t row)
{
	uint32_t	origin = number == 0 ? row : level->origin[row];

	return !p->pipeline->marks && p->pipeline->levels[0]->batch.state[origin] == GH_ROW_BACK;
}

static void
hand_back(Probe *p, uint32_t row)
{
	p->at->matched[row] = GH_CPU_GOES_BACK;
	gh_cpu_hand_back(p->pipeline, p->level, row, p->step);
}

/* A row whose match says so is handed back, and open no longer; nor is one that was handed back behind this step. */
static void
drop_those_that_go_back(Probe *p)
{
	GhCpuProbing *at = p->at;
	const GhCpuLevel *level = p->pipeline->levels[p->level];
	uint32_t	n = 0;

	for (uint32_t i = 0; i < at->open.n; i++)
	{
		uint32_t	row = at->open.rows[i];

		if (gh_cpu_row_hands_back(p->rows, at->values[i]))
			hand_back(p, row);
		if (at->matched[row] == GH_CPU_GOES_BACK || is_over(p, level, p->level, row))
			continue;
		at->values[n] = at->values[i];
		at->open.rows[n++] = (uint16_t) row;
	}
	at->open.n = n;
}

/* A column that is a part of the key: what the row itself has there. */
static void
fill_of_key(Probe *p, uint32_t part, const GhVector *vector)
{
	const uint64_t *low = p->batch->vectors[p->probe->parts[part].vector].low;
	const GhCpuPicks *open = &p->at->open;

	for (uint32_t i = 0; i < open->n; i++)
	{
		vector->low[open->rows[i]] = low[open->rows[i]];
		vector->null[open->rows[i]] = 0;
	}
}

static void
fill_columns(Probe *p)
{
	for (uint32_t f = 0; f < p->probe->nfills; f++)
	{
		const GhProbeFill *fill = &p->probe->fills[f];
		const GhVector *vector = &p->batch->vectors[fill->column];
		uint32_t	kept = p->overlay != NULL ? p->overlay->from[fill->kept] : fill->kept;

		p->batch->bits[fill->column] = 0;	/* a request may have brought it, packed */
		if (kept >= GH_OVERLAY_KEY && p->overlay != NULL)
			fill_of_key(p, kept - GH_OVERLAY_KEY, vector);
		else if (p->by_number)
			gh_cpu_rows_load(p->rows, kept, p->at->values, vector, &p->at->open);
		else
			gh_cpu_carried_load(p->rows, kept, p->at->values, vector, &p->at->open);
	}
}

/* The instructions over the part of the batch in which the open rows are: a round may be of one row alone. */
static void
run_over_open(Probe *p)
{
	const GhCpuPicks *open = &p->at->open;
	uint32_t	first = open->rows[0] / GH_LOOP_ROWS * GH_LOOP_ROWS;
	uint32_t	end = (open->rows[open->n - 1] / GH_LOOP_ROWS + 1) * GH_LOOP_ROWS;
	GhVector	vectors[GH_PROGRAM_VECTORS_MAX];
	GhVectorBatch part = *p->batch;

	part.nrows = (end < part.nrows ? end : part.nrows) - first;
	part.state += first;
	part.vectors = vectors;
	for (uint32_t v = 0; v < part.nvectors; v++)
	{
		const GhVector *whole = &p->batch->vectors[v];

		vectors[v] = (GhVector) {whole->low + first, whole->high == NULL ? NULL : whole->high + first,
			whole->null + first};
	}
	(void) gh_program_run_part(p->pipeline->plan.options.program, &part, p->begin, p->end);
}

/* While conditions on the pair are run no row of the batch counts, but in each round those that are open. */
static void
drop_all(const Probe *p)
{
	uint8_t    *state = p->batch->state;

	for (uint32_t i = 0; p->begin < p->end && i < p->at->picks.n; i++)
		state[p->at->picks.rows[i]] = GH_ROW_DROPPED;
}

/* Which of the open rows pass the conditions on the pair. */
static void
run_conditions(Probe *p)
{
	GhCpuProbing *at = p->at;
	uint8_t    *state = p->batch->state;

	at->passed.n = 0;
	if (p->begin == p->end || at->open.n == 0)
	{
		at->passed.n = at->open.n;
		memcpy(at->passed.rows, at->open.rows, at->open.n * sizeof(*at->open.rows));
		return;
	}
	for (uint32_t i = 0; i < at->open.n; i++)
		state[at->open.rows[i]] = GH_ROW_LIVE;
	run_over_open(p);
	for (uint32_t i = 0; i < at->open.n; i++)
	{
		uint32_t	row = at->open.rows[i];

		if (state[row] == GH_ROW_LIVE)
		{
			state[row] = GH_ROW_DROPPED;
			at->passed.rows[at->passed.n++] = (uint16_t) row;
		}
		else if (state[row] == GH_ROW_BACK)
			hand_back(p, row);
	}
}

/* Goes on to the next match of the rows that are still open. */
static void
next_matches(Probe *p)
{
	GhCpuProbing *at = p->at;
	uint32_t	n = 0;

	if (!p->by_number || !p->rows->shape.several)
	{
		at->open.n = 0;
		return;
	}
	for (uint32_t i = 0; i < at->open.n; i++)
	{
		uint32_t	row = at->open.rows[i];
		GhCpuRow	head;

		memcpy(&head, gh_cpu_row(p->rows, at->values[i]), sizeof(head));
		if (head.next == 0 || at->matched[row] == GH_CPU_GOES_BACK || (!p->multiplies && at->matched[row]))
			continue;
		at->values[n] = head.next - 1;
		at->open.rows[n++] = (uint16_t) row;
	}
	at->open.n = n;
}

/* ----------------------------------------------------------- without rounds */

static bool
is_single(const Probe *p)
{
	bool		asks = p->probe->kind == GH_PROBE_SEMI || p->probe->kind == GH_PROBE_ANTI;

	return !p->multiplies && p->begin == p->end && p->probe->marks == NULL &&
		(p->rows == NULL || (!p->rows->any_back && (asks || !p->rows->shape.several)));
}

static void
fill_single(Probe *p)
{
	GhCpuProbing *at = p->at;
	uint32_t	n = 0;

	for (uint32_t i = 0; i < at->picks.n; i++)
	{
		at->values[n] = at->values[i] - (p->by_number ? 1 : 0);
		at->open.rows[n] = at->picks.rows[i];
		n += at->there[i];
	}
	at->open.n = n;
	if (p->by_number)
		fetch_rows(p);
	fill_columns(p);
	for (uint32_t f = 0; p->probe->kind == GH_PROBE_LEFT && f < p->probe->nfills; f++)
	{
		uint8_t    *null = p->batch->vectors[p->probe->fills[f].column].null;

		for (uint32_t i = 0; i < at->picks.n; i++)
			if (!at->there[i])
				null[at->picks.rows[i]] = 1;
	}
}

static void
probe_single(Probe *p)
{
	GhCpuProbing *at = p->at;
	uint8_t		with = p->probe->kind == GH_PROBE_ANTI ? GH_ROW_DROPPED : GH_ROW_LIVE;
	uint8_t		without = p->probe->kind == GH_PROBE_LEFT || p->probe->kind == GH_PROBE_ANTI ? GH_ROW_LIVE :
		GH_ROW_DROPPED;

	if (p->probe->nfills > 0)
		fill_single(p);
	for (uint32_t i = 0; i < at->picks.n; i++)
		p->batch->state[at->picks.rows[i]] = at->there[i] ? with : without;
}

/* ------------------------------------------------------------ the next level */

static void
copy_vector(const GhVector *to, const GhVector *from, bool high, uint32_t at, const uint16_t *rows, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
	{
		to->low[at + i] = from->low[rows[i]];
		to->null[at + i] = from->null[rows[i]];
	}
	for (uint32_t i = 0; high && i < n; i++)
		to->high[at + i] = from->high[rows[i]];
}

static void
run_next_level(Probe *p)
{
	GhCpuLevel *next = p->pipeline->levels[p->level + 1];

	memset(next->batch.state, GH_ROW_LIVE, next->batch.nrows);
	(void) gh_cpu_pad(p->pipeline, &next->batch);
	for (uint32_t i = 0; i < next->batch.nrows; i++)
		if (is_over(p, next, p->level + 1, i))
			next->batch.state[i] = GH_ROW_DROPPED;
	if (next->batch.nrows > 0 && p->pipeline->stage != GH_CPU_STAGE_IS_FULL && !p->pipeline->stopped)
		(void) gh_cpu_run_level(p->pipeline, p->level + 1, p->step + 1);
	next->batch.nrows = 0;
}

/* Copies rows to the next level, with all that is read from there on; it is done when it is full. */
static void
go_on(Probe *p, const GhCpuPicks *picks)
{
	const GhPipelinePlan *plan = &p->pipeline->plan;
	const GhCpuLevel *level = p->pipeline->levels[p->level];
	GhCpuLevel *next = p->pipeline->levels[p->level + 1];

	gh_cpu_note_came(p->pipeline, p->level, p->step, picks);
	for (uint32_t done = 0; done < picks->n;)
	{
		const uint16_t *rows = picks->rows + done;
		uint32_t	n = picks->n - done;

		if (n > GH_VECTOR_ROWS - next->batch.nrows)
			n = GH_VECTOR_ROWS - next->batch.nrows;
		for (uint32_t v = 0; v < gh_program_vectors(plan->options.program); v++)
			if ((plan->needed[p->step + 1][v / 64] >> v % 64 & 1) != 0)
			{
				copy_vector(&next->batch.vectors[v], &p->batch->vectors[v], plan->wide[v],
							next->batch.nrows, rows, n);
				gh_batch_copy_bits(&next->batch, p->batch, v);
			}
		for (uint32_t i = 0; i < n; i++)
			next->origin[next->batch.nrows + i] = p->level == 0 ? rows[i] : level->origin[rows[i]];
		next->batch.nrows += n;
		done += n;
		if (next->batch.nrows == GH_VECTOR_ROWS)
			run_next_level(p);
	}
}

/* ------------------------------------------------------------------- the end */

static void
null_columns(Probe *p, const GhCpuPicks *picks)
{
	for (uint32_t f = 0; f < p->probe->nfills; f++)
	{
		uint8_t    *null = p->batch->vectors[p->probe->fills[f].column].null;

		for (uint32_t i = 0; i < picks->n; i++)
			null[picks->rows[i]] = 1;
	}
}

/* Rows without a match, that did not go back. */
static void
find_unmatched(Probe *p, GhCpuPicks *unmatched)
{
	const GhCpuProbing *at = p->at;

	unmatched->n = 0;
	for (uint32_t i = 0; i < at->picks.n; i++)
	{
		uint32_t	row = at->picks.rows[i];

		unmatched->rows[unmatched->n] = (uint16_t) row;
		unmatched->n += !at->matched[row] && !is_over(p, p->pipeline->levels[p->level], p->level, row);
	}
}

/* Which rows of this level are live behind the probe. */
static void
set_states(Probe *p)
{
	GhCpuProbing *at = p->at;
	bool		with = p->probe->kind != GH_PROBE_ANTI;
	bool		without = p->probe->kind == GH_PROBE_LEFT || p->probe->kind == GH_PROBE_ANTI;

	for (uint32_t i = 0; i < at->picks.n; i++)
	{
		uint32_t	row = at->picks.rows[i];

		if (at->matched[row] == GH_CPU_GOES_BACK || is_over(p, p->pipeline->levels[p->level], p->level, row))
			p->batch->state[row] = p->level == 0 ? GH_ROW_BACK : GH_ROW_DROPPED;
		else
			p->batch->state[row] = (at->matched[row] ? with : without) ? GH_ROW_LIVE : GH_ROW_DROPPED;
	}
}

static void
end_probe(Probe *p)
{
	GhCpuPicks	unmatched;

	if (p->probe->kind == GH_PROBE_LEFT)
	{
		find_unmatched(p, &unmatched);
		null_columns(p, &unmatched);
		if (p->multiplies)
			go_on(p, &unmatched);
	}
	if (p->multiplies)
		run_next_level(p);
	else
		set_states(p);
}

static void
note_passed(Probe *p)
{
	GhCpuProbing *at = p->at;

	for (uint32_t i = 0; i < at->passed.n; i++)
		at->matched[at->passed.rows[i]] |= 1;
	/* both lists are in the order of rows */
	for (uint32_t i = 0, o = 0; p->probe->marks != NULL && i < at->passed.n; i++)
	{
		while (at->open.rows[o] != at->passed.rows[i])
			o++;
		gh_cpu_mark(p->probe->marks, at->values[o]);
	}
}

/* The rows that are picked, with their keys. */
static void
probe_picks(Probe *p)
{
	GhCpuPipeline *pipeline = p->pipeline;

	p->is_single = is_single(p);
	look_up(p);
	if (p->is_single)
	{
		probe_single(p);
		return;
	}
	open_rows(p);
	drop_all(p);
	/* a row may have millions of matches */
	while (p->at->open.n > 0 && pipeline->stage != GH_CPU_STAGE_IS_FULL && !gh_cpu_sees_stop(pipeline))
	{
		if (p->by_number)
		{
			fetch_rows(p);
			drop_those_that_go_back(p);
		}
		fill_columns(p);
		run_conditions(p);
		note_passed(p);
		if (p->multiplies)
			go_on(p, &p->at->passed);
		next_matches(p);
	}
	end_probe(p);
}

static void
look_into(Probe *p, GhTable *table)
{
	p->table = table;
	p->rows = table != NULL ? ((const GhCpuTable *) table)->rows : NULL;
	p->by_number = p->rows != NULL && !p->rows->carried;
}

/* Rows of a batch that are done apart from the others: which, their keys, and what they are otherwise. */
typedef struct Apart
{
	GhCpuPicks	picks;
	uint64_t	keys[GH_VECTOR_ROWS];
	uint8_t		state[GH_VECTOR_ROWS];
} Apart;

/* Moves the picks there whose keys the filter may have, or are changed. */
static void
set_apart(Probe *p, Apart *apart)
{
	GhTable    *changed = p->probe->changed;
	GhCpuProbing *at = p->at;
	uint32_t	all = at->picks.n;
	uint16_t	where[GH_VECTOR_ROWS];
	uint32_t	n = 0;
	uint32_t	to;

	if (changed != NULL)
		(void) find_keys(p, changed, NULL);
	for (uint32_t i = 0; i < all; i++)
	{
		where[n] = (uint16_t) i;
		n += changed != NULL ? at->there[i] : gh_key_filter_may_have(p->overlay->filter, at->keys[i]);
	}
	apart->picks.n = n;
	to = n == 0 ? all : where[0];
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	from = where[i] + 1;
		uint32_t	count = (i + 1 < n ? where[i + 1] : all) - from;

		apart->keys[i] = at->keys[where[i]];
		apart->picks.rows[i] = at->picks.rows[where[i]];
		/* what is between them moves up */
		memmove(at->keys + to, at->keys + from, count * sizeof(*at->keys));
		memmove(at->picks.rows + to, at->picks.rows + from, count * sizeof(*at->picks.rows));
		to += count;
	}
	at->picks.n = to;
}

/* While the others are done, these rows are none. */
static void
put_away(const Probe *p, const GhCpuPicks *picks, uint8_t *state)
{
	for (uint32_t i = 0; i < picks->n; i++)
	{
		state[i] = p->batch->state[picks->rows[i]];
		p->batch->state[picks->rows[i]] = GH_ROW_DROPPED;
	}
}

/* And back, unless the row of level 0 that they come from was handed back meanwhile. */
static void
take_out(const Probe *p, const GhCpuPicks *picks, const uint8_t *state)
{
	for (uint32_t i = 0; i < picks->n; i++)
	{
		uint32_t	row = picks->rows[i];

		p->batch->state[row] = state[i];
		if (p->level > 0 && is_over(p, p->pipeline->levels[p->level], p->level, row))
			p->batch->state[row] = GH_ROW_DROPPED;
	}
}

/* The rows that were set apart, in their table, which has the probe's own columns. */
static void
probe_apart(Probe *p, const Apart *apart)
{
	p->at->picks = apart->picks;
	memcpy(p->at->keys, apart->keys, apart->picks.n * sizeof(*apart->keys));
	look_into(p, p->instead);
	p->overlay = NULL;
	probe_picks(p);
}

/* Where rounds, or the next level, look at other rows of the batch than those that are picked. */
static void
probe_in_turns(Probe *p, Apart *apart)
{
	uint8_t		done_state[GH_VECTOR_ROWS];
	GhCpuPicks	done;

	put_away(p, &apart->picks, apart->state);
	done = p->at->picks;
	probe_picks(p);
	put_away(p, &done, done_state);
	take_out(p, &apart->picks, apart->state);
	probe_apart(p, apart);
	take_out(p, &done, done_state);
}

/* Rows in the one table and in the other. */
static void
probe_both(Probe *p)
{
	GhTable    *table = p->table;
	bool		without_rounds = is_single(p);
	Apart		apart;

	look_into(p, p->instead);
	without_rounds &= is_single(p);
	look_into(p, table);
	set_apart(p, &apart);
	if (apart.picks.n == 0)
		probe_picks(p);
	else if (without_rounds)
	{
		probe_picks(p);
		probe_apart(p, &apart);
	}
	else
		probe_in_turns(p, &apart);
}

bool
gh_cpu_probe(GhCpuPipeline *pipeline, uint32_t level, uint32_t step)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	uint32_t	number = options->steps[step].probe - 1;
	const GhProbe *probe = &options->probes[number];
	Probe		p = {
		.pipeline = pipeline,
		.probe = probe,
		.overlay = ((const GhCpuTable *) probe->table)->overlay,
		.multiplies = gh_probe_multiplies(&pipeline->plan, number),
		.level = level,
		.step = step,
		.begin = gh_step_begin(options, step),
		.end = options->steps[step].end,
		.batch = &pipeline->levels[level]->batch,
		.at = &pipeline->levels[level]->probing,
	};

	p.instead = p.overlay != NULL ? p.overlay->instead : probe->instead;
	look_into(&p, probe->table);
	gather_keys(&p);
	if (probe->changed != NULL || (p.overlay != NULL && p.overlay->filter != NULL))
		probe_both(&p);
	else
	{
		if (p.rows != NULL && (probe->kind == GH_PROBE_INNER || probe->kind == GH_PROBE_SEMI))
			p.sieve = &pipeline->sieves[number];
		if (p.sieve != NULL)
			gh_cpu_sieve_rows(p.sieve, p.table, p.batch->state, &p.at->picks, p.at->keys);
		probe_picks(&p);
	}
	return !p.multiplies;
}
