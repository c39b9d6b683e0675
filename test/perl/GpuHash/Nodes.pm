# GpuHash::Nodes: several servers that do a query together, as GpuHash::Server makes them, each by default, without
# gpuhash, and forced.
#
#	use GpuHash::Nodes qw(skip_without nodes set_mode in_modes);
#	skip_without('citus');			the whole test is skipped, with the reason, where the server has no such library
#	my @nodes = nodes(3, $conf...);	so many of them, all with these lines of configuration
#	set_mode($mode, @nodes);		'off', 'default' or 'forced', for sessions that begin from then on
#	in_modes($sql, @nodes);			(off => output, default => output, forced => output) of a session on the first
#	check_example($server, $page, $test, %here);	runs the page's SQL that another test does not, for the reason that
#									this one does, and compares what psql prints; what %here has stands for is put in its place
package GpuHash::Nodes;

use strict;
use warnings;
use Exporter 'import';
use FindBin;
use Test::More ();
use GpuHash::Pages qw(contents parse masked);
use GpuHash::Server;

our @EXPORT_OK = qw(skip_without nodes set_mode in_modes check_example @modes);
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

# Names of servers and shards are of each run.
sub masked_names { my ($text) = @_; return masked($text =~ s/host=\S+/host=#/gr =~ s/_\d{6}\b/_#/gr) }

sub check_example
{
	my ($server, $page, $test, %here) = @_;
	my @blocks = @{ parse(contents("$FindBin::Bin/../../$page"))->{blocks} };
	my ($i) = grep { $blocks[$_]{language} eq 'sql' && ($blocks[$_]{not_run} // '') =~ /\Q$test\E/ } 0 .. $#blocks;
	my $sql = $blocks[$i]{text};
	$sql =~ s/'\Q$_\E'/'$here{$_}'/g for keys %here;
	my $printed = $server->query("\\pset format aligned\n\\pset tuples_only off\nSET client_min_messages = warning;\n$sql");
	Test::More::is(masked_names("$printed\n"), masked_names($blocks[$i + 1]{text}), "$page: the example prints what is shown") or Test::More::diag($printed);
	return;
}

1;
