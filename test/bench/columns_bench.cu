/*
 * columns_bench.cu
 *		What scans of columns in device memory would take, in place of pages, and what to take columns out of pages.
 *
 *	columns_bench [PAGES [INNER]]
 *
 * PAGES (default 318472) have 157 rows of two int8 and an int4 each, as the tables of resident.sh; INNER keys (default 10
 * million) are in a table of the engine's layout.  Sums of a column, and of a column and what is joined, are made by kernels that
 * do nothing else: no NULLs, no conditions, no rows that go back.  Milliseconds, the least of ten.
 *
 *	nvcc -O3 -std=c++17 -arch=native -Isrc -I. -o columns_bench test/bench/columns_bench.cu
 */
#include <stdio.h>
#include <stdlib.h>

#include "cuda/pipeline/table_locate.cuh"

#define PAGE_BYTES 8192u
#define PAGE_ROWS 157u
#define TUPLE_BYTES 48u
#define LINES_AT 24u
#define DATA_AT 24u
#define THREADS 256
#define REPEATS 10

#define CHECK(call) check(call, #call)

typedef unsigned long long word;

static void
check(cudaError_t status, const char *what)
{
	if (status == cudaSuccess)
		return;
	fprintf(stderr, "columns_bench: %s: %s\n", what, cudaGetErrorString(status));
	exit(2);
}

/* Keys without an order. */
static __device__ uint64_t
key_of(uint64_t number)
{
	return mix64(number + 1) >> 1;
}

static __device__ uint64_t
thread_number()
{
	return (uint64_t) blockIdx.x * blockDim.x + threadIdx.x;
}

static __global__ void
fill_pages(char *pages, uint64_t npages, uint64_t inner)
{
	uint64_t	row = thread_number();
	uint64_t	page = row / PAGE_ROWS;
	uint32_t	r = (uint32_t) (row % PAGE_ROWS);

	if (page >= npages)
		return;

	char	   *at = pages + page * PAGE_BYTES;
	uint32_t	tuple = PAGE_BYTES - (r + 1) * TUPLE_BYTES;

	*reinterpret_cast<uint32_t *>(at + LINES_AT + r * 4) = tuple | 1u << 15 | TUPLE_BYTES << 17;
	*reinterpret_cast<uint64_t *>(at + tuple + DATA_AT) = key_of(row % inner);
	*reinterpret_cast<uint64_t *>(at + tuple + DATA_AT + 8) = row & 1048575;
	*reinterpret_cast<uint32_t *>(at + tuple + DATA_AT + 16) = (uint32_t) (row % 1000);
}

/* At first free slots; those that find none are counted. */
static __global__ void
fill_table(const __grid_constant__ table_view view, uint64_t inner, word *lost)
{
	uint64_t	number = thread_number();
	candidates	candidate;

	if (number >= inner)
		return;
	candidate = key_candidates(view, hash_key(view.seed, key_of(number)));
	for (int which = 0; which < 2; which++)
		for (int slot = 0; slot < layout_k8v8::slots; slot++)
		{
			word	   *at = reinterpret_cast<word *>(candidate.bucket[which] + slot * layout_k8v8::slot_bytes);

			if (atomicCAS(at, ~0ull, (word) key_of(number)) == ~0ull)
			{
				at[1] = number & 1048575;
				return;
			}
		}
	atomicAdd(lost, 1ull);
}

/* A warp a page: its rows' columns, side by side. */
static __global__ void __launch_bounds__(THREADS)
take_out(const char *pages, uint64_t npages, uint64_t *keys, uint64_t *values, uint32_t *groups)
{
	uint64_t	page = thread_number() / 32;

	if (page >= npages)
		return;
	for (uint32_t r = threadIdx.x % 32; r < PAGE_ROWS; r += 32)
	{
		const char *at = pages + page * PAGE_BYTES;
		uint32_t	line = *reinterpret_cast<const uint32_t *>(at + LINES_AT + r * 4);
		const char *data = at + (line & 32767) + DATA_AT;
		uint64_t	row = page * PAGE_ROWS + r;

		keys[row] = *reinterpret_cast<const uint64_t *>(data);
		values[row] = *reinterpret_cast<const uint64_t *>(data + 8);
		groups[row] = *reinterpret_cast<const uint32_t *>(data + 16);
	}
}

static __device__ void
add_up(uint64_t sum, word *to)
{
	for (int offset = 16; offset > 0; offset /= 2)
		sum += __shfl_down_sync(~0u, sum, offset);
	if (threadIdx.x % 32 == 0)
		atomicAdd(to, (word) sum);
}

template <typename T> static __global__ void __launch_bounds__(THREADS)
sum_column(const T *values, uint64_t rows, word *to)
{
	uint64_t	sum = 0;

	for (uint64_t row = thread_number(); row < rows; row += (uint64_t) gridDim.x * blockDim.x)
		sum += values[row];
	add_up(sum, to);
}

static __global__ void __launch_bounds__(THREADS)
sum_joined(const __grid_constant__ table_view view, const uint64_t *keys, const uint64_t *values, uint64_t rows, word *to)
{
	uint64_t	sum = 0;

	for (uint64_t row = thread_number(); row < rows; row += (uint64_t) gridDim.x * blockDim.x)
	{
		uint64_t	found = 0;
		uint64_t   *place = nullptr;

		if (locate_key<layout_k8v8>(view, keys[row], &found, &place))
			sum += values[row] + found;
	}
	add_up(sum, to);
}

/* The least time of a launch. */
template <typename LAUNCH> static float
least(LAUNCH launch)
{
	cudaEvent_t begin;
	cudaEvent_t end;
	float		ms = 1e9f;

	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	for (int i = 0; i < REPEATS; i++)
	{
		float		took;

		CHECK(cudaEventRecord(begin));
		launch();
		CHECK(cudaGetLastError());
		CHECK(cudaEventRecord(end));
		CHECK(cudaEventSynchronize(end));
		CHECK(cudaEventElapsedTime(&took, begin, end));
		ms = took < ms ? took : ms;
	}
	return ms;
}

template <typename T> static T *
device_memory(uint64_t count)
{
	void	   *memory;

	CHECK(cudaMalloc(&memory, count * sizeof(T)));
	return static_cast<T *>(memory);
}

static unsigned
blocks_of(uint64_t threads)
{
	return (unsigned) ((threads + THREADS - 1) / THREADS);
}

static table_view
make_table(uint64_t inner)
{
	table_view	view = {};

	view.subtables = 2;
	view.pairs = 1;
	view.bound[0] = STEERING_EVEN;
	view.value_size = sizeof(uint64_t);
	view.seed = 1;
	view.ordered = 1;
	for (uint32_t s = 0; s < 2; s++)
	{
		/* two thirds full */
		view.sub[s].regions = 1;
		view.sub[s].span = (uint32_t) (inner * 3 / 2 / 2 / layout_k8v8::slots);
		view.sub[s].seed = hash_subtable_seed(view.seed, s);
		view.sub[s].slots = device_memory<char>((uint64_t) view.sub[s].span * BUCKET_BYTES);
		CHECK(cudaMemset(view.sub[s].slots, 0xff, (uint64_t) view.sub[s].span * BUCKET_BYTES));
	}
	return view;
}

int
main(int argc, char **argv)
{
	uint64_t	npages = argc > 1 ? strtoull(argv[1], NULL, 10) : 318472;
	uint64_t	inner = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000000;
	uint64_t	rows = npages * PAGE_ROWS;
	char	   *pages = device_memory<char>(npages * PAGE_BYTES);
	uint64_t   *keys = device_memory<uint64_t>(rows);
	uint64_t   *values = device_memory<uint64_t>(rows);
	uint32_t   *groups = device_memory<uint32_t>(rows);
	word	   *sums = device_memory<word>(2);
	table_view	view = make_table(inner);
	cudaDeviceProp properties;
	unsigned	grid;
	word		lost;
	float		out;
	float		wide;
	float		narrow;
	float		joined;

	CHECK(cudaGetDeviceProperties(&properties, 0));
	grid = (unsigned) properties.multiProcessorCount * (2048 / THREADS);
	CHECK(cudaMemset(sums, 0, 2 * sizeof(word)));
	fill_pages<<<blocks_of(rows), THREADS>>>(pages, npages, inner);
	fill_table<<<blocks_of(inner), THREADS>>>(view, inner, sums + 1);
	CHECK(cudaGetLastError());
	out = least([&] { take_out<<<blocks_of(npages * 32), THREADS>>>(pages, npages, keys, values, groups); });
	wide = least([&] { sum_column<<<grid, THREADS>>>(values, rows, sums); });
	narrow = least([&] { sum_column<<<grid, THREADS>>>(groups, rows, sums); });
	joined = least([&] { sum_joined<<<grid, THREADS>>>(view, keys, values, rows, sums); });
	CHECK(cudaMemcpy(&lost, sums + 1, sizeof(lost), cudaMemcpyDeviceToHost));
	printf("%s, %llu rows, %llu keys (%llu not in the table)\n", properties.name, (word) rows, (word) inner, lost);
	printf("bytes a row: pages %.1f, columns %.1f\n", (double) PAGE_BYTES / PAGE_ROWS, 8 + 8 + 4 + 3 / 8.0);
	printf("columns out of pages   %7.3f ms, %.2f ns a page\n", out, out * 1e6 / (double) npages);
	printf("sum of an int8         %7.3f ms\n", wide);
	printf("sum of an int4         %7.3f ms\n", narrow);
	printf("sums of a join         %7.3f ms\n", joined);
	return 0;
}
