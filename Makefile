# Two commands, each sufficient on a fresh Debian bookworm machine:
#   make run    train the digits classifier on 8 virtual devices
#   make test   build everything and pass all tests
.PHONY: run test build setup docs format clean

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

setup:
	@scripts/setup

docs: setup
	scripts/update-reference

format:
	git ls-files '*.cpp' '*.h' | xargs clang-format-22 -i

clean:
	rm -rf $(BUILD)
