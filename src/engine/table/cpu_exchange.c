/*
 * cpu_exchange.c
 *		Exchanges that several handles make at the same time, in a table with
 *		GhTableOptions.concurrent_exchange and values inside the buckets.
 *
 * Slices hold the lock shared, so that no entry moves or goes while they run: slots
 * just fill.  What a slice does to one position:
 *
 *	1. It looks at the slots of the key's two buckets in the key's order of slots,
 *	   which is one for all handles.
 *	2. The key is there: it swaps its value with the slot's, by one atomic.
 *	3. It is not: it claims the first empty slot of the order by a compare-and-swap of
 *	   the slot's key, and stores the value.  Where another was faster, that is the
 *	   same key (2), or the next empty slot is tried.
 *
 * A key gets one slot only: who claims a slot has seen every slot before it filled
 * with another key, which is final, and two handles with the same key meet at the first
 * slot of the order that neither saw filled.  So all handles' values of a key go through one
 * word by atomic swaps, and are one chain.
 *
 * Between the claim and the store the slot's value is 0, as that of every empty slot
 * is.  A position that meets a value of 0, be it that or a value like others, is left, and
 * so is one whose key is that of the empty pattern and new, and one that finds no empty
 * slot or no room under fill_max.  The positions left are done behind the others, under
 * an exclusive lock and by the code of all other tables.
 *
 * Until then values_out, which has no result for them yet, links them, and
 * engine_state says where the list begins.  Both outlast the end of the request by an
 * error or the stop flag: submitted again it goes on with what was left.
 */
#include "engine/table/cpu_internal.h"

#include <sched.h>

/* Positions left at which a request does them before it goes on. */
#define LEFT_MOST GH_CPU_SLICE_KEYS

/* Of these a slice does fewer: each may take a search for room. */
#define LEFT_SLICE 1024

/* This file's uses of GhRequest.engine_state.  Where positions are left, the first
 * of them is GhOutcome.done. */
enum
{
	STATE_LEFT = GH_CPU_STATE_PHASE,	/* how many positions */
	STATE_LAST = GH_CPU_STATE_POSITION, /* the last of them */
	STATE_REACHED = GH_CPU_STATE_NODE	/* with some left: those before are done but for
										 * them */
};

/* What a slice has done, told to the table at its end. */
typedef struct Slice
{
	uint64_t	room;			/* new keys that it may still store */
	uint64_t	entries[GH_SUBTABLES_MAX];	/* that it stored */
} Slice;

/* ------------------------------------------------------ the positions left */

static uint64_t
reached(const GhRequest *request)
{
	return request->engine_state[STATE_LEFT] > 0 ? request->engine_state[STATE_REACHED] :
		request->outcome.done;
}

/* Does a request that is submitted go on with what an earlier run left? */
bool
gh_cpu_exchange_goes_on(const GhCpuRoot *root, const GhRequest *request)
{
	return request->op == GH_EXCHANGE && root->options.concurrent_exchange &&
		request->engine_state[STATE_LEFT] > 0;
}

static gh_always_inline void *
link_of(GhCpuShape shape, const GhRequest *request, uint64_t i)
{
	return (char *) request->values_out + (i << gh_cpu_key_shift(shape));
}

/* Puts a position behind those left. */
static gh_always_inline void
leave(GhCpuShape shape, GhRequest *request, uint64_t i)
{
	uint64_t   *state = request->engine_state;

	if (state[STATE_LEFT]++ == 0)
		request->outcome.done = i;
	else
		gh_cpu_key_put(shape, link_of(shape, request, state[STATE_LAST]), i);
	state[STATE_LAST] = i;
}

static gh_always_inline uint64_t
next_left(GhCpuShape shape, const GhRequest *request, uint64_t i)
{
	return gh_cpu_key_at(shape, link_of(shape, request, i));
}

/* Some of them, under the exclusive lock. */
static gh_always_inline GhCpuOutcome
do_left(GhCpuShape shape, GhCpuTable *table, GhRequest *request, uint64_t most)
{
	uint64_t   *state = request->engine_state;

	while (most > 0 && state[STATE_LEFT] > 0)
	{
		uint32_t	group = most < GH_CPU_GROUP ? (uint32_t) most : GH_CPU_GROUP;
		uint64_t	i = request->outcome.done;
		GhCpuPlace	place[GH_CPU_GROUP];
		uint32_t	g;

		if (state[STATE_LEFT] < group)
			group = (uint32_t) state[STATE_LEFT];
		for (g = 0; g < group; g++)
		{
			gh_cpu_locate_to_write(shape, &table->view, request->keys, i, 1, &place[g]);
			if (i != state[STATE_LAST])
				i = next_left(shape, request, i);
		}
		/* most were left for want of an empty slot */
		for (g = 0; g < group; g++)
			gh_cpu_fetch_room(table, &place[g]);
		for (g = 0; g < group; g++)
		{
			uint64_t	next;
			GhCpuOutcome outcome;

			i = request->outcome.done;
			/* the position's result takes the place of the link */
			next = i == state[STATE_LAST] ? state[STATE_REACHED] :
				next_left(shape, request, i);
			outcome = gh_cpu_write_one(table, request, i, &place[g], GH_EXCHANGE);
			if (outcome > GH_CPU_WROTE_NEW)
				return outcome;
			if (request->flags_out != NULL)
				request->flags_out[i] = outcome == GH_CPU_WROTE_NEW;
			request->outcome.inserted += outcome == GH_CPU_WROTE_NEW;
			request->outcome.replaced += outcome == GH_CPU_WROTE_OVER;
			state[STATE_LEFT]--;
			request->outcome.done = next;
		}
		most -= group;
	}
	return GH_CPU_WROTE_OLD;
}

/*
 * A slice under the exclusive lock: the positions left, if there are any, else the next
 * ones, in their order.
 */
GhStatus
gh_cpu_exchange_slice(GhCpuTable *table, GhRequest *request)
{
	GhCpuOutcome outcome;

	if (request->engine_state[STATE_LEFT] == 0)
		return gh_cpu_write_slice(table, request);
	outcome = table->view.shape == GH_CPU_K8V8 ?
		do_left(GH_CPU_K8V8, table, request, LEFT_SLICE) :
		do_left(GH_CPU_K4V4, table, request, LEFT_SLICE);
	if (outcome > GH_CPU_WROTE_NEW)
		return gh_cpu_write_grow(table, request, request->outcome.done, outcome == GH_CPU_WROTE_CROWDED);
	return request->outcome.done < request->count ? GH_BUSY : GH_OK;
}

/* --------------------------------------------------- under the shared lock */

/* A word of a slot, which others may write at the same time. */
static gh_always_inline uint64_t
load_word(GhCpuShape shape, const char *at)
{
	return gh_cpu_key_shift(shape) == 3 ?
		__atomic_load_n((const uint64_t *) (const void *) at, __ATOMIC_RELAXED) :
		__atomic_load_n((const uint32_t *) (const void *) at, __ATOMIC_RELAXED);
}

/* Only the claimer of a slot stores its first value.  Release, here and in the swap:
 * who is given the value sees what was written before the request. */
static gh_always_inline void
store_value(GhCpuShape shape, char *at, uint64_t value)
{
	if (gh_cpu_key_shift(shape) == 3)
		__atomic_store_n((uint64_t *) (void *) at, value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *) (void *) at, (uint32_t) value, __ATOMIC_RELEASE);
}

static gh_always_inline uint64_t
swap_value(GhCpuShape shape, char *at, uint64_t value)
{
	return gh_cpu_key_shift(shape) == 3 ?
		__atomic_exchange_n((uint64_t *) (void *) at, value, __ATOMIC_ACQ_REL) :
		__atomic_exchange_n((uint32_t *) (void *) at, (uint32_t) value, __ATOMIC_ACQ_REL);
}

/*
 * Puts key into an empty slot; false: it is not empty any more, and *there says what
 * has come.  Relaxed, as are the looks at keys: of a slot's key and value no order is
 * needed, for a value that has not come yet is known by being 0.
 */
static gh_always_inline bool
claim_slot(GhCpuShape shape, char *slot, uint64_t key, uint64_t *there)
{
	uint32_t	there4 = (uint32_t) GH_CPU_EMPTY;
	bool		claimed;

	*there = GH_CPU_EMPTY;
	if (gh_cpu_key_shift(shape) == 3)
		return __atomic_compare_exchange_n((uint64_t *) (void *) slot, there, key, false,
										   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	claimed = __atomic_compare_exchange_n((uint32_t *) (void *) slot, &there4, (uint32_t) key,
										  false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	*there = there4;
	return claimed;
}

/*
 * A key's order of slots goes to and fro between its buckets, so that it comes to the
 * one that has more room: number n is slot n / 2 of bucket n % 2.
 */
static gh_always_inline char *
slot_in_order(GhCpuShape shape, const GhCpuPlace *place, uint32_t number)
{
	return place->bucket[number & 1] + ((number >> 1) << gh_cpu_key_shift(shape));
}

#ifdef __SSE2__

/* Four keys of 4 bytes.  Each is in one of two loads, so what is seen of it is one look. */
static gh_always_inline __m128i
load_keys(const char *at)
{
	const int64_t *pair = (const int64_t *) (const void *) at;

	return _mm_set_epi64x(__atomic_load_n(pair + 1, __ATOMIC_RELAXED),
						  __atomic_load_n(pair, __ATOMIC_RELAXED));
}

/* Bit n is set where the key of slot n in the order is that one; keys: of both buckets. */
static gh_always_inline unsigned
slots_with(const __m128i keys[4], uint64_t key)
{
	__m128i		four = _mm_set1_epi32((int) key);
	__m128i		first = _mm_packs_epi32(_mm_cmpeq_epi32(keys[0], four), _mm_cmpeq_epi32(keys[1], four));
	__m128i		second = _mm_packs_epi32(_mm_cmpeq_epi32(keys[2], four), _mm_cmpeq_epi32(keys[3], four));

	return (unsigned) _mm_movemask_epi8(_mm_packs_epi16(_mm_unpacklo_epi16(first, second),
														_mm_unpackhi_epi16(first, second)));
}

#endif

/*
 * Which slots of the order have the key, and which are empty.  One look at each slot answers
 * both questions: a second one might see another key there, and the key itself might be
 * missed in between.
 */
static gh_always_inline void
look_at_slots(GhCpuShape shape, const GhCpuPlace *place, uint64_t key, unsigned *match,
			  unsigned *empty)
{
	uint32_t	n;

#ifdef __SSE2__
	if (shape == GH_CPU_K4V4)
	{
		const __m128i keys[4] = {
			load_keys(place->bucket[0]), load_keys(place->bucket[0] + sizeof(__m128i)),
			load_keys(place->bucket[1]), load_keys(place->bucket[1] + sizeof(__m128i))
		};

		*match = slots_with(keys, key);
		*empty = slots_with(keys, GH_CPU_EMPTY);
		return;
	}
#endif
	*match = *empty = 0;
#pragma GCC unroll 16			/* 10 % of the whole, at -O2 */
	for (n = 0; n < 2 * gh_cpu_slots(shape); n++)
	{
		uint64_t	there = load_word(shape, slot_in_order(shape, place, n));

		*match |= (unsigned) (there == key) << n;
		*empty |= (unsigned) (there == GH_CPU_EMPTY) << n;
	}
}

/* Swaps with the value of a key that is there; the address of the value is given. */
static gh_always_inline GhCpuOutcome
exchange_value(GhCpuShape shape, GhRequest *request, uint64_t i, char *value, uint64_t in)
{
	/* not yet there, or a 0 that cannot be told from that */
	if (gh_unlikely(load_word(shape, value) == 0))
		return GH_CPU_WROTE_NOTHING;
	gh_cpu_key_put(shape, link_of(shape, request, i), swap_value(shape, value, in));
	return GH_CPU_WROTE_OVER;
}

/* GH_CPU_WROTE_NOTHING: the position is to be left. */
static gh_always_inline GhCpuOutcome
exchange_one(GhCpuShape shape, const GhCpuView *view, GhRequest *request, uint64_t i,
			 const GhCpuPlace *place, Slice *slice)
{
	uint64_t	key = gh_cpu_key(shape, request->keys, i);
	uint64_t	in = gh_cpu_key(shape, request->values_in, i);
	unsigned	match;
	unsigned	empty;
	uint32_t	n;

	if (gh_unlikely(key == GH_CPU_EMPTY))
		return view->has_empty_key ?
			exchange_value(shape, request, i, (char *) view->root->empty_key_value, in) :
			GH_CPU_WROTE_NOTHING;

	look_at_slots(shape, place, key, &match, &empty);
	while (match == 0)
	{
		uint64_t	there;
		char	   *slot;

		if (gh_unlikely(empty == 0 || slice->room == 0))
			return GH_CPU_WROTE_NOTHING;
		n = (uint32_t) __builtin_ctz(empty);
		slot = slot_in_order(shape, place, n);
		if (gh_likely(claim_slot(shape, slot, key, &there)))
		{
			store_value(shape, slot + GH_CPU_TO_VALUE, in);
			gh_cpu_put_absent(link_of(shape, request, i), request->absent,
							  1u << gh_cpu_key_shift(shape));
			slice->room--;
			slice->entries[place->subtable[n & 1]]++;
			return GH_CPU_WROTE_NEW;
		}
		match = (unsigned) (there == key) << n;
		empty &= empty - 1;
	}
	return exchange_value(shape, request, i, slot_in_order(shape, place, (uint32_t)
														   __builtin_ctz(match)) +
						  GH_CPU_TO_VALUE, in);
}

static gh_always_inline void
exchange_range(GhCpuShape shape, GhCpuTable *table, GhRequest *request, uint64_t begin,
			   uint64_t end, Slice *slice)
{
	const GhCpuView *view = &table->view;
	uint64_t	i;
	GhCpuAhead	ahead;

	for (i = begin; i < end; i += GH_CPU_GROUP)
	{
		uint32_t	group = gh_cpu_group(i, end);
		GhCpuPlace *place = gh_cpu_places(shape, view, request->keys, begin, i, end, &ahead);
		uint32_t	g;

		for (g = 0; g < group; g++)
		{
			GhCpuOutcome outcome = exchange_one(shape, view, request, i + g, &place[g], slice);

			if (gh_unlikely(outcome == GH_CPU_WROTE_NOTHING))
			{
				leave(shape, request, i + g);
				continue;
			}
			if (request->flags_out != NULL)
				request->flags_out[i + g] = outcome == GH_CPU_WROTE_NEW;
			request->outcome.inserted += outcome == GH_CPU_WROTE_NEW;
			request->outcome.replaced += outcome == GH_CPU_WROTE_OVER;
		}
	}
}

/*
 * Takes room under fill_max for so many keys, or as many as there is, by counting them
 * as keys already: so all handles together do not pass it.
 */
static uint64_t
take_room(const GhCpuView *view, uint64_t keys)
{
	uint64_t	there = __atomic_load_n(&view->root->keys, __ATOMIC_RELAXED);
	uint64_t	room;

	do
	{
		room = there < view->grow_at ? view->grow_at - there : 0;
		room = room < keys ? room : keys;
	} while (!__atomic_compare_exchange_n(&view->root->keys, &there, there + room, false,
										  __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return room;
}

/* Counts what was stored, and gives back the room that was not needed. */
static void
count_slice(const GhCpuTable *table, const Slice *slice, uint64_t positions)
{
	GhCpuRoot  *root = table->view.root;
	uint64_t	stored = 0;
	uint32_t	s;

	for (s = 0; s < root->options.subtables; s++)
	{
		stored += slice->entries[s];
		(void) __atomic_fetch_add(&root->subtable[s].entries, slice->entries[s],
								  __ATOMIC_RELAXED);
	}
	(void) __atomic_fetch_sub(&root->keys, slice->room, __ATOMIC_RELAXED);
	(void) __atomic_fetch_add(&root->values, stored, __ATOMIC_RELAXED);
	(void) __atomic_fetch_add(&root->version, 1, __ATOMIC_RELAXED);
	gh_cpu_count_bucket_reads(table, 2 * positions);
}

static void
shared_slice(GhCpuTable *table, GhRequest *request)
{
	const GhCpuView *view = &table->view;
	uint64_t	begin = reached(request);
	uint64_t	before = request->outcome.done;
	uint64_t	end = gh_cpu_slice_end(view, begin, request->count);
	Slice		slice = {.room = take_room(view, end - begin)};

	if (view->shape == GH_CPU_K8V8)
		exchange_range(GH_CPU_K8V8, table, request, begin, end, &slice);
	else
		exchange_range(GH_CPU_K4V4, table, request, begin, end, &slice);
	if (request->engine_state[STATE_LEFT] == 0)
		request->outcome.done = end;
	else
		request->engine_state[STATE_REACHED] = end;
	count_slice(table, &slice, end - begin);
	(void) __atomic_fetch_add(&view->root->writes, request->outcome.done - before, __ATOMIC_RELAXED);
}

/* Do handles on the table exchange under a shared lock?  Without locks there is one handle,
 * which is as fast without atomics. */
bool
gh_cpu_exchanges_together(const GhCpuTable *table, const GhCpuRoot *root)
{
	return root->options.concurrent_exchange &&
		gh_cpu_has_values_inside(gh_cpu_shape(&root->options)) && table->host.lock != NULL;
}

/*
 * Does a slice of the request under a shared lock, and tells its status; false: nothing
 * was done, an exclusive lock is needed.  A table that is being blanked is blanked on; where
 * others have the last pieces there is nothing to do for a moment.
 */
bool
gh_cpu_exchange_shared(GhCpuTable *table, GhRequest *request, GhStatus *status)
{
	const GhCpuRoot *root = table->host.address(table->host.ctx, table->root);
	uint64_t	hidden;
	bool		waits = false;
	bool		can;

	if (request->op != GH_EXCHANGE || !gh_cpu_exchanges_together(table, root) ||
		request->engine_state[STATE_LEFT] >= LEFT_MOST || reached(request) == request->count)
		return false;
	gh_cpu_lock(table, GH_LOCK_SHARED);
	/* shown by another handle since the lock was taken, or to be blanked, or else */
	hidden = __atomic_load_n(&root->hidden, __ATOMIC_RELAXED);
	can = table->view.hidden ? hidden == 0 || hidden == GH_CPU_BLANKING :
		root->resize.phase == GH_CPU_STEADY;
	if (can && table->view.hidden)
		waits = !gh_cpu_blank_shared(table);
	else if (can)
		shared_slice(table, request);
	gh_cpu_unlock(table);
	if (waits)
		(void) sched_yield();
	*status = request->outcome.done < request->count ? GH_BUSY : GH_OK;
	return can;
}
