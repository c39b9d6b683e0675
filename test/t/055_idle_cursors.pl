# Cursors over scans by a device that are left between two FETCHes: nothing stays pinned or taken, VACUUM (FREEZE)
# waits for none, and what they return later is what their snapshot sees, also when the device is lost
# meanwhile.  Pages stay where they are, or are copied.  And the scans of one query pin no more than one backend's
# share of shared_buffers.
use GpuHash::Test 'module';
use GpuHash::Service;

# Few buffers, and of them a share that is enough for pages to be pinned: from PostgreSQL 18 on there are more processes.
my $BINDIR = GpuHash::Server::bindir();
my $BUFFERS = `'$BINDIR/postgres' --version` =~ / (\d+)/ && $1 >= 18 ? '112MB' : '40MB';
my @CONF = ('gpuhash.enable_resident = off', 'gpuhash.device_start_cost = 0', 'gpuhash.device_page_cost = 0', 'gpuhash.device_bus_cost = 0', 'seq_page_cost = 0.05', "shared_buffers = $BUFFERS", 'max_connections = 6', 'superuser_reserved_connections = 0', 'autovacuum_max_workers = 1',
	'max_wal_senders = 0', 'max_worker_processes = 2', 'gpuhash.shared_memory = 64MB');
my $TABLES = 24;
my $ROWS = 2000;
my $NOTHING_HELD = qr/^buffers 0,/;

my ($service, $server, $session);

sub fresh_tables
{
	# 500 pages each, which is less than a scan through a ring takes; nothing is frozen
	$server->query(join ';', map { "DROP TABLE IF EXISTS t$_; CREATE TABLE t$_ (id int, k int, x text, filler text DEFAULT repeat('f', 200)) WITH (fillfactor = 10); INSERT INTO t$_ SELECT i, i % 10, 'x' || i FROM generate_series(1, $ROWS) i; ANALYZE t$_" } 1 .. $TABLES);
	return;
}

sub by_device
{
	my ($query, $supply) = @_;
	my ($plan) = $session->do("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query");
	return ok($plan =~ /GpuHashScan.*?Engine: cuda.*?Page Supply: $supply/s && $plan !~ /Fallback Reason/, "by the device, $supply: $query") || diag($plan);
}

# VACUUM, by another session, that must have each page to itself.
sub can_freeze
{
	my ($what, @tables) = @_;
	my $other = $server->session;
	my (undef, $err) = $other->do("SET statement_timeout = '20s'; " . join('; ', map { "VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) $_" } @tables));
	is($err, '', "VACUUM waits for no cursor: $what");
	$other->close;
	return;
}

# The rows of a query as one string, by PostgreSQL.
sub native
{
	my ($query) = @_;
	my ($out) = $session->do("SET gpuhash.enabled = off; $query; SET gpuhash.enabled = on");
	return $out;
}

# Of many rows, says which is not what it should be.
sub is_same
{
	my ($got, $want, $what) = @_;
	my @got = split /\n/, $got;
	my @want = split /\n/, $want;
	my ($first) = grep { ($got[$_] // '') ne ($want[$_] // '') } 0 .. ($#got > $#want ? $#got : $#want);
	ok(!defined $first, $what) || diag("row $first is not ", $want[$first] // 'there', ' but ', $got[$first] // 'not there');
	return;
}

# Each of many cursors would hold some hundred pages.
sub many_cursors
{
	my ($way, $scroll, $select) = @_;
	my @bad;
	$way .= ", $scroll";
	my ($plan) = $session->do("BEGIN; EXPLAIN (COSTS OFF) DECLARE c1 $scroll CURSOR FOR $select FROM t1 WHERE k <> 3");
	is($plan =~ /Materialize/ ? 1 : 0, $scroll eq 'SCROLL' ? 1 : 0, "$way: whether rows are kept above");
	for my $i (1 .. $TABLES)
	{
		my ($out, $err) = $session->do("DECLARE c$i $scroll CURSOR FOR $select FROM t$i WHERE k <> 3; FETCH 2 FROM c$i");
		push @bad, "cursor $i: $out$err" if "$out$err" ne "1\n2";
	}
	is(join("\n", @bad), '', "$way: many cursors have their first rows");
	like($service->leftovers, $NOTHING_HELD, "$way: and hold no buffers");
	can_freeze("$way: many of them", map { "t$_" } 1 .. $TABLES) if $scroll eq 'NO SCROLL';
	for my $i (1 .. $TABLES)
	{
		my ($out, $err) = $session->do("FETCH ALL FROM c$i");
		push @bad, "cursor $i: " . length($out) . $err if "$out$err" ne join("\n", grep { $_ % 10 != 3 } 3 .. $ROWS);
	}
	is(join("\n", @bad), '', "$way: and the other ones");
	$session->do('COMMIT');
	like($service->settle, $GpuHash::Service::CLEAN, "$way: all is given back");
	return;
}

# Pieces of all sizes, with changes between them that the snapshot does not see.
sub beside_changes
{
	my ($way) = @_;
	my $other = $server->session;
	$other->do('SET gpuhash.enabled = off');
	my @changes = ('UPDATE t1 SET k = 3 WHERE id % 3 = 1', 'DELETE FROM t1 WHERE id % 5 = 2', 'VACUUM t1', 'INSERT INTO t1 SELECT i, 1, 1 FROM generate_series(1, 1000) i', 'VACUUM (FREEZE) t1');
	my @queries = ('SELECT ctid, * FROM t1 WHERE k <> 3', 'SELECT id FROM t1 WHERE k = 4 AND length(upper(x)) > 4', 'SELECT x FROM t1 WHERE id % 500 = 7');
	for my $step (1, 7, 90, 400)
	{
		for my $query (@queries)
		{
			$session->do('BEGIN ISOLATION LEVEL REPEATABLE READ');
			my $want = native($query);
			$session->do("DECLARE c NO SCROLL CURSOR FOR $query");
			my ($got, @more) = ('', @changes);
			for (0 .. $ROWS)
			{
				my ($out, $err) = $session->do("FETCH $step FROM c");
				$got .= "$out$err\n" if "$out$err" ne '';
				$other->do(shift @more) if @more;
				last if "$out$err" eq '';
			}
			$session->do('COMMIT');
			chomp $got;
			is_same($got, $want, "$way: $query, $step rows at a time, beside changes");
			$other->do("TRUNCATE t1; INSERT INTO t1 SELECT i, i % 10, 'x' || i FROM generate_series(1, $ROWS) i");
		}
	}
	$other->close;
	return;
}

# A node above goes on with the row that it has: the tuple must not move in its page, as VACUUM moves those that stay.
sub held_above
{
	my ($way) = @_;
	my ($other, $older) = map { $server->session } 1, 2;
	my $query = "SELECT a.x, v.i FROM t5 a CROSS JOIN LATERAL (SELECT i FROM generate_series(1, 3) i WHERE i > 0 AND a.x <> 'none' OFFSET 0) v WHERE a.k <> 3";
	$other->do("SET gpuhash.enabled = off; TRUNCATE t5; INSERT INTO t5 SELECT i, i % 10, 'x' || i FROM generate_series(1, $ROWS) i");
	$older->do('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t5');
	$other->do('DELETE FROM t5 WHERE id % 3 = 1');
	$session->do('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $want = native($query);
	my ($plan) = $session->do("EXPLAIN (COSTS OFF) $query");
	like($plan, qr/Nested Loop\n  ->  Custom Scan \(GpuHashScan\)/, "$way: a node above has rows of the scan");
	my ($first) = $session->do("DECLARE c NO SCROLL CURSOR FOR $query; FETCH 1 FROM c");
	$older->do('COMMIT');
	$other->do('VACUUM t5');
	my ($second) = $session->do('FETCH 2 FROM c');
	my ($then) = $session->do('FETCH ALL FROM c; COMMIT');
	is_same("$first\n$second\n$then", $want, "$way: it goes on with its row");
	$_->close for $other, $older;
	return;
}

# What else may become of a cursor with rows that were kept.
sub ends
{
	my ($way) = @_;
	my $query = 'SELECT id, k FROM t2 WHERE k <> 3';
	my $want = native($query);
	for my $end (['CLOSE', 'CLOSE c'], ['ROLLBACK TO', 'ROLLBACK TO s'], ['an error', 'SELECT 1 / 0', 'ROLLBACK TO s'], ['COMMIT', 'COMMIT'])
	{
		$session->do("BEGIN; SAVEPOINT s; DECLARE c NO SCROLL CURSOR FOR $query; FETCH 3 FROM c");
		$session->do($_) for @$end[1 .. $#$end];
		like($service->settle, $GpuHash::Service::CLEAN, "$way: all is given back after $end->[0]");
		can_freeze("$way: after $end->[0]", 't2');
		$session->do('ROLLBACK');
	}
	my ($first) = $session->do("BEGIN; DECLARE c NO SCROLL CURSOR WITH HOLD FOR $query; FETCH 3 FROM c");
	my ($then) = $session->do('COMMIT; FETCH ALL FROM c; CLOSE c');
	is("$first\n$then", $want, "$way: a cursor that outlives its transaction");

	# a subtransaction that ends between, and one that was begun before
	($first) = $session->do("BEGIN; DECLARE c NO SCROLL CURSOR FOR $query; SAVEPOINT s; FETCH 3 FROM c; RELEASE s; SAVEPOINT s");
	my ($second) = $session->do('FETCH 300 FROM c; RELEASE s');
	($then) = $session->do('FETCH ALL FROM c; COMMIT');
	is("$first\n$second\n$then", $want, "$way: a cursor over subtransactions");

	($first) = $session->do("BEGIN; DECLARE c NO SCROLL CURSOR FOR $query; SAVEPOINT s; FETCH 3 FROM c; ROLLBACK TO s");
	($second) = $session->do('SAVEPOINT t; FETCH 900 FROM c; ROLLBACK TO s');
	($then) = $session->do('FETCH ALL FROM c; COMMIT');
	is("$first\n$second\n$then", $want, "$way: and over such that are rolled back");

	# what the device has read to the end is no more on it
	$session->do("BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t2 WHERE id > 10 AND ctid < '(1000,0)'; FETCH 3 FROM c; FETCH 1900 FROM c; FETCH 77 FROM c");
	like($service->settle(3), $GpuHash::Service::CLEAN, "$way: a cursor whose pages were all read holds nothing");
	is(($session->do('FETCH ALL FROM c; COMMIT'))[0], join("\n", 1991 .. $ROWS), "$way: and has more rows");

	# the row that came out last is still the cursor's
	$session->do('BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t2 WHERE k = 7 AND id > 20; FETCH 2 FROM c; DELETE FROM t2 WHERE CURRENT OF c; FETCH 1 FROM c; UPDATE t2 SET x = \'here\' WHERE CURRENT OF c; CLOSE c');
	is(native('SELECT id, x FROM t2 WHERE k = 7 AND id < 60 ORDER BY id'), "7|x7\n17|x17\n27|x27\n47|here\n57|x57", "$way: WHERE CURRENT OF");
	$session->do('ROLLBACK');

	# the plan is shut down by a LIMIT and begun again
	my $lateral = 'SELECT v.x, s.* FROM (VALUES (1), (4), (9)) v(x), LATERAL (SELECT id FROM t2 WHERE k < v.x LIMIT 150) s';
	is(($session->do($lateral))[0], native($lateral), "$way: scans that a LIMIT ends, and a rescan begins");
	$session->do("CREATE OR REPLACE FUNCTION looped() RETURNS bigint LANGUAGE plpgsql AS 'DECLARE r record; s bigint := 0; BEGIN FOR r IN SELECT id FROM t2 WHERE k <> 3 LOOP s := s * 31 % 1000003 + r.id; IF r.id = 500 THEN UPDATE t2 SET k = 3 WHERE id > 600; END IF; END LOOP; RETURN s; END'");
	my ($looped) = $session->do('BEGIN; SELECT looped(); ROLLBACK');
	is($looped, native('BEGIN; SELECT looped(); ROLLBACK'), "$way: a loop of PL/pgSQL");
	return;
}

# The device goes while the cursor is idle, or while it is to become so.
sub lost
{
	my ($way) = @_;
	my $query = 'SELECT id, x FROM t3 WHERE k <> 3';
	my $want = native($query);
	for my $when (qw(before between))
	{
		for my $after (0, 1, 2)
		{
			for my $rows (1, 300, 1200)
			{
				$session->do("BEGIN; DECLARE c NO SCROLL CURSOR FOR $query");
				$service->arm('scan', 'launch', after => $after) if $when eq 'before';
				my ($first, $err) = $session->do("FETCH $rows FROM c");
				$service->arm('scan', 'launch', after => $after) if $when eq 'between';
				can_freeze("$way: the device is lost", 't3') if $when eq 'between' && $rows == 1 && $after == 0;
				my ($second, $err2) = $session->do('FETCH 40 FROM c');
				my ($then, $err3) = $session->do('FETCH ALL FROM c; COMMIT');
				$service->disarm;
				is_same(join("\n", "$first$err", "$second$err2", "$then$err3"), $want, "$way: the device is lost, $when, request $after, $rows rows");
			}
		}
	}
	like($service->settle, $GpuHash::Service::CLEAN, "$way: all is given back");
	return;
}

# What comes first is there, and the rest is waited for when a FETCH ends: that may be stopped, or fail.
sub stopped
{
	my ($way) = @_;
	for my $case (['delay', "SET LOCAL statement_timeout = '300ms'", qr/ERROR:  57014/], ['launch', 'SET LOCAL gpuhash.fallback = error', qr/ERROR:  \w+: could not scan on the GPU/])
	{
		my ($kind, $set, $error) = @$case;
		$session->do("BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t4 WHERE k <> 3; SAVEPOINT s; $set");
		$service->arm('scan', $kind, after => 1, ms => 1500);
		my ($out, $err) = $session->do('FETCH 1 FROM c');
		cmp_ok($service->disarm, '>', 0, "$way: $kind after the first request");
		like($err, $error, "$way: ends the FETCH");
		$session->do('ROLLBACK TO s');
		can_freeze("$way: after that", 't4');
		$session->do('ROLLBACK');
		like($service->settle, $GpuHash::Service::CLEAN, "$way: and all is given back");
	}
	by_device('SELECT id FROM t4 WHERE k <> 3', $way);
	return;
}

# Scans that hold their pages at the same time, in one query.
sub share
{
	my ($scans) = @_;
	my $sql = join ' UNION ALL ', map { "SELECT count(*) FROM (SELECT FROM t$_ WHERE k <> 3 AND length(upper(x)) > 0 OFFSET 0) s" } 1 .. $scans;
	is(($session->do($sql))[0], native($sql), "$scans scans one after the other");
	# one is scanned for each row of the other
	$session->do('SET gpuhash.enable_aggregate = off');
	my $together = 'SELECT id, (SELECT count(*) FROM t2 WHERE k <> t1.k) FROM t1 WHERE k <> 3 AND id < 12';
	my ($plan) = $session->do("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $together");
	is(join(' ', $plan =~ /Page Supply: ([\w ]+)/g), 'pinned copied', 'the second of two scans at a time finds no share left') or diag($plan);
	is(($session->do($together))[0], native($together), 'and the rows are right');
	$session->do('RESET ALL; SET client_min_messages = warning');
	return;
}

for my $way ('pinned', 'copied')
{
	$service = GpuHash::Service->new(conf => [@CONF, "gpuhash.register_buffers = " . ($way eq 'pinned' ? 'on' : 'off')]);
	$server = $service->server;
	ok($service->wait_ready, "$way: the service is ready");
	fresh_tables();
	$session = $server->session;
	by_device('SELECT id FROM t1 WHERE k <> 3', $way);
	many_cursors($way, 'NO SCROLL', 'SELECT id');
	many_cursors($way, 'SCROLL', 'SELECT id + 0 * row_number() OVER ()');
	beside_changes($way);
	held_above($way);
	ends($way);
	lost($way);
	stopped($way);
	share(5) if $way eq 'pinned';
	unlike($server->log, qr/PANIC|TRAP|leak|terminated by signal/, "$way: a clean log");
	$session->close;
	undef $server;
	undef $service;
}
done_testing();
