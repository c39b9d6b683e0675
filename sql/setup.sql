-- What the other tests use.
SET client_min_messages = warning;
CREATE EXTENSION gpuhash;
-- Runs a query without gpuhash and with every join offloaded that can be, and
-- compares the two results as multisets.
CREATE FUNCTION compare_join(query text, OUT offloaded int, OUT rows bigint, OUT same boolean)
LANGUAGE plpgsql AS $$
DECLARE
    line text;
    differing bigint;
BEGIN
    SET LOCAL max_parallel_workers_per_gather = 0;
    SET LOCAL client_min_messages = warning;
    DROP TABLE IF EXISTS want, got;
    SET LOCAL gpuhash.enabled = off;
    EXECUTE 'CREATE TEMP TABLE want AS ' || query;
    SET LOCAL gpuhash.enabled = on;
    SET LOCAL gpuhash.force_offload = on;
    offloaded := 0;
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line LIKE '%Custom Scan (GpuHashJoin)%' THEN
            offloaded := offloaded + 1;
        END IF;
    END LOOP;
    EXECUTE 'CREATE TEMP TABLE got AS ' || query;
    SELECT count(*) INTO rows FROM got;
    SELECT count(*) INTO differing FROM (
        (SELECT want_row::text FROM want want_row EXCEPT ALL SELECT got_row::text FROM got got_row)
        UNION ALL
        (SELECT got_row::text FROM got got_row EXCEPT ALL SELECT want_row::text FROM want want_row)) d;
    same := differing = 0;
END $$;
