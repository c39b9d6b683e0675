# Copies of indexes when something fails: after a crash none of before is left, and answers are those of the data; with little
# memory there is none, or a smaller one, and no error; making one is cancelled at once, and what was cancelled or ended is in
# nobody's way; and a GPU's worker that ends or crashes changes no answer.
use GpuHash::Test 'module';
use GpuHash::Index;
use GpuHash::Resident ();
use GpuHash::Service;
use Time::HiRes qw(time sleep);

# Seconds from when the time was up to the error.  The work looks 0.1 apart at most; the rest is for a busy machine.
my $PROMPT = 0.6;
note('orphans are reaped by init') unless GpuHash::Server::adopt_orphans();
my $service = GpuHash::Service->new(conf => ['autovacuum = off', 'max_connections = 30']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
my $ROWS = 9000;
my %QUERY = (inner => 'SELECT count(*), sum(o.v), sum(s.a), sum(s.k) FROM o JOIN s ON s.k = o.k', left => 'SELECT count(*), sum(o.v), sum(s.a), count(s.k) FROM o LEFT JOIN s ON s.k = o.k');
my @names = sort keys %QUERY;

sub new_session
{
	my $new = $server->session;
	well($new, 'SET gpuhash.engine = cpu; SET gpuhash.force_offload = on; SET max_parallel_workers_per_gather = 0');
	return $new;
}

sub right
{
	my ($what, $in, $by) = @_;
	well($in, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	for my $name (@names)
	{
		my $plan = well($in, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY{$name}");
		is(well($in, $QUERY{$name}), well($in, "SET LOCAL gpuhash.enabled = off; $QUERY{$name}; SET LOCAL gpuhash.enabled = on"), "$what: $name");
		next if !defined $by;
		($by ? \&like : \&unlike)->($plan, qr/Inner Index: s_k/, '  ' . ($by ? '' : 'not ') . 'by the copy');
	}
	return well($in, 'COMMIT');
}

sub copies { my ($in) = @_; return well($in, "SELECT count(*) FROM gpuhash_resident WHERE relation::text LIKE '%\\_k' AND device IS NULL AND tables = 1") }
sub prewarm { my ($in, $index) = @_; return well($in, "SELECT gpuhash_prewarm('" . ($index // 's_k') . "')") }

my $session = new_session();
well($session, "CREATE TABLE s (k bigint, a bigint, c int) WITH (fillfactor = 80); INSERT INTO s SELECT i, i * 3, 0 FROM generate_series(1, $ROWS) i; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a);
	CREATE UNLOGGED TABLE u AS SELECT * FROM s; CREATE INDEX u_k ON u USING gpuhash (k) INCLUDE (a); CREATE TABLE o AS SELECT i * 7919::bigint % 10007 - 200 AS k, i::bigint AS v FROM generate_series(1, 30000) i; CHECKPOINT");
well($session, "VACUUM ANALYZE $_") for 's', 'u', 'o';

# ------------------------------------------------------------------------------ crashes

# An unlogged table's file is empty after a crash, and has its name.
my $UNLOGGED = 'SELECT count(*), sum(u.a) FROM o JOIN u ON u.k = o.k';
my $number = 0;

sub crashes
{
	my ($what, $how) = @_;
	prewarm($session, $_) for 's_k', 'u_k';
	is(copies($session), 2, "$what: there are copies before");
	right("$what, before", $session, 1);
	my $before = well($session, $UNLOGGED);
	isnt($before, '0|', 'of an unlogged table, too');
	# what commits just before
	$number++;
	my $writer = new_session();
	well($writer, "INSERT INTO s SELECT i, $number, 0 FROM generate_series($number, 9500, 100) i; DELETE FROM s WHERE k % 500 = $number; UPDATE s SET a = a + 1 WHERE k % 500 = 100 + $number");
	$writer->send("BEGIN; INSERT INTO s SELECT i, -99, 0 FROM generate_series(1, 500) i; SELECT pg_sleep(60)");
	sleep 0.2;
	my $backend = (split /\n/, well($session, "SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()"))[0];
	$how->($backend);
	$_->close for $writer, $session;
	delete $service->{control};
	my $up = 0;
	for (1 .. 600) { last if $up = eval { $server->query('SELECT 1') }; sleep 0.05 }
	ok($up, "$what: the server recovers") or return;
	ok($service->wait_ready(60), 'and the worker');
	$session = new_session();
	is(copies($session), 0, "$what: no copy is left");
	right("$what, afterwards", $session, undef);
	is(well($session, $UNLOGGED), '0|', 'an unlogged table is empty');
	is(well($session, 'SELECT count(*) FROM s WHERE a = -99'), 0, 'what had not committed is not there');
	well($session, 'INSERT INTO u SELECT i, i, 0 FROM generate_series(1, 9000) i; INSERT INTO u SELECT * FROM s WHERE k < 100');
	well($session, 'VACUUM (INDEX_CLEANUP on) s');
	well($session, "VACUUM $_") for 'u', 's';
	prewarm($session, $_) for 's_k', 'u_k';
	right("$what, with new copies", $session, 1);
	is(well($session, $UNLOGGED), well($session, "SET gpuhash.enabled = off; $UNLOGGED; SET gpuhash.enabled = on"), 'of the unlogged table, too');
	return;
}

crashes('a killed session', sub { kill KILL => $_[0] });
crashes('a killed worker', sub { my %workers = $service->workers; kill KILL => $workers{0} });
crashes('an immediate stop', sub { $server->stop('immediate'); $server->start });

# A session that is killed while it makes a copy: the next one can.
well($session, 'REINDEX INDEX s_k');
{
	my $maker = new_session();
	$server->query("SELECT gpuhash_fault_arm('index_leaf', 'hold', 3, 1, 0)");
	my $backend = well($maker, 'SELECT pg_backend_pid()');
	$maker->send("SELECT gpuhash_prewarm('s_k')");
	for (1 .. 500) { last if $server->query('SELECT gpuhash_fault_fired()') == 1; sleep 0.02 }
	is($server->query('SELECT gpuhash_fault_fired()'), 1, 'a session makes a copy');
	right('meanwhile others do without', $session, 0);
	$server->query("SELECT pg_terminate_backend($backend)");
	$server->query("SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0)");
	for (1 .. 500) { last if $server->query("SELECT count(*) FROM pg_stat_activity WHERE pid = $backend") == 0; sleep 0.02 }
	is($server->query("SELECT count(*) FROM pg_stat_activity WHERE pid = $backend"), 0, 'which is ended');
	$maker->close;
	cmp_ok(prewarm($session), '>', 0, 'and another one makes it');
	right('which is right', $session, 1);
}

# A join that is cancelled while it makes a copy: one of the next makes it, before long.
well($session, 'REINDEX INDEX s_k');
{
	my $maker = new_session();
	my $backend = well($maker, 'SELECT pg_backend_pid()');
	$server->query("SELECT gpuhash_fault_arm('index_leaf', 'hold', 3, 1, 0)");
	$maker->send($QUERY{inner});
	for (1 .. 500) { last if $server->query('SELECT gpuhash_fault_fired()') == 1; sleep 0.02 }
	is($server->query('SELECT gpuhash_fault_fired()'), 1, 'a join makes a copy');
	$server->query("SELECT pg_cancel_backend($backend)");
	$server->query("SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0)");
	for (1 .. 500) { last if $server->query("SELECT count(*) FROM pg_stat_activity WHERE pid = $backend AND state = 'active'") == 0; sleep 0.02 }
	my $COPY = "SELECT count(*) FROM gpuhash_resident WHERE relation = 's_k'::regclass AND device IS NULL AND tables = 1";
	is(well($session, $COPY), 0, 'and is cancelled');
	$maker->close;
	# a second, or ten times of what was in vain
	my $watch = stopwatch();
	while ($watch->() < 40 && well($session, $COPY) == 0) { well($session, $QUERY{inner}); sleep 0.2 }
	cmp_ok($watch->(), '<', 40, sprintf('the next copy came after %.1f s', $watch->()));
	right('which is right', $session, 1);
}

# ---------------------------------------------------------- a worker that ends

{
	my %workers = $service->workers;
	right('with a worker', $session, 1);
	kill TERM => $workers{0};
	right("while the worker ends, $_", $session, 1) for 1 .. 3;
	ok($service->wait_ready(60), 'it comes back');
	right('and with the next one', $session, 1);
}

# ------------------------------------------------------------------------------ memory

well($session, 'DROP TABLE u; CREATE TABLE wide (k bigint, a bigint, b bigint, c bigint, d text); INSERT INTO wide SELECT i, i, i, i, md5(i::text) FROM generate_series(1, 20000) i; CREATE INDEX wide_k ON wide USING gpuhash (k) INCLUDE (a, b, c, d); CREATE TABLE more AS SELECT k, v FROM o, generate_series(1, 3)');
well($session, "VACUUM ANALYZE $_") for 'wide', 'more';
my $WIDE = 'SELECT count(*), sum(w.a + w.b + w.c), count(w.d) FROM more o LEFT JOIN wide w ON w.k = o.k';
for my $limit (0, 1, -1)
{
	GpuHash::Resident::configure($session, 'gpuhash.resident_memory', $limit);
	# what failed is not tried again for a time, of that file
	well($session, 'REINDEX INDEX wide_k; REINDEX INDEX s_k');
	my (undef, $error) = $session->do("SELECT gpuhash_prewarm('wide_k')");
	($limit < 0 ? \&is : \&like)->($error, $limit < 0 ? '' : qr/55000.*no copy of index "wide_k" can be made/s, "a copy of some MB with $limit MB");
	for (1 .. 2)
	{
		is(well($session, $WIDE), well($session, "SET gpuhash.enabled = off; $WIDE; SET gpuhash.enabled = on"), "joined with $limit MB");
		right("a small one, $limit MB", $session, undef);
	}
	# what was there before goes, when somebody wants memory, and it was not used for a while
	my $deadline = time + 30;
	my $taken = "SELECT coalesce(sum(bytes + table_bytes), 0) <= $limit * 1024 * 1024 FROM gpuhash_resident WHERE device IS NULL";
	while ($limit >= 0 && time < $deadline && well($session, $taken) ne 't') { $session->do("SELECT gpuhash_prewarm('wide_k')"); sleep 0.3 }
	is(well($session, $taken), 't', "no more than $limit MB is taken") if $limit >= 0;
	(\&like, \&unlike)[$limit < 0 ? 0 : 1]->(well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $WIDE"), qr/Inner Index: wide_k/, $limit < 0 ? 'by the copy' : 'not by a copy');
}

# ------------------------------------------------------------------------------ cancelled

well($session, 'DROP TABLE wide; CREATE TABLE big (k bigint, a bigint, t text); INSERT INTO big SELECT i, i, md5(i::text) FROM generate_series(1, 200000) i; CREATE INDEX big_k ON big USING gpuhash (k) INCLUDE (a, t)');
well($session, 'VACUUM ANALYZE big') for 1, 2;
my $BIG = 'SELECT count(*), sum(b.a), count(b.t) FROM o LEFT JOIN big b ON b.k = o.k AND o.v < 50000';
my ($cancelled, $late) = (0, 0);
for my $sql ("SELECT gpuhash_prewarm('big_k')", 'SELECT count(*), sum(o.v), sum(b.a) FROM (SELECT k, v FROM o UNION ALL SELECT k, v FROM o UNION ALL SELECT k + 5000, v FROM o) o JOIN big b ON b.k = o.k')
{
	for my $after (0.01, 0.05, 0.1, 0.2)
	{
		well($session, 'REINDEX INDEX big_k') if $sql =~ /prewarm/;
		my $watch = stopwatch();
		my (undef, $error) = $session->do(sprintf('SET statement_timeout = %d; %s', $after * 1000, $sql));
		my $seconds = $watch->() - $after;
		well($session, 'RESET statement_timeout');
		like($error, qr/^$|57014/, "ended after $after s, or done");
		next if $error eq '';
		$cancelled++;
		$late = $seconds if $seconds > $late;
		is(well($session, "SELECT count(*) FROM gpuhash_stat_progress WHERE pid = pg_backend_pid()"), 0, 'nothing is under way then');
	}
}
cmp_ok($cancelled, '>', 2, "$cancelled were cancelled");
cmp_ok($late, '<', $PROMPT, sprintf('%.0f ms late at most', $late * 1000));
well($session, 'REINDEX INDEX big_k');
cmp_ok(prewarm($session, 'big_k'), '>', 0, 'the next copy is made');
is(well($session, $BIG), well($session, "SET gpuhash.enabled = off; $BIG; SET gpuhash.enabled = on"), 'and right');
$session->close;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($server->log, qr/PANIC|TRAP:/, 'nothing else failed');
done_testing();
