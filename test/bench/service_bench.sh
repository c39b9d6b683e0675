#!/usr/bin/env bash
#
# service_bench.sh OUTDIR: what the GPU service costs and brings, on the server that PGHOST,
# PGPORT, PGUSER and PGDATABASE name.  The server has gpuhash, built with FAULT_POINTS=yes,
# in shared_preload_libraries, and a GPU that is ready.
#
# Writes OUTDIR/service.csv and prints a summary:
#	request	a find of so many keys through the service: microseconds as its client sees
#			them (median, 99th percentile), and the means of the time in the queue and in
#			the engine.  What the service adds is the median less the time in the engine
#	first	a new session's first query, a join of two small tables, in ms: PostgreSQL
#			alone, and forced through the GPU
#	join	seconds of a join of ROWS with a fifth as many rows, medians of REPS, by engine
#	crowd	SESSIONS sessions at once, each with joins on the GPU: seconds in all, and the
#			number of different answers, which is 1
#
# Environment: ROWS (20000000), REPS (3), SESSIONS (64), ENGINES (off cpu cuda)
set -euo pipefail

OUT=${1:?usage: service_bench.sh OUTDIR}
ROWS=${ROWS:-20000000}
REPS=${REPS:-3}
SESSIONS=${SESSIONS:-64}
ENGINES=${ENGINES:-off cpu cuda}
CSV=$OUT/service.csv
mkdir -p "$OUT"
PSQL=(psql -XqAt -v ON_ERROR_STOP=1)

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# setting ENGINE: what makes a session use it
setting() {
	if [ "$1" = off ]; then
		echo "SET gpuhash.enabled = off"
	else
		echo "SET gpuhash.force_offload = on; SET gpuhash.enable_aggregate = off; SET gpuhash.engine = '$1'"
	fi
}

# milliseconds ENGINE QUERY: of one run in a new session
milliseconds() {
	"${PSQL[@]}" -c "$(setting "$1")" -c '\timing on' -c "$2" | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | tail -n 1
}

prepare() {
	"${PSQL[@]}" -o /dev/null <<-SQL
		SET client_min_messages = warning;
		CREATE EXTENSION IF NOT EXISTS gpuhash_test CASCADE;
		DROP TABLE IF EXISTS service_inner, service_outer, service_small, service_middle;
		CREATE TABLE service_inner AS SELECT g AS k, g * 2 AS v FROM generate_series(1, $ROWS / 5) g;
		CREATE TABLE service_outer AS SELECT (random() * $ROWS / 4)::int AS k, g AS v FROM generate_series(1, $ROWS) g;
		CREATE TABLE service_small AS SELECT g AS k FROM generate_series(1, 1000) g;
		CREATE TABLE service_middle AS SELECT g AS k FROM generate_series(1, 300000) g;
		ANALYZE service_inner, service_outer, service_small, service_middle;
	SQL
}

# The worker needs a moment after the server's start.
await_worker() {
	local i
	for ((i = 0; i < 60; i++)); do
		! "${PSQL[@]}" -o /dev/null -c 'SELECT gpuhash_measure_requests(1, 1)' 2>"$OUT/worker.txt" || return 0
		sleep 0.5
	done
	cat "$OUT/worker.txt"
	return 1
}

requests() {
	local keys result
	for keys in 1 1000 16384 32768; do
		result=$("${PSQL[@]}" -c "SELECT gpuhash_measure_requests(3000, $keys)")
		echo "request,$keys,$(sed -E 's/(median|p99|queue|engine|) //g; s/ //g' <<<"$result")" >>"$CSV"
		echo "request of $keys keys, us: $result"
	done
}

first() {
	local engine query='SELECT count(*) FROM service_middle JOIN service_small USING (k)' i
	for engine in off cuda; do
		for ((i = 0; i < 5; i++)); do milliseconds "$engine" "$query"; done | median |
			sed "s/^/first,$engine,/" | tee -a "$CSV"
	done
}

joins() {
	local engine answer reference='' i
	local query='SELECT sum(o.v), sum(i.v), count(*) FROM service_outer o JOIN service_inner i ON i.k = o.k'
	for engine in $ENGINES; do
		answer=$("${PSQL[@]}" -c "$(setting "$engine")" -c "$query")
		reference=${reference:-$answer}
		[ "$answer" = "$reference" ] || { echo "wrong answer of $engine: $answer, not $reference"; exit 1; }
		for ((i = 0; i < REPS; i++)); do milliseconds "$engine" "$query"; done | median |
			awk -v e="$engine" '{ printf "join,%s,%.3f\n", e, $1 / 1000 }' | tee -a "$CSV"
	done
}

crowd() {
	local i start=$EPOCHREALTIME answers
	local query='SELECT count(*), sum(m.k) FROM service_middle m JOIN service_middle n USING (k)'
	for ((i = 0; i < SESSIONS; i++)); do
		"${PSQL[@]}" -c "$(setting cuda)" -c "$query" -c "$query" -c "$query" >"$OUT/crowd.answer.$i" 2>&1 &
	done
	wait
	answers=$(cat "$OUT"/crowd.answer.* | sort | uniq -c | tee "$OUT/crowd.txt" | wc -l)
	rm -f "$OUT"/crowd.answer.*
	awk -v n="$SESSIONS" -v a="$answers" -v s="$start" -v e="$EPOCHREALTIME" \
		'BEGIN { printf "crowd,%d,%.3f,%d\n", n, e - s, a }' | tee -a "$CSV"
	cat "$OUT/crowd.txt"
	[ "$answers" = 1 ]
}

echo "kind,what,value,p99_or_answers,queue,engine" >"$CSV"
prepare
await_worker
requests
first
joins
crowd
"${PSQL[@]}" -x -c 'SELECT * FROM gpuhash_devices' -c 'SELECT * FROM gpuhash_stat' 2>/dev/null || true
