-- Hash tables of bigint values: insert, find, delete, clear, drop.
SELECT gpuhash_create('t');

-- upsert: true and counts are for new keys
SELECT gpuhash_insert('t', 1, 10) AS new, gpuhash_insert('t', 1, 11) AS replaced;
SELECT gpuhash_find('t', 1) AS found, gpuhash_find('t', 2) AS missing, gpuhash_find('t', NULL::bigint) AS of_null;
SELECT gpuhash_insert('t', ARRAY[1, 2, 3, 2], ARRAY[12, 20, 30, 21]) AS new_keys;
SELECT gpuhash_find('t', ARRAY[3, 2, 1, 0, NULL, 3]::bigint[]);
SELECT gpuhash_contains('t', ARRAY[3, 2, 1, 0, NULL, 3]::bigint[]);
SELECT gpuhash_contains('t', 3) AS yes, gpuhash_contains('t', 4) AS no, gpuhash_contains('t', NULL::bigint) AS of_null;

-- every key is legal, every value too
SELECT gpuhash_insert('t',
    ARRAY[0, -1, 9223372036854775807, -9223372036854775808]::bigint[],
    ARRAY[-1, 0, -9223372036854775808, 9223372036854775807]::bigint[]);
SELECT gpuhash_find('t', ARRAY[0, -1, 9223372036854775807, -9223372036854775808]::bigint[]);

-- one row for each position of a key that is there
SELECT * FROM gpuhash_find_all('t', ARRAY[2, 99, NULL, 2, 0]::bigint[]) ORDER BY key, value;

SELECT keys, entries, subtables, cardinality(sizes) AS sizes, fill_factor <= fill_max AS under_fill_max,
    device_bytes + bytes > 0 AS memory, reads > 0 AS was_read, writes > 0 AS was_written
FROM gpuhash_table_stats('t');

SELECT gpuhash_delete('t', ARRAY[2, 99, 2, 0]::bigint[]) AS removed;
SELECT gpuhash_find('t', ARRAY[0, 1, 2, 3]::bigint[]);

-- arrays: empty, with other bounds, from a table's row
SELECT gpuhash_insert('t', '{}'::bigint[], '{}'::bigint[]) AS none, gpuhash_find('t', '{}'::bigint[]) AS empty,
    gpuhash_contains('t', '{}'::bigint[]) AS empty_too, gpuhash_delete('t', '{}'::bigint[]) AS nothing;
SELECT gpuhash_insert('t', '[5:6]={50,60}'::bigint[], '[-1:0]={500,600}'::bigint[]);
SELECT gpuhash_find('t', '[7:9]={60,50,1}'::bigint[]);
CREATE TEMP TABLE stored AS SELECT array_agg(i::bigint) AS k, array_agg(i * 3::bigint) AS v FROM generate_series(100, 4999) i;
SELECT gpuhash_insert('t', k, v) FROM stored;
SELECT gpuhash_find('t', k) = v AS same FROM stored;

-- what was stored stays when the transaction rolls back
BEGIN;
SELECT gpuhash_insert('t', 77, 7);
SELECT gpuhash_create('made_inside');
ROLLBACK;
SELECT gpuhash_find('t', 77);
SELECT gpuhash_insert('made_inside', 1, 1);
SELECT gpuhash_drop('made_inside');

SELECT gpuhash_clear('t');
SELECT keys, entries FROM gpuhash_table_stats('t');
SELECT gpuhash_find('t', ARRAY[1, 3, 77]);
SELECT gpuhash_insert('t', 3, 33), gpuhash_find('t', 3);

-- options
SELECT gpuhash_create('o', subtables => 2, fill_min => 0.2, fill_max => 0.5, capacity => 1000, host_copy => false);
SELECT gpuhash_insert('o', k, v) FROM stored;
SELECT gpuhash_find('o', k) = v AS same FROM stored;
SELECT keys, subtables, cardinality(sizes) AS sizes, fill_min, fill_max, fill_factor <= 0.5 AS within FROM gpuhash_table_stats('o');
SELECT gpuhash_create('eight', subtables => 8, fill_min => NULL, fill_max => 0.95, multi => NULL, value_size => NULL, host_copy => NULL);
SELECT gpuhash_insert('eight', k, v) FROM stored;
SELECT gpuhash_find('eight', k) = v AS same FROM stored;
SELECT subtables, fill_max FROM gpuhash_table_stats('eight');
-- NULL: as the settings say
SET gpuhash.subtables = 3;
SET gpuhash.fill_max = 0.7;
SELECT gpuhash_create('by_settings');
SELECT subtables, fill_min, fill_max FROM gpuhash_table_stats('by_settings');
RESET gpuhash.subtables;
RESET gpuhash.fill_max;

-- names: any text of up to 63 bytes
SELECT gpuhash_create('Ein "Name" mit ''allem'' äöü');
SELECT gpuhash_create(repeat('n', 63));
SELECT gpuhash_insert('Ein "Name" mit ''allem'' äöü', 1, 1), gpuhash_insert(repeat('n', 63), 2, 2);

SELECT gpuhash_drop(name) FROM gpuhash_tables;
SELECT count(*) FROM gpuhash_tables;
