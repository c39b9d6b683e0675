-- The access method gpuhash has the operator classes and families of btree.
SET client_min_messages = warning;
SET gpuhash.enabled = off;
SELECT amtype, amhandler FROM pg_am WHERE amname = 'gpuhash';
-- Families, classes and members of an access method, by name.
CREATE VIEW families AS
    SELECT a.amname, f.opfname FROM pg_opfamily f JOIN pg_am a ON a.oid = f.opfmethod
    WHERE a.amname = 'gpuhash' OR f.opfnamespace = 'pg_catalog'::regnamespace;
CREATE VIEW classes AS
    SELECT a.amname, f.opfname, c.opcname, c.opcintype, c.opcdefault
    FROM pg_opclass c JOIN pg_opfamily f ON f.oid = c.opcfamily JOIN pg_am a ON a.oid = c.opcmethod;
CREATE VIEW members AS
    SELECT a.amname, f.opfname, o.amoplefttype AS l, o.amoprighttype AS r, o.amopstrategy AS n, o.amopopr::oid AS what
    FROM pg_amop o JOIN pg_opfamily f ON f.oid = o.amopfamily JOIN pg_am a ON a.oid = f.opfmethod
    UNION ALL
    SELECT a.amname, f.opfname, p.amproclefttype, p.amprocrighttype, 100 + p.amprocnum, p.amproc::oid
    FROM pg_amproc p JOIN pg_opfamily f ON f.oid = p.amprocfamily JOIN pg_am a ON a.oid = f.opfmethod;
-- What of them differs between btree and gpuhash.
CREATE FUNCTION differences(view text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT to_jsonb(d)::text FROM (
        SELECT (to_jsonb(x) - ''amname'')::text, count(*) FROM %I x WHERE amname IN (''btree'', ''gpuhash'')
        GROUP BY 1 HAVING array_agg(x.amname::text ORDER BY x.amname) <> ARRAY[''btree'', ''gpuhash'']) d', view);
END $$;
SELECT * FROM differences('families');
SELECT * FROM differences('classes');
SELECT * FROM differences('members');
SELECT count(*) > 40 AS many, bool_and(amvalidate(c.oid)) AS valid
FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod WHERE amname = 'gpuhash';
SELECT count(*) > 270 AS many FROM members WHERE amname = 'gpuhash' AND n < 100;
-- all belong to the extension
SELECT count(*) FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
WHERE amname = 'gpuhash' AND NOT EXISTS (SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
    WHERE d.classid = 'pg_opclass'::regclass AND d.objid = c.oid AND d.deptype = 'e' AND e.extname = 'gpuhash');
-- nothing to add
SELECT * FROM gpuhash_add_operator_classes();

-- From 18 on the planner looks at the families of all access methods that sort: equalities of different types are put
-- together as ever.
CREATE TABLE x4 (k int);
CREATE TABLE x8 (k bigint);
CREATE TABLE x2 (k int2);
SELECT count(*) FROM (SELECT plan_lines($$SELECT * FROM x4 JOIN x8 USING (k) JOIN x2 USING (k) WHERE x4.k = 5$$, pattern) AS n
    FROM unnest(ARRAY['%(k = 5)%', '%(k = ''5''::bigint)%', '%(k = ''5''::smallint)%']) pattern) p WHERE n > 0;
SET enable_hashjoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT * FROM x4 JOIN x8 USING (k) JOIN x2 USING (k) ORDER BY 1;
RESET enable_hashjoin;
RESET enable_nestloop;
DROP TABLE x4, x8, x2;

-- Operator classes that a user adds: a type's own in a schema of its own, one for a type of PostgreSQL's, and a
-- member of a family of PostgreSQL's.
CREATE SCHEMA "a b";
CREATE TYPE "a b"."p q" AS (x int, "y Z" int);
CREATE FUNCTION "a b".before("a b"."p q", "a b"."p q") RETURNS boolean IMMUTABLE STRICT LANGUAGE internal AS 'record_lt';
CREATE FUNCTION "a b".not_after("a b"."p q", "a b"."p q") RETURNS boolean IMMUTABLE STRICT LANGUAGE internal AS 'record_le';
CREATE FUNCTION "a b".same("a b"."p q", "a b"."p q") RETURNS boolean IMMUTABLE STRICT LANGUAGE internal AS 'record_eq';
CREATE FUNCTION "a b".not_before("a b"."p q", "a b"."p q") RETURNS boolean IMMUTABLE STRICT LANGUAGE internal AS 'record_ge';
CREATE FUNCTION "a b".after("a b"."p q", "a b"."p q") RETURNS boolean IMMUTABLE STRICT LANGUAGE internal AS 'record_gt';
CREATE FUNCTION "a b"."Order"("a b"."p q", "a b"."p q") RETURNS int IMMUTABLE STRICT LANGUAGE internal AS 'btrecordcmp';
CREATE OPERATOR "a b".<# (FUNCTION = "a b".before, LEFTARG = "a b"."p q", RIGHTARG = "a b"."p q");
CREATE OPERATOR "a b".<=# (FUNCTION = "a b".not_after, LEFTARG = "a b"."p q", RIGHTARG = "a b"."p q");
CREATE OPERATOR "a b".=# (FUNCTION = "a b".same, LEFTARG = "a b"."p q", RIGHTARG = "a b"."p q", COMMUTATOR = OPERATOR("a b".=#), MERGES);
CREATE OPERATOR "a b".>=# (FUNCTION = "a b".not_before, LEFTARG = "a b"."p q", RIGHTARG = "a b"."p q");
CREATE OPERATOR "a b".># (FUNCTION = "a b".after, LEFTARG = "a b"."p q", RIGHTARG = "a b"."p q");
CREATE OPERATOR CLASS "a b"."X ops" DEFAULT FOR TYPE "a b"."p q" USING btree AS
    OPERATOR 1 "a b".<#, OPERATOR 2 "a b".<=#, OPERATOR 3 "a b".=#, OPERATOR 4 "a b".>=#, OPERATOR 5 "a b".>#, FUNCTION 1 "a b"."Order"("a b"."p q", "a b"."p q");
-- a second class in the same family
CREATE OPERATOR CLASS "a b".more_ops FOR TYPE "a b"."p q" USING btree FAMILY "a b"."X ops" AS STORAGE "a b"."p q";
-- not to be mixed up with the copy of PostgreSQL's own, which has that name and lies in this schema
CREATE OPERATOR CLASS int4_ops FOR TYPE "a b"."p q" USING btree FAMILY "a b"."X ops" AS STORAGE "a b"."p q";
CREATE OPERATOR FAMILY public.integer_ops USING btree;
CREATE OPERATOR CLASS reverse_ops FOR TYPE int USING btree FAMILY public.integer_ops AS
    OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 btint4cmp(int, int);
CREATE FUNCTION int_is_text(int, text) RETURNS boolean IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1::text = $2';
CREATE OPERATOR =# (FUNCTION = int_is_text, LEFTARG = int, RIGHTARG = text);
ALTER OPERATOR FAMILY pg_catalog.integer_ops USING btree ADD OPERATOR 3 =# (int, text);
CREATE TABLE pairs (p "a b"."p q");
INSERT INTO pairs SELECT ROW(i * 7 % 500, 0)::"a b"."p q" FROM generate_series(1, 500) i;
CREATE INDEX pairs_p ON pairs USING gpuhash (p "a b"."X ops");
SELECT * FROM gpuhash_add_operator_classes();
SELECT * FROM gpuhash_add_operator_classes();
SELECT opfname, opcname, opcdefault FROM classes WHERE amname = 'gpuhash' AND opcintype = '"a b"."p q"'::regtype ORDER BY 2;
CREATE INDEX pairs_p ON pairs USING gpuhash (p);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT p FROM pairs WHERE p OPERATOR("a b".=#) ROW(9, 0)::"a b"."p q";
SELECT p FROM pairs WHERE p OPERATOR("a b".<#) ROW(3, 0)::"a b"."p q" ORDER BY p USING OPERATOR("a b".<#);
RESET enable_seqscan;
SET ROLE pg_monitor;
SELECT * FROM gpuhash_add_operator_classes();
RESET ROLE;
-- They are the user's, and go with what they are for.
ALTER OPERATOR FAMILY pg_catalog.integer_ops USING btree DROP OPERATOR 3 (int, text);
ALTER OPERATOR FAMILY public.integer_ops USING gpuhash DROP OPERATOR 3 (int, text);
DROP OPERATOR FAMILY public.integer_ops USING btree CASCADE;
DROP OPERATOR =# (int, text);
DROP FUNCTION int_is_text(int, text);
DROP TABLE pairs;
DROP OPERATOR CLASS public.int4_ops USING btree;
DROP SCHEMA "a b" CASCADE;
SELECT count(*) FROM classes WHERE amname = 'gpuhash' AND opcname IN ('X ops', 'more_ops');
SELECT * FROM differences('members');
-- Those of the extension stay.
DROP OPERATOR CLASS public.int4_ops USING gpuhash;
DROP ACCESS METHOD gpuhash;
DROP FUNCTION differences(text);
DROP VIEW families, classes, members;
