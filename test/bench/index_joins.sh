#!/bin/bash
# index_joins.sh: joins of few rows with a large table that has an index USING gpuhash, by its copy, by gpuhash without copies, and by
# PostgreSQL, in turns.
#
#	PGHOST=... PGPORT=... PGUSER=... DATABASE=... [REPS=7] [INNER_ROWS=5000000] [ROWS="10 100 1000 10000 100000"] test/bench/index_joins.sh [PSQL]
#
# Against a server that is up, with gpuhash preloaded and created in the database.  Prints, tab-separated: outer rows, the kind of join,
# and of each way the least milliseconds of the processor, planning among them, of the process that runs the query (Linux).
set -euo pipefail

psql=${1:-psql}
reps=${REPS:-7}
inner=${INNER_ROWS:-5000000}
database=${DATABASE:-postgres}

ask() { "$psql" -XqAtd "$database" -v ON_ERROR_STOP=1 -c "SET client_min_messages = warning" "$@"; }

# each time so many runs that the system, which counts processor time seldom, has counted
ask -f - <<-SQL
	CREATE OR REPLACE FUNCTION ij_processor() RETURNS bigint LANGUAGE sql VOLATILE AS
		\$\$ SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint \$\$;
	CREATE OR REPLACE FUNCTION ij_times(query text, reps int, times int) RETURNS text LANGUAGE plpgsql AS \$\$
	DECLARE ways text[] := '{gpuhash.enable_index=on,gpuhash.enable_index=off,gpuhash.enabled=off}';
		least numeric[] := '{}'; began bigint; took numeric; r record;
	BEGIN
		FOR rep IN 1 .. reps LOOP
			FOR way IN 1 .. 3 LOOP
				PERFORM set_config(split_part(ways[way], '=', 1), split_part(ways[way], '=', 2), true);
				began := ij_processor();
				FOR i IN 1 .. times LOOP EXECUTE query INTO r; END LOOP;
				took := (ij_processor() - began) / 1e6 / times;
				least[way] := least(least[way], took);
				PERFORM set_config('gpuhash.enable_index', 'on', true), set_config('gpuhash.enabled', 'on', true);
			END LOOP;
		END LOOP;
		RETURN format(E'%s\t%s\t%s', round(least[1], 2), round(least[2], 2), round(least[3], 2));
	END \$\$;
	DROP TABLE IF EXISTS ij_inner;
	CREATE TABLE ij_inner (k bigint, p bigint, t text);
	INSERT INTO ij_inner SELECT i, i % 1000, 'some text here ' || i FROM (SELECT i FROM generate_series(1, $inner) i ORDER BY hashint8(i)) s;
	CREATE INDEX ij_inner_k ON ij_inner USING gpuhash (k) INCLUDE (p);
SQL
ask -c "VACUUM ANALYZE ij_inner" -c "SELECT gpuhash_prewarm('ij_inner_k')" >/dev/null

echo $'rows\tjoin\tcopy\twithout\tPostgreSQL'
for rows in ${ROWS:-10 100 1000 10000 100000}; do
	ask -c "DROP TABLE IF EXISTS ij_outer" -c "CREATE TABLE ij_outer AS SELECT 1 + i * 7919999::bigint % $inner AS k, i::bigint AS v FROM generate_series(1, $rows) i"
	ask -c "VACUUM ANALYZE ij_outer"
	while IFS='|' read -r join query; do
		printf '%s\t%s\t' "$rows" "$join"
		ask -c "SET max_parallel_workers_per_gather = 0" -c "SET jit = off" -c "SELECT ij_times('$query', $reps, $((rows < 10000 ? 20000 / rows > 200 ? 200 : 20000 / rows : 1)))"
	done <<-'QUERIES'
		inner|SELECT sum(o.v), sum(i.p) FROM ij_outer o JOIN ij_inner i ON i.k = o.k
		left|SELECT sum(o.v), sum(i.p) FROM ij_outer o LEFT JOIN ij_inner i ON i.k = o.k
		semi|SELECT count(*), sum(v) FROM ij_outer o WHERE EXISTS (SELECT FROM ij_inner i WHERE i.k = o.k)
		anti|SELECT count(*), sum(v) FROM ij_outer o WHERE NOT EXISTS (SELECT FROM ij_inner i WHERE i.k = o.k)
		keys|SELECT count(*), sum(i.p) FROM ij_inner i WHERE i.k IN (SELECT o.k FROM ij_outer o)
	QUERIES
done
