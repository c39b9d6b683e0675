#!/usr/bin/env bash
#
# check.sh: every test that this machine can run (`make check`).
#
# Works in a folder of its own and as an ordinary user; the checkout and the
# installed servers are not touched.  Missing packages are installed when run
# as root; otherwise the command that does it is shown.  What cannot run here
# is skipped with the reason.  The last lines name the longest tests and count: "N passed,
# N failed".
#
# Environment
#	PG_CONFIG	the server to test with (default: of PATH, else the newest)
#	TMPDIR		the folder to work in (default: /tmp, else /var/tmp), with GH_NEEDS_MB
#			free (default 3000)
#	PARTS		which parts (default: all): style harness build clang cuda
#			engine sanitize regress isolation tap; and, when named, core: see core.sh
#	CONF		file with lines for the configuration of the regress server
#	WITH_CUDA	yes: the library is built for the GPU here and installed
#	CUDA_ARCHS	what part cuda compiles the library for (default: the GPU here, else
#			75, 90 and 120 with few optimizations; all: every one that a build knows without
#			CUDA_ARCHS)
#	TAP		which of the TAP tests, as a pattern of the shell: "02*" (default: all)
#	TAP_AT_ONCE	how many of them run at a time, with the SQL and isolation tests as one (default:
#			three for two processors, at most 6; 1 with a GPU)
#	CHECK_SECONDS	after so many no TAP test is begun any more (default: no limit)
#	CHECK_TOTALS_FILE	file to write "passed failed" to, in place of the last lines, and behind that how many seconds
#			each test took, and its name
#	FETCH_ARCHIVE	yes: fetch the archive data if it is not there
#	GPUHASH_ARCHIVE	folder with the archive data (default: build/archive)
set -euo pipefail
GH_NEEDS_MB=${GH_NEEDS_MB:-3000}
# shellcheck source=test/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=test/archive.sh
. "$(dirname "${BASH_SOURCE[0]}")/archive.sh"
# shellcheck source=test/core.sh
. "$(dirname "${BASH_SOURCE[0]}")/core.sh"
# shellcheck source=test/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

ALL_PARTS="style harness build clang cuda engine sanitize regress isolation tap"
PARTS=${PARTS:-$ALL_PARTS}
PASSED=0
FAILED=0
BESIDE_TAP=
# in our own builds, not in a user's
export WERROR=${WERROR:-yes}

# result ok|FAILED NAME [LOGFILE]: count one test, and show why it failed.
result() {
	if [ "$1" = ok ]; then
		PASSED=$((PASSED + 1))
	else
		FAILED=$((FAILED + 1))
		if [ -s "${3:-}" ]; then
			tail -n 60 "$3" | sed 's/^/  | /'
		fi
	fi
	printf '%-6s  %s\n' "$1" "$2"
}

skip() { printf 'skip    %s: %s\n' "$1" "$2"; }

# took NAME START: notes how long that took, and says " (N s)" for ten seconds and more.
took() {
	local seconds=$((SECONDS - $2))
	printf '%s %s\n' "$seconds" "$1" >>"$WORK/times"
	[ "$seconds" -lt 10 ] || printf ' (%s s)' "$seconds"
}

# attempt NAME COMMAND...: one test that passes when the command does.
attempt() {
	local name=$1 log=$WORK/attempt-$BASHPID.log start=$SECONDS
	shift
	if "$@" >"$log" 2>&1; then
		result ok "$name$(took "$name" "$start")"
	else
		result FAILED "$name$(took "$name" "$start")" "$log"
	fi
}

# beside FOLDER COMMAND...: tests that run beside others, as a process of their own: what is to be said of them
# goes into FOLDER/said, and how many passed and failed into FOLDER/counts, at last.
beside() {
	local folder=$1
	shift
	PASSED=0
	FAILED=0
	"$@" >"$folder/said" 2>&1
	echo "$PASSED $FAILED" >"$folder/counts.new"
	mv "$folder/counts.new" "$folder/counts"
}

# ended FOLDER: say and count those, if they have ended.
ended() {
	local passed failed
	[ -f "$1/counts" ] || return 1
	read -r passed failed <"$1/counts"
	cat "$1/said"
	PASSED=$((PASSED + passed))
	FAILED=$((FAILED + failed))
	rm -rf "$1"
}

# ------------------------------------------------------------------- parts

# nothing_found NAME COMMAND...: passes when the command prints nothing.
nothing_found() {
	local name=$1
	shift
	"$@" >"$WORK/found" 2>&1 || true
	if [ -s "$WORK/found" ]; then
		result FAILED "$name" "$WORK/found"
	else
		result ok "$name"
	fi
}

c_files() { find src cuda test -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh'; }

too_long() { c_files | xargs -r wc -l | awk '$1 > 700 && $2 != "total" { print $2 ": " $1 " lines" }'; }

part_style() {
	local script
	cd "$SRC"
	nothing_found "PG_VERSION_NUM only in src/compat.h and compat_plan.h" grep -rn PG_VERSION_NUM src cuda test/modules --include='*.c' --include='*.h' --include='*.cu' --exclude=compat.h --exclude=compat_plan.h
	nothing_found "no PostgreSQL in the engines" grep -rnE '#include *[<"](postgres|c|fmgr)\.h' src/engine cuda
	nothing_found "no CUDA in src" grep -rnE '#include *[<"]cuda' src
	nothing_found "no include runs up a floor, and rooms define what their headers declare" perl test/floors.pl
	nothing_found "links lead somewhere, and the pages mention all that the source has" perl test/pages.pl
	nothing_found "META.json, versions and their dates, and the form of all files" perl test/papers.pl
	nothing_found "utils/pg_locale.h, which may need ICU's headers, only in src/compat.h" grep -rn 'utils/pg_locale\.h' src cuda --exclude=compat.h
	nothing_found "nothing left open" grep -rnwE 'TOD[O]|FIXM[E]|XX[X]|HAC[K]' src cuda test sql Makefile
	nothing_found "no exit, abort, printf or assert in shipped C" grep -rnE '(^|[^_[:alnum:]>.])(exit|abort|printf|assert) *\(' src cuda --include='*.c' --include='*.cu' --include='*.h' --include='*.cuh'
	nothing_found "no file over 700 lines" too_long
	for script in $(find test .ci -name '*.sh') .ci/run; do
		attempt "bash -n $script" bash -n "$script"
		if gh_have shellcheck; then
			attempt "shellcheck $script" shellcheck -x -P SCRIPTDIR "$script"
		fi
	done
	gh_have shellcheck || skip "shellcheck" "not installed"
	if gh_have clang-format; then
		attempt "clang-format understands its configuration" clang-format --style=file:.clang-format --dump-config
	else
		skip "clang-format understands its configuration" "clang-format is not installed"
	fi
	cd "$WORK"
}

# build_default COMMAND ARG...: gh_stage or gh_make, for a user's build
build_default() {
	local archs=${CUDA_ARCHS:-90}
	"$@" WITH_CUDA="${WITH_CUDA:-no}" CUDA_ARCHS="${archs#all}"
}

# What tests of the service, of pages and of programs use: workers and devices that fail on
# demand, and the module gpuhash_test.  Such a build is never installed elsewhere.
build_faults() {
	(
		gh_paths -faults
		gh_stage WITH_CUDA=no FAULT_POINTS=yes with_llvm=no
	)
}

# probe_source TEXT VARIABLE...: compile a file with this text, as one of the library's.
probe_source() {
	local BUILD=$WORK/probe text=$1
	shift
	rm -rf "$BUILD"
	mkdir -p "$BUILD/src" "$BUILD/top/src"
	cp "$SRC/Makefile" "$BUILD/top/"
	cp "$SRC"/src/*.h "$BUILD/top/src/"
	printf '#include "postgres.h"\n%s\n' "$text" >"$BUILD/top/src/probe.c"
	env -u WERROR make -s -C "$BUILD" -f top/Makefile PG_CONFIG="$PG_CONFIG" WITH_CUDA=no with_llvm=no "$@" src/probe.o
}

# The compiler must have seen it, and refused it.
refused_source() { ! probe_source "$@" || return 1; [ ! -f "$WORK/probe/src/probe.o" ] && probe_source 'int gh_probe(void); int gh_probe(void) { return 1; }' "${@:2}"; }

accepted_source() { probe_source "$@" && [ -f "$WORK/probe/src/probe.o" ]; }

# From 18 on PGXS installs into any folder, as doc/install.md says.  It adds no /postgresql to a path that has
# a word like it, and $WORK may.
install_elsewhere() {
	local prefix=$WORK/elsewhere
	rm -rf "$prefix"
	build_default gh_make install prefix="$prefix" || return
	find "$prefix" -type f | tee "$WORK/installed"
	grep -qE "^$prefix/lib(/postgresql)?/gpuhash\.so\$" "$WORK/installed" || return
	grep -qE "^$prefix/share(/postgresql)?/extension/gpuhash\.control\$" "$WORK/installed"
}

# A server as initdb leaves it, of which each TAP test has copies.
build_template() {
	rm -rf "$WORK/template"
	"$STAGE_BIN/initdb" -D "$WORK/template" -U postgres -A trust -E UTF8 --locale=C --no-sync
}

# needs_faults FILE...: whether one of the TAP tests needs them
needs_faults() { grep -qE "^use GpuHash::(Test 'module'|Service)" "$@"; }

part_build() {
	attempt "build and install for $("$PG_CONFIG" --version)" build_default gh_stage
	nothing_found "a user's build installs nothing for tests" find "$STAGE" -name 'gpuhash_test*'
	if [ "$(gh_pg_major "$PG_CONFIG")" -ge 18 ]; then
		attempt "install into a folder of its own" install_elsewhere
	else
		skip "install into a folder of its own" "PostgreSQL has that from 18 on"
	fi
	case " $PARTS " in
		*" tap "*)
			# shellcheck disable=SC2086
			if needs_faults "$SRC"/test/t/${TAP:-*}.pl; then
				attempt "build and install with fault points" build_faults
			else
				skip "build and install with fault points" "no TAP test that is asked for needs them"
			fi
			attempt "build the stand-in for the CUDA engine" engine_make stand_in
			attempt "make the servers' first files" build_template ;;
		*) skip "build and install with fault points" "for part tap, which is not asked for" ;;
	esac
	attempt "a function that is not declared stops every build" refused_source 'int gh_probe(void);
		int gh_probe(void) { return gh_not_declared(); }' WERROR=no
	attempt "a warning stops our builds" refused_source 'int gh_probe(int); int gh_probe(int i) { if (i = 1) return 2; return 3; }' WERROR=yes
	attempt "a warning does not stop a user's build" accepted_source 'int gh_probe(int); int gh_probe(int i) { if (i = 1) return 2; return 3; }'
}

# make in $WORK/$1, which leaves the build that the servers use alone
build_aside() {
	local BUILD=$WORK/$1
	mkdir -p "$BUILD"
	shift
	gh_make "$@"
}

part_clang() {
	if gh_have clang; then
		attempt "build with clang" build_aside clang CC=clang WITH_CUDA=no with_llvm=no
	else
		skip "build with clang" "clang is not installed"
	fi
}

# The CUDA compiler.  Where nothing runs what it makes, and nobody names architectures, it makes code with few
# optimizations, which is half the work.  Of old releases none can.
device_nvcc() {
	local nvcc
	nvcc=$(gh_nvcc)
	if ! gh_gpu && [ -z "${CUDA_ARCHS:-}" ] && "$nvcc" --help | grep -e --Ofast-compile >/dev/null; then
		nvcc="$nvcc --Ofast-compile=mid"
	fi
	printf '%s\n' "$nvcc"
}

# What nvcc is given for the programs that are compiled for one architecture only.
one_arch() { if gh_gpu; then echo native; else echo sm_90; fi; }

layout_bench() {
	$(device_nvcc) -O3 -std=c++17 -arch="$(one_arch)" -Xcompiler -Wall,-Wextra -Werror all-warnings \
		-o "$WORK/layout_bench" "$SRC/test/bench/layout_bench.cu"
}

# What the engines share and no kernel of the library uses so far must compile there, too.
device_headers() {
	$(device_nvcc) -O3 -std=c++17 -arch="$(one_arch)" -I"$SRC/src" -Xcompiler -Wall,-Wextra \
		-Werror all-warnings -c -o "$WORK/device_headers.o" "$SRC/test/engine/device_headers.cu"
}

# The library whose device can fail; where there is no GPU that loads it, the files alone
# that are compiled otherwise for it.
cuda_with_faults() {
	local arch goals=gpuhash_cuda.so
	arch=$(one_arch)
	gh_gpu || goals=$(cd "$SRC" && grep -rl GH_FAULT_POINTS cuda --include='*.cu' | sed 's/$/.o/')
	# shellcheck disable=SC2086
	build_aside cuda-faults WITH_CUDA=yes NVCC="$(device_nvcc)" CUDA_ARCHS="${arch#sm_}" FAULT_POINTS=yes with_llvm=no $goals
}

# What is not installed: that library, and the benchmarks.
cuda_for_tests() {
	local arch
	arch=$(one_arch)
	attempt "build the CUDA engine with fault points" cuda_with_faults
	attempt "build engine_bench for the device" engine_make engine_bench_cuda NVCC="$(device_nvcc)" CUDA_ARCH="$arch"
	attempt "build layout_bench" layout_bench
	attempt "compile the engines' common headers for the device" device_headers
}

part_cuda() {
	local archs="75 90 120" how="" pid
	if [ -z "$(gh_nvcc)" ]; then
		skip "build the CUDA engine" "nvcc is not installed"
		return
	fi
	! gh_gpu || archs=native
	archs=${CUDA_ARCHS:-$archs}
	[[ $(device_nvcc) != *--Ofast* ]] || how=", with few optimizations"
	# most of these are one file each, for one processor
	mkdir -p "$WORK/cuda-for-tests"
	beside "$WORK/cuda-for-tests" cuda_for_tests &
	pid=$!
	attempt "build the CUDA engine for architectures: $archs$how" build_aside cuda WITH_CUDA=yes NVCC="$(device_nvcc)" \
		CUDA_ARCHS="${archs#all}" with_llvm=no gpuhash_cuda.so
	if [ -f "$WORK/build/gpuhash.so" ]; then
		nothing_found "gpuhash.so does not link CUDA" sh -c "ldd '$WORK/build/gpuhash.so' | grep -i cuda"
	fi
	wait "$pid" || true
	ended "$WORK/cuda-for-tests" || result FAILED "what is compiled for tests did not end as it should"
	if gh_gpu; then
		engine_tests "engine conformance on the GPU" check-cuda CUDA_ENGINE="$WORK/cuda/gpuhash_cuda.so"
		engine_tests "engine conformance on a GPU that fails" check-cuda \
			CUDA_ENGINE="$WORK/cuda-faults/gpuhash_cuda.so" CHECK_FLAGS='--only "failed device"'
	else
		skip "engine conformance on the GPU" "no GPU found"
	fi
}

engine_make() { timeout -k 10 500 make -s -C "$SRC/test/engine" -j "$(nproc)" "$@"; }

# How many tests may run at a time.
processes() { local n; n=$(nproc); echo $((n < 4 ? n : 4)); }

# The engine's own tests say "N passed, N failed" in their last line.
engine_tests() {
	local name=$1 log=$WORK/engine.log passed failed rc=0 start=$SECONDS
	shift
	engine_make "$@" >"$log" 2>&1 || rc=$?
	read -r passed failed < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log" | tail -n 1) || true
	PASSED=$((PASSED + ${passed:-0}))
	if [ "$rc" = 0 ] && [ "${failed:-1}" = 0 ] && [ "${passed:-0}" != 0 ]; then
		printf 'ok      %s: %s tests%s\n' "$name" "$passed" "$(took "$name" "$start")"
	else
		result FAILED "$name$(took "$name" "$start")" "$log"
	fi
}

# The benchmark of the engines, so small that only its results count: it checks
# them, and a benchmark that nobody runs would rot.
engine_benchmarks() {
	local part out=$WORK/engine_bench
	for part in rows static resize dynamic incremental mixes; do
		attempt "engine_bench, $part" env PARTS="$part" LIMIT=100 PG_CONFIG="$PG_CONFIG" \
			bash "$SRC/test/bench/engine_bench.sh" cpu "$out" --n 20000 --scale 0.001 --rounds 1
	done
	attempt "build pipeline_bench" engine_make pipeline_bench
	attempt "pipeline_bench" "$SRC/build/engine/pipeline_bench" --pages 300 --rounds 1
}

part_engine() {
	engine_tests "engine conformance" check CHECK_FLAGS="--processes $(processes)"
	engine_tests "engine conformance, reduced, on the stand-in for the CUDA engine" check-stand-in \
		CHECK_FLAGS="--processes $(processes)"
	engine_benchmarks
}

# Small tables, but as many random operations as the full tests have.
part_sanitize() {
	engine_tests "engine conformance, reduced, with the address and undefined-behaviour sanitizers" \
		check SANITIZE=address,undefined CHECK_FLAGS="--reduced --random 10000000 --processes $(processes)"
}

# Count the tests of pg_regress and pg_isolation_regress in either of their
# formats: "test NAME ... ok" before 16, TAP after.
count_regress() {
	local name=$1 log=$2 rc=$3 diffs=$4 start=$5 passed failed
	passed=$(grep -cE '^ok |^(test| ) *[^ ]+ +\.\.\. +ok ' "$log" || true)
	failed=$(grep -cE '^not ok |^(test| ) *[^ ]+ +\.\.\. +(FAILED|failed)' "$log" || true)
	PASSED=$((PASSED + passed))
	if [ "$failed" = 0 ] && [ "$rc" = 0 ] && [ "$passed" != 0 ]; then
		printf 'ok      %s: %s tests%s\n' "$name" "$passed" "$(took "$name" "$start")"
		return
	fi
	grep -E '^not ok |\.\.\. +(FAILED|failed)' "$log" || true
	if [ -s "$diffs" ]; then
		head -n 300 "$diffs" | sed 's/^/  | /'
	else
		tail -n 30 "$log" | sed 's/^/  | /'
	fi
	[ "$failed" != 0 ] || failed=1 # it ended before it said which
	FAILED=$((FAILED + failed))
	printf 'FAILED  %s: %s of %s tests\n' "$name" "$failed" "$((passed + failed))"
}

# One of the suites of `make installcheck`, on the server of part regress.
installcheck() {
	local name=$1 diffs=$2 log=$WORK/installcheck.log rc=0 start=$SECONDS
	shift 2
	gh_make WITH_CUDA=no "$@" installcheck >"$log" 2>&1 || rc=$?
	count_regress "$name" "$log" "$rc" "$WORK/build/$diffs" "$start"
	if grep -E 'was terminated by signal|PANIC|TRAP:' "$SERVER/log" | head -n 5; then
		result FAILED "$name: the server crashed"
	fi
}

# Its superuser has a name that must be quoted: no test may depend on it.  Without JIT, which
# takes as long as the tests themselves; TAP tests have it, where the server has.
start_regress_server() {
	local lines=() GH_SUPERUSER="Some Body"
	[ -z "${CONF:-}" ] || mapfile -t lines <"$CONF"
	gh_server_start regress "shared_buffers = 256MB" "max_worker_processes = 16" "jit = off" "${lines[@]}"
}

part_regress() {
	[ -n "$(find "$SRC/sql" -name '*.sql')" ] || { skip "SQL tests" "none there"; return; }
	start_regress_server || { result FAILED "start of the server"; return; }
	installcheck "SQL tests" regression.diffs ISOLATION=
	gh_server_stop
}

# `make installcheck` with an SQL test that is not there and one isolation test.
second_suite_runs() {
	local log=$WORK/second.log
	! gh_make WITH_CUDA=no installcheck REGRESS=none_of_this_name ISOLATION=join_snapshot >"$log" 2>&1 || { cat "$log"; return 1; }
	if ! grep -q none_of_this_name "$log" || ! grep -qE '(ok .*join_snapshot|join_snapshot .*ok)' "$log"; then
		cat "$log"
		return 1
	fi
}

part_isolation() {
	[ -n "$(find "$SRC/test/specs" -name '*.spec')" ] || { skip "isolation tests" "none there"; return; }
	[ -x "$(dirname "$("$PG_CONFIG" --pgxs)")/../test/isolation/pg_isolation_regress" ] ||
		{ skip "isolation tests" "this server came without pg_isolation_regress"; return; }
	rm -rf "$WORK/regress"
	start_regress_server || { result FAILED "start of the server"; return; }
	installcheck "isolation tests" output_iso/regression.diffs REGRESS=
	attempt "isolation tests run also where an SQL test fails" second_suite_runs
	gh_server_stop
}

# tap_failures LOG STATUS SECONDS: of a test that failed, the assertions that did, with what
# was said of them, and its end; first of all whether the time limit ended it.
tap_failures() {
	case $2 in
		124 | 137) printf '  ended at its time limit of %s s, after: %s\n' "$3" "$(grep -E '^(not )?ok ' "$1" | tail -n 1)" ;;
	esac
	awk '/^not ok / { shown = 1 } /^ok / { shown = 0 } shown && n++ < 80' "$1" | sed 's/^/  | /'
	echo "  | ..."
	grep -vE '^ok ' "$1" | tail -n 20 | sed 's/^/  | /' || true
}

# tap_file FILE SECONDS FOLDER: run one of the TAP tests in FOLDER; what is to be said of it
# goes into FOLDER/said, and how many passed and failed into FOLDER/counts, at last.
tap_file() {
	local file=$1 seconds=$2 folder=$3 log=$3/log rc=0 passed failed start=$SECONDS
	# the formatter for files would show nothing of a test that is ended
	TMPDIR=$folder timeout -k 10 "$seconds" prove --formatter TAP::Formatter::Console -v -I "$SRC/test/perl" "$file" >"$log" 2>&1 || rc=$?
	gh_stop_servers_in "$folder"
	passed=$(grep -cE '^ok ' "$log" || true)
	failed=$(grep -cE '^not ok ' "$log" || true)
	passed=$((passed - $(grep -cE '^ok [0-9]+ # skip' "$log" || true)))
	{
		sed -n "s/^ok [0-9]* # skip /skip    ${file##*/}: /p; s/^.* skipped: /skip    ${file##*/}: /p" "$log"
		if grep -q '^Result: NOTESTS' "$log"; then
			:
		elif [ "$rc" = 0 ] && [ "$failed" = 0 ]; then
			printf 'ok      %s: %s tests%s\n' "test/t/${file##*/}" "$passed" "$(took "test/t/${file##*/}" "$start")"
		else
			[ "$failed" != 0 ] || failed=1
			tap_failures "$log" "$rc" "$seconds"
			printf 'FAILED  %s%s\n' "test/t/${file##*/}" "$(took "test/t/${file##*/}" "$start")"
		fi
	} >"$folder/said"
	echo "$passed $failed" >"$folder/counts.new"
	mv "$folder/counts.new" "$folder/counts"
}

suites_beside_tap() { local part; for part in $BESIDE_TAP; do "part_$part"; done; }

# tap_ended: say and count what has ended since; how many still run is in TAP_RUNNING
tap_ended() {
	local folder
	for folder in "$WORK"/tap-*; do
		! ended "$folder" || TAP_RUNNING=$((TAP_RUNNING - 1))
	done
}

part_tap() {
	local file faults_bin at_once rc n=0
	# they wait half of their time, for a worker or a standby
	at_once=$(($(processes) * 3 / 2))
	! gh_gpu || at_once=1
	at_once=${TAP_AT_ONCE:-$at_once}
	faults_bin=$(gh_paths -faults && echo "$STAGE_BIN")
	gh_have prove || { skip "TAP tests" "prove (of perl) is not installed"; return; }
	[ -n "$(find "$SRC/test/t" -name '*.pl')" ] || { skip "TAP tests" "none there"; return; }
	export GPUHASH_BINDIR
	# what part build has made once for all
	[ ! -f "$SRC/build/engine/stand_in.so" ] || export GPUHASH_STAND_IN_LIBRARY=$SRC/build/engine/stand_in.so
	[ ! -f "$WORK/template/PG_VERSION" ] || export GPUHASH_INITDB_TEMPLATE=$WORK/template
	TAP_RUNNING=0
	rm -rf "$WORK"/tap-*
	if [ -n "$BESIDE_TAP" ]; then
		gh_say "(and beside them: $BESIDE_TAP)"
		mkdir "$WORK/tap-0"
		beside "$WORK/tap-0" suites_beside_tap &
		TAP_RUNNING=1
	fi
	for file in "$SRC"/test/t/${TAP:-*}.pl; do
		while [ "$TAP_RUNNING" -ge "$at_once" ]; do
			rc=0
			wait -n || rc=$?
			tap_ended
			[ "$rc" != 127 ] || break # nothing runs any more
		done
		if [ "$SECONDS" -ge "${CHECK_SECONDS:-1000000}" ]; then
			skip "test/t/${file##*/}" "$SECONDS s are over, of CHECK_SECONDS=$CHECK_SECONDS"
			continue
		fi
		# a user's build, but for tests that need the module
		GPUHASH_BINDIR=$STAGE_BIN
		! needs_faults "$file" || GPUHASH_BINDIR=$faults_bin
		n=$((n + 1))
		mkdir "$WORK/tap-$n"
		tap_file "$file" 300 "$WORK/tap-$n" &
		TAP_RUNNING=$((TAP_RUNNING + 1))
	done
	wait
	tap_ended
	[ "$TAP_RUNNING" = 0 ] || result FAILED "$TAP_RUNNING of the tests that ran at a time did not end as they should"
}

# Which parts run beside the TAP tests: they take one processor, and TAP tests half a processor each.
beside_tap() {
	case " $PARTS " in *" tap "*) gh_have prove || return 0 ;; *) return 0 ;; esac
	# shellcheck disable=SC2086
	printf '%s\n' $PARTS | grep -xE 'regress|isolation' | paste -s -d ' ' || true
}

# ---------------------------------------------------------------------- all

check() {
	local part start
	gh_paths ""
	: >"$WORK/times"
	BESIDE_TAP=$(beside_tap)
	for part in $PARTS; do
		start=$SECONDS
		case " $BESIDE_TAP " in *" $part "*) continue ;; esac
		gh_step "$part"
		case $part in
			regress | isolation | tap)
				if [ ! -f "$WORK/build/gpuhash.so" ]; then
					result FAILED "$part: nothing was built"
					continue
				fi ;;
		esac
		"part_$part"
		gh_say "($((SECONDS - start)) s)"
	done
	gh_say
	if [ -n "${CHECK_TOTALS_FILE:-}" ]; then
		{ echo "$PASSED $FAILED" && cat "$WORK/times"; } >"$CHECK_TOTALS_FILE"
	else
		gh_longest "$WORK/times"
		echo "$PASSED passed, $FAILED failed"
	fi
	[ "$FAILED" = 0 ] || exit 1
}

if [ -z "${GPUHASH_WORK:-}" ]; then
	gh_require server prove
	if [ "${FETCH_ARCHIVE:-no}" = yes ]; then
		gh_step "the package archive's index, for the tests with real data"
		archive_get || gh_say "(it could not be fetched)"
	fi
	export GPUHASH_ARCHIVE=${GPUHASH_ARCHIVE:-$GH_HOME/build/archive}
fi
gh_main check
