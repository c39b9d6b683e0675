# GpuHash::FaultRun: queries of a node whose device fails, at every request in turn and at every fault
# point of the service, give PostgreSQL's answer; nothing stays pinned or taken; and the device is used again.
#
#	my $run = GpuHash::FaultRun->new(node => 'GpuHashAggregate', tables => $sql, vacuumed => ['t'],
#		queries => { name => [$query, $settings], ... }, in_order => 1)	in_order: rows of serial queries, too
#	$run->begin($server, fault => ..., service => ...)	one of the two; makes the tables, asks PostgreSQL
#	$run->{session}						in which all queries run; {server}, {service}, {want}
#	$run->set($name)					the query's settings
#	$run->answer($name)					its rows, sorted, or the error
#	$run->fail_all_requests($name)		how many failed, without the service
#	$run->fail_all_points($name)		how many faults were tried, at points of the service
#	$run->end_worker($name, $point, $kind, $after), kill_worker($name)
#	$run->interrupt($name, $point, $how)
#	$run->left_early($name, $how, @statements)	a cursor that has some rows when the statements end it
#	$run->fallback_is_error($name, @points)
package GpuHash::FaultRun;

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(sleep);
use GpuHash::Service;
use GpuHash::Test ();

# A scan on a device starts for nothing: rescans, too, go there.  Pages come anew for each query, so that every one has many
# requests (those that stay have a test of their own, 037).
our @CONF = ('gpuhash.enable_resident = off', 'gpuhash.device_start_cost = 0', 'gpuhash.device_page_cost = 0.02', 'gpuhash.device_bus_cost = 0.005', 'seq_page_cost = 0.05',
	"gpuhash.engine = 'cuda'", 'gpuhash.force_offload = on', 'jit = off', 'autovacuum = off', 'max_parallel_workers_per_gather = 0',
	'max_worker_processes = 20', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'max_connections = 30',
	'shared_buffers = 256MB', 'enable_material = off');

# Pages of few rows, so that there are many requests.
our $TABLES = <<'SQL';
CREATE TABLE t (id int, g int, k int, i8 int8, n numeric(30, 5), x text) WITH (fillfactor = 10);
INSERT INTO t SELECT i, CASE WHEN i % 13 > 0 THEN i % 7 END, i * 7919 % 1500 - 300, i * i * 1000003::int8 * (i % 3 - 1), CASE i % 90 WHEN 0 THEN 'NaN' WHEN 1 THEN 9999999999999999999999999.99999 ELSE i / 7.0 END,
	CASE WHEN i % 1000 = 7 THEN repeat('long ' || i % 3, 2000) ELSE 'x' || i % 50 END FROM generate_series(1, 9000) i;
CREATE TABLE one (k int, p int, t text) WITH (fillfactor = 20);
INSERT INTO one SELECT i, CASE WHEN i % 6 > 0 THEN i * 3 END, 'name ' || i % 20 FROM generate_series(1, 9000) i;
CREATE TABLE two (k int8, p int);
INSERT INTO two SELECT i, i FROM generate_series(-300, 300) i;
ANALYZE t, one, two;
SQL

sub new
{
	my ($class, %options) = @_;
	return bless { tables => $TABLES, vacuumed => [qw(t one)], %options }, $class;
}

sub begin
{
	my ($self, $server, %options) = @_;
	$self->{server} = $server;
	$self->{$_} = $options{$_} for qw(fault service);
	$server->query($self->{tables});
	$self->{session} = $server->session;
	$self->ask($_) for sort keys %{ $self->{queries} };
	return;
}

sub end
{
	my ($self) = @_;
	unlike($self->{server}->log, qr/PANIC|TRAP|leak/, 'a clean log');
	$self->{session}->close;
	delete @$self{qw(session server fault service)};
	return;
}

# PostgreSQL's own answer.
sub ask
{
	my ($self, $name) = @_;
	$self->set($name);
	$self->{session}->do('SET gpuhash.enabled = off');
	$self->{want}{$name} = $self->answer($name);
	return;
}

sub set
{
	my ($self, $name) = @_;
	$self->{session}->do('RESET ALL; SET client_min_messages = warning; ' . ($self->{queries}{$name}[1] // 'SELECT'));
	return;
}

sub answer_of
{
	my ($self, $name, $out, $err) = @_;
	return ($self->{in_order} && $name !~ /parallel/ ? $out : join("\n", sort split /\n/, $out)) . $err;
}

sub answer { my ($self, $name) = @_; return $self->answer_of($name, $self->{session}->do($self->{queries}{$name}[0])) }

sub plan_of { my ($self, $name) = @_; return ($self->{session}->do("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $self->{queries}{$name}[0]"))[0] }

sub by_device
{
	my ($self, $name) = @_;
	my $plan = $self->plan_of($name);
	return $plan =~ /$self->{node}.*?Engine: cuda/s && $plan !~ /Fallback Reason/;
}

sub is_right { my ($self, $name, $what) = @_; return is($self->answer($name), $self->{want}{$name}, $what) }

# Actual rows of the nodes below, which a serial query counts the same however it was done.
sub rows_below
{
	my ($plan) = @_;
	my @nodes;
	for (split /\n/, $plan)
	{
		push @nodes, "$1 " . ($2 // 0) if /-> +(\S.*?) \((?:actual rows=(\S+) loops=\d+|never executed)\)/;
		$nodes[-1] .= " without $1" if /Rows Removed by Filter: (\d+)/ && @nodes;
	}
	return join "\n", @nodes;
}

# --------------------------------------------------------- without the service

# Every request of a query in turn is the last one that succeeds.
sub fail_all_requests
{
	my ($self, $name) = @_;
	my ($tried, @bad, @unnoticed) = (0);
	my $fault = $self->{fault};
	$self->set($name);
	my $rows = rows_below($self->plan_of($name));
	for (my $n = 0; $n < 1000; $n++)
	{
		$fault->fail_after($n);
		my $got = $self->answer($name);
		my $failed = $fault->has_failed;
		$fault->repair;
		last unless $failed;
		$tried++;
		push @bad, "after $n: $got" if $got ne $self->{want}{$name};
		next if $n % 3;
		$fault->fail_after($n);
		my $plan = $self->plan_of($name);
		$fault->repair;
		push @bad, "after $n, not:\n$rows\nbut\n" . rows_below($plan) if rows_below($plan) ne $rows && $name !~ /parallel|limit/;
		push @{ $plan =~ /Fallback Reason: (?:the test lets the device fail|no buffer for)/ ? [] : \@unnoticed }, "after $n: $plan";
	}
	# rows that come out as they are read may all be there when the last request fails, which ends the scan
	pop @unnoticed if $self->{in_order} && @unnoticed && $unnoticed[-1] =~ /^after @{[$tried - 1]}:/;
	push @bad, @unnoticed;
	is(join("\n", @bad), '', "$name with every request failing in turn");
	return $tried;
}

# ---------------------------------------------------------------- the service

# A fault at a point; what is wrong goes to @$bad.
sub try_fault
{
	my ($self, $name, $point, $kind, $after, $bad) = @_;
	my $service = $self->{service};
	$service->arm($point, $kind, after => $after, ms => 3);
	my $got = $self->answer($name);
	my $left = $service->settle;
	my $fired = $service->disarm;
	return 0 unless $fired;
	push @$bad, "$kind at $point after $after: $got" if $got ne $self->{want}{$name};
	push @$bad, "$kind at $point after $after: $left" if $left !~ $GpuHash::Service::CLEAN;
	return 1;
}

sub fail_all_points
{
	my ($self, $name) = @_;
	my ($tried, @bad, %passages) = (0);
	my @points = qw(create scan_create scan scan_results scan_table scan_stats scan_answer allocation destroy reply);
	my $service = $self->{service};
	$self->set($name);
	for my $point (@points)
	{
		$service->arm($point, 'delay', times => 1_000_000);
		push @bad, "no answer at $point" if $self->answer($name) ne $self->{want}{$name};
		$service->settle;
		$passages{$point} = $service->disarm;
	}
	note("$name passes " . join ', ', map { "$_ $passages{$_} times" } @points);
	for my $point (grep { $passages{$_} } @points)
	{
		my %after = map { $_ => 1 } grep { $_ >= 0 && $_ < $passages{$point} } 0, 1, int($passages{$point} / 2), $passages{$point} - 1;
		for my $kind (qw(no_memory limit launch delay))
		{
			$tried += $self->try_fault($name, $point, $kind, $_, \@bad) for sort { $a <=> $b } keys %after;
		}
	}
	is(join("\n", @bad), '', "$name with every fault that the worker survives");
	ok($self->by_device($name), "$name is done by the device again");
	return $tried;
}

# Faults that end the worker, which comes back.
sub end_worker
{
	my ($self, $name, $point, $kind, $after) = @_;
	my ($service, $session) = @$self{qw(service session)};
	$self->set($name);
	$session->do('BEGIN');
	$service->arm($point, $kind, after => $after, ms => 3);
	$session->do("DECLARE c NO SCROLL CURSOR FOR $self->{queries}{$name}[0]");
	is($self->answer_of($name, $session->do('FETCH ALL FROM c')), $self->{want}{$name}, "$name: $kind at $point after $after");
	cmp_ok($service->disarm, '>', 0, 'it happened');
	$self->is_unpinned('with the cursor open');
	$session->do('COMMIT');
	ok($service->wait_ready && $service->wait_direct, 'the worker is back, and reads shared buffers');
	like($service->settle, $GpuHash::Service::CLEAN, 'and nothing is taken');
	return;
}

# The server recovers from this one, and sessions are lost.
sub kill_worker
{
	my ($self, $name) = @_;
	my $service = $self->{service};
	my $victim = $self->{server}->session;
	$service->arm('scan', 'kill', after => 4);
	my ($out, $err) = eval { $victim->do($self->{queries}{$name}[0]) };
	ok(!defined $out || $out eq '' || $err ne '', 'a worker that is killed costs all sessions');
	eval { $self->{session}->close };
	eval { $victim->close };
	sleep 1;
	for (1 .. 100) { last if eval { $self->{session} = $self->{server}->session; 1 }; sleep 0.2 }
	ok($service->wait_ready(60) && $service->wait_direct, 'the worker is back after the crash, and reads shared buffers');
	$self->is_right($name, 'and the answers are right');
	ok($self->by_device($name), 'by the device');
	return;
}

# A cursor that has some rows: whatever ends it, all is given back.
sub left_early
{
	my ($self, $name, $how, @statements) = @_;
	my ($service, $session) = @$self{qw(service session)};
	$self->set($name);
	$session->do('BEGIN; SAVEPOINT s');
	my ($out, $err) = $session->do("DECLARE c NO SCROLL CURSOR FOR $self->{queries}{$name}[0]; FETCH 3 FROM c");
	is(scalar(() = $out =~ /^/mg), 3, "$name: a cursor has rows") or diag($err);
	$session->do($_) for @statements;
	like($service->settle, $GpuHash::Service::CLEAN, "all is given back: $how");
	$self->is_unpinned("after $how");
	$session->do('ROLLBACK');
	$self->set($name);
	$self->is_right($name, 'the next answer is right');
	return;
}

# With gpuhash.fallback = error.
sub fallback_is_error
{
	my ($self, $name, @points) = @_;
	my $service = $self->{service};
	$self->set($name);
	$self->{session}->do('SET gpuhash.fallback = error');
	for my $point (@points)
	{
		$service->arm($point, 'launch');
		like($self->answer($name), qr/ERROR:  \w+: could not \w+ .*on the GPU/, "fallback = error, $point");
		cmp_ok($service->disarm, '>', 0, 'it happened');
		like($service->settle, $GpuHash::Service::CLEAN, 'and nothing is taken');
	}
	return;
}

sub is_unpinned
{
	my ($self, $name) = @_;
	my $other = $self->{server}->session;
	my (undef, $err) = $other->do("SET statement_timeout = '15s'; " . join('; ', map { "VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) $_" } @{ $self->{vacuumed} }));
	is($err, '', "no page is pinned $name");
	$other->close;
	return;
}

# A query that is interrupted while it waits for the device, which goes on afterwards: what it says, how long it took.
sub interrupt
{
	my ($self, $name, $point, $how) = @_;
	my ($service, $session) = @$self{qw(service session)};
	$self->set($name);
	my ($pid) = $session->do('SELECT pg_backend_pid()');
	my $key = $how eq 'pg_terminate_backend' ? qr/57P01|server closed|psql ended/ : qr/ERROR:  57014/;
	$session->do("BEGIN; SAVEPOINT s" . ($how eq 'timeout' ? "; SET statement_timeout = '300ms'" : ''));
	$service->arm($point, 'hold', after => $point eq 'scan' ? 1 : 0);
	my $watch = GpuHash::Test::stopwatch();
	$session->send($self->{queries}{$name}[0]);
	sleep 0.3;
	$service->ask("SELECT $how($pid)") if $how ne 'timeout';
	my ($out, $err) = eval { $session->receive };
	$err = $@ if !defined $err;
	my $took = $watch->();
	like($err, $key, "$name: $how while the device is held at $point");
	cmp_ok($took, '<', 2.2, 'at once');
	$self->is_unpinned('in the transaction that goes on') if $how ne 'pg_terminate_backend';
	$session = $self->{session} = $self->{server}->session if $how eq 'pg_terminate_backend';
	$session->do('ROLLBACK') if $how ne 'pg_terminate_backend';
	cmp_ok($service->disarm, '>', 0, 'it was held');
	like($service->settle, $GpuHash::Service::CLEAN, 'and all is given back');
	$self->set($name);
	$self->is_right($name, 'and the next answer is right');
	return;
}

# An interrupt that asks for nothing of the query, while it waits for the device: the device goes on.
sub disturb
{
	my ($self, $name, $point) = @_;
	my ($service, $session) = @$self{qw(service session)};
	$self->set($name);
	$session->do('SET gpuhash.fallback = error');
	my ($pid) = $session->do('SELECT pg_backend_pid()');
	$service->arm($point, 'hold');
	$session->send($self->{queries}{$name}[0]);
	sleep 0.3;
	$service->ask("SELECT pg_log_backend_memory_contexts($pid)");
	sleep 0.3;
	cmp_ok($service->disarm, '>', 0, 'the device was held');
	is($self->answer_of($name, $session->receive), $self->{want}{$name}, "$name: disturbed while the device is held at $point");
	like($service->settle, $GpuHash::Service::CLEAN, 'and all is given back');
	$self->set($name);
	return;
}

1;
