"""Runs every test here by unittest's own discovery; the last line counts them. Started by `run`."""

import pathlib
import sys
import unittest


class Counting(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        self.passed += 1
        super().addSuccess(test)


suite = unittest.defaultTestLoader.discover(str(pathlib.Path(__file__).parent))
result = unittest.TextTestRunner(verbosity=2, resultclass=Counting).run(suite)
for _, reason in result.skipped:
    print(f"skipped: {reason}", file=sys.stderr)
failed = len(result.failures) + len(result.errors)
print(f"{result.passed} passed, {failed} failed, {len(result.skipped)} skipped")
sys.exit(not result.wasSuccessful())
