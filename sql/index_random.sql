-- Random values of many types, with random changes and VACUUM between: answers by indexes of the access method gpuhash, by
-- B-trees on a copy of the table, and by a Seq Scan are the same, and come in the same order.
SET client_min_messages = warning;
SET gpuhash.enabled = off;
SET max_parallel_workers_per_gather = 0;
SET enable_hashagg = off;
SELECT setseed(0.25);
CREATE TYPE mood AS ENUM ('sad', 'so so', 'ok', 'well', 'happy');
CREATE TYPE two AS (a int, b text);
-- A column's type, and its value for the number n.
CREATE TABLE kinds (name text, type text, value text, class text DEFAULT '');
INSERT INTO kinds (name, type, value) VALUES
    ('v_int2', 'int2', 'n % 300 - 100'), ('v_int4', 'int4', 'n * 7919 - 3000000'), ('v_int8', 'int8', 'n * 1000000007::int8 - 300000000000'),
    ('v_oid', 'oid', 'n * 4000000::int8 % 4294967296'), ('v_bool', 'bool', 'n % 2 = 0'), ('v_char', '"char"', 'chr(n % 50 + 60)'),
    ('v_float4', 'float4', 'CASE n % 50 WHEN 0 THEN ''NaN'' WHEN 1 THEN ''-Infinity'' ELSE (n - 200) / 8.0 END'),
    ('v_float8', 'float8', 'CASE n % 50 WHEN 0 THEN ''NaN'' WHEN 1 THEN ''Infinity'' ELSE (n - 200) * 1.1e30 END'),
    ('v_numeric', 'numeric(30, 3)', '(n - 200) * 123456789.125'), ('v_money', 'money', 'n * 7 - 500'),
    ('v_text', 'text', 'repeat(chr(97 + n % 26), n % 40) || n'), ('v_text_c', 'text COLLATE "C"', '''é'' || n || repeat(''y'', n % 5)'),
    ('v_varchar', 'varchar(20)', '''v'' || n % 77'), ('v_bpchar', 'char(8)', 'to_hex(n % 400)'), ('v_name', 'name', '''name'' || n'),
    ('v_pattern', 'text', 'md5(n::text)'), ('v_bytea', 'bytea', 'decode(md5(n::text), ''hex'')'),
    ('v_wide', 'text', 'repeat(md5((n % 9)::text), n % 20 + 40)'),
    ('v_date', 'date', 'date ''2000-01-01'' + n * 3'), ('v_time', 'time', 'time ''00:00'' + n * interval ''83.5 s'''),
    ('v_timetz', 'timetz', '(time ''00:00'' + n * interval ''83.5 s'') AT TIME ZONE make_interval(hours => n % 5)'),
    ('v_timestamp', 'timestamp', 'CASE WHEN n % 60 = 0 THEN ''infinity'' ELSE timestamp ''1999-01-01'' + n * interval ''7 h'' END'),
    ('v_timestamptz', 'timestamptz', 'timestamptz ''2020-01-01 00:00+00'' - n * interval ''0.1 s'''), ('v_interval', 'interval', 'n * interval ''1 h'' - interval ''20 h'''),
    ('v_uuid', 'uuid', 'md5(n::text)::uuid'), ('v_inet', 'inet', '''10.0.0.0''::inet + n * 77'), ('v_cidr', 'cidr', 'set_masklen(''10.0.0.0''::inet + n * 256, 24)::cidr'),
    ('v_macaddr', 'macaddr', '(''08002b'' || substr(md5(n::text), 1, 6))::macaddr'), ('v_macaddr8', 'macaddr8', '(''08002b0102'' || substr(md5(n::text), 1, 6))::macaddr8'),
    ('v_bit', 'bit(9)', '(n % 512)::bit(9)'), ('v_varbit', 'varbit', '(n % 256)::bit(8)::varbit || (n % 2)::bit(1)'),
    ('v_jsonb', 'jsonb', 'jsonb_build_object(''a'', n % 100, ''b'', ARRAY[n, NULL])'), ('v_ints', 'int[]', 'ARRAY[n % 10, n, NULL]'), ('v_texts', 'text[]', 'string_to_array(n::text, ''1'')'),
    ('v_range', 'int4range', 'int4range(n, n + n % 9)'), ('v_multirange', 'int4multirange', 'int4multirange(int4range(n, n + 3), int4range(n * 2, n * 3))'),
    ('v_mood', 'mood', '(enum_range(NULL::mood))[1 + n % 5]'), ('v_two', 'two', 'ROW(n % 30, n::text)::two'), ('v_lsn', 'pg_lsn', '''0/0''::pg_lsn + n * 8192::numeric'),
    ('v_tsvector', 'tsvector', 'to_tsvector(''simple'', n || '' a '' || n % 9)'), ('v_xid8', 'xid8', 'n::text::xid8'), ('v_tid', 'tid', '(''('' || n || '','' || n % 100 + 1 || '')'')::tid'),
    ('v_oidvector', 'oidvector', '(n || '' '' || n % 3)::oidvector');
UPDATE kinds SET class = 'text_pattern_ops' WHERE name = 'v_pattern';
-- The table, its copy, and what makes them and changes both.
CREATE PROCEDURE in_both(statement text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE replace(statement, '@', 'g');
    EXECUTE replace(statement, '@', 'b');
END $$;
CREATE PROCEDURE add_rows(few int) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO numbers SELECT (SELECT coalesce(max(id), 0) FROM numbers) + i, (random() * 600)::int, random() < 0.05 FROM generate_series(1, few) i;
    EXECUTE (SELECT 'CALL in_both($s$INSERT INTO @ SELECT id, ' || string_agg(format('CASE WHEN NOT without THEN (%s)::%s END', value, split_part(type, ' COLLATE', 1)), ', ' ORDER BY name) ||
             ' FROM numbers WHERE id NOT IN (SELECT id FROM @)$s$)' FROM kinds);
    TRUNCATE numbers;
    INSERT INTO numbers SELECT max(id) FROM g;
END $$;
CREATE TABLE numbers (id int, n int, without bool);
DO $$
BEGIN
    EXECUTE (SELECT 'CALL in_both(''CREATE TABLE @ (id int, ' || string_agg(name || ' ' || type, ', ' ORDER BY name) || ') WITH (autovacuum_enabled = off)'')' FROM kinds);
    CALL add_rows(400);
    EXECUTE (SELECT string_agg(format('CREATE INDEX g_%1$s ON g USING gpuhash (%1$s %2$s) INCLUDE (id); CREATE INDEX b_%1$s ON b (%1$s %2$s) INCLUDE (id);', name, class), '') FROM kinds);
    -- several columns; entries that are the same share their key; a part; an expression
    CREATE INDEX g_many ON g USING gpuhash (v_mood, v_text DESC NULLS LAST, v_int2);
    CREATE INDEX b_many ON b (v_mood, v_text DESC NULLS LAST, v_int2);
    CREATE INDEX g_same ON g USING gpuhash (v_bool);
    CREATE INDEX g_part ON g USING gpuhash (v_date) WHERE v_bool;
    CREATE INDEX g_expression ON g USING gpuhash (lower(v_bpchar), (id % 7));
END $$;
CREATE PROCEDURE change() LANGUAGE plpgsql AS $$
DECLARE
    way int := random() * 5;
    id int;
    id2 int;
BEGIN
    id := (SELECT min(g.id) + random() * (max(g.id) - min(g.id)) FROM g);
    id2 := id + random() * 60;
    IF way = 0 THEN
        CALL add_rows((random() * 150)::int);
    ELSIF way = 1 THEN
        CALL in_both(format('DELETE FROM @ WHERE id BETWEEN %s AND %s', id, id2));
    ELSIF way = 2 THEN
        CALL in_both(format('UPDATE @ SET v_int4 = v_int4 + 1, v_text = v_text || ''+'', v_jsonb = v_jsonb || ''{"c": 1}'', v_mood = NULL WHERE id BETWEEN %s AND %s', id, id2));
    ELSIF way = 3 THEN
        CALL in_both(format('UPDATE @ SET v_uuid = v_uuid WHERE id BETWEEN %s AND %s', id, id2));
    ELSIF way = 4 THEN
        BEGIN
            CALL in_both(format('UPDATE @ SET v_int2 = -v_int2, v_numeric = v_numeric * 2, v_ints = v_ints || 5, v_date = v_date - 500 WHERE id BETWEEN %s AND %s', id - 300, id2));
            CALL in_both('DELETE FROM @ WHERE v_int2 > 0');
            RAISE EXCEPTION 'back';
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
    ELSE
        CALL in_both(format('UPDATE @ SET v_bytea = NULL, v_time = NULL, v_wide = left(v_wide, 1300), v_two = ROW(NULL, v_text) WHERE id BETWEEN %s AND %s', id, id2));
    END IF;
END $$;
-- Rows that a condition selects: their number, and a digest of them in the order of the column.
CREATE FUNCTION answer(tab text, col text, condition text, how text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    PERFORM set_config('enable_seqscan', (how = 'seq')::text, true), set_config('enable_indexonlyscan', (how = 'only')::text, true),
        set_config('enable_indexscan', (how = 'index')::text, true), set_config('enable_bitmapscan', (how = 'bitmap')::text, true);
    EXECUTE format('SELECT count(*) || '' '' || coalesce(md5(string_agg(c || '':'' || ids, '';'')), '''') FROM
        (SELECT v::text AS c, string_agg(id::text, '' '' ORDER BY id) AS ids FROM (SELECT %2$s AS v, id FROM %1$s WHERE %3$s ORDER BY %2$s) x GROUP BY v ORDER BY v) y', tab, col, condition) INTO answer;
    RETURN answer;
END $$;
CREATE TABLE answers (round int, col text, condition text, seq text, index text, "only" text, bitmap text, btree text);
CREATE PROCEDURE compare(round int) LANGUAGE plpgsql AS $$
DECLARE
    kind record;
    condition text;
    compare text;
    constant text;
    rest text;
BEGIN
    FOR kind IN SELECT * FROM kinds ORDER BY name LOOP
        FOREACH compare IN ARRAY ARRAY['<', '<=', '=', '>=', '>', 'IS NULL', 'between', 'in'] LOOP
            rest := format('::%s', split_part(kind.type, ' COLLATE', 1));
            EXECUTE format('SELECT quote_literal((%s)::text) FROM (SELECT %s AS n) x', kind.value, (random() * 600)::int) INTO constant;
            constant := constant || rest;
            condition := CASE compare WHEN 'IS NULL' THEN kind.name || ' IS NULL'
                WHEN 'between' THEN format('%1$s > %2$s AND %1$s <= (SELECT %1$s FROM b WHERE id = %3$s)', kind.name, constant, (random() * 300)::int)
                WHEN 'in' THEN format('%1$s IN (%2$s, NULL, %2$s)', kind.name, constant)
                ELSE format('%s %s %s', kind.name, compare, constant) END;
            IF kind.class <> '' AND compare IN ('<', '<=', '>', '>=') THEN
                condition := format('%s ~%s~ %s', kind.name, compare, constant);
            END IF;
            INSERT INTO answers SELECT round, kind.name, condition, answer('g', kind.name, condition, 'seq'), answer('g', kind.name, condition, 'index'),
                answer('g', kind.name, condition, 'only'), answer('g', kind.name, condition, 'bitmap'), answer('b', kind.name, condition, 'only');
        END LOOP;
    END LOOP;
    FOREACH condition IN ARRAY ARRAY['v_mood = ''ok'' AND v_text < ''m''', 'v_mood > ''so so'' AND v_int2 = 5', 'v_mood IN (''sad'', ''happy'') AND v_text IS NULL', 'v_bool', 'v_bool IS NULL AND v_date IS NULL',
        'v_bool AND v_date > ''2002-02-02''', 'lower(v_bpchar) < ''80'' AND id % 7 = 3', 'v_int2 < 0 OR v_int4 < -2000000', 'v_int2 = 7::int8', 'v_int8 > 5::int2', 'v_timestamp < date ''1999-03-03''', 'v_float4 > 10::float8',
        'v_date >= timestamp ''2001-01-01 12:00'''] LOOP
        INSERT INTO answers SELECT round, 'id', condition, answer('g', 'id', condition, 'seq'), answer('g', 'id', condition, 'index'),
            answer('g', 'id', condition, 'only'), answer('g', 'id', condition, 'bitmap'), answer('b', 'id', condition, 'seq');
    END LOOP;
END $$;
VACUUM ANALYZE g, b;
CALL compare(1);
CALL change(); CALL change(); CALL change();
CALL compare(2);
VACUUM g, b;
CALL change(); CALL change();
CALL compare(3);
DELETE FROM g WHERE id BETWEEN 100 AND 350;
DELETE FROM b WHERE id BETWEEN 100 AND 350;
VACUUM (INDEX_CLEANUP on) g;
CALL change(); CALL change(); CALL change();
REINDEX TABLE CONCURRENTLY g;
CALL change(); CALL change(); CALL change();
VACUUM g;
CALL compare(4);
SELECT round, count(*) > 300 AS many FROM answers GROUP BY 1 ORDER BY 1;
SELECT count(*) > 700 AS not_empty FROM answers WHERE seq NOT LIKE '0 %';
SELECT * FROM answers WHERE seq IS DISTINCT FROM index OR seq IS DISTINCT FROM "only" OR seq IS DISTINCT FROM bitmap OR seq IS DISTINCT FROM btree LIMIT 10;
-- that the index of a column is used
SET enable_seqscan = off;
DO $$
DECLARE
    kind record;
BEGIN
    FOR kind IN SELECT * FROM kinds ORDER BY name LOOP
        IF plan_lines(format('SELECT id FROM g WHERE %1$s = (SELECT %1$s FROM b LIMIT 1)', kind.name), format('%%Index Cond: (%s =%%', kind.name)) = 0 THEN
            RAISE WARNING 'no index on %', kind.name;
        END IF;
    END LOOP;
END $$;
DROP TABLE g, b, numbers, answers, kinds;
DROP PROCEDURE in_both(text), add_rows(int), change(), compare(int);
DROP FUNCTION answer(text, text, text, text);
DROP TYPE mood, two;
