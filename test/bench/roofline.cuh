/*
 * roofline.cuh
 *    What the device can do at best with the accesses a hash table is made of.
 *
 * One function is meant for callers: roofline_rows(bytes, out) prints CSV rows
 *    roofline,OP,BYTES PER ACCESS,BUFFER BYTES,0.00,M accesses/s,USEFUL GB/s
 * for random accesses to one buffer of the given size.  Benchmarks print them in
 * the same run as their own rows, so that a slow card shows in both.  The limits
 * that matter to a table are the random gathers (a find reads one bucket), the
 * compare-and-swaps and 16-byte stores (an insert publishes one entry).
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

namespace roofline {

constexpr int BLOCK = 256;
constexpr int REPS = 5;
constexpr int WARMUPS = 3;		/* after one alone, the first row was seen 12 % low */

inline void check(cudaError_t err, const char *what)
{
	if (err == cudaSuccess)
		return;
	fprintf(stderr, "roofline: %s: %s\n", what, cudaGetErrorString(err));
	exit(1);
}

__device__ inline uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* A random number in [0, units) for access i. */
__device__ inline uint64_t draw(uint64_t i, uint64_t units)
{
	return __umul64hi(mix(i + 0x9e3779b97f4a7c15ull), units);
}

__global__ void fill(ulonglong2 *buf, uint64_t units)
{
	const uint64_t step = uint64_t(gridDim.x) * blockDim.x;

	for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < units; i += step)
		buf[i] = make_ulonglong2(mix(2 * i), mix(2 * i + 1));
}

/*
 * Each lane owns one random group of T x 16 bytes; in round r a tile of T lanes
 * reads the group of its lane r.  All T loads are in flight before the first use.
 * PROBE adds what a find does with a bucket: compare, ballot, shuffle.
 * IO adds a coalesced 8-byte key read and an 8-byte result store for each access.
 */
template <int T, bool PROBE, bool IO>
__global__ void gather(const ulonglong2 *buf, uint64_t groups, const uint64_t *keys,
					   uint64_t *out)
{
	const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
	const int rank = threadIdx.x % T;
	const int first = (threadIdx.x % 32) - rank;
	const uint64_t key = IO ? keys[i] : mix(i);
	const uint64_t group = __umul64hi(mix(key + 0x9e3779b97f4a7c15ull), groups);
	ulonglong2 d[T];
	uint64_t mine = 0;

#pragma unroll
	for (int r = 0; r < T; r++)
		d[r] = __ldg(buf + __shfl_sync(~0u, group, r, T) * T + rank);
#pragma unroll
	for (int r = 0; r < T; r++)
	{
		if (PROBE)
		{
			const uint64_t wanted = __shfl_sync(~0u, key, r, T);
			const uint32_t votes = __ballot_sync(~0u, d[r].x == wanted);
			const int source = (__ffs((votes >> first) & ((1u << T) - 1)) - 1) & (T - 1);
			const uint64_t value = __shfl_sync(~0u, d[r].y, source, T);

			if (rank == r)
				mine = value;
		}
		else
			mine ^= d[r].x ^ d[r].y;
	}
	if (IO)
		out[i] = mine;
	else if (mine == 0x123456789abcdefull)
		out[0] = mine;			/* keeps the loads alive; practically never taken */
}

/* One 64-bit compare-and-swap from all ones, at random 8-byte words. */
__global__ void cas64(unsigned long long *buf, uint64_t units, uint64_t *out)
{
	const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;

	if (atomicCAS(buf + draw(i, units), ~0ull, i) == 0x123456789abcdefull)
		out[0] = i;
}

/* The same with 16 bytes. */
__global__ void cas128(ulonglong2 *buf, uint64_t units, uint64_t *out)
{
	const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
	uint64_t lo;
	uint64_t hi;

	asm volatile("{\n\t.reg .b128 e, f, o;\n\t"
				 "mov.b128 e, {%3, %3};\n\tmov.b128 f, {%4, %4};\n\t"
				 "atom.relaxed.gpu.global.cas.b128 o, [%2], e, f;\n\t"
				 "mov.b128 {%0, %1}, o;\n\t}"
				 : "=l"(lo), "=l"(hi)
				 : "l"(buf + draw(i, units)), "l"(~0ull), "l"(i)
				 : "memory");
	if (lo == 0x123456789abcdefull && hi != lo)
		out[0] = i;
}

__global__ void store16(ulonglong2 *buf, uint64_t units)
{
	const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;

	buf[draw(i, units)] = make_ulonglong2(i, ~i);
}

__global__ void stream_copy(const ulonglong2 *from, ulonglong2 *to)
{
	const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;

	to[i] = from[i];
}

/* Median milliseconds of launch(), each preceded by an untimed prepare(). */
template <typename Prepare, typename Launch>
float median_ms(Prepare prepare, Launch launch)
{
	cudaEvent_t start;
	cudaEvent_t stop;
	float ms[REPS];

	check(cudaEventCreate(&start), "event");
	check(cudaEventCreate(&stop), "event");
	for (int rep = -WARMUPS; rep < REPS; rep++)
	{
		prepare();
		check(cudaEventRecord(start), "record");
		launch();
		check(cudaGetLastError(), "launch");
		check(cudaEventRecord(stop), "record");
		check(cudaEventSynchronize(stop), "run");
		if (rep >= 0)
			check(cudaEventElapsedTime(&ms[rep], start, stop), "time");
	}
	check(cudaEventDestroy(start), "event");
	check(cudaEventDestroy(stop), "event");
	std::sort(ms, ms + REPS);
	return ms[REPS / 2];
}

inline void row(FILE *out, const char *op, int width, uint64_t bytes, uint64_t accesses, float ms)
{
	fprintf(out, "roofline,%s,%d,%llu,0.00,%.1f,%.0fGB/s\n", op, width,
			static_cast<unsigned long long>(bytes), accesses / ms / 1e3,
			double(accesses) * width / ms / 1e6);
	fflush(out);
}

template <int T>
void gather_rows(FILE *out, const ulonglong2 *buf, uint64_t bytes, uint64_t accesses,
				 const uint64_t *keys, uint64_t *sink)
{
	const unsigned grid = accesses / BLOCK;
	const uint64_t groups = bytes / (16 * T);
	auto nothing = [] {};
	float ms;

	ms = median_ms(nothing, [=] { gather<T, false, false><<<grid, BLOCK>>>(buf, groups, keys, sink); });
	row(out, "gather", 16 * T, bytes, accesses, ms);
	ms = median_ms(nothing, [=] { gather<T, true, false><<<grid, BLOCK>>>(buf, groups, keys, sink); });
	row(out, "probe", 16 * T, bytes, accesses, ms);
	ms = median_ms(nothing, [=] { gather<T, true, true><<<grid, BLOCK>>>(buf, groups, keys, sink); });
	row(out, "probe_io", 16 * T, bytes, accesses, ms);
}

inline void write_rows(FILE *out, ulonglong2 *buf, uint64_t bytes, uint64_t accesses, uint64_t *sink)
{
	const unsigned grid = accesses / BLOCK;
	auto ones = [=] { check(cudaMemsetAsync(buf, 0xff, bytes), "memset"); };
	auto words = reinterpret_cast<unsigned long long *>(buf);
	float ms;

	ms = median_ms(ones, [=] { cas64<<<grid, BLOCK>>>(words, bytes / 8, sink); });
	row(out, "atomicCAS64", 8, bytes, accesses, ms);
	ms = median_ms(ones, [=] { cas128<<<grid, BLOCK>>>(buf, bytes / 16, sink); });
	row(out, "atomicCAS128", 16, bytes, accesses, ms);
	ms = median_ms(ones, [=] { store16<<<grid, BLOCK>>>(buf, bytes / 16); });
	row(out, "store16", 16, bytes, accesses, ms);
}

inline void rows(uint64_t bytes, FILE *out)
{
	const uint64_t accesses = 1ull << 26;
	const uint64_t size = std::max<uint64_t>(bytes / 8192, 1) * 8192;
	const uint64_t half = size / 2;
	ulonglong2 *buf = nullptr;
	uint64_t *keys = nullptr;
	uint64_t *sink = nullptr;

	check(cudaMalloc(&buf, size), "buffer");
	check(cudaMalloc(&keys, accesses * 8), "keys");
	check(cudaMalloc(&sink, accesses * 8), "results");
	fill<<<4096, BLOCK>>>(buf, size / 16);
	fill<<<4096, BLOCK>>>(reinterpret_cast<ulonglong2 *>(keys), accesses / 2);
	check(cudaGetLastError(), "fill");
	gather_rows<2>(out, buf, size, accesses, keys, sink);
	gather_rows<4>(out, buf, size, accesses, keys, sink);
	gather_rows<8>(out, buf, size, accesses, keys, sink);

	const float ms = median_ms([] {}, [=] {
		stream_copy<<<unsigned(half / 16 / BLOCK), BLOCK>>>(buf, buf + half / 16);
	});
	row(out, "stream_copy", 32, size, half / 16, ms);
	write_rows(out, buf, size, accesses, sink);
	check(cudaFree(buf), "free");
	check(cudaFree(keys), "free");
	check(cudaFree(sink), "free");
}

} /* namespace roofline */

/*
 * Print the rows for one buffer of `bytes` bytes (rounded down to 8 KiB, at least
 * 8 KiB).  Takes another 1 GiB of device memory for keys and results.
 */
inline void roofline_rows(uint64_t bytes, FILE *out)
{
	roofline::rows(bytes, out);
}
