# Indexes of the access method gpuhash while several sessions write, roll back and use prepared transactions, VACUUM runs in
# all its ways, and indexes are made, made again and dropped CONCURRENTLY, some of that cancelled: in one snapshot the rows
# by an index are those of the table, and at the end amcheck finds nothing.
#
#	GPUHASH_SECONDS		of that (12)
#	GPUHASH_SEED		to begin with
use GpuHash::Test;
use GpuHash::Index;
use POSIX ();
use Time::HiRes qw(time sleep);

my $seconds = $ENV{GPUHASH_SECONDS} || 12;
my $seed = seed();
my $server = GpuHash::Server->new(conf => ['max_prepared_transactions = 10', 'autovacuum = off', 'max_worker_processes = 8', 'min_parallel_index_scan_size = 0', 'synchronous_commit = off']);
$server->query("SET client_min_messages = warning; CREATE EXTENSION gpuhash; CREATE TABLE t (k int, a bigint, x text, filler text DEFAULT repeat('f', 100)) WITH (fillfactor = 70)");
$server->query('INSERT INTO t SELECT (i * 7919::bigint) % 3000, i % 200, md5(i::text) FROM generate_series(1, 5000) i');
$server->query('CREATE INDEX t_k ON t USING gpuhash (k) INCLUDE (a); CREATE INDEX t_x ON t USING gpuhash (x); CREATE INDEX t_a ON t USING gpuhash (a); VACUUM ANALYZE t');
my @COLUMNS = qw(k a x);

my @VACUUMS = ('VACUUM t', 'VACUUM (INDEX_CLEANUP on) t', 'VACUUM (INDEX_CLEANUP off) t', 'VACUUM (PARALLEL 2) t', 'VACUUM (FREEZE) t', 'VACUUM (DISABLE_PAGE_SKIPPING, INDEX_CLEANUP on) t');
my @REBUILDS = ('REINDEX INDEX CONCURRENTLY t_k', 'REINDEX INDEX CONCURRENTLY t_x', 'REINDEX TABLE CONCURRENTLY t', 'DROP INDEX CONCURRENTLY IF EXISTS t_c', 'CREATE INDEX CONCURRENTLY t_c ON t USING gpuhash (x DESC, k)', 'REINDEX INDEX t_a');
my $transactions = 0;

sub change
{
	my ($number) = @_;
	my $from = int(rand(3000));
	my $few = "k BETWEEN $from AND $from + 5";
	my $rows = "SELECT $from + i, i, md5((i * $from)::text) FROM generate_series(1, 10) i";
	my $name = "p$number." . $transactions++;
	my @changes = ("INSERT INTO t $rows", "DELETE FROM t WHERE $few", "UPDATE t SET filler = 'g' WHERE $few", "UPDATE t SET k = k + 1, x = x || 'y' WHERE $few", "UPDATE t SET a = a + 1 WHERE $few",
		"BEGIN; INSERT INTO t $rows; ROLLBACK", "BEGIN; SAVEPOINT s; INSERT INTO t $rows; ROLLBACK TO s; UPDATE t SET a = -a WHERE $few; COMMIT", "BEGIN; INSERT INTO t $rows; DELETE FROM t WHERE k = $from + 3; PREPARE TRANSACTION '$name'; COMMIT PREPARED '$name'",
		"BEGIN; INSERT INTO t $rows; PREPARE TRANSACTION '$name'; ROLLBACK PREPARED '$name'", "COPY t (k, a, x) FROM PROGRAM 'seq -f \"%.0f\t5\tc\" $from " . ($from + 9) . "'", "DELETE FROM t WHERE ctid IN (SELECT ctid FROM t WHERE $few FOR UPDATE SKIP LOCKED)");
	return $changes[int(rand(@changes))];
}

# A process that does what it is given until the time is over, and how often it did.
my $end = time + $seconds;
sub start
{
	my ($number, $work) = @_;
	my $pid = fork // die "fork: $!";
	return $pid if $pid != 0;
	srand($seed + $number);
	eval {
		my $session = $server->session;
		$session->do('SET enable_seqscan = off; SET client_min_messages = error');
		while (time < $end)
		{
			my (undef, $error) = $session->do($work->(), 120);
			print STDERR "# $error\n" if $error ne '' && $error !~ /40P01|57014|42P07|23505|canceling/;
		}
		1;
	} or print STDERR "# $@";
	POSIX::_exit(0);
}

my @pids = ((map { my $number = $_; start($number, sub { change($number) }) } 1 .. 3), start(10, sub { sleep rand() * 0.2; $VACUUMS[int(rand(@VACUUMS))] }),
	start(11, sub { sleep rand() * 0.3; $REBUILDS[int(rand(@REBUILDS))] }),
	start(12, sub { sleep 0.5 + rand(); "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query ~ 'CONCURRENTLY|VACUUM' AND state = 'active' AND pid <> pg_backend_pid()" }));

my ($rounds, $wrong, $rows) = (0, '', 0);
my $session = $server->session;
while (time < $end && $wrong eq '')
{
	$session->do('BEGIN ISOLATION LEVEL ' . ('REPEATABLE READ', 'SERIALIZABLE')[$rounds % 2]);
	my $want = sums($session, 'scan', 't', @COLUMNS);
	for (0 .. $rounds % 3)
	{
		my $got = sums($session, 'index', 't', @COLUMNS);
		$wrong = "by an index\n$got\nand of the table\n$want" if $got ne $want && ($got . $want) !~ /ERROR: +40/;
		sleep 0.1;
	}
	$session->do('COMMIT');
	$rounds++;
}
waitpid $_, 0 for @pids;
is($wrong, '', "$rounds times, an index had the rows of the table");
cmp_ok($rounds, '>', $seconds / 4, 'often enough');
my $want = sums($session, 'scan', 't', @COLUMNS);
is(sums($session, 'index', 't', @COLUMNS), $want, 'and has them at the end');
is(broken($server) // '', '', 'amcheck finds nothing');
# what was cancelled has left indexes that are not valid; they can be dropped, the others be made again
$server->query("DO \$\$ DECLARE i regclass; BEGIN FOR i IN SELECT indexrelid FROM pg_index WHERE indrelid = 't'::regclass AND NOT indisvalid LOOP EXECUTE 'DROP INDEX ' || i; END LOOP; END \$\$; REINDEX TABLE t");
is($server->query("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass AND indisvalid AND indexrelid::regclass::text <> 't_c'"), 3, 'all are valid again');
is(broken($server) // '', '', 'and amcheck finds nothing');
unlike($server->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
Test::More::note("rows: " . $server->query('SELECT count(*) FROM t'));
done_testing();
