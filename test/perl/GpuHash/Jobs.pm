# GpuHash::Jobs: the same work in several processes at a time.
#
#	my @results = GpuHash::Jobs::run($jobs, sub { my ($job) = @_; ...; return \%result });
#
# One job is done by the caller itself.  A process that ends without a result gives undef.
package GpuHash::Jobs;

use strict;
use warnings;
use File::Temp ();
use POSIX ();
use Storable ();

sub run
{
	my ($jobs, $work) = @_;
	return $work->(0) if $jobs == 1;
	my $dir = File::Temp->newdir('gpuhashXXXXXX', DIR => $ENV{TMPDIR} || '/tmp');
	my @pids;
	for my $job (0 .. $jobs - 1)
	{
		my $pid = fork // die "fork: $!";
		if ($pid == 0)
		{
			# the server is the parent's
			eval { Storable::store($work->($job), "$dir/$job"); 1 } or print STDERR $@;
			POSIX::_exit(0);
		}
		push @pids, $pid;
	}
	waitpid $_, 0 for @pids;
	return map { -f "$dir/$_" ? Storable::retrieve("$dir/$_") : undef } 0 .. $jobs - 1;
}

1;
