# Pages that were on the device before a restart of the server, or of the worker, are loaded again without a query: those that
# were there, if the relations are still there, and nobody has to wait for it.  In the place of the CUDA engine there is a
# stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Resident qw(well $compared $used);
use GpuHash::Service;

my $ROWS = 3000;
my $service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, 'gpuhash.reload_resident = on', 'wal_level = replica', 'max_wal_senders = 4', 'hot_standby = on']);
my $server = $service->server;
my $LIST = "$server->{dir}/data/gpuhash.resident";
my ($session, $other);

sub begin_sessions { ($session, $other) = GpuHash::Resident::sessions($service, $session, $other); return }

sub end_sessions { $_->close for grep { defined } $session, $other; ($session, $other) = (); return }

# Stops the server, does something, and starts it.
sub restart
{
	my ($mode, $meanwhile) = @_;
	end_sessions();
	$service->stop($mode);
	$meanwhile->() if $meanwhile;
	$server->start;
	begin_sessions();
	return;
}

sub configure { return GpuHash::Resident::configure($session, @_) }

sub shown { my ($table, $in) = @_; return GpuHash::Resident::shown($in // $session, $table) }

# Waits until something is so.
sub await
{
	my ($what, $is_so) = @_;
	for (1 .. 600) { return pass($what) if $is_so->(); sleep 0.05 }
	return fail($what);
}

# Waits until so many pages of a table are there.
sub await_pages
{
	my ($what, $table, $pages, $in) = @_;
	my $shown = 0;
	for (1 .. 600) { last if ($shown = shown($table, $in)) == $pages; sleep 0.05 }
	return is($shown, $pages, "$what: pages of $table");
}

# Processes that load, in a database if one is given.
sub loading { my ($database) = @_; return well($other, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'gpuhash reload worker'" . ($database ? " AND datname = '$database'" : '')) > 0 }

# When the launcher has seen that the worker serves, that nothing is loaded any more, and what is there then.
sub settle { sleep 0.4; await('nothing is being loaded', sub { !loading() }); sleep 0.3; return }

# Another worker, that begins anew.
sub end_worker
{
	my ($worker) = values %{ { $service->workers } };
	kill 'TERM', $worker;
	for (1 .. 500) { last if !GpuHash::Server::runs($worker); sleep 0.02 }
	ok($service->wait_ready, 'there is another worker');
	return;
}

sub read_list { local $/; open my $file, '<:raw', $LIST or return ''; return scalar(<$file>) // '' }
sub write_list { my ($bytes) = @_; open my $file, '>:raw', $LIST or die "$LIST: $!"; print $file $bytes; close $file or die $!; return }

# What the log has since.
my $seen = 0;
sub news { my $log = $server->log; my $new = substr $log, $seen; $seen = length $log; return $new }

# Likewise complaints, but that a session was still there when the server stopped.
sub complaints { return join "\n", grep { /ERROR|FATAL|WARNING/ && !/terminating .* due to administrator command/ } split /\n/, news() }

# A table of pages with few rows, all of which may stay.
sub make_table
{
	my ($name, $rows, $in) = @_;
	well($in // $session, "CREATE TABLE $name ($GpuHash::Resident::COLUMNS) WITH (fillfactor = 30, autovacuum_enabled = off); INSERT INTO $name " . GpuHash::Resident::rows(1, $rows) . "; VACUUM ANALYZE $name");
	return;
}

begin_sessions();

# ------------------------------------------------------------ what ends, and begins anew

my $pages = GpuHash::Resident::fresh($session, $ROWS);
well($session, 'CREATE DATABASE two');
my $two = $server->session;
$two->do('\\c two');
well($two, 'SET client_min_messages = warning; CREATE EXTENSION gpuhash');
make_table('t', 500, $two);
my $pages_of_two = GpuHash::Resident::warm($two);
$two->close;
my $last_used = well($session, 'SELECT last_used FROM gpuhash_resident');
news();

for my $mode ('fast', 'smart')
{
	restart($mode);
	await_pages("a stop, $mode", 't', $pages);
	is(well($session, 'SELECT last_used FROM gpuhash_resident'), $last_used, 'that is no use of it');
	is(well($session, 'SELECT hits FROM gpuhash_resident'), 0, 'nor are these hits');
}
like(news(), qr/LOG: .*gpuhash loaded $pages pages onto GPU 0 again\n.*DETAIL: .*They are of 1 relations of database "postgres"/, 'the log says so');
$two = $server->session;
$two->do('\\c two');
await_pages('another database', 't', $pages_of_two, $two);
is(GpuHash::Resident::check($two, 'another database')->{resident}, $pages_of_two, 'all of them are used');
$two->close;
is(GpuHash::Resident::check($session, 'after a restart')->{resident}, $pages, 'a query uses all of them');
well($other, 'UPDATE t SET n = n + 1 WHERE id % 200 = 7; VACUUM t');
GpuHash::Resident::check($session, 'and it is changed') for 1, 2;
$pages = shown('t');

end_worker();
await_pages('the worker has ended', 't', $pages);
is(GpuHash::Resident::check($session, 'after the end of a worker')->{resident}, $pages, 'a query uses all of them');

# what was written to the list last is known
settle();
restart('immediate');
await_pages('a crash', 't', $pages);
settle();
my ($worker) = values %{ { $service->workers } };
kill 'KILL', $worker;
sleep 0.5;
for (1 .. 300) { last if eval { $server->query('SELECT 1') }; sleep 0.05 }
begin_sessions();
await_pages('a crash of the worker', 't', $pages);
is(GpuHash::Resident::check($session, 'after a crash')->{resident}, $pages, 'a query uses all of them');

# pages that have changed are those of now
end_sessions();
$service->stop;
$server->start;
begin_sessions();
well($other, 'UPDATE t SET n = -n WHERE id % 100 = 3');
GpuHash::Resident::check($session, 'changed while they are loaded') for 1, 2;
settle();
GpuHash::Resident::check($session, 'changed, and loaded') for 1, 2;
well($other, 'VACUUM t');
GpuHash::Resident::check($session, 'and vacuumed') for 1, 2;

# ------------------------------------------------------------------------ the setting

configure('gpuhash.reload_resident', 'off');
ok(!-e $LIST, 'off: nothing is remembered');
end_worker();
settle();
is(shown('t'), 0, 'off: nothing is loaded after the end of a worker');
GpuHash::Resident::warm($session);
restart('fast');
settle();
is(shown('t'), 0, 'off: nor after a restart');
configure('gpuhash.reload_resident', 'on');
settle();
is(shown('t'), 0, 'on again: nor what was there before');
$pages = GpuHash::Resident::warm($session);
await('on again: it is remembered', sub { -e $LIST });
restart('fast');
await_pages('on again', 't', $pages);

# ---------------------------------------------------- what has become of the relations

make_table($_, 300) for 'dropped', 'emptied', 'rewritten', 'moved', 'small';
GpuHash::Resident::warm($session, $_) for 'dropped', 'emptied', 'rewritten', 'moved', 'small';
well($session, 'CREATE DATABASE gone; CREATE DATABASE closed');
for my $name ('gone', 'closed')
{
	my $in = $server->session;
	$in->do("\\c $name");
	well($in, 'SET client_min_messages = warning; CREATE EXTENSION gpuhash');
	make_table('t', 100, $in);
	GpuHash::Resident::warm($in);
	$in->close;
}
# the list has all of it
settle();
my $all = read_list();
restart('fast', sub {
	write_list($all);
});
settle();
well($session, 'DROP TABLE dropped; TRUNCATE emptied; VACUUM FULL rewritten; DROP DATABASE gone; ALTER DATABASE closed ALLOW_CONNECTIONS false');
well($session, 'INSERT INTO emptied ' . GpuHash::Resident::rows(1, 10) . '; VACUUM emptied');
news();
restart('fast', sub { write_list($all) });
await_pages('relations that are gone', 't', $pages);
await('and others are there', sub { shown('small') > 0 && shown('moved') > 0 });
settle();
is(shown($_), 0, "nothing of the one that was $_") for 'emptied', 'rewritten';
is(complaints(), '', 'and the log has no word on any');
for my $table ('emptied', 'rewritten', 'small')
{
	is(well($session, "SELECT count(*), sum(n) FROM $table"), well($other, "SELECT count(*), sum(n) FROM $table"), "$table is as it is");
}

# Without a process to load it, it is not loaded, and remembered for the next time: these are the worker, the launcher, and
# that of logical replication.
well($other, 'ALTER SYSTEM SET max_worker_processes = 3');
restart('fast');
settle();
is(shown('t'), 0, 'no process is left to load pages');
well($other, 'ALTER SYSTEM RESET max_worker_processes');
restart('fast');
await_pages('there are processes again', 't', $pages);
settle();
is(complaints(), '', 'and the log has no word on that');

# a relation of several parts, each of 8192 blocks: a row a page
well($session, "CREATE TABLE large ($GpuHash::Resident::COLUMNS) WITH (fillfactor = 10, autovacuum_enabled = off); INSERT INTO large SELECT i, 0, i, 0, repeat('x', 900) FROM generate_series(1, 17000) i; VACUUM large");
my $large = GpuHash::Resident::warm($session, 'large');
is($large, well($session, q{SELECT pg_relation_size('large') / 8192}), 'a large relation is on the device');
restart('fast');
await_pages('a large relation', 'large', $large);
is(GpuHash::Resident::check($session, 'a large relation', queries => { sums => 'SELECT count(*), sum(n), min(id) FROM large' })->{resident}, $large, 'all of it is used');
well($session, 'DROP TABLE large');

# of a relation that became shorter, what is left
make_table('shorter', 3000);
my $long = GpuHash::Resident::warm($session, 'shorter');
settle();
well($session, 'DELETE FROM shorter WHERE id > 100; VACUUM shorter');
my $short = well($session, q{SELECT pg_relation_size('shorter') / 8192});
cmp_ok($short, '<', $long, 'a relation is shorter');
restart('fast');
await_pages('a relation that became shorter', 'shorter', $short);
well($session, 'DROP TABLE shorter');

# --------------------------------------------------------------- what the list may be

settle();
my $good = read_list();
my %DAMAGED = (
	empty => '', short => substr($good, 0, 10), 'cut off' => substr($good, 0, -1), long => $good . "\0" x 32, 'of another kind' => 'x' x length($good),
	'of another version' => substr($good, 0, 4) . pack('L', 99) . substr($good, 8), 'with a huge count' => substr($good, 0, 8) . pack('L', 0xffffffff) . substr($good, 12),
	changed => substr($good, 0, -9) . chr(ord(substr $good, -9, 1) ^ 1) . substr($good, -8), oversized => $good x 20000);
for my $name (sort keys %DAMAGED)
{
	news();
	restart('fast', sub { write_list($DAMAGED{$name}) });
	settle();
	is(shown('t'), 0, "a list that is $name: nothing is loaded");
	like(news(), qr/LOG: .*gpuhash does not use file "gpuhash.resident": /, 'and the log says so');
	isnt(read_list(), $DAMAGED{$name}, 'and it is replaced');
}
restart('fast', sub { unlink $LIST; mkdir $LIST or die $! });
settle();
is(shown('t'), 0, 'a list that is a folder: nothing is loaded');
restart('fast', sub { rmdir $LIST; write_list($good) });
await_pages('a good one', 't', $pages);

# A list that says that it is good, of entries that are none: the checksum is right.
sub crc32c
{
	my ($bytes) = @_;
	my $crc = 0xffffffff;
	for my $byte (unpack 'C*', $bytes)
	{
		$crc ^= $byte;
		$crc = $crc & 1 ? ($crc >> 1) ^ 0x82f63b78 : $crc >> 1 for 1 .. 8;
	}
	return $crc ^ 0xffffffff;
}
# entries: device, database, tablespace, number, relation, blocks, when it was used
sub forge
{
	my (@entries) = @_;
	my $head = substr($good, 0, 8) . pack('LLL', scalar @entries, 0, 0);
	my $body = join '', map { pack 'lLLLLLq', @$_ } @entries;
	return $head . pack('L', crc32c($head . $body)) . $body;
}
my @entry = unpack 'lLLLLLq', substr($good, 24, 32);
my %oid = map { split /\|/ } split /\n/, well($session, q{SELECT oid, relfilenode FROM pg_class WHERE relname = 't'});
my ($t) = keys %oid;
my $database = well($session, q{SELECT oid FROM pg_database WHERE datname = 'postgres'});
for my $case (['no device', -1, $database, 1663, $oid{$t}, $t, 5, 0], ['no database', 0, 0, 1663, $oid{$t}, $t, 5, 0], ['no blocks', 0, $database, 1663, $oid{$t}, $t, 0, 0])
{
	my ($name, @entry) = @$case;
	restart('fast', sub { write_list(forge(\@entry)) });
	settle();
	like(news(), qr/gpuhash does not use file "gpuhash.resident": it names what is no relation/, "an entry with $name");
}
make_table('view_of', 10);
well($session, 'CREATE VIEW a_view AS SELECT * FROM view_of; CREATE INDEX an_index ON view_of (id); CREATE UNLOGGED TABLE unlogged AS SELECT * FROM view_of; VACUUM unlogged');
my %any = map { my ($name, @is) = split /\|/; ($name => \@is) } split /\n/, well($session, q{SELECT relname, oid, relfilenode FROM pg_class WHERE relname IN ('a_view', 'an_index', 'unlogged', 'pg_attribute', 'pg_class')});
news();
restart('fast', sub {
	write_list(forge((map { [0, $database, 1663, @{ $any{$_} }[1, 0], 1000, 0] } grep { $any{$_}[1] > 0 } sort keys %any), [0, $database, 1663, 7, $any{a_view}[0], 9, 0],
		[0, 4000000000, 1663, 5, 6, 7, 0], [5, $database, 1663, $oid{$t}, $t, 5, 0], [0, $database, 1663, 4000000000, $t, 5, 0], [0, $database, 1664, $oid{$t}, $t, 5, 0],
		[0, $database, 1663, $oid{$t}, $t, 5, 0x7fffffffffffffff], [0, $database, 1663, $oid{$t}, $t, 4294967294, -5]));
});
await_pages('entries of other things', 't', $pages);
settle();
is(well($session, 'SELECT count(*) FROM gpuhash_resident WHERE resident > 0'), 1, 'and nothing of them');
is(complaints(), '', 'and the log has no word on any');
GpuHash::Resident::check($session, 'after them');

# ------------------------------------------------------------------------------ memory

# As much as was there, of what was used last, and not more than may be there.
make_table($_, 9000) for 'early', 'late';
my $blocks = well($session, q{SELECT pg_relation_size('late') / 8192});
configure('gpuhash.resident_memory', 1);
restart('fast', sub { unlink $LIST });
settle();
GpuHash::Resident::warm($session, 'late');
my $part = shown('late');
ok($part > 0 && $part < $blocks, "there is room for $part of $blocks pages");
configure('gpuhash.resident_memory', -1);
restart('fast');
await('a part is loaded', sub { shown('late') > 0 });
settle();
is(shown('late'), $part, 'and not more of it');
GpuHash::Resident::warm($session, 'early');
GpuHash::Resident::warm($session, 'late');
my $whole = shown('late');
# by whole MB, so that not all of both fit
configure('gpuhash.resident_memory', int($whole * 8192 / 1048576) + 1);
restart('fast');
await_pages('what was used last is there', 'late', $whole);
settle();
cmp_ok(shown('early'), '<', $whole, 'of the other one less');
cmp_ok(well($session, 'SELECT memory_resident FROM gpuhash_devices'), '<=', (int($whole * 8192 / 1048576) + 1) * 1048576, 'within the limit');

# What a query has brought meanwhile is not given up for it.
restart('fast', sub { unlink $LIST });
settle();
GpuHash::Resident::warm($session, 'early');
$service->arm('scan_create', 'delay', ms => 4000);
my ($old) = values %{ { $service->workers } };
kill 'TERM', $old;
for (1 .. 500) { last if !GpuHash::Server::runs($old); sleep 0.02 }
ok($service->wait_ready, 'there is another worker');
await('early is being loaded', sub { loading() });
my $early = shown('early');
GpuHash::Resident::warm($session, 'late');
my $late = shown('late');
cmp_ok($late, '>', $early, "a query has brought $late pages");
await('the load is over', sub { !loading() });
is(shown('late'), $late, 'and they are all there');
$service->disarm;
configure('gpuhash.resident_memory', -1);

# ----------------------------------------------------------------- in nobody's way

well($session, 'DROP TABLE early, late');
GpuHash::Resident::warm($session);
make_table('locked', 300);
GpuHash::Resident::warm($session, 'locked');
settle();
well($other, 'BEGIN; LOCK locked IN ACCESS EXCLUSIVE MODE');
end_worker();
await_pages('beside a lock', 't', $pages);
await('nobody waits for it', sub { !loading() });
well($other, 'COMMIT');
settle();
is(shown('locked'), 0, 'a relation that is locked is left');

# Of two databases, the one whose pages are being loaded: longer than the five seconds for which others are waited for.
$two = $server->session;
$two->do('\\c two');
make_table($_, 500, $two) for 'second', 'third';
GpuHash::Resident::warm($two, $_) for 'second', 'third', 't';
$two->close;
settle();
$service->arm('scan', 'delay', ms => 2500, times => 10);
($old) = values %{ { $service->workers } };
kill 'TERM', $old;
await('its pages are being loaded', sub { loading('two') });
my $begun = time;
well($other, 'DROP DATABASE two');
cmp_ok(time - $begun, '<', 5, 'a database is dropped meanwhile');
$service->disarm;
settle();
is(shown('t'), $pages, 'and the next one is loaded');

# the server ends
$service->arm('scan', 'delay', ms => 20000);
($old) = values %{ { $service->workers } };
kill 'TERM', $old;
await('pages are being loaded', sub { loading() });
my $watch = stopwatch();
restart('fast');
cmp_ok($watch->(), '<', 10, 'a stop does not wait for a load');
await_pages('which is made up for', 't', $pages);
settle();

# Of what the first load of has no end, there is no second one.
$service->arm('scan', 'delay', ms => 3000);
($old) = values %{ { $service->workers } };
kill 'TERM', $old;
await('pages are being loaded', sub { loading() });
news();
restart('immediate');
settle();
is(shown('t'), 0, 'nothing is loaded when the server crashed in a load');
like(news(), qr/LOG: .*gpuhash does not load again what was on a GPU before the restart/, 'and the log says so');
GpuHash::Resident::warm($session);
settle();
$service->arm('scan', 'sticky');
($old) = values %{ { $service->workers } };
kill 'TERM', $old;
for (1 .. 500) { last if !GpuHash::Server::runs($old); sleep 0.02 }
await('the device fails in a load', sub { $service->fired > 0 });
sleep 1;
ok($service->wait_ready, 'there is another worker');
$service->disarm;
settle();
is(shown('t'), 0, 'nothing is loaded when the device failed in a load');
is(GpuHash::Resident::warm($session), $pages, 'but by who wants it');

# ------------------------------------------------------------------------- a standby

my $standby = $server->standby;
for (1 .. 200) { last if eval { $standby->query('SELECT gpuhash_fault_ready()') }; sleep 0.1 }
my $reader = $standby->session;
GpuHash::Resident::warm($reader);
is(shown('t', $reader), $pages, 'on a standby');
sleep 1.2;
$reader->close;
$standby->stop('fast');
$standby->start;
for (1 .. 200) { last if eval { $standby->query('SELECT gpuhash_fault_ready()') }; sleep 0.1 }
$reader = $standby->session;
await_pages('a standby is started again', 't', $pages, $reader);
GpuHash::Resident::check($reader, 'on a standby');
$reader->close;
unlike($standby->log, qr/PANIC|TRAP|terminated by signal|leak|ERROR/, 'a clean log of the standby');
$standby->stop('fast');

my $log = $server->log;
end_sessions();
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');

# ----------------------------------------------------------------------- two devices

# Tables that are on one of two devices, or divided between them, are so again.
sub two_devices
{
	my ($divided) = @_;
	undef $service;
	$service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, 'gpuhash.reload_resident = on', "gpuhash.devices_per_query = $divided"], devices => 2);
	$server = $service->server;
	begin_sessions();
	for my $table ('a', 'b')
	{
		make_table($table, 1000);
		GpuHash::Resident::warm($session, $table);
	}
	my $by_table = 'SELECT relation, device, resident FROM gpuhash_resident ORDER BY 1, 2';
	my $before = well($session, $by_table);
	is(scalar(() = $before =~ /\|[1-9]\d*$/mg), 2 * $divided, "tables are on $divided devices each") or diag($before);
	settle();
	{
		local $ENV{GPUHASH_FAULT_DEVICES} = 2;
		restart('fast');
	}
	await('pages are on the device where they were', sub { well($session, $by_table) eq $before }) or diag("$before\n", well($session, $by_table));
	settle();
	for my $device (0, 1)
	{
		my %workers = $service->workers;
		kill 'TERM', $workers{$device};
		for (1 .. 500) { last if !GpuHash::Server::runs($workers{$device}); sleep 0.02 }
		ok($service->wait_ready, "the worker of device $device is another one");
		await('and its pages are there again', sub { well($session, $by_table) eq $before }) or diag("$before\n", well($session, $by_table));
		settle();
	}
	# all of them: with two devices for a query, none has those of the other one
	my $pages = well($session, "SELECT pg_relation_size('a') / 8192");
	like(well($session, 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*), sum(n) FROM a'), qr/Resident Pages: $pages\b/, 'and all are found') if $divided > 1;
	$log .= $server->log;
	end_sessions();
	like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
	return;
}
two_devices($_) for 1, 2;

note("$compared answers were compared, $used pages of them were on the device before");
cmp_ok($used, '>', 1000, 'pages were used that were on the device');
# the crash is ours
unlike($log =~ s/.*gpuhash worker.* was terminated by signal 9.*//r, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
