#!/usr/bin/env bash
#
# resident.sh TREE PORT [OUTDIR]: times queries over tables whose pages stay on a GPU.
#
# TREE is a PostgreSQL installation with gpuhash, PORT the socket's number of its server, which listens in
# HOST and has gpuhash in shared_preload_libraries and shared_buffers for both tables.  Makes, once, o with OUTER rows
# and i with INNER rows, 52 bytes each, WAL-logged and vacuumed.  Then times, in one process: sums over o, over o
# joined with i, and the latter in 1,000 groups; each with pages that stay and without, and after some percent of o's
# blocks were changed: CHANGED, the first query after the changes (first), then once they were vacuumed (vacuumed), and
# the queries after that (again).  These are of one session, which has read all pages over the bus before (bus): for a new
# session's first look at a page of shared_buffers the system has to map its memory, however the query goes on (new_bus:
# the first query of all).  Last, SESSIONS sessions that ask for the sum over o at once: queries a second.
# Appends to OUTDIR/resident.tsv: query, system, changed_percent, processes, ms; of the last, ms is a query's share.
#
# Environment
#	OUTER, INNER	rows (default: 50000000, 10000000)
#	CHANGED			percents (default: 1 10 50), in that order
#	SESSIONS		default: 64; 0: leaves that out
#	REPS			repetitions, of which the least is taken (default: 5)
#	DUCKDB			python3 with DuckDB, to time it on tables of the same rows with its 16 threads (default: none)
#	HOST			folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bench_begin "$@"
tsv=$out/resident.tsv
outer=${OUTER:-50000000} inner=${INNER:-10000000}
commit_at_once
[ -s "$tsv" ] || printf 'query\tsystem\tchanged_percent\tprocesses\tms\n' >"$tsv"

# make_table NAME ROWS KEY: filled by eight jobs
make_table() {
	local name=$1
	! has_rows "$name" "$2" || return 0
	sql -c "DROP TABLE IF EXISTS $name; CREATE TABLE $name (k bigint NOT NULL, v bigint NOT NULL, g int NOT NULL) WITH (autovacuum_enabled = off)" 2>/dev/null
	fill "$name" "$2" 8 "$3, i & 1048575, i % 1000"
	sql -c "VACUUM ANALYZE $name"
}

declare -A query=(
	[sum]='SELECT sum(v) FROM o'
	[join_sum]='SELECT sum(o.v), sum(i.v) FROM o JOIN i ON i.k = o.k'
	[join_group]='SELECT o.g, sum(o.v), sum(i.v) FROM o JOIN i ON i.k = o.k GROUP BY o.g')

alone='SET max_parallel_workers_per_gather = 0;'

# first NAME PERCENT SYSTEM: times a query in one session over the bus, then for the first time with what stays, and again
first() {
	local all
	all=$({
		echo "$alone SET gpuhash.enable_resident = off;"
		printf '%s\n' '\timing on'
		for ((rep = 0; rep < 3; rep++)); do echo "${query[$1]};"; done
		echo 'RESET gpuhash.enable_resident;'
		for ((rep = 0; rep < 4; rep++)); do echo "${query[$1]};"; done
	} | sql -f - | milliseconds)
	put "$1" new_bus "$2" 1 "$(sed -n 1p <<<"$all")"
	put "$1" bus "$2" 1 "$(sed -n 2,3p <<<"$all" | least)"
	put "$1" "$3" "$2" 1 "$(sed -n 5p <<<"$all")"
	put "$1" again "$2" 1 "$(sed -n '6,$p' <<<"$all" | least)"
}

put() { printf '%s\t%s\t%s\t%s\t%s\n' "$@" >>"$tsv"; }

make_table i "$inner" "(hashint8extended(i, 7) & ~1023::bigint) | (i & 1023)"
make_table o "$outer" "(hashint8extended(i % $inner + 1, 7) & ~1023::bigint) | ((i % $inner + 1) & 1023)"
sql -c 'CREATE EXTENSION IF NOT EXISTS gpuhash' 2>/dev/null
sql -c "SELECT 'resident: ' || gpuhash_prewarm('o') || ' + ' || gpuhash_prewarm('i') || ' pages'"
for name in sum join_sum join_group; do
	put $name bus 0 1 "$(times "${REPS:-5}" "$alone SET gpuhash.enable_resident = off;" "${query[$name]}" | least)"
	put $name resident 0 1 "$(times "${REPS:-5}" "$alone" "${query[$name]}" | least)"
done

for percent in ${CHANGED:-1 10 50}; do
	change_blocks o "$percent"
	for name in sum join_sum; do first $name "$percent" first; done
	sql -c 'VACUUM o'
	first sum "$percent" vacuumed
done

sessions=${SESSIONS:-64}
if [ "$sessions" -gt 0 ]; then
	pids=()
	begin=$(date +%s%N)
	for ((s = 0; s < sessions; s++)); do
		times 20 "$alone" "${query[sum]}" >/dev/null &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid"; done
	end=$(date +%s%N)
	put sum resident 0 "$sessions" "$(awk -v ns=$((end - begin)) -v n=$((sessions * 20)) 'BEGIN { printf "%.3f", ns / n / 1e6 }')"
fi

if [ -n "${DUCKDB:-}" ]; then
	"$DUCKDB" - "$outer" "$inner" "${REPS:-5}" >>"$tsv" <<'PYTHON'
import sys, time
import duckdb
outer, inner, reps = map(int, sys.argv[1:])
db = duckdb.connect()
db.execute("SET threads = 16")
key = "CAST(hash({0}) >> 1 AS BIGINT)"
db.execute(f"CREATE TABLE i AS SELECT {key.format('i')} AS k, i & 1048575 AS v, CAST(i % 1000 AS INT) AS g FROM range(1, {inner} + 1) t(i)")
db.execute(f"CREATE TABLE o AS SELECT {key.format(f'(i % {inner} + 1)')} AS k, i & 1048575 AS v, CAST(i % 1000 AS INT) AS g FROM range(1, {outer} + 1) t(i)")
for name, query in (("sum", "SELECT sum(v) FROM o"), ("join_sum", "SELECT sum(o.v), sum(i.v) FROM o JOIN i ON i.k = o.k"),
		("join_group", "SELECT o.g, sum(o.v), sum(i.v) FROM o JOIN i ON i.k = o.k GROUP BY o.g")):
	best = None
	for _ in range(reps):
		begin = time.perf_counter()
		db.execute(query).fetchall()
		took = (time.perf_counter() - begin) * 1000
		best = took if best is None else min(best, took)
	print(name, "duckdb", 0, 16, f"{best:.1f}", sep="\t")
PYTHON
fi
column -t -s "$(printf '\t')" "$tsv" 2>/dev/null || cat "$tsv"
