# Pages that stay on the device, and what happens around them: to databases, servers, workers and memory; and the tables,
# snapshots and settings for which none may stay.  Queries by the device return what PostgreSQL does in the same
# snapshot.  In the place of the CUDA engine there is a stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Resident qw(well $compared $used);
use GpuHash::Service;

my $ROWS = 3000;
my $service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, 'allow_in_place_tablespaces = on']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
my ($session, $other);

# How many pages of the first query were on the device.
sub check { my ($what, %options) = @_; return GpuHash::Resident::check($options{session} // $session, $what, %options)->{resident} // 0 }

sub fresh { return GpuHash::Resident::fresh($session, $ROWS, @_) }

sub begin_sessions { ($session, $other) = GpuHash::Resident::sessions($service, $session, $other); return }

sub configure { return GpuHash::Resident::configure($session, @_) }

sub shown { return GpuHash::Resident::shown($session, @_) }

begin_sessions();

# ----------------------------------------------------------- what never stays there

sub never
{
	my ($what, $table, $queries) = @_;
	is(check("$what: the first time", queries => $queries), 0, "$what: nothing was there");
	is(check("$what: the second time", queries => $queries), 0, "$what: nothing stays");
	is(shown($table), 0, "$what: and the view shows nothing");
	return;
}

for my $kind ('UNLOGGED', 'TEMPORARY')
{
	well($session, "CREATE $kind TABLE t ($GpuHash::Resident::COLUMNS); INSERT INTO t " . GpuHash::Resident::rows(1, $ROWS) . '; VACUUM t');
	never("a table that is $kind", 't', \%GpuHash::Resident::QUERY);
	well($session, 'DROP TABLE t');
}
well($session, 'VACUUM pg_attribute');
never('a catalog', 'pg_attribute', { all => 'SELECT count(*), sum(attnum) FROM pg_attribute WHERE attlen < 100' });

# --------------------------------------------------------------------- settings

my $pages = fresh();
well($session, 'SET gpuhash.enable_resident = off');
is(check('enable_resident is off'), 0, 'enable_resident is off: nothing is used');
well($other, 'UPDATE t SET n = n + 1 WHERE id % 300 = 7; VACUUM t');
check('enable_resident is off, and the table is changed');
well($session, 'SET gpuhash.enable_resident = on');
cmp_ok(check('enable_resident is on again'), '>', 0, 'enable_resident is on again: some are used');

# Other tables need the room: the one that was used longest ago goes.
$pages = fresh();
well($session, "CREATE TABLE large ($GpuHash::Resident::COLUMNS) WITH (fillfactor = 10); INSERT INTO large " . GpuHash::Resident::rows(1, 8000) . '; VACUUM large');
my %LARGE = map { ($_ => $GpuHash::Resident::QUERY{$_} =~ s/\bt (?=[ab]\b)/large /gr =~ s/\bFROM t\b/FROM large t/r) } keys %GpuHash::Resident::QUERY;
my $blocks = well($session, q{SELECT pg_relation_size('large') / 8192});
configure('gpuhash.resident_memory', 2);
check('there is little room: a table that is larger', queries => \%LARGE);
my $resident = check('once more', queries => \%LARGE);
cmp_ok($resident, '<', $blocks, "not all of its $blocks pages stay: $resident");
sleep 1.2;
well($other, 'UPDATE large SET n = n + 1 WHERE id % 90 = 3; VACUUM large');
check('and again, after a change', queries => \%LARGE);
check('the other table', queries => \%GpuHash::Resident::QUERY);
check('that table again');
sleep 1.2;
check('the large one again', queries => \%LARGE);
check('and the other one');
note('in 2 MB: ' . shown('t') . ' pages of the one, ' . shown('large') . ' of the other');
# between the two of them
for my $round (1 .. 6)
{
	sleep 0.4;
	well($other, "UPDATE t SET n = n + 1 WHERE id % 400 = $round; UPDATE large SET b = b + 1 WHERE id % 400 = $round; VACUUM t, large");
	check("in turns, round $round", queries => $_) for \%GpuHash::Resident::QUERY, \%LARGE;
}
configure('gpuhash.resident_memory', 0);
check('no room'); check('no room', queries => \%LARGE);
well($other, 'UPDATE t SET n = n + 1; UPDATE large SET n = n + 1; VACUUM t, large');
check('no room, and all rows changed'); check('no room, and all rows changed', queries => \%LARGE);
configure('gpuhash.resident_memory', -1);
well($session, 'DROP TABLE large');

# --------------------------------------------------- partitions, long values, views

well($session, "DROP TABLE t; CREATE TABLE t ($GpuHash::Resident::COLUMNS) PARTITION BY RANGE (id)");
well($session, "CREATE TABLE t$_ PARTITION OF t FOR VALUES FROM (" . $_ * 1000 . ') TO (' . ($_ + 1) * 1000 . ')') for 0 .. 3;
well($session, 'INSERT INTO t ' . GpuHash::Resident::rows(1, 3500) . '; VACUUM ANALYZE t');
$pages = GpuHash::Resident::warm($session);
my $used_before = $used;
check('partitions') for 1, 2;
cmp_ok($used - $used_before, '>=', $pages, "partitions: of $pages pages, " . ($used - $used_before) . ' uses');
for my $sql ('UPDATE t SET id = id + 1000 WHERE id BETWEEN 500 AND 520', 'VACUUM t', 'UPDATE t SET n = 3 WHERE id = 2500; VACUUM t2', 'ALTER TABLE t DETACH PARTITION t1', 'UPDATE t1 SET n = -n; VACUUM t1; ALTER TABLE t ATTACH PARTITION t1 FOR VALUES FROM (1000) TO (2000)',
	'DROP TABLE t3', 'TRUNCATE t2', 'INSERT INTO t ' . GpuHash::Resident::rows(2001, 2100) . '; VACUUM t')
{
	well($other, $sql);
	check("partitions: $sql") for 1, 2;
}

# Values that are compressed, or in another table: their rows are handed back, out of pages that nobody has read.
for my $some (3, 1)
{
	well($session, "DROP TABLE IF EXISTS t; CREATE TABLE t ($GpuHash::Resident::COLUMNS) WITH (autovacuum_enabled = off); INSERT INTO t SELECT i, g, n, b, CASE WHEN i % $some > 0 THEN x WHEN i % 2 = 0 THEN repeat(x, 1000) ELSE (SELECT string_agg(md5(j::text), '') FROM generate_series(i, i + 99) j) END FROM (" .
		GpuHash::Resident::rows(1, 1000) . ') s(i, g, n, b, x); VACUUM ANALYZE t');
	$pages = GpuHash::Resident::warm($session);
	my $name = $some == 1 ? 'all values are long' : 'some values are long';
	is(check($name), $pages, "$name: all $pages pages are used");
	check("$name: once more");
	for my $sql ('UPDATE t SET n = n + 1 WHERE id % 100 = 2; VACUUM t', 'DELETE FROM t WHERE id % 20 = 6; VACUUM t; VACUUM t', 'INSERT INTO t SELECT id + 2000, g, n, b, x FROM t WHERE id % 10 < 2; VACUUM t', "UPDATE t SET x = repeat('z', 5000) WHERE id % 30 = 8")
	{
		well($other, $sql);
		check("$name: $sql") for 1, 2;
	}
}
well($session, "CREATE TABLE base ($GpuHash::Resident::COLUMNS, PRIMARY KEY (id)); INSERT INTO base " . GpuHash::Resident::rows(1, $ROWS) . '; DROP TABLE t; CREATE MATERIALIZED VIEW t AS SELECT * FROM base; CREATE UNIQUE INDEX ON t (id); VACUUM t');
$pages = GpuHash::Resident::warm($session);
is(check('a materialized view'), $pages, "a materialized view: all $pages pages are used");
for my $how ('', 'CONCURRENTLY')
{
	well($other, "UPDATE base SET n = n + 1 WHERE id % 3 = 0; REFRESH MATERIALIZED VIEW $how t");
	check("a materialized view that is made again $how") for 1, 2;
	well($other, 'VACUUM t');
	check("a materialized view that is made again $how, and VACUUM") for 1, 2;
}
well($session, 'DROP MATERIALIZED VIEW t; DROP TABLE base');

# ---------------------------------------------------------------- serializable

# Two transactions, each of which reads what the other one writes: what they say.
sub write_skew
{
	my ($query, $settings) = @_;
	fresh();
	my @sessions = map { $server->session } 1, 2;
	my $said = '';
	well($_, "$settings; BEGIN ISOLATION LEVEL SERIALIZABLE") for @sessions;
	$said .= join(' ', $_->do($query)) . "\n" for @sessions;
	$said .= join(' ', $sessions[$_ - 1]->do("UPDATE t SET g = -1 WHERE id = 100 * $_")) . "\n" for 1, 2;
	$said .= join(' ', $_->do('COMMIT')) . "\n" for @sessions;
	$_->close for @sessions;
	return $said =~ s/^LOCATION:.*\n?//mgr;
}

for my $query ('SELECT count(*), sum(g) FROM t', 'SELECT count(*) FROM (SELECT * FROM t WHERE n > 0) s', 'SELECT count(*), sum(d.k) FROM t JOIN (VALUES (0), (1), (2)) d(k) ON d.k = t.g')
{
	my $want = write_skew($query, 'SET gpuhash.enabled = off');
	like($want, qr/40001: could not serialize/, "PostgreSQL finds the conflict of $query");
	my ($before) = well($session, 'SELECT pages_resident FROM gpuhash_stat');
	is(write_skew($query, 'SET gpuhash.enabled = on'), $want, 'and so it is found where pages are on the device');
	cmp_ok(well($session, 'SELECT pages_resident FROM gpuhash_stat') - $before, '>', 0, 'as they were');
}
$pages = fresh();
is(check('a serializable transaction', level => 'SERIALIZABLE'), $pages, 'uses them');
well($other, 'UPDATE t SET n = n + 1 WHERE id % 400 = 7; VACUUM t');
check('another one, after a change', level => 'SERIALIZABLE') for 1, 2;

# --------------------------------------------------------- databases with one table

well($session, "CREATE TABLESPACE aside LOCATION ''");
well($session, 'CREATE DATABASE pattern');
my $in = $server->session;
$in->do('\\c pattern');
well($in, "SET client_min_messages = warning; CREATE EXTENSION gpuhash; CREATE TABLE t ($GpuHash::Resident::COLUMNS) WITH (autovacuum_enabled = off); INSERT INTO t " . GpuHash::Resident::rows(1, $ROWS) . '; VACUUM ANALYZE t');
$in->close;

# A session in a database, and what it compares there.
sub in_database
{
	my ($name, $work) = @_;
	my $in = $server->session;
	$in->do("\\c $name");
	$work->($in);
	$in->close;
	return;
}
for my $strategy ('file_copy', 'wal_log')
{
	my $make = sub {
		my ($name, $oid) = @_;
		well($other, "DROP DATABASE IF EXISTS $name; CREATE DATABASE $name TEMPLATE pattern STRATEGY $strategy OID $oid");
		return;
	};
	$make->('one', 70001);
	$make->('two', 70002);
	for my $name ('one', 'two')
	{
		in_database($name, sub {
			my ($in) = @_;
			GpuHash::Resident::warm($in) if $name eq 'one';
			my $there = check("$strategy: $name", session => $in);
			cmp_ok($there, $name eq 'one' ? '>' : '==', 0, "$strategy: pages of $name are there, those of the other one are not its");
			well($in, 'UPDATE t SET n = -n WHERE id % 50 = 1; VACUUM t; DELETE FROM t WHERE id % 50 = 2') if $name eq 'two';
			check("$strategy: $name once more", session => $in);
		});
	}
	in_database('one', sub { check("$strategy: one, after the other one was changed", session => $_[0]) });
	in_database('one', sub { well($_[0], 'UPDATE t SET n = 5 WHERE id % 20 = 3; VACUUM t'); check("$strategy: it is changed", session => $_[0]) for 1, 2 });
	$make->('one', 70001);
	in_database('one', sub { check("$strategy: one is made again", session => $_[0]) for 1, 2 });
	in_database('pattern', sub { well($_[0], 'UPDATE t SET n = 7 WHERE id % 60 = 3; VACUUM t') });
	$make->('one', 70001);
	in_database('one', sub { check("$strategy: one is made again, of a pattern that has changed", session => $_[0]) for 1, 2 });
	# to another tablespace, and back
	for my $space ('aside', 'pg_default')
	{
		well($other, "ALTER DATABASE one SET TABLESPACE $space");
		in_database('one', sub { check("$strategy: one is in $space", session => $_[0]); well($_[0], 'DELETE FROM t WHERE id % 70 = 3; VACUUM t; UPDATE t SET x = NULL WHERE id % 70 = 4'); check("$strategy: and changed", session => $_[0]) for 1, 2 });
	}
	well($other, 'DROP DATABASE one; DROP DATABASE two');
}
fresh();
for my $space ('aside', 'pg_default')
{
	well($other, "ALTER TABLE t SET TABLESPACE $space");
	is(check("a table in $space"), 0, "it has another file");
	well($other, 'UPDATE t SET n = n + 1 WHERE id % 400 = 7; VACUUM t');
	check("a table in $space, changed") for 1, 2;
}

# --------------------------------------------------------- faults, and ends of workers

fresh();
$service->arm('span_create', 'no_memory', times => 1000);
well($other, 'UPDATE t SET n = n + 1; VACUUM FULL t; VACUUM t');
is(check('the device has no memory for pages that stay'), 0, 'nothing is used');
check('once more');
like(well($session, q{SELECT why_not FROM gpuhash_resident WHERE relation::text = 't'}), qr/memory/, 'and the view says why');
$service->disarm;

# Of queries that do not come to their end, nothing is left that could be taken for a page.
for my $end ('timeout', 'terminate')
{
	for my $point ('scan', 'reply')
	{
		fresh();
		well($other, 'UPDATE t SET n = n + 1 WHERE id % 20 = 7; VACUUM t');
		$service->arm($point, 'delay', ms => 700);
		my $victim = $server->session;
		$victim->send("SET statement_timeout = '" . ($end eq 'timeout' ? 200 : 0) . "'; $GpuHash::Resident::QUERY{groups}");
		sleep 0.3;
		well($other, "SELECT pg_terminate_backend($victim->{backend})") if $end eq 'terminate';
		# while the device may still be at it
		well($other, 'UPDATE t SET n = n + 1 WHERE id % 30 = 7; VACUUM t');
		check("$end, $point: beside it");
		eval { $victim->receive };
		$victim->close;
		$service->disarm;
		check("$end, $point: after it") for 1, 2;
	}
}
for my $kind ('launch', 'no_memory', 'limit')
{
	fresh();
	well($other, 'UPDATE t SET n = n + 1 WHERE id % 20 = 7; VACUUM t');
	$service->arm('scan', $kind);
	my $before = $compared;
	check("a request fails: $kind");
	$service->disarm;
	ok($service->wait_ready, "$kind: the device is there again");
	check("after a request that failed: $kind") for 1, 2;
}

# The worker ends; its successor knows of no page.
fresh();
my ($worker) = values %{ { $service->workers } };
kill 'TERM', $worker;
for (1 .. 500) { last if !GpuHash::Server::runs($worker); sleep 0.02 }
check('the worker has ended');
ok($service->wait_ready, 'there is another worker');
$service->wait_direct;
check('and it is used');
is(check('once more'), well($session, q{SELECT pg_relation_size('t') / 8192}), 'its pages stay');

# ---------------------------------------------------------------- ends of servers

for my $mode ('fast', 'immediate')
{
	$pages = fresh();
	well($other, 'UPDATE t SET n = n + 1 WHERE id % 200 = 7; VACUUM t; UPDATE t SET n = n + 1 WHERE id % 300 = 8');
	check("before a stop, $mode");
	$_->close for $session, $other;
	$service->stop($mode);
	$server->start;
	begin_sessions();
	is(check("after a stop, $mode"), 0, "after a stop, $mode: nothing is on the device");
	well($other, 'VACUUM t');
	check("after a stop, $mode, and VACUUM") for 1, 2;
}

# A crash of the worker is one of the server.
fresh();
check('before a crash');
($worker) = values %{ { $service->workers } };
kill 'KILL', $worker;
sleep 0.5;
for (1 .. 300) { last if eval { $server->query('SELECT 1') }; sleep 0.05 }
begin_sessions();
is(check('after a crash'), 0, 'after a crash nothing is on the device');
check('once more');

# ------------------------------------------------------ configurations of their own

my $version = well($session, q{SELECT current_setting('server_version_num')::int / 10000});
sub restart_with
{
	my (@lines) = @_;
	$_->close for $session, $other;
	$service->stop;
	open my $conf, '>>', "$server->{dir}/data/postgresql.conf" or die $!;
	print $conf "$_\n" for @lines;
	close $conf;
	$server->start;
	begin_sessions();
	return;
}

restart_with('wal_level = minimal', 'max_wal_senders = 0');
my $copy = sub { my ($value) = @_; return "COPY t FROM PROGRAM 'seq -f \"%.0f\t1\t2\t3\t$value\" 1 3000' WITH (FREEZE)" };
well($session, "DROP TABLE t; CREATE TABLE t ($GpuHash::Resident::COLUMNS); INSERT INTO t " . GpuHash::Resident::rows(1, $ROWS) . '; VACUUM t');
check('wal_level = minimal') for 1, 2;
well($session, 'BEGIN; TRUNCATE t; ' . $copy->('a'));
is(check('rows of a file that has no WAL', open => 1), 0, 'none is there') for 1, 2;
well($session, 'TRUNCATE t; ' . $copy->('b'));
is(check('the same file, with other rows', open => 1), 0, 'none is there') for 1, 2;
well($session, 'COMMIT');
check('after COMMIT') for 1, 2;
for my $sql ('UPDATE t SET n = n + 1 WHERE id % 100 = 7', 'VACUUM t', 'VACUUM (FREEZE) t', 'DELETE FROM t WHERE id > 2000; VACUUM t; INSERT INTO t ' . GpuHash::Resident::rows(2001, 3000) . '; VACUUM t')
{
	well($other, $sql);
	check("wal_level = minimal: $sql") for 1, 2;
}

SKIP:
{
	skip 'old_snapshot_threshold has gone with PostgreSQL 17', 1 if $version >= 17;
	restart_with("old_snapshot_threshold = '1min'");
	well($session, "DROP TABLE t; CREATE TABLE t ($GpuHash::Resident::COLUMNS); INSERT INTO t " . GpuHash::Resident::rows(1, $ROWS) . '; VACUUM t');
	never('old_snapshot_threshold is set', 't', \%GpuHash::Resident::QUERY);
}

note("$compared answers were compared, $used pages of them were on the device before");
cmp_ok($used, '>', 3000, 'pages were used that were on the device');
$_->close for $session, $other;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
# the crash is ours
unlike($server->log =~ s/.*gpuhash worker.* was terminated by signal 9.*//r, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
