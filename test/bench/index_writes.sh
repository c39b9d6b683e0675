#!/bin/bash
# index_writes.sh: what an index USING gpuhash costs writers beside one of btree: time and WAL, by turns.
#
#	PGHOST=... PGPORT=... PGUSER=... DATABASE=... [REPS=5] [SECONDS_EACH=5] [KINDS="insert copy updates"] test/bench/index_writes.sh [PSQL [PGBENCH]]
#
# Against a server that is up, with gpuhash preloaded and created in the database; nobody else writes.  Prints the processor's
# milliseconds (least, median) and bytes of WAL of an INSERT of 1 M rows into an empty table, without a copy of the index, and with one of
# earlier rows; and pgbench's transactions a second of updates of an indexed column by its key.
set -euo pipefail

psql=${1:-psql}
pgbench=${2:-pgbench}
reps=${REPS:-5}
seconds=${SECONDS_EACH:-5}
database=${DATABASE:-postgres}

ask() { "$psql" -XqAtd "$database" -v ON_ERROR_STOP=1 "$@"; }

table() {
	ask -c "SET client_min_messages = warning" -c "DROP TABLE IF EXISTS w_$1" -c "CREATE TABLE w_$1 (k bigint, v bigint) WITH (autovacuum_enabled = off)" \
		-c "INSERT INTO w_$1 SELECT i, i FROM generate_series(-$2, -1) i" -c "CREATE INDEX w_$1_k ON w_$1 USING $1 (k) INCLUDE (v)" -c "VACUUM w_$1"
	[ "$3" = no ] || ask -c "SELECT gpuhash_prewarm('w_gpuhash_k')" >/dev/null
	ask -c CHECKPOINT
}

# Milliseconds of the processor and of the clock, and bytes of WAL of an INSERT, tab-separated.
insert() {
	ask 2>&1 <<-SQL | sed -nE 's/^(LOG:.*)?!\s+([0-9.]+) s user, ([0-9.]+) s system, ([0-9.]+) s elapsed/\2 \3 \4/p; s/^WAL //p' |
		SELECT pg_current_wal_insert_lsn() AS l \gset
		SET client_min_messages = log;
		SET log_executor_stats = on;
		INSERT INTO w_$1 SELECT i::bigint * 7919 % 1000003, i FROM generate_series(1, 1000000) i;
		SET log_executor_stats = off;
		SELECT 'WAL ' || pg_current_wal_insert_lsn() - :'l'::pg_lsn;
	SQL
		awk 'NF == 3 {cpu = 1000 * ($1 + $2); clock = 1000 * $3} NF == 1 {print cpu "\t" clock "\t" $1}'
}

series() {
	local what=$1 rows=$2 copy=$3 way out
	out=$(mktemp -d)
	for _ in $(seq "$reps"); do
		for way in btree gpuhash; do
			table $way "$rows" "$([ $way = gpuhash ] && echo "$copy" || echo no)"
			insert $way >>"$out/$way"
		done
	done
	for way in btree gpuhash; do
		sort -n "$out/$way" | awk -v what="$what" -v way=$way '{ms[NR] = $1; if (NR == 1 || $3 < wal) wal = $3}
			END {printf "%s, %s: processor %d ms, median %d; %d bytes of WAL\n", what, way, ms[1], ms[int((NR + 1) / 2)], wal}'
	done
	rm -r "$out"
}

updates() {
	local way script
	script=$(mktemp)
	for way in btree gpuhash; do
		table $way 100000 "$([ $way = gpuhash ] && echo yes || echo no)"
	done
	for _ in $(seq "$reps"); do
		for way in btree gpuhash; do
			printf '\\set k random(-100000, -1)\nUPDATE w_%s SET v = v + 1 WHERE k = :k;\n' $way >"$script"
			printf 'updates, %s: ' $way
			"$pgbench" -n -f "$script" -T "$seconds" -M prepared "$database" 2>/dev/null | sed -nE 's/^tps = ([0-9]+).*/\1 a second/p'
		done
	done
	rm "$script"
}

for kind in ${KINDS:-insert copy updates}; do
	case $kind in
		insert) series "INSERT of 1 M rows" 0 no ;;
		copy) series "with a copy of 100,000 rows" 100000 yes ;;
		updates) updates ;;
	esac
done
