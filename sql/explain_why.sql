-- Why joins and aggregates stay with PostgreSQL.
LOAD 'gpuhash';
CREATE TABLE why_big AS SELECT i AS k, i % 100 AS g, 'text ' || i AS t, i / 7.0 AS n FROM generate_series(1, 30000) i;
CREATE TABLE why_small AS SELECT i AS k, i % 10 AS g FROM generate_series(1, 100) i;
ANALYZE why_big, why_small;
SET max_parallel_workers_per_gather = 0;

-- the lines about what is not offloaded, of EXPLAIN's text
CREATE FUNCTION why(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT lines_of_plan(query, 'Not Offloaded', indented => true)
$$;

-- off: nothing is said
SELECT why('SELECT bit_and(k) FROM why_big');
SET gpuhash.explain_why = on;
SELECT why('SELECT bit_and(k) FROM why_big');
SELECT why('SELECT g, string_agg(t, '','' ORDER BY t) FROM why_big GROUP BY g');
SELECT why('SELECT g, sum(n::float8) FROM why_big GROUP BY ROLLUP (g)');
SELECT why('SELECT sum(power(n, 3)) FROM why_big');
SELECT why('SELECT sum(k) FROM why_small');
SELECT why('SELECT count(*) FROM why_small a JOIN why_small b ON a.k = b.k');
SELECT why('SELECT a.k FROM why_big a JOIN why_big b ON a.k < b.k');
-- no GROUP BY, over joins: keys that are expressions; all rows of both sides
SELECT w FROM why('SELECT count(*) FROM why_big a JOIN why_big b ON lower(a.t) = lower(b.t)') w WHERE w ~ 'Aggregate';
SELECT why('SELECT count(*) FROM why_big a FULL JOIN why_big b USING (k)') ~ 'Aggregate: its rows come one by one' AS by_rows;
-- in a subquery
SELECT why('SELECT * FROM why_big, (SELECT bit_or(k) FROM why_big) m WHERE k = 1');
-- what is taken has no line, and off is off
SELECT why('SELECT g, sum(k) FROM why_big GROUP BY g');
SET gpuhash.enable_aggregate = off;
SELECT why('SELECT g, sum(k) FROM why_big GROUP BY g');
SET gpuhash.enabled = off;
SELECT why('SELECT g, sum(k) FROM why_big GROUP BY g');
RESET gpuhash.enabled;
RESET gpuhash.enable_aggregate;

-- conditions, keys, arguments and filters that have no program are named, as EXPLAIN names them elsewhere
SELECT why('SELECT count(*) FROM why_big WHERE g = 3 AND t ~ ''7$''');
SELECT why('SELECT upper(t), count(*) FROM why_big GROUP BY 1');
SELECT why('SELECT sum(k) FILTER (WHERE t ~ ''7$'') FROM why_big');
SELECT why('SELECT count(*) FROM why_big a JOIN why_big b USING (k) WHERE upper(a.t) = b.t');
SELECT why('SELECT v.x, (SELECT count(*) FROM why_big w WHERE w.t ~ v.y) FROM (VALUES (1, ''7$''), (2, ''8$'')) v(x, y)');
-- (servers differ in how they name a subquery)
SELECT why ~ 'Aggregate: an expression is not supported: .*t ~ ''7' AS named FROM why('SELECT count(*) FROM why_big w WHERE EXISTS (SELECT FROM why_small s WHERE s.k = w.g % 7) OR t ~ ''7$''') why WHERE why ~ 'Aggregate';
SELECT why('SELECT count(*) FROM why_big w WHERE w.t ~ (SELECT ''^'' || max(s.k) FROM why_small s)');
SELECT why('SELECT k FROM (SELECT k, coalesce(upper(t), ''none'') AS u FROM why_big) s RIGHT JOIN generate_series(1, 3) i ON i = s.k WHERE u ~ ''7$''');

-- costs, where EXPLAIN shows them: of the plan that was chosen, and of ours
CREATE FUNCTION why_costs(query text, OUT reason text, OUT ours_costs_more boolean, OUT of_the_plan boolean) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    line text;
    plan text := '';
    costs text[];
BEGIN
    FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
        plan := plan || line;
        IF line ~ 'Not Offloaded' THEN
            costs := regexp_match(line, 'cost=([\d.]+)\.\.([\d.]+), of \w+ ([\d.]+)\.\.([\d.]+)\)$');
            reason := regexp_replace(trim(line), '\d+\.\d\d', 'N', 'g');
            ours_costs_more := costs[4]::float8 > costs[2]::float8;
            -- a node of the plan has these costs, too
            of_the_plan := strpos(plan, format('(cost=%s..%s ', costs[1], costs[2])) > 0;
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;
SET gpuhash.setup_cost = 1000000;
SELECT * FROM why_costs('SELECT k FROM why_big WHERE g = 3');
SELECT * FROM why_costs('SELECT a.k FROM why_big a JOIN why_big b USING (k)');
SELECT * FROM why_costs('SELECT g, sum(k) FROM why_big GROUP BY g');
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT * FROM why_costs('SELECT k FROM why_big WHERE g = 3');
SELECT * FROM why_costs('SELECT a.k FROM why_big a JOIN why_big b USING (k)');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0;
RESET gpuhash.setup_cost;
-- a plan that is stopped early
SELECT * FROM why_costs('SELECT k FROM why_big WHERE g = 3 LIMIT 1');
-- one that nobody considered has none
SELECT * FROM why_costs('SELECT k FROM why_small WHERE g = 3');
DROP FUNCTION why_costs(text);

-- other formats have an element beside the plan's
CREATE FUNCTION why_json(query text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
    RETURN plan -> 1;
END $$;
SELECT why_json('SELECT bit_and(k) FROM why_big');
SELECT why_json('SELECT max(k) FROM why_big');
-- an error while planning leaves nothing behind
EXPLAIN SELECT bit_and(k) FROM why_big WHERE k = 1 / 0;
SELECT why('SELECT bit_and(k) FROM why_big');

DROP FUNCTION why(text), why_json(text);
DROP TABLE why_big, why_small;
