# SPDX-License-Identifier: GPL-2.0-or-later
"""Documentation comments: their structure, and their agreement with the definition that follows."""

import re

from .syntax import SchemaError

TAG = re.compile(r'(Returns|Errors|Since|Notes?|Examples?|Features):\s*(.*)')
ARGUMENT = re.compile(r'@([A-Za-z0-9_.*-]+):(?:\s+(.*)|\s*)$')


class Doc:
    """A parsed comment: the name, and per member, feature and tag the line and the text."""

    def __init__(self, path, text, line):
        self.path = path
        self.line = line
        self.members = {}
        self.features = {}
        self.tags = {}
        self.body = []
        self.parse(text.split('\n')[1:-1])

    def error(self, message, line=None):
        return SchemaError(self.path, line or self.line, message)

    def parse(self, lines):
        current, in_features = self.body, False
        for line, raw in enumerate(lines, self.line + 1):
            if raw not in ('#',) and not raw.startswith('# '):
                raise self.error("documentation line must start with '# '", line)
            text = raw[2:].rstrip()
            if line == self.line + 1:
                self.name = self.parse_name(text, line)
                continue
            tag, argument = TAG.match(text), ARGUMENT.match(text)
            if tag:
                current, in_features = self.start_tag(tag, line)
            elif argument:
                table = self.features if in_features else self.members
                current = self.start_argument(table, argument, line)
            elif text.startswith('@'):
                raise self.error(f"'{text}' is neither '@NAME: text' nor plain text", line)
            elif text:
                current.append(text.strip())
        self.check_texts()

    def parse_name(self, text, line):
        match = re.fullmatch(r'@([A-Za-z0-9_.-]+):', text)
        if not match:
            raise self.error("the first line of documentation must read '# @NAME:'", line)
        return match.group(1)

    def start_tag(self, match, line):
        name, text = match.groups()
        if name in self.tags:
            raise self.error(f"duplicate '{name}:' section", line)
        content = [text] if text else []
        self.tags[name] = (line, content)
        return content, name == 'Features'

    def start_argument(self, table, match, line):
        name, text = match.groups()
        if name in table:
            raise self.error(f"'@{name}' is documented twice", line)
        content = [text] if text else []
        table[name] = (line, content)
        return content

    def check_texts(self):
        for table in (self.members, self.features):
            for name, (line, content) in table.items():
                if not content:
                    raise self.error(f"'@{name}' has no description", line)
        for name, (line, content) in self.tags.items():
            if name != 'Features' and not content:
                raise self.error(f"'{name}:' section is empty", line)


def check(definition, meta, name, members, features, returns, excepted):
    """
    Compare the comment of @definition with the @members and @features that it really has.
    @returns says whether a command returns something. With @excepted, members may stay undocumented.
    """
    doc = Doc(definition.module.path, *definition.doc)
    if doc.name != name:
        raise doc.error(f"documentation of '{doc.name}' precedes the definition of '{name}'", doc.line + 1)
    if not doc.body and not doc.members:
        raise doc.error(f"documentation of '{name}' says nothing about it")
    compare(doc, doc.members, members, f"{meta} '{name}' has no member", 'member', excepted)
    compare(doc, doc.features, features, f"{meta} '{name}' has no feature", 'feature', False)
    if 'Returns' in doc.tags and not returns:
        what = 'returns nothing' if meta == 'command' else 'is not a command'
        raise doc.error(f"'Returns:' section, but '{name}' {what}", doc.tags['Returns'][0])
    if returns and 'Returns' not in doc.tags:
        raise doc.error(f"documentation of '{name}' lacks a 'Returns:' section")
    if 'Errors' in doc.tags and meta != 'command':
        raise doc.error(f"'Errors:' section, but '{name}' is not a command", doc.tags['Errors'][0])
    if 'Since' not in doc.tags:
        raise doc.error(f"documentation of '{name}' lacks a 'Since:' section")


def compare(doc, documented, real, unknown, what, excepted):
    for name, (line, _) in documented.items():
        if name not in real:
            raise doc.error(f"{unknown} '{name}'", line)
    missing = [name for name in real if name not in documented]
    if missing and not excepted:
        raise doc.error(f"{what} '{missing[0]}' of '{doc.name}' is not documented")
