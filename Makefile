# Two commands, each sufficient on a fresh Debian bookworm machine:
#   make run    train the digits classifier on 8 virtual devices
#   make test   build everything and pass all tests
# A third one cross-builds the runtime for aarch64 (build-aarch64); the tests then run artifacts on it, under qemu.
#   make aarch64
.PHONY: run test build aarch64 setup docs format clean

PRESET ?= release
BUILD  ?= build
JOBS   ?= $(shell n=$$(nproc); [ $$n -gt 2 ] && m=$$(awk '/MemAvailable/{print int($$2/1500000)}' /proc/meminfo) && [ $$m -lt $$n ] && echo $${m:-1} || echo $$n)

run: build
	examples/digits/train $(BUILD)/bin

test: build
	scripts/test $(BUILD)

build: setup
	@scripts/setup-python $(BUILD)
	@test -f $(BUILD)/build.ninja || cmake --preset $(PRESET) -B $(BUILD)
	cmake --build $(BUILD) -j $(JOBS)

aarch64:
	@scripts/setup g++-aarch64-linux-gnu qemu-user
	@test -f build-aarch64/build.ninja || cmake --preset aarch64
	cmake --build build-aarch64 -j $(JOBS) --target tessera-exec

setup:
	@scripts/setup

docs: setup
	scripts/update-reference

format:
	git ls-files '*.cpp' '*.h' | xargs clang-format-22 -i

clean:
	rm -rf $(BUILD)
