-- gpuhash_calibrate: what it returns does not depend on the machine; numbers do.
LOAD 'gpuhash';
SET gpuhash.engine = 'cpu';
SET gpuhash.build_tuple_cost = 0.5;
-- it goes on with its transaction, in which tables are written to before and after
BEGIN;
CREATE TEMP TABLE calibrated AS SELECT * FROM gpuhash_calibrate();
INSERT INTO calibrated VALUES ('none');
SAVEPOINT s;
SELECT count(*) FROM gpuhash_calibrate() c, (SELECT 1 UNION ALL SELECT 2) twice;
ROLLBACK TO s;
COMMIT;
SELECT setting, current, CASE WHEN measured IS NULL THEN why ~ '^not measured: it took too long' ELSE suggested >= 0 AND why ~ '^an? ' END AS sound
FROM calibrated WHERE setting !~ 'device';
SELECT setting, current, suggested IS NULL = (measured IS NULL) AS both, why ~ (CASE WHEN measured IS NULL THEN '^not measured: ' ELSE '^a ' END) AS why
FROM calibrated WHERE setting ~ 'device';
-- all are settings, and it changes none
SELECT count(*) FROM calibrated c WHERE current_setting(setting, true)::float8 = current;
SHOW gpuhash.build_tuple_cost;
SHOW enable_nestloop;
SHOW search_path;
RESET gpuhash.build_tuple_cost;
-- it leaves nothing
SELECT count(*) FROM pg_class WHERE relname ~ 'gpuhash_calibrate';
-- an error in the middle of it ends it like any; where, depends on the time
\set SHOW_CONTEXT never
SET statement_timeout = '60ms';
SELECT count(*) FROM gpuhash_calibrate();
RESET statement_timeout;
DO $$
BEGIN
    SET LOCAL transaction_read_only = on;
    PERFORM gpuhash_calibrate();
EXCEPTION WHEN read_only_sql_transaction THEN
    RAISE WARNING 'not in a read-only transaction';
END $$;
SELECT count(*) FROM pg_class WHERE relname ~ 'gpuhash_calibrate';
SHOW enable_nestloop;
-- where it may not
BEGIN READ ONLY;
SELECT gpuhash_calibrate();
ROLLBACK;
CREATE ROLE regress_gpuhash_calibrate;
SET ROLE regress_gpuhash_calibrate;
SELECT gpuhash_calibrate();
RESET ROLE;
DROP ROLE regress_gpuhash_calibrate;
DROP TABLE calibrated;
RESET gpuhash.engine;
