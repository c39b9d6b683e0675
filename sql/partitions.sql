-- Several tables that are read as one: partitions, tables that inherit, sides of a UNION ALL
-- (src/plan/parts_path.c, src/fragment/parts.c).
LOAD 'gpuhash';
SET client_min_messages = warning;
-- two levels, an empty one, one that was attached, with a column that is missing in older tuples
CREATE TABLE pa (id int, day date, k int, v numeric(10, 2), f float8, t text) PARTITION BY RANGE (day);
CREATE TABLE pa_1 PARTITION OF pa FOR VALUES FROM ('2020-01-01') TO ('2020-02-01') WITH (autovacuum_enabled = off);
CREATE TABLE pa_2 PARTITION OF pa FOR VALUES FROM ('2020-02-01') TO ('2020-03-01') PARTITION BY LIST (k);
CREATE TABLE pa_2a PARTITION OF pa_2 FOR VALUES IN (0, 1, 2, 3, 4) WITH (autovacuum_enabled = off);
CREATE TABLE pa_2b PARTITION OF pa_2 DEFAULT WITH (autovacuum_enabled = off);
CREATE TABLE pa_3 (LIKE pa) WITH (autovacuum_enabled = off);
ALTER TABLE pa ATTACH PARTITION pa_3 FOR VALUES FROM ('2020-03-01') TO ('2020-04-01');
CREATE TABLE pa_4 PARTITION OF pa FOR VALUES FROM ('2020-04-01') TO ('2020-05-01') WITH (autovacuum_enabled = off);
INSERT INTO pa SELECT i, date '2020-01-01' + i % 91, i % 10, (i % 500) / 4.0, i % 64, CASE WHEN i % 4000 = 0 THEN repeat('long', 4000) ELSE 't' || i % 7 END
    FROM generate_series(1, 30000) i;
ALTER TABLE pa ADD COLUMN late int;
INSERT INTO pa SELECT i, date '2020-01-01' + i % 91, i % 10, (i % 500) / 4.0, i % 64, 't' || i % 7, i % 3 FROM generate_series(30001, 40000) i;
DELETE FROM pa WHERE id % 13 = 0;
CREATE TABLE pa_dim WITH (autovacuum_enabled = off) AS SELECT i AS k, 'd' || i % 4 AS name, i % 3 AS g FROM generate_series(0, 8) i;
VACUUM ANALYZE pa, pa_dim;
CREATE TEMP TABLE pa_queries (position serial, query text);
INSERT INTO pa_queries (query) VALUES
    ('SELECT k, count(*), sum(v), max(day), count(t) FROM pa GROUP BY k'),
    ('SELECT count(*), sum(f), avg(v) FROM pa WHERE day >= ''2020-01-20'' AND k < 7'),
    ('SELECT late, count(*), sum(late) FROM pa GROUP BY late'),
    ('SELECT t, count(DISTINCT k) FROM pa WHERE v > 100 GROUP BY t'),
    ('SELECT k, late, count(*) FROM pa GROUP BY ROLLUP (k, late)'),
    ('SELECT DISTINCT k, day FROM pa WHERE id < 20000'),
    ('SELECT day, length(t), count(*) FROM pa WHERE t LIKE ''%o%'' GROUP BY day, length(t)'),
    -- joins above them: each type, with conditions on the pair, and rows that are handed back
    ('SELECT d.name, count(*), sum(p.v) FROM pa p JOIN pa_dim d USING (k) GROUP BY d.name'),
    ('SELECT d.name, count(*), sum(p.v), count(p.t) FROM pa p LEFT JOIN pa_dim d USING (k) GROUP BY d.name'),
    ('SELECT p.day, count(*) FROM pa p WHERE EXISTS (SELECT FROM pa_dim d WHERE d.k = p.k AND d.g <> p.late) GROUP BY p.day'),
    ('SELECT p.day, count(*) FROM pa p WHERE NOT EXISTS (SELECT FROM pa_dim d WHERE d.k = p.k) GROUP BY p.day'),
    ('SELECT d.name, e.g, count(*) FROM pa p JOIN pa_dim d USING (k) JOIN pa_dim e ON e.k = p.late WHERE p.day < ''2020-03-10'' GROUP BY d.name, e.g'),
    ('SELECT d.k, count(p.id) FROM pa p RIGHT JOIN pa_dim d ON d.k = p.k AND p.v < 3 GROUP BY d.k'),
    ('SELECT q.k, count(*) FROM pa p JOIN pa q ON q.id = p.id WHERE p.k < 3 GROUP BY q.k'),
    ('SELECT p.id, p.t, d.name FROM pa p JOIN pa_dim d USING (k) WHERE p.id % 100 = 7'),
    -- one scan for each outer row, with a parameter
    ('SELECT d.k, (SELECT sum(p.v) FROM pa p WHERE p.late = d.g AND p.id > d.k * 1000) FROM pa_dim d'),
    ('SELECT count(*) FROM pa WHERE day = (SELECT max(day) FROM pa WHERE k = 3)'),
    ('SELECT count(*) FROM pa WHERE v < (SELECT avg(v) FROM pa)'),
    -- none is left, one is left; a column of each table's own
    ('SELECT k, count(*) FROM pa WHERE day > ''2021-01-01'' GROUP BY k'),
    ('SELECT k, count(*) FROM pa WHERE day = ''2020-01-05'' GROUP BY k'),
    ('SELECT tableoid::regclass, count(*) FROM pa GROUP BY 1'),
    ('SELECT k, 1000 / (k - 3 + id % 2 * 0) AS x, count(*) FROM pa GROUP BY 1, 2');
-- forced, by both engines' ways: how much of it was offloaded
SELECT q.position, c.offloaded, c.result, c.same FROM pa_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SELECT q.position, c.same FROM pa_queries q, LATERAL compare_aggregate(q.query, 2) c WHERE c.same <> 'same' ORDER BY q.position;
SELECT q.position, c.same FROM pa_queries q, LATERAL compare_aggregate(q.query, engine => 'cpu') c WHERE c.same <> 'same' ORDER BY q.position;
-- little memory: groups go to files
SET work_mem = '64kB';
SELECT c.offloaded, c.result, c.same FROM compare_aggregate('SELECT id, count(*), sum(v) FROM pa GROUP BY id') c;
SELECT c.offloaded, c.result, c.same FROM compare_aggregate('SELECT p.id, count(*) FROM pa p JOIN pa q ON q.id = p.id GROUP BY p.id') c;
RESET work_mem;
-- left to the planner: one node above all of them
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT k, count(*), sum(v) FROM pa WHERE late IS NULL GROUP BY k;
-- which relations are read
SET gpuhash.force_offload = on;
SET gpuhash.engine = cpu;
CREATE FUNCTION pa_steps(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT lines_of_plan(query, 'Steps|Append|Scan on', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF', indented => true)
$$;
SELECT pa_steps('SELECT k, count(*) FROM pa WHERE k < 5 GROUP BY k');
SELECT pa_steps('SELECT d.g, count(*) FROM pa p JOIN pa_dim d USING (k) WHERE p.day >= ''2020-02-01'' GROUP BY d.g');
RESET gpuhash.force_offload;
-- a column with a default that older tuples of some tables lack, of others none: the first one has them all
CREATE TABLE pm (id int, k int) PARTITION BY RANGE (id);
CREATE TABLE pm_2 PARTITION OF pm FOR VALUES FROM (10000) TO (20000) WITH (autovacuum_enabled = off);
INSERT INTO pm SELECT i, i % 10 FROM generate_series(10000, 19999) i;
ALTER TABLE pm ADD COLUMN late int DEFAULT 5;
CREATE TABLE pm_1 PARTITION OF pm FOR VALUES FROM (0) TO (10000) WITH (autovacuum_enabled = off);
INSERT INTO pm SELECT i, i % 10, i % 3 FROM generate_series(0, 9999) i;
ANALYZE pm;
CREATE TEMP TABLE pm_queries (position serial, query text);
INSERT INTO pm_queries (query) VALUES
    ('SELECT late, count(*) FROM pm GROUP BY late'),
    ('SELECT count(*), sum(k) FROM pm WHERE late = 5'),
    ('SELECT d.name, count(*) FROM pm p LEFT JOIN pa_dim d ON d.k = p.late GROUP BY d.name');
SELECT q.position, c.offloaded, c.result, c.same FROM pm_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SELECT q.position, c.offloaded, c.result, c.same FROM pm_queries q, LATERAL compare_aggregate(q.query, 2) c ORDER BY q.position;
RESET gpuhash.engine;
SELECT q.position, c.offloaded, c.result, c.same FROM pm_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SET gpuhash.engine = cpu;
DROP TABLE pm, pm_queries;
-- tables that lie otherwise are not read as one: columns in another order, another type, a column that was dropped
CREATE TABLE pa_5 (day date, id int, k int, v numeric(10, 2), f float8, t text, late int) WITH (autovacuum_enabled = off);
ALTER TABLE pa ATTACH PARTITION pa_5 FOR VALUES FROM ('2020-05-01') TO ('2020-06-01');
INSERT INTO pa SELECT i, date '2020-05-01' + i % 31, i % 10, (i % 500) / 4.0, i % 64, 't' || i % 7, i % 3 FROM generate_series(50001, 60000) i;
ANALYZE pa;
SELECT q.position, c.same FROM pa_queries q, LATERAL compare_aggregate(q.query) c WHERE c.same <> 'same' ORDER BY q.position;
SET gpuhash.force_offload = on;
SELECT pa_steps('SELECT k, count(*) FROM pa WHERE day >= ''2020-04-01'' GROUP BY k');
RESET gpuhash.force_offload;
DROP TABLE pa_5;
-- tables that inherit, the sides of a UNION ALL
CREATE TABLE in_a WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 8 AS k, (i % 100)::numeric(8, 2) AS p FROM generate_series(1, 12000) i;
CREATE TABLE in_b () INHERITS (in_a) WITH (autovacuum_enabled = off);
INSERT INTO in_b SELECT i, i % 9, (i % 50)::numeric(8, 2) FROM generate_series(1, 12000) i;
CREATE TABLE in_c (LIKE in_a) WITH (autovacuum_enabled = off);
INSERT INTO in_c SELECT i, i % 5, (i % 30)::numeric(8, 2) FROM generate_series(1, 12000) i;
ANALYZE in_a, in_b, in_c;
TRUNCATE pa_queries RESTART IDENTITY;
INSERT INTO pa_queries (query) VALUES
    ('SELECT k, sum(p), count(*) FROM in_a GROUP BY k'),
    ('SELECT k, sum(p), count(*) FROM ONLY in_a GROUP BY k'),
    ('SELECT k, sum(p), count(*) FROM (SELECT id, k, p FROM in_b UNION ALL SELECT id, k, p FROM in_c) u WHERE id > 100 GROUP BY k'),
    ('SELECT k, sum(p), count(*) FROM (SELECT * FROM in_a UNION ALL SELECT * FROM in_c UNION ALL SELECT * FROM in_c) u GROUP BY k'),
    -- other columns, expressions, other conditions: each by itself
    ('SELECT k, sum(p), count(*) FROM (SELECT id, k, p FROM in_b UNION ALL SELECT k, id, p FROM in_c) u GROUP BY k'),
    ('SELECT k, sum(p), count(*) FROM (SELECT k, p FROM in_b UNION ALL SELECT k + 1, p FROM in_c) u GROUP BY k'),
    ('SELECT x, k, sum(p), count(*) FROM (SELECT 1 AS x, k, p FROM in_b UNION ALL SELECT 2, k, p FROM in_c) u GROUP BY x, k'),
    ('SELECT k, sum(p), count(*) FROM (SELECT k, p FROM in_b WHERE id < 500 UNION ALL SELECT k, p FROM in_c WHERE id > 900) u GROUP BY k'),
    ('SELECT d.name, sum(u.p), count(*) FROM (SELECT * FROM in_b UNION ALL SELECT * FROM in_c) u JOIN pa_dim d USING (k) GROUP BY d.name');
SELECT q.position, c.offloaded, c.result, c.same FROM pa_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SELECT q.position, c.same FROM pa_queries q, LATERAL compare_aggregate(q.query, 2) c WHERE c.same <> 'same' ORDER BY q.position;
SET gpuhash.force_offload = on;
SELECT pa_steps(query) FROM pa_queries WHERE position IN (1, 3, 5, 8) ORDER BY position;
RESET gpuhash.force_offload;
-- left to the planner: joins below a grouping, in one process and in several; what PostgreSQL does better stays its own
CREATE TABLE pj (id int, k int, d int, m int, v numeric(10, 2)) PARTITION BY RANGE (m);
CREATE TABLE pj_1 PARTITION OF pj FOR VALUES FROM (0) TO (10) WITH (autovacuum_enabled = off);
CREATE TABLE pj_2 PARTITION OF pj FOR VALUES FROM (10) TO (20) WITH (autovacuum_enabled = off);
CREATE TABLE pj_3 PARTITION OF pj FOR VALUES FROM (20) TO (30) WITH (autovacuum_enabled = off);
CREATE TABLE pj_none PARTITION OF pj FOR VALUES FROM (30) TO (40) WITH (autovacuum_enabled = off);
INSERT INTO pj SELECT i, i * 7919 % 6000, i % 1000, i % 30, (i % 400) / 4.0 FROM generate_series(1, 90000) i;
CREATE INDEX ON pj (d);
CREATE INDEX ON pj (id);
CREATE TABLE pj_dim (id int PRIMARY KEY, z int, s text) WITH (autovacuum_enabled = off);
INSERT INTO pj_dim SELECT i, i % 4, 's' || i % 3 FROM generate_series(1, 5000) i;
VACUUM ANALYZE pj, pj_dim;
SELECT lines_of_plan('SELECT count(*), sum(p.v) FROM pj p JOIN pj_dim h ON h.id = p.k', 'Gather|Custom|Type|Key|Append|Scan on', indented => true);
SELECT lines_of_plan('SELECT h.z, count(*), sum(p.d) FROM pj p JOIN pj_dim h ON h.id = p.k WHERE p.m < 20 AND p.v < 50 GROUP BY h.z', 'Gather|Custom|Type|Key|Append|Scan on', indented => true);
SELECT lines_of_plan('SELECT count(*) FROM pj p WHERE NOT EXISTS (SELECT FROM pj_dim h WHERE h.id = p.k)', 'Gather|Custom|Type|Key|Append|Scan on', indented => true);
CREATE TEMP TABLE pj_queries (position serial, query text);
INSERT INTO pj_queries (query) VALUES
    ('SELECT count(*), sum(p.v) FROM pj p JOIN pj_dim h ON h.id = p.k'),
    ('SELECT h.z, count(*), sum(p.d) FROM pj p JOIN pj_dim h ON h.id = p.k WHERE p.m < 20 AND p.v < 50 GROUP BY h.z'),
    ('SELECT h.z, count(*), sum(p.d) FROM pj p JOIN pj_dim h ON h.id = p.k WHERE p.m < 10 GROUP BY h.z'),
    ('SELECT h.s, p.m, count(*), sum(p.v) FROM pj p LEFT JOIN pj_dim h ON h.id = p.k AND h.z < 3 GROUP BY h.s, p.m'),
    ('SELECT count(*) FROM pj p WHERE EXISTS (SELECT FROM pj_dim h WHERE h.id = p.k)'),
    ('SELECT count(*) FROM pj p WHERE NOT EXISTS (SELECT FROM pj_dim h WHERE h.id = p.k)'),
    ('SELECT h.z, g.s, count(*), max(p.v) FROM pj p JOIN pj_dim h ON h.id = p.k JOIN pj_dim g ON g.id = p.d GROUP BY h.z, g.s'),
    ('SELECT count(*), sum(q.d) FROM pj p JOIN pj q ON q.id = p.k WHERE q.d = 3'),
    ('SELECT count(*), sum(p.d) FROM pj_dim h JOIN pj p ON h.id = p.k JOIN (SELECT z, max(id) AS most FROM pj_dim GROUP BY z) x ON x.z = h.z WHERE p.d < x.most'),
    ('SELECT h.z, sum(u.d) FROM (SELECT k, d FROM pj_1 UNION ALL SELECT k, d FROM pj_3) u JOIN pj_dim h ON h.id = u.k GROUP BY h.z'),
    ('SELECT p.tableoid::regclass, count(*) FROM pj p JOIN pj_dim h ON h.id = p.k GROUP BY 1'),
    -- few rows, by an index of each partition, in its order; none
    ('SELECT count(*) FROM pj p JOIN pj_dim h ON h.id = p.id WHERE h.id < 200'),
    ('SELECT h.z, count(*) FROM pj p JOIN pj_dim h ON h.id = p.d WHERE h.id < 3 AND p.m < 20 GROUP BY h.z'),
    ('SELECT h.z, count(*) FROM pj p JOIN pj_dim h ON h.id = p.k WHERE p.m >= 30 GROUP BY h.z');
-- whether a GpuHashAggregate is there, and whether the answer is PostgreSQL's
CREATE FUNCTION pj_check(query text, OUT is_ours boolean, OUT is_right boolean) LANGUAGE plpgsql AS $$
DECLARE
    mine text;
    theirs text;
    whole text := 'SELECT string_agg(x::text, chr(10) ORDER BY x::text) FROM (' || query || ') x';
BEGIN
    is_ours := EXISTS (SELECT FROM lines_of_plan(query, 'GpuHashAggregate', 'COSTS OFF'));
    EXECUTE whole INTO mine;
    SET LOCAL gpuhash.enabled = off;
    EXECUTE whole INTO theirs;
    SET LOCAL gpuhash.enabled = on;
    is_right := mine IS NOT DISTINCT FROM theirs;
END
$$;
SELECT q.position, c.* FROM pj_queries q, LATERAL pj_check(q.query) c ORDER BY q.position;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0.001;
SET min_parallel_table_scan_size = 0;
SELECT lines_of_plan('SELECT h.z, count(*), sum(p.d) FROM pj p JOIN pj_dim h ON h.id = p.k GROUP BY h.z', 'Gather|Custom|Type|Key|Append|Scan on', indented => true);
SELECT q.position, c.* FROM pj_queries q, LATERAL pj_check(q.query) c ORDER BY q.position;
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
SELECT q.position, c.is_right FROM pj_queries q, LATERAL pj_check(q.query) c WHERE NOT c.is_right ORDER BY q.position;
RESET enable_partitionwise_join;
RESET enable_partitionwise_aggregate;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0;
-- partitions that a parameter leaves out when the plan begins to run, and within it
SET plan_cache_mode = force_generic_plan;
PREPARE pj_prepared (int) AS SELECT h.z, count(*), sum(p.d) FROM pj p JOIN pj_dim h ON h.id = p.k WHERE p.m = $1 GROUP BY h.z ORDER BY h.z;
EXECUTE pj_prepared (5);
EXECUTE pj_prepared (35);
DEALLOCATE pj_prepared;
RESET plan_cache_mode;
SELECT c.is_right FROM pj_check('SELECT h.z, count(*) FROM pj p JOIN pj_dim h ON h.id = p.k WHERE p.m = (SELECT min(z) + 3 FROM pj_dim) GROUP BY h.z') c;
DROP TABLE pj, pj_dim, pj_queries;
DROP FUNCTION pj_check(text);
-- a row is only there for who may see it
CREATE POLICY few ON pa USING (id % 2 = 0);
ALTER TABLE pa ENABLE ROW LEVEL SECURITY;
CREATE ROLE regress_pa_reader;
GRANT SELECT ON pa TO regress_pa_reader;
SET ROLE regress_pa_reader;
SET gpuhash.force_offload = on;
SELECT count(*), max(id % 2) FROM pa;
RESET gpuhash.force_offload;
RESET ROLE;
DROP TABLE pa, pa_dim, in_a, in_b, in_c, pa_queries;
DROP ROLE regress_pa_reader;
DROP FUNCTION pa_steps;
RESET gpuhash.engine;
RESET max_parallel_workers_per_gather;
