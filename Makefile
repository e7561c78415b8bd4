# Tuck is built by GNU make alone; there is no configure step. `make help` lists the targets.
#
#   make                       release build: build/release/tuck, libtuck.a, libtuck.so
#   make V=dev                 another variant, in build/dev:
#                              release | dev | asan | stress | tsan | coverage | fuzz
#   make SAN=address,undefined the same as V=asan;  make SAN=thread the same as V=tsan
#   make CC=clang WERROR=1     another compiler; warnings are errors
#   make Q=                    show the commands

ifeq ($(origin CC),default)
CC = gcc
endif
ifeq ("$(SAN)","thread")
V = tsan
else ifeq ("$(SAN)","address,undefined")
V = asan
else ifneq ("$(SAN)","")
$(error SAN must be thread or address,undefined)
endif

V       ?= release
B       ?= build/$(V)
Q       ?= @
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
LIBS    := -ljansson -lm

ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# ---------------------------------------------------------------- flags

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef \
        -Wcast-qual

VFLAGS_release := -O2 -g
VFLAGS_dev     := -O1 -g -DTUCK_CHECK
VFLAGS_asan    := -O1 -g -DTUCK_CHECK -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=all
VFLAGS_stress  := $(VFLAGS_asan) -DTUCK_STRESS
VFLAGS_tsan    := -O1 -g -DTUCK_CHECK -fsanitize=thread
VFLAGS_coverage := -O0 -g --coverage -fprofile-update=atomic
VFLAGS_fuzz    := $(VFLAGS_asan) -fsanitize=fuzzer-no-link
ifeq ($(VFLAGS_$(V)),)
$(error V=$(V): the variants are release, dev, asan, stress, tsan, coverage, fuzz)
endif
ifeq ($(V),fuzz)
override CC = clang
endif

C17     = $(CC) -std=c17 $(WARN) $(VFLAGS_$(V)) $(CPPFLAGS) $(CFLAGS)
COMPILE = $(C17) -D_GNU_SOURCE -ffp-contract=off -fPIC -fvisibility=hidden -Iinclude -Isrc
LINK    = $(CC) $(VFLAGS_$(V)) $(CFLAGS) $(LDFLAGS)
TESTFLAGS = -Itests $(if $(filter tests/fuzz/%,$<),-Wno-missing-prototypes)
STRICT  = $(if $(WERROR),-Werror)

# ---------------------------------------------------------------- sources

LIB_C      := $(filter-out src/cli/%,$(wildcard src/*/*.c src/*/*/*.c))
CLI_C      := $(wildcard src/cli/*.c)
SUPPORT_C  := $(wildcard tests/support/*.c)
TEST_C     := $(wildcard tests/unit/*.c tests/property/*.c)
FUZZ_C     := $(wildcard tests/fuzz/*.c)
EXAMPLE_C  := $(wildcard examples/*.c)
FORMATTED   = $(wildcard $(foreach d,include src/* src/*/* tests tests/* bench examples tools,$d/*.[ch]))

obj         = $(1:%.c=$(B)/%.o)
TESTS      := $(TEST_C:%.c=$(B)/%)
FUZZERS    := $(FUZZ_C:%.c=$(B)/%)
EXAMPLES   := $(EXAMPLE_C:%.c=$(B)/%)
RUNNER     := $(B)/tests/golden_run

VERSION := $(shell sed -n 's/^\# *define  *TUCK_VERSION  *"\(.*\)".*/\1/p' include/tuck.h 2>/dev/null)
# The soname changes when the ABI does: with the major version, before 1.0 with the minor one too.
MAJOR   := $(firstword $(subst ., ,$(VERSION)))
SONAME  := libtuck.so.$(MAJOR)$(if $(filter 0,$(MAJOR)),.$(word 2,$(subst ., ,$(VERSION))))
SOFILE  := libtuck.so.$(VERSION)

# ---------------------------------------------------------------- building

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all tests fuzzers demo test check test-torch soak fuzz bench coverage bless format \
        check-format compile_commands.json dist install uninstall clean deps help FORCE

all: $(B)/tuck $(B)/libtuck.a $(B)/libtuck.so   ## the tool and the library (default)

tests: all $(TESTS) $(EXAMPLES) $(RUNNER) fuzzers   ## build every test program of this variant

fuzzers: $(FUZZERS)

# Rewritten only when their text changes: a new compiler or flag rebuilds the objects, a removed
# source the libraries. -Werror is left out, so that `make` and `make test` share what they build.
$(B)/flags: FORCE
	@mkdir -p $(@D); echo '$(COMPILE)' | cmp -s - $@ || echo '$(COMPILE)' >$@
$(B)/sources: FORCE
	@mkdir -p $(@D); echo '$(LIB_C) $(CLI_C) $(SUPPORT_C) $(VERSION)' | cmp -s - $@ || \
	    echo '$(LIB_C) $(CLI_C) $(SUPPORT_C) $(VERSION)' >$@

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(COMPILE) $(if $(filter tests/%,$<),$(TESTFLAGS)) $(STRICT) -MMD -MP -c -o $@ $<

# The page of reports, as an array: made in the build, so that the source is the page itself.
EMBEDDED := $(B)/src/report/page.o
$(B)/src/report/page.c: src/report/page.html tools/embed
	@mkdir -p $(@D)
	$(Q)tools/embed report_page $< >$@
$(EMBEDDED): $(B)/src/report/page.c $(B)/flags
	@echo "  CC    $<"
	$(Q)$(COMPILE) $(STRICT) -c -o $@ $<

$(B)/libtuck.a: $(call obj,$(LIB_C)) $(EMBEDDED) $(B)/sources
	@echo "  AR    $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(B)/$(SOFILE): $(call obj,$(LIB_C)) $(EMBEDDED) $(B)/sources
	@echo "  LINK  $@"
	$(Q)$(LINK) -shared -Wl,-soname,$(SONAME) -o $@ $(filter %.o,$^) $(LIBS)

$(B)/libtuck.so: $(B)/$(SOFILE)
	$(Q)ln -sf $(SOFILE) $(B)/$(SONAME) && ln -sf $(SONAME) $@

$(B)/tuck: $(call obj,$(CLI_C)) $(B)/libtuck.a $(B)/sources
	@echo "  LINK  $@"
	$(Q)$(LINK) -o $@ $(filter %.o %.a,$^) $(LIBS)

# Tests see the private headers and, through the static library, the private symbols.
$(TESTS): $(B)/%: $(B)/%.o $(call obj,$(SUPPORT_C)) $(B)/libtuck.a $(B)/sources
	@echo "  LINK  $@"
	$(Q)$(LINK) -o $@ $(filter %.o %.a,$^) $(LIBS) -lcmocka

# Outside of V=fuzz a fuzz target gets a main that feeds it files: old findings stay tested.
FUZZ_MAIN := $(if $(filter fuzz,$(V)),,$(B)/tools/fuzz_replay.o)
$(FUZZERS): $(B)/%: $(B)/%.o $(FUZZ_MAIN) $(call obj,$(SUPPORT_C)) $(B)/libtuck.a $(B)/sources
	@echo "  LINK  $@"
	$(Q)$(LINK) $(if $(FUZZ_MAIN),,-fsanitize=fuzzer) -o $@ $(filter %.o %.a,$^) $(LIBS)

# Examples are what a user writes: the public header and the shared library, nothing else.
$(EXAMPLES): $(B)/%: %.c $(B)/libtuck.so $(B)/flags
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(C17) $(STRICT) -Iinclude -MMD -MP -MF $@.d -o $@ $< -L$(B) -ltuck -Wl,-rpath,'$$ORIGIN/..'

$(RUNNER): $(B)/tests/golden_run.o
	@echo "  LINK  $@"
	$(Q)$(LINK) -o $@ $<

# ---------------------------------------------------------------- running

demo:             ## install what is missing, build, and show what Tuck does
	@tools/deps build
	@$(MAKE) --no-print-directory -s V=release all
	@tools/demo.sh

test:             ## install what is missing, build all variants, run all tests
	@tools/deps build test
	@tools/test.sh

check:            ## the quick part of `make test`: one build, the checks of the source, unit and golden tests
	@tools/deps build test
	@tools/test.sh check

test-torch:       ## compare with PyTorch, in an environment of its own
	@tools/deps build test torch
	@tests/torch/run.sh

soak:             ## the long tests: property tests with new seeds, ten times as many; then fuzzing (FUZZ_SECONDS=600)
	@tools/deps build test fuzz
	@tools/test.sh soak

fuzz:             ## each fuzz target for FUZZ_SECONDS=20; FUZZ=name picks one
	@tools/deps build fuzz
	@$(MAKE) --no-print-directory -s V=fuzz fuzzers
	@tools/fuzz.sh

bench: all        ## benchmarks
	@bench/run.sh

coverage:         ## which lines the tests run: a table, and pages in build/coverage
	@tools/deps build test coverage
	@tools/coverage

# Test programs that compare with a file of tests/results, and write it where TUCK_BLESS is set.
BLESSED := $(patsubst %.c,$(B)/%,$(shell grep -l 'getenv("TUCK_BLESS")' $(TEST_C)))

bless: all $(RUNNER) $(BLESSED)   ## rewrite the expected output of the golden tests, of the docs and tests/results
	@$(RUNNER) -u -t $(B)/tuck $(wildcard tests/golden docs README.md)
	@for t in $(BLESSED); do TUCK_BLESS=1 $$t >$(B)/bless.log 2>&1 || { cat $(B)/bless.log; exit 1; }; done
	@TUCK_BLESS=1 tests/install.sh

format:           ## let clang-format rewrite the C files
	@tools/format $(FORMATTED)

check-format:     ## fail where clang-format would change something
	@tools/format -n $(FORMATTED)

# For editors and clang-tidy.
compile_commands.json:   ## how each source file is compiled
	@{ echo '['; tools/compile-commands '$(COMPILE)' $(LIB_C) $(CLI_C); echo ','; \
	   tools/compile-commands '$(COMPILE) -Itests' $(TEST_C) $(SUPPORT_C) $(FUZZ_C) \
	       tests/golden_run.c; echo; echo ']'; } >$@

DIST := tuck-$(VERSION)

dist:             ## build/tuck-VERSION.tar.gz: the source, which builds and tests without git
	@mkdir -p build
	@if git rev-parse -q --verify HEAD >/dev/null 2>&1; then \
	    git archive --format=tar.gz --prefix=$(DIST)/ -o build/$(DIST).tar.gz HEAD; \
	else \
	    tar czf build/$(DIST).tar.gz --transform 's,^\.,$(DIST),' --exclude=./build .; \
	fi
	@echo build/$(DIST).tar.gz

deps:             ## install the Debian packages that building, testing and fuzzing need
	@tools/deps build test fuzz

clean:            ## remove what was built (the PyTorch environment in build/torch-venv stays)
	@rm -rf $(filter-out build/torch-venv,$(wildcard build/*))

# ---------------------------------------------------------------- installing

D = $(DESTDIR)$(PREFIX)
L = $(DESTDIR)$(LIBDIR)
DOC = $D/share/doc/tuck
COMPLETIONS = $D/share/bash-completion/completions/tuck $D/share/zsh/site-functions/_tuck \
              $D/share/fish/vendor_completions.d/tuck.fish

install: all      ## PREFIX=/usr/local, LIBDIR, DESTDIR
	install -d $D/bin $D/include $L/pkgconfig $D/share/man/man1
	install -m 755 $(B)/tuck $D/bin/tuck
	install -m 644 include/tuck.h include/tuck_experimental.h $D/include
	install -m 644 $(B)/libtuck.a $L/libtuck.a
	install -m 755 $(B)/$(SOFILE) $L/$(SOFILE)
	ln -sf $(SOFILE) $L/$(SONAME)
	ln -sf $(SONAME) $L/libtuck.so
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(LIBS)|' \
	    tools/tuck.pc.in >$L/pkgconfig/tuck.pc
	$(if $(wildcard man/tuck.1),install -m 644 man/tuck.1 $D/share/man/man1/tuck.1)
	install -d $(dir $(COMPLETIONS)) $(DOC)/docs/pictures $(DOC)/examples
	tools/completion bash $(B)/tuck >$(word 1,$(COMPLETIONS))
	tools/completion zsh $(B)/tuck >$(word 2,$(COMPLETIONS))
	tools/completion fish $(B)/tuck >$(word 3,$(COMPLETIONS))
	chmod 644 $(COMPLETIONS)
	install -m 644 README.md LICENSE $(DOC)
	install -m 644 $(wildcard docs/*.md) $(DOC)/docs
	install -m 644 $(wildcard docs/pictures/*) $(DOC)/docs/pictures
	install -m 644 $(wildcard examples/*) $(DOC)/examples

uninstall:        ## remove what install put there
	rm -f $D/bin/tuck $D/include/tuck.h $D/include/tuck_experimental.h $D/share/man/man1/tuck.1 $L/pkgconfig/tuck.pc \
	    $L/libtuck.a $L/libtuck.so $L/$(SONAME) $L/$(SOFILE) $(COMPLETIONS)
	rm -rf $(DOC)

help:             ## this list
	@sed -n '/^# *make/s/^#//p' Makefile
	@echo
	@sed -n 's/^\([a-z][a-z_.-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r t h; do \
	    printf '  %-14s %s\n' "$$t" "$$h"; done

-include $(shell find $(B) -name '*.d' 2>/dev/null)
