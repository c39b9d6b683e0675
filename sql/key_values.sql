-- Which values of a small table's key its conditions leave, looked up while a query is planned (src/plan/key_values.c).
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE kv_kind (id int PRIMARY KEY, name text, code text, weight int) WITH (autovacuum_enabled = off);
INSERT INTO kv_kind SELECT i, 'kind ' || i, 'c' || i, i FROM generate_series(1, 100) i;
-- of kind 1 there are 15,000 facts, of 2 there are 3,000, of the others 20 or 21
CREATE TABLE kv_fact (kind_id int, kind_code text, v int) WITH (autovacuum_enabled = off);
INSERT INTO kv_fact SELECT k, 'c' || k, i FROM generate_series(1, 20000) i,
	LATERAL (SELECT CASE WHEN i <= 15000 THEN 1 WHEN i <= 18000 THEN 2 ELSE 3 + i % 98 END) k(k);
ANALYZE kv_kind, kv_fact;
-- with the values, without them, and what there is
CREATE FUNCTION compare(query text, OUT looked bigint, OUT "not" bigint, OUT really bigint, OUT same bool) LANGUAGE plpgsql AS $$
DECLARE
	answer text[];
BEGIN
	looked := plan_number(query, 'Plan Rows');
	answer := answer_of(query);
	SET LOCAL gpuhash.enable_key_values = off;
	"not" := plan_number(query, 'Plan Rows');
	same := answer_of(query) IS NOT DISTINCT FROM answer;
	really := cardinality(answer);
	SET LOCAL gpuhash.enable_key_values = on;
END $$;
SELECT c.*, q FROM unnest(ARRAY[
	'SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = ''kind 1''',
	'SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = ''kind 2''',
	'SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = ''kind 50''',
	'SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name IN (''kind 1'', ''kind 50'')',
	'SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name LIKE ''%d 2%''',
	'SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE weight BETWEEN 2 AND 4',
	'SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = ''none''',
	'SELECT v FROM kv_fact JOIN kv_kind ON code = kind_code WHERE name = ''kind 1''',
	'SELECT v FROM kv_fact WHERE kind_id IN (SELECT id FROM kv_kind WHERE name = ''kind 1'')',
	'SELECT v FROM kv_fact WHERE NOT EXISTS (SELECT FROM kv_kind WHERE id = kind_id AND name = ''kind 1'')',
	'SELECT v FROM kv_kind LEFT JOIN kv_fact ON id = kind_id WHERE name = ''kind 1''']) q, compare(q) c;
-- a foreign key tells the planner that each fact has a kind, but not which
ALTER TABLE kv_fact ADD FOREIGN KEY (kind_id) REFERENCES kv_kind;
SELECT c.* FROM compare('SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = ''kind 1''') c;
-- of a column whose type gets no values, what a foreign key tells is left
DO $$ BEGIN EXECUTE (SELECT format('CREATE TYPE kv_label AS ENUM (%s)', string_agg(format('%L', 'l' || i), ', ')) FROM generate_series(1, 100) i); END $$;
CREATE TABLE kv_labelled (id int PRIMARY KEY, label kv_label UNIQUE, name text) WITH (autovacuum_enabled = off);
INSERT INTO kv_labelled SELECT i, ('l' || i)::kv_label, 'kind ' || i FROM generate_series(1, 100) i;
CREATE TABLE kv_known WITH (autovacuum_enabled = off) AS SELECT kind_id AS id, ('l' || kind_id)::kv_label AS label, v FROM kv_fact;
ALTER TABLE kv_known ADD FOREIGN KEY (label) REFERENCES kv_labelled (label);
ANALYZE kv_labelled, kv_known;
SELECT c.* FROM compare('SELECT v FROM kv_known f JOIN kv_labelled k ON k.id = f.id AND k.label = f.label WHERE name = ''kind 1''') c;
DROP TABLE kv_known, kv_labelled;
DROP TYPE kv_label;
-- keys that are NULL, or there several times
CREATE TABLE kv_tag (id int, tag text) WITH (autovacuum_enabled = off);
INSERT INTO kv_tag SELECT nullif(i % 50, 0), 'tag ' || i % 7 FROM generate_series(1, 90) i;
INSERT INTO kv_tag VALUES (1, 'tag 9'), (1, 'tag 9'), (NULL, 'tag 9'), (60, 'tag 9');
ANALYZE kv_tag;
SELECT c.* FROM compare('SELECT v FROM kv_fact JOIN kv_tag ON id = kind_id WHERE tag = ''tag 9''') c;
-- a calendar with many more days than the facts are of
CREATE TABLE kv_day (day date PRIMARY KEY, year int) WITH (autovacuum_enabled = off);
INSERT INTO kv_day SELECT d, extract(year FROM d) FROM generate_series(date '2000-01-01', date '2009-12-31', interval '1 day') d;
CREATE TABLE kv_sale (day date, v int) WITH (autovacuum_enabled = off);
INSERT INTO kv_sale SELECT date '2004-01-01' + i % 366, i FROM generate_series(1, 300000) i;
ANALYZE kv_day, kv_sale;
SELECT c.looked BETWEEN 200000 AND 400000 AS looked, c."not" < 50000 AS "not", c.really, c.same
	FROM compare('SELECT v FROM kv_sale s JOIN kv_day d ON d.day = s.day WHERE year = 2004') c;
-- months of all its years are more days than the facts are of, and most are none of these
ALTER TABLE kv_day ADD month int, ADD number int;
UPDATE kv_day SET month = extract(month FROM day), number = day - date '2000-01-01';
CREATE TABLE kv_numbered WITH (autovacuum_enabled = off) AS
	SELECT (day - date '2000-01-01')::int8 AS number, v FROM kv_sale;
VACUUM ANALYZE kv_day, kv_numbered;
SELECT c.looked BETWEEN low AND high AS looked, c.really, c.same, q FROM (VALUES
	(12000, 50000, 'SELECT v FROM kv_sale s JOIN kv_day d ON d.day = s.day WHERE month = 11'),
	(12000, 50000, 'SELECT v FROM kv_numbered s JOIN kv_day d ON d.number = s.number WHERE month = 11'),
	(0, 5000, 'SELECT v FROM kv_sale s JOIN kv_day d ON d.day = s.day WHERE year = 2003'),
	(12000, 50000, 'SELECT v FROM kv_sale s JOIN kv_day d ON d.day = s.day WHERE year < 2005 AND month = 7'))
	v(low, high, q), compare(q) c;
-- not where the calendar once more, of which nothing is looked up, leads to as many facts: that would seem to
-- be the way of few rows
CREATE FUNCTION kv_rows(looks text) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gpuhash.enable_key_values', looks, true);
	RETURN plan_number('SELECT s.v FROM kv_sale s JOIN kv_day d ON d.day = s.day
		JOIN kv_day e ON e.month = d.month JOIN kv_numbered n ON n.number = e.number
		WHERE d.year = 2004', 'Plan Rows');
END $$;
SELECT kv_rows('on') = kv_rows('off') AS "not looked up";
DROP FUNCTION kv_rows(text);
-- the costs of an index ask for statistics in a way of their own
CREATE INDEX ON kv_fact USING brin (v);
CREATE INDEX ON kv_fact (kind_id);
CREATE INDEX ON kv_kind USING brin (id, weight);
SELECT c.* FROM compare('SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = ''kind 1'' AND v BETWEEN 10 AND 2000 AND weight < 50 AND id < 60') c;
-- a function that is stable has its value when the query is planned, as in PostgreSQL's own estimates
SET gpuhash_test.kind = 'kind 1';
SELECT c.* FROM compare('SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = current_setting(''gpuhash_test.kind'')') c;
-- not where the value is known only when the query runs, a condition may fail, or is a user's
CREATE FUNCTION seen(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE 'seen'; RETURN $1; END $$;
SELECT c.looked = c."not" AS "not looked up", c.really, q FROM unnest(ARRAY[
	'SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = (SELECT min(name) FROM kv_kind)',
	'SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = ''kind 1'' AND 100 / weight > 0',
	'SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = ''kind 1'' AND weight + random() > 0']) q, compare(q) c;
SELECT plan_number('SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE seen(name) = ''kind 1''', 'Plan Rows');
SET plan_cache_mode = force_generic_plan;
PREPARE of_name AS SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = $1;
SELECT plan_number('EXECUTE of_name(''kind 1'')', 'Plan Rows');
SET plan_cache_mode = force_custom_plan;
SELECT plan_number('EXECUTE of_name(''kind 1'')', 'Plan Rows');
RESET plan_cache_mode;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT plan_number('SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = ''kind 1''', 'Plan Rows');
SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock' AND relation = 'kv_kind'::regclass;
COMMIT;
-- nor where the user may not read the rows
CREATE ROLE gpuhash_kv;
GRANT SELECT ON kv_fact TO gpuhash_kv;
GRANT SELECT (id) ON kv_kind TO gpuhash_kv;
CREATE VIEW kv_view AS SELECT v, name FROM kv_fact JOIN kv_kind ON id = kind_id;
GRANT SELECT ON kv_view TO gpuhash_kv;
SET ROLE gpuhash_kv;
SELECT plan_number('SELECT v FROM kv_fact JOIN kv_kind ON kv_kind.id = kind_id WHERE kv_kind.id BETWEEN 1 AND 2', 'Plan Rows') < 5000 AS "not looked up";
SELECT plan_number('SELECT v FROM kv_view WHERE name = ''kind 1''', 'Plan Rows') AS "the owner may";
RESET ROLE;
GRANT SELECT ON kv_kind TO gpuhash_kv;
ALTER TABLE kv_kind ENABLE ROW LEVEL SECURITY;
CREATE POLICY only_late ON kv_kind TO gpuhash_kv USING (id < 50);
SET ROLE gpuhash_kv;
SELECT plan_number('SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = ''kind 1''', 'Plan Rows') < 5000 AS "not looked up";
RESET ROLE;
-- a sample; a table that is large beside the other one; wide keys, and conditions on what is stored aside
SELECT plan_number('SELECT v FROM kv_fact JOIN kv_kind TABLESAMPLE system (100) ON id = kind_id WHERE name = ''kind 1''', 'Plan Rows') < 5000 AS "not of a sample";
CREATE TABLE kv_large WITH (autovacuum_enabled = off) AS SELECT i AS id, 'kind ' || i AS name FROM generate_series(1, 3000) i;
CREATE TABLE kv_wide (id int, key text, name text, body text) WITH (autovacuum_enabled = off);
ALTER TABLE kv_wide ALTER body SET STORAGE external;
INSERT INTO kv_wide SELECT i, 'c' || i, 'kind ' || i, repeat('b', 5000) FROM generate_series(1, 100) i;
CREATE TABLE kv_wide_key (key text, name text) WITH (autovacuum_enabled = off);
INSERT INTO kv_wide_key SELECT CASE i WHEN 7 THEN repeat('w', 3000) ELSE 'c' || i END, 'kind ' || i FROM generate_series(1, 100) i;
ANALYZE kv_large, kv_wide, kv_wide_key;
SELECT c.looked = c."not" AS "not looked up", c.really, c.same FROM compare('SELECT v FROM kv_fact JOIN kv_large ON id = kind_id WHERE name = ''kind 1''') c;
SELECT c.looked = c."not" AS "not looked up", c.really, c.same FROM compare('SELECT v FROM kv_fact JOIN kv_wide ON id = kind_id WHERE name = ''kind 1'' AND body LIKE ''b%''') c;
SELECT c.looked, c.really, c.same FROM compare('SELECT v FROM kv_fact JOIN kv_wide_key ON key = kind_code WHERE name = ''kind 1''') c;
SELECT c.looked = c."not" AS "not looked up", c.really, c.same FROM compare('SELECT v FROM kv_fact JOIN kv_wide_key ON key = kind_code WHERE name IN (''kind 1'', ''kind 7'')') c;
-- a key that is not unique: the hash table is of the few rows that are left
CREATE TABLE kv_region WITH (autovacuum_enabled = off) AS SELECT i AS id, CASE WHEN i <= 20 THEN 'hot' ELSE 'r' || i % 10 END AS region FROM generate_series(1, 600) i;
CREATE TABLE kv_visit WITH (autovacuum_enabled = off) AS SELECT CASE WHEN i % 10 < 9 THEN 1 + i % 20 ELSE 1 + i * 7 % 600 END AS id, i AS v FROM generate_series(1, 60000) i;
CREATE INDEX ON kv_visit (id);
VACUUM ANALYZE kv_region, kv_visit;
SELECT c.looked BETWEEN 45000 AND 65000 AS looked, c.really, c.same FROM compare('SELECT v FROM kv_visit v JOIN kv_region r ON r.id = v.id WHERE region = ''hot''') c;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT * FROM lines_of_plan('SELECT sum(v) FROM kv_visit v JOIN kv_region r ON r.id = v.id WHERE region = ''hot''', ' on kv_');
RESET enable_nestloop;
RESET enable_mergejoin;
-- rows of other transactions count as the query sees them
BEGIN;
UPDATE kv_kind SET name = 'other' WHERE id = 1;
SELECT plan_number('SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = ''kind 1''', 'Plan Rows') < 5000 AS few,
	plan_number('SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = ''other''', 'Plan Rows') AS many;
ROLLBACK;
-- a search of joins at random is left alone
SET geqo_threshold = 2;
SELECT plan_number('SELECT v FROM kv_fact JOIN kv_kind ON id = kind_id WHERE name = ''kind 1''', 'Plan Rows') < 5000 AS "not looked up";
RESET geqo_threshold;
DROP VIEW kv_view;
DROP TABLE kv_fact, kv_kind, kv_tag, kv_day, kv_sale, kv_numbered, kv_large, kv_wide, kv_wide_key, kv_region,
	kv_visit;
DROP FUNCTION compare(text), seen(text);
DROP ROLE gpuhash_kv;
