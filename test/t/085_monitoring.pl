# What monitoring shows: plans and nodes that were counted, how far prewarming and copies of indexes are, and what
# sessions wait for.  In the place of the CUDA engine there is a stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use FindBin;
use GpuHash::Pages qw(contents parse);
use GpuHash::Resident 'well';
use GpuHash::Service;
use Time::HiRes qw(time sleep);

my $service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, 'gpuhash.force_offload = off']);
my ($session, $other) = GpuHash::Resident::sessions($service);
my $version = well($other, 'SHOW server_version_num');
well($other, 'CREATE TABLE t (id int, n bigint) WITH (autovacuum_enabled = off)');
well($other, 'INSERT INTO t SELECT i, i * 3 FROM generate_series(1, 400000) i');
well($other, 'CREATE INDEX t_id ON t USING gpuhash (id) INCLUDE (n)');
well($other, 'VACUUM ANALYZE t');

# ------------------------------------------------------------------- counters
my $COUNTS = 'SELECT plans_offloaded, nodes_join, nodes_aggregate, nodes_rows, nodes_scan FROM gpuhash_stat';
my $JOIN = 'SELECT count(*), sum(a.n + b.n) FROM t a JOIN t b ON b.id = a.id';
well($session, 'SET gpuhash.engine = cpu; SET enable_mergejoin = off');
sub counted { my ($sql) = @_; well($session, 'SELECT gpuhash_stat_reset()'); well($session, $sql) if $sql; return well($other, $COUNTS) }
is(counted(''), '0|0|0|0|0', 'nothing');
is(counted($JOIN), '1|1|1|0|0', 'a join and an aggregate');
is(counted("EXPLAIN $JOIN"), '1|0|0|0|0', 'EXPLAIN makes a plan, and runs nothing');
is(counted('SELECT id FROM t WHERE n = 18'), '1|0|0|0|1', 'a scan');
is(counted("SET gpuhash.enabled = off; $JOIN; RESET gpuhash.enabled"), '0|0|0|0|0', 'nothing of PostgreSQL\'s plans');
is(counted("PREPARE p AS $JOIN; " . join('; ', ('EXECUTE p') x 3) . '; DEALLOCATE p'), '1|3|3|0|0', 'a plan that is kept is made once');
is(counted('SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; ' .
	"SELECT sum(n) FROM t; RESET max_parallel_workers_per_gather"), '1|0|1|0|0', 'a parallel node counts once');
well($session, 'RESET gpuhash.engine');

# ------------------------------------------------------------------- progress
my $PROGRESS = 'SELECT pid, relation, device, command, phase, total, done FROM gpuhash_stat_progress';

# What is seen, several times, while the session runs this; for each further query, what of that is there, into %also.
sub watch
{
	my ($sql, $also, @queries) = @_;
	my %seen;
	$session->send($sql);
	my $deadline = time + 30;
	while (time < $deadline)
	{
		$seen{$_}++ for split /\n/, well($other, $PROGRESS);
		for my $query (@queries) { $also->{$query}{$_}++ for split /\n/, well($other, $query) }
		# it may not have begun with it yet
		last if well($other, "SELECT state <> 'active' AND starts_with(query, \$q\$$sql\$q\$) FROM pg_stat_activity WHERE pid = $session->{backend}") eq 't';
	}
	my ($out, $err) = $session->receive;
	is($err, '', "it works: $sql");
	return map { [split /\|/, $_, -1] } keys %seen;
}

is(well($other, $PROGRESS), '', 'nothing is under way');
$service->arm('scan', 'delay', times => 1000, ms => 40);
my @seen = watch("SELECT gpuhash_prewarm('t')");
$service->disarm;
my $pages = well($other, "SELECT pg_relation_size('t') / 8192");
my @reads = grep { $_->[4] eq 'reading pages' } @seen;
cmp_ok(scalar @reads, '>', 1, 'the progress of gpuhash_prewarm is seen, and moves') or diag(explain(\@seen));
is(join(' ', sort(keys %{ { map { ("@$_[0 .. 3] $_->[5]" => 1) } @reads } })), "$session->{backend} t 0 prewarm $pages", 'with whose it is, and how many pages there are');
is((grep { $_->[6] > $pages } @reads), 0, 'and never more than all');
is(well($other, $PROGRESS), '', 'nothing is left of it');

# to another user, to one with a role of PostgreSQL's, to who owns the session, and to a member of that role
well($other, "CREATE ROLE stranger; CREATE ROLE reader IN ROLE pg_read_all_stats; CREATE ROLE worker; CREATE ROLE member IN ROLE worker");
well($other, "GRANT ALL ON t TO worker");
my %as = map { ($_ => "SET SESSION AUTHORIZATION $_; SELECT pid, num_nulls(relation, device, command, phase, started), relation, command, count(*) OVER () FROM gpuhash_stat_progress; RESET SESSION AUTHORIZATION") } qw(stranger reader worker member);
for my $user ('', 'worker')
{
	my %saw;
	well($session, "SET SESSION AUTHORIZATION $user") if $user;
	$service->arm('scan', 'delay', times => 1000, ms => 40);
	watch("SELECT gpuhash_prewarm('t')", \%saw, values %as);
	$service->disarm;
	well($session, 'RESET SESSION AUTHORIZATION');
	my %all = map { ($_ => join(' ', sort keys %{ $saw{ $as{$_} } })) } keys %as;
	my ($hidden, $shown) = ("$session->{backend}|5|||1", "$session->{backend}|0|t|prewarm|1");
	is($all{stranger}, $hidden, 'to others there is a process at work, and no more');
	is($all{reader}, $shown, 'a member of pg_read_all_stats sees what it does');
	is($all{$_}, $user ? $shown : $hidden, "of its own work, $_ does, too") for qw(worker member);
}

# an error ends it
$service->arm('scan', 'delay', times => 1000, ms => 200);
$session->send("SET statement_timeout = 300; SELECT gpuhash_prewarm('t')");
like(($session->receive)[1], qr/statement timeout/, 'one that is cancelled');
$service->disarm;
is(well($other, $PROGRESS), '', 'leaves nothing');
well($session, 'RESET statement_timeout');

@seen = watch("SELECT gpuhash_prewarm('t_id')");
SKIP: {
	skip 'the copy was made before anybody looked', 1 unless @seen;
	my %seen = map { (join('|', @$_[0 .. 3]) => 1) } @seen;
	# one on the GPU, and one in shared memory
	delete $seen{"$session->{backend}|t_id|0|copy of index"};
	delete $seen{"$session->{backend}|t_id||copy of index"};
	is(join(' ', sort keys %seen), '', 'copies of an index are seen');
}
is(well($other, $PROGRESS), '', 'until it is there');

# ---------------------------------------------------------------- wait events
# What the process waits for, as soon as that is this event.
sub awaited
{
	my ($event, $whose) = @_;
	my $deadline = time + 20;
	my $found = '';
	$found = well($other, "SELECT wait_event FROM pg_stat_activity WHERE $whose") until $found eq $event || time > $deadline;
	return $found;
}

my $event = $version >= 170000 ? 'GpuhashRequest' : 'Extension';
$service->arm('scan', 'delay', times => 1000, ms => 100);
well($session, 'SET gpuhash.enable_resident = off');
$session->send('SET gpuhash.engine = cuda; SET gpuhash.force_offload = on; SELECT sum(n) FROM t');
is(awaited($event, "pid = $session->{backend}"), $event, 'a session that waits for a device says so');
$session->receive;
$service->disarm;

# the launcher, while there is nothing to do; workers of GPUs are in no database, and so not there
$event = $version >= 170000 ? 'GpuhashReload' : 'Extension';
is(awaited($event, "backend_type = 'gpuhash reload launcher'"), $event, 'the launcher waits for work');
is(well($other, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'gpuhash worker'"), 0, 'and no worker is seen, as the page says');

# ------------------------------------------------------------ queries of the page
# those of which 080 cannot compare what they print
for my $block (grep { $_->{language} eq 'sql' && defined $_->{not_run} } @{ parse(contents("$FindBin::Bin/../../doc/monitoring.md"))->{blocks} })
{
	my ($out, $err) = $other->do($block->{text});
	is($err, '', "doc/monitoring.md, line $block->{line}: it runs");
	like($out, qr/^0\|/, 'and has a row of the device');
}

$_->close for $session, $other;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($service->server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
$service->stop;
done_testing();
