#!/usr/bin/env bash
#
# planning.sh TREE PORT [OUTDIR]: what gpuhash, once loaded, adds to planning.
#
# TREE is a PostgreSQL installation with gpuhash, PORT the socket's number of its server, which
# listens in HOST.  Plans star and chain joins of 2, 6 and 12 tables (100,000 rows each, so that
# gpuhash looks at every pair), geqo off, join_collapse_limit 12, in sessions without and with the
# library, in turn, and runs pgbench -M simple -S likewise.  Prints medians, and whether what is added
# is more than 5 % and 100 us; all times are in OUTDIR/planning.tsv.
#
# Environment
#	REPS		rounds (default: 9); a round plans each join PLANS times (default: 5)
#	SECONDS_S	of each round of pgbench (default: 2)
#	HOST		folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bench_begin "$@"
tsv=$out/planning.tsv
printf 'tag\tjoin\trep\tms\n' >"$tsv"

# shellcheck source=test/bench/planning_joins.sh
. "$(dirname "${BASH_SOURCE[0]}")/planning_joins.sh"

# session TAG
session() {
	local shape tables plan
	[ "$1" = native ] || echo "LOAD 'gpuhash';"
	echo "SET geqo = off; SET join_collapse_limit = 12; SET from_collapse_limit = 12; SET max_parallel_workers_per_gather = 0;"
	for shape in star chain; do
		for tables in 2 6 12; do
			printf '\\echo @ %s-%s\n' "$shape" "$tables"
			# the first reads the catalogues
			for ((plan = 0; plan <= ${PLANS:-5}; plan++)); do
				echo "EXPLAIN (SUMMARY) $(join "$shape" "$tables");"
			done
		done
	done
}

make_tables
"$tree/bin/pgbench" -i -s 1 -q >/dev/null 2>&1
for ((rep = 1; rep <= ${REPS:-9}; rep++)); do
	for tag in native gpuhash; do
		session "$tag" | sql -f - | awk -v OFS='\t' -v tag="$tag" -v rep="$rep" '
			$1 == "@" { join = $2; n = 0; next }
			/^Planning Time:/ { if (n++ > 0) print tag, join, rep, $3 }' >>"$tsv"
		# of a statement, with what else it takes
		PGOPTIONS=$([ "$tag" = native ] || echo '-c session_preload_libraries=gpuhash') \
			"$tree/bin/pgbench" -n -M simple -S -T "${SECONDS_S:-2}" 2>/dev/null |
			awk -v OFS='\t' -v tag="$tag" -v rep="$rep" '/^latency average/ { print tag, "pgbench-S", rep, $4 }' >>"$tsv"
	done
done

tail -n +2 "$tsv" | sort -t "$(printf '\t')" -k2,2 -k1,1 -k4,4n | awk -F '\t' '
	{ cell = $2 FS $1; ms[cell, ++n[cell]] = $4; if (!($2 in seen)) { seen[$2] = 1; order[++joins] = $2 } }
	function median(c) { return n[c] % 2 ? ms[c, (n[c] + 1) / 2] : (ms[c, n[c] / 2] + ms[c, n[c] / 2 + 1]) / 2 }
	END {
		printf "%-10s %10s %10s %7s %9s\n", "join", "native ms", "gpuhash ms", "ratio", "added us"
		for (i = 1; i <= joins; i++) {
			a = median(order[i] FS "native"); b = median(order[i] FS "gpuhash"); added = (b - a) * 1000
			mark = (b > 1.05 * a && added > 100) ? "  more than 5 % and 100 us" : ""; bad += (mark != "")
			printf "%-10s %10.3f %10.3f %7.3f %9.1f%s\n", order[i], a, b, b / a, added, mark }
		printf "%d of %d above 5 %% and 100 us\n", bad, joins }' | tee "$out/planning.txt"
