# Requests over pages that stay on the device have many more lines than rows may come back: as long as few do, all is done by
# the device; where more come than there is room for, the CPU engine does all anew.  Answers are PostgreSQL's.  In the
# place of the CUDA engine there is a stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use GpuHash::Resident 'well';
use GpuHash::Service;

# few pins, and so room for some ten thousand rows that come back
my $service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, 'max_connections = 200']);
my ($session, $other) = GpuHash::Resident::sessions($service);

my $ROWS = 400_000;
my $SUMS = 'SELECT count(*), sum(b), sum(id) FROM t WHERE id % 10 <> 3';
my $GROUPS = 'SELECT id % 5 AS g, sum(n), sum(b) FROM t GROUP BY 1';

# t with NaN, which comes back, where a condition holds; all of it is on the device.
sub make_table
{
	my ($nan) = @_;
	well($other, "DROP TABLE IF EXISTS t; CREATE TABLE t (id int, n bigint, b numeric(12, 2)) WITH (autovacuum_enabled = off)");
	well($other, "INSERT INTO t SELECT i, i * 3, CASE WHEN $nan THEN 'NaN'::numeric ELSE i % 1000 END FROM generate_series(1, $ROWS) i");
	well($other, 'VACUUM ANALYZE t');
	my $pages = well($session, "SELECT gpuhash_prewarm('t')");
	is(GpuHash::Resident::shown($session, 't'), $pages, "$nan: all pages are there");
	return;
}

# What became of it: the plan, and PostgreSQL's answer.
sub plan_of
{
	my ($what, $sql) = @_;
	my $plan = well($session, "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) $sql");
	my $answer = GpuHash::Resident::compare($session, queries => { query => $sql });
	is($answer->{wrong}, '', "$what: PostgreSQL's answer");
	return $plan;
}

make_table('false');
for my $sql ($SUMS, $GROUPS)
{
	my $plan = plan_of('no row', $sql);
	like($plan, qr/Engine: cuda/, 'no row comes back: it is done by the device');
	like($plan, qr/Rows Handed Back: 0\b/, 'and none is handed back');
	like($plan, qr/Page Supply: resident/, 'with pages that are there');
}

make_table("i % 20000 = 7");
for my $sql ($SUMS, $GROUPS)
{
	my $plan = plan_of('few rows', $sql);
	like($plan, qr/Engine: cuda/, 'few rows come back: it is done by the device');
	like($plan, qr/Rows Handed Back: 20\b/, 'these are handed back');
}

make_table('i % 3 = 0');
like(plan_of('many rows', $SUMS), qr/Engine: cuda/, 'many rows come back, from the begin on: it is done by the device');

make_table("i > $ROWS / 2");
my $plan = plan_of('all rows from the middle on', $SUMS);
like($plan, qr/Engine: cpu/, 'more rows come back than there is room for: it is done by the CPU engine');
like($plan, qr/too many rows were handed back at a time/, 'and it is said why');
cmp_ok($service->ask('SELECT fallbacks_declined FROM gpuhash_stat'), '>', 0, 'and counted');

$_->close for $session, $other;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($service->server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
$service->stop;
done_testing();
