# shellcheck shell=bash
#
# lib.sh: what the benchmarks of SQL share.  Sourced, not run, behind `set -euo pipefail`.
#
# bench_begin "$@"	for a script with arguments TREE PORT [OUTDIR]: a PostgreSQL installation, and the socket's number of its
#					server, which listens in HOST; sets tree, out (which is there then) and here (the script's folder),
#					and the server for psql and pgbench.  Without the arguments the script's first comment is printed.

bench_begin() {
	if [ $# -lt 2 ]; then
		sed -n '3,/^set /{ /^set /d; s/^# \{0,1\}//p }' "$0"
		exit 2
	fi
	tree=$1 out=${3:-.}
	# shellcheck disable=SC2034 # for scripts
	here=$(cd "$(dirname "$0")" && pwd -P)
	export PGHOST=${HOST:-/tmp} PGPORT=$2 PGUSER=${PGUSER:-postgres} PGDATABASE=${PGDATABASE:-postgres}
	mkdir -p "$out"
}

# tree is whose psql it is
sql() { "$tree/bin/psql" -XqAt -v ON_ERROR_STOP=1 "$@"; }

# VACUUM marks no page as all-visible while a commit on it waits to be written
commit_at_once() { export PGOPTIONS="${PGOPTIONS:-} -c synchronous_commit=on"; }

# --------------------------------------------------------------------- tables

# has_rows TABLE ROWS: it is there, with as many
has_rows() { [ "$(sql -c "SELECT count(*) FROM pg_class WHERE relname = '$1' AND reltuples > 0.99 * $2")" != 0 ]; }

# fill TABLE ROWS JOBS VALUES: by so many jobs at a time; of row i, counted from 1
fill() {
	local table=$1 rows=$2 jobs=$3 step lo pids=() pid
	step=$(((rows + jobs - 1) / jobs))
	for ((lo = 1; lo <= rows; lo += step)); do
		sql -c "INSERT INTO $table SELECT $4 FROM generate_series($lo::bigint, least($lo::bigint + $step - 1, $rows)) i" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid"; done
}

# change_blocks TABLE PERCENT: one row of each of so many blocks, spread evenly
change_blocks() {
	sql -c "UPDATE $1 SET g = g WHERE ctid IN (SELECT format('(%s,1)', b * 100 / $2)::tid
		FROM generate_series(0, pg_relation_size('$1') / 8192 * $2 / 100 - 1) b)"
}

# ---------------------------------------------------------------------- times

# of what psql prints with \timing
milliseconds() { sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p'; }

# times REPS SETTINGS QUERY: milliseconds, a line each
times() {
	{
		echo "$2"
		printf '%s\n' '\timing on'
		for ((rep = 0; rep < $1; rep++)); do echo "$3 \\g /dev/null"; done
	} | sql -f - | milliseconds
}

least() { sort -g | head -n 1; }

# Prints, of a backend, processor milliseconds of itself and of all processes of the server that have ended; the latter in
# units of the kernel's clock.
processor_script() {
	cat <<'SH'
ticks() { awk -v a="$2" -v b="$3" -v hz="$(getconf CLK_TCK)" '{ sub(/^.*\) /, ""); print ($a + $b) * 1000 / hz }' "/proc/$1/stat"; }
parent=$(awk '{ sub(/^.*\) /, ""); print $2 }' "/proc/$1/stat" 2>/dev/null) || { echo 0; exit; }
own=$(awk '{ print $1 / 1000000 }' "/proc/$1/schedstat" 2>/dev/null || ticks "$1" 12 13)
awk -v a="$own" -v b="$(ticks "$parent" 14 15)" 'BEGIN { printf "%.1f\n", a + b }'
SH
}
