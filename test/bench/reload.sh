#!/usr/bin/env bash
#
# reload.sh TREE PORT [OUTDIR]: times gpuhash_prewarm, and how long it takes until pages are on a GPU again after a restart.
#
# TREE is a PostgreSQL installation with gpuhash, PORT the socket's number of its server, which listens in HOST, has gpuhash in
# shared_preload_libraries, gpuhash.reload_resident on, and shared_buffers for the table; RESTART is a command that restarts it.
# Makes, once, the table o of resident.sh with ROWS rows, 52 bytes each.  Then, by one process: sums over it over the bus; prewarms
# it; sums again; restarts the server, and waits until as many pages are there as before, with sums meanwhile; ends the GPU's worker
# (SIGTERM), and waits likewise.  Last, sums where the pages came in another order than the table's: by FILLERS processes, and after a
# row of each of CHANGED percent of the blocks has changed, and these were vacuumed; and where gpuhash_prewarm has put these in
# order again.  Each sum must be the same.
# Appends to OUTDIR/reload.tsv: what, pages, ms.  Exits with 1 if a sum differs, or pages do not come back.
#
# Environment
#	ROWS	default: 50000000
#	RESTART	default: TREE/bin/pg_ctl restart -m fast -w, for which PGDATA has to be set
#	FILLERS	default: 4
#	CHANGED	percents (default: 10 50), in that order
#	WAIT	seconds until pages have to be there again (default: 60)
#	HOST	folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bench_begin "$@"
tsv=$out/reload.tsv
rows=${ROWS:-50000000}
failed=0
commit_at_once
[ -s "$tsv" ] || printf 'what\tpages\tms\n' >"$tsv"

put() { printf '%s\t%s\t%s\n' "$@" | tee -a "$tsv"; }
resident() { sql -c "SELECT coalesce(sum(resident), 0) FROM gpuhash_resident WHERE relation = 'o'::regclass" 2>/dev/null || echo 0; }
now() { date +%s%N; }
since() { echo $((($(now) - $1) / 1000000)); }

# prewarm WHAT: pages is how many are there then
prewarm() {
	local begin
	begin=$(now)
	pages=$(sql -c "SELECT gpuhash_prewarm('o')")
	put "$1" "$pages" "$(since "$begin")"
}

# sums WHAT SETTINGS TIMES: the milliseconds of each, and whether it is right
sums() {
	local text
	text=$({
		echo "SET max_parallel_workers_per_gather = 0; $2"
		printf '%s\n' '\timing on'
		for ((rep = 0; rep < $3; rep++)); do echo 'SELECT sum(v), count(*) FROM o;'; done
	} | sql -f -)
	milliseconds <<<"$text" | while read -r ms; do put "$1" "$(resident)" "$ms"; done
	[ "$(grep '|' <<<"$text" | sort -u)" = "$right" ] || { echo "reload.sh: $1: another sum" >&2; failed=1; }
}

wait_direct() {
	for ((try = 0; try < 4 * ${WAIT:-60}; try++)); do
		[ "$(sql -c "SELECT count(*) > 0 AND bool_and(buffers = 'direct') FROM gpuhash_devices WHERE engine = 'cuda'" 2>/dev/null)" != t ] || return 0
		sleep 0.25
	done
	echo 'reload.sh: no GPU reads shared_buffers' >&2
}

# await WHAT PAGES BEGIN: until so many pages are there again, with sums meanwhile
await() {
	for ((try = 0; try < 2 * ${WAIT:-60}; try++)); do
		[ "$(resident)" -lt "$2" ] || { put "$1: pages are there again" "$(resident)" "$(since "$3")"; return; }
		[ $((try % 4)) != 1 ] || sums "$1: sum meanwhile" '' 1
		sleep 0.5
	done
	echo "reload.sh: $1: $(resident) of $2 pages are there" >&2
	failed=1
}

# vacuum: until all pages are all-visible, which some are not that others have pinned
vacuum() { sql -c 'VACUUM o' -c 'VACUUM ANALYZE o'; }

if ! has_rows o "$rows"; then
	sql -c 'DROP TABLE IF EXISTS o; CREATE TABLE o (k bigint NOT NULL, v bigint NOT NULL, g int NOT NULL) WITH (autovacuum_enabled = off)' 2>/dev/null
	fill o "$rows" 8 'i * 7, i & 1048575, i % 1000'
	vacuum
fi
sql -c 'CREATE EXTENSION IF NOT EXISTS gpuhash' 2>/dev/null
wait_direct
right=$(sql -c 'SET gpuhash.enabled = off; SELECT sum(v), count(*) FROM o')
sums 'over the bus' 'SET gpuhash.enable_resident = off;' 3
prewarm gpuhash_prewarm
prewarm 'gpuhash_prewarm of what is there'
sums 'prewarmed' '' 6

begin=$(now)
eval "${RESTART:-$tree/bin/pg_ctl restart -m fast -w}" >/dev/null
put 'restart of the server' 0 "$(since "$begin")"
await 'after a restart' "$pages" "$begin"
sums 'after a restart' '' 4

worker=$(sql -c "SELECT worker_pid FROM gpuhash_devices WHERE engine = 'cuda' LIMIT 1")
begin=$(now)
kill -TERM "$worker"
sleep 0.3
sums 'the worker has ended: sum' '' 1
await 'after the end of the worker' "$pages" "$begin"
sums 'after the end of the worker' '' 4

sql -c 'VACUUM FULL o'
vacuum
wait_direct
sql -c "SET max_parallel_workers_per_gather = ${FILLERS:-4}; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SELECT sum(v) FROM o" >/dev/null
sums 'brought by several processes' '' 4
for percent in ${CHANGED:-10 50}; do
	change_blocks o "$percent"
	vacuum
	sums "$percent percent of the blocks have changed" '' 6
done
prewarm 'gpuhash_prewarm of what is scattered'
sums 'prewarmed again' '' 6
exit $failed
