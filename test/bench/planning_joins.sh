# shellcheck shell=bash
#
# planning_joins.sh: the tables and joins of planning.sh and planning_instructions.sh, which have
# what lib.sh has.  Sourced, not run.

make_tables() {
	local i
	sql -c "SET client_min_messages = warning; DROP TABLE IF EXISTS plan_fact CASCADE; CREATE TABLE plan_fact AS SELECT i AS id $(for i in {1..12}; do printf ', hashint8extended(i, %s) & 65535 AS k%s' "$i" "$i"; done) FROM generate_series(1::bigint, 100000) i"
	for i in {1..12}; do
		sql -c "SET client_min_messages = warning; DROP TABLE IF EXISTS plan_$i; CREATE TABLE plan_$i AS SELECT i AS k, hashint8extended(i, $i) & 65535 AS n, i AS v FROM generate_series(1::bigint, 100000) i; CREATE UNIQUE INDEX ON plan_$i (k)"
	done
	sql -c "VACUUM ANALYZE"
}

# join SHAPE TABLES: a query
join() {
	local i from where=
	if [ "$1" = star ]; then
		from=plan_fact
		for ((i = 1; i < $2; i++)); do from="$from, plan_$i" where="$where AND plan_$i.k = plan_fact.k$i"; done
	else
		from=plan_1
		for ((i = 2; i <= $2; i++)); do from="$from, plan_$i" where="$where AND plan_$i.k = plan_$((i - 1)).n"; done
	fi
	echo "SELECT count(*) FROM $from WHERE true$where"
}
