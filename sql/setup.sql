-- What the other tests use.
SET client_min_messages = warning;
CREATE EXTENSION gpuhash;
-- How many lines of the query's plan are LIKE the pattern.
CREATE FUNCTION plan_lines(query text, pattern text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    line text;
    n int := 0;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        n := n + (line LIKE pattern)::int;
    END LOOP;
    RETURN n;
END $$;
-- Those lines of the query's plan that match the pattern.
CREATE FUNCTION lines_of_plan(query text, pattern text, options text DEFAULT 'COSTS OFF', indented boolean DEFAULT false)
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
        IF line ~ pattern THEN
            -- from 18 on numbers of rows have digits behind the point
            line := regexp_replace(line, '(actual rows=\d+)\.00 ', '\1 ');
            RETURN NEXT CASE WHEN indented THEN line ELSE trim(line) END;
        END IF;
    END LOOP;
END $$;
CREATE FUNCTION plan_xml(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan text;
BEGIN
    EXECUTE 'EXPLAIN (COSTS OFF, FORMAT XML) ' || query INTO plan;
    RETURN plan;
END $$;
-- A number that EXPLAIN has of the query's highest node, as 'Plan Rows' or 'Total Cost'.
CREATE FUNCTION plan_number(query text, property text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan->0->'Plan'->>property;
END $$;
-- The query's rows as text, in an order of their own, or its error.
CREATE FUNCTION answer_of(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    answer text[];
BEGIN
    EXECUTE format('SELECT array_agg(r::text ORDER BY r::text) FROM (%s) r', query) INTO answer;
    RETURN answer;
EXCEPTION WHEN OTHERS THEN
    RETURN ARRAY['error ' || SQLSTATE];
END $$;
-- Runs a query without gpuhash, and with all that it can do, which stays so for the transaction: how many rows there are or
-- which error, and whether it is the same both ways.
CREATE FUNCTION compare_answers(query text, OUT result text, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
    want text[];
BEGIN
    PERFORM set_config('gpuhash.enabled', 'off', true);
    want := answer_of(query);
    result := CASE WHEN want[1] LIKE 'error %' THEN want[1] ELSE coalesce(cardinality(want), 0)::text END;
    PERFORM set_config('gpuhash.enabled', 'on', true);
    PERFORM set_config('gpuhash.force_offload', 'on', true);
    same := answer_of(query) IS NOT DISTINCT FROM want;
END $$;
-- Whether the tables want and got are the same as multisets.
CREATE FUNCTION got_what_is_wanted() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN NOT EXISTS (
        (SELECT want_row::text FROM want want_row EXCEPT ALL SELECT got_row::text FROM got got_row)
        UNION ALL
        (SELECT got_row::text FROM got got_row EXCEPT ALL SELECT want_row::text FROM want want_row));
END $$;
-- Runs a query without gpuhash and with every join offloaded that can be, and
-- compares the two results as multisets.
CREATE FUNCTION compare_join(query text, OUT offloaded int, OUT rows bigint, OUT same boolean)
LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL max_parallel_workers_per_gather = 0;
    SET LOCAL client_min_messages = warning;
    DROP TABLE IF EXISTS want, got;
    SET LOCAL gpuhash.enabled = off;
    EXECUTE 'CREATE TEMP TABLE want AS ' || query;
    SET LOCAL gpuhash.enabled = on;
    SET LOCAL gpuhash.force_offload = on;
    offloaded := plan_lines(query, '%Custom Scan (GpuHashJoin)%');
    EXECUTE 'CREATE TEMP TABLE got AS ' || query;
    SELECT count(*) INTO rows FROM got;
    same := got_what_is_wanted();
END $$;
-- Runs a query without gpuhash and with all offloaded that can be: how many aggregations
-- were, how many rows there are or which error, and whether both ways agree on it, as
-- text.  in_order: also on the rows' order.  engine: which it has to be, for the digits of floats depend on
-- the order in which they are added, and the CPU engine has PostgreSQL's.
CREATE FUNCTION compare_aggregate(query text, workers int DEFAULT 0, in_order boolean DEFAULT false, engine text DEFAULT NULL,
                                  OUT offloaded int, OUT result text, OUT same text)
LANGUAGE plpgsql AS $$
DECLARE
    before text := current_setting('gpuhash.engine', true);
    got text[];
    want text[];
BEGIN
    PERFORM set_config('gpuhash.engine', engine, true) WHERE engine IS NOT NULL;
    PERFORM set_config('max_parallel_workers_per_gather', workers::text, true);
    FOR enabled IN 0..1 LOOP
        PERFORM set_config('gpuhash.enabled', enabled::text, true);
        PERFORM set_config('gpuhash.force_offload', enabled::text, true);
        want := got;
        BEGIN
            IF enabled = 1 THEN
                offloaded := plan_lines(query, '%Custom Scan (GpuHashAggregate)%');
            END IF;
            EXECUTE format('SELECT array_agg(r%s) FROM (SELECT s::text AS r FROM (%s) s) x',
                           CASE WHEN in_order THEN '' ELSE ' ORDER BY r' END, query) INTO got;
            IF enabled = 0 THEN
                result := coalesce(cardinality(got), 0);
            END IF;
        EXCEPTION WHEN OTHERS THEN
            got := ARRAY[SQLSTATE || ': ' || SQLERRM];
            IF enabled = 0 THEN
                result := got[1];
            END IF;
        END;
    END LOOP;
    same := CASE WHEN got IS NOT DISTINCT FROM want THEN 'same' ELSE
        (SELECT left(format('got %s, wanted %s', g, w), 300)
         FROM unnest(got, want) AS d(g, w) WHERE g IS DISTINCT FROM w LIMIT 1) END;
    PERFORM set_config('gpuhash.engine', before, true) WHERE engine IS NOT NULL;
END $$;
