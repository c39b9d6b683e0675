#!/usr/bin/env bash
#
# partitions.sh TREE PORT [OUTDIR]: times queries over a plain table and over partitioned ones of the same rows.
#
# TREE is a PostgreSQL installation with gpuhash, PORT the socket's number of its server, which listens in HOST.  Makes,
# once, a table of ROWS rows, partitioned tables of the same rows, and a small one that they are joined with.  Each query is
# left to the planner, without gpuhash and with it.
# Appends to OUTDIR/partitions.tsv: query, partitions (0: the plain table), system (postgresql, gpuhash), ms (the least of
# REPS), equal (whether the rows are those of the plain table without gpuhash).
#
# Environment
#	ROWS		default: 24000000
#	PARTITIONS	of the partitioned tables (default: "12 120")
#	REPS		repetitions (default: 5)
#	HOST		folder of the socket (default: /tmp); PGUSER, PGDATABASE as usual
set -euo pipefail
if [ $# -lt 2 ]; then
	sed -n '3,/^set /{ /^set /d; s/^# \{0,1\}//p }' "$0"
	exit 2
fi
tree=$1 port=$2 out=${3:-.}
rows=${ROWS:-24000000}
read -r -a partitions <<<"${PARTITIONS:-12 120}"
mkdir -p "$out"
tsv=$out/partitions.tsv
# VACUUM marks no page as all-visible while a commit on it waits to be written
export PGOPTIONS="${PGOPTIONS:-} -c synchronous_commit=on"
[ -s "$tsv" ] || printf 'query\tpartitions\tsystem\tms\tequal\n' >"$tsv"

sql() { "$tree/bin/psql" -XqAt -v ON_ERROR_STOP=1 -h "${HOST:-/tmp}" -p "$port" -U "${PGUSER:-postgres}" -d "${PGDATABASE:-postgres}" "$@"; }

# is_made TABLE: it is there, with all rows
is_made() { [ "$(sql -c "SELECT obj_description(to_regclass('$1'), 'pg_class')")" = "$rows rows" ]; }

# fill TABLE QUERY: and note that it is complete
fill() {
	sql -c "INSERT INTO $1 $2"
	sql -c "VACUUM ANALYZE $1"
	sql -c "COMMENT ON TABLE $1 IS '$rows rows'"
}

make_tables() {
	local n step
	if ! is_made sales_0; then
		sql -c "DROP TABLE IF EXISTS sales_0, articles; CREATE TABLE sales_0 (id bigint, day int, article int, shop int, price numeric(12, 2), note text);
			CREATE TABLE articles AS SELECT i AS article, i % 1000 AS kind FROM generate_series(0, 99999) i; ALTER TABLE articles ADD PRIMARY KEY (article)" 2>/dev/null
		sql -c "VACUUM ANALYZE articles"
		fill sales_0 "SELECT i, (i * 360 / $rows)::int, i % 100000, i % 1000, i % 977, 'some text' FROM generate_series(0, $rows::bigint - 1) i"
	fi
	for n in "${partitions[@]}"; do
		! is_made "sales_$n" || continue
		step=$(((360 + n - 1) / n))
		sql -c "DROP TABLE IF EXISTS sales_$n; CREATE TABLE sales_$n (LIKE sales_0) PARTITION BY RANGE (day)" 2>/dev/null
		sql -c "SELECT format('CREATE TABLE sales_${n}_%s PARTITION OF sales_$n FOR VALUES FROM (%s) TO (%s);', i, i * $step, (i + 1) * $step) FROM generate_series(0, $n - 1) i" | sql -f -
		fill "sales_$n" 'SELECT * FROM sales_0'
	done
}

declare -A query=(
	[sum]='SELECT sum(id), count(*) FROM SALES'
	[group]='SELECT shop, sum(id), count(*) FROM SALES GROUP BY shop'
	[join_group]='SELECT a.kind, sum(s.id), count(*) FROM SALES s JOIN articles a USING (article) GROUP BY a.kind'
	[quarter]='SELECT shop, sum(price) FROM SALES WHERE day < 92 GROUP BY shop')

# least SETTINGS QUERY: milliseconds
least() {
	{
		echo "$1"
		printf '%s\n' '\timing on'
		for ((r = 0; r < ${REPS:-5}; r++)); do echo "$2 \\g /dev/null"; done
	} | sql -f - | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | sort -g | head -n 1
}

make_tables
for name in sum group join_group quarter; do
	want=$(sql -c 'SET gpuhash.enabled = off' -c "SELECT md5(string_agg(r::text, ' ' ORDER BY r::text)) FROM (${query[$name]/SALES/sales_0}) r")
	for n in 0 "${partitions[@]}"; do
		text=${query[$name]/SALES/sales_$n}
		for enabled in off on; do
			got=$(sql -c "SET gpuhash.enabled = $enabled" -c "SELECT md5(string_agg(r::text, ' ' ORDER BY r::text)) FROM ($text) r")
			printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$n" "$([ "$enabled" = on ] && echo gpuhash || echo postgresql)" \
				"$(least "SET gpuhash.enabled = $enabled;" "$text")" "$([ "$got" = "$want" ] && echo yes || echo no)" | tee -a "$tsv"
		done
	done
done
