/* gpuhash_test--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION gpuhash_test" to load this file. \quit

-- Fault points of the service (src/service/faults.h), and what is left over after one.

CREATE FUNCTION gpuhash_fault_arm(point text, kind text, passages int, times int, ms int)
RETURNS void
AS 'MODULE_PATHNAME', 'gpuhash_fault_arm'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_fault_arm(text, text, int, int, int)
	IS 'arm a fault point of the service: after so many passages, so often; ms is for the kind delay';

REVOKE ALL ON FUNCTION gpuhash_fault_arm(text, text, int, int, int) FROM PUBLIC;

CREATE FUNCTION gpuhash_fault_fired()
RETURNS int
AS 'MODULE_PATHNAME', 'gpuhash_fault_fired'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_fault_fired()
	IS 'how often the fault happened since it was armed';

REVOKE ALL ON FUNCTION gpuhash_fault_fired() FROM PUBLIC;

CREATE FUNCTION gpuhash_fault_list(what text)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_fault_list'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_fault_list(text)
	IS 'names of all fault points (points), or of all kinds of faults (kinds)';

REVOKE ALL ON FUNCTION gpuhash_fault_list(text) FROM PUBLIC;

CREATE FUNCTION gpuhash_fault_leftovers()
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_fault_leftovers'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_fault_leftovers()
	IS 'buffers, slots, tables and bytes of each device that are taken at the moment';

REVOKE ALL ON FUNCTION gpuhash_fault_leftovers() FROM PUBLIC;

CREATE FUNCTION gpuhash_fault_paging_limit()
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpuhash_fault_paging_limit'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_fault_paging_limit()
	IS 'bytes of page-locked memory that tables of the first device may take, as its worker has it';

REVOKE ALL ON FUNCTION gpuhash_fault_paging_limit() FROM PUBLIC;

CREATE FUNCTION gpuhash_fault_ready()
RETURNS int
AS 'MODULE_PATHNAME', 'gpuhash_fault_ready'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_fault_ready()
	IS 'number of devices whose worker serves requests';

REVOKE ALL ON FUNCTION gpuhash_fault_ready() FROM PUBLIC;

-- Requests that no client makes, past all its checks: they must be refused.

CREATE FUNCTION gpuhash_forge_hold()
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_forge_hold'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_forge_hold()
	IS 'make a table and a buffer with known content: slot, table, generation';

REVOKE ALL ON FUNCTION gpuhash_forge_hold() FROM PUBLIC;

CREATE FUNCTION gpuhash_forge_held()
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_forge_held'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_forge_held()
	IS 'whether the table and the buffer of this session are as they were made';

REVOKE ALL ON FUNCTION gpuhash_forge_held() FROM PUBLIC;

CREATE FUNCTION gpuhash_forge_request(
	table_number int, generation bigint, fields text, appended int)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_forge_request'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_forge_request(int, bigint, text, int)
	IS 'submit a find of 100 keys with some fields changed';

REVOKE ALL ON FUNCTION gpuhash_forge_request(int, bigint, text, int) FROM PUBLIC;

CREATE FUNCTION gpuhash_forge_hold_pipeline()
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_forge_hold_pipeline'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_forge_hold_pipeline()
	IS 'make pipelines, a table, marks and a buffer: slot, and number and generation of each';

REVOKE ALL ON FUNCTION gpuhash_forge_hold_pipeline() FROM PUBLIC;

CREATE FUNCTION gpuhash_forge_pipeline(
	relation oid, pipeline int, generation bigint, page text, page_offset bigint, fields text)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_forge_pipeline'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_forge_pipeline(oid, int, bigint, text, bigint, text)
	IS 'submit a page to a pipeline with some fields changed';

REVOKE ALL ON FUNCTION gpuhash_forge_pipeline(oid, int, bigint, text, bigint, text) FROM PUBLIC;

CREATE FUNCTION gpuhash_forge_span(pages bigint)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_forge_span'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_forge_span(bigint) IS 'make a span of so many pages; its root, or why there is none';

REVOKE ALL ON FUNCTION gpuhash_forge_span(bigint) FROM PUBLIC;

CREATE FUNCTION gpuhash_forge_columns(part text, address text, "offset" bigint, fields text)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_forge_columns'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_forge_columns(text, text, bigint, text)
	IS 'submit rows as columns of which a part is elsewhere';

REVOKE ALL ON FUNCTION gpuhash_forge_columns(text, text, bigint, text) FROM PUBLIC;

CREATE FUNCTION gpuhash_forge_unmatched(relation oid, fields text)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_forge_unmatched'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_forge_unmatched(oid, text)
	IS 'submit a request for all rows of a table, with some fields changed';

REVOKE ALL ON FUNCTION gpuhash_forge_unmatched(oid, text) FROM PUBLIC;

CREATE FUNCTION gpuhash_forge_names(which int, source_root bigint, table_root bigint, marks_root bigint)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_forge_names'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_forge_names(int, bigint, bigint, bigint)
	IS 'have a pipeline made that uses what it is not to use';

REVOKE ALL ON FUNCTION gpuhash_forge_names(int, bigint, bigint, bigint) FROM PUBLIC;

CREATE FUNCTION gpuhash_forge_sets(there int, said bigint, changed text)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_forge_sets'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_forge_sets(int, bigint, text)
	IS 'have a pipeline made with other sets of groups than there are';

REVOKE ALL ON FUNCTION gpuhash_forge_sets(int, bigint, text) FROM PUBLIC;

CREATE FUNCTION gpuhash_forge_blocks(times int, seed bigint)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_forge_blocks'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_forge_blocks(int, bigint)
	IS 'have pipelines made by damaged options';

REVOKE ALL ON FUNCTION gpuhash_forge_blocks(int, bigint) FROM PUBLIC;

-- Pipelines through the service, as a node has them done.

CREATE FUNCTION gpuhash_trial_pipeline(
	engine text, shape text, outer_relation oid, inner_relation oid, mode text, pages int, flight int,
	capacity int, early bool)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_trial_pipeline'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_trial_pipeline(text, text, oid, oid, text, int, int, int, bool)
	IS 'what comes out of a pipeline, by the service or the CPU engine';

REVOKE ALL ON FUNCTION gpuhash_trial_pipeline(text, text, oid, oid, text, int, int, int, bool) FROM PUBLIC;

CREATE FUNCTION gpuhash_trial_shared(step text, number bigint, relation oid, first_block int, end_block int)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_trial_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_trial_shared(text, bigint, oid, int, int)
	IS 'a step of this session with a pipeline or a table that several share';

REVOKE ALL ON FUNCTION gpuhash_trial_shared(text, bigint, oid, int, int) FROM PUBLIC;

-- Comparisons with PostgreSQL.

CREATE FUNCTION gpuhash_check_pages(relation regclass)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_check_pages'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_check_pages(regclass)
	IS 'compare what the engine reads from pages with what PostgreSQL reads';

REVOKE ALL ON FUNCTION gpuhash_check_pages(regclass) FROM PUBLIC;

CREATE FUNCTION gpuhash_check_program(relation regclass, value text, condition text)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_check_program'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_check_program(regclass, text, text)
	IS 'compare an expression as a program with PostgreSQLs, row by row';

REVOKE ALL ON FUNCTION gpuhash_check_program(regclass, text, text) FROM PUBLIC;

CREATE FUNCTION gpuhash_test_guard(has_list bool)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_test_guard'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_test_guard(bool)
	IS 'an error under the guard: which locks are held after it';

REVOKE ALL ON FUNCTION gpuhash_test_guard(bool) FROM PUBLIC;

CREATE FUNCTION gpuhash_test_copy_index(index regclass, us int = 0)
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpuhash_test_copy_index'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_test_copy_index(regclass, int)
	IS 'copies an index into the session, and waits after each page; returns its entries, or -1: it may not be copied';

CREATE FUNCTION gpuhash_test_check_copy(index regclass)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_test_check_copy'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_test_check_copy(regclass)
	IS 'blocks that the copy is right for, entries on them, and blocks of these whose rows are others';

CREATE FUNCTION gpuhash_test_fuzz_leaves(index regclass, times int, seed bigint)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_test_fuzz_leaves'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_test_fuzz_leaves(regclass, int, bigint)
	IS 'reads an index with a damaged page, so many times: how often to the end, not to it, and values outside of a page';

REVOKE ALL ON FUNCTION gpuhash_test_fuzz_leaves(regclass, int, bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION gpuhash_test_copy_index(regclass, int) FROM PUBLIC;
REVOKE ALL ON FUNCTION gpuhash_test_check_copy(regclass) FROM PUBLIC;

-- Measurements, for test/bench/page_bench.sh and service_bench.sh.

CREATE FUNCTION gpuhash_measure_pages(
	relation regclass, way text, page_window int = 8, ring bool = false, start_block int = 0, repetitions int = 1)
RETURNS TABLE (pages bigint, tuples bigint, checksum bigint, reads bigint, ns bigint, cpu_ns bigint)
AS 'MODULE_PATHNAME', 'gpuhash_measure_pages'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_measure_pages(regclass, text, int, bool, int, int)
	IS 'what a page costs the host that supplies it';

REVOKE ALL ON FUNCTION gpuhash_measure_pages(regclass, text, int, bool, int, int) FROM PUBLIC;

CREATE FUNCTION gpuhash_measure_requests(requests int, keys int)
RETURNS text
AS 'MODULE_PATHNAME', 'gpuhash_measure_requests'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuhash_measure_requests(int, int)
	IS 'what the way through the service costs a request';

REVOKE ALL ON FUNCTION gpuhash_measure_requests(int, int) FROM PUBLIC;
