# What pages cost that are on the device already (src/fragment/costs.h): next to nothing, where they are and may be used.
# In the place of the CUDA engine there is a stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use GpuHash::Service;

my %COST = (page => 0.02, bus => 0.01, resident => 0.01);
my $service = GpuHash::Service->new(conf => ['gpuhash.force_offload = off', 'gpuhash.device_start_cost = 100', 'gpuhash.setup_cost = 0',
	"gpuhash.device_page_cost = $COST{page}", "gpuhash.device_bus_cost = $COST{bus}", 'shared_buffers = 256MB', 'gpuhash.batch_rows = 16384']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
ok($service->wait_direct, 'the device reads shared buffers');
my $session = $server->session;

sub well
{
	my ($sql, $in) = @_;
	my ($out, $error) = ($in // $session)->do($sql);
	is($error, '', "no error: $sql") if $error ne '';
	return $out;
}

well(<<'SQL');
CREATE TABLE facts AS SELECT i AS id, i % 1000 AS day, i * 7 AS v, repeat('x', 100) AS filler FROM generate_series(1, 100000) i;
CREATE TABLE few AS SELECT i AS id, i % 10 AS g, repeat('x', 100) AS filler FROM generate_series(1, 1000) i;
CREATE UNLOGGED TABLE unlogged AS SELECT * FROM facts;
-- no empty pages at the end
VACUUM FULL facts, few, unlogged;
VACUUM ANALYZE facts, few, unlogged;
SET gpuhash.enabled = off;
-- so that they are in shared buffers
SELECT count(*) FROM facts;
SELECT count(*) FROM unlogged;
RESET gpuhash.enabled;
SET max_parallel_workers_per_gather = 0;
SQL
my $pages = well("SELECT pg_relation_size('facts') / current_setting('block_size')::int");

sub cost_of
{
	my ($query) = @_;
	my $plan = well("EXPLAIN $query");
	like($plan, qr/GpuHashAggregate/, "by a GpuHashAggregate: $query");
	return $plan =~ /cost=[\d.]+\.\.([\d.]+)/ ? $1 : 0;
}

# They differ by so much a page, as nearly as costs are shown.
sub differ
{
	my ($more, $less, $by, $name) = @_;
	return cmp_ok(abs($more - $less - $pages * $by), '<', 0.002 * $pages, $name) || diag("$more, $less, $pages pages");
}

# ------------------------------------------------------------------- by where pages are

my $SUM = 'SELECT sum(v) FROM facts';
# half of device_page_cost, which is as much as the bus takes
my $pinned = cost_of($SUM);
well("SELECT gpuhash_prewarm('facts')");
is(well("SELECT resident FROM gpuhash_resident WHERE relation = 'facts'::regclass"), $pages, 'all pages are on the device');
my $resident = cost_of($SUM);
differ($pinned, $resident, 0, 'a page costs what it takes to look it up');
well('SET gpuhash.device_bus_cost = 0.04');
differ(cost_of($SUM), $resident, 0, 'it does not take the bus');
well('SET gpuhash.enable_resident = off');
differ(cost_of($SUM), $resident, 0.03, 'which it does where pages may not stay');
well('RESET gpuhash.enable_resident; RESET gpuhash.device_bus_cost; SET gpuhash.device_page_cost = 0.5');
differ(cost_of($SUM), $resident, 0, 'nor is it looked at');
well('SET gpuhash.enable_resident = off');
differ(cost_of($SUM), $resident, 0.25 - $COST{resident}, 'which it is where pages may not stay');
well('RESET gpuhash.enable_resident; RESET gpuhash.device_page_cost');

# of a table that is never there, and of one that is small, which costs what it did
well("SELECT gpuhash_prewarm('unlogged')");
differ(cost_of('SELECT sum(v) FROM unlogged'), $pinned, 0, 'an unlogged table is not there');
my $JOINED = 'SELECT few.g, count(*) FROM facts JOIN few ON facts.day = few.id GROUP BY few.g';
my $brought = cost_of($JOINED);
well("SELECT gpuhash_prewarm('few')");
cmp_ok(well("SELECT resident FROM gpuhash_resident WHERE relation = 'few'::regclass"), '>', 0, 'a small table is there');
my $few = 'SELECT g, count(*) FROM few GROUP BY g';
my $plan = well("EXPLAIN $few");
well('SET gpuhash.engine = cpu');
is(well("EXPLAIN $few"), $plan, 'but it costs less on the host, as it did');
well('RESET gpuhash.engine');
cmp_ok(cost_of($JOINED), '<', $brought, 'but the table of a join with it is made of what is there');

# ------------------------------------------------------------------- what they cost decides

my $CHOICE = 'SELECT sum(v) FROM facts WHERE day < $1';
# a scan over an index, which would cost a third of reading all pages, and what a device takes is more than that
well('CREATE INDEX ON facts (id); ANALYZE facts; SET gpuhash.device_page_cost = 0.9; SET gpuhash.device_bus_cost = 0.7');
my $INDEXED = 'SELECT sum(v) FROM facts WHERE id < 30000';
like(well("EXPLAIN $INDEXED"), qr/GpuHashAggregate/, 'the device reads what it has');
well('SET gpuhash.enable_resident = off');
unlike(well("EXPLAIN $INDEXED"), qr/GpuHashAggregate/, 'but not what it does not have');
well('RESET gpuhash.enable_resident');
$session->close;
$server->stop;
$server->start;
ok($service->wait_ready, 'the service is ready again');
ok($service->wait_direct, 'the device reads shared buffers again');
$session = $server->session;
well('SET max_parallel_workers_per_gather = 0');
my $read = cost_of($SUM);
differ($read, $resident, 1 + $COST{page} - $COST{resident}, 'after a restart pages are to be read, and are not on the device');
well("SELECT gpuhash_prewarm('facts')");
differ(cost_of($SUM), $resident, 0, 'until they are there again');
well('SET gpuhash.enable_resident = off');
differ($pinned, cost_of($SUM), 0, 'with enable_resident off they are where they are');
well('RESET gpuhash.enable_resident');

# A plan for any parameter is made once, and done from wherever pages are then.
for my $mode ('force_generic_plan', 'force_custom_plan')
{
	my $other = $server->session;
	my ($digest, $shown) = ('EXECUTE choice(700)', 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE choice(700)');
	well("SET plan_cache_mode = $mode; SET gpuhash.engine = cuda; SET gpuhash.force_offload = on; SET max_parallel_workers_per_gather = 0; PREPARE choice(int) AS $CHOICE", $other);
	my $want = well('SET gpuhash.enabled = off; SELECT sum(v) FROM facts WHERE day < 700; RESET gpuhash.enabled', $other);
	for my $change ('SELECT 1', 'UPDATE facts SET v = v WHERE id < 500', 'VACUUM facts', "SELECT gpuhash_prewarm('facts')")
	{
		well($change);
		is(well($digest, $other), $want, "$mode, after $change");
		like(well($shown, $other), qr/Engine: cuda.*Resident Pages: [1-9]/s, "$mode, by the device, with pages that are there, after $change");
	}
	well('SET gpuhash.enable_resident = off', $other);
	is(well($digest, $other), $want, "$mode, with enable_resident off");
	unlike(well($shown, $other), qr/Resident Pages/, "$mode, with enable_resident off, without them");
	$other->close;
}

# ------------------------------------------------------------------- one more run

# What is run again for each row goes to the device where its pages are there: a scan, and the table of a join.
well('SET enable_material = off; SET gpuhash.force_offload = on; SET gpuhash.device_page_cost = 5;
	CREATE TABLE one AS SELECT i AS id FROM generate_series(1, 1000) i; ALTER TABLE one ADD PRIMARY KEY (id); VACUUM ANALYZE one');
for my $subquery ('SELECT count(*) FROM facts WHERE v % 3 < x.i', "SELECT string_agg(f::text, '') FROM facts f WHERE v = x.i",
	'SELECT count(*) FROM facts f JOIN one ON one.id = f.id WHERE f.v % 3 < x.i')
{
	my $query = "SELECT x.i, ($subquery) FROM (VALUES (1), (2), (3)) x(i)";
	my $want = well("SET gpuhash.enabled = off; $query; RESET gpuhash.enabled");
	for my $resident ('on', 'off')
	{
		well("SET gpuhash.enable_resident = $resident");
		is(well($query), $want, "enable_resident $resident: $subquery");
		my $plan = well("SET gpuhash.explain_why = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query; RESET gpuhash.explain_why");
		if ($resident eq 'on') { unlike($plan, qr/for less/, 'each run is by the device') }
		else { like($plan, qr/the CPU engine is expected to do this again for less/, 'the first run alone is by the device') }
	}
	well('RESET gpuhash.enable_resident');
}
well('RESET gpuhash.force_offload; RESET gpuhash.device_page_cost');

# ----------------------------------------------------------- that there are no more than there are

# pages that changed do not count, as far as VACUUM knows, nor those of a file that is gone
well('UPDATE facts SET v = v WHERE id <= 50000; ANALYZE facts');
well('SET gpuhash.device_bus_cost = 0.5');
my $changed = cost_of($SUM);
well('SET gpuhash.enable_resident = off');
cmp_ok($changed, '<', 0.9 * cost_of($SUM), 'pages that did not change are there yet');
well('RESET gpuhash.enable_resident; VACUUM facts');
cmp_ok(cost_of($SUM), '<=', $changed, 'when VACUUM has been, those that changed may be');
well('VACUUM FULL ANALYZE facts; VACUUM facts');
my $moved = cost_of($SUM);
well('SET gpuhash.enable_resident = off');
is(cost_of($SUM), $moved, 'of a new file none is there');
$session->close;
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
