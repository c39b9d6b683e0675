/*
 * layout_bench.cu
 *    The layout laboratory: measures, in one run and on the same random keys, the
 *    choices open to a two-choice bucketed cuckoo table, and checks every answer.
 *
 * usage: layout_bench [--part 1|2] [--n LOG2] [--only TEXT] [--no-roofline]
 *    --part 1 (default): probe styles, bucket sizes and layouts, inserts, deletes
 *    --part 2: 2-in-d against d-probe, early exits, marks, fingerprints, contention
 *    --only: rows whose lib contains TEXT
 *
 * Output: lib,op,keybits,n,load,Mops,ok
 *    lib is the variant: layout, bucket bytes, style.  tog = key and value side by side; apart = values
 *    in an array of their own; halves = keys in the first half of the bucket, values in the second.
 *    t1 = one thread per key; tile = a tile of lanes per bucket; occN = N blocks of 256 threads per
 *    multiprocessor asked for; two = two keys per lane; noearly = an empty slot does not end a miss.
 *    caskey, casentry = an insert publishes by a CAS of the key (value stored after it) or of the entry;
 *    evict = with eviction, hence every key placed; voter, trylock = under a lock per bucket.
 *    2inD = two of D subtables, Dprobe = a bucket in each of D subtables.
 *    Rows whose op ends in .reads have mean bucket reads per operation in the Mops column; insert rows
 *    are followed by .unplaced rows with the keys per million that found no place (without eviction
 *    that is many: the load is then below the nominal one).
 *    ok = the answers of the last timed run were checked and right.  The exit status is 1 if any was not.
 * Medians of 5 runs by device events, after one run to warm up.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "layout_lab.cuh"
#include "layout_part1.cuh"
#include "layout_part2.cuh"
#include "roofline.cuh"

static int usage()
{
	fprintf(stderr, "usage: layout_bench [--part 1|2] [--n LOG2] [--only TEXT] [--no-roofline]\n");
	return 2;
}

int main(int argc, char **argv)
{
	Options opt;
	bool roofs = true;

	for (int i = 1; i < argc; i++)
	{
		const bool more = i + 1 < argc;

		if (strcmp(argv[i], "--no-roofline") == 0)
			roofs = false;
		else if (strcmp(argv[i], "--part") == 0 && more)
			opt.part = atoi(argv[++i]);
		else if (strcmp(argv[i], "--n") == 0 && more)
			opt.bits = atoi(argv[++i]);
		else if (strcmp(argv[i], "--only") == 0 && more)
			opt.only = argv[++i];
		else
			return usage();
	}
	if (opt.bits < 10 || opt.bits > 28 || opt.part < 1 || opt.part > 2)
		return usage();
	printf("lib,op,keybits,n,load,Mops,ok\n");
	if (opt.part == 1)
	{
		run_part1<uint64_t>(opt);
		run_part1<uint32_t>(opt);
	}
	else
	{
		run_part2<uint64_t>(opt);
		run_part2<uint32_t>(opt);
		measure_contention(opt);
	}
	if (roofs)
	{
		roofline_rows(uint64_t(64) << 20, stdout);
		roofline_rows(uint64_t(16) << opt.bits, stdout);
	}
	return lab_failures() == 0 ? 0 : 1;
}
