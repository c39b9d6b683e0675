# Random aggregations as those of 033_random_aggregates.pl, by the device of the service: the
# stand-in for it (test/fault), unless GPUHASH_STAND_IN is "no".
#
#	GPUHASH_RANDOM_QUERIES		how many queries (600)
use strict;
use warnings;
use FindBin;

$ENV{GPUHASH_RANDOM_DEVICE} = 'yes';
$ENV{GPUHASH_RANDOM_QUERIES} ||= 600;
do "$FindBin::Bin/033_random_aggregates.pl" or die $@ || $!;
