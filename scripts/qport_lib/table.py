# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of releases and series in patches/README.md."""

from . import PortError
from .engine import (APPLIES, PARTLY, UNSUPPORTED, UPSTREAM, run_series)
from .tree import Tree

BEGIN = '<!-- qport matrix: begin -->'
END = '<!-- qport matrix: end -->'
CELLS = {APPLIES: 'applies', UPSTREAM: 'upstream', PARTLY: 'partly upstream',
         UNSUPPORTED: 'refused'}


def matrix(trees, all_series):
    """[(label, version, {series name: (verdict, reason)})]."""
    rows = []
    for label, path in trees:
        version = Tree(path).version
        verdicts = {}
        for series in all_series:
            verdict, _, reason = run_series(Tree(path), series)
            verdicts[series.name] = (verdict, reason)
        rows.append((label, version, verdicts))
    return rows


def render(rows, all_series):
    """The table, with the reasons of the refusals as notes below it."""
    notes = {}
    lines = ['| release | ' + ' | '.join(s.name for s in all_series) + ' |',
             '|---' * (len(all_series) + 1) + '|']
    for label, version, verdicts in rows:
        cells = [f'{label} (`{version}`)' if label != version else label]
        for series in all_series:
            verdict, reason = verdicts[series.name]
            cell = CELLS[verdict]
            if verdict == UNSUPPORTED:
                key = (series.name, reason)
                cell += f' [{notes.setdefault(key, len(notes) + 1)}]'
            cells.append(cell)
        lines.append('| ' + ' | '.join(cells) + ' |')
    lines.append('')
    for (name, reason), number in notes.items():
        lines.append(f'{number}. {name}: {reason}')
    return '\n'.join(lines).rstrip() + '\n'


def update(path, table):
    """Replace what lies between the marks in a file."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise PortError(f'{path}: the marks of the table are missing')
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'{head}{BEGIN}\n{table}{END}{tail}')
