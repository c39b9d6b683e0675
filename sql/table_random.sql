-- Growth and shrinkage, and random operations against a plain table.
CREATE FUNCTION keys_between(a bigint, b bigint) RETURNS bigint[]
LANGUAGE sql AS 'SELECT array_agg(i * 7919) FROM generate_series(a, b) i';
SELECT gpuhash_create('g');
SELECT gpuhash_insert('g', keys_between(1, 300000), keys_between(1, 300000)) AS new_keys;
SELECT keys, upsizes > 0 AS grew, fill_factor BETWEEN fill_min AND fill_max AS within FROM gpuhash_table_stats('g');
SELECT gpuhash_find('g', keys_between(1, 300000)) = keys_between(1, 300000) AS same;
SELECT gpuhash_delete('g', keys_between(1001, 310000)) AS removed;
SELECT keys, downsizes > 0 AS shrank, resizes = upsizes + downsizes AS sum, fill_factor <= fill_max AS within FROM gpuhash_table_stats('g');
SELECT gpuhash_find('g', keys_between(1, 1000)) = keys_between(1, 1000) AS same,
    array_remove(gpuhash_find('g', keys_between(1001, 300000)), NULL) AS rest;
SELECT gpuhash_drop('g');

-- The model is the plain table; the seed makes the run repeatable.
\set seed 0.20240607
\echo seed :seed
CREATE TEMP TABLE model (k bigint, v bigint, wide bytea, n serial);
CREATE TEMP TABLE change (k bigint, v bigint, wide bytea, n serial);
SELECT gpuhash_create('one', subtables => 3), gpuhash_create('many', multi => true), gpuhash_create('bytes', 33), gpuhash_create('many_bytes', 33, multi => true);
CREATE FUNCTION operate(steps int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    step int;
    size int;
    space int;
    wanted bigint;
    told bigint[];
    batch bigint[];
    numbers bigint[];
    wides bytea[];
BEGIN
    FOR step IN 1 .. steps LOOP
        size := 1 + floor(random() ^ 4 * 3000);
        space := 1 + floor(random() ^ 2 * 5000);
        SELECT array_agg(floor(random() * space)::bigint - 100) INTO batch FROM generate_series(1, size);
        IF random() < 0.6 THEN
            SELECT array_agg(floor(random() * 1e9)::bigint) INTO numbers FROM generate_series(1, size);
            SELECT array_agg(decode(md5(x::text) || md5(x || 'x') || '00', 'hex') ORDER BY o) INTO wides
                FROM unnest(numbers) WITH ORDINALITY u (x, o);
            TRUNCATE change RESTART IDENTITY;
            INSERT INTO change (k, v, wide) SELECT * FROM unnest(batch, numbers, wides);
            SELECT count(DISTINCT k) INTO wanted FROM change WHERE k NOT IN (SELECT k FROM model);
            told := ARRAY[gpuhash_insert('one', batch, numbers), gpuhash_insert('many', batch, numbers),
                gpuhash_insert('bytes', batch, wides), gpuhash_insert('many_bytes', batch, wides)];
            INSERT INTO model (k, v, wide) SELECT k, v, wide FROM change ORDER BY n;
            IF told <> array_fill(wanted, ARRAY[4]) THEN
                RETURN format('step %s: %s new keys, told %s', step, wanted, told);
            END IF;
        ELSE
            told := ARRAY[gpuhash_delete('one', batch), gpuhash_delete('bytes', batch),
                gpuhash_delete('many', batch), gpuhash_delete('many_bytes', batch)];
            SELECT ARRAY[count(DISTINCT k), count(DISTINCT k), count(*), count(*)] INTO numbers FROM model WHERE k = ANY (batch);
            DELETE FROM model WHERE k = ANY (batch);
            IF told <> numbers THEN
                RETURN format('step %s: %s to remove, told %s', step, numbers, told);
            END IF;
        END IF;
        IF step % 10 = 0 THEN
            SELECT array_agg(i::bigint) INTO batch FROM generate_series(-150, 5000) i;
            PERFORM FROM (SELECT key, value FROM gpuhash_find_all('many', batch) EXCEPT ALL SELECT k, v FROM model) d;
            IF FOUND THEN RETURN format('step %s: many has too much', step); END IF;
            PERFORM FROM (SELECT k, v FROM model EXCEPT ALL SELECT key, value FROM gpuhash_find_all('many', batch)) d;
            IF FOUND THEN RETURN format('step %s: many has too little', step); END IF;
            PERFORM FROM (SELECT key, value FROM gpuhash_find_all_bytea('many_bytes', batch) EXCEPT ALL SELECT k, wide FROM model) d;
            IF FOUND THEN RETURN format('step %s: many_bytes has too much', step); END IF;
            PERFORM FROM (SELECT k, wide FROM model EXCEPT ALL SELECT key, value FROM gpuhash_find_all_bytea('many_bytes', batch)) d;
            IF FOUND THEN RETURN format('step %s: many_bytes has too little', step); END IF;
            -- the last value of each key
            PERFORM FROM unnest(batch, gpuhash_find('one', batch), gpuhash_find_bytea('bytes', batch)) f (k, v, wide)
                LEFT JOIN (SELECT DISTINCT ON (k) k, v, wide FROM model ORDER BY k, n DESC) m USING (k)
                WHERE f.v IS DISTINCT FROM m.v OR f.wide IS DISTINCT FROM m.wide;
            IF FOUND THEN RETURN format('step %s: one or bytes differs', step); END IF;
        END IF;
    END LOOP;
    RETURN 'same';
END $$;
SELECT setseed(:seed);
SELECT operate(100);
SELECT s.keys = m.keys AS keys, s.entries = m.entries AS entries
FROM gpuhash_table_stats('many_bytes') s, (SELECT count(DISTINCT k) AS keys, count(*) AS entries FROM model) m;
SELECT count(gpuhash_drop(name)) FROM gpuhash_tables;
DROP FUNCTION operate;
DROP FUNCTION keys_between;
