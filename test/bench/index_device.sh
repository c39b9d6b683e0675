#!/usr/bin/env bash
#
# index_device.sh TREE PORT [OUTDIR]: times the copy of an index on a GPU: how long it takes to make, and joins by it.
#
# TREE is a PostgreSQL installation with gpuhash, PORT the socket's number of its server, which listens in
# HOST and has gpuhash in shared_preload_libraries and shared_buffers for all tables.  Makes, once, id_big with ROWS
# rows of two bigints and an index USING gpuhash (k) INCLUDE (v), id_1000, id_1000000 and id_OUTER with so many rows.
# Times gpuhash_prewarm() of the index, with gpuhash.engine = 'cuda', and again when a row was inserted and the table
# vacuumed; then sums over joins of each of the other tables with id_big, in one process, at the client: by the index
# and without (gpuhash.enable_index), by a GPU (gpuhash.engine = 'cuda') and by the planner's choice (auto), with nothing
# changed and with one row updated on each of CHANGED blocks: the first query after that, and the middle of REPS.
# Appends to OUTDIR/index_device.tsv: what, rows, ms.
#
# Environment
#	ROWS, OUTER		rows (default: 100000000, 20000000)
#	LOGGED			no: id_big is unlogged, so that its pages do not stay on the GPU (default: yes)
#	CHANGED			numbers of blocks (default: 1 30 500 5000)
#	REPS			repetitions (default: 5)
#	HOST			folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bench_begin "$@"
tsv=$out/index_device.tsv
rows=${ROWS:-100000000} outer=${OUTER:-20000000} reps=${REPS:-5}
logged=${LOGGED:-yes}
commit_at_once
[ -s "$tsv" ] || printf 'what\trows\tms\n' >"$tsv"

put() { printf '%s%s\t%s\t%s\n' "$1" "$([ "$logged" = yes ] || echo ', unlogged')" "$2" "$3" >>"$tsv"; }

make_tables() {
	local n
	sql -c "DROP TABLE IF EXISTS id_big" -c "CREATE $([ "$logged" = yes ] || echo UNLOGGED) TABLE id_big (k bigint, v bigint) WITH (autovacuum_enabled = off)" 2>/dev/null
	fill id_big "$rows" 8 'i, i % 1000'
	for n in 1000 1000000 "$outer"; do
		sql -c "DROP TABLE IF EXISTS id_$n" -c "CREATE TABLE id_$n (k bigint, v bigint) WITH (autovacuum_enabled = off)" 2>/dev/null
		fill "id_$n" "$n" 4 "i * 7919 % $rows + 1, i"
		sql -c "VACUUM ANALYZE id_$n" -c "SELECT gpuhash_prewarm('id_$n')" >/dev/null
	done
	sql -c "SET maintenance_work_mem = '8GB'" -c "CREATE INDEX id_big_k ON id_big USING gpuhash (k) INCLUDE (v)"
	sql -c 'VACUUM ANALYZE id_big'
	# its pages, and the index's, come into shared_buffers
	sql -c 'SET gpuhash.enabled = off; SET enable_seqscan = off; SELECT count(k) FROM id_big' >/dev/null
	sql -c "SELECT gpuhash_prewarm('id_big')" >/dev/null
}

prewarm() { put "$1" "$rows" "$(times 1 "SET gpuhash.engine = 'cuda';" "SELECT gpuhash_prewarm('id_big_k')" | tail -n 1)"; }

middle() { sort -g | sed -n "$((reps / 2 + 1))p"; }

# joins WHAT
joins() {
	local n engine index all
	for n in 1000 1000000 "$outer"; do
		for engine in cuda auto; do
			for index in on off; do
				all=$(times "$((reps + 1))" "SET gpuhash.engine = '$engine'; SET gpuhash.enable_index = $index; SET max_parallel_workers_per_gather = 0;" \
					"SELECT sum(b.v), count(*) FROM id_$n o JOIN id_big b ON b.k = o.k" | tail -n "$((reps + 1))")
				put "join, $1, engine $engine, index $index, first" "$n x $rows" "$(head -n 1 <<<"$all")"
				put "join, $1, engine $engine, index $index" "$n x $rows" "$(tail -n "$reps" <<<"$all" | middle)"
			done
		done
		sql -c "SET gpuhash.engine = 'cuda'; SET max_parallel_workers_per_gather = 0; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF)
			SELECT sum(b.v), count(*) FROM id_$n o JOIN id_big b ON b.k = o.k" >"$out/index_device-${1// /_}-$n.plan"
	done
}

make_tables
prewarm 'copy on the GPU, first'
sql -c 'INSERT INTO id_big VALUES (0, 0)' -c 'VACUUM (INDEX_CLEANUP on) id_big'
prewarm 'copy on the GPU, again'
joins 'nothing changed'
for blocks in ${CHANGED:-1 30 500 5000}; do
	sql -c "UPDATE id_big SET v = v + 1 WHERE ctid IN (SELECT format('(%s,1)', b * (pg_relation_size('id_big') / 8192 / $blocks))::tid
		FROM generate_series(0, $blocks - 1) b)"
	joins "$blocks blocks changed"
done
