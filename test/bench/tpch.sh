#!/usr/bin/env bash
#
# tpch.sh TREE PORT [OUTDIR]: the 22 queries of TPC-H with a new server's settings, without gpuhash and with it.
#
# TREE is a PostgreSQL installation with gpuhash, PORT the socket's number of its server, which listens in HOST.
# Makes the data with tpchgen-cli (from PyPI: pip install tpchgen-cli), loads it once, then runs the queries
# without gpuhash ("native") and with it loaded and left to itself, in turn, and appends every time to OUTDIR/tpch.tsv:
# milliseconds until the client has the answer, and milliseconds of processors, of all processes of the query together
# (Linux; of a server on this machine; else 0).  Prints the least of both, ratios, and how many nodes of gpuhash there
# are in the plan.  The status is 1 where answers differ.
#
# Environment
#	SCALE		scale factor (default: 1)
#	DATA		folder for the files, which stay there (default: /tmp/tpch-SCALE)
#	TPCHGEN		the program (default: tpchgen-cli)
#	REPS		runs of each query (default: 3)
#	QUERIES		which (default: all; "q1 q7")
#	LIMIT		milliseconds that a query may take (default: 60000)
#	SETTINGS	SQL for both kinds of runs, as "SET work_mem = '64MB';"
#	EXTRA		SQL for those with gpuhash
#	SLOWER		a query is named as slower above this ratio and 5 ms more (default: 1.05)
#	HOST		folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
if [ $# -lt 2 ]; then
	sed -n '3,23s/^# \{0,1\}//p' "$0"
	exit 2
fi
tree=$1 port=$2 out=${3:-.}
here=$(cd "$(dirname "$0")" && pwd -P)
scale=${SCALE:-1}
data=${DATA:-/tmp/tpch-$scale}
mkdir -p "$out"
tsv=$out/tpch.tsv
printf 'tag\tquery\trep\tms\tprocessor_ms\tnodes\tanswer\n' >"$tsv"

sql() { "$tree/bin/psql" -XqAt -v ON_ERROR_STOP=1 -h "${HOST:-/tmp}" -p "$port" -U "${PGUSER:-postgres}" -d "${PGDATABASE:-postgres}" "$@"; }

if [ "$(sql -c "SELECT obj_description(to_regclass('lineitem'), 'pg_class')")" != "TPC-H, scale $scale" ]; then
	if [ ! -f "$data/lineitem.csv" ]; then
		command -v "${TPCHGEN:-tpchgen-cli}" >/dev/null || {
			echo "${0##*/}: tpchgen-cli is needed: pip install tpchgen-cli, or TPCHGEN=PROGRAM" >&2
			exit 1
		}
		"${TPCHGEN:-tpchgen-cli}" csv -q -s "$scale" --output-dir="$data"
	fi
	sql -v data="$data" -f "$here/tpch_tables.sql"
	sql -c "COMMENT ON TABLE lineitem IS 'TPC-H, scale $scale'"
fi

preloaded=$(sql -c "SELECT current_setting('shared_preload_libraries') ~ 'gpuhash'")

# Prints, of a backend, processor milliseconds of itself and of all processes of the server that have ended.
cat >"$out/processor.sh" <<'SH'
ticks() { awk -v a="$2" -v b="$3" '{ sub(/^.*\) /, ""); print $a + $b }' "/proc/$1/stat"; }
parent=$(awk '{ sub(/^.*\) /, ""); print $2 }' "/proc/$1/stat" 2>/dev/null) || { echo 0; exit; }
echo $((($(ticks "$1" 12 13) + $(ticks "$parent" 14 15)) * 1000 / $(getconf CLK_TCK)))
SH

# session native|gpuhash: every query once, as a script for psql.
session() {
	printf "%s\nSET statement_timeout = %s;\n" "${SETTINGS:-}" "${LIMIT:-60000}"
	if [ "$1" = gpuhash ]; then
		printf "LOAD 'gpuhash'; %s\n" "${EXTRA:-}"
	elif [ "$preloaded" = t ]; then
		printf "SET gpuhash.enabled = off;\n"
	fi
	printf '\\set ON_ERROR_STOP off\nSELECT pg_backend_pid() AS pid \\gset\n\\setenv PID :pid\n'
	awk -v queries=" ${QUERIES:-} " -v processor="$out/processor.sh" '
		/^-- q[0-9]+$/ { name = $2; next }
		/^--/ || !NF || (queries ~ /[^ ]/ && !index(queries, " " name " ")) { next }
		{
			printf "\\echo @ %s\nEXPLAIN %s\n\\echo @@\n\\! sh %s \"$PID\"\n\\echo @@@\n", name, $0, processor
			printf "\\timing on\n%s\n\\timing off\n\\! sleep 0.05\n\\! sh %s \"$PID\"\n\\echo @@@@\n", $0, processor
		}' "$here/tpch_queries.sql"
}

for ((rep = 1; rep <= ${REPS:-3}; rep++)); do
	for which in native gpuhash; do
		session "$which" | sql -f - 2>&1 | awk -v OFS='\t' -v tag="$which" -v rep="$rep" '
			BEGIN { for (i = 1; i < 256; i++) code[sprintf("%c", i)] = i }
			# of an answer, as long as it is: its length and a hash
			function digest(text, i, hash) {
				for (i = 1; i <= length(text); i++) hash = (hash * 131 + code[substr(text, i, 1)]) % 2147483647
				return length(text) ":" hash + 0
			}
			$1 == "@" { name = $2; part = 1; nodes = 0; answer = ""; next }
			$1 == "@@" { part = 2; next }
			$1 == "@@@" { part = 3; next }
			$1 == "@@@@" { print tag, name, rep, ms, after - before, nodes, failed ? "failed" : digest(answer); part = failed = 0; next }
			part == 1 { nodes += /GpuHash(Join|Aggregate|Rows|Scan)/; next }
			part == 2 { before = $1; next }
			part == 3 && /^Time: / { ms = $2; part = 4; next }
			part == 4 { after = $1; next }
			/ERROR: / { failed = 1; next }
			part == 3 { answer = answer $0 ";" }' >>"$tsv"
	done
done
rm -f "$out/processor.sh"

tail -n +2 "$tsv" | awk -F '\t' -v slower="${SLOWER:-1.05}" '
	{ query = $2; cell = query FS $1
	  if (!(query in seen)) { seen[query] = 1; order[++queries] = query }
	  if (!(cell in ms) || $4 < ms[cell]) ms[cell] = $4
	  if (!(cell in processor) || $5 < processor[cell]) processor[cell] = $5
	  if ($1 == "gpuhash") nodes[query] = $6
	  if ($7 == "failed") failed[cell] = 1
	  else if (!(query in want)) want[query] = $7
	  else if (want[query] != $7) { differ++; print "answers differ: " query } }
	END {
		printf "%-6s %10s %10s %6s %14s %14s %6s %s\n", "query", "native ms", "gpuhash ms", "ratio", "processors ms", "with gpuhash", "ratio", "nodes"
		for (i = 1; i <= queries; i++) {
			q = order[i]; a = q FS "native"; b = q FS "gpuhash"
			mark = ""
			if (a in failed) mark = mark "  native ran out of time or failed"
			if (b in failed) mark = mark "  gpuhash ran out of time or failed"
			if (ms[b] > slower * ms[a] + 5) { mark = mark "  slower"; bad++ }
			all += log(ms[b] / ms[a])
			if (processor[a] > 0 && processor[b] > 0) { allp += log(processor[b] / processor[a]); np++ }
			printf "%-6s %10.1f %10.1f %6.2f %14d %14d %6s %d%s\n", q, ms[a], ms[b], ms[b] / ms[a], processor[a], processor[b],
				(processor[a] > 0 ? sprintf("%.2f", processor[b] / processor[a]) : ""), nodes[q], mark }
		printf "geometric means of the ratios: %.2f, of processors %s; %d of %d queries slower than %.2f times and 5 ms; %s\n",
			exp(all / queries), (np > 0 ? sprintf("%.2f", exp(allp / np)) : "unknown"), bad, queries, slower, (differ ? "ANSWERS DIFFER" : "all answers agree")
		exit differ > 0 }' | tee "$out/tpch.txt"
