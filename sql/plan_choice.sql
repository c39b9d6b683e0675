-- What the planner takes by itself: gpuhash stands in for what PostgreSQL does alike, and changes no other choice.
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
SET jit = off;

-- plans are compared, and must be made from the same statistics
CREATE TABLE pch_fact WITH (autovacuum_enabled = off) AS
	SELECT i AS id, i * 7919 % 2000 AS d1, (i * 104729::bigint % 5000)::int AS d2, i / 100 AS d3, i % 100 AS v, 'note ' || i AS note
	FROM generate_series(1, 100000) i;
CREATE TABLE pch_d1 WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 400 AS a, 'one ' || i AS name FROM generate_series(0, 1999) i;
CREATE TABLE pch_d2 WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 1000 AS a, 'two ' || i AS name FROM generate_series(0, 4999) i;
CREATE TABLE pch_d3 WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 200 AS a, 'three ' || i AS name FROM generate_series(0, 999) i;
CREATE INDEX ON pch_fact (d1);
CREATE INDEX ON pch_fact (d2);
CREATE INDEX ON pch_fact (id);
ALTER TABLE pch_d1 ADD PRIMARY KEY (id);
ALTER TABLE pch_d2 ADD PRIMARY KEY (id);
ALTER TABLE pch_d3 ADD PRIMARY KEY (id);
VACUUM ANALYZE pch_fact, pch_d1, pch_d2, pch_d3;

-- The nodes of a plan, from the top, with those of gpuhash under the names of what they stand in for, and its cost.
CREATE FUNCTION pch_shape(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	shape text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		IF line ~ 'cost=' THEN
			IF shape = '' THEN
				shape := substring(line FROM 'cost=\S+');
			END IF;
			line := regexp_replace(line, '^ *(->)? *|  \(cost=.*', '', 'g');
			line := replace(replace(line, 'Custom Scan (GpuHashScan)', 'Seq Scan'), 'Custom Scan (GpuHashJoin)', 'Hash Join');
			CONTINUE WHEN line = 'Hash';
			shape := shape || ', ' || line;
		END IF;
	END LOOP;
	RETURN shape;
END
$$;

-- Of these queries, in how many the plan is another one than PostgreSQL's; and how many have a node of gpuhash.
CREATE FUNCTION pch_others(queries text[], OUT others int, OUT taken int) LANGUAGE plpgsql AS $$
DECLARE
	query text;
	line text;
	native text;
BEGIN
	others := 0;
	taken := 0;
	FOREACH query IN ARRAY queries LOOP
		SET LOCAL gpuhash.enabled = off;
		native := pch_shape(query);
		SET LOCAL gpuhash.enabled = on;
		IF pch_shape(query) <> native THEN
			others := others + 1;
		END IF;
		FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
			IF line ~ 'GpuHash' THEN
				taken := taken + 1;
				EXIT;
			END IF;
		END LOOP;
	END LOOP;
END
$$;

-- an index or all of the table: where PostgreSQL goes from one to the other, so does the plan
SELECT others, taken > 0 AS some FROM pch_others(ARRAY(
	SELECT format('SELECT f.id, f.note FROM pch_fact f WHERE id < %s AND v < 90', n) FROM generate_series(5000, 95000, 5000) n));
-- likewise a nested loop over an index, or a hash join
SELECT others, taken > 0 AS some FROM pch_others(ARRAY(
	SELECT format('SELECT f.note, a.name FROM pch_fact f JOIN pch_d1 a ON a.id = f.d1 WHERE a.a < %s AND f.v < %s', n, v)
	FROM generate_series(1, 12) n, generate_series(5, 95, 30) v));
-- and the order of joins
SELECT others, taken > 0 AS some FROM pch_others(ARRAY(
	SELECT format('SELECT f.note, a.name, b.name, c.name FROM pch_fact f JOIN pch_d1 a ON a.id = f.d1 JOIN pch_d2 b ON b.id = f.d2
		JOIN pch_d3 c ON c.id = f.d3 WHERE a.a < %s AND b.a < %s AND c.a < %s AND f.v < 95', x, y, z)
	FROM unnest('{2,10,50}'::int[]) x, unnest('{2,20,200}'::int[]) y, unnest('{5,60}'::int[]) z));
-- also where it is searched at random
SET geqo_threshold = 3;
SELECT others, taken > 0 AS some FROM pch_others(ARRAY(
	SELECT format('SELECT f.note, a.name, b.name, c.name FROM pch_fact f JOIN pch_d1 a ON a.id = f.d1 JOIN pch_d2 b ON b.id = f.d2
		JOIN pch_d3 c ON c.id = f.d3 JOIN pch_d1 a2 ON a2.id = c.a JOIN pch_d2 b2 ON b2.id = a.a JOIN pch_d3 c2 ON c2.id = b.a
		WHERE a.a < %s AND b.a < %s AND c.a < %s AND f.v < 95 AND a2.name <> b2.name AND c2.a <> 7', x, y, z)
	FROM unnest('{2,10,50}'::int[]) x, unnest('{2,20,200}'::int[]) y, unnest('{5,60}'::int[]) z));
RESET geqo_threshold;

-- where an outer row's key is that of many inner ones, PostgreSQL hashes the other side: a join of ours does not change the order for that
CREATE TABLE pch_many WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 100 AS v FROM generate_series(1, 30000) i;
CREATE TABLE pch_skewed WITH (autovacuum_enabled = off) AS SELECT i AS id, CASE WHEN i % 10 = 0 THEN 1 ELSE i END AS many, i % 200 AS v FROM generate_series(1, 30000) i;
CREATE TABLE pch_more WITH (autovacuum_enabled = off) AS SELECT i AS id, i AS many, i % 100 AS v FROM generate_series(1, 30000) i;
CREATE INDEX ON pch_more (many);
ALTER TABLE pch_many ADD PRIMARY KEY (id);
VACUUM ANALYZE pch_many, pch_skewed, pch_more;
SELECT others FROM pch_others(ARRAY['SELECT m.v, s.id FROM pch_many m, pch_skewed s, pch_more o WHERE m.id = s.many AND m.v < 50 AND s.v < 2 AND o.many = m.id AND o.v < 10']);
DROP TABLE pch_many, pch_skewed, pch_more;

-- groups that do not fit into memory: files are written and read from end to end, and hardly where rows of a group lie together
SET work_mem = '64kB';
EXPLAIN (COSTS OFF) SELECT d3, id / 4, count(*), sum(v) FROM pch_fact GROUP BY 1, 2;
EXPLAIN (COSTS OFF) SELECT id, sum(v) FROM pch_fact GROUP BY 1;
RESET work_mem;

-- a bitmap of few rows is not given up for groups that are made of all pages
EXPLAIN (COSTS OFF) SELECT d1, count(*) FROM pch_fact WHERE d2 BETWEEN 5 AND 30 GROUP BY 1;

-- plans that were kept go when gpuhash is switched off, and when it is switched on again
SET plan_cache_mode = force_generic_plan;
PREPARE pch_kept AS SELECT d1, count(*) FROM pch_fact GROUP BY 1;
EXPLAIN (COSTS OFF) EXECUTE pch_kept;
SET gpuhash.enabled = off;
EXPLAIN (COSTS OFF) EXECUTE pch_kept;
RESET gpuhash.enabled;
EXPLAIN (COSTS OFF) EXECUTE pch_kept;
DEALLOCATE pch_kept;
RESET plan_cache_mode;

-- rows of any parallel plan are grouped by its processes
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE pch_names AS SELECT md5(i::text) AS name, 'kind ' || i % 20 AS kind FROM generate_series(1, 20000) i;
-- six rows a name: with many more, 19 would make groups of them below the join
CREATE TABLE pch_uses AS SELECT md5((i % 20000 + 1)::text) AS name, i % 10 AS n FROM generate_series(1, 120000) i;
VACUUM ANALYZE pch_names, pch_uses;
EXPLAIN (COSTS OFF) SELECT kind, count(*), sum(n) FROM pch_uses JOIN pch_names USING (name) GROUP BY kind;
CREATE TABLE pch_answer AS SELECT kind, count(*), sum(n) FROM pch_uses JOIN pch_names USING (name) GROUP BY kind;
SET gpuhash.enabled = off;
SELECT count(*) AS groups, sum(count) AS rows, sum(sum) AS n FROM pch_answer;
SELECT count(*) AS wrong FROM (
	(TABLE pch_answer EXCEPT SELECT kind, count(*), sum(n) FROM pch_uses JOIN pch_names USING (name) GROUP BY kind)
	UNION ALL (SELECT kind, count(*), sum(n) FROM pch_uses JOIN pch_names USING (name) GROUP BY kind EXCEPT TABLE pch_answer)) x;

DROP TABLE pch_fact, pch_d1, pch_d2, pch_d3, pch_names, pch_uses, pch_answer;
DROP FUNCTION pch_shape, pch_others;
