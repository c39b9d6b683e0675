/*
 * layout_part2.cuh
 *    Second part of the laboratory: pairs of subtables against probing all of them,
 *    what a table keeps beside its buckets, and contention.
 */
#pragma once

#include <initializer_list>

#include "layout_contention.cuh"
#include "layout_filters.cuh"
#include "layout_subtables.cuh"
#include "layout_trial.cuh"

template <typename K>
bool any_wanted(const Lab<K> &lab, const std::string &name, std::initializer_list<const char *> styles)
{
	return std::any_of(styles.begin(), styles.end(),
					   [&](const char *style) { return lab.wanted(name + style); });
}

/* ---- 2-in-d against d-probe ---- */

template <typename K, int D> void measure_pairs(Lab<K> &lab)
{
	const std::string name = "tog64_2in" + std::to_string(D);
	Trial<Layout<K, 64, Place::together, D>> trial(lab, name.c_str());

	trial.insert("casentry_evict", [&] { trial.template insert_plain<true>(); });
	trial.template find_tiles<true, 1, 1>("early");
	trial.template reads<true>("early");
	trial.template find_tiles<false, 1, 1>("noearly");
	trial.template reads<false>("noearly");
}

template <class L, bool EARLY, bool OWN> void measure_walk(Trial<L> &trial, const char *style)
{
	using K = typename L::key_t;
	Lab<K> &lab = trial.lab;
	const std::string full = trial.name + "_" + style;

	trial.find(style, [&](const K *queries) {
		find_walk<L, EARLY, OWN, false><<<lab.grid, BLOCK>>>(trial.t, queries, lab.out, nullptr);
	});
	if (!lab.wanted(full))
		return;
	lab.zero_counters();
	find_walk<L, EARLY, OWN, true><<<lab.grid, BLOCK>>>(trial.t, lab.hits, lab.out, lab.counters);
	find_walk<L, EARLY, OWN, true><<<lab.grid, BLOCK>>>(trial.t, lab.misses, lab.out, lab.counters + CELLS);
	LAB_CHECK(cudaGetLastError());
	lab.row(full, "find_hit.reads", double(lab.counter(0)) / lab.n, true);
	lab.row(full, "find_miss.reads", double(lab.counter(1)) / lab.n, true);
}

template <typename K, int D> void measure_walks(Lab<K> &lab)
{
	using L = Layout<K, 64, Place::together, D>;
	const std::string name = "tog64_" + std::to_string(D) + "probe";
	Trial<L> trial(lab, name.c_str());

	if (!any_wanted(lab, name, {"_casentry_evict", "_early", "_noearly", "_fixed"}))
		return;

	auto insert = [&] {
		insert_walk<<<lab.grid, BLOCK>>>(trial.t, Arrays<K>{lab.keys, lab.values}, lab.counters);
	};
	const float ms = lab_time([&] { lab_clear(lab, trial.t); }, insert);
	const uint64_t unplaced = lab.counter(0);

	/* a plain find knows two candidates only: the finds below check the answers */
	lab.zero_counters();
	count_entries<<<lab_slot_grid(trial.t), BLOCK>>>(trial.t, lab.counters);
	LAB_CHECK(cudaGetLastError());
	trial.placed = lab.n - unplaced;
	lab.row(name + "_casentry_evict", "insert", lab.mops(ms), lab.counter(0) == trial.placed);
	lab.row(name + "_casentry_evict", "insert.unplaced", unplaced * 1e6 / lab.n, true);
	measure_walk<L, true, true>(trial, "early");
	measure_walk<L, false, true>(trial, "noearly");
	measure_walk<L, false, false>(trial, "fixed");
}

/* ---- early exits, overflow marks, fingerprints ---- */

template <class L, bool AHEAD> void measure_marks(Trial<L> &trial, const char *style)
{
	using K = typename L::key_t;
	Lab<K> &lab = trial.lab;
	const std::string full = trial.name + "_" + style;

	trial.find(style, [&](const K *queries) {
		find_marked<L, AHEAD, false>
			<<<lab.grid, BLOCK>>>(trial.t, lab.locks, queries, lab.out, nullptr);
	});
	if (!lab.wanted(full))
		return;
	lab.zero_counters();
	find_marked<L, AHEAD, true>
		<<<lab.grid, BLOCK>>>(trial.t, lab.locks, lab.hits, lab.out, lab.counters);
	find_marked<L, AHEAD, true>
		<<<lab.grid, BLOCK>>>(trial.t, lab.locks, lab.misses, lab.out, lab.counters + CELLS);
	LAB_CHECK(cudaGetLastError());
	lab.row(full, "find_hit.reads", 1 + double(lab.counter(0)) / lab.n, true);
	lab.row(full, "find_miss.reads", 1 + double(lab.counter(1)) / lab.n, true);
}

template <class L, bool EARLY>
void measure_prints(Trial<L> &trial, const uint64_t *groups, const char *style)
{
	using K = typename L::key_t;
	Lab<K> &lab = trial.lab;
	const std::string full = trial.name + "_" + style;

	trial.find(style, [&](const K *queries) {
		find_prints<L, EARLY, false>
			<<<lab.grid, BLOCK>>>(trial.t, groups, queries, lab.out, nullptr);
	});
	if (!lab.wanted(full))
		return;
	for (const char *op : {"find_hit", "find_miss"})
	{
		lab.zero_counters();
		find_prints<L, EARLY, true><<<lab.grid, BLOCK>>>(
			trial.t, groups, strcmp(op, "find_hit") == 0 ? lab.hits : lab.misses, lab.out, lab.counters);
		LAB_CHECK(cudaGetLastError());
		lab.row(full, std::string(op) + ".group_reads", double(lab.counter(0)) / lab.n, true);
		lab.row(full, std::string(op) + ".slot_reads", double(lab.counter(1)) / lab.n, true);
	}
}

/* Every way to shorten a find, on one built table of `name`. */
template <class L> void measure_shortcuts(Lab<typename L::key_t> &lab, const std::string &name)
{
	Trial<L> trial(lab, name.c_str());
	uint64_t *groups;

	if (!any_wanted(lab, name, {"_early", "_noearly", "_mark", "_mark_ahead", "_prints_early",
								"_prints_noearly"}))
		return;
	trial.build();
	set_marks<<<lab_slot_grid(trial.t), BLOCK>>>(trial.t, lab.locks);
	LAB_CHECK(cudaGetLastError());
	trial.template find_tiles<true, 1, 1>("early");
	trial.template reads<true>("early");
	trial.template find_tiles<false, 1, 1>("noearly");
	trial.template reads<false>("noearly");
	measure_marks<L, false>(trial, "mark");
	measure_marks<L, true>(trial, "mark_ahead");
	if constexpr (L::slots == 8)
	{
		LAB_CHECK(cudaMalloc(&groups, uint64_t(trial.t.buckets) * 8));
		set_fingerprints<<<lab_slot_grid(trial.t), BLOCK>>>(trial.t, reinterpret_cast<uint8_t *>(groups));
		LAB_CHECK(cudaGetLastError());
		measure_prints<L, true>(trial, groups, "prints_early");
		measure_prints<L, false>(trial, groups, "prints_noearly");
		LAB_CHECK(cudaFree(groups));
	}
}

/* ---- contention ---- */

/* Upserts of one kind on one table; `launch(grid)` runs the first grid x 256 operations. */
template <class L> struct Upserts {
	Lab<uint64_t> &lab;
	L t;
	WideValues wide;
	uint64_t distinct;

	template <typename Launch> float once(uint64_t ops, Launch launch)
	{
		cudaEvent_t start;
		cudaEvent_t stop;
		float ms;

		lab_clear(lab, t);
		LAB_CHECK(cudaEventCreate(&start));
		LAB_CHECK(cudaEventCreate(&stop));
		LAB_CHECK(cudaEventRecord(start));
		launch(static_cast<unsigned>(ops / BLOCK));
		LAB_CHECK(cudaGetLastError());
		LAB_CHECK(cudaEventRecord(stop));
		LAB_CHECK(cudaEventSynchronize(stop));
		LAB_CHECK(cudaEventElapsedTime(&ms, start, stop));
		LAB_CHECK(cudaEventDestroy(start));
		LAB_CHECK(cudaEventDestroy(stop));
		return ms;
	}
	bool sound(uint64_t ops)
	{
		const uint64_t unplaced = lab.counter(0);

		lab.zero_counters();
		check_upserts<<<static_cast<unsigned>(ops / BLOCK), BLOCK>>>(t, wide, lab.keys, ops, lab.counters);
		count_entries<<<lab_slot_grid(t), BLOCK>>>(t, lab.counters + 2 * CELLS);
		LAB_CHECK(cudaGetLastError());

		/* each key has the same number of operations, and all of them fail or none */
		return lab.counter(1) == unplaced && lab.counter(0) == ops - unplaced
			&& lab.counter(2) == distinct - unplaced / (ops / distinct);
	}
	/* As many operations as fit about two seconds; medians only when they are cheap. */
	template <typename Launch> void measure(const char *style, Launch launch)
	{
		const std::string name = std::string(style) + "_k" + std::to_string(distinct);
		uint64_t ops = std::max(lab.n / 64, distinct);
		float ms;

		if (!lab.wanted(name))
			return;
		while ((ms = once(ops, launch)) * 8 < 2000 && ops < lab.n)
			ops = std::min(8 * ops, lab.n);
		if (ms < 100)
			ms = lab_time([&] { lab_clear(lab, t); },
						  [&] { launch(static_cast<unsigned>(ops / BLOCK)); });

		const bool ok = sound(ops);
		const double nominal = lab.load;

		lab.load = double(distinct) / (double(t.buckets) * L::slots);
		lab.row(name, "upsert", ops, ops / ms / 1e3, ok);
		lab.load = nominal;
	}
};

inline void measure_narrow(Lab<uint64_t> &lab, uint64_t distinct)
{
	using L = Layout<uint64_t, 64, Place::together>;
	Upserts<L> u = {lab, lab_table<L>(lab), {nullptr, 0}, distinct};
	const Arrays<uint64_t> from = {lab.keys, lab.values};
	L &t = u.t;

	u.measure("narrow_cas128", [&](unsigned grid) {
		upsert_cas<L, false><<<grid, BLOCK>>>(t, from, lab.counters);
	});
	u.measure("narrow_cas128_merge", [&](unsigned grid) {
		upsert_cas<L, true><<<grid, BLOCK>>>(t, from, lab.counters);
	});
	u.measure("narrow_store", [&](unsigned grid) {
		insert_tile<L, Put::entry, false, Arrays<uint64_t>, 1><<<grid, BLOCK>>>(t, from, lab.counters);
	});
	u.measure("narrow_voter", [&](unsigned grid) {
		insert_voter<<<grid, BLOCK>>>(t, from, lab.locks, lab.counters);
	});
	u.measure("narrow_trylock", [&](unsigned grid) {
		insert_trylock<<<grid, BLOCK>>>(t, from, lab.locks, lab.counters);
	});
	u.measure("narrow_spin", [&](unsigned grid) {
		upsert_spin<<<grid, BLOCK>>>(t, from, lab.locks, lab.counters);
	});
}

inline void measure_wide(Lab<uint64_t> &lab, uint64_t distinct)
{
	using L = Layout<uint64_t, 64, Place::apart>;
	Upserts<L> u = {lab, lab_table<L>(lab), {nullptr, L::slots}, distinct};
	const Arrays<uint64_t> from = {lab.keys, lab.values};
	L &t = u.t;
	WideValues &wide = u.wide;

	LAB_CHECK(cudaMalloc(&wide.words, uint64_t(t.buckets) * L::slots * WIDE_WORDS * sizeof(uint64_t)));
	u.measure("wide_voter", [&](unsigned grid) {
		wide_voter<<<grid, BLOCK>>>(t, wide, from, lab.locks, lab.counters);
	});
	u.measure("wide_trylock", [&](unsigned grid) {
		wide_trylock<<<grid, BLOCK>>>(t, wide, from, lab.locks, lab.counters);
	});
	u.measure("wide_spin", [&](unsigned grid) {
		wide_spin<<<grid, BLOCK>>>(t, wide, from, lab.locks, lab.counters);
	});
	LAB_CHECK(cudaFree(wide.words));
}

inline void measure_contention(const Options &opt)
{
	Options few = opt;

	few.bits = std::min(opt.bits, 24);

	Lab<uint64_t> lab(few, 2.0, 16);

	lab.load = 4.0;				/* of 2^24 operations: 2^20 keys fill a quarter */
	for (uint64_t distinct : {uint64_t(16), uint64_t(1) << 10, uint64_t(1) << 20})
	{
		if (distinct > lab.n / 16)
			continue;
		make_upserts<<<lab.grid, BLOCK>>>(lab.keys, lab.values, distinct);
		LAB_CHECK(cudaGetLastError());
		measure_narrow(lab, distinct);
		measure_wide(lab, distinct);
	}
}

/* ---- all of it ---- */

template <typename K> void run_part2(const Options &opt)
{
	Lab<K> lab(opt, 0.6, 2 * sizeof(K));

	for (double load : {0.6, 0.8, 0.9})
	{
		lab.load = load;
		measure_shortcuts<Layout<K, 64, Place::together>>(lab, "tog64");
		if (sizeof(K) == 8)
			measure_shortcuts<Layout<K, 128, Place::together>>(lab, "tog128");
		if (load < 0.7)
			continue;
		measure_pairs<K, 2>(lab);
		measure_pairs<K, 4>(lab);
		measure_pairs<K, 8>(lab);
		measure_walks<K, 2>(lab);
		measure_walks<K, 3>(lab);
		measure_walks<K, 4>(lab);
	}
}
