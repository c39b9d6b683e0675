#!/usr/bin/env bash
#
# run.sh TREE PORT [OUTDIR]: the suites' queries by PostgreSQL, and by gpuhash on the CPU and on the GPU.
#
# TREE is a PostgreSQL installation with gpuhash, PORT the socket's number of its server, which listens in HOST.  Makes
# each suite's tables once, in a schema of its name; then runs each query without gpuhash (postgresql), with
# gpuhash.engine = cpu (gpuhash_cpu) and, where gpuhash finds a GPU, with its default (gpuhash_cuda), by turns in one
# session, each left to the planner.  Writes OUTDIR/suites.tsv (default: .): suite, query, system, the least of its runs'
# milliseconds and of its plannings', processor milliseconds of all of the query's processes (mean of the runs; a process
# that ends is counted in units of the kernel's clock, mostly 10 ms), number of gpuhash's nodes, and whether all answers
# are PostgreSQL's; prints ratios to PostgreSQL's and their geometric means.  The status is 1 where answers differ.
#
# Environment
#	SUITES		which (default: "star films channels shapes"; tpch: the tables that tpch.sh has made, in the schema public)
#	SCALE		of all (default: 0.25 of star, channels and shapes, 0.05 of films: 1.5, 0.7, 2.5 and 1.8 million rows in the largest table)
#	QUERIES		which (default: all; "q1 q7")
#	SYSTEMS		which (default: "postgresql gpuhash_cpu", and gpuhash_cuda where there is one)
#	REPS		counted runs of each query (default: 3), after one that is not
#	LIMIT		milliseconds that a query may take (default: 60000)
#	EXTRA		SQL for all runs, behind what makes the system
#	SLOWER		a query is named as slower above this ratio and 5 ms more (default: 1.05)
#	HOST		folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
bench_begin "$@"
reps=${REPS:-3}
out=$(cd "$out" && pwd -P)
tsv=$out/suites.tsv
printf 'suite\tquery\tsystem\tms\tplanning_ms\tcpu_ms\tnodes\tequal\n' >"$tsv"

load() {
	local scale=${SCALE:-0.25}
	[ "$1" != tpch ] || return 0
	[ "$1" != films ] || scale=${SCALE:-0.05}
	[ "$(sql -c "SELECT obj_description(to_regnamespace('$1'), 'pg_namespace')")" != "scale $scale" ] || return 0
	sql -v scale="$scale" -c "SET client_min_messages = warning" -c "DROP SCHEMA IF EXISTS $1 CASCADE" \
		-c "CREATE SCHEMA $1" -c "SET search_path = $1" -f "$here/draws.sql" -f "$here/$1_tables.sql" -c "COMMENT ON SCHEMA $1 IS 'scale $scale'"
}

# session SUITE: of every query its plans, then its runs, by turns, as a script for psql
session() {
	local schema=$1 queries=$here/$1_queries.sql
	[ "$1" != tpch ] || { schema=public queries=$here/../tpch_queries.sql; }
	# a query may take too long, or fail
	printf '\\set ON_ERROR_STOP off\nSELECT pg_backend_pid() AS pid \\gset\n\\setenv PID :pid\n'
	echo "LOAD 'gpuhash'; SET search_path = $schema; SET statement_timeout = ${LIMIT:-60000};"
	awk -v reps="$reps" -v systems="$systems" -v extra="${EXTRA:-}" -v processor="$out/processor.sh" -v queries=" ${QUERIES:-} " '
		BEGIN {
			n = split(systems, ways, " ")
			set["postgresql"] = "SET gpuhash.enabled = off; RESET gpuhash.engine;"
			set["gpuhash_cpu"] = "SET gpuhash.enabled = on; SET gpuhash.engine = cpu;"
			set["gpuhash_cuda"] = "SET gpuhash.enabled = on; RESET gpuhash.engine;"
		}
		function put(rep, i) {
			if (name == "" || (queries ~ /[^ ]/ && !index(queries, " " name " "))) return
			for (rep = 0; rep <= reps; rep++) {
				for (i = 1; i <= n; i++) {
					printf "%s %s\n", set[ways[i]], extra
					printf "\\echo @plan %s %s\nEXPLAIN (SUMMARY) %s\\echo @\n", name, ways[i], text
					printf "\\! sh %s \"$PID\"\n", processor
					printf "\\echo @%s\n\\timing on\n%s\\timing off\n\\echo @\n", rep ? "run" : "first", text
					printf "\\! sleep 0.02; sh %s \"$PID\"\n\\echo @end\n", processor
				}
			}
			printf "\\echo @query\n"
		}
		/^-- [a-z_0-9]+$/ { put(); name = $2; text = ""; next }
		!/^--/ && name != "" { text = text $0 "\n" }
		END { put() }' "$queries"
}

systems="postgresql gpuhash_cpu"
[ "$(sql -c "LOAD 'gpuhash'" -c "SET client_min_messages = error" -c "CREATE EXTENSION IF NOT EXISTS gpuhash" \
	-c "SELECT count(*) > 0 FROM gpuhash_devices WHERE engine = 'cuda' AND status = 'ready'")" != t ] || systems="$systems gpuhash_cuda"
systems=${SYSTEMS:-$systems}
processor_script >"$out/processor.sh"
for suite in ${SUITES:-star films channels shapes}; do
	load "$suite"
	session "$suite" | sql -f - 2>&1 | awk -v OFS='\t' -v suite="$suite" -v systems="$systems" -v reps="$reps" '
		BEGIN { n = split(systems, order, " ") }
		$1 == "@plan" { name = $2; which = $3; part = "plan"; nodes[which] = 0; answer = ""; clock = 0; next }
		$1 == "@" { part = part == "plan" ? "before" : "after"; next }
		$1 == "@first" || $1 == "@run" { counted = $1 == "@run"; part = "run"; next }
		$1 == "@end" {
			if (!(name in want)) want[name] = answer
			if (answer != want[name]) differs[which] = 1
			if (counted) cpu[which] += after - before
			part = ""
			next
		}
		$1 == "@query" {
			for (i = 1; i <= n; i++)
				print suite, name, order[i], ms[order[i]], planning[order[i]], cpu[order[i]] / reps, nodes[order[i]],
					order[i] in differs ? "no" : "yes"
			fflush()
			split("", ms); split("", planning); split("", cpu); split("", differs)
			next
		}
		part == "plan" && /Planning Time: / {
			if (!(which in planning) || $3 < planning[which]) planning[which] = $3
			next
		}
		part == "plan" { nodes[which] += /GpuHash/; next }
		part == "before" { before = $1; next }
		part == "after" { after = $1; next }
		part == "run" && /^Time: / {
			if (counted && (!(which in ms) || $2 < ms[which])) ms[which] = $2
			next
		}
		part == "run" { answer = answer $0 "\n" }' >>"$tsv"
done
rm -f "$out/processor.sh"

tail -n +2 "$tsv" | awk -F '\t' -v slower="${SLOWER:-1.05}" '
	$3 == "postgresql" { ms[$1, $2] = $4; planning[$1, $2] = $5; cpu[$1, $2] = $6; next }
	{
		ratio = $4 / ms[$1, $2]; bad = $4 > slower * ms[$1, $2] + 5; clocks = cpu[$1, $2] > 0 ? $6 / cpu[$1, $2] : 1
		printf "%-9s %-26s %-13s %9.1f %9.1f %6.2f  cpu %7.1f %7.1f %6.2f  planning %6.1f %6.1f %3d%s%s\n", $1, $2, $3, ms[$1, $2], $4,
			ratio, cpu[$1, $2], $6, clocks, planning[$1, $2], $5, $7, bad ? "  slower" : "", $8 == "yes" ? "" : "  ANSWERS DIFFER"
		sum[$1 " " $3] += log(ratio); count[$1 " " $3]++; sump[$1 " " $3] += clocks > 0 ? log(clocks) : 0; differ += $8 != "yes"
	}
	END {
		for (s in sum)
			printf "%s: geometric mean of %d ratios %.2f, of processors %.2f\n", s, count[s], exp(sum[s] / count[s]), exp(sump[s] / count[s])
		exit differ > 0
	}'
