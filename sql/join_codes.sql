-- Joins whose keys are no whole numbers, which an aggregate looks up by a code of their values.
LOAD 'gpuhash';
SET client_min_messages = warning;
-- (where a device does it, it makes tables of its own)
SET gpuhash.engine = 'cpu';
-- (a build without ICU has no collation under which different texts are equal)
CREATE FUNCTION code_letters() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    CREATE COLLATION code_letters (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    RETURN 'code_letters';
EXCEPTION WHEN feature_not_supported OR undefined_object OR invalid_parameter_value THEN
    RETURN '"C"';
END $$;
SELECT code_letters() AS code_letters \gset
CREATE DOMAIN code_name AS text CHECK (length(VALUE) < 100);
CREATE TYPE code_kind AS ENUM ('a', 'b', 'c');
CREATE TABLE code_facts (id int, u uuid, t text, v varchar(60), c char(8), b bytea, nm name, n numeric(12, 2), any_n numeric, mac macaddr, dom code_name, f8 float8, yes bool, i8 int8,
    kind code_kind, q int);
INSERT INTO code_facts SELECT i, md5(x::text)::uuid, 'text ' || x, repeat('v', x % 30) || x, 'c' || x || repeat(' ', x % 3), decode(md5(x::text), 'hex'), 'name ' || x, x * 1.25, x / 4.0,
    ('08:00:2b:01:' || lpad(to_hex(x / 256), 2, '0') || ':' || lpad(to_hex(x % 256), 2, '0'))::macaddr, 'd' || x, x / 3.0, x % 2 = 0, x * 1000000000000, ('{a,b,c}'::code_kind[])[x % 3 + 1], i % 9
    FROM (SELECT i, CASE WHEN i % 17 > 0 THEN i * 7 % 1500 END AS x FROM generate_series(1, 9000) i) s;
-- a row a key; several, and some without; none
CREATE TABLE code_one (u uuid PRIMARY KEY, t text, v varchar, c char(12), b bytea, nm name, n numeric(10, 2), any_n numeric, mac macaddr, dom code_name, f8 float8, yes bool, i8 int8, kind code_kind, p int);
INSERT INTO code_one SELECT md5(x::text)::uuid, 'text ' || x, repeat('v', x % 30) || x, 'c' || x, decode(md5(x::text), 'hex'), 'name ' || x, x * 1.25, x / 4.00,
    ('08:00:2b:01:' || lpad(to_hex(x / 256), 2, '0') || ':' || lpad(to_hex(x % 256), 2, '0'))::macaddr, 'd' || x, x / 3.0, x % 2 = 0, x * 1000000000000, ('{a,b,c}'::code_kind[])[x % 3 + 1], x % 100
    FROM generate_series(0, 1200) x;
CREATE TABLE code_many AS SELECT CASE WHEN p % 11 > 0 THEN u END AS u, CASE WHEN p % 13 > 0 THEN t END AS t, c, n, i8, f8, yes, p + r AS p, r FROM code_one, generate_series(1, 3) r WHERE p < 70;
CREATE TABLE code_none AS TABLE code_one WITH NO DATA;
ANALYZE code_facts, code_one, code_many, code_none;

-- What EXPLAIN says of how rows came, and of the joins.
CREATE FUNCTION code_lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    PERFORM set_config('gpuhash.force_offload', 'on', true);
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        IF line ~ '(Gpu|Steps|Rows Handed Back|Input Rows|Join Type|Hash Cond|Join Filter|Seq Scan)' THEN
            -- up to 15 some equalities have their sides the other way round
            line := replace(line, '(f.u = o.u)', '(o.u = f.u)');
            RETURN NEXT regexp_replace(line, '(rows=\d+)\.00', '\1');
        END IF;
    END LOOP;
END $$;
SELECT code_lines('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_one o ON o.u = f.u GROUP BY f.q');
SELECT code_lines('SELECT f.q, count(*), sum(p) FROM code_facts f LEFT JOIN code_many m ON m.t = f.t AND m.p > f.q GROUP BY f.q');
SELECT code_lines('SELECT f.q, count(*) FROM code_facts f WHERE NOT EXISTS (SELECT FROM code_many m WHERE m.u = f.u AND m.i8 = f.i8) GROUP BY f.q');
-- a join below, and two keys in front of each other's probe
SELECT code_lines('SELECT f.q, count(*), sum(m.p) FROM code_facts f JOIN code_one o ON o.v = f.v JOIN code_many m ON m.t = o.t WHERE f.id % 3 = 1 GROUP BY f.q');

CREATE TEMP TABLE code_queries (position serial, query text);
INSERT INTO code_queries (query) SELECT format('SELECT f.q, count(*), sum(p), sum(f.id) FROM code_facts f JOIN code_one o ON o.%1$s = f.%1$s GROUP BY f.q', c)
    FROM unnest('{u,t,v,c,b,nm,n,any_n,mac,dom,f8}'::text[]) c;
INSERT INTO code_queries (query) VALUES
    -- types of which one side is made the other's
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_one o ON o.t = f.v GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_one o ON o.v = f.t GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_one o ON o.dom = f.t GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_one o ON o.c = f.t GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_one o ON o.nm = f.t GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_one o ON o.any_n = f.n GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_one o ON o.n = f.any_n GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_one o ON lower(o.t) = f.t GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_one o ON o.t = lower(f.t) GROUP BY f.q'),
    -- collations
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_one o ON o.t COLLATE "C" = f.t GROUP BY f.q'),
    -- several columns
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_many m ON m.u = f.u AND m.t = f.t GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_many m ON m.yes = f.yes AND m.c = f.c AND m.f8 = f.f8 GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_many m ON m.r = f.q AND m.n = f.n GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_one o ON o.kind = f.kind AND o.t = f.t GROUP BY f.q'),
    -- each kind of join
    ('SELECT f.q, count(*), sum(p), count(p) FROM code_facts f LEFT JOIN code_one o ON o.u = f.u GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p), count(p) FROM code_facts f LEFT JOIN code_many m ON m.t = f.t AND m.p > f.q * 10 GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p), count(p) FROM code_facts f LEFT JOIN code_many m ON m.t = f.t WHERE coalesce(m.p, f.q) % 3 = 1 GROUP BY f.q'),
    ('SELECT f.q, count(*) FROM code_facts f WHERE EXISTS (SELECT FROM code_many m WHERE m.u = f.u) GROUP BY f.q'),
    ('SELECT f.q, count(*) FROM code_facts f WHERE EXISTS (SELECT FROM code_many m WHERE m.u = f.u AND m.p > f.q * 10) GROUP BY f.q'),
    ('SELECT f.q, count(*) FROM code_facts f WHERE NOT EXISTS (SELECT FROM code_many m WHERE m.u = f.u) GROUP BY f.q'),
    ('SELECT f.q, count(*) FROM code_facts f WHERE NOT EXISTS (SELECT FROM code_many m WHERE m.c = f.c AND m.p > f.q * 10) GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p) FROM code_facts f RIGHT JOIN code_one o ON o.u = f.u GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(p) FROM code_facts f FULL JOIN code_many m ON m.t = f.t GROUP BY f.q'),
    ('SELECT f.q, count(*) FROM code_facts f LEFT JOIN code_none z ON z.u = f.u GROUP BY f.q'),
    ('SELECT f.q, count(*) FROM code_facts f JOIN code_none z ON z.t = f.t GROUP BY f.q'),
    -- keys of inner columns, inner sides that are joins or other rows, and keys that are read behind the join
    ('SELECT f.q, count(*), sum(m.p) FROM code_facts f JOIN code_one o ON o.v = f.v JOIN code_many m ON m.t = o.t GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(m.p) FROM code_facts f LEFT JOIN code_many m ON m.u = f.u LEFT JOIN code_one o ON o.t = m.t LEFT JOIN code_many m2 ON m2.c = o.c AND m2.p <> m.p GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(s.p) FROM code_facts f JOIN (SELECT o.t, m.p FROM code_one o JOIN code_many m ON m.u = o.u) s ON s.t = f.t GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(s.p) FROM code_facts f JOIN (SELECT t, sum(p) p FROM code_many GROUP BY t) s ON s.t = f.t GROUP BY f.q'),
    ('SELECT f.q, count(*), sum(s.p) FROM code_facts f LEFT JOIN (SELECT u, max(p) p FROM code_many GROUP BY u) s ON s.u = f.u GROUP BY f.q'),
    ('SELECT o.t, f.v, count(*) FROM code_facts f JOIN code_one o ON o.t = f.t GROUP BY o.t, f.v'),
    ('SELECT f.q, count(DISTINCT o.u), min(o.p) FROM code_facts f JOIN code_one o ON o.u = f.u AND o.p < 20 GROUP BY f.q'),
    -- runs once more
    ('SELECT g.i, s.* FROM generate_series(1, 4) g(i), LATERAL (SELECT count(*), sum(m.p) FROM code_facts f LEFT JOIN code_many m ON m.t = f.t AND m.p > f.q + g.i) s');
SELECT q.position, c.offloaded, c.result, c.same FROM code_queries q, LATERAL compare_aggregate(q.query) c ORDER BY q.position;
SELECT c.same FROM compare_aggregate($$SELECT f.q, count(*), sum(p) FROM code_facts f JOIN (SELECT upper(t) AS t, p FROM code_one) o ON o.t = f.t COLLATE $$ || :'code_letters' || $$ GROUP BY f.q$$) c;
SELECT c.same FROM compare_aggregate($$SELECT f.q, count(*), sum(p) FROM code_facts f JOIN code_one o ON o.t = f.t COLLATE $$ || :'code_letters' || $$ GROUP BY f.q$$) c;
SELECT count(*), count(*) FILTER (WHERE c.same = 'same') AS same FROM code_queries q, LATERAL compare_aggregate(q.query, 2) c;

-- Keys that are equal in different forms, and those that are not although they look alike.
CREATE TABLE code_forms (t text, c char(8), f8 float8, f4 float4, n numeric(8, 3), k text);
INSERT INTO code_forms VALUES ('a', 'a', 0, 0, 1, 'x'), ('a ', 'a ', '-0', '-0', 1.000, 'x'), (' a', ' a', 'NaN', 'NaN', 1.001, 'x'), ('', '', 'Infinity', '-Infinity', 0, 'x'), (' ', ' ', 0.1, 0.1, -1, 'x'),
    ('abcdefgh', 'abcdefgh', 1, 1, 10, 'x'), ('abcdefg', 'abcdefg', -1, -1, 100, 'x'), (E'abcdefg\t', E'abcdefg\t', 2, 2, 0.001, 'x'), (NULL, NULL, NULL, NULL, NULL, 'x');
ANALYZE code_forms;
SELECT format('a.%1$s = b.%1$s', key) AS key, c.result, c.same FROM unnest('{t,c,n}'::text[]) key,
    LATERAL compare_aggregate(format('SELECT a.t AS a, b.t AS b, count(*) FROM code_forms a JOIN code_forms b ON a.%1$s = b.%1$s GROUP BY a.t, b.t', key)) c;
SELECT a || ' = ' || b AS key, c.result, c.same FROM (VALUES ('a.f8', 'b.f8'), ('a.f4', 'b.f4'), ('a.f8', 'b.f4'), ('a.c', 'b.c')) v(a, b),
    LATERAL compare_aggregate(format('SELECT a.t AS a, b.t AS b, count(*) FROM code_forms a JOIN code_forms b ON a.k = b.k AND %s = %s GROUP BY a.t, b.t', a, b)) c;

-- Different keys of one code.
CREATE TABLE code_same (u uuid, b bytea, p int);
INSERT INTO code_same SELECT u::uuid, decode(replace(u, '-', ''), 'hex'), p FROM unnest('{31313233343536373cee84a85c96ae85,3231323334353637b5244306bfb43f46,333132333435363754fb51f2cf23acd7,34313233343536377c4609c5c70aa2ba,3531323334353637d20e52e4b4603e88,30313233343536373839616263646566}'::text[]) WITH ORDINALITY x(u, p);
ANALYZE code_same;
SELECT c.result, c.same FROM compare_aggregate('SELECT a.p, count(*), sum(b.p) FROM code_same a JOIN code_same b ON a.u = b.u GROUP BY a.p') c;
SELECT c.result, c.same FROM compare_aggregate('SELECT a.p, count(*), sum(b.p) FROM code_same a LEFT JOIN code_same b ON a.b = b.b AND b.p > 2 GROUP BY a.p') c;
SELECT c.result, c.same FROM compare_aggregate('SELECT a.p, count(*) FROM code_same a WHERE EXISTS (SELECT FROM code_same b WHERE a.u = b.u AND b.p % 2 = 0) GROUP BY a.p') c;
SELECT c.result, c.same FROM compare_aggregate('SELECT a.p, count(*) FROM code_same a WHERE NOT EXISTS (SELECT FROM code_same b WHERE a.u = b.u AND b.p % 2 = 0) GROUP BY a.p') c;

-- Rows that are handed back: a key that is compressed, or elsewhere, or a number that engines do not hold.
UPDATE code_facts SET t = repeat('text', 3000) WHERE id % 500 = 9;
UPDATE code_facts SET v = NULL, t = (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 400) i) WHERE id % 500 = 10;
UPDATE code_facts SET n = 'NaN' WHERE id % 300 = 7;
UPDATE code_facts SET any_n = 1e60 WHERE id % 300 = 8;
UPDATE code_many SET t = repeat('text', 3000) WHERE p = 60;
ANALYZE code_facts, code_many;
SELECT code_lines('SELECT f.q, count(*), sum(p) FROM code_facts f LEFT JOIN code_one o ON o.n = f.n GROUP BY f.q');
SELECT q.position, c.result, c.same FROM code_queries q, LATERAL compare_aggregate(q.query) c WHERE c.same <> 'same' ORDER BY q.position;
SELECT count(*), count(*) FILTER (WHERE c.same = 'same') AS same FROM code_queries q, LATERAL compare_aggregate(q.query, 2) c;
-- (an inner key that lies elsewhere, or is none that they hold: the join returns its rows)
UPDATE code_many SET t = (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 400) i) WHERE p = 61;
UPDATE code_one SET n = 'NaN' WHERE p = 7;
SELECT q.position, c.result, c.same FROM code_queries q, LATERAL compare_aggregate(q.query) c WHERE c.same <> 'same' ORDER BY q.position;
-- joins that do not fit in memory return their rows
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q.query, c.same FROM code_queries q, LATERAL compare_aggregate(q.query) c WHERE c.same <> 'same' ORDER BY q.position;
SELECT q.query, c.same FROM code_queries q, LATERAL compare_aggregate(q.query, 2) c WHERE c.same <> 'same' ORDER BY q.position;
RESET work_mem;
RESET hash_mem_multiplier;
-- rows that come out of the join itself
SET gpuhash.enable_aggregate = off;
SELECT q.query, c.same FROM code_queries q, LATERAL compare_aggregate(q.query) c WHERE c.same <> 'same' ORDER BY q.position;
RESET gpuhash.enable_aggregate;

RESET gpuhash.engine;
DROP FUNCTION code_lines;
DROP TABLE code_facts, code_one, code_many, code_none, code_forms, code_same;
DROP DOMAIN code_name;
DROP TYPE code_kind;
DROP COLLATION IF EXISTS code_letters;
DROP FUNCTION code_letters;
