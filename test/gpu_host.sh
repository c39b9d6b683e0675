#!/usr/bin/env bash
#
# gpu_host.sh TREE...: a whole test run on a GPU host that may have no PostgreSQL.
#
# TREE is a PostgreSQL installation that works wherever it lies, as a folder or
# a tarball of one; with several, the first is used where one is enough.  The
# host needs a C compiler, make, perl, nvcc and a GPU.  Everything is done as an
# ordinary user in WORKDIR, which stays, so that a run can be split over several
# calls.  Sections are independent of each other; each has one or more parts,
# with a time limit and a line of the table at the end each.  The logs are in
# OUTDIR.  The status is 1 where a part failed or was stopped at the limit; under
# the sanitizers, only where there were errors or no test was done in time.
#
# Sections
#	build		gpuhash and the engines' tests, the engine with fault points, the benchmarks
#	conformance	of the CUDA engine, the CPU engine, the CUDA engine with every allocation
#			and launch failing in turn, and random operations for RANDOM_SECONDS
#	installcheck	SQL and isolation tests with the CUDA engine, for every TREE
#	tap		cancels and random joins with the CUDA engine; pipelines of the service
#			and aggregates on the device itself, in place of the stand-in (SCAN_TESTS)
#	random_joins	many random queries in as many sessions as there are cores, with the GPU
#			service and with the CPU engine, against PostgreSQL's own plans
#	random_aggregates	likewise, aggregations by the GPU of the service, while another session
#			changes the tables during the second half
#	random_rows	likewise, queries for rows of tables and of joins
#	random_levels	likewise, queries of which groups stay on the GPU
#	sanitizer	compute-sanitizer's tools on reduced conformance runs
#	service		the GPU service: what it costs and brings (test/bench/service_bench.sh), and
#			tests of it with the device itself in place of the stand-in (SERVICE_TESTS)
#	bench		joins (BENCH), what a page costs the host (test/bench/page_bench.sh), and all of
#			engine_bench
#	gpuscan		scans, joins and aggregates by the GPU out of shared_buffers, by the CPU engine and
#			by PostgreSQL (test/bench/gpuscan.sh, GPUSCAN_PARTS), with SHARED_BUFFERS and with 512 MB
#	engine_bench	rows and experiments of test/bench/engine_bench.sh, alone
#	layout		both parts of test/bench/layout_bench (not by default)
#
# Environment
#	SECTIONS	default: build conformance installcheck tap random_joins random_aggregates random_rows
#			random_levels sanitizer service bench gpuscan
#	OUTDIR		logs and results (default: WORKDIR/out)
#	WORKDIR		default: /tmp/gpuhash-gpu-host
#	LIMIT		seconds for each part (default 540)
#	CUDA_ARCHS	default: native, the GPU found
#	RANDOM_SECONDS	of random operations (default 200, and half of LIMIT at most)
#	RANDOM_MOST	positions after which they end anyway (default 10^9)
#	TOOLS		default: memcheck initcheck synccheck racecheck
#	SANITIZER_ARGS	arguments of these conformance runs (default: --reduced)
#	RACECHECK_TESTS	tests that racecheck, the slowest, is for: texts between commas, of which
#			names of tests contain one (default: those that store, find and delete, and
#			pipelines; all: the whole suite)
#	ENGINE_PARTS	of engine_bench (default: rows static resize dynamic incremental mixes)
#	ENGINE_ARGS	more options of engine_bench, LAYOUT_ARGS of layout_bench
#	SERVICE_TESTS	default: 021_service_faults 023_service_ownership 024_service_load
#	GPUHASH_LOAD_SECONDS, GPUHASH_LOAD_SESSIONS	of the last (default here: 300, 64)
#	SCAN_TESTS	default: 058_service_pipelines 040_device_aggregates 042_device_snapshot 059_service_pipelines_forged
#	GPUHASH_RANDOM_QUERIES, GPUHASH_RANDOM_JOBS	of random_joins, random_aggregates, random_rows and
#			random_levels (default here: 100000, and the number of cores); no more are begun two
#			minutes before LIMIT
#	RANDOM_SERVERS	among which random_aggregates, random_rows and random_levels divide them (default: 4)
#	BENCH		a benchmark of joins (default: test/bench/join_bench.sh), called as
#			BENCH TREE PORT OUTDIR with a server that listens in /tmp; it reads APPEND=1, TAG= and
#			EXTRA="SET ...;" and what else is set here (INNERS, REPS, ...)
#	BENCH_TAGS	what is timed (default: native cuda cpu)
#	BENCH_PORT	number in the name of its server's socket (default 5439)
#	SHARED_BUFFERS	of its server (default 24GB)
set -euo pipefail
export WERROR=${WERROR:-yes}
# shellcheck source=test/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

SECTIONS=${SECTIONS:-build conformance installcheck tap random_joins random_aggregates random_rows random_levels sanitizer service bench gpuscan}
WORKDIR=${WORKDIR:-/tmp/gpuhash-gpu-host}
OUTDIR=${OUTDIR:-$WORKDIR/out}
export LIMIT=${LIMIT:-540}
RACECHECK_TESTS=${RACECHECK_TESTS:-equal keys,few keys,winners,repeated keys,counts,find-all,delete,drain list,every operation,pipelines: many groups,pipelines: pages of any relation,pipelines: probes that multiply}
BENCH_PORT=${BENCH_PORT:-5439}
BENCH=${BENCH:-$GH_HOME/test/bench/join_bench.sh}
export CUDA_ARCHS=${CUDA_ARCHS:-native}
export PATH="$PATH:/usr/local/cuda/bin"

# ------------------------- what runs as an ordinary user, for one server ($1)

engine_make() { make -s -C "$SRC/test/engine" -j "$(nproc)" "$@"; }

build() { gh_stage WITH_CUDA=yes CUDA_ARCHS="$CUDA_ARCHS" && engine_make; }

# The engine with fault points, which is not installed.
build_faults() {
	mkdir -p "$WORK/faults"
	BUILD=$WORK/faults gh_make WITH_CUDA=yes CUDA_ARCHS="$CUDA_ARCHS" FAULT_POINTS=yes with_llvm=no gpuhash_cuda.so
}

# For what is compiled for one architecture: the last that is named.
one_arch() {
	case $CUDA_ARCHS in
		*native*) echo native ;;
		*) echo "sm_${CUDA_ARCHS##* }" ;;
	esac
}

build_layout() {
	LAYOUT_BENCH=$WORK/layout_bench-$(one_arch)
	if [ ! -x "$LAYOUT_BENCH" ] || [ -n "$(find "$SRC/test/bench" -name '*.cu*' -newer "$LAYOUT_BENCH")" ]; then
		"$(gh_nvcc)" -O3 -std=c++17 -arch="$(one_arch)" -Xcompiler -Wall,-Wextra -Werror all-warnings \
			-o "$LAYOUT_BENCH" "$SRC/test/bench/layout_bench.cu"
	fi
}

build_bench() {
	engine_make engine_bench_cuda NVCC="$(gh_nvcc)" CUDA_ARCH="$(one_arch)"
	build_layout
}

# some_passed COMMAND...: a run of the conformance tests in which one passed at
# least: a name that no test has, or a library that cannot do it, is no success.
some_passed() {
	"$@" | tee "$WORK/some_passed" &&
		grep -qE '^[1-9][0-9]* passed, 0 failed$' "$WORK/some_passed"
}

# conform LIBRARY ARG...: the conformance tests on it, under $TOOL if set.
conform() {
	# shellcheck disable=SC2086
	some_passed ${TOOL:-} "$SRC/build/engine/conformance" cuda "$@"
}

conformance() {
	build
	conform "$BUILD/gpuhash_cuda.so" --without pipelines:
}

conformance_pipelines() {
	build
	conform "$BUILD/gpuhash_cuda.so" --only pipelines:
}

conformance_cpu() {
	engine_make
	some_passed "$SRC/build/engine/conformance" cpu
}

conformance_faults() {
	local text
	build_faults
	engine_make
	for text in "failed device" paging "registered read-only memory"; do
		conform "$WORK/faults/gpuhash_cuda.so" --only "$text"
	done
}

# In runs of a size that is soon done, each with a seed of its own, until the time
# is over; one that hangs is stopped by the part's limit, and that is a failure.
conformance_random() {
	local seconds=${RANDOM_SECONDS:-200} most=${RANDOM_MOST:-1000000000} run=20000000 done=0 start
	build
	start=$SECONDS
	[ "$seconds" -le "$((LIMIT / 2))" ] || seconds=$((LIMIT / 2))
	while [ "$done" -lt "$most" ] && [ "$((SECONDS - start))" -lt "$seconds" ]; do
		conform "$BUILD/gpuhash_cuda.so" --only "random operations" --random "$run" >"$WORK/random" 2>&1 || {
			cat "$WORK/random"
			gh_say "failed after $done positions that were right"
			return 1
		}
		done=$((done + $(sed -n 's/^ *\([0-9]*\) positions on .*/\1/p' "$WORK/random")))
		gh_say "$(head -n 1 "$WORK/random"): $done positions so far"
	done
	gh_say "$done positions in $((SECONDS - start)) s, 0 wrong"
}

# sanitizer TOOL
sanitizer() {
	local args=() texts=() text
	build
	# shellcheck disable=SC2206
	args=(${SANITIZER_ARGS:---reduced})
	TOOL="compute-sanitizer --tool $1 --error-exitcode 9"
	# calls that the tests have refused are no errors of the memory
	[ "$1" != memcheck ] || TOOL="$TOOL --leak-check full --report-api-errors no"
	if [ "$1" != racecheck ] || [ "$RACECHECK_TESTS" = all ]; then
		conform "$BUILD/gpuhash_cuda.so" "${args[@]}"
		return
	fi
	IFS=, read -r -a texts <<<"$RACECHECK_TESTS"
	for text in "${texts[@]}"; do
		conform "$BUILD/gpuhash_cuda.so" "${args[@]}" --only "$text"
	done
}

# right_wrong FILE FORM: how many lines of a benchmark's results are right, how many wrong
right_wrong() {
	gh_say "$(grep -c "${2/ok/yes}" "$1" || true) right, $(grep -c "${2/ok/no}" "$1" || true) wrong"
}

# engine_bench PART OUTDIR
engine_bench() {
	build
	# shellcheck disable=SC2086
	PARTS=$1 CUDA_ARCH=$(one_arch) bash "$SRC/test/bench/engine_bench.sh" \
		"$BUILD/gpuhash_cuda.so" "$2" ${ENGINE_ARGS:-}
	# of experiments the script tells it
	[ "$1" != rows ] || right_wrong "$2/rows-cuda.csv" ,ok,
}

# layout PART OUTDIR
layout() {
	local rc=0
	build_layout
	mkdir -p "$2"
	# shellcheck disable=SC2086
	"$LAYOUT_BENCH" --part "$1" ${LAYOUT_ARGS:-} >"$2/layout-part$1.csv" || rc=$?
	right_wrong "$2/layout-part$1.csv" ',ok$'
	return "$rc"
}

# bench TAG OUTDIR: PostgreSQL's own joins, or those of one engine
bench() {
	local extra=
	build
	SERVER=$WORK/bench
	if [ -f "$SERVER/data/PG_VERSION" ]; then
		"$STAGE_BIN/pg_ctl" -D "$SERVER/data" -l "$SERVER/log" -w -t 300 start
	else
		gh_server_start bench "port = $BENCH_PORT" "unix_socket_directories = '/tmp'" \
			"shared_buffers = ${SHARED_BUFFERS:-24GB}" "max_worker_processes = 64" "max_parallel_workers = 64" \
			"maintenance_work_mem = 1GB" "autovacuum = off" "max_wal_size = 64GB" "checkpoint_timeout = 1h" \
			"shared_preload_libraries = 'gpuhash'" "gpuhash.shared_memory = '256MB'"
	fi
	unset PGHOST PGPORT PGUSER PGDATABASE
	if [ "$1" = native ]; then
		extra="SET gpuhash.enabled = off;"
	else
		extra="SET gpuhash.engine = '$1'; SET gpuhash.force_offload = on;"
	fi
	APPEND=$([ "$1" = native ] || echo 1) TAG=$([ "$1" = native ] || printf gpuhash_)$1 EXTRA="$extra ${EXTRA:-}" bash "$BENCH" "${STAGE_BIN%/bin}" "$BENCH_PORT" "$2"
	# a shutdown that writes the tables out, for the next call
	gh_server_stop
}

# gpuscan OUTDIR
gpuscan() {
	local script=$SRC/test/bench/gpuscan.sh parts options
	build
	gh_server_start gpuscan "shared_buffers = ${SHARED_BUFFERS:-24GB}" "max_worker_processes = 64" "max_parallel_workers = 64" \
		"maintenance_work_mem = 1GB" "autovacuum = off" "max_wal_size = 64GB" "checkpoint_timeout = 1h" \
		"shared_preload_libraries = 'gpuhash'" "gpuhash.shared_memory = '1GB'"
	export HOST=$SERVER
	PARTS=${GPUSCAN_PARTS:-} bash "$script" "${STAGE_BIN%/bin}" 5432 "$1"
	for parts in ${GPUSCAN_AGAIN-small first short}; do
		case $parts in
			small) options="-c shared_buffers=512MB" ;;
			short) options="-c gpuhash.shared_memory=256MB" ;;
			*) options= ;;
		esac
		"$STAGE_BIN/pg_ctl" -D "$SERVER/data" -l "$SERVER/log" -w -t 300 -m fast -o "$options" restart >>"$SERVER/start.log"
		PARTS=$parts bash "$script" "${STAGE_BIN%/bin}" 5432 "$1"
	done
	gh_server_stop
}

build_service() { gh_stage WITH_CUDA=yes CUDA_ARCHS="$CUDA_ARCHS" FAULT_POINTS=yes; }

# service OUTDIR: with fault points, and so in a working folder of its own
service() {
	build_service
	gh_server_start service "shared_preload_libraries = 'gpuhash'" "gpuhash.shared_memory = '256MB'" \
		"shared_buffers = ${SHARED_BUFFERS:-24GB}" "work_mem = '4GB'" "max_connections = 200" \
		"max_parallel_workers_per_gather = 0" "autovacuum = off" "max_wal_size = 64GB" "checkpoint_timeout = 1h"
	PATH="$STAGE_BIN:$PATH" bash "$SRC/test/bench/service_bench.sh" "$1"
	gh_server_stop
}

# page_bench OUTDIR: likewise
page_bench() {
	gh_stage WITH_CUDA=no FAULT_POINTS=yes
	gh_server_start pages "shared_buffers = ${SHARED_BUFFERS:-24GB}" "autovacuum = off" "max_wal_size = 64GB" "checkpoint_timeout = 1h"
	HOST=$SERVER bash "$SRC/test/bench/page_bench.sh" "${STAGE_BIN%/bin}" 5432 "$1"
	gh_server_stop
}

# service_test NAME: a test with the device itself
service_test() {
	build_service
	export GPUHASH_BINDIR=$STAGE_BIN GPUHASH_STAND_IN=no TMPDIR=$WORK
	export GPUHASH_LOAD_SECONDS=${GPUHASH_LOAD_SECONDS:-300} GPUHASH_LOAD_SESSIONS=${GPUHASH_LOAD_SESSIONS:-64}
	prove -v -I "$SRC/test/perl" "$SRC/test/t/$1.pl" | tee "$WORK/service_test" || {
		gh_stop_servers
		return 1
	}
	gh_say "$(grep -c '^ok ' "$WORK/service_test") passed, 0 failed"
}

# random_joins ENGINE
random_joins() {
	gh_stage WITH_CUDA=yes CUDA_ARCHS="$CUDA_ARCHS"
	export GPUHASH_BINDIR=$STAGE_BIN TMPDIR=$WORK GPUHASH_ENGINE=$1
	export GPUHASH_RANDOM_QUERIES=${GPUHASH_RANDOM_QUERIES:-100000} GPUHASH_RANDOM_JOBS=${GPUHASH_RANDOM_JOBS:-$(nproc)}
	export GPUHASH_RANDOM_SECONDS=$((LIMIT > 240 ? LIMIT - 120 : LIMIT / 2))
	[ "$1" = cpu ] || export GPUHASH_RANDOM_SERVICE=yes
	prove -v -I "$SRC/test/perl" "$SRC/test/t/060_random_joins.pl" || {
		gh_stop_servers
		return 1
	}
}

# random_servers TEST: its queries and sessions by RANDOM_SERVERS at a time, with a seed each.  Small scans keep
# the one worker of a server busy with taking memory of the device and giving it back.
random_servers() {
	local servers=${RANDOM_SERVERS:-4} n seed=${GPUHASH_SEED:-$((RANDOM * 32768 + RANDOM + 1))} pids=() rc=0 pid
	rm -rf "$WORK/$1"-*
	for ((n = 1; n <= servers; n++)); do
		mkdir -p "$WORK/$1-$n"
		TMPDIR=$WORK/$1-$n GPUHASH_SEED=$((seed + n - 1)) GPUHASH_RANDOM_QUERIES=$(((GPUHASH_RANDOM_QUERIES + servers - 1) / servers)) \
			GPUHASH_RANDOM_JOBS=$(((GPUHASH_RANDOM_JOBS + servers - 1) / servers)) \
			prove -v -I "$SRC/test/perl" "$SRC/test/t/$1.pl" >"$WORK/$1-$n/log" 2>&1 &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || rc=1; done
	gh_stop_servers
	for ((n = 1; n <= servers; n++)); do cat "$WORK/$1-$n/log"; done
	cat "$WORK/$1"-*/log | sed -nE 's/^# ([0-9]+) right, ([0-9]+) wrong: .*/\1 \2/p' |
		awk '{ right += $1; wrong += $2 } END { printf "%d right, %d wrong\n", right, wrong }'
	return "$rc"
}

# random_service TEST, with fault points, too, for what it sees of the service
random_service() {
	build_service
	export GPUHASH_BINDIR=$STAGE_BIN GPUHASH_STAND_IN=no TMPDIR=$WORK
	export GPUHASH_RANDOM_QUERIES=${GPUHASH_RANDOM_QUERIES:-100000} GPUHASH_RANDOM_JOBS=${GPUHASH_RANDOM_JOBS:-$(nproc)}
	export GPUHASH_RANDOM_SECONDS=${GPUHASH_RANDOM_SECONDS:-$((LIMIT > 240 ? LIMIT - 120 : LIMIT / 2))}
	random_servers "$1"
}

in_workdir() {
	gh_paths ""
	"$@"
}

# ------------------------------------------------------------- the sections

note() { printf '%-20s %-7s %5s s  %s\n' "$@" | tee -a "$OUTDIR/table"; }

# timed NAME COMMAND...: run it within the time limit; RC is its status, 124 when it was stopped
timed() {
	local name=$1
	shift
	gh_step "$name"
	RC=0
	timeout -k 30 "$LIMIT" "$@" >"$OUTDIR/$name.log" 2>&1 &
	CHILD=$!
	wait "$CHILD" || RC=$?
	CHILD=
	[ "$RC" != 137 ] || RC=124
}

# failed NAME: show why
failed() {
	FAILURES=$((FAILURES + 1))
	tail -n 40 "$OUTDIR/$1.log" | sed 's/^/  | /'
}

# section NAME COMMAND...: a part of a section, and how it went
section() {
	local name=$1 start=$SECONDS counts forms='[0-9]+ passed, [0-9]+ failed|[0-9]+ right, [0-9]+ wrong'
	timed "$@"
	counts=$(grep -hoE "$forms|[0-9]+ positions (in|so far|that were).*" "$OUTDIR/$name.log" | tail -n 1 || true)
	if [ "$RC" = 0 ]; then
		note "$name" ok "$((SECONDS - start))" "$counts"
	elif [ "$RC" = 124 ]; then
		failed "$name"
		note "$name" stopped "$((SECONDS - start))" "at the limit, see $name.log; $counts"
	else
		failed "$name"
		note "$name" FAILED "$((SECONDS - start))" "status $RC, see $name.log; $counts"
	fi
}

# tool_section TOOL COMMAND...: the same for a tool of compute-sanitizer, which may be
# too slow for all tests: clean as far as it came is no failure
tool_section() {
	local name=$1 start=$SECONDS log=$OUTDIR/$1.log tests found sums
	timed "$@"
	tests=$(grep -c '^ok ' "$log" || true)
	# what is found is told at once; a tool that is stopped says so as an error, too
	found=$(grep -cE '^========= (Invalid|Uninitialized|(Error|Warning): Race|Barrier error|Potential|Leaked|Program hit)' "$log" || true)
	sums=$(grep -hoE '(ERROR|LEAK|RACECHECK) SUMMARY.*' "$log" | sort | uniq -c | sed 's/^ *\([0-9]*\) /\1 x /' | paste -sd ';' || true)
	if [ "$RC" = 0 ]; then
		note "$name" clean "$((SECONDS - start))" "$tests tests; $sums"
	elif [ "$RC" = 124 ] && [ "$found" = 0 ] && [ "$tests" != 0 ]; then
		note "$name" stopped "$((SECONDS - start))" "at the limit; clean in the $tests tests that were done"
	else
		failed "$name"
		note "$name" errors "$((SECONDS - start))" "status $RC, $found found in $tests tests, see $name.log; $sums"
	fi
}

# unpack TREE: the folder of a tarball's tree, or the folder itself
unpack() {
	local name
	if [ -d "$1" ]; then
		(cd "$1" && pwd -P)
		return
	fi
	# the whole list is read: a reader that stops early would fail tar
	name=$(tar -tf "$1" | sed 's,^\./,,; s,/.*,,' | sort -u | head -n 1)
	mkdir -p "$WORKDIR/trees"
	[ -d "$WORKDIR/trees/$name" ] || tar -xf "$1" -C "$WORKDIR/trees" --no-same-owner
	printf '%s\n' "$WORKDIR/trees/$name"
}

# inside NAME ARG...: the part NAME, of the functions above, with the first tree
inside() { section "$1" bash "$GH_SCRIPT" --in "$FIRST" "${@:2}"; }

# in_service NAME COMMAND...: a part of the build with fault points
in_service() { section "$1" env WORKDIR="$WORKDIR/service" bash "$GH_SCRIPT" --in "$FIRST" "${@:2}"; }

installcheck_sections() {
	local tree
	echo "gpuhash.engine = 'cuda'" >"$WORKDIR/cuda.conf"
	for tree in "$@"; do
		section "installcheck-${tree##*/}" env PG_CONFIG="$tree/bin/pg_config" GH_WORKDIR="$WORKDIR/${tree##*/}" \
			PARTS="build regress isolation" WITH_CUDA=yes CONF="$WORKDIR/cuda.conf" bash "$GH_HOME/test/check.sh"
	done
}

tap_sections() {
	local test
	# cancels and random joins; the others are about the CPU engine or a stand-in
	for test in 012_cancel 060_random_joins; do
		section "tap-$test" env PG_CONFIG="$FIRST/bin/pg_config" GH_WORKDIR="$WORKDIR/${FIRST##*/}" \
			PARTS="build tap" TAP="$test" WITH_CUDA=yes GPUHASH_ENGINE=cuda bash "$GH_HOME/test/check.sh"
	done
	service_tests "${SCAN_TESTS-058_service_pipelines 040_device_aggregates 042_device_snapshot 059_service_pipelines_forged}"
}

# service_tests NAMES
service_tests() {
	local test
	for test in $1; do
		in_service "$test" service_test "$test"
	done
}

engine_sections() {
	local part
	for part in ${ENGINE_PARTS-rows static resize dynamic incremental mixes}; do
		inside "engine-$part" engine_bench "$part" "$WORKDIR/bench-out/engine"
	done
}

one_section() {
	local part
	case $1 in
		build)
			inside build build
			inside build-faults build_faults
			inside build-bench build_bench ;;
		conformance)
			inside conformance conformance
			inside conformance-pipelines conformance_pipelines
			inside conformance-cpu conformance_cpu
			inside conformance-faults conformance_faults
			inside conformance-random conformance_random ;;
		installcheck) installcheck_sections "${@:2}" ;;
		tap) tap_sections ;;
		random_joins)
			for part in cuda cpu; do
				inside "random_joins-$part" random_joins "$part"
			done ;;
		random_aggregates) in_service random_aggregates random_service 062_random_device_aggregates ;;
		random_rows) GPUHASH_WITH=device in_service random_rows random_service 063_random_rows ;;
		random_levels) in_service random_levels random_service 065_random_levels ;;
		sanitizer)
			for part in ${TOOLS:-memcheck initcheck synccheck racecheck}; do
				tool_section "$part" bash "$GH_SCRIPT" --in "$FIRST" sanitizer "$part"
			done ;;
		service)
			in_service service service "$WORKDIR/bench-out"
			service_tests "${SERVICE_TESTS-021_service_faults 023_service_ownership 024_service_load}" ;;
		bench)
			for part in ${BENCH_TAGS:-native cuda cpu}; do
				inside "bench-$part" bench "$part" "$WORKDIR/bench-out"
			done
			section pages env WORKDIR="$WORKDIR/pages" bash "$GH_SCRIPT" --in "$FIRST" page_bench "$WORKDIR/bench-out"
			engine_sections ;;
		gpuscan) inside gpuscan gpuscan "$WORKDIR/bench-out" ;;
		engine_bench) engine_sections ;;
		layout)
			for part in 1 2; do
				inside "layout-$part" layout "$part" "$WORKDIR/bench-out/layout"
			done ;;
	esac
}

all_sections() {
	local what
	FIRST=$1
	for what in $SECTIONS; do
		one_section "$what" "$@"
		# at once: the next may be the one that the host's time is over in
		cp -R "$WORKDIR/bench-out" "$OUTDIR/"
	done
}

gpu_host() {
	local trees=() tree what
	for what in $SECTIONS; do
		case $what in
			build | conformance | installcheck | tap | random_joins | random_aggregates | random_rows | random_levels | sanitizer | service | bench | gpuscan | engine_bench | layout) ;;
			*) gh_die "there is no section \"$what\"" ;;
		esac
	done
	mkdir -p "$WORKDIR/bench-out" "$OUTDIR"
	chmod 755 "$WORKDIR"
	for tree in "$@"; do
		trees+=("$(unpack "$tree")")
	done
	# with what lies beside it, where an ordinary user can read it
	mkdir -p "$WORKDIR/benchmark"
	find "$(dirname "$BENCH")" -maxdepth 1 -type f -size -1024k -exec cp -f {} "$WORKDIR/benchmark/" \;
	export BENCH="$WORKDIR/benchmark/${BENCH##*/}"
	[ "$(id -u)" != 0 ] || chown -R "$(gh_user)" "$WORKDIR/bench-out"
	: >"$OUTDIR/table"
	FAILURES=0
	CHILD=
	trap '[ -z "$CHILD" ] || { kill -TERM "$CHILD"; wait "$CHILD"; }; exit 143' INT TERM HUP
	all_sections "${trees[@]}"
	gh_step "$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1), $(nproc) cores, $(date -u +%F)"
	cat "$OUTDIR/table"
	for what in summary gpuscan; do
		[ ! -s "$OUTDIR/bench-out/$what.txt" ] || cat "$OUTDIR/bench-out/$what.txt"
	done
	[ "$FAILURES" = 0 ]
}

if [ "${1:-}" = --in ]; then
	export PG_CONFIG="$2/bin/pg_config"
	GH_WORKDIR=$WORKDIR/${2##*/}
	gh_main in_workdir "${@:3}"
elif [ -n "${GPUHASH_WORK:-}" ]; then
	gh_main in_workdir "$@"
elif [ $# = 0 ]; then
	sed -n '3,/^set /s/^# \{0,1\}//p' "$0"
	exit 2
else
	[ -n "$(gh_nvcc)" ] || gh_die "nvcc is not installed"
	gpu_host "$@"
fi
