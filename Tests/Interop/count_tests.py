"""Runs every test here by unittest's own discovery; the last line counts them. Started by `run`."""

import pathlib
import sys
import unittest

suite = unittest.defaultTestLoader.discover(str(pathlib.Path(__file__).parent))
result = unittest.TextTestRunner(verbosity=2).run(suite)
failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
for _, reason in result.skipped:
    print(f"skipped: {reason}", file=sys.stderr)
print(f"{max(0, result.testsRun - failed - skipped)} passed, {failed} failed, {skipped} skipped")
sys.exit(not result.wasSuccessful())
