# SPDX-License-Identifier: Apache-2.0
"""Pure sums over readings, in a folder for each subject.  No sentences, no machine.

Loose here is what all of them build on: a moment (``scene.py``), rates over a window, workloads
and what a claim is.
"""
