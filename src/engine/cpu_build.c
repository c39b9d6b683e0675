/*
 * cpu_build.c
 *		Makes the content of an empty multi table in one request.
 *
 * Phases, each in slices:
 *	sketch	estimate how many keys are distinct, to give the table its size at
 *			once (a HyperLogLog sketch: the registers keep the longest run of
 *			zeros among the hash values that fall to each)
 *	blank	the new blocks, if the table's were too small
 *	count	store every key; its slot's word counts its values
 *	sum		how many words all the runs take: one chunk of just that size
 *	lay		each key of several values gets a run of the chunk, by slot
 *	fill	every position puts its value into its key's run
 *
 * Until the last position is filled the content is hidden: other handles, and this
 * one after an error or a stop, see an empty table.  Whatever is written meanwhile
 * through another handle blanks what is there and goes ahead; the build then ends
 * with an error.
 */
#include "cpu_internal.h"

typedef enum Phase
{
	PHASE_BEGIN,
	PHASE_SKETCH,
	PHASE_BLANK,
	PHASE_COUNT,
	PHASE_SUM,
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

/* One more value for the key; true: the first. */
static gh_always_inline GhCpuOutcome
count_position(GhCpuShape shape, GhCpuTable *table, uint64_t key, const GhCpuPlace *place)
{
	const GhCpuView *view = &table->view;
	GhCpuRoot  *root = view->root;
	char	   *slot;
	int			which;
	bool		first;

	if (gh_unlikely(key == GH_CPU_EMPTY))
	{
		first = !root->has_empty_key;
		root->empty_key_value[0] = first ? 1 : root->empty_key_value[0] + 1;
		root->has_empty_key = true;
		root->keys += first;
		return first ? GH_CPU_WROTE_NEW : GH_CPU_WROTE_OLD;
	}
	slot = gh_cpu_lookup(shape, place, key, &which);
	if (slot != NULL)
	{
		++*(uint64_t *) (void *) gh_cpu_value(shape, &view->area[place->subtable[which]],
											  slot, view->stride);
		return GH_CPU_WROTE_OLD;
	}
	if (gh_unlikely(root->keys >= view->grow_at))
		return GH_CPU_WROTE_FULL;
	slot = gh_cpu_free_slot(shape, table, place, &which);
	if (gh_unlikely(slot == NULL))
		return GH_CPU_WROTE_CROWDED;
	*(uint64_t *) (void *) gh_cpu_value(shape, &view->area[place->subtable[which]], slot,
										view->stride) = 1;
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
			uint64_t	key = gh_cpu_key(shape, request->keys, i + g);
			GhCpuOutcome outcome = count_position(shape, table, key, &place[g]);

			if (gh_unlikely(outcome > GH_CPU_WROTE_NEW))
				return outcome;
			(*position)++;
			request->inserted += outcome == GH_CPU_WROTE_NEW;
			if (request->flags_out != NULL)
				request->flags_out[i + g] = outcome == GH_CPU_WROTE_NEW;
		}
	}
	return GH_CPU_WROTE_OLD;
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
	if (end == request->count)
	{
		state[GH_CPU_STATE_PHASE] = PHASE_SUM;
		state[GH_CPU_STATE_POSITION] = 0;
		state[GH_CPU_STATE_OUT] = 0;
	}
	return GH_BUSY;
}

/* ---------------------------------------------------------------- the runs */

/* Does a key of so many values have a list?  Where it has one value it may yet get
 * one: a value that looks like a list. */
static inline bool
needs_run(const GhCpuView *view, uint64_t values)
{
	return values > 1 || view->value_size > sizeof(uint64_t);
}

/* Phases sum and lay, of one word. */
static gh_always_inline void
sum_or_lay(GhCpuTable *table, uint64_t *word, bool lay, uint64_t *sum)
{
	GhCpuValues *lists = &table->view.root->lists;
	uint64_t	values = *word;

	if (!needs_run(&table->view, values))
	{
		/* fill finds no list here, and that once */
		if (lay)
			*word = 0;
		return;
	}
	if (!lay)
	{
		*sum += gh_cpu_run_words(values, table->view.value_size);
		return;
	}
	*word = gh_cpu_list_word(gh_cpu_values_cut_run(table, values));
	lists->lists++;
	lists->values += values;
}

/* A slice's buckets of one subtable; position counts the buckets of all.  true: these
 * were the last of all. */
static bool
sum_or_lay_buckets(GhCpuTable *table, uint64_t *position, bool lay, uint64_t *sum)
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
				sum_or_lay(table, (uint64_t *) (void *)
						   gh_cpu_value(shape, &view->area[i], slot, view->stride), lay, sum);
		}
	}
	return i + 1 == root->options.subtables && end == root->subtable[i].buckets;
}

static GhStatus
sum_or_lay_slice(GhCpuTable *table, GhRequest *request)
{
	uint64_t   *state = request->engine_state;
	GhCpuRoot  *root = table->view.root;
	bool		lay = state[GH_CPU_STATE_PHASE] == PHASE_LAY;

	if (state[GH_CPU_STATE_POSITION] == 0 && root->has_empty_key)
		sum_or_lay(table, root->empty_key_value, lay, &state[GH_CPU_STATE_OUT]);
	if (!sum_or_lay_buckets(table, &state[GH_CPU_STATE_POSITION], lay,
							&state[GH_CPU_STATE_OUT]))
		return GH_BUSY;
	state[GH_CPU_STATE_POSITION] = 0;
	state[GH_CPU_STATE_PHASE] = lay ? PHASE_FILL : PHASE_LAY;
	if (!lay && state[GH_CPU_STATE_OUT] > 0)
	{
		GhStatus	status = gh_cpu_values_chunk(table, state[GH_CPU_STATE_OUT],
												 &request->error);

		if (status != GH_OK)
			return status;
	}
	return GH_BUSY;
}

/* --------------------------------------------------------------- the values */

static gh_always_inline GhStatus
fill_position(GhCpuTable *table, GhRequest *request, uint64_t i, uint64_t *word)
{
	uint32_t	size = table->view.value_size;
	uint32_t	position32 = (uint32_t) i;
	const void *value = &i;

	if (request->values_in != NULL)
		value = (const char *) request->values_in + i * size;
	else if (size == sizeof(uint32_t))
		value = &position32;
	if (gh_cpu_is_list(*word))
	{
		uint64_t   *node = gh_cpu_node(table, gh_cpu_list_head(*word));

		gh_cpu_copy(gh_cpu_node_values(node) + node[1]++ * size, value, size);
		return GH_OK;
	}
	return gh_cpu_values_first(table, word, value, &request->error);
}

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
			word[g] = (uint64_t *) (void *)
				gh_cpu_value(shape, &view->area[place[g].subtable[which]], slot, view->stride);
		}
		if (gh_cpu_is_list(*word[g]))
			__builtin_prefetch(gh_cpu_node(table, gh_cpu_list_head(*word[g])), 1);
	}
}

static gh_always_inline GhStatus
fill_range(GhCpuShape shape, GhCpuTable *table, GhRequest *request, uint64_t begin,
		   uint64_t end)
{
	uint64_t   *word[GH_CPU_GROUP];
	uint64_t	i;

	for (i = begin; i < end; i += GH_CPU_GROUP)
	{
		uint32_t	group = end - i < GH_CPU_GROUP ? (uint32_t) (end - i) : GH_CPU_GROUP;
		uint32_t	g;

		load_words(shape, table, request, i, group, word);
		for (g = 0; g < group; g++)
		{
			if (fill_position(table, request, i + g, word[g]) != GH_OK)
				return request->error.status;
		}
	}
	return GH_OK;
}

static GhStatus
fill_slice(GhCpuTable *table, GhRequest *request)
{
	GhCpuRoot  *root = table->view.root;
	uint64_t	begin = request->engine_state[GH_CPU_STATE_POSITION];
	uint64_t	end = gh_cpu_slice_end(&table->view, begin, request->count);
	GhStatus	status = table->view.shape == GH_CPU_K8V8 ?
		fill_range(GH_CPU_K8V8, table, request, begin, end) :
		fill_range(GH_CPU_K4, table, request, begin, end);

	if (status != GH_OK)
		return status;
	request->engine_state[GH_CPU_STATE_POSITION] = end;
	if (end < request->count)
		return GH_BUSY;
	root->values = request->count;
	root->hidden = 0;
	table->building = 0;
	request->done = request->count;
	return GH_OK;
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
	root->values = 0;
	request->inserted = 0;
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
		case PHASE_SUM:
		case PHASE_LAY:
			return sum_or_lay_slice(table, request);
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
