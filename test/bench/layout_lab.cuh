/*
 * layout_lab.cuh
 *    Harness of the layout laboratory: the data of one key width, timing, rows,
 *    checks, and the batch partitioned by first bucket.
 */
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>

#include <cub/device/device_radix_sort.cuh>

#include "layout_ops.cuh"

constexpr int REPS = 5;
constexpr int COUNTERS = 3;

struct Options {
	int part = 1;
	int bits = 27;
	const char *only = nullptr;
};

/* How many rows said no. */
inline int &lab_failures()
{
	static int failures = 0;

	return failures;
}

/* Keys, queries and table memory for one key width. */
template <typename K> struct Lab {
	const Options &opt;
	uint64_t n;
	unsigned grid;
	double load = 0;
	K *keys;
	K *values;
	K *hits;
	K *misses;
	K *out;
	char *table;				/* memory of the table under test */
	uint32_t *locks;			/* a bit per bucket */
	unsigned long long *counters;	/* COUNTERS of CELLS words, see tally() */
	uint64_t table_bytes;
	uint64_t lock_bytes;

	/* Room for any layout at loads from min_load, with slot_bytes per slot. */
	Lab(const Options &o, double min_load, int slot_bytes) : opt(o)
	{
		n = uint64_t(1) << o.bits;
		grid = n / BLOCK;
		table_bytes = uint64_t(n / min_load) * slot_bytes + (1 << 20);
		lock_bytes = uint64_t(n / min_load) / 8 + 4096;
		LAB_CHECK(cudaMalloc(&keys, n * sizeof(K)));
		LAB_CHECK(cudaMalloc(&values, n * sizeof(K)));
		LAB_CHECK(cudaMalloc(&hits, n * sizeof(K)));
		LAB_CHECK(cudaMalloc(&misses, n * sizeof(K)));
		LAB_CHECK(cudaMalloc(&out, n * sizeof(K)));
		LAB_CHECK(cudaMalloc(&table, table_bytes));
		LAB_CHECK(cudaMalloc(&locks, lock_bytes));
		LAB_CHECK(cudaMalloc(&counters, COUNTERS * CELLS * sizeof(*counters)));
		make_data<<<grid, BLOCK>>>(keys, values, hits, misses, n, o.bits);
		LAB_CHECK(cudaGetLastError());
	}
	~Lab()
	{
		for (void *p : {(void *) keys, (void *) values, (void *) hits, (void *) misses, (void *) out,
						(void *) table, (void *) locks, (void *) counters})
			cudaFree(p);
	}
	Lab(const Lab &) = delete;
	Lab &operator=(const Lab &) = delete;

	bool wanted(const std::string &name) const
	{
		return opt.only == nullptr || name.find(opt.only) != std::string::npos;
	}
	void zero_counters()
	{
		LAB_CHECK(cudaMemsetAsync(counters, 0, COUNTERS * CELLS * sizeof(*counters)));
	}
	uint64_t counter(int i) const
	{
		unsigned long long cells[CELLS];

		LAB_CHECK(cudaMemcpy(cells, counters + i * CELLS, sizeof(cells), cudaMemcpyDeviceToHost));
		return std::accumulate(cells, cells + CELLS, uint64_t(0));
	}
	void row(const std::string &lib, const std::string &op, double figure, bool ok) const
	{
		row(lib, op, n, figure, ok);
	}
	void row(const std::string &lib, const std::string &op, uint64_t count, double figure, bool ok) const
	{
		printf("%s,%s,%d,%llu,%.2f,%.*f,%s\n", lib.c_str(), op.c_str(), int(8 * sizeof(K)),
			   static_cast<unsigned long long>(count), load, figure < 100 ? 3 : 1, figure,
			   ok ? "yes" : "no");
		fflush(stdout);
		if (!ok)
			lab_failures()++;
	}
	double mops(float ms) const { return n / ms / 1e3; }
};

/* Median milliseconds of launch(), each run preceded by an untimed prepare(). */
template <typename Prepare, typename Launch> float lab_time(Prepare prepare, Launch launch)
{
	cudaEvent_t start;
	cudaEvent_t stop;
	float ms[REPS];

	LAB_CHECK(cudaEventCreate(&start));
	LAB_CHECK(cudaEventCreate(&stop));
	for (int rep = -1; rep < REPS; rep++)
	{
		prepare();
		LAB_CHECK(cudaEventRecord(start));
		launch();
		LAB_CHECK(cudaGetLastError());
		LAB_CHECK(cudaEventRecord(stop));
		LAB_CHECK(cudaEventSynchronize(stop));
		if (rep >= 0)
			LAB_CHECK(cudaEventElapsedTime(&ms[rep], start, stop));
	}
	LAB_CHECK(cudaEventDestroy(start));
	LAB_CHECK(cudaEventDestroy(stop));
	std::sort(ms, ms + REPS);
	return ms[REPS / 2];
}

/* The layout over the laboratory's memory, sized for its load. */
template <class L> L lab_table(const Lab<typename L::key_t> &lab)
{
	L t;

	t.buckets = static_cast<uint32_t>(std::ceil(lab.n / lab.load / L::slots / L::subtables)) * L::subtables;
	t.base = reinterpret_cast<uint4 *>(lab.table);
	t.values = reinterpret_cast<typename L::key_t *>(lab.table + uint64_t(t.buckets) * L::bytes);
	if (uint64_t(t.buckets) * L::bucket_bytes() > lab.table_bytes
		|| t.buckets / 8 + 4 > lab.lock_bytes)
	{
		fprintf(stderr, "layout_bench: table memory too small\n");
		exit(1);
	}
	return t;
}

template <class L> void lab_clear(Lab<typename L::key_t> &lab, const L &t)
{
	LAB_CHECK(cudaMemsetAsync(lab.table, 0xff, uint64_t(t.buckets) * L::bucket_bytes()));
	LAB_CHECK(cudaMemsetAsync(lab.locks, 0, lab.lock_bytes));
	lab.zero_counters();
}

template <class L> unsigned lab_slot_grid(const L &t)
{
	return static_cast<unsigned>((uint64_t(t.buckets) * L::slots + BLOCK - 1) / BLOCK);
}

/* Check the answers in lab.out; `found` of them must be right, the others not found. */
template <typename K> bool lab_answers(Lab<K> &lab, const K *queries, uint64_t found)
{
	lab.zero_counters();
	check_finds<<<lab.grid, BLOCK>>>(queries, lab.out, lab.counters);
	LAB_CHECK(cudaGetLastError());
	return lab.counter(0) == found && lab.counter(1) == lab.n - found;
}

template <typename K> void lab_poison(Lab<K> &lab)
{
	LAB_CHECK(cudaMemsetAsync(lab.out, 0x5b, lab.n * sizeof(K)));
}

/* After an insert: as many entries as were placed, and a plain find gets each. */
template <class L> bool lab_holds(Lab<typename L::key_t> &lab, const L &t, uint64_t placed)
{
	lab.zero_counters();
	count_entries<<<lab_slot_grid(t), BLOCK>>>(t, lab.counters);
	LAB_CHECK(cudaGetLastError());
	if (lab.counter(0) != placed)
		return false;
	lab_poison(lab);
	find_thread<L, false><<<lab.grid, BLOCK>>>(t, lab.hits, lab.out);
	LAB_CHECK(cudaGetLastError());
	return lab_answers(lab, lab.hits, placed);
}

/* ---- a batch partitioned by the top 8 bits of the first bucket's number ---- */

template <typename K>
__global__ void pack_entries(const K *keys, const K *values, uint32_t *hashes, Entry<K> *entries)
{
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;
	const K key = __ldcs(keys + i);

	hashes[i] = static_cast<uint32_t>(hash_of(key) >> 32);	/* multiply-shift keeps its order */
	entries[i] = {key, __ldcs(values + i)};
}

template <typename K> struct Partition {
	Lab<K> &lab;
	uint32_t *hashes[2];
	Entry<K> *entries[2];
	void *temp = nullptr;
	size_t temp_bytes = 0;

	explicit Partition(Lab<K> &l) : lab(l)
	{
		for (int i = 0; i < 2; i++)
		{
			LAB_CHECK(cudaMalloc(&hashes[i], l.n * sizeof(uint32_t)));
			LAB_CHECK(cudaMalloc(&entries[i], l.n * sizeof(Entry<K>)));
		}
		sort();					/* only asks how much it needs */
		LAB_CHECK(cudaMalloc(&temp, temp_bytes));
	}
	~Partition()
	{
		for (void *p : {(void *) hashes[0], (void *) hashes[1], (void *) entries[0],
						(void *) entries[1], temp})
			cudaFree(p);
	}
	Partition(const Partition &) = delete;
	Partition &operator=(const Partition &) = delete;

	void sort()
	{
		LAB_CHECK(cub::DeviceRadixSort::SortPairs(temp, temp_bytes, hashes[0], hashes[1], entries[0],
												  entries[1], static_cast<int64_t>(lab.n), 24, 32));
	}
	void run()
	{
		pack_entries<<<lab.grid, BLOCK>>>(lab.keys, lab.values, hashes[0], entries[0]);
		LAB_CHECK(cudaGetLastError());
		sort();
	}
};
