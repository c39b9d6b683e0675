# Nothing is left over of joins that end early: by LIMIT, a cursor closed half-way, an
# error in any phase, statement_timeout, a cancel, a subtransaction rolled back.  What
# there is of memory, files, shared memory, locks and buffer pins is counted before and
# after GPUHASH_LEAK_QUERIES of them (default 1000), once with the CPU engine in the
# sessions and once with the service and a stand-in for the CUDA engine.
#
# GPUHASH_SEED repeats a run.
use GpuHash::Test;
use List::Util 'shuffle';
use Time::HiRes qw(time sleep);
use GpuHash::Fault;

my $SESSIONS = 3;
my $queries = $ENV{GPUHASH_LEAK_QUERIES} || 1000;
my $seed = seed();
note("$queries queries");

# What a process may take more after the queries than before, in bytes: allocators and
# caches do not come to rest quite.  A table or a batch that is left over in each of the
# queries of a kind, 20 at the least, is more than either.
my $CONTEXT_BYTES = 512 << 10;
my $RSS_BYTES = 4 << 20;

sub one_of { return $_[int(rand(@_))] }

# ------------------------------------------------------------- the queries

# Joins that fail at a row whose number is drawn: SQL with %d in the place of it.
my %FAILS = (
	'the inner side is read' => 'SELECT count(*) FROM o LEFT JOIN (SELECT id, k, 100 / (id - %d) AS q FROM i OFFSET 0) i ON i.k = o.k AND i.q < 1000',
	'an inner key' => 'SELECT count(*) FROM o LEFT JOIN i ON 100 / (i.id - %d) = o.k',
	'the outer side is read' => 'SELECT count(*) FROM o JOIN i ON i.k = o.k WHERE 100 / (o.id - %d) < 1000',
	'an outer key' => 'SELECT count(*) FROM o LEFT JOIN i ON i.k = 1000 / (o.id - %d)',
	'a join qual' => 'SELECT count(*) FROM o LEFT JOIN i ON i.k = o.k AND 100 / (o.id - %d) < i.id',
	'the filter' => 'SELECT count(*) FROM o LEFT JOIN i ON i.k = o.k WHERE 100 / (coalesce(i.id, 0) + o.id - %d) < 1000',
	'the output' => 'SELECT sum(100 / (i.id + o.id - %d)) FROM o JOIN i ON i.k = o.k',
	'outer rows without a match' => 'SELECT sum(coalesce(i.id, 100 / (o.id - %d))) FROM o LEFT JOIN i ON i.k = o.k AND i.id > 3000',
	'inner rows without a match' => 'SELECT sum(coalesce(o.id, 100 / (i.id - %d))) FROM o RIGHT JOIN i ON i.k = o.k AND o.id > 3000',
	'a full join' => 'SELECT sum(coalesce(o.id, 100 / (i.id - %d)) + coalesce(i.id, 1)) FROM o FULL JOIN i ON i.k = o.k AND o.id > 3000',
	'a semi join' => 'SELECT count(*) FROM o WHERE EXISTS (SELECT FROM i WHERE i.k = o.k AND 100 / (o.id - %d) < i.id)',
	'an anti join' => 'SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM i WHERE i.k = o.k AND 100 / (o.id - %d) < i.id)',
	'text keys' => 'SELECT sum(100 / (i.id - %d)) FROM o JOIN i ON i.t = o.t',
	'a rescan' => 'SELECT sum(s.q) FROM (VALUES (0), (1), (2)) v(x), LATERAL (SELECT 100 / (o.id * x - %d) AS q FROM o LEFT JOIN i ON i.k = o.k AND i.id < 100 WHERE o.id %% 3 < x OFFSET 0) s');

# Joins that are left before their end.
my %STOPS = (
	'a LIMIT' => sub { 'SELECT o.id, i.t FROM o JOIN i ON i.k = o.k LIMIT ' . one_of(1, 7, 300, 4000) },
	'a LIMIT in each row' => sub { 'SELECT x, (SELECT i.t FROM o LEFT JOIN i ON i.k = o.k WHERE o.id > x LIMIT 1) FROM generate_series(1, 9) x' },
	'a cursor closed' => sub { 'BEGIN; DECLARE c CURSOR FOR SELECT o.id, i.t FROM o LEFT JOIN i ON i.t = o.t; MOVE ' . one_of(1, 300, 3000) . ' FROM c; CLOSE c; COMMIT' },
	'a cursor left open' => sub { 'BEGIN; DECLARE c CURSOR FOR SELECT o.id, i.t FROM o FULL JOIN i ON i.k = o.k; MOVE ' . one_of(1, 300, 3000) . ' FROM c; ' . one_of('COMMIT', 'ROLLBACK') },
	'a cursor held' => sub { 'BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT o.id, i.t FROM o JOIN i ON i.k = o.k; MOVE 3 FROM c; COMMIT; MOVE 10 FROM c; CLOSE c' },
	'a savepoint' => sub { 'BEGIN; SAVEPOINT s; DECLARE c CURSOR FOR SELECT o.id, i.t FROM o RIGHT JOIN i ON i.k = o.k; MOVE 300 FROM c; ROLLBACK TO s; COMMIT' },
	'a loop that is left' => sub { q{DO $$ DECLARE r record; BEGIN FOR r IN SELECT o.id, i.t FROM o JOIN i ON i.k = o.k LOOP EXIT WHEN r.id > 20; END LOOP; END $$} },
	'errors that are caught' => sub { sprintf q{DO $$ BEGIN FOR n IN 1..4 LOOP BEGIN PERFORM sum(100 / (i.id + o.id - %d)) FROM o JOIN i ON i.k = o.k; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$}, 10 + int(rand(3000)) },
	# by texts, which a device does not join below an aggregate, without files
	'temp_file_limit' => sub { "SET work_mem = '64kB'; SET temp_file_limit = '" . one_of(40, 100) . "kB'; SELECT count(i.t) FROM o FULL JOIN i ON i.t = o.t; RESET temp_file_limit" });

# Joins that take a while, most of it in one phase, to be stopped from outside.
my %LONG = (
	'the inner side is read' => q{SELECT count(*) FROM o LEFT JOIN (SELECT x AS k FROM generate_series(1, 200000) x OFFSET 0) b ON b.k = o.k},
	'build and probe' => 'SELECT count(*) FROM big a JOIN big b ON b.id = a.id',
	'emission' => 'SELECT count(*) FROM skew a JOIN skew b ON b.k = a.k AND a.id + b.id < 0',
	'unmatched rows' => 'SELECT count(*) FROM o FULL JOIN big b ON b.id = o.id WHERE length(sqrt(b.id + 0.5)::text) < 0');

my @KINDS = ((map { ['fails', $_] } sort keys %FAILS), (map { ['stops', $_] } sort keys %STOPS), (map { ['long', $_] } sort keys %LONG));

# Settings and statement of one query of the kind; whether it is to be cancelled.
sub statement
{
	my ($kind, $name) = @_;
	my $settings = 'SET work_mem = ' . one_of("'64kB'", "'64kB'", "'16MB'") . '; ';
	return ($settings . sprintf($FAILS{$name}, 1 + int(rand(2000)))) if $kind eq 'fails';
	return ($settings . $STOPS{$name}->()) if $kind eq 'stops';
	return ($settings . $LONG{$name}, 1) if rand() < 0.5;
	return ($settings . 'SET statement_timeout = ' . one_of(1 .. 40) . "; $LONG{$name}; RESET statement_timeout");
}

# ---------------------------------------------------------------- counting

# What a session holds, besides memory.
sub holdings
{
	my ($server, $session) = @_;
	# counted by PostgreSQL: a node of ours has contexts of its own meanwhile
	my ($contexts) = $session->{psql}->do(q{SET gpuhash.enabled = off; SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'GpuHash%'; RESET gpuhash.enabled});
	my ($cursors) = $session->{psql}->do('SELECT count(*) FROM pg_cursors');
	my $rest = $server->query("SELECT count(*) FROM pg_locks WHERE pid = $session->{pid}") . ' ' .
		$server->query("SELECT count(*) FROM pg_stat_activity WHERE pid = $session->{pid} AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)");
	my @open = map { readlink($_) // () } glob "/proc/$session->{pid}/fd/*";
	my $temporary = grep { m{pgsql_tmp|pg_dynshmem|\(deleted\)} } @open;
	return "contexts $contexts cursors $cursors locks and snapshots $rest open temporary files $temporary";
}
my $NOTHING = 'contexts 0 cursors 0 locks and snapshots 0 0 open temporary files 0';

sub context_bytes { my ($session) = @_; return ($session->{psql}->do('SELECT sum(total_bytes) FROM pg_backend_memory_contexts'))[0] }
sub rss { my ($pid) = @_; return GpuHash::Server::read_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+)/m ? $1 * 1024 : 0 }
sub descriptors { my ($pid) = @_; my @fds = glob "/proc/$pid/fd/*"; return scalar @fds }

# Of the server: temporary files, segments of dynamic shared memory, pins.
sub files { my ($server, $where) = @_; my @files = glob "$server->{dir}/data/$where"; return scalar @files }
sub shared
{
	my ($server, $pins) = @_;
	my $out = 'temporary files ' . files($server, 'base/pgsql_tmp/*') . ' segments ' . files($server, 'pg_dynshmem/*');
	$out .= ' pins ' . $server->query('SELECT count(*) FROM pg_buffercache WHERE pinning_backends > 0') if $pins;
	return $out;
}

# ------------------------------------------------------------------- a run

sub make_tables
{
	my ($server) = @_;
	$server->query(<<'SQL');
CREATE TABLE o AS SELECT i AS id, CASE WHEN i % 11 = 0 THEN NULL ELSE i % 1900 END AS k, 'key ' || i % 1500 AS t FROM generate_series(1, 2500) i;
CREATE TABLE i AS SELECT i AS id, i % 1700 AS k, 'key ' || i % 1800 AS t FROM generate_series(1, 2000) i;
CREATE TABLE big AS SELECT i AS id FROM generate_series(1, 60000) i;
CREATE TABLE skew AS SELECT i AS id, 7 AS k FROM generate_series(1, 3000) i;
VACUUM ANALYZE;
CREATE EXTENSION gpuhash;
SQL
	return;
}

# Each kind's joins are the ones of this test.
sub check_plans
{
	my ($session) = @_;
	my @not;
	for my $work ([%FAILS], [%LONG])
	{
		my %queries = @$work;
		for my $name (sort keys %queries)
		{
			my ($plan) = $session->{psql}->do('EXPLAIN ' . ($queries{$name} =~ /%d/ ? sprintf($queries{$name}, 1) : $queries{$name}));
			push @not, $name if $plan !~ /GpuHashJoin/;
		}
	}
	return "@not";
}

my (%ended, @strange);

# Runs the statements, one in each session at a time.
sub work
{
	my ($server, $sessions, @statements) = @_;
	my $control = $server->session;
	while (@statements)
	{
		my @batch = splice @statements, 0, scalar @$sessions;
		my @cancel;
		for my $n (0 .. $#batch)
		{
			my ($sql, $cancel) = @{ $batch[$n] };
			$sessions->[$n]{psql}->send($sql);
			push @cancel, $sessions->[$n]{pid} if $cancel;
		}
		for my $pid (@cancel)
		{
			sleep rand(0.02);
			$control->do("SELECT pg_cancel_backend($pid)");
		}
		for my $n (0 .. $#batch)
		{
			my (undef, $err) = $sessions->[$n]{psql}->receive;
			my ($state) = $err =~ /ERROR:  (\w{5})/;
			$ended{ $state || 'no error' }++;
			push @strange, "$batch[$n][0]: $err" if $state && $state !~ /^(?:22012|57014|53400)$/;
			$sessions->[$n]{psql}->do('ROLLBACK; RESET ALL; ' . $sessions->[$n]{settings}) if $err;
		}
	}
	$control->close;
	return;
}

# Counts around the queries; more: further things of the server that are left over;
# worker: the process that works for the sessions, if one does.
sub count_leaks
{
	my ($name, $server, $settings, $number, $more, $worker) = @_;
	my $start = time;
	my $pins = ($server->run('CREATE EXTENSION pg_buffercache'))[0] == 0;
	make_tables($server);
	my @sessions = map { { psql => $server->session, settings => $settings } } 1 .. $SESSIONS;
	for my $session (@sessions)
	{
		$session->{psql}->do($settings);
		($session->{pid}) = $session->{psql}->do('SELECT pg_backend_pid()');
	}
	is(check_plans($sessions[0]), '', "$name: the joins are offloaded");

	# caches fill: every kind in every session, twice
	%ended = ();
	my @each = map { my $kind = $_; map { [statement(@$kind)] } @sessions } @KINDS, @KINDS;
	work($server, \@sessions, @each);
	my $shared = shared($server, $pins);
	is($more->(), '', "$name: nothing of the service is taken before");
	my @processes = (@sessions, $worker ? { pid => $worker->() } : ());
	for my $session (@sessions)
	{
		is(holdings($server, $session), $NOTHING, "$name: nothing is held before");
		$session->{contexts} = context_bytes($session);
	}
	for my $process (@processes)
	{
		$process->{descriptors} = descriptors($process->{pid});
		$process->{rss} = rss($process->{pid});
	}

	%ended = ();
	my @kinds = map { shuffle(@KINDS) } 0 .. $number / @KINDS;
	work($server, \@sessions, map { [statement(@$_)] } @kinds[0 .. $number - 1]);
	note("$name: " . join ', ', map { "$ended{$_} $_" } sort keys %ended);
	cmp_ok($ended{$_} // 0, '>', 0, "$name: some ended with $_") for '22012', '57014', '53400', 'no error';

	for my $session (@sessions)
	{
		is(holdings($server, $session), $NOTHING, "$name: nothing is held after");
		my $contexts = context_bytes($session) - $session->{contexts};
		note("$name: contexts of a session: $contexts bytes more");
		cmp_ok($contexts, '<', $CONTEXT_BYTES, "$name: no memory contexts are left over");
	}
	for my $process (@processes)
	{
		my $rss = rss($process->{pid}) - $process->{rss};
		note("$name: memory of a process: $rss bytes more");
		cmp_ok($rss, '<', $RSS_BYTES, "$name: nor other memory");
		cmp_ok(descriptors($process->{pid}), '<=', $process->{descriptors} + 2, "$name: nor open files");
	}
	is($worker->(), $processes[-1]{pid}, "$name: the worker is the same") if $worker;
	is(shared($server, $pins), $shared, "$name: nor files, shared memory and pins");
	is($more->(), '', "$name: nor anything of the service");
	SKIP: { skip 'pg_buffercache is not installed', 1 if !$pins; pass("$name: pins were counted") }

	# processes that end in the middle
	for my $name (sort keys %LONG)
	{
		my $session = $server->session;
		my ($pid) = $session->do("$settings; SET work_mem = '64kB'; SELECT pg_backend_pid()");
		$session->send($LONG{$name});
		sleep rand(0.05);
		$server->query("SELECT pg_terminate_backend($pid, 5000)");
		eval { $session->receive };
		$session->close;
	}
	is(shared($server, $pins), $shared, "$name: likewise after pg_terminate_backend");
	is($more->(), '', "$name: nor anything of the service");
	note(sprintf '%s: %.1f s', $name, time - $start);
	$_->{psql}->close for @sessions;
	$server->stop;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal|refcount leak|leak:|leaked/, "$name: a clean log");
	return;
}

# large blocks go back to the system at once, so that what is taken can be counted
$ENV{MALLOC_MMAP_THRESHOLD_} = $ENV{MALLOC_TRIM_THRESHOLD_} = 128 << 10;

# segments of dynamic shared memory are files of this server, that can be counted
my @CONF = ('dynamic_shared_memory_type = mmap', 'jit = off', 'autovacuum = off', 'max_parallel_workers_per_gather = 0');
my $SETTINGS = 'SET gpuhash.force_offload = on; SET hash_mem_multiplier = 1; SET gpuhash.batch_rows = 256; SET enable_material = off';

count_leaks('CPU engine', GpuHash::Server->new(conf => [@CONF, "session_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'"]),
	$SETTINGS, int($queries * 0.6), sub { return '' });

SKIP:
{
	my $fault = GpuHash::Fault->new;
	skip $fault->why_not, 1 if $fault->why_not;
	my $server = GpuHash::Server->new(conf => [@CONF, "shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cuda'"]);
	# tables and abandoned buffers are freed by the worker, soon
	my $service = sub {
		my $state;
		for (1 .. 200)
		{
			$state = $server->query(q{SELECT 'bytes ' || sum(memory_used - memory_resident) || ' tables ' || sum(d.tables) - (SELECT coalesce(sum(r.tables), 0) FROM gpuhash_resident r) FROM gpuhash_devices d}) . ' ' .
				$server->query(q{SELECT 'buffers ' || buffers - buffers_free || ' tables ' || tables - (SELECT coalesce(sum(r.tables), 0) FROM gpuhash_resident r) FROM gpuhash_stat}) . ' ' .
				$server->query('SELECT count(*) FROM gpuhash_stat_activity');
			return '' if $state eq 'bytes 0 tables 0 buffers 0 tables 0 0';
			sleep 0.05;
		}
		return $state;
	};
	my $worker = sub { return $server->query("SELECT worker_pid FROM gpuhash_devices WHERE engine = 'cuda'") };
	count_leaks('service', $server, $SETTINGS, $queries - int($queries * 0.6), $service, $worker);
}
is(join("\n", @strange), '', "no other errors (seed $seed)");

done_testing();
