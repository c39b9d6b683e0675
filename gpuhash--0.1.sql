/* gpuhash--0.1.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION gpuhash" to load this file. \quit

-- Named hash tables live in memory, outside transactions: in that of the server,
-- for all sessions of a database, or in that of a session.  So every function is
-- volatile; those that change a table are parallel unsafe, those that read one run
-- in the leader.

-- ---------------------------------------------------------------- life and death

CREATE FUNCTION gpuhash_create(
	name text,
	value_size int = 8,
	multi bool = false,
	subtables int = NULL,
	fill_min float8 = NULL,
	fill_max float8 = NULL,
	capacity bigint = 0,
	host_copy bool = true,
	key_size int = 8)
RETURNS void
AS 'MODULE_PATHNAME', 'gpuhash_create'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_create(text, int, bool, int, float8, float8, bigint, bool, int)
	IS 'create a hash table: keys of 8 or 4 bytes, values of value_size bytes (8: bigint, 0: none), many to a key if multi';

CREATE FUNCTION gpuhash_drop(name text)
RETURNS void
AS 'MODULE_PATHNAME', 'gpuhash_drop'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_drop(text) IS 'drop a hash table and free its memory';

CREATE FUNCTION gpuhash_clear(name text)
RETURNS void
AS 'MODULE_PATHNAME', 'gpuhash_clear'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_clear(text)
	IS 'remove every entry of a hash table; brings back one that was lost with its GPU';

CREATE FUNCTION gpuhash_reserve(name text, entries bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'gpuhash_reserve'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_reserve(text, bigint)
	IS 'make room in a hash table for that many keys in all, and keep it until gpuhash_clear';

CREATE FUNCTION gpuhash_compact(name text)
RETURNS void
AS 'MODULE_PATHNAME', 'gpuhash_compact'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_compact(text) IS 'give back memory that deleted entries of a hash table left';

-- ----------------------------------------------------------------- modification

CREATE FUNCTION gpuhash_insert(name text, key bigint, value bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'gpuhash_insert_pair'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_insert(text, bigint, bigint)
	IS 'store a value for a key, replacing the old one or, if multi, beside the others; true for a new key';

CREATE FUNCTION gpuhash_insert(name text, keys bigint[], "values" bigint[])
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpuhash_insert_pairs'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_insert(text, bigint[], bigint[])
	IS 'store a value for each key, the last one of equal keys or, if multi, all; number of new keys';

CREATE FUNCTION gpuhash_insert(name text, keys bigint[], "values" bytea[])
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpuhash_insert_bytea_pairs'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_insert(text, bigint[], bytea[])
	IS 'store a value for each key, the last one of equal keys or, if multi, all; number of new keys';

CREATE FUNCTION gpuhash_insert(name text, key bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'gpuhash_insert_key'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_insert(text, bigint) IS 'store a key in a set; true for a new key';

CREATE FUNCTION gpuhash_insert(name text, keys bigint[])
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpuhash_insert_keys'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_insert(text, bigint[]) IS 'store keys in a set; number of new keys';

CREATE FUNCTION gpuhash_load(name text, query text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpuhash_load'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_load(text, text)
	IS 'run a query as the caller and store its (key, value) rows; number of rows';

CREATE FUNCTION gpuhash_delete(name text, keys bigint[])
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpuhash_delete'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_delete(text, bigint[])
	IS 'remove keys with all their values; number of entries removed';

CREATE FUNCTION gpuhash_delete_one(name text, keys bigint[])
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpuhash_delete_one'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_delete_one(text, bigint[])
	IS 'remove one value, whichever, for each time that a key is given; number of values removed';

-- Operations: i, insert unless the key is there; u, insert or replace; f, find; d, delete.

CREATE FUNCTION gpuhash_apply(name text, operations "char"[], keys bigint[], "values" bigint[],
	OUT done boolean[], OUT found bigint[])
AS 'MODULE_PATHNAME', 'gpuhash_apply_pairs'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_apply(text, "char"[], bigint[], bigint[])
	IS 'in FROM: do an operation for each key, one after the other: whether it was new, found or removed, and the values found';

CREATE FUNCTION gpuhash_apply(name text, operations "char"[], keys bigint[], "values" bytea[],
	OUT done boolean[], OUT found bytea[])
AS 'MODULE_PATHNAME', 'gpuhash_apply_bytea_pairs'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_apply(text, "char"[], bigint[], bytea[])
	IS 'in FROM: do an operation for each key, one after the other: whether it was new, found or removed, and the values found';

CREATE FUNCTION gpuhash_apply(name text, operations "char"[], keys bigint[])
RETURNS boolean[]
AS 'MODULE_PATHNAME', 'gpuhash_apply_keys'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_apply(text, "char"[], bigint[])
	IS 'do an operation for each key of a set, one after the other: whether it was new, found or removed';

-- --------------------------------------------------------------------- look-up

CREATE FUNCTION gpuhash_find(name text, key bigint)
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpuhash_find_key'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_find(text, bigint) IS 'the value of a key, NULL if it is missing';

CREATE FUNCTION gpuhash_find(name text, keys bigint[])
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'gpuhash_find_keys'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_find(text, bigint[])
	IS 'the values of keys in the same order, NULL for each that is missing';

CREATE FUNCTION gpuhash_find_bytea(name text, key bigint)
RETURNS bytea
AS 'MODULE_PATHNAME', 'gpuhash_find_bytea_key'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_find_bytea(text, bigint)
	IS 'the value of a key as bytea, NULL if it is missing';

CREATE FUNCTION gpuhash_find_bytea(name text, keys bigint[])
RETURNS bytea[]
AS 'MODULE_PATHNAME', 'gpuhash_find_bytea_keys'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_find_bytea(text, bigint[])
	IS 'the values of keys as bytea in the same order, NULL for each that is missing';

CREATE FUNCTION gpuhash_contains(name text, key bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'gpuhash_contains_key'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_contains(text, bigint) IS 'is the key there?';

CREATE FUNCTION gpuhash_contains(name text, keys bigint[])
RETURNS boolean[]
AS 'MODULE_PATHNAME', 'gpuhash_contains_keys'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_contains(text, bigint[])
	IS 'which keys are there? in the same order';

CREATE FUNCTION gpuhash_count(name text, keys bigint[])
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'gpuhash_count'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_count(text, bigint[])
	IS 'how many values has each key? in the same order; 1 for a key of a set';

CREATE FUNCTION gpuhash_find_all(name text, keys bigint[])
RETURNS TABLE (key bigint, value bigint)
AS 'MODULE_PATHNAME', 'gpuhash_find_all'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_find_all(text, bigint[]) IS 'every value of each key';

CREATE FUNCTION gpuhash_find_all_bytea(name text, keys bigint[])
RETURNS TABLE (key bigint, value bytea)
AS 'MODULE_PATHNAME', 'gpuhash_find_all_bytea'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_find_all_bytea(text, bigint[])
	IS 'every value of each key, as bytea';

-- ------------------------------------------------------------------------ grants

CREATE FUNCTION gpuhash_grant(name text, role name, privilege text)
RETURNS void
AS 'MODULE_PATHNAME', 'gpuhash_grant'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_grant(text, name, text)
	IS 'let a role, or public, read a hash table, or write to it, which includes reading';

CREATE FUNCTION gpuhash_revoke(name text, role name, privilege text)
RETURNS void
AS 'MODULE_PATHNAME', 'gpuhash_revoke'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_revoke(text, name, text)
	IS 'take back what gpuhash_grant gave: write, or read, and writing with it';

-- ------------------------------------------------------------------ monitoring

CREATE FUNCTION gpuhash_mode()
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_mode'
LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_mode()
	IS 'the setting that loads gpuhash into sessions, or session: only where it is called or loaded';

CREATE FUNCTION gpuhash_table_stats(
	name text,
	OUT engine text,
	OUT device int,
	OUT engine_reason text,
	OUT keys bigint,
	OUT entries bigint,
	OUT subtables int,
	OUT sizes bigint[],
	OUT fill_factor float8,
	OUT fill_min float8,
	OUT fill_max float8,
	OUT resizes bigint,
	OUT upsizes bigint,
	OUT downsizes bigint,
	OUT bytes bigint,
	OUT device_bytes bigint,
	OUT bytes_to_device bigint,
	OUT bytes_from_device bigint,
	OUT reads bigint,
	OUT reads_cached bigint,
	OUT reads_paged bigint,
	OUT writes bigint)
AS 'MODULE_PATHNAME', 'gpuhash_table_stats'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_table_stats(text)
	IS 'statistics of a hash table: where it is, what it holds, its subtables, memory and use';

CREATE FUNCTION gpuhash_list_tables(
	OUT name text,
	OUT owner oid,
	OUT grants text[],
	OUT status text,
	OUT engine text,
	OUT device int,
	OUT key_size int,
	OUT value_size int,
	OUT multi bool,
	OUT host_copy bool,
	OUT keys bigint,
	OUT entries bigint,
	OUT fill_factor float8,
	OUT bytes bigint,
	OUT device_bytes bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpuhash_list_tables'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_list_tables() IS 'the rows of gpuhash_tables, with the owner as oid';

CREATE FUNCTION gpuhash_list_subtables(
	OUT table_name text,
	OUT subtable int,
	OUT slots bigint,
	OUT entries bigint,
	OUT fill_factor float8,
	OUT bytes bigint,
	OUT device_bytes bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpuhash_list_subtables'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_list_subtables() IS 'the rows of gpuhash_subtables';

CREATE FUNCTION gpuhash_list_devices(
	OUT engine text,
	OUT device int,
	OUT name text,
	OUT status text,
	OUT memory_total bigint,
	OUT memory_free bigint,
	OUT tables bigint,
	OUT memory_limit bigint,
	OUT memory_used bigint,
	OUT memory_resident bigint,
	OUT transfer text,
	OUT buffers text,
	OUT worker_pid int,
	OUT worker_starts bigint,
	OUT worker_cpu_ms float8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpuhash_list_devices'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_list_devices()
	IS 'the rows of gpuhash_devices; without the service it opens the GPU unless gpuhash.engine is cpu, which takes GPU memory until the session ends';

CREATE FUNCTION gpuhash_service_stat(
	OUT requests bigint,
	OUT batches bigint,
	OUT keys bigint,
	OUT page_batches bigint,
	OUT pages bigint,
	OUT pages_direct bigint,
	OUT pages_resident bigint,
	OUT page_bytes bigint,
	OUT bytes_to_device bigint,
	OUT bytes_from_device bigint,
	OUT queue_ms float8,
	OUT device_ms float8,
	OUT errors bigint,
	OUT abandoned bigint,
	OUT buffers bigint,
	OUT buffers_free bigint,
	OUT tables bigint,
	OUT scans bigint,
	OUT fallbacks_no_gpu bigint,
	OUT fallbacks_worker_down bigint,
	OUT fallbacks_no_buffers bigint,
	OUT fallbacks_memory bigint,
	OUT fallbacks_device bigint,
	OUT fallbacks_timeout bigint,
	OUT fallbacks_declined bigint,
	OUT plans_offloaded bigint,
	OUT nodes_join bigint,
	OUT nodes_aggregate bigint,
	OUT nodes_rows bigint,
	OUT nodes_scan bigint,
	OUT stats_reset timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpuhash_service_stat'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION gpuhash_service_stat() IS 'the row of gpuhash_stat';

CREATE FUNCTION gpuhash_service_activity(
	OUT pid int,
	OUT database oid,
	OUT role oid,
	OUT device int,
	OUT state text,
	OUT operation text,
	OUT keys bigint,
	OUT pages bigint,
	OUT duration_ms float8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpuhash_service_activity'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION gpuhash_service_activity() IS 'the rows of gpuhash_stat_activity, with names as oids';

CREATE FUNCTION gpuhash_service_progress(
	OUT pid int,
	OUT database oid,
	OUT relation oid,
	OUT device int,
	OUT command text,
	OUT phase text,
	OUT total bigint,
	OUT done bigint,
	OUT started timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpuhash_service_progress'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION gpuhash_service_progress() IS 'the rows of gpuhash_stat_progress, of all databases';

CREATE FUNCTION gpuhash_stat_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'gpuhash_stat_reset'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_stat_reset() IS 'begin the sums of gpuhash_stat anew';

CREATE VIEW gpuhash_tables AS
	SELECT t.name, pg_catalog.pg_get_userbyid(t.owner) AS owner, t.grants, t.status, t.engine, t.device,
		t.key_size, t.value_size, t.multi, t.host_copy, t.keys, t.entries, t.fill_factor,
		t.bytes, t.device_bytes
	FROM gpuhash_list_tables() AS t;

COMMENT ON VIEW gpuhash_tables IS 'hash tables of this database, or of this session, that the current user may read; all for members of pg_monitor';
COMMENT ON COLUMN gpuhash_tables.grants IS 'who else may use it, like role=read or role=write';
COMMENT ON COLUMN gpuhash_tables.status IS 'ready, lost with its GPU, or no answer from its GPU';
COMMENT ON COLUMN gpuhash_tables.entries IS 'values stored: more than keys if multi';
COMMENT ON COLUMN gpuhash_tables.bytes IS 'memory of the server or, for a table of the session, of its process';
COMMENT ON COLUMN gpuhash_tables.device_bytes IS 'memory of the GPU';

CREATE VIEW gpuhash_subtables AS
	SELECT s.table_name, s.subtable, s.slots, s.entries, s.fill_factor, s.bytes, s.device_bytes
	FROM gpuhash_list_subtables() AS s;

COMMENT ON VIEW gpuhash_subtables IS 'subtables of the hash tables that gpuhash_tables shows, and where they are';
COMMENT ON COLUMN gpuhash_subtables.bytes IS 'memory of the server that its slots take; of a table on the GPU alone, of what is not there';
COMMENT ON COLUMN gpuhash_subtables.device_bytes IS 'memory of the GPU that its slots take; 0 for a table that has its entries on the host';

CREATE VIEW gpuhash_devices AS
	SELECT d.engine, d.device, d.name, d.status, d.memory_total, d.memory_free, d.tables,
		d.memory_limit, d.memory_used, d.memory_resident, d.transfer, d.buffers, d.worker_pid, d.worker_starts, d.worker_cpu_ms
	FROM gpuhash_list_devices() AS d;

COMMENT ON VIEW gpuhash_devices
	IS 'what can hold hash tables: the CPU engine, and each GPU or why there is none; without the service it opens the GPU unless gpuhash.engine is cpu, which takes GPU memory until the session ends';
COMMENT ON COLUMN gpuhash_devices.tables IS 'hash tables there: with the service of all sessions, those of joins counted; else of this session';
COMMENT ON COLUMN gpuhash_devices.memory_limit IS 'gpuhash.device_memory_limit in bytes; NULL: none, or without the service';
COMMENT ON COLUMN gpuhash_devices.memory_used IS 'device memory of all tables, and of pages that stay there';
COMMENT ON COLUMN gpuhash_devices.memory_resident IS 'of that, of pages and joins'' tables that stay (gpuhash_resident)';
COMMENT ON COLUMN gpuhash_devices.transfer IS 'direct: batches go between sessions and GPU without a copy; else why they do not';
COMMENT ON COLUMN gpuhash_devices.buffers IS 'direct: the GPU reads pages of tables in shared_buffers itself; else why they are copied for it';
COMMENT ON COLUMN gpuhash_devices.worker_starts IS 'how often a worker found the GPU since the server started';

CREATE FUNCTION gpuhash_prewarm(relation regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpuhash_prewarm'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_prewarm(regclass)
	IS 'puts the pages of a table, and of its partitions, onto a GPU, where they stay for queries, or without one, their columns into shared memory; returns how many pages are there then; of an index, makes its copy in shared memory';

CREATE FUNCTION gpuhash_list_resident(
	OUT relation oid,
	OUT device int,
	OUT resident bigint,
	OUT bytes bigint,
	OUT last_used timestamptz,
	OUT hits bigint,
	OUT revalidated bigint,
	OUT why_not text,
	OUT tables bigint,
	OUT table_bytes bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpuhash_list_resident'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuhash_list_resident() IS 'the rows of gpuhash_resident';

CREATE VIEW gpuhash_resident AS
	SELECT r.relation::pg_catalog.regclass AS relation, r.device,
		pg_catalog.pg_relation_size(r.relation::pg_catalog.regclass) / pg_catalog.current_setting('block_size')::int AS blocks,
		r.resident, r.bytes, r.last_used, r.hits, r.revalidated, r.why_not, r.tables, r.table_bytes
	FROM gpuhash_list_resident() AS r;

COMMENT ON VIEW gpuhash_resident IS 'tables of this database with pages that stay on GPUs, and indexes of which there are copies on GPUs or in shared memory';
COMMENT ON COLUMN gpuhash_resident.device IS 'NULL: a copy of an index, or columns, in shared memory';
COMMENT ON COLUMN gpuhash_resident.blocks IS 'pages that the table has';
COMMENT ON COLUMN gpuhash_resident.resident IS 'pages that are on the GPU, some of which may have changed since';
COMMENT ON COLUMN gpuhash_resident.bytes IS 'memory of the GPU for them';
COMMENT ON COLUMN gpuhash_resident.hits IS 'pages that queries did not have to read; of a copy of an index, joins that used it';
COMMENT ON COLUMN gpuhash_resident.revalidated IS 'pages of which the server''s own had to be looked at, and which had not changed';
COMMENT ON COLUMN gpuhash_resident.why_not IS 'why there are no more, as of the last query that found no room';
COMMENT ON COLUMN gpuhash_resident.tables IS 'joins'' hash tables of its rows that stay on the GPU, too; of an index, its copy';
COMMENT ON COLUMN gpuhash_resident.table_bytes IS 'memory of the GPU, or shared memory, for these';

CREATE VIEW gpuhash_stat AS SELECT * FROM gpuhash_service_stat();

COMMENT ON VIEW gpuhash_stat IS 'sums of the GPU service over all sessions since gpuhash_stat_reset; no row without the service';
COMMENT ON COLUMN gpuhash_stat.batches IS 'requests with keys';
COMMENT ON COLUMN gpuhash_stat.page_batches IS 'requests with pages of tables';
COMMENT ON COLUMN gpuhash_stat.pages_direct IS 'of these pages, those that a GPU read in shared_buffers itself';
COMMENT ON COLUMN gpuhash_stat.pages_resident IS 'likewise, those that were on the GPU';
COMMENT ON COLUMN gpuhash_stat.page_bytes IS 'of these pages, counted in bytes_to_device, too';
COMMENT ON COLUMN gpuhash_stat.scans IS 'scans of tables that are on a GPU now';
COMMENT ON COLUMN gpuhash_stat.queue_ms IS 'from submission until the GPU was asked';
COMMENT ON COLUMN gpuhash_stat.device_ms IS 'from then until the results were there: transfers and kernels';
COMMENT ON COLUMN gpuhash_stat.abandoned IS 'requests whose session did not wait for the end';
COMMENT ON COLUMN gpuhash_stat.buffers IS 'units of 512 kB in gpuhash.shared_memory';
COMMENT ON COLUMN gpuhash_stat.plans_offloaded IS 'plans that were made with nodes of gpuhash, on whichever engine they run';
COMMENT ON COLUMN gpuhash_stat.nodes_join IS 'nodes GpuHashJoin that were run; likewise the others';
COMMENT ON COLUMN gpuhash_stat.fallbacks_no_buffers IS 'joins on the CPU engine because no buffer was free; likewise the others';

CREATE VIEW gpuhash_stat_activity AS
	SELECT a.pid, d.datname, pg_catalog.pg_get_userbyid(a.role) AS usename, a.device, a.state,
		a.operation, a.keys, a.pages, a.duration_ms
	FROM gpuhash_service_activity() AS a LEFT JOIN pg_catalog.pg_database d ON d.oid = a.database;

COMMENT ON VIEW gpuhash_stat_activity IS 'requests on their way to a GPU or running there now; others'' are shown to members of pg_monitor';
COMMENT ON COLUMN gpuhash_stat_activity.state IS 'queued, running, or abandoned by its session';

CREATE VIEW gpuhash_stat_progress AS
	SELECT p.pid, p.relation::pg_catalog.regclass AS relation, p.device, p.command, p.phase, p.total, p.done, p.started
	FROM gpuhash_service_progress() AS p
	WHERE p.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database());

COMMENT ON VIEW gpuhash_stat_progress IS 'how far gpuhash_prewarm, copies of indexes, and loads after a restart are, in this database; of others'' work the pid alone, but for members of pg_read_all_stats';
COMMENT ON COLUMN gpuhash_stat_progress.total IS 'pages or, while the hash table is made, rows; NULL: not known';

-- ------------------------------------------------------------------------- costs

CREATE FUNCTION gpuhash_calibrate(
	OUT setting text,
	OUT current float8,
	OUT suggested float8,
	OUT measured float8,
	OUT why text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpuhash_calibrate'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_calibrate()
	IS 'measures for some seconds what the planner''s costs of gpuhash stand for on this machine: microseconds, and the settings that follow; it changes none';

-- ------------------------------------------------------------------------- index

CREATE FUNCTION gpuhash_index_handler(internal)
RETURNS index_am_handler
AS 'MODULE_PATHNAME', 'gpuhash_index_handler'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION gpuhash_index_handler(internal) IS 'handler of the index access method gpuhash';

CREATE ACCESS METHOD gpuhash TYPE INDEX HANDLER gpuhash_index_handler;

COMMENT ON ACCESS METHOD gpuhash IS 'index that is a B-tree of PostgreSQL''s own on disk';

CREATE FUNCTION gpuhash_add_operator_classes()
RETURNS SETOF text
AS 'MODULE_PATHNAME', 'gpuhash_add_operator_classes'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET gpuhash.enabled = off;

COMMENT ON FUNCTION gpuhash_add_operator_classes()
	IS 'gives the access method gpuhash the operator classes and families of btree that it lacks; returns the statements that did it';

-- those of PostgreSQL's own
SELECT pg_catalog.count(*) FROM gpuhash_add_operator_classes();

-- -------------------------------------------------------------------- privileges

-- What makes and frees tables is to be granted.  Whoever is let to write to a table,
-- by its owner, needs no more.
REVOKE ALL ON FUNCTION gpuhash_create(text, int, bool, int, float8, float8, bigint, bool, int) FROM PUBLIC;
REVOKE ALL ON FUNCTION gpuhash_drop(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION gpuhash_clear(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION gpuhash_reserve(text, bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION gpuhash_compact(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION gpuhash_stat_reset() FROM PUBLIC;
REVOKE ALL ON FUNCTION gpuhash_calibrate() FROM PUBLIC;
REVOKE ALL ON FUNCTION gpuhash_add_operator_classes() FROM PUBLIC;

GRANT SELECT ON gpuhash_tables, gpuhash_subtables, gpuhash_devices, gpuhash_stat, gpuhash_stat_activity, gpuhash_stat_progress, gpuhash_resident
	TO PUBLIC;

-- ------------------------------------------------------------------------ notice

-- At commit a NOTICE says in which sessions gpuhash is active.
SELECT gpuhash_mode();
