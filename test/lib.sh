# shellcheck shell=bash
#
# lib.sh: what the scripts of this folder and .ci/run share.  Sourced, not run.
#
# How a script uses it
#	gh_require server prove ...	install what is missing, or say how, and end
#	gh_main FUNCTION "$@"		run FUNCTION in a fresh folder as an ordinary user
# and inside FUNCTION, where $WORK is the folder and $SRC a copy of the checkout
#	gh_stage			a private copy of the server, with gpuhash installed into it
#	gh_server_start, gh_psql, gh_server_stop
#
# The folder is made in TMPDIR, /tmp or /var/tmp, the first of them that has
# GH_NEEDS_MB free and where programs can be run.  No script ends without a word:
# what fails unforeseen is reported by gh_broke.  GH_DEBIAN_ROOT, for tests of this
# file, is where Debian's folders of servers and headers are looked for.
#
# Nothing of the system, of the checkout and of an installed server is changed
# but for packages that are missing, and these only as root.  A server runs as
# an ordinary user, on a Unix socket only, and is stopped however the script
# ends; $WORK goes with it.

GH_SCRIPT=$(realpath "$0")
GH_HOME=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
GH_PG_OLDEST=15
GH_SUPERUSER=${GH_SUPERUSER:-postgres}
GH_NEEDS_MB=${GH_NEEDS_MB:-1000}
GH_CHILD=
GH_INSTALLING=
GH_JOB=
GH_REMOVE=()

# Not the caller's server, nor the flags of the make that called us.
unset PGHOST PGHOSTADDR PGPORT PGUSER PGDATABASE PGPASSWORD PGPASSFILE PGSERVICE \
	PGSERVICEFILE PGDATA PGOPTIONS PGAPPNAME PGCLIENTENCODING PSQLRC
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES GNUMAKEFLAGS
# after a plain `su` these are missing
[ "$(id -u)" != 0 ] || PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

gh_say() { printf '%s\n' "$*"; }
gh_step() { printf '\n== %s\n' "$*"; }
gh_die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
# gh_longest FILE: the five longest tests of a file whose lines begin with seconds.
gh_longest() { sort -rn "$1" | awk 'NR <= 5 { seconds = $1; sub(/^[0-9]+ /, ""); printf "longest: %s s, %s\n", seconds, $0 }'; }
gh_have() { command -v "$1" >/dev/null 2>&1; }

# A command fails that was not expected to, and `set -e` ends the script: say which.
gh_broke() {
	case $- in
		*e*) printf '%s: line %s failed (status %s): %s\n' "${0##*/}" "$2" "$1" "$3" >&2 ;;
	esac
}
set -E
trap 'gh_broke "$?" "$LINENO" "$BASH_COMMAND"' ERR

# However a script ends, nothing of it stays.
gh_trap_end() {
	trap 'gh_end' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

# gh_progress LOG STATUS COMMAND...: run COMMAND, its output in LOG, and say each
# five seconds what `STATUS LOG` prints.  Where COMMAND fails, the log's end is shown.
gh_progress() {
	local log=$1 status=$2 start=$SECONDS said=$SECONDS rc=0
	shift 2
	"$@" >"$log" 2>&1 </dev/null &
	GH_JOB=$!
	while kill -0 "$GH_JOB" 2>/dev/null; do
		sleep 0.2
		if [ $((SECONDS - said)) -ge 5 ]; then
			said=$SECONDS
			printf '  %3d s  %s\n' $((SECONDS - start)) "$("$status" "$log" | cut -c 1-90)"
		fi
	done
	wait "$GH_JOB" || rc=$?
	GH_JOB=
	[ "$rc" = 0 ] || tail -n 40 "$log" | sed 's/^/  | /'
	return "$rc"
}

# ------------------------------------------------- what the machine must have

# Why gpuhash cannot be built for and tried on the server of this pg_config:
# "config", "old", and one or both of "server" and "headers".  Nothing where it
# can.  A server's package may bring pg_config and pgxs.mk without the headers.
gh_pg_lacks() {
	local pgxs bindir
	pgxs=$("$1" --pgxs 2>/dev/null) || { echo config; return; }
	[ "$(gh_pg_major "$1")" -ge "$GH_PG_OLDEST" ] || { echo old; return; }
	bindir=$("$1" --bindir)
	[ -x "$bindir/postgres" ] && [ -x "$bindir/initdb" ] || echo server
	[ -f "$pgxs" ] && [ -f "$("$1" --includedir-server)/postgres.h" ] || echo headers
}

gh_pg_usable() { [ -z "$(gh_pg_lacks "$1")" ]; }

gh_pg_major() { "$1" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/'; }

# The pg_config to use: the one asked for, that of PATH, or the newest of
# Debian's folders.  Prints nothing when there is none.
gh_find_pg_config() {
	local candidate
	if [ -n "${PG_CONFIG:-}" ]; then
		! gh_pg_usable "$PG_CONFIG" || command -v "$PG_CONFIG"
		return 0
	fi
	for candidate in pg_config $(gh_debian_files bin/pg_config | sort -t/ -k5,5nr); do
		if gh_have "$candidate" && gh_pg_usable "$candidate"; then
			command -v "$candidate"
			return 0
		fi
	done
}

# The installed servers' files of this name, in Debian's folders.
gh_debian_files() {
	local file
	for file in "${GH_DEBIAN_ROOT:-}"/usr/lib/postgresql/*/"$1"; do
		[ ! -e "$file" ] || printf '%s\n' "$file"
	done
}

# The newest version, of those on standard input, that is new enough.
gh_newest() { awk -v oldest="$GH_PG_OLDEST" '$1 + 0 >= oldest' | sort -n | tail -n 1; }

gh_cc_works() { printf '#include <stdio.h>\nint main(void) { return 0; }\n' | cc -x c -o /dev/null - 2>/dev/null; }

# Packages that make a server usable which lacks "server", "headers" or both.
gh_packages_of() {
	local version=$1 what
	for what in $2; do
		case $what in
			server) printf 'postgresql-%s ' "$version" ;;
			headers) printf 'postgresql-server-dev-%s ' "$version" ;;
		esac
	done
}

# Packages of a server and its development files: what the server of PG_CONFIG
# lacks; else what the newest server lacks that is installed; else the server for
# the newest headers that are; else both, of the version of this release.
gh_server_packages() {
	local version
	if [ -n "${PG_CONFIG:-}" ]; then
		gh_packages_of "$(gh_debian_version "$PG_CONFIG")" "$(gh_pg_lacks "$PG_CONFIG" | sed 's/config/server headers/')"
		return
	fi
	version=$(gh_debian_files bin/postgres | sed 's:/bin/postgres$::; s:.*/::' | gh_newest)
	if [ -n "$version" ]; then
		gh_packages_of "$version" headers
		return
	fi
	version=$(for file in "${GH_DEBIAN_ROOT:-}"/usr/include/postgresql/*/server/postgres.h; do echo "$file"; done |
		sed 's:/server/postgres.h$::; s:.*/::' | gh_newest)
	if [ -n "$version" ]; then
		gh_packages_of "$version" server
		return
	fi
	version=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' | sort -n | tail -n 1)
	if [ -n "$version" ]; then
		gh_packages_of "$version" "server headers"
	else
		printf 'postgresql postgresql-server-dev-all '
	fi
}

# The version whose packages have this pg_config, or would have it; else nothing.
gh_debian_version() {
	local bindir
	bindir=$("$1" --bindir 2>/dev/null) || bindir=${1%/pg_config}
	printf '%s\n' "$bindir" | sed -n "s:^${GH_DEBIAN_ROOT:-}/usr/lib/postgresql/\\([0-9][0-9]*\\)/bin\$:\\1:p"
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

# A PG_CONFIG that packages cannot mend.
gh_refuse_pg_config() {
	local lacks
	lacks=$(gh_pg_lacks "$PG_CONFIG")
	case $lacks in
		'') return ;;
		old) gh_die "PG_CONFIG=$PG_CONFIG is of PostgreSQL $(gh_pg_major "$PG_CONFIG"): gpuhash needs $GH_PG_OLDEST or later" ;;
	esac
	[ -z "$(gh_debian_version "$PG_CONFIG")" ] || ! gh_have apt-get || return 0
	case $lacks in
		config) gh_die "PG_CONFIG=$PG_CONFIG is not a pg_config that can be run" ;;
		*server*) gh_die "PG_CONFIG=$PG_CONFIG: there is no server in $("$PG_CONFIG" --bindir)" ;;
		*) gh_die "PG_CONFIG=$PG_CONFIG: there is no $("$PG_CONFIG" --includedir-server)/postgres.h;" \
			"install the server development files of this PostgreSQL" ;;
	esac
}

# gh_require server prove: see that what is named is there.  As root, packages
# that are missing are installed; otherwise the command that does it is shown.
gh_require() {
	local missing
	gh_choose_folder
	[ -z "${PG_CONFIG:-}" ] || gh_refuse_pg_config
	missing=$(gh_missing_packages "$@")
	if [ -n "$missing" ]; then
		gh_have apt-get || gh_die "needed: a C compiler, make, perl, and PostgreSQL $GH_PG_OLDEST or later" \
			"with its server development files (PG_CONFIG=PATH names it)"
		if [ "$(id -u)" != 0 ]; then
			printf '%s: packages are missing; install them with\n\n  %s\n\nand run this again\n' \
				"${0##*/}" "$(gh_install_hint "${missing% }")" >&2
			case $missing in
				*'postgresql '* | *'postgresql-'[0-9]*)
					printf '(the package of a server makes a database cluster of its own, which is not used here)\n' >&2 ;;
			esac
			exit 1
		fi
		gh_install_missing "$@"
	fi
	PG_CONFIG=$(gh_find_pg_config)
	[ -n "$PG_CONFIG" ] || gh_die "no PostgreSQL $GH_PG_OLDEST or later with its server development files was found;" \
		"PG_CONFIG=PATH names one"
	PG_CONFIG=$(realpath -s "$(command -v "$PG_CONFIG")")
	export PG_CONFIG
}

# The command that installs packages, for one who is not root.
gh_install_hint() {
	local install="apt-get install -y --no-install-recommends $1"
	if gh_have sudo; then
		printf 'sudo apt-get update && sudo %s\n' "$install"
	else
		printf "su - root -c 'apt-get update && %s'\n" "$install"
	fi
}

gh_apt() {
	LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -y -q --no-install-recommends \
		-o DPkg::Lock::Timeout=300 -o APT::Color=0 "$@"
}

# How far apt-get is, by its output.
gh_apt_status() {
	awk '/ newly installed,/ { all = $3 } /^Get:/ { got++ } /^Unpacking / { unpacked++ } /^Setting up / { done++ } { last = $0 }
		END {
			if (unpacked) print unpacked " of " all " packages unpacked, " done + 0 " set up"
			else if (all) print got + 0 " of " all " packages fetched"
			else print last
		}' "$1"
}

# gh_install_size PACKAGES: how many are to be installed for these, and how large they are.
gh_install_size() {
	local all
	# shellcheck disable=SC2086
	all=$(gh_apt -s install $1 2>/dev/null | awk '/^Inst / { print $2 }')
	# shellcheck disable=SC2086
	apt-cache show --no-all-versions $all 2>/dev/null |
		awk '/^Package: / { n++ } /^Installed-Size: / { kb += $2 } END { printf "%d packages, %d MB", n, kb / 1024 }'
}

# Say what is missing, install it, and say what stays.
gh_install_missing() {
	local missing log version drop_in=/etc/postgresql-common/createcluster.d/gpuhash-none.conf
	gh_trap_end
	GH_INSTALLING=yes
	log=$(mktemp "$GH_FOLDER/gpuhash-apt.XXXXXX")
	GH_REMOVE+=("$log")
	gh_step "packages are missing: reading the package lists"
	gh_progress "$log" gh_apt_status gh_apt update || gh_say "apt-get update reported errors; going on with the lists that are there"
	missing=$(gh_missing_packages "$@")
	version=$(printf '%s' "$missing" | sed -n 's/.*postgresql-server-dev-\([0-9]*\).*/\1/p')
	if [ -n "$version" ] && [ "$version" -lt "$GH_PG_OLDEST" ]; then
		gh_die "this release has PostgreSQL $version; gpuhash needs $GH_PG_OLDEST or later (PG_CONFIG=PATH names one that is installed)"
	fi
	gh_step "installing packages: $missing"
	gh_say "  They and what they need ($(gh_install_size "$missing")) stay installed;" \
		"apt-get purge --auto-remove takes them away again."
	case $missing in
		*'postgresql-server-dev-'* | *'postgresql-'[0-9]*)
			gh_say "  No database is made and no server is started but the private one, which goes at the end."
			# the package of a server makes a cluster and starts it, unless it is told not to beforehand
			gh_progress "$log" gh_apt_status gh_apt install postgresql-common || gh_die "apt-get install postgresql-common failed"
			GH_REMOVE+=("$drop_in")
			[ -d "${drop_in%/*}" ] || GH_REMOVE+=("${drop_in%/*}")
			mkdir -p "${drop_in%/*}"
			echo 'create_main_cluster = false' >"$drop_in" ;;
	esac
	# shellcheck disable=SC2086
	gh_progress "$log" gh_apt_status gh_apt install $missing || gh_die "apt-get install $missing failed"
	rm -df "${GH_REMOVE[@]}" || true
	GH_REMOVE=()
	GH_INSTALLING=
	trap - EXIT INT TERM HUP
	# that took space, and there may be another user now
	gh_choose_folder
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

# gh_unfit FOLDER: why the private server cannot live in FOLDER; nothing where it can.
gh_unfit() {
	local probe free
	[ -d "$1" ] || { echo "is no folder"; return; }
	# a socket's path has 107 bytes at most
	[ "${#1}" -le 60 ] || { echo "has a name too long for a server's socket (60 letters at most)"; return; }
	probe=$(mktemp -d "$1/gpuhash.XXXXXX" 2>/dev/null) || { echo "cannot be written to"; return; }
	printf '#!/bin/sh\nexit 0\n' >"$probe/program" 2>/dev/null || true
	chmod -R 755 "$probe"
	if ! (gh_as_user test -r "$probe/program") 2>/dev/null; then
		echo "cannot be reached by user $(gh_user), which the server runs as"
	elif ! (gh_as_user "$probe/program") 2>/dev/null; then
		echo "does not let programs run (noexec, or full)"
	fi
	rm -rf "$probe"
	free=$(df -Pm "$1" 2>/dev/null | awk 'NR == 2 { print $4 }') || free=
	if [ -n "$free" ] && [ "$free" -lt "$GH_NEEDS_MB" ]; then
		echo "has $free MB free, where $GH_NEEDS_MB MB are needed"
	fi
}

# Sets GH_FOLDER to the folder that $WORK goes into: the first that is fit.
gh_choose_folder() {
	local folder why reasons=
	for folder in ${TMPDIR:+"${TMPDIR%/}"} /tmp /var/tmp; do
		why=$(gh_unfit "$folder" | head -n 1)
		if [ -z "$why" ]; then
			[ -z "$reasons" ] || printf '%s: using %s, because%s\n' "${0##*/}" "$folder" "${reasons%;}" >&2
			GH_FOLDER=$folder
			return
		fi
		reasons="$reasons $folder $why;"
	done
	gh_die "no folder to work in:$reasons TMPDIR=FOLDER names another one, with $GH_NEEDS_MB MB free, where programs can run"
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
	gh_trap_end
	if [ -n "${GH_WORKDIR:-}" ]; then
		mkdir -p "$GH_WORKDIR/src"
		WORK=$(realpath -s "$GH_WORKDIR")
		# what was built in there stays; sources that are gone from the checkout go
		find "$WORK/src" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
	else
		[ -n "${GH_FOLDER:-}" ] || gh_choose_folder
		WORK=$(mktemp -d "$GH_FOLDER/gpuhash.XXXXXX")
	fi
	# the caller's folder may be closed to the user that goes on
	cd "$WORK" || exit
	chmod 755 "$WORK"
	gh_copy_checkout "$WORK/src"
	mkdir -p "$WORK/home" "$WORK/tmp"
	if [ -d "${GPUHASH_ARCHIVE:-}/lists" ] && ! (gh_as_user ls "$GPUHASH_ARCHIVE/lists") >/dev/null 2>&1; then
		mkdir -p "$WORK/archive"
		cp -r "$GPUHASH_ARCHIVE/lists" "$WORK/archive/"
		GPUHASH_ARCHIVE=$WORK/archive
	fi
	chmod -R u+rwX,go+rX "$WORK/src"
	(gh_as_user test -x "$PG_CONFIG") ||
		gh_die "user $(gh_user), which the server would run as, cannot reach $PG_CONFIG (GPUHASH_USER=NAME names another user)"
	if [ "$(id -u)" = 0 ]; then
		chown -R "$(gh_user)" "$WORK"
	fi
	(gh_as_user env GPUHASH_WORK="$WORK" GPUHASH_CHECKOUT="$GH_HOME" HOME="$WORK/home" TMPDIR="$WORK/tmp" LC_ALL=C \
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
	if [ -n "$GH_JOB" ]; then
		if [ -n "$GH_INSTALLING" ]; then
			gh_say "waiting for apt-get: no package is to be left half installed, and no cluster made"
		else
			kill -TERM "$GH_JOB" 2>/dev/null || true
		fi
		wait "$GH_JOB" 2>/dev/null || true
	fi
	[ "${#GH_REMOVE[@]}" = 0 ] || rm -df "${GH_REMOVE[@]}" 2>/dev/null || true
	if [ -n "$GH_CHILD" ]; then
		gh_signal_session "$GH_CHILD"
		wait "$GH_CHILD" 2>/dev/null || true
	fi
	gh_stop_servers
	if [ -z "${WORK:-}" ] || [ -n "${GH_WORKDIR:-}" ]; then
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
		for program in postgres initdb pg_ctl psql pg_config pgbench pg_basebackup pg_dump; do
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

# Containers often have next to no /dev/shm, or none at all.
gh_dsm_type() {
	local free
	free=$(df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }') || free=
	if [ "${free:-0}" -ge 512 ] && [ -w /dev/shm ]; then echo posix; else echo sysv; fi
}

# gh_server_start NAME [LINE...]: a new server in $WORK/NAME, its configuration
# ending with the lines given; $SERVER and PGHOST then name it.
gh_server_start() {
	local name=$1
	shift
	SERVER=$WORK/$name
	rm -rf "$SERVER"
	mkdir -p "$SERVER"
	chmod 700 "$SERVER"
	"$STAGE_BIN/initdb" -D "$SERVER/data" -U "$GH_SUPERUSER" -A trust -E UTF8 --locale=C --no-sync >"$SERVER/initdb.log" 2>&1 || {
		cat "$SERVER/initdb.log"
		return 1
	}
	{
		cat <<-CONF
			listen_addresses = ''
			unix_socket_directories = '$SERVER'
			dynamic_shared_memory_type = $(gh_dsm_type)
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
	export PGHOST=$SERVER PGPORT=5432 PGUSER=$GH_SUPERUSER PGDATABASE=postgres
}

gh_server_stop() {
	[ -n "${SERVER:-}" ] || return 0
	"$STAGE_BIN/pg_ctl" -D "$SERVER/data" -m fast -w -t 60 stop >/dev/null 2>&1 || true
	SERVER=
	# what comes after it is not to connect as its superuser
	unset PGHOST PGPORT PGUSER PGDATABASE
}

# Does the process run?  Where init reaps nothing, as in some containers, an orphan
# that has ended stays as a zombie.
gh_runs() {
	local stat
	{ stat=$(cat "/proc/$1/stat"); } 2>/dev/null || return 1
	case ${stat##*) } in Z* | X*) return 1 ;; esac
}

# gh_wait_end PID SECONDS
gh_wait_end() {
	local deadline=$((SECONDS + $2))
	while gh_runs "$1"; do
		[ "$SECONDS" -lt "$deadline" ] || return 1
		sleep 0.1
	done
}

# End at once every server that lies below $WORK, a test's own included.
gh_stop_servers() { [ -z "${WORK:-}" ] || gh_stop_servers_in "$WORK"; }

gh_stop_servers_in() {
	local file pid
	# folders may go while they are looked through
	{ find "$1" -maxdepth 6 -name postmaster.pid 2>/dev/null || true; } | while read -r file; do
		pid=$(head -n 1 "$file" 2>/dev/null) || continue
		if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "${file%/*}" ]; then
			kill -QUIT "$pid" 2>/dev/null || continue
			gh_wait_end "$pid" 20 || kill -KILL "$pid" 2>/dev/null || true
		fi
	done
}

gh_psql() { "$STAGE_BIN/psql" -X -q -v ON_ERROR_STOP=1 "$@"; }
