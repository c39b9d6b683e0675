# Who owns a buffer while the device works: a session that leaves gives nothing back
# that a kernel may still write to.  Then the smallest transfer area with many sessions,
# and a thousand cancels.
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Service;

my $CLEAN = $GpuHash::Service::CLEAN;
my %QUERY = %GpuHash::Service::QUERY;
my $DELAY = 400;

# ---------------------------------------- leaving while the kernel is on its way
# Six buffers: a join takes two, one is kept, and one or two are in quarantine.
{
	my $service = GpuHash::Service->new(tables => 1, conf => ["gpuhash.shared_memory = '3MB'"]);
	my $server = $service->server;
	ok($service->wait_ready, 'the worker finds its device');
	my %want = $service->answers;
	my $leaver = $server->session;
	my $other = $server->session;
	$_->do(GpuHash::Service::settings('inner')) for $leaver, $other;
	$other->do("SET gpuhash.fallback = 'error'");
	my ($pid) = $leaver->do('SELECT pg_backend_pid()');
	my %leave = (
		'a cancel' => sub {
			$leaver->send($QUERY{inner});
			sleep 0.1;
			$server->query("SELECT pg_cancel_backend($pid)");
			return $leaver->receive;
		},
		'statement_timeout' => sub {
			my @answer = $leaver->do("SET statement_timeout = 100; $QUERY{inner}");
			$leaver->do('RESET statement_timeout');
			return @answer;
		},
		'device_timeout' => sub {
			my @answer = $leaver->do("SET gpuhash.device_timeout = 100; " . GpuHash::Service::digest_sql($QUERY{inner}));
			$leaver->do('RESET gpuhash.device_timeout');
			return @answer;
		});
	my ($joins, $in_quarantine) = (0, 0);
	for my $point (qw(exchange find))
	{
		for my $after (0, 2)
		{
			for my $how (sort keys %leave)
			{
				my $what = "$how at $point after $after";
				$service->arm($point, 'delay', after => $after, ms => $DELAY);
				my $start = time;
				my ($out, $err) = $leave{$how}->();
				my $taken = $service->leftovers;
				if ($how eq 'device_timeout') { is("$out$err", $want{inner}, "$what: the CPU engine answers") }
				else { like($err, qr/57014/, "$what: the statement ends") }
				cmp_ok(time - $start, '<', 0.001 * $DELAY, "$what: before the device is through");
				like($taken, qr/^buffers [1-9]/, "$what: what it may still write to is not given back");
				my @wrong;
				my $during = 0;
				while (time - $start < 0.001 * $DELAY + 0.1)
				{
					for my $name (qw(inner left))
					{
						my $got = GpuHash::Service::digest($other, $QUERY{$name});
						push @wrong, "$name: $got" if $got ne $want{$name};
						$joins++;
						$during++ if time - $start < 0.001 * $DELAY;
					}
				}
				$in_quarantine += $during;
				is(join("\n", @wrong), '', "$what: another session's joins meanwhile");
				is($service->disarm, 1, "$what: the delay happened");
				like($service->settle, $CLEAN, "$what: all is given back in the end");
			}
		}
	}
	note("$joins joins of another session, $in_quarantine of them while buffers were in quarantine");
	cmp_ok($in_quarantine, '>=', 24, 'enough joins were done meanwhile');

	# the end of the process, too, leaves them to the worker
	$service->arm('find', 'delay', ms => 5 * $DELAY);
	$leaver->send($QUERY{inner});
	for (1 .. 200) { last if $service->fired > 0; sleep 0.05 }
	$server->query("SELECT pg_terminate_backend($pid)");
	eval { $leaver->receive };
	like($service->leftovers, qr/^buffers [1-9]/, 'a backend that ended: its buffer waits for the device');
	is(GpuHash::Service::digest($other, $QUERY{inner}), $want{inner}, 'another session is right');
	like($service->settle, $CLEAN, 'a backend that ended: all is given back');

	# a device that hangs: in quarantine until the worker is gone
	$server->query("ALTER SYSTEM SET gpuhash.device_timeout = '1s'; SELECT pg_reload_conf()");
	sleep 0.2;
	$service->arm('find', 'hang');
	$leaver = $server->session;
	$leaver->do(GpuHash::Service::settings('inner'));
	my ($out, $err) = $leaver->do("SET gpuhash.device_timeout = 100; " . GpuHash::Service::digest_sql($QUERY{inner}));
	is("$out$err", $want{inner}, 'a device that hangs: the CPU engine answers');
	my $deadline = time + 0.5;
	my $freed = 0;
	while (time < $deadline) { $freed++ unless $service->leftovers =~ /^buffers [1-9]/; sleep 0.02 }
	is($freed, 0, 'a device that hangs: the buffer stays in quarantine');
	like($service->settle, $CLEAN, 'until the worker is gone');
	ok($service->wait_ready, 'and a new one is there');
	is(GpuHash::Service::digest($other, $QUERY{inner}), $want{inner}, 'which is used');
	$_->close for $leaver, $other;
	$service->stop;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
}

# ---------------------------------------------- three buffers and 32 sessions
{
	my $service = GpuHash::Service->new(tables => 1, conf => ["gpuhash.shared_memory = '1536kB'"]);
	my $server = $service->server;
	ok($service->wait_ready, 'a transfer area of three buffers');
	my %want = $service->answers;
	my @sessions = map { $server->session } 1 .. 32;
	my @names = sort keys %QUERY;
	my $rounds = 4;
	my (@wrong, %asked);
	for my $n (0 .. $#sessions)
	{
		my @mine = map { $names[($n + $_) % @names] } 1 .. $rounds;
		$asked{$n} = \@mine;
		$sessions[$n]->send(join '; ', map { GpuHash::Service::settings($_) . '; ' . GpuHash::Service::digest_sql($QUERY{$_}) } @mine);
	}
	my $answers = 0;
	for my $n (0 .. $#sessions)
	{
		my ($out, $err) = $sessions[$n]->receive(120);
		my $want = join "\n", map { $want{$_} } @{ $asked{$n} };
		"$out$err" eq $want ? ($answers += $rounds) : push @wrong, "session $n: $out$err";
	}
	is(join("\n", @wrong), '', 'three buffers, 32 sessions: none fails, all are right');
	is($answers, 32 * $rounds, 'none hangs');
	my ($out) = $sessions[0]->do("EXPLAIN (ANALYZE, COSTS OFF) $QUERY{inner}");
	like($out, qr/Engine: cuda/, 'afterwards the device is used');
	$_->close for @sessions;
	like($service->settle, $CLEAN, 'nothing is left over');
	$service->stop;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
}

# -------------------------------------------- a session that waits for a buffer
{
	my $service = GpuHash::Service->new(conf => ["gpuhash.shared_memory = '1536kB'"]);
	my $server = $service->server;
	ok($service->wait_ready, 'for one that waits');
	my ($holder, $user, $waiter) = map { $server->session } 1 .. 3;
	$holder->do('SELECT gpuhash_forge_hold()');
	$user->do("SET gpuhash.engine = cuda; SELECT gpuhash_create('t', host_copy => false); SELECT gpuhash_insert('t', ARRAY[1, 2], ARRAY[10, 20])");
	my ($pid) = $waiter->do('SELECT pg_backend_pid()');
	$service->arm('find', 'delay', ms => 2000);
	$user->send("SELECT gpuhash_find('t', ARRAY[1])");
	sleep 0.2;
	$waiter->send("SELECT gpuhash_find('t', ARRAY[2])");
	sleep 0.2;
	like($service->leftovers, qr/, waiters 1,/, 'it waits');
	$server->query("SELECT pg_terminate_backend($pid)");
	eval { $waiter->receive };
	my ($out, $err) = $user->receive;
	is("$out$err", '{10}', 'the others go on');
	like($service->leftovers, qr/, waiters 0,/, 'and it is ended: nobody waits any more');
	$user->do("SELECT gpuhash_drop('t')");
	$_->close for $holder, $user;
	like($service->settle, $CLEAN, 'nothing is left over');
	$service->stop;
}

# ------------------------------------------------------------ a thousand cancels
{
	my $service = GpuHash::Service->new(tables => 1, conf => ["gpuhash.shared_memory = '6MB'"]);
	my $server = $service->server;
	ok($service->wait_ready, 'for cancels');
	my %want = $service->answers;
	note('assertions are ' . $server->query('SHOW debug_assertions'));
	my @names = sort grep { $_ ne 'partitions' } keys %QUERY;
	my @sessions = map { my $s = $server->session; my ($pid) = $s->do('SELECT pg_backend_pid()'); { session => $s, pid => $pid } } 1 .. 4;
	seed();
	# most of the time is the device's
	my $arm = sub { $service->arm('any', 'delay', times => 2_000_000_000, ms => 1) };
	$arm->();
	my ($wanted, $cancelled, $late, $over) = (1000, 0, 0, 0);
	my @wrong;
	my $deadline = time + 150;
	while ($cancelled < $wanted && time < $deadline)
	{
		for my $s (grep { !$_->{busy} } @sessions)
		{
			$s->{busy} = $names[rand @names];
			$s->{session}->send(GpuHash::Service::digest_sql($QUERY{ $s->{busy} }));
		}
		sleep rand 0.008;
		my $s = $sessions[rand @sessions];
		my $watch = stopwatch();
		$service->ask("SELECT pg_cancel_backend($s->{pid})");
		my ($out, $err) = $s->{session}->receive(30);
		$late++ if $watch->() > 1;
		if ($err =~ /57014/) { $cancelled++ }
		elsif ("$out$err" eq $want{ $s->{busy} }) { $over++ }
		else { push @wrong, "$s->{busy}: $out$err" }
		$s->{busy} = '';
		# now and then one that is left alone
		next if rand > 0.05;
		my $name = $names[rand @names];
		my $got = GpuHash::Service::digest($s->{session}, $QUERY{$name});
		push @wrong, "$name: $got" if $got ne $want{$name};
	}
	for my $s (grep { $_->{busy} } @sessions)
	{
		my ($out, $err) = $s->{session}->receive(60);
		push @wrong, "$s->{busy}: $out$err" if "$out$err" ne $want{ $s->{busy} };
	}
	$service->disarm;
	note("$cancelled cancelled while the device worked, $over were over before, $late took more than 1 s");
	is(join("\n", @wrong), '', 'every statement is right or cancelled');
	cmp_ok($cancelled, '>=', $wanted, "$wanted cancels");
	is($late, 0, 'each took effect at once');
	like($service->settle, $CLEAN, 'nothing is left over');
	$sessions[0]{session}->do("SET gpuhash.fallback = 'error'");
	is(GpuHash::Service::digest($sessions[0]{session}, $QUERY{inner}), $want{inner}, 'the device is used on');
	$_->{session}->close for @sessions;
	$service->stop;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
}

done_testing();
