#!/usr/bin/env bash
#
# run.sh TREE PORT [OUTDIR]: the suites' queries by PostgreSQL, and by gpuhash on the CPU and on the GPU.
#
# TREE is a PostgreSQL installation with gpuhash, PORT the socket's number of its server, which listens in HOST.  Makes
# each suite's tables once, in a schema of its name; then runs each query without gpuhash (postgresql), with
# gpuhash.engine = cpu (gpuhash_cpu) and, where gpuhash finds a GPU, with its default (gpuhash_cuda), each left to the
# planner.  Writes OUTDIR/suites.tsv (default: .): suite, query, system, the least of its runs' milliseconds, number of
# gpuhash's nodes, and whether the answer is PostgreSQL's; prints ratios to PostgreSQL's time and their geometric means.
# The status is 1 where answers differ.
#
# Environment
#	SUITES		which (default: "star films channels")
#	SCALE		of all (default: 0.25 of star and channels, 0.05 of films: 1.5, 0.7 and 1.8 million rows in the largest table)
#	REPS		counted runs of each query (default: 3), after one that is not
#	LIMIT		milliseconds that a query may take (default: 60000)
#	EXTRA		SQL for all runs
#	SLOWER		a query is named as slower above this ratio and 5 ms more (default: 1.05)
#	HOST		folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
bench_begin "$@"
reps=${REPS:-3}
tsv=$out/suites.tsv
printf 'suite\tquery\tsystem\tms\tnodes\tequal\n' >"$tsv"

load() {
	local scale=${SCALE:-0.25}
	[ "$1" != films ] || scale=${SCALE:-0.05}
	[ "$(sql -c "SELECT obj_description(to_regnamespace('$1'), 'pg_namespace')")" != "scale $scale" ] || return 0
	sql -v scale="$scale" -c "SET client_min_messages = warning" -c "DROP SCHEMA IF EXISTS $1 CASCADE" \
		-c "CREATE SCHEMA $1" -c "SET search_path = $1" -f "$here/draws.sql" -f "$here/$1_tables.sql" -c "COMMENT ON SCHEMA $1 IS 'scale $scale'"
}

# session SUITE SYSTEM: every query with its plan, then its runs, as a script for psql
session() {
	# a query may take too long, or fail
	printf '\\set ON_ERROR_STOP off\n'
	echo "LOAD 'gpuhash'; SET jit = off; SET search_path = $1; SET statement_timeout = ${LIMIT:-60000}; ${EXTRA:-}"
	case $2 in
		postgresql) echo "SET gpuhash.enabled = off;" ;;
		gpuhash_cpu) echo "SET gpuhash.engine = 'cpu';" ;;
	esac
	awk -v reps="$reps" '
		function put(rep) {
			if (name == "") return
			printf "\\echo @ %s\nEXPLAIN %s\\echo @@\n%s\\timing on\n", name, text, text
			for (rep = 0; rep < reps; rep++) printf "\\echo @@@\n%s", text
			printf "\\timing off\n"
		}
		/^-- / && NF == 2 { put(); name = $2; text = ""; next }
		!/^--/ && name != "" { text = text $0 "\n" }
		END { put() }' "$here/$1_queries.sql"
}

systems="postgresql gpuhash_cpu"
[ "$(sql -c "LOAD 'gpuhash'" -c "SET client_min_messages = error" -c "CREATE EXTENSION IF NOT EXISTS gpuhash" \
	-c "SELECT count(*) > 0 FROM gpuhash_devices WHERE engine = 'cuda' AND status = 'ready'")" != t ] || systems="$systems gpuhash_cuda"
for suite in ${SUITES:-star films channels}; do
	load "$suite"
	for system in $systems; do
		session "$suite" "$system" | sql -f - 2>&1 | awk -v OFS='\t' -v suite="$suite" -v which="$system" -v answers="$out/.answers" '
			function put() {
				if (name == "") return
				file = answers "." suite "." name
				if (which == "postgresql") { want = answer; printf "%s", answer >file; close(file) }
				else { want = ""; while ((getline line <file) > 0) want = want line "\n"; close(file) }
				print suite, name, which, least, nodes, answer == want ? "yes" : "no"
			}
			$1 == "@" { put(); name = $2; part = 1; nodes = 0; least = -1; answer = ""; next }
			$1 == "@@" || $1 == "@@@" { part = length($1); next }
			part == 1 { nodes += /GpuHash/; next }
			part == 2 { answer = answer $0 "\n"; next }
			/^Time: / && (least < 0 || $2 < least) { least = $2 }
			END { put() }' >>"$tsv"
	done
done
rm -f "$out"/.answers.*

tail -n +2 "$tsv" | awk -F '\t' -v slower="${SLOWER:-1.05}" '
	$3 == "postgresql" { ms[$1, $2] = $4; next }
	{
		ratio = $4 / ms[$1, $2]; bad = $4 > slower * ms[$1, $2] + 5
		printf "%-9s %-26s %-13s %9.1f %9.1f %6.2f %3d%s%s\n", $1, $2, $3, ms[$1, $2], $4, ratio, $5, bad ? "  slower" : "", $6 == "yes" ? "" : "  ANSWERS DIFFER"
		sum[$1 " " $3] += log(ratio); count[$1 " " $3]++; differ += $6 != "yes"
	}
	END {
		for (s in sum) printf "%s: geometric mean of %d ratios %.2f\n", s, count[s], exp(sum[s] / count[s])
		exit differ > 0
	}'
