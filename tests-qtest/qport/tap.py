#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run unittest modules of this directory and print TAP, a line a case.

Cases are named /qport/MODULE/CLASS/METHOD with dashes for underscores.
"""

import argparse
import io
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', '..', 'scripts')]


def name_of(case):
    module, group, method = case.id().split('.')[-3:]
    parts = [module.removeprefix('test_'), group.removesuffix('Test').lower(),
             method.removeprefix('test_')]
    return '/qport/' + '/'.join(p.replace('_', '-') for p in parts)


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def report(number, case):
    """Run one case and print its line; returns whether it is fine."""
    result = unittest.TestResult()
    stdout, sys.stdout = sys.stdout, io.StringIO()
    try:
        case.run(result)
    finally:
        sys.stdout = stdout
    good = result.wasSuccessful()
    line = f'{"ok" if good else "not ok"} {number} {name_of(case)}'
    if result.skipped:
        line += f' # SKIP {result.skipped[0][1]}'
    print(line, flush=True)
    for failed, trace in result.failures + result.errors:
        for text in [str(failed)] + trace.splitlines():
            print('# ' + text)
    return good


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('module', nargs='+', help='such as test_lex')
    names = args.parse_args().module
    cases = list(flatten(unittest.defaultTestLoader.loadTestsFromNames(names)))
    print(f'1..{len(cases)}')
    good = [report(n, case) for n, case in enumerate(cases, 1)]
    return 0 if all(good) else 1


if __name__ == '__main__':
    sys.exit(main())
