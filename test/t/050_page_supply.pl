# Pages of tables that are read through a ring of few buffers: those that are in shared_buffers already are read where
# they are, the others are copied, both in one request.  Answers are PostgreSQL's, floats are added in the order of
# the blocks, and EXPLAIN and gpuhash_stat count what was pinned.
use GpuHash::Test 'module';
use GpuHash::Service;

# Few buffers, and of them a share that is enough for pages to be pinned: from PostgreSQL 18 on there are more processes.
my $BINDIR = GpuHash::Server::bindir();
my $BUFFERS = `'$BINDIR/postgres' --version` =~ / (\d+)/ && $1 >= 18 ? 112 : 40;
my $RING = $BUFFERS * 128 / 4;		# tables with more pages are read through a ring
my $PAGES = 2 * $RING;
my $ROWS = 4 * $PAGES;
my @CONF = ('gpuhash.enable_resident = off', "shared_buffers = ${BUFFERS}MB", 'max_connections = 6', 'superuser_reserved_connections = 0', 'autovacuum_max_workers = 1',
	'max_wal_senders = 0', 'max_worker_processes = 2', 'gpuhash.shared_memory = 64MB');

my %QUERY = (
	sum => 'SELECT count(*), sum(id) FROM r',
	floats => 'SELECT sum(f), avg(f) FROM r',
	groups => 'SELECT k, count(*), sum(n), min(id) FROM r WHERE id % 3 > 0 GROUP BY k ORDER BY k',
	# some texts are compressed: their rows are handed back
	back => "SELECT count(*), sum(id) FROM r WHERE x <> 'x77'",
	rows => "SELECT id, k, length(x) FROM r WHERE k = 3 AND id % 5 > 0 AND x <> 'x77'",
	outer => 'SELECT d.p, count(*), sum(r.n) FROM r JOIN d ON d.k = r.k GROUP BY d.p ORDER BY 1',
	inner => 'SELECT count(*), sum(r.n), sum(d.p) FROM d JOIN r ON r.id = d.k');

my ($service, $server, $session);

sub native { my ($name) = @_; return ($session->do("SET gpuhash.enabled = off; $QUERY{$name}; SET gpuhash.enabled = on"))[0] }

# Without a page in shared_buffers; from there on the pool is what is read.
sub begin_cold
{
	$session->close if $session;
	$server->stop;
	$server->start;
	ok($service->wait_ready, 'the service is ready');
	$session = $server->session;
	for (1 .. 200)
	{
		last if ($session->do("SELECT buffers FROM gpuhash_devices WHERE engine = 'cuda'"))[0] eq 'direct';
		select undef, undef, undef, 0.05;
	}
	return;
}

# Reads blocks of the table, through no ring.
sub warm
{
	my ($first, $last) = @_;
	$session->do("SET gpuhash.enabled = off; SELECT count(*) FROM r WHERE ctid >= '($first,0)' AND ctid <= '($last,1000)'; SET gpuhash.enabled = on");
	return;
}

# The supply of the scan of r, its pages, and those that the device has read where they are.
sub supplied
{
	my ($name) = @_;
	my $count = 'SELECT pages, pages_direct FROM gpuhash_stat';
	my @before = split /\|/, ($session->do($count))[0];
	my ($plan) = $session->do("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY{$name}");
	my @after = split /\|/, ($session->do($count))[0];
	like($plan, qr/Engine: cuda/, "$name: by the device") or diag($plan);
	unlike($plan, qr/Fallback Reason/, "$name: to the end") or diag($plan);
	my ($supply) = $plan =~ /Page Supply: (\w+)/;
	my ($hit, $read) = map { $plan =~ /Buffers: .*?$_=(\d+)/ ? $1 : 0 } 'hit', 'read';
	return ($supply, $after[0] - $before[0], $after[1] - $before[1], $hit, $read);
}

$service = GpuHash::Service->new(conf => \@CONF);
$server = $service->server;
ok($service->wait_ready, 'the service is ready');
$session = $server->session;
$server->query("CREATE TABLE r (id int, k int, n bigint, f float8, x text, filler text DEFAULT repeat('f', 200)) WITH (fillfactor = 15, autovacuum_enabled = off);
	INSERT INTO r SELECT i, i % 11, i * 3, (i % 1000) * 1e12 + 1.0 / i, CASE WHEN i % 500 = 7 THEN repeat('x77 ', 1000) ELSE 'x' || i % 100 END FROM generate_series(1, $ROWS) i;
	CREATE TABLE d (k int, p int); INSERT INTO d SELECT i, i % 4 FROM generate_series(0, 300) i;
	VACUUM ANALYZE r; VACUUM ANALYZE d");
my $pages = $server->query("SELECT pg_relation_size('r') / 8192");
cmp_ok($pages, '>', $RING, "a table of $pages pages is read through a ring");
my %want = map { $_ => native($_) } keys %QUERY;

# All visible: what is in the pool is known to the page.
for my $name (sort keys %QUERY)
{
	begin_cold();
	my ($supply, $all, $direct, $hit, $read) = supplied($name);
	is($supply, 'copied', "$name: nothing is in shared_buffers: all is copied") unless $name =~ /inner|outer/;
	cmp_ok($direct, '<', 100, "$name: $direct pages were pinned");
	is(($session->do($QUERY{$name}))[0], $want{$name}, "$name: and the answer is right");

	begin_cold();
	warm(100, 299);
	warm($pages - 500, $pages - 401);
	($supply, $all, $direct, $hit, $read) = supplied($name);
	is($supply, 'both', "$name: some pages are in shared_buffers: both");
	cmp_ok($direct, '>=', 300, "$name: those 300 were pinned, $direct of $all pages");
	cmp_ok($direct, '<', 400, "$name: and few others");
	cmp_ok($read, '>=', $pages - 320, "$name: the others were read");
	is(($session->do($QUERY{$name}))[0], $want{$name}, "$name: and the answer is right");
	# where they were is known now
	($supply, $all, $direct) = supplied($name);
	is($supply, 'both', "$name: once more, both");
	cmp_ok($direct, '>=', 300, "$name: at least those were pinned, $direct of $all pages");
	is(($session->do($QUERY{$name}))[0], $want{$name}, "$name: and the answer is right");
	is(native($name), $want{$name}, "$name: as PostgreSQL's");
}

# All of it is in the pool, though it is read through a ring: nothing is copied.
begin_cold();
warm(0, $pages - 1);
for my $name ('floats', 'rows', 'groups')
{
	my ($supply, $all, $direct) = supplied($name);
	is($supply, 'pinned', "$name: all pages are in shared_buffers: all are pinned");
	cmp_ok($direct, '>=', $pages, "$name: $direct pages");
	is(($session->do($QUERY{$name}))[0], $want{$name}, "$name: and the answer is right");
}

# Tuples of which hints do not tell come back, from pinned pages and from copies, and are asked for again.
my $other = $server->session;
for my $change ('DELETE FROM r WHERE id % 100 = 7', 'UPDATE r SET n = n + 1 WHERE id % 90 = 5', 'BEGIN; DELETE FROM r WHERE id % 100 = 9; ROLLBACK')
{
	$other->do("SET gpuhash.enabled = off; $change");
	begin_cold();
	warm(50, 349);
	warm($pages - 500, $pages - 401);
	my %got;
	for my $name (sort keys %QUERY)
	{
		my ($supply) = supplied($name);
		is($supply, 'both', "$change: $name: both");
		$got{$name} = ($session->do($QUERY{$name}))[0];
	}
	is($got{$_}, native($_), "$change: $_") for sort keys %QUERY;
	$other->close;
	$other = $server->session;
}

# A cursor that is left between two FETCHes holds nothing, whatever its pages were.
$session->do('BEGIN; DECLARE c NO SCROLL CURSOR FOR ' . $QUERY{rows});
my $rows = ($session->do('FETCH 100 FROM c'))[0];
(undef, my $error) = $other->do("SET statement_timeout = '20s'; VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) r");
is($error, '', 'VACUUM waits for no cursor');
$rows .= "\n" . ($session->do('FETCH ALL FROM c'))[0];
$session->do('COMMIT');
is($rows, native('rows'), 'and the cursor returns all rows, in their order');

# One query that is stopped gives all back.
$service->arm('scan', 'delay', after => 2, ms => 1000);
(undef, $error) = $session->do("SET statement_timeout = '300ms'; $QUERY{sum}");
like($error, qr/57014/, 'a query is stopped');
$service->disarm;
$session->do('RESET statement_timeout');
like($service->settle, $GpuHash::Service::CLEAN, 'and all is given back');
$service->arm('scan', 'launch', after => 2);
is(($session->do($QUERY{groups}))[0], native('groups'), 'the device is lost: the answer is right');
$service->disarm;
$other->close;
$session->close;
unlike($server->log, qr/PANIC|TRAP|leak|terminated by signal/, 'a clean log');
done_testing();
