#!/bin/bash
# index_churn.sh TREE PORT [OUTDIR]: answers by the copy of an index USING gpuhash while the table changes and autovacuum is at work.
#
# TREE is a PostgreSQL installation with auto_explain, PORT the socket's number of its server, which listens in HOST, with gpuhash
# preloaded and created in the database, and autovacuum_naptime = 5s; nobody else is there.  Makes a table, of which PERCENT of a hundred rows
# change in a minute, so many RUN neighbouring keys at a time: most are updates of an indexed column, others of the key, or in place, or
# deletions with insertions; one in twenty is rolled back.  Every EVERY seconds, or as soon as the check before is through, a check
# compares, in one snapshot, a join, groups of a join, and keys of an array, by what the planner takes, and once more after the
# Seq Scan, with what that has found; every other check with parallel plans.
#
# Writes a line for each answer into OUTDIR/index_churn.tsv: seconds since the beginning, workers, the query, whether it was before or after
# the Seq Scan, blocks from the index and from the heap, or "-" and why there was no copy, milliseconds of the clock, and whether
# it was the Seq Scan's answer.  Prints what of that there was, and what changed; the status is 1 where an answer was another one,
# or none was by the copy.
#
# Environment
#	ROWS		of the table (default: 20000000)
#	MINUTES		default: 5
#	PERCENT		default: 10
#	RUN			default: 500
#	HOT			changes are in the first so many of a hundred keys (default: 100)
#	EVERY		default: 10
#	WORK_MEM	of the checks (default: 256MB): rows of blocks that have changed are there
#	STORAGE		the table's parameters for autovacuum (default: autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)
#	HOST		folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bench_begin "$@"

rows=${ROWS:-20000000} minutes=${MINUTES:-5} percent=${PERCENT:-10} run=${RUN:-500} every=${EVERY:-10}
hot=$((rows * ${HOT:-100} / 100))
tsv=$out/index_churn.tsv
export PGOPTIONS='-c client_min_messages=warning'

# ---------------------------------------------------------------------- table

# keys change their sign; a fifth of those that are asked has no row at first
sql <<-SQL
	DROP TABLE IF EXISTS churn, churn_asks, churn_array;
	CREATE TABLE churn (k bigint, v bigint, g int) WITH (fillfactor = 90, ${STORAGE:-autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0});
	INSERT INTO churn SELECT i, i % 1000, 0 FROM generate_series(1::bigint, $rows) i;
	CREATE INDEX churn_k ON churn USING gpuhash (k) INCLUDE (v);
	CREATE TABLE churn_asks AS SELECT CASE WHEN i % 5 = 0 THEN -1 ELSE 1 END * (1 + i * 7919999::bigint % $rows) AS k, i AS w, (i % 100)::int AS g
		FROM generate_series(1::bigint, $rows / 100) i;
	CREATE TABLE churn_array AS SELECT array_agg(DISTINCT 1 + i * 104729::bigint % $rows) AS keys FROM generate_series(1, $rows / 50) i;
SQL
for table in churn churn_asks churn_array; do sql -c "VACUUM ANALYZE $table"; done
sql -c CHECKPOINT
echo "$rows rows, $(sql -c "SELECT pg_relation_size('churn') / 8192") blocks; the copy is right for $(sql -c "SELECT gpuhash_prewarm('churn_k')")"

# -------------------------------------------------------------------- writers

scripts=$(mktemp -d)
writers=
trap '[ -z "$writers" ] || kill "$writers" 2>/dev/null; rm -r "$scripts"' EXIT

# script NAME STATEMENTS: of keys from :k on
script() { printf '\\set k random(1, %s)\n%s\n' $((hot - run + 1)) "$2" >"$scripts/$1"; }

these="(k BETWEEN :k AND :k + $run - 1 OR k BETWEEN -:k - $run + 1 AND -:k)"
script update "UPDATE churn SET v = v + 1 WHERE $these;"
script in_place "UPDATE churn SET g = g + 1 WHERE $these;"
script key "UPDATE churn SET k = -k WHERE $these;"
script again "WITH gone AS (DELETE FROM churn WHERE $these RETURNING *) INSERT INTO churn SELECT k, v + 1, g FROM gone;"
script back "BEGIN; UPDATE churn SET v = -1 WHERE $these; ROLLBACK;"

rate=$(awk "BEGIN {print $rows * $percent / 100 / 60 / $run}")
counts="SELECT n_tup_upd + n_tup_del, n_tup_hot_upd, autovacuum_count FROM pg_stat_user_tables WHERE relname = 'churn'"
before=$(sql -c "$counts")
"$tree/bin/pgbench" -n -c 2 -R "$rate" -T $((minutes * 60)) --max-tries=10 -f "$scripts/update@10" -f "$scripts/in_place@3" -f "$scripts/key@3" \
	-f "$scripts/again@3" -f "$scripts/back@1" >"$out/index_churn.pgbench" 2>&1 &
writers=$!

# --------------------------------------------------------------------- checks

names='join groups keys'
declare -A queries=(
	[join]='SELECT count(*), count(c.k), sum(o.w), sum(c.v) FROM churn_asks o LEFT JOIN churn c ON c.k = o.k'
	[groups]='SELECT o.g, count(*), sum(c.v), sum(c.k) FROM churn_asks o JOIN churn c ON c.k = o.k GROUP BY 1 ORDER BY 1'
	[keys]='SELECT count(*), sum(k), sum(v) FROM churn WHERE k = ANY ((SELECT keys FROM churn_array)::bigint[])'
)
# of rows that a Seq Scan found
by_seq() { sed -E "s/(FROM|JOIN) churn /\1 churn_seen /; s/= ANY .*/IN (SELECT unnest(keys) FROM churn_array)/" <<<"$1"; }

# by_copy WHEN: each query's digest.  auto_explain tells by what
by_copy() {
	local name
	for name in $names; do
		printf "SELECT 'ANSWER %s %s ' || md5(string_agg(a::text, ';')) FROM (%s) a;\n" "$name" "$1" "${queries[$name]}"
	done
}

# check WORKERS: its lines of the result
check() {
	local name
	{
		cat <<-SQL
			LOAD 'auto_explain';
			SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on; SET auto_explain.log_timing = off; SET client_min_messages = log;
			SET max_parallel_workers_per_gather = $1; SET work_mem = '${WORK_MEM:-256MB}'; SET gpuhash.explain_why = on;
			BEGIN ISOLATION LEVEL REPEATABLE READ;
		SQL
		by_copy before
		cat <<-SQL
			SET auto_explain.log_min_duration = -1; SET LOCAL gpuhash.enabled = off; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off;
			CREATE TEMP TABLE churn_seen ON COMMIT DROP AS SELECT k, v FROM churn
				WHERE k IN (SELECT k FROM churn_asks UNION ALL SELECT unnest(keys) FROM churn_array);
			ANALYZE churn_seen;
		SQL
		for name in $names; do
			printf "SELECT 'SEQ %s ' || md5(string_agg(a::text, ';')) FROM (%s) a;\n" "$name" "$(by_seq "${queries[$name]}")"
		done
		echo 'SET LOCAL gpuhash.enabled = on; SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = on; SET LOCAL enable_bitmapscan = on;'
		echo 'SET auto_explain.log_min_duration = 0;'
		by_copy after
		echo 'COMMIT;'
	} | sql -f - 2>&1 | awk -v OFS='\t' -v second="$(($(date +%s) - began))" -v workers="$1" '
		function value(line) { sub(/^[^:]*: */, "", line); return line }
		/ERROR|FATAL/ { print > "/dev/stderr" }
		$1 == "ANSWER" { answer[$2 " " $3] = $4 }
		$1 == "SEQ" { seq[$2] = $3 }
		/duration: .* plan:/ { took = $0; sub(/.*duration: /, "", took); sub(/ ms.*/, "", took) }
		$1 == "Query" && match($0, /ANSWER [a-z]+ [a-z]+/) {
			n++; what[n] = substr($0, RSTART + 7, RLENGTH - 7); ms[n] = took
			index_blocks[n] = heap_blocks[n] = "-"; why[n] = "no node of gpuhash"
		}
		/Blocks From Index:/ { index_blocks[n] = value($0); heap_blocks[n] += 0; why[n] = "" }
		/Blocks From Heap:/ { heap_blocks[n] = value($0) }
		/Without Copy:/ { why[n] = value($0) }
		END {
			for (i = 1; i <= n; i++) {
				split(what[i], part, " ")
				print second, workers, part[1], part[2], index_blocks[i], heap_blocks[i], why[i], ms[i],
					answer[what[i]] != "" && answer[what[i]] == seq[part[1]] ? "equal" : "WRONG"
			}
		}'
}

began=$(date +%s)
printf 'second\tworkers\tquery\twhen\tblocks_from_index\tblocks_from_heap\twithout_copy\tms\tanswer\n' >"$tsv"
workers=0
for ((at = every; at < minutes * 60; at += every)); do
	now=$(($(date +%s) - began))
	((now <= at)) || continue
	sleep $((at - now))
	check $workers >>"$tsv"
	workers=$((2 - workers))
done
wait "$writers" || { cat "$out/index_churn.pgbench"; exit 1; }
writers=

# --------------------------------------------------------------------- result

paste -d'|' <(echo "$before") <(sql -c "SELECT pg_stat_force_next_flush()" -c "$counts" | tail -n 1) |
	awk -F'|' -v rows="$rows" -v minutes="$minutes" '{printf "%.1f %% of the rows changed a minute, %.0f %% of these in place; %d autovacuums\n",
		($4 - $1) * 100 / rows / minutes, ($5 - $2) * 100 / ($4 - $1), $6 - $3}'
awk -F'\t' 'NR > 1 {
		checks[$1] = 1; answers++; what = $3 (($2 > 0) ? ", parallel" : ""); asked[what]++; wrong += $9 != "equal"
		if ($5 == "-") { why[$7]++; next }
		used[what]++; copies++; share[what] += $5 / ($5 + $6); ms[what] += $8
	}
	END {
		printf "%d checks, %d answers, %d by the copy, %d WRONG\n", length(checks), answers, copies, wrong
		for (what in asked) printf "%s: by the copy %d of %d; %.1f %% of the blocks from it, %d ms (means)\n", what, used[what], asked[what],
			used[what] ? share[what] * 100 / used[what] : 0, used[what] ? ms[what] / used[what] : 0
		for (reason in why) printf "without, %d: %s\n", why[reason], reason
		exit wrong > 0 || copies == 0
	}' "$tsv"
