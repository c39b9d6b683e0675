/*
 * cpu_build.c
 *		Makes the content of an empty multi table in one request.
 *
 * Phases, each in slices:
 *	sketch	estimate how many keys are distinct, to give the table its size at
 *			once (a HyperLogLog sketch: the registers keep the longest run of
 *			zeros among the hash values that fall to each)
 *	blank	the new blocks, if the table's were too small
 *	count	store every key; the slot of a key of one value gets the value, and that
 *			of a key of several gets their number
 *	lay		each key of several values gets a run, by slot, in one chunk of just
 *			the size of all runs
 *	fill	every position whose key has a run puts its value there
 * Without equal keys the table is done when they are counted.
 *
 * Until the last position is filled the content is hidden: other handles, and this
 * one after an error or a stop, see an empty table.  Whatever is written meanwhile
 * through another handle blanks what is there and goes ahead; the build then ends
 * with an error.
 */
#include "engine/table/cpu_internal.h"

typedef enum Phase
{
	PHASE_BEGIN,
	PHASE_SKETCH,
	PHASE_BLANK,
	PHASE_COUNT,
	PHASE_LAY,
	PHASE_FILL
} Phase;

/* The estimate is off by 2.3 % in the mean. */
#define SKETCH_MARGIN 1.05

/* ------------------------------------------------------------- the sketch */

static gh_always_inline void
sketch_range(GhCpuShape shape, GhCpuTable *table, const void *keys, uint64_t begin, uint64_t end)
{
	uint64_t	i;

	for (i = begin; i < end; i++)
	{
		uint64_t	hash[2];
		uint8_t	   *rank;
		uint8_t		zeros;

		gh_cpu_hash(&table->view, gh_cpu_key(shape, keys, i), hash);
		rank = &table->sketch[hash[0] >> (64 - GH_CPU_SKETCH_SHIFT)];
		zeros = (uint8_t) __builtin_ctzll(hash[0] | (uint64_t) 1 << 50);
		if (zeros >= *rank)
			*rank = (uint8_t) (zeros + 1);
	}
}

/* How many keys make that many registers stay empty, where that is telling. */
static uint64_t
keys_of_empty(uint32_t empty)
{
	double		left = GH_CPU_SKETCH_REGISTERS;
	uint64_t	keys = 0;

	for (; left > empty && keys < 4 * GH_CPU_SKETCH_REGISTERS; keys++)
		left -= left / GH_CPU_SKETCH_REGISTERS;
	return keys;
}

static uint64_t
sketch_estimate(const GhCpuTable *table)
{
	const double m = GH_CPU_SKETCH_REGISTERS;
	double		sum = 0;
	uint32_t	empty = 0;
	uint32_t	r;
	double		estimate;

	for (r = 0; r < GH_CPU_SKETCH_REGISTERS; r++)
	{
		sum += 1.0 / (double) ((uint64_t) 1 << table->sketch[r]);
		empty += table->sketch[r] == 0;
	}
	estimate = 0.7213 / (1 + 1.079 / m) * m * m / sum;
	if (estimate < 2.5 * m && empty > 0)
		return keys_of_empty(empty);
	return (uint64_t) (SKETCH_MARGIN * estimate);
}

/* Gives the table the size for the keys expected.  Where that cannot be it grows as
 * it is filled. */
static void
size_table(GhCpuTable *table, GhRequest *request)
{
	const GhCpuRoot *root = table->view.root;
	uint64_t	keys = sketch_estimate(table);
	uint32_t	level;

	request->engine_state[GH_CPU_STATE_PHASE] = PHASE_COUNT;
	request->engine_state[GH_CPU_STATE_POSITION] = 0;
	if (keys > request->count)
		keys = request->count;
	if (gh_cpu_level_for(&root->options, keys, &level) && level > root->level &&
		gh_cpu_enlarge_empty(table, level, NULL) == GH_OK)
		request->engine_state[GH_CPU_STATE_PHASE] = PHASE_BLANK;
}

static GhStatus
sketch_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t   *position = &request->engine_state[GH_CPU_STATE_POSITION];
	uint64_t	end = *position + 4 * GH_CPU_SLICE_KEYS;

	if (end > request->count)
		end = request->count;
	GH_CPU_BY_SHAPE(table->view.shape, sketch_range, table, request->keys, *position, end);
	*position = end;
	if (end == request->count)
		size_table(table, request);
	return GH_BUSY;
}

/* -------------------------------------------------------------- the counts */

/* Position i's value. */
static gh_always_inline const void *
value_of(const GhRequest *request, uint64_t i, uint32_t size, uint64_t *number)
{
	if (gh_likely(request->values_in != NULL))
		return (const char *) request->values_in + i * size;
	if (size == sizeof(uint32_t))
		*(uint32_t *) (void *) number = (uint32_t) i;
	else
		*number = i;
	return number;
}

/* The word of a key with one value: that, or where it needs a list, the number 1. */
static gh_always_inline void
count_first(GhCpuTable *table, GhRequest *request, uint64_t i, uint64_t *word)
{
	uint32_t	size = table->view.value_size;
	uint64_t	number;

	*word = gh_cpu_list_word(1);
	if (size <= sizeof(uint64_t))
		*word = gh_cpu_lone_word(value_of(request, i, size, &number), size);
	if (gh_cpu_is_list(*word))
	{
		*word = gh_cpu_list_word(1);
		request->engine_state[GH_CPU_STATE_OUT] += gh_cpu_run_words(1, size);
	}
}

/* One more value; the state sums up the words of all runs. */
static gh_always_inline void
count_next(GhCpuTable *table, GhRequest *request, uint64_t *word)
{
	uint32_t	size = table->view.value_size;
	uint64_t	values = 1;

	if (gh_cpu_is_list(*word))
	{
		values = gh_cpu_list_head(*word);
		request->engine_state[GH_CPU_STATE_OUT] -= gh_cpu_run_words(values, size);
	}
	*word = gh_cpu_list_word(values + 1);
	request->engine_state[GH_CPU_STATE_OUT] += gh_cpu_run_words(values + 1, size);
}

static GhCpuOutcome
count_empty_key(GhCpuTable *table, GhRequest *request, uint64_t i)
{
	GhCpuRoot  *root = table->view.root;

	if (root->has_empty_key)
	{
		count_next(table, request, root->empty_key_value);
		return GH_CPU_WROTE_OLD;
	}
	count_first(table, request, i, root->empty_key_value);
	root->has_empty_key = true;
	root->keys++;
	return GH_CPU_WROTE_NEW;
}

static gh_always_inline GhCpuOutcome
count_position(GhCpuShape shape, GhCpuTable *table, GhRequest *request, uint64_t i,
			   const GhCpuPlace *place)
{
	const GhCpuView *view = &table->view;
	GhCpuRoot  *root = view->root;
	uint64_t	key = gh_cpu_key(shape, request->keys, i);
	char	   *slot;
	int			which;

	if (gh_unlikely(key == GH_CPU_EMPTY))
		return count_empty_key(table, request, i);
	slot = gh_cpu_lookup(shape, place, key, &which);
	gh_cpu_count_lookup(root, which);
	if (slot != NULL)
	{
		count_next(table, request, (uint64_t *) (void *)
				   gh_cpu_value(shape, &view->area[place->subtable[which]], slot, view->stride));
		return GH_CPU_WROTE_OLD;
	}
	if (gh_unlikely(root->keys >= view->grow_at))
		return GH_CPU_WROTE_FULL;
	slot = gh_cpu_free_slot(shape, table, place, &which);
	if (gh_unlikely(slot == NULL))
		return GH_CPU_WROTE_CROWDED;
	count_first(table, request, i, (uint64_t *) (void *)
				gh_cpu_value(shape, &view->area[place->subtable[which]], slot, view->stride));
	gh_cpu_key_put(shape, slot, key);
	root->subtable[place->subtable[which]].entries++;
	root->keys++;
	return GH_CPU_WROTE_NEW;
}

/* Positions to end; the outcome of the last one done says more. */
static gh_always_inline GhCpuOutcome
count_range(GhCpuShape shape, GhCpuTable *table, GhRequest *request, uint64_t end)
{
	uint64_t   *position = &request->engine_state[GH_CPU_STATE_POSITION];
	GhCpuPlace	place[GH_CPU_GROUP];

	while (*position < end)
	{
		uint64_t	i = *position;
		uint32_t	group = end - i < GH_CPU_GROUP ? (uint32_t) (end - i) : GH_CPU_GROUP;
		uint32_t	g;

		gh_cpu_locate_to_write(shape, &table->view, request->keys, i, group, place);
		for (g = 0; g < group; g++)
		{
			GhCpuOutcome outcome = count_position(shape, table, request, i + g, &place[g]);

			if (gh_unlikely(outcome > GH_CPU_WROTE_NEW))
				return outcome;
			(*position)++;
			request->outcome.inserted += outcome == GH_CPU_WROTE_NEW;
			if (request->flags_out != NULL)
				request->flags_out[i + g] = outcome == GH_CPU_WROTE_NEW;
		}
	}
	return GH_CPU_WROTE_OLD;
}

/* The table has its content. */
static GhStatus
finish(GhCpuTable *table, GhRequest *request)
{
	table->view.root->values = request->count;
	table->view.root->hidden = 0;
	table->building = 0;
	request->outcome.done = request->count;
	return GH_OK;
}

static GhStatus
count_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t   *state = request->engine_state;
	uint64_t	begin = state[GH_CPU_STATE_POSITION];
	uint64_t	left = request->count - begin;
	uint64_t	end = begin + (left < GH_CPU_SLICE_KEYS ? left : GH_CPU_SLICE_KEYS);
	GhCpuOutcome outcome = table->view.shape == GH_CPU_K8V8 ?
		count_range(GH_CPU_K8V8, table, request, end) :
		count_range(GH_CPU_K4, table, request, end);

	if (outcome > GH_CPU_WROTE_NEW)
		return gh_cpu_write_grow(table, request, state[GH_CPU_STATE_POSITION],
								 outcome == GH_CPU_WROTE_CROWDED);
	if (end < request->count)
		return GH_BUSY;
	if (state[GH_CPU_STATE_OUT] == 0)
		return finish(table, request);
	state[GH_CPU_STATE_PHASE] = PHASE_LAY;
	state[GH_CPU_STATE_POSITION] = 0;
	return gh_cpu_values_chunk(table, state[GH_CPU_STATE_OUT], &request->error) == GH_OK ?
		GH_BUSY : request->error.status;
}

/* ---------------------------------------------------------------- the runs */

/* A run for as many values as the word says. */
static gh_always_inline void
lay_run(GhCpuTable *table, uint64_t *word)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint64_t	values = gh_cpu_list_head(*word);

	if (!gh_cpu_is_list(*word))
		return;
	*word = gh_cpu_list_word(gh_cpu_values_cut_run(table, values));
	lists->lists++;
	lists->values += values;
}

/* A slice's buckets of one subtable; position counts the buckets of all.  true: these
 * were the last of all. */
static bool
lay_buckets(GhCpuTable *table, uint64_t *position)
{
	const GhCpuView *view = &table->view;
	const GhCpuRoot *root = view->root;
	GhCpuShape	shape = view->shape;
	uint64_t	bucket = *position;
	uint64_t	end;
	uint32_t	i = 0;
	uint32_t	s;

	for (; bucket >= root->subtable[i].buckets; i++)
		bucket -= root->subtable[i].buckets;
	end = bucket + GH_CPU_SLICE_BUCKETS;
	if (end > root->subtable[i].buckets)
		end = root->subtable[i].buckets;
	*position += end - bucket;
	for (; bucket < end; bucket++)
	{
		char	   *at = view->area[i].base + (bucket << GH_CPU_BUCKET_SHIFT);

		for (s = 0; s < gh_cpu_slots(shape); s++)
		{
			char	   *slot = at + (s << gh_cpu_key_shift(shape));

			if (gh_cpu_key_at(shape, slot) != GH_CPU_EMPTY)
				lay_run(table, (uint64_t *) (void *)
						gh_cpu_value(shape, &view->area[i], slot, view->stride));
		}
	}
	return i + 1 == root->options.subtables && end == root->subtable[i].buckets;
}

static GhStatus
lay_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t   *state = request->engine_state;
	GhCpuRoot  *root = table->view.root;

	if (state[GH_CPU_STATE_POSITION] == 0 && root->has_empty_key)
		lay_run(table, root->empty_key_value);
	if (lay_buckets(table, &state[GH_CPU_STATE_POSITION]))
	{
		state[GH_CPU_STATE_POSITION] = 0;
		state[GH_CPU_STATE_PHASE] = PHASE_FILL;
	}
	return GH_BUSY;
}

/* --------------------------------------------------------------- the values */

/* The words of a group of keys, which are all there; their lists are fetched ahead. */
static gh_always_inline void
load_words(GhCpuShape shape, GhCpuTable *table, const GhRequest *request, uint64_t i,
		   uint32_t group, uint64_t **word)
{
	const GhCpuView *view = &table->view;
	GhCpuPlace	place[GH_CPU_GROUP];
	uint32_t	g;

	gh_cpu_locate_to_write(shape, view, request->keys, i, group, place);
	for (g = 0; g < group; g++)
	{
		uint64_t	key = gh_cpu_key(shape, request->keys, i + g);
		char	   *slot;
		int			which;

		word[g] = view->root->empty_key_value;
		if (gh_likely(key != GH_CPU_EMPTY))
		{
			slot = gh_cpu_lookup(shape, &place[g], key, &which);
			gh_cpu_count_lookup(view->root, which);
			word[g] = (uint64_t *) (void *)
				gh_cpu_value(shape, &view->area[place[g].subtable[which]], slot, view->stride);
		}
		if (gh_cpu_is_list(*word[g]))
			__builtin_prefetch(gh_cpu_node(table, gh_cpu_list_head(*word[g])), 1);
	}
}

static gh_always_inline void
fill_range(GhCpuShape shape, GhCpuTable *table, GhRequest *request, uint64_t begin,
		   uint64_t end)
{
	uint32_t	size = table->view.value_size;
	uint64_t   *word[GH_CPU_GROUP];
	uint64_t	i;

	for (i = begin; i < end; i += GH_CPU_GROUP)
	{
		uint32_t	group = end - i < GH_CPU_GROUP ? (uint32_t) (end - i) : GH_CPU_GROUP;
		uint32_t	g;

		load_words(shape, table, request, i, group, word);
		/* the place of a value in a long run is another miss */
		for (g = 0; g < group; g++)
		{
			if (gh_cpu_is_list(*word[g]))
			{
				uint64_t   *node = gh_cpu_node(table, gh_cpu_list_head(*word[g]));

				__builtin_prefetch(gh_cpu_node_values(node) + node[1] * size, 1);
			}
		}
		for (g = 0; g < group; g++)
		{
			uint64_t	number;
			uint64_t   *node;

			if (!gh_cpu_is_list(*word[g]))
				continue;
			node = gh_cpu_node(table, gh_cpu_list_head(*word[g]));
			gh_cpu_copy(gh_cpu_node_values(node) + node[1]++ * size,
						value_of(request, i + g, size, &number), size);
		}
	}
}

static GhStatus
fill_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t	begin = request->engine_state[GH_CPU_STATE_POSITION];
	uint64_t	end = gh_cpu_slice_end(&table->view, begin, request->count);

	if (table->view.shape == GH_CPU_K8V8)
		fill_range(GH_CPU_K8V8, table, request, begin, end);
	else
		fill_range(GH_CPU_K4, table, request, begin, end);
	request->engine_state[GH_CPU_STATE_POSITION] = end;
	return end < request->count ? GH_BUSY : finish(table, request);
}

/* -------------------------------------------------------------- the request */

static GhStatus
begin(GhCpuTable *table, GhRequest *request)
{
	GhCpuRoot  *root = table->view.root;
	uint32_t	level;

	if (root->keys > 0)
		return gh_error_set(&request->error, GH_INVALID,
							"a build needs an empty table and this one has keys");
	if (request->count == 0)
		return GH_OK;
	root->hidden = table->building = root->version;
	request->outcome.inserted = 0;
	request->engine_state[GH_CPU_STATE_POSITION] = 0;
	request->engine_state[GH_CPU_STATE_PHASE] =
		gh_cpu_level_for(&root->options, request->count, &level) && level <= root->level ?
		PHASE_COUNT : PHASE_SKETCH;
	memset(table->sketch, 0, sizeof(table->sketch));
	return GH_BUSY;
}

/* What is there of the build is nobody's any more, unless it was overtaken. */
void
gh_cpu_build_give_up(GhCpuTable *table)
{
	gh_cpu_lock(table, GH_LOCK_EXCLUSIVE);
	table->view.root->version++;
	if (table->view.root->hidden == table->building)
		gh_cpu_hide(table);
	gh_cpu_unlock(table);
}

static GhStatus
do_phase(GhCpuTable *table, GhRequest *request)
{
	switch ((Phase) request->engine_state[GH_CPU_STATE_PHASE])
	{
		case PHASE_SKETCH:
			return sketch_slice(table, request);
		case PHASE_BLANK:
			if (gh_cpu_blank_slice(table))
				request->engine_state[GH_CPU_STATE_PHASE] = PHASE_COUNT;
			return GH_BUSY;
		case PHASE_COUNT:
			return count_slice(table, request);
		case PHASE_LAY:
			return lay_slice(table, request);
		case PHASE_FILL:
			return fill_slice(table, request);
		default:
			return begin(table, request);
	}
}

GhStatus
gh_cpu_build_slice(GhCpuTable *table, GhRequest *request)
{
	GhCpuRoot  *root = table->view.root;
	GhStatus	status;

	if (request->engine_state[GH_CPU_STATE_PHASE] != PHASE_BEGIN &&
		root->hidden != table->building)
		return gh_error_set(&request->error, GH_INVALID,
							"another request wrote to the table while it was being built");
	status = do_phase(table, request);
	if (status != GH_OK && status != GH_BUSY && table->building != 0)
		gh_cpu_hide(table);
	return status;
}
