# Cancel and statement_timeout take effect at once, wherever the work is.
use GpuHash::Test;
use Time::HiRes qw(sleep);

# Seconds from the cancel, or from when the time was up, to the error.  The work
# answers within 0.1; the rest is for a machine that is busy with other things.
my $PROMPT = 0.6;

my $server = GpuHash::Server->new(conf => [
	"session_preload_libraries = 'gpuhash'", 'gpuhash.force_offload = on', "gpuhash.engine = 'cpu'",
	"work_mem = '1GB'", 'max_parallel_workers_per_gather = 0', 'jit = off']);
$server->query('CREATE EXTENSION gpuhash');
$server->query(<<'SQL');
CREATE UNLOGGED TABLE big AS SELECT i::bigint AS k, 1 AS one FROM generate_series(1, 3000000) i;
CREATE UNLOGGED TABLE small AS SELECT i::bigint AS k FROM generate_series(1, 1000) i;
CREATE UNLOGGED TABLE skewed AS SELECT 7::bigint AS k FROM generate_series(1, 30000);
CREATE UNLOGGED TABLE many AS SELECT i % 300::bigint AS k FROM generate_series(1, 150000) i;
CREATE UNLOGGED TABLE long_keys AS SELECT repeat('key ', 8000000) || i AS k FROM generate_series(1, 1) i;
INSERT INTO long_keys SELECT k FROM long_keys, generate_series(1, 80);
ANALYZE big, small, skewed, many;
SQL

my %work = (
	'the build of a large table' => 'SELECT count(*) FROM (SELECT k FROM big a UNION ALL SELECT k + 3000000 FROM big b UNION ALL SELECT k + 6000000 FROM big c UNION ALL SELECT k + 9000000 FROM big d UNION ALL SELECT k FROM big e) s LEFT JOIN (SELECT k FROM big a UNION ALL SELECT k + 3000000 FROM big b UNION ALL SELECT k + 6000000 FROM big c UNION ALL SELECT k + 9000000 FROM big d) b ON b.k = s.k',
	'the probe' => 'SELECT sum(a.one) FROM big a JOIN big b ON b.k = a.k JOIN big c ON c.k = a.k JOIN big d ON d.k = a.k',
	'one key with many rows on both sides' => 'SELECT count(*) FROM skewed a JOIN skewed b ON b.k = a.k',
	'a join qual that drops every match' => 'SELECT count(*) FROM skewed a JOIN skewed b ON b.k = a.k AND a.k + b.k < 0',
	'a left join' => 'SELECT count(*), sum(b.k) FROM skewed a LEFT JOIN skewed b ON b.k = a.k AND a.k * b.k = 50',
	'a filtered left join' => 'SELECT * FROM big a LEFT JOIN small b ON b.k = a.k + 1000000000 WHERE length(((a.k + 1.5)::numeric ^ 123.4567)::text) + coalesce(b.k, 1) < 0',
	# an outer side that is taken for the larger one, and is empty
	'inner rows without a match' => 'SELECT * FROM (SELECT k FROM big a WHERE k + 0 < 0 UNION ALL SELECT k FROM big b WHERE k + 0 < 0 UNION ALL SELECT k FROM big c WHERE k + 0 < 0 UNION ALL SELECT k FROM big d WHERE k + 0 < 0) s RIGHT JOIN big b ON b.k = s.k WHERE length(((b.k + 1.5)::numeric ^ 123.4567)::text) + coalesce(s.k, 1) < 0',
	'an anti join' => 'SELECT count(*) FROM skewed a WHERE NOT EXISTS (SELECT FROM skewed b WHERE b.k = a.k AND a.k + b.k < 0)',
	'a full join' => 'SELECT count(*) FROM skewed a FULL JOIN skewed b ON b.k = a.k AND a.k * b.k = 50',
	'keys that take long to hash' => 'SELECT count(*) FROM long_keys a JOIN (SELECT k::text AS k FROM small OFFSET 0) b ON b.k = a.k',
	'partitions written and read' => 'SELECT count(*) FROM big a FULL JOIN big b ON b.k = a.k AND a.one = b.one',
	'matches in partitions that a qual drops' => 'SELECT count(*) FROM many a JOIN many b ON b.k = a.k AND a.k + b.k < 0',
	'inner rows of partitions without a match' => 'SELECT * FROM small a FULL JOIN many b ON b.k = a.k - 1000000 WHERE length(((b.k + 1.5)::numeric ^ 123.4567)::text) + coalesce(a.k, 1) < 0',
	'a rescan that keeps the inner side' => 'SELECT x, (SELECT count(*) FROM small a RIGHT JOIN big b ON b.k = a.k + x) FROM generate_series(1, 100) x',
	'gpuhash_load' => q{SELECT gpuhash_load('t', 'SELECT k, k FROM big a UNION ALL SELECT k + 3000000, k FROM big b UNION ALL SELECT k + 6000000, k FROM big c')},
);

# what has too little memory
my %settings = map { $_ => "SET work_mem = '64kB'; SET hash_mem_multiplier = 1" } grep { /partitions/ } keys %work;

my $session = $server->session;
$session->do("SELECT gpuhash_create('t')");
my ($pid) = $session->do('SELECT pg_backend_pid()');

my $cancelled = 0;
for my $name (sort keys %work)
{
	my $sql = $work{$name};
	$session->do($settings{$name} || 'RESET work_mem; RESET hash_mem_multiplier');
	for my $after (0.05, 0.3, 0.7)
	{
		# by time
		my $watch = stopwatch();
		my ($out, $err) = $session->do(sprintf('SET statement_timeout = %d; %s', $after * 1000, $sql));
		my $late = $watch->() - $after;
		$session->no_timeout;
		if ($out =~ /\d/ && $err eq '')
		{
			pass("$name: over before $after s");
			last;
		}
		like($err, qr/57014/, "$name: ended by statement_timeout after $after s");
		cmp_ok($late, '<', $PROMPT, sprintf('%s: promptly (%.0f ms late)', $name, $late * 1000));

		# by another session
		$session->send($sql);
		sleep $after;
		$watch = stopwatch();
		$server->query("SELECT pg_cancel_backend($pid)");
		($out, $err) = $session->receive;
		$late = $watch->();
		if ($out =~ /\d/ && $err eq '')
		{
			pass("$name: over before it was cancelled after $after s");
			last;
		}
		like($err, qr/57014/, "$name: cancelled after $after s");
		cmp_ok($late, '<', $PROMPT, sprintf('%s: promptly (%.0f ms)', $name, $late * 1000));
		$cancelled++;
	}
	my ($out, $err) = $session->do('SELECT count(*) FROM big a JOIN small b ON b.k = a.k');
	is("$out$err", '1000', "$name: the session goes on");
}

cmp_ok($cancelled, '>=', 2 * keys %work, 'most was cancelled before it was over');

my ($out, $err) = $session->do("SELECT gpuhash_clear('t'); SELECT gpuhash_load('t', 'SELECT k, k * 2 FROM small'); SELECT gpuhash_find('t', 21)");
like($out, qr/1000\n42$/, 'a table whose load was cancelled can be cleared and loaded') or diag($err);

# Tables that participants of a parallel query make for the aggregate above: at any moment of that.
my $together = 'SELECT sum(b.one), count(b.k) FROM big a JOIN big b ON b.k = a.k';
$session->do('SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0');
like(($session->do("EXPLAIN $together"))[0], qr/GpuHashAggregate.*Parallel Custom Scan \(GpuHashJoin\)/s, 'a parallel aggregate over a join');
my ($timed_out, @wrong) = (0);
for my $after (map { 20 * $_ } 1 .. 40)
{
	my ($sum, $error) = $session->do("SET statement_timeout = $after; $together");
	$session->no_timeout;
	$timed_out++ if $error =~ /57014/;
	push @wrong, "$after: $sum $error" if $error ? $error !~ /57014/ : $sum ne '3000000|3000000';
}
is(scalar @wrong, 0, 'it is cancelled, or right') or diag(join("\n", @wrong));
cmp_ok($timed_out, '>=', 5, 'and is cancelled several times');
is(join('', $session->do($together)), '3000000|3000000', 'and the session goes on');

# a backend that is terminated
$session->send($work{'the probe'});
sleep 0.2;
$server->query("SELECT pg_terminate_backend($pid)");
eval { $session->receive };
for (1 .. 20)
{
	last if $server->query("SELECT count(*) FROM pg_stat_activity WHERE pid = $pid") == 0;
	sleep 0.1;
}
is($server->query("SELECT count(*) FROM pg_stat_activity WHERE pid = $pid"), 0, 'pg_terminate_backend ends a join');
$session->close;
$server->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');

done_testing();
