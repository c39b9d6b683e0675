# GpuHash::Index: what the tests of the access method gpuhash share.
#
#	my $sums = sums($session, 'index', 't', @columns);	for each column a line with the rows' number and a digest of its values in
#												their order, by an index on it; 'scan': by a Seq Scan and a sort
#	broken($server, $standby)					what amcheck finds in the indexes of a database, on both servers, or ''; undef
#												where there is no amcheck.  Nobody may write meanwhile
#	catch_up($server, $standby)					all that the primary has written is replayed
#	well($session, $sql)						its output; a test fails if there is an error
#	my @pids = write_until($server, $end, $seed, \%work)	a process for each number in %work that does its statements until that time: its sub
#												makes one, after it has slept as long as it likes
#												a fifth argument: errors that may come
#	my @pids = fork_until($server, $end, $seed, $do, @numbers)	a process for each number that does
#												$do->($session, $number) until that time
#	note_error($server, $error); errors($server)	an error of such a process; all there were
#	end_writers($server, @pids)					before that time
#	my @result = find_wrong($server, $point, $compare)	what $compare->() returns with that point left out, whose last element is how many
#												answers were wrong; three times, with other writers, until one is
#	needs($server, $compare, @points)			with each of these points left out $compare->($SECONDS_TO_FIND, $point) finds a wrong
#												answer; it returns answers, how many were by copies of s_k, and how many were wrong
package GpuHash::Index;

use strict;
use warnings;
use Exporter 'import';
use GpuHash::Server;
use POSIX ();
use Test::More ();
use Time::HiRes qw(time sleep);

our @EXPORT = qw(sums broken catch_up well write_until fork_until note_error errors end_writers find_wrong
	needs $SECONDS_TO_FIND);

our $SECONDS_TO_FIND = 40;

sub well
{
	my ($session, $sql) = @_;
	my ($out, $error) = $session->do($sql, 120);
	Test::More::is($error, '', "no error: $sql") if $error ne '';
	return $out;
}

# Processes that do so until that time, each with a session and random numbers of its own.
sub fork_until
{
	my ($server, $end, $seed, $do, @numbers) = @_;
	my @pids;
	unlink "$server->{dir}/stop";
	for my $number (sort { $a <=> $b } @numbers)
	{
		my $pid = fork // die "fork: $!";
		push(@pids, $pid), next if $pid != 0;
		srand($seed + $number);
		eval {
			my $session = $server->session;
			$do->($session, $number) while time < $end && !-e "$server->{dir}/stop";
			1;
		} or note_error($server, "process $number: $@");
		POSIX::_exit(0);
	}
	return @pids;
}

# Of such a process, for errors().
sub note_error
{
	my ($server, $error) = @_;
	print STDERR "# $error\n";
	open my $file, '>>', "$server->{dir}/errors" or die $!;
	print $file "$error\n";
	close $file;
	return;
}

sub errors
{
	my ($server) = @_;
	return GpuHash::Server::read_file("$server->{dir}/errors");
}

sub write_until
{
	my ($server, $end, $seed, $work, $expected) = @_;
	# of two that wait for each other, and of keys that are there; and of what follows in the transaction
	$expected ||= qr/40P01|deadlock|23505|25P02|3B001/;
	my $write = sub {
		my ($session, $number) = @_;
		$session->do('SET gpuhash.enabled = off; SET enable_seqscan = off') unless $session->{writes}++;
		my $sql = $work->{$number}->();
		for my $error (split /\n(?=\S*ERROR:)/, ($session->do($sql, 120))[1])
		{
			note_error($server, "$error: $sql") if $error =~ /(?:ERROR|FATAL|PANIC):/ && $error !~ $expected;
		}
	};
	return fork_until($server, $end, $seed, $write, keys %$work);
}

sub end_writers
{
	my ($server, @pids) = @_;
	open my $file, '>', "$server->{dir}/stop" or die $!;
	close $file;
	waitpid $_, 0 for @pids;
	return;
}

sub find_wrong
{
	my ($server, $point, $compare) = @_;
	my @result;
	$server->query("SELECT gpuhash_fault_arm('$point', 'launch', 0, 1000000000, 0)");
	for (1 .. 3)
	{
		@result = $compare->();
		last if $result[-1] > 0;
		Test::More::diag("without $point, not found in: @result");
	}
	$server->query("SELECT gpuhash_fault_arm('any', 'none', 0, 0, 0)");
	return @result;
}

sub needs
{
	my ($server, $compare, @points) = @_;
	for my $point (@points)
	{
		# copies that were made without another one lack rows for good
		$server->query('REINDEX INDEX s_k');
		my ($rounds, $taken, $wrong) = find_wrong($server, $point, sub { $compare->($SECONDS_TO_FIND, $point) });
		Test::More::cmp_ok($wrong, '>', 0, "without $point: one of $rounds answers, $taken by copies, was wrong");
	}
	return;
}

sub sums
{
	my ($session, $way, $table, @columns) = @_;
	my %off = (index => 'enable_seqscan = off; SET enable_sort = off', scan => 'enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off');
	my ($out, $error) = $session->do("SET $off{$way}; " . join('; ', map { "SELECT '$_', count(*), md5(string_agg($_\::text, ',')) FROM (SELECT $_ FROM $table WHERE $_ IS NOT NULL ORDER BY $_) s" } @columns) .
		'; RESET enable_seqscan; RESET enable_sort; RESET enable_indexscan; RESET enable_indexonlyscan; RESET enable_bitmapscan', 120);
	return $error ne '' ? $error : $out;
}

sub catch_up
{
	my ($server, $standby) = @_;
	# what VACUUM writes nobody waits for
	my $lsn = $server->query('SET synchronous_commit = on; CREATE TABLE IF NOT EXISTS beat (n int); INSERT INTO beat VALUES (1); SELECT pg_current_wal_lsn()');
	for (1 .. 2400) { return 1 if $standby->query("SELECT pg_last_wal_replay_lsn() >= '$lsn'") eq 't'; sleep 0.05 }
	die "the standby does not catch up with $lsn: it is at " . $standby->query('SELECT pg_last_wal_replay_lsn()') . "; its log ends with:\n" . substr($standby->log, -2000);
}

# amcheck wants indexes of btree.  Those of gpuhash are just that but for the access method in the catalog, which says btree
# while it looks.
sub broken
{
	my ($server, $standby) = @_;
	return undef if $server->query("SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'") == 0;
	$server->query('SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS amcheck');
	my $names = $server->query("SELECT string_agg(quote_literal(c.oid), ',') FROM pg_class c JOIN pg_am a ON a.oid = relam JOIN pg_index ON indexrelid = c.oid WHERE amname = 'gpuhash' AND indisvalid AND relpersistence = 'p'");
	return '' if $names eq '';
	my $name_method = sub { $server->query("UPDATE pg_class SET relam = (SELECT oid FROM pg_am WHERE amname = '$_[0]') WHERE oid IN ($names)") };
	$name_method->('btree');
	my (undef, undef, $found) = $server->run("SELECT bt_index_parent_check(oid, true, true) FROM pg_class WHERE oid IN ($names)");
	if ($standby)
	{
		catch_up($server, $standby);
		my (undef, undef, $more) = $standby->run("SELECT bt_index_check(oid, true) FROM pg_class WHERE oid IN ($names)");
		$found .= $more;
	}
	$name_method->('gpuhash');
	return $found;
}

1;
