#!/usr/bin/env bash
#
# join_bench.sh TREE PORT [OUTDIR]: times joins of a big table with a smaller one, and
# aggregates over the big one alone.
#
# TREE is a PostgreSQL installation, PORT the socket's number of its server, which
# listens in HOST.  Makes the tables once: unique random bigint keys, each outer
# row with one match or (MATCH) none, 52 bytes a row, nothing in order.  Then times QUERIES
# and appends every time to OUTDIR/join_bench.tsv.  Prints the medians
# of all tags there (also into OUTDIR/summary.txt), their ratio to the tag "native", and whether all results
# agree.  One EXPLAIN (ANALYZE, VERBOSE) of each join goes to OUTDIR/plans.txt, unless PLANS=no.
#
# Environment
#	TAG			name of this run (default: native); EXTRA: its settings, as SQL
#	APPEND=1	keep what OUTDIR has from other tags
#	INNERS		rows of the smaller table (default: 1000000 10000000)
#	OUTERS		rows of the big table (default: 50000000)
#	WORKERS		parallel workers (default: 0), one run for each number
#	MATCH		percent of outer rows that have a match (default: 100)
#	QUERIES		of scan_count scan_sum scan_group join_count join_sum join_group (default:
#			scan_sum join_sum); a group is one of 1,000
#	REPS		repetitions (default: 3), after one that is not counted
#	WORK_MEM	default: 4GB, so that no hash table spills
#	HOST		folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bench_begin "$@"
tag=${TAG:-native}
tsv=$out/join_bench.tsv
if [ -z "${APPEND:-}" ] || [ ! -s "$tsv" ]; then
	printf 'tag\tinner\touter\tworkers\tquery\tkind\trep\tms\tresult\n' >"$tsv"
fi

# make_table NAME ROWS KEY: filled by one job a processor
make_table() {
	local name=$1
	! has_rows "$name" "$2" || return 0
	sql -c "DROP TABLE IF EXISTS $name; CREATE UNLOGGED TABLE $name (k bigint NOT NULL, v bigint NOT NULL, g int NOT NULL) WITH (autovacuum_enabled = off)" 2>/dev/null
	fill "$name" "$2" "$(nproc)" "$3, hashint8extended(i, 11) & 1048575, i % 1000"
	sql -c "VACUUM ANALYZE $name"
}

# one_session INNER OUTER WORKERS: the queries, timed by psql
one_session() {
	local query
	echo "SET jit = off; SET work_mem = '${WORK_MEM:-4GB}'; SET max_parallel_workers_per_gather = $3;"
	echo "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;"
	echo "SET enable_mergejoin = off; SET enable_nestloop = off;"
	echo "${EXTRA:-}"
	for query in "scan_count SELECT count(*) FROM $2" \
		"scan_sum SELECT sum(o.v) FROM $2 o" \
		"scan_group SELECT count(*), max(n), sum(s) FROM (SELECT g, count(*) AS n, sum(v) AS s FROM $2 GROUP BY g) x" \
		"join_count SELECT count(*) FROM $2 o JOIN $1 i ON i.k = o.k" \
		"join_sum SELECT sum(o.v), sum(i.v) FROM $2 o JOIN $1 i ON i.k = o.k" \
		"join_group SELECT count(*), max(n), sum(s) FROM (SELECT i.g, count(*) AS n, sum(o.v) AS s FROM $2 o JOIN $1 i ON i.k = o.k GROUP BY i.g) x"; do
		[[ " ${QUERIES:-scan_sum join_sum} " == *" ${query%% *} "* ]] || continue
		for ((rep = 0; rep <= ${REPS:-3}; rep++)); do
			printf '\\echo @ %s %s\n\\timing on\n%s;\n\\timing off\n' "${query%% *}" "$rep" "${query#* }"
		done
		[[ $query == scan_* ]] || [ "${PLANS:-yes}" = no ] || printf '\\echo @plan\nEXPLAIN (ANALYZE, VERBOSE) %s;\n' "${query#* }"
	done
}

for inner in ${INNERS:-1000000 10000000}; do
	make_table "bench_inner_$inner" "$inner" "hashint8extended(i, 7)"
	for outer in ${OUTERS:-50000000}; do
		table=bench_outer_${outer}_$inner
		size=$outer
		# 50000000_1: of which one percent matches
		[ "${MATCH:-100}" = 100 ] || { table=${table}_$MATCH size=${outer}_$MATCH; }
		# keys beyond those of the inner table have no match
		make_table "$table" "$outer" \
			"hashint8extended(1 + (hashint8extended(i, 5) & 9223372036854775807) % ($inner::bigint * 100 / ${MATCH:-100}), 7)"
		for workers in ${WORKERS:-0}; do
			one_session "bench_inner_$inner" "$table" "$workers" | sql -f - |
				awk -v OFS='\t' -v tag="$tag" -v inner="$inner" -v outer="$size" -v workers="$workers" -v plans="$out/plans.txt" '
					$1 == "@plan" { plan = 1; print "\n" tag ", " outer " x " inner ", " workers " workers" >>plans; next }
					$1 == "@" { query = $2; rep = $3; plan = 0; next }
					plan { print >>plans; next }
					/^Time:/ { if (rep > 0) print tag, inner, outer, workers, query, "plain", rep, $2, result; next }
					{ result = $0 }' >>"$tsv"
		done
	done
done

tail -n +2 "$tsv" | sort -t "$(printf '\t')" -k2,2n -k3,3n -k4,4n -k5,5 -k1,1 -k8,8n | awk -F '\t' '
	{ group = $2 FS $3 FS $4 FS $5; data = $2 FS $3 FS $5; cell = group FS $1; n[cell]++; ms[cell, n[cell]] = $8
	  if (!(cell in seen)) { seen[cell] = 1; order[++cells] = cell }
	  if (!(data in want)) want[data] = $9; else if (want[data] != $9) differ++ }
	function median(c) { return n[c] % 2 ? ms[c, (n[c] + 1) / 2] : (ms[c, n[c] / 2] + ms[c, n[c] / 2 + 1]) / 2 }
	END {
		printf "%-12s %10s %10s %7s %-10s %10s %8s\n", "tag", "inner", "outer", "workers", "query", "ms", "ratio"
		for (i = 1; i <= cells; i++) {
			split(order[i], f, FS); native = f[1] FS f[2] FS f[3] FS f[4] FS "native"
			printf "%-12s %10s %10s %7s %-10s %10.1f %8s\n", f[5], f[1], f[2], f[3], f[4], median(order[i]),
				native in n ? sprintf("%.2f", median(order[i]) / median(native)) : "-" }
		print differ ? "RESULTS DIFFER" : "all results agree"
		exit differ > 0 }' | tee "$out/summary.txt"
