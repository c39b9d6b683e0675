#!/usr/bin/env bash
#
# packages.sh: the Debian packages, built, installed, tested and removed on the system that runs this.
#
# For a system that may be changed and thrown away, as a container: test/bare.sh stable:nothing:packages
# makes one.  Installs what debian/control asks for, builds the packages as an ordinary user and, for each
# version of PostgreSQL that they are for, installs them, looks at what lies where, runs `make installcheck`
# on a private server with the installed files, and removes them.  Where there is an nvcc, the packages
# with the CUDA engine are built, too; without a GPU it is only loaded.  Needs root and apt-get.  The last
# line counts: "N passed, N failed".
#
# Environment
#	CUDA_ARCHS		architectures to compile for (default here: 90)
#	NVCC			the CUDA compiler (default: of PATH, else the one in /usr/local/cuda)
set -euo pipefail
# shellcheck source=test/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PASSED=0
FAILED=0
PACKAGES=

# attempt NAME COMMAND...: one test that passes when the command does.
attempt() {
	local name=$1 start=$SECONDS log
	log=$(mktemp)
	shift
	if "$@" >"$log" 2>&1; then
		PASSED=$((PASSED + 1))
		printf 'ok      %s (%s s)\n' "$name" $((SECONDS - start))
	else
		FAILED=$((FAILED + 1))
		tail -n 60 "$log" | sed 's/^/  | /'
		printf 'FAILED  %s\n' "$name"
	fi
	rm -f "$log"
}

apt_install() { gh_apt install "$@"; }

# ---------------------------------------------------------------- the packages

what_builds() {
	gh_apt update
	apt_install build-essential postgresql-common
	# a package of a server is not to make a cluster
	mkdir -p /etc/postgresql-common/createcluster.d
	echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/gpuhash-none.conf
	apt_install postgresql-server-dev-all
	(cd "$PACKAGES/gpuhash" && pg_buildext updatecontrol)
	gh_apt build-dep ${PROFILE:+-P "$PROFILE"} "$PACKAGES/gpuhash"
}

# as_builder COMMAND...: in the copy of the checkout, as the ordinary user whose it is
as_builder() {
	chown -R "$(gh_user)" "$PACKAGES"
	(cd "$PACKAGES/gpuhash" && gh_as_user env HOME="$PACKAGES" LC_ALL=C DEB_BUILD_OPTIONS="parallel=$(nproc)" "$@")
}

build() {
	as_builder env CUDA_ARCHS="${CUDA_ARCHS:-90}" dpkg-buildpackage -us -uc -b ${PROFILE:+"-P$PROFILE"}
}

package() { printf '%s\n' "$PACKAGES/postgresql-$1"_*.deb; }

# Files of a package that are not documentation or bitcode.
files_of() {
	dpkg -c "$(package "$1")" | awk '$1 !~ /^d/ { sub(/^\.\//, "/", $6); print $6 }' |
		grep -vE '^/usr/share/doc/|/bitcode/' | sort
}

same() {
	[ "$1" = "$2" ] || { printf 'expected:\n%s\nthere is:\n%s\n' "$1" "$2"; return 1; }
}

# What is where: the CUDA engine in the package for it alone.
files_are_right() {
	local version=$1 lib=/usr/lib/postgresql/$1/lib share=/usr/share/postgresql/$1/extension scripts
	scripts=$(cd "$GH_HOME" && printf "$share/%s\n" gpuhash--*.sql gpuhash.control)
	same "$(printf '%s\n' "$lib/gpuhash.so" "$scripts" | sort)" "$(files_of "$version-gpuhash")" || return
	[ -z "$PROFILE" ] || same "$lib/gpuhash_cuda.so" "$(files_of "$version-gpuhash-cuda")"
}

install_package() {
	apt_install "$(package "$1-gpuhash")"
	[ -f "/usr/lib/postgresql/$1/lib/gpuhash.so" ] && [ ! -e "/usr/lib/postgresql/$1/lib/gpuhash_cuda.so" ]
}

install_cuda_package() {
	apt_install "$(package "$1-gpuhash-cuda")"
	[ -f "/usr/lib/postgresql/$1/lib/gpuhash_cuda.so" ]
}

remove_packages() {
	local left
	gh_apt purge "postgresql-$1-gpuhash*"
	left=$(find /usr/lib/postgresql /usr/share/postgresql /usr/share/doc /etc /var/lib/postgresql \
		-name '*gpuhash*' ! -name gpuhash-none.conf 2>/dev/null || true)
	same "" "$left"
}

# ------------------------------- as an ordinary user, with the files that are installed

# server LINE...: a private one, of the installed programs
server() {
	STAGE_BIN=$("$PG_CONFIG" --bindir)
	gh_server_start server "shared_buffers = 256MB" "max_worker_processes = 16" "jit = off" "$@"
}

check_sql() {
	BUILD=$WORK/build
	mkdir -p "$BUILD"
	server
	if ! gh_make WITH_CUDA=no installcheck; then
		cat "$BUILD"/*.diffs "$BUILD"/output_iso/*.diffs 2>/dev/null || true
		return 1
	fi
	! find "$BUILD" -name '*.so' | grep . || return 1
	! grep -E 'was terminated by signal|PANIC|TRAP:' "$SERVER/log"
}

# The library in every process, its worker, and the extension.
check_preload() {
	local out
	server "shared_preload_libraries = 'gpuhash'"
	out=$(gh_psql -At -c 'CREATE EXTENSION gpuhash' -c 'SELECT gpuhash_mode()' -c 'SET gpuhash.force_offload = on' \
		-c 'EXPLAIN (COSTS OFF) SELECT count(*) FROM pg_class a JOIN pg_attribute b ON a.oid = b.attrelid' 2>&1)
	echo "$out"
	grep -q '^shared_preload_libraries$' <<<"$out" && grep -q 'Custom Scan (GpuHash' <<<"$out"
}

# The engine is there: it says itself that there is no GPU, where there is none.
check_cuda() {
	local out
	server
	out=$(gh_psql -At -c "LOAD 'gpuhash'" -c 'SET gpuhash.force_offload = on' -c "SET gpuhash.engine = 'cuda'" \
		-c 'SELECT count(*) FROM pg_class a JOIN pg_attribute b ON a.oid = b.attrelid' 2>&1) || true
	echo "$out"
	if gh_gpu; then
		grep -qE '^[0-9]+$' <<<"$out"
	else
		grep 'CUDA engine is not available' <<<"$out" | grep -qv gpuhash_cuda
	fi
}

on_server() { PG_CONFIG=/usr/lib/postgresql/$1/bin/pg_config bash "$GH_HOME/test/packages.sh" "$2"; }

# ------------------------------------------------------------------------- all

end() {
	[ -z "$PACKAGES" ] || rm -rf "$PACKAGES"
}

all() {
	local version
	{ [ "$(id -u)" = 0 ] && gh_have apt-get; } || gh_die "this installs packages: it needs root and apt-get"
	trap end EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	PACKAGES=$(mktemp -d /var/tmp/gpuhash.XXXXXX)
	chmod 755 "$PACKAGES"
	PROFILE=
	[ -z "$(gh_nvcc)" ] || PROFILE=pkg.gpuhash.cuda
	gh_copy_checkout "$PACKAGES/gpuhash"
	attempt "what debian/control asks for is installed" what_builds
	attempt "the packages are built${PROFILE:+, with the CUDA engine}" build
	for version in $(cd "$PACKAGES/gpuhash" && pg_buildext supported-versions); do
		attempt "files of the packages for PostgreSQL $version" files_are_right "$version"
		attempt "postgresql-$version-gpuhash is installed" install_package "$version"
		attempt "make installcheck with postgresql-$version-gpuhash" on_server "$version" check_sql
		attempt "shared_preload_libraries, with postgresql-$version-gpuhash" on_server "$version" check_preload
		if [ -n "$PROFILE" ]; then
			attempt "postgresql-$version-gpuhash-cuda is installed" install_cuda_package "$version"
			attempt "the CUDA engine of postgresql-$version-gpuhash-cuda is loaded" on_server "$version" check_cuda
		fi
		attempt "the packages for PostgreSQL $version are removed" remove_packages "$version"
	done
	[ -n "${version:-}" ] || attempt "packages are there" false
	echo "$PASSED passed, $FAILED failed"
	[ "$FAILED" = 0 ] || exit 1
}

case ${1:-} in
	'') all ;;
	check_sql | check_preload | check_cuda) gh_main "$@" "$@" ;;
	*) gh_die "unknown: $1" ;;
esac
