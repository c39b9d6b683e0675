# Tables that a join reads by itself: pins, buffer rings, synchronised scans.
use GpuHash::Test;
use Time::HiRes qw(time sleep);

my $server = GpuHash::Server->new(conf => [
	"session_preload_libraries = 'gpuhash'", 'gpuhash.force_offload = on', "gpuhash.engine = 'cpu'",
	'max_parallel_workers_per_gather = 0', 'jit = off', 'autovacuum = off', 'shared_buffers = 16MB',
	'enable_nestloop = off', 'enable_mergejoin = off', 'bgwriter_lru_maxpages = 0', 'checkpoint_timeout = 1h']);
$server->query(<<'SQL');
CREATE EXTENSION gpuhash;
CREATE TABLE large AS SELECT i % 1000 AS k, i, repeat('x', 60) AS filler FROM generate_series(1, 120000) i;
CREATE TABLE small AS SELECT i AS k FROM generate_series(0, 999) i;
CREATE TABLE kept AS SELECT i, repeat('y', 60) AS filler FROM generate_series(1, 30000) i;
ANALYZE;
SQL
my $join = 'SELECT l.i FROM large l JOIN small s ON s.k = l.k';
like($server->query("EXPLAIN $join"), qr/GpuHashJoin.*Seq Scan on large.*Seq Scan on small/s, 'the join is offloaded');
my $large_pages = $server->query(q{SELECT relpages FROM pg_class WHERE relname = 'large'});
cmp_ok($large_pages, '>', 600, 'the large table is read through a ring');

# --------------------------------------------------------------------- pins
# VACUUM (FREEZE) has to have each page for itself.
my ($reader, $vacuum) = ($server->session, $server->session);
my ($vacuum_pid) = $vacuum->do('SELECT pg_backend_pid()');

# PostgreSQL 19 has another name for the wait.
sub vacuum_waits_for_a_pin
{
	return $server->query("SELECT count(*) FROM pg_stat_activity WHERE pid = $vacuum_pid AND wait_event IN ('BufferPin', 'BufferCleanup')") == 1;
}

# what a scan of the executor's does, to know that the next test can fail
$reader->do("SET gpuhash.enable_scan = off; BEGIN; DECLARE c CURSOR FOR $join");
is(($reader->do('FETCH 1 FROM c'))[1], '', 'a cursor has fetched a row of a join over the executor');
$vacuum->send('VACUUM (FREEZE) large');
my $deadline = time + 20;
sleep 0.05 until vacuum_waits_for_a_pin() || time > $deadline;
ok(vacuum_waits_for_a_pin(), 'VACUUM (FREEZE) waits for its page');
$reader->do('COMMIT');
is(($vacuum->receive)[1], '', 'until the cursor is closed');

for my $query ($join, "$join LEFT JOIN kept ON kept.i = l.i", 'SELECT l.i FROM small s JOIN large l ON s.k = l.k',
	'SELECT l.i FROM large l JOIN small s ON s.k = l.k WHERE l.i % 7 = 0', 'SELECT l.i FROM large l JOIN (SELECT k FROM small WHERE k < 0) s ON s.k = l.k')
{
	$server->query('UPDATE large SET i = i WHERE i % 100 = 0');
	$reader->do("RESET gpuhash.enable_scan; BEGIN; DECLARE c CURSOR FOR $query");
	for my $rows (1, 1, 300, 5000, 20000)
	{
		$reader->do("MOVE $rows FROM c");
		my (undef, $err) = $vacuum->do('SET statement_timeout = \'20s\'; VACUUM (FREEZE, TRUNCATE off) large, small');
		is($err, '', "VACUUM (FREEZE) after $rows more rows: $query") or last;
	}
	$reader->do('COMMIT');
}

# ---------------------------------------------------------- synchronised scans
my $all = $server->query("SELECT count(*), sum(i) FROM ($join) s");
$reader->do("BEGIN; DECLARE c CURSOR FOR $join");
$reader->do('MOVE 60000 FROM c');
# but for rows that were updated, which lie at the end, i follows the order of the pages
cmp_ok(($vacuum->do("$join LIMIT 1"))[0], '>', 10000, 'a join starts where another one reads');
cmp_ok(($vacuum->do('SELECT i FROM large LIMIT 1'))[0], '>', 10000, 'and so does a Seq Scan');
is(($vacuum->do("SELECT count(*), sum(i) FROM ($join) s"))[0], $all, 'it reads every row once');
is(($reader->do('MOVE ALL FROM c'))[1], '', 'the other one goes on');
$reader->do('COMMIT');
$vacuum->do('SELECT count(*) FROM large');
is(($vacuum->do("SET synchronize_seqscans = off; $join LIMIT 1"))[0], '1', 'but not when that is switched off');

$reader->close;
$vacuum->close;

# ------------------------------------------------------------------ buffer rings
SKIP:
{
	my ($status) = $server->run('CREATE EXTENSION pg_buffercache');
	skip 'pg_buffercache is not installed', 3 if $status != 0;
	$server->stop('fast');
	$server->start;
	my $cached = sub {
		return $server->query("SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('$_[0]') AND relforknumber = 0");
	};
	$server->query('SELECT count(*) FROM kept');
	my $before = $cached->('kept');
	cmp_ok($before, '>', 300, 'a table is in the cache');
	$server->query("SELECT count(*), sum(i) FROM ($join) s") for 1 .. 3;
	cmp_ok($cached->('kept'), '>=', $before - 5, 'and stays there while a join reads a larger one');
	cmp_ok($cached->('large'), '<', 200, 'which is read through few buffers');
}

# ---------------------------------------------------------- pages read at a time
SKIP:
{
	skip 'before PostgreSQL 18, pages read at a time are not counted', 2
		if $server->query('SHOW server_version_num') < 180000;
	$server->stop('fast');
	$server->start;
	# a page without a row tells nothing of how many of them the batch will take
	my $reads = sub {
		my $counts = q{SELECT sum(reads), sum(read_bytes) / 8192 FROM pg_stat_io WHERE backend_type = 'client backend' AND object = 'relation' AND context = 'bulkread'};
		my @before = split /\|/, $server->query($counts);
		$server->query($_[0]);
		my @after = split /\|/, $server->query($counts);
		return ($after[0] - $before[0], $after[1] - $before[1]);
	};
	for my $none ("$join WHERE l.i < 0", 'SELECT l.i FROM small s JOIN large l ON s.k = l.k WHERE l.i < 0')
	{
		my ($usual, $usual_pages) = $reads->("SET gpuhash.enable_scan = off; $none");
		my ($times, $pages) = $reads->($none);
		ok($usual_pages > 600 && $pages > 600 && $times < 1.5 * $usual,
			"a scan that finds no row reads several pages at a time: $pages in $times, a Seq Scan $usual_pages in $usual: $none");
	}
}

done_testing;
