#!/usr/bin/env bash
#
# suite.sh TREE PORT [OUTDIR]: whether any query is slower with gpuhash loaded.
#
# TREE is a PostgreSQL installation with gpuhash, PORT the socket's number of its server, which
# listens in HOST.  Makes the tables of suite_tables.sql once, then times the queries of
# suite_queries.sql without gpuhash ("native") and with it loaded and left to itself, in turn, and
# appends every time to OUTDIR/suite.tsv.  Prints medians and ratios (also into OUTDIR/suite.txt),
# and how many nodes of gpuhash the planner took.  The status is 1 where answers differ.
#
# Environment
#	SCALE		scale factor of the tables like TPC-H's (default: 1, about 1.3 GB)
#	STAR		rows of the star's fact table (default: 5000000)
#	REPS		counted runs of each query (default: 5), after one that is not
#	WORKERS		parallel workers a query may have (default: 0)
#	WORK_MEM	default: 256MB
#	GROUPS_RUN	of queries (default: big star scan selective)
#	SLOWER		ratio above which a query is named as slower (default: 1.05)
#	EXTRA		settings of the runs with gpuhash, as SQL
#	TAG			name of this run in the results (default: gpuhash)
#	HOST		folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bench_begin "$@"
groups=${GROUPS_RUN:-big star scan selective} tag=${TAG:-gpuhash}
tsv=$out/suite.tsv
printf 'tag\tgroup\tquery\tworkers\trep\tms\toffloaded\tanswer\n' >"$tsv"

made="scale ${SCALE:-1}, star ${STAR:-5000000}"
if [ "$(sql -c "SELECT obj_description(to_regclass('dim_visit'), 'pg_class')")" != "$made" ]; then
	sql -v scale="${SCALE:-1}" -v star="${STAR:-5000000}" -f "$here/suite_tables.sql"
	sql -c "COMMENT ON TABLE dim_visit IS '$made'"
fi

# session LOADED REP: every query once, as a script for psql
session() {
	echo "SET jit = off; SET work_mem = '${WORK_MEM:-256MB}'; SET max_parallel_workers_per_gather = ${WORKERS:-0};"
	[ "$1" = native ] || echo "LOAD 'gpuhash'; ${EXTRA:-}"
	[ "$1" = native ] && [ "$(sql -c "SELECT current_setting('shared_preload_libraries') ~ 'gpuhash'")" = t ] && echo "SET gpuhash.enabled = off;"
	awk -v groups=" $groups " '
		/^-- / && NF == 3 { group = $2; name = $3; next }
		/^--/ || !NF || !index(groups, " " group " ") { next }
		{
			printf "\\echo @ %s %s\n\\pset format unaligned\nEXPLAIN %s\n", group, name, $0
			printf "\\echo @@\n\\timing on\n%s\n\\timing off\n", $0
		}' "$here/suite_queries.sql"
}

for ((rep = 0; rep <= ${REPS:-5}; rep++)); do
	for which in native "$tag"; do
		session "$which" | sql -f - | awk -v OFS='\t' -v tag="$which" -v workers="${WORKERS:-0}" -v rep="$rep" '
			BEGIN { for (i = 1; i < 256; i++) code[sprintf("%c", i)] = i }
			# of an answer, as long as it is: its length and a hash
			function digest(text, i, hash) {
				for (i = 1; i <= length(text); i++) hash = (hash * 131 + code[substr(text, i, 1)]) % 2147483647
				return length(text) ":" hash + 0
			}
			$1 == "@" { group = $2; name = $3; plan = 1; taken = 0; answer = ""; next }
			$1 == "@@" { plan = 0; next }
			plan { taken += /GpuHash(Join|Aggregate|Rows|Scan)/; next }
			/^Time: / { if (rep > 0) print tag, group, name, workers, rep, $2, taken, digest(answer); next }
			{ answer = answer $0 ";" }' >>"$tsv"
	done
done

tail -n +2 "$tsv" | sort -t "$(printf '\t')" -k2,3 -k1,1 -k6,6n | awk -F '\t' -v tag="$tag" -v slower="${SLOWER:-1.05}" '
	{ query = $2 FS $3; cell = query FS $1; ms[cell, ++n[cell]] = $6
	  if (!(query in seen)) { seen[query] = 1; order[++queries] = query }
	  if ($1 == tag) taken[query] = $7
	  if (!(query in want)) want[query] = $8; else if (want[query] != $8) { differ++; print "answers differ: " $3 } }
	function median(c) { return n[c] % 2 ? ms[c, (n[c] + 1) / 2] : (ms[c, n[c] / 2] + ms[c, n[c] / 2 + 1]) / 2 }
	END {
		printf "%-10s %-18s %10s %10s %7s %s\n", "group", "query", "native ms", tag " ms", "ratio", "nodes"
		for (i = 1; i <= queries; i++) {
			split(order[i], f, FS); a = median(order[i] FS "native"); b = median(order[i] FS tag)
			# a quarter of a millisecond is noise of the client
			mark = b > slower * a + 0.25 ? "  slower" : ""; bad += mark != ""
			all[f[1]] += log(b / a); count[f[1]]++
			printf "%-10s %-18s %10.2f %10.2f %7.2f %d%s\n", f[1], f[2], a, b, b / a, taken[order[i]], mark }
		for (g in all) printf "%s: geometric mean of the ratios %.2f\n", g, exp(all[g] / count[g])
		printf "%d of %d queries slower than %.2f times; %s\n", bad, queries, slower, differ ? "ANSWERS DIFFER" : "all answers agree"
		exit differ > 0 }' | tee "$out/suite.txt"
