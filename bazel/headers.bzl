"""The header check: an aspect that compiles each public header alone.

`bazel build --config=headers //...` runs it on every library of this workspace, so a
header is checked as soon as a library lists it, and the sandbox lets nobody include one
that no library lists. What consumers build is not concerned.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Wconversion",
    "-Werror",
]

# Consumers may build without either. Headers for tests include GoogleTest, whose users do not.
_WITHOUT_RUNTIME = [
    "-fno-exceptions",
    "-fno-rtti",
]

def _is_public(label):
    """Whether users of the library may see the target's headers."""
    folders = label.package.split("/")
    return not label.workspace_name and folders[0] in ["device", "stager"] and "internal" not in folders

def _unit_of(ctx, header):
    """A source file that includes the header twice: first of all, and once more for its guard."""
    unit = ctx.actions.declare_file("_header_check/%s/%s.cc" % (ctx.label.name, header.basename))
    ctx.actions.write(unit, "#include \"h2d/{0}\"\n#include \"h2d/{0}\"\n".format(header.short_path))
    return unit

def _header_check_impl(target, ctx):
    if ctx.rule.kind != "cc_library" or not ctx.rule.files.hdrs or not _is_public(ctx.label):
        return [OutputGroupInfo(header_check = depset())]
    toolchain = find_cpp_toolchain(ctx)
    _, outputs = cc_common.compile(
        actions = ctx.actions,
        cc_toolchain = toolchain,
        compilation_contexts = [target[CcInfo].compilation_context],
        feature_configuration = cc_common.configure_features(
            cc_toolchain = toolchain,
            ctx = ctx,
            requested_features = ctx.features,
            unsupported_features = ctx.disabled_features,
        ),
        name = ctx.label.name + "_header_check",
        srcs = [_unit_of(ctx, header) for header in ctx.rule.files.hdrs],
        user_compile_flags = _WARNINGS + ([] if ctx.rule.attr.testonly else _WITHOUT_RUNTIME),
    )
    return [OutputGroupInfo(header_check = depset(outputs.objects + outputs.pic_objects))]

header_check = aspect(
    implementation = _header_check_impl,
    attrs = {
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    doc = "Compiles each header of the library that it is applied to, alone.",
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
