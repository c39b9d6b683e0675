#!/usr/bin/env bash
#
# page_bench.sh TREE PORT [OUTDIR]: what it costs the host to supply a page of a table that
# lies in shared_buffers, in each of the ways that gpuhash_measure_pages knows
# (test/modules/gpuhash_test/measure_pages.c), and PostgreSQL's own count(*) over the same table beside it.
#
# TREE is a PostgreSQL installation with gpuhash built with FAULT_POINTS=yes, PORT the
# socket's number of its server, which listens in HOST and has shared_buffers for both
# tables.  Makes the tables once, rows of 52 bytes: "visible" after VACUUM, all pages
# all-visible, and "updated", in every page of which one row of a hundred was updated since.
#
# In each of ROUNDS rounds every way has its turn, in PROCESSES processes at once, each of
# which reads the whole table REPS times from another place on.  Appends each pass to
# OUTDIR/page_bench.tsv.  Prints the medians of this run's passes (also into
# OUTDIR/page_summary.txt): nanoseconds a page and a tuple by the clock, a page in processor
# time, which other work on the machine disturbs less, and the ratio of either to count(*).
# Status 1 where ways did not see the same rows as count(*), or pages were not in shared_buffers.
#
# Environment
#	ROWS		of each table (default: 5000000)
#	PROCESSES	default: 1 and the number of processors
#	WINDOWS		pages that stay pinned, within one process's share of shared_buffers
#			(default: 1 8 64 512)
#	AREA		pages of the area for copies (default: 8192, 64 MB), over all processes
#	ROUNDS, REPS	default: 5, 3
#	HOST		folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bench_begin "$@"
rows=${ROWS:-5000000}
tsv=$out/page_bench.tsv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -s "$tsv" ] || printf 'run\tserver\ttable\tprocesses\tway\twindow\tring\tround\tpages\ttuples\tchecksum\treads\tns\tcpu_ns\n' >"$tsv"
run=$(date -u +%FT%TZ)

export PGOPTIONS="-c statement_timeout=300s -c jit=off -c max_parallel_workers_per_gather=0 -c client_min_messages=warning"

# make_table NAME SQL: SQL is what happens after it was vacuumed
make_table() {
	[ "$(sql -c "SELECT count(*) FROM pg_class WHERE relname = '$1' AND reltuples > 0.98 * $rows AND obj_description(oid, 'pg_class') = 'made'")" = 0 ] || return 0
	sql -c "DROP TABLE IF EXISTS $1" \
		-c "CREATE UNLOGGED TABLE $1 (k bigint NOT NULL, v bigint NOT NULL, g int NOT NULL) WITH (autovacuum_enabled = off)" \
		-c "INSERT INTO $1 SELECT i, hashint8extended(i, 11) & 1048575, i % 1000 FROM generate_series(1, $rows) i" \
		-c "VACUUM ANALYZE $1" -c "$2" -c "COMMENT ON TABLE $1 IS 'made'"
}

# one_process TABLE WAY WINDOW RING START TIME: waits until TIME, then its passes as rows
one_process() {
	cat <<-SQL
		DO 'BEGIN PERFORM pg_sleep(greatest(0, $6 - extract(epoch FROM clock_timestamp()))); END';
		SELECT * FROM gpuhash_measure_pages('$1', '$2', $3, $4, $5, ${REPS:-3});
	SQL
}

# turn ROUND TABLE PROCESSES WAY WINDOW RING
turn() {
	local i blocks pids=() pid start
	blocks=$(sql -c "SELECT pg_relation_size('$2') / 8192")
	start=$(awk -v now="$EPOCHREALTIME" 'BEGIN { printf "%.3f", now + 0.3 }')
	for ((i = 0; i < $3; i++)); do
		one_process "$2" "$4" "$5" "$6" "$((blocks * i / $3))" "$start" | sql -F "$(printf '\t')" -f - >"$work/process.$i" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid"; done
	cat "$work"/process.* | awk -v OFS='\t' -v turn="$run $server ${2#page_bench_} $3 $4 $5 $6 $1" '
		{ fields = turn; gsub(" ", "\t", fields); print fields, $0 }' >>"$tsv"
	rm -f "$work"/process.*
}

summary() {
	tail -n +2 "$tsv" | awk -F '\t' -v run="$run" -v order='sort -k1,1r -k2,2n -k3,3 -k5,5 -k4,4n' '
		$1 == run {
			cell = $3 FS $4 FS $5 FS $6 FS $7; n[cell]++; clock[cell, n[cell]] = $13 / $9; cpu[cell, n[cell]] = $14 / $9; page[cell] = $10 / $9
			if (!($3 in tuples)) tuples[$3] = $10
			differ += $10 != tuples[$3]; misses += $12 != 0
			if ($5 != "count") { if (!($3 in sum)) sum[$3] = $11; differ += $11 != sum[$3] } }
		function median(a, c,   i, j, x, v) {
			for (i = 1; i <= n[c]; i++) { x = a[c, i]; for (j = i; j > 1 && v[j - 1] > x; j--) v[j] = v[j - 1]; v[j] = x }
			return n[c] % 2 ? v[(n[c] + 1) / 2] : (v[n[c] / 2] + v[n[c] / 2 + 1]) / 2 }
		END {
			for (cell in n) {
				split(cell, f, FS); own = f[1] FS f[2] FS "count" FS 1 FS "false"; ns = median(clock, cell); spent = median(cpu, cell)
				printf "%-8s %9s %-14s %6s %6s %8.0f %8.2f %8.3f %8.0f %8.3f\n", f[1], f[2], f[3], f[4], f[5],
					ns, ns / page[cell], ns / median(clock, own), spent, spent / median(cpu, own) | order }
			close(order)
			print differ ? "ROWS DIFFER" : "all ways see the rows of count(*), and the same bytes"
			if (misses) print "PAGES WERE NOT IN shared_buffers in " misses " passes"
			exit differ + misses > 0 }'
}

sql -c "CREATE EXTENSION IF NOT EXISTS gpuhash_test CASCADE"
make_table page_bench_visible "SELECT"
make_table page_bench_updated "UPDATE page_bench_updated SET v = v + 1 WHERE k % 100 = 0"
server=$(sql -c "SHOW server_version")
# pg_settings.setting is in pages
pool=$(sql -c "SELECT setting FROM pg_settings WHERE name = 'shared_buffers'")
need=$(sql -c "SELECT (pg_relation_size('page_bench_visible') + pg_relation_size('page_bench_updated')) / 8192")
if [ "$need" -gt "$((pool * 9 / 10))" ]; then
	echo "the tables have $need pages, shared_buffers $pool: raise shared_buffers or lower ROWS" >&2
	exit 1
fi
ways='pinned copied'
[ "${server%%[.a-z]*}" -lt 17 ] || ways="$ways stream_pinned stream_copied"

# turns PROCESSES: what has its turn in a round: way, window, ring
turns() {
	local way window
	echo "count 1 false"
	echo "source 64 false"
	for way in $ways; do
		case $way in
			*copied)
				echo "$way $((${AREA:-8192} / $1)) false"
				echo "$way $((${AREA:-8192} / $1)) true" ;;
			*)
				for window in ${WINDOWS:-1 8 64 512}; do
					echo "$way $window false"
				done
				echo "$way 8 true" ;;
		esac
	done
}

for ((round = 1; round <= ${ROUNDS:-5}; round++)); do
	for processes in ${PROCESSES:-$(printf '1\n%s\n' "$(nproc)" | sort -nu)}; do
		for table in page_bench_visible page_bench_updated; do
			while read -r way window ring; do
				turn "$round" "$table" "$processes" "$way" "$window" "$ring"
			done < <(turns "$processes")
		done
	done
done
{
	printf '%-8s %9s %-14s %6s %6s %8s %8s %8s %8s %8s\n' table processes way window ring ns/page ns/tuple ratio cpu/page ratio
	summary
} | tee "$out/page_summary.txt"
