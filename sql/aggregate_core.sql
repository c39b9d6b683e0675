-- What PostgreSQL's own suites, and trials beside them, brought to light.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE aco (id int, g int, t text);
INSERT INTO aco SELECT i, 1 + i % 2, chr(97 + i % 3) FROM generate_series(1, 1000) i;
ANALYZE aco;

-- a set's rows as keys, of a table and of other plans: they are several for a row
SELECT * FROM compare_aggregate('SELECT t, count(*), min(id), unnest(''{1,1,3}''::int[]) FROM aco WHERE g = 1 GROUP BY t, unnest(''{1,1,3}''::int[])');
SELECT * FROM compare_aggregate('SELECT t, generate_series(1, 1), count(*) FROM aco GROUP BY 1, 2 HAVING count(*) > 1');
SELECT * FROM compare_aggregate('SELECT generate_series(1, g) + 1, sum(id) FROM aco GROUP BY generate_series(1, g)');
SELECT * FROM compare_aggregate('SELECT a.t, generate_series(1, 2), count(*) FROM aco a JOIN aco b USING (id) GROUP BY 1, 2');
SELECT * FROM compare_aggregate('SELECT t, count(*), generate_series(1, 3) FROM aco GROUP BY t');

-- a domain's constraint may call a user's function: not before PostgreSQL would
CREATE FUNCTION aco_positive(int) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
    PERFORM count(*) FROM aco;
    IF $1 < 0 THEN
        RAISE 'not positive';
    END IF;
    RETURN true;
END $$;
CREATE DOMAIN aco_domain AS int CHECK (aco_positive(value));
SET gpuhash.force_offload = on;
SET plan_cache_mode = force_generic_plan;
PREPARE of_domain(int, text) AS SELECT count(*), sum(id) FROM aco WHERE t = $2 AND id > $1::aco_domain::int + 1;
EXPLAIN (COSTS OFF) EXECUTE of_domain(0, 'a');
EXECUTE of_domain(0, 'a');
EXECUTE of_domain(-1, 'none');
EXECUTE of_domain(-1, 'a');
-- what becomes a constant may take long: a cancel is not waited for, nor forgotten
PREPARE of_factorial(bigint) AS SELECT count(*) FROM aco WHERE id > factorial($1) - factorial($1 - 1) + factorial($1 - 2) - factorial($1 - 3);
EXECUTE of_factorial(5);
SELECT clock_timestamp() AS began \gset
SET statement_timeout = 100;
EXECUTE of_factorial(32000);
RESET statement_timeout;
SELECT clock_timestamp() - :'began' < interval '5 seconds' AS soon;
EXECUTE of_factorial(-1);
EXECUTE of_factorial(4);
RESET plan_cache_mode;

-- many executions of one plan take no more memory than one
BEGIN;
DECLARE many CURSOR FOR SELECT (SELECT sum(id) FROM aco WHERE id > x % 20) FROM generate_series(1, 2000) x;
MOVE 2000 IN many;
SELECT sum(total_bytes) < 10000000 AS little FROM pg_backend_memory_contexts WHERE name = 'ExecutorState';
CLOSE many;
COMMIT;

-- forced, but sequential scans are switched off
CREATE INDEX ON aco (id);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT g, count(*) FROM aco WHERE id < 10 GROUP BY g;
SELECT g, count(*) FROM aco WHERE id < 10 GROUP BY g ORDER BY g;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE aco;
