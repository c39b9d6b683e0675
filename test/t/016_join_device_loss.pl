# A join whose GPU fails, at every request in turn: it goes on with the CPU engine
# and gives PostgreSQL's answer.  A stand-in for the CUDA engine (test/fault) fails
# on demand.
use GpuHash::Test;
use GpuHash::Fault;

my $fault = GpuHash::Fault->needed;

my $server = GpuHash::Server->new(conf => [
	"session_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cuda'", 'gpuhash.batch_rows = 256',
	'max_parallel_workers_per_gather = 0', 'enable_material = off', 'jit = off']);
$server->query(<<'SQL');
CREATE TABLE o AS SELECT i AS id, CASE WHEN i % 11 = 0 THEN NULL ELSE i % 700 END AS k, 'key ' || i % 900 AS t FROM generate_series(1, 2500) i;
CREATE TABLE i AS SELECT i AS id, i % 900 AS k, 'key ' || i % 1000 AS t FROM generate_series(1, 2000) i;
CREATE TABLE u AS SELECT i AS k, CASE WHEN i % 5 > 0 THEN i * 3 END AS v, i * 5 AS w, CASE i WHEN 1999 THEN 3 ELSE i END AS late FROM generate_series(1, 2000) i;
ANALYZE o, i, u;
CREATE EXTENSION gpuhash;
SQL

my %QUERY = (
	inner => 'SELECT o.id, i.id FROM o JOIN i ON i.k = o.k',
	right => 'SELECT o.id, i.id, i.t FROM o RIGHT JOIN i ON i.k = o.k AND o.id > 500',
	full => 'SELECT o.id, i.id, i.t FROM o FULL JOIN i ON i.k = o.k AND i.id > 500',
	semi => 'SELECT o.id FROM o WHERE EXISTS (SELECT FROM i WHERE i.k = o.k AND i.id > o.id)',
	anti => 'SELECT i.id FROM i WHERE NOT EXISTS (SELECT FROM o WHERE i.k = o.k)',
	left => 'SELECT o.id, i.id, i.t FROM o LEFT JOIN i ON i.k = o.k AND i.id > 500',
	text => 'SELECT o.id, i.id FROM o JOIN i ON i.t = o.t AND i.k <> o.k',
	two => 'SELECT o.id, i.id, j.id FROM o JOIN i ON i.k = o.k LEFT JOIN i j ON j.t = o.t',
	rescan => 'SELECT v.x, s.* FROM (VALUES (1), (2)) v(x), LATERAL (SELECT o.id, i.id FROM o LEFT JOIN i ON i.k = o.k WHERE o.id % 2 < v.x OFFSET 0) s',
	wide => 'SELECT o.id, i.id FROM o JOIN i ON i.k = o.k::bigint',
	wide_full => 'SELECT o.id, i.id, i.t FROM o FULL JOIN i ON i.k::bigint = o.k AND i.id > 500',
	wide_columns => 'SELECT o.id, u.v, u.k FROM o LEFT JOIN u ON u.k = o.id AND u.v > o.k',
	wide_columns_late => 'SELECT o.id, u.v FROM o JOIN u ON u.late::bigint = o.id',
	columns => 'SELECT o.id, u.w FROM o LEFT JOIN u ON u.k = o.id AND u.w > o.k',
	columns_late => 'SELECT o.id, u.w FROM o JOIN u ON u.late = o.id',
	columns_partitions => 'SELECT o.id, u.w FROM o LEFT JOIN u ON u.k = o.id',
	full_partitions => 'SELECT o.id, i.id, i.t FROM o FULL JOIN i ON i.k = o.k AND i.id <> o.id',
	partitions => 'SELECT o.id, i.id, i.t FROM o LEFT JOIN i ON i.k = o.k');

# An order-independent digest of what a query returns.
sub digest
{
	my ($session, $query) = @_;
	my ($out, $err) = $session->do("SELECT count(*), sum(hashtextextended(r::text, 0)::numeric) FROM ($query) r");
	return $out . $err;
}

my ($tried, $survived) = (0, 0);
my $session = $server->session;
for my $name (sort keys %QUERY)
{
	my $query = $QUERY{$name};
	$session->do($name =~ /partitions/ ? "SET work_mem = '64kB'; SET hash_mem_multiplier = 1" : 'RESET work_mem; RESET hash_mem_multiplier');
	$session->do('SET gpuhash.enabled = off');
	my $want = digest($session, $query);
	$session->do('RESET gpuhash.enabled; SET gpuhash.force_offload = on');
	my ($plan) = $session->do("EXPLAIN $query");
	like($plan, qr/GpuHashJoin/, "$name is offloaded");
	is(digest($session, $query), $want, "$name on the device");

	my @wrong;
	for (my $n = 0;; $n++)
	{
		$fault->fail_after($n);
		my $got = digest($session, $query);
		my $failed = $fault->has_failed;
		$fault->repair;
		last unless $failed;
		$tried++;
		$got eq $want ? $survived++ : push @wrong, "request $n: $got";
	}
	is("@wrong", '', "$name with every request failing in turn");
	$session->do('RESET gpuhash.force_offload');
}
note("$survived of $tried device failures survived");
cmp_ok($tried, '>=', 60, 'enough failures were tried');

# the buffers of a join that has begun stay as large as they are
$session->do('SET gpuhash.enabled = off');
my ($want) = $session->do("SELECT count(*) FROM ($QUERY{inner}) s");
$session->do("RESET gpuhash.enabled; SET gpuhash.force_offload = on; SET work_mem = '1GB'; BEGIN");
$session->do("DECLARE c NO SCROLL CURSOR FOR $QUERY{inner}");
$session->do('MOVE 1 FROM c; SET gpuhash.batch_rows = 1000000');
my ($moved, $moved_err) = $session->do('FETCH ALL FROM c');
is(scalar(split /\n/, $moved) . $moved_err, $want - 1, 'gpuhash.batch_rows is set while a cursor is open');
$session->do('COMMIT; RESET gpuhash.batch_rows; RESET gpuhash.force_offload; RESET work_mem');

# what the user sees
$session->do("SET gpuhash.force_offload = on; RESET work_mem; RESET hash_mem_multiplier");
$fault->fail_after(3);
my ($out) = $session->do("EXPLAIN (ANALYZE, COSTS OFF) $QUERY{inner}");
like($out, qr/Engine: cpu/, 'EXPLAIN ANALYZE shows the engine that finished');
like($out, qr/Fallback Reason: the test lets the device fail/, 'EXPLAIN ANALYZE shows why');

# too little device memory is no error of a join, but one of a named table
$fault->repair;
for my $limit ('0', '1MB')
{
	my $large = 'SELECT a.i, b.i FROM generate_series(1, 100000) a(i) JOIN generate_series(1, 100000) b(i) USING (i)';
	$session->do("SET gpuhash.device_memory_limit = '$limit'");
	($out) = $session->do("EXPLAIN (ANALYZE, COSTS OFF) $large");
	like($out, qr/Engine: cpu/, "device_memory_limit = $limit: the CPU engine joins");
	like($out, qr/Fallback Reason: .*limit/, 'EXPLAIN ANALYZE shows why');
	($out) = $session->do("SELECT count(*) FROM ($large) s");
	is($out, '100000', 'and the answer is right');
	my (undef, $err) = $session->do("SELECT gpuhash_create('t', capacity => 1000000)");
	like($err, qr/ERROR:  53400: .*\n.*HINT:.*gpuhash\.device_memory_limit/s, 'a named table says so');
}
$session->do('RESET gpuhash.device_memory_limit');

$session->do('SET gpuhash.fallback = error');
for my $n (0, 1, 5)
{
	$fault->fail_after($n);
	my (undef, $err) = $session->do($QUERY{inner});
	like($err, qr/ERROR:  55000: could not join through the hash table: the test lets the device fail\n.*HINT:/s, "fallback = error, request $n");
	$fault->repair;
	($out) = $session->do("SELECT count(*) FROM ($QUERY{inner}) s");
	like($out, qr/^\d+$/, 'the session goes on');
}

done_testing();
