-- Inner columns as values of the table (src/join/carry.c): when they are, and that the rows
-- are the same.
LOAD 'gpuhash';
SET client_min_messages = warning;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET hash_mem_multiplier = 1.0;

CREATE TABLE co AS SELECT i AS id, CASE WHEN i % 17 = 0 THEN NULL ELSE (i * 7919::bigint) % 30000 END AS k, i % 5 AS g FROM generate_series(1, 20000) i;
-- each key once: columns of every width, values of both signs; n and m have NULLs
CREATE TABLE cu AS SELECT i * 3::bigint AS k, i * 1000003::bigint * 1000003 * (i % 2 * 2 - 1) AS b8, (i - 4000) * 400000 AS b4, (i - 4000)::int2 AS b2,
    (i % 256 - 128)::int::"char" AS b1, i % 3 = 0 AS yes, CASE i WHEN 7 THEN '-0' WHEN 8 THEN 'NaN' WHEN 9 THEN '-Infinity' ELSE i / 7.0 END::float8 AS f8,
    CASE WHEN i % 7 > 0 THEN i END AS n, CASE WHEN i % 1000 > 0 THEN i END::bigint AS m, 'row ' || i AS t
    FROM generate_series(0, 7999) i;
-- keys that come again: soon, or as the last of many
CREATE TABLE cd AS SELECT i % 5000 * 6::bigint AS k, i AS id FROM generate_series(1, 8000) i;
CREATE TABLE cl AS SELECT CASE i WHEN 70000 THEN 6 ELSE i * 3::bigint END AS k, i AS id FROM generate_series(1, 70000) i;
CREATE TABLE ck AS SELECT (k / 2)::int AS a, (k % 2)::int AS b, b4 AS v FROM cu;
ALTER TABLE ck ADD PRIMARY KEY (a, b);
-- of these nobody knows beforehand
CREATE TABLE cn (LIKE cd) WITH (autovacuum_enabled = off);
INSERT INTO cn SELECT * FROM cd;
ANALYZE co, cu, cd, cl, ck;

-- The answer alone and with workers, against PostgreSQL's; what the table's values are,
-- join by join as EXPLAIN lists them.
CREATE FUNCTION compare_carry(query text, OUT "values" text, OUT parallel text, OUT rows bigint, OUT same boolean)
LANGUAGE plpgsql AS $$
DECLARE
    plan text;
BEGIN
    SELECT c.rows, c.same INTO rows, same FROM compare_join(query) c;
    SET LOCAL gpuhash.force_offload = on;
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
    SELECT string_agg(m[1], ', ') INTO "values" FROM regexp_matches(plan, '"Table Values": "(\w+)"', 'g') m;
    SET LOCAL max_parallel_workers_per_gather = 3;
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
    SELECT string_agg(m[1], ', ') INTO parallel FROM regexp_matches(plan, '"Table Values": "(\w+)"', 'g') m;
    DROP TABLE got;
    EXECUTE 'CREATE TEMP TABLE got AS ' || query;
    same := same AND got_what_is_wanted();
END $$;

-- whatever fits 8 bytes, and a byte of null flags where there are NULLs
SELECT c.*, q AS query FROM (VALUES
    ('SELECT co.id, cu.b8 FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.b4 FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.b2 FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.b1, cu.yes FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.f8 FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.yes, cu.b4, cu.b2 FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.yes, cu.n, cu.b2 FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.yes, cu.b1, cu.b2, cu.b4 FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.yes, cu.b1, cu.b2, cu.n FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.m FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.b8, cu.yes FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.t FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.k FROM co JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, ck.v FROM co JOIN ck ON ck.a = co.id AND ck.b = co.g')) v(q), compare_carry(q) c;

-- join types, quals and filters
SELECT c.*, q AS query FROM (VALUES
    ('SELECT co.id, cu.n FROM co LEFT JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.n FROM co LEFT JOIN cu ON cu.k = co.k AND cu.n % 5 >= co.g'),
    ('SELECT co.id, cu.n + co.g AS s FROM co LEFT JOIN cu ON cu.k = co.k WHERE cu.n IS NULL OR cu.n % 5 >= co.g'),
    ('SELECT co.id, cu.n FROM co JOIN cu ON cu.k = co.k AND cu.n % 5 >= co.g WHERE cu.n % 2 <> co.id % 3')) v(q), compare_carry(q) c;
SELECT c.*, q AS query FROM (VALUES
    ('SELECT co.id, u.n, w.yes FROM co JOIN cu u ON u.k = co.k LEFT JOIN cu w ON w.k = u.n'),
    ('SELECT s.id, s.n, w.b4 FROM (SELECT co.id, u.n FROM co LEFT JOIN cu u ON u.k = co.k) s LEFT JOIN cu w ON w.k = s.n AND s.n > 50 WHERE s.n IS NULL OR w.b4 < 0')) v(q), compare_carry(q) c;

-- keys that come again: once found, rows
SELECT c.*, q AS query FROM (VALUES
    ('SELECT co.id, cd.id AS other FROM co JOIN cd ON cd.k = co.k'),
    ('SELECT co.id FROM co JOIN cd ON cd.k = co.k'),
    ('SELECT co.id, cn.id AS other FROM co JOIN cn ON cn.k = co.k')) v(q), compare_carry(q) c;
-- they need not be where one of them is enough; where inner rows come out there are rows
-- (a parallel plan may hash the other side)
SELECT "values", rows, same, q AS query FROM (VALUES
    ('SELECT co.id, cu.n FROM co RIGHT JOIN cu ON cu.k = co.k'),
    ('SELECT co.id, cu.n FROM co FULL JOIN cu ON cu.k = co.k'),
    ('SELECT co.id FROM co WHERE EXISTS (SELECT FROM cu WHERE cu.k = co.k AND cu.n % 5 >= co.g)'),
    ('SELECT co.id FROM co WHERE NOT EXISTS (SELECT FROM cu WHERE cu.k = co.k AND cu.n % 5 >= co.g)'),
    ('SELECT co.id FROM co WHERE EXISTS (SELECT FROM cd WHERE cd.k = co.k)'),
    ('SELECT co.id FROM co WHERE NOT EXISTS (SELECT FROM cd WHERE cd.k = co.k)'),
    ('SELECT co.id, cd.id AS other FROM co LEFT JOIN cd ON cd.k = co.k WHERE cd.k IS NULL'),
    ('SELECT co.id, cu.t, cu.m FROM co LEFT JOIN cu ON cu.k = co.k WHERE cu.k IS NULL'),
    ('SELECT co.id FROM co WHERE EXISTS (SELECT FROM cd WHERE cd.k = co.k AND cd.id > co.id)')) v(q), compare_carry(q) c;
SET work_mem = '64MB';
SELECT c.rows, c.same, "values", parallel FROM compare_carry('SELECT big.id, cl.id AS other FROM (SELECT co.* FROM co, generate_series(1, 4)) big JOIN cl ON cl.k = big.k') c;
RESET work_mem;

-- each partition by itself: of the rows with one key the join goes on with references
SET work_mem = '64kB';
SELECT c.rows, c.same FROM compare_carry('SELECT co.id, cu.b4 FROM co JOIN cu ON cu.k = co.k') c;
SELECT c.rows, c.same FROM compare_carry('SELECT co.id, cn.id AS other FROM co LEFT JOIN cn ON cn.k = co.k') c;
RESET work_mem;

-- a table that is kept over rescans, one that is made again, and an empty one
SET max_parallel_workers_per_gather = 0;
SELECT offloaded, rows, same FROM compare_join('SELECT v.x, s.* FROM (VALUES (1), (2), (3)) v(x), LATERAL (SELECT co.id, cu.n FROM co LEFT JOIN cu ON cu.k = co.k WHERE co.g < v.x OFFSET 0) s');
SELECT offloaded, rows, same FROM compare_join('SELECT v.x, s.* FROM (VALUES (1), (2), (3)) v(x), LATERAL (SELECT co.id, cd.n FROM co JOIN (SELECT k, n FROM cu WHERE n % 4 < v.x OFFSET 0) cd ON cd.k = co.k OFFSET 0) s');
SELECT offloaded, rows, same FROM compare_join('SELECT v.x, s.* FROM (VALUES (1), (2)) v(x), LATERAL (SELECT co.id, d.id AS other FROM co LEFT JOIN (SELECT k, id FROM cn WHERE id < v.x * 4000 OFFSET 0) d ON d.k = co.k OFFSET 0) s');
SELECT offloaded, rows, same FROM compare_join('SELECT co.id, cu.n FROM co LEFT JOIN (SELECT * FROM cu WHERE t = '''') cu ON cu.k = co.k');
DROP FUNCTION compare_carry(text);
DROP TABLE co, cu, cd, cl, ck, cn;
