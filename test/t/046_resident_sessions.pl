# Many sessions at a time scan a table whose pages stay on the device, with few units in the transfer area: each takes little of
# it, and those that find none wait.  All is done by the device.  In the place of the CUDA engine there is a stand-in
# (test/fault), unless GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use GpuHash::Resident 'well';
use GpuHash::Service;

# 16 units, of which two are kept for others: four scans have three each
my $SCANS = 4;
my $ROWS = 400_000;
my $service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, q{gpuhash.shared_memory = '8MB'}]);
my ($session, $other) = GpuHash::Resident::sessions($service);

well($other, 'CREATE TABLE t (id int, n bigint) WITH (autovacuum_enabled = off)');
well($other, "INSERT INTO t SELECT i, i * 3 FROM generate_series(1, $ROWS) i");
well($other, 'VACUUM ANALYZE t');
my $pages = well($session, q{SELECT gpuhash_prewarm('t')});
is(GpuHash::Resident::shown($session, 't'), $pages, 'all pages are there');

my $SUMS = 'SELECT count(*), sum(n), sum(id) FROM t';
my $right = well($other, $SUMS);

sub fallbacks { return well($session, 'SELECT fallbacks_no_buffers FROM gpuhash_stat') }

# So many sessions at once, each with the query so many times: what is not as it should be.
sub scan_at_once
{
	my ($nsessions, $times) = @_;
	my @sessions = map { $service->server->session } 1 .. $nsessions;
	my $query = join ';', ($SUMS) x $times;
	my $wrong = 0;
	well($session, 'SELECT gpuhash_stat_reset()');
	well($_, 'SET max_parallel_workers_per_gather = 0') for @sessions;
	$_->send($query) for @sessions;
	for my $scanning (@sessions)
	{
		my ($out, $err) = $scanning->receive;
		$wrong++ if $err ne '' || $out ne join("\n", ($right) x $times);
		$scanning->close;
	}
	return "$wrong wrong, " . fallbacks() . ' without buffers';
}

is(scan_at_once($SCANS, 5), '0 wrong, 0 without buffers', 'as many scans as there are buffers for');
is(scan_at_once(3 * $SCANS, 5), '0 wrong, 0 without buffers', 'three times as many wait for each other');

$_->close for $session, $other;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($service->server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
$service->stop;
done_testing();
