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
# shellcheck source=test/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bench_begin "$@"
rows=${ROWS:-24000000}
read -r -a partitions <<<"${PARTITIONS:-12 120}"
tsv=$out/partitions.tsv
commit_at_once
[ -s "$tsv" ] || printf 'query\tpartitions\tsystem\tms\tequal\n' >"$tsv"

# is_made TABLE: it is there, with all rows
is_made() { [ "$(sql -c "SELECT obj_description(to_regclass('$1'), 'pg_class')")" = "$rows rows" ]; }

# put_all TABLE QUERY: and note that it is complete
put_all() {
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
		put_all sales_0 "SELECT i, (i * 360 / $rows)::int, i % 100000, i % 1000, i % 977, 'some text' FROM generate_series(0, $rows::bigint - 1) i"
	fi
	for n in "${partitions[@]}"; do
		! is_made "sales_$n" || continue
		step=$(((360 + n - 1) / n))
		sql -c "DROP TABLE IF EXISTS sales_$n; CREATE TABLE sales_$n (LIKE sales_0) PARTITION BY RANGE (day)" 2>/dev/null
		sql -c "SELECT format('CREATE TABLE sales_${n}_%s PARTITION OF sales_$n FOR VALUES FROM (%s) TO (%s);', i, i * $step, (i + 1) * $step) FROM generate_series(0, $n - 1) i" | sql -f -
		put_all "sales_$n" 'SELECT * FROM sales_0'
	done
}

declare -A query=(
	[sum]='SELECT sum(id), count(*) FROM SALES'
	[group]='SELECT shop, sum(id), count(*) FROM SALES GROUP BY shop'
	[join_group]='SELECT a.kind, sum(s.id), count(*) FROM SALES s JOIN articles a USING (article) GROUP BY a.kind'
	[quarter]='SELECT shop, sum(price) FROM SALES WHERE day < 92 GROUP BY shop')

make_tables
for name in sum group join_group quarter; do
	want=$(sql -c 'SET gpuhash.enabled = off' -c "SELECT md5(string_agg(r::text, ' ' ORDER BY r::text)) FROM (${query[$name]/SALES/sales_0}) r")
	for n in 0 "${partitions[@]}"; do
		text=${query[$name]/SALES/sales_$n}
		for enabled in off on; do
			got=$(sql -c "SET gpuhash.enabled = $enabled" -c "SELECT md5(string_agg(r::text, ' ' ORDER BY r::text)) FROM ($text) r")
			printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$n" "$([ "$enabled" = on ] && echo gpuhash || echo postgresql)" \
				"$(times "${REPS:-5}" "SET gpuhash.enabled = $enabled;" "$text" | least)" "$([ "$got" = "$want" ] && echo yes || echo no)" | tee -a "$tsv"
		done
	done
done
