# Pipelines of the service: what the CPU engine makes of the same pages, through any way that pages go, with several
# requests at a time; faults; sessions that leave; and what is left over.
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Service;

my $CLEAN = $GpuHash::Service::CLEAN;
my $service = GpuHash::Service->new;
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
$server->query(<<'SQL');
CREATE TABLE o AS SELECT i % 1000 AS k, i::bigint * 7 - 100000 AS v FROM generate_series(1, 30000) i;
CREATE TABLE i AS SELECT i % 700 * 2 AS k, i::bigint * 1000 AS p FROM generate_series(-5, 1500) i;
VACUUM (FREEZE, ANALYZE) o, i;
SQL
my $session = $server->session;
$session->do('SET gpuhash.enabled = off');

sub trial
{
	my ($engine, $shape, $mode, $pages, $flight, $capacity, $early) = @_;
	my ($out, $err) = $session->do("SELECT gpuhash_trial_pipeline('$engine', '$shape', 'o'::regclass, 'i'::regclass, '$mode', $pages, $flight, $capacity, $early)");
	return $out . $err;
}
sub service { my ($shape, @rest) = @_; return trial('service', $shape, @rest ? @rest : ('pinned', 16, 2, 65536, 'true')) }

# --------------------------------------------------------------------- answers
my @SHAPES = qw(groups rows places clear joined left semi anti two unmatched regrouped hasty plain emptied found);
my %want = map { $_ => trial('cpu', $_, 'copied', 16, 1, 65536, 'false') } @SHAPES;
my $groups = ($session->do("SELECT string_agg(format('%s %s %s', k, n, s), ',' ORDER BY k) || ',back 0' FROM (SELECT k, count(*) n, sum(v) s FROM o GROUP BY k) g"))[0];
my $joined = ($session->do("SELECT string_agg(format('%s %s %s %s %s', k, n, s, k * n, p), ',' ORDER BY k) || ',back 0' FROM (SELECT o.k, count(*) n, sum(v) s, sum(p) p FROM o JOIN i USING (k) GROUP BY o.k) g"))[0];
is($want{groups}, $groups, "the CPU engine's groups are PostgreSQL's");
is($want{joined}, $joined, "and its joined ones");
is($want{found}, $server->query(q{SELECT count(DISTINCT k) || ' ' || sum(DISTINCT k) || ', ' || count(DISTINCT k) FROM i}), 'requests find the keys of a table that a pipeline made, and what it keeps');
my $rows = qr/^\d{3,} records [0-9a-f]{16}, seen \d{4,}, counted \d{3,}, back 0 0{16}, passed/;
like($want{$_}, $rows, "$_: $want{$_}") for qw(rows clear left two unmatched regrouped hasty plain emptied);
like($want{$_}, qr/^500 records .* passed 15000 0 0, table of 1506, several$/, "$_: $want{$_}") for qw(semi anti);
like($want{places}, qr/^0 records 0{16}, seen 31506, counted 16506, back 15000 (?!0{16}).*, passed 15000 /, "places: $want{places}");
for my $shape (@SHAPES)
{
	for my $mode ('copied', 'pinned', 'copied bitmaps', 'pinned bitmaps')
	{
		is(service($shape, $mode, 16, 2, 65536, 'true'), $want{$shape}, "$shape, $mode");
	}
	is(service($shape, 'pinned', 16, 1, 65536, 'false'), $want{$shape}, "$shape, one request at a time");
	is(service($shape, 'pinned', 64, 4, 1000, 'false'), $want{$shape}, "$shape, large requests, few results");
	is(service($shape, 'pinned', 1, 4, 1, 'true'), $want{$shape}, "$shape, a page at a time");
}
like($service->settle, $CLEAN, 'nothing is left over');
is($server->query('SELECT page_batches > 100, pages > 5000, page_bytes = pages * 8192, pages_direct > 0, scans FROM gpuhash_stat'), 't|t|t|t|0', 'gpuhash_stat counts them');

$service->ask('SELECT gpuhash_stat_reset()');
is(service($_), $want{$_}, "$_ once more") for qw(unmatched two);
is($server->query('SELECT pages_direct = pages FROM gpuhash_stat'), 't', 'requests without pages count none');

# ------------------------------------------------------- several sessions together
{
	my @sessions = ($session, map { $server->session } 1 .. 2);
	my ($one, $two, $three) = @sessions;
	sub shared
	{
		my ($of, $step, $number, $relation, $first, $end) = @_;
		my ($out, $err) = $of->do(sprintf q{SELECT gpuhash_trial_shared('%s', %s, '%s'::regclass, %d, %d)}, $step, $number // 0, $relation // 'o', $first // 0, $end // 0);
		return $out . $err;
	}
	# All of them bring a part of the relation, at the same time.
	sub bring_together
	{
		my ($relation, $blocks) = @_;
		my $part = int($blocks / 3);
		my $counted = 0;
		$sessions[$_]->send("SELECT gpuhash_trial_shared('bring', 0, '$relation'::regclass, " . $_ * $part . ', ' . ($_ == 2 ? $blocks : ($_ + 1) * $part) . ')') for 0 .. 2;
		for my $of (@sessions) { my ($out, $err) = $of->receive; return $err if $err; $counted += $out }
		return $counted;
	}
	my %blocks = map { $_ => $server->query("SELECT pg_relation_size('$_') / 8192") } qw(o i);

	my $root = shared($one, 'make groups');
	like($root, qr/^\d+$/, 'a session makes a pipeline for several');
	is(shared($_, 'attach', $root), 'done', 'others attach it') for $two, $three;
	is(bring_together('o', $blocks{o}), 30000, 'all of them bring pages');
	is(shared($three, 'fetch groups'), $groups, 'the groups are those of all pages');
	is(shared($one, 'leave'), 'done', 'who made it leaves');
	is(shared($two, 'fetch groups'), $groups, 'and the groups are still there');
	is(shared($three, 'release', $root), 'done', 'it is released');
	like(shared($two, 'fetch groups'), qr/ERROR:  55000.*/, 'from then on it is gone');
	like(shared($one, 'attach', $root), qr/ERROR:  55000.*gone/, 'nobody attaches it any more');
	shared($_, 'leave') for $two, $three;
	like($service->settle, $CLEAN, 'nothing is left over');

	my $table = shared($one, 'make table');
	is(shared($_, 'attach', $table), 'done', 'others attach a pipeline that makes a table') for $two, $three;
	like(shared($two, 'attach table', $table), qr/ERROR/, 'before it is made nobody attaches the table');
	is(bring_together('i', $blocks{i}), 1506, 'all of them bring pages');
	is(shared($two, 'finish table'), 1506, 'one of them, who did not make the pipeline, makes the table');
	like(shared($three, 'bring', 0, 'i', 0, 1), qr/ERROR/, 'others bring no more rows');
	is(shared($_, 'leave'), 'done', 'the pipeline is left') for $one, $three;
	is(shared($_, 'attach table', $table), 'done', 'others attach the table') for $one, $three;
	is(shared($_, 'probe', 0, 'o'), $joined, 'each probes it') for $one, $two, $three;
	is(shared($_, 'find', 1000), $server->query('SELECT count(DISTINCT k) FROM i WHERE k BETWEEN 0 AND 999'), 'requests of each find its keys') for $one, $two, $three;
	is(shared($three, 'misuse table'), 'values invalid, insert invalid, clear invalid, reserve invalid, flush invalid, stats ok', 'they get no values of a table that keeps two, and change nothing');
	is(shared($two, 'probe', 0, 'o'), $joined, 'and is as it was');

	# Joined together with that table, with marks.
	my $joint = shared($two, 'make marking');
	is(shared($_, 'attach', $joint), 'done', 'others attach a pipeline that marks') for $one, $three;
	my $matched = bring_together('o', $blocks{o});
	is($matched, $server->query('SELECT count(*) FROM o JOIN i USING (k)'), 'all of them bring pages');
	is(shared($one, 'destroy table'), 'done', 'the table is destroyed, but used');
	like(shared($three, 'probe', 0, 'o'), qr/ERROR/, 'by nobody else from then on');
	is(shared($three, 'bring unmatched', 1506), $server->query('SELECT count(*) FROM i WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.k = i.k)'), 'rows without a match, by any of them');
	like(shared($one, 'fetch digest'), qr/^\d+ records [0-9a-f]{16}/, 'what came out');
	is((shared($one, 'fetch digest') =~ /^(\d+ records [0-9a-f]{16})/)[0], ($want{unmatched} =~ /^(\d+ records [0-9a-f]{16})/)[0], 'is what one session gets');
	is(shared($one, 'release', $joint), 'done', 'it is released');
	shared($_, 'leave') for @sessions;
	like($service->settle, $CLEAN, 'nothing is left over');

	# Whoever ends takes along what is its own, and not what is shared.
	$root = shared($two, 'make groups');
	shared($_, 'attach', $root) for $one, $three;
	$two->close;
	is(shared($one, 'bring', 0, 'o', 0, 10) + 0, $server->query("SELECT count(*) FROM o WHERE ctid < '(10,0)'"), 'who made it ends, and it goes on');
	shared($one, 'release', $root);
	shared($_, 'leave') for $one, $three;
	$three->close;
	like($service->settle, $CLEAN, 'nothing is left over');
}

# ---------------------------------------------------------------------- faults
my $started = $server->query('SELECT pg_postmaster_start_time()');
sub await_end
{
	my ($worker) = @_;
	my $deadline = time + 10;
	sleep 0.02 while (GpuHash::Server::runs($worker) && time < $deadline);
	return;
}
# Points that a shape passes, and after how many passages the fault is to happen.
my @POINTS = ([scan_create => 'joined', 0], [scan_create => 'joined', 1], [scan => 'joined', 3], [scan => 'unmatched', 12],
	[scan_table => 'two', 0], [scan_table => 'two', 1], [scan_results => 'groups', 0], [scan_stats => 'regrouped', 0],
	[clear => 'clear', 0], [reply => 'groups', 0], [create => 'unmatched', 0], [create => 'plain', 0], [allocation => 'two', 5]);
for my $one (@POINTS)
{
	my ($point, $shape, $after) = @$one;
	for my $kind ($point eq 'allocation' ? ('no_memory') : $point eq 'reply' ? ('delay') : qw(no_memory limit launch delay))
	{
		$service->arm($point, $kind, after => $after, ms => 5);
		my $got = service($shape);
		my $what = "$kind at $point of $shape";
		ok($service->fired, "$what happens");
		if ($kind eq 'delay') { is($got, $want{$shape}, "$what: the answer is right") }
		elsif ($point eq 'allocation') { ok($got eq $want{$shape} || $got =~ /back [1-9]|ERROR/, "$what: no wrong answer") }
		else { like($got, qr/ERROR: .*fault point/, "$what is an error") }
		like($service->settle, $CLEAN, "$what: nothing is left over");
		$service->disarm;
		is(service($shape), $want{$shape}, "$what: the next one is right");
	}
}
for my $shape (qw(rows unmatched))
{
	for my $after (0, 1, 2)
	{
		$service->arm('scan_answer', 'limit', after => $after);
		like(service($shape), qr/ERROR: .*tells of more than was asked for/, "$shape: too much is told, after $after answers");
		$service->disarm;
		like($service->settle, $CLEAN, 'nothing is left over');
	}
}

# The worker ends while it has pipelines, tables and marks.
for my $kind (qw(term sticky))
{
	for my $one ([scan_create => 'two', 2], [scan => 'unmatched', 12], [scan_results => 'two', 0], [scan_table => 'two', 1], [create => 'unmatched', 0], [destroy => 'unmatched', 0])
	{
		my ($point, $shape, $after) = @$one;
		my %workers = $service->workers;
		$service->arm($point, $kind, after => $after);
		# it may end just after the last answer
		my $got = service($shape);
		ok($got eq $want{$shape} || $got =~ /ERROR:  55000.*(?:worker of GPU|fault point)/, "the worker ends by $kind at $point: an error, or the right answer")
			or diag($got);
		await_end($workers{0});
		ok($service->disarm, "$kind at $point happened");
		ok($service->wait_ready, 'it comes back');
		like($service->settle, $CLEAN, 'everything was given back');
		is(service($shape), $want{$shape}, 'and it does the same again');
	}
}
$server->query("ALTER SYSTEM SET gpuhash.device_timeout = '400ms'; SELECT pg_reload_conf()");
for my $one ([scan_create => 1], [scan => 5], [scan => 12], [scan_results => 0], [scan_table => 0], [destroy => 0])
{
	my ($point, $after) = @$one;
	my %workers = $service->workers;
	$service->arm($point, 'hang', after => $after);
	my $got = service('unmatched');
	ok($got eq $want{unmatched} || $got =~ /ERROR: .*(?:worker of GPU|no answer)/, "the device hangs at $point: an error, or the right answer") or diag($got);
	await_end($workers{0});
	ok($service->disarm, "it did hang at $point");
	ok($service->wait_ready, 'the worker ends and comes back');
	is(service('unmatched'), $want{unmatched}, 'and does the same again');
}
like($server->log, qr/has not answered for 400 ms.*\n.*DETAIL:  The request is of the process \d+, over 16 pages\./, 'the log tells what hung');
$server->query("ALTER SYSTEM RESET gpuhash.device_timeout; SELECT pg_reload_conf()");

# A device that fails by itself, at each request in turn.
SKIP: {
	skip 'the device itself does not fail when asked to', 1 unless $service->{fault};
	my @bad;
	for my $requests (0 .. 12)
	{
		$service->{fault}->fail_after($requests);
		my $got = service('unmatched');
		push @bad, "$requests: $got" if $got !~ /ERROR: .*(?:the test lets the device fail|worker of GPU)/;
		$service->{fault}->repair;
		$service->wait_ready(60) or push @bad, "$requests: the worker does not come back";
		push @bad, "$requests: afterwards" if service('unmatched') ne $want{unmatched};
	}
	is(join("\n", @bad), '', 'a failing device is an error');
}

# ------------------------------------------------------------------- sessions leave
for my $one ([scan_create => 1], [scan => 5], [scan_results => 0], [scan_table => 0], [create => 0])
{
	my ($point, $after) = @$one;
	$service->arm($point, 'delay', after => $after, ms => 700);
	my ($out, $err) = $session->do("SET statement_timeout = '200ms'; SELECT gpuhash_trial_pipeline('service', 'unmatched', 'o'::regclass, 'i'::regclass, 'pinned', 16, 3, 65536, true)");
	like($err, qr/ERROR:  57014/, "a session that is cancelled while it waits at $point");
	$session->do('RESET statement_timeout');
	$service->disarm;
	# its pins are gone, whatever the device still does
	is($server->query('VACUUM (FREEZE) o; SELECT count(*) FROM o'), 30000, 'its pages are free');
	like($service->settle, $CLEAN, 'nothing is left over of it');
	is(service('unmatched'), $want{unmatched}, 'it goes on');
}
for my $point (qw(scan_create scan scan_table))
{
	my $leaver = $server->session;
	my ($pid) = $leaver->do('SELECT pg_backend_pid()');
	$service->arm($point, 'delay', ms => 500);
	$leaver->send("SELECT gpuhash_trial_pipeline('service', 'two', 'o'::regclass, 'i'::regclass, 'pinned', 16, 3, 65536, true)");
	sleep 0.2;
	$service->ask("SELECT pg_terminate_backend($pid)");
	eval { $leaver->receive };
	$service->disarm;
	like($service->settle, $CLEAN, "nothing is left over of a process that ended at $point");
}
is($server->query('SELECT pg_postmaster_start_time()'), $started, 'the server was never restarted');

# A worker that is killed takes all sessions along, and nothing stays.
sub starts { my @starts = $server->log =~ /database system is ready to accept connections/g; return scalar @starts }
my $starts = starts();
$service->arm('scan', 'kill', after => 12);
unlike(eval { service('unmatched') } // '', qr/^\d/, 'a worker that is killed');
my $deadline = time + 60;
sleep 0.05 while (starts() == $starts && time < $deadline);
ok($service->wait_ready(60), 'the server recovers, and the worker');
$session = $server->session;
is(service('unmatched'), $want{unmatched}, 'the next answer is right');
like($service->settle, $CLEAN, 'nothing is left over');
$session->close;
$service->stop;
unlike($server->log, qr/PANIC|TRAP/, 'a clean log');

done_testing();
