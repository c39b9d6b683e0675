/*
 * engine_bench_device.cu
 *		Arrays in device memory: made and checked by a kernel; and the device's limits.
 *
 * The engine is another library with a CUDA runtime of its own, but both use the
 * device's primary context, so that memory allocated here can be given to it.
 */
#include "engine_bench.h"
#include "roofline.cuh"

#include <cstdlib>
#include <cstring>

static const int JOB_BLOCK = 256;
static const uint64_t JOB_BLOCKS_MAX = 1 << 16;

static void
check(cudaError_t status, const char *what)
{
	if (status != cudaSuccess)
		bench_die(what, cudaGetErrorString(status));
}

static void *
device_alloc(size_t bytes)
{
	void	   *memory = nullptr;

	/* no error that sticks: the next call works */
	return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : nullptr;
}

static void
device_free(void *memory)
{
	check(cudaFree(memory), "cudaFree");
}

static void
device_sync(void)
{
	check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

static void
device_fill(void *memory, int byte, size_t bytes)
{
	check(cudaMemset(memory, byte, bytes), "cudaMemset");
	device_sync();
}

static void
device_copy_in(void *to, const void *from, size_t bytes)
{
	check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}

static __global__ void
job_kernel(const BenchJob job, uint64_t count, unsigned long long *sum)
{
	const uint64_t step = (uint64_t) gridDim.x * blockDim.x;
	unsigned long long mine = 0;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
		mine += bench_element(&job, i);
	for (int distance = 16; distance > 0; distance /= 2)
		mine += __shfl_down_sync(~0u, mine, distance);
	if (threadIdx.x % 32 == 0 && mine != 0)
		atomicAdd(sum, mine);
}

static uint64_t
device_run(const BenchJob *job, uint64_t count)
{
	static unsigned long long *sum;
	const uint64_t blocks = (count + JOB_BLOCK - 1) / JOB_BLOCK;
	unsigned long long result = 0;

	if (count == 0)
		return 0;
	if (sum == nullptr)
		check(cudaMalloc(&sum, sizeof(*sum)), "cudaMalloc");
	check(cudaMemset(sum, 0, sizeof(*sum)), "cudaMemset");
	job_kernel<<<(unsigned) (blocks < JOB_BLOCKS_MAX ? blocks : JOB_BLOCKS_MAX), JOB_BLOCK>>>
		(*job, count, sum);
	check(cudaGetLastError(), "job_kernel");
	check(cudaMemcpy(&result, sum, sizeof(result), cudaMemcpyDeviceToHost), "job_kernel");
	return result;
}

BenchPlace
bench_device_place(void)
{
	BenchPlace	place = {};

	check(cudaSetDevice(0), "cudaSetDevice");
	place.on_device = true;
	place.alloc = device_alloc;
	place.free = device_free;
	place.fill = device_fill;
	place.copy_in = device_copy_in;
	place.run = device_run;
	place.sync = device_sync;
	return place;
}

void
bench_device_roofline(Bench *bench, uint64_t bytes)
{
	FILE	   *rows = tmpfile();
	char		line[256];
	char		op[64];
	int			width;
	double		rate;
	double		gigabytes;

	if (rows == nullptr)
		bench_die("roofline", "no temporary file");
	roofline_rows(bytes, rows);
	rewind(rows);
	while (fgets(line, sizeof(line), rows) != nullptr)
	{
		line[strcspn(line, "\n")] = '\0';
		printf("%s,,,,,\n", line);
		if (sscanf(line, "roofline,%63[^,],%d,%*[^,],%*[^,],%lf,%lfGB/s", op, &width, &rate,
				   &gigabytes) != 4)
			continue;
		if (strcmp(op, "gather") == 0 && width == 64)
			bench->roof[BENCH_ROOF_GATHER] = rate;
		else if (strcmp(op, "atomicCAS64") == 0)
			bench->roof[BENCH_ROOF_CAS] = rate;
		else if (strcmp(op, "stream_copy") == 0)
			bench->roof[BENCH_ROOF_COPY] = gigabytes;
	}
	fclose(rows);
	fflush(stdout);
}
