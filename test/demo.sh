#!/usr/bin/env bash
#
# demo.sh: the same query with and without gpuhash (`make demo`).
#
# Installs missing packages (as root; otherwise it shows the command), builds
# gpuhash, starts a private PostgreSQL in a temporary folder as an ordinary
# user, loads the data, shows both plans, times both, compares the results and
# removes everything again but the packages.  Neither the checkout nor an
# installed server is touched.  The server has the settings of a new server, but
# for those about writing, which make loading faster; nothing is forced: where the
# planner finds PostgreSQL's own plan cheaper, the demo says so.
#
# Environment
#	ROWS		rows of the large table (default 5000000; archive: all)
#	DATA=archive	joins over the distribution's own package index, in place
#			of the pgbench tables; every result is compared
#	PG_CONFIG	the server to use (default: of PATH, else the newest)
#	TMPDIR		the folder to work in (default: /tmp, else /var/tmp)
#	GPUHASH_ARCHIVE	folder of the archive data (default: build/archive)
set -euo pipefail
# shellcheck source=test/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=test/archive.sh
. "$(dirname "${BASH_SOURCE[0]}")/archive.sh"

DATA=${DATA:-pgbench}
ROWS=${ROWS:-$([ "$DATA" = archive ] && echo 0 || echo 5000000)}
NATIVE="SET gpuhash.enabled = off;"
OFFLOAD="SET gpuhash.enabled = on;"

count() { find "$1" -name "$2" 2>/dev/null | wc -l; }

# How many of the files are compiled.
built() {
	local gpu=
	[ ! -d "$BUILD/cuda" ] || gpu=", and $(count "$BUILD/cuda" '*.cu.o') of $(count "$SRC/cuda" '*.cu') for the GPU"
	printf '%s of %s files compiled%s\n' "$(count "$BUILD/src" '*.o')" "$(count "$SRC/src" '*.c')" "$gpu"
}

start_server() {
	local cuda=no
	# without a GPU, nvcc would take minutes for nothing
	if gh_gpu; then
		[ -z "$(gh_nvcc)" ] || cuda=yes
		[ "$cuda" = yes ] || gh_say "There is a GPU, but no nvcc to build for it: the CPU does the work.  NVCC=PATH names one."
	fi
	gh_step "building gpuhash for $("$PG_CONFIG" --version), $([ "$cuda" = yes ] && echo "with CUDA" || echo "for the CPU")"
	gh_progress "$WORK/build.log" built gh_stage WITH_CUDA="$cuda" CUDA_ARCHS=native with_llvm=no
	gh_step "starting a private PostgreSQL in $WORK as user $(id -un)"
	gh_server_start demo "session_preload_libraries = 'gpuhash'"
	gh_psql -At -c "SELECT version()"
	gh_psql -At -c "SELECT '  settings of a new server: ' || string_agg(name || ' = ' || current_setting(name), ', ' ORDER BY name)
		FROM pg_settings WHERE name IN ('shared_buffers', 'work_mem', 'max_parallel_workers_per_gather')"
	gh_psql -c "CREATE EXTENSION gpuhash"
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

# verdict MS1 MS2: what PostgreSQL's own plans took and what they took with gpuhash.
verdict() {
	awk -v a="$1" -v b="$2" '
		function seconds(ms) {
			return sprintf(ms < 99.5 ? "%.3f s" : ms < 995 ? "%.2f s" : ms < 99500 ? "%.1f s" : "%.0f s", ms / 1000)
		}
		BEGIN {
			both = seconds(a) " with PostgreSQL'"'"'s own join, " seconds(b) " with gpuhash; same answer"
			if (a >= 1.05 * b) printf "%.1f times as fast: %s\n", a / b, both
			else if (b >= 1.05 * a) printf "Slower, by %.0f %%: %s\n", 100 * (b / a - 1), both
			else print "No difference: " both
		}'
}

# Where a plan is PostgreSQL's own although gpuhash is loaded: the reasons.
why_native() {
	gh_say "  The planner expects PostgreSQL's own plan to be faster here, and takes it although gpuhash is loaded."
	gh_psql -At -c "$OFFLOAD SET gpuhash.explain_why = on" -c "EXPLAIN (COSTS OFF) $1" | sed -n 's/^ *Not Offloaded/  &/p'
}

# ------------------------------------------------------------------ pgbench

# Five lines of them are shown while the tables are filled.
loading() { gh_psql -At -c "SELECT pg_size_pretty(pg_database_size('postgres')) || ' loaded'" 2>/dev/null || true; }

load_history() {
	gh_psql -c "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
		SELECT 1 + i % (10 * $1), 1 + i % $1,
			1 + (hashint8extended(i, 0) & 9223372036854775807) % (100000 * $1), i % 10001 - 5000, now()
		FROM generate_series(1, $ROWS::bigint) i" -c "VACUUM ANALYZE pgbench_history" -c "VACUUM ANALYZE pgbench_accounts"
}

demo_pgbench() {
	local scale=$((ROWS / 500000)) query native=() offload=() i n1 n2
	[ "$scale" -ge 1 ] || scale=1
	query="SELECT count(*), sum(h.delta), sum(a.bid) FROM pgbench_history h JOIN pgbench_accounts a ON a.aid = h.aid"

	gh_step "loading: pgbench -i -s $scale ($((scale * 100000)) accounts)"
	gh_progress "$WORK/load.log" loading "$STAGE_BIN/pgbench" -i -I dtgp -s "$scale" -q
	gh_step "loading: $ROWS rows of pgbench_history"
	gh_progress "$WORK/load.log" loading load_history "$scale"

	gh_step "the query"
	gh_say "  $query"
	gh_step "PostgreSQL's own plan"
	explain "$NATIVE" "$query"
	gh_step "the plan with gpuhash"
	explain "$OFFLOAD" "$query" | tee "$WORK/plan"
	grep -q 'Custom Scan (GpuHash' "$WORK/plan" || why_native "$query"

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
	gh_step "the middle one of three runs, $ROWS rows joined to $((scale * 100000)), on the $(where)"
	verdict "$(median "${native[@]}")" "$(median "${offload[@]}")"
}

# Where gpuhash did the work, by the plan that was shown.
where() {
	case $(sed -n 's/^ *Engine: //p' "$WORK/plan" | head -n 1) in
		cuda) echo "GPU" ;;
		*) echo "CPU" ;;
	esac
}

# ------------------------------------------------------------------ archive

# compare TITLE QUERY: with PostgreSQL's own plan and with what the planner chooses
# when gpuhash is loaded
compare() {
	local title=$1 query=$2 native wanted choice="PostgreSQL's plan"
	timed "$NATIVE" "$query" || { bad "$title" "the query failed"; return; }
	native=$MS
	wanted=$RESULT
	timed "$OFFLOAD" "$query" || { bad "$title" "the query failed with gpuhash"; return; }
	if gh_psql -At -c "$OFFLOAD" -c "EXPLAIN (COSTS OFF) $query" | grep 'Custom Scan (GpuHash' >"$WORK/nodes"; then
		choice=$(sed 's/.*(\(GpuHash[A-Za-z]*\)).*/\1/' "$WORK/nodes" | sort | uniq -c |
			awk '{ printf "%s%s%s", (NR > 1 ? ", " : ""), ($1 > 1 ? $1 " " : ""), $2 }')
		CHOSEN=$((CHOSEN + 1))
	fi
	printf '  %-46s %8.0f ms %8.0f ms   %s\n' "$title" "$native" "$MS" "$choice"
	echo "$native $MS" >>"$WORK/sums"
	[ "$wanted" = "$RESULT" ] || bad "$title" "the results differ: ${wanted//|/ }, gpuhash: ${RESULT//|/ }"
}

bad() {
	printf '  FAILED: %s: %s\n' "$1" "$2"
	BAD=$((BAD + 1))
}

load_archive() { archive_load "$GPUHASH_ARCHIVE" "$ROWS" | gh_psql; }

demo_archive() {
	local title query tried=0
	gh_step "loading the package archive's index"
	gh_progress "$WORK/load.log" loading load_archive
	gh_psql -c "SELECT (SELECT count(*) FROM archive_files) AS files, (SELECT count(*) FROM archive_packages) AS packages"

	gh_step "one plan of them, with gpuhash"
	archive_queries | sed -n '1s/^[^|]*|//p' >"$WORK/query"
	explain "$OFFLOAD" "$(cat "$WORK/query")"
	gh_step "each query: PostgreSQL's own plan, with gpuhash, and what of gpuhash the planner chose"
	BAD=0
	CHOSEN=0
	while IFS='|' read -r title query; do
		tried=$((tried + 1))
		compare "$title" "$query"
	done < <(archive_queries)
	gh_say
	[ "$BAD" = 0 ] || gh_die "$BAD of $tried queries failed"
	gh_say "The planner chose gpuhash for $CHOSEN of $tried queries; a number and a hash of all rows were compared for each."
	verdict "$(awk '{ n += $1 } END { print n }' "$WORK/sums")" "$(awk '{ n += $2 } END { print n }' "$WORK/sums")"
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
# the build takes 200 MB; a row takes 60 bytes, and as much again in the log and with its account
GH_NEEDS_MB=$([ "$DATA" = archive ] && echo 4500 || echo $((500 + ROWS / 5000)))
if [ -z "${GPUHASH_WORK:-}" ]; then
	gh_say "This demo builds gpuhash, runs a query on a private PostgreSQL in a temporary folder, and removes both."
	gh_require server
	if [ "$DATA" = archive ]; then
		gh_step "the package archive's index"
		archive_get || gh_die "DATA=archive needs a Debian or Ubuntu machine, and apt-get could not fetch the data here"
	fi
fi
gh_main demo
