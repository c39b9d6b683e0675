# gpuhash: PGXS build, tests and demo.  `make help` lists targets and variables.
#
# Works in the checkout and, with `make -f CHECKOUT/Makefile` in an empty
# folder, out of a clean one (what the scripts in test/ do).

top := $(patsubst %/,%,$(dir $(firstword $(MAKEFILE_LIST))))
PG_CONFIG ?= pg_config
WITH_CUDA ?= auto
WERROR ?= no

# Goals that are scripts: they find or install PostgreSQL by themselves.
script_goals := help demo check check-core
goals := $(or $(MAKECMDGOALS),all)

ifeq ($(filter-out $(script_goals),$(goals)),)

.PHONY: $(script_goals)
help:
	@sed -n 's/^#: \{0,1\}//p' $(top)/Makefile
demo:
	@bash $(top)/test/demo.sh
check:
	@bash $(top)/test/check.sh
check-core:
	@PARTS=core bash $(top)/test/check.sh

else

ifneq ($(filter $(script_goals),$(goals)),)
$(error run "make $(filter $(script_goals),$(goals))" alone)
endif

# -------------------------------------------------------------- PostgreSQL

# A server's package alone has pg_config and pgxs.mk, but not the headers.
pg_wanted := or give PG_CONFIG=PATH of a PostgreSQL that has them
pg_packages = Debian and Ubuntu: apt-get install postgresql-server-dev-$(or $(1),all)

PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifeq ($(PGXS),)
$(error no pg_config at "$(PG_CONFIG)": install PostgreSQL's server development files ($(call pg_packages)), $(pg_wanted))
endif
pg_headers := $(shell $(PG_CONFIG) --includedir-server)
pg_major := $(shell $(PG_CONFIG) --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
pg_lacks := $(if $(wildcard $(PGXS)),,$(PGXS)) $(if $(wildcard $(pg_headers)/postgres.h),,$(pg_headers)/postgres.h)
ifneq ($(strip $(pg_lacks)),)
$(error "$(PG_CONFIG)" is of a PostgreSQL $(pg_major) without $(strip $(pg_lacks)): install its server development files ($(call pg_packages,$(pg_major))), $(pg_wanted))
endif
ifeq ($(if $(filter-out clean distclean uninstall tap,$(goals)),$(shell test -w . || echo no)),no)
$(error this folder is not yours to write in: build in another one, with make -f $(abspath $(firstword $(MAKEFILE_LIST))))
endif
pg_makefile_global := $(dir $(PGXS))../Makefile.global

# A build for tests: with fault points, and with the module that looks inside.
with_faults := $(filter-out no,$(FAULT_POINTS))

EXTENSION = gpuhash
DATA = $(notdir $(sort $(wildcard $(top)/gpuhash--*.sql)))
MODULE_big = gpuhash

c_sources := $(sort $(wildcard $(addprefix $(top)/src/,*.c */*.c engine/*/*.c)))
OBJS = $(patsubst $(top)/%.c,%.o,$(c_sources))
PG_CPPFLAGS = -I$(top)/src $(if $(with_faults),-DGH_FAULT_POINTS)
SHLIB_LINK = -ldl -lpthread -lm

# The server's own flags come first; what is switched off here is PostgreSQL's
# style or its headers' habit, not a fault.
warnings = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers -Wno-declaration-after-statement
# A function that this server does not have is found now, not when the library is loaded.
PG_CFLAGS = $(warnings) -Werror=implicit-function-declaration -MMD -MP
pg_cc := $(if $(filter command line,$(origin CC)),$(CC),$(shell $(PG_CONFIG) --cc))
ifneq ($(shell $(pg_cc) --version 2>/dev/null | grep -c clang),0)
# the server was built with gcc: clang does not know all of its flags
PG_CFLAGS += -Qunused-arguments -Wno-unknown-warning-option -Wno-ignored-optimization-argument -Wno-ignored-attributes
endif
ifneq ($(WERROR),no)
PG_CFLAGS += -Werror
endif
# The choice between functions for several processors (src/engine/clones.h) is made before a profile can count.
ifneq ($(findstring -fprofile-generate,$(CFLAGS) $(COPT) $(PROFILE) $(shell $(PG_CONFIG) --cflags)),)
PG_CFLAGS += -DGH_NO_CLONES
endif

ifneq ($(with_faults),)
test_module := test/modules/gpuhash_test
test_objects := $(patsubst $(top)/%.c,%.o,$(sort $(wildcard $(top)/$(test_module)/*.c)))
test_library := gpuhash_test$(or $(DLSUFFIX),.so)
EXTENSION += $(test_module)/gpuhash_test
DATA += $(test_module)/gpuhash_test--1.0.sql
# From 16 on servers hide an extension's functions, which the module calls; test/modules/gpuhash_test/README.
override CFLAGS_SL_MODULE =
PG_CFLAGS += -fno-semantic-interposition
endif

# The server was built with LLVM, but its clang is not here: no bitcode.
pg_clang := $(or $(CLANG),$(shell sed -n 's/^CLANG *= *//p' $(pg_makefile_global)))
ifeq ($(shell command -v $(or $(pg_clang),none) 2>/dev/null),)
override with_llvm = no
endif

# ------------------------------------------------------------------- tests

sql_tests := $(patsubst $(top)/sql/%.sql,%,$(sort $(wildcard $(top)/sql/*.sql)))
REGRESS = $(filter setup,$(sql_tests)) $(filter-out setup,$(sql_tests))
REGRESS_OPTS = --encoding=UTF8 --no-locale
ISOLATION = $(patsubst $(top)/test/specs/%.spec,%,$(sort $(wildcard $(top)/test/specs/*.spec)))
ISOLATION_OPTS = --inputdir=$(top)/test --encoding=UTF8 --no-locale
ifeq ($(strip $(REGRESS)),)
REGRESS =
endif

TAP = $(wildcard $(top)/test/t/*.pl)

# -------------------------------------------------------------------- CUDA

cuda_sources := $(sort $(wildcard $(top)/cuda/*/*.cu))
ifndef NVCC
NVCC := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
endif

ifeq ($(filter auto yes no,$(WITH_CUDA)),)
$(error WITH_CUDA is "$(WITH_CUDA)": give auto, yes or no)
endif
ifeq ($(WITH_CUDA)$(strip $(NVCC)),yes)
$(error WITH_CUDA=yes, but nvcc is not in PATH and not in /usr/local/cuda/bin: install the CUDA toolkit, give NVCC=PATH, or build without (WITH_CUDA=no))
endif
build_cuda := $(if $(filter-out no,$(WITH_CUDA)),$(if $(NVCC),$(if $(cuda_sources),yes)))

ifeq ($(build_cuda),yes)

comma := ,

# Every real architecture from 7.5 to the newest that this nvcc knows, and PTX
# of the newest for the GPUs that come after it; or what CUDA_ARCHS names, as
# in "90", "80 90" or "native" (the GPU of this machine).
ifeq ($(strip $(CUDA_ARCHS)),)
cuda_known := $(shell $(NVCC) --list-gpu-code | sed -n 's/^sm_\([0-9]*\)$$/\1/p' | awk '$$1 >= 75' | sort -nu)
cuda_ptx := $(lastword $(cuda_known))
else
cuda_known := $(filter-out native,$(CUDA_ARCHS))
cuda_ptx := $(lastword $(cuda_known))
endif
cuda_arch_flags := $(if $(filter native,$(CUDA_ARCHS)),-arch=native) \
	$(foreach a,$(cuda_known),-gencode=arch=compute_$(a),code=sm_$(a)) \
	$(if $(cuda_ptx),-gencode=arch=compute_$(cuda_ptx)$(comma)code=compute_$(cuda_ptx)) \
	$(if $(word 2,$(cuda_known)),--threads=0)

cuda_host_flags = -fPIC,-Wall,-Wextra,-Wno-unknown-pragmas,-fvisibility=hidden$(if $(filter-out no,$(WERROR)),$(comma)-Werror)
NVCC_FLAGS = -O3 -std=c++17 -cudart static -I$(top)/src -I$(top) $(cuda_arch_flags) -Wno-deprecated-gpu-targets \
	-Xcompiler $(cuda_host_flags) $(if $(filter-out no,$(WERROR)),-Werror all-warnings) \
	$(if $(with_faults),-DGH_FAULT_POINTS)
# what accepts options, programs and requests is C, and the same as in gpuhash.so
cuda_checks = table/options.c page/page.c page/packed.c program/aggregate.c program/program_check.c pipeline/record.c pipeline/pipeline.c \
	pipeline/pipeline_check.c
CUDA_OBJS = $(patsubst $(top)/%.cu,%.cu.o,$(cuda_sources)) $(cuda_checks:%=cuda/engine/%.o)
cuda_library := gpuhash_cuda$(or $(DLSUFFIX),.so)

endif

EXTRA_CLEAN = $(patsubst %.o,%.d,$(OBJS)) $(wildcard test/modules/*/*.o test/modules/*/*.d) gpuhash_test.so gpuhash_cuda.so $(wildcard cuda/*/*.o cuda/*/*.d cuda/*/*/*.o cuda/*/*/*.d) build/flags build/cuda_flags

# ----------------------------------------------- everything that needs PGXS

# Objects are rebuilt when the server or the flags they were built for change:
# $(call note_flags,FILE,FLAGS) writes FILE where it does not say FLAGS yet.
note_flags = $(shell mkdir -p build; printf '%s\n' '$(subst ','\'',$(2))' > build/$(1).$$$$; \
	if cmp -s build/$(1).$$$$ build/$(1); then rm -f build/$(1).$$$$; else mv build/$(1).$$$$ build/$(1); fi)

ifneq ($(filter-out clean distclean uninstall,$(goals)),)
$(shell mkdir -p $(sort $(dir $(OBJS) $(test_objects) $(if $(build_cuda),$(CUDA_OBJS)))))
$(call note_flags,flags,$(pg_cc) $(CFLAGS) $(COPT) $(PROFILE) $(PG_CFLAGS) $(PG_CPPFLAGS) \
	$(shell $(PG_CONFIG) --version --includedir-server --cflags | cksum))
ifeq ($(build_cuda),yes)
$(call note_flags,cuda_flags,$(NVCC) $(NVCC_FLAGS) $(pg_cc))
endif
endif

# PGXS's own ends with the first suite that fails.
NO_INSTALLCHECK = yes

# PGXS sets it by itself, but not that of a PostgreSQL which was built in its own source folder.
ifneq ($(top),.)
VPATH = $(top)
endif

include $(PGXS)

.PHONY: installcheck
installcheck: submake $(REGRESS_PREP)
	@failed=0; \
	$(if $(strip $(REGRESS)),($(pg_regress_installcheck) $(REGRESS_OPTS) $(REGRESS)) || failed=1;) \
	$(if $(strip $(ISOLATION)),($(pg_isolation_regress_installcheck) $(ISOLATION_OPTS) $(ISOLATION)) || failed=1;) \
	exit $$failed

$(OBJS) $(test_objects): build/flags
build/flags build/cuda_flags: ;
-include $(wildcard $(patsubst %.o,%.d,$(OBJS) $(test_objects)))
# the header dependencies are written for objects; bitcode follows them
$(patsubst %.o,%.bc,$(OBJS)): %.bc: %.o

ifneq ($(with_faults),)

all: $(test_library)

# the gpuhash.so of its own folder, before any that the server's libraries lie beside
$(test_library): $(test_objects) $(shlib)
	$(LINK.shared) -o $@ $(test_objects) $(shlib) -Wl,-rpath,'$$ORIGIN' $(LDFLAGS) $(LDFLAGS_SL)

install: install-test
.PHONY: install-test
install-test: $(test_library) installdirs-lib
	$(INSTALL_SHLIB) $(test_library) '$(DESTDIR)$(pkglibdir)/'

uninstall: uninstall-test
.PHONY: uninstall-test
uninstall-test:
	rm -f '$(DESTDIR)$(pkglibdir)/$(test_library)'

endif

ifeq ($(build_cuda),yes)

all: $(cuda_library)

cuda/%.cu.o: $(top)/cuda/%.cu build/cuda_flags
	$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF cuda/$*.cu.d -c -o $@ $<

# what both engines share, in plain C
cuda/engine/%.c.o: $(top)/src/engine/%.c build/cuda_flags
	$(CC) -O2 $(filter-out -MMD -MP,$(PG_CFLAGS)) -fPIC -fvisibility=hidden -I$(top)/src -MMD -MP -MF cuda/engine/$*.c.d -c -o $@ $<

$(cuda_library): $(CUDA_OBJS)
	$(NVCC) -shared -cudart static -Wno-deprecated-gpu-targets $(cuda_arch_flags) -Xlinker --exclude-libs,ALL -Xlinker --no-undefined -o $@ $^

-include $(wildcard cuda/*/*.d cuda/*/*/*.d)

install: install-cuda
.PHONY: install-cuda
install-cuda: $(cuda_library) installdirs-lib
	$(INSTALL_SHLIB) $(cuda_library) '$(DESTDIR)$(pkglibdir)/'

endif

# Not part of installcheck: these start servers of their own, which root cannot.
.PHONY: tap
tap:
	PG_CONFIG='$(PG_CONFIG)' prove -I $(top)/test/perl $(TAP)

uninstall: uninstall-cuda
.PHONY: uninstall-cuda
uninstall-cuda:
	rm -f '$(DESTDIR)$(pkglibdir)/gpuhash_cuda$(DLSUFFIX)'

endif

#: make               build gpuhash.so, and gpuhash_cuda.so where nvcc is found
#: make install       install into the PostgreSQL that PG_CONFIG names
#: make installcheck  SQL and isolation tests on a running server (PGHOST, PGPORT, PGUSER)
#: make tap           tests that start servers of their own, after make install; not as root
#: make check         every test that this machine can run, on private servers
#: make demo          a private server, demo data, the same query with and without gpuhash
#: make clean         remove what was built
#: make uninstall     remove what was installed
#:
#: PG_CONFIG=PATH     the server to build for (default: pg_config of PATH)
#: WITH_CUDA=auto     auto: if nvcc is found; yes: fail if not; no: CPU engine only
#: NVCC=PATH          the CUDA compiler (default: of PATH, or /usr/local/cuda/bin/nvcc)
#: CUDA_ARCHS="90"    GPU architectures, or native (default: all from 75 on, and PTX)
#: FAULT_POINTS=yes   for tests: devices and workers can be made to fail; with the extension gpuhash_test
#: WERROR=no          yes: compiler warnings stop the build, as in make check
#: ROWS=5000000       demo: rows of the large table
#: DATA=archive       demo: joins over the distribution's own package index
