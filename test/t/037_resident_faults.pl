# Scans of which some pages are on the device and others are not, by a device that fails midway: what has come out, and
# what others go on with, are the rows of the query's snapshot, none twice.  In the place of the CUDA engine there is a
# stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use GpuHash::Resident;
use GpuHash::Service;

my $ROWS = 14000;
my $PARALLEL = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET seq_page_cost = 0; SET gpuhash.device_page_cost = 0; SET gpuhash.device_bus_cost = 0';
my $service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, 'gpuhash.shared_memory = 64MB', "gpuhash.device_timeout = '3s'"]);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
my ($session, $other) = map { $server->session } 1, 2;
$other->do('SET gpuhash.enabled = off');
my ($failed, $used) = (0, 0);

# Of the table's pages some have changed since they went to the device, in all parts of it.
sub mix
{
	my ($number) = @_;
	ok($service->wait_ready, 'the device is there') or return;
	GpuHash::Resident::warm($session);
	my (undef, $error) = $other->do("UPDATE t SET n = n + 1 WHERE id % 700 = $number; VACUUM t; UPDATE t SET b = b + 1 WHERE id % 900 = $number; DELETE FROM t WHERE id % 1100 = $number");
	is($error, '', 'the table is changed') if $error ne '';
	return;
}

my $number = 0;
GpuHash::Resident::fresh($session, $ROWS, with => 'fillfactor = 10, autovacuum_enabled = off');
for my $name ('groups', 'joined', 'scan')
{
	my %query = ($name => $GpuHash::Resident::QUERY{$name});
	for my $how ('SET max_parallel_workers_per_gather = 0', $PARALLEL)
	{
		for my $kind ('launch', 'no_memory')
		{
			for my $after (0 .. 3)
			{
				mix(++$number);
				$session->do($how);
				$service->arm('scan', $kind, after => $after);
				my $answer = GpuHash::Resident::compare($session, queries => \%query);
				$failed += $service->disarm > 0;
				is($answer->{wrong}, '', "$name, $how: $kind after $after requests");
				$used += $answer->{used};
			}
		}
	}
}
$session->do('SET max_parallel_workers_per_gather = 0');

# Rows before the fault have come out.
my $native = $server->session;
for my $name ('joined', 'scan')
{
	for my $rows (1, 400, 5000)
	{
		for my $kind ('launch', 'no_memory')
		{
			mix(++$number);
			my $query = $GpuHash::Resident::QUERY{$name};
			$native->do('SET gpuhash.enabled = off');
			my ($want) = $native->do($query);
			$session->do("BEGIN; DECLARE c NO SCROLL CURSOR FOR $query");
			my ($got) = $session->do("FETCH $rows FROM c");
			$service->arm('scan', $kind);
			$other->do("UPDATE t SET n = n + 1 WHERE id % 300 = $number; VACUUM t");
			my ($rest, $error) = $session->do('FETCH ALL FROM c');
			$session->do('COMMIT');
			$failed += $service->disarm > 0;
			$got .= "\n$rest" if $rest ne '';
			is(join("\n", sort split /\n/, $got) . $error, join("\n", sort split /\n/, $want), "$name: $kind after $rows rows have come out");
		}
	}
}
$_->close for $session, $other, $native;
note("$failed queries whose device failed, $used pages that were on it before");
# of so many, some have no such request: with runs of pages there are few
cmp_ok($failed, '>', 24, 'devices have failed');
cmp_ok($used, '>', 5000, 'with pages that were there before');
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
