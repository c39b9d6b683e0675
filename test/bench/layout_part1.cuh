/*
 * layout_part1.cuh
 *    First part of the laboratory: probe style, bucket size and layout, how an
 *    insert publishes an entry, partitioned batches, delete.
 */
#pragma once

#include "layout_lab.cuh"

/* One layout at one load: builds its table, then measures on it. */
template <class L> struct Trial {
	using K = typename L::key_t;
	Lab<K> &lab;
	std::string name;
	L t;
	uint64_t placed = 0;

	Trial(Lab<K> &l, const char *n) : lab(l), name(n), t(lab_table<L>(l)) {}

	template <bool EVICT> void insert_plain()
	{
		constexpr Put M = L::together ? Put::entry : Put::key;

		insert_tile<L, M, EVICT, Arrays<K>, 1>
			<<<lab.grid, BLOCK>>>(t, Arrays<K>{lab.keys, lab.values}, lab.counters);
	}
	/* A table with every key in place, for finds and deletes. */
	void build()
	{
		lab_clear(lab, t);
		insert_plain<true>();
		LAB_CHECK(cudaGetLastError());
		if (!L::together)
			set_values<<<lab_slot_grid(t), BLOCK>>>(t);
		LAB_CHECK(cudaGetLastError());
		placed = lab.n - lab.counter(0);
	}
	template <typename Launch> float insert(const char *style, Launch launch)
	{
		const std::string full = name + "_" + style;

		if (!lab.wanted(full))
			return 0;

		const float ms = lab_time([&] { lab_clear(lab, t); }, launch);
		const uint64_t unplaced = lab.counter(0);

		lab.row(full, "insert", lab.mops(ms), lab_holds(lab, t, lab.n - unplaced));
		lab.row(full, "insert.unplaced", unplaced * 1e6 / lab.n, true);
		placed = 0;				/* the table is no longer build()'s */
		return ms;
	}
	template <typename Launch> void find(const char *style, Launch launch)
	{
		const std::string full = name + "_" + style;

		if (!lab.wanted(full))
			return;
		if (placed == 0)
			build();
		float ms = lab_time([&] { lab_poison(lab); }, [&] { launch(lab.hits); });
		lab.row(full, "find_hit", lab.mops(ms), lab_answers(lab, lab.hits, placed));
		ms = lab_time([&] { lab_poison(lab); }, [&] { launch(lab.misses); });
		lab.row(full, "find_miss", lab.mops(ms), lab_answers(lab, lab.misses, 0));
	}
	template <bool EARLY> void reads(const char *style)
	{
		const std::string full = name + "_" + style;

		if (!lab.wanted(full))
			return;
		if (placed == 0)
			build();
		lab.zero_counters();
		count_reads<L, EARLY><<<lab.grid, BLOCK>>>(t, lab.hits, lab.counters);
		count_reads<L, EARLY><<<lab.grid, BLOCK>>>(t, lab.misses, lab.counters + 1);
		LAB_CHECK(cudaGetLastError());
		lab.row(full, "find_hit.reads", 1 + double(lab.counter(0)) / lab.n, true);
		lab.row(full, "find_miss.reads", 1 + double(lab.counter(1)) / lab.n, true);
	}
	template <Put M> void remove(const char *style)
	{
		const std::string full = name + "_" + style;

		if (!lab.wanted(full))
			return;
		const float ms = lab_time(
			[&] { build(); lab.zero_counters(); },
			[&] { delete_tile<L, M><<<lab.grid, BLOCK>>>(t, lab.hits, lab.counters); });
		const bool all = lab.counter(0) == placed;

		placed = 0;
		lab.row(full, "delete", lab.mops(ms), all && lab_holds(lab, t, 0));
	}
	template <bool EARLY, int KEYS, int BLOCKS> void find_tiles(const char *style)
	{
		find(style, [&](const K *queries) {
			find_tile<L, EARLY, KEYS, BLOCKS><<<lab.grid / KEYS, BLOCK>>>(t, queries, lab.out);
		});
	}
	template <bool EARLY> void find_threads(const char *style)
	{
		find(style, [&](const K *queries) {
			find_thread<L, EARLY><<<lab.grid, BLOCK>>>(t, queries, lab.out);
		});
	}
};

/* What every layout is measured for. */
template <class L> void measure_layout(Trial<L> &trial)
{
	using K = typename L::key_t;
	Lab<K> &lab = trial.lab;
	L &t = trial.t;
	const Arrays<K> from = {lab.keys, lab.values};

	trial.placed = 0;			/* another layout may have used the memory */
	if (L::together)
	{
		trial.insert("casentry_evict", [&] { trial.template insert_plain<true>(); });
		trial.insert("casentry", [&] { trial.template insert_plain<false>(); });
	}
	trial.insert("caskey", [&] {
		insert_tile<L, Put::key, false, Arrays<K>, 1><<<lab.grid, BLOCK>>>(t, from, lab.counters);
	});
	trial.template find_tiles<true, 1, 1>("tile");
	trial.template reads<true>("tile");
	trial.template find_threads<true>("t1");
}

/* The styles compared on one layout only. */
template <class L> void measure_styles(Trial<L> &trial)
{
	using K = typename L::key_t;
	Lab<K> &lab = trial.lab;
	L &t = trial.t;
	const Arrays<K> from = {lab.keys, lab.values};

	trial.placed = 0;			/* another layout may have used the memory */
	trial.template find_tiles<false, 1, 1>("tile_noearly");
	trial.template reads<false>("tile_noearly");
	trial.template find_tiles<true, 1, 4>("tile_occ4");
	trial.template find_tiles<true, 1, 6>("tile_occ6");
	trial.template find_tiles<true, 1, 8>("tile_occ8");
	trial.template find_tiles<true, 2, 1>("tile_two");
	trial.template find_tiles<true, 2, 4>("tile_two_occ4");
	trial.insert("casentry_evict_occ6", [&] {
		insert_tile<L, Put::entry, true, Arrays<K>, 6><<<lab.grid, BLOCK>>>(t, from, lab.counters);
	});
	trial.insert("casentry_evict_occ8", [&] {
		insert_tile<L, Put::entry, true, Arrays<K>, 8><<<lab.grid, BLOCK>>>(t, from, lab.counters);
	});
	trial.insert("voter", [&] {
		insert_voter<<<lab.grid, BLOCK>>>(t, from, lab.locks, lab.counters);
	});
	trial.insert("trylock", [&] {
		insert_trylock<<<lab.grid, BLOCK>>>(t, from, lab.locks, lab.counters);
	});
	trial.template remove<Put::key>("delkey");
	trial.template remove<Put::entry>("delentry");
}

template <class L> void measure_partitioned(Trial<L> &trial)
{
	using K = typename L::key_t;
	Lab<K> &lab = trial.lab;
	L &t = trial.t;

	if (!lab.wanted(trial.name + "_partitioned_evict") && !lab.wanted(trial.name + "_partitioned"))
		return;
	Partition<K> part(lab);
	const float sort_ms = lab_time([] {}, [&] { part.run(); });
	const Packed<K> from = {part.entries[1]};

	lab.row(trial.name + "_partitioned", "partition", lab.mops(sort_ms), true);

	const float plain_ms = trial.insert("partitioned", [&] {
		insert_tile<L, Put::entry, false, Packed<K>, 1><<<lab.grid, BLOCK>>>(t, from, lab.counters);
	});
	const float evict_ms = trial.insert("partitioned_evict", [&] {
		insert_tile<L, Put::entry, true, Packed<K>, 1><<<lab.grid, BLOCK>>>(t, from, lab.counters);
	});

	if (plain_ms > 0)
		lab.row(trial.name + "_partitioned", "partition+insert", lab.mops(sort_ms + plain_ms), true);
	if (evict_ms > 0)
		lab.row(trial.name + "_partitioned_evict", "partition+insert", lab.mops(sort_ms + evict_ms), true);
}

template <typename K> void measure_load(Lab<K> &lab)
{
	Trial<Layout<K, 32, Place::together>> tog32(lab, "tog32");
	Trial<Layout<K, 64, Place::together>> tog64(lab, "tog64");
	Trial<Layout<K, 128, Place::together>> tog128(lab, "tog128");
	Trial<Layout<K, 32, Place::apart>> apart32(lab, "apart32");
	Trial<Layout<K, 64, Place::apart>> apart64(lab, "apart64");
	Trial<Layout<K, 128, Place::halves>> halves128(lab, "halves128");

	/* two slots with two choices cannot hold a load of 0.9 */
	if (decltype(tog32.t)::slots > 2 || lab.load < 0.85)
		measure_layout(tog32);
	measure_layout(tog64);
	measure_styles(tog64);
	measure_partitioned(tog64);
	measure_layout(tog128);
	measure_layout(apart32);
	measure_layout(apart64);
	measure_layout(halves128);
	if (sizeof(K) == 4)
		measure_styles(tog32);
}

template <typename K> void run_part1(const Options &opt)
{
	Lab<K> lab(opt, 0.8, 2 * sizeof(K));

	for (double load : {0.8, 0.9})
	{
		lab.load = load;
		measure_load(lab);
	}
}
