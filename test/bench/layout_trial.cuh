/*
 * layout_trial.cuh
 *    One layout at one load: builds its table, times operations on it, checks the
 *    answers and prints the rows.
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
		count_reads<L, EARLY><<<lab.grid, BLOCK>>>(t, lab.misses, lab.counters + CELLS);
		LAB_CHECK(cudaGetLastError());
		lab.row(full, "find_hit.reads", 1 + double(lab.counter(0)) / lab.n, true);
		lab.row(full, "find_miss.reads", 1 + double(lab.counter(1)) / lab.n, true);
	}
	template <Put M, int SPREAD> void remove(const char *style)
	{
		const std::string full = name + "_" + style;

		if (!lab.wanted(full))
			return;
		const float ms = lab_time(
			[&] { build(); lab.zero_counters(); },
			[&] { delete_tile<L, M, SPREAD><<<lab.grid, BLOCK>>>(t, lab.hits, lab.counters); });
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
