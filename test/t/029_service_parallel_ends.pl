# Joins of the participants of a parallel query with one table on the GPU, of which the
# leader's part ends early: rescans after the first row, with a batch in flight, and errors
# after it has gone on without the device.  The leader is alone, so that it is always the
# one; with workers 028 tries all this at random moments.
use GpuHash::Test 'module';
use GpuHash::Service;

my $CLEAN = $GpuHash::Service::CLEAN;
my $service = GpuHash::Service->new(conf => ['max_parallel_workers_per_gather = 3', 'max_parallel_workers = 0', 'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'hash_mem_multiplier = 1', 'enable_memoize = off',
	# what it is about is GpuHashJoin
	'gpuhash.enable_rows = off', 'gpuhash.enable_aggregate = off']);
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
$server->query(<<'SQL');
CREATE TABLE o AS SELECT i AS id, i % 7000 AS k FROM generate_series(1, 20000) i;
CREATE TABLE i AS SELECT i AS id, i % 9000 AS k, 'row ' || i AS t FROM generate_series(1, 12000) i;
ANALYZE o, i;
SQL
my $session = $server->session;

# -------------------------------------------------- rescans after a row or few
my $exists = 'SELECT count(*) FROM (VALUES (1), (2), (5000), (30000)) v(x) WHERE EXISTS ' .
	'(SELECT 1 FROM (SELECT o.id FROM o JOIN i ON i.k = o.k OFFSET 0) s WHERE s.id > v.x)';
for my $memory (qw(4MB 64kB))
{
	$session->do("SET work_mem = '$memory'");
	my ($plan) = $session->do("EXPLAIN (COSTS OFF) $exists");
	like($plan, qr/Nested Loop Semi Join.*Gather.*Parallel Custom Scan \(GpuHashJoin\)/s, 'it is run for each row of the outer side');
	my ($out, $err) = $session->do($exists);
	is("$out$err", '3', "rescans that stop early, $memory");
}

# ------------------------------------- an error after the device has failed
my $error = 'SELECT sum(1 / (o.id - 15000)) FROM o JOIN i ON i.k = o.k';
for my $memory (qw(4MB 64kB))
{
	$session->do("SET work_mem = '$memory'");
	$service->arm('find', 'launch', after => 3, times => 100000);
	my (undef, $err) = $session->do($error);
	like($err, qr/\AERROR:  22012: division by zero\nLOCATION:  .*\z/, "an error after a failure while the table is probed, $memory");
	cmp_ok($service->disarm, '>', 0, 'it had failed');
	like($service->settle, $CLEAN, 'nothing is left over');
}

$session->close;
$service->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
