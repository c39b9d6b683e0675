# Bits of the visibility map that scans set (PostgreSQL 19; before, VACUUM alone does): those of gpuhash, which read pages by
# themselves, set them of the relation that they read, and no wrong ones, and what is answered then is what PostgreSQL answers in
# the same snapshot, also while rows come and go.  In the place of the CUDA engine there is a stand-in (test/fault), unless
# GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use GpuHash::Resident qw(well);
use GpuHash::Service;

my $ROWS = 20000;
my $service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, 'wal_level = replica', 'max_worker_processes = 16']);
my $server = $service->server;
my $session = $server->session;
if (($session->do('CREATE EXTENSION pg_visibility'))[1] ne '')
{
	$session->close;
	$service->stop;
	plan(skip_all => 'no pg_visibility');
}
ok($service->wait_ready, 'the service is ready');
my $scans_set = well($session, 'SHOW server_version_num') >= 190000;
my $TABLES = "('t'::regclass, 'p0'::regclass, 'p1'::regclass)";

# Full pages, which nobody has read since.
sub fill
{
	well($session, "DROP TABLE IF EXISTS t, p;
		CREATE TABLE t (id int, g int, x text);
		CREATE TABLE p (id int, g int, x text) PARTITION BY LIST (g);
		CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0, 2, 4); CREATE TABLE p1 PARTITION OF p DEFAULT;
		INSERT INTO t SELECT i, i % 7, 'text ' || i % 90 FROM generate_series(1, $ROWS) i;
		INSERT INTO p SELECT i, i % 7, 'text ' || i % 90 FROM generate_series(1, $ROWS) i");
	return;
}

sub bits { return well($session, "SELECT sum((pg_visibility_map_summary(oid)).all_visible) FROM pg_class WHERE oid IN $TABLES") }

sub wrong_bits { return well($session, "SELECT count(*) FROM pg_class, pg_check_visible(oid) WHERE oid IN $TABLES") }

# In one snapshot, gpuhash first.
sub is_same
{
	my ($in, $query) = @_;
	my $digest = GpuHash::Service::digest_sql($query);
	my $got = well($in, "SET LOCAL gpuhash.enabled = on; $digest");
	my $want = well($in, "SET LOCAL gpuhash.enabled = off; $digest");
	return $got eq $want;
}

my $SERIAL = 'SET max_parallel_workers_per_gather = 0';
my $PARALLEL = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0';
my @WAYS = (
	['groups, device', "SET gpuhash.engine = 'cuda'; $SERIAL", 'SELECT g, count(*), sum(id), max(x) FROM t GROUP BY g'],
	['groups of partitions, device', "SET gpuhash.engine = 'cuda'; $SERIAL", 'SELECT g, count(*), sum(id) FROM p GROUP BY g'],
	['groups, CPU', "SET gpuhash.engine = 'cpu'; $SERIAL", 'SELECT g, count(*), sum(id), max(x) FROM t GROUP BY g'],
	['groups of partitions, CPU', "SET gpuhash.engine = 'cpu'; $SERIAL", 'SELECT g, count(*), sum(id) FROM p GROUP BY g'],
	['join, CPU', "SET gpuhash.engine = 'cpu'; $SERIAL", 'SELECT t.id, p0.x FROM t JOIN p0 ON p0.id = t.id'],
	['join, device', "SET gpuhash.engine = 'cuda'; $SERIAL", 'SELECT t.id, p0.x FROM t JOIN p0 ON p0.id = t.id'],
	['rows, CPU', "SET gpuhash.engine = 'cpu'; $SERIAL", 'SELECT id, x FROM t WHERE id % 3 = 0 AND g < 5'],
	['rows, device', "SET gpuhash.engine = 'cuda'; $SERIAL", 'SELECT id, x FROM t WHERE id % 3 = 0 AND g < 5'],
	['groups by several processes', "SET gpuhash.engine = 'auto'; $PARALLEL", 'SELECT g, count(*), sum(id), max(x) FROM t GROUP BY g']);

my $other = $server->session;
for my $way (@WAYS)
{
	my ($name, $settings, $query) = @$way;
	fill();
	well($_, $settings) for $session, $other;
	is(bits(), 0, "$name: no bit is set of new pages");
	well($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	ok(is_same($session, $query), "$name: the answer is right");
	well($session, 'COMMIT');
	my $set = bits();
	$scans_set ? cmp_ok($set, '>', 0, "$name: the scan has set bits") : is($set, 0, "$name: only VACUUM sets bits");
	is(wrong_bits(), 0, "$name: and no wrong one");

	# one who still sees what goes now
	well($other, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	well($other, 'SELECT count(*) FROM t');
	well($session, "DELETE FROM t WHERE id % 50 = 1; DELETE FROM p WHERE id % 50 = 2; UPDATE t SET x = 'changed' WHERE id % 600 = 7;
		INSERT INTO t SELECT i, 3, 'more' FROM generate_series(1, 400) i; INSERT INTO p SELECT i, i % 7, 'more' FROM generate_series(1, 400) i");
	for my $round (1, 2)
	{
		well($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
		ok(is_same($session, $query), "$name, after changes, $round: the answer is right");
		well($session, 'COMMIT');
		ok(is_same($other, $query), "$name, after changes, $round: and in a snapshot of before");
		is(wrong_bits(), 0, "$name, after changes, $round: no wrong bit");
	}
	well($other, 'COMMIT');
	well($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	ok(is_same($session, $query), "$name, without that snapshot: the answer is right");
	well($session, 'COMMIT');
	is(wrong_bits(), 0, "$name, without that snapshot: no wrong bit");
}
$_->close for $session, $other;
like($service->settle, $GpuHash::Service::CLEAN, 'nothing is left');
$service->stop;
done_testing();
