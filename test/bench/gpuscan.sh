#!/usr/bin/env bash
#
# gpuscan.sh TREE PORT [OUTDIR]: times scans, joins and aggregates by a GPU that reads the pages of
# tables in shared_buffers, by the CPU engine, and by PostgreSQL.
#
# TREE is a PostgreSQL installation with gpuhash and pg_prewarm, PORT the socket's number of its server,
# which listens in HOST and has gpuhash preloaded; shared_buffers are more than four times the largest
# table (50 M rows: 16 GB).  Makes the tables once: those of join_bench.sh, and a star.  Appends every
# time to OUTDIR/gpuscan.tsv; prints the medians of all that is there, the ratio to the tag "native"
# (also into OUTDIR/gpuscan.txt), and whether all results agree.  Plans with times, each with
# what gpuhash_stat counted, go to OUTDIR/gpuscan-plans.txt.
#
# Parts
#	load		the first runs over a table that has just been filled and vacuumed
#	cuda		all queries on the GPU, alone and in parallel; cuda_plans: their plans
#	parallel	the same with the CPU engine and by PostgreSQL, in parallel
#	single		the same in one process; PostgreSQL's queries run at once, and then the CPU engine's
#	choices		what the planner takes where nothing is forced: plans with costs, to gpuscan-choices.txt
#	copied		with gpuhash.register_buffers off, so that pages are copied
#	updated		after 1 % of the rows in every page were updated, before a VACUUM
#	calibrate	the planner's costs by calibrate.sql, to gpuscan-calibration.txt (not by default; CALIBRATE: its
#			variables, default: -v engine=cuda)
#	first		the first runs after a start of the server, its tables in shared_buffers
#	rows		rows in place of aggregates: 1 % and half of a table's, 1 % of them joined, and a star's
#	right		right joins, as a LEFT JOIN of a small table with a big one is planned: aggregates, in groups, and rows; in one
#			process, PostgreSQL's queries and those of the CPU engine run at once
#	turns		join_sum of all pairs of tables and the star by turns, in one process, so that one table's pages follow another's
#	small		join_sum where shared_buffers are small, as the server is then started
#	short		the star where gpuhash.shared_memory is small, likewise
#
# Environment
#	PARTS		default: load cuda cuda_plans choices parallel single copied updated
#	INNERS		rows of the smaller tables (default: 1000000 10000000)
#	OUTER		rows of the big tables (default: 50000000)
#	WORKERS		of parallel queries (default: 8)
#	REPS		repetitions on the GPU (default: 5)
#	OTHERS_REPS	by the CPU engine and by PostgreSQL (default: 3; PostgreSQL in one process: 1)
#	OTHERS_INNERS	those of INNERS that these two are timed with (default: all)
#	SMALL_SINGLE	no: PostgreSQL in parallel only in part small
#	SECONDS_MOST	after which no part is begun (default: no limit)
#	WORK_MEM	default: 4GB
#	HOST		folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bench_begin "$@"
inners=${INNERS:-1000000 10000000} outer=${OUTER:-50000000} workers=${WORKERS:-8}
largest=${inners##* } others=${OTHERS_INNERS:-$inners}
all='scan_count scan_sum join_count join_sum join_group'
tsv=$out/gpuscan.tsv
[ -s "$tsv" ] || printf 'tag\tinner\touter\tworkers\tquery\tkind\trep\tms\tresult\n' >"$tsv"

# ------------------------------------------------------------------ tables

# make_table NAME ROWS COLUMNS VALUES: filled by one job a processor, if it is not there
make_table() {
	! has_rows "$1" "$2" || return 0
	sql -c "SET client_min_messages = warning" -c "DROP TABLE IF EXISTS $1; CREATE UNLOGGED TABLE $1 ($3) WITH (autovacuum_enabled = off)"
	fill "$1" "$2" "$(nproc)" "$4"
}

# drawn DRAW N SALT: the key of one of N rows of a dimension, for row i
drawn() { echo "hashint8extended(1 + (hashint8extended(i, $1) & 9223372036854775807) % $2, $3)"; }

star_tables() {
	local sizes=(1000 "$((outer / 500))" "$((outer / 50))" "$((outer / 5))") groups=(40 100 200 10) n keys=
	for n in 0 1 2 3; do
		make_table "star_dim_$((n + 1))" "${sizes[n]}" 'k bigint NOT NULL, g int NOT NULL, v bigint NOT NULL' "hashint8extended(i, 4$n), i % ${groups[n]}, i"
		keys+="$(drawn "5$n" "${sizes[n]}" "4$n"), "
	done
	make_table star_fact "$outer" 'k1 bigint NOT NULL, k2 bigint NOT NULL, k3 bigint NOT NULL, k4 bigint NOT NULL, v bigint NOT NULL' "${keys}hashint8extended(i, 48) & 1023"
}

pair_tables() {
	local columns='k bigint NOT NULL, v bigint NOT NULL, g int NOT NULL'
	make_table "bench_inner_$1" "$1" "$columns" "hashint8extended(i, 7), hashint8extended(i, 11) & 1048575, i % 1000"
	make_table "bench_outer_${outer}_$1" "$outer" "$columns" "$(drawn 5 "$1" 7), hashint8extended(i, 11) & 1048575, i % 1000"
}

# at_once PID...: the end of all
at_once() {
	local pid rc=0
	for pid in "$@"; do wait "$pid" || rc=1; done
	return $rc
}

tables() {
	local inner name pids=()
	sql -c "SET client_min_messages = warning" -c "CREATE EXTENSION IF NOT EXISTS gpuhash" -c "CREATE EXTENSION IF NOT EXISTS pg_prewarm"
	for inner in $inners; do
		pair_tables "$inner" &
		pids+=($!)
	done
	star_tables &
	at_once "${pids[@]}" $!
	# when nobody else's transaction is open any more, so that all of each page is visible
	pids=()
	for name in $(sql -c "SELECT relname FROM pg_class WHERE relname ~ '^(bench|star)_' AND relkind = 'r' AND reltuples < 0"); do
		sql -c "VACUUM (ANALYZE) $name" &
		pids+=($!)
	done
	at_once ${pids[@]+"${pids[@]}"}
	sql -c "SELECT format('%s: %s pages, %s all-visible', relname, relpages, relallvisible) FROM pg_class WHERE relname ~ '^(bench|star)_' AND relkind = 'r' ORDER BY 1"
}

prewarm() { sql -c "SELECT sum(pg_prewarm(oid)) FROM pg_class WHERE relname ~ '$1' AND relkind = 'r'" >/dev/null; }

# ----------------------------------------------------------------- queries

# query NAME INNER
query() {
	local o=bench_outer_${outer}_$2 i=bench_inner_$2
	case $1 in
		scan_count) echo "SELECT count(*) FROM $o" ;;
		scan_sum) echo "SELECT sum(o.v) FROM $o o" ;;
		join_count) echo "SELECT count(*) FROM $o o JOIN $i i ON i.k = o.k" ;;
		join_sum) echo "SELECT sum(o.v), sum(i.v) FROM $o o JOIN $i i ON i.k = o.k" ;;
		join_group) echo "SELECT count(*), max(n), sum(s) FROM (SELECT i.g, count(*) AS n, sum(o.v) AS s FROM $o o JOIN $i i ON i.k = o.k GROUP BY i.g) x" ;;
		scan_few) echo "SELECT count(*), sum(hashint8(v)), sum(g) FROM (SELECT * FROM $o WHERE v < 10486 OFFSET 0) x" ;;
		scan_half) echo "SELECT count(*), sum(hashint8(v)), sum(g) FROM (SELECT * FROM $o WHERE v < 524288 OFFSET 0) x" ;;
		join_few) echo "SELECT count(*), sum(hashint8(v)), sum(hashint8(w)) FROM (SELECT o.k, o.v, i.v AS w FROM $o o JOIN $i i ON i.k = o.k WHERE o.v < 10486 OFFSET 0) x" ;;
		join_half) echo "SELECT count(*), sum(hashint8(v)), sum(hashint8(w)) FROM (SELECT o.k, o.v, i.v AS w FROM $o o JOIN $i i ON i.k = o.k WHERE o.v < 524288 OFFSET 0) x" ;;
		right_sum) echo "SELECT count(*), sum(o.v), sum(i.v), count(o.k) FROM $i i LEFT JOIN $o o ON o.k = i.k" ;;
		right_group) echo "SELECT count(*), max(n), sum(s), sum(c) FROM (SELECT i.g, count(*) AS n, sum(o.v) AS s, count(o.k) AS c FROM $i i LEFT JOIN $o o ON o.k = i.k GROUP BY i.g) x" ;;
		right_few) echo "SELECT count(*), sum(hashint8(v)), sum(hashint8(w)), count(v) FROM (SELECT i.k, i.v AS w, o.v FROM $i i LEFT JOIN $o o ON o.k = i.k WHERE o.v < 10486 OR o.v IS NULL OFFSET 0) x" ;;
		star_few) echo "SELECT count(*), sum(hashint8(v)) FROM (SELECT d1.g, d2.g, f.v FROM star_fact f JOIN star_dim_1 d1 ON d1.k = f.k1
			JOIN star_dim_2 d2 ON d2.k = f.k2 JOIN star_dim_3 d3 ON d3.k = f.k3 JOIN star_dim_4 d4 ON d4.k = f.k4 WHERE d2.g = 5 AND d3.g < 100 AND d4.g <> 3 OFFSET 0) x" ;;
		star) echo "SELECT count(*), sum(n), sum(s) FROM (SELECT d1.g, d2.g, count(*) AS n, sum(f.v) AS s FROM star_fact f JOIN star_dim_1 d1 ON d1.k = f.k1
			JOIN star_dim_2 d2 ON d2.k = f.k2 JOIN star_dim_3 d3 ON d3.k = f.k3 JOIN star_dim_4 d4 ON d4.k = f.k4 WHERE d2.g < 50 AND d3.g < 100 AND d4.g <> 3 GROUP BY 1, 2) x" ;;
	esac
}

# settings TAG WORKERS
settings() {
	echo "SET jit = off; SET work_mem = '${WORK_MEM:-4GB}'; SET max_parallel_workers_per_gather = $2; SET statement_timeout = '200s';"
	echo "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET enable_mergejoin = off; SET enable_nestloop = off;"
	case $1 in
		native) echo "SET gpuhash.enabled = off;" ;;
		*) echo "SET gpuhash.engine = '${1#gpuhash_}'; SET gpuhash.force_offload = on;" ;;
	esac
}

# timed TAG INNER OUTER WORKERS WARM REPS QUERY...: OUTER as it is called in the results; WARM
# runs are not counted
timed() {
	local tag=$1 inner=$2 label=$3 processes=$4 warm=$5 reps=$6 name rep
	shift 6
	{
		settings "$tag" "$processes"
		for name in "$@"; do
			for ((rep = 1 - warm; rep <= reps; rep++)); do
				printf '\\echo @ %s %s\n\\timing on\n%s;\n\\timing off\n' "$name" "$rep" "$(query "$name" "$inner")"
			done
		done
	} | sql -f - | awk -v OFS='\t' -v tag="$tag" -v inner="$inner" -v outer="$label" -v workers="$processes" '
		$1 == "@" { query = $2; rep = $3; result = ""; next }
		/^Time:/ { if (rep > 0) print tag, query == "star" ? "star" : inner, outer, workers, query, "plain", rep, $2, result; next }
		{ result = $0 }' >>"$tsv"
}

# explained TAG INNER OUTER WORKERS QUERY...: plans
explained() {
	local tag=$1 inner=$2 label=$3 processes=$4 name
	shift 4
	{
		settings "$tag" "$processes"
		for name in "$@"; do
			printf 'SELECT gpuhash_stat_reset();\n\\echo\n\\echo @ %s %s %s %s %s\nEXPLAIN (ANALYZE, VERBOSE) %s;\n' "$tag" "$inner" "$label" "$processes" "$name" "$(query "$name" "$inner")"
			printf '%s\n' "SELECT format('gpuhash_stat: %s requests, %s pages, %s of them read in place; queue %s ms, device %s ms', page_batches, pages, pages_direct, round(queue_ms::numeric, 2), round(device_ms::numeric, 2)) FROM gpuhash_stat;"
		done
	} | sql -f - >>"$out/gpuscan-plans.txt"
}

# --------------------------------------------------------------- the parts

# await DIRECT: until GPUs read shared_buffers, or do not
await() {
	local i
	for ((i = 0; i < 300; i++)); do
		[ "$(sql -c "SELECT coalesce(bool_and(coalesce(buffers, '') = 'direct'), false) FROM gpuhash_devices WHERE engine = 'cuda'")" != "$1" ] || return 0
		sleep 0.2
	done
	sql -c "SELECT * FROM gpuhash_devices" >&2
	return 1
}

registering() {
	sql -c "ALTER SYSTEM SET gpuhash.register_buffers = $1" -c "SELECT pg_reload_conf()" >/dev/null
	await "$2"
}

part_load() { timed gpuhash_cuda "$largest" "${outer}_load" 0 0 3 scan_sum; }

part_cuda() {
	local inner processes
	for inner in $inners; do
		for processes in 0 "$workers"; do
			# shellcheck disable=SC2086
			timed gpuhash_cuda "$inner" "$outer" "$processes" 1 "${REPS:-5}" $all
		done
	done
	for processes in 0 "$workers"; do timed gpuhash_cuda star "$outer" "$processes" 1 "${REPS:-5}" star; done
}

part_cuda_plans() {
	local processes
	for processes in 0 "$workers"; do
		# shellcheck disable=SC2086
		explained gpuhash_cuda "$largest" "$outer" "$processes" $all star
		explained gpuhash_cuda "${inners%% *}" "$outer" "$processes" join_sum
	done
	explained gpuhash_cpu "$largest" "$outer" "$workers" scan_sum join_sum
}

part_parallel() {
	local inner tag
	for inner in $others; do
		for tag in gpuhash_cpu native; do
			# shellcheck disable=SC2086
			timed "$tag" "$inner" "$outer" "$workers" 0 "${OTHERS_REPS:-3}" $all
		done
	done
	for tag in gpuhash_cpu native; do timed "$tag" star "$outer" "$workers" 0 "${OTHERS_REPS:-3}" star; done
}

part_single() {
	local tag reps inner name pids
	for tag in native gpuhash_cpu; do
		pids=()
		reps=${OTHERS_REPS:-3}
		[ "$tag" != native ] || reps=${OTHERS_REPS:-1}
		for inner in $others star; do
			# shellcheck disable=SC2086
			set -- $all
			[ "$inner" != star ] || set -- star
			for name in "$@"; do
				timed "$tag" "$inner" "$outer" 0 0 "$reps" "$name" &
				pids+=($!)
			done
		done
		at_once "${pids[@]}"
	done
}

# Of each query: PostgreSQL's plan, and the one that the planner takes with gpuhash.
part_choices() {
	local inner processes enabled name
	for inner in $inners star; do
		# shellcheck disable=SC2086
		set -- $all join_few right_sum right_few
		[ "$inner" != star ] || set -- star star_few
		for processes in 0 "$workers"; do
			for enabled in off on; do
				echo "SET jit = off; SET work_mem = '${WORK_MEM:-4GB}'; SET max_parallel_workers_per_gather = $processes; SET gpuhash.enabled = $enabled;"
				for name in "$@"; do
					printf '\\echo\n\\echo @ %s %s %s enabled %s\nEXPLAIN %s;\n' "$name" "$inner" "$processes" "$enabled" "$(query "$name" "$inner")"
				done
			done
		done
	done | sql -f - >"$out/gpuscan-choices.txt"
}

part_calibrate() {
	# shellcheck disable=SC2086
	sql ${CALIBRATE:--v engine=cuda} -f "$(dirname "${BASH_SOURCE[0]}")/calibrate.sql" >"$out/gpuscan-calibration.txt"
}

part_copied() {
	local processes
	registering off f
	for processes in 0 "$workers"; do
		timed gpuhash_cuda "$largest" "${outer}_copied" "$processes" 1 3 scan_sum join_sum
		explained gpuhash_cuda "$largest" "${outer}_copied" "$processes" scan_sum
	done
	registering on t
}

part_updated() {
	local table=bench_outer_${outer}_$largest processes
	# rows lie in the order of i but for where two jobs meet, so that every page has some with such a g
	sql -c "UPDATE $table SET v = v WHERE g % 100 = 0"
	# the updates' fate is noted in the rows by whoever looks first
	sql -c "SET gpuhash.enabled = off" -c "SELECT count(*) FROM $table" >/dev/null
	for processes in 0 "$workers"; do
		# shellcheck disable=SC2086
		timed gpuhash_cuda "$largest" "${outer}_updated" "$processes" 1 "${REPS:-5}" $all
		explained gpuhash_cuda "$largest" "${outer}_updated" "$processes" scan_sum join_sum
	done
	timed native "$largest" "${outer}_updated" "$workers" 0 1 scan_count scan_sum join_sum
	sql -c "VACUUM $table"
}

part_rows() {
	local processes queries='scan_few scan_half join_few join_half star_few'
	for processes in 0 "$workers"; do
		# shellcheck disable=SC2086
		timed gpuhash_cuda "$largest" "$outer" "$processes" 1 3 $queries
		# shellcheck disable=SC2086
		explained gpuhash_cuda "$largest" "$outer" "$processes" $queries
	done
	# shellcheck disable=SC2086
	timed native "$largest" "$outer" "$workers" 0 1 $queries
	# shellcheck disable=SC2086
	timed gpuhash_cpu "$largest" "$outer" "$workers" 0 1 $queries
	# shellcheck disable=SC2086
	timed gpuhash_cpu "$largest" "$outer" 0 0 1 $queries &
	# shellcheck disable=SC2086
	timed native "$largest" "$outer" 0 0 1 $queries
	wait $!
}

part_right() {
	local queries='right_sum right_group right_few' tag name pids=()
	# shellcheck disable=SC2086
	timed gpuhash_cuda "$largest" "$outer" 0 1 3 $queries
	# shellcheck disable=SC2086
	explained gpuhash_cuda "$largest" "$outer" 0 $queries
	# shellcheck disable=SC2086
	timed native "$largest" "$outer" "$workers" 0 1 $queries
	for tag in native gpuhash_cpu; do
		for name in $queries; do
			timed "$tag" "$largest" "$outer" 0 0 1 "$name" &
			pids+=($!)
		done
	done
	at_once "${pids[@]}"
}

part_turns() {
	local n inner
	for ((n = 0; n < ${REPS:-5}; n++)); do
		for inner in $inners; do timed gpuhash_cuda "$inner" "${outer}_turns" 0 0 1 scan_sum join_sum; done
		timed gpuhash_cuda star "${outer}_turns" 0 0 1 star
	done
	for inner in $inners; do explained gpuhash_cuda "$inner" "${outer}_turns" 0 scan_sum join_sum; done
}

part_first() {
	prewarm "^bench_(outer_${outer}|inner)_${inners%% *}$"
	timed gpuhash_cuda "${inners%% *}" "${outer}_first" 0 0 3 scan_sum
}

part_small() {
	local label processes
	label=${outer}_$(sql -c "SHOW shared_buffers")
	timed native "$largest" "$label" "$workers" 0 1 join_sum
	for processes in 0 "$workers"; do
		timed gpuhash_cuda "$largest" "$label" "$processes" 1 3 join_sum
		explained gpuhash_cuda "$largest" "$label" "$processes" join_sum
	done
	[ "${SMALL_SINGLE:-yes}" = no ] || timed native "$largest" "$label" 0 0 1 join_sum
}

part_short() {
	local label processes
	label=${outer}_$(sql -c "SHOW gpuhash.shared_memory")
	prewarm '^star_'
	for processes in 0 "$workers"; do
		timed gpuhash_cuda star "$label" "$processes" 1 3 star
		explained gpuhash_cuda star "$label" "$processes" star
	done
}

summary() {
	tail -n +2 "$tsv" | sort -t "$(printf '\t')" -k2,2 -k3,3 -k4,4n -k5,5 -k1,1 -k8,8n | awk -F '\t' '
		{ group = $2 FS $3 FS $4 FS $5; cell = group FS $1; n[cell]++; ms[cell, n[cell]] = $8
		  if (!(cell in seen)) { seen[cell] = 1; order[++cells] = cell }
		  data = $2 FS $5; if (!(data in want)) want[data] = $9; else if (want[data] != $9) differ++ }
		function median(c) { return n[c] % 2 ? ms[c, (n[c] + 1) / 2] : (ms[c, n[c] / 2] + ms[c, n[c] / 2 + 1]) / 2 }
		END {
			printf "%-12s %10s %-16s %7s %-10s %10s %8s\n", "tag", "inner", "outer", "workers", "query", "ms", "ratio"
			for (i = 1; i <= cells; i++) {
				split(order[i], f, FS); native = f[1] FS f[2] FS f[3] FS f[4] FS "native"
				printf "%-12s %10s %-16s %7s %-10s %10.1f %8s\n", f[5], f[1], f[2], f[3], f[4], median(order[i]),
					native in n ? sprintf("%.4f", median(order[i]) / median(native)) : "-" }
			print differ ? "RESULTS DIFFER" : "all results agree"
			exit differ > 0 }' | tee "$out/gpuscan.txt"
}

tables
echo "tables after $SECONDS s"
case ${PARTS:-} in
	small | first | short) ;;
	*) prewarm '^(bench|star)_' ;;
esac
await t
echo "buffers registered after $SECONDS s"
for part in ${PARTS:-load cuda cuda_plans choices parallel single copied updated}; do
	if [ "$SECONDS" -ge "${SECONDS_MOST:-1000000}" ]; then
		echo "part $part is left out, the time is over"
		continue
	fi
	"part_$part"
	echo "part $part until $SECONDS s"
done
summary
