-- What plans cost where pages that an index leads to are in memory, and what is chosen (src/plan/in_memory.c).
LOAD 'gpuhash';
SET max_parallel_workers_per_gather = 0;
-- A chain is charged for less where PostgreSQL's plan may have more rows than it expects, of two columns that
-- are a key: not for as little as if its pages, which are in memory, were taken off once more.
CREATE TABLE im_part (a int, b int, k int, PRIMARY KEY (a, b)) WITH (autovacuum_enabled = off);
INSERT INTO im_part SELECT i / 4, 1 + i * 7 % 1000, i * 37 % 20000 FROM generate_series(0, 19999) i;
CREATE TABLE im_line (a int, b int, o int, v int, note text) WITH (autovacuum_enabled = off);
INSERT INTO im_line SELECT i % 20000 / 4, 1 + i % 20000 * 7 % 1000, i * 11 % 30000, i % 100, repeat('x', 60)
	FROM generate_series(0, 199999) i;
CREATE INDEX ON im_line (a, b);
CREATE TABLE im_order (id int PRIMARY KEY, g int, note text) WITH (autovacuum_enabled = off);
INSERT INTO im_order SELECT i, i % 20, repeat('y', 60) FROM generate_series(0, 29999) i;
VACUUM ANALYZE im_part, im_line, im_order;
SELECT k, plan_lines(format('SELECT g, sum(v) FROM im_part p, im_line l, im_order o
	WHERE k < %s AND l.a = p.a AND l.b = p.b AND o.id = l.o GROUP BY g', k), '%GpuHashAggregate%') AS chains
	FROM unnest(ARRAY[50, 200, 2000]) k;
-- What conditions of an index's rows cost is not for pages: a subquery takes as long wherever these are.
CREATE TABLE im_item (key int PRIMARY KEY, kind int, price numeric(8, 2)) WITH (autovacuum_enabled = off);
INSERT INTO im_item SELECT i, i % 10, i % 97 FROM generate_series(1, 4000) i;
CREATE TABLE im_sale (item int, day int, v int) WITH (autovacuum_enabled = off);
INSERT INTO im_sale SELECT 1 + i % 4000, i % 3000, i FROM generate_series(1, 60000) i;
CREATE INDEX ON im_sale (day);
VACUUM ANALYZE im_item, im_sale;
SELECT plan_lines('SELECT day, count(*) FROM im_sale s JOIN im_item i ON i.key = s.item WHERE s.day = 5
	AND i.price > (SELECT avg(j.price) FROM im_item j WHERE j.kind = i.kind) GROUP BY day', '%SubPlan%') AS subplans;
DROP TABLE im_part, im_line, im_order, im_item, im_sale;
