# Indexes of the access method gpuhash over the life of a server: without gpuhash preloaded, on a standby, after crashes
# of either, promoted, with VACUUM in several processes, dumped and restored; what amcheck finds in them, of each entry and
# each row.  WAL of them is PostgreSQL's own, checked page by page as it is replayed.
use GpuHash::Test;
use POSIX ();
use GpuHash::Index;
use Time::HiRes qw(time sleep);

my $seed = seed();
my $server = GpuHash::Server->new(conf => ['wal_level = replica', 'max_wal_senders = 4', 'hot_standby = on', 'max_prepared_transactions = 4',
	'wal_consistency_checking = all', 'wal_keep_size = 1GB', 'autovacuum = off', 'max_standby_streaming_delay = -1', 'max_worker_processes = 8', 'jit = off']);
my $version = $server->query('SHOW server_version_num');
my $asserts = $server->query('SHOW debug_assertions') eq 'on';
$server->query('SET client_min_messages = warning; CREATE EXTENSION gpuhash');
$server->query("CREATE TABLE t (k int, a bigint, x text, n numeric, u uuid, filler text DEFAULT repeat('f', 40)) WITH (fillfactor = 80)");
my @COLUMNS = qw(k a x n u);

sub rows
{
	my ($few, $from) = @_;
	return "SELECT (random() * 5000)::int, CASE WHEN i % 9 > 0 THEN i % 300 END, 'x' || (i * 7 % 1000) || repeat('y', i % 30), i / 8.0, md5(i::text)::uuid FROM generate_series($from, $from + $few - 1) i";
}
$server->query('SELECT setseed(0.5); INSERT INTO t ' . rows(8000, 1));
$server->query("CREATE INDEX t_k ON t USING gpuhash (k) INCLUDE (a); CREATE INDEX t_a ON t USING gpuhash (a DESC); CREATE INDEX t_x ON t USING gpuhash (x, k); CREATE INDEX t_n ON t USING gpuhash (n) WHERE n IS NOT NULL;
	CREATE INDEX t_u ON t USING gpuhash (u); CREATE INDEX t_e ON t USING gpuhash (length(x), lower(x)); VACUUM ANALYZE t");
$server->query("CREATE UNLOGGED TABLE unlogged AS SELECT i AS k FROM generate_series(1, 1000) i; CREATE INDEX unlogged_k ON unlogged USING gpuhash (k)");

# ------------------------------------------------------------------------ how it is built

# The phases of a build are those of a B-tree: here it waits for a lock in the expression of the first row.
{
	my $holder = $server->session;
	$holder->do('SELECT pg_advisory_lock(1)');
	$server->query('CREATE FUNCTION waits(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN $1; END $$');
	my $builder = $server->session;
	$builder->send('CREATE INDEX t_w ON t USING gpuhash (waits(k))');
	my $seen = '';
	for (1 .. 100)
	{
		last if ($seen = $server->query("SELECT phase, relid::regclass, amname FROM pg_stat_progress_create_index p, pg_locks l, pg_am WHERE l.pid = p.pid AND NOT l.granted AND amname = 'gpuhash'")) ne '';
		sleep 0.1;
	}
	is($seen, 'building index: scanning table|t|gpuhash', 'what pg_stat_progress_create_index says while it is built');
	# cancelled, it leaves nothing, and the session's next one is built
	$server->query('SELECT pg_cancel_backend(pid) FROM pg_stat_progress_create_index');
	like(($builder->receive)[1], qr/57014/, 'a build is cancelled');
	$holder->close;
	is(($builder->do('CREATE INDEX t_w ON t USING gpuhash (waits(k)); DROP INDEX t_w'))[1], '', 'the next one is not');
}

# Workers build it where their sort accepts it.
{
	my (undef, undef, $err) = $server->run('SET min_parallel_table_scan_size = 0; SET max_parallel_maintenance_workers = 2; SET maintenance_work_mem = 262144; SET client_min_messages = debug1; CREATE INDEX t_p ON t USING gpuhash (k, n); RESET client_min_messages; SET enable_seqscan = off; SELECT count(*) FROM t WHERE k > 5');
	my ($how) = $err =~ /building index "t_p" on table "t" (serially|with request for \d parallel workers)/;
	is($how, $version >= 180000 && !$asserts ? 'with request for 2 parallel workers' : 'serially', 'in how many processes it is built');
	is($server->query('SET enable_seqscan = off; SELECT count(*) FROM t WHERE k >= 0 AND n > 0'), 8000, 'and all rows are in it');
	$server->query('DROP INDEX t_p');
}

# A session that is ended in a build ends alone, however much it has to forget of the catalogs meanwhile.
{
	$server->query('CREATE FUNCTION slow(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.01); RETURN $1; END $$');
	my $builder = $server->session;
	my ($pid) = $builder->do('SELECT pg_backend_pid()');
	$pid += 0;
	# what is dropped at its end, in a transaction of its own
	$builder->do('CREATE TEMP TABLE of_mine (k int)');
	$builder->send('CREATE INDEX t_slow ON t USING gpuhash (slow(k))');
	for (1 .. 100)
	{
		last if $server->query("SELECT count(*) FROM pg_stat_progress_create_index WHERE pid = $pid") > 0;
		sleep 0.05;
	}
	is(kill('STOP', $pid), 1, 'a session that builds is held');
	# with a lock that all others need, it may be: then it goes on after a while
	my $watch = fork // die $!;
	if (!$watch) { sleep 20; kill 'CONT', $pid; POSIX::_exit(0) }
	$server->query('DO $$ BEGIN FOR i IN 1 .. 400 LOOP EXECUTE format(\'CREATE TABLE gone%s (k int)\', i); COMMIT; EXECUTE format(\'DROP TABLE gone%s\', i); COMMIT; END LOOP; END $$');
	kill 'KILL', $watch;
	waitpid $watch, 0;
	$server->query("SELECT pg_terminate_backend($pid)");
	kill('CONT', $pid);
	for (1 .. 200)
	{
		last if $server->query("SELECT count(*) FROM pg_stat_activity WHERE pid = $pid") == 0;
		sleep 0.05;
	}
	is($server->query("SELECT count(*) FROM pg_class WHERE relname = 't_slow'"), 0, 'ended, it leaves nothing');
	unlike($server->log, qr/terminated by signal/, 'and all others go on');
}

# A server with assertions can forget all that it has of the catalogs, whenever it looks into one; but not of relations that
# are new in the transaction, as CONCURRENTLY's are not.
SKIP: {
	skip 'this server does not discard its caches', 1 if $server->query("SELECT max_val FROM pg_settings WHERE name = 'debug_discard_caches'") eq '0';
	my (undef, undef, $err) = $server->run("SET debug_discard_caches = 1; CREATE TABLE d AS SELECT i AS k, 'd' || i AS x FROM generate_series(1, 500) i; CREATE INDEX ON d USING gpuhash (k, x); CREATE INDEX CONCURRENTLY d_x ON d USING gpuhash (x, k); INSERT INTO d SELECT i, 'e' FROM generate_series(1, 300) i; REINDEX TABLE d; REINDEX TABLE CONCURRENTLY d; DROP TABLE d");
	is($err, '', 'built and written to while caches are discarded');
}

# ------------------------------------------------------------------- sessions without gpuhash

# Such a session loads gpuhash with the first index of it that it plans with.  The queries' first half is planned by then.
{
	my @QUERIES = ('SELECT a, count(*) FROM t GROUP BY a ORDER BY a', 'SELECT count(*), sum(y.k) FROM (SELECT k FROM p GROUP BY k) y JOIN t USING (k)',
		'SELECT count(*) FROM p WHERE k IN (SELECT k FROM p) AND k NOT IN (SELECT k FROM t WHERE k > 100)', 'WITH w AS MATERIALIZED (SELECT k FROM p) SELECT count(*) FROM w JOIN t USING (k) JOIN p USING (k)',
		'SELECT (SELECT count(*) FROM p), (SELECT max(t.k) FROM t), count(*) FROM t x JOIN t y ON x.k = y.a WHERE x.n < 100', 'SELECT k FROM p UNION SELECT k FROM t ORDER BY 1 LIMIT 10');
	$server->query('CREATE TABLE p AS SELECT i AS k FROM generate_series(1, 3000) i; ANALYZE p');
	for my $query (@QUERIES)
	{
		my $want = $server->query("LOAD 'gpuhash'; SET gpuhash.enabled = off; $query");
		is($server->query("SET gpuhash.force_offload = on; $query"), $want, "the first query of a session: $query");
		is($server->query("SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_tuple_cost = 0; $query"), $want, 'in several processes');
	}
	$server->query('DROP TABLE p');
}

# --------------------------------------------------------------------- a standby, replay

my $standby = $server->standby;
my ($session, $other) = ($server->session, $standby->session);
like($server->query("SET enable_seqscan = off; SET enable_sort = off; EXPLAIN (COSTS OFF) SELECT $_ FROM t WHERE $_ IS NOT NULL ORDER BY $_"), qr/Index (Only )?Scan (Backward )?using t_$_/, "an index gives the rows in the order of $_") for @COLUMNS;
for my $cycle (1 .. 5)
{
	my $from = int(rand(4000));
	$server->query("DELETE FROM t WHERE k BETWEEN $from AND $from + 700; VACUUM t; INSERT INTO t " . rows(900, 10000 * $cycle));
	$server->query("UPDATE t SET a = -a, x = x || 'z' WHERE k % 7 = $cycle; UPDATE t SET filler = 'g' WHERE k % 5 = $cycle; BEGIN; INSERT INTO t " . rows(500, 1) . '; ROLLBACK');
	$server->query('REINDEX INDEX t_x; VACUUM (INDEX_CLEANUP on, TRUNCATE off) t') if $cycle == 3;
	catch_up($server, $standby);
	my $want = sums($session, 'scan', 't', @COLUMNS);
	is(sums($session, 'index', 't', @COLUMNS), $want, "cycle $cycle: by its indexes the primary has the rows of the table");
	is(sums($other, 'index', 't', @COLUMNS), $want, 'and the standby has them');
}
is(broken($server, $standby) // '', '', 'amcheck finds nothing');

# that it would find something
SKIP: {
	my $function = 'CREATE OR REPLACE FUNCTION fickle(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN $1 + %s; END $$';
	$server->query(sprintf($function, 0) . '; CREATE INDEX t_f ON t USING gpuhash (fickle(k)); ' . sprintf($function, 1));
	my $found = broken($server);
	$server->query('DROP INDEX t_f');
	skip 'no amcheck', 1 if !defined $found;
	like($found, qr/lacks matching index tuple within index "t_f"/, 'amcheck does find an index that lacks rows');
}

my (undef, undef, $said) = $server->run('DELETE FROM t WHERE k % 4 = 0; SET min_parallel_index_scan_size = 0; VACUUM (VERBOSE, PARALLEL 2) t');
like($said, qr/launched [12] parallel vacuum workers? for index vacuuming/, 'workers vacuum them');
catch_up($server, $standby);
is(sums($other, 'index', 't', @COLUMNS), sums($session, 'scan', 't', @COLUMNS), 'and their work is replayed');

# ------------------------------------------------------------------------- crashes

$server->query('BEGIN; INSERT INTO t ' . rows(300, 70000) . "; DELETE FROM t WHERE k < 50; PREPARE TRANSACTION 'p1'");
$server->query("BEGIN; DELETE FROM t WHERE k BETWEEN 4000 AND 4500; PREPARE TRANSACTION 'p2'");
# of rows that no prepared transaction has locked
my @writers;
for my $number (0 .. 1)
{
	my $writer = $server->session;
	$writer->send('DO $$ BEGIN FOR round IN 1..100000 LOOP INSERT INTO t ' . rows(20, 80000 + 5000 * $number) . "; DELETE FROM t WHERE k = 100 + (random() * 3800)::int; UPDATE t SET k = k + 1, x = x || 'w' WHERE k = 100 + (random() * 3800)::int; IF round % 3 = 0 THEN COMMIT; END IF; IF round % 27 = 0 THEN ROLLBACK; END IF; END LOOP; END \$\$");
	push @writers, $writer;
}
sleep 1.5;
$_->close for $session, $other;
$server->stop('immediate');
$standby->stop('immediate');
$_->close for @writers;
$server->start;
$standby->start;
($session, $other) = ($server->session, $standby->session);
cmp_ok($server->query('SELECT count(*) FROM t WHERE n BETWEEN 80000 / 8.0 AND 85020 / 8.0'), '>', 100, 'a crash, and what writers had committed is there');
is(sums($session, 'index', 't', @COLUMNS), sums($session, 'scan', 't', @COLUMNS), 'after a crash under writers: by its indexes it has the rows of the table');
$server->query("COMMIT PREPARED 'p1'");
$server->query("ROLLBACK PREPARED 'p2'");
is(sums($session, 'index', 't', @COLUMNS), sums($session, 'scan', 't', @COLUMNS), 'prepared transactions that end after it');
is($server->query('SET enable_seqscan = off; INSERT INTO unlogged SELECT i FROM generate_series(1, 10) i; SELECT count(*) FROM unlogged WHERE k > 0'), 10, 'an unlogged index is empty, and can be used');
catch_up($server, $standby);
is(sums($other, 'index', 't', @COLUMNS), sums($session, 'scan', 't', @COLUMNS), 'and so is the standby');
is(broken($server, $standby) // '', '', 'amcheck finds nothing after it');

# ---------------------------------------------------------------------- dump and restore

{
	my $definitions = "SELECT string_agg(d, E'\\n' ORDER BY d) FROM (SELECT pg_get_indexdef(c.oid) AS d FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'gpuhash') x";
	# an operator class of a user's, and what it is for
	$server->query("CREATE TYPE pair AS (x int, y int); " . join('; ', map { my ($o, $f) = @$_; "CREATE FUNCTION pair_$f(pair, pair) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS 'record_$f'; CREATE OPERATOR $o (FUNCTION = pair_$f, LEFTARG = pair, RIGHTARG = pair)" } ['<#', 'lt'], ['<=#', 'le'], ['=#', 'eq'], ['>=#', 'ge'], ['>#', 'gt']));
	$server->query("CREATE FUNCTION pair_cmp(pair, pair) RETURNS int IMMUTABLE STRICT LANGUAGE internal AS 'btrecordcmp'; CREATE OPERATOR CLASS pair_ops DEFAULT FOR TYPE pair USING btree AS OPERATOR 1 <#, OPERATOR 2 <=#, OPERATOR 3 =#, OPERATOR 4 >=#, OPERATOR 5 >#, FUNCTION 1 pair_cmp(pair, pair)");
	is(scalar(split /\n/, $server->query('SELECT gpuhash_add_operator_classes()')), 2, 'an operator class is added');
	$server->query('CREATE TABLE pairs AS SELECT ROW(i, -i)::pair AS p FROM generate_series(1, 100) i; CREATE INDEX ON pairs USING gpuhash (p); CREATE TABLE e (k int, EXCLUDE USING gpuhash (k WITH =)); INSERT INTO e VALUES (1), (2)');
	my $want = $server->query($definitions);
	GpuHash::Server::must("$server->{bin}/pg_dump", '-h', $server->{dir}, '-U', 'postgres', '-f', "$server->{dir}/dump", 'postgres');
	$server->query('CREATE DATABASE restored');
	GpuHash::Server::must("$server->{bin}/psql", '-Xq', '-v', 'ON_ERROR_STOP=1', '-h', $server->{dir}, '-U', 'postgres', '-f', "$server->{dir}/dump", 'restored');
	my $ask = sub { my $out = GpuHash::Server::must("$server->{bin}/psql", '-XqAt', '-h', $server->{dir}, '-U', 'postgres', '-d', $_[0], '-c', $_[1]); chomp $out; return $out };
	is($ask->('restored', $definitions), $want, 'dumped and restored: the same indexes');
	my $rows = "SET enable_seqscan = off; SELECT count(*), sum(k), sum(a) FROM t WHERE k >= 0";
	is($ask->('restored', $rows), $ask->('postgres', $rows), 'with the same rows');
	is($ask->('restored', 'SELECT count(*) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE amname = \'gpuhash\''), $server->query("SELECT count(*) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'gpuhash'"), 'and the same operator classes');
	eval { $ask->('restored', 'INSERT INTO e VALUES (2)') };
	like($@, qr/conflicting key value violates exclusion constraint/, 'and constraints');
}

# --------------------------------------------------------------------------- promotion

catch_up($server, $standby);
$server->query('SELECT 1');
$_->close for $session, $other;
$server->stop;
$standby->query('SELECT pg_promote()');
$standby->query("INSERT INTO t " . rows(2000, 90000) . '; DELETE FROM t WHERE k % 3 = 0; VACUUM t');
$other = $standby->session;
is(sums($other, 'index', 't', @COLUMNS), sums($other, 'scan', 't', @COLUMNS), 'promoted, a standby goes on with them');
is(broken($standby) // '', '', 'amcheck finds nothing there');
$other->close;

unlike($server->log . $standby->log, qr/PANIC|TRAP:|inconsistent page found/, 'nothing failed');
done_testing();
