#!/usr/bin/env bash
#
# bare.sh [CASE...]: gpuhash on machines that have next to nothing.
#
# Makes bare systems with debootstrap, brings each into a state, and runs there what
# the pages tell a newcomer to: the lines under "Build and install" in doc/install.md, or `make demo`.  A CASE
# is RELEASE:STATE:COMMAND, as stable:server:demo.
#
#	RELEASE		stable, oldstable (Debian's), noble (Ubuntu's)
#	STATE		nothing		but make, and empty package lists
#			server		PostgreSQL without its server development files; no /dev/shm
#			headers		the development files without a server; programs do not run in /tmp
#	COMMAND		readme, demo, archive (make demo DATA=archive; for stable:headers alone),
#			packages (test/packages.sh; for stable:nothing alone)
#
# Without arguments: all of them; with "core", those that .ci/run runs together.  The checkout
# lies in a folder that only root can enter, and belongs to somebody else.  Process 1
# reaps nothing, as in many containers.  Needs root, debootstrap, unshare and a reachable
# package archive: what cannot run is skipped with the reason.  The last line counts:
# "N passed, N failed".
#
# Mounts are made in a mount namespace of the case's own and processes in a process
# namespace of its own: they are gone when it ends, however it ends.
#
# Environment
#	BARE_CACHE	folder of base systems and packages, kept between runs (default:
#			gpuhash-bare in XDG_CACHE_HOME, else in /var/cache)
#	BARE_SECONDS	for all cases together (default: no limit); what would be begun
#			with less than a third of it left is skipped
#	BARE_DAYS	age at which a base system is made anew (default 30)
#	BARE_CUDA	folder of a CUDA toolkit that the systems see as /usr/local/cuda (default: none)
#	BARE_MIRROR	the archive to make Debian's base systems from (default: debootstrap's own)
#	CHECK_TOTALS_FILE	file to write "passed failed" to, in place of the last line
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
CACHE=${BARE_CACHE:-${XDG_CACHE_HOME:-/var/cache}/gpuhash-bare}
CORE="stable:nothing:demo stable:server:readme oldstable:headers:demo oldstable:server:demo"
ALL="$(echo {stable,oldstable,noble}:{nothing,server,headers}:{readme,demo}) stable:headers:archive stable:nothing:packages"
CASE_SECONDS=1200
LIMIT=${BARE_SECONDS:-1000000}
PASSED=0
FAILED=0

skip() { printf 'skip    %s: %s\n' "$1" "$2"; }

# result ok|FAILED NAME [LOG]
result() {
	if [ "$1" = ok ]; then
		PASSED=$((PASSED + 1))
	else
		FAILED=$((FAILED + 1))
		tail -n 60 "$3" | sed 's/^/  | /'
	fi
	printf '%-6s  bare system, %s\n' "$1" "$2"
}

# Why no bare system can be made here, or nothing.
why_not() {
	local program
	[ "$(id -u)" = 0 ] || { echo "only root can make a bare system"; return; }
	for program in debootstrap unshare chroot flock tar; do
		command -v "$program" >/dev/null || { echo "$program is not installed"; return; }
	done
	unshare --mount --pid --fork true 2>/dev/null || { echo "namespaces cannot be made here"; return; }
	mkdir -p "$CACHE" 2>/dev/null || { echo "$CACHE cannot be made"; return; }
	# a base system's device files must work
	mknod "$CACHE/null" c 1 3 2>/dev/null && (: >"$CACHE/null") 2>/dev/null || echo "device files cannot be made in $CACHE"
	rm -f "$CACHE/null"
}

# at_most SECONDS: these, or what is left.
at_most() { echo $((LIMIT - SECONDS < $1 ? LIMIT - SECONDS : $1)); }

# base RELEASE: $CACHE/RELEASE.tar, made where it is not there or too old; fails with the reason in $WHY.
base() {
	local release=$1 log=$CACHE/$1.log
	if [ -n "$(find "$CACHE/$release.tar" -mtime "-${BARE_DAYS:-30}" 2>/dev/null)" ]; then
		return
	fi
	if [ ! -e "/usr/share/debootstrap/scripts/$release" ]; then
		WHY="this debootstrap does not know $release"
		return 1
	fi
	rm -rf --one-file-system "$CACHE/$release.new"
	mkdir "$CACHE/$release.new"
	local mirror=${BARE_MIRROR:-}
	case $release in *stable) ;; *) mirror= ;; esac
	if ! timeout "$(at_most 500)" debootstrap --force-check-gpg --variant=minbase "$release" "$CACHE/$release.new" \
		${mirror:+"$mirror"} >"$log" 2>&1 </dev/null; then
		WHY="debootstrap failed: $(grep -E '^E:' "$log" | tail -n 1)"
		rm -rf --one-file-system "$CACHE/$release.new"
		return 1
	fi
	# packages are kept outside, and what is thrown away need not be on the disk
	rm -rf "$CACHE/$release.new/var/cache/apt/archives"/*.deb
	echo force-unsafe-io >"$CACHE/$release.new/etc/dpkg/dpkg.cfg.d/bare"
	echo 'APT::Get::Assume-Yes "true";' >"$CACHE/$release.new/etc/apt/apt.conf.d/bare"
	if ! tar -C "$CACHE/$release.new" -cf "$CACHE/$release.tar.new" . || ! mv "$CACHE/$release.tar.new" "$CACHE/$release.tar"; then
		WHY="$CACHE/$release.tar could not be written"
		return 1
	fi
	rm -rf --one-file-system "$CACHE/$release.new"
}

# ------------------------------------------------ what is done in the namespaces

# inside ROOT CASE: as process 1 of its namespace; the status goes to ROOT.status.
inside() {
	local root=$1 release state=${2#*:} command=${2##*:}
	release=${2%%:*}
	state=${state%%:*}
	mount --make-rprivate /
	mount -t proc proc "$root/proc"
	mount --bind "$CACHE/$release.packages" "$root/var/cache/apt/archives"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	[ "$state" != headers ] || mount -t tmpfs -o mode=1777,noexec tmpfs "$root/tmp"
	if [ -n "${BARE_CUDA:-}" ]; then
		mkdir -p "$root/usr/local/cuda"
		mount --bind -o ro "$BARE_CUDA" "$root/usr/local/cuda"
	fi
	if [ "$state" = server ]; then
		umount "$root/dev/shm"
		rmdir "$root/dev/shm"
	fi
	(
		rc=0
		env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C \
			DEBIAN_FRONTEND=noninteractive chroot "$root" /bin/bash /root/checkout/gpuhash/test/bare.sh --on "$state" "$command" >"$root.log" 2>&1 </dev/null || rc=$?
		echo "$rc" >"$root.status"
	) &
	exec sleep 86400
}

# on STATE COMMAND: on the bare system.  The last line says what went wrong.
on() {
	local state=$1 command=$2 before servers
	cd "$HERE"
	echo "== making the state: $state"
	apt-get -q update
	case $state in
		nothing) ;;
		server) apt-get -q install --no-install-recommends postgresql ;;
		headers) apt-get -q install --no-install-recommends postgresql-server-dev-all ;;
	esac
	[ "$command" = readme ] || apt-get -q install --no-install-recommends make
	rm -rf /var/lib/apt/lists/*
	before=$(clusters)
	servers=$(servers)
	echo "== running: $command"
	"on_$command"
	echo "== what is left"
	if [ "$command" != readme ] && [ "$command" != packages ]; then
		same "clusters" "$before" "$(clusters)"
		same "files in /tmp and /var/tmp" "" "$(find /tmp /var/tmp -mindepth 1)"
		same "settings for new clusters" "" "$(find /etc/postgresql-common/createcluster.d 2>/dev/null || true)"
		same "servers" "$servers" "$(servers)"
		same "build results in the checkout" "" "$(find "$HERE" -name '*.o' -o -name '*.so')"
	fi
}

clusters() { (cd /etc/postgresql 2>/dev/null && ls -d -- */*) || true; }

# The servers' processes that run.
servers() {
	local status
	for status in /proc/[0-9]*/status; do
		awk '/^Name:/ { name = $2 } /^State:/ { state = $2 }
			END { if (name == "postgres" && state != "Z") print name }' "$status" 2>/dev/null || true
	done
}

same() {
	[ "$2" = "$3" ] || { printf 'left over: %s: %s\n' "$1" "$3"; exit 1; }
}

# The first block of code under "Build and install" in doc/install.md, without sudo, which a bare system lacks.
readme_lines() {
	awk '/^## Build and install/ { here = 1 } here && /^```/ { if (inside) exit; inside = 1; next } inside' doc/install.md | sed 's/^sudo //'
}

on_readme() {
	local version
	[ -n "$(readme_lines)" ] || { echo "doc/install.md has no lines under Build and install"; exit 1; }
	readme_lines
	# optimizing is for others
	readme_lines | COPT=-O0 MAKEFLAGS=-j2 bash -ex
	version=$(clusters | head -n 1)
	[ -n "$version" ] || { echo "no cluster to load gpuhash into"; exit 1; }
	pg_ctlcluster --skip-systemctl-redirect "${version%/*}" "${version#*/}" start || pg_lsclusters
	chown -R root /root
	su postgres -c "cd /; psql -X -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION gpuhash' -c \"LOAD 'gpuhash'\" \
		-c 'SET gpuhash.force_offload = on' \
		-c 'EXPLAIN (COSTS OFF) SELECT count(*) FROM pg_class a JOIN pg_attribute b ON a.oid = b.attrelid'" | tee /root/loaded
	grep -q 'Custom Scan (GpuHash' /root/loaded
}

on_demo() {
	local hint
	# one who is not root is shown what to do, before anything is tried
	cp -r test /var/tmp/test
	hint=$(cd /; su nobody -s /bin/bash -c 'bash /var/tmp/test/demo.sh 2>&1') || true
	rm -rf /var/tmp/test
	echo "$hint"
	[[ $hint == *"apt-get update && apt-get install"* ]] || { echo "no hint for one who is not root"; exit 1; }
	if [ ! -e /usr/include/postgresql ]; then
		# as it does where make alone is run
		make 2>&1 | tee /root/make || true
		grep -q 'apt-get install postgresql-server-dev-' /root/make
	fi
	COPT=-O0 make demo ROWS=200000 | tee /root/demo
	grep -q 'same answer$' /root/demo
}

on_archive() {
	COPT=-O0 make demo DATA=archive ROWS=200000 | tee /root/demo
	grep -q '^The planner chose gpuhash for [0-9]* of 8 queries' /root/demo && grep -q 'same answer$' /root/demo
	[ -n "$(find build/archive/lists -name '*Contents*')" ] || { echo "what was fetched is not kept"; exit 1; }
}

on_packages() { bash test/packages.sh; }

# ----------------------------------------------------------------------- all

# One case: a system of its own, which goes at its end.
run_case() {
	local name=$1 seconds=$2 release=${1%%:*} root start=$SECONDS status=
	mkdir -p "$CACHE/$release.packages/partial"
	WORK=$(mktemp -d "$CACHE/case.XXXXXX")
	root=$WORK/root
	mkdir -p "$root"
	tar -C "$root" -xf "$CACHE/$release.tar"
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
	mkdir -p "$root/root/checkout/gpuhash"
	tar -C "$HERE" -cf - --exclude=./.git --exclude=./build --exclude='*.o' --exclude='*.so' --exclude='*.bc' --exclude='*.d' . |
		tar -C "$root/root/checkout/gpuhash" -xf -
	chown -R 4321:4321 "$root/root/checkout"
	chmod 700 "$root/root"
	: >"$root.log"
	unshare --mount --pid --fork --kill-child bash "$HERE/test/bare.sh" --inside "$root" "$name" >>"$root.log" 2>&1 9>&- &
	CHILD=$!
	while [ ! -s "$root.status" ] && kill -0 "$CHILD" 2>/dev/null && [ $((SECONDS - start)) -lt "$seconds" ]; do
		sleep 0.5
	done
	end_child
	[ ! -s "$root.status" ] || status=$(cat "$root.status")
	[ -n "$status" ] || echo "(ended at its time limit of $seconds s)" >>"$root.log"
	[ -z "${BARE_LOGS:-}" ] || cp "$root.log" "$BARE_LOGS/$name.log"
	if [ "$status" = 0 ]; then
		result ok "$name ($((SECONDS - start)) s)"
	elif [ -z "$status" ] && [ "$seconds" -lt "$CASE_SECONDS" ]; then
		skip "bare system, $name" "it was not through in the $seconds s that were left of $LIMIT"
	else
		result FAILED "$name" "$root.log"
	fi
	remove_work
}

end_child() {
	[ -n "${CHILD:-}" ] || return 0
	kill -KILL "$CHILD" 2>/dev/null || true
	wait "$CHILD" 2>/dev/null || true
	CHILD=
}

# Nothing is mounted in here outside of the namespaces, which are gone; should it be, it stays.
remove_work() {
	[ -n "${WORK:-}" ] || return 0
	! grep -qF " $WORK/" /proc/self/mountinfo || { echo "still mounted below $WORK: not removed" >&2; return 0; }
	rm -rf --one-file-system "$WORK"
	WORK=
}

end() {
	local rc=$?
	trap '' INT TERM HUP
	end_child
	remove_work
	exit "$rc"
}

all() {
	local case why left
	trap end EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	why=$(why_not)
	if [ -z "$why" ]; then
		exec 9>"$CACHE/lock"
		if flock -w $((LIMIT / 3)) 9; then
			# what a killed run left
			for WORK in "$CACHE"/case.*; do [ ! -d "$WORK" ] || remove_work; done
			WORK=
		else
			why="another run uses $CACHE"
		fi
	fi
	for case in "$@"; do
		WHY=$why
		left=$((LIMIT - SECONDS))
		if [ -z "$WHY" ] && [ "$left" -lt $((${BARE_SECONDS:-0} / 3)) ]; then
			WHY="$left s are left of $LIMIT"
		fi
		if [ -n "$WHY" ] || ! base "${case%%:*}"; then
			skip "bare system, $case" "$WHY"
		else
			run_case "$case" "$(at_most "$CASE_SECONDS")"
		fi
	done
	if [ -n "${CHECK_TOTALS_FILE:-}" ]; then
		echo "$PASSED $FAILED" >"$CHECK_TOTALS_FILE"
	else
		echo "$PASSED passed, $FAILED failed"
	fi
	[ "$FAILED" = 0 ] || exit 1
}

# shellcheck disable=SC2086
case ${1:-} in
	--inside) inside "$2" "$3" ;;
	--on) on "$2" "$3" ;;
	core) all $CORE ;;
	'') all $ALL ;;
	*) all "$@" ;;
esac
