-- Bad input: a clear error each time, and the session goes on.
CREATE FUNCTION failure(command text, OUT code text, OUT message text, OUT hint text)
LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    EXECUTE command;
    message := 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    message := message || coalesce(E'\n' || nullif(detail, ''), '');
END $$;
\x on
\t on

SELECT gpuhash_create('t'), gpuhash_create('s', 0), gpuhash_create('b', 5), gpuhash_create('w', 20), gpuhash_create('m', multi => true);

-- names
SELECT * FROM failure($$SELECT gpuhash_create(NULL)$$);
SELECT * FROM failure($$SELECT gpuhash_create('')$$);
SELECT * FROM failure($$SELECT gpuhash_create(repeat('n', 64))$$);
SELECT * FROM failure($$SELECT gpuhash_create('t')$$);
SELECT * FROM failure($$SELECT gpuhash_find('unknown', 1)$$);
SELECT * FROM failure($$SELECT gpuhash_find(NULL, 1)$$);
SELECT * FROM failure($$SELECT gpuhash_insert('unknown', 1, 1)$$);
SELECT * FROM failure($$SELECT gpuhash_delete('T', ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_drop('unknown')$$);
SELECT * FROM failure($$SELECT gpuhash_clear('unknown')$$);
SELECT * FROM failure($$SELECT gpuhash_count('unknown', ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_delete_one('unknown', ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('unknown', '{f}', ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_reserve('unknown', 1)$$);
SELECT * FROM failure($$SELECT gpuhash_reserve(NULL, 1)$$);
SELECT * FROM failure($$SELECT gpuhash_compact('unknown')$$);
SELECT * FROM failure($$SELECT gpuhash_compact('')$$);
SELECT * FROM failure($$SELECT gpuhash_load('unknown', 'SELECT 1, 1')$$);
SELECT * FROM failure($$SELECT * FROM gpuhash_table_stats('unknown')$$);

-- options at their bounds: min - 1, max + 1; min and max are good
SELECT * FROM failure($$SELECT gpuhash_create('x', -1)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', 1025)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', 0, multi => true)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', subtables => 1)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', subtables => 9)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', subtables => 0)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', fill_max => 0)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', fill_max => 0.96)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', fill_max => 'NaN')$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', fill_min => -0.1)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', fill_min => 0)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', fill_min => 'Infinity')$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', fill_min => 0.5, fill_max => 0.5)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', fill_max => 0.3)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', subtables => 2, fill_min => 0.4, fill_max => 0.6)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', capacity => -1)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', key_size => 3)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', key_size => 5)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', key_size => 9)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', key_size => 0)$$);
SELECT * FROM failure($$SELECT gpuhash_create('x', capacity => 68719476737)$$);
SELECT code IN ('53200', '53400') AS no_memory, hint <> '' AS hint FROM failure($$SELECT gpuhash_create('x', capacity => 68719476736)$$);
SELECT count(*) AS none FROM gpuhash_tables WHERE name = 'x';
SELECT * FROM failure($$SELECT gpuhash_reserve('t', NULL)$$);
SELECT * FROM failure($$SELECT gpuhash_reserve('t', -1)$$);
SELECT * FROM failure($$SELECT gpuhash_reserve('t', 68719476737)$$);
SELECT * FROM failure($$SELECT gpuhash_reserve('t', 9223372036854775807)$$);
SELECT code IN ('53200', '53400') AS no_memory, hint <> '' AS hint FROM failure($$SELECT gpuhash_reserve('t', 68719476736)$$);
SELECT code IN ('53200', '53400') AS no_memory, hint <> '' AS hint FROM failure($$SELECT gpuhash_reserve('m', 68719476736)$$);

-- NULLs
SELECT * FROM failure($$SELECT gpuhash_insert('t', NULL::bigint, 1)$$);
SELECT * FROM failure($$SELECT gpuhash_insert('t', 1, NULL::bigint)$$);
SELECT * FROM failure($$SELECT gpuhash_insert('s', NULL::bigint)$$);
SELECT * FROM failure($$SELECT gpuhash_insert('t', NULL::bigint[], ARRAY[1]::bigint[])$$);
SELECT * FROM failure($$SELECT gpuhash_insert('t', ARRAY[1], NULL::bigint[])$$);
SELECT * FROM failure($$SELECT gpuhash_insert('t', ARRAY[1, NULL], ARRAY[1, 2])$$);
SELECT * FROM failure($$SELECT gpuhash_insert('t', ARRAY[1, 2], ARRAY[1, NULL])$$);
SELECT * FROM failure($$SELECT gpuhash_insert('b', ARRAY[1], ARRAY[NULL]::bytea[])$$);
SELECT * FROM failure($$SELECT gpuhash_insert('s', ARRAY[NULL]::bigint[])$$);
SELECT * FROM failure($$SELECT gpuhash_find('t', NULL::bigint[])$$);
SELECT * FROM failure($$SELECT gpuhash_find_bytea('b', NULL::bigint[])$$);
SELECT * FROM failure($$SELECT gpuhash_contains('s', NULL::bigint[])$$);
SELECT * FROM failure($$SELECT * FROM gpuhash_find_all('m', NULL)$$);
SELECT * FROM failure($$SELECT gpuhash_count('m', NULL)$$);
SELECT * FROM failure($$SELECT gpuhash_delete_one('m', NULL)$$);
SELECT * FROM failure($$SELECT gpuhash_delete_one('m', ARRAY[NULL]::bigint[])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('t', NULL, ARRAY[1], ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('t', '{f}', NULL, ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('t', '{f}', ARRAY[1], NULL::bigint[])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('t', '{NULL}', ARRAY[1], ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('t', '{f}', ARRAY[NULL]::bigint[], ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('t', '{f,u}', ARRAY[1, 2], ARRAY[NULL, NULL]::bigint[])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('b', '{i}', ARRAY[1], ARRAY[NULL]::bytea[])$$);
SELECT * FROM failure($$SELECT gpuhash_delete('t', NULL)$$);
SELECT * FROM failure($$SELECT gpuhash_delete('t', ARRAY[1, NULL])$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', NULL)$$);

-- arrays
SELECT * FROM failure($$SELECT gpuhash_insert('t', ARRAY[1, 2], ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_insert('t', '{}'::bigint[], ARRAY[1]::bigint[])$$);
SELECT * FROM failure($$SELECT gpuhash_insert('b', ARRAY[1], ARRAY['abcde', 'fghij']::bytea[])$$);
SELECT * FROM failure($$SELECT gpuhash_insert('t', ARRAY[[1, 2], [3, 4]], ARRAY[[1, 2], [3, 4]])$$);
SELECT * FROM failure($$SELECT gpuhash_find('t', ARRAY[[1], [2]])$$);
SELECT * FROM failure($$SELECT gpuhash_insert('b', ARRAY[1, 2], ARRAY['abcde', 'abcdef']::bytea[])$$);
SELECT * FROM failure($$SELECT gpuhash_insert('w', ARRAY[1], ARRAY['']::bytea[])$$);
SELECT gpuhash_contains('b', 1) AS nothing_stored;
SELECT * FROM failure($$SELECT gpuhash_apply('t', '{f,f}', ARRAY[1], ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('t', '{f}', ARRAY[1], ARRAY[1, 2])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('t', '{{f},{f}}', ARRAY[1, 2], ARRAY[1, 2])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('t', '{u,f}', ARRAY[[1], [2]], ARRAY[1, 2])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('b', '{u,u}', ARRAY[1, 2], ARRAY['abcde', 'abcdef']::bytea[])$$);
SELECT * FROM failure($$SELECT gpuhash_count('t', ARRAY[[1], [2]])$$);
SELECT * FROM failure($$SELECT gpuhash_delete_one('m', ARRAY[[1], [2]])$$);
SELECT gpuhash_contains('t', 1) OR gpuhash_contains('b', 1) AS stored;

-- operations
SELECT * FROM failure($$SELECT gpuhash_apply('t', '{u,U}', ARRAY[1, 2], ARRAY[1, 2])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('s', ARRAY['']::"char"[], ARRAY[1])$$);
SELECT gpuhash_contains('t', 1) AS stored;

-- what the table does not hold
SELECT * FROM failure($$SELECT gpuhash_insert('s', 1, 1)$$);
SELECT * FROM failure($$SELECT gpuhash_insert('b', 1, 1)$$);
SELECT * FROM failure($$SELECT gpuhash_insert('w', ARRAY[1], ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_insert('s', ARRAY[1], ARRAY['']::bytea[])$$);
SELECT * FROM failure($$SELECT gpuhash_insert('t', 1)$$);
SELECT * FROM failure($$SELECT gpuhash_insert('w', ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_find('s', 1)$$);
SELECT * FROM failure($$SELECT gpuhash_find('w', ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_find_bytea('s', ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_find('m', 1)$$);
SELECT * FROM failure($$SELECT gpuhash_find_bytea('m', ARRAY[1])$$);
SELECT * FROM failure($$SELECT * FROM gpuhash_find_all('s', ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_delete_one('t', ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_delete_one('s', ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('m', '{u}', ARRAY[1], ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('s', '{u}', ARRAY[1], ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('s', '{u}', ARRAY[1], ARRAY['']::bytea[])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('b', '{u}', ARRAY[1], ARRAY[1])$$);
SELECT * FROM failure($$SELECT gpuhash_apply('t', '{f}', ARRAY[1])$$);
SELECT * FROM failure($$SELECT * FROM gpuhash_find_all('w', ARRAY[1])$$);
SELECT * FROM failure($$SELECT * FROM gpuhash_find_all_bytea('s', ARRAY[1])$$);

-- queries that do not fit
CREATE TEMP TABLE target (k int, v int);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'SELECT 1')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'SELECT 1, 2, 3')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'SELECT')$$);
SELECT * FROM failure($$SELECT gpuhash_load('s', 'SELECT 1, 2')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'SELECT 1, 2.5')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'SELECT ''1'' AS "a key", 2')$$);
SELECT * FROM failure($$SELECT gpuhash_load('b', 'SELECT 1, 2')$$);
SELECT * FROM failure($$SELECT gpuhash_load('s', 'SELECT true')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'SELECT NULL::int, 1')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'SELECT 1, NULL::int')$$);
SELECT * FROM failure($$SELECT gpuhash_load('b', 'SELECT 1, ''abc''::bytea')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', '')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'SELECT 1, 2; SELECT 3, 4')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'INSERT INTO target VALUES (1, 2) RETURNING k, v')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'WITH w AS (INSERT INTO target VALUES (1, 2) RETURNING *) SELECT * FROM w')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'SELECT k, v FROM target FOR UPDATE')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'SELECT k, v FROM (SELECT k, v FROM target FOR UPDATE) s')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'WITH w AS (SELECT k, v FROM target FOR SHARE) SELECT k, v FROM w')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'SELECT 1, (SELECT v FROM target LIMIT 1 FOR NO KEY UPDATE)')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'SELECT 1 AS k, 2 AS v INTO other')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'SHOW work_mem')$$);
SELECT * FROM failure($$SELECT gpuhash_load('t', 'COMMIT')$$);

-- none of this changed anything
SELECT name, keys FROM gpuhash_tables;
SELECT count(gpuhash_drop(name)) FROM gpuhash_tables;
\t off
\x off

-- an error that is not caught ends the statement only
SELECT gpuhash_create('t', 2000);
SELECT gpuhash_create('t');
SELECT gpuhash_insert('t', ARRAY[1, 2], ARRAY[1, 2]);
SELECT gpuhash_drop('t');
DROP FUNCTION failure;
