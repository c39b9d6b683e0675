# GpuHash::Nodes: several servers that do a query together, as GpuHash::Server makes them, each by default, without
# gpuhash, and forced.
#
#	use GpuHash::Nodes qw(skip_without nodes set_mode in_modes);
#	skip_without('citus');			the whole test is skipped, with the reason, where the server has no such library
#	my @nodes = nodes(3, $conf...);	so many of them, all with these lines of configuration
#	set_mode($mode, @nodes);		'off', 'default' or 'forced', for sessions that begin from then on
#	in_modes($sql, @nodes);			(off => output, default => output, forced => output) of a session on the first
package GpuHash::Nodes;

use strict;
use warnings;
use Exporter 'import';
use Test::More ();
use GpuHash::Server;

our @EXPORT_OK = qw(skip_without nodes set_mode in_modes @modes);
our @modes = qw(off default forced);

my %settings = (
	off => ['gpuhash.enabled = off'],
	default => [],
	forced => ['gpuhash.force_offload = on']);

sub skip_without
{
	my ($library) = @_;
	my $libdir = GpuHash::Server::libdir();
	Test::More::plan(skip_all => "no $library.so in $libdir") unless -e "$libdir/$library.so";
	return;
}

sub nodes { my ($count, @conf) = @_; return map { GpuHash::Server->new(conf => \@conf) } 1 .. $count }

sub set_mode
{
	my ($mode, @nodes) = @_;
	# each node has its own: Citus would hand it on
	my $sql = join '', 'SET citus.enable_ddl_propagation = off;', map { "ALTER DATABASE postgres $_;" }
		'RESET gpuhash.enabled', 'RESET gpuhash.force_offload', map { "SET $_" } @{ $settings{$mode} };
	$_->query($sql) for @nodes;
	return;
}

sub in_modes
{
	my ($sql, @nodes) = @_;
	my %output;
	for my $mode (@modes)
	{
		set_mode($mode, @nodes);
		$output{$mode} = $nodes[0]->query($sql);
	}
	set_mode('default', @nodes);
	return %output;
}

1;
