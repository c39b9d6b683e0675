/*
 * layout_part1.cuh
 *    First part of the laboratory: probe style, bucket size and layout, how an
 *    insert publishes an entry, partitioned batches, delete.
 */
#pragma once

#include "layout_trial.cuh"

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
	trial.template remove<Put::key, CELLS>("delkey");
	trial.template remove<Put::entry, CELLS>("delentry");
	trial.template remove<Put::entry, 1>("delentry_onecounter");
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
