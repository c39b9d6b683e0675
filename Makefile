# gpuhash: PGXS build.  `make help` lists the targets.
EXTENSION = gpuhash
DATA = gpuhash--0.1.sql
MODULE_big = gpuhash
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/engine/*.c src/join/*.c src/table/*.c)))
PG_CPPFLAGS = -I$(srcdir)/src
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Werror
SHLIB_LINK = -ldl

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
