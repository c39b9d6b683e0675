# GpuHash::Test: how a TAP test begins.
#
#	use GpuHash::Test;				Test::More, GpuHash::Server, strict and warnings; where no server can
#									be started, the test is skipped here, with the reason
#	use GpuHash::Test 'module';		the same, skipped also where PostgreSQL has no build with
#									FAULT_POINTS=yes (test/check.sh finds it by this line)
#	my $seed = seed();				of a test with random parts: GPUHASH_SEED, else a new one; it is printed,
#									and Perl's rand() begins with it
#	my $watch = stopwatch();		$watch->() tells the seconds since, for what is to take effect at once: without
#									those for which the host of a virtual machine kept processors for itself
package GpuHash::Test;

use strict;
use warnings;
use Test::More ();
use Time::HiRes qw(time);
use POSIX ();
use GpuHash::Server;

sub import
{
	my ($class, $module) = @_;
	my $reason = GpuHash::Server::why_not($module);
	Test::More::plan(skip_all => $reason) if $reason;
	strict->import;
	warnings->import;
	Test::More->export_to_level(1);
	no strict 'refs';
	*{ caller() . '::seed' } = \&seed;
	*{ caller() . '::stopwatch' } = \&stopwatch;
	return;
}

sub seed
{
	my $seed = $ENV{GPUHASH_SEED} || 1 + int(rand(1 << 31));
	srand($seed);
	Test::More::note("seed $seed");
	return $seed;
}

# Seconds of all processors together; 0 where the system does not tell.
sub stolen
{
	open(my $stat, '<', '/proc/stat') or return 0;
	my (undef, @ticks) = split ' ', scalar <$stat>;
	return ($ticks[7] || 0) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

sub stopwatch
{
	my ($start, $stolen) = (time, stolen());
	return sub { my $seconds = time - $start - (stolen() - $stolen); return $seconds > 0 ? $seconds : 0 };
}

1;
