"""Tests of .ci/count on crafted build events and result files."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import tempfile
import unittest

_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "count")
_LOADER = importlib.machinery.SourceFileLoader("count", _PATH)
count = importlib.util.module_from_spec(importlib.util.spec_from_loader("count", _LOADER))
_LOADER.exec_module(count)

PASSING_CASE = '<testcase name="A" status="run" result="completed"/>'
FAILING_CASE = '<testcase name="B" status="run" result="completed"><failure message="no"/></testcase>'
SKIPPED_CASE = '<testcase name="C" status="run" result="skipped"><skipped/></testcase>'
DISABLED_CASE = '<testcase name="D" status="notrun" result="suppressed"/>'
# What Bazel writes for a test that wrote no xml: one case, named after the target.
BARE_PASS = '<testcase name="x/t" status="run"></testcase>'
BARE_CRASH = '<testcase name="x/t" status="run"><error message="exited with error code 134"/></testcase>'


class CountCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.events = []

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def target(self, label, kind="cc_test rule"):
        self.events.append(
            {"id": {"targetConfigured": {"label": label}}, "configured": {"targetKind": kind}}
        )

    def aborted(self, label, reason):
        self.events.append(
            {"id": {"targetCompleted": {"label": label}}, "aborted": {"reason": reason}}
        )

    def result(self, label, status, cases, **place):
        """A testResult whose xml holds `cases`; without them the event names no xml."""
        outputs = []
        if cases is not None:
            name = f"{len(self.events)} test.xml"  # A space: uris are quoted.
            text = f"<testsuites><testsuite>{cases}</testsuite></testsuites>"
            path = self.file(name, text).replace(" ", "%20")
            outputs.append({"name": "test.xml", "uri": f"file://{path}"})
        self.events.append(
            {
                "id": {"testResult": {"label": label, **place}},
                "testResult": {"status": status, "testActionOutput": outputs},
            }
        )

    def run_count(self, *arguments):
        """(exit status, stdout, stderr) of the program."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = count.main([str(argument) for argument in arguments])
        return status, out.getvalue().strip(), err.getvalue()

    def count_tests(self, status):
        events = self.file("events.json", "".join(json.dumps(e) + "\n" for e in self.events))
        exit_status, out, self.said = self.run_count("tests", events, status)
        self.assertEqual(exit_status, 0)
        return out


class TestsCount(CountCase):
    def test_cases_are_counted_by_their_result(self):
        self.target("//x:t")
        self.result("//x:t", "FAILED", PASSING_CASE * 2 + FAILING_CASE + SKIPPED_CASE + DISABLED_CASE)
        self.assertEqual(self.count_tests(3), "2 1 2")

    def test_a_test_without_googletest_is_one_case(self):
        self.target("//x:t")
        self.result("//x:t", "PASSED", BARE_PASS)
        self.assertEqual(self.count_tests(0), "1 0 0")

    def test_a_crash_counts_one_failed(self):
        self.target("//x:t")
        self.result("//x:t", "FAILED", BARE_CRASH)
        self.assertEqual(self.count_tests(3), "0 1 0")

    def test_a_death_after_the_last_case_counts_one_failed_besides_them(self):
        self.target("//x:t")
        self.result("//x:t", "FAILED", PASSING_CASE * 3)
        self.assertEqual(self.count_tests(3), "3 1 0")
        self.assertIn("//x:t", self.said)

    def test_a_time_out_without_xml_counts_one_failed(self):
        self.target("//x:t")
        self.result("//x:t", "TIMEOUT", None)
        self.assertEqual(self.count_tests(3), "0 1 0")

    def test_a_named_xml_that_is_not_there_counts_one_failed(self):
        self.target("//x:t")
        self.result("//x:t", "PASSED", PASSING_CASE)
        os.remove(os.path.join(self.folder, "1 test.xml"))
        self.assertEqual(self.count_tests(0), "0 1 0")

    def test_a_torn_xml_counts_one_failed(self):
        self.target("//x:t")
        self.result("//x:t", "PASSED", PASSING_CASE + "<")
        self.assertEqual(self.count_tests(0), "0 1 0")

    def test_a_test_that_runs_no_case_counts_one_failed(self):
        self.target("//x:t")
        self.result("//x:t", "PASSED", "")
        self.assertEqual(self.count_tests(0), "0 1 0")

    def test_a_target_that_did_not_build_counts_one_failed(self):
        self.target("//x:built")
        self.target("//x:broken")
        self.result("//x:built", "PASSED", PASSING_CASE)
        self.assertEqual(self.count_tests(1), "1 1 0")
        self.assertIn("//x:broken", self.said)

    def test_a_target_that_was_not_analysed_counts_one_failed(self):
        self.target("//x:t")
        self.aborted("//x:t", "ANALYSIS_FAILURE")
        self.assertEqual(self.count_tests(1), "0 1 0")

    def test_an_incompatible_test_is_skipped_and_an_incompatible_library_is_nothing(self):
        self.target("//x:t")
        self.target("//x:library", kind="cc_library rule")
        self.aborted("//x:t", "SKIPPED")
        self.aborted("//x:library", "SKIPPED")
        self.assertEqual(self.count_tests(0), "0 0 1")

    def test_every_shard_counts(self):
        self.target("//x:t")
        self.result("//x:t", "PASSED", PASSING_CASE * 2, shard=1)
        self.result("//x:t", "PASSED", PASSING_CASE, shard=2)
        self.assertEqual(self.count_tests(0), "3 0 0")

    def test_only_the_last_attempt_counts(self):
        self.target("//x:t")
        self.result("//x:t", "FAILED", FAILING_CASE, attempt=1)
        self.result("//x:t", "PASSED", PASSING_CASE, attempt=2)
        self.assertEqual(self.count_tests(0), "1 0 0")

    def test_a_failed_step_without_a_failed_test_counts_one_failed(self):
        self.assertEqual(self.count_tests(2), "0 1 0")

    def test_missing_events_of_a_failed_step_count_one_failed(self):
        missing = os.path.join(self.folder, "missing.json")
        self.assertEqual(self.run_count("tests", missing, 37)[1], "0 1 0")

    def test_events_torn_by_bazels_death_still_count(self):
        self.target("//x:t")
        self.result("//x:t", "PASSED", PASSING_CASE)
        self.target("//x:u")
        torn = "".join(json.dumps(e) + "\n" for e in self.events) + '{"id": {"testRes'
        events = self.file("torn.json", torn)
        self.assertEqual(self.run_count("tests", events, 37)[1], "1 1 0")


class OtherSteps(CountCase):
    def build(self, status, output_group):
        event = {"id": {"targetCompleted": {"label": "//x:t"}}, "completed": {"success": True}}
        if output_group:
            event["completed"]["outputGroup"] = [{"name": "default"}]
        events = self.file("events.json", json.dumps(event) + "\n")
        return self.run_count("build", events, status)[1]

    def test_a_build_is_one_check(self):
        self.assertEqual(self.build(0, output_group=True), "1 0 0")
        self.assertEqual(self.build(1, output_group=True), "0 1 0")

    def test_a_build_of_nothing_has_failed(self):
        self.assertEqual(self.build(0, output_group=False), "0 1 0")

    def test_a_command_is_one_check(self):
        self.assertEqual(self.run_count("check", 0)[1], "1 0 0")
        self.assertEqual(self.run_count("check", 1)[1], "0 1 0")

    def test_status_77_means_skipped(self):
        self.assertEqual(self.run_count("check", 77)[1], "0 0 1")

    def unittest_log(self, text, status):
        return self.run_count("unittest", self.file("log", text), status)[1]

    def test_a_unittest_log_is_counted(self):
        self.assertEqual(self.unittest_log("Ran 5 tests in 0.1s\n\nOK (skipped=1)\n", 0), "4 0 1")
        failed = "Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1)\n"
        self.assertEqual(self.unittest_log(failed, 1), "3 2 0")

    def test_a_unittest_log_without_a_count_has_failed(self):
        self.assertEqual(self.unittest_log("SyntaxError: no\n", 1), "0 1 0")
        self.assertEqual(self.unittest_log("", 0), "0 1 0")


class Total(CountCase):
    def total(self, *lines):
        return self.run_count("total", self.file("tally", "".join(f"{line}\n" for line in lines)))

    def test_the_last_line_adds_up_all_steps(self):
        status, out, _ = self.total("3 0 0 tests", "1 0 0 a check")
        self.assertEqual((status, out), (0, "4 passed, 0 failed"))

    def test_what_was_skipped_is_named_only_when_there_is_some(self):
        status, out, _ = self.total("3 0 2 tests")
        self.assertEqual((status, out), (0, "3 passed, 0 failed, 2 skipped"))

    def test_one_failure_fails(self):
        status, out, _ = self.total("3 1 0 tests")
        self.assertEqual((status, out), (1, "3 passed, 1 failed"))

    def test_nothing_passed_fails(self):
        self.assertEqual(self.total()[0], 1)
        self.assertEqual(self.total("0 0 7 tests")[0], 1)

    def test_a_wrong_call_is_refused(self):
        self.assertEqual(self.run_count("tests")[0], 2)
        self.assertEqual(self.run_count()[0], 2)


if __name__ == "__main__":
    unittest.main()
