# Every fault point crossed with the SQL functions on shared hash tables.  A table with a
# host copy loses nothing and answers as if nothing had happened.  One without may end a
# call with an error; then it has a part of what was wanted, or it is lost and says so
# until it is cleared.
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Service;

# ms until a request counts as hanging: so long that a stall of the machine is no hang of the device.
my $TIMEOUT = 1000;

my $service = GpuHash::Service->new;
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
my $started = $server->query('SELECT pg_postmaster_start_time()');
$server->query(<<'SQL');
CREATE TABLE arr AS SELECT
	(SELECT array_agg(k) FROM generate_series(1::bigint, 3000) k) AS base_k,
	(SELECT array_agg(k * 3) FROM generate_series(1::bigint, 3000) k) AS base_v,
	(SELECT array_agg(k) FROM generate_series(2001::bigint, 5000) k) AS new_k,
	(SELECT array_agg(k * 5) FROM generate_series(2001::bigint, 5000) k) AS new_v,
	(SELECT array_agg(k) FROM generate_series(1001::bigint, 2500) k) AS gone_k,
	(SELECT array_agg(k) FROM generate_series(1::bigint, 6000) k) AS all_k;
-- values that neither were there nor were wanted
CREATE FUNCTION strange(what text) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FROM (SELECT unnest(all_k) AS k, unnest(gpuhash_find('t', all_k)) AS v FROM arr) s
	WHERE v IS DISTINCT FROM CASE WHEN k <= 3000 THEN k * 3 END
		AND NOT (what IN ('insert', 'load', 'apply') AND k BETWEEN 2001 AND 5000 AND v = k * 5)
		AND NOT (what IN ('delete', 'clear', 'create') AND v IS NULL)
$$;
SQL

# 't' has one value to a key, 'm' many.
my %OP = (
	create => q{SELECT gpuhash_create('new', host_copy => COPY)},
	insert => q{SELECT gpuhash_insert('t', new_k, new_v) FROM arr},
	add => q{SELECT gpuhash_insert('m', new_k, new_v) FROM arr},
	load => q{SELECT gpuhash_load('t', 'SELECT k, k * 5 FROM generate_series(2001::bigint, 5000) k')},
	find => q{SELECT md5(gpuhash_find('t', all_k)::text) FROM arr},
	'find few' => q{SELECT gpuhash_find('t', ARRAY[5, 7000, 6])},
	find_all => q{SELECT count(*), sum(key * 7 + value) FROM gpuhash_find_all('m', (SELECT all_k FROM arr))},
	delete => q{SELECT gpuhash_delete('t', gone_k) FROM arr},
	count => q{SELECT md5(gpuhash_count('t', all_k)::text) FROM arr},
	# the keys of 'm' have one value each: whichever goes is the same
	'delete one' => q{SELECT gpuhash_delete_one('m', gone_k) FROM arr},
	apply => q{SELECT md5(a::text) FROM arr, gpuhash_apply('t', array_fill('u'::"char", ARRAY[3000]), new_k, new_v) a},
	reserve => q{SELECT gpuhash_reserve('t', 20000)},
	compact => q{SELECT gpuhash_compact('t')},
	clear => q{SELECT gpuhash_clear('t')},
	table_stats => q{SELECT keys, entries FROM gpuhash_table_stats('t')},
	drop => q{SELECT gpuhash_drop('t'), gpuhash_drop('m')});
my %CHANGES_M = (add => 1, find_all => 1, 'delete one' => 1);
my $CONTENT_T = q{SELECT md5(gpuhash_find('t', all_k)::text) FROM arr};
my $CONTENT_M = q{SELECT count(*), sum(key * 7 + value) FROM gpuhash_find_all('m', (SELECT all_k FROM arr))};

my $session = $server->session;
$session->do('SET client_min_messages = error');
my @points = grep { !/^(?:any|open|register|build|exchange|pool|scan.*)$/ } split /,/, $service->ask("SELECT gpuhash_fault_list('points')");
my (%tried, %survived, %errors);

sub ask
{
	my ($out, $err) = $session->do($_[0]);
	return $out . $err;
}

# Both tables as every try finds them; whether they are on the device.
sub make_tables
{
	my ($copy) = @_;
	ask('SELECT gpuhash_drop(name) FROM gpuhash_tables');
	ask("SELECT gpuhash_create('t', capacity => 8000, host_copy => $copy), gpuhash_create('m', multi => true, capacity => 8000, host_copy => $copy)");
	ask(q{SELECT gpuhash_insert('t', base_k, base_v), gpuhash_insert('m', base_k, base_v) FROM arr});
	for (1 .. 1000)
	{
		return 1 if $service->leftovers =~ /^buffers 0, slots 0, tables 2,/;
		sleep 0.002;
	}
	return 0;
}

sub sql_of { my ($op, $copy) = @_; return $OP{$op} =~ s{COPY}{$copy}r }
sub content { my ($op) = @_; return ask($CHANGES_M{$op} ? $CONTENT_M : $CONTENT_T) }

# What the host alone answers, and has afterwards.
my (%want, %want_content);
$session->do("SET gpuhash.engine = 'cpu'");
for my $op (sort keys %OP)
{
	ask('SELECT gpuhash_drop(name) FROM gpuhash_tables');
	ask("SELECT gpuhash_create('t'), gpuhash_create('m', multi => true)");
	ask(q{SELECT gpuhash_insert('t', base_k, base_v), gpuhash_insert('m', base_k, base_v) FROM arr});
	$want{$op} = ask(sql_of($op, 'true'));
	$want_content{$op} = content($op);
}
$session->do('RESET gpuhash.engine');
my $base_content = $want_content{find};

sub worker { return (values %{ { $service->workers } })[0] // 0 }

# Whether there is another worker than that one, after a while.
sub new_worker
{
	my ($old) = @_;
	for (1 .. 500) { last if worker() && worker() != $old; sleep 0.02 }
	return worker() != $old && $service->wait_ready(10);
}

# What is wrong after an answer, or undef; $worker is the one of before.
sub judge
{
	my ($op, $copy, $kind, $answer, $worker) = @_;
	my $content = content($op);
	return undef if $answer eq $want{$op} && $content eq $want_content{$op};
	# with engine = cuda, what the device declines is not made elsewhere
	if ($op eq 'create' && $kind ne 'delay' && $answer =~ /ERROR:  (?:55000|53200|53400): .*\n.*HINT:/s && $content eq $base_content)
	{
		$errors{$op}++;
		return ask(q{SELECT count(*) FROM gpuhash_tables WHERE name = 'new'}) eq '0' ? undef : "$answer, but it is there";
	}
	return "$answer, then $content" if $copy eq 'true' || $kind eq 'delay';
	# a call may end with an error, and a table that cannot be relied on says so
	return "$answer, then $content" unless $answer eq $want{$op} || $answer =~ /ERROR:  (?:55000|53200|53400): .*\n.*HINT:/s;
	$errors{$op}++;
	new_worker($worker) if $kind =~ /sticky|term|hang/;
	if ($content =~ /ERROR:  55000: .*\n.*HINT:.*clear/s)
	{
		ask(q{SELECT gpuhash_clear('t'), gpuhash_clear('m')});
		ask(q{SELECT gpuhash_insert('t', base_k, base_v), gpuhash_insert('m', base_k, base_v) FROM arr});
		my $again = ask($CONTENT_T);
		return $again eq $base_content ? undef : "cleared and loaded again: $again";
	}
	return undef if $CHANGES_M{$op} && $content !~ /ERROR/;
	# of some keys of a call that ended early, nothing else
	my $strange = ask("SELECT strange('$op')");
	return undef if $strange eq '0' || ($op eq 'drop' && $content =~ /ERROR:  42704/);
	return "$answer, then $content, $strange strange values";
}

sub try_fault
{
	my ($op, $copy, $point, $kind, $after, $bad) = @_;
	my $what = "$op, host_copy $copy, $kind at $point after $after";
	if (!make_tables($copy)) { push @$bad, "$what: the tables are not on the device: " . $service->leftovers; return 0 }
	my $worker = worker();
	$service->arm($point, $kind, after => $after, ms => 2);
	my $answer = ask(sql_of($op, $copy));
	# where tables are freed, the worker does so soon
	if ($point =~ /destroy|reply|any/)
	{
		my $deadline = time + 5;
		do { sleep 0.01 } until $service->fired || time > $deadline;
	}
	my $fired = $service->disarm;
	return 0 unless $fired;
	$tried{$kind}++;
	my $wrong = judge($op, $copy, $kind, $answer, $worker);
	defined $wrong ? push(@$bad, "$what: $wrong") : $survived{$kind}++;
	return 1;
}

# How often a function passes each point.
my %passages;
for my $copy ('true', 'false')
{
	for my $op (sort keys %OP)
	{
		ok(make_tables($copy), "tables for $op are on the device");
		for my $point (@points)
		{
			make_tables($copy);
			$service->arm($point, 'delay', times => 1_000_000);
			my $answer = ask(sql_of($op, $copy));
			sleep 0.01;
			my $fired = $service->disarm;
			$passages{$op}{$copy}{$point} = $fired if $fired;
			is($answer, $want{$op}, "$op, host_copy $copy, passing $point") if $answer ne $want{$op};
		}
		note("$op, host_copy $copy: " . join ', ', map { "$_ $passages{$op}{$copy}{$_}" } sort keys %{ $passages{$op}{$copy} });
	}
}
ok($passages{$_->[0]}{$_->[1]}{$_->[2]}, "$_->[0] with host_copy $_->[1] passes $_->[2]")
	for [qw(create true create)], [qw(insert true upsert)], [qw(insert false upsert)], [qw(add false add)], [qw(find true find)],
		['find few', 'false', 'find'], [qw(find_all false find_all)], [qw(delete true delete)], [qw(clear false clear)], [qw(drop true destroy)],
		[qw(count true count)], [qw(count false count)], ['delete one', 'true', 'delete_one'], [qw(apply true mixed)], [qw(apply false mixed)],
		[qw(reserve true reserve)], [qw(reserve false reserve)], [qw(compact true flush)], [qw(compact false flush)];

# ------------------------------------ faults that the worker survives: all of them
for my $copy ('true', 'false')
{
	for my $op (sort keys %OP)
	{
		my @bad;
		my $passes = $passages{$op}{$copy};
		for my $point (sort keys %$passes)
		{
			my %after = map { $_ => 1 } grep { $_ < $passes->{$point} } 0, 2;
			for my $kind (qw(no_memory limit launch delay))
			{
				try_fault($op, $copy, $point, $kind, $_, \@bad) for sort { $a <=> $b } keys %after;
			}
		}
		is(join("\n", @bad), '', "$op, host_copy $copy, with every fault that the worker survives");
	}
}

# --------------------------------------- faults that end the worker: each point once
$server->query("ALTER SYSTEM SET gpuhash.device_timeout = '${TIMEOUT}ms'; SELECT pg_reload_conf()");
my @turns = map { my $op = $_; map { [$op, $_] } 'true', 'false' } sort keys %OP;
for my $kind (qw(sticky term hang))
{
	my @bad;
	for my $point (@points)
	{
		my ($turn) = grep { $passages{ $turns[$_][0] }{ $turns[$_][1] }{$point} } 0 .. $#turns;
		next unless defined $turn;
		push @turns, my $next = splice @turns, $turn, 1;
		my ($op, $copy) = @$next;
		my $worker = worker();
		try_fault($op, $copy, $point, $kind, 0, \@bad) or push @bad, "$op, host_copy $copy, $kind at $point never happened";
		if (!new_worker($worker)) { push @bad, "$kind at $point: no new worker came"; next }
		$session->do("SET gpuhash.fallback = 'error'");
		make_tables($copy) or push @bad, "$kind at $point: the new worker is not used: " . $service->leftovers;
		my $got = ask(sql_of($op, $copy));
		push @bad, "$kind at $point: $op on the new worker: $got" if $got ne $want{$op};
		$session->do('RESET gpuhash.fallback');
	}
	is(join("\n", @bad), '', "every point with $kind: tables with a host copy lose nothing, the worker comes back and is used");
}

is($server->query('SELECT pg_postmaster_start_time()'), $started, 'the server was never restarted');
ask('SELECT gpuhash_drop(name) FROM gpuhash_tables');
like($service->settle, $GpuHash::Service::CLEAN, 'nothing is left over');
$session->close;
$service->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');

my ($tries, $passed) = (0, 0);
for my $kind (sort keys %tried)
{
	note(sprintf '%-10s %4d tried, %4d survived', $kind, $tried{$kind}, $survived{$kind} // 0);
	$tries += $tried{$kind};
	$passed += $survived{$kind} // 0;
}
note("$tries faults tried, $passed survived; calls on tables without host copy that ended with an error: " . join ', ', map { "$_ $errors{$_}" } sort keys %errors);
is($passed, $tries, 'every fault was survived');
cmp_ok($tries, '>=', 200, 'enough of them');

done_testing();
