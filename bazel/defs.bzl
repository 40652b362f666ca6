"""How a target of this project is declared: the one place with its include paths.

Consumers see the same include paths as the project itself: `"h2d/<package>/x.h"`.
Warnings and sanitizers come from the command line (`.bazelrc`), never from here,
so that a consumer's build of these targets is its own.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

def h2d_cc_library(name, **kwargs):
    """A cc_library whose headers are included as "h2d/<package>/<file>"."""
    package = native.package_name()
    cc_library(
        name = name,
        include_prefix = "h2d/" + package if package else "h2d",
        strip_include_prefix = "/" + package,
        **kwargs
    )

def h2d_cc_test(name, deps = [], size = "small", **kwargs):
    """A GoogleTest test with GoogleTest's main()."""
    cc_test(
        name = name,
        size = size,
        deps = deps + ["@com_google_googletest//:gtest_main"],
        **kwargs
    )

def h2d_cc_binary(name, **kwargs):
    """A program: an example, a benchmark or a tool."""
    cc_binary(name = name, **kwargs)
