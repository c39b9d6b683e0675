#!/usr/bin/env bash
#
# tpch.sh TREE PORT [OUTDIR]: the 22 queries of TPC-H, or the 99 of TPC-DS, by PostgreSQL, by gpuhash on the CPU and on
# the GPU, and by DuckDB.
#
# TREE is a PostgreSQL installation with gpuhash, PORT the socket's number of its server, which listens in HOST.
# Makes the data with tpchgen-cli (TPC-DS: tpcds.py), loads it once, and then runs the queries by each system in turn: without gpuhash
# (postgresql), with gpuhash.engine = cpu (gpuhash_cpu) and, where gpuhash finds a GPU, with its default, auto
# (gpuhash_cuda), each left to the planner.  DuckDB runs them in the end, over its own tables in memory, that it
# loads from the same files.  What is not there comes from PyPI (tpchgen-cli, duckdb, matplotlib), into a virtual
# environment in TOOLS; where that cannot be, DuckDB or the plot is skipped, and the reason is printed.
#
# Writes, into OUTDIR (default: .), of TPC-DS with that name in place of tpch:
#	tpch.tsv		a line for each query, kind of settings and system: the least of its runs' milliseconds until the
#					client has the answer, and of processor milliseconds, of all processes of the query together but
#					GPU workers (Linux; of a server on this machine; else 0); equal: whether all its answers are
#					PostgreSQL's (yes, no; failed: out of time or an error; unknown: PostgreSQL has none)
#	tpch_runs.tsv	every run, with the number of gpuhash's nodes in its plan
#	tpch.txt		what is printed: times, ratios to PostgreSQL's, geometric means
#	tpch.png		the times as bars
#	answers			what came out
# gpuhash's answers must be PostgreSQL's to the last digit; TPC-DS's order of rows leaves some to chance, so that these
# answers are compared as sets.  DuckDB computes means and quotients as floats: of its
# answers, numbers may differ by 0.0001 or, if that is more, by a billionth; blanks at the end of a value do not
# count.  The status is 1 where answers differ.
#
# Environment
#	SUITE		tpch (default) or tpcds
#	SCALE		scale factor (default: 1)
#	DATA		folder for the files, which stay there (default: SUITE-SCALE in TMPDIR or /tmp)
#	TPCHGEN		the program (default: tpchgen-cli, of PATH or TOOLS)
#	REPS		runs of each query (default: 3)
#	QUERIES		which (default: all; "q1 q7")
#	LIMIT		milliseconds that a query may take (default: 60000)
#	SYSTEMS		which (default: "postgresql gpuhash_cpu gpuhash_cuda duckdb", as far as they are there)
#	KINDS		default: the server's settings as they are; tuned: with SETTINGS; or both: "default tuned"
#				(default: tuned where SETTINGS is there, else default)
#	SETTINGS	SQL for tuned runs of PostgreSQL and gpuhash (default: work_mem of 256 MB and as many workers as
#				cores, 8 at most)
#	EXTRA		SQL for those with gpuhash
#	SLOWER		a query is named as slower above this ratio and 5 ms more (default: 1.05)
#	THREADS		of DuckDB (default: 16, or as many as cores)
#	PYTHON		with pip (default: python3)
#	TOOLS		folder for the virtual environment, which stays there (default: gpuhash-bench in TMPDIR or /tmp)
#	PIP			no: nothing is installed
#	HOST		folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bench_begin "$@"
suite=${SUITE:-tpch}
scale=${SCALE:-1}
temporary=${TMPDIR:-/tmp}
data=${DATA:-$temporary/$suite-$scale}
case $suite in
	tpch) title="TPC-H, scale $scale" largest=lineitem tables=$here/tpch_tables.sql queries=$here/tpch_queries.sql ;;
	tpcds) title="TPC-DS, scale $scale" largest=store_sales tables=$data/tables.sql queries=$data/queries.sql ;;
	*)
		echo "SUITE is tpch or tpcds, not $suite" >&2
		exit 2
		;;
esac
tools=${TOOLS:-$temporary/gpuhash-bench}
reps=${REPS:-3}
limit=${LIMIT:-60000}
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
threads=${THREADS:-$((cores < 16 ? cores : 16))}
tuned=${SETTINGS:-"SET work_mem = '256MB'; SET max_parallel_workers_per_gather = $((cores < 8 ? cores : 8));"}
kinds=${KINDS:-${SETTINGS:+tuned}}
kinds=${kinds:-default}
runs=$out/${suite}_runs.tsv
python=
mkdir -p "$out/answers"
# what an earlier run left there is no result of this one's
rm -f "$out/answers"/*.q* "$out/$suite.tsv"
out=$(cd "$out" && pwd -P)

say() { printf '%s: %s\n' "${0##*/}" "$1" >&2; }

wants() { case " ${SYSTEMS:-postgresql gpuhash_cpu gpuhash_cuda duckdb} " in *" $1 "*) ;; *) return 1 ;; esac; }

# ------------------------------------------------------------------- from PyPI

# install PACKAGE: into the virtual environment, which is made if it is not there.  Its last lines say why not.
install() {
	local log=$out/pip.log
	[ "${PIP:-yes}" != no ] || return 1
	if { [ -x "$tools/bin/pip" ] || "${PYTHON:-python3}" -m venv "$tools"; } >"$log" 2>&1 &&
		"$tools/bin/pip" install -q --disable-pip-version-check --retries 1 --timeout 20 "$1" >>"$log" 2>&1; then
		rm -f "$log"
	else
		tail -n 2 "$log" >&2
		return 1
	fi
}

# has_module MODULE: python is one that has it.
has_module() {
	for python in "${PYTHON:-python3}" "$tools/bin/python3"; do
		"$python" -c "import $1" 2>/dev/null && return 0
	done
	return 1
}

find_generator() {
	generator=${TPCHGEN:-$(command -v tpchgen-cli || echo "$tools/bin/tpchgen-cli")}
	[ -x "$(command -v "$generator")" ] || { [ -z "${TPCHGEN:-}" ] && install tpchgen-cli; }
}

# ------------------------------------------------------------------- the data

make_tpcds() {
	[ ! -f "$data/queries.sql" ] || return 0
	has_module duckdb_extension_tpcds ||
		{ install duckdb-extension-tpcds && install "duckdb==$("$tools/bin/pip" show duckdb-extension-tpcds | sed -n 's/^Version: //p')" &&
			has_module duckdb_extension_tpcds; } || {
		say 'tpcds.py needs duckdb and duckdb-extension-tpcds: pip install duckdb-extension-tpcds duckdb, of the same version'
		exit 1
	}
	"$python" "$here/tpcds.py" "$scale" "$data"
}

make_data() {
	local generator
	if [ "$suite" = tpcds ]; then
		make_tpcds
		return
	fi
	[ ! -f "$data/lineitem.csv" ] || return 0
	find_generator || {
		say 'tpchgen-cli is needed: pip install tpchgen-cli, or TPCHGEN=PROGRAM'
		exit 1
	}
	# files that are there are whole
	"$generator" csv -q -s "$scale" --output-dir="$data/making"
	mv "$data/making"/*.csv "$data"
	rmdir "$data/making"
}

load_data() {
	# TPC-DS's queries are made with them
	[ "$suite" = tpch ] || make_data
	[ "$(sql -c "SELECT obj_description(to_regclass('$largest'), 'pg_class')")" != "$title" ] || return 0
	make_data
	sql -v data="$data" -c "SET client_min_messages = warning" -f "$tables"
	sql -c "COMMENT ON TABLE $largest IS '$title'"
}

# ------------------------------------------------- PostgreSQL, without gpuhash and with it

# Whether gpuhash finds a GPU, whose registration of shared_buffers is then waited for.
has_gpu() {
	local state='' tries=0
	sql -c "SET client_min_messages = error" -c "CREATE EXTENSION IF NOT EXISTS gpuhash"
	while [ $tries -lt 120 ]; do
		state=$(sql -c "LOAD 'gpuhash'" -c "SELECT status || ' ' || coalesce(buffers, '') FROM gpuhash_devices WHERE engine = 'cuda' LIMIT 1")
		case $state in
			'ready being registered') sleep 1 ;;
			starting*) sleep 1 ;;
			ready*) return 0 ;;
			*) return 1 ;;
		esac
		tries=$((tries + 1))
	done
	return 1
}

# settings KIND SYSTEM: SQL for a session.
settings() {
	[ "$1" != tuned ] || printf '%s\n' "$tuned"
	case $2 in
		postgresql) [ "$loaded" != t ] || echo "SET gpuhash.enabled = off;" ;;
		gpuhash_cpu) printf "LOAD 'gpuhash'; SET gpuhash.engine = cpu; %s\n" "${EXTRA:-}" ;;
		gpuhash_cuda) printf "LOAD 'gpuhash'; %s\n" "${EXTRA:-}" ;;
	esac
}

# session KIND SYSTEM: every query once, as a script for psql.
session() {
	settings "$1" "$2"
	# the session before this one ends meanwhile, and is not counted
	printf '\\! sleep 1\n'
	printf '\\set ON_ERROR_STOP off\nSELECT pg_backend_pid() AS pid \\gset\n\\setenv PID :pid\n'
	# of the queries alone: loading a library is none
	printf 'SET statement_timeout = %s;\n' "$limit"
	awk -v queries=" ${QUERIES:-} " -v processor="$out/processor.sh" '
		/^-- q[0-9]+$/ { name = $2; next }
		/^--/ || !NF || (queries ~ /[^ ]/ && !index(queries, " " name " ")) { next }
		{
			printf "\\echo @ %s\nEXPLAIN %s\n\\echo @@\n\\! sh %s \"$PID\"\n\\echo @@@\n", name, $0, processor
			printf "\\timing on\n%s\n\\timing off\n\\! sleep 0.05\n\\! sh %s \"$PID\"\n\\echo @@@@\n", $0, processor
		}' "$queries"
}

# run_session KIND SYSTEM REP: its lines of the runs, and answers.
run_session() {
	local workers
	workers=$({ settings "$1" "$2"; echo 'SHOW max_parallel_workers_per_gather;'; } | sql -f - 2>/dev/null | tail -n 1)
	session "$1" "$2" | sql -f - 2>&1 | awk -v OFS='\t' -v scale="$scale" -v kind="$1" -v workers="$workers" -v tag="$2" -v rep="$3" \
		-v answers="$out/answers/$1.$2.$3." '
		$1 == "@" { name = $2; part = 1; nodes = 0; file = answers name; printf "" >file; next }
		$1 == "@@" { part = 2; next }
		$1 == "@@@" { part = 3; next }
		$1 == "@@@@" {
			close(file)
			print scale, name, kind, workers, tag, rep, ms, after - before, nodes, failed ? "failed" : "done"
			part = failed = 0
			next
		}
		part == 1 { nodes += /GpuHash(Join|Aggregate|Rows|Scan)/; next }
		part == 2 { before = $1; next }
		part == 3 && /^Time: / { ms = $2; part = 4; next }
		part == 4 { after = $1; next }
		/ERROR: / { failed = 1; next }
		part == 3 { print >file }' >>"$runs"
}

run_postgresql() {
	local systems='' system kind rep loaded
	# whether sessions have gpuhash from their start
	loaded=$(sql -c "SELECT current_setting('gpuhash.enabled', true) IS NOT NULL")
	for system in postgresql gpuhash_cpu gpuhash_cuda; do
		wants $system || continue
		if [ $system = gpuhash_cuda ] && ! has_gpu; then
			say 'gpuhash finds no GPU here: gpuhash_cuda is skipped'
			continue
		fi
		systems="$systems $system"
	done
	processor_script >"$out/processor.sh"
	for kind in $kinds; do
		for ((rep = 1; rep <= reps; rep++)); do
			for system in $systems; do
				run_session "$kind" "$system" "$rep"
			done
		done
	done
	rm -f "$out/processor.sh"
}

# ------------------------------------------------------------------- DuckDB

run_duckdb() {
	wants duckdb || return 0
	if ! has_module duckdb && ! { install duckdb && has_module duckdb; }; then
		say 'there is no Python with duckdb: DuckDB is skipped (pip install duckdb)'
		return 0
	fi
	make_data
	"$python" "$here/tpch.py" duckdb --schema "$tables" --queries "$queries" --data "$data" \
		--scale "$scale" --reps "$reps" --limit "$limit" --threads "$threads" --only "${QUERIES:-}" \
		--answers "$out/answers" >>"$runs" || say 'DuckDB ended before all queries were done'
}

# ------------------------------------------------------------------- what came out

# is_equal FILE FILE exact|near: whether the answers are the same.
is_equal() {
	awk -F '|' -v near="$3" '
		function trimmed(s) { sub(/ +$/, "", s); return s }
		function is_number(s) { return s ~ /^-?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?$/ }
		function size(x) { return x < 0 ? -x : x }
		function same(a, b) {
			if (a == b) return 1
			if (near != "near") return 0
			a = trimmed(a); b = trimmed(b)
			if (a == b) return 1
			return is_number(a) && is_number(b) && (size(a - b) <= 0.0001 || size(a - b) <= 1e-9 * size(a))
		}
		NR == FNR { want[FNR] = $0; lines = FNR; next }
		{
			there = FNR
			if (split(want[FNR], fields, "|") != NF) { differs = 1; exit }
			for (i = 1; i <= NF; i++) if (!same(fields[i] "", $i "")) { differs = 1; exit }
		}
		END { exit differs || there != lines }' <(ordered "$1") <(ordered "$2")
}

ordered() { if [ "$suite" = tpcds ]; then LC_ALL=C sort "$1"; else cat "$1"; fi; }

# Prints each run, with whether its answer is PostgreSQL's of the first run that has one in place of its state.
judge_runs() {
	local scale query kind workers system rep ms cpu nodes state equal want wanted
	wanted=$(awk -F '\t' '$5 == "postgresql" && $10 == "done" && !($2 in seen) { seen[$2] = 1; print $2, $3 "." $5 "." $6 "." $2 }' "$runs")
	while IFS=$'\t' read -r scale query kind workers system rep ms cpu nodes state; do
		equal=failed
		if [ "$state" = "done" ]; then
			want=$(awk -v q="$query" '$1 == q { print $2 }' <<<"$wanted")
			equal=no
			if [ -z "$want" ]; then
				equal=unknown
			elif is_equal "$out/answers/$want" "$out/answers/$kind.$system.$rep.$query" "$([ "$system" = duckdb ] && echo near || echo exact)"; then
				equal=yes
			fi
		fi
		printf '%s\t' "$scale" "$query" "$kind" "$workers" "$system" "$rep" "$ms" "$cpu" "$nodes"
		printf '%s\n' "$equal"
	done <"$runs"
}

# The least of all runs of a query by a system.
make_table() {
	awk -F '\t' -v OFS='\t' '
		BEGIN { print "scale", "query", "settings", "workers", "system", "ms", "cpu_ms", "equal" }
		{
			cell = $1 OFS $2 OFS $3 OFS $4 OFS $5
			if (!(cell in ms)) { order[++cells] = cell; equal[cell] = $10 }
			if (!(cell in ms) || $7 + 0 < ms[cell] + 0) ms[cell] = $7
			if (!(cell in cpu) || $8 + 0 < cpu[cell] + 0) cpu[cell] = $8
			if ($10 == "no" || ($10 == "failed" && equal[cell] != "no")) equal[cell] = $10
		}
		END { for (i = 1; i <= cells; i++) print order[i], ms[order[i]], cpu[order[i]], equal[order[i]] }'
}

# print_kind KIND: times, and ratios to PostgreSQL's.  DuckDB has no settings of this server.
print_kind() {
	awk -F '\t' -v kind="$1" -v slower="${SLOWER:-1.05}" '
		NR == FNR { if ($3 == kind) nodes[$2 FS $5] = $9; next }
		FNR == 1 || ($3 != kind && $5 != "duckdb") { next }
		{
			if (!($2 in seen)) { seen[$2] = 1; order[++queries] = $2 }
			if (!($5 in has)) { has[$5] = 1; system_of[++systems] = $5 }
			ms[$2, $5] = $6; cpu[$2, $5] = $7; equal[$2, $5] = $8
		}
		END {
			printf "%-5s", "query"
			for (s = 1; s <= systems; s++) printf " %13s %8s %6s", system_of[s], "cpu", "ratio"
			print "  nodes"
			for (i = 1; i <= queries; i++) {
				q = order[i]; marks = ""; base = ms[q, "postgresql"]
				printf "%-5s", q
				for (s = 1; s <= systems; s++) {
					name = system_of[s]; t = ms[q, name]
					ratio = base > 0 && t > 0 ? t / base : 0
					printf " %13.1f %8d %6s", t, cpu[q, name], (ratio > 0 ? sprintf("%.2f", ratio) : "")
					if (equal[q, name] == "failed") marks = marks "  " name " ran out of time or failed"
					if (equal[q, name] == "no") marks = marks "  ANSWERS OF " name " DIFFER"
					if (ratio > 0) { sum[name] += log(ratio); n[name]++ }
					if (base > 0 && cpu[q, "postgresql"] > 0 && cpu[q, name] > 0) { sump[name] += log(cpu[q, name] / cpu[q, "postgresql"]); np[name]++ }
					if (name ~ /^gpuhash/ && base > 0 && t > slower * base + 5) { marks = marks "  " name " is slower"; bad[name]++ }
				}
				printf "  %d %d%s\n", nodes[q FS "gpuhash_cpu"], nodes[q FS "gpuhash_cuda"], marks
			}
			for (s = 1; s <= systems; s++) {
				name = system_of[s]
				if (name == "postgresql" || !n[name]) continue
				printf "%s: geometric means of the ratios %.2f, of processors %s", name, exp(sum[name] / n[name]), (np[name] ? sprintf("%.2f", exp(sump[name] / np[name])) : "unknown")
				if (name ~ /^gpuhash/) printf "; %d of %d queries slower than %.2f times and 5 ms", bad[name], queries, slower
				print ""
			}
		}' "$out/${suite}_runs.tsv" "$out/$suite.tsv"
}

draw_plot() {
	if ! has_module matplotlib && ! { install matplotlib && has_module matplotlib; }; then
		say 'there is no Python with matplotlib: the plot is skipped (pip install matplotlib)'
		return 0
	fi
	"$python" "$here/tpch.py" plot "$out/$suite.tsv" "$out/$suite.png"
}

load_data
: >"$runs"
run_postgresql
run_duckdb
judge_runs >"$runs.judged"
make_table <"$runs.judged" >"$out/$suite.tsv"
{
	printf 'scale\tquery\tsettings\tworkers\tsystem\trun\tms\tcpu_ms\tnodes\tequal\n'
	cat "$runs.judged"
} >"$runs"
rm -f "$runs.judged"
for kind in $kinds; do
	printf 'Scale %s, %s settings, least of %s runs, ms\n' "$scale" "$kind" "$reps"
	print_kind "$kind"
done | tee "$out/$suite.txt"
draw_plot
if grep -q '	no$' "$out/$suite.tsv"; then
	echo 'ANSWERS DIFFER' | tee -a "$out/$suite.txt"
	exit 1
fi
echo 'all answers agree' | tee -a "$out/$suite.txt"
