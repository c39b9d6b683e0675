-- Which rows there are, and what is in them: attributes that tuples lack, versions, transactions, privileges.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
-- columns that came and went
CREATE TABLE ar (gone1 text, id int, gone2 int8, k int, t text);
INSERT INTO ar SELECT 'gone', i, i, i % 7, 't' || i % 5 FROM generate_series(1, 1000) i;
ALTER TABLE ar DROP COLUMN gone1;
ALTER TABLE ar ADD COLUMN later int DEFAULT 42, ADD COLUMN later_text text DEFAULT 'there from the start', ADD COLUMN later_numeric numeric(8, 3) DEFAULT 1.5, ADD COLUMN later_null int8;
ALTER TABLE ar DROP COLUMN gone2;
INSERT INTO ar SELECT i, i % 7, 'new', i, CASE WHEN i % 2 = 0 THEN 'new' END, i, i FROM generate_series(1001, 1400) i;
ALTER TABLE ar ADD COLUMN made int GENERATED ALWAYS AS (k * 2) STORED;
ALTER TABLE ar ADD COLUMN last int DEFAULT 7;
SELECT * FROM compare_aggregate('SELECT k, count(*), sum(later), sum(later_numeric), count(later_null), sum(later_null), sum(made), avg(last) FROM ar GROUP BY k');
SELECT * FROM compare_aggregate('SELECT later_text, count(*), max(later) FROM ar GROUP BY later_text');
SELECT * FROM compare_aggregate('SELECT later, last, later_numeric, count(*) FROM ar GROUP BY 1, 2, 3');
SELECT * FROM compare_aggregate('SELECT count(*) FROM ar WHERE later = 42 AND later_text LIKE ''there%'' AND last = 7 AND later_null IS NULL');
SELECT * FROM compare_aggregate('SELECT count(*) FILTER (WHERE later_null IS NULL), sum(made) FILTER (WHERE later = 42) FROM ar');
-- the table has no column, or none that is asked for
CREATE TABLE ar_none ();
INSERT INTO ar_none DEFAULT VALUES;
INSERT INTO ar_none DEFAULT VALUES;
SELECT * FROM compare_aggregate('SELECT count(*) FROM ar_none');
SELECT * FROM compare_aggregate('SELECT count(*), sum(1), max(2.5) FROM ar');
-- more columns than a tuple's first bytes can say, NULLs before what is asked for
DO $$
BEGIN
    EXECUTE 'CREATE TABLE ar_many (' || (SELECT string_agg(format('c%s %s', i, (ARRAY['int', 'int8', 'text', 'numeric(10, 2)', 'bool', 'int2', 'float8'])[i % 7 + 1]), ', ') FROM generate_series(1, 300) i) || ')';
    EXECUTE 'INSERT INTO ar_many SELECT ' || (SELECT string_agg(format('CASE WHEN j %% %s > 0 THEN %s END', 2 + i % 5,
        (ARRAY['j', 'j * 1000', '''text '' || j % 9', 'j / 3.0', 'j % 2 = 0', 'j', 'j / 7.0'])[i % 7 + 1]), ', ') FROM generate_series(1, 300) i) || ' FROM generate_series(1, 200) j';
END $$;
SELECT * FROM compare_aggregate('SELECT c289, count(*), sum(c294), sum(c295), sum(c297), bool_or(c298), sum(c299), sum(c300) FROM ar_many GROUP BY c289');
SELECT * FROM compare_aggregate('SELECT c2, c9, count(*), sum(c8) FROM ar_many WHERE c4 GROUP BY c2, c9');

-- versions: HOT updates, other updates, deletes, what a savepoint took back, what is not committed
CREATE TABLE ar_life (id int, k int, v int8, t text) WITH (fillfactor = 50, autovacuum_enabled = off);
CREATE INDEX ON ar_life (id);
INSERT INTO ar_life SELECT i, i % 10, i, 'first' FROM generate_series(1, 2000) i;
UPDATE ar_life SET v = v + 1 WHERE id % 3 = 0;
UPDATE ar_life SET id = id + 10000 WHERE id % 7 = 0;
DELETE FROM ar_life WHERE k = 4;
SELECT * FROM compare_aggregate('SELECT k, t, count(*), sum(v), min(id), max(id) FROM ar_life GROUP BY k, t');
BEGIN;
INSERT INTO ar_life SELECT i, 77, 1, 'own' FROM generate_series(1, 100) i;
SELECT result, same FROM compare_aggregate('SELECT k, t, count(*), sum(v) FROM ar_life GROUP BY k, t');
SAVEPOINT a;
UPDATE ar_life SET t = 'taken back', v = v * 2 WHERE k > 5;
DELETE FROM ar_life WHERE k = 77 AND id % 2 = 0;
SELECT result, same FROM compare_aggregate('SELECT k, t, count(*), sum(v) FROM ar_life GROUP BY k, t');
ROLLBACK TO a;
SELECT result, same FROM compare_aggregate('SELECT k, t, count(*), sum(v) FROM ar_life GROUP BY k, t');
SAVEPOINT b;
UPDATE ar_life SET t = 'kept' WHERE k = 8;
RELEASE b;
SELECT result, same FROM compare_aggregate('SELECT k, t, count(*), sum(v) FROM ar_life GROUP BY k, t');
SELECT id FROM ar_life WHERE k = 9 FOR UPDATE LIMIT 1;
SET LOCAL gpuhash.force_offload = on;
SELECT t, count(*), sum(v) FROM ar_life GROUP BY t ORDER BY t;
COMMIT;
SELECT * FROM compare_aggregate('SELECT k, t, count(*), sum(v) FROM ar_life GROUP BY k, t');
VACUUM ar_life;
SELECT * FROM compare_aggregate('SELECT k, t, count(*), sum(v) FROM ar_life GROUP BY k, t');
VACUUM FREEZE ar_life;
DELETE FROM ar_life WHERE id < 500;
SELECT * FROM compare_aggregate('SELECT k, t, count(*), sum(v) FROM ar_life GROUP BY k, t');
TRUNCATE ar_life;
SELECT * FROM compare_aggregate('SELECT k, t, count(*), sum(v) FROM ar_life GROUP BY k, t');
SELECT * FROM compare_aggregate('SELECT count(*), sum(v), count(t) FROM ar_life');
-- within a statement that changes the table
INSERT INTO ar_life SELECT i, i % 4, i, 'again' FROM generate_series(1, 400) i;
SET gpuhash.force_offload = on;
WITH d AS (DELETE FROM ar_life WHERE k = 1 RETURNING v) SELECT (SELECT count(*) FROM ar_life), (SELECT count(*) FROM d);
SELECT count(*), sum(v) FROM ar_life;
WITH i AS (INSERT INTO ar_life SELECT count(*), k, sum(v), 'sum' FROM ar_life GROUP BY k RETURNING k, v) SELECT * FROM i ORDER BY k;
WITH u AS (UPDATE ar_life SET v = (SELECT count(*) FROM ar_life x WHERE x.k = ar_life.k) WHERE t = 'sum' RETURNING k, v) SELECT * FROM u ORDER BY k;
RESET gpuhash.force_offload;
-- temporary and unlogged tables, a materialized view, a sequence, a foreign snapshot
CREATE TEMP TABLE ar_temp AS SELECT * FROM ar;
CREATE UNLOGGED TABLE ar_unlogged AS SELECT * FROM ar;
CREATE MATERIALIZED VIEW ar_stored AS SELECT * FROM ar;
CREATE SEQUENCE ar_sequence;
SELECT c.* FROM unnest(ARRAY['ar_temp', 'ar_unlogged', 'ar_stored']) x, LATERAL compare_aggregate(format('SELECT k, count(*), sum(later_numeric), max(later) FROM %s GROUP BY k', x)) c;
SELECT c.* FROM compare_aggregate('SELECT count(*), sum(last_value) FROM ar_sequence') c;
DROP MATERIALIZED VIEW ar_stored;
DROP TABLE ar_temp, ar_unlogged;
DROP SEQUENCE ar_sequence;

-- serializable: a scan by the node is a read of the table
SET gpuhash.force_offload = on;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT k, count(*) FROM ar_life GROUP BY k ORDER BY k;
SELECT locktype, mode, count(*) FROM pg_locks WHERE relation = 'ar_life'::regclass AND mode = 'SIReadLock' AND pid = pg_backend_pid() GROUP BY 1, 2;
COMMIT;
RESET gpuhash.force_offload;

-- row-level security, views with a barrier, columns that one may not read
CREATE ROLE regress_ar_reader;
CREATE TABLE ar_secret (id int, owner text, v int, note text);
INSERT INTO ar_secret SELECT i, CASE WHEN i % 3 = 0 THEN 'regress_ar_reader' ELSE 'other' END, i, 'note ' || i FROM generate_series(1, 300) i;
ANALYZE ar_secret;
ALTER TABLE ar_secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON ar_secret USING (owner = current_user);
CREATE FUNCTION ar_leak(int) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN IF $1 % 3 <> 0 THEN RAISE NOTICE 'seen %', $1; END IF; RETURN true; END $$;
CREATE VIEW ar_barrier WITH (security_barrier) AS SELECT id, v FROM ar_secret WHERE id % 10 = 0;
GRANT SELECT ON ar_secret, ar_barrier TO regress_ar_reader;
GRANT EXECUTE ON FUNCTION compare_aggregate(text, int, boolean, text), plan_lines(text, text) TO regress_ar_reader;
SELECT * FROM compare_aggregate('SELECT owner, count(*), sum(v) FROM ar_secret GROUP BY owner');
SET ROLE regress_ar_reader;
SELECT * FROM compare_aggregate('SELECT owner, count(*), sum(v) FROM ar_secret GROUP BY owner');
SELECT * FROM compare_aggregate('SELECT owner, count(*), sum(v) FROM ar_secret WHERE ar_leak(id) GROUP BY owner');
SELECT * FROM compare_aggregate('SELECT owner, count(*), sum(v) FILTER (WHERE ar_leak(id)) FROM ar_secret GROUP BY owner');
SELECT * FROM compare_aggregate('SELECT owner, count(*) FROM ar_secret WHERE 100 / (id % 3) >= 0 GROUP BY owner');
SELECT * FROM compare_aggregate('SELECT owner, count(*) FROM ar_secret WHERE 100 / (id % 3 - 1) < 0 GROUP BY owner');
SELECT * FROM compare_aggregate('SELECT count(*), sum(v) FROM ar_barrier WHERE ar_leak(id / 10 * 3)');
RESET ROLE;
SELECT * FROM compare_aggregate('SELECT count(*), sum(v) FROM ar_barrier WHERE ar_leak(id / 10 * 3)');
SELECT * FROM compare_aggregate('SELECT count(*), sum(v) FROM ar_barrier WHERE 100 / (id % 10) = 1');
SELECT * FROM compare_aggregate('SELECT count(*), sum(v) FROM ar_barrier WHERE 100 / (id % 10 - 1) < 0');
REVOKE SELECT ON ar_secret FROM regress_ar_reader;
GRANT SELECT (id, v) ON ar_secret TO regress_ar_reader;
ALTER TABLE ar_secret DISABLE ROW LEVEL SECURITY;
SET ROLE regress_ar_reader;
SELECT * FROM compare_aggregate('SELECT v % 5, count(*), sum(id) FROM ar_secret GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT v % 5, count(note) FROM ar_secret GROUP BY 1');
SELECT * FROM compare_aggregate('SELECT note, count(*) FROM ar_secret GROUP BY note');
RESET ROLE;
DROP VIEW ar_barrier;
DROP TABLE ar, ar_none, ar_many, ar_life, ar_secret;
DROP FUNCTION ar_leak(int);
REVOKE EXECUTE ON FUNCTION compare_aggregate(text, int, boolean, text), plan_lines(text, text) FROM regress_ar_reader;
DROP ROLE regress_ar_reader;
