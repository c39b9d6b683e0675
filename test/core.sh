# shellcheck shell=bash
#
# core.sh: PostgreSQL's own regression and isolation tests with gpuhash loaded, the part
# `core` of check.sh (`make check-core`).  Sourced, not run.
#
# Four ways: with gpuhash.enabled off nothing may differ from what PostgreSQL expects; with
# the defaults, where some of the tests' joins of 10,000 rows are found to be cheaper, and
# with every join, scan and aggregation offloaded that can be, to the CPU engine (forced) or to the stand-in
# for a GPU of test/fault (device), EXPLAIN and the order of rows may (core_differences.pl).  Where more does, the suite is run once without gpuhash: what
# differs there in the same way is the machine's.
#
# Environment
#	GPUHASH_PG_SRC	source tree of this very PostgreSQL, for a server that was installed
#			without the suites' files
#	CORE_WAYS	default: off default forced device
#	CORE_SUITES	default: regress isolation

# What goes into the server's configuration, by way.
core_conf() {
	# the test of parallel plans counts its workers
	echo "max_worker_processes = 16"
	[ "$1" = without ] || echo "shared_preload_libraries = 'gpuhash'"
	case $1 in
		off) echo "gpuhash.enabled = off" ;;
		forced) echo "gpuhash.force_offload = on" ;;
		device) printf '%s\n' "gpuhash.force_offload = on" "gpuhash.engine = 'cuda'" 'gpuhash.batch_rows = 256' ;;
	esac
	echo "dynamic_shared_memory_type = $(gh_dsm_type)"
}

# The folder that the server was installed with for tests.
core_installed() { (cd "$(dirname "$("$PG_CONFIG" --pgxs)")/../test" && pwd -P); }

# core_inputs SUITE: the folder with its files, or nothing.
core_inputs() {
	local folder
	for folder in "${GPUHASH_PG_SRC:+$GPUHASH_PG_SRC/src/test/$1}" "$(core_installed)/$1"; do
		if [ -n "$folder" ] && [ -d "$folder/expected" ]; then
			printf '%s\n' "$folder"
			return
		fi
	done
}

# The functions in C that the regression tests call: with the files, or compiled.
core_libraries() {
	local inputs=$1 source
	if [ -f "$inputs/regress.so" ] && [ -f "$inputs/refint.so" ]; then
		printf '%s\n' "$inputs"
		return
	fi
	mkdir -p "$WORK/core-lib"
	for source in "$inputs/regress.c" "$inputs/../../../contrib/spi/refint.c" "$inputs/../../../contrib/spi/autoinc.c"; do
		cc -O2 -shared -fPIC -I"$("$PG_CONFIG" --includedir-server)" -DDLSUFFIX='".so"' \
			-o "$WORK/core-lib/$(basename "$source" .c).so" "$source" || return 1
	done
	printf '%s\n' "$WORK/core-lib"
}

# The engine for a GPU that is none, in the private copy of the server.
core_stand_in() { engine_make stand_in && cp "$SRC/build/engine/stand_in.so" "$STAGE_LIB/gpuhash_cuda.so"; }

# core_run SUITE WAY: a run; its files are then in $WORK/core-SUITE-WAY.
core_run() {
	local suite=$1 way=$2 out=$WORK/core-$1-$2 inputs libraries rc=0
	local -a options=()
	inputs=$(core_inputs "$suite")
	libraries=$inputs
	[ "$suite" = isolation ] || libraries=$(core_libraries "$inputs") || return 1
	rm -rf "$out"
	mkdir -p "$out"
	if [ "$way" = device ]; then
		[ ! -e "$STAGE_LIB/gpuhash_cuda.so" ] || mv "$STAGE_LIB/gpuhash_cuda.so" "$WORK/gpuhash_cuda.so.aside"
		core_stand_in >"$out/console" 2>&1 || return 1
	fi
	core_conf "$way" >"$out/conf"
	if [ "$suite" = isolation ]; then
		options=("$(core_installed)/isolation/pg_isolation_regress" --schedule="$inputs/isolation_schedule")
	else
		options=("$(core_installed)/regress/pg_regress" --schedule="$inputs/parallel_schedule" --encoding=UTF8)
	fi
	(cd "$out" && PATH="$STAGE_BIN:$PATH" timeout -k 30 "${CORE_LIMIT:-900}" "${options[@]}" --inputdir="$inputs" --outputdir="$out" \
		--bindir="$STAGE_BIN" --dlpath="$libraries" --temp-instance="$out/server" --temp-config="$out/conf" \
		--port=57439 --no-locale --max-concurrent-tests=40 --max-connections=20) >"$out/console" 2>&1 || rc=$?
	if [ "$way" = device ]; then
		rm "$STAGE_LIB/gpuhash_cuda.so"
		[ ! -e "$WORK/gpuhash_cuda.so.aside" ] || mv "$WORK/gpuhash_cuda.so.aside" "$STAGE_LIB/gpuhash_cuda.so"
	fi
	return "$rc"
}

# core_of_machine SUITE WAY: whether the run without gpuhash differs in the same way.
core_of_machine() {
	local out=$WORK/core-$1-without
	[ -d "$out" ] || core_run "$1" without || true
	[ -s "$out/regression.diffs" ] || return 1
	if [ "$2" = off ]; then
		diff <(core_changes "$out") <(core_changes "$WORK/core-$1-off") >/dev/null
	else
		core_explained "$1" "$2" "$out/results"
	fi
}

# The lines that differ, without what a run's folder and time put there.
core_changes() { grep -E '^[-+]' "$1/regression.diffs" | grep -vE '^(---|\+\+\+) '; }

# core_explained SUITE WAY [RESULTS]: whether other plans explain what differs.
core_explained() {
	local out=$WORK/core-$1-$2
	perl "$SRC/test/core_differences.pl" "$1" "$out/regression.diffs" "$SRC/test/core_exceptions" "${@:3}" >"$out/differences"
}

# core_suite SUITE WAY: count its tests.
core_suite() {
	local suite=$1 way=$2 out=$WORK/core-$1-$2 name="PostgreSQL's $1 tests, gpuhash $2" rc=0 all ran start=$SECONDS
	local differences=$out/regression.diffs
	core_run "$suite" "$way" || rc=$?
	if grep -rhE 'was terminated by signal|PANIC:|TRAP:' "$out/log" | head -n 5 | grep .; then
		result FAILED "$name: the server crashed"
	fi
	if [ "$rc" != 0 ] && [ -s "$out/regression.diffs" ]; then
		# what was not run does not differ
		all=$(awk '/^test:/ { n += NF - 1 } END { print n }' "$(core_inputs "$suite")"/*_schedule)
		ran=$(grep -cE '^(not )?ok |^(test| ) *[^ ]+ +\.\.\. +(ok|FAILED|failed)' "$out/console" || true)
		if [ "$way" != off ] && [ "$ran" = "$all" ] && core_explained "$suite" "$way"; then
			PASSED=$((PASSED + ran))
			printf 'ok      %s: %s tests, %s of them with other plans%s\n' "$name" "$ran" "$(grep -c '^ok ' "$out/differences")" "$(took "$name" "$start")"
			grep -v ': EXPLAIN and the order of rows$' "$out/differences" | sed 's/^ok /        /' || true
			return
		fi
		if core_of_machine "$suite" "$way"; then
			skip "$name" "differs in the same way without gpuhash"
			return
		fi
		if [ -s "$out/differences" ]; then
			grep -v '^ok ' "$out/differences" >"$out/unexplained" || true
			differences=$out/unexplained
		fi
	fi
	count_regress "$name" "$out/console" "$rc" "$differences" "$start"
}

part_core() {
	local suite way
	if [ ! -f "$WORK/build/gpuhash.so" ]; then
		attempt "build and install for $("$PG_CONFIG" --version)" build_default gh_stage
	fi
	for suite in ${CORE_SUITES:-regress isolation}; do
		if [ -z "$(core_inputs "$suite")" ]; then
			skip "PostgreSQL's $suite tests" "$(core_installed)/$suite has no tests; GPUHASH_PG_SRC=FOLDER names the source tree of $("$PG_CONFIG" --version)"
			continue
		fi
		for way in ${CORE_WAYS:-off default forced device}; do
			core_suite "$suite" "$way"
		done
	done
}
