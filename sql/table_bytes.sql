-- Hash tables of other values: sets of keys, and bytea of a fixed size.
\pset null '(null)'

-- sets
SELECT gpuhash_create('s', value_size => 0);
SELECT gpuhash_insert('s', 5) AS new, gpuhash_insert('s', 5) AS old;
SELECT gpuhash_insert('s', ARRAY[5, 0, -1, 7, 7]::bigint[]) AS new_keys;
SELECT gpuhash_contains('s', ARRAY[7, 6, 5, NULL, 0, -1]::bigint[]);
SELECT gpuhash_contains('s', 7), gpuhash_contains('s', 8);
SELECT gpuhash_delete('s', ARRAY[7, 8, 0]) AS removed;
SELECT gpuhash_contains('s', ARRAY[7, 6, 5, 0, -1]::bigint[]);
SELECT keys, entries FROM gpuhash_table_stats('s');

-- values as bytea, of every width around the places where something changes
CREATE FUNCTION value_of(key int, size int) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT substr(decode(string_agg(md5(key || '-' || i), ''), 'hex'), 1, size) FROM generate_series(0, (size + 15) / 16) i
$$;
CREATE TEMP TABLE widths AS SELECT unnest(ARRAY[1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 63, 64, 100, 255, 256, 1000, 1023, 1024]) AS size;
SELECT count(gpuhash_create('b' || size, size)) FROM widths;
CREATE TEMP TABLE entries AS
    SELECT size, array_agg(k::bigint ORDER BY k) AS keys, array_agg(value_of(k, size) ORDER BY k) AS values,
        array_agg(value_of(k + 10000, size) ORDER BY k) AS other_values
    FROM widths, generate_series(0, 999) k GROUP BY size;
SELECT size, gpuhash_insert('b' || size, keys, values) AS new_keys, gpuhash_find_bytea('b' || size, keys) = values AS same
FROM entries ORDER BY size;
-- replaced, twice in one array too: the last value stays
SELECT size, gpuhash_insert('b' || size, keys || keys[1:500], values || other_values[1:500]) AS new_keys,
    gpuhash_find_bytea('b' || size, keys) = other_values[1:500] || values[501:1000] AS same
FROM entries ORDER BY size;
-- single keys, missing keys, NULL keys
SELECT gpuhash_find_bytea('b3', 600) = value_of(600, 3) AS same, gpuhash_find_bytea('b3', -1) AS missing,
    gpuhash_find_bytea('b3', NULL::bigint) AS of_null;
SELECT gpuhash_find_bytea('b1024', 600) = value_of(600, 1024) AS same, gpuhash_find_bytea('b1024', -1) AS missing,
    gpuhash_find_bytea('b1024', NULL::bigint) AS of_null;
SELECT gpuhash_find_bytea('b3', ARRAY[600, -1, NULL, 601]::bigint[]) = ARRAY[value_of(600, 3), NULL, NULL, value_of(601, 3)] AS same;
SELECT gpuhash_find_bytea('b1024', ARRAY[600, -1, NULL, 601]::bigint[]) = ARRAY[value_of(600, 1024), NULL, NULL, value_of(601, 1024)] AS same;
SELECT gpuhash_contains('b1024', ARRAY[600, -1, NULL]::bigint[]);
SELECT count(*), bool_and(value = value_of(key::int, 17)) AS same FROM gpuhash_find_all_bytea('b17', ARRAY[600, -1, 601, NULL, 600]::bigint[]);
-- deleted and stored again
SELECT size, gpuhash_delete('b' || size, keys[1:900] || keys[1:10]) AS removed,
    gpuhash_find_bytea('b' || size, keys[891:910]) = array_fill(NULL::bytea, ARRAY[10]) || values[901:910] AS same,
    gpuhash_insert('b' || size, keys, other_values) AS new_keys,
    gpuhash_find_bytea('b' || size, keys) = other_values AS same_again
FROM entries ORDER BY size;
-- slots of deleted and replaced values are used again
SELECT bytes AS bytes_before FROM gpuhash_table_stats('b1000') \gset
SELECT count(gpuhash_insert('b1000', keys, values)) + count(gpuhash_delete('b1000', keys[1:300])) AS calls
FROM entries, generate_series(1, 20) WHERE size = 1000;
SELECT gpuhash_insert('b1000', keys, values) AS new_keys, gpuhash_find_bytea('b1000', keys) = values AS same
FROM entries WHERE size = 1000;
SELECT bytes <= :bytes_before AS no_more_memory FROM gpuhash_table_stats('b1000');
SELECT gpuhash_clear('b1000');
SELECT gpuhash_find_bytea('b1000', 1), (SELECT keys FROM gpuhash_table_stats('b1000'));
SELECT bytes < :bytes_before / 2 AS less_memory FROM gpuhash_table_stats('b1000');

-- bytea and bigint values of 8 bytes are the same values
SELECT gpuhash_create('eight');
SELECT gpuhash_insert('eight', ARRAY[1, 2, 3]::bigint[], ARRAY[int8send(-5), int8send(1), '\x0102030405060708']);
SELECT gpuhash_find('eight', ARRAY[1, 2, 3]);
SELECT gpuhash_insert('eight', 4, 72623859790382856);
SELECT gpuhash_find_bytea('eight', 4);

-- values that are stored compressed, or out of line
CREATE TEMP TABLE toasted (k bigint[], v bytea[], one bytea);
INSERT INTO toasted SELECT ARRAY[1, 2], ARRAY[convert_to(repeat('x', 1024), 'UTF8'), value_of(2, 1024)], convert_to(repeat('y', 1024), 'UTF8');
SELECT gpuhash_insert('b1024', k, v), gpuhash_find_bytea('b1024', k) = v AS same FROM toasted;
SELECT gpuhash_load('b1024', 'SELECT 1, one FROM toasted');
SELECT gpuhash_find_bytea('b1024', 1) = one AS same FROM toasted;

SELECT count(gpuhash_drop(name)) FROM gpuhash_tables;
DROP FUNCTION value_of;
