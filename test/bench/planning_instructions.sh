#!/usr/bin/env bash
#
# planning_instructions.sh TREE [OUTDIR]: the instructions that planning takes, counted by valgrind.
#
# For machines on which times say nothing: the count is the same however busy they are.  TREE is a
# PostgreSQL installation with gpuhash.  Makes a server of its own in OUTDIR (default: a new folder), on a
# socket there, runs it under valgrind (callgrind), and plans a star and a chain of 12 tables of 100,000
# rows, each twice in a session of its own: with PostgreSQL alone (gpuhash.enabled = off), with engine = cpu,
# and, where TREE has the library for a GPU, or the tests' stand-in for it, with engine = cuda.  Prints
# the instructions of PostgreSQL's planner() in millions, a planning, and their ratios.
#
# Not as root, as PostgreSQL's servers; takes some minutes.
set -euo pipefail
if [ $# -lt 1 ]; then
	sed -n '3,12s/^# \{0,1\}//p' "$0"
	exit 2
fi
tree=$1 out=${2:-$(mktemp -d)}
mkdir -p "$out"
out=$(cd "$out" && pwd -P)
export PGUSER=postgres PGDATABASE=postgres PGHOST=$out PGPORT=57441
server=

# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=test/bench/planning_joins.sh
. "$(dirname "${BASH_SOURCE[0]}")/planning_joins.sh"

end() { [ -z "$server" ] || { kill -INT "$server" 2>/dev/null || true; wait "$server" || true; }; }
trap end EXIT

# start COMMAND...: the server, by that command
start() {
	"$@" "$tree/bin/postgres" -D "$out/data" -k "$out" -c listen_addresses= -c port=$PGPORT -c fsync=off \
		-c autovacuum=off -c shared_preload_libraries=gpuhash -c gpuhash.shared_memory=64MB >>"$out/log" 2>&1 &
	server=$!
	for _ in {1..300}; do
		sleep 0.5
		! sql -c 'SELECT 1' >/dev/null 2>&1 || return 0
	done
	tail "$out/log" >&2
	return 1
}

# plans SETTING JOIN: prints the instructions of one planning of it, in millions
plans() {
	local pid
	pid=$(sql -f - <<-END | tail -n 1
		SET $1; SET geqo = off; SET join_collapse_limit = 12; SET from_collapse_limit = 12;
		SET max_parallel_workers_per_gather = 0;
		EXPLAIN $2;
		EXPLAIN $2;
		SELECT pg_backend_pid();
	END
	)
	# it is written when the session's process ends
	for _ in {1..600}; do
		sleep 0.2
		! grep -q '^totals:' "$out/callgrind.$pid" 2>/dev/null || break
	done
	awk '/^totals:/ { printf "%.1f\n", $2 / 2e6 }' "$out/callgrind.$pid"
}

"$tree/bin/initdb" -D "$out/data" -U postgres -A trust -N --no-locale >"$out/initdb.log"
start env
make_tables
end
start valgrind -q --tool=callgrind --callgrind-out-file="$out/callgrind.%p" --toggle-collect=planner
# a worker for the device takes its time to be ready
sleep 10

printf '%-10s %10s %10s %7s %10s %7s\n' join off cpu ratio cuda ratio
for shape in star chain; do
	off=$(plans 'gpuhash.enabled = off' "$(join "$shape" 12)")
	cpu=$(plans 'gpuhash.engine = cpu' "$(join "$shape" 12)")
	cuda=-
	[ ! -f "$("$tree/bin/pg_config" --pkglibdir)/gpuhash_cuda.so" ] || cuda=$(plans 'gpuhash.engine = cuda' "$(join "$shape" 12)")
	awk -v shape="$shape-12" -v off="$off" -v cpu="$cpu" -v cuda="$cuda" 'BEGIN {
		printf "%-10s %10.1f %10.1f %7.3f %10s %7s\n", shape, off, cpu, cpu / off, cuda, cuda == "-" ? "-" : sprintf("%.3f", cuda / off) }'
done
