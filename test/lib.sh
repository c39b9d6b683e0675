# shellcheck shell=bash
#
# lib.sh: what the scripts of this folder and .ci/run share.  Sourced, not run.
#
# How a script uses it
#	gh_require server build ...	install what is missing, or say how, and end
#	gh_main FUNCTION "$@"		run FUNCTION in a fresh folder as an ordinary user
# and inside FUNCTION, where $WORK is the folder and $SRC a copy of the checkout
#	gh_stage			a private copy of the server, with gpuhash installed into it
#	gh_server_start, gh_psql, gh_server_stop
#
# Nothing of the system, of the checkout and of an installed server is changed
# but for packages that are missing, and these only as root.  A server runs as
# an ordinary user, on a Unix socket only, and is stopped however the script
# ends; $WORK goes with it.

GH_SCRIPT=$(realpath "$0")
GH_HOME=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
GH_PG_OLDEST=15
GH_CHILD=

# Not the caller's server, nor the flags of the make that called us.
unset PGHOST PGHOSTADDR PGPORT PGUSER PGDATABASE PGPASSWORD PGPASSFILE PGSERVICE \
	PGSERVICEFILE PGDATA PGOPTIONS PGAPPNAME PGCLIENTENCODING PSQLRC
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES GNUMAKEFLAGS

gh_say() { printf '%s\n' "$*"; }
gh_step() { printf '\n== %s\n' "$*"; }
gh_die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
gh_have() { command -v "$1" >/dev/null 2>&1; }

# ------------------------------------------------- what the machine must have

# Is this a pg_config that a server extension can be built with, of a server
# that is here and new enough?
gh_pg_usable() {
	local pgxs version
	pgxs=$("$1" --pgxs 2>/dev/null) && [ -f "$pgxs" ] || return 1
	[ -x "$("$1" --bindir)/postgres" ] && [ -x "$("$1" --bindir)/initdb" ] || return 1
	version=$(gh_pg_major "$1")
	[ "$version" -ge "$GH_PG_OLDEST" ]
}

gh_pg_major() { "$1" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/'; }

# The pg_config to use: the one asked for, that of PATH, or the newest of
# Debian's folders.  Prints nothing when there is none.
gh_find_pg_config() {
	local candidate
	if [ -n "${PG_CONFIG:-}" ]; then
		gh_pg_usable "$PG_CONFIG" && command -v "$PG_CONFIG"
		return 0
	fi
	for candidate in pg_config $(for program in /usr/lib/postgresql/*/bin/pg_config; do echo "$program"; done | sort -t/ -k5,5nr); do
		if gh_have "$candidate" && gh_pg_usable "$candidate"; then
			command -v "$candidate"
			return 0
		fi
	done
}

gh_cc_works() { printf '#include <stdio.h>\nint main(void) { return 0; }\n' | cc -x c -o /dev/null - 2>/dev/null; }

# Packages of a server and its development files: those of the newest server
# that is installed, or of the version that this release comes with.
gh_server_packages() {
	local version
	version=$(for program in /usr/lib/postgresql/*/bin/postgres; do echo "$program"; done |
		cut -d/ -f5 | awk -v oldest="$GH_PG_OLDEST" '$1 + 0 >= oldest' | sort -n | tail -n 1)
	if [ -n "$version" ]; then
		printf 'postgresql-server-dev-%s ' "$version"
		return
	fi
	version=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' | sort -n | tail -n 1)
	if [ -n "$version" ]; then
		printf 'postgresql-%s postgresql-server-dev-%s ' "$version" "$version"
	else
		printf 'postgresql postgresql-server-dev-all '
	fi
}

# The packages that are missing for what is asked: "server", "prove".
gh_missing_packages() {
	local what
	gh_cc_works || printf 'gcc libc6-dev '
	gh_have make || printf 'make '
	for what in "$@"; do
		case $what in
			server) [ -n "$(gh_find_pg_config)" ] || gh_server_packages ;;
			prove) gh_have prove || printf 'perl ' ;;
		esac
	done
}

# gh_require server prove: see that what is named is there.  As root, packages
# that are missing are installed; otherwise the command that does it is shown.
gh_require() {
	local missing version
	if [ -n "${PG_CONFIG:-}" ] && ! gh_pg_usable "$PG_CONFIG"; then
		gh_die "PG_CONFIG=$PG_CONFIG is not the pg_config of a PostgreSQL $GH_PG_OLDEST or later with its server development files"
	fi
	missing=$(gh_missing_packages "$@")
	if [ -n "$missing" ]; then
		gh_have apt-get || gh_die "needed: a C compiler, make, perl, and PostgreSQL $GH_PG_OLDEST or later with its server development files (PG_CONFIG=PATH names it)"
		if [ "$(id -u)" != 0 ]; then
			printf '%s: packages are missing; install them with\n\n  sudo apt-get update && sudo apt-get install -y --no-install-recommends %s\n\nand run this again\n' "${0##*/}" "${missing% }" >&2
			exit 1
		fi
		gh_step "installing what is missing: $missing"
		apt-get update -qq || gh_say "apt-get update reported errors; going on with the lists that are there"
		missing=$(gh_missing_packages "$@")
		version=$(printf '%s' "$missing" | sed -n 's/.*postgresql-server-dev-\([0-9]*\).*/\1/p')
		if [ -n "$version" ] && [ "$version" -lt "$GH_PG_OLDEST" ]; then
			gh_die "this release has PostgreSQL $version; gpuhash needs $GH_PG_OLDEST or later (PG_CONFIG=PATH names one that is installed)"
		fi
		# shellcheck disable=SC2086
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
			gh_die "apt-get install $missing failed"
	fi
	PG_CONFIG=$(gh_find_pg_config)
	[ -n "$PG_CONFIG" ] || gh_die "no PostgreSQL $GH_PG_OLDEST or later with its server development files was found; PG_CONFIG=PATH names one"
	PG_CONFIG=$(realpath -s "$PG_CONFIG")
	export PG_CONFIG
}

# The CUDA compiler, or nothing.
gh_nvcc() {
	if [ -n "${NVCC:-}" ]; then
		printf '%s\n' "$NVCC"
	elif gh_have nvcc; then
		command -v nvcc
	elif [ -x /usr/local/cuda/bin/nvcc ]; then
		printf '/usr/local/cuda/bin/nvcc\n'
	fi
}

# Is there an NVIDIA GPU that this machine can use?
gh_gpu() { gh_have nvidia-smi && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }

# ------------------------------------- a folder, an ordinary user, a clean end

# The user that servers run as: ourselves, or, for root, one without rights.
gh_user() {
	if [ "$(id -u)" != 0 ]; then
		id -un
	elif [ -n "${GPUHASH_USER:-}" ]; then
		printf '%s\n' "$GPUHASH_USER"
	elif id -u postgres >/dev/null 2>&1; then
		printf 'postgres\n'
	else
		printf 'nobody\n'
	fi
}

# Run a command as gh_user, in its own session, so that all of it can be ended.
gh_as_user() {
	local user
	user=$(gh_user)
	if [ "$(id -u)" = 0 ]; then
		if gh_have setpriv; then
			set -- setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups "$@"
		else
			set -- runuser -u "$user" -- "$@"
		fi
	fi
	# a background job of a script ignores SIGINT; what it runs should not
	exec setsid env --default-signal=INT,QUIT "$@"
}

gh_copy_checkout() {
	mkdir -p "$1"
	tar -C "$GH_HOME" -cf - --exclude=./.git --exclude=./build --exclude=./results --exclude=./output_iso \
		--exclude=./tmp_check --exclude='*.o' --exclude='*.so' --exclude='*.bc' --exclude='*.d' . |
		tar -C "$1" -xf - --no-same-owner
}

# gh_main FUNCTION ARG...: as the caller, make the folder and the copy, and run
# this same script again in there as gh_user, which then calls FUNCTION.  The
# folder is new and goes at the end, unless GPUHASH_KEEP is set; or it is
# GH_WORKDIR, and stays.
gh_main() {
	local body=$1 rc=0
	shift
	if [ -n "${GPUHASH_WORK:-}" ]; then
		WORK=$GPUHASH_WORK
		SRC=$WORK/src
		trap 'gh_stop_servers' EXIT
		trap 'exit 130' INT
		trap 'exit 143' TERM HUP
		cd "$WORK" || exit
		"$body" "$@"
		return
	fi
	trap 'gh_end' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	if [ -n "${GH_WORKDIR:-}" ]; then
		WORK=$GH_WORKDIR
		mkdir -p "$WORK/src"
		# what was built in there stays; sources that are gone from the checkout go
		find "$WORK/src" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
	else
		WORK=$(mktemp -d /tmp/gpuhash.XXXXXX)
	fi
	chmod 755 "$WORK"
	gh_copy_checkout "$WORK/src"
	mkdir -p "$WORK/home"
	chmod -R u+rwX,go+rX "$WORK/src"
	(gh_as_user test -x "$PG_CONFIG") ||
		gh_die "user $(gh_user), which the server would run as, cannot reach $PG_CONFIG (GPUHASH_USER=NAME names another user)"
	if [ "$(id -u)" = 0 ]; then
		chown -R "$(gh_user)" "$WORK"
	fi
	(gh_as_user env GPUHASH_WORK="$WORK" GPUHASH_CHECKOUT="$GH_HOME" HOME="$WORK/home" LC_ALL=C \
		bash "$WORK/src/${GH_SCRIPT#"$GH_HOME"/}" "$@" </dev/null) &
	GH_CHILD=$!
	wait "$GH_CHILD" || rc=$?
	GH_CHILD=
	exit "$rc"
}

# TERM to every process of a session that we started: `timeout` and others make
# process groups of their own in there.
gh_signal_session() {
	local stat fields
	for stat in /proc/[0-9]*/stat; do
		# pid (name) state parent group session: the name may hold anything
		{ fields=$(cat "$stat"); } 2>/dev/null || continue
		read -r -a fields <<<"${fields##*) }"
		if [ "${fields[3]:-}" = "$1" ]; then
			stat=${stat#/proc/}
			kill -TERM "${stat%/stat}" 2>/dev/null || true
		fi
	done
}

# The outer script ends: end the inner one and all it started, remove the folder.
gh_end() {
	local rc=$?
	trap '' INT TERM HUP
	if [ -n "$GH_CHILD" ]; then
		gh_signal_session "$GH_CHILD"
		wait "$GH_CHILD" 2>/dev/null || true
	fi
	gh_stop_servers
	if [ -n "${GH_WORKDIR:-}" ]; then
		:
	elif [ -n "${GPUHASH_KEEP:-}" ]; then
		gh_say "kept: $WORK"
	else
		rm -rf "$WORK"
	fi
	exit "$rc"
}

# ------------------------------------------------------- the private server

# Where things lie: gpuhash is built in $BUILD and installed into $STAGE, a
# private copy of the server that keeps the layout of the original, because
# PostgreSQL finds its other folders relative to where its program lies.  A
# second build and copy have a suffix.
gh_paths() {
	BUILD=$WORK/build${1:-}
	STAGE=$WORK/stage${1:-}
	STAGE_BIN=$STAGE$("$PG_CONFIG" --bindir)
	STAGE_LIB=$STAGE$("$PG_CONFIG" --pkglibdir)
	STAGE_SHARE=$STAGE$("$PG_CONFIG" --sharedir)
}

# Build gpuhash and make the private copy: programs are copied, everything
# else is linked to.  Arguments go to make.
gh_stage() {
	local bindir pkglibdir sharedir program
	bindir=$("$PG_CONFIG" --bindir)
	pkglibdir=$("$PG_CONFIG" --pkglibdir)
	sharedir=$("$PG_CONFIG" --sharedir)
	if [ ! -d "$STAGE" ]; then
		mkdir -p "$STAGE_BIN" "$STAGE_LIB" "$STAGE_SHARE/extension"
		for program in postgres initdb pg_ctl psql pg_config pgbench pg_basebackup; do
			[ ! -x "$bindir/$program" ] || cp -L "$bindir/$program" "$STAGE_BIN/"
		done
		gh_link_entries "$pkglibdir" "$STAGE_LIB"
		gh_link_entries "$sharedir" "$STAGE_SHARE"
		gh_link_entries "$sharedir/extension" "$STAGE_SHARE/extension"
	fi
	mkdir -p "$BUILD"
	gh_make "$@" && gh_make "$@" install DESTDIR="$STAGE"
}

# Link what is in one folder into another, but nothing of gpuhash, and no
# folder that `make install` writes into.
gh_link_entries() {
	local entry
	for entry in "$1"/*; do
		case ${entry##*/} in
			gpuhash* | extension | bitcode | pgxs) ;;
			*) [ ! -e "$entry" ] || ln -s "$entry" "$2/" ;;
		esac
	done
}

# make in $BUILD, out of the copy of the checkout.
gh_make() { timeout -k 10 590 make -s -C "$BUILD" -f "$SRC/Makefile" -j "$(nproc)" PG_CONFIG="$PG_CONFIG" "$@"; }

# gh_server_start NAME [LINE...]: a new server in $WORK/NAME, its configuration
# ending with the lines given; $SERVER and PGHOST then name it.
gh_server_start() {
	local name=$1 dsm=posix shm
	shift
	SERVER=$WORK/$name
	rm -rf "$SERVER"
	mkdir -p "$SERVER"
	chmod 700 "$SERVER"
	"$STAGE_BIN/initdb" -D "$SERVER/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$SERVER/initdb.log" 2>&1 || {
		cat "$SERVER/initdb.log"
		return 1
	}
	# containers often have next to no /dev/shm
	shm=$(df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
	[ "${shm:-0}" -ge 512 ] || dsm=sysv
	{
		cat <<-CONF
			listen_addresses = ''
			unix_socket_directories = '$SERVER'
			dynamic_shared_memory_type = $dsm
			fsync = off
			synchronous_commit = off
			full_page_writes = off
			wal_level = minimal
			max_wal_senders = 0
			max_wal_size = 4GB
			log_line_prefix = '%m [%p] '
		CONF
		[ $# = 0 ] || printf '%s\n' "$@"
	} >>"$SERVER/data/postgresql.conf"
	"$STAGE_BIN/pg_ctl" -D "$SERVER/data" -l "$SERVER/log" -w -t 120 start >"$SERVER/start.log" 2>&1 || {
		cat "$SERVER/start.log" "$SERVER/log"
		return 1
	}
	export PGHOST=$SERVER PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
}

gh_server_stop() {
	[ -n "${SERVER:-}" ] || return 0
	"$STAGE_BIN/pg_ctl" -D "$SERVER/data" -m fast -w -t 60 stop >/dev/null 2>&1 || true
	SERVER=
}

# End at once every server that lies below $WORK, a test's own included.
gh_stop_servers() {
	local file pid
	[ -n "${WORK:-}" ] || return 0
	find "$WORK" -maxdepth 6 -name postmaster.pid 2>/dev/null | while read -r file; do
		pid=$(head -n 1 "$file" 2>/dev/null) || continue
		if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "${file%/*}" ]; then
			kill -QUIT "$pid" 2>/dev/null || continue
			timeout 20 tail --pid="$pid" -f /dev/null || kill -KILL "$pid" 2>/dev/null || true
		fi
	done
}

gh_psql() { "$STAGE_BIN/psql" -X -q -v ON_ERROR_STOP=1 "$@"; }
