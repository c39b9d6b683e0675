#!/usr/bin/env bash
#
# engine_bench.sh ENGINE OUTDIR [OPTION VALUE]...: engine_bench's rows and experiments, a
# CSV file each.
#
# ENGINE is cpu or the path of gpuhash_cuda.so; options are engine_bench's.  With the
# CPU engine and its rows comes PostgreSQL's simplehash in the same run, where the
# server's headers are there.  Plot with plot.py.  The status is 1 when a result was wrong.
#
# Environment
#	PARTS		default: rows static resize dynamic incremental mixes
#	PG_CONFIG	default: pg_config
#	CUDA_ARCH	for the part of the benchmark that runs on the device (default: native)
#	LIMIT		seconds for each part (default 540)
set -euo pipefail
if [ $# -lt 2 ]; then
	sed -n '3,15p' "$0"
	exit 2
fi
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
ENGINE=$1
OUTDIR=$2
shift 2
PARTS=${PARTS:-rows static resize dynamic incremental mixes}
PG_CONFIG=${PG_CONFIG:-pg_config}
LIMIT=${LIMIT:-540}
BUILD=$HERE/../../build/engine
RC=0
mkdir -p "$OUTDIR"

if [ "$ENGINE" = cpu ]; then
	NAME=cpu
	PROGRAM=engine_bench
else
	NAME=cuda
	PROGRAM=engine_bench_cuda
fi
make -s -C "$HERE/../engine" "$PROGRAM" CUDA_ARCH="${CUDA_ARCH:-native}"

# part FILE COMMAND...: what COMMAND prints becomes FILE
part() {
	local file=$1 rc=0
	shift
	timeout "$LIMIT" "$@" >"$OUTDIR/$file" || rc=$?
	if [ "$rc" != 0 ]; then
		echo "$file: status $rc" >&2
		RC=1
	fi
}

# PostgreSQL's simplehash on as many keys, and what the CPU engine makes of it
simplehash() {
	if [ ! -f "$("$PG_CONFIG" --includedir-server)/lib/simplehash.h" ]; then
		echo "skip    simplehash: no server headers of $PG_CONFIG" >&2
		return
	fi
	make -s -C "$HERE/../engine" simplehash_bench PG_CONFIG="$PG_CONFIG"
	part simplehash.csv "$BUILD/simplehash_bench" "$1"
	grep '^#' "$OUTDIR/simplehash.csv"
}

for what in $PARTS; do
	if [ "$what" = rows ]; then
		part "rows-$NAME.csv" "$BUILD/$PROGRAM" "$ENGINE" "$@"
		cat "$OUTDIR/rows-$NAME.csv"
		if [ "$ENGINE" = cpu ]; then
			simplehash "$(awk -F, '$2 == "insert" { print $4; exit }' "$OUTDIR/rows-cpu.csv")"
		fi
	else
		part "$what-$NAME.csv" "$BUILD/$PROGRAM" "$ENGINE" --experiment "$what" "$@"
		echo "$what-$NAME.csv: $(grep -c ',yes$' "$OUTDIR/$what-$NAME.csv" || true) right, $(grep -c ',no$' "$OUTDIR/$what-$NAME.csv" || true) wrong"
	fi
done
exit "$RC"
