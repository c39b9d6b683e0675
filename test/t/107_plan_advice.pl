# Advice of PostgreSQL 19 (pg_plan_advice): what is against a hash join, a Seq Scan, or an order of joins is so for
# gpuhash's nodes, too, and everything else leaves them.
use GpuHash::Test;

my $server = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'", 'autovacuum = off', 'max_parallel_workers_per_gather = 0']);
my $session = $server->session;
if (($session->do("LOAD 'pg_plan_advice'"))[1] ne '')
{
	$session->close;
	$server->stop;
	plan(skip_all => 'no pg_plan_advice');
}
$session->do('SET client_min_messages = warning; SET gpuhash.force_offload = on; SET enable_material = off;
	CREATE TABLE a (id int, k int); INSERT INTO a SELECT i, i % 100 FROM generate_series(1, 3000) i;
	CREATE TABLE b (k int, v int); INSERT INTO b SELECT i, i FROM generate_series(1, 2000) i; CREATE INDEX b_k ON b (k); ANALYZE a, b');

sub plan_with
{
	my ($advice, $query) = @_;
	my ($plan, $error) = $session->do("SET pg_plan_advice.advice = '$advice'; EXPLAIN (COSTS OFF) $query");
	is($error, '', "no error with \"$advice\"");
	return $plan;
}

my $JOIN = 'SELECT * FROM a JOIN b USING (k)';
my $SCAN = 'SELECT * FROM b WHERE k < 1500 AND v % 7 = 3';
like(plan_with('', $JOIN), qr/GpuHashJoin/, 'without advice it is a GpuHashJoin');
like(plan_with('HASH_JOIN(b)', $JOIN), qr/GpuHashJoin.*Seq Scan on a.*Seq Scan on b/s, 'a hash join may be one');
like(plan_with('HASH_JOIN(a)', $JOIN), qr/GpuHashJoin.*Seq Scan on b.*Seq Scan on a/s, 'with the sides as they are wanted');
like(plan_with('JOIN_ORDER(b a)', $JOIN), qr/GpuHashJoin.*Seq Scan on b.*Seq Scan on a/s, 'also by an order of joins');
my %instead = (MERGE_JOIN_PLAIN => 'Merge Join', NESTED_LOOP_PLAIN => 'Nested Loop');
for my $method (sort keys %instead)
{
	my $plan = plan_with("$method(b)", $JOIN);
	like($plan, qr/$instead{$method}/, "another method is taken: $method");
	unlike($plan, qr/GpuHashJoin/, "$method: and no GpuHashJoin");
}
like(plan_with('', $SCAN), qr/GpuHashScan/, 'without advice it is a GpuHashScan');
like(plan_with('SEQ_SCAN(b)', $SCAN), qr/GpuHashScan/, 'a Seq Scan may be one');
unlike(plan_with('INDEX_SCAN(b b_k)', $SCAN), qr/GpuHashScan/, 'an index scan is none');
($_) = $session->do("SET pg_plan_advice.advice = ''; SET enable_hashjoin = off; EXPLAIN (COSTS OFF) $JOIN");
like($_, qr/GpuHashJoin/, 'enable_hashjoin is no advice');
$session->close;
$server->stop;
done_testing();
