# SPDX-License-Identifier: Apache-2.0
"""Bytes into typed values: a parser for each kernel file or probe, named alike."""
