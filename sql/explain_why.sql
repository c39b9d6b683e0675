-- Why joins and aggregates stay with PostgreSQL.
LOAD 'gpuhash';
CREATE TABLE why_big AS SELECT i AS k, i % 100 AS g, 'text ' || i AS t, i / 7.0 AS n FROM generate_series(1, 30000) i;
CREATE TABLE why_small AS SELECT i AS k, i % 10 AS g FROM generate_series(1, 100) i;
ANALYZE why_big, why_small;
SET max_parallel_workers_per_gather = 0;

-- the lines about what is not offloaded, of EXPLAIN's text
CREATE FUNCTION why(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ 'Not Offloaded' THEN
            RETURN NEXT line;
        END IF;
    END LOOP;
END $$;

-- off: nothing is said
SELECT why('SELECT min(t) FROM why_big');
SET gpuhash.explain_why = on;
SELECT why('SELECT min(t) FROM why_big');
SELECT why('SELECT g, string_agg(t, '','' ORDER BY t) FROM why_big GROUP BY g');
SELECT why('SELECT g, count(*) FROM why_big GROUP BY ROLLUP (g)');
SELECT why('SELECT sum(n / 3) FROM why_big');
SELECT why('SELECT sum(k) FROM why_small');
SELECT why('SELECT count(*) FROM why_small a JOIN why_small b ON a.k = b.k');
SELECT why('SELECT a.k FROM why_big a JOIN why_big b ON a.k < b.k');
-- in a subquery
SELECT why('SELECT * FROM why_big, (SELECT max(t) FROM why_big) m WHERE k = 1');
-- what is taken has no line, and off is off
SELECT why('SELECT g, sum(k) FROM why_big GROUP BY g');
SET gpuhash.enable_aggregate = off;
SELECT why('SELECT g, sum(k) FROM why_big GROUP BY g');
SET gpuhash.enabled = off;
SELECT why('SELECT g, sum(k) FROM why_big GROUP BY g');
RESET gpuhash.enabled;
RESET gpuhash.enable_aggregate;

-- other formats have an element beside the plan's
CREATE FUNCTION why_json(query text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
    RETURN plan -> 1;
END $$;
SELECT why_json('SELECT min(t) FROM why_big');
SELECT why_json('SELECT max(k) FROM why_big');
-- an error while planning leaves nothing behind
EXPLAIN SELECT min(t) FROM why_big WHERE k = 1 / 0;
SELECT why('SELECT min(t) FROM why_big');

DROP FUNCTION why(text), why_json(text);
DROP TABLE why_big, why_small;
