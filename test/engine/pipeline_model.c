/*
 * pipeline_model.c
 *		What pipelines must make of rows: row by row, step by step, every row of a table looked at for every
 *		row that probes it, instructions by their model.
 */
#include "pipeline_model.h"

#include <math.h>

/* --------------------------------------------------------------------- rows */

void
rows_init(RowList *rows, uint32_t width)
{
	memset(rows, 0, sizeof(*rows));
	rows->width = width;
}

void
rows_drop(RowList *rows)
{
	free(rows->values);
	free(rows->failed);
	rows_init(rows, rows->width);
}

/* values NULL: the row is the caller's to fill. */
GhValue *
rows_add(RowList *rows, const GhValue *values, bool failed)
{
	GhValue    *row;

	if (rows->count == rows->room)
	{
		rows->room = 2 * rows->room + 16;
		rows->values = realloc(rows->values, (rows->room * rows->width + 1) * sizeof(GhValue));
		rows->failed = realloc(rows->failed, rows->room);
		if (rows->values == NULL || rows->failed == NULL)
			exit(2);
	}
	row = rows_at(rows, rows->count);
	rows->failed[rows->count++] = failed;
	if (values != NULL)
		memcpy(row, values, rows->width * sizeof(GhValue));
	else
		memset(row, 0, rows->width * sizeof(GhValue));
	return row;
}

void
model_blank(const Stage *stage, GhValue *values)
{
	const GhProgram *program = stage->program;

	for (uint32_t v = 0; v < gh_program_vectors(program); v++)
		values[v] = (GhValue) {0, 0, 1};
	for (uint32_t i = 0; i < program->nconstants; i++)
	{
		const GhConstant *constant = &gh_program_constants(program)[i];
		GhValue		value = {constant->low, constant->high, constant->null};

		if (constant->value_class == GH_CLASS_TEXT)
			value.low += (uintptr_t) program;
		values[program->ncolumns + i] = value;
	}
}

/* ------------------------------------------------------------- instructions */

/* What became of a row in some instructions. */
typedef struct Ran
{
	bool		dropped;
	bool		failed;			/* one of them goes back; its result is as if PostgreSQL had one */
	bool		may;			/* or may */
} Ran;

static Ran
run_instructions(const Stage *stage, uint32_t first, uint32_t end, GhValue *values)
{
	const GhProgram *program = stage->program;
	Ran			ran = {false, false, false};

	for (uint32_t i = first; i < end && !ran.dropped; i++)
	{
		const GhInstruction *in = &gh_program_instructions(program)[i];
		GhValue		args[3] = {values[in->args[0]], values[in->args[1]], values[in->args[2]]};
		Outcome		outcome;

		if (in->op == GH_OP_FILTER)
		{
			ran.dropped = args[0].null || args[0].low == 0;
			continue;
		}
		outcome = model_instruction(program, in, args, &values[in->result]);
		if (outcome == OUTCOME_BACK)
			values[in->result] = (GhValue) {77, 0, 0};
		/* behind what fails nobody knows what the engine sees */
		ran.may |= outcome == OUTCOME_EITHER && !ran.failed;
		ran.failed |= outcome == OUTCOME_BACK;
	}
	return ran;
}

static uint32_t
step_begin(const Stage *stage, uint32_t step)
{
	return step == 0 ? 0 : stage->steps[step - 1].end;
}

/* -------------------------------------------------------------------- steps */

static void
note(Fate *fate, bool failed_before, uint32_t step, bool must, bool may)
{
	if (failed_before)
		return;
	fate->must |= (uint64_t) must << step;
	fate->may |= (uint64_t) may << step;
}

static void
do_run(const Stage *stage, uint32_t step, const GhValue *values, bool failed, Fate *fate, RowList *out)
{
	GhValue		now[GH_PROGRAM_VECTORS_MAX];
	Ran			ran;

	memcpy(now, values, out->width * sizeof(GhValue));
	ran = run_instructions(stage, step_begin(stage, step), stage->steps[step].end, now);
	note(fate, failed, step, ran.failed, ran.may);
	if (!ran.dropped)
		(void) rows_add(out, now, failed || ran.failed);
}

bool
model_key(const GhKeyPart *parts, uint32_t nparts, const GhValue *values, uint64_t *key)
{
	*key = 0;
	for (uint32_t k = 0; k < nparts; k++)
	{
		GhValue		value = values[parts[k].vector];

		if (value.null)
			return false;
		if (parts[k].bits == 64)
			*key = value.low;
		else
			*key = *key * (UINT64_C(1) << parts[k].bits) + value.low % (UINT64_C(1) << parts[k].bits);
	}
	return true;
}

/* What a row has found in a table so far. */
typedef struct Found
{
	uint64_t	matches;
	uint64_t	certain;		/* of them: no reason to hand the row back */
	bool		must;			/* if it is asked for all matches */
	bool		may;
} Found;

/* A row of the table that has the key. */
static void
try_pair(Stage *stage, uint32_t step, uint64_t row, const GhValue *values, bool failed, Fate *fate,
		 Found *found, RowList *out)
{
	uint32_t	p = stage->steps[step].probe - 1;
	const GhProbe *probe = &stage->probes[p];
	const ModelTable *table = stage->probed[p];
	bool		goes_on = probe->kind <= GH_PROBE_LEFT;
	GhValue		now[GH_PROGRAM_VECTORS_MAX];
	Ran			ran;

	memcpy(now, values, out->width * sizeof(GhValue));
	for (uint32_t f = 0; f < probe->nfills; f++)
		now[probe->fills[f].column] = rows_at(&table->rows, row)[probe->fills[f].kept];
	ran = run_instructions(stage, step_begin(stage, step), stage->steps[step].end, now);
	found->may |= ran.may || ran.failed || table->back[row];
	found->must |= ran.failed || (table->back[row] && !ran.dropped);
	if (ran.dropped)
		return;
	found->matches++;
	found->certain += !ran.failed && !ran.may && !table->back[row];
	if (goes_on)
		(void) rows_add(out, now, failed || ran.failed || table->back[row]);
	/* of a row that goes back, too: an engine that reads its columns late may drop it before that */
	if (goes_on && fate->marking && stage->marking[p])
		stage->matched[p][row] = true;
}

static void
do_probe(Stage *stage, uint32_t step, const GhValue *values, bool failed, Fate *fate, RowList *out)
{
	uint32_t	p = stage->steps[step].probe - 1;
	const GhProbe *probe = &stage->probes[p];
	const ModelTable *table = stage->probed[p];
	Found		found = {0, 0, false, false};
	uint64_t	candidates = 0;
	uint64_t	key;
	bool		has_key = model_key(probe->parts, probe->nparts, values, &key);

	for (uint64_t row = 0; has_key && row < table->rows.count; row++)
		if (table->has_key[row] && table->keys[row] == key)
		{
			candidates++;
			try_pair(stage, step, row, values, failed, fate, &found, out);
		}
	stage->looks += has_key ? table->rows.count : 0;
	fate->pairs += candidates;
	if (probe->kind > GH_PROBE_LEFT && found.certain > 0)
		found.must = false;		/* it may have been looked at first */
	note(fate, failed, step, found.must, found.may);
	failed |= found.must;
	if (probe->kind == GH_PROBE_INNER || (found.matches > 0) != (probe->kind == GH_PROBE_SEMI))
		return;
	if (probe->kind == GH_PROBE_LEFT)
	{
		GhValue		now[GH_PROGRAM_VECTORS_MAX];

		memcpy(now, values, out->width * sizeof(GhValue));
		for (uint32_t f = 0; f < probe->nfills; f++)
			now[probe->fills[f].column] = (GhValue) {0, 0, 1};
		(void) rows_add(out, now, failed);
	}
	else
		(void) rows_add(out, values, failed);
}

void
model_advance(Context *c, Stage *stage, const RowList *in, uint32_t from, uint32_t to, Fate *fate,
			  RowList *out)
{
	RowList		now;

	rows_init(&now, in->width);
	for (uint64_t i = 0; i < in->count; i++)
		(void) rows_add(&now, rows_at(in, i), in->failed[i]);
	for (uint32_t step = from; step < to && !stage->too_many; step++)
	{
		RowList		next;

		rows_init(&next, in->width);
		for (uint64_t i = 0; i < now.count && !stage->too_many; i++)
		{
			(stage->steps[step].probe == 0 ? (void) do_run(stage, step, rows_at(&now, i), now.failed[i], fate,
														   &next) :
			 do_probe(stage, step, rows_at(&now, i), now.failed[i], fate, &next));
			stage->too_many = stage->most > 0 && (next.count > stage->most ||
												  stage->looks > 100 * stage->most);
		}
		rows_drop(&now);
		now = next;
		fate->passed[step] += now.count;
		/* the CPU engine does not hand such a row back */
		if (fate->pairs > GH_ROW_MATCHES_MAX && !c->on_host)
			note(fate, false, step, false, true);
	}
	for (uint64_t i = 0; i < now.count; i++)
		(void) rows_add(out, rows_at(&now, i), now.failed[i]);
	rows_drop(&now);
}

/* --------------------------------------------------------------------- sink */

static bool
aggregate_takes(const GhAggregate *aggregate, const GhValue *values)
{
	if (aggregate->filter != GH_AGGREGATE_NO_FILTER &&
		(values[aggregate->filter].null || values[aggregate->filter].low == 0))
		return false;
	return aggregate->kind == GH_AGGREGATE_COUNT_ROWS || !values[aggregate->argument].null;
}

/* Is no value too large for the sums? */
static bool
sums_fit(const Stage *stage, const GhValue *values)
{
	const GhGroupsSink *sink = &stage->options.sink.groups;

	for (uint32_t a = 0; a < gh_sink_sets(sink) * sink->naggregates; a++)
	{
		const GhAggregate *aggregate = &stage->aggregates[a];
		GhValue		value = values[aggregate->argument];

		if (gh_aggregate_is_sum(aggregate) && aggregate_takes(aggregate, values) &&
			!gh_aggregate_fits(aggregate, value.low, value.high))
			return false;
	}
	return true;
}

void
model_sink(Stage *stage, RowList *rows, Fate *fate)
{
	const GhTableSink *table = &stage->options.sink.table;
	uint32_t	kind = stage->options.sink.kind;
	uint64_t	n = 0;
	uint64_t	key;

	for (uint64_t i = 0; i < rows->count; i++)
	{
		GhValue    *values = rows_at(rows, i);

		if (kind == GH_SINK_GROUPS && !sums_fit(stage, values))
			note(fate, rows->failed[i], stage->options.nsteps, true, true);
		if (kind == GH_SINK_TABLE && table->numbered == 0 && !model_key(table->parts, table->nparts, values,
																		&key))
			continue;
		memmove(rows_at(rows, n), values, rows->width * sizeof(GhValue));
		rows->failed[n++] = rows->failed[i];
	}
	rows->count = n;
}

void
model_unmatched(Context *c, Stage *stage, uint32_t step, uint64_t row, GhValue *values)
{
	uint32_t	p = stage->steps[step].probe - 1;

	(void) c;
	model_blank(stage, values);
	/* for what is set before the probe and read behind it; filters drop nothing */
	for (uint32_t s = 0; s < step; s++)
		for (uint32_t i = step_begin(stage, s); stage->steps[s].probe == 0 && i < stage->steps[s].end; i++)
			if (gh_program_instructions(stage->program)[i].op != GH_OP_FILTER)
				(void) run_instructions(stage, i, i + 1, values);
	for (uint32_t f = 0; f < stage->probes[p].nfills; f++)
		values[stage->fills[p][f].column] = rows_at(&stage->probed[p]->rows, row)[stage->fills[p][f].kept];
}

/* -------------------------------------------------------------- comparisons */

static size_t
value_bytes(const GhRecordKey *key, GhValue value)
{
	return 24 + (key->value_class == GH_CLASS_TEXT && !value.null ? value.high : 0);
}

/* Puts the bytes by which values of a class are told apart behind *used bytes of `to`. */
static void
value_put(const GhRecordKey *key, GhValue value, char *to, size_t *used)
{
	uint64_t	words[3] = {value.null, 0, 0};
	const char *bytes = (const char *) (uintptr_t) value.low;
	double		real = gh_to_double(value.low);
	bool		is_text = !value.null && key->value_class == GH_CLASS_TEXT;

	if (is_text)
	{
		words[1] = value.high;
		while (key->padded && words[1] > 0 && bytes[words[1] - 1] == ' ')
			words[1]--;
	}
	else if (!value.null)
		words[1] = value.low;
	if (!value.null && key->value_class == GH_CLASS_INT128)
		words[2] = value.high;
	if (!value.null && gh_class_is_float(key->value_class) && (isnan(real) || real == 0))
		words[1] = isnan(real) ? GH_SUM_NAN : 0;
	memcpy(to + *used, words, 24);
	*used += 24;
	if (is_text && words[1] > 0)
	{
		memcpy(to + *used, bytes, words[1]);
		*used += words[1];
	}
}

Keyed
keyed_make(const GhRecordKey *keys, uint32_t nkeys, const GhValue *values, uint64_t row)
{
	Keyed		keyed = {NULL, 0, row};
	size_t		room = 0;

	for (uint32_t k = 0; k < nkeys; k++)
		room += value_bytes(&keys[k], values[k]);
	keyed.bytes = make_memory(room);
	for (uint32_t k = 0; k < nkeys; k++)
		value_put(&keys[k], values[k], keyed.bytes, &keyed.length);
	return keyed;
}

static int
order_keyed(const void *left, const void *right)
{
	const Keyed *a = left;
	const Keyed *b = right;
	int			order;

	if (a->length != b->length)
		return a->length < b->length ? -1 : 1;
	order = memcmp(a->bytes, b->bytes, a->length);
	return order != 0 ? order : a->row < b->row ? -1 : a->row > b->row;
}

void
keyed_sort(Keyed *keyed, uint64_t count)
{
	if (count > 0)
		qsort(keyed, count, sizeof(Keyed), order_keyed);
}

bool
keyed_same(const Keyed *a, const Keyed *b)
{
	return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

void
keyed_drop(Keyed *keyed, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		free(keyed[i].bytes);
	free(keyed);
}

/* Of each row, its keys of each set. */
static Keyed *
sort_sink(const Stage *stage)
{
	uint32_t	nkeys = stage->options.sink.groups.nkeys;
	uint32_t	nsets = gh_sink_sets(&stage->options.sink.groups);
	Keyed	   *keyed = make_memory(stage->sink.count * nsets * sizeof(Keyed));
	GhValue		values[STAGE_KEYS_MAX];

	for (uint64_t i = 0; i < stage->sink.count * nsets; i++)
	{
		const GhRecordKey *keys = stage->keys + i % nsets * nkeys;

		for (uint32_t k = 0; k < nkeys; k++)
			values[k] = rows_at(&stage->sink, i / nsets)[keys[k].vector];
		keyed[i] = keyed_make(keys, nkeys, values, i);
	}
	keyed_sort(keyed, stage->sink.count * nsets);
	return keyed;
}

/* From the last byte to the first; of texts that end alike, the longer one is less. */
static int
compare_backwards(void *arg, uint32_t aggregate, const char *a, uint64_t a_bytes, const char *b, uint64_t b_bytes)
{
	(void) arg;
	(void) aggregate;
	for (uint64_t i = 1; i <= a_bytes && i <= b_bytes; i++)
		if (a[a_bytes - i] != b[b_bytes - i])
			return (unsigned char) a[a_bytes - i] < (unsigned char) b[b_bytes - i] ? -1 : 1;
	return a_bytes > b_bytes ? -1 : a_bytes < b_bytes;
}

const GhTextOrder model_order = {compare_backwards, NULL};

/* The least or greatest of texts: the state has its address. */
static void
text_add(const Stage *stage, uint32_t a, GhAggregateState *state, const GhValue *value)
{
	const GhTextOrder *order = &stage->options.sink.groups.order;
	int			ordered = -1;

	if (state->count++ > 0)
	{
		ordered = order->compare(order->arg, a, (const char *) (uintptr_t) value->low, value->high,
								 (const char *) (uintptr_t) state->low, state->high);
		ordered = stage->aggregates[a].kind == GH_AGGREGATE_MIN ? ordered : -ordered;
	}
	if (ordered >= 0)
		return;
	state->low = value->low;
	state->high = value->high;
}

static void
group_add(const Stage *stage, uint64_t set, ModelGroup *group, const GhValue *values)
{
	uint32_t	naggregates = stage->options.sink.groups.naggregates;

	group->rows++;
	for (uint32_t a = 0; a < naggregates; a++)
	{
		const GhAggregate *aggregate = &stage->aggregates[set * naggregates + a];
		GhValue		value = values[aggregate->argument];
		bool		wide = aggregate->value_class == GH_CLASS_INT128;

		if (!aggregate_takes(aggregate, values))
			continue;
		if (gh_is_text_extreme(aggregate))
			text_add(stage, a, &group->states[a], &value);
		else
			(void) gh_aggregate_add(aggregate, &group->states[a], aggregate->kind <= GH_AGGREGATE_COUNT ? 0 :
									value.low,
									wide && aggregate->kind > GH_AGGREGATE_COUNT ? value.high : 0);
	}
}

/* Of the rows in the sink. */
void
model_groups(Stage *stage)
{
	Keyed	   *keyed = sort_sink(stage);
	uint32_t	nkeys = stage->options.sink.groups.nkeys;
	uint32_t	nsets = gh_sink_sets(&stage->options.sink.groups);
	uint64_t	count = stage->sink.count * nsets;

	stage->groups = make_memory((count + 1) * sizeof(ModelGroup));
	memset(stage->groups, 0, (count + 1) * sizeof(ModelGroup));
	stage->ngroups = nkeys == 0;
	for (uint64_t i = 0; i < count; i++)
	{
		const GhValue *values = rows_at(&stage->sink, keyed[i].row / nsets);
		uint64_t	set = keyed[i].row % nsets;

		if (nkeys > 0 && (i == 0 || !keyed_same(&keyed[i - 1], &keyed[i])))
		{
			for (uint32_t k = 0; k < nkeys; k++)
				stage->groups[stage->ngroups].keys[k] = values[stage->keys[set * nkeys + k].vector];
			stage->ngroups++;
		}
		group_add(stage, set, &stage->groups[stage->ngroups - 1], values);
	}
	keyed_drop(keyed, count);
}

static int
order_keys(const void *left, const void *right)
{
	uint64_t	a = *(const uint64_t *) left;
	uint64_t	b = *(const uint64_t *) right;

	return a < b ? -1 : a > b;
}

/* Of the rows in the sink, in their order there. */
void
model_table(Stage *stage)
{
	const GhTableSink *sink = &stage->options.sink.table;
	ModelTable *made = &stage->made;
	uint64_t   *sorted = make_words(stage->sink.count);
	uint64_t	n = 0;

	made->nkept = sink->nkept;
	memcpy(made->kept, stage->kept, sizeof(made->kept));
	rows_init(&made->rows, sink->nkept);
	made->keys = make_words(stage->sink.count);
	made->has_key = make_memory(stage->sink.count);
	made->back = make_memory(stage->sink.count);
	made->all = sink->matches == GH_MATCHES_ALL;
	made->numbered = sink->numbered != 0;
	for (uint64_t i = 0; i < stage->sink.count; i++)
	{
		const GhValue *values = rows_at(&stage->sink, i);
		GhValue    *kept = rows_add(&made->rows, NULL, false);
		GhValue		back = {0, 0, 1};

		for (uint32_t k = 0; k < sink->nkept; k++)
			kept[k] = values[stage->kept[k].vector];
		made->has_key[i] = model_key(sink->parts, sink->nparts, values, &made->keys[i]);
		if (made->has_key[i])
			sorted[n++] = made->keys[i];
		if (sink->back_vector != 0)
			back = values[sink->back_vector - 1];
		made->back[i] = !back.null && back.low != 0;
	}
	qsort(sorted, n, sizeof(uint64_t), order_keys);
	made->several = false;
	for (uint64_t i = 1; i < n; i++)
		made->several |= sorted[i - 1] == sorted[i];
	free(sorted);
}
