#!/usr/bin/env bash
#
# demo.sh: the same query with and without gpuhash (`make demo`).
#
# Installs missing packages (as root; otherwise it shows the command), builds
# gpuhash, starts a private PostgreSQL in a temporary folder as an ordinary
# user, loads the data, shows both plans, times both, compares the results and
# removes everything again.  Neither the checkout nor an installed server is
# touched.
#
# Environment
#	ROWS		rows of the large table (default 5000000; archive: all)
#	DATA=archive	joins over the distribution's own package index, in place
#			of the pgbench tables; every result is compared
#	PG_CONFIG	the server to use (default: of PATH, else the newest)
#	GPUHASH_ARCHIVE	folder of the archive data (default: build/archive)
set -euo pipefail
# shellcheck source=test/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=test/archive.sh
. "$(dirname "${BASH_SOURCE[0]}")/archive.sh"

DATA=${DATA:-pgbench}
ROWS=${ROWS:-$([ "$DATA" = archive ] && echo 0 || echo 5000000)}
# One process each: the comparison is of the joins, not of the number of cores.
COMMON="SET jit = off; SET max_parallel_workers_per_gather = 0; SET work_mem = '512MB';"
NATIVE="$COMMON SET gpuhash.enabled = off;"
OFFLOAD="$COMMON SET gpuhash.enabled = on;"

start_server() {
	local nvcc archs=90
	nvcc=$(gh_nvcc)
	gh_step "building gpuhash for $("$PG_CONFIG" --version)${nvcc:+, with CUDA}"
	! gh_gpu || archs=native
	# a compiler that is newer than this script may know new warnings
	gh_stage WITH_CUDA=auto CUDA_ARCHS="$archs" with_llvm=no WERROR=no
	gh_step "starting a private PostgreSQL in $WORK as user $(id -un)"
	gh_server_start demo "shared_buffers = $(shared_buffers)" "session_preload_libraries = 'gpuhash'" \
		"maintenance_work_mem = 256MB" "autovacuum = off" "checkpoint_timeout = 1h"
	gh_psql -At -c "SELECT version()"
	gh_psql -c "CREATE EXTENSION gpuhash"
}

# A quarter of the memory, 4 GB at most.
shared_buffers() {
	awk '/^MemTotal/ { mb = $2 / 4096; print int(mb > 4096 ? 4096 : mb < 128 ? 128 : mb) "MB" }' /proc/meminfo
}

# timed SETTINGS QUERY: milliseconds in $MS, what the query printed in $RESULT
timed() {
	local out
	out=$(gh_psql -At -c "$1" -c '\timing on' -c "$2") || return
	MS=$(sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' <<<"$out")
	RESULT=$(grep -v '^Time: ' <<<"$out" || true)
}

median() { printf '%s\n' "$@" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

explain() { gh_psql -At -c "$1" -c "EXPLAIN (ANALYZE, COSTS OFF) $2" | sed 's/^/  /'; }

# ------------------------------------------------------------------ pgbench

demo_pgbench() {
	local scale=$((ROWS / 500000)) query native=() offload=() i n1 n2
	[ "$scale" -ge 1 ] || scale=1
	query="SELECT count(*), sum(h.delta), sum(a.bid) FROM pgbench_history h JOIN pgbench_accounts a ON a.aid = h.aid"

	gh_step "loading: pgbench -i -s $scale ($((scale * 100000)) accounts)"
	"$STAGE_BIN/pgbench" -i -I dtgp -s "$scale" -q 2>&1 | grep -vE '^(dropping|NOTICE)' || true
	gh_step "loading: $ROWS rows of pgbench_history"
	gh_psql -c "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
		SELECT 1 + i % (10 * $scale), 1 + i % $scale,
			1 + (hashint8extended(i, 0) & 9223372036854775807) % (100000 * $scale), i % 10001 - 5000, now()
		FROM generate_series(1, $ROWS::bigint) i" -c "VACUUM ANALYZE pgbench_history" -c "VACUUM ANALYZE pgbench_accounts"

	gh_step "the query"
	gh_say "  $query"
	gh_step "PostgreSQL's own plan"
	explain "$NATIVE" "$query"
	gh_step "the plan with gpuhash"
	explain "$OFFLOAD" "$query" | tee "$WORK/plan"
	if ! grep -q 'Custom Scan (GpuHashJoin)' "$WORK/plan"; then
		gh_say "  (the planner found PostgreSQL's own join cheaper here; from now on gpuhash is forced)"
		OFFLOAD="$OFFLOAD SET gpuhash.force_offload = on;"
		explain "$OFFLOAD" "$query" | tee "$WORK/plan"
	fi

	gh_step "three runs each, in turn"
	for i in 1 2 3; do
		timed "$NATIVE" "$query"
		native+=("$MS")
		n1=$RESULT
		timed "$OFFLOAD" "$query"
		offload+=("$MS")
		n2=$RESULT
		printf '  run %s: PostgreSQL %10.1f ms   gpuhash %10.1f ms\n' "$i" "${native[-1]}" "${offload[-1]}"
		if [ "$n1" != "$n2" ]; then
			gh_say "THE RESULTS DIFFER: $n1 and $n2"
			return 1
		fi
	done
	gh_say "  both answer: $n1"
	gh_step "median of three, $ROWS rows joined to $((scale * 100000))"
	awk -v a="$(median "${native[@]}")" -v b="$(median "${offload[@]}")" -v e="$(sed -n 's/^ *Engine: //p' "$WORK/plan" | head -n 1)" 'BEGIN {
		printf "  PostgreSQL %10.1f ms\n  gpuhash    %10.1f ms   (engine: %s)\n  ratio      %10.2f\n", a, b, e, b / a }'
}

# ------------------------------------------------------------------ archive

# compare TITLE QUERY: with PostgreSQL's own joins and through gpuhash
compare() {
	local title=$1 query=$2 native joins wanted
	timed "$NATIVE" "$query" || { bad "$title" "the query failed"; return; }
	native=$MS
	wanted=$RESULT
	timed "$OFFLOAD" "$query" || { bad "$title" "the query failed with gpuhash"; return; }
	joins=$(gh_psql -At -c "$OFFLOAD" -c "EXPLAIN (COSTS OFF) $query" | grep -c 'Custom Scan (GpuHashJoin)' || true)
	printf '  %-46s %8.0f ms %8.0f ms   %s\n' "$title" "$native" "$MS" "${wanted//|/ }"
	if [ "$wanted" != "$RESULT" ]; then
		bad "$title" "the results differ, gpuhash: ${RESULT//|/ }"
	elif [ "$joins" = 0 ]; then
		bad "$title" "no join went through gpuhash"
	fi
}

bad() {
	printf '  FAILED: %s: %s\n' "$1" "$2"
	BAD=$((BAD + 1))
}

demo_archive() {
	local title query
	gh_step "the package index: fetching it, unless it is there"
	archive_get || gh_die "DATA=archive needs a Debian or Ubuntu machine, and apt-get could not fetch the data here"
	gh_say "  $ARCHIVE"
	gh_step "loading it"
	archive_load "$ARCHIVE" "$ROWS" | gh_psql
	gh_psql -c "SELECT (SELECT count(*) FROM archive_files) AS files, (SELECT count(*) FROM archive_packages) AS packages"

	OFFLOAD="$OFFLOAD SET gpuhash.force_offload = on;"
	gh_step "one plan of them"
	archive_queries | sed -n '1s/^[^|]*|//p' >"$WORK/query"
	explain "$OFFLOAD" "$(cat "$WORK/query")"
	gh_step "every join both ways (forced, also where the planner would not): PostgreSQL, gpuhash, count and hash of all rows"
	BAD=0
	while IFS='|' read -r title query; do
		compare "$title" "$query"
	done < <(archive_queries)
	gh_say
	[ "$BAD" = 0 ] || gh_die "$BAD joins failed"
	gh_say "  all results are the same"
}

demo() {
	gh_paths ""
	start_server
	"demo_$DATA"
	gh_server_stop
	gh_step "done; removing $WORK"
}

case $DATA:$ROWS in *:*[!0-9]* | pgbench:0*) gh_die "ROWS is \"$ROWS\": give a number above zero" ;; esac
case $DATA in pgbench | archive) ;; *) gh_die "DATA is \"$DATA\": give pgbench or archive" ;; esac
if [ -z "${GPUHASH_WORK:-}" ]; then
	gh_require server
	[ "$DATA" != archive ] || archive_make_folder
fi
gh_main demo
