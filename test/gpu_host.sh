#!/usr/bin/env bash
#
# gpu_host.sh TREE...: a whole test run on a GPU host that may have no PostgreSQL.
#
# TREE is a PostgreSQL installation that works wherever it lies, as a folder or
# a tarball of one; with several, the first is used where one is enough.  The
# host needs a C compiler, make, perl, nvcc and a GPU.  Everything is done as an
# ordinary user in WORKDIR, which stays, so that a run can be split over several
# calls.  Sections are independent of each other and have a time limit each.
# Prints a table at the end; the logs are in OUTDIR.
#
# Environment
#	SECTIONS	default: build conformance installcheck tap sanitizer bench
#	OUTDIR		logs and results (default: WORKDIR/out)
#	WORKDIR		default: /tmp/gpuhash-gpu-host
#	LIMIT		seconds for each section (default 540)
#	CUDA_ARCHS	default: native, the GPU found
#	SANITIZER_ARGS	arguments of the reduced conformance run (default: --reduced)
#	BENCH		a benchmark of joins (default: test/bench/join_bench.sh), called as
#			BENCH TREE PORT OUTDIR with a server that listens in /tmp; it reads APPEND=1, TAG= and
#			EXTRA="SET ...;" and what else is set here (INNERS, REPS, ...)
#	BENCH_TAGS	what is timed (default: native cuda cpu)
#	BENCH_PORT	number in the name of its server's socket (default 5439)
#	SHARED_BUFFERS	of its server (default 24GB)
set -euo pipefail
# shellcheck source=test/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

SECTIONS=${SECTIONS:-build conformance installcheck tap sanitizer bench}
WORKDIR=${WORKDIR:-/tmp/gpuhash-gpu-host}
OUTDIR=${OUTDIR:-$WORKDIR/out}
LIMIT=${LIMIT:-540}
BENCH_PORT=${BENCH_PORT:-5439}
BENCH=${BENCH:-$GH_HOME/test/bench/join_bench.sh}
export CUDA_ARCHS=${CUDA_ARCHS:-native}
export PATH="$PATH:/usr/local/cuda/bin"

# ------------------------- what runs as an ordinary user, for one server ($1)

build() { gh_stage WITH_CUDA=yes CUDA_ARCHS="$CUDA_ARCHS" && make -s -C "$SRC/test/engine" -j "$(nproc)"; }

conformance() {
	build && "$SRC/build/engine/conformance" cuda "$BUILD/gpuhash_cuda.so" && "$SRC/build/engine/conformance" cpu
}

sanitizer() {
	# shellcheck disable=SC2086
	build && compute-sanitizer --tool memcheck --leak-check full --error-exitcode 9 \
		"$SRC/build/engine/conformance" cuda "$BUILD/gpuhash_cuda.so" ${SANITIZER_ARGS:---reduced}
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
			"maintenance_work_mem = 1GB" "autovacuum = off" "max_wal_size = 64GB" "checkpoint_timeout = 1h"
	fi
	unset PGHOST PGPORT PGUSER PGDATABASE
	if [ "$1" != native ]; then
		extra="LOAD 'gpuhash'; SET gpuhash.engine = '$1'; SET gpuhash.force_offload = on;"
	fi
	APPEND=$([ "$1" = native ] || echo 1) TAG=$([ "$1" = native ] || printf gpuhash_)$1 EXTRA="$extra ${EXTRA:-}" bash "$BENCH" "${STAGE_BIN%/bin}" "$BENCH_PORT" "$2"
	# a shutdown that writes the tables out, for the next call
	gh_server_stop
}

in_workdir() {
	gh_paths
	"$@"
}

# ------------------------------------------------------------- the sections

note() { printf '%-20s %-7s %5s s  %s\n' "$@" | tee -a "$OUTDIR/table"; }

# section NAME COMMAND...: run it within the time limit, note how it went
section() {
	local name=$1 start=$SECONDS rc=0 counts
	shift
	gh_step "$name"
	timeout -k 30 "$LIMIT" "$@" >"$OUTDIR/$name.log" 2>&1 &
	CHILD=$!
	wait "$CHILD" || rc=$?
	CHILD=
	counts=$(grep -hoE '[0-9]+ passed, [0-9]+ failed|(ERROR|LEAK) SUMMARY.*' "$OUTDIR/$name.log" | paste -sd ';' || true)
	if [ "$rc" = 0 ]; then
		note "$name" ok "$((SECONDS - start))" "$counts"
	else
		FAILURES=$((FAILURES + 1))
		tail -n 40 "$OUTDIR/$name.log" | sed 's/^/  | /'
		note "$name" FAILED "$((SECONDS - start))" "status $rc, see $name.log; $counts"
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

all_sections() {
	local what tree tag test first=$1
	for what in $SECTIONS; do
		case $what in
			build | conformance | sanitizer)
				section "$what" bash "$GH_SCRIPT" --in "$first" "$what" ;;
			installcheck)
				echo "gpuhash.engine = 'cuda'" >"$WORKDIR/cuda.conf"
				for tree in "$@"; do
					section "installcheck-${tree##*/}" env PG_CONFIG="$tree/bin/pg_config" GH_WORKDIR="$WORKDIR/${tree##*/}" \
						PARTS="build regress isolation" WITH_CUDA=yes CONF="$WORKDIR/cuda.conf" bash "$GH_HOME/test/check.sh"
				done ;;
			tap)
				# cancels and random joins; the others are about the CPU engine or a stand-in
				for test in 003_cancel 012_random_joins; do
					section "tap-$test" env PG_CONFIG="$first/bin/pg_config" GH_WORKDIR="$WORKDIR/${first##*/}" \
						PARTS="build tap" TAP="$test" WITH_CUDA=yes GPUHASH_ENGINE=cuda bash "$GH_HOME/test/check.sh"
				done ;;
			bench)
				for tag in ${BENCH_TAGS:-native cuda cpu}; do
					section "bench-$tag" bash "$GH_SCRIPT" --in "$first" bench "$tag" "$WORKDIR/bench-out"
				done
				cp -R "$WORKDIR/bench-out" "$OUTDIR/" ;;
			*) gh_die "there is no section \"$what\"" ;;
		esac
	done
}

gpu_host() {
	local trees=() tree
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
	[ ! -s "$OUTDIR/bench-out/summary.txt" ] || cat "$OUTDIR/bench-out/summary.txt"
	[ "$FAILURES" = 0 ]
}

if [ "${1:-}" = --in ]; then
	export PG_CONFIG="$2/bin/pg_config"
	GH_WORKDIR=$WORKDIR/${2##*/}
	gh_main in_workdir "${@:3}"
elif [ -n "${GPUHASH_WORK:-}" ]; then
	gh_main in_workdir "$@"
elif [ $# = 0 ]; then
	sed -n '3,27s/^# \{0,1\}//p' "$0"
	exit 2
else
	[ -n "$(gh_nvcc)" ] || gh_die "nvcc is not installed"
	gpu_host "$@"
fi
