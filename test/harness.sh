# shellcheck shell=bash
# shellcheck disable=SC2016 # what stands in single quotes is for another shell
#
# harness.sh: tests of the scripts themselves, the part `harness` of check.sh: what
# they find on a machine, what they say of what is missing, and that no failure goes
# unseen.  Sourced, not run.  test/bare.sh tries the same on whole systems.

# expect TEXT COMMAND...: the output must be TEXT, or contain it.
expect() {
	local text=$1 out
	shift
	out=$("$@" 2>&1) || true
	case $out in
		*"$text"*) ;;
		*) printf 'expected: %s\ngot:      %s\n' "$text" "$out"; return 1 ;;
	esac
}

# fake_server VERSION PART...: of a Debian server below $FAKE, "server" or "headers".
fake_server() {
	local version=$1 bin=$FAKE/usr/lib/postgresql/$1/bin headers=$FAKE/usr/include/postgresql/$1/server part
	shift
	mkdir -p "$bin" "$FAKE/pgxs"
	touch "$FAKE/pgxs/pgxs.mk"
	cat >"$bin/pg_config" <<-SH
		#!/bin/sh
		case \$1 in
			--version) echo "PostgreSQL $version.1" ;;
			--bindir) echo "$bin" ;;
			--pgxs) echo "$FAKE/pgxs/pgxs.mk" ;;
			--includedir-server) echo "$headers" ;;
		esac
	SH
	chmod +x "$bin/pg_config"
	for part in "$@"; do
		case $part in
			server) printf '#!/bin/sh\n' | tee "$bin/postgres" >"$bin/initdb"; chmod +x "$bin/postgres" "$bin/initdb" ;;
			headers) mkdir -p "$headers"; touch "$headers/postgres.h" ;;
		esac
	done
}

# detect NAME=VALUE... FUNCTION: in a shell of its own that sees the servers below $FAKE alone.
detect() {
	env -u PG_CONFIG GH_DEBIAN_ROOT="${FAKE:-$WORK/none}" "${@:1:$#-1}" bash -c '. "$1/test/lib.sh"
		gh_have() { case $1 in pg_config | apt-get) return "${GH_LACKS:-1}" ;; *) command -v "$1" >/dev/null 2>&1 ;; esac; }
		apt-cache() { return 1; }
		'"${*: -1}" lib.sh "$SRC"
}

find_servers() {
	local FAKE=$WORK/fake pg
	rm -rf "$FAKE"
	expect "postgresql postgresql-server-dev-all" detect gh_server_packages || return
	fake_server 17 headers
	expect "postgresql-17 " detect gh_server_packages || return
	rm -rf "$FAKE"
	fake_server 15 server
	expect "postgresql-server-dev-15 " detect gh_server_packages || return
	fake_server 17 server
	expect "postgresql-server-dev-17 " detect gh_server_packages || return
	pg=$FAKE/usr/lib/postgresql/15/bin/pg_config
	expect "postgresql-server-dev-15 " detect PG_CONFIG="$pg" gh_server_packages || return
	expect "found: ." detect 'echo "found: $(gh_find_pg_config)."' || return
	fake_server 15 headers
	expect "found: $pg." detect 'echo "found: $(gh_find_pg_config)."' || return
	expect "postgresql-server-dev-17" env -u MAKEFLAGS make -C "$WORK" -f "$SRC/Makefile" PG_CONFIG="$FAKE/usr/lib/postgresql/17/bin/pg_config" || return
	expect "without $FAKE/usr/include/postgresql/17/server/postgres.h" make -C "$WORK" -f "$SRC/Makefile" PG_CONFIG="$FAKE/usr/lib/postgresql/17/bin/pg_config"
}

# One that packages cannot mend is refused, with what it lacks.
refuse_servers() {
	local FAKE=$WORK/fake
	rm -rf "$FAKE"
	fake_server 17 server
	mv "$FAKE/usr/lib/postgresql" "$FAKE/opt"
	sed -i "s:$FAKE/usr/lib/postgresql:$FAKE/opt:" "$FAKE/opt/17/bin/pg_config"
	expect "there is no $FAKE/usr/include/postgresql/17/server/postgres.h" detect PG_CONFIG="$FAKE/opt/17/bin/pg_config" gh_refuse_pg_config || return
	rm "$FAKE/opt/17/bin/postgres"
	expect "there is no server in $FAKE/opt/17/bin" detect PG_CONFIG="$FAKE/opt/17/bin/pg_config" gh_refuse_pg_config || return
	expect "is not a pg_config that can be run" detect PG_CONFIG="$FAKE/none" gh_refuse_pg_config || return
	fake_server 14 server headers
	expect "is of PostgreSQL 14: gpuhash needs 15 or later" detect PG_CONFIG="$FAKE/usr/lib/postgresql/14/bin/pg_config" gh_refuse_pg_config
}

choose_folder() {
	local long
	long=$WORK/$(printf 'x%.0s' {1..60})
	mkdir -p "$long" "$WORK/closed" "$WORK/fit"
	chmod 500 "$WORK/closed"
	expect "chosen: $WORK/fit." detect TMPDIR="$WORK/fit/" GH_NEEDS_MB=1 'gh_choose_folder; echo "chosen: $GH_FOLDER."' || return
	expect "$long has a name too long" detect TMPDIR="$long" GH_NEEDS_MB=1 gh_choose_folder || return
	[ -w "$WORK/closed" ] || expect "$WORK/closed cannot be written to" detect TMPDIR="$WORK/closed" GH_NEEDS_MB=1 gh_choose_folder || return
	expect "no folder to work in: $WORK/fit has " detect TMPDIR="$WORK/fit" GH_NEEDS_MB=999999999 gh_choose_folder || return
	expect "MB free, where 999999999 MB are needed" detect GH_NEEDS_MB=999999999 gh_choose_folder
}

# A machine without /dev/shm; before, the script ended there without a word.
no_shared_memory() { expect "type: sysv." detect 'set -euo pipefail; df() { return 1; }; type=$(gh_dsm_type); echo "type: $type."'; }

unforeseen_failure() { expect "failed (status 3): ( exit 3 )" detect 'set -euo pipefail; (exit 3); echo "went on"'; }

install_hint() {
	expect "sudo apt-get update && sudo apt-get install -y --no-install-recommends gcc" detect 'sudo() { :; }; gh_install_hint gcc' || return
	expect "su - root -c 'apt-get update && apt-get install -y --no-install-recommends gcc'" detect 'gh_have() { false; }; gh_install_hint gcc'
}

# An orphan that nobody reaps does not run, although it can be signalled.
zombies_do_not_run() {
	local parent zombie rc=0
	bash -c 'sleep 0.3 & echo $! >"$0"; exec sleep 20' "$WORK/zombie" &
	parent=$!
	for _ in {1..100}; do
		zombie=$(cat "$WORK/zombie" 2>/dev/null) && [ -n "$zombie" ] && grep -q '^State:.Z' "/proc/$zombie/status" && break
		sleep 0.05
	done
	kill -0 "$zombie" || rc=1
	! gh_runs "$zombie" || rc=1
	gh_runs "$parent" || rc=1
	kill "$parent"
	wait "$parent" || true
	return "$rc"
}

# A test that hangs after an assertion failed: both are reported, and counted.
time_limit() {
	local file=$WORK/hangs.pl
	printf '%s\n' 'use Test::More; $| = 1; ok(0, "the one that fails"); diag("with a word on why");' \
		'ok(1, "number $_") for 2 .. 100; sleep 60;' >"$file"
	mkdir "$WORK/hangs"
	expect "ended at its time limit of 2 s, after: ok 100 - number 100" eval 'tap_file "$WORK/hangs.pl" 2 "$WORK/hangs"; cat "$WORK/hangs/said"' || return
	expect "not ok 1 - the one that fails" cat "$WORK/hangs/said" || return
	expect "99 1" cat "$WORK/hangs/counts"
}

# Tests that run at a time, and a part beside them: each is said and counted, one that ends without a word, too.
tap_at_once() {
	local SRC=$WORK/at-once n
	mkdir -p "$SRC/test/t"
	for n in 1 2 3 4 5; do
		printf 'use Test::More; sleep %s; ok(1, "one"); ok(%s, "two"); done_testing();\n' "$((n % 2))" "$((n != 3))" >"$SRC/test/t/00$n.pl"
	done
	expect "passed: 10, failed: 2" eval 'part_one() { result ok "beside"; result FAILED "beside"; }; BESIDE_TAP=one PASSED=0 FAILED=0 TAP_AT_ONCE=2 TAP= CHECK_SECONDS=; part_tap >"$SRC/said"; echo "passed: $PASSED, failed: $FAILED"' || return
	expect "FAILED  beside" cat "$SRC/said" || return
	expect "ok      test/t/005.pl: 2 tests" cat "$SRC/said" || return
	expect "FAILED  test/t/003.pl" cat "$SRC/said" || return
	expect "beside: isolation regress." eval 'PARTS="build isolation regress tap"; echo "beside: $(beside_tap)."' || return
	expect "beside: ." eval 'PARTS="build regress isolation"; echo "beside: $(beside_tap)."' || return
	expect "1 of the tests that ran at a time did not end as they should" eval 'BESIDE_TAP=; tap_file() { [ "${1##*/}" != 004.pl ] || return 1; echo "0 0" >"$3/counts"; : >"$3/said"; }; TAP_AT_ONCE=2 TAP= CHECK_SECONDS=; part_tap'
}

# The demo's last sentence.
demo_verdict() {
	eval "$(sed -n '/^verdict() {/,/^}/p' "$SRC/test/demo.sh")"
	expect "7.8 times as fast: 3.2 s with PostgreSQL's own join, 0.41 s with gpuhash; same answer" verdict 3200 410 || return
	expect "No difference: 0.41 s with PostgreSQL's own join, 0.40 s with gpuhash; same answer" verdict 410 400 || return
	expect "Slower, by 50 %: 0.020 s with PostgreSQL's own join, 0.030 s with gpuhash; same answer" verdict 20 30
}

# copy_without_fault CHECK: a copy of the checkout, in which CHECK (pages.pl or papers.pl) finds nothing.
copy_without_fault() {
	rm -rf "$WORK/pages"
	mkdir "$WORK/pages"
	tar -C "$SRC" -cf - --exclude=./build . | tar -C "$WORK/pages" -xf -
	expect "." eval '[ -z "$(perl "$SRC/test/$1" "$WORK/pages")" ] && echo .'
}

# page_fault TEXT FILE SCRIPT [CHECK]: with sed's SCRIPT done to FILE, CHECK reports TEXT.
page_fault() {
	local rc=0
	sed "$3" "$SRC/$2" >"$WORK/pages/$2"
	expect "$1" perl "$SRC/test/${4:-pages.pl}" "$WORK/pages" || rc=$?
	cp -p "$SRC/$2" "$WORK/pages/$2"
	return "$rc"
}

paper_fault() { page_fault "$@" papers.pl; }

paper_faults() {
	copy_without_fault papers.pl || return
	paper_fault "META.json: it is no JSON" META.json '2s/,$//' || return
	paper_fault "META.json: it lacks maintainer" META.json '/"maintainer"/d' || return
	paper_fault "META.json: its license is not as specified" META.json 's/"license": "postgresql"/"license": "postgres"/' || return
	paper_fault "META.json: its prereqs is not as specified" META.json 's/"15.0.0"/"15"/' || return
	paper_fault "META.json: the specification has no author" META.json 's/"maintainer"/"author": "one", &/' || return
	paper_fault "META.json: there is no doc/nowhere.md" META.json 's:"docfile".*":"docfile"\: "doc/nowhere.md":' || return
	paper_fault "META.json: its version is 0.1.0, not 0.2.0" gpuhash.control "s/'0.1'/'0.2'/" || return
	paper_fault "debian/changelog: its version is 0.0.9, not 0.1.0" debian/changelog '1s/0\.1\.0/0.0.9/' || return
	paper_fault 'CHANGELOG.md: "0.0.9" is no version with its date' CHANGELOG.md '$s/$/\n\n## 0.0.9/' || return
	paper_fault "CHANGELOG.md: 0.3 stands below 0.1" CHANGELOG.md '$s/$/\n\n## 0.3 (2026-01-31)/' || return
	paper_fault "src/compat.h:2: a line ends with blanks" src/compat.h '2s/$/ /' || return
	paper_fault "src/compat.h:3: it has a carriage return" src/compat.h '3s/$/\r/' || return
	paper_fault "src/compat.h:4: a line begins with spaces, not with a tab" src/compat.h '4s/^/    int x;/' || return
	paper_fault "src/compat.h: it is not UTF-8" src/compat.h '5s/$/\xff/' || return
	paper_fault ".clang-format: its TabWidth is 8, not 4" .clang-format 's/^TabWidth: 4/TabWidth: 8/'
}

page_faults() {
	copy_without_fault pages.pl || return
	page_fault "README.md:3: there is no doc/nowhere.md" README.md '3s:^:[a page](doc/nowhere.md) :' || return
	page_fault "doc/limits.md:3: there is no heading for settings.md#nothing" doc/limits.md '3s:^:[one](settings.md#nothing) :' || return
	page_fault "CHANGELOG.md:3: there is no heading for #here" CHANGELOG.md '3s:$: [here](#here):' || return
	page_fault "BENCHMARKS.md:3: there is no ../outside" BENCHMARKS.md '3s:^:[outside](../outside) :' || return
	page_fault "it has more than 200 lines" README.md '1s/$/\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n/' || return
	page_fault 'a block is marked "perl"' doc/limits.md '3s/^/```perl\n```\n/' || return
	page_fault "it does not mention the setting gpuhash.worker_spin" doc/settings.md 's/worker_spin/worker/' || return
	page_fault "it does not mention the function gpuhash_find_all" doc/functions.md 's/gpuhash_find_all\b/it/g' || return
	page_fault "it does not mention the line Rows Left Out" doc/explain.md 's/Rows Left Out/these/'
}

longest_tests() {
	printf '3 b c\n12 a\n1 e\n2 d\n40 test/t/001_x.pl (pg18)\n1 f\n' >"$WORK/some-times"
	expect "longest: 40 s, test/t/001_x.pl (pg18)
longest: 12 s, a
longest: 3 s, b c
longest: 2 s, d
longest: 1 s, " gh_longest "$WORK/some-times"
}

part_harness() {
	attempt "servers without headers, headers without a server, and two servers are told apart" find_servers
	attempt "a PG_CONFIG that packages cannot mend is refused with the reason" refuse_servers
	attempt "the folder to work in is tried before anything else" choose_folder
	attempt "no /dev/shm" no_shared_memory
	attempt "no script ends without a word" unforeseen_failure
	attempt "TAP tests that run at a time are all said and counted" tap_at_once
	attempt "the longest tests are named" longest_tests
	attempt "the command that installs packages, with sudo and without" install_hint
	attempt "zombies do not run" zombies_do_not_run
	attempt "the demo's last sentence" demo_verdict
	attempt "faults of the pages are found" page_faults
	attempt "faults of META.json, versions and the form of files are found" paper_faults
	if gh_have prove; then
		attempt "a test that its time limit ends is reported" time_limit
	else
		skip "a test that its time limit ends" "prove (of perl) is not installed"
	fi
}
