# SPDX-License-Identifier: GPL-2.0-or-later
"""The QAPI generator: schema files in, C types, visitors, marshalling, events and introspection out."""
